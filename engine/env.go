package engine

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/pgcatalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/parser"
	"github.com/paimon-sql/paimon-sql/sql/planner"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// stmtEnv is what functions see of the session during one statement. Safe for
// concurrent use: everything in it is fixed when it is made or guards itself.
type stmtEnv struct {
	s         *Session
	now, stmt time.Time
	loc       *time.Location
	user      string
	// explicit are the schemas of search_path that exist. Few statements ask.
	explicit func() []string
	// sequences are those that were looked up, by OID.
	sequences sync.Map
	// folded notes the names that are looked up while a plan is made: their OIDs
	// become constants of it. nil when a plan runs.
	folded        *foldedNames
	relationsOnce sync.Once
	relations     map[uint32]catalog.Relation // see byOID
}

var (
	_ function.Env        = (*stmtEnv)(nil)
	_ function.CatalogEnv = (*stmtEnv)(nil)
	_ pgcatalog.Sources   = (*sources)(nil)
)

// env makes the function environment of a statement that starts now.
func (s *Session) env() *stmtEnv {
	s.listing.forget()
	now := time.Now()
	e := &stmtEnv{s: s, now: now, stmt: now, loc: s.set.use().loc, user: s.userName()}
	if s.tx.status != txIdle {
		e.now = s.tx.started
	}
	names := s.searchPath(false)
	e.explicit = sync.OnceValue(func() []string {
		var out []string
		for _, n := range names {
			if _, ok := s.schemaExists(s.ctx, n); ok {
				out = append(out, n)
			}
		}
		return out
	})
	return e
}

// path is the search path with pg_catalog, where it is searched.
func (e *stmtEnv) path() []string {
	out := e.explicit()
	if !contains(out, "pg_catalog") {
		out = append([]string{"pg_catalog"}, out...)
	}
	if temp := e.s.tempSchema(); temp != "" && !contains(out, temp) {
		out = append([]string{temp}, out...)
	}
	return out
}

func contains(list []string, x string) bool {
	for _, v := range list {
		if v == x {
			return true
		}
	}
	return false
}

// userName is current_user.
func (s *Session) userName() string {
	if r, _ := s.set.get("role"); r != "" && r != "none" {
		return r
	}
	u, _ := s.set.get("session_authorization")
	return u
}

func (e *stmtEnv) Now() time.Time               { return e.now }
func (e *stmtEnv) StatementTime() time.Time     { return e.stmt }
func (e *stmtEnv) Location() *time.Location     { return e.loc }
func (e *stmtEnv) User() string                 { return e.user }
func (e *stmtEnv) Database() string             { return e.s.database }
func (e *stmtEnv) BackendPID() int32            { return e.s.pid }
func (e *stmtEnv) Catalog() function.CatalogEnv { return e }

func (e *stmtEnv) Setting(name string) (string, bool) { return e.s.set.get(settingName(name)) }

func (e *stmtEnv) SetSetting(name, value string, local bool) error {
	return e.s.setSetting(settingName(name), value, local)
}

// ResetSetting is set_config of NULL.
func (e *stmtEnv) ResetSetting(name string, local bool) error {
	return e.s.resetSetting(settingName(name), local)
}

func (e *stmtEnv) SearchPath(implicit bool) []string {
	if implicit {
		return e.path()
	}
	return e.explicit()
}

// schemaExists finds a schema; the name is PostgreSQL's.
func (s *Session) schemaExists(ctx context.Context, name string) (string, bool) {
	switch name {
	case "public", "pg_catalog", "information_schema":
		return name, true
	case "default":
		return "public", true
	}
	list, err := s.catalog().Schemas(ctx)
	if err != nil {
		return "", false
	}
	return name, contains(list, name)
}

