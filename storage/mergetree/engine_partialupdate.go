package mergetree

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/mergetree/aggregate"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// partialUpdate writes the columns of a row version by version: a NULL leaves what
// was there. Columns in a sequence group are ordered by the group's own fields
// instead of the order of versions, and are replaced together, NULLs included, or
// aggregated.
//
// Without groups and retractions every column is a search for its last valid row
// (aggregate.LastNonNull) and one gather. In general an engine first decides what
// each version does: to the columns outside of groups (rest), and per group; then
// each column is folded by these operations. The accumulated value of a group's
// fields is always that of one version, so it is remembered as a row number, and
// most columns of a group are taken from a row, too.
//
// What Java does with details, and so this: a key that begins with a retraction
// starts from that row's values, with ignore-delete, too; a -U after a removing -D
// makes the key live again, with the removed row's values.
//
// Source: PartialUpdateMergeFunction.java.
type partialUpdate struct {
	cols         *columnSet
	columns      []int // of the table, wanted
	at           []int // where they are
	ignoreDelete bool
	remove       bool // partial-update.remove-record-on-delete
	notNull      []int
	grouped      bool        // the table has sequence groups
	groups       []*seqGroup // those that decide anything here
	plan         []columnPlan

	pick []int32
	rest []aggregate.Op
}

// seqGroup is a sequence group and, while folding, what it decided.
type seqGroup struct {
	fields    []int // in the table
	at        []int // where they are
	types     []types.Type
	remove    bool // a field is in partial-update.remove-record-on-sequence-group
	aggregate bool // a wanted column of the group has an aggregate function

	seq     *SequenceKeys
	empty   []uint8 // 1: all fields are NULL; nil = never
	cur     int32   // row whose fields the key has so far, -1 = none
	own     []int32 // per key: the row that the fields come from
	rows    []int32 // per key: the row that the other columns come from
	ops     []aggregate.Op
	scratch []uint8
}

// columnPlan is how a wanted column comes about.
type columnPlan struct {
	group *seqGroup // nil = in none
	own   bool      // it is one of the group's fields
	agg   aggregate.Aggregate
}

const (
	fieldsPrefix   = "fields."
	sequenceSuffix = ".sequence-group"
	removeOnDelete = "partial-update.remove-record-on-delete"
	removeOnGroup  = "partial-update.remove-record-on-sequence-group"
)

func newPartialUpdate(s EngineSpec) (Engine, error) {
	p := &partialUpdate{columns: s.Columns, ignoreDelete: ignoresDelete(s.Options), remove: s.Options.Flag(removeOnDelete, false)}
	all, owner, err := sequenceGroups(s)
	if err != nil {
		return nil, err
	}
	p.grouped = len(all) > 0
	p.cols = newColumnSet(s.Table, s.Columns)
	used := func(g *seqGroup) {
		if !slices.Contains(p.groups, g) {
			p.groups = append(p.groups, g)
			for _, f := range g.fields {
				p.cols.add(f)
			}
		}
	}
	for _, g := range all {
		if g.remove { // it decides whether there is a row at all
			used(g)
		}
	}
	keys := isKey(s.Table)
	for _, c := range s.Columns {
		f := s.Table.Fields[c]
		pl := columnPlan{group: owner[c]}
		if g := owner[c]; g != nil {
			used(g)
			pl.own = slices.Contains(g.fields, c)
		}
		if p.grouped && !pl.own {
			name := s.Options["fields."+f.Name+".aggregate-function"]
			if name == "" {
				name = s.Options["fields.default-aggregate-function"]
			}
			switch {
			case keys[c]:
				name = "primary-key"
			case name != "" && name != "last_non_null_value" && pl.group == nil:
				return nil, fmt.Errorf("column %q must be in a sequence group to have aggregate function %s", f.Name, name)
			}
			if name != "" {
				if pl.agg, err = aggregate.New(name, aggregate.Spec{Column: f, Options: s.Options}); err != nil {
					return nil, err
				}
				if pl.group != nil {
					pl.group.aggregate = true
				}
			}
		}
		p.plan = append(p.plan, pl)
	}
	p.at = p.cols.positions(s.Columns)
	for i, c := range p.cols.reads {
		if s.Table.Fields[c].Type.NotNull {
			p.notNull = append(p.notNull, i)
		}
	}
	for _, g := range p.groups {
		g.at = p.cols.positions(g.fields)
		for _, f := range g.fields {
			g.types = append(g.types, s.Table.Fields[f].Type)
		}
	}
	return p, nil
}

