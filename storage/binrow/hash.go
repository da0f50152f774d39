package binrow

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Hash is Java's BinaryRow.hashCode: Murmur3-x86-32 with seed 42 over the image
// as little-endian words. len(image) is a multiple of 4 for every valid row.
func Hash(image []byte) int32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	h := uint32(42)
	n := len(image) &^ 3
	for i := 0; i < n; i += 4 {
		k := binary.LittleEndian.Uint32(image[i:]) * c1
		k = bits.RotateLeft32(k, 15) * c2
		h ^= k
		h = bits.RotateLeft32(h, 13)*5 + 0xe6546b64
	}
	h ^= uint32(len(image))
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	h ^= h >> 16
	return int32(h)
}

// BucketFunction maps a bucket key to a bucket.
type BucketFunction uint8

// The values of bucket-function.type.
const (
	DefaultBucket BucketFunction = iota
	ModBucket
	HiveBucket
)

// BucketOf returns the default bucket of a bucket-key image: abs(hash % n) with
// Java's truncating remainder. n must be positive.
func BucketOf(image []byte, n int32) int32 {
	b := Hash(image) % n
	if b < 0 {
		b = -b
	}
	return b
}

// Bucket returns the bucket of one key under f; false when f has no rule for the
// types of the key (then nothing may be concluded from it).
func Bucket(f BucketFunction, ts []types.Type, key []types.Datum, n int32) (int32, bool) {
	if n <= 0 || len(ts) != len(key) {
		return 0, false
	}
	switch f {
	case DefaultBucket:
		img, err := Encode(ts, key)
		if err != nil {
			return 0, false
		}
		return BucketOf(img, n), true
	case ModBucket:
		v, ok := key[0].(int64)
		if len(ts) != 1 || !ok || ts[0].Kind != types.Int4 && ts[0].Kind != types.Int8 {
			return 0, false
		}
		m := v % int64(n)
		if m < 0 {
			m += int64(n)
		}
		return int32(m), true
	case HiveBucket:
		h := int32(0)
		for i, d := range key {
			v, ok := hiveHash(ts[i], d)
			if !ok {
				return 0, false
			}
			h = 31*h + v
		}
		return int32(uint32(h)&0x7fffffff) % n, true
	}
	return 0, false
}

func foldLong(v int64) int32 { return int32(uint32(v) ^ uint32(uint64(v)>>32)) }

// hiveHash is HiveBucketFunction's hash of one value.
func hiveHash(t types.Type, d types.Datum) (int32, bool) {
	if d == nil {
		return 0, true
	}
	switch v := d.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int64:
		switch t.Kind {
		case types.TinyInt, types.Int2, types.Int4, types.Date:
			return int32(v), true
		case types.Int8:
			return foldLong(v), true
		}
	case float64:
		if v == 0 {
			v = 0 // -0.0 hashes as 0.0
		}
		if t.Kind == types.Float4 {
			return int32(math.Float32bits(float32(v))), true
		}
		return foldLong(int64(math.Float64bits(v))), true
	case string:
		return hiveBytes([]byte(v)), true
	case []byte:
		return hiveBytes(v), true
	case *numeric.Dec:
		return hiveDecimal(v, int32(t.Scale)), true
	}
	return 0, false
}

func hiveBytes(b []byte) int32 {
	h := int32(0)
	for _, c := range b {
		h = 31*h + int32(int8(c))
	}
	return h
}

// hiveDecimal is BigDecimal.hashCode of the value without trailing zeros:
// 31 * unscaled.hashCode() + scale.
func hiveDecimal(d *numeric.Dec, scale int32) int32 {
	c := rescale(d, scale)
	if c == nil || c.Sign() == 0 {
		return 0
	}
	ten, q, r := big.NewInt(10), new(big.Int), new(big.Int)
	for {
		q.QuoRem(c, ten, r)
		if r.Sign() != 0 {
			break
		}
		c.Set(q)
		scale--
	}
	if scale < 0 { // Hive's normalisation brings a negative scale back to 0
		c.Mul(c, new(big.Int).Exp(ten, big.NewInt(int64(-scale)), nil))
		scale = 0
	}
	// BigInteger.hashCode: 31-polynomial over the magnitude's 32-bit words.
	mag := c.Bytes()
	for len(mag)%4 != 0 {
		mag = append([]byte{0}, mag...)
	}
	h := int32(0)
	for i := 0; i < len(mag); i += 4 {
		h = 31*h + int32(binary.BigEndian.Uint32(mag[i:]))
	}
	if c.Sign() < 0 {
		h = -h
	}
	return 31*h + scale
}
