package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog/objects"
	"github.com/paimon-sql/paimon-sql/catalog/systable"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// DefaultDatabase is the Paimon database that SQL calls schema public.
const DefaultDatabase = "default"

// PublicSchema is its SQL name.
const PublicSchema = "public"

const databaseSuffix = ".db"

// Filesystem is the catalog of a warehouse directory: databases are directories
// <name>.db, tables are directories below them that hold a schema file. Nothing
// is remembered that another engine may change: names are listed and schemas read
// anew, parsed files and open data files come from caches. Safe for concurrent
// use.
type Filesystem struct {
	env      *table.Env
	location string // as users see it
	objects  *objects.Store

	version atomic.Uint64

	ddl sync.Mutex // held while a name is taken or given up

	mu     sync.Mutex // guards all below
	stores map[string]*table.FileStore
	seen   map[string]seenSchema // by directory and branch
	names  map[string]string     // directory -> its listing, to notice changes
	listed schemaList

	listing warehouseListing
}

type seenSchema struct {
	first, latest *schema.Table
}

var _ Lister = (*Filesystem)(nil)

// NewFilesystem returns the catalog of env's warehouse. location is its path or
// URI, for messages and system tables.
func NewFilesystem(env *table.Env, location string) *Filesystem {
	c := &Filesystem{
		env: env, location: strings.TrimRight(location, "/"), objects: objects.NewStore(env.IO),
		stores: map[string]*table.FileStore{}, seen: map[string]seenSchema{}, names: map[string]string{},
	}
	c.objects.OnChange(func(*objects.State) { c.version.Add(1) })
	return c
}

// Env returns what the tables of the warehouse share.
func (c *Filesystem) Env() *table.Env { return c.env }

// Objects returns the store of what Paimon has no place for.
func (c *Filesystem) Objects() *objects.Store { return c.objects }

// Location returns the warehouse as users see it.
func (c *Filesystem) Location() string { return c.location }

// Version changes whenever this process noticed that names or schemas changed.
func (c *Filesystem) Version() uint64 { return c.version.Load() }

// Changed tells the catalog that this process changed names or schemas.
func (c *Filesystem) Changed() { c.version.Add(1) }

// DatabaseOf returns the Paimon database of an SQL schema.
func DatabaseOf(sqlSchema string) string {
	if sqlSchema == PublicSchema {
		return DefaultDatabase
	}
	return sqlSchema
}

// SchemaOf returns the SQL schema of a Paimon database.
func SchemaOf(database string) string {
	if database == DefaultDatabase {
		return PublicSchema
	}
	return database
}

// DatabaseDir returns a database's directory relative to the warehouse.
func DatabaseDir(database string) string { return database + databaseSuffix }

// maxFileName is the longest name of a file, in bytes, that file systems take.
const maxFileName = 255

// validName refuses what cannot be a directory name of the warehouse.
func validName(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) <= maxFileName && !strings.ContainsAny(s, "/\\\x00")
}

// schemaList is what Schemas found when the warehouse's directory was last
// modified at mod; zero = nothing that is settled.
type schemaList struct {
	mod   time.Time
	names []string
}

// Schemas lists the SQL schemas, public first.
func (c *Filesystem) Schemas(ctx context.Context) ([]string, error) {
	st, serr := c.env.IO.Stat(ctx, ".")
	c.mu.Lock()
	l := c.listed
	c.mu.Unlock()
	if serr == nil && !l.mod.IsZero() && l.mod.Equal(st.ModTime) {
		return slices.Clone(l.names), nil
	}
	began := time.Now()
	es, err := c.env.IO.List(ctx, "")
	if err != nil {
		return nil, err
	}
	out := []string{PublicSchema}
	for _, e := range es {
		if n, ok := strings.CutSuffix(e.Name, databaseSuffix); ok && e.Dir && n != "" && n != DefaultDatabase {
			out = append(out, n)
		}
	}
	c.notice("", out)
	l.mod = time.Time{}
	if serr == nil && fileio.Settled(st.ModTime, began) {
		l.mod, l.names = st.ModTime, slices.Clone(out)
	}
	c.mu.Lock()
	c.listed = l
	c.mu.Unlock()
	return out, nil
}

