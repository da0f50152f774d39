package aggregate

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

func firstArg(ts []types.Type) types.Type { return ts[0].WithNotNull(false) }

var windowDefs = []WindowDef{
	{Name: "row_number", Ret: tInt8, Compute: rowNumber, Doc: "number of the row in its partition"},
	{Name: "rank", Ret: tInt8, Compute: rank, Doc: "rank with gaps"},
	{Name: "dense_rank", Ret: tInt8, Compute: denseRank, Doc: "rank without gaps"},
	{Name: "percent_rank", Ret: tFloat8, Compute: percentRank, Doc: "relative rank"},
	{Name: "cume_dist", Ret: tFloat8, Compute: cumeDist, Doc: "cumulative distribution"},
	{Name: "ntile", Args: one(tInt4), Ret: tInt4, Compute: ntile, Doc: "number of the bucket of the row"},
	{Name: "lag", Args: []types.Type{fixed(types.AnyCompatible), tInt4, fixed(types.AnyCompatible)}, Defaults: 2, Ret: fixed(types.AnyCompatible), RetFn: firstArg, Compute: shift(-1), Doc: "value of an earlier row"},
	{Name: "lead", Args: []types.Type{fixed(types.AnyCompatible), tInt4, fixed(types.AnyCompatible)}, Defaults: 2, Ret: fixed(types.AnyCompatible), RetFn: firstArg, Compute: shift(1), Doc: "value of a later row"},
	{Name: "first_value", Args: one(tAnyElement), Ret: tAnyElement, RetFn: firstArg, Compute: firstValue, Doc: "value of the first row of the frame"},
	{Name: "last_value", Args: one(tAnyElement), Ret: tAnyElement, RetFn: firstArg, Compute: lastValue, Doc: "value of the last row of the frame"},
	{Name: "nth_value", Args: []types.Type{tAnyElement, tInt4}, Ret: tAnyElement, RetFn: firstArg, Compute: nthValue, Doc: "value of the n-th row of the frame"},
}

func ints(v []int64) (arrow.Array, error) {
	return vec.Make(arrow.PrimitiveTypes.Int64, v, nil), nil
}

func rowNumber(p *Partition) (arrow.Array, error) {
	out := make([]int64, p.N)
	for i := range out {
		out[i] = int64(i + 1)
	}
	return ints(out)
}

func rank(p *Partition) (arrow.Array, error) {
	out := make([]int64, p.N)
	for i := range out {
		out[i] = int64(p.Peers[i]) + 1
	}
	return ints(out)
}

func denseRank(p *Partition) (arrow.Array, error) {
	out := make([]int64, p.N)
	n := int64(0)
	for i := range out {
		if p.Peers[i] == int32(i) {
			n++
		}
		out[i] = n
	}
	return ints(out)
}

func percentRank(p *Partition) (arrow.Array, error) {
	out := make([]float64, p.N)
	for i := range out {
		if p.N > 1 {
			out[i] = float64(p.Peers[i]) / float64(p.N-1)
		}
	}
	return vec.Make(arrow.PrimitiveTypes.Float64, out, nil), nil
}

func cumeDist(p *Partition) (arrow.Array, error) {
	out := make([]float64, p.N)
	for i := range out {
		out[i] = float64(p.PeerEnd[i]) / float64(p.N)
	}
	return vec.Make(arrow.PrimitiveTypes.Float64, out, nil), nil
}

// at reads an int4 argument; ok is false for NULL.
func (p *Partition) at(arg, i int) (int, bool) {
	v := p.Args[arg]
	if v.Const {
		i = 0
	}
	a := vec.Decode(v.Arr)
	if a.IsNull(i) {
		return 0, false
	}
	switch a := a.(type) {
	case *array.Int32:
		return int(a.Value(i)), true
	case *array.Int64:
		return int(a.Value(i)), true
	case *array.Int16:
		return int(a.Value(i)), true
	}
	return 0, false
}

