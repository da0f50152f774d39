package fileio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"gocloud.dev/blob"
)

const (
	// streamFrom is the size from which a file goes to the store while it is
	// written; smaller ones are sent at once by Close.
	streamFrom = 4 << 20
	// putTimeout bounds a conditional PUT with all its attempts. It does not end
	// with the statement: a request that is under way may succeed at any time, so
	// who asked has to hear of it.
	putTimeout = time.Minute
	// putAttempts is how often a conditional PUT is sent, each time with the
	// attempts that the store's client makes of its own.
	putAttempts = 5
	// putID is the metadata that tells whose an object is.
	putID = "paimonsqlput"
	// objectType keeps the library from guessing it from the content.
	objectType = "application/octet-stream"
)

// UncertainError says that a conditional PUT got no answer: the object may be
// there, or appear later. Who depends on it looks, and must not take an absent
// object for a failed PUT.
type UncertainError struct {
	Path string
	Err  error
}

func (e *UncertainError) Error() string {
	return "put " + e.Path + ": it is not known whether the object was stored: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *UncertainError) Unwrap() error { return e.Err }

// errAborted is what the store's client reads when a file is given up.
var errAborted = errors.New("the file is given up")

// abortWait is how long Abort waits for requests that are under way.
const abortWait = 10 * time.Second

// blobWriter keeps a small file in memory and streams a big one through a pipe. A
// stream to S3 is given up by an error of what the client reads, not by the end of
// its context: with that, an upload in several parts could not be taken back, and
// its parts would stay in the store, unseen and paid for.
type blobWriter struct {
	ctx    context.Context
	s      store
	key    string
	path   string
	buf    bytes.Buffer
	pw     *io.PipeWriter // nil while everything fits buf
	cancel context.CancelFunc
	sent   chan error // the stream's outcome
	failed error
	done   bool
}

// Create returns a writer for a new object, which appears when it is closed. The
// writer does not end with ctx: a file may be closed by others than opened it.
func (b *Blob) Create(ctx context.Context, p string) (Writer, error) {
	s, key, err := b.resolve(ctx, p)
	if err != nil {
		return nil, err
	}
	return &blobWriter{ctx: context.WithoutCancel(ctx), s: s, key: key, path: p}, nil
}

func (w *blobWriter) Write(p []byte) (int, error) {
	switch {
	case w.done:
		return 0, fmt.Errorf("write %s: %w", w.path, io.ErrClosedPipe)
	case w.failed != nil:
		return 0, w.failed
	case w.pw == nil && w.buf.Len()+len(p) < streamFrom:
		return w.buf.Write(p)
	}
	if w.pw == nil {
		w.stream()
		if _, err := w.pw.Write(w.buf.Bytes()); err != nil {
			return 0, w.fail(err)
		}
		w.buf = bytes.Buffer{}
	}
	n, err := w.pw.Write(p)
	if err != nil {
		return n, w.fail(err)
	}
	return n, nil
}

// stream begins to send what is written.
func (w *blobWriter) stream() {
	pr, pw := io.Pipe()
	ctx, cancel := context.WithCancel(w.ctx)
	w.pw, w.cancel, w.sent = pw, cancel, make(chan error, 1)
	var body io.Reader = pr
	if !w.s.stopsByReader {
		body = &stoppingReader{pr, cancel}
	}
	go func() {
		err := w.s.Upload(ctx, w.key, body, &blob.WriterOptions{ContentType: objectType})
		if err == nil {
			err = io.ErrClosedPipe // for a writer that goes on; Close has its answer from sent
			w.sent <- nil
		} else {
			w.sent <- err
		}
		pr.CloseWithError(err)
	}()
}

// stoppingReader ends the upload's context when there is an error instead of more
// bytes: the library stores what it has otherwise.
type stoppingReader struct {
	r    io.Reader
	stop func()
}

func (s *stoppingReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // a pipe's end is io.EOF itself
		s.stop()
	}
	return n, err
}

func (w *blobWriter) fail(err error) error {
	w.failed = blobError(w.ctx, "write", w.path, err)
	return w.failed
}

// Close makes the object appear.
func (w *blobWriter) Close() error {
	if w.done {
		return w.failed
	}
	if w.failed != nil {
		_ = w.Abort()
		return w.failed
	}
	w.done = true
	var err error
	if w.pw != nil {
		_ = w.pw.Close()
		err = <-w.sent
		w.cancel()
	} else {
		err = w.s.put(w.ctx, w.key, w.buf.Bytes(), false, nil)
	}
	w.buf = bytes.Buffer{}
	w.failed = blobError(w.ctx, "write", w.path, err)
	return w.failed
}