// parseName takes a possibly qualified name of text input apart, as
// regclass does.
func parseName(name string) (ast.Name, error) {
	var out ast.Name
	rest := strings.TrimSpace(name)
	bad := pgerr.New(pgerr.InvalidName, "invalid name syntax")
	for {
		var id ast.Ident
		if strings.HasPrefix(rest, `"`) {
			rest = rest[1:]
			var b strings.Builder
			for {
				i := strings.IndexByte(rest, '"')
				if i < 0 {
					return nil, bad
				}
				b.WriteString(rest[:i])
				rest = rest[i+1:]
				if !strings.HasPrefix(rest, `"`) {
					break
				}
				b.WriteByte('"')
				rest = rest[1:]
			}
			id = ast.Ident{Name: b.String(), Quoted: true}
		} else {
			i := strings.IndexByte(rest, '.')
			if i < 0 {
				i = len(rest)
			}
			id = ast.Ident{Name: strings.ToLower(strings.TrimSpace(rest[:i]))}
			rest = rest[i:]
		}
		if id.Name == "" || strings.ContainsAny(id.Name, " \t\n") && !id.Quoted {
			return nil, bad
		}
		out = append(out, id)
		rest = strings.TrimLeft(rest, " ")
		if rest == "" {
			return out, nil
		}
		if rest[0] != '.' {
			return nil, bad
		}
		rest = strings.TrimLeft(rest[1:], " ")
	}
}

func (e *stmtEnv) RelationOID(ctx context.Context, name string) (uint32, bool, error) {
	oid, found, err := e.relationOID(ctx, name)
	if err == nil {
		e.folded.note(foldedName{types.RegClass, name, oid, found})
	}
	return oid, found, err
}

func (e *stmtEnv) relationOID(ctx context.Context, name string) (uint32, bool, error) {
	n, err := parseName(name)
	if err != nil {
		return 0, false, err
	}
	if len(n) == 3 && n[0].Name == e.s.database {
		n = n[1:]
	}
	src := e.s.sources()
	if len(n) == 2 {
		schema := n[0].Name
		if schema == "default" {
			schema = "public"
		}
		oid, ok := pgcatalog.ByName(ctx, src, schema, n[1].Name)
		return oid, ok, nil
	}
	if len(n) > 2 {
		return 0, false, pgerr.New(pgerr.FeatureNotSupported, "cross-database references are not implemented: %q", n.String())
	}
	for _, schema := range e.path() {
		if oid, ok := pgcatalog.ByName(ctx, src, schema, n[0].Name); ok {
			return oid, true, nil
		}
	}
	// Unquoted names find tables of another case, as in FROM.
	if !n[0].Quoted {
		r := &resolver{s: e.s, path: e.path(), pins: map[pinKey]catalog.Relation{}}
		if rel, err := r.find(ctx, n, catalog.ResolveOptions{}); err == nil {
			return rel.OID(), true, nil
		}
	}
	return 0, false, nil
}

// foldedName is a name that a plan has as an OID.
type foldedName struct {
	kind  types.Kind // RegClass, RegNamespace or RegRole
	text  string
	oid   uint32
	found bool
}

// foldedNames are those of one plan.
type foldedNames struct {
	mu   sync.Mutex // guards list
	list []foldedName
}

// note does nothing when no plan is made.
func (f *foldedNames) note(n foldedName) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, n)
}

// sameNames reports whether the names that a plan has as OIDs mean the same still,
// in this session.
func (s *Session) sameNames(ctx context.Context, pl *planned) bool {
	if len(pl.names) == 0 {
		return true
	}
	e := s.env()
	for _, n := range pl.names {
		now := foldedName{kind: n.kind, text: n.text}
		switch n.kind {
		case types.RegNamespace:
			now.oid, now.found = e.namespaceOID(ctx, n.text)
		case types.RegRole:
			now.oid, now.found = e.roleOID(n.text)
		default:
			var err error
			if now.oid, now.found, err = e.relationOID(ctx, n.text); err != nil {
				return false
			}
		}
		if now != n {
			return false
		}
	}
	return true
}

func (e *stmtEnv) RelationName(ctx context.Context, oid uint32) (string, bool) {
	o, ok := pgcatalog.NameOf(ctx, e.s.sources(), oid)
	if !ok {
		return "", false
	}
	name := ast.QuoteIdent(o.Name)
	if got, found, err := e.RelationOID(ctx, name); err == nil && found && got == oid {
		return name, true
	}
	return ast.QuoteIdent(o.Schema) + "." + name, true
}

