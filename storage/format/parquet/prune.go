package parquet

import (
	"context"
	"errors"
	"strings"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
)

// Pruning asks of every node: which rows may make it true? A negated node asks
// which rows may make it false, which is not the complement, as NULL is
// neither. A leaf is answered with the statistics of the row group, then of the
// pages, then for equality by the chunk's bloom filter and dictionary; AND
// intersects and OR joins what its parts say. Row ranges, not pages, are the
// currency because pages of different columns do not line up.
//
// Statistics that cannot be read or trusted answer "all rows".

// Prune returns the row ranges that may hold a row for which p is true.
func (r *Reader) Prune(ctx context.Context, p predicate.Node, c *format.Counters) (out []format.RowRange, err error) {
	defer func() {
		if x := recover(); x != nil { // the last resort: a bug met by odd bytes
			out, err = nil, r.corrupt(-1, "reading statistics went wrong: %v", x)
		}
	}()
	if c == nil {
		c = &format.Counters{}
	}
	before := r.Bytes()
	for g := range r.meta.groups {
		rg := &r.meta.groups[g]
		c.RowGroups++
		c.Rows += rg.rows
		if rg.rows == 0 {
			continue
		}
		rs := ranges{{From: 0, To: rg.rows}}
		if p != nil {
			q := pruner{r: r, g: g, rows: rg.rows, c: c}
			if rs, err = q.eval(ctx, p, false); err != nil {
				return nil, err
			}
		}
		if len(rs) == 0 {
			c.RowGroupsSkipped++
		}
		c.RowsSkipped += rg.rows - rs.rows()
		for _, x := range rs {
			x.From += rg.first
			x.To += rg.first
			if n := len(out); n > 0 && out[n-1].To == x.From {
				out[n-1].To = x.To
				continue
			}
			out = append(out, x)
		}
	}
	c.BytesRead += r.Bytes() - before
	return out, nil
}

// ranges are row ranges of a row group, ascending, disjoint and not empty.
type ranges []format.RowRange

func (a ranges) rows() int64 {
	n := int64(0)
	for _, r := range a {
		n += r.To - r.From
	}
	return n
}

// add appends a range that does not begin before the last one.
func (a ranges) add(from, to int64) ranges {
	if from >= to {
		return a
	}
	if n := len(a); n > 0 && from <= a[n-1].To {
		a[n-1].To = max(a[n-1].To, to)
		return a
	}
	return append(a, format.RowRange{From: from, To: to})
}

func intersect(a, b ranges) ranges {
	var out ranges
	for i, j := 0, 0; i < len(a) && j < len(b); {
		out = out.add(max(a[i].From, b[j].From), min(a[i].To, b[j].To))
		if a[i].To < b[j].To {
			i++
		} else {
			j++
		}
	}
	return out
}

func union(a, b ranges) ranges {
	var out ranges
	for i, j := 0, 0; i < len(a) || j < len(b); {
		if j == len(b) || i < len(a) && a[i].From <= b[j].From {
			out = out.add(a[i].From, a[i].To)
			i++
		} else {
			out = out.add(b[j].From, b[j].To)
			j++
		}
	}
	return out
}

// pruner evaluates a predicate over one row group.
type pruner struct {
	r    *Reader
	g    int
	rows int64
	c    *format.Counters
}

func (p *pruner) all() ranges { return ranges{{From: 0, To: p.rows}} }

// eval returns the rows for which n may be true, or with not, false.
func (p *pruner) eval(ctx context.Context, n predicate.Node, not bool) (ranges, error) {
	switch n := n.(type) {
	case *predicate.Leaf:
		return p.leaf(ctx, n, not)
	case *predicate.Not:
		if n.Arg == nil {
			return p.all(), nil
		}
		return p.eval(ctx, n.Arg, !not)
	case *predicate.And:
		return p.combine(ctx, n.Args, not, !not)
	case *predicate.Or:
		return p.combine(ctx, n.Args, not, not)
	}
	return p.all(), nil
}

// combine intersects what the parts say, or joins it.
func (p *pruner) combine(ctx context.Context, args []predicate.Node, not, and bool) (ranges, error) {
	var out ranges
	if and {
		out = p.all()
	}
	for _, a := range args {
		rs := p.all()
		if a != nil {
			var err error
			if rs, err = p.eval(ctx, a, not); err != nil {
				return nil, err
			}
		}
		if and {
			if out = intersect(out, rs); len(out) == 0 {
				return nil, nil
			}
		} else if out = union(out, rs); out.rows() == p.rows {
			return out, nil
		}
	}
	return out, nil
}

func (p *pruner) leaf(ctx context.Context, l *predicate.Leaf, not bool) (ranges, error) {
	if l.Col < 0 || l.Col >= len(p.r.cols) {
		return p.all(), nil
	}
	b := p.r.cols[l.Col]
	if b.kind == kMissing { // every value is NULL
		if l.Op == predicate.IsNull && !not || l.Op == predicate.IsNotNull && not {
			return p.all(), nil
		}
		return nil, nil
	}
	if !b.isFlat() {
		return p.all(), nil
	}
	t := test{op: l.Op, not: not, args: l.Args, t: b.t}
	st := p.r.newStatReader(b.leaf)
	if !t.may(st.chunk(p.g)) {
		return nil, nil
	}
	rs, err := p.pages(ctx, st, &t)
	if err != nil || len(rs) == 0 || not || (l.Op != predicate.Eq && l.Op != predicate.In) {
		return rs, err
	}
	for _, look := range []func(context.Context, *bnode, []types.Datum) (bool, error){p.bloom, p.dictionary} {
		may, err := look(ctx, b, l.Args)
		if err != nil {
			return nil, err
		}
		if !may {
			return nil, nil
		}
	}
	return rs, nil
}

