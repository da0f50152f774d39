package aggregate

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

var collectDefs = []Def{
	{Name: "string_agg", Args: []types.Type{tText, tText}, Ret: tText, OrderSensitive: true, IgnoresNulls: true,
		New: func(*Call) State { return &stringAgg{dt: arrow.BinaryTypes.String} }, Doc: "values joined by a delimiter"},
	{Name: "string_agg", Args: []types.Type{tBytea, tBytea}, Ret: tBytea, OrderSensitive: true, IgnoresNulls: true,
		New: func(*Call) State { return &stringAgg{dt: arrow.BinaryTypes.Binary} }, Doc: "values joined by a delimiter"},
	{Name: "array_agg", Args: one(fixed(types.AnyNonArray)), Ret: tAnyArray, OrderSensitive: true,
		RetFn: func(ts []types.Type) types.Type { return types.ArrayOf(ts[0].WithNotNull(false)) },
		New:   func(c *Call) State { return &arrayAgg{t: c.Ret} }, Doc: "values as an array, nulls included"},
}

// stringAgg joins in the order of the rows. The delimiter of a group's first
// value is left out.
type stringAgg struct {
	dt    arrow.DataType
	v     [][]byte
	delim [][]byte // of each group's first row: what Merge puts between parts
	bytes int64
}

func (s *stringAgg) Grow(n int) error { s.v, s.delim = extend(s.v, n), extend(s.delim, n); return nil }

func (s *stringAgg) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	a := arg(args, 0, groups, sel)
	v, d := vec.ViewStr(a), vec.ViewStr(arg(args, 1, groups, sel))
	eachValid(a, groups, sel, func(g uint32, r int) {
		var delim []byte
		if !d.IsNull(r) {
			delim = d.At(r)
		}
		s.put(g, delim, v.At(r))
	})
	return nil
}

func (s *stringAgg) put(g uint32, delim, x []byte) {
	s.bytes += int64(len(delim) + len(x))
	if s.v[g] == nil {
		s.v[g] = append(make([]byte, 0, len(x)+16), x...)
		s.delim[g] = append([]byte{}, delim...)
		return
	}
	s.v[g] = append(append(s.v[g], delim...), x...)
}

func (s *stringAgg) Merge(o State, to []uint32) error { return s.MergePart(o, nil, to) }

func (s *stringAgg) MergePart(o State, from, to []uint32) error {
	x := o.(*stringAgg)
	pairs(from, to, func(f, t uint32) {
		if x.v[f] != nil {
			s.put(t, x.delim[f], x.v[f])
		}
	})
	return nil
}

func (s *stringAgg) Result(from, to int) (arrow.Array, error) {
	return byteRows(s.dt, s.v[from:to]), nil
}

func (s *stringAgg) Size() int64 { return int64(cap(s.v))*48 + s.bytes }

type arrayAgg struct {
	t     types.Type
	v     [][]types.Datum
	seen  []bool
	count int64
}

func (s *arrayAgg) Grow(n int) error { s.v, s.seen = extend(s.v, n), extend(s.seen, n); return nil }

func (s *arrayAgg) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	a := arg(args, 0, groups, sel)
	for i, g := range groups {
		s.v[g] = append(s.v[g], vec.DatumAt(a, *s.t.Elem, row(sel, i)))
		s.seen[g] = true
	}
	s.count += int64(len(groups))
	return nil
}

func (s *arrayAgg) Merge(o State, to []uint32) error { return s.MergePart(o, nil, to) }

func (s *arrayAgg) MergePart(o State, from, to []uint32) error {
	x := o.(*arrayAgg)
	pairs(from, to, func(f, t uint32) {
		s.v[t] = append(s.v[t], x.v[f]...)
		s.seen[t] = s.seen[t] || x.seen[f]
	})
	s.count += x.count
	return nil
}

func (s *arrayAgg) Result(from, to int) (arrow.Array, error) {
	ds := make([]types.Datum, to-from)
	for i := from; i < to; i++ {
		if s.seen[i] {
			ds[i-from] = s.v[i]
		}
	}
	return vec.FromDatums(s.t, ds), nil
}

func (s *arrayAgg) Size() int64 { return int64(cap(s.v))*25 + s.count*40 }
