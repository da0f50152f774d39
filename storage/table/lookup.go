package table

import (
	"bytes"
	"context"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/lookup"
)

// levelLookup finds the newest version of keys in sorted runs of one bucket.
type levelLookup struct {
	d       finder
	streams map[*lookupFile]*keyStream
	// parts are rows that have been found by going through files, as columns of the
	// table; they are valid until the next find.
	parts [][]arrow.Array
	// err is why the runs cannot be looked into.
	err error
}

// levelHit is what was found of a key; File is nil when nothing was.
type levelHit struct {
	File *File
	lookup.Found
	// Found.Row is nil where the row is row number row of parts[part-1]; part 0 = none.
	part int32
	row  uint32
}

// newLevelLookup looks into runs, newest first, of the bucket in dir.
func (r *readPlan) newLevelLookup(dir string, runs [][]File) *levelLookup {
	l := &levelLookup{}
	l.d.p = &lookupPlan{read: r}
	for _, run := range runs {
		var files []*lookupFile
		for _, f := range run {
			x, err := r.lookupFile(dir, f)
			if err != nil {
				l.err = err
				return l
			}
			files = append(files, x)
		}
		slices.SortFunc(files, func(a, b *lookupFile) int { return slices.Compare(a.min, b.min) })
		l.d.runs = append(l.d.runs, files)
	}
	return l
}

// find returns for each key (byte forms, ascending, no duplicates) the hit in the
// first run that has it; rows that a deletion vector has taken away are no hits.
// rows asks for what columns and the order of versions need; without, only File and
// Pos are sure to be set.
func (l *levelLookup) find(ctx context.Context, keys [][]byte, rows bool) ([]levelHit, error) {
	if l.err != nil {
		return nil, l.err
	}
	l.d.rows = rows
	l.parts = nil
	out := make([]levelHit, len(keys))
	for f, s := range l.streams {
		if len(keys) == 0 || bytes.Compare(f.max, keys[0]) < 0 {
			s.close()
			delete(l.streams, f)
		}
	}
	l.d.direct = func(f *lookupFile, keys [][]byte, which []int32) (bool, error) {
		return l.direct(ctx, f, keys, which, rows, out)
	}
	err := l.d.find(ctx, keys, func(k int, _ *lookupFile) bool { return out[k].File != nil }, func(v keyVersion) error {
		if h := &out[v.Key]; h.File == nil {
			h.File, h.Found = &v.file.file, v.Found
		}
		return nil
	})
	return out, err
}

// columns makes the columns cols of hits (of the last find, with rows), one row per
// hit; of a key that was not found, NULLs. They may be dictionaries.
func (l *levelLookup) columns(hits []levelHit, cols []int) ([]arrow.Array, error) {
	s := l.d.p.read.st.schema
	src, row := make([]uint16, len(hits)), make([]uint32, len(hits))
	var images [][]byte
	var none []byte
	part, next := int32(1), uint32(0) // of the row that would follow
	whole := len(l.parts) > 0
	for i := range hits {
		h := &hits[i]
		if h.part > 0 {
			src[i], row[i] = uint16(h.part), h.row
			if h.part == part+1 && int(next) == l.parts[part-1][0].Len() {
				part, next = part+1, 0
			}
			whole = whole && h.part == part && h.row == next
			next++
			continue
		}
		whole = false
		img := h.Row
		if h.File == nil {
			if none == nil {
				none = nullRow(len(s.Fields))
			}
			img = none
		}
		row[i] = uint32(len(images))
		images = append(images, img)
	}
	whole = whole && int(part) == len(l.parts) && int(next) == l.parts[part-1][0].Len()
	out := make([]arrow.Array, len(cols))
	srcs := make([]arrow.Array, 1+len(l.parts))
	for i, c := range cols {
		for p, x := range l.parts {
			srcs[1+p] = x[c]
		}
		if whole {
			out[i] = vec.Concat(s.Fields[c].Type.Arrow(), srcs[1:])
			continue
		}
		var err error
		if srcs[0], err = imageColumn(s, c, images); err != nil {
			return nil, err
		}
		if out[i] = srcs[0]; len(l.parts) > 0 {
			out[i] = vec.Gather(s.Fields[c].Type.Arrow(), srcs, src, row)
		}
	}
	return out, nil
}

// close closes what is open of the files.
func (l *levelLookup) close() {
	for _, s := range l.streams {
		s.close()
	}
	l.streams, l.parts = nil, nil
}
