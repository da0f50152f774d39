package function

import "github.com/paimon-sql/paimon-sql/internal/types"

// The registry's contract with the planner. builtin.go fills it; these are the
// only ways in.

// Lookup returns every overload of a function by (lower-case) name; nil = none.
func Lookup(name string) []*Overload { return byName[name] }

// LookupOperator returns the overloads of an operator: two arguments, or one
// for prefix operators.
func LookupOperator(op string, prefix bool) []*Overload {
	if prefix {
		return prefixOps[op]
	}
	return infixOps[op]
}

// Cast returns the kernel that turns values of from into to, and the weakest
// context in which it may be used; ok is false when there is no such cast.
// A cast that only changes the label (text to varchar without length, int4 to
// oid of same physical form) has a nil kernel and the same arrays.
func Cast(from, to types.Type) (o *Overload, c CastContext, ok bool) { return findCast(from, to) }

// All returns every overload of every function in a fixed order, for pg_proc.
func All() []*Overload { return all }

var (
	byName    = map[string][]*Overload{}
	infixOps  = map[string][]*Overload{}
	prefixOps = map[string][]*Overload{}
	all       []*Overload
	findCast  = func(from, to types.Type) (*Overload, CastContext, bool) { return nil, Explicit, false }
)
