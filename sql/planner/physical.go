package planner

import (
	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/storage/table"
	"slices"
)

// phys is a physical node and which column each of its outputs is.
type phys struct {
	node plan.Node
	cols []plan.ColID
}

// builder makes a physical plan of a logical one.
type builder struct {
	p      *planner
	nextID int
	// env are the columns of enclosing Applies: they are parameters here.
	env    map[plan.ColID]int
	ctes   map[*plan.LCTE]*plan.CTE
	order  []*plan.CTE
	limits map[*plan.LGet]int64
}

// physical builds the whole fragment; out are the result's columns in order.
func (p *planner) physical(root plan.LNode, out []plan.ColID) (*plan.Fragment, error) {
	b := &builder{p: p, env: map[plan.ColID]int{}, ctes: map[*plan.LCTE]*plan.CTE{}, limits: map[*plan.LGet]int64{}}
	r, err := b.exact(root, out)
	if err != nil {
		return nil, err
	}
	f := &plan.Fragment{Root: r.node, ClientParams: p.params}
	// Planning an InitPlan may add more of them.
	for i := 0; i < len(p.initPlans); i++ {
		d := p.initPlans[i]
		n, err := p.optimize(d.root)
		if err != nil {
			return nil, err
		}
		var want []plan.ColID
		if d.kind != plan.Exists {
			want = []plan.ColID{d.out[0].ID}
		} else {
			for _, c := range n.Cols() {
				want = append(want, c.ID)
			}
		}
		r, err := b.exact(n, want)
		if err != nil {
			return nil, err
		}
		f.InitPlans = append(f.InitPlans, plan.InitPlan{Param: d.param, Kind: d.kind, Plan: r.node, T: d.t})
	}
	f.CTEs = b.order
	f.NumParams = len(p.params) + p.extraParams
	if !p.off("runtime_filter") {
		nodes := []plan.Node{f.Root}
		for _, i := range f.InitPlans {
			nodes = append(nodes, i.Plan)
		}
		for _, c := range f.CTEs {
			nodes = append(nodes, c.Plan)
		}
		for _, n := range nodes {
			runtimeFilters(n)
		}
	}
	return f, nil
}

func (b *builder) base(n plan.LNode, out types.Schema) plan.Base {
	b.nextID++
	e := b.p.est(n)
	return plan.Base{ID: b.nextID, Out: out, E: plan.Estimate{Rows: e.rows, Width: e.width, Startup: e.startup, Total: e.total}}
}

func schemaOf(cols []plan.LCol) types.Schema {
	out := make(types.Schema, len(cols))
	for i, c := range cols {
		out[i] = types.Field{ID: -1, Name: c.Name, Type: c.T}
	}
	return out
}

func idsOf(cols []plan.LCol) []plan.ColID {
	out := make([]plan.ColID, len(cols))
	for i, c := range cols {
		out[i] = c.ID
	}
	return out
}

// slots maps columns to places.
func slots(cols ...[]plan.ColID) map[plan.ColID]int {
	m := map[plan.ColID]int{}
	i := 0
	for _, cs := range cols {
		for _, c := range cs {
			if _, dup := m[c]; !dup {
				m[c] = i
			}
			i++
		}
	}
	return m
}

// expr replaces columns by slots, and columns of enclosing Applies by
// parameters.
func (b *builder) expr(e plan.Expr, at map[plan.ColID]int) (plan.Expr, error) {
	var err error
	out := plan.Replace(e, func(x plan.Expr) (plan.Expr, bool) {
		switch x := x.(type) {
		case *plan.Col:
			if i, ok := at[x.ID]; ok {
				return &plan.Slot{Index: i, T: x.T}, true
			}
			if i, ok := b.env[x.ID]; ok {
				return &plan.Param{Index: i, T: x.T}, true
			}
			if err == nil {
				err = pgerr.New(pgerr.InternalError, "column %s (#%d) is not available where it is used", x.Name, x.ID)
			}
			return x, true
		case *plan.Subquery:
			if err == nil {
				err = b.p.errAt(pgerr.FeatureNotSupported, pos32(x.Pos), "this subquery is not supported here")
			}
			return x, true
		case *plan.SetRef:
			if err == nil {
				err = b.p.errAt(pgerr.FeatureNotSupported, pos32(x.Pos), "set-returning functions are not allowed here")
			}
			return x, true
		}
		return nil, false
	})
	return out, err
}

