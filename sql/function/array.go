package function

import (
	"strconv"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Array functions and operators work on boxed values: arrays are short and
// rarely hot.

// equalDatums compares two values of a type; NULL equals NULL.
func equalDatums(t types.Type, a, b types.Datum) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	switch x := a.(type) {
	case int64:
		y, ok := b.(int64)
		return ok && x == y
	case string:
		if t.Kind != types.JSONB && t.Kind != types.BpChar {
			y, ok := b.(string)
			return ok && x == y
		}
	case bool:
		y, ok := b.(bool)
		return ok && x == y
	}
	return compareDatums(t, a, b) == 0
}

// compareDatums compares two values that are not NULL.
func compareDatums(t types.Type, a, b types.Datum) int {
	return vec.NewCompare(t, vec.FromDatums(t, []types.Datum{a}), vec.FromDatums(t, []types.Datum{b}))(0, 0)
}

// dims returns the lengths of an array's dimensions.
func dims(a []types.Datum) []int64 {
	if len(a) == 0 {
		return nil
	}
	out := []int64{int64(len(a))}
	if s, ok := nested(a); ok {
		out = append(out, dims(s)...)
	}
	return out
}

func dim(c *Call, a []types.Datum, n int64) (length, lo int64, ok bool) {
	d := dims(a)
	if n < 1 || n > int64(len(d)) {
		return 0, 0, false
	}
	return d[n-1], lowerBound(argType(c, 0)), true
}

func countAll(a []types.Datum) int64 {
	n := int64(0)
	for _, v := range a {
		if s, ok := v.([]types.Datum); ok {
			n += countAll(s)
		} else {
			n++
		}
	}
	return n
}

