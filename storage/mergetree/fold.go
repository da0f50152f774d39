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
	row   []uint32
	at    []uint32 // place in what the segment was read as, see layout
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

// note notes the versions of a key; that of row i of r, when all are noted.
func (m *Reader) note(vs []version, r *run, i int) {
	v := &m.vers
	for i := range vs {
		x := &vs[i]
		seg := &m.segs[x.seg]
		v.src = append(v.src, x.seg)
		v.row = append(v.row, x.row)
		v.kinds = append(v.kinds, x.kind)
		v.odd = v.odd || x.kind != KindInsert
		seg.want(x.row, 1)
		if m.all {
			v.seq, v.pos = append(v.seq, x.seq), append(v.pos, seg.from+int64(x.row))
			v.tag = append(v.tag, seg.run.inputs[seg.in].Tag)
		}
	}
	if m.all {
		v.keys = m.o.Codec.appendKey(v.keys, &r.keys, i)
		v.keyEnds = append(v.keyEnds, len(v.keys))
	}
	v.ends = append(v.ends, uint32(len(v.src)))
}

// fold runs a phase's engine over the versions of the round's keys. parts are the
// phase's columns by segment.
func (m *Reader) fold(p *phase, parts [][]arrow.Array) (*Folded, error) {
	v := &m.vers
	in := Versions{N: len(v.src), Ends: v.ends}
	if v.odd {
		in.Kinds = v.kinds
	}
	for _, at := range p.sees {
		a := vec.Gather(p.types[at], parts[at][:len(m.segs)], v.src, v.at)
		in.Cols = append(in.Cols, vec.Decode(a))
	}
	out := &Folded{}
	return out, p.engine.Fold(&in, out)
}

// foldPhase folds, if there is something to fold for the phase, and puts what came
// of it behind the segments. live are the keys that are left, nil = all.
func (m *Reader) foldPhase(ph int, parts [][]arrow.Array) (live []uint16, err error) {
	p, v := &m.phases[ph], &m.vers
	if len(v.ends) == 0 {
		return nil, nil
	}
	var made []arrow.Array
	if p.engine != nil {
		f, err := m.fold(p, parts)
		if err != nil {
			return nil, err
		}
		made = f.Cols
		if ph == m.firstPhase() {
			v.result, v.last = f.Kinds, f.Last
			live = m.living()
		}
	}
	for i, at := range p.fold {
		switch {
		case at >= 0:
			parts[i][len(m.segs)] = made[at]
		case at == ownKind:
			ks := make([]int16, len(v.ends))
			for k, x := range v.result {
				ks[k] = int16(x)
			}
			parts[i][len(m.segs)] = vec.Make(arrow.PrimitiveTypes.Int16, ks, nil)
		}
	}
	return live, nil
}

// living returns the keys of the round that are left after folding, nil = all.
func (m *Reader) living() []uint16 {
	v, o := &m.vers, &m.out
	gone := false
	for _, k := range v.result {
		gone = gone || k == NoRow || k&1 != 0 && !m.o.KeepDeletes
	}
	if !gone {
		return nil
	}
	o.flatten()
	live := grow(m.scratch.live, o.n)[:0]
	for i, s := range o.src {
		if s == folded {
			if k := v.result[o.row[i]]; k == NoRow || k&1 != 0 && !m.o.KeepDeletes {
				continue
			}
		}
		live = append(live, uint16(i))
	}
	m.scratch.live = live
	return live
}

// ownVersion returns the version that the engine calls the last of a key.
func (v *versionList) ownVersion(key uint32) uint32 {
	if v.last != nil {
		return v.last[key]
	}
	return v.ends[key] - 1
}
