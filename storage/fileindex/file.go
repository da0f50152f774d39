package fileindex

import (
	"cmp"
	"slices"
	"sync"

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

var _ index.Finder = (*File)(nil)

// Indexes is index.Finder's: l's Col is one of the file's fields. Kinds that are not
// known are passed over.
func (f *File) Indexes(l *predicate.Leaf) (out []index.FileIndex, empty bool, err error) {
	// A value that is read as another type may be another value, or NULL.
	if l.Col < 0 || l.Col >= len(f.fields) || !index.Accepts(f.fields[l.Col].Type, l) {
		return nil, false, nil
	}
	return f.indexes(f.fields[l.Col].Name, f.fields[l.Col].Type)
}

func (f *File) indexes(column string, t types.Type) (out []index.FileIndex, empty bool, err error) {
	sections := f.c.Find(column)
	slices.SortStableFunc(sections, func(a, b *index.Section) int { return cmp.Compare(rank(a.Kind), rank(b.Kind)) })
	for _, s := range sections {
		kind := KindOf(s.Kind)
		if kind == nil || !kind.Supports(t) {
			continue
		}
		if s.Empty {
			return nil, true, nil
		}
		f.mu.Lock()
		x, ok := f.open[s]
		f.mu.Unlock()
		if !ok {
			if x, err = kind.Open(f.c.Source(s), t); err != nil {
				return nil, false, err
			}
			f.mu.Lock()
			f.open[s] = x
			f.mu.Unlock()
		}
		out = append(out, x)
	}
	return out, false, nil
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
