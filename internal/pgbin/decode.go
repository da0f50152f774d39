package pgbin

import (
	"encoding/binary"
	"math"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Decoder turns values into datums. The bytes are a client's: every length is
// checked, every count bounded by the bytes that are there.
type Decoder struct {
	Style *pgtext.Style
	// Long is the error of a value with bytes left over.
	Long func() error
}

// Value decodes a value of type t that is not NULL. b is copied where it is kept.
func (d *Decoder) Value(t types.Type, b []byte) (types.Datum, error) { return d.binary(t, b, 0) }

// text reads a value whose binary form is text.
func (d *Decoder) text(t types.Type, b []byte) (types.Datum, error) {
	if err := pgtext.CheckUTF8(b); err != nil {
		return nil, err
	}
	s := string(b)
	switch t.Kind {
	case types.Unknown, types.Text, types.Varchar:
		if t.Mod == 0 {
			return s, nil
		}
	}
	return pgtext.Parse(t, s, d.Style)
}

func (d *Decoder) short() error {
	return pgerr.New(pgerr.ProtocolViolation, "insufficient data left in message")
}

// none is the error of a byte that is not there.
func (d *Decoder) none() error {
	return pgerr.New(pgerr.ProtocolViolation, "no data left in message")
}

func (d *Decoder) long() error { return d.Long() }

// size checks that b is n bytes long: too few is 08P01, too many 22P03.
func (d *Decoder) size(b []byte, n int) error {
	switch {
	case len(b) < n:
		return d.short()
	case len(b) > n:
		return d.long()
	}
	return nil
}

func outOfRange(what string) error {
	return pgerr.New(pgerr.DatetimeFieldOverflow, "%s out of range", what)
}

func (d *Decoder) binary(t types.Type, b []byte, depth int) (types.Datum, error) {
	be := binary.BigEndian
	switch t.Kind {
	case types.Bool:
		if len(b) == 0 {
			return nil, d.none()
		}
		if err := d.size(b, 1); err != nil {
			return nil, err
		}
		return b[0] != 0, nil
	case types.TinyInt, types.Int2:
		if err := d.size(b, 2); err != nil {
			return nil, err
		}
		return int64(int16(be.Uint16(b))), nil
	case types.Int4:
		if err := d.size(b, 4); err != nil {
			return nil, err
		}
		return int64(int32(be.Uint32(b))), nil
	case types.Int8:
		if err := d.size(b, 8); err != nil {
			return nil, err
		}
		return int64(be.Uint64(b)), nil
	case types.OID, types.RegClass, types.RegProc, types.RegType, types.RegNamespace, types.RegRole, types.RegOper, types.XID:
		if err := d.size(b, 4); err != nil {
			return nil, err
		}
		return int64(be.Uint32(b)), nil
	case types.Float4:
		if err := d.size(b, 4); err != nil {
			return nil, err
		}
		return float64(math.Float32frombits(be.Uint32(b))), nil
	case types.Float8:
		if err := d.size(b, 8); err != nil {
			return nil, err
		}
		return math.Float64frombits(be.Uint64(b)), nil
	case types.Numeric:
		return d.numeric(b)
	case types.Date:
		if err := d.size(b, 4); err != nil {
			return nil, err
		}
		v := int64(int32(be.Uint32(b)))
		if v == math.MaxInt32 || v == math.MinInt32 {
			return v, nil
		}
		if v += epochDays; v < pgtext.MinDate || v > pgtext.MaxDate {
			return nil, outOfRange("date")
		}
		return v, nil
	case types.Time:
		if err := d.size(b, 8); err != nil {
			return nil, err
		}
		v := int64(be.Uint64(b))
		if v < 0 || v > pgtext.UsPerDay {
			return nil, outOfRange("time")
		}
		return v, nil
	case types.TimeTZ:
		if err := d.size(b, 12); err != nil {
			return nil, err
		}
		us, west := int64(be.Uint64(b)), int32(be.Uint32(b[8:]))
		if us < 0 || us > pgtext.UsPerDay {
			return nil, outOfRange("time")
		}
		if west <= -16*3600 || west >= 16*3600 {
			return nil, pgerr.New(pgerr.InvalidTimeZoneDisplacement, "time zone displacement out of range")
		}
		out := binary.LittleEndian.AppendUint64(nil, uint64(us))
		return binary.LittleEndian.AppendUint32(out, uint32(west)), nil
	case types.Timestamp, types.TimestampTZ:
		if err := d.size(b, 8); err != nil {
			return nil, err
		}
		v := int64(be.Uint64(b))
		if v == math.MaxInt64 || v == math.MinInt64 {
			return v, nil
		}
		// From 1970 on int64 ends a little before PostgreSQL's range does.
		if v >= math.MaxInt64-epochMicros || v < pgtext.MinTimestamp-epochMicros {
			return nil, outOfRange("timestamp")
		}
		v += epochMicros
		if t.IsNanos() {
			if v > math.MaxInt64/1000 || v < math.MinInt64/1000 {
				return nil, outOfRange("timestamp")
			}
			v *= 1000
		}
		return v, nil
	case types.Interval:
		if err := d.size(b, 16); err != nil {
			return nil, err
		}
		out := binary.LittleEndian.AppendUint64(nil, be.Uint64(b))
		out = binary.LittleEndian.AppendUint32(out, be.Uint32(b[8:]))
		return binary.LittleEndian.AppendUint32(out, be.Uint32(b[12:])), nil
	case types.UUID:
		if err := d.size(b, 16); err != nil {
			return nil, err
		}
		return append([]byte(nil), b...), nil
	case types.Bytea:
		return append([]byte{}, b...), nil
	case types.Char:
		if len(b) == 0 {
			return nil, d.none()
		}
		if err := d.size(b, 1); err != nil {
			return nil, err
		}
		if b[0] == 0 {
			return "", nil
		}
		return d.text(t, b)
	case types.Name:
		if len(b) > 63 {
			return nil, pgerr.New(pgerr.NameTooLong, "identifier too long").WithDetail("Identifier must be less than 64 characters.")
		}
	case types.Inet, types.TID, types.PgLSN:
		return d.system(t.Kind, b)
	case types.JSONB:
		if len(b) == 0 {
			return nil, d.short()
		}
		if b[0] != 1 {
			return nil, pgerr.New(pgerr.InternalError, "unsupported jsonb version number %d", b[0])
		}
		return d.text(t, b[1:])
	case types.Map, types.Row, types.Variant: // jsonb to clients
		if len(b) == 0 || b[0] != 1 {
			return nil, d.long()
		}
		return d.text(t, b[1:])
	case types.Array, types.AnyArray:
		if t.OnWireAsJSON() {
			if len(b) == 0 || b[0] != 1 {
				return nil, d.long()
			}
			return d.text(t, b[1:])
		}
		return d.array(t, b, depth)
	case types.Int2Vector, types.OIDVector:
		elem := types.Of(types.OID)
		if t.Kind == types.Int2Vector {
			elem = types.Of(types.Int2)
		}
		t.Elem = &elem
		return d.array(t, b, depth)
	case types.Record:
		return nil, pgerr.New(pgerr.FeatureNotSupported, "input of anonymous composite types is not implemented")
	case types.Void:
		return nil, d.size(b, 0)
	}
	return d.text(t, b) // the text-like kinds have one form
}

// array reads a one-dimensional array; see arrayAppender for the layout.
func (d *Decoder) array(t types.Type, b []byte, depth int) (types.Datum, error) {
	if depth > 0 || t.Elem == nil {
		return nil, d.long()
	}
	be := binary.BigEndian
	if len(b) < 12 {
		return nil, d.short()
	}
	ndim, flags, oid := int32(be.Uint32(b)), be.Uint32(b[4:]), be.Uint32(b[8:])
	b = b[12:]
	switch {
	case ndim < 0:
		return nil, pgerr.New(pgerr.InvalidBinaryRepresentation, "invalid number of dimensions: %d", ndim)
	case flags > 1:
		return nil, pgerr.New(pgerr.InvalidBinaryRepresentation, "invalid array flags")
	}
	elem := wire(*t.Elem)
	if want := elem.OID(); oid != want {
		got, _ := types.ByOID(oid)
		return nil, pgerr.New(pgerr.DatatypeMismatch, "binary data has array element type %d (%s) instead of expected %d (%s)",
			oid, got, want, elem)
	}
	if ndim == 0 {
		if len(b) > 0 {
			return nil, d.long()
		}
		return []types.Datum{}, nil
	}
	if ndim > 1 {
		if ndim > 6 {
			return nil, pgerr.New(pgerr.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (6)", ndim)
		}
		return nil, pgerr.New(pgerr.FeatureNotSupported, "multidimensional arrays are not supported as parameters")
	}
	if len(b) < 8 {
		return nil, d.short()
	}
	n := int(int32(be.Uint32(b)))
	b = b[8:]
	if n < 0 {
		return nil, pgerr.New(pgerr.ProgramLimitExceeded, "array size exceeds the maximum allowed (134217727)")
	}
	// Each element has a length: no more room than the bytes that are there can fill.
	out := make([]types.Datum, 0, min(n, len(b)/4))
	for range n {
		if len(b) < 4 {
			return nil, d.short()
		}
		size := int(int32(be.Uint32(b)))
		b = b[4:]
		if size == -1 {
			out = append(out, nil)
			continue
		}
		if size < 0 || size > len(b) {
			return nil, pgerr.New(pgerr.InvalidBinaryRepresentation, "insufficient data left in message")
		}
		v, err := d.binary(elem, b[:size], depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		b = b[size:]
	}
	if len(b) > 0 {
		return nil, d.long()
	}
	return out, nil
}

// numeric reads the binary form of numeric; see encode_numeric.go.
func (d *Decoder) numeric(b []byte) (types.Datum, error) {
	be := binary.BigEndian
	if len(b) < 8 {
		return nil, d.short()
	}
	n := int(be.Uint16(b))
	weight := int(int16(be.Uint16(b[2:])))
	sign := be.Uint16(b[4:])
	dscale := int(be.Uint16(b[6:]))
	b = b[8:]
	bad := func(what string) error {
		return pgerr.New(pgerr.InvalidBinaryRepresentation, "invalid %s in external \"numeric\" value", what)
	}
	out := new(numeric.Dec)
	switch sign {
	case numPos, numNeg:
	case numNaN:
		out.Form = numeric.NaN
	case numPosInf:
		out.Form = numeric.PosInf
	case numNegInf:
		out.Form = numeric.NegInf
	default:
		return nil, bad("sign")
	}
	if dscale&^0x3fff != 0 {
		return nil, bad("scale")
	}
	for i := 0; i < n && 2*i+1 < len(b); i++ {
		if be.Uint16(b[2*i:]) > 9999 {
			return nil, bad("digit")
		}
	}
	if err := d.size(b, 2*n); err != nil {
		return nil, err
	}
	if out.Form != numeric.Finite {
		return out, nil
	}
	digits := make([]byte, 0, 4*n+1)
	for i := range n {
		x := be.Uint16(b[2*i:])
		if x > 9999 {
			return nil, bad("digit")
		}
		digits = append(digits, byte('0'+x/1000), byte('0'+x/100%10), byte('0'+x/10%10), byte('0'+x%10))
	}
	out.Scale = int32(dscale)
	if n == 0 {
		return out, nil
	}
	if _, ok := out.Coef.SetString(string(digits), 10); !ok {
		return nil, bad("digit")
	}
	// The coefficient is in units of 10000^(weight-n+1); bring it to 10^-dscale.
	shift := 4*(weight-n+1) + dscale
	if shift >= 0 {
		out.Coef.Mul(&out.Coef, numeric.Pow10(int32(shift)))
	} else if -shift > len(digits) {
		out.Coef.SetInt64(0)
	} else {
		out.Coef.Quo(&out.Coef, numeric.Pow10(int32(-shift))) // digits behind dscale are cut
	}
	if sign == numNeg {
		out.Coef.Neg(&out.Coef)
	}
	return out, nil
}
