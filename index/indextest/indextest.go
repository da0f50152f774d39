// Package indextest makes random columns and predicates for the tests of file
// indexes, and says which rows match.
package indextest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Types are those that some kind of index supports.
var Types = []types.Type{
	types.Of(types.Bool), types.Of(types.TinyInt), types.Of(types.Int2), types.Of(types.Int4), types.Of(types.Int8),
	types.Of(types.Float4), types.Of(types.Float8), types.Of(types.Date),
	{Kind: types.Time, Prec: 0}, {Kind: types.Time, Prec: 3}, {Kind: types.Time, Prec: 6},
	{Kind: types.Timestamp, Prec: 0}, {Kind: types.Timestamp, Prec: 3}, {Kind: types.Timestamp, Prec: 6}, {Kind: types.Timestamp, Prec: 9},
	{Kind: types.TimestampTZ, Prec: 3}, {Kind: types.TimestampTZ, Prec: 6}, {Kind: types.TimestampTZ, Prec: 9},
	types.Of(types.Text), {Kind: types.Varchar, Len: 20}, {Kind: types.BpChar, Len: 6},
	types.Of(types.Bytea), {Kind: types.Bytea, Lake: types.LakeBinary, Len: 4},
	{Kind: types.Numeric, Prec: 9, Scale: 2}, {Kind: types.Numeric, Prec: 18, Scale: 4}, {Kind: types.Numeric, Prec: 30, Scale: 3},
}

// Rand is a source seeded from PAIMON_SQL_SEED, or from the time; it prints the
// seed.
func Rand(t testing.TB) *rand.Rand {
	return rand.New(rand.NewPCG(random.Seed(t), 6))
}

// Value makes a value that is not NULL, of few or of many distinct ones, those at
// the ends of the type among them.
func Value(r *rand.Rand, t types.Type, few bool) types.Datum {
	small := r.Int64N(12) - 4
	ints := func(bits int) int64 {
		lo, hi := int64(math.MinInt64)>>(64-bits), int64(math.MaxInt64)>>(64-bits)
		switch {
		case few:
			return small
		case r.IntN(8) == 0:
			return []int64{lo, lo + 1, hi - 1, hi}[r.IntN(4)]
		case r.IntN(2) == 0:
			return r.Int64N(1000) - 300
		}
		return r.Int64() >> (64 - bits) * (1 - 2*r.Int64N(2))
	}
	switch t.Kind {
	case types.Bool:
		return r.IntN(2) == 0
	case types.TinyInt:
		return max(-128, min(127, ints(8)))
	case types.Int2:
		return ints(16)
	case types.Int4, types.Date:
		return ints(32)
	case types.Int8:
		return ints(64)
	case types.Float4, types.Float8:
		special := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1, -1, 0.5}
		f := special[r.IntN(len(special))]
		if !few && r.IntN(3) > 0 {
			f = (r.Float64() - 0.4) * math.Pow(10, float64(r.IntN(20)))
		}
		if t.Kind == types.Float4 {
			return float64(float32(f))
		}
		return f
	case types.Time:
		us := (small+4)*997_000 + int64(r.IntN(2))
		if !few {
			us = r.Int64N(86_400_000_000)
		}
		if t.Prec <= 3 {
			us = us / 1000 * 1000
		}
		return us
	case types.Timestamp, types.TimestampTZ:
		v := small*1_000_000 + r.Int64N(3)*500 // about 1970, both sides
		if !few {
			v = r.Int64N(4_000_000_000_000_000) - 1_000_000_000_000_000
		}
		if t.Prec <= 3 {
			v = index.FloorDiv(v, 1000) * 1000
		}
		return v
	case types.Numeric:
		return numeric.From128(decimal128.FromI64(ints(min(63, int(float64(t.Prec)*3.32)))), int32(t.Scale))
	case types.Bytea:
		return []byte(text(r, few))
	case types.BpChar:
		s := strings.TrimRight(text(r, few), " ")
		s = s[:min(len(s), int(t.Len))]
		for !isUTF8(s) {
			s = s[:len(s)-1]
		}
		pad := int(t.Len) - len([]rune(s))
		switch r.IntN(3) {
		case 0:
			pad = 0
		case 1:
			pad = r.IntN(pad + 1)
		}
		return s + strings.Repeat(" ", pad)
	}
	s := text(r, few)
	for t.Len > 0 && len([]rune(s)) > int(t.Len) {
		s = s[:len(s)-1]
		for !isUTF8(s) {
			s = s[:len(s)-1]
		}
	}
	return s
}

