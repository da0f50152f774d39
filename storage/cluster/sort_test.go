package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// batches is a source of batches that may fail at its end.
type batches struct {
	bs  []*vec.Batch
	err error
}

func (b *batches) Next(context.Context) (*vec.Batch, error) {
	if len(b.bs) == 0 {
		return nil, b.err
	}
	x := b.bs[0]
	b.bs = b.bs[1:]
	return x, nil
}

var rowTypes = func() types.Schema {
	el, key := types.Of(types.Text), types.Of(types.Int4)
	ts := append(slices.Clone(keyTypes), types.Type{Kind: types.Array, Elem: &el}, types.Type{Kind: types.Map, Key: &key, Elem: &el},
		types.Type{Kind: types.Row, Fields: []types.Field{{Name: "x", Type: types.Of(types.Int8)}, {Name: "y", Type: types.Of(types.Text)}}})
	var s types.Schema
	for i, t := range ts {
		s = append(s, types.Field{ID: int32(i), Name: fmt.Sprint("c", i), Type: t})
	}
	return s
}()

// randomRows makes batches of rows of every type; the last column numbers them.
func randomRows(r *rand.Rand, n, most int) (bs []*vec.Batch, schema types.Schema) {
	schema = append(slices.Clone(rowTypes), types.Field{ID: 99, Name: "no", Type: types.Of(types.Int8)})
	no := int64(0)
	for n > 0 {
		k := min(n, 1+r.IntN(most))
		n -= k
		b := &vec.Batch{Schema: schema, N: k}
		for c, f := range schema {
			vals := make([]types.Datum, k)
			for i := range vals {
				switch {
				case c == len(schema)-1:
					vals[i] = no + int64(i)
				case f.Type.Kind == types.Array:
					if r.IntN(4) > 0 {
						l := []types.Datum{}
						for range r.IntN(3) {
							l = append(l, random(r, types.Of(types.Text)))
						}
						vals[i] = l
					}
				case f.Type.Kind == types.Map || f.Type.Kind == types.Row:
				default:
					vals[i] = random(r, f.Type)
				}
			}
			a := column(f.Type, vals)
			if variable(f.Type) && r.IntN(2) == 0 {
				a = dictionary(f.Type, vals)
			}
			b.Cols = append(b.Cols, a)
		}
		no += int64(k)
		bs = append(bs, b)
	}
	return bs, schema
}

// lines shows rows, each with the key by which it is sorted.
func lines(t *testing.T, codec *Codec, columns []int, bs []*vec.Batch) (out []string, keys [][]byte) {
	t.Helper()
	for _, b := range bs {
		var k Keys
		var cols []arrow.Array
		for _, c := range columns {
			cols = append(cols, b.Cols[c])
		}
		codec.Append(&k, cols, b.N)
		for i := range b.N {
			s := ""
			for c, f := range b.Schema {
				s += fmt.Sprintf("%v|", vec.DatumAt(b.Cols[c], f.Type, i))
			}
			out = append(out, s)
			keys = append(keys, bytes.Clone(k.At(i)))
		}
	}
	return out, keys
}

func drain(r *Reader) (bs []*vec.Batch, err error) {
	for {
		b, err := r.Next(context.Background())
		if err != nil || b == nil {
			return bs, err
		}
		bs = append(bs, b)
	}
}

