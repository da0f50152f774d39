package aggregate

import (
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// merge_map_with_keytime merges maps whose values are rows with a time, as text:
// of each key the entry with the latest time stays, an equal one does not replace
// it. An entry whose value is NULL removes its key, one without a time does
// nothing. The time is the field ts-field, by default the last. Source:
// FieldMergeMapWithKeyTimeAgg.java.
var mergeMapWithKeyTime = Function{
	Name: "merge_map_with_keytime",
	Takes: func(t types.Type) bool {
		return isMap(t) && t.Elem.Kind == types.Row && len(t.Elem.Fields) >= 2
	},
	Check: func(s Spec) error {
		_, err := timeField(s)
		return err
	},
	New: func(s Spec) (Aggregate, error) {
		at, err := timeField(s)
		if err != nil {
			return nil, err
		}
		return &listFold{rules: &keyTimeRules{field: at}}, nil
	},
}

// timeField returns the place of the time in the rows.
func timeField(s Spec) (int, error) {
	row := *s.Column.Type.Elem
	at := len(row.Fields) - 1
	if name := s.Option("ts-field", ""); name != "" {
		if at = types.Schema(row.Fields).Index(name); at < 0 {
			return 0, badOption(s, "ts-field", "option %q names %q, which is no field of column %q", name, s.Column.Name)
		}
	}
	if t := row.Fields[at].Type; !t.IsTextLike() {
		return 0, badOption(s, "ts-field", "option %q: field %q of column %q is %s, times of merge_map_with_keytime are text",
			row.Fields[at].Name, s.Column.Name, types.PaimonString(t))
	}
	return at, nil
}

type keyTimeRules struct {
	mapRules
	field  int
	values arrow.Array
	times  vec.StrView
}

func (m *keyTimeRules) begin(child arrow.Array) {
	m.keys, m.values = mapParts(child)
	m.times = vec.ViewStr(m.values.(*array.Struct).Field(m.field))
}

// removed marks an entry of dst that is gone.
const removed = -1

func (m *keyTimeRules) merge(dst, acc, x []int32, accNull, xNull bool) ([]int32, bool, error) {
	if accNull || xNull {
		dst, ok := either(dst, acc, x, accNull, xNull)
		return dst, ok, nil
	}
	m.seen.reset()
	from := len(dst)
	for _, j := range acc {
		dst = m.put(dst, j)
	}
	e := &m.seen
	for _, j := range x {
		i := int(j)
		e.key = appendValue(e.key[:0], m.keys, i)
		at := e.find()
		switch {
		case m.values.IsNull(i):
			if at != nil {
				dst[*at] = removed
				*at = removed
			}
		case m.times.IsNull(i):
		case at == nil:
			e.put(int32(len(dst)))
			dst = append(dst, j)
		case *at == removed:
			*at = int32(len(dst))
			dst = append(dst, j)
		default:
			old := int(dst[*at])
			if m.values.IsNull(old) || m.times.IsNull(old) || compareUTF16(m.times.At(i), m.times.At(old)) > 0 {
				dst[*at] = j
			}
		}
	}
	kept := dst[:from]
	for _, j := range dst[from:] {
		if j != removed {
			kept = append(kept, j)
		}
	}
	return kept, true, nil
}

func (m *keyTimeRules) retract(dst, _, _ []int32, _, _ bool) ([]int32, bool, error) {
	return dst, false, noRetract("merge_map_with_keytime")
}

// compareUTF16 compares as Java's String does: by UTF-16 words, in which
// characters beyond U+FFFF sort before U+E000.
func compareUTF16(a, b []byte) int {
	for len(a) > 0 && len(b) > 0 {
		x, n := utf8.DecodeRune(a)
		y, m := utf8.DecodeRune(b)
		if x != y {
			if (x > 0xffff) != (y > 0xffff) && x >= 0xe000 && y >= 0xe000 {
				x, y = y, x
			}
			if x < y {
				return -1
			}
			return 1
		}
		a, b = a[n:], b[m:]
	}
	return len(a) - len(b)
}
