package parquet

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// A split block bloom filter is blocks of eight 32-bit words. The upper half of
// a value's XXH64 chooses the block, the lower half times eight odd constants
// one bit in each word. A head in Thrift comes first:
//
//	1 number of bytes | 2 algorithm | 3 hash | 4 compression, each a union with
//	one member today
//
// Source: the Parquet format's BloomFilter.md.

const bloomBlock = 32

// bloomWhole is the size up to which a filter is read in one piece.
const bloomWhole = 1 << 20

var bloomSalt = [8]uint32{0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31}

// bloom reports whether the chunk's filter admits one of the arguments.
func (p *pruner) bloom(ctx context.Context, b *bnode, args []types.Datum) (bool, error) {
	m := &p.r.meta.groups[p.g].cols[b.leaf.col]
	if m.bloomOff <= 0 {
		return true, nil
	}
	var hashes []uint64
	for _, a := range args {
		hs, ok := bloomHashes(b, a)
		if !ok {
			return true, nil
		}
		hashes = append(hashes, hs...)
	}
	if len(hashes) == 0 { // no argument can be a value of the column
		return false, nil
	}
	f, err := p.r.openBloom(ctx, m)
	if err != nil || f == nil {
		return true, err
	}
	for _, h := range hashes {
		may, err := f.has(ctx, h)
		if may || err != nil {
			return true, err
		}
	}
	return false, nil
}

// bloomHashes returns the hashes of the stored forms that equal a; none when
// there is no such form. ok is false when that cannot be said.
func bloomHashes(b *bnode, a types.Datum) (out []uint64, ok bool) {
	el := b.leaf.node.el
	var buf [16]byte
	i32 := func(v int64) ([]uint64, bool) {
		if v < math.MinInt32 || v > math.MaxInt32 {
			return nil, true
		}
		binary.LittleEndian.PutUint32(buf[:], uint32(v))
		return []uint64{xxhash.Sum64(buf[:4])}, true
	}
	i64 := func(v int64) ([]uint64, bool) {
		binary.LittleEndian.PutUint64(buf[:], uint64(v))
		return []uint64{xxhash.Sum64(buf[:8])}, true
	}
	switch b.leaf.conv {
	case cvNarrow, cvWiden, cvCopy4, cvTimeMs:
		if el.typ == pFloat {
			return bloomFloat(a, true)
		}
		v, ok := a.(int64)
		if !ok {
			return nil, false
		}
		if b.leaf.conv == cvTimeMs {
			if v%1000 != 0 {
				return nil, true
			}
			v /= 1000
		}
		return i32(v)
	case cvCopy8, cvMul1000, cvMul1M:
		if el.typ == pDouble {
			return bloomFloat(a, false)
		}
		v, ok := a.(int64)
		if !ok {
			return nil, false
		}
		k := map[conv]int64{cvCopy8: 1, cvMul1000: 1000, cvMul1M: 1000000}[b.leaf.conv]
		if v%k != 0 {
			return nil, true
		}
		return i64(v / k)
	case cvF32F64:
		return bloomFloat(a, true)
	case cvDec32, cvDec64, cvDecBE:
		v, exact, ok := decOf(a, b.t)
		if !ok || el.typ == pBytes { // of byte arrays the length is not known
			return nil, false
		}
		if !exact {
			return nil, true
		}
		fits := v.hi == int64(v.lo)>>63
		switch el.typ {
		case pInt32:
			if !fits {
				return nil, true
			}
			return i32(int64(v.lo))
		case pInt64:
			if !fits {
				return nil, true
			}
			return i64(int64(v.lo))
		}
		w := int(el.typeLength)
		if w > 16 {
			return nil, false
		}
		be := be64(be64(buf[:0], uint64(v.hi)), v.lo)
		for _, c := range be[:16-w] {
			if c != byte(v.hi>>63) {
				return nil, true
			}
		}
		return []uint64{xxhash.Sum64(be[16-w:])}, true
	case cvBytes:
		s, ok := bytesOf(a)
		if !ok || b.t.Kind == types.BpChar { // any number of trailing blanks
			return nil, false
		}
		return []uint64{xxhash.Sum64String(s)}, true
	}
	return nil, false
}

// bloomFloat hashes a float: both zeros, as they are equal; NaN has many forms.
func bloomFloat(a types.Datum, single bool) ([]uint64, bool) {
	f, ok := a.(float64)
	if !ok || math.IsNaN(f) {
		return nil, false
	}
	fs := []float64{f}
	if f == 0 {
		fs = []float64{0, math.Copysign(0, -1)}
	}
	var out []uint64
	for _, f := range fs {
		var buf [8]byte
		if !single {
			binary.LittleEndian.PutUint64(buf[:], math.Float64bits(f))
			out = append(out, xxhash.Sum64(buf[:]))
			continue
		}
		if g := float32(f); float64(g) == f {
			binary.LittleEndian.PutUint32(buf[:], math.Float32bits(g))
			out = append(out, xxhash.Sum64(buf[:4]))
		}
	}
	return out, true
}

// bloomFilter is an open filter; bits is nil when it is read block by block.
type bloomFilter struct {
	r      *Reader
	off    int64
	blocks uint64
	bits   []byte
}

func (r *Reader) openBloom(ctx context.Context, m *chunkMeta) (*bloomFilter, error) {
	n := min(int64(256), r.size-m.bloomOff)
	bad := func(err error) error {
		return &fileio.CorruptionError{Path: r.f.Path(), Offset: m.bloomOff, Reason: "bloom filter", Err: err}
	}
	if n <= 0 {
		return nil, bad(errShort)
	}
	b, err := r.readAt(ctx, m.bloomOff, int(n), nil)
	if err != nil {
		return nil, err
	}
	d := &tread{b: b}
	size := int32(-1)
	algo, hash, comp := int16(0), int16(0), int16(0)
	d.fields(func(id int16, t byte) {
		switch id {
		case 1:
			size = d.i32(t)
		case 2:
			algo = d.union(t, nil)
		case 3:
			hash = d.union(t, nil)
		case 4:
			comp = d.union(t, nil)
		default:
			d.skip(t)
		}
	})
	if d.err != nil {
		return nil, bad(d.err)
	}
	if algo != 1 || hash != 1 || comp != 1 {
		return nil, nil // of a kind that we do not know
	}
	f := &bloomFilter{r: r, off: m.bloomOff + int64(d.p), blocks: uint64(size) / bloomBlock}
	if size <= 0 || size%bloomBlock != 0 || int64(size) > r.size-f.off {
		return nil, bad(fmt.Errorf("a size of %d bytes", size))
	}
	if size <= bloomWhole {
		if f.bits, err = r.readAt(ctx, f.off, int(size), nil); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *bloomFilter) has(ctx context.Context, h uint64) (bool, error) {
	at := int64((h>>32)*f.blocks>>32) * bloomBlock
	var b []byte
	if f.bits != nil {
		b = f.bits[at : at+bloomBlock]
	} else {
		var err error
		if b, err = f.r.readAt(ctx, f.off+at, bloomBlock, nil); err != nil {
			return true, err
		}
	}
	for i, s := range bloomSalt {
		if le32(b[4*i:])&(1<<(uint32(h)*s>>27)) == 0 {
			return false, nil
		}
	}
	return true, nil
}
