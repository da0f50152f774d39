package pgcopy

import (
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// eol is how the lines of the data end; the first line decides.
type eol uint8

const (
	eolUnknown eol = iota
	eolNL
	eolCR
	eolCRNL
)

// frameState is what frame has found.
type frameState uint8

const (
	frameLine   frameState = iota // a line
	frameMore                     // the window ends within the line
	frameEnd                      // the data ends; there may be a line without an end
	frameMarker                   // \. ; there may be text in front of it
)

// frame finds the end of the line that begins at the window's start: its bytes are
// buf[r:end], the next line begins at next. lines counts the line ends inside
// quotes, also in front of an error. It looks at every byte; the rules, as to a byte \r, \n and \. may be, are
// those of CopyReadLineText.
func (d *Decoder) frame() (end, next int, lines int64, st frameState, err error) {
	s := &d.src
	b := s.buf[:s.ok]
	final := s.eof && s.bad == nil
	csv := d.o.Format == CSV
	quote, escape := d.o.Quote, d.o.Escape
	if quote == escape {
		escape = 0
	}
	inQuote, escaped := false, false
	peek := func(i int) byte {
		if i < len(b) {
			return b[i]
		}
		return 0
	}
	for p := s.r; ; {
		if p >= len(b) {
			if !final {
				return 0, 0, 0, frameMore, nil
			}
			return len(b), len(b), lines, frameEnd, nil
		}
		c := b[p]
		p++
		if csv {
			if inQuote && c == escape {
				escaped = !escaped
			}
			if c == quote && !escaped {
				inQuote = !inQuote
			}
			if c != escape {
				escaped = false
			}
			if inQuote && (c == '\n' && d.eol == eolNL || c == '\r' && d.eol != eolNL) {
				lines++
			}
			if inQuote && c != '\\' {
				continue
			}
		}
		switch {
		case c == '\r' && !inQuote:
			switch d.eol {
			case eolUnknown, eolCRNL:
				if p >= len(b) && !final {
					return 0, 0, 0, frameMore, nil
				}
				if peek(p) == '\n' {
					d.eol = eolCRNL
					return p - 1, p + 1, lines, frameLine, nil
				}
				if d.eol == eolCRNL {
					return 0, 0, lines, 0, d.strayEnd("carriage return", `\r`)
				}
				d.eol = eolCR
			case eolNL:
				return 0, 0, lines, 0, d.strayEnd("carriage return", `\r`)
			}
			return p - 1, p, lines, frameLine, nil
		case c == '\n' && !inQuote:
			if d.eol == eolCR || d.eol == eolCRNL {
				return 0, 0, lines, 0, d.strayEnd("newline", `\n`)
			}
			d.eol = eolNL
			return p - 1, p, lines, frameLine, nil
		case c == '\\' && (!csv || p-1 == s.r):
			if p >= len(b) {
				if !final {
					return 0, 0, 0, frameMore, nil
				}
				return len(b), len(b), lines, frameEnd, nil
			}
			if b[p] != '.' {
				if !csv {
					p++ // whatever it is, a line end included, it is data
				}
				continue
			}
			if len(b)-p < 3 && !final {
				return 0, 0, 0, frameMore, nil // \.\r\n is the longest form
			}
			q, err := d.marker(p+1, peek)
			if err != nil {
				return 0, 0, lines, 0, err
			}
			if q > 0 {
				return p - 1, min(q, len(b)), lines, frameMarker, nil
			}
		}
	}
}

// marker checks what follows \. up to q, where the marker ends: 0 = it is none but
// data, as it may be in CSV.
func (d *Decoder) marker(q int, peek func(int) byte) (int, error) {
	csv := d.o.Format == CSV
	corrupt := func() (int, error) {
		if csv {
			return 0, nil
		}
		return 0, pgerr.New(pgerr.BadCopyFileFormat, "end-of-copy marker corrupt")
	}
	style := func() error {
		return pgerr.New(pgerr.BadCopyFileFormat, "end-of-copy marker does not match previous newline style")
	}
	if d.eol == eolCRNL {
		switch c := peek(q); {
		case c == '\n' && csv:
			return 0, nil
		case c == '\n':
			return 0, style()
		case c != '\r':
			return corrupt()
		}
		q++
	}
	c := peek(q)
	switch {
	case c != '\r' && c != '\n':
		return corrupt()
	case d.eol == eolNL && c != '\n', d.eol == eolCRNL && c != '\n', d.eol == eolCR && c != '\r':
		return 0, style()
	}
	return q + 1, nil
}

func (d *Decoder) strayEnd(what, escaped string) error {
	if d.o.Format == CSV {
		return pgerr.New(pgerr.BadCopyFileFormat, "unquoted %s found in data", what).
			WithHint("Use quoted CSV field to represent %s.", what)
	}
	return pgerr.New(pgerr.BadCopyFileFormat, "literal %s found in data", what).
		WithHint("Use \"%s\" to represent %s.", escaped, what)
}
