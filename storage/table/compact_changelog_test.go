package table

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// engineKinds are the merge engines as the tests of compaction use them.
var engineKinds = []struct {
	name string
	opts map[string]string
}{
	{"deduplicate", nil},
	{"sequence", map[string]string{"sequence.field": "w"}},
	{"first-row", map[string]string{"merge-engine": "first-row"}},
	{"partial-update", map[string]string{"merge-engine": "partial-update"}},
	{"aggregation", map[string]string{"merge-engine": "aggregation", "fields.w.aggregate-function": "sum"}},
}

// lookupTable is a table of columns k, v, w with a model of its rows, and one of
// what its changelog says.
type lookupTable struct {
	*compactTable
	engine string
	now    map[string][]types.Datum
	told   map[string]string
	seen   int64 // snapshots whose changelog is in told
}

func newLookupTable(t testing.TB, io fileio.FileIO, engine string, opts map[string]string) *lookupTable {
	o := map[string]string{"bucket": "1"}
	for k, v := range opts {
		o[k] = v
	}
	for _, e := range engineKinds {
		if e.name == engine {
			for k, v := range e.opts {
				o[k] = v
			}
		}
	}
	s := tableSchema(t, o, []string{"k"}, "k BIGINT", "v STRING", "w INT")
	return &lookupTable{compactTable: newCompactTable(t, io, s, EnvOptions{VerdictRows: 1}), engine: engine, now: map[string][]types.Datum{}, told: map[string]string{}}
}

// random makes rows that the engine takes.
func (l *lookupTable) random(r *rand.Rand, n int, span int64) (rows [][]types.Datum, kinds []uint8) {
	for range n {
		row := []types.Datum{r.Int64N(span), nil, nil}
		if r.IntN(4) > 0 {
			row[1] = fmt.Sprint("v", r.IntN(3))
		}
		if r.IntN(4) > 0 {
			row[2] = r.Int64N(5)
		}
		rows = append(rows, row)
		kind := uint8(0)
		if l.engine == "deduplicate" {
			kind = []uint8{0, 0, 0, 3}[r.IntN(4)]
		}
		kinds = append(kinds, kind)
	}
	return rows, kinds
}

// put writes rows and changes the model.
func (l *lookupTable) put(rows [][]types.Datum, kinds []uint8) {
	l.t.Helper()
	if err := l.write(rows, kinds); err != nil {
		l.t.Fatal(err)
	}
	l.model(rows, kinds)
}

func (l *lookupTable) model(rows [][]types.Datum, kinds []uint8) {
	for i, row := range rows {
		k, _ := l.text(row)
		old, ok := l.now[k]
		next := slices.Clone(row)
		switch {
		case kinds != nil && kinds[i]&1 != 0:
			delete(l.now, k)
			delete(l.rows, k)
			continue
		case !ok:
		case l.engine == "first-row":
			next = old
		case l.engine == "sequence":
			if old[2] != nil && (row[2] == nil || row[2].(int64) < old[2].(int64)) {
				next = old
			}
		case l.engine == "partial-update", l.engine == "aggregation":
			for c := range next {
				if next[c] == nil {
					next[c] = old[c]
				} else if l.engine == "aggregation" && c == 2 && old[c] != nil {
					next[c] = next[c].(int64) + old[c].(int64)
				}
			}
		}
		l.now[k] = next
		_, l.rows[k] = l.text(next)
	}
}

// change is a row of a changelog.
type change struct {
	kind     int16
	key, row string
}

// changesOf reads the changelog files of a snapshot.
func (l *lookupTable) changesOf(id int64) []change {
	l.t.Helper()
	ctx := context.Background()
	sn, err := l.s.Snapshots("").Get(ctx, id)
	if err != nil {
		l.t.Fatal(err)
	}
	if sn.ChangelogManifestList == "" {
		return nil
	}
	env := NewEnv(l.io, EnvOptions{VerdictRows: 1})
	defer env.Close()
	s := Open(env, workDir)
	metas, err := env.Manifests.List(ctx, l.io, workDir+"/manifest/"+sn.ChangelogManifestList)
	if err != nil {
		l.t.Fatal(err)
	}
	p, err := s.newPlanner(ctx, Scan{Columns: []int{0, 1, 2, PseudoKind}, Limit: -1})
	if err != nil {
		l.t.Fatal(err)
	}
	var out []change
	for _, m := range metas {
		es, err := env.Manifests.Entries(ctx, l.io, workDir+"/manifest/"+m.Name)
		if err != nil {
			l.t.Fatal(err)
		}
		for i := range es {
			out = append(out, l.changesIn(s, p, &es[i])...)
		}
	}
	return out
}

