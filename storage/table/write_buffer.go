package table

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"golang.org/x/sync/errgroup"

	"github.com/paimon-sql/paimon-sql/internal/cores"
	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/datafile"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// buffer holds rows of all buckets in order of arrival.
type buffer struct {
	items   []item
	bytes   int64
	rows    int64
	charged int64
	rowsOf  []int64 // by target
	small   int     // items at the end that hold few rows
}

// item is one batch.
type item struct {
	cols  []arrow.Array
	n     int
	kinds []uint8  // nil = all +I
	dest  []uint32 // nil = all in one
	one   uint32
}

const (
	// smallItem rows make an item worth keeping as it is; maxSmall smaller ones
	// are joined, so that an array's overhead and a source's number (uint16 while
	// gathering) are not spent on single rows.
	smallItem = 256
	maxSmall  = 256
	maxItems  = 1 << 16
	// arrayBytes is about what an array takes beside its values.
	arrayBytes = 300
	// rowBytes is what sorting takes per row: words and numbers, twice.
	rowBytes = 28
	// chunkRows is how many rows are gathered and written at a time: few enough to
	// stay in the cache on their way into the file.
	chunkRows = 8 << 10
)

func (b *buffer) meet() { b.rowsOf = append(b.rowsOf, 0) }

// size is what an item costs: its values, what gathering and encoding them takes
// (a quarter), and what sorting takes.
func (it *item) size() int64 {
	s := int64(0)
	for _, c := range it.cols {
		s += vec.Size(c) + arrayBytes
	}
	return s*5/4 + int64(it.n)*rowBytes
}

func (b *buffer) add(it item, size int64) {
	b.items = append(b.items, it)
	b.bytes += size
	b.rows += int64(it.n)
	if it.dest == nil {
		b.rowsOf[it.one] += int64(it.n)
	} else {
		for _, d := range it.dest {
			b.rowsOf[d]++
		}
	}
	if it.n >= smallItem {
		b.small = 0
	} else if b.small++; b.small == maxSmall {
		b.join()
	}
}

// join makes one item of the small ones at the end.
func (b *buffer) join() {
	from := len(b.items) - b.small
	tail := b.items[from:]
	out := item{cols: make([]arrow.Array, len(tail[0].cols))}
	arrs := make([]arrow.Array, len(tail))
	for i := range out.cols {
		for k := range tail {
			arrs[k] = tail[k].cols[i]
		}
		out.cols[i] = vec.Concat(vec.Plain(arrs[0].DataType()), slices.Clone(arrs))
	}
	for k := range tail {
		it := &tail[k]
		for i := range it.n {
			d := it.one
			if it.dest != nil {
				d = it.dest[i]
			}
			out.dest = append(out.dest, d)
			kind := uint8(0)
			if it.kinds != nil {
				kind = it.kinds[i]
			}
			out.kinds = append(out.kinds, kind)
		}
		out.n += it.n
	}
	clear(tail)
	b.items = append(b.items[:from], out)
	b.small = 0
}

// drop gives everything up.
func (b *buffer) drop(a *mem.Account) {
	a.Shrink(b.charged)
	clear(b.rowsOf)
	*b = buffer{rowsOf: b.rowsOf}
}

// buffer keeps a batch, making room for it where the account or write-buffer-size
// ask for that.
func (w *tableWriter) buffer(ctx context.Context, cols []arrow.Array, n int, kinds []uint8, dest []uint32, one uint32) error {
	if w.r.dyn != nil {
		if err := w.r.dyn.charge(ctx, w); err != nil {
			return err
		}
	}
	it := item{cols: cols, n: n, kinds: kinds, dest: dest, one: one}
	size := it.size()
	for tries := 0; ; tries++ {
		full := w.buf.bytes > 0 && (w.buf.bytes+size > w.limit || len(w.buf.items) >= maxItems-1)
		if !full {
			if w.o.Account.Grow(size) == nil {
				w.buf.charged += size
				break
			}
			if w.buf.bytes == 0 {
				break // a single batch has to be held in any case; it goes at once
			}
		}
		if err := w.flush(ctx, tries > 0); err != nil {
			return err
		}
	}
	w.buf.add(it, size)
	if w.buf.charged < w.buf.bytes || w.buf.bytes >= w.limit {
		return w.flush(ctx, true)
	}
	return nil
}

// share is the rows of one bucket in the buffer, in order of arrival.
type share struct {
	target uint32
	src    []uint16
	row    []uint32
	files  []*manifest.DataFile
	log    []*manifest.DataFile // changelog files
}

