package table

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// compactTable is a table with a model beside it: what its rows must be.
type compactTable struct {
	t    testing.TB
	io   fileio.FileIO
	s    *FileStore
	sch  *schema.Table
	key  []int // columns of the model's key
	mu   sync.Mutex
	rows map[string]string // key -> row
	seqs map[string]int64  // key -> value of the sequence field, NULL being lowest
}

func newCompactTable(t testing.TB, io fileio.FileIO, s *schema.Table, o EnvOptions) *compactTable {
	newWork(t, io, s)
	if o.VerdictRows == 0 {
		o.VerdictRows = 1
	}
	env := NewEnv(io, o)
	t.Cleanup(env.Close)
	c := &compactTable{t: t, io: io, s: Open(env, workDir), sch: s, rows: map[string]string{}, seqs: map[string]int64{}}
	for i, f := range s.Fields {
		if len(s.PrimaryKeys) == 0 || slices.Contains(s.PrimaryKeys, f.Name) {
			c.key = append(c.key, i)
		}
	}
	return c
}

func (c *compactTable) text(row []types.Datum) (key, all string) {
	var ks, ps []string
	for i, f := range c.sch.Fields {
		p := text(f.Type, row[i])
		ps = append(ps, p)
		if slices.Contains(c.key, i) {
			ks = append(ks, p)
		}
	}
	return strings.Join(ks, " | "), strings.Join(ps, " | ")
}

func batchOf(s types.Schema, rows [][]types.Datum) *vec.Batch {
	b := &vec.Batch{Schema: s, N: len(rows)}
	for i, f := range s {
		vals := make([]types.Datum, len(rows))
		for r := range rows {
			vals[r] = rows[r][i]
		}
		b.Cols = append(b.Cols, vec.FromDatums(f.Type, vals))
	}
	return b
}

// write commits rows; kinds as in Writer.Write. Where another writer came first with
// higher sequence numbers the rows are written again.
func (c *compactTable) write(rows [][]types.Datum, kinds []uint8) error {
	for {
		err := c.writeOnce(rows, kinds)
		var lost *commit.ConflictError
		if !errors.As(err, &lost) || !lost.Sequence {
			return err
		}
	}
}

func (c *compactTable) writeOnce(rows [][]types.Datum, kinds []uint8) error {
	ctx := context.Background()
	at, err := c.s.Resolve(ctx, snapshot.Ref{})
	if err != nil {
		return err
	}
	w, err := c.s.Write(ctx, WriteOptions{At: at})
	if err != nil {
		return err
	}
	if err := w.Write(ctx, batchOf(c.sch.Fields, rows), kinds); err != nil {
		return err
	}
	ch, err := w.Prepare(ctx)
	if err != nil {
		return err
	}
	if _, err = c.s.Commit(ctx, ch); err != nil {
		return errors.Join(err, c.s.Discard(ctx, ch))
	}
	return nil
}

// apply changes the model as write changed the table.
func (c *compactTable) apply(rows [][]types.Datum, kinds []uint8) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, row := range rows {
		k, all := c.text(row)
		if len(c.sch.PrimaryKeys) == 0 {
			k = fmt.Sprint(len(c.rows))
		}
		if kinds != nil && kinds[i]&1 != 0 {
			if c.sch.Options["ignore-delete"] == "" {
				delete(c.rows, k)
			}
			continue
		}
		if f := c.sch.Options["sequence.field"]; f != "" {
			v, ok := row[c.sch.Fields.Index(f)].(int64)
			if !ok {
				v = math.MinInt64
			}
			if old, ok := c.seqs[k]; ok && v < old {
				continue
			}
			c.seqs[k] = v
		}
		c.rows[k] = all
	}
}

func (c *compactTable) mustWrite(rows [][]types.Datum, kinds []uint8) {
	c.t.Helper()
	if err := c.write(rows, kinds); err != nil {
		c.t.Fatal(err)
	}
	c.apply(rows, kinds)
}

