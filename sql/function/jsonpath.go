package function

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// SQL/JSON paths: '$.a[*] ? (@.b > 1)'. A path is parsed into a tree and walked
// over the text of the jsonb value; items are slices of it, or numbers that were
// computed. There is no type jsonpath here: paths are text.

type jpNode struct {
	op   string // "$", "@", "var", "lit", ".", ".*", ".**", "[*]", "[]", "?", "method", "+", "&&", ...
	text string // key, variable, method
	lit  raw
	args []*jpNode
	subs []jpRange // of "[]"
	re   *regexp.Regexp
	from int // levels of ".**"
	to   int
}

type jpRange struct{ from, to *jpNode }

type jpPath struct {
	strict bool
	root   *jpNode
}

type jpParser struct {
	s     string
	i     int
	depth int
}

func (p *jpParser) fail() error {
	p.space()
	if p.i >= len(p.s) {
		return pgerr.New(pgerr.SyntaxError, "syntax error at end of jsonpath input")
	}
	j := p.i
	for j < len(p.s) && (isAlnumASCII(p.s[j]) || p.s[j] == '_') {
		j++
	}
	if j == p.i {
		_, n := utf8.DecodeRuneInString(p.s[j:])
		j += n
	}
	return pgerr.New(pgerr.SyntaxError, "syntax error at or near \"%s\" of jsonpath input", p.s[p.i:j])
}

func (p *jpParser) space() {
	for p.i < len(p.s) {
		if isBlank(p.s[p.i]) {
			p.i++
		} else if strings.HasPrefix(p.s[p.i:], "/*") {
			end := strings.Index(p.s[p.i:], "*/")
			if end < 0 {
				return
			}
			p.i += end + 2
		} else {
			return
		}
	}
}

func (p *jpParser) eat(tok string) bool {
	p.space()
	if !strings.HasPrefix(p.s[p.i:], tok) {
		return false
	}
	if end := p.i + len(tok); isAlnumASCII(tok[0]) && end < len(p.s) && (isAlnumASCII(p.s[end]) || p.s[end] == '_') {
		return false
	}
	p.i += len(tok)
	return true
}

func parseJSONPath(s string) (*jpPath, error) {
	p := &jpParser{s: s}
	out := &jpPath{}
	if p.eat("strict") {
		out.strict = true
	} else {
		p.eat("lax")
	}
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.space(); p.i < len(s) {
		return nil, p.fail()
	}
	out.root = n
	return out, nil
}

func (p *jpParser) binary(next func() (*jpNode, error), ops ...string) (*jpNode, error) {
	l, err := next()
	if err != nil {
		return nil, err
	}
	for {
		found := ""
		for _, op := range ops {
			if p.eat(op) {
				found = op
				break
			}
		}
		if found == "" {
			return l, nil
		}
		r, err := next()
		if err != nil {
			return nil, err
		}
		l = &jpNode{op: found, args: []*jpNode{l, r}}
	}
}

func (p *jpParser) or() (*jpNode, error)  { return p.binary(p.and, "||") }
func (p *jpParser) and() (*jpNode, error) { return p.binary(p.not, "&&") }

func (p *jpParser) not() (*jpNode, error) {
	if p.depth++; p.depth > 200 {
		return nil, pgerr.New(pgerr.StatementTooComplex, "stack depth limit exceeded")
	}
	defer func() { p.depth-- }()
	p.space()
	if strings.HasPrefix(p.s[p.i:], "!") && !strings.HasPrefix(p.s[p.i:], "!=") {
		p.i++
		x, err := p.not()
		return &jpNode{op: "!", args: []*jpNode{x}}, err
	}
	return p.cmp()
}

