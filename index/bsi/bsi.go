// Package bsi is Paimon's bit slice index over numbers and times, which Paimon
// calls deprecated and still writes. All integers are big-endian:
//
//	byte version = 1 | int32 rows
//	byte 1 if there are values at or above 0 | their slices
//	byte 1 if there are values below 0       | the slices of their magnitudes
//
// and the slices of one sign are
//
//	byte version = 1 | int64 min | int64 max | bitmap of the rows
//	int32 n | n bitmaps: the rows in which bit i of (magnitude - min) is set
//
// Bitmaps are portable RoaringBitmaps without lengths, so all has to be read.
// Java's writer always comes to min = 0 and n = bits of max, and cannot store
// -2^63. Source: BitSliceIndexBitmapFileIndex.java, BitSliceIndexRoaringBitmap.java.
package bsi

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/bits"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/bitslice"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

const version = 1

// Kind is the kind "bsi".
type Kind struct{}

var (
	_ index.Kind   = Kind{}
	_ index.Sorter = (*Index)(nil)
)

// Name returns "bsi".
func (Kind) Name() string { return "bsi" }

// Supports reports whether t is an integer, DECIMAL, DATE, TIME or TIMESTAMP type.
func (Kind) Supports(t types.Type) bool {
	switch t.Kind {
	case types.Bool, types.Float4, types.Float8:
		return false
	}
	_, ok := bitslice.CodecOf(t)
	return ok
}

// Index is an open index. Safe for concurrent use.
type Index struct {
	codec    *bitslice.Codec
	rows     uint32
	present  *roaring.Bitmap
	pos, neg group
}

// group holds the slices of the values of one sign, by magnitude.
type group struct {
	min, max uint64
	present  *roaring.Bitmap
	slices   []*roaring.Bitmap
}

