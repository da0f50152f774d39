package engine

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/paimon-sql/paimon-sql/internal/pgcopy"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// copyOptions reads the options of COPY.
func copyOptions(st *ast.Copy, text string) (*pgcopy.Options, error) {
	opts := make([]pgcopy.Option, len(st.Options))
	for i, o := range st.Options {
		c := pgcopy.Option{Name: o.Name, Value: optionText(o), Given: o.Value != nil, Position: charPosition(text, o.Pos)}
		switch v := o.Value.(type) {
		case *ast.OptionList:
			c.IsList = true
			for _, it := range v.Items {
				c.List = append(c.List, optionText(&ast.Option{Value: it}))
			}
		case *ast.OptionWord:
			c.Star = v.Text == "*"
		}
		opts[i] = c
	}
	return pgcopy.ParseOptions(st.From, opts)
}

// copyForced checks the columns of FORCE options: all are the relation's, chosen
// those that take part. relation is "" for a query.
func copyForced(o *pgcopy.Options, relation string, all, chosen []string) error {
	for _, f := range []struct {
		name string
		cols []string
	}{{"FORCE_QUOTE", o.ForceQuote}, {"FORCE_NOT_NULL", o.ForceNotNull}, {"FORCE_NULL", o.ForceNull}} {
		for i, c := range f.cols {
			switch {
			case !slices.Contains(all, c) && relation != "":
				return pgerr.New(pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", c, relation)
			case !slices.Contains(all, c):
				return pgerr.New(pgerr.UndefinedColumn, "column \"%s\" does not exist", c)
			case slices.Contains(f.cols[:i], c):
				return pgerr.New(pgerr.DuplicateColumn, "column \"%s\" specified more than once", c)
			case !slices.Contains(chosen, c):
				return pgerr.New(pgerr.InvalidColumnReference, "%s column \"%s\" not referenced by COPY", f.name, c)
			}
		}
	}
	return nil
}

// runCopy is COPY.
func (s *Session) runCopy(ctx, life context.Context, p *prepared, st *ast.Copy, out ResultSink) (*running, error) {
	f, err := copyOptions(st, p.text)
	if err != nil {
		return nil, err
	}
	switch {
	case st.From:
		return s.runCopyIn(ctx, p, st, f, out)
	case st.Program:
		return nil, pgerr.New(pgerr.FeatureNotSupported, "COPY TO PROGRAM is not supported")
	case !st.Std:
		return nil, pgerr.New(pgerr.FeatureNotSupported, "COPY to a file of the server is not supported").
			WithHint("COPY TO STDOUT and psql's \\copy write files of the client.")
	}
	stream, ok := out.(CopySink)
	if !ok {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "COPY TO STDOUT needs a client that takes a stream")
	}
	r, err := s.copyRows(ctx, life, p, st, f)
	if err != nil {
		return nil, err
	}
	defer r.close()
	schema := make(types.Schema, len(r.cols))
	for i, c := range r.cols {
		schema[i] = types.Field{Name: c.Name, Type: c.Type}
	}
	enc := pgcopy.NewEncoder(f, schema, s.TextStyle())
	enc.OIDName = s.OIDNames()
	head, err := enc.Head()
	head = bytes.Clone(head)
	if err != nil {
		return nil, err
	}
	w, err := stream.CopyOut(ctx, f.Format == pgcopy.Binary, len(r.cols))
	if err != nil {
		return nil, err
	}
	progress := &copyProgress{typ: "PIPE"}
	if len(r.cols) > 0 {
		progress.oid = r.cols[0].TableOID
	}
	if st.Table == nil {
		progress.oid = 0
	}
	s.copying.Store(progress)
	defer s.copying.Store(nil)
	var rows int64
	write := func(b []byte) error {
		// The binary header has no message of its own.
		if head != nil && f.Format == pgcopy.Binary {
			b = append(head, b...)
		} else if head != nil {
			if _, err := w.Write(head); err != nil {
				return err
			}
		}
		head = nil
		if b == nil {
			return nil
		}
		progress.bytes.Add(int64(len(b)))
		progress.rows.Store(rows)
		_, err := w.Write(b)
		return err
	}
	for {
		b, err := r.src.Next(ctx)
		if err != nil {
			return nil, err
		}
		if b == nil {
			break
		}
		err = enc.Rows(b, func(row []byte) error {
			rows++
			return write(row)
		})
		if err != nil {
			return nil, err
		}
	}
	if tail := enc.Tail(); tail != nil || head != nil {
		if err := write(tail); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return &running{tag: fixedTag(fmt.Sprintf("COPY %d", rows))}, nil
}

// copyRows starts what COPY TO reads: the columns of a table, a query, or what a
// data-changing statement returns.
func (s *Session) copyRows(ctx, life context.Context, p *prepared, st *ast.Copy, f *pgcopy.Options) (*running, error) {
	var all, chosen []string
	relation := ""
	q := st.Query
	if q == nil {
		t, names, err := s.copyTable(ctx, st)
		if err != nil {
			return nil, err
		}
		t.Pos = st.Pos // the plan cache tells statements of one text by it
		q, relation, all = t, st.Table.Last(), names
		for _, c := range st.Columns {
			chosen = append(chosen, c.Name)
		}
		if chosen == nil {
			chosen = all
		}
	}
	sub := &prepared{stmt: q, text: p.text, fixed: true}
	var r *running
	var err error
	switch {
	case isQuery(q):
		pl, perr := s.plan(ctx, sub, nil)
		if perr != nil {
			return nil, perr
		}
		if err := s.permit(ctx, pl); err != nil {
			return nil, err
		}
		r, err = s.execute(life, pl, nil, selectTag)
	case changesData(q):
		if sub.plan, err = s.plan(ctx, sub, nil); err != nil {
			return nil, err
		}
		if sub.plan.cols == nil {
			return nil, pgerr.New(pgerr.FeatureNotSupported, "COPY query must have a RETURNING clause")
		}
		r, err = s.runModify(ctx, sub, nil)
		s.tx.redo = nil // its rows are sent before the commit
	default:
		return nil, pgerr.New(pgerr.FeatureNotSupported, "COPY of %s is not supported", commandName(q))
	}
	if err != nil {
		return nil, err
	}
	if st.Query != nil {
		for _, c := range r.cols {
			all = append(all, c.Name)
		}
		chosen = all
	}
	if err := copyForced(f, relation, all, chosen); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// copyTable is the query that reads the columns of COPY's table, and the names of
// all of them.
func (s *Session) copyTable(ctx context.Context, st *ast.Copy) (*ast.Query, []string, error) {
	rel, err := s.newResolver().Relation(ctx, st.Table, resolveDefaults(s))
	if err != nil {
		return nil, nil, err
	}
	if rel.Kind() == 'v' && rel.Schema() != "pg_catalog" && rel.Schema() != "information_schema" {
		return nil, nil, pgerr.New(pgerr.WrongObjectType, "cannot copy from view %q", rel.Name()).WithHint("Try the COPY (SELECT ...) TO variant.")
	}
	sel := &ast.Select{From: []ast.TableRef{&ast.TableName{Name: st.Table}}}
	if len(st.Columns) == 0 {
		sel.Targets = []*ast.Target{{Expr: &ast.ColumnRef{Star: true}}}
	}
	var names []string
	for _, c := range rel.Columns() {
		names = append(names, c.Name)
	}
	for i, c := range st.Columns {
		if !slices.Contains(names, c.Name) {
			return nil, nil, pgerr.New(pgerr.UndefinedColumn, "column %q of relation %q does not exist", c.Name, rel.Name())
		}
		if slices.ContainsFunc(st.Columns[:i], func(x ast.Ident) bool { return x.Name == c.Name }) {
			return nil, nil, pgerr.New(pgerr.DuplicateColumn, "column %q specified more than once", c.Name)
		}
		sel.Targets = append(sel.Targets, &ast.Target{Expr: &ast.ColumnRef{Parts: ast.Name{c}}})
	}
	return &ast.Query{Body: sel}, names, nil
}
