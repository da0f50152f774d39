package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// TestJoinFilters: what the build side of a hash join holds rules files of the probe
// side out, for keys of every type that storage compares as SQL does, and never a row.
func TestJoinFilters(t *testing.T) {
	s := Open(t, fileio.NewMem(), "mem")
	run := func(q string) [][]string {
		t.Helper()
		rows, err := s.Try(t.Context(), q)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		return rows
	}
	for i, c := range []struct {
		typ, expr string // of i, 0 to 9999
		few, many bool   // whether files are ruled out by 3 and by 200 values
	}{
		{"int", "i", true, true},
		{"bigint", "i * 1000000007::bigint", true, true},
		{"decimal(12, 3)", "i / 8.0 - 300", true, true},
		{"decimal(30, 2)", "i * 123456789012345.25", true, true},
		{"double precision", "i / 16.0 - 100", true, true},
		{"real", "i / 16.0 - 100", true, true},
		{"text", "'k' || lpad(i::text, 6, '0')", true, true},
		{"varchar(20)", "'k' || lpad(i::text, 6, '0')", true, true}, // compared as text, by a cast
		{"char(12)", "'k' || lpad(i::text, 6, '0')", true, true},
		{"uuid", "(lpad(to_hex(i * 6), 4, '0') || repeat('5a', 14))::uuid", true, true},
		{"bytea", "convert_to('k' || lpad(i::text, 6, '0'), 'UTF8')", true, true},
		{"date", "date '2020-01-01' + i", true, true},
		{"timestamp(3)", "timestamp '2020-01-01' + i * interval '1 hour'", true, true},
		{"timestamptz(6)", "timestamptz '2020-01-01 00:00:00+00' + i * interval '1 hour'", true, true},
		{"boolean", "i >= 5000", false, false},
	} {
		t.Run(c.typ, func(t *testing.T) {
			p, b := fmt.Sprintf("p%d", i), fmt.Sprintf("b%d", i)
			run(fmt.Sprintf("create table %s (k %s, n int)", p, c.typ))
			for part := range 10 {
				run(fmt.Sprintf("insert into %s select (%s)::%s, i from generate_series(%d, %d) i", p, c.expr, c.typ, part*1000, part*1000+999))
			}
			run(fmt.Sprintf("insert into %s values (null, -1)", p))
			run(fmt.Sprintf("create table %s (k %s, m int)", b, c.typ))
			for _, n := range []int{3, 200} {
				run("delete from " + b)
				run(fmt.Sprintf("insert into %s select (%s)::%s, i from generate_series(4100, %d) i", b, c.expr, c.typ, 4100+n-1))
				run(fmt.Sprintf("insert into %s values (null, -2)", b))
				q := fmt.Sprintf("select count(*), sum(n) from %s p join %s b on p.k = b.k", p, b)
				got := run(q)
				run("set paimon.rule_prune_stats = off")
				run("set paimon.rule_prune_pages = off")
				run("set paimon.rule_prune_indexes = off")
				want := run(q)
				run("reset paimon.rule_prune_stats")
				run("reset paimon.rule_prune_pages")
				run("reset paimon.rule_prune_indexes")
				if !slices.EqualFunc(got, want, slices.Equal[[]string]) {
					t.Fatalf("%d values: %v, without pruning %v", n, got, want)
				}
				if c.typ != "boolean" && got[0][0] != fmt.Sprint(n) {
					t.Errorf("%d values: %v", n, got)
				}
				plan := ""
				for _, r := range run("explain (analyze, costs off, timing off, summary off) " + q) {
					plan += r[0] + "\n"
				}
				skips := strings.Contains(plan, "skipped by stats")
				if want := n == 3 && c.few || n == 200 && c.many; skips != want {
					t.Errorf("%d values: files are skipped: %v, want %v\n%s", n, skips, want, plan)
				}
			}
		})
	}
	// Zeros are equal, NaN equals itself.
	run("create table f (k double precision, n int)")
	run("insert into f values ('-0', 1), (1, 2)")
	run("insert into f values (0, 3), ('NaN', 4)")
	run("insert into f values (5, 5), (6, 6)")
	for build, want := range map[string]string{"0": "1 3", "'-0'": "1 3", "'NaN'": "4", "5": "5", "6), ('NaN'": "4 6"} {
		run("drop table if exists g")
		run("create table g (k double precision)")
		run("insert into g values (" + build + ")")
		var got []string
		for _, r := range run("select n from f join g on f.k = g.k order by n") {
			got = append(got, r[0])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("join with %s: %v, want %s", build, got, want)
		}
	}
}
