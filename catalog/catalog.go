// Package catalog turns names into relations: Paimon tables, their system
// tables, pg_catalog, views and functions all answer to one interface, and the
// planner and executor know no other.
package catalog

import (
	"context"
	"errors"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// Errors of name lookups; engine and planner turn them into SQLSTATEs.
var (
	ErrNoSchema   = errors.New("schema does not exist")
	ErrNoRelation = errors.New("relation does not exist")
)

// Column is one column of a relation as SQL sees it.
type Column struct {
	types.Field // Type is the SQL type (Type.SQL()); ID is Paimon's field id or -1
	NotNull     bool
	AttNum      int16 // 1-based
}

// Relation is anything that can stand in FROM. Safe for concurrent use.
type Relation interface {
	Schema() string // SQL schema: public, sales, pg_catalog, ...
	Name() string
	OID() uint32
	// Kind is pg_class.relkind: r table, v view.
	Kind() byte
	Columns() []Column
	// Plan splits a scan. Spec.Columns index Columns().
	Plan(ctx context.Context, s table.Scan) (*table.Plan, error)
	Read(ctx context.Context, s table.Scan, p table.Split, o table.ReadOptions) (table.SplitReader, error)
	// Stats returns estimates; nil = unknown.
	Stats(ctx context.Context, s table.Scan) (*table.Stats, error)
}

// TableInfo is implemented by relations that are Paimon tables.
type TableInfo interface {
	Relation
	PrimaryKey() []string
	PartitionKeys() []string
	Options() map[string]string
	Comment() string
	SchemaID() int64
	// At is the state that the relation is pinned to.
	At() snapshot.Ref
	Table() table.Table
}

// View is a relation defined by a query.
type View interface {
	Relation
	Query() string
}

// ResolveOptions are the clauses that stand behind a table's name.
type ResolveOptions struct {
	At snapshot.Ref
	// Dynamic are table options of a hint.
	Dynamic map[string]string
	// FreshReads is the session's paimon.fresh_reads.
	FreshReads bool
	// Overlay returns what the session's transaction wrote to a table and has not
	// committed, nil for nothing; the relation's scans show it. Tables are known by
	// FileStore.Dir, which stays the same through the transaction. It is nil outside
	// transactions and where At is a clause that names the past; a hint in Dynamic
	// that does is seen here.
	Overlay func(dir, branch string) *commit.Changes
	// InView: the name stands in the query of a view, where it was looked up when the
	// view was made: no privilege on the schema is needed.
	InView bool
	// Until, when not 0, is the last snapshot that exists for who asks: $snapshots lists
	// none after it; -1 = there is none.
	Until int64
}

// Catalog finds relations by SQL schema and name. A relation it returns is
// pinned: every scan of it reads one snapshot. Safe for concurrent use.
type Catalog interface {
	// Resolve returns ErrNoSchema or ErrNoRelation, wrapped, when there is none.
	// name may carry system-table and branch suffixes (t$snapshots, t$branch_b).
	Resolve(ctx context.Context, schema, name string, o ResolveOptions) (Relation, error)
	// Schemas lists the SQL schemas of the warehouse.
	Schemas(ctx context.Context) ([]string, error)
	// Tables lists the relations of one schema, without system tables.
	Tables(ctx context.Context, schema string) ([]string, error)
	// Version changes whenever this process knows that names or schemas changed.
	Version() uint64
}
