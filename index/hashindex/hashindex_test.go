package hashindex

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
)

func TestFileBytes(t *testing.T) {
	want := []int32{5, -1, 0x0f8248f4, 0x4392b1e3}
	raw := Append(nil, want)
	if string(raw[8:]) != "\x0f\x82\x48\xf4\x43\x92\xb1\xe3" {
		t.Fatalf("% x", raw)
	}
	got, err := Decode(raw)
	if err != nil || !slices.Equal(got, want) {
		t.Fatal(got, err)
	}
	if _, err := Decode(raw[:7]); err == nil {
		t.Fatal("7 bytes are an index")
	}
}

func TestMap(t *testing.T) {
	seed := random.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
	var m Map
	want := map[int32]int32{}
	for range 20000 {
		h, b := int32(rnd.IntN(9000))*65536-1<<30, int32(rnd.IntN(MaxBucket+1))
		m.Put(h, b)
		want[h] = b
	}
	if m.Len() != len(want) {
		t.Fatalf("%d hashes, want %d", m.Len(), len(want))
	}
	for h, b := range want {
		if got, ok := m.Get(h); !ok || got != b {
			t.Fatalf("hash %d is in %d, %v; want %d", h, got, ok, b)
		}
		if _, ok := m.Get(h + 1); ok {
			t.Fatalf("hash %d is there", h+1)
		}
	}
}

// TestAssign follows PartitionIndex.java: known hashes stay, then the first bucket
// with room, then a new one, then any.
func TestAssign(t *testing.T) {
	x := New(Rules{Target: 2, Max: 3})
	x.Commit(1, []int32{10, 11}) // full
	want := []struct{ h, b int32 }{{10, 1}, {20, 0}, {21, 0}, {20, 0}, {22, 2}, {11, 1}, {23, 2}}
	for _, w := range want {
		if b, err := x.Assign(w.h); err != nil || b != w.b {
			t.Fatalf("hash %d: bucket %d, %v; want %d", w.h, b, err, w.b)
		}
	}
	seen := map[int32]bool{}
	for h := int32(100); h < 130; h++ {
		b, err := x.Assign(h)
		if err != nil || b < 0 || b > 2 {
			t.Fatal(b, err)
		}
		seen[b] = true
	}
	if len(seen) != 3 {
		t.Fatalf("all buckets are full and only %v get rows", seen)
	}
	x.Forget(0, []int32{20})
	x = New(Rules{Target: 1, Max: -1})
	for h := range int32(MaxBucket + 1) {
		if b, err := x.Assign(h); err != nil || b != h {
			t.Fatal(h, b, err)
		}
	}
	if _, err := x.Assign(-5); err == nil {
		t.Fatal("there is a bucket 32767")
	}
	x.Forget(7, []int32{7})
	if b, err := x.Assign(-5); err != nil || b != 7 {
		t.Fatal(b, err)
	}
}

// TestCommitWins: what others committed counts, whatever was assigned.
func TestCommitWins(t *testing.T) {
	x := New(Rules{Target: 10, Max: -1})
	if b, _ := x.Assign(1); b != 0 {
		t.Fatal(b)
	}
	x.Commit(4, []int32{1, 2})
	if b, _ := x.Assign(1); b != 4 || x.Pending() != 0 || x.Committed(4) != 2 {
		t.Fatal(b, x.Pending(), x.Committed(4))
	}
}

// TestShares: with several assigners a bucket only gets hashes of its share.
func TestShares(t *testing.T) {
	x := New(Rules{Target: 5, Max: -1, Assigners: 4, Channels: 4, Partition: -7})
	for h := int32(-200); h < 200; h++ {
		b, err := x.Assign(h)
		if err != nil || b%4 != x.share(h) {
			t.Fatalf("hash %d of share %d is in bucket %d: %v", h, x.share(h), b, err)
		}
	}
}

func BenchmarkAssignKnown(b *testing.B) {
	x := New(Rules{Target: 2_000_000, Max: -1})
	hashes := make([]int32, 1<<20)
	for i := range hashes {
		hashes[i] = int32(rand.Uint32())
	}
	x.Commit(0, hashes)
	b.ResetTimer()
	for i := range b.N {
		if _, err := x.Assign(hashes[i&(1<<20-1)]); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{0, 0, 0, 5})
	f.Fuzz(func(t *testing.T, raw []byte) {
		hashes, err := Decode(raw)
		if err == nil && string(Append(nil, hashes)) != string(raw) {
			t.Fatal("other bytes")
		}
	})
}
