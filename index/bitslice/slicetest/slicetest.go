// Package slicetest holds what the tests of the bit slice indexes share: random
// columns and leaves, a judge that goes by row, and Java's index files.
package slicetest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Type is a type with its spelling in Paimon.
type Type struct {
	types.Type
	Paimon string
}

// Types are all that an index kind of this family may support.
var Types = func() (out []Type) {
	for _, p := range []string{
		"BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "TIME(3)",
		"DECIMAL(4,2)", "DECIMAL(18,0)", "DECIMAL(30,5)",
		"TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)",
		"TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP(6) WITH LOCAL TIME ZONE",
		"CHAR(6)", "VARCHAR(20)", "STRING",
	} {
		t, err := types.ParsePaimonText(p)
		if err != nil {
			panic(err)
		}
		out = append(out, Type{t, p})
	}
	return out
}()

// Value draws a value among about distinct ones.
func Value(r *rand.Rand, t types.Type, distinct int) types.Datum {
	n := r.Int64N(int64(distinct)) - int64(distinct/2)
	switch t.Kind {
	case types.Bool:
		return n&1 == 1
	case types.TinyInt:
		return int64(int8(n))
	case types.Int2:
		return int64(int16(n))
	case types.Date:
		return n
	case types.Int4:
		return int64(int32(n * 1000003))
	case types.Int8:
		if r.IntN(20) == 0 {
			return math.MaxInt64 - n&7
		}
		return n * 1000000000039
	case types.Float4:
		return float64(float32(special(r, n)))
	case types.Float8:
		return special(r, n)
	case types.Numeric:
		d := &numeric.Dec{Scale: int32(t.Scale)}
		if t.Prec == 4 {
			n %= 9999
		} else {
			n *= 1000003
		}
		d.Coef.SetInt64(n)
		return d
	case types.Time:
		return (n & 0xffff) * 1000
	case types.Timestamp, types.TimestampTZ:
		if t.Prec <= 3 {
			return n * 1000
		}
		return n*333 + int64(r.IntN(3))
	}
	s := fmt.Sprintf("%x", n*n)
	if r.IntN(3) == 0 {
		s = strings.Repeat(s, 1+int(n&3))
	}
	switch r.IntN(12) {
	case 0:
		s = ""
	case 1:
		s += "é"
	}
	if t.Kind == types.BpChar {
		s = s[:min(len(s), 3)]
		if !strings.HasPrefix(s, "é") && strings.Contains(s, "\xc3") {
			s = "c"
		}
		s += []string{"", "", " ", "  ", "\t", "!"}[r.IntN(6)]
	}
	if t.Kind == types.Varchar {
		s = s[:min(len(s), 18)]
		s = strings.ToValidUTF8(s, "")
	}
	return s
}

func special(r *rand.Rand, n int64) float64 {
	switch r.IntN(16) {
	case 0:
		return math.Float64frombits(0x7ff8000000000000) // Java's; Go's has another bit
	case 1:
		return math.Copysign(0, -1)
	case 2:
		return 0
	case 3:
		return math.Inf(int(n) | 1)
	}
	return float64(n) / 8
}

// Column draws rows; nulls is in percent.
func Column(r *rand.Rand, t types.Type, rows, distinct, nulls int) []types.Datum {
	out := make([]types.Datum, 0, rows)
	for len(out) < rows {
		run := 1
		if r.IntN(50) == 0 {
			run = min(rows-len(out), 1+r.IntN(300)) // runs of a value
		}
		var v types.Datum
		if r.IntN(100) >= nulls {
			v = Value(r, t, distinct)
		}
		for range run {
			out = append(out, v)
		}
	}
	return out
}

