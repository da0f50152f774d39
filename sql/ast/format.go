package ast

import (
	"strconv"
	"strings"
)

// Format returns n as SQL. What it returns parses to the same tree (see Equal),
// for statements, expressions and types. Operands that are themselves operators
// are put in parentheses, so no precedence need be known to read it.
func Format(n Node) string {
	f := &formatter{}
	f.node(n)
	return f.b.String()
}

// FormatName returns a qualified name as SQL.
func FormatName(n Name) string {
	f := &formatter{}
	f.name(n)
	return f.b.String()
}

type formatter struct{ b strings.Builder }

func (f *formatter) s(parts ...string) {
	for _, p := range parts {
		f.b.WriteString(p)
	}
}

// opt writes s if ok.
func (f *formatter) opt(ok bool, s string) {
	if ok {
		f.s(s)
	}
}

func (f *formatter) ident(id Ident) { f.s(QuoteIdent(id.Name)) }

func (f *formatter) name(n Name) {
	for i, id := range n {
		f.opt(i > 0, ".")
		f.ident(id)
	}
}

func (f *formatter) str(s string) { f.s(QuoteString(s)) }

// each writes items separated by commas.
func each[T any](f *formatter, items []T, one func(T)) {
	for i, x := range items {
		f.opt(i > 0, ", ")
		one(x)
	}
}

func (f *formatter) idents(ids []Ident) { each(f, ids, f.ident) }

// columns writes (a, b), or nothing for an empty list.
func (f *formatter) columns(ids []Ident) {
	if len(ids) > 0 {
		f.s(" (")
		f.idents(ids)
		f.s(")")
	}
}

func (f *formatter) exprs(es []Expr) { each(f, es, f.expr) }

func (f *formatter) parenExprs(es []Expr) {
	f.s("(")
	f.exprs(es)
	f.s(")")
}

func (f *formatter) node(n Node) {
	switch n := n.(type) {
	case Stmt:
		f.stmt(n)
	case Expr:
		f.expr(n)
	case TableRef:
		f.tableRef(n)
	case QueryBody:
		f.body(n)
	case *TypeName:
		f.typeName(n)
	case *FuncParam:
		f.param(n)
	case *Target:
		f.target(n)
	case *OrderItem:
		f.orderItem(n)
	case *Option:
		f.option(n)
	case *ColumnDef:
		f.columnDef(n)
	case *Constraint:
		f.constraint(n, true)
	case *WindowSpec:
		f.windowSpec(n)
	}
}

// operand writes e, in parentheses unless it is a primary expression.
func (f *formatter) operand(e Expr) {
	if isPrimary(e) {
		f.expr(e)
		return
	}
	f.s("(")
	f.expr(e)
	f.s(")")
}

func isPrimary(e Expr) bool {
	switch e := e.(type) {
	case *Number, *String, *Bool, *Null, *Param, *ColumnRef, *FieldSelect, *Subscript, *TypedLiteral,
		*Subquery, *Array, *MapLiteral, *Row, *Case, *Special, *SQLValue, *XMLExpr:
		return true
	case *Cast:
		return e.Style != CastColons
	case *FuncCall:
		return e.Syntax != FuncOverlaps
	}
	return false
}

func (f *formatter) operator(op Operator) {
	if len(op.Schema) == 0 {
		f.s(op.Name)
		return
	}
	f.s("OPERATOR(")
	f.name(op.Schema)
	f.s(".", op.Name, ")")
}

func (f *formatter) expr(e Expr) {
	switch e := e.(type) {
	case *Number:
		f.s(e.Text)
	case *String:
		f.stringLit(e)
	case *Bool:
		f.s(map[bool]string{true: "TRUE", false: "FALSE"}[e.Value])
	case *Null:
		f.s("NULL")
	case *Default:
		f.s("DEFAULT")
	case *TypedLiteral:
		f.typedLiteral(e)
	case *Param:
		f.s("$", strconv.Itoa(e.N))
	case *ColumnRef:
		f.columnRef(e)
	case *FieldSelect, *Subscript:
		f.indirection(e)
	case *Unary:
		f.operator(e.Op)
		f.s(" ")
		f.operand(e.Expr)
	case *Binary:
		f.operand(e.Left)
		f.s(" ")
		f.operator(e.Op)
		f.s(" ")
		f.operand(e.Right)
	case *AndOr:
		word := " AND "
		if e.Or {
			word = " OR "
		}
		for i, a := range e.Args {
			f.opt(i > 0, word)
			f.operand(a)
		}
	case *Not:
		f.s("NOT ")
		f.operand(e.Expr)
	case *NamedArg:
		f.ident(e.Name)
		f.s(" => ")
		f.expr(e.Value)
	case *GroupingSet:
		f.groupingSet(e)
	case *XMLExpr:
		f.xml(e)
	case *FuncCall:
		f.funcCall(e)
	default:
		f.predicate(e)
	}
}

