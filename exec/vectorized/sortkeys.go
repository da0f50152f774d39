package vectorized

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// sortEntry is one row to be sorted: the first eight bytes of its normalised
// key behind what all keys share, and its number.
type sortEntry struct {
	key uint64
	row uint32
}

// sortRun sorts rows [from, to) of the key columns. When keys are no longer
// than eight bytes the entries say it all; otherwise equal entries are compared
// by the whole keys.
type sortRun struct {
	entries []sortEntry
	data    []byte // the keys; nil: entries are exact
	offs    []int64
	from    int // row of offs[0]
	skip    int // bytes all keys of all runs share
}

func (r *sortRun) rest(e sortEntry) []byte {
	i := int(e.row) - r.from
	k := r.data[r.offs[i]:r.offs[i+1]]
	if len(k) <= r.skip+8 {
		return nil
	}
	return k[r.skip+8:]
}

// sortOrder returns the rows 0..n-1 in the order of the key columns. Memory is
// charged to acc; release gives it back.
func sortOrder(ctx context.Context, rt *runtimeEnv, acc *mem.Account, cols []vec.KeyColumn, keys []colStore, n int) (order []uint32, release func(), err error) {
	charged := int64(0)
	giveBack := func() { acc.Shrink(charged) }
	grow := func(b int64) error {
		if err := acc.Grow(b); err != nil {
			return err
		}
		charged += b
		return nil
	}
	defer func() {
		if err != nil {
			giveBack() // release is nil by now
		}
	}()
	if err := grow(int64(n) * (16 + 16 + 4)); err != nil {
		return nil, nil, err
	}
	workers := 1
	if n >= 1<<15 {
		workers = rt.workers
	}
	runs := make([]sortRun, workers)
	arrs := make([]arrow.Array, len(cols))
	for i := range cols {
		arrs[i] = keys[i].slice(cols[i].Type.Arrow(), 0, n)
	}
	enc := encoderFor(cols, arrs)
	if enc == nil {
		var size int64
		for _, a := range arrs {
			size += vec.Size(a)
		}
		if err := grow(2*size + int64(n)*int64(8+2*len(cols))); err != nil {
			return nil, nil, err
		}
	}
	bounds := func(w int) (int, int) { return w * n / workers, (w + 1) * n / workers }
	lcp := make([][]byte, workers)
	err = parallel(ctx, rt, workers, func(ctx context.Context, w int) error {
		from, to := bounds(w)
		r := &runs[w]
		r.from = from
		r.entries = make([]sortEntry, to-from)
		if enc != nil {
			for i := range r.entries {
				r.entries[i].row = uint32(from + i)
			}
			for at := from; at < to; at += 1 << 16 {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				enc(at, min(to, at+1<<16), r.entries[at-from:])
			}
			return radixSort(ctx, r.entries)
		}
		k := vec.NewKeyer(cols, arrs)
		r.offs = make([]int64, to-from+1)
		for i := from; i < to; i++ {
			if i&0xffff == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			r.data = k.Append(r.data, i)
			r.offs[i-from+1] = int64(len(r.data))
		}
		lcp[w] = r.commonPrefix()
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if enc == nil {
		skip := math.MaxInt
		var first []byte
		for w, p := range lcp {
			if len(runs[w].entries) == 0 {
				continue
			}
			if first == nil {
				first, skip = p, len(p)
			}
			skip = min(skip, common(first, p))
		}
		if skip == math.MaxInt {
			skip = 0
		}
		err = parallel(ctx, rt, workers, func(ctx context.Context, w int) error { return runs[w].sortKeys(ctx, skip) })
		if err != nil {
			return nil, nil, err
		}
	}
	order, err = mergeRuns(ctx, runs, n)
	return order, giveBack, err
}

func common(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// commonPrefix returns what all keys of the run begin with.
func (r *sortRun) commonPrefix() []byte {
	if len(r.entries) == 0 {
		return nil
	}
	p := r.data[r.offs[0]:r.offs[1]]
	for i := 1; i < len(r.entries) && len(p) > 0; i++ {
		p = p[:common(p, r.data[r.offs[i]:r.offs[i+1]])]
	}
	return p
}

// sortKeys sorts a run whose keys are in data.
func (r *sortRun) sortKeys(ctx context.Context, skip int) error {
	r.skip = skip
	for i := range r.entries {
		k := r.data[r.offs[i]+int64(skip) : r.offs[i+1]]
		r.entries[i] = sortEntry{prefix8(k), uint32(r.from + i)}
	}
	if err := radixSort(ctx, r.entries); err != nil {
		return err
	}
	// Put runs of equal prefixes in order.
	e := r.entries
	for i := 0; i < len(e); {
		j := i + 1
		for j < len(e) && e[j].key == e[i].key {
			j++
		}
		if j-i > 1 {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			slices.SortFunc(e[i:j], func(a, b sortEntry) int { return bytes.Compare(r.rest(a), r.rest(b)) })
		}
		i = j
	}
	return nil
}

func prefix8(k []byte) uint64 {
	if len(k) >= 8 {
		return binary.BigEndian.Uint64(k)
	}
	var b [8]byte
	copy(b[:], k)
	return binary.BigEndian.Uint64(b[:])
}

// mergeRuns merges sorted runs.
func mergeRuns(ctx context.Context, runs []sortRun, n int) ([]uint32, error) {
	out := make([]uint32, 0, n)
	if len(runs) == 1 {
		for _, e := range runs[0].entries {
			out = append(out, e.row)
		}
		return out, nil
	}
	at := make([]int, len(runs))
	less := func(a, b int) bool { // run a's head before run b's
		x, y := runs[a].entries[at[a]], runs[b].entries[at[b]]
		if x.key != y.key || runs[a].data == nil {
			return x.key < y.key
		}
		return bytes.Compare(runs[a].rest(x), runs[b].rest(y)) < 0
	}
	if len(runs) == 2 && runs[0].data == nil {
		a, b := runs[0].entries, runs[1].entries
		i, j := 0, 0
		for i < len(a) && j < len(b) {
			if b[j].key < a[i].key {
				out = append(out, b[j].row)
				j++
			} else {
				out = append(out, a[i].row)
				i++
			}
		}
		for ; i < len(a); i++ {
			out = append(out, a[i].row)
		}
		for ; j < len(b); j++ {
			out = append(out, b[j].row)
		}
		return out, nil
	}
	// A small heap of runs.
	var heap []int
	down := func(i int) {
		for {
			c := 2*i + 1
			if c >= len(heap) {
				return
			}
			if c+1 < len(heap) && less(heap[c+1], heap[c]) {
				c++
			}
			if !less(heap[c], heap[i]) {
				return
			}
			heap[i], heap[c] = heap[c], heap[i]
			i = c
		}
	}
	for w := range runs {
		if len(runs[w].entries) > 0 {
			heap = append(heap, w)
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		down(i)
	}
	for len(heap) > 0 {
		w := heap[0]
		out = append(out, runs[w].entries[at[w]].row)
		if len(out)&0xffff == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if at[w]++; at[w] == len(runs[w].entries) {
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		}
		down(0)
	}
	return out, nil
}

// radixSort sorts entries by key, stably: by bytes from the lowest, leaving out
// those in which no two keys differ. Small inputs are compared.
func radixSort(ctx context.Context, e []sortEntry) error {
	if len(e) < 256 {
		slices.SortStableFunc(e, func(a, b sortEntry) int {
			switch {
			case a.key < b.key:
				return -1
			case a.key > b.key:
				return 1
			}
			return 0
		})
		return nil
	}
	var or uint64
	and := ^uint64(0)
	sorted := true
	for i := range e {
		or |= e[i].key
		and &= e[i].key
		if i > 0 && e[i].key < e[i-1].key {
			sorted = false
		}
	}
	if sorted {
		return nil
	}
	differ := or ^ and
	tmp := make([]sortEntry, len(e))
	src, dst := e, tmp
	for shift := uint(0); shift < 64; shift += 8 {
		if differ>>shift&0xff == 0 {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var count [256]uint32
		for i := range src {
			count[src[i].key>>shift&0xff]++
		}
		sum := uint32(0)
		for i, c := range count {
			count[i] = sum
			sum += c
		}
		for i := range src {
			b := src[i].key >> shift & 0xff
			dst[count[b]] = src[i]
			count[b]++
		}
		src, dst = dst, src
	}
	if &src[0] != &e[0] {
		copy(e, src)
	}
	return nil
}

// encoderFor returns a function that fills in the keys of entries for rows
// [from, to) when all key columns together fit eight bytes, or nil.
func encoderFor(cols []vec.KeyColumn, arrs []arrow.Array) func(from, to int, e []sortEntry) {
	type part struct {
		fill func(from, to int, e []sortEntry, shift uint)
		bits uint
	}
	total := uint(0)
	var parts []part
	for i, c := range cols {
		a := arrs[i]
		bits := uint(0)
		var get func(j int) uint64
		switch a.(type) {
		case *array.Int16:
			v := vec.ViewOf[int16](a).V
			bits, get = 16, func(j int) uint64 { return uint64(uint16(v[j]) ^ 1<<15) }
		case *array.Int32, *array.Date32:
			v := vec.ViewOf[int32](a).V
			bits, get = 32, func(j int) uint64 { return uint64(uint32(v[j]) ^ 1<<31) }
		case *array.Int64, *array.Timestamp, *array.Time64:
			v := vec.ViewOf[int64](a).V
			bits, get = 64, func(j int) uint64 { return uint64(v[j]) ^ 1<<63 }
		case *array.Float64:
			v := vec.ViewOf[float64](a).V
			bits, get = 64, func(j int) uint64 { return orderedBits(v[j]) }
		case *array.Decimal128:
			v, valid, off := vec.ViewDec(a)
			for j, x := range v {
				if (valid == nil || vec.BitAt(valid, off+j)) && x.HighBits() != int64(x.LowBits())>>63 {
					return nil
				}
			}
			bits, get = 64, func(j int) uint64 { return v[j].LowBits() ^ 1<<63 }
		default:
			return nil
		}
		valid, off := vec.Validity(a)
		desc, first := c.Desc, c.NullsFirst
		if valid != nil {
			if bits == 64 {
				return shrinkEncoder(cols, a, get, valid, off, desc, first)
			}
			bits++ // a bit for NULL
		}
		width := bits
		if total += width; total > 64 {
			return nil
		}
		one := get
		parts = append(parts, part{bits: width, fill: func(from, to int, e []sortEntry, shift uint) {
			inv := uint64(0)
			if desc {
				inv = 1<<width - 1
				if width == 64 {
					inv = ^uint64(0)
				}
			}
			if valid == nil {
				for j := from; j < to; j++ {
					e[j-from].key |= (one(j) ^ inv) << shift
				}
				return
			}
			top := uint64(1) << (width - 1)
			for j := from; j < to; j++ {
				var x uint64
				switch {
				case vec.BitAt(valid, off+j):
					x = (one(j) ^ inv) & (top - 1)
					if first {
						x |= top
					}
				case !first:
					x = top
				}
				e[j-from].key |= x << shift
			}
		}})
	}
	return func(from, to int, e []sortEntry) {
		shift := total
		for _, p := range parts {
			shift -= p.bits
			p.fill(from, to, e, shift)
		}
	}
}

// shrinkEncoder is for one 64-bit column with NULLs: it works when the values
// leave one code free for NULL, which is nearly always.
func shrinkEncoder(cols []vec.KeyColumn, a arrow.Array, get func(int) uint64, valid []byte, off int, desc, first bool) func(from, to int, e []sortEntry) {
	if len(cols) != 1 {
		return nil
	}
	free := uint64(math.MaxUint64)
	if first {
		free = 0
	}
	for j := range a.Len() {
		if vec.BitAt(valid, off+j) {
			x := get(j)
			if desc {
				x = ^x
			}
			if x == free {
				return nil
			}
		}
	}
	return func(from, to int, e []sortEntry) {
		for j := from; j < to; j++ {
			x := free
			if vec.BitAt(valid, off+j) {
				if x = get(j); desc {
					x = ^x
				}
			}
			e[j-from].key = x
		}
	}
}

func orderedBits(f float64) uint64 {
	b := vec.FloatBits(f)
	if f != f {
		return math.MaxUint64
	}
	if b>>63 == 1 {
		return ^b
	}
	return b | 1<<63
}
