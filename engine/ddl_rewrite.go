package engine

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// lossless reports whether every value of a column reads the same through
// Paimon's lazy cast as PostgreSQL's cast would make it.
func lossless(from, to columnType) bool {
	f, t := from.stored, to.stored
	switch {
	case from.pg == to.pg:
	case to.pg == "" && t.Kind == types.Text && (from.pg == "json" || from.pg == "name" || from.pg == "varchar"):
		// The stored text is the value.
	case to.pg == "varchar" && from.pg == "" && f.Kind == types.Varchar, to.pg == "varchar" && f.Kind == types.Text && from.pg == "":
	case to.pg == "numeric" && from.pg == "" && f.IsInteger():
	default:
		return false
	}
	if types.PaimonString(f.WithNotNull(false)) == types.PaimonString(t.WithNotNull(false)) {
		return true
	}
	digits := map[types.Kind]int{types.TinyInt: 3, types.Int2: 5, types.Int4: 10, types.Int8: 19}
	switch f.Kind {
	case types.TinyInt, types.Int2, types.Int4, types.Int8:
		switch {
		case t.IsInteger():
			return digits[t.Kind] >= digits[f.Kind]
		case t.Kind == types.Numeric:
			return int(t.Prec)-int(t.Scale) >= digits[f.Kind]
		case t.Kind == types.Float8:
			return f.Kind != types.Int8
		}
	case types.Float4:
		return t.Kind == types.Float8
	case types.Numeric:
		return t.Kind == types.Numeric && t.Scale >= f.Scale && int(t.Prec)-int(t.Scale) >= int(f.Prec)-int(f.Scale)
	case types.Varchar:
		return t.Kind == types.Text || t.Kind == types.Varchar && (t.Len == 0 || t.Len >= f.Len)
	case types.Timestamp, types.TimestampTZ, types.Time:
		return t.Kind == f.Kind && t.Prec >= f.Prec
	case types.Bytea:
		return t.Kind == types.Bytea && (t.Len == 0 || f.Len > 0 && t.Len >= f.Len && t.Lake != types.LakeBinary) && t.Lake != types.LakeBlob && f.Lake != types.LakeBlob
	}
	return false
}

// canChange reports whether Paimon lets a column of a table without rows have
// another type.
func canChange(t *schema.Table, f types.Field, to columnType, hasSnapshot bool) bool {
	_, err := schema.Apply(t, []schema.Change{schema.UpdateType{Path: []string{f.Name}, Type: to.stored, KeepNullability: true}}, hasSnapshot)
	return err == nil
}

// retype changes the type and leaves the rows to the lazy cast.
func (a *alteration) retype(f types.Field, to columnType, def *columnDefault, hasDef bool) error {
	var changes []schema.Change
	if hasDef {
		changes = append(changes, defaultChanges(f.Name, nil, a.sch.Options)...)
	}
	changes = append(changes, schema.UpdateType{Path: []string{f.Name}, Type: to.stored, KeepNullability: true})
	key := pgTypeOption(f.Name)
	if to.pg != "" {
		changes = append(changes, schema.SetOption{Key: key, Value: to.pg})
	} else if _, ok := a.sch.Options[key]; ok {
		changes = append(changes, schema.RemoveOption{Key: key})
	}
	if hasDef {
		changes = append(changes, defaultChanges(f.Name, def, nil)...)
	}
	return a.do(&a.before, changes...)
}

// replaceColumn makes a new column of the new type, which takes the old one's
// name, place and properties once every row has a value for it.
func (a *alteration) replaceColumn(f types.Field, from, to columnType, using ast.Expr, def *columnDefault, hasDef, rows bool) error {
	tmp := f.Name + "__new_type"
	for a.sch.Fields.Index(tmp) >= 0 {
		tmp += "_"
	}
	i := a.sch.Fields.Index(f.Name)
	options := maps.Clone(a.sch.Options)
	before := []schema.Change{schema.AddColumn{Path: []string{tmp}, Type: to.stored.WithNotNull(false), Comment: f.Description}}
	if to.pg != "" {
		before = append(before, schema.SetOption{Key: pgTypeOption(tmp), Value: to.pg})
	}
	// The old column goes in the step before the rows are read only if nothing
	// reads it: then one schema version is enough.
	list := &a.before
	if err := a.do(list, before...); err != nil {
		return err
	}
	if rows {
		a.setColumn(tmp, using)
		if f.Type.NotNull {
			a.verifyNotNull(f.Name, tmp)
		}
	}
	move := schema.Move{First: true}
	if i > 0 {
		move = schema.Move{After: a.sch.Fields[i-1].Name}
	}
	// The last column's new version is where it belongs once the old one is gone.
	after := []schema.Change{schema.DropColumn{Path: []string{f.Name}}, schema.RenameColumn{Path: []string{tmp}, To: f.Name}}
	if i != len(a.sch.Fields)-2 {
		after = append(after, schema.UpdatePosition{Column: f.Name, Move: move})
	}
	if f.Type.NotNull {
		after = append(after, schema.UpdateNullability{Path: []string{f.Name}, NotNull: true, Verified: true})
	}
	if hasDef {
		after = append(after, defaultChanges(f.Name, def, nil)...)
	}
	// Dropping a column takes what the options say about it away.
	_ = from
	for _, k := range sortedKeys(options) {
		if k == pgTypeOption(f.Name) || k == catalog.DefaultOption(f.Name) {
			continue
		}
		after = append(after, schema.SetOption{Key: k, Value: options[k]})
	}
	return a.do(&a.after, after...)
}