func (c *compactTable) compact(o CompactOptions) *CompactReport {
	c.t.Helper()
	r, err := c.s.Compact(context.Background(), o)
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// check compares the table, as a fresh process reads it, with the model.
func (c *compactTable) check(when string) {
	c.t.Helper()
	env := NewEnv(c.io, EnvOptions{})
	defer env.Close()
	got, _, err := readAll(context.Background(), Open(env, workDir), Scan{Limit: -1}, ReadOptions{})
	if err != nil {
		c.t.Fatalf("%s: %v", when, err)
	}
	var want []string
	for _, r := range c.rows {
		want = append(want, r)
	}
	sort.Strings(want)
	if !slices.Equal(got, want) {
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				c.t.Fatalf("%s: %d rows, want %d; they differ at %d:\n%v\nwant\n%v", when, len(got), len(want), i, got[i:min(i+5, len(got))], want[i:min(i+5, len(want))])
			}
		}
	}
}

// levels returns the live files of the newest snapshot.
func (c *compactTable) live() []manifest.Entry {
	c.t.Helper()
	snap, err := c.s.Snapshots("").Latest(context.Background())
	if err != nil {
		c.t.Fatal(err)
	}
	if snap == nil {
		return nil
	}
	return liveEntriesOf(c.t, c.io, snap)
}

// noStray makes sure that every file below the table's directory is named by some
// snapshot, and that every file that is named is there.
func (c *compactTable) noStray() {
	c.t.Helper()
	used := usedFiles(c.t, c.io)
	here := map[string]bool{}
	for _, p := range filesBelow(c.t, c.io, workDir) {
		here[p] = true
		if !used[p] && !strings.Contains(p, "/snapshot/") && !strings.Contains(p, "/schema/") {
			c.t.Errorf("%s is an orphan", p)
		}
	}
	for p := range used {
		if !here[p] {
			c.t.Errorf("%s is missing", p)
		}
	}
}

func filesBelow(t testing.TB, io fileio.FileIO, dir string) []string {
	t.Helper()
	es, err := io.List(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range es {
		if e.Dir {
			out = append(out, filesBelow(t, io, dir+"/"+e.Name)...)
			continue
		}
		out = append(out, dir+"/"+e.Name)
	}
	return out
}

// levelsAreRuns makes sure that the files of a level above 0 do not overlap and
// that statistics in the manifest are those of the files' own bounds.
func (c *compactTable) levelsAreRuns() {
	c.t.Helper()
	type at struct {
		part   string
		bucket int32
		level  int32
	}
	p, err := c.s.newPlanner(context.Background(), Scan{Limit: -1})
	if err != nil {
		c.t.Fatal(err)
	}
	runs := map[at][][2][]byte{}
	for _, e := range c.live() {
		if e.File.Level == 0 {
			continue
		}
		lo, err1 := p.fileKey(e.File.MinKey)
		hi, err2 := p.fileKey(e.File.MaxKey)
		if err := errors.Join(err1, err2); err != nil {
			c.t.Fatal(err)
		}
		k := at{string(e.Partition), e.Bucket, e.File.Level}
		runs[k] = append(runs[k], [2][]byte{lo, hi})
	}
	for k, r := range runs {
		slices.SortFunc(r, func(a, b [2][]byte) int { return strings.Compare(string(a[0]), string(b[0])) })
		for i := 1; i < len(r); i++ {
			if string(r[i-1][1]) >= string(r[i][0]) {
				c.t.Errorf("files of level %d overlap", k.level)
			}
		}
	}
}

// TestCompactAgainstModel mixes commits of upserts and deletes with compactions of
// every kind under random options; reads must always be those of a map.
func TestCompactAgainstModel(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 11))
	for round := range 8 {
		compactRound(t, r, round)
		if t.Failed() {
			t.Fatalf("round %d of seed %d", round, seed)
		}
	}
}

