// Package pgcopy reads and writes the formats of COPY: text, CSV and binary, as
// columns of batches. It knows nothing of SQL or of where bytes come from.
//
// A Decoder takes the bytes in large pieces, which may be cut anywhere, and works
// through them block by block:
//
//	source.go   the window over the bytes: filling, encoding, UTF-8
//	frame.go    where lines end, with PostgreSQL's rules for \r, \n and \.
//	text.go     a block of lines to fields: offsets into the window, by column
//	csv.go      the same for CSV
//	field.go    a column of fields to values, one typed loop per column
//	column.go   the arrays under construction
//	binary.go   the binary format
//
// The common line is split with a vectorised search for its delimiters and no
// look at each byte; whatever is unusual about a line (a backslash, a quote, a
// carriage return, a field too few) takes the slow and exact way, which is
// PostgreSQL's. Values likewise: a typed loop reads what programs write
// (plain digits, ISO dates), and package pgtext decides on everything else. So an
// error is found by the same code that says what PostgreSQL says.
//
// Fields are unescaped in place: the window is the decoder's own, and no form of
// a value is longer than its escaped form.
package pgcopy
