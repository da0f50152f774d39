package table

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// metadataOnly makes a partitioned append table of n data files that do not
// exist, in 10 manifests.
func metadataOnly(t testing.TB, n int) *FileStore {
	s := tableSchema(t, map[string]string{"bucket": "-1"}, nil, "p INT", "a BIGINT", "b STRING")
	s.PartitionKeys = []string{"p"}
	b := newBuilt(t, s)
	ts := s.Fields.Types()
	image := func(vals ...types.Datum) []byte {
		img, err := binrow.Encode(ts[:len(vals)], vals)
		if err != nil {
			t.Fatal(err)
		}
		return img
	}
	var metas []manifest.FileMeta
	const per = 10
	for m := range per {
		var es []manifest.Entry
		for i := m * n / per; i < (m+1)*n/per; i++ {
			part := int64(i * 100 / n)
			es = append(es, manifest.Entry{Partition: image(part), TotalBuckets: -1, File: &manifest.DataFile{
				Name: fmt.Sprintf("data-00000000-0000-4000-8000-%012d-0.parquet", i), Size: 1 << 20, Rows: 1000, DeleteRows: 0, FirstRowID: -1,
				ValueStats: manifest.Stats{Min: image(part, int64(i), "a"), Max: image(part, int64(i+1), "b"), NullCounts: []int64{0, 0, 0}},
			}})
		}
		raw, err := manifest.EncodeEntries(es, manifest.Arity{Partition: 1}, manifest.Codec{})
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("manifest-6e1f1f2c-55f4-4c2b-9c0b-1f1f2c55f44c-%d", m)
		b.put("manifest/"+name, raw)
		lo, hi := image(int64(m*100/per)), image(int64((m+1)*100/per))
		metas = append(metas, manifest.FileMeta{Name: name, PartitionStats: manifest.Stats{Min: lo, Max: hi, NullCounts: []int64{0}}})
	}
	b.put("manifest/manifest-list-a-0", manifest.EncodeList(metas, manifest.Codec{}))
	b.put("manifest/manifest-list-a-1", manifest.EncodeList(nil, manifest.Codec{}))
	js, err := snapshot.Encode(&snapshot.Snapshot{Version: 3, ID: 1, BaseManifestList: "manifest-list-a-0", DeltaManifestList: "manifest-list-a-1", CommitKind: "APPEND"})
	if err != nil {
		t.Fatal(err)
	}
	b.put("snapshot/snapshot-1", js)
	env := NewEnv(b.io, EnvOptions{VerdictRows: 1})
	t.Cleanup(env.Close)
	return Open(env, b.dir)
}

