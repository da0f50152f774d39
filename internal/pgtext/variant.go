package pgtext

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"strconv"
	"unicode/utf8"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
)

// The binary form of a variant (Parquet's Variant encoding, version 1):
//
//	metadata: header byte (version 4 bits | sorted 1 | - 1 | offset size-1 2)
//	          dictionary size | size+1 offsets | bytes
//	value:    byte (header 6 bits << 2 | basic type 2): 0 primitive, 1 short
//	          string, 2 object, 3 array
//
// All integers are little-endian.

var errVariant = errors.New("malformed variant")

func leUint(b []byte, size int) (int, bool) {
	if len(b) < size {
		return 0, false
	}
	v := 0
	for i := size - 1; i >= 0; i-- {
		v = v<<8 | int(b[i])
	}
	return v, v >= 0
}

func variantKey(meta []byte, id int) ([]byte, error) {
	if len(meta) < 1 || meta[0]&15 != 1 {
		return nil, errVariant
	}
	sz := int(meta[0]>>6) + 1
	n, ok := leUint(meta[1:], sz)
	if !ok || id < 0 || id >= n || len(meta) < 1+sz*(n+2) {
		return nil, errVariant
	}
	from, _ := leUint(meta[1+sz*(id+1):], sz)
	to, _ := leUint(meta[1+sz*(id+2):], sz)
	data := meta[1+sz*(n+2):]
	if from > to || to > len(data) {
		return nil, errVariant
	}
	return data[from:to], nil
}

func appendVariant(dst, v, meta []byte, w jsonWriter, depth int) ([]byte, error) {
	if len(v) == 0 || depth > MaxJSONDepth {
		return nil, errVariant
	}
	head := int(v[0] >> 2)
	switch v[0] & 3 {
	case 0:
		return variantPrimitive(dst, head, v[1:], w)
	case 1:
		if len(v) < 1+head || !utf8.Valid(v[1:1+head]) {
			return nil, errVariant
		}
		return AppendJSONString(dst, v[1:1+head]), nil
	case 2:
		offSize, idSize, cntSize := head&3+1, head>>2&3+1, 1
		if head>>4&1 == 1 {
			cntSize = 4
		}
		n, ok := leUint(v[1:], cntSize)
		if !ok || n > len(v) {
			return nil, errVariant
		}
		ids := 1 + cntSize
		offs := ids + n*idSize
		data := offs + (n+1)*offSize
		if data > len(v) {
			return nil, errVariant
		}
		dst = append(dst, '{')
		for i := 0; i < n; i++ {
			id, _ := leUint(v[ids+i*idSize:], idSize)
			off, _ := leUint(v[offs+i*offSize:], offSize)
			key, err := variantKey(meta, id)
			if err != nil || data+off > len(v) {
				return nil, errVariant
			}
			if i > 0 {
				dst = append(dst, w.comma...)
			}
			dst = append(AppendJSONString(dst, key), w.colon...)
			if dst, err = appendVariant(dst, v[data+off:], meta, w, depth+1); err != nil {
				return nil, err
			}
		}
		return append(dst, '}'), nil
	}
	offSize, cntSize := head&3+1, 1
	if head>>2&1 == 1 {
		cntSize = 4
	}
	n, ok := leUint(v[1:], cntSize)
	if !ok || n > len(v) {
		return nil, errVariant
	}
	offs := 1 + cntSize
	data := offs + (n+1)*offSize
	if data > len(v) {
		return nil, errVariant
	}
	dst = append(dst, '[')
	for i := 0; i < n; i++ {
		off, _ := leUint(v[offs+i*offSize:], offSize)
		if data+off > len(v) {
			return nil, errVariant
		}
		if i > 0 {
			dst = append(dst, w.comma...)
		}
		var err error
		if dst, err = appendVariant(dst, v[data+off:], meta, w, depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func variantPrimitive(dst []byte, kind int, v []byte, w jsonWriter) ([]byte, error) {
	size := map[int]int{3: 1, 4: 2, 5: 4, 6: 8, 7: 8, 8: 5, 9: 9, 10: 17, 11: 4, 12: 8, 13: 8, 14: 4, 15: 4, 16: 4, 17: 8, 18: 8, 19: 8, 20: 16}[kind]
	if len(v) < size {
		return nil, errVariant
	}
	decimal := func(n int) []byte {
		b := make([]byte, n) // big-endian two's complement
		for i := range b {
			b[i] = v[n-i]
		}
		d := numeric.Dec{Scale: int32(v[0])}
		d.Coef.SetBytes(b)
		if b[0]&0x80 != 0 {
			d.Coef.Sub(&d.Coef, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
		}
		return d.AppendText(dst)
	}
	switch kind {
	case 0:
		return append(dst, "null"...), nil
	case 1:
		return append(dst, "true"...), nil
	case 2:
		return append(dst, "false"...), nil
	case 3:
		return strconv.AppendInt(dst, int64(int8(v[0])), 10), nil
	case 4:
		return strconv.AppendInt(dst, int64(int16(binary.LittleEndian.Uint16(v))), 10), nil
	case 5:
		return strconv.AppendInt(dst, int64(int32(binary.LittleEndian.Uint32(v))), 10), nil
	case 6:
		return strconv.AppendInt(dst, int64(binary.LittleEndian.Uint64(v)), 10), nil
	case 7:
		return jsonFloat(dst, math.Float64frombits(binary.LittleEndian.Uint64(v)), w.st), nil
	case 8:
		return decimal(4), nil
	case 9:
		return decimal(8), nil
	case 10:
		return decimal(16), nil
	case 11:
		dst = AppendDate(append(dst, '"'), int64(int32(binary.LittleEndian.Uint32(v))), &isoStyle)
		return append(dst, '"'), nil
	case 12, 13, 18, 19:
		us := int64(binary.LittleEndian.Uint64(v))
		if kind >= 18 {
			us = FloorMicros(us)
		}
		var z *Zone
		if kind == 12 || kind == 18 {
			z = NewZone(w.st.loc())
		}
		return AppendJSONTimestamp(dst, us, z), nil
	case 14:
		at := len(dst)
		dst = AppendFloat4(dst, math.Float32frombits(binary.LittleEndian.Uint32(v)), w.st)
		if c := dst[len(dst)-1]; c == 'N' || c == 'y' {
			dst = quoteJSON(dst, at)
		}
		return dst, nil
	case 15, 16:
		n := int(binary.LittleEndian.Uint32(v))
		if n < 0 || n > len(v)-4 {
			return nil, errVariant
		}
		b := v[4 : 4+n]
		if kind == 15 {
			return append(base64.StdEncoding.AppendEncode(append(dst, '"'), b), '"'), nil
		}
		if !utf8.Valid(b) {
			return nil, errVariant
		}
		return AppendJSONString(dst, b), nil
	case 17:
		return append(appendTOD(append(dst, '"'), int64(binary.LittleEndian.Uint64(v))), '"'), nil
	case 20:
		return append(AppendUUID(append(dst, '"'), v[:16]), '"'), nil
	}
	return nil, errVariant
}
