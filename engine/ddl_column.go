package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/planner"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// addColumn is ADD COLUMN. Rows that are there get the default in the same
// transaction: Paimon would read NULL from their files.
func (a *alteration) addColumn(ctx context.Context, c *ast.AlterCmd) error {
	x := c.Column
	path := identNames(x.Path)
	if len(path) == 0 {
		path = []string{x.Name.Name}
	}
	nested := len(path) > 1
	name := path[len(path)-1]
	if nested {
		if _, err := a.column(path[0]); err != nil {
			return err
		}
	} else {
		if err := checkColumnName(name); err != nil {
			return err
		}
		if a.sch.Fields.Index(name) >= 0 {
			if c.IfNotExists {
				a.s.notice(a.out, "NOTICE", pgerr.DuplicateColumn, "column %q of relation %q already exists, skipping", name, a.rel.Name())
				return nil
			}
			return pgerr.New(pgerr.DuplicateColumn, "column %q of relation %q already exists", name, a.rel.Name())
		}
	}
	d := a.s.newTableDef(a.text, a.rel.Schema(), a.rel.Name())
	var pending, defaults []pendingConstraint
	if err := d.addColumn(x, &pending, &defaults); err != nil {
		return err
	}
	a.notes = append(a.notes, d.notes...)
	col := d.cols[0]
	if nested {
		if len(pending)+len(defaults)+len(d.sequences) > 0 || col.typ.pg != "" {
			return errAt(a.text, c.Pos, pgerr.FeatureNotSupported, "a nested field takes no constraints and no type that Paimon lacks")
		}
		add := schema.AddColumn{Path: path, Type: col.typ.stored.WithNotNull(false), Comment: col.comment, Move: place(x.First, x.After)}
		return a.do(&a.before, add)
	}
	f := types.Field{Name: name}
	opts := map[string]string{}
	for _, p := range defaults {
		def, err := a.s.defaultOf(ctx, a.text, name, col.typ, p.k.Expr, a.set.opts)
		if err != nil {
			return err
		}
		col.def = def
		def.apply(&f, opts)
	}
	if len(d.sequences) > 0 {
		if err := a.s.makeSequences(ctx, a.rel.Schema(), a.rel.Name(), d.sequences); err != nil {
			return err
		}
		col.def.apply(&f, opts)
		if col.identity != "" {
			opts[catalog.IdentityOption(name)] = col.identity
		}
	}
	add := schema.AddColumn{Path: path, Type: col.typ.stored.WithNotNull(false), Comment: col.comment, Move: place(x.First, x.After)}
	if f.HasDefault {
		add.Default = &f.Default
	}
	if col.typ.pg != "" {
		opts[pgTypeOption(name)] = col.typ.pg
	}
	changes := []schema.Change{add}
	for _, k := range sortedKeys(opts) {
		changes = append(changes, schema.SetOption{Key: k, Value: opts[k]})
	}
	if err := a.do(&a.before, changes...); err != nil {
		return err
	}
	primary := slices.ContainsFunc(pending, func(p pendingConstraint) bool { return p.k.Kind == ast.ConstraintPrimaryKey })
	if err := a.fillColumn(ctx, col, primary); err != nil {
		return err
	}
	for _, p := range pending {
		k := *p.k
		if k.Kind != ast.ConstraintCheck {
			k.Columns = p.columns
		}
		if err := a.addConstraint(ctx, &ast.AlterCmd{Loc: c.Loc, Op: ast.AddConstraint, Constraint: &k}); err != nil {
			return err
		}
	}
	return nil
}

// fillColumn gives the rows a new column's default and makes it NOT NULL.
func (a *alteration) fillColumn(ctx context.Context, col defColumn, primary bool) error {
	notNull := col.notNull || primary
	if col.def == nil && !notNull {
		return nil
	}
	rows, err := a.hasRows(ctx)
	if err != nil {
		return err
	}
	if rows {
		if col.def == nil {
			return a.containsNulls(col.name)
		}
		value := col.def.expr
		if col.identity != "" {
			value = &ast.Default{} // no other may be given
		}
		a.setColumn(col.name, value)
		if notNull {
			a.verifyNotNull(col.name, col.name)
		}
	}
	if !col.notNull {
		return nil
	}
	return a.do(&a.after, schema.UpdateNullability{Path: []string{col.name}, NotNull: true, Verified: true})
}

func (a *alteration) containsNulls(column string) *pgerr.Error {
	pe := pgerr.New(pgerr.NotNullViolation, "column %q of relation %q contains null values", column, a.rel.Name())
	pe.Schema, pe.Table, pe.Column = a.rel.Schema(), a.rel.Name(), column
	return pe
}

