package table

import (
	"context"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/datafile"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// The write buffer under a merge engine: rows are sorted by key, user sequence and
// arrival, keys of several rows are folded, keys of one row are written as they
// are, whatever their kind. Every row has taken a sequence number; what came of
// several has that of the row that the engine calls the last.
// Source: MergeTreeWriter.java, SortBufferWriteBuffer.java.

// bufferFold folds the sorted rows of one bucket.
type bufferFold struct {
	w      *tableWriter
	s      *share
	order  []uint32 // rows of s in merge order
	engine mergetree.Engine
	reads  []int
	at     []int // by column of the table: in what the engine makes, -1 = a key column

	removes bool     // the engine removes rows
	later   []uint32 // versions after a removal of their keys, which take another file

	// One round: keys, and what they become.
	src   []uint16
	row   []uint32
	seq   []int64
	kinds []int8
	vsrc  []uint16
	vrow  []uint32
	vord  []uint32 // of versions: the row of s
	vends []uint32
	vkind []uint8
	multi []int // of versions' keys: place in src

	kindsOf []uint8 // of one key's versions
}

func (w *tableWriter) newFold(s *share, order []uint32) (*bufferFold, error) {
	f := &bufferFold{w: w, s: s, order: order, at: make([]int, len(w.want)), removes: mergetree.Removes(w.st.options)}
	var made []int
	for c := range f.at {
		f.at[c] = -1
		if !slices.Contains(w.keyCols, c) {
			f.at[c] = len(made)
			made = append(made, c)
		}
	}
	var err error
	if f.engine, err = w.engine(made); err != nil {
		return nil, err
	}
	f.reads = f.engine.Reads()
	return f, nil
}

// write folds everything and gives it to out.
func (f *bufferFold) write(ctx context.Context, k *mergetree.Keys, out datafile.Writer, alone bool) error {
	base := f.w.targets[f.s.target].next
	for from := 0; from < len(f.order); {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		from = f.round(k, from, base)
		folded, err := f.fold(base)
		if err != nil {
			return err
		}
		if len(f.src) == 0 {
			continue
		}
		cols, err := f.gather(folded, alone)
		if err != nil {
			return err
		}
		if err := out.Write(ctx, cols, len(f.src), f.seq, f.kinds); err != nil {
			return err
		}
	}
	return nil
}

// round takes the next keys, about chunkRows rows of them, and returns where the
// next one begins.
func (f *bufferFold) round(k *mergetree.Keys, from int, base int64) int {
	f.src, f.row, f.seq, f.kinds = f.src[:0], f.row[:0], f.seq[:0], f.kinds[:0]
	f.vsrc, f.vrow, f.vord, f.vends, f.vkind, f.multi = f.vsrc[:0], f.vrow[:0], f.vord[:0], f.vends[:0], f.vkind[:0], f.multi[:0]
	items := f.w.buf.items
	i := from
	for i < len(f.order) && i-from < chunkRows {
		j := i + 1
		for j < len(f.order) && f.w.codec.Equal(k, int(f.order[i]), int(f.order[j])) {
			j++
		}
		end := j
		if f.removes && j-i > 1 {
			f.kindsOf = f.kindsOf[:0]
			for _, o := range f.order[i:j] {
				f.kindsOf = append(f.kindsOf, items[f.s.src[o]].kind(f.s.row[o]))
			}
			if n := afterRemoval(f.kindsOf); n > 0 {
				end = i + n
				f.later = append(f.later, f.order[end:j]...)
			}
		}
		o := f.order[end-1]
		src, row := f.s.src[o], f.s.row[o]
		if end-i > 1 {
			f.multi = append(f.multi, len(f.src))
			for ; i < end; i++ {
				v := f.order[i]
				vs, vr := f.s.src[v], f.s.row[v]
				f.vsrc, f.vrow, f.vord = append(f.vsrc, vs), append(f.vrow, vr), append(f.vord, v)
				f.vkind = append(f.vkind, items[vs].kind(vr))
			}
			f.vends = append(f.vends, uint32(len(f.vsrc)))
		}
		f.src, f.row = append(f.src, src), append(f.row, row)
		f.seq, f.kinds = append(f.seq, base+int64(o)), append(f.kinds, int8(items[src].kind(row)))
		i = j
	}
	return i
}

// kind returns the kind of a row.
func (it *item) kind(row uint32) uint8 {
	if it.kinds == nil {
		return mergetree.KindInsert
	}
	return it.kinds[row]
}

// fold folds the round's keys of several rows and leaves out those of which
// nothing is left. It returns the columns that the engine made; such keys' src is
// behind the items.
func (f *bufferFold) fold(base int64) ([]arrow.Array, error) {
	if len(f.vends) == 0 {
		return nil, nil
	}
	v := mergetree.Versions{N: len(f.vsrc), Ends: f.vends}
	if slices.ContainsFunc(f.vkind, func(k uint8) bool { return k != mergetree.KindInsert }) {
		v.Kinds = f.vkind
	}
	for _, c := range f.reads {
		v.Cols = append(v.Cols, vec.Decode(f.w.buf.gather(c, f.w.want[c], f.vsrc, f.vrow)))
	}
	var out mergetree.Folded
	if err := f.engine.Fold(&v, &out); err != nil {
		return nil, err
	}
	gone := false
	for i, p := range f.multi {
		last := f.vends[i] - 1
		if out.Last != nil {
			last = out.Last[i]
		}
		f.seq[p] = base + int64(f.vord[last])
		f.src[p], f.row[p], f.kinds[p] = uint16(len(f.w.buf.items)), uint32(i), int8(mergetree.KindInsert)
		if out.Kinds != nil {
			f.kinds[p] = int8(out.Kinds[i])
			gone = gone || out.Kinds[i] == mergetree.NoRow
		}
	}
	if gone {
		n := 0
		for i, k := range f.kinds {
			if uint8(k) != mergetree.NoRow {
				f.src[n], f.row[n], f.seq[n], f.kinds[n] = f.src[i], f.row[i], f.seq[i], k
				n++
			}
		}
		f.src, f.row, f.seq, f.kinds = f.src[:n], f.row[:n], f.seq[:n], f.kinds[:n]
	}
	return out.Cols, nil
}

// gather makes the round's columns: key columns from any row of a key, others from
// its only row or from what was folded.
func (f *bufferFold) gather(folded []arrow.Array, alone bool) ([]arrow.Array, error) {
	b := &f.w.buf
	if folded == nil && len(f.vends) == 0 {
		return f.w.gatherAll(f.src, f.row, alone), nil
	}
	ownSrc, ownRow := slices.Clone(f.src), slices.Clone(f.row)
	for i, s := range f.src {
		if int(s) == len(b.items) {
			at := f.vends[f.row[i]] - 1
			ownSrc[i], ownRow[i] = f.vsrc[at], f.vrow[at]
		}
	}
	return f.w.gatherEach(len(f.row), alone, func(c int) arrow.Array {
		if f.at[c] < 0 {
			return b.gather(c, f.w.want[c], ownSrc, ownRow)
		}
		arrs := make([]arrow.Array, len(b.items)+1)
		for i := range b.items {
			arrs[i] = b.items[i].cols[c]
		}
		arrs[len(b.items)] = folded[f.at[c]]
		return vec.Gather(f.w.want[c], arrs, f.src, f.row)
	}), nil
}