// tables lists the tables of an SQL schema in name order.
func (c *Filesystem) tables(ctx context.Context, sqlSchema string) ([]string, error) {
	db, err := c.database(ctx, sqlSchema)
	if err != nil {
		return nil, err
	}
	dir := DatabaseDir(db)
	es, err := c.env.IO.List(ctx, dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range es {
		if !e.Dir || strings.HasPrefix(e.Name, ".") {
			continue
		}
		ids, err := c.store(dir + "/" + e.Name).Schemas("").IDs(ctx)
		if err != nil {
			return nil, err
		}
		if len(ids) > 0 {
			out = append(out, e.Name)
		}
	}
	c.notice(dir, out)
	return out, nil
}

// notice compares a listing with the last one.
func (c *Filesystem) notice(dir string, names []string) {
	s := strings.Join(names, "\x00")
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.names[dir]; ok && old != s {
		c.version.Add(1)
	}
	c.names[dir] = s
}

// database returns the database of an SQL schema: the one of that name, else the
// only one whose name differs in case.
func (c *Filesystem) database(ctx context.Context, sqlSchema string) (string, error) {
	db := DatabaseOf(sqlSchema)
	if !validName(db) {
		return "", fmt.Errorf("schema %q: %w", sqlSchema, ErrNoSchema)
	}
	if db == DefaultDatabase {
		return db, nil // made when something is put there
	}
	if e, err := c.env.IO.Stat(ctx, DatabaseDir(db)); err == nil && e.Dir {
		return db, nil
	} else if err != nil && !errors.Is(err, fileio.ErrNotExist) {
		return "", err
	}
	all, err := c.Schemas(ctx)
	if err != nil {
		return "", err
	}
	if n, ok := foldMatch(all, db); ok {
		return DatabaseOf(n), nil
	}
	return "", fmt.Errorf("schema %q: %w", sqlSchema, ErrNoSchema)
}

// foldMatch returns the only name that equals s without regard to case.
func foldMatch(names []string, s string) (string, bool) {
	found, n := "", 0
	for _, x := range names {
		if strings.EqualFold(x, s) {
			found, n = x, n+1
		}
	}
	return found, n == 1
}

// store returns the table in a directory, open or not.
func (c *Filesystem) store(dir string) *table.FileStore {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.stores[dir]
	if !ok {
		s = table.Open(c.env, dir)
		c.stores[dir] = s
	}
	return s
}

// forget drops a directory's table: it was dropped or made anew.
func (c *Filesystem) forget(dir string) {
	c.mu.Lock()
	delete(c.stores, dir)
	for k := range c.seen {
		if k == dir || strings.HasPrefix(k, dir+"$") {
			delete(c.seen, k)
		}
	}
	c.mu.Unlock()
	c.version.Add(1)
}

// Find returns the database and the table directory that a name stands for.
func (c *Filesystem) Find(ctx context.Context, sqlSchema, name string) (db, tableName string, err error) {
	if db, err = c.database(ctx, sqlSchema); err != nil {
		return "", "", err
	}
	if !validName(name) {
		return "", "", fmt.Errorf("relation %q: %w", name, ErrNoRelation)
	}
	ids, err := c.store(DatabaseDir(db) + "/" + name).Schemas("").IDs(ctx)
	if err != nil {
		return "", "", err
	}
	if len(ids) > 0 {
		return db, name, nil
	}
	all, err := c.tables(ctx, SchemaOf(db))
	if err != nil {
		return "", "", err
	}
	if n, ok := foldMatch(all, name); ok {
		return db, n, nil
	}
	c.mu.Lock()
	_, known := c.seen[DatabaseDir(db)+"/"+name]
	c.mu.Unlock()
	if known {
		c.forget(DatabaseDir(db) + "/" + name)
	}
	return "", "", fmt.Errorf("relation %q: %w", name, ErrNoRelation)
}

// resolveTable is Resolve of what belongs to tables.
func (c *Filesystem) resolveTable(ctx context.Context, sqlSchema, name string, o ResolveOptions) (Relation, error) {
	base, branch, system, err := splitName(name)
	if err != nil {
		return nil, err
	}
	db, base, err := c.Find(ctx, sqlSchema, base)
	if err != nil {
		return nil, err
	}
	store, err := c.current(ctx, DatabaseDir(db)+"/"+base, branch)
	if err != nil {
		return nil, err
	}
	return c.relation(ctx, SchemaOf(db), base, branch, system, store, o)
}

// relation pins a table, or one of its system tables, to the state that o names.
func (c *Filesystem) relation(ctx context.Context, sqlName, base, branch, system string, store *table.FileStore, o ResolveOptions) (Relation, error) {
	at := o.At
	if branch != "" {
		at.Branch = branch
	}
	var err error
	if at.Kind == snapshot.Latest && at.ID == 0 {
		if at, err = stateOf(at, o.Dynamic); err != nil {
			return nil, err
		}
		if at.Kind != snapshot.Latest || at.ID != 0 {
			o.Overlay = nil
		}
	}
	changes := table.AsksChanges(o.Dynamic)
	if changes && at.Kind != snapshot.Latest {
		return nil, fmt.Errorf("a state of the table and a range of its changes cannot both be asked for")
	}
	at, err = store.Resolve(ctx, at)
	if errors.Is(err, schema.ErrNotFound) {
		return nil, fmt.Errorf("relation %q: %w", base, ErrNoRelation)
	}
	if err != nil {
		return nil, err
	}
	sch, err := store.Schema(ctx, at)
	if err != nil {
		return nil, dropped(base, err)
	}
	full := base
	if at.Branch != "" {
		full += "$branch_" + at.Branch
	}
	system = strings.ToLower(system)
	if !changes && system == "" {
		return newTableRelation(sqlName, full, store, sch, at, o), nil
	}
	if changes {
		o.Overlay = nil // what is not committed is in no range
	}
	var inc *table.Incremental
	switch system {
	case "", "audit_log", "binlog":
		if changes {
			if inc, err = store.Changes(ctx, at.Branch, schema.Options(sch.Options).With(o.Dynamic)); err != nil {
				return nil, err
			}
			inc.InOrder = system == "binlog"
		}
	case "ro":
		if changes {
			return nil, &fileio.UnsupportedError{Feature: "a range of changes of system table ro"}
		}
	case "row_tracking":
		if changes {
			return nil, &fileio.UnsupportedError{Feature: "a range of changes of system table row_tracking"}
		}
		if !schema.Options(sch.Options).Flag("row-tracking.enabled", false) {
			return nil, &fileio.UnsupportedError{Feature: "system table row_tracking of a table without row-tracking.enabled"}
		}
	default:
		return c.system(ctx, sqlName, full+"$"+system, system, store, sch, at, o.Until)
	}
	t := newTableRelation(sqlName, full, store, sch, at, o)
	t.incremental = inc
	switch system {
	case "audit_log", "binlog":
		return newAuditLog(t, full+"$"+system, system == "binlog"), nil
	case "ro":
		d := newDerived(t, full+"$ro")
		d.readOptimized = len(sch.PrimaryKeys) > 0
		return d, nil
	}
	if system == "row_tracking" {
		return newRowTracking(t, full+"$row_tracking"), nil
	}
	return newDerived(t, full), nil
}

// dropped is the error for a table whose schema went away between two looks.
func dropped(name string, err error) error {
	if errors.Is(err, schema.ErrNotFound) {
		return fmt.Errorf("relation %q: %w", name, ErrNoRelation)
	}
	return err
}

// SystemTables lists the names that may follow a table's name and $.
func SystemTables() []string {
	return append([]string{"audit_log", "binlog", "ro", "row_tracking"}, systable.Names()...)
}

// splitName cuts t, t$branch_b, t$snapshots and t$branch_b$snapshots.
func splitName(name string) (base, branch, system string, err error) {
	base, rest, ok := strings.Cut(name, "$")
	if !ok {
		return base, "", "", nil
	}
	if b, ok := strings.CutPrefix(rest, "branch_"); ok {
		branch, system, ok = strings.Cut(b, "$")
		if !validName(branch) || ok && system == "" {
			return "", "", "", fmt.Errorf("relation %q: %w", name, ErrNoRelation)
		}
		return base, branch, system, nil
	}
	if rest == "" {
		return "", "", "", fmt.Errorf("relation %q: %w", name, ErrNoRelation)
	}
	return base, "", rest, nil
}

// current returns the table of a directory, noticing when another process has
// made it anew or changed its schema.
func (c *Filesystem) current(ctx context.Context, dir, branch string) (*table.FileStore, error) {
	s := c.store(dir)
	sm := s.Schemas(branch)
	ids, err := sm.IDs(ctx)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("relation %q: %w", dir, ErrNoRelation)
	}
	first, err := sm.Get(ctx, ids[0])
	if err != nil {
		return nil, dropped(dir, err)
	}
	latest, err := sm.Get(ctx, ids[len(ids)-1])
	if err != nil {
		return nil, dropped(dir, err)
	}
	key := dir + "$" + branch
	c.mu.Lock()
	old, ok := c.seen[key]
	c.seen[key] = seenSchema{first, latest}
	c.mu.Unlock()
	switch {
	case !ok || old.latest == latest && old.first == first:
	case old.first != first && old.first.ID == first.ID:
		// Another table under the same name.
		c.forget(dir)
		return c.store(dir), nil
	default:
		c.version.Add(1)
	}
	return s, nil
}

