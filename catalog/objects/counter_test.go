package objects

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

func define(d SequenceDef) *SequenceDef {
	if d.Increment == 0 {
		d.Increment = 1
	}
	if d.Max == 0 {
		d.Max = math.MaxInt64
	}
	if d.Cache == 0 {
		d.Cache = 1
	}
	return &d
}

func TestCounter(t *testing.T) {
	for _, c := range []struct {
		name string
		def  SequenceDef
		want []int64 // and then ErrExhausted, unless the sequence cycles
	}{
		{"limit", SequenceDef{Start: 1, Min: 1, Max: 3}, []int64{1, 2, 3}},
		{"cycle", SequenceDef{Start: 2, Min: 1, Max: 3, Cycle: true}, []int64{2, 3, 1, 2, 3, 1, 2}},
		{"down", SequenceDef{Start: -1, Min: -5, Max: -1, Increment: -2}, []int64{-1, -3, -5}},
		{"down cycle", SequenceDef{Start: 1, Min: 0, Max: 9, Increment: -4, Cycle: true}, []int64{1, 9, 5, 1, 9}},
		{"edge", SequenceDef{Start: math.MaxInt64 - 5, Min: 1, Max: math.MaxInt64, Increment: 3}, []int64{math.MaxInt64 - 5, math.MaxInt64 - 2}},
		{"wide", SequenceDef{Start: math.MinInt64, Min: math.MinInt64, Max: math.MaxInt64, Increment: math.MaxInt64}, []int64{math.MinInt64, -1, math.MaxInt64 - 1}},
		{"steps", SequenceDef{Start: 10, Min: 1, Max: 40, Increment: 10, Cache: 100}, []int64{10, 20, 30, 40}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := define(c.def)
			s := NewStore(fileio.NewMem())
			var got []int64
			for range c.want {
				v, err := s.Counter(1).Next(t.Context(), d)
				if err != nil {
					t.Fatal(got, err)
				}
				got = append(got, v)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
			if _, err := s.Counter(1).Next(t.Context(), d); d.Cycle == (err != nil) || !d.Cycle && !errors.Is(err, ErrExhausted) {
				t.Errorf("then err = %v", err)
			}
		})
	}
}

// TestCounterProcesses: no value is given twice, and set is noticed.
func TestCounterProcesses(t *testing.T) {
	io := fileio.NewLocal(t.TempDir())
	d := define(SequenceDef{Start: 1, Min: 1})
	var mu sync.Mutex
	seen := map[int64]int{}
	var wg sync.WaitGroup
	for range 3 {
		s := NewStore(io)
		for range 2 {
			wg.Go(func() {
				for range 500 {
					v, err := s.Counter(7).Next(t.Context(), d)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					seen[v]++
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	if len(seen) != 3000 {
		t.Errorf("%d values of 3000 calls", len(seen))
	}
	a, b := NewStore(io), NewStore(io)
	if err := a.Counter(7).Set(t.Context(), d, 1_000_000, true); err != nil {
		t.Fatal(err)
	}
	if v, err := b.Counter(7).Next(t.Context(), d); v != 1_000_001 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
	b.Close(t.Context())
	if v, called, err := a.Counter(7).Last(t.Context(), d); v != 1_000_001 || !called || err != nil {
		t.Errorf("last %d %v %v", v, called, err)
	}
	if v, err := a.Counter(7).Next(t.Context(), d); v != 1_000_002 || err != nil {
		t.Errorf("after the other gave its block back: %d, %v", v, err)
	}
}

func TestCounterCrash(t *testing.T) {
	d := define(SequenceDef{Start: 1, Min: 1})
	for n := range 300 {
		c := fileio.NewCrash()
		c.At(n, n%2 == 0)
		s := NewStore(c)
		var last int64
		for range 300 {
			v, err := s.Counter(1).Next(context.Background(), d)
			if err != nil {
				break
			}
			last = v
		}
		crashed := c.Crashed()
		v, err := NewStore(c.Reopen(rand.New(rand.NewPCG(uint64(n), 2)))).Counter(1).Next(t.Context(), d)
		if err != nil || v <= last {
			t.Fatalf("crash at %d: %d after %d: %v", n, v, last, err)
		}
		if !crashed {
			return
		}
	}
	t.Error("no run came to its end")
}

func BenchmarkNext(b *testing.B) {
	for _, cache := range []int64{1, 1000} {
		b.Run(fmt.Sprint("cache=", cache), func(b *testing.B) {
			c := NewStore(fileio.NewLocal(b.TempDir())).Counter(1)
			d := define(SequenceDef{Start: 1, Min: 1, Cache: cache})
			for b.Loop() {
				if _, err := c.Next(b.Context(), d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
