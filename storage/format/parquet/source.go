package parquet

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
)

const (
	// tailBytes is the first read of a file: footer and page index lie at its
	// end. Files up to wholeBytes are read whole, which costs the same one trip.
	tailBytes  = 64 << 10
	wholeBytes = 256 << 10
	// What a row group has in the wanted columns is read in a few big pieces up
	// to groupBytes, else each column has a window of its own.
	groupBytes = 8 << 20
	// gapBytes of unwanted bytes are read to save a request.
	gapBytes = 64 << 10
	// Windows start small, as the reader may stop soon, and double.
	minWindow = 256 << 10
	maxWindow = 4 << 20
)

// bufPool holds read windows and decompressed pages. A buffer goes back when its
// column reader is closed.
var bufPool = sync.Pool{New: func() any { return new([]byte) }}

func getBuf(n int) []byte {
	p := bufPool.Get().(*[]byte)
	if cap(*p) < n {
		return make([]byte, n)
	}
	return (*p)[:n]
}

func putBuf(b []byte) {
	if c := cap(b); c >= 4096 && c <= 2*maxWindow {
		bufPool.Put(&b)
	}
}

// readAt reads n bytes at off, both checked against the file, into buf's memory
// or, when the file is in memory, returns a part of that.
func (r *Reader) readAt(ctx context.Context, off int64, n int, buf []byte) ([]byte, error) {
	if off < 0 || n < 0 || off > r.size-int64(n) {
		return nil, r.corrupt(off, "%d bytes are asked for beyond the end of the file", n)
	}
	if r.mem != nil && off >= r.memOff && off+int64(n) <= r.memOff+int64(len(r.mem)) {
		i := off - r.memOff
		return r.mem[i : i+int64(n) : i+int64(n)], nil
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	k, err := r.f.ReadAt(buf, off)
	r.bytes.Add(int64(k))
	if k == n {
		return buf, nil
	}
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, r.corrupt(off, "the file ends after %d bytes", off+int64(k))
	}
	return nil, &readError{r.f.Path(), err}
}

// readError is an error of the file system, as opposed to the file's content.
type readError struct {
	path string
	err  error
}

func (e *readError) Error() string { return "read " + e.path + ": " + e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// span is a range of a file.
type span struct{ off, end int64 }

// run is a span that is read at once, on first use.
type run struct {
	span
	buf []byte
	own bool // of one column: its bytes are given up when that goes on to another run
}

// ownRuns makes a run of each span, which belongs to one column: more bytes are wanted
// than shall be in memory together.
func ownRuns(spans []span) []*run {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.off, b.off) })
	out := make([]*run, len(spans))
	for i, s := range spans {
		out[i] = &run{span: s, own: true}
	}
	return out
}

// coalesce joins spans that lie less than gapBytes apart.
func coalesce(spans []span) []*run {
	slices.SortFunc(spans, func(a, b span) int {
		switch {
		case a.off < b.off:
			return -1
		case a.off > b.off:
			return 1
		}
		return 0
	})
	var out []*run
	for _, s := range spans {
		if s.end <= s.off {
			continue
		}
		if n := len(out); n > 0 && s.off <= out[n-1].end+gapBytes {
			out[n-1].end = max(out[n-1].end, s.end)
			continue
		}
		out = append(out, &run{span: s})
	}
	return out
}

// window gives one column of one row group its bytes.
type window struct {
	r     *Reader
	runs  []*run // shared with the other columns; empty = own window
	last  *run   // the one that was read last
	buf   []byte
	off   int64
	limit int64 // no byte from here on is wanted
	size  int
}

func (w *window) reset(runs []*run, limit int64) {
	w.runs, w.last, w.limit = runs, nil, limit
	w.buf, w.off, w.size = w.buf[:0], 0, minWindow
}

// get returns bytes off..off+n, valid until the next get, and more behind them
// when more are there. n is at least 1.
func (w *window) get(ctx context.Context, off int64, n int) ([]byte, error) {
	if r := w.r; r.mem != nil && off >= r.memOff && off+int64(n) <= r.memOff+int64(len(r.mem)) {
		return r.mem[off-r.memOff:], nil
	}
	// Runs are in order and do not overlap.
	i, found := slices.BinarySearchFunc(w.runs, off, func(u *run, off int64) int { return cmp.Compare(u.off, off) })
	if !found {
		i--
	}
	if i >= 0 && off+int64(n) <= w.runs[i].end {
		u := w.runs[i]
		if u.buf == nil {
			if w.last != nil && w.last.own {
				w.last.buf = nil
			}
			w.last = u
			b, err := w.r.readAt(ctx, u.off, int(u.end-u.off), nil)
			if err != nil {
				return nil, err
			}
			u.buf = b
		}
		return u.buf[off-u.off:], nil
	}
	if off >= w.off && off+int64(n) <= w.off+int64(len(w.buf)) {
		return w.buf[off-w.off:], nil
	}
	if off < 0 || int64(n) > w.r.size-off {
		return nil, w.r.corrupt(off, "%d bytes are asked for beyond the end of the file", n)
	}
	want := max(n, w.size)
	if left := w.limit - off; left < int64(want) {
		want = max(n, int(max(left, 0)))
	}
	w.size = min(w.size*2, maxWindow)
	// What is already here need not be read again.
	keep := 0
	if off >= w.off && off < w.off+int64(len(w.buf)) {
		keep = copy(w.buf, w.buf[off-w.off:])
	}
	if cap(w.buf) < want {
		b := getBuf(want)
		copy(b, w.buf[:keep])
		putBuf(w.buf)
		w.buf = b
	}
	w.buf = w.buf[:want]
	b, err := w.r.readAt(ctx, off+int64(keep), want-keep, w.buf[keep:keep:want])
	if err != nil {
		w.buf = w.buf[:0]
		return nil, err
	}
	if len(b) > 0 && &b[0] != &w.buf[keep] { // from memory
		copy(w.buf[keep:], b)
	}
	w.off = off
	return w.buf, nil
}
