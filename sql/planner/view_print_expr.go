package planner

import (
	"strings"

	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// expr prints an expression.
func (w *queryPrinter) expr(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.String:
		if t, ok := w.rec.strings[x.Pos]; ok && (x.Kind == ast.StringNormal || x.Kind == ast.StringEscape) {
			return w.literal(x.Value, t.WithNotNull(false).String())
		}
		if x.Kind == ast.StringNormal || x.Kind == ast.StringEscape {
			return ast.QuoteString(x.Value) + "::text"
		}
	case *ast.Null:
		if t, ok := w.rec.strings[x.Pos]; ok {
			return "NULL::" + castTarget(t)
		}
		return "NULL::text"
	case *ast.Bool:
		return map[bool]string{true: "true", false: "false"}[x.Value]
	case *ast.Number:
		if x.Integer && len(x.Text) >= 10 && len(x.Text) < 19 {
			return "'" + x.Text + "'::bigint"
		}
	case *ast.TypedLiteral:
		return w.literal(x.Value, w.typeOf(x.Type))
	case *ast.Cast:
		return w.cast(x)
	case *ast.Unary:
		if n, ok := x.Expr.(*ast.Number); ok && x.Op.Name == "-" {
			t := "numeric"
			if n.Integer && len(n.Text) < 10 {
				t = "integer"
			} else if n.Integer && len(n.Text) < 19 {
				t = "bigint"
			}
			return "'-" + n.Text + "'::" + t
		}
		return w.outer(x.Op.Name + " " + w.argument(x, x.Expr))
	case *ast.Binary:
		l, isL := x.Left.(*ast.Row)
		r, isR := x.Right.(*ast.Row)
		if isL && isR && x.Op.Name == "=" && len(l.Elems) == len(r.Elems) && len(l.Elems) > 1 {
			all := &ast.AndOr{}
			for i := range l.Elems {
				all.Args = append(all.Args, &ast.Binary{Op: x.Op, Left: l.Elems[i], Right: r.Elems[i]})
			}
			return w.expr(all)
		}
		return w.outer(w.argument(x, x.Left) + " " + operatorText(x.Op) + " " + w.argument(x, x.Right))
	case *ast.AndOr:
		word := " AND "
		if x.Or {
			word = " OR "
		}
		var out []string
		for _, a := range x.Args {
			if b, ok := a.(*ast.Between); ok && !b.Not && !b.Symmetric && !x.Or && w.pretty {
				out = append(out, w.expr(b))
				continue
			}
			out = append(out, w.operand(x, a))
		}
		return w.outer(strings.Join(out, word))
	case *ast.Not:
		return w.outer("NOT " + w.operand(x, x.Expr))
	default:
		return w.predicate(e)
	}
	return ast.Format(e)
}

func operatorText(op ast.Operator) string {
	if len(op.Schema) == 0 || len(op.Schema) == 1 && op.Schema[0].Name == "pg_catalog" {
		return op.Name
	}
	return "OPERATOR(" + ast.FormatName(op.Schema) + "." + op.Name + ")"
}

func (w *queryPrinter) cast(x *ast.Cast) string {
	if x.Style == ast.CastTry || x.Style == ast.CastTreat {
		return ast.Format(x)
	}
	to := w.typeOf(x.Type)
	switch a := x.Expr.(type) {
	case *ast.String:
		if a.Kind == ast.StringNormal || a.Kind == ast.StringEscape {
			return w.literal(a.Value, to)
		}
	case *ast.Null:
		return "NULL::" + to
	case *ast.Cast, *ast.ColumnRef, *ast.FuncCall, *ast.Special, *ast.Case, *ast.Number, *ast.Subscript, *ast.SQLValue, *ast.Subquery, *ast.Array, *ast.TypedLiteral:
		return w.castOf(w.expr(a), to, true)
	}
	s := w.expr(x.Expr)
	if !w.pretty && strings.HasPrefix(s, "(") {
		return s + "::" + to
	}
	return "(" + s + ")::" + to
}

