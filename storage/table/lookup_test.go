package table

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/lookup"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// lookupStores are budgets under which lookups must answer alike: everything in
// memory at once, nothing at all, next to nothing with a disk.
func lookupStores(t testing.TB) map[string]lookup.Options {
	return map[string]lookup.Options{
		"memory": {BlockBytes: 300},
		"none":   {MemoryBytes: -1},
		"disk":   {MemoryBytes: 20 << 10, BlockBytes: 300, Dir: localDir(t)},
		"packed": {MemoryBytes: 20 << 10, BlockBytes: 1000, Dir: localDir(t), Compress: true, DiskBytes: 100 << 10},
	}
}

var lookupEngines = []map[string]string{
	{},
	{"ignore-delete": "true"},
	{"sequence.field": "s0,s1"},
	{"sequence.field": "s0", "sequence.field.sort-order": "descending"},
	{"merge-engine": "first-row"},
	{"merge-engine": "partial-update", "ignore-delete": "true"},
	{"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
	{"merge-engine": "partial-update", "fields.s0.sequence-group": "v,w"},
	{"merge-engine": "aggregation", "fields.w.aggregate-function": "sum", "fields.x.aggregate-function": "max", "fields.x.ignore-retract": "true"},
	{"merge-engine": "aggregation", "fields.w.aggregate-function": "sum", "sequence.field": "s0", "aggregation.remove-record-on-delete": "true"},
	{"deletion-vectors.enabled": "true"},
}

// TestLookupsAgainstScan looks keys of random tables up and compares with what a scan
// of them gives: engines, key types, levels, deletion vectors, sequence numbers that
// overlap, and every place where a lookup may find its answer.
func TestLookupsAgainstScan(t *testing.T) {
	seed := random.Seed(t)
	if v, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = v
	}
	r := rand.New(rand.NewPCG(seed, 11))
	for i := range testkit.Rounds(11) {
		lookupRound(t, r, lookupEngines[i%len(lookupEngines)])
		if t.Failed() {
			t.Fatalf("round %d of seed %d", i, seed)
		}
	}
}

func lookupRound(t *testing.T, r *rand.Rand, engine map[string]string) {
	shapes := append(keyShapes[:len(keyShapes):len(keyShapes)], []string{"k CHAR(6)"}, []string{"k CHAR(5)", "l INT"})
	shape := shapes[r.IntN(len(shapes))]
	var pk []string
	for _, c := range shape {
		name, _, _ := strings.Cut(c, " ")
		pk = append(pk, name)
	}
	r.Shuffle(len(pk), func(i, j int) { pk[i], pk[j] = pk[j], pk[i] })
	opts := map[string]string{"bucket": "1"}
	for k, v := range engine {
		opts[k] = v
	}
	s := tableSchema(t, opts, pk, append(shape[:len(shape):len(shape)], "v STRING", "w INT", "s0 INT", "s1 BIGINT", "x DOUBLE")...)
	b := newBuilt(t, s)
	cols, _ := columnsOf(s, pk)
	var ts []types.Type
	for _, c := range cols {
		ts = append(ts, s.Fields[c].Type)
	}
	codec := mergetree.NewKeyCodec(ts)
	keyOf := func(v []types.Datum) []types.Datum {
		var k []types.Datum
		for _, c := range cols {
			k = append(k, v[c])
		}
		return k
	}
	span := []int64{5, 60, 3000}[r.IntN(3)]
	newRow := func() []types.Datum {
		v := make([]types.Datum, len(s.Fields))
		for c, f := range s.Fields {
			if r.IntN(8) == 0 && !f.Type.NotNull {
				continue
			}
			v[c] = randomDatum(r, f.Type, span)
			if f.Name == "s0" || f.Name == "s1" {
				v[c] = r.Int64N(3)
			}
		}
		return v
	}
	retracts := engine["merge-engine"] != "first-row"
	zeros := 1 + r.IntN(4)
	levels := r.IntN(4)
	overlap := r.IntN(4) == 0
	once := opts["deletion-vectors.enabled"] != "" || !retracts
	vectors := opts["deletion-vectors.enabled"] != "" || r.IntN(3) == 0
	asked := map[string][]types.Datum{}
	live := map[string]bool{} // keys of levels, for deletion vectors
	for run := range zeros + levels {
		level := int32(max(0, levels-run))
		rows := map[string]row{}
		for i := range 1 + r.IntN(300) {
			v := newRow()
			x := row{seq: int64(run*1000 + i), vals: v}
			if overlap {
				x.seq = int64(i*10 + run)
			}
			if r.IntN(5) == 0 && run > 0 && retracts && (level == 0 || opts["deletion-vectors.enabled"] == "") {
				x.kind = 3
				if r.IntN(3) == 0 && engine["merge-engine"] != "partial-update" {
					x.kind = 1
				}
			}
			k := string(codec.Append(nil, keyOf(v)))
			asked[k] = keyOf(v)
			if level > 0 && once && live[k] {
				continue // compaction leaves a key once
			}
			rows[k] = x
		}
		var list []row
		for k, x := range rows {
			list = append(list, x)
			live[k] = true
		}
		sort.Slice(list, func(i, j int) bool {
			return string(codec.Append(nil, keyOf(list[i].vals))) < string(codec.Append(nil, keyOf(list[j].vals)))
		})
		for len(list) > 0 {
			k := len(list)
			if level > 0 {
				k = 1 + r.IntN(len(list))
			}
			f := b.addFile(level, 0, slices.Clone(list[:k]), 1+r.IntN(50))
			if vectors && level > 0 && r.IntN(2) == 0 {
				var ps []int64
				for p := range int64(k) {
					if r.IntN(4) == 0 {
						ps = append(ps, p)
					}
				}
				if len(ps) > 0 {
					b.deletePos(f, ps...)
				}
			}
			list = list[k:]
		}
	}
	for range 20 {
		k := keyOf(newRow())
		asked[string(codec.Append(nil, k))] = k
	}
	ctx := context.Background()
	for name, o := range lookupStores(t) {
		tb := b.commit(EnvOptions{Lookup: o, WindowRows: 16})
		what := fmt.Sprintf("%v key %v, %d+%d runs, %s", engine, shape, zeros, levels, name)
		for _, skip0 := range []bool{false, true} {
			at, err := tb.Resolve(ctx, snapshot.Ref{})
			if err != nil {
				t.Fatal(err)
			}
			checkLookups(t, r, tb, what, asked, Scan{At: at, SkipLevel0: skip0})
		}
		tb.Env().Close()
	}
}

