package process

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
)

// clusteredTables are append tables, how sys.compact is called for them, and what
// `paimon-sql compact` is given.
var clusteredTables = []struct {
	name, columns, options string
	calls                  []string
	flags                  [][]string
}{
	{"plain", "", "'target-file-size' = '64 kb', 'deletion-vectors.enabled' = 'true'",
		[]string{"order_strategy => 'order', order_by => 'x,w'", "order_strategy => 'zorder', order_by => 'x,y'", "order_strategy => 'hilbert', order_by => 'x,y,t'"},
		[][]string{{"--order", "zorder", "--by", "y,t"}, {"--order", "order", "--by", "t"}, {"--order", "hilbert", "--by", "y,x"}}},
	{"parted", "partitioned by (p)", "'target-file-size' = '32 kb', 'deletion-vectors.enabled' = 'true', 'file-index.bitmap.columns' = 'w', 'file-index.in-manifest-threshold' = '1 b'",
		[]string{"order_strategy => 'zorder', order_by => 'x,y', \"where\" => 'p < 2'", "order_strategy => 'hilbert', order_by => 'y,x'"},
		[][]string{{"--order", "order", "--by", "x", "--partition", "p=1"}}},
	{"steps", "", "'target-file-size' = '64 kb', 'deletion-vectors.enabled' = 'true', 'clustering.incremental' = 'true', 'clustering.columns' = 'x,y', 'num-sorted-run.compaction-trigger' = '3'",
		[]string{"compact_strategy => 'minor'", "compact_strategy => 'full'"},
		[][]string{nil, {"--full"}}},
	{"rewritten", "", "'target-file-size' = '64 kb'", // deletes rewrite files
		[]string{"order_strategy => 'zorder', order_by => 'x,y'"}, [][]string{{"--order", "hilbert", "--by", "x,t"}}},
}

