package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// tableDef is a table that is about to be made.
type tableDef struct {
	s            *Session
	text         string
	schema, name string
	cols         []defColumn
	primary      []string
	partition    []string
	options      map[string]string
	comment      string
	set          constraintSet
	notes        []string // notices
	sequences    []newSequence
	hasPrimary   bool
}

// defColumn is one of its columns.
type defColumn struct {
	name    string
	typ     columnType
	notNull bool
	isNull  bool // NULL was written
	def     *columnDefault
	comment string
	// identity is a for GENERATED ALWAYS AS IDENTITY, d for BY DEFAULT.
	identity string
}

func (s *Session) newTableDef(text, schemaName, name string) *tableDef {
	return &tableDef{
		s: s, text: text, schema: schemaName, name: name, options: map[string]string{},
		set: constraintSet{s: s, text: text, schema: schemaName, table: name, opts: s.planOptions()},
	}
}

// sqlColumns are the columns as expressions see them.
func (d *tableDef) sqlColumns() types.Schema {
	out := make(types.Schema, len(d.cols))
	for i, c := range d.cols {
		out[i] = types.Field{ID: int32(i), Name: c.name, Type: c.typ.sql}
	}
	return out
}

func (d *tableDef) column(name string) *defColumn {
	for i := range d.cols {
		if d.cols[i].name == name {
			return &d.cols[i]
		}
	}
	return nil
}

// systemColumns are the names that PostgreSQL keeps for itself.
var systemColumns = map[string]bool{"tableoid": true, "xmin": true, "cmin": true, "xmax": true, "cmax": true, "ctid": true}

// checkColumnName refuses names that mean something else.
func checkColumnName(name string) error {
	if systemColumns[name] {
		return pgerr.New(pgerr.DuplicateColumn, "column name %q conflicts with a system column name", name)
	}
	if slices.Contains([]string{"_FILE", "_POS", "_KIND", "_SEQ", "__paimon_bucket"}, name) {
		return pgerr.New(pgerr.ReservedName, "column name %q is reserved", name)
	}
	return nil
}

func (d *tableDef) add(c defColumn) error {
	if err := checkColumnName(c.name); err != nil {
		return err
	}
	if d.column(c.name) != nil {
		return pgerr.New(pgerr.DuplicateColumn, "column %q specified more than once", c.name)
	}
	d.cols = append(d.cols, c)
	return nil
}

// pendingConstraint is one that waits until all columns are known.
type pendingConstraint struct {
	k       *ast.Constraint
	columns []ast.Ident
}

// build fills d from CREATE TABLE.
func (d *tableDef) build(ctx context.Context, st *ast.CreateTable) error {
	var pending []pendingConstraint
	var defaults []pendingConstraint
	for _, e := range st.Elements {
		switch x := e.(type) {
		case *ast.ColumnDef:
			if err := d.addColumn(x, &pending, &defaults); err != nil {
				return err
			}
		case *ast.Constraint:
			pending = append(pending, pendingConstraint{x, x.Columns})
		case *ast.LikeTable:
			if err := d.addLike(ctx, x); err != nil {
				return err
			}
		}
	}
	if err := d.partitionBy(st.PartitionBy, &pending, &defaults); err != nil {
		return err
	}
	if err := d.setOptions(st.Options); err != nil {
		return err
	}
	if st.Comment != nil {
		d.comment = *st.Comment
	}
	if err := d.addConstraints(ctx, pending); err != nil {
		return err
	}
	for _, p := range defaults {
		c := d.column(p.columns[0].Name)
		def, err := d.s.defaultOf(ctx, d.text, c.name, c.typ, p.k.Expr, d.set.opts)
		if err != nil {
			return err
		}
		c.def = def
	}
	return d.finish()
}

// checkColumns looks for the errors that PostgreSQL finds before it looks whether
// the table exists.
func (d *tableDef) checkColumns(st *ast.CreateTable) error {
	var pending, defaults []pendingConstraint
	for _, c := range st.Columns {
		if err := d.addColumn(c, &pending, &defaults); err != nil {
			return err
		}
	}
	return nil
}

