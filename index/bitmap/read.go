package bitmap

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

const (
	// chunk is what is read at a time of parts whose length is not known.
	chunk = 4 << 10
	// scanBytes is the same for a dictionary of version 1, which is read to its end.
	scanBytes = 64 << 10
	// maxWalkBytes bounds what a range of values may read of dictionary and
	// bitmaps; wider ranges are left to other means. Single values have no bound.
	maxWalkBytes = 1 << 20
	// maxReadBytes bounds one read of neighbouring bitmaps.
	maxReadBytes = 1 << 18
)

// reader is an open index: of version 2 the head with the first value of each
// block, of version 1 nothing but the counts. Blocks, dictionary and bitmaps are
// read by each test.
type reader[K cmp.Ordered] struct {
	t     types.Type
	src   index.Source
	next  func(b []byte) (k K, n, need int)
	query func(t types.Type, l *predicate.Leaf) (query[K], bool)

	version int
	rows    int64
	values  int64
	hasNull bool
	nulls   ref
	body    int64 // where bitmaps begin; version 1: not known

	dict    int64 // version 1: where the dictionary begins
	first   []K   // version 2: of each block
	offsets []int64
	ends    []int64 // of blocks, in the source
}

// ref is where the rows of a value are.
type ref struct {
	offset int32 // negative: -1 - row
	length int64 // -1 = up to the end of the index
}

// RowCount is the number of rows that the index speaks of.
func (r *reader[K]) RowCount() int64 { return r.rows }

// window is a part of the source that grows as it is parsed.
type window struct {
	src index.Source
	buf []byte
	at  int64 // of buf[0]
	min int64 // bytes that are read at once, at least; 0 = chunk
}

// need makes n bytes available.
func (w *window) need(n int64) error {
	if int64(len(w.buf)) >= n {
		return nil
	}
	left := w.src.Size() - w.at
	if n > left {
		return index.Corrupt("bitmap index ends early")
	}
	size := min(max(n, chunk, w.min), left)
	b, err := index.ReadBytes(w.src, w.at, size)
	w.buf = b
	return err
}

func (w *window) skip(n int) {
	w.buf = w.buf[n:]
	w.at += int64(n)
}

func (w *window) int32() (int32, error) {
	if err := w.need(4); err != nil {
		return 0, err
	}
	v := int32(binary.BigEndian.Uint32(w.buf))
	w.skip(4)
	return v, nil
}

func value[K cmp.Ordered](w *window, next func([]byte) (K, int, int)) (K, error) {
	for {
		k, n, need := next(w.buf)
		switch {
		case need < 0:
			return k, index.Corrupt("bitmap index has a value of negative length")
		case need == 0:
			w.skip(n)
			return k, nil
		}
		if err := w.need(int64(need)); err != nil {
			return k, err
		}
	}
}

func open[K int64 | string](src index.Source, t types.Type, c codec[K], q func(types.Type, *predicate.Leaf) (query[K], bool)) (index.FileIndex, error) {
	r := &reader[K]{t: t, src: src, next: c.next, query: q}
	w := &window{src: src}
	if err := w.need(10); err != nil {
		return nil, err
	}
	if r.version = int(w.buf[0]); r.version != 1 && r.version != 2 {
		return nil, fmt.Errorf("%w bitmap: %d", index.ErrVersion, r.version)
	}
	r.rows = int64(int32(binary.BigEndian.Uint32(w.buf[1:])))
	r.values = int64(int32(binary.BigEndian.Uint32(w.buf[5:])))
	r.hasNull = w.buf[9] != 0
	w.skip(10)
	// Every value takes its bytes and an offset, at least.
	if r.rows < 0 || r.values < 0 || r.values > r.rows || r.values > src.Size()/int64(c.min+4) {
		return nil, index.Corrupt("bitmap index of %d values in %d rows and %d bytes", r.values, r.rows, src.Size())
	}
	if r.hasNull {
		o, err := w.int32()
		if err != nil {
			return nil, err
		}
		r.nulls = ref{o, -1}
		if r.version == 2 {
			n, err := w.int32()
			if err != nil {
				return nil, err
			}
			r.nulls.length = int64(n)
		}
	}
	if r.version == 1 {
		r.dict = w.at
		return r, nil
	}
	return r, r.openBlocks(w, c.min)
}

