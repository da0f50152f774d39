package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/pgcatalog"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/planner"
)

// constraintSet collects the constraints of a table: those that it has and those
// that a statement adds.
type constraintSet struct {
	s      *Session
	text   string
	schema string
	table  string
	list   []catalog.Constraint
	// warn collects warnings for what is kept and not enforced.
	warn []string
	// opts bind expressions.
	opts planner.Options
}

func (c *constraintSet) find(name string) int {
	return slices.IndexFunc(c.list, func(x catalog.Constraint) bool { return x.Name == name })
}

// name returns the name of a new constraint: the one given, or PostgreSQL's.
func (c *constraintSet) name(given ast.Ident, columns, label string) (string, error) {
	if !given.Empty() {
		if c.find(given.Name) >= 0 || given.Name == pgcatalog.KeyName(c.table) {
			return "", pgerr.New(pgerr.DuplicateObject, "constraint %q for relation %q already exists", given.Name, c.table)
		}
		return given.Name, nil
	}
	for i := 0; ; i++ {
		l := label
		if i > 0 {
			l = fmt.Sprintf("%s%d", label, i)
		}
		if n := catalog.ObjectName(c.table, columns, l); c.find(n) < 0 {
			return n, nil
		}
	}
}

// check adds a CHECK over the columns cols.
func (c *constraintSet) check(ctx context.Context, k *ast.Constraint, cols types.Schema) (catalog.Constraint, error) {
	var out catalog.Constraint
	if err := c.bindCheck(ctx, k.Expr, cols); err != nil {
		return out, err
	}
	refs := namesIn(k.Expr)
	label := ""
	if len(refs) == 1 {
		label = refs[0]
	}
	name, err := c.name(k.Name, label, "check")
	if err != nil {
		return out, err
	}
	out = catalog.Constraint{Name: name, Kind: catalog.CheckConstraint, Expr: ast.Format(unqualified(k.Expr, c.table)), Columns: refs}
	c.list = append(c.list, out)
	return out, nil
}

// bindCheck looks for errors in the condition of a CHECK.
func (c *constraintSet) bindCheck(ctx context.Context, e ast.Expr, cols types.Schema) error {
	if err := plainExpr(c.text, e, "check constraint", false); err != nil {
		return err
	}
	_, err := planner.PlanExprOver(ctx, e, c.text, cols, c.table, types.Of(types.Bool), c.opts)
	var pe *pgerr.Error
	if !errors.As(err, &pe) {
		return err
	}
	if pe.Code == pgerr.DatatypeMismatch {
		if x, xerr := planner.PlanExprOver(ctx, e, c.text, cols, c.table, types.Type{}, c.opts); xerr == nil {
			w := *pe
			w.Message = fmt.Sprintf("argument of CHECK must be type boolean, not type %s", x.Type().WithNotNull(false))
			w.Hint = ""
			return &w
		}
	}
	return inPlace(pe, "check constraints")
}

