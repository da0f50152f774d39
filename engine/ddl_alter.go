package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/pgcatalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/planner"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// An ALTER TABLE is worked out as a whole before anything is staged. Its commands
// run in PostgreSQL's order (drops, then types, new columns, the rest), each on
// the schema that the ones before it leave. Commands that need no look at rows
// become one schema version. Those that do are staged in three steps:
//
//	before  the schema in which every row can be given its new values
//	sets    one UPDATE of all rows, and queries that look for violations
//	after   the schema that the statement asked for
//
// Paimon casts old files lazily, by Java's rules: a type change that PostgreSQL
// would answer differently is made as a new column that is filled and takes the
// old one's name and place. The rows are read and written in the transaction
// that publishes the schema, and the commit fails if another process has written
// meanwhile.

// alteration is one ALTER TABLE.
type alteration struct {
	s    *Session
	text string
	rel  catalog.TableInfo
	out  ResultSink
	// sch is the schema after the changes so far.
	sch         *schema.Table
	hasSnapshot bool
	rows        *bool // whether there are rows; nil = not asked yet

	before, after []schema.Change
	sets          []*ast.SetClause
	verify        []verification
	set           constraintSet
	notes         []string
	// settled is the option that files have been made for, "" = none.
	settled             string
	renameTo, newSchema string
	dropPartitions      []*ast.AlterCmd // once the schema is staged
	removed             *removal        // views on dropped columns; nil = no column was dropped
}

// verification is a condition that no row may meet, looked for after the rewrite.
type verification struct {
	cond ast.Expr // over the columns of the schema of before
	err  *pgerr.Error
}

// passes order commands as PostgreSQL does.
func pass(c *ast.AlterCmd) int {
	switch c.Op {
	case ast.DropColumn, ast.DropConstraint, ast.DropDefault, ast.DropNotNull:
		return 0
	case ast.AlterType, ast.ModifyColumn:
		return 1
	case ast.AddColumn:
		return 2
	case ast.SetNotNull:
		return 3
	case ast.AddConstraint:
		if c.Constraint.Kind == ast.ConstraintPrimaryKey || c.Constraint.Kind == ast.ConstraintUnique {
			return 4
		}
		return 5
	case ast.SetDefault:
		return 5
	}
	return 6
}

// runAlterTable is ALTER TABLE.
func (s *Session) runAlterTable(ctx context.Context, text string, st *ast.AlterTable, out ResultSink) error {
	if found, err := s.newResolver().Relation(ctx, st.Table.Name, resolveDefaults(s)); err == nil {
		switch v, ok := found.(*catalog.ViewRelation); {
		case ok && (st.Kind == "VIEW" || st.Kind == "TABLE" || st.Kind == ""):
			return s.runAlterView(ctx, text, v, st)
		case st.Kind == "SEQUENCE" || found.Kind() == 'S' && (st.Kind == "" || st.Kind == "TABLE"):
			return s.runAlterSequenceTable(ctx, st)
		case st.Kind == "VIEW" && !systemSchema(found.Schema()):
			return pgerr.New(pgerr.WrongObjectType, "%q is not a view", found.Name())
		}
	}
	rel, err := s.tableToChange(ctx, text, st.Table.Name, lockExclusive)
	if err != nil {
		if st.IfExists && pgerr.Is(err, pgerr.UndefinedTable) {
			s.notice(out, "NOTICE", pgerr.SuccessfulCompletion, "relation %q does not exist, skipping", st.Table.Name.Last())
			return nil
		}
		return err
	}
	switch st.Kind {
	case "", "TABLE":
	default:
		return pgerr.New(pgerr.WrongObjectType, "%q is not a %s", rel.Name(), strings.ToLower(st.Kind))
	}
	a, err := s.newAlteration(text, rel, out)
	if err != nil {
		return err
	}
	cmds := slices.Clone(st.Cmds)
	slices.SortStableFunc(cmds, func(x, y *ast.AlterCmd) int { return pass(x) - pass(y) })
	for _, c := range cmds {
		if err := a.command(ctx, c); err != nil {
			return err
		}
	}
	return a.stage(ctx)
}

