package parser

import "github.com/paimon-sql/paimon-sql/sql/ast"

// explain parses EXPLAIN. ( begins options unless a query begins in it.
func (p *parser) explain() ast.Stmt {
	e := &ast.Explain{}
	p.next()
	switch {
	case p.kw("analyze") || p.kw("analyse"):
		e.Options = append(e.Options, &ast.Option{Loc: p.loc(), Name: "analyze"})
		p.next()
		if p.kw("verbose") {
			e.Options = append(e.Options, &ast.Option{Loc: p.loc(), Name: "verbose"})
			p.next()
		}
	case p.kw("verbose"):
		e.Options = append(e.Options, &ast.Option{Loc: p.loc(), Name: "verbose"})
		p.next()
	case p.is('(') && !p.parenQuery():
		e.Options = p.utilityOptions()
	}
	e.Stmt = p.explainable()
	return e
}

func (p *parser) explainable() ast.Stmt {
	switch {
	case p.kw("declare"):
		return p.declareCursor()
	case p.kw("execute"):
		return p.execute()
	case p.kw2("refresh", "materialized"):
		return p.refresh()
	case p.kw("create"):
		start := p.i
		p.asOnly = true
		s := p.create()
		p.asOnly = false
		switch s := s.(type) {
		case *ast.CreateTableAs:
			s.Loc = ast.At(p.toks[start].pos)
			return s
		}
		if p.err == nil {
			// Another CREATE: PostgreSQL refuses it where it stops being a
			// CREATE TABLE AS; the word after CREATE is near enough.
			p.i = start + 1
			p.syntaxError()
		}
		return nil
	}
	return p.preparable()
}

func (p *parser) call() ast.Stmt {
	c := &ast.Call{}
	p.next()
	p.inCall = true
	f, _ := p.funcCall(p.funcName(), false).(*ast.FuncCall)
	p.inCall = false
	c.Func = f
	return c
}

// vacuum parses VACUUM and ANALYZE, and Spark's ANALYZE TABLE. ANALYZE t FOR COLUMNS
// a, b is Spark's way to write ANALYZE t (a, b).
func (p *parser) vacuum() ast.Stmt {
	v := &ast.Vacuum{AnalyzeOnly: !p.kw("vacuum")}
	p.next()
	if v.AnalyzeOnly && p.kw("table") {
		return p.analyzeTable(v)
	}
	word := func(name string, ok bool) {
		if ok {
			v.Options = append(v.Options, &ast.Option{Loc: p.loc(), Name: name})
			p.next()
		}
	}
	if p.is('(') {
		v.Options = p.utilityOptions()
	} else {
		if !v.AnalyzeOnly {
			word("full", p.kw("full"))
			word("freeze", p.kw("freeze"))
		}
		word("verbose", p.kw("verbose"))
		if !v.AnalyzeOnly {
			word("analyze", p.kw("analyze") || p.kw("analyse"))
		}
	}
	if p.tok().isColID() {
		v.Tables = list(p, func() *ast.VacuumTable {
			t := &ast.VacuumTable{Loc: p.loc(), Name: p.qualifiedName()}
			t.Columns = p.optColumns()
			return t
		})
	}
	if v.AnalyzeOnly && len(v.Tables) == 1 && v.Tables[0].Columns == nil && p.acceptKw("for") {
		if p.acceptKw("all") {
			p.expectKw("columns")
		} else {
			p.expectKw("columns")
			v.Tables[0].Columns = p.nameList()
		}
	}
	return v
}

// analyzeTable parses ANALYZE TABLE t [PARTITION (...)] COMPUTE STATISTICS
// [NOSCAN | FOR COLUMNS a, b | FOR ALL COLUMNS].
func (p *parser) analyzeTable(v *ast.Vacuum) ast.Stmt {
	p.next()
	t := &ast.VacuumTable{Loc: p.loc(), Name: p.qualifiedName()}
	v.Tables = []*ast.VacuumTable{t}
	if p.kw("partition") {
		p.next()
		v.Partition = parens(p, p.partitionValue)
	}
	if !p.acceptWord("compute") {
		p.syntaxError()
		return v
	}
	p.expectKw("statistics")
	v.Compute = "STATISTICS"
	switch {
	case p.acceptWord("noscan"):
		v.Compute += " NOSCAN"
	case p.acceptKw("for"):
		if p.acceptKw("all") {
			v.Compute += " FOR ALL COLUMNS"
			p.expectKw("columns")
		} else {
			p.expectKw("columns")
			t.Columns = p.nameList()
		}
	}
	return v
}

