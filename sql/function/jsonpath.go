package function

import (
	"regexp"
	"strconv"
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

type tri int8

const (
	jpFalse tri = iota
	jpTrue
	jpUnknown
)

type jpEval struct {
	root   raw
	vars   raw
	strict bool
	last   int
	steps  int
}

var (
	codeJSONMember    = pgerr.MakeCode("2203A")
	codeJSONArray     = pgerr.MakeCode("22039")
	codeJSONObject    = pgerr.MakeCode("2203C")
	codeJSONNonNum    = pgerr.MakeCode("22036")
	codeJSONSubscript = pgerr.MakeCode("22033")
	codeJSONSingleton = pgerr.MakeCode("22038")
)

func isPred(n *jpNode) bool {
	switch n.op {
	case "==", "!=", "<", "<=", ">", ">=", "&&", "||", "!", "exists", "starts", "like_regex", "unknown":
		return true
	}
	return false
}

func (e *jpEval) eval(n *jpNode, cur raw) ([]raw, error) {
	if e.steps++; e.steps > 2_000_000 {
		return nil, pgerr.New(pgerr.ProgramLimitExceeded, "jsonpath evaluation takes too many steps")
	}
	if isPred(n) {
		t, err := e.pred(n, cur)
		if err != nil {
			return nil, err
		}
		return []raw{map[tri]raw{jpTrue: "true", jpFalse: "false", jpUnknown: "null"}[t]}, nil
	}
	switch n.op {
	case "$":
		return []raw{e.root}, nil
	case "@":
		return []raw{cur}, nil
	case "lit":
		return []raw{n.lit}, nil
	case "last":
		return []raw{raw(strconv.Itoa(e.last))}, nil
	case "var":
		v, ok := e.vars.Get(n.text)
		if !ok {
			return nil, pgerr.New(pgerr.UndefinedObject, "could not find jsonpath variable \"%s\"", n.text)
		}
		return []raw{v}, nil
	case "+", "-", "*", "/", "%":
		return e.arith(n, cur)
	case "u+", "u-":
		in, err := e.evalUnwrapped(n.args[0], cur)
		if err != nil {
			return nil, err
		}
		var out []raw
		for _, v := range in {
			if v.Kind() != 'n' {
				return nil, pgerr.New(codeJSONNonNum, "operand of unary jsonpath operator %s is not a numeric value", n.op[1:])
			}
			d, _ := numeric.Parse(string(v))
			if n.op == "u-" {
				d = d.Neg()
			}
			out = append(out, raw(d.String()))
		}
		return out, nil
	}
	in, err := e.eval(n.args[0], cur)
	if err != nil {
		return nil, err
	}
	var out []raw
	for _, v := range in {
		if out, err = e.step(n, v, out, !e.strict); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func unwrap(in []raw) []raw {
	var out []raw
	for _, v := range in {
		if v.Kind() == 'a' {
			out = append(out, elements(v)...)
		} else {
			out = append(out, v)
		}
	}
	return out
}

func (e *jpEval) evalUnwrapped(n *jpNode, cur raw) ([]raw, error) {
	in, err := e.eval(n, cur)
	if err != nil || e.strict {
		return in, err
	}
	return unwrap(in), nil
}

// step applies an accessor to one item.
func (e *jpEval) step(n *jpNode, v raw, out []raw, unwrapArrays bool) ([]raw, error) {
	each := func() ([]raw, error) {
		var err error
		for _, x := range elements(v) {
			if out, err = e.step(n, x, out, false); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	switch n.op {
	case ".":
		switch {
		case v.Kind() == 'o':
			if x, ok := v.Get(n.text); ok {
				return append(out, x), nil
			}
			if e.strict {
				return nil, pgerr.New(codeJSONMember, "JSON object does not contain key \"%s\"", n.text)
			}
		case v.Kind() == 'a' && unwrapArrays:
			return each()
		case e.strict:
			return nil, pgerr.New(codeJSONMember, "jsonpath member accessor can only be applied to an object")
		}
		return out, nil
	case ".*":
		switch {
		case v.Kind() == 'o':
			for _, m := range members(v) {
				out = append(out, m.val)
			}
		case v.Kind() == 'a' && unwrapArrays:
			return each()
		case e.strict:
			return nil, pgerr.New(codeJSONObject, "jsonpath wildcard member accessor can only be applied to an object")
		}
		return out, nil
	case ".**":
		e.any(v, n, 0, &out)
		return out, nil
	case "[*]":
		if v.Kind() == 'a' {
			return append(out, elements(v)...), nil
		}
		if e.strict {
			return nil, pgerr.New(codeJSONArray, "jsonpath wildcard array accessor can only be applied to an array")
		}
		return append(out, v), nil
	case "[]":
		es := []raw{v}
		if v.Kind() == 'a' {
			es = elements(v)
		} else if e.strict {
			return nil, pgerr.New(codeJSONArray, "jsonpath array accessor can only be applied to an array")
		}
		save := e.last
		e.last = len(es) - 1
		defer func() { e.last = save }()
		for _, r := range n.subs {
			from, err := e.index(r.from, v)
			if err != nil {
				return nil, err
			}
			to := from
			if r.to != nil {
				if to, err = e.index(r.to, v); err != nil {
					return nil, err
				}
			}
			if e.strict && (from < 0 || from > to || to >= len(es)) {
				return nil, pgerr.New(codeJSONSubscript, "jsonpath array subscript is out of bounds")
			}
			for i := max(from, 0); i <= to && i < len(es); i++ {
				out = append(out, es[i])
			}
		}
		return out, nil
	case "?":
		if v.Kind() == 'a' && unwrapArrays {
			return each()
		}
		t, err := e.pred(n.args[1], v)
		if err != nil {
			return nil, err
		}
		if t == jpTrue {
			out = append(out, v)
		}
		return out, nil
	case "method":
		if v.Kind() == 'a' && unwrapArrays && n.text != "type" && n.text != "size" {
			return each()
		}
		return e.method(n, v, out)
	}
	return out, nil
}

func (e *jpEval) any(v raw, n *jpNode, level int, out *[]raw) {
	leaf := v.Kind() != 'o' && v.Kind() != 'a'
	in := level >= n.from && (n.to < 0 || level <= n.to)
	if n.from < 0 {
		in = leaf
	}
	if in {
		*out = append(*out, v)
	}
	if n.to >= 0 && level >= n.to || level > pgtext.MaxJSONDepth {
		return
	}
	if v.Kind() == 'o' {
		for _, m := range members(v) {
			e.any(m.val, n, level+1, out)
		}
	} else if v.Kind() == 'a' {
		for _, x := range elements(v) {
			e.any(x, n, level+1, out)
		}
	}
}

func (e *jpEval) index(n *jpNode, v raw) (int, error) {
	in, err := e.eval(n, v)
	if err != nil {
		return 0, err
	}
	if len(in) != 1 || in[0].Kind() != 'n' {
		return 0, pgerr.New(codeJSONSubscript, "jsonpath array subscript is not a single numeric value")
	}
	d, _ := numeric.Parse(string(in[0]))
	x, ok := d.Trunc(0).Int64()
	if !ok || x != int64(int32(x)) {
		return 0, pgerr.New(codeJSONSubscript, "jsonpath array subscript is out of integer range")
	}
	return int(x), nil
}

func (e *jpEval) method(n *jpNode, v raw, out []raw) ([]raw, error) {
	str := func(s string) raw { return raw(pgtext.AppendJSONString(nil, []byte(s))) }
	switch n.text {
	case "type":
		return append(out, str(typeofJSON(v))), nil
	case "size":
		if v.Kind() != 'a' {
			if e.strict {
				return nil, pgerr.New(codeJSONArray, "jsonpath item method .%s() can only be applied to an array", n.text)
			}
			return append(out, "1"), nil
		}
		return append(out, raw(strconv.Itoa(v.Len()))), nil
	case "keyvalue":
		if v.Kind() != 'o' {
			return nil, pgerr.New(codeJSONObject, "jsonpath item method .%s() can only be applied to an object", n.text)
		}
		for _, m := range members(v) {
			out = append(out, raw(writeObject([]member{{"key", str(m.key)}, {"value", m.val}, {"id", "0"}})))
		}
		return out, nil
	case "double":
		if k := v.Kind(); k == 'n' || k == 's' {
			d, err := pgtext.Parse(tF8, v.Str(), nil)
			if err == nil {
				return append(out, raw(pgtext.AppendFloat8(nil, d.(float64), nil))), nil
			}
			if k == 's' {
				return nil, pgerr.New(codeJSONNonNum, "string argument of jsonpath item method .double() is not a valid representation of a double precision number")
			}
			return nil, pgerr.New(codeJSONNonNum, "numeric argument of jsonpath item method .double() is out of range for type double precision")
		}
		return nil, pgerr.New(codeJSONNonNum, "jsonpath item method .double() can only be applied to a string or numeric value")
	}
	if v.Kind() != 'n' {
		return nil, pgerr.New(codeJSONNonNum, "jsonpath item method .%s() can only be applied to a numeric value", n.text)
	}
	d, _ := numeric.Parse(string(v))
	switch n.text {
	case "ceiling":
		d = d.Ceil()
	case "floor":
		d = d.Floor()
	default:
		d = d.Abs()
	}
	return append(out, raw(d.String())), nil
}

func (e *jpEval) arith(n *jpNode, cur raw) ([]raw, error) {
	var ds [2]*dec
	for i, side := range []string{"left", "right"} {
		in, err := e.evalUnwrapped(n.args[i], cur)
		if err != nil {
			return nil, err
		}
		if len(in) != 1 || in[0].Kind() != 'n' {
			return nil, pgerr.New(codeJSONSingleton, "%s operand of jsonpath operator %s is not a single numeric value", side, n.op)
		}
		ds[i], _ = numeric.Parse(string(in[0]))
	}
	var r *dec
	var err error
	switch n.op {
	case "+":
		r = numeric.Add(ds[0], ds[1])
	case "-":
		r = numeric.Sub(ds[0], ds[1])
	case "*":
		r = numeric.Mul(ds[0], ds[1])
	case "/":
		r, err = numeric.Div(ds[0], ds[1])
	default:
		r, err = numeric.Mod(ds[0], ds[1])
	}
	if err != nil {
		return nil, numericErr(err)
	}
	return []raw{raw(r.String())}, nil
}

// structural reports whether an error is one of the path's own, which filters
// turn into unknown.
func structural(err error) bool {
	c, ok := pgerr.CodeOf(err)
	return ok && (strings.HasPrefix(c.String(), "2203") || c == pgerr.DivisionByZero || c == pgerr.NumericValueOutOfRange)
}

func (e *jpEval) pred(n *jpNode, cur raw) (tri, error) {
	switch n.op {
	case "&&", "||":
		l, err := e.pred(n.args[0], cur)
		if err != nil {
			return l, err
		}
		stop := jpFalse
		if n.op == "||" {
			stop = jpTrue
		}
		if l == stop {
			return l, nil
		}
		r, err := e.pred(n.args[1], cur)
		if err != nil || r == stop || l != jpUnknown {
			return r, err
		}
		return jpUnknown, nil
	case "!":
		x, err := e.pred(n.args[0], cur)
		if err != nil || x == jpUnknown {
			return x, err
		}
		return jpTrue - x, nil
	case "unknown":
		x, err := e.pred(n.args[0], cur)
		if err != nil {
			return x, err
		}
		if x == jpUnknown {
			return jpTrue, nil
		}
		return jpFalse, nil
	case "exists":
		in, err := e.eval(n.args[0], cur)
		if err != nil {
			if structural(err) {
				return jpUnknown, nil
			}
			return jpUnknown, err
		}
		if len(in) > 0 {
			return jpTrue, nil
		}
		return jpFalse, nil
	case "==", "!=", "<", "<=", ">", ">=", "starts", "like_regex":
	default:
		return jpUnknown, p42(n)
	}
	l, err := e.evalUnwrapped(n.args[0], cur)
	var r []raw
	if err == nil && len(n.args) > 1 {
		r, err = e.evalUnwrapped(n.args[1], cur)
	}
	if err != nil {
		if structural(err) {
			return jpUnknown, nil
		}
		return jpUnknown, err
	}
	if n.op == "like_regex" {
		r = []raw{"null"}
	}
	found, unknown := false, false
	for _, a := range l {
		for _, b := range r {
			switch jpCompare(n, a, b) {
			case jpUnknown:
				if e.strict {
					return jpUnknown, nil
				}
				unknown = true
			case jpTrue:
				if !e.strict {
					return jpTrue, nil
				}
				found = true
			}
		}
	}
	switch {
	case found:
		return jpTrue, nil
	case unknown:
		return jpUnknown, nil
	}
	return jpFalse, nil
}

func p42(n *jpNode) error {
	return pgerr.New(pgerr.SyntaxError, "jsonpath expression is not a predicate")
}

func jpCompare(n *jpNode, a, b raw) tri {
	yes := func(v bool) tri { return tri(u8(v)) }
	ka, kb := a.Kind(), b.Kind()
	switch n.op {
	case "starts":
		if ka != 's' || kb != 's' {
			return jpUnknown
		}
		return yes(strings.HasPrefix(a.Str(), b.Str()))
	case "like_regex":
		if ka != 's' {
			return jpUnknown
		}
		return yes(n.re.MatchString(a.Str()))
	}
	if ka != kb {
		if ka == 'z' || kb == 'z' {
			// null equals only null; it has no order with other values.
			return yes(n.op == "!=")
		}
		return jpUnknown
	}
	if ka == 'a' || ka == 'o' {
		return jpUnknown
	}
	c := compareJSONB(a, b)
	switch n.op {
	case "==":
		return yes(c == 0)
	case "!=":
		return yes(c != 0)
	case "<":
		return yes(c < 0)
	case "<=":
		return yes(c <= 0)
	case ">":
		return yes(c > 0)
	}
	return yes(c >= 0)
}

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