// Array makes an array of values.
func Array(t types.Type, vs []types.Datum) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, t.Arrow())
	defer b.Release()
	for _, v := range vs {
		if v == nil {
			b.AppendNull()
			continue
		}
		switch b := b.(type) {
		case *array.BooleanBuilder:
			b.Append(v.(bool))
		case *array.Int16Builder:
			b.Append(int16(v.(int64)))
		case *array.Int32Builder:
			b.Append(int32(v.(int64)))
		case *array.Date32Builder:
			b.Append(arrow.Date32(v.(int64)))
		case *array.Int64Builder:
			b.Append(v.(int64))
		case *array.Time64Builder:
			b.Append(arrow.Time64(v.(int64)))
		case *array.TimestampBuilder:
			b.Append(arrow.Timestamp(v.(int64)))
		case *array.Float32Builder:
			b.Append(float32(v.(float64)))
		case *array.Float64Builder:
			b.Append(v.(float64))
		case *array.Decimal128Builder:
			b.Append(decimal128.FromBigInt(&v.(*numeric.Dec).Coef))
		case *array.StringBuilder:
			b.Append(v.(string))
		default:
			panic(fmt.Sprintf("no builder %T", b))
		}
	}
	return b.NewArray()
}

// Dictionary makes a dictionary array of values with entries that no row uses, an
// entry that is NULL, and entries that say the same.
func Dictionary(r *rand.Rand, t types.Type, vs []types.Datum, distinct int) arrow.Array {
	entries := []types.Datum{nil}
	for range 5 {
		entries = append(entries, Value(r, t, distinct))
	}
	idx := array.NewInt32Builder(memory.DefaultAllocator)
	defer idx.Release()
	for _, v := range vs {
		switch {
		case v == nil && r.IntN(2) == 0:
			idx.AppendNull()
		case v == nil:
			idx.Append(0)
		default:
			entries = append(entries, v)
			idx.Append(int32(len(entries) - 1))
		}
	}
	dt := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: t.Arrow()}
	return array.NewDictionaryArray(dt, idx.NewArray(), Array(t, entries))
}

// Append adds values to a builder in pieces of random sizes, some as dictionaries.
func Append(t testing.TB, r *rand.Rand, b index.Builder, typ types.Type, vs []types.Datum) {
	t.Helper()
	for len(vs) > 0 {
		n := min(len(vs), 1+r.IntN(3000))
		a := Array(typ, vs[:n])
		if r.IntN(3) == 0 {
			a = Dictionary(r, typ, vs[:n], 10)
		}
		// A slice of a longer array must count from its own beginning.
		if n > 1 && r.IntN(2) == 0 {
			cut := int64(r.IntN(n))
			for _, s := range []arrow.Array{array.NewSlice(a, 0, cut), array.NewSlice(a, cut, int64(n))} {
				if err := b.Append(s); err != nil {
					t.Fatal(err)
				}
			}
		} else if err := b.Append(a); err != nil {
			t.Fatal(err)
		}
		vs = vs[n:]
	}
}

// Leaf draws a leaf over a column, near its values.
func Leaf(r *rand.Rand, t types.Type, column []types.Datum, distinct int) *predicate.Leaf {
	l := &predicate.Leaf{Op: predicate.Op(r.IntN(12)), Type: t}
	n := []int{1, 1, 1, 1, 1, 1, r.IntN(6), r.IntN(6), 0, 0, 1, 2}[l.Op]
	for range n {
		v := Value(r, t, distinct+2)
		if len(column) > 0 && r.IntN(2) == 0 {
			if c := column[r.IntN(len(column))]; c != nil {
				v = c
			}
		}
		l.Args = append(l.Args, near(r, t, v))
	}
	return l
}

