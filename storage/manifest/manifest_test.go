package manifest

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

func shared(t testing.TB) string {
	dir := os.Getenv("PAIMON_SQL_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	if _, err := os.Stat(filepath.Join(dir, "fixtures")); err != nil {
		t.Skip("needs ../shared/fixtures")
	}
	return dir
}

// TestVectors compares with what fastavro decodes from files of Paimon 0.9 and 1.1.
func TestVectors(t *testing.T) {
	dir := filepath.Join(shared(t), "fixtures/cpp/vectors/avro")
	for _, name := range []string{"avro_manifest_09", "avro_manifest_11", "avro_manifest_union_file"} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Skip("needs ../shared/fixtures/cpp/vectors/avro")
		}
		got, err := DecodeEntries(name, raw)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		recs := records(t, filepath.Join(dir, name+".json"))
		if len(got) != len(recs) {
			t.Errorf("%s: %d entries, want %d", name, len(got), len(recs))
			continue
		}
		for i, r := range recs {
			f := r["_FILE"].(map[string]any)
			e := got[i]
			check := func(what string, got, want any) {
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s entry %d %s: %v, want %v", name, i, what, got, want)
				}
			}
			check("kind", e.Kind, r["_KIND"])
			check("bucket", e.Bucket, r["_BUCKET"])
			check("partition", "00000001"[:0]+hexOf(e.Partition), image(r["_PARTITION"]))
			check("name", e.File.Name, f["_FILE_NAME"])
			check("size", e.File.Size, f["_FILE_SIZE"])
			check("rows", e.File.Rows, f["_ROW_COUNT"])
			check("level", e.File.Level, f["_LEVEL"])
			check("min key", hexOf(e.File.MinKey), image(f["_MIN_KEY"]))
			check("schema", e.File.SchemaID, f["_SCHEMA_ID"])
			check("sequence", e.File.MaxSequence, f["_MAX_SEQUENCE_NUMBER"])
			vs := f["_VALUE_STATS"].(map[string]any)
			check("stats", hexOf(e.File.ValueStats.Max), image(vs["_MAX_VALUES"]))
			check("nulls", len(e.File.ValueStats.NullCounts), lenOf(vs["_NULL_COUNTS"]))
		}
	}
	for _, name := range []string{"avro_manifest_list_09", "avro_manifest_list_11"} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Skip("needs ../shared/fixtures/cpp/vectors/avro")
		}
		got, err := DecodeList(name, raw)
		recs := records(t, filepath.Join(dir, name+".json"))
		if err != nil || len(got) != len(recs) {
			t.Errorf("%s: %d metas (%v), want %d", name, len(got), err, len(recs))
			continue
		}
		for i, r := range recs {
			if got[i].Name != r["_FILE_NAME"] || fmt.Sprint(got[i].Size) != fmt.Sprint(r["_FILE_SIZE"]) || fmt.Sprint(got[i].Added) != fmt.Sprint(r["_NUM_ADDED_FILES"]) {
				t.Errorf("%s: %+v, want %v", name, got[i], r)
			}
		}
	}
}

func hexOf(b []byte) string { return hex.EncodeToString(b) }

// image is the JSON {"hex": ...} form of a row without its arity prefix.
func image(v any) string {
	m, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	return m["hex"].(string)[8:]
}

func lenOf(v any) int { a, _ := v.([]any); return len(a) }

