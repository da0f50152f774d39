package ast

import "strconv"

func (f *formatter) ddl(s Stmt) {
	switch s := s.(type) {
	case *CreateTable:
		f.createTable(s)
	case *CreateTableAs:
		f.createTableAs(s)
	case *CreateView:
		f.createView(s)
	case *CreateSchema:
		f.createSchema(s)
	case *CreateIndex:
		f.createIndex(s)
	case *CreateSequence:
		f.s("CREATE ", persistence(s.Persistence), "SEQUENCE ", ifNotExists(s.IfNotExists))
		f.name(s.Name)
		f.seqOptions(s.Options)
	case *AlterSequence:
		f.s("ALTER SEQUENCE ", ifExists(s.IfExists))
		f.name(s.Name)
		f.seqOptions(s.Options)
	case *Drop:
		f.drop(s)
	case *Comment:
		f.s("COMMENT ON ")
		f.object(s.Object)
		f.s(" IS ")
		if s.Text == nil {
			f.s("NULL")
		} else {
			f.str(*s.Text)
		}
	case *AlterTable:
		f.alterTable(s)
	case *Rename:
		f.rename(s)
	case *AlterOwner:
		f.s("ALTER ")
		f.object(s.Object)
		f.s(" OWNER TO ")
		f.role(s.Owner)
	case *AlterObjectSchema:
		f.s("ALTER ", s.Object.Kind, " ", ifExists(s.IfExists))
		f.opt(s.Only, "ONLY ")
		f.name(s.Object.Name)
		f.s(" SET SCHEMA ")
		f.ident(s.Schema)
	case *AlterSchemaOptions:
		f.s("ALTER SCHEMA ")
		f.name(s.Name)
		f.options(" SET ", s.Options)
	case *CreateFunction:
		f.createFunction(s)
	default:
		f.session(s)
	}
}

func ifExists(b bool) string {
	if b {
		return "IF EXISTS "
	}
	return ""
}

func ifNotExists(b bool) string {
	if b {
		return "IF NOT EXISTS "
	}
	return ""
}

func orReplace(b bool) string {
	if b {
		return "OR REPLACE "
	}
	return ""
}

func (f *formatter) createTable(s *CreateTable) {
	f.s("CREATE ", orReplace(s.OrReplace), persistence(s.Persistence), "TABLE ", ifNotExists(s.IfNotExists))
	f.name(s.Name)
	switch {
	case s.OfType != nil:
		f.s(" OF ")
		f.name(s.OfType)
	case s.PartitionOf != nil:
		f.s(" PARTITION OF ")
		f.name(s.PartitionOf)
	}
	bare := s.OfType == nil && s.PartitionOf == nil
	switch {
	case len(s.Elements) > 0:
		f.s(" (")
		each(f, s.Elements, f.tableElement)
		f.s(")")
	case bare && !s.Schemaless:
		f.s(" ()")
	}
	if s.Bound != nil {
		f.s(" ")
		f.partitionBound(s.Bound)
	}
	if s.Inherits != nil {
		f.s(" INHERITS (")
		each(f, s.Inherits, f.name)
		f.s(")")
	}
	opts := s.Options
	if s.Schemaless {
		// WITH alone would be taken for the options of a CREATE TABLE AS.
		f.options(" TBLPROPERTIES ", opts)
		opts = nil
	}
	f.tableTail(s.PartitionBy, s.Comment, s.Using, opts, s.OnCommit, s.Tablespace)
}

func (f *formatter) tableTail(by *PartitionBy, comment *string, using Ident, opts []*Option, oc OnCommit, ts Ident) {
	if by != nil {
		f.partitionBy(by)
	}
	f.comment(comment)
	if !using.Empty() {
		f.s(" USING ")
		f.ident(using)
	}
	f.options(" WITH ", opts)
	f.s([...]string{"", " ON COMMIT PRESERVE ROWS", " ON COMMIT DELETE ROWS", " ON COMMIT DROP"}[oc])
	if !ts.Empty() {
		f.s(" TABLESPACE ")
		f.ident(ts)
	}
}

