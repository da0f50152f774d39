package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/paimon-sql/paimon-sql/catalog/objects"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// Staged is the catalog as one transaction sees it: edits go to a log, the
// session's own look-ups see their outcome, and nobody else does until Apply
// performs them on the base.
//
// Rows of a table that the transaction made are written to a private directory
// at the top of the warehouse, which no engine takes for a table; Apply renames
// it. So a table that replaces one of its own name shares no file with it, and two
// transactions that make tables of one name do not meet before one of them wins.
// What the transaction writes is known by FileStore.Dir, which Apply may change:
// Final returns the store to commit with.
//
// Safe for concurrent use by the tasks of one session.
type Staged struct {
	base *Filesystem

	// Written reports whether the transaction wrote rows to a table: options that
	// data depends on are fixed from then on. nil = it wrote none.
	Written func(dir string) bool

	version uint64 // of this transaction, in the high bits

	mu    sync.Mutex // guards all below
	edits uint64
	view  *stagedView
	log   []stagedOp
	made  []*stagedID       // every table ever made, for Discard
	final map[string]string // after Apply: where tables are, by where they were

	listing stagedListing
}

// stagedListing is the newest listing of a transaction and what it was made from.
type stagedListing struct {
	base  *Listing
	edits uint64
	out   *Listing
}

var (
	_ Lister = (*Staged)(nil)
	_ Editor = (*Staged)(nil)
)

var stagedCounter atomic.Uint64

// NewStaged starts a transaction's catalog over base.
func NewStaged(base *Filesystem) *Staged {
	return &Staged{base: base, version: stagedCounter.Add(1) << 40, view: &stagedView{}, final: map[string]string{}}
}

// stagedView is what the transaction sees that the base does not. Immutable: each
// edit makes a new one, so that a savepoint is a pointer.
type stagedView struct {
	databases map[string]databaseState
	tables    map[string]*stagedTable // by "db.db/name"; nil = there is none
	objects   []objects.Change        // over those of the base; appended to, never changed
}

type databaseState uint8

const (
	databaseMade    databaseState = iota + 1 // whatever the base holds in it is hidden
	databaseDropped                          // hidden whole
)

// stagedID is a table's identity through renames and alterations.
type stagedID struct {
	dir  string // where its files are until Apply
	made bool   // by this transaction
}

// stagedTable is one state of a table that the transaction made, altered or
// renamed.
type stagedTable struct {
	id    *stagedID
	store *table.FileStore
	// schemas are the versions staged, in order; base is the version of the base
	// that the first of each branch follows.
	schemas []stagedSchema
}

type stagedSchema struct {
	branch string
	base   *schema.Table // nil: the table is made
	table  *schema.Table
}

func (v *stagedView) clone() *stagedView {
	out := &stagedView{maps.Clone(v.databases), maps.Clone(v.tables), v.objects}
	if out.databases == nil {
		out.databases = map[string]databaseState{}
	}
	if out.tables == nil {
		out.tables = map[string]*stagedTable{}
	}
	return out
}

type opKind uint8

const (
	opCreateSchema opKind = iota
	opDropSchema
	opCreateTable
	opAlterTable
	opRenameTable
	opDropTable
	opObjects
)

// stagedOp is one edit. Names are SQL names as they were at the time.
type stagedOp struct {
	kind               opKind
	before             *stagedView
	sqlSchema, name    string
	newSchema, newName string
	cascade            bool
	props              map[string]string
	table              *stagedTable // after the edit; before it, for drops
	gone               []*stagedID  // made tables that a drop ends
	objects            []objects.Change
}

func (o *stagedOp) String() string {
	switch o.kind {
	case opCreateSchema:
		return "CREATE SCHEMA " + o.name
	case opDropSchema:
		return "DROP SCHEMA " + o.name
	case opCreateTable:
		return "CREATE TABLE " + o.sqlSchema + "." + o.name
	case opAlterTable:
		return "ALTER TABLE " + o.sqlSchema + "." + o.name
	case opRenameTable:
		return "ALTER TABLE " + o.sqlSchema + "." + o.name + " RENAME TO " + o.newSchema + "." + o.newName
	case opObjects:
		return "changes of views and sequences"
	}
	return "DROP TABLE " + o.sqlSchema + "." + o.name
}