func records(t *testing.T, path string) []map[string]any {
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var o struct {
		Records []map[string]any `json:"records"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&o); err != nil {
		t.Fatal(err)
	}
	return o.Records
}

// TestFixtures decodes every metadata file that real writers left.
func TestFixtures(t *testing.T) {
	dir := filepath.Join(shared(t), "fixtures")
	var lists, manifests, indexes, orc int
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Base(filepath.Dir(p)) != "manifest" {
			return err
		}
		raw, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		base := filepath.Base(p)
		switch {
		case strings.HasPrefix(base, "manifest-list-"):
			lists++
			_, err = DecodeList(p, raw)
		case strings.HasPrefix(base, "index-manifest-"):
			indexes++
			_, err = DecodeIndex(p, raw)
		case strings.HasPrefix(base, "manifest-"):
			manifests++
			_, err = DecodeEntries(p, raw)
		}
		var un *fileio.UnsupportedError
		if errors.As(err, &un) && un.Feature == "ORC manifests" && bytes.HasPrefix(raw, []byte("ORC")) {
			orc++
			err = nil
		}
		if err != nil {
			t.Errorf("%s: %v", p, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if lists == 0 || manifests == 0 || indexes == 0 {
		t.Errorf("%d lists, %d manifests, %d index manifests", lists, manifests, indexes)
	}
	t.Logf("%d lists, %d manifests, %d index manifests, %d of them ORC", lists, manifests, indexes, orc)
}

func sample(n int) []Entry {
	part, _ := binrow.Encode(nil, nil)
	key := make([]byte, 16)
	out := make([]Entry, n)
	for i := range out {
		key = bytes.Clone(key)
		key[8] = byte(i)
		out[i] = Entry{Kind: int8(i % 2), Partition: part, Bucket: int32(i % 16), TotalBuckets: 16, File: &DataFile{
			Name: fmt.Sprintf("data-6e1f1f2c-55f4-4c2b-9c0b-000000%06d-0.parquet", i), Size: int64(1000 + i), Rows: int64(i), MinKey: key, MaxKey: key,
			KeyStats:    Stats{Min: key, Max: key, NullCounts: []int64{0}},
			ValueStats:  Stats{Min: key, Max: key, NullCounts: []int64{-1}},
			MinSequence: int64(i), MaxSequence: int64(i) << 20, SchemaID: int64(i % 3), Level: int32(i % 6),
			ExtraFiles: []string{"a.index"}, CreationMillis: 1700000000000 + int64(i), DeleteRows: int64(i%5) - 1,
			EmbeddedIndex: []byte{1, 2}, Source: int8(i%3) - 1, ValueStatsCols: []string{"v"}, HasValueStatsCols: true,
			ExternalPath: "file:/x", FirstRowID: int64(i%4) - 1, WriteCols: nil, HasWriteCols: i%2 == 0,
		}}
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	for _, codec := range []Codec{{}, {Name: "null"}, {Name: "zstandard", Level: 3}} {
		want := sample(3000)
		raw, err := EncodeEntries(want, Arity{Partition: 0, Key: 1}, codec)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeEntries("m", raw)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Fatalf("%d entries", len(got))
		}
		for i := range want {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("entry %d: %+v %+v\nwant %+v", i, got[i], got[i].File, want[i].File)
			}
		}
		metas := []FileMeta{{Name: "manifest-x", Size: 5, Added: 1, Deleted: 2, SchemaID: 3, MinBucket: 0, MaxBucket: 7, MinLevel: -1, MaxLevel: -1, MinRowID: -1, MaxRowID: 9,
			PartitionStats: Stats{Min: emptyRow, Max: emptyRow}}}
		l, err := DecodeList("l", EncodeList(metas, codec))
		if err != nil || !reflect.DeepEqual(l, metas) {
			t.Errorf("list %+v, %v", l, err)
		}
		idx := []IndexEntry{{Partition: emptyRow, Bucket: 1, Type: "DELETION_VECTORS", Name: "index-1", Size: 10, Rows: 1, DVs: []DeletionVectorMeta{{"f", 1, 24, 2}, {"g", 31, 22, -1}}},
			{Partition: emptyRow, Type: "btree", Name: "index-2", Global: &GlobalIndex{1, 2, 3, []int32{4}, []byte{5}, []byte{6}}}}
		x, err := DecodeIndex("i", EncodeIndex(idx, 0, codec))
		if err != nil || !reflect.DeepEqual(x, idx) {
			t.Errorf("index %+v, %v", x, err)
		}
	}
	if l, err := DecodeList("l", EncodeList(nil, Codec{})); err != nil || len(l) != 0 {
		t.Errorf("an empty list: %v, %v", l, err)
	}
}

// TestDamage flips and cuts bytes: an error or other entries, never a panic.
func TestDamage(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 2))
	raw, err := EncodeEntries(sample(50), Arity{Key: 1}, Codec{Name: "null"})
	if err != nil {
		t.Fatal(err)
	}
	for range 20000 {
		b := bytes.Clone(raw)
		for range 1 + r.IntN(3) {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
		if r.IntN(4) == 0 {
			b = b[:r.IntN(len(b))]
		}
		_, err := DecodeEntries("manifest-x", b)
		var ce *fileio.CorruptionError
		var ue *fileio.UnsupportedError
		if err != nil && !errors.As(err, &ce) && !errors.As(err, &ue) {
			t.Fatalf("untyped error %v", err)
		}
		if ce != nil && ce.Path != "manifest-x" {
			t.Fatalf("error without the file: %v", err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	raw, err := EncodeEntries(sample(3), Arity{Key: 1}, Codec{Name: "null"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add(EncodeList([]FileMeta{{Name: "m"}}, Codec{Name: "null"}))
	f.Add(EncodeIndex([]IndexEntry{{Name: "i", DVs: []DeletionVectorMeta{{DataFile: "f"}}}}, 0, Codec{}))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = DecodeEntries("m", b)
		_, _ = DecodeList("m", b)
		_, _ = DecodeIndex("m", b)
	})
}

func BenchmarkDecodeEntries(b *testing.B) {
	const n = 100_000
	for _, codec := range []string{"null", "zstandard"} {
		raw, err := EncodeEntries(sample(n), Arity{Key: 1}, Codec{Name: codec})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(codec, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if es, err := DecodeEntries("m", raw); err != nil || len(es) != n {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/entry")
		})
	}
}
