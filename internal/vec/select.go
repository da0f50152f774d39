package vec

import (
	"bytes"
	"math/bits"

	"github.com/apache/arrow/go/v15/arrow/decimal128"
)

// CmpOp is a comparison.
type CmpOp uint8

// The comparisons.
const (
	OpEq CmpOp = iota
	OpNe
	OpLt
	OpLe
	OpGt
	OpGe
)

// Swap returns the operation with its sides exchanged.
func (o CmpOp) Swap() CmpOp {
	switch o {
	case OpLt:
		return OpGt
	case OpLe:
		return OpGe
	case OpGt:
		return OpLt
	case OpGe:
		return OpLe
	}
	return o
}

// Negate returns the opposite, for values that are not NULL.
func (o CmpOp) Negate() CmpOp {
	return [...]CmpOp{OpNe, OpEq, OpGe, OpGt, OpLe, OpLt}[o]
}

// Holds reports whether a comparison that came out as c (below, at or above
// zero) satisfies o.
func (o CmpOp) Holds(c int) bool {
	switch o {
	case OpEq:
		return c == 0
	case OpNe:
		return c != 0
	case OpLt:
		return c < 0
	case OpLe:
		return c <= 0
	case OpGt:
		return c > 0
	}
	return c >= 0
}

// The selections below write to out the positions, ascending, of rows that
// satisfy a comparison, and return their number. sel limits the rows looked at,
// nil = all of v; out must be as long as what is looked at and may be sel
// itself. NULLs are the caller's business: it narrows sel first (SelectValid).
//
// The store is unconditional and the cursor advances by 0 or 1: a branch on
// data that half the rows take made such a loop ten times slower.

// SelectLess selects v[i] < c.
func SelectLess[T Fixed](v []T, c T, out []uint16) int {
	out = out[:len(v)] // too short: fail here, not in the middle
	n := 0
	for i, x := range v {
		out[n] = uint16(i)
		hit := 0
		if x < c {
			hit = 1
		}
		n += hit
	}
	return n
}

func selectLessEq[T Fixed](v []T, c T, out []uint16) int {
	out = out[:len(v)]
	n := 0
	for i, x := range v {
		out[n] = uint16(i)
		hit := 0
		if x <= c {
			hit = 1
		}
		n += hit
	}
	return n
}

func selectGreater[T Fixed](v []T, c T, out []uint16) int {
	out = out[:len(v)]
	n := 0
	for i, x := range v {
		out[n] = uint16(i)
		hit := 0
		if x > c {
			hit = 1
		}
		n += hit
	}
	return n
}

func selectGreaterEq[T Fixed](v []T, c T, out []uint16) int {
	out = out[:len(v)]
	n := 0
	for i, x := range v {
		out[n] = uint16(i)
		hit := 0
		if x >= c {
			hit = 1
		}
		n += hit
	}
	return n
}

func selectEq[T Fixed](v []T, c T, out []uint16) int {
	out = out[:len(v)]
	n := 0
	for i, x := range v {
		out[n] = uint16(i)
		hit := 0
		if x == c {
			hit = 1
		}
		n += hit
	}
	return n
}

func selectNotEq[T Fixed](v []T, c T, out []uint16) int {
	out = out[:len(v)]
	n := 0
	for i, x := range v {
		out[n] = uint16(i)
		hit := 0
		if x != c {
			hit = 1
		}
		n += hit
	}
	return n
}

// SelectConst selects v[i] op c. For floats NaN must not occur on either side;
// SelectFloat knows it.
func SelectConst[T Fixed](op CmpOp, v []T, c T, sel, out []uint16) int {
	if sel == nil {
		switch op {
		case OpEq:
			return selectEq(v, c, out)
		case OpNe:
			return selectNotEq(v, c, out)
		case OpLt:
			return SelectLess(v, c, out)
		case OpLe:
			return selectLessEq(v, c, out)
		case OpGt:
			return selectGreater(v, c, out)
		}
		return selectGreaterEq(v, c, out)
	}
	out = out[:len(sel)]
	n := 0
	switch op {
	case OpEq:
		for _, i := range sel {
			hit := 0
			if v[i] == c {
				hit = 1
			}
			out[n] = i
			n += hit
		}
	case OpNe:
		for _, i := range sel {
			hit := 0
			if v[i] != c {
				hit = 1
			}
			out[n] = i
			n += hit
		}
	case OpLt:
		for _, i := range sel {
			hit := 0
			if v[i] < c {
				hit = 1
			}
			out[n] = i
			n += hit
		}
	case OpLe:
		for _, i := range sel {
			hit := 0
			if v[i] <= c {
				hit = 1
			}
			out[n] = i
			n += hit
		}
	case OpGt:
		for _, i := range sel {
			hit := 0
			if v[i] > c {
				hit = 1
			}
			out[n] = i
			n += hit
		}
	default:
		for _, i := range sel {
			hit := 0
			if v[i] >= c {
				hit = 1
			}
			out[n] = i
			n += hit
		}
	}
	return n
}

