package slicetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Fixture is one index of one file.
type Fixture struct {
	Type  types.Type
	Bytes []byte
}

// Fixtures returns the indexes of a kind of a table of fixtures/java, idx.<table>.
func Fixtures(t testing.TB, table, kind string) map[string]Fixture {
	t.Helper()
	dir := Shared(t, "fixtures/java/warehouse/idx.db/"+table)
	files, _ := filepath.Glob(filepath.Join(dir, "bucket-0", "*.index"))
	if len(files) == 0 {
		t.Skip("needs ../shared/fixtures/java/warehouse/idx.db/" + table)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "schema", "schema-0"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct{ Fields []json.RawMessage }
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	typ := map[string]types.Type{}
	for _, f := range schema.Fields {
		field, err := types.ParsePaimonField(f)
		if err != nil {
			t.Fatal(err)
		}
		typ[field.Name] = field.Type
	}
	out := map[string]Fixture{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for col, kinds := range Sections(t, b) {
			if s, ok := kinds[kind]; ok {
				out[filepath.Base(f)+":"+col] = Fixture{typ[col], s}
			}
		}
	}
	if len(out) == 0 {
		t.Fatalf("no %s in %d files", kind, len(files))
	}
	return out
}

// Java has Java write random columns of all types with an index and compares its
// bytes with ours.
func Java(t *testing.T, kind index.Kind, o index.Options) {
	warehouse := t.TempDir()
	java := oracle.Java(t, warehouse)
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 7))
	for round, shape := range []struct{ rows, distinct, nulls int }{{40, 5, 20}, {1, 3, 0}, {3, 3, 100}, {2500, 60, 10}, {6000, 3, 0}, {70000, 100000, 1}} {
		if o != nil && shape.rows > 3000 {
			continue
		}
		table := fmt.Sprintf("d.t%d", round)
		var fields []map[string]any
		var names []string
		options := map[string]string{"bucket": "-1", "file.format": "parquet", "file-index.in-manifest-threshold": "1 b", "write-only": "true"}
		var cols []Type
		for _, typ := range Types {
			if !kind.Supports(typ.Type) || shape.rows > 65536 && len(cols) > 0 && typ.Paimon != "INT" && typ.Paimon != "STRING" {
				continue
			}
			name := fmt.Sprintf("c%d", len(cols))
			cols, names = append(cols, typ), append(names, name)
			fields = append(fields, map[string]any{"name": name, "type": typ.Paimon})
			for k, v := range o {
				options["file-index."+kind.Name()+"."+name+"."+k] = v
			}
		}
		options["file-index."+kind.Name()+".columns"] = strings.Join(names, ",")
		java.Do(t, map[string]any{"cmd": "create", "table": table, "schema": map[string]any{"fields": fields, "options": options}})
		data := make([][]types.Datum, len(cols))
		for i, typ := range cols {
			data[i] = Column(r, typ.Type, shape.rows, shape.distinct, shape.nulls)
		}
		f, err := os.Create(filepath.Join(t.TempDir(), "rows.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		enc := json.NewEncoder(f)
		for row := range shape.rows {
			m := map[string]any{}
			for i, name := range names {
				if v := data[i][row]; v != nil {
					m[name] = canon(cols[i].Type, v)
				}
			}
			if err := enc.Encode(m); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		java.Do(t, map[string]any{"cmd": "write", "table": table, "rowsFile": f.Name()})
		files, _ := filepath.Glob(filepath.Join(warehouse, "d.db", table[2:], "bucket-0", "*.index"))
		if len(files) != 1 {
			t.Fatalf("%d index files", len(files))
		}
		file, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		sections := Sections(t, file)
		for i, name := range names {
			b, err := kind.Create(cols[i].Type, o)
			if err != nil {
				t.Fatal(err)
			}
			Append(t, r, b, cols[i].Type, data[i])
			got, err := b.Finish()
			if err != nil {
				t.Fatal(err)
			}
			if want := sections[name][kind.Name()]; !bytes.Equal(got, want) {
				at := 0
				for at < len(got) && at < len(want) && got[at] == want[at] {
					at++
				}
				t.Errorf("%s, %+v: %d bytes, Java has %d; they differ from byte %d on:\n%.60x\n%.60x", cols[i].Paimon, shape, len(got), len(want), at, got[at:], want[at:])
			}
		}
	}
}

// canon is a value as the oracle reads it.
func canon(t types.Type, v types.Datum) any {
	switch v := v.(type) {
	case float64:
		switch {
		case math.IsNaN(v):
			return "NaN"
		case math.IsInf(v, 1):
			return "Infinity"
		case math.IsInf(v, -1):
			return "-Infinity"
		case v == 0 && math.Signbit(v):
			return json.RawMessage("-0.0")
		}
		return v
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
			if t.IsNanos() {
				at = time.Unix(0, v)
			}
			s := at.UTC().Format("2006-01-02T15:04:05.999999999")
			if t.Kind == types.TimestampTZ {
				s += "Z"
			}
			return s
		}
	}
	return v
}

// Ask puts every kind of question to an index of which nothing is known: none may
// panic, and an error or any answer will do.
func Ask(t testing.TB, x index.FileIndex, typ types.Type, args ...types.Datum) {
	t.Helper()
	for op := predicate.Eq; op <= predicate.Between; op++ {
		l := &predicate.Leaf{Op: op, Type: typ, Args: args}
		for range args {
			r, err := x.Test(l)
			if err == nil && r.Rows != nil {
				r.Rows.GetCardinality()
			}
			l.Args = l.Args[1:]
		}
	}
	if s, ok := x.(index.Sorter); ok {
		for i := range 4 {
			_, _ = s.Top(2, i&1 == 0, i&2 == 0, nil)
		}
	}
}

// Bench measures opening an index and asking it, with what is read for the first
// time and with what is there.
func Bench(b *testing.B, kind index.Kind, out []byte, typ types.Type, lo, hi types.Datum) {
	in := []types.Datum{lo, hi}
	for i := range int64(20) {
		in = append(in, lo.(int64)+i*3000)
	}
	for _, l := range []predicate.Leaf{
		{Op: predicate.Eq, Args: []types.Datum{lo}},
		{Op: predicate.In, Args: in},
		{Op: predicate.Gt, Args: []types.Datum{lo}},
		{Op: predicate.Between, Args: []types.Datum{lo, hi}},
		{Op: predicate.IsNull},
	} {
		l.Type = typ
		name := strings.ReplaceAll(strings.Fields(Text(&l))[1], "=", "Eq")
		b.Run(name+"/cold", func(b *testing.B) {
			var src *Source
			start := CPU()
			for b.Loop() {
				src = &Source{B: out}
				x, err := kind.Open(src, typ)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := x.Test(&l); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(CPU()-start)/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(src.Bytes), "B-read")
			b.ReportMetric(float64(src.Reads), "reads")
		})
		b.Run(name+"/warm", func(b *testing.B) {
			x, err := kind.Open(&Source{B: out}, typ)
			if err != nil {
				b.Fatal(err)
			}
			start := CPU()
			for b.Loop() {
				if _, err := x.Test(&l); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(CPU()-start)/float64(b.N), "cpu-ns/op")
		})
	}
	x, err := kind.Open(&Source{B: out}, typ)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Top100/warm", func(b *testing.B) {
		for b.Loop() {
			if _, err := x.(index.Sorter).Top(100, true, false, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Shared returns a path of ../shared, or skips the test by name.
func Shared(t testing.TB, path string) string {
	t.Helper()
	dir := os.Getenv("PAIMON_SQL_SHARED")
	if dir == "" {
		dir = "../../../shared" // of a package two below the root
	}
	p := filepath.Join(dir, path)
	if _, err := os.Stat(p); err != nil {
		t.Skip("needs ../shared/" + path)
	}
	return p
}

// CPU returns the processor time of the process so far, which says more than the
// clock on a machine that is shared.
func CPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