// predicate prints the operators that are words, and what has its own syntax.
func (w *queryPrinter) predicate(e ast.Expr) string {
	not := func(n bool) string {
		if n {
			return "NOT "
		}
		return ""
	}
	switch x := e.(type) {
	case *ast.Is:
		s := w.operand(x, x.Expr) + " IS " + not(x.Not)
		if x.Form != "" {
			s += x.Form + " "
		}
		return w.outer(s + [...]string{"NULL", "TRUE", "FALSE", "UNKNOWN", "DOCUMENT", "NORMALIZED"}[x.Kind])
	case *ast.IsDistinct:
		s := w.outer(w.argument(x, x.Left) + " IS DISTINCT FROM " + w.argument(x, x.Right))
		if x.Not {
			if w.pretty {
				s = "(" + s + ")"
			}
			return w.outer("NOT " + s)
		}
		return s
	case *ast.In:
		if x.Query != nil {
			s := "(" + w.argument(x, x.Expr) + " IN (" + w.query(x.Query, nil, w.level) + "))"
			if x.Not {
				return w.outer("NOT " + s)
			}
			return s
		}
		if len(x.List) == 1 {
			op := map[bool]string{false: "=", true: "<>"}[x.Not]
			return w.expr(&ast.Binary{Op: ast.Operator{Name: op}, Left: x.Expr, Right: x.List[0], Loc: x.Loc})
		}
		op := map[bool]string{false: " = ANY (", true: " <> ALL ("}[x.Not]
		return w.outer(w.argument(x, x.Expr) + op + "ARRAY[" + w.list(x, x.List) + "])")
	case *ast.Between:
		return w.between(x)
	case *ast.Like:
		return w.like(x)
	case *ast.Quantified:
		q := map[bool]string{true: " ALL ", false: " ANY "}[x.All]
		if x.Query != nil {
			return "(" + w.argument(x, x.Expr) + " " + operatorText(x.Op) + q + "(" + w.query(x.Query, nil, w.level) + "))"
		}
		return w.outer(w.argument(x, x.Expr) + " " + operatorText(x.Op) + q + "(" + w.expr(x.Array) + ")")
	case *ast.Subquery:
		s := "(" + w.query(x.Query, nil, w.level) + ")"
		switch x.Kind {
		case ast.SubqueryExists:
			return "(EXISTS " + s + ")"
		case ast.SubqueryArray:
			return "ARRAY" + s
		}
		return s
	case *ast.Array:
		return "ARRAY[" + w.list(nil, x.Elems) + "]"
	case *ast.Row:
		return "ROW(" + w.list(nil, x.Elems) + ")"
	case *ast.Case:
		return w.caseExpr(x)
	case *ast.Special:
		return [...]string{"COALESCE", "NULLIF", "GREATEST", "LEAST", "GROUPING"}[x.Kind] + "(" + w.list(nil, x.Args) + ")"
	case *ast.Collate:
		s := w.operand(x, x.Expr) + " COLLATE " + ast.FormatName(x.Collation)
		return w.outer(s)
	case *ast.AtTimeZone:
		return "(" + w.argument(x, x.Expr) + " AT TIME ZONE " + w.argument(x, x.Zone) + ")"
	case *ast.FuncCall:
		return w.call(x)
	case *ast.NamedArg:
		return x.Name.String() + " => " + w.expr(x.Value)
	case *ast.Subscript:
		if c, ok := x.Expr.(*ast.ColumnRef); ok && !x.Slice {
			return ast.Format(c) + "[" + w.expr(x.Index) + "]"
		}
	case *ast.FieldSelect:
		if !x.Star {
			return "(" + w.expr(x.Expr) + ")." + x.Field.String()
		}
	}
	return ast.Format(e)
}

func (w *queryPrinter) between(x *ast.Between) string {
	cmp := func(op string, b ast.Expr) ast.Expr {
		return &ast.Binary{Op: ast.Operator{Name: op}, Left: x.Expr, Right: b}
	}
	if x.Symmetric {
		a := &ast.AndOr{Args: []ast.Expr{cmp(">=", x.Low), cmp("<=", x.High)}}
		b := &ast.AndOr{Args: []ast.Expr{cmp(">=", x.High), cmp("<=", x.Low)}}
		if x.Not {
			a = &ast.AndOr{Or: true, Args: []ast.Expr{cmp("<", x.Low), cmp(">", x.High)}}
			b = &ast.AndOr{Or: true, Args: []ast.Expr{cmp("<", x.High), cmp(">", x.Low)}}
		}
		return w.expr(&ast.AndOr{Or: !x.Not, Args: []ast.Expr{a, b}})
	}
	if x.Not {
		return w.expr(&ast.AndOr{Or: true, Args: []ast.Expr{cmp("<", x.Low), cmp(">", x.High)}})
	}
	return w.expr(&ast.AndOr{Args: []ast.Expr{cmp(">=", x.Low), cmp("<=", x.High)}})
}

