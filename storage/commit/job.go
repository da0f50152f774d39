package commit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// job is one commit, over all its attempts.
type job struct {
	p          *Publisher
	c          Changes
	files      []manifest.Entry // of c, normal
	changelog  []manifest.Entry
	kind       Kind
	user       string
	identifier int64
	id         string // UUID in the names of the metadata files
	numbers    map[string]int
	reads      readCheck

	// Of the present attempt.
	sch       *schema.Table
	options   schema.Options
	partition []types.Type
	arity     manifest.Arity
	codec     manifest.Codec

	tried  bool
	prev   *snapshot.Snapshot // newest one of the last attempt
	merged *mergeResult       // of the last attempt, reused while it is a prefix

	baseList  string // of the last attempt
	delta     *delta // of the last attempt, reused while nothing in it changes
	chlog     *delta
	placed    int64                          // places of keys have been checked up to this snapshot
	hashes    map[string]manifest.IndexEntry // HASH files of the present attempt
	hashPaths map[string]string              // of all attempts, by name
	unsynced  []string                       // not on stable storage yet
	made      map[string]bool                // metadata files made; true = named by the snapshot of this attempt
	published bool
	overtaken bool // a snapshot of a former attempt was there for a moment
	unknown   bool
}

// delta is a written manifest list.
type delta struct {
	entries []manifest.Entry
	list    string
	size    int64
	names   []string // manifests and list
}

func (p *Publisher) newJob(ctx context.Context, c Changes) (*job, error) {
	unlock, err := p.Lock(ctx)
	if err != nil {
		return nil, err
	}
	sch, err := p.latestSchema(ctx)
	unlock()
	if err != nil {
		return nil, err
	}
	j := &job{
		p: p, c: c, kind: c.Kind, user: c.User, identifier: c.Identifier, id: uuid.NewString(),
		files: manifest.Normal(c.Files), changelog: manifest.Normal(c.Changelog),
		numbers: map[string]int{}, made: map[string]bool{}, hashPaths: map[string]string{},
	}
	if err := j.useSchema(sch); err != nil {
		return nil, err
	}
	if j.kind == "" {
		j.kind = Append
	}
	switch {
	case c.Overwrite != nil:
		j.kind = Overwrite
		j.changelog = nil // as Java: an overwrite commits none
	case j.kind == Append && c.rewrites():
		j.kind = Overwrite
	}
	if j.user == "" {
		j.user = newUser(j.options)
		if j.identifier == 0 {
			j.identifier = math.MaxInt64
		}
	}
	j.reads = readCheck{p: p, reads: c.Reads, base: c.Base, seen: c.Base}
	data, bytes, err := j.newFiles()
	if err != nil {
		return nil, err
	}
	if bytes >= syncFirst {
		err = p.o.IO.Sync(ctx, data...)
	} else {
		j.unsynced = data
	}
	return j, err
}

// rewrites reports whether an append is an overwrite in truth (Java:
// ConflictDetection.shouldBeOverwriteCommit).
func (c *Changes) rewrites() bool {
	for i := range c.Files {
		if c.Files[i].Kind == manifest.Delete {
			return true
		}
	}
	for i := range c.Indexes {
		if c.Indexes[i].Type == deletionVectors {
			return true
		}
	}
	return false
}

// useSchema takes what depends on the newest schema, and refuses what this
// package does not honour.
func (j *job) useSchema(s *schema.Table) error {
	if j.sch == s {
		return nil
	}
	o := schema.Options(s.Options)
	un := func(f string) error { return &fileio.UnsupportedError{Feature: f} }
	if f := o.Enum("manifest.format", "avro"); f != "avro" {
		return un("manifest format " + f)
	}
	for _, k := range []string{"data-evolution.enabled", "pk-clustering-override"} {
		if o.Flag(k, false) {
			return un("writing to a table with option " + k)
		}
	}
	for _, k := range []string{"commit.strict-mode.last-safe-snapshot"} {
		if _, ok := o[k]; ok {
			return un("writing to a table with option " + k)
		}
	}
	if m := o.Enum("write.sequence-number-init-mode", "scan"); m != "scan" {
		return un("write.sequence-number-init-mode " + m)
	}
	level, err := o.Int("file.compression.zstd-level", 1)
	if err != nil {
		return err
	}
	j.partition = nil
	for _, k := range s.PartitionKeys {
		i := s.Fields.Index(k)
		if i < 0 {
			return fmt.Errorf("schema %d has no column %q", s.ID, k)
		}
		j.partition = append(j.partition, s.Fields[i].Type)
	}
	j.sch, j.options = s, o
	j.arity = manifest.Arity{Partition: len(j.partition), Key: len(s.TrimmedKey())}
	j.codec = manifest.CodecOf(o.String("manifest.compression", "zstd"), int(level))
	return nil
}

