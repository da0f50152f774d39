package planner

import (
	"math"
	"math/bits"

	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// maxDP is the number of relations up to which every join order is looked at.
const maxDP = 10

// leaf is one relation of a cluster. Inner ones join in any order; others (the
// right sides of semi, anti, left and mark joins) join when the relations they
// refer to are there.
type leaf struct {
	node plan.LNode
	kind plan.JoinKind
	dep  *plan.LJoin // the join a dependent leaf comes from
	cols colSet
	req  uint64 // leaves that dep's condition uses
}

// cluster is a set of relations under one order decision.
type cluster struct {
	leaves []leaf
	conds  []plan.Expr
	masks  []uint64 // leaves each condition uses
}

// orderJoins puts every cluster of joins in the cheapest order found: dynamic
// programming over subsets, bushy trees included, up to maxDP relations, greedy
// beyond.
func (p *planner) orderJoins(root plan.LNode) (plan.LNode, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	if !p.clusterRoot(root) {
		for _, k := range root.Kids() {
			n, err := p.orderJoins(*k)
			if err != nil {
				return nil, err
			}
			*k = n
		}
		if j, ok := root.(*plan.LJoin); ok {
			p.orient(j)
		}
		return root, nil
	}
	c := &cluster{}
	if err := p.gather(root, c); err != nil {
		return nil, err
	}
	for i := range c.leaves {
		n, err := p.orderJoins(c.leaves[i].node)
		if err != nil {
			return nil, err
		}
		c.leaves[i].node = n
	}
	if len(c.leaves) > 64 {
		return root, nil
	}
	p.mask(c)
	// Conditions of one relation or none were left here because they are
	// volatile: they filter the result.
	var last []plan.Expr
	kept, masks := c.conds[:0:0], c.masks[:0:0]
	for i, m := range c.masks {
		if bits.OnesCount64(m) < 2 {
			last = append(last, c.conds[i])
			continue
		}
		kept, masks = append(kept, c.conds[i]), append(masks, m)
	}
	c.conds, c.masks = kept, masks
	var t *joined
	if len(c.leaves) <= maxDP {
		t = p.dp(c)
	}
	if t == nil {
		t = p.greedy(c)
	}
	if t == nil {
		return root, nil
	}
	return above(t.node, last), nil
}

func (p *planner) clusterRoot(n plan.LNode) bool {
	j, ok := n.(*plan.LJoin)
	return ok && !j.Lateral && reorderable(j.Kind)
}

func reorderable(k plan.JoinKind) bool {
	switch k {
	case plan.Inner, plan.Semi, plan.Anti, plan.NullAnti, plan.Left:
		return true
	}
	return false
}

func (p *planner) gather(n plan.LNode, c *cluster) error {
	if err := p.enter(); err != nil {
		return err
	}
	defer p.leave()
	j, ok := n.(*plan.LJoin)
	if !ok || j.Lateral || !reorderable(j.Kind) {
		c.leaves = append(c.leaves, leaf{node: n, kind: plan.Inner, cols: colsOf(n)})
		return nil
	}
	if err := p.gather(j.Left, c); err != nil {
		return err
	}
	if j.Kind == plan.Inner {
		if err := p.gather(j.Right, c); err != nil {
			return err
		}
		c.conds = append(c.conds, j.Conds...)
		return nil
	}
	c.leaves = append(c.leaves, leaf{node: j.Right, kind: j.Kind, dep: j, cols: colsOf(j.Right)})
	return nil
}

func (p *planner) mask(c *cluster) {
	of := func(used colSet) uint64 {
		m := uint64(0)
		for i := range c.leaves {
			if c.leaves[i].cols.hasAny(used) {
				m |= 1 << i
			}
		}
		return m
	}
	for _, e := range c.conds {
		c.masks = append(c.masks, of(usedCols(e)))
	}
	for i := range c.leaves {
		l := &c.leaves[i]
		if l.dep == nil {
			continue
		}
		used := colSet{}
		for _, e := range l.dep.Conds {
			used.addAll(usedCols(e))
		}
		l.req = of(used) &^ (1 << i)
		if l.req == 0 || p.off("semi_order") {
			// No column of the left decides: it stays after everything before it.
			l.req |= 1<<i - 1
		}
	}
	// A relation whose columns come from a left join's right side drags that
	// join with it: conditions over them are masked already.
}

// joined is a plan for a subset of the leaves.
type joined struct {
	node plan.LNode
	e    *est
	cols colSet
}

func (p *planner) leafPlan(l *leaf) *joined {
	return &joined{node: l.node, e: p.est(l.node), cols: l.cols}
}

// combine joins two subsets; nil when there is no condition between them and
// cross is not allowed.
func (p *planner) combine(c *cluster, a, b *joined, am, bm uint64, cross bool) *joined {
	// A dependent relation joins what it refers to, nothing joins it alone: the
	// join that it comes from would be lost.
	if bits.OnesCount64(am) == 1 && c.leaves[bits.TrailingZeros64(am)].dep != nil {
		return nil
	}
	if bits.OnesCount64(bm) == 1 {
		if l := &c.leaves[bits.TrailingZeros64(bm)]; l.dep != nil {
			if l.req&^am != 0 {
				return nil
			}
			conds := l.dep.Conds
			e := p.joinEst(l.kind, a.e, b.e, conds, a.cols, b.cols, false)
			n := &plan.LJoin{Kind: l.kind, Left: a.node, Right: b.node, Conds: conds, Single: l.dep.Single, MarkCol: l.dep.MarkCol, Pos: l.dep.Pos}
			cols := a.cols
			if l.kind == plan.Left {
				cols = colSet{}
				cols.addAll(a.cols)
				cols.addAll(b.cols)
			}
			return p.withConds(c, &joined{node: n, e: e, cols: cols}, am, bm)
		}
	}
	conds := c.crossing(am, bm)
	if len(conds) == 0 && !cross {
		return nil
	}
	e := p.joinEst(plan.Inner, a.e, b.e, conds, a.cols, b.cols, false)
	cols := colSet{}
	cols.addAll(a.cols)
	cols.addAll(b.cols)
	n := &plan.LJoin{Kind: plan.Inner, Left: a.node, Right: b.node, Conds: conds, Pos: -1}
	return &joined{node: n, e: e, cols: cols}
}

// crossing are the conditions between two subsets. An equality that follows from
// others that hold in either or between them is left out: it selects nothing.
func (c *cluster) crossing(am, bm uint64) []plan.Expr {
	var conds []plan.Expr
	parent := map[plan.ColID]plan.ColID{}
	find := func(x plan.ColID) plan.ColID {
		for {
			p, ok := parent[x]
			if !ok || p == x {
				return x
			}
			x = p
		}
	}
	for i, m := range c.masks {
		if m&^am != 0 && m&^bm != 0 {
			continue
		}
		if a, b, ok := colEquality(c.conds[i]); ok {
			parent[find(a.ID)] = find(b.ID)
		}
	}
	for i, m := range c.masks {
		if m&^(am|bm) != 0 || m&am == 0 || m&bm == 0 {
			continue
		}
		if a, b, ok := colEquality(c.conds[i]); ok {
			x, y := find(a.ID), find(b.ID)
			if x == y {
				continue
			}
			parent[x] = y
		}
		conds = append(conds, c.conds[i])
	}
	return conds
}

// withConds filters a dependent join by the inner conditions over its columns
// that become complete with it.
func (p *planner) withConds(c *cluster, j *joined, am, bm uint64) *joined {
	var conds []plan.Expr
	for i, m := range c.masks {
		if m&^(am|bm) == 0 && m&bm != 0 {
			conds = append(conds, c.conds[i])
		}
	}
	if len(conds) == 0 {
		return j
	}
	s := p.selectivity(conds, j.e)
	e := *j.e
	e.total += e.rows * cpuOperator * float64(len(conds))
	e.rows = clampRows(e.rows * s)
	return &joined{node: &plan.LFilter{In: j.node, Conds: conds}, e: &e, cols: j.cols}
}

// dp looks at every way to build every subset from two smaller ones.
func (p *planner) dp(c *cluster) *joined {
	n := len(c.leaves)
	best := make([]*joined, 1<<n)
	for i := range c.leaves {
		best[1<<i] = p.leafPlan(&c.leaves[i])
	}
	full := uint64(1)<<n - 1
	for s := uint64(1); s <= full; s++ {
		if bits.OnesCount64(s) < 2 {
			continue
		}
		for pass := 0; pass < 2 && best[s] == nil; pass++ {
			// First with conditions only; a product when nothing else builds s and
			// s could not be avoided.
			if pass == 1 && !p.needsProduct(c, s) {
				break
			}
			for a := (s - 1) & s; a > 0; a = (a - 1) & s {
				b := s &^ a
				if best[a] == nil || best[b] == nil {
					continue
				}
				t := p.combine(c, best[a], best[b], a, b, pass == 1)
				if t != nil && (best[s] == nil || t.e.total < best[s].e.total) {
					best[s] = t
				}
			}
		}
		if best[s] != nil {
			p.ests[best[s].node] = best[s].e
		}
	}
	return best[full]
}

// needsProduct reports whether s is a union of whole connected components, so
// that a product is the only way.
func (p *planner) needsProduct(c *cluster, s uint64) bool {
	rest := s
	for rest != 0 {
		comp := rest & -rest
		for {
			next := comp
			for _, m := range c.masks {
				if m&comp != 0 {
					next |= m
				}
			}
			for i := range c.leaves {
				if l := &c.leaves[i]; l.dep != nil && (l.req|1<<i)&comp != 0 {
					next |= l.req | 1<<i
				}
			}
			if next == comp {
				break
			}
			comp = next
		}
		if comp&^s != 0 {
			return false
		}
		rest &^= comp
	}
	return true
}

// greedy joins the pair with the cheapest result until one is left.
func (p *planner) greedy(c *cluster) *joined {
	type part struct {
		j *joined
		m uint64
	}
	var parts []part
	for i := range c.leaves {
		parts = append(parts, part{p.leafPlan(&c.leaves[i]), 1 << i})
	}
	for len(parts) > 1 {
		var bi, bk int
		var found *joined
		for pass := 0; pass < 2 && found == nil; pass++ {
			cost := math.Inf(1)
			for i := range parts {
				for k := range parts {
					if i == k {
						continue
					}
					t := p.combine(c, parts[i].j, parts[k].j, parts[i].m, parts[k].m, pass == 1)
					if t == nil {
						continue
					}
					// The growth matters more than the cost so far.
					if v := t.e.rows + t.e.total/100; v < cost {
						cost, found, bi, bk = v, t, i, k
					}
				}
			}
		}
		if found == nil {
			return nil
		}
		p.ests[found.node] = found.e
		m := parts[bi].m | parts[bk].m
		var next []part
		for i := range parts {
			if i != bi && i != bk {
				next = append(next, parts[i])
			}
		}
		parts = append(next, part{found, m})
	}
	return parts[0].j
}

// orient puts the smaller side of a join that is not reordered to the right,
// where it is built.
func (p *planner) orient(j *plan.LJoin) {
	if j.Lateral || j.Kind != plan.Inner && j.Kind != plan.Full {
		return
	}
	if p.est(j.Right).rows > p.est(j.Left).rows {
		j.Left, j.Right = j.Right, j.Left
		delete(p.ests, plan.LNode(j))
	}
}
