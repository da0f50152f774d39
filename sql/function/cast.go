package function

import (
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Casts, as PostgreSQL's pg_cast lists them for these types, with its contexts;
// then conversions through text, arrays element by element, and modifiers
// (numeric(p,s), varchar(n), timestamp(p)) within one type. A kernel reads the
// modifiers from Call.Ret and the source type from Call.ArgTypes.

type castKey struct{ from, to types.Kind }

type castDef struct {
	ctx    CastContext
	kernel Kernel // nil: same arrays
	vol    Volatility
}

var castTable map[castKey]castDef

func cast(from, to types.Kind, ctx CastContext, k Kernel) {
	castTable[castKey{from, to}] = castDef{ctx: ctx, kernel: k}
}

func stableCast(from, to types.Kind, ctx CastContext, k Kernel) {
	castTable[castKey{from, to}] = castDef{ctx: ctx, kernel: k, vol: Stable}
}

func buildCasts() {
	castTable = map[castKey]castDef{}
	const (
		b, i2, i4, i8, f4, f8, num              = types.Bool, types.Int2, types.Int4, types.Int8, types.Float4, types.Float8, types.Numeric
		text, vc, bp, name, char                = types.Text, types.Varchar, types.BpChar, types.Name, types.Char
		date, tim, ttz, ts, tz, iv              = types.Date, types.Time, types.TimeTZ, types.Timestamp, types.TimestampTZ, types.Interval
		oid, json, jsonb                        = types.OID, types.JSON, types.JSONB
		rclass, rproc, rtype, rns, rrole, roper = types.RegClass, types.RegProc, types.RegType, types.RegNamespace, types.RegRole, types.RegOper
	)
	for _, f := range []types.Kind{i2, i4, i8} {
		for _, t := range []types.Kind{i2, i4, i8} {
			if f < t {
				cast(f, t, Implicit, intToInt(t))
			} else if f > t {
				cast(f, t, Assignment, intToInt(t))
			}
		}
		cast(f, f4, Implicit, intToFloat)
		cast(f, f8, Implicit, intToFloat)
		cast(f, num, Implicit, intToNumeric)
		cast(f4, f, Assignment, floatToInt(f))
		cast(f8, f, Assignment, floatToInt(f))
		cast(num, f, Assignment, numericToInt(f))
		cast(jsonb, f, Explicit, jsonbToNumber)
		for _, o := range []types.Kind{oid, rclass, rproc, rtype, rns, rrole, roper} {
			cast(f, o, Implicit, intToOID)
		}
	}
	for _, o := range []types.Kind{oid, rclass, rproc, rtype, rns, rrole, roper} {
		cast(o, i8, Assignment, nil)
		cast(o, i4, Assignment, oidToInt4)
		if o != oid {
			cast(o, oid, Implicit, nil)
			cast(oid, o, Implicit, nil)
		}
	}
	cast(f4, f8, Implicit, floatToFloat)
	cast(f8, f4, Assignment, floatToFloat)
	cast(f4, num, Assignment, floatToNumeric)
	cast(f8, num, Assignment, floatToNumeric)
	cast(num, f4, Implicit, numericToFloat)
	cast(num, f8, Implicit, numericToFloat)
	cast(jsonb, num, Explicit, jsonbToNumber)
	cast(jsonb, f4, Explicit, jsonbToNumber)
	cast(jsonb, f8, Explicit, jsonbToNumber)
	cast(jsonb, b, Explicit, strictRowFn(func(_ *Call, a []types.Datum) (types.Datum, error) {
		r := pgtext.JSONRaw(a[0].(string))
		if r.Kind() != 'b' {
			return nil, errJSONCast(r, "boolean")
		}
		return r == "true", nil
	}))
	cast(i4, b, Explicit, fn1(func(v int64) (bool, error) { return v != 0, nil }))
	cast(b, i4, Explicit, fn1(func(v bool) (int64, error) { return int64(u8(v)), nil }))
	// Strings.
	cast(text, vc, Implicit, fitText)
	cast(text, bp, Implicit, fitText)
	cast(vc, text, Implicit, nil)
	cast(vc, bp, Implicit, fitText)
	cast(bp, text, Implicit, trimBlanks)
	cast(bp, vc, Implicit, onDict(sfn1(fitTrimmed)))
	cast(char, text, Implicit, nil)
	cast(char, bp, Assignment, fitText)
	cast(char, vc, Assignment, fitText)
	cast(name, text, Implicit, nil)
	cast(name, bp, Assignment, fitText)
	cast(name, vc, Assignment, fitText)
	for _, s := range []types.Kind{text, vc, bp} {
		cast(s, char, Assignment, onDict(sfn1(func(dst, s []byte) ([]byte, error) {
			if len(s) > 0 {
				dst = append(dst, s[0])
			}
			return dst, nil
		})))
		cast(s, name, Implicit, onDict(sfn1(func(dst []byte, s []byte) ([]byte, error) { return append(dst, pgtext.TruncateName(string(s))...), nil })))
		if s != bp {
			stableCast(s, rclass, Implicit, textToClass)
		}
	}
	cast(char, i4, Explicit, fn1(func(s []byte) (int64, error) {
		if len(s) == 0 {
			return 0, nil
		}
		return int64(int8(s[0])), nil
	}))
	cast(i4, char, Explicit, sfn1(func(dst []byte, v int64) ([]byte, error) {
		if v < -128 || v > 127 {
			return nil, pgerr.New(pgerr.NumericValueOutOfRange, "\"char\" out of range")
		}
		if v == 0 {
			return dst, nil
		}
		return append(dst, byte(v)), nil
	}))
	// Dates and times.
	cast(date, ts, Implicit, fn1(dateToTS))
	stableCast(date, tz, Implicit, withCall(func(c *Call) Kernel {
		z := sessionZone(c)
		return fn1(func(d int64) (int64, error) {
			us, err := dateToTS(d)
			if err != nil || tsInf(us) {
				return us, err
			}
			return checkTS(zoneToUTC(z, us), true)
		})
	}))
	cast(ts, date, Assignment, fn1(func(us int64) (int64, error) { return tsToDate(us), nil }))
	cast(ts, tim, Assignment, fitted(fn1(func(us int64) (int64, error) {
		if tsInf(us) {
			return 0, errNull
		}
		_, tod := pgtext.SplitTimestamp(us)
		return tod, nil
	})))
	stableCast(ts, tz, Implicit, zoneCast(true))
	stableCast(tz, ts, Assignment, zoneCast(false))
	stableCast(tz, date, Assignment, withCall(func(c *Call) Kernel {
		z := sessionZone(c)
		return fn1(func(us int64) (int64, error) {
			if tsInf(us) {
				return tsToDate(us), nil
			}
			return tsToDate(zoneToLocal(z, us)), nil
		})
	}))
	stableCast(tz, tim, Assignment, fitted(withCall(func(c *Call) Kernel {
		z := sessionZone(c)
		return fn1(func(us int64) (int64, error) {
			if tsInf(us) {
				return 0, errNull
			}
			_, tod := pgtext.SplitTimestamp(zoneToLocal(z, us))
			return tod, nil
		})
	})))
	stableCast(tz, ttz, Assignment, fitted(withCall(func(c *Call) Kernel {
		z := sessionZone(c)
		return fn1(func(us int64) ([]byte, error) {
			if tsInf(us) {
				return nil, errNull
			}
			local := zoneToLocal(z, us)
			_, tod := pgtext.SplitTimestamp(local)
			return pgtext.EncodeTimeTZ(tod, int32((us-local)/pgtext.UsPerSecond)), nil
		})
	})))
	cast(tim, iv, Implicit, fn1(func(us int64) (pgtext.Interval, error) { return pgtext.Interval{Micros: us}, nil }))
	cast(iv, tim, Assignment, fitted(fn1(func(v pgtext.Interval) (int64, error) { return wrapDay(v.Micros), nil })))
	stableCast(tim, ttz, Implicit, fitted(withCall(func(c *Call) Kernel {
		z := sessionZone(c)
		now := nowMicros(c)
		local := zoneToLocal(z, now)
		d, _ := pgtext.SplitTimestamp(local)
		return fn1(func(us int64) ([]byte, error) {
			_, off := z.ToUTC(d*86400 + us/pgtext.UsPerSecond)
			return pgtext.EncodeTimeTZ(us, int32(-off)), nil
		})
	})))
	cast(ttz, tim, Assignment, fitted(fn1(func(b []byte) (int64, error) { us, _ := pgtext.DecodeTimeTZ(b); return us, nil })))
	// JSON.
	cast(json, jsonb, Assignment, parseText)
	cast(jsonb, json, Assignment, nil)
	cast(types.Int2Vector, types.Array, Implicit, nil)
	cast(types.OIDVector, types.Array, Implicit, nil)
}

// fitted applies the digits of the target's type to what k makes.
func fitted(k Kernel) Kernel {
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		a, err := k(c, args)
		if err != nil || c.Ret.Mod == 0 {
			return a, err
		}
		sub := *c
		if a.Len() != c.N {
			sub.Sel = nil
		}
		return fitTime(&sub, []vec.Vec{{Arr: a, Const: a.Len() == 1 && c.N != 1}})
	}
}

