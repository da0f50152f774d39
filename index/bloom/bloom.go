// Package bloom reads and writes Paimon's bloom filter index, which tells that a
// data file does not hold a value.
//
//	int32 BE number of hash functions | bits, byte by byte from the lowest bit
//
// The hash of a value has 64 bits, from which each hash function takes another
// 32 (BloomFilter64.java); values are hashed by FastHash.java: xxHash64 of bytes,
// Thomas Wang's integer hash with signed shifts for everything else.
//
// The number of bits is what bits-and-blooms computes, brought up to whole bytes
// as Java does; the number of hash functions is Java's: the library rounds up,
// Java to the nearest. Hashing and bits are Java's throughout, since the library
// uses murmur.
package bloom

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
	sizing "github.com/bits-and-blooms/bloom/v3"
	"github.com/cespare/xxhash/v2"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Defaults of the options "items" and "fpp".
const (
	DefaultItems = 1_000_000
	DefaultFPP   = 0.1
)

// maxHashes bounds the hash functions of a filter that is read: even one item at
// a rate of 1e-300 has fewer.
const maxHashes = 1 << 12

// smallBytes is the size below which a filter is read whole.
const smallBytes = 1 << 12

// Kind is the kind "bloom-filter".
var Kind index.Kind = kind{}

type kind struct{}

func (kind) Name() string { return "bloom-filter" }

// Supports: all but BOOLEAN, DECIMAL, VARIANT, BLOB and nested types.
func (kind) Supports(t types.Type) bool {
	switch t.Kind {
	case types.TinyInt, types.Int2, types.Int4, types.Int8, types.Float4, types.Float8,
		types.Date, types.Time, types.Timestamp, types.TimestampTZ,
		types.Text, types.Varchar, types.BpChar:
		return true
	case types.Bytea:
		return t.Lake == types.LakeDefault || t.Lake == types.LakeBinary || t.Lake == types.LakeVarbinary
	}
	return false
}

func (k kind) check(t types.Type) error {
	if !k.Supports(t) {
		return fmt.Errorf("bloom-filter index does not support columns of type %s", t.PlainName())
	}
	return nil
}

// size returns the bits and the hash functions of a filter.
func size(items int64, fpp float64) (bits, hashes int64, err error) {
	if items < 1 || items > math.MaxInt32 {
		return 0, 0, fmt.Errorf("option items of a bloom-filter index must be 1 to %d, not %d", math.MaxInt32, items)
	}
	if !(fpp > 0 && fpp < 1) {
		return 0, 0, fmt.Errorf("option fpp of a bloom-filter index must be between 0 and 1, not %v", fpp)
	}
	// m is rounded up, Java cuts; and Java always adds 1 to 8 bits.
	m, _ := sizing.EstimateParameters(uint(items), fpp)
	bits = int64(m) - 1
	bits += 8 - bits%8
	if bits > math.MaxInt32 {
		return 0, 0, fmt.Errorf("bloom-filter index of %d items at fpp %v needs more than 2^31 bits", items, fpp)
	}
	// Java's Math.round: half up.
	hashes = max(1, int64(math.Floor(float64(bits)/float64(items)*math.Ln2+0.5)))
	return bits, hashes, nil
}

// hashKey is Thomas Wang's integer hash as Java writes it: with signed shifts.
func hashKey(k int64) uint64 {
	k = ^k + k<<21
	k ^= k >> 24
	k = k + k<<3 + k<<8
	k ^= k >> 14
	k = k + k<<2 + k<<4
	k ^= k >> 28
	k += k << 31
	return uint64(k)
}

// position returns the bit that hash function i, from 1, takes of a hash.
func position(h uint64, i, bits uint32) uint32 {
	c := int32(uint32(h) + i*uint32(h>>32))
	return uint32(c^c>>31) % bits // ^: ~c when negative
}