func (w *queryPrinter) like(x *ast.Like) string {
	pattern := x.Pattern
	if x.Escape != nil || x.Kind == ast.LikeSimilar {
		name := "like_escape"
		args := []ast.Expr{x.Pattern}
		if x.Kind == ast.LikeSimilar {
			name = "similar_to_escape"
		}
		if x.Escape != nil {
			args = append(args, x.Escape)
		}
		pattern = &ast.FuncCall{Name: ast.Name{{Name: name}}, Args: args}
	}
	op := [...]string{"~~", "~~*", "~"}[x.Kind]
	if x.Not {
		op = "!" + op
	}
	return w.outer(w.argument(x, x.Expr) + " " + op + " " + w.argument(x, pattern))
}

func (w *queryPrinter) caseExpr(x *ast.Case) string {
	c := &queryPrinter{viewPrinter: w.viewPrinter, level: w.level}
	c.keyword("CASE", 0, stepField, 0)
	if x.Operand != nil {
		c.s(" ", c.expr(x.Operand))
	}
	for _, i := range x.Whens {
		c.keyword("WHEN ", 0, 0, 0)
		c.s(c.expr(i.Cond), " THEN ", c.expr(i.Result))
	}
	els := "NULL::text"
	if x.Else != nil {
		els = c.expr(x.Else)
	}
	c.keyword("ELSE ", 0, 0, 0)
	c.s(els)
	c.keyword("END", -stepField, 0, 0)
	return string(c.b)
}

func (w *queryPrinter) call(x *ast.FuncCall) string {
	arg := func(i int) string { return w.argument(nil, x.Args[i]) }
	word := func(s string, i int) string {
		if i < len(x.Args) {
			return " " + s + " " + arg(i)
		}
		return ""
	}
	switch x.Syntax {
	case ast.FuncExtract:
		if f, ok := x.Args[0].(*ast.String); ok {
			return "EXTRACT(" + f.Value + word("FROM", 1) + ")"
		}
	case ast.FuncOverlay:
		return "OVERLAY(" + arg(0) + word("PLACING", 1) + word("FROM", 2) + word("FOR", 3) + ")"
	case ast.FuncPosition:
		return "POSITION((" + arg(1) + ") IN (" + arg(0) + "))"
	case ast.FuncSubstring:
		return "SUBSTRING(" + arg(0) + word("FROM", 1) + word("FOR", 2) + ")"
	case ast.FuncTrim:
		s := "TRIM(" + map[string]string{"ltrim": "LEADING", "rtrim": "TRAILING", "btrim": "BOTH"}[x.Name.Last()]
		if len(x.Args) > 1 {
			s += " " + arg(1)
		}
		return s + " FROM " + arg(0) + ")"
	case ast.FuncNormal:
	default:
		return ast.Format(x)
	}
	var b strings.Builder
	b.WriteString(ast.FormatName(x.Name) + "(")
	if x.Distinct {
		b.WriteString("DISTINCT ")
	}
	if x.Star {
		b.WriteString("*")
	}
	for i := range x.Args {
		if i > 0 {
			b.WriteString(", ")
		}
		if x.Variadic && i == len(x.Args)-1 {
			b.WriteString("VARIADIC ")
		}
		b.WriteString(arg(i))
	}
	if len(x.OrderBy) > 0 {
		b.WriteString(" " + w.sortList(x.OrderBy))
	}
	b.WriteString(")")
	if x.WithinGroup != nil {
		b.WriteString(" WITHIN GROUP (" + w.sortList(x.WithinGroup) + ")")
	}
	if x.Filter != nil {
		b.WriteString(" FILTER (WHERE " + w.expr(x.Filter) + ")")
	}
	if x.Over != nil {
		b.WriteString(" OVER " + w.window(x.Over))
	}
	return b.String()
}
