package cluster

import (
	"fmt"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Strategy is how rows are ordered by several columns.
type Strategy uint8

// The strategies: None leaves rows as they are, Order is column by column, ZOrder
// and Hilbert are space-filling curves.
const (
	None Strategy = iota
	Order
	ZOrder
	Hilbert
)

var strategyNames = [...]string{"none", "order", "zorder", "hilbert"}

func (s Strategy) String() string { return strategyNames[s] }

// ParseStrategy reads the name of a strategy in any case.
func ParseStrategy(name string) (Strategy, bool) {
	for i, n := range strategyNames {
		if strings.EqualFold(n, name) {
			return Strategy(i), true
		}
	}
	return None, false
}

// Auto is the strategy that clustering.strategy = auto means for n columns.
// Source: CoreOptions.java, clusteringStrategy.
func Auto(n int) Strategy {
	switch {
	case n == 1:
		return Order
	case n < 5:
		return ZOrder
	}
	return Hilbert
}

const (
	// DefaultVarBytes is the default of zorder.var-length-contribution.
	DefaultVarBytes = 8
	// maxVarBytes bounds that option: what is behind so many bytes that differ says
	// nothing about a file any more.
	maxVarBytes = 256
	wordBytes   = 8
	// hilbertBytes of each scaled column go into the curve: 2^32 steps are more than
	// there are files or pages.
	hilbertBytes = 4
)

// Codec makes keys of the columns by which rows are ordered: the bytes.Compare of
// two keys is the order of the rows. NULL comes first, -0 before 0, NaN last, text
// and bytes are compared as unsigned bytes. Not safe for concurrent use: it has
// scratch memory.
type Codec struct {
	strategy Strategy
	types    []types.Type
	nwords   []int // of each column, curves only
	varBytes int
	scales   []scale // nil = not learned
	width    int     // of a key in bytes, 0 = of various lengths

	words [][]uint64 // scratch
	lens  []int32
}

// TypeError says that rows cannot be ordered by a column of this type.
type TypeError struct {
	Column int // position among the columns given
	Type   types.Type
}

func (e *TypeError) Error() string {
	return fmt.Sprintf("rows cannot be ordered by a column of type %s", e.Type)
}

// Orders reports whether rows can be ordered by columns of a type: by all but
// nested ones, as in Java.
func Orders(t types.Type) bool {
	switch t.Kind {
	case types.Bool, types.TinyInt, types.Int2, types.Int4, types.Int8, types.Float4, types.Float8, types.Date, types.Time,
		types.Timestamp, types.TimestampTZ, types.Text, types.Varchar, types.BpChar:
		return true
	case types.Numeric:
		return t.Prec > 0
	case types.Bytea:
		return t.Lake != types.LakeBlob
	}
	return false
}

// NewCodec returns the codec of a strategy for columns of these types. varBytes is
// how many bytes of text and binary columns count on the z-curve, behind what all
// sampled values begin with; 0 = DefaultVarBytes. A type that has no order is a
// *TypeError.
func NewCodec(s Strategy, ts []types.Type, varBytes int) (*Codec, error) {
	if varBytes <= 0 {
		varBytes = DefaultVarBytes
	}
	c := &Codec{strategy: s, types: ts, varBytes: min(varBytes, maxVarBytes)}
	if s == Hilbert {
		c.varBytes = wordBytes
	}
	for i, t := range ts {
		if !Orders(t) {
			return nil, &TypeError{Column: i, Type: t}
		}
		n := 1
		if variable(t) {
			n = (c.varBytes + wordBytes - 1) / wordBytes
		}
		c.nwords = append(c.nwords, n)
	}
	switch s {
	case Order:
		c.width = orderWidth(ts)
	default:
		for _, n := range c.nwords {
			c.width += n * wordBytes
		}
	}
	return c, nil
}

// variable reports whether values of t have no fixed width.
func variable(t types.Type) bool {
	switch t.Kind {
	case types.Text, types.Varchar, types.BpChar, types.Bytea:
		return true
	}
	return false
}

// Samples reports whether the keys get better by Learn.
func (c *Codec) Samples() bool { return c.strategy == ZOrder || c.strategy == Hilbert }

// Keys are keys of rows: key i is Data[Off[i]:Off[i+1]].
type Keys struct {
	Off  []int32
	Data []byte
}

// Len returns the number of keys.
func (k *Keys) Len() int { return max(len(k.Off)-1, 0) }

// At returns key i.
func (k *Keys) At(i int) []byte { return k.Data[k.Off[i]:k.Off[i+1]] }

// Reset removes all keys and keeps the memory.
func (k *Keys) Reset() { k.Off, k.Data = k.Off[:0], k.Data[:0] }

// extend makes room for n keys of a fixed width and returns their bytes, zeroed.
func (k *Keys) extend(n, width int) []byte {
	k.begin()
	at := len(k.Data)
	k.Data = grow(k.Data, n*width)
	clear(k.Data[at:])
	end := int32(at)
	for range n {
		end += int32(width)
		k.Off = append(k.Off, end)
	}
	return k.Data[at:]
}

func (k *Keys) begin() {
	if len(k.Off) == 0 {
		k.Off = append(k.Off, 0)
	}
}

// grow appends n elements to s; they hold anything.
func grow[T any](s []T, n int) []T {
	if need := len(s) + n; cap(s) < need {
		t := make([]T, len(s), max(need, 2*cap(s)))
		copy(t, s)
		s = t
	}
	return s[:len(s)+n]
}

// Append appends the keys of n rows. cols are the columns in order, plain or
// dictionaries.
func (c *Codec) Append(k *Keys, cols []arrow.Array, n int) {
	switch c.strategy {
	case Order:
		c.appendOrder(k, cols, n)
	default:
		c.appendCurve(k, cols, n)
	}
}

// appendCurve appends keys on the z-curve or the Hilbert curve.
func (c *Codec) appendCurve(k *Keys, cols []arrow.Array, n int) {
	first := c.fill(cols, n)
	if c.strategy == Hilbert {
		if c.scales == nil {
			hilbert(first, n, 64)
			interleave(k.extend(n, c.width), c.width, first, wordBytes, n)
			return
		}
		for _, w := range first {
			for i := range w {
				w[i] >>= 32
			}
		}
		hilbert(first, n, 32)
		for _, w := range first {
			for i := range w {
				w[i] <<= 32
			}
		}
		width := len(first) * hilbertBytes
		interleave(k.extend(n, width), width, first, hilbertBytes, n)
		return
	}
	out := k.extend(n, c.width)
	// The first words of all columns, then the second ones of those that have them.
	at := 0
	var level [][]uint64
	for l := 0; ; l++ {
		level = level[:0]
		w := 0
		for i, m := range c.nwords {
			if m > l {
				if l == 0 {
					level = append(level, first[i])
				} else {
					level = append(level, c.words[len(c.types)+c.extra(i)+l-1])
				}
			}
			w += m
		}
		if len(level) == 0 {
			return
		}
		interleave(out[at:], c.width, level, wordBytes, n)
		at += len(level) * wordBytes
	}
}

// extra is the number of words behind the first that the columns before i have.
func (c *Codec) extra(i int) int {
	n := 0
	for _, m := range c.nwords[:i] {
		n += m - 1
	}
	return n
}

// fill computes the words of n rows: the first one of each column, scaled, and
// behind them in c.words the further ones.
func (c *Codec) fill(cols []arrow.Array, n int) (first [][]uint64) {
	if c.words == nil {
		c.words = make([][]uint64, len(c.types)+c.extra(len(c.types)))
	}
	for i := range c.words {
		c.words[i] = grow(c.words[i][:0], n)
	}
	first = c.words[:len(c.types):len(c.types)]
	for i, t := range c.types {
		if !variable(t) {
			words(first[i], t, cols[i])
		} else {
			skip := []byte(nil)
			if c.scales != nil {
				skip = c.scales[i].prefix
			}
			x := len(c.types) + c.extra(i)
			prefixWords(first[i], c.words[x:x+c.nwords[i]-1], cols[i], skip, c.varBytes)
		}
		if c.scales != nil {
			c.scales[i].apply(first[i])
		}
	}
	return first
}
