package pgwire

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// Authenticator decides whether a client is who it says it is. It runs before
// the database is looked at, so that an unknown database is told only to those
// who may know.
type Authenticator interface {
	// Authenticate talks to the client through x. Its error is FATAL; a
	// *pgerr.Error is sent as it is (28P01, 28000), any other one is hidden.
	Authenticate(ctx context.Context, x *Exchange) error
}

// Exchange is the conversation of one authentication.
type Exchange struct {
	User, Database string
	Remote         string
	c              *conn
}

// TLS returns the state of the encrypted connection, nil in clear text.
func (x *Exchange) TLS() *tls.ConnectionState {
	if t, ok := x.c.nc.(*tls.Conn); ok {
		s := t.ConnectionState()
		return &s
	}
	return nil
}

// Certificate returns the first certificate that the server showed, for channel
// binding, or nil.
func (x *Exchange) Certificate() []byte {
	cfg := x.c.tls
	if cfg == nil || len(cfg.Certificates) == 0 || len(cfg.Certificates[0].Certificate) == 0 {
		return nil
	}
	return cfg.Certificates[0].Certificate[0]
}

// Host is the client's address without the port.
func (x *Exchange) Host() string {
	host, _, err := net.SplitHostPort(x.Remote)
	if err != nil {
		return x.Remote
	}
	return host
}

// encryption is how PostgreSQL says in errors whether the connection is encrypted.
func (x *Exchange) encryption() string {
	if x.TLS() != nil {
		return "SSL encryption"
	}
	return "no encryption"
}

// noEntry is the error of a client that no rule lets in.
func (x *Exchange) noEntry() error {
	return pgerr.New(pgerr.InvalidAuthorizationSpecification, "no pg_hba.conf entry for host \"%s\", user \"%s\", database \"%s\", %s",
		x.Host(), x.User, x.Database, x.encryption())
}

// Kinds of the message R.
const (
	authOK        = 0
	authSASL      = 10
	authSASLCont  = 11
	authSASLFinal = 12
)

func (x *Exchange) request(kind uint32, data []byte) {
	w := &x.c.out
	pos := w.begin('R')
	w.buf = binary.BigEndian.AppendUint32(w.buf, kind)
	w.buf = append(w.buf, data...)
	w.finish(pos)
}

// SASL offers mechanisms, best first, and returns the client's choice with its
// first message; data is nil when it sent none.
func (x *Exchange) SASL(mechanisms ...string) (mechanism string, data []byte, err error) {
	var list []byte
	for _, m := range mechanisms {
		list = append(append(list, m...), 0)
	}
	x.request(authSASL, append(list, 0))
	body, err := x.answer()
	if err != nil {
		return "", nil, err
	}
	// name, NUL, int32 length (-1 = none), bytes
	for i, b := range body {
		if b != 0 {
			continue
		}
		rest := body[i+1:]
		if len(rest) < 4 {
			break
		}
		n := int32(binary.BigEndian.Uint32(rest))
		rest = rest[4:]
		switch {
		case n == -1 && len(rest) == 0:
			return string(body[:i]), nil, nil
		case n >= 0 && int(n) == len(rest):
			return string(body[:i]), rest, nil
		}
		break
	}
	return "", nil, pgerr.New(pgerr.ProtocolViolation, "malformed SASLInitialResponse message")
}

// Continue sends a challenge and returns the answer.
func (x *Exchange) Continue(data []byte) ([]byte, error) {
	x.request(authSASLCont, data)
	return x.answer()
}

// Final sends the last message of the mechanism; AuthenticationOk follows when
// Authenticate returns nil.
func (x *Exchange) Final(data []byte) { x.request(authSASLFinal, data) }

// answer returns a copy of the body of the next message, which must be of type p.
func (x *Exchange) answer() ([]byte, error) {
	if err := x.c.out.flush(); err != nil {
		return nil, err
	}
	typ, body, err := x.c.in.message()
	if err != nil {
		return nil, err
	}
	if typ == 'X' {
		return nil, errDone
	}
	if typ != 'p' {
		return nil, pgerr.New(pgerr.ProtocolViolation, "expected SASL response, got message type %d", typ)
	}
	return append([]byte(nil), body...), nil
}

func (c *conn) authenticate() error {
	a := c.srv.cfg.Auth
	if a == nil {
		return nil
	}
	// Nobody who is not let in may make the server hold much.
	c.in.max = 64 << 10
	defer func() { c.in.max = c.srv.cfg.MaxMessageBytes }()
	err := a.Authenticate(c.ctx, &Exchange{User: c.start.User, Database: c.start.Database, Remote: c.start.Remote, c: c})
	if err == nil {
		return nil
	}
	var f *fatalError
	if errors.As(err, &f) || errors.Is(err, errDone) || c.out.err != nil {
		return err
	}
	var e *pgerr.Error
	if !errors.As(err, &e) {
		return err // the socket, or a deadline
	}
	e.Severity = "FATAL"
	// A wrong guess costs time, the more the more there were; the answer for a
	// user who does not exist waits as long.
	if e.Code == pgerr.InvalidPassword || e.Code == pgerr.InvalidAuthorizationSpecification {
		c.srv.authFailed.Add(1)
		d := c.srv.guesses.failed((&Exchange{Remote: c.start.Remote}).Host())
		c.log.Info("authentication failed", "user", c.start.User, "db", c.start.Database, "code", e.Code.String())
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-c.ctx.Done():
		}
	}
	return &fatalError{e}
}
