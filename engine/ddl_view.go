package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/objects"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/planner"
)

// A view is kept as SQL text in which every relation has its schema, every column
// its range variable and every star is written out. What it reads is kept beside
// the text, so that DROP and ALTER need not parse every view. When a relation or a
// column gets another name, the texts of the views on it follow (planner.ChangeView).

// viewColumns are the columns of a view that is made.
func viewColumns(names []ast.Ident, cols []planner.Column) ([]catalog.ViewColumn, error) {
	if len(names) > len(cols) {
		return nil, pgerr.New(pgerr.SyntaxError, "CREATE VIEW specifies more column names than columns")
	}
	if len(cols) == 0 {
		return nil, pgerr.New(pgerr.InvalidTableDefinition, "view must have at least one column")
	}
	seen := map[string]bool{}
	var out []catalog.ViewColumn
	for i, c := range cols {
		name := c.Name
		if i < len(names) {
			name = names[i].Name
		}
		if seen[name] {
			return nil, pgerr.New(pgerr.DuplicateColumn, "column %q specified more than once", name)
		}
		seen[name] = true
		t := c.Type.WithNotNull(false)
		switch t.Kind {
		case types.Record:
			return nil, pgerr.New(pgerr.InvalidTableDefinition, "column %q has pseudo-type record", name)
		case types.Unknown:
			t = types.Of(types.Text)
		}
		out = append(out, catalog.ViewColumn{Name: name, Type: catalog.StoredType{Type: t}})
	}
	return out, nil
}

// viewOptions checks WITH (...) of a view.
func viewOptions(text string, opts []*ast.Option, into map[string]string) error {
	for _, o := range opts {
		switch o.Name {
		case "security_barrier", "security_invoker":
			v := "true"
			if o.Value != nil {
				b, ok := parseBool(optionText(o))
				if !ok {
					return errAt(text, o.Pos, pgerr.InvalidParameterValue, "invalid value for boolean option %q: %s", o.Name, optionText(o))
				}
				if !b {
					v = "false"
				}
			}
			into[o.Name] = v
		case "check_option":
			return errAt(text, o.Pos, pgerr.FeatureNotSupported, "WITH CHECK OPTION is not supported")
		default:
			return pgerr.New(pgerr.InvalidParameterValue, "unrecognized parameter %q", o.Name)
		}
	}
	return nil
}

// viewQuery is the query of CREATE VIEW; RECURSIVE is short for WITH RECURSIVE.
func viewQuery(text string, st *ast.CreateView) (*ast.Query, error) {
	switch {
	case st.Check != "":
		return nil, errAt(text, st.Pos, pgerr.FeatureNotSupported, "WITH CHECK OPTION is not supported")
	case st.Persistence == ast.Unlogged:
		return nil, pgerr.New(pgerr.SyntaxError, "views cannot be unlogged because they do not have storage")
	}
	if into := findInto(st.Query.Body); into {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "views must not contain SELECT INTO")
	}
	if st.Query.With != nil {
		for _, c := range st.Query.With.CTEs {
			if _, ok := c.Stmt.(*ast.Query); !ok {
				return nil, pgerr.New(pgerr.FeatureNotSupported, "views must not contain data-modifying statements in WITH")
			}
		}
	}
	if !st.Recursive {
		return st.Query, nil
	}
	name := st.Name[len(st.Name)-1]
	sel := &ast.Select{From: []ast.TableRef{&ast.TableName{Name: ast.Name{name}}}}
	for _, c := range st.Columns {
		sel.Targets = append(sel.Targets, &ast.Target{Expr: &ast.ColumnRef{Parts: ast.Name{c}}})
	}
	return &ast.Query{
		With: &ast.With{Recursive: true, CTEs: []*ast.CTE{{Name: name, Columns: st.Columns, Stmt: st.Query}}}, Body: sel,
	}, nil
}

func findInto(b ast.QueryBody) bool {
	switch x := b.(type) {
	case *ast.Select:
		return x.Into != nil
	case *ast.SetOp:
		return findInto(x.Left)
	case *ast.Query:
		return findInto(x.Body)
	}
	return false
}

