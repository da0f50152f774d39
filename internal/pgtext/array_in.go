package pgtext

import (
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Element is one element of an array literal.
type Element struct {
	Text string
	Null bool
	Sub  []Element // of a nested literal; non-nil marks it
}

type arrayParser struct {
	s     string
	i     int
	depth int
}

func (p *arrayParser) fail(detail string, args ...any) error {
	return pgerr.New(pgerr.InvalidTextRepresentation, "malformed array literal: \"%s\"", p.s).WithDetail(detail, args...)
}

func (p *arrayParser) space() {
	for p.i < len(p.s) && isSpace(p.s[p.i]) {
		p.i++
	}
}

// ParseArray cuts an array literal into its elements without looking at their
// type. dims is the depth of its braces.
func ParseArray(s string) (elems []Element, dims int, err error) {
	p := &arrayParser{s: s}
	p.space()
	if p.i < len(s) && s[p.i] == '[' {
		if err := p.bounds(); err != nil {
			return nil, 0, err
		}
	}
	if p.i >= len(s) || s[p.i] != '{' {
		return nil, 0, p.fail("Array value must start with \"{\" or dimension information.")
	}
	elems, dims, err = p.list()
	if err != nil {
		return nil, 0, err
	}
	p.space()
	if p.i < len(s) {
		return nil, 0, p.fail("Junk after closing right brace.")
	}
	return elems, dims, nil
}

// bounds moves past [l:u][l:u]=; the lower bound is not kept.
func (p *arrayParser) bounds() error {
	for p.i < len(p.s) && p.s[p.i] == '[' {
		end := strings.IndexByte(p.s[p.i:], ']')
		if end < 0 {
			return p.fail("Missing \"%s\" after array dimensions.", "]")
		}
		body := p.s[p.i+1 : p.i+end]
		for i, part := range strings.SplitN(body, ":", 2) {
			if _, rest, _ := num64(part); rest != "" || part == "" {
				if i == 0 {
					return p.fail("\"[\" must introduce explicitly-specified array dimensions.")
				}
				return p.fail("Missing array dimension value.")
			}
		}
		p.i += end + 1
		p.space()
	}
	if p.i >= len(p.s) || p.s[p.i] != '=' {
		return p.fail("Missing \"%s\" after array dimensions.", "=")
	}
	p.i++
	p.space()
	return nil
}

func (p *arrayParser) list() (elems []Element, dims int, err error) {
	p.depth++
	if p.depth > 6 {
		return nil, 0, pgerr.New(pgerr.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (6)", p.depth)
	}
	defer func() { p.depth-- }()
	p.i++ // {
	elems = []Element{}
	dims = 1
	for first := true; ; first = false {
		p.space()
		if p.i >= len(p.s) {
			return nil, 0, p.fail("Unexpected end of input.")
		}
		switch p.s[p.i] {
		case '}':
			if !first {
				return nil, 0, p.fail("Unexpected \"%c\" character.", '}')
			}
			p.i++
			return elems, dims, nil
		case ',':
			return nil, 0, p.fail("Unexpected \"%c\" character.", ',')
		case '{':
			if !first && (len(elems) > 0 && elems[0].Sub == nil) {
				return nil, 0, p.fail("Unexpected \"%c\" character.", '{')
			}
			sub, d, err := p.list()
			if err != nil {
				return nil, 0, err
			}
			if len(elems) > 0 && len(elems[0].Sub) != len(sub) {
				return nil, 0, p.fail("Multidimensional arrays must have sub-arrays with matching dimensions.")
			}
			dims = d + 1
			elems = append(elems, Element{Sub: sub})
		default:
			if len(elems) > 0 && elems[0].Sub != nil {
				return nil, 0, p.fail("Unexpected array element.")
			}
			e, err := p.scalar()
			if err != nil {
				return nil, 0, err
			}
			elems = append(elems, e)
		}
		p.space()
		if p.i >= len(p.s) {
			return nil, 0, p.fail("Unexpected end of input.")
		}
		switch p.s[p.i] {
		case ',':
			p.i++
		case '}':
			p.i++
			return elems, dims, nil
		case '{':
			return nil, 0, p.fail("Unexpected \"%c\" character.", '{')
		default:
			return nil, 0, p.fail("Unexpected array element.")
		}
	}
}

func (p *arrayParser) scalar() (Element, error) {
	var buf []byte
	if p.s[p.i] == '"' {
		p.i++
		for {
			if p.i >= len(p.s) {
				return Element{}, p.fail("Unexpected end of input.")
			}
			c := p.s[p.i]
			p.i++
			if c == '"' {
				break
			}
			if c == '\\' {
				if p.i >= len(p.s) {
					return Element{}, p.fail("Unexpected end of input.")
				}
				c = p.s[p.i]
				p.i++
			}
			buf = append(buf, c)
		}
		p.space()
		if p.i < len(p.s) && p.s[p.i] != ',' && p.s[p.i] != '}' {
			if p.s[p.i] == '"' {
				return Element{}, p.fail("Incorrectly quoted array element.")
			}
			if p.s[p.i] == '{' {
				return Element{}, p.fail("Unexpected \"%c\" character.", '{')
			}
			return Element{}, p.fail("Incorrectly quoted array element.")
		}
		return Element{Text: string(buf)}, nil
	}
	keep := 0 // bytes that are not blanks at the end
	escaped := false
	for {
		if p.i >= len(p.s) {
			return Element{}, p.fail("Unexpected end of input.")
		}
		c := p.s[p.i]
		if c == ',' || c == '}' {
			break
		}
		if c == '{' {
			return Element{}, p.fail("Unexpected \"%c\" character.", '{')
		}
		if c == '"' {
			return Element{}, p.fail("Incorrectly quoted array element.")
		}
		p.i++
		if c == '\\' {
			if p.i >= len(p.s) {
				return Element{}, p.fail("Unexpected end of input.")
			}
			buf = append(buf, p.s[p.i])
			p.i++
			keep, escaped = len(buf), true
			continue
		}
		buf = append(buf, c)
		if !isSpace(c) {
			keep = len(buf)
		}
	}
	text := string(buf[:keep])
	if !escaped && strings.EqualFold(text, "null") {
		return Element{Null: true}, nil
	}
	return Element{Text: text}, nil
}

func parseArrayDatum(t types.Type, s string, st *Style) (types.Datum, error) {
	if t.OnWireAsJSON() {
		if b := trim(s); b != "" && b[0] == '[' && !strings.Contains(b, "]=") {
			return FromJSON(t, s, st)
		}
	}
	elems, dims, err := ParseArray(s)
	if err != nil {
		return nil, err
	}
	return elementsDatum(t, elems, dims, st)
}

func elementsDatum(t types.Type, elems []Element, dims int, st *Style) (types.Datum, error) {
	et := types.Of(types.Text)
	if t.Elem != nil {
		et = *t.Elem
	}
	out := make([]types.Datum, len(elems))
	for i, e := range elems {
		var err error
		switch {
		case e.Null:
		case e.Sub != nil && et.Kind == types.Array:
			out[i], err = elementsDatum(et, e.Sub, dims-1, st)
		case e.Sub != nil:
			if dims > 1 && len(elems) == 1 && len(e.Sub) == 0 {
				return []types.Datum{}, nil
			}
			return nil, pgerr.New(pgerr.FeatureNotSupported, "multidimensional arrays are not supported")
		default:
			out[i], err = Parse(et, e.Text, st)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func parseRecord(t types.Type, s string, st *Style) (types.Datum, error) {
	if t.Kind == types.Record && len(t.Fields) == 0 {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "input of anonymous composite types is not implemented")
	}
	bad := func(detail string) (types.Datum, error) {
		return nil, pgerr.New(pgerr.InvalidTextRepresentation, "malformed record literal: \"%s\"", s).WithDetail("%s", detail)
	}
	b := strings.TrimLeft(s, " \t\r\n")
	if b == "" || b[0] != '(' {
		return bad("Missing left parenthesis.")
	}
	i := 1
	out := make([]types.Datum, len(t.Fields))
	for k := range t.Fields {
		if k > 0 {
			if i < len(b) && b[i] == ',' {
				i++
			} else {
				return bad("Too few columns.")
			}
		}
		if i < len(b) && (b[i] == ',' || b[i] == ')') {
			continue
		}
		var buf []byte
		quoted := false
		for {
			if i >= len(b) {
				return bad("Unexpected end of input.")
			}
			c := b[i]
			if !quoted && (c == ',' || c == ')') {
				break
			}
			i++
			switch c {
			case '\\':
				if i >= len(b) {
					return bad("Unexpected end of input.")
				}
				buf = append(buf, b[i])
				i++
			case '"':
				if quoted && i < len(b) && b[i] == '"' {
					buf = append(buf, '"')
					i++
				} else {
					quoted = !quoted
				}
			default:
				buf = append(buf, c)
			}
		}
		v, err := Parse(t.Fields[k].Type, string(buf), st)
		if err != nil {
			return nil, err
		}
		out[k] = v
	}
	if i < len(b) && b[i] == ',' {
		return bad("Too many columns.")
	}
	if i >= len(b) || b[i] != ')' {
		return bad("Unexpected end of input.")
	}
	if trim(b[i+1:]) != "" {
		return bad("Junk after right parenthesis.")
	}
	return out, nil
}
