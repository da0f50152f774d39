package pgcopy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgbin"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// The binary format (PostgreSQL's manual, COPY, File Formats); integers are
// big-endian:
//
//	signature, 11 bytes | int32 flags | int32 length of the extension | extension
//	per row: int16 fields | per field: int32 length (-1 = NULL), bytes
//	int16 -1
//
// Bits 16 to 31 of the flags are critical: of these only 16, which said that
// there are oids, was ever given a meaning.
const signature = "PGCOPY\n\xff\r\n\x00"

func badFile(format string, args ...any) error {
	return pgerr.New(pgerr.BadCopyFileFormat, format, args...)
}

// need makes n bytes available at the window's start; fewer mean the end.
func (d *Decoder) need(n int) (have int, err error) {
	s := &d.src
	if s.ok-s.r < n {
		// A length may lie: the window grows with what arrives.
		for want := max(readSize, s.ok-s.r+1); s.ok-s.r < n && !s.eof; want *= 2 {
			if s.bad != nil {
				return 0, d.inTuple(s.bad, -1)
			}
			if _, err := s.fill(min(want, max(n, readSize))); err != nil {
				return 0, err
			}
		}
	}
	return min(n, s.ok-s.r), nil
}

func (d *Decoder) binaryHeader() error {
	s := &d.src
	n, err := d.need(len(signature))
	if err != nil {
		return err
	}
	if n < len(signature) || string(s.buf[s.r:s.r+n]) != signature {
		return badFile("COPY file signature not recognized")
	}
	s.r += n
	word := func(what string) (int32, error) {
		if n, err := d.need(4); err != nil {
			return 0, err
		} else if n < 4 {
			return 0, badFile("invalid COPY file header (missing %s)", what)
		}
		v := int32(binary.BigEndian.Uint32(s.buf[s.r:]))
		s.r += 4
		return v, nil
	}
	flags, err := word("flags")
	if err != nil {
		return err
	}
	if flags&(1<<16) != 0 {
		return badFile("invalid COPY file header (WITH OIDS)")
	}
	if flags>>16 != 0 {
		return badFile("unrecognized critical flags in COPY file header")
	}
	skip, err := word("length")
	if err != nil {
		return err
	}
	if skip < 0 {
		return badFile("invalid COPY file header (missing length)")
	}
	for skip > 0 {
		n, err := d.need(min(int(skip), readSize))
		if err != nil {
			return err
		}
		if n == 0 {
			return badFile("invalid COPY file header (wrong length)")
		}
		s.r += n
		skip -= int32(n)
	}
	return nil
}

// nextBinary is Next for the binary format.
func (d *Decoder) nextBinary() (*Rows, error) {
	if !d.begun {
		if err := d.binaryHeader(); err != nil {
			return nil, d.inTuple(err, -1)
		}
		d.begun = true
	}
	if d.ended {
		return nil, nil
	}
	d.start()
	bin := pgbin.Decoder{Style: d.style, Long: func() error {
		return pgerr.New(pgerr.InvalidBinaryRepresentation, "incorrect binary data format")
	}}
	for d.rows < d.maxRows && d.bytes < batchBytes {
		more, err := d.tuple(&bin)
		if err != nil {
			return nil, err
		}
		if !more {
			d.ended = true
			break
		}
		d.rows++
	}
	return d.finish(), nil
}

// tuple reads one row; false at the end.
func (d *Decoder) tuple(bin *pgbin.Decoder) (bool, error) {
	s := &d.src
	d.line++
	n, err := d.need(2)
	if err != nil {
		return false, err
	}
	if n < 2 {
		return false, nil // without a trailer: PostgreSQL takes it, too
	}
	fields := int(int16(binary.BigEndian.Uint16(s.buf[s.r:])))
	s.r += 2
	if fields == -1 {
		// Everything must have been read, the end of the client's data too.
		n, err := d.need(1)
		if err == nil && n > 0 {
			err = badFile("received copy data after EOF marker")
		}
		return false, d.inTuple(err, -1)
	}
	if fields != len(d.cols) {
		return false, d.inTuple(badFile("row field count is %d, expected %d", fields, len(d.cols)), -1)
	}
	for c := range d.cols {
		n, err := d.need(4)
		if err != nil {
			return false, err
		}
		if n < 4 {
			return false, d.inTuple(badFile("unexpected EOF in COPY data"), c)
		}
		size := int(int32(binary.BigEndian.Uint32(s.buf[s.r:])))
		s.r += 4
		switch {
		case size == -1:
			d.cols[c].null(d.rows)
			continue
		case size < 0:
			return false, d.inTuple(badFile("invalid field size"), c)
		case int64(size) > d.maxLine:
			return false, d.inTuple(pgerr.New(pgerr.ProgramLimitExceeded, "out of memory").
				WithDetail("A field of the data is longer than %d bytes.", d.maxLine), c)
		}
		if n, err = d.need(size); err != nil {
			return false, err
		}
		if n < size {
			return false, d.inTuple(badFile("unexpected EOF in COPY data"), c)
		}
		f := s.buf[s.r : s.r+size]
		s.r += size
		d.bytes += size + 4
		if !d.cols[c].binary(d.rows, f) {
			v, err := bin.Value(d.cols[c].typ, f)
			if err == nil {
				v, err = fit(d.cols[c].typ, v)
			}
			if err == nil {
				err = d.cols[c].set(d.rows, v)
			}
			if err != nil {
				return false, d.inTuple(err, c)
			}
		}
	}
	return true, nil
}

