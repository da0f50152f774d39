package engine

import (
	"context"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/pgcatalog"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// schemaTable is implemented by relations that know the Paimon schema they are
// read with.
type schemaTable interface {
	TableSchema() *schema.Table
}

// addLike copies the columns of another table and what the options say.
// INCLUDING ALL makes a table of the same kind: Paimon's options and partition
// columns are copied with it.
func (d *tableDef) addLike(ctx context.Context, l *ast.LikeTable) error {
	rel, err := d.s.newResolver().Relation(ctx, l.Name, resolveDefaults(d.s))
	if err != nil {
		return atPosition(err, d.text, l.Name.Pos())
	}
	if err := d.s.mayUse(ctx, rel, roles.Select); err != nil {
		return err
	}
	inc := map[string]bool{}
	for _, o := range l.Options {
		for _, w := range likeWords(o.What) {
			inc[w] = !o.Excluding
		}
	}
	st, _ := rel.(schemaTable)
	var options map[string]string
	if t, ok := rel.(catalog.TableInfo); ok {
		options = t.Options()
	}
	for i, c := range rel.Columns() {
		col := defColumn{name: c.Name, notNull: c.NotNull}
		if st != nil {
			f := st.TableSchema().Fields[i]
			col.typ = columnType{stored: f.Type, sql: c.Type, pg: options[pgTypeOption(f.Name)]}
		} else if col.typ, err = storedType(c.Name, c.Type, 0); err != nil {
			return err
		}
		if inc["COMMENTS"] {
			col.comment = c.Description
		}
		if id := catalog.IdentityOf(c.Name, options); id != "" {
			if inc["IDENTITY"] {
				if err := d.likeIdentity(ctx, &col, rel, id); err != nil {
					return err
				}
			}
		} else if inc["DEFAULTS"] {
			if text, constant, ok := catalog.DefaultOf(c.Field, options); ok {
				col.def = &columnDefault{text: text, constant: constant}
			}
		}
		if err := d.add(col); err != nil {
			return err
		}
	}
	t, ok := rel.(catalog.TableInfo)
	if !ok {
		return nil
	}
	if inc["COMMENTS"] {
		d.comment = t.Comment()
	}
	if inc["INDEXES"] {
		if d.hasPrimary && len(t.PrimaryKey()) > 0 {
			return pgerr.New(pgerr.InvalidTableDefinition, "multiple primary keys for table %q are not allowed", d.name)
		}
		d.primary = append([]string(nil), t.PrimaryKey()...)
		d.hasPrimary = len(d.primary) > 0
	}
	for _, c := range catalog.Constraints(options) {
		switch {
		case c.Kind == catalog.CheckConstraint && inc["CONSTRAINTS"]:
			if d.set.find(c.Name) >= 0 {
				return pgerr.New(pgerr.DuplicateObject, "check constraint %q already exists", c.Name)
			}
			d.set.list = append(d.set.list, c)
		case c.Kind == catalog.UniqueConstraint && inc["INDEXES"]:
			name, err := d.set.name(ast.Ident{}, strings.Join(c.Columns, "_"), "key")
			if err != nil {
				return err
			}
			if err := d.set.keepUnenforced("UNIQUE", name, l.Pos); err != nil {
				return err
			}
			c.Name = name
			d.set.list = append(d.set.list, c)
		}
	}
	if inc["INDEXES"] {
		// Under the names that they get by default, which say the new table's.
		for k, v := range options {
			if rest, ok := strings.CutPrefix(k, fileIndexOption); ok && strings.Contains(rest, ".") {
				d.options[k] = v
			}
		}
	}
	if inc["PARTITIONS"] {
		d.partition = append([]string(nil), t.PartitionKeys()...)
	}
	if inc["OPTIONS"] {
		for k, v := range options {
			if k != "path" && !strings.HasPrefix(k, "pg-type.") && !strings.HasPrefix(k, "pg-default.") && !strings.HasPrefix(k, "pg-identity.") && !strings.HasPrefix(k, "pg-constraint.") && !strings.HasPrefix(k, catalog.IndexPrefix) {
				d.options[k] = v
			}
		}
	}
	return nil
}

// likeWords are the things that a word of LIKE's options stands for.
func likeWords(what string) []string {
	switch w := strings.ToUpper(what); w {
	case "ALL":
		return []string{"COMMENTS", "CONSTRAINTS", "DEFAULTS", "IDENTITY", "INDEXES", "OPTIONS", "PARTITIONS"}
	default:
		return []string{w}
	}
}

// constraintsOf returns the constraints of a table, its primary key left out.
func (s *Session) constraintsOf(text string, rel catalog.TableInfo) constraintSet {
	return constraintSet{
		s: s, text: text, schema: rel.Schema(), table: rel.Name(), list: catalog.Constraints(rel.Options()), opts: s.planOptions(),
	}
}

// constraintSQL is a constraint as CREATE TABLE takes it.
func constraintSQL(c catalog.Constraint) string {
	return "CONSTRAINT " + ast.QuoteIdent(c.Name) + " " + pgcatalog.ConstraintDef(c, nil)
}
