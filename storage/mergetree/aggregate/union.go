package aggregate

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Functions on sets in bytes: bitmaps and sketches. NULLs do not count, and a set
// that comes alone stays as it is, byte by byte.

// varbinary is what Java wants of their columns: VARBINARY or BYTES, no BINARY(n).
func varbinary(t types.Type) bool {
	return t.Kind == types.Bytea && (t.Lake == types.LakeDefault || t.Lake == types.LakeVarbinary)
}

// unionFold merges two sets at a time, in the order of versions, as Java does: the
// bytes of a result may depend on it.
type unionFold struct {
	name  string
	union func(acc, x []byte) ([]byte, error)
}

func newUnion(name string, union func(acc, x []byte) ([]byte, error)) func(Spec) (Aggregate, error) {
	return func(Spec) (Aggregate, error) { return &unionFold{name, union}, nil }
}

func (f *unionFold) Fold(in *Input) (arrow.Array, error) {
	s := vec.ViewStr(in.Col)
	n := len(in.Ends)
	offs, null := make([]int32, n+1), nulls{n: n}
	var data []byte
	i := 0
	for k, e := range in.Ends {
		var acc []byte
		some := false
		for ; i < int(e); i++ {
			op := Add
			if in.Ops != nil {
				op = in.Ops[i]
			}
			ok := !s.IsNull(i)
			var err error
			switch op {
			case Add, AddReversed:
				switch {
				case !ok:
				case !some:
					acc, some = s.At(i), true
				case op == Add:
					acc, err = f.union(acc, s.At(i))
				default:
					acc, err = f.union(s.At(i), acc)
				}
			case Retract, SetRetract:
				err = noRetract(f.name)
			case Set:
				if some = ok; ok {
					acc = s.At(i)
				}
			case Clear:
				some = false
			}
			if err != nil {
				return nil, err
			}
		}
		if some {
			data = append(data, acc...)
		} else {
			null.set(k)
		}
		if len(data) > maxBytes {
			return nil, errTooLong
		}
		offs[k+1] = int32(len(data))
	}
	return vec.MakeBytes(arrow.BinaryTypes.Binary, offs, data, null.bits), nil
}
