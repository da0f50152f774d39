package engine

import (
	"context"
	"errors"
	"slices"
	"sort"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/objects"
	"github.com/paimon-sql/paimon-sql/catalog/pgcatalog"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/planner"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// isDefinition reports whether a statement is run by runDefinition. They return
// no rows and take no parameters.
func isDefinition(st ast.Stmt) bool {
	switch x := st.(type) {
	case *ast.CreateTable, *ast.CreateView, *ast.CreateSequence, *ast.AlterSequence, *ast.CreateSchema, *ast.CreateIndex, *ast.Comment, *ast.AlterTable, *ast.Rename, *ast.AlterObjectSchema,
		*ast.AlterOwner, *ast.AlterSchemaOptions:
		return true
	case *ast.CreateTableAs:
		return !x.Materialized
	case *ast.Drop:
		if x.Kind == "DATABASE" {
			return false
		}
		return x.Roles != nil || x.Kind == "TABLE" || x.Kind == "SCHEMA" || x.IfExists || dropsRelation(x.Kind)
	}
	return false
}

// runDefinition runs CREATE TABLE, ALTER TABLE and their kin and returns the
// command tag.
func (s *Session) runDefinition(ctx context.Context, p *prepared, out ResultSink) (string, error) {
	text := p.text
	switch st := p.stmt.(type) {
	case *ast.CreateTable:
		return "CREATE TABLE", s.runCreateTable(ctx, text, st, out)
	case *ast.CreateTableAs:
		return s.runCreateTableAs(ctx, text, st, out)
	case *ast.CreateView:
		return "CREATE VIEW", s.runCreateView(ctx, text, st, out)
	case *ast.CreateSequence:
		return "CREATE SEQUENCE", s.runCreateSequence(ctx, text, st, out)
	case *ast.AlterSequence:
		return "ALTER SEQUENCE", s.runAlterSequence(ctx, text, st, out)
	case *ast.CreateSchema:
		return "CREATE SCHEMA", s.runCreateSchema(ctx, text, st, out)
	case *ast.CreateIndex:
		return "CREATE INDEX", s.runCreateIndex(ctx, text, st, out)
	case *ast.AlterTable:
		return "ALTER " + alterKind(st.Kind), s.runAlterTable(ctx, text, st, out)
	case *ast.Rename:
		return "ALTER " + alterKind(st.Object.Kind), s.runRename(ctx, text, st, out)
	case *ast.AlterObjectSchema:
		return "ALTER " + alterKind(st.Object.Kind), s.runSetSchema(ctx, text, st, out)
	case *ast.AlterOwner:
		return "ALTER " + alterKind(st.Object.Kind), s.runAlterOwner(ctx, st)
	case *ast.AlterSchemaOptions:
		return "", pgerr.New(pgerr.FeatureNotSupported, "options of schemas are not supported")
	case *ast.Drop:
		if st.Roles != nil {
			return "DROP ROLE", s.runDropRole(ctx, st, out)
		}
		return "DROP " + st.Kind, s.runDrop(ctx, text, st, out)
	case *ast.Comment:
		return "COMMENT", s.runComment(ctx, text, st)
	}
	return "", unsupported(p.stmt)
}

func alterKind(kind string) string {
	if kind == "" {
		return "TABLE"
	}
	return kind
}

// runCreateSchema is CREATE SCHEMA.
func (s *Session) runCreateSchema(ctx context.Context, text string, st *ast.CreateSchema, out ResultSink) error {
	name := st.Name.Name
	owner := s.rights(ctx).role
	if st.Authorization != nil {
		r, err := s.ownerToBe(ctx, st.Authorization)
		if err != nil {
			return err
		}
		owner = r.OID
		if name == "" {
			name = r.Name
		}
	}
	if err := s.mayInDatabase(ctx, roles.Create); err != nil {
		return err
	}
	if st.Authorization != nil {
		if err := s.mustBeMember(ctx, owner); err != nil {
			return err
		}
	}
	if name == "default" {
		name = catalog.PublicSchema
	}
	if strings.HasPrefix(name, "pg_") {
		return pgerr.New(pgerr.ReservedName, "unacceptable schema name %q", name).
			WithDetail("The prefix \"pg_\" is reserved for system schemas.")
	}
	_, exists := s.schemaExists(ctx, name)
	if exists || name == "sys" {
		if st.IfNotExists {
			s.notice(out, "NOTICE", pgerr.DuplicateSchema, "schema %q already exists, skipping", name)
			return nil
		}
		return pgerr.New(pgerr.DuplicateSchema, "schema %q already exists", name)
	}
	props := map[string]string{}
	for _, o := range st.Options {
		key, value, err := tableOption(text, o)
		if err != nil {
			return err
		}
		props[key] = value
	}
	if st.Comment != nil {
		props["comment"] = *st.Comment
	}
	ed, err := s.editor(ctx)
	if err != nil {
		return err
	}
	if err := ed.CreateSchema(ctx, name, props); err != nil {
		return s.ddlError(err, name, name)
	}
	if err := s.bornTo(ctx, roles.SchemaKey(name), roles.Schema, owner); err != nil {
		return err
	}
	defer func() { s.making = "" }()
	for _, e := range st.Stmts {
		s.making = name
		if err := s.inSchema(ctx, text, name, e, out); err != nil {
			return err
		}
	}
	if len(st.Stmts) == 0 || owner == s.rights(ctx).role {
		return nil
	}
	// What is made with a schema belongs to its owner.
	made, err := s.catalog().Tables(ctx, name)
	if err != nil {
		return s.ddlError(err, name, name)
	}
	for _, t := range made {
		if err := s.give(ctx, roles.RelationKey(name, t), owner); err != nil {
			return err
		}
	}
	return nil
}

// inSchema runs a statement that CREATE SCHEMA holds.
func (s *Session) inSchema(ctx context.Context, text, schemaName string, st ast.Stmt, out ResultSink) error {
	switch x := st.(type) {
	case *ast.CreateTable:
		c := *x
		n, err := inNewSchema(c.Name, schemaName)
		if err != nil {
			return err
		}
		c.Name = n
		return s.runCreateTable(ctx, text, &c, out)
	case *ast.CreateSequence:
		c := *x
		n, err := inNewSchema(c.Name, schemaName)
		if err != nil {
			return err
		}
		c.Name = n
		return s.runCreateSequence(ctx, text, &c, out)
	case *ast.CreateView:
		c := *x
		n, err := inNewSchema(c.Name, schemaName)
		if err != nil {
			return err
		}
		c.Name = n
		return s.runCreateView(ctx, text, &c, out)
	case *ast.CreateIndex:
		c, t := *x, *x.Table
		if len(t.Name) == 1 {
			t.Name = ast.Name{{Name: schemaName, Quoted: true}, t.Name[0]}
		}
		c.Table = &t
		return s.runCreateIndex(ctx, text, &c, out)
	case *ast.Grant:
		return s.runGrant(ctx, text, x, out)
	}
	return unsupported(st)
}

// inNewSchema is the full name of what CREATE SCHEMA makes in the schema.
func inNewSchema(n ast.Name, schemaName string) (ast.Name, error) {
	if len(n) == 1 {
		return ast.Name{{Name: schemaName, Quoted: true}, n[0]}, nil
	}
	if n[len(n)-2].Name != schemaName {
		return nil, pgerr.New(pgerr.InvalidSchemaDefinition, "CREATE specifies a schema (%s) different from the one being created (%s)",
			n[len(n)-2].Name, schemaName)
	}
	return n, nil
}

// dropsRelation reports whether a kind of DROP names relations of pg_class.
func dropsRelation(kind string) bool {
	switch kind {
	case "VIEW", "MATERIALIZED VIEW", "INDEX", "SEQUENCE", "FOREIGN TABLE":
		return true
	}
	return false
}

// runDrop is DROP. Kinds of objects that do not exist here are found missing.
func (s *Session) runDrop(ctx context.Context, text string, st *ast.Drop, out ResultSink) error {
	switch {
	case st.Kind == "SCHEMA":
		return s.dropSchemas(ctx, st, out)
	case st.Kind == "INDEX":
		return s.dropIndexes(ctx, text, st, out)
	case st.Kind == "TABLE" || dropsRelation(st.Kind):
		return s.dropRelations(ctx, text, st, out)
	case st.IfExists:
		for _, t := range st.Types {
			s.notice(out, "NOTICE", pgerr.SuccessfulCompletion, "%s %q does not exist, skipping", strings.ToLower(st.Kind), ast.Format(t))
		}
		for _, n := range st.Names {
			s.notice(out, "NOTICE", pgerr.SuccessfulCompletion, "%s %q does not exist, skipping", strings.ToLower(st.Kind), n.String())
		}
		return nil
	}
	return unsupported(st)
}

// dropRelations drops tables, views or sequences, all or none of those named, and
// with CASCADE the views on them.
func (s *Session) dropRelations(ctx context.Context, text string, st *ast.Drop, out ResultSink) error {
	kind := strings.ToLower(st.Kind)
	var rels []catalog.Relation
	for _, n := range st.Names {
		rel, err := s.newResolver().Relation(ctx, n, resolveDefaults(s))
		switch {
		case pgerr.Is(err, pgerr.UndefinedTable):
			if err := s.missingRelation(ctx, n, kind, st.IfExists, out); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		case systemSchema(rel.Schema()):
			return pgerr.New(pgerr.InsufficientPrivilege, "permission denied: %q is a system catalog", rel.Name())
		}
		switch rel.(type) {
		case *catalog.ViewRelation:
			if st.Kind != "VIEW" {
				return wrongKind(rel, st.Kind)
			}
		case *catalog.SequenceRelation:
			if st.Kind != "SEQUENCE" {
				return wrongKind(rel, st.Kind)
			}
		case catalog.TableInfo:
			if st.Kind != "TABLE" {
				return wrongKind(rel, st.Kind)
			}
			if rel, err = s.lockedTable(ctx, text, n, lockExclusive, s.mustOwnToDrop); err != nil {
				return err
			}
		default:
			return wrongKind(rel, st.Kind)
		}
		if err := s.mustOwnToDrop(ctx, rel); err != nil {
			return err
		}
		if !slices.ContainsFunc(rels, func(x catalog.Relation) bool { return x.OID() == rel.OID() }) {
			rels = append(rels, rel)
		}
	}
	return s.removeRelations(ctx, text, rels, st.Cascade, out)
}

// removeRelations drops relations together with what depends on them, or without
// cascade only when nothing does.
func (s *Session) removeRelations(ctx context.Context, text string, rels []catalog.Relation, cascade bool, out ResultSink) error {
	if len(rels) == 0 {
		return nil
	}
	r, err := s.newRemoval(ctx)
	if err != nil {
		return err
	}
	what := ""
	for _, rel := range rels {
		r.named(rel.Schema(), rel.Name())
	}
	for _, rel := range rels {
		what = s.described(ctx, rel.Kind(), rel.Schema(), rel.Name())
		r.follow(ctx, rel.Schema(), rel.Name(), "", what)
		if err := r.followKeys(ctx, rel, "", what); err != nil {
			return err
		}
	}
	if len(rels) > 1 {
		what = ""
	}
	if err := r.allow(cascade, what); err != nil {
		return err
	}
	if err := r.drop(ctx, out); err != nil {
		return err
	}
	for _, rel := range rels {
		if seq, ok := rel.(*catalog.SequenceRelation); ok {
			if err := s.dropSequenceUses(ctx, text, seq, cascade, out); err != nil {
				return err
			}
		}
	}
	for _, rel := range rels {
		if err := s.dropRelation(ctx, rel); err != nil {
			return err
		}
	}
	return nil
}

// dropRelation drops one table, view or sequence.
func (s *Session) dropRelation(ctx context.Context, rel catalog.Relation) error {
	switch rel.(type) {
	case *catalog.ViewRelation:
		return s.dropObject(ctx, objects.View, rel.Schema(), rel.Name())
	case *catalog.SequenceRelation:
		return s.dropObject(ctx, objects.Sequence, rel.Schema(), rel.Name())
	}
	ed, err := s.editorOf(ctx, rel.Schema())
	if err != nil {
		return err
	}
	if err := ed.DropTable(ctx, rel.Schema(), rel.Name()); err != nil {
		return s.ddlError(err, rel.Schema(), rel.Name())
	}
	return nil
}

// missingRelation is what DROP says of a name that nothing has.
func (s *Session) missingRelation(ctx context.Context, n ast.Name, kind string, ifExists bool, out ResultSink) error {
	if len(n) > 1 {
		if schemaName := n[len(n)-2].Name; !systemSchema(schemaName) {
			if _, ok := s.schemaExists(ctx, schemaName); !ok {
				if !ifExists {
					return pgerr.New(pgerr.InvalidSchemaName, "schema %q does not exist", schemaName)
				}
				s.notice(out, "NOTICE", pgerr.SuccessfulCompletion, "schema %q does not exist, skipping", schemaName)
				return nil
			}
		}
	}
	if !ifExists {
		return pgerr.New(pgerr.UndefinedTable, "%s %q does not exist", kind, n.Last())
	}
	s.notice(out, "NOTICE", pgerr.SuccessfulCompletion, "%s %q does not exist, skipping", kind, n.Last())
	return nil
}

// wrongKind is the error of DROP VIEW t where t is a table, and the like.
func wrongKind(rel catalog.Relation, kind string) error {
	is := "TABLE"
	switch rel.Kind() {
	case 'v':
		is = "VIEW"
	case 'S':
		is = "SEQUENCE"
	}
	article := "a"
	if strings.HasPrefix(kind, "I") {
		article = "an"
	}
	return pgerr.New(pgerr.WrongObjectType, "%q is not %s %s", rel.Name(), article, strings.ToLower(kind)).
		WithHint("Use DROP %s to remove a %s.", is, strings.ToLower(is))
}

// dropSchemas is DROP SCHEMA.
func (s *Session) dropSchemas(ctx context.Context, st *ast.Drop, out ResultSink) error {
	for _, n := range st.Names {
		name, ok := s.schemaExists(ctx, n.Last())
		if !ok {
			if st.IfExists {
				s.notice(out, "NOTICE", pgerr.SuccessfulCompletion, "schema %q does not exist, skipping", n.Last())
				continue
			}
			return pgerr.New(pgerr.InvalidSchemaName, "schema %q does not exist", n.Last())
		}
		if systemSchema(name) || name == s.tempSchema() {
			return pgerr.New(pgerr.DependentObjectsStillExist, "cannot drop schema %s because it is required by the database system", name)
		}
		if name == catalog.PublicSchema {
			return pgerr.New(pgerr.FeatureNotSupported, "schema %q cannot be dropped", name).
				WithHint("It stands for Paimon's database \"default\". Drop its tables.")
		}
		if err := s.mustOwnSchema(ctx, name); err != nil {
			return err
		}
		names, err := s.catalog().Tables(ctx, name)
		if err != nil {
			return s.ddlError(err, name, name)
		}
		sort.Strings(names)
		r, err := s.newRemoval(ctx)
		if err != nil {
			return err
		}
		var held []string
		var inSchema [][2]string
		var tables []catalog.Relation
		for _, t := range names {
			rel, err := s.catalog().Resolve(ctx, name, t, catalog.ResolveOptions{})
			if err != nil {
				held = append(held, s.described(ctx, 'r', name, t))
				continue
			}
			r.named(name, t)
			what := s.described(ctx, rel.Kind(), name, t)
			if seq, ok := rel.(*catalog.SequenceRelation); !ok || seq.Definition().Table == "" {
				held = append(held, what) // what a column owns goes with its table
			}
			inSchema = append(inSchema, [2]string{t, what})
			tables = append(tables, rel)
		}
		for i, x := range inSchema {
			r.follow(ctx, name, x[0], "", x[1])
			if err := r.followKeys(ctx, tables[i], "", x[1]); err != nil {
				return err
			}
		}
		if len(names) > 0 && !st.Cascade {
			lines := slices.Clone(held)
			for i, t := range lines {
				lines[i] = t + " depends on schema " + ast.QuoteIdent(name)
			}
			return pgerr.New(pgerr.DependentObjectsStillExist, "cannot drop schema %s because other objects depend on it", ast.QuoteIdent(name)).
				WithDetail("%s", strings.Join(append(lines, r.lines...), "\n")).WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
		}
		if err := r.drop(ctx, out, held...); err != nil {
			return err
		}
		ed, err := s.editor(ctx)
		if err != nil {
			return err
		}
		if err := ed.DropSchema(ctx, name, st.Cascade); err != nil {
			return s.ddlError(err, name, name)
		}
	}
	return nil
}

// noticeOf passes on a notice that has more than a message.
func (s *Session) noticeOf(out ResultSink, e *pgerr.Error) {
	e.Severity = "NOTICE"
	if out != nil && s.set.use().minMessages <= 6 {
		out.Notice(e)
	}
}

// runRename is ALTER ... RENAME.
func (s *Session) runRename(ctx context.Context, text string, st *ast.Rename, out ResultSink) error {
	switch st.Object.Kind {
	case "ROLE":
		return s.renameRole(ctx, st, out)
	case "TABLE", "", "VIEW", "SEQUENCE":
		rel, err := s.newResolver().Relation(ctx, st.Object.Name, resolveDefaults(s))
		if err == nil {
			if _, table := rel.(catalog.TableInfo); !table {
				err = s.mustOwn(ctx, rel)
				if err == nil && st.Part == "" && !systemSchema(rel.Schema()) {
					err = s.mayCreateIn(ctx, rel.Schema())
				}
				if err != nil {
					return err
				}
			}
		}
		if seq, ok := rel.(*catalog.SequenceRelation); ok && err == nil && st.Object.Kind != "VIEW" && st.Part == "" && len(st.NewPath) < 2 {
			return s.renameSequence(ctx, seq, seq.Schema(), st.NewName.Name)
		}
		if st.Object.Kind == "SEQUENCE" && err == nil {
			return pgerr.New(pgerr.WrongObjectType, "%q is not a sequence", rel.Name())
		}
		if v, ok := rel.(*catalog.ViewRelation); ok && err == nil {
			return s.renameViewPart(ctx, v, st)
		}
		if st.Object.Kind == "VIEW" && err == nil {
			return pgerr.New(pgerr.WrongObjectType, "%q is not a view", rel.Name())
		}
	case "INDEX":
		return s.renameIndex(ctx, text, st, out)
	case "SCHEMA", "DATABASE":
		return pgerr.New(pgerr.FeatureNotSupported, "schemas cannot be renamed")
	default:
		return pgerr.New(pgerr.FeatureNotSupported, "ALTER %s ... RENAME is not supported yet", st.Object.Kind)
	}
	rel, err := s.tableToChange(ctx, text, st.Object.Name, lockExclusive)
	if err != nil {
		if st.IfExists && pgerr.Is(err, pgerr.UndefinedTable) {
			s.notice(out, "NOTICE", pgerr.SuccessfulCompletion, "relation %q does not exist, skipping", st.Object.Name.Last())
			return nil
		}
		return err
	}
	switch st.Part {
	case "":
		toSchema := rel.Schema()
		if err := s.mayCreateIn(ctx, toSchema); err != nil {
			return err
		}
		if len(st.NewPath) > 1 {
			n, ok := s.schemaExists(ctx, st.NewPath[len(st.NewPath)-2].Name)
			if !ok {
				return pgerr.New(pgerr.InvalidSchemaName, "schema %q does not exist", st.NewPath[len(st.NewPath)-2].Name)
			}
			toSchema = n
			if err := s.mayCreateIn(ctx, toSchema); err != nil {
				return err
			}
		}
		ed, err := s.editorOf(ctx, rel.Schema())
		if err != nil {
			return err
		}
		return s.renameTable(ctx, ed, rel, toSchema, st.NewName.Name)
	case "COLUMN":
		return s.renameColumn(ctx, text, rel, st, out)
	case "CONSTRAINT":
		return s.renameConstraint(ctx, text, rel, st, out)
	}
	return unsupported(st)
}

// renameColumn is RENAME COLUMN; what options say about the column goes with it.
func (s *Session) renameColumn(ctx context.Context, text string, rel catalog.TableInfo, st *ast.Rename, out ResultSink) error {
	a, err := s.newAlteration(text, rel, out)
	if err != nil {
		return err
	}
	path, _, err := a.target(&ast.AlterCmd{Path: st.Column})
	if err != nil {
		return pgerr.New(pgerr.UndefinedColumn, "column %q does not exist", st.Column[0].Name)
	}
	to := st.NewName.Name
	if len(path) == 1 {
		if err := checkColumnName(to); err != nil {
			return err
		}
		if a.sch.Fields.Index(to) >= 0 {
			return pgerr.New(pgerr.DuplicateColumn, "column %q of relation %q already exists", to, rel.Name())
		}
	}
	if err := a.do(&a.before, schema.RenameColumn{Path: path, To: to}); err != nil {
		return err
	}
	if len(path) > 1 {
		return a.stage(ctx)
	}
	store, err := s.renameIn(ctx, planner.ViewChange{Schema: rel.Schema(), Name: rel.Name(), Column: path[0], NewColumn: to})
	if err != nil {
		return err
	}
	if err := a.followColumn(ctx, path[0], to); err != nil {
		return err
	}
	if err := a.stage(ctx); err != nil {
		return err
	}
	return store()
}

// renameConstraint is RENAME CONSTRAINT.
func (s *Session) renameConstraint(ctx context.Context, text string, rel catalog.TableInfo, st *ast.Rename, out ResultSink) error {
	a, err := s.newAlteration(text, rel, out)
	if err != nil {
		return err
	}
	from, to := st.Column[0].Name, st.NewName.Name
	i := a.set.find(from)
	switch {
	case i < 0 && len(rel.PrimaryKey()) > 0 && from == pgcatalog.KeyName(rel.Name()):
		return pgerr.New(pgerr.FeatureNotSupported, "the primary key's constraint cannot be renamed")
	case i < 0:
		return pgerr.New(pgerr.UndefinedObject, "constraint %q for table %q does not exist", from, rel.Name())
	case a.set.find(to) >= 0:
		return pgerr.New(pgerr.DuplicateObject, "constraint %q for relation %q already exists", to, rel.Name())
	}
	c := a.set.list[i]
	old, _ := c.Option()
	c.Name = to
	key, value := c.Option()
	if err := a.do(&a.before, schema.RemoveOption{Key: old}, schema.SetOption{Key: key, Value: value}); err != nil {
		return err
	}
	return a.stage(ctx)
}

// runSetSchema is ALTER TABLE ... SET SCHEMA as a statement of its own.
func (s *Session) runSetSchema(ctx context.Context, text string, st *ast.AlterObjectSchema, out ResultSink) error {
	if k := st.Object.Kind; k != "TABLE" && k != "" && k != "VIEW" && k != "SEQUENCE" {
		return pgerr.New(pgerr.FeatureNotSupported, "ALTER %s ... SET SCHEMA is not supported yet", st.Object.Kind)
	}
	return s.runAlterTable(ctx, text, &ast.AlterTable{
		Kind: st.Object.Kind, Span: st.Span, IfExists: st.IfExists, Table: &ast.TableName{Name: st.Object.Name},
		Cmds: []*ast.AlterCmd{{Loc: st.Loc, Op: ast.SetSchema, Name: st.Schema}},
	}, out)
}

// runComment is COMMENT ON.
func (s *Session) runComment(ctx context.Context, text string, st *ast.Comment) error {
	o := st.Object
	change := func(name ast.Name, make func(a *alteration) (schema.Change, error)) error {
		rel, err := s.tableToChange(ctx, text, name, lockExclusive)
		if err != nil {
			return err
		}
		a, err := s.newAlteration(text, rel, nil)
		if err != nil {
			return err
		}
		c, err := make(a)
		if err != nil {
			return err
		}
		if err := a.do(&a.before, c); err != nil {
			return err
		}
		return a.stage(ctx)
	}
	switch o.Kind {
	case "VIEW":
		v, err := s.viewToChange(ctx, text, o.Name)
		if err != nil {
			return err
		}
		return s.commentOnView(ctx, v, "", deref(st.Text))
	case "SEQUENCE":
		seq, err := s.sequenceToChange(ctx, o.Name)
		if err != nil {
			return err
		}
		def := *seq.Definition()
		def.Comment = deref(st.Text)
		return s.putSequence(ctx, seq.Schema(), seq.Name(), seq.OID(), &def)
	case "TABLE":
		return change(o.Name, func(*alteration) (schema.Change, error) { return schema.SetComment{Comment: deref(st.Text)}, nil })
	case "COLUMN":
		if len(o.Name) < 2 {
			return errAt(text, o.Pos, pgerr.SyntaxError, "column name must be qualified")
		}
		table, column := o.Name[:len(o.Name)-1], o.Name[len(o.Name)-1]
		rel, err := s.newResolver().Relation(ctx, table, resolveDefaults(s))
		if v, ok := rel.(*catalog.ViewRelation); ok && err == nil {
			if s.mustOwn(ctx, v) != nil {
				return denied("must be owner of relation %s", v.Name())
			}
			return s.commentOnView(ctx, v, column.Name, deref(st.Text))
		}
		if err == nil && s.mustOwn(ctx, rel) != nil {
			return denied("must be owner of relation %s", rel.Name())
		}
		return change(table, func(a *alteration) (schema.Change, error) {
			path, _, err := a.target(&ast.AlterCmd{Path: []ast.Ident{column}})
			return schema.UpdateColumnComment{Path: path, Comment: deref(st.Text)}, err
		})
	case "SCHEMA":
		if _, ok := s.schemaExists(ctx, o.Name.Last()); !ok {
			return pgerr.New(pgerr.InvalidSchemaName, "schema %q does not exist", o.Name.Last())
		}
		if err := s.mustOwnSchema(ctx, o.Name.Last()); err != nil {
			return err
		}
	case "DATABASE":
		return s.mustOwnDatabase(ctx)
	}
	return pgerr.New(pgerr.FeatureNotSupported, "COMMENT ON %s is not supported yet", o.Kind)
}

// refusedSchema is the error of an editor that refuses a definition.
func refusedSchema(err error) (*pgerr.Error, bool) {
	var e *schema.ChangeError
	if errors.As(err, &e) {
		return schemaError(e), true
	}
	return nil, false
}
