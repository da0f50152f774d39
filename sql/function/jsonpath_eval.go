package function

import (
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
)

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
