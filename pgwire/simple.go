package pgwire

import (
	"bytes"

	"github.com/paimon-sql/paimon-sql/internal/charset"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
)

// query answers a Query message: any number of statements, whose results follow
// each other, then one ReadyForQuery whatever happened.
func (c *conn) query(body []byte) error {
	sql, err := c.queryText(body)
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
func (c *conn) queryText(body []byte) (string, error) {
	i := bytes.IndexByte(body, 0)
	if i < 0 {
		return "", pgerr.New(pgerr.ProtocolViolation, "invalid string in message")
	}
	if i != len(body)-1 {
		return "", pgerr.New(pgerr.ProtocolViolation, "invalid message format")
	}
	return c.text(body[:i])
}

// encodeAs takes the client's encoding, a value of client_encoding.
func (c *conn) encodeAs(name string) {
	if n, ok := charset.Canonical(name); ok && (c.set == nil || c.set.Name != n) {
		c.set = charset.For(n)
		c.out.set = c.set
	}
}

func (c *conn) text(b []byte) (string, error) { return textOf(c.set, b) }

// textOf makes UTF-8 of what the client sent, checks it and copies it.
func textOf(set *charset.Set, b []byte) (string, error) {
	b, err := set.ToServer(b)
	if err != nil {
		return "", err
	}
	if err := pgtext.CheckUTF8(b); err != nil {
		return "", err
	}
	return string(b), nil
}
