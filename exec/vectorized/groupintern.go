package vectorized

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// interner numbers the distinct strings of a column. For a dictionary it
// translates each distinct value once.
type interner struct {
	tab   *wideTable
	dict  arrow.Array
	trans []uint64
	buf   []uint32
	all   arrow.Array // the distinct strings, for keys
}

func newInterner(acc *mem.Account) *interner {
	return &interner{tab: &wideTable{ts: []types.Type{types.Of(types.Text)}, acc: acc, cols: []keyColumn{newKeyColumn(types.Of(types.Text))}}}
}

func (n *interner) codes(a arrow.Array, sel []uint16, live int, out []uint64, shift uint, set bool) error {
	idx, dict, ok := vec.DictView(a)
	if ok && (n.dict != nil && vec.SameDict(n.dict, a) || dict.Len() <= 2*live+64) {
		if n.dict == nil || !vec.SameDict(n.dict, a) {
			if err := n.translate(dict); err != nil {
				return err
			}
			n.dict = a
		}
		valid, off := vec.Validity(a)
		for k := range out {
			r := k
			if sel != nil {
				r = int(sel[k])
			}
			x := uint64(0)
			if valid == nil || vec.BitAt(valid, off+r) {
				x = n.trans[idx[r]] << shift
			}
			if set {
				out[k] = x
			} else {
				out[k] |= x
			}
		}
		return nil
	}
	if cap(n.buf) < live {
		n.buf = make([]uint32, live)
	}
	g := n.buf[:live]
	if err := n.tab.lookup([]arrow.Array{a}, a.Len(), sel, g, false); err != nil {
		return err
	}
	for k, x := range g {
		if set {
			out[k] = uint64(x) << shift
		} else {
			out[k] |= uint64(x) << shift
		}
	}
	return nil
}

func (n *interner) translate(dict arrow.Array) error {
	n.trans = make([]uint64, dict.Len())
	for from := 0; from < dict.Len(); from += vec.MaxRows {
		to := min(dict.Len(), from+vec.MaxRows)
		g := make([]uint32, to-from)
		if err := n.tab.lookup([]arrow.Array{vec.Slice(dict, from, to)}, to-from, nil, g, false); err != nil {
			return err
		}
		for i, x := range g {
			n.trans[from+i] = uint64(x)
		}
	}
	return nil
}

func (n *interner) strings(idx []int32, valid []byte) arrow.Array {
	if n.tab.len() == 0 {
		return vec.MakeNull(arrow.BinaryTypes.String, len(idx))
	}
	if n.all == nil || n.all.Len() != n.tab.len() {
		n.all = n.tab.cols[0].slice(0, n.tab.len())
	}
	return vec.MakeDict(idx, valid, n.all)
}

func (n *interner) size() int64 { return n.tab.size() + int64(cap(n.trans))*8 }
