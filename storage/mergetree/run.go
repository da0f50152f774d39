package mergetree

import (
	"context"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/dv"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/format"
)

// Input is one file of a sorted run.
type Input struct {
	// Ranges are the rows to read, ascending; others hold no wanted key.
	Ranges []format.RowRange
	// Open opens a reader of columns over one range. Columns are numbered by the
	// caller; Sequence and Kind stand for the system columns.
	Open func(ctx context.Context, r format.RowRange, cols []int) (format.ColumnReader, error)
	// DV are deleted rows, which do not take part.
	DV *dv.Vector
	// Only, when not nil, are the rows that take part; DV has no effect then.
	Only *RowSet
	// Fate is filled by Reader.Mark.
	Fate *Fate
	// Deletes says that rows of kind -U or -D may occur.
	Deletes bool
	// MinSequence and MaxSequence bound the sequence numbers of the rows.
	MinSequence, MaxSequence int64
	// Tag is handed back with each version (VersionBatch); the caller's business.
	Tag int32
}

// Column numbers of the system columns.
const (
	Sequence = -4
	Kind     = -3
)

// run is the cursor over one sorted run. Keys are decoded window by window; the
// rows that win are noted per segment, a stretch of one file that the current
// round consumed, and their other columns are read when the round is over.
type run struct {
	m      *Reader
	index  int // among the section's runs
	inputs []Input
	in     int // current input
	rg     int // next range of it
	rank   int64

	cols   format.ColumnReader // key, sequence fields, sequence, kind
	pos    int64               // next row to decode
	end    int64               // of the current range
	start  int64               // first row of the current window
	rows   []uint16            // physical rows of the window, nil = all
	keepb  []uint16
	keys   Keys
	user   Keys // user sequence fields, WordAndBytes
	seq    []int64
	kinds  []int16 // nil = no deletes in this file
	p, n   int     // cursor and end in the window
	q      int     // end of what the round takes
	size   int     // rows of the file that the window is
	odd    bool    // there are retractions in it
	done   bool
	last   bool // the window reached the end of the key range
	order  int64
	seg    uint16   // of this round
	perRow [2]int64 // bytes that a row of each phase takes; 0 = not known yet
	lanes  []lane   // readers of the other columns, by phase
}

// lane reads one phase's columns along a run: always forwards, range by range.
type lane struct {
	cols   format.ColumnReader
	in, rg int
	pos    int64
	// arrs are the columns of a whole window, the one that begins at row window.
	arrs   []arrow.Array
	window int64
}

// next loads windows until there is a row; done is set at the end.
func (r *run) load(ctx context.Context) error {
	for {
		if r.last {
			r.finish()
			return nil
		}
		for r.pos >= r.end {
			if ok, err := r.nextRange(ctx); err != nil || !ok {
				return err
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n := int(min(int64(r.m.window), r.end-r.pos))
		if in := &r.inputs[r.in]; in.Only != nil {
			r.rows, _ = in.Only.Keep(r.pos, n, r.keepb)
		} else {
			r.rows, _ = in.DV.Keep(r.pos, n, r.keepb)
		}
		if r.rows != nil {
			r.keepb = r.rows
		}
		arrs, err := r.cols.Read(ctx, n, r.rows)
		if err != nil {
			return err
		}
		r.start, r.pos = r.pos, r.pos+int64(n)
		r.m.stats.Rows += int64(n)
		r.p, r.n, r.size = 0, n, n
		if r.rows != nil {
			r.n = len(r.rows)
		}
		if e := r.m.o.Expire; e != nil {
			arrs = r.expire(e, arrs)
		}
		r.fill(arrs)
		if b := r.m.o.From; b != nil {
			r.p = r.m.o.Codec.lowerBound(&r.keys, 0, r.n, b)
		}
		if b := r.m.o.To; b != nil {
			if q := r.m.o.Codec.lowerBound(&r.keys, r.p, r.n, b); q < r.n {
				r.n, r.last = q, true
			}
		}
		if r.p < r.n {
			return nil
		}
	}
}

// fill decodes the arrays of a window: keys, user sequence, sequence, kind.
func (r *run) fill(arrs []arrow.Array) {
	o := &r.m.o
	k := len(o.KeyCols)
	o.Codec.Fill(&r.keys, arrs[:k], r.n)
	arrs = arrs[k:]
	if u := len(o.SequenceCols); u > 0 {
		fillUser(&r.user, o.SequenceTypes, arrs[:u], r.n, o.SequenceDescending)
		arrs = arrs[u:]
	}
	if r.m.readSeq {
		r.seq = vec.ViewOf[int64](arrs[0]).V
		arrs = arrs[1:]
	}
	r.kinds = nil
	if r.readsKinds() {
		r.kinds = vec.ViewOf[int16](arrs[0]).V
	}
	r.order = r.rank
}

// readsKinds reports whether the kinds of the current file's rows are needed: where
// there are retractions, or a folded row's kind is asked for, which +U may be.
func (r *run) readsKinds() bool { return r.inputs[r.in].Deletes || r.m.all || r.m.kinds }

// fillUser makes the ordering bytes of user sequence fields: per field 0 for
// NULL, which always loses, else 1 and the byte form, inverted when descending.
func fillUser(k *Keys, ts []types.Type, cols []arrow.Array, n int, desc bool) {
	k.Off = grow(k.Off, n+1)
	k.Off[0] = 0
	data := k.Data[:0]
	for i := range n {
		for c, t := range ts {
			d := vec.DatumAt(cols[c], t, i)
			if d == nil {
				data = append(data, 0)
				continue
			}
			data = append(data, 1)
			at := len(data)
			data = appendDatum(data, t, d, false)
			if desc {
				for j := at; j < len(data); j++ {
					data[j] = ^data[j]
				}
			}
		}
		k.Off[i+1] = int32(len(data))
	}
	k.Data = data
}

func (r *run) nextRange(ctx context.Context) (bool, error) {
	r.closeCols()
	for r.in < len(r.inputs) && r.rg >= len(r.inputs[r.in].Ranges) {
		r.in, r.rg = r.in+1, 0
	}
	if r.in >= len(r.inputs) {
		r.finish()
		return false, nil
	}
	x := &r.inputs[r.in]
	rg := x.Ranges[r.rg]
	r.rg++
	cols := append(append([]int(nil), r.m.o.KeyCols...), r.m.o.SequenceCols...)
	if r.m.readSeq {
		cols = append(cols, Sequence)
	}
	if r.readsKinds() {
		cols = append(cols, Kind)
	}
	if e := r.m.o.Expire; e != nil {
		cols = append(cols, e.Column)
	}
	var err error
	if r.cols, err = x.Open(ctx, rg, cols); err != nil {
		return false, err
	}
	r.pos, r.end = rg.From, rg.To
	return true, nil
}

func (r *run) finish() {
	r.done = true
	r.closeCols()
}

func (r *run) closeCols() {
	if r.cols != nil {
		_ = r.cols.Close()
		r.cols = nil
	}
}

func (r *run) close() {
	r.closeCols()
	for i := range r.lanes {
		if c := r.lanes[i].cols; c != nil {
			_ = c.Close()
			r.lanes[i].cols = nil
		}
	}
	r.done = true
}

// retract reports whether row i is a -U or -D.
func (r *run) retract(i int) bool { return r.kinds != nil && r.kinds[i]&1 != 0 }

// segment is what one round consumed of one range of one file.
type segment struct {
	run    *run
	in, rg int
	from   int64 // row that others count from: the first of the run's window
	// need rows between first and last are wanted.
	need, first, last uint32
	sparse            bool
	keep              []uint32 // where sparse
}
