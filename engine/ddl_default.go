package engine

import (
	"context"
	"errors"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/planner"
)

// A DEFAULT has two places. A constant whose text Paimon's own cast reads as the
// same value goes into the field's defaultValue, where other engines' writers
// find it. All else is SQL in the table option pg-default.<column>.

// columnDefault is a DEFAULT that was checked. text is Paimon's defaultValue when
// constant, else an SQL expression.
type columnDefault struct {
	text     string
	constant bool
	// expr is the default as it was written, for filling rows that are there.
	expr ast.Expr
}

// apply puts the default of a column into its field and the table's options.
func (d *columnDefault) apply(f *types.Field, options map[string]string) {
	f.Default, f.HasDefault = "", false
	delete(options, catalog.DefaultOption(f.Name))
	switch {
	case d == nil:
	case d.constant:
		f.Default, f.HasDefault = d.text, true
	default:
		options[catalog.DefaultOption(f.Name)] = d.text
	}
}

// planOptions are what expressions of definitions are bound with.
func (s *Session) planOptions() planner.Options {
	d := s.set.use()
	return planner.Options{
		Resolver: s.newResolver(), Env: s.env(), FixedParams: true, FreshReads: d.freshReads, Disabled: d.disabled, MaxDepth: d.maxDepth,
	}
}

// bindDefault checks the DEFAULT of a column; nil means that it is NULL.
func bindDefault(ctx context.Context, text, column string, t columnType, e ast.Expr, o planner.Options) (*columnDefault, error) {
	if err := plainExpr(text, e, "DEFAULT expression", true); err != nil {
		return nil, err
	}
	// A value that is too long is an error of each INSERT.
	want := t.sql
	if want.Kind == types.Varchar || want.Kind == types.BpChar || want.Kind == types.Numeric {
		want = types.Of(want.Kind)
	}
	if _, err := planner.PlanExpr(ctx, e, text, want, o); err != nil {
		var pe *pgerr.Error
		if errors.As(err, &pe) {
			if pe.Code == pgerr.DatatypeMismatch {
				if x, xerr := planner.PlanExpr(ctx, e, text, types.Type{}, o); xerr == nil {
					return nil, pgerr.New(pgerr.DatatypeMismatch, "column %q is of type %s but default expression is of type %s", column,
						t.sql.WithNotNull(false), x.Type().WithNotNull(false)).WithHint("You will need to rewrite or cast the expression.")
				}
			}
			return nil, inPlace(pe, "DEFAULT expressions")
		}
		return nil, err
	}
	lit := literalOf(e)
	if lit == nil {
		return &columnDefault{text: parenthesised(e), expr: e}, nil
	}
	if lit.null {
		return nil, nil //nolint:nilnil // no default
	}
	if text, ok := constantText(ctx, text, t, lit, e, o); ok {
		return &columnDefault{text: text, constant: true, expr: e}, nil
	}
	// A literal whose value depends on the moment or on settings ('now', a time
	// stamp without a zone) means what it means now.
	if v, vt, err := planner.EvalExpr(ctx, e, text, t.sql, o); err == nil && v != nil && !vt.OnWireAsJSON() && vt.Kind != types.Bytea {
		s := string(pgtext.AppendDatum(nil, vt, v, &pgtext.Style{DateStyle: "ISO", DateOrder: "MDY", IntervalStyle: "postgres"}))
		return &columnDefault{text: ast.QuoteString(s) + "::" + castName(t.sql), expr: e}, nil
	}
	if lit.kind == literalText && lit.bare {
		return &columnDefault{text: ast.QuoteString(lit.text) + "::" + castName(t.sql), expr: e}, nil
	}
	return &columnDefault{text: parenthesised(e), expr: e}, nil
}

// defaultOf is bindDefault where sequences are named: the default keeps to them
// whatever they are called later.
func (s *Session) defaultOf(ctx context.Context, text, column string, t columnType, e ast.Expr, o planner.Options) (*columnDefault, error) {
	d, err := bindDefault(ctx, text, column, t, e, o)
	if err != nil || d == nil || d.constant {
		return d, err
	}
	x, ok, err := s.byOID(ctx, e)
	if err != nil || !ok {
		return d, err
	}
	return &columnDefault{text: parenthesised(x), expr: x}, nil
}

// castName names a type without its modifiers, for text that is SQL.
func castName(t types.Type) string {
	t.Mod = 0
	if t.Kind == types.BpChar {
		return "bpchar"
	}
	return sqlTypeName(t.WithNotNull(false))
}

// parenthesised writes an expression as pg_get_expr does: operators in
// parentheses.
func parenthesised(e ast.Expr) string {
	s := ast.Format(e)
	switch e.(type) {
	case *ast.Binary, *ast.AndOr, *ast.Not, *ast.Unary, *ast.Is, *ast.IsDistinct, *ast.In, *ast.Between, *ast.Like, *ast.Quantified, *ast.Collate,
		*ast.AtTimeZone:
		return "(" + s + ")"
	}
	return s
}

