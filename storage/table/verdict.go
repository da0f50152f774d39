package table

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"slices"
	"strings"
	"sync"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// Data files never change, so what the merge of a set of files comes to is a
// constant: which rows are final, which lose, and which are versions of keys that an
// engine folds. A verdict remembers it, in one bit a row:
//
//	files of a section        verdict             what is planned
//	base   k1 k2 k3 k4 k5     live: k1 k4 k5      raw splits of the live rows
//	level0    k2 k3           live: k2 k3 (or     a merge split of the folded ones,
//	                          folded: all four)   where there is an engine
//
// Raw rows of a section with a verdict are final: they need no key columns and no
// kinds, files are cut into row ranges, and a filter on values may prune each file
// for itself, because what loses is not read whether the winner passes or not. A
// count of rows needs no file at all.
//
// Nothing is judged that is read once: the first plan of a set of files notes it, the
// second judges it, by merging keys alone, and both have the same verdict from then
// on. Names of data files are unique, so a table that was rolled back or made anew
// cannot be mistaken.

// verdict is what the merge of a section comes to. Immutable.
type verdict struct {
	// live and folded are rows by file; a file that is not there has none.
	live, folded map[string]*mergetree.RowSet
	rows         int64 // that the merge returns
	key          verdictKey
	bytes        int64 // of memory
}

// verdictKey is the identity of a section: a hash of its files and of all that decides
// what their merge comes to.
type verdictKey [sha256.Size]byte

// verdicts are those of a warehouse.
type verdicts struct {
	mu      sync.Mutex // guards the entries, too
	entries *fileio.LRU[verdictKey, *verdictEntry]
	budget  int64
	least   int64 // rows that a section has to have
}

type verdictEntry struct {
	v    *verdict      // nil = not yet
	busy chan struct{} // closed when who judges is done; nil = nobody does
}

// Entries without a verdict cost this much.
const verdictCost = 256

func newVerdicts(budget, least int64) *verdicts {
	return &verdicts{entries: fileio.NewLRU[verdictKey, *verdictEntry](budget, nil), budget: budget, least: least}
}

// enter returns the verdict of a section, or nil. Where whole is set the section is
// noted; judge says that the caller has to find the verdict, and to call leave then.
func (s *verdicts) enter(ctx context.Context, k verdictKey, whole bool) (v *verdict, judge bool, err error) {
	s.mu.Lock()
	e, ok := s.entries.Get(k)
	switch {
	case !ok:
		if whole {
			s.entries.Put(k, &verdictEntry{}, verdictCost)
		}
		s.mu.Unlock()
		return nil, false, nil
	case e.v != nil || !whole:
		v = e.v
		s.mu.Unlock()
		return v, false, nil
	case e.busy == nil:
		e.busy = make(chan struct{})
		s.mu.Unlock()
		return nil, true, nil
	}
	busy := e.busy
	s.mu.Unlock()
	select {
	case <-busy:
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
	s.mu.Lock()
	v = e.v
	s.mu.Unlock()
	return v, false, nil // nil: whoever judged could not
}

// leave publishes a verdict, or that there is none.
func (s *verdicts) leave(k verdictKey, v *verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries.Get(k)
	if !ok { // it left the cache
		e = &verdictEntry{}
	}
	if e.busy != nil {
		close(e.busy)
		e.busy = nil
	}
	cost := int64(verdictCost)
	if v != nil {
		e.v = v
		cost += v.bytes
	}
	s.entries.Put(k, e, cost)
}

// judges reports whether the plan may go by verdicts: those that ask for retractions
// see more than what is left of a merge.
func (p *planner) judges() bool {
	return p.t.env.verdicts.budget > 0 && !p.read.kinds && p.read.expire == nil
}

// settles reports whether verdicts may be found for the plan: where it reads enough
// to be worth it.
func (p *planner) settles() bool { return p.scan.Limit <= 0 || p.filter != nil }

// verdictOf returns the verdict of a section, nil when there is none. Where whole is
// set the plan reads all of it, and it is judged if it was so before.
func (p *planner) verdictOf(ctx context.Context, l live, runs [][]File, whole bool) (*verdict, error) {
	s := p.t.env.verdicts
	rows := int64(0)
	for _, r := range runs {
		rows += runRows(r)
	}
	if rows < s.least {
		return nil, nil
	}
	k := p.verdictKey(l, runs)
	v, judge, err := s.enter(ctx, k, whole && p.settles())
	if err != nil {
		return nil, err
	}
	if judge {
		defer func() { s.leave(k, v) }()
		if v, err = p.judge(ctx, l, runs, rows); err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			v = nil // the merge will say what is wrong, if it comes to it
		}
		if v != nil {
			v.key = k
			p.report.Judged++
		}
	}
	if v != nil {
		p.report.Remembered++
	}
	return v, nil
}