func (f *formatter) comment(c *string) {
	if c != nil {
		f.s(" COMMENT ")
		f.str(*c)
	}
}

func (f *formatter) partitionBy(by *PartitionBy) {
	if by.Strategy == "" {
		f.s(" PARTITIONED BY (")
	} else {
		f.s(" PARTITION BY ", QuoteIdent(by.Strategy), " (")
	}
	each(f, by.Elems, f.indexElem)
	f.opt(len(by.Elems) > 0 && len(by.Columns) > 0, ", ")
	each(f, by.Columns, f.columnDef)
	f.s(")")
}

func (f *formatter) partitionBound(b *PartitionBound) {
	switch {
	case b.Default:
		f.s("DEFAULT")
	case b.Hash:
		f.s("FOR VALUES WITH (modulus ", strconv.Itoa(b.Modulus), ", remainder ", strconv.Itoa(b.Remainder), ")")
	case b.In != nil:
		f.s("FOR VALUES IN ")
		f.parenExprs(b.In)
	default:
		f.s("FOR VALUES FROM ")
		f.parenExprs(b.From)
		f.s(" TO ")
		f.parenExprs(b.To)
	}
}

func (f *formatter) tableElement(e TableElement) {
	switch e := e.(type) {
	case *ColumnDef:
		f.columnDef(e)
	case *Constraint:
		f.constraint(e, false)
	case *LikeTable:
		f.s("LIKE ")
		f.name(e.Name)
		for _, o := range e.Options {
			f.s(map[bool]string{true: " EXCLUDING ", false: " INCLUDING "}[o.Excluding], o.What)
		}
	}
}

func (f *formatter) path(ids []Ident) { f.name(ids) }

func (f *formatter) columnDef(c *ColumnDef) {
	if len(c.Path) > 0 {
		f.path(c.Path)
	} else {
		f.ident(c.Name)
	}
	if c.Type != nil {
		f.s(" ")
		f.typeName(c.Type)
	}
	if !c.Compression.Empty() {
		f.s(" COMPRESSION ")
		if c.Compression.Name == "default" {
			f.s("DEFAULT")
		} else {
			f.ident(c.Compression)
		}
	}
	if len(c.Options) > 0 {
		f.s(" OPTIONS (")
		each(f, c.Options, f.foreignOption)
		f.s(")")
	}
	if c.Collation != nil {
		f.s(" COLLATE ")
		f.name(c.Collation)
	}
	for _, k := range c.Constraints {
		f.s(" ")
		f.constraint(k, true)
	}
	f.comment(c.Comment)
	f.opt(c.First, " FIRST")
	if !c.After.Empty() {
		f.s(" AFTER ")
		f.ident(c.After)
	}
}

// foreignOption writes name 'value', with the verb of ALTER in front.
func (f *formatter) foreignOption(o *Option) {
	name := o.Name
	for _, verb := range [...]string{"set ", "add ", "drop "} {
		if len(name) > len(verb) && name[:len(verb)] == verb {
			f.s(verb)
			name = name[len(verb):]
			break
		}
	}
	f.s(`"`, name, `"`)
	if o.Value != nil {
		f.s(" ")
		f.optionValue(o.Value)
	}
}

