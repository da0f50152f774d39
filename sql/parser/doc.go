// Package parser turns PostgreSQL's SQL, and the lake statements Paimon's own
// dialects add to it, into the tree of package ast.
//
// It is a hand-written lexer and a recursive-descent parser with operator
// precedence, made to accept and refuse what the LALR grammar of PostgreSQL 15
// does and to report errors at the same token. Three rules keep it so:
//
//   - The first token that cannot continue any statement is the error. Where
//     the grammar leaves two ways open, the parser decides by looking ahead or
//     carries both as one; it never guesses and reports a later failure.
//   - The first error sticks: it is kept in parser.err and the parser jumps to
//     the end of input, where every loop ends. Nothing panics on input, and no
//     function needs to hand errors upward.
//   - What nests counts its depth; what is merely long loops. A statement too
//     deep is 54001, because a Go stack that overflows cannot be recovered.
//
// Statements the product has no use for are checked against their grammar,
// written as rules in unsupported.go, and returned as *ast.Unsupported.
package parser
