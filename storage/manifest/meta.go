package manifest

import (
	"strings"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
)

// Identity is what makes two entries speak of the same file (Java:
// FileEntry.Identifier). A file that moves to another level is another identity.
type Identity struct {
	Partition, Name, External, Extra string
	Bucket, Level                    int32
}

// Identity returns the identity of e.
func (e *Entry) Identity() Identity {
	f, part := e.File, e.Partition
	if len(part) == 0 {
		part = emptyRow
	}
	id := Identity{Partition: string(part), Name: f.Name, External: f.ExternalPath, Bucket: e.Bucket, Level: f.Level}
	if len(f.ExtraFiles) > 0 || len(f.EmbeddedIndex) > 0 {
		id.Extra = strings.Join(f.ExtraFiles, "\x00") + "\x00\x00" + string(f.EmbeddedIndex)
	}
	return id
}

// Normal returns entries in the form that decoding them gives: the images of an
// unpartitioned table's partition and of an append table's keys are the empty
// row, not nil. The slice is new, the files are shared unless they must differ.
func Normal(entries []Entry) []Entry {
	out := make([]Entry, len(entries))
	for i, e := range entries {
		if len(e.Partition) == 0 {
			e.Partition = emptyRow
		}
		if f := e.File; len(f.MinKey) == 0 || len(f.MaxKey) == 0 || lacks(&f.KeyStats) || lacks(&f.ValueStats) {
			c := *f
			for _, b := range []*[]byte{&c.MinKey, &c.MaxKey, &c.KeyStats.Min, &c.KeyStats.Max, &c.ValueStats.Min, &c.ValueStats.Max} {
				if len(*b) == 0 {
					*b = emptyRow
				}
			}
			e.File = &c
		}
		out[i] = e
	}
	return out
}

func lacks(s *Stats) bool { return len(s.Min) == 0 || len(s.Max) == 0 }

// Describe returns the list entry of a manifest of size bytes that holds entries.
// partition are the types of the partition columns. Statistics are those of
// Java's ManifestFile: exact bounds of the partitions, of buckets and levels, and
// of row ids where every file has some.
func Describe(name string, size, schemaID int64, entries []Entry, partition []types.Type) (FileMeta, error) {
	m := FileMeta{Name: name, Size: size, SchemaID: schemaID, MinBucket: -1, MaxBucket: -1, MinLevel: -1, MaxLevel: -1, MinRowID: -1, MaxRowID: -1}
	ids := true
	for i := range entries {
		e := &entries[i]
		if e.Kind == Add {
			m.Added++
		} else {
			m.Deleted++
		}
		if i == 0 {
			m.MinBucket, m.MaxBucket = e.Bucket, e.Bucket
			m.MinLevel, m.MaxLevel = e.File.Level, e.File.Level
		}
		m.MinBucket, m.MaxBucket = min(m.MinBucket, e.Bucket), max(m.MaxBucket, e.Bucket)
		m.MinLevel, m.MaxLevel = min(m.MinLevel, e.File.Level), max(m.MaxLevel, e.File.Level)
		if first := e.File.FirstRowID; first < 0 {
			ids = false
		} else if ids {
			if m.MinRowID < 0 || first < m.MinRowID {
				m.MinRowID = first
			}
			m.MaxRowID = max(m.MaxRowID, first+e.File.Rows-1)
		}
	}
	if !ids {
		m.MinRowID, m.MaxRowID = -1, -1
	}
	var err error
	m.PartitionStats, err = partitionStats(entries, partition)
	return m, err
}

func partitionStats(entries []Entry, ts []types.Type) (Stats, error) {
	s := Stats{Min: emptyRow, Max: emptyRow}
	if len(ts) == 0 {
		return s, nil
	}
	n := len(ts)
	lo, hi := make([]types.Datum, n), make([]types.Datum, n)
	incomparable := make([]bool, n)
	s.NullCounts = make([]int64, n)
	seen := map[string][]types.Datum{}
	for i := range entries {
		vals, ok := seen[string(entries[i].Partition)]
		first := !ok
		if first {
			var err error
			if vals, err = binrow.Decode(entries[i].Partition, ts); err != nil {
				return s, err
			}
			seen[string(entries[i].Partition)] = vals
		}
		for c, v := range vals {
			if v == nil {
				s.NullCounts[c]++
				continue
			}
			if !first {
				continue
			}
			if lo[c] == nil {
				lo[c], hi[c] = v, v
				continue
			}
			a, ok1 := predicate.Compare(ts[c], v, lo[c])
			b, ok2 := predicate.Compare(ts[c], v, hi[c])
			switch {
			case !ok1 || !ok2:
				incomparable[c] = true
			case a < 0:
				lo[c] = v
			case b > 0:
				hi[c] = v
			}
		}
	}
	for c := range incomparable {
		if incomparable[c] {
			lo[c], hi[c], s.NullCounts[c] = nil, nil, -1
		}
	}
	var err error
	if s.Min, err = binrow.Encode(ts, lo); err != nil {
		return s, err
	}
	s.Max, err = binrow.Encode(ts, hi)
	return s, err
}
