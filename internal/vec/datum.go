package vec

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// FromDatums makes the array of type t that holds ds; nil is NULL. A numeric
// that does not fit t's Decimal128 form puts the whole array into the binary
// form, as kernels do. It panics when a Datum is not of the Go type that
// types.Datum prescribes: that is a bug of the caller.
func FromDatums(t types.Type, ds []types.Datum) arrow.Array {
	n := len(ds)
	valid := validOf(ds)
	switch t.Kind {
	case types.Bool:
		bits := make([]byte, BitmapLen(n))
		for i, d := range ds {
			if d != nil && d.(bool) {
				bits[i>>3] |= 1 << (i & 7)
			}
		}
		return MakeBool(n, bits, valid)
	case types.TinyInt, types.Int2:
		return Make(t.Arrow(), ints[int16](ds), valid)
	case types.Int4, types.Date:
		return Make(t.Arrow(), ints[int32](ds), valid)
	case types.Int8, types.OID, types.RegClass, types.RegProc, types.RegType, types.RegNamespace, types.RegRole,
		types.RegOper, types.XID, types.Time, types.Timestamp, types.TimestampTZ:
		return Make(t.Arrow(), ints[int64](ds), valid)
	case types.Float4:
		v := make([]float32, n)
		for i, d := range ds {
			if d != nil {
				v[i] = float32(d.(float64))
			}
		}
		return Make(t.Arrow(), v, valid)
	case types.Float8:
		v := make([]float64, n)
		for i, d := range ds {
			if d != nil {
				v[i] = d.(float64)
			}
		}
		return Make(t.Arrow(), v, valid)
	case types.Numeric:
		return decimals(t, ds, valid)
	case types.Interval, types.UUID, types.TimeTZ:
		w := 16
		if t.Kind == types.TimeTZ {
			w = 12
		}
		b := make([]byte, n*w)
		for i, d := range ds {
			if d != nil {
				copy(b[i*w:(i+1)*w], d.([]byte))
			}
		}
		return MakeFixedBytes(t.Arrow(), n, b, valid)
	case types.Bytea:
		off, data := make([]int32, n+1), []byte{}
		for i, d := range ds {
			if d != nil {
				data = append(data, d.([]byte)...)
			}
			off[i+1] = int32(len(data))
		}
		return MakeBytes(arrow.BinaryTypes.Binary, off, data, valid)
	case types.Array, types.AnyArray, types.Int2Vector, types.OIDVector:
		off := make([]int32, n+1)
		var all []types.Datum
		for i, d := range ds {
			if d != nil {
				all = append(all, d.([]types.Datum)...)
			}
			off[i+1] = int32(len(all))
		}
		return MakeList(t.Arrow(), off, FromDatums(elemOf(t), all), valid)
	case types.Map:
		off := make([]int32, n+1)
		var ks, vs []types.Datum
		for i, d := range ds {
			if d != nil {
				for _, kv := range d.([]types.KV) {
					ks, vs = append(ks, kv.K), append(vs, kv.V)
				}
			}
			off[i+1] = int32(len(ks))
		}
		k, v := FromDatums(*t.Key, ks), FromDatums(*t.Elem, vs)
		mt := arrow.MapOf(k.DataType(), v.DataType())
		return MakeList(mt, off, MakeStruct(mt.Elem(), len(ks), []arrow.Array{k, v}, nil), valid)
	case types.Row, types.Record:
		cols := make([]arrow.Array, len(t.Fields))
		fs := make([]arrow.Field, len(t.Fields))
		one := make([]types.Datum, n)
		for c := range cols {
			for i, d := range ds {
				one[i] = nil
				if d != nil {
					one[i] = d.([]types.Datum)[c]
				}
			}
			cols[c] = FromDatums(t.Fields[c].Type, one)
			fs[c] = arrow.Field{Name: t.Fields[c].Name, Type: cols[c].DataType(), Nullable: true}
		}
		return MakeStruct(arrow.StructOf(fs...), n, cols, valid)
	case types.Variant:
		var vs, ms []types.Datum
		for _, d := range ds {
			if p, ok := d.([]types.Datum); ok && len(p) == 2 {
				vs, ms = append(vs, p[0]), append(ms, p[1])
			} else {
				vs, ms = append(vs, nil), append(ms, nil)
			}
		}
		b := types.Of(types.Bytea)
		return MakeStruct(t.Arrow(), n, []arrow.Array{FromDatums(b, vs), FromDatums(b, ms)}, valid)
	}
	off, data := make([]int32, n+1), []byte{}
	for i, d := range ds {
		if d != nil {
			data = append(data, d.(string)...)
		}
		off[i+1] = int32(len(data))
	}
	return MakeBytes(arrow.BinaryTypes.String, off, data, valid)
}

