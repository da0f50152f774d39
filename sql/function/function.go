// Package function holds the scalar and set-returning functions, operators and
// casts: signature and kernel together. builtin.go lists them all.
package function

import (
	"context"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Volatility says when a call may be evaluated early. PostgreSQL's words.
type Volatility uint8

// The volatilities.
const (
	Immutable Volatility = iota
	Stable
	Volatile
)

// Env is what functions may ask of the session. Implemented by engine; a test
// fills a struct. Every method is safe for concurrent use within a statement.
type Env interface {
	Now() time.Time           // start of the transaction
	StatementTime() time.Time // start of the statement
	Location() *time.Location // session TimeZone
	Setting(name string) (string, bool)
	SetSetting(name, value string, local bool) error
	User() string
	Database() string
	SearchPath(implicit bool) []string
	BackendPID() int32
	// Catalog answers the functions that read pg_catalog (format_type,
	// pg_get_expr, regclass, has_*_privilege, ...); nil in tests.
	Catalog() CatalogEnv
}

// CatalogEnv is the part of the catalog that functions see.
type CatalogEnv interface {
	// RelationOID resolves a possibly qualified name through the search path.
	RelationOID(ctx context.Context, name string) (uint32, bool, error)
	// RelationName is the inverse; qualified only when the search path needs it.
	RelationName(ctx context.Context, oid uint32) (string, bool)
	NamespaceOID(ctx context.Context, name string) (uint32, bool)
	NamespaceName(ctx context.Context, oid uint32) (string, bool)
	// Text answers catalog functions whose result is text, by function name:
	// pg_get_expr, pg_get_indexdef, pg_get_constraintdef, pg_get_viewdef,
	// obj_description, col_description, shobj_description, pg_get_userbyid, ...
	// nil = NULL.
	Text(ctx context.Context, fn string, args []types.Datum) (*string, error)
	// Visible answers pg_table_is_visible and its kin.
	Visible(ctx context.Context, fn string, oid uint32) (bool, bool)
	// TableSize answers pg_table_size, pg_total_relation_size, ...
	TableSize(ctx context.Context, fn string, oid uint32) (int64, bool)
	// Action performs pg_cancel_backend, pg_terminate_backend, pg_notify, ...
	Action(ctx context.Context, fn string, args []types.Datum) (types.Datum, error)
}

// Call is one evaluation of a kernel over a batch.
type Call struct {
	Ctx context.Context
	Env Env
	N   int      // rows of the batch
	Sel []uint16 // live rows; nil = all N. Kernels that can fail look only at these
	Ret types.Type
	// ArgTypes are the types of the arguments after implicit casts.
	ArgTypes []types.Type
	// Explicit is set for casts that the user wrote (CAST, ::): they cut strings
	// that are too long, where an assignment refuses them.
	Explicit bool
	// MaxBytes is how long one value of the result may be, 0 = as long as any
	// value; MaxSetting is the setting that says so.
	MaxBytes   int64
	MaxSetting string
	// State is private to this call site and worker: compiled patterns, scratch.
	State *any
}

// Kernel computes one array of length c.N (or a Const Vec of length 1 when every
// argument is Const). Rows outside c.Sel are arbitrary. The result is fresh: the
// kernel keeps no reference. An argument array may be a dictionary; kernels that
// cannot use one call vec.Decode.
type Kernel func(c *Call, args []vec.Vec) (arrow.Array, error)

// Overload is one signature of a function, operator or cast.
type Overload struct {
	Name string // operators too: "+", "||", "~~"
	Args []types.Type
	// Variadic: the last argument may be repeated (its type is the element's).
	Variadic bool
	// Defaults is how many trailing arguments may be left out.
	Defaults int
	// ArgNames for name => value calls; empty = none.
	ArgNames []string
	Ret      types.Type
	// RetFn, when set, computes the result type (numeric scales, polymorphic
	// types, typmods) from the actual argument types.
	RetFn func(args []types.Type) types.Type
	// ExactArgs, when set, changes the types that arguments are cast to, given
	// their actual types (for example to keep numeric precision and scale, or to
	// unify timestamp units). Default: Args, keeping the argument's own
	// modifiers where the kind is the same.
	ExactArgs  func(args []types.Type) []types.Type
	Strict     bool // NULL in, NULL out: the evaluator may skip the call for all-NULL
	Volatility Volatility
	Kernel     Kernel
	// Set makes this a set-returning function; Kernel is nil then.
	Set SetFunc
	// SetColumns are the columns of a set-returning function that returns
	// records; nil = one column of Ret named after the function.
	SetColumns func(args []types.Type) types.Schema
	// Lazy marks functions evaluated by the planner or engine, not by a kernel.
	Internal bool
	// OID is stable; assigned by the registry from the signature when 0.
	OID uint32
	// Window marks pure window functions (row_number, ...): see sql/aggregate.
	Doc string // one sentence for docs/functions.md and pg_description
}

// SetFunc starts a set-returning function for one row of arguments.
type SetFunc func(c *Call, args []types.Datum) (SetReader, error)

// SetReader yields the rows of one call. Next returns at most max rows as
// columns of the function's schema, and nil at the end.
type SetReader interface {
	Next(ctx context.Context, max int) ([]arrow.Array, error)
	Close() error
}

// CastContext is PostgreSQL's pg_cast.castcontext.
type CastContext uint8

// The contexts, from the most to the least willing.
const (
	Implicit   CastContext = iota // anywhere
	Assignment                    // INSERT, UPDATE targets
	Explicit                      // CAST and ::
)
