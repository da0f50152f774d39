package engine

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// What a row that is written makes of the row that is there.
//
// INSERT writes what it is given, and the table's merge engine makes of it what it
// is made for: that is how such a table is fed. UPDATE, DELETE and ON CONFLICT DO
// UPDATE promise an outcome: the new row as it is in the statement, or none. In a
// deduplicate table the row written is the outcome. Elsewhere it is merged, and the
// row written is made so that the outcome is the promised one: a column that the
// statement leaves alone is written as the value that its function leaves alone
// (NULL for most), one that is summed up as the difference. What cannot be said so
// is refused. That is not left to rules about functions: the engine itself merges
// the two rows, and what comes out is compared with the promise, row by row.

// mergeRule is what DML must know of a table's merge engine.
type mergeRule struct {
	sch    *schema.Table
	opts   schema.Options
	engine string
	// plain: a row written takes the place of the one that is there, always.
	plain   bool
	seq     []int // sequence.field
	desc    bool
	kindCol int // rowkind.field, -1 = none
	cols    []columnRule
	// fold merges two rows; made when it is first needed.
	fold mergetree.Engine
}

// columnRule is how a column of a table is merged.
type columnRule struct {
	fn string // aggregate function, "" = none
	// kept columns are written as they are always: key, partition, order.
	kept bool
	// group are the columns that order the sequence group that it belongs to.
	group []int
}

// plainMerge reports whether, by a table's options, a row written takes the place
// of the one that is there, whatever they hold.
func plainMerge(o schema.Options) bool {
	return o.Enum("merge-engine", "deduplicate") == "deduplicate" && o.String("sequence.field", "") == "" && o.String("rowkind.field", "") == ""
}

// blind reports whether ON CONFLICT need not look at the row that is there. A changelog
// of the input wants to know it.
func blind(m *plan.Modify) bool {
	o := m.Target.Options()
	return m.Conflict != nil && m.Conflict.Blind && plainMerge(o) && !table.LogsInput(o)
}

// returnsMerged reports whether RETURNING of an INSERT shows rows that the merge
// engine makes of those written.
func returnsMerged(m *plan.Modify) bool {
	return m.Op == plan.InsertOp && m.Returning != nil && m.Overwrite == nil && len(m.Target.PrimaryKey()) > 0 && !plainMerge(m.Target.Options())
}

// newMergeRule reads a table's options. A table without a key has no rule.
func newMergeRule(rel catalog.TableInfo) (*mergeRule, error) {
	o := schema.Options(rel.Options())
	r := &mergeRule{opts: o, plain: plainMerge(o), engine: o.Enum("merge-engine", "deduplicate"), kindCol: -1}
	st, ok := rel.(schemaTable)
	if len(rel.PrimaryKey()) == 0 || !ok {
		r.plain = true
		return r, nil
	}
	r.sch = st.TableSchema()
	if r.plain {
		return r, nil
	}
	fs := r.sch.Fields
	r.cols = make([]columnRule, len(fs))
	for _, n := range append(append([]string(nil), r.sch.PrimaryKeys...), r.sch.PartitionKeys...) {
		if i := fs.Index(n); i >= 0 {
			r.cols[i].kept = true
		}
	}
	for _, n := range o.List("sequence.field") {
		if i := fs.Index(n); i >= 0 {
			r.seq = append(r.seq, i)
			r.cols[i].kept = true
		}
	}
	r.desc = o.Enum("sequence.field.sort-order", "ascending") == "descending"
	if n := o.String("rowkind.field", ""); n != "" {
		r.kindCol = fs.Index(n)
	}
	if r.engine != "partial-update" && r.engine != "aggregation" {
		return r, nil
	}
	for k := range o {
		cols, ok := strings.CutPrefix(k, "fields.")
		if !ok {
			continue
		}
		if cols, ok = strings.CutSuffix(cols, ".sequence-group"); !ok || r.engine != "partial-update" {
			continue
		}
		var group []int
		for _, n := range strings.Split(cols, ",") {
			if i := fs.Index(strings.TrimSpace(n)); i >= 0 {
				group = append(group, i)
				r.cols[i].kept = true
			}
		}
		for _, n := range o.List(k) {
			if i := fs.Index(n); i >= 0 {
				r.cols[i].group = group
			}
		}
	}
	for i, f := range fs {
		if r.cols[i].kept {
			continue
		}
		r.cols[i].fn = o.String("fields."+f.Name+".aggregate-function", o.String("fields.default-aggregate-function", ""))
		if r.cols[i].fn == "" && r.engine == "aggregation" {
			r.cols[i].fn = "last_non_null_value"
		}
	}
	return r, nil
}

