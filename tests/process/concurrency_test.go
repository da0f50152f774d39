package process

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
)

// each runs n clients, spread over the servers, and waits for them.
func each(t *testing.T, servers []*server, n int, f func(i int, c *pgx.Conn)) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		c := servers[i%len(servers)].connect(t)
		wg.Add(1)
		go func() {
			defer wg.Done()
			f(i, c)
		}()
	}
	wg.Wait()
}

// retriable are the SQLSTATEs that tell a client to try again.
func retriable(err error) bool {
	switch code(err) {
	case "40001", "40P01":
		return true
	}
	return false
}

// TestLostUpdates adds to counters from two processes at once: what was
// acknowledged is in the sum, whatever table it is.
func TestLostUpdates(t *testing.T) {
	wh := filepath.Join(t.TempDir(), "wh")
	servers := []*server{serve(t, wh), serve(t, wh)}
	c := servers[0].connect(t)
	run(t, c, "create table counters (k int primary key, n bigint not null)",
		"insert into counters select g, 0 from generate_series(1, 10) g")
	clients, updates := 8, 5*testkit.Factor()
	if testkit.Factor() > 1 {
		clients, updates = 32, 200
	}
	var acked [11]atomic.Int64
	var refused atomic.Int64
	each(t, servers, clients, func(i int, c *pgx.Conn) {
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		for range updates {
			k := 1 + rng.IntN(10)
			tag, err := c.Exec(context.Background(), "update counters set n = n + 1 where k = $1", k)
			switch {
			case err == nil && tag.RowsAffected() == 1:
				acked[k].Add(1)
			case retriable(err):
				refused.Add(1)
			default:
				t.Errorf("update of %d: %v, %v", k, tag, err)
			}
		}
	})
	total := int64(0)
	for k := 1; k <= 10; k++ {
		total += acked[k].Load()
		if got := one(t, c, fmt.Sprintf("select n from counters where k = %d", k)); got != strconv.FormatInt(acked[k].Load(), 10) {
			t.Errorf("counter %d is %s, %d updates were acknowledged", k, got, acked[k].Load())
		}
	}
	t.Logf("%d updates acknowledged, %d refused", total, refused.Load())
}

// TestBank is TPC-B's transaction: three sums stay equal.
func TestBank(t *testing.T) {
	wh := filepath.Join(t.TempDir(), "wh")
	s := serve(t, wh)
	c := s.connect(t)
	run(t, c, "create table accounts (aid int primary key, bid int, abalance bigint not null)",
		"create table tellers (tid int primary key, bid int, tbalance bigint not null)",
		"create table branches (bid int primary key, bbalance bigint not null)",
		"create table history (tid int, bid int, aid int, delta bigint)",
		"insert into accounts select g, 1 + g % 4, 0 from generate_series(1, 1000) g",
		"insert into tellers select g, 1 + g % 4, 0 from generate_series(1, 40) g",
		"insert into branches select g, 0 from generate_series(1, 4) g")
	clients, each_ := 8, 3
	if testkit.Factor() > 1 {
		clients, each_ = 32, 20*testkit.Factor()
	}
	var done, again atomic.Int64
	each(t, []*server{s}, clients, func(i int, c *pgx.Conn) {
		rng := rand.New(rand.NewPCG(uint64(i), 2))
		ctx := context.Background()
		for range each_ {
			aid, tid, bid, delta := 1+rng.IntN(1000), 1+rng.IntN(40), 1+rng.IntN(4), rng.IntN(10000)-5000
			for try := 0; ; try++ {
				err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
					for _, q := range []struct {
						sql  string
						args []any
					}{
						{"update accounts set abalance = abalance + $1 where aid = $2", []any{delta, aid}},
						{"select abalance from accounts where aid = $1", []any{aid}},
						{"update tellers set tbalance = tbalance + $1 where tid = $2", []any{delta, tid}},
						{"update branches set bbalance = bbalance + $1 where bid = $2", []any{delta, bid}},
						{"insert into history values ($1, $2, $3, $4)", []any{tid, bid, aid, delta}},
					} {
						if _, err := tx.Exec(ctx, q.sql, q.args...); err != nil {
							return err
						}
					}
					return nil
				})
				if err == nil {
					done.Add(1)
					break
				}
				if !retriable(err) || try > 200 {
					t.Errorf("after %d tries: %v", try, err)
					return
				}
				again.Add(1)
			}
		}
	})
	want := one(t, c, "select coalesce(sum(delta), 0) from history")
	for _, q := range []string{"select sum(abalance) from accounts", "select sum(tbalance) from tellers", "select sum(bbalance) from branches"} {
		if got := one(t, c, q); got != want {
			t.Errorf("%s = %s, history has %s", q, got, want)
		}
	}
	if got := one(t, c, "select count(*) from history"); got != strconv.FormatInt(done.Load(), 10) {
		t.Errorf("history has %s rows, %d transactions were acknowledged", got, done.Load())
	}
	t.Logf("%d transactions, %d tried again", done.Load(), again.Load())
}

