package planner

import (
	"slices"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/aggregate"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// decorrelate removes every Subquery from the plan's expressions:
//
//	EXISTS, IN, op ANY/ALL as a whole condition   semi or anti join
//	the same inside a larger expression           mark join
//	a scalar subquery                             left join with the subquery,
//	                                              grouped by its correlation keys
//	one without outer columns                     InitPlan, computed once
//
// Correlated conditions are pulled up out of the subquery (see puller). Where
// they cannot be, the join stays lateral and becomes an Apply, which runs the
// subquery once per row. LATERAL items of FROM go the same way.
func (p *planner) decorrelate(n plan.LNode) (plan.LNode, error) {
	return p.rewriteUp(n, func(n plan.LNode) (plan.LNode, error) {
		// Subqueries of this node's expressions first, from the inside.
		var err error
		n.EachExpr(func(e *plan.Expr) {
			plan.Walk(*e, func(x plan.Expr) bool {
				if s, ok := x.(*plan.Subquery); ok && err == nil {
					if sub := s.Plan.(*subplan); !sub.done {
						sub.done = true
						sub.root, err = p.decorrelate(sub.root)
					}
				}
				return err == nil
			})
		})
		if err != nil {
			return nil, err
		}
		switch n := n.(type) {
		case *plan.LFilter:
			return p.unnestFilter(n)
		case *plan.LJoin:
			return p.unnestJoin(n)
		case *plan.LValues:
			return p.unnestValues(n)
		case *plan.LTableFunc:
			return p.unnestTableFunc(n)
		case *plan.LLimit:
			return n, p.onlyInitPlans(n)
		}
		kids := n.Kids()
		if len(kids) != 1 {
			return n, p.onlyInitPlans(n)
		}
		n.EachExpr(func(e *plan.Expr) {
			if err == nil {
				*e, *kids[0], err = p.unnestValue(*e, *kids[0])
			}
		})
		return n, err
	})
}

// onlyInitPlans is for nodes with no row that a subquery could depend on.
func (p *planner) onlyInitPlans(n plan.LNode) error {
	var err error
	n.EachExpr(func(e *plan.Expr) {
		if err != nil || !hasSubquery(*e) {
			return
		}
		var dummy plan.LNode = &plan.LValues{Rows: [][]plan.Expr{{}}}
		before := dummy
		*e, dummy, err = p.unnestValue(*e, dummy)
		if err == nil && dummy != before {
			err = pgerr.New(pgerr.FeatureNotSupported, "a correlated subquery is not supported here")
		}
	})
	return err
}

func (p *planner) unnestFilter(f *plan.LFilter) (plan.LNode, error) {
	in := f.In
	var keep, later []plan.Expr
	for _, c := range f.Conds {
		if hasSubquery(c) {
			later = append(later, c)
		} else {
			keep = append(keep, c)
		}
	}
	if len(later) == 0 {
		return f, nil
	}
	for _, c := range later {
		j, ok, err := p.unnestCond(c, in)
		if err != nil {
			return nil, err
		}
		if ok {
			in = j
			continue
		}
		x, next, err := p.unnestValue(c, in)
		if err != nil {
			return nil, err
		}
		in = next
		keep = append(keep, conjuncts(x)...)
	}
	if len(keep) == 0 {
		return in, nil
	}
	return &plan.LFilter{In: in, Conds: keep}, nil
}

// unnestCond turns a whole condition into a semi or anti join with in.
func (p *planner) unnestCond(c plan.Expr, in plan.LNode) (plan.LNode, bool, error) {
	not := false
	for {
		n, ok := c.(*plan.Not)
		if !ok {
			break
		}
		not = !not
		c = n.Arg
	}
	s, ok := c.(*plan.Subquery)
	if !ok || s.Kind == plan.Scalar || s.Kind == plan.ArraySub {
		return nil, false, nil
	}
	outer := colsOf(in)
	root := s.Plan.(*subplan).root
	if s.Kind == plan.Exists {
		free := freeCols(root)
		if len(free) == 0 {
			return nil, false, nil // computed once
		}
		root = existsRoot(root)
		r := p.pull(root, outer)
		kind := plan.Semi
		if not {
			kind = plan.Anti
		}
		if r.ok && !r.plain {
			return &plan.LJoin{Kind: kind, Left: in, Right: r.node, Conds: r.conds, Pos: s.Pos}, true, nil
		}
		return &plan.LJoin{Kind: kind, Left: in, Right: root, Lateral: true, Pos: s.Pos}, true, nil
	}
	cond := s.Left[0]
	r := p.pull(root, outer)
	kind := plan.Semi
	pos := boolExpr(cond)
	switch {
	case !s.All && !not:
	case !s.All && not:
		// NOT IN: no row for which the comparison is true or NULL.
		kind, pos = plan.Anti, &plan.IsBool{Arg: cond, Test: plan.TestFalse, Not: true}
	case s.All && !not:
		kind, pos = plan.Anti, &plan.IsBool{Arg: cond, Test: plan.TestTrue, Not: true}
	default:
		pos = &plan.IsBool{Arg: cond, Test: plan.TestFalse}
	}
	if !r.ok || r.plain && kind == plan.Anti {
		return &plan.LJoin{Kind: kind, Left: in, Right: root, Conds: []plan.Expr{pos}, Lateral: true, Pos: s.Pos}, true, nil
	}
	j := &plan.LJoin{Kind: kind, Left: in, Right: r.node, Pos: s.Pos}
	if kind == plan.Anti && !s.All {
		eqs, allEq := equalities(cond)
		notNull := allEq
		for _, e := range eqs {
			notNull = notNull && argsNotNull(e.Args)
		}
		switch {
		case notNull:
			pos = cond
		case allEq && len(eqs) == 1 && len(r.conds) == 0 && separable(eqs[0], outer, colsOf(r.node)):
			j.Kind, pos = plan.NullAnti, cond
		}
	}
	j.Conds = append(conjuncts(pos), r.conds...)
	return j, true, nil
}

func boolExpr(e plan.Expr) plan.Expr { return e }

// equalities returns the conjuncts of e that are = calls; all says that there
// is nothing else.
func equalities(e plan.Expr) (eqs []*plan.Call, all bool) {
	all = true
	for _, c := range conjuncts(e) {
		call, ok := c.(*plan.Call)
		if !ok || call.F == nil || call.F.Name != "=" || len(call.Args) != 2 {
			all = false
			continue
		}
		eqs = append(eqs, call)
	}
	return eqs, all
}

// separable reports whether the sides of an equality belong to l and r, in
// either order.
func separable(c *plan.Call, l, r colSet) bool {
	a, b := usedCols(c.Args[0]), usedCols(c.Args[1])
	return len(a) > 0 && len(b) > 0 && (l.hasAll(a) && r.hasAll(b) || r.hasAll(a) && l.hasAll(b))
}

// existsRoot strips what does not change whether there is a row.
func existsRoot(n plan.LNode) plan.LNode {
	for {
		switch x := n.(type) {
		case *plan.LProject:
			n = x.In
		case *plan.LSort:
			n = x.In
		case *plan.LDistinct:
			n = x.In
		case *plan.LLimit:
			if x.Offset == nil {
				if c, ok := x.Count.(*plan.Const); ok {
					if k, ok := c.Value.(int64); ok && k > 0 {
						n = x.In
						continue
					}
				}
			}
			return n
		default:
			return n
		}
	}
}

// unnestValue replaces the subqueries in e by columns or parameters, joining
// what is needed to in.
func (p *planner) unnestValue(e plan.Expr, in plan.LNode) (plan.Expr, plan.LNode, error) {
	if !hasSubquery(e) {
		return e, in, nil
	}
	var err error
	out := plan.Replace(e, func(x plan.Expr) (plan.Expr, bool) {
		s, ok := x.(*plan.Subquery)
		if !ok || err != nil {
			return x, err != nil
		}
		// Subqueries among the left side of IN first.
		for i := range s.Left {
			if err == nil {
				s.Left[i], in, err = p.unnestValue(s.Left[i], in)
			}
		}
		if err != nil {
			return x, true
		}
		// An operand that is used several times (CASE x WHEN, BETWEEN) is one
		// subquery.
		sub := s.Plan.(*subplan)
		if sub.value == nil {
			sub.value, in, err = p.subqueryValue(s, in)
		}
		return sub.value, true
	})
	return out, in, err
}

func (p *planner) subqueryValue(s *plan.Subquery, in plan.LNode) (plan.Expr, plan.LNode, error) {
	sub := s.Plan.(*subplan)
	free := freeCols(sub.root)
	outer := colsOf(in)
	switch s.Kind {
	case plan.ArraySub:
		if len(free) > 0 {
			root, col, ok := p.arrayAsScalar(sub, s)
			if !ok {
				return nil, nil, p.errAt(pgerr.FeatureNotSupported, pos32(s.Pos), "a correlated ARRAY subquery is not supported")
			}
			return p.subqueryValue(&plan.Subquery{Kind: plan.Scalar, Plan: &subplan{root: root, out: []plan.LCol{col}, done: true}, T: s.T, Pos: s.Pos}, in)
		}
		return p.initPlan(s, sub.root), in, nil
	case plan.Exists:
		if len(free) == 0 {
			return p.initPlan(s, sub.root), in, nil
		}
		mark := p.newCol("exists", boolT, colInfo{kind: colOther})
		root := existsRoot(sub.root)
		j := &plan.LJoin{Kind: plan.Mark, Left: in, Right: root, MarkCol: mark, Exists: true, Lateral: true, Pos: s.Pos}
		if r := p.pull(root, outer); r.ok && !r.plain {
			j.Right, j.Conds, j.Lateral = r.node, r.conds, false
		}
		return &plan.IsBool{Arg: mark.Ref(), Test: plan.TestTrue}, j, nil
	case plan.AnySub:
		cond := s.Left[0]
		if s.All {
			cond = p.foldNot(&plan.Not{Arg: cond})
		}
		mark := p.newCol("any", boolT, colInfo{kind: colOther})
		j := &plan.LJoin{Kind: plan.Mark, Left: in, Right: sub.root, MarkCol: mark, Conds: []plan.Expr{cond}, Pos: s.Pos}
		j.Lateral = len(free) > 0
		var out plan.Expr = mark.Ref()
		if s.All {
			out = &plan.Not{Arg: out}
		}
		return out, j, nil
	}
	if len(free) == 0 {
		return p.initPlan(s, sub.root), in, nil
	}
	if !free2(free, outer) {
		// Correlated, but not with this level: still one value per outer row.
		j := &plan.LJoin{Kind: plan.Left, Left: in, Right: sub.root, Single: true, Pos: s.Pos}
		return nullCol(sub.out[0]), j, nil
	}
	r := p.pull(sub.root, outer)
	if !r.ok {
		j := &plan.LJoin{Kind: plan.Left, Left: in, Right: sub.root, Lateral: true, Single: !atMostOne(sub.root), Pos: s.Pos}
		return nullCol(sub.out[0]), j, nil
	}
	j := &plan.LJoin{Kind: plan.Left, Left: in, Right: r.node, Conds: r.conds, Single: !r.plain, Pos: s.Pos}
	col := sub.out[0]
	var out plan.Expr = nullCol(col)
	if d, ok := r.defaults[col.ID]; ok && !isNullConst(d) {
		// No group for the key: what the aggregate gives for no rows.
		out = &plan.Case{Whens: []plan.When{{Cond: &plan.IsNull{Arg: nullCol(r.marker)}, Result: d}}, Else: out, T: s.T}
	}
	return out, j, nil
}

// free2 reports whether a subquery's free columns touch outer.
func free2(free, outer colSet) bool { return outer.hasAny(free) }

func pos32(p int32) ast.Pos { return ast.Pos(p) }

// nullCol refers to a column across the nullable side of a join.
func nullCol(c plan.LCol) *plan.Col {
	r := c.Ref()
	r.T.NotNull = false
	return r
}

// atMostOne reports whether a plan yields no more than one row.
func atMostOne(n plan.LNode) bool {
	switch n := n.(type) {
	case *plan.LProject:
		return atMostOne(n.In)
	case *plan.LFilter:
		return atMostOne(n.In)
	case *plan.LAggregate:
		return n.Plain
	case *plan.LLimit:
		if c, ok := n.Count.(*plan.Const); ok {
			if k, ok := c.Value.(int64); ok && k <= 1 {
				return true
			}
		}
		return atMostOne(n.In)
	case *plan.LValues:
		return len(n.Rows) <= 1
	}
	return false
}

// initPlanDef is a subquery computed once, before its plan is physical.
type initPlanDef struct {
	param int
	kind  plan.SubqueryKind
	root  plan.LNode
	out   []plan.LCol
	t     types.Type
}

// initPlan makes a parameter of an uncorrelated subquery.
func (p *planner) initPlan(s *plan.Subquery, root plan.LNode) plan.Expr {
	i := p.newParam()
	p.initPlans = append(p.initPlans, &initPlanDef{param: i, kind: s.Kind, root: root, out: s.Plan.(*subplan).out, t: s.T})
	t := s.T
	t.NotNull = s.Kind == plan.Exists
	return &plan.Param{Index: i, T: t}
}

// newParam reserves an executor parameter; client parameters come first.
func (p *planner) newParam() int {
	p.extraParams++
	return len(p.params) + p.extraParams - 1
}

// arrayAsScalar turns ARRAY(query) into a scalar subquery over array_agg.
func (p *planner) arrayAsScalar(sub *subplan, s *plan.Subquery) (plan.LNode, plan.LCol, bool) {
	var def *aggregate.Def
	elem := sub.out[0].T
	for _, d := range aggregate.Lookup("array_agg") {
		if len(d.Args) == 1 && (d.Args[0].Kind != types.AnyArray) {
			def = d
		}
	}
	if def == nil {
		return nil, plan.LCol{}, false
	}
	call := plan.AggCall{Def: def, Args: []plan.Expr{sub.out[0].Ref()}, T: types.ArrayOf(elem.WithNotNull(false))}
	in := sub.root
	if pr, ok := in.(*plan.LProject); ok { // the projection that drops sort keys
		if _, ok := pr.In.(*plan.LSort); ok {
			in = pr.In
		}
	}
	if st, ok := in.(*plan.LSort); ok {
		call.OrderBy = slices.Clone(st.Keys)
		in = st.In
	}
	agg := p.newCol("array", call.T, colInfo{kind: colAgg})
	a := &plan.LAggregate{In: in, Plain: true, Aggs: []plan.AggCall{call}, AggCols: []plan.LCol{agg}}
	col := p.newCol("array", call.T, colInfo{kind: colOther})
	e := &plan.Coalesce{Args: []plan.Expr{agg.Ref(), &plan.MakeArray{T: call.T}}, T: call.T}
	return &plan.LProject{In: a, Exprs: []plan.Expr{e}, Out: []plan.LCol{col}}, col, true
}

// unnestJoin handles subqueries in ON, and lateral joins.
func (p *planner) unnestJoin(j *plan.LJoin) (plan.LNode, error) {
	var plainConds, subs []plan.Expr
	for _, c := range j.Conds {
		if hasSubquery(c) {
			subs = append(subs, c)
		} else {
			plainConds = append(plainConds, c)
		}
	}
	if len(subs) > 0 {
		switch j.Kind {
		case plan.Inner:
			j.Conds = plainConds
			n, err := p.unnestJoin(j)
			if err != nil {
				return nil, err
			}
			return p.unnestFilter(&plan.LFilter{In: n, Conds: subs})
		default:
			j.Conds = plainConds
			l, r := colsOf(j.Left), colsOf(j.Right)
			for _, c := range subs {
				used := usedCols(c)
				var err error
				switch {
				case !l.hasAny(used) && j.Kind != plan.Full:
					// Of the right side only: computed there.
					if j.Right, err = p.unnestFilter(&plan.LFilter{In: j.Right, Conds: []plan.Expr{c}}); err != nil {
						return nil, err
					}
				case !r.hasAny(used):
					var x plan.Expr
					if x, j.Left, err = p.unnestValue(c, j.Left); err != nil {
						return nil, err
					}
					j.Conds = append(j.Conds, conjuncts(x)...)
				default:
					x, ok, err := p.splitSubs(c, j, l, r)
					if err != nil {
						return nil, err
					}
					if !ok && j.Kind != plan.Full {
						// Decided inside, once per row of the left side.
						if j.Right, err = p.unnestFilter(&plan.LFilter{In: j.Right, Conds: []plan.Expr{x}}); err != nil {
							return nil, err
						}
						j.Lateral = true
						continue
					}
					if !ok {
						return nil, p.errAt(pgerr.FeatureNotSupported, pos32(j.Pos), "a subquery over both sides of an outer join's condition is not supported")
					}
					j.Conds = append(j.Conds, conjuncts(x)...)
				}
			}
		}
	}
	if j.Lateral {
		free := freeCols(j.Right)
		outer := colsOf(j.Left)
		switch {
		case !outer.hasAny(free):
			j.Lateral = false
		case j.Kind == plan.Inner || j.Kind == plan.Left:
			if r := p.pull(j.Right, outer); r.ok && !r.plain && (j.Kind == plan.Inner || len(r.conds) == 0 || true) {
				j.Right, j.Lateral = r.node, false
				j.Conds = append(j.Conds, r.conds...)
			}
		}
	}
	return j, nil
}

// splitSubs computes each subquery of c on the side whose columns it uses.
func (p *planner) splitSubs(c plan.Expr, j *plan.LJoin, l, r colSet) (plan.Expr, bool, error) {
	ok := true
	var err error
	out := plan.Replace(c, func(x plan.Expr) (plan.Expr, bool) {
		s, is := x.(*plan.Subquery)
		if !is || err != nil {
			return x, err != nil
		}
		used := usedCols(s)
		var e plan.Expr
		switch {
		case !r.hasAny(used):
			e, j.Left, err = p.subqueryValue(s, j.Left)
		case !l.hasAny(used):
			e, j.Right, err = p.subqueryValue(s, j.Right)
		default:
			ok = false
			return x, true
		}
		return e, true
	})
	return out, ok, err
}

// unnestTableFunc computes arguments that hold subqueries before the call.
func (p *planner) unnestTableFunc(t *plan.LTableFunc) (plan.LNode, error) {
	needs := false
	t.EachExpr(func(e *plan.Expr) { needs = needs || hasSubquery(*e) })
	if !needs {
		return t, nil
	}
	var in plan.LNode = &plan.LValues{Rows: [][]plan.Expr{{}}}
	pr := &plan.LProject{}
	var err error
	t.EachExpr(func(e *plan.Expr) {
		if err != nil || !hasSubquery(*e) {
			return
		}
		var x plan.Expr
		if x, in, err = p.unnestValue(*e, in); err != nil {
			return
		}
		col := p.newCol("arg", x.Type(), colInfo{kind: colOther})
		pr.Exprs, pr.Out = append(pr.Exprs, x), append(pr.Out, col)
		*e = col.Ref()
	})
	if err != nil {
		return nil, err
	}
	pr.In = in
	return &plan.LJoin{Kind: plan.Inner, Left: pr, Right: t, Lateral: true, Pos: -1}, nil
}

// unnestValues turns rows that hold correlated subqueries into projections.
func (p *planner) unnestValues(v *plan.LValues) (plan.LNode, error) {
	needs := false
	v.EachExpr(func(e *plan.Expr) { needs = needs || hasSubquery(*e) })
	if !needs {
		return v, nil
	}
	u := &plan.LUnion{Out: v.Out}
	for _, row := range v.Rows {
		var in plan.LNode = &plan.LValues{Rows: [][]plan.Expr{{}}}
		pr := &plan.LProject{}
		for i := range row {
			x, next, err := p.unnestValue(row[i], in)
			if err != nil {
				return nil, err
			}
			in = next
			out := v.Out[i]
			if len(v.Rows) > 1 {
				out = p.newCol(out.Name, out.T, colInfo{kind: colOther})
			}
			pr.Exprs, pr.Out = append(pr.Exprs, x), append(pr.Out, out)
		}
		pr.In = in
		u.Ins = append(u.Ins, pr)
	}
	if len(u.Ins) == 1 {
		return u.Ins[0], nil
	}
	return u, nil
}