// addColumn takes one column and puts its constraints aside.
func (d *tableDef) addColumn(x *ast.ColumnDef, pending, defaults *[]pendingConstraint) error {
	if x.Type == nil {
		return errAt(d.text, x.Pos, pgerr.SyntaxError, "column %q needs a type", x.Name.Name)
	}
	if err := checkCollation(d.text, x.Collation); err != nil {
		return err
	}
	ct, err := definedColumnType(d.text, x.Name.Name, x.Type)
	if err != nil {
		return err
	}
	c := defColumn{name: x.Name.Name, typ: ct, notNull: ct.stored.NotNull}
	if x.Comment != nil {
		c.comment = *x.Comment
	}
	if ct.note != "" {
		d.note(ct.note)
	}
	hasDefault := false
	serial := isSerial(x.Type)
	if serial {
		d.serialColumn(&c)
		hasDefault = true
	}
	for _, k := range withAttributes(x.Constraints) {
		conflict := func() error {
			return errAt(d.text, k.Pos, pgerr.SyntaxError, "conflicting NULL/NOT NULL declarations for column %q of table %q", c.name, d.name)
		}
		switch k.Kind {
		case ast.ConstraintNull:
			if c.notNull {
				return conflict()
			}
			c.isNull = true
		case ast.ConstraintNotNull:
			if c.isNull {
				return conflict()
			}
			c.notNull = true
		case ast.ConstraintDefault:
			if c.identity != "" {
				return errAt(d.text, k.Pos, pgerr.SyntaxError, "both default and identity specified for column %q of table %q", c.name, d.name)
			}
			if hasDefault {
				return errAt(d.text, k.Pos, pgerr.SyntaxError, "multiple default values specified for column %q of table %q", c.name, d.name)
			}
			hasDefault = true
			*defaults = append(*defaults, pendingConstraint{k, []ast.Ident{x.Name}})
		case ast.ConstraintIdentity:
			switch {
			case c.identity != "":
				return errAt(d.text, k.Pos, pgerr.SyntaxError, "multiple identity specifications for column %q of table %q", c.name, d.name)
			case hasDefault:
				return errAt(d.text, k.Pos, pgerr.SyntaxError, "both default and identity specified for column %q of table %q", c.name, d.name)
			case c.isNull:
				return conflict()
			}
			if err := d.identityColumn(&c, k); err != nil {
				return err
			}
		case ast.ConstraintGenerated, ast.ConstraintExclude, ast.ConstraintWatermark:
			return refuseConstraint(d.text, k)
		case ast.ConstraintCheck, ast.ConstraintPrimaryKey, ast.ConstraintUnique, ast.ConstraintForeignKey:
			*pending = append(*pending, pendingConstraint{k, []ast.Ident{x.Name}})
		}
	}
	return d.add(c)
}

// refuseConstraint is the error of constraints that are not done.
func refuseConstraint(text string, k *ast.Constraint) error {
	what := map[ast.ConstraintKind]string{
		ast.ConstraintGenerated: "generated columns are",
		ast.ConstraintExclude:   "EXCLUDE constraints are", ast.ConstraintWatermark: "watermarks are",
	}[k.Kind]
	return errAt(text, k.Pos, pgerr.FeatureNotSupported, "%s not supported yet", what)
}

// partitionBy takes the partition columns.
func (d *tableDef) partitionBy(p *ast.PartitionBy, pending, defaults *[]pendingConstraint) error {
	if p == nil {
		return nil
	}
	switch strings.ToLower(p.Strategy) {
	case "", "list":
	case "range", "hash":
		return errAt(d.text, p.Pos, pgerr.FeatureNotSupported, "PARTITION BY %s is not supported", strings.ToUpper(p.Strategy)).
			WithHint("PARTITIONED BY (columns) makes one partition per value.")
	default:
		return errAt(d.text, p.Pos, pgerr.InvalidParameterValue, "unrecognized partitioning strategy %q", p.Strategy)
	}
	d.partition = nil
	for _, e := range p.Elems {
		if e.Expr != nil {
			return errAt(d.text, e.Pos, pgerr.FeatureNotSupported, "partitioning by expressions is not supported")
		}
		if d.column(e.Column.Name) == nil {
			return errAt(d.text, e.Pos, pgerr.UndefinedColumn, "column %q named in partition key does not exist", e.Column.Name)
		}
		if slices.Contains(d.partition, e.Column.Name) {
			return errAt(d.text, e.Pos, pgerr.DuplicateColumn, "column %q appears twice in partition key", e.Column.Name)
		}
		d.partition = append(d.partition, e.Column.Name)
	}
	for _, c := range p.Columns {
		if err := d.addColumn(c, pending, defaults); err != nil {
			return err
		}
		d.partition = append(d.partition, c.Name.Name)
	}
	return nil
}