func nowMicros(c *Call) int64 {
	if c.Env != nil {
		return c.Env.Now().UnixMicro()
	}
	return 0
}

// zoneCast is timestamp to timestamptz or back.
func zoneCast(toUTC bool) Kernel {
	return withCall(func(c *Call) Kernel {
		z := sessionZone(c)
		return fn1(func(us int64) (int64, error) {
			if tsInf(us) {
				return us, nil
			}
			var r int64
			if toUTC {
				r = zoneToUTC(z, us)
			} else {
				r = zoneToLocal(z, us)
			}
			if _, err := checkTS(r, true); err != nil {
				return 0, err
			}
			return roundTo(c.Ret, r), nil
		})
	})
}

// castCache keeps the overloads that lookupCast makes, by the kinds involved.
var castCache sync.Map

func lookupCast(from, to types.Type) (*Overload, CastContext, bool) {
	from, to = from.SQL(), to.SQL()
	d, ok := castFor(from, to, 0)
	if !ok {
		return nil, Explicit, false
	}
	key := castName(from) + "→" + castName(to)
	if o, hit := castCache.Load(key); hit && from.Kind != types.Array && from.Kind != types.Record && from.Kind != types.Row {
		return o.(*Overload), d.ctx, true
	}
	o := &Overload{Name: to.Info().Name, Args: []types.Type{from}, Ret: to, Strict: true, Kernel: d.kernel, Volatility: d.vol,
		RetFn: func([]types.Type) types.Type { return to }, Doc: "Cast from " + from.PlainName() + " to " + to.PlainName() + "."}
	if d.kernel == nil {
		// The caller sees from SamePhysical or the nil kernel that only the
		// label changes.
		o.Kernel = nil
	}
	return o, d.ctx, true
}

