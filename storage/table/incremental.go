package table

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/paimon-sql/paimon-sql/internal/cores"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// Reading changes takes the snapshots of a range (From, To] and, by mode,
//
//	delta      the files that APPEND snapshots added, row by row as they were written
//	changelog  the changelog files of all snapshots but OVERWRITE ones
//	diff       the states at both ends, merged; see incremental_diff.go
//
// Rows of delta and changelog files are not merged with each other: each comes
// with its kind (PseudoKind), retractions included, whether the kind is asked for or
// not, as Java's readers give them. A filter may therefore prune any single file.
// Files of one bucket come in the order of snapshots; what is in different splits
// has no order.
// Source: IncrementalDeltaStartingScanner.java, AbstractDataTableScan.java.

// Options that ask for changes.
const (
	betweenOption     = "incremental-between"
	betweenTimeOption = "incremental-between-timestamp"
	autoTagOption     = "incremental-to-auto-tag"
	betweenModeOption = "incremental-between-scan-mode"
	betweenTagsOption = "incremental-between-tag-to-snapshot"
)

// AsksChanges reports whether dynamic options ask for changes instead of a state.
func AsksChanges(o schema.Options) bool {
	for _, k := range []string{betweenOption, betweenTimeOption, autoTagOption} {
		if o.String(k, "") != "" {
			return true
		}
	}
	return false
}

// Changes finds the range of changes that options ask for: those of the table with
// dynamic ones laid over. A range of nothing has From = To. Snapshots that are not
// there any more, or not yet, are a *snapshot.NotFoundError.
func (t *FileStore) Changes(ctx context.Context, branch string, o schema.Options) (*Incremental, error) {
	r := &rangeFinder{ctx: ctx, m: t.branch(branch).snapshots, o: o, inc: &Incremental{}}
	if err := r.mode(); err != nil {
		return nil, err
	}
	var err error
	switch {
	case o.String(betweenOption, "") != "":
		err = r.between()
	case o.String(betweenTimeOption, "") != "":
		err = r.betweenTimes()
	default:
		err = r.toAutoTag()
	}
	return r.inc, err
}

// rangeFinder is the work of one Changes.
type rangeFinder struct {
	ctx context.Context
	m   *snapshot.Manager
	o   schema.Options
	inc *Incremental
}

func (r *rangeFinder) mode() error {
	switch m := r.o.Enum(betweenModeOption, "auto"); m {
	case "auto":
		r.inc.Mode = IncrementalDelta
		if r.o.Enum("changelog-producer", "none") != "none" {
			r.inc.Mode = IncrementalChangelog
		}
	case "delta":
		r.inc.Mode = IncrementalDelta
	case "changelog":
		r.inc.Mode = IncrementalChangelog
	case "diff":
		r.inc.Mode = IncrementalDiff
	default:
		return fmt.Errorf("option %q is %q, not auto, delta, changelog or diff", betweenModeOption, m)
	}
	return nil
}

// ends cuts "a,b".
func ends(key, v string) (a, b string, err error) {
	a, b, ok := strings.Cut(v, ",")
	a, b = strings.TrimSpace(a), strings.TrimSpace(b)
	if !ok || a == "" || b == "" || strings.Contains(b, ",") {
		return "", "", fmt.Errorf("option %q is %q, not a start (exclusive) and an end such as '5,10'", key, v)
	}
	return a, b, nil
}

// between finds a range of two tags, or of two snapshot ids.
func (r *rangeFinder) between() error {
	a, b, err := ends(betweenOption, r.o.String(betweenOption, ""))
	if err != nil {
		return err
	}
	from, errA := r.m.Tag(r.ctx, a)
	to, errB := r.m.Tag(r.ctx, b)
	for _, err := range []error{errA, errB} {
		if err != nil && !errors.Is(err, snapshot.ErrNotFound) {
			return err
		}
	}
	if errA == nil && errB == nil {
		ids, err := r.o.Bool(betweenTagsOption, false)
		if err != nil {
			return err
		}
		if to.ID < from.ID {
			return fmt.Errorf("tag %q is of snapshot %d, before snapshot %d of tag %q", b, to.ID, from.ID, a)
		}
		r.inc.FromTag, r.inc.ToTag = a, b
		if ids && r.inc.Mode != IncrementalDiff {
			return r.ids(from.ID, to.ID)
		}
		r.diff(from, to)
		return nil
	}
	x, err1 := strconv.ParseInt(a, 10, 64)
	y, err2 := strconv.ParseInt(b, 10, 64)
	if err1 != nil || err2 != nil {
		for i, e := range []error{errA, errB} {
			if name := []string{a, b}[i]; e != nil && []error{err1, err2}[i] != nil {
				return &snapshot.NotFoundError{Ref: snapshot.Ref{Kind: snapshot.Tag, Name: name},
					Reason: fmt.Sprintf("%q is neither a tag nor a snapshot id; changes are read between two tags or two snapshots", name)}
			}
		}
		return fmt.Errorf("changes are read between two tags or two snapshots, not between %q and %q", a, b)
	}
	if x < 0 {
		return fmt.Errorf("the range of changes starts with snapshot %d; 0 stands for all from the beginning", x)
	}
	if y < x {
		return fmt.Errorf("the range of changes ends with snapshot %d, before its start %d", y, x)
	}
	return r.ids(x, y)
}