// flush writes buffered rows: all of them, or those of the biggest buckets.
func (w *tableWriter) flush(ctx context.Context, all bool) error {
	b := &w.buf
	if b.rows == 0 {
		return nil
	}
	shares, rest := b.split(all)
	workers := max(1, min(cores.Count(), len(shares)))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for i := range shares {
		s := &shares[i]
		g.Go(func() error {
			if w.keyed {
				return w.flushKeyed(gctx, s, len(shares) == 1)
			}
			return w.flushAppend(gctx, s, len(shares) == 1)
		})
	}
	err := g.Wait()
	for i := range shares {
		s := &shares[i]
		w.note(s.target, s.files)
		w.noteLog(s.target, s.log)
		w.targets[s.target].next += int64(len(s.row))
	}
	if err != nil {
		w.broken = err
		return err
	}
	// What stays moves into arrays of its own.
	old := *b
	*b = buffer{rowsOf: old.rowsOf, charged: old.charged}
	clear(b.rowsOf)
	for at := 0; at < len(rest.row); at += vec.MaxRows {
		end := min(at+vec.MaxRows, len(rest.row))
		it := item{n: end - at, cols: make([]arrow.Array, len(w.want)), dest: make([]uint32, end-at), kinds: make([]uint8, end-at)}
		for c := range it.cols {
			it.cols[c] = old.gather(c, w.want[c], rest.src[at:end], rest.row[at:end])
		}
		for i := range it.dest {
			from := &old.items[rest.src[at+i]]
			r := rest.row[at+i]
			if it.dest[i] = from.one; from.dest != nil {
				it.dest[i] = from.dest[r]
			}
			if from.kinds != nil {
				it.kinds[i] = from.kinds[r]
			}
		}
		b.add(it, it.size())
	}
	if b.charged > b.bytes {
		w.o.Account.Shrink(b.charged - b.bytes)
		b.charged = b.bytes
	}
	return nil
}

// split deals the buffered rows out to their buckets. Unless all is set, only
// the biggest buckets that make up half of the rows are written; rest are the
// others' rows.
func (b *buffer) split(all bool) (shares []share, rest share) {
	order := make([]uint32, 0, len(b.rowsOf))
	for t, n := range b.rowsOf {
		if n > 0 {
			order = append(order, uint32(t))
		}
	}
	if !all {
		slices.SortStableFunc(order, func(x, y uint32) int { return cmp.Compare(b.rowsOf[y], b.rowsOf[x]) })
		n, sum := 0, int64(0)
		for n < len(order) && sum*2 < b.rows {
			sum += b.rowsOf[order[n]]
			n++
		}
		order = order[:n]
	}
	at := make([]*share, len(b.rowsOf))
	shares = make([]share, len(order))
	left := b.rows
	for i, t := range order {
		n := b.rowsOf[t]
		shares[i] = share{target: t, src: make([]uint16, 0, n), row: make([]uint32, 0, n)}
		at[t] = &shares[i]
		left -= n
	}
	rest = share{src: make([]uint16, 0, left), row: make([]uint32, 0, left)}
	for t := range at {
		if at[t] == nil {
			at[t] = &rest
		}
	}
	for k := range b.items {
		it := &b.items[k]
		if it.dest == nil {
			s := at[it.one]
			for i := range it.n {
				s.src, s.row = append(s.src, uint16(k)), append(s.row, uint32(i))
			}
			continue
		}
		for i, d := range it.dest {
			s := at[d]
			s.src, s.row = append(s.src, uint16(k)), append(s.row, uint32(i))
		}
	}
	return shares, rest
}

// gather makes column c of rows.
func (b *buffer) gather(c int, dt arrow.DataType, src []uint16, row []uint32) arrow.Array {
	arrs := make([]arrow.Array, len(b.items))
	for i := range b.items {
		arrs[i] = b.items[i].cols[c]
	}
	return vec.Gather(dt, arrs, src, row)
}

// gatherAll makes every column of rows; alone says that no other bucket keeps the
// cores busy.
func (w *tableWriter) gatherAll(src []uint16, row []uint32, alone bool) []arrow.Array {
	return w.gatherEach(len(row), alone, func(c int) arrow.Array { return w.buf.gather(c, w.want[c], src, row) })
}

