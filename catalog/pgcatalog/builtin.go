package pgcatalog

// builtin lists every relation, in the order of their names within a schema.
var builtin = []Def{}
