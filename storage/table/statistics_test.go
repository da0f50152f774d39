package table

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format/formattest"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

func paimonType(t testing.TB, s string) types.Type { return fieldOfType(t, 0, "c", s).Type }

// TestStatText: the text of each type, as Java's serializers write it, and back.
func TestStatText(t *testing.T) {
	for _, c := range []struct {
		typ  string
		d    types.Datum
		want string // "" = none
	}{
		{"BOOLEAN", true, "true"},
		{"TINYINT", int64(-128), "-128"},
		{"SMALLINT", int64(32767), "32767"},
		{"INT", int64(-7), "-7"},
		{"BIGINT", int64(math.MinInt64), "-9223372036854775808"},
		{"FLOAT", float64(float32(0.1)), "0.1"},
		{"FLOAT", 1e10, "1.0E10"},
		{"DOUBLE", 1.5, "1.5"},
		{"DOUBLE", -1e-5, "-1.0E-5"},
		{"DOUBLE", math.Inf(1), "Infinity"},
		{"DOUBLE", math.Inf(-1), "-Infinity"},
		{"DOUBLE", math.NaN(), "NaN"},
		{"DECIMAL(10, 2)", decimalOf(t, "-1.50"), "-1.50"},
		{"DECIMAL(38, 18)", decimalOf(t, "0.000000000000000001"), "0.000000000000000001"},
		{"DATE", int64(18628), "18628"},
		{"DATE", int64(-1), "-1"},
		{"TIME(3)", int64(3_600_000_000), "3600000"},
		{"TIMESTAMP(0)", int64(1_609_459_200_000_000), "2021-01-01 00:00:00"},
		{"TIMESTAMP(3)", int64(1_609_459_200_120_000), "2021-01-01 00:00:00.120"},
		{"TIMESTAMP(6)", int64(1_609_459_200_123_456), "2021-01-01 00:00:00.123456"},
		{"TIMESTAMP(6)", int64(-1), "1969-12-31 23:59:59.999999"},
		{"TIMESTAMP(9)", int64(1_609_459_200_123_456_789), "2021-01-01 00:00:00.123456789"},
		{"TIMESTAMP(3) WITH LOCAL TIME ZONE", int64(0), "1970-01-01 00:00:00.000"},
		{"TIMESTAMP(6)", int64(math.MaxInt64), ""}, // infinity, and no year that Java reads
		{"STRING", "größe \"x\"", "größe \"x\""},
		{"VARCHAR(5)", "", ""},
		{"CHAR(3)", "a", "a"},
		{"BYTES", []byte("abc"), ""},
	} {
		ty := paimonType(t, c.typ)
		got, ok := statText(ty, c.d)
		if got != c.want || ok != (c.want != "" || c.d == "") {
			t.Errorf("%s %v: %q, %v, want %q", c.typ, c.d, got, ok, c.want)
		}
		if !ok {
			continue
		}
		back, ok := statValue(ty, got)
		if x, comparable := predicate.Compare(ty, back, c.d); !ok || !comparable || x != 0 {
			t.Errorf("%s %q is read as %v, %v", c.typ, got, back, ok)
		}
	}
	long := make([]byte, maxStatText+1)
	for _, s := range []string{string(long), "\xff"} {
		if _, ok := statText(paimonType(t, "STRING"), s); ok {
			t.Errorf("%.10q has text", s)
		}
	}
	for _, c := range []struct{ typ, text string }{
		{"BOOLEAN", "maybe"}, {"TINYINT", "128"}, {"INT", "2147483648"}, {"INT", "1.0"}, {"DOUBLE", "x"}, {"DECIMAL(5, 0)", "NaN"}, {"DECIMAL(5, 0)", ""},
		{"DATE", "2021-01-01"}, {"TIME(0)", "86400000"}, {"TIMESTAMP(6)", "2021-13-01 00:00:00"}, {"TIMESTAMP(9)", "0001-01-01 00:00:00"}, {"BYTES", "*"}, {"ARRAY<INT>", "[1]"},
	} {
		if v, ok := statValue(paimonType(t, c.typ), c.text); ok {
			t.Errorf("%s %q is %v", c.typ, c.text, v)
		}
	}
	if v, ok := statValue(paimonType(t, "BYTES"), "YWJj"); !ok || string(v.([]byte)) != "abc" {
		t.Errorf("bytes are %v", v)
	}
}

