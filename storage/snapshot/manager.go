package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// ErrNotFound is matched by every error that says a named state does not exist.
var ErrNotFound = errors.New("snapshot not found")

// NotFoundError says which state is missing and what can be read instead.
type NotFoundError struct {
	Ref              Ref
	Earliest, Latest int64 // readable snapshot ids; 0 = none
	Expired          bool  // an id below the earliest
	Reason           string
}

func (e *NotFoundError) Error() string {
	switch {
	case e.Reason != "":
		return e.Reason
	case e.Expired:
		return fmt.Sprintf("%s has expired; the oldest readable snapshot is %d, the newest %d", e.Ref, e.Earliest, e.Latest)
	case e.Latest == 0:
		return fmt.Sprintf("%s does not exist; the table has no snapshot", e.Ref)
	case e.Ref.Kind == Tag:
		return fmt.Sprintf("%s does not exist", e.Ref)
	}
	return fmt.Sprintf("%s does not exist; snapshots %d to %d can be read", e.Ref, e.Earliest, e.Latest)
}

// Is makes errors.Is(err, ErrNotFound) true.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// Manager reads the snapshots and tags of one branch of one table. Files are
// read on every call: a rollback makes ids be used again. Parsing is skipped
// while the bytes stay the same.
type Manager struct {
	io   fileio.FileIO
	root string // the table's directory, or that of a branch

	mu    sync.Mutex // guards cache
	cache map[string]cachedSnapshot

	// known is the newest id that this process saw, 0 = none: where the search for
	// the newest one starts.
	known atomic.Int64

	pinMu sync.Mutex // guards pins
	pins  map[int64]int
}

type cachedSnapshot struct {
	raw  []byte
	snap *Snapshot
}

// BranchRoot returns the directory of a branch's metadata below a table's
// directory; "" and "main" are the table itself.
func BranchRoot(table, branch string) string {
	if branch == "" || branch == "main" {
		return table
	}
	return table + "/branch/branch-" + branch
}

// NewManager reads the snapshots below root (see BranchRoot).
func NewManager(io fileio.FileIO, root string) *Manager {
	return &Manager{io: io, root: root, cache: map[string]cachedSnapshot{}}
}

// Path returns the path of snapshot id.
func (m *Manager) Path(id int64) string { return fmt.Sprintf("%s/snapshot/snapshot-%d", m.root, id) }

// TagPath returns the path of a tag.
func (m *Manager) TagPath(name string) string { return m.root + "/tag/tag-" + name }

// ChangelogPath returns the path of a long-lived changelog.
func (m *Manager) ChangelogPath(id int64) string {
	return fmt.Sprintf("%s/changelog/changelog-%d", m.root, id)
}

// read parses one file, trying again for a moment while it is empty or partial:
// not every file system publishes atomically.
func (m *Manager) read(ctx context.Context, path string) (*Snapshot, error) {
	var last error
	for wait := time.Millisecond; ; wait *= 4 {
		raw, err := m.io.ReadFile(ctx, path)
		if err != nil {
			return nil, err
		}
		m.mu.Lock()
		c, ok := m.cache[path]
		m.mu.Unlock()
		if ok && bytes.Equal(c.raw, raw) {
			return c.snap, nil
		}
		s, err := Parse(raw)
		if err == nil {
			m.keep(path, raw, s)
			return s, nil
		}
		var ve *VersionError
		if errors.As(err, &ve) {
			return nil, &fileio.UnsupportedError{Feature: fmt.Sprintf("metadata of a future version (snapshot version %d in %s)", ve.Version, path)}
		}
		last = err
		if wait > 64*time.Millisecond {
			break
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(wait):
		}
	}
	return nil, &fileio.CorruptionError{Path: path, Offset: -1, Reason: "snapshot does not parse", Err: last}
}

func (m *Manager) keep(path string, raw []byte, s *Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.cache) > 1024 {
		clear(m.cache)
	}
	m.cache[path] = cachedSnapshot{raw, s}
}

