package bitmap

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// builder numbers the distinct values as they come and keeps the number of every
// row: four bytes a row, whatever the values are. Bitmaps are made at the end.
type builder struct {
	t         types.Type
	width     int
	version   int
	blockSize int64

	rows  []int32 // number of the row's value, null for NULL
	nulls int
	last  int // row of the last value that was new
	end   int // behind the last row that is not NULL

	fixed   table
	strings map[string]int32
	texts   []string // by number
	held    int64    // bytes of texts
	keys    []int64  // scratch
	entries []int32  // scratch
}

const null = -1

// Bytes is the memory held.
func (b *builder) Bytes() int64 {
	return int64(4*cap(b.rows)+8*cap(b.keys)+4*cap(b.entries)) + b.fixed.bytes() + b.held + int64(len(b.texts))*48
}

// Append numbers the values of an array.
func (b *builder) Append(a arrow.Array) error {
	n := a.Len()
	if len(b.rows)+n > math.MaxInt32 {
		return fmt.Errorf("%w: bitmap of more than 2^31 rows", index.ErrCannotHold)
	}
	from := len(b.rows)
	b.rows = slices.Grow(b.rows, n)[:from+n]
	out := b.rows[from:]
	b.nulls += a.NullN()
	if a.NullN() == n {
		for i := range out {
			out[i] = null
		}
		return nil
	}
	var valid []byte // nil = all
	off := a.Data().Offset()
	if a.NullN() > 0 {
		valid = a.NullBitmapBytes()
	}
	var err error
	if d, ok := a.(*array.Dictionary); ok {
		err = b.dictionary(d, valid, off, from)
	} else {
		err = b.plain(a, valid, off, from)
	}
	if err != nil {
		return err
	}
	for i := len(out) - 1; i >= 0; i-- {
		if out[i] != null {
			b.end = from + i + 1
			break
		}
	}
	return nil
}

// plain numbers the rows of an array from row from on.
func (b *builder) plain(a arrow.Array, valid []byte, off, from int) error {
	out := b.rows[from:]
	if s, ok := a.(*array.String); ok {
		for i := range out {
			if valid != nil && !bitutil.BitIsSet(valid, off+i) {
				out[i] = null
				continue
			}
			out[i] = b.text(s.Value(i), from+i)
		}
		return nil
	}
	if b.width == 0 {
		return fmt.Errorf("file index: array of %s over a column of %s", a.DataType(), b.t.PlainName())
	}
	keys, err := index.Keys(a, b.t, b.keys)
	if err != nil {
		return err
	}
	b.keys = keys
	for i, k := range keys {
		if valid != nil && !bitutil.BitIsSet(valid, off+i) {
			out[i] = null
			continue
		}
		out[i] = b.fixedKey(k, from+i)
	}
	return nil
}

// dictionary numbers the entries that rows refer to, as rows come to them.
func (b *builder) dictionary(a *array.Dictionary, valid []byte, off, from int) error {
	const unseen = -2
	values := a.Dictionary()
	if cap(b.entries) < values.Len() {
		b.entries = make([]int32, values.Len())
	}
	entries := b.entries[:values.Len()]
	for i := range entries {
		entries[i] = unseen
		if values.IsNull(i) {
			entries[i] = null
		}
	}
	var number func(e, row int) int32
	if s, ok := values.(*array.String); ok {
		number = func(e, row int) int32 { return b.text(s.Value(e), row) }
	} else {
		if b.width == 0 {
			return fmt.Errorf("file index: dictionary of %s over a column of %s", values.DataType(), b.t.PlainName())
		}
		keys, err := index.Keys(values, b.t, b.keys)
		if err != nil {
			return err
		}
		b.keys = keys
		number = func(e, row int) int32 { return b.fixedKey(keys[e], row) }
	}
	var indices []int32
	if ix, ok := a.Indices().(*array.Int32); ok {
		indices = ix.Int32Values()
	} else {
		indices = make([]int32, a.Len())
		for i := range indices {
			if valid == nil || bitutil.BitIsSet(valid, off+i) {
				indices[i] = int32(a.GetValueIndex(i))
			}
		}
	}
	out := b.rows[from:]
	for i, e := range indices {
		if valid != nil && !bitutil.BitIsSet(valid, off+i) {
			out[i] = null
			continue
		}
		n := entries[e]
		if n == unseen {
			n = number(int(e), from+i)
			entries[e] = n
		}
		if n == null {
			b.nulls++ // NULL in the dictionary
		}
		out[i] = n
	}
	return nil
}