// verifyNotNull looks for NULL in the column that is called now, for now.
func (a *alteration) verifyNotNull(column, now string) {
	ref := &ast.ColumnRef{Parts: ast.Name{{Name: now, Quoted: true}}}
	a.verify = append(a.verify, verification{&ast.Is{Expr: ref, Kind: ast.IsNull}, a.containsNulls(column)})
}

// setColumn adds an assignment to the UPDATE of all rows.
func (a *alteration) setColumn(name string, value ast.Expr) {
	t := &ast.AssignTarget{Column: ast.Ident{Name: name, Quoted: true}}
	a.sets = append(a.sets, &ast.SetClause{Targets: []*ast.AssignTarget{t}, Value: value})
}

func place(first bool, after ast.Ident) *schema.Move {
	if first {
		return &schema.Move{First: true}
	}
	if !after.Empty() {
		return &schema.Move{After: after.Name}
	}
	return nil
}

// move puts a column elsewhere; where it is already is no error.
func (a *alteration) move(name string, first bool, after ast.Ident) error {
	m := place(first, after)
	if m == nil {
		return nil
	}
	if m.After != "" {
		if _, err := a.column(m.After); err != nil {
			return err
		}
	}
	i := a.sch.Fields.Index(name)
	if m.First && i == 0 || m.After == name || i > 0 && m.After == a.sch.Fields[i-1].Name {
		return nil
	}
	return a.do(&a.after, schema.UpdatePosition{Column: name, Move: *m})
}

// dropColumn is DROP COLUMN. Constraints that name the column go with it.
func (a *alteration) dropColumn(ctx context.Context, c *ast.AlterCmd) error {
	path, f, err := a.target(c)
	if err != nil {
		if len(c.Path) > 0 && systemColumns[c.Path[0].Name] {
			return pgerr.New(pgerr.FeatureNotSupported, "cannot drop system column %q", c.Path[0].Name)
		}
		if c.IfExists {
			a.notes = append(a.notes, `column "`+path[0]+`" of relation "`+a.rel.Name()+`" does not exist, skipping`)
			return nil
		}
		return err
	}
	if len(path) == 1 && slices.Contains(a.sch.PrimaryKeys, f.Name) {
		return errAt(a.text, c.Pos, pgerr.FeatureNotSupported, "column %q of the primary key cannot be dropped", f.Name)
	}
	if len(path) == 1 {
		if a.removed == nil {
			if a.removed, err = a.s.newRemoval(ctx); err != nil {
				return err
			}
		}
		what := "column " + ast.QuoteIdent(f.Name) + " of " + a.s.described(ctx, 'r', a.rel.Schema(), a.rel.Name())
		a.removed.follow(ctx, a.rel.Schema(), a.rel.Name(), f.Name, what)
		if err := a.removed.followKeys(ctx, a.rel, f.Name, what); err != nil {
			return err
		}
		if err := a.removed.allow(c.Cascade, what); err != nil {
			return err
		}
		if err := a.followColumn(ctx, f.Name, ""); err != nil {
			return err
		}
	}
	if err := a.do(&a.before, schema.DropColumn{Path: path}); err != nil {
		if c.IfExists && pgerr.Is(err, pgerr.UndefinedColumn) {
			return nil
		}
		return err
	}
	a.set.list = catalog.Constraints(a.sch.Options)
	return nil
}

// setDefault is SET DEFAULT and DROP DEFAULT.
func (a *alteration) setDefault(ctx context.Context, c *ast.AlterCmd) error {
	path, f, err := a.target(c)
	if err == nil {
		err = a.topOnly(c, path, "the default")
	}
	if err != nil {
		return err
	}
	hint := ""
	if c.Op == ast.DropDefault {
		hint = "Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead."
	}
	if err := a.identityOnly(f, hint); err != nil {
		return err
	}
	var def *columnDefault
	if c.Op == ast.SetDefault {
		if def, err = a.s.defaultOf(ctx, a.text, f.Name, a.typeOf(f), c.Expr, a.set.opts); err != nil {
			return err
		}
	}
	return a.do(&a.after, defaultChanges(f.Name, def, a.sch.Options)...)
}

// defaultChanges make def the default of a column; nil = none.
func defaultChanges(column string, def *columnDefault, options map[string]string) []schema.Change {
	key := catalog.DefaultOption(column)
	var out []schema.Change
	switch {
	case def == nil || def.constant:
		u := schema.UpdateDefault{Path: []string{column}}
		if def != nil {
			u.Default = &def.text
		}
		out = append(out, u)
		if _, ok := options[key]; ok {
			out = append(out, schema.RemoveOption{Key: key})
		}
	default:
		out = append(out, schema.UpdateDefault{Path: []string{column}}, schema.SetOption{Key: key, Value: def.text})
	}
	return out
}