// TestTwoServers has writers in two processes append and upsert while both
// compact: nothing is lost or doubled, and Java finds nothing.
func TestTwoServers(t *testing.T) {
	wh := filepath.Join(t.TempDir(), "wh")
	servers := []*server{serve(t, wh), serve(t, wh)}
	c := servers[0].connect(t)
	run(t, c, "create table log (writer int, n int, note text)",
		"create table kv (k int primary key, writer int, n int) with ('bucket' = '2')",
		"create table plog (p text, writer int, n int) partitioned by (p)")
	writers, commits := 4, 5
	if testkit.Factor() > 1 {
		writers, commits = 16, 20*testkit.Factor()
	}
	each(t, servers, writers, func(i int, c *pgx.Conn) {
		for n := range commits {
			for _, q := range []string{
				fmt.Sprintf("insert into log select %d, %d, 'r' || g from generate_series(1, 10) g", i, n),
				fmt.Sprintf("insert into kv select g, %d, %d from generate_series(%d, %d) g", i, n, i*100, i*100+49),
				fmt.Sprintf("insert into plog select 'p' || g %% 3, %d, %d from generate_series(1, 10) g", i, n),
			} {
				if _, err := c.Exec(context.Background(), q); err != nil {
					t.Errorf("%s: %v", q, err)
				}
			}
		}
	})
	for _, tab := range []string{"log", "plog"} {
		want := fmt.Sprintf("%d|%d", writers*commits*10, writers*commits)
		if got := one(t, c, "select count(*), count(distinct (writer, n)) from "+tab); got != want {
			t.Errorf("%s has %s, want %s", tab, got, want)
		}
		if got := rows(t, c, "select writer, n, count(*) from "+tab+" group by 1, 2 having count(*) <> 10"); len(got) > 0 {
			t.Errorf("%s: %v", tab, got)
		}
	}
	if got, want := one(t, c, "select count(*), min(n), max(n) from kv"), fmt.Sprintf("%d|%d|%d", writers*50, commits-1, commits-1); got != want {
		t.Errorf("kv has %s, want %s", got, want)
	}
	for _, s := range servers {
		s.stop(t)
	}
	j := oracle.Maybe(t, wh)
	for _, tab := range []string{"log", "kv", "plog"} {
		j.Check(t, "default."+tab)
	}
}