func (b *builder) exprs(es []plan.Expr, at map[plan.ColID]int) ([]plan.Expr, error) {
	out := make([]plan.Expr, len(es))
	for i, e := range es {
		x, err := b.expr(e, at)
		if err != nil {
			return nil, err
		}
		out[i] = x
	}
	return out, nil
}

func (b *builder) keys(ks []plan.SortKey, at map[plan.ColID]int) ([]plan.SortKey, error) {
	out := make([]plan.SortKey, len(ks))
	for i, k := range ks {
		x, err := b.expr(k.Expr, at)
		if err != nil {
			return nil, err
		}
		out[i] = plan.SortKey{Expr: x, Desc: k.Desc, NullsFirst: k.NullsFirst}
	}
	return out, nil
}

func (b *builder) agg(a *plan.AggCall, at map[plan.ColID]int) (plan.AggCall, error) {
	out := *a
	var err error
	if out.Args, err = b.exprs(a.Args, at); err != nil {
		return out, err
	}
	if out.Direct, err = b.exprs(a.Direct, at); err != nil {
		return out, err
	}
	if out.OrderBy, err = b.keys(a.OrderBy, at); err != nil {
		return out, err
	}
	if a.Filter != nil {
		out.Filter, err = b.expr(a.Filter, at)
	}
	return out, err
}

func (b *builder) sets(calls []plan.LSetCall, at map[plan.ColID]int) ([]plan.SetCall, error) {
	var out []plan.SetCall
	for _, c := range calls {
		args, err := b.exprs(c.Args, at)
		if err != nil {
			return nil, err
		}
		if c.F == nil {
			return nil, b.p.errAt(pgerr.FeatureNotSupported, pos32(c.Pos), "ROWS FROM of functions with and without sets is not supported")
		}
		out = append(out, plan.SetCall{F: c.F, Args: args, T: c.T})
	}
	return out, nil
}

// exact builds n so that its columns are exactly want.
func (b *builder) exact(n plan.LNode, want []plan.ColID) (phys, error) {
	need := colSet{}
	for _, c := range want {
		need[c] = true
	}
	r, err := b.build(n, need)
	if err != nil {
		return r, err
	}
	have := setOf(r.cols)
	for _, c := range want {
		if !have[c] {
			return r, pgerr.New(pgerr.InternalError, "column #%d of the result is not made by the plan", c)
		}
	}
	return b.project(n, r, want), nil
}

// project puts a selection of columns on top unless the columns are right.
func (b *builder) project(n plan.LNode, r phys, want []plan.ColID) phys {
	same := len(r.cols) == len(want)
	for i := 0; same && i < len(want); i++ {
		same = r.cols[i] == want[i]
	}
	if same {
		return r
	}
	at := slots(r.cols)
	in := r.node.Schema()
	pr := &plan.Project{Input: r.node}
	out := make(types.Schema, len(want))
	width := 0.0
	for i, id := range want {
		s := at[id]
		out[i] = in[s]
		width += typeWidth(in[s].Type)
		pr.Exprs = append(pr.Exprs, &plan.Slot{Index: s, T: in[s].Type})
	}
	b.nextID++
	pr.Base = plan.Base{ID: b.nextID, Out: out, E: *r.node.Est()}
	pr.E.Width = width
	return phys{pr, want}
}

