package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path"
	"strings"
	"syscall"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/objects"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/bitslice"
	"github.com/paimon-sql/paimon-sql/index/dv"
	"github.com/paimon-sql/paimon-sql/index/hashindex"
	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/parser"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/cluster"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileindex"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
	"github.com/paimon-sql/paimon-sql/storage/mergetree/aggregate"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// errorRule turns one error of a lower layer into what a client sees. name is
// package.Name as exported there: a test fails when one is missing.
type errorRule struct {
	name string
	// match returns nil when err is not this one.
	match func(err error) *pgerr.Error
}

// sentinel is a rule for an errors.New value.
func sentinel(name string, target error, make func(err error) *pgerr.Error) errorRule {
	return errorRule{name, func(err error) *pgerr.Error {
		if !errors.Is(err, target) {
			return nil
		}
		return make(err)
	}}
}

// typed is a rule for an error type.
func typed[T error](name string, make func(e T, err error) *pgerr.Error) errorRule {
	return errorRule{name, func(err error) *pgerr.Error {
		var e T
		if !errors.As(err, &e) {
			return nil
		}
		return make(e, err)
	}}
}

// errorTable is the only place where errors of storage, index, catalog and
// memory get their SQLSTATE. The first rule that matches decides, so types that
// say more stand before the sentinels that they also match.
var errorTable = []errorRule{
	typed("mem.LimitError", func(e *mem.LimitError, err error) *pgerr.Error {
		pe := pgerr.Wrap(err, pgerr.OutOfMemory, "out of memory").
			WithDetail("The limit of %s set by %q is reached; %s more were asked for.", bytesText(e.Limit), e.Setting, bytesText(e.Asked))
		if e.Setting == "max_memory" {
			return pe.WithHint("Start the server with a larger --memory, or run fewer queries at once.")
		}
		return pe.WithHint("Raise %q (SET %s = '...').", e.Setting, e.Setting)
	}),
	sentinel("mem.ErrLimit", mem.ErrLimit, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.OutOfMemory, "out of memory").WithHint("Raise %q or %q.", "work_mem", "max_memory")
	}),
	typed("fileio.UnsupportedError", func(e *fileio.UnsupportedError, err error) *pgerr.Error {
		pe := pgerr.Wrap(err, pgerr.FeatureNotSupported, "%s is not supported", e.Feature)
		if e.Table != "" {
			pe.WithDetail("The table is %s.", e.Table)
		}
		return pe
	}),
	typed("snapshot.NotFoundError", func(e *snapshot.NotFoundError, err error) *pgerr.Error {
		if e.Expired {
			pe := pgerr.Wrap(err, pgerr.UndefinedFile, "%s has expired", e.Ref)
			if e.Earliest > 0 {
				pe.WithHint("The oldest snapshot that can be read is %d.", e.Earliest)
			}
			return pe
		}
		pe := pgerr.Wrap(err, pgerr.UndefinedObject, "%s", e.Error())
		if e.Reason == "" {
			pe.Message = e.Ref.String() + " does not exist"
		}
		if e.Earliest > 0 && e.Latest > 0 {
			pe.WithHint("Snapshots %d to %d can be read.", e.Earliest, e.Latest)
		} else if e.Ref.Kind == snapshot.Version {
			pe.WithHint("The system tables $tags and $snapshots of the table list them.")
		}
		return pe
	}),
	sentinel("snapshot.ErrNotFound", snapshot.ErrNotFound, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.UndefinedObject, "%s", err.Error())
	}),
	typed("snapshot.VersionError", func(e *snapshot.VersionError, err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.FeatureNotSupported, "snapshot version %d is not supported", e.Version)
	}),
	sentinel("schema.ErrNotFound", schema.ErrNotFound, func(err error) *pgerr.Error {
		if missing := (*fileio.MissingError)(nil); errors.As(err, &missing) {
			return pgerr.Wrap(err, pgerr.DataCorrupted, "%s", err.Error())
		}
		// Another process dropped or renamed it while the statement ran.
		return pgerr.Wrap(err, pgerr.UndefinedTable, "the table does not exist any more: %s", err.Error())
	}),
	typed("commit.ConflictError", func(e *commit.ConflictError, err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.SerializationFailure, "could not serialize access due to concurrent update").
			WithDetail("%s (snapshot %d).", upperFirst(e.Reason), e.SnapshotID).WithHint("The transaction might succeed if retried.")
	}),
	typed("commit.UnknownOutcomeError", func(e *commit.UnknownOutcomeError, err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.StatementCompletionUnknown, "it is not known whether the changes were committed").
			WithDetail("The reply to the commit of snapshot %d was lost: %s.", e.SnapshotID, strings.TrimSuffix(e.Err.Error(), ".")).
			WithHint("Look for the changes before they are made again.")
	}),
	typed("fileio.UncertainError", func(e *fileio.UncertainError, err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.StatementCompletionUnknown, "it is not known whether %s was stored", e.Path).
			WithDetail("The reply was lost: %s.", strings.TrimSuffix(e.Err.Error(), ".")).
			WithHint("Look for the changes before they are made again.")
	}),
	typed("commit.HashError", func(e *commit.HashError, err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.SerializationFailure, "could not serialize access due to concurrent update").
			WithDetail("Another process has put the new key into another bucket.").WithHint("The transaction might succeed if retried.")
	}),
	typed("hashindex.FullError", func(e *hashindex.FullError, err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.ProgramLimitExceeded, "%s", e.Error())
	}),
	// Readers pass over indexes that are no good, and writers leave out those that
	// cannot hold a row: these are for what goes by neither way.
	sentinel("bitslice.ErrCorrupt", bitslice.ErrCorrupt, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.DataCorrupted, "%s", err.Error())
	}),
	sentinel("index.ErrCorrupt", index.ErrCorrupt, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.DataCorrupted, "%s", err.Error())
	}),
	sentinel("index.ErrVersion", index.ErrVersion, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.FeatureNotSupported, "%s", err.Error())
	}),
	sentinel("index.ErrCannotHold", index.ErrCannotHold, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.ProgramLimitExceeded, "%s", err.Error())
	}),
	typed("fileindex.OptionError", func(e *fileindex.OptionError, err error) *pgerr.Error { return indexOptionError(e, err) }),
	typed("cluster.TypeError", func(e *cluster.TypeError, err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.FeatureNotSupported, "%s", e.Error())
	}),
	typed("table.ClusterError", func(e *table.ClusterError, err error) *pgerr.Error {
		switch {
		case e.Column != "":
			return pgerr.Wrap(err, pgerr.UndefinedColumn, "%s", e.Reason)
		case e.Unsupported:
			return pgerr.Wrap(err, pgerr.FeatureNotSupported, "%s", e.Reason)
		}
		return pgerr.Wrap(err, pgerr.InvalidParameterValue, "%s", e.Reason)
	}),
	typed("aggregate.OptionError", func(e *aggregate.OptionError, err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.InvalidParameterValue, "%s", e.Reason)
	}),
	typed("aggregate.Error", func(e *aggregate.Error, err error) *pgerr.Error {
		if e.Overflow {
			return pgerr.Wrap(err, pgerr.NumericValueOutOfRange, "value out of range: %s", e.Reason)
		}
		return pgerr.Wrap(err, pgerr.FeatureNotSupported, "%s", e.Reason)
	}),
	typed("mergetree.MergeError", func(e *mergetree.MergeError, err error) *pgerr.Error {
		if e.Overflow {
			return pgerr.Wrap(err, pgerr.NumericValueOutOfRange, "value out of range: %s", e.Error())
		}
		return pgerr.Wrap(err, pgerr.FeatureNotSupported, "rows of one key cannot be merged: %s", e.Error())
	}),
	typed("table.NullError", func(e *table.NullError, err error) *pgerr.Error {
		pe := pgerr.Wrap(err, pgerr.NotNullViolation, "null value in column %q violates not-null constraint", e.Column)
		pe.Column = e.Column
		return pe
	}),
	typed("table.BucketCountError", func(e *table.BucketCountError, err error) *pgerr.Error {
		t := nameOfDir(e.Dir)
		return pgerr.Wrap(err, pgerr.ObjectNotInPrerequisiteState, "%s", e.Error()).
			WithHint("CALL sys.rescale(%s) or INSERT OVERWRITE %s SELECT * FROM %s rewrites the files with %d buckets; ALTER TABLE %s SET ('bucket' = '%d') goes back.",
				function.QuoteLiteral(t), t, t, e.Want, t, e.Have)
	}),
	typed("schema.ChangeError", func(e *schema.ChangeError, err error) *pgerr.Error {
		return pgerr.Wrap(err, changeCode(e.Kind), "%s", e.Msg)
	}),
	typed("fileio.CorruptionError", func(e *fileio.CorruptionError, err error) *pgerr.Error {
		pe := pgerr.Wrap(err, pgerr.DataCorrupted, "file %q is corrupt", e.Path)
		d := upperFirst(e.Reason)
		if e.Err != nil {
			d += ": " + e.Err.Error()
		}
		if e.Offset >= 0 {
			d += fmt.Sprintf(" (at byte %d)", e.Offset)
		}
		return pe.WithDetail("%s.", strings.TrimSuffix(d, "."))
	}),
	typed("fileio.MissingError", func(e *fileio.MissingError, err error) *pgerr.Error {
		// A reader whose snapshot has expired under it wraps NotFoundError too,
		// and the rule above has answered 58P01.
		return pgerr.Wrap(err, pgerr.DataCorrupted, "file %q is missing", e.Path).
			WithDetail("A snapshot that has not expired names it.")
	}),
	sentinel("dv.ErrCorrupt", dv.ErrCorrupt, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.DataCorrupted, "%s", err.Error())
	}),
	sentinel("binrow.ErrCorrupt", binrow.ErrCorrupt, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.DataCorrupted, "%s", err.Error())
	}),
	sentinel("catalog.ErrNoSchema", catalog.ErrNoSchema, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.InvalidSchemaName, "%s", err.Error())
	}),
	sentinel("catalog.ErrNoRelation", catalog.ErrNoRelation, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.UndefinedTable, "%s", err.Error())
	}),
	typed("catalog.ValueError", func(e *catalog.ValueError, err error) *pgerr.Error {
		code := pgerr.NumericValueOutOfRange
		switch e.Kind {
		case catalog.TooLong:
			code = pgerr.StringDataRightTruncation
		case catalog.TimeOutOfRange:
			code = pgerr.DatetimeFieldOverflow
		case catalog.NullInside:
			code = pgerr.NullValueNotAllowed
		case catalog.WrongLength:
			code = pgerr.ArraySubscriptError
		}
		pe := pgerr.Wrap(err, code, "%s", e.Msg)
		pe.Column = e.Column
		return pe
	}),
	sentinel("catalog.ErrSchemaExists", catalog.ErrSchemaExists, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.DuplicateSchema, "%s", err.Error())
	}),
	sentinel("catalog.ErrRelationExists", catalog.ErrRelationExists, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.DuplicateTable, "%s", err.Error())
	}),
	sentinel("catalog.ErrNotEmpty", catalog.ErrNotEmpty, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.DependentObjectsStillExist, "%s", err.Error())
	}),
	sentinel("catalog.ErrChanged", catalog.ErrChanged, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.SerializationFailure, "could not serialize access due to concurrent update").
			WithDetail("%s.", upperFirst(err.Error())).WithHint("The transaction might succeed if retried.")
	}),
	sentinel("objects.ErrConflict", objects.ErrConflict, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.SerializationFailure, "could not serialize access due to concurrent update").
			WithDetail("%s.", upperFirst(err.Error())).WithHint("The transaction might succeed if retried.")
	}),
	sentinel("roles.ErrDependent", roles.ErrDependent, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.DependentObjectsStillExist, "dependent privileges exist").WithHint("Use CASCADE to revoke them too.")
	}),
	sentinel("roles.ErrCircular", roles.ErrCircular, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.InvalidGrantOperation, "grant options cannot be granted back to your own grantor")
	}),
	sentinel("roles.ErrItem", roles.ErrItem, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.InvalidTextRepresentation, "%s", err.Error())
	}),
	sentinel("objects.ErrExhausted", objects.ErrExhausted, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.SequenceGeneratorLimitExceeded, "%s", err.Error())
	}),
	sentinel("catalog.ErrInvalidName", catalog.ErrInvalidName, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.InvalidName, "%s", err.Error())
	}),
	sentinel("catalog.ErrReserved", catalog.ErrReserved, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.ReservedName, "%s", err.Error())
	}),
	// Of a table, tag or partition: its name is a file's.
	sentinel("name too long", syscall.ENAMETOOLONG, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.NameTooLong, "%s", firstLine(err.Error()))
	}),
	sentinel("disk full", syscall.ENOSPC, diskFull),
	sentinel("quota", syscall.EDQUOT, diskFull),
	sentinel("fileio.ErrNotExist", fileio.ErrNotExist, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.DataCorrupted, "%s", err.Error())
	}),
	sentinel("fileio.ErrOvertaken", fileio.ErrOvertaken, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.SerializationFailure, "%s", err.Error()).WithHint("The transaction might succeed if retried.")
	}),
	sentinel("fileio.ErrExist", fileio.ErrExist, func(err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.IOError, "%s", err.Error())
	}),
	typed("fileio.PathError", func(e *fileio.PathError, err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.IOError, "could not %s file %q: %s", e.Op, e.Path, e.Err.Error())
	}),
	typed("fs.PathError", func(e *fs.PathError, err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.IOError, "could not %s file: %s", e.Op, e.Err.Error())
	}),
	typed("net.OpError", func(e *net.OpError, err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.ConnectionFailure, "connection to client lost")
	}),
	typed("syscall.Errno", func(e syscall.Errno, err error) *pgerr.Error {
		return pgerr.Wrap(err, pgerr.IOError, "input or output failed: %s", e.Error())
	}),
}