// noUpdate is why rows of the table are not updated, nil when they are.
func (r *mergeRule) noUpdate(name string) error {
	if r.sch == nil || r.engine != "first-row" {
		return nil
	}
	return pgerr.New(pgerr.FeatureNotSupported, "UPDATE of first-row table %q is not supported", name).
		WithDetail("A table with merge-engine = 'first-row' keeps the first row of each key.").
		WithHint("INSERT OVERWRITE replaces rows.")
}

// noDelete is why rows of the table are not deleted, nil when they are.
func (r *mergeRule) noDelete(name string) error {
	if r.sch == nil {
		return nil
	}
	no := func(why, hint string) error {
		return pgerr.New(pgerr.FeatureNotSupported, "DELETE from %s table %q is not supported", r.engine, name).WithDetail("%s", why).WithHint("%s", hint)
	}
	const all = "TRUNCATE empties the table, and INSERT OVERWRITE replaces partitions."
	for _, k := range []string{"ignore-delete", r.engine + ".ignore-delete"} {
		if r.opts.Flag(k, false) {
			return no("The table's option \""+k+"\" makes every delete go unheeded.", all)
		}
	}
	switch r.engine {
	case "first-row":
		return no("A table with merge-engine = 'first-row' keeps the first row of each key.", all)
	case "partial-update":
		if !r.opts.Flag("partial-update.remove-record-on-delete", false) && r.opts.String("partial-update.remove-record-on-sequence-group", "") == "" {
			return no("Without partial-update.remove-record-on-delete or partial-update.remove-record-on-sequence-group a delete removes no row.", all)
		}
	case "aggregation":
		if !r.opts.Flag("aggregation.remove-record-on-delete", false) {
			return no("Without aggregation.remove-record-on-delete a delete is a retraction, which leaves the row.", all)
		}
	}
	return nil
}

// allowed refuses a statement that the table's engine cannot carry out, before it
// reads anything.
func (m *modifier) allowed() error {
	if m.pk == nil {
		return nil
	}
	c := m.m.Conflict
	switch {
	case m.m.Op == plan.UpdateOp, c != nil && !c.DoNothing:
		return m.rule.noUpdate(m.rel.Name())
	case m.m.Op == plan.DeleteOp:
		return m.rule.noDelete(m.rel.Name())
	}
	return nil
}

