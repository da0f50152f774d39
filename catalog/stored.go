package catalog

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// ValueKind says why a value cannot be stored.
type ValueKind uint8

// The kinds of a ValueError, with the SQLSTATE that each one means.
const (
	OutOfRange     ValueKind = iota // 22003
	TooLong                         // 22001
	TimeOutOfRange                  // 22008
	NullInside                      // 22004: NULL in an array, map or row that takes none
	WrongLength                     // 2202E: a vector with too many or too few elements
)

// ValueError says that a row has a value which its column's Paimon type cannot hold.
type ValueError struct {
	Kind   ValueKind
	Column string
	Msg    string
}

func (e *ValueError) Error() string { return e.Msg }

func noValue(k ValueKind, format string, args ...any) *ValueError {
	return &ValueError{Kind: k, Msg: fmt.Sprintf(format, args...)}
}

// ToStored turns rows of SQL values, one column per entry of Columns(), into what
// table.Writer takes: the types of TableSchema. Columns that are stored as they are
// pass without a copy. A value that does not fit is a *ValueError; nothing is
// rounded beyond what assignment to a column's type does in PostgreSQL. Dead rows
// are not looked at: when a column must be rewritten the result holds live rows
// only.
func (r *TableRelation) ToStored(b *vec.Batch) (*vec.Batch, error) {
	if len(b.Cols) != len(r.cols) {
		return nil, fmt.Errorf("%d columns for a table of %d", len(b.Cols), len(r.cols))
	}
	out := &vec.Batch{Schema: r.sch.Fields, Cols: make([]arrow.Array, len(b.Cols)), N: b.N, Sel: b.Sel}
	work := false
	for i, a := range b.Cols {
		if !r.asStored(i, a) {
			work = true
			break
		}
	}
	if !work {
		copy(out.Cols, b.Cols)
		return out, nil
	}
	in := b.Cols
	if b.Sel != nil {
		in = compact(b)
		out.N, out.Sel = len(b.Sel), nil
	}
	for i, a := range in {
		if r.asStored(i, a) {
			out.Cols[i] = a
			continue
		}
		from := r.cols[i].Type
		if i < len(b.Schema) {
			from = b.Schema[i].Type
		}
		x, err := r.storeColumn(i, from, a)
		if v, ok := err.(*ValueError); ok { //nolint:errorlint // made here
			v.Column = r.cols[i].Name
		}
		if err != nil {
			return nil, err
		}
		out.Cols[i] = x
	}
	return out, nil
}

// FromStored turns rows in the form that ToStored gives into rows of SQL values.
func (r *TableRelation) FromStored(b *vec.Batch) (*vec.Batch, error) {
	cols := make([]int, len(r.cols))
	for i := range cols {
		cols[i] = i
	}
	return r.apply(b, cols)
}

// compact gathers the live rows of a batch.
func compact(b *vec.Batch) []arrow.Array {
	src, row := make([]uint16, len(b.Sel)), make([]uint32, len(b.Sel))
	for k, i := range b.Sel {
		row[k] = uint32(i)
	}
	out := make([]arrow.Array, len(b.Cols))
	for i, a := range b.Cols {
		out[i] = vec.Gather(a.DataType(), []arrow.Array{a}, src, row)
	}
	return out
}

// asStored reports whether a column needs no look at its values.
func (r *TableRelation) asStored(i int, a arrow.Array) bool {
	t := r.sch.Fields[i].Type
	if c := r.convert[i]; c != nil && c.cast != nil && c.to.Kind != types.Numeric {
		return false
	}
	switch t.Kind {
	case types.Bool, types.Int2, types.Int4, types.Int8, types.Float4, types.Float8, types.Date:
		return a.DataType().ID() == t.Arrow().ID()
	case types.Text:
		return a.DataType().ID() == arrow.STRING || vec.IsDict(a)
	case types.Bytea:
		return a.DataType().ID() == arrow.BINARY && (t.Lake == types.LakeDefault || t.Lake == types.LakeBlob)
	}
	return false
}