func isUTF8(s string) bool { return strings.ToValidUTF8(s, "") == s }

func text(r *rand.Rand, few bool) string {
	if few {
		return []string{"", "a", "ab", "b", "ab ", "é", "ab\x00", "\U0001F600", "zz", "abc"}[r.IntN(10)]
	}
	return fmt.Sprintf("%s%d", []string{"", "ab", "k-", "é"}[r.IntN(4)], r.IntN(5000))
}

// Column makes an array of rows values, NULL among them, and the same as data:
// nil is NULL. Text may come as a dictionary.
func Column(r *rand.Rand, t types.Type, rows int) (arrow.Array, []types.Datum) {
	few, nulls := r.IntN(2) == 0, []float64{0, 0.02, 0.3, 1}[r.IntN(8)%4]
	if r.IntN(4) > 0 && nulls == 1 {
		nulls = 0.1
	}
	data := make([]types.Datum, rows)
	var run types.Datum
	for i := range data {
		if r.Float64() < nulls {
			continue
		}
		if run == nil || r.IntN(3) > 0 {
			run = Value(r, t, few)
		}
		data[i] = run
	}
	return Array(t, data, r.IntN(2) == 0), data
}

// Array makes an array of t.Arrow(), of text a dictionary if asked; it begins at
// an offset in its memory.
func Array(t types.Type, data []types.Datum, dictionary bool) arrow.Array {
	if _, isText := t.Arrow().(*arrow.StringType); isText && dictionary {
		b := array.NewDictionaryBuilder(memory.DefaultAllocator, types.ArrowTextDict).(*array.BinaryDictionaryBuilder)
		_ = b.AppendString("not in any row")
		for _, d := range data {
			if d == nil {
				b.AppendNull()
			} else {
				_ = b.AppendString(d.(string))
			}
		}
		return array.NewSlice(b.NewArray(), 1, int64(len(data)+1))
	}
	b := array.NewBuilder(memory.DefaultAllocator, t.Arrow())
	b.AppendNull()
	for _, d := range data {
		if d == nil {
			b.AppendNull()
			continue
		}
		switch b := b.(type) {
		case *array.BooleanBuilder:
			b.Append(d.(bool))
		case *array.Int16Builder:
			b.Append(int16(d.(int64)))
		case *array.Int32Builder:
			b.Append(int32(d.(int64)))
		case *array.Int64Builder:
			b.Append(d.(int64))
		case *array.Float32Builder:
			b.Append(float32(d.(float64)))
		case *array.Float64Builder:
			b.Append(d.(float64))
		case *array.Date32Builder:
			b.Append(arrow.Date32(d.(int64)))
		case *array.Time64Builder:
			b.Append(arrow.Time64(d.(int64)))
		case *array.TimestampBuilder:
			b.Append(arrow.Timestamp(d.(int64)))
		case *array.StringBuilder:
			b.Append(d.(string))
		case *array.BinaryBuilder:
			b.Append(d.([]byte))
		case *array.Decimal128Builder:
			n, _ := d.(*numeric.Dec).To128(int32(t.Scale))
			b.Append(n)
		default:
			panic(fmt.Sprintf("no builder for %s", t.Arrow()))
		}
	}
	return array.NewSlice(b.NewArray(), 1, int64(len(data)+1))
}

// Leaf makes a predicate on a column, with constants of the column and others.
func Leaf(r *rand.Rand, t types.Type, data []types.Datum) *predicate.Leaf {
	l := &predicate.Leaf{Op: predicate.Op(r.IntN(12)), Type: t, Name: "c"}
	arg := func() types.Datum {
		if len(data) > 0 && r.IntN(3) > 0 {
			if d := data[r.IntN(len(data))]; d != nil {
				return d
			}
		}
		return Value(r, t, r.IntN(2) == 0)
	}
	n := 1
	switch l.Op {
	case predicate.IsNull, predicate.IsNotNull:
		n = 0
	case predicate.In, predicate.NotIn:
		n = r.IntN(5)
	case predicate.Between:
		n = 2
	case predicate.StartsWith:
		s, ok := arg().(string)
		if !ok || t.Kind == types.BpChar {
			l.Op = predicate.Eq
			break
		}
		rs := []rune(s)
		l.Args = []types.Datum{string(rs[:r.IntN(len(rs)+1)])}
		return l
	}
	for range n {
		l.Args = append(l.Args, arg())
	}
	if l.Op == predicate.Between && r.IntN(4) > 0 {
		slices.SortFunc(l.Args, func(a, b types.Datum) int { c, _ := predicate.Compare(t, a, b); return c })
	}
	return l
}

