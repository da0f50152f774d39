package pgwire

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/paimon-sql/paimon-sql/internal/charset"
)

// flushAt is the size at which a buffer of messages is sent.
const flushAt = 64 << 10

// writer collects messages and sends them in large pieces. It belongs to the
// connection's goroutine.
type writer struct {
	nc  net.Conn
	buf []byte
	err error // of an earlier send; everything after it is dropped
	// plain is false over TLS, where a write that is cut short cannot be resumed.
	plain bool
	set   *charset.Set // of the client; nil = UTF-8
}

// text appends a string and its NUL in the client's encoding; what that does not have
// becomes a question mark.
func (w *writer) text(s string) { w.buf = append(w.set.Lossy(w.buf, s), 0) }

// send appends a message made with pgproto3.
func (w *writer) send(m pgproto3.BackendMessage) {
	b, err := m.Encode(w.buf)
	if err != nil {
		if w.err == nil {
			w.err = err
		}
		return
	}
	w.buf = b
}

// begin starts a message of type t and returns where its length belongs.
func (w *writer) begin(t byte) int {
	w.buf = append(w.buf, t, 0, 0, 0, 0)
	return len(w.buf) - 4
}

// finish fills in the length of the message begun at pos.
func (w *writer) finish(pos int) {
	binary.BigEndian.PutUint32(w.buf[pos:], uint32(len(w.buf)-pos))
}

// simple appends a message without a body.
func (w *writer) simple(t byte) { w.buf = append(w.buf, t, 0, 0, 0, 4) }

// flush sends what is there and waits until the kernel has it.
func (w *writer) flush() error { return w.flushContext(context.Background()) }

// flushContext is flush, given up when ctx is done. What has not been sent stays
// in the buffer, so that the stream of messages stays whole: a cancelled
// statement's error still follows the rows that the client has not read yet.
func (w *writer) flushContext(ctx context.Context) error {
	if w.err != nil {
		return w.err
	}
	if len(w.buf) == 0 {
		return nil
	}
	interruptible := w.plain && ctx.Done() != nil
	var stop func() bool
	var set chan struct{} // closed once the deadline is set
	if interruptible {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		set = make(chan struct{})
		stop = context.AfterFunc(ctx, func() {
			w.nc.SetWriteDeadline(time.Unix(1, 0)) //nolint:errcheck // a closed socket ends the write as well
			close(set)
		})
	}
	n, err := w.nc.Write(w.buf)
	if interruptible && !stop() {
		<-set                              // else the deadline could hit the next write
		w.nc.SetWriteDeadline(time.Time{}) //nolint:errcheck // a closed socket fails at the write
		if err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
			w.buf = append(w.buf[:0], w.buf[n:]...)
			return context.Cause(ctx)
		}
	}
	if cap(w.buf) > 4*flushAt {
		w.buf = nil
	}
	w.buf = w.buf[:0]
	if err != nil {
		w.err = err
	}
	return err
}
