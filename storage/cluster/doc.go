// Package cluster orders the rows of append tables so that files, and the pages
// within them, hold rows that are near each other in several columns: then a
// condition on any of these columns skips most of them.
//
//	columns -> order-preserving words -> scaled by a sample -> curve -> key bytes
//	rows + keys -> sorted runs in memory or in temporary files -> merged stream
//
// A stream that is sorted as a whole and cut into files of the target size gives
// files whose key ranges do not overlap.
package cluster