func TestPlanReport(t *testing.T) {
	tb := metadataOnly(t, 1000)
	ctx := context.Background()
	sch, err := tb.Schema(ctx, snapshot.Ref{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		f                             predicate.Node
		manifests, parts, files, stat int64
	}{
		{nil, 10, 100, 1000, 0},
		{leafOn(sch.Fields, 0, predicate.Eq, int64(55)), 1, 1, 10, 0},
		{leafOn(sch.Fields, 1, predicate.Lt, int64(5)), 10, 100, 5, 995},
		{&predicate.And{Args: []predicate.Node{leafOn(sch.Fields, 0, predicate.Lt, int64(5)), leafOn(sch.Fields, 2, predicate.Gt, "b")}}, 1, 5, 0, 50},
	} {
		p, err := tb.Plan(ctx, Scan{Filter: c.f, Limit: -1})
		if err != nil {
			t.Fatal(err)
		}
		r := p.Report
		if r.Manifests != 10 || r.ManifestsRead != c.manifests || r.PartitionsRead != c.parts || r.FilesRead != c.files || r.Skipped["stats"] != c.stat || r.SnapshotID != 1 {
			t.Errorf("%v: %+v", c.f, *r)
		}
		n := int64(0)
		for _, s := range p.Splits {
			n += int64(len(s.Files))
		}
		if n != c.files {
			t.Errorf("%d files in splits, want %d", n, c.files)
		}
	}
}

// TestLimit: planning stops only on rows that certainly live (user report A12).
func TestLimit(t *testing.T) {
	ctx := context.Background()
	s := tableSchema(t, map[string]string{"bucket": "-1"}, nil, "a INT")
	b := newBuilt(t, s)
	for i := range int64(6) {
		f := b.addFile(0, int32(i), []row{{0, 0, []types.Datum{i}}}, 10)
		if i < 2 {
			b.deletePos(f, 0)
		}
	}
	tb := b.commit(EnvOptions{VerdictRows: 1})
	p, err := tb.Plan(ctx, Scan{Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := readAll(ctx, tb, Scan{Limit: 2}, ReadOptions{})
	if err != nil || len(got) < 2 || len(p.Splits) >= 6 {
		t.Errorf("%d splits, rows %v, %v", len(p.Splits), got, err)
	}
	f := leafOn(s.Fields, 0, predicate.GtEq, int64(0))
	if p, err := tb.Plan(ctx, Scan{Limit: 1, Filter: f}); err != nil || len(p.Splits) != 6 {
		t.Errorf("with a filter %d splits, %v", len(p.Splits), err)
	}
}

// TestBuckets: an equality on the bucket key reads one bucket.
func TestBuckets(t *testing.T) {
	ctx := context.Background()
	s := tableSchema(t, map[string]string{"bucket": "4"}, []string{"k"}, "k INT", "v INT")
	b := newBuilt(t, s)
	for k := range int64(200) {
		img, _ := binrow.Encode([]types.Type{s.Fields[0].Type}, []types.Datum{k})
		n := binrow.BucketOf(img, 4)
		b.addFile(0, n, []row{{k, 0, []types.Datum{k, k * 2}}}, 10)
	}
	for i := range b.entries {
		b.entries[i].TotalBuckets = 4
	}
	tb := b.commit(EnvOptions{VerdictRows: 1})
	for k := range int64(200) {
		sc := Scan{Filter: leafOn(s.Fields, 0, predicate.Eq, k), Limit: -1}
		p, err := tb.Plan(ctx, sc)
		if err != nil || p.Report.BucketsRead != 1 || p.Report.Buckets != 4 || p.Report.FilesRead != 1 {
			t.Fatalf("k = %d: %+v, %v", k, p.Report, err)
		}
		if got, _, err := readAll(ctx, tb, sc, ReadOptions{}); err != nil || !slices.Equal(got, []string{fmt.Sprintf("%d | %d", k, k*2)}) {
			t.Fatalf("k = %d: %v, %v", k, got, err)
		}
	}
}

// TestPseudoColumns gives writers what they need to find a row again.
func TestPseudoColumns(t *testing.T) {
	ctx := context.Background()
	s := tableSchema(t, map[string]string{"bucket": "1"}, []string{"k"}, "k INT", "v INT")
	b := newBuilt(t, s)
	v := func(k, v int64) []types.Datum { return []types.Datum{k, v} }
	f := b.addFile(1, 0, []row{{10, 0, v(1, 1)}, {11, 0, v(2, 2)}, {12, 0, v(3, 3)}, {13, 0, v(4, 4)}}, 2)
	b.deletePos(f, 1)
	g := b.addFile(0, 0, []row{{20, 3, v(1, 1)}, {21, 2, v(4, 5)}}, 2)
	tb := b.commit(EnvOptions{VerdictRows: 1})
	sc := Scan{Columns: []int{0, PseudoFile, PseudoPos, PseudoSequence, PseudoKind}, Limit: -1}
	got, _, err := readAll(ctx, tb, sc, ReadOptions{})
	at := func(name string) string { return fmt.Sprintf("%q", "bucket-0/"+name) }
	want := []string{
		"1 | " + at(g.Name) + " | 0 | 20 | 3",
		"3 | " + at(f.Name) + " | 2 | 12 | 0",
		"4 | " + at(g.Name) + " | 1 | 21 | 2",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v\nwant %v", got, err, want)
	}
}

// TestStats sums rows and bounds.
func TestStats(t *testing.T) {
	ctx := context.Background()
	s := tableSchema(t, map[string]string{"bucket": "-1"}, nil, "a INT", "b STRING")
	b := newBuilt(t, s)
	f := b.addFile(0, 0, []row{{0, 0, []types.Datum{int64(5), "x"}}, {1, 0, []types.Datum{int64(9), nil}}}, 10)
	b.addFile(0, 0, []row{{0, 0, []types.Datum{int64(-1), "a"}}}, 10)
	b.deletePos(f, 0)
	st, err := b.commit(EnvOptions{VerdictRows: 1}).Stats(ctx, snapshot.Ref{})
	if err != nil || st.Rows != 2 {
		t.Fatal(st, err)
	}
	if c := st.Columns[0]; c.Min != int64(-1) || c.Max != int64(9) || c.NullCount != 0 {
		t.Errorf("%+v", c)
	}
	if c := st.Columns[1]; c.Min != "a" || c.Max != "x" || c.NullCount != 1 {
		t.Errorf("%+v", c)
	}
}

// TestGet looks keys up, with some that are not there.
func TestGet(t *testing.T) {
	ctx := context.Background()
	m, _ := loadMem(t, "merge.db/seq2")
	env := NewEnv(m, EnvOptions{VerdictRows: 1})
	defer env.Close()
	tb := Open(env, "merge.db/seq2")
	sch, err := tb.Schema(ctx, snapshot.Ref{})
	if err != nil {
		t.Fatal(err)
	}
	rows, _, err := readAll(ctx, tb, Scan{Columns: []int{sch.Fields.Index(sch.PrimaryKeys[0])}, Limit: -1}, ReadOptions{})
	if err != nil || len(rows) == 0 {
		t.Fatal(rows, err)
	}
	var ks []types.Datum
	for _, r := range rows {
		var k int64
		if _, err := fmt.Sscan(r, &k); err != nil {
			t.Skip("the key is not an integer")
		}
		ks = append(ks, k)
	}
	ks = append(ks, int64(1<<30), nil)
	testGet(t, tb, sch, ks, len(rows))
}

// TestResolvePins: a statement reads one snapshot by one schema.
func TestResolvePins(t *testing.T) {
	ctx := context.Background()
	s := tableSchema(t, nil, nil, "a INT")
	b := newBuilt(t, s)
	b.addFile(0, 0, []row{{0, 0, []types.Datum{int64(1)}}}, 10)
	tb := b.commit(EnvOptions{VerdictRows: 1})
	at, err := tb.Resolve(ctx, snapshot.Ref{})
	if err != nil || at.Kind != snapshot.ID || at.ID != 1 || at.Schema != 1 {
		t.Fatal(at, err)
	}
	// A column is added while a statement runs: it goes on with the schema it has.
	s2 := &schema.Table{ID: 1, Version: 3, Fields: append(slices.Clone(s.Fields), fieldOfType(t, 1, "b", "INT")), HighestFieldID: 1}
	b.putSchema(s2)
	if sch, err := tb.Schema(ctx, at); err != nil || len(sch.Fields) != 1 {
		t.Errorf("pinned: %v, %v", sch, err)
	}
	if sch, err := tb.Schema(ctx, snapshot.Ref{}); err != nil || len(sch.Fields) != 2 {
		t.Errorf("latest: %v, %v", sch, err)
	}
	if rows, _, err := readAll(ctx, tb, Scan{Limit: -1}, ReadOptions{}); err != nil || !slices.Equal(rows, []string{"1 | null"}) {
		t.Errorf("latest: %v, %v", rows, err)
	}
	if rows, _, err := readAll(ctx, tb, Scan{At: at, Limit: -1}, ReadOptions{}); err != nil || !slices.Equal(rows, []string{"1"}) {
		t.Errorf("pinned: %v, %v", rows, err)
	}
}

func BenchmarkPlan(b *testing.B) {
	const n = 100_000
	tb := metadataOnly(b, n)
	ctx := context.Background()
	sch, err := tb.Schema(ctx, snapshot.Ref{})
	if err != nil {
		b.Fatal(err)
	}
	for name, f := range map[string]predicate.Node{
		"all": nil, "partition": leafOn(sch.Fields, 0, predicate.Eq, int64(55)), "value": leafOn(sch.Fields, 1, predicate.Lt, int64(5)),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := tb.Plan(ctx, Scan{Filter: f, Limit: -1}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/file")
		})
	}
}
