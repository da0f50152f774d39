package table

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// engineModel is what a table under an engine holds: versions by key, in order of
// their sequence numbers.
type engineModel struct {
	t       *testing.T
	s       *schema.Table
	keyCols []int
	ignore  bool
	next    int64
	done    map[string][]row // committed
	open    map[string][]row // of the transaction
}

// fold makes one version of several, or none.
func (m *engineModel) fold(vs []row) []row {
	if len(vs) < 2 {
		return vs
	}
	sortVersions(m.s, vs)
	x, kind := foldModel(m.t, m.s, vs)
	if kind == mergetree.NoRow {
		return nil
	}
	x.kind = int8(kind)
	return []row{x}
}

// statement takes the rows of one flush.
func (m *engineModel) statement(rows []row) {
	byKey := map[string][]row{}
	for _, x := range rows {
		if m.ignore && x.kind&1 != 0 {
			continue
		}
		x.seq = m.next
		m.next++
		k := keyText(m.s, m.keyCols, x.vals)
		byKey[k] = append(byKey[k], x)
	}
	for k, vs := range byKey {
		m.open[k] = append(m.open[k], m.fold(vs)...)
	}
}

// commit ends the transaction, which was folded.
func (m *engineModel) commit(folded bool) {
	for k, vs := range m.open {
		if folded {
			vs = m.fold(vs)
		}
		m.done[k] = append(m.done[k], vs...)
	}
	m.open = map[string][]row{}
}

func (m *engineModel) rows() []string {
	var out []string
	keys := maps.Clone(m.done)
	for k, vs := range m.open {
		keys[k] = append(slices.Clone(keys[k]), vs...)
	}
	for _, vs := range keys {
		if len(vs) == 0 {
			continue
		}
		vs = slices.Clone(vs)
		sortVersions(m.s, vs)
		x, kind := foldModel(m.t, m.s, vs)
		if kind == mergetree.NoRow || kind&1 != 0 {
			continue
		}
		var ps []string
		for c, f := range m.s.Fields {
			ps = append(ps, text(f.Type, x.vals[c]))
		}
		out = append(out, strings.Join(ps, " | "))
	}
	sort.Strings(out)
	return out
}

// TestEngineWrites writes transactions of several statements under every engine and
// compares what is read inside of them, after Fold and after the commit with a model
// that folds where the writer does.
func TestEngineWrites(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 5))
	for i := range testkit.Rounds(3) {
		for _, c := range engineCases() {
			engineWriteRound(t, r, c)
			if t.Failed() {
				t.Fatalf("%s, round %d of seed %d", c.name, i, seed)
			}
		}
	}
}

func engineWriteRound(t *testing.T, r *rand.Rand, c engineCase) {
	opts := maps.Clone(c.opts)
	if r.IntN(3) == 0 {
		opts["data-file.thin-mode"] = "true"
	}
	if r.IntN(3) == 0 {
		opts["local-merge-buffer-size"] = "64 mb"
	}
	s := tableSchema(t, opts, []string{"k", "l"}, append([]string{"k INT", "l STRING"}, engineColumns...)...)
	rowColumn(s)
	w := newWritten(t, s)
	m := &engineModel{t: t, s: s, done: map[string][]row{}, open: map[string][]row{}, ignore: opts["ignore-delete"] == "true"}
	m.keyCols, _ = columnsOf(s, s.PrimaryKeys)
	check := func(when string) {
		t.Helper()
		got, _, err := readAll(context.Background(), w.store, Scan{Limit: -1, Overlay: &w.over}, ReadOptions{})
		if err != nil {
			t.Fatalf("%s, %s: %v", c.name, when, err)
		}
		if want := m.rows(); !slices.Equal(got, want) {
			t.Fatalf("%s, %s: %d rows, want %d%s", c.name, when, len(got), len(want), diff(got, want))
		}
	}
	span := []int64{2, 5, 30}[r.IntN(3)]
	removes := mergetree.Removes(opts) // what comes after a removal is not folded with it: see TestRemovedRowsStayAway
	for range 3 {
		met := map[string]bool{}
		statements := 1 + r.IntN(4)
		for range statements {
			var rows []row
			var vals [][]types.Datum
			var kinds []uint8
			for range 1 + r.IntN(60) {
				x := row{}
				for _, f := range s.Fields {
					x.vals = append(x.vals, engineDatum(r, f, span))
				}
				if len(c.kinds) > 0 && r.IntN(4) == 0 {
					x.kind = c.kinds[r.IntN(len(c.kinds))]
				}
				if key := keyText(s, m.keyCols, x.vals); removes && met[key] {
					continue
				} else {
					met[key] = true
				}
				rows, vals, kinds = append(rows, x), append(vals, x.vals), append(kinds, uint8(x.kind))
			}
			if len(rows) == 0 {
				continue
			}
			wr := w.open(nil)
			half := r.IntN(len(vals) + 1)
			for _, part := range [][2]int{{0, half}, {half, len(vals)}} {
				if part[0] == part[1] {
					continue
				}
				if err := wr.Write(t.Context(), w.batch(vals[part[0]:part[1]]), kinds[part[0]:part[1]]); err != nil {
					t.Fatal(err)
				}
			}
			w.done(wr)
			m.statement(rows)
		}
		check("in the transaction")
		out, dropped, err := w.store.Fold(t.Context(), w.over, w.ref(), nil)
		if err != nil {
			t.Fatal(c.name, err)
		}
		w.over = out
		m.commit(len(dropped) > 0)
		check("folded")
		w.publish()
		check("committed")
	}
}

