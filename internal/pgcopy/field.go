package pgcopy

import (
	"encoding/hex"
	"math"
	"math/bits"
	"strconv"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// values reads the fields of the block's first n rows, column by column. The error
// is that of the first row that has one, and of its first column.
func (d *Decoder) values(n int) error {
	var fail error
	for c := range d.cols {
		i, err := d.column(c, n)
		if err != nil {
			sp := d.spans[c*blockRows+i]
			fail = d.inField(err, d.lineOf(d.block+i), c, d.src.buf[sp.from:sp.to])
			n = i // only an earlier row matters now
		}
	}
	return fail
}

func (d *Decoder) lineOf(row int) int64 {
	if d.lines != nil {
		return d.lines[row]
	}
	return d.first + int64(row)
}

// column reads column c of the block's first n rows. On an error i is its row.
func (d *Decoder) column(c, n int) (i int, err error) {
	col := &d.cols[c]
	spans := d.spans[c*blockRows : c*blockRows+n]
	buf, base := d.src.buf, d.block
	switch col.kind {
	case colInt64:
		out := col.i64[base : base+n]
		for i, sp := range spans {
			if sp.from < 0 {
				col.null(base + i)
				continue
			}
			v, ok := pgtext.QuickInt(buf[sp.from:sp.to])
			if !ok {
				if err := d.input(col, base+i, buf[sp.from:sp.to]); err != nil {
					return i, err
				}
				continue
			}
			out[i] = v
		}
	case colInt32:
		out := col.i32[base : base+n]
		for i, sp := range spans {
			if sp.from < 0 {
				col.null(base + i)
				continue
			}
			v, ok := pgtext.QuickInt(buf[sp.from:sp.to])
			if !ok || v != int64(int32(v)) {
				if err := d.input(col, base+i, buf[sp.from:sp.to]); err != nil {
					return i, err
				}
				continue
			}
			out[i] = int32(v)
		}
	case colInt16:
		for i, sp := range spans {
			if sp.from < 0 {
				col.null(base + i)
				continue
			}
			v, ok := pgtext.QuickInt(buf[sp.from:sp.to])
			if !ok || v != int64(int16(v)) {
				if err := d.input(col, base+i, buf[sp.from:sp.to]); err != nil {
					return i, err
				}
				continue
			}
			col.i16[base+i] = int16(v)
		}
	case colDecimal:
		scale, whole := int(col.typ.Scale), int(col.typ.Prec)-int(col.typ.Scale)
		out := col.dec[base : base+n]
		for i, sp := range spans {
			if sp.from < 0 {
				col.null(base + i)
				continue
			}
			v, ok := quickDecimal(buf[sp.from:sp.to], scale, whole)
			if !ok {
				if err := d.input(col, base+i, buf[sp.from:sp.to]); err != nil {
					return i, err
				}
				continue
			}
			out[i] = v
		}
	case colText:
		total := len(col.data)
		for _, sp := range spans {
			total += int(sp.to - sp.from)
		}
		if total > maxLine {
			return 0, errColumnFull()
		}
		data, off := col.data, col.off[base+1:base+n+1]
		for i, sp := range spans {
			if sp.from < 0 {
				col.data = data
				col.null(base + i)
				continue
			}
			data = append(data, buf[sp.from:sp.to]...)
			off[i] = int32(len(data))
		}
		col.data = data
	case colDate:
		out := col.i32[base : base+n]
		var last dayCache
		for i, sp := range spans {
			if sp.from < 0 {
				col.null(base + i)
				continue
			}
			f := buf[sp.from:sp.to]
			day, ok := int64(0), len(f) == 10
			if ok {
				day, ok = last.day(f)
			}
			if !ok {
				if err := d.input(col, base+i, f); err != nil {
					return i, err
				}
				continue
			}
			out[i] = int32(day)
		}
	case colTimestamp:
		return d.timestamps(col, spans)
	case colFloat64, colFloat32:
		width := 64
		if col.kind == colFloat32 {
			width = 32
		}
		for i, sp := range spans {
			if sp.from < 0 {
				col.null(base + i)
				continue
			}
			v, ok := quickFloat(buf[sp.from:sp.to], width)
			if !ok {
				if err := d.input(col, base+i, buf[sp.from:sp.to]); err != nil {
					return i, err
				}
				continue
			}
			if width == 64 {
				col.f64[base+i] = v
			} else {
				col.f32[base+i] = float32(v)
			}
		}
	case colBool:
		for i, sp := range spans {
			f := buf[max(sp.from, 0):max(sp.to, 0)]
			switch {
			case sp.from < 0:
				col.null(base + i)
			case len(f) == 1 && (f[0] == 't' || f[0] == '1'):
				vec.SetBit(col.bits, base+i)
			case len(f) == 1 && (f[0] == 'f' || f[0] == '0'):
			default:
				if err := d.input(col, base+i, f); err != nil {
					return i, err
				}
			}
		}
	case colBytea:
		for i, sp := range spans {
			if sp.from < 0 {
				col.null(base + i)
				continue
			}
			f := buf[sp.from:sp.to]
			if len(f) >= 2 && f[0] == '\\' && f[1] == 'x' && len(col.data)+len(f)/2 <= maxLine {
				data, err := hex.AppendDecode(col.data, f[2:])
				if err == nil {
					col.data = data
					col.off[base+i+1] = int32(len(data))
					continue
				}
			}
			if err := d.input(col, base+i, f); err != nil {
				return i, err
			}
		}
	default:
		for i, sp := range spans {
			if sp.from < 0 {
				col.null(base + i)
				continue
			}
			if err := d.input(col, base+i, buf[sp.from:sp.to]); err != nil {
				return i, err
			}
		}
	}
	return n, nil
}

// input is the slow way of every type.
func (d *Decoder) input(col *column, row int, f []byte) error {
	v, err := pgtext.Parse(col.typ, string(f), d.style)
	if err != nil {
		return err
	}
	return col.set(row, v)
}

var pow10 = [...]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19}

