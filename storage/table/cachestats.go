package table

import "github.com/paimon-sql/paimon-sql/storage/fileio"

// CacheStats are those of one cache of an Env. Open data files have no Bytes and no
// Budget: their number is bounded.
type CacheStats struct {
	Name string
	fileio.CacheStats
}

// CacheStats says what each cache holds and how often it had what it was asked for,
// always in the same order. Snapshots and schemas are not among them: their files are
// looked at every time, as their names are used again.
//
//	manifests         entries of manifests, lists and index manifests   by file
//	files             open data files: footers, page indexes, dictionaries  by file
//	pages             inflated pages                                    by file, place
//	deletion vectors  vectors, and the rows they leave                  by file, place
//	file indexes      heads and bitmaps                                 by file
//	verdicts          what merges come to                               by set of files
//	folded            columns of folded rows                            by set of files
//	keys              keys at row numbers, for cutting merges           by file, row
//	lookups           tables for lookups by key                         by file
//
// Names of all these files hold a UUID: one that was rolled back, or a table that was
// made anew, is never mistaken for another.
func (e *Env) CacheStats() []CacheStats {
	out := make([]CacheStats, 0, 9)
	add := func(name string, parts ...fileio.CacheStats) {
		c := CacheStats{Name: name}
		for _, p := range parts {
			c.Add(p)
		}
		out = append(out, c)
	}
	m, lists, indexes := e.Manifests.Stats()
	add("manifests", m, lists, indexes)
	add("files", e.readers.stats())
	var pages []fileio.CacheStats
	for _, f := range e.formats {
		if f, ok := f.(interface{ PageStats() fileio.CacheStats }); ok {
			pages = append(pages, f.PageStats())
		}
	}
	add("pages", pages...)
	add("deletion vectors", e.vectors.Stats(), e.living.Stats())
	add("file indexes", e.indexes.Stats())
	add("verdicts", e.verdicts.entries.Stats())
	if e.folded != nil {
		add("folded", e.folded.Stats())
	}
	add("keys", e.samples.Stats())
	l := e.lookups.Stats()
	add("lookups", fileio.CacheStats{Entries: int64(l.Tables), Bytes: l.MemoryBytes, Hits: l.Lookups, Misses: l.Builds})
	return out
}

func (c *readerCache) stats() fileio.CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fileio.CacheStats{Entries: int64(len(c.open)), Hits: c.hits, Misses: c.misses}
}

// CacheUse is what was asked of the caches between two CacheStats, in one line each;
// caches of which nothing was asked are left out.
func CacheUse(before, after []CacheStats) []CacheStats {
	var out []CacheStats
	for i := range after {
		c := after[i]
		if i < len(before) && before[i].Name == c.Name {
			c.Hits -= before[i].Hits
			c.Misses -= before[i].Misses
		}
		if c.Hits > 0 || c.Misses > 0 {
			out = append(out, c)
		}
	}
	return out
}
