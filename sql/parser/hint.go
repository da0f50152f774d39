package parser

import (
	"strings"

	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// takeHints returns the hints of the comment before the current token. A
// comment that is no list of hints is a comment.
func (p *parser) takeHints() []*ast.Hint {
	text, ok := p.hints[p.i]
	if !ok {
		return nil
	}
	delete(p.hints, p.i)
	h := newParser(text)
	pos := p.pos()
	var hints []*ast.Hint
	for h.err == nil && !h.is(tEOF) {
		hint := &ast.Hint{Loc: ast.At(pos), Name: upper(h.colLabel().Name)}
		start := h.i
		if !h.is('(') {
			return nil
		}
		if hint.Name == "OPTIONS" {
			h.expect('(')
			for h.err == nil && !h.is(')') {
				hint.Options = append(hint.Options, h.hintOption(pos))
				if !h.accept(',') {
					break
				}
			}
			h.expect(')')
		} else {
			h.skipParens()
			if h.err == nil && h.i > start+1 {
				hint.Text = strings.TrimSpace(text[h.toks[start+1].pos:h.toks[h.i-1].pos])
			}
		}
		hints = append(hints, hint)
		h.accept(',')
	}
	if h.err != nil {
		return nil
	}
	return hints
}

func (p *parser) hintOption(pos ast.Pos) *ast.Option {
	o := p.lakeOption()
	o.Pos = pos
	if s, ok := o.Value.(*ast.String); ok {
		s.Pos = pos
	}
	return o
}

// skipParens skips a balanced ( ... ), or nothing.
func (p *parser) skipParens() {
	if !p.is('(') {
		return
	}
	depth := 0
	for p.err == nil {
		switch {
		case p.is('('):
			depth++
		case p.is(')'):
			depth--
		case p.is(tEOF), p.is(tError):
			p.syntaxError()
		}
		p.next()
		if depth == 0 {
			return
		}
	}
}
