package table

import (
	"bytes"
	"context"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"golang.org/x/sync/errgroup"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// A verdict is derived where most rows' fate is known without merging them: files of
// an earlier verdict, when what came since was only added, and files that overlap no
// other known one, the rows of which are all final. The keys of the other files, few,
// are looked up in those:
//
//	known    k1 k2 k3 k4 k5   live: all                  live: k1 k3 k5
//	new         k2    k4      looked up: found k2, k4 => live: k2 k4 (or all folded)
//
// So a commit costs the merge of what it brought. What is found only tells which rows
// are versions of one key; who wins must follow from that alone:
//
//   - where an engine folds, all of them are folded, whatever their order; but where
//     there are retractions, a known row that is neither live nor folded may come back;
//   - where the last (or first) version wins, the new files must be newer than all the
//     known ones. Whatever retracted a known row then stays its end.
//
// Else the section is judged by merging it.

// Limits of what is looked up: a share of all rows, and rows in memory.
const (
	deriveShare   = 2
	maxDeriveRows = 1 << 20
	deriveRows    = 1 << 17 // of a file that are looked through by one goroutine
	deriveSkips   = 32      // stretches of new keys, between which pages are skipped
	maxSince      = 8       // verdicts that a bucket's next one may derive from
)

// known are files whose rows' fate is known, and no key of which is in others that are.
type known struct {
	min, max []byte
	files    []*File
	v        *verdict // nil = all rows are live
}

// derive finds the verdict of a section from what is known of its files; nil = it
// cannot be found so.
func (j *judging) derive(ctx context.Context) (*verdict, error) {
	p := j.p
	if p.codec.Form() != mergetree.OneWord {
		return nil, nil // longer keys are merged: looking them up is not proven yet
	}
	folds := p.folds([][][]File{j.runs}) != nil
	base, fresh, rows := j.split()
	if len(base) == 0 || !j.follow(base, fresh, folds) {
		return nil, nil
	}
	if n := filesRows(fresh); n > maxDeriveRows || n*deriveShare > j.rows {
		return nil, nil
	}
	d := &derivation{judging: j, folds: folds, fresh: fresh, marks: map[string]*mergetree.Fate{}, rows: rows}
	ok := false
	err := j.work(ctx, func() (err error) {
		if ok, err = d.load(ctx); ok && err == nil {
			d.settle()
		}
		return err
	})
	if !ok || err != nil {
		return nil, err
	}
	if err := d.lookUp(ctx, base); err != nil {
		return nil, err
	}
	return d.verdict(base), nil
}

func filesRows(fs []*File) (n int64) {
	for _, f := range fs {
		n += f.Meta.Rows
	}
	return n
}

// split parts the section's files into what is known and what is not; rows are those
// that the known ones come to.
func (j *judging) split() (base []known, fresh []*File, rows int64) {
	left := map[string]*File{}
	var order []*File
	for _, r := range j.runs {
		for i := range r {
			left[r[i].identity()] = &r[i]
			order = append(order, &r[i])
		}
	}
	add := func(v *verdict, files []*File) bool {
		k := known{v: v, files: files}
		for _, f := range files {
			lo, err1 := j.p.fileKey(f.Meta.MinKey)
			hi, err2 := j.p.fileKey(f.Meta.MaxKey)
			if err1 != nil || err2 != nil {
				return false
			}
			if k.min == nil || bytes.Compare(lo, k.min) < 0 {
				k.min = lo
			}
			if k.max == nil || bytes.Compare(hi, k.max) > 0 {
				k.max = hi
			}
		}
		for _, b := range base {
			if bytes.Compare(k.min, b.max) <= 0 && bytes.Compare(b.min, k.max) <= 0 {
				return false
			}
		}
		base = append(base, k)
		return true
	}
	for _, v := range j.p.t.env.verdicts.since(j.key.context) {
		var files []*File
		for _, id := range v.files {
			if f := left[id]; f != nil {
				files = append(files, f)
			}
		}
		if len(files) > 0 && len(files) == len(v.files) && add(v, files) {
			rows += v.rows
			for _, id := range v.files {
				delete(left, id)
			}
		}
	}
	slices.SortStableFunc(order, func(a, b *File) int { return int(b.Meta.Rows - a.Meta.Rows) })
	for _, f := range order {
		id := f.identity()
		if left[id] == nil {
			continue
		}
		// Retractions are not live, and a big file tells them only row by row.
		if f.Meta.DeleteRows == 0 && (f.DV == nil || f.DV.Cardinality >= 0) && add(nil, []*File{f}) {
			rows += f.liveRows()
			continue
		}
		fresh = append(fresh, f)
	}
	return base, fresh, rows
}

// follow reports whether who wins, of a known row and a new one, is known, too.
func (j *judging) follow(base []known, fresh []*File, folds bool) bool {
	p := j.p
	last := int64(-1) // sequence number of a known row
	for _, b := range base {
		for _, f := range b.files {
			if folds && f.Meta.DeleteRows != 0 {
				return false
			}
			last = max(last, f.Meta.MaxSequence)
		}
	}
	if !folds && len(p.read.seqCols) > 0 {
		return false
	}
	// The files that came since, by sequence number, must not overlap.
	slices.SortStableFunc(fresh, func(a, b *File) int {
		switch {
		case a.Meta.MinSequence < b.Meta.MinSequence:
			return -1
		case a.Meta.MinSequence > b.Meta.MinSequence:
			return 1
		}
		return 0
	})
	for _, f := range fresh {
		switch m := f.Meta; {
		case f.DV != nil, p.looksUp() && m.Level != 0:
			return false
		case folds:
			if m.DeleteRows != 0 {
				return false
			}
		case m.MinSequence <= last || m.MaxSequence < m.MinSequence, m.DeleteRows != 0 && p.ignoreDelete():
			return false
		default:
			last = m.MaxSequence
		}
	}
	return true
}

// derivation is the work of derive.
type derivation struct {
	*judging
	folds bool
	fresh []*File
	probe *mergetree.Probe
	kinds [][]int16                  // of rows of fresh; nil = all stay
	marks map[string]*mergetree.Fate // by file; those of known files from when they change
	found *mergetree.Marks           // keys of the probe that known files have
	rows  int64
	lost  atomic.Int64 // known rows that new ones replace
}

// load reads the keys of the new files. It returns false where they do not ascend.
func (d *derivation) load(ctx context.Context) (bool, error) {
	lists := make([]*mergetree.SortedKeys, len(d.fresh))
	d.kinds = make([][]int16, len(d.fresh))
	sorted := true
	var total int64
	for i, f := range d.fresh {
		cols := d.p.keyCols
		if f.Meta.DeleteRows != 0 {
			cols = append(slices.Clone(cols), PseudoKind)
		}
		lists[i] = d.p.codec.NewSortedKeys(int(min(f.Meta.Rows, maxDeriveRows)))
		err := d.scan(ctx, f, format.RowRange{To: f.Meta.Rows}, cols, func(w *rowWindow) error {
			sorted = sorted && lists[i].Append(w.cols[:len(d.p.keyCols)], w.n)
			if f.Meta.DeleteRows != 0 {
				d.kinds[i] = append(d.kinds[i], vec.ViewOf[int16](w.cols[len(cols)-1]).V...)
			}
			return nil
		})
		if err != nil || !sorted {
			return false, err
		}
		if total += lists[i].Bytes(); total > maxDeriveBytes {
			return false, nil
		}
	}
	d.probe = d.p.codec.NewProbe(lists)
	d.found = mergetree.NewMarks(int64(d.probe.Len()))
	return true, nil
}

// maxDeriveBytes are the bytes of keys that are looked up at most.
const maxDeriveBytes = 64 << 20

// settle finds what becomes of the new files' rows among themselves.
func (d *derivation) settle() {
	fates := make([]*mergetree.Fate, len(d.fresh))
	for i, f := range d.fresh {
		fates[i] = &mergetree.Fate{Live: mergetree.NewMarks(f.Meta.Rows)}
		if d.folds {
			fates[i].Folded = mergetree.NewMarks(f.Meta.Rows)
		}
		d.marks[f.Meta.Name] = fates[i]
	}
	if d.folds {
		return // when it is known which keys were found
	}
	first := d.p.mergeEngine() == "first-row"
	for k := range d.probe.Len() {
		vs := d.probe.KeyRows(k)
		w := vs[len(vs)-1]
		if first {
			w = vs[0]
		}
		if ks := d.kinds[w.File]; ks != nil && ks[w.Row]&1 != 0 {
			continue
		}
		fates[w.File].Live.Add(int64(w.Row))
		d.rows++
	}
}

// lookUp looks the new keys up in the known files and marks what that changes.
func (d *derivation) lookUp(ctx context.Context, base []known) error {
	g, gctx := errgroup.WithContext(ctx)
	skip := d.between()
	for _, b := range base {
		for _, f := range b.files {
			fate, err := d.fateOf(ctx, b.v, f)
			if err != nil {
				return err
			}
			rs, err := d.rangesOf(ctx, f, skip)
			if err != nil {
				return err
			}
			for _, r := range rs {
				g.Go(func() error { return d.work(gctx, func() error { return d.lookUpIn(gctx, f, r, fate) }) })
			}
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	d.rows -= d.lost.Load()
	return nil
}

// lookUpIn is lookUp in some rows of a file.
func (d *derivation) lookUpIn(ctx context.Context, f *File, r format.RowRange, fate *mergetree.Fate) error {
	first := d.p.mergeEngine() == "first-row" && !d.folds
	m := d.probe.Prober()
	return d.scan(ctx, f, r, d.p.keyCols, func(w *rowWindow) error {
		m.Match(w.cols, w.n)
		lost := int64(0)
		for i, k := range m.Key {
			row := w.from + int64(m.Row[i])
			switch {
			case first:
				if fate.Live.Has(row) {
					d.found.Add(int64(k))
				}
			case !d.folds:
				if fate.Live.Remove(row) {
					lost++
				}
			case fate.Live.Remove(row):
				fate.Folded.Add(row)
				d.found.Add(int64(k))
			case fate.Folded.Has(row):
				d.found.Add(int64(k))
			}
		}
		d.lost.Add(lost)
		return nil
	})
}

// fateOf returns the marks of a known file, which begin as they are known.
func (d *derivation) fateOf(ctx context.Context, v *verdict, f *File) (*mergetree.Fate, error) {
	fate := &mergetree.Fate{}
	n := f.Meta.Rows
	some := func(s *mergetree.RowSet) *mergetree.Marks {
		if s == nil {
			return mergetree.NewMarks(n)
		}
		return mergetree.MarksOf(s, n)
	}
	switch {
	case v != nil:
		fate.Live = some(v.live[f.Meta.Name])
	case f.DV != nil:
		x, err := d.p.t.env.vector(ctx, f.DV)
		if err != nil {
			return nil, err
		}
		fate.Live = mergetree.MarksOf(d.p.t.env.alive(f.DV, x, n), n)
	default:
		fate.Live = mergetree.MarksOf(nil, n)
	}
	if d.folds {
		fate.Folded = mergetree.NewMarks(n)
		if v != nil {
			fate.Folded = some(v.folded[f.Meta.Name])
		}
	}
	d.marks[f.Meta.Name] = fate
	return fate, nil
}

// between is a predicate on the first key column that the new keys pass, nil = none
// is known.
func (d *derivation) between() predicate.Node {
	c := d.p.keyCols[0]
	var nodes []predicate.Node
	for _, s := range d.probe.Stretches(deriveSkips) {
		lo, ok1 := d.p.codec.First(d.probe.Key(s[0]))
		hi, ok2 := d.p.codec.First(d.probe.Key(s[1]))
		if !ok1 || !ok2 {
			return nil
		}
		f := d.p.schema.Fields[c]
		leaf := func(op predicate.Op, x types.Datum) predicate.Node {
			return &predicate.Leaf{Op: op, Col: c, FieldID: f.ID, Name: f.Name, Type: f.Type, Args: []types.Datum{x}}
		}
		nodes = append(nodes, predicate.Conj(leaf(predicate.GtEq, lo), leaf(predicate.LtEq, hi)))
	}
	return predicate.Disj(nodes...)
}

// rangesOf returns the rows of a known file in which new keys may be, in pieces.
func (d *derivation) rangesOf(ctx context.Context, f *File, skip predicate.Node) (out []format.RowRange, err error) {
	of, err := d.read.open(ctx, d.dir, f)
	if err != nil {
		return nil, err
	}
	defer d.read.close(of)
	rs, err := of.ranges(ctx, format.RowRange{To: f.Meta.Rows}, skip, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range rs {
		for r.To-r.From > deriveRows+deriveRows/2 {
			out = append(out, format.RowRange{From: r.From, To: r.From + deriveRows})
			r.From += deriveRows
		}
		out = append(out, r)
	}
	return out, nil
}

// verdict puts together what was found.
func (d *derivation) verdict(base []known) *verdict {
	first := d.p.mergeEngine() == "first-row"
	switch {
	case d.folds:
		for k := range d.probe.Len() {
			vs, found := d.probe.KeyRows(k), d.found.Has(int64(k))
			for _, w := range vs {
				m := d.marks[d.fresh[w.File].Meta.Name]
				if found || len(vs) > 1 {
					m.Folded.Add(int64(w.Row))
				} else {
					m.Live.Add(int64(w.Row))
				}
			}
			if !found {
				d.rows++
			}
		}
	case first:
		for k := range d.probe.Len() {
			if d.found.Has(int64(k)) {
				w := d.probe.KeyRows(k)[0]
				d.marks[d.fresh[w.File].Meta.Name].Live.Remove(int64(w.Row))
				d.rows--
			}
		}
	}
	return verdictFrom(d.marks, []int64{d.rows})
}

// rowWindow is a window of rows of a file.
type rowWindow struct {
	cols []arrow.Array
	from int64
	n    int
}

// scan reads columns of rows of a file, window by window, deleted ones included.
func (j *judging) scan(ctx context.Context, f *File, r format.RowRange, cols []int, each func(*rowWindow) error) error {
	of, err := j.read.open(ctx, j.dir, f)
	if err != nil {
		return err
	}
	defer j.read.close(of)
	fc, err := of.columns(ctx, r, cols)
	if err != nil {
		return err
	}
	defer fc.Close() //nolint:errcheck // a reader
	for w := (rowWindow{from: r.From}); w.from < r.To; w.from += int64(w.n) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w.n = int(min(int64(j.p.t.env.sizes.window), r.To-w.from))
		if w.cols, err = fc.Read(ctx, w.n, nil); err != nil {
			return err
		}
		if err := each(&w); err != nil {
			return err
		}
	}
	return nil
}
