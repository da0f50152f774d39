package datafile

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/google/uuid"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/fileindex"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// Physical columns of a primary-key table's files, before the table's own:
//
//	_KEY_<k> for each column of the trimmed key (not in thin mode)
//	_SEQUENCE_NUMBER | _VALUE_KIND
//
// Source: KeyValue.schema, SpecialFields.java.
const keyFieldIDs = 1073741823

var (
	sequenceField = types.Field{ID: 2147483646, Name: "_SEQUENCE_NUMBER", Type: types.Of(types.Int8).WithNotNull(true)}
	kindField     = types.Field{ID: 2147483645, Name: "_VALUE_KIND", Type: types.Of(types.TinyInt).WithNotNull(true)}
	// Of rows that keep their ids, behind the table's columns.
	rowIDField       = types.Field{ID: 2147483642, Name: "_ROW_ID", Type: types.Of(types.Int8).WithNotNull(true)}
	rowSequenceField = types.Field{ID: 2147483646, Name: "_SEQUENCE_NUMBER", Type: types.Of(types.Int8)}
)

// stepRows is after how many rows the size of the open file is looked at.
const stepRows = 16 << 10

// writer is the Writer of every kind of table.
type writer struct {
	o     Options
	wo    format.WriteOptions
	keyed bool
	// tracked: the commit gives new rows ids and sequence numbers, and takes a number of
	// 0 for the wish that it does.
	tracked bool
	thin    bool
	phys    types.Schema
	key     []int // the trimmed key's columns
	kts     []types.Type
	modes   []mode // per table column
	dense   bool
	roll    int64
	ext     string
	uuid    string
	names   int
	seq     int64             // of the next row of an append table
	index   *fileindex.Config // nil = no indexes

	cur     *open
	done    []*manifest.DataFile
	written int64 // bytes of finished files
	charged int64 // of what the format holds of the open file
	indexed int64 // charged, of what its indexes hold
	closed  bool
}

// open is the file being written.
type open struct {
	name      string
	io        fileio.Writer
	out       *counter
	w         format.Writer
	index     *fileindex.Writer // nil = none
	rows      int64
	deletes   int64
	seqLo     int64
	seqHi     int64
	unset     bool // some rows have no sequence number yet
	minKey    []byte
	lastKey   []arrow.Array // key columns of the last batch, and the last row in it
	lastKeyAt int
}

// counter counts what goes to the file and joins small pieces: a small file is
// one write.
type counter struct {
	b *bufio.Writer
	n int64
}

var buffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 64<<10) }}

func newCounter(w io.Writer) *counter {
	c := &counter{b: buffers.Get().(*bufio.Writer)}
	c.b.Reset(w)
	return c
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.b.Write(b)
	c.n += int64(n)
	return n, err
}

// close flushes and gives the buffer back.
func (c *counter) close() error {
	err := c.b.Flush()
	c.b.Reset(nil)
	buffers.Put(c.b)
	c.b = nil
	return err
}

// flusher is a format's writer that can give up what it has buffered: what it
// has is written to the file, at the cost of a smaller row group.
type flusher interface {
	Buffered() int64
	Flush() error
}

