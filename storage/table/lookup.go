package table

import (
	"context"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/storage/lookup"
)

// levelLookup finds the newest version of keys in sorted runs of one bucket.
type levelLookup struct {
	d finder
	// err is why the runs cannot be looked into.
	err error
}

// levelHit is what was found of a key; File is nil when nothing was.
type levelHit struct {
	File *File
	lookup.Found
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
// rows asks for the rows' images.
func (l *levelLookup) find(ctx context.Context, keys [][]byte, rows bool) ([]levelHit, error) {
	if l.err != nil {
		return nil, l.err
	}
	l.d.rows = rows
	out := make([]levelHit, len(keys))
	err := l.d.find(ctx, keys, func(k int, _ *lookupFile) bool { return out[k].File != nil }, func(v keyVersion) error {
		if h := &out[v.Key]; h.File == nil {
			h.File, h.Found = &v.file.file, v.Found
		}
		return nil
	})
	return out, err
}

// columns makes the columns cols of hits (found with rows), one row per hit; of a key
// that was not found, NULLs.
func (l *levelLookup) columns(hits []levelHit, cols []int) ([]arrow.Array, error) {
	s := l.d.p.read.st.schema
	images := make([][]byte, len(hits))
	var none []byte
	for i := range hits {
		if images[i] = hits[i].Row; hits[i].File == nil {
			if none == nil {
				none = nullRow(len(s.Fields))
			}
			images[i] = none
		}
	}
	out := make([]arrow.Array, len(cols))
	for i, c := range cols {
		var err error
		if out[i], err = imageColumn(s, c, images); err != nil {
			return nil, err
		}
	}
	return out, nil
}