// push records an edit.
func (s *Staged) push(op stagedOp, after *stagedView) {
	op.before = s.view
	s.log = append(s.log, op)
	s.view = after
	s.edits++
}

// HasChanges reports whether there is anything to apply.
func (s *Staged) HasChanges() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.log) > 0
}

// Changed reports whether the transaction made, altered or renamed the table that
// has this name now.
func (s *Staged) Changed(sqlSchema, name string) bool {
	s.mu.Lock()
	v := s.view
	s.mu.Unlock()
	base, _, _, err := splitName(name)
	return err == nil && v.tables[DatabaseDir(DatabaseOf(sqlSchema))+"/"+base] != nil
}

// Mark returns a savepoint.
func (s *Staged) Mark() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.log)
}

// RollbackTo undoes the edits made since a savepoint.
func (s *Staged) RollbackTo(mark int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mark < 0 || mark >= len(s.log) {
		return
	}
	s.view = s.log[mark].before
	clear(s.log[mark:])
	s.log = s.log[:mark]
	s.edits++
}

// Version differs from every version of the base and of other transactions as long
// as there are edits.
func (s *Staged) Version() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.edits == 0 {
		return s.base.Version()
	}
	return s.version + s.edits<<24 + s.base.Version()&(1<<24-1)
}

// Edits counts the edits and their undoings: what was resolved at another count may
// have another definition now. It is 0 for nil.
func (s *Staged) Edits() uint64 {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.edits
}

func (s *Staged) now() *stagedView {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view
}

// Schemas lists the SQL schemas.
func (s *Staged) Schemas(ctx context.Context) ([]string, error) {
	v := s.now()
	all, err := s.base.Schemas(ctx)
	if err != nil || len(v.databases) == 0 {
		return all, err
	}
	all = slices.DeleteFunc(all, func(n string) bool { return v.databases[DatabaseOf(n)] == databaseDropped })
	for db, st := range v.databases {
		if st == databaseMade && !slices.Contains(all, SchemaOf(db)) {
			all = append(all, SchemaOf(db))
		}
	}
	slices.SortFunc(all[1:], strings.Compare) // public is first, and always there
	return all, nil
}

// List implements Lister.
func (s *Staged) List(ctx context.Context, namesOnly bool) (*Listing, error) {
	base, err := s.base.List(ctx, namesOnly)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	v, edits, last := s.view, s.edits, s.listing
	s.mu.Unlock()
	if len(v.databases) == 0 && len(v.tables) == 0 && len(v.objects) == 0 {
		return base, nil
	}
	if last.base == base && last.edits == edits {
		return last.out, nil
	}
	schemas, err := s.Schemas(ctx)
	if err != nil {
		return nil, err
	}
	st, err := s.State(ctx)
	if err != nil {
		return nil, err
	}
	more := objectRelations(st, s.base.objects)
	rels := map[string][]Relation{}
	for _, n := range schemas {
		dir := DatabaseDir(DatabaseOf(n)) + "/"
		var tables []Relation
		if v.databases[DatabaseOf(n)] != databaseMade {
			for _, r := range base.Relations(n) {
				if _, ok := v.tables[dir+r.Name()]; !ok && r.Kind() == 'r' {
					tables = append(tables, r)
				}
			}
		}
		for k, t := range v.tables {
			if name, ok := strings.CutPrefix(k, dir); ok && t != nil {
				r, err := s.base.relation(ctx, n, name, "", "", t.store, ResolveOptions{})
				if err != nil {
					return nil, err
				}
				tables = append(tables, r)
			}
		}
		slices.SortFunc(tables, func(a, b Relation) int { return strings.Compare(a.Name(), b.Name()) })
		rels[n] = mergeRelations(tables, more[n])
	}
	out := newListing(schemas, rels)
	s.mu.Lock()
	s.listing = stagedListing{base, edits, out}
	s.mu.Unlock()
	return out, nil
}