func (e *stmtEnv) NamespaceOID(ctx context.Context, name string) (uint32, bool) {
	oid, found := e.namespaceOID(ctx, name)
	e.folded.note(foldedName{types.RegNamespace, name, oid, found})
	return oid, found
}

func (e *stmtEnv) namespaceOID(ctx context.Context, name string) (uint32, bool) {
	n, ok := e.s.schemaExists(ctx, name)
	if !ok {
		return 0, false
	}
	return pgcatalog.NamespaceOID(n), true
}

func (e *stmtEnv) NamespaceName(ctx context.Context, oid uint32) (string, bool) {
	for _, n := range []string{"pg_catalog", "information_schema", "public"} {
		if pgcatalog.NamespaceOID(n) == oid {
			return n, true
		}
	}
	list, err := e.s.catalog().Schemas(ctx)
	if err != nil {
		return "", false
	}
	for _, n := range list {
		if pgcatalog.NamespaceOID(n) == oid {
			return n, true
		}
	}
	return "", false
}

// roleOID finds a role, as regrole does.
func (e *stmtEnv) roleOID(name string) (uint32, bool) {
	for _, r := range e.s.sources().Roles() {
		if r.Name == name {
			return r.OID, true
		}
	}
	return 0, false
}

func (e *stmtEnv) Text(ctx context.Context, fn string, args []types.Datum) (*string, error) {
	if fn == "to_regrole" && len(args) == 1 {
		name, _ := args[0].(string)
		oid, found := e.roleOID(name)
		e.folded.note(foldedName{types.RegRole, name, oid, found})
		if !found {
			return nil, nil
		}
		text := strconv.FormatUint(uint64(oid), 10)
		return &text, nil
	}
	if fn == "pg_get_serial_sequence" && len(args) == 2 {
		table, _ := args[0].(string)
		column, _ := args[1].(string)
		return e.serialSequence(ctx, table, column)
	}
	if fn == "pg_get_viewdef" && len(args) > 0 {
		if name, ok := args[0].(string); ok {
			oid, found, err := e.RelationOID(ctx, name)
			if err == nil && !found {
				err = pgerr.New(pgerr.UndefinedTable, "relation %q does not exist", name)
			}
			if err != nil {
				return nil, err
			}
			args = append([]types.Datum{int64(oid)}, args[1:]...)
		}
	}
	return pgcatalog.Text(ctx, e.s.sources(), fn, args)
}

// Visible reports whether an object is found by its name alone.
func (e *stmtEnv) Visible(ctx context.Context, fn string, oid uint32) (visible, known bool) {
	if fn != "pg_table_is_visible" {
		return true, true // types, functions and so on live in pg_catalog
	}
	o, ok := pgcatalog.NameOf(ctx, e.s.sources(), oid)
	if !ok {
		return false, false
	}
	for _, schema := range e.path() {
		if schema == o.Schema {
			return true, true
		}
		if _, ok := pgcatalog.ByName(ctx, e.s.sources(), schema, o.Name); ok {
			return false, true
		}
	}
	return false, true
}

func (e *stmtEnv) TableSize(ctx context.Context, _ string, oid uint32) (int64, bool) {
	o, ok := pgcatalog.ByOID(ctx, e.s.sources(), oid)
	if !ok {
		return 0, false
	}
	if o.Rel == nil || o.Index {
		return 0, true
	}
	st, err := o.Rel.Stats(ctx, table.Scan{})
	if err != nil || st == nil {
		return 0, true
	}
	return st.Bytes, true
}

// oidName prints an oid as a value of a reg* kind, as PostgreSQL does: 0 is "-".
func (e *stmtEnv) oidName(ctx context.Context, k types.Kind, oid int64) (string, bool) {
	if oid == 0 {
		return "-", true
	}
	if oid < 0 || oid > 1<<32-1 {
		return "", false
	}
	id := uint32(oid)
	switch k {
	case types.RegClass:
		return e.RelationName(ctx, id)
	case types.RegNamespace:
		n, ok := e.NamespaceName(ctx, id)
		return ast.QuoteIdent(n), ok
	case types.RegRole:
		for _, r := range e.s.sources().Roles() {
			if r.OID == id {
				return ast.QuoteIdent(r.Name), true
			}
		}
	case types.RegType:
		n := function.RegTypeName(ctx, e, id, "")
		return n, n != ""
	case types.RegProc, types.RegOper:
		for _, o := range function.All() {
			if o.OID == id {
				return ast.QuoteIdent(o.Name), true
			}
		}
		// The functions of types, such as int4recv, are in pg_proc only.
		if n, err := e.Text(ctx, "regprocout", []types.Datum{oid}); k == types.RegProc && err == nil && n != nil {
			return ast.QuoteIdent(*n), true
		}
	}
	return "", false
}