// trim drops columns that nothing above needs.
func (b *builder) trim(n plan.LNode, r phys, need colSet) phys {
	var want []plan.ColID
	seen := colSet{}
	for _, c := range r.cols {
		if need[c] && !seen[c] {
			want = append(want, c)
			seen[c] = true
		}
	}
	if len(want) == 0 || len(want) == len(r.cols) {
		return r
	}
	return b.project(n, r, want)
}

// wants is need plus what the node's own expressions use.
func wants(n plan.LNode, need colSet) colSet {
	out := colSet{}
	out.addAll(need)
	n.EachExpr(func(e *plan.Expr) { out.addAll(usedCols(*e)) })
	return out
}

func (b *builder) build(n plan.LNode, need colSet) (phys, error) {
	if err := b.p.enter(); err != nil {
		return phys{}, err
	}
	defer b.p.leave()
	switch n := n.(type) {
	case *plan.LGet:
		return b.scan(n, need)
	case *plan.LValues:
		v := &plan.Values{Base: b.base(n, schemaOf(n.Out))}
		for _, r := range n.Rows {
			row, err := b.exprs(r, nil)
			if err != nil {
				return phys{}, err
			}
			v.Rows = append(v.Rows, row)
		}
		return phys{v, idsOf(n.Out)}, nil
	case *plan.LTableFunc:
		calls, err := b.sets(n.Calls, nil)
		if err != nil {
			return phys{}, err
		}
		return phys{&plan.TableFunc{Base: b.base(n, schemaOf(n.Out)), Alias: n.Alias, Calls: calls, Ordinality: n.Ordinality}, idsOf(n.Out)}, nil
	case *plan.LFilter:
		if len(n.Conds) == 0 {
			return b.build(n.In, need)
		}
		in, err := b.build(n.In, wants(n, need))
		if err != nil {
			return phys{}, err
		}
		cond, err := b.expr(conj(n.Conds), slots(in.cols))
		if err != nil {
			return phys{}, err
		}
		r := phys{&plan.Filter{Base: b.base(n, in.node.Schema()), Input: in.node, Cond: cond}, in.cols}
		return b.trim(n, r, need), nil
	case *plan.LProject:
		in, err := b.build(n.In, wants(n, colSet{}))
		if err != nil {
			return phys{}, err
		}
		es, err := b.exprs(n.Exprs, slots(in.cols))
		if err != nil {
			return phys{}, err
		}
		if low, ok := in.node.(*plan.Project); ok && onlySlots(low.Exprs) {
			// What dropped columns for this projection is part of it.
			for i := range es {
				es[i] = plan.Replace(es[i], func(x plan.Expr) (plan.Expr, bool) {
					if s, ok := x.(*plan.Slot); ok {
						return &plan.Slot{Index: low.Exprs[s.Index].(*plan.Slot).Index, T: s.T}, true
					}
					return nil, false
				})
			}
			in.node = low.Input
		}
		return phys{&plan.Project{Base: b.base(n, schemaOf(n.Out)), Input: in.node, Exprs: es}, idsOf(n.Out)}, nil
	case *plan.LProjectSet:
		return b.projectSet(n, need)
	case *plan.LJoin:
		return b.join(n, need)
	case *plan.LAggregate:
		return b.aggregate(n)
	case *plan.LSort:
		in, err := b.build(n.In, wants(n, need))
		if err != nil {
			return phys{}, err
		}
		ks, err := b.keys(n.Keys, slots(in.cols))
		if err != nil {
			return phys{}, err
		}
		return phys{&plan.Sort{Base: b.base(n, in.node.Schema()), Input: in.node, Keys: ks, Limit: n.Top}, in.cols}, nil
	case *plan.LLimit:
		return b.limit(n, need)
	case *plan.LDistinct:
		return b.distinct(n, need)
	case *plan.LSetOp:
		l, err := b.exact(n.Left, idsOf(n.Left.Cols()))
		if err != nil {
			return phys{}, err
		}
		r, err := b.exact(n.Right, idsOf(n.Right.Cols()))
		if err != nil {
			return phys{}, err
		}
		return phys{&plan.SetOp{Base: b.base(n, schemaOf(n.Out)), Kind: n.Kind, All: n.All, Left: l.node, Right: r.node}, idsOf(n.Out)}, nil
	case *plan.LUnion:
		a := &plan.Append{Base: b.base(n, schemaOf(n.Out))}
		for _, in := range n.Ins {
			r, err := b.exact(in, idsOf(in.Cols()))
			if err != nil {
				return phys{}, err
			}
			a.Ins = append(a.Ins, r.node)
		}
		return phys{a, idsOf(n.Out)}, nil
	case *plan.LWindow:
		return b.window(n, need)
	case *plan.LCTEScan:
		c, err := b.cte(n.CTE)
		if err != nil {
			return phys{}, err
		}
		return b.trim(n, phys{&plan.CTEScan{Base: b.base(n, schemaOf(n.Out)), CTE: c, Alias: n.Alias}, idsOf(n.Out)}, need), nil
	case *plan.LRecursive:
		i, err := b.exact(n.Init, idsOf(n.Init.Cols()))
		if err != nil {
			return phys{}, err
		}
		s, err := b.exact(n.Step, idsOf(n.Step.Cols()))
		if err != nil {
			return phys{}, err
		}
		return phys{&plan.RecursiveUnion{Base: b.base(n, schemaOf(n.Out)), ID: n.ID, Init: i.node, Step: s.node, Distinct: n.Distinct}, idsOf(n.Out)}, nil
	case *plan.LWorkScan:
		return phys{&plan.WorkScan{Base: b.base(n, schemaOf(n.Out)), ID: n.ID, Name: n.Name, Alias: n.Alias}, idsOf(n.Out)}, nil
	}
	return phys{}, pgerr.New(pgerr.InternalError, "no physical form of %T", n)
}