func compactRound(t *testing.T, r *rand.Rand, round int) {
	opts := map[string]string{"bucket": fmt.Sprint(1 + r.IntN(2))}
	maybe := func(k string, vs ...string) {
		if i := r.IntN(len(vs) + 1); i < len(vs) {
			opts[k] = vs[i]
		}
	}
	maybe("num-sorted-run.compaction-trigger", "1", "2", "3")
	maybe("num-levels", "2", "3", "9")
	maybe("compaction.size-ratio", "100", "0")
	maybe("compaction.max-size-amplification-percent", "0", "100000")
	maybe("target-file-size", "1 b", "4 kb")
	maybe("compaction.force-up-level-0", "true")
	maybe("compaction.optimization-interval", "1 ms")
	maybe("compaction.total-size-threshold", "10 kb")
	maybe("compaction.force-rewrite-all-files", "true")
	maybe("file.compression", "none")
	maybe("ignore-delete", "true")
	if r.IntN(3) == 0 {
		opts["sequence.field"] = "w"
	}
	pk, cols := []string{"k"}, []string{"k BIGINT", "v STRING", "w INT", "d DECIMAL(20, 3)"}
	switch r.IntN(4) {
	case 0:
		pk, cols = []string{"k", "l"}, append([]string{"l STRING"}, cols...)
	case 1:
		pk, cols = []string{"p", "k"}, append([]string{"p INT"}, cols...)
	}
	s := tableSchema(t, opts, pk, cols...)
	if pk[0] == "p" {
		s.PartitionKeys = []string{"p"}
	}
	c := newCompactTable(t, fileio.NewMem(), s, EnvOptions{WindowRows: []int{0, 7, 100}[r.IntN(3)]})
	span := []int64{10, 300}[r.IntN(2)]
	for step := range 20 {
		if r.IntN(3) > 0 {
			rows, kinds := randomChange(r, s, 1+r.IntN(120), span)
			if opts["sequence.field"] != "" {
				// A delete is forgotten once it reached the highest level; what comes
				// late after it lives, here as in Java.
				kinds = nil
			}
			c.mustWrite(rows, kinds)
			c.check(fmt.Sprintf("round %d step %d %v: write", round, step, opts))
			continue
		}
		o := CompactOptions{Full: r.IntN(3) == 0}
		if r.IntN(4) == 0 {
			o.Buckets = []int32{0}
		}
		before := c.live()
		if o.Partitions = nil; len(before) > 0 && r.IntN(4) == 0 {
			o.Partitions = [][]byte{before[0].Partition}
		}
		rep := c.compact(o)
		when := fmt.Sprintf("round %d step %d %v: compact %+v: %+v", round, step, opts, o, *rep)
		c.check(when)
		c.levelsAreRuns()
		c.checkReport(when, rep, before)
		if o.Full && o.Buckets == nil && o.Partitions == nil {
			c.isFull(when)
		}
	}
	c.noStray()
	same(t, c.io, c.s)
}

func randomChange(r *rand.Rand, s *schema.Table, n int, span int64) (rows [][]types.Datum, kinds []uint8) {
	for range n {
		row := make([]types.Datum, len(s.Fields))
		for i, f := range s.Fields {
			switch {
			case f.Name == "p":
				row[i] = r.Int64N(2)
			case f.Name == "k":
				row[i] = r.Int64N(span)
			case f.Name == "l":
				row[i] = fmt.Sprintf("%03d", r.IntN(int(span)))
			case r.IntN(10) > 0:
				row[i] = randomDatum(r, f.Type, 1000)
			}
		}
		rows = append(rows, row)
		kinds = append(kinds, []uint8{0, 0, 2, 3, 1}[r.IntN(5)])
	}
	return rows, kinds
}

// checkReport compares a report with the files before and after.
func (c *compactTable) checkReport(when string, rep *CompactReport, before []manifest.Entry) {
	c.t.Helper()
	if rep.SnapshotID == 0 {
		if rep.FilesBefore != 0 || rep.FilesAfter != 0 || rep.LostRaces != 0 {
			c.t.Errorf("%s: nothing was published", when)
		}
		return
	}
	snap, err := c.s.Snapshots("").Latest(context.Background())
	if err != nil {
		c.t.Fatal(err)
	}
	if snap.ID != rep.SnapshotID || snap.CommitKind != "COMPACT" {
		c.t.Errorf("%s: the newest snapshot is %d, %s", when, snap.ID, snap.CommitKind)
	}
	if now := len(c.live()); len(before)-rep.FilesBefore+rep.FilesAfter != now {
		c.t.Errorf("%s: %d files before, %d now", when, len(before), now)
	}
	for _, e := range c.live() {
		if e.File.Source == 1 && e.File.Level == 0 && len(c.sch.PrimaryKeys) > 0 {
			c.t.Errorf("%s: output in level 0", when)
		}
	}
}

