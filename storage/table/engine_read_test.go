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

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// engineCase is a table under a merge engine.
type engineCase struct {
	name  string
	kinds []int8 // that rows have beside +I
	opts  map[string]string
}

// engineColumns are the columns of the tables of engineCases.
var engineColumns = []string{
	"a BIGINT", "b STRING", "g1 INT", "c INT", "d DECIMAL(10, 2)", "g2 BIGINT", "h DATE", "e DOUBLE", "r STRING", "arr ARRAY<INT>",
}

func engineCases() []engineCase {
	opts := func(engine string, kv ...string) map[string]string {
		m := map[string]string{"bucket": "1", "merge-engine": engine}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	groups := []string{"fields.g1.sequence-group", "a,b,r", "fields.g2,h.sequence-group", "c,d", "fields.d.aggregate-function", "sum"}
	sums := []string{"fields.a.aggregate-function", "sum", "fields.d.aggregate-function", "sum", "fields.b.aggregate-function", "last_value", "fields.arr.aggregate-function", "collect"}
	return []engineCase{
		{"deduplicate", []int8{1, 2, 3}, opts("deduplicate")},
		{"deduplicate, ignore-delete", []int8{1, 2, 3}, opts("deduplicate", "ignore-delete", "true")},
		{"deduplicate, sequence", []int8{3}, opts("deduplicate", "sequence.field", "g1,h", "sequence.field.sort-order", "descending")},
		{"partial-update", []int8{2}, opts("partial-update")},
		{"partial-update, ignore-delete", []int8{1, 2, 3}, opts("partial-update", "ignore-delete", "true")},
		{"partial-update, sequence", []int8{2}, opts("partial-update", "sequence.field", "g1,g2")},
		{"partial-update, groups", []int8{1, 2, 3}, opts("partial-update", groups...)},
		{"partial-update, remove", []int8{2, 3}, opts("partial-update", "partial-update.remove-record-on-delete", "true")},
		{"partial-update, remove by group", []int8{3}, opts("partial-update", append(groups, "partial-update.remove-record-on-sequence-group", "g2")...)},
		{"aggregation", []int8{1, 2, 3}, opts("aggregation", sums...)},
		{"aggregation, sequence", []int8{2}, opts("aggregation", append(sums, "sequence.field", "g2", "fields.e.aggregate-function", "max", "fields.h.aggregate-function", "first_non_null_value", "fields.r.aggregate-function", "first_value")...)},
		{"aggregation, remove", []int8{2, 3}, opts("aggregation", append(sums, "aggregation.remove-record-on-delete", "true")...)},
		{"first-row", nil, opts("first-row")},
		{"first-row, ignore-delete", []int8{1, 3}, opts("first-row", "ignore-delete", "true")},
	}
}

// rowColumn makes column r a ROW<x INT, y STRING>.
func rowColumn(s *schema.Table) {
	s.Fields[s.Fields.Index("r")].Type = types.Type{Kind: types.Row, Fields: types.Schema{
		{ID: 100, Name: "x", Type: types.Of(types.Int4)}, {ID: 101, Name: "y", Type: types.Of(types.Text)},
	}}
	s.HighestFieldID = 101
}

// engineDatum makes a value of a column of engineColumns.
func engineDatum(r *rand.Rand, f types.Field, span int64) types.Datum {
	if !f.Type.NotNull && r.IntN(3) == 0 {
		return nil
	}
	switch f.Type.Kind {
	case types.Row:
		return []types.Datum{r.Int64N(9), fmt.Sprint(r.IntN(5))}
	case types.Array:
		return []types.Datum{r.Int64N(3), r.Int64N(3)}
	case types.Numeric:
		return decimalOf(nil, fmt.Sprintf("%d.%02d", r.IntN(100), r.IntN(100)))
	}
	if strings.HasPrefix(f.Name, "g") || f.Name == "h" {
		return r.Int64N(4)
	}
	return randomDatum(r, f.Type, span)
}

// foldModel is what the versions of one key become, all columns at once: by the
// engine alone, whose own tests show that it is right.
func foldModel(t *testing.T, s *schema.Table, vs []row) (row, uint8) {
	if len(vs) == 1 {
		return vs[0], uint8(vs[0].kind)
	}
	cols := make([]int, len(s.Fields))
	for i := range cols {
		cols[i] = i
	}
	e, err := mergetree.NewEngine(mergetree.EngineSpec{Table: s, Options: schema.Options(s.Options), Columns: cols})
	if err != nil {
		t.Fatal(err)
	}
	v := mergetree.Versions{N: len(vs), Ends: []uint32{uint32(len(vs))}}
	for _, x := range vs {
		v.Kinds = append(v.Kinds, uint8(x.kind))
	}
	for _, c := range e.Reads() {
		ds := make([]types.Datum, len(vs))
		for i, x := range vs {
			ds[i] = x.vals[c]
		}
		v.Cols = append(v.Cols, vec.FromDatums(s.Fields[c].Type, ds))
	}
	var f mergetree.Folded
	if err := e.Fold(&v, &f); err != nil {
		t.Fatal(err)
	}
	last := len(vs) - 1
	if f.Last != nil {
		last = int(f.Last[0])
	}
	out := row{seq: vs[last].seq}
	for c := range cols {
		out.vals = append(out.vals, vec.DatumAt(f.Cols[c], s.Fields[c].Type, 0))
	}
	kind := mergetree.KindInsert
	if f.Kinds != nil {
		kind = f.Kinds[0]
	}
	return out, kind
}

// TestEngineReads merges random files under every engine, with random windows,
// projections, filters, deletion vectors and scans that keep deletions.
func TestEngineReads(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 9))
	for i := range testkit.Rounds(6) {
		for _, c := range engineCases() {
			engineRound(t, r, c)
			if t.Failed() {
				t.Fatalf("%s, round %d of seed %d", c.name, i, seed)
			}
		}
	}
}

