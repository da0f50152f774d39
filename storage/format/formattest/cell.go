package formattest

import (
	"fmt"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Cell is element i of a as text: a slow and obvious form to compare by.
func Cell(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return "NULL"
	}
	switch a := a.(type) {
	case *array.Dictionary:
		return Cell(a.Dictionary(), a.GetValueIndex(i))
	case *array.String:
		return fmt.Sprintf("%q", a.Value(i))
	case *array.Binary:
		return fmt.Sprintf("x%x", a.Value(i))
	case *array.Float32:
		return fmt.Sprint(a.Value(i))
	case *array.Float64:
		return fmt.Sprint(a.Value(i))
	case *array.Timestamp:
		return fmt.Sprint(int64(a.Value(i)))
	case *array.Time64:
		return fmt.Sprint(int64(a.Value(i)))
	case *array.Map:
		from, to := a.ValueOffsets(i)
		var b strings.Builder
		for j := from; j < to; j++ {
			fmt.Fprintf(&b, "%s:%s,", Cell(a.Keys(), int(j)), Cell(a.Items(), int(j)))
		}
		return "{" + b.String() + "}"
	case *array.List:
		from, to := a.ValueOffsets(i)
		var b strings.Builder
		for j := from; j < to; j++ {
			b.WriteString(Cell(a.ListValues(), int(j)) + ",")
		}
		return "[" + b.String() + "]"
	case *array.Struct:
		var b strings.Builder
		for k := 0; k < a.NumField(); k++ {
			b.WriteString(Cell(a.Field(k), i) + ",")
		}
		return "(" + b.String() + ")"
	case *array.Decimal128:
		return a.Value(i).BigInt().String()
	case *array.Boolean:
		return fmt.Sprint(a.Value(i))
	case *array.Int16:
		return fmt.Sprint(a.Value(i))
	case *array.Int32:
		return fmt.Sprint(a.Value(i))
	case *array.Int64:
		return fmt.Sprint(a.Value(i))
	case *array.Date32:
		return fmt.Sprint(int32(a.Value(i)))
	}
	return fmt.Sprintf("%T %s", a, a.ValueStr(i))
}

// Datum is element i of a scalar array as a types.Datum.
func Datum(a arrow.Array, i int) types.Datum {
	if a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case *array.Dictionary:
		return Datum(a.Dictionary(), a.GetValueIndex(i))
	case *array.String:
		return a.Value(i)
	case *array.Binary:
		return a.Value(i)
	case *array.Float32:
		return float64(a.Value(i))
	case *array.Float64:
		return a.Value(i)
	case *array.Timestamp:
		return int64(a.Value(i))
	case *array.Time64:
		return int64(a.Value(i))
	case *array.Decimal128:
		return numeric.From128(a.Value(i), a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Boolean:
		return a.Value(i)
	case *array.Int16:
		return int64(a.Value(i))
	case *array.Int32:
		return int64(a.Value(i))
	case *array.Int64:
		return a.Value(i)
	case *array.Date32:
		return int64(a.Value(i))
	}
	panic(fmt.Sprintf("no datum of %T", a))
}
