package mergetree

import (
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/storage/mergetree/aggregate"
)

// aggregation folds every column by its aggregate function: that of
// fields.<column>.aggregate-function or fields.default-aggregate-function, else
// last_non_null_value; sequence fields have last_value, keys stay. Retractions are
// the functions' business, or, with aggregation.remove-record-on-delete, a -D ends
// the row. Source: AggregateMergeFunction.java.
type aggregation struct {
	cols    *columnSet
	columns []int
	at      []int
	remove  bool
	notNull []int
	aggs    []aggregate.Aggregate
	ops     []aggregate.Op
}

const removeAggregated = "aggregation.remove-record-on-delete"

func newAggregation(s EngineSpec) (Engine, error) {
	c := newColumnSet(s.Table, s.Columns)
	a := &aggregation{cols: c, columns: s.Columns, at: c.positions(s.Columns), remove: s.Options.Flag(removeAggregated, false)}
	keys, sequence := isKey(s.Table), s.Options.List("sequence.field")
	for _, i := range s.Columns {
		f := s.Table.Fields[i]
		name := s.Options["fields."+f.Name+".aggregate-function"]
		if name == "" {
			name = s.Options["fields.default-aggregate-function"]
		}
		switch {
		case slices.Contains(sequence, f.Name):
			name = "last_value"
		case keys[i]:
			name = "primary-key"
		case name == "":
			name = "last_non_null_value"
		}
		agg, err := aggregate.New(name, aggregate.Spec{Column: f, Options: s.Options})
		if err != nil {
			return nil, err
		}
		a.aggs = append(a.aggs, agg)
		if f.Type.NotNull {
			a.notNull = append(a.notNull, c.at(i))
		}
	}
	return a, nil
}

func (a *aggregation) Reads() []int { return a.cols.reads }

func (a *aggregation) Fold(v *Versions, out *Folded) error {
	var ops []aggregate.Op
	out.Last = nil
	if anyRetract(v.Kinds) {
		var err error
		if ops, err = a.decide(v, out); err != nil {
			return err
		}
	} else {
		out.Kinds = nil
	}
	out.Cols = make([]arrow.Array, len(a.aggs))
	for i, agg := range a.aggs {
		var err error
		out.Cols[i], err = agg.Fold(&aggregate.Input{Col: v.Cols[a.at[i]], Ends: v.Ends, Ops: ops})
		if err != nil {
			return columnError(a.cols.table.Fields[a.columns[i]].Name, err)
		}
	}
	return nil
}

// decide says what each version does, and what kind the results are.
func (a *aggregation) decide(v *Versions, out *Folded) ([]aggregate.Op, error) {
	a.ops = grow(a.ops, v.N)
	for i, k := range v.Kinds {
		switch {
		case !isRetract(k):
			a.ops[i] = aggregate.Add
		case a.remove && k == KindDelete:
			for _, c := range a.notNull {
				if nullIn(v.Cols[c], i, i+1) >= 0 {
					return nil, &MergeError{Column: a.cols.table.Fields[a.cols.reads[c]].Name, Reason: "NULL for a column that is NOT NULL"}
				}
			}
			a.ops[i] = aggregate.Set
		default:
			a.ops[i] = aggregate.Retract
		}
	}
	out.Kinds = grow(out.Kinds, len(v.Ends))
	for k, e := range v.Ends {
		out.Kinds[k] = KindInsert
		if a.ops[e-1] == aggregate.Set {
			out.Kinds[k] = KindDelete
		}
	}
	return a.ops, nil
}