func (l *lookupTable) changesIn(s *FileStore, p *planner, e *manifest.Entry) (out []change) {
	l.t.Helper()
	dir, err := s.bucketPath(l.sch, e.Partition, e.Bucket)
	if err != nil {
		l.t.Fatal(err)
	}
	if !strings.HasPrefix(e.File.Name, "changelog-") || e.Kind != manifest.Add {
		l.t.Errorf("changelog entry %+v", e)
	}
	err = copyRows(context.Background(), p, dir, e.File, func(int64, int) ([]uint16, int) { return nil, -1 }, func(cols []arrow.Array, n int) error {
		for r := range n {
			row := make([]types.Datum, 3)
			for c := range row {
				row[c] = vec.DatumAt(cols[c], l.sch.Fields[c].Type, r)
			}
			ch := change{kind: vec.ViewOf[int16](cols[3]).V[r]}
			ch.key, ch.row = l.text(row)
			out = append(out, ch)
		}
		return nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return out
}

// follow applies the changelogs of new snapshots to what was told: each change
// must fit what is known.
func (l *lookupTable) follow(when string) {
	l.t.Helper()
	latest, err := l.s.Snapshots("").LatestID(context.Background())
	if err != nil {
		l.t.Fatal(err)
	}
	for l.seen < latest {
		l.seen++
		taken := map[string]string{}
		for _, c := range l.changesOf(l.seen) {
			old, ok := l.told[c.key]
			switch c.kind {
			case 0:
				if ok {
					l.t.Fatalf("%s: snapshot %d: +I %s, and there is %s", when, l.seen, c.row, old)
				}
				l.told[c.key] = c.row
			case 1, 3:
				if !ok || old != c.row {
					l.t.Fatalf("%s: snapshot %d: kind %d %s, and there is %q", when, l.seen, c.kind, c.row, old)
				}
				delete(l.told, c.key)
				if c.kind == 1 {
					taken[c.key] = c.row
				}
			case 2:
				if _, ok := taken[c.key]; !ok {
					l.t.Fatalf("%s: snapshot %d: +U %s without -U", when, l.seen, c.row)
				}
				if l.sch.Options["changelog-producer.row-deduplicate"] == "true" && taken[c.key] == c.row {
					l.t.Fatalf("%s: snapshot %d: +U %s changes nothing", when, l.seen, c.row)
				}
				delete(taken, c.key)
				l.told[c.key] = c.row
			}
		}
		if len(taken) > 0 {
			l.t.Fatalf("%s: snapshot %d: -U without +U: %v", when, l.seen, taken)
		}
	}
}

// toldAll makes sure that the changelog has told of every change.
func (l *lookupTable) toldAll(when string) {
	l.t.Helper()
	l.follow(when)
	for k, r := range l.rows {
		if l.told[k] != r {
			l.t.Fatalf("%s: the changelog says %q of %s", when, l.told[k], r)
		}
	}
	if len(l.told) != len(l.rows) {
		l.t.Fatalf("%s: the changelog says there are %d rows, not %d", when, len(l.told), len(l.rows))
	}
}

// compacted makes sure that what is above level 0, unmerged, are the rows: what
// other engines read of a table with deletion vectors.
func (l *lookupTable) compacted(when string) {
	l.t.Helper()
	env := NewEnv(l.io, EnvOptions{VerdictRows: 1})
	defer env.Close()
	got, _, err := readAll(context.Background(), Open(env, workDir), Scan{Limit: -1, SkipLevel0: true}, ReadOptions{})
	if err != nil {
		l.t.Fatalf("%s: %v", when, err)
	}
	var want []string
	for _, r := range l.rows {
		want = append(want, r)
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		l.t.Fatalf("%s: above level 0 there are %d rows, want %d\n%v\nwant\n%v", when, len(got), len(want), got[:min(8, len(got))], want[:min(8, len(want))])
	}
}

// TestCompactChangelog mixes writes and compactions for every merge engine,
// changelog producer and kind of deletion vectors.
func TestCompactChangelog(t *testing.T) {
	seed := random.Seed(t)
	for _, e := range engineKinds {
		for _, producer := range []string{"none", "lookup", "full-compaction"} {
			for _, vectors := range []string{"", "32", "64"} {
				if producer == "full-compaction" && (vectors != "" || e.name == "first-row") || e.name == "first-row" && vectors != "" {
					continue
				}
				t.Run(fmt.Sprint(e.name, " ", producer, " ", vectors), func(t *testing.T) {
					r := rand.New(rand.NewPCG(seed, 1))
					for range testkit.Rounds(2) {
						changelogRound(t, r, e.name, producer, vectors)
					}
				})
			}
		}
	}
}

func changelogRound(t *testing.T, r *rand.Rand, engine, producer, vectors string) {
	o := map[string]string{"changelog-producer": producer}
	maybe := func(k string, vs ...string) {
		if i := r.IntN(len(vs) + 1); i < len(vs) {
			o[k] = vs[i]
		}
	}
	if vectors != "" {
		o["deletion-vectors.enabled"] = "true"
		o["deletion-vectors.bitmap64"] = fmt.Sprint(vectors == "64")
	}
	maybe("num-sorted-run.compaction-trigger", "2", "3", "100")
	maybe("num-levels", "3", "6")
	maybe("compaction.size-ratio", "0")
	maybe("target-file-size", "1 b", "2 kb")
	maybe("bucket", "2")
	maybe("changelog-producer.row-deduplicate", "true")
	maybe("data-file.thin-mode", "true")
	maybe("file.compression.per.level", "0:none,5:zstd")
	maybe("changelog-file.compression", "snappy")
	if engine != "first-row" && engine != "sequence" {
		maybe("sequence.snapshot-ordering", "true")
	}
	l := newLookupTable(t, fileio.NewMem(), engine, o)
	span := []int64{8, 60}[r.IntN(2)]
	looks := producer == "lookup" || vectors != "" || engine == "first-row"
	for step := range 14 {
		rows, kinds := l.random(r, 1+r.IntN(30), span)
		l.put(rows, kinds)
		when := fmt.Sprintf("%v step %d", o, step)
		l.check(when + ": write")
		var c CompactOptions
		switch n := r.IntN(6); {
		case n == 0:
			c.Full = true
		case n < 3:
			c.Level0 = true
		case n < 4:
		default:
			continue
		}
		rep := l.compact(c)
		when += fmt.Sprintf(": compact %+v: %+v", c, *rep)
		l.check(when)
		l.levelsAreRuns()
		l.follow(when)
		if c.Level0 || c.Full {
			for _, e := range l.live() {
				if e.File.Level == 0 {
					t.Fatalf("%s: level 0 is left", when)
				}
			}
			if producer == "lookup" || producer == "full-compaction" && c.Full {
				l.toldAll(when)
			}
			if vectors != "" || engine == "first-row" {
				l.compacted(when)
			}
		}
		if looks && !c.Level0 && !c.Full {
			if rep := l.compact(CompactOptions{}); rep.SnapshotID != 0 && rep.FilesBefore == 0 {
				t.Fatalf("%s: %+v", when, rep)
			}
		}
	}
	l.compact(CompactOptions{Full: true})
	if vectors != "" {
		// Big files that nothing overlapped still have theirs: the next full compaction,
		// with nothing else to do, is for them.
		l.compact(CompactOptions{Full: true})
	}
	l.isFull("in the end")
	l.check("in the end")
	if producer == "lookup" || producer == "full-compaction" {
		l.toldAll("in the end")
	}
	if vectors != "" {
		l.noVectors("in the end")
	}
	l.noStray()
	if _, err := l.s.Expire(context.Background(), ExpireOptions{RetainMax: 1, RetainMin: 1, OlderThan: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	l.noStray()
	l.check("expired")
}

// TestCompactExpiresRecords leaves out rows by their age, also where there is
// nothing else to compact.
func TestCompactExpiresRecords(t *testing.T) {
	for _, o := range []map[string]string{{}, {"changelog-producer": "lookup"}, {"changelog-producer": "full-compaction"}, {"deletion-vectors.enabled": "true"}} {
		o["record-level.expire-time"], o["record-level.time-field"] = "1 h", "w"
		l := newLookupTable(t, fileio.NewMem(), "deduplicate", o)
		now := time.Now().Unix()
		old, fresh := now-4000, now-60
		l.put([][]types.Datum{{int64(1), "a", old}, {int64(2), "b", fresh}, {int64(3), "c", nil}}, nil)
		l.check("written")
		l.compact(CompactOptions{Full: true})
		delete(l.rows, "1")
		l.check(fmt.Sprint(o, " compacted"))
		l.put([][]types.Datum{{int64(2), "d", fresh}, {int64(4), "e", fresh}}, nil)
		l.compact(CompactOptions{Level0: true})
		l.check(fmt.Sprint(o, " compacted again"))
		// What expires at the highest level goes with the next full compaction.
		l.compact(CompactOptions{Full: true})
		c, err := l.s.newCompaction(context.Background(), CompactOptions{Full: true})
		if err != nil {
			t.Fatal(err)
		}
		c.expire.Before, c.keep.expire.Before = fresh+1, fresh+1
		jobs, err := c.jobs(context.Background(), everything(t, l.s))
		if err != nil || len(jobs) != 1 || !jobs[0].unit.Rewrite {
			t.Fatal(jobs, err)
		}
		if err := c.run(context.Background(), jobs); err != nil {
			t.Fatal(err)
		}
		delete(l.rows, "2")
		delete(l.rows, "4")
		l.check(fmt.Sprint(o, " later"))
		if o["changelog-producer"] == "lookup" || o["changelog-producer"] == "full-compaction" {
			l.follow("in the end")
		}
	}
}

// noVectors makes sure that a second full compaction leaves no deletion vectors.
func (l *lookupTable) noVectors(when string) {
	l.t.Helper()
	l.compact(CompactOptions{DropVectors: true})
	st, err := l.s.state(context.Background(), snapshot.Ref{}, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	dvs, err := l.s.vectorsOf(context.Background(), st, map[commit.BucketID]bool(nil))
	if err != nil || len(dvs) > 0 {
		l.t.Fatalf("%s: %d vectors are left, %v", when, len(dvs), err)
	}
	l.check(when)
	l.compacted(when)
}

// TestNeedsLookupCompaction: what is in level 0 is due where compactions make
// changelogs or deletion vectors, and a full one after so many commits.
func TestNeedsLookupCompaction(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		engine string
		opts   map[string]string
		due    []bool // after each commit
	}{
		{"deduplicate", nil, []bool{false, false, false}},
		{"deduplicate", map[string]string{"changelog-producer": "lookup"}, []bool{true, true, true}},
		{"deduplicate", map[string]string{"changelog-producer": "lookup", "lookup-compact": "gentle", "num-sorted-run.compaction-trigger": "3", "lookup-compact.max-interval": "2"}, []bool{false, false, true}},
		{"deduplicate", map[string]string{"changelog-producer": "lookup", "write-only": "true"}, []bool{false, false, false}},
		{"deduplicate", map[string]string{"deletion-vectors.enabled": "true"}, []bool{true, true, true}},
		{"first-row", nil, []bool{true, true, true}},
		{"aggregation", map[string]string{"changelog-producer": "full-compaction"}, []bool{true, true, true}},
		{"aggregation", map[string]string{"changelog-producer": "full-compaction", "full-compaction.delta-commits": "2"}, []bool{false, true, true}},
		{"aggregation", map[string]string{"full-compaction.delta-commits": "3"}, []bool{false, false, true}},
	} {
		o := map[string]string{"num-sorted-run.compaction-trigger": "100"}
		for k, v := range c.opts {
			o[k] = v
		}
		l := newLookupTable(t, fileio.NewMem(), c.engine, o)
		for i, due := range c.due {
			rows, kinds := l.random(r, 20, 30)
			l.put(rows, kinds)
			n, err := l.s.NeedsCompaction(ctx, snapshot.Ref{}, make([]byte, 8), 0)
			if err != nil || n.Due != due {
				t.Errorf("%s %v, commit %d: %+v, %v", c.engine, c.opts, i+1, n, err)
			}
		}
		rep := l.compact(CompactOptions{})
		if last := c.due[len(c.due)-1] || o["write-only"] == "true" && o["changelog-producer"] == "lookup"; (rep.SnapshotID > 0) != last {
			t.Errorf("%s %v: %+v", c.engine, c.opts, rep)
		}
		n, err := l.s.NeedsCompaction(ctx, snapshot.Ref{}, make([]byte, 8), 0)
		if err != nil || n.Due {
			t.Errorf("%s %v, compacted: %+v, %v", c.engine, c.opts, n, err)
		}
	}
}
