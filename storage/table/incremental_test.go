package table

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

var kindTexts = []string{"+I", "-U", "+U", "-D"}

// changes reads a range of changes, each row as its kind and its columns, sorted.
func changes(t testing.TB, s *FileStore, o map[string]string, deletes bool) ([]string, error) {
	t.Helper()
	ctx := context.Background()
	sch, err := s.Schema(ctx, snapshot.Ref{})
	if err != nil {
		return nil, err
	}
	inc, err := s.Changes(ctx, "", schema.Options(sch.Options).With(o))
	if err != nil {
		return nil, err
	}
	scan := Scan{Incremental: inc, Limit: -1, Columns: []int{PseudoKind}, KeepDeletes: deletes}
	for i := range sch.Fields {
		scan.Columns = append(scan.Columns, i)
	}
	if !deletes {
		scan.Columns = scan.Columns[1:]
	}
	rows, _, err := readAll(ctx, s, scan, ReadOptions{})
	for i, r := range rows {
		if deletes {
			rows[i] = kindTexts[r[0]-'0'] + r[1:]
		}
	}
	sort.Strings(rows)
	return rows, err
}

func between(a, b int64, mode string) map[string]string {
	o := map[string]string{"incremental-between": fmt.Sprintf("%d,%d", a, b)}
	if mode != "" {
		o["incremental-between-scan-mode"] = mode
	}
	return o
}

// TestChangelogInput writes random rows of all kinds, in many flushes, and reads
// them back from the changelog: all of them, unmerged, each file in the order of
// keys, sequence fields and arrival; those marked LogOnly there and nowhere else.
func TestChangelogInput(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	for round := range testkit.Rounds(30) {
		opts := map[string]string{"bucket": fmt.Sprint(1 + r.IntN(3)), "changelog-producer": "input"}
		if r.IntN(2) == 0 {
			opts["sequence.field"] = "s"
			opts["sequence.field.sort-order"] = []string{"ascending", "descending"}[r.IntN(2)]
		}
		if r.IntN(2) == 0 {
			opts["write-buffer-size"] = "2 kb"
		}
		if r.IntN(3) == 0 {
			opts["ignore-update-before"] = "true"
		}
		if r.IntN(4) == 0 {
			opts["ignore-delete"] = "true"
		}
		opts["changelog-file.prefix"], opts["changelog-file.compression"], opts["changelog-file.stats-mode"] = "log-", "snappy", "none"
		sch := tableSchema(t, opts, []string{"p", "k"}, "p STRING", "k INT", "s INT", "v STRING")
		if r.IntN(2) == 0 {
			sch = partitioned(sch, "p")
		}
		w := newWritten(t, sch)
		var told []string // +I 1 | ...
		logOnly := map[string]bool{}
		want := map[string][]string{} // by snapshot
		for c := range 3 {
			told = nil
			wr := w.open(nil)
			n := 0
			for range 1 + r.IntN(4) {
				var rows [][]types.Datum
				var kinds []uint8
				for range r.IntN(40) {
					n++
					row := []types.Datum{[]string{"x", "y"}[r.IntN(2)], int64(r.IntN(8)), int64(r.IntN(5)), fmt.Sprint(round, c, n)}
					kind := uint8([]int{0, 0, 1, 2, 3}[r.IntN(5)])
					line := kindTexts[kind]
					for i, f := range sch.Fields {
						line += " | " + text(f.Type, row[i])
					}
					if kind == 1 && r.IntN(2) == 0 {
						kind |= LogOnly
						logOnly[row[3].(string)] = true
					}
					rows, kinds = append(rows, row), append(kinds, kind)
					switch {
					case kind&1 != 0 && opts["ignore-delete"] == "true", kind&3 == 1 && opts["ignore-update-before"] == "true":
					default:
						told = append(told, line)
					}
				}
				if len(rows) == 0 {
					continue
				}
				if err := wr.Write(context.Background(), w.batch(rows), kinds); err != nil {
					t.Fatal(err)
				}
			}
			done := w.done(wr)
			for _, e := range done.Changelog {
				if !strings.HasPrefix(e.File.Name, "log-") || e.Kind != manifest.Add || len(e.File.ValueStatsCols) > 0 {
					t.Errorf("changelog file %+v", e.File)
				}
			}
			w.publish()
			id, err := w.store.Snapshots("").LatestID(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			want[fmt.Sprint(id)] = append(want[fmt.Sprint(id)], told...)
		}
		last, _ := w.store.Snapshots("").LatestID(context.Background())
		var all []string
		for id := int64(1); id <= last; id++ {
			rows := want[fmt.Sprint(id)]
			slices.Sort(rows)
			got, err := changes(t, w.store, between(id-1, id, ""), true)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, rows) {
				t.Fatalf("%v: snapshot %d: %d rows, want %d%s", opts, id, len(got), len(rows), diff(got, rows))
			}
			all = append(all, rows...)
		}
		slices.Sort(all)
		if last == 0 {
			continue
		}
		if got, err := changes(t, w.store, between(0, last, "auto"), true); err != nil || !slices.Equal(got, all) {
			t.Fatalf("all: %d rows, want %d: %v", len(got), len(all), err)
		}
		w.logInOrder(opts)
		data, err := changes(t, w.store, between(0, last, "delta"), true)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range data {
			if v := row[strings.LastIndex(row, "|")+2:]; logOnly[strings.Trim(v, `"`)] {
				t.Fatalf("a row of the changelog only is in a data file: %s", row)
			}
		}
	}
}