// Create makes a filter of the size that the options say, whatever comes.
func (k kind) Create(t types.Type, o index.Options) (index.Builder, error) {
	if err := k.check(t); err != nil {
		return nil, err
	}
	items, fpp := int64(DefaultItems), DefaultFPP
	for name, text := range o {
		var err error
		switch text = strings.TrimSpace(text); name {
		case "items":
			items, err = strconv.ParseInt(text, 10, 32)
		case "fpp":
			fpp, err = strconv.ParseFloat(text, 64)
		default:
			return nil, fmt.Errorf("bloom-filter index has no option %q", name)
		}
		if err != nil {
			return nil, fmt.Errorf("option %s of a bloom-filter index: %q is not a number", name, text)
		}
	}
	bits, hashes, err := size(items, fpp)
	if err != nil {
		return nil, err
	}
	b := &builder{t: t, bits: uint32(bits), hashes: uint32(hashes), out: make([]byte, 4+bits/8)}
	binary.BigEndian.PutUint32(b.out, b.hashes)
	return b, nil
}

type builder struct {
	t      types.Type
	bits   uint32
	hashes uint32
	out    []byte // as it is written; the bits begin at 4
	rows   int64
	keys   []int64 // scratch
	seen   []bool  // scratch: dictionary entries that are in
}

// Bytes is the memory held.
func (b *builder) Bytes() int64 { return int64(cap(b.out) + 8*cap(b.keys) + cap(b.seen)) }

// Finish returns the filter; nil if there was no row.
func (b *builder) Finish() ([]byte, error) {
	if b.rows == 0 {
		return nil, nil
	}
	return b.out, nil
}

func (b *builder) add(h uint64) {
	set := b.out[4:]
	for i := uint32(1); i <= b.hashes; i++ {
		p := position(h, i, b.bits)
		set[p>>3] |= 1 << (p & 7)
	}
}

// Append adds the values of an array.
func (b *builder) Append(a arrow.Array) error {
	b.rows += int64(a.Len())
	if a.NullN() == a.Len() {
		return nil
	}
	var valid []byte // nil = all
	off := a.Data().Offset()
	if a.NullN() > 0 {
		valid = a.NullBitmapBytes()
	}
	switch a := a.(type) {
	case *array.String:
		for i, n := 0, a.Len(); i < n; i++ {
			if valid == nil || bitutil.BitIsSet(valid, off+i) {
				b.add(xxhash.Sum64String(a.Value(i)))
			}
		}
		return nil
	case *array.Binary:
		for i, n := 0, a.Len(); i < n; i++ {
			if valid == nil || bitutil.BitIsSet(valid, off+i) {
				b.add(xxhash.Sum64(a.Value(i)))
			}
		}
		return nil
	case *array.Dictionary:
		return b.appendDictionary(a, valid, off)
	}
	keys, err := index.Keys(a, b.t, b.keys)
	if err != nil {
		return err
	}
	b.keys = keys
	if valid == nil {
		for _, k := range keys {
			b.add(hashKey(k))
		}
		return nil
	}
	for i, k := range keys {
		if bitutil.BitIsSet(valid, off+i) {
			b.add(hashKey(k))
		}
	}
	return nil
}

// appendDictionary hashes each entry that rows refer to once.
func (b *builder) appendDictionary(a *array.Dictionary, valid []byte, off int) error {
	entries := a.Dictionary()
	if cap(b.seen) < entries.Len() {
		b.seen = make([]bool, entries.Len())
	}
	seen := b.seen[:entries.Len()]
	clear(seen)
	var hash func(i int) uint64
	switch d := entries.(type) {
	case *array.String:
		hash = func(i int) uint64 { return xxhash.Sum64String(d.Value(i)) }
	case *array.Binary:
		hash = func(i int) uint64 { return xxhash.Sum64(d.Value(i)) }
	default:
		keys, err := index.Keys(d, b.t, b.keys)
		if err != nil {
			return err
		}
		b.keys = keys
		hash = func(i int) uint64 { return hashKey(keys[i]) }
	}
	one := func(e int) {
		if !seen[e] {
			seen[e] = true
			if entries.IsValid(e) {
				b.add(hash(e))
			}
		}
	}
	if ix, ok := a.Indices().(*array.Int32); ok {
		for i, e := range ix.Int32Values() {
			if valid == nil || bitutil.BitIsSet(valid, off+i) {
				one(int(e))
			}
		}
		return nil
	}
	for i, n := 0, a.Len(); i < n; i++ {
		if valid == nil || bitutil.BitIsSet(valid, off+i) {
			one(a.GetValueIndex(i))
		}
	}
	return nil
}

