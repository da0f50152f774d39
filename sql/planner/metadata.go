package planner

import (
	"slices"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// What of a query storage may answer from its metadata, and what partitions it need not
// look at: hints on scans, whose rows mean the same with and without them.

// counts reports whether storage may stop at a number of rows that pass the conditions.
func (b *builder) counts(g *plan.LGet) bool {
	_, ok := g.Rel.(catalog.TableInfo)
	return ok && !b.p.off(prunes+"metadata")
}

// extremes tells the scan directly below an aggregate when nothing but extremes of its
// columns matter: arguments of min and max, and what is computed of partition columns,
// whose rows in a partition are all alike.
func (b *builder) extremes(a *plan.Aggregate) {
	if b.p.off("metadata_extremes") || b.p.off(prunes+"metadata") {
		return
	}
	x := &extremes{}
	if !x.below(a.Input) {
		return
	}
	for _, g := range a.Groups {
		if !x.ofPartition(g) {
			return
		}
	}
	for i := range a.Aggs {
		if !x.call(&a.Aggs[i]) {
			return
		}
	}
	x.scan.Spec.Extremes = &table.Extremes{Columns: x.used, Rows: x.rows}
}

// extremes is what is found out about an aggregate over a scan.
type extremes struct {
	scan *plan.Scan
	cols []plan.Expr  // what a column of the aggregate's input is made of, over the scan
	part map[int]bool // columns of the scan that are of the partition
	used []int
	rows bool
}

// over is an expression over the aggregate's input as one over the scan.
func (x *extremes) over(e plan.Expr, cols []plan.Expr) plan.Expr {
	return plan.Replace(e, func(e plan.Expr) (plan.Expr, bool) {
		if s, ok := e.(*plan.Slot); ok && s.Index < len(cols) {
			return cols[s.Index], true
		}
		return nil, false
	})
}

// below finds the scan.
func (x *extremes) below(n plan.Node) bool {
	var projects []*plan.Project
	for {
		switch in := n.(type) {
		case *plan.Project:
			projects = append(projects, in)
			n = in.Input
			continue
		case *plan.Scan:
			x.scan = in
		}
		break
	}
	if x.scan == nil || x.scan.Spec.Nested != nil || !x.scan.Spec.Exact && x.scan.ExactFilter == nil {
		return false
	}
	rel, ok := x.scan.Rel.(catalog.TableInfo)
	if !ok {
		return false
	}
	for i, f := range x.scan.Schema() {
		x.cols = append(x.cols, &plan.Slot{Index: i, T: f.Type})
	}
	for _, p := range slices.Backward(projects) {
		out := make([]plan.Expr, len(p.Exprs))
		for i, e := range p.Exprs {
			out[i] = x.over(e, x.cols)
		}
		x.cols = out
	}
	x.part = map[int]bool{}
	cols, keys := rel.Columns(), rel.PartitionKeys()
	for i, c := range x.scan.Spec.Columns {
		if c >= 0 && c < len(cols) && slices.Contains(keys, cols[c].Name) {
			x.part[i] = true
		}
	}
	return true
}

// ofPartition reports whether an expression has one value in a partition, and notes what
// it uses.
func (x *extremes) ofPartition(e plan.Expr) bool {
	if e == nil {
		return true
	}
	if e = x.over(e, x.cols); hasVolatile(e) {
		return false
	}
	ok := true
	plan.Walk(e, func(e plan.Expr) bool {
		if s, is := e.(*plan.Slot); is {
			if ok = ok && x.part[s.Index]; ok {
				x.use(s.Index)
			}
		}
		return ok
	})
	return ok
}

func (x *extremes) use(col int) {
	if !slices.Contains(x.used, col) {
		x.used = append(x.used, col)
	}
}

// call reports whether an aggregate comes to the same.
func (x *extremes) call(a *plan.AggCall) bool {
	if len(a.Direct) > 0 || len(a.OrderBy) > 0 || a.Def == nil || a.Def.OrderSensitive || !x.ofPartition(a.Filter) {
		return false
	}
	least := false
	switch a.Def.Name {
	case "min", "max", "bool_and", "bool_or", "every":
		least = true
	}
	all := true
	for _, e := range a.Args {
		all = all && x.ofPartition(e)
	}
	if all {
		x.rows = x.rows || !least && !a.Distinct
		return true
	}
	// Of a column that is not of the partition.
	count := a.Def.Name == "count" && !a.Distinct
	if len(a.Args) != 1 || !least && !count {
		return false
	}
	s, ok := unlabelled(x.over(a.Args[0], x.cols)).(*plan.Slot)
	if !ok || !extremeType(s.T) {
		return false
	}
	x.rows = x.rows || count
	x.use(s.Index)
	return true
}

// extremeType are types of which storage may know extremes.
func extremeType(t types.Type) bool {
	switch t.Kind {
	case types.Bool, types.TinyInt, types.Int2, types.Int4, types.Int8, types.Numeric, types.Date, types.Time, types.Timestamp, types.TimestampTZ:
		return true
	}
	return false
}

// partitionFilter sets what a scan's conditions ask of partitions, where they say more
// than its predicate.
func (b *builder) partitionFilter(g *plan.LGet, s *plan.Scan) {
	rel, ok := g.Rel.(catalog.TableInfo)
	if !ok || b.p.off(prunes+"partitions") || s.Spec.Exact {
		return
	}
	keys := rel.PartitionKeys()
	if len(keys) == 0 {
		return
	}
	at := map[plan.ColID]int{}
	cols := rel.Columns()
	for i, c := range g.Out {
		if a := g.Att[i]; a >= 0 && a < len(cols) {
			if k := slices.Index(keys, cols[a].Name); k >= 0 {
				at[c.ID] = k
			}
		}
	}
	var out []plan.Expr
	for _, c := range g.Conds {
		m := newPredMaker(b.p, g)
		if n := m.node(c, 0); n != nil && !m.lossy {
			continue // the predicate says it all
		}
		if w := weaker(c, at, b.env, 0); w != nil {
			out = append(out, w)
		}
	}
	if len(out) == 0 {
		return
	}
	if e, err := b.expr(conj(out), at); err == nil {
		s.Partitions = e
	}
}

// weaker is what a condition asks of partition columns: true wherever it is true; nil =
// nothing.
func weaker(c plan.Expr, at map[plan.ColID]int, env map[plan.ColID]int, depth int) plan.Expr {
	if depth > maxPredDepth {
		return nil
	}
	switch x := c.(type) {
	case *plan.And:
		var out []plan.Expr
		for _, a := range x.Args {
			if w := weaker(a, at, env, depth+1); w != nil {
				out = append(out, w)
			}
		}
		if len(out) == 0 {
			return nil
		}
		return conj(out)
	case *plan.Or:
		out := make([]plan.Expr, len(x.Args))
		for i, a := range x.Args {
			if out[i] = weaker(a, at, env, depth+1); out[i] == nil {
				return nil
			}
		}
		return &plan.Or{Args: out}
	}
	if hasVolatile(c) {
		return nil
	}
	ok, some := true, false
	plan.Walk(c, func(e plan.Expr) bool {
		switch e := e.(type) {
		case *plan.Col:
			_, here := at[e.ID]
			_, outer := env[e.ID]
			ok, some = ok && (here || outer), some || here
		case *plan.Subquery, *plan.SetRef:
			ok = false
		}
		return ok
	})
	if !ok || !some {
		return nil
	}
	return c
}