// isFull makes sure that a full compaction left everything at the highest level
// and no deletes.
func (c *compactTable) isFull(when string) {
	c.t.Helper()
	levels := map[string]map[int32]bool{}
	for _, e := range c.live() {
		k := fmt.Sprintf("%s %d", e.Partition, e.Bucket)
		if levels[k] == nil {
			levels[k] = map[int32]bool{}
		}
		levels[k][e.File.Level] = true
		if e.File.DeleteRows != 0 {
			c.t.Errorf("%s: %d deletes at level %d", when, e.File.DeleteRows, e.File.Level)
		}
	}
	for k, l := range levels {
		if len(l) != 1 || l[0] {
			c.t.Errorf("%s: bucket %s has levels %v", when, k, l)
		}
	}
	if c.sch.Options["compaction.force-rewrite-all-files"] == "" {
		if rep := c.compact(CompactOptions{Full: true}); rep.SnapshotID != 0 {
			c.t.Errorf("%s: a second one does %+v", when, *rep)
		}
	}
}

// TestCompactKeepsSequence makes sure that rows keep sequence numbers and kinds,
// also deletes that must stay.
func TestCompactKeepsSequence(t *testing.T) {
	s := tableSchema(t, map[string]string{"bucket": "1", "compaction.force-up-level-0": "true", "compaction.max-size-amplification-percent": "1000000", "num-levels": "3"},
		[]string{"k"}, "k BIGINT", "v STRING")
	c := newCompactTable(t, fileio.NewMem(), s, EnvOptions{})
	d := func(k int64, v string) []types.Datum { return []types.Datum{k, v} }
	big := make([][]types.Datum, 3000) // so that what follows stays above it
	for i := range big {
		big[i] = d(int64(i+100), strings.Repeat(fmt.Sprint(i*7919), 9))
	}
	c.mustWrite(append([][]types.Datum{d(1, "a"), d(2, "b"), d(3, "c")}, big...), nil)
	c.compact(CompactOptions{Full: true})
	c.mustWrite([][]types.Datum{d(1, "x")}, []uint8{2})
	c.mustWrite([][]types.Datum{d(2, "y"), d(9, "z")}, []uint8{3, 0})
	rep := c.compact(CompactOptions{})
	if rep.FilesBefore != 2 || rep.FilesAfter != 1 || rep.RowsAfter != 3 {
		t.Fatalf("%+v", *rep)
	}
	c.check("compacted")
	rows, _, err := readAll(context.Background(), c.s, Scan{Limit: -1, Columns: []int{0, PseudoSequence, PseudoKind}}, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1 | 3003 | 2", "2 | 3004 | 3", "3 | 2 | 0", "9 | 3005 | 0"} {
		if !slices.Contains(rows, want) {
			t.Errorf("%s is not among %v", want, rows[:8])
		}
	}
	c.compact(CompactOptions{Full: true})
	c.isFull("full")
	c.check("full")
}

// TestCompactUpgrades makes sure that files that overlap nothing are moved up
// without being read.
func TestCompactUpgrades(t *testing.T) {
	s := tableSchema(t, map[string]string{"bucket": "1", "target-file-size": "1 b"}, []string{"k"}, "k BIGINT", "v STRING")
	c := newCompactTable(t, fileio.NewMem(), s, EnvOptions{})
	for i := range int64(5) {
		c.mustWrite([][]types.Datum{{i * 10, "a"}, {i*10 + 5, "b"}}, nil)
	}
	names := func() (out []string) {
		for _, e := range c.live() {
			out = append(out, e.File.Name)
		}
		sort.Strings(out)
		return out
	}
	before := names()
	rep := c.compact(CompactOptions{})
	if rep.Upgraded != 5 || rep.BytesWritten != 0 || rep.FilesAfter != 5 {
		t.Errorf("%+v", *rep)
	}
	if !slices.Equal(before, names()) {
		t.Errorf("files %v became %v", before, names())
	}
	c.check("moved up")
	c.isFull("moved up")
	// Small ones are joined where the target is what it is.
	c.sch.Options["target-file-size"] = "1 mb"
}

