package fileindex

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// File is the indexes of one data file. Their heads are read when they are first asked
// for, and kept. Safe for concurrent use.
type File struct {
	c      *index.Container
	fields types.Schema
	mu     sync.Mutex // guards open
	open   map[*index.Section]index.FileIndex
}

// Open reads the head of a data file's container; fields are those of the schema that
// the file was written with.
func Open(src index.Source, fields types.Schema) (*File, error) {
	c, err := index.OpenContainer(src)
	if err != nil {
		return nil, err
	}
	return &File{c: c, fields: fields, open: map[*index.Section]index.FileIndex{}}, nil
}

// Container returns the file's container.
func (f *File) Container() *index.Container { return f.c }

// Answer is what the indexes of a file say of a predicate.
type Answer struct {
	index.Result
	// Kind is the kind of the index that was the last to leave rows out; "" = none did.
	Kind string
}

// Eval asks the indexes about a simplified predicate whose leaves' columns are the
// file's fields. rows is the number of rows of the data file, -1 = unknown. See
// index.Eval.
func (f *File) Eval(n predicate.Node, rows int64) (Answer, error) {
	q := question{f: f, rows: rows}
	r, err := index.Eval(q.plain(n), rows, &q)
	if err != nil {
		return Answer{}, err
	}
	return Answer{r, q.kind}, nil
}

// Top asks the indexes over a column for the rows that come first; see index.Sorter.
// nil = nothing is known. rows is the number of rows of the data file.
func (f *File) Top(col, n int, descending, nullsFirst bool, live *roaring.Bitmap, rows int64) (*roaring.Bitmap, string, error) {
	if col < 0 || col >= len(f.fields) || f.ambiguous(f.fields[col].Name) {
		return nil, "", nil
	}
	var top *roaring.Bitmap
	var kind string
	_, err := f.each(f.fields[col].Name, f.fields[col].Type, func(name string, x index.FileIndex) error {
		s, ok := x.(index.Sorter)
		if !ok || top != nil {
			return nil
		}
		if c, ok := x.(index.RowCounter); ok && c.RowCount() != rows {
			return index.Corrupt("index over column %q is of %d rows, its file has %d", f.fields[col].Name, c.RowCount(), rows)
		}
		t, err := s.Top(n, descending, nullsFirst, live)
		if err == nil && t != nil && !t.IsEmpty() && int64(t.Maximum()) >= rows {
			err = index.Corrupt("index over column %q knows row %d, its file has %d", f.fields[col].Name, t.Maximum(), rows)
		}
		top, kind = t, name
		return err
	})
	if err != nil || top == nil {
		return nil, "", err
	}
	return top, kind, nil
}

// question is one Eval. Values under the keys of maps are columns behind those of the
// file.
type question struct {
	f    *File
	rows int64
	maps []mapColumn
	kind string
}

// Each value of a list is looked up by itself, which costs about as much as reading
// thirty rows: an index is asked about shortList values at any rate, and about more
// where the file has listShare rows for each.
const (
	shortList = 64
	listShare = 100
)

// tooLong reports whether reading the file is cheaper than asking its indexes.
func (q *question) tooLong(l *predicate.Leaf) bool {
	n := int64(len(l.Args))
	return n > shortList && n > q.rows/listShare && q.rows >= 0
}

type mapColumn struct {
	name string // of its indexes
	t    types.Type
}

var _ index.Finder = (*question)(nil)

