package vec

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

func seeded(t testing.TB) *rand.Rand {
	seed := random.Seed(t)
	return rand.New(rand.NewPCG(seed, 1))
}

// randomValid is nil (no NULLs) a third of the time.
func randomValid(r *rand.Rand, n int) []byte {
	if r.IntN(3) == 0 {
		return nil
	}
	v := NewBitmap(n)
	for i := range n {
		if r.IntN(4) > 0 {
			SetBit(v, i)
		}
	}
	return v
}

func randomStr(r *rand.Rand) string {
	const al = "ab \x00zZ"
	b := make([]byte, r.IntN(5))
	for i := range b {
		b[i] = al[r.IntN(len(al))]
	}
	return string(b)
}

func strArray(dt arrow.DataType, ss []string, valid []byte) arrow.Array {
	offs := []int32{0}
	var data []byte
	for _, s := range ss {
		data = append(data, s...)
		offs = append(offs, int32(len(data)))
	}
	return MakeBytes(dt, offs, data, valid)
}

// randomArray makes n values of t, in one of its physical forms.
func randomArray(r *rand.Rand, t types.Type, n int) arrow.Array {
	valid := randomValid(r, n)
	switch t.Kind {
	case types.Bool:
		return MakeBool(n, randomBits(r, n), valid)
	case types.Int2:
		return fixed(t, n, valid, func() int16 { return int16(r.IntN(9) - 4) })
	case types.Int4, types.Date:
		return fixed(t, n, valid, func() int32 { return int32(r.IntN(9) - 4) })
	case types.Int8, types.Timestamp, types.Time:
		return fixed(t, n, valid, func() int64 { return int64(r.IntN(9) - 4) })
	case types.Float4:
		return fixed(t, n, valid, func() float32 { return float32(randomFloat(r)) })
	case types.Float8:
		return fixed(t, n, valid, func() float64 { return randomFloat(r) })
	case types.Numeric:
		if r.IntN(2) == 0 {
			scale := int32(r.IntN(4))
			v := make([]decimal128.Num, n)
			for i := range v {
				v[i] = decimal128.FromI64(int64(r.IntN(41)-20) * int64(math.Pow10(int(scale))) / 10)
				if r.IntN(5) == 0 {
					v[i] = v[i].Mul(decimal128.FromI64(1e18)).Mul(decimal128.FromI64(1000))
				}
			}
			return MakeFixedBytes(&arrow.Decimal128Type{Precision: 38, Scale: scale}, n, anyBytes(v), valid)
		}
		ss := make([]string, n)
		for i := range ss {
			d := &numeric.Dec{Scale: int32(r.IntN(4)), Form: numeric.Form(max(0, r.IntN(12)-8))}
			if d.Form == numeric.Finite {
				d.Coef.SetInt64(int64(r.IntN(41)-20) * int64(math.Pow10(int(d.Scale))) / 10)
			}
			ss[i] = string(numeric.AppendEncoded(nil, d))
		}
		return strArray(arrow.BinaryTypes.Binary, ss, valid)
	case types.Bytea:
		ss := make([]string, n)
		for i := range ss {
			ss[i] = randomStr(r)
		}
		return strArray(arrow.BinaryTypes.Binary, ss, valid)
	case types.JSONB:
		vs := []string{`null`, `1`, `1.0`, `-2e1`, `"a"`, `"b"`, `[]`, `[1, 2]`, `[1.0, 2]`, `{}`, `{"a": 1}`, `{"a": 1.00}`, `{"b": [null, true]}`, `false`}
		ss := make([]string, n)
		for i := range ss {
			ss[i] = vs[r.IntN(len(vs))]
		}
		return strArray(arrow.BinaryTypes.String, ss, valid)
	case types.Interval, types.UUID, types.TimeTZ:
		w := fixedWidth(t.Arrow())
		b := make([]byte, w*n)
		for i := range n {
			b[i*w] = byte(r.IntN(3))
			if t.Kind == types.Interval {
				b[i*w+8], b[i*w+12] = byte(r.IntN(2)*30), byte(r.IntN(2))
			}
		}
		return MakeFixedBytes(t.Arrow(), n, b, valid)
	case types.Array:
		offs := []int32{0}
		for range n {
			offs = append(offs, offs[len(offs)-1]+int32(r.IntN(3)))
		}
		return MakeList(t.Arrow(), offs, Decode(randomArray(r, *t.Elem, int(offs[n]))), valid)
	case types.Record:
		ch := make([]arrow.Array, len(t.Fields))
		for i := range ch {
			ch[i] = Decode(randomArray(r, t.Fields[i].Type, n))
		}
		return MakeStruct(t.Arrow(), n, ch, valid)
	}
	if r.IntN(2) == 0 && n > 0 {
		dict := make([]string, 1+r.IntN(6))
		for i := range dict {
			dict[i] = randomStr(r)
		}
		idx := make([]int32, n)
		for i := range idx {
			idx[i] = int32(r.IntN(len(dict)))
		}
		return MakeDict(idx, valid, strArray(arrow.BinaryTypes.String, dict, nil))
	}
	ss := make([]string, n)
	for i := range ss {
		ss[i] = randomStr(r)
	}
	return strArray(arrow.BinaryTypes.String, ss, valid)
}

