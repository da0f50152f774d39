package sqllogic

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	recs, err := Parse(`# a comment
control resultmode rowwise

statement ok
CREATE TABLE t
(a int)

statement error (42703)
SELECT b

skipif postgresql
statement ok
NOT FOR US

onlyif mysql
query I
NOR THIS

statement count 3
DELETE

query IT rowsort
SELECT 1
----
1	(empty)
2	NULL

halt
`)
	if err != nil {
		t.Fatal(err)
	}
	if len(recs) != 8 {
		t.Fatalf("%d records", len(recs))
	}
	if recs[1].SQL != "CREATE TABLE t\n(a int)" || recs[1].Line != 4 {
		t.Errorf("%+v", recs[1])
	}
	if !recs[2].Error || recs[2].Pattern != "(42703)" {
		t.Errorf("%+v", recs[2])
	}
	if !recs[3].Skip || !recs[4].Skip || recs[5].Skip {
		t.Error("labels")
	}
	if recs[5].Count != 3 || recs[6].Types != "IT" || recs[6].Sort != "rowsort" || len(recs[6].Want) != 2 || recs[7].Kind != Halt {
		t.Errorf("%+v", recs[5:])
	}
	for _, bad := range []string{"nonsense", "statement", "statement maybe", "statement count x", "skipif"} {
		if _, err := Parse(bad + "\nSELECT 1\n"); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestParseConnections(t *testing.T) {
	recs, err := Parse("connection b\nblocks\n# ERROR: x\nstatement error (55P03)\nUPDATE\n\nstatement ok\nCOMMIT\n")
	if err != nil || len(recs) != 2 {
		t.Fatal(recs, err)
	}
	if recs[0].Conn != "b" || !recs[0].Blocks || recs[0].Line != 4 || recs[1].Conn != "" || recs[1].Blocks {
		t.Errorf("%+v", recs)
	}
	if _, err := Parse("connection\nstatement ok\nSELECT 1\n"); err == nil {
		t.Error("a connection without a name was taken")
	}
}

func TestPlain(t *testing.T) {
	for sql, want := range map[string]string{
		"CREATE TABLE t (a int, CHECK (a > 0)) PARTITIONED BY (a) WITH ('bucket' = '2')": "CREATE TABLE t (a int, CHECK (a > 0))",
		"WITH w AS (SELECT 1) SELECT * FROM w":                                           "WITH w AS (SELECT 1) SELECT * FROM w",
	} {
		if got := plain(sql); got != want {
			t.Errorf("%q: %q", sql, got)
		}
	}
}

func TestCheck(t *testing.T) {
	v := func(rows ...string) [][]Value {
		var out [][]Value
		for _, r := range rows {
			var row []Value
			for _, f := range strings.Split(r, "|") {
				if f == "NULL" {
					row = append(row, nil)
					continue
				}
				row = append(row, &f)
			}
			out = append(out, row)
		}
		return out
	}
	for _, tc := range []struct {
		name  string
		rec   Record
		rows  [][]Value
		wise  bool
		equal bool
	}{
		{"order", Record{Types: "I", Want: []string{"1", "2"}}, v("1", "2"), true, true},
		{"wrong order", Record{Types: "I", Want: []string{"2", "1"}}, v("1", "2"), true, false},
		{"rowsort", Record{Types: "I", Sort: "rowsort", Want: []string{"2", "1"}}, v("1", "2"), true, true},
		{"escapes", Record{Types: "TTT", Want: []string{`(empty)	NULL	a\nb`}}, v("|NULL|a\nb"), true, true},
		{"missing row", Record{Types: "I", Want: []string{"1", "2"}}, v("1"), true, false},
		{"columns", Record{Types: "II", Want: []string{"1"}}, v("1"), true, false},
		{"float noise", Record{Types: "R", Want: []string{"0.30000000000000004"}}, v("0.30000000000000009"), true, true},
		{"short float", Record{Types: "R", Want: []string{"0.3"}}, v("0.30001"), true, false},
		{"noise in text", Record{Types: "T", Want: []string{"0.30000000000000004"}}, v("0.30000000000000009"), true, false},
		{"classic", Record{Types: "IRT", Want: []string{"3", "1.500", "a@"}}, v("3.7|1.5|aé"), false, true},
		{"classic hash", Record{Types: "I", Want: []string{"2 values hashing to 6ddb4095eb719e2a9f0a3f95677d24e0"}}, v("1", "2"), false, true},
		{"wrong hash", Record{Types: "I", Want: []string{"2 values hashing to 00000000000000000000000000000000"}}, v("1", "2"), false, false},
	} {
		cols := 0
		if len(tc.rows) > 0 {
			cols = len(tc.rows[0])
		}
		if why := check(&tc.rec, tc.rows, cols, tc.wise, "nosort"); (why == "") != tc.equal {
			t.Errorf("%s: %q", tc.name, why)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, tc := range []struct {
		pattern string
		want    bool
	}{
		{"", true}, {"(42703)", true}, {"(42P01)", false}, {"does NOT exist", true}, {"nothing", false}, {`column "b`, true}, {"(unbalanced", false},
	} {
		if got := matches(tc.pattern, "42703", `column "b" does not exist`); got != tc.want {
			t.Errorf("%q: %v", tc.pattern, got)
		}
	}
}
