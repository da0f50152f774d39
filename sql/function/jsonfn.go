package function

import (
	"sort"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// JSON operators and functions. json keeps its text, jsonb is in normal form;
// both are scanned as text, so reading a member copies nothing.

type raw = pgtext.JSONRaw

func rawOf(s string) raw { return raw(strings.TrimSpace(s)) }

// getText is ->>: strings decoded, null as NULL.
func getText(v raw, ok bool) (types.Datum, error) {
	if !ok || v.Kind() == 'z' {
		return nil, nil
	}
	s, err := v.CheckStr()
	return s, err
}

func getJSON(v raw, ok bool) (types.Datum, error) {
	if !ok {
		return nil, nil
	}
	return string(v), nil
}

// path follows a path of keys and subscripts.
func path(v raw, p []types.Datum) (raw, bool) {
	for _, k := range p {
		if k == nil {
			return "", false
		}
		key := k.(string)
		var ok bool
		switch v.Kind() {
		case 'o':
			v, ok = v.Get(key)
		case 'a':
			n, err := strconv.Atoi(key)
			if err != nil {
				return "", false
			}
			v, ok = v.At(n)
		}
		if !ok {
			return "", false
		}
	}
	return v, true
}

// jsonContains is a @> b.
func jsonContains(a, b raw, top bool) bool {
	switch b.Kind() {
	case 'o':
		if a.Kind() != 'o' {
			return false
		}
		ok := true
		b.Members(func(k, v raw) bool {
			x, has := a.Get(k.Str())
			ok = has && jsonContains(x, v, false)
			return ok
		})
		return ok
	case 'a':
		if a.Kind() != 'a' {
			return false
		}
		ok := true
		b.Elems(func(_ int, v raw) bool {
			ok = false
			a.Elems(func(_ int, x raw) bool {
				ok = x.Kind() == v.Kind() && jsonContains(x, v, false)
				return !ok
			})
			return ok
		})
		return ok
	}
	if a.Kind() == 'a' && top {
		found := false
		a.Elems(func(_ int, x raw) bool {
			found = x.Kind() == b.Kind() && compareJSONB(x, b) == 0
			return !found
		})
		return found
	}
	return a.Kind() == b.Kind() && compareJSONB(a, b) == 0
}

// hasKey is jsonb ? text.
func hasKey(v raw, key string) bool {
	switch v.Kind() {
	case 'o':
		_, ok := v.Get(key)
		return ok
	case 'a':
		found := false
		v.Elems(func(_ int, x raw) bool {
			found = x.Kind() == 's' && x.Str() == key
			return !found
		})
		return found
	case 's':
		return v.Str() == key
	}
	return false
}

type member struct {
	key string
	val raw
}

func members(v raw) []member {
	var out []member
	v.Members(func(k, x raw) bool { out = append(out, member{k.Str(), x}); return true })
	return out
}

func elements(v raw) []raw {
	var out []raw
	v.Elems(func(_ int, x raw) bool { out = append(out, x); return true })
	return out
}

func writeObject(ms []member) string {
	sort.SliceStable(ms, func(a, b int) bool { return pgtext.JSONKeyLess(ms[a].key, ms[b].key) })
	b := []byte{'{'}
	first := true
	for i, m := range ms {
		if i+1 < len(ms) && ms[i+1].key == m.key {
			continue
		}
		if !first {
			b = append(b, ", "...)
		}
		first = false
		b = append(pgtext.AppendJSONString(b, []byte(m.key)), ": "...)
		b = append(b, m.val...)
	}
	return string(append(b, '}'))
}

func writeArray(es []raw) string {
	b := []byte{'['}
	for i, e := range es {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, e...)
	}
	return string(append(b, ']'))
}