// constraint writes a constraint of a column or of a table.
func (f *formatter) constraint(k *Constraint, column bool) {
	if !k.Name.Empty() {
		f.s("CONSTRAINT ")
		f.ident(k.Name)
		f.s(" ")
	}
	switch k.Kind {
	case ConstraintNull:
		f.s("NULL")
	case ConstraintNotNull:
		f.s("NOT NULL")
	case ConstraintDefault:
		f.s("DEFAULT ")
		f.operand(k.Expr)
	case ConstraintIdentity:
		f.identity(k)
	case ConstraintGenerated:
		f.s("GENERATED ALWAYS AS (")
		f.expr(k.Expr)
		f.s(") STORED")
	case ConstraintCheck:
		f.s("CHECK (")
		f.expr(k.Expr)
		f.s(")")
	case ConstraintPrimaryKey, ConstraintUnique:
		f.key(k)
	case ConstraintExclude:
		f.exclude(k)
	case ConstraintForeignKey:
		f.foreignKey(k, column)
	case ConstraintWatermark:
		f.s("WATERMARK FOR ")
		f.idents(k.Columns)
		f.s(" AS ")
		f.expr(k.Expr)
	case AttrDeferrable:
		f.s("DEFERRABLE")
	case AttrNotDeferrable:
		f.s(map[bool]string{true: "NOT ENFORCED", false: "NOT DEFERRABLE"}[k.NotEnforced])
		return
	case AttrInitiallyDeferred:
		f.s("INITIALLY DEFERRED")
	case AttrInitiallyImmediate:
		f.s("INITIALLY IMMEDIATE")
	}
	f.constraintAttrs(k)
}

func (f *formatter) constraintAttrs(k *Constraint) {
	f.opt(k.Deferrable, " DEFERRABLE")
	f.opt(k.NotDeferrable, " NOT DEFERRABLE")
	f.opt(k.Deferred, " INITIALLY DEFERRED")
	f.opt(k.Immediate, " INITIALLY IMMEDIATE")
	f.opt(k.NotValid, " NOT VALID")
	f.opt(k.NoInherit, " NO INHERIT")
	f.opt(k.NotEnforced, " NOT ENFORCED")
}

func generatedWhen(byDefault bool) string {
	if byDefault {
		return "BY DEFAULT"
	}
	return "ALWAYS"
}

func (f *formatter) identity(k *Constraint) {
	f.s("GENERATED ", generatedWhen(k.ByDefault), " AS IDENTITY")
	if len(k.Sequence) > 0 {
		f.s(" (")
		f.seqOptions(k.Sequence)
		f.s(")")
	}
}

func (f *formatter) key(k *Constraint) {
	f.s(map[bool]string{true: "PRIMARY KEY", false: "UNIQUE"}[k.Kind == ConstraintPrimaryKey])
	f.opt(k.NullsNotDistinct, " NULLS NOT DISTINCT")
	f.columns(k.Columns)
	f.constraintIndex(k)
	if !k.UsingIndex.Empty() {
		f.s(" USING INDEX ")
		f.ident(k.UsingIndex)
	}
}

func (f *formatter) constraintIndex(k *Constraint) {
	if len(k.Include) > 0 {
		f.s(" INCLUDE")
		f.columns(k.Include)
	}
	f.options(" WITH ", k.Options)
	if !k.Tablespace.Empty() {
		f.s(" USING INDEX TABLESPACE ")
		f.ident(k.Tablespace)
	}
}

func (f *formatter) exclude(k *Constraint) {
	f.s("EXCLUDE")
	if !k.Method.Empty() {
		f.s(" USING ")
		f.ident(k.Method)
	}
	f.s(" (")
	each(f, k.Excludes, func(e *ExcludeElem) {
		f.indexElem(e.Elem)
		f.s(" WITH ")
		f.operator(e.Op)
	})
	f.s(")")
	f.constraintIndex(k)
	if k.Where != nil {
		f.s(" WHERE (")
		f.expr(k.Where)
		f.s(")")
	}
}

func (f *formatter) foreignKey(k *Constraint, column bool) {
	if !column {
		f.s("FOREIGN KEY")
		f.columns(k.Columns)
		f.s(" ")
	}
	f.s("REFERENCES ")
	f.name(k.References)
	f.columns(k.RefColumns)
	f.opt(k.Match != "", " MATCH "+k.Match)
	action := func(when string, a *KeyAction) {
		if a != nil {
			f.s(" ON ", when, " ", a.Action)
			f.columns(a.Columns)
		}
	}
	action("DELETE", k.OnDelete)
	action("UPDATE", k.OnUpdate)
}