// TestCompactTrace is Java's trace of seven commits of two rows, one of them the
// same key, compacting after each: snapshots, levels and rows.
func TestCompactTrace(t *testing.T) {
	s := tableSchema(t, map[string]string{"bucket": "1"}, []string{"k"}, "k BIGINT", "v STRING")
	c := newCompactTable(t, fileio.NewMem(), s, EnvOptions{})
	for i := range int64(7) {
		c.mustWrite([][]types.Datum{{int64(0), fmt.Sprint(i)}, {i + 1, "x"}}, nil)
		at := snapshot.Ref{}
		need, err := c.s.NeedsCompaction(context.Background(), at, c.live()[0].Partition, 0)
		if err != nil || need.Due != (i == 4) {
			t.Fatalf("after commit %d: %+v, %v", i+1, need, err)
		}
		rep := c.compact(CompactOptions{})
		if (rep.SnapshotID != 0) != (i == 4) {
			t.Fatalf("after commit %d: %+v", i+1, *rep)
		}
		if i == 4 {
			if l := c.live(); len(l) != 1 || l[0].File.Level != 5 || l[0].File.Rows != 6 || l[0].File.Source != 1 {
				t.Fatalf("after commit 5: %+v", l)
			}
		}
	}
	var levels []int32
	for _, e := range c.live() {
		levels = append(levels, e.File.Level)
	}
	slices.Sort(levels)
	if !slices.Equal(levels, []int32{0, 0, 5}) {
		t.Errorf("levels %v", levels)
	}
	c.check("trace")
}

// TestCompactSmallCommits is ten minutes of small commits in small: what readers
// and planners have to go through stays bounded.
func TestCompactSmallCommits(t *testing.T) {
	ctx := context.Background()
	s := tableSchema(t, map[string]string{"bucket": "2"}, []string{"k"}, "k BIGINT", "v STRING", "w INT")
	c := newCompactTable(t, fileio.NewMem(), s, EnvOptions{})
	r := rand.New(rand.NewPCG(1, 5))
	commits := 500
	if testing.Short() {
		commits = 60
	}
	most := 0
	for i := range commits {
		rows := make([][]types.Datum, 100)
		for j := range rows {
			rows[j] = []types.Datum{r.Int64N(20_000), fmt.Sprint("value ", i), int64(j)}
		}
		c.mustWrite(rows, nil)
		for b := range int32(2) {
			need, err := c.s.NeedsCompaction(ctx, snapshot.Ref{}, make([]byte, 8), b)
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, need.Runs)
			if need.Stop {
				t.Fatalf("commit %d: bucket %d has %d runs", i, b, need.Runs)
			}
			if need.Due {
				if rep := c.compact(CompactOptions{Buckets: []int32{b}}); rep.SnapshotID == 0 {
					t.Fatalf("commit %d: bucket %d is due and nothing is done", i, b)
				}
			}
		}
	}
	c.check("small commits")
	snap, err := c.s.Snapshots("").Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	manifests := 0
	for _, l := range []string{snap.BaseManifestList, snap.DeltaManifestList} {
		ms, err := c.s.env.Manifests.List(ctx, c.io, workDir+"/manifest/"+l)
		if err != nil {
			t.Fatal(err)
		}
		manifests += len(ms)
	}
	t.Logf("%d commits, snapshot %d: at most %d runs in a bucket, %d files and %d manifests at the end", commits, snap.ID, most, len(c.live()), manifests)
	if most > 8 || manifests > 40 {
		t.Errorf("%d runs, %d manifests", most, manifests)
	}
}

// TestCompactEvolved compacts files of older schemas: they are read with the new
// one.
func TestCompactEvolved(t *testing.T) {
	s := tableSchema(t, map[string]string{"bucket": "1"}, []string{"k"}, "k BIGINT", "v STRING", "w INT")
	c := newCompactTable(t, fileio.NewMem(), s, EnvOptions{})
	c.mustWrite([][]types.Datum{{int64(1), "a", int64(5)}, {int64(2), "b", nil}}, nil)
	n := *s
	n.ID, n.HighestFieldID = 1, 3
	n.Fields = types.Schema{s.Fields[0], fieldOfType(t, 3, "x", "DOUBLE"), s.Fields[2], s.Fields[1]}
	n.Fields[2].Type = types.Of(types.Int8)
	n.Fields[3].Name = "vv"
	raw, err := schema.Encode(&n)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.io.Put(context.Background(), workDir+"/schema/schema-1", raw); err != nil {
		t.Fatal(err)
	}
	c.sch = &n
	c.rows = map[string]string{}
	env := NewEnv(c.io, EnvOptions{})
	t.Cleanup(env.Close)
	c.s = Open(env, workDir)
	c.apply([][]types.Datum{{int64(1), nil, int64(5), "a"}, {int64(2), nil, nil, "b"}}, nil)
	c.check("evolved")
	c.mustWrite([][]types.Datum{{int64(2), 2.5, int64(1) << 40, "c"}, {int64(3), nil, int64(-7), "d"}}, nil)
	c.compact(CompactOptions{Full: true})
	c.check("compacted")
	for _, e := range c.live() {
		if e.File.SchemaID != 1 || e.File.Rows != 3 {
			t.Errorf("%+v", e.File)
		}
	}
}

