package vec

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
)

// maxJSONDepth bounds recursion over what a client sent. PostgreSQL refuses
// deeper values when they are made; bytes from files may hold them all the same
// and compare as their text from there on.
const maxJSONDepth = 6000

// AppendJSONKey appends the normalised key of a jsonb value given as text. The
// order is PostgreSQL's: object > array > boolean > number > string > null,
// arrays and objects first by their number of members, object keys by length
// and then bytes; only an empty array at the top comes before everything.
//
//	null 02 | string 03 bytes 00 00 | number 04 key | false 05 | true 06
//	array 07 count, elements | object 08 count, (key, value)...
//	01 = the empty top-level array
//
// Text that is not JSON sorts as a string.
func AppendJSONKey(dst, text []byte) []byte {
	p := jsonKeyer{b: text}
	p.space()
	if p.peek() == '[' {
		q := p
		q.i++
		q.space()
		if q.peek() == ']' {
			return append(dst, 1)
		}
	}
	at := len(dst)
	dst, ok := p.value(dst, 0)
	p.space()
	if !ok || p.i != len(text) {
		return appendEscaped(append(dst[:at], 3), text)
	}
	return dst
}

type jsonKeyer struct {
	b []byte
	i int
}

func (p *jsonKeyer) space() {
	for p.i < len(p.b) {
		switch p.b[p.i] {
		case ' ', '\t', '\n', '\r':
			p.i++
		default:
			return
		}
	}
}

func (p *jsonKeyer) peek() byte {
	if p.i < len(p.b) {
		return p.b[p.i]
	}
	return 0
}

func (p *jsonKeyer) word(w string) bool {
	if len(p.b)-p.i >= len(w) && string(p.b[p.i:p.i+len(w)]) == w {
		p.i += len(w)
		return true
	}
	return false
}

func (p *jsonKeyer) value(dst []byte, depth int) ([]byte, bool) {
	if depth > maxJSONDepth {
		return dst, false
	}
	p.space()
	switch c := p.peek(); {
	case c == 'n':
		return append(dst, 2), p.word("null")
	case c == 't':
		return append(dst, 6), p.word("true")
	case c == 'f':
		return append(dst, 5), p.word("false")
	case c == '"':
		s, ok := p.str(nil)
		return appendEscaped(append(dst, 3), s), ok
	case c == '-' || c >= '0' && c <= '9':
		return p.number(append(dst, 4))
	case c == '[':
		return p.array(append(dst, 7), depth)
	case c == '{':
		return p.object(append(dst, 8), depth)
	}
	return dst, false
}

func (p *jsonKeyer) array(dst []byte, depth int) ([]byte, bool) {
	p.i++
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	n := uint32(0)
	p.space()
	if p.peek() == ']' {
		p.i++
		return dst, true
	}
	for {
		var ok bool
		if dst, ok = p.value(dst, depth+1); !ok {
			return dst, false
		}
		n++
		p.space()
		c := p.peek()
		p.i++
		if c == ']' {
			binary.BigEndian.PutUint32(dst[at:], n)
			return dst, true
		}
		if c != ',' {
			return dst, false
		}
	}
}

func (p *jsonKeyer) object(dst []byte, depth int) ([]byte, bool) {
	p.i++
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	n := uint32(0)
	p.space()
	if p.peek() == '}' {
		p.i++
		return dst, true
	}
	for {
		p.space()
		if p.peek() != '"' {
			return dst, false
		}
		s, ok := p.str(nil)
		if !ok {
			return dst, false
		}
		p.space()
		if p.peek() != ':' {
			return dst, false
		}
		p.i++
		// The text of a jsonb has its keys in storage order already: shorter
		// ones first.
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(s)))
		dst = append(dst, s...)
		if dst, ok = p.value(dst, depth+1); !ok {
			return dst, false
		}
		n++
		p.space()
		c := p.peek()
		p.i++
		if c == '}' {
			binary.BigEndian.PutUint32(dst[at:], n)
			return dst, true
		}
		if c != ',' {
			return dst, false
		}
	}
}

func (p *jsonKeyer) number(dst []byte) ([]byte, bool) {
	start := p.i
	if p.peek() == '-' {
		p.i++
	}
	scale := int32(0)
	digits := make([]byte, 0, 32)
	if p.b[start] == '-' {
		digits = append(digits, '-')
	}
	for p.peek() >= '0' && p.peek() <= '9' {
		digits = append(digits, p.peek())
		p.i++
	}
	if p.peek() == '.' {
		p.i++
		for p.peek() >= '0' && p.peek() <= '9' {
			digits = append(digits, p.peek())
			scale++
			p.i++
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.i++
		neg := false
		if c := p.peek(); c == '-' || c == '+' {
			neg = c == '-'
			p.i++
		}
		e := int32(0)
		for p.peek() >= '0' && p.peek() <= '9' {
			if e < 1<<20 {
				e = e*10 + int32(p.peek()-'0')
			}
			p.i++
		}
		if neg {
			scale += e
		} else {
			scale -= e
		}
	}
	d := new(numeric.Dec)
	if _, ok := d.Coef.SetString(string(digits), 10); !ok {
		return dst, false
	}
	d.Scale = scale
	return AppendDecKey(dst, d), true
}

func (p *jsonKeyer) str(out []byte) ([]byte, bool) {
	p.i++
	for p.i < len(p.b) {
		c := p.b[p.i]
		p.i++
		switch c {
		case '"':
			return out, true
		case '\\':
			if p.i >= len(p.b) {
				return out, false
			}
			e := p.b[p.i]
			p.i++
			switch e {
			case 'b':
				out = append(out, '\b')
			case 'f':
				out = append(out, '\f')
			case 'n':
				out = append(out, '\n')
			case 'r':
				out = append(out, '\r')
			case 't':
				out = append(out, '\t')
			case 'u':
				r, ok := p.hex4()
				if !ok {
					return out, false
				}
				if utf16.IsSurrogate(r) && p.word(`\u`) {
					lo, ok := p.hex4()
					if !ok {
						return out, false
					}
					r = utf16.DecodeRune(r, lo)
				}
				out = utf8.AppendRune(out, r)
			default:
				out = append(out, e)
			}
		default:
			out = append(out, c)
		}
	}
	return out, false
}

func (p *jsonKeyer) hex4() (rune, bool) {
	if p.i+4 > len(p.b) {
		return 0, false
	}
	r := rune(0)
	for _, c := range p.b[p.i : p.i+4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	p.i += 4
	return r, true
}
