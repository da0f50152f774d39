package parser

import (
	"strconv"
	"strings"
)

// normalizeLimit is how many bytes of a statement Normalize looks at.
const normalizeLimit = 64 << 10

// Normalize returns a statement without its constants, and a number that all
// statements which differ in nothing but constants, blanks, comments and the case
// of words have in common. It is what may be logged and counted: no value of a row
// and no password is in it.
//
// Constants become $n, numbered on from the statement's own parameters, as
// pg_stat_statements (PostgreSQL 15) prints them: with a sign before a number, but
// not where a number is a position (GROUP BY 1) or part of a type (numeric(10,2)).
// Unlike there that holds for utility statements, too, and comments are left out,
// because they may quote anything. A text that cannot be cut into tokens ends
// before its fault with "...", and so does one longer than 64 kB.
func Normalize(sql string) (text string, id int64) {
	cut := len(sql) > normalizeLimit
	if cut {
		sql = sql[:normalizeLimit]
	}
	n := normalizer{src: sql, toks: lex(sql).toks, id: fnvOffset}
	return n.run(cut), int64(n.id)
}

// FNV-1a of 64 bits: the number must be the same in every process.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// normalizer walks the tokens of a statement.
type normalizer struct {
	src   string
	toks  []token
	out   strings.Builder
	param int // the last number that was given away
	id    uint64

	depth int // open parentheses
	// list is the depth at which an ORDER BY or GROUP BY list is, plus one; 0 = none.
	list int
	// typed is the depth within the parentheses of a type's modifiers; 0 = none.
	typed int
	// plans: the statement is one that is planned, so that the words true, false and
	// null are values.
	plans bool
}

func (n *normalizer) run(cut bool) string {
	last := len(n.toks) - 1 // tEOF
	if cut && last > 0 {
		last-- // it may be half a token
	}
	for i := range n.toks[:last] {
		if n.toks[i].kind == tParam {
			n.param = max(n.param, paramNumber(n.toks[i].text))
		}
	}
	for last > 0 && n.toks[last-1].kind == ';' {
		last--
	}
	if last > 0 {
		switch n.toks[0].text {
		case "select", "insert", "update", "delete", "merge", "with", "values", "(", "table":
			n.plans = true
		}
	}
	end := 0 // in src, of the token written last
	for i := 0; i < last; i++ {
		t := &n.toks[i]
		if t.kind == tError {
			cut = true
			break
		}
		if i > 0 {
			n.gap(n.src[end:t.pos])
		}
		n.place(i)
		first := i
		if n.sign(i) {
			i++
			t = &n.toks[i]
		}
		end = int(t.end)
		switch {
		case n.constant(i):
			n.param++
			n.out.WriteString("$" + strconv.Itoa(n.param))
			n.hash("?")
		case t.kind == tIdent || t.kind == tKeyword || t.kind == tParam:
			n.out.WriteString(n.src[n.toks[first].pos:end])
			n.hash(t.text)
		default:
			n.out.WriteString(n.src[n.toks[first].pos:end])
			n.hash(n.src[n.toks[first].pos:end])
		}
	}
	if cut {
		n.out.WriteString("...")
	}
	return n.out.String()
}

func (n *normalizer) hash(s string) {
	for i := 0; i < len(s); i++ {
		n.id = (n.id ^ uint64(s[i])) * fnvPrime
	}
	n.id *= fnvPrime // a zero byte: the end of the word
}

// gap writes what stands between two tokens: blanks as they are, without comments.
func (n *normalizer) gap(s string) {
	if s == "" {
		return
	}
	if strings.ContainsAny(s, "-/") {
		s = " "
	}
	n.out.WriteString(s)
}

// place follows where token i stands.
func (n *normalizer) place(i int) {
	switch t := &n.toks[i]; t.kind {
	case '(':
		n.depth++
		if n.typed == 0 && i > 0 && isModified(&n.toks[i-1]) {
			n.typed = n.depth
		}
	case ')':
		if n.typed == n.depth {
			n.typed = 0
		}
		n.depth--
		if n.list > n.depth+1 {
			n.list = 0
		}
	case tKeyword:
		switch t.text {
		case "by":
			if i > 0 && (n.toks[i-1].text == "order" || n.toks[i-1].text == "group") {
				n.list = n.depth + 1
			}
		case "limit", "offset", "fetch", "having", "window", "union", "intersect", "except", "for", "rows", "range", "groups", "order", "group":
			if n.list == n.depth+1 {
				n.list = 0
			}
		}
	}
}

// isModified reports whether a token may be a type whose modifiers follow.
func isModified(t *token) bool {
	switch t.text {
	case "bit", "char", "character", "varchar", "varying", "nchar", "bpchar", "numeric", "decimal", "dec", "float", "time", "timestamp",
		"timestamptz", "timetz", "interval", "second", "binary", "varbinary":
		return !t.quoted && (t.kind == tKeyword || t.kind == tIdent)
	}
	return false
}

// sign reports whether token i is the sign of the number that follows.
func (n *normalizer) sign(i int) bool {
	if n.toks[i].kind != '-' || i+1 >= len(n.toks) || n.toks[i+1].kind != tInt && n.toks[i+1].kind != tFloat {
		return false
	}
	if i+2 < len(n.toks) && (n.toks[i+2].kind == tTypecast || n.toks[i+2].kind == '[') {
		return false // which bind tighter
	}
	if i == 0 {
		return true
	}
	switch p := &n.toks[i-1]; p.kind {
	case tIdent, tInt, tFloat, tString, tBits, tHex, tParam, ')', ']':
		return false
	case tKeyword:
		switch p.text {
		case "end", "null", "true", "false", "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp",
			"year", "month", "day", "hour", "minute", "second":
			return false
		}
		return p.class == kwReserved || p.class == kwTypeFunc || p.text == "between" || p.text == "by"
	}
	return true
}

// constant reports whether token i is a value.
func (n *normalizer) constant(i int) bool {
	switch t := &n.toks[i]; t.kind {
	case tString, tBits, tHex, tFloat:
		return true
	case tInt:
		return n.typed == 0 && !n.position(i)
	case tKeyword:
		switch t.text {
		case "true", "false", "null":
		default:
			return false
		}
		if !n.plans {
			return false
		}
		if i > 0 {
			switch p := &n.toks[i-1]; p.text {
			case "is", "as", ".":
				return false
			case "not": // IS NOT NULL
				return i < 2 || n.toks[i-2].text != "is"
			}
		}
		return true
	}
	return false
}

// position reports whether the integer i is all of an element of ORDER BY or
// GROUP BY: the number of a column.
func (n *normalizer) position(i int) bool {
	if n.list == 0 || n.list != n.depth+1 || i == 0 {
		return false
	}
	if p := &n.toks[i-1]; p.kind != ',' && p.text != "by" {
		return false
	}
	switch next := &n.toks[i+1]; next.kind {
	case ',', ')', ';', tEOF, tKeyword:
		return true
	}
	return false
}
