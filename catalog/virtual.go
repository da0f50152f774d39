package catalog

import (
	"context"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// Virtual is a relation whose rows are computed when it is read: system tables
// and pg_catalog.
type Virtual struct {
	schema, name string
	oid          uint32
	kind         byte
	cols         []Column
	fields       types.Schema
	rows         int64
	fill         Fill
}

// Fill yields the rows of a Virtual. s.Columns says which columns are wanted (nil
// = all); b's Cols follow the relation's Columns, and a column that is not wanted
// may be nil; b.Sel must be nil. s.Filter may be used to leave rows out early.
type Fill func(ctx context.Context, s table.Scan, yield func(b *vec.Batch) error) error

// NewVirtual makes a virtual relation. rows is an estimate for the planner.
func NewVirtual(schema, name string, oid uint32, kind byte, fields types.Schema, rows int64, fill Fill) *Virtual {
	v := &Virtual{schema: schema, name: name, oid: oid, kind: kind, fields: fields, rows: rows, fill: fill}
	for i, f := range fields {
		f.Type = f.Type.SQL()
		v.cols = append(v.cols, Column{Field: f, NotNull: f.Type.NotNull, AttNum: int16(i + 1)})
	}
	return v
}

// Schema returns the SQL schema's name.
func (v *Virtual) Schema() string { return v.schema }

// Name returns the relation's name.
func (v *Virtual) Name() string { return v.name }

// OID returns the relation's OID.
func (v *Virtual) OID() uint32 { return v.oid }

// Kind returns pg_class.relkind.
func (v *Virtual) Kind() byte { return v.kind }

// Columns returns the columns.
func (v *Virtual) Columns() []Column { return v.cols }

// Plan makes one split.
func (v *Virtual) Plan(context.Context, table.Scan) (*table.Plan, error) {
	return &table.Plan{Splits: []table.Split{{Raw: true, Rows: v.rows}}, Report: &table.PlanReport{}}, nil
}

// Stats returns the estimate given to NewVirtual.
func (v *Virtual) Stats(context.Context, table.Scan) (*table.Stats, error) {
	return &table.Stats{Rows: v.rows, Bytes: v.rows * 64}, nil
}

// Read computes the rows. They are all made before the first is returned: such
// relations are small.
func (v *Virtual) Read(ctx context.Context, s table.Scan, _ table.Split, o table.ReadOptions) (table.SplitReader, error) {
	r := &virtualReader{filter: o.Filter}
	want := s.Columns
	if want == nil {
		want = make([]int, len(v.cols))
		for i := range want {
			want[i] = i
		}
	}
	schema := make(types.Schema, len(want))
	for i, c := range want {
		schema[i] = v.cols[c].Field
	}
	err := v.fill(ctx, s, func(b *vec.Batch) error {
		if b.Size() == 0 {
			return nil
		}
		out := &vec.Batch{Schema: schema, N: b.N, Sel: b.Sel}
		for _, c := range want {
			out.Cols = append(out.Cols, b.Cols[c])
		}
		r.batches = append(r.batches, out)
		return nil
	})
	return r, err
}

type virtualReader struct {
	batches []*vec.Batch
	filter  table.RowFilter
}

// Next applies the row filter, if any, so that the contract of ReadOptions holds.
func (r *virtualReader) Next(ctx context.Context) (*vec.Batch, error) {
	for len(r.batches) > 0 {
		b := r.batches[0]
		r.batches = r.batches[1:]
		if r.filter == nil {
			return b, nil
		}
		f := &vec.Batch{N: b.N}
		for _, c := range r.filter.Columns() {
			f.Schema = append(f.Schema, b.Schema[c])
			f.Cols = append(f.Cols, b.Cols[c])
		}
		sel, err := r.filter.Select(ctx, f)
		if err != nil {
			return nil, err
		}
		if len(sel) == 0 {
			continue
		}
		out := *b
		out.Sel = append([]uint16(nil), sel...)
		return &out, nil
	}
	return nil, nil
}

// Close frees the rows.
func (r *virtualReader) Close() error { r.batches = nil; return nil }

// NewSystem makes a virtual relation from rows of datums.
func NewSystem(schema, name string, fields types.Schema, fill func(ctx context.Context, add func(row ...types.Datum)) error) *Virtual {
	return NewVirtual(schema, name, OIDOf('r', schema, name), 'r', fields, 100,
		func(ctx context.Context, s table.Scan, yield func(*vec.Batch) error) error {
			return FillRows(ctx, fields, s, yield, func(_ func(int) bool, add func(...types.Datum)) error { return fill(ctx, add) })
		})
}
