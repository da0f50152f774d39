package aggregate

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// countState is count(*) and count(x).
type countState struct {
	n    []int64
	star bool
}

func (s *countState) Grow(n int) error { s.n = extend(s.n, n); return nil }
func (s *countState) Size() int64      { return int64(cap(s.n)) * 8 }

func (s *countState) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	s.add(groups, args, sel, 1)
	return nil
}

func (s *countState) Remove(groups []uint32, args []vec.Vec, sel []uint16) error {
	s.add(groups, args, sel, -1)
	return nil
}

func (s *countState) add(groups []uint32, args []vec.Vec, sel []uint16, by int64) {
	n := s.n
	all := s.star || len(args) == 0
	if !all && args[0].Const {
		if args[0].Arr.IsNull(0) {
			return
		}
		all = true
	}
	var valid []byte
	var off int
	if !all {
		valid, off = vec.Validity(args[0].Arr)
	}
	if valid == nil {
		if len(n) == 1 {
			n[0] += by * int64(len(groups))
			return
		}
		for _, g := range groups {
			n[g] += by
		}
		return
	}
	for k, g := range groups {
		i := off + rowAt(sel, k)
		n[g] += by * int64(valid[i>>3]>>(i&7)&1)
	}
}

func (s *countState) Merge(other State, to []uint32) error { return s.MergePart(other, nil, to) }

func (s *countState) MergePart(other State, from, to []uint32) error {
	o := other.(*countState)
	pairs(from, to, func(f, t uint32) { s.n[t] += o.n[f] })
	return nil
}

func (s *countState) Result(from, to int) (arrow.Array, error) {
	return vec.Make(arrow.PrimitiveTypes.Int64, append([]int64(nil), s.n[from:to]...), nil), nil
}