// ntile takes the number of buckets from the first row, as PostgreSQL does.
func ntile(p *Partition) (arrow.Array, error) {
	if p.N == 0 {
		return vec.Make(arrow.PrimitiveTypes.Int32, []int32{}, nil), nil
	}
	n, ok := p.at(0, 0)
	if !ok {
		return vec.MakeNull(arrow.PrimitiveTypes.Int32, p.N), nil
	}
	if n <= 0 {
		return nil, pgerr.New(pgerr.InvalidArgumentForNtile, "argument of ntile must be greater than zero")
	}
	out := make([]int32, p.N)
	size, more := p.N/n, p.N%n
	bucket, left := 1, size
	if more > 0 {
		left++
	}
	for i := range out {
		if left == 0 {
			bucket++
			left = size
			if bucket <= more {
				left++
			}
		}
		out[i] = int32(bucket)
		left--
	}
	return vec.Make(arrow.PrimitiveTypes.Int32, out, nil), nil
}

// take returns the argument's values at idx; -1 is NULL.
func (p *Partition) take(arg int, idx []int32) arrow.Array {
	v := p.Args[arg]
	if v.Const {
		// Every row has the value: only NULLs of idx matter.
		for i := range idx {
			if idx[i] >= 0 {
				idx[i] = 0
			}
		}
		return vec.TakeNull(vec.Decode(v.Arr), idx)
	}
	return vec.TakeNull(vec.Decode(v.Arr), idx)
}

func shift(dir int) func(p *Partition) (arrow.Array, error) {
	return func(p *Partition) (arrow.Array, error) {
		idx := make([]int32, p.N)
		var missing []int32 // rows that take the default
		for i := range idx {
			off := 1
			if len(p.Args) > 1 {
				var ok bool
				if off, ok = p.at(1, i); !ok {
					idx[i] = -1
					continue
				}
			}
			j := i + dir*off
			if j < 0 || j >= p.N {
				idx[i] = -1
				missing = append(missing, int32(i))
				continue
			}
			idx[i] = int32(j)
		}
		if len(p.Args) < 3 || len(missing) == 0 {
			return p.take(0, idx), nil
		}
		// Gather from both: source 0 the value, source 1 the default.
		src, rows := make([]uint16, p.N), make([]uint32, p.N)
		isMissing := make([]bool, p.N)
		for _, i := range missing {
			isMissing[i] = true
		}
		val, def := vec.Decode(p.Args[0].Column(p.N)), vec.Decode(p.Args[2].Column(p.N))
		nulls := vec.MakeNull(val.DataType(), 1)
		for i := range idx {
			switch {
			case isMissing[i]:
				src[i], rows[i] = 1, uint32(i)
			case idx[i] < 0:
				src[i], rows[i] = 2, 0
			default:
				rows[i] = uint32(idx[i])
			}
		}
		return vec.Gather(val.DataType(), []arrow.Array{val, def, nulls}, src, rows), nil
	}
}

// frameRow finds the n-th row (from 1; from the end when negative) of the frame
// of row i that is not excluded, or -1.
func (p *Partition) frameRow(i, n int) int32 {
	from, to := int32(0), int32(p.N)
	if p.FrameStart != nil {
		from, to = p.FrameStart[i], p.FrameEnd[i]
	}
	if p.Excluded == nil {
		if n > 0 && from+int32(n)-1 < to {
			return from + int32(n) - 1
		}
		if n < 0 && to+int32(n) >= from {
			return to + int32(n)
		}
		return -1
	}
	if n > 0 {
		for j := from; j < to; j++ {
			if !p.Excluded(i, int(j)) {
				if n--; n == 0 {
					return j
				}
			}
		}
		return -1
	}
	for j := to - 1; j >= from; j-- {
		if !p.Excluded(i, int(j)) {
			if n++; n == 0 {
				return j
			}
		}
	}
	return -1
}

func firstValue(p *Partition) (arrow.Array, error) { return p.frameValue(1) }
func lastValue(p *Partition) (arrow.Array, error)  { return p.frameValue(-1) }

func (p *Partition) frameValue(n int) (arrow.Array, error) {
	idx := make([]int32, p.N)
	for i := range idx {
		idx[i] = p.frameRow(i, n)
	}
	return p.take(0, idx), nil
}

func nthValue(p *Partition) (arrow.Array, error) {
	idx := make([]int32, p.N)
	for i := range idx {
		n, ok := p.at(1, i)
		if !ok {
			idx[i] = -1
			continue
		}
		if n <= 0 {
			return nil, pgerr.New(pgerr.InvalidArgumentForNthValue, "argument of nth_value must be greater than zero")
		}
		idx[i] = p.frameRow(i, n)
	}
	return p.take(0, idx), nil
}
