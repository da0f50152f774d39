package parquet

import (
	"context"
	"encoding/binary"
	"math/bits"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// column reads one wanted column. A batch is built in parts, which lie in one
// row group each: begin, part..., finish.
type column interface {
	// start goes to row from of row group g.
	start(ctx context.Context, g int, runs *runSet, from int64) error
	// begin starts an array of n rows.
	begin(n int)
	// part consumes rows of the row group; keep, when not nil, are the wanted
	// ones among them, as positions from base on.
	part(ctx context.Context, rows int, keep []uint16, base int) error
	finish() (arrow.Array, error)
	close()
}

// flatColumn reads a top-level scalar: definition levels of one bit, which are a
// validity bitmap already, and values.
type flatColumn struct {
	chunkReader
	size  int // rows of the array being built
	pos   int // of which are done
	nulls int
	valid []byte // nil while no NULL has been met
	bits  []byte // validity of a page's rows, when only some are wanted
	sel   []int32
}

func newFlat(r *Reader, b *bnode, decoded *int64) *flatColumn {
	return &flatColumn{chunkReader: chunkReader{r: r, leaf: b.leaf, decoded: decoded, sink: newSink(b.leaf, b.dt, b.t.IsTextLike())}}
}

func (f *flatColumn) start(ctx context.Context, g int, runs *runSet, from int64) error {
	from, err := f.chunkReader.start(ctx, g, runs, from)
	if err != nil {
		return err
	}
	return f.skipRows(ctx, from)
}

func (f *flatColumn) begin(n int) {
	f.size, f.pos, f.nulls, f.valid = n, 0, 0, nil
	f.sink.begin(n)
}

func (f *flatColumn) part(ctx context.Context, rows int, keep []uint16, base int) error {
	end := base + rows
	for base < end {
		if err := f.open(ctx); err != nil {
			return err
		}
		k := min(end-base, f.pg.left)
		var err error
		if keep == nil {
			err = f.rowsOf(ctx, k)
		} else {
			j := len(keep)
			if j > 0 && int(keep[j-1]) >= base+k {
				j = search(keep, base+k)
			}
			if j == 0 {
				f.pass(k)
			} else {
				err = f.keptOf(ctx, k, keep[:j], base)
			}
			keep = keep[j:]
		}
		if err != nil {
			return f.corrupt(f.pg.off, err)
		}
		base += k
	}
	return nil
}

// search returns the first index of keep whose entry is at least x.
func search(keep []uint16, x int) int {
	lo, hi := 0, len(keep)
	for lo < hi {
		m := (lo + hi) / 2
		if int(keep[m]) < x {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

func (f *flatColumn) ready(ctx context.Context) error {
	if err := f.load(ctx); err != nil {
		return err
	}
	return f.catchUp()
}

// rowsOf decodes the next k rows of the current page.
func (f *flatColumn) rowsOf(ctx context.Context, k int) error {
	if err := f.ready(ctx); err != nil {
		return err
	}
	p := &f.pg
	p.left -= k
	pos := f.pos
	f.pos += k
	if !p.hasDef || p.def.allOnes(k) {
		if f.valid != nil {
			setBits(f.valid, pos, k)
		}
		return f.sink.take(&p.vals, pos, k)
	}
	f.needValid(pos)
	ones, err := p.def.ones(f.valid, pos, k)
	if err != nil {
		return err
	}
	if ones > 0 {
		if err := f.sink.take(&p.vals, pos, ones); err != nil {
			return err
		}
	}
	if ones < k {
		f.nulls += k - ones
		f.sink.spread(pos, k, ones, f.valid, pos)
	}
	return nil
}

// needValid makes the validity bitmap when there is none, with all rows before
// pos valid.
func (f *flatColumn) needValid(pos int) {
	if f.valid == nil {
		f.valid = make([]byte, vec.BitmapLen(f.size))
		setBits(f.valid, 0, pos)
	}
}

// keptOf decodes those of the next k rows of the current page that keep names,
// as positions from base on.
func (f *flatColumn) keptOf(ctx context.Context, k int, keep []uint16, base int) error {
	if err := f.ready(ctx); err != nil {
		return err
	}
	p := &f.pg
	p.left -= k
	pos := f.pos
	f.pos += len(keep)
	f.sel = grown(f.sel[:0], len(keep))
	sel := f.sel[:len(keep)]
	if !p.hasDef || p.def.allOnes(k) {
		if f.valid != nil {
			setBits(f.valid, pos, len(keep))
		}
		for i, x := range keep {
			sel[i] = int32(int(x) - base)
		}
		return f.sink.pick(&p.vals, pos, sel, k)
	}
	f.needValid(pos)
	n := vec.BitmapLen(k) + 8
	f.bits = grown(f.bits[:0], n)
	clear(f.bits[:n])
	ones, err := p.def.ones(f.bits, 0, k)
	if err != nil {
		return err
	}
	m := rankKept(sel, keep, base, f.bits, f.valid, pos)
	if m > 0 {
		err = f.sink.pick(&p.vals, pos, sel[:m], ones)
	} else {
		err = p.vals.skip(ones)
	}
	if err != nil {
		return err
	}
	if m < len(keep) {
		f.nulls += len(keep) - m
		f.sink.spread(pos, len(keep), m, f.valid, pos)
	}
	return nil
}

// rankKept writes to sel, for each kept row that is not NULL, how many non-NULL
// rows lie before it, and sets its bit in valid from pos on. It returns their
// number. have is the validity of the rows from base on, with 8 bytes to spare.
func rankKept(sel []int32, keep []uint16, base int, have, valid []byte, pos int) int {
	m, word, rank := 0, 0, 0
	x := binary.LittleEndian.Uint64(have)
	for i, k := range keep {
		r := int(k) - base
		for word < r>>6 {
			rank += bits.OnesCount64(x)
			word++
			x = binary.LittleEndian.Uint64(have[8*word:])
		}
		sel[m] = int32(rank + bits.OnesCount64(x&(1<<(r&63)-1)))
		bit := x >> (r & 63) & 1
		m += int(bit)
		valid[(pos+i)>>3] |= byte(bit) << ((pos + i) & 7)
	}
	return m
}

func (f *flatColumn) finish() (arrow.Array, error) {
	v := f.valid
	if f.nulls == 0 {
		v = nil
	}
	f.valid = nil
	return f.sink.finish(f.pos, v), nil
}

// missingColumn stands for a column that the file does not have.
type missingColumn struct {
	dt arrow.DataType
	n  int
}

func (m *missingColumn) start(context.Context, int, *runSet, int64) error { return nil }
func (m *missingColumn) begin(n int)                                      { m.n = n }
func (m *missingColumn) part(context.Context, int, []uint16, int) error   { return nil }
func (m *missingColumn) finish() (arrow.Array, error)                     { return vec.MakeNull(m.dt, m.n), nil }
func (m *missingColumn) close()                                           {}
