package table

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/lookup"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// A compaction asks for its keys in ascending order, some thousands at a time. Where
// it asks for a good part of a file's keys, going through the file's key columns
// beside them costs less than looking each up in a table, needs no table, and the
// values of the rows found come as columns, without an image of each row:
//
//	keys asked    k1    k3 k4        k9 ...
//	key columns   k0 k1 k2 k3 k5 ... windows of rows, each read once
//	values        read up to the last row found, only the rows found decoded
//
// The readers stay open from one question to the next.

// What looking up costs, in nanoseconds, about: of a key in a table, with an image of
// its row for each column; of a row that is passed over in key columns, and for each
// column of its values.
const (
	tableKeyNanos, tableColumnNanos   = 300, 60
	streamRowNanos, streamColumnNanos = 12, 7
)

// streamGap is how many rows are passed over rather than opening the columns anew
// behind them.
const streamGap = 1 << 17

// keyStream goes through a file in step with ascending keys.
type keyStream struct {
	r       *readPlan
	f       *lookupFile
	of      *openFile
	deletes bool
	keys    *fileColumns  // the key's
	vals    *fileColumns  // sequence, kind where there are deletes, the columns of rest
	rest    []int         // the table's columns that are not the key's
	at      int64         // the next row of vals
	sought  []byte        // greatest key asked for
	from    int64         // first row of the window
	n, i    int           // its rows, and the first that was not passed yet
	cols    []arrow.Array // its key columns
	ks      mergetree.Keys
	last    []byte // its greatest key
	to      int64  // behind the last row
	places  []place
}

// direct answers ascending keys of a file by going through it, where that is
// better than the file's table; false: it was not, and nothing was done. which are
// the positions in out, where those that have a hit already have been left out.
func (l *levelLookup) direct(ctx context.Context, f *lookupFile, keys [][]byte, which []int32, rows bool, out []levelHit) (bool, error) {
	if len(keys) <= fewKeys {
		return false, nil
	}
	r := l.d.p.read
	start := time.Now()
	s := l.streams[f]
	if s != nil && (s.vals != nil) != rows {
		s.close()
		s = nil
	}
	if s == nil {
		of, err := r.open(ctx, f.dir, &File{Meta: f.file.Meta})
		if err != nil {
			return false, err
		}
		s = &keyStream{r: r, f: f, of: of, to: of.Rows()}
	}
	// Until the end it is l's, or it is closed.
	delete(l.streams, f)
	done, err := s.answer(ctx, l, keys, which, rows, out)
	if err != nil || !done || s.i >= s.n && s.from+int64(s.n) >= s.to {
		s.close()
	} else {
		if l.streams == nil {
			l.streams = map[*lookupFile]*keyStream{}
		}
		l.streams[f] = s
	}
	if done && err == nil {
		// A table is worth its making when that has been lost for want of it.
		lost := time.Since(start) - time.Duration(s.tableNanos(len(keys), rows))
		if lost > 0 && !f.entry.Ready(rows) {
			f.entry.Lost(lost, rows)
		}
	}
	return done, err
}

// columnsOf counts the columns whose values are asked for.
func (s *keyStream) columnsOf(rows bool) int64 {
	if !rows {
		return 0
	}
	return int64(len(s.r.st.schema.Fields))
}

func (s *keyStream) tableNanos(keys int, rows bool) int64 {
	return int64(keys) * (tableKeyNanos + tableColumnNanos*s.columnsOf(rows))
}

// answer is direct.
func (s *keyStream) answer(ctx context.Context, l *levelLookup, keys [][]byte, which []int32, rows bool, out []levelHit) (bool, error) {
	ranges, err := s.of.ranges(ctx, format.RowRange{From: 0, To: s.to}, s.r.keyFilter(keys), nil)
	if err != nil {
		return false, err
	}
	if len(ranges) == 0 {
		return true, nil // no page can have one
	}
	from, to := ranges[0].From, ranges[len(ranges)-1].To
	if s.f.entry.Ready(rows) && (to-from)*(streamRowNanos+streamColumnNanos*s.columnsOf(rows)) > s.tableNanos(len(keys), rows) {
		return false, nil
	}
	if s.keys == nil || bytes.Compare(keys[0], s.sought) <= 0 || from > s.from+int64(s.n)+streamGap {
		if err := s.start(ctx, from, rows); err != nil {
			return false, err
		}
	}
	s.sought = append(s.sought[:0], keys[len(keys)-1]...)
	for k := 0; k < len(keys); {
		if s.i >= s.n {
			more, err := s.window(ctx)
			if err != nil {
				return false, err
			}
			if !more {
				break
			}
		}
		if bytes.Compare(keys[k], s.last) > 0 {
			s.i = s.n
			continue
		}
		s.places = s.places[:0]
		for ; k < len(keys) && bytes.Compare(keys[k], s.last) <= 0; k++ {
			if err := s.seek(ctx, keys[k], which[k]); err != nil {
				return false, err
			}
		}
		if err := s.take(ctx, l, rows, out); err != nil {
			return false, err
		}
	}
	return true, nil
}

