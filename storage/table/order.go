package table

import (
	"context"
	"slices"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/format"
)

// A top-N wants the rows with the least, or the greatest, values of a column. The files
// that can hold them are read first: what they hold is a bound by which later files are
// left out unread. Bounds may be loose on the outside, as those of cut text are.

// Order says which rows of a scan are wanted first; all of them may be asked for.
type Order struct {
	Column           int // position in Scan.Columns
	Desc, NullsFirst bool
	// Rows, when above 0, says that no more than so many rows of the scan are taken, and
	// those that come first: no filter asks anything of rows but the bound. Rows that are
	// equal in the column may all matter.
	Rows int64
}

// fileEnds is what is known of the column of Scan.Order in a file or a split.
type fileEnds struct {
	col   int // of the table's schema
	stats predicate.ColumnStats
}

// orders reports whether a scan is read in an order, and returns its column.
func (p *planner) orders() (col int, ok bool) {
	o := p.scan.Order
	if o == nil || !p.scan.prunes(PruneMetadata) || p.scan.Incremental != nil || o.Column < 0 || o.Column >= len(p.read.columns) {
		return 0, false
	}
	col = p.read.columns[o.Column]
	return col, col >= 0
}

// orderFiles sets what is known of raw files of a bucket, and puts the ones that are
// wanted first in front.
func (p *planner) orderFiles(l live, files []File) error {
	col, ok := p.orders()
	if !ok {
		return nil
	}
	for i := range files {
		f := &files[i]
		fs, err := p.fileSchema(f.Meta.SchemaID)
		if err != nil {
			return err
		}
		if s, ok := p.statsOf(l, f, fs).Stats(&predicate.Leaf{Col: col, Type: p.schema.Fields[col].Type}); ok {
			if s.Single { // of one row, as partitions have them
				s.Rows, s.NullCount = f.Meta.Rows, s.NullCount*f.Meta.Rows
			}
			f.ends = &fileEnds{col, s}
		}
	}
	slices.SortStableFunc(files, func(a, b File) int { return p.compareEnds(a.ends, b.ends) })
	return nil
}

// orderSplits puts the splits that are wanted first in front.
func (p *planner) orderSplits() {
	col, ok := p.orders()
	if !ok {
		return
	}
	for i := range p.splits {
		s := &p.splits[i]
		if s.Raw {
			if len(s.Files) > 0 {
				s.ends = s.Files[0].ends
			}
			continue
		}
		s.ends = p.endsOfMerge(s, col)
	}
	slices.SortStableFunc(p.splits, func(a, b Split) int { return p.compareEnds(a.ends, b.ends) })
}

// endsOfMerge is what is known of a column of the partition or of the key in the rows of
// a merge: that of other columns depends on it.
func (p *planner) endsOfMerge(s *Split, col int) *fileEnds {
	if i := p.partIndex(col); i >= 0 && i < len(s.Partition) {
		return &fileEnds{col, predicate.One(s.Partition[i])}
	}
	k := slices.Index(p.keyCols, col)
	if k < 0 {
		return nil
	}
	t := p.schema.Fields[col].Type
	var out *fileEnds
	for _, section := range s.Sections {
		for _, run := range section {
			for i := range run {
				m := run[i].Meta
				lo, err1 := keyField(m.MinKey, len(p.keyCols), k, t)
				hi, err2 := keyField(m.MaxKey, len(p.keyCols), k, t)
				if err1 != nil || err2 != nil || k > 0 {
					// Only the first column of a key is bounded by the keys.
					lo, hi = nil, nil
					if st, ok := statsOf(&m.KeyStats, len(p.keyCols), k, t, m.Rows); ok {
						lo, hi = st.Min, st.Max
					}
				}
				if lo == nil || hi == nil {
					return nil
				}
				if out == nil {
					out = &fileEnds{col, predicate.ColumnStats{Min: lo, Max: hi, Rows: -1}}
					continue
				}
				x, ok1 := predicate.Compare(t, lo, out.stats.Min)
				y, ok2 := predicate.Compare(t, hi, out.stats.Max)
				if !ok1 || !ok2 {
					return nil
				}
				if x < 0 {
					out.stats.Min = lo
				}
				if y > 0 {
					out.stats.Max = hi
				}
			}
		}
	}
	return out
}

func keyField(image []byte, arity, i int, t types.Type) (types.Datum, error) {
	r, err := binrow.NewRow(image, arity)
	if err != nil {
		return nil, err
	}
	return r.Get(i, t)
}

// compareEnds orders by the best value that may be there; what is not known comes last,
// with the tightest bound.
func (p *planner) compareEnds(a, b *fileEnds) int {
	o := p.scan.Order
	rank := func(e *fileEnds) int {
		switch {
		case e == nil:
			return 2
		case o.NullsFirst && e.stats.NullCount != 0:
			return 0
		case e.stats.Min == nil || e.stats.Max == nil:
			return 3 // NULLs only, or nothing known
		}
		return 1
	}
	x, y := rank(a), rank(b)
	if x != y || x != 1 {
		return x - y
	}
	t := p.schema.Fields[a.col].Type
	if o.Desc {
		c, _ := predicate.Compare(t, b.stats.Max, a.stats.Max)
		return c
	}
	c, _ := predicate.Compare(t, a.stats.Min, b.stats.Min)
	return c
}

// beaten reports whether no row passes what became known while the query runs.
func (e *fileEnds) beaten(late predicate.Node) bool {
	if e == nil || late == nil {
		return false
	}
	return predicate.Eval(late, predicate.SourceFunc(func(l *predicate.Leaf) (predicate.ColumnStats, bool) {
		return e.stats, l.Col == e.col
	})) == predicate.None
}

// skipBeaten is the reader of a merge split that a top-N needs nothing of any more; nil
// when it has to be read.
func (im *piece) skipBeaten(s *Scan, p *Split, c *format.Counters) SplitReader {
	if p.ends == nil || p.Raw || s.Late == nil || im.read.at.Branch != s.At.Branch || !p.ends.beaten(predicate.Simplify(s.Late.Poll())) {
		return nil
	}
	if im.from == nil { // of the parts of a section one counts its files
		for _, section := range p.Sections {
			for _, run := range section {
				c.SkipFile(beatenReason, int64(len(run)))
			}
		}
	}
	return noReader{}
}

const beatenReason = "top-n"

type noReader struct{}

func (noReader) Next(context.Context) (*vec.Batch, error) { return nil, nil }
func (noReader) Close() error                             { return nil }
