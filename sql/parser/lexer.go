package parser

import (
	"math"
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// lexer cuts the text into tokens. It follows PostgreSQL's scan.l rule by rule,
// with standard_conforming_strings on and backslash_quote safe.
//
// A lexical error becomes a last token of kind tError: PostgreSQL scans as it
// parses, so a syntax error before the bad token must win.
type lexer struct {
	src  string
	i    int
	toks []token
	err  *pgerr.Error // of the tError token
	// hints maps a token's index to the /*+ ... */ comment before it.
	hints map[int]string
}

const opChars = "~!@#^&|`?+-*/%<>="

func isOpChar(c byte) bool { return strings.IndexByte(opChars, c) >= 0 }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'
}

func isIdentStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func isIdentCont(c byte) bool { return isIdentStart(c) || isDigit(c) || c == '$' }

// lex cuts src. The last token is always tEOF, preceded by a tError if there
// is one.
func lex(src string) *lexer {
	l := &lexer{src: src, toks: make([]token, 0, len(src)/5+2)}
	for l.err == nil {
		l.skipBlank()
		if l.err != nil || l.i >= len(l.src) {
			break
		}
		l.next()
	}
	l.toks = append(l.toks, token{kind: tEOF, pos: ast.Pos(len(src)), end: ast.Pos(len(src))})
	return l
}

// at returns the byte at offset i+n, and 0 beyond the end.
func (l *lexer) at(n int) byte {
	if l.i+n < len(l.src) {
		return l.src[l.i+n]
	}
	return 0
}

// fail ends lexing with msg at or near src[start:end].
func (l *lexer) fail(msg string, start, end int) {
	if start >= len(l.src) {
		l.failAs(pgerr.New(pgerr.SyntaxError, "%s at end of input", msg), start)
		return
	}
	l.failAs(pgerr.New(pgerr.SyntaxError, "%s at or near \"%s\"", msg, l.src[start:end]), start)
}

func (l *lexer) failAs(err *pgerr.Error, pos int) {
	if l.err != nil {
		return
	}
	l.err = err.WithPosition(CharPosition(l.src, ast.Pos(pos)))
	l.toks = append(l.toks, token{kind: tError, pos: ast.Pos(pos), end: ast.Pos(len(l.src))})
}

// add appends the token src[start:l.i].
func (l *lexer) add(kind tokKind, start int, text string) *token {
	l.toks = append(l.toks, token{kind: kind, pos: ast.Pos(start), end: ast.Pos(l.i), text: text})
	return &l.toks[len(l.toks)-1]
}

// skipBlank skips blanks and comments.
func (l *lexer) skipBlank() {
	for l.i < len(l.src) {
		c := l.src[l.i]
		switch {
		case isSpace(c):
			l.i++
		case c == '-' && l.at(1) == '-':
			l.skipLine()
		case c == '/' && l.at(1) == '*':
			l.skipComment()
			if l.err != nil {
				return
			}
		default:
			return
		}
	}
}

func (l *lexer) skipLine() {
	for l.i < len(l.src) && l.src[l.i] != '\n' && l.src[l.i] != '\r' {
		l.i++
	}
}

// skipComment skips a nested comment, and notes a hint.
func (l *lexer) skipComment() {
	start, depth := l.i, 0
	for l.i < len(l.src) {
		switch {
		case l.src[l.i] == '/' && l.at(1) == '*':
			depth++
			l.i += 2
		case l.src[l.i] == '*' && l.at(1) == '/':
			depth--
			l.i += 2
			if depth > 0 {
				continue
			}
			if l.src[start+2] == '+' && l.i-start > 5 {
				if l.hints == nil {
					l.hints = map[int]string{}
				}
				l.hints[len(l.toks)] = l.src[start+3 : l.i-2]
			}
			return
		default:
			l.i++
		}
	}
	l.fail("unterminated /* comment", start, len(l.src))
}