// predicate writes the operators that are words, and the rest of expr.
func (f *formatter) predicate(e Expr) {
	not := func(not bool) string {
		if not {
			return " NOT"
		}
		return ""
	}
	switch e := e.(type) {
	case *Is:
		f.operand(e.Expr)
		f.s(" IS", not(e.Not))
		f.opt(e.Form != "", " "+e.Form)
		f.s(" ", [...]string{"NULL", "TRUE", "FALSE", "UNKNOWN", "DOCUMENT", "NORMALIZED"}[e.Kind])
	case *IsDistinct:
		f.operand(e.Left)
		f.s(" IS", not(e.Not), " DISTINCT FROM ")
		f.operand(e.Right)
	case *In:
		f.operand(e.Expr)
		f.s(not(e.Not), " IN ")
		if e.Query != nil {
			f.subquery(e.Query)
		} else {
			f.parenExprs(e.List)
		}
	case *Between:
		f.operand(e.Expr)
		f.s(not(e.Not), " BETWEEN ")
		f.opt(e.Symmetric, "SYMMETRIC ")
		f.operand(e.Low)
		f.s(" AND ")
		f.operand(e.High)
	case *Like:
		f.operand(e.Expr)
		f.s(not(e.Not), [...]string{" LIKE ", " ILIKE ", " SIMILAR TO "}[e.Kind])
		f.operand(e.Pattern)
		if e.Escape != nil {
			f.s(" ESCAPE ")
			f.operand(e.Escape)
		}
	case *Quantified:
		f.operand(e.Expr)
		f.s(" ")
		f.operator(e.Op)
		f.s(map[bool]string{true: " ALL ", false: " ANY "}[e.All])
		if e.Query != nil {
			f.subquery(e.Query)
		} else {
			f.s("(")
			f.expr(e.Array)
			f.s(")")
		}
	case *Subquery:
		f.s([...]string{"", "EXISTS ", "ARRAY"}[e.Kind])
		f.subquery(e.Query)
	case *Array:
		f.s("ARRAY[")
		f.exprs(e.Elems)
		f.s("]")
	case *MapLiteral:
		f.s(map[bool]string{true: "multiset[", false: "map["}[e.Multiset])
		f.exprs(e.Elems)
		f.s("]")
	case *Row:
		f.opt(e.Explicit, "ROW")
		f.parenExprs(e.Elems)
	case *Case:
		f.caseExpr(e)
	case *Cast:
		f.cast(e)
	case *Collate:
		f.operand(e.Expr)
		f.s(" COLLATE ")
		f.name(e.Collation)
	case *AtTimeZone:
		f.operand(e.Expr)
		f.s(" AT TIME ZONE ")
		f.operand(e.Zone)
	case *Special:
		f.s([...]string{"COALESCE", "NULLIF", "GREATEST", "LEAST", "GROUPING"}[e.Kind])
		f.parenExprs(e.Args)
	case *SQLValue:
		f.s(strings.ToUpper(e.Kind.String()))
		f.opt(e.Precision >= 0, "("+strconv.Itoa(e.Precision)+")")
	}
}

func (f *formatter) stringLit(e *String) {
	switch e.Kind {
	case StringBit:
		f.s("B")
	case StringHex:
		f.s("X")
	case StringEscape:
		f.s("E'", strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(e.Value), "'")
		return
	case StringUnicode:
		f.s("U&'", strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(e.Value), "'")
		return
	}
	f.str(e.Value)
}

