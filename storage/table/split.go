package table

import (
	"context"
	"slices"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
)

// openCost is what a file counts at least when small ones are packed.
const openCost = 64 << 10

// piece is what a split of this package carries in Impl.
type piece struct {
	read *readPlan
	dir  string // bucket directory
	// from and to cut a merge split out of its section: byte forms of keys, nil =
	// open; to is exclusive.
	from, to []byte
	fold     *foldedPart // nil = another split
}

// mergeSection is one section that has to be merged.
type mergeSection struct {
	runs  [][]File
	rows  int64
	bytes int64
	fold  *foldedPart
}

func (f *File) liveRows() int64 {
	n := f.Meta.Rows
	if f.only != nil {
		return f.only.Count()
	}
	if f.DV != nil && f.DV.Cardinality > 0 {
		n -= f.DV.Cardinality
	}
	return n
}

// provenRows is how many rows of a raw file certainly live.
func (p *planner) provenRows(f *File) int64 {
	switch {
	case f.only != nil:
		return f.only.Count()
	case f.DV != nil && f.DV.Cardinality < 0:
		return 0
	case p.primaryKey() && f.Meta.DeleteRows != 0:
		return 0
	}
	return f.liveRows()
}

// check refuses files that cannot be read.
func (p *planner) check(f *File) error {
	if _, err := p.t.env.formatOf(f.Meta.Name); err != nil {
		return err
	}
	fs, err := p.fileSchema(f.Meta.SchemaID)
	if err != nil {
		return err
	}
	if f.Meta.HasWriteCols && f.Meta.FirstRowID >= 0 && len(f.Meta.WriteCols) < len(fs.schema.Fields) {
		return &fileio.UnsupportedError{Feature: "data evolution"}
	}
	if !fs.checked {
		// Columns whose type was changed in a way that no cast covers.
		for _, c := range p.read.tableCols() {
			if _, err := fs.evo.Source(c); err != nil {
				return &fileio.UnsupportedError{Feature: err.Error()}
			}
		}
		fs.checked = true
	}
	return nil
}

func (p *planner) newSplit(l live, files []File) Split {
	s := Split{
		Partition: l.part.vals, Bucket: l.Bucket, Files: files,
		Impl: &piece{read: p.read, dir: p.bucketDir(l.part, l.Bucket)},
	}
	for i := range files {
		s.Rows += files[i].liveRows()
		s.Bytes += files[i].Meta.Size
	}
	return s
}

// addRaw packs small files into splits and cuts big ones into row ranges.
func (p *planner) addRaw(ctx context.Context, l live, files []File) error {
	z := &p.t.env.sizes
	var pack []File
	packed := int64(0)
	if err := p.orderFiles(l, files); err != nil {
		return err
	}
	flush := func() {
		if len(pack) > 0 {
			s := p.newSplit(l, pack)
			s.Raw = true
			p.add(s)
		}
		pack, packed = nil, 0
	}
	for i := range files {
		f := &files[i]
		if p.enough() {
			break
		}
		if err := p.check(f); err != nil {
			return err
		}
		proven, err := p.certainRows(l, f)
		if err != nil {
			return err
		}
		p.proven += proven
		if proven > 0 && p.countsOnly() {
			p.counted += proven
			p.skip("metadata", 1)
			continue
		}
		if ok, err := p.knows(l, f, proven); err != nil {
			return err
		} else if ok {
			p.skip("metadata", 1)
			continue
		}
		cuts := f.Meta.Size >= z.split/2 && f.Meta.Rows >= 2*z.rangeRows
		if cuts {
			// The file would be opened now: its indexes are asked before.
			found, err := p.read.candidates(ctx, p.bucketDir(l.part, l.Bucket), f, nil, &p.report.Counters)
			if err != nil {
				return err
			}
			if f.found = &found; found.none {
				p.skip(found.reason(), 1)
				if f.only != nil {
					p.report.FilesRead--
				}
				continue
			}
		}
		if f.only == nil {
			p.report.FilesRead++
		}
		if cuts {
			flush()
			if err := p.cut(ctx, l, f); err != nil {
				return err
			}
			continue
		}
		if w := max(f.Meta.Size, openCost); packed > 0 && packed+w > z.split {
			flush()
		}
		pack = append(pack, *f)
		packed += max(f.Meta.Size, openCost)
	}
	flush()
	p.addCounted(l)
	return nil
}

