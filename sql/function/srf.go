package function

import (
	"context"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Set-returning functions. A reader makes whole columns; generate_series fills
// slices in a loop.

// rowsReader yields rows that were computed at once.
type rowsReader struct {
	types []types.Type
	rows  [][]types.Datum
}

func (r *rowsReader) Next(_ context.Context, max int) ([]arrow.Array, error) {
	n := min(max, len(r.rows))
	if n == 0 {
		return nil, nil
	}
	out := make([]arrow.Array, len(r.types))
	col := make([]types.Datum, n)
	for k, t := range r.types {
		for i := range col {
			col[i] = r.rows[i][k]
		}
		out[k] = vec.FromDatums(t, col)
	}
	r.rows = r.rows[n:]
	return out, nil
}

func (r *rowsReader) Close() error { r.rows = nil; return nil }

// listReader yields one column.
type listReader struct {
	t    types.Type
	vals []types.Datum
}

func (r *listReader) Next(_ context.Context, max int) ([]arrow.Array, error) {
	n := min(max, len(r.vals))
	if n == 0 {
		return nil, nil
	}
	a := vec.FromDatums(r.t, r.vals[:n])
	r.vals = r.vals[n:]
	return []arrow.Array{a}, nil
}

func (r *listReader) Close() error { r.vals = nil; return nil }

type emptyReader struct{}

func (emptyReader) Next(context.Context, int) ([]arrow.Array, error) { return nil, nil }
func (emptyReader) Close() error                                     { return nil }

// intSeries counts from next to last by step.
type intSeries struct {
	next, last, step int64
	done             bool
	t                types.Type
}

func (r *intSeries) Next(_ context.Context, maxRows int) ([]arrow.Array, error) {
	if r.done || r.step > 0 && r.next > r.last || r.step < 0 && r.next < r.last {
		return nil, nil
	}
	// How many are left, without overflow.
	var left uint64
	if r.step > 0 {
		left = (uint64(r.last)-uint64(r.next))/uint64(r.step) + 1
	} else {
		left = (uint64(r.next)-uint64(r.last))/(-uint64(r.step)) + 1
	}
	n := maxRows
	if left < uint64(n) && left != 0 {
		n = int(left)
	}
	v := r.next
	var a arrow.Array
	if r.t.Kind == types.Int4 {
		out := make([]int32, n)
		s := int32(r.step)
		x := int32(v)
		for i := range out {
			out[i] = x
			x += s
		}
		a = vec.Make(arrow.PrimitiveTypes.Int32, out, nil)
	} else {
		out := make([]int64, n)
		for i := range out {
			out[i] = v
			v += r.step
		}
		a = vec.Make(arrow.PrimitiveTypes.Int64, out, nil)
	}
	if uint64(n) == left {
		r.done = true
	} else {
		r.next += int64(n) * r.step
	}
	return []arrow.Array{a}, nil
}

func (r *intSeries) Close() error { r.done = true; return nil }

func errZeroStep() error {
	return pgerr.New(pgerr.InvalidParameterValue, "step size cannot equal zero")
}

func anyNull(args []types.Datum) bool {
	for _, a := range args {
		if a == nil {
			return true
		}
	}
	return false
}

func intSeriesFn(t types.Type) SetFunc {
	return func(c *Call, args []types.Datum) (SetReader, error) {
		if anyNull(args) {
			return emptyReader{}, nil
		}
		r := &intSeries{next: args[0].(int64), last: args[1].(int64), step: intArg(args, 2, 1), t: t}
		if r.step == 0 {
			return nil, errZeroStep()
		}
		return r, nil
	}
}

// numSeries counts in numerics; the scale is that of the widest argument.
type numSeries struct {
	next, last, step *numeric.Dec
}

func (r *numSeries) Next(_ context.Context, max int) ([]arrow.Array, error) {
	var ds []types.Datum
	up := r.step.Sign() > 0
	for len(ds) < max {
		if c := numeric.Cmp(r.next, r.last); up && c > 0 || !up && c < 0 {
			break
		}
		ds = append(ds, r.next)
		r.next = numeric.Add(r.next, r.step)
	}
	if len(ds) == 0 {
		return nil, nil
	}
	return []arrow.Array{vec.FromDatums(tNum, ds)}, nil
}

func (r *numSeries) Close() error { return nil }

func numSeriesFn(_ *Call, args []types.Datum) (SetReader, error) {
	if anyNull(args) {
		return emptyReader{}, nil
	}
	names := []string{"start", "stop", "step"}
	step := numeric.FromInt64(1)
	if len(args) > 2 {
		step = args[2].(*numeric.Dec)
	}
	for i, a := range args {
		d := a.(*numeric.Dec)
		what := names[i] + " value"
		if i == 2 {
			what = "step size"
		}
		if d.Form == numeric.NaN {
			return nil, pgerr.New(pgerr.InvalidParameterValue, "%s cannot be NaN", what)
		}
		if d.Form != numeric.Finite {
			return nil, pgerr.New(pgerr.InvalidParameterValue, "%s cannot be infinity", what)
		}
	}
	if step.IsZero() {
		return nil, errZeroStep()
	}
	return &numSeries{args[0].(*numeric.Dec), args[1].(*numeric.Dec), step}, nil
}

// timeSeries counts timestamps by an interval.
type timeSeries struct {
	next, last int64
	step       pgtext.Interval
	up         bool
	z          *pgtext.Zone
	t          types.Type
	done       bool
}

func (r *timeSeries) Next(ctx context.Context, max int) ([]arrow.Array, error) {
	if r.done {
		return nil, nil
	}
	out := make([]int64, 0, min(max, 1<<16))
	for len(out) < max && !r.done {
		if r.up && r.next > r.last || !r.up && r.next < r.last {
			r.done = true
			break
		}
		out = append(out, r.next)
		var err error
		if r.z != nil {
			r.next, err = AddIntervalTZ(r.z, r.next, r.step)
		} else {
			r.next, err = AddInterval(r.next, r.step)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	return []arrow.Array{vec.Make(r.t.Arrow(), out, nil)}, nil
}

func (r *timeSeries) Close() error { return nil }

func timeSeriesFn(tz bool) SetFunc {
	return func(c *Call, args []types.Datum) (SetReader, error) {
		if anyNull(args) {
			return emptyReader{}, nil
		}
		r := &timeSeries{next: micros(c, args, 0), last: micros(c, args, 1), step: pgtext.DecodeInterval(args[2].([]byte)), t: types.Of(types.Timestamp)}
		if tz {
			r.t = types.Of(types.TimestampTZ)
			r.z = sessionZone(c)
		}
		s := CompareIntervals(r.step, pgtext.Interval{})
		if s == 0 {
			return nil, errZeroStep()
		}
		r.up = s > 0
		if tsInf(r.next) && tsInf(r.last) || tsInf(r.next) {
			return nil, pgerr.New(pgerr.InvalidParameterValue, "start value cannot be infinite")
		}
		return r, nil
	}
}

// micros is a timestamp argument in microseconds.
func micros(c *Call, args []types.Datum, i int) int64 {
	v := args[i].(int64)
	if argType(c, i).IsNanos() {
		return pgtext.FloorMicros(v)
	}
	return v
}

func elemType(t types.Type) types.Type {
	switch {
	case t.Kind == types.Int2Vector:
		return types.Of(types.Int2)
	case t.Kind == types.OIDVector:
		return types.Of(types.OID)
	case t.Elem != nil:
		return t.Elem.WithNotNull(false)
	}
	return tText
}

func unnest(c *Call, args []types.Datum) (SetReader, error) {
	if args[0] == nil {
		return emptyReader{}, nil
	}
	return &listReader{elemType(argType(c, 0)), args[0].([]types.Datum)}, nil
}

// unnestMulti unnests several arrays side by side, NULLs where one is shorter.
func unnestMulti(c *Call, args []types.Datum) (SetReader, error) {
	n := 0
	ts := make([]types.Type, len(args))
	for i, a := range args {
		ts[i] = elemType(argType(c, i))
		if a != nil {
			n = max(n, len(a.([]types.Datum)))
		}
	}
	rows := make([][]types.Datum, n)
	for r := range rows {
		rows[r] = make([]types.Datum, len(args))
		for i, a := range args {
			if a != nil && r < len(a.([]types.Datum)) {
				rows[r][i] = a.([]types.Datum)[r]
			}
		}
	}
	return &rowsReader{ts, rows}, nil
}

// lowerBound is the index of the first element: int2vector and oidvector count
// from 0.
func lowerBound(t types.Type) int64 {
	if t.Kind == types.Int2Vector || t.Kind == types.OIDVector {
		return 0
	}
	return 1
}

func subscripts(c *Call, args []types.Datum) (SetReader, error) {
	if anyNull(args[:2]) {
		return emptyReader{}, nil
	}
	a := args[0].([]types.Datum)
	dim := args[1].(int64)
	n := int64(len(a))
	lo := lowerBound(argType(c, 0))
	if dim == 2 {
		sub, ok := nested(a)
		if !ok {
			return emptyReader{}, nil
		}
		n = int64(len(sub))
	} else if dim != 1 {
		return emptyReader{}, nil
	}
	if n == 0 {
		return emptyReader{}, nil
	}
	r := &intSeries{next: lo, last: lo + n - 1, step: 1, t: tInt4}
	if len(args) > 2 && args[2] == true {
		r.next, r.last, r.step = r.last, r.next, -1
	}
	return r, nil
}

func nested(a []types.Datum) ([]types.Datum, bool) {
	if len(a) == 0 {
		return nil, false
	}
	s, ok := a[0].([]types.Datum)
	return s, ok
}

func setFn(name string, ret types.Type, f SetFunc, doc string, args ...types.Type) *Overload {
	return &Overload{Name: name, Args: args, Ret: ret, Set: f, Doc: doc}
}

func setColumns(names string, ts ...types.Type) func([]types.Type) types.Schema {
	var s types.Schema
	for i, n := range strings.Fields(names) {
		s = append(s, types.Field{ID: -1, Name: n, Type: ts[i]})
	}
	return func([]types.Type) types.Schema { return s }
}

// noPartitions: partitions of Paimon tables are no relations.
func noPartitions(*Call, []types.Datum) (SetReader, error) { return emptyReader{}, nil }

func keywordRows(*Call, []types.Datum) (SetReader, error) {
	r := &rowsReader{types: []types.Type{tText, types.Of(types.Char), tBool, tText, tText}}
	class := map[byte]string{'U': "unreserved", 'C': "unreserved (cannot be function or type name)", 'T': "reserved (can be function or type name)", 'R': "reserved"}
	for _, k := range keywords {
		w, c, _ := strings.Cut(k, ":")
		bare, desc := true, "can be bare label"
		if strings.HasSuffix(c, "*") {
			bare, desc = false, "requires AS"
		}
		r.rows = append(r.rows, []types.Datum{w, c[:1], bare, class[c[0]], desc})
	}
	return r, nil
}

func setFunctions() []*Overload {
	arr, el := types.Of(types.AnyArray), types.Of(types.AnyElement)
	ts, tz, iv := types.Of(types.Timestamp), types.Of(types.TimestampTZ), types.Of(types.Interval)
	const gs = "generate_series"
	elemRet := func(args []types.Type) types.Type { return elemType(args[0]) }
	un := setFn("unnest", el, unnest, "The elements of an array as rows.", arr)
	un.RetFn = elemRet
	multi := setFn("unnest", types.Of(types.Record), unnestMulti, "The elements of several arrays as rows, side by side.", arr, arr)
	multi.Variadic = true
	multi.SetColumns = func(args []types.Type) types.Schema {
		var s types.Schema
		for _, a := range args {
			s = append(s, types.Field{ID: -1, Name: "unnest", Type: elemType(a)})
		}
		return s
	}
	expand := setFn("_pg_expandarray", types.Of(types.Record), func(c *Call, args []types.Datum) (SetReader, error) {
		et := elemType(argType(c, 0))
		r := &rowsReader{types: []types.Type{et, tInt4}}
		if args[0] == nil {
			return r, nil
		}
		for i, v := range args[0].([]types.Datum) {
			r.rows = append(r.rows, []types.Datum{v, int64(i + 1)})
		}
		return r, nil
	}, "The elements of an array with their numbers.", arr)
	expand.SetColumns = func(args []types.Type) types.Schema {
		return types.Schema{{ID: -1, Name: "x", Type: elemType(args[0])}, {ID: -1, Name: "n", Type: tInt4}}
	}
	rm := func(_ *Call, a []types.Datum) (SetReader, error) {
		tArr := types.ArrayOf(tText)
		if anyNull(a) {
			return emptyReader{}, nil
		}
		f, err := parseRegexFlags(strArg(a, 2), true, "regexp_matches()")
		if err != nil {
			return nil, err
		}
		re, err := compileRegex(a[1].(string), f)
		if err != nil {
			return nil, err
		}
		s := a[0].(string)
		r := &listReader{t: tArr}
		ms, err := matchesFrom(re, s, 1)
		if err != nil {
			return nil, err
		}
		for _, m := range ms {
			r.vals = append(r.vals, groupsDatum(re, s, m))
			if !f.global {
				break
			}
		}
		return r, nil
	}
	rsplit := func(_ *Call, a []types.Datum) (SetReader, error) {
		if anyNull(a) {
			return emptyReader{}, nil
		}
		v, err := regexSplit(a[0].(string), a[1].(string), strArg(a, 2), "regexp_split_to_table")
		return &listReader{tText, v}, err
	}
	stable := func(_ *Call, a []types.Datum) (SetReader, error) {
		if a[0] == nil {
			return emptyReader{}, nil
		}
		var null *string
		if len(a) > 2 {
			null = optText(a[2])
		}
		return &listReader{tText, stringToArray(a[0].(string), optText(a[1]), null)}, nil
	}
	kw := setFn("pg_get_keywords", types.Of(types.Record), keywordRows, "The keywords of SQL.")
	kw.SetColumns = setColumns("word catcode barelabel catdesc baredesc", tText, types.Of(types.Char), tBool, tText, tText)
	out := []*Overload{
		setFn(gs, tInt4, intSeriesFn(tInt4), "Integers from start to stop.", tInt4, tInt4),
		setFn(gs, tInt4, intSeriesFn(tInt4), "Integers from start to stop by step.", tInt4, tInt4, tInt4),
		setFn(gs, tInt8, intSeriesFn(tInt8), "Integers from start to stop.", tInt8, tInt8),
		setFn(gs, tInt8, intSeriesFn(tInt8), "Integers from start to stop by step.", tInt8, tInt8, tInt8),
		setFn(gs, tNum, numSeriesFn, "Numerics from start to stop.", tNum, tNum),
		setFn(gs, tNum, numSeriesFn, "Numerics from start to stop by step.", tNum, tNum, tNum),
		setFn(gs, ts, timeSeriesFn(false), "Timestamps from start to stop by an interval.", ts, ts, iv),
		setFn(gs, tz, timeSeriesFn(true), "Instants from start to stop by an interval.", tz, tz, iv),
		un, multi, expand,
		setFn("generate_subscripts", tInt4, subscripts, "The subscripts of an array.", arr, tInt4),
		setFn("generate_subscripts", tInt4, subscripts, "The subscripts of an array, maybe in reverse.", arr, tInt4, tBool),
		setFn("regexp_matches", types.ArrayOf(tText), rm, "Groups of the first match of a regular expression.", tText, tText),
		setFn("regexp_matches", types.ArrayOf(tText), rm, "Groups of the matches of a regular expression, with flags.", tText, tText, tText),
		setFn("regexp_split_to_table", tText, rsplit, "Parts of a string between the matches.", tText, tText),
		setFn("regexp_split_to_table", tText, rsplit, "Parts of a string between the matches, with flags.", tText, tText, tText),
		setFn("string_to_table", tText, stable, "Parts of a string cut at a delimiter.", tText, tText),
		setFn("string_to_table", tText, stable, "Parts of a string cut at a delimiter, a text standing for NULL.", tText, tText, tText),
		kw,
		setFn("pg_partition_ancestors", types.Of(types.RegClass), noPartitions, "The parents of a partition; there are none.", types.Of(types.RegClass)),
	}
	for _, o := range out[4:6] {
		o.ExactArgs = func(args []types.Type) []types.Type {
			r := make([]types.Type, len(args))
			for i := range r {
				r[i] = AsNumeric(args[i])
			}
			return r
		}
		o.RetFn = func([]types.Type) types.Type { return tNum }
	}
	acl := setFn("aclexplode", types.Of(types.Record), aclRows,
		"The privileges of an access list.", types.ArrayOf(types.Of(types.AclItem)))
	acl.SetColumns = setColumns("grantor grantee privilege_type is_grantable", tOID, tOID, tText, tBool)
	opts := setFn("pg_options_to_table", types.Of(types.Record), optionRows, "The options of a list of name=value.", types.ArrayOf(tText))
	opts.SetColumns = setColumns("option_name option_value", tText, tText)
	return append(append(out, acl, opts), jsonSets()...)
}

// aclRows is aclexplode; who the names in the list are is the catalog's to say.
func aclRows(c *Call, args []types.Datum) (SetReader, error) {
	r := &rowsReader{types: []types.Type{tOID, tOID, tText, tBool}}
	if args[0] == nil {
		return r, nil
	}
	rows, err := action("aclexplode")(c, args)
	if err != nil {
		return nil, err
	}
	for _, row := range asArray(rows) {
		r.rows = append(r.rows, row.([]types.Datum))
	}
	return r, nil
}

func optionRows(_ *Call, args []types.Datum) (SetReader, error) {
	r := &rowsReader{types: []types.Type{tText, tText}}
	for _, v := range asArray(args[0]) {
		if s, ok := v.(string); ok {
			name, value, has := strings.Cut(s, "=")
			row := []types.Datum{name, nil}
			if has {
				row[1] = value
			}
			r.rows = append(r.rows, row)
		}
	}
	return r, nil
}
