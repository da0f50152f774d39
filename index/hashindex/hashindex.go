// Package hashindex is the index of a partition with dynamic buckets: which
// bucket the hash of a key belongs to, and which bucket a new one gets.
//
// A HASH index file holds the hashes of the keys of one bucket, 4 bytes each,
// big-endian, in no order and without a header. Two keys of one hash share a
// bucket. Source: HashIndexFile.java, PartitionIndex.java.
package hashindex

import (
	"encoding/binary"
	"fmt"
	"math"
)

// MaxBucket is the highest bucket id: Java keeps ids in 16 bits.
const MaxBucket = math.MaxInt16 - 1

// Decode returns the hashes of an index file.
func Decode(raw []byte) ([]int32, error) {
	if len(raw)%4 != 0 {
		return nil, fmt.Errorf("hash index of %d bytes", len(raw))
	}
	out := make([]int32, len(raw)/4)
	for i := range out {
		out[i] = int32(binary.BigEndian.Uint32(raw[4*i:]))
	}
	return out, nil
}

// Append appends hashes in the form of an index file.
func Append(raw []byte, hashes []int32) []byte {
	for _, h := range hashes {
		raw = binary.BigEndian.AppendUint32(raw, uint32(h))
	}
	return raw
}

// Map maps hashes to buckets in 6 bytes per slot. The zero value is empty. Safe
// for concurrent reading only.
type Map struct {
	keys []int32
	vals []uint16 // bucket + 1; 0 = free
	n    int
}

// Len returns the number of hashes.
func (m *Map) Len() int { return m.n }

// Bytes is what the map takes.
func (m *Map) Bytes() int64 { return int64(len(m.keys))*6 + 64 }

// slot finds a hash or the free slot where it belongs. Hashes are well mixed, but
// a bucket of a virtual assigner holds those of one remainder: mix again.
func (m *Map) slot(h int32) int {
	mask := len(m.keys) - 1
	i := int(uint64(uint32(h))*0x9e3779b97f4a7c15>>32) & mask
	for m.vals[i] != 0 && m.keys[i] != h {
		i = (i + 1) & mask
	}
	return i
}

// Get returns the bucket of a hash.
func (m *Map) Get(h int32) (bucket int32, ok bool) {
	if m.n == 0 {
		return 0, false
	}
	v := m.vals[m.slot(h)]
	return int32(v) - 1, v != 0
}

// Put sets the bucket of a hash.
func (m *Map) Put(h, bucket int32) {
	if (m.n+1)*4 > len(m.keys)*3 {
		m.grow()
	}
	i := m.slot(h)
	if m.vals[i] == 0 {
		m.n++
		m.keys[i] = h
	}
	m.vals[i] = uint16(bucket + 1)
}

func (m *Map) grow() {
	old := *m
	n := max(64, 2*len(old.keys))
	m.keys, m.vals = make([]int32, n), make([]uint16, n)
	for i, v := range old.vals {
		if v != 0 {
			at := m.slot(old.keys[i])
			m.keys[at], m.vals[at] = old.keys[i], v
		}
	}
}

// Rules say which bucket a new hash gets.
type Rules struct {
	Target int64 // rows per bucket: dynamic-bucket.target-row-num
	Max    int32 // dynamic-bucket.max-buckets, -1 = as many as there can be
	// Assigners, at least 1, are the shares of hashes and of buckets: a new hash of
	// share i gets a bucket that is i modulo Assigners, as if as many writers were at
	// work (dynamic-bucket.initial-buckets, .assigner-parallelism).
	Assigners int32
	Channels  int32 // at least Assigners
	// Partition is the hash of the partition's image.
	Partition int32
}

// share is the share of a hash (Java: BucketAssigner.computeAssigner and
// isMyBucket).
func (r *Rules) share(h int32) int32 {
	if r.Assigners <= 1 {
		return 0
	}
	start, id := r.Partition%r.Channels, h%r.Assigners
	return (abs(start) + abs(id)) % r.Channels % r.Assigners
}

func abs(n int32) int32 {
	if n < 0 {
		return -n
	}
	return n
}

// FullError says that there is no bucket left for a new key.
type FullError struct{ Target int64 }

func (e *FullError) Error() string {
	return fmt.Sprintf("the partition has %d buckets of %d rows already: dynamic-bucket.target-row-num is too small", MaxBucket+1, e.Target)
}

