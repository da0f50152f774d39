package vectorized

import (
	"context"
	"sort"
	"sync/atomic"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// scanStage reads a relation. Workers take splits from one queue, the largest
// first. The exact filter goes down into the readers of Paimon tables, which
// decode the other columns only for rows that pass it; what hash joins and
// top-N sorts learn while the query runs joins it there.
type scanStage struct {
	sc    *scope
	n     *plan.Scan
	rel   catalog.Relation
	req   request
	stats *NodeStats
	spec  table.Scan
	plan  *table.Plan
	next  atomic.Int64 // position in plan.Splits
	late  []*scanFilter
	acc   *mem.Account
	// pushed: readers apply the filter themselves.
	pushed bool
	found  *vec.Batch // looked up instead of read
}

// scanFilter is a runtime filter on one column of the scan.
type scanFilter struct {
	col int
	f   *keyFilter
}

func newScan(sc *scope, n *plan.Scan, req request) (stage, error) {
	s := &scanStage{sc: sc, n: n, rel: sc.rt.relation(n.Rel), req: req, spec: n.Spec, stats: sc.rt.stats.Node(n.ID), acc: sc.rt.acc.Child("work_mem", 0)}
	_, s.pushed = s.rel.(catalog.TableInfo)
	if !s.pushed {
		_, s.pushed = s.rel.(catalog.Scanned)
	}
	for _, l := range n.LateIn {
		if l.Column < len(n.Out) {
			s.late = append(s.late, &scanFilter{col: l.Column, f: sc.joinFilter(l.JoinID, l.Key)})
		}
	}
	for _, l := range req.late {
		s.late = append(s.late, &scanFilter{col: l.col, f: l.f})
	}
	return s, nil
}

func (s *scanStage) prepare(ctx context.Context) (int, error) {
	if s.n.Params && s.n.StorageFilter != nil {
		// Only those that the filter has: another one may be the subplan that this scan
		// is part of, which would wait for itself, or one that is never to be run.
		vals := make([]types.Datum, len(s.sc.params.vals))
		for _, i := range s.n.FilterParams {
			v, err := s.sc.params.get(ctx, i)
			if err != nil {
				return 0, err
			}
			vals[i] = v
		}
		f, err := s.n.StorageFilter(vals)
		if err != nil {
			return 0, err
		}
		node, _ := f.(predicate.Node)
		s.spec.Filter = node
		s.exact(vals)
	}
	if err := s.partitions(); err != nil {
		return 0, err
	}
	empty := false
	for i, l := range s.late {
		if !l.f.ready.Load() {
			continue
		}
		// Rows are dropped that storage's filter does not speak of.
		s.spec.Exact = false
		empty = empty || l.f.empty
		leaf := s.field(l.col)
		leaf.Runtime = i + 1
		if p := l.f.predicate(leaf); p != nil {
			s.spec.Filter = predicate.Conj(s.spec.Filter, p)
		}
	}
	if empty { // an inner join with nothing
		s.plan = &table.Plan{Report: &table.PlanReport{}}
		return 1, nil
	}
	if done, err := s.lookUp(ctx); done || err != nil {
		return 1, err
	}
	if b := s.req.bound; b != nil && b.b.usable {
		s.spec.Late = &lateBound{b: b.b, leaf: s.field(b.col)}
		s.spec.Order = &table.Order{Column: b.col, Desc: b.b.desc, NullsFirst: b.b.nullsFirst}
		if s.n.Filter == nil && len(s.late) == 0 && s.pushed {
			s.spec.Order.Rows = b.rows
		}
	}
	p, err := s.rel.Plan(ctx, s.spec)
	if err != nil {
		return 0, err
	}
	s.plan = p
	if p.Report == nil {
		p.Report = &table.PlanReport{}
	}
	for i, l := range s.late {
		if l.f.ready.Load() {
			p.Report.AddRuntime(i+1, 0)
			p.Report.Runtime[i].Column = l.col
		}
	}
	s.stats.setReport(p.Report)
	rows := int64(0)
	for i := range p.Splits {
		rows += p.Splits[i].Rows
	}
	if s.req.ordered && rows < manyRows || rows > 0 && rows < fewRows {
		// Little work: in the order of the files, which clients come to rely on,
		// and without goroutines.
		return 1, nil
	}
	if len(p.Splits) > 1 && !s.keepOrder() && s.spec.Order == nil {
		sort.SliceStable(p.Splits, func(i, j int) bool { return p.Splits[i].Bytes > p.Splits[j].Bytes })
	}
	return max(1, min(s.sc.rt.workers, len(p.Splits))), nil
}

// fewRows is up to how many rows one worker reads a table alone.
const fewRows = 8192

// keepOrder: catalog relations list their rows in an order people rely on.
func (s *scanStage) keepOrder() bool { return !s.pushed }

// field describes column i of the output as a predicate sees it.
func (s *scanStage) field(i int) predicate.Leaf {
	cols := s.rel.Columns()
	c := i
	if s.spec.Columns != nil {
		c = s.spec.Columns[i]
	}
	if c < 0 || c >= len(cols) {
		return predicate.Leaf{Col: -1}
	}
	return predicate.Leaf{Col: c, FieldID: cols[c].ID, Name: cols[c].Name, Type: cols[c].Type}
}

func (s *scanStage) close() {
	s.stats.peak(s.acc)
	s.acc.Close()
}

func (s *scanStage) operator(int) (operator, error) {
	o := &scanOp{s: s}
	f := &rowFilter{s: s, x: s.sc.eval(context.Background())}
	if s.n.Filter != nil {
		e, err := compileExpr(s.n.Filter)
		if err != nil {
			return nil, err
		}
		f.cond = e
	}
	used := make([]bool, len(s.n.Out))
	if s.n.Filter != nil {
		slots(s.n.Filter, used)
	}
	for i, l := range s.late {
		if l.f.ready.Load() && !l.f.unbounded && l.f.selects(s.n.Out[l.col].Type) {
			f.late = append(f.late, lateNode{col: l.col, number: i, f: l.f})
			used[l.col] = true
		}
	}
	if b := s.req.bound; b != nil {
		f.bound, f.boundCol = b.b, b.col
		used[b.col] = true
	}
	for i, u := range used {
		if u {
			f.cols = append(f.cols, i)
		}
	}
	if f.cond != nil || len(f.late) > 0 || f.bound != nil {
		o.filter = f
	}
	return o, nil
}

type scanOp struct {
	s      *scanStage
	filter *rowFilter
	rd     table.SplitReader
	// counters are the reader's own while it reads; report adds them up.
	counters format.Counters
}

// report adds what a finished reader counted to the scan's report.
func (o *scanOp) report() {
	c := o.counters
	o.counters = format.Counters{}
	o.s.stats.mu.Lock()
	defer o.s.stats.mu.Unlock()
	r := o.s.plan.Report
	r.Counters.Add(&c)
	if o.filter == nil {
		return
	}
	r.TopN += o.filter.beaten
	o.filter.beaten = 0
	for i := range o.filter.late {
		l := &o.filter.late[i]
		r.AddRuntime(l.number+1, 0)
		r.Runtime[l.number].Rows += l.dropped
		l.dropped = 0
	}
}

func (o *scanOp) next(ctx context.Context) (*vec.Batch, error) {
	s := o.s
	for {
		if s.found != nil {
			b := s.found
			s.found = nil
			if out, err := o.looked(ctx, b); out != nil || err != nil {
				return out, err
			}
		}
		if o.rd == nil {
			i := int(s.next.Add(1)) - 1
			if i >= len(s.plan.Splits) {
				return nil, nil
			}
			opt := table.ReadOptions{Account: s.acc, BatchRows: s.sc.rt.rows, Selections: true, Counters: &o.counters}
			if o.filter != nil && s.pushed {
				opt.Filter = o.filter
			}
			rd, err := s.rel.Read(ctx, s.spec, s.plan.Splits[i], opt)
			if err != nil {
				return nil, err
			}
			o.rd = rd
		}
		b, err := o.rd.Next(ctx)
		if err != nil {
			return nil, err
		}
		if b == nil {
			rd := o.rd
			o.rd = nil
			err := rd.Close()
			o.report()
			if err != nil {
				return nil, err
			}
			continue
		}
		out := &vec.Batch{Schema: s.n.Out, Cols: b.Cols, N: b.N, Sel: b.Sel}
		if len(out.Cols) != len(s.n.Out) {
			return nil, internalf("scan of %s returned %d columns for %d", s.rel.Name(), len(out.Cols), len(s.n.Out))
		}
		if o.filter != nil && !s.pushed {
			sel, err := o.filter.pass(ctx, out)
			if err != nil {
				return nil, err
			}
			if len(sel) == 0 {
				continue
			}
			out.Sel = append([]uint16(nil), sel...)
		}
		return out, nil
	}
}

func (o *scanOp) close() {
	if o.rd != nil {
		_ = o.rd.Close() // a reader: nothing to lose
		o.rd = nil
		o.report()
	}
}

// rowFilter is the exact filter of a scan as readers see it.
type rowFilter struct {
	s        *scanStage
	x        *evalContext
	cond     *evaluator // nil = none
	late     []lateNode
	bound    *topBound
	boundCol int
	beaten   int64 // rows that the bound dropped and that are not reported yet
	cols     []int
	full     vec.Batch
	sel      []uint16
}

var _ table.RowFilter = (*rowFilter)(nil)

// Columns implements table.RowFilter.
func (f *rowFilter) Columns() []int { return f.cols }

// Select implements table.RowFilter.
func (f *rowFilter) Select(ctx context.Context, b *vec.Batch) ([]uint16, error) {
	if f.full.Cols == nil {
		f.full.Cols = make([]arrowArray, len(f.s.n.Out))
	}
	f.full.N, f.full.Sel, f.full.Schema = b.N, b.Sel, f.s.n.Out
	for k, c := range f.cols {
		f.full.Cols[c] = b.Cols[k]
	}
	return f.pass(ctx, &f.full)
}

// pass returns the rows of a full batch that pass.
func (f *rowFilter) pass(ctx context.Context, b *vec.Batch) ([]uint16, error) {
	f.x.ctx = ctx
	sel := b.Sel
	f.sel = grow(f.sel, b.Size())
	narrowed := false
	for i := range f.late {
		l := &f.late[i]
		if l.off {
			continue
		}
		k := l.selectRows(b, sel, f.sel)
		sel, narrowed = f.sel[:k], true
		if k == 0 {
			return sel, nil
		}
	}
	if f.bound != nil {
		before := liveN(b.N, sel)
		if k := f.bound.selectRows(b.Cols[f.boundCol], b.N, sel, f.sel); k >= 0 {
			sel, narrowed = f.sel[:k], true
			f.beaten += int64(before - k)
		}
	}
	if f.cond == nil {
		if !narrowed {
			return f.sel[:copySel(b.N, sel, f.sel)], nil
		}
		return sel, nil
	}
	k, err := selectNode(f.cond.root, f.x, b, sel, true, f.sel)
	return f.sel[:k], err
}

// lateNode is a runtime filter at work for one worker: it turns itself off when
// it drops too little.
type lateNode struct {
	col      int
	number   int // among the scan's
	f        *keyFilter
	in, kept int64
	dropped  int64 // not reported yet
	off      bool
	hashes   []uint64
}

func (l *lateNode) selectRows(b *vec.Batch, sel, out []uint16) int {
	n := liveRows(b, sel)
	k := l.f.selectRows(b.Cols[l.col], b.N, sel, out, &l.hashes)
	l.in += int64(n)
	l.kept += int64(k)
	l.dropped += int64(n - k)
	if l.in > 100_000 && l.kept*20 > l.in*19 {
		l.off = true
	}
	return k
}

// lateBound tells storage about the bound of a top-N.
type lateBound struct {
	b    *topBound
	leaf predicate.Leaf
}

// Poll implements table.LateFilter.
func (l *lateBound) Poll() predicate.Node {
	if l.leaf.Col < 0 {
		return nil
	}
	return l.b.predicate(l.leaf)
}