// TestEngineBuffers writes what does not depend on where flushes end with buffers
// of any size.
func TestEngineBuffers(t *testing.T) {
	var want []string
	for _, size := range []string{"256 mb", "1 b", "3 kb", "20 kb"} {
		s := tableSchema(t, map[string]string{
			"bucket": "2", "merge-engine": "aggregation", "write-buffer-size": size, "fields.a.aggregate-function": "sum", "fields.b.aggregate-function": "max",
		}, []string{"k"}, "k INT", "a BIGINT", "b STRING", "c INT")
		w := newWritten(t, s)
		r := rand.New(rand.NewPCG(4, 4))
		wr := w.open(nil)
		for range 20 {
			var rows [][]types.Datum
			for range 100 {
				x := []types.Datum{r.Int64N(50), r.Int64N(10), fmt.Sprint(r.IntN(100)), nil}
				if r.IntN(2) == 0 {
					x[3] = r.Int64N(5)
				}
				rows = append(rows, x)
			}
			if err := wr.Write(t.Context(), w.batch(rows), nil); err != nil {
				t.Fatal(err)
			}
		}
		files := len(adds(w.done(wr)))
		got := w.scan(nil)
		if want == nil {
			want = got
		}
		if size == "1 b" && files < 10 {
			t.Errorf("%d files", files)
		}
		wantRows(t, got, slices.Clone(want))
	}
	if len(want) != 50 {
		t.Errorf("%d keys", len(want))
	}
}

// TestSnapshotOrdering: under sequence.snapshot-ordering the later snapshot wins,
// whatever the numbers of its rows are, and its id is their sequence number.
func TestSnapshotOrdering(t *testing.T) {
	s := tableSchema(t, map[string]string{"bucket": "1", "write-only": "true", "sequence.snapshot-ordering": "true"}, []string{"k"}, "k INT", "v STRING")
	w := newWritten(t, s)
	old, late := w.open(nil), w.open(nil)
	write := func(wr Writer, v string, keys ...int64) {
		var rows [][]types.Datum
		for _, k := range keys {
			rows = append(rows, []types.Datum{k, v})
		}
		if err := wr.Write(t.Context(), w.batch(rows), nil); err != nil {
			t.Fatal(err)
		}
	}
	write(late, "late", 7, 8, 9, 1, 2, 3)
	write(old, "old", 2, 3, 4)
	for _, wr := range []Writer{late, old} { // in this order
		w.over = commit.Changes{}
		w.done(wr)
		w.publish()
	}
	wantRows(t, w.scan([]int{0, 1, PseudoSequence}), []string{
		`1|"late"|1`, `2|"old"|2`, `3|"old"|2`, `4|"old"|2`, `7|"late"|1`, `8|"late"|1`, `9|"late"|1`,
	})
	// Inside of a transaction the newer statement wins.
	w.write([][]types.Datum{{int64(1), "a"}, {int64(2), "a"}}, nil)
	w.write([][]types.Datum{{int64(2), "b"}}, []uint8{3})
	wantRows(t, w.scan(nil), []string{`1|"a"`, `3|"old"`, `4|"old"`, `7|"late"`, `8|"late"`, `9|"late"`})
	out, _, err := w.store.Fold(t.Context(), w.over, w.ref(), nil)
	if err != nil {
		t.Fatal(err)
	}
	w.over = out
	w.publish()
	wantRows(t, w.scan([]int{0, 1, PseudoSequence}), []string{`1|"a"|3`, `3|"old"|2`, `4|"old"|2`, `7|"late"|1`, `8|"late"|1`, `9|"late"|1`})
}
