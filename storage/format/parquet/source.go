package parquet

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math/bits"
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

// bufPools hold read windows and decompressed pages, by size: pool i has buffers of
// 2^i bytes or more, below twice that. A buffer goes back when its column reader is
// closed or goes on.
var bufPools [24]sync.Pool

const minBufBits = 12

func getBuf(n int) []byte {
	i := max(bits.Len(uint(max(n, 1)-1)), minBufBits)
	if i >= len(bufPools) {
		return make([]byte, n)
	}
	if p, ok := bufPools[i].Get().(*[]byte); ok {
		return (*p)[:n]
	}
	return make([]byte, n, 1<<i)
}

func putBuf(b []byte) {
	if i := bits.Len(uint(cap(b))) - 1; i >= minBufBits && i < len(bufPools) {
		bufPools[i].Put(&b)
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
	// upTo is the first row of the row group that has no need of it; see lateRuns.
	upTo   int64
	pooled bool // buf goes back to bufPools
}

// runSet are the runs of a row group, in order of where they begin.
type runSet struct {
	runs []*run
	// overlap says that a run may lie in the gap of another.
	overlap bool
}

// drop gives up the runs of which no row from at on has a need: what columns made of
// their pages was copied.
func (s *runSet) drop(at int64) {
	if s == nil {
		return
	}
	s.runs = slices.DeleteFunc(s.runs, func(u *run) bool {
		if u.upTo > at {
			return false
		}
		if u.pooled {
			putBuf(u.buf)
			u.buf = nil
		}
		return true
	})
}

// of returns the run that holds bytes off..off+n, nil = none.
func (s *runSet) of(off int64, n int) *run {
	if s == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(s.runs, off, func(u *run, off int64) int { return cmp.Compare(u.off, off) })
	if !found {
		i--
	}
	for ; i >= 0; i-- {
		if off+int64(n) <= s.runs[i].end {
			return s.runs[i]
		}
		if !s.overlap {
			break
		}
	}
	return nil
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
	runs  *runSet // shared with the other columns; nil or empty = own window
	last  *run    // the one that was read last
	buf   []byte
	off   int64
	limit int64 // no byte from here on is wanted
	size  int
}

func (w *window) reset(runs *runSet, limit int64) {
	w.runs, w.last, w.limit = runs, nil, limit
	w.buf, w.off, w.size = w.buf[:0], 0, minWindow
	if runs != nil && runs.overlap {
		w.size = lateWindow
	}
}

// get returns bytes off..off+n, valid until the next get, and more behind them
// when more are there. n is at least 1.
func (w *window) get(ctx context.Context, off int64, n int) ([]byte, error) {
	if r := w.r; r.mem != nil && off >= r.memOff && off+int64(n) <= r.memOff+int64(len(r.mem)) {
		return r.mem[off-r.memOff:], nil
	}
	if u := w.runs.of(off, n); u != nil {
		if u.buf == nil {
			if w.last != nil && w.last.own {
				w.last.buf = nil
			}
			w.last = u
			var mine []byte
			if !u.own {
				mine = getBuf(int(u.end - u.off))
			}
			b, err := w.r.readAt(ctx, u.off, int(u.end-u.off), mine)
			if err != nil {
				return nil, err
			}
			u.buf, u.pooled = b, cap(mine) > 0 && &b[0] == &mine[:1][0] // else of the file in memory
		}
		return u.buf[off-u.off:], nil
	}
	if off >= w.off && off+int64(n) <= w.off+int64(len(w.buf)) {
		return w.buf[off-w.off:], nil
	}
	if off < 0 || int64(n) > w.r.size-off {
		return nil, w.r.corrupt(off, "%d bytes are asked for beyond the end of the file", n)
	}
	if len(w.buf) > 0 && (off < w.off || off > w.off+int64(len(w.buf))) {
		w.size = lateWindow // what lies between was not wanted
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
