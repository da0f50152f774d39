package pgcopy

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

var rewrite = flag.Bool("rewrite", false, "record testdata/recorded.txt anew from the PostgreSQL that PAIMON_SQL_PG names")

// a kase is data for COPY and what PostgreSQL 15 made of it.
type kase struct {
	cols string // "a int8, b text"
	opts []Option
	data []byte
	want string
}

var typesByName = map[string]types.Type{
	"bool": types.Of(types.Bool), "int2": types.Of(types.Int2), "int4": types.Of(types.Int4), "int8": types.Of(types.Int8),
	"float4": types.Of(types.Float4), "float8": types.Of(types.Float8), "numeric(5,2)": types.NumericOf(5, 2), "numeric(38,18)": types.NumericOf(38, 18),
	"numeric": types.Of(types.Numeric), "text": types.Of(types.Text), "varchar(3)": {Kind: types.Varchar, Mod: 7}, "char(3)": {Kind: types.BpChar, Mod: 7},
	"bytea": types.Of(types.Bytea), "date": types.Of(types.Date), "time": types.Of(types.Time), "timestamp": types.Of(types.Timestamp),
	"timestamp(3)": {Kind: types.Timestamp, Prec: 3, Mod: 4}, "timestamptz": types.Of(types.TimestampTZ), "uuid": types.Of(types.UUID),
	"json": types.Of(types.JSON), "jsonb": types.Of(types.JSONB), "int4[]": types.ArrayOf(types.Of(types.Int4)), "text[]": types.ArrayOf(types.Of(types.Text)),
	"interval": types.Of(types.Interval),
}

func (k *kase) schema() types.Schema {
	var s types.Schema
	for _, c := range strings.Split(k.cols, ", ") {
		n, t, _ := strings.Cut(c, " ")
		s = append(s, types.Field{Name: n, Type: typesByName[t]})
	}
	return s
}

