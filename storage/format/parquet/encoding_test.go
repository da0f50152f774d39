package parquet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/format/formattest"
)

type foreignInner struct {
	A int32    `parquet:"a,delta"`
	B []string `parquet:"b,list"`
}

// foreignRow has columns in encodings that Java Paimon never writes.
type foreignRow struct {
	I32Delta  int32             `parquet:"i32_delta,delta"`
	I64Delta  int64             `parquet:"i64_delta,delta"`
	I64Opt    *int64            `parquet:"i64_opt,optional"`
	I32Split  int32             `parquet:"i32_split,split"`
	F32Split  float32           `parquet:"f32_split,split"`
	F64Split  float64           `parquet:"f64_split,split"`
	SLength   string            `parquet:"s_length,delta"`
	SDelta    *string           `parquet:"s_delta,optional"`
	SDict     *string           `parquet:"s_dict,optional,dict"`
	SPlain    string            `parquet:"s_plain,plain"`
	I64Dict   int64             `parquet:"i64_dict,dict"`
	Fixed     [7]byte           `parquet:"fixed,plain"`
	FixedDict [3]byte           `parquet:"fixed_dict,dict"`
	Bool      bool              `parquet:"bool"`
	BoolOpt   *bool             `parquet:"bool_opt,optional"`
	Repeated  []int64           `parquet:"list,list"`
	Structs   []foreignInner    `parquet:"structs,list"`
	Map       map[string]*int64 `parquet:"map"`
	Inner     foreignInner      `parquet:"inner"`
}

func randomForeign(rng *rand.Rand, n, distinct int) []foreignRow {
	num := func() int64 {
		if distinct > 0 {
			return int64(rng.Intn(distinct)) - 3
		}
		return int64(rng.Uint64()) >> rng.Intn(64)
	}
	str := func() string { return fmt.Sprintf("%s-%d", strings.Repeat("prefix", rng.Intn(4)), num()) }
	inner := func() foreignInner {
		in := foreignInner{A: int32(num())}
		for k := rng.Intn(3); k > 0; k-- {
			in.B = append(in.B, str())
		}
		return in
	}
	out := make([]foreignRow, n)
	for i := range out {
		r := &out[i]
		r.I32Delta, r.I64Delta, r.I32Split = int32(num()), num(), int32(num())
		r.F32Split, r.F64Split = float32(num()), float64(num())/3
		r.SLength, r.SPlain, r.I64Dict, r.Bool = str(), str(), num(), rng.Intn(2) == 0
		rng.Read(r.Fixed[:])
		r.FixedDict[1] = byte(num())
		if rng.Intn(4) > 0 {
			v, s, d, b := num(), str(), str(), rng.Intn(3) == 0
			r.I64Opt, r.SDelta, r.SDict, r.BoolOpt = &v, &s, &d, &b
		}
		for k := rng.Intn(4); k > 0; k-- {
			r.Repeated = append(r.Repeated, num())
			r.Structs = append(r.Structs, inner())
		}
		r.Map = map[string]*int64{}
		for k := rng.Intn(3); k > 0; k-- {
			v := num()
			r.Map[str()] = &v
		}
		r.Inner = inner()
	}
	return out
}

// TestForeignEncodings reads what parquet-go writes: delta encodings, byte
// stream split, both page versions, many small pages. LZ4 is left out here and
// below, as parquet-go does not always read even its own LZ4 pages; TestCodecs
// has it.
func TestForeignEncodings(t *testing.T) {
	seed := int64(random.Seed(t))
	rng := rand.New(rand.NewSource(seed))
	codecs := []compress.Codec{&pq.Uncompressed, &pq.Snappy, &pq.Gzip, &pq.Zstd, &pq.Brotli}
	for i := 0; i < 30; i++ {
		o := []pq.WriterOption{
			pq.DataPageVersion(1 + i%2), pq.Compression(codecs[i%len(codecs)]),
			pq.PageBufferSize([]int{200, 3000, 1 << 20}[i%3]), pq.MaxRowsPerRowGroup([]int64{1 << 40, 700}[i/3%2]),
		}
		rows := randomForeign(rng, []int{1, 100, 2000}[rng.Intn(3)], []int{0, 5, 300}[rng.Intn(3)])
		var b bytes.Buffer
		w := pq.NewGenericWriter[foreignRow](&b, o...)
		if _, err := w.Write(rows); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := checkFixed(b.Bytes(), rows); err != nil {
			t.Fatalf("file %d: %v", i, err)
		}
		if err := checkFile(fmt.Sprintf("foreign%d", i), b.Bytes(), rng, testkit.Rounds(2)); err != nil {
			t.Fatalf("file %d: %v", i, err)
		}
	}
}

// checkFixed compares the fixed-length column with what was written.
func checkFixed(b []byte, rows []foreignRow) error {
	ctx := context.Background()
	r, err := open(ctx, newMemFile("f", b), types.Schema{{Name: "fixed", Type: types.Of(types.Bytea)}})
	if err != nil {
		return err
	}
	cr, err := r.Columns(ctx, format.RowRange{To: r.Rows()}, []int{0})
	if err != nil {
		return err
	}
	cols, err := cr.Read(ctx, len(rows), nil)
	if err != nil {
		return err
	}
	for i, row := range rows {
		if got, want := formattest.Cell(cols[0], i), fmt.Sprintf("x%x", row.Fixed); got != want {
			return fmt.Errorf("fixed, row %d: got %s, want %s", i, got, want)
		}
	}
	return nil
}

