package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/pgwire"
)

// call runs the program with an environment of its own.
func call(t *testing.T, in string, env map[string]string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	a := &app{in: strings.NewReader(in), out: &o, err: &e, env: func(k string) string { return env[k] }}
	code = a.main(context.Background(), args)
	return code, o.String(), e.String()
}

func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		args []string
		env  map[string]string
		code int
		say  string
	}{
		{nil, nil, 2, "usage: paimon-sql"},
		{[]string{"help"}, nil, 0, "usage: paimon-sql"},
		{[]string{"help", "serve"}, nil, 0, "--http-listen"},
		{[]string{"version"}, nil, 0, "paimon-sql dev"},
		{[]string{"fly"}, nil, 2, `unknown command "fly"`},
		{[]string{"serve"}, nil, 2, "--warehouse is missing"},
		{[]string{"serve", "--nope"}, nil, 2, "flag provided but not defined: --nope; paimon-sql serve --help lists the flags"},
		{[]string{"serve", "--warehouse", "mem://", "--cpus", "-1"}, nil, 2, "--cpus: -1 is negative"},
		{[]string{"serve", "--warehouse", "mem://", "--cpus", "many"}, nil, 2, `invalid value "many" for flag --cpus`},
		{[]string{"serve", "--warehouse", "mem://", "--listen", "5432"}, nil, 2, `--listen: "5432" is not host:port`},
		{[]string{"serve", "--warehouse", "mem://", "--listen", "127.0.0.1:99999"}, nil, 2, `--listen: "99999" is not a port`},
		{[]string{"serve", "--warehouse", "mem://", "--temp-dir", "/no/such/dir"}, nil, 2, "--temp-dir: "},
		{[]string{"serve", "--warehouse", "/no/such/dir", "--listen", "127.0.0.1:0"}, nil, 2, "--warehouse: /no/such/dir does not exist"},
		{[]string{"sql", "--warehouse", "/no/such/dir", "-c", "SELECT 1"}, nil, 2, "--warehouse: /no/such/dir does not exist"},
		{[]string{"compact", "--table", "a.b"}, nil, 2, "--warehouse is missing"},
		{[]string{"serve", "--help"}, nil, 0, "--http-listen"},
		{[]string{"serve", "--warehouse", "mem://", "extra"}, nil, 2, `unexpected argument "extra"`},
		{[]string{"serve", "--warehouse", "mem://", "--listen", "0.0.0.0:0"}, nil, 2, "set PAIMON_SQL_PASSWORD or PAIMON_SQL_PASSWORD_FILE, or listen on 127.0.0.1"},
		{[]string{"serve", "--listen", ":0"}, map[string]string{"PAIMON_SQL_WAREHOUSE": "mem://"}, 2, "refusing to listen on :0 without a password"},
		{[]string{"serve", "--warehouse", "mem://", "--memory", "lots"}, nil, 2, `"lots" is not a size`},
		{[]string{"serve", "--warehouse", "mem://", "--tls-cert", "x"}, nil, 2, "--tls-cert and --tls-key go together"},
		{[]string{"serve", "--warehouse", "mem://", "--tls-required"}, nil, 2, "--tls-required needs"},
		{[]string{"serve", "--warehouse", "mem://", "--max-connections", "x"}, nil, 2, "invalid value"},
		{[]string{"serve", "--warehouse", "mem://"}, map[string]string{"PAIMON_SQL_MAX_CONNECTIONS": "x"}, 2, "environment variable PAIMON_SQL_MAX_CONNECTIONS"},
		{[]string{"sql"}, nil, 2, "--warehouse or --dsn is missing"},
		{[]string{"sql", "--warehouse", "a", "--dsn", "b"}, nil, 2, "exclude each other"},
		{[]string{"sql", "--warehouse", "mem://", "--format", "xml"}, nil, 2, `"xml" is none of table`},
		{[]string{"sql", "--warehouse", "mem://", "--set", "x"}, nil, 2, "not name=value"},
		{[]string{"sql", "--warehouse", "mem://", "-f", "/no/such/file"}, nil, 2, "no such file"},
		{[]string{"compact", "--warehouse", "mem://", "--table", "a.b"}, nil, 1, "does not exist"},
	} {
		code, out, errs := call(t, "", tt.env, tt.args...)
		if code != tt.code || !strings.Contains(out+errs, tt.say) {
			t.Errorf("%v: code %d, %q, want %d and %q", tt.args, code, out+errs, tt.code, tt.say)
		}
	}
}