// Abort drops what was written; nothing appears.
func (w *blobWriter) Abort() error {
	if w.done {
		return nil
	}
	w.done = true
	w.buf = bytes.Buffer{}
	if w.pw == nil {
		return nil
	}
	w.pw.CloseWithError(errAborted)
	t := time.NewTimer(abortWait)
	defer t.Stop()
	select {
	case <-w.sent: //nolint:errcheck // given up: its outcome does not matter
	case <-t.C:
	}
	w.cancel()
	return nil
}

// put stores data in one request; with absent only where there is no object yet.
func (s store) put(ctx context.Context, key string, data []byte, absent bool, meta map[string]string) error {
	return s.Upload(ctx, key, bytes.NewReader(data), &blob.WriterOptions{ContentType: objectType, IfNotExist: absent, Metadata: meta})
}

// Put stores data.
func (b *Blob) Put(ctx context.Context, p string, data []byte) error {
	s, key, err := b.resolve(ctx, p)
	if err != nil {
		return err
	}
	return blobError(ctx, "put", p, s.put(ctx, key, data, false, nil))
}

// PutHint stores data.
func (b *Blob) PutHint(ctx context.Context, p string, data []byte) error { return b.Put(ctx, p, data) }

// Publish is PutIfAbsent: what was closed is durable.
func (b *Blob) Publish(ctx context.Context, p string, data []byte, _ ...string) error {
	return b.PutIfAbsent(ctx, p, data)
}

// PutIfAbsent stores data by a conditional PUT. An answer may get lost, and the
// client below asks again by itself, so that "there is an object already" may mean
// our own: a UUID in the object's metadata tells. What stays unknown after all
// attempts is an *UncertainError.
func (b *Blob) PutIfAbsent(ctx context.Context, p string, data []byte) error {
	s, key, err := b.resolve(ctx, p)
	if err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := b.checkConditional(ctx); err != nil {
		return err
	}
	// From here on the statement's end does not matter.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), putTimeout)
	defer cancel()
	return s.putIfAbsent(ctx, key, p, data)
}

func (s store) putIfAbsent(ctx context.Context, key, p string, data []byte) error {
	id := uuid.NewString()
	uncertain := false // an attempt may have succeeded, or may yet
	var last error
	for try := range putAttempts {
		err := s.put(ctx, key, data, true, map[string]string{putID: id})
		if err == nil {
			return nil
		}
		switch verdict(err) {
		case taken:
			ours, err := s.isOurs(ctx, key, id)
			if err != nil {
				return &UncertainError{Path: p, Err: blobError(ctx, "stat", p, err)}
			}
			if ours {
				return nil
			}
			return fmt.Errorf("put %s: %w", p, ErrExist)
		case refused:
			if !uncertain {
				return blobError(ctx, "put", p, err)
			}
		case unknownVerdict:
			uncertain = true
		case again: // two at once: the store decided for neither, or for the other
		}
		last = err
		if wait(ctx, time.Duration(50<<try)*time.Millisecond) != nil {
			break
		}
	}
	if !uncertain {
		return blobError(ctx, "put", p, last)
	}
	return &UncertainError{Path: p, Err: blobError(ctx, "put", p, last)}
}

// isOurs reports whether the object at key was put under id.
func (s store) isOurs(ctx context.Context, key, id string) (bool, error) {
	a, err := s.Attributes(ctx, key)
	if isNotFound(err) {
		return false, nil // it was there a moment ago, and somebody deleted it
	}
	if err != nil {
		return false, err
	}
	return a.Metadata[putID] == id, nil
}

// wait sleeps about d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d/2 + rand.N(d))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// checkConditional tries out, once, that the store decides conditional PUTs. One
// that ignores the condition, as older S3-compatible ones do, would let two
// commits take the same snapshot, and the rows of one would be gone.
func (b *Blob) checkConditional(ctx context.Context) error {
	b.probe.Lock()
	defer b.probe.Unlock()
	if b.probed {
		return b.refused
	}
	p := ".paimon-sql/probe-" + uuid.NewString()
	s, key := b.store, b.prefix+p
	if err := s.putIfAbsent(ctx, key, p, nil); err != nil {
		var un *UnsupportedError
		if errors.As(err, &un) {
			b.probed, b.refused = true, err
		}
		return err
	}
	defer func() { _ = s.delete(context.WithoutCancel(ctx), key) }()
	switch err := s.put(ctx, key, nil, true, nil); {
	case err == nil:
		b.probed, b.refused = true, &UnsupportedError{Feature: "writing to an object store without conditional PUT (If-None-Match)"}
	case verdict(err) == taken:
		b.probed = true
	default:
		return blobError(ctx, "put", p, err)
	}
	return b.refused
}
