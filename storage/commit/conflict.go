package commit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// What can be in the way of a commit (semantics.md 1.4; Java: ConflictDetection):
//
//	bucket count   all files of a partition were written with one number of buckets
//	removals       every file removed lives, no file added lives already
//	key ranges     the files of one level from 1 on do not overlap
//	vectors        a data file has the deletion vector that the commit takes away
//	reads          nothing that was read was touched since (readCheck)
//	places         no key that is written was touched since its place was looked up
//	order          a merge engine that folds gets later rows with higher sequence numbers
//
// A plain append adds new files only: of these nothing but the bucket count, the
// reads, places and order can be wrong.

func (s *state) conflict(format string, args ...any) error {
	id := int64(0)
	if s.latest != nil {
		id = s.latest.ID
	}
	return &ConflictError{SnapshotID: id, Reason: fmt.Sprintf(format, args...)}
}

// check returns a *ConflictError when the attempt must not be published.
func (s *state) check(ctx context.Context) error {
	if err := s.reads.check(ctx, s.sch, s.latest); err != nil {
		return err
	}
	if err := s.checkItself(); err != nil {
		return err
	}
	if err := s.checkPlaces(ctx); err != nil {
		return err
	}
	if s.kind == Analyze {
		return nil
	}
	if s.kind == Append {
		return s.checkBuckets(ctx)
	}
	base, err := s.baseFiles(ctx)
	if err != nil {
		return err
	}
	if err := s.checkGlobal(ctx); err != nil {
		return err
	}
	if s.kind != Overwrite {
		if err := s.sameBuckets(base); err != nil {
			return err
		}
	}
	live, err := s.apply(base)
	if err != nil {
		return err
	}
	if s.unaware() && s.options.Flag("deletion-vectors.enabled", false) {
		if err := s.checkVectors(ctx, base); err != nil {
			return err
		}
	}
	return s.checkLevels(live)
}

// checkGlobal refuses to remove or to rewrite rows that a global index covers: the
// index would go on naming them, with the values that they had. Where a whole partition
// is replaced its index files go with it.
func (s *state) checkGlobal(ctx context.Context) error {
	if !s.options.Flag("row-tracking.enabled", false) {
		return nil
	}
	changed := map[string]bool{}
	for i := range s.delta {
		if e := &s.delta[i]; e.Kind == manifest.Delete && !(s.c.Overwrite != nil && s.isReplaced(e.Partition)) {
			changed[partitionKey(e.Partition)] = true
		}
	}
	for i := range s.c.Indexes {
		if e := &s.c.Indexes[i]; e.Type == deletionVectors {
			changed[partitionKey(e.Partition)] = true
		}
	}
	if len(changed) == 0 {
		return nil
	}
	old, err := s.oldIndexes(ctx)
	if err != nil {
		return err
	}
	for i := range old {
		if e := &old[i]; e.Global != nil && changed[partitionKey(e.Partition)] {
			return &fileio.UnsupportedError{Feature: "rewriting rows that a global index covers"}
		}
	}
	return nil
}

// touched returns the partitions that the attempt changes.
func (s *state) touched() map[string]bool {
	out := map[string]bool{}
	for i := range s.job.c.Indexes {
		out[partitionKey(s.job.c.Indexes[i].Partition)] = true
	}
	for i := range s.delta {
		out[partitionKey(s.delta[i].Partition)] = true
	}
	return out
}

// baseFiles returns the live files of the partitions that the attempt changes.
func (s *state) baseFiles(ctx context.Context) ([]*manifest.Entry, error) {
	if s.latest == nil || s.scanned {
		return s.base, nil
	}
	var err error
	s.base, err = s.p.live(ctx, s.latest, s.touched())
	s.scanned = err == nil
	return s.base, err
}

// checkItself looks at what the commit says in itself: one number of buckets per
// partition, and no file that is both added and removed as the same.
func (s *state) checkItself() error {
	seen := map[manifest.Identity]int8{}
	for i := range s.delta {
		id := s.delta[i].Identity()
		if kind, ok := seen[id]; ok {
			if kind == s.delta[i].Kind {
				return fmt.Errorf("commit names file %s twice", id.Name)
			}
			return fmt.Errorf("commit adds and removes file %s", id.Name)
		}
		seen[id] = s.delta[i].Kind
	}
	counts := map[string]int32{}
	for i := range s.delta {
		e := &s.delta[i]
		if e.Kind != manifest.Add || e.TotalBuckets <= 0 {
			continue
		}
		k := string(e.Partition)
		if n, ok := counts[k]; ok && n != e.TotalBuckets {
			return fmt.Errorf("commit writes a partition with %d and with %d buckets", n, e.TotalBuckets)
		}
		counts[k] = e.TotalBuckets
	}
	return nil
}

// walkLimit is how many snapshots are looked at one by one before reading all
// live files is cheaper.
const walkLimit = 64

