package table

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// FileStore is a Paimon table in a warehouse, with all its branches. Safe for
// concurrent use.
type FileStore struct {
	env *Env
	dir string // relative to the warehouse

	mu       sync.Mutex // guards branches and stats
	branches map[string]*branch
	stats    map[statsKey]*Stats
	analyzed namedStatistics // the file that was read last

	evolutions schema.Evolutions
	buckets    bucketStates // what NeedsCompaction and Compact go by
	claims     claims       // of compactions
	lookups    lookupPlans
}

var _ Table = (*FileStore)(nil)

// branch is the metadata of one branch; manifests, indexes and data are shared.
type branch struct {
	name      string
	schemas   *schema.Manager
	snapshots *snapshot.Manager
	publisher *commit.Publisher
	// maintenance holds a token while expiry, a rollback or a change of tags runs.
	maintenance chan struct{}
}

// Open returns the table in directory dir of env's warehouse. Nothing is read:
// whether there is a table is seen by Schema.
func Open(env *Env, dir string) *FileStore {
	return &FileStore{env: env, dir: strings.TrimSuffix(dir, "/"), branches: map[string]*branch{}, stats: map[statsKey]*Stats{}}
}

// Dir returns the table's directory relative to the warehouse.
func (t *FileStore) Dir() string { return t.dir }

// Env returns what the table shares with the others of its warehouse.
func (t *FileStore) Env() *Env { return t.env }

// Snapshots returns the snapshots of a branch; "" is main.
func (t *FileStore) Snapshots(name string) *snapshot.Manager { return t.branch(name).snapshots }

// Schemas returns the schemas of a branch; "" is main.
func (t *FileStore) Schemas(name string) *schema.Manager { return t.branch(name).schemas }

// Branches lists the branches besides main.
func (t *FileStore) Branches(ctx context.Context) ([]string, error) {
	return snapshot.Branches(ctx, t.env.IO, t.dir)
}

