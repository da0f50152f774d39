package function

// knownOIDs are PostgreSQL 15's OIDs by name and argument types; operators have
// the prefix "op:".
var knownOIDs = map[string]uint32{}

var typeProcs = map[uint32]string{}
