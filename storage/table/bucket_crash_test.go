package table

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// cutCase is a statement on a table whose keys are not where a formula says, which
// is cut at each of its file system calls.
type cutCase struct {
	name    string
	table   func(t testing.TB) *schema.Table
	prepare func(f *fleet)
	work    func(f *fleet, s *FileStore) error // the statement
	next    func(f *fleet, s *FileStore) error // what is done afterwards
	hidden  bool                               // Java's batch reads do not see level 0
	dynamic int64                              // of a table with hash indexes: how many keys a bucket may have
	least   int                                // so many calls it makes, or more
}

// statement writes rows as the server does: by one writer for each group of rows on
// top of those before, folded, committed, and dropped when that fails.
func (f *fleet) statement(s *FileStore, o WriteOptions, how func(c *commit.Changes), rows ...[][]types.Datum) error {
	ctx := context.Background()
	at, err := s.Resolve(ctx, snapshot.Ref{})
	if err != nil {
		return err
	}
	var c commit.Changes
	drop := func(err error) error {
		return errors.Join(err, f.dropped(s.Discard(ctx, c)))
	}
	for i, group := range rows {
		if i > 0 {
			o.Overlay = &c
		}
		var kinds []uint8
		for _, row := range group {
			kind := uint8(0)
			if len(row) > len(f.sch.Fields) { // the last says it
				kind = row[len(row)-1].(uint8)
			}
			kinds = append(kinds, kind)
		}
		d, err := f.prepare(s, o, group, kinds)
		if err != nil {
			return drop(err)
		}
		if i == 0 {
			c = d
		} else {
			c, _ = commit.Merge(c, d)
		}
	}
	if how != nil {
		how(&c)
	}
	out, folded, err := s.Fold(ctx, c, at, nil)
	if err != nil {
		return drop(err)
	}
	if at.Snap != nil {
		out.Base = at.Snap.ID
	}
	_, err = s.Commit(ctx, out)
	var unknown *commit.UnknownOutcomeError
	switch {
	case errors.As(err, &unknown):
		return err
	case err != nil:
		c = out
		c.Files = append(slices.Clone(c.Files), folded...)
		return drop(err)
	}
	if err := s.Discard(ctx, commit.Changes{Files: folded}); err != nil {
		return &doneError{err}
	}
	return nil
}

// doneError is one of what comes after the commit.
type doneError struct{ err error }

func (e *doneError) Error() string { return "committed, and then: " + e.err.Error() }
func (e *doneError) Unwrap() error { return e.err }

// errLeft says that files of a failed statement could not be removed.
var errLeft = errors.New("files stay behind")

func (f *fleet) dropped(err error) error {
	if err != nil {
		return fmt.Errorf("%w: %w", errLeft, err)
	}
	return nil
}

