package table

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sort"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/lookup"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// keyVersion is a version of a key in a file; file is nil when there is none.
type keyVersion struct {
	file *lookupFile
	lookup.Found
}

// finder looks keys up in the sorted runs of one bucket.
type finder struct {
	p       *lookupPlan
	runs    [][]*lookupFile
	rows    bool
	need    []int // columns that rows must have; nil = all
	skip0   bool
	c       *format.Counters
	scratch []lookup.Found
	sub     [][]byte
	which   []int32
	// direct, when not nil, is asked first for the keys which[i] of a file; true: it
	// has answered them.
	direct func(f *lookupFile, keys [][]byte, which []int32) (bool, error)
}

// precedes reports whether version a comes before b, which is in an older run, in
// the order of sequence numbers: of equal ones, retractions come first.
func (p *lookupPlan) precedes(a, b *keyVersion) bool {
	if p.read.snapshot {
		if x, y := a.file.file.Meta.MaxSequence, b.file.file.Meta.MaxSequence; x != y {
			return x < y
		}
	}
	if a.Seq != b.Seq {
		return a.Seq < b.Seq
	}
	return a.Kind&1 != 0 && b.Kind&1 == 0
}

// settled reports whether no row of f can take the place of v.
func (p *lookupPlan) settled(v *keyVersion, f *lookupFile) bool {
	if v.file == nil {
		return false
	}
	m := f.file.Meta
	if p.mode == lookupFirst {
		return m.MinSequence > v.Seq && !p.read.snapshot
	}
	if p.read.snapshot {
		return m.MaxSequence < v.file.file.Meta.MaxSequence
	}
	return m.MaxSequence >= 0 && m.MaxSequence < v.Seq
}

// one finds the version of a key that wins, retractions included; only for the
// modes that need one version.
func (d *finder) one(ctx context.Context, key []byte) (keyVersion, error) {
	var best keyVersion
	keys := [1][]byte{key}
	n := len(d.runs)
	for i := range n {
		run := d.runs[i]
		if d.p.mode == lookupFirst {
			run = d.runs[n-1-i]
		}
		f := run[0]
		if len(run) > 1 {
			k := sort.Search(len(run), func(k int) bool { return bytes.Compare(run[k].max, key) >= 0 })
			if k == len(run) {
				continue
			}
			f = run[k]
		}
		if !f.covers(key) || d.skip0 && f.file.Meta.Level == 0 || d.p.settled(&best, f) {
			continue
		}
		var found lookup.Found
		hit, ready := f.entry.Get(key, d.rows, &found)
		if ready && hit {
			if err := d.better(ctx, &best, keyVersion{f, found}); err != nil {
				return best, err
			}
		}
		if ready {
			continue
		}
		var err error
		if d.scratch, err = d.p.read.find(ctx, f, keys[:], d.rows, d.need, d.c, d.scratch[:0]); err != nil {
			return best, err
		}
		for _, x := range d.scratch {
			if err := d.better(ctx, &best, keyVersion{f, x}); err != nil {
				return best, err
			}
		}
	}
	return best, nil
}

// better makes v the best version when it is one.
func (d *finder) better(ctx context.Context, best *keyVersion, v keyVersion) error {
	if d.p.ignoreDelete && v.Kind&1 != 0 {
		return nil
	}
	if best.file != nil {
		if d.p.mode == lookupFirst {
			if !d.p.precedes(&v, best) {
				return nil
			}
		} else if !d.p.precedes(best, &v) {
			return nil
		}
	}
	gone, err := v.file.deleted(ctx, d.p.read.t.env, v.Pos)
	if err == nil && !gone {
		*best = v
	}
	return err
}

// find calls each for the versions of ascending keys, run by run; Found.Key counts
// keys. skip is asked before a file is looked into for a key; nil = look into all.
func (d *finder) find(ctx context.Context, keys [][]byte, skip func(k int, f *lookupFile) bool, each func(v keyVersion) error) error {
	n := len(d.runs)
	for i := range n {
		run := d.runs[i]
		if d.p != nil && d.p.mode == lookupFirst {
			run = d.runs[n-1-i]
		}
		at := 0
		for _, f := range run {
			if d.skip0 && f.file.Meta.Level == 0 {
				continue
			}
			at += sort.Search(len(keys)-at, func(k int) bool { return bytes.Compare(keys[at+k], f.min) >= 0 })
			d.sub, d.which = d.sub[:0], d.which[:0]
			for ; at < len(keys) && bytes.Compare(keys[at], f.max) <= 0; at++ {
				if skip == nil || !skip(at, f) {
					d.sub, d.which = append(d.sub, keys[at]), append(d.which, int32(at))
				}
			}
			if len(d.sub) == 0 {
				continue
			}
			if d.direct != nil {
				done, err := d.direct(f, d.sub, d.which)
				if err != nil {
					return err
				}
				if done {
					continue
				}
			}
			var err error
			if d.scratch, err = d.p.read.find(ctx, f, d.sub, d.rows, d.need, d.c, d.scratch[:0]); err != nil {
				return err
			}
			for _, x := range d.scratch {
				x.Key = d.which[x.Key]
				gone, err := f.deleted(ctx, d.p.read.t.env, x.Pos)
				if err != nil {
					return err
				}
				if gone {
					continue
				}
				if err := each(keyVersion{f, x}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// winners finds, per key, the version that wins; only for the modes that need one.
func (d *finder) winners(ctx context.Context, keys [][]byte) ([]keyVersion, error) {
	out := make([]keyVersion, len(keys))
	err := d.find(ctx, keys, func(k int, f *lookupFile) bool { return d.p.settled(&out[k], f) }, func(v keyVersion) error {
		return d.better(ctx, &out[v.Key], v)
	})
	return out, err
}

// versions finds all versions of keys, in the order in which they are merged.
func (d *finder) versions(ctx context.Context, keys [][]byte) ([]keyVersion, error) {
	var out []keyVersion
	err := d.find(ctx, keys, nil, func(v keyVersion) error {
		out = append(out, v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	p := d.p
	order := make([]int, len(out))
	for i := range order {
		order[i] = i
	}
	var user *mergetree.SequenceKeys
	if cols := p.read.seqCols; len(cols) > 0 && len(out) > 0 {
		images := make([][]byte, len(out))
		for i := range out {
			images[i] = out[i].Row
		}
		user, err = p.sequenceKeys(images)
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := &out[i], &out[j]
		if c := cmp.Compare(a.Key, b.Key); c != 0 {
			return c
		}
		if user != nil {
			if c := user.Compare(i, j); c != 0 {
				return c
			}
		}
		switch {
		case p.precedes(a, b):
			return -1
		case p.precedes(b, a):
			return 1
		}
		return cmp.Compare(j, i) // what was found first is in a newer run
	})
	sorted := make([]keyVersion, len(out))
	for i, o := range order {
		sorted[i] = out[o]
	}
	return sorted, nil
}

// sequenceKeys makes the order of rows by the table's sequence fields.
func (p *lookupPlan) sequenceKeys(images [][]byte) (*mergetree.SequenceKeys, error) {
	s := p.read.st.schema
	var ts []types.Type
	cols := make([]arrow.Array, len(p.read.seqCols))
	for i, c := range p.read.seqCols {
		var err error
		if cols[i], err = imageColumn(s, c, images); err != nil {
			return nil, err
		}
		ts = append(ts, s.Fields[c].Type)
	}
	return mergetree.NewSequenceKeys(ts, cols, len(images), p.read.seqDesc), nil
}
