package planner

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/parser"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// ViewQuery is the query of a view whose names were found.
type ViewQuery struct {
	// Query is SQL that means the same whatever the search path is and whatever
	// columns are added to the tables.
	Query   string
	Columns []Column
	// Uses are the relations that it reads, those inside other views left out, with
	// the names of the columns that it names.
	Uses []ViewUse
}

// ViewUse is a relation that a query reads.
type ViewUse struct {
	Rel     catalog.Relation
	Columns []string
}

// PlanView binds the query of CREATE VIEW, whose text is text.
func PlanView(ctx context.Context, q *ast.Query, text string, o Options) (*ViewQuery, error) {
	// The statement is bound as it was written, for errors with its positions; what
	// is written down comes from a copy, for the statement may be run again.
	if _, _, err := recordView(ctx, q, text, o); err != nil {
		return nil, err
	}
	c, ctext, err := copyQuery(q)
	if err != nil {
		return nil, err
	}
	rec, out, err := recordView(ctx, c, ctext, o)
	if err != nil {
		return nil, err
	}
	rec.rewrite(c)
	out.Query = ast.Format(c)
	again, err := parseView(out.Query)
	if err == nil {
		_, check, cerr := recordView(ctx, again, out.Query, o)
		if err = cerr; err == nil && !slices.EqualFunc(out.Columns, check.Columns, sameColumn) {
			err = pgerr.New(pgerr.FeatureNotSupported, "columns change")
		}
	}
	if err != nil {
		return nil, pgerr.Wrap(err, pgerr.FeatureNotSupported, "this query cannot be kept as a view")
	}
	return out, nil
}

func sameColumn(a, b Column) bool { return a.Name == b.Name && sameType(a.Type, b.Type) }

func copyQuery(q *ast.Query) (*ast.Query, string, error) {
	text := ast.Format(q)
	c, err := parseView(text)
	return c, text, err
}

func parseView(text string) (*ast.Query, error) {
	stmts, err := parser.Parse(text)
	if err != nil {
		return nil, err
	}
	q, ok := firstQuery(stmts)
	if !ok {
		return nil, pgerr.New(pgerr.InvalidObjectDefinition, "a view is not a query")
	}
	return q, nil
}

// recordView binds a query and remembers what its names mean.
func recordView(ctx context.Context, q *ast.Query, text string, o Options) (*recorder, *ViewQuery, error) {
	p := newPlanner(ctx, text, o)
	p.rec = newRecorder(p)
	b, err := p.bindTop(q)
	if err != nil {
		return nil, nil, err
	}
	if err := p.checkParams(); err != nil {
		return nil, nil, err
	}
	out := &ViewQuery{}
	for _, c := range b.cols {
		out.Columns = append(out.Columns, Column{Name: c.name, Type: c.t})
	}
	for _, rel := range p.rec.order {
		u := ViewUse{Rel: rel}
		for _, c := range rel.Columns() {
			if p.rec.uses[rel][c.Name] {
				u.Columns = append(u.Columns, c.Name)
			}
		}
		out.Uses = append(out.Uses, u)
	}
	return p.rec, out, nil
}

// recorder remembers what the names of a query mean while it is bound.
type recorder struct {
	p      *planner
	tables map[*ast.TableName]*item
	refs   map[*ast.ColumnRef]recordedRef
	stars  map[*ast.Target][]*ast.Target
	// same are the items of ORDER BY, GROUP BY and DISTINCT ON that name a target.
	same    map[ast.Expr]ast.Expr
	natural map[*ast.Join][]ast.Ident
	joins   map[*ast.Join][2][]scopeCol // of USING: the columns on both sides
	strings map[ast.Pos]types.Type      // literals without a type that were given one
	casts   map[ast.Pos]types.Type      // columns and numbers that are cast where they stand
	order   []catalog.Relation
	uses    map[catalog.Relation]map[string]bool
}

// recordedRef is a column that a reference means.
type recordedRef struct {
	parts ast.Name
	it    *item // whose column it is; nil = none that can be named
	typ   types.Type
}