// Index is the index of one partition: committed hashes, and those assigned to
// rows that are not committed yet. Not safe for concurrent use.
type Index struct {
	Rules
	committed Map
	rows      map[int32]int64 // by bucket: committed and pending hashes
	files     map[int32]int64 // by bucket: committed hashes
	pending   map[int32]int16
	// spare is, by share, a bucket below which none of the share has room.
	spare []int32
}

// New returns an empty index.
func New(r Rules) *Index {
	r.Assigners = max(r.Assigners, 1)
	r.Channels = max(r.Channels, r.Assigners)
	return &Index{Rules: r, rows: map[int32]int64{}, files: map[int32]int64{}, pending: map[int32]int16{}, spare: make([]int32, r.Assigners)}
}

// Use changes the rules for new hashes.
func (x *Index) Use(r Rules) {
	r.Assigners = max(r.Assigners, 1)
	r.Channels = max(r.Channels, r.Assigners)
	if r != x.Rules {
		x.Rules, x.spare = r, make([]int32, r.Assigners)
	}
}

// Bytes is about what the index takes.
func (x *Index) Bytes() int64 {
	return x.committed.Bytes() + int64(len(x.pending))*16 + int64(len(x.rows))*64 + 256
}

// Get returns the committed bucket of a hash.
func (x *Index) Get(h int32) (int32, bool) { return x.committed.Get(h) }

// Committed returns the number of committed hashes of a bucket.
func (x *Index) Committed(bucket int32) int64 { return x.files[bucket] }

// Commit takes hashes of a bucket into the committed ones. A hash that is
// committed in another bucket stays there.
func (x *Index) Commit(bucket int32, hashes []int32) {
	if _, ok := x.rows[bucket]; !ok {
		x.rows[bucket] = 0
	}
	for _, h := range hashes {
		if b, ok := x.pending[h]; ok {
			delete(x.pending, h)
			x.rows[int32(b)]--
		}
		if _, ok := x.committed.Get(h); ok {
			continue
		}
		x.committed.Put(h, bucket)
		x.rows[bucket]++
		x.files[bucket]++
	}
	clear(x.spare) // a bucket may have got room
}

// maxPending bounds what is remembered of uncommitted rows. Beyond it two writers
// of one new key may use two buckets, and the later one conflicts.
const maxPending = 8 << 20

// Assign returns the bucket of a hash: the one that it has, else one with room,
// else a new one, else any.
func (x *Index) Assign(h int32) (int32, error) {
	if b, ok := x.committed.Get(h); ok {
		return b, nil
	}
	if b, ok := x.pending[h]; ok {
		return int32(b), nil
	}
	b, err := x.place(h)
	if err != nil {
		return 0, err
	}
	if len(x.pending) >= maxPending {
		for _, b := range x.pending {
			x.rows[int32(b)]--
		}
		clear(x.pending)
		clear(x.spare)
	}
	x.pending[h] = int16(b)
	x.rows[b]++
	return b, nil
}

// place chooses the lowest bucket of the hash's share that has room.
func (x *Index) place(h int32) (int32, error) {
	share := x.share(h)
	limit := int32(MaxBucket + 1)
	if x.Max >= 0 {
		limit = min(limit, x.Max)
	}
	b := max(x.spare[share], share)
	for ; b < limit; b += x.Assigners {
		if n := x.rows[b]; n < x.Target || n == 0 {
			x.spare[share] = b
			return b, nil
		}
	}
	x.spare[share] = b
	if x.Max < 0 {
		return 0, &FullError{Target: x.Target}
	}
	// Every bucket is full: spread over those of the share, or over all of them.
	n := (limit - share + x.Assigners - 1) / x.Assigners
	if share >= limit {
		return int32(uint32(h) % uint32(max(limit, 1))), nil
	}
	return share + x.Assigners*int32(uint32(h)%uint32(n)), nil
}

// Forget takes assignments back whose rows will not be committed.
func (x *Index) Forget(bucket int32, hashes []int32) {
	for _, h := range hashes {
		if b, ok := x.pending[h]; ok && int32(b) == bucket {
			delete(x.pending, h)
			x.rows[bucket]--
		}
	}
	clear(x.spare)
}

// Pending returns the number of hashes assigned and not committed.
func (x *Index) Pending() int { return len(x.pending) }
