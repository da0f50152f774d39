package engine

import (
	"context"
	"errors"
	"sort"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/exec/vectorized"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/parser"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/sql/planner"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/lookup"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// parse parses a text of any number of statements.
func parse(sql string) ([]ast.Stmt, error) {
	stmts, err := parser.Parse(sql)
	return intoTables(stmts), err
}

func sortStrings(s []string) { sort.Strings(s) }

// planQuery has the planner make a plan of the query impl.stmt.
func (s *Session) planQuery(ctx context.Context, impl *prepared, params []types.Type) (*planned, error) {
	d := s.set.use()
	r := s.newResolver()
	env := s.env()
	env.folded = &foldedNames{}
	began := time.Now()
	p, err := planner.Plan(ctx, impl.stmt, impl.text, planner.Options{
		Resolver: r, Env: env, ParamTypes: params, FixedParams: impl.fixed,
		FreshReads: d.freshReads, Disabled: d.disabled, MaxDepth: d.maxDepth, RowLocks: true,
	})
	if err != nil {
		return nil, err
	}
	pl := &planned{p: p, frag: p.Fragment, params: p.ParamTypes, locks: len(p.Locks) > 0}
	pl.restOn(s, r, env, began)
	pl.cols = columns(p.Columns)
	pl.point = newPoint(pl)
	return pl, nil
}

// planModify has the planner make a plan of a data-changing statement.
func (s *Session) planModify(ctx context.Context, impl *prepared, params []types.Type) (*planned, error) {
	d := s.set.use()
	r := s.newResolver()
	env := s.env()
	env.folded = &foldedNames{}
	began := time.Now()
	p, err := planner.PlanModify(ctx, impl.stmt, impl.text, planner.Options{
		Resolver: r, Env: env, ParamTypes: params, FixedParams: impl.fixed,
		FreshReads: d.freshReads, Disabled: d.disabled, MaxDepth: d.maxDepth,
	})
	if err != nil {
		return nil, err
	}
	pl := &planned{mod: p, frag: p.Modify.Source, params: p.ParamTypes, reads: readsTarget(p.Modify, r.deps)}
	if len(r.deps) == 1 && !pl.reads {
		pl.target = &recentTarget{}
	}
	pl.restOn(s, r, env, began)
	if p.Columns != nil {
		pl.cols = columns(p.Columns)
	}
	return pl, nil
}

// restOn notes what a plan that r and env were asked for rests on.
func (pl *planned) restOn(s *Session, r *resolver, env *stmtEnv, began time.Time) {
	pl.names = env.folded.list
	pl.deps, pl.meaning, pl.once, pl.took = r.deps, s.meaning(), r.fleeting, time.Since(began)
	if r.private || s.tx.staged != nil {
		pl.owner = s
	}
}

// columns describes a plan's result; never nil: no columns is a result, too.
func columns(cols []planner.Column) []Column {
	out := make([]Column, len(cols))
	for i, c := range cols {
		out[i] = Column{Name: c.Name, Type: c.Type, TableOID: c.TableOID, AttNum: c.AttNum}
	}
	return out
}

// startQuery runs a plan on the executor. stop must be called after the source
// is closed.
func (s *Session) startQuery(life context.Context, pl *planned, args []types.Datum) (*vectorized.Query, func(), error) {
	var rels binding
	if len(s.tx.tables) > 0 { // its own writes are to be seen
		var err error
		if rels, err = s.bind(life, pl.deps, nil); err != nil {
			return nil, nil, err
		}
	}
	return s.startFragment(life, pl.frag, args, rels)
}

// startFragment runs a plan on the relations that rels says.
func (s *Session) startFragment(life context.Context, f *plan.Fragment, args []types.Datum, rels binding) (*vectorized.Query, func(), error) {
	d := s.set.use()
	acc := s.eng.root.Child("work_mem", d.workMem)
	env := &vectorized.Env{
		Fn: s.env(), Account: acc, Slots: s.eng.slots, Workers: d.workers, VectorSize: d.vectorSize, TempDir: s.eng.cfg.TempDir,
	}
	if rels != nil {
		env.Relation = rels.relation
	}
	q, err := vectorized.Start(life, f, args, env)
	if err != nil {
		acc.Close()
		return nil, nil, err
	}
	return q, func() {
		s.eng.counts.read(f, q.Stats())
		acc.Close()
	}, nil
}

// explain prints a plan, and with ANALYZE runs it first.
func (s *Session) explain(ctx, life context.Context, pl *planned, args []types.Datum, o explainOptions) ([]string, error) {
	eo := planner.ExplainOptions{
		Analyze: o.analyze, Verbose: o.verbose, Buffers: o.buffers, NoCosts: !o.costs, NoTiming: !o.timing, Summary: o.summary,
		JSON: o.format == "json", Ctx: ctx, Env: s.env(),
	}
	eo.Caches = s.cachesUsed(o)
	st := &runStats{planning: pl.took}
	if o.analyze {
		q, stop, err := s.startQuery(life, pl, args)
		if err != nil {
			return nil, err
		}
		defer stop()
		defer q.Close() //nolint:errcheck // a reader: what it read is what counts
		s.tx.queried = true
		began := time.Now()
		for {
			b, err := q.Next(ctx)
			if err != nil {
				return nil, err
			}
			if b == nil {
				break
			}
		}
		st.execution = time.Since(began)
		if err := q.Close(); err != nil {
			return nil, err
		}
		st.stats = q.Stats()
	}
	return planner.Explain(pl.p, eo, st), nil
}

// explainModify prints the plan of a data-changing statement. With ANALYZE it runs:
// what it changes is part of the transaction.
func (s *Session) explainModify(ctx, _ context.Context, pl *planned, args []types.Datum, o explainOptions) ([]string, error) {
	eo := planner.ExplainOptions{
		Analyze: o.analyze, Verbose: o.verbose, Buffers: o.buffers, NoCosts: !o.costs, NoTiming: !o.timing, Summary: o.summary,
		JSON: o.format == "json", Ctx: ctx, Env: s.env(),
	}
	eo.Caches = s.cachesUsed(o)
	st := &runStats{planning: pl.took}
	if o.analyze {
		began := time.Now()
		out, err := s.modifyOnce(ctx, pl, args, func(x *vectorized.Stats) { st.stats = x })
		if err != nil {
			if errors.Is(err, errReadAgain) || errors.Is(err, errReplan) {
				err = errSerialize("")
			}
			return nil, err
		}
		st.execution = time.Since(began)
		st.modified = &plan.Counters{Rows: out.count, Loops: 1, Total: st.execution}
		if out.rows == nil {
			st.modified.Rows = 0 // as PostgreSQL counts: rows that come out
		}
	}
	return planner.ExplainModify(pl.mod, eo, st), nil
}

// cachesUsed returns what says how the caches were used from now on; nil unless BUFFERS
// asks for it.
func (s *Session) cachesUsed(o explainOptions) func() []table.CacheStats {
	if !o.buffers || !o.analyze || s.eng.env == nil {
		return nil
	}
	before := s.eng.env.CacheStats()
	return func() []table.CacheStats { return table.CacheUse(before, s.eng.env.CacheStats()) }
}

// runStats shows the executor's counters to EXPLAIN.
type runStats struct {
	stats               *vectorized.Stats // nil: not run
	modified            *plan.Counters    // of the node that changes a table
	planning, execution time.Duration
}

func (r *runStats) Node(id int) (plan.Counters, bool) {
	if id == plan.ModifyNodeID && r.modified != nil {
		return *r.modified, true
	}
	if r.stats == nil {
		return plan.Counters{}, false
	}
	n := r.stats.Node(id)
	d := n.Detail()
	return plan.Counters{
		Rows: n.Rows, Loops: n.Loops, Batches: n.Batches, Total: n.Busy(), Memory: n.MemPeak, RowsRemoved: d["removed"], Groups: d["groups"], Spilled: d["spilled"],
	}, true
}

func (r *runStats) Scan(id int) *table.PlanReport {
	if r.stats == nil {
		return nil
	}
	return r.stats.Node(id).Report
}

func (r *runStats) Times() (planning, execution time.Duration) { return r.planning, r.execution }

// oneRow plans and runs a query of one row whose columns are assigned to
// targets.
func (s *Session) oneRow(ctx context.Context, q *ast.Query, text string, targets []planner.Target) ([]types.Datum, error) {
	d := s.set.use()
	p, err := planner.Plan(ctx, q, text, planner.Options{
		Resolver: s.newResolver(), Env: s.env(), FixedParams: true, FreshReads: d.freshReads, Disabled: d.disabled, MaxDepth: d.maxDepth, Targets: targets,
	})
	if err != nil {
		return nil, err
	}
	if err := s.rights(ctx).grants(p.Needs); err != nil {
		return nil, err
	}
	x, stop, err := s.startQuery(ctx, &planned{frag: p.Fragment}, nil)
	if err != nil {
		return nil, err
	}
	defer stop()
	defer x.Close() //nolint:errcheck // a reader: what it read is what counts
	b, err := x.Next(ctx)
	if err != nil {
		return nil, err
	}
	if b == nil || b.Size() != 1 || len(b.Cols) != len(targets) {
		return nil, errors.New("an expression list did not give one row")
	}
	row := 0
	if b.Sel != nil {
		row = int(b.Sel[0])
	}
	out := make([]types.Datum, len(targets))
	for i, c := range b.Cols {
		if !c.IsNull(row) {
			out[i] = vec.DatumAt(c, targets[i].Type, row)
		}
	}
	return out, nil
}

// openWarehouse opens the files and the catalog.
func (e *Engine) openWarehouse(ctx context.Context) error {
	if e.cat != nil {
		return nil
	}
	location := strings.SplitN(e.cfg.Warehouse, "?", 2)[0] // what follows may hold secrets
	if e.io == nil {
		io, err := fileio.Open(e.cfg.Warehouse)
		if err != nil {
			return e.toPG(ctx, err, "")
		}
		e.io = io
	}
	if _, err := e.io.Stat(ctx, "."); errors.Is(err, fileio.ErrNotExist) && !strings.HasPrefix(location, "mem:") {
		e.log.Warn("the warehouse does not exist yet: its first table makes it", "warehouse", location)
	}
	e.env = table.NewEnv(e.io, table.EnvOptions{
		ManifestCacheBytes: min(max(e.cfg.MaxMemory/8, 16<<20), 512<<20),
		PageCacheBytes:     max(e.cfg.MaxMemory/8, 16<<20),
		VerdictBytes:       min(max(e.cfg.MaxMemory/64, 4<<20), 64<<20),
		FoldedBytes:        min(max(e.cfg.MaxMemory/16, 8<<20), 512<<20),
		HashBytes:          min(max(e.cfg.MaxMemory/16, 8<<20), 256<<20),
		VectorCacheBytes:   min(max(e.cfg.MaxMemory/64, 4<<20), 64<<20),
		IndexCacheBytes:    min(max(e.cfg.MaxMemory/32, 4<<20), 256<<20),
		KeyDir:             e.localDir,
		Events: table.Events{IndexDamaged: func(path string, err error) {
			e.log.Warn("a file index cannot be used: its data file is read without it", "file", path, "err", err)
		}},
		Lookup: lookup.Options{MemoryBytes: min(max(e.cfg.MaxMemory/8, 32<<20), 1<<30)},
	})
	e.cacheMetrics()
	e.cat = catalog.NewFilesystem(e.env, location)
	return nil
}

// sweep removes what processes that ended badly left behind.
func (e *Engine) sweep(ctx context.Context) {
	if n := sweepTempDirs(e.cfg.TempDir); n > 0 {
		e.log.Info("temporary files of processes that are gone are removed", "directories", n)
	}
	cat, ok := e.cat.(*catalog.Filesystem)
	if !ok {
		return
	}
	n, err := cat.Sweep(ctx, time.Now())
	if n > 0 {
		e.log.Info("files of dropped tables are removed", "directories", n)
	}
	if err != nil && ctx.Err() == nil {
		e.log.Warn("files of dropped tables stay behind", "err", err)
	}
}
