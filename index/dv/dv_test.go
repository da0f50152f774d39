package dv

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
)

func of(ps ...int64) *Vector {
	v := &Vector{}
	for _, p := range ps {
		v.Add(p)
	}
	return v
}

// TestJavaBytes are the files that Java 1.4.2 writes for positions 1 and 3.
func TestJavaBytes(t *testing.T) {
	for _, c := range []struct {
		wide   bool
		length int32
		hex    string
	}{
		{false, 24, "01000000185e43f2d03a300000010000000000010010000000" + "01000300" + "da2d59d3"},
		{true, 44, "0100000024d1d339640100000000000000000000003a300000010000000000010010000000" + "01000300" + "683497a9"},
	} {
		want, err := hex.DecodeString(c.hex)
		if err != nil {
			t.Fatal(err)
		}
		var f File
		off, n, err := f.Append(of(3, 1), c.wide)
		if err != nil || off != 1 || n != c.length || !bytes.Equal(f.Bytes(), want) {
			t.Errorf("wide %v: offset %d length %d (%v)\n%x\nwant\n%x", c.wide, off, n, err, f.Bytes(), want)
		}
		v, err := Read(want, 1, int64(c.length))
		if err != nil || v.Cardinality() != 2 || !v.Contains(1) || v.Contains(2) || !v.Contains(3) {
			t.Errorf("wide %v: %+v, %v", c.wide, v, err)
		}
		if off, _, _ := f.Append(of(0), c.wide); int(off) != len(want) {
			t.Errorf("second vector at %d, want %d", off, len(want))
		}
	}
}

func TestKeepAgainstSet(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 3))
	for range 200 {
		set := map[int64]bool{}
		v := &Vector{}
		base := []int64{0, 65000, 1<<32 - 500}[r.IntN(3)]
		for range r.IntN(2000) {
			p := base + r.Int64N(1000)
			set[p] = true
			v.Add(p)
		}
		bin, err := v.Encode(true)
		if err != nil {
			t.Fatal(err)
		}
		if v, err = Decode(bin); err != nil || v.Cardinality() != int64(len(set)) {
			t.Fatalf("%d positions, want %d: %v", v.Cardinality(), len(set), err)
		}
		from, n := base+r.Int64N(900), 1+r.IntN(3000)
		keep, none := v.Keep(from, n, nil)
		var want []uint16
		for i := range n {
			if !set[from+int64(i)] {
				want = append(want, uint16(i))
			}
		}
		if none != (len(want) == n) || !none && !bytes.Equal(u16(keep), u16(want)) {
			t.Fatalf("keep of [%d, +%d): %d rows, want %d", from, n, len(keep), len(want))
		}
		if got := v.CountIn(from, from+int64(n)); got != int64(n-len(want)) {
			t.Fatalf("count of [%d, +%d): %d, want %d", from, n, got, n-len(want))
		}
	}
}

func u16(v []uint16) []byte {
	var out []byte
	for _, x := range v {
		out = append(out, byte(x), byte(x>>8))
	}
	return out
}

func TestDamage(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 4))
	var f File
	v := &Vector{}
	for range 5000 {
		v.Add(r.Int64N(200000))
	}
	off, n, err := f.Append(v, false)
	if err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		b := bytes.Clone(f.Bytes())
		b[1+r.IntN(len(b)-1)] ^= 1 << r.IntN(8)
		if _, err := Read(b, int64(off), int64(n)); err == nil {
			t.Fatal("a flipped bit was not noticed")
		}
		if _, err := Read(b[:r.IntN(len(b))], int64(off), int64(n)); err == nil {
			t.Fatal("a cut file was not noticed")
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, wide := range []bool{false, true} {
		v := of(1, 3, 70000)
		for i := range int64(5000) {
			v.Add(100000 + i*2)
		}
		b, err := v.Encode(wide)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := Decode(b)
		if err != nil {
			return
		}
		n := int64(0)
		v.Each(func(int64) bool { n++; return n < 1000 })
		v.Keep(0, 1000, nil)
		if n < 1000 && n != v.Cardinality() {
			t.Fatalf("%d positions, cardinality %d", n, v.Cardinality())
		}
	})
}

func BenchmarkKeep(b *testing.B) {
	v := &Vector{}
	r := rand.New(rand.NewPCG(1, 1))
	const rows = 1 << 20
	for range rows / 20 {
		v.Add(r.Int64N(rows))
	}
	buf := make([]uint16, 0, 8192)
	b.ResetTimer()
	for b.Loop() {
		for at := int64(0); at < rows; at += 8192 {
			v.Keep(at, 8192, buf)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
}
