package cluster

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/compact"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

const (
	// rowBytes is what sorting takes for a row beside its columns and key: words,
	// row numbers and offsets, twice.
	rowBytes = 40
	// arrayBytes is about what an array takes beside its values.
	arrayBytes = 300
	// keyLimit is the most bytes of keys in memory: their offsets are int32.
	keyLimit = 1 << 30
	// A chunk of a run, and a batch of the result, has at most so many rows and
	// about so many bytes.
	chunkRows  = 8 << 10
	chunkBytes = 1 << 20
	leastChunk = 32 << 10
	// maxItems batches of at most itemRows rows are in memory: a row is named by 16
	// bits of each.
	maxItems = 1 << 16
	itemRows = 1 << 16
	// leastFan is how many runs are merged at once however little memory there is.
	leastFan = 2
)

// Options say how a Reader sorts.
type Options struct {
	Codec   *Codec
	Columns []int // of the batches, in the order of Codec's
	// Memory is how many bytes of rows are sorted in memory; more goes to temporary
	// files. It is charged to Account, and less is used where that refuses.
	Memory  int64
	Account *mem.Account
	// Dir names the directory of temporary files when the first is needed; nil = the
	// system's.
	Dir func() (string, error)
	// FanIn is how many runs are merged at once; 0 = 128.
	FanIn int
	// Local sorts what fits into memory and yields it before it goes on: the result
	// is sorted in stretches.
	Local bool
	// Rows, when not nil, is told how many rows were read.
	Rows func(n int64)
}

// Reader yields the rows of another reader in the order of their keys; rows with
// equal keys keep their order. Not safe for concurrent use.
type Reader struct {
	o   Options
	src compact.Reader

	schema types.Schema
	buf    buffer
	ended  bool // src is
	order  []uint32
	place  []uint32 // by row: item << 16 | row
	at     int      // rows of order that were yielded

	runs    []*spillFile
	merge   *merger
	charged int64
	spilled int64
	widest  int64 // chunk of all runs, in bytes
	passes  int
	closed  bool
}

// buffer is what has been read and not been sorted.
type buffer struct {
	items   []item
	rows    int
	bytes   int64
	charged int64
	keys    Keys
}

type item struct {
	cols []arrow.Array
	n    int
}

// NewReader sorts what src yields; src stays the caller's to close.
func NewReader(src compact.Reader, o Options) *Reader {
	if o.FanIn <= 0 {
		o.FanIn = 128
	}
	o.FanIn = max(o.FanIn, leastFan)
	return &Reader{src: src, o: o}
}

// Spilled returns the bytes that went to temporary files, and how often runs were
// merged into a new run.
func (r *Reader) Spilled() (bytes int64, passes int) { return r.spilled, r.passes }

// Close removes the temporary files and gives the memory back. Next must not be
// running.
func (r *Reader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	for _, f := range r.runs {
		f.close()
	}
	r.runs, r.merge = nil, nil
	r.drop()
	r.o.Account.Shrink(r.charged)
	r.charged = 0
	return nil
}

// drop gives up the rows in memory.
func (r *Reader) drop() {
	r.o.Account.Shrink(r.buf.charged)
	r.buf = buffer{keys: r.buf.keys}
	r.buf.keys.Reset()
	r.order, r.place, r.at = nil, nil, 0
}

// Next returns the next batch, nil at the end.
func (r *Reader) Next(ctx context.Context) (*vec.Batch, error) {
	if r.closed {
		return nil, errors.New("cluster: reader is closed")
	}
	for {
		if r.merge != nil {
			return r.merge.next(ctx)
		}
		if r.order != nil {
			if r.at < len(r.order) {
				cols, _ := r.chunk(false)
				return &vec.Batch{Schema: r.schema, Cols: cols, N: cols[0].Len()}, nil
			}
			r.drop()
		}
		if r.ended {
			return nil, nil
		}
		if err := r.fill(ctx); err != nil {
			return nil, err
		}
	}
}

