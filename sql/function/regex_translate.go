package function

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// errBacktrack says that a pattern needs the backtracking matcher.
var errBacktrack = errors.New("needs backtracking")

// translateRegex turns PostgreSQL's syntax into Go's. greedy is false when a
// non-greedy quantifier occurs. body and bf are the pattern and flags with the
// options at its start applied.
func translateRegex(p string, f regexFlags) (out string, greedy bool, body string, bf regexFlags, err error) {
	switch {
	case strings.HasPrefix(p, "***="):
		f.literal = true
		p = p[4:]
	case strings.HasPrefix(p, "***:"):
		p = p[4:]
	case strings.HasPrefix(p, "***"):
		return "", true, p, f, errRegex("quantifier operand invalid")
	}
	if !f.literal && strings.HasPrefix(p, "(?") {
		end := strings.IndexByte(p, ')')
		if end > 2 && strings.IndexFunc(p[2:end], func(r rune) bool { return r < 'a' || r > 'z' }) < 0 {
			for i := 2; i < end; i++ {
				if !f.applyFlag(p[i]) || p[i] == 'g' {
					return "", true, p, f, errRegex("invalid embedded option")
				}
			}
			p = p[end+1:]
		}
	}
	flags := ""
	if f.icase {
		flags += "i"
	}
	if !f.newlineDot {
		flags += "s"
	}
	if f.newlineAnchor {
		flags += "m"
	}
	prefix := ""
	if flags != "" {
		prefix = "(?" + flags + ")"
	}
	if f.literal {
		return prefix + regexp.QuoteMeta(p), true, p, f, nil
	}
	t := &regexTranslator{p: p, f: f, greedy: true}
	if err := t.run(); err != nil {
		return "", true, p, f, err
	}
	return prefix + t.out.String(), t.greedy, p, f, nil
}

type regexTranslator struct {
	p      string
	i      int
	f      regexFlags
	out    strings.Builder
	greedy bool
	depth  int
	atom   bool // something stands before that a quantifier may follow
}

func (t *regexTranslator) run() error {
	p := t.p
	for t.i < len(p) {
		c := p[t.i]
		switch c {
		case '\\':
			if err := t.escape(false); err != nil {
				return err
			}
		case '[':
			if err := t.bracket(); err != nil {
				return err
			}
			t.atom = true
		case '(':
			if strings.HasPrefix(p[t.i:], "(?:") {
				t.out.WriteString("(?:")
				t.i += 3
				t.depth++
				t.atom = false
				continue
			}
			if strings.HasPrefix(p[t.i:], "(?#") {
				end := strings.IndexByte(p[t.i:], ')')
				if end < 0 {
					return errRegex("parentheses () not balanced")
				}
				t.i += end + 1
				continue
			}
			if strings.HasPrefix(p[t.i:], "(?=") || strings.HasPrefix(p[t.i:], "(?!") || strings.HasPrefix(p[t.i:], "(?<") {
				return errBacktrack
			}
			if strings.HasPrefix(p[t.i:], "(?") {
				return errRegex("quantifier operand invalid")
			}
			t.out.WriteByte('(')
			t.i++
			t.depth++
			t.atom = false
		case ')':
			if t.depth == 0 {
				return errRegex("parentheses () not balanced")
			}
			t.depth--
			t.out.WriteByte(')')
			t.i++
			t.atom = true
		case '*', '+', '?':
			if !t.atom {
				return errRegex("quantifier operand invalid")
			}
			t.out.WriteByte(c)
			t.i++
			t.lazy()
		case '{':
			if t.i+1 < len(p) && p[t.i+1] >= '0' && p[t.i+1] <= '9' {
				if !t.atom {
					return errRegex("quantifier operand invalid")
				}
				if err := t.bounds(); err != nil {
					return err
				}
				continue
			}
			t.out.WriteString(`\{`)
			t.i++
			t.atom = true
		case '|':
			t.out.WriteByte('|')
			t.i++
			t.atom = false
		case '^':
			t.out.WriteByte('^')
			t.i++
			t.atom = false
		case '$':
			if t.f.newlineAnchor {
				t.out.WriteByte('$')
			} else {
				t.out.WriteString(`\z`)
			}
			t.i++
			t.atom = false
		case '.':
			t.out.WriteByte('.')
			t.i++
			t.atom = true
		case '}', ']':
			t.out.WriteByte('\\')
			t.out.WriteByte(c)
			t.i++
			t.atom = true
		case ' ', '\t', '\n', '\r', '\f', '\v', '#':
			if t.f.expanded {
				if c == '#' {
					for t.i < len(p) && p[t.i] != '\n' {
						t.i++
					}
				} else {
					t.i++
				}
				continue
			}
			t.out.WriteByte(c)
			t.i++
			t.atom = true
		default:
			_, n := utf8.DecodeRuneInString(p[t.i:])
			t.out.WriteString(p[t.i : t.i+n])
			t.i += n
			t.atom = true
		}
	}
	if t.depth > 0 {
		return errRegex("parentheses () not balanced")
	}
	return nil
}

