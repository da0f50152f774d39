package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

var errNotNull = errors.New("a NULL is given for a column that is NOT NULL")

// columnWriter takes arrays of one column apart into levels and values.
type columnWriter struct {
	b      *bnode
	f      types.Field
	leaves []*leafWriter
	copyOf int // 1 + the column whose bytes are this one's, 0 = none
	idx    []int32
	tmp    []byte
}

// append writes rows from..to of a.
func (c *columnWriter) append(a arrow.Array, from, to int) error {
	if c.b.kind == kLeaf {
		return c.flat(c.leaves[0], a, from, to)
	}
	w := shredder{c: c}
	at := map[*leaf]int{}
	for i, l := range c.leaves {
		at[l.l] = i
	}
	n, err := w.node(c.b, a, at)
	if err != nil {
		return err
	}
	w.idx = make([][]int32, len(c.leaves))
	for i := from; i < to; i++ {
		if err := n.put(&w, i, 0, 0); err != nil {
			return err
		}
		for _, l := range c.leaves {
			l.rows++
		}
	}
	for k, l := range c.leaves {
		if err := c.values(l, w.arrs[k], w.idx[k], 0, 0); err != nil {
			return err
		}
	}
	return nil
}

// flat writes a top-level scalar: levels from the validity bitmap.
func (c *columnWriter) flat(w *leafWriter, a arrow.Array, from, to int) error {
	n := to - from
	w.rows += n
	w.entries += n
	if w.l.node.def == 0 {
		if a.NullN() > 0 {
			for i := from; i < to; i++ {
				if a.IsNull(i) {
					return errNotNull
				}
			}
		}
		return c.values(w, a, nil, from, to)
	}
	d := a.Data()
	if d.NullN() == 0 || len(a.NullBitmapBytes()) == 0 {
		if len(w.defs) == 0 {
			w.ones += n
		} else {
			w.present(n)
		}
		return c.values(w, a, nil, from, to)
	}
	if w.ones > 0 {
		w.present(w.ones)
		w.ones = 0
	}
	at := len(w.defs)
	w.defs = grown(w.defs, at+n)
	defs := w.defs[at:]
	bm, off := a.NullBitmapBytes(), d.Offset()+from
	c.idx = c.idx[:0]
	for i := range defs {
		defs[i] = bm[(off+i)>>3] >> ((off + i) & 7) & 1
		if defs[i] != 0 {
			c.idx = append(c.idx, int32(from+i))
		}
	}
	w.nulls += int64(n - len(c.idx))
	if len(c.idx) == n {
		return c.values(w, a, nil, from, to)
	}
	return c.values(w, a, c.idx, 0, 0)
}

// present notes n entries that are not NULL.
func (w *leafWriter) present(n int) {
	at := len(w.defs)
	w.defs = grown(w.defs, at+n)
	for i := range w.defs[at:] {
		w.defs[at+i] = 1
	}
}

// values appends elements of a: those in idx, or from..to when idx is nil. None
// of them is NULL.
func (c *columnWriter) values(w *leafWriter, a arrow.Array, idx []int32, from, to int) error {
	if idx == nil && from == to {
		return nil
	}
	switch a := a.(type) {
	case *array.Boolean:
		if w.l.conv != cvBool {
			break
		}
		each(idx, from, to, func(i int) { w.putBool(a.Value(i)) })
		return nil
	case *array.String, *array.Binary:
		if w.l.conv != cvBytes {
			break
		}
		v := vec.ViewStr(a)
		if idx == nil {
			w.putAll(&v, from, to)
			return nil
		}
		each(idx, from, to, func(i int) { w.putBytes(v.At(i)) })
		return nil
	case *array.Dictionary:
		return c.indexed(w, a, idx, from, to)
	}
	p, err := c.plain(w, a, idx, from, to)
	if err != nil {
		return err
	}
	w.putFixed(p)
	return nil
}

func each(idx []int32, from, to int, fn func(i int)) {
	if idx == nil {
		for i := from; i < to; i++ {
			fn(i)
		}
		return
	}
	for _, i := range idx {
		fn(int(i))
	}
}

// indexed writes a dictionary array. Its entries are looked up once for as long
// as batches share the dictionary.
func (c *columnWriter) indexed(w *leafWriter, a *array.Dictionary, idx []int32, from, to int) error {
	d := a.Dictionary()
	if _, ok := d.(*array.String); !ok || w.l.conv != cvBytes {
		return fmt.Errorf("a dictionary of %s is given", d.DataType())
	}
	ix, ok := a.Indices().(*array.Int32)
	if !ok {
		return fmt.Errorf("a dictionary with indices of %s is given", a.Indices().DataType())
	}
	if w.transOf != d.Data() {
		w.transOf = d.Data()
		w.trans = make([]int32, d.Len())
		for i := range w.trans {
			w.trans[i] = -1
		}
	}
	v, ks := vec.ViewStr(d), ix.Int32Values()
	var err error
	each(idx, from, to, func(i int) {
		k := ks[i]
		if k < 0 || int(k) >= d.Len() {
			err = errIndex
			return
		}
		w.putIndexed(k, v.At(int(k)))
	})
	return err
}

