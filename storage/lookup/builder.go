package lookup

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/bits-and-blooms/bloom/v3"
	"github.com/pierrec/lz4/v4"
)

// OrderError says that the rows of a data file are not in key order, or that it
// holds a key twice: no table can be made of it.
type OrderError struct{ Pos int64 }

func (e *OrderError) Error() string {
	return fmt.Sprintf("row %d does not come after the one before it", e.Pos)
}

// Is makes errors.Is(err, ErrUseless) true.
func (e *OrderError) Is(target error) bool { return target == ErrUseless }

// Builder takes the rows of a data file in key order. Not safe for concurrent use.
type Builder struct {
	s       *Store
	rows    bool
	e       entries
	last    []byte
	filter  *bloom.BloomFilter
	first   []byte
	ends    []uint32
	blocks  [][]byte // while all are in memory
	inMem   int64
	total   int64 // of all blocks, inflated
	n, most int64
	charged int64
	offs    []int64
	raw     []uint32
	sums    []uint32
	file    *os.File
	w       *bufio.Writer
	onDisk  int64 // charged
	scratch []byte
	deflate []byte
}

// Rows reports whether Add wants rows' images.
func (b *Builder) Rows() bool { return b.rows }

// maxRow bounds a row, and a key: ends of parts of a block are 32 bits.
const maxRow = 1 << 30

// newBuilder begins a table of at most n entries.
func (s *Store) newBuilder(rows bool, n int64) (*Builder, error) {
	b := &Builder{s: s, rows: rows, most: n, offs: []int64{0}}
	m, k := bloom.EstimateParameters(uint(max(n, 1)), s.o.FalsePositive)
	if err := b.charge(int64(m/8) + 64); err != nil {
		return nil, err
	}
	b.filter = bloom.New(m, k)
	return b, nil
}

// charge takes memory from the budget; where there is none left the blocks so far
// go to disk.
func (b *Builder) charge(n int64) error {
	if !b.s.grow(n) {
		if b.file != nil || b.inMem == 0 {
			return ErrNoRoom
		}
		if err := b.spill(); err != nil {
			return err
		}
		if !b.s.grow(n) {
			return ErrNoRoom
		}
	}
	b.charged += n
	return nil
}

// Add appends a row: its key in byte form, its sequence number and kind, its
// physical position and, when Rows says so, its image. Nothing is kept of key and
// row.
func (b *Builder) Add(key []byte, seq int64, kind uint8, pos int64, row []byte) error {
	switch {
	case b.n > 0 && bytes.Compare(b.last, key) >= 0:
		return &OrderError{Pos: pos}
	case b.n >= b.most:
		return fmt.Errorf("a file of %d rows gives more of them", b.most)
	case len(row) > maxRow || len(key) > maxRow:
		return ErrNoRoom
	}
	if len(b.e.seqs) > 0 && b.e.size()+len(key)+len(row) > b.s.o.BlockBytes {
		if err := b.flush(); err != nil {
			return err
		}
	}
	b.last = append(b.last[:0], key...)
	b.filter.Add(key)
	b.n++
	e := &b.e
	e.keys = append(e.keys, key...)
	e.keyEnds = append(e.keyEnds, uint32(len(e.keys)))
	e.seqs, e.poss, e.kinds = append(e.seqs, seq), append(e.poss, pos), append(e.kinds, kind)
	if b.rows {
		e.rows = append(e.rows, row...)
		e.rowEnds = append(e.rowEnds, uint32(len(e.rows)))
	}
	return nil
}

// indexBytes is what a block costs besides its bytes and first key: words, ends,
// place, length, checksum, pointer, buffer and its place in the ring.
const indexBytes = 8 + 4 + 8 + 4 + 4 + 8 + int64(unsafe.Sizeof(buffer{})) + 16

