package process

import (
	"context"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
)

// TestSequencesEverywhere draws values on two servers over one warehouse, kills one of
// them in the middle and goes on: no value is given twice, views are seen everywhere.
func TestSequencesEverywhere(t *testing.T) {
	wh := filepath.Join(t.TempDir(), "wh")
	servers := []*server{serve(t, wh), serve(t, wh)}
	c := servers[0].connect(t)
	run(t, c, "create sequence s", "create table t (id bigserial, i int generated always as identity, w int)",
		"create view v as select id, w from t where w >= 0")
	if got := one(t, servers[1].connect(t), "select count(*) from v"); got != "0" {
		t.Fatalf("the other server's view has %s rows", got)
	}
	const clients, draws = 4, 12
	var mu sync.Mutex
	given := map[int64]int{}
	// draw runs a client until it is done or its server is gone; told learns how far
	// it came.
	draw := func(s *server, i int, told chan<- int) {
		c, err := pgx.Connect(context.Background(), s.dsn)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close(context.Background()) //nolint:errcheck // the server may be gone
		for n := range draws {
			var x int64
			if err := c.QueryRow(context.Background(), "select nextval('s')").Scan(&x); err != nil {
				return
			}
			mu.Lock()
			given[x]++
			mu.Unlock()
			if _, err := c.Exec(context.Background(), "insert into t (w) values ("+strconv.Itoa(i)+"), ("+strconv.Itoa(i)+")"); err != nil {
				return
			}
			if told != nil && n == draws/4 {
				told <- i
			}
		}
	}
	round := func(kill bool) {
		var wg sync.WaitGroup
		told := make(chan int, clients)
		for i := range clients {
			wg.Go(func() {
				if i%2 == 0 {
					draw(servers[0], i, told)
				} else {
					draw(servers[1], i, nil)
				}
			})
		}
		if kill {
			<-told
			servers[0].kill()
		}
		wg.Wait()
	}
	round(true)
	servers[0] = serve(t, wh)
	round(false)
	for x, n := range given {
		if n > 1 {
			t.Errorf("value %d was given %d times", x, n)
		}
	}
	if len(given) < 3*draws {
		t.Errorf("only %d values were given", len(given))
	}
	c = servers[0].connect(t)
	if got := one(t, c, "select count(*) = count(distinct id), count(*) = count(distinct i), count(*) = (select count(*) from v), count(*) > 0 from t"); got != "t|t|t|t" {
		t.Errorf("ids are not unique: %s", got)
	}
	run(t, c, "alter sequence s rename to z", "drop view v")
	d := servers[1].connect(t)
	last, _ := strconv.ParseInt(one(t, d, "select nextval('z')"), 10, 64)
	if given[last] > 0 {
		t.Errorf("value %d was given again after the rename", last)
	}
	if _, err := d.Exec(context.Background(), "select * from v"); code(err) != "42P01" {
		t.Errorf("the dropped view answers %v", err)
	}
	for _, s := range servers {
		s.stop(t)
	}
	oracle.Maybe(t, wh).CheckKilled(t, "default.t")
}
