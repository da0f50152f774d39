package index_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/bitmap"
	"github.com/paimon-sql/paimon-sql/index/bloom"
	"github.com/paimon-sql/paimon-sql/index/indextest"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/format/parquet"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
)

// kinds are all kinds of file indexes that are held against Java here.
var kinds = []index.Kind{bloom.Kind, bitmap.Kind}

func kindOf(name string) index.Kind {
	for _, k := range kinds {
		if k.Name() == name {
			return k
		}
	}
	return nil
}

func makeIndex(t *testing.T, k index.Kind, typ types.Type, o index.Options, arrays ...arrow.Array) []byte {
	t.Helper()
	b, err := k.Create(typ, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range arrays {
		if err := b.Append(a); err != nil {
			t.Fatal(err)
		}
	}
	out, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestTablesOfJava: the index of every Parquet data file of the fixtures, made
// anew from the rows of the file, has Java's bytes.
func TestTablesOfJava(t *testing.T) {
	seen := map[string]int{}
	for _, pattern := range []string{"fixtures/java/warehouse/idx.db/*", "fixtures/java/warehouse/*/*index*", "fixtures/cpp/parquet/*/*"} {
		root := shared(t, strings.SplitN(pattern, "/*", 2)[0])
		rest := strings.SplitN(pattern, "/*", 2)[1]
		dirs, err := filepath.Glob(root + "/*" + rest)
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range dirs {
			tableOfJava(t, dir, seen)
		}
	}
	t.Logf("indexes with the same bytes: %v", seen)
	for _, k := range kinds {
		if seen[k.Name()] == 0 {
			t.Errorf("no index of kind %s was compared", k.Name())
		}
	}
}

type schemaFile struct {
	Fields  []json.RawMessage
	Options map[string]string
}

func tableOfJava(t *testing.T, dir string, seen map[string]int) {
	manifests, _ := filepath.Glob(dir + "/manifest/manifest-*")
	done := map[string]bool{}
	for _, path := range manifests {
		if strings.Contains(path, "manifest-list") {
			continue
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := manifest.DecodeEntries(path, raw)
		if err != nil {
			continue // not Avro
		}
		for _, e := range entries {
			if e.Kind != manifest.Add || done[e.File.Name] || !strings.HasSuffix(e.File.Name, ".parquet") {
				continue
			}
			done[e.File.Name] = true
			found, _ := filepath.Glob(dir + "/*/" + e.File.Name)
			deep, _ := filepath.Glob(dir + "/*/*/" + e.File.Name)
			if found = append(found, deep...); len(found) == 0 {
				continue // compacted away
			}
			box := e.File.EmbeddedIndex
			for _, x := range e.File.ExtraFiles {
				if strings.HasSuffix(x, ".index") {
					if box, err = os.ReadFile(filepath.Join(filepath.Dir(found[0]), x)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if box != nil {
				fileOfJava(t, dir, found[0], e.File.SchemaID, box, seen)
			}
		}
	}
}

func fileOfJava(t *testing.T, dir, path string, schemaID int64, box []byte, seen map[string]int) {
	raw, err := os.ReadFile(fmt.Sprintf("%s/schema/schema-%d", dir, schemaID))
	if err != nil {
		t.Fatal(err)
	}
	var sf schemaFile
	if err := json.Unmarshal(raw, &sf); err != nil {
		t.Fatal(err)
	}
	var s types.Schema
	for _, f := range sf.Fields {
		field, err := types.ParsePaimonField(f)
		if err != nil {
			t.Fatal(err)
		}
		s = append(s, field)
	}
	c, err := index.OpenContainer(index.BytesSource(box))
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	ctx := context.Background()
	io := fileio.NewLocal(filepath.Dir(path))
	f, err := io.Open(ctx, filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	r, err := parquet.Format{}.Open(ctx, f, s)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer func() { _ = r.Close() }()
	for i := range c.Sections() {
		sec := &c.Sections()[i]
		k := kindOf(sec.Kind)
		if k == nil || sec.Empty {
			continue
		}
		want, err := index.ReadBytes(c.Source(sec), 0, sec.Size())
		if err != nil {
			t.Fatal(err)
		}
		column, key, nested := index.SplitMapColumn(sec.Column)
		col := s.Index(column)
		if col < 0 {
			t.Errorf("%s: no column %s", path, column)
			continue
		}
		o := index.Options{}
		for _, prefix := range []string{column, sec.Column} {
			for name, v := range sf.Options {
				if opt, ok := strings.CutPrefix(name, "file-index."+sec.Kind+"."+prefix+"."); ok && opt != "columns" {
					o[opt] = v
				}
			}
		}
		cr, err := r.Columns(ctx, format.RowRange{To: r.Rows()}, []int{col})
		if err != nil {
			t.Fatal(err)
		}
		var arrays []arrow.Array
		typ := s[col].Type
		for left := r.Rows(); left > 0; {
			n := int(min(left, 1000))
			as, err := cr.Read(ctx, n, nil)
			if err != nil {
				t.Fatal(err)
			}
			if left -= int64(n); nested {
				as[0] = valuesOf(as[0].(*array.Map), key)
			}
			arrays = append(arrays, as[0])
		}
		_ = cr.Close()
		if nested {
			typ = *typ.Elem
		}
		if got := makeIndex(t, k, typ, o, arrays...); !bytes.Equal(got, want) {
			t.Errorf("%s of %s in %s, options %v:\ngot  %s\nwant %s", sec.Kind, sec.Column, path, o, short(got), short(want))
			continue
		}
		seen[sec.Kind]++
		if nested {
			seen["map "+sec.Kind]++
		}
	}
}

func short(b []byte) string {
	s := hex.EncodeToString(b)
	if len(s) > 600 {
		return fmt.Sprintf("%s... (%d bytes)", s[:600], len(b))
	}
	return s
}

// valuesOf returns what a map of text has for a key, row by row.
func valuesOf(m *array.Map, key string) arrow.Array {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	keys := m.Keys().(*array.String)
	text := func(i int) (string, bool) {
		if m.Items().IsNull(i) {
			return "", false
		}
		return m.Items().ValueStr(i), true
	}
	for row := range m.Len() {
		from, to := m.ValueOffsets(row)
		found := false
		for i := int(from); i < int(to) && m.IsValid(row) && !found; i++ {
			if found = keys.Value(i) == key; found {
				if v, ok := text(i); ok {
					b.Append(v)
				} else {
					b.AppendNull()
				}
			}
		}
		if !found {
			b.AppendNull()
		}
	}
	return b.NewArray()
}

// javaType spells types as Java's DDL does.
func javaType(t types.Type) string {
	switch t.Kind {
	case types.Bool:
		return "BOOLEAN"
	case types.TinyInt:
		return "TINYINT"
	case types.Int2:
		return "SMALLINT"
	case types.Int4:
		return "INT"
	case types.Int8:
		return "BIGINT"
	case types.Float4:
		return "FLOAT"
	case types.Float8:
		return "DOUBLE"
	case types.Date:
		return "DATE"
	case types.Time:
		return fmt.Sprintf("TIME(%d)", t.Prec)
	case types.Timestamp:
		return fmt.Sprintf("TIMESTAMP(%d)", t.Prec)
	case types.TimestampTZ:
		return fmt.Sprintf("TIMESTAMP(%d) WITH LOCAL TIME ZONE", t.Prec)
	case types.Numeric:
		return fmt.Sprintf("DECIMAL(%d, %d)", t.Prec, t.Scale)
	case types.Varchar:
		return fmt.Sprintf("VARCHAR(%d)", t.Len)
	case types.BpChar:
		return fmt.Sprintf("CHAR(%d)", t.Len)
	case types.Bytea:
		if t.Lake == types.LakeBinary {
			return fmt.Sprintf("BINARY(%d)", t.Len)
		}
		return "BYTES"
	}
	return "STRING"
}

// javaValue spells a value as the oracle takes it.
func javaValue(t types.Type, d types.Datum) any {
	switch v := d.(type) {
	case float64:
		switch {
		case math.IsNaN(v):
			return "NaN"
		case math.IsInf(v, 1):
			return "Infinity"
		case math.IsInf(v, -1):
			return "-Infinity"
		}
		bits := 64
		if t.Kind == types.Float4 {
			bits = 32
		}
		s := strconv.FormatFloat(v, 'g', -1, bits)
		if !strings.ContainsAny(s, ".e") {
			s += ".0"
		}
		return json.RawMessage(s)
	case []byte:
		return hex.EncodeToString(v)
	case *numeric.Dec:
		return v.String()
	case int64:
		switch t.Kind {
		case types.Date:
			return time.Unix(v*86400, 0).UTC().Format("2006-01-02")
		case types.Time:
			return time.UnixMicro(v).UTC().Format("15:04:05.000")
		case types.Timestamp, types.TimestampTZ:
			at := time.UnixMicro(v)
			if t.Prec > 6 {
				at = time.Unix(0, v)
			}
			s := at.UTC().Format("2006-01-02T15:04:05.000000000")
			if t.Kind == types.TimestampTZ {
				s += "Z"
			}
			return s
		}
	}
	return d
}

// TestJavaWrites: random columns of every type, written by Java with indexes: what
// we make of the same values has the same bytes.
func TestJavaWrites(t *testing.T) {
	java := javaTables{oracle.Java(t, t.TempDir())}
	verdicts := map[string]int{}
	r := indextest.Rand(t)
	compared := map[string]int{}
	for round := range 6 {
		rows := []int{1, 7, 300, 3000}[r.IntN(4)]
		type col struct {
			name string
			typ  types.Type
			k    index.Kind
			o    index.Options
			arr  arrow.Array
			data []types.Datum
		}
		var cols []col
		options := map[string]string{"bucket": "-1", "file-index.in-manifest-threshold": "1 b", "file.format": "parquet", "metadata.stats-mode": "none"}
		lists := map[string][]string{}
		var fields []map[string]any
		data := make([]map[string]any, rows)
		for i := range data {
			data[i] = map[string]any{}
		}
		for _, k := range kinds {
			for _, typ := range indextest.Types {
				if !k.Supports(typ) || typ.Kind == types.Time && typ.Prec > 3 {
					continue
				}
				c := col{name: fmt.Sprintf("c%d", len(cols)), typ: typ, k: k, o: randomOptions(r, k)}
				values := javaColumn(r, typ, rows)
				c.data = values
				for i, d := range values {
					data[i][c.name] = javaValue(typ, d)
				}
				c.arr = indextest.Array(typ, values, r.IntN(2) == 0)
				cols = append(cols, c)
				fields = append(fields, map[string]any{"name": c.name, "type": javaType(typ)})
				lists[k.Name()] = append(lists[k.Name()], c.name)
				for o, v := range c.o {
					options["file-index."+k.Name()+"."+c.name+"."+o] = v
				}
			}
		}
		for k, names := range lists {
			options["file-index."+k+".columns"] = strings.Join(names, ",")
		}
		table := fmt.Sprintf("d.t%d", round)
		java.Do(t, map[string]any{"cmd": "create", "table": table, "schema": map[string]any{"fields": fields, "options": options}})
		java.Do(t, map[string]any{"cmd": "write", "table": table, "rows": data})
		found, err := filepath.Glob(filepath.Join(java.Warehouse, "d.db", fmt.Sprintf("t%d", round), "bucket-0", "*.index"))
		if err != nil || len(found) != 1 {
			t.Fatalf("%d index files, %v", len(found), err)
		}
		raw, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		box, err := index.OpenContainer(index.BytesSource(raw))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cols {
			secs := box.Find(c.name)
			if len(secs) != 1 || secs[0].Kind != c.k.Name() {
				t.Fatalf("column %s has indexes %v", c.name, secs)
			}
			want, err := index.ReadBytes(box.Source(secs[0]), 0, secs[0].Size())
			if err != nil {
				t.Fatal(err)
			}
			if got := makeIndex(t, c.k, c.typ, c.o, c.arr); !bytes.Equal(got, want) {
				t.Errorf("round %d: %s over %s, options %v, %d rows:\ngot  %s\nwant %s", round, c.k.Name(), javaType(c.typ), c.o, rows, short(got), short(want))
				continue
			}
			compared[c.k.Name()]++
			if r.IntN(5) == 0 {
				java.sameVerdict(t, r, table, c.name, c.typ, c.data, boxFinder{box, c.name, c.k, c.typ}, verdicts)
			}
		}
	}
	t.Logf("indexes with the same bytes: %v; Java's verdicts: %v", compared, verdicts)
}

// boxFinder opens the one index of a column in a container.
type boxFinder struct {
	box    *index.Container
	column string
	k      index.Kind
	t      types.Type
}

func (f boxFinder) Indexes(*predicate.Leaf) ([]index.FileIndex, bool, error) {
	s := f.box.Find(f.column)[0]
	if s.Empty {
		return nil, true, nil
	}
	x, err := f.k.Open(f.box.Source(s), f.t)
	return []index.FileIndex{x}, false, err
}

// javaOps spells the operations that Java's indexes of these kinds judge.
var javaOps = map[predicate.Op]string{
	predicate.Eq: "=", predicate.NotEq: "<>", predicate.In: "in", predicate.NotIn: "notin",
	predicate.IsNull: "isnull", predicate.IsNotNull: "isnotnull",
}

// sameVerdict asks Java and us about a few predicates on a column: what Java skips
// we skip, the rows that Java leaves out we leave out, and never one that matches.
func (j javaTables) sameVerdict(t *testing.T, r *rand.Rand, table, column string, typ types.Type, data []types.Datum, f boxFinder, seen map[string]int) {
	t.Helper()
	for range 3 {
		l := indextest.Leaf(r, typ, data)
		op, ok := javaOps[l.Op]
		if !ok || (l.Op == predicate.In || l.Op == predicate.NotIn) && len(l.Args) == 0 {
			continue
		}
		ours, err := index.Eval(l, int64(len(data)), f)
		if err != nil {
			t.Fatal(err)
		}
		indextest.Check(t, l, data, ours)
		filter := map[string]any{"op": op, "f": column}
		var args []any
		wide := typ.Kind == types.BpChar // SQL takes more values as equal than Java
		for _, a := range l.Args {
			if args = append(args, javaValue(typ, a)); a == 0.0 {
				wide = true
			}
		}
		// Java compares TIMESTAMP(9) by microseconds here, and so loses rows that
		// differ from the constant in the last three digits only.
		wide = wide || typ.Prec > 6 && (l.Op == predicate.NotEq || l.Op == predicate.NotIn)
		switch l.Op {
		case predicate.In, predicate.NotIn:
			filter["v"] = args
		case predicate.Eq, predicate.NotEq:
			filter["v"] = args[0]
		}
		reply, err := j.Try(map[string]any{"cmd": "plan", "table": table, "filter": filter})
		if err != nil {
			seen["refused by Java"]++ // dates out of its JSON's range
			continue
		}
		var splits []struct {
			Files []struct {
				Index     string
				IndexRows []uint32
			}
		}
		if err := json.Unmarshal(reply["splits"], &splits); err != nil || len(splits) != 1 || len(splits[0].Files) != 1 {
			t.Fatalf("%s, %v", reply["splits"], err)
		}
		theirs := splits[0].Files[0]
		seen[theirs.Index]++
		fail := func(what string) {
			t.Errorf("%s over %s, %s of %v: Java says %s %v, we %s %v: %s", f.k.Name(), javaType(typ), op, l.Args, theirs.Index, theirs.IndexRows, ours.Verdict, ours.Rows, what)
		}
		switch {
		case wide:
		case theirs.Index == "SKIP" && ours.Verdict != index.None:
			fail("not skipped")
		case theirs.Index == "ROWS" && ours.Verdict == index.Some:
			if ours.Rows == nil {
				fail("no rows")
			} else if rest := roaring.AndNot(ours.Rows, roaring.BitmapOf(theirs.IndexRows...)); !rest.IsEmpty() {
				fail("more rows")
			}
		}
	}
}

type javaTables struct{ *oracle.Client }

// javaColumn makes values that Java's writers and the oracle's JSON carry whole.
func javaColumn(r *rand.Rand, t types.Type, rows int) []types.Datum {
	_, data := indextest.Column(r, t, rows)
	clash := r.IntN(3) == 0 // values whose hashes are alike, which Java keeps in trees
	for i, d := range data {
		switch v := d.(type) {
		case float64:
			if clash {
				data[i] = float64(r.IntN(2000) - 500)
			}
		case int64:
			if clash && (t.Kind == types.Int8 || t.Kind == types.Int4) {
				data[i] = (r.Int64N(2000) - 1000) << 20
			}
			if t.Kind == types.Date && (v < -700_000 || v > 2_900_000) { // years 1 to 9999
				data[i] = v % 700_000
			}
			if t.Kind == types.Timestamp && t.Prec == 0 || t.Kind == types.Time && t.Prec == 0 {
				data[i] = index.FloorDiv(v, 1_000_000) * 1_000_000
			}
		case []byte:
			if t.Lake == types.LakeBinary {
				data[i] = append(bytes.Clone(v), 0, 0, 0, 0)[:4]
			}
		}
	}
	return data
}

func randomOptions(r *rand.Rand, k index.Kind) index.Options {
	switch k.Name() {
	case "bloom-filter":
		return index.Options{"items": fmt.Sprint(1 + r.IntN(2000)), "fpp": []string{"0.5", "0.1", "0.01", "0.0003"}[r.IntN(4)]}
	case "bitmap":
		o := index.Options{"version": fmt.Sprint(1 + r.IntN(2))}
		if r.IntN(2) == 0 {
			o["index-block-size"] = []string{"100", "1 kb", "64b"}[r.IntN(3)]
		}
		return o
	}
	return index.Options{}
}
