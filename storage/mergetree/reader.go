package mergetree

import (
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
//  1. merges windows of the runs, of which only key, sequence and kind columns are
//     decoded, up to a key behind which nothing is certain, and finds who wins (see
//     round.go);
//  2. reads the filter's columns of the winners and lets the filter choose;
//  3. reads the other columns of what is left, per file, and puts them into key
//     order.
//
// Invariant: within a round the winners of one file range ascend, so the payload
// readers only move forwards. A round ends between two keys, never inside one.
//
// With an Engine nobody wins: a key of several versions notes all of them, its
// place in the round's output points to them (src = folded), and each phase reads
// its columns of all versions, folds them, and puts what came out beside the
// segments' arrays as one more source. Keys of one version take the same way as
// winners do. See fold.go.
type Reader struct {
	o          Options
	form       Form
	bySequence bool // the order of versions needs sequence numbers
	readSeq    bool // sequence numbers are read
	kinds      bool // the kinds of folded rows are asked for
	all        bool // NextVersions: keys of one version are noted as versions, too
	rows       int  // of a window, by the options
	window     int  // of a window of the section that is open
	sections   [][][]Input
	runs       []*run
	open       bool
	ended      bool // the section
	segs       []segment
	out        output
	vers       versionList
	phases     [2]phase
	scratch    gatherScratch
	spare      []list
	stats      *format.Counters

	// Versions of one key that are being noted, see lowest.
	pendVers   []version
	pendSeg    uint16
	pendRow    uint32
	pendDelete bool
}

// version is one noted row of a key.
type version struct {
	seg  uint16
	kind uint8
	row  uint32 // from the start of the segment
	seq  int64  // where sequence numbers are read
}

// folded is the source of keys that are folded.
const folded = 1<<16 - 2

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
	// WindowRows is how many keys of a run are decoded at once; 0 = 8,192.
	WindowRows int
}

// NewReader merges sections: each is a list of sorted runs of files.
func NewReader(sections [][][]Input, o Options) *Reader {
	m := &Reader{o: o, form: o.Codec.Form(), sections: sections, stats: o.Counters, rows: o.WindowRows}
	if m.rows <= 0 || m.rows > 1<<15 {
		m.rows = 8192
	}
	m.kinds = o.Engine != nil && slices.Contains(o.Columns, Kind)
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
			if err := m.start(m.sections[0]); err != nil {
				return nil, 0, err
			}
			m.sections = m.sections[1:]
		}
		if err := m.round(ctx); err != nil {
			return nil, 0, err
		}
		if m.ended {
			m.closeRuns()
			continue
		}
		if m.out.n > 0 {
			if cols, n, err = m.payload(ctx); err != nil || n > 0 {
				return cols, n, err
			}
		}
	}
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

// manyRuns is from where on more runs have smaller windows.
const manyRuns = 8

// start opens the runs of a section.
func (m *Reader) start(section [][]Input) error {
	m.runs, m.open = nil, true
	// What the windows of all runs hold is bounded, not what each holds.
	m.window = m.rows
	if len(section) > manyRuns {
		m.window = max(min(m.rows, 256), m.rows*manyRuns/len(section))
	}
	m.bySequence = !m.ranked(section)
	m.readSeq = m.bySequence || m.all
	if err := m.preparePhases(); err != nil {
		return err
	}
	for _, inputs := range section {
		r := &run{m: m, index: len(m.runs), inputs: inputs, lanes: make([]lane, 2), keepb: make([]uint16, 0, m.window)}
		if !m.bySequence {
			for _, in := range inputs {
				r.rank = max(r.rank, in.MaxSequence)
			}
		}
		m.runs = append(m.runs, r)
	}
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
