package ast

import "strconv"

// systemTypes are the spellings of the types with a grammar of their own.
var systemTypes = map[string]string{
	"int2": "smallint", "int4": "integer", "int8": "bigint", "float4": "real", "float8": "double precision",
	"bool": "boolean", "bpchar": "char", "varchar": "varchar", "numeric": "numeric", "bit": "bit",
	"varbit": "bit varying", "interval": "interval", "time": "time", "timestamp": "timestamp",
	"timetz": "time", "timestamptz": "timestamp",
}

func (f *formatter) typeName(t *TypeName) {
	if t == nil {
		return
	}
	f.opt(t.SetOf, "SETOF ")
	switch {
	case t.System:
		f.systemType(t)
	case len(t.Args) > 0:
		f.s(t.Name.Last(), "<")
		each(f, t.Args, f.typeName)
		f.s(">")
	case len(t.Fields) > 0:
		f.s(t.Name.Last(), "<")
		each(f, t.Fields, f.typeField)
		f.s(">")
	case len(t.Name) == 1 && (t.Name[0].Name == "struct" || t.Name[0].Name == "row"):
		f.s(t.Name[0].Name, "<>")
	default:
		f.name(t.Name)
		f.opt(t.PctType, "%TYPE")
		if len(t.Mods) > 0 {
			f.parenExprs(t.Mods)
		}
	}
	for _, b := range t.Bounds {
		f.s("[")
		f.opt(b >= 0, strconv.Itoa(b))
		f.s("]")
	}
	f.opt(t.NotNull, " NOT NULL")
}

func (f *formatter) systemType(t *TypeName) {
	name := t.Name[0].Name
	f.s(systemTypes[name])
	switch {
	case name == "interval":
		if t.Interval == "" && len(t.Mods) > 0 {
			f.parenExprs(t.Mods)
		}
		f.intervalFields(t)
	case len(t.Mods) > 0:
		f.parenExprs(t.Mods)
	}
	f.opt(name == "timetz" || name == "timestamptz", " WITH TIME ZONE")
}

func (f *formatter) intervalFields(t *TypeName) {
	if t.Interval == "" {
		return
	}
	f.s(" ", t.Interval)
	if len(t.Mods) > 0 {
		f.parenExprs(t.Mods)
	}
}

func (f *formatter) typeField(x *TypeField) {
	f.ident(x.Name)
	f.s(" ")
	f.typeName(x.Type)
	if x.Comment != "" {
		f.s(" COMMENT ")
		f.str(x.Comment)
	}
}

func (f *formatter) colDefs(cs []*ColDef) {
	f.s("(")
	each(f, cs, func(c *ColDef) {
		f.ident(c.Name)
		f.s(" ")
		f.typeName(c.Type)
		if c.Collation != nil {
			f.s(" COLLATE ")
			f.name(c.Collation)
		}
	})
	f.s(")")
}

func (f *formatter) param(p *FuncParam) {
	f.opt(p.Mode != "", p.Mode+" ")
	if !p.Name.Empty() {
		f.ident(p.Name)
		f.s(" ")
	}
	f.typeName(p.Type)
	if p.Default != nil {
		f.s(" DEFAULT ")
		f.expr(p.Default)
	}
}