// plain makes leaves of what is said of the values of maps.
func (q *question) plain(n predicate.Node) predicate.Node {
	list := func(args []predicate.Node) []predicate.Node {
		out := make([]predicate.Node, len(args))
		for i, a := range args {
			out[i] = q.plain(a)
		}
		return out
	}
	switch n := n.(type) {
	case *predicate.And:
		return &predicate.And{Args: list(n.Args)}
	case *predicate.Or:
		return &predicate.Or{Args: list(n.Args)}
	case *predicate.Not:
		return &predicate.Not{Arg: q.plain(n.Arg)}
	case *predicate.MapLeaf:
		l := n.Leaf
		m := mapColumn{}
		if n.Col >= 0 && n.Col < len(q.f.fields) {
			if t := q.f.fields[n.Col].Type; t.Kind == types.Map && isText(t.Key.Kind) {
				m = mapColumn{index.MapColumn(q.f.fields[n.Col].Name, n.Key), *t.Elem}
			}
		}
		l.Col = len(q.f.fields) + len(q.maps)
		q.maps = append(q.maps, m)
		return &l
	}
	return n
}

// Indexes is index.Finder's. Kinds that are not known are passed over.
func (q *question) Indexes(l *predicate.Leaf) (out []index.FileIndex, empty bool, err error) {
	f := q.f
	var m mapColumn
	switch {
	case l.Col < 0 || l.Col >= len(f.fields)+len(q.maps):
		return nil, false, nil
	case l.Col < len(f.fields):
		m = mapColumn{f.fields[l.Col].Name, f.fields[l.Col].Type}
	default:
		m = q.maps[l.Col-len(f.fields)]
	}
	// A value that is read as another type may be another value, or NULL.
	if m.name == "" || f.ambiguous(m.name) || q.tooLong(l) || !index.Accepts(m.t, l) {
		return nil, false, nil
	}
	none, err := f.each(m.name, m.t, func(kind string, x index.FileIndex) error {
		a := asked{x, kind, q}
		if c, ok := x.(index.RowCounter); ok {
			out = append(out, counting{a, c})
		} else {
			out = append(out, a)
		}
		return nil
	})
	if none != "" {
		q.kind = none
		return nil, true, err
	}
	return out, false, err
}

// asked is an index that notes that it left rows out.
type asked struct {
	index.FileIndex
	kind string
	q    *question
}

// Test is index.FileIndex's.
func (a asked) Test(l *predicate.Leaf) (index.Result, error) {
	r, err := a.FileIndex.Test(l)
	if err == nil && (r.Verdict == index.None || r.Rows != nil) {
		a.q.kind = a.kind
	}
	return r, err
}

type counting struct {
	asked
	index.RowCounter
}

// ambiguous reports whether a name is both that of a column and that of the values
// under a map's key.
func (f *File) ambiguous(name string) bool {
	if !strings.HasSuffix(name, "]") {
		return false
	}
	column, _, keyed := index.SplitMapColumn(name)
	return keyed && f.fields.Index(name) >= 0 && f.fields.Index(column) >= 0
}

// each calls ask with the indexes of a column, cheapest first. An index that shows the
// column to hold no value but NULL ends it: its kind is returned.
func (f *File) each(column string, t types.Type, ask func(kind string, x index.FileIndex) error) (empty string, err error) {
	sections := f.c.Find(column)
	slices.SortStableFunc(sections, func(a, b *index.Section) int { return cmp.Compare(rank(a.Kind), rank(b.Kind)) })
	for _, s := range sections {
		kind := KindOf(s.Kind)
		if kind == nil || !kind.Supports(t) {
			continue
		}
		if s.Empty {
			return s.Kind, nil
		}
	}
	for _, s := range sections {
		kind := KindOf(s.Kind)
		if kind == nil || !kind.Supports(t) {
			continue
		}
		f.mu.Lock()
		x, ok := f.open[s]
		f.mu.Unlock()
		if !ok {
			if x, err = kind.Open(f.c.Source(s), t); err != nil {
				return "", err
			}
			f.mu.Lock()
			f.open[s] = x
			f.mu.Unlock()
		}
		if err := ask(s.Kind, x); err != nil {
			return "", err
		}
	}
	return "", nil
}

// rank is the place of a kind among those to be asked.
func rank(kind string) int {
	for i, k := range kinds {
		if k.Name() == kind {
			return i
		}
	}
	return len(kinds)
}
