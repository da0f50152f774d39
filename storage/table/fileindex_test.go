package table

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
)

// indexedTable has three files with the strings v0 to v9, v10 to v19 and v20 to v29, each
// a hundred times, whose indexes lie in files of their own or in the manifest.
func indexedTable(t testing.TB, kind string, options map[string]string) *written {
	o := map[string]string{"file-index." + kind + ".columns": "s", "metadata.stats-mode": "none", "file-index.in-manifest-threshold": "1 b", "bucket": "-1"}
	maps.Copy(o, options)
	w := newWritten(t, tableSchema(t, o, nil, "a BIGINT", "s STRING"))
	for f := range 3 {
		var rows [][]types.Datum
		for i := range 1000 {
			rows = append(rows, []types.Datum{int64(1000*f + i), fmt.Sprintf("v%d", 10*f+i/100)})
		}
		w.write(rows, nil)
	}
	return w
}

// ask reads column a where n holds, in a fresh environment unless one is given.
func (w *written) ask(env *Env, n predicate.Node, o map[string]string, without Pruning) (rows []string, report *PlanReport, err error) {
	w.t.Helper()
	if env == nil {
		env = NewEnv(w.io, EnvOptions{})
		defer env.Close()
	}
	store := Open(env, w.store.dir)
	ctx := context.Background()
	s := Scan{Columns: []int{0, 1}, Limit: -1, Overlay: &w.over, Filter: n, Options: o, Without: without}
	p, err := store.Plan(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	all := []int{0, 1}
	for _, sp := range p.Splits {
		c := &format.Counters{}
		rd, err := store.Read(ctx, s, sp, ReadOptions{Filter: newTreeFilter(n, all), Counters: c})
		if err != nil {
			return nil, nil, err
		}
		for {
			b, err := rd.Next(ctx)
			if err != nil {
				_ = rd.Close()
				return nil, nil, err
			}
			if b == nil {
				break
			}
			for i := range b.N {
				rows = append(rows, rowText(b.Cols[:1], i))
			}
		}
		_ = rd.Close()
		p.Report.Counters.Add(c)
	}
	slices.Sort(rows)
	return rows, p.Report, nil
}

func numbers(from, to int) (out []string) {
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprint(i))
	}
	return out
}

// TestIndexesSkip asks tables whose indexes lie in either place, with every way to switch
// them off.
func TestIndexesSkip(t *testing.T) {
	for _, kind := range []string{"bloom-filter", "bitmap", "range-bitmap"} {
		for _, threshold := range []string{"1 b", "1 mb"} {
			o := map[string]string{"file-index.in-manifest-threshold": threshold}
			if kind == "bloom-filter" {
				o["file-index.bloom-filter.s.fpp"], o["file-index.bloom-filter.s.items"] = "0.00001", "1000"
			}
			w := indexedTable(t, kind, o)
			n := leafOn(w.sch.Fields, 1, predicate.Eq, "v13")
			for _, off := range []bool{false, true} {
				for _, o := range []map[string]string{nil, {"file-index.read.enabled": "false"}} {
					without := Pruning(0)
					if off {
						without = PruneIndexes
					}
					rows, r, err := w.ask(nil, n, o, without)
					if err != nil {
						t.Fatal(err)
					}
					wantRows(t, rows, numbers(1300, 1400))
					name := (&candidates{kind: kind}).reason()
					planned, read := r.Skipped[name], r.Counters.IndexFiles[name]
					on := !off && o == nil
					switch {
					case !on && (planned != 0 || read != 0 || r.Counters.IndexBytes != 0):
						t.Errorf("%s: indexes are asked although they must not be: %+v", kind, r)
					case on && threshold == "1 b" && (planned != 0 || read != 2):
						t.Errorf("%s: %d files ruled out while planning, %d while reading", kind, planned, read)
					case on && threshold != "1 b" && (planned != 2 || read != 0):
						t.Errorf("%s: %d files ruled out while planning, %d while reading", kind, planned, read)
					case on && kind != "bloom-filter" && r.Counters.IndexRows != 900:
						t.Errorf("%s: %d rows left out", kind, r.Counters.IndexRows)
					}
				}
			}
		}
	}
}