func (b *builder) text(s string, row int) int32 {
	if n, ok := b.strings[s]; ok {
		return n
	}
	if b.strings == nil {
		b.strings = map[string]int32{}
	}
	s = strings.Clone(s)
	n := int32(len(b.texts))
	b.strings[s] = n
	b.texts = append(b.texts, s)
	b.held += int64(len(s))
	b.last = row
	return n
}

func (b *builder) fixedKey(k int64, row int) int32 {
	n, isNew := b.fixed.number(k)
	if isNew {
		b.last = row
	}
	return n
}

// table numbers keys: a hash table of open addresses.
type table struct {
	slots []int32 // 1 + number
	keys  []int64 // by number
	shift uint
}

func (t *table) bytes() int64 { return int64(4*cap(t.slots) + 8*cap(t.keys)) }

func (t *table) number(k int64) (n int32, isNew bool) {
	if len(t.keys)*2 >= len(t.slots) {
		t.grow()
	}
	at := uint64(k) * 0x9e3779b97f4a7c15 >> t.shift
	for {
		s := t.slots[at]
		if s == 0 {
			t.keys = append(t.keys, k)
			t.slots[at] = int32(len(t.keys))
			return int32(len(t.keys) - 1), true
		}
		if t.keys[s-1] == k {
			return s - 1, false
		}
		at = (at + 1) & uint64(len(t.slots)-1)
	}
}

func (t *table) grow() {
	n := max(64, 2*len(t.slots))
	t.slots = make([]int32, n)
	t.shift = 64
	for ; n > 1; n >>= 1 {
		t.shift--
	}
	for i, k := range t.keys {
		at := uint64(k) * 0x9e3779b97f4a7c15 >> t.shift
		for t.slots[at] != 0 {
			at = (at + 1) & uint64(len(t.slots)-1)
		}
		t.slots[at] = int32(i) + 1
	}
}

// Finish writes the index; nil if there was no row.
func (b *builder) Finish() ([]byte, error) {
	if len(b.rows) == 0 {
		return nil, nil
	}
	later := b.end > b.last+1
	if b.width == 0 {
		hashes := make([]int32, len(b.texts))
		for i, s := range b.texts {
			hashes[i] = hashString(s)
		}
		return write(b, b.texts, hashOrder(hashes, later, func(x, y int32) bool { return b.texts[x] < b.texts[y] }), stringCodec)
	}
	keys, hashes := b.fixed.keys, make([]int32, len(b.fixed.keys))
	for i, k := range keys {
		keys[i] = ordered(b.t, k)
		hashes[i] = hashFixed(b.t, keys[i])
	}
	out, err := write(b, keys, hashOrder(hashes, later, func(x, y int32) bool { return keys[x] < keys[y] }), fixedCodec(b.t))
	for i, k := range keys { // as they were, should rows follow
		keys[i] = ordered(b.t, k)
	}
	return out, err
}

// entry is one value of the dictionary, as it is written.
type entry struct {
	number int32
	offset int32
	length int32
}