// setNotNull is SET NOT NULL.
func (a *alteration) setNotNull(ctx context.Context, c *ast.AlterCmd) error {
	path, f, err := a.target(c)
	if err != nil {
		return err
	}
	rows, err := a.hasRows(ctx)
	if err != nil {
		return err
	}
	if rows {
		if err := a.topOnly(c, path, "NOT NULL"); err != nil {
			return err
		}
		if !f.Type.NotNull {
			a.verifyNotNull(f.Name, f.Name)
		}
	}
	return a.do(&a.after, schema.UpdateNullability{Path: path, NotNull: true, Verified: true})
}

// dropNotNull is DROP NOT NULL.
func (a *alteration) dropNotNull(c *ast.AlterCmd) error {
	path, f, err := a.target(c)
	if err != nil {
		return err
	}
	if len(path) == 1 && slices.Contains(a.sch.PrimaryKeys, f.Name) {
		return pgerr.New(pgerr.InvalidTableDefinition, "column %q is in a primary key", f.Name)
	}
	if len(path) == 1 {
		if err := a.identityOnly(f, ""); err != nil {
			return err
		}
	}
	return a.do(&a.before, schema.UpdateNullability{Path: path})
}

// modifyColumn is Flink's MODIFY: the column is described anew.
func (a *alteration) modifyColumn(ctx context.Context, c *ast.AlterCmd) error {
	x := c.Column
	cmd := &ast.AlterCmd{Loc: c.Loc, Op: ast.AlterType, Path: x.Path, Type: x.Type}
	if len(cmd.Path) == 0 {
		cmd.Path = []ast.Ident{x.Name}
	}
	if x.Type != nil {
		if err := a.alterType(ctx, cmd); err != nil {
			return err
		}
	}
	for _, k := range withAttributes(x.Constraints) {
		next := *cmd
		switch k.Kind {
		case ast.ConstraintNotNull:
			next.Op = ast.SetNotNull
		case ast.ConstraintNull:
			next.Op = ast.DropNotNull
		case ast.ConstraintDefault:
			next.Op, next.Expr = ast.SetDefault, k.Expr
		default:
			return errAt(a.text, k.Pos, pgerr.FeatureNotSupported, "MODIFY takes no such constraint")
		}
		if err := a.command(ctx, &next); err != nil {
			return err
		}
	}
	if x.Comment != nil {
		next := *cmd
		next.Op, next.Comment = ast.CommentColumn, x.Comment
		if err := a.command(ctx, &next); err != nil {
			return err
		}
	}
	if x.First || !x.After.Empty() {
		return a.move(x.Name.Name, x.First, x.After)
	}
	return nil
}

// alterType is ALTER COLUMN ... TYPE.
func (a *alteration) alterType(ctx context.Context, c *ast.AlterCmd) error {
	path, f, err := a.target(c)
	if err != nil {
		return err
	}
	if err := checkCollation(a.text, c.Collation); err != nil {
		return err
	}
	to, err := resolveColumnType(a.text, f.Name, c.Type)
	if err != nil {
		return err
	}
	if to.note != "" {
		a.notes = append(a.notes, to.note)
	}
	if len(path) == 1 && catalog.IdentityOf(f.Name, a.sch.Options) != "" {
		if err := a.identityType(ctx, f.Name, to); err != nil {
			return err
		}
	}
	if len(path) > 1 {
		return a.nestedType(ctx, c, path, to)
	}
	on, err := a.s.viewsOn(ctx, a.rel.Schema(), a.rel.Name(), f.Name)
	if err != nil {
		return err
	}
	if len(on) > 0 {
		return pgerr.New(pgerr.FeatureNotSupported, "cannot alter type of a column used by a view or rule").
			WithDetail("rule _RETURN on %s depends on column %q", a.s.described(ctx, 'v', on[0].Schema(), on[0].Name()), f.Name)
	}
	from := a.typeOf(f)
	ref := &ast.ColumnRef{Parts: ast.Name{{Name: f.Name, Quoted: true}}, Loc: ast.At(c.Pos)}
	using := c.Using
	if using == nil {
		using = ref
	}
	cols := a.sqlColumns()
	if err := plainExpr(a.text, using, "transform expression", false); err != nil {
		return err
	}
	if err := a.bindUsing(ctx, f.Name, using, c.Using != nil, cols, to); err != nil {
		return err
	}
	def, hasDef, err := a.convertDefault(ctx, f, from, to)
	if err != nil {
		return err
	}
	// The conditions of CHECKs must mean something with the new type.
	changed := slices.Clone(cols)
	changed[changed.Index(f.Name)].Type = to.sql
	for _, k := range a.set.list {
		if k.Kind != catalog.CheckConstraint || !slices.Contains(k.Columns, f.Name) {
			continue
		}
		e, err := parseExpr(k.Expr)
		if err != nil {
			return err
		}
		s := a.set
		s.text = ""
		if err := s.bindCheck(ctx, e, changed); err != nil {
			return err
		}
	}
	rows, err := a.hasRows(ctx)
	if err != nil {
		return err
	}
	if c.Using == nil && lossless(from, to) || !rows && canChange(a.sch, f, to, a.hasSnapshot) {
		return a.retype(f, to, def, hasDef)
	}
	return a.replaceColumn(f, from, to, using, def, hasDef, rows)
}

