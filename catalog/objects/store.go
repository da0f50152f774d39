package objects

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// lookedAt is how long a state serves readers that do not ask for a fresh one.
const lookedAt = time.Second

// maxRaces bounds how often a change is tried against those of others.
const maxRaces = 200

// Store reads and changes the objects of one warehouse. Safe for concurrent use;
// a process should have one per warehouse.
type Store struct {
	io    fileio.FileIO
	files chain

	state  atomic.Pointer[State]
	looked atomic.Int64 // when state was the newest, unix nanoseconds

	read   sync.Mutex // held while the newest state is looked for
	write  sync.Mutex // held while this process makes a change: no race with itself
	notify atomic.Pointer[func(*State)]

	seqMu sync.Mutex // guards seqs
	seqs  map[uint32]*Counter
}

// NewStore returns the store of a warehouse. Nothing is read before it is asked for.
func NewStore(io fileio.FileIO) *Store {
	return &Store{io: io, files: chain{io: io, dir: Dir + "/objects", prefix: "state-", kind: "objects"}, seqs: map[uint32]*Counter{}}
}

// OnChange sets what is called, by the goroutine that notices, whenever this process
// sees another version than before, its own changes included.
func (s *Store) OnChange(f func(*State)) { s.notify.Store(&f) }

// State returns the newest state. Fresh asks for one that holds every change whose
// Update returned before the call, in any process, for the price of a look at the
// file system or two; otherwise a state that was the newest within the last second
// does.
func (s *Store) State(ctx context.Context, fresh bool) (*State, error) {
	if st := s.recent(fresh); st != nil {
		return st, nil
	}
	asked := time.Now()
	s.read.Lock()
	defer s.read.Unlock()
	// Whoever held the lock may have looked after this call began.
	if st := s.state.Load(); st != nil && s.looked.Load() > asked.UnixNano() {
		return st, nil
	}
	return s.look(ctx)
}

func (s *Store) recent(fresh bool) *State {
	if fresh || time.Now().UnixNano()-s.looked.Load() > int64(lookedAt) {
		return nil
	}
	return s.state.Load()
}

// look reads the newest state; s.read is held.
func (s *Store) look(ctx context.Context) (*State, error) {
	old := s.state.Load()
	var known int64
	if old != nil {
		known = old.version
	}
	for range 4 {
		began := time.Now()
		n, err := s.files.newest(ctx, known)
		if err != nil {
			return nil, err
		}
		if old != nil && n == old.version {
			s.looked.Store(began.UnixNano())
			return old, nil
		}
		if n == 0 {
			st := newState(0, 0, map[key]*Object{})
			s.keep(st, began)
			return st, nil
		}
		body, _, err := s.files.read(ctx, n)
		if errors.Is(err, fileio.ErrNotExist) {
			known = 0
			continue
		}
		if err != nil {
			return nil, err
		}
		st, err := parseState(n, body)
		if err != nil {
			return nil, &fileio.CorruptionError{Path: s.files.path(n), Offset: -1, Reason: "stored objects do not parse", Err: err}
		}
		s.keep(st, began)
		return st, nil
	}
	return nil, fmt.Errorf("the newest file in %s keeps changing", s.files.dir)
}

// keep makes st what readers see; s.read is held.
func (s *Store) keep(st *State, at time.Time) {
	s.state.Store(st)
	s.looked.Store(at.UnixNano())
	if f := s.notify.Load(); f != nil {
		(*f)(st)
	}
}

// Update changes what is stored. f sees the newest state and edits it; it is called
// again, with a newer state, when another process was first. An error of f ends the
// update and nothing changes; f without an edit publishes nothing. After an error
// of the file system the change may be there or not, as after a lost connection.
func (s *Store) Update(ctx context.Context, f func(*Edit) error) error {
	s.write.Lock()
	defer s.write.Unlock()
	for i := range maxRaces {
		since := time.Now()
		st, err := s.State(ctx, true)
		if err != nil {
			return err
		}
		e := newEdit(st)
		if err := f(e); err != nil {
			return err
		}
		if !e.changed {
			return nil
		}
		next := newState(st.version+1, e.nextOID, e.objects)
		body, err := next.encode()
		if err != nil {
			return err
		}
		err = s.files.publish(ctx, next.version, body, since)
		if err == nil {
			s.read.Lock()
			if now := s.state.Load(); now == nil || now.version < next.version {
				s.keep(next, since)
			}
			s.read.Unlock()
			if next.version%keepVersions == 0 {
				s.files.clean(ctx, next.version, time.Now())
			}
			return nil
		}
		if !errors.Is(err, fileio.ErrExist) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Duration(rand.Int64N(int64(min(i+1, 20))*int64(time.Millisecond) + 1))):
		}
	}
	return fmt.Errorf("objects in %s: others keep changing them", s.files.dir)
}
