package engine

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/pgcatalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// resolver finds relations for one statement. It remembers what it found, so
// every reference in the statement reads one snapshot; in a REPEATABLE READ
// transaction what the transaction found first stays.
type resolver struct {
	s    *Session
	path []string
	pins map[pinKey]catalog.Relation // of this statement
	keep map[pinKey]catalog.Relation // of the transaction; nil = none
	// deps is everything asked for, in order, for the plan cache.
	deps []dep
	// private: a relation of this session only was used. fleeting: one whose
	// content is fixed when it is resolved.
	private, fleeting bool
}

// pinKey is what a relation was asked for. Dynamic options are joined.
type pinKey struct {
	schema, name string
	at           snapshot.Ref
	fresh        bool
	dynamic      string
}

func (s *Session) newResolver() *resolver {
	r := &resolver{s: s, path: s.usablePath(s.ctx, s.searchPath(true)), pins: map[pinKey]catalog.Relation{}}
	if s.pinned() {
		if s.tx.pins == nil {
			s.tx.pins = map[pinKey]catalog.Relation{}
		}
		if n := s.tx.staged.Edits() + s.tx.temp.Edits(); n != s.tx.edits {
			s.tx.edits = n
			if s.tx.unpinned == nil {
				s.tx.unpinned = map[pinKey]catalog.Relation{}
			}
			maps.Copy(s.tx.unpinned, s.tx.pins)
			clear(s.tx.pins)
		}
		r.keep = s.tx.pins
	}
	return r
}

// searchPath returns the schemas that unqualified names are looked for in.
// implicit adds pg_catalog in front when it is not named.
func (s *Session) searchPath(implicit bool) []string {
	var out []string
	if s.making != "" {
		out = append(out, s.making)
	}
	named := false
	for _, n := range s.set.use().path {
		switch n {
		case "$user":
			n = s.userName()
		case "default":
			n = "public"
		case "pg_catalog":
			named = true
		case "pg_temp":
			if s.temp == nil || !implicit {
				continue
			}
			n = s.temp.schema
		}
		out = append(out, n)
	}
	if implicit && !named {
		out = append([]string{"pg_catalog"}, out...)
	}
	if implicit && s.temp != nil && !contains(out, s.temp.schema) {
		out = append([]string{s.temp.schema}, out...)
	}
	return out
}

// Relation implements planner.Resolver.
func (r *resolver) Relation(ctx context.Context, name ast.Name, o catalog.ResolveOptions) (catalog.Relation, error) {
	rel, err := r.find(ctx, name, o)
	if err != nil {
		return nil, err
	}
	if o.At.Kind == snapshot.AtTimestamp {
		r.fleeting = true // the time may have been computed from now()
	}
	r.deps = append(r.deps, dep{name, o, rel})
	return rel, nil
}

func (r *resolver) find(ctx context.Context, name ast.Name, o catalog.ResolveOptions) (catalog.Relation, error) {
	undefined := func(cause error) error {
		err := pgerr.Wrap(cause, pgerr.UndefinedTable, "relation %q does not exist", name.String())
		if strings.Contains(name[len(name)-1].Name, "$") {
			err = err.WithHint("System tables are t$%s; a branch is t$branch_<name>.", strings.Join(catalog.SystemTables(), ", t$"))
		}
		return err
	}
	switch len(name) {
	case 1:
	case 2:
	case 3:
		if db := name[0].Name; db != r.s.database && db != "paimon" {
			return nil, pgerr.New(pgerr.FeatureNotSupported, "cross-database references are not implemented: %q", name.String())
		}
		name = name[1:]
	default:
		return nil, pgerr.New(pgerr.SyntaxError, "improper relation name (too many dotted names): %s", name.String())
	}
	id := name[len(name)-1]
	if len(name) == 2 {
		schema := name[0].Name
		switch schema {
		case "default":
			schema = "public"
		case "pg_temp":
			schema = r.s.tempSchema()
		}
		if !o.InView && !r.s.rights(ctx).usable(schema) {
			if _, ok := r.s.schemaExists(ctx, schema); ok {
				return nil, r.s.mayUseSchema(ctx, schema)
			}
		}
		rel, err := r.inSchema(ctx, schema, id, o)
		if missing(err) {
			return nil, undefined(err)
		}
		return rel, err
	}
	var last error
	for _, schema := range r.path {
		rel, err := r.inSchema(ctx, schema, id, o)
		if err == nil || !missing(err) {
			return rel, err
		}
		last = err
	}
	if last == nil {
		last = catalog.ErrNoRelation
	}
	return nil, undefined(last)
}

