package parquet

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// newSink makes the sink for a leaf's values; dict allows dictionary arrays.
func newSink(l *leaf, dt arrow.DataType, dict bool) sink {
	w := l.conv.width(l.node.el)
	switch l.conv {
	case cvBool:
		return &boolSink{}
	case cvNarrow:
		return &fixed[int16]{dt: dt, conv: convI16}
	case cvCopy4:
		return &fixed[int32]{dt: dt, conv: copyFixed[int32], direct: true}
	case cvCopy8:
		return &fixed[int64]{dt: dt, conv: copyFixed[int64], direct: true}
	case cvWiden:
		return &fixed[int64]{dt: dt, conv: convWiden}
	case cvTimeMs:
		return &fixed[int64]{dt: dt, conv: convTimeMs}
	case cvMul1000:
		if l.t.IsNanos() {
			return &fixed[int64]{dt: dt, conv: convMul(1000, errTimestampRange)}
		}
		return &fixed[int64]{dt: dt, conv: convMul(1000, errMicrosRange)}
	case cvMul1M:
		return &fixed[int64]{dt: dt, conv: convMul(1000000, errTimestampRange)}
	case cvDiv1000:
		return &fixed[int64]{dt: dt, conv: convDiv1000}
	case cvI96us:
		return &fixed[int64]{dt: dt, conv: convI96us}
	case cvI96ns:
		return &fixed[int64]{dt: dt, conv: convI96ns}
	case cvF32F64:
		return &fixed[int64]{dt: dt, conv: convF32F64}
	case cvDec32:
		return &fixed[dec]{dt: dt, conv: convDec32}
	case cvDec64:
		return &fixed[dec]{dt: dt, conv: convDec64}
	case cvDecBE:
		return &fixed[dec]{dt: dt, conv: convDecBE(w)}
	}
	return &bytesSink{dt: dt, wantDict: dict}
}

func emptyArray(dt arrow.DataType) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, dt)
	return b.NewArray()
}
