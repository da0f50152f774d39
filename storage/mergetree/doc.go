// Package mergetree holds the LSM nouns of a primary-key table: keys and their
// order, sorted runs, sections of disjoint key ranges, the loser tree that merges
// them on read, and the buffer that sorts what is written.
package mergetree
