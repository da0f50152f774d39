package catalog

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/paimon-sql/paimon-sql/catalog/objects"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// Listing is what a catalog held at one time: relations by schema, name and OID,
// without system tables. Its tables are *ListedTable or pinned relations. Immutable.
type Listing struct {
	schemas []string
	rels    map[string][]Relation // by SQL schema, in name order
	byOID   map[uint32]Relation
	size    ListingSize

	derive sync.Once
	extra  any
}

// ListingSize is what a listing holds.
type ListingSize struct {
	Relations, Columns, Keys, Sequences int64
}

func newListing(schemas []string, rels map[string][]Relation) *Listing {
	l := &Listing{schemas: schemas, rels: rels, byOID: map[uint32]Relation{}}
	for _, s := range schemas {
		for _, r := range rels[s] {
			l.byOID[r.OID()] = r
			l.size.Relations++
			if t, ok := r.(TableInfo); ok && len(t.PrimaryKey()) > 0 {
				l.size.Keys++
			}
			switch r := r.(type) {
			case *ListedTable:
				l.size.Columns += int64(r.columns)
			case *SequenceRelation:
				l.size.Sequences++
			default:
				l.size.Columns += int64(len(r.Columns()))
			}
		}
	}
	return l
}

// Size counts what there is.
func (l *Listing) Size() ListingSize { return l.size }

// Schemas are the SQL schemas; not to be changed.
func (l *Listing) Schemas() []string { return l.schemas }

// Relations are those of an SQL schema in name order; not to be changed.
func (l *Listing) Relations(sqlSchema string) []Relation { return l.rels[sqlSchema] }

// ByOID finds the relation of an OID, nil when there is none.
func (l *Listing) ByOID(oid uint32) Relation { return l.byOID[oid] }

// Find finds a relation by its very name, nil when there is none.
func (l *Listing) Find(sqlSchema, name string) Relation {
	rels := l.rels[sqlSchema]
	i, ok := slices.BinarySearchFunc(rels, name, func(r Relation, n string) int { return cmp.Compare(r.Name(), n) })
	if !ok {
		return nil
	}
	return rels[i]
}

// Derived is what make made of the listing when it was called first. There is one
// user of it: package pgcatalog.
func (l *Listing) Derived(make func() any) any {
	l.derive.Do(func() { l.extra = make() })
	return l.extra
}

// Beside is l with another listing's schemas after its own.
func (l *Listing) Beside(o *Listing) *Listing {
	rels := make(map[string][]Relation, len(l.rels)+len(o.rels))
	schemas := slices.Clone(l.schemas)
	for _, s := range l.schemas {
		rels[s] = l.rels[s]
	}
	for _, s := range o.schemas {
		if len(o.rels[s]) == 0 && s == PublicSchema {
			continue
		}
		if !slices.Contains(schemas, s) {
			schemas = append(schemas, s)
		}
		rels[s] = o.rels[s]
	}
	return newListing(schemas, rels)
}

// Lister is a Catalog that lists relations without pinning each to a state.
type Lister interface {
	Catalog
	// List returns what the catalog holds now. A relation that cannot be read, because
	// its schema file is damaged, is left out: a broken table must not take the others
	// away. As long as nothing changes the listing is the same one.
	//
	// With namesOnly the relations are those that exist now, but what is known of their
	// columns, options and comments may be of an earlier call: no table is looked at
	// that was there before.
	List(ctx context.Context, namesOnly bool) (*Listing, error)
}

// List lists the relations of any catalog.
func List(ctx context.Context, c Catalog, namesOnly bool) (*Listing, error) {
	if l, ok := c.(Lister); ok {
		return l.List(ctx, namesOnly)
	}
	schemas, err := c.Schemas(ctx)
	if err != nil {
		return nil, err
	}
	rels := map[string][]Relation{}
	for _, s := range schemas {
		names, err := c.Tables(ctx, s)
		if errors.Is(err, ErrNoSchema) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			if r, err := c.Resolve(ctx, s, n, ResolveOptions{}); err == nil {
				rels[s] = append(rels[s], r)
			} else if cause := context.Cause(ctx); cause != nil {
				return nil, cause
			}
		}
	}
	return newListing(schemas, rels), nil
}

// warehouseListing is the newest listing of a warehouse and what tells that it still
// holds: the times at which directories were modified last.
type warehouseListing struct {
	look sync.Mutex // held while the warehouse is looked through; guards all below

	databases map[string]*listedDatabase // by SQL schema
	schemas   []string
	state     *objects.State
	objects   map[string][]Relation // of state, by SQL schema
	out       *Listing
	began     time.Time // when the last whole look began
	named     time.Time // when the last look began, whole or at names only
	version   uint64    // of the catalog, then

	last atomic.Pointer[Listing] // out, for who does not wait

	columns *fileio.LRU[*ListedTable, *TableRelation]
}

