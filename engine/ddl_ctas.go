package engine

import (
	"context"
	"fmt"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/sql/planner"
)

// intoTables turns SELECT ... INTO t into CREATE TABLE t AS SELECT ..., which it
// means. Only the first SELECT of a query may have INTO.
func intoTables(stmts []ast.Stmt) []ast.Stmt {
	for i, st := range stmts {
		switch x := st.(type) {
		case *ast.Query:
			if into := takeInto(x.Body); into != nil {
				stmts[i] = &ast.CreateTableAs{Span: x.Span, Persistence: into.Persistence, Name: into.Name, As: x}
			}
		case *ast.Prepare:
			if q, ok := x.Stmt.(*ast.Query); ok {
				if into := takeInto(q.Body); into != nil {
					x.Stmt = &ast.CreateTableAs{Span: q.Span, Persistence: into.Persistence, Name: into.Name, As: q}
				}
			}
		case *ast.Explain:
			if q, ok := x.Stmt.(*ast.Query); ok {
				if into := takeInto(q.Body); into != nil {
					x.Stmt = &ast.CreateTableAs{Span: q.Span, Persistence: into.Persistence, Name: into.Name, As: q}
				}
			}
		}
	}
	return stmts
}

// takeInto removes and returns INTO of the leftmost SELECT.
func takeInto(b ast.QueryBody) *ast.Into {
	switch x := b.(type) {
	case *ast.Select:
		into := x.Into
		x.Into = nil
		return into
	case *ast.SetOp:
		return takeInto(x.Left)
	}
	return nil
}

// runCreateTableAs is CREATE TABLE AS. The query is planned before the table is
// made, so that with OR REPLACE it may read the table that it replaces.
func (s *Session) runCreateTableAs(ctx context.Context, text string, st *ast.CreateTableAs, out ResultSink) (string, error) {
	if st.Materialized {
		return "", unsupported(st)
	}
	schemaName, name, temp, err := s.makes(ctx, text, st.Name, st.Persistence)
	if err != nil {
		return "", err
	}
	if st.OnCommit != ast.OnCommitNone && !temp {
		return "", pgerr.New(pgerr.InvalidTableDefinition, "ON COMMIT can only be used on temporary tables")
	}
	if err := checkStorage(text, st.Using, st.Tablespace); err != nil {
		return "", err
	}
	exists, err := s.relationExists(ctx, schemaName, name)
	if err != nil {
		return "", err
	}
	if exists && !st.OrReplace {
		if st.IfNotExists {
			s.notice(out, "NOTICE", pgerr.DuplicateTable, "relation %q already exists, skipping", name)
			return "CREATE TABLE AS", nil
		}
		return "", pgerr.New(pgerr.DuplicateTable, "relation %q already exists", name)
	}
	pl, args, err := s.ctasQuery(ctx, text, st)
	if err == nil {
		err = s.permit(ctx, pl)
	}
	if err != nil {
		return "", err
	}
	d := s.newTableDef(text, schemaName, name)
	if err := d.buildAs(ctx, st, pl.p.Columns); err != nil {
		return "", err
	}
	if exists {
		if _, err := s.tableToChange(ctx, text, st.Name, lockExclusive); err != nil {
			return "", err
		}
	}
	if err := s.createTable(ctx, d, exists, out); err != nil {
		return "", err
	}
	if temp {
		s.keepTemp(name, st.OnCommit)
	}
	if st.NoData {
		return "CREATE TABLE AS", nil
	}
	n, err := s.fillTable(ctx, schemaName, name, pl, args)
	return fmt.Sprintf("SELECT %d", n), err
}