func randomFloat(r *rand.Rand) float64 {
	return []float64{0, math.Copysign(0, -1), 1.5, -1.5, math.NaN(), math.Inf(1), math.Inf(-1), 2}[r.IntN(8)]
}

func randomBits(r *rand.Rand, n int) []byte {
	b := NewBitmap(n)
	for i := range n {
		if r.IntN(2) == 0 {
			SetBit(b, i)
		}
	}
	return b
}

func fixed[T Fixed](t types.Type, n int, valid []byte, f func() T) arrow.Array {
	v := make([]T, n)
	for i := range v {
		v[i] = f()
	}
	return Make(t.Arrow(), v, valid)
}

var sampleTypes = []types.Type{
	types.Of(types.Bool), types.Of(types.Int2), types.Of(types.Int4), types.Of(types.Int8), types.Of(types.Date),
	types.Of(types.Float4), types.Of(types.Float8), types.Of(types.Numeric), types.Of(types.Text), types.Of(types.BpChar),
	types.Of(types.Bytea), types.Of(types.JSONB), types.Of(types.Interval), types.Of(types.UUID), types.Of(types.TimeTZ), types.Of(types.Timestamp),
	types.ArrayOf(types.Of(types.Int4)), types.ArrayOf(types.Of(types.Text)),
	{Kind: types.Record, Fields: []types.Field{{Name: "a", Type: types.Of(types.Int8)}, {Name: "b", Type: types.Of(types.Text)}}},
}

// text is an obvious rendering of a value, by which arrays are compared.
func text(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return "NULL"
	}
	switch x := a.(type) {
	case *array.Dictionary:
		return text(x.Dictionary(), x.GetValueIndex(i))
	case *array.Binary:
		return fmt.Sprintf("%x", x.Value(i))
	case *array.String:
		return fmt.Sprintf("%x", x.Value(i))
	case *array.List:
		o, c := ListParts(a)
		s := "["
		for j := o[i]; j < o[i+1]; j++ {
			s += text(c, int(j)) + ","
		}
		return s + "]"
	case *array.Struct:
		s := "("
		for j := range x.NumField() {
			s += text(x.Field(j), i) + ","
		}
		return s + ")"
	}
	return a.ValueStr(i)
}

// numText gives the text of a numeric whatever its form.
func valueText(t types.Type, a arrow.Array, i int) string {
	if t.Kind == types.Numeric && a.IsValid(i) {
		return text(DecBinary(Slice(a, i, i+1)), 0)
	}
	return text(a, i)
}