// FuzzStatistics: no text makes the reader of statistics files panic, and what is read
// as a value of a type has a text that is read as the same.
func FuzzStatistics(f *testing.F) {
	for _, s := range []string{`{"snapshotId":1,"schemaId":0,"colStats":{"a":{"colId":0,"min":"1","max":"2"}}}`, "2021-01-01 00:00:00.5", "1.5E10", "-1", "NaN", "null", `{"colStats":{"a":null}}`} {
		f.Add(s)
	}
	var all []types.Type
	for _, s := range []string{"BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "DATE", "TIME(3)", "TIMESTAMP(3)", "TIMESTAMP(9)", "STRING", "BYTES", "ARRAY<INT>"} {
		all = append(all, paimonType(f, s))
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, ty := range all {
			d, ok := statValue(ty, s)
			if !ok {
				continue
			}
			out, ok := statText(ty, d)
			if !ok {
				continue
			}
			back, ok := statValue(ty, out)
			if x, _ := predicate.Compare(ty, d, back); !ok || x != 0 {
				t.Fatalf("%v: %q is %v, which is written as %q and read as %v", ty, s, d, out, back)
			}
		}
		io := fileio.NewMem()
		if err := io.Put(t.Context(), workDir+"/statistics/s", []byte(s)); err != nil {
			t.Fatal(err)
		}
		env := NewEnv(io, EnvOptions{})
		defer env.Close()
		st, err := Open(env, workDir).Statistics(t.Context(), "s")
		if err != nil {
			if !typed(err) {
				t.Fatal(err)
			}
			return
		}
		for _, c := range st.Columns {
			for _, ty := range all {
				c.Bounds(ty)
			}
		}
	})
}

// TestDistinctCount: exact while few, and near the truth for many, however the
// hashes are shared out.
func TestDistinctCount(t *testing.T) {
	r := rand.New(rand.NewSource(5))
	for _, n := range []int{0, 1, 2, 63, 64, 65, 4000, distinctExact, distinctExact + 1, 5000, 10_000, 60_000, 300_000} {
		parts := make([]distinctCount, 3)
		for i := range n {
			h := vec.HashU64(0, uint64(i))
			if i == 0 {
				h = 0 // no slot can hold it
			}
			for range 1 + r.Intn(2) {
				parts[r.Intn(3)].add(h)
			}
		}
		got := parts[0]
		got.merge(&parts[1])
		got.merge(&parts[2])
		off := math.Abs(float64(got.count()) - float64(n))
		if n <= distinctExact && off != 0 || off > 0.03*float64(n) {
			t.Errorf("%d values are counted as %d", n, got.count())
		}
		if got.bytes() > 64<<10 {
			t.Errorf("%d values take %d bytes", n, got.bytes())
		}
	}
}

// columnModel is what a column's statistics must be.
type columnModel struct {
	rows, nulls int64
	seen        map[string]bool
	lo, hi      types.Datum
}

func (m *columnModel) add(ty types.Type, d types.Datum) {
	m.rows++
	if d == nil {
		m.nulls++
		return
	}
	k := text(ty, d)
	switch v := d.(type) {
	case float64:
		k = fmt.Sprint(v + 0) // -0
		if v == 0 {
			k = "0"
		}
	case *numeric.Dec:
		k = schemaText(v)
	}
	m.seen[k] = true
	if x, ok := predicate.Compare(ty, d, m.lo); m.lo == nil || ok && x < 0 {
		m.lo = d
	}
	if x, ok := predicate.Compare(ty, d, m.hi); m.hi == nil || ok && x > 0 {
		m.hi = d
	}
}

func schemaText(d *numeric.Dec) string { return fmt.Sprintf("%s/%d", d.Coef.String(), d.Scale) }