// openBlocks reads the list of blocks.
func (r *reader[K]) openBlocks(w *window, least int) error {
	blocks, err := w.int32()
	if err != nil {
		return err
	}
	if blocks < 0 || int64(blocks) > r.values || int64(blocks) > (r.src.Size()-w.at)/int64(least+4) || blocks == 0 && r.values > 0 {
		return index.Corrupt("bitmap index of %d blocks", blocks)
	}
	for i := range blocks {
		k, err := value(w, r.next)
		if err != nil {
			return err
		}
		o, err := w.int32()
		if err != nil {
			return err
		}
		if i > 0 && (k < r.first[i-1] || int64(o) < r.offsets[i-1]) || o < 0 {
			return index.Corrupt("blocks of a bitmap index are not in order")
		}
		r.first, r.offsets = append(r.first, k), append(r.offsets, int64(o))
	}
	size, err := w.int32()
	if err != nil {
		return err
	}
	if size < 0 || int64(size) > r.src.Size()-w.at || blocks > 0 && r.offsets[blocks-1] > int64(size) {
		return index.Corrupt("blocks of %d bytes in a bitmap index", size)
	}
	r.body = w.at + int64(size)
	for i := range r.offsets {
		r.offsets[i] += w.at
		if i > 0 {
			r.ends = append(r.ends, r.offsets[i])
		}
	}
	r.ends = append(r.ends, r.body)
	return nil
}

// Test judges comparisons, lists, ranges, prefixes and NULL.
func (r *reader[K]) Test(l *predicate.Leaf) (index.Result, error) {
	// NULL, too: a value may become NULL when it is read as another type.
	if !index.Accepts(r.t, l) {
		return index.Result{}, nil
	}
	switch l.Op {
	case predicate.IsNull, predicate.IsNotNull:
		return r.testNull(l.Op == predicate.IsNotNull)
	}
	q, ok := r.query(r.t, l)
	if !ok || q.not && !q.exact {
		return index.Result{}, nil
	}
	if r.values == 0 {
		return index.Result{Verdict: index.None}, nil
	}
	refs, body, err := r.find(&q, q.not)
	if err != nil || body < 0 {
		return index.Result{}, err
	}
	rows, err := r.union(refs, body)
	if err != nil {
		return index.Result{}, err
	}
	if q.not {
		rows = index.Complement(rows, r.rows)
	}
	return result(rows, q.exact), nil
}

func result(rows *roaring.Bitmap, exact bool) index.Result {
	if rows.IsEmpty() {
		return index.Result{Verdict: index.None}
	}
	return index.Result{Rows: rows, Exact: exact}
}

func (r *reader[K]) testNull(not bool) (index.Result, error) {
	switch {
	case !r.hasNull && not && r.rows > 0:
		return index.Result{Verdict: index.All}, nil
	case !r.hasNull:
		return index.Result{Verdict: index.None}, nil
	}
	refs, body := []ref{r.nulls}, r.body
	if r.version == 1 && r.nulls.offset >= 0 {
		// Where the bitmap is and how long follows from the dictionary.
		var err error
		if refs, body, err = r.scan(&query[K]{}, true); err != nil {
			return index.Result{}, err
		}
	}
	rows, err := r.union(refs, body)
	if err != nil {
		return index.Result{}, err
	}
	if not {
		rows = index.Complement(rows, r.rows)
	}
	return result(rows, true), nil
}

// find returns where the rows of a query's values are, those of NULL too if asked,
// and where the bitmaps begin: -1 when it would have to read too much.
func (r *reader[K]) find(q *query[K], nulls bool) (refs []ref, body int64, err error) {
	if r.version == 1 {
		return r.scan(q, nulls)
	}
	if nulls && r.hasNull {
		refs = append(refs, r.nulls)
	}
	read := int64(0)
	block, at := window{}, -1 // the block that block was cut from
	var entries []blockEntry[K]
	for i := range q.spans {
		s := &q.spans[i]
		b := 0
		if !s.noLo {
			// The last block whose first value is not behind lo.
			b = max(0, sort.Search(len(r.first), func(i int) bool { return r.first[i] > s.lo })-1)
		}
		for ; b < len(r.first) && !s.above(r.first[b]); b++ {
			if b != at {
				if read += r.ends[b] - r.offsets[b]; !q.points && read > maxWalkBytes {
					return nil, -1, nil
				}
				buf, err := index.ReadBytes(r.src, r.offsets[b], r.ends[b]-r.offsets[b])
				if err != nil {
					return nil, 0, err
				}
				block, at = window{src: index.BytesSource(buf), buf: buf}, b
				if entries, err = r.parse(&block, entries[:0]); err != nil {
					return nil, 0, err
				}
			}
			from := 0
			if !s.noLo {
				from = sort.Search(len(entries), func(i int) bool { return !s.below(entries[i].key) })
			}
			for _, e := range entries[from:] {
				if s.above(e.key) {
					break
				}
				if e.offset >= 0 {
					if read += max(e.length, 0); !q.points && read > maxWalkBytes {
						return nil, -1, nil
					}
				}
				refs = append(refs, e.ref)
			}
		}
	}
	return refs, r.body, nil
}

