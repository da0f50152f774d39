// Package engine owns what lives between the wire and a plan: the process-wide
// Engine, sessions, prepared statements, portals, transactions and settings.
//
// A statement travels so. Session.Query (or Prepare, Bind and Run) parses the
// text, checks the transaction's state, and asks start (run.go) for something
// that runs: a planned query on the executor, or rows that a utility statement
// made at once. Both are a rowSource; a Portal is a rowSource with a name, and
// several portals may be suspended at one time, each with a context of its own
// that ends with its transaction.
//
// Names are resolved per statement (resolve.go): every reference to a table in
// one statement reads one snapshot, and REPEATABLE READ keeps the snapshots for
// the whole transaction.
//
// Errors of lower layers become SQLSTATEs in errors.go and nowhere else. Panics
// are recovered in run.go and nowhere else.
package engine
