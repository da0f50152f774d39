package parquet

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
)

// TestPlainText takes and picks values of random lengths from several pages into one
// array, and cuts pages short.
func TestPlainText(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		longest := []int{1, 20, 33, 40, 3000}[r.IntN(5)]
		var want []string
		size := 1 + r.IntN(300)
		s := &bytesSink{dt: arrow.BinaryTypes.String}
		s.begin(size)
		for pos := 0; pos < size; {
			n := 1 + r.IntN(400)
			var all []string
			v := &pageVals{form: formPlain, n: n}
			for range n {
				x := strings.Repeat(string(rune('a'+r.IntN(26))), r.IntN(longest))
				all = append(all, x)
				v.b = append(binary.LittleEndian.AppendUint32(v.b, uint32(len(x))), x...)
			}
			if err := v.skip(r.IntN(n)); err != nil {
				t.Fatal(err)
			}
			for v.pos < n && pos < size {
				k := 1 + r.IntN(n-v.pos)
				at := v.pos
				var err error
				if r.IntN(3) == 0 {
					k = min(k, size-pos)
					err = s.take(v, pos, k)
					want = append(want, all[at:at+k]...)
					pos += k
				} else {
					var sel []int32
					share := r.Float64()
					for i := range k {
						if r.Float64() < share && len(sel) < size-pos {
							sel = append(sel, int32(i))
							want = append(want, all[at+i])
						}
					}
					if len(sel) == 0 {
						err = v.skip(k)
					} else {
						err = s.pick(v, pos, sel, k)
					}
					pos += len(sel)
				}
				if err != nil || v.pos != at+k {
					t.Fatalf("at %d of %d: %v", v.pos, at+k, err)
				}
			}
			if v.pos == n && v.at != len(v.b) {
				t.Fatalf("ends at byte %d of %d", v.at, len(v.b))
			}
			short := &pageVals{form: formPlain, n: n, b: v.b[:r.IntN(len(v.b))]}
			every := make([]int32, n)
			for i := range every {
				every[i] = int32(i)
			}
			for _, f := range []func(x *bytesSink) error{
				func(x *bytesSink) error { return x.take(short, 0, n) },
				func(x *bytesSink) error { return x.pick(short, 0, every, n) },
				func(x *bytesSink) error { return x.pick(short, 0, every[n-1:], n) },
			} {
				x := &bytesSink{dt: arrow.BinaryTypes.String}
				x.begin(n)
				short.pos, short.at = 0, 0
				if err := f(x); !errors.Is(err, errValues) && !errors.Is(err, errNegLen) {
					t.Fatalf("a page of %d bytes of %d: %v", len(short.b), len(v.b), err)
				}
			}
		}
		a := s.finish(size, nil).(*array.String)
		var got []string
		for i := range a.Len() {
			got = append(got, a.Value(i))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}
