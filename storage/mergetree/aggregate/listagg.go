package aggregate

import (
	"bytes"
	"math"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// listagg joins texts by list-agg-delimiter. What is NULL or blank is left out, and
// replaced when something comes. With distinct, what comes is split by the
// delimiter, and only items are added that are new; the first text stays as it is.
// Source: FieldListaggAgg.java (2.1; 1.4 leaves out empty texts only).
var listagg = Function{
	Name:  "listagg",
	Takes: func(t types.Type) bool { return t.Kind == types.Text },
	New: func(s Spec) (Aggregate, error) {
		f := &listaggFold{delimiter: []byte(s.Option("list-agg-delimiter", ",")), distinct: s.Flag("distinct", false)}
		f.split = f.delimiter
		if len(f.split) == 0 {
			f.split = []byte(" ")
		}
		f.again = len(f.delimiter) == 0 || overlaps(f.delimiter)
		return f, nil
	},
}

type listaggFold struct {
	delimiter []byte
	split     []byte // what items are split by
	distinct  bool
	again     bool // a value joined may split into other items than it was made of
	seen      map[string]bool
	old       []byte
}

// maxBytes is what one column of variable-length values can hold.
const maxBytes = math.MaxInt32

var errTooLong = &Error{Overflow: true, Reason: "more than 2 GB of values in one batch"}

// Fold builds the value of a key at the end of the result's memory.
func (f *listaggFold) Fold(in *Input) (arrow.Array, error) {
	s := vec.ViewStr(in.Col)
	n := len(in.Ends)
	offs, null := make([]int32, n+1), nulls{n: n}
	var data []byte
	i := 0
	for k, e := range in.Ends {
		at := len(data) // the value is data[at:]
		some, seen := false, false
		for ; i < int(e); i++ {
			op := Add
			if in.Ops != nil {
				op = in.Ops[i]
			}
			var x []byte
			ok := !s.IsNull(i)
			if ok {
				x = s.At(i)
			}
			switch op {
			case Add:
				switch {
				case !ok || isBlank(x):
				case !some || isBlank(data[at:]):
					data, some, seen = append(data[:at], x...), true, false
				case f.distinct:
					if !seen || f.again {
						f.look(data[at:])
						seen = true
					}
					data = f.add(data, x)
				default:
					data = append(append(data, f.delimiter...), x...)
				}
			case AddReversed:
				switch {
				case !some || isBlank(data[at:]):
					data, some, seen = append(data[:at], x...), ok, false
				case !ok || isBlank(x):
				default:
					f.old = append(f.old[:0], data[at:]...)
					data = append(data[:at], x...)
					if f.distinct {
						f.look(x)
						data, seen = f.add(data, f.old), true
					} else {
						data = append(append(data, f.delimiter...), f.old...)
					}
				}
			case Retract, SetRetract:
				return nil, noRetract("listagg")
			case Set:
				data, some, seen = append(data[:at], x...), ok, false
			case Clear:
				data, some, seen = data[:at], false, false
			}
			if len(data) > maxBytes {
				return nil, errTooLong
			}
		}
		if !some {
			null.set(k)
		}
		offs[k+1] = int32(len(data))
	}
	return vec.MakeBytes(arrow.BinaryTypes.String, offs, data, null.bits), nil
}

// overlaps reports whether text may begin within itself: || does in |||.
func overlaps(b []byte) bool {
	for n := 1; n < len(b); n++ {
		if bytes.HasPrefix(b, b[n:]) {
			return true
		}
	}
	return false
}

// look remembers the items of a value.
func (f *listaggFold) look(value []byte) {
	if f.seen == nil {
		f.seen = map[string]bool{}
	}
	clear(f.seen)
	for item := range bytes.SplitSeq(value, f.split) {
		f.seen[string(item)] = true
	}
}

// add appends the items of x that have not been seen.
func (f *listaggFold) add(data, x []byte) []byte {
	data = slices.Grow(data, len(x)+len(f.delimiter))
	for item := range bytes.SplitSeq(x, f.split) {
		if isBlank(item) || f.seen[string(item)] {
			continue
		}
		f.seen[string(item)] = true
		data = append(append(data, f.delimiter...), item...)
	}
	return data
}

// isBlank reports whether text is empty or white space as Java's
// Character.isWhitespace has it.
func isBlank(b []byte) bool {
	for i := 0; i < len(b); {
		c := b[i]
		switch {
		case c >= utf8.RuneSelf:
			r, w := utf8.DecodeRune(b[i:])
			if !unicode.Is(unicode.Z, r) || r == 0xa0 || r == 0x2007 || r == 0x202f {
				return false
			}
			i += w
		case c == ' ' || c >= '\t' && c <= '\r' || c >= 0x1c && c <= 0x1f:
			i++
		default:
			return false
		}
	}
	return true
}
