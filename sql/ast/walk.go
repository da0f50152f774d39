package ast

import "reflect"

// Walk calls visit for n and, when it returns true, for the nodes below it, in
// the order of the fields. It follows pointers, slices and interfaces; nil is
// not visited.
//
// The nodes are found by reflection: there are about a hundred and fifty kinds,
// and a list kept by hand would miss the next. The layout of each kind is
// worked out once.
func Walk(n Node, visit func(Node) bool) {
	w := walker{visit: visit}
	w.node(reflect.ValueOf(n))
}

// Deeper reports whether the tree is more than limit nodes high. It stops at
// the limit, so it is safe on a tree of any height.
func Deeper(n Node, limit int) bool {
	w := walker{limit: limit}
	w.node(reflect.ValueOf(n))
	return w.deep
}

type walker struct {
	visit func(Node) bool // nil: only measure
	limit int
	depth int
	deep  bool
}

var nodeType = reflect.TypeFor[Node]()

// node visits v if it is a node, and what it holds.
func (w *walker) node(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return
		}
		if v.Kind() == reflect.Interface {
			w.node(v.Elem())
			return
		}
		if v.Elem().Kind() != reflect.Struct {
			return
		}
		if w.visit != nil {
			if n, ok := v.Interface().(Node); ok && !w.visit(n) {
				return
			}
		} else if w.depth >= w.limit {
			w.deep = true
			return
		}
		w.depth++
		w.fields(v.Elem())
		w.depth--
	case reflect.Slice:
		for i := 0; i < v.Len() && !w.deep; i++ {
			w.node(v.Index(i))
		}
	case reflect.Struct:
		w.fields(v)
	}
}

func (w *walker) fields(v reflect.Value) {
	for _, i := range childFields(v.Type()) {
		if w.deep {
			return
		}
		w.node(v.Field(i))
	}
}

// Equal reports whether two trees are the same but for positions and source
// ranges. Whether a name was quoted does not count either, only the name.
func Equal(a, b Node) bool {
	return equalValue(reflect.ValueOf(a), reflect.ValueOf(b))
}

var (
	locType   = reflect.TypeFor[Loc]()
	spanType  = reflect.TypeFor[Span]()
	posType   = reflect.TypeFor[Pos]()
	identType = reflect.TypeFor[Ident]()
)

func equalValue(a, b reflect.Value) bool {
	if a.IsValid() != b.IsValid() {
		return false
	}
	if !a.IsValid() {
		return true
	}
	if a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Interface, reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return equalValue(a.Elem(), b.Elem())
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !equalValue(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Struct:
		return equalStruct(a, b)
	}
	return a.Equal(b)
}

func equalStruct(a, b reflect.Value) bool {
	switch a.Type() {
	case locType, spanType:
		return true
	case identType:
		return a.FieldByName("Name").String() == b.FieldByName("Name").String()
	}
	for i := range a.NumField() {
		if a.Field(i).Type() != posType && !equalValue(a.Field(i), b.Field(i)) {
			return false
		}
	}
	return true
}
