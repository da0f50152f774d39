package rangebitmap

import (
	"encoding/binary"
	"sort"
	"sync"

	"github.com/paimon-sql/paimon-sql/index/bitslice"
)

// dictionary is the distinct values in ascending order, in chunks:
//
//	int32 length of the head | byte version = 1 | int32 chunks | int32 4*chunks
//	| int32 length of the chunk heads
//	chunks times: int32 offset of a head among the heads
//	heads: byte version = 1 | first value | int32 its rank | int32 offset of the keys
//	       | int32 number of keys
//	       then of fixed width:  int32 length of the keys | int32 width
//	       or of strings:        int32 4*number | int32 length of the keys
//	keys of all chunks: the values after the first; for strings, first int32
//	offsets of each among them
//
// The heads are read as a whole, of the keys only the chunk that a value falls
// into. Source: ChunkedDictionary.java, FixedLengthChunk.java,
// VariableLengthChunk.java.
type dictionary struct {
	value
	src      *window
	at, end  int64
	distinct uint32

	mu     sync.Mutex
	loaded bool
	chunks []chunk
}

type chunk struct {
	first     key
	rank      uint32
	count     uint32 // without the first
	off, size int64  // of the keys in the source
	offsets   int64  // bytes of size that are offsets
	keys      []byte // nil = not read
}

// rank returns how many values are below k.
func (d *dictionary) rank(k key) (uint32, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.load(); err != nil {
		return 0, err
	}
	i := sort.Search(len(d.chunks), func(i int) bool { return !less(d.chunks[i].first, k) })
	switch {
	case i == 0:
		return 0, nil
	case i < len(d.chunks) && d.chunks[i].first == k:
		return d.chunks[i].rank, nil
	}
	c := &d.chunks[i-1]
	if c.keys == nil && c.count > 0 {
		if err := d.read(c); err != nil {
			return 0, err
		}
	}
	n := 0
	if d.codec != nil {
		n = sort.Search(int(c.count), func(i int) bool { return d.get(c.keys[i*d.width:]) >= k.n })
	} else {
		n = sort.Search(int(c.count), func(i int) bool { return string(d.text(c, i)) >= k.s })
	}
	return c.rank + 1 + uint32(n), nil
}

func less(a, b key) bool { return a.n < b.n || a.s < b.s }

// text returns string i of a chunk that was read.
func (d *dictionary) text(c *chunk, i int) []byte {
	b := c.keys[c.offsets+int64(binary.BigEndian.Uint32(c.keys[4*i:])):]
	return b[4 : 4+binary.BigEndian.Uint32(b)]
}

// load reads the heads of the chunks.
func (d *dictionary) load() error {
	if d.loaded {
		return nil
	}
	head, at, err := d.src.head(d.at)
	if err != nil {
		return err
	}
	if len(head) < 13 || head[0] != version {
		return bitslice.Corrupt("dictionary head of %d bytes, version %d is known", len(head), version)
	}
	n := int64(binary.BigEndian.Uint32(head[1:]))
	offsets, heads := int64(binary.BigEndian.Uint32(head[5:])), int64(binary.BigEndian.Uint32(head[9:]))
	// A head has 21 bytes and a value.
	if offsets != 4*n || n*21 > heads || at+offsets+heads > d.end {
		return bitslice.Corrupt("dictionary of %d chunks in %d bytes", n, d.end-d.at)
	}
	b, err := d.src.bytes(at, offsets+heads)
	if err != nil {
		return err
	}
	keysAt := at + offsets + heads
	chunks := make([]chunk, n)
	rank := uint64(0)
	headEnd, keysEnd := int64(0), keysAt // of the chunk before: nothing is said twice
	for i := range chunks {
		c := &chunks[i]
		off := int64(binary.BigEndian.Uint32(b[4*i:]))
		if off < headEnd || off >= heads {
			return bitslice.Corrupt("chunk %d at %d of %d bytes", i, off, heads)
		}
		rest, err := d.chunk(c, b[offsets+off:offsets+heads], keysAt)
		if err != nil {
			return err
		}
		if c.off < keysEnd {
			return bitslice.Corrupt("keys of chunk %d at %d", i, c.off)
		}
		headEnd, keysEnd = heads-int64(len(rest)), c.off+c.size
		if uint64(c.rank) != rank || i > 0 && !less(chunks[i-1].first, c.first) {
			return bitslice.Corrupt("chunk %d is out of order", i)
		}
		rank += 1 + uint64(c.count)
	}
	if rank != uint64(d.distinct) {
		return bitslice.Corrupt("dictionary of %d values instead of %d", rank, d.distinct)
	}
	d.chunks, d.loaded = chunks, true
	return nil
}

// chunk decodes the head at the start of b and returns what follows it.
func (d *dictionary) chunk(c *chunk, b []byte, keysAt int64) ([]byte, error) {
	if b[0] != version {
		return nil, bitslice.Corrupt("chunk version %d", b[0])
	}
	var err error
	if c.first.n, c.first.s, b, err = d.cut(b[1:]); err != nil {
		return nil, err
	}
	if len(b) < 20 {
		return nil, bitslice.Corrupt("chunk is cut short")
	}
	c.rank = binary.BigEndian.Uint32(b)
	c.off = keysAt + int64(binary.BigEndian.Uint32(b[4:]))
	c.count = binary.BigEndian.Uint32(b[8:])
	x, y := int64(binary.BigEndian.Uint32(b[12:])), int64(binary.BigEndian.Uint32(b[16:]))
	fits := false
	if d.codec != nil {
		c.size = x
		fits = y == int64(d.width) && x == y*int64(c.count)
	} else {
		c.offsets, c.size = x, x+y
		fits = x == 4*int64(c.count)
	}
	if !fits || c.off+c.size > d.end {
		return nil, bitslice.Corrupt("chunk of %d keys in %d bytes at %d of %d", c.count, c.size, c.off, d.end)
	}
	return b[20:], nil
}

// read reads and checks the keys of a chunk.
func (d *dictionary) read(c *chunk) error {
	b, err := d.src.bytes(c.off, c.size)
	if err != nil {
		return err
	}
	if d.codec != nil {
		last := c.first.n
		for i := 0; i < len(b); i += d.width {
			n := d.get(b[i:])
			if n <= last {
				return bitslice.Corrupt("values are out of order")
			}
			last = n
		}
		c.keys = b
		return nil
	}
	keys := b[c.offsets:]
	last := []byte(c.first.s)
	for i := range int64(c.count) {
		at := int64(binary.BigEndian.Uint32(b[4*i:]))
		if at+4 > int64(len(keys)) {
			return bitslice.Corrupt("string at %d of %d bytes", at, len(keys))
		}
		n := int64(binary.BigEndian.Uint32(keys[at:]))
		if at+4+n > int64(len(keys)) {
			return bitslice.Corrupt("string of %d bytes at %d of %d", n, at, len(keys))
		}
		s := keys[at+4 : at+4+n]
		if string(s) <= string(last) {
			return bitslice.Corrupt("strings are out of order")
		}
		last = s
	}
	c.keys = b
	return nil
}