// Open reads the number of hash functions.
func (k kind) Open(src index.Source, t types.Type) (index.FileIndex, error) {
	if err := k.check(t); err != nil {
		return nil, err
	}
	n := src.Size()
	if n < 5 || n-4 > math.MaxInt32/8 {
		return nil, index.Corrupt("bloom filter of %d bytes", n)
	}
	f := &filter{t: t, src: src, bits: uint32(n-4) * 8}
	head, err := index.ReadBytes(src, 0, min(n, 4))
	if err == nil && n <= smallBytes {
		if head, err = index.ReadBytes(src, 0, n); err == nil {
			f.src = index.BytesSource(head)
		}
	}
	if err != nil {
		return nil, err
	}
	if f.hashes = binary.BigEndian.Uint32(head); f.hashes < 1 || f.hashes > maxHashes {
		return nil, index.Corrupt("bloom filter of %d hash functions", f.hashes)
	}
	return f, nil
}

// filter is an open index. It keeps nothing of a large filter in memory: a test
// reads the bytes that it looks at, mostly one or two.
type filter struct {
	t      types.Type
	src    index.Source
	bits   uint32
	hashes uint32
}

// Test judges Eq and In: None when no constant is in the filter.
func (f *filter) Test(l *predicate.Leaf) (index.Result, error) {
	if l.Op != predicate.Eq && l.Op != predicate.In || l.Op == predicate.Eq && len(l.Args) != 1 || !index.Accepts(f.t, l) {
		return index.Result{}, nil
	}
	src := f.src
	// Many constants: one read is cheaper than many.
	if _, ok := src.(index.BytesSource); !ok && int64(len(l.Args))*smallBytes > src.Size() {
		all, err := index.ReadBytes(src, 0, src.Size())
		if err != nil {
			return index.Result{}, err
		}
		src = index.BytesSource(all)
	}
	var hashes []uint64
	for _, d := range l.Args {
		var ok bool
		if hashes, ok = f.hash(d, hashes[:0]); !ok {
			return index.Result{}, nil
		}
		for _, h := range hashes {
			if in, err := f.has(src, h); in || err != nil {
				return index.Result{}, err
			}
		}
	}
	return index.Result{Verdict: index.None}, nil
}

// hash appends the hashes of all values that SQL takes as equal to a constant.
func (f *filter) hash(d types.Datum, out []uint64) ([]uint64, bool) {
	switch v := d.(type) {
	case string:
		switch f.t.Kind {
		case types.Text, types.Varchar:
			return append(out, xxhash.Sum64String(v)), true
		case types.BpChar:
			forms, ok := index.CharForms(f.t, v)
			for _, s := range forms {
				out = append(out, xxhash.Sum64String(s))
			}
			return out, ok
		}
		return out, false
	case []byte:
		return append(out, xxhash.Sum64(v)), f.t.Kind == types.Bytea
	}
	k, _, ok := index.LeafKey(f.t, d)
	if !ok {
		return out, false
	}
	out = append(out, hashKey(k))
	if k == 0 {
		if neg, has := index.NegativeZero(f.t); has {
			out = append(out, hashKey(neg))
		}
	}
	return out, true
}

// has reports whether all bits of a hash are set.
func (f *filter) has(src index.Source, h uint64) (bool, error) {
	if b, ok := src.(index.BytesSource); ok {
		set := b[4:]
		for i := uint32(1); i <= f.hashes; i++ {
			p := position(h, i, f.bits)
			if set[p>>3]&(1<<(p&7)) == 0 {
				return false, nil
			}
		}
		return true, nil
	}
	for i := uint32(1); i <= f.hashes; i++ {
		p := position(h, i, f.bits)
		b, err := index.ReadBytes(src, 4+int64(p>>3), 1)
		if err != nil || b[0]&(1<<(p&7)) == 0 {
			return false, err
		}
	}
	return true, nil
}
