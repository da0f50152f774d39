package mergetree

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/dv"
	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/format"
)

// memRow is a row of the tests' table: k INT, v BIGINT, w TEXT, u INT.
type memRow struct {
	k    int64
	v, w types.Datum
	u    types.Datum
	seq  int64
	kind int64
	run  int
	pos  int64
}

var (
	memTypes = []types.Type{types.Of(types.Int4), types.Of(types.Int8), types.Of(types.Text), types.Of(types.Int4)}
	memCodec = NewKeyCodec(memTypes[:1])
)

// memFile reads rows as a file's reader does.
type memFile struct {
	t    *testing.T
	rows []memRow
	cols []int
	pos  int64
	end  int64
}

func (f *memFile) Read(_ context.Context, n int, keep []uint16) ([]arrow.Array, error) {
	if f.pos+int64(n) > f.end {
		f.t.Fatalf("read of %d rows at %d, range ends at %d", n, f.pos, f.end)
	}
	part := f.rows[f.pos : f.pos+int64(n)]
	f.pos += int64(n)
	if keep != nil {
		var out []memRow
		for i, k := range keep {
			if i > 0 && keep[i-1] >= k {
				f.t.Fatal("keep does not ascend")
			}
			out = append(out, part[k])
		}
		part = out
	}
	out := make([]arrow.Array, len(f.cols))
	for i, c := range f.cols {
		ds := make([]types.Datum, len(part))
		for j, r := range part {
			ds[j] = map[int]types.Datum{0: r.k, 1: r.v, 2: r.w, 3: r.u, Sequence: r.seq, Kind: r.kind}[c]
		}
		out[i] = vec.FromDatums(memType(c), ds)
	}
	return out, nil
}

func (f *memFile) Close() error { return nil }

func memType(c int) types.Type {
	switch c {
	case Sequence:
		return types.Of(types.Int8)
	case Kind:
		return types.Of(types.Int2)
	}
	return memTypes[c]
}

// memEngine: v is summed, retractions subtract; w is joined; u is the last one.
// A last version of kind -D with v = 13 leaves nothing, other -D a retraction.
type memEngine struct{ cols []int }

func (e *memEngine) Reads() []int {
	out := []int{1} // its value decides
	for _, c := range []int{2, 3} {
		if slices.Contains(e.cols, c) {
			out = append(out, c)
		}
	}
	return out
}

func memFold(vs []memRow) (memRow, uint8) {
	out := vs[len(vs)-1]
	sum, text := int64(0), ""
	for _, x := range vs {
		if v, ok := x.v.(int64); ok {
			if x.kind&1 != 0 {
				v = -v
			}
			sum += v
		}
		if w, ok := x.w.(string); ok {
			text += w
		}
	}
	last := vs[len(vs)-1]
	out.v, out.w = sum, text
	switch {
	case last.kind == 3 && last.v == types.Datum(int64(13)):
		return out, NoRow
	case last.kind == 3:
		return out, KindDelete
	}
	return out, KindInsert
}

func (e *memEngine) Fold(v *Versions, out *Folded) error {
	reads := e.Reads()
	var rows []memRow
	from := uint32(0)
	for _, end := range v.Ends {
		var vs []memRow
		for i := from; i < end; i++ {
			x := memRow{seq: int64(i)}
			for c, col := range reads {
				d := vec.DatumAt(v.Cols[c], memTypes[col], int(i))
				switch col {
				case 1:
					x.v = d
				case 2:
					x.w = d
				case 3:
					x.u = d
				}
			}
			if v.Kinds != nil {
				x.kind = int64(v.Kinds[i])
			}
			vs = append(vs, x)
		}
		r, kind := memFold(vs)
		rows = append(rows, r)
		out.Kinds = append(out.Kinds, kind)
		out.Last = append(out.Last, from) // the first one, to see that it matters
		from = end
	}
	for _, c := range e.cols {
		var ds []types.Datum
		for _, r := range rows {
			ds = append(ds, map[int]types.Datum{1: r.v, 2: r.w, 3: r.u}[c])
		}
		out.Cols = append(out.Cols, vec.FromDatums(memTypes[c], ds))
	}
	return nil
}

// TestReaderFolds merges random runs with a made-up engine and compares with a
// map; NextVersions returns what was put in.
func TestReaderFolds(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	for round := range testkit.Rounds(300) {
		foldRound(t, r, round)
		if t.Failed() {
			t.Fatalf("round %d of seed %d", round, seed)
		}
	}
}