// SelectFloat is SelectConst with SQL's NaN: equal to itself and greatest.
func SelectFloat[T ~float32 | ~float64](op CmpOp, v []T, c T, sel, out []uint16) int {
	nan := c != c
	switch {
	case !nan && op != OpGt && op != OpGe && op != OpNe:
		return SelectConst(op, v, c, sel, out) // NaN fails =, < and <= as it must
	case !nan && op == OpNe:
		return SelectConst(op, v, c, sel, out) // NaN != c holds in IEEE too
	case nan && op == OpGt:
		return 0
	}
	// x > c is not (x <= c), NaN included; against NaN only x == NaN matters.
	n := 0
	k := len(v)
	if sel != nil {
		k = len(sel)
	}
	out = out[:k]
	for j := range k {
		i := uint16(j)
		if sel != nil {
			i = sel[j]
		}
		x := v[i]
		ok := false
		switch {
		case !nan && op == OpGt:
			ok = !(x <= c)
		case !nan:
			ok = !(x < c)
		case op == OpEq || op == OpGe:
			ok = x != x
		case op == OpLe:
			ok = true
		default: // < or <> NaN
			ok = x == x
		}
		out[n] = i
		if ok {
			n++
		}
	}
	return n
}

// SelectPair selects a[i] op b[i].
func SelectPair[T ~int8 | ~int16 | ~int32 | ~int64](op CmpOp, a, b []T, sel, out []uint16) int {
	n := 0
	if sel == nil {
		b = b[:len(a)]
		out = out[:len(a)]
		switch op {
		case OpEq:
			for i, x := range a {
				hit := 0
				if x == b[i] {
					hit = 1
				}
				out[n] = uint16(i)
				n += hit
			}
		case OpNe:
			for i, x := range a {
				hit := 0
				if x != b[i] {
					hit = 1
				}
				out[n] = uint16(i)
				n += hit
			}
		case OpLt:
			for i, x := range a {
				hit := 0
				if x < b[i] {
					hit = 1
				}
				out[n] = uint16(i)
				n += hit
			}
		case OpLe:
			for i, x := range a {
				hit := 0
				if x <= b[i] {
					hit = 1
				}
				out[n] = uint16(i)
				n += hit
			}
		case OpGt:
			return SelectPair(OpLt, b, a, sel, out)
		default:
			return SelectPair(OpLe, b, a, sel, out)
		}
		return n
	}
	out = out[:len(sel)]
	for _, i := range sel {
		x, y := a[i], b[i]
		hit := 0
		switch op {
		case OpEq:
			if x == y {
				hit = 1
			}
		case OpNe:
			if x != y {
				hit = 1
			}
		case OpLt:
			if x < y {
				hit = 1
			}
		case OpLe:
			if x <= y {
				hit = 1
			}
		case OpGt:
			if x > y {
				hit = 1
			}
		default:
			if x >= y {
				hit = 1
			}
		}
		out[n] = i
		n += hit
	}
	return n
}

// SelectDec selects v[i] op c where both have one scale.
func SelectDec(op CmpOp, v []decimal128.Num, c decimal128.Num, sel, out []uint16) int {
	n := 0
	k := len(v)
	if sel != nil {
		k = len(sel)
	}
	out = out[:k]
	chi, clo := uint64(c.HighBits())^signBit, c.LowBits()
	// Wanted outcomes of (below, equal) as bits: below*1, equal*2, above*4.
	mask := [...]uint64{OpEq: 2, OpNe: 5, OpLt: 1, OpLe: 3, OpGt: 4, OpGe: 6}[op]
	for j := range k {
		i := uint16(j)
		if sel != nil {
			i = sel[j]
		}
		x := v[i]
		hi, lo := uint64(x.HighBits())^signBit, x.LowBits()
		_, b := bits.Sub64(lo, clo, 0)
		_, lt := bits.Sub64(hi, chi, b)
		_, b = bits.Sub64(clo, lo, 0)
		_, gt := bits.Sub64(chi, hi, b)
		out[n] = i
		n += int(mask >> (1 - lt + gt) & 1)
	}
	return n
}