func (r *TableRelation) storeColumn(i int, from types.Type, a arrow.Array) (arrow.Array, error) {
	to := r.sch.Fields[i].Type
	if a.NullN() == a.Len() {
		return vec.MakeNull(to.Arrow(), a.Len()), nil
	}
	if c := r.convert[i]; c != nil && c.cast != nil && c.to.Kind != types.Numeric {
		return asText(c.to, a), nil
	}
	return store(from, to, a)
}

// asText writes the text form that parsed reads.
func asText(t types.Type, a arrow.Array) arrow.Array {
	if a.DataType().ID() == arrow.STRING || vec.IsDict(a) {
		return a
	}
	n := a.Len()
	off, valid := make([]int32, n+1), vec.ValidCopy(a)
	data := make([]byte, 0, n*36)
	if u, ok := a.(*array.FixedSizeBinary); ok && t.Kind == types.UUID {
		raw := u.Data().Buffers()[1].Bytes()[u.Data().Offset()*16:]
		for i := range n {
			if vec.BitAt(valid, i) {
				data = pgtext.AppendUUID(data, raw[i*16:i*16+16])
			}
			off[i+1] = int32(len(data))
		}
		return vec.MakeBytes(arrow.BinaryTypes.String, off, data, valid)
	}
	text := pgtext.Appender(t, a, nil)
	for i := range n {
		if vec.BitAt(valid, i) {
			data = text(data, i)
		}
		off[i+1] = int32(len(data))
	}
	return vec.MakeBytes(arrow.BinaryTypes.String, off, data, valid)
}

// store turns an array of SQL type from into one of the stored type to, which has
// the same kind but for TinyInt; a itself when nothing changes.
func store(from, to types.Type, a arrow.Array) (arrow.Array, error) {
	bad := func() error {
		return fmt.Errorf("an array of %s is no column of type %s", a.DataType(), types.PaimonString(to))
	}
	id := a.DataType().ID()
	if id == arrow.NULL {
		return vec.MakeNull(to.Arrow(), a.Len()), nil
	}
	switch to.Kind {
	case types.TinyInt:
		if id != arrow.INT16 {
			return nil, bad()
		}
		return a, checkTiny(a)
	case types.Numeric:
		if id != arrow.DECIMAL128 && id != arrow.BINARY {
			return nil, bad()
		}
		return storeNumeric(to, a)
	case types.Time:
		if id != arrow.TIME64 {
			return nil, bad()
		}
		return storeTime(to, a)
	case types.Timestamp, types.TimestampTZ:
		if id != arrow.TIMESTAMP {
			return nil, bad()
		}
		return storeTimestamp(from, to, a)
	case types.Text:
		if id != arrow.STRING && !vec.IsDict(a) {
			return nil, bad()
		}
		return a, nil
	case types.Varchar, types.BpChar:
		if id != arrow.STRING && !vec.IsDict(a) {
			return nil, bad()
		}
		return storeText(to, a)
	case types.Bytea:
		if id != arrow.BINARY {
			return nil, bad()
		}
		return a, checkBytes(to, a)
	case types.Array:
		l, ok := a.(*array.List)
		if !ok {
			return nil, bad()
		}
		return storeList(from, to, l)
	case types.Map:
		m, ok := a.(*array.Map)
		if !ok {
			return nil, bad()
		}
		return storeMap(from, to, m)
	case types.Row, types.Variant:
		s, ok := a.(*array.Struct)
		if !ok {
			return nil, bad()
		}
		if to.Kind == types.Variant {
			return a, nil
		}
		return storeRow(from, to, s)
	}
	if id != to.Arrow().ID() {
		return nil, bad()
	}
	return a, nil
}

func checkTiny(a arrow.Array) error {
	v := vec.ViewOf[int16](a)
	for i, x := range v.V {
		if x != int16(int8(x)) && !v.IsNull(i) {
			return noValue(OutOfRange, "value %d is out of range for type tinyint", x)
		}
	}
	return nil
}

