package schema

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// ErrNotFound says that a schema file, or every one, is missing.
var ErrNotFound = errors.New("schema not found")

// Manager reads the schema files of one branch of one table. A schema file is
// looked at anew on every call, because a dropped and re-created table uses the
// same names; it is read again unless its size and time are those of a reading
// that is settled, and parsed again when its bytes are others. The same goes for
// the list of files.
type Manager struct {
	io  fileio.FileIO
	dir string // of the schema files

	mu    sync.Mutex // guards all below
	cache map[int64]cached
	// era changes whenever a file turns out to be new or another than before: the
	// table may have been dropped and made anew, with other schemas under all ids.
	era int
	ids listing
	// staged are schemas that are not on disk: see Stage.
	staged map[int64]*Table
}

type cached struct {
	raw   []byte
	table *Table
	mod   time.Time // zero = not settled
	// era is the manager's when the file was last looked at.
	era int
}

// listing is what a directory held when it was last modified at mod; a zero mod is
// no settled listing.
type listing struct {
	mod time.Time
	ids []int64
}

// NewManager reads the schemas below root: the table's directory, or that of a
// branch.
func NewManager(io fileio.FileIO, root string) *Manager {
	return &Manager{io: io, dir: root + "/schema", cache: map[int64]cached{}}
}

// Path returns the path of schema id.
func (m *Manager) Path(id int64) string { return fmt.Sprintf("%s/schema-%d", m.dir, id) }

// IDs returns the ids of all schema files, ascending.
func (m *Manager) IDs(ctx context.Context) ([]int64, error) {
	ids, err := m.list(ctx)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	for id := range m.staged {
		ids = append(ids, id)
	}
	m.mu.Unlock()
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// list returns the ids of the files, which are the caller's.
func (m *Manager) list(ctx context.Context) ([]int64, error) {
	st, err := m.io.Stat(ctx, m.dir)
	if errors.Is(err, fileio.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	l := m.ids
	m.mu.Unlock()
	if !l.mod.IsZero() && l.mod.Equal(st.ModTime) {
		return slices.Clone(l.ids), nil
	}
	began := time.Now()
	es, err := m.io.List(ctx, m.dir)
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, e := range es {
		if s, ok := strings.CutPrefix(e.Name, "schema-"); ok && !e.Dir {
			if id, err := strconv.ParseInt(s, 10, 64); err == nil && id >= 0 {
				ids = append(ids, id)
			}
		}
	}
	l = listing{}
	if fileio.Settled(st.ModTime, began) {
		l = listing{st.ModTime, slices.Clone(ids)}
	}
	m.mu.Lock()
	m.ids = l
	m.mu.Unlock()
	return ids, nil
}

// Stage makes m answer with t as schema t.ID although there is no such file: what
// a transaction sees before it commits. m must belong to that transaction alone.
func (m *Manager) Stage(t *Table) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.staged == nil {
		m.staged = map[int64]*Table{}
	}
	m.staged[t.ID] = t
}

func (m *Manager) stagedAt(id int64) *Table {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.staged[id]
}

// Commit publishes t as schema t.ID, durably, unless there is one: then the
// error wraps fileio.ErrExist and somebody else was faster.
func (m *Manager) Commit(ctx context.Context, t *Table) error {
	raw, err := Encode(t)
	if err != nil {
		return err
	}
	// What cannot be read back must not be published.
	if _, err := Parse(raw); err != nil {
		return fmt.Errorf("schema %d does not read back: %w", t.ID, err)
	}
	err = m.io.PutIfAbsent(ctx, m.Path(t.ID), raw)
	if err == nil || errors.Is(err, fileio.ErrExist) {
		return err
	}
	// The reply may have been lost after the work was done.
	if there, e := m.io.ReadFile(context.WithoutCancel(ctx), m.Path(t.ID)); e == nil && bytes.Equal(there, raw) {
		return nil
	}
	return err
}

// Latest returns the newest schema, or ErrNotFound when there is none.
func (m *Manager) Latest(ctx context.Context) (*Table, error) {
	ids, err := m.IDs(ctx)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%s: %w", m.dir, ErrNotFound)
	}
	return m.Get(ctx, ids[len(ids)-1])
}

// Get returns schema id. A missing file is ErrNotFound, one that does not parse
// a *fileio.CorruptionError.
func (m *Manager) Get(ctx context.Context, id int64) (*Table, error) {
	if t := m.stagedAt(id); t != nil {
		return t, nil
	}
	path := m.Path(id)
	st, err := m.io.Stat(ctx, path)
	if errors.Is(err, fileio.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", path, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	c, ok := m.cache[id]
	m.mu.Unlock()
	if ok && !c.mod.IsZero() && c.mod.Equal(st.ModTime) && int64(len(c.raw)) == st.Size {
		m.seen(id)
		return c.table, nil
	}
	began := time.Now()
	var mod time.Time
	if fileio.Settled(st.ModTime, began) {
		mod = st.ModTime
	}
	var last error
	// Some writers create the file first and fill it afterwards.
	for wait := time.Millisecond; ; wait *= 4 {
		raw, err := m.io.ReadFile(ctx, path)
		if errors.Is(err, fileio.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", path, ErrNotFound)
		}
		if err != nil {
			return nil, err
		}
		if ok && bytes.Equal(c.raw, raw) {
			if int64(len(raw)) == st.Size {
				m.mu.Lock()
				if !c.mod.IsZero() || c.table.TimeMillis == 0 { // it may have been written again
					m.era++
				}
				m.cache[id] = cached{raw, c.table, mod, m.era}
				m.mu.Unlock()
			}
			return c.table, nil
		}
		t, err := Parse(raw)
		if err == nil && t.ID != id {
			err = fmt.Errorf("schema names itself %d", t.ID)
		}
		if err == nil {
			m.mu.Lock()
			m.era++
			m.cache[id] = cached{raw, t, mod, m.era}
			m.mu.Unlock()
			return t, nil
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
	return nil, &fileio.CorruptionError{Path: path, Offset: -1, Reason: "schema does not parse", Err: last}
}

// seen says that the file of a schema is still the one that is cached.
func (m *Manager) seen(id int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, ok := m.cache[id]; ok {
		c.era = m.era
		m.cache[id] = c
	}
}

// Remember returns schema id without looking at its file when that was looked at
// since the last one that was new; use it for the schemas that data files name, after
// Get or Latest has found the one that they are read with.
func (m *Manager) Remember(ctx context.Context, id int64) (*Table, error) {
	m.mu.Lock()
	c, ok := m.cache[id]
	ok = ok && c.era == m.era
	t := m.staged[id]
	m.mu.Unlock()
	switch {
	case t != nil:
		return t, nil
	case ok:
		return c.table, nil
	}
	return m.Get(ctx, id)
}
