package table

import (
	"context"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Rows whose every use is known need not be read where metadata tell as much: of a file
// whose rows all pass the filter, and of which the least and the greatest value of every
// column are exactly known, rows are made up that have the same minima, maxima and
// constants and, where that is asked for, are as many with as many NULLs.
//
// Bounds are exact where a writer has no reason to cut or leave out: integers, decimals,
// booleans, and in Parquet files dates and times. Not so floats (NaN is in no bounds),
// text and bytes (cut), nor what is read through a cast, nor where rows of the file are
// deleted or may be merged away.

// Extremes says how a scan's rows are used: nothing but the extremes of some columns.
type Extremes struct {
	// Columns are positions in Scan.Columns. Of a partition column every use is fine, of
	// others only the least and the greatest value, and with Rows how many are not NULL.
	// Columns of the scan that are not named are not used at all.
	Columns []int
	// Rows: it matters how many rows there are.
	Rows bool
}

// certainRows is how many rows of a raw file certainly live and pass the filter.
func (p *planner) certainRows(l live, f *File) (int64, error) {
	rows := p.provenRows(f)
	if rows <= 0 || p.filter == nil {
		return rows, nil
	}
	if !p.scan.Exact || !p.scan.prunes(PruneMetadata) || p.scan.Limit < 0 && p.scan.Extremes == nil {
		return 0, nil
	}
	fs, err := p.fileSchema(f.Meta.SchemaID)
	if err != nil {
		return 0, err
	}
	if predicate.Eval(p.filter, p.statsOf(l, f, fs)) != predicate.All {
		return 0, nil
	}
	return rows, nil
}

// statsOf are the statistics of a file that is read raw.
func (p *planner) statsOf(l live, f *File, fs *fileSchema) *fileStats {
	e := *l.Entry
	e.File = f.Meta
	return &fileStats{p, live{Entry: &e, part: l.part}, fs, true}
}

// knownRows is a split of rows that metadata tell.
type knownRows struct {
	t      *FileStore
	fields types.Schema
	cols   []int // of fields, the others are NULL
	counts bool
	groups []*knownGroup
	by     map[string]*knownGroup // by partition, where a column is of it
	byPart bool
}

// knownGroup are the rows of one partition.
type knownGroup struct {
	rows int64
	cols []knownColumn
}

// knownColumn has NULLs first, then lo as often as needed, and hi in the last row.
type knownColumn struct {
	lo, hi types.Datum
	nulls  int64
}

// knows takes a raw file with so many certain rows into the rows that need not be read;
// false when it must be read.
func (p *planner) knows(l live, f *File, rows int64) (bool, error) {
	e := p.scan.Extremes
	if e == nil || rows <= 0 || !p.scan.Exact || !p.scan.prunes(PruneMetadata) || p.scan.Late != nil || p.scan.Incremental != nil || p.read.kinds || p.scan.Nested != nil {
		return false, nil
	}
	fs, err := p.fileSchema(f.Meta.SchemaID)
	if err != nil {
		return false, err
	}
	st := p.statsOf(l, f, fs)
	cols := make([]knownColumn, len(e.Columns))
	byPart := false
	for i, pos := range e.Columns {
		if pos < 0 || pos >= len(p.read.columns) || p.read.columns[pos] < 0 {
			return false, nil
		}
		c := p.read.columns[pos]
		if k := p.partIndex(c); k >= 0 {
			byPart = true
			v := l.part.vals[k]
			if cols[i] = (knownColumn{lo: v, hi: v}); v == nil {
				cols[i].nulls = rows
			}
			continue
		}
		if f.DV != nil || f.only != nil {
			return false, nil
		}
		var ok bool
		if cols[i], ok = p.extremesOf(st, f, c); !ok {
			return false, nil
		}
	}
	k := p.known
	if k == nil {
		k = &knownRows{t: p.t, fields: p.read.fields, cols: e.Columns, counts: e.Rows, by: map[string]*knownGroup{}, byPart: byPart}
		p.known = k
	}
	key := ""
	if k.byPart {
		key = string(l.part.image)
	}
	g := k.by[key]
	if g == nil {
		g = &knownGroup{rows: rows, cols: cols}
		k.by[key] = g
		k.groups = append(k.groups, g)
		return true, nil
	}
	g.rows += rows
	for i := range cols {
		g.cols[i].take(&cols[i], k.fields[e.Columns[i]].Type)
	}
	return true, nil
}

// take widens a column by another's rows.
func (c *knownColumn) take(o *knownColumn, t types.Type) {
	c.nulls += o.nulls
	switch {
	case o.lo == nil:
	case c.lo == nil:
		c.lo, c.hi = o.lo, o.hi
	default:
		if x, _ := predicate.Compare(t, o.lo, c.lo); x < 0 {
			c.lo = o.lo
		}
		if x, _ := predicate.Compare(t, o.hi, c.hi); x > 0 {
			c.hi = o.hi
		}
	}
}

// extremesOf returns the exact extremes of a column that is not a partition's in a file
// all of whose rows live.
func (p *planner) extremesOf(st *fileStats, f *File, c int) (k knownColumn, ok bool) {
	rows := f.Meta.Rows
	src, err := st.fs.evo.Source(c)
	if err != nil {
		return k, false
	}
	if src < 0 {
		return knownColumn{nulls: rows}, true
	}
	t := p.schema.Fields[c].Type
	if !exactBounds(t, f.Meta.Name) || !st.fs.evo.Identity(c) && !(t.IsInteger() && st.fs.evo.Exact(c)) {
		return k, false
	}
	s, ok := st.Stats(&predicate.Leaf{Col: c, Type: t})
	if !ok || s.NullCount < 0 || s.NullCount > rows || s.Rows != rows {
		return k, false
	}
	k.nulls = s.NullCount
	if k.nulls == rows {
		return k, true
	}
	x, ok := predicate.Compare(t, s.Min, s.Max)
	if !ok || x > 0 || x < 0 && rows-k.nulls < 2 {
		return k, false
	}
	k.lo, k.hi = s.Min, s.Max
	return k, true
}

// exactBounds reports whether bounds of a type are values that occur.
func exactBounds(t types.Type, file string) bool {
	switch t.Kind {
	case types.Bool, types.TinyInt, types.Int2, types.Int4, types.Int8, types.Numeric:
		return true
	case types.Date, types.Time:
		return strings.HasSuffix(file, ".parquet")
	case types.Timestamp, types.TimestampTZ:
		return !t.IsNanos() && strings.HasSuffix(file, ".parquet")
	}
	return false
}

// addKnown makes the split of the rows that need not be read.
func (p *planner) addKnown() {
	k := p.known
	if k == nil {
		return
	}
	p.known = nil
	rows := int64(0)
	for _, g := range k.groups {
		if !k.counts {
			g.two()
		}
		rows += g.rows
	}
	k.by = nil
	p.add(Split{Raw: true, Rows: rows, Impl: k})
}

// two makes two rows of a group whose rows are not counted.
func (g *knownGroup) two() {
	g.rows = 2
	for i := range g.cols {
		c := &g.cols[i]
		if c.nulls = 0; c.lo == nil {
			c.nulls = 2
		}
	}
}

// at is the value of row i of rows.
func (c *knownColumn) at(i, rows int64) types.Datum {
	switch {
	case i < c.nulls:
		return nil
	case i == rows-1:
		return c.hi
	}
	return c.lo
}

// knownReader returns the rows of a knownRows.
type knownReader struct {
	k     *knownRows
	size  int64
	group int
	row   int64
	same  []arrow.Array // of the group: size rows of lo
	none  []arrow.Array // size rows of NULL, by field
	err   error
}

func newKnownReader(k *knownRows, size int) *knownReader {
	r := &knownReader{k: k, size: int64(size), same: make([]arrow.Array, len(k.cols)), none: make([]arrow.Array, len(k.fields))}
	for i, f := range k.fields {
		r.none[i] = vec.MakeNull(f.Type.Arrow(), size)
	}
	return r
}

// Next returns the next batch, nil at the end.
func (r *knownReader) Next(ctx context.Context) (*vec.Batch, error) {
	if r.err != nil || r.group >= len(r.k.groups) {
		return nil, r.err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var n int64
	var cols []arrow.Array
	if g := r.k.groups[r.group]; g.rows-r.row >= r.size {
		n, cols = r.size, r.part(g)
		if r.row += n; r.row >= g.rows {
			r.group, r.row = r.group+1, 0
			clear(r.same)
		}
	} else {
		n, cols = r.gather()
	}
	b := &vec.Batch{Schema: r.k.fields, N: int(n), Cols: make([]arrow.Array, len(r.k.fields))}
	for i := range b.Cols {
		if b.Cols[i] = r.none[i]; n < r.size {
			b.Cols[i] = vec.Slice(r.none[i], 0, int(n))
		}
	}
	for i, pos := range r.k.cols {
		b.Cols[pos] = cols[i]
	}
	return b, nil
}

// part makes size rows of one group.
func (r *knownReader) part(g *knownGroup) []arrow.Array {
	out := make([]arrow.Array, len(g.cols))
	from, to := r.row, r.row+r.size
	for i := range g.cols {
		c := &g.cols[i]
		switch {
		case to <= c.nulls:
			out[i] = r.none[r.k.cols[i]]
		case from >= c.nulls && to < g.rows:
			if r.same[i] == nil {
				r.same[i] = r.make(i, slices.Repeat([]types.Datum{c.lo}, int(r.size)))
			}
			out[i] = r.same[i]
		default:
			vals := make([]types.Datum, r.size)
			for k := range vals {
				vals[k] = c.at(from+int64(k), g.rows)
			}
			out[i] = r.make(i, vals)
		}
	}
	return out
}

// gather makes the rows of what is left of several groups.
func (r *knownReader) gather() (int64, []arrow.Array) {
	vals := make([][]types.Datum, len(r.k.cols))
	n := int64(0)
	for r.group < len(r.k.groups) {
		g := r.k.groups[r.group]
		left := g.rows - r.row
		if n+left > r.size {
			break
		}
		for i := range g.cols {
			for k := r.row; k < g.rows; k++ {
				vals[i] = append(vals[i], g.cols[i].at(k, g.rows))
			}
		}
		n += left
		r.group, r.row = r.group+1, 0
	}
	clear(r.same)
	out := make([]arrow.Array, len(vals))
	for i := range vals {
		out[i] = r.make(i, vals[i])
	}
	return n, out
}

func (r *knownReader) make(col int, vals []types.Datum) arrow.Array {
	return vec.FromDatums(r.k.fields[r.k.cols[col]].Type, vals)
}

// Close ends the reader.
func (r *knownReader) Close() error {
	r.err = errClosed
	return nil
}
