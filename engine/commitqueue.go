package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// Group commit. A snapshot costs several files and as many waits for the disk,
// however few rows it holds. So sessions hand what they want to publish to the
// queue of its table, and one goroutine per table that is being written takes all
// that wait, in the order of arrival, and makes one snapshot of them: the small
// ones give their rows, which go through one Writer, so that a later member's
// rows have higher sequence numbers. While that is being made durable, the next
// group forms.
//
// Each member is checked for itself: what it read against the snapshots since,
// and against the members before it in the group. One that conflicts fails alone.
// Changes in files (large statements, transactions) make a snapshot each.

// commitMember is what one session publishes in one table.
type commitMember struct {
	store    table.Table
	schemaID int64 // that parts are in the form of
	pk       []int // positions of the primary key; nil = none
	parts    []rowsPart
	changes  *commit.Changes // when it has been published: as it was
	bytes    int64
	// reads were made at snapshot base.
	base  int64
	reads *commit.ReadSet

	taken bool // guarded by the queue's mutex
	done  chan struct{}
	id    int64 // the snapshot
	err   error
}

// commitQueue is the queue of one table.
type commitQueue struct {
	eng *Engine
	key tableKey

	mu      sync.Mutex // guards what follows and commitMember.taken
	waiting []*commitMember
	running bool
	// came, when not nil, is told of arrivals.
	came chan struct{}
}

// Bounds of one group.
const (
	maxGroupBytes   = 64 << 20
	maxGroupMembers = 4096
)

// queue returns the queue of a table.
func (e *Engine) queue(k tableKey) *commitQueue {
	e.queueMu.Lock()
	defer e.queueMu.Unlock()
	q := e.queues[k]
	if q == nil {
		q = &commitQueue{eng: e, key: k}
		if e.queues == nil {
			e.queues = map[tableKey]*commitQueue{}
		}
		e.queues[k] = q
	}
	return q
}

// publish commits m and returns the snapshot that holds it, which is durable
// then. A cancelled ctx takes effect only while m waits.
func (q *commitQueue) publish(ctx context.Context, m *commitMember) (int64, error) {
	if f := q.eng.beforeWrite; f != nil {
		if err := f(ctx, q.key, m.store); err != nil {
			return 0, err
		}
	}
	m.done = make(chan struct{})
	q.mu.Lock()
	if !q.running && !q.eng.begin() {
		q.mu.Unlock()
		return 0, errShutdown()
	}
	q.waiting = append(q.waiting, m)
	if q.came != nil {
		select {
		case q.came <- struct{}{}:
		default:
		}
	}
	if !q.running {
		q.running = true
		go q.run()
	}
	q.mu.Unlock()
	select {
	case <-m.done:
		return m.id, m.err
	case <-ctx.Done():
	}
	q.mu.Lock()
	if !m.taken {
		q.waiting = slices.DeleteFunc(q.waiting, func(x *commitMember) bool { return x == m })
		q.mu.Unlock()
		return 0, context.Cause(ctx)
	}
	q.mu.Unlock()
	<-m.done
	return m.id, m.err
}

// begin counts background work that is about to start; false when the engine
// closes.
func (e *Engine) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closing {
		e.bg.Add(1)
	}
	return !e.closing
}