func (p *parser) lock() ast.Stmt {
	l := &ast.LockTable{Mode: "ACCESS EXCLUSIVE"}
	p.next()
	p.acceptKw("table")
	l.Tables = list(p, p.relationExpr)
	if p.acceptKw("in") {
		l.Mode = p.lockMode()
		p.expectKw("mode")
	}
	l.NoWait = p.acceptKw("nowait")
	return l
}

func (p *parser) lockMode() string {
	switch {
	case p.acceptKw("access"):
		if p.acceptKw("share") {
			return "ACCESS SHARE"
		}
		p.expectKw("exclusive")
		return "ACCESS EXCLUSIVE"
	case p.acceptKw("row"):
		if p.acceptKw("share") {
			return "ROW SHARE"
		}
		p.expectKw("exclusive")
		return "ROW EXCLUSIVE"
	case p.acceptKw("share"):
		switch {
		case p.acceptKw("update"):
			p.expectKw("exclusive")
			return "SHARE UPDATE EXCLUSIVE"
		case p.acceptKw("row"):
			p.expectKw("exclusive")
			return "SHARE ROW EXCLUSIVE"
		}
		return "SHARE"
	}
	p.expectKw("exclusive")
	return "EXCLUSIVE"
}

func (p *parser) discard() ast.Stmt {
	p.next()
	d := &ast.Discard{}
	switch {
	case p.acceptKw("all"):
		d.What = "ALL"
	case p.acceptKw("plans"):
		d.What = "PLANS"
	case p.acceptKw("sequences"):
		d.What = "SEQUENCES"
	case p.acceptKw("temp"), p.acceptKw("temporary"):
		d.What = "TEMP"
	default:
		p.syntaxError()
	}
	return d
}

func (p *parser) listen() ast.Stmt {
	word := p.tok().text
	p.next()
	switch word {
	case "listen":
		return &ast.Listen{Channel: p.colID()}
	case "unlisten":
		if p.is('*') {
			p.next()
			return &ast.Unlisten{}
		}
		return &ast.Unlisten{Channel: p.colID()}
	}
	n := &ast.Notify{Channel: p.colID()}
	if p.accept(',') {
		n.Payload = p.stringConst()
	}
	return n
}

func (p *parser) do() ast.Stmt {
	d := &ast.Do{}
	p.next()
	for n := 0; p.err == nil && (n == 0 || p.is(tString) || p.kw("language")); n++ {
		if p.acceptKw("language") {
			d.Language = p.wordOrString()
			continue
		}
		d.Body = p.stringConst()
	}
	return d
}

func (p *parser) reindex() ast.Stmt {
	r := &ast.Reindex{}
	p.next()
	if p.is('(') {
		r.Options = p.utilityOptions()
	}
	switch {
	case p.kw("index"), p.kw("table"), p.kw("schema"), p.kw("system"), p.kw("database"):
		r.Kind = upper(p.tok().text)
		p.next()
	default:
		p.syntaxError()
		return r
	}
	r.Concurrently = p.acceptKw("concurrently")
	if r.Kind == "INDEX" || r.Kind == "TABLE" {
		r.Name = p.qualifiedName()
	} else {
		r.Name = ast.Name{p.colID()}
	}
	return r
}

func (p *parser) cluster() ast.Stmt {
	c := &ast.Cluster{}
	p.next()
	options := p.is('(')
	if options {
		c.Options = p.utilityOptions()
	} else if p.kw("verbose") {
		c.Options = append(c.Options, &ast.Option{Loc: p.loc(), Name: "verbose"})
		p.next()
	}
	if !options && !p.tok().isColID() {
		if !p.is(tEOF) && !p.is(';') {
			p.syntaxError()
		}
		return c
	}
	if p.kwAt(1, "on") && !options {
		c.Index = p.colID()
		p.next()
		c.Table = p.qualifiedName()
		return c
	}
	c.Table = p.qualifiedName()
	if p.acceptKw("using") {
		c.Index = p.colID()
	}
	return c
}

func (p *parser) refresh() ast.Stmt {
	r := &ast.RefreshMatView{}
	r.Loc = p.loc()
	p.next()
	p.expectKws("materialized view")
	r.Concurrently = p.acceptKw("concurrently")
	r.Name = p.qualifiedName()
	r.NoData = p.withData()
	return r
}

// textSearch reads PARSER, DICTIONARY, TEMPLATE or CONFIGURATION after TEXT
// SEARCH.
func (p *parser) textSearch() string {
	switch {
	case p.kw("parser"), p.kw("dictionary"), p.kw("template"), p.kw("configuration"):
		w := upper(p.tok().text)
		p.next()
		return "TEXT SEARCH " + w
	}
	p.syntaxError()
	return ""
}

