package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/exec/vectorized"
	"github.com/paimon-sql/paimon-sql/index/dv"
	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/sql/planner"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// Row kinds as writers take them.
const (
	kindInsert uint8 = 0
	kindUpdate uint8 = 2
	kindDelete uint8 = 3
)

// modifier turns the rows of one statement into changes of its target.
//
// A batch of source rows is checked (NOT NULL, CHECK), brought to its effect on
// each row of the target, and goes to the sink in stored form. What the effect
// depends on is locked first, by key, and noted in reads: a row that is there and
// is updated or deleted, a key that INSERT looks for. finish hands the sink's rows
// and the reads to the session's transaction; until then nothing of it is seen.
//
// Where rows come from a scan of the target (UPDATE, DELETE, MERGE), they may have
// been changed between the scan's snapshot and the lock. rows or finish return
// errReadAgain then, and the caller starts over with a newer snapshot: the locks
// stay, so the second look is final, as PostgreSQL's re-evaluation is.
type modifier struct {
	s    *Session
	pm   *planner.PlannedModify
	m    *plan.Modify
	rel  catalog.TableInfo // the target at the state that is read
	key  tableKey
	cols []catalog.Column
	pk   []int // primary key, nil = append table
	args []types.Datum
	acc  *mem.Account // of what is remembered about rows; wacc is the writer's
	wacc *mem.Account // apart: a writer's buffer takes all that it is given
	sink rowSink
	rule *mergeRule
	// merged are the rows that INSERT has made, as the merge engine has them, when
	// RETURNING shows those.
	merged map[string]mergedRow

	checks, returning, fill, where, sets *vectorized.Exprs

	strict bool // an existing key is 23505
	// seen are the lock keys of the rows of the target that the statement has
	// affected; once says that its source never gives a row of the target twice, so
	// that nothing need be remembered.
	seen map[string]struct{}
	once bool
	// one is the key of the first row of a blind upsert: seen is made when there is
	// a second row.
	one   []byte
	reads map[commit.BucketID][][]byte
	nread int
	// all: the whole table is locked and read; readBytes is what reads is charged.
	all       bool
	readBytes int64
	// files are the positions taken out of data files of an append table.
	files map[string]*dv.Vector
	// gone and come are the keys that rows lose and get when keys change.
	gone  map[string]struct{}
	come  map[string]comer
	moved []*vec.Batch // new rows of changed keys, in stored form

	count int64
	done  bool

	// For the context of COPY's errors: the rows of its last batch that passed WHERE
	// (nil = all), and that of its rows which check has refused.
	passed []uint16
	badRow int
}

// comer is a new key, for messages and lookups.
type comer struct {
	b   *vec.Batch // SQL form
	row int
	bid commit.BucketID
	key []byte
}

func newModifier(ctx context.Context, s *Session, pm *planner.PlannedModify, args []types.Datum) (*modifier, error) {
	if err := s.lockTarget(ctx, pm.Modify); err != nil {
		return nil, err
	}
	t := pm.Modify.Target
	rel, err := s.newResolver().find(ctx, ast.Name{{Name: t.Schema(), Quoted: true}, {Name: t.Name(), Quoted: true}}, resolveDefaults(s))
	if err != nil {
		return nil, err
	}
	info, ok := rel.(catalog.TableInfo)
	if !ok || info.SchemaID() != t.SchemaID() {
		return nil, errSerialize("The table's definition has changed.")
	}
	if readsExisting(s, pm.Modify) {
		if info, err = s.overlaid(ctx, info); err != nil {
			return nil, err
		}
	}
	return s.modifierOn(info, pm, args)
}