// TestKillClustering kills servers and `paimon-sql compact` while they sort tables that
// others write: every batch of rows is there whole, once, as far as it was changed, and
// all that was acknowledged is.
func TestKillClustering(t *testing.T) {
	wh, tmp := filepath.Join(t.TempDir(), "wh"), t.TempDir()
	start := func() *server { return serve(t, wh, "--temp-dir", tmp) }
	s := start()
	c := s.connect(t)
	rounds, clients, base := 3, 3, 6000
	if testkit.Factor() > 1 {
		rounds, clients, base = 20*testkit.Factor(), 6, 40000
	}
	for _, k := range clusteredTables {
		run(t, c, fmt.Sprintf("create table %s (w int, b int, g int, v int, x int, y double precision, t text, p int) %s with (%s)", k.name, k.columns, k.options),
			fmt.Sprintf("insert into %s select -1, 0, g, 0, g * 7919 %% 10007, sin(g), md5(g::text), g %% 3 from generate_series(1, %d) g", k.name, base))
	}
	seed := random.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 6))
	const batch = 5
	// Client i alone writes the batches of w = i. What it knows of one: how often it was
	// counted up, at least and at most; -1 = it may be there no more, or not yet.
	type state struct{ least, most int }
	model := make([]map[string]map[int]state, clients)
	for i := range model {
		model[i] = map[string]map[int]state{}
		for _, k := range clusteredTables {
			model[i][k.name] = map[int]state{}
		}
	}
	next := 0
	var sorted, cut, acked atomic.Int64
	for round := range rounds {
		ctx, stop := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for i := range clients {
			c, err := pgx.Connect(ctx, s.dsn)
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(rng.Uint64(), uint64(i)))
			first := next
			wg.Add(1)
			go func() {
				defer wg.Done()
				defer c.Close(context.Background()) //nolint:errcheck // the server may be gone
				for n := first; ; n++ {
					name := clusteredTables[r.IntN(len(clusteredTables))].name
					m := model[i][name]
					b := n
					q := fmt.Sprintf("insert into %s select %d, %d, g, 0, g * %d %% 10007, random(), md5(g::text), g %% 3 from generate_series(1, %d) g", name, i, n, n, batch)
					was, will := state{-1, -1}, state{0, 0}
					if r.IntN(3) == 0 && len(m) > 0 {
						for b = range m {
							break // any
						}
						was = m[b]
						q, will = fmt.Sprintf("update %s set v = v + 1, x = x + 1 where w = %d and b = %d", name, i, b), state{was.least + 1, was.most + 1}
						if r.IntN(3) == 0 {
							q, will = fmt.Sprintf("delete from %s where w = %d and b = %d", name, i, b), state{-1, -1}
						}
					}
					m[b] = state{min(was.least, will.least), max(was.most, will.most)}
					if _, err := c.Exec(ctx, q); err != nil {
						if retriable(err) || code(err) == "53200" {
							m[b] = was
							if was.most < 0 {
								delete(m, b)
							}
							continue
						}
						if code(err) != "" && code(err)[:2] != "57" {
							t.Errorf("%s: %v", q, err)
						}
						return
					}
					acked.Add(1)
					if m[b] = will; will.most < 0 {
						delete(m, b)
					}
				}
			}()
		}
		next += 1 << 20
		sorter, err := pgx.Connect(ctx, s.dsn)
		if err != nil {
			t.Fatal(err)
		}
		r1, r2 := rand.New(rand.NewPCG(rng.Uint64(), 1)), rand.New(rand.NewPCG(rng.Uint64(), 2))
		wg.Add(2)
		go func() { // clusters in the server
			defer wg.Done()
			defer sorter.Close(context.Background()) //nolint:errcheck // the server may be gone
			for n := round; ; n++ {
				k := clusteredTables[n%len(clusteredTables)]
				q := fmt.Sprintf("call sys.compact('default.%s', %s)", k.name, k.calls[r1.IntN(len(k.calls))])
				if _, err := sorter.Exec(ctx, q); err != nil {
					if retriable(err) {
						continue
					}
					if code(err) != "" && code(err)[:2] != "57" {
						t.Errorf("%s: %v", q, err)
					}
					cut.Add(1)
					return
				}
				sorted.Add(1)
			}
		}()
		go func() { // and in processes of its own, which may be killed before the server
			defer wg.Done()
			for n := round + 1; ctx.Err() == nil; n++ {
				k := clusteredTables[n%len(clusteredTables)]
				args := append([]string{"compact", "--warehouse", wh, "--table", "default." + k.name, "--quiet", "--temp-dir", tmp}, k.flags[r2.IntN(len(k.flags))]...)
				live, end := context.WithTimeout(ctx, time.Duration(100+r2.IntN(400))*time.Millisecond)
				out, err := exec.CommandContext(live, bin(t), args...).CombinedOutput()
				killed := live.Err() != nil
				end()
				switch {
				case err == nil:
					sorted.Add(1)
				case killed:
					cut.Add(1)
				case !strings.Contains(string(out), "40001"):
					t.Errorf("%v: %v: %s", args, err, out)
				}
			}
		}()
		<-time.After(time.Duration(300+rng.IntN(700)) * time.Millisecond) // how long the server may live
		s.kill()
		stop()
		wg.Wait()
		s = start()
		c := s.connect(t)
		for _, k := range clusteredTables {
			if got, want := one(t, c, "select count(*), count(distinct g), sum(g), sum(g * 7919 % 10007 - x) from "+k.name+" where w = -1"),
				fmt.Sprintf("%d|%d|%d|0", base, base, base*(base+1)/2); got != want {
				t.Errorf("round %d: %s has %s of the first rows, want %s", round, k.name, got, want)
			}
			have := map[[2]int]int{}
			for _, row := range rows(t, c, "select w, b, count(*), count(distinct g), min(v), max(v) from "+k.name+" where w >= 0 group by 1, 2") {
				var w, b, n, d, lo, hi int
				if _, err := fmt.Sscanf(strings.ReplaceAll(row, "|", " "), "%d %d %d %d %d %d", &w, &b, &n, &d, &lo, &hi); err != nil {
					t.Fatal(err)
				}
				if n != batch || d != batch || lo != hi {
					t.Errorf("round %d: half a batch in %s: %s", round, k.name, row)
				}
				have[[2]int{w, b}] = lo
				if _, ok := model[w][k.name][b]; !ok {
					t.Errorf("round %d: %s: batch %d of client %d was deleted, and is there", round, k.name, b, w)
				}
			}
			for i := range clients {
				for b, m := range model[i][k.name] {
					v, ok := have[[2]int{i, b}]
					switch {
					case !ok && m.least >= 0:
						t.Errorf("round %d: %s: batch %d of client %d was acknowledged, and is gone", round, k.name, b, i)
					case ok && (v < m.least || v > m.most):
						t.Errorf("round %d: %s: batch %d of client %d counts %d, not %d to %d", round, k.name, b, i, v, m.least, m.most)
					}
					if model[i][k.name][b] = (state{v, v}); !ok {
						delete(model[i][k.name], b)
					}
				}
			}
		}
	}
	t.Logf("%d changes acknowledged, %d clusterings ended, %d were cut", acked.Load(), sorted.Load(), cut.Load())
	if cut.Load() < int64(rounds) || acked.Load() == 0 {
		t.Error("too little was cut or written")
	}
	c = s.connect(t)
	for _, k := range clusteredTables {
		before := one(t, c, "select count(*), sum(x), sum(v), sum(length(t)) from "+k.name)
		run(t, c, fmt.Sprintf("call sys.compact('default.%s', %s)", k.name, k.calls[len(k.calls)-1]))
		if after := one(t, c, "select count(*), sum(x), sum(v), sum(length(t)) from "+k.name); after != before {
			t.Errorf("%s was %s before the last clustering, and is %s", k.name, before, after)
		}
		if one(t, c, `select count(*) > 0 from "`+k.name+`$snapshots" where commit_kind = 'COMPACT'`) != "t" {
			t.Errorf("%s was never clustered", k.name)
		}
	}
	s.stop(t)
	j := oracle.Maybe(t, wh)
	for _, k := range clusteredTables {
		j.CheckKilled(t, "default."+k.name)
	}
}
