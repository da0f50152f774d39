package parser

import (
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// alter parses ALTER of everything there is a tree for, and leaves the rest to
// the rules.
func (p *parser) alter() ast.Stmt {
	start := p.i
	p.next()
	kind := ""
	switch {
	case p.acceptKws("foreign table"):
		kind = "FOREIGN TABLE"
	case p.acceptKws("materialized view"):
		kind = "MATERIALIZED VIEW"
	case p.kw("table"), p.kw("view"), p.kw("sequence"), p.kw("index"):
		kind = upper(p.tok().text)
		p.next()
	case p.kw("role"), p.kw("user") && !p.userMapping(), p.kw("group"):
		return p.alterRole()
	case p.kw2("default", "privileges"):
		return p.defaultPrivileges()
	case p.kw("database"):
		return p.alterDatabase()
	case p.kw("schema"):
		return p.alterSchema()
	case p.kw2("system", "set"), p.kw2("system", "reset"):
		return p.alterSystem()
	}
	if kind == "" || p.kw("all") && (kind == "TABLE" || kind == "INDEX" || kind == "MATERIALIZED VIEW") {
		p.i = start
		return p.unsupported()
	}
	return p.alterRelation(kind, start)
}

func (p *parser) alterRelation(kind string, start int) ast.Stmt {
	a := &ast.AlterTable{Kind: kind}
	a.IfExists = p.ifExists()
	if kind == "TABLE" || kind == "FOREIGN TABLE" {
		a.Table = p.relationExpr()
	} else {
		a.Table = &ast.TableName{Loc: p.loc(), Name: p.qualifiedName()}
	}
	switch {
	case p.kw("rename") && p.wordAt(1, "tag") && p.peek(2).kind != tEOF && !p.kwAt(2, "to"):
	case p.kw("rename"):
		return p.renameRelation(a)
	case kind != "INDEX" && p.kw2("set", "schema"):
		p.next()
		p.next()
		return &ast.AlterObjectSchema{
			Object: relationRef(a), IfExists: a.IfExists, Only: a.Table.Only, Schema: p.colID(),
		}
	case (kind == "INDEX" || kind == "MATERIALIZED VIEW") && (p.kw("depends") || p.kw2("no", "depends")):
		p.i = start
		return p.unsupported()
	case kind == "SEQUENCE":
		if opts := p.seqOptions(); len(opts) > 0 {
			return &ast.AlterSequence{IfExists: a.IfExists, Name: a.Table.Name, Options: opts}
		}
	}
	if kind == "TABLE" && (p.kw("attach") || p.kw("detach")) || kind == "INDEX" && p.kw("attach") && !a.IfExists {
		a.Cmds = []*ast.AlterCmd{p.partitionCmd(kind)}
		return a
	}
	for p.err == nil {
		a.Cmds = append(a.Cmds, p.alterCmds()...)
		if !p.accept(',') {
			break
		}
	}
	return a
}

func relationRef(a *ast.AlterTable) *ast.ObjectRef {
	return &ast.ObjectRef{Loc: a.Table.Loc, Kind: a.Kind, Name: a.Table.Name}
}

// renameRelation parses RENAME [COLUMN] a TO b, RENAME CONSTRAINT, RENAME TO.
func (p *parser) renameRelation(a *ast.AlterTable) ast.Stmt {
	r := &ast.Rename{Object: relationRef(a), IfExists: a.IfExists, Only: a.Table.Only}
	p.next()
	columns := a.Kind != "SEQUENCE" && a.Kind != "INDEX"
	switch {
	case p.acceptKw("to"):
		r.NewPath = p.qualifiedName()
		r.NewName = r.NewPath[len(r.NewPath)-1]
		return r
	case a.Kind == "TABLE" && p.acceptKw("constraint"):
		r.Part = "CONSTRAINT"
		r.Column = []ast.Ident{p.colID()}
	case columns:
		r.Part = "COLUMN"
		p.acceptKw("column")
		r.Column = p.columnPath()
	default:
		p.syntaxError()
	}
	p.expectKw("to")
	r.NewName = p.colID()
	r.NewPath = ast.Name{r.NewName}
	return r
}

// columnPath parses a column, or a path into one.
func (p *parser) columnPath() []ast.Ident {
	path := []ast.Ident{p.colID()}
	for p.err == nil && p.accept('.') {
		path = append(path, p.colLabel())
	}
	return path
}

func (p *parser) partitionCmd(kind string) *ast.AlterCmd {
	c := &ast.AlterCmd{Loc: p.loc(), Op: ast.AttachPartition}
	attach := p.kw("attach")
	p.next()
	p.expectKw("partition")
	c.Table = p.qualifiedName()
	switch {
	case attach && kind == "TABLE":
		c.Bound = p.partitionBound()
	case attach:
	default:
		c.Op = ast.DetachPartition
		if p.kw("concurrently") || p.kw("finalize") {
			c.Words = upper(p.tok().text)
			p.next()
		}
	}
	return c
}

// alterCmds parses one command of ALTER TABLE; the lake dialects' lists of
// columns are several.
func (p *parser) alterCmds() []*ast.AlterCmd {
	c := &ast.AlterCmd{Loc: p.loc()}
	t := p.tok()
	if p.word("modify") {
		p.next()
		p.acceptKw("column")
		return p.columnCmds(c, ast.ModifyColumn)
	}
	if p.word("unset") && p.wordAt(1, "tblproperties") {
		p.next()
		p.next()
		c.Op, c.IfExists = ast.ResetOptions, p.ifExists()
		c.Options = p.options()
		return []*ast.AlterCmd{c}
	}
	if t.kind != tKeyword {
		p.syntaxError()
		return nil
	}
	switch t.text {
	case "add":
		return p.alterAdd(c)
	case "drop":
		return p.alterDrop(c)
	case "create", "delete", "rename":
		p.alterTag(c)
	case "alter":
		p.alterColumn(c)
	case "set":
		p.alterSet(c)
	case "reset":
		p.next()
		c.Op, c.Options = ast.ResetOptions, p.options()
	case "validate":
		p.next()
		p.expectKw("constraint")
		c.Op, c.Name = ast.ValidateConstraint, p.colID()
	case "inherit":
		p.next()
		c.Op, c.Table = ast.InheritTable, p.qualifiedName()
	case "of":
		p.next()
		c.Op, c.Table = ast.OfType, p.anyName()
	case "owner":
		p.next()
		p.expectKw("to")
		c.Op, c.Role = ast.OwnerTo, p.roleSpec()
	case "options":
		p.next()
		c.Op, c.Options = ast.AlterColumnOptions, p.alterForeignOptions()
	default:
		p.alterOther(c)
	}
	return []*ast.AlterCmd{c}
}

// columnCmds parses a column definition, or a parenthesised list of them.
func (p *parser) columnCmds(first *ast.AlterCmd, op ast.AlterOp) []*ast.AlterCmd {
	if !p.is('(') {
		first.Op = op
		first.Column = p.alterColumnDef()
		return []*ast.AlterCmd{first}
	}
	return parens(p, func() *ast.AlterCmd {
		c := &ast.AlterCmd{Loc: p.loc(), Op: op, IfNotExists: first.IfNotExists}
		c.Column = p.alterColumnDef()
		return c
	})
}

// alterColumnDef parses a column with its place, which may be nested.
func (p *parser) alterColumnDef() *ast.ColumnDef {
	c := &ast.ColumnDef{Loc: p.loc()}
	path := p.columnPath()
	c.Name = path[len(path)-1]
	if len(path) > 1 {
		c.Path = path
	}
	p.columnRest(c)
	switch {
	case p.acceptKw("first"):
		c.First = true
	case p.acceptKw("after"):
		c.After = p.colID()
	}
	return c
}

func (p *parser) alterAdd(c *ast.AlterCmd) []*ast.AlterCmd {
	p.next()
	switch {
	case p.atTableConstraint():
		c.Op, c.Constraint = ast.AddConstraint, p.tableConstraint()
		return []*ast.AlterCmd{c}
	case p.kw("partition") && p.peek(1).kind == '(',
		p.kw2("if", "not") && p.kwAt(3, "partition") && p.peek(4).kind == '(':
		c.IfNotExists = p.ifNotExists()
		c.Op = ast.AddPartition
		p.alterPartitions(c)
		return []*ast.AlterCmd{c}
	case p.kw("columns") && p.peek(1).kind == '(':
		p.next()
	default:
		p.acceptKw("column")
	}
	c.IfNotExists = p.ifNotExists()
	return p.columnCmds(c, ast.AddColumn)
}

// alterPartitions parses PARTITION (...) [, PARTITION (...)].
func (p *parser) alterPartitions(c *ast.AlterCmd) {
	for p.err == nil && p.kw("partition") {
		p.next()
		c.Partitions = append(c.Partitions, parens(p, p.partitionValue))
		if p.is(',') && p.kwAt(1, "partition") {
			p.next()
		}
	}
}

func (p *parser) alterDrop(c *ast.AlterCmd) []*ast.AlterCmd {
	p.next()
	switch {
	case p.acceptKw("constraint"):
		c.Op, c.IfExists = ast.DropConstraint, p.ifExists()
		c.Name = p.colID()
		c.Cascade, _ = p.dropBehavior()
		return []*ast.AlterCmd{c}
	case p.kw2("primary", "key"):
		p.next()
		p.next()
		c.Op = ast.DropPrimaryKey
		return []*ast.AlterCmd{c}
	case p.word("watermark") && (p.peek(1).kind == tEOF || p.peek(1).kind == ';'):
		p.next()
		c.Op = ast.DropWatermark
		return []*ast.AlterCmd{c}
	case p.kw("partition") && p.peek(1).kind == '(',
		p.kw2("if", "exists") && p.kwAt(2, "partition") && p.peek(3).kind == '(':
		c.Op, c.IfExists = ast.DropPartition, p.ifExists()
		p.alterPartitions(c)
		return []*ast.AlterCmd{c}
	case p.kw("columns") && p.peek(1).kind == '(':
		p.next()
	default:
		p.acceptKw("column")
	}
	c.Op, c.IfExists = ast.DropColumn, p.ifExists()
	if p.is('(') {
		return parens(p, func() *ast.AlterCmd {
			return &ast.AlterCmd{Loc: p.loc(), Op: ast.DropColumn, Path: p.columnPath(), IfExists: c.IfExists}
		})
	}
	c.Path = p.columnPath()
	c.Cascade, _ = p.dropBehavior()
	return []*ast.AlterCmd{c}
}

// alterTag parses Spark's CREATE [OR REPLACE] TAG, DELETE TAG and RENAME TAG.
func (p *parser) alterTag(c *ast.AlterCmd) {
	verb := p.tok().text
	if verb == "create" && !p.wordAt(1, "tag") && !p.kwAt(1, "or") || verb != "create" && !p.wordAt(1, "tag") {
		p.syntaxError()
		return
	}
	p.next()
	switch verb {
	case "create":
		c.Op, c.Replace = ast.CreateTag, p.acceptKws("or replace")
		if !p.acceptWord("tag") {
			p.syntaxError()
		}
		c.IfNotExists = p.ifNotExists()
		c.Name = p.colID()
		if p.acceptKws("as of") {
			p.expectKw("version")
			c.Expr = p.primary()
		}
		if p.acceptWord("retain") {
			n := p.intConst()
			c.Words = itoa(n) + " " + upper(p.colLabel().Name)
		}
	case "delete":
		p.next()
		c.Op, c.IfExists = ast.DeleteTag, p.ifExists()
		c.Name = p.colID()
	default:
		p.next()
		c.Op, c.Name = ast.RenameTag, p.colID()
		p.expectKw("to")
		c.After = p.colID()
	}
}

func (p *parser) alterColumn(c *ast.AlterCmd) {
	p.next()
	if p.acceptKw("constraint") {
		c.Op, c.Name = ast.AlterConstraint, p.colID()
		c.Constraint = &ast.Constraint{Loc: p.loc(), Kind: ast.ConstraintForeignKey}
		p.constraintAttrs(c.Constraint, "ALTER CONSTRAINT")
		if k := c.Constraint; p.err == nil && (k.NotValid || k.NoInherit) {
			word := "NOT VALID"
			if !k.NotValid {
				word = "NO INHERIT"
			}
			p.fail(pgerr.New(pgerr.FeatureNotSupported, "ALTER CONSTRAINT constraints cannot be marked %s", word))
		}
		return
	}
	p.acceptKw("column")
	if p.is(tInt) {
		pos := p.pos()
		c.ColumnNumber = p.intConst()
		p.expectKws("set statistics")
		c.Op, c.Number = ast.SetStatistics, p.signedInt()
		if p.err == nil && (c.ColumnNumber < 1 || c.ColumnNumber > 32767) {
			p.failAt(pos, pgerr.InvalidParameterValue, "column number must be in range from 1 to 32767")
		}
		return
	}
	c.Path = p.columnPath()
	switch {
	case p.kw("set"):
		p.alterColumnSet(c)
	case p.acceptKw("drop"):
		switch {
		case p.acceptKw("default"):
			c.Op = ast.DropDefault
		case p.acceptKw("not"):
			p.expectKw("null")
			c.Op = ast.DropNotNull
		case p.acceptKw("expression"):
			c.Op, c.IfExists = ast.DropExpression, p.ifThenExists()
		case p.acceptKw("identity"):
			c.Op, c.IfExists = ast.DropIdentity, p.ifThenExists()
		default:
			p.syntaxError()
		}
	case p.acceptKw("type"):
		p.alterType(c)
	case p.acceptKw("reset"):
		c.Op, c.Options = ast.ResetColumnOptions, p.options()
	case p.acceptKw("add"):
		p.expectKw("generated")
		k := &ast.Constraint{Loc: p.loc(), Kind: ast.ConstraintIdentity}
		k.ByDefault = p.generatedWhen()
		p.expectKws("as identity")
		if p.is('(') {
			k.Sequence = p.seqOptionsInParens()
		}
		c.Op, c.Constraint = ast.AddIdentity, k
	case p.kw("restart"):
		p.alterIdentity(c)
	case p.acceptKw("options"):
		c.Op, c.Options = ast.AlterColumnOptions, p.alterForeignOptions()
	case p.kw("comment") && p.peek(1).kind == tString:
		c.Op, c.Comment = ast.CommentColumn, p.optComment()
	case p.acceptKw("first"):
		c.Op, c.First = ast.MoveColumn, true
	case p.acceptKw("after"):
		c.Op, c.After = ast.MoveColumn, p.colID()
	default:
		p.syntaxError()
	}
}

func (p *parser) alterType(c *ast.AlterCmd) {
	c.Op, c.Type = ast.AlterType, p.typeName()
	if p.acceptKw("collate") {
		c.Collation = p.anyName()
	}
	if p.acceptKw("using") {
		c.Using = p.expr()
	}
}

func (p *parser) alterColumnSet(c *ast.AlterCmd) {
	n := p.peek(1)
	if n.isKw("generated") || n.kind == tKeyword && p.seqWord(n) {
		p.alterIdentity(c)
		return
	}
	p.next()
	switch {
	case p.acceptKw("default"):
		c.Op, c.Expr = ast.SetDefault, p.expr()
	case p.acceptKw("not"):
		p.expectKw("null")
		c.Op = ast.SetNotNull
	case p.acceptKw("data"):
		p.expectKw("type")
		p.alterType(c)
	case p.acceptKw("statistics"):
		c.Op, c.Number = ast.SetStatistics, p.signedInt()
	case p.acceptKw("storage"):
		c.Op, c.Name = ast.SetStorage, p.colID()
	case p.acceptKw("compression"):
		c.Op = ast.SetCompression
		if p.kw("default") {
			c.Name = p.colLabel()
		} else {
			c.Name = p.colID()
		}
	case p.is('('):
		c.Op, c.Options = ast.SetColumnOptions, p.options()
	default:
		p.syntaxError()
	}
}

// seqWord reports whether t begins a sequence option.
func (p *parser) seqWord(t *token) bool {
	switch t.text {
	case "as", "cache", "cycle", "no", "increment", "maxvalue", "minvalue", "owned", "sequence", "start", "restart":
		return true
	}
	return false
}

// alterIdentity parses RESTART and SET option, any number of them.
func (p *parser) alterIdentity(c *ast.AlterCmd) {
	c.Op = ast.AlterIdentity
	for p.err == nil {
		switch {
		case p.kw("restart"):
			c.Sequence = append(c.Sequence, p.seqOption())
		case p.kw2("set", "generated"):
			o := &ast.SeqOption{Loc: p.loc(), Kind: "GENERATED ALWAYS"}
			p.next()
			p.next()
			if p.generatedWhen() {
				o.Kind = "GENERATED BY DEFAULT"
			}
			c.Sequence = append(c.Sequence, o)
		case p.kw("set"):
			p.next()
			o := p.seqOption()
			if o == nil {
				p.syntaxError()
				return
			}
			if name, bad := map[string]string{"AS": "as", "RESTART": "restart", "OWNED BY": "owned_by"}[o.Kind]; bad && p.err == nil {
				p.failAt(o.Pos, pgerr.SyntaxError, "sequence option \"%s\" not supported here", name)
			}
			o.Kind = "SET " + o.Kind
			c.Sequence = append(c.Sequence, o)
		default:
			return
		}
	}
}

func (p *parser) alterSet(c *ast.AlterCmd) {
	p.next()
	switch {
	case p.is('('):
		c.Op, c.Options = ast.SetOptions, p.options()
	case p.word("tblproperties") && p.peek(1).kind == '(':
		p.next()
		c.Op, c.Options = ast.SetOptions, p.options()
	case p.acceptKw("tablespace"):
		c.Op, c.Name = ast.SetTablespace, p.colID()
	case p.acceptKw("access"):
		p.expectKw("method")
		c.Op, c.Name = ast.SetAccessMethod, p.colID()
	case p.kw("comment") && p.peek(1).kind == tString:
		c.Op, c.Comment = ast.SetComment, p.optComment()
	case p.acceptKw("without"):
		c.Op = ast.OtherAlter
		c.Words = "SET WITHOUT OIDS"
		if p.acceptKw("cluster") {
			c.Words = "SET WITHOUT CLUSTER"
		} else {
			p.expectKw("oids")
		}
	case p.acceptKw("logged"):
		c.Op, c.Words = ast.OtherAlter, "SET LOGGED"
	case p.acceptKw("unlogged"):
		c.Op, c.Words = ast.OtherAlter, "SET UNLOGGED"
	default:
		p.syntaxError()
	}
}

// alterOther parses the commands that are words and at most a name.
func (p *parser) alterOther(c *ast.AlterCmd) {
	c.Op = ast.OtherAlter
	first := p.tok().text
	named := false
	switch first {
	case "cluster":
		p.next()
		p.expectKw("on")
		c.Words, named = "CLUSTER ON", true
	case "no":
		p.next()
		if p.acceptKw("inherit") {
			c.Op, c.Table = ast.NoInheritTable, p.qualifiedName()
			return
		}
		p.expectKws("force row level security")
		c.Words = "NO FORCE ROW LEVEL SECURITY"
	case "not":
		p.next()
		p.expectKw("of")
		c.Words = "NOT OF"
	case "force":
		p.next()
		p.expectKws("row level security")
		c.Words = "FORCE ROW LEVEL SECURITY"
	case "enable", "disable":
		named = p.enableDisable(c)
	case "replica":
		p.next()
		p.expectKw("identity")
		c.Words = "REPLICA IDENTITY"
		switch {
		case p.kw("nothing"), p.kw("full"), p.kw("default"):
			c.Words += " " + upper(p.tok().text)
			p.next()
		default:
			p.expectKws("using index")
			c.Words, named = c.Words+" USING INDEX", true
		}
	default:
		p.syntaxError()
	}
	if named {
		c.Name = p.colID()
	}
}

// enableDisable parses ENABLE and DISABLE, and reports whether a name follows.
func (p *parser) enableDisable(c *ast.AlterCmd) bool {
	enable := p.kw("enable")
	c.Words = upper(p.tok().text)
	p.next()
	if p.acceptKws("row level security") {
		c.Words += " ROW LEVEL SECURITY"
		return false
	}
	if p.kw("row") {
		p.next()
		p.expectKws("level security")
		return false
	}
	always := false
	if enable && (p.kw("always") || p.kw("replica")) {
		always = true
		c.Words += " " + upper(p.tok().text)
		p.next()
	}
	if p.acceptKw("rule") {
		c.Words += " RULE"
		return true
	}
	p.expectKw("trigger")
	c.Words += " TRIGGER"
	if !always && (p.kw("all") || p.kw("user")) {
		c.Words += " " + upper(p.tok().text)
		p.next()
		return false
	}
	return true
}

// alterForeignOptions parses ( [SET|ADD|DROP] name ['value'], ... ). The verb is
// kept in front of the name.
func (p *parser) alterForeignOptions() []*ast.Option {
	return parens(p, func() *ast.Option {
		o := &ast.Option{Loc: p.loc()}
		drop := false
		if n := p.peek(1).kind; (p.kw("set") || p.kw("add") || p.kw("drop")) && n != tString {
			drop = p.kw("drop")
			o.Name = p.tok().text + " "
			p.next()
		}
		o.Name += p.colLabel().Name
		if !drop {
			loc := p.loc()
			o.Value = &ast.String{Loc: loc, Value: p.stringConst()}
		}
		return o
	})
}

// alterSchema parses ALTER SCHEMA.
func (p *parser) alterSchema() ast.Stmt {
	p.next()
	ref := &ast.ObjectRef{Loc: p.loc(), Kind: "SCHEMA", Name: ast.Name{p.colID()}}
	switch {
	case p.acceptKw("rename"):
		p.expectKw("to")
		id := p.colID()
		return &ast.Rename{Object: ref, NewName: id, NewPath: ast.Name{id}}
	case p.kw("set"):
		return p.schemaOptions(ref.Name)
	}
	p.expectKws("owner to")
	return &ast.AlterOwner{Object: ref, Owner: p.roleSpec()}
}

// schemaOptions parses SET [DBPROPERTIES] (...) of the lake engines.
func (p *parser) schemaOptions(name ast.Name) ast.Stmt {
	p.next()
	p.acceptWord("dbproperties")
	return &ast.AlterSchemaOptions{Name: name, Options: p.options()}
}

func (p *parser) alterDatabase() ast.Stmt {
	p.next()
	loc := p.loc()
	name := p.colID()
	ref := &ast.ObjectRef{Loc: loc, Kind: "DATABASE", Name: ast.Name{name}}
	switch {
	case p.acceptKw("rename"):
		p.expectKw("to")
		id := p.colID()
		return &ast.Rename{Object: ref, NewName: id, NewPath: ast.Name{id}}
	case p.kw2("owner", "to"):
		p.next()
		p.next()
		return &ast.AlterOwner{Object: ref, Owner: p.roleSpec()}
	case p.kw("set") && (p.peek(1).kind == '(' || p.wordAt(1, "dbproperties")):
		return p.schemaOptions(ref.Name)
	case p.kw2("set", "tablespace"):
		p.next()
		p.next()
		o := &ast.Option{Loc: p.loc(), Name: "tablespace", Value: &ast.OptionWord{Loc: p.loc(), Text: p.colID().Name}}
		return &ast.AlterDatabase{Name: name, Options: []*ast.Option{o}}
	case p.kw("set"), p.kw("reset"):
		return &ast.AlterSettings{Kind: "DATABASE", Database: name, Set: p.setReset()}
	case p.acceptKws("refresh collation"):
		p.expectKw("version")
		return &ast.AlterDatabase{Name: name, Options: []*ast.Option{{Loc: loc, Name: "refresh collation version"}}}
	}
	return &ast.AlterDatabase{Name: name, Options: p.databaseOptions()}
}

func (p *parser) alterSystem() ast.Stmt {
	p.next()
	return &ast.AlterSettings{Kind: "SYSTEM", Set: p.systemSet()}
}
