package parquet

import (
	"cmp"
	"context"
	"slices"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// Late materialization: a filter has looked at its own columns, and each Read of the
// others is told by keep which rows are left. Their pages are then read when a row of
// them is wanted, not with the row group.
//
// A Read first finds the pages with wanted rows, of all columns; what is not there yet
// is read in a few pieces, with gaps where that is cheaper than another request. Where
// a column's pages are wanted one after the other, half as many are read ahead as were
// wanted in a row before, and as many where requests are dear: a filter that leaves rows everywhere soon reads as a scan
// does, and one that leaves few reads at most about twice what it must.
//
// Pages are known by the offset index. A column without one is read through a window of
// its own, which starts anew, and small, after each jump.

const (
	// lateWindow is the first read of a window after a jump: it must find a page's
	// header, and maybe the whole page.
	lateWindow = 32 << 10
	// nearBytes bounds a piece of a near file, whose requests are cheap, to what the
	// processor's caches hold until it is decoded.
	nearBytes = 1 << 20
)

// lateRuns are the runs of one row group, which come and go.
type lateRuns struct {
	set    *runSet
	gap    int64
	piece  int64 // at most so many bytes are read together, and ahead of one column
	leaves []lateLeaf
	some   func(from, to int64) bool // see format.Expecter; nil = all
	first  int64                     // of the row group, in the file
	rows   int64                     // of the row group
	to     int64                     // rows from here on are not read
	spans  []pageSpan
}

// lateLeaf is one column of the row group.
type lateLeaf struct {
	col  int
	locs []pageLoc
	dict span // read with the first page; empty = none, or known
	cur  int  // first page that ends after the rows that are done
	have int  // pages before this one are in a run, or will not be wanted
	used int  // the page wanted last, -1 = none
	row  int  // how many pages up to it were wanted one after the other
}

// pageSpan is a place in the file, and the first row that has no need of it.
type pageSpan struct {
	span
	upTo int64
}

// newLate prepares the pages of row group g for rows up to to of it.
func (c *columnReader) newLate(ctx context.Context, g int, from, to int64) (*lateRuns, error) {
	rg := &c.r.meta.groups[g]
	l := &lateRuns{set: &runSet{overlap: true}, gap: gapBytes, piece: maxWindow, some: c.some, first: rg.first, rows: rg.rows, to: to}
	if x, ok := c.r.f.(fileio.Gapper); ok {
		if l.gap = x.Gap(); l.gap < gapBytes {
			l.piece = nearBytes
		}
	}
	for _, lf := range c.r.leavesOf(c.want) {
		locs, err := c.r.offsetIndex(ctx, g, lf.col)
		if err != nil {
			return nil, err
		}
		if len(locs) == 0 {
			continue
		}
		x := lateLeaf{col: lf.col, locs: locs, used: -1}
		if s := c.r.chunkSpan(g, lf.col); s.off < locs[0].off && locs[0].off-s.off <= maxWindow && !lf.levelsOnly {
			cc := c.r.cache(g, lf.col)
			cc.mu.Lock()
			if !cc.hasDict {
				x.dict = span{s.off, locs[0].off}
			}
			cc.mu.Unlock()
		}
		if c.some != nil {
			c.expected(locs, g, from, to) // counts what is not
		}
		x.pass(from)
		l.leaves = append(l.leaves, x)
	}
	return l, nil
}

// pass moves on to the page that holds row.
func (x *lateLeaf) pass(row int64) {
	for x.cur+1 < len(x.locs) && x.locs[x.cur+1].first <= row {
		x.cur++
	}
}

// end returns the first row behind page i.
func (l *lateRuns) end(x *lateLeaf, i int) int64 {
	if i+1 < len(x.locs) {
		return x.locs[i+1].first
	}
	return l.rows
}

// want makes runs of the pages that the rows keep (nil = all) of [at, at+k) need and
// that are not there. keep counts from base on; rows are those of the row group.
func (l *lateRuns) want(r *Reader, g int, at int64, k int, keep []uint16, base int) {
	l.spans = l.spans[:0]
	stop := at + int64(k)
	for j := range l.leaves {
		x := &l.leaves[j]
		x.pass(at)
		rest := keep
		for i := x.cur; i < len(x.locs) && x.locs[i].first < stop; i++ {
			if keep != nil {
				n := search(rest, base+int(min(l.end(x, i), stop)-at))
				if rest = rest[n:]; n == 0 {
					continue
				}
			}
			l.wantPage(r, g, x, i)
		}
	}
	l.add(at)
}

// wantPage notes that page i of a column is wanted.
func (l *lateRuns) wantPage(r *Reader, g int, x *lateLeaf, i int) {
	if i != x.used {
		if x.used < 0 || i != x.used+1 {
			x.row = 0
		}
		x.row++
		x.used = i
	}
	if i < x.have {
		return
	}
	ahead, bytes := x.row/2-1, int64(0)
	if l.gap >= gapBytes {
		ahead = x.row - 1 // requests are dear
	}
	if x.dict.end > x.dict.off {
		l.spans = append(l.spans, pageSpan{x.dict, l.end(x, i)})
		x.dict = span{}
	}
	for x.have = i; x.have < len(x.locs); x.have++ {
		p := x.locs[x.have]
		if x.have > i {
			if x.have-i > ahead || p.first >= l.to || bytes+int64(p.size) > l.piece {
				return
			}
			if l.some != nil && !l.some(l.first+p.first, l.first+min(l.end(x, x.have), l.to)) {
				return
			}
			bytes += int64(p.size)
		}
		s := span{p.off, min(p.off+max(int64(p.size), headerGuess), r.size)}
		if r.here(s) || r.meta.groups[g].cols[x.col].codec != codecNone && r.pages.has(pageKey{r.f.Path(), r.size, p.off}) {
			continue
		}
		l.spans = append(l.spans, pageSpan{s, l.end(x, x.have)})
	}
}

// add makes runs of the spans and drops those of which no row after at has a need.
func (l *lateRuns) add(at int64) {
	if len(l.spans) == 0 {
		return
	}
	l.set.drop(at)
	runs := l.set.runs
	slices.SortFunc(l.spans, func(a, b pageSpan) int { return cmp.Compare(a.off, b.off) })
	var last *run
	for _, s := range l.spans {
		if last != nil && s.off <= last.end+l.gap && s.end-last.off <= l.piece {
			last.end, last.upTo = max(last.end, s.end), max(last.upTo, s.upTo)
			continue
		}
		last = &run{span: s.span, upTo: s.upTo}
		runs = append(runs, last)
	}
	slices.SortStableFunc(runs, func(a, b *run) int { return cmp.Compare(a.off, b.off) })
	l.set.runs = runs
}

// here reports whether bytes of the file are in memory.
func (r *Reader) here(s span) bool {
	return r.mem != nil && s.off >= r.memOff && s.end <= r.memOff+int64(len(r.mem))
}
