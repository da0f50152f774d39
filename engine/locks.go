package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog/pgcatalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// Locks keep sessions of this server from writing over what another has read
// and is about to write. They are held until the transaction ends.
//
// There are locks on whole tables (intent, shared, exclusive) and on keys, shared
// for FOR SHARE and else exclusive. Whoever locks a key holds its table's intent lock, so that an
// exclusive table lock stands for all keys; a statement that needs more keys than
// maxKeyLocks takes it instead, which bounds the memory.
//
// A request that cannot be granted waits in the lock's queue, first come, first
// served. Before it waits, the graph of who waits for whom is searched from it: a
// cycle is a deadlock, and the request that would close it fails with 40P01.
// Everything is under one mutex: a request is a few map operations.

// lockMode is how a table is locked.
type lockMode uint8

const (
	lockIntent    lockMode = iota + 1 // rows may be written
	lockShared                        // nobody else may write
	lockExclusive                     // nobody else may write or lock
)

func (m lockMode) String() string {
	return [...]string{"no lock", "RowExclusiveLock", "ShareLock", "AccessExclusiveLock"}[m]
}

// compatible reports whether two sessions may hold these at once.
func compatible(a, b lockMode) bool {
	return a == lockIntent && b == lockIntent || a == lockShared && b == lockShared
}

// maxKeyLocks is how many keys a statement locks one by one, unless
// lockManager.maxKeys says otherwise.
const maxKeyLocks = 100_000

// lockTarget names what is locked: a table, or a key of it when key is not "".
// key is the bucket's identity and the encoded key.
type lockTarget struct{ table, key string }

// lockState is one lock that somebody holds or waits for.
type lockState struct {
	holders map[*lockOwner]lockMode
	queue   []*lockRequest
}

// lockRequest is one wait.
type lockRequest struct {
	owner *lockOwner
	mode  lockMode
	done  chan struct{} // closed when granted
}

// lockOwner is a transaction as the lock manager sees it. Its fields are guarded
// by the manager's mutex.
type lockOwner struct {
	pid   int32
	party *lockParty // of the session; nil = nobody else's owner is the same party
	held  map[lockTarget]lockMode
	waits *lockRequest
	on    lockTarget // what waits is for
	name  string     // the relation of on, as messages show it; "" = none
	since time.Time  // when waits began
}

// lockParty are the owners of one session: of its transaction, and of its advisory
// locks. They are never in each other's way, and one of them waits at a time.
type lockParty struct {
	waiter *lockOwner // guarded by the manager's mutex
}

// same reports whether two owners are of one session.
func same(a, b *lockOwner) bool { return a == b || a.party != nil && a.party == b.party }

// waiter is the owner of o's party that waits, nil = none.
func (o *lockOwner) waiter() *lockOwner {
	if o.party != nil {
		return o.party.waiter
	}
	if o.waits != nil {
		return o
	}
	return nil
}

// lockManager keeps the locks of an engine.
type lockManager struct {
	mu    sync.Mutex // guards all below and every owner
	locks map[lockTarget]*lockState
	// waiting are the owners that wait, for pg_stat_activity.
	waiting map[*lockOwner]struct{}

	deadlocks atomic.Int64

	maxKeys int // fixed when the first statement runs
}

func newLockManager() *lockManager {
	return &lockManager{locks: map[lockTarget]*lockState{}, waiting: map[*lockOwner]struct{}{}, maxKeys: maxKeyLocks}
}

// lockWait says how long to wait for a lock.
type lockWait struct {
	timeout time.Duration // 0 = without limit
	nowait  bool
	name    string // the table, for messages
}