// optText and parseOpts are the form of options in the file: name, name=value or
// name=(a,b), quoted.
func (k *kase) optText() string {
	var out []string
	for _, o := range k.opts {
		switch {
		case o.IsList:
			out = append(out, o.Name+" ("+strings.Join(o.List, ", ")+")")
		case o.Given:
			out = append(out, fmt.Sprintf("%s E'%s'", o.Name, strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\t", `\t`).Replace(o.Value)))
		default:
			out = append(out, o.Name)
		}
	}
	return strings.Join(out, ", ")
}

// cutReader gives the data in pieces of n bytes; 0 = all.
type cutReader struct {
	b []byte
	n int
}

func (r *cutReader) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := len(r.b)
	if r.n > 0 {
		n = min(n, r.n)
	}
	n = copy(p, r.b[:n])
	r.b = r.b[n:]
	return n, nil
}

// run decodes and prints rows or the error.
func (k *kase) run(cut, rows int) string { return k.decode(cut, rows, false) }

func (k *kase) decode(cut, rows int, exact bool) string {
	o, err := ParseOptions(true, k.opts)
	if err != nil {
		return errText(err)
	}
	d := NewDecoder(&cutReader{append([]byte(nil), k.data...), cut}, Config{Options: o, Relation: "t", Columns: k.schema(), Rows: rows})
	defer d.Close()
	d.exact = exact
	var sb strings.Builder
	for {
		r, err := d.Next()
		if err != nil {
			return errText(err)
		}
		if r == nil {
			return sb.String()
		}
		for i := range r.N {
			for c, a := range r.Cols {
				if c > 0 {
					sb.WriteByte(' ')
				}
				if a.IsNull(i) {
					sb.WriteString("NULL")
					continue
				}
				fmt.Fprintf(&sb, "%q", pgtext.Appender(d.cols[c].typ, a, &pgtext.Style{})(nil, i))
			}
			sb.WriteByte('\n')
		}
	}
}

func errText(err error) string {
	var e *pgerr.Error
	if !errors.As(err, &e) {
		return "not of PostgreSQL: " + err.Error()
	}
	return fmt.Sprintf("ERROR %s %q detail %q hint %q context %q\n", e.Code, e.Message, e.Detail, e.Hint, e.Context)
}

// TestRecorded compares with what PostgreSQL 15 does with the same bytes. The
// answer does not depend on where the bytes are cut and how large batches are.
func TestRecorded(t *testing.T) {
	if *rewrite {
		record(t)
	}
	cases := readRecorded(t)
	if len(cases) < 1000 {
		t.Fatalf("only %d cases", len(cases))
	}
	bad := 0
	for i, k := range cases {
		for _, cut := range []int{0, 1, 5} {
			got := k.run(cut, 1+i%3*7)
			if got != k.want {
				t.Errorf("case %d: COPY t (%s) WITH (%s), cut at %d: %q\n got %s\nwant %s", i, k.cols, k.optText(), cut, k.data, got, k.want)
				if bad++; bad > 20 {
					t.FailNow()
				}
				break
			}
		}
	}
}

const recorded = "testdata/recorded.txt"

func readRecorded(t *testing.T) []kase {
	b, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	var out []kase
	for _, part := range strings.Split(string(b), "\n\n") {
		if part = strings.TrimSpace(part); part == "" || part[0] == '#' {
			continue
		}
		lines := strings.SplitN(part, "\n", 5)
		var k kase
		k.cols = strings.TrimPrefix(lines[0], "columns ")
		var n int
		if _, err := fmt.Sscanf(lines[1], "options %d", &n); err != nil {
			t.Fatalf("%s: %v", lines[1], err)
		}
		rest := strings.TrimPrefix(lines[1], fmt.Sprintf("options %d", n))
		for range n {
			var o Option
			var list string
			if _, err := fmt.Sscanf(rest, " %q %t %t %q %q", &o.Name, &o.Given, &o.IsList, &o.Value, &list); err != nil {
				t.Fatalf("%s: %v", rest, err)
			}
			rest = rest[len(fmt.Sprintf(" %q %t %t %q %q", o.Name, o.Given, o.IsList, o.Value, list)):]
			if o.IsList {
				o.List = strings.Split(list, ",")
			}
			k.opts = append(k.opts, o)
		}
		if _, err := fmt.Sscanf(lines[2], "data %q", &k.data); err != nil {
			t.Fatalf("%s: %v", lines[2], err)
		}
		if len(lines) > 4 {
			k.want = lines[4] + "\n"
		}
		out = append(out, k)
	}
	return out
}

func writeRecorded(t *testing.T, cases []kase) {
	var sb strings.Builder
	sb.WriteString("# What PostgreSQL 15 does with data for COPY. PAIMON_SQL_PG=dsn go test ./internal/pgcopy -rewrite records it anew.\n")
	for _, k := range cases {
		fmt.Fprintf(&sb, "\ncolumns %s\noptions %d", k.cols, len(k.opts))
		for _, o := range k.opts {
			fmt.Fprintf(&sb, " %q %t %t %q %q", o.Name, o.Given, o.IsList, o.Value, strings.Join(o.List, ","))
		}
		fmt.Fprintf(&sb, "\ndata %q\n----\n%s", k.data, k.want)
	}
	if err := os.WriteFile(recorded, []byte(sb.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// record asks PostgreSQL.
func record(t *testing.T) {
	dsn := os.Getenv("PAIMON_SQL_PG")
	if dsn == "" {
		t.Fatal("-rewrite needs PAIMON_SQL_PG")
	}
	ctx := t.Context()
	pg, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pg.Close(ctx) //nolint:errcheck // a test
	exec := func(sql string) []*pgconn.Result {
		r, err := pg.Exec(ctx, sql).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return r
	}
	exec("SET TimeZone = 'UTC'; SET client_min_messages = error")
	cases := generate()
	for i := range cases {
		k := &cases[i]
		exec("DROP TABLE IF EXISTS t; CREATE TABLE t (" + k.cols + ")")
		sql := "COPY t FROM STDIN"
		if o := k.optText(); o != "" {
			sql += " WITH (" + o + ")"
		}
		_, err := pg.CopyFrom(ctx, bytes.NewReader(k.data), sql)
		var pe *pgconn.PgError
		if errors.As(err, &pe) {
			k.want = fmt.Sprintf("ERROR %s %q detail %q hint %q context %q\n", pe.Code, pe.Message, pe.Detail, pe.Hint, pe.Where)
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		var sb strings.Builder
		for _, row := range exec("SELECT * FROM t")[0].Rows {
			for c, v := range row {
				if c > 0 {
					sb.WriteByte(' ')
				}
				if v == nil {
					sb.WriteString("NULL")
					continue
				}
				fmt.Fprintf(&sb, "%q", v)
			}
			sb.WriteByte('\n')
		}
		k.want = sb.String()
	}
	writeRecorded(t, cases)
}

// generate makes the cases: values by hand, and lines at random out of what is
// special in the formats.
func generate() []kase {
	var out []kase
	opt := func(s ...string) []Option {
		var os []Option
		for _, x := range s {
			n, v, given := strings.Cut(x, "=")
			o := Option{Name: n, Value: v, Given: given}
			if strings.HasPrefix(v, "(") {
				o.Value, o.IsList, o.List = "", true, strings.Split(strings.Trim(v, "()"), ",")
			}
			os = append(os, o)
		}
		return os
	}
	add := func(cols, data string, opts ...string) {
		out = append(out, kase{cols: cols, opts: opt(opts...), data: []byte(data)})
	}
	values := map[string][]string{
		"bool":           {"t", "f", "true", "FALSE", "yes", "no", "1", "0", "on", "off", "o", "x", "", " t "},
		"int2":           {"0", "-1", "32767", "-32768", "32768", "-32769", "1x", "", " 5 ", "+7", "99999999999999999999"},
		"int4":           {"0", "2147483647", "-2147483648", "2147483648", "007", "-0", "1e3", "1.0", "--1"},
		"int8":           {"0", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "999999999999999999", "1000000000000000000", "12 34"},
		"float4":         {"1.5", "1e38", "1e39", "-0", "NaN", "inf", "1e-46", ".5", "5.", "0x1p3", "1_0"},
		"float8":         {"1.5", "1e308", "1e309", "-1e-400", "0.1", "-Infinity", "1e", "e5", "1.2.3", "+3"},
		"numeric(5,2)":   {"1", "1.5", "-1.55", "999.99", "999.995", "999.994", "1000", "-1000", "0.001", "0.005", ".5", "5.", ".", "", "-", "1e2", "NaN x", "00001.10", "-0", "1.2.3", "0000000000000000000001"},
		"numeric(38,18)": {"1", "12.5", "99999999999999999999", "999999999999999999.999999999999999999", "-0.000000000000000001", "100000000000000000000", "0.0000000000000000005"},
		"numeric":        {"1", "1.50", "-1e-5", "1e5", "NaN", "123456789012345678901234567890.123"},
		"varchar(3)":     {"a", "abc", "abcd", "abc  ", "äöü", "äöüx", ""},
		"char(3)":        {"a", "abc", "abcd", "abc  ", ""},
		"bytea":          {`\\x00ff`, `\\xAB`, `\\x0`, `\\xzz`, `a\\\\b`, `\\001`, `plain`, ``},
		"date":           {"2024-02-29", "2023-02-29", "0001-01-01", "9999-12-31", "0000-01-01", "2024-1-5", "20240105", "infinity", "-infinity", "2024-13-01", "x", "2024-01-05 ", "epoch", "294276-12-31", "4713-11-24 BC"},
		"time":           {"01:02:03", "23:59:59.999999", "24:00:00", "24:00:01", "1:2", "04:05 PM"},
		"timestamp":      {"2024-02-29 12:34:56", "2024-02-29T12:34:56.5", "2024-02-29 12:34:56.123456", "2024-02-29 12:34:56.1234567", "2024-02-29 12:34:60", "2024-02-29 24:00:00", "2024-02-29 25:00:00", "2024-02-29 12:34:56+02", "2024-02-29 12:34:56.", "2024-02-29", "infinity", "9999-12-31 23:59:59.999999", "294246-12-31 00:00:00", "2024-02-30 00:00:00", "0001-01-01 00:00:00 BC"},
		"timestamp(3)":   {"2024-02-29 12:34:56.1234", "2024-02-29 12:34:56.1236", "2024-02-29 12:34:56.123"},
		"timestamptz":    {"2024-02-29 12:34:56", "2024-02-29 12:34:56+02", "2024-02-29 12:34:56-03:30", "2024-02-29 12:34:56.5+00", "2024-02-29 12:34:56Z", "2024-02-29 12:34:56 Europe/Berlin", "2024-02-29 12:34:56+15:60"},
		"uuid":           {"00112233-4455-6677-8899-aabbccddeeff", "x"},
		"json":           {`{"a": 1}`, `{`, `[1,2]`},
		"jsonb":          {`{"b": 1, "a": 2}`, `nul`},
		"int4[]":         {"{1,2,NULL}", "{}", "{1,x}", "1"},
		"text[]":         {`{a,"b c",NULL}`, `{"x\\\\y"}`},
		"interval":       {"1 day", "2 hours 3 min", "x"},
		"text":           {"", "a b", `\\`, `\N`, `a\tb`, `\x41\x4`, `\101\7`, `\q`, `\xe4`, `\303\244`, `\0`, `\x00`, "ä", "\xff", "\xe2\x28\xa1", "\x00", "\xc3", strings.Repeat("long ", 30), strings.Repeat("ä", 70)},
	}
	order := []string{"bool", "int2", "int4", "int8", "float4", "float8", "numeric(5,2)", "numeric(38,18)", "numeric", "varchar(3)", "char(3)", "bytea", "date", "time",
		"timestamp", "timestamp(3)", "timestamptz", "uuid", "json", "jsonb", "int4[]", "text[]", "interval", "text"}
	for _, typ := range order {
		for _, v := range values[typ] {
			add("a int4, b "+typ, "1\t"+v+"\n2\t\\N\n")
			add("a int4, b "+typ, "1,"+v+"\n2,\n", "format=csv")
			add("b "+typ+", a int4", "\""+strings.ReplaceAll(v, `"`, `""`)+"\",1\n", "format=csv")
		}
	}
	for _, data := range []string{"", "1\n", "1", "1\t2\t3\n", "1\t2\n3\n4\tx\n", "1\t2\n\n", "x\n", "x\t", "1\tx\n2\n", "1\ta\n\\.\n2\tb\n", "1\ta\n\\.", "1\ta\n\\.x\n", "1\ta\\.\n",
		"1\ta\r\n2\tb\r\n", "1\ta\r\n2\tb\n", "1\ta\n2\tb\r\n", "1\ta\r2\tb\r", "1\ta\r2\tb\n", "1\ta\n2\tb\rc\n", "1\ta\r\n\\.\r\n3\tc\r\n", "1\ta\r\n\\.\n", "1\ta\n\\.\r\n", "1\ta\r\\.\n",
		"1\ta\\\nb\n2\tc\n", "1\ta\\\r\n", "1\ta\\\tb\n", "1\ta\\", "1\t\\N\n", "1\t\\Nx\n", "1\t\\\\N\n", "\\N\t\\N\n", "1\ta\xff\n", "1\tok\n2\ta\xffb\n", "1\tok\nx\ta\xffb\n", "\\.\n", "\\.\r\n1\n", "\n", "\r\n", "\r", "\\", "1\t\\x\n", "1\t\\xg\n", "1\t\\8\n",
		"1\ta\n2\tb\x00\n"} {
		add("a int4, b text", data)
		add("a int4, b text", strings.ReplaceAll(data, "\t", ","), "format=csv")
		add("a text", data)
		add("a text", data, "format=csv")
		add("a int4, b text", "a\tb\n"+data, "header=match")
		add("a int4, b text", data, "header=match")
		add("a int4, b text", data, "header")
		add("a int4, b text", data, "null=a", "delimiter=\t")
	}
	for _, data := range []string{`1,"a"` + "\n", `1,"a""b"` + "\n", `1,"a,b"` + "\n", "1,\"a\nb\"\n2,c\n", "1,\"a\nb\"\nx,c\n", "1,\"a\n", "1,\"a", `1,a"b"c` + "\n", `1,""` + "\n", `1,"a"x,` + "\n", `1,"a\"b"` + "\n",
		`1,'a''b'` + "\n", `1,"\."` + "\n", "\\.\n1,a\n", "\\.x,1\n", "1,\"a\rb\"\n", "1,\"a\r\nb\"\r\n2,c\r\n", "1,a\"\r\n\"\n", "1,\"\"\"\"\n", "1,\"a\n\n\nb\"\n2,\"\n\"\nx,y\n", "1;a\n", "\"1\",\"a\"\n\"x\",b\n", "1, \"a\"\n", "1,\"a\" \n"} {
		add("a int4, b text", data, "format=csv")
		add("a int4, b text", data, "format=csv", "escape=\\")
		add("a int4, b text", data, "format=csv", "quote='")
		add("a int4, b text", data, "format=csv", "force_not_null=(b)")
		add("a int4, b text", data, "format=csv", "force_null=(b)", "null=a")
		add("a int4, b text", data, "format=csv", "force_null=(b)", "force_not_null=(b)")
		add("a int4, b text", "a,b\n"+data, "format=csv", "header=match")
		add("a int4, b text", data, "format=csv", "encoding=latin1")
	}
	for _, data := range []string{"1,\\N\n\\N,\\N\n", "1,\"\\N\"\n2,b\n3,\\N\n"} {
		add("a int4, b text", data, "format=csv", "null=\\N")
	}
	for _, data := range []string{"1\t\xe4\xf6\n", "1\ta\n2\t\xff\\xe4\n", "1\ta\x00\n", "x\xe4\t1\n"} {
		// Not with sql_ascii: PostgreSQL lets bytes in that are not UTF-8 then, which
		// no reader of a Paimon table could use.
		add("a int4, b text", data, "encoding=latin1")
	}
	rnd := rand.New(rand.NewPCG(7, 7))
	alphabet := []string{"1", "2", "a", "b", "\t", "\t", ",", ",", "\"", "\"", "\\", "\\N", "\\.", "\n", "\n", "\n", "\r", "\r\n", "ä", "''", "x", "\\t", " ", "\\\n"}
	for range 1200 {
		var sb strings.Builder
		for range 1 + rnd.IntN(14) {
			sb.WriteString(alphabet[rnd.IntN(len(alphabet))])
		}
		data := sb.String()
		cols := []string{"a text", "a text, b text", "a text, b text, c text"}[rnd.IntN(3)]
		switch rnd.IntN(5) {
		case 0, 1:
			add(cols, data)
		case 2, 3:
			add(cols, data, "format=csv")
		default:
			add(cols, data, "format=csv", "escape=\\", "null=a", "delimiter=\t")
		}
	}
	return out
}
