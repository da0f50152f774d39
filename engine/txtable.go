package engine

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// tableKey names a table for locks and commits: its directory and branch.
type tableKey struct{ dir, branch string }

func (k tableKey) String() string {
	if k.branch == "" {
		return k.dir
	}
	return k.dir + "$branch_" + k.branch
}

// shown is the table's name as users know it: schema.table.
func (k tableKey) shown() string {
	s := strings.Replace(k.String(), ".db/", ".", 1)
	if t, ok := strings.CutPrefix(s, catalog.DefaultDatabase+"."); ok {
		return "public." + t
	}
	return s
}

// keyOf returns the key of a relation.
func keyOf(rel catalog.TableInfo) tableKey {
	k := tableKey{dir: rel.Schema() + "." + rel.Name(), branch: rel.At().Branch}
	if s, ok := rel.Table().(interface{ Dir() string }); ok {
		k.dir = s.Dir()
	}
	return k
}

// snapshotID is the id of a resolved state, 0 = no snapshot yet.
func snapshotID(at snapshot.Ref) int64 {
	if at.Snap != nil {
		return at.Snap.ID
	}
	return at.ID
}

// txTable is what a transaction has done to one table. Rows of small statements
// wait in pending, in stored form, until something must see them or they are
// many; what has been written to files is in over. The state is replaced, never
// changed in place: a savepoint is a copy of it.
type txTable struct {
	key          tableKey
	schema, name string // of the SQL relation
	oid          uint32
	// files is everything that the transaction wrote: what is not committed in the
	// end is deleted.
	files commit.Changes
	pk    []int // positions of the primary key, nil = none
	// options are the table's when it was first written to.
	options map[string]string
	txTableState
}

type txTableState struct {
	// base is the state that over lies on and that reads were made at.
	base snapshot.Ref
	// store knows the schema schemaID: data definition makes another one.
	store    table.Table
	schemaID int64
	over     commit.Changes
	pending  []rowsPart
	size     int64 // bytes in pending
	rows     int64
	reads    *commit.ReadSet
	// folded is how many files over had when they were last made few.
	folded int
}

// foldFiles is how many files a transaction may add before they are merged: each
// statement that reads the table looks into all of them.
const foldFiles = 16

// rowsPart are rows in stored form on their way into a table.
type rowsPart struct {
	b     *vec.Batch
	kinds []uint8 // per live row, nil = all +I
}

func (p rowsPart) bytes() int64 {
	n := int64(64)
	for _, c := range p.b.Cols {
		n += vec.Size(c)
	}
	return n
}

// Rows that may wait in memory before they become files.
const (
	maxPendingBytes = 4 << 20
	maxPendingRows  = 50_000
)

// writes reports whether there is something to publish.
func (t *txTable) writes() bool { return len(t.pending) > 0 || !t.over.Empty() }

// touched finds what the transaction has done to a table.
func (s *Session) touched(k tableKey) *txTable {
	for _, t := range s.tx.tables {
		if t.key == k {
			return t
		}
	}
	return nil
}

// touch is touched for a statement that is about to add something.
func (s *Session) touch(rel catalog.TableInfo) *txTable {
	k := keyOf(rel)
	if t := s.touched(k); t != nil {
		return t
	}
	t := &txTable{key: k, schema: rel.Schema(), name: rel.Name(), oid: rel.OID(), options: rel.Options()}
	t.base, t.store, t.schemaID = rel.At(), rel.Table(), rel.SchemaID()
	s.tx.tables = append(s.tx.tables, t)
	return t
}

// writeAt is the state that a writer of schema id goes on from.
func writeAt(at snapshot.Ref, schemaID int64) snapshot.Ref {
	at.Schema = schemaID + 1
	return at
}

// flush writes the pending rows to files.
//
// It is not counted as an attempt of the statement that needs it: pending rows
// stay where they are when it fails.
func (s *Session) flush(ctx context.Context, t *txTable) error {
	if len(t.pending) == 0 {
		return nil
	}
	acc := s.eng.root.Child("work_mem", s.set.use().workMem)
	defer acc.Close()
	w, err := t.store.Write(ctx, table.WriteOptions{At: writeAt(t.base, t.schemaID), Overlay: t.overlay(), Account: acc})
	if err != nil {
		return err
	}
	for _, p := range t.pending {
		if err := w.Write(ctx, p.b, p.kinds); err != nil {
			_ = w.Abort(context.WithoutCancel(ctx)) // what stays is an orphan
			return err
		}
	}
	c, err := w.Prepare(ctx)
	if err != nil {
		_ = w.Abort(context.WithoutCancel(ctx))
		return err
	}
	t.made(c)
	t.pending, t.size, t.rows = nil, 0, 0
	t.lay(c)
	if len(t.over.Files) < t.folded+foldFiles {
		return nil
	}
	return s.fold(ctx, t, t.base)
}

// fold merges the files of the transaction and gives their rows sequence numbers
// above those of state at.
func (s *Session) fold(ctx context.Context, t *txTable, at snapshot.Ref) error {
	acc := s.eng.root.Child("work_mem", s.set.use().workMem)
	defer acc.Close()
	out, _, err := t.store.Fold(ctx, t.over, writeAt(at, t.schemaID), acc)
	if err != nil {
		return err
	}
	t.made(out)
	t.over, t.folded = out, len(out.Files)
	return nil
}

// overlay is over for a scan or a writer; nil when there is none.
func (t *txTable) overlay() *commit.Changes {
	if t.over.Empty() {
		return nil
	}
	c := t.over
	return &c
}

