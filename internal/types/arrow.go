package types

import (
	"github.com/apache/arrow/go/v15/arrow"
)

// Arrow types that have parameters, made once.
var (
	ArrowTimestampUS = &arrow.TimestampType{Unit: arrow.Microsecond}
	ArrowTimestampNS = &arrow.TimestampType{Unit: arrow.Nanosecond}
	ArrowTimeUS      = &arrow.Time64Type{Unit: arrow.Microsecond}
	ArrowFixed16     = &arrow.FixedSizeBinaryType{ByteWidth: 16}
	ArrowFixed12     = &arrow.FixedSizeBinaryType{ByteWidth: 12}
	ArrowTextDict    = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
)

// Arrow returns the Arrow type of the arrays that hold values of t.
func (t Type) Arrow() arrow.DataType {
	switch t.Kind {
	case Bool:
		return arrow.FixedWidthTypes.Boolean
	case TinyInt, Int2:
		return arrow.PrimitiveTypes.Int16
	case Int4:
		return arrow.PrimitiveTypes.Int32
	case Int8, OID, RegClass, RegProc, RegType, RegNamespace, RegRole, RegOper, XID:
		return arrow.PrimitiveTypes.Int64
	case Float4:
		return arrow.PrimitiveTypes.Float32
	case Float8:
		return arrow.PrimitiveTypes.Float64
	case Numeric:
		if t.Prec > 0 {
			return &arrow.Decimal128Type{Precision: int32(t.Prec), Scale: int32(t.Scale)}
		}
		return arrow.BinaryTypes.Binary
	case Bytea:
		return arrow.BinaryTypes.Binary
	case Date:
		return arrow.FixedWidthTypes.Date32
	case Time:
		return ArrowTimeUS
	case Timestamp, TimestampTZ:
		if t.Prec > 6 {
			return ArrowTimestampNS
		}
		return ArrowTimestampUS
	case Interval, UUID:
		return ArrowFixed16
	case TimeTZ:
		return ArrowFixed12
	case Array, AnyArray:
		if t.Elem == nil {
			return arrow.ListOf(arrow.BinaryTypes.String)
		}
		return arrow.ListOf(t.Elem.Arrow())
	case Int2Vector:
		return arrow.ListOf(arrow.PrimitiveTypes.Int16)
	case OIDVector:
		return arrow.ListOf(arrow.PrimitiveTypes.Int64)
	case Map:
		return arrow.MapOf(t.Key.Arrow(), t.Elem.Arrow())
	case Row, Record:
		fs := make([]arrow.Field, len(t.Fields))
		for i, f := range t.Fields {
			fs[i] = arrow.Field{Name: f.Name, Type: f.Type.Arrow(), Nullable: true}
		}
		return arrow.StructOf(fs...)
	case Variant:
		return arrow.StructOf(
			arrow.Field{Name: "value", Type: arrow.BinaryTypes.Binary},
			arrow.Field{Name: "metadata", Type: arrow.BinaryTypes.Binary})
	}
	return arrow.BinaryTypes.String
}