// checkBuckets compares an append's number of buckets with that of files that
// came since its base. Its writer has looked at the older ones.
func (s *state) checkBuckets(ctx context.Context) error {
	if s.latest == nil || !s.folds() && !slices.ContainsFunc(s.delta, func(e manifest.Entry) bool { return e.TotalBuckets > 0 }) {
		return nil
	}
	from := s.c.Base
	if s.tried && s.prev != nil {
		from = max(from, s.prev.ID)
	}
	if s.latest.ID-from > walkLimit {
		base, err := s.baseFiles(ctx)
		if err != nil {
			return err
		}
		return s.follows(base)
	}
	for id := from + 1; id <= s.latest.ID; id++ {
		sn := s.latest
		if id != s.latest.ID {
			var err error
			if sn, err = s.p.o.Snapshots.Get(ctx, id); err != nil {
				base, err := s.baseFiles(ctx)
				if err != nil {
					return err
				}
				return s.follows(base)
			}
		}
		// Only an overwrite may change the number, or the first write of a partition
		// set it.
		if Kind(sn.CommitKind) != Overwrite && Kind(sn.CommitKind) != Append {
			continue
		}
		entries, err := s.p.Delta(ctx, sn)
		if err != nil {
			return err
		}
		parts := s.touched()
		var added []*manifest.Entry
		for _, e := range entries {
			if e.Kind == manifest.Add && parts[string(e.Partition)] {
				added = append(added, e)
			}
		}
		if err := s.follows(added); err != nil {
			return err
		}
	}
	return nil
}

// follows checks an append against files that came since its base.
func (s *state) follows(files []*manifest.Entry) error {
	if err := s.sameBuckets(files); err != nil || !s.folds() {
		return err
	}
	type bucket struct {
		partition string
		bucket    int32
	}
	first := map[bucket]int64{}
	for i := range s.delta {
		e := &s.delta[i]
		k := bucket{partitionKey(e.Partition), e.Bucket}
		if low, ok := first[k]; e.Kind == manifest.Add && e.Bucket >= 0 && (!ok || e.File.MinSequence < low) {
			first[k] = e.File.MinSequence
		}
	}
	for _, e := range files {
		if low, ok := first[bucket{partitionKey(e.Partition), e.Bucket}]; ok && e.Kind == manifest.Add && e.File.MaxSequence >= low {
			return &ConflictError{
				SnapshotID: s.latest.ID, Sequence: true,
				Reason: fmt.Sprintf("rows of bucket %d came first with sequence numbers up to %d", e.Bucket, e.File.MaxSequence),
			}
		}
	}
	return nil
}

// folds reports whether the table's merge engine makes one row of several: then the
// row has the sequence number of the newest, and what comes later but with a lower
// number would be merged below columns that are older than it. Where one version
// wins, rows written at the same time may go in either order.
func (s *state) folds() bool {
	if len(s.sch.PrimaryKeys) == 0 || s.options.Flag("sequence.snapshot-ordering", false) {
		return false
	}
	e := s.options.Enum("merge-engine", "deduplicate")
	return e == "partial-update" || e == "aggregation"
}

func (s *state) sameBuckets(base []*manifest.Entry) error {
	counts := map[string]int32{}
	see := func(e *manifest.Entry) error {
		if e.TotalBuckets <= 0 {
			return nil
		}
		if n, ok := counts[string(e.Partition)]; !ok {
			counts[string(e.Partition)] = e.TotalBuckets
		} else if n != e.TotalBuckets {
			return s.conflict("a partition has %d buckets and would be written with %d", n, e.TotalBuckets)
		}
		return nil
	}
	for _, e := range base {
		if err := see(e); err != nil {
			return err
		}
	}
	for i := range s.delta {
		if err := see(&s.delta[i]); err != nil {
			return err
		}
	}
	return nil
}

// apply lays the attempt over base: what it removes must live, what it adds must
// not. It returns the live files of the buckets and levels that get new files.
func (s *state) apply(base []*manifest.Entry) (map[level][]*manifest.Entry, error) {
	removed, added := map[manifest.Identity]bool{}, map[manifest.Identity]bool{}
	names := map[string]bool{}
	levels := map[level][]*manifest.Entry{}
	for i := range s.delta {
		e := &s.delta[i]
		names[e.File.Name] = true
		if e.Kind == manifest.Delete {
			removed[e.Identity()] = true
			continue
		}
		added[e.Identity()] = true
		if e.File.Level >= 1 {
			k := levelOf(e)
			levels[k] = append(levels[k], e)
		}
	}
	for _, e := range base {
		if names[e.File.Name] {
			id := e.Identity()
			if removed[id] {
				delete(removed, id)
				continue
			}
			if added[id] {
				return nil, s.conflict("file %s was added already", e.File.Name)
			}
		}
		if k := levelOf(e); levels[k] != nil {
			levels[k] = append(levels[k], e)
		}
	}
	for id := range removed {
		return nil, s.conflict("file %s was removed by another commit", id.Name)
	}
	return levels, nil
}

// level is one level of one bucket.
type level struct {
	partition     string
	bucket, level int32
}

