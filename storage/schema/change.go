package schema

import "github.com/paimon-sql/paimon-sql/internal/types"

// Change is one alteration of a table's schema; the kinds are those of Java's
// SchemaChange. A Path is a column name, then members of rows; "element" and
// "value" step into arrays and maps.
type Change interface{ change() }

// Move places a column.
type Move struct {
	First  bool
	After  string
	Before string
}

// The changes.
type (
	SetOption    struct{ Key, Value string }
	RemoveOption struct{ Key string }
	// Settled says that the table's files are such as the next change of an option
	// asks for: it passes although the option may not be changed otherwise. Of effect
	// for deletion-vectors.enabled, which asks for deletion-vectors.modifiable.
	Settled    struct{ Key string }
	SetComment struct{ Comment string }
	AddColumn  struct {
		Path    []string
		Type    types.Type
		Comment string
		Default *string // Paimon's defaultValue, text; nil = none
		Move    *Move
	}
	DropColumn   struct{ Path []string }
	RenameColumn struct {
		Path []string
		To   string
	}
	UpdateType struct {
		Path []string
		Type types.Type
		// KeepNullability ignores Type.NotNull.
		KeepNullability bool
	}
	UpdateNullability struct {
		Path    []string
		NotNull bool
		// Verified says that no row has NULL there: the change passes although the
		// table option alter-column-null-to-not-null.disabled forbids it.
		Verified bool
	}
	UpdateColumnComment struct {
		Path    []string
		Comment string
	}
	UpdateDefault struct {
		Path    []string
		Default *string // nil drops it
	}
	UpdatePosition struct {
		Column string
		Move   Move
	}
	// AddPrimaryKey is ours: allowed while the table has no snapshot.
	AddPrimaryKey struct{ Columns []string }
)

func (SetOption) change()           {}
func (Settled) change()             {}
func (RemoveOption) change()        {}
func (SetComment) change()          {}
func (AddColumn) change()           {}
func (DropColumn) change()          {}
func (RenameColumn) change()        {}
func (UpdateType) change()          {}
func (UpdateNullability) change()   {}
func (UpdateColumnComment) change() {}
func (UpdateDefault) change()       {}
func (UpdatePosition) change()      {}
func (AddPrimaryKey) change()       {}
