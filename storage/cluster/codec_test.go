package cluster

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

func dec(p, s uint8) types.Type { return types.Type{Kind: types.Numeric, Prec: p, Scale: s} }

// keyTypes are all types that rows can be ordered by.
var keyTypes = []types.Type{
	types.Of(types.Bool), types.Of(types.TinyInt), types.Of(types.Int2), types.Of(types.Int4), types.Of(types.Int8), types.Of(types.Float4), types.Of(types.Float8),
	dec(4, 2), dec(18, 0), dec(19, 3), dec(38, 10), types.Of(types.Text), types.Of(types.Varchar), types.Of(types.BpChar), types.Of(types.Bytea),
	types.Of(types.Date), {Kind: types.Time, Prec: 3}, {Kind: types.Timestamp, Prec: 6}, {Kind: types.Timestamp, Prec: 9}, {Kind: types.TimestampTZ, Prec: 3},
}

// edges are values of a type at which codecs break.
func edges(t types.Type) []types.Datum {
	ints := func(bits int) (out []types.Datum) {
		lo := int64(-1) << (bits - 1)
		for _, v := range []int64{lo, lo + 1, -256, -1, 0, 1, 255, ^lo - 1, ^lo} {
			if v >= lo && v <= ^lo {
				out = append(out, v)
			}
		}
		return out
	}
	switch t.Kind {
	case types.Bool:
		return []types.Datum{false, true}
	case types.TinyInt:
		return ints(8)
	case types.Int2:
		return ints(16)
	case types.Int4, types.Date:
		return ints(32)
	case types.Int8, types.Time, types.Timestamp, types.TimestampTZ:
		return ints(64)
	case types.Float4:
		return []types.Datum{math.Inf(-1), float64(-math.MaxFloat32), -1.5, float64(-math.SmallestNonzeroFloat32), math.Copysign(0, -1), 0.0, float64(math.SmallestNonzeroFloat32), 1.5,
			float64(math.MaxFloat32), math.Inf(1), math.NaN()}
	case types.Float8:
		return []types.Datum{math.Inf(-1), -math.MaxFloat64, -1.5, -math.SmallestNonzeroFloat64, math.Copysign(0, -1), 0.0, math.SmallestNonzeroFloat64, 1.5, math.MaxFloat64, math.Inf(1), math.NaN()}
	case types.Numeric:
		most := new(big.Int).Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Prec)), nil), big.NewInt(1))
		out := []types.Datum{}
		for _, b := range []*big.Int{most, new(big.Int).Neg(most), big.NewInt(0), big.NewInt(1), big.NewInt(-1), big.NewInt(9999), big.NewInt(-9999)} {
			out = append(out, decimal(b, t))
		}
		if t.Prec > 20 { // around 2^64
			for d := int64(-1); d <= 1; d++ {
				x := new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), 64), big.NewInt(d))
				out = append(out, decimal(x, t), decimal(new(big.Int).Neg(x), t))
			}
		}
		return out
	case types.Bytea:
		return []types.Datum{[]byte{}, []byte{0}, []byte{0, 0}, []byte{0, 0xff}, []byte{0xff}, []byte("abcdefgh"), []byte("abcdefgh\x00"), bytes.Repeat([]byte{0xff}, 20)}
	}
	return []types.Datum{"", "a", "a ", "ab", "b", "\u00e9", "abcdefgh", "abcdefghi", "abcdefghij", strings.Repeat("z", 40), "abcdefgh\x00i", "\U0001F600"}
}

func decimal(b *big.Int, t types.Type) *numeric.Dec {
	d := &numeric.Dec{Scale: int32(t.Scale)}
	d.Coef.Set(b)
	return d
}

