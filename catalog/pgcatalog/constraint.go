package pgcatalog

import (
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// kept returns the constraints of a table that Paimon has no place for: CHECK,
// UNIQUE and FOREIGN KEY.
func kept(rel catalog.Relation) []catalog.Constraint {
	if t, ok := rel.(catalog.TableInfo); ok {
		return catalog.Constraints(t.Options())
	}
	return nil
}

// keptOID is the OID of such a constraint.
func keptOID(rel catalog.Relation, c catalog.Constraint) uint32 {
	return catalog.OIDOf('c', rel.Schema(), rel.Name()+"."+c.Name)
}

// ConstraintDef is pg_get_constraintdef of a constraint kept in options; visible names
// the table that a FOREIGN KEY refers to, nil always with its schema.
func ConstraintDef(c catalog.Constraint, visible func(schema, name string) string) string {
	switch c.Kind {
	case catalog.CheckConstraint:
		return "CHECK ((" + c.Expr + "))"
	case catalog.UniqueConstraint:
		return "UNIQUE (" + quoteList(c.Columns) + ")"
	}
	refers := c.References
	if visible != nil {
		ref := catalog.ParseReference(refers)
		refers = visible(ref.Schema, ref.Table) + ref.Tail(quoteIdent)
	}
	return "FOREIGN KEY (" + quoteList(c.Columns) + ") REFERENCES " + refers
}

func quoteList(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = quoteIdent(n)
	}
	return strings.Join(out, ", ")
}

// numbersOf returns the column numbers of names; nil (NULL) for none.
func numbersOf(rel catalog.Relation, names []string) types.Datum {
	if len(names) == 0 {
		return nil
	}
	var out []types.Datum
	for _, n := range names {
		out = append(out, attNum(rel, n))
	}
	return out
}

// fillConstraint lists primary keys and what options keep.
func fillConstraint(f *Filler) error {
	return f.eachOf("conrelid", func(rel catalog.Relation) error {
		ns := NamespaceOID(rel.Schema())
		if len(key(rel)) > 0 {
			f.Row("oid", ConstraintOID(rel), "conname", KeyName(rel.Name()), "connamespace", ns, "contype", "p",
				"convalidated", true, "conrelid", rel.OID(), "conindid", IndexOID(rel), "confupdtype", " ", "confdeltype", " ",
				"confmatchtype", " ", "conislocal", true, "connoinherit", true, "conkey", keyNumbers(rel))
		}
		for _, c := range kept(rel) {
			switch c.Kind {
			case catalog.CheckConstraint:
				f.Row("oid", keptOID(rel, c), "conname", c.Name, "connamespace", ns, "contype", "c", "convalidated", true,
					"conrelid", rel.OID(), "confupdtype", " ", "confdeltype", " ", "confmatchtype", " ", "conislocal", true,
					"conkey", numbersOf(rel, c.Columns), "conbin", "("+c.Expr+")")
			case catalog.UniqueConstraint:
				f.Row("oid", keptOID(rel, c), "conname", c.Name, "connamespace", ns, "contype", "u", "convalidated", false,
					"conrelid", rel.OID(), "confupdtype", " ", "confdeltype", " ", "confmatchtype", " ", "conislocal", true,
					"connoinherit", true, "conkey", numbersOf(rel, c.Columns))
			case catalog.ForeignKey:
				ref := catalog.ParseReference(c.References)
				var confrel, confkey, conind types.Datum = int64(0), nil, int64(0)
				if to, err := f.Src.Catalog().Resolve(f.Ctx, ref.Schema, ref.Table, catalog.ResolveOptions{}); err == nil {
					confrel, confkey = int64(to.OID()), numbersOf(to, ref.Columns)
					if len(key(to)) > 0 {
						conind = int64(IndexOID(to))
					}
				}
				f.Row("oid", keptOID(rel, c), "conname", c.Name, "connamespace", ns, "contype", "f", "convalidated", false,
					"conrelid", rel.OID(), "conindid", conind, "confrelid", confrel, "confupdtype", ref.OnUpdate(),
					"confdeltype", ref.OnDelete(), "confmatchtype", ref.Match(), "conislocal", true, "connoinherit", true,
					"condeferrable", ref.Has(" DEFERRABLE"), "condeferred", ref.Has(" INITIALLY DEFERRED"),
					"conkey", numbersOf(rel, c.Columns), "confkey", confkey)
			}
		}
		return nil
	})
}

// checks counts the CHECK constraints of a relation and says whether it has
// foreign keys.
func checks(rel catalog.Relation) (n int, foreign bool) {
	for _, c := range kept(rel) {
		switch c.Kind {
		case catalog.CheckConstraint:
			n++
		case catalog.ForeignKey:
			foreign = true
		}
	}
	return n, foreign
}

// notNullName is information_schema's name of a NOT NULL constraint.
func notNullName(rel catalog.Relation, c catalog.Column) string {
	return datumText(int(NamespaceOID(rel.Schema()))) + "_" + datumText(int(rel.OID())) + "_" + datumText(int(c.AttNum)) + "_not_null"
}