// start opens the columns at a row.
func (s *keyStream) start(ctx context.Context, from int64, rows bool) error {
	s.closeColumns()
	s.from, s.n, s.i, s.at = from, 0, 0, from
	rg := format.RowRange{From: from, To: s.to}
	var err error
	if s.keys, err = s.of.columns(ctx, rg, s.r.keyCols); err != nil || !rows {
		return err
	}
	s.deletes = s.f.file.Meta.DeleteRows != 0
	cols := []int{PseudoSequence}
	if s.deletes {
		cols = append(cols, PseudoKind)
	}
	s.rest = s.rest[:0]
	for i := range s.r.st.schema.Fields {
		if !slices.Contains(s.r.keyCols, i) {
			s.rest = append(s.rest, i)
		}
	}
	s.vals, err = s.of.columns(ctx, rg, append(cols, s.rest...))
	return err
}

// window reads the next rows' keys; false at the end.
func (s *keyStream) window(ctx context.Context) (bool, error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	s.from += int64(s.n)
	s.n = int(min(int64(s.r.t.env.sizes.window), s.to-s.from))
	s.i = 0
	if s.n <= 0 {
		s.n = 0
		return false, nil
	}
	var err error
	if s.cols, err = s.keys.Read(ctx, s.n, nil); err != nil {
		return false, err
	}
	s.r.codec.Fill(&s.ks, s.cols, s.n)
	s.last = s.r.codec.AppendKey(s.last[:0], &s.ks, s.n-1)
	return true, nil
}

// seek looks for a key in the window. Of a key that the file holds twice, which is
// odd, the first row counts that is not deleted.
func (s *keyStream) seek(ctx context.Context, key []byte, which int32) error {
	b := mergetree.NewBound(key)
	at, ok := s.r.codec.Search(&s.ks, s.i, s.n, b)
	for taken := false; ok; at, ok = s.r.codec.Search(&s.ks, at+1, min(at+2, s.n), b) {
		if taken {
			continue
		}
		pos := s.from + int64(at)
		gone, err := s.f.deleted(ctx, s.r.t.env, pos)
		if err != nil {
			return err
		}
		if !gone {
			s.places = append(s.places, place{which, pos})
			taken = true
		}
	}
	s.i = at
	return nil
}

// take reads the rows found in the window.
func (s *keyStream) take(ctx context.Context, l *levelLookup, rows bool, out []levelHit) error {
	ps := s.places
	if len(ps) == 0 {
		return nil
	}
	if !rows {
		for _, p := range ps {
			out[p.key] = levelHit{File: &s.f.file, Found: lookup.Found{Key: p.key, Pos: p.pos}}
		}
		return nil
	}
	for s.at < s.from { // rows that nobody asked for
		n := min(s.from-s.at, 1<<16)
		if _, err := s.vals.Read(ctx, int(n), []uint16{}); err != nil {
			return err
		}
		s.at += n
	}
	keep, own := make([]uint16, len(ps)), make([]uint32, len(ps))
	for i, p := range ps {
		keep[i], own[i] = uint16(p.pos-s.at), uint32(p.pos-s.from)
	}
	n := int(ps[len(ps)-1].pos + 1 - s.at)
	arrs, err := s.vals.Read(ctx, n, keep)
	if err != nil {
		return err
	}
	s.at += int64(n)
	seq := vec.ViewOf[int64](arrs[0]).V
	arrs = arrs[1:]
	var kinds []int16
	if s.deletes {
		kinds = vec.ViewOf[int16](arrs[0]).V
		arrs = arrs[1:]
	}
	part := make([]arrow.Array, len(s.r.st.schema.Fields))
	for i, c := range s.rest {
		part[c] = arrs[i]
	}
	for i, c := range s.r.keyCols {
		part[c] = vec.Take(s.cols[i], own)
	}
	l.parts = append(l.parts, part)
	for i, p := range ps {
		h := levelHit{File: &s.f.file, Found: lookup.Found{Key: p.key, Pos: p.pos, Seq: seq[i]}, part: int32(len(l.parts)), row: uint32(i)}
		if kinds != nil {
			h.Kind = uint8(kinds[i])
		}
		out[p.key] = h
	}
	return nil
}

func (s *keyStream) closeColumns() {
	for _, fc := range []*fileColumns{s.keys, s.vals} {
		if fc != nil {
			_ = fc.Close() // a reader
		}
	}
	s.keys, s.vals = nil, nil
}

func (s *keyStream) close() {
	s.closeColumns()
	s.r.close(s.of)
}
