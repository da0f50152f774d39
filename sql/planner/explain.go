package planner

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sort"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// StatsSource yields runtime counters by plan node; see plan.StatsSource.
type StatsSource = plan.StatsSource

// ExplainOptions are the options of EXPLAIN.
type ExplainOptions struct {
	Analyze, Verbose, Buffers bool
	NoCosts, NoTiming         bool
	Summary                   bool // planning and, with Analyze, execution time
	JSON                      bool
	// Ctx bounds the planning of scans for their pruning lines; nil = those
	// lines are only shown when stats has them.
	Ctx context.Context
	Env function.Env // for the text form of constants
	// Caches says what was asked of the caches while the statement ran, by it and by
	// others; nil = do not show it.
	Caches func() []table.CacheStats
}

// Explain prints a plan in PostgreSQL's form: one string per line of text, or
// one string of JSON. stats may be nil.
func Explain(p *Planned, o ExplainOptions, stats StatsSource) []string {
	x := &explainer{o: o, stats: stats, subplans: map[plan.Node][]labelled{}, single: len(p.Relations) == 1}
	return x.print(x.fragment(p.Fragment))
}

// fragment describes a whole plan: its root with the subplans below it.
func (x *explainer) fragment(f *plan.Fragment) *xnode {
	var subs []labelled
	for i, ip := range f.InitPlans {
		kind := ""
		if ip.Kind == plan.Exists {
			kind = "exists "
		}
		subs = append(subs, labelled{fmt.Sprintf("InitPlan %d (%sreturns $%d)", i+1, kind, ip.Param+1), ip.Plan})
	}
	for _, c := range f.CTEs {
		subs = append(subs, labelled{"CTE " + c.Name, c.Plan})
	}
	root := x.node(f.Root, nil)
	for _, s := range subs {
		n := x.node(s.node, nil)
		n.label = s.label
		root.subs = append(root.subs, n)
	}
	return root
}