func contained(t types.Type, a, b []types.Datum) bool {
	for _, x := range a {
		if x == nil {
			return false
		}
		found := false
		for _, y := range b {
			if y != nil && equalDatums(t, x, y) {
				found = true
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}

func overlaps(t types.Type, a, b []types.Datum) bool {
	for _, x := range a {
		for _, y := range b {
			if x != nil && y != nil && equalDatums(t, x, y) {
				return true
			}
		}
	}
	return false
}

// polymorphic resolves the element type that anyarray and anyelement arguments
// stand for.
func elementOf(args []types.Type, sig []types.Type) types.Type {
	for i, s := range sig {
		if i >= len(args) {
			break
		}
		switch s.Kind {
		case types.AnyArray, types.AnyCompatibleArray:
			if args[i].Kind == types.Array || args[i].Kind == types.Int2Vector || args[i].Kind == types.OIDVector {
				return elemType(args[i])
			}
		}
	}
	for i, s := range sig {
		if i >= len(args) {
			break
		}
		switch s.Kind {
		case types.AnyElement, types.AnyNonArray, types.AnyCompatible:
			if args[i].Kind != types.Unknown {
				return args[i].SQL().WithNotNull(false)
			}
		}
	}
	return tText
}

func arrayRet(sig []types.Type) func(args []types.Type) types.Type {
	return func(args []types.Type) types.Type { return types.ArrayOf(elementOf(args, sig)) }
}

func asArray(d types.Datum) []types.Datum {
	a, _ := d.([]types.Datum)
	return a
}

func catArrays(_ *Call, a []types.Datum) (types.Datum, error) {
	switch {
	case a[0] == nil && a[1] == nil:
		return nil, nil
	case a[0] == nil:
		return a[1], nil
	case a[1] == nil:
		return a[0], nil
	}
	return append(append([]types.Datum{}, asArray(a[0])...), asArray(a[1])...), nil
}

func appendElem(_ *Call, a []types.Datum) (types.Datum, error) {
	return append(append([]types.Datum{}, asArray(a[0])...), a[1]), nil
}

func prependElem(_ *Call, a []types.Datum) (types.Datum, error) {
	return append([]types.Datum{a[0]}, asArray(a[1])...), nil
}

func arrayFunctions() []*Overload {
	arr, el := types.Of(types.AnyArray), types.Of(types.AnyElement)
	carr, cel := types.Of(types.AnyCompatibleArray), types.Of(types.AnyCompatible)
	var out []*Overload
	strict := func(name string, ret types.Type, f func(c *Call, a []types.Datum) (types.Datum, error), doc string, args ...types.Type) *Overload {
		o := &Overload{Name: name, Args: args, Ret: ret, Strict: true, Kernel: strictRowFn(f), Doc: doc}
		out = append(out, o)
		return o
	}
	loose := func(name string, ret types.Type, f func(c *Call, a []types.Datum) (types.Datum, error), doc string, args ...types.Type) *Overload {
		o := &Overload{Name: name, Args: args, Ret: ret, Kernel: rowFn(f), Doc: doc}
		out = append(out, o)
		return o
	}
	strict("array_length", tInt4, func(c *Call, a []types.Datum) (types.Datum, error) {
		n, _, ok := dim(c, asArray(a[0]), a[1].(int64))
		if !ok {
			return nil, nil
		}
		return n, nil
	}, "Length of a dimension of an array.", arr, tInt4)
	strict("array_upper", tInt4, func(c *Call, a []types.Datum) (types.Datum, error) {
		n, lo, ok := dim(c, asArray(a[0]), a[1].(int64))
		if !ok {
			return nil, nil
		}
		return lo + n - 1, nil
	}, "Last subscript of a dimension of an array.", arr, tInt4)
	strict("array_lower", tInt4, func(c *Call, a []types.Datum) (types.Datum, error) {
		_, lo, ok := dim(c, asArray(a[0]), a[1].(int64))
		if !ok {
			return nil, nil
		}
		return lo, nil
	}, "First subscript of a dimension of an array.", arr, tInt4)
	strict("array_ndims", tInt4, func(_ *Call, a []types.Datum) (types.Datum, error) {
		d := dims(asArray(a[0]))
		if len(d) == 0 {
			return nil, nil
		}
		return int64(len(d)), nil
	}, "Number of dimensions of an array.", arr)
	strict("array_dims", tText, func(c *Call, a []types.Datum) (types.Datum, error) {
		d := dims(asArray(a[0]))
		if len(d) == 0 {
			return nil, nil
		}
		s := ""
		lo := lowerBound(argType(c, 0))
		for _, n := range d {
			s += "[" + fmtInt(lo) + ":" + fmtInt(lo+n-1) + "]"
		}
		return s, nil
	}, "Text form of an array's dimensions.", arr)
	strict("cardinality", tInt4, func(_ *Call, a []types.Datum) (types.Datum, error) { return countAll(asArray(a[0])), nil }, "Number of elements of an array.", arr)
	o := loose("array_append", carr, appendElem, "An array with an element behind.", carr, cel)
	o.RetFn = arrayRet(o.Args)
	o = loose("array_prepend", carr, prependElem, "An array with an element in front.", cel, carr)
	o.RetFn = arrayRet(o.Args)
	o = loose("array_cat", carr, catArrays, "Two arrays joined.", carr, carr)
	o.RetFn = arrayRet(o.Args)
	o = loose("array_remove", carr, func(c *Call, a []types.Datum) (types.Datum, error) {
		if a[0] == nil {
			return nil, nil
		}
		et := elemType(argType(c, 0))
		r := []types.Datum{}
		for _, x := range asArray(a[0]) {
			if !equalDatums(et, x, a[1]) {
				r = append(r, x)
			}
		}
		return r, nil
	}, "An array without elements equal to a value.", carr, cel)
	o.RetFn = arrayRet(o.Args)
	o = loose("array_replace", carr, func(c *Call, a []types.Datum) (types.Datum, error) {
		if a[0] == nil {
			return nil, nil
		}
		et := elemType(argType(c, 0))
		r := append([]types.Datum{}, asArray(a[0])...)
		for i, x := range r {
			if equalDatums(et, x, a[1]) {
				r[i] = a[2]
			}
		}
		return r, nil
	}, "An array with elements equal to a value replaced.", carr, cel, cel)
	o.RetFn = arrayRet(o.Args)
	position := func(c *Call, a []types.Datum) (types.Datum, error) {
		if a[0] == nil {
			return nil, nil
		}
		et := elemType(argType(c, 0))
		lo := lowerBound(argType(c, 0))
		from := lo
		if len(a) > 2 {
			if a[2] == nil {
				return nil, pgerr.New(pgerr.NullValueNotAllowed, "initial position must not be null")
			}
			from = a[2].(int64)
		}
		for i, x := range asArray(a[0]) {
			if int64(i)+lo >= from && equalDatums(et, x, a[1]) {
				return int64(i) + lo, nil
			}
		}
		return nil, nil
	}
	loose("array_position", tInt4, position, "Subscript of the first element equal to a value.", carr, cel)
	loose("array_position", tInt4, position, "Subscript of the first element equal to a value, from a subscript on.", carr, cel, tInt4)
	loose("array_positions", types.ArrayOf(tInt4), func(c *Call, a []types.Datum) (types.Datum, error) {
		if a[0] == nil {
			return nil, nil
		}
		et := elemType(argType(c, 0))
		r := []types.Datum{}
		for i, x := range asArray(a[0]) {
			if equalDatums(et, x, a[1]) {
				r = append(r, int64(i)+lowerBound(argType(c, 0)))
			}
		}
		return r, nil
	}, "Subscripts of the elements equal to a value.", carr, cel)
	fill := func(c *Call, a []types.Datum) (types.Datum, error) {
		if a[1] == nil || len(a) > 2 && a[2] == nil {
			return nil, pgerr.New(pgerr.NullValueNotAllowed, "dimension array or low bound array cannot be null")
		}
		ds := asArray(a[1])
		if len(ds) == 0 {
			return []types.Datum{}, nil
		}
		if len(ds) > 1 {
			return nil, pgerr.New(pgerr.FeatureNotSupported, "multidimensional arrays are not supported")
		}
		if ds[0] == nil {
			return nil, pgerr.New(pgerr.NullValueNotAllowed, "dimension values cannot be null")
		}
		n := ds[0].(int64)
		if n < 0 || n > 1<<27 {
			return nil, pgerr.New(pgerr.ProgramLimitExceeded, "array size exceeds the maximum allowed (%d)", 1<<27)
		}
		if err := c.boxes(n); err != nil {
			return nil, err
		}
		r := make([]types.Datum, n)
		for i := range r {
			r[i] = a[0]
		}
		return r, nil
	}
	o = loose("array_fill", arr, fill, "An array filled with a value.", el, types.ArrayOf(tInt4))
	o.RetFn = arrayRet(o.Args[:1])
	o = loose("array_fill", arr, fill, "An array filled with a value, with lower bounds.", el, types.ArrayOf(tInt4), types.ArrayOf(tInt4))
	o.RetFn = arrayRet(o.Args[:1])
	o = strict("trim_array", arr, func(_ *Call, a []types.Datum) (types.Datum, error) {
		v, n := asArray(a[0]), a[1].(int64)
		if n < 0 || n > int64(len(v)) {
			return nil, pgerr.New(pgerr.ArraySubscriptError, "number of elements to trim must be between 0 and %d", len(v))
		}
		return v[:len(v)-int(n)], nil
	}, "An array without its last n elements.", arr, tInt4)
	o.RetFn = arrayRet(o.Args)
	bucket := strict("width_bucket", tInt4, func(c *Call, a []types.Datum) (types.Datum, error) {
		ths := asArray(a[1])
		t := elemType(argType(c, 1))
		lo, hi := 0, len(ths)
		if anyNull(ths) {
			return nil, pgerr.New(pgerr.NullValueNotAllowed, "thresholds array must not contain NULLs")
		}
		for lo < hi {
			m := (lo + hi) / 2
			if compareDatums(t, a[0], ths[m]) < 0 {
				hi = m
			} else {
				lo = m + 1
			}
		}
		return int64(lo), nil
	}, "Number of the bucket that a value falls into, by lower bounds.", cel, carr)
	_ = bucket
	return out
}

func arrayOps() []*Overload {
	arr, el := types.Of(types.AnyArray), types.Of(types.AnyElement)
	carr, cel := types.Of(types.AnyCompatibleArray), types.Of(types.AnyCompatible)
	_ = el
	set := func(name string, f func(t types.Type, a, b []types.Datum) bool, doc string) *Overload {
		return &Overload{Name: name, Args: []types.Type{arr, arr}, Ret: tBool, Strict: true, Doc: doc,
			Kernel: strictRowFn(func(c *Call, a []types.Datum) (types.Datum, error) {
				return f(elemType(argType(c, 0)), asArray(a[0]), asArray(a[1])), nil
			})}
	}
	out := []*Overload{
		set("@>", func(t types.Type, a, b []types.Datum) bool { return contained(t, b, a) }, "Whether an array contains another."),
		set("<@", contained, "Whether an array is contained in another."),
		set("&&", overlaps, "Whether two arrays have an element in common."),
		{Name: "||", Args: []types.Type{carr, carr}, Ret: carr, Kernel: rowFn(catArrays), Doc: "Two arrays joined."},
		{Name: "||", Args: []types.Type{carr, cel}, Ret: carr, Kernel: rowFn(appendElem), Doc: "An array with an element behind."},
		{Name: "||", Args: []types.Type{cel, carr}, Ret: carr, Kernel: rowFn(prependElem), Doc: "An array with an element in front."},
	}
	for _, o := range out[3:] {
		o.RetFn = arrayRet(o.Args)
	}
	return out
}

func fmtInt(v int64) string { return strconv.FormatInt(v, 10) }
