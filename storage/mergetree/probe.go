package mergetree

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
)

// A Probe holds the keys of a few files, to be looked for in the key columns of others:
// what a handful of new files changes about many old rows is found without merging the
// old ones again. Both are sorted, so each side is galloped where the other is sparse.

// SortedKeys collects the keys of one file, in its order.
type SortedKeys struct {
	codec *KeyCodec
	keys  Keys
	win   Keys
}

// NewSortedKeys makes an empty list for a file of about n rows.
func (c *KeyCodec) NewSortedKeys(n int) *SortedKeys {
	s := &SortedKeys{codec: c}
	s.keys.Hi = make([]uint64, 0, n)
	switch c.form {
	case TwoWords:
		s.keys.Lo = make([]uint64, 0, n)
	case WordAndBytes:
		s.keys.Off = append(make([]int32, 0, n+1), 0)
	}
	return s
}

// maxProbeBytes is the most bytes of keys that a list may hold.
const maxProbeBytes = 64 << 20

// Append adds the next n rows; cols are the key columns. It returns false where the
// keys are too long, or do not ascend: then nothing can be said about the file.
func (s *SortedKeys) Append(cols []arrow.Array, n int) bool {
	if n == 0 {
		return true
	}
	s.codec.Fill(&s.win, cols, n)
	w, k := &s.win, &s.keys
	for i := range n {
		var last *Keys
		at := i - 1
		if last = w; i == 0 {
			if last, at = k, len(k.Hi)-1; at < 0 {
				continue
			}
		}
		if compareAt(s.codec.form, last, at, w, i) >= 0 {
			return false
		}
	}
	k.Hi = append(k.Hi, w.Hi...)
	switch s.codec.form {
	case TwoWords:
		k.Lo = append(k.Lo, w.Lo...)
	case WordAndBytes:
		data := w.Data[w.Off[0]:w.Off[n]]
		if len(k.Data)+len(data) > maxProbeBytes {
			return false
		}
		move := int32(len(k.Data)) - w.Off[0]
		for _, o := range w.Off[1 : n+1] {
			k.Off = append(k.Off, o+move)
		}
		k.Data = append(k.Data, data...)
	}
	return true
}

// Len returns the number of keys.
func (s *SortedKeys) Len() int { return len(s.keys.Hi) }

// Bytes returns what the keys take.
func (s *SortedKeys) Bytes() int64 {
	return int64(8*len(s.keys.Hi) + 8*len(s.keys.Lo) + 4*len(s.keys.Off) + len(s.keys.Data))
}

// compareAt compares key i of a with key j of b.
func compareAt(form Form, a *Keys, i int, b *Keys, j int) int {
	if c := cmp.Compare(a.Hi[i], b.Hi[j]); c != 0 || form == OneWord {
		return c
	}
	return compareRest(form, a, i, b, j)
}

func compareRest(form Form, a *Keys, i int, b *Keys, j int) int {
	if form == TwoWords {
		return cmp.Compare(a.Lo[i], b.Lo[j])
	}
	return bytes.Compare(a.At(i), b.At(j))
}

// ProbeRow is a row of a file that a Probe was made from.
type ProbeRow struct{ File, Row uint32 }

// Probe holds distinct keys, ascending. It is immutable.
type Probe struct {
	codec *KeyCodec
	keys  Keys
	// Key i is that of Rows[Ends[i-1]:Ends[i]], in the order of files.
	Rows []ProbeRow
	Ends []uint32
}