// Open reads an index whole.
func (k Kind) Open(src index.Source, t types.Type) (index.FileIndex, error) {
	codec, ok := bitslice.CodecOf(t)
	if !ok || !k.Supports(t) {
		return nil, bitslice.Corrupt("bsi over %v", t)
	}
	size := src.Size()
	if size < 7 || size > math.MaxInt32 {
		return nil, bitslice.Corrupt("bsi of %d bytes", size)
	}
	b := make([]byte, size)
	if n, err := src.ReadAt(b, 0); n < len(b) {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return decode(b, codec)
}

func decode(b []byte, codec *bitslice.Codec) (*Index, error) {
	if len(b) < 7 || b[0] != version {
		return nil, bitslice.Corrupt("bsi of %d bytes, version %d is known", len(b), version)
	}
	rows := int32(binary.BigEndian.Uint32(b[1:]))
	if rows < 0 {
		return nil, bitslice.Corrupt("%d rows", rows)
	}
	x := &Index{codec: codec, rows: uint32(rows)}
	var err error
	if b, err = x.pos.decode(b[5:], x.rows); err != nil {
		return nil, err
	}
	if _, err = x.neg.decode(b, x.rows); err != nil {
		return nil, err
	}
	x.present = roaring.Or(x.pos.present, x.neg.present)
	return x, nil
}

func (g *group) decode(b []byte, rows uint32) ([]byte, error) {
	g.present = roaring.New()
	if len(b) < 1 {
		return nil, bitslice.Corrupt("bsi is cut short")
	}
	if b[0] == 0 {
		return b[1:], nil
	}
	if len(b) < 18 || b[1] != version {
		return nil, bitslice.Corrupt("slices in %d bytes, version %d is known", len(b), version)
	}
	g.min, g.max = binary.BigEndian.Uint64(b[2:]), binary.BigEndian.Uint64(b[10:])
	if g.min > g.max || g.max > math.MaxInt64 {
		return nil, bitslice.Corrupt("slices of values between %d and %d", g.min, g.max)
	}
	var n int
	var err error
	b = b[18:]
	if g.present, n, err = bitslice.ReadBitmap(b, rows); err != nil {
		return nil, err
	}
	if b = b[n:]; len(b) < 4 {
		return nil, bitslice.Corrupt("bsi is cut short")
	}
	count := binary.BigEndian.Uint32(b)
	if count > 64 || int(count) < bits.Len64(g.max-g.min) {
		return nil, bitslice.Corrupt("%d slices of values between %d and %d", count, g.min, g.max)
	}
	b = b[4:]
	g.slices = make([]*roaring.Bitmap, count)
	for i := range g.slices {
		if g.slices[i], n, err = bitslice.ReadBitmap(b, rows); err != nil {
			return nil, err
		}
		b = b[n:]
	}
	return b, nil
}

// Test judges comparisons, IN, BETWEEN and IS [NOT] NULL.
func (x *Index) Test(l *predicate.Leaf) (index.Result, error) {
	switch l.Op {
	case predicate.IsNull:
		return bitslice.Result(roaring.Flip(x.present, 0, uint64(x.rows)), x.rows, true), nil
	case predicate.IsNotNull:
		return bitslice.Result(x.present, x.rows, true), nil
	}
	s, ok := x.codec.Select(l)
	if !ok {
		return index.Result{}, nil
	}
	m := x.pos.in(s.Ranges, false)
	if neg := x.neg.in(s.Ranges, true); m.IsEmpty() {
		m = neg
	} else if !neg.IsEmpty() {
		m = roaring.Or(m, neg)
	}
	if s.Not {
		m = roaring.AndNot(x.present, m)
	}
	return bitslice.Result(m, x.rows, s.Exact), nil
}

// in returns the group's rows with a value in one of the ranges. The result is
// not to be changed.
func (g *group) in(ranges []bitslice.Range, negative bool) *roaring.Bitmap {
	if g.present.IsEmpty() {
		return g.present
	}
	ivs := make([]bitslice.Codes, 0, len(ranges))
	for _, r := range ranges {
		lo, hi := r.Lo, r.Hi
		if negative {
			if lo >= 0 || hi == math.MinInt64 {
				continue
			}
			// -2^63 has no magnitude here and is not stored.
			lo, hi = -min(hi, -1), -max(lo, -math.MaxInt64)
		}
		if hi < 0 || lo > hi {
			continue
		}
		if a, b := max(uint64(max(lo, 0)), g.min), min(uint64(hi), g.max); a <= b {
			ivs = append(ivs, bitslice.Codes{Lo: a - g.min, Hi: b - g.min})
		}
	}
	ivs = bitslice.Merge(ivs)
	if len(ivs) == 1 && ivs[0].Lo == 0 && ivs[0].Hi == g.max-g.min {
		return g.present
	}
	return bitslice.In(ivs, g.present, g.slices)
}

// Top returns the rows of live that come first; see index.Sorter.
func (x *Index) Top(n int, descending, nullsFirst bool, live *roaring.Bitmap) (*roaring.Bitmap, error) {
	within := func(m *roaring.Bitmap) *roaring.Bitmap {
		if live == nil {
			return m
		}
		return roaring.And(m, live)
	}
	out := roaring.New()
	left := uint64(max(n, 0))
	take := func(m *roaring.Bitmap) {
		out.Or(m)
		left -= min(left, m.GetCardinality())
	}
	nulls := func() { take(within(roaring.Flip(x.present, 0, uint64(x.rows)))) }
	if left > 0 && nullsFirst {
		nulls()
	}
	order := []*group{&x.neg, &x.pos}
	if descending {
		slices.Reverse(order)
	}
	for _, g := range order {
		if left > 0 {
			// The larger magnitudes come first above 0 when descending, below 0 else.
			take(bitslice.Top(left, descending == (g == &x.pos), within(g.present), g.slices))
		}
	}
	if left > 0 && !nullsFirst {
		nulls()
	}
	return out, nil
}