// ids sets a range of snapshot ids.
func (r *rangeFinder) ids(from, to int64) error {
	r.inc.From, r.inc.To = from, to
	latest, err := r.m.LatestID(r.ctx)
	if err != nil || from == to || latest == 0 {
		r.inc.From = to
		return err
	}
	earliest, err := r.m.EarliestID(r.ctx)
	if err != nil {
		return err
	}
	missing := func(id int64, expired bool) error {
		return &snapshot.NotFoundError{Ref: snapshot.Ref{Kind: snapshot.ID, ID: id}, Earliest: earliest, Latest: latest, Expired: expired}
	}
	if to > latest {
		return missing(to, false)
	}
	if r.inc.Mode == IncrementalDiff {
		var a *snapshot.Snapshot
		if from != 0 || earliest > 1 {
			if a, err = r.m.Get(r.ctx, from); err != nil {
				return err
			}
		}
		b, err := r.m.Get(r.ctx, to)
		if err != nil {
			return err
		}
		r.diff(a, b)
		return nil
	}
	if from < earliest-1 {
		// Changelogs may outlive their snapshots, and with no changelog producer it is
		// the delta that does.
		oldest := earliest
		if r.inc.Mode == IncrementalChangelog || r.o.Enum("changelog-producer", "none") == "none" {
			if oldest, err = r.oldestChangelog(earliest); err != nil {
				return err
			}
		}
		if from < oldest-1 {
			return missing(max(from, 0)+1, true)
		}
	}
	return nil
}

// oldestChangelog is the first id from which on every snapshot before earliest has
// left its changelog.
func (r *rangeFinder) oldestChangelog(earliest int64) (int64, error) {
	ids, err := r.m.ChangelogIDs(r.ctx)
	if err != nil {
		return 0, err
	}
	for i := len(ids) - 1; i >= 0; i-- {
		switch {
		case ids[i] >= earliest:
		case ids[i] == earliest-1:
			earliest--
		default:
			return earliest, nil
		}
	}
	return earliest, nil
}

func (r *rangeFinder) diff(from, to *snapshot.Snapshot) {
	r.inc.Mode, r.inc.from, r.inc.to, r.inc.To = IncrementalDiff, from, to, to.ID
	r.inc.From = 0
	if from != nil {
		r.inc.From = from.ID
	}
}

// moment reads a time: epoch milliseconds, or text in UTC.
func moment(s string) (int64, error) {
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil {
		return ms, nil
	}
	for _, layout := range []string{"2006-01-02 15:04:05.999999999", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, time.UTC); err == nil {
			return t.UnixMilli(), nil
		}
	}
	return 0, fmt.Errorf("option %q holds %q, which is neither milliseconds nor a timestamp", betweenTimeOption, s)
}

