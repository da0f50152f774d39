package function

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Regular expressions. PostgreSQL's "advanced" syntax is translated to Go's RE2
// syntax; matching is leftmost-longest as in PostgreSQL, or leftmost-first when
// the pattern has non-greedy quantifiers. Patterns with back references or
// look-around, which have no counterpart in a linear-time matcher, go to
// regexback.go.

type pgRegex struct {
	re     *regexp.Regexp // nil when back is used
	back   *btRegex
	groups int
	empty  bool // matches the empty string
	body   string
	flags  regexFlags
}

// match reports whether s contains a match.
func (r *pgRegex) match(s []byte) (bool, error) {
	if r.back != nil {
		m, err := r.back.find(string(s), 0)
		return m != nil, err
	}
	return r.re.Match(s), nil
}

// find returns the first match, nil when there is none.
func (r *pgRegex) find(s string) ([]int, error) {
	if r.back != nil {
		return r.back.find(s, 0)
	}
	return r.re.FindStringSubmatchIndex(s), nil
}

// findFrom finds the first match at or behind byte at. Anchors and word
// boundaries see what stands before: package regexp cannot start in the middle
// with context, so patterns with them go to the backtracking matcher there.
func (r *pgRegex) findFrom(s string, at int) ([]int, error) {
	if r.back != nil {
		return r.back.find(s, at)
	}
	if at == 0 {
		return r.re.FindStringSubmatchIndex(s), nil
	}
	if anchored(r.re) {
		bt, err := compileBacktrack(r.body, r.flags)
		if err != nil {
			return nil, err
		}
		return bt.find(s, at)
	}
	m := r.re.FindStringSubmatchIndex(s[at:])
	for i := range m {
		if m[i] >= 0 {
			m[i] += at
		}
	}
	return m, nil
}

// all returns the matches from byte at on, one behind the other; an empty match
// moves on by one character.
func (r *pgRegex) all(s string, at int) ([][]int, error) {
	if r.back == nil && at == 0 {
		ms := r.re.FindAllStringSubmatchIndex(s, -1)
		if !r.empty || len(ms) == 0 {
			return ms, nil
		}
		// Package regexp leaves out an empty match right behind another one.
		var out [][]int
		for i, m := range ms {
			out = append(out, m)
			e := m[1]
			if m[0] == e || i+1 < len(ms) && ms[i+1][0] == e || anchored(r.re) {
				continue
			}
			if x := r.re.FindStringSubmatchIndex(s[e:]); x != nil && x[1] == 0 {
				for k := range x {
					if x[k] >= 0 {
						x[k] += e
					}
				}
				out = append(out, x)
			}
		}
		return out, nil
	}
	var out [][]int
	for at <= len(s) {
		m, err := r.findFrom(s, at)
		if err != nil {
			return nil, err
		}
		if m == nil {
			break
		}
		out = append(out, append([]int(nil), m...))
		at = m[1]
		if m[0] == m[1] {
			if at >= len(s) {
				break
			}
			_, n := utf8.DecodeRuneInString(s[at:])
			at += n
		}
	}
	return out, nil
}

func errRegex(text string) error {
	return pgerr.New(pgerr.InvalidRegularExpression, "invalid regular expression: %s", text)
}

// regexFlags are the options of the regexp_* functions and of (?flags).
type regexFlags struct {
	icase, newlineDot, newlineAnchor, expanded, literal, global bool
	basic                                                       bool
}

// applyFlag sets one flag letter; ok is false for an unknown one.
func (f *regexFlags) applyFlag(c byte) bool {
	switch c {
	case 'i':
		f.icase = true
	case 'c':
		f.icase = false
	case 'n', 'm':
		f.newlineDot, f.newlineAnchor = true, true
	case 'p':
		f.newlineDot, f.newlineAnchor = true, false
	case 'w':
		f.newlineDot, f.newlineAnchor = false, true
	case 's':
		f.newlineDot, f.newlineAnchor = false, false
	case 'x':
		f.expanded = true
	case 't':
		f.expanded = false
	case 'q':
		f.literal = true
	case 'e':
		f.literal, f.basic = false, false
	case 'b':
		f.basic = true
	case 'g':
		f.global = true
	default:
		return false
	}
	return true
}

