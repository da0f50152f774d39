package table

import (
	"context"
	"slices"

	"github.com/paimon-sql/paimon-sql/storage/compact"
	"github.com/paimon-sql/paimon-sql/storage/datafile"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// A removal ends a key's row, and what is written afterwards begins anew. Of a
// removal and a later row an engine makes one row of kind +I, which no longer says
// that older versions are of no account:
//
//	base a=1 b=1 | -D | +I b=5        all three: a=NULL b=5
//	base a=1 b=1 | -D and +I: b=5     first the later two: a=1 b=5
//
// So these two are merged only where nothing older is left out: a write makes two
// files of them, and a compaction that meets them takes in the whole bucket. Those
// that look older versions up see all of a key in any case. Java merges the two
// anywhere (MergeTreeWriter.java, UniversalCompaction.java), and its rows depend on
// when it does.

// revives reports whether compacting a unit could bring back what was removed.
func (c *compaction) revives(l *compact.Levels, u *compact.Unit) bool {
	if c.opts.Lookup || u.Rewrite || len(u.Runs) == len(l.Runs) || !mergetree.Removes(c.p.state.options) {
		return false
	}
	files := u.Files()
	for _, f := range files {
		if f.DeleteRows == 0 {
			continue
		}
		if slices.ContainsFunc(files, func(g *manifest.DataFile) bool { return g != f && g.MaxSequence > f.MinSequence }) {
			return true
		}
	}
	return false
}

// afterRemoval returns how many of a key's versions, of these kinds and in merge
// order, are written before the others: up to the last removal that is followed by
// anything. 0 = all are folded into one.
func afterRemoval(kinds []uint8) int {
	for i := len(kinds) - 2; i >= 0; i-- {
		if kinds[i] == mergetree.KindDelete {
			return i + 1
		}
	}
	return 0
}

// mergeApart is merge for several files of a table whose engine removes rows: what
// comes after a file with removals goes into another one.
func (f *folder) mergeApart(ctx context.Context, files []int, first int64, write func(context.Context, string, []int, datafile.Writer, int64) error) error {
	for from, i := 0, 0; i < len(files); i++ {
		if i < len(files)-1 && f.c.Files[files[i]].File.DeleteRows == 0 {
			continue
		}
		made := len(f.written)
		if err := f.replace(ctx, files[from:i+1], first, write); err != nil {
			return err
		}
		for _, e := range f.written[made:] {
			first += e.File.Rows
		}
		from = i + 1
	}
	return nil
}