// runCreateView is CREATE VIEW.
func (s *Session) runCreateView(ctx context.Context, text string, st *ast.CreateView, out ResultSink) error {
	q, err := viewQuery(text, st)
	if err != nil {
		return err
	}
	def := catalog.ViewDef{Options: map[string]string{}, Created: time.Now().UnixMicro()}
	if err := viewOptions(text, st.Options, def.Options); err != nil {
		return err
	}
	vq, err := planner.PlanView(ctx, q, text, s.planOptions())
	if err != nil {
		return err
	}
	if def.Columns, err = viewColumns(st.Columns, vq.Columns); err != nil {
		return err
	}
	def.Query, def.Uses = vq.Query, viewUses(vq.Uses)
	if st.Comment != nil {
		def.Comment = *st.Comment
	}
	persistence := st.Persistence
	if persistence != ast.Temporary && s.usesTemp(def.Uses) {
		s.notice(out, "NOTICE", pgerr.SuccessfulCompletion, "view %q will be a temporary view", st.Name.Last())
		persistence = ast.Temporary
	}
	schemaName, name, _, err := s.makes(ctx, text, st.Name, persistence)
	if err != nil {
		return err
	}
	var oid uint32
	old, err := s.catalog().Resolve(ctx, schemaName, name, catalog.ResolveOptions{})
	switch {
	case missing(err) || err == nil && old.Name() != name:
	case err != nil:
		return err
	case st.OrReplace:
		v, ok := old.(*catalog.ViewRelation)
		if !ok {
			return pgerr.New(pgerr.WrongObjectType, "%q is not a view", name)
		}
		if err := s.mustOwn(ctx, v); err != nil {
			return err
		}
		if err := replaceView(v.Definition(), &def); err != nil {
			return err
		}
		oid = v.OID()
	case st.IfNotExists:
		s.notice(out, "NOTICE", pgerr.DuplicateTable, "relation %q already exists, skipping", name)
		return nil
	default:
		return pgerr.New(pgerr.DuplicateTable, "relation %q already exists", name)
	}
	if err := s.putView(ctx, schemaName, name, oid, &def); err != nil || oid != 0 {
		return err
	}
	return s.born(ctx, roles.RelationKey(schemaName, name), roles.Relation)
}

// replaceView checks that a view may stand in place of another, and takes over what
// stays.
func replaceView(old, def *catalog.ViewDef) error {
	if len(def.Columns) < len(old.Columns) {
		return pgerr.New(pgerr.InvalidTableDefinition, "cannot drop columns from view")
	}
	for i, o := range old.Columns {
		n := &def.Columns[i]
		if n.Name != o.Name {
			return pgerr.New(pgerr.InvalidTableDefinition, "cannot change name of view column %q to %q", o.Name, n.Name).
				WithHint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.")
		}
		if a, b := o.Type.WithNotNull(false).String(), n.Type.WithNotNull(false).String(); a != b {
			return pgerr.New(pgerr.InvalidTableDefinition, "cannot change data type of view column %q from %s to %s", o.Name, a, b)
		}
		n.Comment, n.Default = o.Comment, o.Default
	}
	def.Created = old.Created
	if def.Comment == "" {
		def.Comment = old.Comment
	}
	return nil
}

// viewUses is what is kept of the relations that a query reads.
func viewUses(uses []planner.ViewUse) []catalog.ViewUse {
	var out []catalog.ViewUse
	for _, u := range uses {
		if systemSchema(u.Rel.Schema()) {
			continue
		}
		name, _, _ := strings.Cut(u.Rel.Name(), "$")
		i := slices.IndexFunc(out, func(x catalog.ViewUse) bool { return x.Schema == u.Rel.Schema() && x.Name == name })
		if i < 0 {
			out = append(out, catalog.ViewUse{Schema: u.Rel.Schema(), Name: name})
			i = len(out) - 1
		}
		for _, c := range u.Columns {
			if !slices.Contains(out[i].Columns, c) {
				out[i].Columns = append(out[i].Columns, c)
			}
		}
	}
	return out
}

