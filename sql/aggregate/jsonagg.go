package aggregate

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/function"
)

// jsonAgg builds a JSON text per group: an array of the argument, or an object
// of keys and values. jsonb results are brought into normal form at the end.
type jsonAgg struct {
	c      *Call
	object bool
	jsonb  bool
	v      [][]byte
	bytes  int64
}

func (s *jsonAgg) Grow(n int) error { s.v = extend(s.v, n); return nil }
func (s *jsonAgg) Size() int64      { return int64(cap(s.v))*24 + s.bytes }

func (s *jsonAgg) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	st := function.StyleOf(s.c.Env)
	last := len(args) - 1
	sep := ", "
	if k := argType(s.c, last).Kind; !s.object && (k == types.Array || k == types.Row || k == types.Record) {
		sep = ", \n " // PostgreSQL breaks lines between structured elements
	}
	val := plain(args[last], groups, sel)
	write := pgtext.CompactJSONAppender(argType(s.c, last), val, st)
	var key arrow.Array
	var keyText func(dst []byte, row int) []byte
	if s.object {
		key = plain(args[0], groups, sel)
		keyText = pgtext.Appender(argType(s.c, 0), key, st)
	}
	for k, g := range groups {
		i := rowAt(sel, k)
		b := s.v[g]
		before := len(b)
		if b != nil {
			if val.IsNull(i) {
				b = append(b, ", "...)
			} else {
				b = append(b, sep...)
			}
		}
		if s.object {
			if key.IsNull(i) {
				return pgerr.New(pgerr.InvalidParameterValue, "field name must not be null")
			}
			b = pgtext.AppendJSONString(b, keyText(nil, i))
			b = append(b, " : "...)
		}
		if val.IsNull(i) {
			b = append(b, "null"...)
		} else {
			b = write(b, i)
		}
		s.bytes += int64(len(b) - before)
		s.v[g] = b
	}
	return nil
}

func (s *jsonAgg) Merge(other State, to []uint32) error { return s.MergePart(other, nil, to) }

func (s *jsonAgg) MergePart(other State, from, to []uint32) error {
	o := other.(*jsonAgg)
	pairs(from, to, func(i, g uint32) {
		if o.v[i] == nil {
			return
		}
		if s.v[g] != nil {
			s.v[g] = append(s.v[g], ", "...)
		}
		s.v[g] = append(s.v[g], o.v[i]...)
		s.bytes += int64(len(o.v[i]))
	})
	return nil
}

func (s *jsonAgg) Result(from, to int) (arrow.Array, error) {
	open, end := "[", "]"
	if s.object {
		open, end = "{ ", " }"
	}
	out := make([][]byte, to-from)
	for g := from; g < to; g++ {
		if s.v[g] == nil {
			continue
		}
		b := append([]byte(open), s.v[g]...)
		b = append(b, end...)
		if s.jsonb {
			n, err := pgtext.NormalizeJSONB(string(b))
			if err != nil {
				return nil, err
			}
			b = []byte(n)
		}
		out[g-from] = b
	}
	return byteRows(arrow.BinaryTypes.String, out), nil
}

func jsonDefs() []Def {
	var out []Def
	for _, j := range []struct {
		prefix string
		ret    types.Type
		jsonb  bool
	}{{"json", fixed(types.JSON), false}, {"jsonb", fixed(types.JSONB), true}} {
		out = append(out,
			Def{Name: j.prefix + "_agg", Args: one(tAnyElement), Ret: j.ret, OrderSensitive: true, Doc: "values as a JSON array, nulls included",
				New: func(c *Call) State { return &jsonAgg{c: c, jsonb: j.jsonb} }},
			Def{Name: j.prefix + "_object_agg", Args: []types.Type{tAny, tAny}, Ret: j.ret, OrderSensitive: true, Doc: "keys and values as a JSON object",
				New: func(c *Call) State { return &jsonAgg{c: c, object: true, jsonb: j.jsonb} }})
	}
	return out
}