// acquire takes one lock for o and reports whether it had to wait for it.
func (l *lockManager) acquire(ctx context.Context, o *lockOwner, t lockTarget, mode lockMode, w lockWait) (waited bool, err error) {
	req, err := l.asked(o, t, mode, w)
	if err != nil || req == nil {
		return false, err
	}
	var timer <-chan time.Time
	if w.timeout > 0 {
		tm := time.NewTimer(w.timeout)
		defer tm.Stop()
		timer = tm.C
	}
	select {
	case <-req.done:
		return true, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer:
		err = pgerr.New(pgerr.LockNotAvailable, "canceling statement due to lock timeout")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-req.done: // granted just now: the transaction's end releases it
		return true, err
	default:
	}
	st := l.locks[t]
	st.queue = slices.DeleteFunc(st.queue, func(r *lockRequest) bool { return r == req })
	l.stopped(o)
	l.grant(t, st)
	return true, err
}

func (l *lockManager) asked(o *lockOwner, t lockTarget, mode lockMode, w lockWait) (*lockRequest, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.request(o, t, mode, w)
}

// request grants at once (nil), or queues.
func (l *lockManager) request(o *lockOwner, t lockTarget, mode lockMode, w lockWait) (*lockRequest, error) {
	have := o.held[t]
	if t.key == "" && have != 0 && have != mode && have+mode == lockIntent+lockShared {
		mode = lockExclusive // what conflicts with either
	}
	if have >= mode {
		return nil, nil
	}
	st := l.locks[t]
	if st == nil {
		st = &lockState{holders: map[*lockOwner]lockMode{}}
		l.locks[t] = st
	}
	holds := have != 0
	for h := range st.holders {
		holds = holds || same(h, o)
	}
	// A holder that asks for more goes before those who hold nothing: it could
	// never be granted behind them.
	if l.free(st, o, mode) && (len(st.queue) == 0 || holds) {
		l.give(o, t, st, mode)
		return nil, nil
	}
	if w.nowait {
		l.tidy(t, st)
		if t.key != "" {
			return nil, pgerr.New(pgerr.LockNotAvailable, "could not obtain lock on row in relation %q", w.name)
		}
		return nil, pgerr.New(pgerr.LockNotAvailable, "could not obtain lock on relation %q", w.name)
	}
	req := &lockRequest{owner: o, mode: mode, done: make(chan struct{})}
	if holds {
		st.queue = append([]*lockRequest{req}, st.queue...)
	} else {
		st.queue = append(st.queue, req)
	}
	o.waits, o.on, o.name, o.since = req, t, w.name, time.Now()
	if o.party != nil {
		o.party.waiter = o
	}
	l.waiting[o] = struct{}{}
	if path := l.cycle(o); path != nil {
		err := deadlock(path)
		st.queue = slices.DeleteFunc(st.queue, func(r *lockRequest) bool { return r == req })
		l.stopped(o)
		l.grant(t, st)
		return nil, err
	}
	return req, nil
}

func (l *lockManager) free(st *lockState, o *lockOwner, mode lockMode) bool {
	for h, m := range st.holders {
		if !same(h, o) && !compatible(m, mode) {
			return false
		}
	}
	return true
}

func (l *lockManager) give(o *lockOwner, t lockTarget, st *lockState, mode lockMode) {
	st.holders[o] = mode
	o.held[t] = mode
}

// grant serves the queue from its head as far as it can.
func (l *lockManager) grant(t lockTarget, st *lockState) {
	for len(st.queue) > 0 {
		r := st.queue[0]
		if !l.free(st, r.owner, r.mode) {
			break
		}
		st.queue = st.queue[1:]
		l.give(r.owner, t, st, r.mode)
		l.stopped(r.owner)
		close(r.done)
	}
	l.tidy(t, st)
}

func (l *lockManager) tidy(t lockTarget, st *lockState) {
	if len(st.holders) == 0 && len(st.queue) == 0 {
		delete(l.locks, t)
	}
}

