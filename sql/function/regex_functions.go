package function

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

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