type listedDatabase struct {
	mod    time.Time // zero = not settled
	dirs   []string  // that may be tables
	tables map[string]*listedEntry
}

type listedEntry struct {
	mod   time.Time // of the schema directory; zero = not settled
	file  fileio.Entry
	table *ListedTable // nil: no table, or one that cannot be read
}

// listingAge is how old a listing may be on an object store, where directories have
// no time that would tell of a change. What this process changes is seen at once.
const listingAge = 5 * time.Second

// listedColumns bounds the columns of listed tables that are kept in memory.
const listedColumns = 200_000

// Listed is the newest listing that somebody asked for, nil for none: without a look
// at the warehouse.
func (c *Filesystem) Listed() *Listing { return c.listing.last.Load() }

// List looks through the warehouse: on a file system, at the times of the databases'
// directories and of the tables' schema directories, reading what changed.
func (c *Filesystem) List(ctx context.Context, namesOnly bool) (*Listing, error) {
	asked := time.Now()
	w := &c.listing
	w.look.Lock()
	defer w.look.Unlock()
	if w.out != nil && (w.began.After(asked) || namesOnly && w.named.After(asked)) {
		return w.out, nil // whoever held the lock looked after this call began
	}
	began, version := time.Now(), c.Version()
	root, err := c.env.IO.Stat(ctx, ".")
	timeless := err != nil || root.ModTime.IsZero()
	if timeless && w.out != nil && w.version == version && began.Sub(w.began) < listingAge {
		return w.out, nil
	}
	schemas, err := c.Schemas(ctx)
	if err != nil {
		return nil, err
	}
	if w.databases == nil {
		w.databases = map[string]*listedDatabase{}
		w.columns = fileio.NewLRU[*ListedTable, *TableRelation](listedColumns, nil)
	}
	changed := w.out == nil || !slices.Equal(w.schemas, schemas)
	for s := range w.databases {
		if !slices.Contains(schemas, s) {
			delete(w.databases, s)
		}
	}
	for _, s := range schemas {
		d := w.databases[s]
		if d == nil {
			d = &listedDatabase{tables: map[string]*listedEntry{}}
			w.databases[s] = d
		}
		ch, err := c.lookAt(ctx, s, d, namesOnly)
		if err != nil {
			return nil, err
		}
		changed = changed || ch
	}
	st, err := c.objects.State(ctx, true)
	if err != nil {
		return nil, err
	}
	if w.state != st || w.objects == nil {
		w.state, w.objects, changed = st, objectRelations(st, c.objects), true
	}
	w.named, w.version = began, version
	if !namesOnly || timeless {
		w.began = began
	}
	if !changed {
		return w.out, nil
	}
	w.schemas = slices.Clone(schemas)
	rels := map[string][]Relation{}
	for _, s := range schemas {
		var rs []Relation
		for _, n := range w.databases[s].dirs {
			if e := w.databases[s].tables[n]; e != nil && e.table != nil {
				rs = append(rs, e.table)
			}
		}
		rels[s] = mergeRelations(rs, w.objects[s])
	}
	w.out = newListing(w.schemas, rels)
	w.last.Store(w.out)
	return w.out, nil
}

// mergeRelations joins relations by name; a table hides an object of its name.
func mergeRelations(tables, more []Relation) []Relation {
	if len(more) == 0 {
		return tables
	}
	out := slices.Concat(tables, more)
	slices.SortStableFunc(out, func(a, b Relation) int { return cmp.Compare(a.Name(), b.Name()) })
	return slices.CompactFunc(out, func(a, b Relation) bool { return a.Name() == b.Name() })
}

// objectRelations are the views and sequences of a state by SQL schema.
func objectRelations(st *objects.State, store *objects.Store) map[string][]Relation {
	out := map[string][]Relation{}
	for _, kind := range []objects.Kind{objects.View, objects.Sequence} {
		for _, o := range st.List(kind) {
			if r, err := relationOf(o, store); err == nil {
				out[o.Schema] = append(out[o.Schema], r)
			}
		}
	}
	return out
}

