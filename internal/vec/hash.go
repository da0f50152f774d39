package vec

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Hashes here live in memory only and differ from Paimon's on-disk hashes.
// Values that compare equal hash equal, whatever their physical form: -0 and 0,
// NaNs, 1.0 and 1.00 as Decimal128 of any scale or in binary form, a dictionary
// and its plain strings, bpchar with and without trailing blanks.

const (
	k0       = 0xa0761d6478bd642f
	k1       = 0xe7037ed1a0b428db
	k2       = 0x8ebc6af09c88c6e3
	hashNull = 0x1d8e4e27c47d124f
)

// Mix multiplies a and b to 128 bits and folds them.
func Mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// HashU64 mixes the value x into h.
func HashU64(h, x uint64) uint64 { return Mix(h^k0, x^k1) }

// HashBytes hashes a byte string.
func HashBytes(b []byte) uint64 {
	n := len(b)
	h := uint64(n) * k2
	var x, y uint64
	switch {
	case n > 16:
		for len(b) > 16 {
			h = Mix(binary.LittleEndian.Uint64(b)^k1^h, binary.LittleEndian.Uint64(b[8:])^k0)
			b = b[16:]
		}
		return hashTail(h, b)
	case n >= 8:
		x, y = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		x, y = uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[n-4:]))
	case n > 0:
		x = uint64(b[0])<<16 | uint64(b[n>>1])<<8 | uint64(b[n-1])
	}
	return Mix(x^k0^h, y^k1)
}

func hashTail(h uint64, b []byte) uint64 {
	n := len(b)
	var x, y uint64
	switch {
	case n >= 8:
		x, y = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		x, y = uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[n-4:]))
	case n > 0:
		x = uint64(b[0])<<16 | uint64(b[n>>1])<<8 | uint64(b[n-1])
	}
	return Mix(x^k0^h, y^k1)
}

// HashColumn mixes a column into hashes, one per live row: hashes[k] belongs to
// row sel[k], or k when sel is nil, and comes in as the seed (hash so far). t
// is the logical type of a.
func HashColumn(t types.Type, a arrow.Array, hashes []uint64, sel []uint16) {
	if idx, dict, ok := DictView(a); ok {
		hashDict(t, a, idx, dict, hashes, sel)
		return
	}
	a = Decode(a)
	valid, off := Validity(a)
	switch t.Kind {
	case types.BpChar, types.JSONB, types.Interval, types.Array, types.Map, types.Row, types.Record, types.Variant, types.Int2Vector, types.OIDVector:
		hashCanon(t, a, valid, off, hashes, sel)
		return
	case types.Numeric:
		hashNumeric(a, valid, off, hashes, sel)
		return
	}
	switch a.DataType().ID() {
	case arrow.BOOL:
		d := a.Data()
		n := d.Len()
		tmp := make([]uint8, n)
		if n > 0 {
			Bools(tmp, d.Buffers()[1].Bytes(), d.Offset(), n)
		}
		hashFixed(tmp, valid, off, hashes, sel)
	case arrow.FLOAT32:
		hashF32(rawFixed[float32](a), valid, off, hashes, sel)
	case arrow.FLOAT64:
		hashF64(rawFixed[float64](a), valid, off, hashes, sel)
	case arrow.STRING, arrow.BINARY:
		hashStr(ViewStr(a), hashes, sel)
	case arrow.NULL:
		for k := range hashes {
			hashes[k] = HashU64(hashes[k], hashNull)
		}
	default:
		switch fixedWidth(a.DataType()) {
		case 1:
			hashFixed(rawFixed[int8](a), valid, off, hashes, sel)
		case 2:
			hashFixed(rawFixed[int16](a), valid, off, hashes, sel)
		case 4:
			hashFixed(rawFixed[int32](a), valid, off, hashes, sel)
		case 8:
			hashFixed(rawFixed[int64](a), valid, off, hashes, sel)
		case 16:
			v := rawFixed[b16](a)
			for k := range hashes {
				i := at(sel, k)
				if !BitAt(valid, off+i) {
					hashes[k] = HashU64(hashes[k], hashNull)
					continue
				}
				hashes[k] = HashU64(HashU64(hashes[k], v[i].a), v[i].b)
			}
		case 12:
			v := rawFixed[b12](a)
			for k := range hashes {
				i := at(sel, k)
				if !BitAt(valid, off+i) {
					hashes[k] = HashU64(hashes[k], hashNull)
					continue
				}
				hashes[k] = HashU64(HashU64(hashes[k], uint64(v[i].a)|uint64(v[i].b)<<32), uint64(v[i].c))
			}
		default:
			hashCanon(t, a, valid, off, hashes, sel)
		}
	}
}