func diskFull(err error) *pgerr.Error {
	return pgerr.Wrap(err, pgerr.DiskFull, "could not write to file: no space left on device").
		WithHint("Free space in the warehouse or in the directory for temporary files.")
}

func bytesText(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1 << 30, "GB"}, {1 << 20, "MB"}, {1 << 10, "kB"}} {
		if n >= u.size {
			return fmt.Sprintf("%.4g %s", float64(n)/float64(u.size), u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// toPG turns any error into what a client sees. An error that carries a code
// keeps it; a cancelled context gives its cause; the table maps what it knows;
// the rest is XX000 with an id under which the chain and the stack are logged.
func (e *Engine) toPG(ctx context.Context, err error, sql string) *pgerr.Error {
	var pe *pgerr.Error
	if cause := context.Cause(ctx); cause != nil && !isPanic(err) && !unknown(err) && !pgerr.Is(err, pgerr.StatementCompletionUnknown) {
		// Whatever failed, it failed because the statement was told to stop. A
		// lost connection has no cause of ours: nobody reads the answer.
		if errors.As(cause, &pe) {
			return pe
		}
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, cause) {
			return pgerr.Wrap(err, pgerr.QueryCanceled, "canceling statement due to user request")
		}
	}
	if isPanic(err) {
		return e.internal(err, sql)
	}
	if errors.As(err, &pe) {
		if pe.Code == pgerr.InternalError {
			return e.internal(err, sql) // a panic of a worker
		}
		return pe
	}
	for _, r := range errorTable {
		if pe := r.match(err); pe != nil {
			if pe.Code == pgerr.DataCorrupted || pe.Code == pgerr.IOError || pe.Code == pgerr.DiskFull {
				e.log.Error("storage failed", "code", pe.Code.String(), "err", err)
			}
			return pe
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return pgerr.Wrap(err, pgerr.QueryCanceled, "canceling statement due to user request")
	}
	return e.internal(err, sql)
}

// known reports whether err has a SQLSTATE, its own or one of the table's.
func known(err error) bool {
	var pe *pgerr.Error
	if errors.As(err, &pe) {
		return true
	}
	for _, r := range errorTable {
		if r.match(err) != nil {
			return true
		}
	}
	return false
}

func isPanic(err error) bool {
	var p *panicError
	return errors.As(err, &p)
}

// internal is the error of a bug.
func (e *Engine) internal(err error, sql string) *pgerr.Error {
	id := fmt.Sprintf("%04x", nextID.Add(1))
	sql, _ = parser.Normalize(sql)
	if len(sql) > 4096 {
		sql = sql[:4096]
	}
	e.log.Error("internal error", "id", id, "err", chain(err), "stmt", sql, "stack", stackOf(err))
	return pgerr.Wrap(err, pgerr.InternalError, "internal error %s: %s", id, strings.TrimPrefix(firstLine(err.Error()), "internal error: ")).
		WithHint("This is a bug. The server's log says more under this number.")
}

// chain is err with every cause that its text does not show.
func chain(err error) string {
	s := err.Error()
	for c := errors.Unwrap(err); c != nil; c = errors.Unwrap(c) {
		if t := c.Error(); !strings.Contains(s, t) {
			s += ": " + t
		}
	}
	return s
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > 300 {
		s = s[:300]
	}
	return s
}

// changeCode is the SQLSTATE for a change of a schema that is refused.
func changeCode(k schema.ChangeKind) pgerr.Code {
	switch k {
	case schema.ColumnExists:
		return pgerr.DuplicateColumn
	case schema.ColumnMissing:
		return pgerr.UndefinedColumn
	case schema.NotAllowed, schema.NullToNotNull:
		return pgerr.FeatureNotSupported
	case schema.BadOption:
		return pgerr.InvalidParameterValue
	case schema.BadDefault:
		return pgerr.DatatypeMismatch
	case schema.KeyNotEmpty:
		return pgerr.ObjectNotInPrerequisiteState
	}
	return pgerr.InvalidTableDefinition
}

// nameOfDir is how SQL names the table in a directory of the warehouse.
func nameOfDir(dir string) string {
	db, name := path.Split(dir)
	name = function.QuoteIdent(name)
	if schema := catalog.SchemaOf(strings.TrimSuffix(strings.TrimSuffix(db, "/"), catalog.DatabaseDir(""))); schema != catalog.PublicSchema {
		name = function.QuoteIdent(schema) + "." + name
	}
	return name
}
