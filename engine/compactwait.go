package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// Compactions that a commit waits for. In some tables a commit is not whole before
// its buckets have been compacted: the changelog of changelog-producer = lookup and
// full-compaction, the deletion vectors of a key table and the rows of a first-row
// table come of compactions, and readers of other engines do not see level 0. There
// the session that has committed waits until a compaction of the buckets that it
// touched has been published, as Java's writers do (lookup-wait).
//
// The commit stands whatever becomes of the compaction. While one runs, the
// commits that come gather: the next compaction is for all of them.

// compactWaits are the tables that sessions wait for. The zero value is ready.
type compactWaits struct {
	mu sync.Mutex // guards what follows
	by map[tableKey]*compactWait
}

// compactWait is one table.
type compactWait struct {
	store   *table.FileStore
	seen    int64 // buckets touched up to this snapshot have been compacted
	waiting []*compactWaiter
	running bool
}

// compactWaiter is one session that has committed a snapshot.
type compactWaiter struct {
	id     int64
	level0 bool // level 0 is to be taken up, whether it is due or not
	done   chan struct{}
	err    error // why its buckets are not compacted
}

// waitTries is how often a compaction that sessions wait for is tried.
const waitTries = 5

// waitsForCompaction reports whether commits to a table of these options are not
// whole before a compaction.
// Source: CoreOptions.prepareCommitWaitCompaction, FlinkSink.createWriteProvider.
func waitsForCompaction(o schema.Options, keyed bool) bool {
	if o.Flag("write-only", false) {
		return false
	}
	if o.Flag("commit.force-compact", false) {
		return true
	}
	if !keyed {
		return false
	}
	if o.Enum("changelog-producer", "none") == "full-compaction" || o.String("full-compaction.delta-commits", "") != "" {
		return true
	}
	return needsLookup(o) && o.Flag("lookup-wait", o.Flag("changelog-producer.lookup-wait", true))
}

// needsLookup reports whether the compactions of a primary-key table look up what
// is in higher levels. Source: CoreOptions.needLookup.
func needsLookup(o schema.Options) bool {
	return o.Enum("changelog-producer", "none") == "lookup" || o.Flag("deletion-vectors.enabled", false) ||
		o.Enum("merge-engine", "deduplicate") == "first-row" || o.Flag("force-lookup", false)
}

// awaitCompaction waits until the buckets that snapshot id of t touched have been
// compacted, where its table asks for that. What goes wrong is told by a notice: the
// commit is done.
func (s *Session) awaitCompaction(ctx context.Context, t *txTable, id int64) {
	store, ok := t.store.(*table.FileStore)
	o, keyed := schema.Options(t.options), len(t.pk) > 0
	if !ok || id == 0 || !waitsForCompaction(o, keyed) {
		return
	}
	// A gentle lookup compaction comes when many level-0 files are there.
	level0 := keyed && needsLookup(o) && o.Enum("lookup-compact", "radical") != "gentle"
	err := s.eng.maint.await(ctx, s.eng, t.key, store, id, level0)
	if err == nil {
		return
	}
	s.eng.log.Warn("a commit is not compacted yet", "table", t.key.String(), "snapshot", id, "err", err)
	what := "its compaction has failed and will be tried again"
	if ctx.Err() != nil {
		what = "the wait for its compaction was given up"
	}
	s.notice(s.out, "WARNING", pgerr.Warning, "the commit to %s.%s is done, but %s", t.schema, t.name, what)
}