// verdictKey makes the identity of a section.
func (p *planner) verdictKey(l live, runs [][]File) verdictKey {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %t %t %t %t", p.bucketDir(l.part, l.Bucket), p.mergeEngine(), p.ignoreDelete(), p.read.seqDesc, p.read.snapshot, p.looksUp())
	fields := func(cols []int) {
		fmt.Fprintf(h, "; %d", len(cols))
		for _, c := range cols {
			f := &p.schema.Fields[c]
			fmt.Fprintf(h, " %d %s", f.ID, types.PaimonString(f.Type))
		}
	}
	fields(p.keyCols)
	fields(p.read.seqCols)
	if p.folds([][][]File{runs}) != nil {
		p.foldKey(h)
	}
	for _, r := range runs {
		fmt.Fprintf(h, "\nrun")
		for i := range r {
			m := r[i].Meta
			fmt.Fprintf(h, "\n%s %d %d %d %d %d %d %d", m.Name, m.Level, m.Rows, m.DeleteRows, m.MinSequence, m.MaxSequence, m.SchemaID, m.Source)
			if d := r[i].DV; d != nil {
				fmt.Fprintf(h, " %s %d %d", d.Path, d.Offset, d.Length)
			}
		}
	}
	return verdictKey(h.Sum(nil))
}

// foldKey adds what decides how many rows an engine makes of versions: any column and
// option of engines.
func (p *planner) foldKey(h hash.Hash) {
	fmt.Fprintf(h, "; %d", p.schema.ID)
	var names []string
	for k := range p.options {
		if strings.HasPrefix(k, "fields.") || strings.HasPrefix(k, "partial-update.") || strings.HasPrefix(k, "aggregation.") {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	for _, k := range names {
		fmt.Fprintf(h, "\n%q=%q", k, p.options[k])
	}
}

// planJudged plans the sections of a bucket that have a verdict. It returns the files
// that are left to others, without those whose keys do not match.
func (p *planner) planJudged(ctx context.Context, spans []mergetree.Span, kept []live, gone []bool, merges func(*mergetree.Section) bool,
	file func(live) File, vectorMode bool, raw *[]File, merge *[]mergeSection,
) ([]mergetree.Span, error) {
	done := make([]bool, len(kept))
	at := map[*manifest.DataFile]int{}
	for _, s := range mergetree.IntervalPartition(spans) {
		if !merges(&s) {
			continue
		}
		whole := p.read.keyFrom == nil && p.read.keyTo == nil
		runs := make([][]File, len(s.Runs))
		for k, r := range s.Runs {
			for _, i := range r {
				whole = whole && !gone[i]
				at[kept[i].File] = i
				runs[k] = append(runs[k], file(kept[i]))
			}
		}
		v, err := p.verdictOf(ctx, kept[s.Runs[0][0]], runs, whole)
		if err != nil {
			return nil, err
		}
		if v == nil {
			continue
		}
		files, fold, err := p.addJudged(runs, v, func(f *File) (byKey, byValue bool, err error) {
			i := at[f.Meta]
			p.countLevel0(kept[i], vectorMode)
			if gone[i] {
				return true, true, nil
			}
			ok, err := p.mayMatch(kept[i], true)
			return false, !ok, err
		})
		if err != nil {
			return nil, err
		}
		*raw = append(*raw, files...)
		if fold != nil {
			*merge = append(*merge, *fold)
		}
		for _, r := range s.Runs {
			for _, i := range r {
				done[i] = true
			}
		}
	}
	out := spans[:0]
	for _, s := range spans {
		switch {
		case done[s.Item]:
		case gone[s.Item]:
			p.skip("stats", 1)
		default:
			out = append(out, s)
		}
	}
	return out, nil
}

// addJudged plans a section by its verdict: raw files, a section of what is folded,
// and the rows of it all where they are only counted. dropped tells of files that the
// filter rules out by their keys.
func (p *planner) addJudged(runs [][]File, v *verdict, dropped func(*File) (byKey, byValue bool, err error)) (raw []File, fold *mergeSection, err error) {
	if p.countsOnly() {
		for _, r := range runs {
			p.skip("metadata", int64(len(r)))
		}
		p.counted += v.rows
		p.proven += v.rows
		return nil, nil, nil
	}
	m := &mergeSection{}
	if p.keepsFolded() {
		m.fold = &foldedPart{v.key}
	}
	for _, r := range runs {
		var run []File
		for _, f := range r {
			byKey, byValue, err := dropped(&f)
			if err != nil {
				return nil, nil, err
			}
			live, folded := v.live[f.Meta.Name], v.folded[f.Meta.Name]
			if byKey {
				m.fold = nil // some of the rows are left out
			}
			if byKey || byValue && folded == nil || live == nil && folded == nil {
				if reason := "stats"; byKey || byValue {
					p.skip(reason, 1)
				} else {
					p.skip("merged away", 1)
				}
				continue
			}
			p.report.FilesRead++
			if live != nil && !byValue {
				f.only = live
				raw = append(raw, f)
			}
			if folded != nil {
				f.only = folded
				run = append(run, f)
				m.rows += folded.Count()
				p.read.foldRows += folded.Count()
				m.bytes += f.Meta.Size * folded.Count() / max(f.Meta.Rows, 1)
			}
		}
		if len(run) > 0 {
			m.runs = append(m.runs, run)
		}
	}
	if len(m.runs) == 0 {
		m = nil
	}
	return raw, m, nil
}

// countsOnly reports whether the scan only wants to know how many rows there are.
func (p *planner) countsOnly() bool {
	return len(p.read.columns) == 0 && p.scan.prunes(PruneMetadata) && p.filter == nil && p.scan.Late == nil && !p.read.kinds
}