// random is a value of t, NULL at times.
func random(r *rand.Rand, t types.Type) types.Datum {
	if r.IntN(8) == 0 {
		return nil
	}
	if e := edges(t); r.IntN(4) == 0 {
		return e[r.IntN(len(e))]
	}
	switch t.Kind {
	case types.Bool:
		return r.IntN(2) == 0
	case types.TinyInt:
		return int64(int8(r.Uint32()))
	case types.Int2:
		return int64(int16(r.Uint32()))
	case types.Int4, types.Date:
		return int64(int32(r.Uint32())) >> r.IntN(32)
	case types.Int8, types.Time, types.Timestamp, types.TimestampTZ:
		return int64(r.Uint64()) >> r.IntN(64)
	case types.Float4:
		return float64(float32(r.NormFloat64() * math.Pow(10, float64(r.IntN(20)-10))))
	case types.Float8:
		return r.NormFloat64() * math.Pow(10, float64(r.IntN(200)-100))
	case types.Numeric:
		b := new(big.Int)
		for range 1 + r.IntN(int(t.Prec)) {
			b.Add(b.Mul(b, big.NewInt(10)), big.NewInt(r.Int64N(10)))
		}
		if r.IntN(2) == 0 {
			b.Neg(b)
		}
		return decimal(b, t)
	case types.Bytea:
		b := make([]byte, r.IntN(12))
		for i := range b {
			b[i] = byte(r.Uint32() & 3)
		}
		return b
	}
	return strings.Repeat("key-", r.IntN(3)) + fmt.Sprint(r.IntN(1000))
}

// compareDatums is the order of files: NULL, numbers, bytes.
func compareDatums(a, b types.Datum) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	switch x := a.(type) {
	case bool:
		n := func(v bool) int {
			if v {
				return 1
			}
			return 0
		}
		return n(x) - n(b.(bool))
	case int64:
		return cmp.Compare(x, b.(int64))
	case float64:
		y := b.(float64)
		switch {
		case x != x && y != y:
			return 0
		case x != x:
			return 1
		case y != y:
			return -1
		case x == y:
			return cmp.Compare(btoi(!math.Signbit(x)), btoi(!math.Signbit(y)))
		}
		return cmp.Compare(x, y)
	case *numeric.Dec:
		return x.Coef.Cmp(&b.(*numeric.Dec).Coef)
	case string:
		return cmp.Compare(x, b.(string))
	case []byte:
		return bytes.Compare(x, b.([]byte))
	}
	panic(fmt.Sprintf("%T", a))
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func column(t types.Type, vals []types.Datum) arrow.Array { return vec.FromDatums(t, vals) }

// dictionary is a column in the form of a dictionary.
func dictionary(t types.Type, vals []types.Datum) arrow.Array {
	var dict []types.Datum
	seen := map[string]int32{}
	idx := make([]int32, len(vals))
	valid := vec.NewBitmap(len(vals))
	for i, v := range vals {
		if v == nil {
			continue
		}
		vec.SetBit(valid, i)
		s := fmt.Sprint(v)
		n, ok := seen[s]
		if !ok {
			n = int32(len(dict))
			seen[s] = n
			dict = append(dict, v)
		}
		idx[i] = n
	}
	if dict == nil {
		return column(t, vals)
	}
	return vec.MakeDict(idx, valid, column(t, dict))
}

// TestOrder compares keys of every type, and of pairs of types, with the order of
// the values.
func TestOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, a := range keyTypes {
		for _, b := range append([]types.Type{{}}, keyTypes...) {
			ts := []types.Type{a}
			if b.Kind != types.Unknown {
				ts = append(ts, b)
			}
			const n = 60
			vals := make([][]types.Datum, len(ts))
			cols := make([]arrow.Array, len(ts))
			for c := range ts {
				ts[c].NotNull = r.IntN(2) == 0
				vals[c] = append(vals[c], edges(ts[c])...)
				for len(vals[c]) < n {
					v := random(r, ts[c])
					if v == nil && ts[c].NotNull {
						continue
					}
					vals[c] = append(vals[c], v)
				}
				r.Shuffle(n, func(i, j int) { vals[c][i], vals[c][j] = vals[c][j], vals[c][i] })
				cols[c] = column(ts[c], vals[c])
				if variable(ts[c]) && r.IntN(2) == 0 {
					cols[c] = dictionary(ts[c], vals[c])
				}
			}
			codec, err := NewCodec(Order, ts, 0)
			if err != nil {
				t.Fatal(err)
			}
			var k Keys
			for from := 0; from < n; from += 25 { // in several batches, sliced
				m := min(25, n-from)
				part := make([]arrow.Array, len(cols))
				for c := range cols {
					part[c] = vec.Slice(cols[c], from, from+m)
				}
				codec.Append(&k, part, m)
			}
			if k.Len() != n {
				t.Fatalf("%v: %d keys", ts, k.Len())
			}
			for i := range n {
				for j := range n {
					want := 0
					for c := range ts {
						if want == 0 {
							want = compareDatums(vals[c][i], vals[c][j])
						}
					}
					if got := bytes.Compare(k.At(i), k.At(j)); got != cmp.Compare(want, 0) {
						t.Fatalf("%v: %v, %v against %v, %v: %d, want %d", ts, vals[0][i], vals[len(ts)-1][i], vals[0][j], vals[len(ts)-1][j], got, want)
					}
				}
			}
		}
	}
}

