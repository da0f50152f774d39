package catalog

import (
	"context"
	"errors"

	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// Errors of edits; engine turns them into SQLSTATEs.
var (
	ErrSchemaExists   = errors.New("schema already exists")
	ErrRelationExists = errors.New("relation already exists")
	// ErrNotEmpty: a schema with tables is dropped without cascade, or a table with
	// data is given a primary key.
	ErrNotEmpty = errors.New("not empty")
	// ErrChanged: another session or process changed the same table since it was
	// looked at; the caller reads again.
	ErrChanged = errors.New("changed concurrently")
)

// Editor changes what the warehouse holds. Names are SQL names.
type Editor interface {
	CreateSchema(ctx context.Context, name string, props map[string]string) error
	// DropSchema drops a schema and, with cascade, its tables. The schema public
	// cannot be dropped.
	DropSchema(ctx context.Context, name string, cascade bool) error
	// CreateTable makes a table of def: Fields without ids, keys, options, comment.
	// Ids, defaults of options that must be written out and NOT NULL of keys are
	// filled in; the rules of Java's SchemaValidation apply.
	CreateTable(ctx context.Context, sqlSchema, name string, def *schema.Table) error
	// AlterTable applies changes as one new schema version.
	AlterTable(ctx context.Context, sqlSchema, name string, changes []schema.Change) error
	RenameTable(ctx context.Context, sqlSchema, name, newSchema, newName string) error
	DropTable(ctx context.Context, sqlSchema, name string) error
}
