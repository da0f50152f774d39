package table

import (
	"bytes"
	"math"
	"reflect"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// rowEquality tells updates that change nothing: changelog-producer.row-deduplicate,
// without the columns of changelog-producer.row-deduplicate-ignore-fields.
type rowEquality struct {
	cols  []int
	types []types.Type
}

// newRowEquality returns nil where the option is off.
func newRowEquality(s *schema.Table, o schema.Options) (*rowEquality, error) {
	on, err := o.Bool("changelog-producer.row-deduplicate", false)
	if err != nil || !on {
		return nil, err
	}
	ignore := o.List("changelog-producer.row-deduplicate-ignore-fields")
	e := &rowEquality{}
	for i, f := range s.Fields {
		if !slices.Contains(ignore, f.Name) && !slices.Contains(s.PrimaryKeys, f.Name) {
			e.cols = append(e.cols, i)
			e.types = append(e.types, f.Type)
		}
	}
	return e, nil
}

// pairs says of each pair, rows p and p+1 of r, whether they are equal.
func (e *rowEquality) pairs(r *refs, pairs []int, m *keyMerge, srcs func(int) []arrow.Array) ([]bool, error) {
	a, b := refs{}, refs{}
	out := make([]bool, len(pairs))
	for i, p := range pairs {
		a.add(int(r.src[p]), int(r.row[p]))
		b.add(int(r.src[p+1]), int(r.row[p+1]))
		out[i] = true
	}
	for i, c := range e.cols {
		x, y := vec.Decode(m.column(c, &a, srcs)), vec.Decode(m.column(c, &b, srcs))
		and(out, x, y, e.types[i])
	}
	return out, nil
}

// and clears out where x and y differ. Floating-point numbers are equal when
// their bits are, and all NaNs (Double.compare).
func and(out []bool, x, y arrow.Array, t types.Type) {
	n := len(out)
	var eq func(i int) bool
	switch w := x.DataType().(type) {
	case *arrow.Float64Type:
		a, b := vec.ViewOf[float64](x).V, vec.ViewOf[float64](y).V
		eq = func(i int) bool {
			return math.Float64bits(a[i]) == math.Float64bits(b[i]) || a[i] != a[i] && b[i] != b[i]
		}
	case *arrow.Float32Type:
		a, b := vec.ViewOf[float32](x).V, vec.ViewOf[float32](y).V
		eq = func(i int) bool {
			return math.Float32bits(a[i]) == math.Float32bits(b[i]) || a[i] != a[i] && b[i] != b[i]
		}
	case *arrow.StringType, *arrow.BinaryType:
		a, b := vec.ViewStr(x), vec.ViewStr(y)
		eq = func(i int) bool { return bytes.Equal(a.At(i), b.At(i)) }
	case arrow.FixedWidthDataType:
		if k := w.BitWidth() / 8; k > 0 && w.BitWidth()%8 == 0 && len(x.Data().Buffers()) == 2 {
			a := x.Data().Buffers()[1].Bytes()[x.Data().Offset()*k:]
			b := y.Data().Buffers()[1].Bytes()[y.Data().Offset()*k:]
			eq = func(i int) bool { return bytes.Equal(a[i*k:i*k+k], b[i*k:i*k+k]) }
			break
		}
		eq = func(i int) bool { return reflect.DeepEqual(vec.DatumAt(x, t, i), vec.DatumAt(y, t, i)) }
	default:
		eq = func(i int) bool { return reflect.DeepEqual(vec.DatumAt(x, t, i), vec.DatumAt(y, t, i)) }
	}
	for i := range n {
		if !out[i] {
			continue
		}
		switch p, q := x.IsNull(i), y.IsNull(i); {
		case p || q:
			out[i] = p && q
		default:
			out[i] = eq(i)
		}
	}
}
