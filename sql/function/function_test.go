package function

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// val is a typed constant: "int4:5", "numeric:1.5", "text:abc", "int4:NULL".
func val(t *testing.T, s string) (types.Datum, types.Type) {
	t.Helper()
	name, text, _ := strings.Cut(s, ":")
	ty, ok := TypeByName(name)
	if !ok {
		t.Fatalf("no type %q", name)
	}
	if text == "NULL" {
		return nil, ty
	}
	d, err := pgtext.Parse(ty, text, nil)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	if n, ok := d.(*numeric.Dec); ok && ty.Kind == types.Numeric {
		ty = numericTypeOf(n)
	}
	return d, ty
}

func find(l []*Overload, args []types.Type) *Overload {
	for _, o := range l {
		if len(o.Args) != len(args) {
			continue
		}
		ok := true
		for i, a := range o.Args {
			ok = ok && (a.SameKind(args[i]) || a.Kind == types.AnyArray && args[i].Kind == types.Array)
		}
		if ok {
			return o
		}
	}
	return nil
}

func evalText(t *testing.T, l []*Overload, args ...string) string {
	t.Helper()
	ds := make([]types.Datum, len(args))
	ts := make([]types.Type, len(args))
	for i, a := range args {
		ds[i], ts[i] = val(t, a)
	}
	o := find(l, ts)
	if o == nil {
		t.Fatalf("no overload for %v", args)
	}
	ret := o.Ret
	if o.RetFn != nil {
		ret = o.RetFn(ts)
	}
	c := &Call{Ctx: context.Background(), ArgTypes: ts, Ret: ret, N: 1, State: new(any)}
	d, err := EvalDatums(o, c, ds)
	if err != nil {
		code, _ := pgerr.CodeOf(err)
		return "ERROR " + code.String() + " " + err.Error()
	}
	if d == nil {
		return "NULL"
	}
	return string(pgtext.AppendDatum(nil, ret, d, nil))
}

func TestOperators(t *testing.T) {
	for _, c := range []struct {
		op, l, r, want string
	}{
		{"+", "int4:2147483647", "int4:1", "ERROR 22003 integer out of range"},
		{"+", "int4:40", "int8:2", "42"},
		{"*", "int2:300", "int2:300", "ERROR 22003 smallint out of range"},
		{"/", "int4:-7", "int4:2", "-3"},
		{"/", "int4:1", "int4:0", "ERROR 22012 division by zero"},
		{"%", "int8:-7", "int8:2", "-1"},
		{"/", "numeric:7.5", "numeric:2", "3.7500000000000000"},
		{"*", "numeric:7.5", "numeric:2.00", "15.000"},
		{"+", "numeric:0.1", "numeric:0.22", "0.32"},
		{"^", "numeric:2", "numeric:3", "8.0000000000000000"},
		{"<", "numeric:1.50", "numeric:1.5", "f"},
		{"=", "numeric:1.50", "numeric:1.5", "t"},
		{"=", "float8:NaN", "float8:NaN", "t"},
		{"~~", "text:foobar", "text:foo%", "t"},
		{"~~", "text:foobar", "text:%oba_", "t"},
		{"~~", "text:foobar", "text:%ob_", "f"},
		{"~~", "text:foobar", "text:f%o%r", "t"},
		{"!~~*", "text:FooBar", "text:%BAR", "f"},
		{"+", "date:2024-01-31", "interval:1 mon", "2024-02-29 00:00:00"},
		{"-", "timestamp:2024-03-01 00:00", "timestamp:2024-02-27 12:00", "2 days 12:00:00"},
		{"*", "interval:1 mon 1 day", "float8:1.5", "1 mon 16 days 12:00:00"},
	} {
		if got := evalText(t, LookupOperator(c.op, false), c.l, c.r); got != c.want {
			t.Errorf("%s %s %s = %s, want %s", c.l, c.op, c.r, got, c.want)
		}
	}
}

func TestRegistry(t *testing.T) {
	seen, oids := map[string]bool{}, map[uint32]string{}
	check := func(kind string, l []*Overload) {
		for _, o := range l {
			sig := kind + o.Signature()
			if seen[sig] {
				t.Errorf("%s defined twice", sig)
			}
			seen[sig] = true
			if prev, dup := oids[o.OID]; dup {
				t.Errorf("%s and %s share OID %d", sig, prev, o.OID)
			}
			oids[o.OID] = sig
			if o.Doc == "" || !strings.HasSuffix(o.Doc, ".") {
				t.Errorf("%s has no Doc sentence", sig)
			}
			if o.Kernel == nil && o.Set == nil && !o.Internal {
				t.Errorf("%s has no kernel", sig)
			}
		}
	}
	check("op ", Operators())
	check("", All())
}

func TestCastDatum(t *testing.T) {
	c := &Call{Ctx: context.Background(), Explicit: true}
	for _, tc := range []struct{ from, to, want string }{
		{"float8:2.5", "int4", "2"},
		{"float8:3.5", "int4", "4"},
		{"numeric:2.5", "int4", "3"},
		{"text:12", "int4", "12"},
		{"text:x", "int4", "ERROR invalid input syntax for type integer: \"x\""},
		{"bool:t", "text", "true"},
		{"timestamp:2024-01-01 10:00", "date", "2024-01-01"},
		{"int4:70000", "int2", "ERROR smallint out of range"},
		{"_int4:{1,2,NULL}", "_text", "{1,2,NULL}"},
		{"unknown:{1,2}", "_int8", "{1,2}"},
	} {
		d, from := val(t, tc.from)
		to, _ := TypeByName(tc.to)
		r, err := CastDatum(c, d, from, to)
		got := ""
		if err != nil {
			got = "ERROR " + err.Error()
		} else {
			got = string(pgtext.AppendDatum(nil, to, r, nil))
		}
		if got != tc.want {
			t.Errorf("%s::%s = %s, want %s", tc.from, tc.to, got, tc.want)
		}
	}
	_ = time.UTC
	_ = vec.MaxRows
}

// numericTypeOf is the type of a numeric constant: the Decimal128 form of just
// its digits, or plain numeric when that does not hold it.
func numericTypeOf(d *numeric.Dec) types.Type {
	p := max(d.Digits(), int(d.Scale), 1)
	if d.Form != numeric.Finite || p > 38 {
		return types.Of(types.Numeric)
	}
	return types.DecimalOf(p, int(d.Scale))
}
