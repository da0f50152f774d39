// Package ast is the syntax tree both parsers produce and the binder reads.
//
// The tree is plain data: no behaviour beyond Walk, Equal and Format, and no
// import of the project. What the grammar says in several ways is one node (a
// bare TABLE t is SELECT * FROM t, != is <>, TRIM(BOTH FROM x) is a call of
// btrim); what a reader of EXPLAIN or a view definition would miss is kept.
//
// Every node embeds Loc. Positions are byte offsets into the whole text given
// to the parser, not into the single statement, because PostgreSQL reports
// error positions that way; the parser's CharPosition turns one into the
// character position of the wire protocol.
package ast

import "strings"

// Pos is a byte offset, from 0, into the text given to the parser.
type Pos int32

// Loc is where a node begins. For an infix operator that is the operator, for
// everything else the first token, which is where PostgreSQL points.
type Loc struct{ Pos Pos }

// At makes the Loc of a node that begins at p.
func At(p Pos) Loc { return Loc{Pos: p} }

// Position returns the node's offset.
func (l Loc) Position() Pos { return l.Pos }

// Node is any node of the tree.
type Node interface{ Position() Pos }

// Expr is a scalar expression. *GroupingSet, *Default and *NamedArg are
// expressions only where the grammar allows them.
type Expr interface {
	Node
	expr()
}

// Stmt is a statement.
type Stmt interface {
	Node
	// Range returns the range of a top-level statement; nested statements
	// have an empty Text.
	Range() *Span
	stmt()
}

// TableRef is an item of a FROM list: *TableName, *SubqueryRef, *FuncRef,
// *Join or *XMLTable.
type TableRef interface {
	Node
	tableRef()
}

// QueryBody is what a Query orders and limits: *Select, *Values, *SetOp, or
// *Query for a parenthesised query with clauses of its own.
type QueryBody interface {
	Node
	queryBody()
}

// Span is the source range of a top-level statement: Text is the input from
// Pos to End, without the closing semicolon and blanks around it.
type Span struct {
	Loc
	End  Pos
	Text string
}

// Range returns the span itself.
func (s *Span) Range() *Span { return s }

// Ident is one name. Unquoted names are folded to lower case, quoted ones are
// kept as written. The zero Ident means "no name": an empty name cannot be
// written.
type Ident struct {
	Name   string
	Quoted bool
	Pos    Pos
}

// Empty reports whether there is no name.
func (id Ident) Empty() bool { return id.Name == "" }

// String returns the name as SQL, quoted if it must be.
func (id Ident) String() string { return QuoteIdent(id.Name) }

// Name is a possibly qualified name, outermost part first.
type Name []Ident

// Last returns the unqualified name, and "" for an empty Name.
func (n Name) Last() string {
	if len(n) == 0 {
		return ""
	}
	return n[len(n)-1].Name
}

// Pos returns the position of the first part.
func (n Name) Pos() Pos {
	if len(n) == 0 {
		return 0
	}
	return n[0].Pos
}

// String joins the parts by dots, as error messages show them: unquoted.
func (n Name) String() string {
	parts := make([]string, len(n))
	for i, id := range n {
		parts[i] = id.Name
	}
	return strings.Join(parts, ".")
}
