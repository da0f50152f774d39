package pgwire

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// pgError turns any error into one for the client. Errors without a SQLSTATE are
// XX000: engine maps what it knows, so they are bugs, and logged.
func (c *conn) pgError(err error) *pgerr.Error {
	var e *pgerr.Error
	if errors.As(err, &e) {
		cp := *e // Severity may be set on it
		return &cp
	}
	switch {
	case errors.Is(err, errClientGone), errors.Is(err, context.Canceled):
		return pgerr.New(pgerr.QueryCanceled, "canceling statement due to user request")
	case errors.Is(err, context.DeadlineExceeded):
		return pgerr.New(pgerr.QueryCanceled, "canceling statement due to statement timeout")
	}
	if c.out.err == nil {
		c.log.Error("error without a code", "err", err)
	}
	return pgerr.Wrap(err, pgerr.InternalError, "%s", err.Error())
}

// report sends err as an ErrorResponse.
func (c *conn) report(err error) *pgerr.Error {
	e := c.pgError(err)
	c.out.appendError('E', e)
	return e
}

// appendError appends an ErrorResponse (E) or a NoticeResponse (N): fields, each
// a letter and a string ended by NUL, and a NUL.
func (w *writer) appendError(typ byte, e *pgerr.Error) {
	pos := w.begin(typ)
	field := func(k byte, v string) {
		if v == "" {
			return
		}
		if strings.IndexByte(v, 0) >= 0 {
			v = strings.ReplaceAll(v, "\x00", "\uFFFD")
		}
		w.buf = append(w.buf, k)
		w.text(v)
	}
	sev := e.Severity
	if sev == "" {
		sev = "ERROR"
		if typ == 'N' {
			sev = "NOTICE"
		}
	}
	code := e.Code.String()
	if len(code) != 5 {
		code = pgerr.InternalError.String()
		if typ == 'N' {
			code = pgerr.SuccessfulCompletion.String()
		}
	}
	field('S', sev)
	field('V', sev)
	field('C', code)
	w.buf = append(w.buf, 'M')
	w.text(strings.ReplaceAll(e.Message, "\x00", "\uFFFD"))
	field('D', e.Detail)
	field('H', e.Hint)
	if e.Position > 0 {
		field('P', strconv.Itoa(e.Position))
	}
	field('W', e.Context)
	field('s', e.Schema)
	field('t', e.Table)
	field('c', e.Column)
	field('d', e.DataType)
	field('n', e.Constraint)
	file, line, routine := e.Location()
	if file == "" { // rust-postgres wants all three
		file, line, routine = "engine.go", 1, "report"
	}
	field('F', file)
	field('L', strconv.Itoa(line))
	field('R', routine)
	w.buf = append(w.buf, 0)
	w.finish(pos)
}