// database finds the database of an SQL schema, and whether the base's tables in
// it are hidden.
func (s *Staged) database(ctx context.Context, v *stagedView, sqlSchema string) (db string, hidden bool, err error) {
	db = DatabaseOf(sqlSchema)
	switch v.databases[db] {
	case databaseMade:
		return db, true, nil
	case databaseDropped:
		return "", false, fmt.Errorf("schema %q: %w", sqlSchema, ErrNoSchema)
	}
	if db, err = s.base.database(ctx, sqlSchema); err == nil && v.databases[db] == 0 {
		return db, false, nil
	}
	if err != nil && !errors.Is(err, ErrNoSchema) {
		return "", false, err
	}
	all, err := s.Schemas(ctx)
	if err != nil {
		return "", false, err
	}
	if n, ok := foldMatch(all, sqlSchema); ok {
		db = DatabaseOf(n)
		return db, v.databases[db] == databaseMade, nil
	}
	return "", false, fmt.Errorf("schema %q: %w", sqlSchema, ErrNoSchema)
}

// Tables lists the relations of an SQL schema in name order.
func (s *Staged) Tables(ctx context.Context, sqlSchema string) ([]string, error) {
	v := s.now()
	db, hidden, err := s.database(ctx, v, sqlSchema)
	if err != nil {
		return nil, err
	}
	return s.relationsOf(ctx, v, db, hidden)
}

func (s *Staged) relationsOf(ctx context.Context, v *stagedView, db string, hidden bool) ([]string, error) {
	tables, err := s.tablesOf(ctx, v, db, hidden)
	if err != nil {
		return nil, err
	}
	st, err := s.State(ctx)
	if err != nil {
		return nil, err
	}
	return withObjects(st, SchemaOf(db), tables), nil
}

