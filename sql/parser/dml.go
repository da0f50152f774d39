package parser

import (
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// atUpsert reports whether UPSERT INTO is next. UPSERT is no keyword.
func (p *parser) atUpsert() bool { return p.word("upsert") && p.kwAt(1, "into") }

// dml parses INSERT, UPSERT, UPDATE, DELETE or MERGE after its WITH.
func (p *parser) dml(with *ast.With, loc ast.Loc) ast.Stmt {
	switch {
	case p.kw("insert") || p.atUpsert():
		return p.insert(with, loc)
	case p.kw("update"):
		return p.update(with, loc)
	case p.kw("delete"):
		return p.deleteStmt(with, loc)
	case p.kw("merge"):
		return p.merge(with, loc)
	}
	p.syntaxError()
	return nil
}

func (p *parser) insert(with *ast.With, loc ast.Loc) ast.Stmt {
	s := &ast.Insert{With: with}
	s.Loc = loc
	s.Upsert = p.word("upsert")
	p.next()
	switch {
	case p.acceptWord("overwrite"):
		s.Overwrite = true
		p.acceptKw("into")
		p.acceptKw("table")
	default:
		p.expectKw("into")
		p.acceptKw("table") // Spark; TABLE is reserved, so it is no name
	}
	s.Table = &ast.TableName{Loc: p.loc(), Name: p.qualifiedName()}
	s.Table.Hints = p.takeHints()
	if p.kw("as") {
		s.Table.Alias = &ast.Alias{Loc: p.loc()}
		p.next()
		s.Table.Alias.Name = p.colID()
	}
	if p.kw("partition") && p.peek(1).kind == '(' {
		p.next()
		s.Partition = parens(p, p.partitionValue)
	}
	p.insertRest(s)
	if p.kw("on") {
		s.OnConflict = p.onConflict()
	}
	s.Returning = p.returning()
	return s
}

func (p *parser) insertRest(s *ast.Insert) {
	if p.kw("default") {
		p.next()
		p.expectKw("values")
		return
	}
	// ( begins a column list unless a query begins in it.
	if p.is('(') && !p.parenQuery() {
		s.Columns = parens(p, p.assignTarget)
	}
	if s.Columns == nil && p.kw2("by", "name") {
		p.next()
		p.next()
		s.ByName = true
	}
	s.Overriding = p.overriding()
	s.Query = p.selectStmt()
}

// parenQuery reports whether the parenthesis at the current token opens a query.
func (p *parser) parenQuery() bool {
	n := p.peek(1)
	return n.kind == '(' || n.isKw("select") || n.isKw("with") || n.isKw("table") ||
		n.isKw("values") && p.peek(2).kind == '('
}

func (p *parser) overriding() ast.Overriding {
	if !p.acceptKw("overriding") {
		return ast.OverridingNone
	}
	o := ast.OverridingUser
	if p.acceptKw("system") {
		o = ast.OverridingSystem
	} else {
		p.expectKw("user")
	}
	p.expectKw("value")
	return o
}

// assignTarget parses a column that is assigned to, with its indirection.
func (p *parser) assignTarget() *ast.AssignTarget {
	a := &ast.AssignTarget{Loc: p.loc(), Column: p.colID()}
	for p.err == nil {
		step := &ast.PathStep{Loc: p.loc()}
		switch {
		case p.accept('.'):
			if p.accept('*') {
				step.Star = true
				p.noIndirection()
			} else {
				step.Field = p.colLabel()
			}
		case p.is('['):
			s := p.subscript()
			step.Index, step.Slice, step.Low, step.High = s.Index, s.Slice, s.Low, s.High
		default:
			return a
		}
		a.Path = append(a.Path, step)
	}
	return a
}

func (p *parser) onConflict() *ast.OnConflict {
	c := &ast.OnConflict{Loc: p.loc()}
	p.next()
	p.expectKw("conflict")
	switch {
	case p.is('('):
		c.Target = parens(p, p.indexElem)
		if p.acceptKw("where") {
			c.TargetWhere = p.expr()
		}
	case p.acceptKw("on"):
		p.expectKw("constraint")
		c.Constraint = p.colID()
	}
	p.expectKw("do")
	if p.acceptKw("nothing") {
		return c
	}
	p.expectKws("update set")
	c.DoUpdate = true
	c.Sets = p.setClauses()
	if p.acceptKw("where") {
		c.Where = p.expr()
	}
	return c
}

func (p *parser) setClauses() []*ast.SetClause { return list(p, p.setClause) }

func (p *parser) setClause() *ast.SetClause {
	s := &ast.SetClause{Loc: p.loc()}
	if p.is('(') {
		s.Multi = true
		s.Targets = parens(p, p.assignTarget)
	} else {
		s.Targets = []*ast.AssignTarget{p.assignTarget()}
	}
	p.expect('=')
	s.Value = p.expr()
	return s
}

func (p *parser) returning() []*ast.Target {
	if !p.acceptKw("returning") {
		return nil
	}
	return p.targetList()
}

// targetTable parses relation_expr_opt_alias: SET is no alias without AS.
func (p *parser) targetTable() *ast.TableName {
	t := p.relationExpr()
	t.Hints = p.takeHints()
	a := &ast.Alias{Loc: p.loc()}
	switch {
	case p.acceptKw("as"):
		a.Name = p.colID()
		t.Alias = a
	case p.tok().isColID() && !p.kw("set"):
		a.Name = p.colID()
		t.Alias = a
	}
	return t
}

func (p *parser) update(with *ast.With, loc ast.Loc) ast.Stmt {
	s := &ast.Update{With: with}
	s.Loc = loc
	p.next()
	s.Table = p.targetTable()
	p.expectKw("set")
	s.Sets = p.setClauses()
	if p.acceptKw("from") {
		s.From = p.fromList()
	}
	s.Where, s.CurrentOf = p.whereOrCurrent()
	s.Returning = p.returning()
	return s
}

func (p *parser) whereOrCurrent() (ast.Expr, ast.Ident) {
	if !p.acceptKw("where") {
		return nil, ast.Ident{}
	}
	if p.kw2("current", "of") {
		p.next()
		p.next()
		return nil, p.colID()
	}
	return p.expr(), ast.Ident{}
}

func (p *parser) deleteStmt(with *ast.With, loc ast.Loc) ast.Stmt {
	s := &ast.Delete{With: with}
	s.Loc = loc
	p.next()
	p.expectKw("from")
	s.Table = p.targetTable()
	if p.acceptKw("using") {
		s.Using = p.fromList()
	}
	s.Where, s.CurrentOf = p.whereOrCurrent()
	s.Returning = p.returning()
	return s
}

func (p *parser) merge(with *ast.With, loc ast.Loc) ast.Stmt {
	s := &ast.Merge{With: with}
	s.Loc = loc
	p.next()
	p.expectKw("into")
	s.Table = p.targetTable()
	p.expectKw("using")
	s.Source = p.tableRef()
	p.expectKw("on")
	s.On = p.expr()
	for {
		s.Whens = append(s.Whens, p.mergeWhen())
		if p.err != nil || !p.kw("when") {
			break
		}
	}
	s.Returning = p.returning()
	return s
}

func (p *parser) mergeWhen() *ast.MergeWhen {
	w := &ast.MergeWhen{Loc: p.loc()}
	p.expectKw("when")
	if p.acceptKw("not") {
		p.expectKw("matched")
		w.Match = ast.NotMatchedByTarget
		if p.acceptKw("by") {
			if p.acceptWord("source") {
				w.Match = ast.NotMatchedBySource
			} else if !p.acceptWord("target") {
				p.syntaxError()
			}
		}
	} else {
		p.expectKw("matched")
	}
	if p.acceptKw("and") {
		w.Cond = p.expr()
	}
	p.expectKw("then")
	switch {
	case p.acceptKw("do"):
		p.expectKw("nothing")
	case w.Match == ast.NotMatchedByTarget && p.acceptKw("insert"):
		w.Action = ast.MergeInsert
		p.mergeInsert(w)
	case w.Match != ast.NotMatchedByTarget && p.acceptKw("update"):
		w.Action = ast.MergeUpdate
		p.expectKw("set")
		if p.is('*') {
			p.next()
			w.Star = true
		} else {
			w.Sets = p.setClauses()
		}
	case w.Match != ast.NotMatchedByTarget && p.acceptKw("delete"):
		w.Action = ast.MergeDelete
	default:
		p.syntaxError()
	}
	return w
}

func (p *parser) mergeInsert(w *ast.MergeWhen) {
	if p.is('*') {
		p.next()
		w.Star = true
		return
	}
	if p.acceptKw("default") {
		p.expectKw("values")
		return
	}
	if p.is('(') {
		w.Columns = parens(p, p.assignTarget)
	}
	w.Overriding = p.overriding()
	p.expectKw("values")
	w.Values = parens(p, p.expr)
}

// partitionValue parses column [= value].
func (p *parser) partitionValue() *ast.PartitionValue {
	v := &ast.PartitionValue{Loc: p.loc(), Column: p.colID()}
	if p.accept('=') {
		v.Value = p.expr()
	}
	return v
}

func (p *parser) truncate() ast.Stmt {
	s := &ast.Truncate{}
	p.next()
	p.acceptKw("table")
	s.Tables = list(p, p.relationExpr)
	switch {
	case p.acceptKw("restart"):
		p.expectKw("identity")
		s.Restart = true
	case p.acceptKw("continue"):
		p.expectKw("identity")
	}
	s.Cascade, _ = p.dropBehavior()
	return s
}

// dropBehavior parses CASCADE or RESTRICT.
func (p *parser) dropBehavior() (cascade, restrict bool) {
	if p.acceptKw("cascade") {
		return true, false
	}
	return false, p.acceptKw("restrict")
}

func (p *parser) copyStmt() ast.Stmt {
	s := &ast.Copy{}
	p.next()
	var toPos ast.Pos
	if p.is('(') {
		p.next()
		s.Query = p.preparable()
		p.expect(')')
		toPos = p.pos()
		p.expectKw("to")
	} else {
		if p.kw("binary") {
			s.Options = append(s.Options, wordOption(p.loc(), "format", "binary"))
			p.next()
		}
		s.Table = p.qualifiedName()
		s.Columns = p.optColumns()
		s.From = p.acceptKw("from")
		if !s.From {
			p.expectKw("to")
		}
	}
	s.Program = p.acceptKw("program")
	switch {
	case p.acceptKw("stdin"), p.acceptKw("stdout"):
		s.Std = true
	default:
		s.File = p.stringConst()
	}
	if s.Query == nil {
		p.copyDelimiters(s)
	}
	if p.kw("with") {
		p.next()
	}
	if p.is('(') {
		s.Options = append(s.Options, parens(p, p.copyOption)...)
	} else {
		p.oldCopyOptions(s)
	}
	wherePos := p.pos()
	if s.Query == nil && p.acceptKw("where") {
		s.Where = p.expr()
	}
	switch {
	case p.err != nil:
	case s.Program && s.Std:
		// Only the form with a query has a position.
		err := pgerr.New(pgerr.SyntaxError, "STDIN/STDOUT not allowed with PROGRAM")
		if s.Query != nil {
			err = err.WithPosition(CharPosition(p.src, toPos))
		}
		p.fail(err)
	case s.Where != nil && !s.From:
		p.failAt(wherePos, pgerr.SyntaxError, "WHERE clause not allowed with COPY TO")
	}
	return s
}

func (p *parser) copyDelimiters(s *ast.Copy) {
	if p.kw("using") && p.kwAt(1, "delimiters") {
		p.next()
	}
	if p.kw("delimiters") {
		loc := p.loc()
		p.next()
		s.Options = append(s.Options, wordOption(loc, "delimiter", p.stringConst()))
	}
}

func wordOption(loc ast.Loc, name, value string) *ast.Option {
	return &ast.Option{Loc: loc, Name: name, Value: &ast.String{Loc: loc, Value: value}}
}

// oldCopyOptions parses the options before parentheses came, and gives them
// their new names.
func (p *parser) oldCopyOptions(s *ast.Copy) {
	for p.err == nil {
		loc := p.loc()
		var o *ast.Option
		switch {
		case p.acceptKw("binary"):
			o = wordOption(loc, "format", "binary")
		case p.acceptKw("csv"):
			o = wordOption(loc, "format", "csv")
		case p.acceptKw("freeze"):
			o = wordOption(loc, "freeze", "true")
		case p.acceptKw("header"):
			o = wordOption(loc, "header", "true")
		case p.kw("delimiter") || p.kw("null") || p.kw("quote") || p.kw("escape"):
			name := p.tok().text
			p.next()
			p.acceptKw("as")
			o = wordOption(loc, name, p.stringConst())
		case p.acceptKw("encoding"):
			o = wordOption(loc, "encoding", p.stringConst())
		case p.acceptKw("force"):
			o = p.copyForce(loc)
		default:
			return
		}
		s.Options = append(s.Options, o)
	}
}

func (p *parser) copyForce(loc ast.Loc) *ast.Option {
	o := &ast.Option{Loc: loc, Name: "force_quote"}
	switch {
	case p.acceptKw("quote"):
		if p.is('*') {
			o.Value = &ast.OptionWord{Loc: p.loc(), Text: "*"}
			p.next()
			return o
		}
	case p.acceptKw("null"):
		o.Name = "force_null"
	default:
		p.expectKws("not null")
		o.Name = "force_not_null"
	}
	l := &ast.OptionList{Loc: p.loc()}
	for _, c := range p.nameList() {
		l.Items = append(l.Items, &ast.String{Loc: ast.At(c.Pos), Value: c.Name})
	}
	o.Value = l
	return o
}

func (p *parser) copyOption() *ast.Option {
	o := &ast.Option{Loc: p.loc(), Name: p.colLabel().Name}
	loc := p.loc()
	switch {
	case p.is(',') || p.is(')'):
	case p.is('*'):
		p.next()
		o.Value = &ast.OptionWord{Loc: loc, Text: "*"}
	case p.is('('):
		items := parens(p, p.boolOrString)
		l := &ast.OptionList{Loc: loc}
		for _, s := range items {
			l.Items = append(l.Items, s)
		}
		o.Value = l
	default:
		o.Value = p.wordOrNumber()
	}
	return o
}

// boolOrString parses TRUE, FALSE, ON, a word that is not reserved, or a
// string; all of them are strings.
func (p *parser) boolOrString() *ast.String {
	s := &ast.String{Loc: p.loc()}
	t := p.tok()
	switch {
	case t.kind == tString:
		s.Value = t.text
		p.next()
	case t.isKw("true") || t.isKw("false") || t.isKw("on"):
		s.Value = t.text
		p.next()
	default:
		s.Value = p.nonReservedWord().Name
	}
	return s
}

func (p *parser) wordOrNumber() ast.OptionValue {
	if p.is(tInt) || p.is(tFloat) || p.is('-') || p.is('+') {
		return p.numericOnly()
	}
	return p.boolOrString()
}