// newFiles returns the paths of all files that the commit brings and that must be
// durable before it, and the bytes of the data files. A file that only changes
// its level is there already.
func (j *job) newFiles() (paths []string, bytes int64, err error) {
	old := map[string][]string{} // side files by data file
	for i := range j.files {
		if e := &j.files[i]; e.Kind == manifest.Delete {
			old[e.File.Name] = e.File.ExtraFiles
		}
	}
	for _, list := range [][]manifest.Entry{j.files, j.changelog} {
		for i := range list {
			e := &list[i]
			if e.Kind != manifest.Add {
				continue
			}
			sides, stays := old[e.File.Name]
			if stays && len(e.File.ExtraFiles) == 0 {
				continue
			}
			ps, err := j.p.o.Files.DataPaths(j.sch, e)
			if err != nil {
				return nil, 0, err
			}
			if stays {
				// Only what is new beside it, in the order of ExtraFiles.
				for k, x := range e.File.ExtraFiles {
					if !slices.Contains(sides, x) {
						paths = append(paths, ps[1+k])
					}
				}
				continue
			}
			paths = append(paths, ps...)
			bytes += e.File.Size
		}
	}
	for i := range j.c.Indexes {
		if e := &j.c.Indexes[i]; e.Kind == manifest.Add {
			path, err := j.p.o.Files.IndexPath(j.sch, e)
			if err != nil {
				return nil, 0, err
			}
			paths = append(paths, path)
			bytes += e.Size
		}
	}
	if j.c.Statistics != "" {
		paths = append(paths, j.p.o.Dir+"/statistics/"+j.c.Statistics)
	}
	return paths, bytes, nil
}

// run makes attempts until one decides.
func (j *job) run(ctx context.Context) (int64, error) {
	r, err := retriesOf(j.options)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	for n := 0; ; n++ {
		unlock, err := j.p.Lock(ctx)
		if err != nil {
			return 0, err
		}
		id, err := j.attempt(ctx)
		unlock()
		if err == nil || !errors.Is(err, errRace) {
			return id, err
		}
		if int64(n) >= r.most || time.Since(start) > r.timeout {
			return 0, fmt.Errorf("commit lost the race for the next snapshot %d times in %v: %w", n+1, time.Since(start).Round(time.Millisecond), err)
		}
		if err := r.wait(ctx, n); err != nil {
			return 0, err
		}
	}
}

// errRace says that somebody else published the id.
var errRace = errors.New("another writer published it first")

// attempt tries to publish on top of the newest snapshot; errRace = again.
func (j *job) attempt(ctx context.Context) (int64, error) {
	latest, err := j.p.o.Snapshots.Latest(ctx)
	if err != nil {
		return 0, err
	}
	if id, err := j.findOwn(ctx, latest); id > 0 || err != nil {
		return id, err
	}
	sch, err := j.p.latestSchema(ctx)
	if err != nil {
		return 0, err
	}
	if err := j.useSchema(sch); err != nil {
		return 0, err
	}
	st := &state{job: j, latest: latest}
	if skip, err := st.changes(ctx); skip || err != nil {
		if latest == nil {
			return 0, err
		}
		return latest.ID, err
	}
	if err := st.check(ctx); err != nil {
		return 0, err
	}
	s, err := j.write(ctx, st)
	j.prev, j.tried = latest, true
	if err != nil {
		return 0, err
	}
	return j.publish(ctx, s)
}

// findOwn looks for a snapshot that is this commit already: one that a former
// attempt published, or, where the caller numbers its commits, an earlier run.
func (j *job) findOwn(ctx context.Context, latest *snapshot.Snapshot) (int64, error) {
	if latest == nil || !j.tried && (j.c.User == "" || j.identifier == math.MaxInt64) {
		return 0, nil
	}
	stop := int64(0)
	if j.tried && j.prev != nil {
		stop = j.prev.ID
	}
	for id := latest.ID; id > stop; id-- {
		s := latest
		if id != latest.ID {
			var err error
			if s, err = j.p.o.Snapshots.Get(ctx, id); errors.Is(err, snapshot.ErrNotFound) {
				return 0, nil // expired: as far back as anybody can look
			} else if err != nil {
				return 0, err
			}
		}
		if j.isOwn(s) {
			j.published = j.delta != nil && s.DeltaManifestList == j.delta.list
			return id, nil
		}
		if s.CommitUser == j.user && s.CommitIdentifier < j.identifier {
			break // identifiers of a user ascend
		}
	}
	if j.overtaken {
		return j.findBuiltUpon(ctx, latest)
	}
	return 0, nil
}

