package table

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/datafile"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// Writing goes
//
//	batch -> NOT NULL, row kinds, ignored retractions -> partition and bucket ->
//	  append table, few buckets: into the bucket's open file
//	  append table, many buckets: buffer -> per bucket: a file
//	  key table: buffer -> per bucket: sort by key, keep the last version -> a
//	    level-0 file
//
// The buffer keeps batches as they came, for all buckets together, and notes per
// row which bucket it belongs to: a row is copied once, when it is gathered into
// its file. When memory is short the biggest buckets are written, at least half
// of what is buffered, and the rest moves together.

// tableWriter is the Writer of a FileStore.
type tableWriter struct {
	t      *FileStore
	st     *state
	o      WriteOptions
	keyed  bool
	format format.Format
	want   []arrow.DataType // of each column
	r      *router

	kindCol            int // rowkind.field, -1 = none
	ignoreDelete       bool
	ignoreUpdateBefore bool
	inputLog           bool // changelog-producer = input
	logOnly            bool // rows marked LogOnly were given

	// engine folds keys of several rows; nil = the newest wins.
	engine func(columns []int) (mergetree.Engine, error)

	cross *crossBuckets

	keyCols  []int
	codec    *mergetree.KeyCodec
	seqCols  []int // sequence.field
	seqTypes []types.Type
	seqDesc  bool

	limit   int64 // of the buffer, bytes
	buf     buffer
	targets []*targetState // by number in r.targets
	spill   bool           // an append table with many buckets: buffer
	old     *restored
	deleted map[string]*deletion // by path relative to the table
	byPath  map[string]*live
	// rewritten and indexes are further files that were written, by their paths.
	rewritten, indexes []string

	closed bool
	// broken is why a flush failed: some rows are in files and in the buffer, so
	// all that is left is Abort.
	broken error
}

// targetState is what was written to one bucket.
type targetState struct {
	next    int64           // sequence number of the next row
	kept    datafile.Writer // of rows that keep their ids; see writeKept
	open    datafile.Writer
	opened  int64 // rows given to open
	entries []manifest.Entry
	log     []manifest.Entry // changelog files
}

// maxOpenWriters is how many files of an append table are open at the same time,
// as Java's write-max-writers-to-spill.
const maxOpenWriters = 10

// maxBuffer bounds the buffer, so that a column of one bucket's rows fits an
// array.
const maxBuffer = 1 << 30

// Write opens a writer. A table of a kind that is not written yet is an
// *fileio.UnsupportedError.
func (t *FileStore) Write(ctx context.Context, o WriteOptions) (Writer, error) {
	st, err := t.state(ctx, o.At, o.Options)
	if err != nil {
		return nil, err
	}
	return t.newWriter(st, o)
}

func (t *FileStore) newWriter(st *state, o WriteOptions) (*tableWriter, error) {
	if err := st.refuseWrite(); err != nil {
		return nil, err
	}
	w := &tableWriter{t: t, st: st, o: o, keyed: st.primaryKey(), kindCol: -1, deleted: map[string]*deletion{}}
	var err error
	if w.format, err = t.env.writeFormat(); err != nil {
		return nil, err
	}
	if w.r, err = newRouter(st); err != nil {
		return nil, err
	}
	if w.r.rule.dynamic {
		if w.r.dyn, err = t.newDynamicBuckets(st, o); err != nil {
			return nil, err
		}
	}
	for _, f := range st.schema.Fields {
		w.want = append(w.want, f.Type.Arrow())
	}
	if w.limit, err = st.options.Size("write-buffer-size", 256<<20); err != nil {
		return nil, err
	}
	w.limit = min(max(w.limit, 1), maxBuffer)
	if !w.keyed {
		return w, nil
	}
	if w.keyCols, err = columnsOf(st.schema, st.schema.TrimmedKey()); err != nil {
		return nil, err
	}
	var kts []types.Type
	for _, c := range w.keyCols {
		kts = append(kts, st.schema.Fields[c].Type)
	}
	w.codec = mergetree.NewKeyCodec(kts)
	if w.seqCols, err = columnsOf(st.schema, st.options.List("sequence.field")); err != nil {
		return nil, err
	}
	for _, c := range w.seqCols {
		w.seqTypes = append(w.seqTypes, st.schema.Fields[c].Type)
	}
	w.seqDesc = st.options.Enum("sequence.field.sort-order", "ascending") == "descending"
	if name := st.options.String("rowkind.field", ""); name != "" {
		if w.kindCol = st.schema.Fields.Index(name); w.kindCol < 0 {
			return nil, fmt.Errorf("option \"rowkind.field\" names %q, which is no column", name)
		}
		if !st.schema.Fields[w.kindCol].Type.IsTextLike() {
			return nil, fmt.Errorf("option \"rowkind.field\" names %q, which is not text", name)
		}
	}
	w.inputLog = st.options.Enum("changelog-producer", "none") == "input" && !o.Overwrite
	if w.engine = st.engine(); st.mergeEngine() == "first-row" {
		w.engine = st.newEngine
	}
	w.ignoreDelete = st.ignoreDelete()
	w.ignoreUpdateBefore, err = st.options.Bool("ignore-update-before", false)
	return w, err
}