// TestCompactRefuses names what is not honoured.
func TestCompactRefuses(t *testing.T) {
	for _, o := range []map[string]string{
		{"file.format": "orc"}, {"file.format.per.level": "5:avro"},
	} {
		o["bucket"] = "1"
		s := tableSchema(t, o, []string{"k"}, "k BIGINT", "v STRING", "w INT")
		c := newCompactTable(t, fileio.NewMem(), s, EnvOptions{})
		var un *fileio.UnsupportedError
		if _, err := c.s.Compact(context.Background(), CompactOptions{}); !errors.As(err, &un) {
			t.Errorf("%v: %v", o, err)
		}
		if n, err := c.s.NeedsCompaction(context.Background(), snapshot.Ref{}, make([]byte, 8), 0); err != nil || n.Due {
			t.Errorf("%v: %+v, %v", o, n, err)
		}
	}
	s := tableSchema(t, map[string]string{"bucket": "1"}, []string{"k"}, "k BIGINT", "v STRING")
	c := newCompactTable(t, fileio.NewMem(), s, EnvOptions{})
	if rep := c.compact(CompactOptions{Full: true}); *rep != (CompactReport{}) {
		t.Errorf("an empty table: %+v", *rep)
	}
}

// TestBucketStates compares the remembered state of a branch with the manifests
// after every kind of step.
func TestBucketStates(t *testing.T) {
	ctx := context.Background()
	s := tableSchema(t, map[string]string{"bucket": "2"}, []string{"k"}, "k BIGINT", "v STRING", "w INT", "d DECIMAL(20, 3)")
	c := newCompactTable(t, fileio.NewMem(), s, EnvOptions{})
	r := rand.New(rand.NewPCG(3, 3))
	compare := func(when string, at snapshot.Ref) {
		t.Helper()
		st, err := c.s.state(ctx, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		if err := c.s.filesOf(ctx, st, func(all bucketFiles) {
			for id, fs := range all {
				for k := range fs {
					got = append(got, fmt.Sprint(id, k))
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
		var want []string
		if st.snap != nil {
			for _, e := range liveEntriesOf(t, c.io, st.snap) {
				want = append(want, fmt.Sprint(commit.BucketID{Partition: string(e.Partition), Bucket: e.Bucket}, fileIDOf(&e)))
			}
		}
		sort.Strings(got)
		sort.Strings(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%s: %v, want %v", when, got, want)
		}
	}
	compare("empty", snapshot.Ref{})
	for i := range 12 {
		rows, kinds := randomChange(r, s, 10, 50)
		c.mustWrite(rows, kinds)
		if i%3 == 2 {
			c.compact(CompactOptions{Full: i%2 == 0})
		}
		if i%2 == 0 {
			compare(fmt.Sprint("step ", i), snapshot.Ref{})
		}
	}
	compare("an old one", snapshot.Ref{Kind: snapshot.ID, ID: 3})
	compare("the newest again", snapshot.Ref{})
	// Rolled back, and written anew under the same ids.
	last, err := c.s.Snapshots("").LatestID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for id := last; id > last-3; id-- {
		if err := c.io.Delete(ctx, c.s.Snapshots("").Path(id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.io.Put(ctx, workDir+"/snapshot/LATEST", fmt.Append(nil, last-3)); err != nil {
		t.Fatal(err)
	}
	compare("rolled back", snapshot.Ref{})
	for range 5 {
		rows, kinds := randomChange(r, s, 10, 50)
		if err := c.write(rows, kinds); err != nil {
			t.Fatal(err)
		}
	}
	compare("written anew", snapshot.Ref{})
}
