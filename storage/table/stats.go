package table

import (
	"context"
	"math"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// What planning knows of a state comes from two places:
//
//	manifests          rows, bytes and bounds of every file: as new as the state, but
//	                   they know no distinct values and count versions, not keys
//	statistics file    of the last ANALYZE, see Statistics: distinct values, NULLs and
//	                   lengths of the rows then
//
// Bounds are those of the manifests where all files have them. Counts of the
// statistics file grow with the table: NULLs as the rows do, distinct values only where
// they were more than one in ten rows, PostgreSQL's limit between a column of keys and
// one of categories.

type statsKey struct {
	branch           string
	snapshot, schema int64
	list             string // delta manifest list: a rolled back id may come again
}

// maxStatsFiles bounds how many files' column statistics are looked at.
const maxStatsFiles = 2000

// scalingDistinct is the share of a column's rows above which its distinct values are
// taken to grow with them.
const scalingDistinct = 0.1

// Stats sums up the manifests of a state and its statistics file, if it has one that
// can be read: live rows are estimated, since merging may still drop versions.
// Remembered per snapshot and schema.
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
	runs := map[statsRun]int64{}
	for _, l := range files {
		s.Bytes += l.File.Size
		rows := l.File.Rows - max(l.File.DeleteRows, 0)
		if d := dvs[l.File.Name]; d != nil {
			rows -= max(d.Cardinality, 0)
		}
		s.Rows += rows
		run := statsRun{part: l.part, bucket: l.Bucket, level: l.File.Level}
		if l.File.Level == 0 {
			run.file = l.File.Name
		}
		runs[run] += rows
	}
	s.Rows = max(s.Rows, 0)
	counted, err := p.columnStats(s, files)
	if err != nil {
		return nil, err
	}
	if p.snap != nil && p.snap.Statistics != "" {
		p.useStatistics(ctx, s, runs, counted)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	t.mu.Lock()
	if len(t.stats) > 64 {
		clear(t.stats)
	}
	t.stats[k] = s
	t.mu.Unlock()
	return s, nil
}

// statsRun is a sorted run of a bucket, in which no key is twice.
type statsRun struct {
	part          *partition
	bucket, level int32
	file          string // of level 0
}

// columnStats folds the bounds of the files; a column with an unknown bound in
// any of them has none. It returns the fields of which every file tells how many NULLs
// it has.
func (p *planner) columnStats(s *Stats, files []live) (countedIn map[int32]bool, err error) {
	scale := 1.0
	if len(files) > maxStatsFiles {
		scale = float64(len(files)) / maxStatsFiles
		files = files[:maxStatsFiles]
	}
	countedIn = map[int32]bool{}
	for c, f := range p.schema.Fields {
		var cs ColumnStats
		known, counted := len(files) > 0 && scale == 1, len(files) > 0
		for _, l := range files {
			fs, err := p.fileSchema(l.File.SchemaID)
			if err != nil {
				return nil, err
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
		countedIn[f.ID] = counted
	}
	return countedIn, nil
}

// useStatistics lays the statistics file of the plan's snapshot over what the
// manifests say. A file that cannot be read is passed over: plans get worse, not
// wrong.
func (p *planner) useStatistics(ctx context.Context, s *Stats, runs map[statsRun]int64, counted map[int32]bool) {
	st, err := p.t.knownStatistics(ctx, p.snap.Statistics)
	if err != nil {
		s.Problem = err
		return
	}
	sch := p.schema
	if st.SchemaID != sch.ID {
		if sch, err = p.branch.schemas.Get(ctx, st.SchemaID); err != nil {
			s.Problem = err
			return
		}
	}
	then := int64(-1)
	if st.Rows != nil && *st.Rows >= 0 {
		then = *st.Rows
	}
	if p.primaryKey() && then >= 0 {
		s.Rows = p.keysNow(s.Rows, then, st, runs)
	}
	if then < 0 {
		then = s.Rows
	}
	now := map[int32]int{}
	for i, f := range p.schema.Fields {
		now[f.ID] = i
	}
	for name, c := range st.Columns {
		i, there := now[c.ID]
		old := sch.Fields.Index(name)
		if !there || old < 0 || sch.Fields[old].ID != c.ID {
			continue // dropped since, or another column
		}
		cs := s.Columns[c.ID]
		cs.Analyzed = true
		nulls := int64(0)
		if c.Nulls != nil {
			nulls = min(max(*c.Nulls, 0), then)
			if p.primaryKey() || !counted[c.ID] {
				cs.NullCount = inProportion(s.Rows, float64(nulls), float64(then))
			}
		}
		if c.Distinct != nil && *c.Distinct >= 0 {
			cs.Distinct = distinctNow(*c.Distinct, then-nulls, s.Rows-min(cs.NullCount, s.Rows))
		}
		if t := p.schema.Fields[i].Type; c.AvgLen != nil && *c.AvgLen > 0 && *c.AvgLen < math.MaxInt32 && varies(t) {
			cs.AverageBytes = float64(*c.AvgLen)
		}
		if cs.Min == nil && cs.Max == nil && sch.Fields[old].Type.Kind == p.schema.Fields[i].Type.Kind {
			if lo, hi := c.Bounds(p.schema.Fields[i].Type); lo != nil && hi != nil {
				if x, ok := predicate.Compare(p.schema.Fields[i].Type, lo, hi); ok && x <= 0 {
					cs.Min, cs.Max = lo, hi
				}
			}
		}
		s.Columns[c.ID] = cs
	}
}

// varies reports whether values of a type differ in length.
func varies(t types.Type) bool {
	switch t.Kind {
	case types.Text, types.Varchar, types.BpChar, types.Bytea, types.Array, types.Map, types.Row, types.Variant:
		return true
	}
	return false
}

// distinctNow is how many distinct values a column has, d of which were among so many
// values then.
func distinctNow(d, then, now int64) int64 {
	if d > then && then >= 0 {
		d = then
	}
	if float64(d) > scalingDistinct*float64(then) {
		d = inProportion(now, float64(d), float64(then))
	}
	d = min(d, now)
	if now > 0 && then > 0 {
		d = max(d, 1)
	}
	return d
}

// keysNow estimates the keys of a primary-key table that has so many rows in its
// files: then of total that it had are keys, and at least those of each bucket's
// greatest sorted run.
func (p *planner) keysNow(rows, then int64, st *Statistics, runs map[statsRun]int64) int64 {
	type place struct {
		part   *partition
		bucket int32
	}
	greatest := map[place]int64{}
	for r, n := range runs {
		k := place{r.part, r.bucket}
		greatest[k] = max(greatest[k], n)
	}
	least := int64(0)
	for _, n := range greatest {
		least += max(n, 0)
	}
	est := then
	if total := p.snap.TotalRecordCount; st.Total != nil && *st.Total > 0 && total != nil {
		est = inProportion(then, float64(*total), float64(*st.Total))
	}
	return max(min(max(est, least), rows), 0)
}