// objectKind reads the kind of an object known by a dotted name (dotted) or by
// a simple one. It returns "" when the words are of another kind.
func (p *parser) objectKind() (kind string, dotted bool) {
	// Each first word but FOREIGN has one kind.
	switch word := p.tok().text; {
	case p.tok().kind != tKeyword:
		return "", false
	case word == "foreign":
		p.next()
		if p.acceptKw("table") {
			return "FOREIGN TABLE", true
		}
		p.expectKws("data wrapper")
		return "FOREIGN DATA WRAPPER", false
	case word == "text":
		p.next()
		p.expectKw("search")
		return p.textSearch(), true
	case word == "materialized":
		p.next()
		p.expectKw("view")
		return "MATERIALIZED VIEW", true
	case word == "access":
		p.next()
		p.expectKw("method")
		return "ACCESS METHOD", false
	case word == "event":
		p.next()
		p.expectKw("trigger")
		return "EVENT TRIGGER", false
	case word == "procedural":
		p.next()
		p.expectKw("language")
		return "LANGUAGE", false
	}
	switch word := p.tok().text; word {
	case "table", "sequence", "view", "index", "collation", "conversion", "statistics":
		p.next()
		return upper(word), true
	case "extension", "language", "publication", "schema", "server", "database", "role", "subscription", "tablespace":
		p.next()
		return upper(word), false
	}
	return "", false
}

// drop parses DROP.
func (p *parser) drop() ast.Stmt {
	start := p.i
	p.next()
	d := &ast.Drop{}
	switch {
	case p.kw("role"), p.kw("user") && !p.userMapping(), p.kw("group"):
		d.Kind = upper(p.tok().text)
		p.next()
		d.IfExists = p.ifExists()
		for _, r := range p.roleList() {
			d.Roles = append(d.Roles, r)
			d.Names = append(d.Names, ast.Name{r.Name})
		}
		return d
	case p.acceptKw("database"):
		return p.dropDatabase(d)
	case p.kw("policy"), p.kw("rule"), p.kw("trigger"):
		d.Kind = upper(p.tok().text)
		p.next()
		d.IfExists = p.ifExists()
		d.Names = []ast.Name{{p.colID()}}
		p.expectKw("on")
		d.Table = p.anyName()
		d.Cascade, d.Restrict = p.dropBehavior()
		return d
	case p.kw("type"), p.kw("domain"):
		d.Kind = upper(p.tok().text)
		p.next()
		d.IfExists = p.ifExists()
		d.Types = list(p, p.typeName)
		d.Cascade, d.Restrict = p.dropBehavior()
		return d
	case p.kw("function"), p.kw("procedure"), p.kw("routine"):
		return p.dropFunction(d)
	case p.kw("owned"):
		return p.dropOwned()
	case p.kw("subscription"), p.kw("tablespace"):
		p.i = start
		return p.unsupported()
	}
	kind, dotted := p.objectKind()
	if kind == "" {
		p.i = start
		return p.unsupported()
	}
	d.Kind = kind
	if kind == "INDEX" {
		d.Concurrently = p.acceptKw("concurrently")
	}
	d.IfExists = p.ifExists()
	if dotted {
		d.Names = list(p, p.anyName)
	} else {
		d.Names = list(p, func() ast.Name { return p.lakeName(kind) })
	}
	if kind == "INDEX" && len(d.Names) == 1 && p.kw("on") {
		p.next()
		d.Table = p.qualifiedName()
	}
	d.Cascade, d.Restrict = p.dropBehavior()
	return d
}

// lakeName reads a simple name; a schema's may have its catalog before it.
func (p *parser) lakeName(kind string) ast.Name {
	n := ast.Name{p.colID()}
	for kind == "SCHEMA" && p.err == nil && p.accept('.') {
		n = append(n, p.colLabel())
	}
	return n
}

func (p *parser) dropDatabase(d *ast.Drop) ast.Stmt {
	d.Kind, d.IfExists = "DATABASE", p.ifExists()
	d.Names = []ast.Name{p.lakeName("SCHEMA")}
	with := p.acceptKw("with")
	if with || p.is('(') {
		p.expect('(')
		list(p, func() bool { p.expectKw("force"); return true })
		p.expect(')')
		d.Force = true
		return d
	}
	// CASCADE is the lake engines': their database is a schema.
	d.Cascade, d.Restrict = p.dropBehavior()
	return d
}

