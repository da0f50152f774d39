package function

import (
	"crypto/rand"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// countNulls is num_nulls and num_nonnulls.
func countNulls(nulls bool) Kernel {
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		n := rowsOf(c, args)
		out := make([]int32, n)
		for _, a := range args {
			for i := range out {
				k := i
				if a.Const {
					k = 0
				}
				if a.Arr.IsNull(k) == nulls {
					out[i]++
				}
			}
		}
		return vec.Make(arrow.PrimitiveTypes.Int32, out, nil), nil
	}
}

func miscFunctions() []*Overload {
	any := []types.Type{types.Of(types.Any)}
	tUUID, cls := types.Of(types.UUID), types.Of(types.RegClass)
	out := []*Overload{
		{Name: "num_nulls", Args: any, Variadic: true, Ret: tInt4, Kernel: countNulls(true), Doc: "Number of arguments that are NULL."},
		{Name: "num_nonnulls", Args: any, Variadic: true, Ret: tInt4, Kernel: countNulls(false), Doc: "Number of arguments that are not NULL."},
		{Name: "gen_random_uuid", Ret: tUUID, Strict: true, Volatility: Volatile, Doc: "A random UUID, version 4.",
			Kernel: volatileFn(func(*Call, []types.Datum) (types.Datum, error) {
				b := make([]byte, 16)
				if _, err := rand.Read(b); err != nil {
					return nil, err
				}
				b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
				return b, nil
			})},
	}
	// Sequences live in the catalog.
	seq := func(name string, ret types.Type, doc string, args ...types.Type) {
		out = append(out, &Overload{Name: name, Args: args, Ret: ret, Strict: true, Volatility: Volatile, Doc: doc,
			Kernel: volatileFn(func(c *Call, a []types.Datum) (types.Datum, error) {
				if anyNull(a) {
					return nil, nil
				}
				return action(name)(c, a)
			})})
	}
	seq("nextval", tInt8, "The next value of a sequence.", cls)
	seq("currval", tInt8, "The value that nextval last gave in this session.", cls)
	seq("lastval", tInt8, "The value that nextval last gave in this session for any sequence.")
	seq("setval", tInt8, "Sets the value of a sequence.", cls, tInt8)
	seq("setval", tInt8, "Sets the value of a sequence, and whether it has been given.", cls, tInt8, tBool)
	zones := setFn("pg_timezone_names", types.Of(types.Record), func(c *Call, _ []types.Datum) (SetReader, error) {
		r := &rowsReader{types: []types.Type{tText, tText, types.Of(types.Interval), tBool}}
		now := envNow(c)
		for _, n := range pgtext.ZoneNames() {
			l, ok := pgtext.LoadZone(n)
			if !ok {
				continue
			}
			t := now.In(l)
			abbrev, off := t.Zone()
			r.rows = append(r.rows, []types.Datum{n, abbrev, pgtext.Interval{Micros: int64(off) * pgtext.UsPerSecond}.Bytes(), t.IsDST()})
		}
		return r, nil
	}, "The time zones.")
	zones.SetColumns = setColumns("name abbrev utc_offset is_dst", tText, tText, types.Of(types.Interval), tBool)
	abbrevs := setFn("pg_timezone_abbrevs", types.Of(types.Record), func(*Call, []types.Datum) (SetReader, error) {
		r := &rowsReader{types: []types.Type{tText, types.Of(types.Interval), tBool}}
		for _, n := range pgtext.ZoneAbbrevs() {
			off, dst, _ := pgtext.AbbrevOffset(n)
			r.rows = append(r.rows, []types.Datum{n, pgtext.Interval{Micros: int64(off) * pgtext.UsPerSecond}.Bytes(), dst})
		}
		return r, nil
	}, "The abbreviations of time zones.")
	abbrevs.SetColumns = setColumns("abbrev utc_offset is_dst", tText, types.Of(types.Interval), tBool)
	return append(out, zones, abbrevs)
}
