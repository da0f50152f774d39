package pgwire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

var _ engine.CopySink = (*sink)(nil)

// copyStart appends CopyInResponse (G) or CopyOutResponse (H): int8 format, int16
// columns, int16 format each.
func (w *writer) copyStart(typ byte, bin bool, columns int) {
	f := byte(0)
	if bin {
		f = 1
	}
	pos := w.begin(typ)
	w.buf = append(w.buf, f)
	w.buf = binary.BigEndian.AppendUint16(w.buf, uint16(columns))
	for range columns {
		w.buf = append(w.buf, 0, f)
	}
	w.finish(pos)
}

// CopyIn implements engine.CopySink.
func (s *sink) CopyIn(ctx context.Context, bin bool, columns int) (io.Reader, error) {
	c := s.c
	if c.set != nil && bin {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "binary COPY with client_encoding %q is not supported", c.set.Name)
	}
	c.watch.end() // from here on the reader is ours; a lost client is seen at once
	c.in.chunk = copyChunk
	c.out.copyStart('G', bin, columns)
	if err := c.out.flush(); err != nil {
		return nil, err
	}
	return &copyReader{c: c, ctx: ctx}, nil
}

// copyReader is the data of COPY FROM STDIN. After an error of the statement the
// rest of the client's messages is ignored by conn.handle.
type copyReader struct {
	c    *conn
	ctx  context.Context
	rest []byte // of the last CopyData, not yet read
	half []byte // of a character, at its end
	err  error
}

// Read implements io.Reader. io.EOF is the client's CopyDone. It returns what has
// arrived, of as many messages as there are: clients may send one per row.
func (r *copyReader) Read(p []byte) (n int, err error) {
	for {
		k := copy(p[n:], r.rest)
		r.rest = r.rest[k:]
		n += k
		switch {
		case n == len(p), n > 0 && (r.err != nil || !r.c.in.whole()):
			return n, nil
		case r.err != nil:
			return 0, r.err
		case len(r.rest) == 0:
			r.next()
		}
	}
}

// next waits for the next message; a cancelled statement does not wait for the
// client.
func (r *copyReader) next() {
	c := r.c
	if c.in.whole() { // nothing to wait for
		typ, body, err := c.in.message()
		r.take(typ, body, err)
		return
	}
	set := make(chan struct{})
	stop := context.AfterFunc(r.ctx, func() {
		c.nc.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // a closed socket ends the read as well
		close(set)
	})
	typ, body, err := c.in.message()
	if !stop() {
		<-set
		c.nc.SetReadDeadline(time.Time{}) //nolint:errcheck // as above
		if err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
			r.err = context.Cause(r.ctx)
			return
		}
	}
	r.take(typ, body, err)
}

// take does what a message says, or what became of waiting for one.
func (r *copyReader) take(typ byte, body []byte, err error) {
	c := r.c
	switch {
	case err != nil:
		if e := c.ask.Load(); e != nil && errors.Is(err, os.ErrDeadlineExceeded) {
			// Shutting down: a soft request waits for the statement.
			c.nc.SetReadDeadline(time.Time{}) //nolint:errcheck // as above
			if c.hard.Load() {
				r.err = e
			}
			return
		}
		c.in.err = err // the connection is over
		r.err = pgerr.Wrap(err, pgerr.ConnectionFailure, "unexpected EOF on client connection with an open transaction")
	case typ == 'd' && c.set != nil:
		r.recode(body)
	case typ == 'd':
		r.rest = body
	case typ == 'c':
		r.err = io.EOF
	case typ == 'f':
		msg := body
		if n := len(msg); n > 0 && msg[n-1] == 0 {
			msg = msg[:n-1]
		}
		r.err = pgerr.New(pgerr.QueryCanceled, "COPY from stdin failed: %s", msg)
	case typ == 'H' || typ == 'S':
		// Drivers that send COPY by the extended protocol do; not an error.
	default:
		r.err = pgerr.New(pgerr.ProtocolViolation, "%s", fmt.Sprintf("unexpected message type 0x%02X during COPY from stdin", typ))
	}
}

// recode takes a piece of COPY data in the client's encoding, which may end in the
// middle of a character.
func (r *copyReader) recode(body []byte) {
	body = append(r.half, body...)
	r.half = nil
	for cut := len(body); ; cut-- {
		v, err := r.c.set.ToServer(body[:cut])
		if err == nil {
			r.rest, r.half = v, append([]byte(nil), body[cut:]...)
			return
		}
		if cut <= 0 || len(body)-cut >= 3 {
			_, r.err = r.c.set.ToServer(body)
			return
		}
	}
}

// CopyOut implements engine.CopySink.
func (s *sink) CopyOut(ctx context.Context, bin bool, columns int) (io.WriteCloser, error) {
	if s.c.set != nil && bin {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "binary COPY with client_encoding %q is not supported", s.c.set.Name)
	}
	s.c.out.copyStart('H', bin, columns)
	return &copyWriter{w: &s.c.out, ctx: ctx}, s.c.out.err
}

// copyWriter sends each Write as one CopyData.
type copyWriter struct {
	w   *writer
	ctx context.Context
}

func (w *copyWriter) Write(p []byte) (int, error) {
	pos := w.w.begin('d')
	var err error
	if w.w.buf, err = w.w.set.ToClient(w.w.buf, p); err != nil {
		w.w.buf = w.w.buf[:pos-1]
		return 0, err
	}
	w.w.finish(pos)
	if len(w.w.buf) >= flushAt {
		if err := w.w.flushContext(w.ctx); err != nil {
			return 0, err
		}
	}
	return len(p), w.w.err
}

// Close sends CopyDone. After an error of the statement it must not be called:
// the ErrorResponse ends the copy.
func (w *copyWriter) Close() error {
	w.w.simple('c')
	return w.w.err
}
