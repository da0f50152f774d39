package parser

import (
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// optTemp parses TEMPORARY, UNLOGGED and so on before TABLE, VIEW, SEQUENCE.
func (p *parser) optTemp() ast.Persistence {
	switch {
	case (p.kw("local") || p.kw("global")) && (p.kwAt(1, "temp") || p.kwAt(1, "temporary")):
		p.next()
		p.next()
		return ast.Temporary
	case p.acceptKw("temporary"), p.acceptKw("temp"):
		return ast.Temporary
	case p.acceptKw("unlogged"):
		return ast.Unlogged
	}
	return ast.Permanent
}

// tableTail is what may follow the elements of a table, in any of its forms.
type tableTail struct {
	inherits    []ast.Name
	partitionBy *ast.PartitionBy
	using       ast.Ident
	options     []*ast.Option
	onCommit    ast.OnCommit
	tablespace  ast.Ident
	comment     *string
	elements    bool // a list of elements, or what stands for it, was there
	named       bool // the columns were named before AS
	lake        bool // one of the lake dialects' clauses was there
}

// createTable parses CREATE TABLE from TABLE on.
func (p *parser) createTable(pers ast.Persistence, orReplace bool) ast.Stmt {
	p.next()
	t := &ast.CreateTable{Persistence: pers, OrReplace: orReplace}
	t.IfNotExists = p.ifNotExists()
	t.Name = p.qualifiedName()
	tail := tableTail{elements: true}
	switch {
	case p.asOnly:
		return p.createTableAs(t, tail)
	case p.kw("of"):
		p.next()
		t.OfType = p.anyName()
		if p.is('(') {
			p.tableElements(t, p.typedElement)
		}
		p.tableTail(&tail, false)
	case p.kw("partition") && p.kwAt(1, "of"):
		p.next()
		p.next()
		t.PartitionOf = p.qualifiedName()
		if p.is('(') {
			p.tableElements(t, p.typedElement)
		}
		t.Bound = p.partitionBound()
		p.tableTail(&tail, false)
	case p.is('(') && (p.inSchemaElem || !p.columnNames()):
		if p.peek(1).kind == ')' {
			p.next()
			p.next()
		} else {
			p.tableElements(t, p.tableElement)
		}
		p.tableTail(&tail, true)
	case p.kw("like"):
		// Spark and Flink: CREATE TABLE t LIKE s.
		l := p.likeTable()
		t.Likes = append(t.Likes, l)
		t.Elements = append(t.Elements, l)
		p.tableTail(&tail, false)
	default:
		return p.createTableAs(t, tail)
	}
	if tail.lake && p.kw("as") {
		p.syntaxError()
	}
	t.Inherits, t.PartitionBy, t.Using, t.Options = tail.inherits, tail.partitionBy, tail.using, tail.options
	t.OnCommit, t.Tablespace, t.Comment = tail.onCommit, tail.tablespace, tail.comment
	return t
}

// columnNames reports whether the parenthesis at the current token holds bare
// column names, as before AS, rather than definitions.
func (p *parser) columnNames() bool {
	n := p.peek(2).kind
	return p.peek(1).isColID() && (n == ',' || n == ')')
}

func (p *parser) createTableAs(t *ast.CreateTable, tail tableTail) ast.Stmt {
	cols := p.optColumns()
	tail.elements, tail.named = false, cols != nil
	p.tableTail(&tail, false)
	if p.kw("partition") && cols == nil {
		p.next() // only PARTITION OF could follow
		p.syntaxError()
	}
	if p.inSchemaElem {
		p.syntaxError()
		return nil
	}
	if !p.kw("as") && tail.lake && cols == nil && p.err == nil && !p.asOnly {
		// A lake table without columns: its schema comes from elsewhere.
		t.Schemaless = true
		t.PartitionBy, t.Using, t.Options = tail.partitionBy, tail.using, tail.options
		t.OnCommit, t.Tablespace, t.Comment = tail.onCommit, tail.tablespace, tail.comment
		return t
	}
	c := &ast.CreateTableAs{
		Persistence: t.Persistence, OrReplace: t.OrReplace, IfNotExists: t.IfNotExists, Name: t.Name,
		Columns: cols, PartitionBy: tail.partitionBy, Comment: tail.comment, Using: tail.using,
		Options: tail.options, OnCommit: tail.onCommit, Tablespace: tail.tablespace,
	}
	p.expectKw("as")
	if p.kw("execute") {
		c.As = p.execute()
	} else if q := p.selectStmt(); q != nil {
		c.As = q
	}
	c.NoData = p.withData()
	return c
}

// withData parses WITH [NO] DATA.
func (p *parser) withData() (noData bool) {
	if !p.acceptKw("with") {
		return false
	}
	noData = p.acceptKw("no")
	p.expectKw("data")
	return noData
}

// tableTail parses the clauses after a table's elements. PostgreSQL's come in
// a fixed order; the lake dialects' come anywhere.
func (p *parser) tableTail(t *tableTail, inherits bool) {
	rank := 0
	// once takes a clause of rank n if none of it or after it has been.
	once := func(n int, ok bool) bool {
		if !ok || rank >= n {
			return false
		}
		rank = n
		return true
	}
	for p.err == nil {
		switch {
		case once(1, inherits && p.kw("inherits")):
			p.next()
			t.inherits = parens(p, p.qualifiedName)
		case once(2, p.kw("partition") && t.elements):
			p.next()
			p.expectKw("by")
			t.partitionBy = p.partitionBy()
		case once(2, !t.named && p.kw2("partition", "by") && p.peek(2).kind == '('):
			// Before AS: PostgreSQL has no partitions there.
			p.next()
			p.next()
			t.partitionBy, t.lake = p.partitionBy(), true
		case t.partitionBy == nil && p.word("partitioned"):
			p.next()
			p.expectKw("by")
			t.partitionBy, t.lake = p.partitionedBy(), true
		case once(3, p.kw("using")):
			p.next()
			t.using = p.colID()
			t.lake = t.lake || t.using.Name == "paimon"
		case p.kw("with") && (once(4, true) || t.lake):
			p.next()
			t.lake = t.lake || p.peek(1).kind == tString
			t.options = append(t.options, p.optionsOrEmpty()...)
		case once(4, p.kw("without")):
			p.next()
			p.expectKw("oids")
		case p.word("tblproperties") && p.peek(1).kind == '(':
			p.next()
			t.options, t.lake = append(t.options, p.options()...), true
		case p.word("options") && p.peek(1).kind == '(' && t.lake:
			p.next()
			t.options = append(t.options, p.foreignOptions()...)
		case p.word("location") && p.peek(1).kind == tString:
			loc := p.loc()
			p.next()
			t.options, t.lake = append(t.options, wordOption(loc, "path", p.stringConst())), true
		case once(5, p.kw("on")):
			t.onCommit = p.onCommit()
		case once(6, p.kw("tablespace")):
			p.next()
			t.tablespace = p.colID()
		case t.comment == nil && p.kw("comment"):
			if t.comment = p.optComment(); t.comment == nil {
				return
			}
			t.lake = true
		default:
			return
		}
	}
}

func (p *parser) onCommit() ast.OnCommit {
	p.next()
	p.expectKw("commit")
	switch {
	case p.acceptKw("drop"):
		return ast.OnCommitDrop
	case p.acceptKw("delete"):
		p.expectKw("rows")
		return ast.OnCommitDelete
	}
	p.expectKws("preserve rows")
	return ast.OnCommitPreserve
}

// partitionBy parses what follows PARTITION BY: PostgreSQL's strategy and
// elements, or bare columns.
func (p *parser) partitionBy() *ast.PartitionBy {
	b := &ast.PartitionBy{Loc: p.loc()}
	if !p.is('(') || !p.columnNames() {
		b.Strategy = p.colID().Name
	}
	b.Elems = parens(p, p.partitionElem)
	return b
}

// partitionElem parses a partition key: a column, a call or an expression in
// parentheses.
func (p *parser) partitionElem() *ast.IndexElem {
	e := p.keyExpr()
	p.collateClass(e)
	return e
}

// partitionedBy parses the list of PARTITIONED BY; Hive's has types.
func (p *parser) partitionedBy() *ast.PartitionBy {
	b := &ast.PartitionBy{Loc: p.loc()}
	p.expect('(')
	for p.err == nil {
		if n := p.peek(1).kind; p.tok().isColID() && n != ',' && n != ')' && n != '(' {
			c := &ast.ColumnDef{Loc: p.loc(), Name: p.colID()}
			c.Type = p.typeName()
			c.Comment = p.optComment()
			b.Columns = append(b.Columns, c)
		} else {
			b.Elems = append(b.Elems, p.partitionElem())
		}
		if !p.accept(',') {
			break
		}
	}
	p.expect(')')
	return b
}

// partitionBound parses FOR VALUES ... or DEFAULT.
func (p *parser) partitionBound() *ast.PartitionBound {
	b := &ast.PartitionBound{Loc: p.loc()}
	if p.acceptKw("default") {
		b.Default = true
		return b
	}
	p.expectKws("for values")
	switch {
	case p.acceptKw("in"):
		b.In = parens(p, p.expr)
	case p.acceptKw("from"):
		b.From = parens(p, p.expr)
		p.expectKw("to")
		b.To = parens(p, p.expr)
	default:
		p.expectKw("with")
		b.Hash = true
		p.hashBound(b)
	}
	return b
}

func (p *parser) hashBound(b *ast.PartitionBound) {
	b.Modulus, b.Remainder = -1, -1
	p.expect('(')
	for p.err == nil {
		at := p.pos()
		name := p.nonReservedWord().Name
		n := p.intConst()
		if p.err != nil {
			return
		}
		switch {
		case name == "modulus" && b.Modulus != -1:
			p.failAt(at, pgerr.DuplicateObject, "modulus for hash partition provided more than once")
		case name == "modulus":
			b.Modulus = n
		case name == "remainder" && b.Remainder != -1:
			p.failAt(at, pgerr.DuplicateObject, "remainder for hash partition provided more than once")
		case name == "remainder":
			b.Remainder = n
		default:
			p.failAt(at, pgerr.SyntaxError, "unrecognized hash partition bound specification \"%s\"", name)
		}
		if !p.accept(',') {
			break
		}
	}
	p.expect(')')
	switch {
	case p.err != nil:
	case b.Modulus == -1:
		p.fail(pgerr.New(pgerr.SyntaxError, "modulus for hash partition must be specified"))
	case b.Remainder == -1:
		p.fail(pgerr.New(pgerr.SyntaxError, "remainder for hash partition must be specified"))
	}
}

// tableElements parses the parenthesised elements of a table.
func (p *parser) tableElements(t *ast.CreateTable, elem func() ast.TableElement) {
	for _, e := range parens(p, elem) {
		t.Elements = append(t.Elements, e)
		switch e := e.(type) {
		case *ast.ColumnDef:
			t.Columns = append(t.Columns, e)
		case *ast.Constraint:
			t.Constraints = append(t.Constraints, e)
		case *ast.LikeTable:
			t.Likes = append(t.Likes, e)
		}
	}
}

// atTableConstraint reports whether a table constraint begins here; all its
// words but EXCLUDE are reserved.
func (p *parser) atTableConstraint() bool {
	t := p.tok()
	if t.kind == tIdent && p.word("watermark") && p.kwAt(1, "for") {
		return true
	}
	if t.kind != tKeyword {
		return false
	}
	switch t.text {
	case "constraint", "check", "unique", "primary", "foreign":
		return true
	case "exclude":
		return p.kwAt(1, "using") || p.peek(1).kind == '('
	}
	return false
}

func (p *parser) tableElement() ast.TableElement {
	switch {
	case p.kw("like"):
		return p.likeTable()
	case p.atTableConstraint():
		return p.tableConstraint()
	}
	return p.columnDef()
}

// typedElement parses an element of a table made from a type or as a
// partition: column options without a type.
func (p *parser) typedElement() ast.TableElement {
	if p.atTableConstraint() {
		return p.tableConstraint()
	}
	c := &ast.ColumnDef{Loc: p.loc(), Name: p.colID()}
	if p.acceptKw("with") {
		p.expectKw("options")
	}
	p.columnQuals(c)
	return c
}

func (p *parser) likeTable() *ast.LikeTable {
	l := &ast.LikeTable{Loc: p.loc()}
	p.next()
	l.Name = p.qualifiedName()
	for p.err == nil && (p.kw("including") || p.kw("excluding")) {
		o := &ast.LikeOption{Loc: p.loc(), Excluding: p.kw("excluding")}
		p.next()
		switch t := p.tok(); {
		case t.kind != tKeyword:
			p.syntaxError()
		case t.text == "comments", t.text == "compression", t.text == "constraints", t.text == "defaults",
			t.text == "identity", t.text == "generated", t.text == "indexes", t.text == "statistics",
			t.text == "storage", t.text == "all":
			o.What = upper(t.text)
			p.next()
		default:
			p.syntaxError()
		}
		l.Options = append(l.Options, o)
	}
	return l
}

// columnDef parses a column of CREATE TABLE.
func (p *parser) columnDef() *ast.ColumnDef {
	c := &ast.ColumnDef{Loc: p.loc(), Name: p.colID()}
	p.columnRest(c)
	return c
}

// columnRest parses a column from its type on.
func (p *parser) columnRest(c *ast.ColumnDef) {
	c.Type = p.typeName()
	if p.kw("compression") {
		p.next()
		if p.kw("default") {
			c.Compression = p.colLabel()
		} else {
			c.Compression = p.colID()
		}
	}
	if p.acceptKw("options") {
		c.Options = p.foreignOptions()
	}
	p.columnQuals(c)
}

// columnQuals parses the constraints, collation and comment of a column, in
// any order.
func (p *parser) columnQuals(c *ast.ColumnDef) {
	for p.err == nil {
		switch {
		case p.kw("collate"):
			pos := p.pos()
			p.next()
			name := p.anyName()
			if c.Collation != nil && p.err == nil {
				p.failAt(pos, pgerr.SyntaxError, "multiple COLLATE clauses not allowed")
			}
			c.Collation = name
			continue
		case c.Comment == nil && p.kw("comment"):
			if c.Comment = p.optComment(); c.Comment != nil {
				continue
			}
		}
		k := p.columnConstraint()
		if k == nil {
			return
		}
		c.Constraints = append(c.Constraints, k)
	}
}
