package wire

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paimon-sql/paimon-sql/tests/testserver"
)

// TestLookupParameters looks rows up by a key of each type that comes as a parameter,
// in binary, in text, and in an array, and compares with what a scan finds.
func TestLookupParameters(t *testing.T) {
	ctx := context.Background()
	s := testserver.Serve(t, t.TempDir(), nil)
	c, err := pgx.Connect(ctx, s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx) //nolint:errcheck // the test's end
	day := time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)
	num := func(s string) (n pgtype.Numeric) {
		if err := n.Scan(s); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i, k := range []struct {
		typ  string
		vals []any // the first two are in the table
		text string
	}{
		{"boolean", []any{true, false}, "false"},
		{"smallint", []any{int16(1), int16(-2), int16(3)}, "-2"},
		{"bigint", []any{int64(1), int64(math.MinInt64), int64(3)}, "-9223372036854775808"},
		{"real", []any{float32(1.5), float32(0), float32(math.NaN()), float32(math.Copysign(0, -1))}, "-0"},
		{"double precision", []any{1.5, math.NaN(), math.Copysign(0, -1), math.Inf(1)}, "nan"},
		{"numeric(12,4)", []any{num("1.5"), num("-2"), num("1.50001")}, "-2.00"},
		{"numeric", []any{num("1.5"), num("-2"), num("1.50001")}, "-2.00"},
		{"char(6)", []any{"a", "bc ", "c"}, "bc"},
		{"text", []any{"a", "", "c"}, ""},
		{"varchar(5)", []any{"a", "abcde", "b"}, "abcde"},
		{"bytea", []any{[]byte{0}, []byte{}, []byte{0, 1}}, `\x`},
		{"date", []any{day, day.AddDate(-3000, 0, 0), day.AddDate(0, 0, 1)}, "0977-02-29 BC"},
		{"time", []any{pgtype.Time{Microseconds: 36e9, Valid: true}, pgtype.Time{Microseconds: 0, Valid: true}, pgtype.Time{Microseconds: 36e9 + 1, Valid: true}}, "00:00"},
		{"timestamp", []any{day, day.Add(time.Microsecond), day.Add(time.Hour)}, "2024-02-29 00:00:00.000001"},
		{"timestamp(3)", []any{day, day.Add(time.Millisecond), day.Add(time.Microsecond)}, "2024-02-29 00:00:00.001"},
		{"timestamptz", []any{day, day.Add(time.Microsecond), day.Add(time.Hour)}, "2024-02-29 01:00:00.000001+01"},
		{"uuid", []any{[16]byte{0xa0, 15: 1}, [16]byte{}, [16]byte{1}}, "{00000000000000000000000000000000}"},
	} {
		t.Run(k.typ, func(t *testing.T) {
			name := fmt.Sprintf("t%d", i)
			if _, err := c.Exec(ctx, "CREATE TABLE "+name+" (k "+k.typ+" PRIMARY KEY, v int) WITH (bucket = 3)"); err != nil {
				t.Fatal(err)
			}
			for v := range 2 {
				if _, err := c.Exec(ctx, "INSERT INTO "+name+" VALUES ($1, $2)", k.vals[v], v); err != nil {
					t.Fatal(err)
				}
			}
			rows := func(sql string, args ...any) []int32 {
				t.Helper()
				r, err := c.Query(ctx, sql, args...)
				if err != nil {
					t.Fatal(sql, err)
				}
				out, err := pgx.CollectRows(r, pgx.RowTo[int32])
				if err != nil {
					t.Fatal(sql, args, err)
				}
				return out
			}
			equal := func(got, want []int32, what string, v any) {
				t.Helper()
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s of %v: %v, a scan has %v", what, v, got, want)
				}
			}
			var plan string
			if err := c.QueryRow(ctx, "EXPLAIN SELECT v FROM "+name+" WHERE k = $1", k.vals[0]).Scan(&plan); err != nil || len(plan) < 10 || plan[:10] != "Index Scan" {
				t.Errorf("plan %q, %v", plan, err)
			}
			found := 0
			for _, v := range k.vals {
				want := rows("SELECT v FROM "+name+" WHERE (k = $1) IS NOT FALSE ORDER BY v", v)
				found += len(want)
				equal(rows("SELECT v FROM "+name+" WHERE k = $1", v), want, "binary", v)
				equal(rows("SELECT v FROM "+name+" WHERE k IN ($1, $1)", v), want, "a list", v)
				tag, err := c.Exec(ctx, "INSERT INTO "+name+" VALUES ($1, 9) ON CONFLICT (k) DO UPDATE SET v = "+name+".v", v)
				if err != nil || tag.RowsAffected() != 1 {
					t.Fatal(tag, err)
				}
				if len(want) == 1 {
					equal(rows("SELECT v FROM "+name+" WHERE k = $1", v), want, "after a conflict with", v)
				}
			}
			if found < 2 {
				t.Errorf("scans found %d rows", found)
			}
			r := c.PgConn().ExecParams(ctx, "SELECT v FROM "+name+" WHERE k = $1", [][]byte{[]byte(k.text)}, nil, nil, nil).Read()
			if r.Err != nil || len(r.Rows) != 1 || string(r.Rows[0][0]) != "1" {
				t.Errorf("text %q: %q, %v", k.text, r.Rows, r.Err)
			}
		})
	}
}
