package parquet

import (
	"bytes"
	"context"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// Nested columns are read leaf by leaf. Each leaf yields, for the rows of a
// batch, its definition and repetition levels and its values; rows that are not
// kept are left out here already, so that assembly (assemble.go) deals with
// nothing but what is returned.

// levelChunk is how many levels are decoded at a time.
const levelChunk = 4096

// maxEntries bounds the levels that one batch may unfold to: runs of NULLs in
// lists take no bytes, so the file's size says nothing. The size of the file is
// added to it.
const maxEntries = 1 << 25

// nestedLeaf reads one leaf of a nested column.
type nestedLeaf struct {
	chunkReader
	// Levels of the current page that are decoded but not consumed.
	defBuf, repBuf []uint8
	bufAt          int

	// The batch so far.
	defs, reps []uint8
	vals       int // values in the sink
	last       int // slots of the batch before

	// Values of the page that have been passed since the last flush, and those
	// of them that are wanted (all, when keeping everything).
	passed int
	sel    []int32
}

// nestedColumn reads a column with structure.
type nestedColumn struct {
	b      *bnode
	r      *Reader
	leaves []*nestedLeaf
	of     map[*leaf]*nestedLeaf
	rows   int
}

func newNested(r *Reader, b *bnode, decoded *int64) *nestedColumn {
	c := &nestedColumn{b: b, r: r, of: map[*leaf]*nestedLeaf{}}
	var visit func(b *bnode)
	visit = func(b *bnode) {
		if l := b.leaf; l != nil && (b.kind == kLeaf || l.levelsOnly) && c.of[l] == nil {
			nl := &nestedLeaf{chunkReader: chunkReader{r: r, leaf: l, decoded: decoded}}
			if !l.levelsOnly {
				nl.sink = newSink(l, b.dt, false)
			}
			c.of[l] = nl
			c.leaves = append(c.leaves, nl)
		}
		for _, k := range b.children {
			visit(k)
		}
	}
	visit(b)
	return c
}

func (c *nestedColumn) start(ctx context.Context, g int, runs *runSet, from int64) error {
	for _, l := range c.leaves {
		l.defBuf, l.repBuf, l.bufAt = l.defBuf[:0], l.repBuf[:0], 0
		n, err := l.start(ctx, g, runs, from)
		if err != nil {
			return err
		}
		if n > 0 {
			if err := l.part(ctx, int(n), []uint16{}, 0); err != nil {
				return l.corrupt(l.pg.off, err)
			}
		}
	}
	return nil
}

func (c *nestedColumn) begin(n int) {
	c.rows = n
	for _, l := range c.leaves {
		l.defs, l.reps, l.vals = l.defs[:0], l.reps[:0], 0
		if l.sink != nil { // batches tend to be alike
			l.sink.begin(min(l.last+l.last/8, 8*vec.MaxRows))
		}
	}
}

func (c *nestedColumn) part(ctx context.Context, rows int, keep []uint16, base int) error {
	for _, l := range c.leaves {
		if err := l.part(ctx, rows, keep, base); err != nil {
			return l.corrupt(l.pg.off, err)
		}
	}
	return nil
}

func (c *nestedColumn) finish() (arrow.Array, error) {
	a := assembly{c: c}
	arr, err := a.build(c.b, c.rows)
	if err != nil {
		return nil, &fileio.CorruptionError{Path: c.r.f.Path(), Offset: -1, Reason: "column " + c.b.name(), Err: err}
	}
	return arr, nil
}

func (c *nestedColumn) close() {
	for _, l := range c.leaves {
		l.close()
	}
}

// part consumes n records. A record begins with a repetition level of 0 and ends
// before the next one, which may lie in a later page.
func (l *nestedLeaf) part(ctx context.Context, n int, keep []uint16, base int) error {
	begun := 0
	kept := false
	for n > 0 {
		if l.bufAt == len(l.defBuf) {
			more, err := l.refill(ctx, n, &begun, keep, base)
			if err != nil || !more {
				return err
			}
		}
		var end int
		var err error
		if keep == nil {
			end, err = l.takeAll(n, &begun)
		} else {
			end, err = l.takeKept(n, &begun, &kept, keep, base)
		}
		if err != nil {
			return err
		}
		l.bufAt = end
		if end < len(l.defBuf) {
			return l.flush(keep == nil)
		}
		if len(l.defs) > maxEntries && int64(len(l.defs)) > maxEntries+8*l.r.size {
			return errTooMuch
		}
	}
	return nil
}

// refill decodes more levels, from the next page if this one is used up. It
// reports false when n records have been begun and are known to be complete.
func (l *nestedLeaf) refill(ctx context.Context, n int, begun *int, keep []uint16, base int) (bool, error) {
	p := &l.pg
	for !p.loaded || p.entries == 0 {
		if p.loaded {
			if err := l.flush(keep == nil); err != nil {
				return false, err
			}
			if p.rows >= 0 && p.left != 0 {
				return false, l.corruptf(p.off, "the page has fewer rows than its header or the index says")
			}
			p.loaded, p.left = false, 0
		}
		if *begun == n && !l.mayContinue() {
			return false, nil
		}
		if p.left == 0 {
			if err := l.nextPage(ctx); err != nil {
				return false, err
			}
			continue
		}
		if p.rows >= 0 && keep != nil { // rows that nobody wants at the page's start
			k := min(n-*begun, p.left)
			if j := search(keep, base+*begun); j == len(keep) || int(keep[j]) >= base+*begun+k {
				l.pass(k)
				*begun += k
				if p.left > 0 {
					return false, nil
				}
				continue
			}
		}
		if err := l.load(ctx); err != nil {
			return false, err
		}
		if p.rows < 0 {
			p.left = 0
		}
		if k := p.skipped; k > 0 {
			p.skipped = 0
			if err := l.drop(k); err != nil {
				return false, err
			}
			if l.bufAt < len(l.defBuf) {
				return true, nil
			}
		}
	}
	return true, l.decode()
}

// mayContinue reports whether the page to come may begin in mid-record.
func (l *nestedLeaf) mayContinue() bool {
	return l.idx == nil && l.leaf.node.rep > 0 && l.pg.spans && l.pg.left == 0 && l.at < l.end || l.pg.spans && l.pg.left == 1
}

// decode fills the buffers with the next levels of the page.
func (l *nestedLeaf) decode() error {
	p := &l.pg
	k := min(levelChunk, p.entries)
	first := p.entries == int(p.hdr.values)
	l.defBuf = grown(l.defBuf[:0], k)[:k]
	l.repBuf = grown(l.repBuf[:0], k)[:k]
	l.bufAt = 0
	if p.hasDef {
		if err := p.def.levels(l.defBuf); err != nil {
			return err
		}
	} else {
		clear(l.defBuf)
	}
	if p.hasRep {
		if err := p.rep.levels(l.repBuf); err != nil {
			return err
		}
	} else {
		clear(l.repBuf)
	}
	p.entries -= k
	maxDef, maxRep := uint8(l.leaf.node.def), uint8(l.leaf.node.rep)
	bad := uint8(0)
	for i, d := range l.defBuf {
		if d > maxDef || l.repBuf[i] > maxRep {
			bad = 1
		}
	}
	if bad != 0 {
		return errLevelRange
	}
	if first && p.rows >= 0 && l.repBuf[0] != 0 {
		return errRecord
	}
	return nil
}

// drop passes over k records of the page just loaded.
func (l *nestedLeaf) drop(k int) error {
	maxDef := uint8(l.leaf.node.def)
	begun := 0
	for {
		for l.bufAt == len(l.defBuf) {
			if l.pg.entries == 0 {
				if begun == k {
					return l.flush(false)
				}
				return errLevels
			}
			if err := l.decode(); err != nil {
				return err
			}
		}
		if l.repBuf[l.bufAt] == 0 {
			if begun == k {
				return l.flush(false)
			}
			begun++
		}
		if l.defBuf[l.bufAt] == maxDef {
			l.passed++
		}
		l.bufAt++
	}
}

// begin counts a record against the page and the row group.
func (l *nestedLeaf) begin(k int) error {
	p := &l.pg
	if p.rows >= 0 {
		if p.left < k {
			return l.corruptf(p.off, "the page has more rows than its header or the index says")
		}
		p.left -= k
		return nil
	}
	if l.rows < int64(k) {
		return l.corruptf(p.off, "pages hold more rows than the row group")
	}
	l.rows -= int64(k)
	return nil
}

// takeAll takes buffered levels up to the end of record n and returns where it
// stopped.
func (l *nestedLeaf) takeAll(n int, begun *int) (int, error) {
	reps, defs := l.repBuf[l.bufAt:], l.defBuf[l.bufAt:]
	if *begun == 0 && reps[0] != 0 {
		return 0, errRecord
	}
	start, end := *begun, len(reps)
	if l.leaf.node.rep == 0 {
		end = min(end, n-start)
		*begun += end
	} else {
		k := start
		for i, r := range reps {
			if r == 0 {
				if k == n {
					end = i
					break
				}
				k++
			}
		}
		*begun = k
	}
	if err := l.begin(*begun - start); err != nil {
		return 0, err
	}
	l.defs = append(l.defs, defs[:end]...)
	l.reps = append(l.reps, reps[:end]...)
	l.passed += bytes.Count(defs[:end], []byte{uint8(l.leaf.node.def)})
	return l.bufAt + end, nil
}

// takeKept is takeAll for the records that keep names.
func (l *nestedLeaf) takeKept(n int, begun *int, kept *bool, keep []uint16, base int) (int, error) {
	maxDef := uint8(l.leaf.node.def)
	start, at := *begun, l.bufAt
	j := search(keep, base+start)
	if start == 0 && l.repBuf[at] != 0 {
		return 0, errRecord
	}
	for ; at < len(l.defBuf); at++ {
		d, r := l.defBuf[at], l.repBuf[at]
		if r == 0 {
			if *begun == n {
				break
			}
			*kept = j < len(keep) && int(keep[j]) == base+*begun
			if *kept {
				j++
			}
			*begun++
		}
		if *kept {
			l.defs = append(l.defs, d)
			l.reps = append(l.reps, r)
			if d == maxDef {
				l.sel = append(l.sel, int32(l.passed))
			}
		}
		if d == maxDef {
			l.passed++
		}
	}
	return at, l.begin(*begun - start)
}

// flush moves the values passed since the last call into the sink: all of them,
// or those in sel.
func (l *nestedLeaf) flush(all bool) error {
	n, sel := l.passed, l.sel
	l.passed, l.sel = 0, l.sel[:0]
	if n == 0 || l.sink == nil {
		return nil
	}
	v := &l.pg.vals
	switch {
	case all:
		l.sink.ensure(l.vals + n)
		if err := l.sink.take(v, l.vals, n); err != nil {
			return err
		}
		l.vals += n
	case len(sel) > 0:
		l.sink.ensure(l.vals + len(sel))
		if err := l.sink.pick(v, l.vals, sel, n); err != nil {
			return err
		}
		l.vals += len(sel)
	default:
		return v.skip(n)
	}
	return nil
}

func (b *bnode) name() string {
	if b.leaf != nil {
		return b.leaf.node.el.name
	}
	return b.t.PlainName()
}

// assembly makes arrays of levels and values.
type assembly struct{ c *nestedColumn }

// slots marks the slots of b that are valid. It returns their number, how many
// are NULL, and the bitmap, nil when none is.
func (a *assembly) slots(b *bnode, l *nestedLeaf, n int) (nulls int, valid []byte, err error) {
	sd, sr, bd := uint8(b.slotDef), uint8(b.slotRep), uint8(b.def)
	valid = make([]byte, vec.BitmapLen(n))
	k, set := 0, 0
	reps := l.reps[:len(l.defs)]
	for i, d := range l.defs {
		if d < sd || reps[i] > sr {
			continue
		}
		if k == n {
			return 0, nil, errShape
		}
		if d >= bd {
			valid[k>>3] |= 1 << (k & 7)
			set++
		}
		k++
	}
	if k != n {
		return 0, nil, errShape
	}
	if set == n {
		valid = nil
	}
	return n - set, valid, nil
}

// build makes the array of b, which has n slots.
func (a *assembly) build(b *bnode, n int) (arrow.Array, error) {
	if b.kind == kMissing {
		return vec.MakeNull(b.dt, n), nil
	}
	l := a.c.of[b.leaf]
	switch b.kind {
	case kLeaf:
		nulls, valid, err := a.slots(b, l, n)
		if err != nil {
			return nil, err
		}
		if n-nulls != l.vals {
			return nil, errShape
		}
		l.sink.ensure(n)
		l.last = n
		if nulls > 0 {
			l.sink.spread(0, n, l.vals, valid, 0)
		}
		return l.sink.finish(n, valid), nil
	case kStruct:
		_, valid, err := a.slots(b, l, n)
		if err != nil {
			return nil, err
		}
		kids := make([]arrow.Array, len(b.children))
		for i, c := range b.children {
			if kids[i], err = a.build(c, n); err != nil {
				return nil, err
			}
		}
		return vec.MakeStruct(b.dt, n, kids, valid), nil
	}
	return a.list(b, l, n)
}

// list makes a list or map of n slots.
func (a *assembly) list(b *bnode, l *nestedLeaf, n int) (arrow.Array, error) {
	sd, sr, bd := uint8(b.slotDef), uint8(b.slotRep), uint8(b.def)
	ed, er := uint8(b.elemDef), uint8(b.elemRep)
	valid := make([]byte, vec.BitmapLen(n))
	offs := make([]int32, n+1)
	k, set, elems := 0, 0, 0
	reps := l.reps[:len(l.defs)]
	for i, d := range l.defs {
		r := reps[i]
		if d >= sd && r <= sr {
			if k == n {
				return nil, errShape
			}
			offs[k] = int32(elems)
			if d >= bd {
				valid[k>>3] |= 1 << (k & 7)
				set++
			}
			k++
		}
		if d >= ed && r <= er {
			if k == 0 {
				return nil, errShape
			}
			elems++
		}
	}
	if k != n {
		return nil, errShape
	}
	offs[n] = int32(elems)
	if set == n {
		valid = nil
	}
	kids := make([]arrow.Array, len(b.children))
	for i, c := range b.children {
		var err error
		if kids[i], err = a.build(c, elems); err != nil {
			return nil, err
		}
	}
	if b.kind == kMap {
		if kids[0].NullN() > 0 {
			return nil, errNullKey
		}
		st := vec.MakeStruct(b.dt.(*arrow.MapType).Elem(), elems, kids, nil)
		return vec.MakeList(b.dt, offs, st, valid), nil
	}
	return vec.MakeList(b.dt, offs, kids[0], valid), nil
}
