package pgtext

import (
	"sort"
	"strconv"
	"unicode/utf8"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// MaxJSONDepth bounds the nesting of JSON texts; deeper ones are 54001.
const MaxJSONDepth = 6400

// CheckJSON reports whether s is a valid JSON text, as PostgreSQL's json type
// asks. The error is 22P02 with PostgreSQL's detail.
func CheckJSON(s string) error {
	p := jsonParser{s: s}
	_, err := p.document(nil)
	return err
}

// NormalizeJSONB returns the text form of the jsonb value that s denotes: keys
// by length, then bytes; the last of equal keys; one blank after ':' and ','.
func NormalizeJSONB(s string) (string, error) {
	p := jsonParser{s: s, build: true}
	out, err := p.document(make([]byte, 0, len(s)+16))
	if err != nil {
		return "", err
	}
	return string(out), nil
}

type jsonParser struct {
	s     string
	i     int
	depth int
	build bool
}

func (p *jsonParser) fail(detail string, args ...any) error {
	line := 1
	for _, c := range []byte(p.s[:min(p.i, len(p.s))]) {
		if c == '\n' {
			line++
		}
	}
	e := pgerr.New(pgerr.InvalidTextRepresentation, "invalid input syntax for type json").WithDetail(detail, args...)
	e.Context = "JSON data, line " + strconv.Itoa(line) + ": " + p.contextText()
	return e
}

// contextText is up to 50 bytes of the line before and at the error.
func (p *jsonParser) contextText() string {
	end := min(p.i, len(p.s))
	// The offending token belongs to the context.
	for end < len(p.s) && isJSONWord(p.s[end]) {
		end++
	}
	if end == p.i && end < len(p.s) {
		end++
	}
	start := end
	for start > 0 && p.s[start-1] != '\n' && end-start < 50 {
		start--
	}
	for start < end && !utf8.RuneStart(p.s[start]) {
		start++
	}
	for end < len(p.s) && !utf8.RuneStart(p.s[end]) {
		end++
	}
	pre, post := "", ""
	if start > 0 && p.s[start-1] != '\n' {
		pre = "..."
	}
	if end < len(p.s) && p.s[end] != '\n' && p.s[end] != '\r' {
		post = "..."
	}
	return pre + p.s[start:end] + post
}

func isJSONWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func (p *jsonParser) space() {
	for p.i < len(p.s) {
		switch p.s[p.i] {
		case ' ', '\t', '\n', '\r':
			p.i++
		default:
			return
		}
	}
}

// unexpected reports the token at p.i where `what` was expected.
func (p *jsonParser) unexpected(what string) error {
	if p.i >= len(p.s) {
		return p.fail("The input string ended unexpectedly.")
	}
	tok, ok := p.token()
	if !ok {
		return p.fail("Token \"%s\" is invalid.", tok)
	}
	return p.fail("%s, but found \"%s\".", what, tok)
}

// token returns the token at p.i and whether it is one of JSON's.
func (p *jsonParser) token() (string, bool) {
	c := p.s[p.i]
	switch c {
	case '{', '}', '[', ']', ',', ':':
		return p.s[p.i : p.i+1], true
	case '"':
		q := jsonParser{s: p.s, i: p.i}
		if _, err := q.str(nil, false); err == nil {
			return p.s[p.i:q.i], true
		}
		return p.s[p.i:], false
	}
	j := p.i
	if c == '-' || c >= '0' && c <= '9' {
		q := jsonParser{s: p.s, i: p.i}
		if ok := q.number(); ok {
			return p.s[p.i:q.i], true
		}
		return p.s[p.i:q.i], false
	}
	for j < len(p.s) && isJSONWord(p.s[j]) {
		j++
	}
	if j == p.i {
		_, n := utf8.DecodeRuneInString(p.s[j:])
		return p.s[p.i : j+n], false
	}
	w := p.s[p.i:j]
	return w, w == "true" || w == "false" || w == "null"
}

func (p *jsonParser) document(dst []byte) ([]byte, error) {
	dst, err := p.value(dst)
	if err != nil {
		return nil, err
	}
	p.space()
	if p.i < len(p.s) {
		return nil, p.unexpected("Expected end of input")
	}
	return dst, nil
}

// number moves past a number and reports whether it is well formed; on failure
// p.i is behind the whole malformed token.
func (p *jsonParser) number() bool {
	s, i := p.s, p.i
	ok := true
	if i < len(s) && s[i] == '-' {
		i++
	}
	digits := func() bool {
		from := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i > from
	}
	if i < len(s) && s[i] == '0' {
		i++
	} else {
		ok = digits()
	}
	if ok && i < len(s) && s[i] == '.' {
		i++
		ok = digits()
	}
	if ok && i < len(s) && s[i]|0x20 == 'e' {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		ok = digits()
	}
	for i < len(s) && (isJSONWord(s[i]) || !ok && s[i] == '.') {
		ok = false
		i++
	}
	p.i = i
	return ok
}

func (p *jsonParser) value(dst []byte) ([]byte, error) {
	p.space()
	if p.i >= len(p.s) {
		return nil, p.fail("The input string ended unexpectedly.")
	}
	switch c := p.s[p.i]; {
	case c == '{':
		return p.object(dst)
	case c == '[':
		return p.array(dst)
	case c == '"':
		from := len(dst)
		str, err := p.str(nil, p.build)
		if err != nil {
			return nil, err
		}
		_ = from
		if p.build {
			dst = AppendJSONString(dst, str)
		}
		return dst, nil
	case c == '-' || c >= '0' && c <= '9':
		from := p.i
		if !p.number() {
			end := p.i
			p.i = from
			return nil, p.fail("Token \"%s\" is invalid.", p.s[from:end])
		}
		if p.build {
			d, err := numeric.Parse(p.s[from:p.i])
			if err != nil {
				return nil, pgerr.New(pgerr.NumericValueOutOfRange, "value overflows numeric format")
			}
			dst = d.AppendText(dst)
		}
		return dst, nil
	}
	tok, ok := p.token()
	if !ok {
		return nil, p.fail("Token \"%s\" is invalid.", tok)
	}
	switch tok {
	case "true", "false", "null":
		p.i += len(tok)
		if p.build {
			dst = append(dst, tok...)
		}
		return dst, nil
	}
	return nil, p.fail("Expected JSON value, but found \"%s\".", tok)
}

func (p *jsonParser) enter() error {
	p.depth++
	if p.depth > MaxJSONDepth {
		return pgerr.New(pgerr.StatementTooComplex, "stack depth limit exceeded").
			WithHint("JSON may be nested %d levels deep.", MaxJSONDepth)
	}
	return nil
}

func (p *jsonParser) array(dst []byte) ([]byte, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	p.i++
	if p.build {
		dst = append(dst, '[')
	}
	p.space()
	if p.i < len(p.s) && p.s[p.i] == ']' {
		p.i++
		if p.build {
			dst = append(dst, ']')
		}
		return dst, nil
	}
	for first := true; ; first = false {
		var err error
		if !first && p.build {
			dst = append(dst, ", "...)
		}
		p.space()
		if first && p.i < len(p.s) {
			if tok, ok := p.token(); ok && (tok == "}" || tok == "," || tok == ":") {
				return nil, p.unexpected("Expected array element or \"]\"")
			}
		}
		if dst, err = p.value(dst); err != nil {
			return nil, err
		}
		p.space()
		if p.i < len(p.s) && p.s[p.i] == ',' {
			p.i++
			continue
		}
		if p.i < len(p.s) && p.s[p.i] == ']' {
			p.i++
			if p.build {
				dst = append(dst, ']')
			}
			return dst, nil
		}
		return nil, p.unexpected("Expected \",\" or \"]\"")
	}
}

type jsonMember struct {
	key      string
	from, to int // value within the scratch buffer
}

func (p *jsonParser) object(dst []byte) ([]byte, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	p.i++
	p.space()
	if p.i < len(p.s) && p.s[p.i] == '}' {
		p.i++
		if p.build {
			dst = append(dst, "{}"...)
		}
		return dst, nil
	}
	var members []jsonMember
	var scratch []byte
	for first := true; ; first = false {
		p.space()
		if p.i >= len(p.s) || p.s[p.i] != '"' {
			if first {
				return nil, p.unexpected("Expected string or \"}\"")
			}
			return nil, p.unexpected("Expected string")
		}
		key, err := p.str(nil, p.build)
		if err != nil {
			return nil, err
		}
		p.space()
		if p.i >= len(p.s) || p.s[p.i] != ':' {
			return nil, p.unexpected("Expected \":\"")
		}
		p.i++
		from := len(scratch)
		if scratch, err = p.value(scratch); err != nil {
			return nil, err
		}
		if p.build {
			members = append(members, jsonMember{string(key), from, len(scratch)})
		}
		p.space()
		if p.i < len(p.s) && p.s[p.i] == ',' {
			p.i++
			continue
		}
		if p.i < len(p.s) && p.s[p.i] == '}' {
			p.i++
			break
		}
		return nil, p.unexpected("Expected \",\" or \"}\"")
	}
	if !p.build {
		return dst, nil
	}
	sort.SliceStable(members, func(a, b int) bool { return JSONKeyLess(members[a].key, members[b].key) })
	dst = append(dst, '{')
	first := true
	for i, m := range members {
		if i+1 < len(members) && members[i+1].key == m.key {
			continue // the last one counts
		}
		if !first {
			dst = append(dst, ", "...)
		}
		first = false
		dst = AppendJSONString(dst, []byte(m.key))
		dst = append(dst, ": "...)
		dst = append(dst, scratch[m.from:m.to]...)
	}
	return append(dst, '}'), nil
}

// JSONKeyLess is jsonb's order of keys: by length in bytes, then bytes.
func JSONKeyLess(a, b string) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}

