package aggregate

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// randomSet makes a value for a function on sets, of about n members.
func randomSet(r *rand.Rand, function string, n int) []byte {
	switch function {
	case "rbm32":
		b := roaring.New()
		addRandom(r, n, 1<<20, func(first, last uint64) { b.AddRange(first, last+1) })
		b.RunOptimize()
		out, _ := b.ToBytes()
		return out
	case "rbm64":
		m := &bitmap64{last: -1}
		addRandom(r, n, 1<<28, func(first, last uint64) {
			for v := first; v <= last; v++ {
				one := &bitmap64{last: -1}
				one.put(v)
				m.or(one)
			}
		})
		return m.append(nil)
	case "theta_sketch":
		u := &thetaUnion{slots: make([]int64, 4*thetaEntries), theta: thetaMax, least: thetaMax, empty: true}
		for range n {
			_ = u.update(r.Int64N(thetaMax-1) + 1)
		}
		return u.result()
	}
	h := newHLL(12)
	for range n {
		v := uint32(1)
		for r.IntN(2) == 0 && v < 60 {
			v++
		}
		h = h.update(v<<26 | r.Uint32()&hllSlotMask)
	}
	return h.append(nil)
}

// put adds a number to a bitmap that has none.
func (m *bitmap64) put(v uint64) {
	var key [6]byte
	for i := range key {
		key[i] = byte(v >> (56 - 8*i))
	}
	c := &container{}
	c.add(uint32(v&0xffff), uint32(v&0xffff))
	m.root = m.root.insert(key, 0, m.room())
	m.places[m.last] = c
	m.keys++
}

// addRandom adds single numbers and a few ranges.
func addRandom(r *rand.Rand, n int, limit uint64, add func(first, last uint64)) {
	for range n {
		v := r.Uint64N(limit)
		last := v
		if r.IntN(20) == 0 {
			last += r.Uint64N(300)
		}
		add(v, last)
	}
}

func TestContainer(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 2))
	for round := range 200 {
		a, b := [1 << 16]bool{}, [1 << 16]bool{}
		build := func(in *[1 << 16]bool) container {
			var c container
			for v := 0; v < 1<<16; {
				v += r.IntN(1 << (1 + r.IntN(16)))
				last := v
				if r.IntN(4) == 0 {
					last += r.IntN(1000)
				}
				if last >= 1<<16 {
					break
				}
				c.add(uint32(v), uint32(last))
				for ; v <= last; v++ {
					in[v] = true
				}
			}
			return c
		}
		x, y := build(&a), build(&b)
		x.or(&y)
		want, runs := 0, 0
		for i := range a {
			a[i] = a[i] || b[i]
			if a[i] {
				want++
				if i == 0 || !a[i-1] {
					runs++
				}
			}
		}
		if got, n := x.size(); got != want || n != runs {
			t.Fatalf("round %d: size %d, %d runs, want %d, %d", round, got, n, want, runs)
		}
		for form := range 3 {
			if form == formArray && want > 1<<15 || form == formRuns && runs > 1<<15 {
				continue
			}
			bytes := x.append(nil, form, runs)
			back, ok := readContainer(&bytesReader{b: bytes}, form, want)
			if !ok {
				t.Fatalf("round %d: form %d does not read back", round, form)
			}
			got := [1 << 16]bool{}
			back.each(func(first, last uint32) {
				for v := first; v <= last; v++ {
					got[v] = true
				}
			})
			if got != a {
				t.Fatalf("round %d: form %d reads back as something else", round, form)
			}
		}
	}
}

// TestBitmap32 compares with the roaring library, which differs from Java in the
// form of a container where two are as small.
func TestBitmap32(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 3))
	for round := range 300 {
		a, b := randomSet(r, "rbm32", r.IntN(3000)), randomSet(r, "rbm32", r.IntN(100))
		got, err := unionBitmap32(a, b)
		if err != nil {
			t.Fatal(err)
		}
		x, y := roaring.New(), roaring.New()
		_, _ = x.FromBuffer(a)
		_, _ = y.FromBuffer(b)
		x.Or(y)
		x.RunOptimize()
		want, _ := x.ToBytes()
		z := roaring.New()
		if _, err := z.FromBuffer(got); err != nil || !z.Equals(x) || len(got)-len(want) > 2*len(z.ToArray()) {
			t.Fatalf("round %d: %v, other members, or %d bytes instead of %d", round, err, len(got), len(want))
		}
	}
}

