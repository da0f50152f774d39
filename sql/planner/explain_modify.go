package planner

import (
	"sort"
	"strings"

	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// ExplainModify prints the plan of a data-changing statement in PostgreSQL's
// form: a node for the change above the plan of its source. stats may be nil; the
// node's own counters are those of plan.ModifyNodeID.
func ExplainModify(p *PlannedModify, o ExplainOptions, stats StatsSource) []string {
	x := &explainer{o: o, stats: stats, subplans: map[plan.Node][]labelled{}, single: len(p.Relations) == 1}
	m := p.Modify
	rel := m.Target.Name()
	n := &xnode{typ: "ModifyTable", hash: true}
	n.about = []prop{{"Operation", m.Op.String()}, {"Relation Name", rel}, {"Alias", m.Alias}}
	shown := rel
	if o.Verbose {
		shown = m.Target.Schema() + "." + rel
		n.about = append(n.about, prop{"Schema", m.Target.Schema()})
	}
	n.title = m.Op.String() + " on " + shown
	if m.Alias != "" && !strings.EqualFold(m.Alias, rel) {
		n.title += " " + m.Alias
	}
	if stats != nil && o.Analyze {
		if c, ok := stats.Node(plan.ModifyNodeID); ok {
			n.counters, n.hash = &c, false
		}
	}
	own := make([]string, len(m.Target.Columns()))
	excluded := make([]string, len(own))
	for i, c := range m.Target.Columns() {
		own[i] = ast.QuoteIdent(m.Alias) + "." + ast.QuoteIdent(c.Name)
		excluded[i] = "excluded." + ast.QuoteIdent(c.Name)
	}
	var source *xnode
	if m.Source != nil {
		source = x.fragment(m.Source)
		n.est.Startup, n.est.Total = source.est.Startup, source.est.Total
		n.kids = []*xnode{source}
	}
	if m.Returning != nil {
		names := append([]string{}, own...)
		for _, s := range m.Extra {
			name := "?"
			if source != nil && s < len(source.names) {
				name = source.names[s]
			}
			names = append(names, name)
		}
		if source != nil {
			n.est.Rows, n.est.Width = source.est.Rows, source.est.Width
		}
		if o.Verbose {
			n.props = append(n.props, prop{"Output", x.dep(names).list(m.Returning)})
		}
	}
	if c := m.Conflict; c != nil {
		what := "UPDATE"
		if c.DoNothing {
			what = "NOTHING"
		}
		n.props = append(n.props, prop{"Conflict Resolution", what})
		if !c.Any {
			n.props = append(n.props, prop{"Conflict Arbiter Indexes", []string{rel + "_pkey"}})
		}
		if c.Where != nil {
			n.props = append(n.props, prop{"Conflict Filter", x.dep(append(excluded, own...)).expr(c.Where)})
		}
	}
	if w := m.Overwrite; w != nil {
		what := "whole table"
		switch {
		case w.Dynamic:
			what = "partitions that get rows"
		case len(w.Static) > 0:
			what = "partition"
		}
		var vals []string
		for k, v := range w.Static {
			vals = append(vals, ast.QuoteIdent(k)+" = "+x.dep(nil).expr(v))
		}
		sort.Strings(vals)
		if len(vals) > 0 {
			what += " (" + strings.Join(vals, ", ") + ")"
		}
		n.props = append(n.props, prop{"Overwrite", what})
	}
	return x.print(n)
}