func missing(err error) bool {
	return errors.Is(err, catalog.ErrNoRelation) || errors.Is(err, catalog.ErrNoSchema)
}

// inSchema finds a relation in one schema, by its exact name or else, when the
// name was not quoted, by the only one that differs in case.
func (r *resolver) inSchema(ctx context.Context, schema string, id ast.Ident, o catalog.ResolveOptions) (catalog.Relation, error) {
	if schema == "pg_catalog" || schema == "information_schema" {
		rel, ok := pgcatalog.Resolve(schema, id.Name, r.s.sources())
		if !ok {
			return nil, catalog.ErrNoRelation
		}
		r.private = true
		return rel, nil
	}
	if schema == r.s.tempSchema() {
		if schema == "" {
			return nil, catalog.ErrNoRelation
		}
		r.private = true
	}
	rel, err := r.pinnedIn(ctx, schema, id.Name, o)
	if err == nil || !missing(err) || id.Quoted {
		return rel, err
	}
	base, suffix, _ := strings.Cut(id.Name, "$")
	if suffix != "" {
		suffix = "$" + suffix
	}
	names, lerr := r.s.catalog().Tables(ctx, schema)
	if lerr != nil {
		return nil, err
	}
	match := ""
	for _, n := range names {
		if n != base && strings.EqualFold(n, base) {
			if match != "" {
				return nil, err
			}
			match = n
		}
	}
	if match == "" {
		return nil, err
	}
	return r.pinnedIn(ctx, schema, match+suffix, o)
}

func (r *resolver) pinnedIn(ctx context.Context, schema, name string, o catalog.ResolveOptions) (catalog.Relation, error) {
	if len(o.Dynamic) > 0 && !o.HintsState() {
		return r.tuned(ctx, schema, name, o)
	}
	if v := r.s.set.use().scanVersion; v != "" && o.At.Kind == snapshot.Latest && len(o.Dynamic) == 0 && schema != "sys" {
		o.At = snapshot.Ref{Kind: snapshot.Version, Name: v, Branch: o.At.Branch}
	}
	k := pinKey{schema: schema, name: name, at: o.At, fresh: o.FreshReads, dynamic: joinOptions(o.Dynamic)}
	if rel := r.pins[k]; rel != nil {
		r.note(rel)
		return rel, nil
	}
	if rel := r.keep[k]; rel != nil {
		r.note(rel)
		return rel, nil
	}
	if err := checkDynamic(o.Dynamic); err != nil {
		return nil, err
	}
	base, err := r.baseOf(ctx, schema, name, o)
	if err != nil {
		return nil, err
	}
	asked := o
	if base != nil {
		if asked.At, asked.Until = base.At(), base.At().ID; asked.Until == 0 {
			asked.Until = -1 // the table was empty
		}
	}
	rel, err := r.s.catalog().Resolve(ctx, schema, name, asked)
	if d, ok := rel.(catalog.Derived); ok && base != nil {
		rel = d.Over(base)
	}
	if err != nil {
		if len(o.Dynamic) > 0 && !known(err) { // a value that is no number, or two states at once
			err = pgerr.Wrap(err, pgerr.InvalidParameterValue, "%s", err.Error())
		}
		return nil, err
	}
	if old := r.s.tx.unpinned[k]; old != nil && r.keep != nil {
		if rel, err = r.repin(old, rel); err != nil {
			return nil, err
		}
	}
	r.pins[k] = rel
	if r.keep != nil {
		r.keep[k] = rel
	}
	r.note(rel)
	return rel, nil
}