var errWriterClosed = errors.New("table writer is closed")

func (w *tableWriter) usable() error {
	if w.closed {
		return errWriterClosed
	}
	return w.broken
}

// Write appends rows. See Writer.
func (w *tableWriter) Write(ctx context.Context, b *vec.Batch, kinds []uint8) error {
	if err := w.usable(); err != nil {
		return err
	}
	b = vec.Compact(b)
	if b.N == 0 {
		return nil
	}
	if w.st.tracksRows() && len(b.Cols) == len(w.st.schema.Fields)+1 {
		return w.writeTracked(ctx, b, kinds)
	}
	if err := w.check(b, kinds); err != nil {
		return err
	}
	cols, n, kinds, err := w.kinds(b.Cols, b.N, kinds)
	if err != nil || n == 0 {
		return err
	}
	var dest []uint32
	var one uint32
	if w.r.rule.cross {
		if w.cross == nil {
			if w.cross, err = w.newCross(ctx); err != nil {
				return err
			}
		}
		if cols, n, kinds, dest, one, err = w.cross.route(cols, n, kinds); n == 0 {
			return err
		}
	} else {
		if w.r.rule.postpone && w.r.counts == nil {
			if err := w.restore(ctx); err != nil {
				return err
			}
			w.r.counts = w.old.total
		}
		dest, one, err = w.r.route(ctx, w.t.dir, cols, n)
	}
	if err != nil {
		return err
	}
	if err := w.meet(ctx); err != nil {
		return err
	}
	if !w.keyed {
		if !w.spill {
			open := 0
			for _, t := range w.targets {
				if t.open != nil {
					open++
				}
			}
			w.spill = dest != nil && len(w.targets) > maxOpenWriters || open >= maxOpenWriters && w.targets[one].open == nil
		}
		if !w.spill {
			return w.writeOpen(ctx, cols, n, dest, one)
		}
	}
	return w.buffer(ctx, cols, n, kinds, dest, one)
}

// check looks at the arrays' types and at NULLs.
func (w *tableWriter) check(b *vec.Batch, kinds []uint8) error {
	fields := w.st.schema.Fields
	if len(b.Cols) != len(fields) {
		return fmt.Errorf("a batch of %d columns is written to a table of %d", len(b.Cols), len(fields))
	}
	if kinds != nil && len(kinds) != b.N {
		return fmt.Errorf("%d rows are written with %d kinds", b.N, len(kinds))
	}
	for i, c := range b.Cols {
		dt := c.DataType()
		if dt != w.want[i] && !arrow.TypeEqual(vec.Plain(dt), w.want[i]) {
			return fmt.Errorf("column %s is written as %s, not %s", fields[i].Name, dt, w.want[i])
		}
		if fields[i].Type.NotNull && c.NullN() > 0 {
			return &NullError{Column: fields[i].Name}
		}
	}
	return nil
}

// kinds finds the rows' kinds and leaves out those that the table ignores. A
// result of nil stands for +I.
func (w *tableWriter) kinds(cols []arrow.Array, n int, kinds []uint8) ([]arrow.Array, int, []uint8, error) {
	if !w.keyed {
		for _, k := range kinds {
			if k&1 != 0 {
				return nil, 0, nil, fmt.Errorf("a retraction is written to append table %s", w.t.dir)
			}
		}
		return cols, n, nil, nil
	}
	var marked bool // rows that are only for the changelog
	for _, k := range kinds {
		marked = marked || k&LogOnly != 0
	}
	given := kinds
	if w.kindCol >= 0 {
		var err error
		if kinds, err = kindsOf(cols[w.kindCol], n); err != nil {
			return nil, 0, nil, err
		}
	}
	noLog := marked && (!w.inputLog || w.kindCol >= 0)
	w.logOnly = w.logOnly || marked && !noLog
	if kinds == nil || !w.ignoreDelete && !w.ignoreUpdateBefore && !noLog {
		return cols, n, kinds, nil
	}
	keep := make([]uint32, 0, n)
	for i, k := range kinds {
		if noLog && given[i]&LogOnly != 0 {
			continue
		}
		if k&1 == 0 || !w.ignoreDelete && (k == 3 || !w.ignoreUpdateBefore) {
			keep = append(keep, uint32(i))
		}
	}
	if len(keep) == n {
		return cols, n, kinds, nil
	}
	out, ks := make([]arrow.Array, len(cols)), make([]uint8, len(keep))
	for i, c := range cols {
		out[i] = vec.Take(c, keep)
	}
	for i, r := range keep {
		ks[i] = kinds[r]
	}
	return out, len(keep), ks, nil
}