// fill reads until the source ends or, with Local, memory is full, and prepares
// what Next yields.
func (r *Reader) fill(ctx context.Context) error {
	for !r.ended {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		b, err := r.src.Next(ctx)
		if err != nil {
			return err
		}
		if b == nil {
			r.ended = true
			break
		}
		b = vec.Compact(b)
		if r.o.Rows != nil {
			r.o.Rows(int64(b.N))
		}
		r.schema = b.Schema
		full, err := r.add(ctx, b)
		if err != nil {
			return err
		}
		if full && r.o.Local {
			r.sort()
			return nil
		}
	}
	if len(r.runs) == 0 {
		r.sort()
		return nil
	}
	if err := r.spill(ctx); err != nil {
		return err
	}
	r.buf.keys = Keys{}
	return r.startMerge(ctx)
}

// add takes a batch up, after spilling what there is where it does not fit. full
// says that no more should be added.
func (r *Reader) add(ctx context.Context, b *vec.Batch) (full bool, err error) {
	for from := 0; from < b.N; from += itemRows {
		n := min(itemRows, b.N-from)
		it := item{cols: b.Cols, n: n}
		if n < b.N {
			it.cols = make([]arrow.Array, len(b.Cols))
			for i, a := range b.Cols {
				it.cols[i] = vec.Slice(a, from, from+n)
			}
		}
		size := int64(n) * rowBytes
		for _, a := range it.cols {
			size += vec.Size(a) + arrayBytes
		}
		for i, c := range r.o.Columns {
			size += int64(n) * 2 * int64(r.o.Codec.nwords[i]*wordBytes)
			if r.o.Codec.strategy == Order && r.o.Codec.width == 0 {
				size += vec.Size(it.cols[c])
			}
		}
		for {
			ok := r.buf.rows == 0 || r.buf.bytes+size <= r.o.Memory && len(r.buf.items) < maxItems && len(r.buf.keys.Data) < keyLimit
			var refused error
			if ok {
				if refused = r.o.Account.Grow(size); refused == nil {
					r.buf.charged += size
					break
				}
			}
			if r.o.Local && r.buf.rows > 0 && !ok {
				// The caller yields what there is before it comes again, so a little more
				// than the limit is held.
				if refused = r.o.Account.Grow(size); refused == nil {
					r.buf.charged += size
					full = true
					break
				}
			}
			if r.buf.rows == 0 {
				return false, refused
			}
			if err := r.spill(ctx); err != nil {
				return false, err
			}
		}
		key := make([]arrow.Array, len(r.o.Columns))
		for i, c := range r.o.Columns {
			key[i] = it.cols[c]
		}
		r.o.Codec.Append(&r.buf.keys, key, n)
		r.buf.items = append(r.buf.items, it)
		r.buf.rows += n
		r.buf.bytes += size
	}
	return full || r.buf.bytes >= r.o.Memory, nil
}

var bareBytes = mergetree.NewKeyCodec([]types.Type{types.Of(types.Bytea)})

// sort orders the rows in memory.
func (r *Reader) sort() {
	n := r.buf.rows
	r.order, r.at = []uint32{}, 0
	if n == 0 {
		return
	}
	k := mergetree.Keys{Off: r.buf.keys.Off, Data: r.buf.keys.Data, Hi: make([]uint64, n)}
	for i := range k.Hi {
		k.Hi[i] = word(k.At(i))
	}
	r.order = bareBytes.Sorted(&k, n, nil)
	r.place = make([]uint32, 0, n)
	for i := range r.buf.items {
		for row := range r.buf.items[i].n {
			r.place = append(r.place, uint32(i)<<16|uint32(row))
		}
	}
}

// step is how many of the rows in memory make a chunk of about size bytes.
func (r *Reader) step(size int64) int {
	per := max(r.buf.bytes/int64(max(r.buf.rows, 1)), 1)
	return int(min(max(size/per, 16), chunkRows))
}

