package parser

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// quoted lexes a string that opened before body, continuation lines included:
// two literals with a line break between them are one. escapes says whether
// backslashes escape.
func (l *lexer) quoted(start, body int, escapes bool, kind tokKind, str ast.StringKind) {
	text, ok := l.scanQuoted(start, body, escapes, kind == tString)
	if !ok {
		if l.err == nil {
			l.fail(unterminated(kind), start, len(l.src))
		}
		return
	}
	l.add(kind, start, text).str = str
}

func unterminated(kind tokKind) string {
	switch kind {
	case tBits:
		return "unterminated bit string literal"
	case tHex:
		return "unterminated hexadecimal string literal"
	}
	return "unterminated quoted string"
}

// scanQuoted reads string content from body and leaves l.i after the closing
// quote. It returns false when there is none or an escape is wrong.
// doubles says whether a quote written twice is part of the content, as it is
// in all strings but bit strings.
func (l *lexer) scanQuoted(start, body int, escapes, doubles bool) (string, bool) {
	// The common string has nothing special in it and is a slice of the source.
	special := "'"
	if escapes {
		special = `'\`
	}
	i := body
	var b strings.Builder
	nonASCII := false
	for {
		n := strings.IndexAny(l.src[i:], special)
		if n < 0 {
			return "", false
		}
		if i+n+1 >= len(l.src) || l.src[i+n] == '\'' && !isSpace(l.src[i+n+1]) && l.src[i+n+1] != '\'' && l.src[i+n+1] != '-' {
			if i == body && l.src[i+n] == '\'' {
				l.i = i + n + 1
				return l.src[body : i+n], true
			}
		}
		b.WriteString(l.src[i : i+n])
		i += n
		if l.src[i] == '\\' {
			end, raw, ok := l.escape(&b, start, i)
			if !ok {
				return "", false
			}
			nonASCII = nonASCII || raw
			i = end
			continue
		}
		if doubles && i+1 < len(l.src) && l.src[i+1] == '\'' {
			b.WriteByte('\'')
			i += 2
			continue
		}
		next, ok := continuation(l.src, i+1)
		if !ok {
			break
		}
		i = next
	}
	l.i = i + 1
	text := b.String()
	if nonASCII {
		if at := badUTF8(text); at != "" {
			l.failAs(pgerr.New(pgerr.CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\": %s", at), start)
			l.err.Position = 0
			return "", false
		}
	}
	return text, true
}

// continuation reports whether the string that closed before i goes on: only
// blanks and comments with at least one line break, then a quote. It returns
// the offset after that quote.
func continuation(src string, i int) (int, bool) {
	newline := false
	for i < len(src) {
		switch c := src[i]; {
		case c == '\n' || c == '\r':
			newline = true
			i++
		case isSpace(c):
			i++
		case c == '-' && i+1 < len(src) && src[i+1] == '-':
			for i < len(src) && src[i] != '\n' && src[i] != '\r' {
				i++
			}
		case c == '\'' && newline:
			return i + 1, true
		default:
			return 0, false
		}
	}
	return 0, false
}

// escape resolves the backslash escape at i of an E string and returns the
// offset after it. raw says that a byte was written that may break UTF-8.
func (l *lexer) escape(b *strings.Builder, start, i int) (end int, raw, ok bool) {
	if i+1 >= len(l.src) {
		// A backslash just before the end: the string is unterminated.
		return 0, false, false
	}
	c := l.src[i+1]
	switch {
	case c >= '0' && c <= '7':
		end = i + 1
		for end < len(l.src) && end < i+4 && l.src[end] >= '0' && l.src[end] <= '7' {
			end++
		}
		v, _ := strconv.ParseUint(l.src[i+1:end], 8, 16)
		b.WriteByte(byte(v))
		return end, byte(v) == 0 || byte(v) >= 0x80, true
	case c == 'x':
		end = i + 2
		for end < len(l.src) && end < i+4 && isHex(l.src[end]) {
			end++
		}
		if end == i+2 {
			b.WriteByte('x')
			return end, false, true
		}
		v, _ := strconv.ParseUint(l.src[i+2:end], 16, 16)
		b.WriteByte(byte(v))
		return end, v == 0 || v >= 0x80, true
	case c == 'u' || c == 'U':
		end, ok = l.unicodeEscape(b, i)
		return end, false, ok
	}
	n := charLen(l.src[i+1:])
	switch c {
	case 'b':
		b.WriteByte('\b')
	case 'f':
		b.WriteByte('\f')
	case 'n':
		b.WriteByte('\n')
	case 'r':
		b.WriteByte('\r')
	case 't':
		b.WriteByte('\t')
	case 'v':
		b.WriteByte('\v')
	default:
		b.WriteString(l.src[i+1 : i+1+n])
	}
	return i + 1 + n, false, true
}

func isHex(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// unicodeEscape resolves \uXXXX or \UXXXXXXXX at i, or a pair of them that are
// UTF-16 surrogates.
func (l *lexer) unicodeEscape(b *strings.Builder, i int) (int, bool) {
	v, end, ok := l.unicodeDigits(i)
	if !ok {
		return 0, false
	}
	if v >= 0xD800 && v < 0xDC00 {
		if end+1 >= len(l.src) || l.src[end] != '\\' || l.src[end+1] != 'u' && l.src[end+1] != 'U' {
			l.fail("invalid Unicode surrogate pair", end, min(end+1, len(l.src)))
			return 0, false
		}
		second, end2, ok := l.unicodeDigits(end)
		if !ok {
			return 0, false
		}
		if second < 0xDC00 || second > 0xDFFF {
			l.fail("invalid Unicode surrogate pair", end, end2)
			return 0, false
		}
		v = 0x10000 + (v-0xD800)<<10 + (second - 0xDC00)
		end = end2
	} else if v >= 0xDC00 && v <= 0xDFFF {
		l.fail("invalid Unicode surrogate pair", i, end)
		return 0, false
	}
	if v == 0 || v > utf8.MaxRune {
		l.fail("invalid Unicode escape value", i, end)
		return 0, false
	}
	b.WriteRune(rune(v))
	return end, true
}

func (l *lexer) unicodeDigits(i int) (v uint64, end int, ok bool) {
	want := 4
	if l.src[i+1] == 'U' {
		want = 8
	}
	end = i + 2
	for end < len(l.src) && end < i+2+want && isHex(l.src[end]) {
		end++
	}
	if end < i+2+want {
		err := pgerr.New(pgerr.InvalidEscapeSequence, "invalid Unicode escape").
			WithHint("%s", `Unicode escapes must be \uXXXX or \UXXXXXXXX.`)
		l.failAs(err, i)
		return 0, 0, false
	}
	v, _ = strconv.ParseUint(l.src[i+2:end], 16, 64)
	return v, end, true
}

// unicode lexes U&'...' or U&"...", with an optional UESCAPE 'c' after it.
func (l *lexer) unicode(start int) {
	name := l.at(2) == '"'
	var text string
	var ok bool
	if name {
		var end int
		if text, end, ok = scanDelimited(l.src, start+3, '"'); !ok {
			l.fail("unterminated quoted identifier", start, len(l.src))
			return
		}
		l.i = end
		if text == "" {
			l.fail("zero-length delimited identifier", start, end)
			return
		}
	} else if text, ok = l.scanQuoted(start, start+3, false, true); !ok {
		l.fail("unterminated quoted string", start, len(l.src))
		return
	}
	esc, ok := l.uescape()
	if !ok {
		return
	}
	text, ok = l.unescapeUnicode(text, esc, start)
	if !ok {
		return
	}
	if name {
		l.add(tIdent, start, text).quoted = true
		return
	}
	l.add(tString, start, text).str = ast.StringUnicode
}

// uescape reads UESCAPE 'c' if it is next, and returns the escape character.
func (l *lexer) uescape() (byte, bool) {
	save := l.i
	l.skipBlank()
	if l.err != nil {
		return 0, false
	}
	end := l.i
	for end < len(l.src) && isIdentCont(l.src[end]) {
		end++
	}
	if !strings.EqualFold(l.src[l.i:end], "uescape") {
		l.i = save
		return '\\', true
	}
	l.i = end
	l.skipBlank()
	if l.err != nil {
		return 0, false
	}
	at := l.i
	n := len(l.toks)
	if at < len(l.src) {
		l.next()
	}
	if l.err != nil {
		return 0, false
	}
	if len(l.toks) == n || l.toks[n].kind != tString {
		if len(l.toks) == n {
			l.failAs(pgerr.New(pgerr.SyntaxError, "UESCAPE must be followed by a simple string literal at end of input"), at)
			return 0, false
		}
		l.toks = l.toks[:n]
		l.fail("UESCAPE must be followed by a simple string literal", at, l.i)
		return 0, false
	}
	s := l.toks[n].text
	l.toks = l.toks[:n]
	if len(s) != 1 || isHex(s[0]) || strings.IndexByte("+'\"", s[0]) >= 0 || isSpace(s[0]) {
		l.fail("invalid Unicode escape character", at, l.i)
		return 0, false
	}
	return s[0], true
}

// unescapeUnicode resolves \XXXX and \+XXXXXX of a U& literal that begins at
// start. Errors have no "at or near", and point into the literal.
func (l *lexer) unescapeUnicode(s string, esc byte, start int) (string, bool) {
	if strings.IndexByte(s, esc) < 0 {
		return s, true
	}
	var b strings.Builder
	var high uint64
	bad := func(i int, msg string) (string, bool) {
		err := pgerr.New(pgerr.SyntaxError, "%s", msg)
		if msg == "invalid Unicode escape" {
			err = err.WithHint("%s", `Unicode escapes must be \XXXX or \+XXXXXX.`)
		}
		l.failAs(err, min(start+3+i, len(l.src)))
		return "", false
	}
	for i := 0; i < len(s); {
		if s[i] != esc {
			if high != 0 {
				return bad(i, "invalid Unicode surrogate pair")
			}
			b.WriteByte(s[i])
			i++
			continue
		}
		if i+1 < len(s) && s[i+1] == esc {
			if high != 0 {
				return bad(i, "invalid Unicode surrogate pair")
			}
			b.WriteByte(esc)
			i += 2
			continue
		}
		from, n := i+1, 4
		if from < len(s) && s[from] == '+' {
			from, n = from+1, 6
		}
		if from+n > len(s) || strings.Trim(s[from:from+n], "0123456789abcdefABCDEF") != "" {
			return bad(i, "invalid Unicode escape")
		}
		v, _ := strconv.ParseUint(s[from:from+n], 16, 64)
		if v == 0 || v > utf8.MaxRune {
			return bad(i, "invalid Unicode escape value")
		}
		second := v >= 0xDC00 && v <= 0xDFFF
		switch {
		case (high != 0) != second:
			return bad(i, "invalid Unicode surrogate pair")
		case second:
			b.WriteRune(rune(0x10000 + (high-0xD800)<<10 + (v - 0xDC00)))
			high = 0
		case v >= 0xD800 && v < 0xDC00:
			high = v
		default:
			b.WriteRune(rune(v))
		}
		i = from + n
	}
	if high != 0 {
		return bad(len(s), "invalid Unicode surrogate pair")
	}
	return b.String(), true
}

// badUTF8 returns the first bytes of s that are no UTF-8, as PostgreSQL shows
// them, or "".
func badUTF8(s string) string {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == 0 || r == utf8.RuneError && n == 1 {
			want := 1
			switch c := s[i]; {
			case c >= 0xF0:
				want = 4
			case c >= 0xE0:
				want = 3
			case c >= 0xC0:
				want = 2
			}
			var parts []string
			for j := i; j < len(s) && j < i+want; j++ {
				parts = append(parts, fmt.Sprintf("0x%02x", s[j]))
			}
			return strings.Join(parts, " ")
		}
		i += n
	}
	return ""
}