// Action performs the functions that do something to the server.
func (e *stmtEnv) Action(ctx context.Context, fn string, args []types.Datum) (types.Datum, error) {
	pid := func() (*Session, bool) {
		if len(args) == 0 {
			return nil, false
		}
		n, ok := args[0].(int64)
		if !ok {
			return nil, false
		}
		s := e.s.eng.session(int32(n))
		return s, s != nil
	}
	if strings.HasPrefix(fn, "has_") {
		return e.hasPrivilege(ctx, fn, args)
	}
	switch fn {
	case "nextval", "currval", "lastval", "setval":
		return e.sequenceCall(ctx, fn, args)
	case "pg_cancel_backend":
		s, ok := pid()
		if !ok {
			return false, e.s.noBackend(args)
		}
		if err := e.s.mayStop(ctx, s, false); err != nil {
			return nil, err
		}
		s.interrupt(errCanceled())
		return true, nil
	case "pg_terminate_backend":
		var wait int64 // ms
		if len(args) > 1 {
			if wait, _ = args[1].(int64); wait < 0 {
				return nil, pgerr.New(pgerr.NumericValueOutOfRange, "\"timeout\" must not be negative")
			}
		}
		s, ok := pid()
		if !ok {
			return false, e.s.noBackend(args)
		}
		if err := e.s.mayStop(ctx, s, true); err != nil {
			return nil, err
		}
		s.terminate(errShutdown())
		e.s.eng.counts.db.killed.Add(1)
		if wait == 0 || s == e.s {
			return true, nil
		}
		t := time.NewTimer(time.Duration(wait) * time.Millisecond)
		defer t.Stop()
		select {
		case <-s.gone:
			return true, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-t.C:
			e.s.warn(e.s.out, pgerr.Warning, "backend with PID %d did not terminate within %d milliseconds", s.pid, wait)
			return false, nil
		}
	case "pg_stat_statements_reset", "pg_stat_reset", "pg_stat_reset_single_table_counters", "pg_stat_reset_shared", "pg_stat_reset_slru", "pg_stat_clear_snapshot":
		return e.s.resetStats(ctx, fn, args)
	case "acldefault", "aclexplode", "makeaclitem":
		return e.aclFunction(ctx, fn, args)
	case "pg_has_role":
		return e.s.hasRole(ctx, args)
	case "pg_reload_conf":
		return e.s.reloadConf(ctx)
	case "pg_rotate_logfile":
		if !e.s.rights(ctx).super {
			return nil, denied("permission denied for function pg_rotate_logfile")
		}
		return true, nil
	case "pg_postmaster_start_time":
		return e.s.eng.started.UnixMicro(), nil
	case "pg_notify":
		channel, _ := args[0].(string)
		payload, _ := args[1].(string)
		return nil, e.s.notify(channel, payload)
	case "pg_listening_channels":
		return e.s.listening(), nil
	case "pg_notification_queue_usage":
		return e.s.eng.notifier.usage(), nil
	case "pg_blocking_pids":
		out := []types.Datum{}
		if n, ok := args[0].(int64); ok {
			for _, p := range e.s.eng.locks.blocking(int32(n)) {
				out = append(out, int64(p))
			}
		}
		return out, nil
	}
	if strings.HasPrefix(fn, "pg_advisory_") || strings.HasPrefix(fn, "pg_try_advisory_") {
		return e.s.advisoryCall(ctx, fn, args)
	}
	return nil, pgerr.New(pgerr.FeatureNotSupported, "function %s is not supported yet", fn)
}

