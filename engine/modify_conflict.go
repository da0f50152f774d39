package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// insertChecked inserts rows whose keys are looked for first: strict inserts and
// ON CONFLICT that reads. rows are in SQL form and have passed the constraints.
//
// A key that stands twice in a batch is taken in rounds: the second row meets what
// the first has done.
func (m *modifier) insertChecked(ctx context.Context, rows, src *vec.Batch, idx []int32) (*vec.Batch, error) {
	stored, err := toStored(m.rel, rows)
	if err != nil {
		return nil, err
	}
	at, err := m.claim(ctx, stored)
	if err != nil {
		return nil, err
	}
	if m.m.Op == plan.MergeOp { // its source has looked for the key at this state
		err = m.unchanged(ctx)
	} else {
		err = m.renew(ctx)
	}
	if err != nil {
		return nil, err
	}
	found, which, err := m.lookup(ctx, rows)
	if err != nil {
		return nil, err
	}
	if m.seen == nil {
		m.seen = map[string]struct{}{}
	}
	// outcome of each row: nothing, the row itself, or row k of updated.
	const nothing, itself = -2, -1
	outcome := make([]int32, rows.N)
	var updated []*vec.Batch
	nUpdated := 0
	left := everyRow(rows.N)
	for len(left) > 0 {
		var now, later, add, change []int32
		round := map[string]struct{}{}
		for _, i := range left {
			k := at.keys[i]
			if _, twice := round[k]; twice {
				later = append(later, i)
				continue
			}
			round[k] = struct{}{}
			now = append(now, i)
		}
		for _, i := range now {
			k := at.keys[i]
			outcome[i] = nothing
			if _, mine := m.seen[k]; mine {
				switch {
				case m.strict:
					return nil, m.duplicate(rows, int(i))
				case !m.m.Conflict.DoNothing:
					return nil, errTwice()
				}
				continue
			}
			if which[i] < 0 {
				outcome[i] = itself
				add = append(add, i)
				if err := m.affected(k); err != nil {
					return nil, err
				}
				continue
			}
			if m.strict {
				return nil, m.duplicate(rows, int(i))
			}
			if !m.m.Conflict.DoNothing {
				change = append(change, i)
			}
		}
		if len(add) > 0 {
			part := stored
			if len(add) < stored.N {
				part = take(stored, add)
			}
			if err := m.sink.add(ctx, part, nil); err != nil {
				return nil, err
			}
			m.count += int64(len(add))
		}
		if len(change) > 0 {
			out, passed, err := m.replace(ctx, rows, found, which, change)
			if err != nil {
				return nil, err
			}
			for k, i := range passed {
				outcome[i] = int32(nUpdated + k)
				if err := m.affected(at.keys[i]); err != nil {
					return nil, err
				}
			}
			if out != nil {
				updated, nUpdated = append(updated, out), nUpdated+out.N
				m.count += int64(out.N)
			}
		}
		left = later
	}
	if m.returning == nil {
		return nil, nil
	}
	up := joined(rows.Schema, updated)
	var from, pick []int32
	var which2 []uint16
	var row []uint32
	for i, o := range outcome {
		switch {
		case o == nothing:
			continue
		case o == itself:
			which2, row = append(which2, 0), append(row, uint32(i))
		default:
			which2, row = append(which2, 1), append(row, uint32(o))
		}
		pick = append(pick, int32(i))
		from = append(from, srcRow(idx, i))
	}
	if len(pick) == 0 {
		return nil, nil
	}
	res := &vec.Batch{Schema: rows.Schema, N: len(pick), Cols: make([]arrow.Array, len(rows.Cols))}
	for c := range rows.Cols {
		srcs := []arrow.Array{rows.Cols[c], nil}
		if up != nil {
			srcs[1] = up.Cols[c]
		}
		res.Cols[c] = vec.Gather(m.cols[c].Type.Arrow(), srcs, which2, row)
	}
	return m.returned(ctx, res, src, from)
}

func srcRow(idx []int32, i int) int32 {
	if idx == nil {
		return int32(i)
	}
	return idx[i]
}

func (m *modifier) affected(key string) error {
	if err := m.acc.Grow(int64(len(key)) + 64); err != nil {
		return err
	}
	m.seen[key] = struct{}{}
	return nil
}