func parseRegexFlags(s string, allowGlobal bool, fn string) (regexFlags, error) {
	var f regexFlags
	for i := 0; i < len(s); i++ {
		if s[i] == 'g' && !allowGlobal {
			return f, pgerr.New(pgerr.InvalidParameterValue, "%s does not support the \"global\" option", fn)
		}
		if !f.applyFlag(s[i]) {
			_, n := utf8.DecodeRuneInString(s[i:])
			return f, pgerr.New(pgerr.InvalidParameterValue, "invalid regular expression option: \"%s\"", s[i:i+n])
		}
	}
	return f, nil
}

var regexCache sync.Map // string to *pgRegex

var regexCached struct {
	sync.Mutex
	n int
}

// compileRegex compiles a pattern, keeping the last few hundred.
func compileRegex(pat string, f regexFlags) (*pgRegex, error) {
	f.global = false
	key := pat + "\x00" + flagKey(f)
	if r, ok := regexCache.Load(key); ok {
		return r.(*pgRegex), nil
	}
	var r *pgRegex
	goPat, greedy, body, bf, err := translateRegex(pat, f)
	switch {
	case errors.Is(err, errBacktrack):
		bt, err := compileBacktrack(body, bf)
		if err != nil {
			return nil, err
		}
		r = &pgRegex{back: bt, groups: bt.groups}
	case err != nil:
		return nil, err
	default:
		re, err := regexp.Compile(goPat)
		if err != nil {
			return nil, regexError(err)
		}
		if greedy {
			re.Longest()
		}
		r = &pgRegex{re: re, groups: re.NumSubexp(), empty: re.MatchString(""), body: body, flags: bf}
	}
	regexCached.Lock()
	if regexCached.n++; regexCached.n > 500 {
		regexCache.Clear()
		regexCached.n = 1
	}
	regexCached.Unlock()
	regexCache.Store(key, r)
	return r, nil
}

func flagKey(f regexFlags) string {
	b := []byte{'0', '0', '0', '0', '0', '0'}
	for i, v := range []bool{f.icase, f.newlineDot, f.newlineAnchor, f.expanded, f.literal, f.basic} {
		if v {
			b[i] = '1'
		}
	}
	return string(b)
}

func regexError(err error) error {
	var e *syntax.Error
	if errors.As(err, &e) {
		switch e.Code {
		case syntax.ErrMissingBracket:
			return errRegex("brackets [] not balanced")
		case syntax.ErrMissingParen, syntax.ErrUnexpectedParen:
			return errRegex("parentheses () not balanced")
		case syntax.ErrMissingRepeatArgument, syntax.ErrInvalidRepeatOp:
			return errRegex("quantifier operand invalid")
		case syntax.ErrInvalidRepeatSize:
			return errRegex("invalid repetition count(s)")
		case syntax.ErrInvalidCharRange:
			return errRegex("invalid character range")
		case syntax.ErrInvalidEscape, syntax.ErrTrailingBackslash:
			return errRegex("invalid escape \\ sequence")
		}
		return errRegex(string(e.Code))
	}
	return errRegex(err.Error())
}

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

// regexMatch is x ~ pattern and its kin.
func regexMatch(icase, negate bool) Kernel {
	k := func(c *Call, args []vec.Vec) (arrow.Array, error) {
		n := rowsOf(c, args)
		valid, none := strictValid(n, args)
		if none {
			return vec.MakeNull(arrow.FixedWidthTypes.Boolean, n), nil
		}
		text := reader[[]byte](args[0], types.Of(types.Text))
		pats := reader[string](args[1], types.Of(types.Text))
		out := make([]uint8, n)
		f := regexFlags{icase: icase}
		var re *pgRegex
		var err error
		if args[1].Const {
			if re, err = compileRegex(pats(0), f); err != nil {
				return nil, err
			}
		}
		var fail error
		rowsLoop(n, selOf(c, args), valid, func(i int) {
			r := re
			if r == nil {
				if r, err = compileRegex(pats(i), f); err != nil {
					fail = err
					return
				}
			}
			ok, err := r.match(text(i))
			if err != nil {
				fail = err
				return
			}
			out[i] = u8(ok != negate)
		})
		if fail != nil {
			return nil, fail
		}
		return boolResult(n, out, valid), nil
	}
	return onDict(k)
}

