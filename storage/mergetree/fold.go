package mergetree

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Folding in a round: every version of a key that has several is read like a
// winner, into the arrays of its segment. Then
//
//	versions in merge order  --gather-->  Versions.Cols  --Engine-->  Folded.Cols
//
// and the result's columns are gathered from
//
//	segment 0 ... segment n-1 | Folded.Cols
//	 keys of one version        the others
//
// so that keys of one version, nearly all of them in most tables, are copied once.
// The first phase finds out which keys are left; later ones fold again, other
// columns of the keys that are still wanted.

// versionList holds the versions of the keys that a round has to fold, in merge
// order.
type versionList struct {
	src   []uint16 // segment
	row   []uint32 // ordinal in its keep list
	kinds []uint8
	ends  []uint32
	odd   bool // a kind is not +I

	// What the first phase found, per key.
	result []uint8
	last   []uint32

	// For NextVersions only.
	seq, pos []int64
	tag      []int32
	keys     []byte
	keyEnds  []int
}

func (v *versionList) reset() {
	v.src, v.row, v.kinds, v.ends, v.odd = v.src[:0], v.row[:0], v.kinds[:0], v.ends[:0], false
	v.result, v.last = nil, nil
	v.seq, v.pos, v.tag, v.keys, v.keyEnds = v.seq[:0], v.pos[:0], v.tag[:0], nil, v.keyEnds[:0]
}

// folds reports whether versions are noted rather than the best one kept.
func (m *Reader) folds() bool { return m.o.Engine != nil || m.all }

// note notes the versions of the pending key.
func (m *Reader) note(vs []version) {
	v := &m.vers
	for i := range vs {
		x := &vs[i]
		seg := &m.segs[x.seg]
		v.src = append(v.src, x.seg)
		v.row = append(v.row, uint32(len(seg.keep)))
		v.kinds = append(v.kinds, x.kind)
		v.odd = v.odd || x.kind != KindInsert
		seg.keep = append(seg.keep, uint32(x.row-seg.from))
		if m.all {
			v.seq, v.pos = append(v.seq, x.seq), append(v.pos, x.row)
			v.tag = append(v.tag, seg.run.inputs[seg.in].Tag)
		}
	}
	if !m.all {
		m.src = append(m.src, folded)
		m.row = append(m.row, uint32(len(v.ends)))
	} else {
		v.keys = m.o.Codec.appendWords(v.keys, m.pendHi, m.pendLo, m.pendBytes)
		v.keyEnds = append(v.keyEnds, len(v.keys))
	}
	v.ends = append(v.ends, uint32(len(v.src)))
}

// fold runs a phase's engine over the versions of the round's keys. parts are the
// phase's columns by segment.
func (m *Reader) fold(p *phase, parts [][]arrow.Array, row []uint32) (*Folded, error) {
	v := &m.vers
	in := Versions{N: len(v.src), Ends: v.ends}
	if v.odd {
		in.Kinds = v.kinds
	}
	for _, at := range p.sees {
		a := vec.Gather(p.types[at], parts[at][:len(m.segs)], v.src, row)
		in.Cols = append(in.Cols, vec.Decode(a))
	}
	out := &Folded{}
	return out, p.engine.Fold(&in, out)
}

// gatherFolded is gather for a round with keys that have to be folded.
func (m *Reader) gatherFolded(ph int, parts [][]arrow.Array, whole bool, out []arrow.Array) ([]arrow.Array, []uint16, error) {
	p, v, s := &m.phases[ph], &m.vers, &m.scratch
	row, vrow := m.row, v.row
	if whole {
		row, vrow = m.places(&s.place, m.src, m.row), m.places(&s.vplace, v.src, v.row)
	}
	var made []arrow.Array
	if p.engine != nil {
		f, err := m.fold(p, parts, vrow)
		if err != nil {
			return nil, nil, err
		}
		made = f.Cols
		if ph == m.firstPhase() {
			v.result, v.last = f.Kinds, f.Last
		}
	}
	var live []uint16
	if ph == m.firstPhase() {
		live = m.living()
	}
	n := len(m.src)
	if live != nil {
		n = len(live)
	}
	if n == 0 {
		for i := range out {
			out[i] = vec.MakeNull(vec.Plain(p.types[i]), 0)
		}
		return out, live, nil
	}
	src := m.src
	// Keys that were folded come from behind the segments.
	s.src, s.row = grow(s.src, n), grow(s.row, n)
	for i := range n {
		k := i
		if live != nil {
			k = int(live[i])
		}
		s.src[i], s.row[i] = src[k], row[k]
		if src[k] == folded {
			s.src[i] = uint16(len(m.segs))
		}
	}
	own := false
	for i := range out {
		switch at := p.fold[i]; {
		case at >= 0:
			parts[i][len(m.segs)] = made[at]
			out[i] = vec.Gather(p.types[i], parts[i], s.src, s.row)
		case at == ownKind:
			ks := make([]int16, len(v.ends))
			for k, x := range v.result {
				ks[k] = int16(x)
			}
			parts[i][len(m.segs)] = vec.Make(arrow.PrimitiveTypes.Int16, ks, nil)
			out[i] = vec.Gather(p.types[i], parts[i], s.src, s.row)
		default:
			if !own {
				m.ownRows(live, n, row, vrow)
				own = true
			}
			out[i] = vec.Gather(p.types[i], parts[i][:len(m.segs)], s.ownSrc, s.ownRow)
		}
	}
	return out, live, nil
}

// living returns the keys of the round that are left after folding, nil = all.
func (m *Reader) living() []uint16 {
	v := &m.vers
	gone := false
	for _, k := range v.result {
		gone = gone || k == NoRow || k&1 != 0 && !m.o.KeepDeletes
	}
	if !gone {
		return nil
	}
	live := grow(m.scratch.live, len(m.src))[:0]
	for i, s := range m.src {
		if s == folded {
			if k := v.result[m.row[i]]; k == NoRow || k&1 != 0 && !m.o.KeepDeletes {
				continue
			}
		}
		live = append(live, uint16(i))
	}
	m.scratch.live = live
	return live
}

// ownRows finds the row whose own values stand for each key: the only one, or the
// version that the engine calls the last.
func (m *Reader) ownRows(live []uint16, n int, row, vrow []uint32) {
	v, s := &m.vers, &m.scratch
	s.ownSrc, s.ownRow = grow(s.ownSrc, n), grow(s.ownRow, n)
	for i := range n {
		k := i
		if live != nil {
			k = int(live[i])
		}
		if m.src[k] != folded {
			s.ownSrc[i], s.ownRow[i] = m.src[k], row[k]
			continue
		}
		key := m.row[k]
		at := v.ends[key] - 1
		if v.last != nil {
			at = v.last[key]
		}
		s.ownSrc[i], s.ownRow[i] = v.src[at], vrow[at]
	}
}