func checkBytes(t types.Type, a arrow.Array) error {
	if t.Lake != types.LakeBinary && t.Lake != types.LakeVarbinary {
		return nil
	}
	s := vec.ViewStr(a)
	for i := range a.Len() {
		if !s.IsNull(i) && len(s.At(i)) > int(t.Len) {
			return noValue(TooLong, "value too long for type %s", types.PaimonString(t))
		}
	}
	return nil
}

// storeNumeric brings decimals to one precision and scale.
func storeNumeric(to types.Type, a arrow.Array) (arrow.Array, error) {
	dt := to.Arrow().(*arrow.Decimal128Type)
	limit := decimal128.GetScaleMultiplier(int(dt.Precision))
	overflow := func() error {
		return noValue(OutOfRange, "numeric field overflow: a field with precision %d, scale %d must round to an absolute value less than 10^%d", dt.Precision, dt.Scale, dt.Precision-dt.Scale)
	}
	if have, ok := a.DataType().(*arrow.Decimal128Type); ok {
		v, valid, off := vec.ViewDec(a)
		if have.Scale == dt.Scale {
			if have.Precision > dt.Precision {
				for i, x := range v {
					if !within(x, limit) && vec.BitAt(valid, off+i) {
						return nil, overflow()
					}
				}
			}
			if have.Precision == dt.Precision {
				return a, nil
			}
			return relabel(dt, a), nil
		}
		out := make([]decimal128.Num, len(v))
		up := dt.Scale - have.Scale
		for i, x := range v {
			if !vec.BitAt(valid, off+i) {
				continue
			}
			ok := true
			if h := x.HighBits(); up > 0 && up < int32(len(tens)) && h == int64(x.LowBits())>>63 {
				out[i] = times(int64(x.LowBits()), tens[up])
			} else {
				out[i], ok = rescale(x, have.Scale, dt.Scale)
			}
			if !ok || !within(out[i], limit) {
				return nil, overflow()
			}
		}
		return vec.MakeDec128(dt, out, vec.CopyBits(valid, off, len(v))), nil
	}
	s := vec.ViewStr(a)
	out := make([]decimal128.Num, a.Len())
	for i := range out {
		if s.IsNull(i) {
			continue
		}
		if x, ok := small(s.At(i), dt.Scale); ok && within(x, limit) {
			out[i] = x
			continue
		}
		d := numeric.Decode(s.At(i))
		if d.Form != numeric.Finite {
			return nil, noValue(OutOfRange, "numeric field overflow: a field with precision %d, scale %d cannot hold %s", dt.Precision, dt.Scale, d)
		}
		if d.Scale > dt.Scale {
			d = d.Round(dt.Scale)
		}
		var ok bool
		if out[i], ok = d.To128(dt.Scale); !ok || !within(out[i], limit) {
			return nil, overflow()
		}
	}
	return vec.MakeDec128(dt, out, vec.ValidCopy(a)), nil
}

// small decodes the binary form of a number of at most 64 bits that keeps its digits
// at a scale.
func small(b []byte, scale int32) (decimal128.Num, bool) {
	if len(b) < 5 || len(b) > 13 || numeric.Form(b[0]) != numeric.Finite {
		return decimal128.Num{}, false
	}
	up := scale - int32(binary.LittleEndian.Uint32(b[1:]))
	if up < 0 || up >= int32(len(tens)) {
		return decimal128.Num{}, false
	}
	v := int64(0)
	for i, c := range b[5:] {
		if i == 0 {
			v = int64(int8(c))
		} else {
			v = v<<8 | int64(c)
		}
	}
	return times(v, tens[up]), true
}

// tens are the powers of ten that an int64 holds.
var tens = func() (out [19]uint64) {
	out[0] = 1
	for i := 1; i < len(out); i++ {
		out[i] = out[i-1] * 10
	}
	return out
}()

