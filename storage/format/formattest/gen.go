package formattest

import (
	"encoding/binary"
	"math"
	"math/rand"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// AllTypes is a schema with every type that a Paimon column may have, scalars
// first, each once nullable and some NOT NULL. Field ids are set.
func AllTypes() types.Schema {
	ts := func(k types.Kind, p uint8) types.Type { return types.Type{Kind: k, Prec: p} }
	str := func(k types.Kind, n int32) types.Type { return types.Type{Kind: k, Len: n, Mod: n + 4} }
	row := types.Type{Kind: types.Row, Fields: []types.Field{
		{ID: 101, Name: "x", Type: types.Of(types.Int4)},
		{ID: 102, Name: "y", Type: types.Of(types.Text).WithNotNull(true)},
		{ID: 103, Name: "z", Type: types.Type{Kind: types.Row, Fields: []types.Field{
			{ID: 104, Name: "p", Type: types.Of(types.Float8)},
			{ID: 105, Name: "q", Type: types.ArrayOf(types.Of(types.Int8))},
		}}},
	}}
	multiset := types.MapOf(types.Of(types.Text), types.Of(types.Int4).WithNotNull(true))
	multiset.Multiset = true
	s := types.Schema{
		{Name: "bool", Type: types.Of(types.Bool)},
		{Name: "tiny", Type: types.Of(types.TinyInt)},
		{Name: "small", Type: types.Of(types.Int2)},
		{Name: "int", Type: types.Of(types.Int4)},
		{Name: "int_req", Type: types.Of(types.Int4).WithNotNull(true)},
		{Name: "big", Type: types.Of(types.Int8)},
		{Name: "big_req", Type: types.Of(types.Int8).WithNotNull(true)},
		{Name: "float", Type: types.Of(types.Float4)},
		{Name: "double", Type: types.Of(types.Float8)},
		{Name: "dec5", Type: types.NumericOf(5, 2)},
		{Name: "dec18", Type: types.NumericOf(18, 4)},
		{Name: "dec19", Type: types.NumericOf(19, 0)},
		{Name: "dec38", Type: types.NumericOf(38, 10)},
		{Name: "char", Type: str(types.BpChar, 6)},
		{Name: "varchar", Type: str(types.Varchar, 30)},
		{Name: "text", Type: types.Of(types.Text)},
		{Name: "text_req", Type: types.Of(types.Text).WithNotNull(true)},
		{Name: "bytes", Type: types.Of(types.Bytea)},
		{Name: "date", Type: types.Of(types.Date)},
		{Name: "time", Type: ts(types.Time, 3)},
		{Name: "ts0", Type: ts(types.Timestamp, 0)},
		{Name: "ts3", Type: ts(types.Timestamp, 3)},
		{Name: "ts6", Type: ts(types.Timestamp, 6)},
		{Name: "ts9", Type: ts(types.Timestamp, 9)},
		{Name: "ltz3", Type: ts(types.TimestampTZ, 3)},
		{Name: "ltz6", Type: ts(types.TimestampTZ, 6)},
		{Name: "ltz9", Type: ts(types.TimestampTZ, 9)},
		{Name: "a_int", Type: types.ArrayOf(types.Of(types.Int4))},
		{Name: "a_str_req", Type: types.ArrayOf(types.Of(types.Text).WithNotNull(true)).WithNotNull(true)},
		{Name: "aa", Type: types.ArrayOf(types.ArrayOf(types.NumericOf(10, 1)))},
		{Name: "m_si", Type: types.MapOf(types.Of(types.Text), types.Of(types.Int4))},
		{Name: "m_ia", Type: types.MapOf(types.Of(types.Int4), types.ArrayOf(types.Of(types.Bool)))},
		{Name: "multi", Type: multiset},
		{Name: "row", Type: row},
		{Name: "row_req", Type: row.WithNotNull(true)},
		{Name: "a_row", Type: types.ArrayOf(row)},
		{Name: "variant", Type: types.Of(types.Variant)},
	}
	for i := range s {
		s[i].ID = int32(i)
	}
	return s
}

// Gen makes random arrays. Values of one Gen come from few or many distinct
// ones, depending on Distinct.
type Gen struct {
	*rand.Rand
	Nulls    float64 // share of NULLs where they are allowed
	Distinct int     // about how many distinct values a column has; 0 = many
}

func (g *Gen) n() int64 {
	if g.Distinct > 0 {
		return int64(g.Intn(g.Distinct)) - int64(g.Distinct/3)
	}
	switch g.Intn(8) {
	case 0:
		return math.MaxInt64
	case 1:
		return math.MinInt64
	case 2:
		return int64(g.Intn(3)) - 1
	}
	return int64(g.Uint64())
}

// within is a number of at most limit in size, keeping the sign.
func (g *Gen) within(limit int64) int64 {
	v := g.n()
	if v >= -limit && v <= limit {
		return v
	}
	return v % (limit + 1)
}

func (g *Gen) float() float64 {
	if g.Distinct == 0 {
		switch g.Intn(12) {
		case 0:
			return math.Inf(1)
		case 1:
			return math.Inf(-1)
		case 2:
			return math.Copysign(0, -1)
		case 3:
			return 0
		case 4:
			return math.MaxFloat64
		}
		return g.NormFloat64() * 1e6
	}
	return float64(g.n()) / 4
}

func (g *Gen) text(out []byte) []byte {
	if g.Distinct > 0 {
		words := []string{"", "a", "ab", "alpha", "beta", "gamma ", "é", "日本語", "zz\U0001F600"}
		v := g.n()
		out = append(out, words[uint64(v)%uint64(len(words))]...)
		return append(out, byte('a'+uint64(v)/9%26), byte('a'+uint64(v)/234%26))
	}
	for n := g.Intn(12); n > 0; n-- {
		out = append(out, string(rune(' '+g.Intn(0x250)))...)
	}
	if g.Intn(40) == 0 {
		for n := g.Intn(300); n > 0; n-- {
			out = append(out, byte('a'+g.Intn(26)))
		}
	}
	return out
}

// Array makes n values of t.
func (g *Gen) Array(t types.Type, n int) arrow.Array {
	var valid []byte
	if !t.NotNull && g.Nulls > 0 {
		valid = make([]byte, vec.BitmapLen(n))
		for i := 0; i < n; i++ {
			if g.Float64() >= g.Nulls {
				valid[i>>3] |= 1 << (i & 7)
			}
		}
	}
	dt := t.Arrow()
	ints := func(fn func() int64) arrow.Array {
		v := make([]int64, n)
		for i := range v {
			v[i] = fn()
		}
		return vec.Make(dt, v, valid)
	}
	switch t.Kind {
	case types.Bool:
		b := make([]byte, vec.BitmapLen(n))
		for i := 0; i < n; i++ {
			b[i>>3] |= byte(g.n()&1) << (i & 7)
		}
		return vec.MakeBool(n, b, valid)
	case types.TinyInt, types.Int2:
		v := make([]int16, n)
		for i := range v {
			if t.Kind == types.TinyInt {
				v[i] = int16(int8(g.n()))
			} else {
				v[i] = int16(g.n())
			}
		}
		return vec.Make(dt, v, valid)
	case types.Int4, types.Date:
		v := make([]int32, n)
		for i := range v {
			v[i] = int32(g.n())
		}
		return vec.Make(dt, v, valid)
	case types.Int8:
		return ints(g.n)
	case types.Float4:
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(g.float())
		}
		return vec.Make(dt, v, valid)
	case types.Float8:
		v := make([]float64, n)
		for i := range v {
			v[i] = g.float()
		}
		return vec.Make(dt, v, valid)
	case types.Numeric:
		return vec.MakeFixedBytes(dt, n, g.decimals(t, n), valid)
	case types.Time:
		return ints(func() int64 { return (g.within(86399999) & math.MaxInt64) % 86400000 * 1000 })
	case types.Timestamp, types.TimestampTZ:
		switch {
		case t.Prec > 6:
			return ints(func() int64 { return g.within(math.MaxInt64 - 1) })
		case t.Prec <= 3:
			return ints(func() int64 { return g.within(math.MaxInt64/2000) * 1000 })
		}
		return ints(func() int64 { return g.within(math.MaxInt64 / 2) })
	case types.Array:
		off, elems := g.offsets(n, valid)
		return vec.MakeList(dt, off, g.Array(*t.Elem, elems), valid)
	case types.Map:
		off, elems := g.offsets(n, valid)
		k := g.Array(t.Key.WithNotNull(true), elems)
		v := g.Array(*t.Elem, elems)
		st := vec.MakeStruct(dt.(*arrow.MapType).Elem(), elems, []arrow.Array{k, v}, nil)
		return vec.MakeList(dt, off, st, valid)
	case types.Row:
		kids := make([]arrow.Array, len(t.Fields))
		for i, f := range t.Fields {
			kids[i] = g.Array(f.Type, n)
		}
		return vec.MakeStruct(dt, n, kids, valid)
	case types.Variant:
		b := types.Of(types.Bytea).WithNotNull(true)
		return vec.MakeStruct(dt, n, []arrow.Array{g.Array(b, n), g.Array(b, n)}, valid)
	}
	off := make([]int32, n+1)
	var data []byte
	for i := 0; i < n; i++ {
		if t.Kind == types.Bytea {
			data = binary.BigEndian.AppendUint64(data, uint64(g.n()))[:len(data)+g.Intn(9)]
		} else {
			data = g.text(data)
		}
		off[i+1] = int32(len(data))
	}
	return vec.MakeBytes(dt, off, data, valid)
}

func (g *Gen) offsets(n int, valid []byte) (off []int32, elems int) {
	off = make([]int32, n+1)
	for i := 0; i < n; i++ {
		if vec.BitAt(valid, i) && g.Intn(3) > 0 {
			elems += g.Intn(4)
		}
		off[i+1] = int32(elems)
	}
	return off, elems
}

func (g *Gen) decimals(t types.Type, n int) []byte {
	var out []byte
	for i := 0; i < n; i++ {
		v := g.n()
		hi := v >> 63
		switch {
		case t.Prec < 18:
			lim := int64(1)
			for k := uint8(0); k < t.Prec; k++ {
				lim *= 10
			}
			v = g.within(lim - 1)
			hi = v >> 63
		case t.Prec == 18:
			v = g.within(999999999999999999)
			hi = v >> 63
		case t.Prec == 38 && g.Distinct == 0:
			hi = g.within(1 << 61)
		}
		out = binary.LittleEndian.AppendUint64(out, uint64(v))
		out = binary.LittleEndian.AppendUint64(out, uint64(hi))
	}
	return out
}