// updates returns what is to be written so that rows old become rows now, both in
// stored form; text shows row i of now in messages.
func (m *modifier) updates(ctx context.Context, old, now *vec.Batch, text func(i int) string) (*vec.Batch, error) {
	r := m.rule
	if r.plain {
		return now, nil
	}
	if err := r.noUpdate(m.rel.Name()); err != nil {
		return nil, err
	}
	refuse := func(i int, e *pgerr.Error) error {
		m.badRow = i
		return failing(e, text(i))
	}
	if i := r.earlier(old, now); i >= 0 {
		return nil, refuse(i, pgerr.New(pgerr.FeatureNotSupported, "cannot set sequence field %q of %q back", r.sch.Fields[r.seq[0]].Name, m.rel.Name()).
			WithHint("A table with sequence.field keeps the row that is later by it."))
	}
	if r.kindCol >= 0 {
		s := vec.ViewStr(vec.Decode(now.Cols[r.kindCol]))
		for i := range now.N {
			if k := string(s.At(i)); s.IsNull(i) || k != "+I" && k != "+U" {
				return nil, refuse(i, pgerr.New(pgerr.FeatureNotSupported, "cannot set row kind %q of %q to anything but +I and +U by UPDATE", r.sch.Fields[r.kindCol].Name, m.rel.Name()))
			}
		}
	}
	if r.engine == "deduplicate" {
		return now, nil
	}
	if c, i := r.moves(old, now); c >= 0 {
		return nil, refuse(i, pgerr.New(pgerr.FeatureNotSupported, "cannot set partition column %q of %s table %q", r.sch.Fields[c].Name, r.engine, m.rel.Name()).
			WithHint("Its merge engine leaves a row in the partition that it was first written to; DELETE it, where the table's options allow that, and INSERT it anew."))
	}
	w := &vec.Batch{Schema: now.Schema, N: now.N, Cols: make([]arrow.Array, len(now.Cols))}
	for c := range w.Cols {
		w.Cols[c] = r.written(c, old.Cols[c], now.Cols[c], now.N)
	}
	out, kinds, err := r.merge(old, w, kindUpdate)
	if err != nil {
		return nil, m.unmerged(err)
	}
	for c := range out {
		same := sameValue(r.sch.Fields[c].Type, out[c], now.Cols[c])
		for i := range now.N {
			if kinds != nil && kinds[i]&1 != 0 || !same(i) {
				return nil, refuse(i, m.cannotSet(c, now, i))
			}
		}
	}
	return w, nil
}

// moves returns the first partition column, outside of the key, in which a row
// differs, and the row; -1 when there is none. The rows of engines that fold are kept
// in the partition where their key is, whatever is written.
// Source: ExistingProcessor.java.
func (r *mergeRule) moves(old, now *vec.Batch) (c, row int) {
	for _, n := range r.sch.PartitionKeys {
		c := r.sch.Fields.Index(n)
		if c < 0 || slices.Contains(r.sch.PrimaryKeys, n) {
			continue
		}
		same := sameValue(r.sch.Fields[c].Type, old.Cols[c], now.Cols[c])
		for i := range now.N {
			if !same(i) {
				return c, i
			}
		}
	}
	return -1, -1
}

// written is what a column is written as so that old becomes now.
func (r *mergeRule) written(c int, old, now arrow.Array, n int) arrow.Array {
	col, t := r.cols[c], r.sch.Fields[c].Type
	if col.kept || col.fn == "" || col.fn == "last_value" {
		return now
	}
	var alone arrow.Array // what leaves the value alone
	switch {
	case col.fn == "sum":
		return difference(t, old, now, n)
	case !t.NotNull:
		alone = vec.MakeNull(t.Arrow(), n)
	case col.fn == "listagg":
		alone = constant(t, "", n)
	case col.fn == "product" && t.Kind != types.Numeric:
		var one types.Datum = int64(1)
		if t.Kind == types.Float4 || t.Kind == types.Float8 {
			one = float64(1)
		}
		alone = constant(t, one, n)
	default:
		return now // NOT NULL: most functions leave a value alone that is given again
	}
	if old == now {
		return alone
	}
	same := sameValue(t, old, now)
	src, row := make([]uint16, n), make([]uint32, n)
	for i := range n {
		row[i] = uint32(i)
		if !same(i) {
			src[i] = 1
		}
	}
	return vec.Gather(t.Arrow(), []arrow.Array{alone, vec.Decode(now)}, src, row)
}

func constant(t types.Type, d types.Datum, n int) arrow.Array {
	ds := make([]types.Datum, n)
	for i := range ds {
		ds[i] = d
	}
	return vec.FromDatums(t, ds)
}

// difference is what must be added to old to get now; where there is no such
// value, now.
func difference(t types.Type, old, now arrow.Array, n int) arrow.Array {
	out := make([]types.Datum, n)
	limit := int64(math.MaxInt64)
	switch t.Kind {
	case types.TinyInt:
		limit = math.MaxInt8
	case types.Int2:
		limit = math.MaxInt16
	case types.Int4:
		limit = math.MaxInt32
	}
	for i := range out {
		a, b := vec.DatumAt(old, t, i), vec.DatumAt(now, t, i)
		out[i] = b
		if a == nil || b == nil {
			continue // nothing plus now; NULL is out of reach
		}
		switch y := b.(type) {
		case int64:
			x, ok := a.(int64)
			d := y - x
			if ok && (d > y) == (x < 0) && d <= limit && d >= -limit-1 {
				out[i] = d
			}
		case float64:
			if x, ok := a.(float64); ok {
				out[i] = y - x
			}
		case *numeric.Dec:
			if x, ok := a.(*numeric.Dec); ok {
				if d := numeric.Sub(y, x); d.Digits() <= int(t.Prec) {
					out[i] = d
				}
			}
		}
	}
	return vec.FromDatums(t, out)
}

