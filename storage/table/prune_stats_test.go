package table

import (
	"math"
	"testing"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// col is a column by the id that it keeps when it is renamed.
type col struct {
	id        int32
	name, typ string
}

func schemaOfCols(t *testing.T, id int64, cols []col) *schema.Table {
	s := &schema.Table{ID: id, Version: 3}
	for _, c := range cols {
		s.Fields = append(s.Fields, fieldOfType(t, c.id, c.name, c.typ))
		s.HighestFieldID = max(s.HighestFieldID, c.id)
	}
	return s
}

// bound is what the statistics of a file say of one column.
type bound struct {
	typ    string
	lo, hi types.Datum
	nulls  int64
}

func statsOfBounds(t *testing.T, bs []bound) manifest.Stats {
	var ts []types.Type
	var lo, hi []types.Datum
	s := manifest.Stats{NullCounts: []int64{}}
	for i, b := range bs {
		f := fieldOfType(t, int32(i), "x", b.typ)
		ts, lo, hi, s.NullCounts = append(ts, f.Type), append(lo, b.lo), append(hi, b.hi), append(s.NullCounts, b.nulls)
	}
	var err error
	if s.Min, err = binrow.Encode(ts, lo); err == nil {
		s.Max, err = binrow.Encode(ts, hi)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func dec(s string) *numeric.Dec {
	d, err := numeric.Parse(s)
	if err != nil {
		panic(err)
	}
	return d
}

// TestValueStats: what the statistics of a file, written with one schema, say of columns
// of another. Files have 10 rows. Each wrong reading of the statistics that is named in
// a case answers it differently.
func TestValueStats(t *testing.T) {
	const none, some, all = predicate.None, predicate.Some, predicate.All
	abc := []col{{0, "a", "INT"}, {1, "b", "INT"}, {2, "c", "INT"}}
	type ask struct {
		col  string
		op   predicate.Op
		args []types.Datum
		want predicate.Verdict
	}
	one := func(x any) []types.Datum { return []types.Datum{x} }
	eq := func(col string, x any, want predicate.Verdict) ask { return ask{col, predicate.Eq, one(x), want} }
	isNull := func(col string, want predicate.Verdict) ask { return ask{col, predicate.IsNull, nil, want} }
	for _, c := range []struct {
		name      string
		file, now []col // now nil = file
		dense     []string
		written   []string
		stats     []bound
		asks      []ask
	}{
		{
			name: "every column", file: abc,
			stats: []bound{{"INT", int64(1), int64(9), 0}, {"INT", int64(100), int64(109), 2}, {"INT", nil, nil, 10}},
			asks: []ask{eq("a", int64(5), some), eq("a", int64(105), none), eq("b", int64(105), some), eq("b", int64(5), none), eq("c", int64(5), none), isNull("c", all), isNull("a", none), isNull("b", some),
				{"a", predicate.GtEq, one(int64(1)), all}, {"b", predicate.GtEq, one(int64(100)), some}},
		},
		{
			name: "dense statistics are in the order of their names, and of other columns nothing is known", file: abc,
			dense: []string{"c", "a"},
			stats: []bound{{"INT", int64(100), int64(109), 0}, {"INT", int64(1), int64(9), 0}},
			asks: []ask{eq("a", int64(5), some), eq("a", int64(105), none), eq("c", int64(105), some), eq("c", int64(5), none),
				eq("b", int64(5), some), isNull("b", some), {"b", predicate.IsNotNull, nil, some}},
		},
		{
			name: "dense statistics of no column", file: abc, dense: []string{}, stats: []bound{},
			asks: []ask{eq("a", int64(5), some), isNull("a", some), {"c", predicate.IsNotNull, nil, some}},
		},
		{
			name: "of a file of some columns, the statistics are those columns'", file: abc,
			written: []string{"b"},
			stats:   []bound{{"INT", int64(100), int64(109), 0}},
			asks:    []ask{eq("b", int64(105), some), eq("b", int64(5), none), eq("a", int64(5), some), isNull("a", some), {"c", predicate.IsNotNull, nil, some}},
		},
		{
			name: "system columns among the written ones have their places", file: abc,
			written: []string{"_ROW_ID", "b", "_SEQUENCE_NUMBER", "c"},
			stats:   []bound{{"BIGINT", int64(0), int64(9), 0}, {"INT", int64(100), int64(109), 0}, {"BIGINT", int64(1), int64(1), 0}, {"INT", int64(7), int64(8), 0}},
			asks:    []ask{eq("b", int64(105), some), eq("b", int64(5), none), eq("c", int64(7), some), eq("c", int64(105), none), eq("a", int64(7), some)},
		},
		{
			name: "the names of dense statistics count before those of written columns", file: abc,
			dense: []string{"c"}, written: []string{"b", "c"},
			stats: []bound{{"INT", int64(7), int64(8), 0}},
			asks:  []ask{eq("c", int64(7), some), eq("c", int64(9), none), eq("b", int64(105), some), isNull("b", some)},
		},
		{
			name: "renamed columns are found by id: here two changed names",
			file: abc, now: []col{{1, "a", "INT"}, {0, "b", "INT"}, {2, "c", "INT"}},
			dense: []string{"b", "a"},
			stats: []bound{{"INT", int64(100), int64(109), 0}, {"INT", int64(1), int64(9), 0}},
			asks:  []ask{eq("a", int64(105), some), eq("a", int64(5), none), eq("b", int64(5), some), eq("b", int64(105), none)},
		},
		{
			name: "columns that moved, without names",
			file: abc, now: []col{{2, "c", "INT"}, {0, "a", "INT"}, {1, "b", "INT"}},
			stats: []bound{{"INT", int64(1), int64(9), 0}, {"INT", int64(100), int64(109), 0}, {"INT", int64(7), int64(8), 0}},
			asks:  []ask{eq("a", int64(5), some), eq("b", int64(105), some), eq("c", int64(7), some), eq("c", int64(5), none), eq("a", int64(7), some), eq("a", int64(100), none)},
		},
		{
			name: "a column that was added is NULL in the file",
			file: abc[:2], now: abc,
			stats: []bound{{"INT", int64(1), int64(9), 0}, {"INT", int64(100), int64(109), 0}},
			asks:  []ask{isNull("c", all), {"c", predicate.IsNotNull, nil, none}, eq("c", int64(5), none), {"c", predicate.NotEq, one(int64(5)), none}, eq("b", int64(105), some)},
		},
		{
			name: "a column that was dropped and added again has nothing of the old one",
			file: abc, now: []col{{0, "a", "INT"}, {3, "b", "INT"}, {2, "c", "INT"}},
			stats: []bound{{"INT", int64(1), int64(9), 0}, {"INT", int64(100), int64(109), 0}, {"INT", int64(7), int64(8), 0}},
			asks:  []ask{isNull("b", all), eq("b", int64(105), none), {"b", predicate.IsNotNull, nil, none}, eq("c", int64(7), some)},
		},
		{
			name: "the old name of a dropped column is another's now",
			file: abc, now: []col{{0, "b", "INT"}, {2, "c", "INT"}},
			dense: []string{"a", "b"},
			stats: []bound{{"INT", int64(1), int64(9), 0}, {"INT", int64(100), int64(109), 0}},
			asks:  []ask{eq("b", int64(5), some), eq("b", int64(105), none), eq("c", int64(105), some)},
		},
		{
			name: "promoted columns keep their statistics where that is exact",
			file: []col{{0, "i", "INT"}, {1, "f", "FLOAT"}, {2, "d", "DECIMAL(5, 2)"}, {3, "v", "VARCHAR(3)"}, {4, "t", "TIMESTAMP(3)"}},
			now:  []col{{0, "i", "BIGINT"}, {1, "f", "DOUBLE"}, {2, "d", "DECIMAL(9, 4)"}, {3, "v", "STRING"}, {4, "t", "TIMESTAMP(6)"}},
			stats: []bound{{"INT", int64(1), int64(9), 0}, {"FLOAT", 1.5, float64(float32(2.1)), 0}, {"DECIMAL(5, 2)", dec("1.25"), dec("2.50"), 0},
				{"VARCHAR(3)", "b", "d", 0}, {"TIMESTAMP(3)", int64(1000), int64(2000), 0}},
			asks: []ask{eq("i", int64(5), some), eq("i", int64(1)<<40, none), eq("f", 1.75, some), eq("f", 1.25, none), eq("f", float64(float32(2.1)), some), eq("d", dec("1.2500"), some), eq("d", dec("1.2499"), none),
				eq("v", "c", some), eq("v", "e", none), eq("t", int64(1500), some), eq("t", int64(2001), none)},
		},
		{
			name: "statistics of other changes of type say nothing",
			file: []col{{0, "n", "INT"}, {1, "s", "STRING"}, {2, "d", "DECIMAL(9, 4)"}, {3, "v", "VARCHAR(9)"}, {4, "t", "TIMESTAMP(6)"}, {5, "c", "CHAR(6)"}, {6, "b", "BIGINT"}, {7, "g", "DOUBLE"}, {8, "y", "DATE"}, {9, "e", "DECIMAL(9, 4)"}},
			now:  []col{{0, "n", "STRING"}, {1, "s", "INT"}, {2, "d", "DECIMAL(9, 2)"}, {3, "v", "VARCHAR(1)"}, {4, "t", "TIMESTAMP(3)"}, {5, "c", "STRING"}, {6, "b", "INT"}, {7, "g", "FLOAT"}, {8, "y", "TIMESTAMP(6)"}, {9, "e", "DECIMAL(6, 4)"}},
			stats: []bound{{"INT", int64(9), int64(10), 0}, {"STRING", "10", "9", 0}, {"DECIMAL(9, 4)", dec("1.0049"), dec("1.0049"), 0}, {"VARCHAR(9)", "ab", "ab", 0},
				{"TIMESTAMP(6)", int64(1001), int64(1001), 0}, {"CHAR(6)", "ab    ", "ab    ", 0}, {"BIGINT", int64(1) << 32, int64(1) << 32, 0}, {"DOUBLE", 0.1, 0.1, 0}, {"DATE", int64(1), int64(1), 0}, {"DECIMAL(9, 4)", dec("12345.5"), dec("12345.5"), 0}},
			asks: []ask{eq("n", "10", some), {"n", predicate.Lt, one("9"), some}, eq("s", int64(50), some), eq("d", dec("1.00"), some), eq("v", "a", some), eq("t", int64(1000), some), eq("c", "ab", some),
				eq("b", int64(0), some), eq("g", float64(float32(0.1)), some), eq("y", int64(86_400_000_000), some), eq("e", dec("1"), some)},
		},
		{
			name: "bounds that are not there", file: abc,
			stats: []bound{{"INT", nil, nil, -1}, {"INT", int64(1), nil, 0}, {"INT", nil, int64(9), -1}},
			asks: []ask{eq("a", int64(5), some), isNull("a", some), {"a", predicate.IsNotNull, nil, some}, eq("b", int64(-5), some), isNull("b", none), eq("c", int64(10), some),
				{"c", predicate.GtEq, one(int64(0)), some}},
		},
		{
			name: "a NULL count that is not known", file: abc,
			stats: []bound{{"INT", int64(1), int64(9), -1}, {"INT", int64(1), int64(1), -1}, {"INT", int64(1), int64(9), 10}},
			asks: []ask{isNull("a", some), {"a", predicate.IsNotNull, nil, some}, eq("a", int64(10), none), {"a", predicate.GtEq, one(int64(1)), some}, eq("b", int64(1), some),
				{"b", predicate.NotEq, one(int64(1)), none}, isNull("c", all)},
		},
		{
			name: "a NaN is above the upper bound", file: []col{{0, "f", "DOUBLE"}},
			stats: []bound{{"DOUBLE", 1.0, 9.0, 0}},
			asks: []ask{{"f", predicate.Gt, one(9.5), some}, {"f", predicate.NotEq, one(1.0), some}, eq("f", math.NaN(), some), eq("f", 9.5, none), {"f", predicate.LtEq, one(9.0), some},
				{"f", predicate.GtEq, one(1.0), some}},
		},
		{
			name: "zeros are equal", file: []col{{0, "f", "DOUBLE"}},
			stats: []bound{{"DOUBLE", math.Copysign(0, -1), math.Copysign(0, -1), 0}},
			asks:  []ask{eq("f", 0.0, some), {"f", predicate.Lt, one(0.0), none}, {"f", predicate.GtEq, one(0.0), some}},
		},
		{
			name: "blanks at the end of CHAR do not count", file: []col{{0, "c", "CHAR(4)"}},
			stats: []bound{{"CHAR(4)", "ab  ", "ad", 0}},
			asks:  []ask{eq("c", "ab", some), eq("c", "ad  ", some), eq("c", "aa", none), eq("c", "b", none), {"c", predicate.Lt, one("ab"), some}},
		},
		{
			name: "cut strings bound what they were cut from", file: []col{{0, "s", "STRING"}},
			stats: []bound{{"STRING", "abc", "abe", 0}},
			asks: []ask{eq("s", "abcd", some), eq("s", "abd\U0010ffff", some), eq("s", "abf", none), eq("s", "abb\U0010ffff", none), {"s", predicate.Gt, one("abd"), some}, {"s", predicate.Gt, one("abe"), none},
				{"s", predicate.StartsWith, one("abcdef"), some}, {"s", predicate.StartsWith, one("abf"), none}, {"s", predicate.NotEq, one("abc"), some}},
		},
	} {
		now := c.now
		if now == nil {
			now = c.file
		}
		from, to := schemaOfCols(t, 0, c.file), schemaOfCols(t, 1, now)
		p := &planner{state: &state{schema: to}}
		fs := &fileSchema{schema: from, evo: schema.NewEvolution(from, to)}
		f := &manifest.DataFile{Rows: 10, ValueStats: statsOfBounds(t, c.stats), ValueStatsCols: c.dense, HasValueStatsCols: c.dense != nil, WriteCols: c.written, HasWriteCols: c.written != nil, FirstRowID: -1}
		src := &fileStats{p, live{Entry: &manifest.Entry{File: f}}, fs, true}
		for _, a := range c.asks {
			i := to.Fields.Index(a.col)
			l := &predicate.Leaf{Op: a.op, Col: i, FieldID: to.Fields[i].ID, Type: to.Fields[i].Type, Args: a.args}
			if got := predicate.Eval(l, src); got != a.want {
				t.Errorf("%s: %s %v %v is %s, not %s", c.name, a.col, a.op, a.args, got, a.want)
			}
			src.values = false
			if got := predicate.Eval(l, src); got != some {
				t.Errorf("%s: %s %v %v is %s where values do not count", c.name, a.col, a.op, a.args, got)
			}
			src.values = true
		}
		// Statistics whose counts are missing, or cut off, say nothing of NULLs.
		if len(c.stats) > 0 && c.now == nil && c.dense == nil && c.written == nil {
			f.ValueStats.NullCounts = nil
			for _, f := range to.Fields {
				l := &predicate.Leaf{Op: predicate.IsNull, Col: to.Fields.Index(f.Name), Type: f.Type}
				if got := predicate.Eval(l, src); got != some {
					t.Errorf("%s: %s is NULL is %s without counts", c.name, f.Name, got)
				}
				l.Op = predicate.IsNotNull
				if got := predicate.Eval(l, src); got != some {
					t.Errorf("%s: %s is not NULL is %s without counts", c.name, f.Name, got)
				}
			}
		}
	}
}

// TestKeyStats: statistics of key columns are those of the trimmed key, by its order, and
// hold where values may not be looked at, as rows of other files can replace them.
func TestKeyStats(t *testing.T) {
	s := schemaOfCols(t, 0, []col{{0, "v", "INT"}, {1, "k2", "INT"}, {2, "p", "INT"}, {3, "k1", "INT"}})
	p := &planner{state: &state{schema: s}, keyCols: []int{3, 1}, partCols: []int{2}}
	f := &manifest.DataFile{Rows: 10, KeyStats: statsOfBounds(t, []bound{{"INT", int64(1), int64(9), 0}, {"INT", int64(100), int64(109), 0}}),
		ValueStats: statsOfBounds(t, []bound{{"INT", int64(7), int64(8), 0}, {"INT", nil, nil, -1}, {"INT", nil, nil, -1}, {"INT", nil, nil, -1}})}
	src := &fileStats{p, live{Entry: &manifest.Entry{File: f}, part: &partition{vals: []types.Datum{int64(3)}}}, &fileSchema{schema: s, evo: schema.NewEvolution(s, s)}, false}
	for _, c := range []struct {
		name   string
		x      int64
		values bool
		want   predicate.Verdict
	}{
		{"k1", 5, false, predicate.Some}, {"k1", 105, false, predicate.None}, {"k2", 105, false, predicate.Some}, {"k2", 5, false, predicate.None},
		{"v", 5, false, predicate.Some}, {"v", 5, true, predicate.None}, {"p", 3, false, predicate.All}, {"p", 4, false, predicate.None}, {"k2", 5, true, predicate.None},
	} {
		i := s.Fields.Index(c.name)
		src.values = c.values
		l := &predicate.Leaf{Op: predicate.Eq, Col: i, Type: s.Fields[i].Type, Args: []types.Datum{c.x}}
		if got := predicate.Eval(l, src); got != c.want {
			t.Errorf("%s = %d, values %v: %s, not %s", c.name, c.x, c.values, got, c.want)
		}
	}
}

// TestManifestStats: which manifests are read, by the statistics of their partitions.
func TestManifestStats(t *testing.T) {
	s := schemaOfCols(t, 0, []col{{0, "v", "INT"}, {1, "q", "STRING"}, {2, "p", "INT"}})
	// Partition columns are in the order of the partition keys.
	p := &planner{state: &state{schema: s}, partCols: []int{2, 1}, partTypes: []types.Type{s.Fields[2].Type, s.Fields[1].Type}}
	leaf := func(name string, op predicate.Op, args ...types.Datum) predicate.Node {
		i := s.Fields.Index(name)
		return &predicate.Leaf{Op: op, Col: i, Type: s.Fields[i].Type, Args: args}
	}
	stats := statsOfBounds(t, []bound{{"INT", int64(1), int64(9), 0}, {"STRING", "b", "d", 3}})
	nulls := statsOfBounds(t, []bound{{"INT", nil, nil, 5}, {"STRING", nil, nil, 5}})
	unknown := statsOfBounds(t, []bound{{"INT", nil, nil, -1}, {"STRING", nil, nil, -1}})
	short := statsOfBounds(t, []bound{{"INT", int64(1), int64(9), 0}})
	short.Min = short.Min[:4]
	for _, c := range []struct {
		what  string
		stats manifest.Stats
		n     predicate.Node
		want  bool
	}{
		{"inside", stats, leaf("p", predicate.Eq, int64(5)), true},
		{"outside", stats, leaf("p", predicate.Eq, int64(10)), false},
		{"the second column", stats, leaf("q", predicate.Eq, "c"), true},
		{"the second column, outside", stats, leaf("q", predicate.Eq, "a"), false},
		{"bounds are values", stats, leaf("p", predicate.LtEq, int64(1)), true},
		{"below", stats, leaf("p", predicate.Lt, int64(1)), false},
		{"no NULL", stats, leaf("p", predicate.IsNull), false},
		{"a NULL", stats, leaf("q", predicate.IsNull), true},
		{"values beside NULLs", stats, leaf("q", predicate.IsNotNull), true},
		{"another value than all", stats, leaf("p", predicate.NotEq, int64(5)), true},
		{"no partition column", stats, leaf("v", predicate.Eq, int64(1)), true},
		{"either", stats, &predicate.Or{Args: []predicate.Node{leaf("p", predicate.Eq, int64(10)), leaf("v", predicate.Eq, int64(1))}}, true},
		{"both", stats, &predicate.And{Args: []predicate.Node{leaf("p", predicate.Eq, int64(10)), leaf("v", predicate.Eq, int64(1))}}, false},
		// So many rows are NULL, but the rows are not counted.
		{"NULLs of an unknown number of entries", nulls, leaf("p", predicate.Eq, int64(5)), true},
		{"NULLs of an unknown number of entries", nulls, leaf("p", predicate.IsNotNull), true},
		{"unknown", unknown, leaf("p", predicate.IsNull), true},
		{"unknown", unknown, leaf("p", predicate.Eq, int64(5)), true},
		{"damaged", short, leaf("p", predicate.Eq, int64(10)), true},
		{"no statistics", manifest.Stats{}, leaf("p", predicate.Eq, int64(10)), true},
	} {
		p.filter = c.n
		if got := p.mayHold(&manifest.FileMeta{PartitionStats: c.stats}); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
	p.filter, p.scan.Without = leaf("p", predicate.Eq, int64(10)), PrunePartitions
	if !p.mayHold(&manifest.FileMeta{PartitionStats: stats}) {
		t.Error("a manifest is left out although that is switched off")
	}
	// What one partition is known by: equal bounds, and no NULL among the values.
	single := statsOfBounds(t, []bound{{"INT", int64(1), int64(1), 0}, {"STRING", "b", "b", 0}})
	if p.onlyPartition(&manifest.FileMeta{PartitionStats: single}) == nil {
		t.Error("one partition is not known")
	}
	for what, st := range map[string]manifest.Stats{
		"two partitions":            stats,
		"NULL beside the value":     statsOfBounds(t, []bound{{"INT", int64(1), int64(1), 0}, {"STRING", "b", "b", 1}}),
		"an unknown count of NULLs": statsOfBounds(t, []bound{{"INT", int64(1), int64(1), -1}, {"STRING", "b", "b", 0}}),
		"NULL only":                 nulls,
		"unknown":                   unknown,
		"none":                      {},
		"no counts":                 {Min: single.Min, Max: single.Max},
	} {
		if p.onlyPartition(&manifest.FileMeta{PartitionStats: st}) != nil {
			t.Errorf("%s: taken for one partition", what)
		}
	}
}

// TestDescribedManifests: what is written as a manifest's statistics bounds every
// partition in it.
func TestDescribedManifests(t *testing.T) {
	ts := []types.Type{types.Of(types.Int4), types.Of(types.Text)}
	s := schemaOfCols(t, 0, []col{{0, "p", "INT"}, {1, "q", "STRING"}})
	parts := [][]types.Datum{{int64(5), "m"}, {int64(-3), "z\U0010ffff"}, {nil, "a"}, {int64(7), nil}, {int64(7), ""}}
	for mask := 1; mask < 1<<len(parts); mask++ {
		var entries []manifest.Entry
		var in [][]types.Datum
		for i, v := range parts {
			if mask>>i&1 == 0 {
				continue
			}
			im, err := binrow.Encode(ts, v)
			if err != nil {
				t.Fatal(err)
			}
			in = append(in, v)
			for range 1 + i%2 {
				entries = append(entries, manifest.Entry{Partition: im, File: &manifest.DataFile{Name: "f", FirstRowID: -1}})
			}
		}
		m, err := manifest.Describe("m", 1, 0, entries, ts)
		if err != nil {
			t.Fatal(err)
		}
		p := &planner{state: &state{schema: s}, partCols: []int{0, 1}, partTypes: ts}
		for _, v := range in {
			for c, x := range v {
				l := &predicate.Leaf{Op: predicate.Eq, Col: c, Type: ts[c], Args: []types.Datum{x}}
				if x == nil {
					l.Op, l.Args = predicate.IsNull, nil
				}
				if p.filter = l; !p.mayHold(&m) {
					t.Errorf("partitions %v: one with %v is not looked for", in, x)
				}
			}
		}
		for c := range ts {
			seen := false
			for _, v := range in {
				seen = seen || v[c] == nil
			}
			if p.filter = (&predicate.Leaf{Op: predicate.IsNull, Col: c, Type: ts[c]}); p.mayHold(&m) != seen {
				t.Errorf("partitions %v: NULL of column %d is looked for: %v", in, c, !seen)
			}
		}
		if only := p.onlyPartition(&m); only != nil && len(in) > 1 {
			t.Errorf("partitions %v: taken for one", in)
		}
	}
}
