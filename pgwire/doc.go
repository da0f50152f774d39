// Package pgwire speaks PostgreSQL's protocol 3.0 to clients: messages in,
// messages out, nothing of SQL.
//
// # Parts
//
// A Server accepts sockets and gives each a conn (conn.go), which one goroutine
// runs from the first byte to the last. A conn reads messages with a reader
// (reader.go), works on one at a time with its Session, and writes answers
// through a writer (writer.go). The Session is the engine's; everything that has
// a meaning in SQL, names of statements and portals included, lives there.
//
//	startup.go   encryption requests, parameters, greeting     auth.go    who may connect
//	simple.go    Query                                         extended.go  Parse ... Sync
//	sink.go      what a statement yields -> messages           encode*.go values -> bytes
//	decode.go    parameters of Bind -> datums                  copy.go    COPY in both directions
//	cancel.go    CancelRequest                                 errors.go  errors and notices
//
// # One request
//
// In the simple protocol a Query message goes to Session.Query, which calls the
// sink: Columns, Batch ..., Complete for each statement. In the extended protocol
// Parse, Bind, Describe, Execute and Close answer one by one; answers stay in the
// buffer until Flush, Sync, an error, or 64 KiB of rows. After an error the
// message's answer is sent at once and everything up to the next Sync is thrown
// away (conn.skip). Sync ends the implicit transaction. ReadyForQuery is written
// in one place, conn.ready, after the ParameterStatus messages that wait for it.
//
// A statement's rows are encoded on the connection's goroutine, column types
// looked at once per batch. A full socket blocks Batch: that is all the
// back-pressure there is. A cancelled statement does not wait for a client that
// does not read: the write is given up, its rest kept for later.
//
// # Invariants
//
//   - The stream of messages is whole: a message is appended entirely, or the
//     buffer is cut back to where it began.
//   - Memory grows with bytes that have arrived, not with length fields.
//   - While a statement runs nobody reads the socket but the watch, which notices
//     a client that vanishes; bytes that it reads are the next messages.
//   - Every error that reaches a client has a SQLSTATE; one without is XX000 and
//     in the log.
//
// # Debugging
//
// The tests speak in transcripts (testdata/*.txt): frontend messages, then the
// answers, one line each; `go test -rewrite` writes the answers anew. pgproto3's
// Frontend can trace a live connection. For a client that misbehaves, a recording
// of PostgreSQL's answers beside ours shows the first message that differs.
package pgwire