func TestTakeAndGather(t *testing.T) {
	r := seeded(t)
	for _, typ := range sampleTypes {
		for range 60 {
			var srcs []arrow.Array
			for range 1 + r.IntN(4) {
				n := 1 + r.IntN(20)
				a := randomArray(r, typ, n)
				if from := r.IntN(n); r.IntN(2) == 0 {
					a = Slice(a, from, n)
				}
				srcs = append(srcs, a)
			}
			a := srcs[0]
			var idx []uint16
			var idx32 []int32
			for range r.IntN(30) {
				i := r.IntN(a.Len())
				idx, idx32 = append(idx, uint16(i)), append(idx32, int32(i))
			}
			got := Take(a, idx)
			for k, i := range idx {
				if x, y := valueText(typ, got, k), valueText(typ, a, int(i)); x != y {
					t.Fatalf("%v take row %d: %s, want %s", typ, k, x, y)
				}
			}
			for k := range idx32 {
				if r.IntN(3) == 0 {
					idx32[k] = -1
				}
			}
			got = TakeNull(a, idx32)
			for k, i := range idx32 {
				want := "NULL"
				if i >= 0 {
					want = valueText(typ, a, int(i))
				}
				if x := valueText(typ, got, k); x != want {
					t.Fatalf("%v take null row %d: %s, want %s", typ, k, x, want)
				}
			}
			var src []uint16
			var row []uint32
			for range r.IntN(50) {
				s := r.IntN(len(srcs))
				src, row = append(src, uint16(s)), append(row, uint32(r.IntN(srcs[s].Len())))
			}
			got = Gather(typ.Arrow(), srcs, src, row)
			if got.Len() != len(src) {
				t.Fatalf("%v gather made %d rows of %d", typ, got.Len(), len(src))
			}
			for k := range src {
				if x, y := valueText(typ, got, k), valueText(typ, srcs[src[k]], int(row[k])); x != y {
					t.Fatalf("%v gather row %d: %s, want %s", typ, k, x, y)
				}
			}
			got = Concat(typ.Arrow(), srcs)
			k := 0
			for _, s := range srcs {
				for i := range s.Len() {
					if x, y := valueText(typ, got, k), valueText(typ, s, i); x != y {
						t.Fatalf("%v concat row %d: %s, want %s", typ, k, x, y)
					}
					k++
				}
			}
			if got.Len() != k {
				t.Fatalf("%v concat made %d rows of %d", typ, got.Len(), k)
			}
			if d := Decode(a); d.Len() != a.Len() || d.DataType().ID() == arrow.DICTIONARY {
				t.Fatalf("%v decode", typ)
			}
		}
	}
}

// TestHashFollowsCompare: equal rows hash equal, in every physical form, and
// normalised keys order as Compare does.
func TestHashFollowsCompare(t *testing.T) {
	r := seeded(t)
	for _, typ := range sampleTypes {
		for range 40 {
			n, m := 1+r.IntN(20), 1+r.IntN(20)
			a, b := randomArray(r, typ, n), randomArray(r, typ, m)
			ha, hb := make([]uint64, n), make([]uint64, m)
			HashColumn(typ, a, ha, nil)
			HashColumn(typ, b, hb, nil)
			var sel []uint16
			for i := range n {
				if r.IntN(2) == 0 {
					sel = append(sel, uint16(i))
				}
			}
			hs := make([]uint64, len(sel))
			if sel != nil {
				HashColumn(typ, a, hs, sel)
			}
			for k, i := range sel {
				if hs[k] != ha[i] {
					t.Fatalf("%v: hash by selection differs", typ)
				}
			}
			for _, desc := range []bool{false, true} {
				for _, nf := range []bool{false, true} {
					cols := []KeyColumn{{Type: typ, Desc: desc, NullsFirst: nf}}
					ka, kb := NewKeyer(cols, []arrow.Array{a}), NewKeyer(cols, []arrow.Array{b})
					cmp := NewRowCompare(cols, []arrow.Array{a}, []arrow.Array{b})
					eq := NewEqual(typ, a, b)
					for i := range n {
						for j := range m {
							c := cmp(i, j)
							if k := bytes.Compare(ka.Append(nil, i), kb.Append(nil, j)); sign(k) != sign(c) {
								t.Fatalf("%v desc=%v nullsfirst=%v: %s against %s compares %d, keys %d", typ, desc, nf, text(a, i), text(b, j), c, k)
							}
							if (c == 0) != eq(i, j) {
								t.Fatalf("%v: Equal and Compare differ on %s, %s", typ, text(a, i), text(b, j))
							}
							if c == 0 && ha[i] != hb[j] {
								t.Fatalf("%v: %s = %s but hashes differ", typ, text(a, i), text(b, j))
							}
						}
					}
				}
			}
		}
	}
}

