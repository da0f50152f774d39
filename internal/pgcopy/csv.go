package pgcopy

import (
	"bytes"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// splitCSV splits lines of CSV; see split. Where quotes escape themselves, as they
// do unless told otherwise, a line ends at the first \n with an even number of
// quotes before it.
func (d *Decoder) splitCSV(most int) (n int, st frameState, fail func() error) {
	s := &d.src
	quote := d.o.Quote
	one := []byte{quote}
	doubled := d.o.Escape == quote
	for n < most {
		b := s.buf[:s.ok]
		end := d.nl.next(b, s.r)
		next := end + 1
		quick := end < len(b) && !d.exact && (d.eol == eolNL || d.eol == eolCRNL) && b[s.r] != '\\'
		quoted := false
		var more int64
		if quick && d.qu.next(b, s.r) < end {
			quoted = true
			quick = doubled && d.eol == eolNL
			odd := false
			for at := s.r; quick; {
				if bytes.Count(b[at:end], one)&1 == 1 {
					odd = !odd
				}
				if !odd {
					break
				}
				more++ // this line end is within quotes
				at = end + 1
				k := bytes.IndexByte(b[at:], '\n')
				quick = k >= 0
				end = at + k
			}
			next = end + 1
		}
		if quick {
			cr := d.cr.next(b, s.r)
			if d.eol == eolCRNL {
				quick = cr == end-1
				end--
			} else {
				quick = cr > end
			}
		}
		if !quick {
			var err error
			end, next, more, st, err = d.frame()
			switch {
			case err != nil:
				d.line += 1 + more
				return n, st, func() error { return d.inLine(err, nil) }
			case st == frameMore, st != frameLine && end == s.r:
				return n, st, nil
			}
			quoted = true
		}
		d.line += 1 + more
		got := 0
		if quoted {
			d.saved = append(d.saved[:0], b[s.r:end]...)
			var err error
			if got, err = d.fieldsCSV(s.r, end, n); err != nil {
				return n, st, func() error { return d.inLine(err, d.saved) }
			}
		} else {
			got = d.plainFields(s.r, end, n)
		}
		if got != len(d.cols) {
			line := b[s.r:end]
			if quoted {
				line = d.saved
			}
			row := n
			return n, st, func() error { return d.short(got, row, line) }
		}
		d.lines[d.rows+n] = d.line
		s.r = next
		n++
		if st != frameLine {
			return n, st, nil
		}
	}
	return n, frameLine, nil
}

// fieldsCSV splits a line of CSV and removes the quotes of its fields in place.
func (d *Decoder) fieldsCSV(from, end, i int) (int, error) {
	b := d.src.buf
	delim, quote, null := d.o.Delimiter, d.o.Quote, d.o.Null
	for n, q := 0, from; ; {
		stop := end
		sp := span{int32(q), 0}
		quoted := false
		if q < end && b[q] == quote {
			// The usual form: one quoted stretch without a quote inside.
			k := bytes.IndexByte(b[q+1:end], quote)
			if at := q + 1 + k + 1; k >= 0 && (at == end || b[at] == delim) && (d.o.Escape == quote || bytes.IndexByte(b[q+1:q+1+k], d.o.Escape) < 0) {
				sp, stop, quoted = span{int32(q + 1), int32(q + 1 + k)}, at, true
			} else {
				to, at, err := d.unquote(q, end)
				if err != nil {
					return 0, err
				}
				sp.to, stop, quoted = int32(to), at, true
			}
		} else {
			if k := bytes.IndexByte(b[q:end], delim); k >= 0 {
				stop = q + k
			}
			sp.to = int32(stop)
			if bytes.IndexByte(b[q:stop], quote) >= 0 {
				to, at, err := d.unquote(q, end)
				if err != nil {
					return 0, err
				}
				sp.to, stop, quoted = int32(to), at, true
			}
		}
		if n < len(d.cols) {
			c := &d.cols[n]
			same := int(sp.to-sp.from) == len(null) && string(b[sp.from:sp.to]) == null
			if same && (!quoted && !c.forceNotNull || quoted && c.forceNull) {
				sp = nullSpan
			}
			d.spans[n*blockRows+i] = sp
		}
		n++
		if stop >= end {
			return n, nil
		}
		q = stop + 1
	}
}

// unquote removes the quotes of the field at q in place: the value is b[q:to], and
// the field ends at the delimiter or line end at. Quotes may begin in the middle.
func (d *Decoder) unquote(q, end int) (to, at int, err error) {
	b := d.src.buf
	delim, quote, escape := d.o.Delimiter, d.o.Quote, d.o.Escape
	to = q
	for p := q; ; {
		for { // outside of quotes
			if p >= end {
				return to, end, nil
			}
			c := b[p]
			p++
			if c == delim {
				return to, p - 1, nil
			}
			if c == quote {
				break
			}
			b[to] = c
			to++
		}
		for { // inside
			if p >= end {
				return 0, 0, pgerr.New(pgerr.BadCopyFileFormat, "unterminated CSV quoted field")
			}
			c := b[p]
			p++
			if c == escape && p < end && (b[p] == escape || b[p] == quote) {
				b[to] = b[p]
				to++
				p++
				continue
			}
			if c == quote {
				break
			}
			b[to] = c
			to++
		}
	}
}
