package engine

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/sql/planner"
)

// prepared is the engine's half of a Prepared: a parsed statement, and its plan
// when it is a query. Immutable: refresh makes a new one.
type prepared struct {
	stmt     ast.Stmt // nil: an empty query
	text     string   // the whole text: error positions count in it
	declared []types.Type
	// fixed: no parameters beyond the declared ones (the simple protocol).
	fixed   bool
	fromSQL bool
	at      time.Time
	plan    *planned // of the query, or of the query inside EXPLAIN or DECLARE
}

// planned is a plan and what it rests on. Immutable and shared by sessions.
type planned struct {
	p      *planner.Planned       // of a query
	mod    *planner.PlannedModify // of a data-changing statement
	reads  bool                   // mod scans its own target
	target *recentTarget          // of mod, when it is all that the plan resolves
	frag   *plan.Fragment
	cols   []Column
	params []types.Type
	deps   []dep
	names  []foldedName // that are OIDs in it: 'orders'::regclass
	// meaning are the settings it was made under; see derived.meaning.
	meaning string
	// owner is the only session that may use it: its relations belong to that
	// session. nil = everybody.
	owner *Session
	// once: never use it again (system tables show the moment they were bound).
	once bool
	// locks: SELECT FOR UPDATE and its kin: the rows have columns behind cols.
	locks bool
	took  time.Duration // planning
	// point is the plan as a lookup of one key; nil = it is more than that.
	point *point
}

// dep is one name that a plan resolved, and what it found.
type dep struct {
	name ast.Name
	opts catalog.ResolveOptions
	rel  catalog.Relation
}

// sameRelation reports whether a plan over a may run although the name means b
// now: the same state of the same table.
func sameRelation(a, b catalog.Relation) bool {
	if a == b {
		return true
	}
	if a.OID() != b.OID() || a.Kind() != b.Kind() || a.Name() != b.Name() || a.Schema() != b.Schema() {
		return false
	}
	if x, ok := a.(catalog.TableInfo); ok {
		y, ok := b.(catalog.TableInfo)
		return ok && x.At() == y.At() && sameSchema(x, y)
	}
	if x, ok := a.(catalog.View); ok {
		y, ok := b.(catalog.View)
		return ok && x.Query() == y.Query()
	}
	if x, ok := a.(catalog.Derived); ok {
		y, ok := b.(catalog.Derived)
		return ok && sameSchema(x.Base(), y.Base())
	}
	return true
}

// sameSchema reports whether two tables of one name have the same columns, keys and
// options. The schema's id alone does not say so: a table that was dropped and made
// again starts over.
func sameSchema(a, b catalog.TableInfo) bool {
	if a.SchemaID() != b.SchemaID() {
		return false
	}
	x, ok1 := a.(*catalog.TableRelation)
	y, ok2 := b.(*catalog.TableRelation)
	if ok1 && ok2 && x.TableSchema() == y.TableSchema() {
		return true
	}
	return slices.EqualFunc(a.Columns(), b.Columns(), func(c, d catalog.Column) bool {
		return c.NotNull == d.NotNull && reflect.DeepEqual(c.Field, d.Field)
	}) && slices.Equal(a.PrimaryKey(), b.PrimaryKey()) && slices.Equal(a.PartitionKeys(), b.PartitionKeys()) &&
		maps.Equal(a.Options(), b.Options())
}

// analyse finds the parameters and columns of a statement, planning it if it is
// a query. It fills p.
func (s *Session) analyse(ctx context.Context, impl *prepared, p *Prepared) error {
	if impl.stmt == nil {
		return nil
	}
	q, cols, err := s.describe(ctx, impl)
	if err != nil {
		return err
	}
	p.Columns = cols
	p.Params = impl.declared
	if q != nil {
		sub := *impl
		sub.stmt = q
		pl, err := s.plan(ctx, &sub, nil)
		if err != nil {
			return err
		}
		impl.plan = pl
		p.Params = pl.params
		if _, declares := impl.stmt.(*ast.DeclareCursor); cols == nil && !declares {
			p.Columns = pl.cols
		}
	}
	return nil
}