func regexOps() []*Overload {
	var out []*Overload
	for _, o := range []struct {
		op        string
		icase, no bool
		doc       string
	}{
		{"~", false, false, "Whether a string matches a regular expression."},
		{"!~", false, true, "Whether a string does not match a regular expression."},
		{"~*", true, false, "Whether a string matches a regular expression without regard to case."},
		{"!~*", true, true, "Whether a string does not match a regular expression without regard to case."},
	} {
		for _, l := range []types.Kind{types.Text, types.BpChar, types.Name} {
			out = append(out, &Overload{Name: o.op, Args: []types.Type{types.Of(l), tText}, Ret: tBool, Strict: true, Kernel: regexMatch(o.icase, o.no), Doc: o.doc})
		}
	}
	return out
}

// expandReplacement appends a replacement text with \1..\9, \& and \\ filled in.
func expandReplacement(dst []byte, repl string, s string, m []int) []byte {
	for i := 0; i < len(repl); i++ {
		if repl[i] != '\\' || i+1 >= len(repl) {
			dst = append(dst, repl[i])
			continue
		}
		i++
		switch c := repl[i]; {
		case c == '&':
			dst = append(dst, s[m[0]:m[1]]...)
		case c >= '1' && c <= '9':
			k := int(c-'0') * 2
			if k+1 < len(m) && m[k] >= 0 {
				dst = append(dst, s[m[k]:m[k+1]]...)
			}
		case c == '\\':
			dst = append(dst, '\\')
		default:
			dst = append(dst, '\\', c)
		}
	}
	return dst
}

func anchored(re *regexp.Regexp) bool {
	p := re.String()
	return strings.Contains(p, "^") || strings.Contains(p, `\A`) || strings.Contains(p, `\b`) || strings.Contains(p, `\B`)
}

// matchesFrom collects matches from character start (1-based).
func matchesFrom(re *pgRegex, s string, start int) ([][]int, error) {
	off := 0
	if start > 1 {
		if start-1 > utf8.RuneCountInString(s) {
			return nil, nil
		}
		off = chars([]byte(s), start-1)
	}
	return re.all(s, off)
}

func groupDatum(s string, m []int, g int) types.Datum {
	if 2*g+1 >= len(m) || m[2*g] < 0 {
		return nil
	}
	return s[m[2*g]:m[2*g+1]]
}

// groupsDatum is the text[] of a match: its groups, or all of it.
func groupsDatum(re *pgRegex, s string, m []int) []types.Datum {
	if re.groups == 0 {
		return []types.Datum{s[m[0]:m[1]]}
	}
	out := make([]types.Datum, re.groups)
	for g := range out {
		out[g] = groupDatum(s, m, g+1)
	}
	return out
}

func strArg(a []types.Datum, i int) string {
	if i < len(a) {
		if s, ok := a[i].(string); ok {
			return s
		}
	}
	return ""
}

func intArg(a []types.Datum, i int, d int64) int64 {
	if i < len(a) {
		if v, ok := a[i].(int64); ok {
			return v
		}
	}
	return d
}

func checkPositive(name string, v, least int64) error {
	if v < least {
		return pgerr.New(pgerr.InvalidParameterValue, "invalid value for parameter \"%s\": %d", name, v)
	}
	return nil
}

func regexReplace(s, pat, repl string, f regexFlags, start, nth int64) (string, error) {
	re, err := compileRegex(pat, f)
	if err != nil {
		return "", err
	}
	var out []byte
	last, k := 0, int64(0)
	ms, err := matchesFrom(re, s, int(start))
	if err != nil {
		return "", err
	}
	for _, m := range ms {
		k++
		if nth > 0 && k != nth {
			continue
		}
		out = append(out, s[last:m[0]]...)
		out = expandReplacement(out, repl, s, m)
		last = m[1]
		if nth > 0 || !f.global {
			break
		}
	}
	return string(append(out, s[last:]...)), nil
}

