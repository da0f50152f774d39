package table

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/dv"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// readPlan is what the readers of one plan share. Immutable.
type readPlan struct {
	t        *FileStore
	st       *state
	at       snapshot.Ref
	pruned   map[int]types.Type // ROW columns of which the scan needs some members only
	columns  []int              // of the scan: table columns, or pseudo-columns below 0
	fields   types.Schema
	filter   predicate.Node // simplified, on the table's schema
	keyPart  predicate.Node // the conjuncts of filter that speak of key and partition columns only
	keyed    bool
	keyCols  []int
	keyFrom  []byte // no key outside of these passes filter; see keyRange
	keyTo    []byte
	codec    *mergetree.KeyCodec
	seqCols  []int // user sequence fields
	seqDesc  bool
	snapshot bool              // sequence.snapshot-ordering: see openFile.stamped
	expire   *mergetree.Expire // of a compaction
	// deleted rows are wanted, too
	kinds   bool
	tracked bool // row ids or their sequence numbers are wanted
	without Pruning
	indexes bool // file indexes are looked at
	// foldRows are the rows of all splits of folded versions.
	foldRows int64
}

func newReadPlan(p *planner) (*readPlan, error) {
	r := &readPlan{t: p.t, st: p.state, at: p.scan.At, filter: p.filter, keyed: p.primaryKey(), keyCols: p.keyCols, codec: p.codec, kinds: p.scan.KeepDeletes, without: p.scan.Without}
	r.indexes = p.scan.readsIndexes(p.options)
	r.columns = p.scan.Columns
	if r.columns == nil {
		r.columns = make([]int, len(p.schema.Fields))
		for i := range r.columns {
			r.columns[i] = i
		}
	}
	for c, paths := range nestedOf(&p.scan, r.columns) {
		if t := p.schema.Fields[c].Type; t.Kind == types.Row && !slices.Contains(p.keyCols, c) {
			if r.pruned == nil {
				r.pruned = map[int]types.Type{}
			}
			r.pruned[c] = pruneType(t, paths)
		}
	}
	for _, c := range r.columns {
		f, err := fieldOf(p.schema, c)
		if err != nil {
			return nil, err
		}
		r.fields = append(r.fields, f)
		r.kinds = r.kinds || c == PseudoKind
		r.tracked = r.tracked || c == PseudoRowID || c == PseudoVersion
	}
	if r.tracked && !p.tracksRows() {
		return nil, fmt.Errorf("scan asks for row ids of a table without them")
	}
	r.keyPart = predicate.Only(p.filter, func(c int) bool { return slices.Contains(p.keyCols, c) || p.partIndex(c) >= 0 })
	if r.keyed {
		var err error
		if p.scan.prunes(PruneStats) {
			r.keyFrom, r.keyTo = keyRange(p.filter, p.keyCols, p.schema.Fields)
		}
		if r.seqCols, err = columnsOf(p.schema, p.options.List("sequence.field")); err != nil {
			return nil, err
		}
		r.seqDesc = p.options.Enum("sequence.field.sort-order", "ascending") == "descending"
		r.snapshot = p.options.Flag("sequence.snapshot-ordering", false)
	}
	return r, nil
}

// fieldOf returns the field of a scan column.
func fieldOf(s *schema.Table, c int) (types.Field, error) {
	switch {
	case c == PseudoFile:
		return types.Field{ID: -1, Name: "_FILE", Type: types.Of(types.Text)}, nil
	case c == PseudoPos:
		return types.Field{ID: -1, Name: "_POS", Type: types.Of(types.Int8)}, nil
	case c == PseudoKind:
		return types.Field{ID: -1, Name: "_KIND", Type: types.Of(types.Int2)}, nil
	case c == PseudoSequence:
		return types.Field{ID: -1, Name: "_SEQ", Type: types.Of(types.Int8)}, nil
	case c == PseudoBucket:
		return types.Field{ID: -1, Name: "__paimon_bucket", Type: types.Of(types.Int4)}, nil
	case c == PseudoRowID:
		return types.Field{ID: -1, Name: rowIDName, Type: types.Of(types.Int8)}, nil
	case c == PseudoVersion:
		return types.Field{ID: -1, Name: rowSequenceName, Type: types.Of(types.Int8)}, nil
	case c < 0 || c >= len(s.Fields):
		return types.Field{}, fmt.Errorf("scan asks for column %d of %d", c, len(s.Fields))
	}
	return s.Fields[c], nil
}

