package planner

import (
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// pushdown moves conditions as close to the scans as their meaning allows.
// Inner joins are taken as clusters: all their conditions are gathered, what
// follows from equalities and from ORs is added, and each goes to the smallest
// part that has its columns.
func (p *planner) pushdown(n plan.LNode) (plan.LNode, error) {
	return p.push(n, nil)
}

// above puts what could not be pushed on top.
func above(n plan.LNode, conds []plan.Expr) plan.LNode {
	if len(conds) == 0 {
		return n
	}
	if f, ok := n.(*plan.LFilter); ok {
		f.Conds = append(f.Conds, conds...)
		return f
	}
	return &plan.LFilter{In: n, Conds: conds}
}

func splitConds(conds []plan.Expr, ok func(plan.Expr) bool) (yes, no []plan.Expr) {
	for _, c := range conds {
		if ok(c) {
			yes = append(yes, c)
		} else {
			no = append(no, c)
		}
	}
	return yes, no
}

func (p *planner) push(n plan.LNode, conds []plan.Expr) (plan.LNode, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var err error
	switch n := n.(type) {
	case *plan.LFilter:
		return p.push(n.In, append(append([]plan.Expr{}, conds...), n.Conds...))
	case *plan.LGet:
		for _, c := range conds {
			n.Conds = addCond(n.Conds, c)
		}
		return n, nil
	case *plan.LProject:
		m := map[plan.ColID]plan.Expr{}
		for i, c := range n.Out {
			m[c.ID] = n.Exprs[i]
		}
		down, stay := splitConds(conds, func(c plan.Expr) bool {
			if hasVolatile(c) {
				return false
			}
			for id := range usedCols(c) {
				if e, ok := m[id]; ok && hasVolatile(e) {
					return false
				}
			}
			return true
		})
		for i := range down {
			down[i] = p.fold(substTyped(down[i], m))
		}
		if n.In, err = p.push(n.In, down); err != nil {
			return nil, err
		}
		return above(n, stay), nil
	case *plan.LProjectSet:
		in := colsOf(n.In)
		down, stay := splitConds(conds, func(c plan.Expr) bool { return in.hasAll(usedCols(c)) && !hasVolatile(c) })
		if n.In, err = p.push(n.In, down); err != nil {
			return nil, err
		}
		return above(n, stay), nil
	case *plan.LJoin:
		return p.pushJoin(n, conds)
	case *plan.LAggregate:
		m := map[plan.ColID]plan.Expr{}
		for i, c := range n.GroupCols {
			m[c.ID] = n.Groups[i]
		}
		down, stay := splitConds(conds, func(c plan.Expr) bool {
			if n.Sets != nil || n.Plain || hasVolatile(c) {
				return false
			}
			used := usedCols(c)
			for id := range used {
				if _, ok := m[id]; !ok {
					return false
				}
			}
			return len(used) > 0
		})
		for i := range down {
			down[i] = substTyped(down[i], m)
		}
		if n.In, err = p.push(n.In, down); err != nil {
			return nil, err
		}
		return above(n, stay), nil
	case *plan.LSort:
		if n.Top == 0 {
			down, stay := splitConds(conds, func(c plan.Expr) bool { return !hasVolatile(c) })
			if n.In, err = p.push(n.In, down); err != nil {
				return nil, err
			}
			return above(n, stay), nil
		}
	case *plan.LDistinct:
		on := colSet{}
		for _, e := range n.On {
			if c, ok := e.(*plan.Col); ok {
				on[c.ID] = true
			}
		}
		down, stay := splitConds(conds, func(c plan.Expr) bool {
			return !hasVolatile(c) && (n.On == nil || on.hasAll(usedCols(c)) && len(usedCols(c)) > 0)
		})
		if n.In, err = p.push(n.In, down); err != nil {
			return nil, err
		}
		return above(n, stay), nil
	case *plan.LUnion:
		down, stay := splitConds(conds, func(c plan.Expr) bool { return !hasVolatile(c) })
		for i, in := range n.Ins {
			cols := in.Cols()
			m := map[plan.ColID]plan.Expr{}
			for k, c := range n.Out {
				m[c.ID] = cols[k].Ref()
			}
			mine := make([]plan.Expr, len(down))
			for k, c := range down {
				mine[k] = subst(c, m)
			}
			if n.Ins[i], err = p.pushExact(in, mine); err != nil {
				return nil, err
			}
		}
		return above(n, stay), nil
	case *plan.LSetOp:
		down, stay := splitConds(conds, func(c plan.Expr) bool { return !hasVolatile(c) })
		for _, k := range n.Kids() {
			cols := (*k).Cols()
			m := map[plan.ColID]plan.Expr{}
			for i, c := range n.Out {
				m[c.ID] = cols[i].Ref()
			}
			var mine []plan.Expr
			if k == &n.Left || n.Kind == plan.Intersect {
				for _, c := range down {
					mine = append(mine, subst(c, m))
				}
			}
			if *k, err = p.pushExact(*k, mine); err != nil {
				return nil, err
			}
		}
		return above(n, stay), nil
	case *plan.LWindow:
		part := colSet{}
		for _, e := range n.PartitionBy {
			if c, ok := e.(*plan.Col); ok {
				part[c.ID] = true
			}
		}
		down, stay := splitConds(conds, func(c plan.Expr) bool {
			used := usedCols(c)
			return len(used) > 0 && part.hasAll(used) && !hasVolatile(c)
		})
		if n.In, err = p.push(n.In, down); err != nil {
			return nil, err
		}
		return above(n, stay), nil
	}
	for _, k := range n.Kids() {
		if exactKids(n) {
			*k, err = p.pushExact(*k, nil)
		} else {
			*k, err = p.push(*k, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	return above(n, conds), nil
}

// pushExact pushes into an input whose columns count by position.
func (p *planner) pushExact(n plan.LNode, conds []plan.Expr) (plan.LNode, error) {
	before := n.Cols()
	out, err := p.push(n, conds)
	if err != nil {
		return nil, err
	}
	after := out.Cols()
	same := len(before) == len(after)
	for i := 0; same && i < len(before); i++ {
		same = before[i].ID == after[i].ID
	}
	if same {
		return out, nil
	}
	pr := &plan.LProject{In: out, Out: before}
	for _, c := range before {
		pr.Exprs = append(pr.Exprs, c.Ref())
	}
	return pr, nil
}

// addCond adds a condition unless it is there.
func addCond(conds []plan.Expr, c plan.Expr) []plan.Expr {
	if len(conds) < 100 {
		for _, o := range conds {
			if exprEqual(o, c) {
				return conds
			}
		}
	}
	return append(conds, c)
}

func (p *planner) pushJoin(j *plan.LJoin, conds []plan.Expr) (plan.LNode, error) {
	if j.Kind == plan.Inner && !j.Lateral {
		return p.pushCluster(j, conds)
	}
	l, r := colsOf(j.Left), colsOf(j.Right)
	var left, right, stay []plan.Expr
	switch j.Kind {
	case plan.Full:
		stay = conds
	default:
		for _, c := range conds {
			used := usedCols(c)
			switch {
			case !hasVolatile(c) && l.hasAll(used) && (len(used) > 0 || j.Kind != plan.Inner):
				left = append(left, c)
			case j.Kind == plan.Inner && !hasVolatile(c) && r.hasAll(used):
				right = append(right, c)
			case j.Kind == plan.Inner:
				j.Conds = append(j.Conds, c)
			default:
				stay = append(stay, c)
			}
		}
	}
	var own []plan.Expr
	for _, c := range j.Conds {
		used := usedCols(c)
		volatile := hasVolatile(c)
		switch {
		case volatile || j.Kind == plan.Full || j.Kind == plan.Mark:
			own = append(own, c)
		case r.hasAll(used) && len(used) > 0 && (j.Kind != plan.NullAnti):
			right = append(right, c)
		case l.hasAll(used) && len(used) > 0 && (j.Kind == plan.Inner || j.Kind == plan.Semi):
			left = append(left, c)
		default:
			own = append(own, c)
		}
	}
	j.Conds = own
	if !j.Lateral && !p.off("infer") && (j.Kind == plan.Left || j.Kind == plan.Semi || j.Kind == plan.Anti) {
		// What the left side's keys are known to be, the right side's are.
		known := append(append([]plan.Expr{}, left...), condsOf(j.Left)...)
		for _, c := range p.infer(append(known, equalCols(j.Conds)...)) {
			if used := usedCols(c); r.hasAll(used) && len(used) > 0 {
				right = append(right, c)
			}
		}
	}
	var err error
	if j.Left, err = p.push(j.Left, left); err != nil {
		return nil, err
	}
	if j.Right, err = p.push(j.Right, right); err != nil {
		return nil, err
	}
	return above(j, stay), nil
}

// condsOf are conditions known to hold of every row of n.
func condsOf(n plan.LNode) []plan.Expr {
	switch n := n.(type) {
	case *plan.LFilter:
		return append(condsOf(n.In), n.Conds...)
	case *plan.LGet:
		return n.Conds
	case *plan.LJoin:
		switch n.Kind {
		case plan.Inner:
			return append(append(condsOf(n.Left), condsOf(n.Right)...), n.Conds...)
		case plan.Left, plan.Semi, plan.Anti, plan.NullAnti, plan.Mark:
			return condsOf(n.Left)
		}
	case *plan.LSort:
		return condsOf(n.In)
	}
	return nil
}

func equalCols(conds []plan.Expr) []plan.Expr {
	var out []plan.Expr
	for _, c := range conds {
		if _, _, ok := colEquality(c); ok {
			out = append(out, c)
		}
	}
	return out
}

// pushCluster distributes the conditions of nested inner joins.
func (p *planner) pushCluster(j *plan.LJoin, conds []plan.Expr) (plan.LNode, error) {
	all := append([]plan.Expr{}, conds...)
	var leaves []plan.LNode
	var gather func(n plan.LNode) error
	gather = func(n plan.LNode) error {
		if err := p.enter(); err != nil {
			return err
		}
		defer p.leave()
		switch x := n.(type) {
		case *plan.LJoin:
			if x.Kind == plan.Inner && !x.Lateral {
				all = append(all, x.Conds...)
				x.Conds = nil
				if err := gather(x.Left); err != nil {
					return err
				}
				return gather(x.Right)
			}
		case *plan.LFilter:
			if _, ok := x.In.(*plan.LJoin); ok {
				all = append(all, x.Conds...)
				x.Conds = nil
				return gather(x.In)
			}
		}
		leaves = append(leaves, n)
		return nil
	}
	if err := gather(j); err != nil {
		return nil, err
	}
	all = flatConds(all)
	if !p.off("or_factor") {
		var next []plan.Expr
		for _, c := range all {
			next = append(next, conjuncts(p.factorOr(c))...)
		}
		all = next
		for _, c := range all {
			all = append(all, p.restrictOr(c, leaves)...)
		}
	}
	var uniq []plan.Expr
	for _, c := range all {
		uniq = addCond(uniq, c)
	}
	all = uniq
	if !p.off("infer") {
		all = append(all, p.infer(all)...)
	}
	return p.spread(j, all)
}

// spread hands conditions down a tree of inner joins.
func (p *planner) spread(n plan.LNode, conds []plan.Expr) (plan.LNode, error) {
	if f, ok := n.(*plan.LFilter); ok && len(f.Conds) == 0 {
		n = f.In
	}
	j, ok := n.(*plan.LJoin)
	if !ok || j.Kind != plan.Inner || j.Lateral {
		return p.push(n, conds)
	}
	l, r := colsOf(j.Left), colsOf(j.Right)
	var left, right, stay []plan.Expr
	for _, c := range conds {
		used := usedCols(c)
		switch {
		case hasVolatile(c):
			stay = append(stay, c)
		case l.hasAll(used):
			left = append(left, c)
			if len(used) == 0 && !isParamFree(c) {
				right = append(right, c)
			}
		case r.hasAll(used):
			right = append(right, c)
		default:
			j.Conds = append(j.Conds, c)
		}
	}
	var err error
	if j.Left, err = p.spread(j.Left, left); err != nil {
		return nil, err
	}
	if j.Right, err = p.spread(j.Right, right); err != nil {
		return nil, err
	}
	return above(j, stay), nil
}

func isParamFree(plan.Expr) bool { return true }

// colEquality recognises col = col.
func colEquality(c plan.Expr) (a, b *plan.Col, ok bool) {
	call, is := c.(*plan.Call)
	if !is || call.F == nil || call.F.Name != "=" || len(call.Args) != 2 {
		return nil, nil, false
	}
	a, ok1 := call.Args[0].(*plan.Col)
	b, ok2 := call.Args[1].(*plan.Col)
	return a, b, ok1 && ok2 && a.ID != b.ID && sameType(a.T, b.T) && a.T.SamePhysical(b.T)
}

// infer adds what follows from equalities: a = b and b = c give a = c; a = b
// and a condition on a alone give it on b.
func (p *planner) infer(conds []plan.Expr) []plan.Expr {
	parent := map[plan.ColID]plan.ColID{}
	cols := map[plan.ColID]*plan.Col{}
	var order []plan.ColID
	var find func(x plan.ColID) plan.ColID
	find = func(x plan.ColID) plan.ColID {
		for parent[x] != x {
			parent[x] = parent[parent[x]]
			x = parent[x]
		}
		return x
	}
	add := func(c *plan.Col) {
		if _, ok := parent[c.ID]; !ok {
			parent[c.ID] = c.ID
			cols[c.ID] = c
			order = append(order, c.ID)
		}
	}
	for _, c := range conds {
		if a, b, ok := colEquality(c); ok {
			// Equality of text by collation, of bpchar by trimmed text and of
			// floats (0 = -0) is not identity, but the conditions derived are
			// over the same operators, for which it is.
			add(a)
			add(b)
			parent[find(a.ID)] = find(b.ID)
		}
	}
	if len(order) == 0 {
		return nil
	}
	classes := map[plan.ColID][]*plan.Col{}
	for _, id := range order {
		r := find(id)
		classes[r] = append(classes[r], cols[id])
	}
	var out []plan.Expr
	seen := func(c plan.Expr) bool {
		for _, o := range conds {
			if exprEqual(o, c) || flippedEqual(o, c) {
				return true
			}
		}
		for _, o := range out {
			if exprEqual(o, c) || flippedEqual(o, c) {
				return true
			}
		}
		return false
	}
	for _, c := range conds {
		if hasVolatile(c) || hasSubquery(c) {
			continue
		}
		used := usedCols(c)
		if len(used) != 1 {
			continue
		}
		var id plan.ColID
		for u := range used {
			id = u
		}
		if _, ok := parent[id]; !ok || !inferable(c, id) {
			continue
		}
		for _, other := range classes[find(id)] {
			if other.ID == id {
				continue
			}
			d := subst(c, map[plan.ColID]plan.Expr{id: other})
			if !seen(d) {
				out = append(out, d)
			}
		}
	}
	for _, id := range order {
		r := find(id)
		cl := classes[r]
		if r != id || len(cl) < 3 || len(cl) > 8 {
			continue
		}
		for i := range cl {
			for k := i + 1; k < len(cl); k++ {
				eq, err := p.operator("=", cl[i], cl[k], -1, -1, -1)
				if err != nil {
					continue
				}
				if call, ok := eq.(*plan.Call); ok && call.Args[0] == plan.Expr(cl[i]) && call.Args[1] == plan.Expr(cl[k]) && !seen(eq) {
					out = append(out, eq)
				}
			}
		}
	}
	return out
}

func flippedEqual(a, b plan.Expr) bool {
	x, ok1 := a.(*plan.Call)
	y, ok2 := b.(*plan.Call)
	return ok1 && ok2 && x.F == y.F && x.F != nil && x.F.Name == "=" && len(x.Args) == 2 && exprEqual(x.Args[0], y.Args[1]) && exprEqual(x.Args[1], y.Args[0])
}

// inferable conditions depend on their column only through comparison, so that
// they say the same of an equal value: comparisons with constants and lists.
func inferable(c plan.Expr, id plan.ColID) bool {
	isCol := func(e plan.Expr) bool {
		x, ok := e.(*plan.Col)
		return ok && x.ID == id
	}
	switch x := c.(type) {
	case *plan.Call:
		return x.F != nil && len(x.Args) == 2 && commutators[x.F.Name] != "" && (isCol(x.Args[0]) || isCol(x.Args[1]))
	case *plan.InList:
		return isCol(x.Arg) && !x.Not
	case *plan.Or:
		for _, a := range x.Args {
			if !inferable(a, id) {
				return false
			}
		}
		return true
	case *plan.And:
		for _, a := range x.Args {
			if !inferable(a, id) {
				return false
			}
		}
		return true
	}
	return false
}

// factorOr takes the conditions that every branch of an OR has out of it:
// (a AND x) OR (a AND y) is a AND (x OR y).
func (p *planner) factorOr(c plan.Expr) plan.Expr {
	or, ok := c.(*plan.Or)
	if !ok || len(or.Args) > 100 {
		return c
	}
	branches := make([][]plan.Expr, len(or.Args))
	for i, a := range or.Args {
		branches[i] = conjuncts(a)
	}
	var common []plan.Expr
	for _, x := range branches[0] {
		everywhere := true
		for _, b := range branches[1:] {
			found := false
			for _, y := range b {
				if exprEqual(x, y) {
					found = true
					break
				}
			}
			if !found {
				everywhere = false
				break
			}
		}
		if everywhere {
			common = append(common, x)
		}
	}
	if len(common) == 0 {
		return c
	}
	var rest []plan.Expr
	for _, b := range branches {
		var keep []plan.Expr
		for _, y := range b {
			isCommon := false
			for _, x := range common {
				if exprEqual(x, y) {
					isCommon = true
				}
			}
			if !isCommon {
				keep = append(keep, y)
			}
		}
		if len(keep) == 0 {
			rest = nil // a branch with nothing more: the OR is true
			break
		}
		rest = append(rest, conj(keep))
	}
	if rest != nil {
		common = append(common, &plan.Or{Args: rest})
	}
	return conj(common)
}

// restrictOr derives, from an OR over several tables, one over a single table:
// what each branch says of it. PostgreSQL's extract_restriction_or_clauses.
func (p *planner) restrictOr(c plan.Expr, leaves []plan.LNode) []plan.Expr {
	or, ok := c.(*plan.Or)
	if !ok || hasVolatile(c) {
		return nil
	}
	used := usedCols(c)
	var out []plan.Expr
	for _, leaf := range leaves {
		cols := colsOf(leaf)
		if !cols.hasAny(used) || cols.hasAll(used) {
			continue
		}
		var branches []plan.Expr
		for _, a := range or.Args {
			var mine []plan.Expr
			for _, x := range conjuncts(a) {
				if u := usedCols(x); len(u) > 0 && cols.hasAll(u) {
					mine = append(mine, x)
				}
			}
			if len(mine) == 0 {
				branches = nil
				break
			}
			branches = append(branches, conj(mine))
		}
		if len(branches) == len(or.Args) {
			d := &plan.Or{Args: branches}
			p.derived[d] = true
			out = append(out, d)
		}
	}
	return out
}

var _ = types.Bool
