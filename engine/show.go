package engine

import (
	"context"
	"sort"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/pgcatalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// resolveDefaults are the options of a plain reference to a table.
func resolveDefaults(s *Session) catalog.ResolveOptions {
	return catalog.ResolveOptions{FreshReads: s.set.use().freshReads}
}

func showObjectsColumns(st *ast.ShowObjects) []Column {
	switch st.Kind {
	case "TABLES", "VIEWS":
		return textCols("schema_name", "table_name")
	case "SCHEMAS":
		return textCols("schema_name")
	case "DATABASES":
		return textCols("database_name")
	case "CREATE TABLE":
		return textCols("table_name", "create_statement")
	case "COLUMNS":
		return describeColumns(nil)
	case "PARTITIONS":
		return textCols("partition")
	}
	return textCols("name")
}

func describeColumns(*ast.Describe) []Column {
	return textCols("column_name", "data_type", "nullable", "key", "default", "comment")
}

// runShowObjects is SHOW TABLES and its kin.
func (s *Session) runShowObjects(ctx context.Context, st *ast.ShowObjects) (*running, error) {
	cols, tag := showObjectsColumns(st), fixedTag("SHOW")
	var rows [][]types.Datum
	add := func(v ...types.Datum) { rows = append(rows, v) }
	keep := func(name string) bool { return st.Like == "" || likeMatch(st.Like, name) != st.NotLike }
	switch st.Kind {
	case "TABLES", "VIEWS":
		schema, err := s.showSchema(ctx, st.Name)
		if err != nil {
			return nil, err
		}
		names, err := s.catalog().Tables(ctx, schema)
		if err != nil && !missing(err) {
			return nil, err
		}
		for _, n := range names {
			if !keep(n) {
				continue
			}
			if st.Kind == "VIEWS" {
				rel, err := s.catalog().Resolve(ctx, schema, n, resolveDefaults(s))
				if err != nil || rel.Kind() != 'v' {
					continue
				}
			}
			add(schema, n)
		}
	case "SCHEMAS", "DATABASES":
		// A database of the lake engines is a schema here: both are listed as
		// what follows a dot in FROM.
		names, err := s.catalog().Schemas(ctx)
		if err != nil {
			return nil, err
		}
		if !contains(names, "public") {
			names = append(names, "public")
		}
		sort.Strings(names)
		for _, n := range names {
			if keep(n) {
				add(n)
			}
		}
	case "COLUMNS":
		return s.describeTable(ctx, st.Name, cols, tag)
	case "CREATE TABLE":
		rel, err := s.newResolver().Relation(ctx, st.Name, resolveDefaults(s))
		if err != nil {
			return nil, err
		}
		sql, err := s.createStatement(ctx, rel)
		if err != nil {
			return nil, err
		}
		add(rel.Name(), sql)
	case "PARTITIONS":
		return s.showPartitions(ctx, st)
	default:
		return nil, pgerr.New(pgerr.FeatureNotSupported, "SHOW %s is not supported yet", st.Kind)
	}
	return rowsOf(cols, tag, rows), nil
}

// showSchema is the schema of SHOW TABLES: the one named, or the first of the
// search path that exists.
func (s *Session) showSchema(ctx context.Context, name ast.Name) (string, error) {
	if len(name) > 0 {
		schema, ok := s.schemaExists(ctx, name.Last())
		if !ok {
			return "", pgerr.New(pgerr.InvalidSchemaName, "schema %q does not exist", name.Last())
		}
		return schema, nil
	}
	for _, n := range s.usablePath(ctx, s.searchPath(false)) {
		if n, ok := s.schemaExists(ctx, n); ok {
			return n, nil
		}
	}
	return "", pgerr.New(pgerr.InvalidSchemaName, "no schema has been selected")
}

// showPartitions reads the system table of partitions.
func (s *Session) showPartitions(ctx context.Context, st *ast.ShowObjects) (*running, error) {
	rel, err := s.newResolver().Relation(ctx, st.Name, resolveDefaults(s))
	if err != nil {
		return nil, err
	}
	sql := "SELECT partition FROM " + ast.QuoteIdent(rel.Schema()) + "." + ast.QuoteIdent(rel.Name()+"$partitions") + " ORDER BY 1"
	stmts, err := parse(sql)
	if err != nil {
		return nil, err
	}
	pl, err := s.plan(ctx, &prepared{stmt: stmts[0], text: sql, fixed: true}, nil)
	if err != nil {
		return nil, err
	}
	if err := s.permit(ctx, pl); err != nil {
		return nil, err
	}
	return s.execute(s.ctx, pl, nil, fixedTag("SHOW"))
}

// runDescribe is DESCRIBE of a table.
func (s *Session) runDescribe(ctx context.Context, st *ast.Describe) (*running, error) {
	if st.Kind != "" && st.Kind != "TABLE" {
		return nil, unsupported(st)
	}
	return s.describeTable(ctx, st.Name, describeColumns(st), fixedTag("DESCRIBE"))
}

func (s *Session) describeTable(ctx context.Context, name ast.Name, cols []Column, tag func(int64) string) (*running, error) {
	rel, err := s.newResolver().Relation(ctx, name, resolveDefaults(s))
	if err != nil {
		return nil, err
	}
	keys := map[string][]string{}
	if t, ok := rel.(catalog.TableInfo); ok {
		for _, k := range t.PrimaryKey() {
			keys[k] = append(keys[k], "primary")
		}
		for _, k := range t.PartitionKeys() {
			keys[k] = append(keys[k], "partition")
		}
	}
	var rows [][]types.Datum
	for _, c := range rel.Columns() {
		null, def, comment := "yes", types.Datum(nil), types.Datum(nil)
		if c.NotNull {
			null = "no"
		}
		if text, ok := pgcatalog.DefaultText(ctx, s.sources(), rel, c); ok {
			def = text
		}
		if c.Description != "" {
			comment = c.Description
		}
		rows = append(rows, []types.Datum{c.Name, sqlTypeName(c.Type), null, strings.Join(keys[c.Name], ", "), def, comment})
	}
	return rowsOf(cols, tag, rows), nil
}

// innerTypeName is a type inside another, where NOT NULL is part of it.
func innerTypeName(t types.Type) string {
	if t.NotNull {
		return sqlTypeName(t) + " NOT NULL"
	}
	return sqlTypeName(t)
}

// sqlTypeName is a column's type as CREATE TABLE takes it: maps and rows by
// their lake names, everything else as PostgreSQL prints it.
func sqlTypeName(t types.Type) string {
	switch t.Kind {
	case types.Array:
		if t.Elem != nil {
			if t.OnWireAsJSON() || t.Elem.NotNull {
				return "array<" + innerTypeName(*t.Elem) + ">"
			}
			return sqlTypeName(*t.Elem) + "[]"
		}
	case types.Map:
		if t.Key != nil && t.Elem != nil {
			if t.Multiset {
				return "multiset<" + innerTypeName(*t.Key) + ">"
			}
			return "map<" + innerTypeName(*t.Key) + ", " + innerTypeName(*t.Elem) + ">"
		}
	case types.Row:
		parts := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			parts[i] = ast.QuoteIdent(f.Name) + " " + innerTypeName(f.Type)
			if f.Description != "" {
				parts[i] += " COMMENT " + ast.QuoteString(f.Description)
			}
		}
		return "row<" + strings.Join(parts, ", ") + ">"
	case types.Variant:
		return "variant"
	case types.TinyInt:
		return "tinyint"
	case types.Bytea:
		n := formatInt(int64(t.Len))
		switch {
		case t.Lake == types.LakeBinary && t.Len > 0:
			return "binary(" + n + ")"
		case t.Lake == types.LakeVarbinary && t.Len > 0:
			return "varbinary(" + n + ")"
		case t.Lake == types.LakeBlob:
			return "blob"
		}
	}
	return t.String()
}

