package pgwire

import (
	"encoding/binary"
	"errors"
	"io"
	"net"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

const (
	readChunk = 16 << 10 // what one read asks for, and the size of an idle buffer
	// copyChunk takes its place while data of COPY arrives: as much as a socket's
	// buffer holds, so that there are few system calls per megabyte.
	copyChunk = 256 << 10
	// maxAhead is how much a watcher (see watch) reads beyond the message being
	// worked on before it stops: from there TCP pushes back.
	maxAhead = 1 << 20
	// smallMessage bounds the messages that never carry data, as PostgreSQL does
	// (PQ_SMALL_MESSAGE_LIMIT).
	smallMessage = 10000
)

// reader cuts the byte stream of a client into messages. Memory grows with the
// bytes that have arrived, never with what a length field promises.
//
// It belongs to the connection's goroutine, except while a watcher runs.
type reader struct {
	nc   net.Conn
	buf  []byte
	r, w int // buf[r:w] is read and not yet used
	max  int // bytes of a message body that are accepted
	// chunk is readChunk, or copyChunk; 0 = readChunk.
	chunk int
	err   error
}

// fatalError ends the connection: the message goes out, then the socket closes.
type fatalError struct{ e *pgerr.Error }

func (f *fatalError) Error() string { return f.e.Message }
func (f *fatalError) Unwrap() error { return f.e }

func fatal(c pgerr.Code, format string, args ...any) error {
	e := pgerr.New(c, format, args...)
	e.Severity = "FATAL"
	return &fatalError{e}
}

// fill reads until at least n unused bytes are in the buffer.
func (r *reader) fill(n int) error {
	for r.w-r.r < n {
		if r.err != nil {
			return r.err
		}
		r.room(n)
		m, err := r.nc.Read(r.buf[r.w:])
		r.w += m
		if err != nil && r.w-r.r < n {
			return err // not kept: a deadline passes and is set anew
		}
	}
	return nil
}

// room makes space for at least one more byte of the n wanted. A buffer at most
// doubles, so a large message costs no more than twice what has been received.
func (r *reader) room(n int) {
	if r.r > 0 && (r.r == r.w || len(r.buf)-r.r < n || r.w == len(r.buf)) {
		copy(r.buf, r.buf[r.r:r.w])
		r.w -= r.r
		r.r = 0
	}
	if r.w < len(r.buf) {
		return
	}
	chunk := max(r.chunk, readChunk)
	size := max(2*len(r.buf), chunk)
	if size > n && n > r.w+chunk {
		size = n
	}
	b := make([]byte, size)
	copy(b, r.buf[:r.w])
	r.buf = b
}

// take returns the next n bytes, which must be in the buffer. They stay valid
// until the next fill.
func (r *reader) take(n int) []byte {
	b := r.buf[r.r : r.r+n : r.r+n]
	r.r += n
	return b
}

// release gives back a large buffer once nothing is left in it.
func (r *reader) release() {
	if r.r == r.w {
		r.r, r.w = 0, 0
		if len(r.buf) > 4*max(r.chunk, readChunk) {
			r.buf = make([]byte, readChunk)
		}
	}
}

// whole reports whether the next message is in the buffer.
func (r *reader) whole() bool {
	n := r.w - r.r
	return n >= 5 && n > int(int32(binary.BigEndian.Uint32(r.buf[r.r+1:])))
}

// startup reads one start-up packet: int32 length including itself, int32 code,
// the rest. ok is false for what is no packet at all: noise, another protocol, a
// health check. Source of the limit: MAX_STARTUP_PACKET_LENGTH.
func (r *reader) startup() (code uint32, body []byte, ok bool, err error) {
	if err := r.fill(4); err != nil {
		return 0, nil, false, err
	}
	n := int(int32(binary.BigEndian.Uint32(r.buf[r.r:])))
	if n < 8 || n > 10000 {
		return 0, nil, false, nil
	}
	if err := r.fill(n); err != nil {
		return 0, nil, false, err
	}
	b := r.take(n)
	return binary.BigEndian.Uint32(b[4:]), b[8:], true, nil
}

// message reads the next message. body is valid until the next call.
func (r *reader) message() (typ byte, body []byte, err error) {
	r.release()
	if err := r.fill(5); err != nil {
		return 0, nil, err
	}
	typ = r.buf[r.r]
	n := int(int32(binary.BigEndian.Uint32(r.buf[r.r+1:])))
	limit := r.max
	switch typ {
	case 'Q', 'P', 'B', 'F', 'd', 'p':
	case 'C', 'D', 'E', 'H', 'S', 'X', 'c', 'f':
		limit = min(limit, smallMessage)
	default:
		return 0, nil, fatal(pgerr.ProtocolViolation, "invalid frontend message type %d", typ)
	}
	if n < 4 {
		return 0, nil, fatal(pgerr.ProtocolViolation, "invalid message length")
	}
	if n-4 > limit {
		if limit < r.max {
			return 0, nil, fatal(pgerr.ProtocolViolation, "invalid message length")
		}
		var e *fatalError
		errors.As(fatal(pgerr.ProgramLimitExceeded, "message of %d bytes is larger than the limit of %d bytes", n, limit), &e)
		e.e.Hint = "The server's setting for the largest message bounds what one query or parameter set may hold."
		return 0, nil, e
	}
	if err := r.fill(n + 1); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return typ, r.take(n + 1)[5:], nil
}
