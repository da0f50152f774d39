package pgwire

import (
	"context"
	"time"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Session is all that the protocol needs of the engine for one connection.
// Calls come one at a time, except Cancel. engine.Session implements it.
//
// Names: "" is the unnamed statement or portal. SQL-level PREPARE, DEALLOCATE
// and cursors share these names with the protocol.
type Session interface {
	// Query runs a simple-protocol string of any number of statements as one
	// implicit transaction. The error of a statement is returned; everything it
	// sent before stands.
	Query(ctx context.Context, sql string, out engine.ResultSink) error

	// Prepare parses and plans. params are the declared types; Unknown = infer.
	// 42P05 when name is taken (save the unnamed), 42601 for several statements.
	Prepare(ctx context.Context, name, sql string, params []types.Type) (*engine.Prepared, error)
	// Statement finds a prepared statement: 26000 when there is none.
	Statement(name string) (*engine.Prepared, error)
	// Bind makes a portal; args are values of the statement's parameter types.
	// 42P03 when the portal's name is taken.
	Bind(ctx context.Context, portal string, p *engine.Prepared, args []types.Datum, formats []int16) (*engine.Portal, error)
	// Portal finds a portal: 34000 when there is none.
	Portal(name string) (*engine.Portal, error)
	// Run continues a portal for up to maxRows rows (0 = all). It returns the
	// command tag when the portal is done, "" while it is suspended; an empty
	// query calls out.Empty and returns "".
	Run(ctx context.Context, p *engine.Portal, maxRows int, out engine.ResultSink) (tag string, err error)
	// CloseStatement and ClosePortal forget; unknown names are fine.
	CloseStatement(name string)
	ClosePortal(name string)
	// Sync ends the implicit transaction of a pipeline: commit, or roll back when
	// failed. The error of the commit goes to the client.
	Sync(ctx context.Context, failed bool, out engine.ResultSink) error
	// Fail tells the session that a message failed before reaching it (a bad
	// Bind value), so that an open transaction becomes failed.
	Fail()

	// TxStatus is 'I', 'T' or 'E', for ReadyForQuery.
	TxStatus() byte
	// ParameterStatuses are the settings to report at start, in order.
	ParameterStatuses() [][2]string
	// Key identifies the session for CancelRequest.
	Key() (pid int32, secret uint32)
	// Location and the like are read from settings for the text form of values.
	TextSettings() engine.TextSettings
	Close()
}

// Backend opens sessions and delivers cancel requests. engine.Engine implements
// it through a small adapter in cmd.
type Backend interface {
	// Open starts a session; its error is FATAL to the connection.
	Open(ctx context.Context, s engine.Startup) (Session, error)
	// Cancel cancels what the session runs now, if the secret fits.
	Cancel(pid int32, secret uint32)
}

// What follows are things a Session may offer beside; each is asked for with a
// type assertion, so a session that lacks one works without.

// IdleLimiter is a session that may not be idle for ever.
type IdleLimiter interface {
	// IdleLimit is asked before each wait for a message outside a pipeline: how
	// long to wait (0 = for ever) and what to end the connection with
	// (25P03 in a transaction, 57P05 outside).
	IdleLimit() (time.Duration, *pgerr.Error)
}

// Terminable is a session that others can end: pg_terminate_backend.
type Terminable interface {
	// OnTerminate hands over, once, the function that ends the connection with
	// 57P01. It may be called from any goroutine.
	OnTerminate(end func())
}

// Listener is a session that NOTIFY reaches.
type Listener interface {
	// OnNotify hands over, once, the function that tells the connection that
	// messages have come. It may be called from any goroutine and does not block.
	OnNotify(wake func())
	// Notifications takes the messages that have come; listening says whether more
	// may come.
	Notifications() (list []engine.Notification, listening bool)
}

// SocketTuner is a session with settings that its connection obeys.
type SocketTuner interface {
	// SocketOptions is asked before each ReadyForQuery.
	SocketOptions() engine.SocketOptions
}

// Styler is a session that keeps the style of its text settings ready.
type Styler interface {
	TextStyle() *pgtext.Style
}

// OIDNamer is a session that can say how an oid of a reg* type is printed.
type OIDNamer interface {
	// OIDNames returns a function that gives the text form of oid as a value of kind
	// k, such as a table's name for RegClass; ok is false when there is no such
	// object, which then prints as its number. It may remember what it found, so it
	// is for the rows of one batch.
	OIDNames() func(k types.Kind, oid int64) (name string, ok bool)
}

// OIDReader is a session that finds the object that text names as a value of a
// reg* type: a parameter of Bind, such as 'orders' for regclass.
type OIDReader interface {
	// NamedOID is the input function of k: a name or a number; an error as
	// PostgreSQL words it when there is no such object.
	NamedOID(k types.Kind, name string) (oid int64, err error)
}