// TestSetsAgain: a set united with itself or a part of itself is the same set.
func TestSetsAgain(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 4))
	for _, c := range []struct {
		name  string
		union func(a, b []byte) ([]byte, error)
	}{{"rbm32", unionBitmap32}, {"rbm64", unionBitmap64}, {"theta_sketch", unionTheta}, {"hll_sketch", unionHLL}} {
		t.Run(c.name, func(t *testing.T) {
			for range 30 {
				a := randomSet(r, c.name, r.IntN(2000))
				b := randomSet(r, c.name, r.IntN(2000))
				ab, err := c.union(a, b)
				if err != nil {
					t.Fatal(err)
				}
				again, err := c.union(ab, b)
				if err != nil {
					t.Fatal(err)
				}
				if c.name == "hll_sketch" {
					if ab[7]&3 != hllRegisters {
						continue // the order of a table tells how it came about
					}
					ab, again = ab[hllHeader:], again[hllHeader:] // the estimate, too
				}
				if !bytes.Equal(ab, again) {
					t.Fatalf("a+b = %x\na+b+b = %x", ab, again)
				}
			}
		})
	}
}

func FuzzSets(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	names := []string{"rbm32", "rbm64", "theta_sketch", "hll_sketch"}
	for i, n := range names {
		for _, size := range []int{0, 1, 7, 40, 200} {
			f.Add(uint8(i), randomSet(r, n, size), randomSet(r, n, 20))
		}
	}
	for _, s := range []string{"3a30000000000000", "0301070c0508000000000000", "0a01070408080002"} {
		b, _ := hex.DecodeString(s)
		f.Add(uint8(0), b, b)
		f.Add(uint8(3), b, b)
	}
	unions := []func(a, b []byte) ([]byte, error){unionBitmap32, unionBitmap64, unionTheta, unionHLL}
	f.Fuzz(func(t *testing.T, which uint8, a, b []byte) {
		u := unions[int(which)%len(unions)]
		out, err := u(a, b)
		if err != nil {
			return
		}
		if len(out) > 64*(len(a)+len(b))+1<<22 {
			t.Fatalf("%d bytes of %d", len(out), len(a)+len(b))
		}
		// What was made can be read.
		if _, err := u(out, out); err != nil {
			t.Fatalf("%v: %x", err, out)
		}
	})
}

// TestJavaSets lets Java unite sets of many sizes that we made: it reads ours, and
// its results are ours, byte by byte.
func TestJavaSets(t *testing.T) {
	java := oracle.Java(t, t.TempDir())
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 5))
	sizes := []int{0, 1, 1, 5, 9, 25, 30, 100, 300, 1500, 3000, 6000}
	for _, name := range []string{"rbm32", "rbm64", "theta_sketch", "hll_sketch"} {
		t.Run(name, func(t *testing.T) {
			java.Do(t, map[string]any{"cmd": "create", "table": "d." + name, "schema": map[string]any{
				"fields":      []map[string]any{{"name": "k", "type": "INT NOT NULL"}, {"name": "v", "type": "BYTES"}},
				"primaryKeys": []string{"k"},
				"options":     map[string]string{"bucket": "1", "write-only": "true", "merge-engine": "aggregation", "fields.v.aggregate-function": name},
			}})
			const keys, commits = 12, 4
			var in Input
			var values [][]byte
			all := make([][]map[string]any, commits)
			for k := range keys {
				for i := range commits {
					v := randomSet(r, name, sizes[r.IntN(len(sizes))])
					values = append(values, v)
					all[i] = append(all[i], map[string]any{"k": k, "v": hex.EncodeToString(v)})
				}
				in.Ends = append(in.Ends, uint32(len(values)))
			}
			java.Do(t, map[string]any{"cmd": "write", "table": "d." + name, "commits": all})
			var ds []types.Datum
			for _, v := range values {
				ds = append(ds, v)
			}
			in.Col = vec.FromDatums(types.Of(types.Bytea), ds)
			a, err := New(name, Spec{Column: types.Field{Name: "v", Type: types.Of(types.Bytea)}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := a.Fold(&in)
			if err != nil {
				t.Fatal(err)
			}
			for _, raw := range java.Rows(t, "d."+name, nil) {
				var row struct {
					K int    `json:"k"`
					V string `json:"v"`
				}
				if err := json.Unmarshal(raw, &row); err != nil {
					t.Fatal(err)
				}
				ours := hex.EncodeToString(vec.DatumAt(got, types.Of(types.Bytea), row.K).([]byte))
				if row.V != ours {
					at := 0
					for at < min(len(ours), len(row.V)) && ours[at] == row.V[at] {
						at++
					}
					t.Errorf("key %d: %d and %d digits, differ from digit %d on: java ..%.80s ours ..%.80s (begins %.100s)", row.K, len(row.V), len(ours), at, row.V[at:], ours[at:], ours)
				}
			}
		})
	}
}

func BenchmarkUnion(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	unions := map[string]func(a, b []byte) ([]byte, error){"rbm32": unionBitmap32, "rbm64": unionBitmap64, "theta_sketch": unionTheta, "hll_sketch": unionHLL}
	for _, name := range []string{"rbm32", "rbm64", "theta_sketch", "hll_sketch"} {
		for _, n := range []int{20, 5000} {
			x, y := randomSet(r, name, n), randomSet(r, name, n)
			b.Run(fmt.Sprintf("%s/members=%d", name, n), func(b *testing.B) {
				b.SetBytes(int64(len(x) + len(y)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := unions[name](x, y); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