// describe returns the query or data-changing statement inside a statement that
// must be planned to know its parameters, if there is one, and the columns of a statement that returns
// rows without being a query.
func (s *Session) describe(ctx context.Context, impl *prepared) (ast.Stmt, []Column, error) {
	switch st := impl.stmt.(type) {
	case *ast.Query, *ast.Insert, *ast.Update, *ast.Delete, *ast.Merge:
		return st, nil, nil
	case *ast.Explain:
		if isQuery(st.Stmt) || changesData(st.Stmt) {
			return st.Stmt, explainColumns(st), nil
		}
		return nil, explainColumns(st), nil
	case *ast.DeclareCursor:
		return st.Query, nil, checkDeclare(st)
	case *ast.Show:
		if st.All {
			return nil, textCols("name", "setting", "description"), nil
		}
		name, err := s.showName(st.Name)
		return nil, textCols(name), err
	case *ast.ShowObjects:
		return nil, showObjectsColumns(st), nil
	case *ast.Describe:
		return nil, describeColumns(st), nil
	case *ast.Execute:
		p, err := s.Statement(st.Name.Name)
		if err != nil {
			return nil, nil, err
		}
		return nil, p.Columns, nil
	case *ast.Fetch:
		if st.Move {
			return nil, nil, nil
		}
		c, err := s.cursor(st.Cursor.Name)
		if err != nil {
			return nil, nil, err
		}
		return nil, c.Columns, nil
	case *ast.Transaction, *ast.Set, *ast.SetTransaction, *ast.SetConstraints, *ast.Reset, *ast.Deallocate, *ast.Prepare,
		*ast.CloseCursor, *ast.Discard, *ast.Listen, *ast.Unlisten, *ast.Notify, *ast.Checkpoint, *ast.Use, *ast.LockTable, *ast.Truncate, *ast.Reindex,
		*ast.CreateRole, *ast.AlterRole, *ast.Grant, *ast.AlterSettings, *ast.AlterDefaultPrivileges, *ast.ReassignOwned, *ast.DropOwned:
		return nil, nil, nil
	case *ast.Copy:
		return nil, nil, nil
	case *ast.Vacuum:
		return nil, nil, nil
	case *ast.Call:
		p, err := findProcedure(st)
		if err != nil {
			return nil, nil, err
		}
		return nil, procedureColumns(p), nil
	}
	if isDefinition(impl.stmt) {
		return nil, nil, nil
	}
	return nil, nil, unsupported(impl.stmt)
}

// refresh returns impl with a plan that is right now. When the result's columns
// have changed since the statement was described, clients must prepare again.
func (s *Session) refresh(ctx context.Context, impl *prepared, p *Prepared) (*prepared, error) {
	if impl.plan == nil || impl.plan.mod != nil && changesData(impl.stmt) && s.sameNames(ctx, impl.plan) {
		return impl, nil // a data-changing statement looks when it runs
	}
	if s.valid(ctx, impl.plan) {
		return impl, nil
	}
	sub := *impl
	switch e := impl.stmt.(type) {
	case *ast.Explain:
		sub.stmt = e.Stmt
	case *ast.DeclareCursor:
		sub.stmt = e.Query
	}
	pl, err := s.plan(ctx, &sub, p.Params)
	if err != nil {
		return nil, err
	}
	if _, isQuery := impl.stmt.(*ast.Query); isQuery && !sameColumns(p.Columns, pl.cols) {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "cached plan must not change result type")
	}
	out := *impl
	out.plan = pl
	return &out, nil
}

func sameColumns(a, b []Column) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name || a[i].Type.OID() != b[i].Type.OID() || a[i].Type.PGTypmod() != b[i].Type.PGTypmod() {
			return false
		}
	}
	return true
}

// isQuery reports whether a statement is a query.
func isQuery(st ast.Stmt) bool {
	_, ok := st.(*ast.Query)
	return ok
}

// changesData reports whether a statement is planned by planner.PlanModify.
func changesData(st ast.Stmt) bool {
	switch st.(type) {
	case *ast.Insert, *ast.Update, *ast.Delete, *ast.Merge:
		return true
	}
	return false
}