// TestSort sorts rows of every type in memory, with temporary files, and with so
// few open ones that runs are merged in several passes.
func TestSort(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, s := range []Strategy{Order, ZOrder, Hilbert} {
		for _, c := range []struct {
			name       string
			rows, most int
			memory     int64
			fan        int
			limit      int64
		}{
			{name: "memory", rows: 3000, most: 500, memory: 64 << 20},
			{name: "nothing", memory: 64 << 20},
			{name: "one row", rows: 1, most: 1, memory: 64 << 20},
			{name: "files", rows: 3000, most: 500, memory: 500 << 10},
			{name: "passes", rows: 3000, most: 300, memory: 200 << 10, fan: 2},
			{name: "account", rows: 3000, most: 100, memory: 64 << 20, limit: 600 << 10},
		} {
			t.Run(s.String()+"/"+c.name, func(t *testing.T) {
				bs, schema := randomRows(r, c.rows, c.most)
				columns := r.Perm(len(keyTypes))[:2]
				ts := []types.Type{schema[columns[0]].Type, schema[columns[1]].Type}
				codec, err := NewCodec(s, ts, 0)
				if err != nil {
					t.Fatal(err)
				}
				if len(bs) > 0 {
					codec.Learn([][]arrow.Array{{bs[0].Cols[columns[0]], bs[0].Cols[columns[1]]}}, []int{bs[0].N})
				}
				want, keys := lines(t, codec, columns, bs)
				order := make([]int, len(want))
				for i := range order {
					order[i] = i
				}
				slices.SortStableFunc(order, func(a, b int) int { return bytes.Compare(keys[a], keys[b]) })
				dir := t.TempDir()
				account := mem.NewRoot("limit", c.limit)
				read := int64(0)
				x := NewReader(&batches{bs: bs}, Options{
					Codec: codec, Columns: columns, Memory: c.memory, Account: account, FanIn: c.fan,
					Dir: func() (string, error) { return dir, nil }, Rows: func(n int64) { read += n },
				})
				first, err := x.Next(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				empty(t, dir) // whatever happens now, nothing is left
				sorted, err := drain(x)
				if err != nil {
					t.Fatal(err)
				}
				if first != nil {
					sorted = append([]*vec.Batch{first}, sorted...)
				}
				got, _ := lines(t, codec, columns, sorted)
				if len(got) != len(want) || read != int64(len(want)) {
					t.Fatalf("%d rows of %d, %d read", len(got), len(want), read)
				}
				for i := range got {
					if got[i] != want[order[i]] {
						t.Fatalf("row %d is\n%s, want\n%s", i, got[i], want[order[i]])
					}
				}
				spilled, passes := x.Spilled()
				if files := c.name == "files" || c.name == "passes" || c.name == "account"; files != (spilled > 0) || (c.fan == 2) != (passes > 0) {
					t.Errorf("%d bytes in temporary files, %d passes", spilled, passes)
				}
				if err := x.Close(); err != nil {
					t.Fatal(err)
				}
				if account.Used() != 0 {
					t.Errorf("%d bytes are still charged", account.Used())
				}
				if c.memory > 0 && c.limit == 0 && account.Peak() > c.memory+8*3*chunkBytes+c.memory/2 && c.fan == 2 {
					t.Errorf("%d bytes were charged", account.Peak())
				}
				empty(t, dir)
			})
		}
	}
}

func empty(t *testing.T, dir string) {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil || len(es) > 0 {
		t.Errorf("%d temporary files are left: %v", len(es), err)
	}
}

// TestSortLocal sorts stretches that fit into memory.
func TestSortLocal(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	bs, schema := randomRows(r, 5000, 200)
	codec, err := NewCodec(Order, []types.Type{schema[4].Type}, 0)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := lines(t, codec, []int{4}, bs)
	account := mem.NewRoot("limit", 0)
	x := NewReader(&batches{bs: bs}, Options{Codec: codec, Columns: []int{4}, Memory: 500 << 10, Account: account, Local: true,
		Dir: func() (string, error) { return "", errors.New("no temporary files are needed") }})
	sorted, err := drain(x)
	if err != nil {
		t.Fatal(err)
	}
	got, keys := lines(t, codec, []int{4}, sorted)
	falls := 0
	for i := 1; i < len(keys); i++ {
		if bytes.Compare(keys[i-1], keys[i]) > 0 {
			falls++
		}
	}
	if falls == 0 || falls > 40 {
		t.Errorf("%d stretches", falls+1)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Error("rows differ")
	}
	if err := x.Close(); err != nil || account.Used() != 0 {
		t.Errorf("%v, %d bytes are still charged", err, account.Used())
	}
}

// TestSortFails makes sources, directories and accounts fail: nothing is left.
func TestSortFails(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	boom := errors.New("boom")
	for _, c := range []struct {
		name  string
		src   error
		dir   error
		limit int64
		ctx   bool
	}{
		{name: "source", src: boom}, {name: "directory", dir: boom}, {name: "account", limit: 100 << 10}, {name: "cancelled", ctx: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bs, schema := randomRows(r, 5000, 300)
			codec, err := NewCodec(Order, []types.Type{schema[0].Type}, 0)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			dir := t.TempDir()
			account := mem.NewRoot("limit", c.limit)
			x := NewReader(&batches{bs: bs, err: c.src}, Options{Codec: codec, Columns: []int{0}, Memory: 300 << 10, Account: account,
				Dir: func() (string, error) { return dir, c.dir }, Rows: func(int64) {
					if c.ctx {
						cancel()
					}
				}})
			_, err = x.Next(ctx)
			var limit *mem.LimitError
			switch {
			case (c.src != nil || c.dir != nil) && !errors.Is(err, boom), c.limit > 0 && !errors.As(err, &limit), c.ctx && !errors.Is(err, context.Canceled):
				t.Errorf("%v", err)
			}
			if err := x.Close(); err != nil || account.Used() != 0 {
				t.Errorf("%v, %d bytes are still charged", err, account.Used())
			}
			empty(t, dir)
			if _, err := x.Next(ctx); err == nil {
				t.Error("a closed reader yields rows")
			}
		})
	}
}

// BenchmarkSort sorts a million rows of three columns by two.
func BenchmarkSort(b *testing.B) {
	r := rand.New(rand.NewPCG(17, 18))
	const n, per = 1 << 20, 1 << 13
	schema := types.Schema{{Name: "a", Type: types.Of(types.Int8)}, {Name: "b", Type: types.Of(types.Float8)}, {Name: "s", Type: types.Of(types.Text)}}
	var bs []*vec.Batch
	for range n / per {
		a, f, s := make([]types.Datum, per), make([]types.Datum, per), make([]types.Datum, per)
		for i := range per {
			a[i], f[i], s[i] = int64(r.IntN(1e9)), r.Float64(), fmt.Sprint("value-", r.IntN(1e6))
		}
		bs = append(bs, &vec.Batch{Schema: schema, N: per, Cols: []arrow.Array{column(schema[0].Type, a), column(schema[1].Type, f), column(schema[2].Type, s)}})
	}
	for _, s := range []Strategy{Order, ZOrder, Hilbert} {
		for _, m := range []int64{1 << 30, 16 << 20} {
			b.Run(fmt.Sprintf("%v/%dMB", s, m>>20), func(b *testing.B) {
				codec, err := NewCodec(s, []types.Type{schema[0].Type, schema[1].Type}, 0)
				if err != nil {
					b.Fatal(err)
				}
				codec.Learn([][]arrow.Array{bs[0].Cols[:2]}, []int{per})
				b.ReportAllocs()
				for b.Loop() {
					x := NewReader(&batches{bs: bs}, Options{Codec: codec, Columns: []int{0, 1}, Memory: m, Dir: func() (string, error) { return b.TempDir(), nil }})
					for {
						got, err := x.Next(context.Background())
						if err != nil {
							b.Fatal(err)
						}
						if got == nil {
							break
						}
					}
					_ = x.Close()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
			})
		}
	}
}