func newRecorder(p *planner) *recorder {
	return &recorder{
		p: p, tables: map[*ast.TableName]*item{}, refs: map[*ast.ColumnRef]recordedRef{}, stars: map[*ast.Target][]*ast.Target{},
		same: map[ast.Expr]ast.Expr{}, natural: map[*ast.Join][]ast.Ident{}, joins: map[*ast.Join][2][]scopeCol{},
		strings: map[ast.Pos]types.Type{}, casts: map[ast.Pos]types.Type{}, uses: map[catalog.Relation]map[string]bool{},
	}
}

// recording returns the recorder, nil while views inside the query are bound.
func (p *planner) recording() *recorder {
	if p.rec == nil || p.views > 0 {
		return nil
	}
	return p.rec
}

// table remembers the relation that a name in FROM means.
func (r *recorder) table(t *ast.TableName, it *item) {
	if r == nil {
		return
	}
	r.tables[t] = it
	if r.uses[it.rel] == nil {
		r.uses[it.rel] = map[string]bool{}
		r.order = append(r.order, it.rel)
	}
	if t.Alias != nil && len(t.Alias.Columns) > 0 {
		// The names are given by position: none before them may go.
		for _, c := range it.rel.Columns() {
			r.uses[it.rel][c.Name] = true
		}
	}
}

// use notes the stored columns that an expression reads.
func (r *recorder) use(e plan.Expr) {
	plan.Walk(e, func(x plan.Expr) bool {
		if c, ok := x.(*plan.Col); ok {
			if i := r.p.colInfo(c.ID); i != nil && i.relID != nil && i.att >= 0 && i.att < len(i.relID.Columns()) {
				if u := r.uses[i.relID]; u != nil {
					u[i.relID.Columns()[i.att].Name] = true
				}
			}
		}
		return true
	})
}

// name is how a column is named from a scope whatever columns come later: by its
// range variable where that can be named.
func (r *recorder) name(s *scope, e plan.Expr, bare string) recordedRef {
	out := recordedRef{parts: ast.Name{{Name: bare, Quoted: true}}}
	c, ok := e.(*plan.Col)
	if !ok {
		return out
	}
	i := r.p.colInfo(c.ID)
	if i == nil || i.item == nil || i.item.name == "" || !i.item.relVisible {
		return out
	}
	column, n := "", 0
	for _, x := range i.item.cols {
		if y, ok := x.e.(*plan.Col); ok && y.ID == c.ID {
			column = x.name
		}
	}
	for _, x := range i.item.cols {
		if x.name == column {
			n++
		}
	}
	if n != 1 {
		return out
	}
	return r.of(s, i.item, column, out)
}

// of names a column of a range variable, or as other says when something else has
// the variable's name.
func (r *recorder) of(s *scope, it *item, column string, other recordedRef) recordedRef {
	parts := ast.Name{{Name: it.name, Quoted: true}, {Name: column, Quoted: true}}
	found, err := r.p.findItem(s, "", it.name, -1)
	if found == it {
		return recordedRef{parts: parts, it: it}
	}
	if err != nil && !it.alias && it.schema != "" {
		return recordedRef{parts: append(ast.Name{{Name: it.schema, Quoted: true}}, parts...), it: it}
	}
	return other
}

// ref remembers what an unqualified column reference means.
func (r *recorder) ref(s *scope, c *ast.ColumnRef, e plan.Expr) {
	if r == nil || e == nil {
		return
	}
	x := r.name(s, e, c.Parts[0].Name)
	x.typ = e.Type()
	r.refs[c] = x
	r.use(e)
}

// member remembers what t.a means; rest are the fields behind it.
func (r *recorder) member(s *scope, c *ast.ColumnRef, it *item, col *scopeCol, rest []ast.Ident) {
	if r == nil {
		return
	}
	written := c.Parts[:len(c.Parts)-len(rest)]
	parts := append(slices.Clone(written[:len(written)-1]), ast.Ident{Name: col.name, Quoted: true})
	x := r.of(s, it, col.name, recordedRef{parts: parts, it: it})
	if len(rest) == 0 {
		x.typ = col.e.Type()
	}
	x.parts = append(slices.Clone(x.parts), rest...)
	r.refs[c] = x
	r.use(col.e)
}

// row remembers that a whole row is read.
func (r *recorder) row(it *item) {
	if r == nil {
		return
	}
	for _, c := range it.cols {
		r.use(c.e)
	}
}