// setOptions takes WITH (...). Paimon's options primary-key and partition are
// clauses in another spelling.
func (d *tableDef) setOptions(opts []*ast.Option) error {
	seen := map[string]bool{}
	for _, o := range opts {
		key, value, err := tableOption(d.text, o)
		if err != nil {
			return err
		}
		if seen[key] {
			return errAt(d.text, o.Pos, pgerr.InvalidObjectDefinition, "parameter %q specified more than once", key)
		}
		seen[key] = true
		if err := refuseOption(d.text, o.Pos, key, value); err != nil {
			return err
		}
		switch key {
		case "connector":
			continue
		case "oids":
			if value != "false" {
				return errAt(d.text, o.Pos, pgerr.FeatureNotSupported, "tables declared WITH OIDS are not supported")
			}
			continue
		case "primary-key", "partition":
			names := schema.Options{key: value}.List(key)
			for _, n := range names {
				if d.column(n) == nil {
					return errAt(d.text, o.Pos, pgerr.UndefinedColumn, "column %q named in option %q does not exist", n, key)
				}
			}
			if key == "partition" {
				d.partition = names
				continue
			}
			d.primary, d.hasPrimary = names, true
			continue
		}
		if !optionKnown(key) {
			d.note("table option " + ast.QuoteIdent(key) + " is not known; it is kept")
		}
		d.options[key] = value
	}
	return nil
}

func (d *tableDef) note(s string) {
	if !slices.Contains(d.notes, s) {
		d.notes = append(d.notes, s)
	}
}

// addConstraints takes the constraints once every column is known: keys first,
// which the others may refer to.
func (d *tableDef) addConstraints(ctx context.Context, pending []pendingConstraint) error {
	cols := d.sqlColumns()
	for _, p := range pending {
		if p.k.Kind != ast.ConstraintPrimaryKey {
			continue
		}
		if d.hasPrimary {
			return errAt(d.text, p.k.Pos, pgerr.InvalidTableDefinition, "multiple primary keys for table %q are not allowed", d.name)
		}
		names, err := keyColumns(d.text, p.k, p.columns, cols, "primary key constraint")
		if err != nil {
			return err
		}
		d.primary, d.hasPrimary = names, true
	}
	for _, p := range pending {
		switch p.k.Kind {
		case ast.ConstraintCheck:
			i := d.set.find(p.k.Name.Name)
			if !p.k.Name.Empty() && i >= 0 {
				return pgerr.New(pgerr.DuplicateObject, "check constraint %q already exists", p.k.Name.Name)
			}
			if _, err := d.set.check(ctx, p.k, cols); err != nil {
				return err
			}
		case ast.ConstraintUnique:
			if sameSet(identNames(p.columns), d.primary) {
				if _, err := keyColumns(d.text, p.k, p.columns, cols, "unique constraint"); err != nil {
					return err
				}
				continue // the primary key says so already
			}
			if err := d.set.unique(p.k, p.columns, cols); err != nil {
				return err
			}
		case ast.ConstraintExclude, ast.ConstraintWatermark:
			return refuseConstraint(d.text, p.k)
		}
	}
	for _, p := range pending {
		if p.k.Kind == ast.ConstraintForeignKey {
			if err := d.set.foreign(ctx, p.k, p.columns, cols, d.primary); err != nil {
				return err
			}
		}
	}
	return nil
}

func identNames(ids []ast.Ident) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = id.Name
	}
	return out
}

// finish adds what follows from the rest: the bucket count of key tables.
func (d *tableDef) finish() error {
	for _, k := range d.primary {
		d.column(k).notNull = true
	}
	if len(d.cols) == 0 {
		return pgerr.New(pgerr.FeatureNotSupported, "tables without columns are not supported")
	}
	if len(d.primary) == 0 {
		return nil
	}
	bucket, given := d.options["bucket"]
	for _, p := range d.partition {
		if !slices.Contains(d.primary, p) && bucket != "-1" {
			return pgerr.New(pgerr.FeatureNotSupported, "unique constraint on partitioned table must include all partitioning columns").
				WithDetail("PRIMARY KEY constraint on table %q lacks column %q which is part of the partition key.", d.name, p).
				WithHint("Add the column to the key, or set the option 'bucket' = '-1' (dynamic buckets).")
		}
	}
	if !given {
		d.options["bucket"], _ = d.s.set.get("paimon.default_bucket")
	}
	return nil
}

// table is what the catalog makes.
func (d *tableDef) table() *schema.Table {
	t := &schema.Table{PrimaryKeys: d.primary, PartitionKeys: d.partition, Options: map[string]string{}, Comment: d.comment}
	for k, v := range d.options {
		t.Options[k] = v
	}
	for _, c := range d.cols {
		f := types.Field{ID: -1, Name: c.name, Type: c.typ.stored.WithNotNull(c.notNull), Description: c.comment}
		c.def.apply(&f, t.Options)
		if c.typ.pg != "" {
			t.Options[pgTypeOption(c.name)] = c.typ.pg
		}
		if c.identity != "" {
			t.Options[catalog.IdentityOption(c.name)] = c.identity
		}
		t.Fields = append(t.Fields, f)
	}
	for _, c := range d.set.list {
		k, v := c.Option()
		t.Options[k] = v
	}
	return t
}

