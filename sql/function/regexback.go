package function

import (
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// A backtracking matcher for what RE2 cannot express: back references and
// look-around. It is used for patterns with these only, tries alternatives in
// the order they are written, and gives up after a number of steps, so that no
// pattern can occupy a worker for long.

const maxRegexSteps = 5_000_000

// maxRegexDepth is how many calls may be nested: every step of a repetition that
// is not of single characters stays on the stack until the match ends.
const maxRegexDepth = 200_000

type btKind uint8

const (
	btSet btKind = iota
	btCat
	btAlt
	btRep
	btGroup // capturing when n >= 0
	btLook
	btBackref
	btBOL // start of the string, or of a line
	btEOL
	btStart
	btEnd
	btWord
	btNotWord
	btWordStart
	btWordEnd
)

type btNode struct {
	kind     btKind
	set      []rune // ranges, pairwise
	sub      []*btNode
	n        int // group or back reference number
	min, max int // repetition; max < 0 = no limit
	lazy     bool
	neg      bool
	behind   bool
}

type btRegex struct {
	root   *btNode
	groups int
	fold   bool
	lines  bool // ^ and $ match at newlines
}

type btParser struct {
	t      regexTranslator
	groups int
}

// compileBacktrack parses a pattern for the backtracking matcher. Embedded
// options and directors have been applied to f already.
func compileBacktrack(p string, f regexFlags) (*btRegex, error) {
	ps := &btParser{t: regexTranslator{p: p, f: f}}
	n, err := ps.alt(0)
	if err != nil {
		return nil, err
	}
	if ps.t.i < len(p) {
		return nil, errRegex("parentheses () not balanced")
	}
	return &btRegex{root: n, groups: ps.groups, fold: f.icase, lines: f.newlineAnchor}, nil
}

func (p *btParser) alt(depth int) (*btNode, error) {
	if depth > 200 {
		return nil, errRegex("regular expression is too complex")
	}
	out := &btNode{kind: btAlt}
	for {
		n, err := p.cat(depth)
		if err != nil {
			return nil, err
		}
		out.sub = append(out.sub, n)
		if p.t.i >= len(p.t.p) || p.t.p[p.t.i] != '|' {
			break
		}
		p.t.i++
	}
	if len(out.sub) == 1 {
		return out.sub[0], nil
	}
	return out, nil
}

func (p *btParser) cat(depth int) (*btNode, error) {
	t := &p.t
	out := &btNode{kind: btCat}
	for t.i < len(t.p) && t.p[t.i] != '|' && t.p[t.i] != ')' {
		n, err := p.atom(depth)
		if err != nil {
			return nil, err
		}
		if n == nil {
			continue
		}
		if n, err = p.quantify(n); err != nil {
			return nil, err
		}
		out.sub = append(out.sub, n)
	}
	return out, nil
}

func (p *btParser) quantify(n *btNode) (*btNode, error) {
	t := &p.t
	if t.i >= len(t.p) {
		return n, nil
	}
	r := &btNode{kind: btRep, sub: []*btNode{n}}
	switch t.p[t.i] {
	case '*':
		r.max = -1
		t.i++
	case '+':
		r.min, r.max = 1, -1
		t.i++
	case '?':
		r.max = 1
		t.i++
	case '{':
		if t.i+1 >= len(t.p) || t.p[t.i+1] < '0' || t.p[t.i+1] > '9' {
			return n, nil
		}
		end := strings.IndexByte(t.p[t.i:], '}')
		if end < 0 {
			return nil, errRegex("braces {} not balanced")
		}
		lo, hi, two := strings.Cut(t.p[t.i+1:t.i+end], ",")
		a, ok := smallInt(lo)
		if !ok {
			return nil, errRegex("invalid repetition count(s)")
		}
		r.min, r.max = a, a
		if two {
			r.max = -1
			if hi != "" {
				if r.max, ok = smallInt(hi); !ok || r.max < a {
					return nil, errRegex("invalid repetition count(s)")
				}
			}
		}
		t.i += end + 1
	default:
		return n, nil
	}
	if t.i < len(t.p) && t.p[t.i] == '?' {
		r.lazy = true
		t.i++
	}
	return r, nil
}

func smallInt(s string) (int, bool) {
	v := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		if v = v*10 + int(c-'0'); v > 255 {
			return 0, false
		}
	}
	return v, s != ""
}