// times multiplies without overflow: 63 by 60 bits fit.
func times(x int64, m uint64) decimal128.Num {
	if x < 0 {
		hi, lo := bits.Mul64(uint64(-x), m)
		return decimal128.New(int64(hi), lo).Negate()
	}
	hi, lo := bits.Mul64(uint64(x), m)
	return decimal128.New(int64(hi), lo)
}

// within reports -limit < x < limit.
func within(x, limit decimal128.Num) bool { return x.Less(limit) && limit.Negate().Less(x) }

// rescale rounds half away from zero where digits are lost; ok is false when x has
// no room.
func rescale(x decimal128.Num, from, to int32) (decimal128.Num, bool) {
	d := numeric.From128(x, from)
	if to < from {
		d = d.Round(to)
	}
	return d.To128(to)
}

// relabel gives an array another type with the same layout.
func relabel(dt arrow.DataType, a arrow.Array) arrow.Array {
	d := a.Data()
	return array.MakeFromData(array.NewData(dt, d.Len(), d.Buffers(), d.Children(), d.NullN(), d.Offset()))
}

const dayMicros = 86_400_000_000

// storeTime rounds to the milliseconds, or the fewer digits, that Paimon keeps.
func storeTime(to types.Type, a arrow.Array) (arrow.Array, error) {
	unit := int64(1000)
	for p := to.Prec; p < 3; p++ {
		unit *= 10
	}
	v := vec.ViewOf[int64](a)
	fine := true
	for _, x := range v.V {
		fine = fine && x%unit == 0 && uint64(x) < dayMicros
	}
	if fine {
		return a, nil
	}
	out := make([]int64, len(v.V))
	for i, x := range v.V {
		if v.IsNull(i) {
			continue
		}
		if x = (x + unit/2) / unit * unit; uint64(x) >= dayMicros {
			return nil, noValue(TimeOutOfRange, "time 24:00:00 cannot be stored: Paimon's days end before it")
		}
		out[i] = x
	}
	return vec.Make(types.ArrowTimeUS, out, vec.ValidCopy(a)), nil
}

// storeTimestamp changes unit and rounds to the digits of the column.
func storeTimestamp(from, to types.Type, a arrow.Array) (arrow.Array, error) {
	nanos := a.DataType().(*arrow.TimestampType).Unit == arrow.Nanosecond
	v := vec.ViewOf[int64](a)
	out := v.V
	mutable := false
	own := func() {
		if !mutable {
			out, mutable = append([]int64(nil), out...), true
		}
	}
	digits := 6
	switch {
	case nanos && !to.IsNanos():
		own()
		for i, x := range out {
			if !infinite(x) {
				out[i] = roundTo(x, 1000) / 1000
			}
		}
	case !nanos && to.IsNanos():
		own()
		digits = 9
		for i, x := range out {
			if v.IsNull(i) {
				continue
			}
			if x > math.MaxInt64/1000 || x < math.MinInt64/1000 {
				return nil, noValue(TimeOutOfRange, "timestamp out of range for type %s", types.PaimonString(to))
			}
			out[i] = x * 1000
		}
	case to.IsNanos():
		digits = 9
	}
	unit := int64(1)
	for range digits - int(to.Prec) {
		unit *= 10
	}
	// Micro- and nanoseconds at the ends of int64 are infinity; milliseconds in a
	// file would read back as something else.
	keep := to.Prec > 3 && !to.IsNanos()
	for i, x := range out {
		if unit == 1 && keep {
			break
		}
		if infinite(x) {
			if !keep && !v.IsNull(i) {
				return nil, noValue(TimeOutOfRange, "infinity cannot be stored in a column of type %s", types.PaimonString(to))
			}
			continue
		}
		// A constant divisor is a multiplication.
		rest := int64(0)
		if unit == 1000 {
			rest = x % 1000
		} else if unit > 1 {
			rest = x % unit
		}
		if rest != 0 {
			own()
			out[i] = roundTo(x, unit)
		}
	}
	if !mutable {
		return a, nil
	}
	return vec.Make(to.Arrow(), out, vec.ValidCopy(a)), nil
}