// runCreateTable is CREATE TABLE.
func (s *Session) runCreateTable(ctx context.Context, text string, st *ast.CreateTable, out ResultSink) error {
	schemaName, name, temp, err := s.makes(ctx, text, st.Name, st.Persistence)
	if err != nil {
		return atPosition(err, text, st.Name.Pos()) // as PostgreSQL has it for tables, and no others
	}
	if err := s.checkTableClauses(text, st, temp); err != nil {
		return err
	}
	exists, err := s.relationExists(ctx, schemaName, name)
	if err != nil {
		return err
	}
	if exists && !st.OrReplace {
		if st.IfNotExists {
			s.notice(out, "NOTICE", pgerr.DuplicateTable, "relation %q already exists, skipping", name)
			return nil
		}
		if err := s.newTableDef(text, schemaName, name).checkColumns(st); err != nil {
			return err
		}
		return pgerr.New(pgerr.DuplicateTable, "relation %q already exists", name)
	}
	if exists {
		if err := s.isTable(ctx, schemaName, name); err != nil {
			return err
		}
	}
	d := s.newTableDef(text, schemaName, name)
	if err := d.build(ctx, st); err != nil {
		return err
	}
	if err := s.createTable(ctx, d, exists, out); err != nil {
		return err
	}
	if temp {
		s.keepTemp(name, st.OnCommit)
	}
	return nil
}

// isTable refuses to replace a view or sequence by a table.
func (s *Session) isTable(ctx context.Context, schemaName, name string) error {
	rel, err := s.catalog().Resolve(ctx, schemaName, name, catalog.ResolveOptions{})
	if err != nil {
		return s.ddlError(err, schemaName, name)
	}
	if _, ok := rel.(catalog.TableInfo); !ok {
		return pgerr.New(pgerr.WrongObjectType, "%q is not a table", name)
	}
	return nil
}

// makes is the schema and name of a relation that a statement makes.
func (s *Session) makes(ctx context.Context, text string, n ast.Name, p ast.Persistence) (schemaName, name string, temp bool, err error) {
	if schemaName, name, temp, err = s.tempName(ctx, text, n, p); temp || err != nil {
		return schemaName, name, temp, err
	}
	schemaName, name, err = s.newRelationName(ctx, text, n)
	if err == nil {
		err = s.mayCreateIn(ctx, schemaName)
	}
	return schemaName, name, false, err
}

// createTable makes the table of d, in place of the one of its name when replace
// is set.
func (s *Session) createTable(ctx context.Context, d *tableDef, replace bool, out ResultSink) error {
	ed, err := s.editorOf(ctx, d.schema)
	if err != nil {
		return err
	}
	if replace {
		rel, err := s.catalog().Resolve(ctx, d.schema, d.name, catalog.ResolveOptions{})
		if err != nil {
			return s.ddlError(err, d.schema, d.name)
		}
		if err := s.mustOwn(ctx, rel); err != nil {
			return err
		}
		if err := ed.DropTable(ctx, d.schema, d.name); err != nil {
			return s.ddlError(err, d.schema, d.name)
		}
	}
	t := d.table()
	if err := checkIndexes(t.Options, t.Fields); err != nil {
		return err
	}
	if err := ed.CreateTable(ctx, d.schema, d.name, t); err != nil {
		return s.ddlError(err, d.schema, d.name)
	}
	if err := s.born(ctx, roles.RelationKey(d.schema, d.name), roles.Relation); err != nil {
		return err
	}
	if err := s.makeSequences(ctx, d.schema, d.name, d.sequences); err != nil {
		return err
	}
	d.tell(out)
	return nil
}

// tell passes the notices and warnings on.
func (d *tableDef) tell(out ResultSink) {
	for _, n := range d.notes {
		d.s.notice(out, "NOTICE", pgerr.SuccessfulCompletion, "%s", n)
	}
	for _, w := range d.set.warn {
		d.s.warn(out, pgerr.Warning, "%s", w)
	}
}

