package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Advisory locks mean what applications agree on. They live in the lock manager
// beside those of tables and rows, so a circle of waiting through both is found.
// Those of a session are counted and held until they are given back as often as
// they were taken, or the session ends; those of a transaction end with it or with
// the savepoint that they were taken after. A session never waits for itself.
// Source: PostgreSQL's page on advisory locks, lockfuncs.c.

// advisoryTable is the lockTarget.table of advisory locks; the key is
// "classid,objid,objsubid" as pg_locks shows them.
const advisoryTable = "\xff\xffadvisory"

// advisory are the advisory locks of a session.
type advisory struct {
	mu sync.Mutex // calls may come from several workers
	// session holds those of the session, by mode: the same key may be held in both.
	session [2]advisoryHold
	xact    []advisoryXact
}

// advisoryHold is an owner with the number of times that it took each key.
type advisoryHold struct {
	owner *lockOwner
	count map[lockTarget]int
}

// advisoryXact are locks of the transaction that were taken while depth savepoints
// were open.
type advisoryXact struct {
	owner *lockOwner
	mode  lockMode
	depth int
}

// advisoryKey reads the key of one or two arguments: 64 bits, or two times 32.
func advisoryKey(args []types.Datum) (lockTarget, bool) {
	n, ok := args[0].(int64)
	if !ok {
		return lockTarget{}, false
	}
	class, obj, sub := uint32(n>>32), uint32(n), 1
	if len(args) == 2 {
		m, ok := args[1].(int64)
		if !ok {
			return lockTarget{}, false
		}
		class, obj, sub = uint32(n), uint32(m), 2
	}
	return lockTarget{table: advisoryTable, key: fmt.Sprintf("%d,%d,%d", class, obj, sub)}, true
}

// newOwner makes a further owner of locks for the session.
func (s *Session) newOwner() *lockOwner {
	return &lockOwner{pid: s.pid, held: map[lockTarget]lockMode{}, party: &s.party}
}

// advisoryCall answers pg_advisory_* and pg_try_advisory_*.
func (s *Session) advisoryCall(ctx context.Context, fn string, args []types.Datum) (types.Datum, error) {
	a := &s.adv
	a.mu.Lock()
	defer a.mu.Unlock()
	if fn == "pg_advisory_unlock_all" {
		s.unlockAll()
		return nil, nil
	}
	t, ok := advisoryKey(args)
	if !ok {
		return nil, nil
	}
	mode, i := lockExclusive, 1
	if strings.HasSuffix(fn, "_shared") {
		mode, i = lockShared, 0
	}
	hold := &a.session[i]
	if strings.HasPrefix(fn, "pg_advisory_unlock") {
		if hold.count[t] == 0 {
			s.later(pgerr.New(pgerr.Warning, "you don't own a lock of type %s", advisoryMode(mode)))
			return false, nil
		}
		if hold.count[t]--; hold.count[t] == 0 {
			delete(hold.count, t)
			s.eng.locks.releaseOne(hold.owner, t)
		}
		return true, nil
	}
	xact := strings.Contains(fn, "_xact_")
	owner := hold.owner
	if xact {
		owner = s.advisoryXact(mode)
	} else if owner == nil {
		hold.owner, hold.count = s.newOwner(), map[lockTarget]int{}
		owner = hold.owner
	}
	try := strings.HasPrefix(fn, "pg_try_")
	if try {
		if !s.eng.locks.tryKey(owner, t, mode) {
			return false, nil
		}
	} else if _, err := s.eng.locks.acquire(ctx, owner, t, mode, s.lockWait("")); err != nil {
		s.eng.locks.mu.Lock()
		_, got := owner.held[t] // it may have come with the cancellation
		s.eng.locks.mu.Unlock()
		if got && !xact && hold.count[t] == 0 {
			s.eng.locks.releaseOne(owner, t)
		}
		return nil, err
	}
	if !xact {
		hold.count[t]++
	}
	if try {
		return true, nil
	}
	return nil, nil
}

// advisoryXact returns the owner of the transaction's locks since the last savepoint.
func (s *Session) advisoryXact(mode lockMode) *lockOwner {
	depth := len(s.tx.saves)
	for _, x := range s.adv.xact {
		if x.mode == mode && x.depth == depth {
			return x.owner
		}
	}
	o := s.newOwner()
	s.adv.xact = append(s.adv.xact, advisoryXact{o, mode, depth})
	return o
}

// unlockAll gives back what the session holds, not what its transaction does.
func (s *Session) unlockAll() {
	for i := range s.adv.session {
		if h := &s.adv.session[i]; h.owner != nil {
			s.eng.locks.release(h.owner)
			clear(h.count)
		}
	}
}

// endAdvisory gives back the transaction's locks that were taken while at least
// depth savepoints were open.
func (s *Session) endAdvisory(depth int) {
	if len(s.adv.xact) == 0 {
		return
	}
	keep := s.adv.xact[:0]
	for _, x := range s.adv.xact {
		if x.depth >= depth {
			s.eng.locks.release(x.owner)
		} else {
			keep = append(keep, x)
		}
	}
	s.adv.xact = keep
}

// keepAdvisory makes the locks taken since a savepoint those of what it was made in.
func (s *Session) keepAdvisory(depth int) {
	for i := range s.adv.xact {
		s.adv.xact[i].depth = min(s.adv.xact[i].depth, depth)
	}
}

// advisoryMode is the mode of an advisory lock as PostgreSQL calls it.
func advisoryMode(m lockMode) string {
	if m == lockShared {
		return "ShareLock"
	}
	return "ExclusiveLock"
}

// advisoryIDs takes the key of an advisory lock apart.
func advisoryIDs(key string) (class, obj uint32, sub int16) {
	var n [3]uint64
	for i, p := range strings.SplitN(key, ",", 3) {
		n[i], _ = strconv.ParseUint(p, 10, 32)
	}
	return uint32(n[0]), uint32(n[1]), int16(n[2])
}

// later keeps a notice that a function gives, which may run on a worker, until the
// session's own goroutine passes on the next rows.
func (s *Session) later(e *pgerr.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.laters = append(s.laters, e)
}

// passLaters passes on what later has kept.
func (s *Session) passLaters(out ResultSink) {
	s.mu.Lock()
	list := s.laters
	s.laters = nil
	s.mu.Unlock()
	for _, e := range list {
		s.notice(out, "WARNING", e.Code, "%s", e.Message)
	}
}
