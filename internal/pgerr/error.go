// Package pgerr holds PostgreSQL's SQLSTATE codes and the error type that
// carries them to a client.
//
// SQL layers make these errors where the reason is known. Storage packages do
// not import pgerr: engine maps their typed errors to codes in one table.
package pgerr

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
)

// Code is a SQLSTATE. It is a struct, so that a bare string cannot be passed
// where a code is meant.
type Code struct{ s string }

// String returns the five characters of the code.
func (c Code) String() string { return c.s }

// MakeCode turns five characters from a peer into a Code.
func MakeCode(s string) Code { return Code{s} }

// Error is an error as PostgreSQL reports it. Message is lower-case, one
// clause, without a period; Detail and Hint are full sentences.
type Error struct {
	Code     Code
	Message  string
	Detail   string
	Hint     string
	Position int    // in characters from 1; 0 = none
	Context  string // CONTEXT, such as `COPY t, line 1`
	Severity string // "" = ERROR; FATAL ends the session

	Schema, Table, Column, Constraint, DataType string

	cause error
	pc    uintptr // where the error was made; 0 = unknown
}

// New makes an Error with a formatted message.
func New(c Code, format string, args ...any) *Error { return make1(c, format, args) }

// Wrap makes an Error that keeps cause for errors.Is and the log. The client
// sees only the message.
func Wrap(cause error, c Code, format string, args ...any) *Error {
	e := make1(c, format, args)
	e.cause = cause
	return e
}

// make1 must be called by New and Wrap directly: it notes their caller.
func make1(c Code, format string, args []any) *Error {
	e := &Error{Code: c, Message: format}
	if len(args) > 0 {
		e.Message = fmt.Sprintf(format, args...)
	}
	var pc [1]uintptr
	if runtime.Callers(3, pc[:]) == 1 {
		e.pc = pc[0]
	}
	return e
}

// Location returns the name of the source file, the line and function
// that made the error, for the fields F, L and R of the protocol. They are empty
// when the error was not made by New or Wrap.
func (e *Error) Location() (file string, line int, routine string) {
	if e.pc == 0 {
		return "", 0, ""
	}
	f, _ := runtime.CallersFrames([]uintptr{e.pc}).Next()
	file, routine = f.File, f.Function
	// github.com/owner/module/sql/parser.(*Parser).fail: package path, function.
	routine = routine[strings.LastIndexByte(routine, '/')+1:]
	if i := strings.IndexByte(routine, '.'); i >= 0 {
		routine = routine[i+1:]
	}
	return file[strings.LastIndexByte(file, '/')+1:], f.Line, routine
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause given to Wrap.
func (e *Error) Unwrap() error { return e.cause }

// WithHint sets the hint and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// WithDetail sets the detail and returns e.
func (e *Error) WithDetail(format string, args ...any) *Error {
	e.Detail = fmt.Sprintf(format, args...)
	return e
}

// WithPosition sets the position, in characters from 1, and returns e.
func (e *Error) WithPosition(pos int) *Error {
	e.Position = pos
	return e
}

// CodeOf returns the code of the first *Error in err's chain, and whether
// there is one.
func CodeOf(err error) (Code, bool) {
	var e *Error
	if errors.As(err, &e) {
		return e.Code, true
	}
	return Code{}, false
}

// Is reports whether err carries code c.
func Is(err error, c Code) bool {
	got, ok := CodeOf(err)
	return ok && got == c
}