func TestFlagOrder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("listen: file:1\nmax_connections: 7\ntemp-dir: /file\ninsert_mode: strict\nsettings:\n  jit: on\n  work_mem: 5MB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"PAIMON_SQL_LISTEN": "env:1", "PAIMON_SQL_TEMP_DIR": "/env"}
	a := &app{err: &bytes.Buffer{}, env: func(k string) string { return env[k] }}
	fs := newFlags(a, "serve")
	fs.String("listen", "default:1", "")
	fs.String("config", "", "")
	fs.String("temp-dir", "", "")
	fs.Int("max-connections", 1, "")
	fs.String("database", "dflt", "")
	if err := fs.parse([]string{"--config", file, "--listen", "flag:1"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"listen": "flag:1", "temp-dir": "/env", "max-connections": "7", "database": "dflt"} {
		if got := fs.value(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	set, err := fs.settings()
	if err != nil || set["jit"] != "on" || set["work_mem"] != "5MB" || set["paimon.insert_mode"] != "strict" {
		t.Errorf("settings %v, %v", set, err)
	}
	if err := os.WriteFile(file, []byte("lisen: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := newServeLike(a).parse([]string{"--config", file}); err == nil || !strings.Contains(err.Error(), `unknown key "lisen"`) {
		t.Errorf("unknown key: %v", err)
	}
}

func newServeLike(a *app) *flags {
	fs := newFlags(a, "serve")
	fs.String("config", "", "")
	return fs
}

func TestSizes(t *testing.T) {
	for in, want := range map[string]int64{"4GB": 4 << 30, "512mb": 512 << 20, "1.5 GB": 3 << 29, "1024": 1024, "64kB": 64 << 10} {
		if got, err := sizeValue(in); err != nil || got != want {
			t.Errorf("%s: %d, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "GB", "-1GB", "4 apples", "9999999999TB"} {
		if _, err := sizeValue(in); err == nil {
			t.Errorf("%q is a size", in)
		}
	}
}

func TestSplitStatements(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{"select 1; select 2", []string{"select 1;", " select 2"}},
		{"select ';' ; -- a;b\n select E'\\';' ;", []string{"select ';' ;", " -- a;b\n select E'\\';' ;"}},
		{"/* ; /* ; */ ; */ select \"a;b\";;;", []string{"/* ; /* ; */ ; */ select \"a;b\";"}},
		{"do $x$ a;b $$ c; $x$; select $1;", []string{"do $x$ a;b $$ c; $x$;", " select $1;"}},
		{"-- nothing", nil},
		{" ; ", nil},
		{"select 'it''s;'", []string{"select 'it''s;'"}},
	} {
		if got := splitStatements(tt.in); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", tt.want) {
			t.Errorf("%q: %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestPosition(t *testing.T) {
	line, col, n := position("select é,\n  nope from t", 13)
	if line != "  nope from t" || col != 2 || n != 2 {
		t.Errorf("%q %d %d", line, col, n)
	}
}

// printed runs a printer over two columns and rows of text.
func printed(t *testing.T, format string) string {
	t.Helper()
	var b bytes.Buffer
	p, err := newPrinter(format, &b)
	if err != nil {
		t.Fatal(err)
	}
	cols := []engine.Column{{Name: "n", Type: types.Of(types.Int4)}, {Name: `te|"x`, Type: types.Of(types.Text)}}
	batch := &vec.Batch{N: 3, Cols: nil}
	batch.Cols = append(batch.Cols, vec.FromDatums(cols[0].Type, []types.Datum{int64(1), int64(-20), nil}),
		vec.FromDatums(cols[1].Type, []types.Datum{"a,\"b\"|c", nil, "東\n京"}))
	steps := []error{
		p.begin([]column{{"n", true}, {`te|"x`, false}}),
		p.block(arrowBlock(cols, batch, nil0{})),
		p.end("SELECT 3", true),
		p.end("SET", false),
		p.close(),
	}
	for _, err := range steps {
		if err != nil {
			t.Fatal(err)
		}
	}
	switch p := p.(type) {
	case *tablePrinter:
		p.w.Flush()
	case *csvPrinter:
		p.w.Flush()
	case *jsonPrinter:
		p.w.Flush()
	}
	return b.String()
}

func TestFormats(t *testing.T) {
	for format, want := range map[string]string{
		"table":    "  n  |  te|\"x  \n-----+---------\n   1 | a,\"b\"|c\n -20 | \n     | 東     +\n     | 京\n(3 rows)\n\nSET\n",
		"csv":      "n,\"te|\"\"x\"\n1,\"a,\"\"b\"\"|c\"\n-20,\n,\"東\n京\"\n",
		"jsonl":    `{"n":1,"te|\"x":"a,\"b\"|c"}` + "\n" + `{"n":-20,"te|\"x":null}` + "\n" + `{"n":null,"te|\"x":"東\n京"}` + "\n",
		"json":     "[\n" + `{"n":1,"te|\"x":"a,\"b\"|c"},` + "\n" + `{"n":-20,"te|\"x":null},` + "\n" + `{"n":null,"te|\"x":"東\n京"}` + "\n]\n",
		"markdown": "|   n | te\\|\"x    |\n| --: | --------- |\n|   1 | a,\"b\"\\|c |\n| -20 |           |\n|     | 東<br>京  |\n\n",
	} {
		if got := printed(t, format); got != want && format != "markdown" {
			t.Errorf("%s:\n%s\nwant\n%s", format, got, want)
		} else if format == "markdown" && strings.Count(got, "\n") != 6 {
			t.Errorf("markdown:\n%s", got)
		}
	}
}

func TestJSONValues(t *testing.T) {
	row := types.Type{Kind: types.Row, Fields: []types.Field{{Name: "x", Type: types.Of(types.Int4)}, {Name: "y", Type: types.Of(types.Text)}}}
	nanos := types.Of(types.TimestampTZ)
	nanos.Prec = 9
	for _, tt := range []struct {
		t    types.Type
		d    types.Datum
		want string
	}{
		{types.Of(types.Bool), true, "true"},
		{types.Of(types.Int8), int64(-9223372036854775808), "-9223372036854775808"},
		{types.Of(types.Float8), 0.1, "0.1"},
		{types.Of(types.Float4), float64(float32(1.0616909)), "1.0616909"},
		{types.Of(types.Text), "a\"\\\n\x01é", `"a\"\\\n\u0001é"`},
		{types.Of(types.Bytea), []byte{0, 0xab}, `"00ab"`},
		{types.Of(types.Date), int64(-719162), `"0001-01-01"`},
		{types.Of(types.Time), int64(3723004000), `"01:02:03.004"`},
		{types.Of(types.Timestamp), int64(-1), `"1969-12-31T23:59:59.999999"`},
		{types.Of(types.TimestampTZ), int64(0), `"1970-01-01T00:00:00Z"`},
		{nanos, int64(1500000000), `"1970-01-01T00:00:01.5Z"`},
		{types.ArrayOf(types.Of(types.Int4)), []types.Datum{int64(1), nil}, "[1,null]"},
		{types.MapOf(types.Of(types.Text), types.Of(types.Int4)), []types.KV{{K: "b", V: int64(1)}, {K: "a", V: nil}}, `[["a",null],["b",1]]`},
		{row, []types.Datum{int64(1), nil}, `{"x":1,"y":null}`},
		{types.Of(types.JSONB), `{"a": 1}`, `{"a": 1}`},
	} {
		got := string(jsonAppender(tt.t, vec.FromDatums(tt.t, []types.Datum{tt.d}))(nil, 0))
		if got != tt.want {
			t.Errorf("%v of %s: %s, want %s", tt.d, tt.t, got, tt.want)
		}
	}
}

func TestWireJSON(t *testing.T) {
	for _, tt := range []struct {
		oid      uint32
		in, want string
	}{
		{16, "t", "true"}, {20, "5", "5"}, {1700, "1.50", `"1.50"`}, {701, "NaN", `"NaN"`}, {25, "x", `"x"`}, {17, `\xab`, `"ab"`},
		{1114, "2024-01-02 03:04:05", `"2024-01-02T03:04:05"`}, {1184, "2024-01-02 03:04:05.5+02", `"2024-01-02T01:04:05.5Z"`},
		{3802, `{"a": 1}`, `{"a": 1}`}, {1007, "{1,NULL}", "[1,null]"},
	} {
		if got := string(appendWireJSON(nil, tt.oid, []byte(tt.in))); got != tt.want {
			t.Errorf("%d %s: %s, want %s", tt.oid, tt.in, got, tt.want)
		}
	}
}

// serveOn serves an empty warehouse with a password and returns its address.
func serveOn(t *testing.T, password string) string {
	t.Helper()
	e, err := engine.Open(context.Background(), engine.Config{Warehouse: "mem://", AnyDatabase: password == ""})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a, err := newAuth(password, "", false)
	if err != nil {
		t.Fatal(err)
	}
	s := pgwire.NewServer(pgwire.Config{Backend: backend{e}, Auth: a})
	go s.Serve(l) //nolint:errcheck // ends with the test
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		s.Shutdown(ctx) //nolint:errcheck // the engine closes anyway
		e.Close()       //nolint:errcheck // ends with the test
	})
	return l.Addr().String()
}

func TestSCRAM(t *testing.T) {
	addr := serveOn(t, "s3cret é")
	for _, tt := range []struct{ dsn, code string }{
		{"postgres://paimon:s3cret%20%C3%A9@" + addr + "/paimon?sslmode=disable", ""},
		{"postgres://paimon:wrong@" + addr + "/paimon?sslmode=disable", "28P01"},
		{"postgres://nobody:s3cret@" + addr + "/paimon?sslmode=disable", "28P01"},
		{"postgres://paimon:s3cret%20%C3%A9@" + addr + "/nodb?sslmode=disable", "3D000"},
	} {
		c, err := pgconn.Connect(context.Background(), tt.dsn)
		if tt.code == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.dsn, err)
				continue
			}
			c.Close(context.Background()) //nolint:errcheck // ends with the test
			continue
		}
		if pe := asServerError(err); pe == nil || pe.Code.String() != tt.code {
			t.Errorf("%s: %v, want %s", tt.dsn, err, tt.code)
		}
	}
	code, out, errs := call(t, "", nil, "sql", "--dsn", "postgres://paimon:s3cret%20%C3%A9@"+addr+"/paimon?sslmode=disable",
		"-c", "SHOW server_version_num", "--format", "jsonl")
	if code != 0 || out != `{"server_version_num":"150000"}`+"\n" {
		t.Errorf("%d %q %q", code, out, errs)
	}
	for _, tt := range []struct {
		sql  string
		code int
		out  string
	}{
		{"COPY (SELECT 1, 'a,b') TO STDOUT CSV", 0, "1,\"a,b\"\nCOPY 1\n"},
		{"COPY (SELECT nope) TO STDOUT", 1, ""},
		{"COPY t FROM STDIN", 1, ""}, // nothing to read: it must not wait
		{"SELECT 1; COPY (SELECT 1) TO STDOUT", 1, ""},
	} {
		code, out, errs := call(t, "", nil, "sql", "--dsn", "postgres://paimon:s3cret%20%C3%A9@"+addr+"/paimon?sslmode=disable", "-c", tt.sql)
		if code != tt.code || out != tt.out {
			t.Errorf("%s: %d %q %q", tt.sql, code, out, errs)
		}
	}
}

// TestCheckWarehouse gives places near a warehouse: their user is told where it is.
func TestCheckWarehouse(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"empty", "w/sales.db/orders/schema", "w/sales.db/orders/snapshot"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		place string
		code  int
		say   string
	}{
		{"w", 0, ""},
		{"w/", 0, ""},
		{"file", 2, "file is not a directory"},
		{"new", 0, "the warehouse does not exist yet: its first table makes it"},
		{"gone/new", 2, "gone/new does not exist, nor does the directory above it"},
		{"w/sales.db", 2, "w/sales.db is a database; the warehouse is the directory that holds it"},
		{"w/sales.db/orders", 2, "orders is a table; the warehouse is the directory that holds its database"},
		{"empty", 0, ""},
		{"w/sales.db/..", 0, ""},
		{".", 0, "the warehouse holds no databases"},
	} {
		code, _, errs := call(t, "", nil, "sql", "--warehouse", dir+"/"+tt.place, "-c", "SHOW jit")
		if code != tt.code || !strings.Contains(errs, tt.say) || tt.say == "" && errs != "" {
			t.Errorf("%s: code %d, %q, want %d and %q", tt.place, code, errs, tt.code, tt.say)
		}
	}
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // a test
	code, _, errs := call(t, "", nil, "serve", "--warehouse", "mem://", "--listen", l.Addr().String())
	if want := l.Addr().String() + " is in use; choose another port"; code != 1 || !strings.Contains(errs, want) {
		t.Errorf("%d %q, want %q", code, errs, want)
	}
}

// TestHelp: what was asked for goes to standard output, what was not does not.
func TestHelp(t *testing.T) {
	if code, out, errs := call(t, "", nil, "sql", "--help"); code != 0 || errs != "" || !strings.Contains(out, "  --format ") {
		t.Errorf("%d %q %q", code, out, errs)
	}
	if code, out, errs := call(t, "", nil, "sql", "--formt", "csv"); code != 2 || out != "" || strings.Count(errs, "\n") != 1 {
		t.Errorf("%d %q %q", code, out, errs)
	}
}

func TestSQLCommand(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "default.db"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		in   string
		args []string
		code int
		out  string
		errs string
	}{
		{"", []string{"-c", "SHOW TimeZone", "--set", "timezone=Asia/Tokyo", "--format", "csv"}, 0, "TimeZone\nAsia/Tokyo\n", ""},
		{"", []string{"-c", "SHOW nope"}, 1, "", "ERROR:  42704: unrecognized configuration parameter \"nope\"\n"},
		{"SET jit = on;\nSHOW jit; SHOW\n bytea_output;\n\\q\nSHOW nope;", []string{"--format", "jsonl"}, 0, `{"jit":"on"}` + "\n" + `{"bytea_output":"hex"}` + "\n", ""},
		{"SHOW\n\\format csv\njit;\n", nil, 0, "jit\noff\n", ""},
		{"SHOW nope\n\\p\n\\r\nSHOW jit;\n", []string{"--format", "csv"}, 0, "SHOW nope\nQuery buffer reset (cleared).\njit\noff\n", ""},
		{"SELECT '\n\\q' AS a;\n", []string{"--format", "jsonl"}, 0, `{"a":"\n\\q"}` + "\n", ""},
		{"", []string{"-c", `\dn`, "--format", "csv"}, 0, "schema_name\npublic\n", ""},
		{"", []string{"-c", `\x`, "-c", "SELECT 1 AS a"}, 0, "Expanded display is on.\n-[ RECORD 1 ]\na | 1\n(1 row)\n\n", ""},
		{"", []string{"-c", `\zz`}, 1, "", "unknown command \\zz; \\? lists commands\n"},
		{"SHOW nope;\nSHOW jit;", nil, 1, "", "ERROR:  42704: unrecognized configuration parameter \"nope\"\n"},
		{"SET jit = off; SHOW jit;", []string{"-f", "-", "--format", "csv"}, 0, "jit\noff\n", ""},
		{"", []string{"-c", "SHOW x", "--set", "nope=1"}, 1, "", "paimon-sql sql: unrecognized configuration parameter \"nope\"\nSQLSTATE:  42704\n"},
	} {
		code, out, errs := call(t, tt.in, nil, append([]string{"sql", "--warehouse", dir}, tt.args...)...)
		if code != tt.code || out != tt.out || errs != tt.errs {
			t.Errorf("%v %q: %d %q %q", tt.args, tt.in, code, out, errs)
		}
	}
}