func (f *formatter) createTableAs(s *CreateTableAs) {
	f.s("CREATE ", orReplace(s.OrReplace), persistence(s.Persistence))
	f.s(map[bool]string{true: "MATERIALIZED VIEW ", false: "TABLE "}[s.Materialized], ifNotExists(s.IfNotExists))
	f.name(s.Name)
	f.columns(s.Columns)
	f.tableTail(s.PartitionBy, s.Comment, s.Using, s.Options, s.OnCommit, s.Tablespace)
	f.s(" AS ")
	f.stmt(s.As)
	f.opt(s.NoData, " WITH NO DATA")
}

func (f *formatter) createView(s *CreateView) {
	f.s("CREATE ", orReplace(s.OrReplace), persistence(s.Persistence))
	f.opt(s.Recursive, "RECURSIVE ")
	f.s("VIEW ", ifNotExists(s.IfNotExists))
	f.name(s.Name)
	f.columns(s.Columns)
	f.comment(s.Comment)
	f.options(" WITH ", s.Options)
	f.s(" AS ")
	f.query(s.Query)
	f.opt(s.Check != "", " WITH "+s.Check+" CHECK OPTION")
}

func (f *formatter) createSchema(s *CreateSchema) {
	f.s("CREATE SCHEMA ", ifNotExists(s.IfNotExists))
	f.name(s.Path)
	if s.Authorization != nil {
		f.s(" AUTHORIZATION ")
		f.role(s.Authorization)
	}
	f.comment(s.Comment)
	f.options(" WITH ", s.Options)
	for _, e := range s.Stmts {
		f.s(" ")
		f.stmt(e)
	}
}

func (f *formatter) createIndex(s *CreateIndex) {
	f.s("CREATE ")
	f.opt(s.Unique, "UNIQUE ")
	f.s("INDEX ")
	f.opt(s.Concurrently, "CONCURRENTLY ")
	f.s(ifNotExists(s.IfNotExists))
	if !s.Name.Empty() {
		f.ident(s.Name)
		f.s(" ")
	}
	f.s("ON ")
	f.table(s.Table)
	if !s.Method.Empty() {
		f.s(" USING ")
		f.ident(s.Method)
	}
	f.s(" (")
	each(f, s.Elems, f.indexElem)
	f.s(")")
	if len(s.Include) > 0 {
		f.s(" INCLUDE (")
		each(f, s.Include, f.indexElem)
		f.s(")")
	}
	f.opt(s.NullsNotDistinct, " NULLS NOT DISTINCT")
	f.options(" WITH ", s.Options)
	if !s.Tablespace.Empty() {
		f.s(" TABLESPACE ")
		f.ident(s.Tablespace)
	}
	f.where(s.Where)
}

// indexElem writes a column or an expression. Calls need no parentheses, but
// take them too.
func (f *formatter) indexElem(e *IndexElem) {
	if e.Expr == nil {
		f.ident(e.Column)
	} else {
		f.s("(")
		f.expr(e.Expr)
		f.s(")")
	}
	if e.Collation != nil {
		f.s(" COLLATE ")
		f.name(e.Collation)
	}
	if e.OpClass != nil {
		f.s(" ")
		f.name(e.OpClass)
		f.options(" ", e.OpClassOpts)
	}
	f.opt(e.Asc, " ASC")
	f.opt(e.Desc, " DESC")
	f.nulls(e.Nulls)
}

func (f *formatter) seqOptions(os []*SeqOption) {
	for _, o := range os {
		f.s(" ", o.Kind)
		if o.Value != nil {
			f.s(" ")
			f.expr(o.Value)
		}
		if o.Type != nil {
			f.s(" ")
			f.typeName(o.Type)
		}
		if o.Name != nil {
			f.s(" ")
			f.name(o.Name)
		}
	}
}