// betweenTimes finds the range of snapshots committed in (a, b].
func (r *rangeFinder) betweenTimes() error {
	at, bt, err := ends(betweenTimeOption, r.o.String(betweenTimeOption, ""))
	if err != nil {
		return err
	}
	a, err := moment(at)
	if err != nil {
		return err
	}
	b, err := moment(bt)
	if err != nil {
		return err
	}
	if b < a {
		return fmt.Errorf("the range of changes ends at %s, before its start %s", bt, at)
	}
	first, err := r.m.EarliestID(r.ctx)
	if err != nil || first == 0 {
		return err
	}
	earliest, err := r.m.Get(r.ctx, first)
	if err != nil {
		return err
	}
	latest, err := r.m.Latest(r.ctx)
	if err != nil || latest == nil || a == b || a > latest.TimeMillis || b < earliest.TimeMillis {
		return err
	}
	end, err := r.m.AtTime(r.ctx, b)
	if err != nil {
		return err
	}
	var start *snapshot.Snapshot
	if earliest.TimeMillis <= a {
		if start, err = r.m.AtTime(r.ctx, a); err != nil {
			return err
		}
	}
	if r.inc.Mode == IncrementalDiff {
		if start == nil && first > 1 {
			start = earliest
		}
		r.diff(start, end)
		return nil
	}
	r.inc.From, r.inc.To = first-1, end.ID
	if start != nil {
		r.inc.From = start.ID
	}
	return nil
}

