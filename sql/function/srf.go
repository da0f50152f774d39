package function

import (
	"context"
	"math"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// setReader adapts a function to SetReader.
type setReader struct {
	next func(ctx context.Context, max int) ([]arrow.Array, error)
}

func (r *setReader) Next(ctx context.Context, max int) ([]arrow.Array, error) {
	return r.next(ctx, max)
}
func (r *setReader) Close() error { return nil }

// noRows is the result of a set-returning function called with NULL.
var noRows SetReader = &setReader{next: func(context.Context, int) ([]arrow.Array, error) { return nil, nil }}

func anyNull(args []types.Datum) bool {
	for _, a := range args {
		if a == nil {
			return true
		}
	}
	return false
}

// rowsReader yields rows of datums, column by column.
func rowsReader(fields types.Schema, rows [][]types.Datum) SetReader {
	at := 0
	return &setReader{next: func(_ context.Context, max int) ([]arrow.Array, error) {
		n := min(max, len(rows)-at)
		if n <= 0 {
			return nil, nil
		}
		out := make([]arrow.Array, len(fields))
		for c := range fields {
			col := make([]types.Datum, n)
			for i := range col {
				col[i] = rows[at+i][c]
			}
			out[c] = vec.FromDatums(fields[c].Type, col)
		}
		at += n
		return out, nil
	}}
}

func errStepZero() error {
	return pgerr.New(pgerr.InvalidParameterValue, "step size cannot equal zero")
}

// seriesInt is generate_series over integers: a loop that fills a slice.
func seriesInt[T int32 | int64](dt arrow.DataType) SetFunc {
	return func(_ *Call, args []types.Datum) (SetReader, error) {
		if anyNull(args) {
			return noRows, nil
		}
		cur, stop, step := args[0].(int64), args[1].(int64), int64(1)
		if len(args) > 2 {
			step = args[2].(int64)
		}
		if step == 0 {
			return nil, errStepZero()
		}
		if step > 0 && cur > stop || step < 0 && cur < stop {
			return noRows, nil
		}
		// The number of steps left, exact in 64 bits whatever the signs.
		var left uint64
		if step > 0 {
			left = uint64(stop-cur) / uint64(step)
		} else {
			left = uint64(cur-stop) / (uint64(-(step + 1)) + 1)
		}
		done := false
		return &setReader{next: func(_ context.Context, max int) ([]arrow.Array, error) {
			if done {
				return nil, nil
			}
			n := max
			if left < uint64(max) {
				n, done = int(left)+1, true
			}
			v := make([]T, n)
			x := cur
			for i := range v {
				v[i] = T(x)
				x += step
			}
			cur = x
			left -= uint64(n)
			if done {
				left = 0
			}
			return []arrow.Array{vec.Make(dt, v, nil)}, nil
		}}, nil
	}
}

func seriesNumeric(c *Call, args []types.Datum) (SetReader, error) {
	if anyNull(args) {
		return noRows, nil
	}
	cur, stop, step := args[0].(*numeric.Dec), args[1].(*numeric.Dec), numeric.FromInt64(1)
	if len(args) > 2 {
		step = args[2].(*numeric.Dec)
	}
	for _, x := range []struct {
		d    *numeric.Dec
		what string
	}{{cur, "start value"}, {stop, "stop value"}, {step, "step size"}} {
		if x.d.Form == numeric.NaN {
			return nil, pgerr.New(pgerr.InvalidParameterValue, "%s cannot be NaN", x.what)
		}
		if x.d.Form != numeric.Finite {
			return nil, pgerr.New(pgerr.InvalidParameterValue, "%s cannot be infinity", x.what)
		}
	}
	if step.Sign() == 0 {
		return nil, errStepZero()
	}
	up := step.Sign() > 0
	return &setReader{next: func(_ context.Context, max int) ([]arrow.Array, error) {
		var ds []types.Datum
		for len(ds) < max {
			if k := numeric.Cmp(cur, stop); up && k > 0 || !up && k < 0 {
				break
			}
			ds = append(ds, cur)
			cur = numeric.Add(cur, step)
		}
		if len(ds) == 0 {
			return nil, nil
		}
		return []arrow.Array{vec.FromDatums(tNum, ds)}, nil
	}}, nil
}

// seriesTime is generate_series over timestamps; with zone, days and months
// follow the session's clock.
func seriesTime(t types.Type, withZone bool) SetFunc {
	return func(c *Call, args []types.Datum) (SetReader, error) {
		if anyNull(args) {
			return noRows, nil
		}
		cur, stop := args[0].(int64), args[1].(int64)
		step := pgtext.DecodeInterval(args[2].([]byte))
		sign := CompareIntervals(step, pgtext.Interval{})
		if sign == 0 {
			return nil, errStepZero()
		}
		if cur == math.MaxInt64 || cur == math.MinInt64 {
			return nil, pgerr.New(pgerr.InvalidParameterValue, "start value cannot be infinity")
		}
		over := false
		zone := sessionZone(c)
		return &setReader{next: func(_ context.Context, max int) ([]arrow.Array, error) {
			var v []int64
			for len(v) < max && !over {
				if sign > 0 && cur > stop || sign < 0 && cur < stop {
					over = true
					break
				}
				v = append(v, cur)
				var next int64
				var err error
				if withZone {
					next, err = AddIntervalTZ(zone, cur, step)
				} else {
					next, err = AddInterval(cur, step)
				}
				if err != nil {
					over = true
					break
				}
				cur = next
			}
			if len(v) == 0 {
				return nil, nil
			}
			return []arrow.Array{vec.Make(t.Arrow(), v, nil)}, nil
		}}, nil
	}
}

// unnest yields the elements of an array.
func unnest(c *Call, args []types.Datum) (SetReader, error) {
	list, ok := args[0].([]types.Datum)
	if !ok {
		return noRows, nil
	}
	t := types.Of(types.Text)
	if e := c.ArgTypes[0].Elem; e != nil {
		t = *e
	} else if c.ArgTypes[0].Kind == types.Int2Vector {
		t = types.Of(types.Int2)
	} else if c.ArgTypes[0].Kind == types.OIDVector {
		t = tOID
	}
	at := 0
	return &setReader{next: func(_ context.Context, max int) ([]arrow.Array, error) {
		n := min(max, len(list)-at)
		if n <= 0 {
			return nil, nil
		}
		a := vec.FromDatums(t, list[at:at+n])
		at += n
		return []arrow.Array{a}, nil
	}}, nil
}

func elementOf(ts []types.Type) types.Type {
	switch {
	case ts[0].Elem != nil:
		return ts[0].Elem.WithNotNull(false)
	case ts[0].Kind == types.Int2Vector:
		return types.Of(types.Int2)
	case ts[0].Kind == types.OIDVector:
		return tOID
	}
	return tText
}

// subscripts is generate_subscripts: vectors of the catalog count from 0, all
// other arrays from 1 and have one dimension.
func subscripts(c *Call, args []types.Datum) (SetReader, error) {
	list, ok := args[0].([]types.Datum)
	if !ok || args[1] == nil || args[1].(int64) != 1 || len(list) == 0 {
		return noRows, nil
	}
	lo := int64(1)
	if k := c.ArgTypes[0].Kind; k == types.Int2Vector || k == types.OIDVector {
		lo = 0
	}
	hi := lo + int64(len(list)) - 1
	bounds := []types.Datum{lo, hi}
	if len(args) > 2 && args[2] == true {
		bounds = []types.Datum{hi, lo, int64(-1)}
	}
	return seriesInt[int32](arrow.PrimitiveTypes.Int32)(c, bounds)
}

// expandArray is information_schema._pg_expandarray: the elements with their
// positions, which pgjdbc asks for keys with.
func expandArray(c *Call, args []types.Datum) (SetReader, error) {
	list, ok := args[0].([]types.Datum)
	if !ok {
		return noRows, nil
	}
	rows := make([][]types.Datum, len(list))
	for i, v := range list {
		rows[i] = []types.Datum{v, int64(i + 1)}
	}
	return rowsReader(expandColumns(c.ArgTypes), rows), nil
}

func expandColumns(ts []types.Type) types.Schema {
	return types.Schema{{ID: -1, Name: "x", Type: elementOf(ts)}, {ID: -1, Name: "n", Type: tInt4}}
}

func column(name string, t types.Type) types.Field { return types.Field{ID: -1, Name: name, Type: t} }

// setReturning lists generate_series and its kin.
func setReturning() []*Overload {
	ts, tz, iv := types.Of(types.Timestamp), types.Of(types.TimestampTZ), types.Of(types.Interval)
	i4, i8 := seriesInt[int32](arrow.PrimitiveTypes.Int32), seriesInt[int64](arrow.PrimitiveTypes.Int64)
	anyArr := types.Of(types.AnyArray)
	one := func(args []types.Type, ret types.Type, f SetFunc) *Overload {
		return &Overload{Name: "generate_series", Args: args, Ret: ret, Strict: true, Set: f, Doc: "The values from start to stop."}
	}
	fixedRet := func(s types.Schema) func([]types.Type) types.Schema {
		return func([]types.Type) types.Schema { return s }
	}
	rec := types.Of(types.Record)
	aclCols := types.Schema{column("grantor", tOID), column("grantee", tOID), column("privilege_type", tText), column("is_grantable", tBool)}
	optCols := types.Schema{column("option_name", tText), column("option_value", tText)}
	return []*Overload{
		one([]types.Type{tInt4, tInt4}, tInt4, i4),
		one([]types.Type{tInt4, tInt4, tInt4}, tInt4, i4),
		one([]types.Type{tInt8, tInt8}, tInt8, i8),
		one([]types.Type{tInt8, tInt8, tInt8}, tInt8, i8),
		one([]types.Type{tNum, tNum}, tNum, seriesNumeric),
		one([]types.Type{tNum, tNum, tNum}, tNum, seriesNumeric),
		one([]types.Type{ts, ts, iv}, ts, seriesTime(ts, false)),
		one([]types.Type{tz, tz, iv}, tz, seriesTime(tz, true)),
		{Name: "unnest", Args: []types.Type{anyArr}, Ret: types.Of(types.AnyElement), RetFn: elementOf, Strict: true, Set: unnest, Doc: "The elements of an array."},
		{Name: "generate_subscripts", Args: []types.Type{anyArr, tInt4}, Ret: tInt4, Strict: true, Set: subscripts, Doc: "The subscripts of an array's dimension."},
		{Name: "generate_subscripts", Args: []types.Type{anyArr, tInt4, tBool}, Ret: tInt4, Strict: true, Set: subscripts, Doc: "The subscripts of an array's dimension, reversed on demand."},
		{Name: "_pg_expandarray", Args: []types.Type{anyArr}, Ret: rec, Strict: true, Set: expandArray, SetColumns: expandColumns, Doc: "The elements of an array with their positions."},
		{Name: "aclexplode", Args: []types.Type{types.ArrayOf(types.Of(types.AclItem))}, Ret: rec, Strict: true, SetColumns: fixedRet(aclCols), Doc: "The privileges of an access list.",
			Set: func(*Call, []types.Datum) (SetReader, error) { return noRows, nil }},
		{Name: "pg_options_to_table", Args: []types.Type{types.ArrayOf(tText)}, Ret: rec, Strict: true, SetColumns: fixedRet(optCols), Doc: "The options of a list of name=value.",
			Set: func(_ *Call, args []types.Datum) (SetReader, error) {
				var rows [][]types.Datum
				list, _ := args[0].([]types.Datum)
				for _, v := range list {
					s, ok := v.(string)
					if !ok {
						continue
					}
					name, value := s, types.Datum(nil)
					for i := range s {
						if s[i] == '=' {
							name, value = s[:i], s[i+1:]
							break
						}
					}
					rows = append(rows, []types.Datum{name, value})
				}
				return rowsReader(optCols, rows), nil
			}},
	}
}
