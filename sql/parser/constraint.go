package parser

import (
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// columnConstraint parses one constraint or attribute of a column, and returns
// nil when none is next.
func (p *parser) columnConstraint() *ast.Constraint {
	k := &ast.Constraint{Loc: p.loc()}
	named := p.acceptKw("constraint")
	if named {
		k.Name = p.colID()
	}
	switch {
	case p.kw("not") && p.kwAt(1, "null"):
		p.next()
		p.next()
		k.Kind = ast.ConstraintNotNull
	case p.acceptKw("null"):
		k.Kind = ast.ConstraintNull
	case p.acceptKw("unique"):
		k.Kind = ast.ConstraintUnique
		k.NullsNotDistinct = p.nullsDistinct()
		p.constraintIndex(k)
	case p.acceptKw("primary"):
		p.expectKw("key")
		k.Kind = ast.ConstraintPrimaryKey
		p.constraintIndex(k)
	case p.acceptKw("check"):
		k.Kind = ast.ConstraintCheck
		p.expect('(')
		k.Expr = p.expr()
		p.expect(')')
		if p.acceptKw("no") {
			p.expectKw("inherit")
			k.NoInherit = true
		}
	case p.acceptKw("default"):
		k.Kind = ast.ConstraintDefault
		k.Expr = p.bExpr()
	case p.acceptKw("generated"):
		p.generated(k)
	case p.acceptKw("references"):
		k.Kind = ast.ConstraintForeignKey
		p.references(k)
	case named:
		p.syntaxError()
	case p.acceptKw("deferrable"):
		k.Kind = ast.AttrDeferrable
	case p.kw("not") && p.wordAt(1, "enforced"):
		p.next()
		p.next()
		k.Kind = ast.AttrNotDeferrable
		k.NotEnforced = true
	case p.kw("not"):
		p.next()
		p.expectKw("deferrable")
		k.Kind = ast.AttrNotDeferrable
	case p.acceptKw("initially"):
		k.Kind = ast.AttrInitiallyDeferred
		if !p.acceptKw("deferred") {
			p.expectKw("immediate")
			k.Kind = ast.AttrInitiallyImmediate
		}
	default:
		return nil
	}
	return k
}

// nullsDistinct parses NULLS [NOT] DISTINCT and returns whether NOT was there.
func (p *parser) nullsDistinct() bool {
	if !p.acceptKw("nulls") {
		return false
	}
	not := p.acceptKw("not")
	p.expectKw("distinct")
	return not
}

// constraintIndex parses WITH (...) and USING INDEX TABLESPACE.
func (p *parser) constraintIndex(k *ast.Constraint) {
	if p.kw("with") {
		p.next()
		k.Options = p.definition()
	}
	if p.acceptKw("using") {
		p.expectKws("index tablespace")
		k.Tablespace = p.colID()
	}
}

// generated parses GENERATED ALWAYS|BY DEFAULT AS IDENTITY or AS (expr) STORED.
func (p *parser) generated(k *ast.Constraint) {
	pos := p.pos()
	k.ByDefault = p.generatedWhen()
	p.expectKw("as")
	if p.acceptKw("identity") {
		k.Kind = ast.ConstraintIdentity
		if p.is('(') {
			k.Sequence = p.seqOptionsInParens()
		}
		return
	}
	k.Kind = ast.ConstraintGenerated
	p.expect('(')
	k.Expr = p.expr()
	p.expect(')')
	p.expectKw("stored")
	if k.ByDefault && p.err == nil {
		p.failAt(pos, pgerr.SyntaxError, "for a generated column, GENERATED ALWAYS must be specified")
	}
}

// generatedWhen parses ALWAYS or BY DEFAULT and returns whether it was the
// latter.
func (p *parser) generatedWhen() bool {
	if p.acceptKw("always") {
		return false
	}
	p.expectKws("by default")
	return true
}

// references parses the rest of a foreign key after REFERENCES.
func (p *parser) references(k *ast.Constraint) {
	k.References = p.qualifiedName()
	k.RefColumns = p.optColumns()
	if p.kw("match") {
		pos := p.pos()
		p.next()
		switch {
		case p.acceptKw("full"):
			k.Match = "FULL"
		case p.acceptKw("simple"):
			k.Match = "SIMPLE"
		default:
			p.expectKw("partial")
			if p.err == nil {
				p.failAt(pos, pgerr.FeatureNotSupported, "MATCH PARTIAL not yet implemented")
			}
		}
	}
	for p.err == nil && p.kw("on") {
		pos := p.pos()
		switch {
		case k.OnUpdate == nil && p.acceptKws("on update"):
			k.OnUpdate = p.keyAction()
			if len(k.OnUpdate.Columns) > 0 && p.err == nil {
				p.failAt(pos, pgerr.FeatureNotSupported,
					"a column list with %s is only supported for ON DELETE actions", k.OnUpdate.Action)
			}
		case k.OnDelete == nil && p.acceptKws("on delete"):
			k.OnDelete = p.keyAction()
		default:
			p.next()
			p.syntaxError()
		}
	}
}

func (p *parser) keyAction() *ast.KeyAction {
	a := &ast.KeyAction{Loc: p.loc()}
	switch {
	case p.acceptKw("no"):
		p.expectKw("action")
		a.Action = "NO ACTION"
	case p.acceptKw("restrict"):
		a.Action = "RESTRICT"
	case p.acceptKw("cascade"):
		a.Action = "CASCADE"
	default:
		p.expectKw("set")
		if p.acceptKw("null") {
			a.Action = "SET NULL"
		} else {
			p.expectKw("default")
			a.Action = "SET DEFAULT"
		}
		a.Columns = p.optColumns()
	}
	return a
}

// tableConstraint parses a constraint of a table.
func (p *parser) tableConstraint() *ast.Constraint {
	k := &ast.Constraint{Loc: p.loc()}
	if p.acceptKw("constraint") {
		k.Name = p.colID()
	}
	switch {
	case p.acceptKw("check"):
		k.Kind = ast.ConstraintCheck
		p.expect('(')
		k.Expr = p.expr()
		p.expect(')')
		p.constraintAttrs(k, "CHECK")
	case p.kw("unique"):
		p.next()
		k.Kind = ast.ConstraintUnique
		p.keyConstraint(k, "UNIQUE")
	case p.kw("primary"):
		p.next()
		p.expectKw("key")
		k.Kind = ast.ConstraintPrimaryKey
		p.keyConstraint(k, "PRIMARY KEY")
	case p.acceptKw("exclude"):
		k.Kind = ast.ConstraintExclude
		p.exclude(k)
	case p.acceptKw("foreign"):
		p.expectKw("key")
		k.Kind = ast.ConstraintForeignKey
		k.Columns = parens(p, p.colID)
		p.expectKw("references")
		p.references(k)
		p.constraintAttrs(k, "FOREIGN KEY")
	case k.Name.Empty() && p.word("watermark"):
		p.next()
		p.expectKw("for")
		k.Kind = ast.ConstraintWatermark
		k.Columns = []ast.Ident{p.colID()}
		p.expectKw("as")
		k.Expr = p.expr()
	default:
		p.syntaxError()
	}
	return k
}

// keyConstraint parses the rest of UNIQUE or PRIMARY KEY.
func (p *parser) keyConstraint(k *ast.Constraint, what string) {
	if p.kw("using") {
		p.next()
		p.expectKw("index")
		k.UsingIndex = p.colID()
		p.constraintAttrs(k, what)
		return
	}
	if k.Kind == ast.ConstraintUnique {
		k.NullsNotDistinct = p.nullsDistinct()
	}
	k.Columns = parens(p, p.colID)
	p.include(k)
	p.constraintIndex(k)
	p.constraintAttrs(k, what)
}

func (p *parser) include(k *ast.Constraint) {
	if p.acceptKw("include") {
		k.Include = parens(p, p.colID)
	}
}

func (p *parser) exclude(k *ast.Constraint) {
	if p.acceptKw("using") {
		k.Method = p.colID()
	}
	k.Excludes = parens(p, func() *ast.ExcludeElem {
		e := &ast.ExcludeElem{Loc: p.loc(), Elem: p.indexElem()}
		p.expectKw("with")
		if p.kw("operator") && p.peek(1).kind == '(' {
			e.Op = p.operatorCall()
		} else {
			e.Op = p.anyOperator()
		}
		return e
	})
	p.include(k)
	p.constraintIndex(k)
	if p.acceptKw("where") {
		p.expect('(')
		k.Where = p.expr()
		p.expect(')')
	}
	p.constraintAttrs(k, "EXCLUDE")
}

// constraintAttrs parses the attributes after a table constraint. Which of
// them a constraint may have is the grammar's business in PostgreSQL; its
// errors for that have no position, those for contradictions point at the
// second attribute.
func (p *parser) constraintAttrs(k *ast.Constraint, what string) {
	conflict := func(pos ast.Pos, bad bool) bool {
		if bad && p.err == nil {
			p.failAt(pos, pgerr.SyntaxError, "conflicting constraint properties")
		}
		return bad
	}
	for p.err == nil {
		pos := p.pos()
		switch {
		case p.acceptKw("deferrable"):
			k.Deferrable = true
		case p.kw("not") && p.kwAt(1, "valid"):
			p.next()
			p.next()
			k.NotValid = true
		case p.kw("not") && p.wordAt(1, "enforced"):
			p.next()
			p.next()
			k.NotEnforced = true
		case p.kw("not"):
			p.next()
			p.expectKw("deferrable")
			k.NotDeferrable = true
		case p.acceptKw("initially"):
			if p.acceptKw("deferred") {
				k.Deferred = true
			} else {
				p.expectKw("immediate")
				k.Immediate = true
			}
		case p.kw("no"):
			p.next()
			p.expectKw("inherit")
			k.NoInherit = true
		default:
			p.checkAttrs(k, what)
			return
		}
		if p.err == nil && k.NotDeferrable && k.Deferred {
			p.failAt(pos, pgerr.SyntaxError, "constraint declared INITIALLY DEFERRED must be DEFERRABLE")
		}
		_ = conflict(pos, k.Deferrable && k.NotDeferrable) || conflict(pos, k.Deferred && k.Immediate)
	}
}

func (p *parser) checkAttrs(k *ast.Constraint, what string) {
	bad := func(word string) {
		p.fail(pgerr.New(pgerr.FeatureNotSupported, "%s constraints cannot be marked %s", what, word))
	}
	if k.Kind == ast.ConstraintCheck && (k.Deferrable || k.Deferred) {
		bad("DEFERRABLE")
	}
	if k.NotValid && k.Kind != ast.ConstraintCheck && k.Kind != ast.ConstraintForeignKey {
		bad("NOT VALID")
	}
	if k.NoInherit && k.Kind != ast.ConstraintCheck {
		bad("NO INHERIT")
	}
}

// keyExpr parses the column, call or parenthesised expression of an index.
func (p *parser) keyExpr() *ast.IndexElem {
	e := &ast.IndexElem{Loc: p.loc()}
	t := p.tok()
	switch {
	case p.is('('):
		p.next()
		e.Expr = p.expr()
		p.expect(')')
		return e
	case t.kind == tKeyword:
		if f, ok := p.commonFunc(); ok {
			e.Expr = f
			return e
		}
	}
	// A call needs a parenthesis after its name, or after a dotted name.
	switch n := p.peek(1).kind; {
	case n == '(' && t.isTypeFuncName(), n == '.' && t.isColID():
		e.Expr = p.funcCall(p.funcName(), false)
	case t.isColID():
		e.Column = p.colID()
	case t.isTypeFuncName():
		p.next()
		p.syntaxError()
	default:
		p.syntaxError()
	}
	return e
}

// collateClass parses [COLLATE c] [opclass].
func (p *parser) collateClass(e *ast.IndexElem) {
	if p.acceptKw("collate") {
		e.Collation = p.anyName()
	}
	if p.tok().isColID() {
		e.OpClass = p.anyName()
	}
}

// indexElem parses an element of an index.
func (p *parser) indexElem() *ast.IndexElem {
	e := p.keyExpr()
	p.collateClass(e)
	if e.OpClass != nil && p.is('(') {
		e.OpClassOpts = p.options()
	}
	switch {
	case p.acceptKw("desc"):
		e.Desc = true
	case p.acceptKw("asc"):
		e.Asc = true
	}
	e.Nulls = p.nullsOrder()
	return e
}
