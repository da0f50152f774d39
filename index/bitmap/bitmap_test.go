package bitmap

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/indextest"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

func build(t testing.TB, typ types.Type, o index.Options, data ...types.Datum) []byte {
	t.Helper()
	b, err := Kind.Create(typ, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Append(indextest.Array(typ, data, false)); err != nil {
		t.Fatal(err)
	}
	out, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestBytes: an index that Java made of the same rows.
func TestBytes(t *testing.T) {
	got := build(t, types.Of(types.Int4), nil, int64(1), int64(2), int64(1), nil, int64(-5))
	want := "02 00000005 00000003 01 fffffffc 00000012 | 00000001 fffffffb 00000000 00000028 | " +
		"00000003 (fffffffb fffffffb ffffffff)(00000001 00000000 00000014)(00000002 fffffffe ffffffff) | 3a300000 01000000 0000 0100 10000000 0000 0200"
	want = string(bytes.Map(func(r rune) rune {
		if bytes.ContainsRune([]byte(" |()"), r) {
			return -1
		}
		return r
	}, []byte(want)))
	if hex.EncodeToString(got) != want {
		t.Errorf("got  %x\nwant %s", got, want)
	}
}

func shared(t *testing.T, path string) string {
	t.Helper()
	root := os.Getenv("PAIMON_SQL_SHARED")
	if root == "" {
		root = "../../../shared"
	}
	root = filepath.Join(root, path)
	if _, err := os.Stat(root); err != nil {
		t.Skip("needs ../shared/" + path)
	}
	return root
}

// TestVectors: indexes of 100,000 rows that Java wrote, found again and, from the
// rows they speak of, written again.
func TestVectors(t *testing.T) {
	dir := shared(t, "fixtures/cpp/vectors/file-index")
	text := types.Of(types.Text)
	for version, name := range map[int]string{1: "bitmap-v1-string-high-cardinality.index", 2: "bitmap-v2-string-high-cardinality.index"} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		src := &indextest.Reader{Data: raw}
		x, err := Kind.Open(src, text)
		if err != nil {
			t.Fatal(err)
		}
		for v, want := range map[string][]uint32{
			"asdfghjkl123_2500": {3127, 18654, 23615, 43768, 62555, 63261, 66284, 74708, 99268},
			"asdfghjkl123_5000": {2269, 21292, 23667, 35066, 42377, 46085, 64811, 79062, 96161},
			"asdfghjkl123_7500": {14856, 50768, 60230, 68792, 72208, 73800, 78261, 81346, 86520, 87420, 88501, 95131, 99401},
		} {
			r, err := x.Test(&predicate.Leaf{Op: predicate.Eq, Type: text, Args: []types.Datum{v}})
			if err != nil || !r.Exact || !slices.Equal(r.Rows.ToArray(), want) {
				t.Errorf("version %d, %s: %v, %v, want %v", version, v, r, err, want)
			}
		}
		t.Logf("version %d: %d of %d bytes in %d reads for three values", version, src.Bytes, len(raw), src.Reads)
		if version == 2 && src.Bytes > int64(len(raw))/3 {
			t.Errorf("%d of %d bytes were read", src.Bytes, len(raw))
		}

		// Again from its rows.
		rd := x.(*reader[string])
		data := make([]types.Datum, rd.rows)
		eachValue(t, rd, func(k string, rows []uint32) {
			for _, row := range rows {
				data[row] = k
			}
		})
		got := build(t, text, index.Options{"version": fmt.Sprint(version)}, data...)
		if !bytes.Equal(got, raw) {
			t.Errorf("version %d: %d bytes written anew differ from the %d of Java, first at %d", version, len(got), len(raw), firstDiff(got, raw))
		}
	}
}

func firstDiff(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// eachValue walks the dictionary.
func eachValue[K int64 | string](t *testing.T, r *reader[K], f func(k K, rows []uint32)) {
	var all []K
	if r.version == 1 {
		w := &window{src: r.src, at: r.dict}
		for range r.values {
			k, err := value(w, r.next)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.int32(); err != nil {
				t.Fatal(err)
			}
			all = append(all, k)
		}
	} else {
		for b := range r.first {
			buf, _ := index.ReadBytes(r.src, r.offsets[b], r.ends[b]-r.offsets[b])
			es, err := r.parse(&window{src: index.BytesSource(buf), buf: buf}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range es {
				all = append(all, e.key)
			}
		}
	}
	// The refs of version 1 come in the order of the dictionary, which is all's.
	refs, body, err := r.find(&query[K]{points: true, spans: tidy(slices.Clone(all))}, false)
	if err != nil || len(refs) != len(all) {
		t.Fatalf("%d of %d values, %v", len(refs), len(all), err)
	}
	for i, k := range all {
		rows, err := r.union(refs[i:i+1], body)
		if err != nil {
			t.Fatal(err)
		}
		f(k, rows.ToArray())
	}
}

// TestAgainstScan: every type and predicate, both versions, blocks of all sizes.
func TestAgainstScan(t *testing.T) {
	indextest.Fuzz(t, Kind, 60, func(r *rand.Rand) index.Options {
		o := index.Options{"version": fmt.Sprint(1 + r.IntN(2))}
		if r.IntN(2) == 0 {
			o["index-block-size"] = []string{"100", "64b", "1 kb", "1"}[r.IntN(4)]
		}
		return o
	})
}