func sign(i int) int {
	switch {
	case i < 0:
		return -1
	case i > 0:
		return 1
	}
	return 0
}

func TestNumericOrder(t *testing.T) {
	ss := []string{"-1000000000000000000000000000000000000000", "-100", "-99.5", "-1.01", "-1", "-0.001", "0", "0.0001", "0.9", "1", "1.5", "2", "10", "99999999999999999999999"}
	var ks [][]byte
	for _, s := range ss {
		d, err := numeric.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		ks = append(ks, AppendDecKey(nil, d))
	}
	if !sort.SliceIsSorted(ks, func(i, j int) bool { return bytes.Compare(ks[i], ks[j]) < 0 }) {
		t.Fatalf("keys are not in order: %x", ks)
	}
}

func TestJSONOrder(t *testing.T) {
	ss := []string{`[]`, `null`, `""`, `"a"`, `"ab"`, `"b"`, `-1`, `0`, `1.5`, `2`, `false`, `true`, `[null]`, `[1]`, `[2]`, `[1, 1]`, `{}`, `{"a": 1}`, `{"b": 1}`, `{"aa": 0}`, `{"a": 1, "b": 1}`}
	for i := range ss {
		for j := range ss {
			c := bytes.Compare(AppendJSONKey(nil, []byte(ss[i])), AppendJSONKey(nil, []byte(ss[j])))
			if sign(c) != sign(i-j) {
				t.Errorf("%s against %s: %d", ss[i], ss[j], c)
			}
		}
	}
}

func TestSelections(t *testing.T) {
	r := seeded(t)
	for range 300 {
		n := r.IntN(200)
		v := make([]int32, n)
		f := make([]float64, n)
		d := make([]decimal128.Num, n)
		for i := range v {
			v[i] = int32(r.IntN(9))
			f[i] = randomFloat(r)
			d[i] = decimal128.FromI64(int64(r.IntN(9) - 4))
		}
		var sel []uint16
		rows := make([]uint16, 0, n)
		if r.IntN(2) == 0 {
			sel = []uint16{}
		}
		for i := range n {
			if sel == nil || r.IntN(2) == 0 {
				rows = append(rows, uint16(i))
			}
		}
		if sel != nil {
			sel = rows
		}
		op := CmpOp(r.IntN(6))
		c, fc, dc := int32(r.IntN(9)), randomFloat(r), decimal128.FromI64(int64(r.IntN(9)-4))
		check := func(name string, got []uint16, keep func(i uint16) bool) {
			t.Helper()
			var want []uint16
			for _, i := range rows {
				if keep(i) {
					want = append(want, i)
				}
			}
			if len(got) != len(want) || len(got) > 0 && fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%s op %d: %v, want %v", name, op, got, want)
			}
		}
		out := make([]uint16, n)
		check("int", out[:SelectConst(op, v, c, sel, out)], func(i uint16) bool { return op.Holds(int(v[i]) - int(c)) })
		check("float", out[:SelectFloat(op, f, fc, sel, out)], func(i uint16) bool {
			a, b := orderFloat(f[i]), orderFloat(fc)
			return op.Holds(map[bool]int{true: -1}[a < b] + map[bool]int{true: 1}[a > b])
		})
		check("dec", out[:SelectDec(op, d, dc, sel, out)], func(i uint16) bool { return op.Holds(CmpDec128(d[i], dc)) })
		w := make([]int32, n)
		for i := range w {
			w[i] = int32(r.IntN(9))
		}
		check("pair", out[:SelectPair(op, v, w, sel, out)], func(i uint16) bool { return op.Holds(int(v[i]) - int(w[i])) })
		valid := randomBits(r, n+5)
		off := r.IntN(5)
		check("valid", out[:SelectValid(valid, off, n, sel, out)], func(i uint16) bool { return BitAt(valid, off+int(i)) })
		check("null", out[:SelectNull(valid, off, n, sel, out)], func(i uint16) bool { return !BitAt(valid, off+int(i)) })
	}
}

