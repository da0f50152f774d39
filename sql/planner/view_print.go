package planner

import (
	"context"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// PrintView prints the query of a view as pg_get_viewdef does, as far as that can be
// told from the text: its layout, the parentheses (pretty leaves those out that need
// not be), the types of literals. cols are the view's column names; visible reports
// whether a relation is found without its schema. A query that cannot be bound any
// more is printed without types.
func PrintView(ctx context.Context, query string, cols []string, pretty bool, visible func(schema, name string) bool, o Options) string {
	q, err := parseView(query)
	if err != nil {
		return query
	}
	rec, _, err := recordView(ctx, q, query, o)
	if err != nil {
		rec = newRecorder(newPlanner(ctx, query, o))
	}
	p := &viewPrinter{rec: rec, pretty: pretty, visible: visible}
	return p.query(q, cols, 0) + ";"
}

// Steps of indentation, PostgreSQL's.
const (
	stepQuery = 8
	stepJoin  = 4
	stepField = 4
)

// viewPrinter prints one view.
type viewPrinter struct {
	rec     *recorder
	pretty  bool
	visible func(schema, name string) bool
}

// queryPrinter prints one query of it; subqueries have their own.
type queryPrinter struct {
	*viewPrinter
	b     []byte
	level int
}

func (p *viewPrinter) query(q *ast.Query, cols []string, level int) string {
	w := &queryPrinter{viewPrinter: p, level: level}
	w.whole(q, cols)
	return string(w.b)
}

func (w *queryPrinter) s(parts ...string) {
	for _, x := range parts {
		w.b = append(w.b, x...)
	}
}

// keyword starts a line with a clause.
func (w *queryPrinter) keyword(s string, before, after, plus int) {
	for len(w.b) > 0 && w.b[len(w.b)-1] == ' ' {
		w.b = w.b[:len(w.b)-1]
	}
	w.level += before
	w.s("\n", strings.Repeat(" ", max(w.level, 0)+plus), s)
	w.level = max(w.level+after, 0)
}

func (w *queryPrinter) clause(s string, plus int) { w.keyword(s, -stepQuery, stepQuery, plus) }

func (w *queryPrinter) whole(q *ast.Query, cols []string) {
	w.with(q.With)
	_, set := q.Body.(*ast.SetOp)
	w.body(q.Body, cols)
	for i, o := range q.OrderBy {
		if i == 0 {
			w.clause(" ORDER BY ", 1)
		} else {
			w.s(", ")
		}
		w.sortItem(o, set)
	}
	if q.Offset != nil {
		w.clause(" OFFSET ", 0)
		w.s(w.expr(q.Offset))
	}
	if q.Limit != nil {
		if q.WithTies {
			w.clause(" FETCH FIRST ", 0)
			w.s(w.operand(q, q.Limit), " ROWS WITH TIES")
		} else {
			w.clause(" LIMIT ", 0)
			w.s(w.expr(q.Limit))
		}
	}
	for _, l := range q.Locks {
		w.clause(" FOR "+lockNames[l.Strength][len("FOR "):], 0)
		for i, n := range l.Of {
			w.s(map[bool]string{true: " OF ", false: ", "}[i == 0], ast.FormatName(n))
		}
		w.s([...]string{"", " NOWAIT", " SKIP LOCKED"}[l.Wait])
	}
}

func (w *queryPrinter) with(with *ast.With) {
	if with == nil {
		return
	}
	w.level += stepQuery
	w.s(" WITH ")
	if with.Recursive {
		w.s("RECURSIVE ")
	}
	for i, c := range with.CTEs {
		if i > 0 {
			w.s(", ")
		}
		w.s(c.Name.String())
		if len(c.Columns) > 0 {
			w.s("(", identList(c.Columns), ")")
		}
		w.s(" AS ", [...]string{"", "MATERIALIZED ", "NOT MATERIALIZED "}[c.Materialize], "(")
		w.keyword("", 0, 0, 0)
		if q, ok := c.Stmt.(*ast.Query); ok {
			w.s(w.query(q, nil, w.level))
		}
		w.keyword("", 0, 0, 0)
		w.s(")")
		if c.Search != nil || c.Cycle != nil {
			// What follows the query is written as it is kept.
			bare := *c
			bare.Stmt = &ast.Query{Body: &ast.Select{}}
			one := ast.Format(&ast.Query{With: &ast.With{CTEs: []*ast.CTE{&bare}}, Body: &ast.Select{}})
			one = strings.TrimSuffix(strings.TrimSpace(one), "SELECT")
			if i := strings.Index(one, "(SELECT)"); i >= 0 {
				w.s(strings.TrimRight(one[i+len("(SELECT)"):], " "))
			}
		}
	}
	w.level -= stepQuery
	w.keyword("", 0, 0, 0)
}

func (w *queryPrinter) body(b ast.QueryBody, cols []string) {
	switch b := b.(type) {
	case *ast.Select:
		w.selectBody(b, cols)
	case *ast.Values:
		w.level += stepQuery
		w.s(" VALUES ")
		for i, row := range b.Rows {
			if i > 0 {
				w.s(", ")
			}
			var es []string
			for _, e := range row {
				es = append(es, w.expr(e))
			}
			w.s("(", strings.Join(es, ","), ")")
		}
	case *ast.Query:
		if b.With == nil && b.OrderBy == nil && b.Limit == nil && b.Offset == nil && b.Locks == nil {
			w.body(b.Body, cols)
			return
		}
		w.s("(", w.query(b, cols, w.level), ")")
	case *ast.SetOp:
		w.setOp(b, cols)
	}
}

// leaf prints an input of a set operation.
func (w *queryPrinter) leaf(b ast.QueryBody, cols []string) {
	switch x := b.(type) {
	case *ast.SetOp:
		w.setOp(x, cols)
	case *ast.Query:
		if inner, ok := x.Body.(*ast.SetOp); ok && x.With == nil && x.OrderBy == nil && x.Limit == nil && x.Offset == nil {
			w.setOp(inner, cols)
			return
		}
		w.body(x, cols)
	default:
		w.s(w.query(&ast.Query{Body: b}, cols, w.level))
	}
}

func asSetOp(b ast.QueryBody) *ast.SetOp {
	switch x := b.(type) {
	case *ast.SetOp:
		return x
	case *ast.Query:
		if x.With == nil && x.OrderBy == nil && x.Limit == nil && x.Offset == nil {
			return asSetOp(x.Body)
		}
	}
	return nil
}

func (w *queryPrinter) setOp(op *ast.SetOp, cols []string) {
	sub := 0
	if l := asSetOp(op.Left); l != nil && (l.Kind != op.Kind || l.All != op.All) {
		w.s("(")
		sub = stepQuery
		w.keyword("", sub, 0, 0)
	}
	w.leaf(op.Left, cols)
	if sub > 0 {
		w.keyword(") ", -sub, 0, 0)
	} else {
		w.keyword("", 0, 0, 0)
	}
	w.s([...]string{"UNION ", "INTERSECT ", "EXCEPT "}[op.Kind])
	if op.All {
		w.s("ALL ")
	}
	sub = 0
	nested := asSetOp(op.Right) != nil
	if nested {
		w.s("(")
		sub = stepQuery
	}
	w.keyword("", sub, 0, 0)
	w.leaf(op.Right, cols)
	w.level -= sub
	if nested {
		w.keyword(")", 0, 0, 0)
	}
}

func (w *queryPrinter) selectBody(s *ast.Select, cols []string) {
	w.level += stepQuery
	w.s(" SELECT")
	if s.Distinct {
		w.s(" DISTINCT")
		for i, e := range s.DistinctOn {
			w.s(map[bool]string{true: " ON (", false: ", "}[i == 0], w.keyItem(e))
		}
		if len(s.DistinctOn) > 0 {
			w.s(")")
		}
	}
	multiline := false
	for i, t := range s.Targets {
		if i == 0 {
			w.s(" ")
		} else {
			w.s(", ")
		}
		name := t.Alias.Name
		if name == "" {
			name = figureName(t.Expr)
		}
		if i < len(cols) {
			name = cols[i]
		}
		field := w.expr(t.Expr)
		own := "?column?"
		if c, ok := t.Expr.(*ast.ColumnRef); ok {
			own = c.Parts.Last()
		}
		if own != name {
			field += " AS " + ast.QuoteIdent(name)
		}
		switch {
		case strings.HasPrefix(field, "\n"):
			w.b = []byte(strings.TrimRight(string(w.b), " "))
		case i > 0:
			w.clause("", stepField)
		}
		multiline = strings.Contains(strings.TrimPrefix(field, "\n"), "\n")
		w.s(field)
	}
	_ = multiline
	for i, r := range s.From {
		item := ""
		if i == 0 {
			w.clause(" FROM ", 2)
			item = w.ref(r)
		} else {
			w.s(", ")
			item = w.ref(r)
			w.clause("", stepField)
		}
		w.s(item)
	}
	if s.Where != nil {
		w.clause(" WHERE ", 1)
		w.s(w.expr(s.Where))
	}
	if len(s.GroupBy) > 0 {
		w.clause(" GROUP BY ", 1)
		if s.GroupDistinct {
			w.s("DISTINCT ")
		}
		for i, e := range s.GroupBy {
			if i > 0 {
				w.s(", ")
			}
			w.s(w.groupItem(e))
		}
	}
	if s.Having != nil {
		w.clause(" HAVING ", 0)
		w.s(w.expr(s.Having))
	}
	for i, d := range s.Windows {
		if i == 0 {
			w.clause(" WINDOW ", 1)
		} else {
			w.s(", ")
		}
		w.s(d.Name.String(), " AS ", w.window(d.Spec))
	}
}

func identList(ids []ast.Ident) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = id.String()
	}
	return strings.Join(out, ", ")
}

