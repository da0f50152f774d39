package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/pgcatalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/storage/fileindex"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// CREATE INDEX and DROP INDEX change Paimon's file-index options, by which every writer
// of the table makes indexes, and the option that keeps the name (catalog.Index). Files
// that are there get theirs in the background once the transaction has committed.

const fileIndexOption = "file-index."

// checkIndexes refuses file-index options that no index can be made by.
func checkIndexes(options map[string]string, fields types.Schema) error {
	_, err := fileindex.Parse(options, fields)
	return indexError(err)
}

// indexError gives what is wrong with a file-index option its SQLSTATE.
func indexError(err error) error {
	var e *fileindex.OptionError
	if !errors.As(err, &e) {
		return err
	}
	return indexOptionError(e, err)
}

func indexOptionError(e *fileindex.OptionError, err error) *pgerr.Error {
	code := pgerr.InvalidParameterValue
	if e.Type {
		code = pgerr.DatatypeMismatch
	}
	return pgerr.Wrap(err, code, "%s", e.Error())
}

// runCreateIndex is CREATE INDEX.
func (s *Session) runCreateIndex(ctx context.Context, text string, st *ast.CreateIndex, out ResultSink) error {
	if st.Concurrently {
		if err := s.outsideBlock("CREATE INDEX CONCURRENTLY"); err != nil {
			return err
		}
	}
	kind, err := indexKind(text, st)
	if err != nil {
		return err
	}
	rel, err := s.tableToChange(ctx, text, st.Table.Name, lockExclusive)
	if err != nil {
		return err
	}
	if err := s.mayCreateIn(ctx, rel.Schema()); err != nil {
		return err
	}
	a, err := s.newAlteration(text, rel, out)
	if err != nil {
		return err
	}
	x := catalog.Index{Name: st.Name.Name, Kind: kind, Unique: st.Unique, Using: catalog.IndexUsing(st.Method.Name)}
	for _, e := range st.Elems {
		c, err := a.indexColumn(e)
		if err != nil {
			return err
		}
		if !slices.Contains(x.Columns, c) {
			x.Columns = append(x.Columns, c)
		}
	}
	taken := func(name string) bool {
		found, terr := s.relationOrIndex(ctx, rel.Schema(), name)
		if err == nil {
			err = terr
		}
		return found
	}
	if x.Name == "" {
		x.Name = catalog.FreeName(rel.Name(), x.NameColumns(), "idx", func(n string) bool { return taken(n) && err == nil })
	} else if taken(x.Name) && err == nil {
		if st.IfNotExists {
			s.notice(out, "NOTICE", pgerr.DuplicateTable, "relation %q already exists, skipping", x.Name)
			return nil
		}
		return pgerr.New(pgerr.DuplicateTable, "relation %q already exists", x.Name)
	}
	if err != nil {
		return err
	}
	if st.Unique {
		if err := a.uniqueIndex(st, x.Name); err != nil {
			return err
		}
	}
	if err := a.addIndex(st, &x); err != nil {
		return err
	}
	if err := a.stage(ctx); err != nil {
		return err
	}
	if store, ok := rel.Table().(*table.FileStore); ok && rel.Schema() != s.tempSchema() {
		s.tx.indexed = append(s.tx.indexed, indexedTable{keyOf(rel), store})
		if !s.eng.maint.working() {
			s.notice(out, "NOTICE", pgerr.SuccessfulCompletion, "files that exist get the index by CALL sys.rewrite_file_index('%s')",
				strings.ReplaceAll(rel.Schema()+"."+rel.Name(), "'", "''"))
		}
	}
	return nil
}

// indexedTable is a table whose existing files are to be indexed after the commit.
type indexedTable struct {
	key   tableKey
	store *table.FileStore
}