func onlySlots(es []plan.Expr) bool {
	for _, e := range es {
		if _, ok := e.(*plan.Slot); !ok {
			return false
		}
	}
	return true
}

// scanSpec is what storage is asked for, without the columns' order.
func (p *planner) scanSpec(g *plan.LGet) table.Scan {
	s := table.Scan{At: g.Opts.At, Columns: append([]int{}, g.Att...), Limit: -1, SkipLevel0: !g.Opts.FreshReads, Without: p.without(), Options: g.Opts.Dynamic}
	if t, ok := g.Rel.(catalog.TableInfo); ok {
		s.At = t.At()
	} else if t, ok := g.Rel.(catalog.Scanned); ok {
		s.At = t.At()
	}
	return s
}

func (b *builder) scan(g *plan.LGet, need colSet) (phys, error) {
	cols := idsOf(g.Out)
	s := &plan.Scan{Base: b.base(g, schemaOf(g.Out)), Rel: g.Rel, Alias: g.Alias, Spec: b.p.scanSpec(g)}
	if g.Nested != nil {
		s.Spec.Nested = make([][]table.NestedPath, len(g.Out))
		for i := range g.Out {
			for _, path := range g.Nested[i] {
				s.Spec.Nested[i] = append(s.Spec.Nested[i], table.NestedPath(path))
			}
		}
	}
	if l, ok := b.limits[g]; ok && (len(g.Conds) == 0 || b.counts(g)) {
		s.Spec.Limit = l
	}
	s.Spec.Exact = len(g.Conds) == 0
	if len(g.Conds) > 0 {
		var err error
		if s.Filter, err = b.expr(conj(g.Conds), slots(cols)); err != nil {
			return phys{}, err
		}
		if !b.p.off("storage_filter") {
			b.storageFilter(g, s)
			b.partitionFilter(g, s)
		}
		if !s.Spec.Exact && s.ExactFilter == nil {
			s.Spec.Limit = -1
		}
	}
	if l := b.lookup(g, s); l != nil {
		return b.trim(g, phys{l, cols}, need), nil
	}
	return b.trim(g, phys{s, cols}, need), nil
}

