package table

import (
	"bytes"
	"context"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// mergeReader reads a merge split: sections through mergetree.Reader.
type mergeReader struct {
	plan   *readPlan
	dir    string
	split  Split
	filter RowFilter
	fschem types.Schema
	c      *format.Counters

	m     *mergetree.Reader
	files []*openFile
	bytes []int64
	im    *piece
	fates map[string]*mergetree.Fate // by file, where rows are only judged
	out   out
	err   error
}

func newMergeReader(im *piece, p Split, o ReadOptions) *mergeReader {
	r := &mergeReader{
		plan: im.read, dir: im.dir, split: p, filter: o.Filter, c: o.Counters, im: im,
		out: out{fields: im.read.fields, size: o.BatchRows},
	}
	return r
}

// Next returns the next batch, nil at the end.
func (r *mergeReader) Next(ctx context.Context) (*vec.Batch, error) {
	if r.err != nil {
		return nil, r.err
	}
	b, err := r.next(ctx)
	if err != nil {
		r.err = r.plan.t.explain(ctx, r.plan.st, r.plan.at, err)
		return nil, r.err
	}
	return b, nil
}

func (r *mergeReader) next(ctx context.Context) (*vec.Batch, error) {
	if r.m == nil {
		if err := r.open(ctx); err != nil {
			return nil, err
		}
	}
	for {
		if b := r.out.next(); b != nil {
			return b, nil
		}
		cols, n, err := r.m.Next(ctx)
		if err != nil || n == 0 {
			return nil, err
		}
		r.out.put(cols, n)
	}
}

func (r *mergeReader) open(ctx context.Context) error {
	p := r.plan
	o := mergetree.Options{
		Codec: p.codec, KeyCols: p.keyCols, SequenceCols: p.seqCols, SequenceDescending: p.seqDesc,
		KeepFirst: p.st.mergeEngine() == "first-row", IgnoreDelete: p.st.ignoreDelete(), Engine: p.st.folds(r.split.Sections),
		OneHigh: p.st.looksUp(), Expire: p.expire,
		WindowRows: p.t.env.sizes.window, KeepDeletes: p.kinds, Columns: p.columns, Types: p.fields.Types(), Counters: r.c,
	}
	if o.Engine == nil && p.st.ignoreDelete() && p.kinds {
		// What becomes of retractions then is the engine's to say.
		o.Engine = p.st.newEngine
	}
	for _, c := range p.seqCols {
		o.SequenceTypes = append(o.SequenceTypes, p.st.schema.Fields[c].Type)
	}
	from, to := p.keyFrom, p.keyTo
	if r.im.from != nil && (from == nil || bytes.Compare(r.im.from, from) > 0) {
		from = r.im.from
	}
	if r.im.to != nil && (to == nil || bytes.Compare(r.im.to, to) < 0) {
		to = r.im.to
	}
	if from != nil {
		o.From = mergetree.NewBound(from)
	}
	if to != nil {
		o.To = mergetree.NewBound(to)
	}
	if r.filter != nil {
		o.FilterPos = r.filter.Columns()
		for _, i := range o.FilterPos {
			r.fschem = append(r.fschem, p.fields[i])
		}
		o.Filter = func(ctx context.Context, cols []arrow.Array, n int) ([]uint16, error) {
			sel, err := r.filter.Select(ctx, &vec.Batch{Schema: r.fschem, Cols: cols, N: n})
			if sel == nil {
				sel = []uint16{}
			}
			return sel, err
		}
	}
	var sections [][][]mergetree.Input
	for _, s := range r.split.Sections {
		var runs [][]mergetree.Input
		for _, files := range s {
			var run []mergetree.Input
			for i := range files {
				in, err := r.input(ctx, &files[i])
				if err != nil {
					return err
				}
				if len(in.Ranges) > 0 {
					run = append(run, in)
				}
			}
			if len(run) > 0 {
				runs = append(runs, run)
			}
		}
		if len(runs) > 0 {
			sections = append(sections, runs)
		}
	}
	r.m = mergetree.NewReader(sections, o)
	return nil
}

// folds returns what makes the engine that merges sections, nil where the newest or
// oldest version of a key wins.
func (st *state) folds(sections [][][]File) func(columns []int) (mergetree.Engine, error) {
	if st.mergeEngine() == "first-row" && mayDelete(sections) {
		return st.newEngine // what becomes of retractions is the engine's to say
	}
	return st.engine()
}

// mayDelete reports whether a file of sections may hold retractions.
func mayDelete(sections [][][]File) bool {
	for _, section := range sections {
		for _, run := range section {
			for i := range run {
				if run[i].Meta.DeleteRows != 0 {
					return true
				}
			}
		}
	}
	return false
}

// input opens one file of a run. Only what is said of keys may narrow its rows:
// a value that a filter refuses may still hide an older one that it would take.
func (r *mergeReader) input(ctx context.Context, f *File) (mergetree.Input, error) {
	p := r.plan
	of, err := p.open(ctx, r.dir, f)
	if err != nil {
		return mergetree.Input{}, err
	}
	of.counters = r.c
	r.files, r.bytes = append(r.files, of), append(r.bytes, of.Bytes())
	n := predicate.Conj(p.keyPart, r.boundFilter())
	whole := format.RowRange{From: 0, To: of.Rows()}
	counters := r.c
	if r.im.from != nil || r.im.to != nil {
		// Several splits share the file: the first counts what the filter skips.
		counters = nil
		if r.im.from == nil {
			if _, err := of.ranges(ctx, whole, p.keyPart, r.c); err != nil {
				return mergetree.Input{}, err
			}
		}
	}
	ranges, err := of.ranges(ctx, whole, n, counters)
	if err != nil {
		return mergetree.Input{}, err
	}
	for _, g := range ranges {
		r.c.Rows += g.To - g.From
	}
	return mergetree.Input{
		Ranges: ranges, DV: of.dv, Only: f.only, Fate: r.fates[f.Meta.Name], Deletes: f.Meta.DeleteRows != 0, Tag: f.Meta.Level,
		MinSequence: f.Meta.MinSequence, MaxSequence: f.Meta.MaxSequence,
		Open: func(ctx context.Context, rg format.RowRange, cols []int) (format.ColumnReader, error) {
			return of.columns(ctx, rg, cols)
		},
	}, nil
}

// boundFilter is the split's key range as a predicate on the first key column, to
// skip pages; the merge cuts exactly.
func (r *mergeReader) boundFilter() predicate.Node {
	p := r.plan
	c := p.keyCols[0]
	f := p.st.schema.Fields[c]
	leaf := func(op predicate.Op, d types.Datum) predicate.Node {
		return &predicate.Leaf{Op: op, Col: c, FieldID: f.ID, Name: f.Name, Type: f.Type, Args: []types.Datum{d}}
	}
	if f.Type.Kind == types.BpChar || f.Type.Kind == types.Float4 || f.Type.Kind == types.Float8 {
		return nil // SQL's order is not the files'
	}
	var nodes []predicate.Node
	if r.im.from != nil {
		if d, ok := p.codec.First(r.im.from); ok {
			nodes = append(nodes, leaf(predicate.GtEq, d))
		}
	}
	if r.im.to != nil {
		if d, ok := p.codec.First(r.im.to); ok {
			nodes = append(nodes, leaf(predicate.LtEq, d))
		}
	}
	return predicate.Conj(nodes...)
}

// Close releases the files.
func (r *mergeReader) Close() error {
	if r.m != nil {
		_ = r.m.Close()
	}
	for i, f := range r.files {
		r.c.BytesRead += max(0, f.Bytes()-r.bytes[i])
		r.plan.close(f)
	}
	r.files = nil
	if r.err == nil {
		r.err = errClosed
	}
	return nil
}

var errClosed = &fileio.UnsupportedError{Feature: "reading a closed split"}

// keyBounds cuts a big section into key ranges of about MergeRows rows by looking
// at the keys of its largest run at even distances. The bounds are byte forms of
// keys, ascending.
func (p *planner) keyBounds(ctx context.Context, l live, s *mergeSection) ([][]byte, error) {
	run := slices.MaxFunc(s.runs, func(a, b []File) int { return int(runRows(a) - runRows(b)) })
	mergeRows := p.t.env.sizes.mergeRows
	step := max(runRows(run)*mergeRows/max(s.rows, 1), 1)
	var out [][]byte
	next, base := step, int64(0)
	for i := range run {
		f := &run[i]
		for next < base+f.Meta.Rows {
			if s.rows-next*s.rows/max(runRows(run), 1) < mergeRows/2 {
				break // the rest is too small to stand alone
			}
			k, err := p.sample(ctx, l, f, next-base)
			if err != nil {
				return nil, err
			}
			if len(out) == 0 || slices.Compare(out[len(out)-1], k) < 0 {
				out = append(out, k)
			}
			next += step
		}
		base += f.Meta.Rows
	}
	return out, nil
}

func runRows(fs []File) int64 {
	n := int64(0)
	for i := range fs {
		n += fs[i].Meta.Rows
	}
	return n
}

// sample returns the key of one row of a file, remembered: file contents do not
// change.
func (p *planner) sample(ctx context.Context, l live, f *File, row int64) ([]byte, error) {
	k := sampleKey{f.Meta.Name, row}
	if b, ok := p.t.env.samples.Get(k); ok {
		return b, nil
	}
	dir := p.bucketDir(l.part, l.Bucket)
	of, err := p.read.open(ctx, dir, f)
	if err != nil {
		return nil, err
	}
	defer p.read.close(of)
	fc, err := of.columns(ctx, format.RowRange{From: row, To: row + 1}, p.keyCols)
	if err != nil {
		return nil, err
	}
	defer fc.Close() //nolint:errcheck // a reader
	cols, err := fc.Read(ctx, 1, nil)
	if err != nil {
		return nil, err
	}
	vals := make([]types.Datum, len(cols))
	for i := range cols {
		vals[i] = vec.DatumAt(cols[i], p.schema.Fields[p.keyCols[i]].Type, 0)
	}
	b := p.codec.Append(nil, vals)
	p.t.env.samples.Put(k, b, int64(len(b)+len(f.Meta.Name)+64))
	return b, nil
}

type sampleKey struct {
	file string
	row  int64
}