// baseOf returns the table of a system table where the transaction keeps the states that
// it reads: the system table shows the state that its table is, or will be, pinned to.
// nil = what the name means is pinned for itself.
func (r *resolver) baseOf(ctx context.Context, schema, name string, o catalog.ResolveOptions) (*catalog.TableRelation, error) {
	table, system := name, ""
	if i := strings.LastIndexByte(name, '$'); i > 0 {
		table, system = name[:i], name[i+1:]
	}
	if r.keep == nil || system == "" || strings.HasPrefix(system, "branch_") || schema == "sys" || o.At.Kind != snapshot.Latest || o.At.ID != 0 || len(o.Dynamic) > 0 {
		return nil, nil
	}
	rel, err := r.pinnedIn(ctx, schema, table, o)
	if missing(err) {
		return nil, nil // the error is about the whole name
	}
	base, _ := rel.(*catalog.TableRelation)
	return base, err
}

// tuned is the relation that a name means without the hint, which only says how it is
// read: whoever compares the two must see the same state.
func (r *resolver) tuned(ctx context.Context, schema, name string, o catalog.ResolveOptions) (catalog.Relation, error) {
	k := pinKey{schema: schema, name: name, at: o.At, fresh: o.FreshReads, dynamic: joinOptions(o.Dynamic)}
	if rel := r.pins[k]; rel != nil {
		r.note(rel)
		return rel, nil
	}
	if err := checkDynamic(o.Dynamic); err != nil {
		return nil, err
	}
	plain := o
	plain.Dynamic = nil
	rel, err := r.pinnedIn(ctx, schema, name, plain)
	if err != nil {
		return nil, err
	}
	switch t := rel.(type) {
	case *catalog.TableRelation:
		rel = t.WithDynamic(o.Dynamic)
	case catalog.Derived:
		rel = t.Over(t.Base().WithDynamic(o.Dynamic))
	}
	r.pins[k] = rel
	return rel, nil
}

// repin chooses between what a transaction pinned before its own data definition
// and what the name means after it: the definition is the new one, and the snapshot
// must still be the old one.
func (r *resolver) repin(old, rel catalog.Relation) (catalog.Relation, error) {
	a, ok1 := old.(catalog.TableInfo)
	b, ok2 := rel.(catalog.TableInfo)
	switch {
	case !ok1 || !ok2 || keyOf(a) != keyOf(b), snapshotID(a.At()) == snapshotID(b.At()):
		return rel, nil
	case r.s.tx.staged != nil && r.s.tx.staged.Changed(b.Schema(), b.Name()):
		return nil, errSerialize("The table was changed between the transaction's snapshot and its own change of the definition.")
	}
	return old, nil
}

// note learns whether a plan over rel may be kept: tables and views are checked
// before reuse, everything else shows the moment it was resolved.
func (r *resolver) note(rel catalog.Relation) {
	if _, ok := rel.(catalog.TableInfo); ok {
		return
	}
	if _, ok := rel.(catalog.View); ok {
		return
	}
	r.fleeting = true
}

func joinOptions(m map[string]string) string {
	if len(m) == 0 {
		return ""
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sortStrings(keys)
	var b strings.Builder
	for _, k := range keys {
		b.WriteString(k + "=" + m[k] + "\x00")
	}
	return b.String()
}

// checkDynamic refuses options of a hint that would change the result and are
// not honoured. What names a state is; what only tunes a reader may be ignored.
func checkDynamic(m map[string]string) error {
	for k := range m {
		switch key := strings.ToLower(k); key {
		case "scan.snapshot-id", "scan.tag-name", "scan.version", "scan.timestamp-millis", "scan.timestamp",
			"incremental-between", "incremental-between-timestamp", "incremental-between-scan-mode", "incremental-between-tag-to-snapshot",
			"incremental-to-auto-tag", "file-index.read.enabled", "scan.parallelism", "scan.manifest.parallelism", "scan.plan-sort-partition", "scan.infer-parallelism", "read.batch-size":
		default:
			tuning := false
			for _, p := range []string{"source.split.", "lookup.", "sink.", "write-", "orc.", "parquet.", "page-size", "manifest."} {
				tuning = tuning || strings.HasPrefix(key, p)
			}
			if !tuning {
				return pgerr.New(pgerr.FeatureNotSupported, "reading with table option %q is not supported yet", k)
			}
		}
	}
	return nil
}
