package vectorized

import (
	"context"
	"errors"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// A scan may turn out to be a lookup when the plan runs: the build side of a hash
// join has few rows, and its keys are the primary key of what is scanned. Then the
// rows are looked up, as an index nested loop would do it.

// lookUp does so when every column of the primary key is bound to few values by what
// storage is going to be told. done is false when the relation must be scanned.
func (s *scanStage) lookUp(ctx context.Context) (done bool, err error) {
	rel, ok := s.rel.(catalog.KeyedRelation)
	if !ok || len(s.late) == 0 || s.spec.Filter == nil || s.spec.Incremental != nil || s.spec.KeepDeletes || s.spec.Nested != nil {
		return false, nil
	}
	for _, c := range s.spec.Columns {
		if c < 0 {
			return false, nil
		}
	}
	pk, stored := rel.LookupKey()
	if len(pk) == 0 || s.spec.Columns == nil {
		return false, nil
	}
	set := make(plan.KeySet, len(pk))
	for k, c := range pk {
		vals, ok := boundTo(s.spec.Filter, c)
		if !ok || !sameForm(stored[k]) || rel.Columns()[c].Type.Kind == types.UUID {
			return false, nil
		}
		for _, v := range vals {
			set[k].Exprs = append(set[k].Exprs, &plan.Const{Value: v, T: stored[k]})
		}
		set[k].Convert = func(d types.Datum) (types.Datum, plan.KeyFit) { return d, plan.KeyFits }
	}
	n := &plan.Lookup{Stored: stored, Sets: []plan.KeySet{set}, MaxKeys: maxFilterList}
	keys, err := lookupKeys(n, func(e plan.Expr) (types.Datum, error) { return e.(*plan.Const).Value, nil })
	if err != nil || len(keys) == 0 {
		return false, nil //nolint:nilerr // too many: not an error
	}
	r := &table.PlanReport{Keys: int64(len(keys)), SnapshotID: rel.At().ID}
	b, which, err := rel.Get(ctx, table.Lookup{Keys: keyArrays(stored, keys), Columns: s.spec.Columns, Counters: &r.Counters})
	var un *fileio.UnsupportedError
	if errors.As(err, &un) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	b.Schema = s.n.Out
	s.found, s.plan = inOrder(b, which), &table.Plan{Report: r}
	s.stats.setReport(r)
	return true, nil
}

// sameForm reports whether a predicate's values of a column are what the files hold.
func sameForm(t types.Type) bool {
	switch t.Kind {
	case types.TinyInt, types.Int2, types.Int4, types.Int8, types.Date, types.Text, types.Varchar:
		return true
	}
	return false
}

// boundTo returns the values that a condition leaves to a column, when it says so
// outright.
func boundTo(n predicate.Node, col int) ([]types.Datum, bool) {
	switch n := n.(type) {
	case *predicate.Leaf:
		if n.Col == col && (n.Op == predicate.Eq || n.Op == predicate.In) {
			return n.Args, true
		}
	case *predicate.And:
		for _, a := range n.Args {
			if v, ok := boundTo(a, col); ok {
				return v, true
			}
		}
	}
	return nil, false
}

// looked filters what was looked up; nil when nothing is left.
func (o *scanOp) looked(ctx context.Context, b *vec.Batch) (*vec.Batch, error) {
	if b.N == 0 {
		return nil, nil
	}
	if o.filter != nil {
		sel, err := o.filter.pass(ctx, b)
		if err != nil || len(sel) == 0 {
			return nil, err
		}
		b.Sel = append([]uint16(nil), sel...)
	}
	return b, nil
}