// rewrite gives the rows their new values and looks for violations.
func (a *alteration) rewrite(ctx context.Context) error {
	name := ast.Name{{Name: a.rel.Schema(), Quoted: true}, {Name: a.rel.Name(), Quoted: true}}
	if len(a.sets) > 0 {
		up := &ast.Update{Table: &ast.TableName{Name: name, Alias: nil}, Sets: a.sets}
		if err := a.s.runInside(ctx, up, a.text); err != nil {
			return err
		}
	}
	rel, err := a.s.newResolver().Relation(ctx, name, resolveDefaults(a.s))
	if err != nil {
		return err
	}
	for _, v := range a.verify {
		found, err := a.s.anyRow(ctx, rel, v.cond, a.text)
		if err != nil {
			return err
		}
		if found {
			return v.err
		}
	}
	if t, ok := rel.(catalog.TableInfo); ok {
		// Rows that another process adds meanwhile would have no value, or break
		// what has been looked for.
		if tt := a.s.touched(keyOf(t)); tt != nil {
			tt.reads = unionReads(tt.reads, &commit.ReadSet{All: true})
		}
	}
	return nil
}

// runInside runs a data-changing statement that another statement consists of, in
// its transaction.
func (s *Session) runInside(ctx context.Context, st ast.Stmt, text string) error {
	p := &prepared{stmt: st, text: text, fixed: true}
	pl, err := s.planModify(ctx, p, nil)
	if err != nil {
		return err
	}
	_, err = s.modify(ctx, p, pl, nil, nil)
	return err
}

// anyRow reports whether a row of rel meets cond; nil = any row.
func (s *Session) anyRow(ctx context.Context, rel catalog.Relation, cond ast.Expr, text string) (bool, error) {
	name := ast.Name{{Name: rel.Schema(), Quoted: true}, {Name: rel.Name(), Quoted: true}}
	q := &ast.Query{
		Body: &ast.Select{
			Targets: []*ast.Target{{Expr: &ast.Number{Text: "1", Integer: true}}},
			From:    []ast.TableRef{&ast.TableName{Name: name}}, Where: cond,
		},
		Limit: &ast.Number{Text: "1", Integer: true},
	}
	pl, err := s.planQuery(ctx, &prepared{stmt: q, text: text, fixed: true}, nil)
	if err != nil {
		return false, err
	}
	r, err := s.execute(ctx, pl, nil, selectTag)
	if err != nil {
		return false, err
	}
	defer r.close()
	n, _, err := r.send(ctx, 0, nil)
	return n > 0, err
}

// dropPartition removes the rows of partitions.
func (a *alteration) dropPartition(ctx context.Context, c *ast.AlterCmd) error {
	for _, p := range c.Partitions {
		var cond []ast.Expr
		for _, v := range p {
			ok := false
			for _, k := range a.sch.PartitionKeys {
				ok = ok || k == v.Column.Name
			}
			if !ok {
				return errAt(a.text, v.Pos, pgerr.UndefinedColumn, "column %q is not a partition column of relation %q", v.Column.Name, a.rel.Name())
			}
			ref := &ast.ColumnRef{Loc: ast.At(v.Pos), Parts: ast.Name{v.Column}}
			if _, null := v.Value.(*ast.Null); null || v.Value == nil {
				cond = append(cond, &ast.Is{Loc: ast.At(v.Pos), Expr: ref, Kind: ast.IsNull})
				continue
			}
			cond = append(cond, &ast.Binary{Loc: ast.At(v.Pos), Op: ast.Operator{Name: "=", Pos: v.Pos}, Left: ref, Right: v.Value})
		}
		if len(cond) == 0 {
			return errAt(a.text, c.Pos, pgerr.SyntaxError, "a partition must be named")
		}
		where := cond[0]
		if len(cond) > 1 {
			where = &ast.AndOr{Loc: ast.At(c.Pos), Args: cond}
		}
		found, err := a.s.anyRow(ctx, a.rel, where, a.text)
		if err != nil {
			return err
		}
		if !found {
			if c.IfExists {
				continue
			}
			return errAt(a.text, c.Pos, pgerr.UndefinedObject, "partition of relation %q does not exist", a.rel.Name())
		}
		if sql, ok := a.emptyPartition(p); ok {
			stmts, err := parse(sql)
			if err == nil {
				err = a.s.runInside(ctx, stmts[0], sql)
			}
			if err != nil {
				return err
			}
			continue
		}
		name := ast.Name{{Name: a.rel.Schema(), Quoted: true}, {Name: a.rel.Name(), Quoted: true}}
		if err := a.s.runInside(ctx, &ast.Delete{Table: &ast.TableName{Name: name}, Where: where}, a.text); err != nil {
			return err
		}
	}
	return nil
}

// emptyPartition is the statement that takes the files of one partition away
// without reading them; ok is false when p does not name a single one.
func (a *alteration) emptyPartition(p []*ast.PartitionValue) (sql string, ok bool) {
	var values, rest []string
	for _, v := range p {
		if _, null := v.Value.(*ast.Null); null || v.Value == nil {
			return "", false
		}
		values = append(values, ast.QuoteIdent(v.Column.Name)+" = "+ast.Format(v.Value))
	}
	for _, f := range a.sch.Fields {
		if !slices.Contains(a.sch.PartitionKeys, f.Name) {
			rest = append(rest, f.Name)
		}
	}
	if len(p) != len(a.sch.PartitionKeys) || len(rest) == 0 {
		return "", false
	}
	t := ast.QuoteIdent(a.rel.Schema()) + "." + ast.QuoteIdent(a.rel.Name())
	return "INSERT OVERWRITE " + t + " PARTITION (" + strings.Join(values, ", ") + ") SELECT " + identList(rest) + " FROM " + t + " WHERE false", true
}