// checkTableClauses refuses the clauses of CREATE TABLE that are not done.
func (s *Session) checkTableClauses(text string, st *ast.CreateTable, temp bool) error {
	switch {
	case len(st.Inherits) > 0:
		return errAt(text, st.Inherits[0].Pos(), pgerr.FeatureNotSupported, "INHERITS is not supported")
	case st.OfType != nil:
		return errAt(text, st.OfType.Pos(), pgerr.FeatureNotSupported, "CREATE TABLE OF is not supported")
	case st.PartitionOf != nil:
		return errAt(text, st.PartitionOf.Pos(), pgerr.FeatureNotSupported, "CREATE TABLE PARTITION OF is not supported").
			WithHint("Partitions come and go with their rows.")
	case st.Schemaless:
		return errAt(text, st.Pos, pgerr.FeatureNotSupported, "CREATE TABLE without columns is not supported")
	case st.OnCommit != ast.OnCommitNone && !temp:
		return pgerr.New(pgerr.InvalidTableDefinition, "ON COMMIT can only be used on temporary tables")
	}
	return checkStorage(text, st.Using, st.Tablespace)
}

// checkStorage accepts the one access method and tablespace that there are.
func checkStorage(text string, using, tablespace ast.Ident) error {
	switch using.Name {
	case "", "heap", "paimon":
	default:
		return errAt(text, using.Pos, pgerr.UndefinedObject, "access method %q does not exist", using.Name)
	}
	switch tablespace.Name {
	case "", "pg_default":
	default:
		return errAt(text, tablespace.Pos, pgerr.UndefinedObject, "tablespace %q does not exist", tablespace.Name)
	}
	return nil
}

// newRelationName is the schema and name of a relation that is made.
func (s *Session) newRelationName(ctx context.Context, text string, n ast.Name) (schemaName, name string, err error) {
	id := n[len(n)-1]
	if strings.Contains(id.Name, "$") {
		return "", "", errAt(text, id.Pos, pgerr.InvalidName, "the name %q may not contain \"$\"", id.Name).
			WithHint("A \"$\" parts a table's name from its system tables and branches.")
	}
	switch len(n) {
	case 1:
		schemaName, err = s.showSchema(ctx, nil)
		return schemaName, id.Name, err
	case 3:
		if db := n[0].Name; db != s.database && db != "paimon" {
			return "", "", pgerr.New(pgerr.FeatureNotSupported, "cross-database references are not implemented: %q", n.String())
		}
		n = n[1:]
	case 2:
	default:
		return "", "", pgerr.New(pgerr.SyntaxError, "improper qualified name (too many dotted names): %s", n.String())
	}
	schemaName, ok := s.schemaExists(ctx, n[0].Name)
	if !ok {
		return "", "", errAt(text, n[0].Pos, pgerr.InvalidSchemaName, "schema %q does not exist", n[0].Name)
	}
	if systemSchema(schemaName) {
		return "", "", pgerr.New(pgerr.InsufficientPrivilege, "permission denied to create \"%s.%s\"", schemaName, id.Name).
			WithDetail("System catalog modifications are currently disallowed.")
	}
	return schemaName, id.Name, nil
}

func systemSchema(name string) bool {
	return name == "pg_catalog" || name == "information_schema" || name == "sys" || name == "pg_toast"
}

// relationExists reports whether a name is taken in a schema.
func (s *Session) relationExists(ctx context.Context, schemaName, name string) (bool, error) {
	_, err := s.catalog().Resolve(ctx, schemaName, name, catalog.ResolveOptions{})
	if missing(err) {
		return false, nil
	}
	return err == nil, err
}

// ddlError words an error of the catalog's editor.
func (s *Session) ddlError(err error, schemaName, name string) error {
	switch {
	case errors.Is(err, catalog.ErrRelationExists):
		return pgerr.Wrap(err, pgerr.DuplicateTable, "relation %q already exists", name)
	case errors.Is(err, catalog.ErrSchemaExists):
		return pgerr.Wrap(err, pgerr.DuplicateSchema, "schema %q already exists", schemaName)
	case errors.Is(err, catalog.ErrNoSchema):
		return pgerr.Wrap(err, pgerr.InvalidSchemaName, "schema %q does not exist", schemaName)
	case errors.Is(err, catalog.ErrNoRelation):
		return pgerr.Wrap(err, pgerr.UndefinedTable, "relation %q does not exist", name)
	case errors.Is(err, catalog.ErrChanged):
		return pgerr.Wrap(err, pgerr.SerializationFailure, "could not serialize access due to concurrent change of relation %q", name).
			WithHint("The statement might succeed if retried.")
	}
	if e, ok := refusedSchema(err); ok {
		return e
	}
	if known(err) {
		return err
	}
	// What is left are the rules of Paimon's schema validation.
	return pgerr.Wrap(err, pgerr.InvalidTableDefinition, "%s", err.Error())
}