// tableToChange finds and locks a table that is about to be changed by its owner.
func (s *Session) tableToChange(ctx context.Context, text string, name ast.Name, mode lockMode) (catalog.TableInfo, error) {
	return s.lockedTable(ctx, text, name, mode, s.mustOwn)
}

// lockedTable finds and locks a table; may says who may have it.
func (s *Session) lockedTable(ctx context.Context, text string, name ast.Name, mode lockMode, may func(context.Context, catalog.Relation) error) (catalog.TableInfo, error) {
	for {
		rel, err := s.newResolver().Relation(ctx, name, resolveDefaults(s))
		if err != nil {
			if len(name) > 1 && errors.Is(err, catalog.ErrNoSchema) {
				return nil, pgerr.New(pgerr.UndefinedTable, "relation %q does not exist", name.String())
			}
			return nil, withoutPosition(err)
		}
		if err := may(ctx, rel); err != nil {
			return nil, err
		}
		t, ok := rel.(catalog.TableInfo)
		switch {
		case systemSchema(rel.Schema()):
			return nil, pgerr.New(pgerr.InsufficientPrivilege, "permission denied: %q is a system catalog", rel.Name())
		case rel.Kind() == 'v':
			return nil, pgerr.New(pgerr.WrongObjectType, "%q is not a table", rel.Name())
		case !ok:
			return nil, pgerr.New(pgerr.WrongObjectType, "%q is a system table", rel.Name())
		}
		waited, err := s.lockTable(ctx, keyOf(t), t.Name(), mode, false)
		if err != nil {
			return nil, err
		}
		if !waited {
			return t, nil
		}
	}
}

func (s *Session) newAlteration(text string, rel catalog.TableInfo, out ResultSink) (*alteration, error) {
	st, ok := rel.(schemaTable)
	if !ok {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "table %q cannot be altered", rel.Name())
	}
	at := rel.At()
	return &alteration{
		s: s, text: text, rel: rel, out: out, sch: st.TableSchema(), set: s.constraintsOf(text, rel),
		hasSnapshot: at.Kind != snapshot.Latest || s.touched(keyOf(rel)) != nil,
	}, nil
}

// do adds a change before or after the rewrite.
func (a *alteration) do(list *[]schema.Change, changes ...schema.Change) error {
	next, err := schema.Apply(a.sch, changes, a.hasSnapshot)
	if err != nil {
		return a.changeError(err)
	}
	a.sch = next
	*list = append(*list, changes...)
	return nil
}

// changeError words the refusal of a change as PostgreSQL does.
func (a *alteration) changeError(err error) error {
	var e *schema.ChangeError
	if !errors.As(err, &e) {
		return err
	}
	switch e.Kind {
	case schema.ColumnExists:
		return pgerr.Wrap(err, pgerr.DuplicateColumn, "column %q of relation %q already exists", e.Column, a.rel.Name())
	case schema.ColumnMissing:
		return pgerr.Wrap(err, pgerr.UndefinedColumn, "column %q of relation %q does not exist", e.Column, a.rel.Name())
	}
	return schemaError(e)
}

// schemaError gives the refusal of a schema its SQLSTATE.
func schemaError(e *schema.ChangeError) *pgerr.Error {
	pe := pgerr.Wrap(e, changeCode(e.Kind), "%s", e.Msg)
	pe.Column = e.Column
	return pe
}

// hasRows reports whether the table has rows now.
func (a *alteration) hasRows(ctx context.Context) (bool, error) {
	if a.rows == nil {
		found, err := a.s.anyRow(ctx, a.rel, nil, a.text)
		if err != nil {
			return false, err
		}
		a.rows = &found
	}
	return *a.rows, nil
}

// column finds a column of the schema as changed so far.
func (a *alteration) column(name string) (types.Field, error) {
	if i := a.sch.Fields.Index(name); i >= 0 {
		return a.sch.Fields[i], nil
	}
	return types.Field{}, pgerr.New(pgerr.UndefinedColumn, "column %q of relation %q does not exist", name, a.rel.Name())
}

