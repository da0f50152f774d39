package vectorized

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// keyColumn holds one column of the keys of a hash table: entry i belongs to
// group i. NULL equals NULL.
type keyColumn interface {
	// append adds the rows of a as new entries.
	append(a arrow.Array, rows []uint16)
	// equal clears eq[k] where entry groups[k] differs from row rows[k] of a.
	equal(a arrow.Array, rows []uint16, groups []uint32, eq []uint8)
	// slice returns entries [from, to) as an array; not after further appends
	// to the same entries, which never change.
	slice(from, to int) arrow.Array
	size() int64
}

func newKeyColumn(t types.Type) keyColumn {
	switch t.Kind {
	case types.TinyInt, types.Int2:
		return &fixedKeys[int16]{dt: t.Arrow()}
	case types.Int4, types.Date:
		return &fixedKeys[int32]{dt: t.Arrow()}
	case types.Float4:
		return &fixedKeys[float32]{dt: t.Arrow(), float: true}
	case types.Float8:
		return &fixedKeys[float64]{dt: t.Arrow(), float: true}
	case types.Bool:
		return &boolKeys{}
	case types.Numeric:
		return &numericKeys{}
	case types.UUID:
		return &canonKeys{t: t}
	}
	switch {
	case t.IsInteger(), t.IsOIDLike(), t.Kind == types.Time, t.Kind == types.Timestamp, t.Kind == types.TimestampTZ:
		return &fixedKeys[int64]{dt: t.Arrow()}
	case t.IsTextLike() && t.Kind != types.BpChar && t.Kind != types.JSONB, t.Kind == types.Bytea:
		return &byteKeys{dt: t.Arrow(), offs: []int64{0}}
	}
	return &canonKeys{t: t}
}

// nullBits is a growing validity bitmap that exists once there is a NULL.
type nullBits struct {
	n     int
	valid []byte
}

func (b *nullBits) add(valid bool) {
	if b.valid == nil {
		if valid {
			b.n++
			return
		}
		b.valid = vec.FullBitmap(b.n)
	}
	if b.n>>3 >= len(b.valid) {
		b.valid = append(b.valid, 0)
	}
	if valid {
		vec.SetBit(b.valid, b.n)
	} else {
		vec.ClearBit(b.valid, b.n)
	}
	b.n++
}

func (b *nullBits) addMany(n int) {
	if b.valid == nil {
		b.n += n
		return
	}
	for range n {
		b.add(true)
	}
}

func (b *nullBits) copy(from, to int) []byte { return vec.CopyBits(b.valid, from, to-from) }

type fixedKeys[T int16 | int32 | int64 | float32 | float64] struct {
	dt    arrow.DataType
	v     []T
	nulls nullBits
	float bool
}

func (c *fixedKeys[T]) append(a arrow.Array, rows []uint16) {
	w := vec.ViewOf[T](a)
	for _, i := range rows {
		c.v = append(c.v, w.V[i])
	}
	if w.Valid == nil {
		c.nulls.addMany(len(rows))
		return
	}
	for _, i := range rows {
		c.nulls.add(!w.IsNull(int(i)))
	}
}

func (c *fixedKeys[T]) equal(a arrow.Array, rows []uint16, groups []uint32, eq []uint8) {
	w := vec.ViewOf[T](a)
	if w.Valid == nil && c.nulls.valid == nil && !c.float {
		for k, i := range rows {
			if w.V[i] != c.v[groups[k]] {
				eq[k] = 0
			}
		}
		return
	}
	for k, i := range rows {
		g := groups[k]
		p, q := !w.IsNull(int(i)), vec.BitAt(c.nulls.valid, int(g))
		if p != q {
			eq[k] = 0
			continue
		}
		// x != x holds for NaN only, and NaN equals NaN here.
		if x, y := w.V[i], c.v[g]; p && x != y && (x == x || y == y) {
			eq[k] = 0
		}
	}
}

func (c *fixedKeys[T]) slice(from, to int) arrow.Array {
	return vec.Make(c.dt, c.v[from:to:to], c.nulls.copy(from, to))
}

func (c *fixedKeys[T]) size() int64 {
	var z T
	return int64(cap(c.v))*int64(sizeOf(z)) + int64(cap(c.nulls.valid))
}

func sizeOf[T int16 | int32 | int64 | float32 | float64](z T) int {
	switch any(z).(type) {
	case int16:
		return 2
	case int32, float32:
		return 4
	}
	return 8
}

type boolKeys struct {
	v     []uint8
	nulls nullBits
}

func (c *boolKeys) append(a arrow.Array, rows []uint16) {
	b := a.(*array.Boolean)
	for _, i := range rows {
		x := uint8(0)
		valid := b.IsValid(int(i))
		if valid && b.Value(int(i)) {
			x = 1
		}
		c.v = append(c.v, x)
		c.nulls.add(valid)
	}
}

func (c *boolKeys) equal(a arrow.Array, rows []uint16, groups []uint32, eq []uint8) {
	b := a.(*array.Boolean)
	for k, i := range rows {
		g := groups[k]
		p, q := b.IsValid(int(i)), vec.BitAt(c.nulls.valid, int(g))
		if p != q || p && b.Value(int(i)) != (c.v[g] == 1) {
			eq[k] = 0
		}
	}
}

