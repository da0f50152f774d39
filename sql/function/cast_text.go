package function

import (
	"math"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// fitTrimmed is bpchar to varchar(n).
func fitTrimmed(dst, s []byte) ([]byte, error) { return append(dst, s...), nil }

// fitText applies the length of varchar(n) and char(n).
var fitText = withCall(func(c *Call) Kernel {
	n := int(c.Ret.Mod) - 4
	pad := c.Ret.Kind == types.BpChar
	name := "character varying"
	if pad {
		name = "character"
	}
	explicit := c.Explicit
	fromBP := argType(c, 0).Kind == types.BpChar
	return onDict(sfn1(func(dst []byte, s []byte) ([]byte, error) {
		if n <= 0 {
			return append(dst, s...), nil
		}
		v, fits := pgtext.CutText(string(s), n)
		if !fits && !explicit && !fromBP {
			return nil, pgerr.New(pgerr.StringDataRightTruncation, "value too long for type %s(%d)", name, n)
		}
		if !fits && !explicit && fromBP {
			return nil, pgerr.New(pgerr.StringDataRightTruncation, "value too long for type %s(%d)", name, n)
		}
		if pad {
			v = pgtext.PadText(v, n)
		}
		return append(dst, v...), nil
	}))
})

var trimBlanks = onDict(sfn1(func(dst, s []byte) ([]byte, error) { return append(dst, vec.TrimBlanks(s)...), nil }))

// StyleOf is the text style of a session; nil env is PostgreSQL's default.
func StyleOf(env Env) *pgtext.Style {
	st := &pgtext.Style{}
	if env == nil {
		return st
	}
	st.Location = env.Location()
	st.Now = env.Now
	if v, ok := env.Setting("DateStyle"); ok {
		st.DateStyle, st.DateOrder = SplitDateStyle(v)
	}
	if v, ok := env.Setting("IntervalStyle"); ok {
		st.IntervalStyle = v
	}
	if v, ok := env.Setting("bytea_output"); ok {
		st.ByteaOutput = v
	}
	if v, ok := env.Setting("extra_float_digits"); ok && v != "" {
		if n, err := pgtext.Parse(types.Of(types.Int4), v, nil); err == nil && n.(int64) <= 0 {
			st.RoundFloats, st.ExtraFloatDigits = true, int(n.(int64))
		}
	}
	return st
}

// parseText runs the input function of the target type.
var parseText = onDict(func(c *Call, args []vec.Vec) (arrow.Array, error) {
	st := StyleOf(c.Env)
	t := c.Ret
	if c.Explicit && (t.Kind == types.Varchar || t.Kind == types.BpChar) {
		return fitText(c, args)
	}
	if isReg(t.Kind) {
		return fn1(func(s string) (int64, error) { return parseReg(c, t.Kind, s) })(c, args)
	}
	if argType(c, 0).Kind == types.BpChar {
		// Input functions see the blanks of char(n).
		sub := *c
		sub.ArgTypes = []types.Type{tText}
		c = &sub
	}
	switch t.Kind {
	case types.Int2, types.Int4, types.Int8:
		lo, hi := int64(math.MinInt64), int64(math.MaxInt64)
		if t.Kind == types.Int2 {
			lo, hi = math.MinInt16, math.MaxInt16
		} else if t.Kind == types.Int4 {
			lo, hi = math.MinInt32, math.MaxInt32
		}
		return fn1(func(s []byte) (int64, error) {
			if v, ok := pgtext.QuickInt(s); ok && v >= lo && v <= hi {
				return v, nil
			}
			d, err := pgtext.Parse(t, string(s), st)
			if err != nil {
				return 0, err
			}
			return d.(int64), nil
		})(c, args)
	case types.Date:
		return fn1(func(s string) (int64, error) { return pgtext.ParseDate(s, st) })(c, args)
	case types.Float8:
		return fn1(func(s string) (float64, error) {
			d, err := pgtext.Parse(t, s, st)
			if err != nil {
				return 0, err
			}
			return d.(float64), nil
		})(c, args)
	}
	return fn1(func(s string) (types.Datum, error) { return pgtext.Parse(t, s, st) })(c, args)
})

// textToClass is text to regclass: unlike the input function it takes names only.
var textToClass = withCall(func(c *Call) Kernel {
	return fn1(func(s string) (int64, error) {
		if t := strings.Trim(s, "0123456789"); t == "" || s == "-" {
			return 0, pgerr.New(pgerr.UndefinedTable, "relation \"%s\" does not exist", s)
		}
		return parseReg(c, types.RegClass, s)
	})
})

// toText runs the output function of the source type.
func toText(c *Call, args []vec.Vec) (arrow.Array, error) {
	n := rowsOf(c, args)
	valid, none := strictValid(n, args)
	if none {
		return nullResult(c, n)
	}
	t := argType(c, 0)
	f := TextAppender(c, t, args[0].Arr)
	if c.Ret.Kind == types.Name {
		f = outAppender(c, t, args[0].Arr)
	}
	limit := 0
	if c.Ret.Kind == types.Varchar || c.Ret.Kind == types.BpChar {
		limit = int(c.Ret.Mod) - 4
	}
	return appendRows(c, n, selOf(c, args), valid, func(dst []byte, i int) ([]byte, error) {
		if args[0].Const {
			i = 0
		}
		at := len(dst)
		dst = f(dst, i)
		if limit > 0 {
			v, fits := pgtext.CutText(string(dst[at:]), limit)
			if !fits && !c.Explicit {
				name := "character varying"
				if c.Ret.Kind == types.BpChar {
					name = "character"
				}
				return nil, pgerr.New(pgerr.StringDataRightTruncation, "value too long for type %s(%d)", name, limit)
			}
			if c.Ret.Kind == types.BpChar {
				v = pgtext.PadText(v, limit)
			}
			dst = append(dst[:at], v...)
		}
		if c.Ret.Kind == types.Name {
			dst = append(dst[:at], pgtext.TruncateName(string(dst[at:]))...)
		}
		return dst, nil
	})
}

// TextAppender is pgtext.Appender for a cast to text: booleans are spelled out
// and oid aliases print the names of what they refer to.
func TextAppender(c *Call, t types.Type, a arrow.Array) func(dst []byte, row int) []byte {
	switch {
	case t.Kind == types.Bool:
		b := a.(*array.Boolean)
		return func(dst []byte, row int) []byte {
			if b.Value(row) {
				return append(dst, "true"...)
			}
			return append(dst, "false"...)
		}
	case isReg(t.Kind):
		v := vec.ViewOf[int64](a).V
		return func(dst []byte, row int) []byte { return append(dst, RegName(c.Ctx, c.Env, t.Kind, uint32(v[row]))...) }
	}
	return pgtext.Appender(t, a, StyleOf(c.Env))
}

// fitTime rounds times and timestamps to their digits and converts units.
func fitTime(c *Call, args []vec.Vec) (arrow.Array, error) {
	t := c.Ret
	if t.Kind == types.TimeTZ {
		return fn1(func(b []byte) ([]byte, error) {
			us, west := pgtext.DecodeTimeTZ(b)
			return pgtext.EncodeTimeTZ(roundTo(t, us), west), nil
		})(c, args)
	}
	a := args[0].Arr
	n := a.Len()
	v := vec.ViewOf[int64](a).V
	from, to := tsNanos(args[0]), t.IsNanos()
	out := make([]int64, n)
	valid := vec.ValidCopy(a)
	prec := 6
	if t.Mod > 0 {
		prec = int(t.Mod) - 1
	} else if to {
		prec = 9
	}
	var err error
	rowsLoop(n, selOf(c, args), valid, func(i int) {
		x := v[i]
		switch {
		case tsInf(x) && t.Kind != types.Time:
		case from && to:
			x = pgtext.RoundNanos(x, prec)
		case from:
			// Rounding ns to the digits of the target, then to us.
			x = pgtext.FloorMicros(pgtext.RoundNanos(x, min(prec, 6)))
		case to:
			if x > math.MaxInt64/1000 || x < math.MinInt64/1000 {
				err = errTimestampRange()
				return
			}
			x = pgtext.RoundNanos(x*1000, prec)
		default:
			x = pgtext.RoundMicros(x, prec)
		}
		out[i] = x
	})
	if err != nil {
		return nil, err
	}
	return vec.Make(t.Arrow(), out, valid), nil
}

func fitInterval(c *Call, args []vec.Vec) (arrow.Array, error) {
	rng, prec := pgtext.IntervalMod(c.Ret)
	return fn1(func(v pgtext.Interval) (pgtext.Interval, error) { return pgtext.TrimInterval(v, rng, prec), nil })(c, args)
}

func errJSONCast(r pgtext.JSONRaw, to string) error {
	what := map[byte]string{'o': "object", 'a': "array", 's': "string", 'n': "numeric", 'b': "boolean", 'z': "null"}[r.Kind()]
	return pgerr.New(pgerr.InvalidParameterValue, "cannot cast jsonb %s to type %s", what, to)
}

var jsonbToNumber = withCall(func(c *Call) Kernel {
	t := c.Ret
	return fn1(func(s string) (types.Datum, error) {
		r := pgtext.JSONRaw(s)
		if r.Kind() != 'n' {
			return nil, errJSONCast(r, t.PlainName())
		}
		d, err := pgtext.ParseNumeric(s)
		if err != nil {
			return nil, err
		}
		switch t.Kind {
		case types.Float4, types.Float8:
			return d.Float64(), nil
		case types.Numeric:
			return pgtext.FitNumeric(d, t)
		}
		v, ok := d.Int64()
		return checkInt(t.Kind, v, !ok)
	})
})
