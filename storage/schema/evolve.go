package schema

import (
	"fmt"
	"math"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Evolution says how columns of files written with one schema are read as
// columns of another. Columns are matched by field id, never by name: a renamed
// column keeps its values and one that was dropped and added again does not.
// Immutable and safe for concurrent use.
type Evolution struct {
	From, To *Table
	cols     []evolvedColumn // by column of To
}

type evolvedColumn struct {
	src  int // column of From, -1 = missing: NULL
	cast castFunc
	err  error // why the column cannot be read
	// exact says that values and their order are the same on both sides, so that
	// predicates and statistics may pass.
	exact bool
}

// NewEvolution compares two schemas of one table.
func NewEvolution(from, to *Table) *Evolution {
	e := &Evolution{From: from, To: to, cols: make([]evolvedColumn, len(to.Fields))}
	byID := make(map[int32]int, len(from.Fields))
	for i, f := range from.Fields {
		byID[f.ID] = i
	}
	for i, f := range to.Fields {
		c := &e.cols[i]
		j, ok := byID[f.ID]
		if !ok {
			c.src = -1
			continue
		}
		c.src = j
		c.cast, c.err = newCast(from.Fields[j].Type, f.Type)
		if c.err != nil {
			c.err = fmt.Errorf("column %q: %w", f.Name, c.err)
		}
		c.exact = c.err == nil && exact(from.Fields[j].Type, f.Type)
	}
	return e
}

// exact reports whether a value of from and the same value read as to compare
// alike with any constant.
func exact(from, to types.Type) bool {
	rank := func(k types.Kind) int {
		switch k {
		case types.TinyInt:
			return 1
		case types.Int2:
			return 2
		case types.Int4:
			return 3
		case types.Int8:
			return 4
		}
		return 0
	}
	if r := rank(from.Kind); r > 0 {
		return r <= rank(to.Kind)
	}
	switch from.Kind {
	case types.Float4:
		return to.Kind == types.Float4 || to.Kind == types.Float8
	case types.Numeric:
		return to.Kind == types.Numeric && to.Scale >= from.Scale && int(to.Prec)-int(to.Scale) >= int(from.Prec)-int(from.Scale)
	case types.Text, types.Varchar:
		return (to.Kind == types.Text || to.Kind == types.Varchar) && sameValues(from, to)
	case types.Timestamp, types.TimestampTZ:
		return from.Kind == to.Kind && from.Prec <= to.Prec && from.IsNanos() == to.IsNanos()
	case types.Array, types.Map, types.Row, types.Variant:
		return false
	}
	return from.Kind == to.Kind && sameValues(from, to)
}

// Source returns the column of From that column i of To is read from, -1 when
// the file's schema does not have it, or why it cannot be read.
func (e *Evolution) Source(i int) (int, error) {
	return e.cols[i].src, e.cols[i].err
}

// Convert turns an array of column Source(i) into one of column i.
func (e *Evolution) Convert(i int, a arrow.Array) (arrow.Array, error) {
	c := &e.cols[i]
	if c.cast == nil {
		return a, nil
	}
	out, err := c.cast(vec.Decode(a))
	if err != nil {
		return nil, fmt.Errorf("column %q: %w", e.To.Fields[i].Name, err)
	}
	return out, nil
}

// Identity reports whether column i is read as it is stored.
func (e *Evolution) Identity(i int) bool {
	return e.cols[i].src >= 0 && e.cols[i].cast == nil && e.cols[i].err == nil
}

// Exact reports whether predicates and statistics of column i may pass between
// the schemas.
func (e *Evolution) Exact(i int) bool { return e.cols[i].exact }

// Predicate moves a simplified predicate on To to From. Leaves that cannot be
// moved exactly become "true", so the result matches at least the same rows; so do
// those of the values under a map's key.
// col maps a column of From to the index that the leaf shall have.
func (e *Evolution) Predicate(n predicate.Node, col func(int) int) predicate.Node {
	return predicate.Rewrite(n, func(l *predicate.Leaf) predicate.Node { return e.leaf(l, col) })
}

// IndexPredicate is Predicate for file indexes, with what is said of the values under
// the keys of maps.
func (e *Evolution) IndexPredicate(n predicate.Node) predicate.Node {
	return predicate.RewriteMaps(n,
		func(l *predicate.Leaf) predicate.Node { return e.leaf(l, func(src int) int { return src }) },
		func(m *predicate.MapLeaf) predicate.Node {
			if m.Col < 0 || m.Col >= len(e.cols) || !e.Identity(m.Col) {
				return nil
			}
			f, t := e.From.Fields[e.cols[m.Col].src], e.To.Fields[m.Col].Type
			if t.Kind != types.Map || types.PaimonString(f.Type.WithNotNull(false)) != types.PaimonString(t.WithNotNull(false)) {
				return nil
			}
			c := *m
			c.Col, c.FieldID, c.Name = e.cols[m.Col].src, f.ID, f.Name
			return &c
		})
}

func (e *Evolution) leaf(l *predicate.Leaf, col func(int) int) predicate.Node {
	if l.Col < 0 || l.Col >= len(e.cols) || !e.cols[l.Col].exact {
		return nil
	}
	src := e.cols[l.Col].src
	f := e.From.Fields[src]
	for _, a := range l.Args {
		if !fits(a, f.Type) {
			return nil
		}
	}
	c := *l
	c.Col, c.FieldID, c.Name, c.Type = col(src), f.ID, f.Name, f.Type
	return &c
}

// fits reports whether constant d is a value of type t.
func fits(d types.Datum, t types.Type) bool {
	switch v := d.(type) {
	case int64:
		return !t.IsInteger() || wrap(t, v) == v
	case float64:
		return t.Kind != types.Float4 || float64(float32(v)) == v || math.IsNaN(v)
	}
	return true
}

// Evolutions remembers the Evolution of pairs of schemas of one table. Safe for
// concurrent use; the zero value is ready.
type Evolutions struct {
	mu sync.Mutex // guards m
	m  map[[2]*Table]*Evolution
}

// Get returns the evolution between two schemas.
func (es *Evolutions) Get(from, to *Table) *Evolution {
	es.mu.Lock()
	defer es.mu.Unlock()
	k := [2]*Table{from, to}
	e, ok := es.m[k]
	if !ok {
		if es.m == nil || len(es.m) > 256 {
			es.m = map[[2]*Table]*Evolution{}
		}
		e = NewEvolution(from, to)
		es.m[k] = e
	}
	return e
}
