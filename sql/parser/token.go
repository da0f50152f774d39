package parser

import "github.com/paimon-sql/paimon-sql/sql/ast"

// tokKind is the kind of a token. Punctuation and one-character operators are
// their own character.
type tokKind uint16

// Kinds above the characters.
const (
	tEOF tokKind = iota + 256
	tError
	tIdent
	tKeyword
	tInt   // integer of at most 31 bits
	tFloat // any other number, large integers too
	tString
	tBits
	tHex
	tParam
	tOp // an operator of no fixed meaning
	tTypecast
	tDotDot
	tColonEquals
	tArrow // =>
	tLessEquals
	tGreaterEquals
	tNotEquals
)

// token is one token. text is the folded or decoded value: an identifier's
// name, a keyword in lower case, a string's content, a number's digits, an
// operator's characters.
type token struct {
	kind   tokKind
	class  kwClass // of a keyword
	bare   bool    // keyword that may be a label without AS
	quoted bool    // identifier in quotes
	la     bool    // NOT before BETWEEN, IN, LIKE, ILIKE, SIMILAR; NULLS before FIRST, LAST
	str    ast.StringKind
	pos    ast.Pos
	end    ast.Pos
	text   string
}