// blockers are the owners that o waits for: holders that are in its way, and
// requests in front of it that are.
func (l *lockManager) blockers(o *lockOwner) []*lockOwner {
	st := l.locks[o.on]
	var out []*lockOwner
	for h, m := range st.holders {
		if !same(h, o) && !compatible(m, o.waits.mode) {
			out = append(out, h)
		}
	}
	for _, r := range st.queue {
		if r == o.waits {
			break
		}
		if !same(r.owner, o) && !compatible(r.mode, o.waits.mode) {
			out = append(out, r.owner)
		}
	}
	return out
}

// cycle returns the owners on a cycle through o, o first; nil when there is none.
func (l *lockManager) cycle(o *lockOwner) []*lockOwner {
	seen := map[*lockOwner]bool{}
	var path []*lockOwner
	var walk func(x *lockOwner) bool
	walk = func(x *lockOwner) bool {
		x = x.waiter()
		if x == nil {
			return false
		}
		path = append(path, x)
		for _, b := range l.blockers(x) {
			if same(b, o) {
				return true
			}
			if !seen[b] {
				seen[b] = true
				if walk(b) {
					return true
				}
			}
		}
		path = path[:len(path)-1]
		return false
	}
	if walk(o) {
		return path
	}
	return nil
}

func deadlock(path []*lockOwner) error {
	detail := ""
	for i, o := range path {
		next := path[(i+1)%len(path)]
		if o.on.table == advisoryTable {
			class, obj, sub := advisoryIDs(o.on.key)
			detail += fmt.Sprintf("Process %d waits for %s on advisory lock [%d,%d,%d,%d]; blocked by process %d.\n",
				o.pid, advisoryMode(o.waits.mode), pgcatalog.DatabaseOID, class, obj, sub, next.pid)
			continue
		}
		what := "a row of relation"
		if o.on.key == "" {
			what = "relation"
		}
		rel := o.on.table
		if o.name != "" {
			rel = o.name
		}
		mode := "ExclusiveLock"
		if o.waits != nil && o.on.key == "" {
			mode = o.waits.mode.String()
		}
		detail += fmt.Sprintf("Process %d waits for %s on %s %q; blocked by process %d.\n", o.pid, mode, what, rel, next.pid)
	}
	return pgerr.New(pgerr.DeadlockDetected, "deadlock detected").WithDetail("%s", detail[:len(detail)-1]).
		WithHint("See server log for query details.")
}

// stopped notes that an owner waits no longer.
func (l *lockManager) stopped(o *lockOwner) {
	o.waits = nil
	if o.party != nil {
		o.party.waiter = nil
	}
	delete(l.waiting, o)
}

// waits returns what sessions wait for, by process id: PostgreSQL's wait event.
func (l *lockManager) waits() map[int32]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[int32]string, len(l.waiting))
	for o := range l.waiting {
		switch {
		case o.on.table == advisoryTable:
			out[o.pid] = "advisory"
		case o.on.key != "":
			out[o.pid] = "tuple"
		default:
			out[o.pid] = "relation"
		}
	}
	return out
}

// tryKey takes a key that is free; false when another session has it.
func (l *lockManager) tryKey(o *lockOwner, t lockTarget, mode lockMode) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, err := l.request(o, t, mode, lockWait{nowait: true})
	return r == nil && err == nil
}

// release gives up everything that o holds.
func (l *lockManager) release(o *lockOwner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for t := range o.held {
		st := l.locks[t]
		delete(st.holders, o)
		l.grant(t, st)
	}
	clear(o.held)
}

// releaseOne gives up one lock.
func (l *lockManager) releaseOne(o *lockOwner, t lockTarget) {
	l.mu.Lock()
	defer l.mu.Unlock()
	st := l.locks[t]
	if st == nil {
		return
	}
	delete(st.holders, o)
	delete(o.held, t)
	l.grant(t, st)
}

// blocking returns the processes that pid waits for, in no order.
func (l *lockManager) blocking(pid int32) []int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []int32
	for o := range l.waiting {
		if o.pid != pid {
			continue
		}
		for _, b := range l.blockers(o) {
			if !slices.Contains(out, b.pid) {
				out = append(out, b.pid)
			}
		}
	}
	return out
}

