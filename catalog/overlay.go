package catalog

import "github.com/paimon-sql/paimon-sql/storage/commit"

// WithOverlay returns the relation with a transaction's writes laid over it; nil
// takes them off.
func (r *TableRelation) WithOverlay(c *commit.Changes) *TableRelation {
	x := *r
	x.overlay = c
	return &x
}