// createStatement writes a CREATE TABLE or VIEW that makes rel again.
func (s *Session) createStatement(ctx context.Context, rel catalog.Relation) (string, error) {
	full := ast.QuoteIdent(rel.Schema()) + "." + ast.QuoteIdent(rel.Name())
	if v, ok := rel.(catalog.View); ok {
		return "CREATE VIEW " + full + " AS " + v.Query(), nil
	}
	t, ok := rel.(catalog.TableInfo)
	if !ok {
		return "", pgerr.New(pgerr.WrongObjectType, "%q is not a table", rel.Name())
	}
	opts := t.Options()
	var b strings.Builder
	b.WriteString("CREATE TABLE " + full + " (")
	for i, c := range rel.Columns() {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n  " + ast.QuoteIdent(c.Name) + " " + definedType(rel, i))
		if c.NotNull {
			b.WriteString(" NOT NULL")
		}
		if id := catalog.IdentityOf(c.Name, opts); id != "" {
			b.WriteString(map[string]string{"a": " GENERATED ALWAYS AS IDENTITY", "d": " GENERATED BY DEFAULT AS IDENTITY"}[id])
		} else if text, constant, ok := catalog.DefaultOf(c.Field, opts); ok {
			if !constant {
				text = pgcatalog.NameSequences(ctx, s.sources(), text)
			}
			if constant && !(c.Type.IsNumber() && plainDecimal(text) || c.Type.Kind == types.Bool) {
				text = ast.QuoteString(text)
			}
			b.WriteString(" DEFAULT " + text)
		}
		if c.Description != "" {
			b.WriteString(" COMMENT " + ast.QuoteString(c.Description))
		}
	}
	if pk := t.PrimaryKey(); len(pk) > 0 {
		b.WriteString(",\n  PRIMARY KEY (" + identList(pk) + ")")
	}
	for _, c := range catalog.Constraints(opts) {
		b.WriteString(",\n  " + constraintSQL(c))
	}
	b.WriteString("\n)")
	if p := t.PartitionKeys(); len(p) > 0 {
		b.WriteString("\nPARTITIONED BY (" + identList(p) + ")")
	}
	if c := t.Comment(); c != "" {
		b.WriteString("\nCOMMENT " + ast.QuoteString(c))
	}
	n := 0
	for _, k := range sortedKeys(opts) {
		if k == "path" || impliedOption(rel, k) {
			continue
		}
		if n++; n == 1 {
			b.WriteString("\nWITH (")
		} else {
			b.WriteString(",")
		}
		b.WriteString("\n  " + ast.QuoteString(k) + " = " + ast.QuoteString(opts[k]))
	}
	if n > 0 {
		b.WriteString("\n)")
	}
	return b.String(), nil
}

