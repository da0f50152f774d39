package table

import (
	"context"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// What an engine folds the versions of a section's keys into is as constant as the
// section is, and takes many times as long to find as to keep: columns of it are
// remembered, by verdict and key range, in a budget of their own. A split of folded
// rows that is read for columns that are all there is as cheap as rows in memory are;
// else it is merged, without the filter, and what comes of it is kept.

// foldedKey names a column of the folded rows of a section in a key range.
type foldedKey struct {
	section  verdictKey
	from, to string
	open     uint8 // 1: from is open, 2: to is
	field    int32
}

// foldedColumn is a column in pieces, as the merge made them.
type foldedColumn struct {
	parts []arrow.Array
}

// foldedPart says that a merge split holds the folded rows of a section, and nothing
// else.
type foldedPart struct{ section verdictKey }

// keepsFolded reports whether the plan's folded rows are the ones of any plan: all
// keys, and whole columns of the table.
func (p *planner) keepsFolded() bool {
	r := p.read
	ofKeys := predicate.Only(p.filter, func(c int) bool { return slices.Contains(p.keyCols, c) })
	return p.t.env.folded != nil && ofKeys == nil && len(r.pruned) == 0 && !r.kinds && !slices.ContainsFunc(r.columns, func(c int) bool { return c < 0 })
}

// foldedReader reads a split of folded rows.
type foldedReader struct {
	plan  *readPlan
	im    *piece
	split Split
	o     ReadOptions

	filter []int // scan columns that the filter needs
	open   bool
	have   [][]arrow.Array // by column, then piece; nil = merging
	at     int
	merge  *mergeReader
	made   []foldedColumn // nil = not kept
	bytes  []int64
	held   int64 // charged
	rows   int64
	out    out
	err    error
}

func newFoldedReader(im *piece, p Split, o ReadOptions) *foldedReader {
	r := &foldedReader{plan: im.read, im: im, split: p, o: o, out: out{fields: im.read.fields, size: o.BatchRows}}
	if o.Filter != nil {
		r.filter = o.Filter.Columns()
	}
	return r
}

func (r *foldedReader) key(col int) foldedKey {
	k := foldedKey{section: r.im.fold.section, from: string(r.im.from), to: string(r.im.to), field: r.plan.st.schema.Fields[col].ID}
	if r.im.from == nil {
		k.open |= 1
	}
	if r.im.to == nil {
		k.open |= 2
	}
	return k
}

// start looks for the columns, or opens the merge.
func (r *foldedReader) start() {
	r.open = true
	have := make([][]arrow.Array, len(r.plan.columns))
	for i, c := range r.plan.columns {
		f, ok := r.plan.t.env.folded.Get(r.key(c))
		if !ok || i > 0 && !samePieces(have[0], f.parts) {
			have = nil
			break
		}
		have[i] = f.parts
	}
	if len(have) > 0 {
		r.have = have
		return
	}
	im, read := *r.im, *r.plan
	read.keyPart, read.keyFrom, read.keyTo = nil, nil, nil // of partitions, which the section is in
	im.read = &read
	r.merge = newMergeReader(&im, r.split, ReadOptions{BatchRows: 1 << 16, Counters: r.o.Counters, Account: r.o.Account})
	r.made = make([]foldedColumn, len(r.plan.columns))
	r.bytes = make([]int64, len(r.plan.columns))
}

func samePieces(a, b []arrow.Array) bool {
	return slices.EqualFunc(a, b, func(x, y arrow.Array) bool { return x.Len() == y.Len() })
}

// Next returns the next batch, nil at the end.
func (r *foldedReader) Next(ctx context.Context) (*vec.Batch, error) {
	if r.err != nil {
		return nil, r.err
	}
	for {
		if b := r.out.next(); b != nil {
			return b, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		cols, n, err := r.piece(ctx)
		if err == nil && n > 0 {
			err = r.put(ctx, cols, n)
		}
		if err != nil {
			r.err = err
			return nil, err
		}
		if n == 0 {
			return nil, nil
		}
	}
}

// piece returns the next rows, unfiltered; n is 0 at the end.
func (r *foldedReader) piece(ctx context.Context) (cols []arrow.Array, n int, err error) {
	if !r.open {
		r.start()
	}
	if r.have != nil {
		if r.at >= len(r.have[0]) {
			return nil, 0, nil
		}
		for _, parts := range r.have {
			cols = append(cols, parts[r.at])
		}
		r.at++
		r.o.Counters.Rows += int64(cols[0].Len())
		return cols, cols[0].Len(), nil
	}
	b, err := r.merge.Next(ctx)
	if err != nil {
		return nil, 0, err
	}
	if b == nil {
		r.keep()
		return nil, 0, nil
	}
	r.note(b)
	return b.Cols, b.N, nil
}

// note adds a batch to what will be remembered, unless it would be too much.
func (r *foldedReader) note(b *vec.Batch) {
	if r.made == nil {
		return
	}
	r.rows += int64(b.N)
	grown, total := int64(0), int64(0)
	for i, a := range b.Cols {
		a = vec.Decode(a) // a dictionary would keep more than its rows
		b.Cols[i] = a
		size := vec.Size(a) + 128
		r.made[i].parts = append(r.made[i].parts, a)
		r.bytes[i] += size
		grown += size
		total += r.bytes[i]
	}
	// What all splits of the plan would take, by the rows that are read so far.
	if r.rows > 0 && total/r.rows*r.plan.foldRows > r.plan.t.env.foldedBytes*3/4 || r.o.Account.Grow(grown) != nil {
		r.drop()
		return
	}
	r.held += grown
}

func (r *foldedReader) drop() {
	r.made = nil
	r.o.Account.Shrink(r.held)
	r.held = 0
}

// keep remembers what was merged.
func (r *foldedReader) keep() {
	if r.made == nil {
		return
	}
	for i, c := range r.plan.columns {
		r.plan.t.env.folded.Put(r.key(c), &r.made[i], r.bytes[i]+256)
	}
	r.drop()
}

// put queues the rows of a piece that pass the filter.
func (r *foldedReader) put(ctx context.Context, cols []arrow.Array, n int) error {
	f := r.o.Filter
	if f == nil {
		r.out.put(cols, n)
		return nil
	}
	b := &vec.Batch{N: n}
	for _, i := range r.filter {
		b.Schema = append(b.Schema, r.plan.fields[i])
		b.Cols = append(b.Cols, cols[i])
	}
	sel, err := f.Select(ctx, b)
	switch {
	case err != nil || len(sel) == 0:
		return err
	case len(sel) == n:
		r.out.put(cols, n)
	case r.o.Selections && len(sel)*100 >= n*denseShare:
		r.out.putSel(cols, n, slices.Clone(sel))
	default:
		out := make([]arrow.Array, len(cols))
		for i, a := range cols {
			out[i] = vec.FilterSel(a, sel)
		}
		r.out.put(out, len(sel))
	}
	return nil
}

// Close releases the files.
func (r *foldedReader) Close() error {
	if r.held > 0 || r.made != nil {
		r.drop()
	}
	if r.merge != nil {
		_ = r.merge.Close()
		r.merge = nil
	}
	r.have, r.out.cols, r.out.n = nil, nil, 0
	if r.err == nil {
		r.err = errClosed
	}
	return nil
}