func fillISTableConstraints(f *Filler) error {
	return f.eachNamed("table_schema", "table_name", func(rel catalog.Relation) error {
		one := func(name, kind string, enforced string) {
			f.Row("constraint_catalog", f.Src.Database(), "constraint_schema", rel.Schema(), "constraint_name", name,
				"table_catalog", f.Src.Database(), "table_schema", rel.Schema(), "table_name", rel.Name(), "constraint_type", kind,
				"is_deferrable", "NO", "initially_deferred", "NO", "enforced", enforced)
		}
		if len(key(rel)) > 0 {
			one(KeyName(rel.Name()), "PRIMARY KEY", "YES")
		}
		for _, c := range kept(rel) {
			switch c.Kind {
			case catalog.CheckConstraint:
				one(c.Name, "CHECK", "YES")
			case catalog.UniqueConstraint:
				one(c.Name, "UNIQUE", "NO")
			case catalog.ForeignKey:
				one(c.Name, "FOREIGN KEY", "NO")
			}
		}
		if rel.Kind() != 'v' {
			for _, c := range rel.Columns() {
				if c.NotNull {
					one(notNullName(rel, c), "CHECK", "YES")
				}
			}
		}
		return nil
	})
}

func fillISCheckConstraints(f *Filler) error {
	return eachTable(f.Ctx, f.Src, func(rel catalog.Relation) error {
		one := func(name, clause string) {
			f.Row("constraint_catalog", f.Src.Database(), "constraint_schema", rel.Schema(), "constraint_name", name, "check_clause", clause)
		}
		for _, c := range kept(rel) {
			if c.Kind == catalog.CheckConstraint {
				one(c.Name, "(("+c.Expr+"))")
			}
		}
		if rel.Kind() != 'v' {
			for _, c := range rel.Columns() {
				if c.NotNull {
					one(notNullName(rel, c), c.Name+" IS NOT NULL")
				}
			}
		}
		return nil
	})
}

// keyColumn is a column of a PRIMARY KEY, UNIQUE or FOREIGN KEY.
func eachKeyColumn(rel catalog.Relation, fn func(constraint, column string, pos int, c *catalog.Constraint)) {
	for i, k := range key(rel) {
		fn(KeyName(rel.Name()), k, i+1, nil)
	}
	for _, c := range kept(rel) {
		if c.Kind == catalog.CheckConstraint {
			continue
		}
		for i, k := range c.Columns {
			fn(c.Name, k, i+1, &c)
		}
	}
}

func fillISKeyColumn(f *Filler) error {
	return f.eachNamed("table_schema", "table_name", func(rel catalog.Relation) error {
		eachKeyColumn(rel, func(name, column string, pos int, c *catalog.Constraint) {
			var inUnique types.Datum
			if c != nil && c.Kind == catalog.ForeignKey {
				inUnique = int64(pos)
			}
			f.Row("constraint_catalog", f.Src.Database(), "constraint_schema", rel.Schema(), "constraint_name", name,
				"table_catalog", f.Src.Database(), "table_schema", rel.Schema(), "table_name", rel.Name(), "column_name", column,
				"ordinal_position", pos, "position_in_unique_constraint", inUnique)
		})
		return nil
	})
}

func fillISConstraintColumn(f *Filler) error {
	return eachTable(f.Ctx, f.Src, func(rel catalog.Relation) error {
		one := func(schema, table, column, name string) {
			f.Row("table_catalog", f.Src.Database(), "table_schema", schema, "table_name", table, "column_name", column,
				"constraint_catalog", f.Src.Database(), "constraint_schema", rel.Schema(), "constraint_name", name)
		}
		for _, k := range key(rel) {
			one(rel.Schema(), rel.Name(), k, KeyName(rel.Name()))
		}
		for _, c := range kept(rel) {
			if c.Kind == catalog.ForeignKey {
				ref := catalog.ParseReference(c.References)
				for _, k := range ref.Columns {
					one(ref.Schema, ref.Table, k, c.Name)
				}
				continue
			}
			for _, k := range c.Columns {
				one(rel.Schema(), rel.Name(), k, c.Name)
			}
		}
		return nil
	})
}

func fillISReferential(f *Filler) error {
	rules := map[string]string{"a": "NO ACTION", "r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}
	return eachTable(f.Ctx, f.Src, func(rel catalog.Relation) error {
		for _, c := range kept(rel) {
			if c.Kind != catalog.ForeignKey {
				continue
			}
			ref := catalog.ParseReference(c.References)
			f.Row("constraint_catalog", f.Src.Database(), "constraint_schema", rel.Schema(), "constraint_name", c.Name,
				"unique_constraint_catalog", f.Src.Database(), "unique_constraint_schema", ref.Schema,
				"unique_constraint_name", KeyName(ref.Table), "match_option", "NONE",
				"update_rule", rules[ref.OnUpdate()], "delete_rule", rules[ref.OnDelete()])
		}
		return nil
	})
}