// typeOf is the type of a column of the schema as changed so far.
func (a *alteration) typeOf(f types.Field) columnType {
	pg := a.sch.Options[pgTypeOption(f.Name)]
	return columnType{stored: f.Type, sql: catalog.SQLType(f.Type, pg), pg: pg}
}

// sqlColumns are the columns as expressions see them.
func (a *alteration) sqlColumns() types.Schema {
	out := make(types.Schema, len(a.sch.Fields))
	for i, f := range a.sch.Fields {
		out[i] = f
		out[i].Type = a.typeOf(f).sql
	}
	return out
}

// target finds the column that a command names, at any depth. Only top-level
// columns have defaults, constraints and rewrites.
func (a *alteration) target(c *ast.AlterCmd) (path []string, top types.Field, err error) {
	if len(c.Path) == 0 {
		return nil, top, errAt(a.text, c.Pos, pgerr.SyntaxError, "a column must be named")
	}
	path = identNames(c.Path)
	top, err = a.column(path[0])
	if err != nil && !c.Path[0].Quoted {
		for _, f := range a.sch.Fields {
			if strings.EqualFold(f.Name, path[0]) {
				path[0] = f.Name
				return path, f, nil
			}
		}
	}
	return path, top, err
}

// topOnly refuses a nested path.
func (a *alteration) topOnly(c *ast.AlterCmd, path []string, what string) error {
	if len(path) > 1 {
		return errAt(a.text, c.Pos, pgerr.FeatureNotSupported, "%s of a nested field is not supported", what)
	}
	return nil
}

// command works out one command.
func (a *alteration) command(ctx context.Context, c *ast.AlterCmd) error {
	switch c.Op {
	case ast.AddColumn:
		return a.addColumn(ctx, c)
	case ast.DropColumn:
		return a.dropColumn(ctx, c)
	case ast.AlterType:
		return a.alterType(ctx, c)
	case ast.ModifyColumn:
		return a.modifyColumn(ctx, c)
	case ast.SetDefault, ast.DropDefault:
		return a.setDefault(ctx, c)
	case ast.SetNotNull:
		return a.setNotNull(ctx, c)
	case ast.DropNotNull:
		return a.dropNotNull(c)
	case ast.MoveColumn:
		path, _, err := a.target(c)
		if err == nil {
			err = a.topOnly(c, path, "moving")
		}
		if err != nil {
			return err
		}
		return a.move(path[0], c.First, c.After)
	case ast.CommentColumn:
		path, _, err := a.target(c)
		if err != nil {
			return err
		}
		return a.do(&a.after, schema.UpdateColumnComment{Path: path, Comment: deref(c.Comment)})
	case ast.AddConstraint:
		return a.addConstraint(ctx, c)
	case ast.DropConstraint:
		return a.dropConstraint(c)
	case ast.ValidateConstraint:
		return a.validateConstraint(ctx, c)
	case ast.SetOptions, ast.ResetOptions:
		return a.setOptions(ctx, c)
	case ast.SetComment:
		return a.do(&a.after, schema.SetComment{Comment: deref(c.Comment)})
	case ast.RenameTo:
		a.renameTo = c.Name.Name
		return nil
	case ast.SetSchema:
		n, ok := a.s.schemaExists(ctx, c.Name.Name)
		if temp := a.s.tempSchema(); ok && n != a.rel.Schema() && temp != "" && (n == temp || a.rel.Schema() == temp) {
			return pgerr.New(pgerr.FeatureNotSupported, "cannot move objects into or out of temporary schemas")
		}
		if !ok {
			return pgerr.New(pgerr.InvalidSchemaName, "schema %q does not exist", c.Name.Name)
		}
		a.newSchema = n
		return nil
	case ast.AddIdentity, ast.AlterIdentity:
		return a.identity(ctx, c)
	case ast.DropIdentity:
		return a.identity(ctx, c)
	case ast.DropPartition:
		a.dropPartitions = append(a.dropPartitions, c)
		return nil
	}
	return a.accepted(ctx, c)
}