// print renders the tree below root.
func (x *explainer) print(root *xnode) []string {
	o, stats := x.o, x.stats
	if o.JSON {
		doc := map[string]any{"Plan": root.json(o)}
		if o.Analyze && o.Caches != nil {
			use := map[string]any{}
			for _, c := range o.Caches() {
				use[c.Name] = map[string]any{"Hits": c.Hits, "Misses": c.Misses}
			}
			doc["Caches"] = use
		}
		if stats != nil && o.Summary {
			pt, et := stats.Times()
			doc["Planning Time"] = millis(pt)
			if o.Analyze {
				doc["Execution Time"] = millis(et)
			}
		}
		b, err := json.MarshalIndent([]any{doc}, "", "  ")
		if err != nil {
			return []string{"[]"}
		}
		return []string{string(b)}
	}
	var lines []string
	root.text(&lines, 0, o)
	if o.Analyze && o.Caches != nil {
		if use := o.Caches(); len(use) > 0 {
			lines = append(lines, "Caches:")
			for _, c := range use {
				lines = append(lines, fmt.Sprintf("  %s: %d hits %d misses", c.Name, c.Hits, c.Misses))
			}
		}
	}
	if stats != nil && o.Summary {
		pt, et := stats.Times()
		lines = append(lines, fmt.Sprintf("Planning Time: %.3f ms", millis(pt)))
		if o.Analyze {
			lines = append(lines, fmt.Sprintf("Execution Time: %.3f ms", millis(et)))
		}
	}
	return lines
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

type labelled struct {
	label string
	node  plan.Node
}

// xnode is a node as it is printed.
type xnode struct {
	title    string
	typ      string
	label    string
	est      plan.Estimate
	counters *plan.Counters
	props    []prop
	kids     []*xnode
	subs     []*xnode
	names    []string
	output   []string // what VERBOSE shows as Output; nil = names
	hash     bool     // the Hash above a build side: no numbers of its own
	// about are properties that the title has in text.
	about []prop
}

type prop struct {
	key string
	val any // string, []string or number
}

type explainer struct {
	o        ExplainOptions
	stats    StatsSource
	subplans map[plan.Node][]labelled
	// single: one relation is read, whose columns need no prefix.
	single bool
}

func (x *explainer) dep(names []string) *deparser { return &deparser{names: names, env: x.o.Env} }

// maxName is how long the text of an expression may be that stands for a column
// above the projection that computes it; beyond it stands the column's name.
const maxName = 60

// node describes a plan node. Projections are not shown, as in PostgreSQL,
// unless VERBOSE asks; their columns keep readable names.
func (x *explainer) node(n plan.Node, _ any) *xnode {
	out := &xnode{est: *n.Est()}
	if x.stats != nil && x.o.Analyze {
		if c, ok := x.stats.Node(nodeID(n)); ok {
			out.counters = &c
		}
	}
	kid := func(k plan.Node) *xnode {
		c := x.node(k, nil)
		out.kids = append(out.kids, c)
		return c
	}
	add := func(k string, v any) {
		if s, ok := v.(string); ok && s == "" {
			return
		}
		out.props = append(out.props, prop{k, v})
	}
	switch n := n.(type) {
	case *plan.Scan:
		name := n.Rel.Name()
		if x.o.Verbose {
			name = n.Rel.Schema() + "." + name
		}
		out.typ = "Seq Scan"
		out.title = "Seq Scan on " + name
		if n.Alias != "" && n.Alias != n.Rel.Name() {
			out.title += " " + n.Alias
		}
		out.names = scanNames(n)
		add("Filter", x.dep(out.names).expr(n.Filter))
		if n.Spec.Filter != nil && x.o.Verbose {
			add("Storage Filter", predText(n.Spec.Filter, x.o.Env))
		}
		if n.Params {
			add("Storage Filter", "decided when parameters are known")
		}
		x.runtimeFilters(n, out.names, add)
		if n.Spec.Limit >= 0 {
			add("Rows Wanted", n.Spec.Limit)
		}
		x.scanProps(n, add)
	case *plan.Lookup:
		x.lookup(n, out, add)
	case *plan.Values:
		if len(n.Rows) == 1 {
			out.typ, out.title = "Result", "Result"
		} else {
			out.typ, out.title = "Values Scan", `Values Scan on "*VALUES*"`
		}
		for i, f := range n.Out {
			s := f.Name
			if len(n.Rows) == 1 && i < len(n.Rows[0]) {
				s = x.dep(nil).expr(n.Rows[0][i])
			}
			out.names = append(out.names, s)
		}
	case *plan.TableFunc:
		out.typ = "Function Scan"
		fn := "..."
		if len(n.Calls) == 1 {
			fn = n.Calls[0].F.Name
		}
		out.title = "Function Scan on " + fn
		if n.Alias != "" && n.Alias != fn {
			out.title += " " + n.Alias
		}
		out.names = qualified(n.Alias, n.Out)
		if x.o.Verbose {
			for _, c := range n.Calls {
				add("Function Call", c.F.Name+"("+x.dep(nil).list(c.Args)+")")
			}
		}
	case *plan.Filter:
		k := x.node(n.Input, nil)
		if k.counters == nil && len(k.kids) < 2 && k.typ != "Seq Scan" && k.typ != "Index Scan" && !k.hash && !hasProp(k, "Filter") {
			// Shown as the condition of the node below, as PostgreSQL has it.
			k.props = append(k.props, prop{"Filter", x.dep(k.names).expr(n.Cond)})
			k.est.Rows = n.E.Rows
			k.est.Total = n.E.Total
			return k
		}
		out.kids = []*xnode{k}
		out.typ, out.title = "Filter", "Filter"
		out.names = k.names
		add("Filter", x.dep(k.names).expr(n.Cond))
	case *plan.Project:
		k := x.node(n.Input, nil)
		d := x.dep(k.names)
		names := make([]string, len(n.Exprs))
		shown := make([]string, len(n.Exprs))
		for i, e := range n.Exprs {
			shown[i] = d.expr(e)
			if names[i] = shown[i]; len(shown[i]) > maxName {
				names[i] = ast.QuoteIdent(n.Out[i].Name)
			}
		}
		if !x.o.Verbose {
			k.names = names
			k.est.Width = n.E.Width
			return k
		}
		out.kids = []*xnode{k}
		out.typ, out.title, out.names, out.output = "Project", "Project", names, shown
	case *plan.ProjectSet:
		k := kid(n.Input)
		out.typ, out.title = "ProjectSet", "ProjectSet"
		all := append([]string{}, k.names...)
		for _, s := range n.Sets {
			call := s.F.Name + "(" + x.dep(k.names).list(s.Args) + ")"
			for range s.T {
				all = append(all, call)
			}
		}
		for _, e := range n.Exprs {
			out.names = append(out.names, x.dep(all).expr(e))
		}
	case *plan.HashJoin:
		l, r := kid(n.Left), x.node(n.Right, nil)
		h := &xnode{typ: "Hash", title: "Hash", est: r.est, kids: []*xnode{r}, names: r.names, hash: true}
		out.kids = append(out.kids, h)
		out.typ = "Hash Join"
		out.title = joinTitle("Hash", n.Kind)
		out.names = joinNames(n.Kind, l.names, r.names)
		ld, rd := x.dep(l.names), x.dep(r.names)
		var conds []string
		for i := range n.LeftKeys {
			op := " = "
			if n.NullEq != nil && n.NullEq[i] {
				op = " IS NOT DISTINCT FROM "
			}
			conds = append(conds, "("+ld.expr(n.LeftKeys[i])+op+rd.expr(n.RightKeys[i])+")")
		}
		c := strings.Join(conds, " AND ")
		if len(conds) > 1 {
			c = "(" + c + ")"
		}
		add("Hash Cond", c)
		add("Join Filter", x.dep(append(append([]string{}, l.names...), r.names...)).expr(n.Residual))
		if n.BuildLeft {
			add("Build", "outer side")
		}
		if n.Single {
			add("Single", "at most one match per row")
		}
	case *plan.NestedLoop:
		l, r := kid(n.Left), kid(n.Right)
		out.typ, out.title = "Nested Loop", joinTitle("Nested Loop", n.Kind)
		out.names = joinNames(n.Kind, l.names, r.names)
		add("Join Filter", x.dep(append(append([]string{}, l.names...), r.names...)).expr(n.Cond))
	case *plan.Apply:
		l, r := kid(n.Left), kid(n.Right)
		out.typ, out.title = "Apply", joinTitle("Apply", n.Kind)
		out.names = joinNames(n.Kind, l.names, r.names)
		var ps []string
		for _, b := range n.Bind {
			ps = append(ps, fmt.Sprintf("$%d = %s", b.Param+1, x.dep(l.names).expr(b.Expr)))
		}
		add("Parameters", strings.Join(ps, ", "))
		add("Join Filter", x.dep(append(append([]string{}, l.names...), r.names...)).expr(n.Cond))
	case *plan.Aggregate:
		k := kid(n.Input)
		d := x.dep(k.names)
		out.typ = "Aggregate"
		switch {
		case n.Sets != nil:
			out.title = "MixedAggregate"
			for _, s := range n.Sets {
				var g []string
				for _, i := range s {
					g = append(g, d.expr(n.Groups[i]))
				}
				if len(g) == 0 {
					add("Group Key", "()")
				} else {
					add("Hash Key", strings.Join(g, ", "))
				}
			}
		case len(n.Groups) > 0:
			out.title = "HashAggregate"
			add("Group Key", d.list(n.Groups))
		default:
			out.title = "Aggregate"
		}
		for _, g := range n.Groups {
			out.names = append(out.names, d.expr(g))
		}
		if n.Sets != nil {
			out.names = append(out.names, "GROUPING()")
		}
		for i := range n.Aggs {
			out.names = append(out.names, aggText(d, &n.Aggs[i]))
		}
	case *plan.Sort:
		k := kid(n.Input)
		out.typ, out.title, out.names = "Sort", "Sort", k.names
		add("Sort Key", keysText(x.dep(k.names), n.Keys))
		if n.Limit > 0 {
			add("Sort Method", fmt.Sprintf("top-%d heapsort", n.Limit))
		}
	case *plan.Limit:
		k := kid(n.Input)
		out.typ, out.title, out.names = "Limit", "Limit", k.names
	case *plan.DistinctOn:
		k := kid(n.Input)
		out.typ, out.title, out.names = "Unique", "Unique", k.names
	case *plan.SetOp:
		l := kid(n.Left)
		kid(n.Right)
		out.names = l.names
		out.typ = "SetOp"
		out.title = "HashSetOp " + [...]string{"Intersect", "Except"}[n.Kind]
		if n.All {
			out.title += " All"
		}
	case *plan.Append:
		for i, in := range n.Ins {
			k := kid(in)
			if i == 0 {
				out.names = k.names
			}
		}
		out.typ, out.title = "Append", "Append"
	case *plan.Window:
		k := kid(n.Input)
		out.typ, out.title = "WindowAgg", "WindowAgg"
		d := x.dep(k.names)
		if x.o.Verbose {
			add("Partition By", d.list(n.PartitionBy))
			add("Order By", keysText(d, n.OrderBy))
		}
		out.names = append([]string{}, k.names...)
		for _, c := range n.Calls {
			s := ""
			if c.Agg != nil {
				s = aggText(d, c.Agg)
			} else {
				s = c.Func.Name + "(" + d.list(c.Args) + ")"
			}
			out.names = append(out.names, s+" OVER (?)")
		}
	case *plan.CTEScan:
		out.typ = "CTE Scan"
		out.title = "CTE Scan on " + n.CTE.Name
		if n.Alias != "" && n.Alias != n.CTE.Name {
			out.title += " " + n.Alias
		}
		out.names = qualified(n.Alias, n.Out)
	case *plan.RecursiveUnion:
		kid(n.Init)
		kid(n.Step)
		out.typ, out.title = "Recursive Union", "Recursive Union"
		out.names = qualified("", n.Out)
	case *plan.WorkScan:
		out.typ = "WorkTable Scan"
		out.title = "WorkTable Scan on " + n.Name
		if n.Alias != "" && n.Alias != n.Name {
			out.title += " " + n.Alias
		}
		out.names = qualified(n.Alias, n.Out)
	default:
		out.typ = strings.TrimPrefix(fmt.Sprintf("%T", n), "*plan.")
		out.title = out.typ
		for _, in := range n.Inputs() {
			k := kid(in)
			out.names = k.names
		}
	}
	if x.o.Verbose {
		shown := out.names
		if out.output != nil {
			shown = out.output
		}
		out.props = append([]prop{{"Output", strings.Join(shown, ", ")}}, out.props...)
	}
	if out.counters != nil {
		if out.counters.RowsRemoved > 0 {
			add("Rows Removed by Filter", out.counters.RowsRemoved)
		}
		if out.counters.Groups > 0 {
			add("Groups", out.counters.Groups)
		}
		if out.counters.Memory > 0 {
			add("Memory Usage", kb(out.counters.Memory))
		}
		if out.counters.Spilled > 0 {
			add("Disk Usage", kb(out.counters.Spilled))
		}
		if out.counters.Workers > 1 {
			add("Workers", int64(out.counters.Workers))
		}
	}
	return out
}

func hasProp(n *xnode, key string) bool {
	for _, p := range n.props {
		if p.key == key {
			return true
		}
	}
	return false
}

func kb(n int64) string { return fmt.Sprintf("%dkB", (n+1023)/1024) }

func nodeID(n plan.Node) int {
	if b, ok := n.(interface{ NodeID() int }); ok {
		return b.NodeID()
	}
	return 0
}

func scanNames(n *plan.Scan) []string {
	a := n.Alias
	if a == "" {
		a = n.Rel.Name()
	}
	return qualified(a, n.Out)
}

func qualified(alias string, s types.Schema) []string {
	out := make([]string, len(s))
	for i, f := range s {
		out[i] = ast.QuoteIdent(f.Name)
		if alias != "" {
			out[i] = ast.QuoteIdent(alias) + "." + out[i]
		}
	}
	return out
}

func joinTitle(base string, k plan.JoinKind) string {
	kind := [...]string{"", "Left", "Right", "Full", "Semi", "Anti", "Null-Aware Anti", "Mark"}[k]
	if base == "Hash" {
		if kind == "" {
			return "Hash Join"
		}
		return "Hash " + kind + " Join"
	}
	if kind == "" {
		return base
	}
	return base + " " + kind + " Join"
}

func joinNames(k plan.JoinKind, l, r []string) []string {
	out := append([]string{}, l...)
	switch k {
	case plan.Semi, plan.Anti, plan.NullAnti:
		return out
	case plan.Mark:
		return append(out, "mark")
	}
	return append(out, r...)
}

func aggText(d *deparser, a *plan.AggCall) string {
	s := a.Def.Name + "("
	if a.Distinct {
		s += "DISTINCT "
	}
	switch {
	case a.Def.OrderedSet:
		s += d.list(a.Direct) + ") WITHIN GROUP (ORDER BY " + keysText(d, a.OrderBy)
	case len(a.Args) == 0:
		s += "*"
	default:
		s += d.list(a.Args)
		if len(a.OrderBy) > 0 {
			s += " ORDER BY " + keysText(d, a.OrderBy)
		}
	}
	s += ")"
	if a.Filter != nil {
		s += " FILTER (WHERE " + d.expr(a.Filter) + ")"
	}
	return s
}

func keysText(d *deparser, ks []plan.SortKey) string {
	var out []string
	for _, k := range ks {
		s := d.expr(k.Expr)
		if k.Desc {
			s += " DESC"
		}
		if k.NullsFirst != k.Desc {
			if k.NullsFirst {
				s += " NULLS FIRST"
			} else {
				s += " NULLS LAST"
			}
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

// scanProps are the lines about what storage was asked for and skipped.
// runtimeFilters describes the filters that hash joins give a scan, and what each left out:
// files that were not read because of it, rows of the others.
func (x *explainer) runtimeFilters(n *plan.Scan, names []string, add func(string, any)) {
	var r *table.PlanReport
	if x.stats != nil && x.o.Analyze {
		r = x.stats.Scan(n.ID)
	}
	did := func(i int) string {
		if r == nil {
			return ""
		}
		files, rows := r.Counters.RuntimeFiles[i+1], int64(0)
		if i < len(r.Runtime) {
			files, rows = files+r.Runtime[i].Files, r.Runtime[i].Rows
		}
		return fmt.Sprintf(": %d files and %d rows removed", files, rows)
	}
	for i, rf := range n.LateIn {
		add("Runtime Filter", fmt.Sprintf("%s (join %d)%s", names[rf.Column], rf.JoinID, did(i)))
	}
	if r == nil {
		return
	}
	// A join that builds on its left side knows of them only when it runs.
	for i := len(n.LateIn); i < len(r.Runtime); i++ {
		if c := r.Runtime[i].Column; c >= 0 && c < len(names) {
			add("Runtime Filter", names[c]+" (outer side)"+did(i))
		}
	}
}

func (x *explainer) scanProps(n *plan.Scan, add func(string, any)) {
	var r *table.PlanReport
	if x.stats != nil {
		r = x.stats.Scan(n.ID)
	}
	_, isTable := n.Rel.(catalog.TableInfo)
	if _, ok := n.Rel.(catalog.Scanned); ok {
		isTable = true
	}
	if r == nil && isTable && x.o.Ctx != nil {
		if pl, err := n.Rel.Plan(x.o.Ctx, n.Spec); err == nil {
			r = pl.Report
		}
	}
	if r == nil {
		return
	}
	if r.SnapshotID > 0 {
		add("Snapshot", r.SnapshotID)
	} else {
		add("Snapshot", "none")
	}
	of := func(read, all int64) string { return fmt.Sprintf("%d of %d read", read, all) }
	if r.Partitions > 0 {
		add("Partitions", of(r.PartitionsRead, r.Partitions))
	}
	if r.Buckets > 0 {
		add("Buckets", of(r.BucketsRead, r.Buckets))
	}
	// Files with indexes of their own are ruled out when they are about to be read.
	skipped, read := maps.Clone(r.Skipped), r.FilesRead
	for k, v := range r.Counters.IndexFiles {
		if skipped == nil {
			skipped = map[string]int64{}
		}
		skipped[k] += v
		read -= v
	}
	files := of(read, r.Files)
	var why []string
	for k, v := range skipped {
		if v > 0 {
			why = append(why, fmt.Sprintf("%s: %d", k, v))
		}
	}
	sort.Strings(why)
	if len(why) > 0 {
		files += " (skipped by " + strings.Join(why, ", ") + ")"
	}
	add("Files", files)
	if r.Keys > 0 {
		add("Keys", r.Keys)
	}
	if r.Manifests > 0 && x.o.Verbose {
		add("Manifests", of(r.ManifestsRead, r.Manifests))
	}
	if r.Level0Files > 0 {
		add("Level-0 Files", fmt.Sprintf("%d added by fresh reads", r.Level0Files))
	}
	if r.RawSplits+r.MergeSplits > 0 {
		add("Splits", fmt.Sprintf("%d raw, %d merge", r.RawSplits, r.MergeSplits))
	}
	if r.Remembered > 0 {
		how := "remembered"
		if r.Judged > 0 {
			how += fmt.Sprintf(", %d of them just now", r.Judged)
		}
		add("Merges", fmt.Sprintf("%d %s", r.Remembered, how))
	}
	if r.DeletionVectors > 0 {
		add("Deletion Vectors", r.DeletionVectors)
	}
	c := r.Counters
	if c.RowGroups > 0 {
		add("Row Groups", of(c.RowGroups-c.RowGroupsSkipped, c.RowGroups))
	}
	if c.Pages > 0 {
		add("Pages", of(c.Pages-c.PagesSkipped, c.Pages))
	}
	if c.PagesDecoded > 0 && x.o.Buffers {
		add("Pages Decoded", c.PagesDecoded)
	}
	if c.Rows > 0 {
		add("Storage Rows", fmt.Sprintf("%d read, %d skipped", c.Rows-c.RowsSkipped, c.RowsSkipped))
	}
	if r.TopN > 0 && x.o.Analyze {
		add("Rows Removed by Top-N", r.TopN)
	}
	if c.IndexBytes > 0 || c.IndexRows > 0 || c.IndexPages > 0 || c.IndexDamaged > 0 {
		line := fmt.Sprintf("%s read", kb(c.IndexBytes))
		if c.IndexRows > 0 {
			line += fmt.Sprintf(", %d rows skipped", c.IndexRows)
		}
		if c.IndexPages > 0 {
			line += fmt.Sprintf(", %d pages skipped", c.IndexPages)
		}
		if c.IndexDamaged > 0 {
			line += fmt.Sprintf(", of %d files not usable", c.IndexDamaged)
		}
		add("File Indexes", line)
	}
	if c.BytesRead > 0 {
		add("Bytes Read", kb(c.BytesRead))
	}
}

func predText(n predicate.Node, env function.Env) string {
	d := &deparser{env: env}
	var f func(n predicate.Node) string
	join := func(ns []predicate.Node, op string) string {
		out := make([]string, len(ns))
		for i, a := range ns {
			out[i] = f(a)
		}
		return "(" + strings.Join(out, op) + ")"
	}
	leaf := func(l *predicate.Leaf, name string) string {
		var args []string
		for _, a := range l.Args {
			args = append(args, d.constant(&plan.Const{Value: a, T: l.Type.SQL()}))
		}
		s := name + " " + [...]string{"=", "<>", "<", "<=", ">", ">=", "IN", "NOT IN", "IS NULL", "IS NOT NULL", "STARTS WITH", "BETWEEN"}[l.Op]
		switch {
		case l.Op == predicate.In || l.Op == predicate.NotIn:
			s += " (" + strings.Join(args, ", ") + ")"
		case len(args) > 0:
			s += " " + strings.Join(args, " AND ")
		}
		return "(" + s + ")"
	}
	f = func(n predicate.Node) string {
		switch n := n.(type) {
		case *predicate.And:
			return join(n.Args, " AND ")
		case *predicate.Or:
			return join(n.Args, " OR ")
		case *predicate.Not:
			return "(NOT " + f(n.Arg) + ")"
		case *predicate.MapLeaf:
			return leaf(&n.Leaf, ast.QuoteIdent(n.Name)+"["+d.constant(&plan.Const{Value: n.Key, T: types.Of(types.Text)})+"]")
		case *predicate.Leaf:
			return leaf(n, ast.QuoteIdent(n.Name))
		}
		return "true"
	}
	return f(n)
}

func (n *xnode) text(lines *[]string, indent int, o ExplainOptions) {
	pad := strings.Repeat(" ", indent)
	arrow := ""
	if indent > 0 {
		arrow = "->  "
	}
	line := pad + arrow + n.title
	if !o.NoCosts {
		line += fmt.Sprintf("  (cost=%.2f..%.2f rows=%.0f width=%.0f)", n.est.Startup, n.est.Total, n.est.Rows, n.est.Width)
	}
	if o.Analyze && !n.hash {
		if c := n.counters; c != nil && c.Loops > 0 {
			loops := float64(c.Loops)
			if o.NoTiming {
				line += fmt.Sprintf(" (actual rows=%.0f loops=%d)", float64(c.Rows)/loops, c.Loops)
			} else {
				line += fmt.Sprintf(" (actual time=%.3f..%.3f rows=%.0f loops=%d)", millis(c.First)/loops, millis(c.Total)/loops, float64(c.Rows)/loops, c.Loops)
			}
		} else {
			line += " (never executed)"
		}
	}
	*lines = append(*lines, line)
	in := indent + 2
	if indent > 0 {
		in += 4
	}
	ip := strings.Repeat(" ", in)
	for _, p := range n.props {
		val := p.val
		if l, ok := val.([]string); ok {
			val = strings.Join(l, ", ")
		}
		*lines = append(*lines, fmt.Sprintf("%s%s: %v", ip, p.key, val))
	}
	for _, s := range n.subs {
		*lines = append(*lines, ip+s.label)
		s.text(lines, in+2, o)
	}
	for _, k := range n.kids {
		k.text(lines, in, o)
	}
}

func (n *xnode) json(o ExplainOptions) map[string]any {
	m := map[string]any{"Node Type": n.typ, "Title": n.title}
	if n.label != "" {
		m["Subplan Name"] = n.label
	}
	if !o.NoCosts {
		m["Startup Cost"], m["Total Cost"] = round2(n.est.Startup), round2(n.est.Total)
		m["Plan Rows"], m["Plan Width"] = int64(n.est.Rows+0.5), int64(n.est.Width+0.5)
	}
	if c := n.counters; c != nil && o.Analyze {
		loops := float64(max(c.Loops, 1))
		m["Actual Rows"], m["Actual Loops"] = int64(float64(c.Rows)/loops+0.5), c.Loops
		if !o.NoTiming {
			m["Actual Startup Time"], m["Actual Total Time"] = millis(c.First)/loops, millis(c.Total)/loops
		}
	}
	for _, p := range n.about {
		m[p.key] = p.val
	}
	for _, p := range n.props {
		if old, ok := m[p.key]; ok {
			if l, ok := old.([]any); ok {
				m[p.key] = append(l, p.val)
			} else {
				m[p.key] = []any{old, p.val}
			}
			continue
		}
		m[p.key] = p.val
	}
	var kids []any
	for _, s := range n.subs {
		kids = append(kids, s.json(o))
	}
	for _, k := range n.kids {
		kids = append(kids, k.json(o))
	}
	if len(kids) > 0 {
		m["Plans"] = kids
	}
	return m
}

func round2(f float64) float64 { return float64(int64(f*100+0.5)) / 100 }
