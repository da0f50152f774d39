// Package metamorphic asks the same questions under settings that must not
// change the answers: batch sizes, worker counts, optimiser rules. The first run,
// with the defaults, is the reference. The seed is printed; PAIMON_SQL_SEED
// repeats a run.
package metamorphic

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paimon-sql/paimon-sql/internal/demo"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/sql/planner"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/tests/testserver"
)

// queries cover every operator; those with an ORDER BY are compared in order.
// Sums are of exact types, so that the order of additions cannot show.
var queries = []string{
	"SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice * (1 - l_discount)), avg(l_discount), count(*) FROM lineitem WHERE l_shipdate <= date '1998-09-02' GROUP BY 1, 2 ORDER BY 1, 2",
	"SELECT l_orderkey, count(*), min(l_shipdate), max(l_comment) FROM lineitem GROUP BY l_orderkey ORDER BY 1",
	"SELECT count(DISTINCT l_partkey), count(DISTINCT l_shipmode) FILTER (WHERE l_quantity > 10) FROM lineitem",
	"SELECT o_orderpriority, l_shipmode, count(*) FROM orders JOIN lineitem ON o_orderkey = l_orderkey WHERE o_orderdate < '1995-01-01' GROUP BY ROLLUP (1, 2) ORDER BY 1, 2",
	"SELECT c_custkey, o_orderkey FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND o_totalprice > 200000",
	"SELECT count(*), sum(c_acctbal) FROM customer FULL JOIN supplier ON c_nationkey = s_nationkey AND c_acctbal = s_acctbal",
	"SELECT p_partkey FROM part WHERE p_partkey NOT IN (SELECT ps_partkey FROM partsupp WHERE ps_availqty > 9000)",
	"SELECT c_custkey FROM customer c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.o_custkey = c.c_custkey AND o.o_totalprice > (SELECT avg(o_totalprice) FROM orders o2 WHERE o2.o_custkey = c.c_custkey))",
	"SELECT n_name, s_name, rank() OVER (PARTITION BY n_name ORDER BY s_acctbal DESC, s_name), sum(s_acctbal) OVER (PARTITION BY n_name ORDER BY s_acctbal, s_name ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) FROM supplier JOIN nation ON s_nationkey = n_nationkey",
	"SELECT l_orderkey, l_linenumber, l_extendedprice FROM lineitem ORDER BY l_extendedprice DESC, l_orderkey, l_linenumber LIMIT 500 OFFSET 20",
	"SELECT l_orderkey, l_linenumber FROM lineitem ORDER BY l_shipmode, l_comment, l_orderkey, l_linenumber",
	"SELECT DISTINCT ON (l_suppkey) l_suppkey, l_partkey, l_shipdate FROM lineitem ORDER BY l_suppkey, l_shipdate DESC, l_orderkey, l_linenumber",
	"SELECT s_nationkey FROM supplier INTERSECT ALL SELECT c_nationkey FROM customer",
	"SELECT c_nationkey FROM customer EXCEPT SELECT n_nationkey FROM nation WHERE n_regionkey = 1",
	"WITH RECURSIVE r(n, k) AS (SELECT 1, n_nationkey FROM nation UNION SELECT n + 1, (k * 7) % 25 FROM r WHERE n < 9) SELECT n, count(*), sum(k) FROM r GROUP BY n ORDER BY n",
	"SELECT n_name, x.o_orderkey FROM nation, LATERAL (SELECT o_orderkey FROM orders JOIN customer ON c_custkey = o_custkey WHERE c_nationkey = n_nationkey ORDER BY o_totalprice DESC, o_orderkey LIMIT 3) x",
	"SELECT l_shipmode, string_agg(DISTINCT l_returnflag, ',' ORDER BY l_returnflag), percentile_disc(0.5) WITHIN GROUP (ORDER BY l_quantity) FROM lineitem GROUP BY 1 ORDER BY 1",
	"SELECT o_orderpriority, count(*), sum(o_totalprice) FROM public.orders WHERE o_orderdate >= '1995-06-01' GROUP BY 1 ORDER BY 1",
	"SELECT o_orderkey, o_comment FROM public.orders WHERE o_orderstatus = 'P' AND o_comment LIKE '%special%'",
	"SELECT CASE WHEN l_quantity > 25 THEN 'many' WHEN l_discount > 0.05 THEN l_shipmode ELSE NULL END AS k, count(*) FROM lineitem GROUP BY 1 ORDER BY 1 NULLS FIRST",
	"SELECT a.n_name, b.n_name FROM nation a JOIN nation b ON a.n_regionkey = b.n_regionkey AND a.n_nationkey < b.n_nationkey",
	"SELECT count(*) FROM generate_series(1, 300) a, generate_series(1, 300) b WHERE a % 7 = b % 5",
}

