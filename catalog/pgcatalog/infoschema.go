package pgcatalog

import (
	"strconv"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/objects"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

func fillISCatalogName(f *Filler) error {
	f.Row("catalog_name", f.Src.Database())
	return nil
}

func fillISCharacterSets(f *Filler) error {
	f.Row("character_set_name", "UTF8", "character_repertoire", "UCS", "form_of_use", "UTF8", "default_collate_catalog", f.Src.Database(),
		"default_collate_schema", "pg_catalog", "default_collate_name", "default")
	return nil
}

func fillISSchemata(f *Filler) error {
	names, err := schemas(f.Ctx, f.Src)
	if err != nil {
		return err
	}
	for _, n := range names {
		owner := f.Src.Model().Access(roles.SchemaKey(n)).Owner
		if f.Src.EnabledRole(owner) || f.Src.May(roles.SchemaKey(n), roles.Schema, roles.Schema.All()) {
			f.Row("catalog_name", f.Src.Database(), "schema_name", n, "schema_owner", f.roleName(owner))
		}
	}
	return nil
}

func fillISTables(f *Filler) error {
	one := func(schema, name string, kind byte, insertable string) {
		t := "BASE TABLE"
		if kind == 'v' {
			t = "VIEW"
		}
		f.Row("table_catalog", f.Src.Database(), "table_schema", schema, "table_name", name, "table_type", t,
			"is_insertable_into", insertable, "is_typed", "NO")
	}
	for i := range builtin() {
		if d := &builtin()[i]; f.Src.May(roles.RelationKey(d.Schema, d.Name), roles.Relation, roles.Select) {
			one(d.Schema, d.Name, d.Kind, "NO")
		}
	}
	return f.eachNamed("table_schema", "table_name", func(rel catalog.Relation) error {
		ins := "YES"
		if rel.Kind() == 'S' || !f.shows(rel) {
			return nil
		}
		if rel.Kind() == 'v' {
			ins = "NO"
		}
		one(rel.Schema(), rel.Name(), rel.Kind(), ins)
		return nil
	})
}

func fillISViews(f *Filler) error {
	return f.eachNamed("table_schema", "table_name", func(rel catalog.Relation) error {
		if v, ok := rel.(catalog.View); ok && f.shows(rel) {
			var text any
			if f.Src.EnabledRole(f.ownerOf(rel)) {
				text = ViewText(f.Ctx, f.Src, v, false)
			}
			f.Row("table_catalog", f.Src.Database(), "table_schema", rel.Schema(), "table_name", rel.Name(),
				"view_definition", text, "check_option", "NONE", "is_updatable", "NO", "is_insertable_into", "NO",
				"is_trigger_updatable", "NO", "is_trigger_deletable", "NO", "is_trigger_insertable_into", "NO")
		}
		return nil
	})
}

// numericInfo returns information_schema's numeric_precision, radix and scale.
func numericInfo(t types.Type) (prec, radix, scale any) {
	switch t.Kind {
	case types.TinyInt, types.Int2:
		return 16, 2, 0
	case types.Int4:
		return 32, 2, 0
	case types.Int8:
		return 64, 2, 0
	case types.Float4:
		return 24, 2, nil
	case types.Float8:
		return 53, 2, nil
	case types.Numeric:
		if t.Mod != 0 {
			m := t.Mod - 4
			return m >> 16 & 0xffff, 10, m & 0xffff
		}
		return nil, 10, nil
	}
	return nil, nil, nil
}

func fillISColumns(f *Filler) error {
	one := func(schema, table, name string, num int, t types.Type, notNull bool, def any, updatable string, id *objects.SequenceDef) {
		identity, generation, cycle := "NO", any(nil), "NO"
		var start, increment, maximum, minimum any
		if id != nil {
			identity, generation, cycle = "YES", map[string]string{"a": "ALWAYS", "d": "BY DEFAULT"}[id.Identity], yesNo(id.Cycle)
			start, increment = strconv.FormatInt(id.Start, 10), strconv.FormatInt(id.Increment, 10)
			maximum, minimum = strconv.FormatInt(id.Max, 10), strconv.FormatInt(id.Min, 10)
		}
		nullable := "YES"
		if notNull {
			nullable = "NO"
		}
		i := t.Info()
		plain := i.SQLName
		switch {
		case t.Kind == types.Array && !t.OnWireAsJSON():
			plain = "ARRAY"
		case t.Kind == types.BpChar:
			plain = "character"
		}
		var length, octets, dtPrec any
		switch t.Kind {
		case types.Varchar, types.BpChar:
			if t.Mod > 0 {
				length, octets = t.Mod-4, (t.Mod-4)*4
			} else {
				octets = 1 << 30
			}
		case types.Text:
			octets = 1 << 30
		case types.Time, types.Timestamp, types.TimestampTZ, types.TimeTZ:
			dtPrec = 6
			if t.Mod > 0 {
				dtPrec = t.Mod - 1
			}
		case types.Date:
			dtPrec = 0
		}
		prec, radix, scale := numericInfo(t)
		f.Row("table_catalog", f.Src.Database(), "table_schema", schema, "table_name", table, "column_name", name,
			"ordinal_position", num, "column_default", def, "is_nullable", nullable, "data_type", plain,
			"character_maximum_length", length, "character_octet_length", octets, "numeric_precision", prec,
			"numeric_precision_radix", radix, "numeric_scale", scale, "datetime_precision", dtPrec,
			"udt_catalog", f.Src.Database(), "udt_schema", "pg_catalog", "udt_name", i.Name, "dtd_identifier", datumText(num),
			"is_self_referencing", "NO", "is_identity", identity, "identity_generation", generation, "identity_start", start,
			"identity_increment", increment, "identity_maximum", maximum, "identity_minimum", minimum, "identity_cycle", cycle, "is_generated", "NEVER", "is_updatable", updatable)
	}
	for i := range builtin() {
		d := &builtin()[i]
		if !f.Src.May(roles.RelationKey(d.Schema, d.Name), roles.Relation, roles.Select) {
			continue
		}
		for j, c := range d.Fields {
			one(d.Schema, d.Name, c.Name, j+1, c.Type, c.Type.NotNull, nil, "NO", nil)
		}
	}
	identities, err := identityColumns(f)
	if err != nil {
		return err
	}
	return f.eachNamed("table_schema", "table_name", func(rel catalog.Relation) error {
		if rel.Kind() == 'S' {
			return nil
		}
		for _, c := range rel.Columns() {
			if !f.showsColumn(rel, c.Name) {
				continue
			}
			var def any
			if text, ok := DefaultText(f.Ctx, f.Src, rel, c); ok {
				def = text
			}
			updatable := "YES"
			if rel.Kind() != 'r' {
				updatable = "NO"
			}
			one(rel.Schema(), rel.Name(), c.Name, int(c.AttNum), c.Type, c.NotNull, def, updatable,
				identities[[3]string{rel.Schema(), rel.Name(), c.Name}])
		}
		return nil
	})
}
