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
// A data-changing statement (dml.go) locks its target, binds its plan to the newest
// state of the tables, and sends the source's rows through a modifier (modify*.go),
// which checks constraints, locks the keys that it reads (locks.go) and hands rows
// to the transaction. What a transaction has done to a table is a txTable
// (txtable.go): a few rows in memory, the rest in files, which its own scans lay
// over their snapshot, and what it has read. COMMIT (publish.go) applies staged data
// definition and publishes each table through its commit queue (commitqueue.go),
// where the sessions that wait share a snapshot.
//
// Two things keep updates from being lost. Inside the server, whoever reads what it
// will write holds key locks until its transaction ends. Against other processes, and
// against upserts that read nothing, the keys or files read are checked in every
// snapshot up to the one that is published: a statement alone in its transaction is
// run again then, a block fails with 40001.
//
// Errors of lower layers become SQLSTATEs in errors.go and nowhere else. Panics
// are recovered in run.go and nowhere else.
package engine
