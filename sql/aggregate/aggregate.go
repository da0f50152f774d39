// Package aggregate holds aggregates and window functions: states as columns,
// updated by group numbers, one loop per aggregate.
package aggregate

import (
	"context"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/function"
)

// Def is one signature of an aggregate.
type Def struct {
	Name     string
	Args     []types.Type
	Variadic bool
	Ret      types.Type
	RetFn    func(args []types.Type) types.Type
	// ExactArgs as in function.Overload.
	ExactArgs func(args []types.Type) []types.Type
	// OrderSensitive aggregates (array_agg, string_agg, first) must see rows in
	// order when ORDER BY is given; the executor sorts for them.
	OrderSensitive bool
	// OrderedSet marks WITHIN GROUP aggregates; DirectArgs is how many of Args
	// stand before WITHIN GROUP. Hypothetical-set ones set Hypothetical.
	OrderedSet   bool
	DirectArgs   int
	Hypothetical bool
	// IgnoresNulls says that a row whose first argument is NULL changes nothing,
	// so DISTINCT and FILTER rewriting may drop it.
	IgnoresNulls bool
	// New makes an empty state for no groups.
	New func(c *Call) State
	OID uint32
	Doc string
}

// Call describes one use of an aggregate.
type Call struct {
	Ctx      context.Context
	Env      function.Env
	ArgTypes []types.Type
	Ret      types.Type
	Account  *mem.Account
	// Direct are the direct arguments of an ordered-set aggregate.
	Direct []types.Datum
	// Desc and NullsFirst describe the ordering of an ordered-set aggregate.
	Desc, NullsFirst []bool
}

// State holds the states of many groups. Not safe for concurrent use.
type State interface {
	// Grow makes room for groups 0..n-1; new groups are empty.
	Grow(n int) error
	// Update adds rows: row sel[i] (or i when sel is nil) of args belongs to
	// group groups[i]; len(groups) is the number of live rows. args may be
	// dictionaries or constants.
	Update(groups []uint32, args []vec.Vec, sel []uint16) error
	// Merge adds the states of other: its group i belongs to group to[i] here.
	// other has the same concrete type and is not used afterwards.
	Merge(other State, to []uint32) error
	// Result returns the values of groups [from, to).
	Result(from, to int) (arrow.Array, error)
	// Size is the memory held, in bytes, for accounts.
	Size() int64
}

// Remover is a State that can also take rows away again, which makes moving
// window frames linear. Update's contract holds.
type Remover interface {
	Remove(groups []uint32, args []vec.Vec, sel []uint16) error
}

// PartMerger is a State that can take over some groups of another: group
// from[i] of other belongs to group to[i] here. The other groups of other are
// left alone, so several receivers can share one sender, each taking its part
// by hash (never the same group twice, and not at the same time unless the
// state of different groups is disjoint memory). It is what lets an aggregate
// with very many groups be merged in parallel; a State without it is merged by
// one worker.
type PartMerger interface {
	MergePart(other State, from, to []uint32) error
}

// WindowDef is a pure window function.
type WindowDef struct {
	Name     string
	Args     []types.Type
	Defaults int
	Ret      types.Type
	RetFn    func(args []types.Type) types.Type
	// Compute fills the results of one partition. Rows are in window order.
	Compute func(p *Partition) (arrow.Array, error)
	OID     uint32
	Doc     string
}

// Partition is one partition of a window, with everything a window function may
// look at. All slices have length N.
type Partition struct {
	Ctx      context.Context
	N        int
	Args     []vec.Vec // of length N, or constants
	ArgTypes []types.Type
	Ret      types.Type
	// Peers[i] is the first row of the peer group of row i, PeerEnd[i] the row
	// after its last.
	Peers, PeerEnd []int32
	// FrameStart and FrameEnd are half open; nil for functions that ignore
	// frames. Excluded reports rows an EXCLUDE clause takes out, nil = none.
	FrameStart, FrameEnd []int32
	Excluded             func(row, j int) bool
}