// New returns a Writer. No file is made before the first row. What the options
// ask for and is not supported is an *fileio.UnsupportedError.
func New(o Options) (Writer, error) {
	t := o.Table
	w := &writer{o: o, keyed: len(o.Schema.PrimaryKeys) > 0, uuid: uuid.NewString(), seq: o.FirstSequence, roll: o.RollBytes}
	var err error
	if w.thin, err = t.Bool("data-file.thin-mode", false); err != nil {
		return nil, err
	}
	w.tracked = !w.keyed && t.Flag("row-tracking.enabled", false)
	if o.RowIDs && !w.tracked {
		return nil, fmt.Errorf("row ids are written to a table without them")
	}
	if w.dense, err = t.Bool("metadata.stats-dense-store", true); err != nil {
		return nil, err
	}
	if w.roll <= 0 {
		def := int64(256 << 20)
		if w.keyed {
			def = 128 << 20
		}
		if w.roll, err = t.Size("target-file-size", def); err != nil {
			return nil, err
		}
	}
	if w.wo, err = writeOptions(t, o.Level); err != nil {
		return nil, err
	}
	if o.Prefix == "" {
		w.o.Prefix = t.String("data-file.prefix", "data-")
	}
	if w.ext, err = extension(t, o.Format.Name(), w.wo.Compression); err != nil {
		return nil, err
	}
	if err := w.layout(); err != nil {
		return nil, err
	}
	if !o.NoIndexes {
		if w.index, err = fileindex.Parse(t, o.Schema.Fields); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *writer) layout() error {
	s := w.o.Schema
	var trimmed []string
	if w.keyed {
		trimmed = s.TrimmedKey()
		for _, k := range trimmed {
			c := s.Fields.Index(k)
			if c < 0 {
				return fmt.Errorf("schema %d has no column %q", s.ID, k)
			}
			f := s.Fields[c]
			w.key = append(w.key, c)
			w.kts = append(w.kts, f.Type)
			if !w.thin {
				w.phys = append(w.phys, types.Field{ID: keyFieldIDs + f.ID, Name: "_KEY_" + f.Name, Type: f.Type})
			}
		}
		w.phys = append(w.phys, sequenceField, kindField)
	}
	if w.keyed && !w.thin {
		// A column of the key is there twice.
		w.wo.CopyOf = make([]int, len(w.phys)+len(s.Fields))
		for i := range w.wo.CopyOf {
			w.wo.CopyOf[i] = -1
		}
		for i, c := range w.key {
			w.wo.CopyOf[len(w.phys)+c] = i
		}
	}
	w.phys = append(w.phys, s.Fields...)
	if w.o.RowIDs {
		w.phys = append(w.phys, rowIDField, rowSequenceField)
	}
	if !w.thin {
		trimmed = nil
	}
	var err error
	w.modes, err = statsModes(s.Fields, trimmed, w.o.Table, w.o.Level)
	return err
}

// writeOptions reads the file.* options of a level.
func writeOptions(t schema.Options, level int32) (format.WriteOptions, error) {
	wo := format.WriteOptions{Compression: t.Enum("file.compression", "zstd"), Options: t}
	per, err := perLevel(t, "file.compression.per.level", level)
	if err != nil {
		return wo, err
	}
	if per != "" {
		wo.Compression = strings.ToLower(per)
	}
	z, err := t.Int("file.compression.zstd-level", 1)
	if err != nil {
		return wo, err
	}
	wo.Level = int(z)
	wo.BlockSize, err = t.Size("file.block-size", 0)
	return wo, err
}

// compressionNames are the extensions of Hadoop's codecs; others stand for
// themselves. Source: HadoopCompressionType.java.
var compressionNames = map[string]string{
	"none": "", "gzip": "gz", "bzip2": "bz2", "deflate": "deflate", "snappy": "snappy", "lz4": "lz4", "zstd": "zst",
}

// extension is how the names of data files end.
func extension(t schema.Options, formatName, compression string) (string, error) {
	with, err := t.Bool("file.suffix.include.compression", false)
	if err != nil {
		return "", err
	}
	c, known := compressionNames[compression]
	if !known {
		c = compression
	}
	if with && c != "" {
		return "." + c + "." + formatName, nil
	}
	return "." + formatName, nil
}

// Write appends rows. See Writer.
func (w *writer) Write(ctx context.Context, cols []arrow.Array, n int, seq []int64, kinds []int8) error {
	if w.closed {
		return fmt.Errorf("data file writer is closed")
	}
	if w.keyed && (len(seq) != n || len(kinds) != n) {
		return fmt.Errorf("%d rows come with %d sequence numbers and %d kinds", n, len(seq), len(kinds))
	}
	for at := 0; at < n; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		k := min(n-at, stepRows)
		part := cols
		if k < n {
			part = make([]arrow.Array, len(cols))
			for i, c := range cols {
				part[i] = vec.Slice(c, at, at+k)
			}
		}
		var s []int64
		var kd []int8
		if w.keyed {
			s, kd = seq[at:at+k], kinds[at:at+k]
		}
		if err := w.step(ctx, part, k, s, kd); err != nil {
			return err
		}
		at += k
	}
	return nil
}