// namesIn returns the columns that an expression names, in order, each once.
func namesIn(e ast.Expr) []string {
	var out []string
	ast.Walk(e, func(n ast.Node) bool {
		if r, ok := n.(*ast.ColumnRef); ok && !r.Star {
			if name := r.Parts.Last(); !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
		return true
	})
	return out
}

// unqualified takes the table's name away from column references, so that the
// expression survives a renaming of the table. e is changed in place.
func unqualified(e ast.Expr, table string) ast.Expr {
	ast.Walk(e, func(n ast.Node) bool {
		if r, ok := n.(*ast.ColumnRef); ok && len(r.Parts) > 1 && r.Parts[len(r.Parts)-2].Name == table {
			r.Parts = r.Parts[len(r.Parts)-1:]
		}
		return true
	})
	return e
}

// keepUnenforced decides about a constraint that is kept and not enforced.
func (c *constraintSet) keepUnenforced(what, name string, pos ast.Pos) error {
	mode, _ := c.s.set.get("paimon.unenforced_constraints")
	switch mode {
	case "error":
		return errAt(c.text, pos, pgerr.FeatureNotSupported, "%s constraints are not enforced", what).
			WithHint("SET paimon.unenforced_constraints = 'warn' keeps them without enforcing them.")
	case "ignore":
		return nil
	}
	c.warn = append(c.warn, fmt.Sprintf("%s constraint %q is kept but not enforced", what, name))
	return nil
}

// unique adds a UNIQUE.
func (c *constraintSet) unique(k *ast.Constraint, columns []ast.Ident, cols types.Schema) error {
	if !k.UsingIndex.Empty() {
		return errAt(c.text, k.Pos, pgerr.FeatureNotSupported, "UNIQUE USING INDEX is not supported")
	}
	names, err := keyColumns(c.text, k, columns, cols, "unique constraint")
	if err != nil {
		return err
	}
	if i := c.find(k.Name.Name); !k.Name.Empty() && i >= 0 {
		return pgerr.New(pgerr.DuplicateTable, "relation %q already exists", k.Name.Name)
	}
	name, err := c.name(k.Name, strings.Join(names, "_"), "key")
	if err != nil {
		return err
	}
	if err := c.keepUnenforced("UNIQUE", name, k.Pos); err != nil {
		return err
	}
	c.list = append(c.list, catalog.Constraint{Name: name, Kind: catalog.UniqueConstraint, Columns: names})
	return nil
}

// keyColumns checks the columns of a PRIMARY KEY or UNIQUE.
func keyColumns(text string, k *ast.Constraint, columns []ast.Ident, cols types.Schema, what string) ([]string, error) {
	var names []string
	for _, id := range columns {
		if cols.Index(id.Name) < 0 {
			return nil, errAt(text, k.Pos, pgerr.UndefinedColumn, "column %q named in key does not exist", id.Name)
		}
		if slices.Contains(names, id.Name) {
			return nil, errAt(text, k.Pos, pgerr.DuplicateColumn, "column %q appears twice in %s", id.Name, what)
		}
		names = append(names, id.Name)
	}
	if len(k.Include) > 0 {
		return nil, errAt(text, k.Pos, pgerr.FeatureNotSupported, "INCLUDE columns of a key are not supported")
	}
	return names, nil
}

// withAttributes gives a column's constraints the DEFERRABLE and INITIALLY DEFERRED
// that stand behind them. The statement keeps its own: it may be run again.
func withAttributes(list []*ast.Constraint) []*ast.Constraint {
	var out []*ast.Constraint
	for _, k := range list {
		switch k.Kind {
		case ast.AttrDeferrable, ast.AttrInitiallyDeferred:
			if n := len(out); n > 0 {
				c := *out[n-1]
				c.Deferrable = true
				c.Deferred = c.Deferred || k.Kind == ast.AttrInitiallyDeferred
				out[n-1] = &c
			}
		default:
			out = append(out, k)
		}
	}
	return out
}

// foreign adds a FOREIGN KEY. primary is the table's own key, which it may refer
// to.
func (c *constraintSet) foreign(ctx context.Context, k *ast.Constraint, columns []ast.Ident, cols types.Schema, primary []string) error {
	var names []string
	for _, id := range columns {
		if cols.Index(id.Name) < 0 {
			return pgerr.New(pgerr.UndefinedColumn, "column %q referenced in foreign key constraint does not exist", id.Name)
		}
		names = append(names, id.Name)
	}
	refTable, refCols, err := c.referenced(ctx, k, cols, primary, len(names))
	if err != nil {
		return err
	}
	name, err := c.name(k.Name, strings.Join(names, "_"), "fkey")
	if err != nil {
		return err
	}
	if err := c.keepUnenforced("FOREIGN KEY", name, k.Pos); err != nil {
		return err
	}
	refs := refTable + "(" + identList(refCols) + ")"
	if k.Match != "" && k.Match != "SIMPLE" {
		refs += " MATCH " + k.Match
	}
	for _, a := range []struct {
		when string
		act  *ast.KeyAction
	}{{"UPDATE", k.OnUpdate}, {"DELETE", k.OnDelete}} {
		if a.act != nil && a.act.Action != "NO ACTION" {
			refs += " ON " + a.when + " " + a.act.Action
			if len(a.act.Columns) > 0 {
				cols := make([]string, len(a.act.Columns))
				for i, id := range a.act.Columns {
					cols[i] = id.Name
				}
				refs += " (" + identList(cols) + ")"
			}
		}
	}
	if k.Deferrable || k.Deferred {
		refs += " DEFERRABLE"
	}
	if k.Deferred {
		refs += " INITIALLY DEFERRED"
	}
	c.list = append(c.list, catalog.Constraint{Name: name, Kind: catalog.ForeignKey, Columns: names, References: refs})
	return nil
}

// referenced finds what a FOREIGN KEY refers to: the table as SQL and its columns.
func (c *constraintSet) referenced(ctx context.Context, k *ast.Constraint, cols types.Schema, primary []string, n int) (string, []string, error) {
	var target types.Schema
	var key []string
	var unique [][]string
	label, shown := k.References.Last(), ""
	if c.isSelf(k.References) {
		target, key, shown = cols, primary, ast.QuoteIdent(c.table)
		if c.schema != catalog.PublicSchema {
			shown = ast.QuoteIdent(c.schema) + "." + shown
		}
		for _, x := range c.list {
			if x.Kind == catalog.UniqueConstraint {
				unique = append(unique, x.Columns)
			}
		}
	} else {
		rel, err := c.s.newResolver().Relation(ctx, k.References, resolveDefaults(c.s))
		if err != nil {
			return "", nil, err
		}
		t, ok := rel.(catalog.TableInfo)
		if !ok {
			return "", nil, pgerr.New(pgerr.WrongObjectType, "referenced relation %q is not a table", rel.Name())
		}
		if err := c.s.mayUse(ctx, rel, roles.References); err != nil {
			return "", nil, err
		}
		for _, col := range rel.Columns() {
			target = append(target, col.Field)
		}
		key = t.PrimaryKey()
		for _, x := range catalog.Constraints(t.Options()) {
			if x.Kind == catalog.UniqueConstraint {
				unique = append(unique, x.Columns)
			}
		}
		label, shown = rel.Name(), ast.QuoteIdent(rel.Name())
		if rel.Schema() != catalog.PublicSchema {
			shown = ast.QuoteIdent(rel.Schema()) + "." + shown
		}
	}
	var refs []string
	for _, id := range k.RefColumns {
		if target.Index(id.Name) < 0 {
			return "", nil, pgerr.New(pgerr.UndefinedColumn, "column %q referenced in foreign key constraint does not exist", id.Name)
		}
		refs = append(refs, id.Name)
	}
	if len(refs) == 0 {
		if len(key) == 0 {
			return "", nil, pgerr.New(pgerr.UndefinedObject, "there is no primary key for referenced table %q", label)
		}
		refs = key
	}
	if len(refs) != n {
		return "", nil, pgerr.New(pgerr.InvalidForeignKey, "number of referencing and referenced columns for foreign key disagree")
	}
	matches := sameSet(refs, key)
	for _, u := range unique {
		matches = matches || sameSet(refs, u)
	}
	if !matches {
		return "", nil, pgerr.New(pgerr.InvalidForeignKey, "there is no unique constraint matching given keys for referenced table %q", label)
	}
	return shown, refs, nil
}

func (c *constraintSet) isSelf(n ast.Name) bool {
	if n.Last() != c.table {
		return false
	}
	return len(n) == 1 || catalog.SchemaOf(n[len(n)-2].Name) == c.schema
}

func sameSet(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for _, x := range a {
		if !slices.Contains(b, x) {
			return false
		}
	}
	return true
}