func (p *btParser) atom(depth int) (*btNode, error) {
	t := &p.t
	c := t.p[t.i]
	switch c {
	case '(':
		kind := ""
		for _, k := range []string{"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?#"} {
			if strings.HasPrefix(t.p[t.i:], k) && len(k) > len(kind) {
				kind = k
			}
		}
		if kind == "(?#" {
			end := strings.IndexByte(t.p[t.i:], ')')
			if end < 0 {
				return nil, errRegex("parentheses () not balanced")
			}
			t.i += end + 1
			return nil, nil
		}
		if kind == "" && strings.HasPrefix(t.p[t.i:], "(?") {
			return nil, errRegex("quantifier operand invalid")
		}
		n := &btNode{kind: btGroup, n: -1}
		if kind == "" {
			kind = "("
			p.groups++
			n.n = p.groups
		}
		t.i += len(kind)
		sub, err := p.alt(depth + 1)
		if err != nil {
			return nil, err
		}
		if t.i >= len(t.p) || t.p[t.i] != ')' {
			return nil, errRegex("parentheses () not balanced")
		}
		t.i++
		n.sub = []*btNode{sub}
		if strings.ContainsAny(kind, "=!") {
			n.kind, n.neg, n.behind = btLook, strings.Contains(kind, "!"), strings.Contains(kind, "<")
		}
		return n, nil
	case '*', '+', '?':
		return nil, errRegex("quantifier operand invalid")
	case '^':
		t.i++
		return &btNode{kind: btBOL}, nil
	case '$':
		t.i++
		return &btNode{kind: btEOL}, nil
	case '.':
		t.i++
		if t.f.newlineDot {
			return &btNode{kind: btSet, set: []rune{0, '\n' - 1, '\n' + 1, utf8.MaxRune}}, nil
		}
		return &btNode{kind: btSet, set: []rune{0, utf8.MaxRune}}, nil
	case '\\':
		if t.i+1 < len(t.p) {
			switch d := t.p[t.i+1]; {
			case d >= '1' && d <= '9':
				n := int(d - '0')
				t.i += 2
				for t.i < len(t.p) && t.p[t.i] >= '0' && t.p[t.i] <= '9' && n*10+int(t.p[t.i]-'0') <= p.groups {
					n = n*10 + int(t.p[t.i]-'0')
					t.i++
				}
				if n > p.groups {
					return nil, errRegex("invalid backreference number")
				}
				return &btNode{kind: btBackref, n: n}, nil
			case d == 'm':
				t.i += 2
				return &btNode{kind: btWordStart}, nil
			case d == 'M':
				t.i += 2
				return &btNode{kind: btWordEnd}, nil
			case d == 'y':
				t.i += 2
				return &btNode{kind: btWord}, nil
			case d == 'Y':
				t.i += 2
				return &btNode{kind: btNotWord}, nil
			case d == 'A':
				t.i += 2
				return &btNode{kind: btStart}, nil
			case d == 'Z':
				t.i += 2
				return &btNode{kind: btEnd}, nil
			}
		}
		return p.set(func() error { return t.escape(false) })
	case '[':
		if strings.HasPrefix(t.p[t.i:], "[[:<:]]") {
			t.i += 7
			return &btNode{kind: btWordStart}, nil
		}
		if strings.HasPrefix(t.p[t.i:], "[[:>:]]") {
			t.i += 7
			return &btNode{kind: btWordEnd}, nil
		}
		return p.set(t.bracket)
	case ' ', '\t', '\n', '\r', '\f', '\v', '#':
		if t.f.expanded {
			if c == '#' {
				for t.i < len(t.p) && t.p[t.i] != '\n' {
					t.i++
				}
			} else {
				t.i++
			}
			return nil, nil
		}
	}
	r, n := utf8.DecodeRuneInString(t.p[t.i:])
	t.i += n
	return &btNode{kind: btSet, set: []rune{r, r}}, nil
}

// set takes one character class in Go's syntax from the translator and reads it
// as ranges.
func (p *btParser) set(translate func() error) (*btNode, error) {
	p.t.out.Reset()
	if err := translate(); err != nil {
		return nil, err
	}
	re, err := syntax.Parse(p.t.out.String(), syntax.Perl)
	if err != nil {
		return nil, regexError(err)
	}
	switch re.Op {
	case syntax.OpCharClass:
		return &btNode{kind: btSet, set: re.Rune}, nil
	case syntax.OpLiteral:
		return &btNode{kind: btSet, set: []rune{re.Rune[0], re.Rune[0]}}, nil
	}
	return nil, errRegex("invalid escape \\ sequence")
}

type btMatcher struct {
	re    *btRegex
	s     string
	caps  []int
	steps int
	depth int
	over  bool
}

func (m *btMatcher) inSet(set []rune, r rune) bool {
	for i := 0; i+1 < len(set); i += 2 {
		if r >= set[i] && r <= set[i+1] {
			return true
		}
	}
	return false
}

func (m *btMatcher) matches(set []rune, r rune) bool {
	if m.inSet(set, r) {
		return true
	}
	if !m.re.fold {
		return false
	}
	if r >= 'a' && r <= 'z' {
		return m.inSet(set, r-32)
	}
	if r >= 'A' && r <= 'Z' {
		return m.inSet(set, r+32)
	}
	return false
}

func (m *btMatcher) wordAt(i int) bool {
	return i >= 0 && i < len(m.s) && (isAlnumASCII(m.s[i]) || m.s[i] == '_')
}