// step writes a few rows and ends the file when it is big enough.
func (w *writer) step(ctx context.Context, cols []arrow.Array, n int, seq []int64, kinds []int8) error {
	if w.cur == nil {
		if err := w.start(ctx); err != nil {
			return err
		}
	}
	f := w.cur
	all := cols
	if w.keyed {
		all = make([]arrow.Array, 0, len(w.phys))
		keys := make([]arrow.Array, len(w.key))
		for i, c := range w.key {
			keys[i] = cols[c]
		}
		if f.rows == 0 {
			img, err := binrow.NewArrowEncoder(w.kts, keys).Row(0)
			if err != nil {
				return fmt.Errorf("key of a row: %w", err)
			}
			f.minKey = append([]byte(nil), img...)
			f.seqLo, f.seqHi = seq[0], seq[0]
		}
		f.lastKey, f.lastKeyAt = keys, n-1
		kind16 := make([]int16, n)
		for i, k := range kinds {
			kind16[i] = int16(k)
			f.deletes += int64(k & 1)
		}
		for _, s := range seq {
			f.seqLo, f.seqHi = min(f.seqLo, s), max(f.seqHi, s)
		}
		if !w.thin {
			all = append(all, keys...)
		}
		all = append(all, vec.Make(arrow.PrimitiveTypes.Int64, seq, nil), vec.Make(arrow.PrimitiveTypes.Int16, kind16, nil))
		all = append(all, cols...)
	} else if w.o.RowIDs {
		k := len(w.o.Schema.Fields)
		if cols[k].NullN() > 0 {
			return fmt.Errorf("write %s: a row has no id", f.name)
		}
		f.sequences(cols[k+1], n)
		cols = cols[:k]
	} else if !w.tracked {
		if f.rows == 0 {
			f.seqLo = w.seq
		}
		w.seq += int64(n)
		f.seqHi = w.seq - 1
	}
	if err := f.w.Write(all, n); err != nil {
		return fmt.Errorf("write %s: %w", f.name, err)
	}
	if f.index != nil {
		if err := f.index.Append(cols, n); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	f.rows += int64(n)
	if f.w.EstimatedSize() >= w.roll {
		return w.finish(ctx)
	}
	if err := w.charge(); err != nil || f.index == nil {
		return err
	}
	return w.chargeIndex(ctx)
}

// sequences takes up the sequence numbers of rows that keep their ids. Numbers are
// those of snapshots, so they count from 1; 0 stands for none yet: of the least where no
// row has one, of the greatest where not every row has.
// Source: RowDataFileSequenceNumberTracker.java.
func (f *open) sequences(a arrow.Array, n int) {
	v := vec.ViewOf[int64](vec.Decode(a))
	for i := range n {
		if v.IsNull(i) {
			f.unset = true
			continue
		}
		if s := v.V[i]; f.seqLo == 0 || s < f.seqLo {
			f.seqLo = s
		}
		f.seqHi = max(f.seqHi, v.V[i])
	}
}

// charge accounts for what the open file has in memory. Where the account
// refuses, the file's row group ends early; what a format needs even then is not
// charged.
func (w *writer) charge() error {
	b, ok := w.cur.w.(flusher)
	if !ok || w.o.Account == nil {
		return nil
	}
	n := b.Buffered()
	if n > w.charged {
		if err := w.o.Account.Grow(n - w.charged); err != nil {
			if err := b.Flush(); err != nil {
				return fmt.Errorf("write %s: %w", w.cur.name, err)
			}
			n = min(b.Buffered(), w.charged)
		}
	}
	if n < w.charged {
		w.o.Account.Shrink(w.charged - n)
	}
	w.charged = n
	return nil
}

func (w *writer) uncharge() {
	if n := w.charged + w.indexed; n > 0 {
		w.o.Account.Shrink(n)
		w.charged, w.indexed = 0, 0
	}
}

// start makes the next file.
func (w *writer) start(ctx context.Context) error {
	name := fmt.Sprintf("%s%s-%d%s", w.o.Prefix, w.uuid, w.names, w.ext)
	w.names++
	out, err := w.o.IO.Create(ctx, w.o.Dir+name)
	if err != nil {
		return err
	}
	f := &open{name: name, io: out, out: newCounter(out)}
	if f.w, err = w.o.Format.Create(ctx, f.out, w.phys, w.wo); err != nil {
		_ = f.out.close() // what little is in it goes with the file
		_ = out.Abort()
		return err
	}
	if w.index != nil {
		if f.index, err = w.index.NewWriter(); err != nil {
			_, _ = f.w.Close()
			_ = f.out.close()
			_ = out.Abort()
			return err
		}
	}
	w.cur = f
	return nil
}

// finish ends the open file and describes it.
func (w *writer) finish(ctx context.Context) error {
	f := w.cur
	w.cur = nil
	defer w.uncharge()
	stats, err := f.w.Close()
	if err2 := f.out.close(); err == nil {
		err = err2
	}
	if err != nil {
		_ = f.io.Abort() // the error says why
		return fmt.Errorf("write %s: %w", f.name, err)
	}
	if err := f.io.Close(); err != nil {
		return err
	}
	w.written += f.out.n
	m := &manifest.DataFile{
		Name: f.name, Size: f.out.n, Rows: f.rows, MinSequence: f.seqLo, MaxSequence: f.seqHi,
		SchemaID: w.o.Schema.ID, Level: w.o.Level, CreationMillis: time.Now().UnixMilli(),
		DeleteRows: f.deletes, Source: w.o.Source, FirstRowID: -1,
	}
	if w.o.RowIDs {
		if f.unset {
			m.MaxSequence = 0
		}
		m.HasWriteCols = true
		for _, c := range w.phys {
			m.WriteCols = append(m.WriteCols, c.Name)
		}
	}
	w.done = append(w.done, m)
	if f.index != nil {
		if err := w.finishIndex(ctx, m, f); err != nil {
			return fmt.Errorf("write indexes of %s: %w", f.name, err)
		}
	}
	return w.describe(m, f, stats)
}

// describe fills in keys and statistics.
func (w *writer) describe(m *manifest.DataFile, f *open, stats []format.ColumnStats) error {
	s := w.o.Schema.Fields
	values := stats[len(stats)-len(s):]
	if w.o.RowIDs {
		values = stats[:len(s)]
	}
	cols := make([]column, len(s))
	for i := range s {
		cols[i] = reduce(s[i].Type, values[i], w.modes[i])
	}
	if w.keyed {
		img, err := binrow.NewArrowEncoder(w.kts, f.lastKey).Row(f.lastKeyAt)
		if err != nil {
			return fmt.Errorf("key of a row: %w", err)
		}
		m.MinKey, m.MaxKey = f.minKey, append([]byte(nil), img...)
		keys := make([]column, len(w.key))
		fields := make(types.Schema, len(w.key))
		all := make([]int, len(w.key))
		for i, c := range w.key {
			fields[i], all[i] = s[c], i
			if w.thin {
				keys[i] = cols[c]
			} else {
				keys[i] = reduce(fields[i].Type, stats[i], systemMode)
			}
		}
		if m.KeyStats, err = encodeStats(fields, keys, all); err != nil {
			return err
		}
	}
	var keep []int
	for i := range s {
		if !w.dense || cols[i].nulls >= 0 {
			keep = append(keep, i)
		}
	}
	// Files with row ids have columns that the statistics leave out.
	if len(keep) < len(s) || w.o.RowIDs {
		m.HasValueStatsCols = true
		m.ValueStatsCols = make([]string, len(keep))
		for i, k := range keep {
			m.ValueStatsCols[i] = s[k].Name
		}
	}
	var err error
	m.ValueStats, err = encodeStats(s, cols, keep)
	return err
}

// Written returns the bytes written so far.
func (w *writer) Written() int64 {
	n := w.written
	if w.cur != nil {
		n += w.cur.w.EstimatedSize()
	}
	return n
}

// Close finishes the last file and describes all of them.
func (w *writer) Close(ctx context.Context) ([]*manifest.DataFile, error) {
	w.closed = true
	if w.cur != nil {
		if err := w.finish(ctx); err != nil {
			return nil, err
		}
	}
	return w.done, nil
}

// Abort deletes every file written.
func (w *writer) Abort(ctx context.Context) error {
	w.closed = true
	var first error
	if f := w.cur; f != nil {
		w.cur = nil
		_, _ = f.w.Close() // gives back what the format holds; its error is of no use
		_ = f.out.close()  // the file goes
		first = f.io.Abort()
	}
	w.uncharge()
	var names []string
	for _, m := range w.done {
		names = append(names, w.o.Dir+m.Name)
		for _, x := range m.ExtraFiles {
			names = append(names, w.o.Dir+x)
		}
	}
	w.done = nil
	if len(names) > 0 {
		if err := w.o.IO.Delete(ctx, names...); err != nil && first == nil {
			first = err
		}
	}
	return first
}
