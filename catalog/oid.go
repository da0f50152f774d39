package catalog

import "hash/fnv"

// FirstUserOID is where OIDs of the warehouse's objects begin, as PostgreSQL's
// FirstNormalObjectId.
const FirstUserOID = 16384

// OIDOf returns the OID of an object of the warehouse. It depends on nothing but
// the names, so it is the same after a restart and in every server on the
// warehouse. class tells namespaces ('n'), relations ('r'), types ('t'),
// indexes ('i'), constraints ('c') and defaults ('d') apart.
//
// Two names may hash alike (about one chance in eighty for 10,000 tables): then
// both have one OID and reg* output may name the wrong one of them; nothing that
// reads or writes data goes by OID.
func OIDOf(class byte, schema, name string) uint32 {
	h := fnv.New64a()
	_, _ = h.Write([]byte{class})
	_, _ = h.Write([]byte(schema))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(name))
	x := h.Sum64()
	x ^= x >> 32
	const span = 1<<32 - FirstUserOID
	return uint32(FirstUserOID + x%span)
}