// indexKind is the kind of index that a statement asks for.
func indexKind(text string, st *ast.CreateIndex) (string, error) {
	unsupported := func(format string, args ...any) *pgerr.Error {
		return pgerr.New(pgerr.FeatureNotSupported, format, args...)
	}
	switch m := st.Method.Name; m {
	case "gin", "gist", "brin", "spgist":
		return "", unsupported("access method \"%s\" is not supported", m).
			WithHint("Indexes of data files are bloom, bitmap, bsi and range_bitmap (or btree).")
	}
	kind := catalog.IndexKind(st.Method.Name)
	switch {
	case kind == "":
		return "", pgerr.New(pgerr.UndefinedObject, "access method \"%s\" does not exist", st.Method.Name)
	case st.Where != nil:
		return "", unsupported("partial indexes are not supported")
	case len(st.Include) > 0:
		return "", unsupported("INCLUDE columns of an index are not supported")
	case st.Unique && (kind != "range-bitmap" || st.Method.Name == "range_bitmap"):
		return "", unsupported("access method \"%s\" does not support unique indexes", st.Method.Name)
	}
	return kind, checkStorage(text, ast.Ident{}, st.Tablespace)
}

// indexColumn is a column of an index as options name it: a column, or the values under
// a key of a map. Order and operator classes make no difference to a file index.
func (a *alteration) indexColumn(e *ast.IndexElem) (string, error) {
	name, key, keyed := e.Column.Name, "", false
	if e.Expr != nil {
		var of ast.Expr
		var at ast.Expr
		switch x := e.Expr.(type) {
		case *ast.Subscript:
			if !x.Slice {
				of, at = x.Expr, x.Index
			}
		case *ast.Binary:
			if x.Op.Name == "->" || x.Op.Name == "->>" {
				of, at = x.Left, x.Right
			}
		}
		ref, ok1 := of.(*ast.ColumnRef)
		k, ok2 := at.(*ast.String)
		if !ok1 || !ok2 || ref.Star || len(ref.Parts) != 1 {
			return "", errAt(a.text, e.Pos, pgerr.FeatureNotSupported, "indexes on expressions are not supported").
				WithHint("An index is on columns, or on the values under a key of a map: (m['key']).")
		}
		name, key, keyed = ref.Parts[0].Name, k.Value, true
	}
	i := a.sch.Fields.Index(name)
	if i < 0 {
		return "", errAt(a.text, e.Pos, pgerr.UndefinedColumn, "column %q does not exist", name)
	}
	if keyed && a.sch.Fields[i].Type.Kind != types.Map {
		return "", errAt(a.text, e.Pos, pgerr.FeatureNotSupported, "indexes on expressions are not supported")
	}
	if !keyed {
		key = ""
	}
	if strings.ContainsAny(name, ",.[]") || strings.ContainsAny(key, ",.[]") || name != strings.TrimSpace(name) || key != strings.TrimSpace(key) {
		// Options separate names by them.
		return "", errAt(a.text, e.Pos, pgerr.FeatureNotSupported, "an index on %q is not supported: its name has one of , . [ ] in it", name+key)
	}
	if keyed {
		return name + "[" + key + "]", nil
	}
	return name, nil
}

// uniqueIndex keeps a UNIQUE, which is not enforced.
func (a *alteration) uniqueIndex(st *ast.CreateIndex, name string) error {
	k := &ast.Constraint{Loc: st.Table.Loc, Kind: ast.ConstraintUnique, Name: ast.Ident{Name: name, Quoted: true}}
	for _, e := range st.Elems {
		if e.Expr != nil {
			return errAt(a.text, e.Pos, pgerr.FeatureNotSupported, "unique indexes on expressions are not supported")
		}
		k.Columns = append(k.Columns, e.Column)
	}
	if err := a.set.unique(k, k.Columns, a.sch.Fields); err != nil {
		return err
	}
	key, value := a.set.list[len(a.set.list)-1].Option()
	return a.do(&a.before, schema.SetOption{Key: key, Value: value})
}