func (t *FileStore) branch(name string) *branch {
	if name == "main" {
		name = ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	b, ok := t.branches[name]
	if !ok {
		root := snapshot.BranchRoot(t.dir, name)
		b = &branch{name: name, maintenance: make(chan struct{}, 1), schemas: schema.NewManager(t.env.IO, root), snapshots: snapshot.NewManager(t.env.IO, root)}
		b.publisher = t.newPublisher(b)
		t.branches[name] = b
	}
	return b
}

// state is one state of the table, found once per plan.
type state struct {
	*branch
	snap    *snapshot.Snapshot // nil = no snapshot yet
	schema  *schema.Table      // that columns of the scan index
	options schema.Options     // of the schema, under the scan's dynamic ones
}

// state finds what at names. The latest state is read with the latest schema,
// any other with the schema that its snapshot names.
func (t *FileStore) state(ctx context.Context, at snapshot.Ref, over map[string]string) (*state, error) {
	b := t.branch(at.Branch)
	snap := at.Snap
	var err error
	if snap == nil && !at.Empty {
		if snap, err = b.snapshots.Resolve(ctx, at); err != nil {
			return nil, err
		}
	}
	var sch *schema.Table
	switch {
	case at.Schema > 0:
		sch, err = b.schemas.Get(ctx, at.Schema-1)
		if errors.Is(err, schema.ErrNotFound) {
			// It was there when at was resolved: the table was dropped.
			err = errors.Join(&snapshot.NotFoundError{Ref: at, Expired: true}, err)
		}
	case at.Kind == snapshot.Latest || snap == nil:
		sch, err = b.schemas.Latest(ctx)
	default:
		sch, err = b.schemas.Get(ctx, snap.SchemaID)
		if errors.Is(err, schema.ErrNotFound) {
			err = &fileio.MissingError{Path: b.schemas.Path(snap.SchemaID), Err: err}
		}
	}
	if err != nil {
		return nil, err
	}
	return &state{b, snap, sch, schema.Options(sch.Options).With(over)}, nil
}

// schemaOf returns a schema that live metadata names: its absence is corruption.
func (t *FileStore) schemaOf(ctx context.Context, b *branch, id int64) (*schema.Table, error) {
	s, err := b.schemas.Remember(ctx, id)
	if errors.Is(err, schema.ErrNotFound) {
		return nil, &fileio.MissingError{Path: b.schemas.Path(id), Err: err}
	}
	return s, err
}

// Schema returns the schema of the state that at names.
func (t *FileStore) Schema(ctx context.Context, at snapshot.Ref) (*schema.Table, error) {
	st, err := t.state(ctx, at, nil)
	if err != nil {
		return nil, err
	}
	return st.schema, nil
}

// Resolve pins at to a snapshot (or tag, which outlives its snapshot) and to the
// schema it is read with.
func (t *FileStore) Resolve(ctx context.Context, at snapshot.Ref) (snapshot.Ref, error) {
	st, err := t.state(ctx, at, nil)
	if err != nil {
		return at, err
	}
	out := snapshot.Ref{Kind: at.Kind, Name: at.Name, Branch: at.Branch, Schema: st.schema.ID + 1, Snap: st.snap}
	switch {
	case st.snap == nil:
		out.Kind, out.Empty = snapshot.Latest, true
	case at.Kind == snapshot.Tag:
	case at.Kind == snapshot.Version && t.isTag(ctx, st.branch, at.Name):
		out.Kind = snapshot.Tag
	default:
		out.Kind, out.ID, out.Name = snapshot.ID, st.snap.ID, ""
	}
	return out, nil
}

func (t *FileStore) isTag(ctx context.Context, b *branch, name string) bool {
	_, err := b.snapshots.Tag(ctx, name)
	return err == nil
}

// refuse names a feature that a read of the table would need and that is not
// supported. What only matters for the files of a plan is checked there.
func (st *state) refuse() error {
	un := func(f string) error { return &fileio.UnsupportedError{Feature: f} }
	o := st.options
	switch typ := o.Enum("type", "table"); typ {
	case "table":
	default:
		return un("table type " + typ)
	}
	for _, f := range []string{"data-evolution.enabled", "pk-clustering-override", "primary-key.nullable"} {
		on, err := o.Bool(f, false)
		if err != nil {
			return err
		}
		if on {
			return un("table option " + f)
		}
	}
	for k := range o {
		if strings.HasPrefix(k, "encryption.") {
			return un("encryption")
		}
	}
	return nil
}

// mergeEngine returns the table's merge engine.
func (st *state) mergeEngine() string { return st.options.Enum("merge-engine", "deduplicate") }

// engine returns what makes the table's merge engine for some columns, nil where
// the newest or oldest version of a key wins.
func (st *state) engine() func(columns []int) (mergetree.Engine, error) {
	switch st.mergeEngine() {
	case "deduplicate", "first-row":
		return nil
	}
	return st.newEngine
}

// newEngine makes the table's merge engine for some columns.
func (st *state) newEngine(columns []int) (mergetree.Engine, error) {
	return mergetree.NewEngine(mergetree.EngineSpec{Table: st.schema, Options: st.options, Columns: columns})
}

// expiry is the table's record-level expiry, nil = none. Only compaction makes use
// of it.
func (st *state) expiry(now time.Time) (*mergetree.Expire, error) {
	if st.options.String("record-level.expire-time", "") == "" {
		return nil, nil
	}
	after, err := st.options.Duration("record-level.expire-time", 0)
	if err != nil {
		return nil, err
	}
	cols, err := columnsOf(st.schema, []string{st.options.String("record-level.time-field", "")})
	if err != nil {
		return nil, err
	}
	return &mergetree.Expire{Column: cols[0], Type: st.schema.Fields[cols[0]].Type, Before: now.Unix() - int64(after/time.Second)}, nil
}

// ignoreDelete reads ignore-delete with its older spellings.
func (st *state) ignoreDelete() bool {
	for _, k := range []string{"ignore-delete", st.mergeEngine() + ".ignore-delete"} {
		if _, ok := st.options[k]; ok {
			return st.options.Flag(k, false)
		}
	}
	return false
}

func (st *state) primaryKey() bool { return len(st.schema.PrimaryKeys) > 0 }

// columnsOf returns the positions of named columns in a schema. One that is not
// there is damage: schemas are checked before they are written.
func columnsOf(s *schema.Table, names []string) ([]int, error) {
	out := make([]int, len(names))
	for i, n := range names {
		if out[i] = s.Fields.Index(n); out[i] < 0 {
			return nil, &fileio.CorruptionError{Path: fmt.Sprintf("schema-%d", s.ID), Offset: -1, Reason: fmt.Sprintf("no column %q", n)}
		}
	}
	return out, nil
}
