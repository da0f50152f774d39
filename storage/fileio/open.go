package fileio

import "strings"

// Open returns the FileIO of a warehouse given as a path or URI: a directory or
// file: URI of the local file system, mem: for an empty one in memory, or a bucket
// of an object store (s3://bucket/prefix?endpoint=...). Schemes that are not
// honoured answer an *UnsupportedError that names them. Open makes no request.
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
	if s := schemeAlias(scheme); openers[s] != nil {
		return openBlob(s, uri)
	}
	return nil, &UnsupportedError{Feature: "warehouse scheme " + strings.ToLower(scheme)}
}