func jsonbConcat(a, b raw) (string, error) {
	ka, kb := a.Kind(), b.Kind()
	switch {
	case ka == 'o' && kb == 'o':
		return writeObject(append(members(a), members(b)...)), nil
	case ka == 'a' && kb == 'a':
		return writeArray(append(elements(a), elements(b)...)), nil
	case ka == 'a':
		return writeArray(append(elements(a), b)), nil
	case kb == 'a':
		return writeArray(append([]raw{a}, elements(b)...)), nil
	case ka != 'o' && kb != 'o':
		return writeArray([]raw{a, b}), nil
	}
	if ka == 'o' || kb == 'o' {
		// An object and a scalar make an array only when the scalar is one.
		return writeArray([]raw{a, b}), nil
	}
	return "", pgerr.New(pgerr.InvalidParameterValue, "invalid concatenation of jsonb objects")
}

func jsonbDelete(v raw, keys map[string]bool) (string, error) {
	switch v.Kind() {
	case 'o':
		var ms []member
		for _, m := range members(v) {
			if !keys[m.key] {
				ms = append(ms, m)
			}
		}
		return writeObject(ms), nil
	case 'a':
		var es []raw
		for _, e := range elements(v) {
			if e.Kind() != 's' || !keys[e.Str()] {
				es = append(es, e)
			}
		}
		return writeArray(es), nil
	}
	return "", pgerr.New(pgerr.InvalidParameterValue, "cannot delete from scalar")
}

func jsonbDeleteIndex(v raw, i int64) (string, error) {
	switch v.Kind() {
	case 'o':
		return "", pgerr.New(pgerr.InvalidParameterValue, "cannot delete from object using integer index")
	case 'a':
		es := elements(v)
		if i < 0 {
			i += int64(len(es))
		}
		if i < 0 || i >= int64(len(es)) {
			return string(v), nil
		}
		return writeArray(append(append([]raw{}, es[:i]...), es[i+1:]...)), nil
	}
	return "", pgerr.New(pgerr.InvalidParameterValue, "cannot delete from scalar")
}

type setMode uint8

const (
	setReplace setMode = iota
	setDelete
	setInsertBefore
	setInsertAfter
)

// setPath is jsonb_set, jsonb_insert and #-.
func setPath(v raw, p []types.Datum, nv raw, create bool, mode setMode, depth int) (raw, error) {
	if len(p) == 0 {
		return v, nil
	}
	if p[0] == nil {
		return "", pgerr.New(pgerr.NullValueNotAllowed, "path element at position %d is null", depth+1)
	}
	key := p[0].(string)
	last := len(p) == 1
	switch v.Kind() {
	case 'o':
		ms := members(v)
		for i, m := range ms {
			if m.key != key {
				continue
			}
			if !last {
				x, err := setPath(m.val, p[1:], nv, create, mode, depth+1)
				if err != nil {
					return "", err
				}
				ms[i].val = x
				return raw(writeObject(ms)), nil
			}
			switch mode {
			case setDelete:
				return raw(writeObject(append(ms[:i:i], ms[i+1:]...))), nil
			case setInsertBefore, setInsertAfter:
				return "", pgerr.New(pgerr.InvalidParameterValue, "cannot replace existing key").
					WithHint("Try using the function jsonb_set to replace key value.")
			}
			ms[i].val = nv
			return raw(writeObject(ms)), nil
		}
		if last && (create && mode == setReplace || mode == setInsertBefore || mode == setInsertAfter) {
			return raw(writeObject(append(ms, member{key, nv}))), nil
		}
		return v, nil
	case 'a':
		es := elements(v)
		n, err := strconv.ParseInt(strings.TrimSpace(key), 10, 64)
		if err != nil {
			return "", pgerr.New(pgerr.InvalidTextRepresentation, "path element at position %d is not an integer: \"%s\"", depth+1, key)
		}
		i := n
		if i < 0 {
			i += int64(len(es))
		}
		if i >= 0 && i < int64(len(es)) {
			if !last {
				x, err := setPath(es[i], p[1:], nv, create, mode, depth+1)
				if err != nil {
					return "", err
				}
				es[i] = x
				return raw(writeArray(es)), nil
			}
			switch mode {
			case setDelete:
				return raw(writeArray(append(es[:i:i], es[i+1:]...))), nil
			case setInsertBefore:
				return raw(writeArray(append(append(append([]raw{}, es[:i]...), nv), es[i:]...))), nil
			case setInsertAfter:
				return raw(writeArray(append(append(append([]raw{}, es[:i+1]...), nv), es[i+1:]...))), nil
			}
			es[i] = nv
			return raw(writeArray(es)), nil
		}
		if !last || mode == setDelete || mode == setReplace && !create {
			return v, nil
		}
		if i < 0 {
			return raw(writeArray(append([]raw{nv}, es...))), nil
		}
		return raw(writeArray(append(es, nv))), nil
	}
	return v, nil
}

