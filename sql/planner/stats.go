package planner

import (
	"math"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// Costs in PostgreSQL's unit, a sequential page read.
const (
	cpuTuple    = 0.01
	cpuOperator = 0.0025
	pageBytes   = 8192.0

	defaultRows     = 1000.0
	defaultDistinct = 200.0
	eqSel           = 0.005
	ineqSel         = 1.0 / 3
	rangeSel        = 0.005
	matchSel        = 0.05
	maxRowsEst      = 1e15
)

// est is what is believed of a node's output.
type est struct {
	rows, width    float64
	startup, total float64
	cols           map[plan.ColID]*colStat
}

// colStat describes the values of one column.
type colStat struct {
	distinct, nullFrac float64
	// domain is how many distinct values there are to be met: distinct without what
	// conditions on other columns left of them. Two columns that are joined have it in
	// common, so a row's chance of a partner is the share of the domain that is left on
	// the other side. 0 = distinct.
	domain  float64
	lo, hi  float64 // numeric image of min and max
	ranged  bool
	counted bool // distinct was counted by ANALYZE
	width   float64
	// scattered columns have no usable range (text).
}

func (c *colStat) ofDomain() float64 { return math.Max(c.domain, c.distinct) }

func clampRows(r float64) float64 {
	if !(r >= 1) { // NaN too
		return 1
	}
	return math.Min(r, maxRowsEst)
}

// typeWidth guesses the bytes of a value, as get_typavgwidth.
func typeWidth(t types.Type) float64 {
	switch t.Kind {
	case types.Bool:
		return 1
	case types.TinyInt, types.Int2:
		return 2
	case types.Int4, types.Float4, types.Date, types.OID:
		return 4
	case types.Int8, types.Float8, types.Time, types.Timestamp, types.TimestampTZ:
		return 8
	case types.Interval, types.UUID:
		return 16
	case types.Numeric:
		return 16
	case types.Varchar, types.BpChar:
		if t.Mod > 4 {
			return math.Min(float64(t.Mod-4)/2+1, 32)
		}
	case types.Name:
		return 64
	}
	return 32
}

// num maps a value to the line, for ranges.
func num(v types.Datum) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, !math.IsNaN(v) && !math.IsInf(v, 0)
	case *numeric.Dec:
		f := v.Float64()
		return f, v.Form == numeric.Finite && !math.IsInf(f, 0)
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// Complainer is a Resolver that hears of statistics which planning does without.
type Complainer interface {
	Complain(rel catalog.Relation, err error)
}

// relStats asks a relation for its statistics once.
func (p *planner) relStats(g *plan.LGet) *table.Stats {
	if s, ok := p.statsOf[g.Rel]; ok {
		return s
	}
	s, err := g.Rel.Stats(p.ctx, p.scanSpec(g))
	if err != nil {
		s = nil // estimates only: planning goes on without
	}
	if s != nil && s.Problem != nil {
		if r, ok := p.o.Resolver.(Complainer); ok {
			r.Complain(g.Rel, s.Problem)
		}
	}
	if p.statsOf == nil {
		p.statsOf = map[catalog.Relation]*table.Stats{}
	}
	p.statsOf[g.Rel] = s
	return s
}

// est estimates a node; results are kept per node.
func (p *planner) est(n plan.LNode) *est {
	if e, ok := p.ests[n]; ok {
		return e
	}
	e := p.estimate(n)
	e.rows = clampRows(e.rows)
	if p.ests == nil {
		p.ests = map[plan.LNode]*est{}
	}
	p.ests[n] = e
	return e
}

func (p *planner) colsWidth(n plan.LNode, cols map[plan.ColID]*colStat) float64 {
	w := 0.0
	for _, c := range n.Cols() {
		if s, ok := cols[c.ID]; ok && s.width > 0 {
			w += s.width
		} else {
			w += typeWidth(c.T)
		}
	}
	return w
}

func (p *planner) estimate(n plan.LNode) *est {
	switch n := n.(type) {
	case *plan.LGet:
		return p.estGet(n)
	case *plan.LValues:
		return &est{rows: float64(len(n.Rows)), width: p.colsWidth(n, nil), total: float64(len(n.Rows)) * cpuTuple}
	case *plan.LTableFunc:
		rows := 1000.0
		for _, c := range n.Calls {
			if r, ok := p.seriesRows(c); ok {
				rows = r
			} else if c.F != nil && c.F.Name == "unnest" {
				rows = 10
			}
		}
		return &est{rows: rows, width: p.colsWidth(n, nil), total: rows * cpuTuple}
	case *plan.LFilter:
		in := p.est(n.In)
		s := p.selectivity(n.Conds, in)
		e := &est{rows: in.rows * s, width: in.width, startup: in.startup,
			total: in.total + in.rows*cpuOperator*float64(len(n.Conds)), cols: p.narrow(n.Conds, in, s)}
		return e
	case *plan.LProject:
		in := p.est(n.In)
		e := &est{rows: in.rows, startup: in.startup, total: in.total + in.rows*cpuOperator*computed(n.Exprs), cols: map[plan.ColID]*colStat{}}
		for i, c := range n.Out {
			if s := p.exprStat(n.Exprs[i], in); s != nil {
				e.cols[c.ID] = s
			}
		}
		e.width = p.colsWidth(n, e.cols)
		return e
	case *plan.LProjectSet:
		in := p.est(n.In)
		f := 10.0
		for _, c := range n.Sets {
			if r, ok := p.seriesRows(c); ok {
				f = r
			}
		}
		return &est{rows: in.rows * f, width: p.colsWidth(n, in.cols), startup: in.startup, total: in.total + in.rows*f*cpuTuple, cols: in.cols}
	case *plan.LJoin:
		return p.estJoin(n)
	case *plan.LAggregate:
		in := p.est(n.In)
		rows := 1.0
		switch {
		case n.Plain:
		case n.Sets != nil:
			rows = 0
			for _, set := range n.Sets {
				var gs []plan.Expr
				for _, i := range set {
					gs = append(gs, n.Groups[i])
				}
				rows += p.groups(gs, in)
			}
		default:
			rows = p.groups(n.Groups, in)
		}
		e := &est{rows: rows, cols: map[plan.ColID]*colStat{}}
		work := in.rows * cpuOperator * float64(len(n.Aggs)+len(n.Groups))
		e.startup = in.total + work
		e.total = e.startup + rows*cpuTuple
		for i, c := range n.GroupCols {
			if s := p.exprStat(n.Groups[i], in); s != nil {
				k := *s
				k.domain = s.ofDomain()
				k.distinct = math.Min(k.distinct, rows)
				e.cols[c.ID] = &k
			}
		}
		for _, c := range n.AggCols {
			e.cols[c.ID] = &colStat{distinct: rows, width: typeWidth(c.T)}
		}
		e.width = p.colsWidth(n, e.cols)
		return e
	case *plan.LSort:
		in := p.est(n.In)
		e := *in
		keep := in.rows
		if n.Top > 0 {
			keep = math.Min(keep, float64(n.Top))
		}
		e.startup = in.total + 2*cpuOperator*in.rows*math.Log2(math.Max(keep, 2))
		e.total = e.startup + cpuOperator*keep
		return &e
	case *plan.LLimit:
		in := p.est(n.In)
		e := *in
		if want, ok := limitRows(n); ok {
			f := math.Min(1, float64(want)/in.rows)
			e.rows = math.Min(in.rows, float64(want))
			e.total = in.startup + (in.total-in.startup)*f
		} else if n.Count != nil {
			e.rows = in.rows * 0.1
		}
		return &e
	case *plan.LDistinct:
		in := p.est(n.In)
		var es []plan.Expr
		if n.On != nil {
			es = n.On
		} else {
			for _, c := range n.In.Cols() {
				es = append(es, c.Ref())
			}
		}
		e := *in
		e.rows = p.groups(es, in)
		e.startup = in.total + in.rows*cpuOperator*float64(len(es))
		e.total = e.startup + e.rows*cpuTuple
		return &e
	case *plan.LSetOp:
		l, r := p.est(n.Left), p.est(n.Right)
		rows := l.rows
		if n.Kind == plan.Intersect {
			rows = math.Min(l.rows, r.rows)
		}
		return &est{rows: rows, width: l.width, startup: l.total + r.total, total: l.total + r.total + (l.rows+r.rows)*cpuTuple}
	case *plan.LUnion:
		e := &est{}
		for _, in := range n.Ins {
			i := p.est(in)
			e.rows += i.rows
			e.total += i.total + i.rows*cpuTuple/2
			e.width = i.width
		}
		return e
	case *plan.LWindow:
		in := p.est(n.In)
		e := *in
		e.startup = in.total + 2*cpuOperator*in.rows*math.Log2(math.Max(in.rows, 2))
		e.total = e.startup + in.rows*cpuOperator*float64(len(n.Calls)+1)
		e.width = p.colsWidth(n, in.cols)
		return &e
	case *plan.LCTEScan:
		in := p.est(n.CTE.Plan)
		e := &est{rows: in.rows, width: in.width, total: in.rows * cpuTuple, cols: map[plan.ColID]*colStat{}}
		for i, c := range n.CTE.Plan.Cols() {
			if s, ok := in.cols[c.ID]; ok && i < len(n.Out) {
				e.cols[n.Out[i].ID] = s
			}
		}
		return e
	case *plan.LRecursive:
		i, s := p.est(n.Init), p.est(n.Step)
		return &est{rows: i.rows + 10*s.rows, width: i.width, total: i.total + 10*s.total}
	case *plan.LWorkScan:
		return &est{rows: 100, width: p.colsWidth(n, nil), total: 1}
	}
	return &est{rows: defaultRows, width: 32, total: defaultRows * cpuTuple}
}

// computed counts the expressions that cost something.
func computed(es []plan.Expr) float64 {
	n := 0.0
	for _, e := range es {
		if !cheap(e) {
			n++
		}
	}
	return n
}

func (p *planner) seriesRows(c plan.LSetCall) (float64, bool) {
	if c.F == nil || c.F.Name != "generate_series" || len(c.Args) < 2 {
		return 0, false
	}
	var v [3]float64
	v[2] = 1
	for i, a := range c.Args {
		k, ok := a.(*plan.Const)
		if !ok || i > 2 {
			return 0, false
		}
		f, ok := num(k.Value)
		if !ok {
			return 0, false
		}
		v[i] = f
	}
	if v[2] == 0 {
		return 0, false
	}
	return clampRows(math.Floor((v[1]-v[0])/v[2]) + 1), true
}

func (p *planner) estGet(g *plan.LGet) *est {
	st := p.relStats(g)
	e := &est{rows: defaultRows, cols: map[plan.ColID]*colStat{}}
	bytes := 0.0
	if st != nil {
		e.rows = clampRows(float64(st.Rows))
		bytes = float64(st.Bytes)
	}
	var pk []string
	if t, ok := g.Rel.(catalog.TableInfo); ok {
		pk = t.PrimaryKey()
	}
	cols := g.Rel.Columns()
	for i, c := range g.Out {
		if g.Att[i] < 0 {
			e.cols[c.ID] = &colStat{distinct: e.rows, width: typeWidth(c.T)}
			continue
		}
		rc := cols[g.Att[i]]
		s := &colStat{width: typeWidth(c.T), distinct: math.Min(e.rows, defaultDistinct)}
		if st != nil {
			if cs, ok := st.Columns[rc.ID]; ok {
				if cs.AverageBytes > 0 {
					s.width = cs.AverageBytes
				}
				if cs.NullCount > 0 {
					s.nullFrac = math.Min(1, float64(cs.NullCount)/e.rows)
				}
				lo, ok1 := num(cs.Min)
				hi, ok2 := num(cs.Max)
				if ok1 && ok2 && hi >= lo {
					s.lo, s.hi, s.ranged = lo, hi, true
					switch {
					case c.T.IsInteger() || c.T.Kind == types.Date:
						s.distinct = math.Min(e.rows, hi-lo+1)
					case c.T.Kind == types.Numeric && c.T.Prec > 0:
						s.distinct = math.Min(e.rows, (hi-lo)*math.Pow10(int(c.T.Scale))+1)
					case c.T.Kind != types.Bool:
						s.distinct = e.rows
					}
				}
				if cs.Distinct > 0 {
					s.distinct, s.counted = math.Min(float64(cs.Distinct), e.rows), true
				}
			}
		}
		switch {
		case s.counted:
		case c.T.Kind == types.Bool:
			s.distinct = 2
		case c.T.Mod == 5 && (c.T.Kind == types.BpChar || c.T.Kind == types.Varchar):
			s.distinct = math.Min(s.distinct, 10) // char(1): a flag
		}
		if len(pk) == 1 && pk[0] == rc.Name {
			s.distinct = e.rows
		}
		e.cols[c.ID] = s
	}
	e.width = p.colsWidth(g, e.cols)
	if bytes == 0 {
		bytes = e.rows * e.width
	}
	// Columns are read apart: only the width asked for counts.
	full := 0.0
	for _, c := range cols {
		full += typeWidth(c.Type)
	}
	read := bytes * math.Min(1, e.width/math.Max(full, 1))
	e.total = read/pageBytes + e.rows*cpuTuple
	if len(g.Conds) > 0 {
		s := p.selectivity(g.Conds, e)
		e.total += e.rows * cpuOperator * float64(len(g.Conds))
		cols := p.narrow(g.Conds, e, s)
		e.rows *= s
		e.cols = cols
	}
	return e
}

// narrow adjusts column statistics to a filter of selectivity s.
func (p *planner) narrow(conds []plan.Expr, in *est, s float64) map[plan.ColID]*colStat {
	out := make(map[plan.ColID]*colStat, len(in.cols))
	rows := clampRows(in.rows)
	for id, c := range in.cols {
		k := *c
		k.domain = c.ofDomain()
		if k.distinct > 1 && s < 1 {
			k.distinct = math.Max(1, k.distinct*(1-math.Pow(1-s, rows/k.distinct)))
		}
		out[id] = &k
	}
	for _, c := range conds {
		id, lo, hi, ok := p.bounds(c)
		k := out[id]
		if !ok || k == nil || !k.ranged {
			continue
		}
		nlo, nhi := math.Max(k.lo, lo), math.Min(k.hi, hi)
		if nhi < nlo {
			nhi = nlo
		}
		if k.hi > k.lo {
			old := in.cols[id]
			k.distinct = math.Max(1, math.Min(k.distinct, old.distinct*math.Max(nhi-nlo, 0)/(old.hi-old.lo)+1))
			k.domain = math.Max(1, math.Min(k.domain, old.ofDomain()*math.Max(nhi-nlo, 0)/(old.hi-old.lo)+1))
		}
		k.lo, k.hi = nlo, nhi
		k.nullFrac = 0
	}
	return out
}

// groups estimates the number of distinct combinations.
func (p *planner) groups(es []plan.Expr, in *est) float64 {
	if len(es) == 0 {
		return 1
	}
	n := 1.0
	for _, e := range es {
		d := defaultDistinct
		if s := p.exprStat(e, in); s != nil && s.distinct > 0 {
			d = s.distinct
			if s.nullFrac > 0 {
				d++
			}
		}
		n *= d
		if n > in.rows {
			return clampRows(in.rows)
		}
	}
	return clampRows(math.Min(n, in.rows))
}

// joinKey is one hashable equality of a join: l over the left side's columns, r
// over the right's.
type joinKey struct {
	l, r   plan.Expr
	nullEq bool
}

// splitJoin separates equalities that can be hashed from other conditions.
func (p *planner) splitJoin(conds []plan.Expr, l, r colSet) (keys []joinKey, rest []plan.Expr) {
	for _, c := range conds {
		switch x := c.(type) {
		case *plan.Call:
			if x.F == nil || x.F.Name != "=" || len(x.Args) != 2 || !isOperator(x.F) {
				break
			}
			if v, w, ok := p.joinKeys(x.Args[0], x.Args[1]); ok {
				a, b := usedCols(v), usedCols(w)
				if len(a) > 0 && len(b) > 0 && !hasVolatile(c) {
					if l.hasAll(a) && r.hasAll(b) {
						keys = append(keys, joinKey{l: v, r: w})
						continue
					}
					if l.hasAll(b) && r.hasAll(a) {
						keys = append(keys, joinKey{l: w, r: v})
						continue
					}
				}
			}
		case *plan.Distinct:
			if x.Not && hashablePair(x.Left.Type(), x.Right.Type()) && !hasVolatile(c) {
				a, b := usedCols(x.Left), usedCols(x.Right)
				if len(a) > 0 && len(b) > 0 {
					if l.hasAll(a) && r.hasAll(b) {
						keys = append(keys, joinKey{x.Left, x.Right, true})
						continue
					}
					if l.hasAll(b) && r.hasAll(a) {
						keys = append(keys, joinKey{x.Right, x.Left, true})
						continue
					}
				}
			}
		}
		rest = append(rest, c)
	}
	return keys, rest
}

// joinKeys returns two expressions, which = compares, as keys of one hash: of
// numbers of two widths the narrower is widened. ok is false when there is no such
// form.
func (p *planner) joinKeys(a, b plan.Expr) (v, w plan.Expr, ok bool) {
	s, t := a.Type(), b.Type()
	if hashablePair(s, t) {
		return a, b, true
	}
	m, n := numberWidth(s), numberWidth(t)
	if m == 0 || n == 0 || s.IsInteger() != t.IsInteger() {
		return a, b, false
	}
	var err error
	if m < n {
		a, err = p.castCall(a, types.Of(t.Kind), false, -1)
	} else {
		b, err = p.castCall(b, types.Of(s.Kind), false, -1)
	}
	return a, b, err == nil && a != nil && b != nil && hashablePair(a.Type(), b.Type())
}

// numberWidth orders the integers, and the floating-point types; 0 = neither.
func numberWidth(t types.Type) int {
	switch t.Kind {
	case types.TinyInt:
		return 1
	case types.Int2:
		return 2
	case types.Int4, types.Float4:
		return 4
	case types.Int8, types.Float8:
		return 8
	}
	return 0
}

// hashablePair: keys are compared by one hash, so both sides must have one
// physical form and an equality that is equality of that form.
func hashablePair(a, b types.Type) bool {
	switch a.Kind {
	case types.JSON, types.Map, types.Variant, types.Row, types.Record:
		return false
	}
	if a.Kind == types.Numeric && b.Kind == types.Numeric {
		return a.Prec > 0 && b.Prec > 0 && a.Scale == b.Scale || a.Prec == 0 && b.Prec == 0
	}
	return a.SamePhysical(b) && (sameType(a, b) || a.IsTextLike() && b.IsTextLike() && (a.Kind == types.BpChar) == (b.Kind == types.BpChar) || a.IsOIDLike() && b.IsOIDLike())
}

func (p *planner) estJoin(n *plan.LJoin) *est {
	l, r := p.est(n.Left), p.est(n.Right)
	return p.joinEst(n.Kind, l, r, n.Conds, colsOf(n.Left), colsOf(n.Right), n.Lateral)
}

func (p *planner) joinEst(kind plan.JoinKind, l, r *est, conds []plan.Expr, lc, rc colSet, lateral bool) *est {
	both := &est{rows: l.rows * r.rows, cols: map[plan.ColID]*colStat{}}
	for id, s := range l.cols {
		both.cols[id] = s
	}
	for id, s := range r.cols {
		both.cols[id] = s
	}
	keys, rest := p.splitJoin(conds, lc, rc)
	sel := 1.0
	semi := 1.0
	for _, k := range keys {
		ls, rs := p.exprStat(k.l, l), p.exprStat(k.r, r)
		ld, rd := math.Min(defaultDistinct, l.rows), math.Min(defaultDistinct, r.rows)
		if ls != nil {
			ld = math.Min(math.Max(ls.distinct, 1), l.rows)
		}
		if rs != nil {
			rd = math.Min(math.Max(rs.distinct, 1), r.rows)
		}
		both := math.Max(ld, rd)
		if ls != nil && rs != nil {
			both = math.Max(both, math.Max(ls.domain, rs.domain))
		}
		sel *= 1 / both
		semi = math.Min(semi, math.Min(1, rd/math.Max(ld, 1)))
	}
	// Several keys of one join are rarely independent: a composite key cannot
	// match fewer than one in the rows of the smaller distinct side.
	if len(keys) > 1 {
		sel = math.Max(sel, 1/math.Max(l.rows, r.rows))
	}
	restSel := 1.0
	if len(rest) > 0 {
		restSel = p.selectivity(rest, both)
	}
	inner := clampRows(l.rows * r.rows * sel * restSel)
	e := &est{cols: both.cols, width: l.width + r.width}
	switch kind {
	case plan.Semi:
		e.rows = l.rows * semi * math.Max(restSel, 0.5)
		if len(keys) == 0 {
			e.rows = l.rows * 0.5
		}
		e.cols, e.width = l.cols, l.width
	case plan.Anti, plan.NullAnti:
		e.rows = math.Max(l.rows*(1-semi*restSel), l.rows*0.1)
		e.cols, e.width = l.cols, l.width
	case plan.Mark:
		e.rows, e.cols, e.width = l.rows, l.cols, l.width+1
	case plan.Left:
		e.rows = math.Max(inner, l.rows)
	case plan.Right:
		e.rows = math.Max(inner, r.rows)
	case plan.Full:
		e.rows = math.Max(inner, l.rows+r.rows-math.Min(l.rows, r.rows))
	default:
		e.rows = inner
	}
	e.rows = clampRows(e.rows)
	out := e.rows * cpuTuple
	switch {
	case lateral:
		e.startup = l.startup
		e.total = l.total + l.rows*math.Max(r.total, cpuTuple) + out
	case len(keys) == 0:
		e.startup = l.startup + r.total
		e.total = l.total + r.total + l.rows*r.rows*cpuOperator*float64(1+len(rest)) + out
	default:
		k := float64(len(keys))
		e.startup = l.startup + r.total + r.rows*(cpuOperator*k*1.5+cpuTuple)
		// A build side beyond the caches probes slowly.
		probe := cpuOperator * k
		if big := r.rows * (r.width + 16) / 4e6; big > 1 {
			probe *= 1 + math.Min(math.Log2(big)/4, 1.5)
		}
		e.total = e.startup + (l.total - l.startup) + l.rows*probe + inner*cpuOperator*float64(len(rest)) + out
	}
	return e
}