// cannotSet is the refusal to give column c the value that it has in row i.
func (m *modifier) cannotSet(c int, now *vec.Batch, i int) *pgerr.Error {
	r := m.rule
	col, name := r.cols[c], r.sch.Fields[c].Name
	for _, g := range col.group {
		if !now.Cols[g].IsNull(i) {
			continue
		}
		return pgerr.New(pgerr.FeatureNotSupported, "cannot change column %q of partial-update table %q: its sequence group has no value in %q", name, m.rel.Name(), r.sch.Fields[g].Name).
			WithHint("Set %s, too: a row without it leaves the columns of the group as they are.", r.sch.Fields[g].Name)
	}
	switch {
	case col.fn != "" && col.fn != "last_value":
		return pgerr.New(pgerr.FeatureNotSupported, "cannot set column %q of %s table %q to this value", name, r.engine, m.rel.Name()).
			WithHint("A value that is written is merged by the column's function, %s, which would make another value of it.", col.fn)
	case r.engine == "partial-update" && now.Cols[c].IsNull(i):
		return pgerr.New(pgerr.FeatureNotSupported, "cannot set column %q of partial-update table %q to NULL", name, m.rel.Name()).
			WithHint("A NULL that is written leaves the column as it is. Columns of a sequence group can be set to NULL.")
	}
	return pgerr.New(pgerr.FeatureNotSupported, "cannot set column %q of %s table %q to this value", name, r.engine, m.rel.Name())
}

// deletes returns what is to be written, with kind -D, so that rows old go.
//
// The rows are empty but for what orders them where the engine would let the next
// row of the key go on from the values of the deleted one: SQL has it start anew.
func (m *modifier) deletes(ctx context.Context, old *vec.Batch, text func(i int) string) (*vec.Batch, error) {
	r := m.rule
	if err := r.noDelete(m.rel.Name()); err != nil {
		return nil, err
	}
	if r.plain {
		return old, nil
	}
	w := &vec.Batch{Schema: old.Schema, N: old.N, Cols: append([]arrow.Array(nil), old.Cols...)}
	if r.kindCol >= 0 {
		w.Cols[r.kindCol] = constant(r.sch.Fields[r.kindCol].Type, "-D", old.N)
	}
	if r.engine == "deduplicate" {
		return w, nil
	}
	for c, col := range r.cols {
		t := r.sch.Fields[c].Type
		switch {
		case col.kept || c == r.kindCol:
		case !t.NotNull:
			w.Cols[c] = vec.MakeNull(t.Arrow(), old.N)
		case col.fn == "sum":
			w.Cols[c] = difference(t, old.Cols[c], old.Cols[c], old.N)
		case col.fn == "" || col.fn == "last_value" || col.fn == "last_non_null_value":
			// A value always follows.
		default:
			return nil, pgerr.New(pgerr.FeatureNotSupported, "DELETE from %s table %q is not supported", r.engine, m.rel.Name()).
				WithDetail("Column %q is NOT NULL and has the function %s: the next row of the key would go on from its value.", r.sch.Fields[c].Name, col.fn)
		}
	}
	_, kinds, err := r.merge(old, w, kindDelete)
	if err != nil {
		return nil, m.unmerged(err)
	}
	for i := range old.N {
		if kinds != nil && kinds[i]&1 != 0 {
			continue
		}
		m.badRow = i
		return nil, failing(pgerr.New(pgerr.FeatureNotSupported, "cannot delete a row of %s table %q: the table's options keep it", r.engine, m.rel.Name()), text(i))
	}
	return w, nil
}

