package function

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// TestPostgres evaluates calls whose results were recorded on PostgreSQL 15
// (UTC, C locale). A line is
//
//	name TAB type:value ... TAB = result
//
// with "op:" before operators, NULL for NULL, ERROR code message for errors;
// tabs, line feeds and backslashes in values are escaped.
func TestPostgres(t *testing.T) {
	data, err := os.ReadFile("testdata/postgres15.tsv")
	if err != nil {
		t.Fatal(err)
	}
	unescape := strings.NewReplacer(`\\`, `\`, `\t`, "\t", `\n`, "\n")
	bad, run := 0, 0
	for no, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		cols := strings.Split(line, "\t")
		want := unescape.Replace(strings.TrimPrefix(cols[len(cols)-1], "= "))
		var l []*Overload
		if op, ok := strings.CutPrefix(cols[0], "op:"); ok {
			l = LookupOperator(op, len(cols) == 3)
		} else {
			l = Lookup(cols[0])
		}
		var ds []types.Datum
		var ts []types.Type
		for _, a := range cols[1 : len(cols)-1] {
			name, text, _ := strings.Cut(a, ":")
			ty, ok := TypeByName(name)
			if !ok {
				t.Fatalf("line %d: no type %s", no+1, name)
			}
			var d types.Datum
			if text != "NULL" {
				if d, err = pgtext.Parse(ty, unescape.Replace(text), nil); err != nil {
					if isReg(ty.Kind) {
						continue // needs a catalog
					}
					t.Fatalf("line %d: %v", no+1, err)
				}
			}
			if n, ok := d.(*numeric.Dec); ok {
				ty = numericTypeOf(n)
			}
			ds, ts = append(ds, d), append(ts, ty)
		}
		o := find(l, ts)
		if o == nil || o.Kernel == nil { // set-returning ones are tested over SQL
			continue
		}
		run++
		if got := call(o, ts, ds); got != want && !(strings.HasPrefix(want, "ERROR") && got == want) {
			if bad++; bad <= 40 {
				t.Errorf("line %d: %s\n  got  %s\n  want %s", no+1, strings.Join(cols[:len(cols)-1], " "), got, want)
			}
		}
	}
	if run < 4000 {
		t.Errorf("only %d lines were run", run)
	}
}

// call evaluates an overload and prints the result as the recordings do.
func call(o *Overload, ts []types.Type, ds []types.Datum) string {
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
