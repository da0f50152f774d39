package pgtext

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

var typesByTestName = map[string]types.Type{
	"bool": types.Of(types.Bool), "int2": types.Of(types.Int2), "int4": types.Of(types.Int4), "int8": types.Of(types.Int8),
	"float4": types.Of(types.Float4), "float8": types.Of(types.Float8), "numeric": types.Of(types.Numeric),
	"numeric(5,2)": types.NumericOf(5, 2), "varchar(3)": {Kind: types.Varchar, Mod: 7}, "char(3)": {Kind: types.BpChar, Mod: 7},
	"name": types.Of(types.Name), "bytea": types.Of(types.Bytea), "date": types.Of(types.Date), "time": types.Of(types.Time),
	"time(2)": {Kind: types.Time, Prec: 6, Mod: 3}, "timetz": types.Of(types.TimeTZ), "timestamp": types.Of(types.Timestamp),
	"timestamp(3)": {Kind: types.Timestamp, Prec: 6, Mod: 4}, "timestamptz": types.Of(types.TimestampTZ), "interval": types.Of(types.Interval),
	"uuid": types.Of(types.UUID), "json": types.Of(types.JSON), "jsonb": types.Of(types.JSONB), "int4[]": types.ArrayOf(types.Of(types.Int4)),
	"text[]": types.ArrayOf(types.Of(types.Text)), "oid": types.Of(types.OID),
}

