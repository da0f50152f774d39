package parser

import (
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// unsupported checks a statement by its rule. Those that share the words at
// the front are tried in turn; the error that got farthest wins.
func (p *parser) unsupported() ast.Stmt {
	p.best = nil
	save := p.i
	for _, s := range statementRules {
		if !s.begins(p) {
			continue
		}
		if !p.try(compileRule(s.rule)) {
			if p.err != nil {
				return nil
			}
			continue
		}
		if p.is(tEOF) || p.is(';') || p.inSchema() {
			if s.fail != "" {
				p.fail(pgerr.New(pgerr.FeatureNotSupported, "%s", s.fail))
			}
			return &ast.Unsupported{Kind: s.kind}
		}
		// A longer alternative may follow; failing that, this token is wrong.
		p.syntaxError()
		p.keep(p.err, p.far)
		p.err, p.i = nil, save
	}
	p.i = save
	if p.best == nil {
		p.next()
		p.syntaxError()
		return nil
	}
	p.failBest()
	return nil
}

// inSchema reports whether the current token begins the next element of a
// CREATE SCHEMA.
func (p *parser) inSchema() bool { return p.kw("create") || p.kw("grant") }

// statementRule is a statement without a tree: its command name and grammar.
// fail is set for what PostgreSQL has a grammar for but no code.
type statementRule struct {
	kind, rule, fail string
}

// begins reports whether the rule's first word is the current one; the rest is
// tried.
func (s *statementRule) begins(p *parser) bool {
	t := p.tok()
	for i := 0; i < len(s.rule); i++ {
		if s.rule[i] == ' ' {
			return foldCase(s.rule[:i]) == t.text
		}
	}
	return foldCase(s.rule) == t.text
}

// publicationObjects parses the tables and schemas of a publication. The first
// must say which it is.
func (p *parser) publicationObjects() {
	first := p.tok()
	p.sub("pubobj,")
	if p.err == nil && !first.isKw("table") && !first.isKw("tables") {
		p.fail(p.errorAt(first.pos, pgerr.SyntaxError, "invalid publication object list").
			WithDetail("One of TABLE or TABLES IN SCHEMA must be specified before a standalone table or schema name."))
	}
}

// operatorArgs parses (NONE, type) or (type, NONE|type).
func (p *parser) operatorArgs() {
	p.expect('(')
	none := p.acceptKw("none")
	if !none {
		p.typeName()
		if p.is(')') {
			p.fail(p.errorAt(p.pos(), pgerr.SyntaxError, "missing argument").
				WithHint("Use NONE to denote the missing argument of a unary operator."))
		}
	}
	p.expect(',')
	if none || !p.acceptKw("none") {
		p.typeName()
	}
	p.expect(')')
}

func (p *parser) floatConst() {
	if !p.is(tFloat) {
		p.syntaxError()
		return
	}
	p.next()
}

func (p *parser) domainConstraints() {
	c := &ast.ColumnDef{}
	p.columnQuals(c)
}

// triggerAttrs parses the attributes of a constraint trigger.
func (p *parser) triggerAttrs() {
	k := &ast.Constraint{Kind: ast.ConstraintForeignKey}
	p.constraintAttrs(k, "TRIGGER")
	if p.err == nil && (k.NotValid || k.NoInherit) {
		word := "NOT VALID"
		if !k.NotValid {
			word = "NO INHERIT"
		}
		p.fail(pgerr.New(pgerr.FeatureNotSupported, "TRIGGER constraints cannot be marked %s", word))
	}
}

func (p *parser) alterFuncOptions() {
	n := 0
	for p.err == nil && p.funcOption(false) != nil {
		n++
	}
	if n == 0 {
		p.syntaxError()
	}
}

// ruleAction parses a statement of CREATE RULE.
func (p *parser) ruleAction() {
	switch {
	case p.kw("notify"):
		p.listen()
	case p.kw("merge"):
		p.syntaxError()
	default:
		p.preparable()
	}
}
