package engine

import (
	"context"
	"sort"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/parser"
	"github.com/paimon-sql/paimon-sql/sql/planner"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// parse parses a text of any number of statements.
func parse(sql string) ([]ast.Stmt, error) { return parser.Parse(sql) }

func sortStrings(s []string) { sort.Strings(s) }

// planQuery has the planner make a plan of the query impl.stmt.
func (s *Session) planQuery(ctx context.Context, impl *prepared, params []types.Type) (*planned, error) {
	d := s.set.use()
	r := s.newResolver()
	p, err := planner.Plan(ctx, impl.stmt, impl.text, planner.Options{
		Resolver: r, Env: s.env(), ParamTypes: params, FixedParams: impl.fixed,
		FreshReads: d.freshReads, Disabled: d.disabled, MaxDepth: d.maxDepth,
	})
	if err != nil {
		return nil, err
	}
	if len(p.Locks) > 0 {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "SELECT FOR UPDATE is not supported yet")
	}
	pl := &planned{p: p, frag: p.Fragment, params: p.ParamTypes, deps: r.deps, meaning: s.meaning(), once: r.fleeting}
	if r.private {
		pl.owner = s
	}
	pl.cols = make([]Column, len(p.Columns)) // never nil: no columns is a result, too
	for i, c := range p.Columns {
		pl.cols[i] = Column{Name: c.Name, Type: c.Type, TableOID: c.TableOID, AttNum: c.AttNum}
	}
	return pl, nil
}

// startQuery runs a plan on the executor. stop must be called after the source
// is closed.
func (s *Session) startQuery(life context.Context, pl *planned, args []types.Datum) (rowSource, func(), error) {
	_ = time.Now
	return nil, nil, pgerr.New(pgerr.FeatureNotSupported, "the executor is not there yet")
}

// explain prints a plan, and with ANALYZE runs it first.
func (s *Session) explain(ctx, life context.Context, pl *planned, args []types.Datum, o explainOptions) ([]string, error) {
	return nil, pgerr.New(pgerr.FeatureNotSupported, "EXPLAIN is not supported yet")
}

// oneRow plans and runs a query of one row whose columns are assigned to
// targets.
func (s *Session) oneRow(ctx context.Context, q *ast.Query, text string, targets []planner.Target) ([]types.Datum, error) {
	return nil, pgerr.New(pgerr.FeatureNotSupported, "EXECUTE with parameters is not supported yet")
}

// openWarehouse opens the files and the catalog.
func (e *Engine) openWarehouse(ctx context.Context) error {
	if e.io == nil && e.cat == nil {
		io, err := fileio.Open(e.cfg.Warehouse)
		if err != nil {
			return err
		}
		e.io = io
	}
	if e.cat != nil {
		return nil
	}
	return pgerr.New(pgerr.FeatureNotSupported, "the catalog is not there yet")
}