// TestWords makes sure that the words of a column are never out of order, NULL
// first, with a sample and without, whatever the number of bytes.
func TestWords(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, s := range []Strategy{ZOrder, Hilbert} {
		for _, typ := range keyTypes {
			for _, bytesOf := range []int{1, 3, 8, 9, 20} {
				for _, learned := range []bool{false, true} {
					const n = 500
					vals := []types.Datum{nil}
					vals = append(vals, edges(typ)...)
					for len(vals) < n {
						vals = append(vals, random(r, typ))
					}
					slices.SortStableFunc(vals, compareDatums)
					codec, err := NewCodec(s, []types.Type{typ}, bytesOf)
					if err != nil {
						t.Fatal(err)
					}
					col := column(typ, vals)
					if variable(typ) && r.IntN(2) == 0 {
						col = dictionary(typ, vals)
					}
					if learned {
						from := r.IntN(n / 2)
						codec.Learn([][]arrow.Array{{vec.Slice(col, from, from+n/4)}}, []int{n / 4})
					}
					var k Keys
					codec.Append(&k, []arrow.Array{col}, n)
					differ := 0
					for i := 1; i < n; i++ {
						x := bytes.Compare(k.At(i-1), k.At(i))
						if x > 0 {
							t.Fatalf("%v %v, %d bytes, learned %v: %v is above %v", s, typ, bytesOf, learned, vals[i-1], vals[i])
						}
						if x < 0 {
							differ++
						}
					}
					if typ.Kind != types.Bool && bytesOf >= 8 && differ < 10 {
						t.Errorf("%v %v, %d bytes, learned %v: %d keys", s, typ, bytesOf, learned, differ)
					}
				}
			}
		}
	}
}

// TestNoOrder names the types that are refused.
func TestNoOrder(t *testing.T) {
	el := types.Of(types.Int4)
	for _, typ := range []types.Type{{Kind: types.Array, Elem: &el}, {Kind: types.Map, Key: &el, Elem: &el}, {Kind: types.Row}, types.Of(types.Variant), {Kind: types.Bytea, Lake: types.LakeBlob}} {
		for _, s := range []Strategy{Order, ZOrder, Hilbert} {
			var te *TypeError
			if _, err := NewCodec(s, []types.Type{el, typ}, 0); !errors.As(err, &te) || te.Column != 1 {
				t.Errorf("%v by %v: %v", s, typ, err)
			}
		}
	}
}

// TestInterleave compares the fast ways with the plain one.
func TestInterleave(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for d := 1; d <= 11; d++ {
		for _, nb := range []int{wordBytes, hilbertBytes} {
			const n = 50
			words := make([][]uint64, d)
			for c := range words {
				for range n {
					words[c] = append(words[c], r.Uint64())
				}
			}
			got, want := make([]byte, n*d*nb), make([]byte, n*d*nb)
			interleave(got, d*nb, words, nb, n)
			interleaveBits(want, d*nb, words, nb, n)
			if !bytes.Equal(got, want) {
				t.Fatalf("%d columns of %d bytes", d, nb)
			}
			// Bit 63 of the first word comes first, then that of the second.
			for c := range d {
				if want[c>>3]>>(7-c&7)&1 != byte(words[c][0]>>63) {
					t.Fatalf("%d columns: bit %d", d, c)
				}
			}
		}
	}
}

