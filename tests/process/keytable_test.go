package process

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
)

// TestKeyTablesEverywhere writes key tables of every engine and bucket mode from
// two server processes, with Java Paimon taking part and compactions on every
// side: each row that was acknowledged counts once.
func TestKeyTablesEverywhere(t *testing.T) {
	wh := filepath.Join(t.TempDir(), "wh")
	servers := []*server{serve(t, wh), serve(t, wh)}
	c := servers[0].connect(t)
	run(t, c,
		// n counts the rows that were written.
		"create table counted (k int primary key, n bigint, hi int) with ('bucket' = '2', 'merge-engine' = 'aggregation', 'fields.n.aggregate-function' = 'sum', 'fields.hi.aggregate-function' = 'max')",
		"create table logged (k int primary key, n bigint, hi int) with ('bucket' = '2', 'merge-engine' = 'aggregation', 'fields.n.aggregate-function' = 'sum', 'fields.hi.aggregate-function' = 'max', 'changelog-producer' = 'lookup')",
		"create table marked (k int primary key, w int, n int) with ('bucket' = '2', 'deletion-vectors.enabled' = 'true')",
		"create table parted (k int primary key, a int, b int, c int, d int) with ('bucket' = '1', 'merge-engine' = 'partial-update', 'changelog-producer' = 'lookup')",
		"create table firsts (k int primary key, w int, n int) with ('bucket' = '2', 'merge-engine' = 'first-row')",
		"create table spread (k int primary key, w int, n int) with ('bucket' = '-1', 'dynamic-bucket.target-row-num' = '50')",
		"create table moving (k int, p text, w int, n int, primary key (k)) partitioned by (p) with ('bucket' = '-1')",
		"create table adding (k int primary key, n int) with ('bucket' = '1', 'deletion-vectors.enabled' = 'true')",
		"insert into adding select g, 0 from generate_series(0, 3) g")
	j := oracle.Maybe(t, wh)
	writers, commits := 4, 6
	if testkit.Factor() > 1 {
		writers, commits = 8, 25*testkit.Factor()
	}
	var byJava atomic.Int64
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		if j == nil {
			return
		}
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			for _, tab := range []string{"counted", "logged"} {
				if _, err := j.Try(map[string]any{"cmd": "write", "table": "default." + tab, "options": map[string]string{"write-only": "true"},
					"rows": []map[string]any{{"k": i % 10, "n": 1, "hi": -1}}}); err != nil {
					t.Errorf("java: %v", err)
					return
				}
			}
			byJava.Add(1)
			// A compaction that loses a race fails with Java.
			for _, tab := range []string{"counted", "logged", "marked", "parted", "firsts"} {
				mode := []string{"minor", "full"}[i%2]
				if _, err := j.Try(map[string]any{"cmd": "compact", "table": "default." + tab, "mode": mode}); err != nil {
					t.Logf("java: compaction of %s: %.150v", tab, err)
				}
			}
		}
	}()
	each(t, servers, writers, func(i int, c *pgx.Conn) {
		exec := func(q string) {
			for try := 0; ; try++ {
				_, err := c.Exec(context.Background(), q)
				if err == nil {
					return
				}
				if !retriable(err) || try > 100 {
					t.Errorf("%s: %v", q, err)
					return
				}
			}
		}
		for n := range commits {
			exec(fmt.Sprintf("insert into counted select g %% 10, 1, %d from generate_series(1, 20) g", n))
			exec(fmt.Sprintf("insert into logged select g %% 10, 1, %d from generate_series(1, 20) g", n))
			exec(fmt.Sprintf("insert into marked select g, %d, %d from generate_series(%d, %d) g", i, n, i*100, i*100+49))
			exec(fmt.Sprintf("insert into parted (k, %s) select g, %d from generate_series(0, 19) g", []string{"a", "b", "c", "d"}[i%4], n))
			exec(fmt.Sprintf("insert into firsts select g, %d, %d from generate_series(0, %d) g", i, n, n*10))
			exec(fmt.Sprintf("insert into spread select g, %d, %d from generate_series(%d, %d) g", i, n, n*5, n*5+60))
			exec(fmt.Sprintf("insert into moving select g, 'p' || %d, %d, %d from generate_series(%d, %d) g", n%3, i, n, i*20, i*20+19))
			exec(fmt.Sprintf("update adding set n = n + 1 where k = %d", (i+n)%4))
			if n%3 == i%3 {
				exec(fmt.Sprintf("call sys.compact('default.%s', compact_strategy => 'full')", []string{"counted", "logged", "marked", "spread"}[i%4]))
			}
		}
	})
	close(stop)
	<-done
	rowsOf := writers*commits*20 + int(byJava.Load())
	for _, w := range []struct{ q, want string }{
		{"select sum(n), count(*), max(hi) from counted", fmt.Sprintf("%d|10|%d", rowsOf, commits-1)},
		{"select sum(n), count(*), max(hi) from logged", fmt.Sprintf("%d|10|%d", rowsOf, commits-1)},
		{"select count(*), count(distinct k), min(n), max(n) from marked", fmt.Sprintf("%d|%d|%d|%d", writers*50, writers*50, commits-1, commits-1)},
		{"select count(*), min(a), max(a), min(b), max(b), min(c), max(c), min(d), max(d) from parted",
			fmt.Sprintf("20|%[1]d|%[1]d|%[1]d|%[1]d|%[1]d|%[1]d|%[1]d|%[1]d", commits-1)},
		{"select count(*), count(distinct k) from firsts", fmt.Sprintf("%[1]d|%[1]d", (commits-1)*10+1)},
		{"select count(*), count(distinct k) from spread", fmt.Sprintf("%[1]d|%[1]d", (commits-1)*5+61)},
		{"select count(*), count(distinct k), min(n), max(n) from moving", fmt.Sprintf("%d|%d|%d|%d", writers*20, writers*20, commits-1, commits-1)},
		{"select sum(n), count(*) from adding", fmt.Sprintf("%d|4", writers*commits)},
	} {
		if got := one(t, c, w.q); got != w.want {
			t.Errorf("%s: %s, want %s", w.q, got, w.want)
		}
	}
	tables := []string{"counted", "logged", "marked", "parted", "firsts", "spread", "moving", "adding"}
	for _, tab := range tables {
		run(t, c, "call sys.compact('default."+tab+"', compact_strategy => 'full')")
	}
	// What the changelog says is what there is.
	followed := one(t, c, fmt.Sprintf("select sum(case when rowkind in ('+I', '+U') then n else -n end) from paimon_incremental_query('logged$audit_log', 0, %s, 'changelog')",
		one(t, c, `select max(snapshot_id) from "logged$snapshots"`)))
	if followed != fmt.Sprint(rowsOf) {
		t.Errorf("the changelog adds up to %s, want %d", followed, rowsOf)
	}
	for _, s := range servers {
		s.stop(t)
	}
	if j == nil {
		return
	}
	for _, tab := range tables {
		j.Check(t, "default."+tab)
	}
	total := int64(0)
	for _, raw := range j.Rows(t, "default.counted", nil) {
		var r struct{ N int64 }
		if err := json.Unmarshal(raw, &r); err != nil {
			t.Fatal(err)
		}
		total += r.N
	}
	if total != int64(rowsOf) {
		t.Errorf("java counts %d rows, want %d", total, rowsOf)
	}
}