func (w *queryPrinter) groupItem(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.GroupingSet:
		var items []string
		for _, i := range x.Items {
			s := w.groupItem(i)
			if x.Kind == ast.GroupingSets {
				switch i.(type) {
				case *ast.GroupingSet, *ast.Row:
				default:
					s = "(" + s + ")"
				}
			}
			items = append(items, s)
		}
		return [...]string{"", "ROLLUP", "CUBE", "GROUPING SETS "}[x.Kind] + "(" + strings.Join(items, ", ") + ")"
	case *ast.Row:
		var items []string
		for _, i := range x.Elems {
			items = append(items, w.groupItem(i))
		}
		return "(" + strings.Join(items, ", ") + ")"
	}
	return w.keyItem(e)
}

// keyItem prints an item of ORDER BY, GROUP BY or DISTINCT ON.
func (w *queryPrinter) keyItem(e ast.Expr) string {
	s := w.expr(e)
	switch x := e.(type) {
	case *ast.ColumnRef, *ast.Number, *ast.String:
		return s
	case *ast.FuncCall:
		if x.Syntax == ast.FuncNormal || !w.pretty {
			return "(" + s + ")"
		}
	}
	if w.pretty {
		return "(" + s + ")"
	}
	return s
}

func (w *queryPrinter) sortItem(o *ast.OrderItem, set bool) {
	if set {
		w.s(w.expr(o.Expr))
	} else {
		w.s(w.keyItem(o.Expr))
	}
	switch {
	case o.Using != nil:
		w.s(" USING ", o.Using.Name)
	case o.Desc:
		w.s(" DESC")
		if o.Nulls == ast.NullsLast {
			w.s(" NULLS LAST")
		}
		return
	}
	if o.Nulls == ast.NullsFirst {
		w.s(" NULLS FIRST")
	}
}

