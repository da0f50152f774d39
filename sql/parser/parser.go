package parser

import (
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

const (
	// maxDepth bounds the nesting of what the parser recurses into.
	maxDepth = 3000
	// maxTreeDepth bounds the height of the tree. It is larger, because a
	// chain such as a+b+c+... costs the parser no stack but leans to the left.
	maxTreeDepth = 10000
)

// parser is the state of one parse. See the package comment for how errors
// travel.
type parser struct {
	src   string
	toks  []token
	hints map[int]string
	i     int
	depth int
	err   *pgerr.Error
	// lexErr is the error of the tError token, reported when it is reached.
	lexErr *pgerr.Error
	// inSchemaElem is set inside CREATE SCHEMA, where there is no CREATE
	// TABLE AS.
	inSchemaElem bool
	// inCall is set inside CALL.
	inCall bool
	// asOnly is set inside EXPLAIN, where there is no CREATE TABLE but that.
	asOnly bool
	// far is the index of the token at which err happened; the rules of
	// unsupported statements keep the error that got farthest.
	far int
	// best is the error of the rule branch that got farthest, at bestFar.
	best    *pgerr.Error
	bestFar int
}

func newParser(sql string) *parser {
	l := lex(sql)
	return &parser{src: sql, toks: l.toks, hints: l.hints, lexErr: l.err}
}

// Parse parses a text of any number of statements separated by semicolons.
// Empty statements are left out. Errors are *pgerr.Error.
func Parse(sql string) ([]ast.Stmt, error) {
	p := newParser(sql)
	var stmts []ast.Stmt
	for p.err == nil {
		for p.accept(';') {
		}
		if p.is(tEOF) {
			break
		}
		start := p.i
		s := p.statement()
		if p.err != nil {
			break
		}
		if !p.is(';') && !p.is(tEOF) {
			p.syntaxError()
			break
		}
		p.setSpan(s, start)
		// A token makes at most a few levels, so short texts need no measuring.
		if p.i-start > maxTreeDepth/8 && ast.Deeper(s, maxTreeDepth) {
			p.tooDeep()
			break
		}
		stmts = append(stmts, s)
	}
	if p.err != nil {
		return nil, p.err
	}
	return stmts, nil
}

// ParseExpr parses a single expression.
func ParseExpr(sql string) (ast.Expr, error) {
	p := newParser(sql)
	e := p.expr()
	p.end()
	if p.err == nil && ast.Deeper(e, maxTreeDepth) {
		p.tooDeep()
	}
	if p.err != nil {
		return nil, p.err
	}
	return e, nil
}

// ParseType parses a type name, such as numeric(10,2)[] or map<text, int>.
func ParseType(sql string) (*ast.TypeName, error) {
	p := newParser(sql)
	t := p.typeName()
	p.end()
	if p.err != nil {
		return nil, p.err
	}
	return t, nil
}

func (p *parser) end() {
	if p.err == nil && !p.is(tEOF) {
		p.syntaxError()
	}
}

// setSpan fills in the source range of the statement of the tokens from start
// to the current one.
func (p *parser) setSpan(s ast.Stmt, start int) {
	sp := s.Range()
	sp.Pos = p.toks[start].pos
	sp.End = p.toks[p.i-1].end
	sp.Text = p.src[sp.Pos:sp.End]
	if u, ok := s.(*ast.Unsupported); ok {
		u.SQL = sp.Text
	}
}

// tok returns the current token.
func (p *parser) tok() *token { return &p.toks[p.i] }

// peek returns the token n after the current one.
func (p *parser) peek(n int) *token {
	if p.i+n >= len(p.toks) {
		return &p.toks[len(p.toks)-1]
	}
	return &p.toks[p.i+n]
}

func (p *parser) pos() ast.Pos { return p.toks[p.i].pos }

func (p *parser) loc() ast.Loc { return ast.At(p.toks[p.i].pos) }

func (p *parser) next() {
	if p.i < len(p.toks)-1 {
		p.i++
	}
}

func (p *parser) is(k tokKind) bool { return p.toks[p.i].kind == k }

func (p *parser) accept(k tokKind) bool {
	if p.toks[p.i].kind != k || k == tEOF {
		return false
	}
	p.i++
	return true
}

func (p *parser) expect(k tokKind) {
	if !p.accept(k) {
		p.syntaxError()
	}
}

// kw reports whether the current token is the keyword w.
func (p *parser) kw(w string) bool { return p.toks[p.i].isKw(w) }

// kwAt reports whether the token n ahead is the keyword w.
func (p *parser) kwAt(n int, w string) bool { return p.peek(n).isKw(w) }

// kw2 reports whether the current tokens are the keywords a b.
func (p *parser) kw2(a, b string) bool { return p.kw(a) && p.kwAt(1, b) }

// isKw reports whether t is the keyword w. The NOT of NOT IN and the NULLS of
// NULLS FIRST are tokens of their own, and not these keywords.
func (t *token) isKw(w string) bool { return t.kind == tKeyword && t.text == w && !t.la }

// isWord reports whether the token is the unquoted word w, keyword or not.
func (t *token) isWord(w string) bool {
	return (t.kind == tKeyword && !t.la || t.kind == tIdent && !t.quoted) && t.text == w
}

func (p *parser) acceptKw(w string) bool {
	if !p.kw(w) {
		return false
	}
	p.i++
	return true
}

func (p *parser) expectKw(w string) {
	if !p.acceptKw(w) {
		p.syntaxError()
	}
}

// acceptKws takes the keywords of ws, separated by blanks, if all are next.
func (p *parser) acceptKws(ws string) bool {
	n := 0
	for w := range strings.SplitSeq(ws, " ") {
		if !p.kwAt(n, w) {
			return false
		}
		n++
	}
	p.i += n
	return true
}

// expectKws takes the keywords of ws, or reports the first that is missing.
func (p *parser) expectKws(ws string) {
	for w := range strings.SplitSeq(ws, " ") {
		p.expectKw(w)
	}
}

// word reports whether the current token is the unquoted word w, which need
// not be a keyword: the words of the lake dialects are none.
func (p *parser) word(w string) bool { return p.toks[p.i].isWord(w) }

func (p *parser) wordAt(n int, w string) bool { return p.peek(n).isWord(w) }

func (p *parser) acceptWord(w string) bool {
	if !p.word(w) {
		return false
	}
	p.i++
	return true
}

// ifExists and ifNotExists take their optional clause. IF is unreserved and
// may be a name, so the next word decides.
func (p *parser) ifExists() bool { return p.acceptKws("if exists") }

// ifThenExists is ifExists where IF can be nothing else.
func (p *parser) ifThenExists() bool {
	if !p.acceptKw("if") {
		return false
	}
	p.expectKw("exists")
	return true
}

func (p *parser) ifNotExists() bool {
	if p.kw("if") && p.kwAt(1, "not") {
		p.next()
		p.next()
		p.expectKw("exists")
		return true
	}
	return false
}

// fail keeps err, unless there is one already, and jumps to the end.
func (p *parser) fail(err *pgerr.Error) {
	if p.err != nil {
		return
	}
	p.err = err
	p.far = p.i
	p.i = len(p.toks) - 1
}

// failAt fails with a message about the text at pos.
func (p *parser) failAt(pos ast.Pos, code pgerr.Code, format string, args ...any) {
	p.fail(p.errorAt(pos, code, format, args...))
}

// errorAt makes the error of failAt, for those that get a hint or detail.
func (p *parser) errorAt(pos ast.Pos, code pgerr.Code, format string, args ...any) *pgerr.Error {
	return pgerr.New(code, format, args...).WithPosition(CharPosition(p.src, pos))
}

// syntaxError reports the current token as the one no rule can take.
func (p *parser) syntaxError() {
	p.errorNear("syntax error")
}

func (p *parser) errorNear(msg string) {
	if p.err != nil {
		return
	}
	t := p.tok()
	switch t.kind {
	case tError:
		p.fail(p.lexErr)
	case tEOF:
		p.failAt(t.pos, pgerr.SyntaxError, "%s at end of input", msg)
	default:
		p.failAt(t.pos, pgerr.SyntaxError, "%s at or near \"%s\"", msg, p.src[t.pos:t.end])
	}
}

func (p *parser) tooDeep() {
	p.fail(pgerr.New(pgerr.StatementTooComplex, "stack depth limit exceeded").
		WithHint("Split the statement, or make it less nested."))
}

// enter counts a level of nesting; every enter that returns true is paired
// with a leave.
func (p *parser) enter() bool {
	if p.depth >= maxDepth {
		p.tooDeep()
		return false
	}
	p.depth++
	return true
}

func (p *parser) leave() { p.depth-- }
