package binrow

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

func ty(t testing.TB, s string) types.Type {
	t.Helper()
	v, err := types.ParsePaimonText(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func dec(t testing.TB, s string) *numeric.Dec {
	t.Helper()
	whole, frac, _ := strings.Cut(s, ".")
	c, ok := new(big.Int).SetString(whole+frac, 10)
	if !ok {
		t.Fatalf("decimal %q", s)
	}
	d := &numeric.Dec{Scale: int32(len(frac))}
	d.Coef.Set(c)
	return d
}

// TestVectors are images, hashes and buckets that Java 1.4.2 produced.
func TestVectors(t *testing.T) {
	const us = 1609459200123456
	for _, c := range []struct {
		types string
		vals  []types.Datum
		hex   string // "" = only the hash
		hash  int32
		b     [3]int32 // for 4, 5, 16 buckets
	}{
		{"INT|STRING", []types.Datum{int64(5), "ab"}, "000000000000000005000000000000006162000000000082", 236764286, [3]int32{2, 1, 14}},
		{"INT", []types.Datum{int64(5)}, "00000000000000000500000000000000", 260196596, [3]int32{0, 1, 4}},
		{"INT", []types.Datum{int64(-1)}, "0000000000000000ffffffff00000000", 1133687267, [3]int32{3, 2, 3}},
		{"INT", []types.Datum{nil}, "00010000000000000000000000000000", -1748325344, [3]int32{0, 4, 0}},
		{"BIGINT", []types.Datum{int64(1)}, "", 1465514398, [3]int32{2, 3, 14}},
		{"BIGINT", []types.Datum{int64(-7)}, "", 1145478327, [3]int32{3, 2, 7}},
		{"STRING", []types.Datum{""}, "00000000000000000000000000000080", 302122119, [3]int32{3, 4, 7}},
		{"STRING", []types.Datum{"1234567"}, "", 199144172, [3]int32{0, 2, 12}},
		{"STRING", []types.Datum{"12345678"}, "000000000000000008000000100000003132333435363738", -391021801, [3]int32{1, 1, 9}},
		{"STRING", []types.Datum{"hello world"}, "00000000000000000b0000001000000068656c6c6f20776f726c640000000000", 161593394, [3]int32{2, 4, 2}},
		{"STRING", []types.Datum{"中"}, "", -1723749424, [3]int32{0, 4, 0}},
		{"TINYINT", []types.Datum{int64(-2)}, "", 1831745471, [3]int32{3, 1, 15}},
		{"SMALLINT", []types.Datum{int64(-2)}, "", 557672611, [3]int32{3, 1, 3}},
		{"FLOAT", []types.Datum{1.5}, "", -173842779, [3]int32{3, 4, 11}},
		{"DOUBLE", []types.Datum{1.5}, "", 1860889473, [3]int32{1, 3, 1}},
		{"DATE", []types.Datum{int64(19000)}, "", -1241043695, [3]int32{3, 0, 15}},
		{"DECIMAL(10, 2)", []types.Datum{dec(t, "123.45")}, "", 767607022, [3]int32{2, 2, 14}},
		{"DECIMAL(20, 2)", []types.Datum{dec(t, "123.45")}, "0000000000000000020000001000000030390000000000000000000000000000", -118192725, [3]int32{1, 0, 5}},
		{"DECIMAL(20, 2)", []types.Datum{dec(t, "-123.45")}, "00000000000000000200000010000000cfc70000000000000000000000000000", -605613085, [3]int32{1, 0, 13}},
		{"DECIMAL(20, 2)", []types.Datum{nil}, "0001000000000000000000001000000000000000000000000000000000000000", -1380280760, [3]int32{0, 0, 8}},
		{"TIMESTAMP(3)", []types.Datum{int64(1609459200123000)}, "00000000000000007b703ebb76010000", 216662097, [3]int32{1, 2, 1}},
		{"TIMESTAMP(6)", []types.Datum{int64(us)}, "000000000000000040f50600100000007b703ebb76010000", -479711379, [3]int32{3, 4, 3}},
		{"TIMESTAMP(9)", []types.Datum{int64(us)*1000 + 789}, "000000000000000055f80600100000007b703ebb76010000", 2139839490, [3]int32{2, 0, 2}},
		{"TIMESTAMP(6)", []types.Datum{nil}, "000100000000000000000000100000000000000000000000", -340882661, [3]int32{1, 1, 5}},
		{"TIMESTAMP(6)|STRING", []types.Datum{nil, "abcdefgh"}, "0001000000000000000000001800000008000000200000000000000000000000" + "6162636465666768", -1690058644, [3]int32{0, 4, 4}},
		{"ARRAY<INT>", []types.Datum{[]types.Datum{int64(1), nil, int64(3)}}, "00000000000000001800000010000000" + "0300000002000000010000000000000003000000" + "00000000", 1830759751, [3]int32{3, 1, 7}},
		{"ARRAY<STRING>", []types.Datum{[]types.Datum{"a", "longer-than-7"}}, "00000000000000002800000010000000020000000000000061000000000000810d000000180000006c6f6e6765722d7468616e2d37000000", 1217309511, [3]int32{3, 1, 7}},
		{"MAP<STRING, INT>", []types.Datum{[]types.KV{{K: "k", V: int64(7)}}}, "000000000000000024000000100000001000000001000000000000006b0000000000008101000000000000000700000000000000" + "00000000", 1122452947, [3]int32{3, 2, 3}},
		{"", nil, "0000000000000000", -1670924195, [3]int32{-1, -1, -1}},
	} {
		var ts []types.Type
		if c.types != "" {
			for _, s := range strings.Split(c.types, "|") {
				ts = append(ts, ty(t, s))
			}
		}
		img, err := Encode(ts, c.vals)
		if err != nil {
			t.Errorf("%s: %v", c.types, err)
			continue
		}
		if c.hex != "" && hex.EncodeToString(img) != c.hex {
			t.Errorf("%s %v: image\n%x, want\n%s", c.types, c.vals, img, c.hex)
		}
		if h := Hash(img); h != c.hash {
			t.Errorf("%s %v: hash %d, want %d", c.types, c.vals, h, c.hash)
		}
		for i, n := range []int32{4, 5, 16} {
			if got := BucketOf(img, n); c.b[i] >= 0 && got != c.b[i] {
				t.Errorf("%s %v: bucket %d of %d, want %d", c.types, c.vals, got, n, c.b[i])
			}
		}
		back, err := Decode(img, ts)
		if err != nil || !reflect.DeepEqual(normal(back), normal(c.vals)) {
			t.Errorf("%s: decoded %v (%v), want %v", c.types, back, err, c.vals)
		}
	}
	row := types.Type{Kind: types.Row, Fields: []types.Field{{Name: "a", Type: ty(t, "INT")}, {Name: "b", Type: ty(t, "STRING")}}}
	img, err := Encode([]types.Type{row}, []types.Datum{[]types.Datum{int64(5), "ab"}})
	if err != nil || Hash(img) != 1209432919 {
		t.Errorf("row in row: %x, %v", img, err)
	}
	wide := make([]types.Type, 60)
	vals := make([]types.Datum, 60)
	for i := range wide {
		wide[i], vals[i] = ty(t, "INT"), int64(i)
	}
	vals[59] = nil
	img, _ = Encode(wide, vals)
	if len(img) != 496 || hex.EncodeToString(img[:16]) != "00000000000000000800000000000000" {
		t.Errorf("60 columns: %d bytes, %x", len(img), img[:16])
	}
}

// normal makes values comparable with DeepEqual: decimals become text.
func normal(v any) any {
	switch v := v.(type) {
	case []types.Datum:
		out := make([]any, len(v))
		for i := range v {
			out[i] = normal(v[i])
		}
		return out
	case []types.KV:
		out := make([]any, 0, 2*len(v))
		for _, kv := range v {
			out = append(out, normal(kv.K), normal(kv.V))
		}
		return out
	case *numeric.Dec:
		return v.Coef.String() + "e-" + big.NewInt(int64(v.Scale)).String()
	}
	return v
}

func TestHiveAndModBuckets(t *testing.T) {
	for _, c := range []struct {
		types string
		vals  []types.Datum
		want  [3]int32 // of 4, 7, 1000000
	}{
		{"INT", []types.Datum{int64(5)}, [3]int32{1, 5, 5}},
		{"INT|STRING", []types.Datum{int64(5), "ab"}, [3]int32{0, 5, 3260}}, // 3260 = 31*5 + hash("ab")
		{"BIGINT", []types.Datum{int64(-7)}, [3]int32{2, 6, 6}},
		{"STRING", []types.Datum{"hello world"}, [3]int32{0, 4, 106052}},
		{"DECIMAL(10, 2)", []types.Datum{dec(t, "1.50")}, [3]int32{2, 4, 466}},
		{"DECIMAL(10, 2)", []types.Datum{dec(t, "100.00")}, [3]int32{0, 6, 3100}},
		{"INT|INT", []types.Datum{nil, int64(5)}, [3]int32{1, 5, 5}},
		{"DOUBLE", []types.Datum{1.5}, [3]int32{0, 6, 217536}},
		{"DATE", []types.Datum{int64(19000)}, [3]int32{0, 2, 19000}},
	} {
		var ts []types.Type
		for _, s := range strings.Split(c.types, "|") {
			ts = append(ts, ty(t, s))
		}
		for i, n := range []int32{4, 7, 1000000} {
			if got, ok := Bucket(HiveBucket, ts, c.vals, n); !ok || got != c.want[i] {
				t.Errorf("hive %s %v of %d: %d %v, want %d", c.types, c.vals, n, got, ok, c.want[i])
			}
		}
	}
	if got, ok := Bucket(ModBucket, []types.Type{ty(t, "INT")}, []types.Datum{int64(-3)}, 5); !ok || got != 2 {
		t.Errorf("mod: %d %v", got, ok)
	}
	if _, ok := Bucket(HiveBucket, []types.Type{ty(t, "TIMESTAMP(3)")}, []types.Datum{int64(1)}, 5); ok {
		t.Error("hive has no hash of timestamps")
	}
}

func shared(t testing.TB) string {
	dir := os.Getenv("PAIMON_SQL_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skip("needs ../shared/fixtures")
	}
	return dir
}

// TestBucketVectors compares with bucket ids that Java computed.
func TestBucketVectors(t *testing.T) {
	dir := filepath.Join(shared(t), "fixtures/cpp/vectors/bucket-id")
	files, _ := filepath.Glob(filepath.Join(dir, "*.types.json"))
	if len(files) == 0 {
		t.Skip("needs ../shared/fixtures/cpp/vectors/bucket-id")
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var spec struct {
			Buckets int32    `json:"buckets"`
			Types   []string `json:"types"`
		}
		if err := json.Unmarshal(raw, &spec); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		ts := make([]types.Type, len(spec.Types))
		for i, n := range spec.Types {
			ts[i] = ty(t, n)
		}
		data, err := os.ReadFile(strings.TrimSuffix(f, ".types.json") + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		bad, n := 0, 0
		for _, line := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
			d := json.NewDecoder(bytes.NewReader(line))
			d.UseNumber()
			var row []any
			if err := d.Decode(&row); err != nil {
				t.Fatal(err)
			}
			vals := make([]types.Datum, len(ts))
			for i := range ts {
				vals[i] = fromJSON(t, row[i], ts[i])
			}
			want, _ := row[len(ts)].(json.Number).Int64()
			got, ok := Bucket(DefaultBucket, ts, vals, spec.Buckets)
			n++
			if !ok || int64(got) != want {
				if bad++; bad < 4 {
					t.Errorf("%s: %s: bucket %d, want %d", filepath.Base(f), line, got, want)
				}
			}
		}
		if bad > 0 || n == 0 {
			t.Errorf("%s: %d of %d rows differ", filepath.Base(f), bad, n)
		}
	}
}

func fromJSON(t *testing.T, v any, ty types.Type) types.Datum {
	if v == nil {
		return nil
	}
	num := func() int64 {
		n, err := v.(json.Number).Int64()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	switch ty.Kind {
	case types.Float4, types.Float8:
		f, _ := v.(json.Number).Float64()
		return f
	case types.Numeric:
		s, ok := v.(string)
		if !ok {
			s = v.(json.Number).String()
		}
		return dec(t, s)
	case types.Bytea:
		return []byte(v.(string))
	case types.Timestamp, types.TimestampTZ:
		var ns int64
		if s, ok := v.(string); ok {
			for _, layout := range []string{"2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999", "2006-01-02T15:04"} {
				if p, err := time.Parse(layout, s); err == nil {
					if !ty.IsNanos() {
						return p.UnixMicro()
					}
					ns = p.UnixNano()
				}
			}
		} else {
			ns = num()
		}
		if ty.IsNanos() {
			return ns
		}
		q := ns / 1000
		if ns%1000 < 0 {
			q--
		}
		return q
	case types.Bool:
		return v.(bool)
	}
	if ty.IsTextLike() {
		return v.(string)
	}
	return num()
}

func TestDecimalBytes(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(shared(t), "fixtures/cpp/vectors/decimal/decimal_bytes.data"))
	if err != nil {
		t.Skip("needs ../shared/fixtures/cpp/vectors/decimal")
	}
	next := func() []byte {
		n := int(raw[0])<<24 | int(raw[1])<<16 | int(raw[2])<<8 | int(raw[3])
		out := raw[4 : 4+n]
		raw = raw[4+n:]
		return out
	}
	n := 0
	for len(raw) > 0 {
		text, want := next(), next()
		v, _ := new(big.Int).SetString(string(text), 10)
		if got := twos(v); !bytes.Equal(got, want) {
			t.Fatalf("%s: %x, want %x", text, got, want)
		}
		var back big.Int
		if setTwos(&back, want); back.Cmp(v) != 0 {
			t.Fatalf("%x: %s, want %s", want, &back, v)
		}
		n++
	}
	if n != 2000 {
		t.Errorf("%d values", n)
	}
}

var fuzzTypes = []string{"INT", "STRING", "DECIMAL(20, 3)", "DECIMAL(10, 2)", "TIMESTAMP(6)", "TIMESTAMP(9)", "BYTES",
	"ARRAY<STRING>", "MAP<STRING, ARRAY<INT>>", "MULTISET<INT>", "VECTOR<FLOAT, 3>", "VARIANT", "BOOLEAN", "TIME(3)", "DOUBLE"}

// FuzzDecode: no image makes the decoder panic or allocate beyond its size.
func FuzzDecode(f *testing.F) {
	ts := make([]types.Type, len(fuzzTypes))
	for i, s := range fuzzTypes {
		ts[i] = ty(f, s)
	}
	seed, err := Encode(ts, []types.Datum{int64(1), "a longer text", dec(f, "-123456789012345.678"), dec(f, "1.5"), int64(-1), int64(-1), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9},
		[]types.Datum{"x", nil, "long enough text"}, []types.KV{{K: "k", V: []types.Datum{int64(1)}}}, []types.KV{{K: int64(1), V: int64(2)}},
		[]types.Datum{1.0, 2.0, 3.0}, []types.Datum{[]byte{1}, []byte{2}}, true, int64(1000), 2.5})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, b []byte) {
		vals, err := Decode(b, ts)
		if err != nil {
			return
		}
		again, err := Encode(ts, vals)
		if err != nil {
			t.Fatalf("decoded values do not encode: %v", err)
		}
		back, err := Decode(again, ts)
		if err != nil || len(back) != len(vals) {
			t.Fatalf("second decode: %v", err)
		}
	})
}

func TestRandomDamage(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	ts := []types.Type{ty(t, "STRING"), ty(t, "ARRAY<STRING>"), ty(t, "MAP<INT, STRING>"), ty(t, "DECIMAL(38, 10)"), ty(t, "TIMESTAMP(9)")}
	img, err := Encode(ts, []types.Datum{"some longer text", []types.Datum{"abcdefghij", nil}, []types.KV{{K: int64(1), V: "abcdefghijk"}}, dec(t, "1234567890123456789.5"), int64(12345678)})
	if err != nil {
		t.Fatal(err)
	}
	for range 20000 {
		b := bytes.Clone(img)
		for range 1 + r.IntN(4) {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
		_, _ = Decode(b[:len(b)-r.IntN(2)*r.IntN(len(b))], ts)
	}
}

func BenchmarkHash(b *testing.B) {
	img, _ := Encode([]types.Type{ty(b, "BIGINT"), ty(b, "INT")}, []types.Datum{int64(1), int64(2)})
	for b.Loop() {
		BucketOf(img, 16)
	}
}