func (f *formatter) typedLiteral(e *TypedLiteral) {
	t := e.Type
	if t.System && t.Name[0].Name == "interval" {
		f.s("INTERVAL")
		if len(t.Mods) > 0 && t.Interval == "" {
			f.parenExprs(t.Mods)
		}
		f.s(" ")
		f.str(e.Value)
		f.intervalFields(t)
		return
	}
	f.typeName(t)
	f.s(" ")
	f.str(e.Value)
}

func (f *formatter) columnRef(e *ColumnRef) {
	f.name(e.Parts)
	f.opt(len(e.Parts) > 0 && e.Star, ".")
	f.opt(e.Star, "*")
}

// indirection writes x.f, x.* and x[i]. Only a bare column, a parameter or
// another indirection needs no parentheses; a column before a dot does, lest it
// be read as a table.
func (f *formatter) indirection(e Expr) {
	base := func(x Expr, dot bool) {
		switch x.(type) {
		case *ColumnRef:
			if !dot {
				f.expr(x)
				return
			}
		case *Param, *Subscript, *FieldSelect, *Subquery:
			f.expr(x)
			return
		}
		f.s("(")
		f.expr(x)
		f.s(")")
	}
	switch e := e.(type) {
	case *FieldSelect:
		base(e.Expr, true)
		f.s(".")
		if e.Star {
			f.s("*")
		} else {
			f.ident(e.Field)
		}
	case *Subscript:
		base(e.Expr, false)
		f.subscript(e.Index, e.Slice, e.Low, e.High)
	}
}

func (f *formatter) subscript(index Expr, slice bool, low, high Expr) {
	f.s("[")
	if !slice {
		f.expr(index)
	} else {
		if low != nil {
			f.expr(low)
		}
		f.s(" : ")
		if high != nil {
			f.expr(high)
		}
	}
	f.s("]")
}

func (f *formatter) caseExpr(e *Case) {
	f.s("CASE")
	if e.Operand != nil {
		f.s(" ")
		f.operand(e.Operand)
	}
	for _, w := range e.Whens {
		f.s(" WHEN ")
		f.expr(w.Cond)
		f.s(" THEN ")
		f.expr(w.Result)
	}
	if e.Else != nil {
		f.s(" ELSE ")
		f.expr(e.Else)
	}
	f.s(" END")
}

func (f *formatter) cast(e *Cast) {
	if e.Style == CastColons {
		f.operand(e.Expr)
		f.s("::")
		f.typeName(e.Type)
		return
	}
	f.s([...]string{CastCall: "CAST(", CastTreat: "TREAT(", CastTry: "TRY_CAST("}[e.Style])
	f.expr(e.Expr)
	f.s(" AS ")
	f.typeName(e.Type)
	f.s(")")
}

func (f *formatter) funcCall(e *FuncCall) {
	if e.Syntax != FuncNormal {
		f.funcSyntax(e)
		return
	}
	f.name(e.Name)
	f.s("(")
	f.opt(e.Distinct, "DISTINCT ")
	f.opt(e.Star, "*")
	for i, a := range e.Args {
		f.opt(i > 0, ", ")
		f.opt(e.Variadic && i == len(e.Args)-1, "VARIADIC ")
		f.expr(a)
	}
	f.orderBy(e.OrderBy)
	f.s(")")
	if e.WithinGroup != nil {
		f.s(" WITHIN GROUP (")
		f.sortList(e.WithinGroup)
		f.s(")")
	}
	if e.Filter != nil {
		f.s(" FILTER (WHERE ")
		f.expr(e.Filter)
		f.s(")")
	}
	if e.Over != nil {
		f.s(" OVER ")
		f.windowSpec(e.Over)
	}
}

