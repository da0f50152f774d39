package commit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// A commit goes
//
//	newest snapshot -> what others published since: ours? in our way? -> delta
//	manifest, base list = the newest snapshot's manifests, merged now and then ->
//	one parallel sync of the new data files, manifests and lists -> snapshot file,
//	linked under the next id -> LATEST hint
//
// The link is the commit: before it nothing refers to the new files, after it
// everything that it refers to is on stable storage. Whoever finds the id taken
// starts again from the newest snapshot (Java: FileStoreCommitImpl.tryCommit).

// Files is what a publisher asks of the table about its files.
type Files interface {
	// DataPaths returns the paths of a data file and its side files.
	DataPaths(s *schema.Table, e *manifest.Entry) ([]string, error)
	// IndexPath returns the path of an index file.
	IndexPath(s *schema.Table, e *manifest.IndexEntry) (string, error)
	// Key returns the memcmp-ordered form of a key image of a data file.
	Key(s *schema.Table, image []byte) ([]byte, error)
	// Holds reports whether a data file of a primary-key table holds one of keys,
	// which are ascending.
	Holds(ctx context.Context, s *schema.Table, e *manifest.Entry, keys [][]byte) (bool, error)
	// Share reports whether two data files of a primary-key table, in whatever
	// partitions, hold a row of the same primary key.
	Share(ctx context.Context, s *schema.Table, a, b *manifest.Entry) (bool, error)
	// Hashes writes the HASH index files of the buckets that get hashes which live,
	// the HASH files of the newest snapshot in those partitions, does not have. It
	// returns their entries, under names of its own by which reuse, the result of an
	// earlier call, is used again where a bucket is as it was then. A hash of another
	// bucket is a *HashError; made are the files written until then.
	Hashes(ctx context.Context, s *schema.Table, live []manifest.IndexEntry, adds map[BucketID][]int32, reuse map[string]manifest.IndexEntry) (made map[string]manifest.IndexEntry, err error)
}

// HashError says that a hash belongs to another bucket than it was given.
type HashError struct {
	Bucket, Is int32
}

func (e *HashError) Error() string {
	return fmt.Sprintf("a new key was put into bucket %d and belongs to bucket %d", e.Bucket, e.Is)
}

// Options are the parts that a Publisher works with.
type Options struct {
	IO        fileio.FileIO
	Dir       string // of the table, relative to the warehouse
	Schemas   *schema.Manager
	Snapshots *snapshot.Manager
	Manifests *manifest.Cache
	Files     Files
}

// Publisher publishes the snapshots of one branch. Safe for concurrent use:
// commits of one process take turns, those of several race for the next id.
type Publisher struct {
	o    Options
	turn chan struct{} // holds one token; guards all below

	schemaID int64 // newest one seen; -1 = none
	stats    statistics
}

// statistics remembers the schema that a statistics file is of.
type statistics struct {
	name     string
	schemaID int64
}

// NewPublisher returns the publisher of one branch of one table.
func NewPublisher(o Options) *Publisher {
	p := &Publisher{o: o, turn: make(chan struct{}, 1), schemaID: -1}
	p.turn <- struct{}{}
	return p
}

// Lock keeps other commits of this process out until unlock is called.
func (p *Publisher) Lock(ctx context.Context) (unlock func(), err error) {
	select {
	case <-p.turn:
		return func() { p.turn <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// syncFirst is the size from which new data files are synced before the commit's
// turn comes, so that others do not wait for them.
const syncFirst = 8 << 20

// verifyWait bounds the look at a snapshot whose publication gave no clear answer.
const verifyWait = 10 * time.Second

// Commit publishes c; see Committer.
func (p *Publisher) Commit(ctx context.Context, c Changes) (int64, error) {
	if c.Empty() {
		s, err := p.o.Snapshots.Latest(ctx)
		if s == nil || err != nil {
			return 0, err
		}
		return s.ID, nil
	}
	j, err := p.newJob(ctx, c)
	if err != nil {
		return 0, err
	}
	id, err := j.run(ctx)
	j.cleanUp(ctx, err)
	return id, err
}

// CheckReads looks for snapshots after base that touched what was read.
func (p *Publisher) CheckReads(ctx context.Context, base int64, r *ReadSet) (int64, error) {
	latest, err := p.o.Snapshots.Latest(ctx)
	if err != nil {
		return 0, err
	}
	if latest == nil {
		if base > 0 {
			return 0, &ConflictError{Reason: fmt.Sprintf("snapshot %d that was read is gone", base)}
		}
		return 0, nil
	}
	if r == nil || latest.ID == base {
		return latest.ID, nil // the common case: nobody wrote
	}
	sch, err := p.o.Schemas.Latest(ctx)
	if err != nil {
		return 0, err
	}
	w := &readCheck{p: p, reads: r, base: base, seen: base}
	return latest.ID, w.check(ctx, sch, latest)
}

// latestSchema returns the newest schema. A directory listing is saved where the
// one that was newest is there still and the next one is not.
func (p *Publisher) latestSchema(ctx context.Context) (*schema.Table, error) {
	if p.schemaID >= 0 {
		if _, err := p.o.IO.Stat(ctx, p.o.Schemas.Path(p.schemaID+1)); errors.Is(err, fileio.ErrNotExist) {
			if s, err := p.o.Schemas.Get(ctx, p.schemaID); err == nil {
				return s, nil
			}
		}
	}
	s, err := p.o.Schemas.Latest(ctx)
	if err == nil {
		p.schemaID = s.ID
	}
	return s, err
}

// statisticsOf returns the statistics file that the snapshot after latest
// inherits: none when it is of another schema (Java: tryCommitOnce).
func (p *Publisher) statisticsOf(ctx context.Context, latest *snapshot.Snapshot, schemaID int64) string {
	if latest == nil || latest.Statistics == "" {
		return ""
	}
	if p.stats.name != latest.Statistics {
		raw, err := p.o.IO.ReadFile(ctx, p.o.Dir+"/statistics/"+latest.Statistics)
		var v struct {
			SchemaID int64 `json:"schemaId"`
		}
		if err != nil || json.Unmarshal(raw, &v) != nil {
			return ""
		}
		p.stats = statistics{latest.Statistics, v.SchemaID}
	}
	if p.stats.schemaID != schemaID {
		return ""
	}
	return latest.Statistics
}

// retries are the commit.* options.
type retries struct {
	most     int64
	min, max time.Duration
	timeout  time.Duration
}

func retriesOf(o schema.Options) (r retries, err error) {
	if r.most, err = o.Int("commit.max-retries", 10); err != nil {
		return r, err
	}
	if r.min, err = o.Duration("commit.min-retry-wait", 10*time.Millisecond); err != nil {
		return r, err
	}
	if r.max, err = o.Duration("commit.max-retry-wait", 10*time.Second); err != nil {
		return r, err
	}
	r.timeout, err = o.Duration("commit.timeout", math.MaxInt64)
	return r, err
}

// wait sleeps before try n (from 0) is made again: exponentially longer, with a
// fifth of chance on top so that racers part.
func (r retries) wait(ctx context.Context, n int) error {
	d := r.max
	if n < 30 && r.min<<n < r.max && r.min<<n >= 0 {
		d = r.min << n
	}
	d += time.Duration(rand.Float64() * 0.2 * float64(d))
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// newUser returns a commit user as Java's batch writers make them.
func newUser(o schema.Options) string {
	if p := o.String("commit.user-prefix", ""); p != "" {
		return p + "_" + uuid.NewString()
	}
	return uuid.NewString()
}
