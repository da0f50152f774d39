package mergetree

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
)

// TestRowSetParts compares what is asked of parts of a set with a plain slice.
func TestRowSetParts(t *testing.T) {
	seed := random.Seed(t)
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
			checkKeep(t, s, in, from, int(min(to-from, 1<<16)), r)
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

// checkKeep asks for rows of a part of a set, and for them in stretches.
func checkKeep(t *testing.T, s *RowSet, in []bool, from int64, n int, r *rand.Rand) {
	t.Helper()
	var want []uint16
	for i := range n {
		if in[from+int64(i)] {
			want = append(want, uint16(i))
		}
	}
	keep, whole := s.Keep(from, n, make([]uint16, 0, r.IntN(n+20)))
	if whole != (len(want) == n) || !whole && !slices.Equal(keep, want) {
		t.Fatalf("Keep(%d, %d) is %v, %v", from, n, keep, whole)
	}
	for at := 0; at < n; {
		m, count := s.Stretch(from+int64(at), n-at)
		if m < 1 || m > n-at || int64(count) != s.CountIn(from+int64(at), from+int64(at+m)) {
			t.Fatalf("Stretch(%d, %d) is %d, %d", from+int64(at), n-at, m, count)
		}
		if count > 0 && count < m {
			// No long stretch of rows of one kind is hidden in it, by whole words.
			for run, i := 0, at; i < at+m; i++ {
				if i > at && in[from+int64(i)] == in[from+int64(i-1)] {
					run++
				} else {
					run = 1
				}
				if run >= max(wholeRows, noneRows)+128 {
					t.Fatalf("Stretch(%d, %d) is %d, with %d rows alike", from+int64(at), n-at, m, run)
				}
			}
		}
		at += m
	}
}
