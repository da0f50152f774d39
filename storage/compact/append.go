package compact

import (
	"cmp"
	"slices"

	"github.com/paimon-sql/paimon-sql/storage/manifest"
)

// AppendFile is a file of an append table.
type AppendFile struct {
	File *manifest.DataFile
	// Deleted is the number of rows in its deletion vector, 0 = it has none, -1 =
	// it has one of unknown size.
	Deleted int64
	// Index names the deletion vector's index file; "" = none.
	Index string
}

// candidate reports whether a file of an append table is worth rewriting: it is
// small, or a good part of it is deleted.
func (o *Options) candidate(f *AppendFile) bool {
	return f.File.Size < o.Small || o.ForceRewrite || o.hollow(f)
}

// hollow reports whether a good part of a file is deleted.
func (o *Options) hollow(f *AppendFile) bool {
	return f.Deleted < 0 || float64(f.Deleted) > float64(f.File.Rows)*o.DeleteRatio
}

// PickAppend packs the small files of one partition of an append table without
// fixed buckets: smallest first, into bins of about twice the target size; the
// last bin counts when it has compaction.min.file-num files, or two of them with
// full. Files whose deletion vectors lie in one index file stay together, since
// that file is written anew; they are due when one of them is mostly deleted, and
// with full always. Every pack is the input of one rewriting.
// Source: AppendCompactCoordinator.java, which also takes up small files because
// of a single deleted row: after every DELETE, that is, here where it is called
// after every commit.
func PickAppend(files []AppendFile, o *Options, full bool) [][]AppendFile {
	least := max(2, o.MinFiles)
	if full {
		least = 2
	}
	groups := map[string][]AppendFile{}
	var rest []AppendFile
	for _, f := range files {
		switch {
		case !o.candidate(&f):
		case f.Index != "":
			groups[f.Index] = append(groups[f.Index], f)
		default:
			rest = append(rest, f)
		}
	}
	var out [][]AppendFile
	b := bin{o: o}
	for _, g := range sortedGroups(groups) {
		b.add(g...)
		if b.full() {
			out = append(out, b.drain())
		}
	}
	if len(b.files) > 0 && (full || slices.ContainsFunc(b.files, func(f AppendFile) bool { return o.hollow(&f) })) {
		out = append(out, b.drain())
	}
	slices.SortStableFunc(rest, func(a, b AppendFile) int {
		return cmp.Or(cmp.Compare(a.File.Size, b.File.Size), cmp.Compare(a.File.MinSequence, b.File.MinSequence), cmp.Compare(a.File.Name, b.File.Name))
	})
	for _, f := range rest {
		b.add(f)
		if b.full() {
			out = append(out, b.drain())
		}
	}
	if len(b.files) >= least || o.ForceRewrite && len(b.files) > 0 {
		out = append(out, b.drain())
	}
	return out
}

// sortedGroups returns the groups by size, smallest first.
func sortedGroups(m map[string][]AppendFile) [][]AppendFile {
	out := make([][]AppendFile, 0, len(m))
	for _, g := range m {
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b []AppendFile) int {
		return cmp.Or(cmp.Compare(bytesOf(a), bytesOf(b)), cmp.Compare(a[0].Index, b[0].Index))
	})
	return out
}

func bytesOf(fs []AppendFile) int64 {
	n := int64(0)
	for _, f := range fs {
		n += f.File.Size
	}
	return n
}

// bin is a pack that is being filled.
type bin struct {
	o     *Options
	files []AppendFile
	bytes int64
}

func (b *bin) add(fs ...AppendFile) {
	for _, f := range fs {
		b.files = append(b.files, f)
		b.bytes += f.File.Size + b.o.OpenCost
	}
}

func (b *bin) full() bool { return len(b.files) > 1 && b.bytes >= 2*b.o.Target }

func (b *bin) drain() []AppendFile {
	fs := b.files
	b.files, b.bytes = nil, 0
	return fs
}

// fullLeast is the least number of files that a full compaction of an ordered
// bucket is worth doing for.
const fullLeast = 3

// PickOrdered picks neighbours of one bucket of an append table whose rows have
// an order: files by their sequence numbers. Without full it takes the first
// compaction.min.file-num files in a row that are not big together; with full,
// everything from the first small file on, if small ones prevail. A file with a
// deletion vector counts as small when much of it is deleted, and with full
// always. Source: BucketedAppendCompactManager.java.
func PickOrdered(files []AppendFile, o *Options, full bool) []AppendFile {
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b AppendFile) int {
		return cmp.Or(cmp.Compare(a.File.MinSequence, b.File.MinSequence), cmp.Compare(a.File.Name, b.File.Name))
	})
	if full {
		return orderedFull(files, o)
	}
	// A file that is big stays as it is; what is small on both sides of it must not
	// pass it.
	from, bytes := 0, int64(0)
	for i := range files {
		if !o.candidate(&files[i]) {
			from, bytes = i+1, 0
			continue
		}
		bytes += files[i].File.Size
		if o.hollow(&files[i]) {
			return files[from : i+1]
		}
		if i-from+1 >= max(2, o.MinFiles) {
			return files[from : i+1]
		}
		for bytes >= 2*o.Target && from < i {
			bytes -= files[from].File.Size
			from++
		}
	}
	return nil
}

func orderedFull(files []AppendFile, o *Options) []AppendFile {
	for len(files) > 0 && !o.ForceRewrite && files[0].File.Size >= o.Small && files[0].Deleted == 0 {
		files = files[1:]
	}
	small, deleted := 0, false
	for _, f := range files {
		if f.File.Size < o.Small {
			small++
		}
		deleted = deleted || f.Deleted != 0
	}
	switch {
	case len(files) == 0:
		return nil
	case o.ForceRewrite || deleted:
		return files
	case len(files) >= fullLeast && small > len(files)-small:
		return files
	}
	return nil
}

// Order sorts the files of a pack as their rows are to be read.
func Order(files []AppendFile) {
	slices.SortStableFunc(files, func(a, b AppendFile) int {
		return cmp.Or(cmp.Compare(a.File.MinSequence, b.File.MinSequence), cmp.Compare(a.File.Name, b.File.Name))
	})
}