// kindsOf reads row kinds from the column that rowkind.field names.
func kindsOf(a arrow.Array, n int) ([]uint8, error) {
	if a.NullN() > 0 {
		return nil, fmt.Errorf("row kind is NULL")
	}
	s := vec.ViewStr(vec.Decode(a))
	out := make([]uint8, n)
	for i := range out {
		switch string(s.At(i)) {
		case "+I":
		case "-U":
			out[i] = 1
		case "+U":
			out[i] = 2
		case "-D":
			out[i] = 3
		default:
			return nil, fmt.Errorf("row kind %q is not one of +I, -U, +U, -D", s.At(i))
		}
	}
	return out, nil
}

// meet starts the buckets that rows of a batch were the first of.
func (w *tableWriter) meet(ctx context.Context) error {
	for len(w.targets) < len(w.r.targets) {
		b := w.r.targets[len(w.targets)]
		s := &targetState{}
		if w.r.rule.n > 0 || w.keyed {
			if err := w.restore(ctx); err != nil {
				return err
			}
			if err := w.checkBuckets(b.part); err != nil {
				return err
			}
			s.next = w.old.next(b.part.image, b.bucket)
		}
		w.targets = append(w.targets, s)
		w.buf.meet()
	}
	return nil
}

// restore finds what the writer goes on from.
func (w *tableWriter) restore(ctx context.Context) error {
	if w.old != nil {
		return nil
	}
	old, err := w.t.restore(ctx, w.st)
	if err == nil {
		w.old = old.with(w.o.Overlay)
	}
	return err
}

// checkBuckets refuses to write to a partition whose files have another number
// of buckets: a key could be in two places.
func (w *tableWriter) checkBuckets(p *target) error {
	if p.checked || w.o.Overwrite || w.r.rule.n <= 0 {
		return nil
	}
	p.checked = true
	if have, ok := w.old.total[string(p.image)]; ok && have != w.r.rule.n {
		return &BucketCountError{Dir: w.t.dir, Partition: trimSlash(p.path), Want: w.r.rule.n, Have: have}
	}
	return nil
}

func trimSlash(s string) string {
	if s != "" && s[len(s)-1] == '/' {
		return s[:len(s)-1]
	}
	return s
}

// newFile opens a data file writer of a bucket.
func (w *tableWriter) newFile(n uint32, first int64, charged bool) (datafile.Writer, error) {
	o := datafile.Options{
		IO: w.t.env.IO, Dir: w.r.targets[n].dir, Format: w.format, Schema: w.st.schema, Table: w.st.options, FirstSequence: first,
	}
	if charged {
		o.Account = w.o.Account
	}
	if w.r.targets[n].bucket == postponeBucket {
		o.Prefix = w.st.postponePrefix()
		o.NoIndexes = true // only the compaction that gives its rows their buckets reads it
	}
	return datafile.New(o)
}

// writeOpen appends rows of an append table to the open files of their buckets.
func (w *tableWriter) writeOpen(ctx context.Context, cols []arrow.Array, n int, dest []uint32, one uint32) error {
	return w.byTarget(cols, n, dest, one, func(d uint32, cols []arrow.Array, n int) error { return w.appendTo(ctx, d, cols, n) })
}

// byTarget hands rows to write, those of each target together: dest says which is whose,
// nil = all are of the target one.
func (w *tableWriter) byTarget(cols []arrow.Array, n int, dest []uint32, one uint32, write func(d uint32, cols []arrow.Array, n int) error) error {
	if dest == nil {
		return write(one, cols, n)
	}
	rows := make([][]uint32, len(w.targets))
	for i, d := range dest {
		rows[d] = append(rows[d], uint32(i))
	}
	for d, idx := range rows {
		if len(idx) == 0 {
			continue
		}
		part := make([]arrow.Array, len(cols))
		for i, c := range cols {
			part[i] = vec.Take(c, idx)
		}
		if err := write(uint32(d), part, len(idx)); err != nil {
			return err
		}
	}
	return nil
}

