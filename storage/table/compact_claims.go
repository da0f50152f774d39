package table

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// Two compactions of one bucket waste one's work. Those of one process keep out
// of each other's way by claims: an ordinary compaction leaves out what another
// works on, a full one, which somebody asked for, waits its turn. Claims are taken
// before the state is read that is planned from, in one order, and given back when
// everything is published. They are a courtesy: other processes have none, and the
// commit is what decides.

// claims are the buckets of a table that are being compacted. The zero value is
// ready.
type claims struct {
	mu sync.Mutex                 // guards by
	by map[claimKey]chan struct{} // closed when given back
}

type claimKey struct {
	branch string
	id     commit.BucketID
}

// take claims buckets. With wait it waits for those that are taken, else it leaves
// them out. It returns the buckets claimed; give gives them back.
func (c *claims) take(ctx context.Context, branch string, ids []commit.BucketID, wait bool) (got map[commit.BucketID]bool, give func(), err error) {
	ids = slices.Clone(ids)
	slices.SortFunc(ids, compareBuckets)
	mine := make(chan struct{})
	var keys []claimKey
	give = func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, k := range keys {
			delete(c.by, k)
		}
		close(mine)
	}
	got = map[commit.BucketID]bool{}
	for _, id := range slices.Compact(ids) {
		k := claimKey{branch, id}
		for {
			c.mu.Lock()
			other, taken := c.by[k]
			if !taken {
				if c.by == nil {
					c.by = map[claimKey]chan struct{}{}
				}
				c.by[k] = mine
				keys = append(keys, k)
				got[id] = true
			}
			c.mu.Unlock()
			if !taken || !wait {
				break
			}
			select {
			case <-other:
			case <-ctx.Done():
				give()
				return nil, nil, context.Cause(ctx)
			}
		}
	}
	return got, give, nil
}

func compareBuckets(a, b commit.BucketID) int {
	return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Bucket, b.Bucket))
}

// bucketsNamed returns the buckets that o speaks of; those that have no files may
// be among them.
func (t *FileStore) bucketsNamed(ctx context.Context, o CompactOptions) ([]commit.BucketID, error) {
	var out []commit.BucketID
	if o.Partitions != nil && o.Buckets != nil {
		for _, p := range o.Partitions {
			for _, b := range o.Buckets {
				out = append(out, commit.BucketID{Partition: string(p), Bucket: b})
			}
		}
		return out, nil
	}
	st, err := t.state(ctx, snapshot.Ref{Branch: o.Branch}, nil)
	if err != nil {
		return nil, err
	}
	err = t.filesOf(ctx, st, func(all bucketFiles) {
		for id := range all {
			if wanted(&o, id) {
				out = append(out, id)
			}
		}
	})
	return out, err
}

// wanted reports whether o speaks of a bucket.
func wanted(o *CompactOptions, id commit.BucketID) bool {
	if o.Buckets != nil && !slices.Contains(o.Buckets, id.Bucket) {
		return false
	}
	return o.Partitions == nil || slices.ContainsFunc(o.Partitions, func(p []byte) bool { return string(p) == id.Partition })
}