// usable reports whether a plan was made under what the session's settings and
// names are now. Whether its tables are the same is another question.
func (s *Session) usable(pl *planned) bool {
	return !pl.once && (pl.owner == nil || pl.owner == s) && pl.meaning == s.meaning()
}

// valid reports whether a plan may run now, in this session. The tables of a
// data-changing plan are looked at when it runs, in whatever state they are.
func (s *Session) valid(ctx context.Context, pl *planned) bool {
	if !s.usable(pl) || !s.sameNames(ctx, pl) {
		return false
	}
	if pl.mod != nil {
		return s.sameTables(ctx, pl)
	}
	if len(pl.deps) == 0 {
		return true
	}
	r := s.newResolver()
	for _, d := range pl.deps {
		rel, err := r.Relation(ctx, d.name, d.opts)
		if err != nil || !sameRelation(d.rel, rel) {
			return false
		}
	}
	return true
}

// sameTables reports whether the relations of a plan have the definitions that it
// was made for.
func (s *Session) sameTables(ctx context.Context, pl *planned) bool {
	r := s.newResolver()
	for _, d := range pl.deps {
		rel, err := r.Relation(ctx, d.name, d.opts)
		if err != nil || !sameDefinition(d.rel, rel) {
			return false
		}
	}
	return true
}

// meaning identifies the settings and names that change what a text means.
func (s *Session) meaning() string {
	if d := s.set.use(); s.named.by != d {
		s.named = meant{d, d.meaning + "\x00" + s.user + "\x00" + s.database}
	}
	return s.named.text
}

// meant is a session's meaning, as long as its settings stay.
type meant struct {
	by   *derived
	text string
}

// plan plans the query of impl, or takes the plan from the cache. params, when
// not nil, are the types that parameters were given when it was prepared.
func (s *Session) plan(ctx context.Context, impl *prepared, params []types.Type) (*planned, error) {
	if params == nil {
		params = impl.declared
	}
	key := s.planKey(impl, params)
	if pl := s.eng.plans.get(key); pl != nil && s.valid(ctx, pl) {
		s.eng.stats.planHits.Add(1)
		return pl, nil
	}
	s.eng.stats.planMisses.Add(1)
	make := s.planQuery
	if changesData(impl.stmt) {
		make = s.planModify
	}
	pl, err := make(ctx, impl, params)
	if err != nil {
		return nil, err
	}
	if key != "" && !pl.once && pl.owner == nil {
		s.eng.plans.put(key, pl)
	}
	return pl, nil
}

// planKey identifies a statement; "" when it is too long to keep. The parameter
// types take part as they were declared.
func (s *Session) planKey(impl *prepared, params []types.Type) string {
	if len(impl.text) > 1<<16 {
		return ""
	}
	var b strings.Builder
	b.WriteString(strconv.Itoa(int(impl.stmt.Position())))
	for _, t := range params {
		b.WriteByte(',')
		b.WriteString(t.String())
	}
	if impl.fixed {
		b.WriteByte('!')
	}
	b.WriteByte(0)
	b.WriteString(s.meaning())
	b.WriteByte(0)
	b.WriteString(impl.text)
	return b.String()
}

// planCache keeps plans by key, the least recently used go first.
type planCache struct {
	max int
	mu  sync.Mutex // guards m and tick
	m   map[string]*cachedPlan

	tick uint64
}

type cachedPlan struct {
	pl   *planned
	used uint64
}

func newPlanCache(max int) *planCache { return &planCache{max: max, m: map[string]*cachedPlan{}} }

func (c *planCache) get(key string) *planned {
	if key == "" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.m[key]
	if e == nil {
		return nil
	}
	c.tick++
	e.used = c.tick
	return e.pl
}

func (c *planCache) put(key string, pl *planned) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tick++
	c.m[key] = &cachedPlan{pl, c.tick}
	if len(c.m) <= c.max {
		return
	}
	// Drop the older half at once: rare, and cheaper than a list per lookup.
	ages := make([]uint64, 0, len(c.m))
	for _, e := range c.m {
		ages = append(ages, e.used)
	}
	sort.Slice(ages, func(i, j int) bool { return ages[i] < ages[j] })
	limit := ages[len(ages)/2]
	for k, e := range c.m {
		if e.used < limit {
			delete(c.m, k)
		}
	}
}
