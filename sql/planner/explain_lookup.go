package planner

import (
	"fmt"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// lookup describes a lookup as PostgreSQL does an index scan of the primary key.
func (x *explainer) lookup(n *plan.Lookup, out *xnode, add func(string, any)) {
	name := n.Rel.Name()
	if x.o.Verbose {
		name = n.Rel.Schema() + "." + name
	}
	index := n.Rel.Name() + "_pkey"
	out.typ = "Index Scan"
	out.title = "Index Scan using " + ast.QuoteIdent(index) + " on " + name
	alias := n.Rel.Name()
	if n.Alias != "" {
		alias = n.Alias
	}
	if alias != n.Rel.Name() {
		out.title += " " + alias
	}
	out.about = []prop{{"Index Name", index}, {"Relation Name", n.Rel.Name()}, {"Alias", alias}}
	if x.single && !x.o.Verbose {
		alias = ""
	}
	out.names = qualified(alias, n.Out)
	add("Index Cond", x.dep(out.names).expr(n.Cond))
	add("Filter", x.dep(out.names).expr(n.Filter))
	var r *table.PlanReport
	if x.stats != nil {
		r = x.stats.Scan(n.ID)
	}
	if r == nil {
		r = &table.PlanReport{}
		if t, ok := n.Rel.(catalog.TableInfo); ok && t.At().Kind == snapshot.ID {
			r.SnapshotID = t.At().ID
		}
	}
	if r.SnapshotID > 0 {
		add("Snapshot", r.SnapshotID)
	} else {
		add("Snapshot", "none")
	}
	if r.Keys > 0 {
		add("Keys", r.Keys)
	}
	if x.stats != nil && r.Files > 0 {
		add("Files", fmt.Sprintf("%d of %d read", r.FilesRead, r.Files))
	}
	if c := r.Counters; c.BytesRead > 0 {
		add("Bytes Read", kb(c.BytesRead))
	}
}