func engineRound(t *testing.T, r *rand.Rand, c engineCase) {
	pk := [][]string{{"k"}, {"k", "l"}, {"l"}}[r.IntN(3)]
	cols := append([]string{"k INT", "l STRING"}, engineColumns...)
	s := tableSchema(t, maps.Clone(c.opts), pk, cols...)
	rowColumn(s)
	b := newBuilt(t, s)
	keyCols, _ := columnsOf(s, pk)
	key := func(v []types.Datum) string { return keyText(s, keyCols, v) }
	versions := map[string][]row{}
	span := []int64{3, 40, 500}[r.IntN(3)]
	runs, overlap := 1+r.IntN(5), r.IntN(4) == 0
	firstRow := c.opts["merge-engine"] == "first-row"
	for run := range runs {
		rows := map[string]row{}
		for i := range 1 + r.IntN(200) {
			x := row{seq: int64(run*1000 + i)}
			if overlap {
				x.seq = int64(i*10 + run)
			}
			for _, f := range s.Fields {
				x.vals = append(x.vals, engineDatum(r, f, span))
			}
			if len(c.kinds) > 0 && r.IntN(4) == 0 {
				x.kind = c.kinds[r.IntN(len(c.kinds))]
			}
			rows[key(x.vals)] = x
		}
		list := slices.Collect(maps.Values(rows))
		sort.Slice(list, func(i, j int) bool { return key(list[i].vals) < key(list[j].vals) })
		level := int32(runs - 1 - run)
		if firstRow {
			level = 0
		}
		f := b.addFile(level, 0, list, 1+r.IntN(50))
		var dead []int64
		for i, x := range list {
			if r.IntN(3) == 0 && run%2 == 0 && level > 0 {
				dead = append(dead, int64(i))
				continue
			}
			versions[key(x.vals)] = append(versions[key(x.vals)], x)
		}
		if len(dead) > 0 {
			b.deletePos(f, dead...)
		}
	}

	// What is read, and how.
	scan := Scan{Limit: -1, KeepDeletes: r.IntN(4) == 0}
	all := []int{PseudoSequence, PseudoKind}
	for i := range s.Fields {
		all = append(all, i)
	}
	switch r.IntN(5) {
	case 0: // all columns of the table
	case 1:
		scan.Columns = []int{} // count(*)
	default:
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		scan.Columns = all[:1+r.IntN(len(all))]
	}
	columns := scan.Columns
	if columns == nil {
		for i := range s.Fields {
			columns = append(columns, i)
		}
	}
	keep := scan.KeepDeletes || slices.Contains(columns, PseudoKind)
	ro := ReadOptions{BatchRows: []int{1, 3, 0}[r.IntN(3)]}
	var leaf *predicate.Leaf
	if at := r.IntN(8); at < len(columns) && columns[at] >= 0 {
		if f := s.Fields[columns[at]]; f.Type.Kind != types.Row && f.Type.Kind != types.Array {
			d := engineDatum(r, types.Field{Name: f.Name, Type: notNull(f.Type)}, span)
			leaf = &predicate.Leaf{Op: predicate.Op(r.IntN(6)), Col: columns[at], FieldID: f.ID, Type: f.Type, Args: []types.Datum{d}}
			scan.Filter = leaf
			ro.Filter = &valueFilter{pos: at, t: f.Type, leaf: leaf}
		}
	}
	var want []string
	for _, vs := range versions {
		sortVersions(s, vs)
		x, kind := foldModel(t, s, vs)
		if kind == mergetree.NoRow || kind&1 != 0 && !keep {
			continue
		}
		if leaf != nil {
			d := x.vals[leaf.Col]
			if m, ok := predicate.Matches(leaf, d); d == nil || !ok || !m {
				continue
			}
		}
		var ps []string
		for _, col := range columns {
			switch col {
			case PseudoSequence:
				ps = append(ps, fmt.Sprint(x.seq))
			case PseudoKind:
				ps = append(ps, fmt.Sprint(kind))
			default:
				ps = append(ps, text(s.Fields[col].Type, x.vals[col]))
			}
		}
		want = append(want, strings.Join(ps, " | "))
	}
	sort.Strings(want)
	o := EnvOptions{WindowRows: []int{1, 2, 7, 100, 0}[r.IntN(5)], MergeRows: []int64{1, 20, 500, 0}[r.IntN(4)], RangeRows: []int64{1, 30, 0}[r.IntN(3)]}
	store := b.commit(o)
	for range r.IntN(4) { // what the merge comes to may be known then
		if _, _, err := readOnce(context.Background(), store, Scan{Limit: -1}, ReadOptions{}); err != nil {
			t.Error(err)
			return
		}
	}
	got, _, err := readAll(context.Background(), store, scan, ro)
	what := fmt.Sprintf("%s: key %v, %d runs, env %+v, columns %v, keep deletes %v, filter %v", c.name, pk, runs, o, scan.Columns, keep, leaf)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d rows, want %d%s", what, len(got), len(want), diff(got, want))
	}
}

func notNull(t types.Type) types.Type { t.NotNull = true; return t }

// keyText is the key of a row in the order of files.
func keyText(s *schema.Table, keyCols []int, v []types.Datum) string {
	var kts []types.Type
	var k []types.Datum
	for _, c := range keyCols {
		kts, k = append(kts, s.Fields[c].Type), append(k, v[c])
	}
	return string(mergetree.NewKeyCodec(kts).Append(nil, k))
}

// sortVersions puts versions of a key into merge order.
func sortVersions(s *schema.Table, vs []row) {
	o := schema.Options(s.Options)
	cols, _ := columnsOf(s, o.List("sequence.field"))
	desc := o.Enum("sequence.field.sort-order", "ascending") == "descending"
	sort.SliceStable(vs, func(i, j int) bool {
		x, y := vs[i], vs[j]
		for _, c := range cols {
			a, b := x.vals[c], y.vals[c]
			switch {
			case a == b:
				continue
			case a == nil || b == nil:
				return a == nil
			}
			return a.(int64) < b.(int64) != desc
		}
		if x.seq != y.seq {
			return x.seq < y.seq
		}
		return x.kind&1 > y.kind&1
	})
}