// ctasQuery plans the query of CREATE TABLE AS: a query, or EXECUTE of one.
func (s *Session) ctasQuery(ctx context.Context, text string, st *ast.CreateTableAs) (*planned, []types.Datum, error) {
	switch q := st.As.(type) {
	case *ast.Query:
		pl, err := s.planQuery(ctx, &prepared{stmt: q, text: text, fixed: true}, nil)
		return pl, nil, err
	case *ast.Execute:
		ps, err := s.Statement(q.Name.Name)
		if err != nil {
			return nil, nil, err
		}
		impl := ps.impl.(*prepared)
		if _, ok := impl.stmt.(*ast.Query); !ok {
			return nil, nil, pgerr.New(pgerr.WrongObjectType, "prepared statement is not a SELECT")
		}
		if len(q.Args) != len(ps.Params) {
			return nil, nil, pgerr.New(pgerr.SyntaxError, "wrong number of parameters for prepared statement %q", ps.Name).
				WithDetail("Expected %d parameters but got %d.", len(ps.Params), len(q.Args))
		}
		args, err := s.evaluate(ctx, q.Args, ps.Params, text)
		if err != nil {
			return nil, nil, err
		}
		pl, err := s.planQuery(ctx, &prepared{stmt: impl.stmt, text: impl.text}, ps.Params)
		return pl, args, err
	}
	return nil, nil, unsupported(st)
}

// buildAs fills d from the columns of a query.
func (d *tableDef) buildAs(ctx context.Context, st *ast.CreateTableAs, cols []planner.Column) error {
	if len(st.Columns) > len(cols) {
		return pgerr.New(pgerr.SyntaxError, "too many column names were specified")
	}
	for i, c := range cols {
		name := c.Name
		if i < len(st.Columns) {
			name = st.Columns[i].Name
		}
		t := c.Type.WithNotNull(false)
		switch t.Kind {
		case types.Unknown, types.Void:
			t = types.Of(types.Text)
		case types.Interval, types.TimeTZ:
			t.Mod = 0
		case types.BpChar:
			if t.Len == 0 && t.Mod > 4 {
				t.Len = t.Mod - 4
			}
		case types.Varchar:
			if t.Len == 0 && t.Mod > 4 {
				t.Len = t.Mod - 4
			}
		case types.Numeric:
			if t.Mod == 0 && t.Prec > 0 && t.Scale > 0 {
				// The scale is the same for every row, and is printed.
				t = types.NumericOf(38, int(t.Scale))
			}
		case types.Record:
			return pgerr.New(pgerr.InvalidTableDefinition, "column %q has pseudo-type record", name)
		}
		ct, err := storedType(name, t, 0)
		if err != nil {
			return err
		}
		if err := d.add(defColumn{name: name, typ: ct}); err != nil {
			return err
		}
	}
	var pending, defaults []pendingConstraint
	if err := d.partitionBy(st.PartitionBy, &pending, &defaults); err != nil {
		return err
	}
	if len(d.cols) > len(cols) {
		return pgerr.New(pgerr.FeatureNotSupported, "the partition columns of CREATE TABLE AS must be columns of the query")
	}
	if err := d.setOptions(st.Options); err != nil {
		return err
	}
	if st.Comment != nil {
		d.comment = *st.Comment
	}
	return d.finish()
}

// fillTable writes the rows of a query into a table that was just made.
func (s *Session) fillTable(ctx context.Context, schemaName, name string, pl *planned, args []types.Datum) (int64, error) {
	rel, err := s.catalog().Resolve(ctx, schemaName, name, catalog.ResolveOptions{})
	if err != nil {
		return 0, err
	}
	t, ok := rel.(catalog.TableInfo)
	if !ok {
		return 0, pgerr.New(pgerr.WrongObjectType, "%q is not a table", name)
	}
	slots := make([]int, len(rel.Columns()))
	for i := range slots {
		slots[i] = i
	}
	m, err := s.newModifier(ctx, &planner.PlannedModify{
		Modify:    &plan.Modify{Op: plan.InsertOp, Target: t, Alias: name, Source: pl.frag, Action: -1, New: slots, File: -1, Pos: -1, RowID: -1},
		Relations: []catalog.Relation{rel},
	}, nil)
	if err != nil {
		return 0, err
	}
	defer m.close()
	q, stop, err := s.startQuery(ctx, pl, args)
	if err != nil {
		return 0, err
	}
	defer stop()
	defer q.Close() //nolint:errcheck // a reader: what it read is what counts
	for {
		b, err := q.Next(ctx)
		if err != nil {
			return 0, err
		}
		if b == nil {
			return m.finish(ctx)
		}
		if _, err := m.rows(ctx, b); err != nil {
			return 0, err
		}
	}
}