// lay puts changes over those there are. A replacement of partitions takes the
// transaction's own earlier files in them, too.
func (t *txTable) lay(c commit.Changes) {
	if r := c.Overwrite; r != nil {
		c.Overwrite = fixed(r, c.Files)
		if c.Overwrite == nil { // dynamic, and no partition got rows
			return
		}
		t.over.Files = outside(t.over.Files, c.Overwrite)
		if c.Overwrite.Partitions != nil && t.over.Overwrite != nil {
			c.Overwrite = bothReplaced(t.over.Overwrite, c.Overwrite)
		}
	}
	t.over, _ = commit.Merge(t.over, c)
}

// fixed turns a dynamic replacement into one of the partitions that got files;
// nil when none did.
func fixed(r *commit.Replacement, files []manifest.Entry) *commit.Replacement {
	if !r.Dynamic {
		return r
	}
	out := &commit.Replacement{}
	for _, e := range files {
		if e.Kind == manifest.Add && !slices.ContainsFunc(out.Partitions, func(p []byte) bool { return bytes.Equal(p, e.Partition) }) {
			out.Partitions = append(out.Partitions, e.Partition)
		}
	}
	if out.Partitions == nil {
		return nil
	}
	return out
}

// outside returns the entries outside of the partitions that r replaces.
func outside(files []manifest.Entry, r *commit.Replacement) []manifest.Entry {
	if r.Partitions == nil {
		return nil
	}
	var out []manifest.Entry
	for _, e := range files {
		if !slices.ContainsFunc(r.Partitions, func(p []byte) bool { return bytes.Equal(p, e.Partition) }) {
			out = append(out, e)
		}
	}
	return out
}

func bothReplaced(a, b *commit.Replacement) *commit.Replacement {
	if a.Partitions == nil {
		return a
	}
	out := &commit.Replacement{Partitions: slices.Clone(a.Partitions)}
	for _, p := range b.Partitions {
		if !slices.ContainsFunc(out.Partitions, func(q []byte) bool { return bytes.Equal(p, q) }) {
			out.Partitions = append(out.Partitions, p)
		}
	}
	return out
}

// made notes files that the transaction wrote.
func (t *txTable) made(c commit.Changes) {
	n := added(c, commit.Changes{})
	t.files.Files = append(t.files.Files, n.Files...)
	t.files.Changelog = append(t.files.Changelog, n.Changelog...)
	t.files.Indexes = append(t.files.Indexes, n.Indexes...)
}

// carry moves what the transaction has done to a table onto a newer state: what
// it read must not have changed, and its rows get sequence numbers above those
// of the state, so that they stay on top.
func (s *Session) carry(ctx context.Context, t *txTable, at snapshot.Ref) error {
	if snapshotID(t.base) == snapshotID(at) && t.base.Snap == at.Snap {
		return nil
	}
	if t.reads != nil {
		if _, err := t.store.CheckReads(ctx, t.key.branch, snapshotID(t.base), t.reads); err != nil {
			return err
		}
	}
	if len(t.over.Files) > 0 {
		if err := s.fold(ctx, t, at); err != nil {
			return err
		}
	}
	t.base = at
	return nil
}

// overlaid is a relation of a table's newest state as the session sees it, its
// own writes included. The statement's isolation level has been applied.
func (s *Session) overlaid(ctx context.Context, rel catalog.TableInfo) (catalog.TableInfo, error) {
	t := s.touched(keyOf(rel))
	if t == nil {
		return rel, nil
	}
	if err := s.flush(ctx, t); err != nil {
		return nil, err
	}
	if !s.pinned() {
		if err := s.carry(ctx, t, rel.At()); err != nil {
			return nil, err
		}
	}
	t.schemaID, t.store = rel.SchemaID(), rel.Table()
	if t.over.Empty() {
		return rel, nil
	}
	return withOverlay(rel, t.overlay()), nil
}

// errReadAgain: what a statement read has been changed by others, and it has not
// written yet: it reads again, now that it holds its locks.
var errReadAgain = errors.New("read again")

// conflicted reports an error that a new attempt may not meet.
func conflicted(err error) bool {
	var c *commit.ConflictError
	return errors.As(err, &c)
}

// unionReads joins two read sets.
func unionReads(a, b *commit.ReadSet) *commit.ReadSet {
	m, _ := commit.Merge(commit.Changes{Reads: a}, commit.Changes{Reads: b})
	return m.Reads
}

// columnsOf are arrays of a batch by position.
func columnsOf(b *vec.Batch, cols []int) []arrow.Array {
	out := make([]arrow.Array, len(cols))
	for i, c := range cols {
		out[i] = b.Cols[c]
	}
	return out
}

func errSerialize(detail string) *pgerr.Error {
	e := pgerr.New(pgerr.SerializationFailure, "could not serialize access due to concurrent update")
	if detail != "" {
		e = e.WithDetail("%s", detail)
	}
	return e
}

// withOverlay lays a transaction's writes over a relation.
func withOverlay(rel catalog.TableInfo, c *commit.Changes) catalog.TableInfo {
	if r, ok := rel.(*catalog.TableRelation); ok {
		return r.WithOverlay(c)
	}
	return rel
}

// toStored turns rows in SQL form into the form that the table's files have.
func toStored(rel catalog.TableInfo, b *vec.Batch) (*vec.Batch, error) {
	if r, ok := rel.(interface {
		ToStored(b *vec.Batch) (*vec.Batch, error)
	}); ok {
		return r.ToStored(b)
	}
	return b, nil
}
