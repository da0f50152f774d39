package plan

import (
	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// ModifyNodeID is the id under which a StatsSource keeps what the statement
// itself did: rows written, time. The nodes of Source count from 1.
const ModifyNodeID = -1

// ModifyOp is what a statement that changes a table is.
type ModifyOp uint8

// The statements.
const (
	InsertOp ModifyOp = iota
	UpdateOp
	DeleteOp
	MergeOp
)

// String returns the word of the statement as EXPLAIN has it.
func (o ModifyOp) String() string {
	return [...]string{"Insert", "Update", "Delete", "Merge"}[o]
}

// Action is what one source row does; the values of Modify.Action's slot.
type Action int16

// The actions. A row with ActNothing is passed over.
const (
	ActNothing Action = iota
	ActInsert
	ActUpdate
	ActDelete
)

// Modify is an INSERT, UPDATE, DELETE or MERGE, or the target of COPY FROM: rows
// of Source say what becomes of the rows of Target. It is data: engine runs it.
// A "table column" is a position in Target.Columns().
type Modify struct {
	Op     ModifyOp
	Target catalog.TableInfo
	Alias  string // range name, for EXPLAIN and messages
	// Source makes the rows; nil for COPY, whose rows come from the client as In
	// says and pass Where and Fill.
	Source *Fragment
	// Action is the slot of Source with a smallint Action per row; -1: every row
	// does what Op says.
	Action int
	// New are the slots of the new row by table column, coerced to the column's SQL
	// type, defaults filled in; nil when no row inserts or updates.
	New []int
	// Old are the slots of the row that is there, by table column; nil when no row
	// updates or deletes. Columns that nobody needs are -1: an append table needs
	// none but RETURNING's, a primary-key table needs every column.
	Old []int
	// File and Pos are the slots of _FILE and _POS of the row that is there; -1 for
	// primary-key tables and for inserts.
	File, Pos int
	// RowID is the slot of _ROW_ID of the row that is there, which an updated row keeps;
	// -1 where rows have none.
	RowID int
	// KeyChanged says that an update may give a row another primary key or
	// partition: the old row is deleted then.
	KeyChanged bool
	// Conflict is ON CONFLICT; nil = none.
	Conflict *OnConflict
	// Checks are the CHECK constraints, over the new row: slot i is table column i.
	Checks []Check
	// Returning is over the affected row (the new one; the old one of a delete) by
	// table column, followed by the source slots Extra. Nil: no RETURNING.
	Returning []Expr
	Extra     []int
	// ReturnSchema names Returning's columns.
	ReturnSchema types.Schema
	// Overwrite is INSERT OVERWRITE; nil = not.
	Overwrite *OverwriteSpec
	// Upsert is UPSERT INTO: strict insert mode does not apply.
	Upsert bool

	// In are the columns that COPY's rows have. Where (over In) chooses rows, Fill
	// (over In) makes the new row, one expression per table column.
	In    types.Schema
	Where Expr
	Fill  []Expr
}

// OnConflict says what an INSERT does with a key that exists.
type OnConflict struct {
	// DoNothing passes the row over; Sets is nil then.
	DoNothing bool
	// Sets make the row that replaces the one that is there, one expression per
	// table column, over the row proposed (slots 0..n-1) and the row that is there
	// (n..2n-1). Where, over the same, false or NULL: the row is passed over.
	Sets  []Expr
	Where Expr
	// Blind says that Sets take every column outside the key from the row proposed
	// and there is no Where: the row that is there need not be read.
	Blind bool
	// Any: no target was named, any conflict counts.
	Any bool
}

// Check is a CHECK constraint.
type Check struct {
	Name string
	Cond Expr
}

// OverwriteSpec is INSERT OVERWRITE's PARTITION clause.
type OverwriteSpec struct {
	// Static are the values given, by partition column; nil = none.
	Static map[string]Expr
	// Dynamic: only partitions that get rows are replaced.
	Dynamic bool
}
