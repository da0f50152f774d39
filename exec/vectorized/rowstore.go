package vectorized

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// rowStore holds all rows of an input, column by column, for random access.
type rowStore struct {
	schema types.Schema
	cols   []colStore
	n      int
	acc    *mem.Account
	bytes  int64
}

// colStore is one column: one array, or several where text is too long for one.
type colStore struct {
	parts  []arrow.Array // nil: the column is not needed
	starts []int32
}

// maxPart bounds the bytes of one array of a rowStore: offsets are int32.
const maxPart = 1 << 30

// take returns rows idx; with null, negative ones become NULL.
func (c *colStore) take(dt arrow.DataType, idx []int32, null bool) arrow.Array {
	switch {
	case len(c.parts) == 0:
		return vec.MakeNull(dt, len(idx))
	case len(c.parts) == 1 && null:
		return vec.TakeNull(c.parts[0], idx)
	case len(c.parts) == 1:
		return vec.Take(c.parts[0], idx)
	}
	srcs := append([]arrow.Array{vec.MakeNull(vec.Plain(c.parts[0].DataType()), 1)}, c.parts...)
	src, row := make([]uint16, len(idx)), make([]uint32, len(idx))
	for k, i := range idx {
		if i < 0 {
			continue
		}
		p := len(c.starts) - 1
		for c.starts[p] > i {
			p--
		}
		src[k], row[k] = uint16(p+1), uint32(i-c.starts[p])
	}
	return vec.Gather(dt, srcs, src, row)
}

// slice returns rows [from, to).
func (c *colStore) slice(dt arrow.DataType, from, to int) arrow.Array {
	if len(c.parts) == 1 {
		return vec.Slice(c.parts[0], from, to)
	}
	if len(c.parts) == 0 {
		return vec.MakeNull(dt, to-from)
	}
	var out []arrow.Array
	for p, a := range c.parts {
		s := int(c.starts[p])
		if lo, hi := max(from, s), min(to, s+a.Len()); lo < hi {
			out = append(out, vec.Slice(a, lo-s, hi-s))
		}
	}
	return vec.Concat(dt, out)
}

// batch returns rows [from, to) of the needed columns.
func (r *rowStore) batch(from, to int) *vec.Batch {
	out := &vec.Batch{Schema: r.schema, Cols: make([]arrow.Array, len(r.cols)), N: to - from}
	for i := range r.cols {
		if r.cols[i].parts != nil {
			out.Cols[i] = r.cols[i].slice(r.schema[i].Type.Arrow(), from, to)
		}
	}
	return out
}

func (r *rowStore) free() {
	r.acc.Shrink(r.bytes)
	r.cols, r.bytes = nil, 0
}

// collector is a sink that keeps all rows.
type collector struct {
	schema types.Schema
	need   []bool // nil = all
	acc    *mem.Account
	mu     sync.Mutex // guards parts and bytes
	parts  []*vec.Batch
	bytes  int64
	// onBatch, when set, sees each batch before it is kept and may replace it.
	onBatch func(w int) (func(ctx context.Context, b *vec.Batch) (*vec.Batch, error), error)
}

func (c *collector) local(w int) (localSink, error) {
	l := &collectLocal{c: c}
	if c.onBatch != nil {
		var err error
		if l.on, err = c.onBatch(w); err != nil {
			return nil, err
		}
	}
	return l, nil
}

type collectLocal struct {
	c     *collector
	on    func(ctx context.Context, b *vec.Batch) (*vec.Batch, error)
	parts []*vec.Batch
	bytes int64
}

func (l *collectLocal) consume(ctx context.Context, b *vec.Batch) error {
	if l.on != nil {
		var err error
		if b, err = l.on(ctx, b); err != nil {
			return err
		}
	}
	size := int64(200)
	for i, a := range b.Cols {
		if a == nil || l.c.need != nil && i < len(l.c.need) && !l.c.need[i] {
			continue
		}
		s := vec.Size(a)
		if b.Sel != nil && b.N > 0 {
			s = s * int64(len(b.Sel)) / int64(b.N)
		}
		size += s
	}
	if err := l.c.acc.Grow(size); err != nil {
		return err
	}
	l.bytes += size
	out := &vec.Batch{Schema: b.Schema, Cols: make([]arrow.Array, len(b.Cols)), N: b.Size()}
	for i, a := range b.Cols {
		if a != nil && (l.c.need == nil || i >= len(l.c.need) || l.c.need[i]) {
			out.Cols[i] = vec.FilterSel(a, b.Sel)
		}
	}
	l.parts = append(l.parts, out)
	return nil
}

func (l *collectLocal) combine(context.Context) error {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	l.c.parts = append(l.c.parts, l.parts...)
	l.c.bytes += l.bytes
	return nil
}

// store joins what was collected, a column at a time per worker, so that few
// columns are held twice.
func (c *collector) store(ctx context.Context, rt *runtimeEnv) (*rowStore, error) {
	r := &rowStore{schema: c.schema, acc: c.acc, bytes: c.bytes}
	width := len(c.schema)
	for _, p := range c.parts {
		width = max(width, len(p.Cols))
	}
	r.cols = make([]colStore, width)
	for _, p := range c.parts {
		r.n += p.N
	}
	if r.n > 1<<31-1 {
		return nil, internalf("more than 2^31 rows in one join or sort")
	}
	workers := 1
	if r.n >= 1<<16 {
		workers = min(rt.workers, width)
	}
	var at atomic.Int64
	err := parallel(ctx, rt, max(1, workers), func(ctx context.Context, _ int) error {
		for {
			i := int(at.Add(1)) - 1
			if i >= width {
				return nil
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := c.join(&r.cols[i], i); err != nil {
				return err
			}
		}
	})
	if err != nil {
		return nil, err
	}
	c.parts = nil
	return r, nil
}

// join makes column i of what was collected and drops its parts.
func (c *collector) join(to *colStore, i int) error {
	var arrs []arrow.Array
	size, start, rows := int64(0), 0, 0
	flush := func() error {
		if len(arrs) == 0 {
			return nil
		}
		if len(arrs) > 1 {
			if err := c.acc.Grow(size); err != nil {
				return err
			}
			defer c.acc.Shrink(size)
		}
		to.parts = append(to.parts, vec.Concat(arrs[0].DataType(), arrs))
		to.starts = append(to.starts, int32(start))
		arrs, size, start = nil, 0, rows
		return nil
	}
	for _, p := range c.parts {
		if p.Cols[i] == nil {
			continue
		}
		s := vec.Size(p.Cols[i])
		if vec.IsDict(p.Cols[i]) && (len(arrs) == 0 || !vec.SameDict(arrs[0], p.Cols[i])) {
			s = decodedSize(p.Cols[i])
		}
		if size+s > maxPart {
			if err := flush(); err != nil {
				return err
			}
		}
		arrs, size = append(arrs, p.Cols[i]), size+s
		rows += p.N
		p.Cols[i] = nil
	}
	return flush()
}

// decodedSize bounds the text bytes of a dictionary column once decoded.
func decodedSize(a arrow.Array) int64 {
	r := readStrings(a)
	n := int64(0)
	for i := range a.Len() {
		if !r.null(i) {
			n += int64(len(r.at(i)))
		}
	}
	return n + 4*int64(a.Len())
}
