// Package formattest is the conformance suite that every data file format
// passes: what is written is read back, whole and in pieces, and nothing that
// matches a predicate is pruned away.
package formattest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
)

// File is a fileio.File in memory that counts its reads.
type File struct {
	B     []byte
	Name  string
	mu    sync.Mutex
	Reads int
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	f.Reads++
	f.mu.Unlock()
	return bytes.NewReader(f.B).ReadAt(p, off)
}

// Size returns the length of the file.
func (f *File) Size() int64 { return int64(len(f.B)) }

// Path returns the name of the file.
func (f *File) Path() string { return f.Name }

// Close does nothing.
func (f *File) Close() error { return nil }

// Config tells the suite what a format can do.
type Config struct {
	Format format.Format
	// Without names columns of AllTypes that the format cannot hold.
	Without []string
	// Options are sets of write options to go through; at least the empty one.
	Options []format.WriteOptions
	// ReadOnly formats have no Create; the suite then only checks that.
	ReadOnly bool
}

// Table is what one file is made of.
type Table struct {
	Schema types.Schema
	Cols   []arrow.Array
	N      int
}

// Schema is AllTypes without what the format cannot hold.
func (c *Config) Schema() types.Schema {
	var s types.Schema
	for _, f := range AllTypes() {
		skip := false
		for _, w := range c.Without {
			skip = skip || w == f.Name
		}
		if !skip {
			s = append(s, f)
		}
	}
	return s
}

// Random makes a table of n rows.
func Random(g *Gen, s types.Schema, n int) *Table {
	t := &Table{Schema: s, N: n}
	for _, f := range s {
		t.Cols = append(t.Cols, g.Array(f.Type, n))
	}
	return t
}

// Write writes a table in batches of random size, and text columns now and then
// as dictionaries.
func Write(rng *rand.Rand, f format.Format, t *Table, o format.WriteOptions) ([]byte, []format.ColumnStats, error) {
	var b bytes.Buffer
	ctx := context.Background()
	w, err := f.Create(ctx, &b, t.Schema, o)
	if err != nil {
		return nil, nil, err
	}
	for at := 0; at < t.N; {
		n := min(1+rng.Intn(5000), t.N-at)
		cols := make([]arrow.Array, len(t.Cols))
		for i, c := range t.Cols {
			cols[i] = array.NewSlice(c, int64(at), int64(at+n))
			if s, ok := cols[i].(*array.String); ok && rng.Intn(2) == 0 {
				cols[i] = asDictionary(s)
			}
		}
		if err := w.Write(cols, n); err != nil {
			return nil, nil, err
		}
		at += n
	}
	if t.N > 0 && w.EstimatedSize() <= 0 {
		return nil, nil, errors.New("the estimated size of a file with rows is not positive")
	}
	st, err := w.Close()
	return b.Bytes(), st, err
}

// asDictionary makes a dictionary array of s.
func asDictionary(s *array.String) arrow.Array {
	seen := map[string]int32{}
	off, data := []int32{0}, []byte{}
	idx := make([]int32, s.Len())
	valid := make([]byte, vec.BitmapLen(s.Len()))
	for i := range idx {
		if s.IsNull(i) {
			continue
		}
		valid[i>>3] |= 1 << (i & 7)
		k, ok := seen[s.Value(i)]
		if !ok {
			k = int32(len(off) - 1)
			seen[s.Value(i)] = k
			data = append(data, s.Value(i)...)
			off = append(off, int32(len(data)))
		}
		idx[i] = k
	}
	return vec.MakeDict(idx, valid, vec.MakeBytes(arrow.BinaryTypes.String, off, data, nil))
}

// Run runs the suite.
func Run(t *testing.T, c Config) {
	if c.ReadOnly {
		_, err := c.Format.Create(context.Background(), &bytes.Buffer{}, c.Schema(), format.WriteOptions{})
		var u *fileio.UnsupportedError
		if !errors.As(err, &u) {
			t.Fatalf("Create: %v, want an UnsupportedError", err)
		}
		return
	}
	if len(c.Options) == 0 {
		c.Options = []format.WriteOptions{{}}
	}
	seed := int64(random.Seed(t))
	for i, o := range c.Options {
		t.Run(fmt.Sprintf("options%d", i), func(t *testing.T) {
			rng := rand.New(rand.NewSource(seed + int64(i)))
			for _, rows := range []int{0, 1, 7, 700, 5000} {
				if rows == 5000 && (i%3 != 0 || o.BlockSize == 1) { // big tables for some of the options
					continue
				}
				for _, g := range []*Gen{
					{Rand: rng, Nulls: 0}, {Rand: rng, Nulls: 0.3}, {Rand: rng, Nulls: 1},
					{Rand: rng, Nulls: 0.05, Distinct: 50}, {Rand: rng, Distinct: 2},
				} {
					tab := Random(g, c.Schema(), rows)
					if err := check(rng, c.Format, tab, o); err != nil {
						t.Fatalf("%d rows, %.2f NULLs, %d distinct, options %v: %v", rows, g.Nulls, g.Distinct, o, err)
					}
				}
			}
		})
	}
}

