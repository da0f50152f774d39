package function

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// MakeMap returns the function behind MAP[k, v, ...], which takes keys and values
// in turn, and behind MULTISET[e, ...] when t is one: n arguments of t's key and
// element types. The last value of a key that occurs twice counts, as in Flink; a
// NULL key is 22004.
func MakeMap(t types.Type, n int) *Overload {
	o := &Overload{Name: "map", Ret: t, Kernel: func(c *Call, args []vec.Vec) (arrow.Array, error) {
		return boxedRows(c, rowsOf(c, args), args, func(_ *Call, row []types.Datum) (types.Datum, error) {
			out := make([]types.KV, 0, len(row)/2)
			at := make(map[string]int, len(row)/2)
			add := func(k types.Datum) (*types.KV, error) {
				if k == nil {
					return nil, pgerr.New(pgerr.NullValueNotAllowed, "a key of a map must not be null")
				}
				name := fmt.Sprint(k)
				i, ok := at[name]
				if !ok {
					i = len(out)
					at[name] = i
					out = append(out, types.KV{K: k})
				}
				return &out[i], nil
			}
			if t.Multiset {
				for _, e := range row {
					kv, err := add(e)
					if err != nil {
						return nil, err
					}
					count, _ := kv.V.(int64)
					kv.V = count + 1
				}
				return out, nil
			}
			for i := 0; i+1 < len(row); i += 2 {
				kv, err := add(row[i])
				if err != nil {
					return nil, err
				}
				kv.V = row[i+1]
			}
			return out, nil
		}, false)
	}}
	if t.Multiset {
		o.Name = "multiset"
	}
	for i := range n {
		if a := *t.Key; t.Multiset || i%2 == 0 {
			o.Args = append(o.Args, a)
		} else {
			o.Args = append(o.Args, *t.Elem)
		}
	}
	return o
}
