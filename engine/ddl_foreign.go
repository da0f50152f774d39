package engine

import (
	"context"
	"slices"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/planner"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// FOREIGN KEYs are kept by the table that refers, with the other table's name: it has
// to follow when that table is renamed, and goes when that table is dropped with
// CASCADE.

// foreignUse is a FOREIGN KEY that refers to a table.
type foreignUse struct {
	rel catalog.TableInfo // the table that refers
	c   catalog.Constraint
	ref catalog.Reference
}

func (u *foreignUse) name() ast.Name {
	return ast.Name{{Name: u.rel.Schema(), Quoted: true}, {Name: u.rel.Name(), Quoted: true}}
}

// described is the constraint as messages about dependencies call it.
func (u *foreignUse) described(ctx context.Context, s *Session) string {
	return "constraint " + ast.QuoteIdent(u.c.Name) + " on " + s.described(ctx, 'r', u.rel.Schema(), u.rel.Name())
}

// foreignKeys lists the FOREIGN KEYs of all tables. Nothing remembers who refers to a
// table, so every one is looked at.
func (s *Session) foreignKeys(ctx context.Context) ([]foreignUse, error) {
	l, err := catalog.List(ctx, s.catalog(), false)
	if err != nil {
		return nil, err
	}
	var out []foreignUse
	for _, schemaName := range l.Schemas() {
		for _, rel := range l.Relations(schemaName) {
			from, ok := rel.(catalog.TableInfo)
			if !ok {
				continue
			}
			for _, c := range catalog.Constraints(from.Options()) {
				if c.Kind == catalog.ForeignKey {
					out = append(out, foreignUse{from, c, catalog.ParseReference(c.References)})
				}
			}
		}
	}
	return out, nil
}

// refersTo reports whether u refers to a table, or to a column of it when one is named.
func (u *foreignUse) refersTo(rel catalog.Relation, column string) bool {
	return u.ref.Schema == rel.Schema() && u.ref.Table == rel.Name() && (column == "" || slices.Contains(u.ref.Columns, column))
}

// canBeReferredTo reports whether a FOREIGN KEY may refer to a relation: it has a key.
func canBeReferredTo(rel catalog.Relation) bool {
	t, ok := rel.(catalog.TableInfo)
	return ok && (len(t.PrimaryKey()) > 0 ||
		slices.ContainsFunc(catalog.Constraints(t.Options()), func(c catalog.Constraint) bool { return c.Kind == catalog.UniqueConstraint }))
}

// renameInKeys is renameIn of FOREIGN KEYs.
func (s *Session) renameInKeys(ctx context.Context, ch planner.ViewChange) ([]func() error, error) {
	rel, err := s.catalog().Resolve(ctx, ch.Schema, ch.Name, catalog.ResolveOptions{})
	if err != nil {
		return nil, nil //nolint:nilerr // a view's name is not found here, and nothing refers to it
	}
	if !canBeReferredTo(rel) {
		return nil, nil
	}
	all, err := s.foreignKeys(ctx)
	if err != nil {
		return nil, err
	}
	var puts []func() error
	for _, u := range all {
		if !u.refersTo(rel, ch.Column) {
			continue
		}
		name, ref := u.name(), u.ref
		if ch.Column != "" {
			ref.Columns = slices.Clone(ref.Columns)
			for i, c := range ref.Columns {
				if c == ch.Column {
					ref.Columns[i] = ch.NewColumn
				}
			}
		} else {
			ref.Schema, ref.Table = ch.NewSchema, ch.NewName
			if u.rel.OID() == rel.OID() {
				name[0].Name, name[1].Name = ch.NewSchema, ch.NewName
			}
		}
		puts = append(puts, func() error {
			t, err := s.tableToChange(ctx, "", name, lockExclusive)
			if err != nil {
				return err
			}
			// The table itself may have changed: only what it refers to is replaced.
			for _, c := range catalog.Constraints(t.Options()) {
				if c.Name != u.c.Name || c.Kind != catalog.ForeignKey {
					continue
				}
				a, err := s.newAlteration("", t, nil)
				if err != nil {
					return err
				}
				c.References = ref.SQL(ast.QuoteIdent)
				key, value := c.Option()
				if err := a.do(&a.before, schema.SetOption{Key: key, Value: value}); err != nil {
					return err
				}
				return a.stage(ctx)
			}
			return nil
		})
	}
	return puts, nil
}
