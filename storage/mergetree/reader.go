package mergetree

import (
	"bytes"
	"context"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/format"
)

// Reader merges the sorted runs of sections, one section after the other.
//
// It works in rounds. A round
//
//  1. walks the runs in (key, sequence) order by a loser tree, decoding only key,
//     sequence and kind columns, until as many keys as a window holds have a winner. While the
//     leading run's keys stay below the runner-up's, its rows are taken in one
//     stretch: no other run can hold those keys;
//  2. reads the filter's columns of the winners and lets the filter choose;
//  3. reads the other columns of what is left, per file with a keep list, and
//     gathers them into key order.
//
// Invariant: within a round the winners of one file range ascend, so the payload
// readers only move forwards and a winner's place in their result is its ordinal.
// A round ends between two keys, never inside one.
//
// A row that loses costs its key, not its columns.
//
// With an Engine nobody wins: a key of several versions notes all of them, its
// place in the round's result points to them (src = folded), and each phase reads
// its columns of all versions, folds them, and puts what came out beside the
// segments' arrays as one more source of the gather. Keys of one version take the
// same way as winners do. See fold.go.
type Reader struct {
	o          Options
	form       Form
	bySequence bool // the order of versions needs sequence numbers
	readSeq    bool // sequence numbers are read
	all        bool // NextVersions: keys of one version are noted as versions, too
	rows       int  // of a window and of a round
	sections   [][][]Input
	runs       []*run
	tree       loserTree
	open       bool
	segs       []segment
	src        []uint16
	row        []uint32
	vers       versionList
	phases     [2]phase
	scratch    gatherScratch
	stats      *format.Counters

	// The key whose versions are being looked at: the best row so far, with an
	// engine the newest; pendVers are its versions.
	pending    bool
	pendSeg    uint16
	pendHi     uint64
	pendLo     uint64
	pendBytes  []byte
	pendRow    int64
	pendDelete bool
	pendVers   []version
}

// version is one noted row of the pending key.
type version struct {
	seg  uint16
	kind uint8
	row  int64 // physical
	seq  int64 // where sequence numbers are read
}

// folded is the source of keys that are folded.
const folded = 1<<16 - 1

// Options say how to merge and what to return.
type Options struct {
	Codec   *KeyCodec
	KeyCols []int
	// SequenceCols are user sequence fields, compared before the sequence number;
	// NULL is smallest in either direction.
	SequenceCols       []int
	SequenceTypes      []types.Type
	SequenceDescending bool
	// Engine makes the merge engine that folds keys of several versions, for some
	// of Columns: the filter's are folded before the others. Key columns and those
	// below 0 are never among them. nil = the last (or first) version wins, as below;
	// KeepFirst and IgnoreDelete are the engine's business then.
	Engine func(columns []int) (Engine, error)
	// OneHigh says that Input.Tag is the file's level, and that an Engine sees, of a
	// key's versions above level 0, only the one of the lowest: compactions that look
	// up have merged the others into it (LookupMergeFunction.java).
	OneHigh bool
	// KeepFirst makes the first version of a key win (first-row) instead of the
	// last (deduplicate).
	KeepFirst bool
	// IgnoreDelete leaves retractions out, as if they had not been written.
	IgnoreDelete bool
	// KeepDeletes returns keys whose winner is a retraction, too.
	KeepDeletes bool
	// Expire, when not nil, leaves out rows by their age, each version for itself,
	// before anything is merged.
	Expire *Expire
	// From and To bound the keys: From inclusive, To exclusive; nil = open.
	From, To *Bound
	// Columns are returned, of types Types.
	Columns []int
	Types   []types.Type
	// FilterPos are positions in Columns that Filter needs; it returns the rows
	// that stay, nil = all. Filter may be nil.
	FilterPos []int
	Filter    func(ctx context.Context, cols []arrow.Array, n int) ([]uint16, error)
	Counters  *format.Counters
	// WindowRows is how many keys of a run are decoded at once, and how many keys
	// a round settles; 0 = 8,192.
	WindowRows int
}

// NewReader merges sections: each is a list of sorted runs of files.
func NewReader(sections [][][]Input, o Options) *Reader {
	m := &Reader{o: o, form: o.Codec.Form(), sections: sections, stats: o.Counters, rows: o.WindowRows}
	if m.rows <= 0 || m.rows > 1<<15 {
		m.rows = 8192
	}
	if m.stats == nil {
		m.stats = &format.Counters{}
	}
	return m
}