func setPathTop(v raw, p []types.Datum, nv raw, create bool, mode setMode) (types.Datum, error) {
	if k := v.Kind(); k != 'o' && k != 'a' {
		what := "cannot set path in scalar"
		if mode == setDelete {
			what = "cannot delete path in scalar"
		}
		return nil, pgerr.New(pgerr.InvalidParameterValue, "%s", what)
	}
	if v.Len() == 0 && !create {
		return string(v), nil
	}
	r, err := setPath(v, p, nv, create, mode, 0)
	if err != nil {
		return nil, err
	}
	return string(r), nil
}

func stripNulls(dst []byte, v raw, colon, comma string) []byte {
	switch v.Kind() {
	case 'o':
		dst = append(dst, '{')
		first := true
		v.Members(func(k, x raw) bool {
			if x.Kind() == 'z' {
				return true
			}
			if !first {
				dst = append(dst, comma...)
			}
			first = false
			dst = append(append(dst, k...), colon...)
			dst = stripNulls(dst, x, colon, comma)
			return true
		})
		return append(dst, '}')
	case 'a':
		dst = append(dst, '[')
		v.Elems(func(i int, x raw) bool {
			if i > 0 {
				dst = append(dst, comma...)
			}
			dst = stripNulls(dst, x, colon, comma)
			return true
		})
		return append(dst, ']')
	}
	return append(dst, v...)
}

func pretty(dst []byte, v raw, indent int) []byte {
	nl := func(n int) {
		dst = append(dst, '\n')
		for ; n > 0; n-- {
			dst = append(dst, "    "...)
		}
	}
	switch v.Kind() {
	case 'o':
		dst = append(dst, '{')
		first := true
		v.Members(func(k, x raw) bool {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			nl(indent + 1)
			dst = append(append(dst, k...), ": "...)
			dst = pretty(dst, x, indent+1)
			return true
		})
		nl(indent)
		return append(dst, '}')
	case 'a':
		dst = append(dst, '[')
		v.Elems(func(i int, x raw) bool {
			if i > 0 {
				dst = append(dst, ',')
			}
			nl(indent + 1)
			dst = pretty(dst, x, indent+1)
			return true
		})
		nl(indent)
		return append(dst, ']')
	}
	return append(dst, v...)
}

func typeofJSON(r raw) string {
	return map[byte]string{'o': "object", 'a': "array", 's': "string", 'n': "number", 'b': "boolean", 'z': "null"}[r.Kind()]
}

// toJSONKernel is to_json and to_jsonb.
func toJSONKernel(jsonb bool) Kernel {
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		n := rowsOf(c, args)
		valid, none := strictValid(n, args)
		if none {
			return nullResult(c, n)
		}
		f := jsonAppender(c, argType(c, 0), args[0].Arr)
		var buf []byte
		return appendRows(c, n, selOf(c, args), valid, func(dst []byte, i int) ([]byte, error) {
			if args[0].Const {
				i = 0
			}
			if !jsonb {
				return f(dst, i), nil
			}
			buf = f(buf[:0], i)
			s, err := pgtext.NormalizeJSONB(string(buf))
			return append(dst, s...), err
		})
	}
}

// jsonAppender is to_json's form of a value; oid aliases as their names.
func jsonAppender(c *Call, t types.Type, a arrow.Array) func(dst []byte, row int) []byte {
	if isReg(t.Kind) {
		text := TextAppender(c, t, a)
		return func(dst []byte, row int) []byte { return pgtext.AppendJSONString(dst, text(nil, row)) }
	}
	return pgtext.CompactJSONAppender(t, a, StyleOf(c.Env))
}

