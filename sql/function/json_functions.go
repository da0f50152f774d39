package function

import (
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

func jsonOps() []*Overload {
	var out []*Overload
	tArr := types.ArrayOf(tText)
	for _, k := range []types.Kind{types.JSON, types.JSONB} {
		t := types.Of(k)
		add := func(op string, arg, ret types.Type, f func(v raw, a types.Datum) (types.Datum, error), doc string) {
			out = append(out, &Overload{Name: op, Args: []types.Type{t, arg}, Ret: ret, Strict: true, Doc: doc,
				Kernel: strictRowFn(func(_ *Call, a []types.Datum) (types.Datum, error) { return f(rawOf(a[0].(string)), a[1]) })})
		}
		add("->", tText, t, func(v raw, a types.Datum) (types.Datum, error) { return getJSON(v.Get(a.(string))) }, "Member of a JSON object.")
		// A jsonb scalar is an array of one within.
		at := func(v raw, i int64) (raw, bool) {
			if kind := v.Kind(); k == types.JSONB && kind != 'a' && kind != 'o' {
				return v, i == 0 || i == -1
			}
			return v.At(int(i))
		}
		add("->", tInt4, t, func(v raw, a types.Datum) (types.Datum, error) { return getJSON(at(v, a.(int64))) }, "Element of a JSON array.")
		add("->>", tText, tText, func(v raw, a types.Datum) (types.Datum, error) { return getText(v.Get(a.(string))) }, "Member of a JSON object as text.")
		add("->>", tInt4, tText, func(v raw, a types.Datum) (types.Datum, error) { return getText(at(v, a.(int64))) }, "Element of a JSON array as text.")
		add("#>", tArr, t, func(v raw, a types.Datum) (types.Datum, error) { return getJSON(path(v, asArray(a))) }, "Part of a JSON value at a path.")
		add("#>>", tArr, tText, func(v raw, a types.Datum) (types.Datum, error) { return getText(path(v, asArray(a))) }, "Part of a JSON value at a path, as text.")
	}
	jb := types.Of(types.JSONB)
	add := func(op string, arg, ret types.Type, f func(v raw, a types.Datum) (types.Datum, error), doc string) {
		out = append(out, &Overload{Name: op, Args: []types.Type{jb, arg}, Ret: ret, Strict: true, Doc: doc,
			Kernel: strictRowFn(func(_ *Call, a []types.Datum) (types.Datum, error) { return f(raw(a[0].(string)), a[1]) })})
	}
	add("@>", jb, tBool, func(v raw, a types.Datum) (types.Datum, error) { return jsonContains(v, raw(a.(string)), true), nil }, "Whether a jsonb value contains another.")
	add("<@", jb, tBool, func(v raw, a types.Datum) (types.Datum, error) { return jsonContains(raw(a.(string)), v, true), nil }, "Whether a jsonb value is contained in another.")
	add("?", tText, tBool, func(v raw, a types.Datum) (types.Datum, error) { return hasKey(v, a.(string)), nil }, "Whether a string is a key or element of a jsonb value.")
	add("?|", tArr, tBool, func(v raw, a types.Datum) (types.Datum, error) {
		for _, k := range asArray(a) {
			if k != nil && hasKey(v, k.(string)) {
				return true, nil
			}
		}
		return false, nil
	}, "Whether any of the strings is a key or element of a jsonb value.")
	add("?&", tArr, tBool, func(v raw, a types.Datum) (types.Datum, error) {
		for _, k := range asArray(a) {
			if k != nil && !hasKey(v, k.(string)) {
				return false, nil
			}
		}
		return true, nil
	}, "Whether all the strings are keys or elements of a jsonb value.")
	str := func(s string, err error) (types.Datum, error) {
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	add("||", jb, jb, func(v raw, a types.Datum) (types.Datum, error) { return str(jsonbConcat(v, raw(a.(string)))) }, "Two jsonb values joined.")
	add("-", tText, jb, func(v raw, a types.Datum) (types.Datum, error) {
		return str(jsonbDelete(v, map[string]bool{a.(string): true}))
	}, "A jsonb value without a key or string element.")
	add("-", tInt4, jb, func(v raw, a types.Datum) (types.Datum, error) { return str(jsonbDeleteIndex(v, a.(int64))) }, "A jsonb array without an element.")
	add("-", tArr, jb, func(v raw, a types.Datum) (types.Datum, error) {
		m := map[string]bool{}
		for _, k := range asArray(a) {
			if k != nil {
				m[k.(string)] = true
			}
		}
		return str(jsonbDelete(v, m))
	}, "A jsonb value without some keys or string elements.")
	add("#-", tArr, jb, func(v raw, a types.Datum) (types.Datum, error) {
		return setPathTop(v, asArray(a), "", false, setDelete)
	}, "A jsonb value without what is at a path.")
	return out
}

func jsonFunctions() []*Overload {
	var out []*Overload
	tArr := types.ArrayOf(tText)
	js, jb, el, rec, any := types.Of(types.JSON), types.Of(types.JSONB), types.Of(types.AnyElement), types.Of(types.Record), types.Of(types.Any)
	strict := func(name string, ret types.Type, f func(c *Call, a []types.Datum) (types.Datum, error), doc string, args ...types.Type) *Overload {
		o := &Overload{Name: name, Args: args, Ret: ret, Strict: true, Kernel: strictRowFn(f), Doc: doc}
		out = append(out, o)
		return o
	}
	kernel := func(name string, ret types.Type, isStrict bool, k Kernel, doc string, args ...types.Type) *Overload {
		o := &Overload{Name: name, Args: args, Ret: ret, Strict: isStrict, Volatility: Stable, Kernel: k, Doc: doc}
		out = append(out, o)
		return o
	}
	kernel("to_json", js, true, toJSONKernel(false), "A value as json.", el)
	kernel("to_jsonb", jb, true, toJSONKernel(true), "A value as jsonb.", el)
	kernel("row_to_json", js, true, toJSONKernel(false), "A row as a JSON object.", rec)
	kernel("row_to_json", js, true, toJSONKernel(false), "A row as a JSON object; line feeds are not added.", rec, tBool)
	kernel("array_to_json", js, true, toJSONKernel(false), "An array as a JSON array.", types.Of(types.AnyArray))
	kernel("array_to_json", js, true, toJSONKernel(false), "An array as a JSON array; line feeds are not added.", types.Of(types.AnyArray), tBool)
	for _, j := range []struct {
		p string
		t types.Type
		b bool
	}{{"json", js, false}, {"jsonb", jb, true}} {
		norm := func(s string, err error) (types.Datum, error) {
			if err != nil {
				return nil, err
			}
			if j.b {
				return jsonbOf(s)
			}
			return s, nil
		}
		kernel(j.p+"_build_object", j.t, false, buildJSON(true, j.b), "A JSON object of alternating keys and values.", any).Variadic = true
		empty := "{}"
		out = append(out, &Overload{Name: j.p + "_build_object", Ret: j.t, Kernel: constFn(func(*Call) (types.Datum, error) { return empty, nil }), Doc: "An empty JSON object."})
		kernel(j.p+"_build_array", j.t, false, buildJSON(false, j.b), "A JSON array of the arguments.", any).Variadic = true
		out = append(out, &Overload{Name: j.p + "_build_array", Ret: j.t, Kernel: constFn(func(*Call) (types.Datum, error) { return "[]", nil }), Doc: "An empty JSON array."})
		strict(j.p+"_object", j.t, func(_ *Call, a []types.Datum) (types.Datum, error) { return norm(objectFromPairs(a)) }, "A JSON object from an array of alternating keys and values.", tArr)
		strict(j.p+"_object", j.t, func(_ *Call, a []types.Datum) (types.Datum, error) { return norm(objectFromPairs(a)) }, "A JSON object from an array of keys and one of values.", tArr, tArr)
		strict(j.p+"_typeof", tText, func(_ *Call, a []types.Datum) (types.Datum, error) {
			return typeofJSON(rawOf(a[0].(string))), nil
		}, "The type of a JSON value.", j.t)
		strict(j.p+"_array_length", tInt4, func(_ *Call, a []types.Datum) (types.Datum, error) {
			v := rawOf(a[0].(string))
			switch v.Kind() {
			case 'a':
				return int64(v.Len()), nil
			case 'o':
				return nil, pgerr.New(pgerr.InvalidParameterValue, "cannot get array length of a non-array")
			}
			return nil, pgerr.New(pgerr.InvalidParameterValue, "cannot get array length of a scalar")
		}, "Number of elements of a JSON array.", j.t)
		pathArgs := func(a []types.Datum) []types.Datum { return a[1:] }
		strict(j.p+"_extract_path", j.t, func(_ *Call, a []types.Datum) (types.Datum, error) {
			return getJSON(path(rawOf(a[0].(string)), pathArgs(a)))
		}, "Part of a JSON value at a path.", j.t, tText).Variadic = true
		strict(j.p+"_extract_path_text", tText, func(_ *Call, a []types.Datum) (types.Datum, error) {
			return getText(path(rawOf(a[0].(string)), pathArgs(a)))
		}, "Part of a JSON value at a path, as text.", j.t, tText).Variadic = true
		colon, comma := ":", ","
		if j.b {
			colon, comma = ": ", ", "
		}
		strict(j.p+"_strip_nulls", j.t, func(_ *Call, a []types.Datum) (types.Datum, error) {
			return string(stripNulls(nil, rawOf(a[0].(string)), colon, comma)), nil
		}, "A JSON value without members that are null.", j.t)
	}
	strict("jsonb_pretty", tText, func(_ *Call, a []types.Datum) (types.Datum, error) {
		return string(pretty(nil, raw(a[0].(string)), 0)), nil
	}, "A jsonb value as indented text.", jb)
	set := strict("jsonb_set", jb, func(_ *Call, a []types.Datum) (types.Datum, error) {
		create := len(a) < 4 || a[3].(bool)
		return setPathTop(raw(a[0].(string)), asArray(a[1]), raw(a[2].(string)), create, setReplace)
	}, "A jsonb value with the part at a path replaced or added.", jb, tArr, jb, tBool)
	set.Defaults = 1
	set.ArgNames = []string{"jsonb_in", "path", "replacement", "create_if_missing"}
	ins := strict("jsonb_insert", jb, func(_ *Call, a []types.Datum) (types.Datum, error) {
		mode := setInsertBefore
		if len(a) > 3 && a[3].(bool) {
			mode = setInsertAfter
		}
		return setPathTop(raw(a[0].(string)), asArray(a[1]), raw(a[2].(string)), true, mode)
	}, "A jsonb value with a value inserted at a path.", jb, tArr, jb, tBool)
	ins.Defaults = 1
	ins.ArgNames = []string{"jsonb_in", "path", "replacement", "insert_after"}
	strict("jsonb_contains", tBool, func(_ *Call, a []types.Datum) (types.Datum, error) {
		return jsonContains(raw(a[0].(string)), raw(a[1].(string)), true), nil
	}, "Whether a jsonb value contains another.", jb, jb)
	strict("jsonb_exists", tBool, func(_ *Call, a []types.Datum) (types.Datum, error) {
		return hasKey(raw(a[0].(string)), a[1].(string)), nil
	}, "Whether a string is a key or element of a jsonb value.", jb, tText)
	return out
}

func jsonSets() []*Overload {
	var out []*Overload
	for _, j := range []struct {
		p string
		t types.Type
	}{{"json", types.Of(types.JSON)}, {"jsonb", types.Of(types.JSONB)}} {
		for _, asText := range []bool{false, true} {
			suffix, vt := "", j.t
			if asText {
				suffix, vt = "_text", tText
			}
			val := func(v raw) types.Datum {
				if asText {
					d, _ := getText(v, true)
					return d
				}
				return string(v)
			}
			name := j.p + "_array_elements" + suffix
			o := setFn(name, vt, func(_ *Call, a []types.Datum) (SetReader, error) {
				if a[0] == nil {
					return emptyReader{}, nil
				}
				v := rawOf(a[0].(string))
				switch v.Kind() {
				case 'o':
					if j.p == "json" {
						return nil, pgerr.New(pgerr.InvalidParameterValue, "cannot call %s on a non-array", name)
					}
					return nil, pgerr.New(pgerr.InvalidParameterValue, "cannot extract elements from an object")
				case 'a':
				default:
					if j.p == "json" {
						return nil, pgerr.New(pgerr.InvalidParameterValue, "cannot call %s on a scalar", name)
					}
					return nil, pgerr.New(pgerr.InvalidParameterValue, "cannot extract elements from a scalar")
				}
				r := &listReader{t: vt}
				v.Elems(func(_ int, x raw) bool { r.vals = append(r.vals, val(x)); return true })
				return r, nil
			}, "The elements of a JSON array as rows.", j.t)
			o.SetColumns = func([]types.Type) types.Schema { return types.Schema{{ID: -1, Name: "value", Type: vt}} }
			out = append(out, o)
			ename := j.p + "_each" + suffix
			e := setFn(ename, types.Of(types.Record), func(_ *Call, a []types.Datum) (SetReader, error) {
				if a[0] == nil {
					return emptyReader{}, nil
				}
				v := rawOf(a[0].(string))
				switch v.Kind() {
				case 'o':
				case 'a':
					if j.p == "json" {
						return nil, pgerr.New(pgerr.InvalidParameterValue, "cannot deconstruct an array as an object")
					}
					return nil, pgerr.New(pgerr.InvalidParameterValue, "cannot call %s on a non-object", ename)
				default:
					if j.p == "json" {
						return nil, pgerr.New(pgerr.InvalidParameterValue, "cannot deconstruct a scalar")
					}
					return nil, pgerr.New(pgerr.InvalidParameterValue, "cannot call %s on a non-object", ename)
				}
				r := &rowsReader{types: []types.Type{tText, vt}}
				v.Members(func(k, x raw) bool { r.rows = append(r.rows, []types.Datum{k.Str(), val(x)}); return true })
				return r, nil
			}, "The members of a JSON object as rows.", j.t)
			e.SetColumns = setColumns("key value", tText, vt)
			out = append(out, e)
		}
		kname := j.p + "_object_keys"
		out = append(out, setFn(kname, tText, func(_ *Call, a []types.Datum) (SetReader, error) {
			if a[0] == nil {
				return emptyReader{}, nil
			}
			v := rawOf(a[0].(string))
			switch v.Kind() {
			case 'o':
			case 'a':
				return nil, pgerr.New(pgerr.InvalidParameterValue, "cannot call %s on an array", kname)
			default:
				return nil, pgerr.New(pgerr.InvalidParameterValue, "cannot call %s on a scalar", kname)
			}
			r := &listReader{t: tText}
			v.Members(func(k, _ raw) bool { r.vals = append(r.vals, k.Str()); return true })
			return r, nil
		}, "The keys of a JSON object as rows.", j.t))
	}
	return out
}