// storageFilter sets what of the scan's condition storage may use.
func (b *builder) storageFilter(g *plan.LGet, s *plan.Scan) {
	conds := make([]plan.Expr, len(g.Conds))
	var params []int
	use := func(k int) {
		if !slices.Contains(params, k) {
			params = append(params, k)
		}
	}
	for i, c := range g.Conds {
		// Columns of enclosing Applies are parameters.
		conds[i] = plan.Replace(c, func(x plan.Expr) (plan.Expr, bool) {
			switch x := x.(type) {
			case *plan.Col:
				if k, ok := b.env[x.ID]; ok {
					use(k)
					return &plan.Param{Index: k, T: x.T}, true
				}
			case *plan.Param:
				use(x.Index)
			}
			return nil, false
		})
	}
	m := newPredMaker(b.p, g)
	s.Spec.Filter = m.conj(conds)
	s.Spec.Exact = !m.lossy
	if params == nil {
		return
	}
	s.Params, s.FilterParams = true, params
	s.Spec.Exact = false
	s.ExactFilter = func(vals []types.Datum) bool {
		m := newPredMaker(b.p, g)
		bound := make([]plan.Expr, len(conds))
		for i, c := range conds {
			bound[i] = m.bind(c, vals)
		}
		m.conj(bound)
		return !m.lossy
	}
	s.StorageFilter = func(vals []types.Datum) (any, error) {
		bound := make([]plan.Expr, len(conds))
		for i, c := range conds {
			bound[i] = m.bind(c, vals)
		}
		if f := m.conj(bound); f != nil {
			return f, nil
		}
		return predicate.Node(nil), nil
	}
}

func (b *builder) projectSet(n *plan.LProjectSet, need colSet) (phys, error) {
	in, err := b.build(n.In, wants(n, need))
	if err != nil {
		return phys{}, err
	}
	sets, err := b.sets(n.Sets, slots(in.cols))
	if err != nil {
		return phys{}, err
	}
	ps := &plan.ProjectSet{Input: in.node, Sets: sets}
	var out types.Schema
	var cols []plan.ColID
	sch := in.node.Schema()
	for i, c := range in.cols {
		if need[c] {
			ps.Exprs = append(ps.Exprs, &plan.Slot{Index: i, T: sch[i].Type})
			out, cols = append(out, sch[i]), append(cols, c)
		}
	}
	at := len(in.cols)
	for _, set := range n.SetCols {
		for _, c := range set {
			ps.Exprs = append(ps.Exprs, &plan.Slot{Index: at, T: c.T})
			out, cols = append(out, types.Field{ID: -1, Name: c.Name, Type: c.T}), append(cols, c.ID)
			at++
		}
	}
	ps.Base = b.base(n, out)
	return phys{ps, cols}, nil
}

func (b *builder) aggregate(n *plan.LAggregate) (phys, error) {
	in, err := b.build(n.In, wants(n, colSet{}))
	if err != nil {
		return phys{}, err
	}
	at := slots(in.cols)
	out := n.Cols()
	a := &plan.Aggregate{Base: b.base(n, schemaOf(out)), Input: in.node, Sets: n.Sets, Plain: n.Plain}
	if a.Groups, err = b.exprs(n.Groups, at); err != nil {
		return phys{}, err
	}
	for i := range n.Aggs {
		c, err := b.agg(&n.Aggs[i], at)
		if err != nil {
			return phys{}, err
		}
		a.Aggs = append(a.Aggs, c)
	}
	b.extremes(a)
	return phys{a, idsOf(out)}, nil
}

