package parquet

import (
	"fmt"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// messageName is the name of the root, as Java Paimon has it.
const messageName = "paimon_schema"

// derivedIDBase is where Paimon's ids for the parts of arrays and maps begin,
// which have no field id of their own: a quarter of the largest int.
const derivedIDBase = 1<<31/4 - 1

// elementsOf makes the flattened schema of a file with columns s.
func elementsOf(s types.Schema) ([]element, error) {
	w := elementWriter{}
	w.group(messageName, -1, repRequired, len(s))
	w.els[0].repetition = -1
	for _, f := range s {
		if err := w.add(f.Name, f.Type, f.ID, f.ID, 0, false); err != nil {
			return nil, err
		}
	}
	return w.els, nil
}

type elementWriter struct{ els []element }

func (w *elementWriter) put(name string, id int32, rep int32) *element {
	w.els = append(w.els, element{typ: -1, typeLength: -1, repetition: rep, converted: -1, precision: -1,
		name: name, fieldID: id, hasFieldID: id >= 0})
	return &w.els[len(w.els)-1]
}

func (w *elementWriter) group(name string, id int32, rep int32, children int) *element {
	e := w.put(name, id, rep)
	e.numChildren = int32(children)
	return e
}

// add appends a field and what lies below it. owner and depth make the ids of
// array elements and map entries: owner is the id of the column or row field
// around them and depth counts arrays and maps in between.
func (w *elementWriter) add(name string, t types.Type, id, owner, depth int32, required bool) error {
	rep := int32(repOptional)
	if t.NotNull || required {
		rep = repRequired
	}
	switch t.Kind {
	case types.Array:
		e := w.group(name, id, rep, 1)
		e.logical, e.converted = logList, convList
		w.group("list", -1, repRepeated, 1)
		return w.add("element", *t.Elem, derivedIDBase+owner*1024+depth+1, owner, depth+1, false)
	case types.Map:
		e := w.group(name, id, rep, 1)
		e.logical, e.converted = logMap, convMap
		w.group("key_value", -1, repRepeated, 2).converted = convMapKeyValue
		if err := w.add("key", *t.Key, derivedIDBase-owner*1024-depth-1, owner, depth+1, true); err != nil {
			return err
		}
		return w.add("value", *t.Elem, derivedIDBase+owner*1024+depth+1, owner, depth+1, t.Multiset)
	case types.Row:
		if len(t.Fields) == 0 {
			return &fileio.UnsupportedError{Feature: "a ROW without fields in Parquet"}
		}
		w.group(name, id, rep, len(t.Fields))
		for _, f := range t.Fields {
			if err := w.add(f.Name, f.Type, f.ID, f.ID, 0, false); err != nil {
				return err
			}
		}
		return nil
	case types.Variant:
		w.group(name, id, rep, 2)
		w.put("value", 0, repRequired).typ = pBytes
		w.put("metadata", 1, repRequired).typ = pBytes
		return nil
	}
	return w.scalar(w.put(name, id, rep), t)
}

func (w *elementWriter) scalar(e *element, t types.Type) error {
	intOf := func(bits int8, conv int32) {
		e.typ, e.logical, e.bits, e.signed, e.converted = pInt32, logInt, bits, true, conv
	}
	switch t.Kind {
	case types.Bool:
		e.typ = pBool
	case types.TinyInt:
		intOf(8, convInt8)
	case types.Int2:
		intOf(16, convInt16)
	case types.Int4:
		e.typ = pInt32
	case types.Int8:
		e.typ = pInt64
	case types.Float4:
		e.typ = pFloat
	case types.Float8:
		e.typ = pDouble
	case types.Numeric:
		if t.Prec == 0 || t.Prec > 38 {
			return &fileio.UnsupportedError{Feature: "numeric without a precision of at most 38 in Parquet"}
		}
		e.logical, e.converted, e.precision, e.scale = logDecimal, convDecimal, int32(t.Prec), int32(t.Scale)
		switch {
		case t.Prec <= 9:
			e.typ = pInt32
		case t.Prec <= 18:
			e.typ = pInt64
		default:
			e.typ, e.typeLength = pFixed, decimalBytes(int(t.Prec))
		}
	case types.Date:
		e.typ, e.logical, e.converted = pInt32, logDate, convDate
	case types.Time:
		e.typ, e.logical, e.unit, e.adjusted, e.converted = pInt32, logTime, unitMillis, true, convTimeMillis
	case types.Timestamp, types.TimestampTZ:
		if t.Prec > 6 {
			e.typ = pInt96
			break
		}
		e.typ, e.logical, e.adjusted = pInt64, logTimestamp, t.Kind == types.TimestampTZ
		e.unit, e.converted = unitMicros, convTimestampMicros
		if t.Prec <= 3 {
			e.unit, e.converted = unitMillis, convTimestampMillis
		}
	case types.Text, types.Varchar, types.BpChar:
		e.typ, e.logical, e.converted = pBytes, logString, convUTF8
	case types.Bytea:
		e.typ = pBytes
	default:
		return &fileio.UnsupportedError{Feature: "type " + t.PlainName() + " in a Parquet file"}
	}
	return nil
}

// decimalBytes is the least number of bytes that hold every decimal of p digits:
// the smallest n with 2^(8n-1) >= 10^p.
func decimalBytes(p int) int32 {
	digits := [...]int{2, 4, 6, 9, 11, 14, 16, 18, 21, 23, 26, 28, 31, 33, 36, 38}
	for i, d := range digits {
		if p <= d {
			return int32(i + 1)
		}
	}
	panic(fmt.Sprintf("decimal of %d digits", p))
}

func (w *twrite) element(e *element) {
	w.open(0)
	if e.typ >= 0 {
		w.i32(1, e.typ)
	}
	if e.typeLength >= 0 {
		w.i32(2, e.typeLength)
	}
	if e.repetition >= 0 {
		w.i32(3, e.repetition)
	}
	w.str(4, e.name)
	if e.typ < 0 {
		w.i32(5, e.numChildren)
	}
	if e.converted >= 0 {
		w.i32(6, e.converted)
	}
	if e.logical == logDecimal {
		w.i32(7, e.scale)
		w.i32(8, e.precision)
	}
	if e.hasFieldID {
		w.i32(9, e.fieldID)
	}
	if e.logical != logNone {
		w.open(10)
		w.open(e.logical)
		switch e.logical {
		case logDecimal:
			w.i32(1, e.scale)
			w.i32(2, e.precision)
		case logTime, logTimestamp:
			w.bool(1, e.adjusted)
			w.open(2)
			w.empty(e.unit)
			w.close()
		case logInt:
			w.i8(1, e.bits)
			w.bool(2, e.signed)
		}
		w.close()
		w.close()
	}
	w.close()
}
