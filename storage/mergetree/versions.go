package mergetree

import (
	"context"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// VersionBatch is what Reader.NextVersions returns: every version of some keys,
// keys with a single version included. It never ends inside a key.
type VersionBatch struct {
	// Versions' Cols follow Options.Columns (Sequence and Kind are not among them).
	Versions
	// Seq is the sequence number of each version.
	Seq []int64
	// Tag is Input.Tag of the file that each version came from, Pos its physical row
	// there.
	Tag []int32
	Pos []int64
	// Keys is the byte form (KeyCodec) of each key.
	Keys [][]byte
}

// NextVersions returns the versions of the next keys, in key order within a
// section and in merge order within a key; nil at the end. Retractions are among
// them whatever the options say; Filter, Engine, KeepFirst, IgnoreDelete and
// KeepDeletes have no effect. Kinds is always set, with the kinds as stored. The
// batch is valid until the next call; its arrays may be kept. A reader is used
// either with Next or with NextVersions.
func (m *Reader) NextVersions(ctx context.Context) (*VersionBatch, error) {
	m.all, m.o.Filter, m.o.KeepFirst, m.o.IgnoreDelete = true, nil, false, false
	for {
		if !m.open {
			if len(m.sections) == 0 {
				return nil, nil
			}
			if err := m.start(m.sections[0]); err != nil {
				return nil, err
			}
			m.sections = m.sections[1:]
		}
		if err := m.round(ctx); err != nil {
			return nil, err
		}
		if m.ended {
			m.closeRuns()
			continue
		}
		if len(m.vers.ends) > 0 {
			return m.versions(ctx)
		}
	}
}

// versions reads the columns of the round's versions.
func (m *Reader) versions(ctx context.Context) (*VersionBatch, error) {
	v := &m.vers
	p := &m.phases[phaseRest]
	m.layout(phaseRest)
	parts, err := m.readParts(ctx, phaseRest)
	if err != nil {
		return nil, err
	}
	b := &VersionBatch{
		Versions: Versions{N: len(v.src), Ends: v.ends, Kinds: v.kinds, Cols: make([]arrow.Array, len(p.out))},
		Seq:      v.seq, Tag: v.tag, Pos: v.pos, Keys: make([][]byte, len(v.ends)),
	}
	for i := range b.Cols {
		b.Cols[i] = vec.Decode(vec.Gather(p.types[i], parts[i][:len(m.segs)], v.src, v.at))
	}
	from := 0
	for i, end := range v.keyEnds {
		b.Keys[i] = v.keys[from:end:end]
		from = end
	}
	return b, nil
}

// noteStretch notes rows [from, q) of w's window, keys of which no other run has
// a version.
func (m *Reader) noteStretch(w *run, from, q int) {
	seg := &m.segs[w.seg]
	v, n := &m.vers, q-from
	first := uint32(len(v.src))
	v.src, v.row, v.kinds, v.ends = slices.Grow(v.src, n), slices.Grow(v.row, n), slices.Grow(v.kinds, n), slices.Grow(v.ends, n)
	v.seq, v.pos, v.tag, v.keyEnds = slices.Grow(v.seq, n), slices.Grow(v.pos, n), slices.Grow(v.tag, n), slices.Grow(v.keyEnds, n)
	tag := w.inputs[w.in].Tag
	for i := range n {
		rel := w.rel(from + i)
		v.src, v.row = append(v.src, w.seg), append(v.row, rel)
		v.kinds = append(v.kinds, uint8(w.kinds[from+i]))
		v.ends = append(v.ends, first+uint32(i)+1)
		v.seq, v.pos, v.tag = append(v.seq, w.seq[from+i]), append(v.pos, seg.from+int64(rel)), append(v.tag, tag)
		v.keys = m.o.Codec.appendKey(v.keys, &w.keys, from+i)
		v.keyEnds = append(v.keyEnds, len(v.keys))
		seg.want(rel, 1)
	}
	v.odd = true
}