// plainDecimal reports whether text is a number as SQL writes it.
func plainDecimal(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return digits != "" && strings.Trim(digits, "0123456789.") == "" && strings.Count(digits, ".") < 2 && digits != "."
}

// definedType is the type of a column as a definition has it: Paimon's own where
// it stores another than SQL shows.
func definedType(rel catalog.Relation, i int) string {
	c := rel.Columns()[i]
	st, ok := rel.(schemaTable)
	if !ok {
		return sqlTypeName(c.Type)
	}
	f := st.TableSchema().Fields[i]
	pg := st.TableSchema().Options[pgTypeOption(f.Name)]
	if pg != "" && catalog.SQLType(f.Type, pg).Kind != f.Type.SQL().Kind || pg == "numeric" {
		return sqlTypeName(c.Type)
	}
	if ct, err := storedType(c.Name, c.Type, 0); err == nil && pg != "" && ct.pg == pg && ct.stored.Kind == f.Type.Kind && ct.stored.Prec == f.Type.Prec {
		return sqlTypeName(c.Type) // time without a precision
	}
	return sqlTypeName(f.Type)
}

// impliedOption reports whether a definition says by other words what an option
// says.
func impliedOption(rel catalog.Relation, key string) bool {
	if strings.HasPrefix(key, "pg-constraint.") {
		return true
	}
	for _, c := range rel.Columns() {
		if key == catalog.DefaultOption(c.Name) || key == catalog.IdentityOption(c.Name) {
			return true
		}
		if key == pgTypeOption(c.Name) {
			ct, err := storedType(c.Name, c.Type, 0)
			st, ok := rel.(schemaTable)
			return err == nil && ok && ct.pg == st.TableSchema().Options[key]
		}
	}
	return false
}

func identList(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = ast.QuoteIdent(n)
	}
	return strings.Join(out, ", ")
}

// likeMatch matches SHOW's pattern: % and _ as in LIKE, and * as in the lake
// engines; without regard to case.
func likeMatch(pattern, s string) bool {
	p, t := []rune(strings.ToLower(pattern)), []rune(strings.ToLower(s))
	// The classic two-pointer walk: star remembers where to resume.
	i, j, star, mark := 0, 0, -1, 0
	for j < len(t) {
		switch {
		case i < len(p) && (p[i] == '%' || p[i] == '*'):
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '_' || p[i] == t[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && (p[i] == '%' || p[i] == '*') {
		i++
	}
	return i == len(p)
}
