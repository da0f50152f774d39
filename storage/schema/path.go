package schema

import (
	"slices"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Steps of a path into arrays and maps.
const (
	stepElement = "element"
	stepValue   = "value"
)

// missing is the error for a path whose first n parts lead nowhere.
func missing(path []string, n int) *ChangeError {
	name := strings.Join(path[:n], ".")
	return refuse(ColumnMissing, "column %q does not exist", name).on(name)
}

// editList calls f with a copy of the list of fields that the last part of path
// names a member of, and puts what it returns in its place. Everything on the way
// is copied: schemas share their types.
func (a *alteration) editList(path []string, f func(fs types.Schema, last string) (types.Schema, error)) error {
	fs, err := editList(a.fields, path, 0, f)
	if err == nil {
		a.fields = fs
	}
	return err
}

func editList(fs types.Schema, path []string, depth int, f func(types.Schema, string) (types.Schema, error)) (types.Schema, error) {
	if depth >= len(path) {
		return nil, refuse(NotAllowed, "a path is needed")
	}
	fs = slices.Clone(fs)
	if depth == len(path)-1 {
		return f(fs, path[depth])
	}
	i := fs.Index(path[depth])
	if i < 0 {
		return nil, missing(path, depth+1)
	}
	t, err := editListOf(fs[i].Type, path, depth+1, f)
	fs[i].Type = t
	return fs, err
}

// editListOf steps into the type that path[:depth] leads to.
func editListOf(t types.Type, path []string, depth int, f func(types.Schema, string) (types.Schema, error)) (types.Type, error) {
	var err error
	switch {
	case t.Kind == types.Row:
		var fs types.Schema
		fs, err = editList(t.Fields, path, depth, f)
		t.Fields = fs
		return t, err
	case steps(t, path[depth]):
		if depth == len(path)-1 {
			return t, refuse(NotAllowed, "%q is not a member of a row", strings.Join(path, ".")).on(strings.Join(path, "."))
		}
		var e types.Type
		e, err = editListOf(*t.Elem, path, depth+1, f)
		t.Elem = &e
		return t, err
	}
	return t, missing(path, depth+1)
}

// steps reports whether a path goes on from t to t's elements.
func steps(t types.Type, step string) bool {
	return t.Kind == types.Array && t.Fixed == 0 && step == stepElement || t.Kind == types.Map && !t.Multiset && step == stepValue
}

// editField changes the field that path names: a column or a member of a row.
func (a *alteration) editField(path []string, f func(types.Field) (types.Field, error)) error {
	return a.editList(path, func(fs types.Schema, last string) (types.Schema, error) {
		i := fs.Index(last)
		if i < 0 {
			return nil, missing(path, len(path))
		}
		var err error
		fs[i], err = f(fs[i])
		return fs, err
	})
}

// editType changes the type that path names: that of a column, of a member of a
// row, or the elements of an array or map.
func (a *alteration) editType(path []string, f func(types.Type) (types.Type, error)) error {
	if len(path) == 0 {
		return refuse(NotAllowed, "a path is needed")
	}
	i := a.fields.Index(path[0])
	if i < 0 {
		return missing(path, 1)
	}
	t, err := editType(a.fields[i].Type, path, 1, f)
	if err != nil {
		return err
	}
	a.fields = slices.Clone(a.fields)
	a.fields[i].Type = t
	return nil
}

func editType(t types.Type, path []string, depth int, f func(types.Type) (types.Type, error)) (types.Type, error) {
	if depth == len(path) {
		return f(t)
	}
	var err error
	switch {
	case t.Kind == types.Row:
		i := types.Schema(t.Fields).Index(path[depth])
		if i < 0 {
			return t, missing(path, depth+1)
		}
		t.Fields = slices.Clone(t.Fields)
		t.Fields[i].Type, err = editType(t.Fields[i].Type, path, depth+1, f)
		return t, err
	case steps(t, path[depth]):
		var e types.Type
		e, err = editType(*t.Elem, path, depth+1, f)
		t.Elem = &e
		return t, err
	}
	return t, missing(path, depth+1)
}