// accepted takes the commands that have no effect here, and refuses the rest.
func (a *alteration) accepted(ctx context.Context, c *ast.AlterCmd) error {
	refuse := func(what string) error {
		return errAt(a.text, c.Pos, pgerr.FeatureNotSupported, "ALTER TABLE ... %s is not supported", what)
	}
	switch c.Op {
	case ast.OwnerTo:
		return a.s.giveRelation(ctx, a.rel, c.Role)
	case ast.SetStatistics, ast.SetColumnOptions, ast.ResetColumnOptions, ast.SetStorage, ast.SetCompression:
		if len(c.Path) == 0 {
			return nil
		}
		_, _, err := a.target(c)
		return err
	case ast.SetTablespace:
		return checkStorage(a.text, ast.Ident{}, c.Name)
	case ast.SetAccessMethod:
		return checkStorage(a.text, c.Name, ast.Ident{})
	case ast.DropExpression:
		if _, _, err := a.target(c); err != nil {
			return err
		}
		if c.IfExists {
			return nil
		}
		return pgerr.New(pgerr.ObjectNotInPrerequisiteState, "column %q of relation %q is not a stored generated column", c.Path[0].Name, a.rel.Name())
	case ast.AlterConstraint:
		return refuse("ALTER CONSTRAINT")
	case ast.AddPartition:
		return refuse("ADD PARTITION")
	case ast.AttachPartition, ast.DetachPartition:
		return refuse("ATTACH or DETACH PARTITION")
	case ast.InheritTable, ast.NoInheritTable:
		return refuse("INHERIT")
	case ast.OfType:
		return refuse("OF")
	case ast.AlterColumnOptions:
		return refuse("ALTER COLUMN ... OPTIONS")
	case ast.DropPrimaryKey:
		return refuse("DROP PRIMARY KEY")
	case ast.CreateTag, ast.DeleteTag, ast.RenameTag:
		return refuse("TAG")
	case ast.DropWatermark:
		return refuse("DROP WATERMARK")
	}
	words := strings.ToUpper(c.Words)
	for _, ok := range []string{"SET LOGGED", "SET UNLOGGED", "SET WITHOUT", "REPLICA IDENTITY", "ENABLE TRIGGER", "DISABLE TRIGGER", "NO FORCE ROW", "DISABLE ROW"} {
		if strings.HasPrefix(words, ok) && (c.Name.Empty() || strings.HasPrefix(ok, "REPLICA")) {
			return nil
		}
	}
	return refuse(words)
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// stage hands everything to the session's editor.
func (a *alteration) stage(ctx context.Context) error {
	ed, err := a.s.editorOf(ctx, a.rel.Schema())
	if err != nil {
		return err
	}
	if len(a.before)+len(a.after) > 0 {
		if err := checkIndexes(a.sch.Options, a.sch.Fields); err != nil {
			return err
		}
	}
	schemaName, name := a.rel.Schema(), a.rel.Name()
	if a.removed != nil {
		if err := a.removed.drop(ctx, a.out); err != nil {
			return err
		}
	}
	alter := func(changes []schema.Change) error {
		if len(changes) == 0 {
			return nil
		}
		if err := ed.AlterTable(ctx, schemaName, name, changes); err != nil {
			return a.s.ddlError(a.changeError(err), schemaName, name)
		}
		return nil
	}
	if a.settled != "" && len(a.sets)+len(a.verify)+len(a.dropPartitions) > 0 {
		return pgerr.New(pgerr.FeatureNotSupported, "changing %q together with what reads or changes rows is not supported", a.settled).
			WithHint("Use an ALTER TABLE of its own.")
	}
	if len(a.sets)+len(a.verify) == 0 {
		if err := alter(append(a.before, a.after...)); err != nil {
			return err
		}
	} else {
		if err := alter(a.before); err != nil {
			return err
		}
		if err := a.rewrite(ctx); err != nil {
			return err
		}
		if err := alter(a.after); err != nil {
			return err
		}
	}
	for _, c := range a.dropPartitions {
		if err := a.dropPartition(ctx, c); err != nil {
			return err
		}
	}
	if a.newSchema != "" && a.newSchema != schemaName || a.renameTo != "" {
		if err := a.rename(ctx, ed); err != nil {
			return err
		}
	}
	for _, n := range a.notes {
		a.s.notice(a.out, "NOTICE", pgerr.SuccessfulCompletion, "%s", n)
	}
	for _, w := range a.set.warn {
		a.s.warn(a.out, pgerr.Warning, "%s", w)
	}
	return nil
}

func (a *alteration) rename(ctx context.Context, ed catalog.Editor) error {
	toSchema, to := a.rel.Schema(), a.rel.Name()
	if a.newSchema != "" {
		toSchema = a.newSchema
	}
	if systemSchema(toSchema) {
		return pgerr.New(pgerr.FeatureNotSupported, "cannot move objects into or out of system schemas")
	}
	if a.renameTo != "" {
		to = a.renameTo
	}
	if err := a.s.mayCreateIn(ctx, toSchema); err != nil {
		return err
	}
	return a.s.renameTable(ctx, ed, a.rel, toSchema, to)
}

// renameTable renames or moves a table.
func (s *Session) renameTable(ctx context.Context, ed catalog.Editor, rel catalog.TableInfo, toSchema, to string) error {
	if exists, err := s.relationExists(ctx, toSchema, to); err != nil {
		return err
	} else if exists {
		if toSchema != rel.Schema() {
			return pgerr.New(pgerr.DuplicateTable, "relation %q already exists in schema %q", to, toSchema)
		}
		return pgerr.New(pgerr.DuplicateTable, "relation %q already exists", to)
	}
	store, err := s.renameIn(ctx, planner.ViewChange{Schema: rel.Schema(), Name: rel.Name(), NewSchema: toSchema, NewName: to})
	if err != nil {
		return err
	}
	if err := ed.RenameTable(ctx, rel.Schema(), rel.Name(), toSchema, to); err != nil {
		return s.ddlError(err, toSchema, to)
	}
	return store()
}

// addConstraint is ADD CONSTRAINT.
func (a *alteration) addConstraint(ctx context.Context, c *ast.AlterCmd) error {
	k := c.Constraint
	switch k.Kind {
	case ast.ConstraintCheck:
		return a.addCheck(ctx, k)
	case ast.ConstraintPrimaryKey:
		return a.addPrimaryKey(ctx, k, k.Columns)
	case ast.ConstraintUnique:
		if sameSet(identNames(k.Columns), a.sch.PrimaryKeys) {
			return nil
		}
		return a.keep(func() error { return a.set.unique(k, k.Columns, a.sqlColumns()) })
	case ast.ConstraintForeignKey:
		return a.keep(func() error { return a.set.foreign(ctx, k, k.Columns, a.sqlColumns(), a.sch.PrimaryKeys) })
	}
	return refuseConstraint(a.text, k)
}

// keep adds the constraint that add appends to the set.
func (a *alteration) keep(add func() error) error {
	n := len(a.set.list)
	if err := add(); err != nil {
		return err
	}
	for _, c := range a.set.list[n:] {
		key, value := c.Option()
		if err := a.do(&a.after, schema.SetOption{Key: key, Value: value}); err != nil {
			return err
		}
	}
	return nil
}

// addCheck adds a CHECK, which rows that are there must meet.
func (a *alteration) addCheck(ctx context.Context, k *ast.Constraint) error {
	err := a.keep(func() error {
		_, err := a.set.check(ctx, k, a.sqlColumns())
		return err
	})
	if err != nil || k.NotValid {
		return err
	}
	return a.verifyCheck(ctx, a.set.list[len(a.set.list)-1].Name, k.Expr)
}

func (a *alteration) verifyCheck(ctx context.Context, name string, e ast.Expr) error {
	rows, err := a.hasRows(ctx)
	if err != nil || !rows {
		return err
	}
	pe := pgerr.New(pgerr.CheckViolation, "check constraint %q of relation %q is violated by some row", name, a.rel.Name())
	pe.Schema, pe.Table, pe.Constraint = a.rel.Schema(), a.rel.Name(), name
	a.verify = append(a.verify, verification{&ast.Not{Loc: ast.At(e.Position()), Expr: e}, pe})
	return nil
}

// addPrimaryKey gives an empty table a key.
func (a *alteration) addPrimaryKey(ctx context.Context, k *ast.Constraint, columns []ast.Ident) error {
	if !k.UsingIndex.Empty() {
		return errAt(a.text, k.Pos, pgerr.FeatureNotSupported, "PRIMARY KEY USING INDEX is not supported")
	}
	if len(a.sch.PrimaryKeys) > 0 {
		return pgerr.New(pgerr.InvalidTableDefinition, "multiple primary keys for table %q are not allowed", a.rel.Name())
	}
	for _, id := range columns {
		if a.sch.Fields.Index(id.Name) < 0 {
			return pgerr.New(pgerr.UndefinedColumn, "column %q of relation %q does not exist", id.Name, a.rel.Name())
		}
	}
	names, err := keyColumns(a.text, k, columns, a.sqlColumns(), "primary key constraint")
	if err != nil {
		return err
	}
	if a.hasSnapshot {
		return errAt(a.text, k.Pos, pgerr.ObjectNotInPrerequisiteState, "a primary key can only be added to an empty table").
			WithDetail("Table %q has had rows, and its files are laid out without a key.", a.rel.Name()).
			WithHint("Create a table with the key, and insert the rows into it.")
	}
	bucket, given := a.sch.Options["bucket"]
	for _, p := range a.sch.PartitionKeys {
		if !slices.Contains(names, p) && bucket != "-1" {
			return pgerr.New(pgerr.FeatureNotSupported, "unique constraint on partitioned table must include all partitioning columns").
				WithDetail("PRIMARY KEY constraint on table %q lacks column %q which is part of the partition key.", a.rel.Name(), p)
		}
	}
	var changes []schema.Change
	if !given {
		n, _ := a.s.set.get("paimon.default_bucket")
		changes = append(changes, schema.SetOption{Key: "bucket", Value: n})
	}
	return a.do(&a.after, append(changes, schema.AddPrimaryKey{Columns: names})...)
}

// dropConstraint is DROP CONSTRAINT.
func (a *alteration) dropConstraint(c *ast.AlterCmd) error {
	name := c.Name.Name
	i := a.set.find(name)
	if i < 0 {
		if len(a.sch.PrimaryKeys) > 0 && name == pgcatalog.KeyName(a.rel.Name()) {
			return errAt(a.text, c.Pos, pgerr.FeatureNotSupported, "the primary key of a table cannot be dropped").
				WithHint("Create a table without the key, and insert the rows into it.")
		}
		if c.IfExists {
			a.notes = append(a.notes, `constraint "`+name+`" of relation "`+a.rel.Name()+`" does not exist, skipping`)
			return nil
		}
		return pgerr.New(pgerr.UndefinedObject, "constraint %q of relation %q does not exist", name, a.rel.Name())
	}
	key, _ := a.set.list[i].Option()
	a.set.list = slices.Delete(a.set.list, i, i+1)
	return a.do(&a.before, schema.RemoveOption{Key: key})
}

// validateConstraint is VALIDATE CONSTRAINT.
func (a *alteration) validateConstraint(ctx context.Context, c *ast.AlterCmd) error {
	i := a.set.find(c.Name.Name)
	if i < 0 {
		return pgerr.New(pgerr.UndefinedObject, "constraint %q of relation %q does not exist", c.Name.Name, a.rel.Name())
	}
	k := a.set.list[i]
	if k.Kind != catalog.CheckConstraint {
		return a.set.keepUnenforced(map[catalog.ConstraintKind]string{catalog.UniqueConstraint: "UNIQUE", catalog.ForeignKey: "FOREIGN KEY"}[k.Kind], k.Name, c.Pos)
	}
	e, err := parseExpr(k.Expr)
	if err != nil {
		return err
	}
	return a.verifyCheck(ctx, k.Name, e)
}

// parseExpr reads an expression that options keep. Its positions count in itself.
func parseExpr(text string) (ast.Expr, error) {
	stmts, err := parse("SELECT (" + text + ")")
	if err != nil {
		return nil, err
	}
	return stmts[0].(*ast.Query).Body.(*ast.Select).Targets[0].Expr, nil
}