func castName(t types.Type) string { return t.Info().Name }

func castFor(from, to types.Type, depth int) (castDef, bool) {
	if depth > 32 {
		return castDef{}, false
	}
	if from.Kind == types.Unknown && to.Kind != types.Unknown {
		if to.Kind == types.Text {
			return castDef{ctx: Implicit}, true
		}
		return castDef{ctx: Implicit, kernel: parseText, vol: parseVolatility(to)}, true
	}
	if from.SameKind(to) {
		switch to.Kind {
		case types.Numeric:
			if from.Prec == to.Prec && from.Scale == to.Scale && (to.Mod == 0 || from.Mod == to.Mod) {
				return castDef{ctx: Implicit}, true
			}
			return castDef{ctx: Implicit, kernel: numericToNumeric}, true
		case types.Varchar, types.BpChar:
			if to.Mod == 0 || from.Mod == to.Mod {
				return castDef{ctx: Implicit}, true
			}
			return castDef{ctx: Implicit, kernel: fitText}, true
		case types.Time, types.TimeTZ, types.Timestamp, types.TimestampTZ:
			if (to.Mod == 0 || from.Mod == to.Mod) && from.IsNanos() == to.IsNanos() {
				return castDef{ctx: Implicit}, true
			}
			return castDef{ctx: Implicit, kernel: fitTime}, true
		case types.Interval:
			if to.Mod == 0 || from.Mod == to.Mod {
				return castDef{ctx: Implicit}, true
			}
			return castDef{ctx: Implicit, kernel: fitInterval}, true
		case types.Array:
			return castArray(from, to, depth)
		case types.Row, types.Record:
			return castFields(from, to, depth)
		case types.Map:
			if from.SamePhysical(to) {
				return castDef{ctx: Implicit}, true
			}
			return castDef{ctx: Assignment, kernel: viaDatum}, true
		}
		return castDef{ctx: Implicit}, true
	}
	if d, ok := castTable[castKey{from.Kind, to.Kind}]; ok && from.Kind != types.Array && (to.Kind != types.Array) {
		return d, true
	}
	switch {
	case from.Kind == types.Array && to.Kind == types.Array:
		return castArray(from, to, depth)
	case (from.Kind == types.Int2Vector || from.Kind == types.OIDVector) && to.Kind == types.Array && to.Elem != nil:
		e := types.Of(types.Int2)
		if from.Kind == types.OIDVector {
			e = types.Of(types.OID)
		}
		return castArray(types.ArrayOf(e), to, depth)
	case (from.Kind == types.Record || from.Kind == types.Row) && (to.Kind == types.Row || to.Kind == types.Record):
		return castFields(from, to, depth)
	case (from.Kind == types.JSON || from.Kind == types.JSONB) && (to.OnWireAsJSON()):
		return castDef{ctx: Assignment, kernel: parseText}, true
	case from.OnWireAsJSON() && (to.Kind == types.JSONB || to.Kind == types.JSON):
		return castDef{ctx: Assignment, kernel: nestedToJSON, vol: Stable}, true
	}
	// Through text.
	toString := to.Kind == types.Text || to.Kind == types.Varchar || to.Kind == types.BpChar || to.Kind == types.Name
	fromString := from.Kind == types.Text || from.Kind == types.Varchar || from.Kind == types.BpChar || from.Kind == types.Name
	if isPseudo(from.Kind) || isPseudo(to.Kind) {
		return castDef{}, false
	}
	if toString {
		if from.Kind == types.JSON || from.Kind == types.JSONB {
			if to.Mod == 0 && to.Kind != types.Name {
				return castDef{ctx: Assignment}, true
			}
			return castDef{ctx: Assignment, kernel: fitText}, true
		}
		return castDef{ctx: Assignment, kernel: toText, vol: textVolatility(from)}, true
	}
	if fromString {
		return castDef{ctx: Explicit, kernel: parseText, vol: parseVolatility(to)}, true
	}
	return castDef{}, false
}

