package function

import (
	"bytes"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// The comparison operators. Each kernel is made for one vec.CmpOp; the inner
// loops have the operation written out, so nothing is called per value.

var cmpOps = []struct {
	name string
	op   vec.CmpOp
	doc  string
}{
	{"=", vec.OpEq, "equal"},
	{"<>", vec.OpNe, "not equal"},
	{"<", vec.OpLt, "less than"},
	{"<=", vec.OpLe, "less than or equal"},
	{">", vec.OpGt, "greater than"},
	{">=", vec.OpGe, "greater than or equal"},
}

// u8 is 1 for true; the compiler makes a SETcc of it.
func u8(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// cmpSlices writes a[i] op b[i] to out.
func cmpSlices[T int16 | int32 | int64 | uint8](op vec.CmpOp, a, b []T, out []uint8) {
	a, b = a[:len(out)], b[:len(out)]
	switch op {
	case vec.OpEq:
		for i := range out {
			out[i] = u8(a[i] == b[i])
		}
	case vec.OpNe:
		for i := range out {
			out[i] = u8(a[i] != b[i])
		}
	case vec.OpLt:
		for i := range out {
			out[i] = u8(a[i] < b[i])
		}
	case vec.OpLe:
		for i := range out {
			out[i] = u8(a[i] <= b[i])
		}
	case vec.OpGt:
		for i := range out {
			out[i] = u8(a[i] > b[i])
		}
	case vec.OpGe:
		for i := range out {
			out[i] = u8(a[i] >= b[i])
		}
	}
}

// cmpConst writes a[i] op c to out.
func cmpConst[T int16 | int32 | int64 | uint8](op vec.CmpOp, a []T, c T, out []uint8) {
	a = a[:len(out)]
	switch op {
	case vec.OpEq:
		for i := range out {
			out[i] = u8(a[i] == c)
		}
	case vec.OpNe:
		for i := range out {
			out[i] = u8(a[i] != c)
		}
	case vec.OpLt:
		for i := range out {
			out[i] = u8(a[i] < c)
		}
	case vec.OpLe:
		for i := range out {
			out[i] = u8(a[i] <= c)
		}
	case vec.OpGt:
		for i := range out {
			out[i] = u8(a[i] > c)
		}
	case vec.OpGe:
		for i := range out {
			out[i] = u8(a[i] >= c)
		}
	}
}

// cmpFloats is cmpSlices in PostgreSQL's order: NaN equals NaN and is greatest.
func cmpFloats[T float32 | float64](op vec.CmpOp, a, b []T, out []uint8) {
	a, b = a[:len(out)], b[:len(out)]
	switch op {
	case vec.OpEq:
		for i := range out {
			out[i] = u8(a[i] == b[i]) | u8(a[i] != a[i])&u8(b[i] != b[i])
		}
	case vec.OpNe:
		for i := range out {
			out[i] = 1 ^ (u8(a[i] == b[i]) | u8(a[i] != a[i])&u8(b[i] != b[i]))
		}
	case vec.OpLt:
		for i := range out {
			out[i] = u8(a[i] < b[i]) | u8(b[i] != b[i])&u8(a[i] == a[i])
		}
	case vec.OpLe:
		for i := range out {
			out[i] = u8(a[i] <= b[i]) | u8(b[i] != b[i])
		}
	case vec.OpGt:
		for i := range out {
			out[i] = u8(a[i] > b[i]) | u8(a[i] != a[i])&u8(b[i] == b[i])
		}
	case vec.OpGe:
		for i := range out {
			out[i] = u8(a[i] >= b[i]) | u8(a[i] != a[i])
		}
	}
}

func boolResult(n int, out []uint8, valid []byte) arrow.Array {
	return vec.MakeBool(n, vec.PackBools(out), valid)
}

// scratch8 returns n bytes that live as long as the call site.
type cmpScratch struct {
	out  []uint8
	wide [2][]int64
	f    [2][]float64
	dec  [2][]decimal128.Num
}

func scratchOf(c *Call) *cmpScratch {
	if c.State == nil {
		return &cmpScratch{}
	}
	if s, ok := (*c.State).(*cmpScratch); ok {
		return s
	}
	s := &cmpScratch{}
	*c.State = s
	return s
}

func grow[T any](b *[]T, n int) []T {
	if cap(*b) < n {
		*b = make([]T, n)
	}
	return (*b)[:n]
}

// cmpKernel wraps the part that differs by type: fill sets out[i] for all n rows
// (or only those selected and valid, if that is dearer than one comparison).
func cmpKernel(op vec.CmpOp, fill func(c *Call, s *cmpScratch, op vec.CmpOp, n int, args []vec.Vec, valid []byte, out []uint8)) Kernel {
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		n := rowsOf(c, args)
		valid, none := strictValid(n, args)
		if none {
			return vec.MakeNull(arrow.FixedWidthTypes.Boolean, n), nil
		}
		s := scratchOf(c)
		out := grow(&s.out, n)
		op := op
		// A constant stands on the right.
		if args[0].Const && !args[1].Const {
			args = []vec.Vec{args[1], args[0]}
			op = op.Swap()
		}
		fill(c, s, op, n, args, valid, out)
		return boolResult(n, out, valid), nil
	}
}

func cmpFixed[T int16 | int32 | int64](op vec.CmpOp) Kernel {
	return cmpKernel(op, func(_ *Call, _ *cmpScratch, op vec.CmpOp, n int, args []vec.Vec, _ []byte, out []uint8) {
		a, b := vec.ViewOf[T](args[0].Arr).V, vec.ViewOf[T](args[1].Arr).V
		if args[1].Const {
			cmpConst(op, a, b[0], out)
			return
		}
		cmpSlices(op, a, b, out)
	})
}

// wideInts returns the ints of any width as int64, one for a constant.
func wideInts(v vec.Vec, buf *[]int64) []int64 {
	switch a := v.Arr.(type) {
	case *array.Int16:
		out := grow(buf, a.Len())
		for i, x := range a.Int16Values() {
			out[i] = int64(x)
		}
		return out
	case *array.Int32, *array.Date32:
		out := grow(buf, a.Len())
		for i, x := range vec.ViewOf[int32](a).V {
			out[i] = int64(x)
		}
		return out
	}
	return vec.ViewOf[int64](v.Arr).V
}

// cmpInts compares integers of different widths.
func cmpInts(op vec.CmpOp) Kernel {
	return cmpKernel(op, func(_ *Call, s *cmpScratch, op vec.CmpOp, n int, args []vec.Vec, _ []byte, out []uint8) {
		a, b := wideInts(args[0], &s.wide[0]), wideInts(args[1], &s.wide[1])
		if args[1].Const {
			cmpConst(op, a, b[0], out)
			return
		}
		cmpSlices(op, a, b, out)
	})
}

func wideFloats(v vec.Vec, n int, buf *[]float64) []float64 {
	if a, ok := v.Arr.(*array.Float32); ok {
		vals := a.Float32Values()
		out := grow(buf, n)
		if v.Const {
			for i := range out {
				out[i] = float64(vals[0])
			}
			return out
		}
		for i, x := range vals {
			out[i] = float64(x)
		}
		return out
	}
	vals := vec.ViewOf[float64](v.Arr).V
	if !v.Const || n == 1 {
		return vals
	}
	out := grow(buf, n)
	for i := range out {
		out[i] = vals[0]
	}
	return out
}

func cmpFloatMix(op vec.CmpOp) Kernel {
	return cmpKernel(op, func(_ *Call, s *cmpScratch, op vec.CmpOp, n int, args []vec.Vec, _ []byte, out []uint8) {
		cmpFloats(op, wideFloats(args[0], n, &s.f[0]), wideFloats(args[1], n, &s.f[1]), out)
	})
}

func cmpBools(op vec.CmpOp) Kernel {
	return cmpKernel(op, func(_ *Call, _ *cmpScratch, op vec.CmpOp, n int, args []vec.Vec, _ []byte, out []uint8) {
		get := func(v vec.Vec) []uint8 {
			d := v.Arr.Data()
			b := make([]uint8, d.Len())
			vec.Bools(b, d.Buffers()[1].Bytes(), d.Offset(), d.Len())
			return b
		}
		a, b := get(args[0]), get(args[1])
		if args[1].Const {
			cmpConst(op, a, b[0], out)
			return
		}
		cmpSlices(op, a, b, out)
	})
}

// rowsLoop calls f for the rows that count: selected and valid.
func rowsLoop(n int, sel []uint16, valid []byte, f func(i int)) {
	if sel != nil {
		for _, s := range sel {
			if valid == nil || vec.BitAt(valid, int(s)) {
				f(int(s))
			}
		}
		return
	}
	for i := 0; i < n; i++ {
		if valid == nil || vec.BitAt(valid, i) {
			f(i)
		}
	}
}

func holds(op vec.CmpOp, c int) uint8 { return u8(op.Holds(c)) }

// cmpStrings compares text and bytea as bytes; blank is for bpchar, whose blanks
// at the end do not count.
func cmpStrings(op vec.CmpOp, blank bool) Kernel {
	k := cmpKernel(op, func(c *Call, _ *cmpScratch, op vec.CmpOp, n int, args []vec.Vec, valid []byte, out []uint8) {
		a, b := vec.ViewStr(args[0].Arr), vec.ViewStr(args[1].Arr)
		sel := selOf(c, args)
		clear(out)
		if args[1].Const {
			x := b.At(0)
			if blank {
				x = vec.TrimBlanks(x)
			}
			if op == vec.OpEq || op == vec.OpNe {
				want := u8(op == vec.OpEq)
				if sel == nil && valid == nil && !blank {
					for i := range out {
						v := a.At(i)
						out[i] = u8(len(v) == len(x) && string(v) == string(x)) ^ want ^ 1
					}
					return
				}
				rowsLoop(n, sel, valid, func(i int) {
					v := a.At(i)
					if blank {
						v = vec.TrimBlanks(v)
					}
					out[i] = u8(string(v) == string(x)) ^ want ^ 1
				})
				return
			}
			rowsLoop(n, sel, valid, func(i int) {
				v := a.At(i)
				if blank {
					v = vec.TrimBlanks(v)
				}
				out[i] = holds(op, bytes.Compare(v, x))
			})
			return
		}
		rowsLoop(n, sel, valid, func(i int) {
			v, x := a.At(i), b.At(i)
			if blank {
				v, x = vec.TrimBlanks(v), vec.TrimBlanks(x)
			}
			out[i] = holds(op, bytes.Compare(v, x))
		})
	})
	return onDict(k)
}

// micros returns timestamps in their own unit and which that is.
func tsNanos(v vec.Vec) bool {
	t, ok := v.Arr.DataType().(*arrow.TimestampType)
	return ok && t.Unit == arrow.Nanosecond
}

// cmpTimestamps compares two timestamps of the same kind, of any units.
func cmpTimestamps(op vec.CmpOp) Kernel {
	return cmpKernel(op, func(_ *Call, s *cmpScratch, op vec.CmpOp, n int, args []vec.Vec, _ []byte, out []uint8) {
		a, b := vec.ViewOf[int64](args[0].Arr).V, vec.ViewOf[int64](args[1].Arr).V
		na, nb := tsNanos(args[0]), tsNanos(args[1])
		if na == nb {
			if args[1].Const {
				cmpConst(op, a, b[0], out)
			} else {
				cmpSlices(op, a, b, out)
			}
			return
		}
		for i := range out {
			k := i
			if args[1].Const {
				k = 0
			}
			c := 0
			if na {
				c = cmpNanos(a[i], b[k])
			} else {
				c = -cmpNanos(b[k], a[i])
			}
			out[i] = holds(op, c)
		}
	})
}

// cmpNanos compares ns with us.
func cmpNanos(ns, us int64) int {
	q := pgtext.FloorMicros(ns)
	switch {
	case q < us:
		return -1
	case q > us:
		return 1
	case ns != pgtext.TimestampInfinity && ns != pgtext.TimestampNegInfinity && ns%1000 != 0:
		return 1
	}
	return 0
}

func cmp64(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// cmpRows compares row by row with a comparison made for the batch.
func cmpRows(op vec.CmpOp, bind func(c *Call, args []vec.Vec) func(i int) int) Kernel {
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		n := rowsOf(c, args)
		valid, none := strictValid(n, args)
		if none {
			return vec.MakeNull(arrow.FixedWidthTypes.Boolean, n), nil
		}
		s := scratchOf(c)
		out := grow(&s.out, n)
		clear(out)
		cmp := bind(c, args)
		rowsLoop(n, selOf(c, args), valid, func(i int) { out[i] = holds(op, cmp(i)) })
		return boolResult(n, out, valid), nil
	}
}

// cmpVia is cmpRows through the value of one row.
func cmpVia[A, B any](op vec.CmpOp, cmp func(c *Call, a A, b B) int) Kernel {
	return cmpRows(op, func(c *Call, args []vec.Vec) func(i int) int {
		ra, rb := reader[A](args[0], argType(c, 0)), reader[B](args[1], argType(c, 1))
		return func(i int) int { return cmp(c, ra(i), rb(i)) }
	})
}

// cmpAny compares two columns of one type in the type's sort order.
func cmpAny(op vec.CmpOp) Kernel {
	return cmpRows(op, func(c *Call, args []vec.Vec) func(i int) int {
		f := vec.NewCompare(argType(c, 0), vec.Decode(args[0].Arr), vec.Decode(args[1].Arr))
		ca, cb := args[0].Const, args[1].Const
		return func(i int) int {
			a, b := i, i
			if ca {
				a = 0
			}
			if cb {
				b = 0
			}
			return f(a, b)
		}
	})
}

// CompareIntervals orders intervals by their length with 30-day months.
func CompareIntervals(a, b pgtext.Interval) int {
	ah, al := vec.IntervalLength(a.Bytes())
	bh, bl := vec.IntervalLength(b.Bytes())
	if c := cmp64(ah, bh); c != 0 {
		return c
	}
	switch {
	case al < bl:
		return -1
	case al > bl:
		return 1
	}
	return 0
}

// dateTimestamp is a date as timestamp; out-of-range ones compare as infinite.
func dateTimestamp(d int64) int64 {
	switch {
	case d == pgtext.DateInfinity:
		return pgtext.TimestampInfinity
	case d == pgtext.DateNegInfinity:
		return pgtext.TimestampNegInfinity
	case d >= pgtext.EndTimestamp/pgtext.UsPerDay:
		return math.MaxInt64 - 1
	}
	return d * pgtext.UsPerDay
}

// localToUTC reads a timestamp without time zone in the session's zone.
func localToUTC(c *Call, ts int64) int64 {
	if ts == pgtext.TimestampInfinity || ts == pgtext.TimestampNegInfinity {
		return ts
	}
	return zoneToUTC(sessionZone(c), ts)
}

func zoneToUTC(z *pgtext.Zone, ts int64) int64 {
	days, tod := pgtext.SplitTimestamp(ts)
	_, off := z.ToUTC(days*86400 + tod/pgtext.UsPerSecond)
	return ts - int64(off)*pgtext.UsPerSecond
}

func zoneToLocal(z *pgtext.Zone, us int64) int64 {
	days, tod := pgtext.SplitTimestamp(us)
	off, _ := z.Offset(days*86400 + tod/pgtext.UsPerSecond)
	return us + int64(off)*pgtext.UsPerSecond
}

// cmpDecs compares numerics of either physical form.
func cmpDecs(op vec.CmpOp) Kernel {
	slow := cmpVia[*numeric.Dec, *numeric.Dec](op, func(_ *Call, a, b *numeric.Dec) int { return numeric.Cmp(a, b) })
	fast := cmpKernel(op, func(_ *Call, s *cmpScratch, op vec.CmpOp, n int, args []vec.Vec, valid []byte, out []uint8) {
		a, b := args[0].Arr.(*array.Decimal128).Values(), args[1].Arr.(*array.Decimal128).Values()
		cmpDec128(op, a, b, args[1].Const, out)
	})
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		a, okA := args[0].Arr.(*array.Decimal128)
		b, okB := args[1].Arr.(*array.Decimal128)
		if !okA || !okB {
			return slow(c, args)
		}
		sa, sb := decScale(a), decScale(b)
		if sa == sb {
			return fast(c, args)
		}
		// Bring both to the larger scale; a value that does not fit sends the
		// batch the slow way.
		s := scratchOf(c)
		in := [2]vec.Vec{args[0], args[1]}
		k := 0
		if sb < sa {
			k = 1
		}
		src := in[k].Arr.(*array.Decimal128)
		up, ok := scaleUp(src.Values(), abs32(sa-sb), &s.dec[k])
		if !ok {
			return slow(c, args)
		}
		valid := vec.ValidCopy(src)
		in[k].Arr = vec.MakeDec128(&arrow.Decimal128Type{Precision: 38, Scale: max(sa, sb)}, append([]decimal128.Num(nil), up...), valid)
		return fast(c, in[:])
	}
}