// addIndex adds the options of an index.
func (a *alteration) addIndex(st *ast.CreateIndex, x *catalog.Index) error {
	columnsKey := fileIndexOption + x.Kind + ".columns"
	list := schema.Options(a.sch.Options).List(columnsKey)
	for _, c := range x.Columns {
		if !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	changes := []schema.Change{schema.SetOption{Key: columnsKey, Value: strings.Join(list, ",")}}
	for _, o := range st.Options {
		name := strings.ReplaceAll(strings.ToLower(o.Name), "_", "-")
		switch name {
		case "fillfactor", "fastupdate", "deduplicate-items", "buffering", "length":
			continue // of PostgreSQL's own methods
		}
		value, ok := "true", true
		if o.Value != nil {
			value, ok = optionValueText(o.Value)
		}
		if !ok {
			return errAt(a.text, o.Pos, pgerr.InvalidParameterValue, "invalid value for option %q", o.Name)
		}
		for _, c := range x.Columns {
			changes = append(changes, schema.SetOption{Key: fileIndexOption + x.Kind + "." + c + "." + name, Value: value})
		}
	}
	key, value := x.Option()
	// What is wrong with a column's type is told as that, before the schema's own check.
	next := map[string]string{}
	for k, v := range a.sch.Options {
		next[k] = v
	}
	for _, c := range changes {
		o := c.(schema.SetOption)
		next[o.Key] = o.Value
	}
	if err := checkIndexes(next, a.sch.Fields); err != nil {
		return err
	}
	return a.do(&a.before, append(changes, schema.SetOption{Key: key, Value: value})...)
}

// dropIndex removes the options of an index as far as no other index needs them.
func (a *alteration) dropIndex(x *catalog.Index) error {
	others := map[string]bool{}
	for _, y := range catalog.Indexes(a.rel.Name(), a.sch.Options) {
		if y.Name != x.Name && y.Kind == x.Kind {
			for _, c := range y.Columns {
				others[c] = true
			}
		}
	}
	var keep []string
	columnsKey := fileIndexOption + x.Kind + ".columns"
	for _, c := range schema.Options(a.sch.Options).List(columnsKey) {
		if others[c] || !slices.Contains(x.Columns, c) {
			keep = append(keep, c)
		}
	}
	var changes []schema.Change
	if len(keep) > 0 {
		changes = append(changes, schema.SetOption{Key: columnsKey, Value: strings.Join(keep, ",")})
	} else {
		changes = append(changes, schema.RemoveOption{Key: columnsKey})
	}
	for k := range a.sch.Options {
		rest, ok := strings.CutPrefix(k, fileIndexOption+x.Kind+".")
		if !ok || rest == "columns" {
			continue
		}
		i := strings.LastIndexByte(rest, '.')
		if i < 0 {
			continue
		}
		// Options of a whole map count for all of its keys.
		if c := rest[:i]; !slices.Contains(keep, c) && !slices.ContainsFunc(keep, func(s string) bool { return strings.HasPrefix(s, c+"[") }) {
			changes = append(changes, schema.RemoveOption{Key: k})
		}
	}
	if _, ok := a.sch.Options[catalog.IndexPrefix+x.Name]; ok {
		changes = append(changes, schema.RemoveOption{Key: catalog.IndexPrefix + x.Name})
	}
	if i := a.set.find(x.Name); x.Unique && i >= 0 {
		key, _ := a.set.list[i].Option()
		changes = append(changes, schema.RemoveOption{Key: key})
	}
	return a.do(&a.before, changes...)
}

// relationOrIndex reports whether a name of a schema is taken.
func (s *Session) relationOrIndex(ctx context.Context, schemaName, name string) (bool, error) {
	if exists, err := s.relationExists(ctx, schemaName, name); exists || err != nil {
		return exists, err
	}
	rel, _, _, err := s.indexIn(ctx, schemaName, name)
	return rel != nil, err
}

// indexIn finds the index of a name in a schema, and its table; nil when there is none.
// primary: it is the primary key's. Tables that cannot be read have none.
func (s *Session) indexIn(ctx context.Context, schemaName, name string) (rel catalog.TableInfo, x *catalog.Index, primary bool, err error) {
	tables, err := s.catalog().Tables(ctx, schemaName)
	if missing(err) || errors.Is(err, catalog.ErrNoSchema) {
		return nil, nil, false, nil
	}
	if err != nil {
		return nil, nil, false, err
	}
	for _, n := range tables {
		r, err := s.catalog().Resolve(ctx, schemaName, n, catalog.ResolveOptions{})
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return nil, nil, false, cause
			}
			continue
		}
		t, ok := r.(catalog.TableInfo)
		if !ok {
			continue
		}
		if len(t.PrimaryKey()) > 0 && pgcatalog.KeyName(t.Name()) == name {
			return t, nil, true, nil
		}
		for _, y := range catalog.Indexes(t.Name(), t.Options()) {
			if y.Name == name {
				return t, &y, false, nil
			}
		}
	}
	return nil, nil, false, nil
}