// funcSyntax writes a call in the notation it was read in.
func (f *formatter) funcSyntax(e *FuncCall) {
	arg := func(i int) { f.expr(e.Args[i]) }
	word := func(w string, i int) {
		if i < len(e.Args) {
			f.s(" ", w, " ")
			arg(i)
		}
	}
	switch e.Syntax {
	case FuncExtract:
		f.s("EXTRACT(")
		arg(0)
		word("FROM", 1)
	case FuncOverlay:
		f.s("OVERLAY(")
		arg(0)
		word("PLACING", 1)
		word("FROM", 2)
		word("FOR", 3)
	case FuncPosition:
		f.s("POSITION(")
		f.operand(e.Args[1])
		f.s(" IN ")
		f.operand(e.Args[0])
	case FuncSubstring:
		f.s("SUBSTRING(")
		arg(0)
		word("FROM", 1)
		word("FOR", 2)
	case FuncSimilar:
		f.s("SUBSTRING(")
		arg(0)
		word("SIMILAR", 1)
		word("ESCAPE", 2)
	case FuncTrim:
		f.s("TRIM(", map[string]string{"ltrim": "LEADING", "rtrim": "TRAILING", "btrim": "BOTH"}[e.Name[0].Name])
		f.s(" FROM ")
		f.exprs(e.Args)
	case FuncCollationFor:
		f.s("COLLATION FOR (")
		arg(0)
	case FuncNormalize:
		f.s("NORMALIZE(")
		arg(0)
		if len(e.Args) > 1 {
			if form, ok := e.Args[1].(*String); ok {
				f.s(", ", form.Value)
			}
		}
	case FuncOverlaps:
		f.parenExprs(e.Args[:2])
		f.s(" OVERLAPS ")
		f.s("(")
		f.exprs(e.Args[2:])
	}
	f.s(")")
}

func (f *formatter) windowSpec(w *WindowSpec) {
	if w.Bare {
		f.ident(w.Ref)
		return
	}
	f.s("(")
	if !w.Ref.Empty() {
		f.ident(w.Ref)
	}
	if len(w.PartitionBy) > 0 {
		f.s(" PARTITION BY ")
		f.exprs(w.PartitionBy)
	}
	f.orderBy(w.OrderBy)
	if w.Frame != nil {
		f.frame(w.Frame)
	}
	f.s(")")
}

func (f *formatter) frame(fr *Frame) {
	f.s([...]string{" RANGE", " ROWS", " GROUPS"}[fr.Mode], " BETWEEN ")
	f.bound(fr.Start)
	f.s(" AND ")
	f.bound(fr.End)
	f.s([...]string{"", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES"}[fr.Exclude])
}

func (f *formatter) bound(b FrameBound) {
	if b.Offset != nil {
		f.operand(b.Offset)
		f.s(" ")
	}
	f.s([...]string{"UNBOUNDED PRECEDING", "PRECEDING", "CURRENT ROW", "FOLLOWING", "UNBOUNDED FOLLOWING"}[b.Kind])
}

func (f *formatter) groupingSet(g *GroupingSet) {
	f.s([...]string{"", "ROLLUP ", "CUBE ", "GROUPING SETS "}[g.Kind])
	f.parenExprs(g.Items)
}

func (f *formatter) xmlAttrs(as []*XMLAttr) {
	each(f, as, func(a *XMLAttr) {
		f.expr(a.Expr)
		if !a.Name.Empty() {
			f.s(" AS ")
			f.ident(a.Name)
		}
	})
}

func (f *formatter) xml(x *XMLExpr) {
	f.s(x.Func, "(")
	switch x.Func {
	case "XMLELEMENT", "XMLPI":
		f.s("NAME ")
		f.ident(x.Label)
		if len(x.Attrs) > 0 {
			f.s(", XMLATTRIBUTES(")
			f.xmlAttrs(x.Attrs)
			f.s(")")
		}
		for _, a := range x.Args {
			f.s(", ")
			f.expr(a)
		}
	case "XMLFOREST":
		f.xmlAttrs(x.Attrs)
	case "XMLEXISTS":
		f.operand(x.Args[0])
		f.s(" PASSING ")
		f.operand(x.Args[1])
	case "XMLROOT":
		f.xmlRoot(x)
	case "XMLPARSE", "XMLSERIALIZE":
		f.s(x.Words[0], " ")
		f.exprs(x.Args)
		if x.Type != nil {
			f.s(" AS ")
			f.typeName(x.Type)
		}
		for _, w := range x.Words[1:] {
			f.s(" ", w)
		}
	default:
		f.exprs(x.Args)
	}
	f.s(")")
}

func (f *formatter) xmlRoot(x *XMLExpr) {
	f.expr(x.Args[0])
	if len(x.Args) > 1 {
		f.s(", VERSION ")
		f.expr(x.Args[1])
	}
	for _, w := range x.Words {
		f.s(", ", w)
	}
}
