package process

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
)

// TestKillKeyTables kills the server while clients count in key tables whose writes
// do more than write: look older rows up, mark deletions, keep indexes of keys. What
// was acknowledged is counted, nothing twice; the next server clears what the last
// one left in its directory of temporary files.
func TestKillKeyTables(t *testing.T) {
	wh, tmp := filepath.Join(t.TempDir(), "wh"), t.TempDir()
	start := func() *server { return serve(t, wh, "--temp-dir", tmp) }
	s := start()
	tables := []string{"looked", "marked", "doubly", "spread", "moving", "added"}
	run(t, s.connect(t),
		"create table looked (k int, p int, n int, primary key (k)) with ('bucket' = '2', 'changelog-producer' = 'lookup')",
		"create table marked (k int, p int, n int, primary key (k)) with ('bucket' = '2', 'deletion-vectors.enabled' = 'true')",
		"create table doubly (k int, p int, n int, primary key (k, p)) partitioned by (p) with ('bucket' = '1', 'deletion-vectors.enabled' = 'true', 'changelog-producer' = 'lookup')",
		"create table spread (k int, p int, n int, primary key (k)) with ('bucket' = '-1', 'dynamic-bucket.target-row-num' = '2')",
		"create table moving (k int, p int, n int, primary key (k)) partitioned by (p) with ('bucket' = '-1', 'changelog-producer' = 'lookup')",
		"create table added (k int, p int, n int, primary key (k)) with ('merge-engine' = 'aggregation', 'fields.n.aggregate-function' = 'sum', 'changelog-producer' = 'lookup')")
	rounds, clients := 2, 3
	if testkit.Factor() > 1 {
		rounds, clients = 15*testkit.Factor(), 8
	}
	seed := random.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 5))
	// Client i alone writes key i: acked is what it knows to be counted, tried what
	// may be.
	acked, tried := make([]map[string]int, clients), make([]map[string]int, clients)
	for i := range clients {
		acked[i], tried[i] = map[string]int{}, map[string]int{}
		for _, tab := range tables {
			run(t, s.connect(t), fmt.Sprintf("insert into %s values (%d, 0, 0)", tab, i))
		}
	}
	total := 0
	for range rounds {
		var wg sync.WaitGroup
		for i := range clients {
			c, err := pgx.Connect(context.Background(), s.dsn)
			if err != nil {
				t.Fatal(err)
			}
			wg.Add(1)
			go func() {
				defer wg.Done()
				defer c.Close(context.Background()) //nolint:errcheck // the server may be gone
				for n := i; ; n++ {
					tab := tables[n%len(tables)]
					q := fmt.Sprintf("update %s set n = n + 1 where k = %d", tab, i)
					switch {
					case tab == "added":
						q = fmt.Sprintf("insert into added values (%d, 0, 1)", i)
					case tab == "moving":
						q = fmt.Sprintf("update moving set n = n + 1, p = (p + 1) %% 3 where k = %d", i)
					case n%5 == 4:
						q = fmt.Sprintf("call sys.compact('default.%s')", tab)
					}
					counts := n%5 != 4 || tab == "added" || tab == "moving"
					if counts {
						tried[i][tab]++
					}
					if _, err := c.Exec(context.Background(), q); err != nil {
						if retriable(err) || code(err) == "53200" {
							if counts {
								tried[i][tab]--
							}
							continue
						}
						if code(err) != "" && code(err)[:2] != "57" {
							t.Errorf("%s: %v", q, err)
						}
						return
					}
					if counts {
						acked[i][tab]++
					}
				}
			}()
		}
		<-time.After(time.Duration(200+rng.IntN(600)) * time.Millisecond) // how long the server may live
		s.kill()
		wg.Wait()
		left, err := os.ReadDir(tmp)
		if err != nil {
			t.Fatal(err)
		}
		s = start()
		for _, e := range left { // while it answers
			gone := func() bool { _, err := os.Stat(filepath.Join(tmp, e.Name())); return err != nil }
			for until := time.Now().Add(20 * time.Second); !gone(); <-time.After(20 * time.Millisecond) {
				if time.Now().After(until) {
					t.Fatalf("%s of the killed server is still there", e.Name())
				}
			}
		}
		c := s.connect(t)
		for _, tab := range tables {
			if got := one(t, c, "select count(*), count(distinct k) from "+tab); got != fmt.Sprintf("%[1]d|%[1]d", clients) {
				t.Errorf("%s has %s rows, want %d", tab, got, clients)
			}
			for i := range clients {
				got, _ := strconv.Atoi(one(t, c, fmt.Sprintf("select n from %s where k = %d", tab, i)))
				if got < acked[i][tab] || got > tried[i][tab] {
					t.Errorf("key %d of %s counts %d, acknowledged %d, tried %d", i, tab, got, acked[i][tab], tried[i][tab])
				}
				total += acked[i][tab]
				acked[i][tab], tried[i][tab] = got, got
			}
		}
	}
	t.Logf("%d updates acknowledged", total)
	c := s.connect(t)
	// What the changelogs say is what there is.
	for _, tab := range []string{"looked", "doubly", "moving", "added"} {
		run(t, c, "call sys.compact('default."+tab+"', compact_strategy => 'full')")
		followed := one(t, c, fmt.Sprintf("select sum(case when rowkind in ('+I', '+U') then n else -n end) from paimon_incremental_query('%s$audit_log', 0, %s, 'changelog')",
			tab, one(t, c, `select max(snapshot_id) from "`+tab+`$snapshots"`)))
		if got := one(t, c, "select sum(n) from "+tab); got != followed {
			t.Errorf("the changelog of %s adds up to %s, the table to %s", tab, followed, got)
		}
	}
	s.stop(t)
	j := oracle.Maybe(t, wh)
	for _, tab := range tables {
		j.CheckKilled(t, "default."+tab)
	}
}
