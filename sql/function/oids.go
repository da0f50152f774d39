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

// othertypes.txt holds the types of pg_type that no value here has: OID, typname and
// the name in SQL, with tabs between.
//
//go:embed othertypes.txt
var otherTypesText string

var otherTypes, otherTypeOIDs = func() (map[uint32]string, map[string]uint32) {
	names, oids := map[uint32]string{}, map[string]uint32{}
	for _, l := range strings.Split(strings.TrimSpace(otherTypesText), "\n") {
		f := strings.Split(l, "\t")
		n, _ := strconv.ParseUint(f[0], 10, 32)
		names[uint32(n)] = f[2]
		oids[f[1]], oids[f[2]] = uint32(n), uint32(n)
	}
	return names, oids
}()

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
