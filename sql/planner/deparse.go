package planner

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// deparser prints bound expressions as SQL, as EXPLAIN shows them. names are
// the input columns.
type deparser struct {
	names []string
	env   function.Env
	depth int
}

const maxDeparseDepth = 200

func (d *deparser) list(es []plan.Expr) string {
	out := make([]string, len(es))
	for i, e := range es {
		out[i] = d.expr(e)
	}
	return strings.Join(out, ", ")
}

func (d *deparser) expr(e plan.Expr) string {
	d.depth++
	defer func() { d.depth-- }()
	if d.depth > maxDeparseDepth {
		return "..."
	}
	switch x := e.(type) {
	case nil:
		return ""
	case *plan.Slot:
		if x.Index < len(d.names) {
			return d.names[x.Index]
		}
		return "#" + strconv.Itoa(x.Index)
	case *plan.Col:
		return x.Name
	case *plan.Const:
		return d.constant(x)
	case *plan.Param:
		return "$" + strconv.Itoa(x.Index+1)
	case *plan.Call:
		return d.call(x)
	case *plan.Cast:
		if x.F == nil && sameType(x.Arg.Type(), x.T) {
			return d.expr(x.Arg)
		}
		if x.T.Kind == types.Numeric && x.T.Mod == 0 && x.Arg.Type().Kind == types.Numeric {
			return d.expr(x.Arg) // another form of the same value
		}
		return "(" + d.expr(x.Arg) + ")::" + x.T.String()
	case *plan.And:
		return d.join(x.Args, " AND ")
	case *plan.Or:
		return d.join(x.Args, " OR ")
	case *plan.Not:
		return "(NOT " + d.expr(x.Arg) + ")"
	case *plan.IsNull:
		return "(" + d.expr(x.Arg) + " IS " + not(x.Not) + "NULL)"
	case *plan.IsBool:
		return "(" + d.expr(x.Arg) + " IS " + not(x.Not) + [...]string{"TRUE", "FALSE", "UNKNOWN"}[x.Test] + ")"
	case *plan.Distinct:
		return "(" + d.expr(x.Left) + " IS " + not(x.Not) + "DISTINCT FROM " + d.expr(x.Right) + ")"
	case *plan.InList:
		op := " = ANY ("
		if x.Not {
			op = " <> ALL ("
		}
		return "(" + d.expr(x.Arg) + op + d.arrayOf(x.Items, x.Arg.Type()) + "))"
	case *plan.AnyAll:
		q := " ANY ("
		if x.All {
			q = " ALL ("
		}
		return "(" + d.expr(x.Left) + " " + x.Op.Name + q + d.expr(x.Array) + "))"
	case *plan.Case:
		var sb strings.Builder
		sb.WriteString("CASE")
		for _, w := range x.Whens {
			sb.WriteString(" WHEN " + d.expr(w.Cond) + " THEN " + d.expr(w.Result))
		}
		if x.Else != nil {
			sb.WriteString(" ELSE " + d.expr(x.Else))
		}
		return sb.String() + " END"
	case *plan.Coalesce:
		return "COALESCE(" + d.list(x.Args) + ")"
	case *plan.MinMax:
		if x.Greatest {
			return "GREATEST(" + d.list(x.Args) + ")"
		}
		return "LEAST(" + d.list(x.Args) + ")"
	case *plan.NullIf:
		return "NULLIF(" + d.expr(x.A) + ", " + d.expr(x.B) + ")"
	case *plan.MakeArray:
		return "ARRAY[" + d.list(x.Elems) + "]"
	case *plan.MakeRow:
		return "ROW(" + d.list(x.Elems) + ")"
	case *plan.Field:
		name := strconv.Itoa(x.Index + 1)
		if t := x.Arg.Type(); x.Index < len(t.Fields) {
			name = ast.QuoteIdent(t.Fields[x.Index].Name)
		}
		return "(" + d.expr(x.Arg) + ")." + name
	case *plan.Subscript:
		if x.Slice {
			return d.expr(x.Arg) + "[" + d.expr(x.Low) + ":" + d.expr(x.High) + "]"
		}
		return d.expr(x.Arg) + "[" + d.expr(x.Index) + "]"
	case *plan.RowCompare:
		return "(ROW(" + d.list(x.Left) + ") " + x.Op + " ROW(" + d.list(x.Right) + "))"
	}
	return fmt.Sprintf("%T", e)
}

func not(n bool) string {
	if n {
		return "NOT "
	}
	return ""
}

func (d *deparser) join(es []plan.Expr, op string) string {
	out := make([]string, len(es))
	for i, e := range es {
		out[i] = d.expr(e)
	}
	return "(" + strings.Join(out, op) + ")"
}

func (d *deparser) call(x *plan.Call) string {
	if x.F == nil {
		return "?"
	}
	if isOperator(x.F) {
		switch len(x.Args) {
		case 1:
			return "(" + x.F.Name + " " + d.expr(x.Args[0]) + ")"
		case 2:
			return "(" + d.expr(x.Args[0]) + " " + x.F.Name + " " + d.expr(x.Args[1]) + ")"
		}
	}
	return x.F.Name + "(" + d.list(x.Args) + ")"
}

// arrayOf prints a list of constants as an array literal.
func (d *deparser) arrayOf(items []plan.Expr, t types.Type) string {
	var sb strings.Builder
	sb.WriteString("'{")
	for i, it := range items {
		k, ok := it.(*plan.Const)
		if !ok {
			return "ARRAY[" + d.list(items) + "]"
		}
		if i > 0 {
			sb.WriteByte(',')
		}
		if i >= 100 {
			fmt.Fprintf(&sb, "... %d more", len(items)-i)
			break
		}
		if k.Value == nil {
			sb.WriteString("NULL")
			continue
		}
		s := d.text(k)
		if strings.ContainsAny(s, " ,{}\"\\") || s == "" {
			s = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
		}
		sb.WriteString(strings.ReplaceAll(s, "'", "''"))
	}
	sb.WriteString("}'::" + plainType(t).PlainName() + "[]")
	return sb.String()
}

func (d *deparser) constant(x *plan.Const) string {
	if x.Value == nil {
		return "NULL::" + x.T.String()
	}
	switch v := x.Value.(type) {
	case bool:
		return strconv.FormatBool(v)
	case *numeric.Dec:
		if s := v.String(); v.Form == numeric.Finite {
			if v.Sign() < 0 {
				return "'" + s + "'::numeric"
			}
			return s
		}
	case int64:
		if x.T.Kind == types.Int4 && v >= 0 {
			return strconv.FormatInt(v, 10)
		}
	}
	s := d.text(x)
	if len(s) > 200 {
		s = s[:200] + "..."
	}
	t := x.T
	t.Mod = 0
	name := t.String()
	if t.Kind == types.Unknown {
		name = "unknown"
	}
	return ast.QuoteString(s) + "::" + name
}

// text is a value as PostgreSQL writes it: by the cast to text.
func (d *deparser) text(x *plan.Const) string {
	if s, ok := x.Value.(string); ok {
		return s
	}
	if o, _, ok := function.Cast(x.T, types.Of(types.Text)); ok && o != nil && o.Kernel != nil {
		ev := evaluator{ctx: context.Background(), env: d.env}
		if v, err := ev.callDatums(o, []types.Datum{x.Value}, []types.Type{x.T}, types.Of(types.Text)); err == nil {
			if s, ok := v.(string); ok {
				return s
			}
		}
	}
	return fmt.Sprint(x.Value)
}