func infinite(x int64) bool { return x == math.MaxInt64 || x == math.MinInt64 }

// roundTo rounds half away from zero, as PostgreSQL does for timestamp(p).
func roundTo(x, unit int64) int64 {
	r := x % unit
	switch {
	case r >= 0 && r*2 >= unit && x <= math.MaxInt64-unit:
		return x - r + unit
	case r < 0 && r*-2 >= unit && x >= math.MinInt64+unit:
		return x - r - unit
	}
	return x - r
}

// storeText checks the length of varchar(n) and pads char(n). Blanks that are too
// many are cut, as assignment does.
func storeText(to types.Type, a arrow.Array) (arrow.Array, error) {
	if d, ok := a.(*array.Dictionary); ok {
		if idx, dict, ok := vec.DictView(a); ok {
			x, err := storeText(to, dict)
			switch {
			case err == nil && x == dict:
				return a, nil
			case err == nil:
				return vec.MakeDict(append([]int32(nil), idx...), vec.ValidCopy(d), x), nil
			}
		}
		// An entry that no row uses may be what does not fit.
		return storeText(to, vec.Decode(a))
	}
	n := int(to.Len)
	if n <= 0 {
		return a, nil
	}
	s := vec.ViewStr(a)
	same := true
	if to.Kind == types.Varchar {
		longest := int32(0)
		for i := 1; i < len(s.Offs); i++ {
			longest = max(longest, s.Offs[i]-s.Offs[i-1])
		}
		if int(longest) <= n {
			return a, nil
		}
	}
	for i := range a.Len() {
		if s.IsNull(i) {
			continue
		}
		b := s.At(i)
		if to.Kind == types.BpChar {
			same = len(b) == n && ascii(b) || utf8.RuneCount(b) == n
		} else {
			same = len(b) <= n || utf8.RuneCount(b) <= n
		}
		if !same {
			break
		}
	}
	if same {
		return a, nil
	}
	off, valid := make([]int32, a.Len()+1), vec.ValidCopy(a)
	var data []byte
	if k := len(s.Offs); k > 0 {
		size := int(s.Offs[k-1] - s.Offs[0])
		if to.Kind == types.BpChar {
			size += min(n, 256) * a.Len()
		}
		data = make([]byte, 0, size)
	}
	for i := range a.Len() {
		if !s.IsNull(i) {
			b := s.At(i)
			chars := len(b)
			if chars > n || to.Kind == types.BpChar && !ascii(b) {
				chars = utf8.RuneCount(b)
			}
			for ; chars > n; chars-- {
				if b[len(b)-1] != ' ' {
					return nil, noValue(TooLong, "value too long for type %s", to)
				}
				b = b[:len(b)-1]
			}
			data = append(data, b...)
			if to.Kind == types.BpChar {
				for chars < n {
					k := min(n-chars, len(blanks))
					data = append(data, blanks[:k]...)
					chars += k
				}
			}
		}
		if len(data) > math.MaxInt32 {
			return nil, noValue(OutOfRange, "column of type %s does not fit one batch", to)
		}
		off[i+1] = int32(len(data))
	}
	return vec.MakeBytes(arrow.BinaryTypes.String, off, data, valid), nil
}

const blanks = "                                "