// toAutoTag finds the range from the automatic tag before the one named to that; if
// either is not there, a range of nothing.
func (r *rangeFinder) toAutoTag() error {
	name := r.o.String(autoTagOption, "")
	layout, daily, err := tagLayout(r.o)
	if err != nil {
		return err
	}
	end, ok := tagTime(name, layout, daily)
	if !ok {
		return fmt.Errorf("tag %q is not named as automatic tags of the table are", name)
	}
	to, err := r.m.Tag(r.ctx, name)
	if errors.Is(err, snapshot.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	all, err := r.m.Tags(r.ctx)
	if err != nil {
		return err
	}
	var best string
	var when time.Time
	for _, n := range all {
		if at, ok := tagTime(n, layout, daily); ok && at.Before(end) && (best == "" || at.After(when)) {
			best, when = n, at
		}
	}
	if best == "" {
		return nil
	}
	from, err := r.m.Tag(r.ctx, best)
	if err != nil {
		return err
	}
	r.inc.FromTag, r.inc.ToTag = best, name
	r.diff(from, to)
	return nil
}

// tagLayout is how automatic tags are named. Source: TagPeriodHandler.java.
func tagLayout(o schema.Options) (layout string, daily bool, err error) {
	if o.String("tag.creation-period-duration", "") != "" {
		return "200601021504", false, nil
	}
	form := o.Enum("tag.period-formatter", "with_dashes")
	at := map[string]int{"with_dashes": 0, "without_dashes": 1, "without_dashes_and_spaces": 2}
	i, ok := at[form]
	if !ok {
		return "", false, fmt.Errorf("option %q is %q", "tag.period-formatter", form)
	}
	switch p := o.Enum("tag.creation-period", "daily"); p {
	case "daily":
		return []string{"2006-01-02", "20060102", "20060102"}[i], true, nil
	case "hourly":
		return []string{"2006-01-02 15", "20060102 15", "2006010215"}[i], false, nil
	case "two-hours":
		return "2006-01-02 15", false, nil
	default:
		return "", false, fmt.Errorf("option %q is %q", "tag.creation-period", p)
	}
}

func tagTime(name, layout string, daily bool) (time.Time, bool) {
	if daily {
		name, _, _ = strings.Cut(name, " ")
	}
	t, err := time.Parse(layout, name)
	return t, err == nil
}

// planIncremental plans a scan of changes.
func (p *planner) planIncremental(ctx context.Context, inc *Incremental) (*Plan, error) {
	p.report.SnapshotID = inc.To
	out := &Plan{Report: p.report, Schema: p.schema}
	if inc.From == inc.To {
		return out, nil
	}
	mode := inc.Mode
	if mode == IncrementalAuto {
		mode = IncrementalDelta
		if p.options.Enum("changelog-producer", "none") != "none" {
			mode = IncrementalChangelog
		}
	}
	var err error
	if mode == IncrementalDiff {
		err = p.planDiff(ctx, inc)
	} else {
		err = p.planFiles(ctx, inc, mode)
	}
	out.Splits = p.splits
	return out, err
}

// change returns the snapshot with an id, or what its changelog has kept of it.
func (p *planner) change(ctx context.Context, id int64) (*snapshot.Snapshot, error) {
	s, err := p.snapshots.Get(ctx, id)
	if err == nil || !errors.Is(err, snapshot.ErrNotFound) {
		return s, err
	}
	c, cerr := p.snapshots.Changelog(ctx, id)
	if errors.Is(cerr, fileio.ErrNotExist) {
		return nil, err
	}
	return c, cerr
}

// listOf names the manifest list that holds a snapshot's changes, "" for none.
func listOf(s *snapshot.Snapshot, mode IncrementalMode) string {
	switch {
	case mode == IncrementalDelta && s.CommitKind == string(commit.Append):
		return s.DeltaManifestList
	case mode == IncrementalChangelog && s.CommitKind != string(commit.Overwrite):
		return s.ChangelogManifestList
	}
	return ""
}

// planFiles plans the delta or changelog files of a range.
func (p *planner) planFiles(ctx context.Context, inc *Incremental, mode IncrementalMode) error {
	p.read.kinds = true
	n := inc.To - inc.From
	metas := make([][]manifest.FileMeta, n)
	var first *snapshot.Snapshot
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(4, 2*cores.Count()))
	for i := range n {
		g.Go(func() error {
			s, err := p.change(gctx, inc.From+1+i)
			if err != nil {
				return err
			}
			if i == 0 {
				first = s
			}
			if l := listOf(s, mode); l != "" {
				if metas[i], err = p.t.env.Manifests.List(gctx, p.t.env.IO, p.t.dir+"/manifest/"+l); err != nil {
					st := *p.state
					st.snap = s
					err = p.t.explain(gctx, &st, snapshot.Ref{Kind: snapshot.ID, ID: s.ID, Branch: p.scan.At.Branch}, err)
				}
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	// Whether the oldest snapshot is still there says why a file is missing.
	st := *p.state
	st.snap = first
	p.read.st, p.read.at = &st, snapshot.Ref{Kind: snapshot.ID, ID: first.ID, Branch: p.scan.At.Branch}
	var kept []manifest.FileMeta
	for _, ms := range metas {
		p.report.Manifests += int64(len(ms))
		for i := range ms {
			if p.mayHold(&ms[i]) {
				kept = append(kept, ms[i])
			}
		}
	}
	p.report.ManifestsRead = int64(len(kept))
	lists := make([][]manifest.Entry, len(kept))
	g, gctx = errgroup.WithContext(ctx)
	g.SetLimit(max(4, 2*cores.Count()))
	for i := range kept {
		g.Go(func() (err error) {
			lists[i], err = p.t.env.Manifests.Entries(gctx, p.t.env.IO, p.t.dir+"/manifest/"+kept[i].Name)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return p.t.explain(ctx, p.read.st, p.read.at, err)
	}
	names := make([]string, len(kept))
	for i := range kept {
		names[i] = p.t.dir + "/manifest/" + kept[i].Name
		for k := range lists[i] {
			if e := &lists[i][k]; e.Kind != manifest.Add {
				return &fileio.CorruptionError{Path: names[i], Offset: -1, Reason: "a manifest of changes removes file " + e.File.Name}
			}
		}
	}
	files, err := p.merge(ctx, lists, names)
	if err != nil {
		return err
	}
	for _, b := range group(files) {
		if err := p.planChanges(ctx, b, inc.InOrder); err != nil {
			return err
		}
	}
	return nil
}

// planChanges makes splits of the files of one bucket.
func (p *planner) planChanges(ctx context.Context, files []live, inOrder bool) error {
	var raw []File
	for _, l := range files {
		ok := inOrder
		if !ok {
			var err error
			if ok, err = p.mayMatch(l, true); err != nil {
				return err
			}
		}
		if !ok {
			p.skip("stats", 1)
			continue
		}
		raw = append(raw, File{Meta: l.File})
	}
	if !inOrder {
		return p.addRaw(ctx, files[0], raw)
	}
	for len(raw) > 0 {
		n, size := 0, int64(0)
		for n < len(raw) && (n == 0 || size+raw[n].Meta.Size <= p.t.env.sizes.split) {
			if err := p.check(&raw[n]); err != nil {
				return err
			}
			size += max(raw[n].Meta.Size, openCost)
			n++
		}
		s := p.newSplit(files[0], raw[:n:n])
		s.Raw = true
		p.report.FilesRead += int64(n)
		p.add(s)
		raw = raw[n:]
	}
	return nil
}

// topLevel is the highest level of the table's buckets (num-levels - 1).
func (p *planner) topLevel() (int64, error) {
	trigger, err := p.options.Int("num-sorted-run.compaction-trigger", 5)
	if err != nil {
		return 0, err
	}
	n, err := p.options.Int("num-levels", trigger+1)
	return n - 1, err
}