// findBuiltUpon returns the id of latest when it holds what this commit adds: then
// somebody went on from a snapshot of a former attempt before that was replaced.
func (j *job) findBuiltUpon(ctx context.Context, latest *snapshot.Snapshot) (int64, error) {
	gone := map[string]bool{} // files that only change their level are no proof
	for i := range j.files {
		if j.files[i].Kind == manifest.Delete {
			gone[j.files[i].File.Name] = true
		}
	}
	i := slices.IndexFunc(j.files, func(e manifest.Entry) bool { return e.Kind == manifest.Add && !gone[e.File.Name] })
	if i < 0 {
		return 0, nil // to remove twice what is gone is a conflict, and is found as one
	}
	live, err := j.p.Live(ctx, latest)
	if err != nil {
		return 0, err
	}
	for _, e := range live {
		if e.File.Name == j.files[i].File.Name {
			j.published = true
			return latest.ID, nil
		}
	}
	return 0, nil
}

// isOwn reports whether s is this commit. The name of the delta list holds a UUID
// of ours; user, identifier and kind say it across restarts.
func (j *job) isOwn(s *snapshot.Snapshot) bool {
	if j.delta != nil && s.DeltaManifestList == j.delta.list {
		return true
	}
	return j.identifier != math.MaxInt64 && s.CommitUser == j.user && s.CommitIdentifier == j.identifier && s.CommitKind == string(j.kind)
}

// publish syncs everything that s names and links it.
func (j *job) publish(ctx context.Context, s *snapshot.Snapshot) (int64, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	snaps := j.p.o.Snapshots
	raw, err := snaps.Create(ctx, s, j.unsynced...)
	if errors.Is(err, fileio.ErrExist) {
		j.unsynced = nil
		j.overtaken = j.overtaken || errors.Is(err, fileio.ErrOvertaken)
		return 0, fmt.Errorf("snapshot %d: %w", s.ID, errRace)
	}
	if err != nil {
		// The reply is lost, not the snapshot: whether it is there is what counts.
		vctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), verifyWait)
		defer cancel()
		there, verr := snaps.At(vctx, s.ID)
		var late *fileio.UncertainError
		switch {
		case errors.Is(verr, fileio.ErrNotExist) && errors.As(err, &late):
			// An object store may still be about to carry out the request.
			j.unknown = true
			return 0, &UnknownOutcomeError{SnapshotID: s.ID, Err: err}
		case errors.Is(verr, fileio.ErrNotExist):
			if errors.Is(err, fileio.ErrNotExist) { // the table itself, perhaps
				if _, serr := j.p.o.Schemas.Latest(vctx); errors.Is(serr, schema.ErrNotFound) {
					return 0, serr
				}
			}
			return 0, err
		case verr != nil:
			j.unknown = true
			return 0, &UnknownOutcomeError{SnapshotID: s.ID, Err: errors.Join(err, verr)}
		case there.DeltaManifestList != s.DeltaManifestList:
			return 0, fmt.Errorf("snapshot %d: %w", s.ID, errRace)
		}
		if serr := j.p.o.IO.Sync(vctx, snaps.Path(s.ID)); serr != nil {
			j.unknown = true
			return 0, &UnknownOutcomeError{SnapshotID: s.ID, Err: errors.Join(err, serr)}
		}
		ctx = vctx
	}
	j.published = true
	snaps.Remember(s, raw)
	_ = snaps.WriteLatest(ctx, s.ID) // advice: a stale one costs a look at the directory
	return s.ID, nil
}

// cleanUp deletes the metadata files that nothing names: all of a commit that
// failed, those of lost attempts otherwise. When the outcome is not known,
// everything stays.
func (j *job) cleanUp(ctx context.Context, err error) {
	if j.unknown {
		return
	}
	var paths []string
	for name, used := range j.made {
		if !used || !j.published {
			paths = append(paths, j.path(name))
		}
	}
	j.p.o.Manifests.Forget(paths...)
	paths = append(paths, j.strayHashes()...)
	if len(paths) == 0 {
		return
	}
	_ = j.p.o.IO.Delete(context.WithoutCancel(ctx), paths...) // what stays is an orphan
}

func (j *job) path(name string) string { return j.p.o.Dir + "/manifest/" + name }

// name makes the name of a new metadata file, as Java's path factory does.
func (j *job) name(kind string) string {
	n := j.numbers[kind]
	j.numbers[kind]++
	return fmt.Sprintf("%s-%s-%d", kind, j.id, n)
}

// create writes a metadata file. It is synced by publish.
func (j *job) create(ctx context.Context, name string, data []byte) error {
	w, err := j.p.o.IO.Create(ctx, j.path(name))
	if err != nil {
		return err
	}
	j.made[name] = true
	if _, err := w.Write(data); err != nil {
		_ = w.Abort()
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	j.unsynced = append(j.unsynced, j.path(name))
	return nil
}

// drop says that the snapshot of this attempt does not name these files.
func (j *job) drop(names ...string) {
	for _, n := range names {
		if _, mine := j.made[n]; mine {
			j.made[n] = false
		}
	}
}
