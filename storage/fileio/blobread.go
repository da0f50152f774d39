package fileio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"gocloud.dev/blob"
)

const (
	// headBytes is what Open asks for, together with the size: small files are
	// then here, and no second request is made.
	headBytes = 64 << 10
	// readAhead is the least that a read asks for: a request costs about as much
	// time as the transfer of this many bytes.
	readAhead = 128 << 10
	// readAttempts is how often the rest of a broken answer is asked for. Requests
	// that fail before it are repeated by the store's own client.
	readAttempts = 4
	// readTimeout bounds one read of an open file, whose caller gives no context.
	readTimeout = 5 * time.Minute
)

// blobFile reads an object by ranges. It keeps the last block that it read, at
// most readAhead bytes, so that small reads side by side are one request.
type blobFile struct {
	s    store
	key  string
	path string
	size int64

	mu   sync.Mutex // guards the two below; the bytes of a block never change
	off  int64
	data []byte
}

var _ File = (*blobFile)(nil)

// Open opens an object: one request that brings its size and its first bytes.
func (b *Blob) Open(ctx context.Context, p string) (File, error) {
	s, key, err := b.resolve(ctx, p)
	if err != nil {
		return nil, err
	}
	f := &blobFile{s: s, key: key, path: p}
	f.size, f.data, err = s.readRange(ctx, key, 0, headBytes)
	if err == nil || isNotFound(err) {
		return f.orError(ctx, err)
	}
	// A range of an empty object is an error to some stores.
	a, aerr := s.Attributes(ctx, key)
	if aerr != nil || a.Size > 0 {
		return f.orError(ctx, err)
	}
	return f, nil
}

func (f *blobFile) orError(ctx context.Context, err error) (File, error) {
	if err != nil {
		return nil, blobError(ctx, "open", f.path, err)
	}
	return f, nil
}

func (f *blobFile) Close() error { f.mu.Lock(); f.data = nil; f.mu.Unlock(); return nil }
func (f *blobFile) Size() int64  { return f.size }
func (f *blobFile) Path() string { return f.path }
func (f *blobFile) Gap() int64   { return readAhead }

// ReadAt fills p from off on; io.EOF when the object ends before.
func (f *blobFile) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read %s: negative offset", f.path)
	}
	if off >= f.size {
		return 0, io.EOF
	}
	var end error
	if int64(len(p)) > f.size-off {
		p, end = p[:f.size-off], io.EOF
	}
	if f.fromBlock(p, off) {
		return len(p), end
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	if len(p) >= readAhead {
		n, err := f.s.readInto(ctx, f.key, off, p)
		if err != nil {
			return n, f.readError(ctx, err)
		}
		return n, end
	}
	_, data, err := f.s.readRange(ctx, f.key, off, min(readAhead, f.size-off))
	if err != nil {
		return copy(p, data), f.readError(ctx, err)
	}
	n := copy(p, data)
	if n < len(p) {
		return n, f.readError(ctx, io.ErrUnexpectedEOF)
	}
	f.mu.Lock()
	f.off, f.data = off, data
	f.mu.Unlock()
	return n, end
}

// fromBlock answers a read from the block at hand.
func (f *blobFile) fromBlock(p []byte, off int64) bool {
	f.mu.Lock()
	from, data := f.off, f.data
	f.mu.Unlock()
	if off < from || off+int64(len(p)) > from+int64(len(data)) {
		return false
	}
	copy(p, data[off-from:])
	if len(p) == int(f.size) {
		f.mu.Lock()
		f.data = nil // who reads a file whole keeps it
		f.mu.Unlock()
	}
	return true
}

func (f *blobFile) readError(ctx context.Context, err error) error {
	return blobError(ctx, "read", f.path, err)
}

// readRange reads up to n bytes from off on, and tells the object's size. data has
// what came before an error.
func (s store) readRange(ctx context.Context, key string, off, n int64) (size int64, data []byte, err error) {
	r, err := s.NewRangeReader(ctx, key, off, n, nil)
	if err != nil {
		return 0, nil, err
	}
	size = r.Size()
	data = make([]byte, max(0, min(n, size-off)))
	k, err := io.ReadFull(r, data)
	_ = r.Close()
	if err != nil {
		var m int
		m, err = s.resume(ctx, key, off, data, k, err)
		data = data[:m]
	}
	return size, data, err
}

// readInto fills p from off on.
func (s store) readInto(ctx context.Context, key string, off int64, p []byte) (int, error) {
	return s.resume(ctx, key, off, p, 0, nil)
}

// resume fills p[n:] after an answer broke off with err.
func (s store) resume(ctx context.Context, key string, off int64, p []byte, n int, err error) (int, error) {
	for try := 0; n < len(p); try++ {
		if try == readAttempts || ctx.Err() != nil || isNotFound(err) {
			return n, err
		}
		var r *blob.Reader
		if r, err = s.NewRangeReader(ctx, key, off+int64(n), int64(len(p)-n), nil); err != nil {
			return n, err // the client has tried several times
		}
		k, e := io.ReadFull(r, p[n:])
		_ = r.Close()
		n, err = n+k, e
		if errors.Is(e, io.ErrUnexpectedEOF) && off+int64(n) >= r.Size() {
			return n, e // the object is shorter than its size was
		}
	}
	return n, nil
}

// ReadFile reads an object whole, in one request.
func (b *Blob) ReadFile(ctx context.Context, p string) ([]byte, error) {
	s, key, err := b.resolve(ctx, p)
	if err != nil {
		return nil, err
	}
	r, err := s.NewReader(ctx, key, nil)
	if err != nil {
		return nil, blobError(ctx, "read", p, err)
	}
	data := make([]byte, max(0, r.Size()))
	n, err := io.ReadFull(r, data)
	_ = r.Close()
	if err != nil && len(data) > 0 {
		if n, err = s.resume(ctx, key, 0, data, n, err); err != nil {
			return nil, blobError(ctx, "read", p, err)
		}
	}
	return data[:n], nil
}
