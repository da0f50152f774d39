package objects

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// formatVersion is the newest form of a file that this program reads and the one
// that it writes.
const formatVersion = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Old versions are kept for readers that just found their number, and so that a
// writer which was held up between looking and publishing finds its name taken: it
// gives up after publishWithin, long before the name can become free.
const (
	keepVersions  = 16
	keepFor       = time.Hour
	publishWithin = 10 * time.Minute
)

// chain is a sequence of files <dir>/<prefix><n> of which only the newest counts.
// A file is one line of JSON, the envelope, and the body:
//
//	{"format":1,"kind":"objects","writer":"<uuid>","length":<bytes of body>,"crc32c":"<hex>"}\n
//	<body>
//
// Each version holds everything: what is older is only history.
type chain struct {
	io          fileio.FileIO
	dir, prefix string
	kind        string // what the files hold, checked when they are read
}

type envelope struct {
	Format int    `json:"format"`
	Kind   string `json:"kind"`
	Writer string `json:"writer"`
	Length int    `json:"length"`
	CRC    string `json:"crc32c"`
}

func (c *chain) path(n int64) string { return c.dir + "/" + c.prefix + strconv.FormatInt(n, 10) }

func (c *chain) numbers(ctx context.Context) ([]int64, error) {
	es, err := c.io.List(ctx, c.dir)
	if err != nil {
		return nil, err
	}
	var out []int64
	for _, e := range es {
		if s, ok := strings.CutPrefix(e.Name, c.prefix); ok && !e.Dir {
			if n, err := strconv.ParseInt(s, 10, 64); err == nil && n > 0 && strconv.FormatInt(n, 10) == s {
				out = append(out, n)
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

func (c *chain) exists(ctx context.Context, n int64) (bool, error) {
	_, err := c.io.Stat(ctx, c.path(n))
	if errors.Is(err, fileio.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// newest returns the number of the newest version, 0 when there is none. Known is
// the newest that the caller saw: when nothing changed, one look tells.
func (c *chain) newest(ctx context.Context, known int64) (int64, error) {
	for n := known; n > 0 && n < known+8; n++ {
		next, err := c.exists(ctx, n+1)
		if err != nil {
			return 0, err
		}
		if !next && n > known {
			return n, nil
		}
		if !next {
			// The usual case; only a folder that was taken away or put back makes it wrong.
			here, err := c.exists(ctx, n)
			if err != nil || here {
				return n, err
			}
			break
		}
	}
	ns, err := c.numbers(ctx)
	if err != nil || len(ns) == 0 {
		return 0, err
	}
	return ns[len(ns)-1], nil
}

// read returns the body of version n and who wrote it.
func (c *chain) read(ctx context.Context, n int64) (body []byte, writer string, err error) {
	p := c.path(n)
	raw, err := c.io.ReadFile(ctx, p)
	if err != nil {
		return nil, "", err
	}
	head, body, ok := bytes.Cut(raw, []byte{'\n'})
	var e envelope
	bad := func(why string, err error) ([]byte, string, error) {
		return nil, "", &fileio.CorruptionError{Path: p, Offset: -1, Reason: why, Err: err}
	}
	if err := json.Unmarshal(head, &e); err != nil {
		return bad("its first line does not parse", err)
	}
	if e.Format > formatVersion {
		return nil, "", &fileio.UnsupportedError{Feature: fmt.Sprintf("metadata of a future version (format %d in %s)", e.Format, p)}
	}
	switch {
	case !ok || e.Format < 1:
		return bad("it has no body", nil)
	case e.Kind != c.kind:
		return bad(fmt.Sprintf("it holds %q, not %q", e.Kind, c.kind), nil)
	case e.Length != len(body):
		return bad(fmt.Sprintf("its body has %d bytes, not %d", len(body), e.Length), nil)
	case e.CRC != checksum(body):
		return bad("its checksum does not match", nil)
	}
	return body, e.Writer, nil
}

func checksum(b []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(b, castagnoli)) }

// publish makes body version n; fileio.ErrExist when another writer was first.
// Since is when the caller looked at version n-1.
func (c *chain) publish(ctx context.Context, n int64, body []byte, since time.Time) error {
	id := uuid.NewString()
	head, err := json.Marshal(envelope{Format: formatVersion, Kind: c.kind, Writer: id, Length: len(body), CRC: checksum(body)})
	if err != nil {
		return err
	}
	if time.Since(since) > publishWithin {
		return fmt.Errorf("put %s: it took too long: %w", c.path(n), fileio.ErrExist)
	}
	err = c.io.PutIfAbsent(ctx, c.path(n), append(append(head, '\n'), body...))
	if err == nil {
		return nil
	}
	// The reply may have been lost on the way from an object store.
	if _, writer, rerr := c.read(ctx, n); rerr == nil && writer == id {
		return nil
	}
	return err
}

// clean removes versions long since replaced by n. What it cannot remove it leaves.
func (c *chain) clean(ctx context.Context, n int64, now time.Time) {
	es, err := c.io.List(ctx, c.dir)
	if err != nil {
		return
	}
	for _, e := range es {
		s, ok := strings.CutPrefix(e.Name, c.prefix)
		if !ok || e.Dir {
			continue
		}
		if v, err := strconv.ParseInt(s, 10, 64); err == nil && v < n-keepVersions && now.Sub(e.ModTime) > keepFor {
			_ = c.io.Delete(ctx, c.path(v))
		}
	}
}
