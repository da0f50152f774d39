package fileio

import "strings"

// Open returns the FileIO of a warehouse given as a path or URI: a directory or
// file: URI of the local file system, or mem: for an empty one in memory.
// Object stores are not honoured yet and answer an *UnsupportedError that names
// the scheme.
func Open(uri string) (FileIO, error) {
	if uri == "mem:" || strings.HasPrefix(uri, "mem://") {
		return NewMem(), nil
	}
	scheme, rest, ok := splitScheme(uri)
	if !ok {
		return NewLocal(uri), nil
	}
	if strings.EqualFold(scheme, "file") {
		return NewLocal("/" + strings.TrimLeft(rest, "/")), nil
	}
	return nil, &UnsupportedError{Feature: "warehouse scheme " + strings.ToLower(scheme)}
}
