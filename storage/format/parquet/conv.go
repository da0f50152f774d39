package parquet

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"unsafe"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// conv says how the PLAIN form of a value becomes an element of an Arrow buffer.
type conv uint8

const (
	cvBool    conv = iota // bit -> bit
	cvNarrow              // int32 -> int16
	cvCopy4               // int32, float
	cvCopy8               // int64, double
	cvWiden               // int32 -> int64
	cvTimeMs              // int32 ms -> int64 us
	cvMul1000             // int64 * 1000
	cvMul1M               // int64 * 1,000,000
	cvDiv1000             // int64 / 1000, towards minus infinity
	cvI96us               // INT96 -> us
	cvI96ns               // INT96 -> ns
	cvF32F64              // float -> double
	cvDec32               // int32 -> Decimal128
	cvDec64               // int64 -> Decimal128
	cvDecBE               // big-endian two's complement -> Decimal128
	cvBytes               // byte array
)

// dec is the memory of a decimal128.Num.
type dec struct {
	lo uint64
	hi int64
}

// chooseConv decides how values of Paimon type t are read from a column.
//
// The type decides, not the annotation, with one exception: the unit of a
// timestamp or time in INT64, which other writers choose freely.
func chooseConv(el *element, t types.Type) (conv, error) {
	p := el.typ
	bad := func() (conv, error) {
		return 0, fmt.Errorf("physical type %s does not hold %s", physName(p), t.PlainName())
	}
	switch t.Kind {
	case types.Bool:
		if p == pBool {
			return cvBool, nil
		}
	case types.TinyInt, types.Int2:
		if p == pInt32 {
			return cvNarrow, nil
		}
	case types.Int4, types.Date:
		if p == pInt32 {
			return cvCopy4, nil
		}
	case types.Int8:
		switch p {
		case pInt64:
			return cvCopy8, nil
		case pInt32:
			return cvWiden, nil
		}
	case types.Float4:
		if p == pFloat {
			return cvCopy4, nil
		}
	case types.Float8:
		switch p {
		case pDouble:
			return cvCopy8, nil
		case pFloat:
			return cvF32F64, nil
		}
	case types.Numeric:
		if t.Prec == 0 {
			return bad()
		}
		switch p {
		case pInt32:
			return cvDec32, nil
		case pInt64:
			return cvDec64, nil
		case pFixed:
			if el.typeLength > 64 {
				return bad()
			}
			return cvDecBE, nil
		case pBytes:
			return cvDecBE, nil
		}
	case types.Time:
		switch {
		case p == pInt32:
			return cvTimeMs, nil
		case p == pInt64 && timeUnit(el) == unitNanos:
			return cvDiv1000, nil
		case p == pInt64:
			return cvCopy8, nil
		}
	case types.Timestamp, types.TimestampTZ:
		switch p {
		case pInt96:
			if t.IsNanos() {
				return cvI96ns, nil
			}
			return cvI96us, nil
		case pInt64:
			return timestampConv(el, t), nil
		}
	default:
		if t.Kind == types.Bytea || t.IsTextLike() {
			if p == pBytes || p == pFixed {
				return cvBytes, nil
			}
			return bad()
		}
		return 0, &fileio.UnsupportedError{Feature: "Parquet column of type " + t.PlainName()}
	}
	return bad()
}

func timeUnit(el *element) int16 {
	if el.unit >= unitMillis && el.unit <= unitNanos {
		return el.unit
	}
	switch el.converted {
	case convTimeMillis, convTimestampMillis:
		return unitMillis
	case convTimeMicros, convTimestampMicros:
		return unitMicros
	}
	return unitNone
}

func timestampConv(el *element, t types.Type) conv {
	u := timeUnit(el)
	if u == unitNone { // no annotation: the unit that the precision stands for
		switch {
		case t.Prec <= 3:
			u = unitMillis
		case t.Prec <= 6:
			u = unitMicros
		default:
			u = unitNanos
		}
	}
	if t.IsNanos() {
		return [...]conv{unitMillis: cvMul1M, unitMicros: cvMul1000, unitNanos: cvCopy8}[u]
	}
	return [...]conv{unitMillis: cvMul1000, unitMicros: cvCopy8, unitNanos: cvDiv1000}[u]
}

// width is the size of a value in PLAIN, 0 when it varies or is a bit.
func (c conv) width(el *element) int {
	switch el.typ {
	case pInt32, pFloat:
		return 4
	case pInt64, pDouble:
		return 8
	case pInt96:
		return 12
	case pFixed:
		return int(el.typeLength)
	case pBytes:
		if c == cvDecBE {
			return 16 // sign-extended when the page is opened
		}
	}
	return 0
}

// errTimestampRange: Arrow's nanosecond timestamps end in 1677 and 2262.
var errTimestampRange = &fileio.UnsupportedError{Feature: "a timestamp with more than six digits outside 1677-09-21 to 2262-04-11"}

var errMicrosRange = &fileio.UnsupportedError{Feature: "a timestamp that does not fit 64-bit microseconds"}

var errDecimalWide = fmt.Errorf("a decimal has more than 38 digits")

// The loops below read little-endian values from p, len(dst) of them; p is long
// enough (the callers have checked).

func convI16(dst []int16, p []byte) error {
	p = p[:4*len(dst)]
	for i := range dst {
		dst[i] = int16(binary.LittleEndian.Uint16(p[4*i:]))
	}
	return nil
}

