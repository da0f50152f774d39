package systable

import "context"

// Summary are counts over the live data files of a state.
type Summary struct {
	Files, Bytes int64
	// Rows are those in files: of a table with a key, versions of rows. DeleteRows are
	// those among them that delete.
	Rows, DeleteRows    int64
	Partitions, Buckets int64
	// SortedRuns is the most of one bucket: each file of level 0 is one, and so is each
	// further level that has files. Of a table without a key it is 0.
	SortedRuns  int
	Level0Files int64
}

// Summarise counts the live files of the state.
func (s *Source) Summarise(ctx context.Context) (Summary, error) {
	var out Summary
	files, err := s.live(ctx)
	if err != nil {
		return out, err
	}
	type bucket struct {
		partition string
		bucket    int32
	}
	type level struct {
		bucket
		level int32
	}
	partitions, runs, levels := map[string]bool{}, map[bucket]int{}, map[level]bool{}
	for i := range files {
		e := &files[i]
		out.Files++
		out.Bytes += e.File.Size
		out.Rows += e.File.Rows
		out.DeleteRows += max(e.File.DeleteRows, 0)
		b := bucket{string(e.Partition), e.Bucket}
		partitions[b.partition] = true
		if _, ok := runs[b]; !ok {
			runs[b] = 0
		}
		if len(s.Schema.PrimaryKeys) == 0 {
			continue
		}
		l := level{b, e.File.Level}
		if l.level == 0 {
			out.Level0Files++
			runs[b]++
		} else if !levels[l] {
			levels[l] = true
			runs[b]++
		}
		out.SortedRuns = max(out.SortedRuns, runs[b])
	}
	out.Partitions, out.Buckets = int64(len(partitions)), int64(len(runs))
	return out, nil
}
