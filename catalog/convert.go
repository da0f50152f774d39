package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// conversion is how a column whose PostgreSQL type Paimon lacks is read: the
// table option pg-type.<column> keeps that type, the files hold text (or, for
// numeric without precision, DECIMAL(38, 18)).
type conversion struct {
	to types.Type
	// cast turns a stored array into one of to; nil = the arrays are the same.
	cast func(a arrow.Array) (arrow.Array, error)
	// sameOrder says that stored values compare as the SQL values do.
	sameOrder bool
}

// conversionOf returns nil when the column is shown as it is stored: no option,
// or one that this version does not know.
func conversionOf(stored types.Type, pg string) *conversion {
	pg = strings.ToLower(strings.TrimSpace(pg))
	if pg == "" {
		return nil
	}
	text := stored.Kind == types.Text || stored.Kind == types.Varchar
	switch {
	case text && pg == "json":
		return &conversion{to: types.Of(types.JSON)}
	case text && pg == "jsonb":
		return &conversion{to: types.Of(types.JSONB)}
	case text && pg == "name":
		return &conversion{to: types.Of(types.Name), sameOrder: true}
	case text && (pg == "varchar" || pg == "character varying"):
		return &conversion{to: types.Of(types.Varchar), sameOrder: true}
	case text && pg == "uuid":
		return parsed(types.Of(types.UUID))
	case text && pg == "interval":
		return parsed(types.Of(types.Interval))
	case text && (pg == "timetz" || pg == "time with time zone"):
		return parsed(types.Of(types.TimeTZ))
	case stored.Kind == types.Time && (pg == "time" || pg == "time without time zone"):
		return &conversion{to: types.Of(types.Time), sameOrder: true}
	case stored.Kind == types.Numeric && pg == "numeric":
		return &conversion{to: types.Type{Kind: types.Numeric}, cast: trimmed(stored), sameOrder: true}
	}
	return nil
}

// SQLType returns the type that a column is shown with: its stored type, or the
// PostgreSQL type that the table option pg-type.<column> keeps.
func SQLType(stored types.Type, pg string) types.Type {
	if c := conversionOf(stored, pg); c != nil {
		return c.to.WithNotNull(stored.NotNull)
	}
	return stored.SQL()
}

// parsed reads stored text as PostgreSQL does.
func parsed(to types.Type) *conversion {
	return &conversion{to: to, cast: func(a arrow.Array) (arrow.Array, error) {
		a = vec.Decode(a)
		s := vec.ViewStr(a)
		out := make([]types.Datum, a.Len())
		for i := range out {
			if s.IsNull(i) {
				continue
			}
			d, err := pgtext.Parse(to, string(s.At(i)), nil)
			if err != nil {
				return nil, fmt.Errorf("stored text is no %s: %w", to, err)
			}
			out[i] = d
		}
		return vec.FromDatums(to, out), nil
	}}
}

// trimmed turns decimals into numerics whose scale has no trailing zeros: the
// column had no precision, so its digits are the value's own.
func trimmed(stored types.Type) func(arrow.Array) (arrow.Array, error) {
	scale := stored.Scale
	to := types.Type{Kind: types.Numeric}.Arrow()
	return func(a arrow.Array) (arrow.Array, error) {
		if _, ok := a.DataType().(*arrow.Decimal128Type); !ok { // NULLs only
			return vec.MakeNull(to, a.Len()), nil
		}
		v, valid, off := vec.ViewDec(a)
		offs := make([]int32, len(v)+1)
		data := make([]byte, 0, 10*len(v))
		for i, x := range v {
			if vec.BitAt(valid, off+i) {
				data = numeric.AppendTrimmed(data, x.HighBits(), x.LowBits(), int32(scale))
			}
			offs[i+1] = int32(len(data))
		}
		return vec.MakeBytes(to, offs, data, vec.ValidCopy(a)), nil
	}
}

// apply converts the columns of a batch in place of the stored ones.
func (r *TableRelation) apply(b *vec.Batch, columns []int) (*vec.Batch, error) {
	out := *b
	out.Schema = r.fields(b.Schema, columns)
	out.Cols = append([]arrow.Array(nil), b.Cols...)
	for i, c := range columns {
		if c < 0 || r.convert[c] == nil || r.convert[c].cast == nil {
			continue
		}
		var err error
		if out.Cols[i], err = r.convert[c].cast(b.Cols[i]); err != nil {
			return nil, r.unreadable(c, err)
		}
	}
	return &out, nil
}

// unreadable says which column holds text that is no value of its type: other
// engines see text only, and may have written what they liked.
func (r *TableRelation) unreadable(c int, err error) error {
	name := r.cols[c].Name
	var inner *pgerr.Error
	if !errors.As(err, &inner) {
		return fmt.Errorf("column %q: %w", name, err)
	}
	pe := pgerr.Wrap(err, inner.Code, "%s", inner.Message).WithDetail("Column %q of relation %q is stored as text, which another program may write.", name, r.name)
	return pe.WithHint("ALTER TABLE %s.%s RESET ('pg-type.%s') shows the column as text.", r.sqlSchema, r.name, name)
}

func (r *TableRelation) readConverted(ctx context.Context, s table.Scan, p table.Split, o table.ReadOptions) (table.SplitReader, error) {
	columns := s.Columns
	if columns == nil {
		for i := range r.cols {
			columns = append(columns, i)
		}
	}
	if o.Filter != nil {
		o.Filter = &convertedFilter{r, o.Filter, columns}
	}
	rd, err := r.store.Read(ctx, r.scan(s), p, o)
	if err != nil {
		return nil, err
	}
	return &convertedReader{rd, r, columns}, nil
}

// convertedFilter shows the executor's filter SQL values.
type convertedFilter struct {
	r       *TableRelation
	filter  table.RowFilter
	columns []int // of the scan
}

// Columns are those of the filter inside.
func (f *convertedFilter) Columns() []int { return f.filter.Columns() }

// Select converts and asks the filter inside.
func (f *convertedFilter) Select(ctx context.Context, b *vec.Batch) ([]uint16, error) {
	cols := make([]int, 0, len(b.Cols))
	for _, p := range f.filter.Columns() {
		cols = append(cols, f.columns[p])
	}
	c, err := f.r.apply(b, cols)
	if err != nil {
		return nil, err
	}
	return f.filter.Select(ctx, c)
}

type convertedReader struct {
	table.SplitReader
	r       *TableRelation
	columns []int
}

// Next converts the next batch.
func (c *convertedReader) Next(ctx context.Context) (*vec.Batch, error) {
	b, err := c.SplitReader.Next(ctx)
	if b == nil || err != nil {
		return nil, err
	}
	return c.r.apply(b, c.columns)
}
