package table

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/cluster"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// TestJavaReadsClustered has Java read and examine tables that were sorted by
// columns of every type, and tables that Java goes on writing while they are
// clustered incrementally.
func TestJavaReadsClustered(t *testing.T) {
	cols := []string{"k BIGINT", "b BOOLEAN", "t TINYINT", "s SMALLINT", "i INT", "f FLOAT", "x DOUBLE", "d DECIMAL(9, 2)", "w DECIMAL(30, 4)", "v STRING", "y BYTES", "e DATE", "m TIMESTAMP(3)", "p INT"}
	for _, k := range []struct {
		name string
		opts map[string]string
		part bool
		by   func(r *rand.Rand) CompactOptions
	}{
		{name: "sorted", opts: map[string]string{"deletion-vectors.enabled": "true", "target-file-size": "4 kb"}, by: func(r *rand.Rand) CompactOptions {
			var by []string
			for _, i := range r.Perm(13)[:2+r.IntN(5)] {
				by = append(by, strings.Fields(cols[i])[0])
			}
			return sortBy(cluster.Strategy(1+r.IntN(3)), by...)
		}},
		{name: "partitions", part: true, by: func(*rand.Rand) CompactOptions { return sortBy(cluster.ZOrder, "v", "i") }},
		{name: "incremental", opts: map[string]string{"clustering.incremental": "true", "clustering.columns": "i,v", "num-sorted-run.compaction-trigger": "3", "target-file-size": "8 kb", "deletion-vectors.enabled": "true"},
			by: func(r *rand.Rand) CompactOptions { return CompactOptions{Full: r.IntN(4) == 0} }},
		{name: "buckets", opts: map[string]string{"clustering.incremental": "true", "clustering.columns": "x", "bucket": "2", "bucket-key": "k", "bucket-append-ordered": "false", "num-sorted-run.compaction-trigger": "2"},
			by: func(r *rand.Rand) CompactOptions { return CompactOptions{Full: r.IntN(4) == 0} }},
	} {
		t.Run(k.name, func(t *testing.T) {
			dir := t.TempDir()
			java := oracle.Alone(t, dir)
			s := tableSchema(t, k.opts, nil, cols...)
			if k.part {
				s.PartitionKeys = []string{"p"}
			}
			c := newCompactTable(t, fileio.NewLocal(dir), s, EnvOptions{})
			r := rand.New(rand.NewPCG(51, 52))
			next, sorted := int64(0), 0
			for step := range 12 {
				var rows [][]types.Datum
				for range 1 + r.IntN(150) {
					row := []types.Datum{next}
					next++
					for _, f := range s.Fields[1 : len(s.Fields)-1] {
						var d types.Datum
						if r.IntN(6) > 0 {
							d = randomDatum(r, f.Type, 1000)
						}
						row = append(row, d)
					}
					rows = append(rows, append(row, r.Int64N(2)))
				}
				if r.IntN(3) > 0 {
					c.append(rows)
				} else {
					var js []any
					for _, row := range rows {
						m := map[string]any{}
						for i, f := range s.Fields {
							switch v := row[i].(type) {
							case nil:
							case []byte:
								m[f.Name] = fmt.Sprintf("%x", v)
							default:
								m[f.Name] = javaDatum(f.Type, v)
								if f.Type.Kind == types.Timestamp {
									m[f.Name] = text(f.Type, v)
								}
							}
						}
						js = append(js, m)
					}
					java.Do(t, map[string]any{"cmd": "write", "table": "db.t", "rows": js})
					c.model(rows)
				}
				if step%4 == 3 {
					if err := c.deleteWhere(func(n int64) bool { return n%9 == 4 }); err != nil {
						t.Fatal(err)
					}
				}
				if r.IntN(3) > 0 {
					if c.compact(k.by(r)).SnapshotID > 0 {
						sorted++
						c.check(fmt.Sprint("step ", step))
					}
				}
				if step == 6 {
					c.javaAgrees(java, "step 6")
				}
			}
			o := k.by(r)
			o.Full = true
			c.compact(o)
			c.javaAgrees(java, "in the end")
			t.Logf("%d rows, sorted %d times", len(c.rows), sorted)
		})
	}
}

// TestClusterJavaFixtures sorts copies of the tables that Java sorted, once more.
func TestClusterJavaFixtures(t *testing.T) {
	ctx := context.Background()
	dir := shared(t, "fixtures/java")
	raw, err := os.ReadFile(filepath.Join(dir, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		javaCase
		Group string
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	tmp := t.TempDir()
	if err := os.CopyFS(filepath.Join(tmp, "sorted.db"), os.DirFS(filepath.Join(dir, "warehouse", "sorted.db"))); err != nil {
		t.Fatal(err)
	}
	io := fileio.NewLocal(tmp)
	java := oracle.Maybe(t, tmp)
	n := 0
	for _, x := range cases {
		td, at, ok := ref(x.Query)
		if x.Group != "sort_compact" || !ok {
			continue
		}
		n++
		env := NewEnv(io, EnvOptions{})
		s := Open(env, td)
		read := func(when string, at snapshot.Ref) {
			got, sch, err := readAll(ctx, s, Scan{At: at, Limit: -1}, ReadOptions{})
			if err != nil {
				t.Fatalf("%s %s: %v", x.Case, when, err)
			}
			if want := expected(t, filepath.Join(dir, x.Expected), sch.Fields); !slices.Equal(got, want) {
				t.Errorf("%s %s: %d rows, want %d", x.Case, when, len(got), len(want))
			}
		}
		read("as Java left it", at)
		if at == (snapshot.Ref{}) {
			for _, st := range []cluster.Strategy{cluster.Order, cluster.ZOrder, cluster.Hilbert} {
				o := sortBy(st, "a", "id")
				if strings.HasSuffix(td, "clustered") {
					o = CompactOptions{Full: true}
				}
				rep, err := s.Compact(ctx, o)
				if err != nil {
					t.Fatalf("%s: %v", x.Case, err)
				}
				if rep.SnapshotID == 0 && o.Sort != nil {
					t.Errorf("%s: nothing was sorted", x.Case)
				}
				read(st.String(), at)
			}
			if java != nil {
				java.Check(t, x.Table)
			}
		}
		env.Close()
	}
	if n < 8 {
		t.Errorf("only %d cases", n)
	}
}
