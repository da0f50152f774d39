package tpch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paimon-sql/paimon-sql/internal/demo"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// lakeQuery is a query of a lake and the schemas whose tables it is for.
type lakeQuery struct {
	name, sql string
	schemas   []string
}

func lakeQueries(t *testing.T) []lakeQuery {
	t.Helper()
	files, err := filepath.Glob("testdata/lake/queries/*.sql")
	if err != nil || len(files) != 20 {
		t.Fatalf("%d queries of lakes, %v", len(files), err)
	}
	var out []lakeQuery
	for _, f := range files {
		sql, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		_, dbs, ok := strings.Cut(string(sql), "-- db: ")
		if !ok {
			t.Fatalf("%s names no schema", f)
		}
		dbs, _, _ = strings.Cut(dbs, "\n")
		out = append(out, lakeQuery{strings.TrimSuffix(filepath.Base(f), ".sql"), string(sql), strings.Fields(dbs)})
	}
	return out
}

// runLake compares the queries with the answers in expected/<schema>/<query>.csv, which
// DuckDB gave.
func runLake(t *testing.T, c *pgx.Conn, expected string) {
	for _, q := range lakeQueries(t) {
		for _, schema := range q.schemas {
			t.Run(schema+"/"+q.name, func(t *testing.T) {
				exec(t, c, "SET search_path = "+schema)
				compare(t, c, q.sql, filepath.Join(expected, schema, q.name+".csv"), !strings.Contains(q.sql, "order by"))
			})
		}
	}
}

func exec(t *testing.T, c *pgx.Conn, qs ...string) {
	t.Helper()
	for _, q := range qs {
		if _, err := c.Exec(context.Background(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// layLake makes the tables of the schema lake out of those of tpch_append, as the
// benchmark's generator does with Spark: partitioned by month, with bloom filters, with
// bitmaps, along a z-curve, and 201 columns wide. Files are as many as at scale factor 1.
func layLake(t *testing.T, c *pgx.Conn) {
	t.Helper()
	const lineitem = `l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber int, l_quantity numeric(15, 2), l_extendedprice numeric(15, 2),
		l_discount numeric(15, 2), l_tax numeric(15, 2), l_returnflag text, l_linestatus text, l_shipdate date, l_commitdate date, l_receiptdate date,
		l_shipinstruct text, l_shipmode text, l_comment text`
	exec(t, c, "create schema lake", "set search_path = lake",
		"create table lineitem_part ("+lineitem+", l_shipmonth text) partition by list (l_shipmonth)",
		"insert into lineitem_part select *, to_char(l_shipdate, 'YYYY-MM') from tpch_append.lineitem",
		`create table orders_bloom (o_orderkey bigint, o_custkey bigint, o_orderstatus text, o_totalprice numeric(15, 2), o_orderdate date,
			o_orderpriority text, o_clerk text, o_shippriority int, o_comment text, o_uuid text) with ('file-index.bloom-filter.columns' = 'o_uuid',
			'file-index.bloom-filter.o_uuid.fpp' = '0.01', 'file-index.bloom-filter.o_uuid.items' = '2000', 'write-only' = 'true')`)
	for i := range 32 {
		exec(t, c, fmt.Sprintf("insert into orders_bloom select *, md5(o_orderkey::text) from tpch_append.orders where o_custkey %% 32 = %d", i))
	}
	exec(t, c, "create table lineitem_bitmap ("+lineitem+") with ('file-index.bitmap.columns' = 'l_returnflag,l_linestatus,l_shipmode,l_shipinstruct,l_linenumber')",
		"insert into lineitem_bitmap select * from tpch_append.lineitem",
		"create table lineitem_z ("+lineitem+") with ('target-file-size' = '128 kb', 'write-only' = 'true')",
		"insert into lineitem_z select * from tpch_append.lineitem",
		"call sys.compact('lake.lineitem_z', order_strategy => 'zorder', order_by => 'l_partkey,l_suppkey')")
	var cols, values []string
	for k := range 200 {
		cols = append(cols, fmt.Sprintf("c%03d bigint", k))
		values = append(values, fmt.Sprintf("(i * %d + %d) %% %d", 2*k+3, k, 1000+37*k))
	}
	exec(t, c, "create table wide (id bigint, "+strings.Join(cols, ", ")+")",
		"insert into wide select i, "+strings.Join(values, ", ")+" from generate_series(0::bigint, 2999) i")
}

// TestLakeSF001 answers the lake queries over tables that Java wrote (tpch_append,
// tpch_mor, tpch_dv), that we compacted (tpch_compacted) and that we wrote (lake).
//
// The answers are those of the benchmark's expected folder but for l12_bitmap_multi,
// whose file there is of another text of the query (28 rows): DuckDB over the same
// Parquet file counts 34.
func TestLakeSF001(t *testing.T) {
	dir := t.TempDir()
	if _, err := demo.Lay(context.Background(), fileio.NewLocal(dir)); err != nil {
		t.Fatal(err)
	}
	unpack(t, "testdata/warehouse.tar.zst", dir)
	for _, table := range []string{"orders", "lineitem"} {
		if err := os.CopyFS(filepath.Join(dir, "tpch_compacted.db", table), os.DirFS(filepath.Join(dir, "tpch_mor.db", table))); err != nil {
			t.Fatal(err)
		}
	}
	c := connect(t, dir)
	exec(t, c, "call sys.compact('tpch_compacted.orders')", "call sys.compact('tpch_compacted.lineitem')")
	layLake(t, c)
	runLake(t, c, "testdata/lake/expected")

	// What the tables are for: files that the query has no business with are not read.
	for _, q := range lakeQueries(t) {
		why, most := map[string]string{"l03_partition_prune": "partition", "l11_bloom_eq": "bloom", "l13_zorder_box": "stats"}[q.name], map[string]int{"l03_partition_prune": 3, "l11_bloom_eq": 2, "l13_zorder_box": 12}[q.name]
		if why == "" {
			continue
		}
		t.Run("files/"+q.name, func(t *testing.T) {
			exec(t, c, "SET search_path = lake")
			read, total, line := filesRead(t, c, q.sql)
			if !strings.Contains(line, "skipped by") || !strings.Contains(line, why+": ") || read > most || read >= total {
				t.Errorf("%s; want at most %d read, others skipped by %s", line, most, why)
			}
		})
	}
}

// filesRead returns how many files EXPLAIN ANALYZE says that a query read, of how many,
// and the line that says so.
func filesRead(t *testing.T, c *pgx.Conn, sql string) (read, total int, line string) {
	t.Helper()
	rows, err := c.Query(context.Background(), "explain (analyze, costs off, timing off, summary off) "+sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), "Files: ") })
	if i < 0 {
		t.Fatalf("no word about files:\n%s", strings.Join(lines, "\n"))
	}
	line = strings.TrimSpace(lines[i])
	f := strings.Fields(line)
	read, _ = strconv.Atoi(f[1])
	total, _ = strconv.Atoi(f[3])
	return read, total, line
}