// sequenceGroups reads the groups of a table, and of every column the group that
// it is in.
func sequenceGroups(s EngineSpec) ([]*seqGroup, map[int]*seqGroup, error) {
	var groups []*seqGroup
	owner := map[int]*seqGroup{}
	index := func(key, name string) (int, error) {
		i := s.Table.Fields.Index(name)
		if i < 0 {
			return 0, fmt.Errorf("option %q names column %q, which does not exist", key, name)
		}
		return i, nil
	}
	removing := s.Options.List(removeOnGroup)
	for _, key := range sortedKeys(s.Options) {
		if !strings.HasPrefix(key, fieldsPrefix) || !strings.HasSuffix(key, sequenceSuffix) || len(key) <= len(fieldsPrefix)+len(sequenceSuffix) {
			continue
		}
		g := &seqGroup{}
		for _, name := range strings.Split(key[len(fieldsPrefix):len(key)-len(sequenceSuffix)], ",") {
			i, err := index(key, name)
			if err != nil {
				return nil, nil, err
			}
			g.fields = append(g.fields, i)
			g.remove = g.remove || slices.Contains(removing, name)
		}
		for _, name := range strings.Split(s.Options[key], ",") {
			i, err := index(key, name)
			if err != nil {
				return nil, nil, err
			}
			if owner[i] != nil && !slices.Contains(g.fields, i) {
				return nil, nil, fmt.Errorf("column %q is in more than one sequence group", name)
			}
			owner[i] = g
		}
		groups = append(groups, g)
	}
	for _, g := range groups {
		for _, f := range g.fields {
			if o := owner[f]; o != nil && o != g {
				return nil, nil, &fileio.UnsupportedError{Feature: "column " + s.Table.Fields[f].Name + " as a field of one sequence group and in another"}
			}
			owner[f] = g
		}
	}
	return groups, owner, nil
}

// Grouped reports whether a table's options make sequence groups.
func Grouped(o schema.Options) bool {
	if o.Enum("merge-engine", "deduplicate") != "partial-update" {
		return false
	}
	for key := range o {
		if strings.HasPrefix(key, fieldsPrefix) && strings.HasSuffix(key, sequenceSuffix) && len(key) > len(fieldsPrefix)+len(sequenceSuffix) {
			return true
		}
	}
	return false
}

// Removes reports whether deletions end the rows of a table whose engine folds.
func Removes(o schema.Options) bool {
	switch o.Enum("merge-engine", "deduplicate") {
	case "partial-update":
		return o.Flag(removeOnDelete, false) || len(o.List(removeOnGroup)) > 0
	case "aggregation":
		return o.Flag(removeAggregated, false)
	}
	return false
}

