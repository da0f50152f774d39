package lookup

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// sample makes entries of n ascending keys.
func sample(r *rand.Rand, n int, rows bool) (e entries, keys [][]byte) {
	fixed, rowLen := r.IntN(2) == 0, 0
	if r.IntN(2) == 0 {
		rowLen = r.IntN(30)
	}
	set := map[string]bool{}
	for len(set) < n {
		k := make([]byte, 8+r.IntN(6))
		if fixed {
			k = k[:8]
		}
		for i := range k {
			k[i] = byte(r.IntN(4)) * 85
		}
		copy(k, "pre")
		set[string(k)] = true
	}
	for k := range set {
		keys = append(keys, []byte(k))
	}
	slices.SortFunc(keys, bytes.Compare)
	gaps := r.IntN(3)
	pos := r.Int64N(1 << 40)
	for _, k := range keys {
		e.keys = append(e.keys, k...)
		e.keyEnds = append(e.keyEnds, uint32(len(e.keys)))
		seq := r.Int64N(1 << (1 + r.IntN(60)))
		if r.IntN(20) == 0 {
			seq = math.MinInt64
		}
		e.seqs, e.poss = append(e.seqs, seq), append(e.poss, pos)
		kind := uint8(0)
		if gaps == 2 {
			kind = uint8(r.IntN(4))
		}
		e.kinds = append(e.kinds, kind)
		pos++
		if gaps > 0 {
			pos += r.Int64N(1000)
		}
		if rows {
			m := rowLen
			if m == 0 {
				m = r.IntN(40)
			}
			for range m {
				e.rows = append(e.rows, byte(r.IntN(256)))
			}
			e.rowEnds = append(e.rowEnds, uint32(len(e.rows)))
		}
	}
	return e, keys
}

func TestBlock(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for range 300 {
		rows := r.IntN(2) == 0
		e, keys := sample(r, 1+r.IntN(100), rows)
		x, err := parseBlock(e.encode(nil, rows))
		if err != nil || x.n != len(keys) {
			t.Fatalf("%d entries of %d: %v", x.n, len(keys), err)
		}
		for i, k := range keys {
			at, ok := x.search(k, r.IntN(i+1))
			if !ok || at != i {
				t.Fatalf("key %d found at %d, %v", i, at, ok)
			}
			var f Found
			if err := x.at(i, &f); err != nil {
				t.Fatal(err)
			}
			row := e.rows
			if rows {
				from := uint32(0)
				if i > 0 {
					from = e.rowEnds[i-1]
				}
				row = e.rows[from:e.rowEnds[i]]
			}
			if f.Seq != e.seqs[i] || f.Pos != e.poss[i] || f.Kind != e.kinds[i] || !bytes.Equal(f.Row, row) || (f.Row != nil) != rows {
				t.Fatalf("entry %d is %+v, want %d %d %d %x", i, f, e.seqs[i], e.poss[i], e.kinds[i], row)
			}
		}
		for range 50 {
			k := []byte("pre" + fmt.Sprint(r.Uint64()))
			if r.IntN(3) == 0 {
				k = bytes.Clone(keys[r.IntN(len(keys))])
				k = k[:r.IntN(len(k))]
			}
			want, exact := slices.BinarySearchFunc(keys, k, bytes.Compare)
			if at, ok := x.search(k, 0); at != want || ok != exact {
				t.Fatalf("key %q at %d, %v; want %d, %v", k, at, ok, want, exact)
			}
		}
	}
}

// FuzzBlock gives damaged blocks to the decoder: an error, or whatever it holds, but
// nothing beyond the block.
func FuzzBlock(f *testing.F) {
	r := rand.New(rand.NewPCG(2, 3))
	for i := range 8 {
		e, keys := sample(r, 1+r.IntN(20), i%2 == 0)
		f.Add(e.encode(nil, i%2 == 0), keys[0])
	}
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, b, key []byte) {
		x, err := parseBlock(b)
		if err != nil {
			return
		}
		var out Found
		i, ok := x.search(key, 0)
		if i < 0 || i > x.n || ok && i == x.n {
			t.Fatalf("found at %d of %d", i, x.n)
		}
		for i := range min(x.n, 1000) {
			if err := x.at(i, &out); err == nil && len(out.Row) > len(b) {
				t.Fatalf("a row of %d bytes in a block of %d", len(out.Row), len(b))
			}
			_ = x.suffix(i)
		}
	})
}
