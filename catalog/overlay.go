package catalog

import "github.com/paimon-sql/paimon-sql/storage/commit"

// WithOverlay returns the relation with a transaction's writes laid over it; nil
// takes them off.
func (r *TableRelation) WithOverlay(c *commit.Changes) *TableRelation {
	x := *r
	x.overlay = c
	return &x
}

// WithDynamic returns the relation with the table options of a hint, which must not name
// a state (ResolveOptions.HintsState).
func (r *TableRelation) WithDynamic(o map[string]string) *TableRelation {
	x := *r
	x.dynamic = o
	return &x
}
