package bsi

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/bitslice"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Builder makes an index. The slices grow as rows come: a row costs a bit for
// every slice of its sign.
type Builder struct {
	codec    *bitslice.Codec
	pos, neg signed
	rows     int64

	// The block being filled: magnitudes, and which rows hold a value of each sign.
	p, n     [64]uint64
	inP, inN uint64
	filled   int
	buf      [1024]int64
	entries  []int64 // of a dictionary
}

type signed struct {
	slices bitslice.Builder
	max    uint64
}

// Create starts an index. There are no options.
func (k Kind) Create(t types.Type, o index.Options) (index.Builder, error) {
	codec, ok := bitslice.CodecOf(t)
	if !ok || !k.Supports(t) {
		return nil, fmt.Errorf("bsi index does not support the type %v", t)
	}
	for name := range o {
		return nil, fmt.Errorf("bsi index has no option %q", name)
	}
	return &Builder{codec: codec}, nil
}

// Append adds rows.
func (b *Builder) Append(a arrow.Array) error {
	if b.rows += int64(a.Len()); b.rows > math.MaxInt32 {
		return fmt.Errorf("%w: bsi of more than %d rows", index.ErrCannotHold, math.MaxInt32)
	}
	if d, ok := a.(*array.Dictionary); ok {
		return b.appendDictionary(d)
	}
	for from := 0; from < a.Len(); from += len(b.buf) {
		v := b.buf[:min(len(b.buf), a.Len()-from)]
		if err := b.codec.Encode(v, a, from); err != nil {
			return err
		}
		if a.NullN() == 0 {
			for _, x := range v {
				if err := b.add(x); err != nil {
					return err
				}
			}
			continue
		}
		for i, x := range v {
			if a.IsNull(from + i) {
				b.step()
			} else if err := b.add(x); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *Builder) appendDictionary(d *array.Dictionary) error {
	values := d.Dictionary()
	if cap(b.entries) < values.Len() {
		b.entries = make([]int64, values.Len())
	}
	b.entries = b.entries[:values.Len()]
	if err := b.codec.Encode(b.entries, values, 0); err != nil {
		return err
	}
	for i := range d.Len() {
		if d.IsNull(i) {
			b.step()
			continue
		}
		if e := d.GetValueIndex(i); values.IsNull(e) {
			b.step()
		} else if err := b.add(b.entries[e]); err != nil {
			return err
		}
	}
	return nil
}

func (b *Builder) add(x int64) error {
	switch {
	case x >= 0:
		b.p[b.filled] = uint64(x)
		b.inP |= 1 << b.filled
		b.pos.max = max(b.pos.max, uint64(x))
	case x == math.MinInt64:
		return fmt.Errorf("%w: bsi of %d", index.ErrCannotHold, x)
	default:
		b.n[b.filled] = uint64(-x)
		b.inN |= 1 << b.filled
		b.neg.max = max(b.neg.max, uint64(-x))
	}
	b.step()
	return nil
}

func (b *Builder) step() {
	if b.filled++; b.filled == 64 {
		b.flush()
	}
}

func (b *Builder) flush() {
	if b.filled == 0 {
		return
	}
	b.pos.slices.Block(&b.p, b.inP)
	b.neg.slices.Block(&b.n, b.inN)
	if b.inP != 0 {
		clear(b.p[:])
	}
	if b.inN != 0 {
		clear(b.n[:])
	}
	b.inP, b.inN, b.filled = 0, 0, 0
}

// Bytes is the memory held.
func (b *Builder) Bytes() int64 {
	return b.pos.slices.Bytes() + b.neg.slices.Bytes() + int64(cap(b.entries))*8 + 16<<10
}

// Finish returns the index, nil without rows. As in Java, rows that are all NULL
// make an index, too.
func (b *Builder) Finish() ([]byte, error) {
	if b.rows == 0 {
		return nil, nil
	}
	b.flush()
	out := binary.BigEndian.AppendUint32([]byte{version}, uint32(b.rows))
	for _, s := range []*signed{&b.pos, &b.neg} {
		var err error
		if out, err = s.append(out); err != nil {
			return nil, err
		}
	}
	if len(out) > math.MaxInt32 {
		return nil, fmt.Errorf("%w: bsi of %d bytes", index.ErrCannotHold, len(out))
	}
	return out, nil
}

func (s *signed) append(out []byte) ([]byte, error) {
	if s.slices.Empty() {
		return append(out, 0), nil
	}
	out = append(out, 1, version)
	out = binary.BigEndian.AppendUint64(out, 0)
	out = binary.BigEndian.AppendUint64(out, s.max)
	out, err := bitslice.AppendBitmap(out, s.slices.Present())
	if err != nil {
		return nil, err
	}
	n := bits.Len64(s.max)
	out = binary.BigEndian.AppendUint32(out, uint32(n))
	for i := range n {
		if out, err = bitslice.AppendBitmap(out, s.slices.Slice(i)); err != nil {
			return nil, err
		}
	}
	return out, nil
}