// TestLibraryReadsOurs: what we write, parquet-go reads as we do.
func TestLibraryReadsOurs(t *testing.T) {
	seed := int64(random.Seed(t))
	rng := rand.New(rand.NewSource(seed))
	for i := 0; i < 12; i++ {
		g := &formattest.Gen{Rand: rng, Nulls: 0.2, Distinct: []int{0, 20}[i%2]}
		s := formattest.AllTypes()
		tab := formattest.Random(g, s, []int{1, 50, 3000}[i%3])
		o := format.WriteOptions{Compression: []string{"zstd", "none", "snappy", "gzip", "brotli"}[i%5], Options: map[string]string{"parquet.page.row.count.limit": "500"}}
		b, _, err := formattest.Write(rng, Format{}, tab, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkFile("ours", b, rng, 3); err != nil {
			t.Fatalf("file %d: %v", i, err)
		}
	}
}

// TestSchemaAsJava: the schema that we would write for the columns of a file of
// Java's is the one that Java wrote, field ids and annotations included.
func TestSchemaAsJava(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range parquetFiles(t) {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		r, err := open(context.Background(), newMemFile(p, b), nil)
		if err != nil || !strings.HasPrefix(r.meta.createdBy, "parquet-mr") {
			continue
		}
		if !r.leaves[0].el.hasFieldID { // written before 1.0
			continue
		}
		ours, err := elementsOf(schemaOfFile(r.root))
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		key := fmt.Sprint(r.meta.schema)
		if seen[key] {
			continue
		}
		seen[key] = true
		// Through our footer, as absent values get their defaults there.
		w := twrite{}
		for i := range ours {
			w.element(&ours[i])
		}
		d := &tread{b: w.b}
		for i, want := range r.meta.schema {
			got := d.element()
			if i == 0 { // the root's repetition varies with the writer's version
				want.repetition = got.repetition
			}
			if got != want {
				t.Errorf("%s:\n got %+v\nwant %+v", p, got, want)
			}
		}
	}
	if len(seen) == 0 {
		t.Skip("needs ../shared/fixtures with files of parquet-mr")
	}
	t.Logf("%d schemas", len(seen))
}

// TestHadoopLZ4 reads the fixture in Hadoop's LZ4 framing, which parquet-go
// cannot: its files, merged by key, are the rows that Java printed.
func TestHadoopLZ4(t *testing.T) {
	dir := filepath.Join(sharedDir(t), "fixtures", "java")
	want, err := os.ReadFile(filepath.Join(dir, "expected", "opts__parquet_lz4.jsonl"))
	if err != nil {
		t.Skip("needs ../shared/fixtures/java/expected/opts__parquet_lz4.jsonl")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "warehouse", "opts.db", "parquet_lz4", "bucket-0", "*.parquet"))
	type row struct {
		seq  int64
		kind int16
		v, n any
	}
	got := map[int32]row{}
	s := types.Schema{{Name: "k", Type: types.Of(types.Int4)}, {Name: "_SEQUENCE_NUMBER", Type: types.Of(types.Int8)},
		{Name: "_VALUE_KIND", Type: types.Of(types.TinyInt)}, {Name: "v", Type: types.Of(types.Text)}, {Name: "n", Type: types.Of(types.Int8)}}
	ctx := context.Background()
	for _, p := range files {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		r, err := open(ctx, newMemFile(p, b), s)
		if err != nil {
			t.Fatal(err)
		}
		if c := r.meta.groups[0].cols[0].codec; c != codecLZ4 {
			t.Fatalf("%s has codec %s", p, codecName(c))
		}
		cr, err := r.Columns(ctx, format.RowRange{To: r.Rows()}, []int{0, 1, 2, 3, 4})
		if err != nil {
			t.Fatal(err)
		}
		cols, err := cr.Read(ctx, int(r.Rows()), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < int(r.Rows()); i++ {
			k := cols[0].(*array.Int32).Value(i)
			x := row{cols[1].(*array.Int64).Value(i), cols[2].(*array.Int16).Value(i), formattest.Datum(cols[3], i), formattest.Datum(cols[4], i)}
			if old, ok := got[k]; !ok || x.seq > old.seq {
				got[k] = x
			}
		}
	}
	lines := 0
	for _, line := range bytes.Split(bytes.TrimSpace(want), []byte("\n")) {
		var e struct {
			K int32
			V *string
			N *int64
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		lines++
		g, ok := got[e.K]
		if !ok || g.kind == 1 || g.kind == 3 {
			t.Errorf("key %d is not there", e.K)
			continue
		}
		var v, n any
		if e.V != nil {
			v = *e.V
		}
		if e.N != nil {
			n = *e.N
		}
		if g.v != v || g.n != n {
			t.Errorf("key %d: got %v %v, want %v %v", e.K, g.v, g.n, v, n)
		}
	}
	live := 0
	for _, g := range got {
		if g.kind == 0 || g.kind == 2 {
			live++
		}
	}
	if live != lines {
		t.Errorf("%d rows are live, want %d", live, lines)
	}
}

var _ fileio.File = (*memFile)(nil)