// star remembers the columns that a star stands for, and returns how each is
// written.
func (r *recorder) star(s *scope, t *ast.Target, items []starItem) []ast.Expr {
	if r == nil {
		return make([]ast.Expr, len(items))
	}
	out := make([]ast.Expr, len(items))
	var list []*ast.Target
	for i, it := range items {
		n := r.name(s, it.e, it.name)
		ref := &ast.ColumnRef{Parts: n.parts, Loc: ast.At(-1)}
		r.refs[ref] = n
		r.use(it.e)
		x := &ast.Target{Expr: ref, Loc: t.Loc}
		if f, ok := t.Expr.(*ast.FieldSelect); ok {
			x.Expr = &ast.FieldSelect{Expr: f.Expr, Field: ast.Ident{Name: it.name, Quoted: true}, Loc: f.Loc}
		}
		if figureName(x.Expr) != it.name {
			x.Alias = ast.Ident{Name: it.name, Quoted: true}
		}
		out[i] = x.Expr
		list = append(list, x)
	}
	r.stars[t] = list
	return out
}

// target remembers that an item of ORDER BY, GROUP BY or DISTINCT ON names a target
// of the select list.
func (r *recorder) target(e ast.Expr, targets []target, found int) {
	if r == nil {
		return
	}
	t, at := targets[found], 1
	for _, x := range targets[:found] {
		if !x.junk {
			at++
		}
	}
	number := &ast.Number{Text: strconv.Itoa(at), Integer: true, Loc: ast.At(-1)}
	switch t.src.(type) {
	case nil, *ast.Number, *ast.String, *ast.Bool, *ast.Null, *ast.TypedLiteral, *ast.Cast, *ast.Unary:
		r.same[e] = number
		return
	}
	r.same[e] = t.src
	ast.Walk(t.src, func(n ast.Node) bool {
		if _, sub := n.(*ast.Query); sub {
			r.same[e] = number
		}
		return true
	})
	plan.Walk(t.e, func(x plan.Expr) bool {
		if c, ok := x.(*plan.Call); ok && c.F != nil && c.F.Volatility == function.Volatile {
			r.same[e] = number
		}
		return true
	})
}

// whole notes that a column is read whose fields are named.
func (r *recorder) whole(e plan.Expr) {
	if r != nil {
		r.use(e)
	}
}

// literal remembers the type that a literal without one was given.
func (r *recorder) literal(pos ast.Pos, t types.Type) {
	if r != nil && pos >= 0 {
		r.strings[pos] = t
	}
}

// cast remembers that a column or a constant is cast implicitly.
func (r *recorder) cast(e plan.Expr, t types.Type) {
	if r == nil {
		return
	}
	switch e.(type) {
	case *plan.Col, *plan.Const:
		if pos, ok := r.p.pos[e]; ok && pos >= 0 {
			r.casts[pos] = t
		}
	}
}

// join remembers the columns that USING or NATURAL joins.
func (r *recorder) join(j *ast.Join, using []ast.Ident, l, rr []scopeCol) {
	if r == nil {
		return
	}
	if j.Natural {
		r.natural[j] = using
	}
	r.joins[j] = [2][]scopeCol{l, rr}
	for _, c := range append(slices.Clone(l), rr...) {
		r.use(c.e)
	}
}

// rewrite writes what was recorded into the query.
func (r *recorder) rewrite(q *ast.Query) {
	swap := func(es []ast.Expr) {
		for i, e := range es {
			if x := r.same[e]; x != nil {
				es[i] = x
			}
		}
	}
	ast.Walk(q, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Select:
			var out []*ast.Target
			for _, t := range n.Targets {
				if list, ok := r.stars[t]; ok {
					out = append(out, list...)
					continue
				}
				if name := figureName(t.Expr); t.Alias.Empty() {
					c, ref := t.Expr.(*ast.ColumnRef)
					if !ref || r.refs[c].parts != nil && r.refs[c].parts.Last() != name {
						t.Alias = ast.Ident{Name: name, Quoted: true}
					}
				}
				out = append(out, t)
			}
			n.Targets = out
			swap(n.GroupBy)
			swap(n.DistinctOn)
		case *ast.GroupingSet:
			swap(n.Items)
		case *ast.Query:
			for _, o := range n.OrderBy {
				if x := r.same[o.Expr]; x != nil {
					o.Expr = x
				}
			}
		case *ast.TableName:
			if it := r.tables[n]; it != nil {
				renameTable(n, it, it.rel.Schema(), it.rel.Name())
			}
		case *ast.Join:
			if using, ok := r.natural[n]; ok {
				if n.Natural = false; len(using) > 0 {
					n.Using = using
				} else {
					n.On = &ast.Bool{Value: true}
				}
			}
		case *ast.ColumnRef:
			if x, ok := r.refs[n]; ok {
				n.Parts = x.parts
			}
		}
		return true
	})
}

