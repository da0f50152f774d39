package planner

import (
	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// maxGroupingSets is PostgreSQL's limit.
const maxGroupingSets = 4096

// bindGroupBy binds GROUP BY into expressions and, when it has grouping sets,
// the sets as indexes into them.
func (p *planner) bindGroupBy(s *scope, sel *ast.Select, targets []target) ([]plan.Expr, [][]int, error) {
	var groups []plan.Expr
	add := func(e ast.Expr) (int, error) {
		i, ts, err := p.findTarget92(s, e, targets, inGroupBy, "GROUP BY")
		if err != nil {
			return 0, err
		}
		t := &ts[i]
		if isUnknown(t.e) {
			if t.e, err = p.resolveUnknown(t.e, t.pos); err != nil {
				return 0, err
			}
		}
		if !p.hashable(t.e.Type()) {
			return 0, p.errAt(pgerr.UndefinedFunction, p.loc(e), "could not identify an equality operator for type %s", typeName(t.e.Type()))
		}
		for j, g := range groups {
			if exprEqual(g, t.e) {
				return j, nil
			}
		}
		groups = append(groups, t.e)
		return len(groups) - 1, nil
	}
	// list binds (a, b) as several and a as one.
	list := func(e ast.Expr) ([]int, error) {
		if r, ok := e.(*ast.Row); ok && !r.Explicit {
			var out []int
			for _, x := range r.Elems {
				i, err := add(x)
				if err != nil {
					return nil, err
				}
				out = append(out, i)
			}
			return out, nil
		}
		i, err := add(e)
		return []int{i}, err
	}
	isSets := false
	for _, e := range sel.GroupBy {
		if _, ok := e.(*ast.GroupingSet); ok {
			isSets = true
		}
	}
	if !isSets {
		for _, e := range sel.GroupBy {
			if _, err := list(e); err != nil {
				return nil, nil, err
			}
		}
		return groups, nil, nil
	}
	var expand func(e ast.Expr) ([][]int, error)
	expand = func(e ast.Expr) ([][]int, error) {
		if err := p.enter(); err != nil {
			return nil, err
		}
		defer p.leave()
		g, ok := e.(*ast.GroupingSet)
		if !ok {
			l, err := list(e)
			return [][]int{l}, err
		}
		switch g.Kind {
		case ast.GroupingEmpty:
			return [][]int{{}}, nil
		case ast.GroupingSets:
			var out [][]int
			for _, it := range g.Items {
				sets, err := expand(it)
				if err != nil {
					return nil, err
				}
				out = append(out, sets...)
			}
			return out, nil
		}
		var items [][]int
		for _, it := range g.Items {
			l, err := list(it)
			if err != nil {
				return nil, err
			}
			items = append(items, l)
		}
		var out [][]int
		if g.Kind == ast.GroupingRollup {
			for n := len(items); n >= 0; n-- {
				var set []int
				for _, it := range items[:n] {
					set = append(set, it...)
				}
				out = append(out, set)
			}
			return out, nil
		}
		if len(items) > 12 {
			return nil, p.errAt(pgerr.TooManyColumns, g.Pos, "CUBE is limited to 12 elements")
		}
		for mask := 1<<len(items) - 1; mask >= 0; mask-- {
			var set []int
			for j, it := range items {
				if mask>>(len(items)-1-j)&1 == 1 {
					set = append(set, it...)
				}
			}
			out = append(out, set)
		}
		return out, nil
	}
	sets := [][]int{{}}
	for _, e := range sel.GroupBy {
		more, err := expand(e)
		if err != nil {
			return nil, nil, err
		}
		var next [][]int
		for _, a := range sets {
			for _, b := range more {
				next = append(next, union(a, b))
			}
		}
		if len(next) > maxGroupingSets {
			return nil, nil, p.errAt(pgerr.StatementTooComplex, sel.Pos, "too many grouping sets present (maximum 4096)")
		}
		sets = next
	}
	if sel.GroupDistinct {
		sets = distinctSets(sets)
	}
	if len(sets) == 1 && len(sets[0]) == len(groups) && len(groups) > 0 {
		return groups, nil, nil
	}
	return groups, sets, nil
}

func union(a, b []int) []int {
	out := append([]int{}, a...)
next:
	for _, x := range b {
		for _, y := range out {
			if x == y {
				continue next
			}
		}
		out = append(out, x)
	}
	return out
}

func distinctSets(sets [][]int) [][]int {
	var out [][]int
	seen := map[string]bool{}
	for _, s := range sets {
		key := make([]byte, maxGroupingSets/8)
		for _, i := range s {
			key[i/8] |= 1 << (i % 8)
		}
		if !seen[string(key)] {
			seen[string(key)] = true
			out = append(out, s)
		}
	}
	return out
}

// regrouper rewrites expressions over the input of an aggregate into
// expressions over its output.
type regrouper struct {
	p      *planner
	s      *scope
	agg    *plan.LAggregate
	sets   bool
	within int // inside a subquery
	err    error
}

// buildAggregate makes the aggregate and rewrites everything above it.
func (p *planner) buildAggregate(s *scope, node plan.LNode, groups []plan.Expr, sets [][]int, targets []target, having []plan.Expr) (plan.LNode, []plan.Expr, error) {
	// Set-returning functions among the groups run below.
	for _, g := range groups {
		if hasSet(g) {
			es := make([]*plan.Expr, 0, len(groups)+len(targets))
			for i := range groups {
				es = append(es, &groups[i])
			}
			// The same call in the select list is the same set.
			for i := range targets {
				for _, g := range groups {
					if exprEqual(g, targets[i].e) && hasSet(g) {
						es = append(es, &targets[i].e)
						break
					}
				}
			}
			var err error
			if node, err = p.extractSets(s, node, es); err != nil {
				return nil, nil, err
			}
			break
		}
	}
	a := &plan.LAggregate{In: node, Groups: groups, Sets: sets, Aggs: s.sel.aggs, AggCols: s.sel.aggCols}
	a.Plain = len(groups) == 0 && sets == nil
	local := colsOf(node)
	for _, g := range groups {
		name := "group"
		info := colInfo{scope: s, kind: colOther}
		if c, ok := g.(*plan.Col); ok {
			name = c.Name
			if old := p.colInfo(c.ID); old != nil {
				info.relID, info.att, info.rel, info.item = old.relID, old.att, old.rel, old.item
			}
			if sets == nil && local[c.ID] {
				a.GroupCols = append(a.GroupCols, plan.LCol{ID: c.ID, Name: c.Name, T: c.T})
				continue
			}
		}
		t := g.Type()
		if sets != nil {
			t.NotNull = false
		}
		a.GroupCols = append(a.GroupCols, p.newCol(name, t, info))
	}
	if sets != nil {
		a.GroupingID = p.newCol("grouping", types.Of(types.Int8).WithNotNull(true), colInfo{scope: s, kind: colOther})
	}
	r := &regrouper{p: p, s: s, agg: a, sets: sets != nil}
	for i := range targets {
		targets[i].e = r.expr(targets[i].e)
	}
	for i := range having {
		having[i] = r.expr(having[i])
	}
	for _, w := range s.sel.windows {
		for i := range w.partition {
			w.partition[i] = r.expr(w.partition[i])
		}
		for i := range w.order {
			w.order[i].Expr = r.expr(w.order[i].Expr)
		}
		for i := range w.calls {
			c := &w.calls[i]
			for j := range c.Args {
				c.Args[j] = r.expr(c.Args[j])
			}
			if c.Agg != nil {
				for j := range c.Agg.Args {
					c.Agg.Args[j] = r.expr(c.Agg.Args[j])
				}
				if c.Agg.Filter != nil {
					c.Agg.Filter = r.expr(c.Agg.Filter)
				}
			}
		}
	}
	if r.err != nil {
		return nil, nil, r.err
	}
	// Aggregates registered by subqueries bound later are in the state by now.
	a.Aggs, a.AggCols = s.sel.aggs, s.sel.aggCols
	return a, having, nil
}

func (r *regrouper) expr(e plan.Expr) plan.Expr {
	if r.err != nil {
		return e
	}
	return plan.Replace(e, func(x plan.Expr) (plan.Expr, bool) {
		if r.err != nil {
			return x, true
		}
		if _, isConst := x.(*plan.Const); !isConst {
			for i, g := range r.agg.Groups {
				if _, isCol := g.(*plan.Col); r.within > 0 && !isCol {
					continue // PostgreSQL does not look for expressions inside subqueries
				}
				if exprEqual(g, x) {
					c := r.agg.GroupCols[i].Ref()
					r.p.pos[c] = r.p.pos[x]
					return c, true
				}
			}
		}
		switch x := x.(type) {
		case *plan.Col:
			return r.col(x), true
		case *groupingRef:
			return r.grouping(x), true
		case *plan.Subquery:
			r.within++
			mapPlan(x.Plan.(*subplan).root, r.expr)
			r.within--
		}
		return nil, false
	})
}

// col checks a column that is no group: it must be an aggregate's result, from
// elsewhere, or decided by the groups.
func (r *regrouper) col(c *plan.Col) plan.Expr {
	i := r.p.colInfo(c.ID)
	if i == nil || i.scope != r.s || i.kind != colInput {
		return c
	}
	if !r.sets && r.dependent(i) {
		r.agg.Groups = append(r.agg.Groups, c)
		r.agg.GroupCols = append(r.agg.GroupCols, plan.LCol{ID: c.ID, Name: c.Name, T: c.T})
		return c
	}
	pos, ok := r.p.pos[c]
	if !ok {
		pos = -1
	}
	name := i.name
	if i.rel != "" {
		name = i.rel + "." + i.name
	}
	if r.within > 0 {
		r.err = r.p.errAt(pgerr.GroupingError, pos, "subquery uses ungrouped column %q from outer query", name)
	} else {
		r.err = r.p.errAt(pgerr.GroupingError, pos, "column %q must appear in the GROUP BY clause or be used in an aggregate function", name)
	}
	return c
}

// dependent reports whether the whole primary key of the column's table is
// among the groups.
func (r *regrouper) dependent(i *colInfo) bool {
	t, ok := i.relID.(catalog.TableInfo)
	if !ok || len(t.PrimaryKey()) == 0 || i.item == nil {
		return false
	}
	cols := t.Columns()
	for _, k := range t.PrimaryKey() {
		found := false
		for _, g := range r.agg.Groups {
			c, ok := g.(*plan.Col)
			if !ok {
				continue
			}
			if gi := r.p.colInfo(c.ID); gi != nil && gi.item == i.item && gi.relID == i.relID && cols[gi.att].Name == k {
				found = true
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// grouping turns GROUPING(a, b) into arithmetic on the grouping id.
func (r *regrouper) grouping(g *groupingRef) plan.Expr {
	p := r.p
	n := len(r.agg.Groups)
	var at []int
	for i, a := range g.args {
		found := -1
		for j, e := range r.agg.Groups {
			if exprEqual(e, a) {
				found = j
			}
		}
		if found < 0 {
			r.err = p.errAt(pgerr.GroupingError, g.locs[i], "arguments to GROUPING must be grouping expressions of the associated query level")
			return g
		}
		at = append(at, found)
	}
	zero := p.constAt(int64(0), types.Of(types.Int4), g.pos)
	if !r.sets {
		return zero
	}
	// Bit n-1-j of the id is set where group j is not in the set: the value is
	// decided by which set a row belongs to, so a CASE over the ids is exact.
	vals := map[int64]int64{}
	for _, set := range r.agg.Sets {
		id := int64(1)<<n - 1
		in := map[int]bool{}
		for _, j := range set {
			in[j] = true
			id &^= 1 << (n - 1 - j)
		}
		v := int64(0)
		for k, j := range at {
			if !in[j] {
				v |= 1 << (len(at) - 1 - k)
			}
		}
		vals[id] = v
	}
	c := &plan.Case{T: types.Of(types.Int4).WithNotNull(true), Else: zero}
	for _, set := range r.agg.Sets {
		id := int64(1)<<n - 1
		for _, j := range set {
			id &^= 1 << (n - 1 - j)
		}
		v, ok := vals[id]
		if !ok || v == 0 {
			continue
		}
		delete(vals, id)
		eq, err := p.operator("=", r.agg.GroupingID.Ref(), p.constAt(id, types.Of(types.Int8), g.pos), g.pos, g.pos, g.pos)
		if err != nil {
			r.err = err
			return g
		}
		c.Whens = append(c.Whens, plan.When{Cond: eq, Result: p.constAt(v, types.Of(types.Int4), g.pos)})
	}
	if len(c.Whens) == 0 {
		return zero
	}
	return c
}