func (p *parser) dropFunction(d *ast.Drop) ast.Stmt {
	d.Kind = upper(p.tok().text)
	p.next()
	d.IfExists = p.ifExists()
	list(p, func() bool {
		name, args := p.funcSignature()
		d.Names, d.Args = append(d.Names, name), append(d.Args, args)
		return true
	})
	d.Cascade, d.Restrict = p.dropBehavior()
	return d
}

// funcSignature parses a function with optional argument types
// (function_with_argtypes); the types are returned as SQL text.
func (p *parser) funcSignature() (ast.Name, string) {
	t := p.tok()
	if !t.isColID() && !t.isTypeFuncName() {
		p.syntaxError()
		return nil, ""
	}
	name := ast.Name{{Name: t.text, Quoted: t.quoted, Pos: t.pos}}
	p.next()
	for p.err == nil && t.isColID() && p.accept('.') {
		name = append(name, p.colLabel())
	}
	if !p.is('(') {
		return name, ""
	}
	if len(name) == 1 && !t.isTypeFuncName() {
		p.syntaxError()
	}
	return name, p.argTypes()
}

func (p *parser) argTypes() string {
	p.expect('(')
	text := "("
	if !p.is(')') {
		for i, a := range list(p, p.funcParam) {
			if i > 0 {
				text += ", "
			}
			if p.err == nil {
				text += ast.Format(a)
			}
		}
	}
	p.expect(')')
	return text + ")"
}

// comment parses COMMENT ON.
func (p *parser) comment() ast.Stmt {
	c := &ast.Comment{}
	p.next()
	p.expectKw("on")
	c.Object = p.objectRef()
	p.expectKw("is")
	if p.acceptKw("null") {
		return c
	}
	s := p.stringConst()
	c.Text = &s
	return c
}

// objectRef parses what COMMENT and SECURITY LABEL name.
func (p *parser) objectRef() *ast.ObjectRef {
	o := &ast.ObjectRef{Loc: p.loc()}
	from := p.pos()
	// rest keeps the text of what is more than a name.
	rest := func(kind string) *ast.ObjectRef {
		o.Kind = kind
		if p.err == nil {
			o.Text = p.src[from:p.toks[p.i-1].end]
		}
		return o
	}
	kind, dotted := p.objectKind()
	switch {
	case kind != "" && dotted:
		o.Kind, o.Name = kind, p.anyName()
		return o
	case kind != "":
		o.Kind, o.Name = kind, p.lakeName(kind)
		return o
	case p.acceptKw("column"):
		o.Kind, o.Name = "COLUMN", p.anyName()
		return o
	case p.kw("policy"), p.kw("rule"), p.kw("trigger"), p.kw("constraint"):
		o.Kind = upper(p.tok().text)
		p.next()
		o.Name = ast.Name{p.colID()}
		p.expectKw("on")
		if o.Kind == "CONSTRAINT" && p.kw("domain") && p.peek(1).isColID() {
			p.next()
			o.Kind = "DOMAIN CONSTRAINT"
		}
		o.On = p.anyName()
		return o
	case p.acceptKw("function"), p.acceptKw("procedure"), p.acceptKw("routine"):
		kind := upper(p.toks[p.i-1].text)
		o.Name, o.Text = p.funcSignature()
		o.Kind = kind
		return o
	case p.acceptKw("type"), p.acceptKw("domain"):
		kind := upper(p.toks[p.i-1].text)
		from = p.pos()
		if ty := p.typeName(); ty != nil {
			o.Name = ty.Name
		}
		return rest(kind)
	case p.acceptKw("aggregate"):
		from = p.pos()
		o.Name = p.funcName()
		p.match("aggrargs")
		return rest("AGGREGATE")
	case p.acceptKws("operator class"), p.acceptKws("operator family"):
		kind := "OPERATOR " + upper(p.toks[p.i-1].text)
		from = p.pos()
		o.Name = p.anyName()
		p.expectKw("using")
		p.colID()
		return rest(kind)
	case p.acceptKw("operator"):
		from = p.pos()
		p.match("opsig")
		return rest("OPERATOR")
	case p.acceptKw("transform"):
		from = p.pos()
		p.match("FOR type LANGUAGE name")
		return rest("TRANSFORM")
	case p.acceptKw("large"):
		p.expectKw("object")
		from = p.pos()
		p.numericOnly()
		return rest("LARGE OBJECT")
	case p.acceptKw("cast"):
		from = p.pos()
		p.match("'(' type AS type ')'")
		return rest("CAST")
	}
	p.syntaxError()
	return o
}