// SelectDecPair selects a[i] op b[i] where both have one scale.
func SelectDecPair(op CmpOp, a, b []decimal128.Num, sel, out []uint16) int {
	n := 0
	k := len(a)
	if sel != nil {
		k = len(sel)
	}
	for j := range k {
		i := uint16(j)
		if sel != nil {
			i = sel[j]
		}
		out[n] = i
		if op.Holds(CmpDec128(a[i], b[i])) {
			n++
		}
	}
	return n
}

// SelectStr selects strings by comparison with c, bytewise.
func SelectStr(op CmpOp, s *StrView, c []byte, sel, out []uint16) int {
	n := 0
	k := len(s.Offs) - 1
	if sel != nil {
		k = len(sel)
	}
	if k <= 0 {
		return 0
	}
	out = out[:k]
	if op == OpEq || op == OpNe {
		want := op == OpEq
		for j := range k {
			i := uint16(j)
			if sel != nil {
				i = sel[j]
			}
			o, e := s.Offs[i], s.Offs[int(i)+1]
			out[n] = i
			if (int(e-o) == len(c) && string(s.Data[o:e]) == string(c)) == want {
				n++
			}
		}
		return n
	}
	for j := range k {
		i := uint16(j)
		if sel != nil {
			i = sel[j]
		}
		out[n] = i
		if op.Holds(bytes.Compare(s.At(int(i)), c)) {
			n++
		}
	}
	return n
}

// SelectTable selects rows whose dictionary index is marked with 1 in table.
func SelectTable(idx []int32, table []uint8, sel, out []uint16) int {
	n := 0
	if sel == nil {
		out = out[:len(idx)]
		for i, x := range idx {
			out[n] = uint16(i)
			n += int(table[x])
		}
		return n
	}
	out = out[:len(sel)]
	for _, i := range sel {
		out[n] = i
		n += int(table[idx[i]])
	}
	return n
}

// SelectValid narrows sel (nil = all n rows) to rows that are not NULL.
func SelectValid(valid []byte, off, n int, sel, out []uint16) int {
	if sel == nil {
		return len(AppendSet(out[:0], valid, off, n))
	}
	out = out[:len(sel)]
	k := 0
	for _, i := range sel {
		j := off + int(i)
		out[k] = i
		k += int(valid[j>>3] >> (j & 7) & 1)
	}
	return k
}

// SelectNull narrows sel (nil = all n rows) to rows that are NULL.
func SelectNull(valid []byte, off, n int, sel, out []uint16) int {
	k := 0
	if sel == nil {
		out = out[:n]
		for i := range n {
			j := off + i
			out[k] = uint16(i)
			k += int(^valid[j>>3] >> (j & 7) & 1)
		}
		return k
	}
	out = out[:len(sel)]
	for _, i := range sel {
		j := off + int(i)
		out[k] = i
		k += int(^valid[j>>3] >> (j & 7) & 1)
	}
	return k
}

// Without writes to out the members of sel (nil = all n rows) that are not in
// drop, which is a subset in ascending order, and returns their number. out
// must not be sel or drop.
func Without(n int, sel, drop, out []uint16) int {
	k, d := 0, 0
	if sel == nil {
		out = out[:n]
		for i := range n {
			if d < len(drop) && int(drop[d]) == i {
				d++
				continue
			}
			out[k] = uint16(i)
			k++
		}
		return k
	}
	for _, i := range sel {
		if d < len(drop) && drop[d] == i {
			d++
			continue
		}
		out[k] = i
		k++
	}
	return k
}

// Union writes the ascending union of two disjoint ascending selections.
func Union(a, b, out []uint16) int {
	i, j, k := 0, 0, 0
	for i < len(a) && j < len(b) {
		if a[i] < b[j] {
			out[k] = a[i]
			i++
		} else {
			out[k] = b[j]
			j++
		}
		k++
	}
	k += copy(out[k:], a[i:])
	k += copy(out[k:], b[j:])
	return k
}
