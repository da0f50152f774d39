package pgcatalog

import (
	"context"

	"github.com/paimon-sql/paimon-sql/catalog"
)

// OIDs of pg_rewrite and pg_attrdef.
const (
	classRewrite = 2618
	classAttrdef = 2604
)

// ViewText is pg_get_viewdef of a view. The printer lives above this room, in a
// Sources that also has ViewText; without one it is the query as it is kept.
func ViewText(ctx context.Context, src Sources, v catalog.View, pretty bool) string {
	if p, ok := src.(interface {
		ViewText(ctx context.Context, v catalog.View, pretty bool) string
	}); ok {
		return p.ViewText(ctx, v, pretty)
	}
	return v.Query()
}

// commentOf is the comment of a table, view or sequence.
func commentOf(rel catalog.Relation) string {
	if c, ok := rel.(interface{ Comment() string }); ok {
		return c.Comment()
	}
	return ""
}

// ruleOID is the OID of the rule that a view is.
func ruleOID(v catalog.Relation) uint32 { return catalog.OIDOf('w', v.Schema(), v.Name()) }

// fillRewrite lists the rules of views.
func fillRewrite(f *Filler) error {
	return eachTable(f.Ctx, f.Src, func(rel catalog.Relation) error {
		if _, ok := rel.(*catalog.ViewRelation); ok {
			f.Row("oid", ruleOID(rel), "rulename", "_RETURN", "ev_class", rel.OID(), "ev_type", "1", "ev_enabled", "O", "is_instead", true,
				"ev_qual", "<>", "ev_action", "<>")
		}
		return nil
	})
}

// eachUse calls fn for every relation that a view reads, with the columns that it
// names.
func eachUse(f *Filler, fn func(v *catalog.ViewRelation, on catalog.Relation, columns []string)) error {
	return eachTable(f.Ctx, f.Src, func(rel catalog.Relation) error {
		v, ok := rel.(*catalog.ViewRelation)
		if !ok {
			return nil
		}
		for _, u := range v.Definition().Uses {
			if on, err := f.Src.Catalog().Resolve(f.Ctx, u.Schema, u.Name, catalog.ResolveOptions{}); err == nil {
				fn(v, on, u.Columns)
			}
		}
		return nil
	})
}

// fillDepend lists what views depend on, and sequences.
func fillDepend(f *Filler) error {
	if err := dependSequences(f); err != nil {
		return err
	}
	if err := eachTable(f.Ctx, f.Src, func(rel catalog.Relation) error {
		if v, ok := rel.(*catalog.ViewRelation); ok {
			f.Row("classid", classRewrite, "objid", ruleOID(v), "refclassid", classClass, "refobjid", v.OID(), "deptype", "i")
		}
		return nil
	}); err != nil {
		return err
	}
	return eachUse(f, func(v *catalog.ViewRelation, on catalog.Relation, columns []string) {
		f.Row("classid", classRewrite, "objid", ruleOID(v), "refclassid", classClass, "refobjid", on.OID(), "deptype", "n")
		for _, c := range columns {
			f.Row("classid", classRewrite, "objid", ruleOID(v), "refclassid", classClass, "refobjid", on.OID(), "refobjsubid", attNum(on, c),
				"deptype", "n")
		}
	})
}

func fillISViewTables(f *Filler) error {
	return eachUse(f, func(v *catalog.ViewRelation, on catalog.Relation, _ []string) {
		f.Row("view_catalog", f.Src.Database(), "view_schema", v.Schema(), "view_name", v.Name(), "table_catalog", f.Src.Database(),
			"table_schema", on.Schema(), "table_name", on.Name())
	})
}

func fillISViewColumns(f *Filler) error {
	return eachUse(f, func(v *catalog.ViewRelation, on catalog.Relation, columns []string) {
		for _, c := range columns {
			f.Row("view_catalog", f.Src.Database(), "view_schema", v.Schema(), "view_name", v.Name(), "table_catalog", f.Src.Database(),
				"table_schema", on.Schema(), "table_name", on.Name(), "column_name", c)
		}
	})
}