// Matches says whether a value, NULL too, makes a leaf true.
func Matches(t testing.TB, l *predicate.Leaf, d types.Datum) bool {
	switch {
	case l.Op == predicate.IsNull:
		return d == nil
	case d == nil:
		return false
	}
	m, known := predicate.Matches(l, d)
	if !known {
		t.Fatalf("no rule for operation %d on %s and %v", l.Op, l.Type.PlainName(), d)
	}
	return m
}

// Check fails when a result is wrong about a leaf over data.
func Check(t testing.TB, l *predicate.Leaf, data []types.Datum, r index.Result) {
	t.Helper()
	for i, d := range data {
		m := Matches(t, l, d)
		in := r.Rows != nil && r.Rows.Contains(uint32(i))
		switch {
		case m && r.Verdict == index.None, !m && r.Verdict == index.All,
			r.Rows != nil && m && !in, r.Rows != nil && r.Exact && !m && in:
			t.Fatalf("type %s prec %d, operation %d of %v: row %d, %v, matches: %t; but verdict %s, rows %v, exact %t",
				l.Type.PlainName(), l.Type.Prec, l.Op, l.Args, i, d, m, r.Verdict, r.Rows, r.Exact)
		}
	}
	if r.Rows != nil && !r.Rows.IsEmpty() && int(r.Rows.Maximum()) >= len(data) {
		t.Fatalf("row %d of %d", r.Rows.Maximum(), len(data))
	}
}

// Reader is a source that is not in memory, and counts what is read of it.
type Reader struct {
	Data  []byte
	Reads int
	Bytes int64
}

// Size is the number of bytes.
func (s *Reader) Size() int64 { return int64(len(s.Data)) }

// ReadAt is io.ReaderAt's.
func (s *Reader) ReadAt(p []byte, off int64) (int, error) {
	s.Reads++
	s.Bytes += int64(len(p))
	return index.BytesSource(s.Data).ReadAt(p, off)
}

// Fuzz runs random columns of every type that a kind supports against a scan.
func Fuzz(t *testing.T, k index.Kind, rounds int, options func(r *rand.Rand) index.Options) {
	r := Rand(t)
	known, exact := 0, 0
	for range rounds {
		for _, typ := range Types {
			if !k.Supports(typ) {
				continue
			}
			arr, data := Column(r, typ, r.IntN(400))
			b, err := k.Create(typ, options(r))
			if err != nil {
				t.Fatal(err)
			}
			// In pieces, as writers give them.
			for from := 0; from < len(data); {
				to := min(len(data), from+1+r.IntN(300))
				if err := b.Append(array.NewSlice(arr, int64(from), int64(to))); err != nil {
					t.Fatal(err)
				}
				from = to
			}
			raw, err := b.Finish()
			if err != nil {
				t.Fatal(err)
			}
			if raw == nil {
				if !slices.ContainsFunc(data, func(d types.Datum) bool { return d != nil }) {
					continue
				}
				t.Fatalf("empty index of %v", data)
			}
			var src index.Source = index.BytesSource(raw)
			if r.IntN(2) == 0 {
				src = &Reader{Data: raw}
			}
			x, err := k.Open(src, typ)
			if err != nil {
				t.Fatalf("%s: %v", typ.PlainName(), err)
			}
			for range 25 {
				l := Leaf(r, typ, data)
				res, err := x.Test(l)
				if err != nil {
					t.Fatalf("%s: %v", typ.PlainName(), err)
				}
				Check(t, l, data, res)
				if res.Verdict != index.Some || res.Rows != nil {
					known++
				}
				if res.Exact {
					exact++
				}
			}
		}
	}
	t.Logf("%d answers, %d exact", known, exact)
	if known == 0 {
		t.Fatal("the index never had an answer")
	}
}
