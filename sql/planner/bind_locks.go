package planner

import (
	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// RowLock is a relation whose rows a SELECT FOR UPDATE or one of its kin locks.
type RowLock struct {
	Rel catalog.TableInfo
	// Key are the columns of the plan's result with the primary key of the row to
	// lock, in the order of PrimaryKey. They stand behind Planned.Columns: clients
	// do not see them.
	Key []int
	// Shared: FOR SHARE and FOR KEY SHARE.
	Shared bool
	// NoWait: a row that is locked is 55P03. SkipLocked: it is left out.
	NoWait, SkipLocked bool
}

// rowLock is a RowLock while the query is bound.
type rowLock struct {
	RowLock
	it *item
}

var lockNames = map[ast.LockStrength]string{ast.ForKeyShare: "FOR KEY SHARE", ast.ForShare: "FOR SHARE", ast.ForNoKeyUpdate: "FOR NO KEY UPDATE", ast.ForUpdate: "FOR UPDATE"}

// bindLocks checks FOR UPDATE and its kin and notes the relations named. Rows can
// be locked of tables with a primary key in the FROM of the statement itself;
// their keys become columns of the result that are not shown. node is that FROM.
func (p *planner) bindLocks(s *scope, sel *ast.Select, q *ast.Query, node plan.LNode, targets []target) ([]target, error) {
	for _, l := range q.Locks {
		name := lockNames[l.Strength]
		var what string
		switch {
		case sel.Distinct:
			what = "DISTINCT clause"
		case len(sel.GroupBy) > 0:
			what = "GROUP BY clause"
		case sel.Having != nil:
			what = "HAVING clause"
		case s.sel.hasAgg:
			what = "aggregate functions"
		case len(s.sel.windows) > 0:
			what = "window functions"
		case s.sel.sets > 0:
			what = "set-returning functions in the target list"
		}
		if what != "" {
			return nil, pgerr.New(pgerr.FeatureNotSupported, "%s is not allowed with %s", name, what)
		}
		p.noWait = p.noWait || l.Wait == ast.LockNoWait
		var items []*item
		if len(l.Of) == 0 {
			for _, it := range s.all {
				if it.rel != nil || it.inner != nil {
					items = append(items, it)
				}
			}
		}
		for _, of := range l.Of {
			var found *item
			for _, it := range s.all {
				if it.name == of.Last() && !it.join {
					found = it
				}
			}
			if found == nil {
				return nil, p.errAt(pgerr.UndefinedTable, of.Pos(), "relation %q in %s clause not found in FROM clause", of.Last(), name)
			}
			if found.rel == nil && found.inner == nil {
				return nil, pgerr.New(pgerr.FeatureNotSupported, "%s cannot be applied to %q, which is no table", name, found.name)
			}
			items = append(items, found)
		}
		for _, it := range items {
			if it.rel != nil {
				p.locks = append(p.locks, it.rel)
			}
			p.locks = append(p.locks, it.inner...)
			if it.need != nil {
				it.need.Modes |= roles.Update
			}
			for _, n := range it.within {
				n.Modes |= roles.Update
			}
			if s.parent != nil || p.views > 0 || it.get == nil {
				continue
			}
			if nullableSide(node, it.get, false) {
				return nil, pgerr.New(pgerr.FeatureNotSupported, "%s cannot be applied to the nullable side of an outer join", name)
			}
			if p.o.RowLocks {
				p.lockRows(it, l)
			}
		}
	}
	for i := range p.rowLocks {
		l := &p.rowLocks[i]
		for _, k := range l.Rel.PrimaryKey() {
			for c, col := range l.it.rel.Columns() {
				if col.Name == k {
					targets = append(targets, target{name: k, e: p.copyCol(l.it.cols[c].e, -1), pos: -1, junk: true, lock: true})
				}
			}
		}
	}
	return targets, nil
}

// lockRows notes that the rows of an item are locked; two clauses about one item
// are one lock, the stronger.
func (p *planner) lockRows(it *item, l *ast.Locking) {
	t, ok := it.rel.(catalog.TableInfo)
	if !ok || len(t.PrimaryKey()) == 0 {
		return
	}
	shared := l.Strength == ast.ForShare || l.Strength == ast.ForKeyShare
	for i := range p.rowLocks {
		if o := &p.rowLocks[i]; o.it == it {
			o.Shared = o.Shared && shared
			o.NoWait = o.NoWait || l.Wait == ast.LockNoWait
			o.SkipLocked = !o.NoWait && (o.SkipLocked || l.Wait == ast.LockSkip)
			return
		}
	}
	p.rowLocks = append(p.rowLocks, rowLock{it: it, RowLock: RowLock{Rel: t, Shared: shared,
		NoWait: l.Wait == ast.LockNoWait, SkipLocked: l.Wait == ast.LockSkip}})
}

// nullableSide reports whether an outer join may put NULLs in place of the rows
// of g.
func nullableSide(n plan.LNode, g *plan.LGet, nullable bool) bool {
	if n == plan.LNode(g) {
		return nullable
	}
	if j, ok := n.(*plan.LJoin); ok {
		return nullableSide(j.Left, g, nullable || j.Kind == plan.Right || j.Kind == plan.Full) ||
			nullableSide(j.Right, g, nullable || j.Kind == plan.Left || j.Kind == plan.Full)
	}
	for _, k := range n.Kids() {
		if nullableSide(*k, g, nullable) {
			return true
		}
	}
	return false
}

// lockResult gives the row locks their places behind the n columns shown.
func (p *planner) lockResult(n int) []RowLock {
	var out []RowLock
	for _, l := range p.rowLocks {
		for range l.Rel.PrimaryKey() {
			l.Key = append(l.Key, n)
			n++
		}
		out = append(out, l.RowLock)
	}
	return out
}