func (p *jpParser) cmp() (*jpNode, error) {
	if p.eat("exists") {
		if !p.eat("(") {
			return nil, p.fail()
		}
		x, err := p.or()
		if err != nil {
			return nil, err
		}
		if !p.eat(")") {
			return nil, p.fail()
		}
		return &jpNode{op: "exists", args: []*jpNode{x}}, nil
	}
	l, err := p.sum()
	if err != nil {
		return nil, err
	}
	for _, op := range []string{"==", "!=", "<>", "<=", ">=", "<", ">"} {
		if p.eat(op) {
			r, err := p.sum()
			if err != nil {
				return nil, err
			}
			if op == "<>" {
				op = "!="
			}
			return &jpNode{op: op, args: []*jpNode{l, r}}, nil
		}
	}
	switch {
	case p.eat("starts"):
		if !p.eat("with") {
			return nil, p.fail()
		}
		r, err := p.sum()
		return &jpNode{op: "starts", args: []*jpNode{l, r}}, err
	case p.eat("like_regex"):
		pat, err := p.str()
		if err != nil {
			return nil, err
		}
		f := regexFlags{}
		if p.eat("flag") {
			fl, err := p.str()
			if err != nil {
				return nil, err
			}
			for _, c := range []byte(fl) {
				switch c {
				case 'i', 's', 'm', 'x', 'q':
					f.applyFlag(c)
				default:
					return nil, pgerr.New(pgerr.SyntaxError, "invalid input syntax for type jsonpath")
				}
			}
		}
		re, err := compileRegex(pat, f)
		if err != nil {
			return nil, err
		}
		if re.re == nil {
			return nil, pgerr.New(pgerr.FeatureNotSupported, "back references in like_regex are not supported")
		}
		return &jpNode{op: "like_regex", args: []*jpNode{l}, re: re.re}, nil
	case p.eat("is"):
		if !p.eat("unknown") {
			return nil, p.fail()
		}
		return &jpNode{op: "unknown", args: []*jpNode{l}}, nil
	}
	return l, nil
}

func (p *jpParser) sum() (*jpNode, error)  { return p.binary(p.prod, "+", "-") }
func (p *jpParser) prod() (*jpNode, error) { return p.binary(p.unary, "*", "/", "%") }

func (p *jpParser) unary() (*jpNode, error) {
	for _, op := range []string{"+", "-"} {
		if p.eat(op) {
			x, err := p.unary()
			return &jpNode{op: "u" + op, args: []*jpNode{x}}, err
		}
	}
	return p.accessors()
}

func (p *jpParser) str() (string, error) {
	p.space()
	if p.i >= len(p.s) || p.s[p.i] != '"' {
		return "", p.fail()
	}
	j := p.i + 1
	for j < len(p.s) && p.s[j] != '"' {
		if p.s[j] == '\\' {
			j++
		}
		j++
	}
	if j >= len(p.s) {
		return "", p.fail()
	}
	r := raw(p.s[p.i : j+1])
	p.i = j + 1
	return r.CheckStr()
}

func (p *jpParser) ident() (string, bool) {
	j := p.i
	for j < len(p.s) && (isAlnumASCII(p.s[j]) || p.s[j] == '_' || p.s[j] >= 0x80 || p.s[j] == '$' && j > p.i) {
		j++
	}
	if j == p.i {
		return "", false
	}
	w := p.s[p.i:j]
	p.i = j
	return w, true
}

func (p *jpParser) primary() (*jpNode, error) {
	p.space()
	if p.i >= len(p.s) {
		return nil, p.fail()
	}
	switch c := p.s[p.i]; {
	case c == '(':
		p.i++
		n, err := p.or()
		if err != nil {
			return nil, err
		}
		if !p.eat(")") {
			return nil, p.fail()
		}
		return n, nil
	case c == '$':
		p.i++
		if p.i < len(p.s) && p.s[p.i] == '"' {
			k, err := p.str()
			return &jpNode{op: "var", text: k}, err
		}
		if w, ok := p.ident(); ok {
			return &jpNode{op: "var", text: w}, nil
		}
		return &jpNode{op: "$"}, nil
	case c == '@':
		p.i++
		return &jpNode{op: "@"}, nil
	case c == '"':
		s, err := p.str()
		return &jpNode{op: "lit", lit: raw(pgtext.AppendJSONString(nil, []byte(s)))}, err
	case c >= '0' && c <= '9' || c == '.':
		j := p.i
		for j < len(p.s) && (p.s[j] >= '0' && p.s[j] <= '9' || p.s[j] == '.' || p.s[j]|0x20 == 'e' || (p.s[j] == '+' || p.s[j] == '-') && p.s[j-1]|0x20 == 'e') {
			// A method may follow the digits: 1.type() is not a number.
			if p.s[j] == '.' && j+1 < len(p.s) && !(p.s[j+1] >= '0' && p.s[j+1] <= '9') {
				break
			}
			j++
		}
		d, err := numeric.Parse(p.s[p.i:j])
		if err != nil {
			return nil, p.fail()
		}
		p.i = j
		return &jpNode{op: "lit", lit: raw(d.String())}, nil
	}
	for _, w := range []string{"true", "false", "null", "last"} {
		if p.eat(w) {
			if w == "last" {
				return &jpNode{op: "last"}, nil
			}
			return &jpNode{op: "lit", lit: raw(w)}, nil
		}
	}
	return nil, p.fail()
}