func (c *boolKeys) slice(from, to int) arrow.Array {
	return vec.MakeBool(to-from, vec.PackBools(c.v[from:to]), c.nulls.copy(from, to))
}

func (c *boolKeys) size() int64 { return int64(cap(c.v)) + int64(cap(c.nulls.valid)) }

// byteKeys holds strings whose equality is that of their bytes.
type byteKeys struct {
	dt    arrow.DataType
	offs  []int64
	data  []byte
	nulls nullBits
}

// strings reads a text column, plain or a dictionary.
type stringReader struct {
	v     vec.StrView
	idx   []int32
	valid []byte
	off   int
}

func readStrings(a arrow.Array) stringReader {
	r := stringReader{}
	r.valid, r.off = vec.Validity(a)
	if idx, dict, ok := vec.DictView(a); ok {
		r.v, r.idx = vec.ViewStr(dict), idx
		return r
	}
	a = vec.Decode(a)
	r.v = vec.ViewStr(a)
	return r
}

func (r *stringReader) at(i int) []byte {
	if r.idx != nil {
		i = int(r.idx[i])
	}
	return r.v.Data[r.v.Offs[i]:r.v.Offs[i+1]]
}

func (r *stringReader) null(i int) bool { return !vec.BitAt(r.valid, r.off+i) }

func (c *byteKeys) append(a arrow.Array, rows []uint16) {
	r := readStrings(a)
	for _, i := range rows {
		ok := !r.null(int(i))
		if ok {
			c.data = append(c.data, r.at(int(i))...)
		}
		c.offs = append(c.offs, int64(len(c.data)))
		c.nulls.add(ok)
	}
}

func (c *byteKeys) equal(a arrow.Array, rows []uint16, groups []uint32, eq []uint8) {
	r := readStrings(a)
	if r.valid == nil && c.nulls.valid == nil && r.idx == nil {
		from, data, offs := r.v.Offs, r.v.Data, c.offs
		eq = eq[:len(rows)]
		groups = groups[:len(rows)]
		for k, i := range rows {
			g := groups[k]
			o, p := from[i], offs[g]
			n := int64(from[int(i)+1] - o)
			if n != offs[g+1]-p || string(data[o:int64(o)+n]) != string(c.data[p:p+n]) {
				eq[k] = 0
			}
		}
		return
	}
	if r.valid == nil && c.nulls.valid == nil {
		for k, i := range rows {
			g := groups[k]
			if string(r.at(int(i))) != string(c.data[c.offs[g]:c.offs[g+1]]) {
				eq[k] = 0
			}
		}
		return
	}
	for k, i := range rows {
		g := groups[k]
		p, q := !r.null(int(i)), vec.BitAt(c.nulls.valid, int(g))
		if p != q || p && string(r.at(int(i))) != string(c.data[c.offs[g]:c.offs[g+1]]) {
			eq[k] = 0
		}
	}
}

func (c *byteKeys) slice(from, to int) arrow.Array {
	base := c.offs[from]
	offs := make([]int32, to-from+1)
	for i := range offs {
		offs[i] = int32(c.offs[from+i] - base)
	}
	end := c.offs[to]
	return vec.MakeBytes(c.dt, offs, c.data[base:end:end], c.nulls.copy(from, to))
}

func (c *byteKeys) size() int64 {
	return int64(cap(c.offs))*8 + int64(cap(c.data)) + int64(cap(c.nulls.valid))
}

// numericKeys holds numerics as Decimal128 of one scale for as long as they come
// like that, and in canonical form from then on.
type numericKeys struct {
	dt    *arrow.Decimal128Type
	v     []decimal128.Num
	nulls nullBits
	canon *canonKeys
	// raw holds the binary forms beside canon: values that are equal nearly
	// always look equal, too.
	raw byteKeys
}

func (c *numericKeys) same(a arrow.Array) bool {
	d, ok := a.DataType().(*arrow.Decimal128Type)
	return ok && (c.dt == nil || d.Scale == c.dt.Scale)
}

func (c *numericKeys) append(a arrow.Array, rows []uint16) {
	if c.canon == nil && !c.same(a) {
		c.toCanon()
	}
	if c.canon != nil {
		c.canon.append(a, rows)
		c.raw.append(vec.DecBinary(a), rows)
		return
	}
	d := a.DataType().(*arrow.Decimal128Type)
	if c.dt == nil || d.Precision > c.dt.Precision {
		c.dt = d
	}
	v, valid, off := vec.ViewDec(a)
	for _, i := range rows {
		c.v = append(c.v, v[i])
		c.nulls.add(vec.BitAt(valid, off+int(i)))
	}
}