// gatherEach makes every column by calling one, for n rows.
func (w *tableWriter) gatherEach(n int, alone bool, one func(c int) arrow.Array) []arrow.Array {
	cols := make([]arrow.Array, len(w.want))
	workers := min(cores.Count(), len(cols))
	if !alone || workers == 1 || n < chunkRows/2 {
		for c := range cols {
			cols[c] = one(c)
		}
		return cols
	}
	var g sync.WaitGroup
	var next atomic.Int32
	for range workers {
		g.Go(func() {
			for c := int(next.Add(1)) - 1; c < len(cols); c = int(next.Add(1)) - 1 {
				cols[c] = one(c)
			}
		})
	}
	g.Wait()
	return cols
}

// flushKeyed writes the rows of one bucket as sorted level-0 files.
func (w *tableWriter) flushKeyed(ctx context.Context, s *share, alone bool) error {
	if w.inputLog || w.logOnly {
		if err := w.logInput(ctx, s, alone); err != nil {
			return err
		}
	}
	b := &w.buf
	n := len(s.row)
	if n == 0 {
		return nil
	}
	keys := make([]arrow.Array, len(w.keyCols))
	for i, c := range w.keyCols {
		keys[i] = b.gather(c, w.want[c], s.src, s.row)
	}
	var k mergetree.Keys
	w.codec.Fill(&k, keys, n)
	var user *mergetree.SequenceKeys
	if len(w.seqCols) > 0 {
		cols := make([]arrow.Array, len(w.seqCols))
		for i, c := range w.seqCols {
			cols[i] = b.gather(c, w.want[c], s.src, s.row)
		}
		user = mergetree.NewSequenceKeys(w.seqTypes, cols, n, w.seqDesc)
	}
	f, err := w.newFile(s.target, 0, false)
	if err != nil {
		return err
	}
	if w.engine != nil {
		return w.flushFolded(ctx, s, &k, w.codec.Sorted(&k, n, user), f, alone)
	}
	order := w.codec.Latest(&k, n, user)
	base := w.targets[s.target].next
	m := min(len(order), chunkRows)
	src, row := make([]uint16, m), make([]uint32, m)
	seq, kinds := make([]int64, m), make([]int8, m)
	for at := 0; at < len(order); at += m {
		part := order[at:min(at+m, len(order))]
		for i, o := range part {
			src[i], row[i] = s.src[o], s.row[o]
			seq[i] = base + int64(o)
			kinds[i] = 0
			if ks := b.items[src[i]].kinds; ks != nil {
				kinds[i] = int8(ks[row[i]])
			}
		}
		cols := w.gatherAll(src[:len(part)], row[:len(part)], alone)
		if err := f.Write(ctx, cols, len(part), seq[:len(part)], kinds[:len(part)]); err != nil {
			_ = f.Abort(ctx) // the error says why
			return err
		}
	}
	if s.files, err = f.Close(ctx); err != nil {
		_ = f.Abort(ctx) // the error says why
	}
	return err
}

// flushFolded folds the rows of one bucket, in merge order, into file f; what comes
// after removals goes into more files.
func (w *tableWriter) flushFolded(ctx context.Context, s *share, k *mergetree.Keys, order []uint32, f datafile.Writer, alone bool) error {
	for {
		fold, err := w.newFold(s, order)
		if err == nil {
			err = fold.write(ctx, k, f, alone)
		}
		var files []*manifest.DataFile
		if err == nil {
			files, err = f.Close(ctx)
		}
		if err != nil {
			_ = f.Abort(ctx) // the error says why
			return err
		}
		s.files = append(s.files, files...)
		if order = fold.later; len(order) == 0 {
			return nil
		}
		if f, err = w.newFile(s.target, 0, false); err != nil {
			return err
		}
	}
}

// flushAppend writes the rows of one bucket of an append table, into its open
// file where it has one.
func (w *tableWriter) flushAppend(ctx context.Context, s *share, alone bool) (err error) {
	t := w.targets[s.target]
	f := t.open
	if f == nil {
		if f, err = w.newFile(s.target, t.next, false); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				_ = f.Abort(ctx) // the error says why
			}
		}()
	} else {
		t.opened += int64(len(s.row))
	}
	for at := 0; at < len(s.row); at += chunkRows {
		end := min(at+chunkRows, len(s.row))
		cols := w.gatherAll(s.src[at:end], s.row[at:end], alone)
		if err := f.Write(ctx, cols, end-at, nil, nil); err != nil {
			return err
		}
	}
	if t.open == nil {
		s.files, err = f.Close(ctx)
	}
	return err
}