func (b *builder) limit(n *plan.LLimit, need colSet) (phys, error) {
	in := n.In
	for {
		pr, ok := in.(*plan.LProject)
		if !ok {
			break
		}
		in = pr.In
	}
	if g, ok := in.(*plan.LGet); ok && !n.WithTies {
		if w, ok := limitRows(n); ok {
			b.limits[g] = w
		}
	}
	r, err := b.build(n.In, wants(n, need))
	if err != nil {
		return phys{}, err
	}
	l := &plan.Limit{Base: b.base(n, r.node.Schema()), Input: r.node, WithTies: n.WithTies}
	if n.Offset != nil {
		if l.Offset, err = b.expr(n.Offset, nil); err != nil {
			return phys{}, err
		}
	}
	if n.Count != nil {
		if l.Count, err = b.expr(n.Count, nil); err != nil {
			return phys{}, err
		}
	}
	if n.WithTies {
		if l.Keys, err = b.keys(n.Keys, slots(r.cols)); err != nil {
			return phys{}, err
		}
	}
	return phys{l, r.cols}, nil
}

func (b *builder) distinct(n *plan.LDistinct, need colSet) (phys, error) {
	if n.On == nil {
		cols := n.In.Cols()
		in, err := b.exact(n.In, idsOf(cols))
		if err != nil {
			return phys{}, err
		}
		a := &plan.Aggregate{Base: b.base(n, schemaOf(cols)), Input: in.node}
		for i, c := range cols {
			a.Groups = append(a.Groups, &plan.Slot{Index: i, T: c.T})
		}
		b.extremes(a)
		return phys{a, in.cols}, nil
	}
	in, err := b.build(n.In, wants(n, need))
	if err != nil {
		return phys{}, err
	}
	d := &plan.DistinctOn{Base: b.base(n, in.node.Schema()), Input: in.node}
	if d.Keys, err = b.exprs(n.On, slots(in.cols)); err != nil {
		return phys{}, err
	}
	return phys{d, in.cols}, nil
}

func (b *builder) window(n *plan.LWindow, need colSet) (phys, error) {
	in, err := b.build(n.In, wants(n, need))
	if err != nil {
		return phys{}, err
	}
	at := slots(in.cols)
	out := append(append(types.Schema{}, in.node.Schema()...), schemaOf(n.CallCols)...)
	w := &plan.Window{Base: b.base(n, out), Input: in.node}
	if w.PartitionBy, err = b.exprs(n.PartitionBy, at); err != nil {
		return phys{}, err
	}
	if w.OrderBy, err = b.keys(n.OrderBy, at); err != nil {
		return phys{}, err
	}
	for i := range n.Calls {
		c := n.Calls[i]
		if c.Agg != nil {
			a, err := b.agg(c.Agg, at)
			if err != nil {
				return phys{}, err
			}
			c.Agg = &a
		}
		if c.Args, err = b.exprs(c.Args, at); err != nil {
			return phys{}, err
		}
		if c.Frame.StartOffset != nil {
			if c.Frame.StartOffset, err = b.expr(c.Frame.StartOffset, at); err != nil {
				return phys{}, err
			}
		}
		if c.Frame.EndOffset != nil {
			if c.Frame.EndOffset, err = b.expr(c.Frame.EndOffset, at); err != nil {
				return phys{}, err
			}
		}
		w.Calls = append(w.Calls, c)
	}
	cols := append(append([]plan.ColID{}, in.cols...), idsOf(n.CallCols)...)
	return b.trim(n, phys{w, cols}, need), nil
}

// cte plans a common table expression once.
func (b *builder) cte(c *plan.LCTE) (*plan.CTE, error) {
	if done, ok := b.ctes[c]; ok {
		return done, nil
	}
	out := &plan.CTE{ID: c.ID, Name: c.Name}
	b.ctes[c] = out
	cols := idsOf(c.Plan.Cols())
	n, err := b.p.optimize(c.Plan)
	if err != nil {
		return nil, err
	}
	c.Plan = n
	delete(b.p.ests, n)
	env := b.env
	b.env = map[plan.ColID]int{}
	r, err := b.exact(n, cols)
	b.env = env
	if err != nil {
		return nil, err
	}
	out.Plan = r.node
	b.order = append(b.order, out)
	return out, nil
}