func (m *btMatcher) match(n *btNode, i int, k func(i int) bool) bool {
	if m.steps++; m.steps > maxRegexSteps || m.depth >= maxRegexDepth {
		m.over = true
	}
	if m.over {
		return false
	}
	m.depth++
	defer func() { m.depth-- }()
	s := m.s
	switch n.kind {
	case btSet:
		if i >= len(s) {
			return false
		}
		r, w := utf8.DecodeRuneInString(s[i:])
		return m.matches(n.set, r) && k(i+w)
	case btCat:
		return m.seq(n.sub, i, k)
	case btAlt:
		for _, x := range n.sub {
			if m.match(x, i, k) {
				return true
			}
		}
		return false
	case btRep:
		if n.sub[0].kind == btSet {
			return m.repeatSet(n, i, k)
		}
		return m.repeat(n, 0, i, -1, k)
	case btGroup:
		if n.n < 0 {
			return m.match(n.sub[0], i, k)
		}
		a, b := m.caps[2*n.n], m.caps[2*n.n+1]
		if m.match(n.sub[0], i, func(j int) bool {
			oa, ob := m.caps[2*n.n], m.caps[2*n.n+1]
			m.caps[2*n.n], m.caps[2*n.n+1] = i, j
			if k(j) {
				return true
			}
			m.caps[2*n.n], m.caps[2*n.n+1] = oa, ob
			return false
		}) {
			return true
		}
		m.caps[2*n.n], m.caps[2*n.n+1] = a, b
		return false
	case btLook:
		found := false
		if n.behind {
			for from := i; from >= 0 && !found; from-- {
				if from < len(s) && !utf8.RuneStart(s[from]) {
					continue
				}
				found = m.match(n.sub[0], from, func(j int) bool { return j == i })
			}
		} else {
			found = m.match(n.sub[0], i, func(int) bool { return true })
		}
		return found != n.neg && k(i)
	case btBackref:
		a, b := m.caps[2*n.n], m.caps[2*n.n+1]
		if a < 0 {
			return false
		}
		w := s[a:b]
		if len(s)-i < len(w) {
			return false
		}
		if s[i:i+len(w)] == w || m.re.fold && strings.EqualFold(s[i:i+len(w)], w) {
			return k(i + len(w))
		}
		return false
	case btBOL:
		return (i == 0 || m.re.lines && s[i-1] == '\n') && k(i)
	case btEOL:
		return (i == len(s) || m.re.lines && s[i] == '\n') && k(i)
	case btStart:
		return i == 0 && k(i)
	case btEnd:
		return i == len(s) && k(i)
	case btWord:
		return m.wordAt(i-1) != m.wordAt(i) && k(i)
	case btNotWord:
		return m.wordAt(i-1) == m.wordAt(i) && k(i)
	case btWordStart:
		return !m.wordAt(i-1) && m.wordAt(i) && k(i)
	case btWordEnd:
		return m.wordAt(i-1) && !m.wordAt(i) && k(i)
	}
	return false
}

func (m *btMatcher) seq(ns []*btNode, i int, k func(i int) bool) bool {
	if len(ns) == 0 {
		return k(i)
	}
	return m.match(ns[0], i, func(j int) bool { return m.seq(ns[1:], j, k) })
}

// repeatSet repeats single characters, in a loop.
func (m *btMatcher) repeatSet(n *btNode, i int, k func(i int) bool) bool {
	set, s := n.sub[0].set, m.s
	count := 0
	step := func() bool {
		if i >= len(s) || n.max >= 0 && count >= n.max {
			return false
		}
		if m.steps++; m.steps > maxRegexSteps {
			m.over = true
			return false
		}
		r, w := utf8.DecodeRuneInString(s[i:])
		if !m.matches(set, r) {
			return false
		}
		i += w
		count++
		return true
	}
	if n.lazy {
		for count < n.min {
			if !step() {
				return false
			}
		}
		for {
			if k(i) {
				return true
			}
			if m.over || !step() {
				return false
			}
		}
	}
	for step() {
	}
	for !m.over && count >= n.min {
		if k(i) {
			return true
		}
		if count == 0 {
			break
		}
		_, w := utf8.DecodeLastRuneInString(s[:i])
		i -= w
		count--
	}
	return false
}

func (m *btMatcher) repeat(n *btNode, count, i, last int, k func(i int) bool) bool {
	if i == last && count > n.min {
		return false // an empty round changes nothing
	}
	more := func() bool {
		if n.max >= 0 && count >= n.max {
			return false
		}
		return m.match(n.sub[0], i, func(j int) bool { return m.repeat(n, count+1, j, i, k) })
	}
	if count < n.min {
		return more()
	}
	if n.lazy {
		return k(i) || more()
	}
	return more() || k(i)
}

// find returns the leftmost match at or behind from, as indices of groups.
func (re *btRegex) find(s string, from int) ([]int, error) {
	m := &btMatcher{re: re, s: s, caps: make([]int, 2*(re.groups+1))}
	for i := from; i <= len(s); i++ {
		if i < len(s) && !utf8.RuneStart(s[i]) {
			continue
		}
		for k := range m.caps {
			m.caps[k] = -1
		}
		if m.match(re.root, i, func(j int) bool { m.caps[0], m.caps[1] = i, j; return true }) {
			return m.caps, nil
		}
		if m.over {
			return nil, pgerr.New(pgerr.ProgramLimitExceeded, "regular expression failed: matching takes too many steps")
		}
	}
	return nil, nil
}
