package pgcopy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
)

const (
	// readSize is how much is gathered before a block is worked on: enough lines to
	// make the work per block vanish, few enough to stay in a core's cache.
	readSize = 64 << 10
	// maxLine bounds a line as PostgreSQL does (MaxAllocSize); a setting may lower
	// it.
	maxLine = 1<<30 - 1
)

// source is a window over the data: buf[r:w] is there and not yet used. Bytes in
// front of ok are valid UTF-8 without NUL; those behind are not looked at yet,
// save in binary mode, where ok is w.
type source struct {
	in      io.Reader
	account *mem.Account
	charged int64
	buf     []byte
	r, w    int
	ok      int
	eof     bool
	binary  bool
	latin1  bool
	raw     []byte // latin1: what was read, before it is converted
	// bad is the error of the byte at ok, or of reading it; it is due when somebody
	// needs that byte.
	bad error
}

func (s *source) close() {
	s.account.Shrink(s.charged)
	s.charged = 0
}

// fill reads until at least n valid bytes are unused, or the data ends. The
// window moves: offsets into it change by the value returned.
func (s *source) fill(n int) (moved int, err error) {
	if s.ok-s.r >= n || s.eof || s.bad != nil {
		return 0, nil
	}
	if s.r > 0 {
		moved = s.r
		copy(s.buf, s.buf[s.r:s.w])
		s.w -= moved
		s.ok -= moved
		s.r = 0
	}
	if want := n + readSize; want > len(s.buf) {
		// At most twice what has arrived: n is never more than that, see more.
		if want > 2*readSize {
			if err := s.account.Grow(int64(want) - s.charged); err != nil {
				return moved, err
			}
			s.charged = int64(want)
		}
		b := make([]byte, want)
		copy(b, s.buf[:s.w])
		s.buf = b
	}
	for s.ok < n && !s.eof && s.bad == nil {
		k, err := s.read()
		s.w += k
		switch {
		case errors.Is(err, io.EOF):
			s.eof = true
		case err != nil:
			s.check()
			if s.bad == nil {
				s.bad = err // due behind what has come
			}
			return moved, nil
		}
		s.check()
	}
	return moved, nil
}

// read reads once into the room behind w.
func (s *source) read() (int, error) {
	if !s.latin1 {
		return s.in.Read(s.buf[s.w:])
	}
	if s.raw == nil {
		s.raw = make([]byte, readSize/2)
	}
	n, err := s.in.Read(s.raw[:min(len(s.raw), (len(s.buf)-s.w)/2)])
	dst := s.buf[s.w:s.w]
	for _, c := range s.raw[:n] {
		if c < utf8.RuneSelf {
			dst = append(dst, c)
		} else {
			dst = append(dst, 0xc0|c>>6, 0x80|c&0x3f)
		}
	}
	return len(dst), err
}

// check moves ok over the valid bytes that are there. A sequence that is cut by
// the end of the window waits for its rest.
func (s *source) check() {
	if s.binary {
		s.ok = s.w
		return
	}
	b := s.buf[s.ok:s.w]
	n := plainASCII(b)
	if n < len(b) {
		k := pgtext.BadUTF8(b[n:])
		switch {
		case k < 0:
			n = len(b)
		case !s.eof && len(b)-n-k < pgtext.Announced(b[n+k]):
			n += k // the rest of the sequence is to come, or to show in the error
		default:
			n += k
			name := "UTF8"
			if s.latin1 {
				name = "LATIN1"
			}
			s.bad = pgtext.BadSequence(name, b[n:])
		}
	}
	s.ok += n
}

// plainASCII returns how many bytes of b, in steps of eight, are ASCII and not
// NUL.
func plainASCII(b []byte) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		// A byte of zero borrows and shows in its high bit; so does what is not
		// ASCII. A borrow out of a zero byte only adds bits when one is there.
		if (x|(x-ones))&high != 0 {
			break
		}
	}
	return i
}

// finder remembers where a byte occurs next, so that a window is searched once.
type finder struct {
	c    byte
	at   int // the occurrence found last; -1 = none up to upTo
	upTo int // searched so far, without a hit behind at
}

// next returns the position of the first c in b[from:], or len(b). from does not
// go back from one call to the next.
func (f *finder) next(b []byte, from int) int {
	if f.at >= from {
		return f.at
	}
	start := max(from, f.upTo)
	k := -1
	if start < len(b) {
		k = bytes.IndexByte(b[start:], f.c)
	}
	if k < 0 {
		f.at, f.upTo = -1, max(start, len(b))
		return len(b)
	}
	f.at = start + k
	f.upTo = f.at + 1
	return f.at
}

// moved follows the window.
func (f *finder) moved(by int) { f.at, f.upTo = max(-1, f.at-by), max(0, f.upTo-by) }
