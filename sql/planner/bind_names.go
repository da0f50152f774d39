package planner

import (
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// figureName is FigureColname.
func figureName(e ast.Expr) string {
	n, _ := figure(e)
	if n == "" {
		return "?column?"
	}
	return n
}

// figure returns a name and how good it is: 2 from the expression itself, 1
// from a type, 0 none.
func figure(e ast.Expr) (string, int) {
	switch e := e.(type) {
	case *ast.ColumnRef:
		if len(e.Parts) > 0 && !e.Star {
			return e.Parts.Last(), 2
		}
	case *ast.FieldSelect:
		if !e.Star {
			return e.Field.Name, 2
		}
		return figure(e.Expr)
	case *ast.Subscript:
		return figure(e.Expr)
	case *ast.FuncCall:
		return e.Name.Last(), 2
	case *ast.Collate:
		return figure(e.Expr)
	case *ast.AtTimeZone:
		return "timezone", 2
	case *ast.Cast:
		if n, s := figure(e.Expr); s > 1 {
			return n, s
		}
		return typeFigure(e.Type), 1
	case *ast.TypedLiteral:
		return typeFigure(e.Type), 1
	case *ast.Case:
		if e.Else != nil {
			if n, s := figure(e.Else); s > 1 {
				return n, s
			}
		}
		return "case", 1
	case *ast.Array:
		return "array", 2
	case *ast.Row:
		return "row", 2
	case *ast.MapLiteral:
		if e.Multiset {
			return "multiset", 2
		}
		return "map", 2
	case *ast.Special:
		return [...]string{"coalesce", "nullif", "greatest", "least", "grouping"}[e.Kind], 2
	case *ast.SQLValue:
		return e.Kind.String(), 2
	case *ast.Subquery:
		switch e.Kind {
		case ast.SubqueryExists:
			return "exists", 2
		case ast.SubqueryArray:
			return "array", 2
		}
		// The subquery's column has a name already, be it "?column?".
		body := e.Query.Body
		for {
			op, ok := body.(*ast.SetOp)
			if !ok {
				break
			}
			body = op.Left
		}
		switch b := body.(type) {
		case *ast.Select:
			if len(b.Targets) > 0 {
				if n := b.Targets[0].Alias.Name; n != "" {
					return n, 2
				}
				return figureName(b.Targets[0].Expr), 2
			}
		case *ast.Values:
			return columnName(0), 2
		}
	case *ast.Like:
		if e.Kind == ast.LikeSimilar && false {
			return "similar_to_escape", 2
		}
	case *ast.Is:
		if e.Kind == ast.IsNormalized {
			return "is_normalized", 2
		}
	}
	return "", 0
}

func typeFigure(t *ast.TypeName) string {
	return t.Name.Last()
}

func columnName(i int) string {
	const digits = "0123456789"
	i++
	var buf []byte
	for i > 0 {
		buf = append([]byte{digits[i%10]}, buf...)
		i /= 10
	}
	return "column" + string(buf)
}
