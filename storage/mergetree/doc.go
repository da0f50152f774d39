// Package mergetree holds the LSM nouns of a primary-key table: keys and their
// order, sorted runs, sections of disjoint key ranges, the reader that merges
// their windows, and the buffer that sorts what is written.
//
// What the versions of a key become is an Engine's business (engine.go): one file
// engine_<name>.go and one line in builtin.go each. What becomes of single columns
// is that of package aggregate.
package mergetree