// run serves the queue until it is empty.
func (q *commitQueue) run() {
	defer q.eng.bg.Done()
	ctx := context.WithoutCancel(q.eng.ctx) // a group that is begun is ended
	last, took := 0, time.Duration(0)
	for {
		q.mu.Lock()
		q.gather(last, took)
		group := q.take()
		if len(group) == 0 {
			q.running = false
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		began := time.Now()
		q.serve(ctx, group)
		last, took = len(group), time.Since(began)
	}
}

// gather waits a little for the sessions of the group before, which took the time
// took: they have just been answered and come back as a rule, and without it they
// would split into groups that wait for one another. It waits until as many are
// there as there were, or none has come for a while. It holds the mutex on entry
// and exit.
func (q *commitQueue) gather(last int, took time.Duration) {
	want := last + len(q.waiting)
	if last == 0 || last == 1 && len(q.waiting) == 0 {
		return
	}
	came := make(chan struct{}, 1)
	q.came = came
	gap := min(max(took/2, minGap), maxGap)
	end := time.Now().Add(min(took, maxGather))
	t := time.NewTimer(gap)
	for len(q.waiting) < want {
		q.mu.Unlock()
		timeout := false
		select {
		case <-came:
			t.Reset(min(gap, time.Until(end)))
		case <-t.C:
			timeout = true
		}
		q.mu.Lock()
		if timeout {
			break
		}
	}
	t.Stop()
	q.came = nil
}

// Bounds of the wait for a group, and of the wait for its next member.
const (
	maxGather = 10 * time.Millisecond
	minGap    = time.Millisecond
	maxGap    = 4 * time.Millisecond
)

// take removes the next group from the queue.
func (q *commitQueue) take() []*commitMember {
	n, size := 0, int64(0)
	for _, m := range q.waiting {
		if n > 0 && (m.changes != nil || q.waiting[0].changes != nil || m.schemaID != q.waiting[0].schemaID || m.store != q.waiting[0].store ||
			size+m.bytes > maxGroupBytes || n == maxGroupMembers) {
			break
		}
		size += m.bytes
		n++
	}
	group := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	for _, m := range group {
		m.taken = true
	}
	return group
}

// serve publishes a group and wakes its members. A panic is every member's error.
func (q *commitQueue) serve(ctx context.Context, group []*commitMember) {
	defer func() {
		if p := recover(); p != nil {
			err := q.eng.panicked(p, stack())
			for _, m := range group {
				m.end(0, err)
			}
		}
	}()
	q.eng.stats.groups.Add(1)
	q.eng.stats.members.Add(int64(len(group)))
	if c := group[0].changes; c != nil {
		id, err := q.publishChanges(ctx, group[0], *c)
		if err == nil {
			q.eng.announcer.committed(q.key, group[0].store, id)
		}
		group[0].end(id, err)
	} else {
		q.publishRows(ctx, group)
	}
	if f := q.eng.afterCommit; f != nil {
		f(q.key, group[0].store)
	}
}

// end wakes the member's session.
func (m *commitMember) end(id int64, err error) {
	select {
	case <-m.done:
		return // it has been told
	default:
	}
	m.id, m.err = id, err
	close(m.done)
}

// maxCommitAttempts bounds how often a group is made again because another
// process published first.
const maxCommitAttempts = 20

// publishChanges commits one member's files.
func (q *commitQueue) publishChanges(ctx context.Context, m *commitMember, c commit.Changes) (int64, error) {
	acc := q.eng.root.Child("max_memory", 0)
	defer acc.Close()
	for attempt := 0; ; attempt++ {
		id, err := q.publishFolded(ctx, m, c, acc)
		var lost *commit.ConflictError
		if errors.As(err, &lost) && lost.Sequence && attempt < maxCommitAttempts {
			continue // another process came between: the rows are numbered anew
		}
		return id, err
	}
}

func (q *commitQueue) publishFolded(ctx context.Context, m *commitMember, c commit.Changes, acc *mem.Account) (int64, error) {
	at, err := m.store.Resolve(ctx, snapshot.Ref{Branch: q.key.branch})
	if err != nil {
		return 0, err
	}
	if m.reads != nil {
		if _, err := m.store.CheckReads(ctx, q.key.branch, m.base, m.reads); err != nil {
			return 0, err
		}
	}
	out := c
	if len(c.Files) > 0 {
		if out, _, err = m.store.Fold(ctx, c, writeAt(at, m.schemaID), acc); err != nil {
			return 0, err
		}
	}
	out.Base, out.Branch, out.Reads = snapshotID(at), q.key.branch, m.reads
	id, err := m.store.Commit(ctx, out)
	if err != nil && !unknown(err) {
		q.drop(ctx, m.store, added(out, c))
		return 0, err
	}
	m.changes = &out
	return id, err
}

// drop deletes files of an attempt.
func (q *commitQueue) drop(ctx context.Context, store table.Table, c commit.Changes) {
	if nothing(c) {
		return
	}
	if err := store.Discard(ctx, c); err != nil {
		q.eng.log.Warn("files of an abandoned commit stay behind", "table", q.key.String(), "err", err)
	}
}

// nothing reports whether no file is named in c.
func nothing(c commit.Changes) bool {
	return len(c.Files) == 0 && len(c.Changelog) == 0 && len(c.Indexes) == 0
}

// added returns the files that c adds and d does not.
func added(c, d commit.Changes) commit.Changes {
	have := map[string]bool{}
	for _, e := range d.Files {
		have[e.File.Name] = true
	}
	for _, e := range d.Changelog {
		have[e.File.Name] = true
	}
	for _, e := range d.Indexes {
		have[e.Name] = true
	}
	var out commit.Changes
	for _, e := range c.Files {
		if e.Kind == manifest.Add && !have[e.File.Name] {
			out.Files = append(out.Files, e)
		}
	}
	for _, e := range c.Changelog {
		if !have[e.File.Name] {
			out.Changelog = append(out.Changelog, e)
		}
	}
	for _, e := range c.Indexes {
		if e.Kind == manifest.Add && !have[e.Name] {
			out.Indexes = append(out.Indexes, e)
		}
	}
	return out
}

func unknown(err error) bool {
	var u *commit.UnknownOutcomeError
	return errors.As(err, &u)
}

// publishRows writes and commits the rows of a group.
func (q *commitQueue) publishRows(ctx context.Context, group []*commitMember) {
	acc := q.eng.root.Child("max_memory", 0)
	defer acc.Close()
	for attempt := 0; len(group) > 0; attempt++ {
		at, err := group[0].store.Resolve(ctx, snapshot.Ref{Branch: q.key.branch})
		if err == nil {
			group, err = q.check(ctx, group, at)
		}
		if err != nil {
			fail(group, err)
			return
		}
		if len(group) == 0 {
			return
		}
		id, prepared, err := q.write(ctx, group, at, acc)
		if err == nil {
			// Before anybody has an answer: who listens afterwards must not hear of it.
			q.eng.announcer.committed(q.key, group[0].store, id)
			for _, m := range group {
				m.end(id, nil)
			}
			return
		}
		if prepared.Base >= 0 && !unknown(err) {
			q.drop(ctx, group[0].store, prepared)
		}
		switch {
		case conflicted(err) && attempt < maxCommitAttempts:
			// Another process came between: each is checked anew.
		case unknown(err) || len(group) == 1 || conflicted(err):
			fail(group, err)
			return
		default:
			// Perhaps the rows of one are to blame: each by itself.
			for _, m := range group {
				q.publishRows(ctx, []*commitMember{m})
			}
			return
		}
	}
}

func fail(group []*commitMember, err error) {
	for _, m := range group {
		m.end(0, err)
	}
}

// check returns the members that may be published on top of at; the others have
// been told of their conflicts.
func (q *commitQueue) check(ctx context.Context, group []*commitMember, at snapshot.Ref) ([]*commitMember, error) {
	newest := snapshotID(at)
	var out []*commitMember
	written, upTo := map[string]bool{}, 0 // keys of out[:upTo]
	for _, m := range group {
		if m.reads == nil {
			out = append(out, m)
			continue
		}
		var err error
		if m.base != newest {
			_, err = m.store.CheckReads(ctx, q.key.branch, m.base, m.reads)
		}
		if err == nil && len(out) > 0 {
			if m.reads.All {
				err = &commit.ConflictError{SnapshotID: newest + 1, Reason: "the table was changed in the same snapshot"}
			} else {
				for ; upTo < len(out); upTo++ {
					if err := addKeys(ctx, out[upTo], at, written); err != nil {
						return nil, err
					}
				}
				for b, keys := range m.reads.Keys {
					for _, k := range keys {
						if written[lockKey(b, k)] {
							err = &commit.ConflictError{SnapshotID: newest + 1, Reason: "a key was changed in the same snapshot"}
						}
					}
				}
			}
		}
		if err != nil {
			if !conflicted(err) {
				return nil, err
			}
			m.end(0, err)
			continue
		}
		out = append(out, m)
	}
	return out, nil
}

// addKeys adds the keys that a member writes.
func addKeys(ctx context.Context, m *commitMember, at snapshot.Ref, into map[string]bool) error {
	if m.pk == nil {
		return nil
	}
	for _, p := range m.parts {
		loc, err := m.store.Locate(ctx, writeAt(at, m.schemaID), columnsOf(p.b, m.pk), p.b.N)
		if err != nil {
			return err
		}
		for i, k := range loc.Keys {
			into[lockKey(loc.Buckets[loc.Bucket[i]], k)] = true
		}
	}
	return nil
}

// write makes one snapshot of a group's rows. prepared is what was written, its
// Base -1 when that is nothing.
func (q *commitQueue) write(ctx context.Context, group []*commitMember, at snapshot.Ref, acc *mem.Account) (id int64, prepared commit.Changes, err error) {
	prepared.Base = -1
	store := group[0].store
	w, err := store.Write(ctx, table.WriteOptions{At: writeAt(at, group[0].schemaID), Account: acc})
	if err != nil {
		return 0, prepared, err
	}
	abort := func(err error) (int64, commit.Changes, error) {
		_ = w.Abort(ctx) // what stays is an orphan
		return 0, prepared, err
	}
	for _, m := range group {
		for _, p := range m.parts {
			if err := w.Write(ctx, p.b, p.kinds); err != nil {
				return abort(err)
			}
		}
	}
	c, err := w.Prepare(ctx)
	if err != nil {
		return abort(err)
	}
	c.Base, c.Branch = snapshotID(at), q.key.branch
	for _, m := range group {
		c.Reads = unionReads(c.Reads, m.reads)
	}
	id, err = store.Commit(ctx, c)
	return id, c, err
}

// lockKey is the identity of a key across a table.
func lockKey(b commit.BucketID, key []byte) string {
	out := make([]byte, 0, len(b.Partition)+len(key)+6)
	out = append(out, byte(len(b.Partition)), byte(len(b.Partition)>>8))
	out = append(out, b.Partition...)
	out = append(out, byte(b.Bucket), byte(b.Bucket>>8), byte(b.Bucket>>16), byte(b.Bucket>>24))
	return string(append(out, key...))
}
