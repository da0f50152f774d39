package table

import (
	"context"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

type statsKey struct {
	branch           string
	snapshot, schema int64
	list             string // delta manifest list: a rolled back id may come again
}

// maxStatsFiles bounds how many files' column statistics are looked at.
const maxStatsFiles = 2000

// Stats sums up the manifests of a state: live rows are estimated, since merging
// may still drop versions. Remembered per snapshot and schema.
func (t *FileStore) Stats(ctx context.Context, at snapshot.Ref) (*Stats, error) {
	p, err := t.newPlanner(ctx, Scan{At: at, Columns: []int{}, Limit: -1})
	if err != nil {
		return nil, err
	}
	k := statsKey{branch: at.Branch, schema: p.schema.ID}
	if p.snap != nil {
		k.snapshot, k.list = p.snap.ID, p.snap.DeltaManifestList
	}
	t.mu.Lock()
	s, ok := t.stats[k]
	t.mu.Unlock()
	if ok {
		return s, nil
	}
	files, err := p.liveEntries(ctx)
	if err != nil {
		return nil, err
	}
	dvs, err := p.vectors(ctx)
	if err != nil {
		return nil, err
	}
	s = &Stats{Columns: map[int32]ColumnStats{}}
	for _, l := range files {
		s.Bytes += l.File.Size
		s.Rows += l.File.Rows - max(l.File.DeleteRows, 0)
		if d := dvs[l.File.Name]; d != nil {
			s.Rows -= max(d.Cardinality, 0)
		}
	}
	s.Rows = max(s.Rows, 0)
	if err := p.columnStats(s, files); err != nil {
		return nil, err
	}
	t.mu.Lock()
	if len(t.stats) > 64 {
		clear(t.stats)
	}
	t.stats[k] = s
	t.mu.Unlock()
	return s, nil
}

// columnStats folds the bounds of the files; a column with an unknown bound in
// any of them has none.
func (p *planner) columnStats(s *Stats, files []live) error {
	scale := 1.0
	if len(files) > maxStatsFiles {
		scale = float64(len(files)) / maxStatsFiles
		files = files[:maxStatsFiles]
	}
	for c, f := range p.schema.Fields {
		var cs ColumnStats
		known, counted := len(files) > 0 && scale == 1, len(files) > 0
		for _, l := range files {
			fs, err := p.fileSchema(l.File.SchemaID)
			if err != nil {
				return err
			}
			st, ok := (&fileStats{p, l, fs, true}).Stats(&predicate.Leaf{Col: c})
			if st.Single {
				st.NullCount *= l.File.Rows
				st.Rows = l.File.Rows
			}
			if !ok || st.NullCount < 0 {
				counted = false
			} else {
				cs.NullCount += st.NullCount
			}
			if ok && st.NullCount == st.Rows {
				continue
			}
			if !ok || st.Min == nil || st.Max == nil {
				known = false
			}
			if !known {
				continue
			}
			if x, ok := predicate.Compare(f.Type, st.Min, cs.Min); cs.Min == nil || ok && x < 0 {
				cs.Min = st.Min
			}
			if x, ok := predicate.Compare(f.Type, st.Max, cs.Max); cs.Max == nil || ok && x > 0 {
				cs.Max = st.Max
			}
		}
		if !known {
			cs.Min, cs.Max = nil, nil
		}
		if !counted {
			cs.NullCount = 0
		}
		cs.NullCount = int64(float64(cs.NullCount) * scale)
		if known || counted {
			s.Columns[f.ID] = cs
		}
	}
	return nil
}
