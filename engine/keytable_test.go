package engine

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// keyTables are tables (k, n, s) whose n counts, one for each way in which the rows
// of a key become one.
var keyTables = []struct{ name, options string }{
	{"deduplicate", ""},
	{"sequence", "'sequence.field'='k'"},
	{"vectors", "'deletion-vectors.enabled'='true'"},
	{"lookup changelog", "'changelog-producer'='lookup'"},
	{"input changelog", "'changelog-producer'='input'"},
	{"full compaction", "'changelog-producer'='full-compaction','full-compaction.delta-commits'='5'"},
	{"partial-update", "'merge-engine'='partial-update'"},
	{"sequence group", "'merge-engine'='partial-update','fields.k2.sequence-group'='n','changelog-producer'='lookup'"},
	{"sum", "'merge-engine'='aggregation','fields.n.aggregate-function'='sum'"},
	{"sum with a changelog", "'merge-engine'='aggregation','fields.n.aggregate-function'='sum','changelog-producer'='lookup'"},
	{"dynamic buckets", "'bucket'='-1'"},
}

// TestCountersPerEngine increments counters from sessions of two engines on one
// warehouse, with compactions in between: what was acknowledged is counted, once.
func TestCountersPerEngine(t *testing.T) {
	for _, kt := range keyTables {
		t.Run(kt.name, func(t *testing.T) {
			t.Parallel()
			io := fileio.NewMem()
			var ss []*Session
			for range 2 {
				e, err := Open(t.Context(), Config{FileIO: io, Warehouse: "mem://", Maintain: true})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = e.Close() })
				for range 2 {
					s, err := e.OpenSession(t.Context(), Startup{User: "u", Database: "paimon"})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(s.Close)
					ss = append(ss, s)
				}
			}
			with := "'num-sorted-run.compaction-trigger'='3','commit.max-retries'='100'"
			if kt.options != "" {
				with += "," + kt.options
			}
			runSQL(t, ss[0], "CREATE TABLE c (k int PRIMARY KEY, n bigint, k2 int, s text) WITH ("+with+")")
			runSQL(t, ss[0], "INSERT INTO c VALUES (1, 0, 1, 'a'), (2, 0, 1, 'b'), (3, 0, 1, NULL)")
			var acked [4]atomic.Int64
			var wg sync.WaitGroup
			for i, s := range ss {
				wg.Go(func() {
					for j := range 6 {
						k := 1 + (i+j)%3
						q := fmt.Sprintf("UPDATE c SET n = n + 1 WHERE k = %d", k)
						switch j % 3 {
						case 1:
							q = fmt.Sprintf("INSERT INTO c VALUES (%d, 1, 1, NULL) ON CONFLICT (k) DO UPDATE SET n = c.n + excluded.n", k)
						case 2:
							q = fmt.Sprintf("MERGE INTO c USING (VALUES (%d)) x (k) ON c.k = x.k WHEN MATCHED THEN UPDATE SET n = c.n + 1", k)
						}
						err := s.Query(t.Context(), q, &texts{})
						var pe *pgerr.Error
						switch {
						case err == nil:
							acked[k].Add(1)
						case errors.As(err, &pe) && pe.Code == pgerr.SerializationFailure:
						default:
							t.Errorf("%s: %v", q, err)
						}
					}
				})
			}
			wg.Wait()
			check := func(when string) {
				t.Helper()
				want := []string{fmt.Sprintf("1|%d|a", acked[1].Load()), fmt.Sprintf("2|%d|b", acked[2].Load()), fmt.Sprintf("3|%d|<nil>", acked[3].Load())}
				for _, s := range []*Session{ss[0], ss[2]} {
					if got := runSQL(t, s, "SELECT k, n, s FROM c ORDER BY k"); strings.Join(got, " ") != strings.Join(want, " ") {
						t.Errorf("%s: %v, want %v", when, got, want)
					}
				}
			}
			check("at the end")
			runSQL(t, ss[0], "CALL sys.compact('c')")
			check("compacted")
			total := acked[1].Load() + acked[2].Load() + acked[3].Load()
			t.Logf("%d of 24 acknowledged", total)
			if total == 0 {
				t.Error("none was acknowledged")
			}
		})
	}
}

