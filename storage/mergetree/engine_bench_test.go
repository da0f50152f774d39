package mergetree

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// benchRows is how many versions a batch has: more than fit the second cache.
const benchRows = 1 << 16

// benchColumn makes random values of a column, one of five NULL.
func benchColumn(r *rand.Rand, t types.Type) arrow.Array {
	few := make([]types.Datum, 512)
	for i := range few {
		few[i] = maybeNull(r, t, 5)
	}
	ds := make([]types.Datum, benchRows)
	for i := range ds {
		ds[i] = few[r.IntN(len(few))]
	}
	return vec.FromDatums(t, ds)
}

// benchFold reports the time per version and value column that is folded.
func benchFold(b *testing.B, tab *schema.Table, per int, kinds []uint8, sequence func(i int) int64) {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	var cols []int
	for i := range tab.Fields {
		cols = append(cols, i)
	}
	e, err := NewEngine(EngineSpec{Table: tab, Options: tab.Options, Columns: cols})
	if err != nil {
		b.Fatal(err)
	}
	v := &Versions{N: benchRows, Kinds: kinds}
	for at := 0; at < benchRows; {
		at += per
		v.Ends = append(v.Ends, uint32(min(at, benchRows)))
	}
	for i, c := range e.Reads() {
		f := tab.Fields[c]
		switch {
		case i == 0:
			ks := make([]int32, benchRows)
			for j := range ks {
				ks[j] = int32(j / per)
			}
			v.Cols = append(v.Cols, vec.Make(f.Type.Arrow(), ks, nil))
		case strings.HasPrefix(f.Name, "g"):
			gs := make([]int64, benchRows)
			for j := range gs {
				gs[j] = sequence(j)
			}
			v.Cols = append(v.Cols, vec.Make(f.Type.Arrow(), gs, nil))
		default:
			v.Cols = append(v.Cols, benchColumn(r, f.Type))
		}
	}
	var out Folded
	run := func() {
		if err := e.Fold(v, &out); err != nil {
			b.Fatal(err)
		}
	}
	run()
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		run()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows/float64(len(cols)-1), "ns/value")
}

var benchCols = []string{"k INT", "a INT", "b BIGINT", "c DOUBLE", "d STRING", "e DECIMAL(12, 2)"}

func someDeletes() []uint8 {
	r := rand.New(rand.NewPCG(2, 2))
	kinds := make([]uint8, benchRows)
	for i := range kinds {
		if r.IntN(20) == 0 {
			kinds[i] = KindDelete
		}
	}
	return kinds
}

func BenchmarkEngine(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 3))
	late := func(i int) int64 { return int64(i) - int64(r.IntN(8)) }
	group := map[string]string{"fields.g.sequence-group": "a,b,c,d,e"}
	for _, c := range []struct {
		name    string
		options map[string]string
		cols    []string
		kinds   []uint8
	}{
		{"deduplicate", nil, benchCols, nil},
		{"partial-update", nil, benchCols, nil},
		{"partial-update-deletes", map[string]string{"partial-update.remove-record-on-delete": "true"}, benchCols, someDeletes()},
		{"partial-update-group", group, append(benchCols, "g BIGINT"), nil},
		{"partial-update-group-deletes", group, append(benchCols, "g BIGINT"), someDeletes()},
		{"aggregation", map[string]string{"fields.b.aggregate-function": "sum"}, benchCols, nil},
		{"first-row", nil, benchCols, nil},
	} {
		name := c.name
		for _, e := range []string{"partial-update", "first-row", "deduplicate", "aggregation"} {
			if strings.HasPrefix(c.name, e) {
				name = e
			}
		}
		o := map[string]string{"merge-engine": name}
		for k, v := range c.options {
			o[k] = v
		}
		for _, per := range []int{2, 5} {
			b.Run(fmt.Sprintf("%s/versions=%d", c.name, per), func(b *testing.B) { benchFold(b, engineTable(b, o, c.cols...), per, c.kinds, late) })
		}
	}
}

func BenchmarkAggregate(b *testing.B) {
	for _, c := range []struct{ function, typ, options string }{
		{"sum", "INT", ""}, {"sum", "BIGINT", ""}, {"sum", "DOUBLE", ""}, {"sum", "DECIMAL(12, 2)", ""}, {"sum", "DECIMAL(38, 2)", ""},
		{"sum", "INT NOT NULL", ""}, {"product", "TINYINT", ""}, {"product", "DECIMAL(9, 2)", ""},
		{"max", "INT NOT NULL", ""}, {"max", "BIGINT", ""}, {"max", "DOUBLE", ""}, {"max", "STRING", ""}, {"min", "DECIMAL(12, 2)", ""}, {"max", "TIMESTAMP(6)", ""},
		{"last_value", "BIGINT", ""}, {"last_non_null_value", "BIGINT", ""}, {"first_value", "STRING", ""}, {"first_non_null_value", "BIGINT", ""},
		{"bool_and", "BOOLEAN", ""}, {"listagg", "STRING", ""}, {"listagg", "STRING", "distinct"},
		{"collect", "ARRAY<INT>", ""}, {"collect", "ARRAY<INT>", "distinct"}, {"merge_map", "MAP<STRING, INT>", ""},
		{"nested_update", "ARRAY<ROW<id INT, v STRING>>", ""}, {"nested_update", "ARRAY<ROW<id INT, v STRING>>", "nested-key"},
		{"nested_partial_update", "ARRAY<ROW<id INT, v STRING>>", "nested-key"},
		{"merge_map_with_keytime", "MAP<STRING, ROW<v INT, t STRING>>", ""},
	} {
		o := map[string]string{"merge-engine": "aggregation", "fields.v.aggregate-function": c.function}
		name := c.function + "/" + strings.ReplaceAll(c.typ, " ", "_")
		switch c.options {
		case "distinct":
			o["fields.v.distinct"] = "true"
			name += "/distinct"
		case "nested-key":
			o["fields.v.nested-key"] = "id"
			name += "/keyed"
		}
		b.Run(name, func(b *testing.B) { benchFold(b, engineTable(b, o, "k INT", "v "+c.typ), 5, nil, nil) })
	}
}