// TestIndexRowsAndVectors: positions of an index and a deletion vector are of the same
// rows.
func TestIndexRowsAndVectors(t *testing.T) {
	w := indexedTable(t, "bitmap", map[string]string{"deletion-vectors.enabled": "true"})
	w.publish()
	gone := map[string][]int64{}
	for at, row := range w.positions() {
		var pos, a int64
		file, num, _ := strings.Cut(at, "#")
		if _, err := fmt.Sscanf(num+" "+row, "%d %d|", &pos, &a); err != nil {
			t.Fatal(err)
		}
		if a >= 1310 && a < 1350 {
			gone[file] = append(gone[file], pos)
		}
	}
	wr := w.open(nil)
	for f, pos := range gone {
		slices.Sort(pos)
		if err := wr.Delete(context.Background(), f, pos); err != nil {
			t.Fatal(err)
		}
	}
	w.done(wr)
	rows, r, err := w.ask(nil, leafOn(w.sch.Fields, 1, predicate.Eq, "v13"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	wantRows(t, rows, append(numbers(1300, 1310), numbers(1350, 1400)...))
	if r.Counters.IndexRows != 900 || r.DeletionVectors != 1 {
		t.Errorf("%+v", r)
	}
}

// TestDamagedIndexes: whatever has become of a file of indexes, the rows are right, it is
// counted, and told once.
func TestDamagedIndexes(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(b []byte, other []byte) []byte // nil = the file is gone
	}{
		{"missing", func(b, _ []byte) []byte { return nil }},
		{"empty", func(b, _ []byte) []byte { return []byte{} }},
		{"short", func(b, _ []byte) []byte { return b[:20] }},
		{"without its end", func(b, _ []byte) []byte { return b[:len(b)-40] }},
		{"no container", func(b, _ []byte) []byte { b[3] ^= 1; return b }},
		{"of a version to come", func(b, _ []byte) []byte { binary.BigEndian.PutUint32(b[8:], 7); return b }},
		{"of another number of rows", func(_, other []byte) []byte { return other }},
	} {
		w := indexedTable(t, "bitmap", nil)
		few := newWritten(t, tableSchema(t, w.sch.Options, nil, "a BIGINT", "s STRING"))
		few.write([][]types.Datum{{int64(1), "v1"}, {int64(2), "v2"}}, nil)
		read := func(w *written, i int) (string, []byte) {
			m := adds(w.over)[i]
			if len(m.ExtraFiles) != 1 {
				t.Fatalf("%v", m.ExtraFiles)
			}
			path := w.store.dir + "/bucket-0/" + m.ExtraFiles[0]
			b, err := w.io.ReadFile(context.Background(), path)
			if err != nil {
				t.Fatal(err)
			}
			return path, slices.Clone(b)
		}
		_, other := read(few, 0)
		path, b := read(w, 1)
		if err := w.io.Delete(context.Background(), path); err != nil {
			t.Fatal(err)
		}
		if b = c.damage(b, other); b != nil {
			if err := w.io.Put(context.Background(), path, b); err != nil {
				t.Fatal(err)
			}
		}
		told := 0
		env := NewEnv(w.io, EnvOptions{Events: Events{IndexDamaged: func(p string, err error) {
			if told++; p != path || err == nil {
				t.Errorf("%s: told of %s: %v", c.name, p, err)
			}
		}}})
		for _, v := range []int{13, 7, 13} {
			rows, r, err := w.ask(env, leafOn(w.sch.Fields, 1, predicate.Eq, fmt.Sprintf("v%d", v)), nil, 0)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			wantRows(t, rows, numbers(100*v, 100*v+100))
			if r.Counters.IndexDamaged != 1 {
				t.Errorf("%s: %d damaged indexes", c.name, r.Counters.IndexDamaged)
			}
		}
		if told != 1 {
			t.Errorf("%s: told %d times", c.name, told)
		}
		env.Close()
	}
}

// TestSeveralIndexFiles: as in Java it is an error when a file has two files of indexes.
func TestSeveralIndexFiles(t *testing.T) {
	w := indexedTable(t, "bitmap", nil)
	m := adds(w.over)[1]
	m.ExtraFiles = append(m.ExtraFiles, "other.index")
	var bad *fileio.CorruptionError
	if _, _, err := w.ask(nil, leafOn(w.sch.Fields, 1, predicate.Eq, "v13"), nil, 0); !errors.As(err, &bad) {
		t.Errorf("%v", err)
	}
	if _, _, err := w.ask(nil, leafOn(w.sch.Fields, 1, predicate.Eq, "v13"), nil, PruneIndexes); err != nil {
		t.Error(err)
	}
}

// TestIndexesOfOldSchema: an index is found under the name that its column had when the
// file was written, and one of a column that bears the name now is not.
func TestIndexesOfOldSchema(t *testing.T) {
	w := indexedTable(t, "bitmap", nil)
	s := *w.sch
	s.ID, s.HighestFieldID = 1, s.HighestFieldID+1
	s.Fields = slices.Clone(s.Fields)
	s.Fields[1].Name = "renamed"
	s.Fields = append(s.Fields, types.Field{ID: 77, Name: "s", Type: types.Of(types.Text)})
	s.Options = nil
	b := &built{t: t, io: w.io, dir: w.store.dir}
	b.putSchema(&s)
	old := *w
	old.sch = &s
	rows, r, err := old.ask(nil, leafOn(s.Fields, 1, predicate.Eq, "v13"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	wantRows(t, rows, numbers(1300, 1400))
	if r.Counters.IndexFiles["bitmap"] != 2 {
		t.Errorf("%+v", r)
	}
	_, r, err = old.ask(nil, leafOn(s.Fields, 0, predicate.GtEq, int64(0)), nil, 0)
	if err != nil || len(r.Counters.IndexFiles) != 0 {
		t.Errorf("%+v: %v", r, err)
	}
}

// TestIndexCache: heads of indexes are read once.
func TestIndexCache(t *testing.T) {
	w := indexedTable(t, "bitmap", nil)
	env := NewEnv(w.io, EnvOptions{})
	defer env.Close()
	read := func() int64 {
		_, r, err := w.ask(env, leafOn(w.sch.Fields, 1, predicate.Eq, "v13"), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		return r.Counters.IndexBytes
	}
	first := read()
	if again := read(); first == 0 || again != 0 {
		t.Errorf("%d bytes are read at first, then %d", first, again)
	}
	if env.indexes.Used() < first {
		t.Errorf("%d bytes are accounted for", env.indexes.Used())
	}
	for _, m := range adds(w.over) {
		env.forget([]string{w.store.dir + "/bucket-0/" + m.Name})
	}
	if env.indexes.Used() != 0 {
		t.Errorf("%d bytes are left", env.indexes.Used())
	}
}

type noLate struct{}

func (noLate) Poll() predicate.Node { return nil }

// TestTopRows: of a file whose index knows the order of a column only the rows that come
// first are read, ties included, and only of those that live.
func TestTopRows(t *testing.T) {
	for _, threshold := range []string{"1 b", "1 mb"} {
		w := indexedTable(t, "range-bitmap", map[string]string{"file-index.in-manifest-threshold": threshold, "deletion-vectors.enabled": "true"})
		w.publish()
		wr := w.open(nil)
		for at, row := range w.positions() {
			file, num, _ := strings.Cut(at, "#")
			if strings.HasPrefix(row, "29") { // v29 of the last file
				pos, err := strconv.ParseInt(num, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Index(row, "|") == 4 {
					if err := wr.Delete(context.Background(), file, []int64{pos}); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		w.done(wr)
		s := Scan{Columns: []int{0, 1}, Limit: -1, Overlay: &w.over, Late: noLate{}, Order: &Order{Column: 1, Desc: true, Rows: 5}}
		ctx := context.Background()
		p, err := w.store.Plan(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		c := &format.Counters{}
		for _, sp := range p.Splits {
			rd, err := w.store.Read(ctx, s, sp, ReadOptions{Counters: c})
			if err != nil {
				t.Fatal(err)
			}
			for {
				b, err := rd.Next(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if b == nil {
					break
				}
				for i := range b.N {
					got[strings.Trim(rowText(b.Cols[1:], i), `"`)]++
				}
			}
			_ = rd.Close()
		}
		if len(got) != 3 || got["v9"] != 100 || got["v19"] != 100 || got["v28"] != 100 {
			t.Errorf("%v", got)
		}
		if c.IndexRows != 900+900+800 {
			t.Errorf("%+v", *c)
		}
	}
}
