package catalog

import (
	"context"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// elements are the table's columns that columns of a $binlog are made of, the row
// kind last; at says where each of want is among them.
func (d *derived) elements(want []int) (cols, at []int) {
	at = make([]int, len(want))
	for i, c := range want {
		if c < 0 || d.src[c] == table.PseudoKind {
			at[i] = -1
			continue
		}
		at[i] = len(cols)
		cols = append(cols, d.src[c])
	}
	return append(cols, table.PseudoKind), at
}

// readPairs reads a split of $binlog. In a range of changes a -U and the row behind
// it are one row, of two-element arrays and the kind of the second; every other row
// is one of one-element arrays. Source: BinlogTable.java, PackChangelogReader.java.
func (d *derived) readPairs(ctx context.Context, s table.Scan, want []int, p table.Split, o table.ReadOptions) (table.SplitReader, error) {
	r := &pairReader{d: d, want: want, filter: o.Filter}
	_, r.at = d.elements(want)
	if inc := d.t.incremental; inc != nil {
		r.pairs = inc.Mode != table.IncrementalDiff
	}
	for _, c := range want {
		r.fields = append(r.fields, d.cols[c].Field)
	}
	o.Filter = nil
	var err error
	r.in, err = d.t.Read(ctx, d.scan(s), p, o)
	return r, err
}

type pairReader struct {
	in     table.SplitReader
	d      *derived
	want   []int
	at     []int // where each wanted column's elements are, -1 = the row kind
	fields types.Schema
	filter table.RowFilter
	pairs  bool

	carry []arrow.Array // a -U that the next batch may pair
	done  bool
}

// Next returns the next batch.
func (r *pairReader) Next(ctx context.Context) (*vec.Batch, error) {
	for !r.done {
		b, err := r.in.Next(ctx)
		if err != nil {
			return nil, err
		}
		var out *vec.Batch
		if b == nil {
			if r.done = true; r.carry == nil {
				break
			}
			out = r.pack(nil, 0)
		} else {
			b = vec.Compact(b)
			out = r.pack(b.Cols, b.N)
		}
		if out.N == 0 {
			continue
		}
		if r.filter == nil {
			return out, nil
		}
		f := &vec.Batch{N: out.N}
		for _, c := range r.filter.Columns() {
			f.Schema, f.Cols = append(f.Schema, out.Schema[c]), append(f.Cols, out.Cols[c])
		}
		sel, err := r.filter.Select(ctx, f)
		if err != nil {
			return nil, err
		}
		if len(sel) > 0 {
			out.Sel = append([]uint16(nil), sel...)
			return out, nil
		}
	}
	return nil, nil
}

// pack makes rows of n rows that stand behind the one carried over; cols nil says
// that there are no more.
func (r *pairReader) pack(cols []arrow.Array, n int) *vec.Batch {
	width := r.width()
	kindOf := func(a arrow.Array) []int16 { return vec.ViewOf[int16](a).V }
	// Elements of the arrays, as rows of the carried row (0) and of the batch (1).
	src, row := make([]uint16, 0, n+1), make([]uint32, 0, n+1)
	off := []int32{0}
	var kinds []int16
	take := func(s uint16, i int) { src, row = append(src, s), append(row, uint32(i)) }
	end := func(k int16) { off, kinds = append(off, int32(len(src))), append(kinds, k) }
	carried := r.carry
	i := 0
	if carried != nil {
		take(0, 0)
		if n > 0 {
			take(1, 0)
			end(kindOf(cols[width])[0])
			i = 1
		} else {
			end(1)
		}
		r.carry = nil
	}
	if n > 0 {
		ks := kindOf(cols[width])
		for ; i < n; i++ {
			switch {
			case !r.pairs || ks[i] != 1:
				take(1, i)
				end(ks[i])
			case i+1 < n:
				take(1, i)
				take(1, i+1)
				end(ks[i+1])
				i++
			default:
				r.carry = make([]arrow.Array, len(cols))
				for c, a := range cols {
					r.carry[c] = vec.Slice(a, i, i+1)
				}
			}
		}
	}
	first := make([]uint32, len(kinds)) // each row's first element
	for k := range first {
		first[k] = uint32(off[k])
	}
	out := &vec.Batch{Schema: r.fields, N: len(kinds)}
	for w, c := range r.want {
		if r.at[w] < 0 {
			out.Cols = append(out.Cols, kindText(vec.Make(arrow.PrimitiveTypes.Int16, kinds, nil)))
			continue
		}
		srcs := make([]arrow.Array, 2)
		var dt arrow.DataType
		for k, from := range [][]arrow.Array{carried, cols} {
			if from != nil {
				srcs[k] = from[r.at[w]]
				dt = vec.Plain(srcs[k].DataType())
			}
		}
		child := vec.Decode(vec.Gather(dt, srcs, src, row))
		if r.d.src[c] < 0 { // the sequence number of the first
			out.Cols = append(out.Cols, vec.Take(child, first))
			continue
		}
		out.Cols = append(out.Cols, vec.MakeList(arrow.ListOf(child.DataType()), off, child, nil))
	}
	return out
}

func (r *pairReader) width() int {
	n := 0
	for _, a := range r.at {
		if a >= 0 {
			n++
		}
	}
	return n
}

// Close closes the reader inside.
func (r *pairReader) Close() error {
	r.done = true
	return r.in.Close()
}