// bindUsing checks the expression that makes the new values.
func (a *alteration) bindUsing(ctx context.Context, column string, e ast.Expr, given bool, cols types.Schema, to columnType) error {
	_, err := planner.PlanExprOver(ctx, e, a.text, cols, a.rel.Name(), to.sql, a.set.opts)
	var pe *pgerr.Error
	if !errors.As(err, &pe) {
		return err
	}
	if pe.Code == pgerr.DatatypeMismatch {
		if given {
			return pgerr.New(pgerr.DatatypeMismatch, "result of USING clause for column %q cannot be cast automatically to type %s", column, to.sql.WithNotNull(false)).
				WithHint("You might need to add an explicit cast.")
		}
		return pgerr.New(pgerr.DatatypeMismatch, "column %q cannot be cast automatically to type %s", column, to.sql.WithNotNull(false)).
			WithHint("You might need to specify \"USING %s::%s\".", ast.QuoteIdent(column), to.sql.WithNotNull(false))
	}
	return inPlace(pe, "transform expressions")
}

// convertDefault is a column's default as one of the new type.
func (a *alteration) convertDefault(ctx context.Context, f types.Field, from, to columnType) (def *columnDefault, has bool, err error) {
	text, constant, ok := catalog.DefaultOf(f, a.sch.Options)
	if !ok {
		return nil, false, nil
	}
	e := ast.Expr(&ast.String{Value: text})
	if !constant {
		if e, err = parseExpr(text); err != nil {
			return nil, false, err
		}
	} else if !from.sql.IsTextLike() && !from.sql.IsNumber() {
		// An untyped literal of the old type is one of the new.
		stmts, err := parse("SELECT CAST(" + ast.QuoteString(text) + " AS " + castName(from.sql) + ")")
		if err != nil {
			return nil, false, err
		}
		e = stmts[0].(*ast.Query).Body.(*ast.Select).Targets[0].Expr
	}
	cannot := pgerr.New(pgerr.DatatypeMismatch, "default for column %q cannot be cast automatically to type %s", f.Name, to.sql.WithNotNull(false))
	one := types.Schema{{Name: f.Name, Type: from.sql}}
	ref := &ast.ColumnRef{Parts: ast.Name{{Name: f.Name, Quoted: true}}}
	if _, err := planner.PlanExprOver(ctx, ref, "", one, "", to.sql, a.set.opts); err != nil {
		return nil, false, cannot
	}
	def, err = bindDefault(ctx, "", f.Name, to, e, a.set.opts)
	if err != nil {
		return nil, false, cannot
	}
	return def, true, nil
}

// nestedType changes a field inside a row, where Paimon's lazy cast is all there
// is.
func (a *alteration) nestedType(ctx context.Context, c *ast.AlterCmd, path []string, to columnType) error {
	if c.Using != nil || to.pg != "" {
		return errAt(a.text, c.Pos, pgerr.FeatureNotSupported, "a nested field takes no USING and no type that Paimon lacks")
	}
	rows, err := a.hasRows(ctx)
	if err != nil {
		return err
	}
	if from, ok := typeAt(a.sch.Fields, path); rows && ok && !lossless(columnType{stored: from, sql: from.SQL()}, to) {
		return errAt(a.text, c.Pos, pgerr.FeatureNotSupported, "the type of a nested field can only be widened while the table has rows")
	}
	return a.do(&a.after, schema.UpdateType{Path: path, Type: to.stored, KeepNullability: true})
}

// typeAt is the type of a nested field.
func typeAt(fs []types.Field, path []string) (types.Type, bool) {
	i := types.Schema(fs).Index(path[0])
	if i < 0 {
		return types.Type{}, false
	}
	t := fs[i].Type
	for _, p := range path[1:] {
		switch {
		case t.Kind == types.Row:
			i := types.Schema(t.Fields).Index(p)
			if i < 0 {
				return types.Type{}, false
			}
			t = t.Fields[i].Type
		case t.Elem != nil:
			t = *t.Elem
		default:
			return types.Type{}, false
		}
	}
	return t, true
}