type blockEntry[K cmp.Ordered] struct {
	key K
	ref
}

// parse reads a block.
func (r *reader[K]) parse(w *window, out []blockEntry[K]) ([]blockEntry[K], error) {
	n, err := w.int32()
	if err != nil {
		return nil, err
	}
	if n < 0 || int(n) > len(w.buf)/8 {
		return nil, index.Corrupt("block of %d values", n)
	}
	out = slices.Grow(out, int(n))
	for i := range n {
		var e blockEntry[K]
		if e.key, err = value(w, r.next); err != nil {
			return nil, err
		}
		if err = w.need(8); err != nil {
			return nil, err
		}
		e.offset = int32(binary.BigEndian.Uint32(w.buf))
		e.length = int64(int32(binary.BigEndian.Uint32(w.buf[4:])))
		w.skip(8)
		if i > 0 && e.key < out[i-1].key {
			return nil, index.Corrupt("values of a block are not in order")
		}
		out = append(out, e)
	}
	return out, nil
}

// scan walks the dictionary of version 1: values in no order, bitmaps whose length
// is the distance to the next one.
func (r *reader[K]) scan(q *query[K], nulls bool) (refs []ref, body int64, err error) {
	open := -1 // the ref whose length is not known yet
	if nulls && r.hasNull {
		refs = append(refs, r.nulls)
		if r.nulls.offset >= 0 {
			open = 0
		}
	}
	read := int64(0)
	w := &window{src: r.src, at: r.dict, min: scanBytes}
	for range r.values {
		k, err := value(w, r.next)
		if err != nil {
			return nil, 0, err
		}
		offset, err := w.int32()
		if err != nil {
			return nil, 0, err
		}
		if offset >= 0 && open >= 0 {
			refs[open].length = int64(offset) - int64(refs[open].offset)
			if read += refs[open].length; refs[open].length < 0 {
				return nil, 0, index.Corrupt("bitmaps of an index are not in order")
			}
			open = -1
		}
		i := sort.Search(len(q.spans), func(i int) bool { return !q.spans[i].above(k) })
		if i == len(q.spans) || q.spans[i].below(k) {
			continue
		}
		if refs = append(refs, ref{offset, -1}); offset >= 0 {
			open = len(refs) - 1
		}
		if !q.points && len(q.spans) > 0 && read > maxWalkBytes {
			return nil, -1, nil
		}
	}
	return refs, w.at, nil // the bitmaps begin behind the dictionary
}

// union reads the rows of refs, bitmaps that lie side by side at once, and joins
// them.
func (r *reader[K]) union(refs []ref, body int64) (*roaring.Bitmap, error) {
	var single []uint32
	stored := refs[:0:0]
	for _, e := range refs {
		if e.offset >= 0 {
			stored = append(stored, e)
		} else {
			single = append(single, uint32(-1-e.offset))
		}
	}
	slices.SortFunc(stored, func(a, b ref) int { return cmp.Compare(a.offset, b.offset) })
	maps := make([]*roaring.Bitmap, 0, len(stored)+1)
	for len(stored) > 0 {
		n, start := 1, body+int64(stored[0].offset)
		length := stored[0].length
		if length < 0 {
			length = r.src.Size() - start
		} else {
			for n < len(stored) && int64(stored[n].offset) == int64(stored[0].offset)+length && stored[n].length >= 0 &&
				length+stored[n].length <= maxReadBytes {
				length += stored[n].length
				n++
			}
		}
		buf, err := index.ReadBytes(r.src, start, length)
		if err != nil {
			return nil, err
		}
		for _, e := range stored[:n] {
			own := buf
			if e.length >= 0 {
				own, buf = buf[:e.length], buf[e.length:]
			}
			m, _, err := index.DecodeBitmap(own)
			if err != nil {
				return nil, err
			}
			maps = append(maps, m)
		}
		stored = stored[n:]
	}
	if len(single) > 0 || len(maps) == 0 {
		maps = append(maps, roaring.BitmapOf(single...))
	}
	all := maps[0]
	if len(maps) > 1 {
		all = roaring.FastOr(maps...)
	}
	if !all.IsEmpty() && int64(all.Maximum()) >= r.rows {
		return nil, index.Corrupt("bitmap index of %d rows knows row %d", r.rows, all.Maximum())
	}
	return all, nil
}