// exists reports whether snapshot id is there.
func (m *Manager) exists(ctx context.Context, id int64) (bool, error) {
	_, err := m.io.Stat(ctx, m.Path(id))
	if errors.Is(err, fileio.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// hint reads EARLIEST or LATEST; false when it is absent or not a number.
func (m *Manager) hint(ctx context.Context, name string) (int64, bool) {
	b, err := m.io.ReadFile(ctx, m.root+"/snapshot/"+name)
	if err != nil {
		return 0, false
	}
	id, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return id, err == nil && id > 0
}

// IDs lists all snapshot ids, ascending.
func (m *Manager) IDs(ctx context.Context) ([]int64, error) {
	return m.list(ctx, "snapshot", "snapshot-")
}

// ChangelogIDs lists the ids of long-lived changelogs, ascending.
func (m *Manager) ChangelogIDs(ctx context.Context) ([]int64, error) {
	return m.list(ctx, "changelog", "changelog-")
}

func (m *Manager) list(ctx context.Context, dir, prefix string) ([]int64, error) {
	es, err := m.io.List(ctx, m.root+"/"+dir)
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, e := range es {
		if s, ok := strings.CutPrefix(e.Name, prefix); ok && !e.Dir {
			if id, err := strconv.ParseInt(s, 10, 64); err == nil && id > 0 {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// LatestID returns the newest id, 0 when there is no snapshot. The hint may be
// stale: it is taken only when the next snapshot does not exist.
func (m *Manager) LatestID(ctx context.Context) (int64, error) {
	if id, ok := m.hint(ctx, "LATEST"); ok {
		next, err := m.exists(ctx, id+1)
		if err != nil {
			return 0, err
		}
		if !next {
			if here, err := m.exists(ctx, id); err != nil || here {
				return id, err
			}
		}
	}
	ids, err := m.IDs(ctx)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return ids[len(ids)-1], nil
}

// EarliestID returns the oldest id, 0 when there is no snapshot.
func (m *Manager) EarliestID(ctx context.Context) (int64, error) {
	if id, ok := m.hint(ctx, "EARLIEST"); ok {
		if here, err := m.exists(ctx, id); err != nil || here {
			return id, err
		}
	}
	ids, err := m.IDs(ctx)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return ids[0], nil
}

// Latest returns the newest snapshot, nil when there is none.
func (m *Manager) Latest(ctx context.Context) (*Snapshot, error) {
	// The newest snapshot that was seen before is the newest still when it is
	// there and the next one is not. This saves the hint, and survives a stale one.
	for id := m.known.Load(); id > 0; id++ {
		next, err := m.exists(ctx, id+1)
		if err != nil {
			return nil, err
		}
		if next && id-m.known.Load() < 8 {
			continue
		}
		if !next {
			s, err := m.read(ctx, m.Path(id))
			if !errors.Is(err, fileio.ErrNotExist) {
				m.known.Store(id)
				return s, err
			}
		}
		break
	}
	// Between finding the id and reading it the snapshot may be rolled back.
	for range 3 {
		id, err := m.LatestID(ctx)
		if err != nil || id == 0 {
			m.known.Store(0)
			return nil, err
		}
		s, err := m.read(ctx, m.Path(id))
		if !errors.Is(err, fileio.ErrNotExist) {
			if err == nil {
				m.known.Store(id)
			}
			return s, err
		}
	}
	return nil, fmt.Errorf("latest snapshot of %s keeps changing", m.root)
}

// Get returns the snapshot with an id, or a *NotFoundError.
func (m *Manager) Get(ctx context.Context, id int64) (*Snapshot, error) {
	s, err := m.read(ctx, m.Path(id))
	if errors.Is(err, fileio.ErrNotExist) {
		return nil, m.notFound(ctx, Ref{Kind: ID, ID: id})
	}
	return s, err
}

func (m *Manager) notFound(ctx context.Context, r Ref) error {
	e := &NotFoundError{Ref: r}
	var err error
	if e.Earliest, err = m.EarliestID(ctx); err != nil {
		return err
	}
	if e.Latest, err = m.LatestID(ctx); err != nil {
		return err
	}
	e.Expired = r.Kind == ID && r.ID > 0 && r.ID < e.Earliest
	return e
}

// Tag returns the state that a tag holds. The tag file is a full copy of the
// snapshot, which may itself have expired.
func (m *Manager) Tag(ctx context.Context, name string) (*Snapshot, error) {
	if !validName(name) {
		return nil, m.notFound(ctx, Ref{Kind: Tag, Name: name})
	}
	s, err := m.read(ctx, m.TagPath(name))
	if errors.Is(err, fileio.ErrNotExist) {
		return nil, m.notFound(ctx, Ref{Kind: Tag, Name: name})
	}
	return s, err
}

func validName(s string) bool {
	return strings.TrimSpace(s) != "" && !strings.ContainsAny(s, "/\\\x00") && s != "." && s != ".."
}

// Tags lists the names of all tags.
func (m *Manager) Tags(ctx context.Context) ([]string, error) {
	es, err := m.io.List(ctx, m.root+"/tag")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range es {
		if s, ok := strings.CutPrefix(e.Name, "tag-"); ok && !e.Dir {
			out = append(out, s)
		}
	}
	return out, nil
}

// Changelog returns a long-lived changelog.
func (m *Manager) Changelog(ctx context.Context, id int64) (*Snapshot, error) {
	return m.read(ctx, m.ChangelogPath(id))
}

// AtTime returns the newest snapshot whose commit time is not after millis.
func (m *Manager) AtTime(ctx context.Context, millis int64) (*Snapshot, error) {
	lo, err := m.EarliestID(ctx)
	if err != nil {
		return nil, err
	}
	hi, err := m.LatestID(ctx)
	if err != nil {
		return nil, err
	}
	var found, oldest *Snapshot
	for lo <= hi && lo > 0 {
		mid := lo + (hi-lo)/2
		s, err := m.read(ctx, m.Path(mid))
		if errors.Is(err, fileio.ErrNotExist) { // expired since
			lo = mid + 1
			continue
		}
		if err != nil {
			return nil, err
		}
		if s.TimeMillis <= millis {
			found, lo = s, mid+1
		} else {
			oldest, hi = s, mid-1
		}
	}
	if found == nil {
		e := m.notFound(ctx, Ref{Kind: AtTimestamp, Millis: millis})
		var nf *NotFoundError
		if errors.As(e, &nf) && oldest != nil {
			nf.Reason = fmt.Sprintf("there is no snapshot earlier than or at %s; the oldest readable one, %d, is of %s",
				formatMillis(millis), oldest.ID, formatMillis(oldest.TimeMillis))
		}
		return nil, e
	}
	return found, nil
}

func formatMillis(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05.000 UTC")
}

// AtWatermark returns the first snapshot whose watermark is at least w.
func (m *Manager) AtWatermark(ctx context.Context, w int64) (*Snapshot, error) {
	ids, err := m.IDs(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		s, err := m.read(ctx, m.Path(id))
		if errors.Is(err, fileio.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if s.Watermark != nil && *s.Watermark != NoWatermark && *s.Watermark >= w {
			return s, nil
		}
	}
	return nil, &NotFoundError{Ref: Ref{Kind: Version, Name: fmt.Sprintf("watermark-%d", w)},
		Reason: fmt.Sprintf("there is no snapshot with a watermark of %d or later", w)}
}

// Version resolves scan.version: a tag of that name first, then
// watermark-<number>, then a snapshot id.
func (m *Manager) Version(ctx context.Context, v string) (*Snapshot, error) {
	if validName(v) {
		s, err := m.read(ctx, m.TagPath(v))
		if !errors.Is(err, fileio.ErrNotExist) {
			return s, err
		}
	}
	if w, ok := strings.CutPrefix(v, "watermark-"); ok {
		if n, err := strconv.ParseInt(w, 10, 64); err == nil {
			return m.AtWatermark(ctx, n)
		}
	}
	if id, err := strconv.ParseInt(v, 10, 64); err == nil {
		return m.Get(ctx, id)
	}
	return nil, &NotFoundError{Ref: Ref{Kind: Version, Name: v}, Reason: fmt.Sprintf("version %q is neither a tag nor a snapshot id", v)}
}

// Resolve returns the snapshot that r names, whose Branch must be the one of m;
// nil for the latest of a table that has none.
func (m *Manager) Resolve(ctx context.Context, r Ref) (*Snapshot, error) {
	switch r.Kind {
	case ID:
		return m.Get(ctx, r.ID)
	case Tag:
		return m.Tag(ctx, r.Name)
	case Version:
		return m.Version(ctx, r.Name)
	case AtTimestamp:
		return m.AtTime(ctx, r.Millis)
	}
	return m.Latest(ctx)
}

// Branches lists the branches of the table whose directory is table.
func Branches(ctx context.Context, io fileio.FileIO, table string) ([]string, error) {
	es, err := io.List(ctx, table+"/branch")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range es {
		if s, ok := strings.CutPrefix(e.Name, "branch-"); ok && e.Dir {
			out = append(out, s)
		}
	}
	return out, nil
}