func ascii(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// storeChild converts what lies inside a list, map or row.
func storeChild(from *types.Type, to types.Type, a arrow.Array) (arrow.Array, error) {
	f := to
	if from != nil {
		f = *from
	}
	return store(f, to, vec.Decode(a))
}

// offsets returns the offsets of a list's rows, one more than there are.
func offsets(l interface {
	Offsets() []int32
	Data() arrow.ArrayData
},
) []int32 {
	d := l.Data()
	if d.Len() == 0 {
		return nil
	}
	return l.Offsets()[d.Offset() : d.Offset()+d.Len()+1]
}

// members returns the part of a list's values that its rows name, and their
// offsets in it.
func members(values arrow.Array, off []int32) (arrow.Array, []int32) {
	if len(off) == 0 {
		return array.NewSlice(values, 0, 0), []int32{0}
	}
	first, last := off[0], off[len(off)-1]
	if first == 0 && int(last) == values.Len() {
		return values, off
	}
	moved := make([]int32, len(off))
	for i, o := range off {
		moved[i] = o - first
	}
	return array.NewSlice(values, int64(first), int64(last)), moved
}

// noNulls reports a NULL among the values of rows that are not NULL themselves.
func noNulls(values, rows arrow.Array, off []int32, what string) error {
	if values.NullN() == 0 {
		return nil
	}
	for i := range rows.Len() {
		if rows.IsNull(i) {
			continue
		}
		for j := off[i]; j < off[i+1]; j++ {
			if values.IsNull(int(j)) {
				return noValue(NullInside, "%s must not be null", what)
			}
		}
	}
	return nil
}

func storeList(from, to types.Type, l *array.List) (arrow.Array, error) {
	values, off := members(l.ListValues(), offsets(l))
	if to.Fixed > 0 {
		for i := range l.Len() {
			if n := off[i+1] - off[i]; n != to.Fixed && !l.IsNull(i) {
				return nil, noValue(WrongLength, "expected %d elements, not %d", to.Fixed, n)
			}
		}
	}
	if to.Elem.NotNull {
		if err := noNulls(values, l, off, "elements of this array"); err != nil {
			return nil, err
		}
	}
	x, err := storeChild(from.Elem, *to.Elem, values)
	if err != nil {
		return nil, err
	}
	if x == values {
		return l, nil
	}
	return vec.MakeList(to.Arrow(), append([]int32(nil), off...), x, vec.ValidCopy(l)), nil
}

func storeMap(from, to types.Type, m *array.Map) (arrow.Array, error) {
	off := offsets(m)
	keys, moved := members(m.Keys(), off)
	items, _ := members(m.Items(), off)
	if err := noNulls(keys, m, moved, "keys of a map"); err != nil {
		return nil, err
	}
	if to.Elem.NotNull {
		if err := noNulls(items, m, moved, "values of this map"); err != nil {
			return nil, err
		}
	}
	k, err := storeChild(from.Key, *to.Key, keys)
	if err != nil {
		return nil, err
	}
	v, err := storeChild(from.Elem, *to.Elem, items)
	if err != nil {
		return nil, err
	}
	if k == keys && v == items && arrow.TypeEqual(m.DataType(), to.Arrow()) {
		return m, nil
	}
	dt := to.Arrow().(*arrow.MapType)
	return vec.MakeList(dt, append([]int32(nil), moved...), vec.MakeStruct(dt.Elem(), k.Len(), []arrow.Array{k, v}, nil), vec.ValidCopy(m)), nil
}

func storeRow(from, to types.Type, s *array.Struct) (arrow.Array, error) {
	if s.NumField() != len(to.Fields) {
		return nil, fmt.Errorf("a row of %d members is no column of type %s", s.NumField(), types.PaimonString(to))
	}
	same := arrow.TypeEqual(s.DataType(), to.Arrow())
	cols := make([]arrow.Array, len(to.Fields))
	for i, f := range to.Fields {
		c := s.Field(i)
		if f.Type.NotNull && c.NullN() > 0 {
			for j := range s.Len() {
				if c.IsNull(j) && !s.IsNull(j) {
					return nil, noValue(NullInside, "member %q of this row must not be null", f.Name)
				}
			}
		}
		ft := f.Type
		if i < len(from.Fields) {
			ft = from.Fields[i].Type
		}
		var err error
		if cols[i], err = storeChild(&ft, f.Type, c); err != nil {
			return nil, err
		}
		same = same && cols[i] == c
	}
	if same {
		return s, nil
	}
	return vec.MakeStruct(to.Arrow(), s.Len(), cols, vec.ValidCopy(s)), nil
}