// chunk gathers the next sorted rows, and their keys if they are wanted.
func (r *Reader) chunk(keys bool) ([]arrow.Array, *Keys) {
	size := int64(chunkBytes)
	if keys {
		// Of a run, a part: where memory is scarce the chunks of all runs must fit.
		size = min(size, max(r.buf.bytes/16, leastChunk))
		r.widest = max(r.widest, size)
	}
	n := min(r.step(size), len(r.order)-r.at)
	part := r.order[r.at : r.at+n]
	r.at += n
	src, row := make([]uint16, n), make([]uint32, n)
	for i, o := range part {
		p := r.place[o]
		src[i], row[i] = uint16(p>>16), p&0xffff
	}
	cols := gather(len(r.buf.items[0].cols), src, row, len(r.buf.items), func(i int) []arrow.Array { return r.buf.items[i].cols })
	if !keys {
		return cols, nil
	}
	k := &Keys{Off: make([]int32, 1, n+1)}
	for _, o := range part {
		k.Data = append(k.Data, r.buf.keys.At(int(o))...)
		k.Off = append(k.Off, int32(len(k.Data)))
	}
	return cols, k
}

// gather collects rows of several sources; only those that are named are looked at.
func gather(ncols int, src []uint16, row []uint32, nsrc int, of func(i int) []arrow.Array) []arrow.Array {
	used := make([]bool, nsrc)
	for _, s := range src {
		used[s] = true
	}
	out := make([]arrow.Array, ncols)
	srcs := make([]arrow.Array, nsrc)
	for c := range out {
		var dt arrow.DataType
		for i, u := range used {
			if u {
				srcs[i] = of(i)[c]
				dt = srcs[i].DataType()
			}
		}
		out[c] = vec.Gather(dt, srcs, src, row)
		srcs = make([]arrow.Array, nsrc)
	}
	return out
}

// spill writes the rows in memory to a new run.
func (r *Reader) spill(ctx context.Context) error {
	if r.buf.rows == 0 {
		return nil
	}
	r.sort()
	err := r.writeRun(ctx, len(r.runs), func(context.Context) ([]arrow.Array, *Keys, error) {
		if r.at == len(r.order) {
			return nil, nil, nil
		}
		cols, keys := r.chunk(true)
		return cols, keys, nil
	})
	r.drop()
	return err
}

// writeRun makes a run of what next yields and puts it at place at.
func (r *Reader) writeRun(ctx context.Context, at int, next func(context.Context) ([]arrow.Array, *Keys, error)) error {
	f, err := newSpillFile(r.o.Dir)
	if err != nil {
		return err
	}
	w := &runWriter{file: f}
	for err == nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			break
		}
		var cols []arrow.Array
		var keys *Keys
		if cols, keys, err = next(ctx); err != nil || cols == nil {
			break
		}
		err = w.write(cols, keys)
	}
	if err == nil {
		err = w.close()
	}
	if err != nil {
		f.close()
		return err
	}
	r.spilled += f.size
	r.runs = append(r.runs[:at], append([]*spillFile{f}, r.runs[at:]...)...)
	return nil
}

// startMerge merges runs until one merge takes them all, and begins that.
func (r *Reader) startMerge(ctx context.Context) error {
	fan := r.o.FanIn
	// Each run holds a chunk that is being read and those that rows of the batch being
	// put together lie in.
	each := 3 * r.widest
	for want := min(fan, len(r.runs)); ; want = max(want/2, leastFan) {
		err := r.o.Account.Grow(int64(want) * each)
		if err == nil {
			r.charged = int64(want) * each
			fan = want
			break
		}
		if want == leastFan || want == 1 {
			return err
		}
	}
	for len(r.runs) > fan {
		n := min(fan, len(r.runs)-fan+1)
		n = max(n, 2)
		m, err := newMerger(r.runs[:n], r.schema)
		if err != nil {
			return err
		}
		err = r.writeRun(ctx, len(r.runs), func(ctx context.Context) ([]arrow.Array, *Keys, error) { return m.batch(ctx, true) })
		if err != nil {
			return err
		}
		r.passes++
		for _, f := range r.runs[:n] {
			f.close()
		}
		// The new run is at the end; it goes where the old ones were, so that rows with
		// equal keys keep their order.
		last := r.runs[len(r.runs)-1]
		r.runs = append([]*spillFile{last}, r.runs[n:len(r.runs)-1]...)
	}
	var err error
	r.merge, err = newMerger(r.runs, r.schema)
	return err
}