func regexSplit(s, pat, flags, fn string) ([]types.Datum, error) {
	f, err := parseRegexFlags(flags, false, fn+"()")
	if err != nil {
		return nil, err
	}
	re, err := compileRegex(pat, f)
	if err != nil {
		return nil, err
	}
	out := []types.Datum{}
	last := 0
	ms, err := re.all(s, 0)
	if err != nil {
		return nil, err
	}
	for _, m := range ms {
		// An empty match at the ends or right behind the last one cuts nothing.
		if m[1] == m[0] && (m[0] >= len(s) || m[0] <= last && m[0] == 0 || m[0] == last) {
			continue
		}
		out = append(out, s[last:m[0]])
		last = m[1]
	}
	return append(out, s[last:]), nil
}

// similarToRegex is similar_to_escape: SQL's SIMILAR TO pattern as a regular
// expression. esc is nil for the default, "" for none.
func similarToRegex(pat string, esc *string) (string, error) {
	e := "\\"
	if esc != nil {
		e = *esc
		if utf8.RuneCountInString(e) > 1 {
			return "", pgerr.New(pgerr.InvalidEscapeSequence, "invalid escape string").WithHint("Escape string must be empty or one character.")
		}
	}
	var b strings.Builder
	b.WriteString("^(?:")
	quotes, inClass, afterEsc := 0, false, false
	for i := 0; i < len(pat); {
		_, n := utf8.DecodeRuneInString(pat[i:])
		c := pat[i : i+n]
		i += n
		switch {
		case afterEsc:
			if c == `"` && !inClass {
				// The separators of substring(x similar y escape z).
				if quotes == 0 {
					b.WriteString("){1,1}?(")
				} else if quotes == 1 {
					b.WriteString("){1,1}(?:")
				} else {
					return "", pgerr.New(pgerr.InvalidEscapeSequence, "SQL regular expression may not contain more than two escape-double-quote separators")
				}
				quotes++
			} else {
				b.WriteByte('\\')
				b.WriteString(c)
			}
			afterEsc = false
		case e != "" && c == e:
			afterEsc = true
		case inClass:
			if c == `\` {
				b.WriteByte('\\')
			}
			b.WriteString(c)
			if c == "]" {
				inClass = false
			}
		case c == "[":
			b.WriteString(c)
			inClass = true
		case c == "%":
			b.WriteString(".*")
		case c == "_":
			b.WriteByte('.')
		case c == "(":
			b.WriteString("(?:")
		case c == `\` || c == "." || c == "^" || c == "$":
			b.WriteByte('\\')
			b.WriteString(c)
		default:
			b.WriteString(c)
		}
	}
	b.WriteString(")$")
	return b.String(), nil
}

// sqlSubstring is substring(s similar p escape e).
func sqlSubstring(s, pat string, esc *string) (types.Datum, error) {
	rx, err := similarToRegex(pat, esc)
	if err != nil {
		return nil, err
	}
	// Go refuses {1,1}? around groups nowhere; the three parts become groups.
	rx = strings.NewReplacer("^(?:", "^(?:", "){1,1}?(", ")(", "){1,1}(?:", ")(?:").Replace(rx)
	first := strings.Index(rx, ")(")
	re, err := compileRegex(rx, regexFlags{})
	if err != nil {
		return nil, err
	}
	m, err := re.find(s)
	if m == nil || err != nil {
		return nil, err
	}
	if first >= 0 && re.groups > 0 {
		return groupDatum(s, m, 1), nil
	}
	return s[m[0]:m[1]], nil
}

func regexFunctions() []*Overload {
	var out []*Overload
	tArr := types.ArrayOf(tText)
	add := func(name string, ret types.Type, f func(c *Call, a []types.Datum) (types.Datum, error), doc string, args ...types.Type) *Overload {
		o := &Overload{Name: name, Args: args, Ret: ret, Strict: true, Kernel: onDict(strictRowFn(f)), Doc: doc}
		out = append(out, o)
		return o
	}
	add("substring", tText, func(_ *Call, a []types.Datum) (types.Datum, error) {
		re, err := compileRegex(a[1].(string), regexFlags{})
		if err != nil {
			return nil, err
		}
		s := a[0].(string)
		m, err := re.find(s)
		if m == nil || err != nil {
			return nil, err
		}
		if re.groups > 0 {
			return groupDatum(s, m, 1), nil
		}
		return s[m[0]:m[1]], nil
	}, "Part of a string that matches a regular expression, or its first group.", tText, tText)
	add("substring", tText, func(_ *Call, a []types.Datum) (types.Datum, error) {
		e := a[2].(string)
		return sqlSubstring(a[0].(string), a[1].(string), &e)
	}, "Part of a string that matches an SQL regular expression.", tText, tText, tText)
	add("similar_to_escape", tText, func(_ *Call, a []types.Datum) (types.Datum, error) {
		r, err := similarToRegex(a[0].(string), nil)
		return r, err
	}, "A SIMILAR TO pattern as a regular expression.", tText)
	add("similar_to_escape", tText, func(_ *Call, a []types.Datum) (types.Datum, error) {
		e := a[1].(string)
		r, err := similarToRegex(a[0].(string), &e)
		return r, err
	}, "A SIMILAR TO pattern with an escape character as a regular expression.", tText, tText)
	match := func(_ *Call, a []types.Datum) (types.Datum, error) {
		f, err := parseRegexFlags(strArg(a, 2), true, "regexp_match()")
		if err != nil {
			return nil, err
		}
		if f.global {
			return nil, pgerr.New(pgerr.InvalidParameterValue, "regexp_match() does not support the \"global\" option").
				WithHint("Use the regexp_matches function instead.")
		}
		re, err := compileRegex(a[1].(string), f)
		if err != nil {
			return nil, err
		}
		s := a[0].(string)
		m, err := re.find(s)
		if m == nil || err != nil {
			return nil, err
		}
		return groupsDatum(re, s, m), nil
	}
	add("regexp_match", tArr, match, "Groups of the first match of a regular expression.", tText, tText)
	add("regexp_match", tArr, match, "Groups of the first match of a regular expression, with flags.", tText, tText, tText)
	replace := func(_ *Call, a []types.Datum) (types.Datum, error) {
		fl := strArg(a, 3)
		if fl != "" && fl[0] >= '0' && fl[0] <= '9' {
			return nil, pgerr.New(pgerr.InvalidParameterValue, "invalid regular expression option: \"%s\"", fl[:1]).
				WithHint("If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.")
		}
		f, err := parseRegexFlags(fl, true, "regexp_replace()")
		if err != nil {
			return nil, err
		}
		r, err := regexReplace(a[0].(string), a[1].(string), a[2].(string), f, 1, 0)
		return r, err
	}
	add("regexp_replace", tText, replace, "The string with the first match replaced.", tText, tText, tText)
	add("regexp_replace", tText, replace, "The string with matches replaced, with flags.", tText, tText, tText, tText)
	replaceN := func(_ *Call, a []types.Datum) (types.Datum, error) {
		start, n := intArg(a, 3, 1), intArg(a, 4, 1)
		if err := checkPositive("start", start, 1); err != nil {
			return nil, err
		}
		if err := checkPositive("n", n, 0); err != nil {
			return nil, err
		}
		f, err := parseRegexFlags(strArg(a, 5), true, "regexp_replace()")
		if err != nil {
			return nil, err
		}
		if n == 0 {
			f.global = true
		}
		if len(a) == 4 {
			n = 1
		}
		r, err := regexReplace(a[0].(string), a[1].(string), a[2].(string), f, start, n)
		return r, err
	}
	add("regexp_replace", tText, replaceN, "The string with the first match from a position replaced.", tText, tText, tText, tInt4)
	add("regexp_replace", tText, replaceN, "The string with the n-th match from a position replaced, 0 for all.", tText, tText, tText, tInt4, tInt4)
	add("regexp_replace", tText, replaceN, "The string with the n-th match from a position replaced, with flags.", tText, tText, tText, tInt4, tInt4, tText)
	splitArr := func(_ *Call, a []types.Datum) (types.Datum, error) {
		r, err := regexSplit(a[0].(string), a[1].(string), strArg(a, 2), "regexp_split_to_array")
		if err != nil {
			return nil, err
		}
		return r, nil
	}
	add("regexp_split_to_array", tArr, splitArr, "Parts of a string between the matches.", tText, tText)
	add("regexp_split_to_array", tArr, splitArr, "Parts of a string between the matches, with flags.", tText, tText, tText)
	like := func(_ *Call, a []types.Datum) (types.Datum, error) {
		f, err := parseRegexFlags(strArg(a, 2), false, "regexp_like()")
		if err != nil {
			return nil, err
		}
		re, err := compileRegex(a[1].(string), f)
		if err != nil {
			return nil, err
		}
		ok, err := re.match([]byte(a[0].(string)))
		return ok, err
	}
	add("regexp_like", tBool, like, "Whether a string matches a regular expression.", tText, tText)
	add("regexp_like", tBool, like, "Whether a string matches a regular expression, with flags.", tText, tText, tText)
	count := func(_ *Call, a []types.Datum) (types.Datum, error) {
		start := intArg(a, 2, 1)
		if err := checkPositive("start", start, 1); err != nil {
			return nil, err
		}
		f, err := parseRegexFlags(strArg(a, 3), false, "regexp_count()")
		if err != nil {
			return nil, err
		}
		re, err := compileRegex(a[1].(string), f)
		if err != nil {
			return nil, err
		}
		ms, err := matchesFrom(re, a[0].(string), int(start))
		return int64(len(ms)), err
	}
	add("regexp_count", tInt4, count, "Number of matches of a regular expression.", tText, tText)
	add("regexp_count", tInt4, count, "Number of matches from a position.", tText, tText, tInt4)
	add("regexp_count", tInt4, count, "Number of matches from a position, with flags.", tText, tText, tInt4, tText)
	instr := func(_ *Call, a []types.Datum) (types.Datum, error) {
		start, n, end, sub := intArg(a, 2, 1), intArg(a, 3, 1), intArg(a, 4, 0), intArg(a, 6, 0)
		for _, c := range []struct {
			name     string
			v, least int64
		}{{"start", start, 1}, {"n", n, 1}, {"endoption", end, 0}, {"endoption", 1 - end, 0}, {"subexpr", sub, 0}} {
			if c.v < c.least {
				v := c.v
				if c.name == "endoption" {
					v = end
				}
				return nil, pgerr.New(pgerr.InvalidParameterValue, "invalid value for parameter \"%s\": %d", c.name, v)
			}
		}
		f, err := parseRegexFlags(strArg(a, 5), false, "regexp_instr()")
		if err != nil {
			return nil, err
		}
		re, err := compileRegex(a[1].(string), f)
		if err != nil {
			return nil, err
		}
		s := a[0].(string)
		ms, err := matchesFrom(re, s, int(start))
		if err != nil {
			return nil, err
		}
		if int(n) > len(ms) || int(sub) > re.groups {
			return int64(0), nil
		}
		m := ms[n-1]
		if m[2*sub] < 0 {
			return int64(0), nil
		}
		return int64(utf8.RuneCountInString(s[:m[2*sub+end]])) + 1, nil
	}
	substr := func(_ *Call, a []types.Datum) (types.Datum, error) {
		start, n, sub := intArg(a, 2, 1), intArg(a, 3, 1), intArg(a, 5, 0)
		for _, c := range []struct {
			name     string
			v, least int64
		}{{"start", start, 1}, {"n", n, 1}, {"subexpr", sub, 0}} {
			if err := checkPositive(c.name, c.v, c.least); err != nil {
				return nil, err
			}
		}
		f, err := parseRegexFlags(strArg(a, 4), false, "regexp_substr()")
		if err != nil {
			return nil, err
		}
		re, err := compileRegex(a[1].(string), f)
		if err != nil {
			return nil, err
		}
		s := a[0].(string)
		ms, err := matchesFrom(re, s, int(start))
		if err != nil {
			return nil, err
		}
		if int(n) > len(ms) || int(sub) > re.groups {
			return nil, nil
		}
		return groupDatum(s, ms[n-1], int(sub)), nil
	}
	inArgs := []types.Type{tText, tText, tInt4, tInt4, tInt4, tText, tInt4}
	for n := 2; n <= len(inArgs); n++ {
		add("regexp_instr", tInt4, instr, "Position of the n-th match of a regular expression.", inArgs[:n]...)
	}
	subArgs := []types.Type{tText, tText, tInt4, tInt4, tText, tInt4}
	for n := 2; n <= len(subArgs); n++ {
		add("regexp_substr", tText, substr, "The n-th match of a regular expression.", subArgs[:n]...)
	}
	return out
}
