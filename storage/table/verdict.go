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
// The first plan that reads all of a set of files judges it, before anything else is
// read: by what an earlier verdict says of most of the files (verdict_derive.go), or by
// merging keys alone. Reading what is final and folding the rest costs less than merging
// all there is, even once; only where an engine has to fold most of the rows anyway, the
// first plan notes the set and the second judges it. Names of data files are unique, so
// a table that was rolled back or made anew cannot be mistaken.

// verdict is what the merge of a section comes to. Immutable.
type verdict struct {
	// live and folded are rows by file; a file that is not there has none.
	live, folded map[string]*mergetree.RowSet
	rows         int64 // that the merge returns
	key          verdictKey
	files        []string // identities
	bytes        int64    // of memory
}

// verdictKey is the identity of a section: a hash of its files and of all that decides
// what their merge comes to.
type verdictKey [sha256.Size]byte

// verdicts are those of a warehouse.
type verdicts struct {
	mu      sync.Mutex // guards the entries, too
	entries *fileio.LRU[verdictKey, *verdictEntry]
	// latest are the last verdicts in a context, newest first.
	latest *fileio.LRU[verdictKey, []verdictKey]
	budget int64
	least  int64 // rows that a section has to have
	// derived, when not nil, is told of verdicts that were derived; for tests.
	derived func(j *judging, v *verdict)
}

type verdictEntry struct {
	v    *verdict      // nil = not yet
	busy chan struct{} // closed when who judges is done; nil = nobody does
}

// Entries without a verdict cost this much.
const verdictCost = 256

func newVerdicts(budget, least int64) *verdicts {
	return &verdicts{
		entries: fileio.NewLRU[verdictKey, *verdictEntry](budget, nil),
		latest:  fileio.NewLRU[verdictKey, []verdictKey](max(budget/64, 0), nil),
		budget:  budget, least: least,
	}
}

// enter returns the verdict of a section, or nil. Where whole is set the section is
// noted; judge says that the caller has to find the verdict, and to call leave then:
// the first time where eager is set, else the second. busy is to be handed to leave
// then; else it is not nil where somebody else is finding the verdict.
func (s *verdicts) enter(k verdictKey, whole, eager bool) (v *verdict, judge bool, busy chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries.Get(k)
	switch {
	case !ok:
		if !whole {
			return nil, false, nil
		}
		e = &verdictEntry{}
		if eager {
			e.busy = make(chan struct{})
		}
		s.entries.Put(k, e, verdictCost)
		return nil, eager, e.busy
	case e.v != nil || !whole:
		return e.v, false, nil
	case e.busy == nil:
		e.busy = make(chan struct{})
		return nil, true, e.busy
	}
	return nil, false, e.busy
}

// wait waits for who is finding a verdict; nil = they could not.
func (s *verdicts) wait(ctx context.Context, k verdictKey, busy chan struct{}) (*verdict, error) {
	select {
	case <-busy:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.entries.Get(k); ok {
		return e.v, nil
	}
	return nil, nil
}

// leave publishes a verdict, or that there is none, to those that wait for busy.
func (s *verdicts) leave(k sectionKey, v *verdict, busy chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(busy) // whatever has become of the entry since
	e, ok := s.entries.Get(k.files)
	if !ok { // it left the cache
		e = &verdictEntry{}
	}
	if e.busy == busy {
		e.busy = nil
	}
	cost := int64(verdictCost)
	if v != nil {
		e.v = v
		cost += v.bytes
		last, _ := s.latest.Get(k.context)
		last = append([]verdictKey{k.files}, last[:min(len(last), maxSince-1)]...)
		s.latest.Put(k.context, last, int64(len(last)+2)*sha256.Size+64)
	}
	s.entries.Put(k.files, e, cost)
}

// since returns the last verdicts in a context, newest first.
func (s *verdicts) since(context verdictKey) (out []*verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, _ := s.latest.Get(context)
	for _, k := range last {
		if e, ok := s.entries.Get(k); ok && e.v != nil {
			out = append(out, e.v)
		}
	}
	return out
}

// judges reports whether the plan may go by verdicts: those that ask for retractions
// see more than what is left of a merge.
func (p *planner) judges() bool {
	return p.t.env.verdicts.budget > 0 && !p.read.kinds && p.read.expire == nil
}

// settles reports whether verdicts may be found for the plan: where it reads enough
// to be worth it.
func (p *planner) settles() bool { return p.scan.Limit <= 0 || p.filter != nil }

// sectionKey is the identity of a section, and of all but its files.
type sectionKey struct{ context, files verdictKey }

// sectionKey makes the identity of a section.
func (p *planner) sectionKey(l live, runs [][]File) (k sectionKey) {
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
	k.context = verdictKey(h.Sum(nil))
	for _, r := range runs {
		fmt.Fprintf(h, "\nrun")
		for i := range r {
			fmt.Fprintf(h, "\n%s", r[i].identity())
		}
	}
	k.files = verdictKey(h.Sum(nil))
	return k
}

// identity tells a file, as it is read, from all others.
func (f *File) identity() string {
	m := f.Meta
	s := fmt.Sprintf("%s %d %d %d %d %d %d %d", m.Name, m.Level, m.Rows, m.DeleteRows, m.MinSequence, m.MaxSequence, m.SchemaID, m.Source)
	if d := f.DV; d != nil {
		s += fmt.Sprintf(" %s %d %d", d.Path, d.Offset, d.Length)
	}
	return s
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
func (p *planner) planJudged(b *keyedBucket, raw *[]File, merge *[]mergeSection) ([]mergetree.Span, error) {
	done := make([]bool, len(b.kept))
	for _, s := range b.sections {
		if s.v == nil {
			continue
		}
		p.report.Remembered++
		files, fold, err := p.addJudged(s.runs, s.v, func(f *File) (byKey, byValue bool, err error) {
			i := s.at[f.Meta]
			p.countLevel0(b.kept[i], b.vectorMode)
			if b.gone[i] {
				return true, true, nil
			}
			ok, err := p.mayMatch(b.kept[i], true)
			if ok && err == nil {
				f.found, err = p.byIndex(b.kept[i])
				ok = f.found == nil || !f.found.none
			}
			return false, !ok, err
		})
		if err != nil {
			return nil, err
		}
		*raw = append(*raw, files...)
		if fold != nil {
			*merge = append(*merge, *fold)
		}
		for _, i := range s.at {
			done[i] = true
		}
	}
	out := b.spans[:0]
	for _, s := range b.spans {
		switch {
		case done[s.Item]:
		case b.gone[s.Item]:
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
				reason := "merged away"
				if byKey || byValue {
					reason = "stats"
				}
				if f.found != nil && f.found.none {
					reason = f.found.reason()
				}
				p.skip(reason, 1)
				continue
			}
			p.report.FilesRead++
			if live != nil && !byValue {
				f.only = live
				raw = append(raw, f)
			}
			if folded != nil {
				f.only, f.found = folded, nil // of single versions it says nothing
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