// logInOrder looks at the rows of each changelog file: by key, then sequence field,
// then sequence number.
func (w *written) logInOrder(opts map[string]string) {
	w.t.Helper()
	ctx := context.Background()
	s := Scan{Incremental: &Incremental{To: 1 << 20, Mode: IncrementalChangelog, InOrder: true}, Limit: -1, Columns: []int{1, 2, PseudoSequence}}
	if i := w.sch.Fields.Index("p"); len(w.sch.PartitionKeys) == 0 {
		s.Columns = append([]int{i}, s.Columns...)
	}
	var err error
	if s.Incremental.To, err = w.store.Snapshots("").LatestID(ctx); err != nil {
		w.t.Fatal(err)
	}
	p, err := w.store.Plan(ctx, s)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, sp := range p.Splits {
		for i := range sp.Files {
			one := sp
			one.Files = sp.Files[i : i+1]
			rd, err := w.store.Read(ctx, s, one, ReadOptions{})
			if err != nil {
				w.t.Fatal(err)
			}
			last := ""
			for {
				b, err := rd.Next(ctx)
				if err != nil {
					w.t.Fatal(err)
				}
				if b == nil {
					break
				}
				for i := range b.N {
					var key string
					n := len(b.Cols)
					for c := range n {
						v := text(b.Schema[c].Type, datumAt(b, c, i))
						if c == n-2 {
							switch {
							case opts["sequence.field"] == "":
								v = ""
							case opts["sequence.field.sort-order"] == "descending":
								v = string(rune('z' - v[0]))
							}
						}
						if c == n-1 {
							v = fmt.Sprintf("%08s", v)
						}
						key += v + "\x00"
					}
					if key < last {
						w.t.Fatalf("%v: %q after %q", opts, key, last)
					}
					last = key
				}
			}
			_ = rd.Close()
		}
	}
}