// copyTo copies the table to another store, durably.
func (f *fleet) copyTo(io fileio.FileIO) *fleet {
	f.t.Helper()
	for _, p := range filesBelow(f.t, f.io, workDir) {
		raw, err := f.io.ReadFile(context.Background(), p)
		if err == nil {
			err = io.PutIfAbsent(context.Background(), p, raw)
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
	return &fleet{t: f.t, io: io, sch: f.sch}
}

// process returns the table as a process sees it that has just begun, and what ends
// the process.
func (f *fleet) process() (*FileStore, func()) {
	env := NewEnv(f.io, EnvOptions{VerdictRows: 1})
	return Open(env, workDir), env.Close
}

// looks is the table as its readers and writers see it: its rows, and how many
// buckets each partition has.
func (f *fleet) looks() string {
	f.t.Helper()
	s, end := f.process()
	defer end()
	rows := (&written{t: f.t, store: s}).scan(nil)
	buckets := map[string]string{}
	for p, l := range f.bucketsOf() {
		_, total, _ := strings.Cut(l, "/")
		total, _, _ = strings.Cut(total, " ")
		buckets[p] = total
	}
	return fmt.Sprint(strings.Join(rows, "\n"), "\n", buckets)
}

// uniqueKeys makes sure that every key is there once.
func (f *fleet) uniqueKeys(looks, when string) {
	f.t.Helper()
	pk, err := columnsOf(f.sch, f.sch.PrimaryKeys)
	if err != nil {
		f.t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, row := range strings.Split(looks, "\n") {
		cells := strings.Split(row, "|")
		if len(cells) != len(f.sch.Fields) {
			continue
		}
		key := ""
		for _, c := range pk {
			key += cells[c] + "|"
		}
		if seen[key] {
			f.t.Fatalf("%s: key %s is there twice", when, key)
		}
		seen[key] = true
	}
}

// javaSees has Java read and examine a copy of the table.
func (f *fleet) javaSees(when string) {
	f.t.Helper()
	dir := f.t.TempDir()
	java := oracle.Maybe(f.t, dir)
	if java == nil {
		return
	}
	for _, p := range filesBelow(f.t, f.io, workDir) {
		raw, err := f.io.ReadFile(context.Background(), p)
		if err != nil {
			f.t.Fatal(err)
		}
		to := filepath.Join(dir, p)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, raw, 0o644)); err != nil {
			f.t.Fatal(err)
		}
	}
	s, end := f.process()
	defer end()
	ours, _, err := readAll(context.Background(), s, Scan{Limit: -1}, ReadOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	var lines strings.Builder
	for _, r := range java.Rows(f.t, "db.t", nil) {
		lines.Write(append(r, '\n'))
	}
	file := filepath.Join(dir, "rows.jsonl")
	if err := os.WriteFile(file, []byte(lines.String()), 0o644); err != nil {
		f.t.Fatal(err)
	}
	if theirs := expected(f.t, file, f.sch.Fields); !slices.Equal(ours, theirs) {
		f.t.Fatalf("%s: we read\n%s\nJava reads\n%s", when, strings.Join(ours, "\n"), strings.Join(theirs, "\n"))
	}
	java.CheckKilled(f.t, "db.t")
}

// cutModes are the ways in which a statement is cut.
var cutModes = []struct {
	name    string
	crash   bool // the machine stops, and another process opens what is left
	after   bool // the call has done its work
	on      bool // all calls after it fail, too
	chance  bool // a part of what was not synced survives the crash
	process bool // only the process ends: all that it wrote is there
}{
	{name: "crash", crash: true},
	{name: "crash after", crash: true, after: true},
	{name: "crash, some survives", crash: true, chance: true},
	{name: "crash after, some survives", crash: true, after: true, chance: true},
	{name: "error", after: false},
	{name: "error after", after: true},
	{name: "errors from then on", on: true},
	{name: "errors from then on, process gone", on: true, process: true},
	{name: "lost replies from then on, process gone", on: true, after: true, process: true},
}

// TestBucketCuts cuts statements of tables whose keys have no fixed place, or get
// another one, at every file system call (see cutStride), in every way. What is left is the state
// before or the one after, the latter if the statement was acknowledged; each key is
// there once; no file is missing; and statements go on, in the process that met the
// errors and in another one.
func TestBucketCuts(t *testing.T) {
	for _, c := range slices.Concat(crossCuts(), rescaleCuts(), compactCuts()) {
		t.Run(c.name, func(t *testing.T) { c.run(t) })
	}
}

// cutStride is how far it is from the call of one cut to that of the next. With a
// factor of 21 or more every call is cut.
func cutStride() int { return max(1, 41/testkit.Factor()) }

func (c *cutCase) run(t *testing.T) {
	seed := random.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
	base := newFleet(t, fileio.NewMem(), c.table(t), 0)
	c.prepare(base)
	// What should come out, from statements that nothing disturbs: by how often the
	// statement was done.
	undisturbed := func(works ...func(f *fleet, s *FileStore) error) string {
		f := base.copyTo(fileio.NewMem())
		for _, work := range works {
			s, end := f.process()
			if err := work(f, s); err != nil {
				t.Fatal(err)
			}
			end()
		}
		out := f.looks()
		f.uniqueKeys(out, "undisturbed")
		if c.dynamic > 0 {
			f.indexed(c.dynamic)
		}
		return out
	}
	old, done := undisturbed(), undisturbed(c.work)
	again := map[string]string{old: done, done: undisturbed(c.work, c.work)}
	next := map[string]string{}
	for state, now := range map[string][]func(f *fleet, s *FileStore) error{old: {c.next}, done: {c.work, c.next}} {
		next[state] = undisturbed(now...)
	}
	total := 0
	for _, mode := range cutModes {
		points := 0
		stride := cutStride()
		for n := 1 + rnd.IntN(stride); ; n += stride {
			when := fmt.Sprintf("seed %d, %s, call %d", seed, mode.name, n)
			cut := c.cut(t, base, n, mode.crash, mode.after, mode.on)
			if cut == nil {
				break
			}
			points++
			when = fmt.Sprintf("%s: %v", when, cut.err)
			f, s, end := cut.f, cut.s, cut.end
			if mode.crash || mode.process {
				end()
				if mode.crash {
					var r *rand.Rand
					if mode.chance {
						r = rnd
					}
					when += ": " + cut.disk.Last()
					f = &fleet{t: t, io: cut.disk.Reopen(r), sch: base.sch}
				}
				s, end = f.process()
			}
			filesExist(t, f.io, when)
			state := f.looks()
			f.uniqueKeys(state, when)
			if c.dynamic > 0 {
				f.indexed(c.dynamic)
			}
			var unknown *commit.UnknownOutcomeError
			var later *doneError
			sure := cut.err == nil || errors.As(cut.err, &later)
			switch {
			case state != old && state != done:
				t.Fatalf("%s: neither the old state nor the new one:\n%s\nold:\n%s\nnew:\n%s", when, state, old, done)
			case sure && state != done:
				t.Fatalf("%s: it was acknowledged and is not there", when)
			case !sure && state != old && !errors.As(cut.err, &unknown):
				t.Fatalf("%s: it failed and is there", when)
			}
			if !mode.crash && !mode.on && !mode.after && !errors.Is(cut.err, errLeft) && !sure {
				noOrphans(t, f.io)
			}
			java := (n+int(seed%29))%29 == 0
			if java && !c.hidden {
				f.javaSees(when)
			}
			// The session tries again, or another statement comes.
			follow, want, what := c.next, next[state], ", and the next statement"
			if n%2 == 0 {
				follow, want, what = c.work, again[state], ", and again"
			}
			when += what
			if err := follow(f, s); err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			if got := f.looks(); got != want {
				t.Fatalf("%s:\n%s\nwant:\n%s", when, got, want)
			}
			if _, err := s.Compact(context.Background(), CompactOptions{Full: n%3 == 0, Level0: true}); err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			if got := f.looks(); got != want {
				t.Fatalf("%s, compacted:\n%s\nwant:\n%s", when, got, want)
			}
			filesExist(t, f.io, when)
			if c.dynamic > 0 {
				f.indexed(c.dynamic)
			}
			if java {
				f.javaSees(when)
			}
			end()
			if t.Failed() {
				t.Fatal(when)
			}
		}
		if points < c.least/stride {
			t.Errorf("%s: only %d calls", mode.name, points*stride)
		}
		total += points
	}
	t.Logf("%d points", total)
}

// cutRun is a statement that was cut.
type cutRun struct {
	f    *fleet
	s    *FileStore
	end  func()
	disk *fileio.Crash
	err  error
}

// cut does the statement with call n cut; nil: it makes fewer.
func (c *cutCase) cut(t *testing.T, base *fleet, n int, crash, after, on bool) *cutRun {
	r := &cutRun{}
	if crash {
		r.disk = fileio.NewCrash()
		r.f = base.copyTo(r.disk)
		r.s, r.end = r.f.process()
		r.disk.At(n, after)
		r.err = c.work(r.f, r.s)
		if r.disk.Crashed() {
			return r
		}
	} else {
		fault := fileio.NewFault(fileio.NewMem())
		r.f = base.copyTo(fault)
		r.s, r.end = r.f.process()
		fault.Add(fileio.Rule{Nth: n, Err: errCut, After: after, On: on, Truncate: -1})
		r.err = c.work(r.f, r.s)
		hits := fault.Hits()
		fault.Clear()
		if hits > 0 {
			return r
		}
	}
	r.end()
	if r.err != nil {
		t.Fatalf("call %d was not reached: %v", n, r.err)
	}
	return nil
}

var errCut = errors.New("the cable was cut")

// compacting is a statement that compacts.
func compacting(o CompactOptions) func(f *fleet, s *FileStore) error {
	return func(_ *fleet, s *FileStore) error {
		_, err := s.Compact(context.Background(), o)
		return err
	}
}

// writing is a statement that writes groups of rows.
func writing(o WriteOptions, how func(c *commit.Changes), rows ...[][]types.Datum) func(f *fleet, s *FileStore) error {
	return func(f *fleet, s *FileStore) error { return f.statement(s, o, how, rows...) }
}

func crossRow(p, k int, a any, b string) []types.Datum {
	if n, ok := a.(int); ok {
		a = int64(n)
	}
	return []types.Datum{int64(p), int64(k), a, b}
}

// crossStart puts ten keys into two partitions, three of them moved in between.
func crossStart(f *fleet) {
	s, end := f.process()
	defer end()
	var first, second [][]types.Datum
	for k := range 10 {
		first = append(first, crossRow(k%2, k, k, "old"))
	}
	second = append(second, crossRow(1, 0, 100, "moved"), crossRow(0, 1, 101, "moved"), crossRow(2, 2, 102, "moved"))
	for _, rows := range [][][]types.Datum{first, second} {
		if err := f.statement(s, WriteOptions{}, nil, rows); err != nil {
			f.t.Fatal(err)
		}
	}
}

// crossCuts are statements that move keys between partitions.
func crossCuts() (out []cutCase) {
	move := [][]types.Datum{crossRow(2, 0, 7, "new"), crossRow(0, 3, nil, "new"), crossRow(1, 4, 9, "new"), crossRow(1, 5, 5, "stays"), crossRow(3, 20, 1, "fresh")}
	next := writing(WriteOptions{}, nil, [][]types.Datum{crossRow(0, 0, 1, "n"), crossRow(2, 3, 2, "n"), crossRow(3, 4, 3, "n"), crossRow(2, 20, 4, "n"), crossRow(1, 6, 5, "n")})
	for _, e := range []struct {
		name   string
		more   []string
		hidden bool
	}{
		{"deduplicate", nil, false},
		{"partial-update", []string{"merge-engine", "partial-update"}, false},
		{"aggregation", []string{"merge-engine", "aggregation", "fields.a.aggregate-function", "sum"}, false},
		{"first-row", []string{"merge-engine", "first-row"}, true},
		{"lookup changelog", []string{"changelog-producer", "lookup"}, true},
		{"vectors", []string{"deletion-vectors.enabled", "true"}, true},
	} {
		c := cutCase{
			table: func(t testing.TB) *schema.Table {
				return crossTable(t, append([]string{"dynamic-bucket.target-row-num", "2"}, e.more...)...)
			},
			prepare: crossStart, next: next, hidden: e.hidden, least: 40,
		}
		c.name, c.work = "cross "+e.name, writing(WriteOptions{}, nil, move)
		out = append(out, c)
		if e.name != "deduplicate" && e.name != "vectors" {
			continue
		}
		// A transaction of statements that move the same keys, and one that deletes.
		c.name = "cross transaction " + e.name
		c.work = writing(WriteOptions{}, nil, move[:3], [][]types.Datum{crossRow(1, 0, 8, "newer"), crossRow(3, 1, 8, "newer"), append(crossRow(0, 6, 0, ""), uint8(3))},
			[][]types.Datum{crossRow(0, 0, 9, "newest"), append(crossRow(3, 1, 0, ""), uint8(3)), crossRow(3, 21, 9, "newest")})
		out = append(out, c)
		c.name = "cross overwrite " + e.name
		c.work = writing(WriteOptions{Overwrite: true}, func(c *commit.Changes) { c.Kind = commit.Overwrite }, [][]types.Datum{crossRow(0, 1, 1, "over"), crossRow(0, 0, 1, "over"), crossRow(2, 3, 1, "over")})
		out = append(out, c)
		c.name = "cross overwrite of all " + e.name
		c.work = writing(WriteOptions{Overwrite: true, OverwriteAll: true}, func(c *commit.Changes) { c.Kind, c.Overwrite = commit.Overwrite, &commit.Replacement{} }, move)
		out = append(out, c)
	}
	return out
}

// threeCols are rows of fixed, dynamic and postponed tables: partition, key, value.
func threeCols(from, to, parts int, v string) (rows [][]types.Datum) {
	for k := from; k < to; k++ {
		rows = append(rows, []types.Datum{int64(k % parts), int64(k), v + fmt.Sprint(k)})
	}
	return rows
}

// rescaleCuts rewrite partitions into another number of buckets, by the procedure
// and by an overwrite.
func rescaleCuts() (out []cutCase) {
	for _, name := range []string{"deduplicate", "aggregation", "first-row", "vectors"} {
		more := rescaleEngines[name]
		c := cutCase{
			table: func(t testing.TB) *schema.Table { return fixedTable(t, 2, more...) },
			prepare: func(f *fleet) {
				s, end := f.process()
				defer end()
				for i, rows := range [][][]types.Datum{threeCols(0, 12, 2, "a"), threeCols(4, 8, 2, "b")} {
					if err := f.statement(s, WriteOptions{}, nil, rows); err != nil {
						f.t.Fatal(err)
					}
					if _, err := s.Compact(context.Background(), CompactOptions{Full: true}); i == 0 && err != nil {
						f.t.Fatal(err)
					}
				}
				f.alter(fixedTable(f.t, 3, more...))
			},
			hidden: name == "first-row" || name == "vectors", least: 30,
		}
		// What comes next must write with the number of buckets that is there.
		c.next = func(f *fleet, s *FileStore) error {
			if err := f.statement(s, WriteOptions{Overwrite: true}, func(c *commit.Changes) { c.Kind, c.Overwrite = commit.Overwrite, &commit.Replacement{Dynamic: true} }, threeCols(3, 6, 1, "n")); err != nil {
				return err
			}
			if _, err := s.Rescale(context.Background(), RescaleOptions{}); err != nil {
				return err
			}
			return f.statement(s, WriteOptions{}, nil, threeCols(2, 9, 3, "m"))
		}
		c.name, c.work = "rescale "+name, func(_ *fleet, s *FileStore) error {
			r, err := s.Rescale(context.Background(), RescaleOptions{})
			if err != nil && r != nil && r.SnapshotID > 0 {
				return &doneError{err}
			}
			return err
		}
		out = append(out, c)
		c.name, c.work = "rescale overwrite "+name, writing(WriteOptions{Overwrite: true}, func(c *commit.Changes) { c.Kind, c.Overwrite = commit.Overwrite, &commit.Replacement{Dynamic: true} }, threeCols(2, 7, 2, "o"))
		out = append(out, c)
		if name == "deduplicate" || name == "vectors" {
			c.name, c.work = "rescale overwrite of all "+name, writing(WriteOptions{Overwrite: true, OverwriteAll: true}, func(c *commit.Changes) { c.Kind, c.Overwrite = commit.Overwrite, &commit.Replacement{} }, threeCols(2, 7, 1, "o"))
			out = append(out, c)
		}
	}
	return out
}

// compactCuts compact tables with dynamic buckets and deletion vectors.
func compactCuts() (out []cutCase) {
	vectors := []string{"deletion-vectors.enabled", "true", "num-sorted-run.compaction-trigger", "100"}
	cross := cutCase{
		table: func(t testing.TB) *schema.Table {
			return crossTable(t, append([]string{"dynamic-bucket.target-row-num", "3"}, vectors...)...)
		},
		prepare: func(f *fleet) {
			crossStart(f)
			s, end := f.process()
			defer end()
			err := compacting(CompactOptions{Full: true})(f, s)
			err = errors.Join(err, f.statement(s, WriteOptions{}, nil, [][]types.Datum{crossRow(2, 0, 7, "new"), crossRow(0, 3, nil, "new"), crossRow(1, 5, 5, "stays"), crossRow(3, 20, 1, "fresh")}))
			err = errors.Join(err, compacting(CompactOptions{Level0: true})(f, s))
			err = errors.Join(err, f.statement(s, WriteOptions{}, nil, [][]types.Datum{crossRow(0, 0, 8, "new"), crossRow(1, 4, 1, "newer"), append(crossRow(1, 7, 0, ""), uint8(3))}))
			if err != nil {
				f.t.Fatal(err)
			}
		},
		next:   writing(WriteOptions{}, nil, [][]types.Datum{crossRow(1, 0, 1, "n"), crossRow(2, 3, 2, "n"), crossRow(3, 4, 3, "n"), crossRow(2, 20, 4, "n"), crossRow(1, 6, 5, "n")}),
		hidden: true, least: 40,
	}
	dynamic := cutCase{
		table: func(t testing.TB) *schema.Table { return dynamicTable(t, 3, vectors...) },
		prepare: func(f *fleet) {
			s, end := f.process()
			defer end()
			err := f.statement(s, WriteOptions{}, nil, threeCols(0, 10, 2, "a"))
			err = errors.Join(err, compacting(CompactOptions{Full: true})(f, s))
			err = errors.Join(err, f.statement(s, WriteOptions{}, nil, threeCols(2, 6, 2, "b")))
			err = errors.Join(err, compacting(CompactOptions{Level0: true})(f, s))
			err = errors.Join(err, f.statement(s, WriteOptions{}, nil, append(threeCols(5, 12, 2, "c"), []types.Datum{int64(1), int64(1), nil, uint8(3)})))
			if err != nil {
				f.t.Fatal(err)
			}
		},
		next:   writing(WriteOptions{}, nil, append(threeCols(9, 15, 2, "n"), threeCols(0, 3, 3, "n")...)),
		hidden: true, dynamic: 3, least: 40,
	}
	for _, c := range []cutCase{cross, dynamic} {
		what := "cross"
		if c.dynamic > 0 {
			what = "dynamic"
			c.name, c.work = "write dynamic vectors", c.next
			out = append(out, c)
			c.name, c.work = "transaction dynamic vectors", writing(WriteOptions{}, nil, threeCols(9, 15, 2, "n"), threeCols(11, 18, 2, "m"), [][]types.Datum{{int64(1), int64(11), nil, uint8(3)}})
			out = append(out, c)
			c.name, c.work = "overwrite dynamic vectors", writing(WriteOptions{Overwrite: true}, func(c *commit.Changes) { c.Kind, c.Overwrite = commit.Overwrite, &commit.Replacement{Dynamic: true} }, threeCols(5, 15, 1, "o"))
			out = append(out, c)
		}
		c.name, c.work = "compact full "+what, compacting(CompactOptions{Full: true})
		out = append(out, c)
		c.name, c.work = "compact level 0 "+what, compacting(CompactOptions{Level0: true})
		out = append(out, c)
		c.name, c.work = "compact vectors away "+what, compacting(CompactOptions{DropVectors: true})
		out = append(out, c)
	}
	return out
}
