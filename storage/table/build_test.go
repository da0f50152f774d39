package table

import (
	"bytes"
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/dv"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/format/parquet"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// built is a table that a test writes file by file, in memory.
type built struct {
	t       testing.TB
	io      *fileio.Mem
	dir     string
	sch     *schema.Table
	entries []manifest.Entry
	vectors dv.File
	dvs     []manifest.DeletionVectorMeta
	files   int
	rows    int64
}

// row is one physical row.
type row struct {
	seq  int64
	kind int8
	vals []types.Datum
}

func newBuilt(t testing.TB, s *schema.Table) *built {
	b := &built{t: t, io: fileio.NewMem(), dir: "db.db/t", sch: s}
	b.putSchema(s)
	return b
}

func (b *built) putSchema(s *schema.Table) {
	raw, err := schema.Encode(s)
	if err != nil {
		b.t.Fatal(err)
	}
	b.put(fmt.Sprintf("schema/schema-%d", s.ID), raw)
	b.sch = s
}

func (b *built) put(name string, raw []byte) {
	if err := b.io.Put(context.Background(), b.dir+"/"+name, raw); err != nil {
		b.t.Fatal(err)
	}
}

func fieldOfType(t testing.TB, id int32, name, typ string) types.Field {
	ty, err := types.ParsePaimonText(typ)
	if err != nil {
		t.Fatal(err)
	}
	return types.Field{ID: id, Name: name, Type: ty}
}

// table builds a schema from "name TYPE" columns.
func tableSchema(t testing.TB, options map[string]string, pk []string, cols ...string) *schema.Table {
	s := &schema.Table{Version: 3, PrimaryKeys: pk, Options: options}
	for i, c := range cols {
		name, typ, _ := strings.Cut(c, " ")
		if slices.Contains(pk, name) {
			typ += " NOT NULL"
		}
		s.Fields = append(s.Fields, fieldOfType(t, int32(i), name, typ))
		s.HighestFieldID = int32(i)
	}
	return s
}

// addFile writes rows, sorted by key for a key table, as one data file.
func (b *built) addFile(level int32, bucket int32, rows []row, pageRows int) *manifest.DataFile {
	pk := b.sch.TrimmedKey()
	keyCols, err := columnsOf(b.sch, pk)
	if err != nil {
		b.t.Fatal(err)
	}
	var kts []types.Type
	for _, c := range keyCols {
		kts = append(kts, b.sch.Fields[c].Type)
	}
	codec := mergetree.NewKeyCodec(kts)
	keyOf := func(r row) []types.Datum {
		var k []types.Datum
		for _, c := range keyCols {
			k = append(k, r.vals[c])
		}
		return k
	}
	if len(pk) > 0 {
		keys := make([]string, len(rows))
		order := make([]int, len(rows))
		for i := range rows {
			keys[i], order[i] = string(codec.Append(nil, keyOf(rows[i]))), i
		}
		sort.Slice(order, func(i, j int) bool { return keys[order[i]] < keys[order[j]] })
		sorted := make([]row, len(rows))
		for i, o := range order {
			sorted[i] = rows[o]
		}
		copy(rows, sorted)
	}
	f := &manifest.DataFile{
		Name: fmt.Sprintf("data-00000000-0000-4000-8000-%012d-0.parquet", b.files), Rows: int64(len(rows)), SchemaID: b.sch.ID,
		Level: level, DeleteRows: 0, FirstRowID: -1, Source: 0, MinSequence: 1 << 62, MaxSequence: -1,
	}
	b.files++
	phys := b.sch.Fields
	if len(pk) > 0 {
		phys = append(types.Schema{sequenceField, kindField}, phys...)
	}
	cols := make([][]types.Datum, len(phys))
	for _, r := range rows {
		f.MinSequence, f.MaxSequence = min(f.MinSequence, r.seq), max(f.MaxSequence, r.seq)
		if r.kind&1 != 0 {
			f.DeleteRows++
		}
		v := r.vals
		if len(pk) > 0 {
			v = append([]types.Datum{r.seq, int64(r.kind)}, v...)
		}
		for i := range cols {
			cols[i] = append(cols[i], v[i])
		}
	}
	var buf bytes.Buffer
	w, err := parquet.Format{}.Create(context.Background(), &buf, phys, format.WriteOptions{
		Compression: "none", Options: map[string]string{"parquet.page.row.count.limit": fmt.Sprint(pageRows)},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	arrs := make([]arrow.Array, len(phys))
	for i := range phys {
		arrs[i] = vec.FromDatums(phys[i].Type, cols[i])
	}
	for at := 0; at < len(rows); at += 1 << 15 {
		part := make([]arrow.Array, len(arrs))
		n := min(1<<15, len(rows)-at)
		for i := range arrs {
			part[i] = vec.Slice(arrs[i], at, at+n)
		}
		if err := w.Write(part, n); err != nil {
			b.t.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		b.t.Fatal(err)
	}
	f.Size = int64(buf.Len())
	off := 0
	if len(pk) > 0 {
		off = 2
		f.MinKey, f.MaxKey = b.image(kts, keyOf(rows[0])), b.image(kts, keyOf(rows[len(rows)-1]))
		f.KeyStats = b.stats(keyCols, cols[off:])
	}
	all := make([]int, len(b.sch.Fields))
	for i := range all {
		all[i] = i
	}
	f.ValueStats = b.stats(all, cols[off:])
	b.put(fmt.Sprintf("bucket-%d/%s", bucket, f.Name), buf.Bytes())
	b.entries = append(b.entries, manifest.Entry{Partition: make([]byte, 8), Bucket: bucket, TotalBuckets: -1, File: f})
	b.rows += f.Rows
	return f
}

func (b *built) image(ts []types.Type, vals []types.Datum) []byte {
	img, err := binrow.Encode(ts, vals)
	if err != nil {
		b.t.Fatal(err)
	}
	return img
}

func (b *built) stats(cols []int, vals [][]types.Datum) manifest.Stats {
	var ts []types.Type
	var lo, hi []types.Datum
	var s manifest.Stats
	for _, c := range cols {
		t := b.sch.Fields[c].Type
		ts = append(ts, t)
		var mn, mx types.Datum
		nulls := int64(0)
		for _, v := range vals[c] {
			if v == nil {
				nulls++
				continue
			}
			if x, ok := predicate.Compare(t, v, mn); mn == nil || ok && x < 0 {
				mn = v
			}
			if x, ok := predicate.Compare(t, v, mx); mx == nil || ok && x > 0 {
				mx = v
			}
		}
		lo, hi, s.NullCounts = append(lo, mn), append(hi, mx), append(s.NullCounts, nulls)
	}
	s.Min, s.Max = b.image(ts, lo), b.image(ts, hi)
	return s
}

// deletePos deletes rows of a file by position.
func (b *built) deletePos(f *manifest.DataFile, pos ...int64) {
	v := &dv.Vector{}
	for _, p := range pos {
		v.Add(p)
	}
	off, n, err := b.vectors.Append(v, len(b.dvs)%2 == 1)
	if err != nil {
		b.t.Fatal(err)
	}
	b.dvs = append(b.dvs, manifest.DeletionVectorMeta{DataFile: f.Name, Offset: off, Length: n, Cardinality: v.Cardinality()})
}

// commit publishes everything written so far as one snapshot and opens the table.
func (b *built) commit(o EnvOptions) *FileStore {
	raw, err := manifest.EncodeEntries(b.entries, manifest.Arity{Partition: 0, Key: len(b.sch.TrimmedKey())}, manifest.Codec{})
	if err != nil {
		b.t.Fatal(err)
	}
	const id = "6e1f1f2c-55f4-4c2b-9c0b-1f1f2c55f44c"
	b.put("manifest/manifest-"+id+"-0", raw)
	metas := []manifest.FileMeta{{Name: "manifest-" + id + "-0", Size: int64(len(raw)), Added: int64(len(b.entries)), MinBucket: -1, MaxBucket: -1, MinLevel: -1, MaxLevel: -1, MinRowID: -1, MaxRowID: -1}}
	b.put("manifest/manifest-list-"+id+"-0", manifest.EncodeList(nil, manifest.Codec{}))
	b.put("manifest/manifest-list-"+id+"-1", manifest.EncodeList(metas, manifest.Codec{}))
	s := &snapshot.Snapshot{
		Version: 3, ID: 1, SchemaID: b.sch.ID, BaseManifestList: "manifest-list-" + id + "-0", DeltaManifestList: "manifest-list-" + id + "-1",
		CommitUser: "test", CommitKind: "APPEND", TimeMillis: 1000,
	}
	if len(b.dvs) > 0 {
		b.put("index/index-"+id+"-0", b.vectors.Bytes())
		s.IndexManifest = "index-manifest-" + id + "-0"
		b.put("manifest/"+s.IndexManifest, manifest.EncodeIndex([]manifest.IndexEntry{{
			Partition: make([]byte, 8), Type: "DELETION_VECTORS", Name: "index-" + id + "-0", Rows: int64(len(b.dvs)), DVs: b.dvs,
		}}, 0, manifest.Codec{}))
	}
	js, err := snapshot.Encode(s)
	if err != nil {
		b.t.Fatal(err)
	}
	b.put("snapshot/snapshot-1", js)
	b.put("snapshot/LATEST", []byte("1"))
	if o.VerdictRows == 0 {
		o.VerdictRows = 1 // small tables, too
	}
	env := NewEnv(b.io, o)
	b.t.Cleanup(env.Close)
	return Open(env, b.dir)
}

// randomDatum makes a value of a type from a small range, so that keys collide.
func randomDatum(r *rand.Rand, t types.Type, span int64) types.Datum {
	n := r.Int64N(span) - span/3
	switch t.Kind {
	case types.Bool:
		return n&1 == 0
	case types.Int4, types.Int8, types.Date:
		return n
	case types.Timestamp:
		return n * 1000 // whole milliseconds
	case types.Int2:
		return int64(int16(n))
	case types.TinyInt:
		return int64(int8(n))
	case types.Float8:
		return float64(n) / 4
	case types.Float4:
		return float64(float32(n) / 4)
	case types.Numeric:
		d := &numeric.Dec{Scale: int32(t.Scale)}
		d.Coef.Mul(big.NewInt(n), big.NewInt(1_000_003))
		return d
	case types.Bytea:
		return []byte(fmt.Sprint(n))
	}
	return strings.Repeat("é", int(uint64(n)%3)) + fmt.Sprint(n)
}

// valueFilter is a RowFilter on one column, as the executor would push it.
type valueFilter struct {
	pos   int
	t     types.Type
	leaf  *predicate.Leaf
	calls int
}

func (f *valueFilter) Columns() []int { return []int{f.pos} }

func (f *valueFilter) Select(_ context.Context, b *vec.Batch) ([]uint16, error) {
	f.calls++
	out := []uint16{}
	for i := range b.N {
		d := vec.DatumAt(b.Cols[0], f.t, i)
		if d == nil {
			continue
		}
		if m, ok := predicate.Matches(f.leaf, d); ok && m {
			out = append(out, uint16(i))
		}
	}
	return out, nil
}

func decimalOf(t testing.TB, s string) *numeric.Dec {
	whole, frac, _ := strings.Cut(s, ".")
	d := &numeric.Dec{Scale: int32(len(frac))}
	if _, ok := d.Coef.SetString(whole+frac, 10); !ok {
		t.Fatalf("decimal %q", s)
	}
	return d
}

// testGet looks ks up by a key of one column and expects found rows.
func testGet(t *testing.T, tb Table, sch *schema.Table, ks []types.Datum, found int) {
	c := sch.Fields.Index(sch.PrimaryKeys[0])
	b, which, err := tb.Get(context.Background(), Lookup{Keys: []arrow.Array{vec.FromDatums(sch.Fields[c].Type, ks)}, Columns: []int{c}})
	if err != nil || b.N != found || len(which) != found {
		t.Fatalf("%d rows, want %d: %v", len(which), found, err)
	}
	for i, w := range which {
		if d := vec.DatumAt(b.Cols[0], sch.Fields[c].Type, i); d != ks[w] {
			t.Errorf("row %d has key %v, not %v", i, d, ks[w])
		}
	}
}