type literalKind uint8

const (
	literalText literalKind = iota
	literalNumber
	literalBool
)

// literal is a constant as it was written.
type literal struct {
	kind literalKind
	text string
	null bool
	bare bool // no type was named
}

// literalOf returns the literal that e is, casts included; nil when e is
// something else.
func literalOf(e ast.Expr) *literal {
	switch x := e.(type) {
	case *ast.Null:
		return &literal{null: true}
	case *ast.Bool:
		if x.Value {
			return &literal{kind: literalBool, text: "true", bare: true}
		}
		return &literal{kind: literalBool, text: "false", bare: true}
	case *ast.Number:
		return &literal{kind: literalNumber, text: x.Text, bare: true}
	case *ast.String:
		if x.Kind == ast.StringBit || x.Kind == ast.StringHex {
			return nil
		}
		return &literal{kind: literalText, text: x.Value, bare: true}
	case *ast.TypedLiteral:
		return &literal{kind: literalText, text: x.Value}
	case *ast.Unary:
		if n, ok := x.Expr.(*ast.Number); ok && len(x.Op.Schema) == 0 && (x.Op.Name == "-" || x.Op.Name == "+") {
			return &literal{kind: literalNumber, text: strings.TrimPrefix(x.Op.Name, "+") + n.Text, bare: true}
		}
	case *ast.Cast:
		if l := literalOf(x.Expr); l != nil && x.Style != ast.CastTry {
			c := *l
			c.bare = false
			return &c
		}
	}
	return nil
}

// constantText is a literal as Paimon keeps it; false when Paimon's cast from
// text could give another value.
func constantText(ctx context.Context, text string, t columnType, lit *literal, e ast.Expr, o planner.Options) (string, bool) {
	switch t.sql.Kind {
	case types.Text, types.Varchar, types.BpChar, types.Name, types.JSON:
		// Java takes single quotes around a default away.
		if n := len(lit.text); n > 1 && lit.text[0] == '\'' && lit.text[n-1] == '\'' {
			return "", false
		}
		if lit.bare && lit.kind == literalText {
			return lit.text, true
		}
	case types.Int2, types.Int4, types.Int8, types.Numeric, types.Float4, types.Float8, types.Bool, types.Date, types.Time, types.Timestamp,
		types.UUID, types.JSONB, types.Interval, types.TimeTZ:
	default:
		return "", false
	}
	v, vt, err := planner.EvalExpr(ctx, e, text, t.sql, o)
	if err != nil || v == nil {
		return "", false // out of range: an error of each INSERT, as in PostgreSQL
	}
	switch t.sql.Kind {
	case types.Bool:
		if v == types.Datum(true) {
			return "true", true
		}
		return "false", true
	case types.Float4, types.Float8, types.Numeric:
		if d, ok := v.(*numeric.Dec); ok && d.Form != numeric.Finite {
			return "", false
		}
		if lit.bare && lit.kind == literalNumber && !strings.ContainsAny(lit.text, "xXoObB_") {
			return lit.text, true
		}
	case types.Date, types.Timestamp:
		if !plainTime(t.sql.Kind, v) {
			return "", false
		}
	}
	return string(pgtext.AppendDatum(nil, vt, v, &pgtext.Style{DateStyle: "ISO", DateOrder: "MDY", IntervalStyle: "postgres"})), true
}

// plainTime reports whether a date or timestamp is within years 1 to 9999, which
// every engine spells alike.
func plainTime(k types.Kind, v types.Datum) bool {
	n, ok := v.(int64)
	if !ok {
		return false
	}
	if k == types.Date {
		return n >= -719162 && n <= 2932896
	}
	const day = 86400 * 1000000
	return n >= -719162*day && n < 2932897*day
}

// plainExpr refuses what no DEFAULT or CHECK may hold, as PostgreSQL words it.
func plainExpr(text string, e ast.Expr, place string, noColumns bool) error {
	var err error
	ast.Walk(e, func(n ast.Node) bool {
		if err != nil {
			return false
		}
		switch x := n.(type) {
		case *ast.Subquery:
			err = errAt(text, x.Pos, pgerr.FeatureNotSupported, "cannot use subquery in %s", place)
		case *ast.Query:
			err = errAt(text, x.Position(), pgerr.FeatureNotSupported, "cannot use subquery in %s", place)
		case *ast.ColumnRef:
			if noColumns {
				err = errAt(text, x.Pos, pgerr.FeatureNotSupported, "cannot use column reference in %s", place)
			}
		}
		return err == nil
	})
	return err
}

// inPlace words an error for the place where the expression stands.
func inPlace(e *pgerr.Error, place string) *pgerr.Error {
	c := *e
	for _, what := range []string{"in this context", "in VALUES"} {
		if strings.HasSuffix(c.Message, what) {
			c.Message = strings.TrimSuffix(c.Message, what) + "in " + place
		}
	}
	return &c
}