// TestColumnSketch compares sketches of random batches of every type, plain and as
// dictionaries, shared out and merged, with sets of values.
func TestColumnSketch(t *testing.T) {
	for _, f := range formattest.AllTypes() {
		for seed := range int64(4) {
			g := &formattest.Gen{Rand: rand.New(rand.NewSource(seed)), Nulls: 0.2 * float64(seed%2), Distinct: int(seed/2) * 50}
			parts := []*columnSketch{newColumnSketch(f), newColumnSketch(f)}
			m := &columnModel{seen: map[string]bool{}}
			deep := parts[0].deep
			for i := range 6 {
				n := 1 + g.Intn(400)
				a := g.Array(f.Type, n)
				for row := range n {
					if deep {
						if m.rows++; a.IsNull(row) {
							m.nulls++
						}
						continue
					}
					m.add(f.Type, vec.DatumAt(a, f.Type, row))
				}
				if i%2 == 1 && !deep {
					a = asDictionary(a, i > 3)
				}
				if n > 10 && i == 2 { // a slice has an offset
					parts[0].add(vec.Slice(a, 0, 7), 7)
					a, n = vec.Slice(a, 7, n), n-7
				}
				parts[i/3].add(a, n)
			}
			for _, c := range parts {
				c.flush()
			}
			parts[0].merge(parts[1])
			c := parts[0]
			got := c.result(false)
			name := fmt.Sprintf("%s, seed %d", f.Name, seed)
			if c.rows != m.rows || *got.Nulls != m.nulls {
				t.Errorf("%s: %d rows, %d NULLs, want %d, %d", name, c.rows, *got.Nulls, m.rows, m.nulls)
			}
			if deep {
				if got.Distinct != nil || got.Min != nil {
					t.Errorf("%s: %+v", name, got)
				}
				continue
			}
			if *got.Distinct != int64(len(m.seen)) {
				t.Errorf("%s: %d distinct values, want %d", name, *got.Distinct, len(m.seen))
			}
			if f.Type.Kind == types.Bytea || m.lo == nil {
				continue
			}
			if x, _ := predicate.Compare(f.Type, c.lo, m.lo); x != 0 {
				t.Errorf("%s: min is %v, want %v", name, c.lo, m.lo)
			}
			if x, _ := predicate.Compare(f.Type, c.hi, m.hi); x != 0 {
				t.Errorf("%s: max is %v, want %v", name, c.hi, m.hi)
			}
		}
	}
}

// asDictionary makes a dictionary of a's values, one each, with one more that no row
// has; sameNulls puts NULLs into the dictionary rather than beside the indices.
func asDictionary(a arrow.Array, inside bool) arrow.Array {
	n := a.Len()
	idx := make([]int32, n)
	valid := vec.FullBitmap(n)
	for i := range idx {
		idx[i] = int32(i)
		if a.IsNull(i) && !inside {
			vec.ClearBit(valid, i)
			idx[i] = -5 // nobody may look at it
		}
	}
	return vec.MakeDict(idx, valid, a)
}

// TestDistinctNow: columns of keys grow with the table, those of categories do not.
func TestDistinctNow(t *testing.T) {
	for _, c := range []struct{ d, then, now, want int64 }{
		{0, 0, 0, 0}, {0, 0, 50, 0}, {5, 1000, 2000, 5}, {100, 1000, 2000, 100}, {101, 1000, 2000, 202}, {1000, 1000, 2000, 2000}, {1000, 1000, 10, 10},
		{100, 1000, 50, 50}, {5, 1000, 0, 0}, {2000, 1000, 1000, 1000},
	} {
		if got := distinctNow(c.d, c.then, c.now); got != c.want {
			t.Errorf("%d of %d are %d of %d, want %d", c.d, c.then, got, c.now, c.want)
		}
	}
}

// analyzed writes rows into a table with columns k, a, s and analyzes it.
func analyzedTable(t testing.TB, io fileio.FileIO, pk []string, opts map[string]string, rows int) *compactTable {
	if opts == nil {
		opts = map[string]string{}
	}
	if _, ok := opts["bucket"]; !ok && pk != nil {
		opts["bucket"] = "2"
	}
	c := newCompactTable(t, io, tableSchema(t, opts, pk, "k BIGINT", "a INT", "s STRING"), EnvOptions{})
	c.mustWrite(someRows(0, rows), nil)
	return c
}

func someRows(from, to int) (rows [][]types.Datum) {
	for i := from; i < to; i++ {
		row := []types.Datum{int64(i), int64(i % 7), fmt.Sprintf("v%d", i%20)}
		if i%10 == 0 {
			row[1] = nil
		}
		rows = append(rows, row)
	}
	return rows
}

