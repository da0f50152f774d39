// Package sqllogic runs SQL tests in the sqllogictest format over the wire.
//
// A file is a list of records divided by blank lines:
//
//	statement ok | error [(SQLSTATE) | pattern] | count N
//	query <types> [nosort | rowsort | valuesort]      then SQL, ----, rows
//	skipif LABEL, onlyif LABEL                         before a record
//	connection NAME                                    before a record: it is sent on that connection
//	blocks                                             before a record: it waits for a lock of another connection
//	control resultmode rowwise                         one row a line, tabs between
//	halt                                               the rest is not run
//
// COPY FROM STDIN is a statement whose data stands below a ---- line, COPY TO STDOUT
// a query whose lines are rows of one column.
//
// Types: I integers and oid, R floats, T everything else. NULL, (empty) and
// \n \t \r stand for themselves. What a record that blocks answers is judged when
// the next record of its connection comes, or the end. Our label is postgresql: what PostgreSQL
// answers is what we must answer.
package sqllogic

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Kind is what a record is.
type Kind uint8

// The kinds.
const (
	Statement Kind = iota
	Query
	Control
	Halt
)

// Record is one record of a file.
type Record struct {
	Kind  Kind
	Line  int // of its first word, from 1
	end   int // the line behind its last
	SQL   string
	Types string   // of a query's columns
	Sort  string   // "" = the file's
	Want  []string // the expected lines
	// Error is set when the record must fail; Pattern is what the error must be:
	// "" anything, (XXXXX) that SQLSTATE, else a regular expression.
	Error   bool
	Pattern string
	Count   int // expected number in the command tag; -1 = any
	// Skip is set when a label says that the record is not for us.
	Skip bool
	// Conn names the connection, "" = the file's first; Blocks is set when the record
	// has to wait for a lock of another one.
	Conn   string
	Blocks bool
}

// Label is what skipif and onlyif know us by.
const Label = "postgresql"

// ParseFile reads a file, also one that ends in .gz.
func ParseFile(path string) ([]Record, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		if b, err = io.ReadAll(z); err != nil {
			return nil, err
		}
	}
	r, err := Parse(string(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Parse reads the text of a file.
func Parse(src string) ([]Record, error) {
	lines := strings.Split(strings.ReplaceAll(src, "\r\n", "\n"), "\n")
	var out []Record
	skip, blocks, conn := false, false, ""
	for i := 0; i < len(lines); {
		line := strings.TrimSpace(lines[i])
		if line == "" || line[0] == '#' {
			i++
			continue
		}
		w := strings.Fields(line)
		r := Record{Line: i + 1, Count: -1, Skip: skip, Conn: conn, Blocks: blocks}
		switch w[0] {
		case "skipif", "onlyif":
			if len(w) < 2 {
				return nil, fmt.Errorf("line %d: %s without a label", i+1, w[0])
			}
			if (w[1] == Label) == (w[0] == "skipif") {
				skip = true
			}
			i++
			continue
		case "connection":
			if len(w) < 2 {
				return nil, fmt.Errorf("line %d: connection without a name", i+1)
			}
			conn = w[1]
			i++
			continue
		case "blocks":
			blocks = true
			i++
			continue
		case "halt":
			r.Kind = Halt
		case "hash-threshold", "control", "subtest":
			r.Kind, r.SQL = Control, line
		case "statement":
			if err := r.statement(w); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
		case "query":
			r.Kind = Query
			if len(w) > 1 && w[1] == "error" {
				r.Error, r.Pattern = true, strings.Join(w[2:], " ")
				break
			}
			if len(w) > 1 {
				r.Types = w[1]
			}
			for _, x := range w[min(2, len(w)):] {
				if x == "nosort" || x == "rowsort" || x == "valuesort" {
					r.Sort = x
				}
			}
		default:
			return nil, fmt.Errorf("line %d: unknown record %q", i+1, line)
		}
		i++
		skip, blocks, conn = false, false, ""
		if r.Kind == Statement || r.Kind == Query {
			from := i
			for i < len(lines) && strings.TrimSpace(lines[i]) != "" && strings.TrimRight(lines[i], " \t") != "----" {
				i++
			}
			r.SQL = strings.Join(lines[from:i], "\n")
			if i < len(lines) && strings.TrimRight(lines[i], " \t") == "----" {
				i++
				for i < len(lines) && lines[i] != "" {
					r.Want = append(r.Want, lines[i])
					i++
				}
			}
		}
		r.end = i + 1
		out = append(out, r)
	}
	return out, nil
}

func (r *Record) statement(w []string) error {
	if len(w) < 2 {
		return fmt.Errorf("statement without ok, error or count")
	}
	switch w[1] {
	case "ok":
	case "error":
		r.Error, r.Pattern = true, strings.Join(w[2:], " ")
	case "count":
		if len(w) < 3 {
			return fmt.Errorf("statement count without a number")
		}
		n, err := strconv.Atoi(w[2])
		if err != nil {
			return err
		}
		r.Count = n
	default:
		return fmt.Errorf("statement %s", w[1])
	}
	return nil
}