func (p *planner) add(s Split) {
	p.splits = append(p.splits, s)
	if s.Raw {
		p.report.RawSplits++
	} else {
		p.report.MergeSplits++
	}
}

// cut makes row ranges of one big file, at page starts where the format knows
// them: a writer that makes one row group per file would else keep one core busy.
func (p *planner) cut(ctx context.Context, l live, f *File) error {
	rd, err := p.read.open(ctx, p.bucketDir(l.part, l.Bucket), f)
	if err != nil {
		return p.explain(ctx, err)
	}
	defer p.read.close(rd)
	z := &p.t.env.sizes
	want := max(z.rangeRows, int64(float64(f.Meta.Rows)*float64(z.split)/float64(max(f.Meta.Size, 1))))
	cuts := rd.Cuts(p.read.physical(rd))
	rows := rd.Rows()
	from := int64(0)
	for from < rows {
		to := from + want
		switch {
		case rows-to < want/2:
			to = rows
		case len(cuts) > 0:
			if i, _ := slices.BinarySearch(cuts, to); i < len(cuts) && cuts[i]-to < want/4 {
				to = cuts[i]
			} else if i > 0 && cuts[i-1] > from+want/2 {
				to = cuts[i-1]
			}
		}
		if f.found != nil && !f.found.some(from, to) {
			c := &p.report.Counters
			c.Rows, c.RowsSkipped, c.IndexRows = c.Rows+to-from, c.RowsSkipped+to-from, c.IndexRows+to-from
			from = to
			continue
		}
		s := p.newSplit(l, []File{*f})
		s.Raw = true
		s.Range = &format.RowRange{From: from, To: to}
		s.Bytes = s.Bytes * (to - from) / rows
		s.Rows = min(s.Rows, to-from)
		p.add(s)
		from = to
	}
	return nil
}

// addMerge makes merge splits: small sections are joined, big ones cut by key.
func (p *planner) addMerge(ctx context.Context, l live, sections []mergeSection) error {
	if len(sections) == 0 {
		return nil
	}
	if err := p.canMerge(); err != nil {
		return err
	}
	z := &p.t.env.sizes
	var pack [][][]File
	var rows, bytes int64
	flush := func() {
		if len(pack) > 0 {
			p.add(p.mergeSplit(l, pack, rows, bytes))
		}
		pack, rows, bytes = nil, 0, 0
	}
	for _, s := range sections {
		for _, r := range s.runs {
			for i := range r {
				if err := p.check(&r[i]); err != nil {
					return err
				}
				if r[i].only == nil {
					p.report.FilesRead++
				}
			}
		}
		if s.fold != nil && s.rows < 2*z.mergeRows {
			sp := p.mergeSplit(l, [][][]File{s.runs}, s.rows, s.bytes)
			sp.Impl.(*piece).fold = s.fold
			p.add(sp)
			continue
		}
		if s.rows >= 2*z.mergeRows {
			flush()
			bounds, err := p.keyBounds(ctx, l, &s)
			if err != nil {
				return p.explain(ctx, err)
			}
			n := int64(len(bounds) + 1)
			for i := range n {
				sp := p.mergeSplit(l, [][][]File{s.runs}, s.rows/n+1, s.bytes/n+1)
				im := sp.Impl.(*piece)
				im.fold = s.fold
				if i > 0 {
					im.from = bounds[i-1]
				}
				if i < n-1 {
					im.to = bounds[i]
				}
				p.add(sp)
			}
			continue
		}
		if len(pack) > 0 && (bytes+s.bytes > z.split || rows+s.rows > z.mergeRows) {
			flush()
		}
		pack = append(pack, s.runs)
		rows, bytes = rows+s.rows, bytes+s.bytes
	}
	flush()
	return nil
}

func (p *planner) mergeSplit(l live, sections [][][]File, rows, bytes int64) Split {
	return Split{
		Partition: l.part.vals, Bucket: l.Bucket, Sections: sections, Rows: rows, Bytes: bytes,
		Impl: &piece{read: p.read, dir: p.bucketDir(l.part, l.Bucket)},
	}
}

// canMerge refuses merge engines, and options of theirs, that are not supported.
func (p *planner) canMerge() error {
	e := p.engine()
	if e == nil {
		return nil
	}
	var cols []int
	for _, c := range p.read.columns {
		if c >= 0 && !slices.Contains(p.keyCols, c) && !slices.Contains(cols, c) {
			cols = append(cols, c)
		}
	}
	_, err := e(cols)
	return err
}
