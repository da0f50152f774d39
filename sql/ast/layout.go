package ast

import (
	"reflect"
	"sync"
)

var layouts sync.Map // reflect.Type of a struct to []int

// childFields returns the indexes of the fields of t that may hold nodes.
func childFields(t reflect.Type) []int {
	if c, ok := layouts.Load(t); ok {
		return c.([]int)
	}
	var out []int
	for i := range t.NumField() {
		f := t.Field(i)
		// CreateTable.Elements holds what other fields hold too.
		if f.IsExported() && !f.Anonymous && f.Name != "Elements" && mayHoldNodes(f.Type) {
			out = append(out, i)
		}
	}
	layouts.Store(t, out)
	return out
}

func mayHoldNodes(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice:
		return mayHoldNodes(t.Elem())
	case reflect.Interface:
		return t.Implements(nodeType)
	case reflect.Pointer:
		return t.Elem().Kind() == reflect.Struct
	case reflect.Struct:
		return t != locType && t != spanType && t != identType
	}
	return false
}