// stateOptions are the options that name a state of a table.
var stateOptions = []string{"scan.snapshot-id", "scan.tag-name", "scan.version", "scan.timestamp-millis", "scan.timestamp"}

// HintsState reports whether the hint asks for a state of the table or for a range of its
// changes. Other hints only say how the rows are read.
func (o ResolveOptions) HintsState() bool {
	d := schema.Options(o.Dynamic)
	return table.AsksChanges(d) || slices.ContainsFunc(stateOptions, func(k string) bool { return d.String(k, "") != "" })
}

// stateOf applies the scan.* options of a hint.
func stateOf(at snapshot.Ref, dynamic map[string]string) (snapshot.Ref, error) {
	o := schema.Options(dynamic)
	n := 0
	for _, k := range stateOptions {
		v := o.String(k, "")
		if v == "" {
			continue
		}
		n++
		switch k {
		case "scan.tag-name":
			at.Kind, at.Name = snapshot.Tag, v
		case "scan.version":
			at.Kind, at.Name = snapshot.Version, v
		case "scan.timestamp":
			t, err := time.ParseInLocation("2006-01-02 15:04:05.999999999", v, time.UTC)
			if err != nil {
				return at, fmt.Errorf("option %q is %q, not a timestamp", k, v)
			}
			at.Kind, at.Millis = snapshot.AtTimestamp, t.UnixMilli()
		default:
			id, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				return at, fmt.Errorf("option %q is %q, not an integer", k, v)
			}
			if at.Kind, at.ID = snapshot.ID, id; k == "scan.timestamp-millis" {
				at.Kind, at.ID, at.Millis = snapshot.AtTimestamp, 0, id
			}
		}
	}
	if n > 1 {
		return at, fmt.Errorf("only one of scan.snapshot-id, scan.tag-name, scan.version and scan.timestamp may be set")
	}
	return at, nil
}

// system makes a system table of a table.
func (c *Filesystem) system(ctx context.Context, sqlSchema, name, system string, store *table.FileStore, sch *schema.Table, at snapshot.Ref, until int64) (Relation, error) {
	def, ok := systable.Lookup(system)
	if !ok {
		return nil, fmt.Errorf("relation %q: %w", name, ErrNoRelation)
	}
	snap, err := store.Snapshots(at.Branch).Resolve(ctx, at)
	if err != nil {
		return nil, err
	}
	src := &systable.Source{
		IO: c.env.IO, Root: store.Dir(), Location: c.location + "/" + store.Dir(), Branch: at.Branch,
		Schemas: store.Schemas(at.Branch), Snapshots: store.Snapshots(at.Branch), Manifests: c.env.Manifests,
		At: snap, Schema: sch, Until: until,
	}
	return NewSystem(sqlSchema, name, def.Fields, func(ctx context.Context, add func(...types.Datum)) error { return def.Fill(ctx, src, add) }), nil
}
