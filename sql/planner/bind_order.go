package planner

import (
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// bindOrderBy finds or adds the targets that ORDER BY names.
func (p *planner) bindOrderBy(s *scope, items []*ast.OrderItem, targets []target) ([]orderKey, []target, error) {
	var keys []orderKey
	for _, o := range items {
		i, ts, err := p.findTarget92(s, o.Expr, targets, inOrderBy, "ORDER BY")
		if err != nil {
			return nil, nil, err
		}
		targets = ts
		if isUnknown(targets[i].e) {
			if targets[i].e, err = p.coerce(targets[i].e, types.Of(types.Text), function.Implicit, targets[i].pos); err != nil {
				return nil, nil, err
			}
		}
		k, err := p.sortKeyFor(o, targets[i].e, p.loc(o.Expr))
		if err != nil {
			return nil, nil, err
		}
		dup := false
		for _, old := range keys {
			dup = dup || old.target == i
		}
		if !dup {
			keys = append(keys, orderKey{i, k.Desc, k.NullsFirst})
		}
	}
	return keys, targets, nil
}

// findTarget92 is findTargetlistEntrySQL92: a name of the select list, a
// position in it, or an expression, which is added when it is new.
func (p *planner) findTarget92(s *scope, e ast.Expr, targets []target, k exprKind, clause string) (int, []target, error) {
	if c, ok := e.(*ast.ColumnRef); ok && len(c.Parts) == 1 && !c.Star {
		name := c.Parts[0].Name
		look := true
		if k == inGroupBy {
			// An input column of this level wins over an output name.
			old := s.parent
			s.parent = nil
			x, err := p.findColumn(s, name, c.Pos)
			s.parent = old
			if err != nil {
				return 0, nil, err
			}
			look = x == nil
		}
		if look {
			found := -1
			for i := range targets {
				if targets[i].junk || targets[i].name != name {
					continue
				}
				if found >= 0 && !exprEqual(targets[i].e, targets[found].e) {
					return 0, nil, p.errAt(pgerr.AmbiguousColumn, c.Pos, "%s %q is ambiguous", clause, name)
				}
				if found < 0 {
					found = i
				}
			}
			if found >= 0 {
				p.recording().target(e, targets, found)
				return found, targets, p.checkTargetKind(s, targets[found], k, clause)
			}
		}
	}
	switch n := e.(type) {
	case *ast.Number:
		v, ok := intLiteral(n)
		if !ok {
			return 0, nil, p.errAt(pgerr.SyntaxError, n.Pos, "non-integer constant in %s", clause)
		}
		at := int64(0)
		for i := range targets {
			if targets[i].junk {
				continue
			}
			if at++; at == v {
				p.recording().target(e, targets, i)
				return i, targets, p.checkTargetKind(s, targets[i], k, clause)
			}
		}
		return 0, nil, p.errAt(pgerr.InvalidColumnReference, n.Pos, "%s position %d is not in select list", clause, v)
	case *ast.String, *ast.Bool, *ast.Null:
		return 0, nil, p.errAt(pgerr.SyntaxError, e.Position(), "non-integer constant in %s", clause)
	case *ast.Unary:
		if v, ok := intLiteral(n); ok && n.Op.Name == "-" {
			return 0, nil, p.errAt(pgerr.InvalidColumnReference, n.Pos, "%s position %d is not in select list", clause, v)
		}
	}
	return p.findTarget99(s, e, targets, k)
}

// checkTargetKind refuses a target that holds what the clause may not.
func (p *planner) checkTargetKind(s *scope, t target, k exprKind, clause string) error {
	if k != inGroupBy {
		return nil
	}
	var err error
	plan.Walk(t.e, func(x plan.Expr) bool {
		if c, ok := x.(*plan.Col); ok && err == nil {
			switch i := p.colInfo(c.ID); {
			case i == nil || i.scope != s:
			case i.kind == colAgg:
				err = p.errAt(pgerr.GroupingError, p.aggPlace(t), "aggregate functions are not allowed in %s", clause)
			case i.kind == colWindow:
				err = p.errAt(pgerr.WindowingError, p.aggPlace(t), "window functions are not allowed in %s", clause)
			}
		}
		return err == nil
	})
	return err
}

// aggPlace finds the aggregate or window call in a target's source.
func (p *planner) aggPlace(t target) ast.Pos {
	pos := t.pos
	found := false
	if t.src == nil {
		return pos
	}
	walkAST(t.src, func(n ast.Node) bool {
		if f, ok := n.(*ast.FuncCall); ok && !found && (hasAgg(f.Name.Last()) || f.Over != nil) {
			pos, found = f.Pos, true
		}
		return !found
	})
	return pos
}

// findTarget99 matches an expression with the select list, or adds it.
func (p *planner) findTarget99(s *scope, e ast.Expr, targets []target, k exprKind) (int, []target, error) {
	x, err := p.in(s, k, e)
	if err != nil {
		return 0, nil, err
	}
	for i := range targets {
		if exprEqual(targets[i].e, x) {
			return i, targets, nil
		}
	}
	targets = append(targets, target{name: figureName(e), e: x, pos: p.loc(e), src: e, junk: true})
	return len(targets) - 1, targets, nil
}

func (p *planner) bindDistinctOn(s *scope, sel *ast.Select, targets []target, keys []orderKey) ([]int, []target, error) {
	var on []int
	for _, e := range sel.DistinctOn {
		i, ts, err := p.findTarget92(s, e, targets, inDistinctOn, "DISTINCT ON")
		if err != nil {
			return nil, nil, err
		}
		targets = ts
		dup := false
		for _, o := range on {
			dup = dup || o == i
		}
		if !dup {
			on = append(on, i)
		}
		if !p.orderable(targets[i].e.Type()) {
			return nil, nil, p.errAt(pgerr.UndefinedFunction, p.loc(e), "could not identify an equality operator for type %s", typeName(targets[i].e.Type()))
		}
		if isUnknown(targets[i].e) {
			if targets[i].e, err = p.resolveUnknown(targets[i].e, targets[i].pos); err != nil {
				return nil, nil, err
			}
		}
	}
	isOn := map[int]bool{}
	for _, o := range on {
		isOn[o] = true
	}
	// The ORDER BY must begin with the ON expressions, in any order.
	skipped := false
	matched := 0
	for _, k := range keys {
		if isOn[k.target] {
			if skipped {
				return nil, nil, p.errAt(pgerr.InvalidColumnReference, targetPos(sel, on, k.target, p), "SELECT DISTINCT ON expressions must match initial ORDER BY expressions")
			}
			matched++
		} else {
			skipped = true
		}
	}
	if skipped && matched < len(on) {
		for j, o := range on {
			found := false
			for _, k := range keys {
				found = found || k.target == o
			}
			if !found {
				return nil, nil, p.errAt(pgerr.InvalidColumnReference, p.loc(sel.DistinctOn[min(j, len(sel.DistinctOn)-1)]), "SELECT DISTINCT ON expressions must match initial ORDER BY expressions")
			}
		}
	}
	return on, targets, nil
}

func targetPos(sel *ast.Select, on []int, t int, p *planner) ast.Pos {
	for j, o := range on {
		if o == t && j < len(sel.DistinctOn) {
			return p.loc(sel.DistinctOn[j])
		}
	}
	return sel.Pos
}

func (p *planner) bindLimit(s *scope, q *ast.Query) (offset, count plan.Expr, err error) {
	one := func(e ast.Expr, k exprKind, name string) (plan.Expr, error) {
		if e == nil {
			return nil, nil
		}
		x, err := p.in(s, k, e)
		if err != nil {
			return nil, err
		}
		if x, err = p.coerceTo(x, types.Of(types.Int8), name, p.loc(e)); err != nil {
			return nil, err
		}
		var bad *plan.Col
		plan.Walk(x, func(y plan.Expr) bool {
			if c, ok := y.(*plan.Col); ok && bad == nil {
				if i := p.colInfo(c.ID); i != nil && i.scope == s {
					bad = c
				}
			}
			return bad == nil
		})
		if bad != nil {
			return nil, p.errAt(pgerr.InvalidColumnReference, p.pos[bad], "argument of %s must not contain variables", name)
		}
		return p.foldNow(x), nil
	}
	if offset, err = one(q.Offset, inOffset, "OFFSET"); err != nil {
		return nil, nil, err
	}
	if count, err = one(q.Limit, inLimit, "LIMIT"); err != nil {
		return nil, nil, err
	}
	if c, ok := count.(*plan.Const); ok && c.Value == nil {
		count = nil
	}
	if c, ok := offset.(*plan.Const); ok && c.Value == nil {
		offset = nil
	}
	return offset, count, nil
}

// orderByNames sorts and cuts a query whose ORDER BY may be an expression over
// its result (VALUES, a parenthesised query).
func (p *planner) orderByNames(s *scope, b *bound, q *ast.Query) (*bound, error) {
	it := &item{name: "*VALUES*", colVisible: true}
	var targets []target
	for _, c := range b.cols {
		it.cols = append(it.cols, scopeCol{name: c.name, e: c.ref()})
		targets = append(targets, target{name: c.name, e: c.ref()})
	}
	s.items = append(s.items, it)
	keys, targets, err := p.bindOrderBy(s, q.OrderBy, targets)
	if err != nil {
		return nil, err
	}
	s.items = s.items[:len(s.items)-1]
	return p.sortAndCut(s, b, q, keys, targets)
}

func (p *planner) sortAndCut(s *scope, b *bound, q *ast.Query, keys []orderKey, targets []target) (*bound, error) {
	out := &bound{root: b.root, cols: b.cols, computed: b.computed, firstPos: b.firstPos, pos: b.pos}
	if len(targets) > len(b.cols) {
		pr := &plan.LProject{In: b.root}
		for i := range targets {
			t := &targets[i]
			if !t.junk {
				c := b.cols[i]
				pr.Exprs, pr.Out = append(pr.Exprs, c.ref()), append(pr.Out, plan.LCol{ID: c.id, Name: c.name, T: c.t})
				t.id = c.id
				continue
			}
			col := p.newCol(t.name, t.e.Type(), colInfo{kind: colOther})
			t.id = col.ID
			pr.Exprs, pr.Out = append(pr.Exprs, t.e), append(pr.Out, col)
		}
		out.root = pr
	} else {
		for i := range targets {
			targets[i].id = b.cols[i].id
		}
	}
	var sortKeys []plan.SortKey
	for _, k := range keys {
		t := targets[k.target]
		sortKeys = append(sortKeys, plan.SortKey{Expr: &plan.Col{ID: t.id, Name: t.name, T: t.e.Type()}, Desc: k.desc, NullsFirst: k.nullsFirst})
	}
	if len(sortKeys) > 0 {
		out.root = &plan.LSort{In: out.root, Keys: sortKeys}
	}
	offset, count, err := p.bindLimit(s, q)
	if err != nil {
		return nil, err
	}
	if offset != nil || count != nil {
		out.root = &plan.LLimit{In: out.root, Offset: offset, Count: count, WithTies: q.WithTies, Keys: sortKeys}
	}
	if len(targets) > len(b.cols) {
		cut := &plan.LProject{In: out.root}
		for _, c := range b.cols {
			cut.Exprs = append(cut.Exprs, c.ref())
			cut.Out = append(cut.Out, plan.LCol{ID: c.id, Name: c.name, T: c.t})
		}
		out.root = cut
	}
	return out, nil
}