// lazy takes a ? behind a quantifier; a second quantifier is an error.
func (t *regexTranslator) lazy() {
	if t.i < len(t.p) && t.p[t.i] == '?' {
		t.out.WriteByte('?')
		t.i++
		t.greedy = false
	}
	t.atom = false
}

func (t *regexTranslator) bounds() error {
	end := strings.IndexByte(t.p[t.i:], '}')
	if end < 0 {
		return errRegex("braces {} not balanced")
	}
	body := t.p[t.i+1 : t.i+end]
	lo, hi, two := strings.Cut(body, ",")
	num := func(s string) (int, bool) {
		n, err := strconv.Atoi(s)
		return n, err == nil && n >= 0 && n <= 255
	}
	a, ok := num(lo)
	if !ok {
		return errRegex("invalid repetition count(s)")
	}
	if two && hi != "" {
		b, ok := num(hi)
		if !ok || b < a {
			return errRegex("invalid repetition count(s)")
		}
	}
	t.out.WriteString("{" + body + "}")
	t.i += end + 1
	t.lazy()
	return nil
}

// escape translates a backslash sequence at t.i; in brackets only characters and
// classes are allowed.
func (t *regexTranslator) escape(inBracket bool) error {
	p := t.p
	t.i++
	if t.i >= len(p) {
		return errRegex("invalid escape \\ sequence")
	}
	c := p[t.i]
	lit := func(r rune, n int) error {
		t.out.WriteString(`\x{` + strconv.FormatInt(int64(r), 16) + `}`)
		t.i += n
		t.atom = true
		return nil
	}
	class := func(plain, inner string) error {
		if inBracket {
			if inner == "" {
				return errRegex("invalid escape \\ sequence")
			}
			t.out.WriteString(inner)
		} else {
			t.out.WriteString(plain)
		}
		t.i++
		t.atom = true
		return nil
	}
	anchor := func(s string) error {
		if inBracket {
			return errRegex("invalid escape \\ sequence")
		}
		t.out.WriteString(s)
		t.i++
		t.atom = false
		return nil
	}
	hexRun := func(count int, exact bool) error {
		n := 0
		var v rune
		for n < count && t.i+1+n < len(p) {
			h := p[t.i+1+n]
			d := strings.IndexByte("0123456789abcdef", h|0x20)
			if d < 0 || h < '0' {
				break
			}
			v = v<<4 | rune(d)
			n++
		}
		if n == 0 || exact && n != count || v > utf8.MaxRune {
			return errRegex("invalid escape \\ sequence")
		}
		return lit(v, n+1)
	}
	switch c {
	case 'd':
		return class(`[[:digit:]]`, `[:digit:]`)
	case 'w':
		return class(`[[:alnum:]_]`, `[:alnum:]_`)
	case 's':
		return class(`[[:space:]]`, `[:space:]`)
	case 'D':
		return class(`[^[:digit:]]`, "")
	case 'W':
		return class(`[^[:alnum:]_]`, "")
	case 'S':
		return class(`[^[:space:]]`, "")
	case 'A':
		return anchor(`\A`)
	case 'Z':
		return anchor(`\z`)
	case 'y':
		return anchor(`\b`)
	case 'Y':
		return anchor(`\B`)
	case 'm', 'M':
		// Start and end of a word: a boundary; which of the two follows from
		// what stands beside it in all but contrived patterns.
		return anchor(`\b`)
	case 'a':
		return lit(7, 1)
	case 'b':
		return lit(8, 1)
	case 'B':
		return lit('\\', 1)
	case 'e':
		return lit(27, 1)
	case 'f':
		return lit(12, 1)
	case 'n':
		return lit(10, 1)
	case 'r':
		return lit(13, 1)
	case 't':
		return lit(9, 1)
	case 'v':
		return lit(11, 1)
	case 'c':
		if t.i+1 >= len(p) {
			return errRegex("invalid escape \\ sequence")
		}
		return lit(rune(p[t.i+1]&31), 2)
	case 'x':
		return hexRun(255, false)
	case 'u':
		return hexRun(4, true)
	case 'U':
		return hexRun(8, true)
	case '0':
		return lit(0, 1)
	}
	if c >= '1' && c <= '9' {
		if inBracket {
			return errRegex("invalid escape \\ sequence")
		}
		return errBacktrack
	}
	if isAlnumASCII(c) {
		return errRegex("invalid escape \\ sequence")
	}
	r, n := utf8.DecodeRuneInString(p[t.i:])
	return lit(r, n)
}

