package catalog

import (
	"context"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// Scanned is implemented by relations that read the files of a Paimon table: their
// readers apply ReadOptions.Filter, their splits have no order, and a scan of them
// can be explained. Those that are not TableInfo have no key: what they show are
// changes, or rows without their newest versions.
type Scanned interface {
	Relation
	// At is the state that the relation is pinned to.
	At() snapshot.Ref
	// Scanned marks the relation.
	Scanned()
}

var (
	_ Scanned = (*TableRelation)(nil)
	_ Scanned = (*derived)(nil)
)

// Scanned implements Scanned.
func (r *TableRelation) Scanned() {}

// derived is made of a table's files but is not the table: a range of changes,
// t$audit_log, t$binlog, t$ro.
type derived struct {
	t    *TableRelation
	name string
	cols []Column
	src  []int // of each column: the table's column, or a pseudo-column
	// deletes shows keys whose newest version is a retraction, too.
	deletes bool
	// readOptimized reads files of the highest level only.
	readOptimized bool
	// arrays wraps columns as arrays of what a row was and became ($binlog).
	arrays bool
}

// newDerived makes a relation with the table's own columns.
func newDerived(t *TableRelation, name string) *derived {
	d := &derived{t: t, name: name}
	for i, c := range t.cols {
		d.cols, d.src = append(d.cols, c), append(d.src, i)
	}
	return d
}

// newAuditLog makes t$audit_log, or with arrays t$binlog.
func newAuditLog(t *TableRelation, name string, arrays bool) *derived {
	d := &derived{t: t, name: name, deletes: true, arrays: arrays}
	add := func(name string, ty types.Type, src int) {
		d.cols = append(d.cols, Column{Field: types.Field{ID: -1, Name: name, Type: ty}, NotNull: true})
		d.src = append(d.src, src)
	}
	add("rowkind", types.Of(types.Text), table.PseudoKind)
	if t.sch.Options["table-read.sequence-number.enabled"] == "true" {
		add("_SEQUENCE_NUMBER", types.Of(types.Int8), table.PseudoSequence)
	}
	for i, c := range t.cols {
		if arrays {
			c.Type = types.ArrayOf(c.Type.WithNotNull(false))
			c.ID = -1
			c.NotNull = false
		}
		d.cols, d.src = append(d.cols, c), append(d.src, i)
	}
	for i := range d.cols {
		d.cols[i].AttNum = int16(i + 1)
	}
	return d
}

// newRowTracking makes t$row_tracking: the table's rows with their ids and sequence
// numbers.
func newRowTracking(t *TableRelation, name string) *derived {
	d := newDerived(t, name)
	for i, c := range []struct {
		name string
		src  int
	}{{"_ROW_ID", table.PseudoRowID}, {"_SEQUENCE_NUMBER", table.PseudoVersion}} {
		d.cols = append(d.cols, Column{Field: types.Field{ID: -1, Name: c.name, Type: types.Of(types.Int8)}, AttNum: int16(len(t.cols) + i + 1)})
		d.src = append(d.src, c.src)
	}
	return d
}

// Schema returns the SQL schema's name.
func (d *derived) Schema() string { return d.t.sqlSchema }

// Name returns the relation's name.
func (d *derived) Name() string { return d.name }

// OID returns the relation's OID.
func (d *derived) OID() uint32 { return OIDOf('r', d.t.sqlSchema, d.name) }

// Kind is 'r'.
func (d *derived) Kind() byte { return 'r' }

// Columns returns the columns.
func (d *derived) Columns() []Column { return d.cols }

// At returns the state that the relation is pinned to.
func (d *derived) At() snapshot.Ref { return d.t.at }

// Scanned implements Scanned.
func (d *derived) Scanned() {}

// wanted are a scan's columns as positions in d.cols.
func (d *derived) wanted(s *table.Scan) []int {
	if s.Columns != nil {
		return s.Columns
	}
	out := make([]int, len(d.cols))
	for i := range out {
		out[i] = i
	}
	return out
}

// scan turns a scan of d into one of the table.
func (d *derived) scan(s table.Scan) table.Scan {
	want := d.wanted(&s)
	s.Columns = make([]int, len(want))
	for i, c := range want {
		if s.Columns[i] = c; c >= 0 {
			s.Columns[i] = d.src[c]
		}
	}
	s.KeepDeletes, s.ReadOptimized = d.deletes, d.readOptimized
	s.Exact, s.Extremes, s.Partitions, s.Order = false, nil, nil, nil
	if s.Filter != nil {
		s.Limit = -1
	}
	if d.arrays {
		// Pairs are made of rows that stand together: none may be missing.
		s.Columns, _ = d.elements(want)
		s.Filter, s.Late, s.Nested, s.Limit = nil, nil, nil, -1
		return s
	}
	s.Filter = d.stored(s.Filter)
	if s.Late != nil {
		s.Late = lateDerived{d, s.Late}
	}
	return s
}

// stored rewrites a filter on d's columns to one on the table's; what is said of
// system columns is left to the executor.
func (d *derived) stored(n predicate.Node) predicate.Node {
	return predicate.RewriteMaps(predicate.Simplify(n), func(l *predicate.Leaf) predicate.Node {
		if l.Col < 0 || l.Col >= len(d.src) || d.src[l.Col] < 0 {
			return nil
		}
		c := *l
		c.Col = d.src[l.Col]
		return &c
	}, func(m *predicate.MapLeaf) predicate.Node {
		if m.Col < 0 || m.Col >= len(d.src) || d.src[m.Col] < 0 {
			return nil
		}
		c := *m
		c.Col = d.src[m.Col]
		return &c
	})
}

type lateDerived struct {
	d    *derived
	late table.LateFilter
}

// Poll rewrites the newest predicate.
func (l lateDerived) Poll() predicate.Node { return l.d.stored(l.late.Poll()) }

// Plan splits a scan.
func (d *derived) Plan(ctx context.Context, s table.Scan) (*table.Plan, error) {
	return d.t.Plan(ctx, d.scan(s))
}

// Stats estimates by the table: a range of changes has no statistics of its own.
func (d *derived) Stats(ctx context.Context, s table.Scan) (*table.Stats, error) {
	st, err := d.t.Stats(ctx, s)
	if err != nil || st == nil {
		return st, err
	}
	out := table.Stats{Rows: st.Rows, Bytes: st.Bytes}
	if d.t.incremental == nil && !d.arrays {
		out.Columns = st.Columns
	}
	return &out, nil
}

// Read reads one split of Plan.
func (d *derived) Read(ctx context.Context, s table.Scan, p table.Split, o table.ReadOptions) (table.SplitReader, error) {
	want := d.wanted(&s)
	if d.arrays {
		return d.readPairs(ctx, s, want, p, o)
	}
	kinds := false
	for _, c := range want {
		kinds = kinds || c >= 0 && d.src[c] == table.PseudoKind
	}
	if !kinds {
		return d.t.Read(ctx, d.scan(s), p, o)
	}
	if o.Filter != nil {
		o.Filter = &kindFilter{d, o.Filter, want}
	}
	rd, err := d.t.Read(ctx, d.scan(s), p, o)
	if err != nil {
		return nil, err
	}
	return &kindReader{rd, d, want}, nil
}

// kindNames are the texts of row kinds, by kind.
var kindNames = func() arrow.Array {
	var ds []types.Datum
	for _, s := range []string{"+I", "-U", "+U", "-D"} {
		ds = append(ds, s)
	}
	return vec.FromDatums(types.Of(types.Text), ds)
}()

// kindText makes the column rowkind of kinds.
func kindText(a arrow.Array) arrow.Array {
	v := vec.ViewOf[int16](a).V
	idx := make([]int32, len(v))
	for i, k := range v {
		idx[i] = int32(k & 3)
	}
	return vec.MakeDict(idx, nil, kindNames)
}

// shown replaces kinds by their texts; cols are the columns of b, as positions in
// d.cols.
func (d *derived) shown(b *vec.Batch, cols []int) *vec.Batch {
	out := *b
	out.Cols, out.Schema = append([]arrow.Array(nil), b.Cols...), append(types.Schema(nil), b.Schema...)
	for i, c := range cols {
		if c >= 0 && d.src[c] < 0 {
			out.Schema[i] = d.cols[c].Field
			if d.src[c] == table.PseudoKind {
				out.Cols[i] = kindText(b.Cols[i])
			}
		}
	}
	return &out
}

// kindFilter shows the executor's filter the texts of kinds.
type kindFilter struct {
	d      *derived
	filter table.RowFilter
	want   []int
}

// Columns are those of the filter inside.
func (f *kindFilter) Columns() []int { return f.filter.Columns() }

// Select asks the filter inside.
func (f *kindFilter) Select(ctx context.Context, b *vec.Batch) ([]uint16, error) {
	var cols []int
	for _, p := range f.filter.Columns() {
		cols = append(cols, f.want[p])
	}
	return f.filter.Select(ctx, f.d.shown(b, cols))
}

type kindReader struct {
	table.SplitReader
	d    *derived
	want []int
}

// Next returns the next batch with the texts of kinds.
func (r *kindReader) Next(ctx context.Context) (*vec.Batch, error) {
	b, err := r.SplitReader.Next(ctx)
	if b == nil || err != nil {
		return nil, err
	}
	return r.d.shown(b, r.want), nil
}

// Derived is implemented by relations that are made of one table's files but are not
// the table.
type Derived interface {
	Scanned
	// Base is the table.
	Base() *TableRelation
	// Over is the relation made of t instead, which is the same table: another state of
	// it, or with a transaction's writes laid over.
	Over(t *TableRelation) Relation
}

var _ Derived = (*derived)(nil)

// Base implements Derived.
func (d *derived) Base() *TableRelation { return d.t }

// Over implements Derived. A range of changes stays what it is: what is not
// committed is in none.
func (d *derived) Over(t *TableRelation) Relation {
	if d.t.incremental != nil {
		return d
	}
	x := *d
	x.t = t
	return &x
}