// next lexes one token; l.i is at its first character.
func (l *lexer) next() {
	start := l.i
	c := l.src[start]
	switch {
	case c == '\'':
		l.quoted(start, start+1, false, tString, ast.StringNormal)
	case (c == 'e' || c == 'E') && l.at(1) == '\'':
		l.quoted(start, start+2, true, tString, ast.StringEscape)
	case (c == 'b' || c == 'B') && l.at(1) == '\'':
		l.quoted(start, start+2, false, tBits, ast.StringBit)
	case (c == 'x' || c == 'X') && l.at(1) == '\'':
		l.quoted(start, start+2, false, tHex, ast.StringHex)
	case (c == 'n' || c == 'N') && l.at(1) == '\'':
		// N'...' is the type nchar followed by a string.
		l.i++
		t := l.add(tKeyword, start, "nchar")
		t.class, t.bare = keywords["nchar"].class, keywords["nchar"].bare
	case (c == 'u' || c == 'U') && l.at(1) == '&' && (l.at(2) == '\'' || l.at(2) == '"'):
		l.unicode(start)
	case isIdentStart(c):
		l.word()
	case isDigit(c), c == '.' && isDigit(l.at(1)):
		l.number()
	case c == '"':
		l.delimited(start, start+1, '"')
	case c == '$':
		l.dollar()
	case c == '`':
		// Two backticks in a row are an operator, as in PostgreSQL.
		if strings.IndexByte(l.src[start+1:], '`') > 0 {
			l.delimited(start, start+1, '`')
			return
		}
		l.operator()
	case c == ':' && l.at(1) == ':':
		l.i += 2
		l.add(tTypecast, start, "::")
	case c == ':' && l.at(1) == '=':
		l.i += 2
		l.add(tColonEquals, start, ":=")
	case c == '.' && l.at(1) == '.':
		l.i += 2
		l.add(tDotDot, start, "..")
	case strings.IndexByte(",()[].;:", c) >= 0:
		l.i++
		l.add(tokKind(c), start, l.src[start:l.i])
	case isOpChar(c):
		l.operator()
	default:
		// Any other character is a token of its own that no rule takes.
		l.i++
		l.add(tokKind(c), start, l.src[start:l.i])
	}
}

func (l *lexer) word() {
	start := l.i
	upper := false
	for l.i < len(l.src) && isIdentCont(l.src[l.i]) {
		if c := l.src[l.i]; c >= 'A' && c <= 'Z' {
			upper = true
		}
		l.i++
	}
	w := l.src[start:l.i]
	if upper {
		w = foldCase(w)
	}
	if k, ok := keywords[w]; ok {
		t := l.add(tKeyword, start, w)
		t.class, t.bare = k.class, k.bare
		if n := len(l.toks); n > 1 && l.toks[n-2].kind == tKeyword {
			markLookahead(&l.toks[n-2], w)
		}
		return
	}
	l.add(tIdent, start, w)
}

// markLookahead marks a NOT or NULLS that w, the next word, makes another token
// than the word alone: an LALR(1) grammar could not tell them apart.
func markLookahead(t *token, w string) {
	switch w {
	case "between", "in", "like", "ilike", "similar":
		t.la = t.text == "not"
	case "first", "last":
		t.la = t.text == "nulls"
	}
}