// lockView is one lock that a session holds or waits for, for pg_locks.
type lockView struct {
	target  lockTarget
	mode    lockMode
	pid     int32
	granted bool
	since   time.Time // of a wait
}

// view returns every lock.
func (l *lockManager) view() []lockView {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []lockView
	for t, st := range l.locks {
		for o, m := range st.holders {
			out = append(out, lockView{target: t, mode: m, pid: o.pid, granted: true})
		}
		for _, r := range st.queue {
			out = append(out, lockView{target: t, mode: r.mode, pid: r.owner.pid, since: r.owner.since})
		}
	}
	return out
}

// owner returns the transaction's face to the lock manager.
func (s *Session) lockOwner() *lockOwner {
	if s.tx.owner == nil {
		s.tx.owner = s.newOwner()
	}
	return s.tx.owner
}

func (s *Session) lockWait(name string) lockWait {
	return lockWait{timeout: s.set.use().lockTimeout, name: name}
}

// lockTable locks a whole table for the transaction.
func (s *Session) lockTable(ctx context.Context, k tableKey, name string, mode lockMode, nowait bool) (waited bool, err error) {
	w := s.lockWait(name)
	w.nowait = nowait
	return s.eng.locks.acquire(ctx, s.lockOwner(), lockTarget{table: k.String()}, mode, w)
}

// definitionKey stands for a table's being: who drops or alters it locks it, and so
// does a compaction while it publishes, which does not hold the table's lock.
const definitionKey = "\xff\xffdefinition"

// lockFiles keeps others from a table's files until done is called, for a compaction
// that is about to replace them. It waits for the transactions that change rows of an
// append table's files, which would fail otherwise, and for those that change the
// table's definition, though not for ever: they may in turn wait for the compaction.
func (e *Engine) lockFiles(ctx context.Context, k tableKey) (done func(), err error) {
	o := &lockOwner{held: map[lockTarget]lockMode{}}
	files, definition := lockTarget{table: k.String(), key: filesKey}, lockTarget{table: tableKey{dir: k.dir}.String(), key: definitionKey}
	for range 3 {
		if _, err = e.locks.acquire(ctx, o, files, lockExclusive, lockWait{}); err != nil {
			break
		}
		if e.locks.tryKey(o, definition, lockExclusive) {
			return func() { e.locks.release(o) }, nil
		}
		// Holding the one while waiting for the other might close a circle.
		e.locks.release(o)
		if _, err = e.locks.acquire(ctx, o, definition, lockExclusive, lockWait{timeout: time.Second}); err != nil {
			break
		}
		e.locks.release(o)
	}
	e.locks.release(o)
	if err == nil {
		err = pgerr.New(pgerr.LockNotAvailable, "the definition of %q keeps changing", k.dir)
	}
	return nil, err
}

// lockDefinition locks what a compaction locks while it publishes.
func (s *Session) lockDefinition(ctx context.Context, k tableKey, name string) error {
	_, err := s.eng.locks.acquire(ctx, s.lockOwner(), lockTarget{table: k.String(), key: definitionKey}, lockExclusive, s.lockWait(name))
	return err
}

// lockKeys locks keys of a table, in their order, which every session keeps to
// within a batch: fewer deadlocks. keys hold bucket and key; they are sorted in
// place.
func (s *Session) lockKeys(ctx context.Context, k tableKey, name string, keys []string, mode lockMode, nowait bool) (waited bool, err error) {
	w := s.lockWait(name)
	w.nowait = nowait
	slices.Sort(keys)
	table, o := k.String(), s.lockOwner()
	if o.held[lockTarget{table: table}] == lockExclusive {
		return false, nil
	}
	for _, key := range keys {
		x, err := s.eng.locks.acquire(ctx, o, lockTarget{table: table, key: key}, mode, w)
		if err != nil {
			return waited, err
		}
		waited = waited || x
	}
	return waited, nil
}
