package table

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// maintain keeps other maintenance of the branch in this process out: what expiry
// decided must hold until it is done.
func (b *branch) maintain(ctx context.Context) (unlock func(), err error) {
	select {
	case b.maintenance <- struct{}{}:
		return func() { <-b.maintenance }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// CreateTag names a snapshot, 0 = the newest; retained 0 = for ever. A name that
// is in use is fileio.ErrExist.
func (t *FileStore) CreateTag(ctx context.Context, branch, name string, snapshotID int64, retained time.Duration) error {
	if !snapshot.ValidTag(name) {
		return fmt.Errorf("tag name %q is not valid", name)
	}
	b := t.branch(branch)
	unlock, err := b.maintain(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := b.snapshots.Resolve(ctx, snapshot.Ref{Kind: snapshot.ID, ID: snapshotID, Branch: branch})
	if snapshotID == 0 {
		s, err = b.snapshots.Latest(ctx)
	}
	if err != nil {
		return err
	}
	if s == nil {
		return &snapshot.NotFoundError{Ref: snapshot.Ref{Branch: branch}, Reason: "the table has no snapshot"}
	}
	tag := *s
	if retained > 0 {
		tag.TagCreateTime, tag.TagTimeRetained = tagTimes(time.Now(), retained)
	}
	raw, err := snapshot.Encode(&tag)
	if err != nil {
		return err
	}
	if err := t.env.IO.PutIfAbsent(ctx, b.snapshots.TagPath(name), raw); errors.Is(err, fileio.ErrExist) {
		return fmt.Errorf("tag %q exists already: %w", name, fileio.ErrExist)
	} else if err != nil {
		return err
	}
	// Another process may have expired the snapshot meanwhile, and its files.
	if _, err := b.snapshots.At(ctx, s.ID); errors.Is(err, fileio.ErrNotExist) {
		_ = t.env.IO.Delete(ctx, b.snapshots.TagPath(name))
		return &snapshot.NotFoundError{Ref: snapshot.Ref{Kind: snapshot.ID, ID: s.ID, Branch: branch}, Expired: true}
	}
	return nil
}

// tagTimes writes a time and a duration as Java does: an array of the parts of
// the local time, decimal seconds.
func tagTimes(now time.Time, retained time.Duration) (created, kept json.RawMessage) {
	parts := []int{now.Year(), int(now.Month()), now.Day(), now.Hour(), now.Minute(), now.Second(), now.Nanosecond()}
	for len(parts) > 5 && parts[len(parts)-1] == 0 {
		parts = parts[:len(parts)-1]
	}
	created, _ = json.Marshal(parts) // integers
	return created, json.RawMessage(fmt.Sprintf("%d.%09d", retained/time.Second, retained%time.Second))
}

// DeleteTag removes a tag and, when its snapshot has expired, the files that only
// it kept (Java: TagManager.deleteTag).
func (t *FileStore) DeleteTag(ctx context.Context, branch, name string) error {
	b := t.branch(branch)
	unlock, err := b.maintain(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := b.snapshots.Tag(ctx, name)
	if err != nil {
		return err
	}
	return t.dropTag(ctx, b, name, s)
}

func (t *FileStore) dropTag(ctx context.Context, b *branch, name string, s *snapshot.Snapshot) error {
	_, err := b.snapshots.At(ctx, s.ID)
	if err == nil {
		return t.env.IO.Delete(ctx, b.snapshots.TagPath(name)) // expiry looks after the files
	}
	if !errors.Is(err, fileio.ErrNotExist) {
		return err
	}
	names, err := b.snapshots.Tags(ctx)
	if err != nil {
		return err
	}
	shared := false
	for _, n := range names {
		if n == name {
			continue
		}
		if o, err := b.snapshots.Tag(ctx, n); err == nil && o.ID == s.ID {
			shared = true
		}
	}
	if shared {
		return t.env.IO.Delete(ctx, b.snapshots.TagPath(name))
	}
	sch, err := b.schemas.Latest(ctx)
	if err != nil {
		return err
	}
	x, err := t.newEraser(ctx, b, sch)
	if err != nil {
		return err
	}
	keep, err := x.neighbours(ctx, s.ID)
	if err != nil {
		return err
	}
	// All is read before anything is deleted: without the tag nobody finds the files.
	data, err := x.onlyIn(ctx, s, keep)
	if err != nil {
		return err
	}
	meta, err := x.unused(ctx, []*snapshot.Snapshot{s}, keep)
	if err != nil {
		return err
	}
	if err := t.env.IO.Delete(ctx, b.snapshots.TagPath(name)); err != nil {
		return err
	}
	return x.erase(ctx, data, meta)
}

// neighbours returns the states next to a tagged snapshot that has expired: the
// tag before it and the nearer of the tag after it and the oldest snapshot. A
// file that several states hold, holds in all states between.
func (x *eraser) neighbours(ctx context.Context, id int64) ([]*snapshot.Snapshot, error) {
	var out []*snapshot.Snapshot
	if s := x.tagBefore(id); s != nil {
		out = append(out, s)
	}
	var right *snapshot.Snapshot
	earliest, err := x.b.snapshots.EarliestID(ctx)
	if err != nil {
		return nil, err
	}
	if earliest > 0 {
		if right, err = x.b.snapshots.Get(ctx, earliest); err != nil {
			return nil, err
		}
	}
	for _, s := range x.tags {
		if s.ID > id && (right == nil || s.ID < right.ID) {
			right = s
			break
		}
	}
	if right != nil {
		out = append(out, right)
	}
	return out, nil
}

// onlyIn returns the data files of s that none of keep holds.
func (x *eraser) onlyIn(ctx context.Context, s *snapshot.Snapshot, keep []*snapshot.Snapshot) ([]string, error) {
	used := map[string]bool{}
	for _, k := range keep {
		paths, err := x.livePaths(ctx, k)
		if err != nil {
			return nil, err
		}
		for p := range paths {
			used[p] = true
		}
	}
	paths, err := x.livePaths(ctx, s)
	if err != nil {
		return nil, err
	}
	var out []string
	for p := range paths {
		if !used[p] && !x.foreign[p] {
			x.buckets[dirOf(p)] = true
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out, nil
}

func dirOf(p string) string {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] == '/' {
			return p[:i]
		}
	}
	return ""
}

// ExpireTags removes the tags whose retention is over and returns their names.
func (t *FileStore) ExpireTags(ctx context.Context, branch string, now time.Time) ([]string, error) {
	b := t.branch(branch)
	unlock, err := b.maintain(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	names, err := b.snapshots.Tags(ctx)
	if err != nil {
		return nil, err
	}
	// Creation times are of the wall clock, written as if UTC.
	wall := time.Date(now.Year(), now.Month(), now.Day(), now.Hour(), now.Minute(), now.Second(), now.Nanosecond(), time.UTC)
	var out []string
	for _, n := range names {
		s, err := b.snapshots.Tag(ctx, n)
		if err != nil {
			return out, err
		}
		made, ok1 := s.CreateTime()
		kept, ok2 := s.Retained()
		if !ok1 || !ok2 || !made.Add(kept).Before(wall) {
			continue
		}
		if err := t.dropTag(ctx, b, n, s); err != nil {
			return out, err
		}
		out = append(out, n)
	}
	return out, nil
}

// RollbackTo makes a snapshot or tag the newest state again: newer snapshots,
// long-lived changelogs and tags of newer snapshots are deleted, data files and
// manifests stay behind as orphans, as in Java (RollbackHelper). A crash in the
// middle leaves a state that a second call finishes.
func (t *FileStore) RollbackTo(ctx context.Context, branch string, to snapshot.Ref) error {
	b := t.branch(branch)
	unlock, err := b.maintain(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	release, err := b.publisher.Lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	to.Branch = branch
	s, err := b.snapshots.Resolve(ctx, to)
	if err != nil || s == nil {
		return err
	}
	defer b.snapshots.Forget()
	io := t.env.IO
	rebuilt := false
	if _, err := b.snapshots.At(ctx, s.ID); errors.Is(err, fileio.ErrNotExist) {
		// The tag has outlived its snapshot.
		plain := *s
		plain.TagCreateTime, plain.TagTimeRetained = nil, nil
		if _, err := b.snapshots.Create(ctx, &plain); err != nil && !errors.Is(err, fileio.ErrExist) {
			return err
		}
		rebuilt = true
	} else if err != nil {
		return err
	}
	// The hint first: whoever follows it finds the state that stays.
	if err := b.snapshots.WriteLatest(ctx, s.ID); err != nil {
		return err
	}
	ids, err := b.snapshots.IDs(ctx)
	if err != nil {
		return err
	}
	for _, id := range slices.Backward(ids) {
		if id > s.ID {
			if err := io.Delete(ctx, b.snapshots.Path(id)); err != nil {
				return err
			}
		}
	}
	if rebuilt {
		if err := b.snapshots.WriteEarliest(ctx, s.ID); err != nil {
			return err
		}
	}
	if err := rollbackChangelogs(ctx, b, s.ID); err != nil {
		return err
	}
	names, err := b.snapshots.Tags(ctx)
	if err != nil {
		return err
	}
	for _, n := range names {
		if tag, err := b.snapshots.Tag(ctx, n); err == nil && tag.ID > s.ID {
			if err := io.Delete(ctx, b.snapshots.TagPath(n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// rollbackChangelogs deletes long-lived changelogs newer than id.
func rollbackChangelogs(ctx context.Context, b *branch, id int64) error {
	ids, err := b.snapshots.ChangelogIDs(ctx)
	if err != nil || len(ids) == 0 || ids[len(ids)-1] <= id {
		return err
	}
	latest := int64(-1)
	var gone []string
	for _, c := range slices.Backward(ids) {
		if c > id {
			gone = append(gone, b.snapshots.ChangelogPath(c))
		} else {
			latest = max(latest, c)
		}
	}
	io := b.snapshots.IO()
	if err := io.PutHint(ctx, b.snapshots.Root()+"/changelog/LATEST", strconv.AppendInt(nil, latest, 10)); err != nil {
		return err
	}
	return io.Delete(ctx, gone...)
}

// RollbackToTime makes the newest snapshot that is not younger than at the newest
// state again, and returns its id.
func (t *FileStore) RollbackToTime(ctx context.Context, branch string, at time.Time) (int64, error) {
	s, err := t.branch(branch).snapshots.AtTime(ctx, at.UnixMilli())
	if err != nil {
		return 0, err
	}
	return s.ID, t.RollbackTo(ctx, branch, snapshot.Ref{Kind: snapshot.ID, ID: s.ID})
}