// findIndex finds an index as a statement names it; rel is nil when there is none.
func (s *Session) findIndex(ctx context.Context, n ast.Name) (rel catalog.TableInfo, x *catalog.Index, primary bool, err error) {
	schemas := s.searchPath(true)
	if len(n) > 1 {
		schemas = []string{n[len(n)-2].Name}
		if schemas[0] == "default" {
			schemas[0] = catalog.PublicSchema
		}
	}
	for _, sc := range schemas {
		if systemSchema(sc) {
			continue
		}
		if rel, x, primary, err = s.indexIn(ctx, sc, n.Last()); rel != nil || err != nil {
			return rel, x, primary, err
		}
	}
	return nil, nil, false, nil
}

// dropIndexes is DROP INDEX. Files keep their indexes until they are rewritten.
func (s *Session) dropIndexes(ctx context.Context, text string, st *ast.Drop, out ResultSink) error {
	if st.Concurrently {
		if err := s.outsideBlock("DROP INDEX CONCURRENTLY"); err != nil {
			return err
		}
	}
	for _, n := range st.Names {
		rel, x, primary, err := s.findIndex(ctx, n)
		switch {
		case err != nil:
			return err
		case rel == nil:
			if r, err := s.newResolver().Relation(ctx, n, resolveDefaults(s)); err == nil {
				return wrongKind(r, st.Kind)
			}
			if err := s.missingIndex(ctx, n, st.IfExists, out); err != nil {
				return err
			}
			continue
		case s.mustOwnToDrop(ctx, rel) != nil:
			return denied("must be owner of index %s", n.Last())
		case primary:
			return pgerr.New(pgerr.DependentObjectsStillExist, "cannot drop index %s because constraint %s on table %s requires it", n.Last(), n.Last(), rel.Name()).
				WithHint("You can drop constraint %s on table %s instead.", n.Last(), rel.Name())
		}
		name := ast.Name{{Name: rel.Schema(), Quoted: true}, {Name: rel.Name(), Quoted: true}}
		if rel, err = s.lockedTable(ctx, text, name, lockExclusive, s.mustOwnToDrop); err != nil {
			return err
		}
		a, err := s.newAlteration(text, rel, out)
		if err != nil {
			return err
		}
		if err := a.dropIndex(x); err != nil {
			return err
		}
		if err := a.stage(ctx); err != nil {
			return err
		}
	}
	return nil
}

// missingIndex is what is said of an index that is not there.
func (s *Session) missingIndex(ctx context.Context, n ast.Name, ifExists bool, out ResultSink) error {
	err := s.missingRelation(ctx, n, "index", ifExists, out)
	if pgerr.Is(err, pgerr.UndefinedTable) {
		return pgerr.New(pgerr.UndefinedObject, "index %q does not exist", n.Last())
	}
	return err
}

// renameIndex is ALTER INDEX ... RENAME TO.
func (s *Session) renameIndex(ctx context.Context, text string, st *ast.Rename, out ResultSink) error {
	rel, x, primary, err := s.findIndex(ctx, st.Object.Name)
	switch {
	case err != nil:
		return err
	case rel == nil:
		if st.IfExists {
			s.notice(out, "NOTICE", pgerr.SuccessfulCompletion, "relation %q does not exist, skipping", st.Object.Name.Last())
			return nil
		}
		return pgerr.New(pgerr.UndefinedTable, "relation %q does not exist", st.Object.Name.Last())
	case s.mustOwn(ctx, rel) != nil:
		return denied("must be owner of index %s", st.Object.Name.Last())
	case primary:
		return pgerr.New(pgerr.FeatureNotSupported, "the primary key's index cannot be renamed")
	}
	to := st.NewName.Name
	if found, err := s.relationOrIndex(ctx, rel.Schema(), to); err != nil {
		return err
	} else if found {
		return pgerr.New(pgerr.DuplicateTable, "relation %q already exists", to)
	}
	name := ast.Name{{Name: rel.Schema(), Quoted: true}, {Name: rel.Name(), Quoted: true}}
	if rel, err = s.tableToChange(ctx, text, name, lockExclusive); err != nil {
		return err
	}
	a, err := s.newAlteration(text, rel, out)
	if err != nil {
		return err
	}
	var changes []schema.Change
	if _, ok := a.sch.Options[catalog.IndexPrefix+x.Name]; ok {
		changes = append(changes, schema.RemoveOption{Key: catalog.IndexPrefix + x.Name})
	}
	if i := a.set.find(x.Name); x.Unique && i >= 0 {
		c := a.set.list[i]
		old, _ := c.Option()
		c.Name = to
		key, value := c.Option()
		changes = append(changes, schema.RemoveOption{Key: old}, schema.SetOption{Key: key, Value: value})
	}
	x.Name = to
	key, value := x.Option()
	if err := a.do(&a.before, append(changes, schema.SetOption{Key: key, Value: value})...); err != nil {
		return err
	}
	return a.stage(ctx)
}