// TestBlindSums adds to sums by plain INSERTs, which need no lock and look at
// nothing, beside UPDATEs, which do.
func TestBlindSums(t *testing.T) {
	e, s := maintained(t, nil)
	runSQL(t, s, "CREATE TABLE c (k int PRIMARY KEY, n bigint) WITH ('merge-engine'='aggregation','fields.n.aggregate-function'='sum','num-sorted-run.compaction-trigger'='3')")
	runSQL(t, s, "INSERT INTO c VALUES (1, 0)")
	var wg sync.WaitGroup
	for i := range 4 {
		s, err := e.OpenSession(t.Context(), Startup{User: "u", Database: "paimon"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		wg.Go(func() {
			for range 10 {
				q := "INSERT INTO c VALUES (1, 1)"
				if i == 0 {
					q = "UPDATE c SET n = n + 1 WHERE k = 1"
				}
				if err := s.Query(t.Context(), q, &texts{}); err != nil {
					t.Errorf("%s: %v", q, err)
				}
			}
		})
	}
	wg.Wait()
	if got := runSQL(t, s, "SELECT n FROM c"); got[0] != "40" {
		t.Errorf("sum %v", got)
	}
}

// Commits that come while a compaction runs wait for the next one together.
func TestGroupedLookupWait(t *testing.T) {
	e, s := maintained(t, map[string]string{"paimon.maintenance": "off"})
	runSQL(t, s, "CREATE TABLE c (k int PRIMARY KEY, v text) WITH ('changelog-producer'='lookup','deletion-vectors.enabled'='true')")
	const sessions, each = 6, 5
	var wg sync.WaitGroup
	for i := range sessions {
		s, err := e.OpenSession(t.Context(), Startup{User: "u", Database: "paimon"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		wg.Go(func() {
			for j := range each {
				x := &texts{}
				if err := s.Query(t.Context(), fmt.Sprintf("INSERT INTO c VALUES (%d, 'x')", 100*i+j), x); err != nil || len(x.notices) > 0 {
					t.Errorf("%v %v", err, x.notices)
				}
				// It has been waited for.
				x = &texts{}
				if err := s.Query(t.Context(), fmt.Sprintf("SET paimon.fresh_reads = off; SELECT v FROM c WHERE k = %d", 100*i+j), x); err != nil || len(x.rows) != 1 {
					t.Errorf("%d: %v %v", 100*i+j, x.rows, err)
				}
			}
		})
	}
	wg.Wait()
	if got := runSQL(t, s, "SELECT sum(changelog_record_count) FROM c$snapshots WHERE commit_kind = 'COMPACT'"); got[0] != fmt.Sprint(sessions*each) {
		t.Errorf("changelog of %v rows", got)
	}
	if got := runSQL(t, s, "SELECT count(*) FROM c$files WHERE level = 0"); got[0] != "0" {
		t.Errorf("%v files on level 0", got)
	}
}

// A statement that is cancelled while it waits has committed, and its changelog is
// made all the same.
func TestLookupWaitCancelled(t *testing.T) {
	e, s := maintained(t, nil)
	runSQL(t, s, "CREATE TABLE c (k int PRIMARY KEY, v text) WITH ('changelog-producer'='lookup')")
	e.maint.waits.mu.Lock() // nobody is served
	x := &texts{}
	done := make(chan error)
	go func() { done <- s.Query(t.Context(), "INSERT INTO c VALUES (1, 'x')", x) }()
	pid, secret := s.Key()
	other, err := e.OpenSession(t.Context(), Startup{User: "u", Database: "paimon"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	until(t, "the commit", func() bool { return len(runSQL(t, other, "SELECT 1 FROM c")) == 1 })
	e.Cancel(pid, secret)
	e.maint.waits.mu.Unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(x.tags) != 1 || x.tags[0] != "INSERT 0 1" {
		t.Errorf("tags %v", x.tags)
	}
	until(t, "its changelog", func() bool {
		return runSQL(t, other, "SELECT count(*) FROM c$snapshots WHERE changelog_record_count = 1")[0] == "1"
	})
}

// With lookup-wait = false a commit returns at once, and the background makes its
// changelog; a table that is written only is left alone.
func TestLookupWaitOff(t *testing.T) {
	e, s := maintained(t, nil)
	runSQL(t, s, "CREATE TABLE a (k int PRIMARY KEY, v text) WITH ('changelog-producer'='lookup','lookup-wait'='false')")
	runSQL(t, s, "CREATE TABLE w (k int PRIMARY KEY, v text) WITH ('changelog-producer'='lookup','write-only'='true')")
	runSQL(t, s, "INSERT INTO w VALUES (1, 'x')")
	runSQL(t, s, "INSERT INTO a VALUES (1, 'x')")
	e.maint.waits.mu.Lock()
	if n := len(e.maint.waits.by); n > 0 {
		t.Errorf("%d tables are waited for", n)
	}
	e.maint.waits.mu.Unlock()
	until(t, "its changelog", func() bool {
		return runSQL(t, s, "SELECT count(*) FROM a$snapshots WHERE changelog_record_count = 1")[0] == "1"
	})
	if got := runSQL(t, s, "SELECT count(*) FROM w$snapshots"); got[0] != "1" {
		t.Errorf("%v snapshots of a table that is written only", got)
	}
}

// A commit whose compaction fails stands: its session is warned, and the background
// makes the changelog once it can.
func TestLookupWaitFails(t *testing.T) {
	f := fileio.NewFault(fileio.NewMem())
	e, err := Open(t.Context(), Config{FileIO: f, Warehouse: "mem://", Maintain: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	s, err := e.OpenSession(t.Context(), Startup{User: "u", Database: "paimon"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	runSQL(t, s, "CREATE TABLE c (k int PRIMARY KEY, v text) WITH ('changelog-producer'='lookup')")
	runSQL(t, s, "INSERT INTO c VALUES (1, 'x')")
	f.Add(fileio.Rule{Op: "create", Path: "changelog-", Err: errors.New("no changelog today")})
	x := &texts{}
	if err := s.Query(t.Context(), "UPDATE c SET v = 'y' WHERE k = 1", x); err != nil {
		t.Fatal(err)
	}
	if f.Hits() == 0 {
		t.Fatal("nothing failed")
	}
	if len(x.tags) != 1 || x.tags[0] != "UPDATE 1" || len(x.notices) != 1 || !strings.Contains(x.notices[0], "compaction has failed") {
		t.Errorf("tags %v, notices %v", x.tags, x.notices)
	}
	if got := runSQL(t, s, "SELECT v FROM c"); got[0] != "y" {
		t.Errorf("row %v", got)
	}
	f.Clear()
	until(t, "its changelog", func() bool {
		return runSQL(t, s, "SELECT count(*) FROM c$snapshots WHERE changelog_record_count = 2")[0] == "1"
	})
}