func (s *Staged) tablesOf(ctx context.Context, v *stagedView, db string, hidden bool) ([]string, error) {
	var all []string
	if !hidden {
		var err error
		if all, err = s.base.tables(ctx, SchemaOf(db)); err != nil {
			return nil, err
		}
	}
	dir := DatabaseDir(db) + "/"
	all = slices.DeleteFunc(all, func(n string) bool { _, ok := v.tables[dir+n]; return ok })
	for k, t := range v.tables {
		if n, ok := strings.CutPrefix(k, dir); ok && t != nil {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all, nil
}

// find returns the table that a name stands for; t is nil when it is the base's
// own, untouched.
func (s *Staged) find(ctx context.Context, v *stagedView, sqlSchema, name string) (db, found string, t *stagedTable, err error) {
	db, hidden, err := s.database(ctx, v, sqlSchema)
	if err != nil {
		return "", "", nil, err
	}
	none := fmt.Errorf("relation %q: %w", name, ErrNoRelation)
	if !validName(name) {
		return "", "", nil, none
	}
	ok, t, err := s.exact(ctx, v, db, hidden, name)
	if err != nil || ok {
		return db, name, t, err
	}
	all, err := s.tablesOf(ctx, v, db, hidden)
	if err != nil {
		return "", "", nil, err
	}
	if n, ok := foldMatch(all, name); ok {
		return db, n, v.tables[DatabaseDir(db)+"/"+n], nil
	}
	return "", "", nil, none
}

// exact looks a table up by its very name.
func (s *Staged) exact(ctx context.Context, v *stagedView, db string, hidden bool, name string) (bool, *stagedTable, error) {
	dir := DatabaseDir(db) + "/" + name
	if t, ok := v.tables[dir]; ok {
		return t != nil, t, nil
	}
	if hidden {
		return false, nil, nil
	}
	ids, err := s.base.store(dir).Schemas("").IDs(ctx)
	return len(ids) > 0, nil, err
}

// Resolve finds a relation as the transaction sees it.
func (s *Staged) Resolve(ctx context.Context, sqlSchema, name string, o ResolveOptions) (Relation, error) {
	rel, err := s.resolveTable(ctx, sqlSchema, name, o)
	if !errors.Is(err, ErrNoRelation) || strings.Contains(name, "$") {
		return rel, err
	}
	db, _, dberr := s.database(ctx, s.now(), sqlSchema)
	if dberr != nil {
		return nil, err
	}
	st, serr := s.State(ctx)
	if serr != nil {
		return nil, serr
	}
	return objectOf(st, s.base.objects, SchemaOf(db), name)
}

func (s *Staged) resolveTable(ctx context.Context, sqlSchema, name string, o ResolveOptions) (Relation, error) {
	v := s.now()
	if len(v.databases) == 0 && len(v.tables) == 0 {
		return s.base.resolveTable(ctx, sqlSchema, name, o)
	}
	base, branch, system, err := splitName(name)
	if err != nil {
		return nil, err
	}
	db, base, t, err := s.find(ctx, v, sqlSchema, base)
	if err != nil {
		return nil, err
	}
	store := (*table.FileStore)(nil)
	if t != nil {
		store = t.store
		ids, err := store.Schemas(branch).IDs(ctx)
		if err != nil {
			return nil, err
		}
		if len(ids) == 0 {
			return nil, fmt.Errorf("relation %q: %w", name, ErrNoRelation)
		}
	} else if store, err = s.base.current(ctx, DatabaseDir(db)+"/"+base, branch); err != nil {
		return nil, err
	}
	return s.base.relation(ctx, SchemaOf(db), base, branch, system, store, o)
}

// CreateSchema stages a schema.
func (s *Staged) CreateSchema(ctx context.Context, name string, props map[string]string) error {
	if err := checkNewSchema(name, props); err != nil {
		return err
	}
	v := s.now()
	exists := fmt.Errorf("schema %q: %w", name, ErrSchemaExists)
	switch v.databases[name] {
	case databaseMade:
		return exists
	case 0:
		if _, err := s.base.env.IO.Stat(ctx, DatabaseDir(name)); err == nil {
			return exists
		} else if !errors.Is(err, fileio.ErrNotExist) {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	after := s.view.clone()
	after.databases[name] = databaseMade
	s.push(stagedOp{kind: opCreateSchema, name: name, props: props}, after)
	return nil
}

// DropSchema stages the end of a schema.
func (s *Staged) DropSchema(ctx context.Context, name string, cascade bool) error {
	if name == PublicSchema || name == DefaultDatabase || reservedSchema(name) {
		return fmt.Errorf("schema %q: %w: it cannot be dropped", name, ErrReserved)
	}
	v := s.now()
	db, hidden, err := s.database(ctx, v, name)
	if err != nil {
		return err
	}
	names, err := s.relationsOf(ctx, v, db, hidden)
	if err != nil {
		return err
	}
	if len(names) > 0 && !cascade {
		return fmt.Errorf("schema %q: %w", name, ErrNotEmpty)
	}
	if err := s.dropObjects(ctx, SchemaOf(db)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	after := s.view.clone()
	after.databases[db] = databaseDropped
	op := stagedOp{kind: opDropSchema, name: SchemaOf(db), cascade: cascade}
	for k, t := range after.tables {
		if strings.HasPrefix(k, DatabaseDir(db)+"/") {
			if t != nil && t.id.made {
				op.gone = append(op.gone, t.id)
			}
			delete(after.tables, k)
		}
	}
	s.push(op, after)
	return nil
}

// free checks that a new table can have a name.
func (s *Staged) free(ctx context.Context, v *stagedView, sqlSchema, name string) (db string, err error) {
	if err := newName("relation", name); err != nil {
		return "", err
	}
	if reservedSchema(sqlSchema) {
		return "", fmt.Errorf("schema %q: %w", sqlSchema, ErrReserved)
	}
	db, hidden, err := s.database(ctx, v, sqlSchema)
	if err != nil {
		return "", err
	}
	ok, _, err := s.exact(ctx, v, db, hidden, name)
	if err == nil && ok {
		err = fmt.Errorf("relation %q: %w", name, ErrRelationExists)
	}
	if err == nil {
		err = s.freeName(ctx, SchemaOf(db), name)
	}
	return db, err
}

// CreateTable stages a table; rows may be written to the store of the relation
// that Resolve returns for it.
func (s *Staged) CreateTable(ctx context.Context, sqlSchema, name string, def *schema.Table) error {
	t, err := Define(def)
	if err != nil {
		return err
	}
	db, err := s.free(ctx, s.now(), sqlSchema, name)
	if err != nil {
		return err
	}
	id := &stagedID{dir: stagingDir + "/" + privateName(), made: true}
	st := s.state(id, []stagedSchema{{table: t}})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made = append(s.made, id)
	after := s.view.clone()
	after.tables[DatabaseDir(db)+"/"+name] = st
	s.push(stagedOp{kind: opCreateTable, sqlSchema: SchemaOf(db), name: name, table: st}, after)
	return nil
}

// state opens a store of a table's files with schemas that are not on disk.
func (s *Staged) state(id *stagedID, schemas []stagedSchema) *stagedTable {
	t := &stagedTable{id: id, schemas: schemas, store: table.Open(s.base.env, id.dir)}
	for _, x := range schemas {
		t.store.Schemas(x.branch).Stage(x.table)
	}
	return t
}

// own returns a state of a table to go on from, whoever made it.
func (s *Staged) own(db, name string, t *stagedTable) *stagedTable {
	if t != nil {
		return t
	}
	return s.state(&stagedID{dir: DatabaseDir(db) + "/" + name}, nil)
}

// target finds the table of an edit.
func (s *Staged) target(ctx context.Context, v *stagedView, sqlSchema, name string, branches bool) (db, base, branch string, t *stagedTable, err error) {
	if reservedSchema(sqlSchema) {
		return "", "", "", nil, fmt.Errorf("schema %q: %w", sqlSchema, ErrReserved)
	}
	base, branch, system, err := splitName(name)
	if err != nil {
		return "", "", "", nil, err
	}
	if db, base, t, err = s.find(ctx, v, sqlSchema, base); err != nil {
		return "", "", "", nil, err
	}
	if system != "" || branch != "" && !branches {
		return "", "", "", nil, fmt.Errorf("relation %q: %w: it is part of another table", name, ErrReserved)
	}
	return db, base, branch, t, nil
}

// AlterTable stages a schema version. It is exact: Apply publishes this version or
// none.
func (s *Staged) AlterTable(ctx context.Context, sqlSchema, name string, changes []schema.Change) error {
	v := s.now()
	db, base, branch, t, err := s.target(ctx, v, sqlSchema, name, true)
	if err != nil {
		return err
	}
	t = s.own(db, base, t)
	old, err := t.store.Schemas(branch).Latest(ctx)
	if err != nil {
		return dropped(name, err)
	}
	latest, err := t.store.Snapshots(branch).LatestID(ctx)
	if err != nil {
		return err
	}
	next, err := schema.Apply(old, changes, latest > 0 || s.Written != nil && s.Written(t.id.dir))
	if err != nil {
		return err
	}
	if !t.id.made {
		if err := s.base.checkBranches(ctx, t.id.dir, next); err != nil {
			return err
		}
	}
	x := stagedSchema{branch: branch, table: next}
	if !slices.ContainsFunc(t.schemas, func(y stagedSchema) bool { return y.branch == branch }) {
		x.base = old
	}
	t = s.state(t.id, append(slices.Clone(t.schemas), x))
	s.mu.Lock()
	defer s.mu.Unlock()
	after := s.view.clone()
	after.tables[DatabaseDir(db)+"/"+base] = t
	s.push(stagedOp{kind: opAlterTable, sqlSchema: SchemaOf(db), name: base, table: t}, after)
	return nil
}

// RenameTable stages another name for a table.
func (s *Staged) RenameTable(ctx context.Context, sqlSchema, name, newSchema, newName string) error {
	v := s.now()
	db, base, _, t, err := s.target(ctx, v, sqlSchema, name, false)
	if err != nil {
		return err
	}
	newDB, err := s.free(ctx, v, newSchema, newName)
	if err != nil {
		return err
	}
	if err := s.follow(ctx, SchemaOf(db), base, SchemaOf(newDB), newName); err != nil {
		return err
	}
	t = s.own(db, base, t)
	s.mu.Lock()
	defer s.mu.Unlock()
	after := s.view.clone()
	after.tables[DatabaseDir(db)+"/"+base] = nil
	after.tables[DatabaseDir(newDB)+"/"+newName] = t
	s.push(stagedOp{kind: opRenameTable, sqlSchema: SchemaOf(db), name: base, newSchema: SchemaOf(newDB), newName: newName, table: t}, after)
	return nil
}

// DropTable stages the end of a table.
func (s *Staged) DropTable(ctx context.Context, sqlSchema, name string) error {
	db, base, _, t, err := s.target(ctx, s.now(), sqlSchema, name, false)
	if err != nil {
		return err
	}
	if err := s.follow(ctx, SchemaOf(db), base, "", ""); err != nil {
		return err
	}
	t = s.own(db, base, t)
	s.mu.Lock()
	defer s.mu.Unlock()
	after := s.view.clone()
	after.tables[DatabaseDir(db)+"/"+base] = nil
	op := stagedOp{kind: opDropTable, sqlSchema: SchemaOf(db), name: base, table: t}
	if t.id.made {
		op.gone = append(op.gone, t.id)
	}
	s.push(op, after)
	return nil
}