// str moves past a string; with decode it appends its content to dst.
func (p *jsonParser) str(dst []byte, decode bool) ([]byte, error) {
	s := p.s
	start := p.i
	i := p.i + 1
	high := rune(0)
	for {
		if i >= len(s) {
			p.i = start
			return nil, p.fail("Token \"%s\" is invalid.", s[start:])
		}
		c := s[i]
		if high != 0 && (c != '\\' || i+1 < len(s) && s[i+1] != 'u') {
			p.i = i
			return nil, p.fail("Unicode low surrogate must follow a high surrogate.")
		}
		switch {
		case c == '"':
			p.i = i + 1
			return dst, nil
		case c < 0x20:
			p.i = i
			return nil, p.fail("Character with value 0x%02x must be escaped.", c)
		case c != '\\':
			j := i + 1
			for j < len(s) && s[j] != '"' && s[j] != '\\' && s[j] >= 0x20 {
				j++
			}
			if decode {
				dst = append(dst, s[i:j]...)
			}
			i = j
			continue
		}
		i++
		if i >= len(s) {
			p.i = start
			return nil, p.fail("Token \"%s\" is invalid.", s[start:])
		}
		var out byte
		switch s[i] {
		case '"', '\\', '/':
			out = s[i]
		case 'b':
			out = '\b'
		case 'f':
			out = '\f'
		case 'n':
			out = '\n'
		case 'r':
			out = '\r'
		case 't':
			out = '\t'
		case 'u':
			r := rune(0)
			for k := 1; k <= 4; k++ {
				if i+k >= len(s) {
					p.i = start
					return nil, p.fail("Token \"%s\" is invalid.", s[start:])
				}
				h := unhex(s[i+k])
				if h < 0 {
					p.i = i
					return nil, p.fail("\"\\u\" must be followed by four hexadecimal digits.")
				}
				r = r<<4 | rune(h)
			}
			i += 5
			// PostgreSQL looks at surrogates only when it builds the string.
			if !decode {
				continue
			}
			switch {
			case r >= 0xd800 && r < 0xdc00:
				if high != 0 {
					p.i = i
					return nil, p.fail("Unicode high surrogate must not follow a high surrogate.")
				}
				high = r
				continue
			case r >= 0xdc00 && r < 0xe000:
				if high == 0 {
					p.i = i
					return nil, p.fail("Unicode low surrogate must follow a high surrogate.")
				}
				r = 0x10000 + (high-0xd800)<<10 + (r - 0xdc00)
				high = 0
			case high != 0:
				p.i = i
				return nil, p.fail("Unicode low surrogate must follow a high surrogate.")
			case r == 0:
				e := pgerr.New(pgerr.UntranslatableCharacter, "unsupported Unicode escape sequence").
					WithDetail("\\u0000 cannot be converted to text.")
				p.i = i
				e.Context = "JSON data, line 1: " + p.contextText()
				return nil, e
			}
			dst = utf8.AppendRune(dst, r)
			continue
		default:
			_, n := utf8.DecodeRuneInString(s[i:])
			p.i = i
			return nil, p.fail("Escape sequence \"\\%s\" is invalid.", s[i:i+n])
		}
		if decode {
			dst = append(dst, out)
		}
		i++
	}
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// AppendJSONString appends s as a JSON string with PostgreSQL's escapes.
func AppendJSONString(dst, s []byte) []byte {
	dst = append(dst, '"')
	from := 0
	for i, c := range s {
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}