func (w *tableWriter) appendTo(ctx context.Context, d uint32, cols []arrow.Array, n int) error {
	t := w.targets[d]
	if t.open == nil {
		var err error
		if t.open, err = w.newFile(d, t.next, true); err != nil {
			return err
		}
	}
	t.next += int64(n)
	t.opened += int64(n)
	if err := t.open.Write(ctx, cols, n, nil, nil); err != nil {
		w.broken = err
		return err
	}
	return nil
}

// Buffered returns what is not in files yet.
func (w *tableWriter) Buffered() (bytes, rows int64) {
	bytes, rows = w.buf.bytes, w.buf.rows
	for _, t := range w.targets {
		if t.open != nil {
			bytes, rows = bytes+t.open.Written(), rows+t.opened
		}
		if t.kept != nil {
			bytes += t.kept.Written()
		}
	}
	return bytes, rows
}

// Prepare flushes and returns what was written. See Writer.
func (w *tableWriter) Prepare(ctx context.Context) (commit.Changes, error) {
	if err := w.usable(); err != nil {
		return commit.Changes{}, err
	}
	c := commit.Changes{Kind: commit.Append, Branch: w.st.branch.name}
	if w.st.snap != nil {
		c.Base = w.st.snap.ID
	}
	if err := w.flush(ctx, true); err != nil {
		return c, err
	}
	for n, t := range w.targets {
		if t.open != nil {
			if err := w.closeFile(ctx, uint32(n), t.open); err != nil {
				return c, err
			}
			t.open = nil
		}
		if err := w.closeKept(ctx, uint32(n)); err != nil {
			return c, err
		}
	}
	if len(w.deleted) > 0 {
		if err := w.applyDeletes(ctx, &c); err != nil {
			w.broken = err
			return c, err
		}
	}
	for _, t := range w.targets {
		c.Files = append(c.Files, t.entries...)
		c.Changelog = append(c.Changelog, t.log...)
	}
	if w.r.dyn != nil {
		c.Hashes = w.r.dyn.changes()
	}
	if w.cross != nil {
		w.cross.close()
		if err := w.cross.prepared(&c); err != nil {
			w.broken = err
			return c, err
		}
	}
	w.closed = true
	return c, nil
}

// closeFile ends a data file writer and notes its files.
func (w *tableWriter) closeFile(ctx context.Context, n uint32, f datafile.Writer) error {
	files, err := f.Close(ctx)
	if err != nil {
		_ = f.Abort(ctx) // the error says why
		w.broken = err
		return err
	}
	w.note(n, files)
	return nil
}

func (w *tableWriter) note(n uint32, files []*manifest.DataFile) {
	b, t := w.r.targets[n], w.targets[n]
	for _, f := range files {
		t.entries = append(t.entries, manifest.Entry{Kind: manifest.Add, Partition: b.part.image, Bucket: b.bucket, TotalBuckets: w.r.totalBuckets(b), File: f})
	}
}

// Abort deletes every file written.
func (w *tableWriter) Abort(ctx context.Context) error {
	w.closed = true
	w.buf.drop(w.o.Account)
	if w.r.dyn != nil {
		w.t.forgetHashes(w.st.branch, w.r.dyn.changes())
	}
	if w.cross != nil {
		w.cross.close()
	}
	var errs []error
	var names []string
	for n, t := range w.targets {
		if t.open != nil {
			errs = append(errs, t.open.Abort(ctx))
			t.open = nil
		}
		if t.kept != nil {
			errs = append(errs, t.kept.Abort(ctx))
			t.kept = nil
		}
		for _, list := range [][]manifest.Entry{t.entries, t.log} {
			for _, e := range list {
				if e.Kind == manifest.Add {
					names = append(names, dataPaths(trimSlash(w.r.targets[n].dir), e.File)...)
				}
			}
		}
		t.entries, t.log = nil, nil
	}
	names = append(append(names, w.rewritten...), w.indexes...)
	if len(names) > 0 {
		errs = append(errs, w.t.env.IO.Delete(ctx, names...))
	}
	return errors.Join(errs...)
}

// Delete notes rows to be removed. See Writer.
func (w *tableWriter) Delete(ctx context.Context, file string, rows []int64) error {
	if err := w.usable(); err != nil {
		return err
	}
	if w.keyed {
		return &fileio.UnsupportedError{Feature: "deleting rows of a primary-key table by position"}
	}
	return w.delete(ctx, file, rows)
}