// noBackend warns that no session has the pid of a call.
func (s *Session) noBackend(args []types.Datum) error {
	if n, ok := args[0].(int64); ok {
		s.warn(s.out, pgerr.Warning, "PID %d is not a PostgreSQL backend process", n)
	}
	return nil
}

// reloadConf is pg_reload_conf.
func (s *Session) reloadConf(ctx context.Context) (types.Datum, error) {
	if !s.rights(ctx).super {
		return nil, denied("permission denied for function pg_reload_conf")
	}
	if s.eng.cfg.ReloadConf == nil {
		return false, nil
	}
	s.eng.cfg.ReloadConf()
	return true, nil
}

// sources are what pg_catalog shows of this session.
type sources struct{ s *Session }

func (s *Session) sources() pgcatalog.Sources { return &sources{s} }

func (x *sources) Database() string         { return x.s.database }
func (x *sources) User() string             { return x.s.userName() }
func (x *sources) Catalog() catalog.Catalog { return x.s.catalog() }

// Listed is the newest listing of the warehouse that anybody asked for.
func (x *sources) Listed() *catalog.Listing {
	if c, ok := x.s.eng.cat.(*catalog.Filesystem); ok {
		return c.Listed()
	}
	return nil
}

// Listing looks at the warehouse once in a statement.
func (x *sources) Listing(ctx context.Context, namesOnly bool) (*catalog.Listing, error) {
	return x.s.listing.of(ctx, x.s.tx.staged.Edits()+x.s.tx.temp.Edits(), x.s.catalog(), namesOnly)
}

func (x *sources) StartTime() time.Time { return x.s.eng.started }

// statementListing is what the catalog held when the running statement asked first.
type statementListing struct {
	mu    sync.Mutex
	edits uint64
	names *catalog.Listing // nil: nobody asked
	whole *catalog.Listing // likewise
}

// forget begins another statement.
func (s *statementListing) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names, s.whole = nil, nil
}

func (s *statementListing) of(ctx context.Context, edits uint64, c catalog.Catalog, namesOnly bool) (*catalog.Listing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.edits != edits {
		s.names, s.whole, s.edits = nil, nil, edits
	}
	if s.whole == nil && namesOnly && s.names != nil {
		return s.names, nil
	}
	if s.whole != nil {
		return s.whole, nil
	}
	l, err := catalog.List(ctx, c, namesOnly)
	if err != nil {
		return nil, err
	}
	if namesOnly {
		s.names = l
	} else {
		s.whole = l
	}
	return l, nil
}

// ObjectName is the name of the view or sequence with an OID, as SQL.
func (x *sources) ObjectName(ctx context.Context, oid uint32) (string, bool) {
	rel, err := x.s.objectByOID(ctx, oid)
	if err != nil || rel == nil {
		return "", false
	}
	return x.s.visibleName(ctx, rel.Schema(), rel.Name()), true
}

// VisibleName is a relation's name as SQL, with its schema where the name alone does
// not find it.
func (x *sources) VisibleName(schema, name string) string {
	return x.s.visibleName(x.s.ctx, schema, name)
}

// ViewText is pg_get_viewdef.
func (x *sources) ViewText(ctx context.Context, v catalog.View, pretty bool) string {
	cols := make([]string, len(v.Columns()))
	for i, c := range v.Columns() {
		cols[i] = c.Name
	}
	visible := func(schemaName, name string) bool {
		rel, err := x.s.newResolver().Relation(ctx, ast.Name{{Name: name, Quoted: true}}, catalog.ResolveOptions{})
		return err == nil && rel.Schema() == schemaName
	}
	return planner.PrintView(ctx, v.Query(), cols, pretty, visible, x.s.planOptions())
}