// tableCols returns the table columns that reading touches.
func (r *readPlan) tableCols() []int {
	var out []int
	for _, c := range slices.Concat(r.columns, r.keyCols, r.seqCols) {
		if c >= 0 && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// openFile is a data file being read.
type openFile struct {
	*cachedReader
	plan   *readPlan
	meta   File
	evo    *schema.Evolution
	offset int    // of the table's columns among the physical ones
	ids    int    // of _ROW_ID among the physical columns, before _SEQUENCE_NUMBER; 0 = not opened with them
	path   string // relative to the warehouse, or an external path
	name   string // relative to the table
	dv     *dv.Vector
	live   *mergetree.RowSet // what dv leaves; nil = all
	// some are the rows that deletions, a verdict and indexes leave; nil = indexes say
	// nothing.
	some     *mergetree.RowSet
	bucket   int32
	counters *format.Counters // told how many pages were decoded; nil = nobody asks
	// without counts pages that are not read because some has no row of them.
	without func(pages int64)
	pruned  map[int]types.Type // ROW columns of which only some members are read
}

// bucketOf reads the bucket's number off its directory.
func bucketOf(dir string) int32 {
	n := dir[strings.LastIndexByte(dir, '/')+1:]
	if n == "bucket-postpone" {
		return -2
	}
	b, _ := strconv.ParseInt(strings.TrimPrefix(n, "bucket-"), 10, 32)
	return int32(b)
}

// open opens a data file with its schema and deletion vector.
func (r *readPlan) open(ctx context.Context, dir string, f *File) (*openFile, error) {
	m := f.Meta
	path := dir + "/" + m.Name
	if m.ExternalPath != "" {
		path = m.ExternalPath
	}
	fs := r.st.schema
	if m.SchemaID != fs.ID {
		var err error
		if fs, err = r.t.schemaOf(ctx, r.st.branch, m.SchemaID); err != nil {
			return nil, err
		}
	}
	o := &openFile{plan: r, meta: *f, path: path, evo: r.t.evolutions.Get(fs, r.st.schema), name: strings.TrimPrefix(path, r.t.dir+"/"), bucket: bucketOf(dir)}
	phys := fs.Fields
	if fs.ID == r.st.schema.ID && len(r.pruned) > 0 {
		// A file of another schema is read whole: its members are matched by id.
		phys = slices.Clone(phys)
		for c, t := range r.pruned {
			phys[c].Type = t
		}
		o.pruned = r.pruned
	}
	if r.keyed {
		phys = append(types.Schema{sequenceField, kindField}, phys...)
		o.offset = 2
	}
	as := ""
	if r.tracked {
		o.ids = len(phys)
		phys = append(phys[:len(phys):len(phys)], rowIDField, rowSequenceField)
		as = "\x00ids"
	}
	ft, err := r.t.env.formatOf(m.Name)
	if err != nil {
		return nil, err
	}
	o.cachedReader, err = r.t.env.readers.get(fmt.Sprintf("%s\x00%d%s%s", path, m.SchemaID, signature(o.pruned), as), func() (format.Reader, error) {
		file, err := r.t.env.openData(ctx, path)
		if errors.Is(err, fileio.ErrNotExist) {
			return nil, &fileio.MissingError{Path: path, Err: err}
		}
		if err != nil {
			return nil, err
		}
		rd, err := ft.Open(ctx, file, phys)
		if err != nil {
			_ = file.Close()
			return nil, err
		}
		if rd.Rows() != m.Rows {
			_ = rd.Close()
			return nil, &fileio.CorruptionError{Path: path, Offset: -1, Reason: fmt.Sprintf("file holds %d rows, its manifest says %d", rd.Rows(), m.Rows)}
		}
		return rd, nil
	})
	if err != nil {
		return nil, err
	}
	if f.DV != nil && f.only == nil {
		if o.dv, err = r.t.env.vector(ctx, f.DV); err != nil {
			r.close(o)
			return nil, err
		}
		if o.dv.Cardinality() > 0 {
			o.live = r.t.env.alive(f.DV, o.dv, m.Rows)
		}
	}
	return o, nil
}

func (r *readPlan) close(o *openFile) { r.t.env.readers.put(o.cachedReader) }

// left are the rows that deletions, a verdict and indexes leave; nil = all.
func (o *openFile) left() *mergetree.RowSet {
	if o.some != nil {
		return o.some
	}
	return o.standing()
}

// standing are the rows that are not deleted, nor left out by a verdict; nil = all.
func (o *openFile) standing() *mergetree.RowSet {
	if o.meta.only != nil {
		return o.meta.only
	}
	return o.live
}

// spanGap is how many rows without a candidate lie at least between two row ranges of a
// file: fewer are passed over more cheaply than a range is begun.
const spanGap = 1 << 16

// narrow leaves only what indexes leave: rows are the candidates.
func (o *openFile) narrow(rows *roaring.Bitmap, ranges []format.RowRange, c *format.Counters) []format.RowRange {
	total := o.Rows()
	words := make([]uint64, max(int(rows.DenseSize()), int((total+63)/64))+1)
	rows.WriteDenseTo(words)
	o.some = mergetree.RowsOf(words, total, o.standing())
	var out []format.RowRange
	for _, r := range ranges {
		at := r.From
		skip := func(to int64) {
			c.Rows += to - at
			c.RowsSkipped += to - at
		}
		o.some.Spans(r.From, r.To, spanGap, func(from, to int64) {
			skip(from)
			at = to
			out = append(out, format.RowRange{From: from, To: to})
		})
		skip(r.To)
		all := r.To - r.From
		if s := o.standing(); s != nil {
			all = s.CountIn(r.From, r.To)
		}
		c.IndexRows += all - o.some.CountIn(r.From, r.To)
	}
	return out
}

// physical returns the physical columns that the scan needs of a file.
func (r *readPlan) physical(o *openFile) []int {
	var out []int
	for _, c := range r.tableCols() {
		if src, _ := o.evo.Source(c); src >= 0 {
			out = append(out, src+o.offset)
		}
	}
	return out
}

// ranges returns the rows of [r.From, r.To) that may pass n, by what the file
// knows of its pages and row groups.
func (o *openFile) ranges(ctx context.Context, r format.RowRange, n predicate.Node, c *format.Counters) ([]format.RowRange, error) {
	if n == nil || o.plan.without&PrunePages != 0 {
		return []format.RowRange{r}, nil
	}
	n = o.evo.Predicate(n, func(src int) int { return src + o.offset })
	if n == nil {
		return []format.RowRange{r}, nil
	}
	// Prune looks at the whole file, which several splits may share: its row
	// groups and pages are counted by the one that has the first row, skipped rows by
	// each for its own. Rows that are read are counted where they are.
	var whole format.Counters
	rs, err := o.Prune(ctx, n, &whole)
	if err != nil {
		return nil, err
	}
	var out []format.RowRange
	kept := int64(0)
	for _, x := range rs {
		x.From, x.To = max(x.From, r.From), min(x.To, r.To)
		if x.From < x.To {
			out = append(out, x)
			kept += x.To - x.From
		}
	}
	if c != nil {
		if r.From == 0 {
			c.RowGroups += whole.RowGroups
			c.RowGroupsSkipped += whole.RowGroupsSkipped
			c.Pages += whole.Pages
			c.PagesSkipped += whole.PagesSkipped
		}
		c.Rows += r.To - r.From - kept
		c.RowsSkipped += r.To - r.From - kept
	}
	return out, nil
}

// fileColumns reads scan columns of one row range of a file: physical ones
// through the format, cast to the table's types, the others made up.
type fileColumns struct {
	o    *openFile
	cols []int
	from []int               // index into the physical columns read, -1 = made up
	rd   format.ColumnReader // nil when no physical column is needed
	pos  int64
	told int64 // pages decoded that have been told
}

// columns opens the reader of cols over r.
func (o *openFile) columns(ctx context.Context, r format.RowRange, cols []int) (*fileColumns, error) {
	fc := &fileColumns{o: o, cols: cols, from: make([]int, len(cols)), pos: r.From}
	var want []int
	for i, c := range cols {
		phys := -1
		switch {
		case c >= 0:
			src, err := o.evo.Source(c)
			if err != nil {
				return nil, &fileio.UnsupportedError{Feature: err.Error()}
			}
			if src >= 0 {
				phys = src + o.offset
			}
		case c == PseudoSequence && o.plan.keyed && !o.stamped():
			phys = 0
		case c == PseudoKind && o.plan.keyed:
			phys = 1
		case c == PseudoRowID:
			phys = o.ids
		case c == PseudoVersion:
			phys = o.ids + 1
		}
		fc.from[i] = -1
		if phys >= 0 {
			if fc.from[i] = slices.Index(want, phys); fc.from[i] < 0 {
				fc.from[i] = len(want)
				want = append(want, phys)
			}
		}
	}
	if len(want) > 0 {
		var err error
		if fc.rd, err = o.Columns(ctx, r, want); err != nil {
			return nil, err
		}
		if x, ok := fc.rd.(format.Expecter); ok && o.some != nil {
			x.Expect(o.some.Some, o.without)
		}
	}
	return fc, nil
}

// late says that the rows which are wanted become known as they are read.
func (fc *fileColumns) late() {
	if x, ok := fc.rd.(format.Expecter); ok {
		x.Late()
	}
}

// stamped reports whether all rows of the file have the snapshot's id as their
// sequence number, which its commit put into the manifest: files of writers under
// sequence.snapshot-ordering. Those of compactions hold the ids, row by row.
// Source: KeyValueFileReaderFactory.java.
func (o *openFile) stamped() bool { return o.plan.snapshot && o.meta.Meta.Source != 1 }

// Read is format.ColumnReader's, for scan columns.
func (fc *fileColumns) Read(ctx context.Context, n int, keep []uint16) ([]arrow.Array, error) {
	rows := n
	if keep != nil {
		rows = len(keep)
	}
	var phys []arrow.Array
	if fc.rd != nil {
		var err error
		if phys, err = fc.rd.Read(ctx, n, keep); err != nil {
			return nil, err
		}
	}
	out := make([]arrow.Array, len(fc.cols))
	for i, c := range fc.cols {
		switch {
		case fc.from[i] < 0:
			out[i] = fc.madeUp(c, rows, keep)
		case c == PseudoRowID:
			out[i] = fc.rowIDs(phys[fc.from[i]], rows, keep)
		case c == PseudoVersion:
			out[i] = fc.versions(phys[fc.from[i]], rows)
		case c < 0:
			out[i] = phys[fc.from[i]]
		default:
			var err error
			if out[i], err = fc.o.evo.Convert(c, phys[fc.from[i]]); err != nil {
				return nil, &fileio.CorruptionError{Path: fc.o.path, Offset: -1, Reason: "a value cannot be read as the column's present type", Err: err}
			}
			if t, ok := fc.o.pruned[c]; ok {
				out[i] = widen(out[i], t, fc.o.plan.st.schema.Fields[c].Type)
			}
		}
	}
	fc.pos += int64(n)
	return out, nil
}

// madeUp makes columns that the file does not hold.
func (fc *fileColumns) madeUp(c, rows int, keep []uint16) arrow.Array {
	switch c {
	case PseudoFile:
		data := []byte(strings.Repeat(fc.o.name, rows))
		off := make([]int32, rows+1)
		for i := range off {
			off[i] = int32(i * len(fc.o.name))
		}
		return vec.MakeBytes(arrow.BinaryTypes.String, off, data, nil)
	case PseudoPos, PseudoSequence:
		base, stamped := fc.pos, c == PseudoSequence && fc.o.stamped()
		if c == PseudoSequence {
			base += fc.o.meta.Meta.MinSequence
		}
		v := make([]int64, rows)
		for i := range v {
			switch {
			case stamped:
				v[i] = fc.o.meta.Meta.MinSequence
			case keep != nil:
				v[i] = base + int64(keep[i])
			default:
				v[i] = base + int64(i)
			}
		}
		return vec.Make(arrow.PrimitiveTypes.Int64, v, nil)
	case PseudoKind:
		return vec.Make(arrow.PrimitiveTypes.Int16, make([]int16, rows), nil)
	case PseudoBucket:
		v := make([]int32, rows)
		for i := range v {
			v[i] = fc.o.bucket
		}
		return vec.Make(arrow.PrimitiveTypes.Int32, v, nil)
	}
	return vec.MakeNull(fc.o.plan.st.schema.Fields[c].Type.Arrow(), rows)
}

// Close releases the reader.
func (fc *fileColumns) Close() error {
	if fc.rd == nil {
		return nil
	}
	if p, ok := fc.rd.(format.PageCounter); ok && fc.o.counters != nil {
		fc.o.counters.PagesDecoded += p.PagesDecoded() - fc.told
		fc.told = p.PagesDecoded()
	}
	return fc.rd.Close()
}