// toCanon moves what there is to the canonical form.
func (c *numericKeys) toCanon() {
	c.canon = &canonKeys{t: types.Of(types.Numeric)}
	c.raw.offs = []int64{0}
	n := len(c.v)
	if n == 0 {
		return
	}
	a := c.decimals(0, n)
	for from := 0; from < n; from += vec.MaxRows {
		part := vec.Slice(a, from, min(n, from+vec.MaxRows))
		rows := make([]uint16, part.Len())
		copySel(part.Len(), nil, rows)
		c.canon.append(part, rows)
		c.raw.append(vec.DecBinary(part), rows)
	}
	c.v, c.nulls = nil, nullBits{}
}

func (c *numericKeys) decimals(from, to int) arrow.Array {
	var dt arrow.DataType = c.dt
	if c.dt == nil {
		dt = &arrow.Decimal128Type{Precision: 38}
	}
	return vec.MakeDec128(dt, c.v[from:to:to], c.nulls.copy(from, to))
}

func (c *numericKeys) equal(a arrow.Array, rows []uint16, groups []uint32, eq []uint8) {
	if c.canon != nil {
		c.equalCanon(a, rows, groups, eq)
		return
	}
	if !c.same(a) {
		// Several workers may probe at once: compare, but do not convert.
		same := vec.NewEqual(types.Of(types.Numeric), a, c.decimals(0, len(c.v)))
		for k, i := range rows {
			if !same(int(i), int(groups[k])) {
				eq[k] = 0
			}
		}
		return
	}
	v, valid, off := vec.ViewDec(a)
	for k, i := range rows {
		g := groups[k]
		p, q := vec.BitAt(valid, off+int(i)), vec.BitAt(c.nulls.valid, int(g))
		if p != q || p && v[i] != c.v[g] {
			eq[k] = 0
		}
	}
}

func (c *numericKeys) equalCanon(a arrow.Array, rows []uint16, groups []uint32, eq []uint8) {
	if a.DataType().ID() != arrow.BINARY {
		c.canon.equal(a, rows, groups, eq)
		return
	}
	look := make([]uint8, len(rows))
	for k := range look {
		look[k] = 1
	}
	c.raw.equal(a, rows, groups, look)
	var r []uint16
	var g, at []uint32
	for k, same := range look {
		if same == 0 {
			r, g, at = append(r, rows[k]), append(g, groups[k]), append(at, uint32(k))
		}
	}
	if len(r) == 0 {
		return
	}
	sub := make([]uint8, len(r))
	for k := range sub {
		sub[k] = 1
	}
	c.canon.equal(a, r, g, sub)
	for k, same := range sub {
		if same == 0 {
			eq[at[k]] = 0
		}
	}
}

func (c *numericKeys) slice(from, to int) arrow.Array {
	if c.canon != nil {
		return c.canon.slice(from, to)
	}
	return c.decimals(from, to)
}

func (c *numericKeys) size() int64 {
	n := int64(cap(c.v))*16 + int64(cap(c.nulls.valid))
	if c.canon != nil {
		n += c.canon.size() + c.raw.size()
	}
	return n
}

// canonKeys holds values of types whose equality is not that of their bytes:
// canonical bytes to compare, and the values as they first came to give back.
type canonKeys struct {
	t      types.Type
	keys   byteKeys
	parts  []arrow.Array
	starts []int
	bytes  int64
}

func (c *canonKeys) append(a arrow.Array, rows []uint16) {
	if len(rows) == 0 {
		return
	}
	if c.keys.offs == nil {
		c.keys.offs = []int64{0}
	}
	k := vec.NewKeyer([]vec.KeyColumn{{Type: c.t}}, []arrow.Array{a})
	c.starts = append(c.starts, len(c.keys.offs)-1)
	for _, i := range rows {
		c.keys.data = k.Append(c.keys.data, int(i))
		c.keys.offs = append(c.keys.offs, int64(len(c.keys.data)))
	}
	p := vec.Take(a, rows)
	c.parts = append(c.parts, p)
	c.bytes += vec.Size(p) + 100
}

func (c *canonKeys) equal(a arrow.Array, rows []uint16, groups []uint32, eq []uint8) {
	k := vec.NewKeyer([]vec.KeyColumn{{Type: c.t}}, []arrow.Array{a})
	var buf []byte
	for j, i := range rows {
		g := groups[j]
		buf = k.Append(buf[:0], int(i))
		if string(buf) != string(c.keys.data[c.keys.offs[g]:c.keys.offs[g+1]]) {
			eq[j] = 0
		}
	}
}

func (c *canonKeys) slice(from, to int) arrow.Array {
	if to == from {
		return vec.MakeNull(c.t.Arrow(), 0)
	}
	// Binary search of the first part.
	lo, hi := 0, len(c.starts)
	for hi-lo > 1 {
		if m := (lo + hi) / 2; c.starts[m] <= from {
			lo = m
		} else {
			hi = m
		}
	}
	var out []arrow.Array
	for ; from < to; lo++ {
		p := c.parts[lo]
		b := from - c.starts[lo]
		e := min(p.Len(), to-c.starts[lo])
		out = append(out, vec.Slice(p, b, e))
		from += e - b
	}
	return vec.Concat(c.t.Arrow(), out)
}

func (c *canonKeys) size() int64 { return c.keys.size() + c.bytes }
