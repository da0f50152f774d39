package function

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"sync"
	"unicode/utf8"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
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
