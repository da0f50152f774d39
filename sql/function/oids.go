package function

import (
	_ "embed"
	"strconv"
	"strings"
)

// oids.txt holds PostgreSQL 15's OIDs by name and the OIDs of the argument
// types; operators have the prefix "op:". typeprocs.txt holds the functions that
// pg_type and pg_am refer to: input and output of types, handlers.
//
//go:embed oids.txt
var oidsText string

//go:embed typeprocs.txt
var typeProcsText string

var knownOIDs = func() map[string]uint32 {
	m := map[string]uint32{}
	for _, l := range strings.Split(oidsText, "\n") {
		if i := strings.LastIndex(l, " = "); i > 0 {
			n, _ := strconv.ParseUint(l[i+3:], 10, 32)
			m[l[:i]] = uint32(n)
		}
	}
	return m
}()

var typeProcs = func() map[uint32]string {
	m := map[uint32]string{}
	for _, l := range strings.Split(typeProcsText, "\n") {
		if oid, name, ok := strings.Cut(l, " "); ok {
			n, _ := strconv.ParseUint(oid, 10, 32)
			m[uint32(n)] = name
		}
	}
	return m
}()