func (w *queryPrinter) sortList(os []*ast.OrderItem) string {
	x := &queryPrinter{viewPrinter: w.viewPrinter, level: w.level}
	for i, o := range os {
		if i > 0 {
			x.s(", ")
		}
		x.sortItem(o, false)
	}
	return "ORDER BY " + string(x.b)
}

func (w *queryPrinter) window(spec *ast.WindowSpec) string {
	if spec.Bare {
		return spec.Ref.String()
	}
	var parts []string
	if !spec.Ref.Empty() {
		parts = append(parts, spec.Ref.String())
	}
	if len(spec.PartitionBy) > 0 {
		var es []string
		for _, e := range spec.PartitionBy {
			es = append(es, w.keyItem(e))
		}
		parts = append(parts, "PARTITION BY "+strings.Join(es, ", "))
	}
	if len(spec.OrderBy) > 0 {
		parts = append(parts, w.sortList(spec.OrderBy))
	}
	if f := spec.Frame; f != nil {
		bound := func(b ast.FrameBound) string {
			s := [...]string{"UNBOUNDED PRECEDING", "PRECEDING", "CURRENT ROW", "FOLLOWING", "UNBOUNDED FOLLOWING"}[b.Kind]
			if b.Offset != nil {
				s = w.expr(b.Offset) + " " + s
			}
			return s
		}
		parts = append(parts, [...]string{"RANGE", "ROWS", "GROUPS"}[f.Mode]+" BETWEEN "+bound(f.Start)+" AND "+bound(f.End)+
			[...]string{"", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES"}[f.Exclude])
	}
	return "(" + strings.Join(parts, " ") + ")"
}

// ref prints an item of FROM.
func (w *queryPrinter) ref(r ast.TableRef) string {
	switch r := r.(type) {
	case *ast.TableName:
		name := ast.FormatName(r.Name)
		if len(r.Name) == 2 && w.visible(r.Name[0].Name, r.Name[1].Name) {
			name = r.Name[1].String()
		}
		t := *r
		t.Alias, t.Name = nil, ast.Name{{Name: "t"}}
		name += strings.TrimPrefix(ast.Format(&t), "t") // hints and AS OF
		if r.Alias != nil && (r.Alias.Name.Name != r.Name.Last() || len(r.Alias.Columns) > 0) {
			name += aliasText(r.Alias)
		}
		return name
	case *ast.SubqueryRef:
		s := "(" + w.query(r.Query, nil, w.level) + ")" + aliasText(r.Alias)
		if v, ok := r.Query.Body.(*ast.Values); ok && r.Alias != nil && len(r.Alias.Columns) == 0 && len(v.Rows) > 0 {
			s += "(" + valuesColumns(len(v.Rows[0])) + ")"
		}
		if r.Lateral {
			return "LATERAL " + s
		}
		return s
	case *ast.FuncRef:
		return w.funcRef(r)
	case *ast.Join:
		return w.join(r)
	}
	return ast.Format(r)
}

func valuesColumns(n int) string {
	var out []string
	for i := range n {
		out = append(out, "column"+itoa(i+1))
	}
	return strings.Join(out, ", ")
}

func itoa(i int) string {
	if i < 10 {
		return string(rune('0' + i))
	}
	return itoa(i/10) + string(rune('0'+i%10))
}

func aliasText(a *ast.Alias) string {
	if a == nil {
		return ""
	}
	if len(a.ColDefs) > 0 {
		t := ast.Format(&ast.TableName{Name: ast.Name{{Name: "t"}}, Alias: a})
		return strings.TrimPrefix(t, "t")
	}
	s := " " + a.Name.String()
	if len(a.Columns) > 0 {
		s += "(" + identList(a.Columns) + ")"
	}
	return s
}

func (w *queryPrinter) funcRef(r *ast.FuncRef) string {
	if r.RowsFrom || len(r.Funcs) != 1 || r.Funcs[0].ColDefs != nil {
		return ast.Format(r)
	}
	s := w.expr(r.Funcs[0].Call)
	if r.Ordinality {
		s += " WITH ORDINALITY"
	}
	name := figureName(r.Funcs[0].Call)
	if r.Alias != nil && !r.Alias.Name.Empty() {
		name = r.Alias.Name.Name
	}
	switch {
	case r.Alias != nil && (len(r.Alias.Columns) > 0 || r.Alias.ColDefs != nil):
		s += aliasText(r.Alias)
	case r.Ordinality:
		s += " " + ast.QuoteIdent(name)
	default:
		s += " " + ast.QuoteIdent(name) + "(" + ast.QuoteIdent(name) + ")"
	}
	if r.Lateral {
		return "LATERAL " + s
	}
	return s
}

func (w *queryPrinter) join(j *ast.Join) string {
	x := &queryPrinter{viewPrinter: w.viewPrinter, level: w.level}
	wrap := !w.pretty || j.Alias != nil
	if wrap {
		x.s("(")
	}
	x.s(x.ref(j.Left))
	word := [...]string{" JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " FULL JOIN ", " CROSS JOIN "}[j.Kind]
	x.clause(word, stepJoin)
	right := x.ref(j.Right)
	if rj, ok := j.Right.(*ast.Join); ok && w.pretty && rj.Alias == nil {
		right = "(" + right + ")"
	}
	x.s(right)
	if j.On != nil {
		on := x.expr(j.On)
		if w.pretty {
			x.s(" ON ", on)
		} else {
			x.s(" ON (", on, ")")
		}
	}
	if len(j.Using) > 0 {
		x.s(" USING (", identList(j.Using), ")")
		if !j.UsingAlias.Empty() {
			x.s(" AS ", j.UsingAlias.String())
		}
	}
	if wrap {
		x.s(")")
	}
	if j.Alias != nil {
		x.s(aliasText(j.Alias))
	}
	return string(x.b)
}

// outer puts an operator expression in parentheses where PostgreSQL always does.
func (w *queryPrinter) outer(s string) string {
	if w.pretty {
		return s
	}
	return "(" + s + ")"
}

// operand prints an argument of an operator of parent.
func (w *queryPrinter) operand(parent ast.Node, e ast.Expr) string {
	s := w.expr(e)
	if w.pretty && !simpleIn(parent, e) {
		return "(" + s + ")"
	}
	return s
}

// simpleIn reports whether an expression needs no parentheses inside parent.
func simpleIn(parent ast.Node, e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.AndOr:
		switch p := parent.(type) {
		case *ast.AndOr:
			return !x.Or || p.Or
		}
		return false
	case *ast.Not:
		_, ok := parent.(*ast.AndOr)
		return ok
	case *ast.Binary:
		switch p := parent.(type) {
		case *ast.AndOr, *ast.Not:
			return true
		case *ast.Binary:
			a, b := rank(p.Op.Name), rank(x.Op.Name)
			return a > 0 && b > 0 && (b > a || b == a && p.Left == e)
		}
		return false
	case *ast.Unary:
		if _, num := x.Expr.(*ast.Number); num {
			return true
		}
		switch parent.(type) {
		case *ast.AndOr, *ast.Not:
			return true
		}
		return false
	case *ast.Quantified:
		return x.Query != nil
	case *ast.In:
		if x.Query == nil && len(x.List) > 1 {
			return false
		}
		switch parent.(type) {
		case *ast.AndOr, *ast.Not:
			return true
		}
		return x.Query != nil && !x.Not
	case *ast.Is, *ast.IsDistinct, *ast.Like, *ast.Between:
		switch p := parent.(type) {
		case *ast.AndOr:
			if b, ok := e.(*ast.Between); ok {
				return !b.Not && !p.Or || !b.Not
			}
			return true
		case *ast.Not:
			_, between := e.(*ast.Between)
			return !between
		}
		return false
	}
	return true
}

// rank orders the operators whose precedence the printer relies on; 0 = none of them.
func rank(op string) int {
	switch op {
	case "+", "-":
		return 1
	case "*", "/", "%":
		return 2
	}
	return 0
}

func (w *queryPrinter) typeOf(t *ast.TypeName) string {
	if x, err := w.rec.p.resolveType(t); err == nil {
		return x.WithNotNull(false).String()
	}
	return ast.Format(t)
}

// argument prints an argument of an operator or function, with the cast that stands
// in between.
func (w *queryPrinter) argument(parent ast.Node, e ast.Expr) string {
	text := func(t types.Type) (string, bool) {
		if t.Kind == types.Varchar {
			return "text", true
		}
		return "", false
	}
	switch x := e.(type) {
	case *ast.ColumnRef:
		to, ok := "", false
		if t, cast := w.rec.casts[x.Pos]; cast {
			to, ok = castTarget(t), true
		} else {
			to, ok = text(w.rec.refs[x].typ)
		}
		if ok {
			return w.castOf(ast.Format(x), to, true)
		}
	case *ast.Number:
		if t, ok := w.rec.casts[x.Pos]; ok && x.Integer {
			return w.castOf(x.Text, castTarget(t), true)
		}
	case *ast.String:
		if to, ok := text(w.rec.strings[x.Pos]); ok && x.Kind == ast.StringNormal {
			return ast.QuoteString(x.Value) + "::" + to
		}
	}
	return w.operand(parent, e)
}

// castTarget names the type of an implicit cast, which has no modifiers.
func castTarget(t types.Type) string {
	if t.Kind == types.Numeric {
		return "numeric"
	}
	t.Mod, t.NotNull = 0, false
	return t.String()
}

// castOf writes a cast.
func (w *queryPrinter) castOf(s, to string, simple bool) string {
	if w.pretty && simple {
		return s + "::" + to
	}
	return "(" + s + ")::" + to
}

func (w *queryPrinter) literal(value string, to string) string {
	switch to {
	case "integer", "boolean":
		if v := strings.TrimSpace(value); to == "integer" && plainDigits(v) {
			return v
		} else if to == "boolean" && (v == "true" || v == "false") {
			return v
		}
	}
	return ast.QuoteString(value) + "::" + to
}

func plainDigits(s string) bool { return s != "" && len(s) < 10 && strings.Trim(s, "0123456789") == "" }

func (w *queryPrinter) list(parent ast.Node, es []ast.Expr) string {
	out := make([]string, len(es))
	for i, e := range es {
		if out[i] = w.expr(e); parent != nil {
			if s := w.argument(nil, e); !strings.HasPrefix(s, "(") || strings.HasPrefix(out[i], "(") || s != "("+out[i]+")" {
				out[i] = s
			}
		}
	}
	return strings.Join(out, ", ")
}