func (s *Session) usesTemp(uses []catalog.ViewUse) bool {
	return s.temp != nil && slices.ContainsFunc(uses, func(u catalog.ViewUse) bool { return u.Schema == s.temp.schema })
}

// objectEditor is the editor of a schema's views and sequences.
func (s *Session) objectEditor(ctx context.Context, schemaName string) (catalog.ObjectEditor, error) {
	ed, err := s.editorOf(ctx, schemaName)
	if err != nil {
		return nil, err
	}
	oe, ok := ed.(catalog.ObjectEditor)
	if !ok {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "this catalog cannot hold views or sequences")
	}
	return oe, nil
}

func (s *Session) putView(ctx context.Context, schemaName, name string, oid uint32, def *catalog.ViewDef) error {
	return s.putObject(ctx, objects.Object{Kind: objects.View, Schema: schemaName, Name: name, OID: oid}, def)
}

// putObject stores a view or sequence with its definition.
func (s *Session) putObject(ctx context.Context, o objects.Object, def any) error {
	ed, err := s.objectEditor(ctx, o.Schema)
	if err != nil {
		return err
	}
	with, err := o.WithBody(def)
	if err != nil {
		return err
	}
	_, err = ed.PutObject(ctx, *with)
	return err
}

// changeView stores a view's changed definition.
func (s *Session) changeView(ctx context.Context, v *catalog.ViewRelation, change func(def *catalog.ViewDef) error) error {
	def := *v.Definition()
	def.Columns, def.Uses = slices.Clone(def.Columns), slices.Clone(def.Uses)
	if err := change(&def); err != nil {
		return err
	}
	return s.putView(ctx, v.Schema(), v.Name(), v.OID(), &def)
}

// states are the stored objects of the warehouse and of the session itself.
func (s *Session) states(ctx context.Context) ([]*objects.State, error) {
	var cats []catalog.Catalog
	if s.tx.staged != nil {
		cats = append(cats, s.tx.staged)
	} else {
		cats = append(cats, s.eng.cat)
	}
	if s.temp != nil {
		cats = append(cats, s.tempCatalog())
	}
	var out []*objects.State
	for _, c := range cats {
		if oc, ok := c.(catalog.ObjectCatalog); ok {
			st, err := oc.State(ctx)
			if err != nil {
				return nil, err
			}
			out = append(out, st)
		}
	}
	return out, nil
}

