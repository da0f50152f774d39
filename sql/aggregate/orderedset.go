package aggregate

import (
	"bytes"
	"encoding/binary"
	"math"
	"sort"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

func orderedSetDefs() []Def {
	arr := types.ArrayOf(tFloat8)
	second := func(ts []types.Type) types.Type { return ts[len(ts)-1].WithNotNull(false) }
	secondArray := func(ts []types.Type) types.Type { return types.ArrayOf(ts[len(ts)-1].WithNotNull(false)) }
	mk := func(kind string) func(c *Call) State {
		return func(c *Call) State { return &orderedSet{c: c, kind: kind} }
	}
	out := []Def{
		{Name: "percentile_cont", Args: []types.Type{tFloat8, tFloat8}, Ret: tFloat8, OrderedSet: true, DirectArgs: 1, New: mk("cont"), Doc: "continuous percentile"},
		{Name: "percentile_cont", Args: []types.Type{tFloat8, tInterval}, Ret: tInterval, OrderedSet: true, DirectArgs: 1, New: mk("cont"), Doc: "continuous percentile"},
		{Name: "percentile_cont", Args: []types.Type{arr, tInterval}, Ret: types.ArrayOf(tInterval), OrderedSet: true, DirectArgs: 1, New: mk("cont"), Doc: "continuous percentiles"},
		{Name: "percentile_cont", Args: []types.Type{arr, tFloat8}, Ret: arr, OrderedSet: true, DirectArgs: 1, New: mk("cont"), Doc: "continuous percentiles"},
		{Name: "percentile_disc", Args: []types.Type{tFloat8, tAnyElement}, Ret: tAnyElement, RetFn: second, OrderedSet: true, DirectArgs: 1, New: mk("disc"), Doc: "discrete percentile"},
		{Name: "percentile_disc", Args: []types.Type{arr, tAnyElement}, Ret: tAnyArray, RetFn: secondArray, OrderedSet: true, DirectArgs: 1, New: mk("disc"), Doc: "discrete percentiles"},
		{Name: "mode", Args: one(tAnyElement), Ret: tAnyElement, RetFn: second, OrderedSet: true, New: mk("mode"), Doc: "most frequent value"},
	}
	for _, h := range []struct {
		name string
		ret  types.Type
		doc  string
	}{{"rank", tInt8, "rank of a hypothetical row"}, {"dense_rank", tInt8, "rank without gaps of a hypothetical row"},
		{"percent_rank", tFloat8, "relative rank of a hypothetical row"}, {"cume_dist", tFloat8, "cumulative distribution of a hypothetical row"}} {
		out = append(out, Def{Name: h.name, Args: one(tAny), Variadic: true, Ret: h.ret, OrderedSet: true, Hypothetical: true, New: mk(h.name), Doc: h.doc})
	}
	return out
}

// orderedSet keeps each group's values with their sort keys.
type orderedSet struct {
	c     *Call
	kind  string
	rows  [][]keyed
	bytes int64
}

type keyed struct {
	key []byte
	val types.Datum
}

func (s *orderedSet) columns() []vec.KeyColumn {
	out := make([]vec.KeyColumn, len(s.c.ArgTypes))
	for i, t := range s.c.ArgTypes {
		out[i] = vec.KeyColumn{Type: t}
		if i < len(s.c.Desc) {
			out[i].Desc, out[i].NullsFirst = s.c.Desc[i], s.c.NullsFirst[i]
		}
	}
	return out
}

func (s *orderedSet) hypothetical() bool {
	switch s.kind {
	case "cont", "disc", "mode":
		return false
	}
	return true
}

func (s *orderedSet) Grow(n int) error { s.rows = extend(s.rows, n); return nil }

func (s *orderedSet) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	arrs := make([]arrow.Array, len(s.c.ArgTypes))
	for i := range arrs {
		arrs[i] = arg(args, i, groups, sel)
	}
	k := vec.NewKeyer(s.columns(), arrs)
	for i, g := range groups {
		r := row(sel, i)
		if !s.hypothetical() && arrs[0].IsNull(r) {
			continue
		}
		x := keyed{key: k.Append(nil, r)}
		if !s.hypothetical() {
			x.val = vec.DatumAt(arrs[0], s.c.ArgTypes[0], r)
		}
		s.bytes += int64(len(x.key)) + 64
		s.rows[g] = append(s.rows[g], x)
	}
	return nil
}

func (s *orderedSet) Merge(o State, to []uint32) error { return s.MergePart(o, nil, to) }

func (s *orderedSet) MergePart(o State, from, to []uint32) error {
	x := o.(*orderedSet)
	pairs(from, to, func(f, t uint32) { s.rows[t] = append(s.rows[t], x.rows[f]...) })
	s.bytes += x.bytes
	return nil
}

func (s *orderedSet) Result(from, to int) (arrow.Array, error) {
	out := make([]types.Datum, to-from)
	for i := from; i < to; i++ {
		rows := s.rows[i]
		sort.SliceStable(rows, func(a, b int) bool { return bytes.Compare(rows[a].key, rows[b].key) < 0 })
		d, err := s.one(rows)
		if err != nil {
			return nil, err
		}
		out[i-from] = d
	}
	return vec.FromDatums(s.c.Ret, out), nil
}