// runReindex is REINDEX: the indexes of existing files are made anew.
func (s *Session) runReindex(ctx context.Context, st *ast.Reindex) (*running, error) {
	if err := s.outsideBlock("REINDEX"); err != nil {
		return nil, err
	}
	done := &running{tag: fixedTag("REINDEX")}
	one := func(rel catalog.TableInfo) error {
		store, ok := rel.Table().(*table.FileStore)
		if !ok || len(catalog.Indexes(rel.Name(), rel.Options())) == 0 {
			return nil
		}
		return s.reindex(ctx, rel, store)
	}
	switch st.Kind {
	case "SYSTEM":
		return done, nil
	case "INDEX":
		rel, _, _, err := s.findIndex(ctx, st.Name)
		if err != nil {
			return nil, err
		}
		if rel == nil {
			return nil, pgerr.New(pgerr.UndefinedTable, "relation %q does not exist", st.Name.Last())
		}
		if s.mustOwn(ctx, rel) != nil {
			return nil, denied("must be owner of index %s", st.Name.Last())
		}
		return done, one(rel)
	case "TABLE":
		rel, err := s.newResolver().Relation(ctx, st.Name, resolveDefaults(s))
		if err != nil {
			return nil, err
		}
		t, ok := rel.(catalog.TableInfo)
		if !ok {
			return nil, pgerr.New(pgerr.WrongObjectType, "%q is not a table or materialized view", rel.Name())
		}
		if err := s.mustOwn(ctx, rel); err != nil {
			return nil, err
		}
		return done, one(t)
	}
	schemas := []string{st.Name.Last()}
	if st.Kind == "DATABASE" {
		var err error
		if err = s.mustOwnDatabase(ctx); err != nil {
			return nil, err
		}
		if schemas, err = s.catalog().Schemas(ctx); err != nil {
			return nil, err
		}
	} else if name, ok := s.schemaExists(ctx, schemas[0]); ok {
		schemas[0] = name
		if err := s.mustOwnSchema(ctx, name); err != nil {
			return nil, err
		}
	} else {
		return nil, pgerr.New(pgerr.InvalidSchemaName, "schema %q does not exist", schemas[0])
	}
	for _, sc := range schemas {
		tables, err := s.catalog().Tables(ctx, sc)
		if err != nil {
			return nil, err
		}
		for _, n := range tables {
			rel, err := s.catalog().Resolve(ctx, sc, n, catalog.ResolveOptions{})
			if err != nil {
				continue // it is gone, or nothing that has indexes here
			}
			if t, ok := rel.(catalog.TableInfo); ok {
				if err := one(t); err != nil {
					return nil, err
				}
			}
		}
	}
	return done, nil
}

// reindex makes all indexes of a table anew.
func (s *Session) reindex(ctx context.Context, rel catalog.TableInfo, store *table.FileStore) error {
	acc := s.eng.root.Child("work_mem", s.set.use().workMem)
	defer acc.Close()
	shown := s.eng.maint.track(s.pid, rel.Schema()+"."+rel.Name(), rel.OID())
	defer shown.end()
	key := keyOf(rel)
	_, err := store.RewriteIndexes(ctx, table.IndexOptions{
		Branch: key.branch, Anew: true, Account: acc, Progress: shown.progress, Throttle: shown.throttle(nil),
		Publish: func(ctx context.Context) (func(), error) { return shown.publishing(s.eng.lockFiles(ctx, key)) },
	})
	return err
}
