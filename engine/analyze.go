package engine

import (
	"context"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/planner"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// runAnalyze is ANALYZE, in PostgreSQL's form and in Spark's: each table is read once,
// and what is found becomes its statistics file (table.FileStore.Analyze). A table is
// published before the next one is read.
func (s *Session) runAnalyze(ctx context.Context, st *ast.Vacuum, out ResultSink) (*running, error) {
	verbose, err := analyzeOptions(st)
	if err != nil {
		return nil, err
	}
	if err := s.outsideBlock("ANALYZE"); err != nil {
		return nil, err
	}
	if len(st.Tables) == 0 {
		err = s.analyzeAll(ctx, verbose, out)
	}
	for _, t := range st.Tables {
		if err = s.analyzeNamed(ctx, st, t, verbose, out); err != nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return &running{tag: fixedTag("ANALYZE")}, nil
}

// analyzeOptions reads what stands between ANALYZE and the tables.
func analyzeOptions(st *ast.Vacuum) (verbose bool, err error) {
	for _, o := range st.Options {
		switch strings.ToLower(o.Name) {
		case "verbose":
			verbose, err = optionBool(o)
		case "skip_locked": // no lock is waited for
			_, err = optionBool(o)
		default:
			return false, pgerr.New(pgerr.SyntaxError, "unrecognized ANALYZE option \"%s\"", o.Name)
		}
		if err != nil {
			return false, err
		}
	}
	switch {
	case st.Partition != nil:
		return false, pgerr.New(pgerr.FeatureNotSupported, "ANALYZE TABLE ... PARTITION is not supported").
			WithHint("Statistics are of whole tables.")
	case strings.Contains(st.Compute, "NOSCAN"):
		return false, pgerr.New(pgerr.FeatureNotSupported, "ANALYZE TABLE ... NOSCAN is not supported").
			WithHint("What is known without a scan is known already.")
	}
	return verbose, nil
}

// analyzeNamed analyzes one table of the statement.
func (s *Session) analyzeNamed(ctx context.Context, st *ast.Vacuum, t *ast.VacuumTable, verbose bool, out ResultSink) error {
	rel, err := s.newResolver().Relation(ctx, t.Name, resolveDefaults(s))
	if err != nil {
		return err
	}
	store, info := analyzedTable(rel)
	if store == nil {
		s.warn(out, pgerr.Warning, "skipping \"%s\" --- cannot analyze non-tables or special system tables", rel.Name())
		return nil
	}
	if !s.mayMaintain(ctx, rel) {
		s.warn(out, pgerr.Warning, "skipping \"%s\" --- only table or database owner can analyze it", rel.Name())
		return nil
	}
	var columns []string
	if st.Compute == "STATISTICS" {
		columns = []string{} // rows only, unless some are named
	}
	seen := map[string]bool{}
	for _, c := range t.Columns {
		name, ok := analyzedColumn(rel, c)
		switch {
		case !ok:
			return pgerr.New(pgerr.UndefinedColumn, "column %q of relation %q does not exist", c.Name, rel.Name())
		case seen[name]:
			return pgerr.New(pgerr.DuplicateColumn, "column %q of relation %q appears more than once", c.Name, rel.Name())
		}
		seen[name] = true
		columns = append(columns, name)
	}
	return s.analyze(ctx, store, info, columns, verbose, out)
}

// analyzedColumn finds a column by its exact name, or else, when it was not quoted, by
// the only one that differs in case.
func analyzedColumn(rel catalog.Relation, id ast.Ident) (string, bool) {
	found, n := "", 0
	for _, c := range rel.Columns() {
		if c.Name == id.Name {
			return c.Name, true
		}
		if !id.Quoted && strings.EqualFold(c.Name, id.Name) {
			found, n = c.Name, n+1
		}
	}
	return found, n == 1
}

// analyzedTable returns the table behind a relation, nil when it is none.
func analyzedTable(rel catalog.Relation) (*table.FileStore, catalog.TableInfo) {
	info, ok := rel.(catalog.TableInfo)
	if !ok {
		return nil, nil
	}
	store, _ := info.Table().(*table.FileStore)
	return store, info
}

// everyTable does something to every table of the search path. One that cannot be read
// or written, or that is gone meanwhile, is passed over with a warning.
func (s *Session) everyTable(ctx context.Context, out ResultSink, do func(*table.FileStore, catalog.TableInfo) error) error {
	cat := s.catalog()
	for _, schema := range s.searchPath(true) {
		if systemSchema(schema) {
			continue
		}
		names, err := cat.Tables(ctx, schema)
		if missing(err) {
			continue
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			rel, err := cat.Resolve(ctx, schema, name, resolveDefaults(s))
			if err == nil {
				store, info := analyzedTable(rel)
				if store == nil {
					continue
				}
				err = do(store, info)
			}
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			if err != nil && !missing(err) {
				e := s.eng.toPG(ctx, err, "")
				s.warn(out, e.Code, "skipping \"%s\": %s", name, e.Message)
			}
		}
	}
	return nil
}

// analyzeAll analyzes every table of the search path.
func (s *Session) analyzeAll(ctx context.Context, verbose bool, out ResultSink) error {
	return s.everyTable(ctx, out, func(store *table.FileStore, info catalog.TableInfo) error {
		return s.analyze(ctx, store, info, nil, verbose, out)
	})
}

// analyze analyzes one table; columns as in table.AnalyzeOptions.
func (s *Session) analyze(ctx context.Context, store *table.FileStore, info catalog.TableInfo, columns []string, verbose bool, out ResultSink) error {
	name := info.Schema() + "." + info.Name()
	tell := func(format string, args ...any) {
		if verbose {
			s.notice(out, "INFO", pgerr.SuccessfulCompletion, format, args...)
		}
	}
	tell("analyzing \"%s\"", name)
	began := time.Now()
	acc := s.eng.root.Child("work_mem", s.set.use().workMem)
	defer acc.Close()
	r, err := store.Analyze(ctx, table.AnalyzeOptions{
		Branch: info.At().Branch, Columns: columns, Account: acc, Slots: s.eng.slots, Workers: s.eng.cfg.Slots,
		Publish: func(ctx context.Context) (func(), error) { return s.eng.holdDefinition(ctx, store.Dir()) },
	})
	if err != nil {
		return err
	}
	if r.SnapshotID == 0 {
		tell("\"%s\": has no snapshot, nothing to analyze", info.Name())
		return nil
	}
	t := s.eng.counts.table(info.OID())
	t.analyzes.Add(1)
	t.lastAnalyze.Store(time.Now().UnixMicro())
	t.changed.Store(0)
	tell("\"%s\": read %d rows of %d in snapshot %d by %d splits, %d columns; statistics are in snapshot %d", info.Name(),
		r.Rows, r.Total, r.Scanned, r.Splits, r.Columns, r.SnapshotID)
	s.eng.log.Debug("table analyzed", "session", s.pid, "table", name, "snapshot", r.SnapshotID, "rows", r.Rows, "dur_ms", time.Since(began).Milliseconds())
	return nil
}

// Complain logs that a statistics file is not made use of, once a file.
func (r *resolver) Complain(rel catalog.Relation, err error) {
	e := r.s.eng
	if _, known := e.complaints.LoadOrStore(err.Error(), true); !known {
		e.log.Warn("statistics are not made use of", "table", rel.Schema()+"."+rel.Name(), "err", err)
	}
}

var _ planner.Complainer = (*resolver)(nil)

// holdDefinition keeps a table from being dropped or altered until done is called.
func (e *Engine) holdDefinition(ctx context.Context, dir string) (done func(), err error) {
	o := &lockOwner{held: map[lockTarget]lockMode{}}
	release := func() { e.locks.release(o) }
	if _, err := e.locks.acquire(ctx, o, lockTarget{table: tableKey{dir: dir}.String(), key: definitionKey}, lockExclusive, lockWait{}); err != nil {
		release()
		return nil, err
	}
	return release, nil
}