// near moves a constant a little, off what the type can store, too.
func near(r *rand.Rand, t types.Type, v types.Datum) types.Datum {
	if r.IntN(3) > 0 {
		return v
	}
	switch v := v.(type) {
	case int64:
		if v > math.MaxInt64-2000 {
			return int64(math.MaxInt64)
		}
		return v + []int64{-1, 1, 500, -999, 1000}[r.IntN(5)]
	case float64:
		return []float64{math.Nextafter(v, 9), v + 0.1, 1e300, -1e300, 1e-60, -1e-60}[r.IntN(6)]
	case *numeric.Dec:
		d := &numeric.Dec{Scale: v.Scale, Form: v.Form}
		switch r.IntN(5) {
		case 0:
			d.Form = numeric.Form(r.IntN(4))
		case 1:
			d.Scale += 2
			d.Coef.Mul(&v.Coef, big.NewInt(100))
			d.Coef.Add(&d.Coef, big.NewInt(int64(r.IntN(3)-1)))
		case 2:
			d.Coef.Exp(big.NewInt(-10), big.NewInt(int64(25+r.IntN(2))), nil)
		case 3:
			return v.TrimScale()
		default:
			d.Coef.Add(&v.Coef, big.NewInt(1))
		}
		return d
	case string:
		switch r.IntN(4) {
		case 0:
			return v + " "
		case 1:
			return strings.TrimRight(v, " ")
		case 2:
			return v[:len(v)/2]
		default:
			return v + "\t"
		}
	}
	return v
}

// Exact reports whether an index must know all about a leaf of a type; if not,
// it may err towards more rows.
func Exact(t types.Type) bool { return t.Kind != types.BpChar && !t.IsNanos() }

// Check compares what an index says of a leaf with the rows.
func Check(t testing.TB, x index.FileIndex, l *predicate.Leaf, column []types.Datum) {
	t.Helper()
	got, err := x.Test(l)
	if err != nil {
		t.Fatalf("%s: %v", Text(l), err)
	}
	want := roaring.New()
	for i, v := range column {
		match := l.Op == predicate.IsNull
		if v != nil {
			var known bool
			if match, known = predicate.Matches(l, v); !known {
				if got.Verdict != predicate.Some || got.Rows != nil {
					t.Fatalf("%s: %+v of what has no rule", Text(l), got)
				}
				return
			}
		}
		if match {
			want.Add(uint32(i))
		}
	}
	n := want.GetCardinality()
	if got.Verdict == predicate.None && n > 0 || got.Verdict == predicate.All && n < uint64(len(column)) {
		t.Fatalf("%s: %s, but %d of %d rows match", Text(l), got.Verdict, n, len(column))
	}
	if got.Rows == nil {
		if l.Op != predicate.StartsWith && Exact(l.Type) {
			t.Fatalf("%s: not judged", Text(l))
		}
		return
	}
	if missing := roaring.AndNot(want, got.Rows); !missing.IsEmpty() {
		t.Fatalf("%s: row %d (%v) matches and is left out", Text(l), missing.Minimum(), column[missing.Minimum()])
	}
	if !got.Rows.IsEmpty() && got.Rows.Maximum() >= uint32(len(column)) {
		t.Fatalf("%s: row %d of %d", Text(l), got.Rows.Maximum(), len(column))
	}
	if extra := roaring.AndNot(got.Rows, want); !extra.IsEmpty() && got.Exact {
		t.Fatalf("%s: row %d (%v) does not match", Text(l), extra.Minimum(), column[extra.Minimum()])
	}
	if Exact(l.Type) && !got.Exact {
		t.Fatalf("%s: not exact", Text(l))
	}
	if got.Rows.IsEmpty() != (got.Verdict == predicate.None) {
		t.Fatalf("%s: %s with %d rows", Text(l), got.Verdict, got.Rows.GetCardinality())
	}
	if got.Exact && n == uint64(len(column)) && n > 0 && got.Verdict != predicate.All {
		t.Fatalf("%s: %s, but all rows match", Text(l), got.Verdict)
	}
}

