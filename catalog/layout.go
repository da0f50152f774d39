package catalog

import (
	"context"
	"errors"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog/systable"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// Layout says how a table lies on disk: metadata only.
type Layout struct {
	systable.Summary
	// Snapshot is the newest one; nil = the table has none. Compact is the newest one
	// that a compaction made, among the last snapshots that are looked at.
	Snapshot, Compact *snapshot.Snapshot
}

// layoutBack is how many snapshots Layout looks at for a compaction.
const layoutBack = 50

// Layout reads the manifests of the table's newest snapshot.
func (r *TableRelation) Layout(ctx context.Context) (*Layout, error) {
	at, err := r.store.Resolve(ctx, snapshot.Ref{Branch: r.at.Branch})
	if err != nil {
		return nil, err
	}
	snaps := r.store.Snapshots(r.at.Branch)
	out := &Layout{}
	if out.Snapshot, err = snaps.Resolve(ctx, at); err != nil || out.Snapshot == nil {
		return out, err
	}
	env := r.store.Env()
	src := &systable.Source{
		IO: env.IO, Root: r.store.Dir(), Branch: r.at.Branch, Schemas: r.store.Schemas(r.at.Branch), Snapshots: snaps, Manifests: env.Manifests,
		At: out.Snapshot, Schema: r.sch,
	}
	if out.Summary, err = src.Summarise(ctx); err != nil {
		return nil, err
	}
	for id := out.Snapshot.ID; id > out.Snapshot.ID-layoutBack && id > 0; id-- {
		s, err := snaps.Get(ctx, id)
		if errors.Is(err, snapshot.ErrNotFound) {
			break // expired
		}
		if err != nil {
			return nil, err
		}
		if s.CommitKind == "COMPACT" {
			out.Compact = s
			break
		}
	}
	return out, nil
}

// Time is when a snapshot was committed.
func (l *Layout) Time(s *snapshot.Snapshot) time.Time { return time.UnixMilli(s.TimeMillis) }