// NewProbe joins the keys of files.
func (c *KeyCodec) NewProbe(files []*SortedKeys) *Probe {
	p := &Probe{codec: c}
	if len(files) == 1 { // the keys are what they are
		f := files[0]
		p.keys = f.keys
		p.Rows, p.Ends = make([]ProbeRow, f.Len()), make([]uint32, f.Len())
		for i := range p.Rows {
			p.Rows[i].Row, p.Ends[i] = uint32(i), uint32(i+1)
		}
		return p
	}
	var lists [][]ProbeRow
	for i, f := range files {
		l := make([]ProbeRow, f.Len())
		for k := range l {
			l[k] = ProbeRow{uint32(i), uint32(k)}
		}
		lists = append(lists, l)
	}
	compare := func(a, b ProbeRow) int {
		return compareAt(c.form, &files[a.File].keys, int(a.Row), &files[b.File].keys, int(b.Row))
	}
	for len(lists) > 1 {
		// Neighbours are joined, so that rows of one key stay in the order of files.
		out := lists[:0]
		for i := 0; i < len(lists); i += 2 {
			if i+1 == len(lists) {
				out = append(out, lists[i])
				break
			}
			out = append(out, joinRows(lists[i], lists[i+1], compare))
		}
		lists = out
	}
	if len(lists) == 0 {
		return p
	}
	p.Rows = lists[0]
	p.keys.Hi = make([]uint64, 0, len(p.Rows))
	if c.form == WordAndBytes {
		p.keys.Off = append(p.keys.Off, 0)
	}
	for i, r := range p.Rows {
		if i > 0 && compare(p.Rows[i-1], r) == 0 {
			p.Ends[len(p.Ends)-1]++
			continue
		}
		k := &files[r.File].keys
		p.keys.Hi = append(p.keys.Hi, k.Hi[r.Row])
		switch c.form {
		case TwoWords:
			p.keys.Lo = append(p.keys.Lo, k.Lo[r.Row])
		case WordAndBytes:
			p.keys.Data = append(p.keys.Data, k.At(int(r.Row))...)
			p.keys.Off = append(p.keys.Off, int32(len(p.keys.Data)))
		}
		p.Ends = append(p.Ends, uint32(i+1))
	}
	return p
}

func joinRows(a, b []ProbeRow, compare func(a, b ProbeRow) int) []ProbeRow {
	out := make([]ProbeRow, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compare(a[0], b[0]) <= 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// Len returns the number of distinct keys.
func (p *Probe) Len() int { return len(p.Ends) }

// KeyRows returns the rows of key i.
func (p *Probe) KeyRows(i int) []ProbeRow {
	from := uint32(0)
	if i > 0 {
		from = p.Ends[i-1]
	}
	return p.Rows[from:p.Ends[i]]
}

// Key returns the byte form of key i.
func (p *Probe) Key(i int) []byte { return p.codec.appendKey(nil, &p.keys, i) }

// Stretches returns the keys in at most n stretches, each from its first key to its
// last, so that the widest gaps between the first words of keys lie between them.
func (p *Probe) Stretches(n int) (out [][2]int) {
	hi := p.keys.Hi
	if len(hi) == 0 {
		return nil
	}
	type gap struct {
		width uint64
		at    int
	}
	var cuts []gap // the widest, ascending
	for i := 1; i < len(hi) && n > 1; i++ {
		g := gap{hi[i] - hi[i-1], i}
		if len(cuts) == n-1 {
			if g.width <= cuts[0].width {
				continue
			}
			cuts = cuts[1:]
		}
		k, _ := slices.BinarySearchFunc(cuts, g, func(a, b gap) int { return cmp.Compare(a.width, b.width) })
		cuts = slices.Insert(cuts, k, g)
	}
	slices.SortFunc(cuts, func(a, b gap) int { return cmp.Compare(a.at, b.at) })
	from := 0
	for _, g := range cuts {
		out = append(out, [2]int{from, g.at - 1})
		from = g.at
	}
	return append(out, [2]int{from, len(hi) - 1})
}

// Prober looks keys of a Probe up in rows that come in ascending order of their keys. It
// is for one goroutine.
type Prober struct {
	p    *Probe
	at   int // keys before are below all rows to come; -1 = not known yet
	keys Keys
	// Key and Row are what matched in the last call: numbers of keys, and of rows from
	// the first.
	Key, Row []uint32
}

// Prober begins a walk.
func (p *Probe) Prober() *Prober { return &Prober{p: p, at: -1} }

// Match finds the next n rows' keys; cols are their key columns.
func (r *Prober) Match(cols []arrow.Array, n int) {
	r.Key, r.Row = r.Key[:0], r.Row[:0]
	if n == 0 {
		return
	}
	p := r.p
	p.codec.Fill(&r.keys, cols, n)
	a, b := r.keys.Hi[:n], p.keys.Hi
	if r.at < 0 {
		r.at, _ = slices.BinarySearch(b, a[0])
	}
	i, j := 0, r.at
	for i < n && j < len(b) {
		switch x, y := a[i], b[j]; {
		case x < y:
			i = gallop(a, i, n, y)
		case x > y:
			j = gallop(b, j, len(b), x)
		default:
			c := 0
			if p.codec.form != OneWord {
				c = compareRest(p.codec.form, &r.keys, i, &p.keys, j)
			}
			switch {
			case c < 0:
				i++
			case c > 0:
				j++
			default:
				r.Key, r.Row = append(r.Key, uint32(j)), append(r.Row, uint32(i))
				i++
				j++
			}
		}
	}
	r.at = j
}