func sortedKeys(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func (p *partialUpdate) Reads() []int { return p.cols.reads }

func (p *partialUpdate) Fold(v *Versions, out *Folded) error {
	n := len(v.Ends)
	for _, g := range p.groups {
		g.prepare(v, n)
	}
	retract := anyRetract(v.Kinds)
	out.Kinds, out.Last = out.Kinds[:0], out.Last[:0]
	if retract {
		if err := p.decide(v, out); err != nil {
			return err
		}
	} else {
		if err := p.checkNotNull(v); err != nil {
			return err
		}
		for _, g := range p.groups {
			g.decide(v)
		}
	}
	if !retract {
		out.Kinds, out.Last = nil, nil
	}
	rest := p.rest
	if !retract {
		rest = nil
	}
	out.Cols = make([]arrow.Array, len(p.plan))
	for i, pl := range p.plan {
		col := v.Cols[p.at[i]]
		switch {
		case pl.own:
			out.Cols[i] = vec.TakeNull(col, pl.group.own)
			continue
		case pl.group != nil && pl.agg == nil:
			out.Cols[i] = vec.TakeNull(col, pl.group.rows)
			continue
		}
		in := aggregate.Input{Col: col, Ends: v.Ends, Ops: rest}
		if pl.group != nil {
			in.Ops = pl.group.ops
		}
		var err error
		switch {
		case pl.agg != nil:
			out.Cols[i], err = pl.agg.Fold(&in)
		case in.Ops == nil:
			p.pick = grow(p.pick, n)
			aggregate.LastNonNull(col, v.Ends, p.pick)
			out.Cols[i] = vec.TakeNull(col, p.pick)
		default:
			p.pick = grow(p.pick, n)
			aggregate.LastNonNullOps(&in, p.pick)
			out.Cols[i] = vec.TakeNull(col, p.pick)
		}
		if err != nil {
			return columnError(p.cols.table.Fields[p.columns[i]].Name, err)
		}
	}
	return nil
}

// checkNotNull refuses a NULL for a column that takes none. As in Java, tables
// with sequence groups leave such a column as it is instead.
func (p *partialUpdate) checkNotNull(v *Versions) error {
	if p.grouped {
		return nil
	}
	return p.checkRow(v, 0, v.N)
}

func (p *partialUpdate) checkRow(v *Versions, from, to int) error {
	for _, c := range p.notNull {
		if nullIn(v.Cols[c], from, to) >= 0 {
			return &MergeError{Column: p.cols.table.Fields[p.cols.reads[c]].Name, Reason: "NULL for a column that is NOT NULL"}
		}
	}
	return nil
}

// prepare computes the order of the versions by a group's fields.
func (g *seqGroup) prepare(v *Versions, n int) {
	cols := make([]arrow.Array, len(g.at))
	for i, c := range g.at {
		cols[i] = v.Cols[c]
	}
	g.seq = NewSequenceKeys(g.types, cols, v.N, false)
	g.own, g.rows = grow(g.own, n), grow(g.rows, n)
	if g.aggregate {
		g.ops = grow(g.ops, v.N)
		clear(g.ops)
	}
	// Empty where no field is valid.
	g.empty = nil
	for _, c := range cols {
		if valid, _ := vec.Validity(c); valid == nil {
			return
		}
	}
	g.empty = grow(g.scratch, v.N)
	g.scratch = g.empty
	for j, c := range cols {
		valid, off := vec.Validity(c)
		for i := range g.empty {
			null := ^valid[(off+i)>>3] >> ((off + i) & 7) & 1
			if j > 0 {
				null &= g.empty[i]
			}
			g.empty[i] = null
		}
	}
}

func (g *seqGroup) isEmpty(i int) bool { return g.empty != nil && g.empty[i] != 0 }

// newer reports whether row i is not before what the key has so far.
func (g *seqGroup) newer(i int) bool { return g.cur < 0 || g.seq.compare(i, int(g.cur)) >= 0 }

// decide is what the versions do to a group when none is a retraction.
func (g *seqGroup) decide(v *Versions) {
	i := 0
	for k, e := range v.Ends {
		g.cur = -1
		for ; i < int(e); i++ {
			switch {
			case g.isEmpty(i):
			case g.newer(i):
				g.cur = int32(i)
				if g.aggregate {
					g.ops[i] = aggregate.Add
				}
			case g.aggregate:
				g.ops[i] = aggregate.AddReversed
			}
		}
		g.own[k], g.rows[k] = g.cur, g.cur
	}
}

// decide is what the versions do where there are retractions.
func (p *partialUpdate) decide(v *Versions, out *Folded) error {
	n := len(v.Ends)
	out.Kinds, out.Last = grow(out.Kinds, n), grow(out.Last, n)
	p.rest = grow(p.rest, v.N)
	clear(p.rest)
	i := 0
	for k, e := range v.Ends {
		inserted, filled, removed := false, false, false
		last := i
		for _, g := range p.groups {
			g.cur, g.rows[k] = -1, -1
		}
		for ; i < int(e); i++ {
			removed = false
			if !isRetract(v.Kinds[i]) {
				if !p.grouped {
					if err := p.checkRow(v, i, i+1); err != nil {
						return err
					}
				}
				inserted, filled, last = true, true, i
				p.rest[i] = aggregate.Add
				for _, g := range p.groups {
					g.add(k, i)
				}
				continue
			}
			begins := !filled
			if begins {
				if err := p.begin(v, k, i); err != nil {
					return err
				}
				filled = true
			}
			if p.ignoreDelete {
				continue
			}
			last = i
			switch {
			case p.grouped:
				if v.Kinds[i] == KindDelete && p.removes(i) {
					removed = true
					if err := p.begin(v, k, i); err != nil {
						return err
					}
					continue
				}
				for _, g := range p.groups {
					g.retract(k, i, begins)
				}
			case p.remove:
				if v.Kinds[i] == KindDelete {
					removed = true
					if err := p.begin(v, k, i); err != nil {
						return err
					}
				}
			default:
				return &MergeError{Reason: "merge engine partial-update takes no deletions here; set option ignore-delete to leave them out, " +
					removeOnDelete + " to remove rows, or sequence groups to take single columns back"}
			}
		}
		for _, g := range p.groups {
			g.own[k] = g.cur
		}
		out.Kinds[k] = KindInsert
		if removed || !inserted {
			out.Kinds[k] = KindDelete
		}
		out.Last[k] = uint32(last)
	}
	return nil
}

// begin makes row i the whole of key k.
func (p *partialUpdate) begin(v *Versions, k, i int) error {
	if err := p.checkRow(v, i, i+1); err != nil {
		return err
	}
	p.rest[i] = aggregate.Set
	for _, g := range p.groups {
		g.cur, g.rows[k] = int32(i), int32(i)
		if g.aggregate {
			g.ops[i] = aggregate.Set
		}
	}
	return nil
}

// removes reports whether deletion i ends the row: it is not before what a group
// has that says so.
func (p *partialUpdate) removes(i int) bool {
	for _, g := range p.groups {
		if g.remove && !g.isEmpty(i) && g.newer(i) {
			return true
		}
	}
	return false
}

func (g *seqGroup) add(k, i int) {
	switch {
	case g.isEmpty(i):
	case g.newer(i):
		g.cur, g.rows[k] = int32(i), int32(i)
		if g.aggregate {
			g.ops[i] = aggregate.Add
		}
	case g.aggregate:
		g.ops[i] = aggregate.AddReversed
	}
}

// retract takes row i of key k back; begins: the key has just begun with it.
func (g *seqGroup) retract(k, i int, begins bool) {
	if g.isEmpty(i) {
		return
	}
	if g.newer(i) {
		g.cur, g.rows[k] = int32(i), -1
	}
	if g.aggregate {
		g.ops[i] = aggregate.Retract
		if begins {
			g.ops[i] = aggregate.SetRetract
		}
	}
}