// checkLookups asks for every key, alone and in batches, and compares the rows found
// with those of a scan.
func checkLookups(t *testing.T, r *rand.Rand, tb *FileStore, what string, asked map[string][]types.Datum, sc Scan) {
	t.Helper()
	ctx := context.Background()
	sc.Limit = -1
	want, _, err := readAll(ctx, tb, sc, ReadOptions{})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	var keys [][]types.Datum
	for _, k := range asked {
		keys = append(keys, k)
	}
	r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	sch, err := tb.Schema(ctx, sc.At)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]int, len(sch.Fields))
	for i := range all {
		all[i] = i
	}
	pkCols, err := columnsOf(sch, sch.PrimaryKeys)
	if err != nil {
		t.Fatal(err)
	}
	var ts []types.Type
	for _, c := range pkCols {
		ts = append(ts, sch.Fields[c].Type)
	}
	l := Lookup{At: sc.At, Columns: all, SkipLevel0: sc.SkipLevel0, Overlay: sc.Overlay}
	line := func(b *vec.Batch, i int) string {
		var ps []string
		for c := range b.Cols {
			ps = append(ps, text(b.Schema[c].Type, vec.DatumAt(b.Cols[c], b.Schema[c].Type, i)))
		}
		return strings.Join(ps, " | ")
	}
	check := func(how string, got []string) {
		slices.Sort(got)
		got = slices.Compact(got) // CHAR: keys that are equal under SQL find each other's rows
		if !slices.Equal(got, want) {
			t.Fatalf("%s, %s: %d rows, want %d%s", what, how, len(got), len(want), diff(got, want))
		}
	}
	var one []string
	for _, k := range keys[:min(len(keys), 40)] {
		b, err := getKey(ctx, tb, l, k)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for i := range b.N {
			one = append(one, line(b, i))
		}
		bare := l
		bare.Columns = []int{}
		n, err := getKey(ctx, tb, bare, k)
		if err != nil || n.N != b.N {
			t.Fatalf("%s: %d rows without columns, %d with: %v", what, n.N, b.N, err)
		}
	}
	var batched []string
	for from := 0; from < len(keys); {
		n := min(len(keys)-from, 1+r.IntN(200))
		part := keys[from : from+n]
		arrs := make([]arrow.Array, len(ts))
		for c := range ts {
			vals := make([]types.Datum, 0, n+2)
			for _, k := range part {
				vals = append(vals, k[c])
			}
			arrs[c] = vec.FromDatums(ts[c], append(vals, part[0][c], nil)) // one twice, and a NULL
		}
		l.Keys = arrs
		b, which, err := tb.Get(ctx, l)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if b.N != len(which) {
			t.Fatalf("%s: %d rows of %d keys", what, b.N, len(which))
		}
		first := 0
		for i, q := range which {
			for c, pc := range pkCols {
				if x, ok := sqlEqual(ts[c], vec.DatumAt(b.Cols[pc], ts[c], i), vec.DatumAt(arrs[c], ts[c], int(q))); !ok || !x {
					t.Fatalf("%s: row %s is not of key %v", what, line(b, i), vec.DatumAt(arrs[c], ts[c], int(q)))
				}
			}
			switch {
			case int(q) == n:
				first--
			case q == 0:
				first++
			}
			batched = append(batched, line(b, i))
		}
		if first != 0 {
			t.Fatalf("%s: a key that is asked for twice has another answer", what)
		}
		from += n
	}
	check("in batches", batched)
	slices.Sort(one)
	for _, l := range one {
		if _, ok := slices.BinarySearch(want, l); !ok {
			t.Fatalf("%s: found %s, which the scan has not", what, l)
		}
	}
	if len(keys) <= 40 {
		check("one by one", one)
	}
}

// sqlEqual reports whether two key values are equal under SQL.
func sqlEqual(t types.Type, a, b types.Datum) (equal, ok bool) {
	v, ok := predicate.Compare(t, a, b)
	return v == 0, ok
}

func localDir(t testing.TB) func() (string, error) {
	dir := t.TempDir()
	return func() (string, error) { return dir, nil }
}

// getKey looks one key up.
func getKey(ctx context.Context, tb *FileStore, l Lookup, key []types.Datum) (*vec.Batch, error) {
	s, err := tb.Schema(context.WithoutCancel(ctx), l.At)
	if err != nil {
		return nil, err
	}
	l.Keys = make([]arrow.Array, len(key))
	for i, name := range s.PrimaryKeys {
		l.Keys[i] = vec.FromDatums(s.Fields[s.Fields.Index(name)].Type, key[i:i+1])
	}
	b, _, err := tb.Get(ctx, l)
	return b, err
}