// TestHilbert goes along the curve: every point has a place of its own, and from
// each place it is one step to the next.
func TestHilbert(t *testing.T) {
	for _, c := range []struct{ dims, bits int }{{2, 1}, {2, 6}, {3, 4}, {4, 3}, {5, 2}, {9, 1}} {
		n := 1 << (c.dims * c.bits)
		words := make([][]uint64, c.dims)
		points := make([][]uint64, c.dims)
		for d := range words {
			for i := range n {
				words[d] = append(words[d], uint64(i>>(d*c.bits)&(1<<c.bits-1)))
			}
			points[d] = slices.Clone(words[d])
		}
		hilbert(words, n, c.bits)
		at := make([]int, n)
		for i := range at {
			at[i] = -1
		}
		for i := range n {
			place := 0
			for bit := c.bits - 1; bit >= 0; bit-- {
				for d := range words {
					place = place<<1 | int(words[d][i]>>bit&1)
				}
			}
			if at[place] >= 0 {
				t.Fatalf("%v: two points at %d", c, place)
			}
			at[place] = i
		}
		for p := 1; p < n; p++ {
			steps := 0
			for d := range points {
				a, b := int64(points[d][at[p-1]]), int64(points[d][at[p]])
				steps += int(max(a-b, b-a))
			}
			if steps != 1 {
				t.Fatalf("%v: %d steps from %d to %d", c, steps, p-1, p)
			}
		}
	}
}

func TestStrategies(t *testing.T) {
	for name, want := range map[string]Strategy{"order": Order, "ZORDER": ZOrder, "Hilbert": Hilbert, "none": None} {
		if s, ok := ParseStrategy(name); !ok || s != want || !strings.EqualFold(s.String(), name) {
			t.Errorf("%s: %v %v", name, s, ok)
		}
	}
	if _, ok := ParseStrategy("z-order"); ok {
		t.Error("z-order is no name")
	}
	for n, want := range []Strategy{1: Order, 2: ZOrder, 4: ZOrder, 5: Hilbert} {
		if n > 0 && want != None && Auto(n) != want {
			t.Errorf("auto of %d columns is %v", n, Auto(n))
		}
	}
}

// BenchmarkKeys makes keys of two columns.
func BenchmarkKeys(b *testing.B) {
	r := rand.New(rand.NewPCG(7, 8))
	const n = 8192
	ints, floats, strs := make([]types.Datum, n), make([]types.Datum, n), make([]types.Datum, n)
	for i := range n {
		ints[i], floats[i], strs[i] = int64(r.IntN(1e6)), r.NormFloat64(), fmt.Sprintf("user-%08d", r.IntN(1e7))
	}
	cols := map[string]arrow.Array{"int8": column(types.Of(types.Int8), ints), "float8": column(types.Of(types.Float8), floats), "text": column(types.Of(types.Text), strs)}
	ts := map[string]types.Type{"int8": types.Of(types.Int8), "float8": types.Of(types.Float8), "text": types.Of(types.Text)}
	for _, s := range []Strategy{Order, ZOrder, Hilbert} {
		for _, names := range [][]string{{"int8", "float8"}, {"int8", "text"}, {"int8", "float8", "text"}} {
			b.Run(s.String()+"/"+strings.Join(names, ","), func(b *testing.B) {
				var kt []types.Type
				var kc []arrow.Array
				for _, m := range names {
					kt, kc = append(kt, ts[m]), append(kc, cols[m])
				}
				codec, err := NewCodec(s, kt, 0)
				if err != nil {
					b.Fatal(err)
				}
				codec.Learn([][]arrow.Array{kc}, []int{n})
				var k Keys
				codec.Append(&k, kc, n)
				b.ReportAllocs()
				for b.Loop() {
					k.Reset()
					codec.Append(&k, kc, n)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
			})
		}
	}
}
