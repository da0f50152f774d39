package table

import (
	"fmt"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// nestedOf returns, by table column, the members of ROW columns that a scan
// needs; nil when it needs all of every column.
func nestedOf(s *Scan, columns []int) map[int][]NestedPath {
	if s.Nested == nil {
		return nil
	}
	out := map[int][]NestedPath{}
	for i, c := range columns {
		if c >= 0 && i < len(s.Nested) && len(s.Nested[i]) > 0 {
			out[c] = append(out[c], s.Nested[i]...)
		}
	}
	for i, c := range columns { // asked for whole, too
		if i >= len(s.Nested) || len(s.Nested[i]) == 0 {
			delete(out, c)
		}
	}
	return out
}

// pruneType keeps the members of a ROW type that the paths name. One member
// always stays: the struct's own NULLs are told by its children's levels.
func pruneType(t types.Type, paths []NestedPath) types.Type {
	if t.Kind != types.Row {
		return t
	}
	out := t
	out.Fields = nil
	for _, f := range t.Fields {
		var below []NestedPath
		wanted, whole := false, false
		for _, p := range paths {
			if len(p) == 0 {
				return t
			}
			if p[0] == f.Name {
				wanted = true
				if len(p) == 1 {
					whole = true
				} else {
					below = append(below, p[1:])
				}
			}
		}
		if !wanted {
			continue
		}
		if !whole {
			f.Type = pruneType(f.Type, below)
		}
		out.Fields = append(out.Fields, f)
	}
	if len(out.Fields) == 0 || len(out.Fields) == len(t.Fields) && sameFields(out, t) {
		return t
	}
	return out
}

func sameFields(a, b types.Type) bool {
	for i := range a.Fields {
		if len(a.Fields[i].Type.Fields) != len(b.Fields[i].Type.Fields) {
			return false
		}
	}
	return true
}

// widen gives an array of a pruned type the full type back: members that were
// not read are NULL.
func widen(a arrow.Array, pruned, full types.Type) arrow.Array {
	s, ok := a.(*array.Struct)
	if !ok || full.Kind != types.Row {
		return a
	}
	n := a.Len()
	children := make([]arrow.Array, len(full.Fields))
	for i, f := range full.Fields {
		at := types.Schema(pruned.Fields).Index(f.Name)
		if at < 0 {
			children[i] = vec.MakeNull(f.Type.Arrow(), n)
			continue
		}
		children[i] = widen(s.Field(at), pruned.Fields[at].Type, f.Type)
	}
	return vec.MakeStruct(full.Arrow(), n, children, vec.ValidCopy(a))
}

// signature tells readers of one file apart that read different members.
func signature(nested map[int]types.Type) string {
	if len(nested) == 0 {
		return ""
	}
	var b strings.Builder
	for c := 0; len(nested) > 0 && c < 1<<16; c++ {
		if t, ok := nested[c]; ok {
			fmt.Fprintf(&b, "\x00%d%s", c, t.Arrow())
		}
	}
	return b.String()
}