func TestBitmaps(t *testing.T) {
	r := seeded(t)
	for range 200 {
		n := r.IntN(300)
		v := make([]uint8, n)
		for i := range v {
			v[i] = uint8(r.IntN(2))
		}
		b := PackBools(v)
		back := make([]uint8, n)
		Bools(back, b, 0, n)
		if !bytes.Equal(v, back) {
			t.Fatal("bools do not round-trip")
		}
		other := randomBits(r, n+9)
		off := r.IntN(9)
		and := AndBits(b, 0, other, off, n)
		for i := range n {
			if BitAt(and, i) != (v[i] == 1 && BitAt(other, off+i)) {
				t.Fatalf("and differs at %d", i)
			}
		}
		set := AppendSet(nil, other, off, n)
		k := 0
		for i := range n {
			if BitAt(other, off+i) {
				k++
			}
		}
		if len(set) != k {
			t.Fatal("AppendSet count")
		}
	}
}

func BenchmarkTake(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	const n = 1 << 16
	ints := fixed(types.Of(types.Int8), n, nil, func() int64 { return r.Int64() })
	strs := randomStrings(r, n)
	idx := make([]int32, 2048)
	for i := range idx {
		idx[i] = int32(r.IntN(n))
	}
	for name, a := range map[string]arrow.Array{"int8": ints, "text": strs} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Take(a, idx)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(idx)), "ns/row")
		})
	}
}

func randomStrings(r *rand.Rand, n int) arrow.Array {
	bl := array.NewStringBuilder(memory.DefaultAllocator)
	for range n {
		bl.Append(fmt.Sprintf("value-%d", r.IntN(1<<20)))
	}
	return bl.NewArray()
}

func BenchmarkHash(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	const n = 2048
	ints := fixed(types.Of(types.Int8), n, nil, func() int64 { return r.Int64() })
	dec := MakeFixedBytes(&arrow.Decimal128Type{Precision: 15, Scale: 2}, n, anyBytes(make([]decimal128.Num, n)), nil)
	strs := randomStrings(r, n)
	h := make([]uint64, n)
	for _, c := range []struct {
		name string
		t    types.Type
		a    arrow.Array
	}{{"int8", types.Of(types.Int8), ints}, {"text", types.Of(types.Text), strs}, {"numeric", types.DecimalOf(15, 2), dec}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				HashColumn(c.t, c.a, h, nil)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/row")
		})
	}
}

func BenchmarkSelect(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	const n, k = 2048, 200
	vs := make([][]int64, k)
	ds := make([][]decimal128.Num, k)
	for i := range vs {
		for range n {
			vs[i] = append(vs[i], r.Int64N(1000))
			ds[i] = append(ds[i], decimal128.FromI64(r.Int64N(1000)))
		}
	}
	out := make([]uint16, n)
	b.Run("int8", func(b *testing.B) {
		i := 0
		for b.Loop() {
			SelectConst(OpLt, vs[i%k], 500, nil, out)
			i++
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/row")
	})
	b.Run("numeric", func(b *testing.B) {
		i := 0
		c := decimal128.FromI64(500)
		for b.Loop() {
			SelectDec(OpLt, ds[i%k], c, nil, out)
			i++
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/row")
	})
}