// await has the buckets that snapshot id touched compacted and returns when that is
// published.
func (m *maintenance) await(ctx context.Context, e *Engine, k tableKey, store *table.FileStore, id int64, level0 bool) error {
	w := &compactWaiter{id: id, level0: level0, done: make(chan struct{})}
	m.waits.mu.Lock()
	j := m.waits.by[k]
	if j == nil {
		j = &compactWait{}
		if m.waits.by == nil {
			m.waits.by = map[tableKey]*compactWait{}
		}
		m.waits.by[k] = j
	}
	if !j.running && !e.begin() {
		m.waits.mu.Unlock()
		return errShutdown()
	}
	j.store = store
	j.waiting = append(j.waiting, w)
	if !j.running {
		j.running = true
		go m.serveWaits(e, k, j)
	}
	m.waits.mu.Unlock()
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// serveWaits compacts a table until nobody waits.
func (m *maintenance) serveWaits(e *Engine, k tableKey, j *compactWait) {
	defer e.bg.Done()
	for {
		m.waits.mu.Lock()
		group := j.waiting
		j.waiting = nil
		store := j.store
		if len(group) == 0 {
			j.running = false
			if len(m.waits.by) > maxWaitTables {
				delete(m.waits.by, k)
			}
			m.waits.mu.Unlock()
			return
		}
		m.waits.mu.Unlock()
		err := m.compactFor(e.ctx, e, k, j, store, group)
		if err != nil && m.on {
			m.mark(k, store)
		}
		for _, w := range group {
			w.err = err
			close(w.done)
		}
	}
}

// maxWaitTables is how many tables are remembered that nobody waits for.
const maxWaitTables = 1024

// compactFor compacts what the snapshots of a group have touched.
func (m *maintenance) compactFor(ctx context.Context, e *Engine, k tableKey, j *compactWait, store *table.FileStore, group []*compactWaiter) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = e.panicked(p, stack())
		}
	}()
	first, level0 := group[0].id, false
	for _, w := range group {
		first, level0 = min(first, w.id), level0 || w.level0
	}
	pause := 5 * time.Millisecond
	for try := 1; ; try++ {
		latest, err := store.Snapshots(k.branch).Latest(ctx)
		if err != nil {
			return err
		}
		if latest == nil {
			return nil
		}
		seen := j.seen
		if seen == 0 || seen >= first {
			seen = first - 1
		}
		o := table.CompactOptions{Branch: k.branch}
		touched, whole, err := touchedBuckets(ctx, k.branch, store, seen, latest)
		if err != nil {
			return err
		}
		if !whole {
			o.Partitions, o.Buckets = [][]byte{}, []int32{}
			for id := range touched {
				if !slices.ContainsFunc(o.Partitions, func(p []byte) bool { return string(p) == id.Partition }) {
					o.Partitions = append(o.Partitions, []byte(id.Partition))
				}
				if !slices.Contains(o.Buckets, id.Bucket) {
					o.Buckets = append(o.Buckets, id.Bucket)
				}
			}
		}
		o.Level0 = level0
		r, err := m.run(ctx, e, k, store, &o)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && r.LostRaces == 0:
			j.seen = latest.ID
			return nil
		case try >= waitTries:
			return errors.Join(err, lostRaces(r))
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
		pause *= 2
	}
}

func lostRaces(r *table.CompactReport) error {
	if r == nil || r.LostRaces == 0 {
		return nil
	}
	return fmt.Errorf("%d compactions lost a race", r.LostRaces)
}

// touchedBuckets returns the buckets that snapshots after seen added files to or
// took them from; whole: it is not known which.
func touchedBuckets(ctx context.Context, branch string, store *table.FileStore, seen int64, latest *snapshot.Snapshot) (map[commit.BucketID]bool, bool, error) {
	if seen < 0 || latest.ID-seen > lookBack || latest.ID < seen {
		return nil, true, nil
	}
	env := store.Env()
	out := map[commit.BucketID]bool{}
	for id := seen + 1; id <= latest.ID; id++ {
		s := latest
		if id < latest.ID {
			var err error
			if s, err = store.Snapshots(branch).Get(ctx, id); errors.Is(err, snapshot.ErrNotFound) {
				return nil, true, nil
			} else if err != nil {
				return nil, false, err
			}
		}
		metas, err := env.Manifests.List(ctx, env.IO, store.Dir()+"/manifest/"+s.DeltaManifestList)
		if err != nil {
			return nil, false, err
		}
		for i := range metas {
			es, err := env.Manifests.Entries(ctx, env.IO, store.Dir()+"/manifest/"+metas[i].Name)
			if err != nil {
				return nil, false, err
			}
			for k := range es {
				out[commit.BucketID{Partition: string(es[k].Partition), Bucket: es[k].Bucket}] = true
			}
		}
	}
	return out, false, nil
}
