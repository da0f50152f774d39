package parser

import (
	"fmt"
	"strings"
	"sync"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// The statements without a tree are checked by rules in a small notation:
//
//	WORD     a keyword           'x'    punctuation or an operator
//	name     a rule or builtin   x,     a list of x separated by commas
//	[ x ]    optional            { x }  any number, none included
//	( x | y ) alternatives
//
// Alternatives are tried in order. A branch that fails is undone, but its error
// is kept if no other got farther, because the farthest token any branch
// reached is the one an LALR parser stops at.

// matcher checks a piece of grammar at the current token. After a failure
// p.err is set, as everywhere in this package.
type matcher func(p *parser)

// try runs m and undoes it if it fails; the error is kept in p.best.
func (p *parser) try(m matcher) bool {
	save := p.i
	m(p)
	if p.err == nil {
		return true
	}
	if p.err.Code == pgerr.StatementTooComplex {
		return false
	}
	p.keep(p.err, p.far)
	p.err, p.i = nil, save
	return false
}

// keep remembers the error that got farthest. Of two at one token, one that is
// not about the token itself was raised after that token was found good.
func (p *parser) keep(err *pgerr.Error, far int) {
	if p.best == nil || far > p.bestFar || far == p.bestFar && !strings.HasPrefix(err.Message, "syntax error") {
		p.best, p.bestFar = err, far
	}
}

// failBest fails with the error that got farthest.
func (p *parser) failBest() {
	if p.err == nil && p.best != nil {
		p.err, p.far = p.best, p.bestFar
		p.i = len(p.toks) - 1
	}
}

// match checks the rule text at the current token.
func (p *parser) match(rule string) {
	if p.err != nil {
		return
	}
	p.best = nil
	m := compileRule(rule)
	m(p)
	if p.err != nil {
		p.keep(p.err, p.far)
		p.err = nil
		p.failBest()
	}
}

// sub checks a rule from inside another one.
func (p *parser) sub(rule string) { compileRule(rule)(p) }

var ruleCache sync.Map // rule text to matcher

func compileRule(text string) matcher {
	if m, ok := ruleCache.Load(text); ok {
		return m.(matcher)
	}
	c := &ruleCompiler{words: ruleWords(text), text: text, builtins: builtins()}
	m := c.alternatives()
	if c.i != len(c.words) {
		panic(fmt.Sprintf("rule %q: left over %q", text, c.words[c.i:]))
	}
	ruleCache.Store(text, m)
	return m
}

// ruleWords splits a rule at blanks, and brackets from what they touch.
func ruleWords(text string) []string {
	var out []string
	for _, f := range strings.Fields(text) {
		for len(f) > 1 && strings.IndexByte("[{(", f[0]) >= 0 {
			out, f = append(out, f[:1]), f[1:]
		}
		var tail []string
		for len(f) > 1 && (strings.IndexByte("]})", f[len(f)-1]) >= 0 || strings.HasSuffix(f, "),")) {
			if strings.HasSuffix(f, "),") {
				tail, f = append([]string{"),"}, tail...), f[:len(f)-2]
				continue
			}
			tail, f = append([]string{f[len(f)-1:]}, tail...), f[:len(f)-1]
		}
		if f != "" {
			out = append(out, f)
		}
		out = append(out, tail...)
	}
	return out
}

type ruleCompiler struct {
	words []string
	i     int
	text  string

	builtins map[string]matcher
}

func (c *ruleCompiler) peek() string {
	if c.i < len(c.words) {
		return c.words[c.i]
	}
	return ""
}

func (c *ruleCompiler) alternatives() matcher {
	alts := []matcher{c.sequence()}
	for c.peek() == "|" {
		c.i++
		alts = append(alts, c.sequence())
	}
	if len(alts) == 1 {
		return alts[0]
	}
	return func(p *parser) {
		for _, m := range alts {
			if p.try(m) || p.err != nil {
				return
			}
		}
		p.failBest()
	}
}

func (c *ruleCompiler) sequence() matcher {
	var seq []matcher
	for {
		w := c.peek()
		if w == "" || w == "|" || w == "]" || w == "}" || w == ")" || w == ")," {
			break
		}
		seq = append(seq, c.item())
	}
	return func(p *parser) {
		for _, m := range seq {
			if m(p); p.err != nil {
				return
			}
		}
	}
}

func (c *ruleCompiler) item() matcher {
	w := c.peek()
	c.i++
	switch w {
	case "[":
		m := c.alternatives()
		c.close("]")
		return func(p *parser) { p.try(m) }
	case "{":
		m := c.alternatives()
		c.close("}")
		return func(p *parser) {
			for {
				if at := p.i; !p.try(m) || p.i == at {
					return
				}
			}
		}
	case "(":
		m := c.alternatives()
		if c.peek() == ")," {
			c.i++
			return commaList(m)
		}
		c.close(")")
		return m
	}
	if strings.HasSuffix(w, ",") && len(w) > 1 {
		return commaList(c.word(w[:len(w)-1]))
	}
	return c.word(w)
}

func commaList(m matcher) matcher {
	return func(p *parser) {
		m(p)
		for p.err == nil && p.accept(',') {
			m(p)
		}
	}
}

func (c *ruleCompiler) close(w string) {
	if c.peek() != w {
		panic(fmt.Sprintf("rule %q: no %s at %d", c.text, w, c.i))
	}
	c.i++
}

// word makes the matcher of one word of a rule. Rules refer to each other, so
// names are resolved when they are used.
func (c *ruleCompiler) word(w string) matcher {
	switch {
	case w[0] == '\'':
		text := w[1 : len(w)-1]
		return func(p *parser) {
			if t := p.tok(); t.kind == tKeyword || t.kind == tIdent || t.kind == tString || t.text != text {
				p.syntaxError()
				return
			}
			p.next()
		}
	case w[0] >= 'A' && w[0] <= 'Z':
		kw := strings.ToLower(w)
		return func(p *parser) {
			if !p.acceptWord(kw) {
				p.syntaxError()
			}
		}
	}
	if b, ok := c.builtins[w]; ok {
		return b
	}
	rule, ok := subRules[w]
	if !ok {
		panic(fmt.Sprintf("rule %q: unknown %q", c.text, w))
	}
	var once sync.Once
	var m matcher
	return func(p *parser) {
		if !p.enter() {
			return
		}
		defer p.leave()
		once.Do(func() { m = compileRule(rule) })
		m(p)
	}
}

// builtins returns the pieces of grammar that have code of their own. It is a
// function because a variable would depend on itself through the parser.
func builtins() map[string]matcher {
	return map[string]matcher{
		"name":      func(p *parser) { p.colID() },
		"label":     func(p *parser) { p.colLabel() },
		"word":      func(p *parser) { p.nonReservedWord() },
		"qname":     func(p *parser) { p.qualifiedName() },
		"anyname":   func(p *parser) { p.anyName() },
		"funcname":  func(p *parser) { p.funcName() },
		"string":    func(p *parser) { p.stringConst() },
		"wordstr":   func(p *parser) { p.wordOrString() },
		"int":       func(p *parser) { p.intConst() },
		"signed":    func(p *parser) { p.signedInt() },
		"number":    func(p *parser) { p.numericOnly() },
		"float":     func(p *parser) { p.floatConst() },
		"ident":     func(p *parser) { p.takeIdent(p.is(tIdent)) },
		"expr":      func(p *parser) { p.expr() },
		"type":      func(p *parser) { p.typeName() },
		"functype":  func(p *parser) { p.funcType() },
		"role":      func(p *parser) { p.roleSpec() },
		"relation":  func(p *parser) { p.relationExpr() },
		"fromlist":  func(p *parser) { p.fromList() },
		"anyop":     func(p *parser) { p.anyOperator() },
		"funcsig":   func(p *parser) { p.funcSignature() },
		"funcarg":   func(p *parser) { p.funcParam() },
		"def":       func(p *parser) { p.definition() },
		"defarg":    func(p *parser) { p.defArg() },
		"opts":      func(p *parser) { p.options() },
		"genopts":   func(p *parser) { p.expectKw("options"); p.foreignOptions() },
		"altopts":   func(p *parser) { p.expectKw("options"); p.alterForeignOptions() },
		"elem":      func(p *parser) { p.tableElement() },
		"typedelem": func(p *parser) { p.typedElement() },
		"bound":     func(p *parser) { p.partitionBound() },
		"tabcons":   func(p *parser) { p.tableConstraint() },
		"domcons":   func(p *parser) { p.domainConstraints() },
		"attrs":     func(p *parser) { p.triggerAttrs() },
		"funcopts":  func(p *parser) { p.alterFuncOptions() },
		"dropb":     func(p *parser) { p.dropBehavior() },
		"key":       func(p *parser) { p.keyExpr() },
		"colname":   func(p *parser) { p.colDef() },
		"object":    func(p *parser) { p.objectRef() },
		"query":     func(p *parser) { p.ruleAction() },
		"publist":   func(p *parser) { p.publicationObjects() },
		"opargs":    func(p *parser) { p.operatorArgs() },
		"privs":     func(p *parser) { p.privileges() },
	}
}