// flush ends a block.
func (b *Builder) flush() error {
	first := b.e.key(0)
	if int64(len(b.first))+int64(len(first)) > math.MaxUint32 {
		return ErrNoRoom
	}
	if err := b.charge(indexBytes + int64(len(first))); err != nil {
		return err
	}
	b.first = append(b.first, first...)
	b.ends = append(b.ends, uint32(len(b.first)))
	b.scratch = b.e.encode(b.scratch[:0], b.rows)
	b.e.reset()
	n := int64(len(b.scratch))
	b.total += n
	b.raw = append(b.raw, uint32(n))
	if b.file == nil {
		if b.inMem+n <= b.s.buildMax() && b.s.grow(n) {
			b.charged += n
			b.inMem += n
			b.blocks = append(b.blocks, bytes.Clone(b.scratch))
			return nil
		}
		if err := b.spill(); err != nil {
			return err
		}
	}
	return b.write(b.scratch)
}

// spill begins a file with the blocks so far.
func (b *Builder) spill() error {
	f, err := b.s.create()
	if err != nil {
		return ErrNoRoom
	}
	b.file, b.w = f, bufio.NewWriterSize(f, 256<<10)
	for _, x := range b.blocks {
		if err := b.write(x); err != nil {
			return err
		}
	}
	b.blocks = nil
	b.s.shrink(b.inMem)
	b.charged -= b.inMem
	b.inMem = 0
	return nil
}

// write puts a block into the file. A disk that is full is no room.
func (b *Builder) write(x []byte) error {
	out := x
	if b.s.o.Compress {
		out = deflate(&b.deflate, x)
	}
	if !b.s.growDisk(int64(len(out))) {
		return ErrNoRoom
	}
	b.onDisk += int64(len(out))
	if _, err := b.w.Write(out); err != nil {
		return ErrNoRoom
	}
	b.offs = append(b.offs, b.offs[len(b.offs)-1]+int64(len(out)))
	b.sums = append(b.sums, crc32.Checksum(out, castagnoli))
	return nil
}

// deflate returns x compressed, or x where that does not make it smaller.
func deflate(buf *[]byte, x []byte) []byte {
	if cap(*buf) < len(x) {
		*buf = make([]byte, len(x))
	}
	n, err := lz4.CompressBlock(x, (*buf)[:len(x)-1], nil)
	if err != nil || n == 0 {
		return x
	}
	return (*buf)[:n]
}

// finish makes the table. The charges are its own then.
func (b *Builder) finish() (*table, error) {
	if len(b.e.seqs) > 0 {
		if err := b.flush(); err != nil {
			return nil, err
		}
	}
	t := &table{s: b.s, rows: b.rows, n: b.n, filter: b.filter, first: b.first, firstEnd: b.ends, last: b.last, bytes: b.total}
	n := len(b.ends)
	t.blocks = make([]atomic.Pointer[buffer], n)
	if n > 0 {
		t.common = t.first[:commonPrefix(t.firstKey(0), t.last)]
	}
	t.words = make([]uint64, n)
	for i := range t.words {
		t.words[i] = word(t.firstKey(i)[len(t.common):])
	}
	t.fixed = b.charged - b.inMem
	if b.file != nil {
		if err := b.w.Flush(); err != nil {
			return nil, ErrNoRoom
		}
		t.offs, t.raw, t.sums, t.fileSize = b.offs, b.raw, b.sums, b.onDisk
		t.file.Store(b.file)
		b.file, b.onDisk = nil, 0
	} else {
		for i, x := range b.blocks {
			t.blocks[i].Store(&buffer{b: x}) // each by itself: it leaves memory alone
		}
	}
	b.charged = 0
	return t, nil
}

// abort gives back what an unfinished builder holds.
func (b *Builder) abort() {
	b.s.shrink(b.charged)
	b.s.shrinkDisk(b.onDisk)
	b.charged, b.onDisk = 0, 0
	if b.file != nil {
		b.s.remove(b.file)
		b.file = nil
	}
}