func (p *jpParser) accessors() (*jpNode, error) {
	n, err := p.primary()
	for err == nil {
		p.space()
		switch {
		case p.eat(".**"):
			x := &jpNode{op: ".**", args: []*jpNode{n}, to: -1}
			if p.eat("{") {
				level := func() (int, bool) {
					if p.eat("last") {
						return -1, true
					}
					p.space()
					v, used, _ := strtol(p.s[p.i:])
					p.i += used
					return v, used > 0
				}
				var ok bool
				if x.from, ok = level(); !ok {
					return nil, p.fail()
				}
				x.to = x.from
				if p.eat("to") {
					if x.to, ok = level(); !ok {
						return nil, p.fail()
					}
				}
				if !p.eat("}") {
					return nil, p.fail()
				}
			}
			n = x
		case p.eat(".*"):
			n = &jpNode{op: ".*", args: []*jpNode{n}}
		case p.eat("."):
			p.space()
			if p.i < len(p.s) && p.s[p.i] == '"' {
				var k string
				k, err = p.str()
				n = &jpNode{op: ".", text: k, args: []*jpNode{n}}
				continue
			}
			w, ok := p.ident()
			if !ok {
				return nil, p.fail()
			}
			if p.eat("(") {
				if !p.eat(")") {
					return nil, p.fail()
				}
				switch w {
				case "type", "size", "double", "ceiling", "floor", "abs", "keyvalue":
				case "datetime":
					return nil, pgerr.New(pgerr.FeatureNotSupported, "jsonpath method .datetime() is not supported")
				default:
					return nil, p.fail()
				}
				n = &jpNode{op: "method", text: w, args: []*jpNode{n}}
				continue
			}
			n = &jpNode{op: ".", text: w, args: []*jpNode{n}}
		case p.eat("["):
			if p.eat("*") {
				n = &jpNode{op: "[*]", args: []*jpNode{n}}
			} else {
				x := &jpNode{op: "[]", args: []*jpNode{n}}
				for {
					var r jpRange
					if r.from, err = p.or(); err != nil {
						return nil, err
					}
					if p.eat("to") {
						if r.to, err = p.or(); err != nil {
							return nil, err
						}
					}
					x.subs = append(x.subs, r)
					if !p.eat(",") {
						break
					}
				}
				n = x
			}
			if !p.eat("]") {
				return nil, p.fail()
			}
		case p.eat("?"):
			if !p.eat("(") {
				return nil, p.fail()
			}
			var f *jpNode
			if f, err = p.or(); err != nil {
				return nil, err
			}
			if !p.eat(")") {
				return nil, p.fail()
			}
			n = &jpNode{op: "?", args: []*jpNode{n, f}}
		default:
			return n, nil
		}
	}
	return n, err
}

// Walking.

// jsonPathQuery evaluates a path; silent turns the path's own errors into nil.
func jsonPathQuery(a []types.Datum, silent bool) (items []raw, failed bool, err error) {
	p, err := parseJSONPath(a[1].(string))
	if err != nil {
		return nil, false, err
	}
	e := &jpEval{root: raw(a[0].(string)), vars: "{}", strict: p.strict, last: -1}
	if len(a) > 2 {
		e.vars = raw(a[2].(string))
		if e.vars.Kind() != 'o' {
			return nil, false, pgerr.New(pgerr.InvalidParameterValue, "\"vars\" argument is not an object").
				WithDetail("Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.")
		}
	}
	if len(a) > 3 {
		silent = a[3].(bool)
	}
	items, err = e.eval(p.root, e.root)
	if err != nil && silent && structural(err) {
		return nil, true, nil
	}
	return items, false, err
}

