package aggregate

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// The functions of this file choose a row of each key, which the result is.
// pick[k] is that row, -1 for NULL.

var (
	lastValue         = Function{Name: "last_value", New: picked(pickLast)}
	lastNonNullValue  = Function{Name: "last_non_null_value", New: picked(pickLastNonNull)}
	firstValue        = Function{Name: "first_value", New: picked(pickFirst)}
	firstNonNullValue = Function{Name: "first_non_null_value", Alias: "first_not_null_value", New: picked(pickFirstNonNull)}
	// primaryKey is what key columns have: the rows of a key agree on them.
	primaryKey = Function{Name: "primary-key", New: picked(pickKey)}
)

type picker func(in *Input, pick []int32) error

type pickFold struct {
	pick picker
	rows []int32
}

func picked(p picker) func(Spec) (Aggregate, error) {
	return func(Spec) (Aggregate, error) { return &pickFold{pick: p}, nil }
}

func (f *pickFold) Fold(in *Input) (arrow.Array, error) {
	f.rows = grow(f.rows, len(in.Ends))
	if err := f.pick(in, f.rows); err != nil {
		return nil, err
	}
	return vec.TakeNull(in.Col, f.rows), nil
}

func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// orNull returns row i, -1 when it is NULL.
func orNull(valid []byte, off, i int) int32 {
	if vec.BitAt(valid, off+i) {
		return int32(i)
	}
	return -1
}

// LastNonNull sets pick to the last row of each key that is not NULL, -1 where
// all are. len(pick) must be len(ends).
func LastNonNull(col arrow.Array, ends []uint32, pick []int32) {
	valid, off := vec.Validity(col)
	if valid == nil {
		for k, e := range ends {
			pick[k] = int32(e) - 1
		}
		return
	}
	from := 0
	for k, e := range ends {
		i := int(e) - 1
		for ; i >= from; i-- {
			j := off + i
			if valid[j>>3]&(1<<(j&7)) != 0 {
				break
			}
		}
		if i < from {
			i = -1
		}
		pick[k] = int32(i)
		from = int(e)
	}
}

// With operations, rows are looked at from the last on: the first that settles the
// value ends the search, most often the first of all.

func pickLastNonNull(in *Input, pick []int32) error {
	if in.Ops == nil {
		LastNonNull(in.Col, in.Ends, pick)
		return nil
	}
	valid, off := vec.Validity(in.Col)
	from := 0
	for k, e := range in.Ends {
		// A late row stands only where nothing is before it: of those the first.
		acc := int32(-1)
	search:
		for i := int(e) - 1; i >= from; i-- {
			if in.Ops[i] == Skip {
				continue
			}
			ok := valid == nil || valid[(off+i)>>3]&(1<<((off+i)&7)) != 0
			switch in.Ops[i] {
			case Add:
				if ok {
					acc = int32(i)
					break search
				}
			case AddReversed:
				if ok {
					acc = int32(i)
				}
			case Retract:
				if ok {
					break search
				}
			case Set:
				if ok {
					acc = int32(i)
				}
				break search
			default: // Clear, SetRetract
				break search
			}
		}
		pick[k] = acc
		from = int(e)
	}
	return nil
}

func pickLast(in *Input, pick []int32) error {
	if in.Ops == nil {
		for k, e := range in.Ends {
			pick[k] = int32(e) - 1
		}
		return nil
	}
	from := 0
	for k, e := range in.Ends {
		acc := int32(-1)
	search:
		for i := int(e) - 1; i >= from; i-- {
			switch in.Ops[i] {
			case Add, Set:
				acc = int32(i)
				break search
			case Retract, Clear, SetRetract:
				break search
			}
		}
		pick[k] = acc
		from = int(e)
	}
	return nil
}

func pickKey(in *Input, pick []int32) error {
	if in.Ops == nil {
		return pickLast(in, pick)
	}
	i := 0
	for k, e := range in.Ends {
		acc := int32(-1)
		for ; i < int(e); i++ {
			switch in.Ops[i] {
			case Add, Set, Retract, SetRetract:
				acc = int32(i)
			case Clear:
				acc = -1
			}
		}
		pick[k] = acc
	}
	return nil
}

// Java's first_value and first_non_null_value remember that they have seen a
// value, beside the accumulated one. Late rows come in with the two exchanged:
// the late row is then what is kept.

func pickFirst(in *Input, pick []int32) error {
	i := 0
	for k, e := range in.Ends {
		if in.Ops == nil {
			pick[k] = int32(i)
			i = int(e)
			continue
		}
		acc, seen := int32(-1), false
		for ; i < int(e); i++ {
			switch in.Ops[i] {
			case Add:
				if !seen {
					acc, seen = int32(i), true
				}
			case AddReversed:
				if seen {
					acc = int32(i)
				}
				seen = true
			case Retract, SetRetract:
				return noRetract("first_value")
			case Set:
				acc = int32(i)
			case Clear:
				acc = -1
			}
		}
		pick[k] = acc
	}
	return nil
}

func pickFirstNonNull(in *Input, pick []int32) error {
	valid, off := vec.Validity(in.Col)
	i := 0
	for k, e := range in.Ends {
		acc, seen := int32(-1), false
		if in.Ops == nil {
			for j := i; j < int(e); j++ {
				if vec.BitAt(valid, off+j) {
					acc = int32(j)
					break
				}
			}
			pick[k] = acc
			i = int(e)
			continue
		}
		for ; i < int(e); i++ {
			switch in.Ops[i] {
			case Add:
				if !seen && vec.BitAt(valid, off+i) {
					acc, seen = int32(i), true
				}
			case AddReversed:
				if !seen && acc >= 0 {
					seen = true
				} else {
					acc = orNull(valid, off, i)
				}
			case Retract, SetRetract:
				return noRetract("first_non_null_value")
			case Set:
				acc = orNull(valid, off, i)
			case Clear:
				acc = -1
			}
		}
		pick[k] = acc
	}
	return nil
}

// LastNonNullOps is LastNonNull for rows that do what in.Ops says.
func LastNonNullOps(in *Input, pick []int32) { _ = pickLastNonNull(in, pick) }
