package table

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// A diff compares two states of a key table, bucket by bucket. Files of both states
// are cut into sections by key, together; a section that has the same files in both
// holds no change. In any other both states are merged, side by side in key order,
// and of each key comes
//
//	only after        the row after, with its kind
//	both, different   the row after
//	only before       -D with the row before, where retractions are wanted
//
// Rows are compared by all their columns and by whether they are retractions. Java
// leaves out all the files that both states have, also those whose sections have
// others: a row that was written again as it was is a change there, and one that
// partial-update or aggregation made of an old and a new version comes unmerged. Here
// it is the states that are compared. A value filter sees the outcome, never what is
// compared.
//
// Append tables have no keys: a diff of one is the rows of the files that only the
// state after has, as with Java.
// Source: IncrementalDiffStartingScanner.java, IncrementalDiffSplitRead.java,
// SnapshotReaderImpl.readIncrementalDiff.

// diffPiece is what a split of a diff carries in Impl.
type diffPiece struct {
	read          *readPlan // of the scan
	inner         *readPlan // of both states: every column, then kind, then sequence when it is wanted
	dir           string
	before, after [][][]File
	from, to      []byte // cut out of the sections: keys, to is exclusive; nil = open
	deletes       bool   // retractions are wanted
}

// diffSide is one state of a diff.
type diffSide struct {
	p     *planner
	files map[string][]live // by bucket, see bucketName
	dvs   map[string]*manifest.DeletionVectorRef
}

func bucketName(l *live) string {
	return string(l.part.image) + "/" + string(binary32(l.Bucket))
}

func binary32(v int32) []byte { return []byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)} }

// side reads which files a state has. order gets the names of buckets that it does
// not have yet.
func (p *planner) side(ctx context.Context, s *snapshot.Snapshot, order *[]string) (*diffSide, error) {
	d := &diffSide{files: map[string][]live{}}
	at := snapshot.Ref{Kind: snapshot.ID, Branch: p.scan.At.Branch, Schema: p.schema.ID + 1, Snap: s, Empty: s == nil}
	scan := Scan{At: at, Limit: -1, SkipLevel0: p.scan.SkipLevel0, Options: p.scan.Options, KeepDeletes: true, Filter: p.read.keyPart}
	if s != nil {
		scan.At.ID = s.ID
	} else {
		scan.At.Kind = snapshot.Latest
	}
	for i := range p.schema.Fields {
		scan.Columns = append(scan.Columns, i)
	}
	if p.primaryKey() {
		scan.Columns = append(scan.Columns, PseudoKind)
		if slices.Contains(p.read.columns, PseudoSequence) {
			scan.Columns = append(scan.Columns, PseudoSequence)
		}
	} else {
		scan.Filter = p.filter
	}
	var err error
	if d.p, err = p.t.newPlanner(ctx, scan); err != nil || s == nil {
		return d, err
	}
	files, err := d.p.liveEntries(ctx)
	if err != nil {
		return nil, err
	}
	if d.dvs, err = d.p.vectors(ctx); err != nil {
		return nil, err
	}
	for i := range files {
		n := bucketName(&files[i])
		if d.files[n] == nil && !slices.Contains(*order, n) {
			*order = append(*order, n)
		}
		d.files[n] = append(d.files[n], files[i])
	}
	return d, nil
}