// unmerged gives the error of an engine its SQLSTATE.
func (m *modifier) unmerged(err error) error {
	var e *mergetree.MergeError
	if !errors.As(err, &e) {
		return err
	}
	if e.Overflow {
		return pgerr.Wrap(err, pgerr.NumericValueOutOfRange, "value of %q is out of range: %s", e.Column, e.Reason)
	}
	return pgerr.Wrap(err, pgerr.FeatureNotSupported, "%s table %q cannot merge the row: %s", m.rule.engine, m.rel.Name(), e.Error())
}

// merge merges each row of now, of a kind, with the row of old beside it, and
// returns all columns in stored form and the kinds.
func (r *mergeRule) merge(old, now *vec.Batch, kind uint8) ([]arrow.Array, []uint8, error) {
	if r.fold == nil {
		spec := mergetree.EngineSpec{Table: r.sch, Options: r.opts}
		for c := range r.sch.Fields {
			spec.Columns = append(spec.Columns, c)
		}
		var err error
		if r.fold, err = mergetree.NewEngine(spec); err != nil {
			return nil, nil, err
		}
	}
	n := old.N
	v := mergetree.Versions{N: 2 * n, Ends: make([]uint32, n), Kinds: make([]uint8, 2*n)}
	src, row := make([]uint16, 2*n), make([]uint32, 2*n)
	cmp := r.compare(old, now)
	for i := range n {
		v.Ends[i] = uint32(2*i + 2)
		a, b := 2*i, 2*i+1
		if cmp != nil && cmp(i) < 0 { // the new row is the earlier one
			a, b = b, a
		}
		row[a], row[b] = uint32(i), uint32(i)
		src[b] = 1
		v.Kinds[a], v.Kinds[b] = kindInsert, kind
	}
	for _, c := range r.fold.Reads() {
		v.Cols = append(v.Cols, vec.Gather(r.sch.Fields[c].Type.Arrow(), []arrow.Array{vec.Decode(old.Cols[c]), vec.Decode(now.Cols[c])}, src, row))
	}
	var out mergetree.Folded
	if err := r.fold.Fold(&v, &out); err != nil {
		return nil, nil, err
	}
	return out.Cols, out.Kinds, nil
}

// compare orders row i of now against that of old by sequence.field; nil: there is
// none.
func (r *mergeRule) compare(old, now *vec.Batch) func(i int) int {
	if len(r.seq) == 0 {
		return nil
	}
	cmps := make([]vec.Compare, len(r.seq))
	for k, c := range r.seq {
		cmps[k] = vec.NewCompare(r.sch.Fields[c].Type, now.Cols[c], old.Cols[c])
	}
	return func(i int) int {
		for k, c := range r.seq {
			p, q := now.Cols[c].IsNull(i), old.Cols[c].IsNull(i)
			switch {
			case p && q:
				continue
			case p: // NULL is the smallest in either direction
				return -1
			case q:
				return 1
			}
			if d := cmps[k](i, i); d != 0 {
				if r.desc {
					d = -d
				}
				return d
			}
		}
		return 0
	}
}

// earlier returns the first row of now that is before its row of old by
// sequence.field, -1 when there is none.
func (r *mergeRule) earlier(old, now *vec.Batch) int {
	cmp := r.compare(old, now)
	if cmp == nil {
		return -1
	}
	for i := range now.N {
		if cmp(i) < 0 {
			return i
		}
	}
	return -1
}

// sameValue returns equality of the values of two columns in the same row; NULL is
// the same as NULL.
func sameValue(t types.Type, a, b arrow.Array) func(i int) bool {
	if a == b {
		return func(int) bool { return true }
	}
	kc := []vec.KeyColumn{{Type: t}}
	x, y := vec.NewKeyer(kc, []arrow.Array{a}), vec.NewKeyer(kc, []arrow.Array{b})
	var p, q []byte
	return func(i int) bool {
		p, q = vec.AppendCanon(p[:0], x, i), vec.AppendCanon(q[:0], y, i)
		return string(p) == string(q)
	}
}
