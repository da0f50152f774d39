package mergetree

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestRowSetParts compares what is asked of parts of a set with a plain slice.
func TestRowSetParts(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		rows := 1 + r.Int64N(3*blockRows)
		in := make([]bool, rows)
		words := make([]uint64, r.IntN(int(rows/64)+3))
		base := NewMarks(rows)
		both := r.IntN(2) == 0
		for at := int64(0); at < rows; {
			n, set, also := 1+r.Int64N(6000)>>r.IntN(13), r.IntN(2) == 0, r.IntN(2) == 0
			for ; n > 0 && at < rows; n, at = n-1, at+1 {
				w := set && int(at/64) < len(words)
				if w {
					words[at/64] |= 1 << (at % 64)
				}
				if also {
					base.Add(at)
				}
				in[at] = w && (also || !both)
			}
		}
		if len(words) > 0 {
			words[len(words)-1] |= 1 << 63 // perhaps behind the last row
			if at := int64(len(words))*64 - 1; at < rows {
				in[at] = !both || base.Has(at)
			}
		}
		var s *RowSet
		if both {
			s = base.Set()
		}
		s = RowsOf(words, rows, s)
		count := int64(0)
		for _, x := range in {
			if x {
				count++
			}
		}
		if s.Count() != count {
			t.Fatalf("%d rows, want %d", s.Count(), count)
		}
		for range 20 {
			from := r.Int64N(rows)
			to := from + r.Int64N(rows-from+1)
			some, got := false, make([]bool, rows)
			for i := from; i < to; i++ {
				some = some || in[i]
			}
			if s.Some(from, to) != some {
				t.Fatalf("Some(%d, %d) is %v", from, to, !some)
			}
			gap := r.Int64N(300)
			last := int64(-1)
			s.Spans(from, to, gap, func(a, b int64) {
				if a < from || b > to || a >= b || !in[a] || !in[b-1] || last >= 0 && a-last < gap {
					t.Fatalf("span %d to %d of %d to %d, gap %d", a, b, from, to, gap)
				}
				last = b
				for i := a; i < b; i++ {
					got[i] = true
				}
			})
			for i := from; i < to; i++ {
				if in[i] && !got[i] {
					t.Fatalf("row %d is in no span", i)
				}
			}
		}
	}
}
