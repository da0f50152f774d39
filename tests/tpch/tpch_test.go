// Package tpch runs the 22 TPC-H queries and 20 queries of a lake against tables that
// Spark and Java Paimon wrote and compares the answers with DuckDB's.
//
// At scale factor 0.01 everything is at hand: the append tables are the demo's,
// the merge-on-read and deletion-vector tables lie in testdata. Larger scales run
// when PAIMON_SQL_TPCH names a folder of warehouses (sf0.1, sf1).
package tpch

import (
	"archive/tar"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/paimon-sql/paimon-sql/internal/demo"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/tests/testserver"
)

func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		p := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(p, 0o755)
		} else {
			if err = os.MkdirAll(filepath.Dir(p), 0o755); err == nil {
				var data []byte
				if data, err = io.ReadAll(r); err == nil {
					err = os.WriteFile(p, data, 0o644)
				}
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// same compares one value: numbers to 1e-5, as the benchmark does.
func same(a, b string) bool {
	if a == b {
		return true
	}
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	if err1 != nil || err2 != nil {
		return strings.TrimRight(a, " ") == strings.TrimRight(b, " ")
	}
	return math.Abs(x-y) <= 1e-5*math.Max(1, math.Max(math.Abs(x), math.Abs(y)))
}

// compare compares the answer of sql with a CSV file that has a line of names; where
// unordered, the order of rows makes no difference.
func compare(t *testing.T, c *pgx.Conn, sql, expected string, unordered bool) {
	t.Helper()
	rs, err := c.PgConn().Exec(context.Background(), sql).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(expected)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want = want[1:]
	got := make([][]string, len(rs[len(rs)-1].Rows))
	for i, row := range rs[len(rs)-1].Rows {
		for _, v := range row {
			got[i] = append(got[i], string(v))
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	if unordered {
		slices.SortFunc(got, slices.Compare)
		slices.SortFunc(want, slices.Compare)
	}
	for i := range want {
		if len(got[i]) != len(want[i]) {
			t.Fatalf("row %d has %d columns, want %d", i+1, len(got[i]), len(want[i]))
		}
		for j := range want[i] {
			if !same(got[i][j], want[i][j]) {
				t.Fatalf("row %d column %d: %q, want %q", i+1, j+1, got[i][j], want[i][j])
			}
		}
	}
}

func run(t *testing.T, c *pgx.Conn, schema, expected string) {
	ctx := context.Background()
	if _, err := c.Exec(ctx, "SET search_path = "+schema); err != nil {
		t.Fatal(err)
	}
	for q := 1; q <= 22; q++ {
		t.Run(fmt.Sprintf("%s/q%02d", schema, q), func(t *testing.T) {
			sql, err := os.ReadFile(fmt.Sprintf("testdata/queries/q%02d.sql", q))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, c, string(sql), filepath.Join(expected, fmt.Sprintf("q%02d.csv", q)), false)
		})
	}
}

func connect(t *testing.T, warehouse string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(context.Background(), testserver.Start(t, warehouse, nil).DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func TestSF001(t *testing.T) {
	dir := t.TempDir()
	if _, err := demo.Lay(context.Background(), fileio.NewLocal(dir)); err != nil {
		t.Fatal(err)
	}
	unpack(t, "testdata/warehouse.tar.zst", dir)
	c := connect(t, dir)
	run(t, c, "tpch_append", "testdata/expected")
	run(t, c, "tpch_mor", "testdata/expected/upd")
	run(t, c, "tpch_dv", "testdata/expected/upd")
}

// TestLarger reads warehouses that the benchmark's make_data.py made.
func TestLarger(t *testing.T) {
	root := os.Getenv("PAIMON_SQL_TPCH")
	if root == "" {
		t.Skip("needs PAIMON_SQL_TPCH, a folder of TPC-H warehouses")
	}
	shared := os.Getenv("PAIMON_SQL_SHARED")
	for _, sf := range []string{"sf0.1", "sf1"} {
		expected := filepath.Join(shared, "bench", "expected", sf)
		if _, err := os.Stat(expected); err != nil {
			continue
		}
		t.Run(sf, func(t *testing.T) {
			c := connect(t, filepath.Join(root, sf))
			run(t, c, "tpch_append", expected)
			run(t, c, "tpch_mor", filepath.Join(expected, "upd"))
			run(t, c, "tpch_dv", filepath.Join(expected, "upd"))
			runLake(t, c, filepath.Join(expected, "lake"))
		})
	}
}