func (s *orderedSet) one(rows []keyed) (types.Datum, error) {
	switch s.kind {
	case "mode":
		var best types.Datum
		n := 0
		for i := 0; i < len(rows); {
			j := i
			for j < len(rows) && bytes.Equal(rows[j].key, rows[i].key) {
				j++
			}
			if j-i > n {
				n, best = j-i, rows[i].val
			}
			i = j
		}
		return best, nil
	case "cont", "disc":
		if len(s.c.Direct) == 0 {
			return nil, pgerr.New(pgerr.FeatureNotSupported, "direct arguments of ordered-set aggregates that differ by group are not supported")
		}
		if s.c.Direct[0] == nil {
			return nil, nil
		}
		if fs, ok := s.c.Direct[0].([]types.Datum); ok {
			if len(rows) == 0 {
				return nil, nil
			}
			out := make([]types.Datum, len(fs))
			for i, f := range fs {
				if f == nil {
					continue
				}
				v, err := s.percentile(rows, f.(float64))
				if err != nil {
					return nil, err
				}
				out[i] = v
			}
			return out, nil
		}
		return s.percentile(rows, s.c.Direct[0].(float64))
	}
	if len(s.c.Direct) < len(s.c.ArgTypes) {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "direct arguments of ordered-set aggregates that differ by group are not supported")
	}
	// Hypothetical-set: where would the direct arguments stand?
	arrs := make([]arrow.Array, len(s.c.ArgTypes))
	for i, t := range s.c.ArgTypes {
		arrs[i] = vec.FromDatums(t, []types.Datum{s.c.Direct[i]})
	}
	key := vec.NewKeyer(s.columns(), arrs).Append(nil, 0)
	less := sort.Search(len(rows), func(i int) bool { return bytes.Compare(rows[i].key, key) >= 0 })
	upTo := sort.Search(len(rows), func(i int) bool { return bytes.Compare(rows[i].key, key) > 0 })
	switch s.kind {
	case "rank":
		return int64(less + 1), nil
	case "dense_rank":
		n := int64(1)
		for i := 0; i < less; i++ {
			if i == 0 || !bytes.Equal(rows[i].key, rows[i-1].key) {
				n++
			}
		}
		return n, nil
	case "percent_rank":
		if len(rows) == 0 {
			return 0.0, nil
		}
		return float64(less) / float64(len(rows)), nil
	}
	return float64(upTo+1) / float64(len(rows)+1), nil
}

func (s *orderedSet) percentile(rows []keyed, f float64) (types.Datum, error) {
	if math.IsNaN(f) || f < 0 || f > 1 {
		return nil, pgerr.New(pgerr.NumericValueOutOfRange, "percentile value %g is not between 0 and 1", f)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	n := float64(len(rows))
	if s.kind == "disc" {
		return rows[max(int(math.Ceil(f*n))-1, 0)].val, nil
	}
	pos := f * (n - 1)
	lo, hi := int(math.Floor(pos)), int(math.Ceil(pos))
	if lo == hi {
		return rows[lo].val, nil
	}
	frac := pos - float64(lo)
	switch a := rows[lo].val.(type) {
	case float64:
		b := rows[hi].val.(float64)
		return a + frac*(b-a), nil
	case []byte:
		return lerpInterval(a, rows[hi].val.([]byte), frac), nil
	}
	return nil, nil
}

// lerpInterval is a + (b-a)*frac member by member, with the fractions of months
// and days carried down.
func lerpInterval(a, b []byte, frac float64) []byte {
	part := func(x []byte) (int64, int64, int64) {
		return int64(binary.LittleEndian.Uint64(x)), int64(int32(binary.LittleEndian.Uint32(x[8:]))), int64(int32(binary.LittleEndian.Uint32(x[12:])))
	}
	au, ad, am := part(a)
	bu, bd, bm := part(b)
	us, days, months := divInterval(bu-au, bd-ad, bm-am, 1/frac)
	out := make([]byte, 16)
	binary.LittleEndian.PutUint64(out, uint64(au+us))
	binary.LittleEndian.PutUint32(out[8:], uint32(int32(ad+days)))
	binary.LittleEndian.PutUint32(out[12:], uint32(int32(am+months)))
	return out
}

func (s *orderedSet) Size() int64 { return int64(cap(s.rows))*24 + s.bytes }

// divInterval divides as interval_div does: what is left of months goes to days
// (30 a month), what is left of days to the time.
func divInterval(us, days, months int64, f float64) (int64, int64, int64) {
	m := math.Trunc(float64(months) / f)
	d := math.Trunc(float64(days) / f)
	monthDays := (float64(months)/f - m) * 30
	monthDays = math.RoundToEven(monthDays*1e6) / 1e6
	secDays := (float64(days)/f-d)*86400 + (monthDays-math.Trunc(monthDays))*86400
	secDays = math.RoundToEven(secDays*1e6) / 1e6
	d += math.Trunc(monthDays)
	if math.Abs(secDays) >= 86400 {
		d += math.Trunc(secDays / 86400)
		secDays -= math.Trunc(secDays/86400) * 86400
	}
	return int64(math.RoundToEven(float64(us)/f + secDays*1e6)), int64(d), int64(m)
}