func isPseudo(k types.Kind) bool {
	switch k {
	case types.Any, types.AnyElement, types.AnyArray, types.AnyNonArray, types.AnyCompatible, types.AnyCompatibleArray, types.Internal, types.Void:
		return true
	}
	return false
}

// parseVolatility: date/time input knows 'now' and the session's zone.
func parseVolatility(t types.Type) Volatility {
	switch t.Kind {
	case types.Date, types.Time, types.TimeTZ, types.Timestamp, types.TimestampTZ, types.RegClass, types.RegProc, types.RegType, types.RegNamespace, types.RegRole, types.RegOper:
		return Stable
	case types.Array:
		if t.Elem != nil {
			return parseVolatility(*t.Elem)
		}
	}
	return Immutable
}

func textVolatility(t types.Type) Volatility {
	switch t.Kind {
	case types.Bool, types.Int2, types.Int4, types.Int8, types.Numeric, types.UUID, types.Time, types.Char, types.OID:
		return Immutable
	}
	return Stable
}

// castArray converts elements.
func castArray(from, to types.Type, depth int) (castDef, bool) {
	if from.Elem == nil || to.Elem == nil {
		return castDef{ctx: Implicit}, true
	}
	d, ok := castFor(*from.Elem, *to.Elem, depth+1)
	if !ok {
		return d, false
	}
	if d.kernel == nil {
		return castDef{ctx: d.ctx}, true
	}
	fe, te, inner := *from.Elem, *to.Elem, d.kernel
	return castDef{ctx: d.ctx, vol: d.vol, kernel: func(c *Call, args []vec.Vec) (arrow.Array, error) {
		a := args[0].Arr
		// Elements of rows that do not count may not be looked at.
		if sel := selOf(c, args); sel != nil || a.NullN() > 0 {
			return boxedRows(c, rowsOf(c, args), args, func(c *Call, row []types.Datum) (types.Datum, error) {
				src := row[0].([]types.Datum)
				one := vec.FromDatums(fe, src)
				sub := *c
				sub.N, sub.Sel, sub.ArgTypes, sub.Ret, sub.State = len(src), nil, []types.Type{fe}, te, nil
				res, err := inner(&sub, []vec.Vec{{Arr: one}})
				if err != nil {
					return nil, err
				}
				out := make([]types.Datum, len(src))
				for i := range out {
					out[i] = vec.DatumAt(res, te, i)
				}
				return out, nil
			}, true)
		}
		offs, child := vec.ListParts(a)
		sub := *c
		sub.N, sub.Sel, sub.ArgTypes, sub.Ret, sub.State = child.Len(), nil, []types.Type{fe}, te, nil
		res, err := inner(&sub, []vec.Vec{{Arr: child}})
		if err != nil {
			return nil, err
		}
		res = vec.Decode(res)
		return vec.MakeList(arrow.ListOf(res.DataType()), append([]int32(nil), offs...), res, vec.ValidCopy(a)), nil
	}}, true
}