// CheckTop compares the first rows with a sort.
func CheckTop(t testing.TB, r *rand.Rand, x index.Sorter, typ types.Type, column []types.Datum) {
	t.Helper()
	var live *roaring.Bitmap
	if r.IntN(2) == 0 {
		live = roaring.New()
		for i := range column {
			if r.IntN(3) > 0 {
				live.Add(uint32(i))
			}
		}
	}
	n, desc, nullsFirst := r.IntN(len(column)/2+3), r.IntN(2) == 0, r.IntN(2) == 0
	got, err := x.Top(n, desc, nullsFirst, live)
	if err != nil {
		t.Fatal(err)
	}
	if got == nil {
		if typ.Kind != types.BpChar {
			t.Fatal("order is not known")
		}
		return
	}
	var rows []uint32
	for i := range column {
		if live == nil || live.Contains(uint32(i)) {
			rows = append(rows, uint32(i))
		}
	}
	compare := func(a, b uint32) int {
		va, vb := column[a], column[b]
		switch {
		case va == nil && vb == nil:
			return 0
		case va == nil || vb == nil:
			if (va == nil) == nullsFirst {
				return -1
			}
			return 1
		}
		c, _ := predicate.Compare(typ, va, vb)
		if desc {
			return -c
		}
		return c
	}
	slices.SortStableFunc(rows, compare)
	if n == 0 {
		rows = nil
	} else if n < len(rows) {
		end := n
		for end < len(rows) && compare(rows[end], rows[n-1]) == 0 {
			end++
		}
		rows = rows[:end]
	}
	want := roaring.BitmapOf(rows...)
	if missing := roaring.AndNot(want, got); !missing.IsEmpty() {
		t.Fatalf("top %d descending %v nulls first %v: row %d is left out of %v", n, desc, nullsFirst, missing.Minimum(), want)
	}
	if extra := roaring.AndNot(got, want); !extra.IsEmpty() && Exact(typ) {
		t.Fatalf("top %d descending %v nulls first %v: row %d is too many", n, desc, nullsFirst, extra.Minimum())
	}
}

// Text prints a leaf for messages.
func Text(l *predicate.Leaf) string {
	op := []string{"=", "<>", "<", "<=", ">", ">=", "IN", "NOT IN", "IS NULL", "IS NOT NULL", "STARTS WITH", "BETWEEN"}[l.Op]
	args := ""
	for _, a := range l.Args {
		if d, ok := a.(*numeric.Dec); ok {
			a = fmt.Sprintf("%v:%ve-%d", d.Form, &d.Coef, d.Scale)
		}
		args += fmt.Sprintf(" %#v", a)
	}
	return fmt.Sprintf("%v %s%s", l.Type.Kind, op, args)
}

// Sections takes a container of file indexes apart, by column and kind. It is as
// simple as can be, so that it does not depend on what package index does.
func Sections(t testing.TB, file []byte) map[string]map[string][]byte {
	t.Helper()
	if len(file) < 20 || binary.BigEndian.Uint64(file) != 1493475289347502 {
		t.Fatalf("%d bytes are no container of file indexes", len(file))
	}
	at := 16
	u16 := func() int { at += 2; return int(binary.BigEndian.Uint16(file[at-2:])) }
	i32 := func() int { at += 4; return int(int32(binary.BigEndian.Uint32(file[at-4:]))) }
	utf := func() string { n := u16(); at += n; return string(file[at-n : at]) }
	out := map[string]map[string][]byte{}
	for range i32() {
		col := utf()
		out[col] = map[string][]byte{}
		for range i32() {
			kind := utf()
			start, n := i32(), i32()
			if start >= 0 {
				out[col][kind] = file[start : start+n]
			}
		}
	}
	return out
}

// Source is bytes that count how often and how much of them is read.
type Source struct {
	B            []byte
	Reads, Bytes int64
}

// ReadAt reads.
func (s *Source) ReadAt(b []byte, off int64) (int, error) {
	s.Reads++
	s.Bytes += int64(len(b))
	return copy(b, s.B[off:]), nil
}

// Size returns the number of bytes.
func (s *Source) Size() int64 { return int64(len(s.B)) }
