package planner

import (
	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// Need is what a statement does with one relation that it names, for whoever checks
// privileges: what PostgreSQL keeps in RTEPermissionInfo. The planner checks nothing.
type Need struct {
	Rel catalog.Relation
	// Via is the view whose query names the relation: its owner's privileges count.
	// nil = the current user's, which is so inside security_invoker views too.
	Via catalog.Relation
	// Modes are the privileges needed, on the relation or on the columns below.
	Modes roles.Mode
	// Selected, Inserted and Updated are positions in Rel.Columns(). Where a mode has
	// none the statement needs it on any column.
	Selected, Inserted, Updated ColumnSet
	// Whole: columns are read that have no privileges of their own.
	Whole bool
}

// ColumnSet is a set of positions of columns.
type ColumnSet []uint64

func (c *ColumnSet) add(i int) {
	for len(*c) <= i/64 {
		*c = append(*c, 0)
	}
	(*c)[i/64] |= 1 << (i % 64)
}

// Has reports whether position i is in the set.
func (c ColumnSet) Has(i int) bool { return i/64 < len(c) && c[i/64]&(1<<(i%64)) != 0 }

// Empty reports whether nothing is in the set.
func (c ColumnSet) Empty() bool {
	for _, w := range c {
		if w != 0 {
			return false
		}
	}
	return true
}

// needs notes that the statement names a relation.
func (p *planner) need(rel catalog.Relation, modes roles.Mode) *Need {
	n := &Need{Rel: rel, Via: p.via, Modes: modes}
	p.needs = append(p.needs, n)
	return n
}

// reads notes the columns that an expression reads: those of relations in FROM.
func (p *planner) reads(e plan.Expr) {
	if c, ok := e.(*plan.Col); ok { // as a rule
		p.readsCol(c)
		return
	}
	if e != nil {
		plan.Walk(e, func(x plan.Expr) bool {
			if c, ok := x.(*plan.Col); ok {
				p.readsCol(c)
			}
			return true
		})
	}
}

func (p *planner) readsCol(c *plan.Col) {
	i := p.colInfo(c.ID)
	if i == nil || i.item == nil || i.item.need == nil {
		return
	}
	n := i.item.need
	n.Modes |= roles.Select
	if i.att < 0 {
		n.Whole = true
		return
	}
	n.Selected.add(i.att)
}

// readsRow notes that all columns of an item are read.
func (p *planner) readsRow(it *item) {
	for _, c := range it.cols {
		p.reads(c.e)
	}
}