// castFields converts a row value member by member.
func castFields(from, to types.Type, depth int) (castDef, bool) {
	if len(to.Fields) == 0 && to.Kind == types.Record {
		return castDef{ctx: Implicit}, true
	}
	if len(from.Fields) != len(to.Fields) {
		return castDef{}, false
	}
	defs := make([]castDef, len(from.Fields))
	ctx, trivial := Implicit, true
	if from.Kind == types.Record && to.Kind == types.Row {
		ctx = Assignment
	}
	for i := range defs {
		d, ok := castFor(from.Fields[i].Type.SQL(), to.Fields[i].Type.SQL(), depth+1)
		if !ok {
			return castDef{}, false
		}
		defs[i] = d
		ctx = max(ctx, d.ctx)
		trivial = trivial && d.kernel == nil
	}
	if trivial {
		return castDef{ctx: ctx}, true
	}
	return castDef{ctx: ctx, kernel: func(c *Call, args []vec.Vec) (arrow.Array, error) {
		s := args[0].Arr.(*array.Struct)
		cols := make([]arrow.Array, len(defs))
		fs := make([]arrow.Field, len(defs))
		for i, d := range defs {
			col := s.Field(i)
			if d.kernel != nil {
				sub := *c
				sub.N, sub.ArgTypes, sub.Ret, sub.State = col.Len(), []types.Type{from.Fields[i].Type}, to.Fields[i].Type, nil
				if args[0].Const {
					sub.Sel = nil
				}
				r, err := d.kernel(&sub, []vec.Vec{{Arr: col}})
				if err != nil {
					return nil, err
				}
				col = vec.Decode(r)
			}
			cols[i] = col
			fs[i] = arrow.Field{Name: to.Fields[i].Name, Type: col.DataType(), Nullable: true}
		}
		return vec.MakeStruct(arrow.StructOf(fs...), s.Len(), cols, vec.ValidCopy(s)), nil
	}}, true
}

// nestedToJSON turns maps, rows, variants and arrays of them into JSON.
func nestedToJSON(c *Call, args []vec.Vec) (arrow.Array, error) {
	n := rowsOf(c, args)
	valid, none := strictValid(n, args)
	if none {
		return nullResult(c, n)
	}
	f := pgtext.JSONAppender(argType(c, 0), args[0].Arr, StyleOf(c.Env))
	var buf []byte
	return appendRows(c, n, selOf(c, args), valid, func(dst []byte, i int) ([]byte, error) {
		if args[0].Const {
			i = 0
		}
		buf = f(buf[:0], i)
		if c.Ret.Kind == types.JSON {
			return append(dst, buf...), nil
		}
		s, err := pgtext.NormalizeJSONB(string(buf))
		return append(dst, s...), err
	})
}

// viaDatum rebuilds values from their boxed form: for maps whose key or value
// types differ.
var viaDatum = withCall(func(c *Call) Kernel {
	ft, tt := argType(c, 0), c.Ret
	return strictRowFn(func(c *Call, a []types.Datum) (types.Datum, error) {
		kvs := a[0].([]types.KV)
		out := make([]types.KV, len(kvs))
		for i, kv := range kvs {
			k, err := CastDatum(c, kv.K, *ft.Key, *tt.Key)
			if err != nil {
				return nil, err
			}
			v, err := CastDatum(c, kv.V, *ft.Elem, *tt.Elem)
			if err != nil {
				return nil, err
			}
			out[i] = types.KV{K: k, V: v}
		}
		return out, nil
	})
})

// CastDatum casts one boxed value; an absent cast is 42846.
func CastDatum(c *Call, d types.Datum, from, to types.Type) (types.Datum, error) {
	if d == nil {
		return nil, nil
	}
	o, _, ok := Cast(from, to)
	if !ok {
		return nil, pgerr.New(pgerr.CannotCoerce, "cannot cast type %s to %s", from.PlainName(), to.PlainName())
	}
	if o.Kernel == nil {
		return d, nil
	}
	sub := *c
	sub.N, sub.Sel, sub.ArgTypes, sub.Ret, sub.State = 1, nil, []types.Type{from}, to, nil
	return EvalDatums(o, &sub, []types.Datum{d})
}

// EvalDatums evaluates an overload once, on boxed values; c.ArgTypes and c.Ret
// are set. For constant folding and tests.
func EvalDatums(o *Overload, c *Call, args []types.Datum) (types.Datum, error) {
	vs := make([]vec.Vec, len(args))
	for i, d := range args {
		vs[i] = vec.Vec{Arr: vec.FromDatums(c.ArgTypes[i], []types.Datum{d}), Const: true}
	}
	if c.N == 0 {
		c.N = 1
	}
	if o.Strict {
		for _, d := range args {
			if d == nil {
				return nil, nil
			}
		}
	}
	res, err := o.Kernel(c, vs)
	if err != nil {
		return nil, err
	}
	return vec.DatumAt(res, c.Ret, 0), nil
}