func (f *formatter) drop(s *Drop) {
	f.s("DROP ", s.Kind, " ")
	f.opt(s.Concurrently, "CONCURRENTLY ")
	f.s(ifExists(s.IfExists))
	switch {
	case s.Types != nil:
		each(f, s.Types, f.typeName)
	case s.Roles != nil:
		each(f, s.Roles, f.role)
	default:
		for i, n := range s.Names {
			f.opt(i > 0, ", ")
			f.name(n)
			if s.Args != nil {
				f.s(s.Args[i])
			}
		}
	}
	if s.Table != nil {
		f.s(" ON ")
		f.name(s.Table)
	}
	f.opt(s.Cascade, " CASCADE")
	f.opt(s.Restrict, " RESTRICT")
	f.opt(s.Force, " WITH (FORCE)")
}

// object writes an object as COMMENT and ALTER name it.
func (f *formatter) object(o *ObjectRef) {
	switch o.Kind {
	case "DOMAIN CONSTRAINT":
		f.s("CONSTRAINT ")
	default:
		f.s(o.Kind, " ")
	}
	switch {
	case o.Kind == "FUNCTION", o.Kind == "PROCEDURE", o.Kind == "ROUTINE":
		f.name(o.Name)
		f.s(o.Text)
	case o.Text != "":
		f.s(o.Text)
	default:
		f.name(o.Name)
	}
	if o.On != nil {
		f.s(" ON ")
		f.opt(o.Kind == "DOMAIN CONSTRAINT", "DOMAIN ")
		f.name(o.On)
	}
}

func (f *formatter) rename(s *Rename) {
	f.s("ALTER ", s.Object.Kind, " ", ifExists(s.IfExists))
	f.opt(s.Only, "ONLY ")
	f.name(s.Object.Name)
	f.s(" RENAME ")
	if s.Part != "" {
		f.s(s.Part, " ")
		f.path(s.Column)
		f.s(" ")
	}
	f.s("TO ")
	f.name(s.NewPath)
	f.opt(s.Cascade, " CASCADE")
}

func (f *formatter) createFunction(s *CreateFunction) {
	f.s("CREATE ", orReplace(s.OrReplace), map[bool]string{true: "PROCEDURE ", false: "FUNCTION "}[s.Procedure])
	f.s(ifNotExists(s.IfNotExists))
	f.name(s.Name)
	f.s("(")
	each(f, s.Params, f.param)
	f.s(")")
	if s.Returns != nil {
		f.s(" RETURNS ")
		f.typeName(s.Returns)
	}
	if s.ReturnsTable != nil {
		f.s(" RETURNS TABLE (")
		each(f, s.ReturnsTable, f.param)
		f.s(")")
	}
	for _, o := range s.Options {
		f.s(" ")
		f.funcOption(o)
	}
	if s.Return != nil {
		f.s(" RETURN ")
		f.expr(s.Return)
	}
	if s.IsAtomic {
		f.s(" BEGIN ATOMIC ")
		for _, b := range s.Atomic {
			f.stmt(b)
			f.s("; ")
		}
		f.s("END")
	}
}

func (f *formatter) funcOption(o *FuncOption) {
	switch o.Name {
	case "SET", "RESET":
		f.stmt(o.Set)
	case "CALLED":
		f.s("CALLED ON NULL INPUT")
	case "AS", "LANGUAGE":
		f.s(o.Name, " ")
		each(f, o.Values, f.str)
	case "PARALLEL":
		f.s("PARALLEL ", QuoteIdent(o.Values[0]))
	case "SUPPORT":
		f.s("SUPPORT ", o.Values[0])
	case "TRANSFORM":
		f.s("TRANSFORM ")
		each(f, o.Types, func(t *TypeName) {
			f.s("FOR TYPE ")
			f.typeName(t)
		})
	default:
		f.s(o.Name)
		if o.Number != nil {
			f.s(" ")
			f.expr(o.Number)
		}
	}
}
