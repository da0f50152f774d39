package lookup

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"sort"
	"sync/atomic"

	"github.com/bits-and-blooms/bloom/v3"
	"github.com/pierrec/lz4/v4"
)

// table is one sorted table. Its index does not change once it is made; which of
// its blocks are in memory does.
type table struct {
	s      *Store
	rows   bool
	n      int64 // entries
	filter *bloom.BloomFilter

	// First keys of the blocks. Between all of them common bytes are the same; words
	// are the 8 bytes behind those, so that a binary search hardly looks at the keys.
	common   []byte
	words    []uint64
	first    []byte
	firstEnd []uint32
	last     []byte // key of the last entry

	// Places of the blocks on disk: block i is at [offs[i], offs[i+1]), raw[i] bytes
	// when inflated (its place's length = not deflated).
	offs []int64
	raw  []uint32
	sums []uint32

	blocks []atomic.Pointer[buffer]
	bytes  int64 // of all blocks, inflated
	fixed  int64 // bytes of the index and filter

	file     atomic.Pointer[os.File] // nil = all blocks are in memory
	fileSize int64                   // set with file, under the store's lock
	dead     atomic.Bool             // dropped: answers no more
	used     atomic.Uint32           // since the hand last passed (tables that are wholly in memory)
	epoch    atomic.Int64            // of the last use
	lookups  atomic.Int64
}

// buffer is a block in memory.
type buffer struct {
	b    []byte
	used atomic.Uint32 // since the hand last passed
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errGone says that a table cannot answer any more: it was dropped meanwhile, or
// its file is damaged.
var errGone = errors.New("the table is gone")

func word(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	u := uint64(0)
	for i, c := range b {
		u |= uint64(c) << (56 - 8*i)
	}
	return u
}

func (t *table) firstKey(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = t.firstEnd[i-1]
	}
	return t.first[from:t.firstEnd[i]]
}

// seek returns the block that holds key if any does: the last of those from on
// whose first key is not above it; -1 when the key is below all.
func (t *table) seek(key []byte, from int) int {
	if c := t.common; len(c) > 0 {
		if len(key) < len(c) || !bytes.Equal(key[:len(c)], c) {
			if bytes.Compare(key, c) < 0 {
				return -1
			}
			return len(t.words) - 1
		}
	}
	w := word(key[len(t.common):])
	lo, hi := from, len(t.words)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if x := t.words[mid]; x < w || x == w && bytes.Compare(t.firstKey(mid), key) <= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// block returns the bytes of block i.
func (t *table) block(i int) ([]byte, error) {
	if b := t.blocks[i].Load(); b != nil {
		if b.used.Load() == 0 {
			b.used.Store(1)
		}
		return b.b, nil
	}
	return t.load(i)
}

// load reads a block from disk.
func (t *table) load(i int) ([]byte, error) {
	f := t.file.Load()
	if f == nil || t.dead.Load() {
		return nil, errGone
	}
	b := make([]byte, t.offs[i+1]-t.offs[i])
	t.s.diskReads.Add(1)
	if _, err := f.ReadAt(b, t.offs[i]); err != nil {
		if t.dead.Load() {
			return nil, errGone
		}
		t.s.damaged(t)
		return nil, errGone
	}
	if crc32.Checksum(b, castagnoli) != t.sums[i] {
		t.s.damaged(t)
		return nil, errGone
	}
	if n := int(t.raw[i]); n != len(b) {
		out := make([]byte, n)
		if m, err := lz4.UncompressBlock(b, out); err != nil || m != n {
			t.s.damaged(t)
			return nil, errGone
		}
		b = out
	}
	t.s.keep(t, i, b)
	return b, nil
}

// touch notes that the table is used.
func (t *table) touch() {
	if t.used.Load() == 0 {
		t.used.Store(1)
	}
	if e := t.s.epoch.Load(); t.epoch.Load() != e {
		t.epoch.Store(e)
	}
}

// get looks one key up.
func (t *table) get(key []byte, rows bool, f *Found) (bool, error) {
	t.touch()
	t.lookups.Add(1)
	if t.filter != nil && !t.filter.Test(key) {
		return false, nil
	}
	i := t.seek(key, 0)
	if i < 0 {
		return false, nil
	}
	b, err := t.block(i)
	if err != nil {
		return false, err
	}
	x, err := parseBlock(b)
	if err != nil {
		return false, t.broken()
	}
	at, ok := x.search(key, 0)
	if !ok {
		return false, nil
	}
	if err := x.at(at, f); err != nil {
		return false, t.broken()
	}
	if !rows {
		f.Row = nil
	}
	return true, nil
}

// broken drops the table: what passed its checksum does not hold together.
func (t *table) broken() error {
	t.s.damaged(t)
	return errGone
}

// find looks ascending keys up and appends what it finds to out.
func (t *table) find(keys [][]byte, rows bool, out []Found) ([]Found, error) {
	t.touch()
	t.lookups.Add(int64(len(keys)))
	cur, at := -1, 0
	var x block
	for k := 0; k < len(keys); k++ {
		key := keys[k]
		if bytes.Compare(key, t.last) > 0 {
			break
		}
		// A dense batch walks the blocks; a sparse one asks the filter first.
		if cur < 0 || cur+1 < len(t.words) && bytes.Compare(t.firstKey(cur+1), key) <= 0 {
			if t.filter != nil && !t.filter.Test(key) {
				continue
			}
			i := t.seek(key, max(cur, 0))
			if i < 0 {
				// Below the table: the keys up to its first cannot be in it.
				first := t.firstKey(0)
				k += sort.Search(len(keys)-k, func(i int) bool { return bytes.Compare(keys[k+i], first) >= 0 }) - 1
				continue
			}
			b, err := t.block(i)
			if err != nil {
				return out, err
			}
			if x, err = parseBlock(b); err != nil {
				return out, t.broken()
			}
			cur, at = i, 0
		}
		var ok bool
		if at, ok = x.search(key, at); ok {
			f := Found{Key: int32(k)}
			if err := x.at(at, &f); err != nil {
				return out, t.broken()
			}
			f.Key = int32(k)
			if !rows {
				f.Row = nil
			}
			out = append(out, f)
		}
	}
	return out, nil
}