// TestKill kills the server while clients commit, again and again: what was
// acknowledged is there afterwards, each commit is there whole or not at all.
func TestKill(t *testing.T) {
	wh := filepath.Join(t.TempDir(), "wh")
	s := serve(t, wh)
	run(t, s.connect(t), "create table log (writer int, n int, part int)", "create table kv (k int primary key, n int)")
	rounds, clients := 3, 4
	if testkit.Factor() > 1 {
		rounds, clients = 15, 8
	}
	seed := random.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 3))
	acked := make([]map[int]bool, clients) // commits that were acknowledged, by client
	last := make([]int, clients)           // value of key i that was acknowledged last
	tried := make([]int, clients)
	for i := range acked {
		acked[i] = map[int]bool{}
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
				for {
					n := tried[i] + 1
					tried[i] = n
					if _, err := c.Exec(context.Background(), fmt.Sprintf("insert into log select %d, %d, g from generate_series(1, 5) g", i, n)); err != nil {
						return
					}
					acked[i][n] = true
					if _, err := c.Exec(context.Background(), fmt.Sprintf("insert into kv values (%d, %d)", i, n)); err != nil {
						return
					}
					last[i] = n
				}
			}()
		}
		<-time.After(time.Duration(100+rng.IntN(400)) * time.Millisecond) // how long the server may live
		s.kill()
		wg.Wait()
		s = serve(t, wh)
		c := s.connect(t)
		for _, r := range rows(t, c, "select writer, n, count(*) from log group by 1, 2 having count(*) <> 5") {
			t.Errorf("half a commit: %s", r)
		}
		for i := range clients {
			have := map[string]bool{}
			for _, r := range rows(t, c, fmt.Sprintf("select distinct n from log where writer = %d", i)) {
				have[r] = true
			}
			for n := range acked[i] {
				if !have[strconv.Itoa(n)] {
					t.Errorf("commit %d of client %d was acknowledged and is gone", n, i)
				}
			}
			if last[i] > 0 {
				got, _ := strconv.Atoi(one(t, c, fmt.Sprintf("select n from kv where k = %d", i)))
				if got < last[i] || got > tried[i] {
					t.Errorf("key %d is %d, acknowledged %d, tried %d", i, got, last[i], tried[i])
				}
			}
			total += len(acked[i])
		}
	}
	t.Logf("%d commits acknowledged", total)
	s.stop(t)
	j := oracle.Maybe(t, wh)
	j.CheckKilled(t, "default.log")
	j.CheckKilled(t, "default.kv")
}

// TestSteadyUpserts is a service's day in miniature: a steady rate of upserts
// with compaction; files per bucket, memory and read time must not grow.
func TestSteadyUpserts(t *testing.T) {
	if testkit.Factor() == 1 {
		t.Skip("needs PAIMON_SQL_SOAK above 1, as make soak sets it")
	}
	wh := filepath.Join(t.TempDir(), "wh")
	s := serve(t, wh)
	c := s.connect(t)
	run(t, c, "create table kv (k int primary key, n bigint, note text) with ('bucket' = '2', 'snapshot.num-retained.max' = '50', 'snapshot.time-retained' = '1 min')",
		"insert into kv select g, 0, 'start' from generate_series(1, 20000) g")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var done atomic.Int64
	for i := range 8 {
		c := s.connect(t)
		wg.Add(1)
		go func() {
			defer wg.Done()
			rng := rand.New(rand.NewPCG(uint64(i), 4))
			tick := time.NewTicker(160 * time.Millisecond) // 8 clients: 50 a second
			defer tick.Stop()
			for {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				if _, err := c.Exec(context.Background(), "insert into kv values ($1, $2, $3)", 1+rng.IntN(20000), done.Load(), "later"); err != nil {
					t.Error(err)
					return
				}
				done.Add(1)
			}
		}()
	}
	minutes := 10
	for m := 1; m <= minutes; m++ {
		<-time.After(time.Minute) // the period that is looked at
		began := time.Now()
		if got := one(t, c, "select count(*) from kv"); got != "20000" {
			t.Errorf("kv has %s rows", got)
		}
		read := time.Since(began)
		runs := one(t, c, `select max(r) from (select bucket, count(*) filter (where level = 0) + count(distinct level) filter (where level > 0) r from "kv$files" group by bucket) x`)
		t.Logf("minute %d: %d upserts, %s sorted runs in the fullest bucket, %d MB, count(*) in %v, %s snapshots", m, done.Load(), runs, s.rss(), read.Round(time.Millisecond),
			one(t, c, `select count(*) from "kv$snapshots"`))
		if n, _ := strconv.Atoi(runs); n > 9 {
			t.Errorf("%s sorted runs", runs)
		}
	}
	close(stop)
	wg.Wait()
	s.stop(t)
	oracle.Maybe(t, wh).Check(t, "default.kv")
}