// buildJSON is json_build_array (object false) and json_build_object.
func buildJSON(object, jsonb bool) Kernel {
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		n := rowsOf(c, args)
		fs := make([]func([]byte, int) []byte, len(args))
		keys := make([]func([]byte, int) []byte, len(args))
		for k, a := range args {
			fs[k] = jsonAppender(c, argType(c, k), a.Arr)
			if object && k%2 == 0 {
				keys[k] = outAppender(c, argType(c, k), a.Arr)
				if argType(c, k).Kind == types.Bool {
					keys[k] = TextAppender(c, argType(c, k), vec.Decode(a.Arr))
				}
			}
		}
		if object && len(args)%2 != 0 {
			name := "json_build_object()"
			if jsonb {
				name = "jsonb_build_object()"
			}
			return nil, pgerr.New(pgerr.InvalidParameterValue, "argument list must have even number of elements").
				WithHint("The arguments of %s must consist of alternating keys and values.", name)
		}
		return appendRows(c, n, selOf(c, args), nil, func(dst []byte, i int) ([]byte, error) {
			at := len(dst)
			if object {
				dst = append(dst, '{')
			} else {
				dst = append(dst, '[')
			}
			for k, a := range args {
				r := i
				if a.Const {
					r = 0
				}
				isKey := object && k%2 == 0
				if k > 0 && (!object || isKey) {
					dst = append(dst, ", "...)
				}
				null := a.Arr.IsNull(r)
				switch {
				case isKey && null:
					return nil, pgerr.New(pgerr.InvalidParameterValue, "argument %d cannot be null", k+1).
						WithHint("Object keys should be text.")
				case isKey:
					dst = pgtext.AppendJSONString(dst, keys[k](nil, r))
					dst = append(dst, " : "...)
				case null:
					dst = append(dst, "null"...)
				default:
					dst = fs[k](dst, r)
				}
			}
			if object {
				dst = append(dst, '}')
			} else {
				dst = append(dst, ']')
			}
			if jsonb {
				s, err := pgtext.NormalizeJSONB(string(dst[at:]))
				if err != nil {
					return nil, err
				}
				dst = append(dst[:at], s...)
			}
			return dst, nil
		})
	}
}

func jsonbOf(s string) (types.Datum, error) {
	r, err := pgtext.NormalizeJSONB(s)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// objectFromPairs is json_object of one array of pairs, or keys and values.
func objectFromPairs(a []types.Datum) (string, error) {
	keys := asArray(a[0])
	var vals []types.Datum
	if len(a) > 1 {
		vals = asArray(a[1])
		if kd, vd := dims(keys), dims(vals); len(kd) > 1 || len(kd) != len(vd) {
			return "", pgerr.New(pgerr.ArraySubscriptError, "wrong number of array subscripts")
		}
		if len(keys) != len(vals) {
			return "", pgerr.New(pgerr.ArraySubscriptError, "mismatched array dimensions")
		}
	} else {
		if len(keys) > 0 {
			if _, two := nested(keys); two {
				var ks []types.Datum
				for _, p := range keys {
					pair := asArray(p)
					if len(pair) != 2 {
						return "", pgerr.New(pgerr.ArraySubscriptError, "array must have two columns")
					}
					ks, vals = append(ks, pair[0]), append(vals, pair[1])
				}
				keys = ks
			} else {
				if len(keys)%2 != 0 {
					return "", pgerr.New(pgerr.ArraySubscriptError, "array must have even number of elements")
				}
				var ks []types.Datum
				for i := 0; i < len(keys); i += 2 {
					ks, vals = append(ks, keys[i]), append(vals, keys[i+1])
				}
				keys = ks
			}
		}
	}
	b := []byte{'{'}
	for i, k := range keys {
		if k == nil {
			return "", pgerr.New(pgerr.NullValueNotAllowed, "null value not allowed for object key")
		}
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(pgtext.AppendJSONString(b, []byte(k.(string))), " : "...)
		if vals[i] == nil {
			b = append(b, "null"...)
		} else {
			b = pgtext.AppendJSONString(b, []byte(vals[i].(string)))
		}
	}
	return string(append(b, '}')), nil
}
