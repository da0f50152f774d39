package aggregate

import (
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// intervalSum is sum and avg of intervals, part by part.
type intervalSum struct {
	us, days, months, n []int64
	avg                 bool
}

func (s *intervalSum) Grow(n int) error {
	s.us, s.days, s.months, s.n = extend(s.us, n), extend(s.days, n), extend(s.months, n), extend(s.n, n)
	return nil
}
func (s *intervalSum) Size() int64 { return int64(cap(s.us)) * 32 }

func (s *intervalSum) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	s.add(groups, args, sel, 1)
	return nil
}

func (s *intervalSum) Remove(groups []uint32, args []vec.Vec, sel []uint16) error {
	s.add(groups, args, sel, -1)
	return nil
}

func (s *intervalSum) add(groups []uint32, args []vec.Vec, sel []uint16, by int64) {
	a := plain(args[0], groups, sel).(*array.FixedSizeBinary)
	eachValid(a, groups, sel, func(g uint32, i int) {
		v := pgtext.DecodeInterval(a.Value(i))
		s.us[g] += by * v.Micros
		s.days[g] += by * int64(v.Days)
		s.months[g] += by * int64(v.Months)
		s.n[g] += by
	})
}

func (s *intervalSum) Merge(other State, to []uint32) error { return s.MergePart(other, nil, to) }

func (s *intervalSum) MergePart(other State, from, to []uint32) error {
	o := other.(*intervalSum)
	pairs(from, to, func(i, g uint32) {
		s.us[g] += o.us[i]
		s.days[g] += o.days[i]
		s.months[g] += o.months[i]
		s.n[g] += o.n[i]
	})
	return nil
}

func (s *intervalSum) Result(from, to int) (arrow.Array, error) {
	ds := make([]types.Datum, to-from)
	for g := from; g < to; g++ {
		if s.n[g] <= 0 {
			continue
		}
		us, days, months := s.us[g], s.days[g], s.months[g]
		if s.avg {
			us, days, months = divInterval(us, days, months, float64(s.n[g]))
		}
		if days != int64(int32(days)) || months != int64(int32(months)) || us == math.MinInt64 {
			return nil, pgerr.New(pgerr.DatetimeFieldOverflow, "interval out of range")
		}
		ds[g-from] = pgtext.Interval{Micros: us, Days: int32(days), Months: int32(months)}.Bytes()
	}
	return vec.FromDatums(tInterval, ds), nil
}