func check(rng *rand.Rand, f format.Format, tab *Table, o format.WriteOptions) error {
	b, stats, err := Write(rng, f, tab, o)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := checkStats(tab, stats); err != nil {
		return err
	}
	ctx := context.Background()
	// The reader may be asked for columns in any order and for absent ones.
	s := append(types.Schema{{ID: 9999, Name: "absent", Type: types.ArrayOf(types.Of(types.Int4))}}, tab.Schema...)
	r, err := f.Open(ctx, &File{B: b, Name: "t/data-0"}, s)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer r.Close()
	if r.Rows() != int64(tab.N) {
		return fmt.Errorf("%d rows, want %d", r.Rows(), tab.N)
	}
	if err := checkCuts(r, len(s)); err != nil {
		return err
	}
	for i := 0; i < 6; i++ {
		if err := checkRange(rng, r, tab, s, i == 0); err != nil {
			return err
		}
	}
	if err := checkConcurrent(rng, r, tab, s); err != nil {
		return err
	}
	return CheckPrune(rng, r, tab, s, 1, 40)
}

func checkCuts(r format.Reader, n int) error {
	want := make([]int, n)
	for i := range want {
		want[i] = i
	}
	last := int64(0)
	for _, c := range r.Cuts(want) {
		if c <= last || c >= r.Rows() {
			return fmt.Errorf("cut %d after %d of %d rows", c, last, r.Rows())
		}
		last = c
	}
	return nil
}

// checkRange reads a random range of random columns with random batches and
// keeps. s is the schema given to Open: an absent column, then tab's.
func checkRange(rng *rand.Rand, r format.Reader, tab *Table, s types.Schema, whole bool) error {
	rr := format.RowRange{To: r.Rows()}
	var want []int
	for i := range s {
		if whole || rng.Intn(3) == 0 {
			want = append(want, i)
		}
	}
	rng.Shuffle(len(want), func(i, j int) { want[i], want[j] = want[j], want[i] })
	if !whole && r.Rows() > 0 {
		rr.From = rng.Int63n(r.Rows())
		rr.To = rr.From + rng.Int63n(r.Rows()-rr.From+1)
		if cuts := r.Cuts(want); len(cuts) > 0 && rng.Intn(2) == 0 {
			rr = format.RowRange{From: cuts[rng.Intn(len(cuts))], To: r.Rows()}
		}
	}
	ctx := context.Background()
	cr, err := r.Columns(ctx, rr, want)
	if err != nil {
		return fmt.Errorf("columns: %w", err)
	}
	defer cr.Close()
	most := []int64{1, 50, 3000, 8192}[rng.Intn(4)]
	if whole {
		most = 8192
	}
	density := []float64{0, 0.02, 0.5, 0.95, 2}[rng.Intn(5)]
	for at := rr.From; at < rr.To; {
		n := min(1+rng.Int63n(most), rr.To-at)
		var keep []uint16
		if !whole && density < 1 {
			keep = []uint16{}
			for i := int64(0); i < n; i++ {
				if rng.Float64() < density {
					keep = append(keep, uint16(i))
				}
			}
		}
		cols, err := cr.Read(ctx, int(n), keep)
		if err != nil {
			return fmt.Errorf("read rows %d+%d: %w", at, n, err)
		}
		if err := compare(tab, s, want, cols, at, n, keep); err != nil {
			return fmt.Errorf("rows %d+%d (%d kept of range %v): %w", at, n, len(keep), rr, err)
		}
		at += n
	}
	return nil
}

func compare(tab *Table, s types.Schema, want []int, cols []arrow.Array, at, n int64, keep []uint16) error {
	if len(cols) != len(want) {
		return fmt.Errorf("%d columns, want %d", len(cols), len(want))
	}
	m := int(n)
	if keep != nil {
		m = len(keep)
	}
	for k, c := range want {
		a := cols[k]
		if a.Len() != m {
			return fmt.Errorf("column %s has %d rows, want %d", s[c].Name, a.Len(), m)
		}
		dt := s[c].Type.Arrow()
		if d, ok := a.DataType().(*arrow.DictionaryType); ok && s[c].Type.IsTextLike() {
			if !arrow.TypeEqual(d.ValueType, dt) || d.IndexType.ID() != arrow.INT32 {
				return fmt.Errorf("column %s is %s", s[c].Name, d)
			}
		} else if !arrow.TypeEqual(a.DataType(), dt) {
			return fmt.Errorf("column %s is %s, want %s", s[c].Name, a.DataType(), dt)
		}
		nulls := 0
		for i := 0; i < m; i++ {
			row := int(at) + i
			if keep != nil {
				row = int(at) + int(keep[i])
			}
			exp := "NULL"
			if c > 0 {
				exp = Cell(tab.Cols[c-1], row)
			}
			if got := Cell(a, i); got != exp {
				return fmt.Errorf("column %s row %d: got %s, want %s", s[c].Name, row, got, exp)
			}
			if a.IsNull(i) {
				nulls++
			}
		}
		if a.NullN() != nulls {
			return fmt.Errorf("column %s says %d NULLs and has %d", s[c].Name, a.NullN(), nulls)
		}
	}
	return nil
}

