// Package reports turns faults that users of lake engines and wire servers
// reported into tests. The tables under testdata were written by Java Paimon.
package reports

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/tests/testserver"
)

func connect(t *testing.T) (*testserver.Server, *pgx.Conn) {
	t.Helper()
	s := testserver.Start(t, "testdata/warehouse", nil)
	c, err := pgx.Connect(context.Background(), s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	if _, err := c.Exec(context.Background(), "SET search_path = reports"); err != nil {
		t.Fatal(err)
	}
	return s, c
}

// text runs a query by the simple protocol and returns its rows as
// tab-separated text, NULL spelled out.
func text(t *testing.T, c *pgx.Conn, sql string) []string {
	t.Helper()
	rs, err := c.PgConn().Exec(context.Background(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	out := []string{}
	for _, row := range rs[len(rs)-1].Rows {
		var f []string
		for _, v := range row {
			if v == nil {
				f = append(f, "NULL")
			} else {
				f = append(f, string(v))
			}
		}
		out = append(out, strings.Join(f, "\t"))
	}
	return out
}

func TestReads(t *testing.T) {
	_, c := connect(t)
	for _, x := range []struct {
		id, sql string
		want    []string
	}{
		// A reader that returns the union of a key table's files.
		{"A01", "SELECT * FROM a01 ORDER BY id", []string{"1\tnew", "2\ttwo"}},
		{"A01", "SELECT count(*) FROM a01", []string{"2"}},
		{"A01", "SELECT id FROM a01 WHERE v = 'old'", []string{}},
		// Versions of one key packed into different splits.
		{"A02", "SELECT * FROM a02", []string{"1\t30"}},
		{"A02", "SET paimon.workers = 1; SELECT * FROM a02", []string{"1\t30"}},
		{"A02", "SET paimon.workers = 8; SELECT * FROM a02", []string{"1\t30"}},
		{"A02", "RESET paimon.workers; SELECT * FROM a02_levels ORDER BY id", []string{
			"0\t0", "1\t101", "2\t202", "3\t303", "4\t404", "5\t505", "6\t606", "7\t706", "8\t806", "9\t906", "10\t1006", "11\t1106",
		}},
		// A predicate on a value column that prunes before the merge.
		{"A03", "SELECT * FROM a03 WHERE v = 'a'", []string{}},
		{"A03", "SELECT * FROM a03 WHERE v = 'b'", []string{"1\tb"}},
		// Key columns in the order of the table instead of the key.
		{"A04", "SELECT * FROM a04 ORDER BY ord", []string{"4\t10\t1", "3\t20\t1", "2\t30\t99", "1\t40\t1"}},
		{"A04", "SELECT count(*), sum(amt) FROM a04", []string{"4\t102"}},
		{"A04", "SELECT count(*), count(DISTINCT (c, a, b)), sum(v) FROM a04_many", []string{"56\t56\t96676"}},
		// NULL, blank and special partition values.
		{"A07", "SELECT id, p FROM a07 ORDER BY id", []string{"1\tNULL", "2\t", "3\ta b/c=d%e", "4\t中", "5\t  "}},
		{"A07", "SELECT id FROM a07 WHERE p IS NULL", []string{"1"}},
		{"A07", "SELECT id FROM a07 WHERE p = ''", []string{"2"}},
		{"A07", "SELECT id FROM a07 WHERE p = 'a b/c=d%e'", []string{"3"}},
		{"A07", "SELECT id FROM a07 WHERE p > 'b' ORDER BY id", []string{"4"}},
		{"A07", "SELECT id, p FROM a07_hive ORDER BY id", []string{"1\tNULL", "2\t", "3\ta b/c=d%e", "4\t中", "5\t  "}},
		{"A07", "SELECT id FROM a07_hive WHERE p IS NULL", []string{"1"}},
		{"A07", "SELECT id, d, n FROM a07_types WHERE d < '1970-01-01' OR n IS NULL ORDER BY id", []string{"1\t2024-01-01\tNULL", "3\t1969-12-31\t-1"}},
		// Timestamps without zone never shift, those with zone do.
		{"A08", "SET TimeZone = 'UTC'; SELECT n, z FROM a08 ORDER BY id", []string{
			"2024-01-01 00:00:00\t2023-12-31 16:00:00+00", "1900-01-01 00:00:00\t1900-01-01 00:00:00+00",
			"1969-12-31 23:59:59.999\t1969-12-31 23:59:59.999999+00",
		}},
		{"A08", "SET TimeZone = 'Asia/Shanghai'; SELECT n, z FROM a08 ORDER BY id", []string{
			"2024-01-01 00:00:00\t2024-01-01 00:00:00+08", "1900-01-01 00:00:00\t1900-01-01 08:05:43+08:05:43",
			"1969-12-31 23:59:59.999\t1970-01-01 07:59:59.999999+08",
		}},
		{"A08", "SELECT id FROM a08 WHERE z = '2024-01-01 00:00:00'", []string{"1"}},
		{"A08", "RESET TimeZone; SELECT n FROM a08_nanos ORDER BY id", []string{"2024-01-01 00:00:00.123456", "1969-12-31 23:59:59.999999"}},
		// Decimals keep the column's scale at any precision.
		{"A09", "SELECT k, d, e FROM a09 ORDER BY k", []string{
			"1\t1.2300\t1.5000000000", "2\t1.2340\t-0.0000000001", "3\t999999.9999\t9999999999999999999999999999.9999999999",
			"4\tNULL\t-9999999999999999999999999999.9999999999",
		}},
		{"A09", "SELECT k FROM a09 WHERE d = 1.23", []string{"1"}},
		{"A09", "SELECT k FROM a09 WHERE e < 0 ORDER BY k", []string{"2", "4"}},
	} {
		t.Run(x.id, func(t *testing.T) {
			if got := text(t, c, x.sql); !reflect.DeepEqual(got, x.want) {
				t.Errorf("%s\n got %q\nwant %q", x.sql, got, x.want)
			}
		})
	}
}

// TestA02Parallel reads with many worker counts: the rows must not depend on them.
func TestA02Parallel(t *testing.T) {
	_, c := connect(t)
	want := text(t, c, "SELECT * FROM a04_many ORDER BY 1, 2, 3")
	for _, n := range []int{1, 2, 3, 8} {
		got := text(t, c, fmt.Sprintf("SET paimon.workers = %d; SELECT * FROM a04_many ORDER BY 1, 2, 3", n))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d workers: %d rows, want %d", n, len(got), len(want))
		}
	}
}

// TestA17 reads every type in text and in binary: both must say the same, for
// every way to ask for formats, and the sixth execution what the first said.
func TestA17(t *testing.T) {
	_, c := connect(t)
	ctx := context.Background()
	pc := c.PgConn()
	const sql = "SELECT * FROM a17 ORDER BY id"
	m := pgtype.NewMap()
	plain := pc.ExecParams(ctx, sql, nil, nil, nil, nil).Read()
	if plain.Err != nil {
		t.Fatal(plain.Err)
	}
	if len(plain.Rows) != 3 || len(plain.FieldDescriptions) != 23 {
		t.Fatalf("%d rows, %d columns", len(plain.Rows), len(plain.FieldDescriptions))
	}
	scan := func(oid uint32, format int16, v []byte) any {
		t.Helper()
		typ, ok := m.TypeForOID(oid)
		if !ok {
			t.Fatalf("type %d is unknown to the client", oid)
		}
		x, err := typ.Codec.DecodeValue(m, oid, format, v)
		if err != nil {
			t.Fatalf("oid %d format %d value %q: %v", oid, format, v, err)
		}
		if ts, ok := x.(time.Time); ok {
			return ts.UTC().Format(time.RFC3339Nano)
		}
		if n, ok := x.(pgtype.Numeric); ok {
			s, _ := n.MarshalJSON()
			return string(s)
		}
		return fmt.Sprintf("%#v", x)
	}
	check := func(name string, r *pgconn.Result) {
		t.Helper()
		if r.Err != nil {
			t.Fatalf("%s: %v", name, r.Err)
		}
		for i, row := range r.Rows {
			for j, v := range row {
				f := r.FieldDescriptions[j]
				w := plain.Rows[i][j]
				if (v == nil) != (w == nil) {
					t.Errorf("%s: row %d %s: NULL differs", name, i, f.Name)
					continue
				}
				if v == nil {
					continue
				}
				got, want := scan(f.DataTypeOID, f.Format, v), scan(f.DataTypeOID, 0, w)
				if got != want {
					t.Errorf("%s: row %d %s: binary %v, text %v", name, i, f.Name, got, want)
				}
			}
		}
	}
	all := make([]int16, 23)
	mixed := make([]int16, 23)
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range all {
		all[i] = 1
		mixed[i] = int16(r.IntN(2))
	}
	check("text []", pc.ExecParams(ctx, sql, nil, nil, nil, []int16{0}).Read())
	check("binary [1]", pc.ExecParams(ctx, sql, nil, nil, nil, []int16{1}).Read())
	check("binary each", pc.ExecParams(ctx, sql, nil, nil, nil, all).Read())
	check("mixed", pc.ExecParams(ctx, sql, nil, nil, nil, mixed).Read())
	if _, err := pc.Prepare(ctx, "s", sql, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 7 {
		check(fmt.Sprintf("execution %d", i+1), pc.ExecPrepared(ctx, "s", nil, nil, all).Read())
	}
	for _, q := range []string{"SELECT count(*), sum(i4), avg(i4), sum(i8), sum(n), min(d), max(ts) FROM a17"} {
		a, b := pc.ExecParams(ctx, q, nil, nil, nil, nil).Read(), pc.ExecParams(ctx, q, nil, nil, nil, []int16{1}).Read()
		if a.Err != nil || b.Err != nil {
			t.Fatal(a.Err, b.Err)
		}
		for j := range a.Rows[0] {
			o := a.FieldDescriptions[j].DataTypeOID
			if x, y := scan(o, 0, a.Rows[0][j]), scan(o, 1, b.Rows[0][j]); x != y {
				t.Errorf("%s column %d: text %v, binary %v", q, j+1, x, y)
			}
		}
	}
}

// TestA18 sends parameters as drivers do: declared narrower than the column,
// NULL without a type, text without a type.
func TestA18(t *testing.T) {
	_, c := connect(t)
	ctx := context.Background()
	pc := c.PgConn()
	int4 := []byte{0, 0, 0, 23}
	rows := func(r *pgconn.Result) string {
		t.Helper()
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		var out []string
		for _, row := range r.Rows {
			for _, v := range row {
				out = append(out, string(v))
			}
		}
		return strings.Join(out, ",")
	}
	// An int4 parameter against a bigint column, beside a NULL of type 0.
	got := rows(pc.ExecParams(ctx, "SELECT a FROM a18 WHERE a = $1 AND ($2 IS NULL OR b = $2) AND f = $3",
		[][]byte{int4, nil, {1}}, []uint32{23, 0, 16}, []int16{1, 1, 1}, nil).Read())
	if got != "23" {
		t.Errorf("int4 against bigint: %q, want 23", got)
	}
	// An untyped text parameter against a timestamp.
	got = rows(pc.ExecParams(ctx, "SELECT a FROM a18 WHERE ts > $1", [][]byte{[]byte("2024-06-01 00:00:00")}, []uint32{0}, nil, nil).Read())
	if got != "5000000000" {
		t.Errorf("untyped text against timestamp: %q", got)
	}
	// An int8 parameter beyond int4 against an int4 column.
	got = rows(pc.ExecParams(ctx, "SELECT count(*) FROM a18 WHERE b < $1", [][]byte{{0, 0, 0, 1, 0, 0, 0, 0}}, []uint32{20}, []int16{1}, nil).Read())
	if got != "1" {
		t.Errorf("int8 against int4: %q, want 1", got)
	}
	// The length of a binary value that does not fit its declared type.
	err := pc.ExecParams(ctx, "SELECT a FROM a18 WHERE a = $1", [][]byte{{1, 2, 3}}, []uint32{23}, []int16{1}, nil).Read().Err
	if code := sqlState(err); code != "22P03" && code != "08P01" {
		t.Errorf("3 bytes for an int4: %v, want 22P03 or 08P01", err)
	}
	// A parameter that nothing determines.
	err = pc.ExecParams(ctx, "SELECT count(*) FROM a18 WHERE $1 IS NULL", [][]byte{nil}, nil, nil, nil).Read().Err
	if code := sqlState(err); code != "42P18" {
		t.Errorf("undetermined parameter: %v, want 42P18", err)
	}
}

func sqlState(err error) string {
	var e *pgconn.PgError
	if pe, ok := err.(*pgconn.PgError); ok { //nolint:errorlint // pgconn returns it bare
		e = pe
	}
	if e == nil {
		return ""
	}
	return e.Code
}

// TestA19 pages through portals with raw frames: a page is n rows and
// PortalSuspended, never both ends at once, and the portal lives on.
func TestA19(t *testing.T) {
	_, c := connect(t)
	fe := c.PgConn().Frontend()
	send := func(ms ...pgproto3.FrontendMessage) {
		t.Helper()
		for _, m := range ms {
			fe.Send(m)
		}
		if err := fe.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	// page reads up to the end of one Execute.
	page := func() (rows int, end string) {
		t.Helper()
		for {
			m, err := fe.Receive()
			if err != nil {
				t.Fatal(err)
			}
			switch m := m.(type) {
			case *pgproto3.DataRow:
				rows++
			case *pgproto3.PortalSuspended:
				return rows, "suspended"
			case *pgproto3.CommandComplete:
				return rows, string(m.CommandTag)
			case *pgproto3.ErrorResponse:
				t.Fatalf("%s %s", m.Code, m.Message)
			}
		}
	}
	ready := func() {
		t.Helper()
		for {
			m, err := fe.Receive()
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := m.(*pgproto3.ReadyForQuery); ok {
				return
			}
		}
	}
	for _, portal := range []string{"", "c1"} {
		send(&pgproto3.Query{String: "BEGIN"})
		ready()
		send(&pgproto3.Parse{Query: "SELECT id, v FROM a19 ORDER BY id"}, &pgproto3.Bind{DestinationPortal: portal},
			&pgproto3.Execute{Portal: portal, MaxRows: 10}, &pgproto3.Flush{})
		total := 0
		n, end := page()
		total += n
		if n != 10 || end != "suspended" {
			t.Fatalf("portal %q: first page %d rows, %s", portal, n, end)
		}
		for range 5 {
			send(&pgproto3.Execute{Portal: portal, MaxRows: 7}, &pgproto3.Flush{})
			n, end = page()
			total += n
			if n != 7 || end != "suspended" {
				t.Fatalf("portal %q: page of %d rows, %s", portal, n, end)
			}
			if portal != "" { // a named portal survives Sync inside the block
				send(&pgproto3.Sync{})
				ready()
			}
		}
		send(&pgproto3.Execute{Portal: portal, MaxRows: 7}, &pgproto3.Sync{})
		n, end = page()
		total += n
		if n != 5 || end != "SELECT 5" || total != 50 {
			t.Fatalf("portal %q: last page %d rows, %s, %d in all", portal, n, end, total)
		}
		ready()
		send(&pgproto3.Query{String: "COMMIT"})
		ready()
	}
	// Exactly the rest: still suspended, then an empty page.
	send(&pgproto3.Parse{Query: "SELECT id FROM a19"}, &pgproto3.Bind{}, &pgproto3.Execute{MaxRows: 50}, &pgproto3.Execute{MaxRows: 50}, &pgproto3.Sync{})
	if n, end := page(); n != 50 || end != "suspended" {
		t.Errorf("exactly all rows: %d, %s", n, end)
	}
	if n, end := page(); n != 0 || end != "SELECT 0" {
		t.Errorf("after all rows: %d, %s", n, end)
	}
	ready()
}