func (c *compactTable) analyze(o AnalyzeOptions) *AnalyzeReport {
	c.t.Helper()
	r, err := c.s.Analyze(context.Background(), o)
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

func (c *compactTable) stats() *Stats {
	c.t.Helper()
	s, err := c.s.Stats(context.Background(), snapshot.Ref{})
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

func (c *compactTable) newest() *snapshot.Snapshot {
	c.t.Helper()
	s, err := c.s.Snapshots("").Latest(context.Background())
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// TestAnalyze: what is found in tables of both kinds, how it is kept by column, and
// what planning makes of it as the table grows.
func TestAnalyze(t *testing.T) {
	for _, pk := range [][]string{nil, {"k"}} {
		c := analyzedTable(t, fileio.NewMem(), pk, nil, 1000)
		r := c.analyze(AnalyzeOptions{Columns: []string{"a"}})
		if r.SnapshotID != 2 || r.Scanned != 1 || r.Rows != 1000 || r.Total != 1000 {
			t.Errorf("%+v", r)
		}
		c.analyze(AnalyzeOptions{Columns: []string{"s"}})
		snap := c.newest()
		if snap.CommitKind != "ANALYZE" || *snap.DeltaRecordCount != 0 || *snap.TotalRecordCount != 1000 {
			t.Errorf("%+v", snap)
		}
		st, err := c.s.Statistics(t.Context(), snap.Statistics)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := json.Marshal(st.Columns)
		want := `{"a":{"colId":1,"distinctCount":7,"min":"0","max":"6","nullCount":100,"avgLen":4,"maxLen":4},"s":{"colId":2,"distinctCount":20,"min":"v0","max":"v9","nullCount":0,"avgLen":3,"maxLen":3}}`
		if string(got) != want {
			t.Errorf("%s", got)
		}
		if st.SnapshotID != 2 || *st.Rows != 1000 || *st.Total != 1000 || *st.Bytes <= 0 {
			t.Errorf("%+v", st)
		}
		c.analyze(AnalyzeOptions{})
		c.analyze(AnalyzeOptions{Columns: []string{}}) // rows only: the columns stay
		known := func(rows, k, a, s, nulls int64) {
			t.Helper()
			x := c.stats()
			if x.Rows != rows || x.Columns[0].Distinct != k || x.Columns[1].Distinct != a || x.Columns[2].Distinct != s || x.Columns[1].NullCount != nulls || x.Problem != nil {
				t.Errorf("%v: %+v", pk, x)
			}
		}
		known(1000, 1000, 7, 20, 100)
		if w := c.stats().Columns[2].AverageBytes; w != 3 {
			t.Errorf("%v bytes", w)
		}
		c.mustWrite(someRows(1000, 3000), nil) // the file is kept
		known(3000, 3000, 7, 20, 300)
		if pk == nil {
			continue
		}
		c.mustWrite(someRows(0, 2999), nil) // the same keys again: 3,000 by what was known, 5,999 in files
		if x := c.stats(); x.Rows < 3000 || x.Rows > 5999 {
			t.Errorf("%d rows", x.Rows)
		}
		r = c.analyze(AnalyzeOptions{})
		if r.Rows != 3000 || r.Total != 5999 {
			t.Errorf("%+v", r)
		}
		known(3000, 3000, 7, 20, 300)
		c.compact(CompactOptions{Full: true}) // fewer versions, as many keys
		known(3000, 3000, 7, 20, 300)
		c.mustWrite(someRows(0, 3000), nil)
		if x := c.stats(); x.Rows < 3000 || x.Rows > 3100 {
			t.Errorf("%d rows", x.Rows)
		}
		c.check("analyzed")
		c.noStray()
	}
}

// TestAnalyzeNothing: a table without rows, and one without snapshots.
func TestAnalyzeNothing(t *testing.T) {
	c := newCompactTable(t, fileio.NewMem(), tableSchema(t, nil, nil, "k BIGINT", "s STRING", "b BYTES", "l ARRAY<INT>"), EnvOptions{})
	if r := c.analyze(AnalyzeOptions{}); *r != (AnalyzeReport{}) {
		t.Errorf("%+v", r)
	}
	c.mustWrite([][]types.Datum{{nil, nil, nil, nil}}, nil)
	c.analyze(AnalyzeOptions{})
	if x := c.stats(); x.Rows != 1 || x.Columns[0].NullCount != 1 || x.Columns[0].Distinct != 0 || x.Columns[0].Min != nil {
		t.Errorf("%+v", x)
	}
	if _, err := c.s.Analyze(t.Context(), AnalyzeOptions{Columns: []string{"nosuch"}}); err == nil {
		t.Error("a column that is not there was analyzed")
	}
}

// TestStatisticsKept: which snapshots name the file, and when it goes.
func TestStatisticsKept(t *testing.T) {
	ctx := t.Context()
	io := fileio.NewMem()
	c := analyzedTable(t, io, nil, map[string]string{"snapshot.num-retained.min": "1"}, 100)
	c.analyze(AnalyzeOptions{})
	first := c.newest().Statistics
	there := func(name string) bool {
		_, err := io.Stat(ctx, workDir+"/statistics/"+name)
		return err == nil
	}
	if err := c.s.CreateTag(ctx, "", "old", 2, 0); err != nil {
		t.Fatal(err)
	}
	c.mustWrite(someRows(100, 200), nil)
	c.compact(CompactOptions{Full: true})
	if got := c.newest().Statistics; got != first {
		t.Errorf("a later snapshot names %q", got)
	}
	c.analyze(AnalyzeOptions{})
	second := c.newest().Statistics
	if second == first {
		t.Fatal("nothing new")
	}
	expire := func() {
		t.Helper()
		if _, err := c.s.Expire(ctx, ExpireOptions{RetainMax: 1, RetainMin: 1}); err != nil {
			t.Fatal(err)
		}
		noOrphans(t, io)
	}
	expire()
	if !there(first) || !there(second) {
		t.Error("a file that the tag, or the newest snapshot, names is gone")
	}
	if s, err := c.s.Stats(ctx, snapshot.Ref{Kind: snapshot.Tag, Name: "old"}); err != nil || s.Rows != 100 || s.Columns[2].Distinct != 20 || !s.Columns[2].Analyzed {
		t.Errorf("at the tag: %+v, %v", s, err)
	}
	// Rolled back to a state of the tag, the tag's file counts; the other lies about, as
	// all that a rollback takes out of the table does.
	if err := c.s.RollbackTo(ctx, "", snapshot.Ref{Kind: snapshot.Tag, Name: "old"}); err != nil {
		t.Fatal(err)
	}
	if got := c.newest().Statistics; got != first || !there(first) {
		t.Errorf("after the rollback: %q, %v", got, there(first))
	}
	if x := c.stats(); x.Rows != 100 || x.Columns[2].Distinct != 20 {
		t.Errorf("after the rollback: %+v", x)
	}
	if err := c.s.DeleteTag(ctx, "", "old"); err != nil {
		t.Fatal(err)
	}
	// Another schema: later snapshots do not name the file, and it goes with the last
	// that does.
	next := *c.sch
	next.ID = 1
	next.Fields = append(slices.Clone(next.Fields), fieldOfType(t, 3, "n", "INT"))
	next.HighestFieldID = 3
	putSchema(t, io, &next)
	c.sch = &next
	rows := someRows(0, 10)
	for i := range rows {
		rows[i] = append(rows[i], int64(i))
	}
	c.mustWrite(rows, nil)
	if got := c.newest().Statistics; got != "" {
		t.Errorf("of another schema: %q", got)
	}
	if _, err := c.s.Expire(ctx, ExpireOptions{RetainMax: 1, RetainMin: 1}); err != nil {
		t.Fatal(err)
	}
	if there(first) {
		t.Error("a file that nobody names is there")
	}
	c.analyze(AnalyzeOptions{})
	if x := c.stats(); !x.Columns[3].Analyzed || x.Columns[3].Distinct != 10 {
		t.Errorf("%+v", x.Columns[3])
	}
}

// TestStatisticsDamaged: a file that is missing or no statistics is passed over, and
// the next ANALYZE makes it good.
func TestStatisticsDamaged(t *testing.T) {
	ctx := t.Context()
	for _, damage := range []string{"", "{", "[]", "null", `{"snapshotId":1}`, `{"snapshotId":1,"schemaId":99,"colStats":{"a":{"colId":1}}}`} {
		io := fileio.NewMem()
		c := analyzedTable(t, io, []string{"k"}, nil, 100)
		c.analyze(AnalyzeOptions{})
		path := workDir + "/statistics/" + c.newest().Statistics
		err := io.Put(ctx, path, []byte(damage))
		if damage == "" {
			err = io.Delete(ctx, path)
		}
		if err != nil {
			t.Fatal(err)
		}
		c.s = Open(c.s.Env(), workDir)
		if x := c.stats(); x.Problem == nil || !typed(x.Problem) && damage[:min(len(damage), 15)] != `{"snapshotId":1` || x.Rows != 100 || x.Columns[1].Analyzed {
			t.Errorf("%q: %+v", damage, x)
		}
		c.check(damage)
		c.mustWrite(someRows(100, 110), nil)
		c.analyze(AnalyzeOptions{Columns: []string{"a"}})
		if x := c.stats(); x.Problem != nil || x.Rows != 110 || x.Columns[1].Distinct != 7 {
			t.Errorf("%q, mended: %+v", damage, x)
		}
	}
	// Members that make no sense are not believed.
	io := fileio.NewMem()
	c := analyzedTable(t, io, nil, nil, 100)
	c.analyze(AnalyzeOptions{})
	odd := `{"snapshotId":1,"schemaId":0,"mergedRecordCount":-5,"colStats":{"a":{"colId":1,"distinctCount":-3,"nullCount":99999,"avgLen":-1,"min":"z","max":"0"},"s":{"colId":77},"k":{"colId":0,"distinctCount":9000000000}}}`
	if err := io.Put(ctx, workDir+"/statistics/"+c.newest().Statistics, []byte(odd)); err != nil {
		t.Fatal(err)
	}
	c.s = Open(c.s.Env(), workDir)
	if x := c.stats(); x.Rows != 100 || x.Columns[0].Distinct != 100 || x.Columns[1].Distinct != 0 || x.Columns[1].NullCount > 100 || x.Columns[2].Analyzed {
		t.Errorf("%+v", x)
	}
}

// TestJavaStatistics reads the file that Spark's ANALYZE wrote.
func TestJavaStatistics(t *testing.T) {
	dir := shared(t, "fixtures/java/warehouse")
	env := NewEnv(fileio.NewLocal(dir), EnvOptions{})
	t.Cleanup(env.Close)
	s := Open(env, "refs.db/statistics")
	names, err := filepath.Glob(dir + "/refs.db/statistics/statistics/stat-*")
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	st, err := s.Statistics(t.Context(), filepath.Base(names[0]))
	if err != nil || *st.Rows != 30 || *st.Columns["s"].Distinct != 15 || *st.Columns["id"].Max != "29" {
		t.Errorf("%+v, %v", st, err)
	}
	x, err := s.Stats(t.Context(), snapshot.Ref{})
	if err != nil || x.Rows != 30 || x.Columns[1].Distinct != 15 || x.Columns[1].AverageBytes != 6 || x.Columns[0].Distinct != 30 {
		t.Errorf("%+v, %v", x, err)
	}
}

// TestSparkStatistics reads the bounds of each type in the file that Spark 3.5 wrote of
// three rows, one of them NULL.
func TestSparkStatistics(t *testing.T) {
	raw, err := os.ReadFile("testdata/statistics-spark.json")
	if err != nil {
		t.Fatal(err)
	}
	var st Statistics
	if err := json.Unmarshal(raw, &st); err != nil {
		t.Fatal(err)
	}
	at := func(s string) int64 {
		v, err := time.Parse(time.DateTime, s)
		if err != nil {
			t.Fatal(err)
		}
		return v.UnixMicro()
	}
	for _, c := range []struct {
		name, typ string
		lo, hi    types.Datum
	}{
		{"b", "BOOLEAN", false, true},
		{"ti", "TINYINT", int64(-128), int64(1)},
		{"si", "SMALLINT", int64(-2), int64(2)},
		{"i", "INT", int64(-3), int64(3)},
		{"bi", "BIGINT", int64(-4), int64(4)},
		{"f", "FLOAT", 1.5, math.NaN()},
		{"d", "DOUBLE", -2.5e300, 1e-7},
		{"dec", "DECIMAL(10, 2)", decimalOf(t, "-1.50"), decimalOf(t, "1.50")},
		{"decbig", "DECIMAL(38, 18)", decimalOf(t, "1"), decimalOf(t, "12345678901234567890.123456789012345678")},
		{"dt", "DATE", int64(-303), int64(18690)},
		{"ts", "TIMESTAMP(6) WITH LOCAL TIME ZONE", at("1960-03-04 05:06:07"), at("2021-03-04 05:06:07") + 123456},
		{"s", "STRING", nil, nil},
		{"c", "CHAR(5)", nil, nil},
		{"bin", "BYTES", nil, nil},
	} {
		ty := paimonType(t, c.typ)
		got := st.Columns[c.name]
		if got == nil || *got.Nulls != 1 || *got.Distinct != 2 {
			t.Errorf("%s: %+v", c.name, got)
			continue
		}
		lo, hi := got.Bounds(ty)
		if c.lo == nil {
			if lo != nil || hi != nil {
				t.Errorf("%s: %v to %v", c.name, lo, hi)
			}
			continue
		}
		x, ok := predicate.Compare(ty, lo, c.lo)
		y, too := predicate.Compare(ty, hi, c.hi)
		if !ok || !too || x != 0 || y != 0 {
			t.Errorf("%s: %v to %v, want %v to %v", c.name, lo, hi, c.lo, c.hi)
		}
	}
}