// Next returns the next rows, in key order within a section; n is 0 at the end.
func (m *Reader) Next(ctx context.Context) (cols []arrow.Array, n int, err error) {
	for {
		if !m.open {
			if len(m.sections) == 0 {
				return nil, 0, nil
			}
			if err := m.start(ctx, m.sections[0]); err != nil {
				return nil, 0, err
			}
			m.sections = m.sections[1:]
		}
		if err := m.round(ctx); err != nil {
			return nil, 0, err
		}
		ended := len(m.src) == 0 && m.tree.winner().done
		if len(m.src) > 0 {
			if cols, n, err = m.payload(ctx); err != nil || n > 0 {
				return cols, n, err
			}
		}
		if ended {
			m.closeRuns()
		}
	}
}

// enough reports whether the round has settled as many keys as it should, or
// noted as many versions as it should hold at once.
func (m *Reader) enough() bool {
	return len(m.src) >= m.rows || len(m.vers.ends) >= m.rows || len(m.vers.src) >= 4*m.rows
}

// Close releases the files' readers.
func (m *Reader) Close() error {
	m.closeRuns()
	m.sections = nil
	return nil
}

func (m *Reader) closeRuns() {
	for _, r := range m.runs {
		r.close()
	}
	m.runs, m.open = nil, false
}

// start opens the runs of a section.
func (m *Reader) start(ctx context.Context, section [][]Input) error {
	m.runs, m.open, m.pending = nil, true, false
	m.bySequence = !m.ranked(section)
	m.readSeq = m.bySequence || m.all
	if err := m.preparePhases(); err != nil {
		return err
	}
	for _, inputs := range section {
		r := &run{m: m, inputs: inputs, lanes: make([]lane, 2), keepb: make([]uint16, 0, m.rows)}
		if !m.bySequence {
			for _, in := range inputs {
				r.rank = max(r.rank, in.MaxSequence)
			}
		}
		m.runs = append(m.runs, r)
	}
	for _, r := range m.runs {
		if err := r.load(ctx); err != nil {
			return err
		}
	}
	m.tree.init(m, m.runs)
	return nil
}

// ranked reports whether the runs' sequence numbers do not overlap: then the
// run, not the row, decides which version is newer.
func (m *Reader) ranked(section [][]Input) bool {
	type span struct{ lo, hi int64 }
	var spans []span
	for _, inputs := range section {
		if len(inputs) == 0 {
			continue
		}
		s := span{inputs[0].MinSequence, inputs[0].MaxSequence}
		for _, in := range inputs {
			s.lo, s.hi = min(s.lo, in.MinSequence), max(s.hi, in.MaxSequence)
		}
		if s.lo < 0 || s.lo > s.hi {
			return false
		}
		spans = append(spans, s)
	}
	slices.SortFunc(spans, func(a, b span) int {
		if a.lo < b.lo {
			return -1
		}
		return 1
	})
	for i := 1; i < len(spans); i++ {
		if spans[i].lo <= spans[i-1].hi {
			return false
		}
	}
	return true
}

// round settles about as many keys as a window holds into m.src and m.row.
func (m *Reader) round(ctx context.Context) error {
	m.segs, m.src, m.row = m.segs[:0], m.src[:0], m.row[:0]
	m.vers.reset()
	for _, r := range m.runs {
		r.active = false
	}
	var last *run // that won the previous match
	for !m.enough() || m.pending {
		w := m.tree.winner()
		if w.done {
			m.flush()
			return nil
		}
		same := m.pending && m.isPending(w)
		if m.pending && !same {
			m.flush()
			if m.enough() {
				return nil
			}
		}
		// Keys of runs that alternate are taken one by one; a run that wins twice
		// in a row is worth asking how far it stays ahead.
		taken := false
		if w == last || len(m.runs) == 1 {
			if next := m.tree.runnerUp(); next == nil || keyLess(m.form, w, next) {
				m.stretch(w, next, same)
				taken = true
			}
		}
		if !taken {
			m.version(w, same)
		}
		last = w
		if w.p < w.n {
			w.peek()
		} else if err := w.load(ctx); err != nil {
			return err
		}
		m.tree.replay()
	}
	return nil
}

// version looks at one row whose key other runs may hold, too.
func (m *Reader) version(w *run, same bool) {
	if m.folds() {
		m.setPending(w)
		w.p++
		return
	}
	if !(m.o.IgnoreDelete && w.retract(w.p)) && !(same && m.o.KeepFirst) {
		m.setPending(w)
	}
	w.p++
}

