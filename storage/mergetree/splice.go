package mergetree

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// spliceColumn puts one column together from the spans of an output and from
// patches, row row[i] of parts[src[i]] at o.pos[i].
func spliceColumn(dt arrow.DataType, parts []arrow.Array, o *output, src []uint16, row []uint32) arrow.Array {
	spans := make([]vec.Span, len(o.spans))
	for i, s := range o.spans {
		spans[i] = vec.Span{Src: int32(s.seg), From: int32(s.row), N: int32(s.n)}
		if s.seg == hole || parts[s.seg] == nil {
			spans[i].Src = -1
		}
	}
	return vec.Splice(dt, parts, spans, o.n, o.pos, src, row)
}