// lookAt brings a database of the listing up to date and says whether it changed.
func (c *Filesystem) lookAt(ctx context.Context, sqlSchema string, d *listedDatabase, namesOnly bool) (changed bool, err error) {
	dir := DatabaseDir(DatabaseOf(sqlSchema))
	st, err := c.env.IO.Stat(ctx, dir)
	if errors.Is(err, fileio.ErrNotExist) {
		changed = len(d.tables) > 0
		*d = listedDatabase{tables: map[string]*listedEntry{}}
		return changed, nil
	}
	if err != nil {
		return false, err
	}
	moved := d.mod.IsZero() || !d.mod.Equal(st.ModTime) // tables may have changed their names
	if moved {
		began := time.Now()
		es, err := c.env.IO.List(ctx, dir)
		if err != nil {
			return false, err
		}
		var dirs []string
		for _, e := range es {
			if e.Dir && !strings.HasPrefix(e.Name, ".") {
				dirs = append(dirs, e.Name)
			}
		}
		slices.Sort(dirs)
		changed = !slices.Equal(dirs, d.dirs)
		d.mod, d.dirs = time.Time{}, dirs
		if fileio.Settled(st.ModTime, began) {
			d.mod = st.ModTime
		}
		for n := range d.tables {
			if _, ok := slices.BinarySearch(dirs, n); !ok {
				delete(d.tables, n)
			}
		}
	}
	var dirs []string
	var entries []*listedEntry
	for _, n := range d.dirs {
		e := d.tables[n]
		if e == nil {
			e = &listedEntry{}
			d.tables[n] = e
		}
		// A table that is there stays as long as the database's directory is the same.
		if !namesOnly || moved || e.table == nil || e.mod.IsZero() {
			dirs, entries = append(dirs, n), append(entries, e)
		}
	}
	const chunk = 64
	differs := make([]bool, (len(entries)+chunk-1)/chunk)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(2 * runtime.GOMAXPROCS(0))
	for k := range differs {
		g.Go(func() error {
			for i := k * chunk; i < min(len(entries), (k+1)*chunk); i++ {
				if cause := context.Cause(gctx); cause != nil {
					return cause
				}
				if c.lookAtTable(gctx, sqlSchema, dirs[i], entries[i], moved) {
					differs[k] = true
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return false, err
	}
	return changed || slices.Contains(differs, true), nil
}

// lookAtTable brings one table of the listing up to date and says whether it changed.
// What cannot be read is no table, and is looked at again the next time.
func (c *Filesystem) lookAtTable(ctx context.Context, sqlSchema, name string, e *listedEntry, moved bool) (changed bool) {
	dir := DatabaseDir(DatabaseOf(sqlSchema)) + "/" + name
	st, err := c.env.IO.Stat(ctx, dir+"/schema")
	gone := func() bool {
		was := e.table != nil
		*e = listedEntry{}
		return was
	}
	if err != nil {
		return gone()
	}
	if e.table != nil && !e.mod.IsZero() && e.mod.Equal(st.ModTime) {
		if !moved {
			return false
		}
		// Another table may have the name now: two of one moment have one time.
		if f, err := c.env.IO.Stat(ctx, schemaFile(dir, e.table.id)); err == nil && f == e.file {
			return false
		}
	}
	began := time.Now()
	id, err := latestSchema(ctx, c.env.IO, dir)
	if err != nil || id < 0 {
		return gone()
	}
	f, err := c.env.IO.Stat(ctx, schemaFile(dir, id))
	if err != nil {
		return gone()
	}
	if e.table == nil || e.table.id != id || e.file != f || !fileio.Settled(f.ModTime, began) {
		raw, err := c.env.IO.ReadFile(ctx, schemaFile(dir, id))
		if err != nil {
			return gone()
		}
		t, err := schema.Parse(raw)
		if err != nil || t.ID != id {
			return gone()
		}
		if sum := maphash.Bytes(listedSeed, raw); e.table == nil || e.table.id != id || e.table.sum != sum {
			e.table, changed = newListed(c, sqlSchema, name, dir, sum, t), true
		}
		e.file = f
	}
	e.mod = time.Time{}
	if fileio.Settled(st.ModTime, began) {
		e.mod = st.ModTime
	}
	return changed
}

// listedSeed is that of the sums which tell schemas of one id apart.
var listedSeed = maphash.MakeSeed()

func schemaFile(dir string, id int64) string {
	return dir + "/schema/schema-" + strconv.FormatInt(id, 10)
}

// latestSchema returns the highest id of a table's schemas, -1 when there is none.
func latestSchema(ctx context.Context, io fileio.FileIO, dir string) (int64, error) {
	es, err := io.List(ctx, dir+"/schema")
	if err != nil {
		return -1, err
	}
	latest := int64(-1)
	for _, e := range es {
		if s, ok := strings.CutPrefix(e.Name, "schema-"); ok && !e.Dir {
			if id, err := strconv.ParseInt(s, 10, 64); err == nil {
				latest = max(latest, id)
			}
		}
	}
	return latest, nil
}