// TestChangelogInputGone looks at what becomes of changelog files that are not
// committed: Abort, Discard and an overwrite leave none.
func TestChangelogInputGone(t *testing.T) {
	ctx := context.Background()
	w := newWritten(t, tableSchema(t, map[string]string{"bucket": "1", "changelog-producer": "input"}, []string{"k"}, "k INT", "v STRING"))
	row := [][]types.Datum{{int64(1), "a"}}
	files := func() int { return len(tree(t, w.io, "db.db/t/bucket-0")) }
	wr := w.open(nil)
	if err := wr.Write(ctx, w.batch(row), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := wr.Prepare(ctx); err != nil || files() != 2 {
		t.Fatalf("%d files: %v", files(), err)
	}
	if err := wr.Abort(ctx); err != nil || files() != 0 {
		t.Errorf("%d files after Abort: %v", files(), err)
	}
	c := w.write(row, nil)
	if err := w.store.Discard(ctx, c); err != nil || files() != 0 {
		t.Errorf("%d files after Discard: %v", files(), err)
	}
	w.over = commit.Changes{}
	c = w.write(row, nil)
	w.over = commit.Changes{}
	wr, err := w.store.Write(ctx, WriteOptions{Overwrite: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := wr.Write(ctx, w.batch(row), []uint8{2}); err != nil {
		t.Fatal(err)
	}
	d, err := wr.Prepare(ctx)
	if err != nil || len(d.Changelog) != 0 {
		t.Fatalf("an overwrite has %d changelog files: %v", len(d.Changelog), err)
	}
	d.Kind, d.Overwrite = commit.Overwrite, &commit.Replacement{}
	out, dropped := commit.Merge(c, d)
	if len(out.Changelog) != 0 || len(dropped) != 2 {
		t.Errorf("%d changelog files and %d dropped ones, want none and 2", len(out.Changelog), len(dropped))
	}
}

// TestIncrementalDiff compares random states of tables of every engine with the
// difference of what is read of both.
func TestIncrementalDiff(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 2))
	for range testkit.Rounds(2) {
		for _, c := range engineCases() {
			t.Run(c.name, func(t *testing.T) { diffRound(t, r, c) })
		}
	}
}

func diffRound(t *testing.T, r *rand.Rand, c engineCase) {
	ctx := context.Background()
	opts := maps.Clone(c.opts)
	opts["bucket"] = fmt.Sprint(1 + r.IntN(2))
	s := tableSchema(t, opts, []string{"k"}, append([]string{"k INT"}, engineColumns...)...)
	rowColumn(s)
	w := newWritten(t, s)
	env := NewEnv(w.io, EnvOptions{VerdictRows: 1, WindowRows: []int{1, 3, 50, 0}[r.IntN(4)], MergeRows: []int64{1, 5, 30, 0}[r.IntN(4)]})
	defer env.Close()
	for range 6 {
		var rows [][]types.Datum
		var kinds []uint8
		from := r.IntN(60)
		for range 1 + r.IntN(20) {
			var vals []types.Datum
			for _, f := range s.Fields {
				vals = append(vals, engineDatum(r, f, 3))
			}
			vals[0] = int64(from + r.IntN(15))
			kind := uint8(0)
			if len(c.kinds) > 0 && r.IntN(4) == 0 {
				kind = uint8(c.kinds[r.IntN(len(c.kinds))])
			}
			rows, kinds = append(rows, vals), append(kinds, kind)
		}
		w.write(rows, kinds)
		w.publish()
		if r.IntN(3) == 0 {
			if _, err := w.store.Compact(ctx, CompactOptions{Full: r.IntN(2) == 0}); err != nil && !isUnsupported(err) {
				t.Fatal(err)
			}
		}
	}
	store := Open(env, "db.db/t")
	last, err := store.Snapshots("").LatestID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	state := func(id int64) map[string]bool {
		out := map[string]bool{}
		if id == 0 {
			return out
		}
		rows, _, err := readAll(ctx, store, Scan{At: snapshot.Ref{Kind: snapshot.ID, ID: id}, Limit: -1}, ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range rows {
			out[x] = true
		}
		return out
	}
	for range 6 {
		a := int64(r.IntN(int(last)))
		b := a + 1 + int64(r.IntN(int(last-a)))
		old := state(a)
		var want []string
		for row := range state(b) {
			if !old[row] {
				want = append(want, row)
			}
		}
		sort.Strings(want)
		got, err := changes(t, store, between(a, b, "diff"), false)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("diff (%d, %d] of %v: %d rows, want %d%s", a, b, opts, len(got), len(want), diff(got, want))
		}
		// The same rows come with their kinds, and keys that are gone as -D.
		all, err := changes(t, store, between(a, b, "diff"), true)
		if err != nil {
			t.Fatal(err)
		}
		var kept []string
		for _, x := range all {
			if x[0] == '+' {
				kept = append(kept, x[5:])
			}
		}
		sort.Strings(kept)
		if !slices.Equal(kept, want) {
			t.Fatalf("diff (%d, %d] with kinds: %d additions, want %d%s", a, b, len(kept), len(want), diff(kept, want))
		}
		// A filter on a value sees the outcome.
		leaf := leafOn(s.Fields, 1, predicate.GtEq, int64(1))
		f := &valueFilter{pos: 0, t: s.Fields[1].Type, leaf: leaf}
		inc, err := store.Changes(ctx, "", schema.Options(s.Options).With(between(a, b, "diff")))
		if err != nil {
			t.Fatal(err)
		}
		scan := Scan{Incremental: inc, Columns: []int{1, 0}, Filter: leaf, Limit: -1}
		some, _, err := readAll(ctx, store, scan, ReadOptions{Filter: f, BatchRows: 1 + r.IntN(5)})
		if err != nil {
			t.Fatal(err)
		}
		var wantSome []string
		for _, row := range want {
			p := strings.Split(row, " | ")
			if p[1] != "null" && !strings.HasPrefix(p[1], "-") && p[1] != "0" {
				wantSome = append(wantSome, p[1]+" | "+p[0])
			}
		}
		sort.Strings(wantSome)
		if !slices.Equal(some, wantSome) {
			t.Fatalf("filtered diff: %d rows, want %d%s", len(some), len(wantSome), diff(some, wantSome))
		}
	}
}

// TestIncrementalRanges asks for ranges that are not there.
func TestIncrementalRanges(t *testing.T) {
	ctx := context.Background()
	w := newWritten(t, tableSchema(t, map[string]string{"bucket": "1"}, []string{"k"}, "k INT", "v STRING"))
	if got, err := changes(t, w.store, between(0, 5, ""), true); err != nil || len(got) != 0 {
		t.Errorf("an empty table: %v, %v", got, err)
	}
	for i := range 5 {
		w.write([][]types.Datum{{int64(i), "v"}}, nil)
		w.publish()
	}
	for _, x := range []struct{ name, at string }{{"a", "1"}, {"b", "3"}, {"2024-01-01", "2"}, {"2024-01-03", "4"}} {
		var id int64
		_, _ = fmt.Sscan(x.at, &id)
		if err := w.store.CreateTag(ctx, "", x.name, id, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.store.Expire(ctx, ExpireOptions{RetainMax: 3, RetainMin: 3, OlderThan: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	times := func(a, b int64) map[string]string {
		at := func(id int64) int64 {
			s, err := w.store.Snapshots("").Get(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			return s.TimeMillis
		}
		return map[string]string{"incremental-between-timestamp": fmt.Sprintf("%d,%d", at(a), at(b)+1000)}
	}
	for _, c := range []struct {
		o    map[string]string
		want string // the keys, or how the error begins
	}{
		{between(2, 5, ""), "2 3 4"},
		{between(3, 4, "delta"), "3"},
		{between(4, 4, ""), ""},
		{between(3, 5, "diff"), "3 4"},
		{between(1, 5, ""), "!snapshot 2 has expired"},
		{between(2, 5, "diff"), "!snapshot 2 has expired"},
		{between(3, 6, ""), "!snapshot 6 does not exist"},
		{between(-1, 2, ""), "!the range of changes starts with snapshot -1"},
		{between(5, 3, ""), "!the range of changes ends with snapshot 3"},
		{between(3, 5, "changelog"), ""},
		{between(3, 5, "sideways"), `!option "incremental-between-scan-mode"`},
		{map[string]string{"incremental-between": "3"}, `!option "incremental-between"`},
		{map[string]string{"incremental-between": "a,b"}, "1 2"},
		{map[string]string{"incremental-between": "b,a"}, `!tag "a" is of snapshot 1`},
		{map[string]string{"incremental-between": "a,zz"}, `!"zz" is neither a tag nor a snapshot id`},
		{map[string]string{"incremental-between": "a,b", "incremental-between-tag-to-snapshot": "true"}, "!snapshot 2 has expired"},
		{map[string]string{"incremental-to-auto-tag": "2024-01-03"}, "2 3"},
		{map[string]string{"incremental-to-auto-tag": "2024-01-01"}, ""},
		{map[string]string{"incremental-to-auto-tag": "2025-01-01"}, ""},
		{map[string]string{"incremental-to-auto-tag": "b"}, `!tag "b" is not named`},
		{map[string]string{"incremental-between-timestamp": "2,1"}, "!the range of changes ends at 1"},
		{map[string]string{"incremental-between-timestamp": "1970-01-01 00:00:00,2100-01-01"}, "2 3 4"},
		{map[string]string{"incremental-between-timestamp": "x,y"}, `!option "incremental-between-timestamp"`},
		{map[string]string{"incremental-between-timestamp": "1,2"}, ""},
		{times(5, 5), ""},
	} {
		rows, err := changes(t, w.store, c.o, true)
		if wrong, ok := strings.CutPrefix(c.want, "!"); ok {
			if err == nil || !strings.HasPrefix(err.Error(), wrong) {
				t.Errorf("%v: %v, want %q", c.o, err, wrong)
			}
			continue
		}
		var keys []string
		for _, r := range rows {
			keys = append(keys, strings.Split(r, " | ")[1])
		}
		if got := strings.Join(keys, " "); got != c.want || err != nil {
			t.Errorf("%v: %q, want %q: %v", c.o, got, c.want, err)
		}
	}
}

func isUnsupported(err error) bool {
	return strings.Contains(err.Error(), "not supported") || errors.Is(err, errors.ErrUnsupported)
}

func datumAt(b *vec.Batch, c, i int) types.Datum { return vec.DatumAt(b.Cols[c], b.Schema[c].Type, i) }

// TestChangesOutliveSnapshots reads a table of Java's whose snapshots 1 to 4 have
// expired and left their changelogs.
func TestChangesOutliveSnapshots(t *testing.T) {
	env := NewEnv(fileio.NewLocal(shared(t, "fixtures/java/warehouse")), EnvOptions{})
	defer env.Close()
	s := Open(env, "refs.db/changelog_expired")
	for _, c := range []struct {
		a, b int64
		mode string
		rows int // -1 = expired
	}{
		{0, 6, "auto", 20}, {0, 2, "changelog", 8}, {3, 5, "auto", 8}, {4, 6, "delta", 4}, {3, 6, "delta", -1}, {4, 6, "diff", -1}, {5, 6, "diff", 0},
	} {
		got, err := changes(t, s, between(c.a, c.b, c.mode), true)
		var none *snapshot.NotFoundError
		if c.rows < 0 {
			if !errors.As(err, &none) || !none.Expired {
				t.Errorf("%+v: %v", c, err)
			}
		} else if err != nil || len(got) != c.rows {
			t.Errorf("%+v: %d rows: %v", c, len(got), err)
		}
	}
}

// BenchmarkIncremental reads changes of a table of 5 numbers and texts a row: the
// changelog of all rows, and the diff of two states of which one row in ten differs.
func BenchmarkIncremental(b *testing.B) {
	const rows = 500_000
	ctx := context.Background()
	s := tableSchema(b, map[string]string{"bucket": "1", "changelog-producer": "input"}, []string{"k"}, "k BIGINT", "a BIGINT", "b INT", "c STRING", "d DOUBLE")
	w := newWritten(b, s)
	put := func(n, step int) {
		var all [][]types.Datum
		for i := range n {
			all = append(all, []types.Datum{int64(i * step), int64(i * 7), int64(i % 100), fmt.Sprint("text ", i%1000, step), float64(i)})
		}
		w.write(all, nil)
		w.publish()
	}
	put(rows, 1)
	put(rows/10, 10)
	for _, mode := range []string{"changelog", "diff"} {
		b.Run(mode, func(b *testing.B) {
			inc, err := w.store.Changes(ctx, "", schema.Options(s.Options).With(between(map[string]int64{"changelog": 0, "diff": 1}[mode], 2, mode)))
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for b.Loop() {
				n = 0
				scan := Scan{Incremental: inc, Limit: -1, Columns: []int{PseudoKind, 0, 1, 2, 3, 4}, KeepDeletes: true}
				p, err := w.store.Plan(ctx, scan)
				if err != nil {
					b.Fatal(err)
				}
				for _, sp := range p.Splits {
					rd, err := w.store.Read(ctx, scan, sp, ReadOptions{})
					if err != nil {
						b.Fatal(err)
					}
					for {
						x, err := rd.Next(ctx)
						if err != nil {
							b.Fatal(err)
						}
						if x == nil {
							break
						}
						n += x.N
					}
					_ = rd.Close()
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row-of-table")
			b.ReportMetric(float64(n), "rows")
		})
	}
}
