// Package compact decides what to compact and does it: picking sorted runs of
// primary-key tables, packing small files of append tables, and rewriting both.
package compact