// bracket translates a bracket expression at t.i.
func (t *regexTranslator) bracket() error {
	p := t.p
	for _, w := range []string{"[[:<:]]", "[[:>:]]"} {
		if strings.HasPrefix(p[t.i:], w) {
			t.out.WriteString(`\b`)
			t.i += len(w)
			return nil
		}
	}
	t.out.WriteByte('[')
	t.i++
	if t.i < len(p) && p[t.i] == '^' {
		t.out.WriteByte('^')
		if t.f.newlineDot {
			t.out.WriteString(`\n`)
		}
		t.i++
	}
	for first := true; ; first = false {
		if t.i >= len(p) {
			return errRegex("brackets [] not balanced")
		}
		c := p[t.i]
		switch {
		case c == ']' && !first:
			t.out.WriteByte(']')
			t.i++
			return nil
		case c == '\\':
			if err := t.escape(true); err != nil {
				return err
			}
		case strings.HasPrefix(p[t.i:], "[:"):
			end := strings.Index(p[t.i:], ":]")
			if end < 0 {
				return errRegex("brackets [] not balanced")
			}
			name := p[t.i+2 : t.i+end]
			switch name {
			case "alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit", "ascii", "word":
			default:
				return errRegex("invalid character class")
			}
			t.out.WriteString("[:" + name + ":]")
			t.i += end + 2
		case strings.HasPrefix(p[t.i:], "[.") || strings.HasPrefix(p[t.i:], "[="):
			mark := p[t.i+1 : t.i+2]
			end := strings.Index(p[t.i+2:], mark+"]")
			if end < 0 {
				return errRegex("brackets [] not balanced")
			}
			name := p[t.i+2 : t.i+2+end]
			if utf8.RuneCountInString(name) != 1 {
				return errRegex("invalid collating element")
			}
			r, _ := utf8.DecodeRuneInString(name)
			t.out.WriteString(`\x{` + strconv.FormatInt(int64(r), 16) + `}`)
			t.i += end + 4
		case c == '-':
			// A range only between two characters; elsewhere itself.
			if !first && t.i+1 < len(p) && p[t.i+1] != ']' {
				t.out.WriteByte('-')
			} else {
				t.out.WriteString(`\-`)
			}
			t.i++
		default:
			r, n := utf8.DecodeRuneInString(p[t.i:])
			t.out.WriteString(`\x{` + strconv.FormatInt(int64(r), 16) + `}`)
			t.i += n
		}
	}
}