// TestInputRecorded reads texts whose meaning was recorded on PostgreSQL 15:
//
//	setting TAB type TAB text TAB result
//
// The setting is DateStyle;TimeZone;IntervalStyle. Tabs, line feeds and
// backslashes are escaped; results are texts, or ERROR code message.
func TestInputRecorded(t *testing.T) {
	data, err := os.ReadFile("testdata/input15.tsv")
	if err != nil {
		t.Fatal(err)
	}
	un := strings.NewReplacer(`\\`, `\`, `\t`, "\t", `\n`, "\n")
	for no, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
		c := strings.Split(line, "\t")
		set := strings.Split(c[0], ";")
		st := &Style{IntervalStyle: set[2]}
		st.DateStyle, st.DateOrder, _ = strings.Cut(set[0], ", ")
		loc, ok := LoadZone(set[1])
		if !ok {
			t.Fatalf("no zone %s", set[1])
		}
		st.Location = loc
		ty := typesByTestName[c[1]]
		d, err := Parse(ty, un.Replace(c[2]), st)
		got := ""
		if err != nil {
			code, _ := pgerr.CodeOf(err)
			got = "ERROR " + code.String() + " " + err.Error()
		} else {
			got = string(AppendDatum(nil, ty, d, st))
			// The column form prints the same.
			a := vec.FromDatums(ty, []types.Datum{nil, d})
			if col := string(Appender(ty, a, st)(nil, 1)); col != got {
				t.Errorf("line %d: the column prints %q, the datum %q", no+1, col, got)
			}
		}
		if want := un.Replace(c[3]); got != want {
			t.Errorf("line %d: %s %q with %s\n  got  %s\n  want %s", no+1, c[1], c[2], c[0], got, want)
		}
	}
}

func TestNested(t *testing.T) {
	i4, text := types.Of(types.Int4), types.Of(types.Text)
	row := types.Type{Kind: types.Row, Fields: []types.Field{{Name: "a", Type: i4}, {Name: "b \"q\"", Type: text}}}
	rec := row
	rec.Kind = types.Record
	for _, c := range []struct {
		t    types.Type
		d    types.Datum
		want string
	}{
		{types.ArrayOf(text), []types.Datum{"a", nil, "", "null", "b c", `d"e\`}, `{a,NULL,"","null","b c","d\"e\\"}`},
		{types.ArrayOf(types.ArrayOf(i4)), []types.Datum{[]types.Datum{int64(1), nil}, nil}, `[[1, null], null]`},
		{types.MapOf(text, i4), []types.KV{{K: "k", V: int64(7)}, {K: "n", V: nil}}, `{"k": 7, "n": null}`},
		{row, []types.Datum{int64(1), "x"}, `{"a": 1, "b \"q\"": "x"}`},
		{rec, []types.Datum{int64(1), "x y"}, `(1,"x y")`},
		{rec, []types.Datum{nil, ""}, `(,"")`},
	} {
		if got := string(AppendDatum(nil, c.t, c.d, nil)); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
		if c.t.Kind == types.Record {
			continue
		}
		back, err := Parse(c.t, c.want, nil)
		if err != nil {
			t.Errorf("%s: %v", c.want, err)
			continue
		}
		if again := string(AppendDatum(nil, c.t, back, nil)); again != c.want {
			t.Errorf("%s reads back as %s", c.want, again)
		}
	}
}

func TestVariant(t *testing.T) {
	ty := types.Of(types.Variant)
	for _, s := range []string{`null`, `true`, `{"a": [1, -300, 70000, 5000000000, 1.50, 1e300, "x"], "b": {"a": null}}`, `"` + strings.Repeat("é", 60) + `"`, `[]`, `{}`} {
		d, err := Parse(ty, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(AppendDatum(nil, ty, d, nil)); strings.ReplaceAll(got, "1e+300", "1e300") != s {
			t.Errorf("got %s, want %s", got, s)
		}
	}
}

func TestNanosAreKept(t *testing.T) {
	ty := types.Type{Kind: types.Timestamp, Prec: 9}
	d, err := Parse(ty, "1969-12-31 23:59:59.999999999", nil)
	if err != nil || d != int64(-1) {
		t.Fatalf("got %v, %v", d, err)
	}
	if got := string(AppendDatum(nil, ty, d, nil)); got != "1969-12-31 23:59:59.999999" {
		t.Errorf("shown as %s", got)
	}
}

func FuzzParse(f *testing.F) {
	names := make([]string, 0, len(typesByTestName))
	for n := range typesByTestName {
		names = append(names, n)
	}
	for _, s := range []string{"", "1", "2024-02-29 12:34:56.5+02", "1 day -2 hours ago", "P1Y2M", "{1,NULL,\"x\"}", `{"a":[1,{"b":null}]}`, "\\x00ff", "1e-5", "y2001m02d04", "J2451187.5", "12:00 America/New_York", "{{1},{2}}", `"\ud83d\ude00"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 200 {
			return
		}
		st := &Style{Now: func() time.Time { return time.Unix(1700000000, 0) }}
		for _, n := range names {
			ty := typesByTestName[n]
			d, err := Parse(ty, s, st)
			if err != nil {
				if _, ok := pgerr.CodeOf(err); !ok {
					t.Fatalf("%s %q: error without a code: %v", n, s, err)
				}
				continue
			}
			out := AppendDatum(nil, ty, d, st)
			// What was printed reads back to the same text.
			back, err := Parse(ty, string(out), st)
			if err != nil {
				t.Fatalf("%s %q prints %q, which does not read: %v", n, s, out, err)
			}
			if again := AppendDatum(nil, ty, back, st); !bytes.Equal(again, out) {
				t.Fatalf("%s %q prints %q, then %q", n, s, out, again)
			}
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	const n = 4096
	cols := map[string]types.Type{"int4": types.Of(types.Int4), "float8": types.Of(types.Float8), "numeric": types.DecimalOf(15, 2), "date": types.Of(types.Date),
		"timestamp": types.Of(types.Timestamp), "timestamptz": types.Of(types.TimestampTZ), "text": types.Of(types.Text)}
	texts := map[string]string{"int4": "123456", "float8": "1234.5678", "numeric": "12345.67", "date": "1996-03-13", "timestamp": "1996-03-13 12:34:56.789", "timestamptz": "1996-03-13 12:34:56+00", "text": "hello world"}
	for name, ty := range cols {
		d, err := Parse(ty, texts[name], nil)
		if err != nil {
			b.Fatal(err)
		}
		ds := make([]types.Datum, n)
		for i := range ds {
			ds[i] = d
		}
		a := vec.FromDatums(ty, ds)
		b.Run(name, func(b *testing.B) {
			st := &Style{Location: time.UTC}
			f := Appender(ty, a, st)
			var dst []byte
			for b.Loop() {
				dst = dst[:0]
				for i := 0; i < n; i++ {
					dst = f(dst, i)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/value")
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct{ t, s string }{{"int4", "123456"}, {"float8", "1234.5678"}, {"numeric", "12345.67"}, {"date", "1996-03-13"}, {"timestamp", "1996-03-13 12:34:56.789"}} {
		ty := typesByTestName[c.t]
		b.Run(c.t, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(ty, c.s, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