func matchResult(items []raw, failed, silent bool) (types.Datum, error) {
	if failed {
		return nil, nil
	}
	if len(items) == 1 {
		switch items[0].Kind() {
		case 'b':
			return items[0] == "true", nil
		case 'z':
			return nil, nil
		}
	}
	if silent {
		return nil, nil
	}
	return nil, pgerr.New(codeJSONSingleton, "single boolean result is expected")
}

func jsonPathOps() []*Overload {
	jb := types.Of(types.JSONB)
	return []*Overload{
		{Name: "@?", Args: []types.Type{jb, tText}, Ret: tBool, Strict: true, Doc: "Whether a path finds anything in a jsonb value.",
			Kernel: strictRowFn(func(_ *Call, a []types.Datum) (types.Datum, error) {
				items, failed, err := jsonPathQuery(a, true)
				if err != nil || failed {
					return nil, err
				}
				return len(items) > 0, nil
			})},
		{Name: "@@", Args: []types.Type{jb, tText}, Ret: tBool, Strict: true, Doc: "The result of a path's predicate for a jsonb value.",
			Kernel: strictRowFn(func(_ *Call, a []types.Datum) (types.Datum, error) {
				items, failed, err := jsonPathQuery(a, true)
				if err != nil {
					return nil, err
				}
				return matchResult(items, failed, true)
			})},
	}
}

func jsonPathFunctions() []*Overload {
	jb := types.Of(types.JSONB)
	args := []types.Type{jb, tText, jb, tBool}
	names := []string{"target", "path", "vars", "silent"}
	var out []*Overload
	add := func(name string, ret types.Type, f func(a []types.Datum) (types.Datum, error), doc string) {
		for _, suffix := range []string{"", "_tz"} {
			out = append(out, &Overload{Name: name + suffix, Args: args, Defaults: 2, ArgNames: names, Ret: ret, Strict: true, Doc: doc,
				Kernel: strictRowFn(func(_ *Call, a []types.Datum) (types.Datum, error) { return f(a) })})
		}
	}
	add("jsonb_path_exists", tBool, func(a []types.Datum) (types.Datum, error) {
		items, failed, err := jsonPathQuery(a, false)
		if err != nil || failed {
			return nil, err
		}
		return len(items) > 0, nil
	}, "Whether a path finds anything in a jsonb value.")
	add("jsonb_path_match", tBool, func(a []types.Datum) (types.Datum, error) {
		items, failed, err := jsonPathQuery(a, false)
		if err != nil {
			return nil, err
		}
		return matchResult(items, failed, len(a) > 3 && a[3].(bool))
	}, "The result of a path's predicate for a jsonb value.")
	add("jsonb_path_query_array", jb, func(a []types.Datum) (types.Datum, error) {
		items, _, err := jsonPathQuery(a, false)
		if err != nil {
			return nil, err
		}
		return writeArray(items), nil
	}, "What a path finds in a jsonb value, as an array.")
	add("jsonb_path_query_first", jb, func(a []types.Datum) (types.Datum, error) {
		items, _, err := jsonPathQuery(a, false)
		if err != nil || len(items) == 0 {
			return nil, err
		}
		return string(items[0]), nil
	}, "The first thing a path finds in a jsonb value.")
	for _, name := range []string{"jsonb_path_query", "jsonb_path_query_tz"} {
		o := setFn(name, jb, func(_ *Call, a []types.Datum) (SetReader, error) {
			if anyNull(a) {
				return emptyReader{}, nil
			}
			items, _, err := jsonPathQuery(a, false)
			if err != nil {
				return nil, err
			}
			r := &listReader{t: jb}
			for _, v := range items {
				r.vals = append(r.vals, string(v))
			}
			return r, nil
		}, "What a path finds in a jsonb value, as rows.", args...)
		o.Defaults, o.ArgNames = 2, names
		out = append(out, o)
	}
	return out
}
