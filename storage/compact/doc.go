// Package compact decides what to compact and does it: picking sorted runs of
// primary-key tables, packing small files of append tables, and rewriting both.
//
// Pick and Plan are functions of files, options and the time; Copy is the loop
// that reads rows and writes them. What lies between, finding the files of a
// table, opening them and publishing the outcome, is storage/table's.
package compact