// quickDecimal reads a plain decimal number of up to 18 digits, with no more than
// scale of them behind the point and whole before it, in units of 10^-scale. ok
// is false for everything else, which pgtext decides on.
func quickDecimal(f []byte, scale, whole int) (v decimal128.Num, ok bool) {
	neg := false
	if len(f) > 0 && f[0] == '-' {
		neg, f = true, f[1:]
	}
	if len(f) == 0 || len(f) > 19 {
		return v, false
	}
	var u uint64
	point, lead := -1, 0
	for i, c := range f {
		if x := c - '0'; x <= 9 {
			u = u*10 + uint64(x)
			if u == 0 {
				lead = i + 1 // leading zeros
			}
			continue
		}
		if c != '.' || point >= 0 {
			return v, false
		}
		point = i
	}
	digits, frac := len(f), 0
	if point >= 0 {
		frac = len(f) - point - 1
		digits = point
		if len(f) == 1 {
			return v, false
		}
	} else if len(f) > 18 {
		return v, false
	}
	if frac > scale || digits-min(lead, digits) > whole {
		return v, false
	}
	up := scale - frac
	if up >= len(pow10) {
		if u == 0 {
			return v, true
		}
		return v, false
	}
	hi, lo := bits.Mul64(u, pow10[up])
	if neg {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	return decimal128.New(int64(hi), lo), true
}

// quickFloat reads what strconv and PostgreSQL agree on: digits, a point, an
// exponent, a value within range.
func quickFloat(f []byte, width int) (float64, bool) {
	if len(f) == 0 || len(f) > 64 {
		return 0, false
	}
	zero := true
	for _, c := range f {
		switch {
		case c >= '1' && c <= '9':
			zero = false
		case c == '0', c == '.', c == '-', c == '+', c == 'e', c == 'E':
		default:
			return 0, false
		}
	}
	// The string lives as long as the call, which does not keep it.
	v, err := strconv.ParseFloat(unsafe.String(&f[0], len(f)), width)
	if err != nil || v == 0 && !zero {
		return 0, false
	}
	return v, true
}

// dayCache reads dates of the form yyyy-mm-dd and remembers the last one: neighbours
// are often of one day.
type dayCache struct {
	key  [10]byte
	days int64
	ok   bool
}

// day returns the days since 1970 of the first ten bytes of f; false for what is
// no such date.
func (c *dayCache) day(f []byte) (int64, bool) {
	key := [10]byte(f)
	if c.ok && key == c.key {
		return c.days, true
	}
	y1, y2 := two(f[0], f[1]), two(f[2], f[3])
	m, d := two(f[5], f[6]), two(f[8], f[9])
	if (y1|y2|m|d) > 99 || f[4] != '-' || f[7] != '-' {
		return 0, false
	}
	y := int(y1*100 + y2)
	if y == 0 || m-1 > 11 || d == 0 || int(d) > pgtext.DaysInMonth(y, int(m)) {
		return 0, false
	}
	c.key, c.days, c.ok = key, int64(pgtext.DaysFromCivil(y, int(m), int(d))), true
	return c.days, true
}

// two is the value of two decimal digits; above 99 when they are none.
func two(a, b byte) uint32 {
	x, y := uint32(a-'0'), uint32(b-'0')
	if x > 9 || y > 9 {
		return 128
	}
	return 10*x + y
}

// timestamps reads yyyy-mm-dd hh:mm:ss[.fraction], for timestamptz with an offset
// of the form +hh or +hh:mm, or in the session's zone.
func (d *Decoder) timestamps(col *column, spans []span) (int, error) {
	buf, base := d.src.buf, d.block
	out := col.i64[base : base+len(spans)]
	tz := col.typ.Kind == types.TimestampTZ
	nanos := col.typ.IsNanos()
	prec := 6
	if nanos {
		prec = 9
	}
	if col.typ.Mod > 0 {
		prec = min(prec, int(col.typ.Mod)-1)
	} else if nanos {
		prec = int(col.typ.Prec)
	}
	var last dayCache
	for i, sp := range spans {
		if sp.from < 0 {
			col.null(base + i)
			continue
		}
		f := buf[sp.from:sp.to]
		ns, ok := d.timestamp(f, tz, prec, &last)
		switch {
		case !ok:
			if err := d.input(col, base+i, f); err != nil {
				return i, err
			}
		case nanos:
			if ns.sec > math.MaxInt64/1000000000-1 || ns.sec < math.MinInt64/1000000000+1 {
				if err := d.input(col, base+i, f); err != nil {
					return i, err
				}
				continue
			}
			out[i] = ns.sec*1000000000 + ns.ns
		default:
			out[i] = ns.sec*1000000 + ns.ns/1000
		}
	}
	return len(spans), nil
}

type instant struct{ sec, ns int64 }

func (d *Decoder) timestamp(f []byte, tz bool, prec int, last *dayCache) (instant, bool) {
	if len(f) < 19 || f[10] != ' ' && f[10] != 'T' || f[13] != ':' || f[16] != ':' {
		return instant{}, false
	}
	day, ok := last.day(f)
	h, m, s := two(f[11], f[12]), two(f[14], f[15]), two(f[17], f[18])
	if !ok || h > 23 || m > 59 || s > 59 {
		return instant{}, false
	}
	t := instant{sec: day*86400 + int64(h*3600+m*60+s)}
	f = f[19:]
	if len(f) > 1 && f[0] == '.' {
		n, k := int64(0), 1
		for ; k < len(f) && f[k]-'0' <= 9; k++ {
			n = n*10 + int64(f[k]-'0')
			if k > prec {
				return instant{}, false // rounded elsewhere
			}
		}
		if k == 1 {
			return instant{}, false
		}
		t.ns = n * int64(pow10[10-k])
		f = f[k:]
	}
	if !tz {
		return t, len(f) == 0
	}
	if len(f) == 0 {
		t.sec, _ = d.zone.ToUTC(t.sec)
		return t, true
	}
	if len(f) != 3 && (len(f) != 6 || f[3] != ':') || f[0] != '+' && f[0] != '-' {
		return instant{}, false
	}
	oh, om := two(f[1], f[2]), uint32(0)
	if len(f) == 6 {
		om = two(f[4], f[5])
	}
	if oh > 14 || om > 59 {
		return instant{}, false
	}
	off := int64(oh*3600 + om*60)
	if f[0] == '-' {
		off = -off
	}
	t.sec -= off
	return t, true
}