// foldCase lowers ASCII letters only, as PostgreSQL does in UTF-8. Names are
// not cut at 63 bytes: names made by other engines may be longer.
func foldCase(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// number lexes a number: digits, digits.digits, with or without an exponent.
// 1..10 is 1, .., 10. A word that follows at once is an error, and as the
// longest match wins, so is the word after the mantissa if it goes beyond the
// exponent: 1e5 is a number, 1e5$x is 1 and junk.
func (l *lexer) number() {
	start := l.i
	integer := true
	l.digits()
	if l.at(0) == '.' && l.at(1) != '.' {
		integer = false
		l.i++
		l.digits()
	}
	end, junk := l.i, l.wordEnd(l.i)
	if c := l.at(0); c == 'e' || c == 'E' {
		n := 1
		if s := l.at(1); s == '+' || s == '-' {
			n = 2
		}
		switch {
		case isDigit(l.at(n)):
			integer = false
			l.i += n
			l.digits()
			end = l.i
			junk = max(junk, l.wordEnd(end))
		case n == 2:
			junk = max(junk, l.i+2)
		}
	}
	switch {
	case junk > end:
		l.fail("trailing junk after numeric literal", start, junk)
	case integer:
		l.addInt(start)
	default:
		l.add(tFloat, start, l.src[start:l.i])
	}
}

// wordEnd returns the end of the word that begins at i, or i.
func (l *lexer) wordEnd(i int) int {
	if i < len(l.src) && isIdentStart(l.src[i]) {
		for i < len(l.src) && isIdentCont(l.src[i]) {
			i++
		}
	}
	return i
}

func (l *lexer) digits() {
	for l.i < len(l.src) && isDigit(l.src[l.i]) {
		l.i++
	}
}

func (l *lexer) addInt(start int) {
	text := l.src[start:l.i]
	if _, err := strconv.ParseInt(text, 10, 32); err != nil {
		l.add(tFloat, start, text)
		return
	}
	l.add(tInt, start, text)
}

// charLen is the length in bytes of the first character of s.
func charLen(s string) int {
	n := 1
	for n < len(s) && s[0] >= 0xC0 && s[n]&0xC0 == 0x80 {
		n++
	}
	return n
}

// dollar lexes $1, $tag$...$tag$ and a lone $.
func (l *lexer) dollar() {
	start := l.i
	if isDigit(l.at(1)) {
		l.i++
		l.digits()
		if end := l.wordEnd(l.i); end > l.i {
			l.fail("trailing junk after parameter", start, end)
			return
		}
		l.add(tParam, start, l.src[start+1:l.i])
		return
	}
	end := start + 1
	if end < len(l.src) && isIdentStart(l.src[end]) {
		for end < len(l.src) && (isIdentStart(l.src[end]) || isDigit(l.src[end])) {
			end++
		}
	}
	if end >= len(l.src) || l.src[end] != '$' {
		l.i++
		l.add('$', start, "$")
		return
	}
	tag := l.src[start : end+1]
	body := end + 1
	n := strings.Index(l.src[body:], tag)
	if n < 0 {
		l.fail("unterminated dollar-quoted string", start, len(l.src))
		return
	}
	l.i = body + n + len(tag)
	l.add(tString, start, l.src[body:body+n])
}

// delimited lexes a quoted identifier that opened before body.
func (l *lexer) delimited(start, body int, q byte) {
	text, end, ok := scanDelimited(l.src, body, q)
	if !ok {
		l.fail("unterminated quoted identifier", start, len(l.src))
		return
	}
	l.i = end
	if text == "" {
		l.fail("zero-length delimited identifier", start, end)
		return
	}
	l.add(tIdent, start, text).quoted = true
}

// scanDelimited reads up to the closing q, with q doubled standing for itself.
func scanDelimited(src string, body int, q byte) (text string, end int, ok bool) {
	doubled := false
	for i := body; i < len(src); i++ {
		if src[i] != q {
			continue
		}
		if i+1 < len(src) && src[i+1] == q {
			doubled = true
			i++
			continue
		}
		text = src[body:i]
		if doubled {
			text = strings.ReplaceAll(text, string([]byte{q, q}), string(q))
		}
		return text, i + 1, true
	}
	return "", 0, false
}

// operator lexes an operator. It ends before a comment, and may end in + or -
// only if it has a character that is in no operator of the SQL standard, so
// that a=-1 is two operators.
func (l *lexer) operator() {
	start := l.i
	end := start
	for end < len(l.src) && isOpChar(l.src[end]) {
		if end > start && end+1 < len(l.src) {
			if two := l.src[end : end+2]; two == "/*" || two == "--" {
				break
			}
		}
		end++
	}
	text := l.src[start:end]
	if last := text[len(text)-1]; len(text) > 1 && (last == '+' || last == '-') &&
		!strings.ContainsAny(text[:len(text)-1], "~!@#^&|`?%") {
		for len(text) > 1 && (text[len(text)-1] == '+' || text[len(text)-1] == '-') {
			text = text[:len(text)-1]
		}
	}
	l.i = start + len(text)
	if len(text) == 1 && strings.IndexByte("+-*/%^<>=", text[0]) >= 0 {
		l.add(tokKind(text[0]), start, text)
		return
	}
	switch text {
	case "=>":
		l.add(tArrow, start, text)
	case ">=":
		l.add(tGreaterEquals, start, text)
	case "<=":
		l.add(tLessEquals, start, text)
	case "<>", "!=":
		l.add(tNotEquals, start, "<>")
	default:
		if len(text) >= 64 {
			l.fail("operator too long", start, l.i)
			return
		}
		l.add(tOp, start, text)
	}
}

// paramNumber is the number of a $n token; a number too large is 0, which no
// statement has.
func paramNumber(text string) int {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > math.MaxInt32 {
		return 0
	}
	return int(n)
}

// CharPosition turns a byte offset of sql into a character position from 1, as
// error messages carry it.
func CharPosition(sql string, pos ast.Pos) int {
	n := 1
	for i := 0; i < len(sql) && i < int(pos); i++ {
		if sql[i]&0xC0 != 0x80 {
			n++
		}
	}
	return n
}