// copyFixed copies values whose file form is their memory form.
func copyFixed[T int16 | int32 | int64 | dec](dst []T, p []byte) error {
	if len(dst) > 0 {
		var z T
		n := len(dst) * int(unsafe.Sizeof(z))
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&dst[0])), n), p[:n])
	}
	return nil
}

func convWiden(dst []int64, p []byte) error {
	p = p[:4*len(dst)]
	for i := range dst {
		dst[i] = int64(int32(binary.LittleEndian.Uint32(p[4*i:])))
	}
	return nil
}

func convTimeMs(dst []int64, p []byte) error {
	p = p[:4*len(dst)]
	for i := range dst {
		dst[i] = int64(int32(binary.LittleEndian.Uint32(p[4*i:]))) * 1000
	}
	return nil
}

func convMul(k int64, over error) func(dst []int64, p []byte) error {
	lim := math.MaxInt64 / k
	return func(dst []int64, p []byte) error {
		p = p[:8*len(dst)]
		bad := int64(0)
		for i := range dst {
			v := int64(binary.LittleEndian.Uint64(p[8*i:]))
			if v > lim || v < -lim {
				bad = 1
			}
			dst[i] = v * k
		}
		if bad != 0 {
			return over
		}
		return nil
	}
}

func convDiv1000(dst []int64, p []byte) error {
	p = p[:8*len(dst)]
	for i := range dst {
		v := int64(binary.LittleEndian.Uint64(p[8*i:]))
		q := v / 1000
		if v%1000 < 0 {
			q--
		}
		dst[i] = q
	}
	return nil
}

const (
	julianEpoch = 2440588
	nanosPerDay = 86400 * 1000 * 1000 * 1000
	// maxMicroDays leaves room for the most days that int64 nanoseconds hold.
	maxMicroDays = math.MaxInt64/(nanosPerDay/1000) - 110_000
)

// int96 splits an INT96 timestamp: nanoseconds of the day, little-endian, then
// the Julian day. Java Paimon writes instants before 1970 with a negative
// number of nanoseconds, so days and nanoseconds are just added up.
func int96(p []byte) (days, nanos int64) {
	return int64(int32(binary.LittleEndian.Uint32(p[8:]))) - julianEpoch, int64(binary.LittleEndian.Uint64(p))
}

func convI96us(dst []int64, p []byte) error {
	p = p[:12*len(dst)]
	for i := range dst {
		d, n := int96(p[12*i:])
		q := n / 1000
		if n%1000 < 0 {
			q--
		}
		if d > maxMicroDays || d < -maxMicroDays {
			return errMicrosRange
		}
		dst[i] = d*(nanosPerDay/1000) + q
	}
	return nil
}

func convI96ns(dst []int64, p []byte) error {
	p = p[:12*len(dst)]
	for i := range dst {
		d, n := int96(p[12*i:])
		hi, lo := bits.Mul64(uint64(d), nanosPerDay)
		if d < 0 {
			hi -= nanosPerDay
		}
		lo, carry := bits.Add64(lo, uint64(n), 0)
		hi += uint64(n>>63) + carry
		if int64(hi) != int64(lo)>>63 {
			return errTimestampRange
		}
		dst[i] = int64(lo)
	}
	return nil
}

func convF32F64(dst []int64, p []byte) error {
	p = p[:4*len(dst)]
	for i := range dst {
		f := math.Float32frombits(binary.LittleEndian.Uint32(p[4*i:]))
		dst[i] = int64(math.Float64bits(float64(f)))
	}
	return nil
}

func convDec32(dst []dec, p []byte) error {
	p = p[:4*len(dst)]
	for i := range dst {
		v := int64(int32(binary.LittleEndian.Uint32(p[4*i:])))
		dst[i] = dec{uint64(v), v >> 63}
	}
	return nil
}

func convDec64(dst []dec, p []byte) error {
	p = p[:8*len(dst)]
	for i := range dst {
		v := int64(binary.LittleEndian.Uint64(p[8*i:]))
		dst[i] = dec{uint64(v), v >> 63}
	}
	return nil
}

// convDecBE reads big-endian two's complement numbers of w bytes.
func convDecBE(w int) func(dst []dec, p []byte) error {
	return func(dst []dec, p []byte) error {
		p = p[:w*len(dst)]
		if w == 16 {
			for i := range dst {
				q := p[16*i : 16*i+16]
				dst[i] = dec{binary.BigEndian.Uint64(q[8:]), int64(binary.BigEndian.Uint64(q))}
			}
			return nil
		}
		for i := range dst {
			v, err := decFromBE(p[w*i : w*i+w])
			if err != nil {
				return err
			}
			dst[i] = v
		}
		return nil
	}
}

// decFromBE reads one big-endian two's complement number; empty is 0.
func decFromBE(q []byte) (dec, error) {
	if len(q) == 0 {
		return dec{}, nil
	}
	neg := int64(int8(q[0])) >> 63
	for len(q) > 16 {
		if q[0] != byte(neg) || int64(int8(q[1]))>>63 != neg {
			return dec{}, errDecimalWide
		}
		q = q[1:]
	}
	lo, hi := uint64(neg), neg
	for _, c := range q {
		hi = hi<<8 | int64(lo>>56)
		lo = lo<<8 | uint64(c)
	}
	return dec{lo, hi}, nil
}