func cmpDec128(op vec.CmpOp, a, b []decimal128.Num, isConst bool, out []uint8) {
	if isConst {
		c := b[0]
		ch, cl := c.HighBits(), c.LowBits()
		switch op {
		case vec.OpEq, vec.OpNe:
			flip := u8(op == vec.OpNe)
			for i := range out {
				out[i] = u8(a[i].HighBits() == ch && a[i].LowBits() == cl) ^ flip
			}
			return
		case vec.OpLt, vec.OpGe:
			flip := u8(op == vec.OpGe)
			for i := range out {
				h := a[i].HighBits()
				out[i] = (u8(h < ch) | u8(h == ch)&u8(a[i].LowBits() < cl)) ^ flip
			}
			return
		}
		flip := u8(op == vec.OpLe)
		for i := range out {
			h := a[i].HighBits()
			out[i] = (u8(h > ch) | u8(h == ch)&u8(a[i].LowBits() > cl)) ^ flip
		}
		return
	}
	for i := range out {
		out[i] = holds(op, vec.CmpDec128(a[i], b[i]))
	}
}

func comparisons() []*Overload {
	var out []*Overload
	add := func(a, b types.Kind, mk func(op vec.CmpOp) Kernel, ops ...string) {
		for _, o := range cmpOps {
			if len(ops) > 0 && !contains(ops, o.name) {
				continue
			}
			out = append(out, &Overload{Name: o.name, Args: []types.Type{types.Of(a), types.Of(b)}, Ret: tBool, Strict: true,
				Kernel: mk(o.op), Doc: "Whether the left value is " + o.doc + docThan(o.name) + " the right one."})
		}
	}
	str := func(op vec.CmpOp) Kernel { return cmpStrings(op, false) }
	add(types.Bool, types.Bool, cmpBools)
	add(types.Int2, types.Int2, cmpFixed[int16])
	add(types.Int4, types.Int4, cmpFixed[int32])
	add(types.Int8, types.Int8, cmpFixed[int64])
	ints := []types.Kind{types.Int2, types.Int4, types.Int8}
	for _, a := range ints {
		for _, b := range ints {
			if a != b {
				add(a, b, cmpInts)
			}
		}
	}
	add(types.Float4, types.Float4, cmpFloatMix)
	add(types.Float8, types.Float8, cmpFloatMix)
	add(types.Float4, types.Float8, cmpFloatMix)
	add(types.Float8, types.Float4, cmpFloatMix)
	add(types.Numeric, types.Numeric, cmpDecs)
	for i := len(out) - len(cmpOps); i < len(out); i++ {
		out[i].ExactArgs = exactNumerics
	}
	add(types.Text, types.Text, str)
	add(types.BpChar, types.BpChar, func(op vec.CmpOp) Kernel { return cmpStrings(op, true) })
	add(types.Name, types.Name, str)
	add(types.Name, types.Text, str)
	add(types.Text, types.Name, str)
	add(types.Char, types.Char, str)
	add(types.Bytea, types.Bytea, str)
	add(types.Date, types.Date, cmpFixed[int32])
	add(types.Time, types.Time, cmpFixed[int64])
	add(types.TimeTZ, types.TimeTZ, cmpAny)
	add(types.Timestamp, types.Timestamp, cmpTimestamps)
	add(types.TimestampTZ, types.TimestampTZ, cmpTimestamps)
	same := func(a int64) int64 { return a }
	cross := func(l, r types.Kind, fl, fr func(c *Call, v int64) int64) {
		add(l, r, func(op vec.CmpOp) Kernel {
			return cmpVia[int64, int64](op, func(c *Call, a, b int64) int { return cmp64(fl(c, a), fr(c, b)) })
		})
		add(r, l, func(op vec.CmpOp) Kernel {
			return cmpVia[int64, int64](op, func(c *Call, a, b int64) int { return cmp64(fr(c, a), fl(c, b)) })
		})
	}
	plain := func(_ *Call, v int64) int64 { return same(v) }
	dateTS := func(_ *Call, v int64) int64 { return dateTimestamp(v) }
	dateTZ := func(c *Call, v int64) int64 { return localToUTC(c, dateTimestamp(v)) }
	cross(types.Date, types.Timestamp, dateTS, plain)
	cross(types.Date, types.TimestampTZ, dateTZ, plain)
	cross(types.Timestamp, types.TimestampTZ, localToUTC, plain)
	for _, o := range out {
		if len(o.Args) == 2 && o.Args[0].Kind != o.Args[1].Kind && (o.Args[0].Kind == types.TimestampTZ || o.Args[1].Kind == types.TimestampTZ) {
			o.Volatility = Stable
		}
	}
	add(types.Interval, types.Interval, func(op vec.CmpOp) Kernel {
		return cmpVia[pgtext.Interval, pgtext.Interval](op, func(_ *Call, a, b pgtext.Interval) int { return CompareIntervals(a, b) })
	})
	add(types.UUID, types.UUID, func(op vec.CmpOp) Kernel {
		return cmpVia[[]byte, []byte](op, func(_ *Call, a, b []byte) int { return bytes.Compare(a, b) })
	})
	add(types.JSONB, types.JSONB, func(op vec.CmpOp) Kernel {
		return cmpVia[string, string](op, func(_ *Call, a, b string) int { return compareTopJSONB(pgtext.JSONRaw(a), pgtext.JSONRaw(b)) })
	})
	add(types.OID, types.OID, cmpFixed[int64])
	add(types.XID, types.XID, cmpFixed[int64], "=", "<>")
	add(types.XID, types.Int4, cmpInts, "=", "<>")
	add(types.OIDVector, types.OIDVector, cmpAny)
	add(types.AnyArray, types.AnyArray, cmpAny)
	add(types.Record, types.Record, cmpAny)
	return out
}

func docThan(op string) string {
	if op == "=" || op == "<=" || op == ">=" {
		return " to"
	}
	if op == "<>" {
		return " to"
	}
	return ""
}

func contains(l []string, s string) bool {
	for _, x := range l {
		if x == s {
			return true
		}
	}
	return false
}