// views are all views, the oldest first.
func (s *Session) views(ctx context.Context) ([]*catalog.ViewRelation, error) {
	states, err := s.states(ctx)
	if err != nil {
		return nil, err
	}
	var out []*catalog.ViewRelation
	for _, st := range states {
		for _, o := range st.List(objects.View) {
			v, err := catalog.NewView(o)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
	}
	slices.SortStableFunc(out, func(a, b *catalog.ViewRelation) int {
		return int(min(max(a.Definition().Created-b.Definition().Created, -1), 1))
	})
	return out, nil
}

// uses reports whether a view reads a relation, or a column of it when one is named.
func uses(v *catalog.ViewRelation, schemaName, name, column string) bool {
	for _, u := range v.Definition().Uses {
		if u.Schema == schemaName && u.Name == name {
			return column == "" || slices.Contains(u.Columns, column)
		}
	}
	return false
}

// viewsOn are the views that read a relation, or a column of it, themselves.
func (s *Session) viewsOn(ctx context.Context, schemaName, name, column string) ([]*catalog.ViewRelation, error) {
	all, err := s.views(ctx)
	return slices.DeleteFunc(all, func(v *catalog.ViewRelation) bool { return !uses(v, schemaName, name, column) }), err
}

// visibleName names a relation as messages do: with its schema when the search path
// does not lead to it.
func (s *Session) visibleName(ctx context.Context, schemaName, name string) string {
	id := ast.Name{{Name: name, Quoted: true}}
	rel, err := s.newResolver().Relation(ctx, id, catalog.ResolveOptions{})
	if err == nil && rel.Schema() == schemaName {
		return ast.QuoteIdent(name)
	}
	return ast.QuoteIdent(schemaName) + "." + ast.QuoteIdent(name)
}

// described is a relation as messages about dependencies call it.
func (s *Session) described(ctx context.Context, kind byte, schemaName, name string) string {
	what := map[byte]string{'v': "view ", 'S': "sequence "}[kind]
	if what == "" {
		what = "table "
	}
	return what + s.visibleName(ctx, schemaName, name)
}

// removal is a DROP and what depends on what it drops.
type removal struct {
	s     *Session
	all   []*catalog.ViewRelation
	order []*catalog.ViewRelation // views to drop besides what was named, dependents first
	lines []string                // "view w depends on view v"
	seen  map[[2]string]bool      // views to drop, and what was named
	keys  []foreignUse            // FOREIGN KEYs to drop

	foreign []foreignUse // all of the warehouse, once listed
	listed  bool
}

func (s *Session) newRemoval(ctx context.Context) (*removal, error) {
	all, err := s.views(ctx)
	return &removal{s: s, all: all, seen: map[[2]string]bool{}}, err
}

// named notes what the statement names itself.
func (r *removal) named(schemaName, name string) { r.seen[[2]string{schemaName, name}] = true }

// follow finds the views on a relation, or on a column of it, and the views on those.
// what is how messages call it.
func (r *removal) follow(ctx context.Context, schemaName, name, column, what string) {
	for _, v := range r.all {
		k := [2]string{v.Schema(), v.Name()}
		if r.seen[k] || !uses(v, schemaName, name, column) {
			continue
		}
		r.seen[k] = true
		d := r.s.described(ctx, 'v', v.Schema(), v.Name())
		r.lines = append(r.lines, d+" depends on "+what)
		r.order = append(r.order, v)
		r.follow(ctx, v.Schema(), v.Name(), "", d)
	}
}

// followKeys finds the FOREIGN KEYs of other tables that refer to a table, or to a
// column of it.
func (r *removal) followKeys(ctx context.Context, rel catalog.Relation, column, what string) error {
	if !canBeReferredTo(rel) {
		return nil
	}
	if !r.listed {
		all, err := r.s.foreignKeys(ctx)
		if err != nil {
			return err
		}
		r.foreign, r.listed = all, true
	}
	for _, u := range r.foreign {
		if !u.refersTo(rel, column) {
			continue
		}
		if r.seen[[2]string{u.rel.Schema(), u.rel.Name()}] || column != "" && u.rel.OID() == rel.OID() {
			continue
		}
		if slices.ContainsFunc(r.keys, func(x foreignUse) bool { return x.rel.OID() == u.rel.OID() && x.c.Name == u.c.Name }) {
			continue
		}
		r.lines = append(r.lines, u.described(ctx, r.s)+" depends on "+what)
		r.keys = append(r.keys, u)
	}
	return nil
}

// allow reports what stands in the way without CASCADE; what is what is dropped.
func (r *removal) allow(cascade bool, what string) error {
	if cascade || len(r.order)+len(r.keys) == 0 {
		return nil
	}
	e := pgerr.New(pgerr.DependentObjectsStillExist, "cannot drop %s because other objects depend on it", what)
	if what == "" {
		e = pgerr.New(pgerr.DependentObjectsStillExist, "cannot drop desired object(s) because other objects depend on them")
	}
	return e.WithDetail("%s", strings.Join(r.lines, "\n")).WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
}

// drop drops the views that were found, and says so.
func (r *removal) drop(ctx context.Context, out ResultSink, also ...string) error {
	names := slices.Clone(also)
	for _, v := range r.order {
		names = append(names, r.s.described(ctx, 'v', v.Schema(), v.Name()))
	}
	for _, u := range r.keys {
		names = append(names, u.described(ctx, r.s))
	}
	for _, u := range r.keys {
		cmd := &ast.AlterCmd{Op: ast.DropConstraint, Name: ast.Ident{Name: u.c.Name, Quoted: true}}
		if err := r.s.runAlterTable(ctx, "", &ast.AlterTable{Table: &ast.TableName{Name: u.name()}, Cmds: []*ast.AlterCmd{cmd}}, nil); err != nil {
			return err
		}
	}
	for _, v := range slices.Backward(r.order) {
		if err := r.s.dropObject(ctx, objects.View, v.Schema(), v.Name()); err != nil {
			return err
		}
	}
	r.s.cascades(out, names)
	return nil
}

// cascades is the notice of what is dropped besides what was named.
func (s *Session) cascades(out ResultSink, names []string) {
	switch len(names) {
	case 0:
	case 1:
		s.notice(out, "NOTICE", pgerr.SuccessfulCompletion, "drop cascades to %s", names[0])
	default:
		s.noticeOf(out, pgerr.New(pgerr.SuccessfulCompletion, "drop cascades to %d other objects", len(names)).
			WithDetail("drop cascades to %s", strings.Join(names, "\ndrop cascades to ")))
	}
}

func (s *Session) dropObject(ctx context.Context, kind objects.Kind, schemaName, name string) error {
	ed, err := s.objectEditor(ctx, schemaName)
	if err != nil {
		return err
	}
	return ed.DeleteObject(ctx, kind, schemaName, name)
}

// renameIn lets the views on a relation, and the FOREIGN KEYs that refer to it, follow
// a change of a name. It is called before the change is made; what it returns stores
// them.
func (s *Session) renameIn(ctx context.Context, ch planner.ViewChange) (store func() error, err error) {
	on, err := s.viewsOn(ctx, ch.Schema, ch.Name, ch.Column)
	if err != nil {
		return nil, err
	}
	var puts []func() error
	for _, v := range on {
		query, err := planner.ChangeView(ctx, v.Query(), ch, s.planOptions())
		if err != nil {
			return nil, err
		}
		puts = append(puts, func() error {
			return s.changeView(ctx, v, func(def *catalog.ViewDef) error {
				def.Query = query
				for i := range def.Uses {
					u := &def.Uses[i]
					if u.Schema != ch.Schema || u.Name != ch.Name {
						continue
					}
					if ch.Column == "" {
						u.Schema, u.Name = ch.NewSchema, ch.NewName
						continue
					}
					u.Columns = slices.Clone(u.Columns)
					for j, c := range u.Columns {
						if c == ch.Column {
							u.Columns[j] = ch.NewColumn
						}
					}
				}
				return nil
			})
		})
	}
	keys, err := s.renameInKeys(ctx, ch)
	if err != nil {
		return nil, err
	}
	puts = append(puts, keys...)
	return func() error {
		for _, put := range puts {
			if err := put(); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// viewToChange finds the view of an ALTER VIEW or COMMENT ON VIEW.
func (s *Session) viewToChange(ctx context.Context, text string, name ast.Name) (*catalog.ViewRelation, error) {
	rel, err := s.newResolver().Relation(ctx, name, resolveDefaults(s))
	if err != nil {
		if len(name) > 1 && errors.Is(err, catalog.ErrNoSchema) {
			return nil, pgerr.New(pgerr.UndefinedTable, "relation %q does not exist", name.String())
		}
		return nil, withoutPosition(err)
	}
	if err := s.mustOwn(ctx, rel); err != nil {
		return nil, err
	}
	if systemSchema(rel.Schema()) {
		return nil, pgerr.New(pgerr.InsufficientPrivilege, "permission denied: %q is a system catalog", rel.Name())
	}
	v, ok := rel.(*catalog.ViewRelation)
	if !ok {
		return nil, pgerr.New(pgerr.WrongObjectType, "%q is not a view", rel.Name())
	}
	return v, nil
}

// withoutPosition is an error of a name that PostgreSQL gives no position.
func withoutPosition(err error) error {
	var e *pgerr.Error
	if errors.As(err, &e) && e.Position != 0 {
		c := *e
		return c.WithPosition(0)
	}
	return err
}

// runAlterView is ALTER VIEW, and ALTER TABLE of a view.
func (s *Session) runAlterView(ctx context.Context, text string, v *catalog.ViewRelation, st *ast.AlterTable) error {
	if err := s.mustOwn(ctx, v); err != nil {
		return err
	}
	for _, c := range st.Cmds {
		now, err := s.catalog().Resolve(ctx, v.Schema(), v.Name(), catalog.ResolveOptions{})
		if err != nil {
			return err
		}
		v = now.(*catalog.ViewRelation)
		if err := s.alterView(ctx, text, v, c); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) alterView(ctx context.Context, text string, v *catalog.ViewRelation, c *ast.AlterCmd) error {
	switch c.Op {
	case ast.SetDefault, ast.DropDefault:
		i := viewColumn(v, c.Path[0].Name)
		if i < 0 {
			return pgerr.New(pgerr.UndefinedColumn, "column %q of relation %q does not exist", c.Path[0].Name, v.Name())
		}
		def := ""
		if c.Op == ast.SetDefault {
			t := v.Columns()[i].Type
			d, err := bindDefault(ctx, text, c.Path[0].Name, columnType{stored: t, sql: t}, c.Expr, s.planOptions())
			if err != nil {
				return err
			}
			if d != nil {
				def = ast.Format(c.Expr)
			}
		}
		return s.changeView(ctx, v, func(x *catalog.ViewDef) error { x.Columns[i].Default = def; return nil })
	case ast.SetOptions:
		return s.changeView(ctx, v, func(x *catalog.ViewDef) error {
			all := map[string]string{}
			for k, o := range x.Options {
				all[k] = o
			}
			x.Options = all
			return viewOptions(text, c.Options, all)
		})
	case ast.ResetOptions:
		return s.changeView(ctx, v, func(x *catalog.ViewDef) error {
			all := map[string]string{}
			for k, o := range x.Options {
				if !slices.ContainsFunc(c.Options, func(r *ast.Option) bool { return r.Name == k }) {
					all[k] = o
				}
			}
			x.Options = all
			return nil
		})
	case ast.OwnerTo:
		return s.giveRelation(ctx, v, c.Role)
	case ast.SetSchema:
		return s.moveView(ctx, v, c.Name.Name)
	case ast.SetComment:
		return s.changeView(ctx, v, func(x *catalog.ViewDef) error { x.Comment = deref(c.Comment); return nil })
	}
	return pgerr.New(pgerr.WrongObjectType, "ALTER action %s cannot be performed on relation %q", alterAction(c.Op), v.Name()).
		WithDetail("This operation is not supported for views.")
}

// alterAction names a command of ALTER TABLE.
func alterAction(op ast.AlterOp) string {
	names := map[ast.AlterOp]string{
		ast.AddColumn: "ADD COLUMN", ast.DropColumn: "DROP COLUMN", ast.AlterType: "ALTER COLUMN ... SET DATA TYPE",
		ast.SetNotNull: "ALTER COLUMN ... SET NOT NULL", ast.DropNotNull: "ALTER COLUMN ... DROP NOT NULL", ast.AddConstraint: "ADD CONSTRAINT",
		ast.DropConstraint: "DROP CONSTRAINT", ast.ValidateConstraint: "VALIDATE CONSTRAINT", ast.SetStatistics: "ALTER COLUMN ... SET STATISTICS",
		ast.SetStorage: "ALTER COLUMN ... SET STORAGE", ast.SetTablespace: "SET TABLESPACE", ast.AddIdentity: "ALTER COLUMN ... ADD IDENTITY",
		ast.AlterIdentity: "ALTER COLUMN ... SET", ast.DropIdentity: "ALTER COLUMN ... DROP IDENTITY", ast.SetAccessMethod: "SET ACCESS METHOD",
	}
	if n := names[op]; n != "" {
		return n
	}
	return "of this kind"
}

func viewColumn(v *catalog.ViewRelation, name string) int {
	return slices.IndexFunc(v.Columns(), func(c catalog.Column) bool { return c.Name == name })
}

// moveView is SET SCHEMA of a view.
func (s *Session) moveView(ctx context.Context, v *catalog.ViewRelation, to string) error {
	n, ok := s.schemaExists(ctx, to)
	if !ok {
		return pgerr.New(pgerr.InvalidSchemaName, "schema %q does not exist", to)
	}
	if temp := s.tempSchema(); n != v.Schema() && temp != "" && (n == temp || v.Schema() == temp) {
		return pgerr.New(pgerr.FeatureNotSupported, "cannot move objects into or out of temporary schemas")
	}
	if systemSchema(n) {
		return pgerr.New(pgerr.InsufficientPrivilege, "permission denied for schema %s", n)
	}
	if err := s.mayCreateIn(ctx, n); err != nil {
		return err
	}
	return s.renameView(ctx, v, n, v.Name())
}

// renameView gives a view another name or schema.
func (s *Session) renameView(ctx context.Context, v *catalog.ViewRelation, schemaName, name string) error {
	if schemaName == v.Schema() && name == v.Name() {
		return nil
	}
	return s.moveObject(ctx, objects.View, v, schemaName, name, func() error {
		return s.putView(ctx, schemaName, name, v.OID(), v.Definition())
	})
}

// moveObject gives a stored relation another name or schema, in the views that use it
// too; put stores it there.
func (s *Session) moveObject(ctx context.Context, kind objects.Kind, rel catalog.Relation, schemaName, name string, put func() error) error {
	exists, err := s.relationExists(ctx, schemaName, name)
	if err != nil {
		return err
	}
	if exists {
		if schemaName != rel.Schema() {
			return pgerr.New(pgerr.DuplicateTable, "relation %q already exists in schema %q", name, schemaName)
		}
		return pgerr.New(pgerr.DuplicateTable, "relation %q already exists", name)
	}
	store, err := s.renameIn(ctx, planner.ViewChange{Schema: rel.Schema(), Name: rel.Name(), NewSchema: schemaName, NewName: name})
	if err != nil {
		return err
	}
	k, _ := relationAccess(rel)
	access := s.roles(ctx).Access(k)
	if err := s.dropObject(ctx, kind, rel.Schema(), rel.Name()); err != nil {
		return err
	}
	if err := put(); err != nil {
		return err
	}
	if !free(schemaName) {
		if err := s.putAccess(ctx, roles.RelationKey(schemaName, name), access); err != nil {
			return err
		}
	}
	return store()
}

// renameViewPart is ALTER VIEW ... RENAME.
func (s *Session) renameViewPart(ctx context.Context, v *catalog.ViewRelation, st *ast.Rename) error {
	to := st.NewName.Name
	switch st.Part {
	case "":
		if len(st.NewPath) > 1 {
			return pgerr.New(pgerr.FeatureNotSupported, "a view cannot be renamed into another schema").WithHint("Use ALTER VIEW ... SET SCHEMA.")
		}
		if strings.Contains(to, "$") {
			return pgerr.New(pgerr.InvalidName, "the name %q may not contain \"$\"", to)
		}
		if to == v.Name() {
			return pgerr.New(pgerr.DuplicateTable, "relation %q already exists", to)
		}
		return s.renameView(ctx, v, v.Schema(), to)
	case "COLUMN":
		from := st.Column[0].Name
		i := viewColumn(v, from)
		if i < 0 {
			return pgerr.New(pgerr.UndefinedColumn, "column %q does not exist", from)
		}
		if viewColumn(v, to) >= 0 {
			return pgerr.New(pgerr.DuplicateColumn, "column %q of relation %q already exists", to, v.Name())
		}
		store, err := s.renameIn(ctx, planner.ViewChange{Schema: v.Schema(), Name: v.Name(), Column: from, NewColumn: to})
		if err != nil {
			return err
		}
		if err := s.changeView(ctx, v, func(def *catalog.ViewDef) error { def.Columns[i].Name = to; return nil }); err != nil {
			return err
		}
		if err := s.renamedColumn(ctx, v, from, to); err != nil {
			return err
		}
		return store()
	}
	return pgerr.New(pgerr.UndefinedObject, "constraint %q for table %q does not exist", st.Column[0].Name, v.Name())
}

// commentOnView sets the comment of a view or, when one is named, of a column.
func (s *Session) commentOnView(ctx context.Context, v *catalog.ViewRelation, column, comment string) error {
	return s.changeView(ctx, v, func(def *catalog.ViewDef) error {
		if column == "" {
			def.Comment = comment
			return nil
		}
		i := viewColumn(v, column)
		if i < 0 {
			return pgerr.New(pgerr.UndefinedColumn, "column %q of relation %q does not exist", column, v.Name())
		}
		def.Columns[i].Comment = comment
		return nil
	})
}
