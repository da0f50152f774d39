package pgwire

import (
	"bytes"
	"unicode/utf8"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
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
	if err := checkUTF8(b); err != nil {
		return "", err
	}
	return string(b), nil
}

// checkUTF8 is 22021 for bytes that are not UTF-8, and for NUL, which PostgreSQL
// does not let into a text. The message shows the first bad sequence.
func checkUTF8(b []byte) error {
	if utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 {
		return nil
	}
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if b[i] != 0 && (r != utf8.RuneError || n > 1) {
			i += n
			continue
		}
		// PostgreSQL shows as many bytes as the first one announces.
		want := 1
		switch x := b[i]; {
		case x >= 0xf0 && x < 0xf8:
			want = 4
		case x >= 0xe0:
			want = 3
		case x >= 0xc0:
			want = 2
		}
		if b[i] >= 0xf8 {
			want = 1
		}
		seq := b[i:min(len(b), i+want)]
		const hex = "0123456789abcdef"
		var s []byte
		for k, x := range seq {
			if k > 0 {
				s = append(s, ' ')
			}
			s = append(s, '0', 'x', hex[x>>4], hex[x&15])
		}
		return pgerr.New(pgerr.CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\": %s", s)
	}
	return nil
}