func elemOf(t types.Type) types.Type {
	switch {
	case t.Kind == types.Int2Vector:
		return types.Of(types.Int2)
	case t.Kind == types.OIDVector:
		return types.Of(types.OID)
	case t.Elem != nil:
		return *t.Elem
	}
	return types.Of(types.Text)
}

func validOf(ds []types.Datum) []byte {
	var valid []byte
	for i, d := range ds {
		if d == nil {
			if valid == nil {
				valid = make([]byte, BitmapLen(len(ds)))
				for j := range valid {
					valid[j] = 0xff
				}
			}
			valid[i>>3] &^= 1 << (i & 7)
		}
	}
	return valid
}

func ints[T Fixed](ds []types.Datum) []T {
	v := make([]T, len(ds))
	for i, d := range ds {
		if d != nil {
			v[i] = T(d.(int64))
		}
	}
	return v
}

func decimals(t types.Type, ds []types.Datum, valid []byte) arrow.Array {
	n := len(ds)
	if t.Prec > 0 {
		v := make([]decimal128.Num, n)
		fits := true
		for i, d := range ds {
			if d != nil {
				if v[i], fits = d.(*numeric.Dec).To128(int32(t.Scale)); !fits {
					break
				}
			}
		}
		if fits {
			return MakeDec128(t.Arrow(), v, valid)
		}
	}
	off, data := make([]int32, n+1), []byte{}
	for i, d := range ds {
		if d != nil {
			data = numeric.AppendEncoded(data, d.(*numeric.Dec))
		}
		off[i+1] = int32(len(data))
	}
	return MakeBytes(arrow.BinaryTypes.Binary, off, data, valid)
}

// MakeDec128 wraps cells as a Decimal128 array of type dt.
func MakeDec128(dt arrow.DataType, v []decimal128.Num, valid []byte) arrow.Array {
	return MakeFixedBytes(dt, len(v), arrow.Decimal128Traits.CastToBytes(v), valid)
}

// DatumAt boxes one row of an array of logical type t; nil is NULL.
// Dictionaries are taken too.
func DatumAt(a arrow.Array, t types.Type, row int) types.Datum {
	if a.IsNull(row) {
		return nil
	}
	switch x := a.(type) {
	case *array.Dictionary:
		return DatumAt(x.Dictionary(), t, x.GetValueIndex(row))
	case *array.Null:
		return nil
	case *array.Boolean:
		return x.Value(row)
	case *array.Int16:
		return int64(x.Value(row))
	case *array.Int32:
		return int64(x.Value(row))
	case *array.Int64:
		return x.Value(row)
	case *array.Int8:
		return int64(x.Value(row))
	case *array.Float32:
		return float64(x.Value(row))
	case *array.Float64:
		return x.Value(row)
	case *array.Decimal128:
		return numeric.From128(x.Value(row), x.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Date32:
		return int64(x.Value(row))
	case *array.Time64:
		return int64(x.Value(row))
	case *array.Timestamp:
		return int64(x.Value(row))
	case *array.FixedSizeBinary:
		return append([]byte(nil), x.Value(row)...)
	case *array.String:
		return string(append([]byte(nil), x.Value(row)...))
	case *array.Binary:
		if t.Kind == types.Numeric {
			return numeric.Decode(x.Value(row))
		}
		return append([]byte{}, x.Value(row)...)
	case *array.Map:
		from, to := x.ValueOffsets(row)
		out := make([]types.KV, 0, to-from)
		kt, vt := types.Type{}, types.Type{}
		if t.Key != nil && t.Elem != nil {
			kt, vt = *t.Key, *t.Elem
		}
		for i := int(from); i < int(to); i++ {
			out = append(out, types.KV{K: DatumAt(x.Keys(), kt, i), V: DatumAt(x.Items(), vt, i)})
		}
		return out
	case *array.List:
		from, to := x.ValueOffsets(row)
		return slice(x.ListValues(), elemOf(t), from, to)
	case *array.FixedSizeList:
		from, to := x.ValueOffsets(row)
		return slice(x.ListValues(), elemOf(t), from, to)
	case *array.Struct:
		out := make([]types.Datum, x.NumField())
		for i := range out {
			ft := types.Type{}
			switch {
			case t.Kind == types.Variant:
				ft = types.Of(types.Bytea)
			case i < len(t.Fields):
				ft = t.Fields[i].Type
			}
			out[i] = DatumAt(x.Field(i), ft, row)
		}
		return out
	}
	return nil
}

func slice(values arrow.Array, et types.Type, from, to int64) []types.Datum {
	out := make([]types.Datum, 0, to-from)
	for i := int(from); i < int(to); i++ {
		out = append(out, DatumAt(values, et, i))
	}
	return out
}