func memTable(t *testing.T, r *rand.Rand) (sections [][][]Input, keys []int64, versions map[int64][]memRow) {
	versions = map[int64][]memRow{}
	span := []int64{4, 50, 2000}[r.IntN(3)]
	interleave := r.IntN(3) == 0
	var runs [][]Input
	for run := range 1 + r.IntN(5) {
		byKey := map[int64]memRow{}
		for i := range 1 + r.IntN(300) {
			x := memRow{k: r.Int64N(span), v: r.Int64N(20), seq: int64(run*1000 + i), run: run}
			if interleave {
				x.seq = int64(i*10 + run)
			}
			if r.IntN(4) > 0 {
				x.w = string(rune('a' + r.IntN(26)))
			}
			if r.IntN(4) > 0 {
				x.u = r.Int64N(100)
			}
			if r.IntN(4) == 0 {
				x.kind = r.Int64N(4)
			}
			byKey[x.k] = x
		}
		var rows []memRow
		for _, x := range byKey {
			rows = append(rows, x)
		}
		slices.SortFunc(rows, func(a, b memRow) int { return cmp.Compare(a.k, b.k) })
		deletes := false
		lo, hi := int64(1<<60), int64(-1)
		dead := &dv.Vector{}
		for i := range rows {
			rows[i].pos = int64(i)
			lo, hi = min(lo, rows[i].seq), max(hi, rows[i].seq)
			if r.IntN(10) == 0 {
				dead.Add(int64(i))
				continue
			}
			deletes = deletes || rows[i].kind&1 != 0
			versions[rows[i].k] = append(versions[rows[i].k], rows[i])
		}
		in := Input{Deletes: deletes, MinSequence: lo, MaxSequence: hi, Tag: int32(run), DV: dead}
		for at := int64(0); at < int64(len(rows)); {
			end := at + 1 + r.Int64N(int64(len(rows))-at)
			in.Ranges = append(in.Ranges, format.RowRange{From: at, To: end})
			at = end
		}
		in.Open = func(_ context.Context, rg format.RowRange, cols []int) (format.ColumnReader, error) {
			return &memFile{t: t, rows: rows, cols: cols, pos: rg.From, end: rg.To}, nil
		}
		runs = append(runs, []Input{in})
	}
	for k := range versions {
		slices.SortFunc(versions[k], func(a, b memRow) int {
			return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(b.kind&1, a.kind&1), cmp.Compare(a.run, b.run))
		})
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return [][][]Input{runs}, keys, versions
}

func foldRound(t *testing.T, r *rand.Rand, round int) {
	ctx := context.Background()
	sections, keys, versions := memTable(t, r)
	all := []int{0, 1, 2, 3, Sequence, Kind}
	o := Options{Codec: memCodec, KeyCols: []int{0}, WindowRows: []int{1, 3, 50, 0}[r.IntN(4)], KeepDeletes: r.IntN(2) == 0}
	for _, c := range all {
		if r.IntN(2) == 0 {
			o.Columns, o.Types = append(o.Columns, c), append(o.Types, memType(c))
		}
	}
	var want []string
	line := func(x memRow, kind uint8) string {
		var ps []string
		for _, c := range o.Columns {
			ps = append(ps, fmt.Sprint(map[int]types.Datum{0: x.k, 1: x.v, 2: x.w, 3: x.u, Sequence: x.seq, Kind: int64(kind)}[c]))
		}
		return strings.Join(ps, "|")
	}
	filter := -1
	if r.IntN(2) == 0 && len(o.Columns) > 0 {
		filter = r.IntN(len(o.Columns))
		o.FilterPos = []int{filter}
		o.Filter = func(_ context.Context, cols []arrow.Array, n int) ([]uint16, error) {
			out := []uint16{}
			for i := range n {
				if keeps(vec.DatumAt(cols[0], o.Types[filter], i)) {
					out = append(out, uint16(i))
				}
			}
			return out, nil
		}
	}
	o.Engine = func(cols []int) (Engine, error) { return &memEngine{cols}, nil }
	for _, k := range keys {
		vs := versions[k]
		x, kind := vs[0], uint8(vs[0].kind)
		if len(vs) > 1 {
			x, kind = memFold(vs)
			x.seq = vs[0].seq
		}
		if kind == NoRow || kind&1 != 0 && !o.KeepDeletes {
			continue
		}
		if filter >= 0 {
			d := map[int]types.Datum{0: x.k, 1: x.v, 2: x.w, 3: x.u, Sequence: x.seq, Kind: int64(kind)}[o.Columns[filter]]
			if !keeps(d) {
				continue
			}
		}
		want = append(want, line(x, kind))
	}
	m := NewReader(sections, o)
	var got []string
	for {
		cols, n, err := m.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		for i := range n {
			var ps []string
			for c := range cols {
				ps = append(ps, fmt.Sprint(vec.DatumAt(cols[c], o.Types[c], i)))
			}
			got = append(got, strings.Join(ps, "|"))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("round %d: columns %v, filter %d, window %d, keep deletes %v: %d rows, want %d\n%q\n%q", round, o.Columns, filter, o.WindowRows, o.KeepDeletes, len(got), len(want), got, want)
	}

	// Every version comes out of NextVersions, under its key.
	o.Columns, o.Types = []int{1, 0}, []types.Type{memTypes[1], memTypes[0]}
	m = NewReader(sections, o)
	i := 0
	for {
		b, err := m.NextVersions(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if b == nil {
			break
		}
		from := uint32(0)
		for k, end := range b.Ends {
			vs := versions[keys[i]]
			if int(end-from) != len(vs) || string(b.Keys[k]) != string(memCodec.Append(nil, []types.Datum{keys[i]})) {
				t.Fatalf("key %d (%x): %d versions, want %d", keys[i], b.Keys[k], end-from, len(vs))
			}
			for j, x := range vs {
				at := int(from) + j
				v := vec.DatumAt(b.Cols[0], memTypes[1], at)
				key := vec.DatumAt(b.Cols[1], memTypes[0], at)
				if b.Seq[at] != x.seq || b.Kinds[at] != uint8(x.kind) || int(b.Tag[at]) != x.run || b.Pos[at] != x.pos || v != x.v || key != types.Datum(x.k) {
					t.Fatalf("key %d version %d: seq %d kind %d tag %d pos %d v %v, want %+v", keys[i], j, b.Seq[at], b.Kinds[at], b.Tag[at], b.Pos[at], v, x)
				}
			}
			from = end
			i++
		}
	}
	if i != len(keys) {
		t.Fatalf("%d keys, want %d", i, len(keys))
	}
}

// keeps is the tests' filter.
func keeps(d types.Datum) bool {
	switch v := d.(type) {
	case int64:
		return v%3 != 0
	case string:
		return len(v)%2 == 0
	}
	return false
}