func (x *sources) Settings() []pgcatalog.Setting {
	set := x.s.set
	out := make([]pgcatalog.Setting, 0, len(set.reg.list))
	for i := range set.reg.list {
		d := &set.reg.list[i]
		if d.Unlisted {
			continue
		}
		v, _ := set.get(d.Name)
		set.mu.RLock()
		reset, _ := set.resetValue(strings.ToLower(d.Name))
		set.mu.RUnlock()
		r := pgcatalog.Setting{
			Name: d.Name, Value: d.bare(v), Unit: d.Unit, Category: d.Category, Description: d.Doc, Context: d.Scope.String(),
			VarType: d.Kind.String(), Boot: d.bare(d.Default), Reset: d.bare(reset), Source: set.source(d), Enum: d.Enum,
			PendingRestart: x.s.eng.awaitsRestart(d.Name),
		}
		if d.Kind == KindInt {
			r.Min, r.Max = formatInt(d.Min), formatInt(d.Max)
		}
		if d.Kind == KindReal {
			r.Min, r.Max = shortFloat(d.MinReal), shortFloat(d.MaxReal)
		}
		out = append(out, r)
	}
	return out
}

func (x *sources) Sessions() []pgcatalog.Session {
	var out []pgcatalog.Session
	waits := x.s.eng.locks.waits()
	m := x.s.roles(x.s.ctx)
	for _, s := range x.s.eng.list() {
		app, _ := s.set.get("application_name")
		s.mu.Lock()
		a := s.act
		s.mu.Unlock()
		if !x.s.seesWork(m, s.user) {
			out = append(out, pgcatalog.Session{PID: s.pid, User: s.user, Application: app, Database: s.database, Query: "<insufficient privilege>", Hidden: true})
			continue
		}
		r := pgcatalog.Session{
			PID: s.pid, User: s.user, Application: app, Remote: s.remote, Database: s.database, BackendStart: s.started,
			XactStart: a.xactStart, QueryStart: a.queryStart, StateChg: a.changed, State: a.state, Query: a.query,
		}
		if s.tls != nil {
			t := pgcatalog.SessionTLS(*s.tls)
			r.TLS = &t
		}
		switch kind := waits[s.pid]; {
		case kind != "":
			r.WaitType, r.WaitEvent = "Lock", kind
		case a.state != "active":
			r.WaitType, r.WaitEvent = "Client", "ClientRead"
		}
		if a.query != "" {
			_, id := parser.Normalize(a.query)
			r.QueryID = &id
		}
		out = append(out, r)
	}
	return out
}

// Locks are those of every session, as pg_locks shows them.
func (x *sources) Locks() []pgcatalog.Lock {
	var out []pgcatalog.Lock
	for _, v := range x.s.eng.locks.view() {
		l := pgcatalog.Lock{PID: v.pid, Granted: v.granted, Since: v.since}
		switch {
		case v.target.table == advisoryTable:
			l.Type, l.Mode = "advisory", advisoryMode(v.mode)
			l.Class, l.Obj, l.Sub = advisoryIDs(v.target.key)
		case v.target.key != "":
			l.Type, l.Mode = "tuple", map[lockMode]string{lockShared: "RowShareLock", lockExclusive: "ExclusiveLock"}[v.mode]
			l.Table = tableKey{dir: v.target.table}.shown()
		default:
			l.Type, l.Mode, l.Table = "relation", v.mode.String(), tableKey{dir: v.target.table}.shown()
		}
		out = append(out, l)
	}
	return out
}

// Prepared is read by the goroutine of the session's own statement only: the
// relation is private to the session, and its statements run one at a time.
func (x *sources) Prepared() []pgcatalog.PreparedStatement {
	var out []pgcatalog.PreparedStatement
	for name, p := range x.s.stmts {
		if name == "" {
			continue
		}
		impl := p.impl.(*prepared)
		ps := pgcatalog.PreparedStatement{Name: name, Statement: p.SQL, FromSQL: impl.fromSQL, PreparedAt: impl.at}
		for _, t := range p.Params {
			ps.ParamTypes = append(ps.ParamTypes, t.OID())
		}
		out = append(out, ps)
	}
	return out
}

// Cursors are the session's portals: DECLAREd ones and, as in PostgreSQL, those that the
// protocol bound.
func (x *sources) Cursors() []pgcatalog.Cursor {
	var out []pgcatalog.Cursor
	for name, pt := range x.s.portals {
		p := pt.impl.(*portal)
		out = append(out, pgcatalog.Cursor{Name: name, Statement: pt.Prepared.SQL, Holdable: p.hold, Binary: p.binary, Scrolled: p.scroll != scrollNever, CreatedAt: p.at})
	}
	return out
}