// renameTable makes a name in FROM another one, known inside the query as before.
func renameTable(t *ast.TableName, it *item, schema, name string) {
	if written := t.Name.Last(); strings.Contains(written, "$") {
		_, suffix, _ := strings.Cut(written, "$")
		base, _, _ := strings.Cut(name, "$")
		name = base + "$" + suffix
	}
	t.Name = ast.Name{{Name: schema, Quoted: true}, {Name: name, Quoted: true}}
	switch {
	case it.name == name:
	case t.Alias == nil:
		t.Alias = &ast.Alias{Name: ast.Ident{Name: it.name, Quoted: true}}
	case t.Alias.Name.Empty():
		t.Alias.Name = ast.Ident{Name: it.name, Quoted: true}
	}
}

// ViewChange is another name of a relation, or of one of its columns.
type ViewChange struct {
	Schema, Name       string
	NewSchema, NewName string
	Column, NewColumn  string // "" = the relation's own name
}

// ChangeView rewrites the query of a view for a change of a name that it uses. The
// change must not have been made yet.
func ChangeView(ctx context.Context, query string, ch ViewChange, o Options) (string, error) {
	q, err := parseView(query)
	if err != nil {
		return "", err
	}
	rec, _, err := recordView(ctx, q, query, o)
	if err != nil {
		return "", err
	}
	is := func(it *item) bool {
		return it != nil && it.rel != nil && it.rel.Schema() == ch.Schema && it.rel.Name() == ch.Name
	}
	if ch.Column == "" {
		ast.Walk(q, func(n ast.Node) bool {
			if t, ok := n.(*ast.TableName); ok && is(rec.tables[t]) {
				renameTable(t, rec.tables[t], ch.NewSchema, ch.NewName)
			}
			return true
		})
		return ast.Format(q), nil
	}
	positional := map[*item]bool{} // columns have names that the query gives
	ast.Walk(q, func(n ast.Node) bool {
		if t, ok := n.(*ast.TableName); ok && t.Alias != nil && len(t.Alias.Columns) > 0 {
			positional[rec.tables[t]] = true
		}
		return true
	})
	for j, sides := range rec.joins {
		for _, c := range append(slices.Clone(sides[0]), sides[1]...) {
			col, ok := c.e.(*plan.Col)
			if !ok || len(j.Using) == 0 && !j.Natural {
				continue
			}
			if i := rec.p.colInfo(col.ID); i != nil && is(i.item) && c.name == ch.Column && !positional[i.item] {
				return "", pgerr.New(pgerr.FeatureNotSupported, "column %q cannot be renamed: a view joins by its name", ch.Column)
			}
		}
	}
	renamed := map[*ast.ColumnRef]bool{}
	for c, x := range rec.refs {
		if is(x.it) && !positional[x.it] && len(c.Parts) >= 2 {
			at := len(x.parts) - 1
			for i := range x.parts {
				if x.parts[i].Name == x.it.name && i+1 < len(x.parts) {
					at = i + 1
					break
				}
			}
			if at < len(c.Parts) && c.Parts[at].Name == ch.Column {
				renamed[c] = true
				parts := slices.Clone(c.Parts)
				parts[at] = ast.Ident{Name: ch.NewColumn, Quoted: true}
				c.Parts = parts
			}
		}
	}
	ast.Walk(q, func(n ast.Node) bool {
		if t, ok := n.(*ast.Target); ok && t.Alias.Empty() {
			if c, ok := t.Expr.(*ast.ColumnRef); ok && renamed[c] && c.Parts.Last() == ch.NewColumn {
				t.Alias = ast.Ident{Name: ch.Column, Quoted: true}
			}
		}
		return true
	})
	return ast.Format(q), nil
}
