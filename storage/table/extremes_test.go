package table

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
)

// TestKnownRows: the rows that are made up have the extremes and the NULLs of their
// groups, whatever the size of batches.
func TestKnownRows(t *testing.T) {
	ctx := context.Background()
	i4 := types.Of(types.Int4)
	fields := types.Schema{{Name: "p", Type: i4}, {Name: "unused", Type: types.Of(types.Text)}, {Name: "v", Type: i4}}
	type group struct {
		rows, nulls int64
		lo, hi      types.Datum
	}
	groups := []group{
		{1, 0, int64(5), int64(5)}, {10, 10, nil, nil}, {7, 3, int64(-1), int64(4)}, {64, 0, int64(1), int64(2)},
		{33, 31, int64(8), int64(9)}, {2, 1, int64(3), int64(3)}, {100, 50, int64(0), int64(7)},
	}
	for _, size := range []int{1, 2, 3, 16, 1000} {
		for _, counts := range []bool{true, false} {
			k := &knownRows{fields: fields, cols: []int{2, 0}, counts: counts}
			for i, g := range groups {
				k.groups = append(k.groups, &knownGroup{rows: g.rows, cols: []knownColumn{{lo: g.lo, hi: g.hi, nulls: g.nulls}, {lo: int64(i), hi: int64(i)}}})
			}
			if !counts {
				for _, g := range k.groups {
					g.two()
				}
			}
			got := make([]group, len(groups))
			r := newKnownReader(k, size)
			for {
				b, err := r.Next(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if b == nil {
					break
				}
				if b.N > size && size > 1 || b.N == 0 || !b.Cols[1].IsNull(b.N-1) {
					t.Fatalf("size %d: a batch of %d rows", size, b.N)
				}
				for i := range b.N {
					g := &got[vec.DatumAt(b.Cols[0], i4, i).(int64)]
					g.rows++
					v := vec.DatumAt(b.Cols[2], i4, i)
					if v == nil {
						g.nulls++
						continue
					}
					if g.lo == nil || v.(int64) < g.lo.(int64) {
						g.lo = v
					}
					if g.hi == nil || v.(int64) > g.hi.(int64) {
						g.hi = v
					}
				}
			}
			for i, want := range groups {
				if !counts {
					if want.rows, want.nulls = 2, 0; want.lo == nil {
						want.nulls = 2
					}
				}
				if got[i] != want {
					t.Errorf("size %d, counts %v: group %d has %v, want %v", size, counts, i, got[i], want)
				}
			}
		}
	}
}

// TestExactBounds: only of these types are bounds values that occur.
func TestExactBounds(t *testing.T) {
	nanos := types.Type{Kind: types.Timestamp, Prec: 9}
	for _, c := range []struct {
		t    types.Type
		file string
		want bool
	}{
		{types.Of(types.Int8), "a.orc", true},
		{types.DecimalOf(30, 2), "a.parquet", true},
		{types.Of(types.Date), "a.parquet", true},
		{types.Of(types.Date), "a.orc", false},
		{types.Type{Kind: types.Timestamp, Prec: 6}, "a.parquet", true},
		{nanos, "a.parquet", !nanos.IsNanos()},
		{types.Of(types.Float8), "a.parquet", false},
		{types.Of(types.Float4), "a.parquet", false},
		{types.Of(types.Text), "a.parquet", false},
		{types.Type{Kind: types.BpChar, Len: 4}, "a.parquet", false},
		{types.Of(types.Bytea), "a.parquet", false},
	} {
		if got := exactBounds(c.t, c.file); got != c.want {
			t.Errorf("%v in %s: %v", c.t, c.file, got)
		}
	}
}

// oddOnly passes odd values, and fails on 13.
type oddOnly struct {
	calls int
	rows  int
}

func (f *oddOnly) Columns() []int { return []int{0} }

func (f *oddOnly) Select(_ context.Context, b *vec.Batch) ([]uint16, error) {
	f.calls++
	f.rows += b.N
	out := []uint16{}
	for i := range b.N {
		v, _ := vec.DatumAt(b.Cols[0], types.Of(types.Int4), i).(int64)
		if v == 13 {
			return nil, errors.New("thirteen")
		}
		if v%2 == 1 {
			out = append(out, uint16(i))
		}
	}
	return out, nil
}

// TestPartitionFilter: partitions are judged once and many at a time; one for which the
// filter fails stays, and so does one that was not judged.
func TestPartitionFilter(t *testing.T) {
	i4 := types.Of(types.Int4)
	s := tableSchema(t, nil, nil, "p INT", "v INT")
	s.PartitionKeys = []string{"p"}
	f := &oddOnly{}
	p := &planner{state: &state{schema: s}, scan: Scan{Partitions: f}, partCols: []int{0}, partTypes: []types.Type{i4}}
	p.partFilter = p.newPartFilter()
	var images [][]byte
	for i := range 5000 {
		im, err := binrow.Encode([]types.Type{i4}, []types.Datum{int64(i)})
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, im)
	}
	images = append(images, []byte("damaged"))
	for range 2 {
		if err := p.judge(context.Background(), images); err != nil {
			t.Fatal(err)
		}
	}
	for i, im := range images[:5000] {
		if gone := p.partFilter.gone[string(im)]; gone != (i%2 == 0) && i != 13 || i == 13 && gone {
			t.Fatalf("partition %d: %v", i, gone)
		}
	}
	if p.partFilter.gone["damaged"] {
		t.Error("a partition that cannot be decoded is left out")
	}
	if f.calls > 40 {
		t.Errorf("%d calls for %d rows", f.calls, f.rows)
	}
	p.scan.Without = PrunePartitions
	if p.newPartFilter() != nil {
		t.Error("partitions are judged although that is switched off")
	}
}

// TestOrderOfFiles: what can hold the first rows comes first, unknown files last.
func TestOrderOfFiles(t *testing.T) {
	s := tableSchema(t, nil, nil, "v INT")
	ends := func(lo, hi types.Datum, nulls int64) *fileEnds {
		return &fileEnds{0, predicate.ColumnStats{Min: lo, Max: hi, NullCount: nulls, Rows: 10}}
	}
	name := map[*fileEnds]string{nil: "unknown"}
	add := func(n string, e *fileEnds) *fileEnds { name[e] = n; return e }
	low, high, wide := add("low", ends(int64(1), int64(5), 0)), add("high", ends(int64(7), int64(9), 1)), add("wide", ends(int64(0), int64(8), 0))
	null := add("null", ends(nil, nil, 10))
	for _, c := range []struct {
		o    Order
		want string
	}{
		{Order{}, "[wide low high unknown null]"},
		{Order{Desc: true}, "[high wide low unknown null]"},
		{Order{NullsFirst: true}, "[high null wide low unknown]"},
	} {
		p := &planner{state: &state{schema: s}, scan: Scan{Order: &c.o, Columns: []int{0}}, read: &readPlan{columns: []int{0}}}
		for _, e := range []*fileEnds{nil, high, null, low, wide} {
			p.splits = append(p.splits, Split{Raw: true, Files: []File{{ends: e}}})
		}
		p.orderSplits()
		var got []string
		for _, sp := range p.splits {
			got = append(got, name[sp.ends])
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%+v: %v, want %s", c.o, got, c.want)
		}
	}
	late := &predicate.Leaf{Op: predicate.LtEq, Col: 0, Type: types.Of(types.Int4), Args: []types.Datum{int64(6)}}
	if !high.beaten(late) || low.beaten(late) || (*fileEnds)(nil).beaten(late) || high.beaten(nil) {
		t.Error("what a bound leaves out")
	}
}