func at(sel []uint16, k int) int {
	if sel == nil {
		return k
	}
	return int(sel[k])
}

func hashFixed[T ~int8 | ~uint8 | ~int16 | ~int32 | ~int64](v []T, valid []byte, off int, hashes []uint64, sel []uint16) {
	switch {
	case valid == nil && sel == nil:
		v = v[:len(hashes)]
		for k, x := range v {
			hashes[k] = HashU64(hashes[k], uint64(x))
		}
	case valid == nil:
		sel = sel[:len(hashes)]
		for k, i := range sel {
			hashes[k] = HashU64(hashes[k], uint64(v[i]))
		}
	default:
		for k := range hashes {
			i := at(sel, k)
			x := uint64(v[i])
			if j := off + i; valid[j>>3]&(1<<(j&7)) == 0 {
				x = hashNull
			}
			hashes[k] = HashU64(hashes[k], x)
		}
	}
}

// FloatBits returns the bits of f with one zero and one NaN.
func FloatBits(f float64) uint64 {
	if f == 0 {
		return 0
	}
	if f != f {
		return 0x7ff8000000000001
	}
	return math.Float64bits(f)
}

// Float32Bits is FloatBits for float4.
func Float32Bits(f float32) uint32 {
	if f == 0 {
		return 0
	}
	if f != f {
		return 0x7fc00001
	}
	return math.Float32bits(f)
}

func hashF64(v []float64, valid []byte, off int, hashes []uint64, sel []uint16) {
	for k := range hashes {
		i := at(sel, k)
		x := uint64(hashNull)
		if BitAt(valid, off+i) {
			x = FloatBits(v[i])
		}
		hashes[k] = HashU64(hashes[k], x)
	}
}

func hashF32(v []float32, valid []byte, off int, hashes []uint64, sel []uint16) {
	for k := range hashes {
		i := at(sel, k)
		x := uint64(hashNull)
		if BitAt(valid, off+i) {
			x = uint64(Float32Bits(v[i]))
		}
		hashes[k] = HashU64(hashes[k], x)
	}
}

func hashStr(s StrView, hashes []uint64, sel []uint16) {
	if s.Valid == nil && sel == nil {
		for k := range hashes {
			hashes[k] = HashU64(hashes[k], HashBytes(s.Data[s.Offs[k]:s.Offs[k+1]]))
		}
		return
	}
	for k := range hashes {
		i := at(sel, k)
		x := uint64(hashNull)
		if !s.IsNull(i) {
			x = HashBytes(s.At(i))
		}
		hashes[k] = HashU64(hashes[k], x)
	}
}

// hashDict hashes each distinct value once when that is less work.
func hashDict(t types.Type, a arrow.Array, idx []int32, dict arrow.Array, hashes []uint64, sel []uint16) {
	valid, off := Validity(a)
	vs := ViewStr(dict)
	canon := t.Kind == types.BpChar || t.Kind == types.JSONB
	var scratch []byte
	one := func(i int32) uint64 {
		b := vs.At(int(i))
		switch t.Kind {
		case types.BpChar:
			b = TrimBlanks(b)
		case types.JSONB:
			scratch = AppendJSONKey(scratch[:0], b)
			b = scratch
		}
		return HashBytes(b)
	}
	var pre []uint64
	if dict.Len() <= len(hashes)*2 || canon && dict.Len() <= 4*len(hashes) {
		pre = make([]uint64, dict.Len())
		for i := range pre {
			pre[i] = one(int32(i))
		}
	}
	if pre != nil && valid == nil && sel == nil {
		for k := range hashes {
			hashes[k] = HashU64(hashes[k], pre[idx[k]])
		}
		return
	}
	for k := range hashes {
		i := at(sel, k)
		x := uint64(hashNull)
		if BitAt(valid, off+i) {
			if pre != nil {
				x = pre[idx[i]]
			} else {
				x = one(idx[i])
			}
		}
		hashes[k] = HashU64(hashes[k], x)
	}
}

