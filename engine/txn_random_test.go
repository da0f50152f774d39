package engine

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// Sessions move money between accounts in transactions of every kind; however
// they meet, none of it is made or lost.
func TestTransfers(t *testing.T) {
	for i, mk := range []func(testing.TB, *Session, string){keyTable, appendTable} {
		for _, level := range []string{"READ COMMITTED", "REPEATABLE READ"} {
			t.Run(fmt.Sprintf("%s/%s", []string{"key", "append"}[i], level), func(t *testing.T) {
				e := writeEngine(t, nil)
				s := testSession(t, e)
				mk(t, s, "t")
				expect(t, s, "INSERT INTO t SELECT g, 100, 'x' FROM generate_series(1, 5) AS g", "INSERT 0 5 I")
				var wg sync.WaitGroup
				for w := range 4 {
					c := testSession(t, e)
					r := rand.New(rand.NewPCG(7, uint64(w)))
					wg.Go(func() {
						for range 12 {
							from, to, n := 1+r.IntN(5), 1+r.IntN(5), r.IntN(20)
							var sql string
							switch r.IntN(4) {
							case 0:
								sql = fmt.Sprintf("UPDATE t SET v = v + CASE id WHEN %d THEN -%d ELSE %d END WHERE id IN (%d, %d) AND %d <> %d", from, n, n, from, to, from, to)
							case 1:
								sql = fmt.Sprintf("BEGIN ISOLATION LEVEL %s; UPDATE t SET v = v - %d WHERE id = %d; SAVEPOINT a; UPDATE t SET v = 0; ROLLBACK TO a; UPDATE t SET v = v + %d WHERE id = %d; COMMIT", level, n, from, n, to)
							case 2:
								sql = fmt.Sprintf("BEGIN ISOLATION LEVEL %s; SELECT v FROM t WHERE id IN (%d, %d) FOR UPDATE; UPDATE t SET v = v - %d WHERE id = %d; UPDATE t SET v = v + %d WHERE id = %d; COMMIT", level, from, to, n, from, n, to)
							case 3:
								sql = fmt.Sprintf("BEGIN; DELETE FROM t WHERE id = %d; ROLLBACK", from)
							}
							got := query(c, sql)
							for _, l := range strings.Split(got, "\n") {
								if strings.HasPrefix(l, "ERROR") && !strings.HasPrefix(l, "ERROR 40001") && !strings.HasPrefix(l, "ERROR 40P01") {
									t.Errorf("%s: %s", sql, l)
								}
							}
							if c.TxStatus() != 'I' {
								query(c, "ROLLBACK")
							}
							if got := query(c, "SELECT sum(v), count(*) FROM t"); !strings.Contains(got, "(500, 5)") {
								t.Errorf("a read sees %s", got)
							}
						}
					})
				}
				wg.Wait()
				expect(t, s, "SELECT sum(v), count(*) FROM t", "(500, 5) SELECT 1 I")
			})
		}
	}
}