func levelOf(e *manifest.Entry) level { return level{string(e.Partition), e.Bucket, e.File.Level} }

// checkLevels makes sure that the files of each level do not overlap.
func (s *state) checkLevels(levels map[level][]*manifest.Entry) error {
	if len(s.sch.PrimaryKeys) == 0 {
		return nil
	}
	type span struct {
		lo, hi []byte
		name   string
	}
	for _, files := range levels {
		spans := make([]span, len(files))
		for i, e := range files {
			var err1, err2 error
			spans[i].name = e.File.Name
			spans[i].lo, err1 = s.p.o.Files.Key(s.sch, e.File.MinKey)
			spans[i].hi, err2 = s.p.o.Files.Key(s.sch, e.File.MaxKey)
			if err1 != nil || err2 != nil {
				return fmt.Errorf("key range of %s: %w", e.File.Name, cmpErr(err1, err2))
			}
		}
		slices.SortFunc(spans, func(a, b span) int { return bytes.Compare(a.lo, b.lo) })
		for i := 1; i < len(spans); i++ {
			if bytes.Compare(spans[i-1].hi, spans[i].lo) >= 0 {
				return s.conflict("files %s and %s of one level overlap", spans[i-1].name, spans[i].name)
			}
		}
	}
	return nil
}

func cmpErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// checkVectors makes sure that a file which is removed, or gets another deletion
// vector, has the vector now that the commit took into account: the one that it
// removes, or none.
func (s *state) checkVectors(ctx context.Context, base []*manifest.Entry) error {
	old, err := s.oldIndexes(ctx)
	if err != nil {
		return err
	}
	now := map[string]string{}
	for i := range old {
		for _, v := range old[i].DVs {
			now[v.DataFile] = old[i].Name
		}
	}
	takes, gives := map[string]string{}, map[string]string{}
	for i := range s.indexes {
		e := &s.indexes[i]
		if e.Type != deletionVectors {
			continue
		}
		for _, v := range e.DVs {
			m := gives
			if e.Kind == manifest.Delete {
				m = takes
			}
			if was, ok := m[v.DataFile]; ok && was != e.Name {
				return fmt.Errorf("commit names two deletion vectors of %s", v.DataFile)
			}
			m[v.DataFile] = e.Name
		}
	}
	fresh := map[string]bool{}
	changed := map[string]bool{}
	for i := range s.delta {
		e := &s.delta[i]
		if e.Kind == manifest.Add {
			fresh[e.File.Name] = true
		} else {
			changed[e.File.Name] = true
		}
	}
	lives := map[string]bool{}
	for _, e := range base {
		lives[e.File.Name] = true
	}
	for _, m := range []map[string]string{takes, gives} {
		for f := range m {
			changed[f] = true
		}
	}
	for f := range changed {
		if fresh[f] {
			continue
		}
		if !lives[f] {
			return s.conflict("file %s was removed by another commit", f)
		}
		if now[f] != takes[f] {
			return s.conflict("the deletion vector of file %s was changed by another commit", f)
		}
	}
	return nil
}

// checkPlaces makes sure that no snapshot since the places of the keys were looked
// up touched one of them. A file that is gone is one that holds every key.
func (s *state) checkPlaces(ctx context.Context) error {
	p := s.c.Placed
	if p == nil {
		return nil
	}
	latest := int64(0)
	if s.latest != nil {
		latest = s.latest.ID
	}
	if latest < p.At {
		return s.conflict("snapshot %d, of which the places of keys are, is gone", p.At)
	}
	from := p.At
	if s.tried && s.prev != nil && s.placed > from {
		from = s.placed
	}
	var mine []*manifest.Entry
	for i := range s.files {
		if s.files[i].Kind == manifest.Add {
			mine = append(mine, &s.files[i])
		}
	}
	for id := from + 1; id <= latest; id++ {
		sn := s.latest
		if id != latest {
			var err error
			if sn, err = s.p.o.Snapshots.Get(ctx, id); errors.Is(err, snapshot.ErrNotFound) {
				return s.conflict("snapshot %d has expired since, so what it changed is not known", id)
			} else if err != nil {
				return err
			}
		}
		if k := Kind(sn.CommitKind); k == Compact || k == Analyze {
			continue
		}
		entries, err := s.p.Delta(ctx, sn)
		if missing := (*fileio.MissingError)(nil); errors.As(err, &missing) {
			return s.conflict("what snapshot %d changed is not known any more", id)
		} else if err != nil {
			return err
		}
		for _, e := range entries {
			for _, m := range mine {
				hit, err := s.p.o.Files.Share(ctx, s.sch, e, m)
				if missing := (*fileio.MissingError)(nil); errors.As(err, &missing) {
					hit, err = true, nil
				}
				if err != nil {
					return err
				}
				if hit {
					return &ConflictError{SnapshotID: id, Reason: "a key that is written was put into a partition"}
				}
			}
		}
	}
	s.job.placed = latest
	return nil
}
