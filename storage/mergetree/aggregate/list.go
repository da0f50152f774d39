package aggregate

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Functions on lists and maps choose elements of the column: a value is a list of
// places in the column's child array, from which the result is taken at the end.

// listRules are what a function does with lists of elements.
type listRules interface {
	// begin is told the child array, before a column is folded.
	begin(child arrow.Array)
	// merge appends to dst the value that acc and x make; null says which of them is
	// NULL. ok is false when the result is NULL. dst aliases neither.
	merge(dst, acc, x []int32, accNull, xNull bool) (out []int32, ok bool, err error)
	// retract is merge for taking x back.
	retract(dst, acc, x []int32, accNull, xNull bool) (out []int32, ok bool, err error)
}

type listFold struct {
	rules listRules
	// sameReversed: late input is merged as any other.
	sameReversed bool

	acc, next, x []int32
}

func (f *listFold) Fold(in *Input) (arrow.Array, error) {
	offs, child := vec.ListParts(in.Col)
	f.rules.begin(child)
	valid, off := vec.Validity(in.Col)
	n := len(in.Ends)
	out, null := make([]int32, n+1), nulls{n: n}
	var rows []int32
	i := 0
	for k, e := range in.Ends {
		acc, some := f.acc[:0], false
		for ; i < int(e); i++ {
			op := Add
			if in.Ops != nil {
				op = in.Ops[i]
			}
			if op == Skip {
				continue
			}
			if op == Clear {
				acc, some = acc[:0], false
				continue
			}
			ok := vec.BitAt(valid, off+i)
			x := f.x[:0]
			if ok {
				for j := offs[i]; j < offs[i+1]; j++ {
					x = append(x, j)
				}
			}
			f.x = x
			if op == Set || op == SetRetract {
				acc, some = append(acc[:0], x...), ok
				if op == Set {
					continue
				}
			}
			var err error
			next := f.next[:0]
			switch {
			case op == Add || op == AddReversed && f.sameReversed:
				next, some, err = f.rules.merge(next, acc, x, !some, !ok)
			case op == AddReversed:
				next, some, err = f.rules.merge(next, x, acc, !ok, !some)
			default:
				next, some, err = f.rules.retract(next, acc, x, !some, !ok)
			}
			if err != nil {
				return nil, err
			}
			acc, f.next = next, acc
		}
		if some {
			rows = append(rows, acc...)
		} else {
			null.set(k)
		}
		if len(rows) > maxBytes {
			return nil, errTooLong
		}
		out[k+1] = int32(len(rows))
		f.acc = acc
	}
	return vec.MakeList(in.Col.DataType(), out, vec.Take(child, rows), null.bits), nil
}

// either is what most functions make of a NULL: the other value.
func either(dst, acc, x []int32, accNull, xNull bool) ([]int32, bool) {
	switch {
	case accNull:
		return append(dst, x...), !xNull
	default:
		return append(dst, acc...), true
	}
}

// mapParts returns the keys and values of the child of a map.
func mapParts(child arrow.Array) (keys, values arrow.Array) {
	s := child.(*array.Struct)
	return s.Field(0), s.Field(1)
}