func (p *planner) planDiff(ctx context.Context, inc *Incremental) error {
	if inc.to == nil {
		to, err := p.snapshots.Get(ctx, inc.To)
		if err != nil {
			return err
		}
		inc = &Incremental{From: inc.From, To: inc.To, to: to}
		if inc.From > 0 {
			if inc.from, err = p.snapshots.Get(ctx, inc.From); err != nil {
				return err
			}
		}
	}
	var order []string
	before, err := p.side(ctx, inc.from, &order)
	if err != nil {
		return err
	}
	after, err := p.side(ctx, inc.to, &order)
	if err != nil {
		return err
	}
	if err := sameBuckets(before, after); err != nil {
		return err
	}
	r := after.p.report
	p.report.Manifests, p.report.ManifestsRead = r.Manifests, r.ManifestsRead
	p.report.Partitions, p.report.PartitionsRead = r.Partitions, r.PartitionsRead
	p.report.Buckets, p.report.BucketsRead, p.report.Files = r.Buckets, r.BucketsRead, r.Files
	for k, n := range r.Skipped {
		p.skip(k, n)
	}
	for _, n := range order {
		b, a := before.files[n], after.files[n]
		if !p.primaryKey() {
			err = p.diffAppend(ctx, after, b, a)
		} else {
			err = p.diffBucket(ctx, before, after, b, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sameBuckets refuses states between which a partition got another number of
// buckets: its keys moved.
func sameBuckets(before, after *diffSide) error {
	total := map[string]int32{}
	for _, s := range []*diffSide{before, after} {
		for _, files := range s.files {
			l := &files[0]
			if l.TotalBuckets <= 0 {
				continue
			}
			k := string(l.part.image)
			if old, ok := total[k]; ok && old != l.TotalBuckets {
				return &fileio.UnsupportedError{Feature: "a diff between states with different numbers of buckets"}
			}
			total[k] = l.TotalBuckets
		}
	}
	return nil
}

// diffAppend plans a bucket of an append table.
func (p *planner) diffAppend(ctx context.Context, after *diffSide, b, a []live) error {
	old := map[string]bool{}
	for i := range b {
		old[b[i].File.Name] = true
	}
	var raw []File
	for i := range a {
		if old[a[i].File.Name] {
			p.skip("unchanged", 1)
			continue
		}
		ok, err := after.p.mayMatch(a[i], true)
		if err != nil {
			return err
		}
		if !ok {
			p.skip("stats", 1)
			continue
		}
		raw = append(raw, File{Meta: a[i].File, DV: after.dvs[a[i].File.Name]})
	}
	if len(raw) == 0 {
		return nil
	}
	slices.SortStableFunc(raw, func(a, b File) int { return cmp.Compare(a.Meta.MinSequence, b.Meta.MinSequence) })
	return p.addRaw(ctx, a[0], raw)
}

// diffFile is a file of either state or of both.
type diffFile struct {
	l      live
	file   [2]File // before, after
	in     [2]bool
	lo, hi []byte
}

// diffBucket plans a bucket of a key table.
func (p *planner) diffBucket(ctx context.Context, before, after *diffSide, b, a []live) error {
	at := map[identity]int{}
	var files []diffFile
	for k, s := range []*diffSide{before, after} {
		for _, l := range [2][]live{b, a}[k] {
			if l.File.Level == 0 && p.skipLevel0() {
				continue
			}
			ok, err := after.p.mayMatch(l, false)
			if err != nil {
				return err
			}
			if !ok {
				p.skip("stats", 1)
				continue
			}
			id := identityOf(l.Entry)
			i, have := at[id]
			if !have {
				i = len(files)
				at[id] = i
				lo, err1 := p.fileKey(l.File.MinKey)
				hi, err2 := p.fileKey(l.File.MaxKey)
				if err := errors.Join(err1, err2); err != nil {
					return &fileio.CorruptionError{Path: p.bucketDir(l.part, l.Bucket) + "/" + l.File.Name, Offset: -1, Reason: "key range in its manifest entry", Err: err}
				}
				files = append(files, diffFile{l: l, lo: lo, hi: hi})
			}
			f := File{Meta: l.File, DV: s.dvs[l.File.Name]}
			if err := p.check(&f); err != nil {
				return err
			}
			files[i].in[k], files[i].file[k] = true, f
		}
	}
	if len(files) == 0 {
		return nil
	}
	spans := make([]mergetree.Span, len(files))
	for i := range files {
		spans[i] = mergetree.Span{Min: files[i].lo, Max: files[i].hi, Item: i}
	}
	var pack diffPack
	for _, s := range mergetree.IntervalPartition(spans) {
		same := true
		var items []int
		for _, r := range s.Runs {
			items = append(items, r...)
		}
		for _, i := range items {
			f := &files[i]
			same = same && f.in[0] && f.in[1] && sameVector(f.file[0].DV, f.file[1].DV)
		}
		if same {
			p.skip("unchanged", int64(len(items)))
			continue
		}
		if err := p.diffSection(ctx, after, files, s, items, &pack); err != nil {
			return err
		}
	}
	p.flushDiff(after, files[0].l, &pack)
	return nil
}

func sameVector(a, b *manifest.DeletionVectorRef) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// diffPack collects sections for one split.
type diffPack struct {
	sections    [2][][][]File
	rows, bytes int64
}

// diffSection adds a section to the pack, or cuts a big one into splits by key.
func (p *planner) diffSection(ctx context.Context, after *diffSide, files []diffFile, s mergetree.Section, items []int, pack *diffPack) error {
	var side [2][][][]File
	var rows, bytes int64
	all := mergeSection{}
	for _, r := range s.Runs {
		var run []File
		for _, i := range r {
			f := files[i].file[0]
			if files[i].in[1] {
				f = files[i].file[1]
			}
			run = append(run, f)
			rows += f.Meta.Rows
			bytes += f.Meta.Size
		}
		all.runs = append(all.runs, run)
	}
	all.rows, all.bytes = rows, bytes
	for k := range side {
		var spans []mergetree.Span
		for _, i := range items {
			if files[i].in[k] {
				spans = append(spans, mergetree.Span{Min: files[i].lo, Max: files[i].hi, Item: i})
				p.report.FilesRead++
			}
		}
		for _, x := range mergetree.IntervalPartition(spans) {
			var sec [][]File
			for _, r := range x.Runs {
				var run []File
				for _, i := range r {
					run = append(run, files[i].file[k])
				}
				sec = append(sec, run)
			}
			side[k] = append(side[k], sec)
		}
	}
	z := &p.t.env.sizes
	if rows >= 2*z.mergeRows {
		p.flushDiff(after, files[0].l, pack)
		bounds, err := after.p.keyBounds(ctx, files[items[0]].l, &all)
		if err != nil {
			return p.explain(ctx, err)
		}
		n := int64(len(bounds) + 1)
		for i := range n {
			d := p.diffSplit(after, files[0].l, side, rows/n+1, bytes/n+1)
			if i > 0 {
				d.from = bounds[i-1]
			}
			if i < n-1 {
				d.to = bounds[i]
			}
		}
		return nil
	}
	if pack.rows > 0 && (pack.rows+rows > z.mergeRows || pack.bytes+bytes > z.split) {
		p.flushDiff(after, files[0].l, pack)
	}
	for k := range side {
		pack.sections[k] = append(pack.sections[k], side[k]...)
	}
	pack.rows, pack.bytes = pack.rows+rows, pack.bytes+bytes
	return nil
}

func (p *planner) flushDiff(after *diffSide, l live, pack *diffPack) {
	if pack.rows > 0 {
		p.diffSplit(after, l, pack.sections, pack.rows, pack.bytes)
	}
	*pack = diffPack{}
}

func (p *planner) diffSplit(after *diffSide, l live, side [2][][][]File, rows, bytes int64) *diffPiece {
	d := &diffPiece{
		read: p.read, inner: after.p.read, dir: p.bucketDir(l.part, l.Bucket), before: side[0], after: side[1],
		deletes: p.scan.KeepDeletes || p.read.kinds,
	}
	p.add(Split{Partition: l.part.vals, Bucket: l.Bucket, Sections: slices.Concat(side[0], side[1]), Rows: rows, Bytes: bytes, Impl: d})
	return d
}

// diffReader reads one split of a diff.
type diffReader struct {
	d      *diffPiece
	o      ReadOptions
	fields types.Schema
	codec  *mergetree.KeyCodec
	width  int // table columns
	sides  [2]diffCursor
	open   bool
	out    out
	err    error
}

// diffCursor is where a diff is in one state.
type diffCursor struct {
	rd   *mergeReader
	b    *vec.Batch
	keys mergetree.Keys
	kind []int16
	p    int
	done bool
}

func newDiffReader(d *diffPiece, o ReadOptions) *diffReader {
	return &diffReader{d: d, o: o, fields: d.read.fields, codec: d.read.codec, width: len(d.read.st.schema.Fields), out: out{fields: d.read.fields, size: o.BatchRows}}
}

// Next returns the next batch, nil at the end.
func (r *diffReader) Next(ctx context.Context) (*vec.Batch, error) {
	if r.err != nil {
		return nil, r.err
	}
	for {
		if b := r.out.next(); b != nil {
			return b, nil
		}
		more, err := r.step(ctx)
		if err != nil {
			r.err = err
			return nil, err
		}
		if !more {
			return nil, nil
		}
	}
}

func (r *diffReader) start() {
	r.open = true
	for k, sections := range [2][][][]File{r.d.before, r.d.after} {
		c := &r.sides[k]
		if len(sections) == 0 {
			c.done = true
			continue
		}
		o := ReadOptions{Account: r.o.Account, BatchRows: 8192, Counters: r.o.Counters}
		im := &piece{read: r.d.inner, dir: r.d.dir, from: r.d.from, to: r.d.to}
		c.rd = newMergeReader(im, Split{Sections: sections}, o)
	}
}

// fill makes sure that a cursor is on a row, or done.
func (r *diffReader) fill(ctx context.Context, c *diffCursor) error {
	if c.done || c.b != nil && c.p < c.b.N {
		return nil
	}
	b, err := c.rd.Next(ctx)
	if err != nil {
		return err
	}
	if c.b, c.p = b, 0; b == nil {
		c.done = true
		return nil
	}
	keys := make([]arrow.Array, len(r.d.read.keyCols))
	for i, k := range r.d.read.keyCols {
		keys[i] = b.Cols[k]
	}
	r.codec.Fill(&c.keys, keys, b.N)
	c.kind = vec.ViewOf[int16](b.Cols[r.width]).V
	return nil
}

// picks are rows of two batches, 0 = before, 1 = after.
type picks struct {
	src  []uint16
	row  []uint32
	kind []int16
}

func (x *picks) add(src uint16, row int, kind int16) {
	x.src, x.row, x.kind = append(x.src, src), append(x.row, uint32(row)), append(x.kind, kind)
}

// step compares what both cursors have at hand; false at the end.
func (r *diffReader) step(ctx context.Context) (bool, error) {
	if !r.open {
		r.start()
	}
	before, after := &r.sides[0], &r.sides[1]
	for _, c := range []*diffCursor{before, after} {
		if err := r.fill(ctx, c); err != nil {
			return false, err
		}
	}
	if before.done && after.done {
		return false, nil
	}
	var x picks
	// Keys that both have: where each pair is among the picks, and its rows.
	var at []int
	var rows [2][]uint32
	onlyBefore := func() {
		if r.d.deletes && before.kind[before.p]&1 == 0 {
			x.add(0, before.p, 3)
		}
		before.p++
	}
	onlyAfter := func() {
		x.add(1, after.p, after.kind[after.p])
		after.p++
	}
	for !before.done && !after.done && before.p < before.b.N && after.p < after.b.N {
		switch c := r.codec.Compare(&before.keys, before.p, &after.keys, after.p); {
		case c < 0:
			onlyBefore()
		case c > 0:
			onlyAfter()
		default:
			if (before.kind[before.p]^after.kind[after.p])&1 == 0 {
				at = append(at, len(x.row))
				rows[0], rows[1] = append(rows[0], uint32(before.p)), append(rows[1], uint32(after.p))
			}
			before.p++
			onlyAfter()
		}
	}
	for after.done && before.p < before.b.N {
		onlyBefore()
	}
	for before.done && after.p < after.b.N {
		onlyAfter()
	}
	drop := make([]bool, len(x.row))
	if len(at) > 0 {
		same := make([]bool, len(at))
		for i := range same {
			same[i] = true
		}
		for c := range r.width {
			sameValues(before.b.Cols[c], after.b.Cols[c], rows[0], rows[1], same)
		}
		for i, s := range same {
			drop[at[i]] = s
		}
	}
	k := 0
	for i := range x.row {
		if drop[i] || !r.d.deletes && x.kind[i]&1 != 0 {
			continue
		}
		x.src[k], x.row[k], x.kind[k] = x.src[i], x.row[i], x.kind[i]
		k++
	}
	x.src, x.row, x.kind = x.src[:k], x.row[:k], x.kind[:k]
	if k == 0 {
		return true, nil
	}
	return true, r.emit(ctx, &x)
}

// column makes scan column i of picks.
func (r *diffReader) column(i int, x *picks) arrow.Array {
	c := r.d.read.columns[i]
	n := len(x.row)
	switch c {
	case PseudoKind:
		return vec.Make(arrow.PrimitiveTypes.Int16, slices.Clone(x.kind), nil)
	case PseudoBucket:
		v := make([]int32, n)
		for i := range v {
			v[i] = bucketOf(r.d.dir)
		}
		return vec.Make(arrow.PrimitiveTypes.Int32, v, nil)
	case PseudoSequence:
		c = r.width + 1
	case PseudoFile, PseudoPos, PseudoRowID, PseudoVersion:
		return vec.MakeNull(r.fields[i].Type.Arrow(), n)
	}
	srcs := make([]arrow.Array, 2)
	for k := range srcs {
		if b := r.sides[k].b; b != nil {
			srcs[k] = b.Cols[c]
		}
	}
	return vec.Gather(r.fields[i].Type.Arrow(), srcs, x.src, x.row)
}

// emit filters picks and queues their columns.
func (r *diffReader) emit(ctx context.Context, x *picks) error {
	cols := make([]arrow.Array, len(r.d.read.columns))
	if f := r.o.Filter; f != nil {
		b := &vec.Batch{N: len(x.row)}
		for _, i := range f.Columns() {
			cols[i] = r.column(i, x)
			b.Cols, b.Schema = append(b.Cols, cols[i]), append(b.Schema, r.fields[i])
		}
		sel, err := f.Select(ctx, b)
		if err != nil || len(sel) == 0 {
			return err
		}
		if len(sel) < len(x.row) {
			y := picks{}
			for _, i := range sel {
				y.add(x.src[i], int(x.row[i]), x.kind[i])
			}
			x = &y
			for i, c := range cols {
				if c != nil {
					cols[i] = vec.FilterSel(c, sel)
				}
			}
		}
	}
	for i := range cols {
		if cols[i] == nil {
			cols[i] = r.column(i, x)
		}
	}
	r.out.put(cols, len(x.row))
	return nil
}

// Close releases the files.
func (r *diffReader) Close() error {
	for k := range r.sides {
		if rd := r.sides[k].rd; rd != nil {
			_ = rd.Close()
		}
	}
	if r.err == nil {
		r.err = errClosed
	}
	r.out.put(nil, 0)
	return nil
}