// hashCanon hashes the canonical bytes of types whose equality is not that of
// their bytes.
func hashCanon(t types.Type, a arrow.Array, valid []byte, off int, hashes []uint64, sel []uint16) {
	var scratch []byte
	if t.Kind == types.BpChar {
		s := ViewStr(a)
		for k := range hashes {
			i := at(sel, k)
			x := uint64(hashNull)
			if BitAt(valid, off+i) {
				x = HashBytes(TrimBlanks(s.At(i)))
			}
			hashes[k] = HashU64(hashes[k], x)
		}
		return
	}
	if t.Kind == types.JSONB {
		s := ViewStr(a)
		for k := range hashes {
			i := at(sel, k)
			x := uint64(hashNull)
			if BitAt(valid, off+i) {
				scratch = AppendJSONKey(scratch[:0], s.At(i))
				x = HashBytes(scratch)
			}
			hashes[k] = HashU64(hashes[k], x)
		}
		return
	}
	kc := newKeyer(t, a)
	for k := range hashes {
		i := at(sel, k)
		x := uint64(hashNull)
		if BitAt(valid, off+i) {
			scratch = kc.append(scratch[:0], i)
			x = HashBytes(scratch)
		}
		hashes[k] = HashU64(hashes[k], x)
	}
}

// Numbers are hashed as residues modulo the prime 2^61-1: coefficient times the
// inverse of 10^scale. Equal values have equal residues whatever their scale,
// and it costs two multiplications.
const mersenne = 1<<61 - 1

func modM(x uint64) uint64 {
	x = x&mersenne + x>>61
	if x >= mersenne {
		x -= mersenne
	}
	return x
}

func mulM(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return modM(lo&mersenne + (hi<<3 | lo>>61))
}

var inv10 = func() (t [80]uint64) {
	// The inverse of 10 is 10^(p-2).
	inv, base := uint64(1), uint64(10)
	for e := uint64(mersenne - 2); e > 0; e >>= 1 {
		if e&1 == 1 {
			inv = mulM(inv, base)
		}
		base = mulM(base, base)
	}
	t[0] = 1
	for i := 1; i < len(t); i++ {
		t[i] = mulM(t[i-1], inv)
	}
	return t
}()

func invPow10(s int32) uint64 {
	r := uint64(1)
	for s >= int32(len(inv10)) {
		r = mulM(r, inv10[len(inv10)-1])
		s -= int32(len(inv10)) - 1
	}
	if s < 0 {
		return r
	}
	return mulM(r, inv10[s])
}

func residue128(x decimal128.Num, inv uint64) uint64 {
	hi, lo := uint64(x.HighBits()), x.LowBits()
	neg := int64(hi) < 0
	if neg {
		lo = -lo
		hi = ^hi
		if lo == 0 {
			hi++
		}
	}
	// 2^64 is 8 modulo 2^61-1.
	r := modM(mulM(modM(hi), 8) + modM(lo))
	r = mulM(r, inv)
	if neg && r != 0 {
		r = mersenne - r
	}
	return r
}

func residueBinary(b []byte) uint64 {
	if len(b) < 5 {
		return 0
	}
	if b[0] != 0 {
		return mersenne + uint64(b[0])
	}
	inv := invPow10(int32(binary.LittleEndian.Uint32(b[1:])))
	b = b[5:]
	if len(b) == 0 {
		return 0
	}
	neg := b[0]&0x80 != 0
	r := uint64(0)
	for _, c := range b {
		r = modM(r<<8&mersenne + r>>53 + uint64(c))
	}
	if neg {
		// Two's complement: the value is r - 256^len.
		m := uint64(1)
		for range b {
			m = modM(m<<8&mersenne + m>>53)
		}
		r = modM(r + mersenne - m)
	}
	return mulM(r, inv)
}

func hashNumeric(a arrow.Array, valid []byte, off int, hashes []uint64, sel []uint16) {
	if dt, ok := a.DataType().(*arrow.Decimal128Type); ok {
		v := a.(*array.Decimal128).Values()
		inv := invPow10(dt.Scale)
		for k := range hashes {
			i := at(sel, k)
			x := uint64(hashNull)
			if BitAt(valid, off+i) {
				x = residue128(v[i], inv)
			}
			hashes[k] = HashU64(hashes[k], x)
		}
		return
	}
	s := ViewStr(a)
	for k := range hashes {
		i := at(sel, k)
		x := uint64(hashNull)
		if BitAt(valid, off+i) {
			x = residueBinary(s.At(i))
		}
		hashes[k] = HashU64(hashes[k], x)
	}
}

// TrimBlanks returns b without trailing spaces: what bpchar compares.
func TrimBlanks(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == ' ' {
		b = b[:len(b)-1]
	}
	return b
}