// plain makes the PLAIN form of fixed-width values.
func (c *columnWriter) plain(w *leafWriter, a arrow.Array, idx []int32, from, to int) ([]byte, error) {
	if !arrow.TypeEqual(a.DataType(), w.l.t.Arrow()) {
		return nil, fmt.Errorf("an array of %s is given", a.DataType())
	}
	n := to - from
	if idx != nil {
		n = len(idx)
	}
	out := grown(c.tmp[:0], n*w.w)[:n*w.w]
	c.tmp = out
	le := binary.LittleEndian
	switch w.l.conv {
	case cvNarrow:
		v, j := vec.ViewOf[int16](a).V, 0
		each(idx, from, to, func(i int) { le.PutUint32(out[4*j:], uint32(int32(v[i]))); j++ })
	case cvCopy4:
		gatherRaw(out, vec.Bytes(vec.ViewOf[int32](a).V), 4, idx, from, to)
	case cvCopy8:
		gatherRaw(out, vec.Bytes(vec.ViewOf[int64](a).V), 8, idx, from, to)
	case cvTimeMs:
		v, j := vec.ViewOf[int64](a).V, 0
		each(idx, from, to, func(i int) { le.PutUint32(out[4*j:], uint32(int32(v[i]/1000))); j++ })
	case cvMul1000: // microseconds to milliseconds
		v, j := vec.ViewOf[int64](a).V, 0
		each(idx, from, to, func(i int) { le.PutUint64(out[8*j:], uint64(floorDiv(v[i], 1000))); j++ })
	case cvI96ns:
		v, j := vec.ViewOf[int64](a).V, 0
		each(idx, from, to, func(i int) {
			w.boundNanos(v[i])
			day := floorDiv(v[i], nanosPerDay)
			le.PutUint64(out[12*j:], uint64(v[i]-day*nanosPerDay))
			le.PutUint32(out[12*j+8:], uint32(day+julianEpoch))
			j++
		})
	case cvDec32, cvDec64, cvDecBE:
		return out, decimals(out, w.w, w.l.conv, a, idx, from, to)
	default:
		return nil, fmt.Errorf("an array of %s is given", a.DataType())
	}
	return out, nil
}

func (w *leafWriter) boundNanos(v int64) {
	if !w.hasNanos {
		w.hasNanos, w.nanos = true, [2]int64{v, v}
	}
	w.nanos[0], w.nanos[1] = min(w.nanos[0], v), max(w.nanos[1], v)
}

func gatherRaw(out, v []byte, w int, idx []int32, from, to int) {
	if idx == nil {
		copy(out, v[from*w:to*w])
		return
	}
	pickRaw(out, v, w, idx)
}

// decimals writes Decimal128 values in w bytes. A value that needs more is an
// error: it has more digits than its type.
func decimals(out []byte, w int, cv conv, a arrow.Array, idx []int32, from, to int) error {
	v, _, _ := vec.ViewDec(a)
	j := 0
	wide := false
	each(idx, from, to, func(i int) {
		lo, hi := v[i].LowBits(), v[i].HighBits()
		switch cv {
		case cvDec32:
			wide = wide || hi != int64(lo)>>63 || int64(lo) > math.MaxInt32 || int64(lo) < math.MinInt32
			binary.LittleEndian.PutUint32(out[4*j:], uint32(lo))
		case cvDec64:
			wide = wide || hi != int64(lo)>>63
			binary.LittleEndian.PutUint64(out[8*j:], lo)
		default:
			var b [16]byte
			binary.BigEndian.PutUint64(b[:], uint64(hi))
			binary.BigEndian.PutUint64(b[8:], lo)
			for _, c := range b[:16-w] {
				wide = wide || c != byte(hi>>63)
			}
			wide = wide || w < 16 && int8(b[16-w])>>7 != int8(hi>>63)
			copy(out[w*j:], b[16-w:])
		}
		j++
	})
	if wide {
		return errors.New("a decimal has more digits than its type")
	}
	return nil
}

// shredder takes rows of a nested column apart.
type shredder struct {
	c    *columnWriter
	arrs []arrow.Array // the elements of each leaf
	idx  [][]int32     // which of them follow
}

// shredNode is a node of the column with the array that holds its slots.
type shredNode struct {
	b      *bnode
	kids   []*shredNode
	leaves []int // leaves below
	max    uint8 // definition level when present
	valid  []byte
	off    int
	offs   []int32 // of lists and maps
}

