package vectorized

import (
	"context"
	"fmt"
	"testing"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// tableRel is a memRel whose readers apply the row filter, as tables do.
type tableRel struct{ *memRel }

var _ catalog.TableInfo = tableRel{}

func (tableRel) PrimaryKey() []string       { return nil }
func (tableRel) PartitionKeys() []string    { return nil }
func (tableRel) Options() map[string]string { return nil }
func (tableRel) Comment() string            { return "" }
func (tableRel) SchemaID() int64            { return 0 }
func (tableRel) At() snapshot.Ref           { return snapshot.Ref{} }
func (tableRel) Table() table.Table         { return nil }

func (r tableRel) Read(ctx context.Context, s table.Scan, p table.Split, o table.ReadOptions) (table.SplitReader, error) {
	rd, err := r.memRel.Read(ctx, s, p, o)
	if err != nil || o.Filter == nil {
		return rd, err
	}
	return &filteredReader{rd, o.Filter}, nil
}

type filteredReader struct {
	table.SplitReader
	f table.RowFilter
}

func (r *filteredReader) Next(ctx context.Context) (*vec.Batch, error) {
	for {
		b, err := r.SplitReader.Next(ctx)
		if err != nil || b == nil {
			return nil, err
		}
		sub := &vec.Batch{N: b.N}
		for _, c := range r.f.Columns() {
			sub.Cols = append(sub.Cols, b.Cols[c])
		}
		sel, err := r.f.Select(ctx, sub)
		if err != nil {
			return nil, err
		}
		if len(sel) == 0 {
			continue
		}
		return vec.Compact(&vec.Batch{Schema: b.Schema, Cols: b.Cols, N: b.N, Sel: append([]uint16(nil), sel...)}), nil
	}
}

// TestScanFilters: filters, what a join's keys say and the bound of a top-N,
// inside readers and behind them.
func TestScanFilters(t *testing.T) {
	noLeaks(t)
	r := newRand(t)
	for range 60 {
		mem, rows := makeRel(r, r.IntN(500), 40, true, tInt8, tText, tInt4)
		small, srows := makeRel(r, r.IntN(10), 40, true, tInt8, tText)
		for _, inside := range []bool{false, true} {
			sc := scanOf(mem)
			if inside {
				sc.Rel = tableRel{mem}
			}
			sc.Filter = op(t, ">", slot(sc, 2), lit(tInt4, int64(2)))
			var want []row
			for _, x := range rows {
				if x[2] != nil && x[2].(int64) > 2 {
					want = append(want, x)
				}
			}
			key := r.IntN(2)
			rt := scanOf(small)
			j := &plan.HashJoin{Base: base(joinOut(plan.Inner, sc, rt)), Kind: plan.Inner, Left: sc, Right: rt,
				LeftKeys: []plan.Expr{slot(sc, key)}, RightKeys: []plan.Expr{slot(rt, key)}, HasRuntimeFilters: true}
			late := *sc
			late.LateIn = []plan.RuntimeFilter{{JoinID: j.ID, Key: 0, Column: key}}
			j.Left = &late
			joined := oracleJoin(plan.Inner, want, srows, 3, 2, func(a, b row) types.Datum { return a[key] != nil && a[key] == b[key] })
			top := &plan.Sort{Base: base(sc.Out), Input: sc, Limit: 5, Keys: []plan.SortKey{{Expr: slot(sc, 0), Desc: r.IntN(2) == 0}, {Expr: slot(sc, 1)}, {Expr: slot(sc, 2)}}}
			sorted := sortRows(want, []sortSpec{{0, top.Keys[0].Desc, false}, {1, false, false}, {2, false, false}})
			for _, c := range configs(r) {
				expect(t, c, sc, want, false, fmt.Sprintf("scan, filter inside=%v", inside))
				expect(t, c, j, joined, false, fmt.Sprintf("join on column %d, filters inside=%v", key, inside))
				expect(t, c, top, sorted[:min(5, len(sorted))], true, "top 5")
			}
		}
	}
}
