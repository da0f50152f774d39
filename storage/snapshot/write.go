package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// Create publishes s under its id once needs are on stable storage;
// fileio.ErrExist when the id is taken. raw is what was written. On any other
// error the snapshot may be there all the same.
func (m *Manager) Create(ctx context.Context, s *Snapshot, needs ...string) (raw []byte, err error) {
	if raw, err = Encode(s); err != nil {
		return nil, err
	}
	return raw, m.io.Publish(ctx, m.Path(s.ID), raw, needs...)
}

// Remember keeps s, which is at its path with the bytes raw, so that the next
// look at the newest snapshot parses nothing.
func (m *Manager) Remember(s *Snapshot, raw []byte) {
	m.keep(m.Path(s.ID), raw, s)
	m.known.Store(s.ID)
}

// Forget drops what is kept of snapshots that were deleted, so that no shortcut
// leads to them.
func (m *Manager) Forget() {
	m.known.Store(0)
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.cache)
}

// WriteLatest writes the LATEST hint. It is advice: readers check it, so it is
// not synced.
func (m *Manager) WriteLatest(ctx context.Context, id int64) error {
	return m.io.PutHint(ctx, m.root+"/snapshot/LATEST", strconv.AppendInt(nil, id, 10))
}

// WriteEarliest writes the EARLIEST hint.
func (m *Manager) WriteEarliest(ctx context.Context, id int64) error {
	return m.io.PutHint(ctx, m.root+"/snapshot/EARLIEST", strconv.AppendInt(nil, id, 10))
}

// HasEarliest reports whether there is an EARLIEST hint.
func (m *Manager) HasEarliest(ctx context.Context) bool {
	_, err := m.io.Stat(ctx, m.root+"/snapshot/EARLIEST")
	return err == nil
}

// At returns the snapshot with an id; fileio.ErrNotExist when it is not there.
func (m *Manager) At(ctx context.Context, id int64) (*Snapshot, error) {
	return m.read(ctx, m.Path(id))
}

// PutTag writes a tag file durably, over one of the same name.
func (m *Manager) PutTag(ctx context.Context, name string, s *Snapshot) error {
	if !validName(name) {
		return fmt.Errorf("tag name %q is not valid", name)
	}
	raw, err := Encode(s)
	if err != nil {
		return err
	}
	if err := m.io.Put(ctx, m.TagPath(name), raw); err != nil {
		return err
	}
	return m.io.Sync(ctx, m.TagPath(name))
}

// ValidTag reports whether name can be a tag's.
func ValidTag(name string) bool { return validName(name) }

// Pin keeps snapshot id from being expired by this process until release is
// called, which may be more than once.
func (m *Manager) Pin(id int64) (release func()) {
	m.pinMu.Lock()
	defer m.pinMu.Unlock()
	if m.pins == nil {
		m.pins = map[int64]int{}
	}
	m.pins[id]++
	done := false
	return func() {
		m.pinMu.Lock()
		defer m.pinMu.Unlock()
		if done {
			return
		}
		done = true
		if m.pins[id]--; m.pins[id] == 0 {
			delete(m.pins, id)
		}
	}
}

// Pinned returns the ids that are pinned, ascending.
func (m *Manager) Pinned() []int64 {
	m.pinMu.Lock()
	defer m.pinMu.Unlock()
	out := make([]int64, 0, len(m.pins))
	for id := range m.pins {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// IO returns the file system that m reads.
func (m *Manager) IO() fileio.FileIO { return m.io }

// Root returns the directory of the branch's metadata.
func (m *Manager) Root() string { return m.root }