func (w *shredder) node(b *bnode, a arrow.Array, at map[*leaf]int) (*shredNode, error) {
	n := &shredNode{b: b, max: uint8(b.def), off: a.Data().Offset()}
	if a.NullN() > 0 {
		n.valid = a.NullBitmapBytes()
	}
	if w.arrs == nil {
		w.arrs = make([]arrow.Array, len(w.c.leaves))
	}
	var kids []arrow.Array
	switch b.kind {
	case kLeaf:
		k := at[b.leaf]
		n.leaves = []int{k}
		w.arrs[k] = a
		return n, nil
	case kStruct:
		s, ok := a.(*array.Struct)
		if !ok || s.NumField() != len(b.children) {
			return nil, fmt.Errorf("an array of %s is given", a.DataType())
		}
		for i := range b.children {
			kids = append(kids, s.Field(i))
		}
	case kMap:
		m, ok := a.(*array.Map)
		if !ok {
			return nil, fmt.Errorf("an array of %s is given", a.DataType())
		}
		n.offs, kids = m.Offsets()[n.off:], []arrow.Array{m.Keys(), m.Items()}
	case kList:
		switch l := a.(type) {
		case *array.List:
			n.offs, kids = l.Offsets()[n.off:], []arrow.Array{l.ListValues()}
		default:
			return nil, fmt.Errorf("an array of %s is given", a.DataType())
		}
	}
	for i, k := range kids {
		c, err := w.node(b.children[i], k, at)
		if err != nil {
			return nil, err
		}
		n.kids = append(n.kids, c)
		n.leaves = append(n.leaves, c.leaves...)
	}
	return n, nil
}

// none writes an entry without a value to every leaf below n.
func (n *shredNode) none(w *shredder, rep, def uint8) {
	for _, k := range n.leaves {
		l := w.c.leaves[k]
		l.entries++
		l.nulls++
		if l.l.node.rep > 0 {
			l.reps = append(l.reps, rep)
		}
		if l.l.node.def > 0 {
			l.defs = append(l.defs, def)
		}
	}
}

// put writes slot i. def is the level of what is around it.
func (n *shredNode) put(w *shredder, i int, rep, def uint8) error {
	if n.valid != nil && !bitutil.BitIsSet(n.valid, n.off+i) {
		if def == n.max {
			return errNotNull
		}
		n.none(w, rep, def)
		return nil
	}
	switch n.b.kind {
	case kLeaf:
		k := n.leaves[0]
		l := w.c.leaves[k]
		l.entries++
		if l.l.node.rep > 0 {
			l.reps = append(l.reps, rep)
		}
		if l.l.node.def > 0 {
			l.defs = append(l.defs, n.max)
		}
		w.idx[k] = append(w.idx[k], int32(i))
		return nil
	case kStruct:
		for _, c := range n.kids {
			if err := c.put(w, i, rep, n.max); err != nil {
				return err
			}
		}
		return nil
	}
	from, to := n.offs[i], n.offs[i+1]
	if from == to {
		n.none(w, rep, n.max)
		return nil
	}
	for j := from; j < to; j++ {
		if j > from {
			rep = uint8(n.b.elemRep)
		}
		for _, c := range n.kids {
			if err := c.put(w, int(j), rep, uint8(n.b.elemDef)); err != nil {
				return err
			}
		}
	}
	return nil
}

// rowsOfBytes is how many of the k rows from at on to take so that a page does
// not get much bigger than limit.
func rowsOfBytes(a arrow.Array, at, k, limit int) int {
	for k > 1 && varBytes(a, at, at+k) > limit {
		k /= 2
	}
	return k
}

// varBytes is the size of the variable-length data of rows from..to.
func varBytes(a arrow.Array, from, to int) int {
	switch a := a.(type) {
	case *array.String, *array.Binary:
		v := vec.ViewStr(a)
		if len(v.Offs) <= to {
			return 0
		}
		return int(v.Offs[to] - v.Offs[from])
	case *array.Dictionary:
		d, ok := a.Dictionary().(*array.String)
		if !ok || d.Len() == 0 {
			return 0
		}
		return (to - from) * (len(d.ValueBytes()) / d.Len())
	case *array.Struct:
		n := 0
		for i := 0; i < a.NumField(); i++ {
			n += varBytes(a.Field(i), from, to)
		}
		return n
	case *array.List:
		o := a.Offsets()[a.Data().Offset():]
		return int(o[to]-o[from]) + varBytes(a.ListValues(), int(o[from]), int(o[to]))
	case *array.Map:
		o := a.Offsets()[a.Data().Offset():]
		return int(o[to]-o[from]) + varBytes(a.Keys(), int(o[from]), int(o[to])) + varBytes(a.Items(), int(o[from]), int(o[to]))
	}
	return 0
}