// fit applies a type's modifiers to a value, as the receive functions of
// PostgreSQL do; strings have been dealt with.
func fit(t types.Type, v types.Datum) (types.Datum, error) {
	switch x := v.(type) {
	case *numeric.Dec:
		return pgtext.FitNumeric(x, t)
	case int64:
		switch {
		case t.Mod <= 0:
		case t.IsNanos():
			return pgtext.RoundNanos(x, int(t.Mod)-1), nil
		case t.Kind == types.Timestamp || t.Kind == types.TimestampTZ:
			if x != pgtext.TimestampInfinity && x != pgtext.TimestampNegInfinity {
				return pgtext.RoundMicros(x, int(t.Mod)-1), nil
			}
		case t.Kind == types.Time:
			return pgtext.RoundMicros(x, int(t.Mod)-1), nil
		}
	case []byte:
		if t.Kind == types.Interval {
			rng, prec := pgtext.IntervalMod(t)
			return pgtext.TrimInterval(pgtext.DecodeInterval(x), rng, prec).Bytes(), nil
		}
	}
	return v, nil
}

func (d *Decoder) inTuple(err error, c int) error {
	if err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	ctx := fmt.Sprintf("COPY %s, line %d", d.relation, d.line)
	if c >= 0 {
		ctx += ", column " + d.schema[c].Name
	}
	if d.line == 0 {
		ctx = "COPY " + d.relation
	}
	return withContext(err, ctx)
}

// PostgreSQL counts from 2000-01-01.
const (
	epochDays   = 10957
	epochMicros = epochDays * 86400 * 1000000
)

// binary stores the binary form of a value; false for what package pgbin is to
// decide on.
func (c *column) binary(i int, f []byte) bool {
	be := binary.BigEndian
	switch c.kind {
	case colInt64:
		if len(f) == 8 {
			c.i64[i] = int64(be.Uint64(f))
			return true
		}
	case colInt32:
		if len(f) == 4 {
			c.i32[i] = int32(be.Uint32(f))
			return true
		}
	case colInt16:
		if len(f) == 2 {
			c.i16[i] = int16(be.Uint16(f))
			return true
		}
	case colFloat64:
		if len(f) == 8 {
			c.f64[i] = math.Float64frombits(be.Uint64(f))
			return true
		}
	case colFloat32:
		if len(f) == 4 {
			c.f32[i] = math.Float32frombits(be.Uint32(f))
			return true
		}
	case colBool:
		if len(f) == 1 {
			if f[0] != 0 {
				vec.SetBit(c.bits, i)
			}
			return true
		}
	case colTimestamp:
		if len(f) == 8 && c.typ.Mod == 0 && !c.typ.IsNanos() {
			// The years 1 to 9999: the rest is looked at closely.
			if v := int64(be.Uint64(f)); v > -63082281600000000 && v < 252455615999999999 {
				c.i64[i] = v + epochMicros
				return true
			}
		}
	case colDate:
		if len(f) == 4 {
			if v := int32(be.Uint32(f)); v > -730119 && v < 2921939 {
				c.i32[i] = v + epochDays
				return true
			}
		}
	case colDecimal:
		v, ok := binaryDecimal(f, int(c.typ.Scale), int(c.typ.Prec)-int(c.typ.Scale))
		if ok {
			c.dec[i] = v
		}
		return ok
	case colText:
		if n := plainASCII(f); n < len(f) && pgtext.BadUTF8(f[n:]) >= 0 {
			return false
		}
		fallthrough
	case colBytea:
		if len(c.data)+len(f) > maxLine {
			return false
		}
		c.data = append(c.data, f...)
		c.off[i+1] = int32(len(c.data))
		return true
	}
	return false
}

// binaryDecimal reads a numeric of up to 18 digits that fits scale and whole
// digits without rounding.
func binaryDecimal(f []byte, scale, whole int) (v decimal128.Num, ok bool) {
	if len(f) < 8 {
		return v, false
	}
	be := binary.BigEndian
	n, weight, sign, dscale := int(be.Uint16(f)), int(int16(be.Uint16(f[2:]))), be.Uint16(f[4:]), int(be.Uint16(f[6:]))
	if n > 4 || len(f) != 8+2*n || sign != 0 && sign != 0x4000 || dscale > scale || scale > 18 || weight > 3 {
		return v, false
	}
	if n == 0 {
		return v, true
	}
	var u uint64
	for i := range n {
		x := be.Uint16(f[8+2*i:])
		if x > 9999 {
			return v, false
		}
		u = u*10000 + uint64(x)
	}
	// u counts units of 10000^(weight-n+1).
	up := scale + 4*(weight-n+1)
	if up < 0 {
		p := uint64(1)
		for k := up; k < 0; k++ {
			p *= 10
		}
		if up < -4 || u%p != 0 {
			return v, false
		}
		u /= p
	} else {
		if up > 18 || u > math.MaxInt64/pow10[up] {
			return v, false
		}
		u *= pow10[up]
	}
	if u > math.MaxInt64 || whole+scale < len(pow10) && u >= pow10[whole+scale] {
		return v, false
	}
	s := int64(u)
	if sign != 0 {
		s = -s
	}
	return decimal128.FromI64(s), true
}