func answer(c *pgx.Conn, sql string) (string, error) {
	rs, err := c.PgConn().Exec(context.Background(), sql).ReadAll()
	if err != nil {
		return "", err
	}
	var rows []string
	for _, r := range rs[len(rs)-1].Rows {
		var f []string
		for _, v := range r {
			if v == nil {
				f = append(f, "NULL")
			} else {
				f = append(f, string(v))
			}
		}
		rows = append(rows, strings.Join(f, "|"))
	}
	// The last ORDER BY counts only when it ends the statement.
	i := strings.LastIndex(sql, "ORDER BY")
	if i < 0 || strings.ContainsAny(sql[i:], ")") {
		sort.Strings(rows)
	}
	return strings.Join(rows, "\n"), nil
}

func TestAnswersDoNotDependOnSettings(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	if _, err := demo.Lay(context.Background(), fileio.NewLocal(dir)); err != nil {
		t.Fatal(err)
	}
	c, err := pgx.Connect(context.Background(), testserver.Start(t, dir, nil).DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	set := func(sql string) {
		t.Helper()
		if _, err := c.Exec(context.Background(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	set("SET search_path = tpch_append, public")
	want := make([]string, len(queries))
	for i, q := range queries {
		if want[i], err = answer(c, q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		if want[i] == "" {
			t.Fatalf("%s: no rows, so it can show nothing", q)
		}
	}
	rules := planner.Rules()
	rounds := 3 // more with PAIMON_SQL_ROUNDS, as make meta does
	if n, err := strconv.Atoi(os.Getenv("PAIMON_SQL_ROUNDS")); err == nil {
		rounds = n
	}
	for round := range rounds {
		sizes := []int{3, 64, 1 + r.IntN(5000), 65536}
		size := sizes[round%len(sizes)]
		workers := []int{1, 2, 8}[r.IntN(3)]
		off := ""
		set("RESET ALL; SET search_path = tpch_append, public")
		set(fmt.Sprintf("SET paimon.vector_size = %d", size))
		set(fmt.Sprintf("SET paimon.workers = %d", workers))
		if round%2 == 1 && len(rules) > 0 {
			off = rules[r.IntN(len(rules))]
			set("SET paimon.rule_" + off + " = off")
		}
		for i, q := range queries {
			if strings.Contains(q, "LATERAL") && (size < 16 || off != "") {
				continue // minutes, not more insight
			}
			if size < 16 && r.IntN(3) > 0 {
				continue // tiny batches are slow: these in other rounds, other runs
			}
			got, err := answer(c, q)
			if err != nil {
				t.Errorf("vector_size %d, workers %d, off %q: %s: %v", size, workers, off, q, err)
				continue
			}
			if got != want[i] {
				t.Errorf("vector_size %d, workers %d, off %q: %s\n%s", size, workers, off, q, firstDifference(got, want[i]))
			}
		}
	}
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("row %d of %d: %s, want %s", i+1, len(x), x[i], y[i])
		}
	}
	return fmt.Sprintf("%d rows, want %d", len(x), len(y))
}