// write lays out dictionary and bitmaps; order is that of the bitmaps.
func write[K int64 | string](b *builder, keys []K, order []int32, c codec[K]) ([]byte, error) {
	// The rows of each value, one value behind the other; NULL is the last.
	starts := make([]int32, len(keys)+2)
	for _, n := range b.rows {
		if n == null {
			n = int32(len(keys))
		}
		starts[n+1]++
	}
	for i := range starts[1:] {
		starts[i+1] += starts[i]
	}
	rows := make([]uint32, len(b.rows))
	fill := slices.Clone(starts)
	for row, n := range b.rows {
		if n == null {
			n = int32(len(keys))
		}
		rows[fill[n]] = uint32(row)
		fill[n]++
	}
	of := func(n int) []uint32 { return rows[starts[n]:starts[n+1]] }

	var body []byte
	put := func(rows []uint32) (entry, error) {
		if len(rows) == 1 {
			return entry{offset: -1 - int32(rows[0]), length: -1}, nil
		}
		e := entry{offset: int32(len(body))}
		body = appendRoaring(body, rows)
		e.length = int32(len(body)) - e.offset
		if len(body) > math.MaxInt32 {
			return e, fmt.Errorf("%w: bitmap of more than 2 GB", index.ErrCannotHold)
		}
		return e, nil
	}
	var nulls entry
	var err error
	if nullRows := of(len(keys)); len(nullRows) > 0 {
		if nulls, err = put(nullRows); err != nil {
			return nil, err
		}
		if len(nullRows) == 1 {
			nulls.length = singleBytes // Java says so, though there is none
		}
	}
	entries := make([]entry, 0, len(keys))
	for _, n := range order {
		e, err := put(of(int(n)))
		if err != nil {
			return nil, err
		}
		e.number = n
		entries = append(entries, e)
	}

	out := []byte{byte(b.version)}
	out = binary.BigEndian.AppendUint32(out, uint32(len(b.rows)))
	out = binary.BigEndian.AppendUint32(out, uint32(len(keys)))
	if b.nulls == 0 {
		out = append(out, 0)
	} else {
		out = append(out, 1)
		out = binary.BigEndian.AppendUint32(out, uint32(nulls.offset))
		if b.version == 2 {
			out = binary.BigEndian.AppendUint32(out, uint32(nulls.length))
		}
	}
	if b.version == 1 {
		for _, e := range entries {
			out = c.append(out, keys[e.number])
			out = binary.BigEndian.AppendUint32(out, uint32(e.offset))
		}
	} else {
		slices.SortFunc(entries, func(x, y entry) int { return cmp.Compare(keys[x.number], keys[y.number]) })
		if out, err = appendBlocks(out, keys, entries, c, b.blockSize); err != nil {
			return nil, err
		}
	}
	if len(out)+len(body) > math.MaxInt32 {
		return nil, fmt.Errorf("%w: bitmap of more than 2 GB", index.ErrCannotHold)
	}
	return append(out, body...), nil
}

// appendBlocks writes the dictionary of version 2. A value that is larger than a
// block gets one of its own, where Java gives up.
func appendBlocks[K int64 | string](out []byte, keys []K, entries []entry, c codec[K], size int64) ([]byte, error) {
	var heads, area, block []byte
	blocks, n := 0, 0
	flush := func() {
		area = binary.BigEndian.AppendUint32(area, uint32(n))
		area = append(area, block...)
		block, n = block[:0], 0
	}
	for _, e := range entries {
		before := len(block)
		block = c.append(block, keys[e.number])
		block = binary.BigEndian.AppendUint32(block, uint32(e.offset))
		block = binary.BigEndian.AppendUint32(block, uint32(e.length))
		if n > 0 && int64(4+len(block)) > size {
			tail := bytes.Clone(block[before:])
			block = block[:before]
			flush()
			block = append(block, tail...)
		}
		if n == 0 {
			heads = c.append(heads, keys[e.number])
			heads = binary.BigEndian.AppendUint32(heads, uint32(len(area)))
			blocks++
		}
		if n++; len(area)+len(block) > math.MaxInt32 {
			return nil, fmt.Errorf("%w: bitmap of more than 2 GB", index.ErrCannotHold)
		}
	}
	if n > 0 {
		flush()
	}
	out = binary.BigEndian.AppendUint32(out, uint32(blocks))
	out = append(out, heads...)
	out = binary.BigEndian.AppendUint32(out, uint32(len(area)))
	return append(out, area...), nil
}
