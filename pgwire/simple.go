package pgwire

import (
	"bytes"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
)

// query answers a Query message: any number of statements, whose results follow
// each other, then one ReadyForQuery whatever happened.
func (c *conn) query(body []byte) error {
	sql, err := queryText(body)
	if err == nil {
		// A simple query forgets the unnamed statement and portal.
		c.sess.CloseStatement("")
		c.sess.ClosePortal("")
		c.sink.simple()
		err = c.running(func() error { return c.sess.Query(c.ctx, sql, &c.sink) })
	} else {
		c.sess.Fail()
	}
	if err != nil {
		if e := c.report(err); isFatal(e) {
			return c.ended()
		}
	}
	c.pipeline = false
	return c.ready()
}

// ended sends what is there and ends a connection whose last message, a FATAL
// error, has already been written.
func (c *conn) ended() error {
	if c.out.flush() == nil {
		c.linger()
	}
	return errDone
}

func isFatal(e *pgerr.Error) bool { return e.Severity == "FATAL" || e.Severity == "PANIC" }

// queryText returns the string of a Query message: one NUL, at its end.
func queryText(body []byte) (string, error) {
	i := bytes.IndexByte(body, 0)
	if i < 0 {
		return "", pgerr.New(pgerr.ProtocolViolation, "invalid string in message")
	}
	if i != len(body)-1 {
		return "", pgerr.New(pgerr.ProtocolViolation, "invalid message format")
	}
	return text(body[:i])
}

// text checks that b is UTF-8 and copies it.
func text(b []byte) (string, error) {
	if err := pgtext.CheckUTF8(b); err != nil {
		return "", err
	}
	return string(b), nil
}