// pages tests the pages of a column by the page index.
func (p *pruner) pages(ctx context.Context, st *statReader, t *test) (ranges, error) {
	ci, err := p.r.columnIndex(ctx, p.g, st.l.col)
	if err != nil || ci == nil {
		return p.all(), err
	}
	locs, err := p.r.offsetIndex(ctx, p.g, st.l.col)
	if err != nil || len(locs) != len(ci.nullPages) {
		return p.all(), err
	}
	var out ranges
	for i := range locs {
		end := p.rows
		if i+1 < len(locs) {
			end = locs[i+1].first
		}
		p.c.Pages++
		if t.may(st.page(ci, i, end-locs[i].first)) {
			out = out.add(locs[i].first, end)
		} else {
			p.c.PagesSkipped++
		}
	}
	return out, nil
}

// columnIndex returns the statistics of a chunk's pages, nil when there are none.
func (r *Reader) columnIndex(ctx context.Context, g, col int) (*columnIndex, error) {
	m := &r.meta.groups[g].cols[col]
	if m.columnIndexLen <= 0 || m.columnIndexOff <= 0 {
		return nil, nil
	}
	c := r.cache(g, col)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasCols {
		return c.cols, nil
	}
	b, err := r.readAt(ctx, m.columnIndexOff, int(m.columnIndexLen), nil)
	if err != nil {
		return nil, err
	}
	x, err := parseColumnIndex(b)
	if err != nil {
		return nil, &fileio.CorruptionError{Path: r.f.Path(), Offset: m.columnIndexOff, Reason: "column index of " + r.leaves[col].el.name, Err: err}
	}
	c.cols, c.hasCols = x, true
	return x, nil
}

// dictionary reports whether an argument is among the values of a chunk all of
// whose pages are dictionary-encoded; true when that cannot be said.
func (p *pruner) dictionary(ctx context.Context, b *bnode, args []types.Datum) (bool, error) {
	m := &p.r.meta.groups[p.g].cols[b.leaf.col]
	if !allDictionary(m) {
		return true, nil
	}
	w := window{r: p.r}
	w.reset(nil, p.r.chunkSpan(p.g, b.leaf.col).end)
	d, err := p.r.dictionary(ctx, p.g, b.leaf, newSink(b.leaf, b.dt, b.t.IsTextLike()), &w)
	putBuf(w.buf)
	if err != nil {
		var u *fileio.UnsupportedError
		if errors.As(err, &u) { // a value that Arrow cannot hold: say so on reading
			return true, nil
		}
		return true, err
	}
	for _, a := range args {
		if inDictionary(d, b.t, a) {
			return true, nil
		}
	}
	return false, nil
}

// allDictionary reports whether no page of the chunk holds plain values.
func allDictionary(m *chunkMeta) bool {
	isDict := func(e int32) bool { return e == encPlainDict || e == encRLEDict }
	seen := false
	if len(m.encStats) > 0 {
		for _, s := range m.encStats {
			if s.page != pageData && s.page != pageDataV2 {
				continue
			}
			if !isDict(s.enc) && s.count != 0 {
				return false
			}
			seen = true
		}
		return seen
	}
	for _, e := range m.encodings {
		switch {
		case e == encPlainDict || e == encRLEDict:
			seen = true
		case e != encRLE && e != encBitPacked:
			return false
		}
	}
	return seen && m.typ != pBool
}

// inDictionary reports whether a equals one of the dictionary's values, or
// cannot be compared with them.
func inDictionary(d any, t types.Type, a types.Datum) bool {
	switch d := d.(type) {
	case []int16:
		v, ok := a.(int64)
		return !ok || hasValue(d, func(x int16) bool { return int64(x) == v })
	case []int32:
		if f, ok := a.(float64); ok {
			return hasValue(d, func(x int32) bool { return cmpFloat(float32bits(x), f) == 0 })
		}
		v, ok := a.(int64)
		return !ok || hasValue(d, func(x int32) bool { return int64(x) == v })
	case []int64:
		if f, ok := a.(float64); ok {
			return hasValue(d, func(x int64) bool { return cmpFloat(float64bits(x), f) == 0 })
		}
		v, ok := a.(int64)
		return !ok || hasValue(d, func(x int64) bool { return x == v })
	case []dec:
		v, exact, ok := decOf(a, t)
		return !ok || exact && hasValue(d, func(x dec) bool { return x == v })
	case *byteDict:
		v, ok := bytesOf(a)
		if !ok {
			return true
		}
		if t.Kind == types.BpChar {
			v = strings.TrimRight(v, " ")
		}
		for i := 0; i < d.len(); i++ {
			x := string(d.data[d.offs[i]:d.offs[i+1]])
			if x == v || t.Kind == types.BpChar && strings.TrimRight(x, " ") == v {
				return true
			}
		}
		return false
	}
	return true
}

func hasValue[T any](d []T, is func(T) bool) bool {
	for _, x := range d {
		if is(x) {
			return true
		}
	}
	return false
}