// merger merges sorted runs.
type merger struct {
	schema types.Schema
	heap   []*mergeRun
	chunks []*chunk // that rows of the batch being put together lie in
	rows   int      // of a batch
}

// mergeRun is a run and its place in it.
type mergeRun struct {
	no   int // older runs first where keys are equal
	in   *runReader
	c    *chunk
	src  int // of c in merger.chunks, -1 = not there yet
	row  int
	n    int
	head uint64 // the first bytes of the key
}

func newMerger(files []*spillFile, s types.Schema) (*merger, error) {
	m := &merger{schema: s, rows: chunkRows}
	for i, f := range files {
		x := &mergeRun{no: i, in: &runReader{file: f}}
		ok, err := x.load()
		if err != nil {
			return nil, err
		}
		if ok {
			m.heap = append(m.heap, x)
			// The chunks of all runs are about as wide.
			m.rows = min(m.rows, max(x.n, 16))
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	return m, nil
}

// load reads the next chunk; false at the end.
func (x *mergeRun) load() (bool, error) {
	for {
		c, err := x.in.next()
		if err != nil || c == nil {
			return false, err
		}
		if x.n = c.keys.Len(); x.n > 0 {
			x.c, x.src, x.row = c, -1, 0
			x.head = word(c.keys.At(0))
			return true, nil
		}
	}
}

func less(a, b *mergeRun) bool {
	if a.head != b.head {
		return a.head < b.head
	}
	if x := bytes.Compare(a.c.keys.At(a.row), b.c.keys.At(b.row)); x != 0 {
		return x < 0
	}
	return a.no < b.no
}

func (m *merger) down(i int) {
	h := m.heap
	for {
		k := 2*i + 1
		if k >= len(h) {
			return
		}
		if k+1 < len(h) && less(h[k+1], h[k]) {
			k++
		}
		if !less(h[k], h[i]) {
			return
		}
		h[i], h[k] = h[k], h[i]
		i = k
	}
}

// next returns the next batch, nil at the end.
func (m *merger) next(ctx context.Context) (*vec.Batch, error) {
	cols, _, err := m.batch(ctx, false)
	if err != nil || cols == nil {
		return nil, err
	}
	return &vec.Batch{Schema: m.schema, Cols: cols, N: cols[0].Len()}, nil
}

// batch merges some rows, nil at the end, and their keys if they are wanted.
func (m *merger) batch(ctx context.Context, keys bool) ([]arrow.Array, *Keys, error) {
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	m.chunks = m.chunks[:0]
	for _, x := range m.heap {
		x.src = -1
	}
	src, row := make([]uint16, 0, m.rows), make([]uint32, 0, m.rows)
	var k *Keys
	if keys {
		k = &Keys{Off: make([]int32, 1, m.rows+1)}
	}
	for len(m.heap) > 0 && len(row) < m.rows {
		x := m.heap[0]
		if x.src < 0 {
			x.src = len(m.chunks)
			m.chunks = append(m.chunks, x.c)
		}
		src, row = append(src, uint16(x.src)), append(row, uint32(x.row))
		if keys {
			k.Data = append(k.Data, x.c.keys.At(x.row)...)
			k.Off = append(k.Off, int32(len(k.Data)))
		}
		if x.row++; x.row < x.n {
			if b := x.c.keys.At(x.row); len(b) >= wordBytes {
				x.head = binary.BigEndian.Uint64(b)
			} else {
				x.head = word(b)
			}
		} else {
			more, err := x.load()
			if err != nil {
				return nil, nil, err
			}
			if !more {
				last := len(m.heap) - 1
				m.heap[0] = m.heap[last]
				m.heap = m.heap[:last]
			}
		}
		m.down(0)
	}
	if len(row) == 0 {
		return nil, nil, nil
	}
	return gather(len(m.chunks[0].cols), src, row, len(m.chunks), func(i int) []arrow.Array { return m.chunks[i].cols }), k, nil
}