// modifierOn opens a modifier on a target that has been resolved and locked.
func (s *Session) modifierOn(rel catalog.TableInfo, pm *planner.PlannedModify, args []types.Datum) (*modifier, error) {
	m := &modifier{s: s, pm: pm, m: pm.Modify, rel: rel, key: keyOf(rel), cols: rel.Columns(), args: args,
		acc: s.eng.root.Child("work_mem", s.set.use().workMem), wacc: s.eng.root.Child("work_mem", s.set.use().workMem),
		strict: strictInsert(s, pm.Modify), once: givesOnce(pm.Modify)}
	m.sink.m = m
	var err error
	if m.rule, err = newMergeRule(rel); err != nil {
		return nil, err
	}
	for _, n := range rel.PrimaryKey() {
		m.pk = append(m.pk, columnNamed(m.cols, n))
	}
	if rel.Table() == nil {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "changing %q is not supported", rel.Name())
	}
	if err := s.inPresent(rel); err != nil {
		return nil, err
	}
	for _, o := range []string{"scan.fallback-branch", "scan.primary-branch"} {
		// A row of another branch is in no file of this one, and one written here may
		// hide all of its partition there.
		if b := rel.Options()[o]; b != "" && readsExisting(s, pm.Modify) {
			return nil, pgerr.New(pgerr.FeatureNotSupported, "changing rows of %q, which has a %s, is not supported", rel.Name(), o).
				WithHint("Change rows of the branch: %s$branch_%s.", rel.Name(), b)
		}
	}
	if err := m.allowed(); err != nil {
		return nil, err
	}
	compile := func(es []plan.Expr) (*vectorized.Exprs, error) {
		if len(es) == 0 {
			return nil, nil
		}
		return vectorized.NewExprs(es, args, s.env(), m.acc)
	}
	var conds []plan.Expr
	for _, c := range m.m.Checks {
		conds = append(conds, c.Cond)
	}
	if m.checks, err = compile(conds); err != nil {
		return nil, err
	}
	if m.returning, err = compile(m.m.Returning); err != nil {
		return nil, err
	}
	if m.m.Source == nil {
		if m.fill, err = compile(m.m.Fill); err != nil {
			return nil, err
		}
		if m.m.Where != nil {
			if m.where, err = compile([]plan.Expr{m.m.Where}); err != nil {
				return nil, err
			}
		}
	}
	if c := m.m.Conflict; c != nil && !c.DoNothing && !blind(m.m) {
		es := slices.Clone(c.Sets)
		if c.Where != nil {
			es = append(es, c.Where)
		}
		if m.sets, err = compile(es); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func columnNamed(cols []catalog.Column, name string) int {
	return slices.IndexFunc(cols, func(c catalog.Column) bool { return c.Name == name })
}

// strictInsert reports whether INSERT refuses keys that exist.
func strictInsert(s *Session, m *plan.Modify) bool {
	if m.Upsert || m.Overwrite != nil || m.Conflict != nil || len(m.Target.PrimaryKey()) == 0 {
		return false
	}
	if m.Op != plan.InsertOp && m.Op != plan.MergeOp {
		return false
	}
	switch m.Target.Options()["pg.insert-mode"] {
	case "strict":
		return true
	case "upsert":
		return false
	}
	return s.set.use().strictInsert
}

// readsExisting reports whether the statement looks at rows that are there.
func readsExisting(s *Session, m *plan.Modify) bool {
	if m.Op != plan.InsertOp || strictInsert(s, m) || returnsMerged(m) {
		return true
	}
	return m.Conflict != nil && !blind(m) && len(m.Target.PrimaryKey()) > 0
}

// rewritesFiles reports whether the statement takes rows out of data files.
func rewritesFiles(m *plan.Modify) bool {
	return m.Op != plan.InsertOp && len(m.Target.PrimaryKey()) == 0
}

// filesKey is the key that stands for the rows of an append table: statements
// that rewrite its files follow one another, inserts go on.
const filesKey = "\xff\xfffiles"

// lockTarget takes the locks that a statement needs before it reads.
func (s *Session) lockTarget(ctx context.Context, m *plan.Modify) error {
	k, name := keyOf(m.Target), m.Target.Name()
	mode := lockIntent
	if m.Overwrite != nil {
		mode = lockExclusive
	}
	if _, err := s.lockTable(ctx, k, name, mode, false); err != nil {
		return err
	}
	if rewritesFiles(m) {
		_, err := s.lockKeys(ctx, k, name, []string{filesKey}, lockExclusive, false)
		return err
	}
	return nil
}

// rows takes a batch of source rows (of COPY: of plan.Modify.In) and returns
// RETURNING's rows, nil when there are none. The batch is kept.
func (m *modifier) rows(ctx context.Context, b *vec.Batch) (*vec.Batch, error) {
	b = vec.Compact(b)
	if b.N == 0 {
		return nil, nil
	}
	if m.m.Source == nil {
		var err error
		if b, err = m.filled(ctx, b); err != nil || b.N == 0 {
			return nil, err
		}
		return m.insert(ctx, b, b, nil)
	}
	switch m.m.Op {
	case plan.InsertOp:
		return m.insert(ctx, m.newRows(b, nil), b, nil)
	case plan.UpdateOp:
		return m.update(ctx, b, nil)
	case plan.DeleteOp:
		return m.remove(ctx, b, nil)
	}
	return m.merge(ctx, b)
}

// filled makes table rows of the rows that COPY read.
func (m *modifier) filled(ctx context.Context, b *vec.Batch) (*vec.Batch, error) {
	m.passed = nil
	if m.where != nil {
		sel, err := m.where.Select(ctx, 0, b)
		if err != nil {
			return nil, err
		}
		if len(sel) < b.N {
			m.passed = sel
			c := *b
			c.Sel = sel
			b = vec.Compact(&c)
		}
	}
	out := &vec.Batch{Schema: m.schema(), N: b.N}
	if b.N == 0 {
		return out, nil
	}
	var err error
	out.Cols, err = m.fill.Columns(ctx, b)
	return out, err
}

func (m *modifier) schema() types.Schema {
	out := make(types.Schema, len(m.cols))
	for i, c := range m.cols {
		out[i] = c.Field
	}
	return out
}

// newRows are the new rows of the source rows idx (nil = all), by table column.
func (m *modifier) newRows(b *vec.Batch, idx []int32) *vec.Batch { return m.slots(b, m.m.New, idx) }

func (m *modifier) oldRows(b *vec.Batch, idx []int32) *vec.Batch { return m.slots(b, m.m.Old, idx) }

func (m *modifier) slots(b *vec.Batch, slots []int, idx []int32) *vec.Batch {
	out := &vec.Batch{Schema: m.schema(), N: b.N, Cols: make([]arrow.Array, len(m.cols))}
	if idx != nil {
		out.N = len(idx)
	}
	for c, s := range slots {
		switch {
		case s < 0:
			out.Cols[c] = vec.MakeNull(m.cols[c].Type.Arrow(), out.N)
		case idx == nil:
			out.Cols[c] = b.Cols[s]
		default:
			out.Cols[c] = vec.Take(b.Cols[s], idx)
		}
	}
	return out
}

// insert adds rows. src are the source rows they were made of; idx, when not nil,
// says of which.
func (m *modifier) insert(ctx context.Context, rows, src *vec.Batch, idx []int32) (*vec.Batch, error) {
	if err := m.check(ctx, rows); err != nil {
		return nil, err
	}
	if m.pk != nil {
		if m.strict || m.m.Conflict != nil && !blind(m.m) {
			return m.insertChecked(ctx, rows, src, idx)
		}
		if returnsMerged(m.m) {
			return m.insertMerged(ctx, rows, src, idx)
		}
		if m.m.Conflict != nil {
			if err := m.proposedOnce(rows); err != nil {
				return nil, err
			}
		}
	}
	stored, err := toStored(m.rel, rows)
	if err != nil {
		return nil, err
	}
	if m.m.Op == plan.MergeOp && m.pk != nil { // it was looked for and not found
		if _, err := m.claim(ctx, stored); err != nil {
			return nil, err
		}
	}
	if err := m.sink.add(ctx, stored, nil); err != nil {
		return nil, err
	}
	m.count += int64(rows.N)
	return m.returned(ctx, rows, src, idx)
}

// proposedOnce refuses a key that the statement has proposed before.
func (m *modifier) proposedOnce(rows *vec.Batch) error {
	if rows.N == 1 && m.one == nil && m.seen == nil {
		m.one = m.canon(rows, 0)
		return nil
	}
	if m.seen == nil {
		m.seen = map[string]struct{}{}
		if m.one != nil {
			m.seen[string(m.one)] = struct{}{}
		}
	}
	k := m.keyer(rows)
	var buf []byte
	for i := range rows.N {
		buf = vec.AppendCanon(buf[:0], k, i)
		if _, twice := m.seen[string(buf)]; twice {
			return errTwice()
		}
		if err := m.acc.Grow(int64(len(buf)) + 64); err != nil {
			return err
		}
		m.seen[string(buf)] = struct{}{}
	}
	return nil
}

// keyer makes comparable keys of rows in SQL form.
func (m *modifier) keyer(rows *vec.Batch) *vec.Keyer {
	cols := make([]vec.KeyColumn, len(m.pk))
	for i, c := range m.pk {
		cols[i].Type = m.cols[c].Type
	}
	return vec.NewKeyer(cols, columnsOf(rows, m.pk))
}

func (m *modifier) canon(rows *vec.Batch, i int) []byte {
	return vec.AppendCanon(nil, m.keyer(rows), i)
}

// claimed says where the rows of a batch are.
type claimed struct {
	loc    *table.Located
	keys   []string // lock keys
	waited bool
}

// claim locks the keys of rows in stored form and notes them as read.
func (m *modifier) claim(ctx context.Context, stored *vec.Batch) (*claimed, error) {
	c, err := m.locate(ctx, stored)
	if err != nil {
		return nil, err
	}
	for i, k := range c.loc.Keys {
		if m.all {
			break
		}
		n := int64(len(k)) + 96
		if err := m.acc.Grow(n); err != nil {
			return nil, err
		}
		m.readBytes += n
		if m.reads == nil {
			m.reads = map[commit.BucketID][][]byte{}
		}
		b := c.loc.Buckets[c.loc.Bucket[i]]
		m.reads[b] = append(m.reads[b], k)
		m.nread++
	}
	if m.nread > m.s.eng.locks.maxKeys && !m.all {
		m.all = true
		if c.waited, err = m.s.lockTable(ctx, m.key, m.rel.Name(), lockExclusive, false); err == nil {
			m.acc.Shrink(m.readBytes)
			m.reads, m.readBytes = nil, 0
		}
	} else if !m.all {
		c.waited, err = m.s.lockKeys(ctx, m.key, m.rel.Name(), slices.Clone(c.keys), lockExclusive, false)
	}
	return c, err
}

// locate finds bucket and key of rows in stored form.
func (m *modifier) locate(ctx context.Context, stored *vec.Batch) (*claimed, error) {
	loc, err := m.rel.Table().Locate(ctx, m.rel.At(), columnsOf(stored, m.pk), stored.N)
	if err != nil {
		return nil, err
	}
	c := &claimed{loc: loc, keys: make([]string, stored.N)}
	for i, k := range loc.Keys {
		c.keys[i] = lockKey(loc.Buckets[loc.Bucket[i]], k)
	}
	return c, nil
}

// readSet is what the statement has read.
func (m *modifier) readSet() *commit.ReadSet {
	switch {
	case m.all:
		return &commit.ReadSet{All: true}
	case len(m.reads) > 0:
		return unionReads(&commit.ReadSet{Keys: m.reads}, &commit.ReadSet{}) // sorted, without duplicates
	case len(m.files) > 0:
		r := &commit.ReadSet{}
		own := m.s.touched(m.key)
		for f := range m.files {
			if own == nil || !addsFile(own.over, f) {
				r.Files = append(r.Files, f)
			}
		}
		slices.Sort(r.Files)
		return r
	}
	return nil
}

func addsFile(c commit.Changes, name string) bool {
	for _, e := range c.Files {
		if e.File.Name == name {
			return true
		}
	}
	return false
}

// unchanged reports errReadAgain when something that was read has been changed
// since; the isolation levels above READ COMMITTED give 40001 instead.
func (m *modifier) unchanged(ctx context.Context) error {
	r := m.readSet()
	if r == nil {
		return nil
	}
	_, err := m.rel.Table().CheckReads(ctx, m.key.branch, snapshotID(m.rel.At()), r)
	if conflicted(err) && !m.s.pinned() {
		return errReadAgain
	}
	return err
}

// joined lays batches one behind the other.
func joined(s types.Schema, parts []*vec.Batch) *vec.Batch {
	switch len(parts) {
	case 0:
		return nil
	case 1:
		return parts[0]
	}
	out := &vec.Batch{Schema: s, Cols: make([]arrow.Array, len(s))}
	for c := range s {
		arrs := make([]arrow.Array, len(parts))
		for i, p := range parts {
			arrs[i] = vec.Decode(p.Cols[c])
		}
		out.Cols[c] = vec.Concat(s[c].Type.Arrow(), arrs)
	}
	for _, p := range parts {
		out.N += p.N
	}
	return out
}

// put writes rows of an append table in SQL form anew; ids are those that they keep,
// nil where rows have none.
func (m *modifier) put(ctx context.Context, rows *vec.Batch, ids arrow.Array) error {
	stored, err := toStored(m.rel, rows)
	if err != nil {
		return err
	}
	if ids != nil {
		b := *stored
		b.Cols = append(slices.Clone(b.Cols), ids)
		b.Schema = append(slices.Clone(b.Schema), types.Field{ID: -1, Name: "_ROW_ID", Type: types.Of(types.Int8)})
		stored = &b
	}
	return m.sink.add(ctx, stored, nil)
}

func constKinds(k uint8, n int) []uint8 {
	out := make([]uint8, n)
	for i := range out {
		out[i] = k
	}
	return out
}

// returned computes RETURNING over affected rows; idx are the source rows they
// come from, nil = row by row.
func (m *modifier) returned(ctx context.Context, rows, src *vec.Batch, idx []int32) (*vec.Batch, error) {
	if m.returning == nil {
		return nil, nil
	}
	in := &vec.Batch{Schema: slices.Clone(rows.Schema), Cols: slices.Clone(rows.Cols), N: rows.N}
	for _, x := range m.m.Extra {
		a := src.Cols[x]
		if idx != nil {
			a = vec.Take(a, idx)
		}
		in.Schema, in.Cols = append(in.Schema, src.Schema[x]), append(in.Cols, a)
	}
	cols, err := m.returning.Columns(ctx, in)
	if err != nil {
		return nil, err
	}
	return &vec.Batch{Schema: m.m.ReturnSchema, Cols: cols, N: rows.N}, nil
}

// check refuses rows that violate NOT NULL or a CHECK constraint: the first such
// row, as if they came one by one.
func (m *modifier) check(ctx context.Context, rows *vec.Batch) error {
	bad, badCol := rows.N, -1
	for c, col := range m.cols {
		if !col.NotNull && !slices.Contains(m.pk, c) || rows.Cols[c].NullN() == 0 {
			continue
		}
		for i := range bad {
			if rows.Cols[c].IsNull(i) {
				bad, badCol = i, c
				break
			}
		}
	}
	if m.checks != nil && bad > 0 {
		in := rows
		if bad < rows.N {
			sel := make([]uint16, bad)
			for i := range sel {
				sel[i] = uint16(i)
			}
			c := *rows
			c.Sel = sel
			in = &c
		}
		cols, err := m.checks.Columns(ctx, in)
		if err != nil {
			return err
		}
		check := -1
		for k, a := range cols {
			ok, isBool := a.(*array.Boolean)
			if !isBool {
				return errors.New("a CHECK constraint is not a condition")
			}
			for i := range bad {
				if ok.IsValid(i) && !ok.Value(i) {
					bad, check = i, k
					break
				}
			}
		}
		if check >= 0 {
			m.badRow = bad
			e := failing(pgerr.New(pgerr.CheckViolation, "new row for relation %q violates check constraint %q", m.rel.Name(), m.m.Checks[check].Name), m.rowText(rows, bad))
			e.Schema, e.Table, e.Constraint = m.rel.Schema(), m.rel.Name(), m.m.Checks[check].Name
			return e
		}
	}
	if badCol >= 0 {
		m.badRow = bad
		e := failing(pgerr.New(pgerr.NotNullViolation, "null value in column %q of relation %q violates not-null constraint", m.cols[badCol].Name, m.rel.Name()), m.rowText(rows, bad))
		e.Schema, e.Table, e.Column = m.rel.Schema(), m.rel.Name(), m.cols[badCol].Name
		return e
	}
	return nil
}

// finish ends the statement and returns how many rows it affected.
func (m *modifier) finish(ctx context.Context) (int64, error) {
	if err := m.arrive(ctx); err != nil {
		return 0, err
	}
	if err := m.sink.finish(ctx); err != nil {
		return 0, err
	}
	m.done = true
	m.acc.Close()
	m.wacc.Close()
	return m.count, nil
}

// close drops what finish has not taken.
func (m *modifier) close() {
	if m.done {
		return
	}
	m.done = true
	m.sink.abort()
	m.acc.Close()
	m.wacc.Close()
}