// replace does DO UPDATE for the rows change: it returns the new rows, and for
// which of change they are.
func (m *modifier) replace(ctx context.Context, rows, found *vec.Batch, which, change []int32) (*vec.Batch, []int32, error) {
	there := make([]int32, len(change))
	for k, i := range change {
		there[k] = which[i]
	}
	a, b := take(rows, change), take(found, there)
	in := &vec.Batch{N: len(change), Schema: append(append(types.Schema(nil), rows.Schema...), rows.Schema...)}
	in.Cols = append(append(in.Cols, a.Cols...), b.Cols...)
	c := m.m.Conflict
	if c.Where != nil {
		sel, err := m.sets.Select(ctx, len(c.Sets), in)
		if err != nil || len(sel) == 0 {
			return nil, nil, err
		}
		if len(sel) < in.N {
			keep := make([]int32, len(sel))
			passed := make([]int32, len(sel))
			for k, p := range sel {
				keep[k], passed[k] = int32(p), change[p]
			}
			in, b, change = take(in, keep), take(b, keep), passed
		}
	}
	cols, err := m.sets.Columns(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	out := &vec.Batch{Schema: rows.Schema, N: in.N, Cols: cols[:len(c.Sets)]}
	if err := m.check(ctx, out); err != nil {
		return nil, nil, err
	}
	was, is := m.keyer(b), m.keyer(out)
	for i := range out.N {
		if string(vec.AppendCanon(nil, was, i)) != string(vec.AppendCanon(nil, is, i)) {
			return nil, nil, pgerr.New(pgerr.FeatureNotSupported, "ON CONFLICT DO UPDATE that changes the primary key is not supported yet")
		}
	}
	old, err := toStored(m.rel, b)
	if err != nil {
		return nil, nil, err
	}
	now, err := toStored(m.rel, out)
	if err == nil {
		now, err = m.updates(ctx, old, now, m.textOf(out))
	}
	if err == nil {
		err = m.before(ctx, old)
	}
	if err != nil {
		return nil, nil, err
	}
	return out, change, m.sink.add(ctx, now, constKinds(kindUpdate, now.N))
}

// renew brings the target to its newest state, now that keys are locked: what is
// looked for is looked for there. What was read before must not have changed.
func (m *modifier) renew(ctx context.Context) error {
	if m.s.pinned() {
		return m.unchanged(ctx)
	}
	at, err := m.rel.Table().Resolve(ctx, snapshot.Ref{Branch: m.key.branch})
	if err != nil {
		return err
	}
	if snapshotID(at) == snapshotID(m.rel.At()) {
		return nil
	}
	// Only keys that this statement has looked for in vain or replaced count; those
	// of this batch have not been looked for yet.
	if len(m.seen) > 0 {
		if err := m.unchanged(ctx); err != nil {
			return err
		}
	}
	rel, err := m.s.newResolver().find(ctx, ast.Name{{Name: m.rel.Schema(), Quoted: true}, {Name: m.rel.Name(), Quoted: true}}, resolveDefaults(m.s))
	if err != nil {
		return err
	}
	info, ok := rel.(catalog.TableInfo)
	if !ok || info.SchemaID() != m.rel.SchemaID() || keyOf(info) != m.key {
		return errReadAgain
	}
	info, err = m.s.overlaid(ctx, info)
	if err == nil {
		m.rel = info
	}
	return err
}

// manyKeys is from how many keys on a lookup names their range instead of them.
const manyKeys = 256

// lookup finds the rows of the target that have the keys of rows (SQL form):
// which[i] is the number of row i's in found, -1 = there is none.
func (m *modifier) lookup(ctx context.Context, rows *vec.Batch) (found *vec.Batch, which []int32, err error) {
	if found, which, ok, err := m.lookupByKey(ctx, rows); ok || err != nil {
		return found, which, err
	}
	which = make([]int32, rows.N)
	want := make(map[string][]int32, rows.N)
	k := m.keyer(rows)
	for i := range rows.N {
		which[i] = -1
		c := string(vec.AppendCanon(nil, k, i))
		want[c] = append(want[c], int32(i))
	}
	scan := table.Scan{Limit: -1, Filter: m.keyFilter(rows)}
	p, err := m.rel.Plan(ctx, scan)
	if err != nil {
		return nil, nil, err
	}
	var parts []*vec.Batch
	n := 0
	var buf []byte
	for _, sp := range p.Splits {
		rd, err := m.rel.Read(ctx, scan, sp, table.ReadOptions{Account: m.acc, Filter: newKeyProbe(m, rows, want)})
		if err != nil {
			return nil, nil, err
		}
		for {
			b, err := rd.Next(ctx)
			if err != nil {
				_ = rd.Close()
				return nil, nil, err
			}
			if b == nil {
				break
			}
			b = vec.Compact(b)
			bk := m.keyer(b)
			var hit []int32
			for i := range b.N {
				buf = vec.AppendCanon(buf[:0], bk, i)
				qs := want[string(buf)]
				for _, q := range qs {
					if which[q] < 0 {
						which[q] = int32(n + len(hit))
					}
				}
				if len(qs) > 0 {
					hit = append(hit, int32(i))
				}
			}
			if len(hit) > 0 {
				parts = append(parts, take(b, hit))
				n += len(hit)
			}
		}
		if err := rd.Close(); err != nil {
			return nil, nil, err
		}
	}
	return joined(m.schema(), parts), which, nil
}

// keyProbe lets readers decode the other columns of rows with the keys only.
type keyProbe struct {
	m    *modifier
	want map[string][]int32
	ints []int64 // the keys, when there are few of one bigint column
	buf  []byte
	out  []uint16
}

// fewKeys is up to how many keys are compared with each row.
const fewKeys = 8

func newKeyProbe(m *modifier, rows *vec.Batch, want map[string][]int32) *keyProbe {
	p := &keyProbe{m: m, want: want}
	if len(m.pk) == 1 && m.cols[m.pk[0]].Type.Kind == types.Int8 && rows.N <= fewKeys {
		p.ints = vec.ViewOf[int64](rows.Cols[m.pk[0]]).V[:rows.N]
	}
	return p
}

// Columns are the key's.
func (p *keyProbe) Columns() []int { return p.m.pk }

// Select returns the rows that have one of the keys.
func (p *keyProbe) Select(_ context.Context, b *vec.Batch) ([]uint16, error) {
	p.out = p.out[:0]
	if p.ints != nil && b.Cols[0].DataType().ID() == arrow.INT64 {
		v := vec.ViewOf[int64](b.Cols[0]).V[:b.N]
		for i, x := range v {
			for _, k := range p.ints {
				if x == k {
					p.out = append(p.out, uint16(i))
					break
				}
			}
		}
		return p.out, nil
	}
	cols := make([]vec.KeyColumn, len(p.m.pk))
	arrs := make([]arrow.Array, len(p.m.pk))
	for i, c := range p.m.pk {
		cols[i].Type, arrs[i] = p.m.cols[c].Type, vec.Decode(b.Cols[i])
	}
	k := vec.NewKeyer(cols, arrs)
	for i := range b.N {
		p.buf = vec.AppendCanon(p.buf[:0], k, i)
		if _, ok := p.want[string(p.buf)]; ok {
			p.out = append(p.out, uint16(i))
		}
	}
	return p.out, nil
}

// keyFilter is a condition that every row with one of the keys meets.
func (m *modifier) keyFilter(rows *vec.Batch) predicate.Node {
	var nodes []predicate.Node
	for _, c := range m.pk {
		col := m.cols[c]
		leaf := predicate.Leaf{Op: predicate.In, Col: c, FieldID: col.ID, Name: col.Name, Type: col.Type}
		var lo, hi types.Datum
		args := map[types.Datum]struct{}{}
		usable := true
		for i := range rows.N {
			d := vec.DatumAt(rows.Cols[c], col.Type, i)
			switch d.(type) {
			case int64, string, bool, float64:
				args[d] = struct{}{}
			default: // decimals and bytes have no identity as map keys
				if len(leaf.Args) < manyKeys {
					leaf.Args = append(leaf.Args, d)
				}
			}
			if lo == nil {
				lo, hi = d, d
				continue
			}
			if v, ok := predicate.Compare(col.Type, d, lo); !ok {
				usable = false
			} else if v < 0 {
				lo = d
			}
			if v, ok := predicate.Compare(col.Type, d, hi); ok && v > 0 {
				hi = d
			}
		}
		if !usable || lo == nil {
			continue
		}
		if rows.N <= manyKeys {
			for d := range args {
				leaf.Args = append(leaf.Args, d)
			}
			nodes = append(nodes, &leaf)
			continue
		}
		a, b := leaf, leaf
		a.Op, a.Args = predicate.GtEq, []types.Datum{lo}
		b.Op, b.Args = predicate.LtEq, []types.Datum{hi}
		nodes = append(nodes, &a, &b)
	}
	return predicate.Conj(nodes...)
}

// errTwice is the error for a key that ON CONFLICT DO UPDATE meets again.
func errTwice() error {
	return pgerr.New(pgerr.CardinalityViolation, "ON CONFLICT DO UPDATE command cannot affect row a second time").
		WithHint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values.")
}

// duplicate is the error for row i's key, which exists.
func (m *modifier) duplicate(rows *vec.Batch, i int) error {
	names, vals := make([]string, len(m.pk)), make([]string, len(m.pk))
	st := m.s.set.use().style
	for k, c := range m.pk {
		names[k] = m.cols[c].Name
		vals[k] = string(pgtext.Appender(m.cols[c].Type, rows.Cols[c], st)(nil, i))
	}
	name := m.rel.Name() + "_pkey"
	e := pgerr.New(pgerr.UniqueViolation, "duplicate key value violates unique constraint %q", name)
	r := m.s.rights(m.s.ctx)
	k, c := relationAccess(m.rel)
	see := free(m.rel.Schema()) || r.mask(k, c, roles.Select, false) != 0
	if a := r.m.Access(k); !see {
		see = !slices.ContainsFunc(names, func(n string) bool { return r.column(a, n, roles.Select, false) == 0 })
	}
	if see {
		e = e.WithDetail("Key (%s)=(%s) already exists.", strings.Join(names, ", "), strings.Join(vals, ", "))
	}
	e.Schema, e.Table, e.Constraint = m.rel.Schema(), m.rel.Name(), name
	return e
}

// failing adds the row that an error is about, "" for one that the user may not see.
func failing(e *pgerr.Error, row string) *pgerr.Error {
	if row == "" {
		return e
	}
	return e.WithDetail("Failing row contains %s.", row)
}

// readable reports which columns the user may see in messages: those he may read, and
// those he has given values himself.
func (m *modifier) readable() (all bool, columns []bool) {
	r := m.s.rights(m.s.ctx)
	k, c := relationAccess(m.rel)
	if free(m.rel.Schema()) || r.mask(k, c, roles.Select, false) != 0 {
		return true, nil
	}
	a := r.m.Access(k)
	columns = make([]bool, len(m.cols))
	for i, col := range m.cols {
		columns[i] = r.column(a, col.Name, roles.Select, false) != 0
	}
	for _, n := range m.pm.Needs {
		for i := range columns {
			columns[i] = columns[i] || n.Inserted.Has(i) || n.Updated.Has(i) // of the target alone
		}
	}
	return false, columns
}

// rowText prints a row as PostgreSQL's details do: values of more than 64 bytes
// are cut. It is "" when the user may see nothing of it.
func (m *modifier) rowText(rows *vec.Batch, i int) string {
	var b strings.Builder
	st := m.s.set.use().style
	all, shown := m.readable()
	if !all {
		var names []string
		for c, col := range m.cols {
			if shown[c] {
				names = append(names, col.Name)
			}
		}
		if names == nil {
			return ""
		}
		b.WriteString("(" + strings.Join(names, ", ") + ") = ")
	}
	b.WriteByte('(')
	first := true
	for c, col := range m.cols {
		if !all && !shown[c] {
			continue
		}
		if !first {
			b.WriteString(", ")
		}
		first = false
		if rows.Cols[c].IsNull(i) {
			b.WriteString("null")
			continue
		}
		v := string(pgtext.Appender(col.Type, rows.Cols[c], st)(nil, i))
		if len(v) > 64 {
			cut := 64
			for cut > 0 && v[cut]&0xc0 == 0x80 {
				cut--
			}
			v = v[:cut] + "..."
		}
		b.WriteString(v)
	}
	b.WriteByte(')')
	return b.String()
}
