package engine

import (
	"context"
	"io"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Column describes one column of a result, as RowDescription wants it.
type Column struct {
	Name     string
	Type     types.Type
	TableOID uint32 // 0 for expressions
	AttNum   int16  // 0 for expressions
}

// Prepared is a prepared statement: protocol-level and PREPARE share it.
// Immutable; Bind may plan again underneath.
type Prepared struct {
	Name    string
	SQL     string
	Params  []types.Type // as declared or inferred
	Columns []Column     // nil: the statement returns no rows (NoData)

	impl any // the engine's parsed form
}

// Portal is a bound statement. It belongs to its session.
type Portal struct {
	Name     string
	Prepared *Prepared
	Columns  []Column
	// Formats are the result format codes of Bind, one per column (0 text, 1
	// binary): kept here so that Describe and Execute agree.
	Formats []int16

	impl any
}

// ResultSink receives what a statement yields. A call blocks while the client
// does not read: that is all the back-pressure there is. An error returned by a
// sink (a lost connection) ends the statement.
type ResultSink interface {
	// Columns announces a result set. Called once before the first Batch of each
	// statement that returns rows in Query; never by Run.
	Columns(cols []Column) error
	// Batch takes the next rows; b may be kept.
	Batch(ctx context.Context, b *vec.Batch) error
	// Complete ends one statement with its command tag (Query only).
	Complete(tag string) error
	// Empty answers an empty query string (Query only).
	Empty() error
	// Notice passes a NOTICE or WARNING (Severity says which) on at once.
	Notice(e *pgerr.Error)
	// ParameterStatus reports a changed setting that clients are told of.
	ParameterStatus(name, value string)
}

// FormatSink is what a ResultSink offers for the one case in which a simple query
// answers in binary: FETCH from a BINARY cursor. It is asked for with a type
// assertion; without it the rows come in text.
type FormatSink interface {
	// ColumnsIn is ResultSink.Columns with a format code for each column.
	ColumnsIn(cols []Column, formats []int16) error
}

// Startup are the parameters of a new connection.
type Startup struct {
	User, Database string
	// Params are the further start-up parameters, option string included and
	// taken apart: settings to apply as if SET.
	Params map[string]string
	Remote string // address, for pg_stat_activity
	TLS    *TLS   // nil: the connection is not encrypted
}

// TLS is what pg_stat_ssl shows of an encrypted connection. The names and the serial
// number are those of the client's certificate; "" without one.
type TLS struct {
	Version, Cipher            string
	Bits                       int
	ClientDN, Serial, IssuerDN string
}

// TextSettings are the settings that shape values in text form. Comparable, so
// encoders can be cached per value.
type TextSettings struct {
	TimeZone         string // IANA name or POSIX offset, as SHOW prints it
	DateStyle        string
	IntervalStyle    string
	ByteaOutput      string // hex or escape
	ExtraFloatDigits int
}

// SocketOptions are the settings of a session that its connection obeys. Zero values
// take the server's.
type SocketOptions struct {
	KeepIdle, KeepInterval time.Duration // tcp_keepalives_*
	KeepCount              int
	UserTimeout            time.Duration // tcp_user_timeout
	// CheckInterval is client_connection_check_interval: how long a statement runs
	// before its client is looked for.
	CheckInterval time.Duration
}

// CopySink is what the ResultSink of a connection offers for COPY; a sink that
// is not one (an embedding program) has no stream to copy with. It is asked for
// with a type assertion.
type CopySink interface {
	// CopyIn starts COPY FROM STDIN and returns the client's data: io.EOF at its
	// end, 57014 when the client gives up. Rows and reads have nothing to do with
	// each other. Cancelling ctx ends a waiting Read with its cause.
	CopyIn(ctx context.Context, binary bool, columns int) (io.Reader, error)
	// CopyOut starts COPY TO STDOUT: one Write per row, then Close, which is left
	// out after an error.
	CopyOut(ctx context.Context, binary bool, columns int) (io.WriteCloser, error)
}