// stretch takes the rows of w whose keys are below next's: their winners are
// final, save that the first may be one more version of the pending key.
func (m *Reader) stretch(w, next *run, same bool) {
	q := m.stretchEnd(w, next)
	from := w.p
	if same && m.folds() {
		m.setPending(w)
		w.p++
		m.flush()
		if from++; from == q {
			return
		}
	} else if same {
		if m.o.KeepFirst || m.o.IgnoreDelete && w.retract(from) {
			// The pending row stands.
			w.p++
			from++
			if from == q {
				return
			}
			m.flush()
		} else {
			m.pending = false
		}
	}
	if m.all {
		m.noteStretch(w, from, q)
		w.p = q
		return
	}
	seg := w.segment()
	id := w.seg
	if w.kinds == nil || m.o.KeepDeletes && (!m.o.IgnoreDelete || m.folds()) {
		at, n := len(seg.keep), q-from
		src := extend(&m.src, n)
		for i := range src {
			src[i] = id
		}
		row := extend(&m.row, n)
		for i := range row {
			row[i] = uint32(at + i)
		}
		keep := extend(&seg.keep, n)
		if w.rows == nil {
			first := uint32(w.start + int64(from) - seg.from)
			for i := range keep {
				keep[i] = first + uint32(i)
			}
		} else {
			for i := range keep {
				keep[i] = uint32(w.physical(from+i) - seg.from)
			}
		}
	} else {
		for i := from; i < q; i++ {
			if w.kinds[i]&1 == 0 {
				m.src = append(m.src, id)
				m.row = append(m.row, uint32(len(seg.keep)))
				seg.keep = append(seg.keep, uint32(w.physical(i)-seg.from))
			}
		}
	}
	w.p = q
}

// extend lengthens *s by n and returns the new part.
func extend[T any](s *[]T, n int) []T {
	k := len(*s)
	*s = slices.Grow(*s, n)[:k+n]
	return (*s)[k:]
}

// stretchEnd returns the first row of w's window whose key is not below next's.
// It gallops: keys of two runs often alternate, and often do not.
func (m *Reader) stretchEnd(w, next *run) int {
	settled := len(m.src)
	if m.all {
		settled = len(m.vers.ends)
	}
	end := min(w.n, w.p+max(1, m.rows-settled))
	if next == nil {
		return end
	}
	b := Bound{hi: next.hi, lo: next.lo}
	if m.form == WordAndBytes {
		b.data = next.keys.At(next.p)
	}
	lo, step := w.p, 1
	for lo+step < end && m.o.Codec.before(&w.keys, lo+step, &b) {
		lo += step
		step *= 2
	}
	return m.o.Codec.lowerBound(&w.keys, lo+1, min(lo+step, end), &b)
}

// isPending reports whether the row under w's cursor has the pending key.
func (m *Reader) isPending(w *run) bool {
	if w.hi != m.pendHi {
		return false
	}
	switch m.form {
	case TwoWords:
		return w.lo == m.pendLo
	case WordAndBytes:
		return bytes.Equal(w.keys.At(w.p), m.pendBytes)
	}
	return true
}

// setPending makes the row under w's cursor the best version of its key, or with
// an engine one more. Its place is noted now: w's window may be gone when the key
// is settled.
func (m *Reader) setPending(w *run) {
	w.segment()
	if m.folds() {
		v := version{seg: w.seg, row: w.physical(w.p)}
		if w.kinds != nil {
			v.kind = uint8(w.kinds[w.p])
		}
		if m.readSeq {
			v.seq = w.seq[w.p]
		}
		m.pendVers = append(m.pendVers, v)
		if m.pending {
			return
		}
	}
	m.pending, m.pendSeg, m.pendRow, m.pendDelete = true, w.seg, w.physical(w.p), w.retract(w.p)
	m.pendHi, m.pendLo = w.hi, w.lo
	if m.form == WordAndBytes {
		m.pendBytes = append(m.pendBytes[:0], w.keys.At(w.p)...)
	}
}

// flush settles the pending key.
func (m *Reader) flush() {
	if !m.pending {
		return
	}
	m.pending = false
	if m.o.OneHigh && !m.all && len(m.pendVers) > 1 {
		m.lowest()
	}
	if len(m.pendVers) > 1 || m.all {
		m.note(m.pendVers)
		m.pendVers = m.pendVers[:0]
		return
	}
	m.pendVers = m.pendVers[:0]
	if m.pendDelete && !m.o.KeepDeletes {
		return
	}
	seg := &m.segs[m.pendSeg]
	m.src = append(m.src, m.pendSeg)
	m.row = append(m.row, uint32(len(seg.keep)))
	seg.keep = append(seg.keep, uint32(m.pendRow-seg.from))
}
