package pgcopy

import (
	"bytes"

	"github.com/paimon-sql/paimon-sql/internal/pgtext"
)

// splitText splits lines of the text format; see split.
//
// The fast way takes lines that end in the data's usual line end and hold no
// other \r: their end is the next \n. A backslash costs a closer look, see
// escapes; only what that cannot settle is framed byte by byte.
func (d *Decoder) splitText(most int) (n int, st frameState, fail func() error) {
	s := &d.src
	for n < most {
		b := s.buf[:s.ok]
		end := d.nl.next(b, s.r)
		next := end + 1
		quick := end < len(b) && !d.exact && (d.eol == eolNL || d.eol == eolCRNL)
		if quick {
			cr := d.cr.next(b, s.r)
			if d.eol == eolCRNL {
				quick = cr == end-1
				end--
			} else {
				quick = cr > end
			}
		}
		escaped := false
		if quick {
			if at := d.bs.next(b, s.r); at < end {
				escaped = true
				quick = plainEscapes(b[at:end])
			}
		}
		if !quick {
			var more int64
			var err error
			end, next, more, st, err = d.frame()
			switch {
			case err != nil:
				d.line += 1 + more
				return n, st, func() error { return d.inLine(err, nil) }
			case st == frameMore, st != frameLine && end == s.r:
				return n, st, nil
			}
			d.line += more
			escaped = true
		}
		d.line++
		got := 0
		if escaped {
			d.saved = append(d.saved[:0], b[s.r:end]...)
			var err error
			if got, err = d.fieldsText(s.r, end, n); err != nil {
				return n, st, func() error { return d.inLine(err, d.saved) }
			}
		} else {
			got = d.plainFields(s.r, end, n)
		}
		if got != len(d.cols) {
			line := b[s.r:end]
			if escaped {
				line = d.saved
			}
			row := n
			return n, st, func() error { return d.short(got, row, line) }
		}
		s.r = next
		n++
		if st != frameLine {
			return n, st, nil
		}
	}
	return n, frameLine, nil
}

// plainEscapes reports whether no backslash of a line's rest escapes the line's
// end or begins the end of the data. The rest begins with a backslash.
func plainEscapes(b []byte) bool {
	for p := 0; ; {
		if p+1 >= len(b) || b[p+1] == '.' {
			return false
		}
		k := bytes.IndexByte(b[p+2:], '\\')
		if k < 0 {
			return true
		}
		p += 2 + k
	}
}

// plainFields splits a line without escapes or quotes, as row i of the block.
func (d *Decoder) plainFields(from, end, i int) int {
	b := d.src.buf
	delim := d.o.Delimiter
	n, q := 0, from
	for ; n < len(d.cols); n++ {
		k := bytes.IndexByte(b[q:end], delim)
		if k < 0 {
			d.spans[n*blockRows+i] = span{int32(q), int32(end)}
			n++
			q = -1
			break
		}
		d.spans[n*blockRows+i] = span{int32(q), int32(q + k)}
		q += k + 1
	}
	// Text's own \N has a backslash, so no field of such a line is NULL.
	if null := d.o.Null; d.o.Format == CSV || null == "" || null[0] != '\\' {
		for c := range d.cols[:n] {
			sp := &d.spans[c*blockRows+i]
			if int(sp.to-sp.from) == len(null) && string(b[sp.from:sp.to]) == null && !d.cols[c].forceNotNull {
				*sp = nullSpan
			}
		}
	}
	if q >= 0 {
		n++ // the last column ends in a delimiter
	}
	return n
}

// fieldsText splits a line of the text format and unescapes its fields in place.
// saved holds the line as it was.
func (d *Decoder) fieldsText(from, end, i int) (int, error) {
	b := d.src.buf
	delim, null := d.o.Delimiter, d.o.Null
	// A null string that ends in a backslash could swallow the delimiter.
	tame := null == "" || null[len(null)-1] != '\\'
	for n, q := 0, from; ; {
		stop := end
		if k := bytes.IndexByte(b[q:end], delim); k >= 0 {
			stop = q + k
		}
		sp := span{int32(q), int32(stop)}
		switch {
		case tame && stop-q == len(null) && string(b[q:stop]) == null:
			sp = nullSpan
		case bytes.IndexByte(b[q:stop], '\\') >= 0:
			to, at, high := unescape(b, q, end, delim)
			raw := d.saved[q-from : at-from]
			if at == end && trailing(raw) {
				raw = raw[:len(raw)-1] // PostgreSQL compares without it
			}
			if string(raw) == null {
				sp = nullSpan
			} else {
				sp.to = int32(to)
				if high {
					if err := pgtext.CheckUTF8(b[q:to]); err != nil {
						return 0, err
					}
				}
			}
			stop = at
		}
		if n < len(d.cols) {
			d.spans[n*blockRows+i] = sp
		}
		n++
		if stop >= end {
			return n, nil
		}
		q = stop + 1
	}
}

// trailing reports whether b ends in a backslash that escapes nothing.
func trailing(b []byte) bool {
	n := 0
	for n < len(b) && b[len(b)-1-n] == '\\' {
		n++
	}
	return n&1 == 1
}

// unescape resolves the escapes of the field at q in place: the value is b[q:to],
// and the field ends at the delimiter or line end at. high says that an escape
// made a byte that is not ASCII, or NUL.
func unescape(b []byte, q, end int, delim byte) (to, at int, high bool) {
	to = q
	for p := q; p < end; {
		c := b[p]
		if c == delim {
			return to, p, high
		}
		p++
		if c != '\\' {
			b[to] = c
			to++
			continue
		}
		if p >= end {
			break // a lone backslash at the end stands for nothing
		}
		c = b[p]
		p++
		switch c {
		case '0', '1', '2', '3', '4', '5', '6', '7':
			v := c - '0'
			for k := 0; k < 2 && p < end && b[p] >= '0' && b[p] <= '7'; k++ {
				v = v<<3 + b[p] - '0'
				p++
			}
			c = v
			high = high || v == 0 || v >= 0x80
		case 'x':
			if p < end && hexValue(b[p]) < 16 {
				v := hexValue(b[p])
				p++
				if p < end && hexValue(b[p]) < 16 {
					v = v<<4 + hexValue(b[p])
					p++
				}
				c = v
				high = high || v == 0 || v >= 0x80
			}
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'v':
			c = '\v'
		}
		b[to] = c
		to++
	}
	return to, end, high
}

// hexValue is the value of a hexadecimal digit; 16 or more for what is none.
func hexValue(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 16
}