// checkConcurrent reads disjoint ranges of one Reader at the same time.
func checkConcurrent(rng *rand.Rand, r format.Reader, tab *Table, s types.Schema) error {
	want := make([]int, len(s))
	for i := range want {
		want[i] = i
	}
	var wg sync.WaitGroup
	errs := make([]error, 3)
	for w := range errs {
		rr := format.RowRange{From: r.Rows() * int64(w) / 3, To: r.Rows() * int64(w+1) / 3}
		if rr.To-rr.From > 300 {
			rr.To = rr.From + 300
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			ctx := context.Background()
			cr, err := r.Columns(ctx, rr, want)
			if err != nil {
				errs[w] = err
				return
			}
			defer cr.Close()
			cols, err := cr.Read(ctx, int(rr.To-rr.From), nil)
			if err == nil {
				err = compare(tab, s, want, cols, rr.From, rr.To-rr.From, nil)
			}
			errs[w] = err
		}()
	}
	wg.Wait()
	return errors.Join(errs...)
}

// CheckPrune tries random predicates: every matching row must lie in a range
// that Prune returns. s is the schema given to Open, whose columns from shift on
// are tab's; those before are absent from the file.
func CheckPrune(rng *rand.Rand, r format.Reader, tab *Table, s types.Schema, shift, tries int) error {
	value := func(col int) types.Datum {
		if col >= shift && tab.N > 0 {
			for i := 0; i < 5; i++ {
				if v := Datum(tab.Cols[col-shift], rng.Intn(tab.N)); v != nil {
					return v
				}
			}
		}
		g := &Gen{Rand: rng}
		return Datum(g.Array(s[col].Type.WithNotNull(true), 1), 0)
	}
	for i := 0; i < tries; i++ {
		p := RandomPredicate(rng, s, 2, value)
		var c format.Counters
		ranges, err := r.Prune(context.Background(), p, &c)
		if err != nil {
			return fmt.Errorf("prune: %w", err)
		}
		last, in := int64(-1), int64(0)
		for _, x := range ranges {
			if x.From >= x.To || x.From < last || x.To > r.Rows() {
				return fmt.Errorf("prune: ranges %v of %d rows", ranges, r.Rows())
			}
			last = x.To
			in += x.To - x.From
		}
		if c.Rows != r.Rows() || c.RowsSkipped != r.Rows()-in {
			return fmt.Errorf("prune: counters %+v with %d of %d rows left", c, in, r.Rows())
		}
		k := 0
		for row := 0; row < tab.N; row++ {
			for k < len(ranges) && int64(row) >= ranges[k].To {
				k++
			}
			if k < len(ranges) && int64(row) >= ranges[k].From {
				continue
			}
			get := func(col int) types.Datum {
				if col < shift {
					return nil
				}
				return Datum(tab.Cols[col-shift], row)
			}
			if Eval(p, get) == True {
				return fmt.Errorf("prune: row %d matches %s and lies in none of %v", row, Show(p), ranges)
			}
		}
	}
	return nil
}

// checkStats: bounds hold, and NULLs are counted.
func checkStats(tab *Table, stats []format.ColumnStats) error {
	if len(stats) != len(tab.Cols) {
		return fmt.Errorf("statistics of %d columns, want %d", len(stats), len(tab.Cols))
	}
	for i, c := range tab.Cols {
		st, f := stats[i], tab.Schema[i]
		if st.NullCount >= 0 && st.NullCount != int64(c.NullN()) {
			return fmt.Errorf("statistics of %s count %d NULLs of %d", f.Name, st.NullCount, c.NullN())
		}
		if st.Min == nil && st.Max == nil {
			continue
		}
		for row := 0; row < tab.N; row++ {
			v := Datum(c, row)
			if v == nil {
				continue
			}
			plain := f.Type
			plain.Kind = types.Text // bounds are of the stored bytes
			if cmp(plain, v, st.Min) < 0 || cmp(plain, v, st.Max) > 0 {
				return fmt.Errorf("statistics of %s: %v is outside %v to %v", f.Name, v, st.Min, st.Max)
			}
		}
	}
	return nil
}
