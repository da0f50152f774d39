package parquet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	pq "github.com/parquet-go/parquet-go"

	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
)

// cell is one entry of a leaf column: levels and the value's text.
type cell struct {
	rep, def int
	v        string
}

// libraryRows reads a file with parquet-go's row reader: rows[row][leaf].
func libraryRows(b []byte) ([][][]cell, error) {
	f, err := pq.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	leaves := len(f.Schema().Columns())
	var out [][][]cell
	for _, g := range f.RowGroups() {
		rows := g.Rows()
		buf := make([]pq.Row, 100)
		for {
			n, err := rows.ReadRows(buf)
			for _, row := range buf[:n] {
				cs := make([][]cell, leaves)
				for _, v := range row {
					cs[v.Column()] = append(cs[v.Column()], cell{v.RepetitionLevel(), v.DefinitionLevel(), libraryText(v)})
				}
				out = append(out, cs)
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
		}
		rows.Close()
	}
	return out, nil
}

func libraryText(v pq.Value) string {
	if v.IsNull() {
		return "-"
	}
	switch v.Kind() {
	case pq.Boolean:
		return fmt.Sprint(v.Boolean())
	case pq.Int32:
		return fmt.Sprint(v.Int32())
	case pq.Int64:
		return fmt.Sprint(v.Int64())
	case pq.Int96:
		i := v.Int96()
		days := int64(int32(i[2])) - julianEpoch
		nanos := int64(uint64(i[1])<<32 | uint64(i[0]))
		return fmt.Sprint(days*nanosPerDay + nanos)
	case pq.Float:
		return fmt.Sprint(v.Float())
	case pq.Double:
		return fmt.Sprint(v.Double())
	}
	return string(v.ByteArray())
}

// ourText is what libraryText would say of element i, in the file's unit.
func ourText(a arrow.Array, i int, el *element) string {
	switch a := a.(type) {
	case *array.Boolean:
		return fmt.Sprint(a.Value(i))
	case *array.Int16:
		return fmt.Sprint(a.Value(i))
	case *array.Int32:
		return fmt.Sprint(a.Value(i))
	case *array.Int64:
		return fmt.Sprint(a.Value(i))
	case *array.Date32:
		return fmt.Sprint(int32(a.Value(i)))
	case *array.Float32:
		return fmt.Sprint(a.Value(i))
	case *array.Float64:
		return fmt.Sprint(a.Value(i))
	case *array.Time64:
		return fmt.Sprint(int64(a.Value(i)) / 1000)
	case *array.Timestamp:
		v := int64(a.Value(i))
		if el.unit == unitMillis {
			v /= 1000
		}
		return fmt.Sprint(v)
	case *array.Decimal128:
		v := a.Value(i)
		switch el.typ {
		case pInt32, pInt64:
			return fmt.Sprint(int64(v.LowBits()))
		}
		var b []byte
		b = be64(be64(b, uint64(v.HighBits())), v.LowBits())
		return string(b[16-int(el.typeLength):])
	case *array.String:
		return a.Value(i)
	case *array.Binary:
		return string(a.Value(i))
	case *array.Dictionary:
		return ourText(a.Dictionary(), a.GetValueIndex(i), el)
	}
	panic(fmt.Sprintf("%T", a))
}

// shredRow turns element i of an array back into cells: the reverse of assembly,
// slow and recursive on purpose.
func shredRow(b *bnode, n *snode, a arrow.Array, i, rep, def int, out [][]cell) {
	null := func() {
		var each func(n *snode)
		each = func(n *snode) {
			if n.leaf >= 0 {
				out[n.leaf] = append(out[n.leaf], cell{rep, def, "-"})
			}
			for _, c := range n.children {
				each(c)
			}
		}
		each(n)
	}
	if a.IsNull(i) {
		null()
		return
	}
	if n.el.repetition == repOptional {
		def++
	}
	switch b.kind {
	case kLeaf:
		out[n.leaf] = append(out[n.leaf], cell{rep, def, ourText(a, i, n.el)})
	case kStruct:
		s := a.(*array.Struct)
		for k, c := range b.children {
			shredRow(c, n.child(s.DataType().(*arrow.StructType).Field(k).Name), s.Field(k), i, rep, def, out)
		}
	case kList, kMap:
		var from, to int64
		var kids []arrow.Array
		var nodes []*snode
		if m, ok := a.(*array.Map); ok {
			from, to = m.ValueOffsets(i)
			kids, nodes = []arrow.Array{m.Keys(), m.Items()}, n.children[0].children
		} else {
			l := a.(*array.List)
			from, to = l.ValueOffsets(i)
			el, r := listElement(n)
			if el == r {
				c := *el.el
				c.repetition = repRequired
				m := *el
				m.el = &c
				el = &m
			}
			kids, nodes = []arrow.Array{l.ListValues()}, []*snode{el}
		}
		if from == to {
			null()
			return
		}
		for j := from; j < to; j++ {
			r := rep
			if j > from {
				r = b.elemRep
			}
			for k := range kids {
				shredRow(b.children[k], nodes[k], kids[k], int(j), r, def+1, out)
			}
		}
	}
}

func ourRows(r *Reader, cols []arrow.Array, n int) [][][]cell {
	out := make([][][]cell, n)
	for i := range out {
		out[i] = make([][]cell, len(r.leaves))
		for k, b := range r.cols {
			shredRow(b, r.root.children[k], cols[k], i, 0, 0, out[i])
		}
	}
	return out
}

func diffRows(got, want [][][]cell) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d rows, want %d", len(got), len(want))
	}
	for i := range got {
		for c := range got[i] {
			if fmt.Sprint(got[i][c]) != fmt.Sprint(want[i][c]) {
				return fmt.Sprintf("row %d leaf %d: got %v, want %v", i, c, got[i][c], want[i][c])
			}
		}
	}
	return ""
}

// randomRead reads rows of a range with random batch sizes and random keeps and
// returns which rows it kept.
func randomRead(ctx context.Context, r *Reader, rng *rand.Rand, rr format.RowRange) (rows [][][]cell, kept []int64, err error) {
	want := make([]int, len(r.cols))
	for i := range want {
		want[i] = i
	}
	cr, err := r.Columns(ctx, rr, want)
	if err != nil {
		return nil, nil, err
	}
	defer cr.Close()
	most := []int64{1, 3, 100, 8192}[rng.Intn(4)]
	density := []float64{0, 0.01, 0.3, 0.9, 2}[rng.Intn(5)]
	for at := rr.From; at < rr.To; {
		n := min(1+rng.Int63n(most), rr.To-at)
		var keep []uint16
		if density < 1 || rng.Intn(3) == 0 {
			keep = []uint16{}
			d := density * 2 * rng.Float64()
			for i := int64(0); i < n; i++ {
				if rng.Float64() < d {
					keep = append(keep, uint16(i))
				}
			}
		}
		cols, err := cr.Read(ctx, int(n), keep)
		if err != nil {
			return nil, nil, fmt.Errorf("rows %d+%d: %w", at, n, err)
		}
		m := int(n)
		if keep != nil {
			m = len(keep)
			for _, k := range keep {
				kept = append(kept, at+int64(k))
			}
		} else {
			for i := int64(0); i < n; i++ {
				kept = append(kept, at+i)
			}
		}
		for i, c := range cols {
			if c.Len() != m {
				return nil, nil, fmt.Errorf("column %d has %d rows, want %d", i, c.Len(), m)
			}
			dt := r.schema[i].Type.Arrow()
			if d, ok := c.DataType().(*arrow.DictionaryType); ok {
				if !r.schema[i].Type.IsTextLike() || !arrow.TypeEqual(d.ValueType, dt) {
					return nil, nil, fmt.Errorf("column %d is %s", i, c.DataType())
				}
			} else if !arrow.TypeEqual(c.DataType(), dt) {
				return nil, nil, fmt.Errorf("column %d is %s, want %s", i, c.DataType(), dt)
			}
		}
		rows = append(rows, ourRows(r, cols, m)...)
		at += n
	}
	return rows, kept, nil
}

// checkFile compares one file with parquet-go, whole and in random pieces.
func checkFile(path string, b []byte, rng *rand.Rand, tries int) error {
	ctx := context.Background()
	probe, err := open(ctx, newMemFile(path, b), nil)
	if err != nil {
		return err
	}
	schema := schemaOfFile(probe.root)
	want, err := libraryRows(b)
	if err != nil {
		return errLibrary
	}
	for i := 0; i < tries; i++ {
		var f fileio.File = newMemFile(path, b)
		if i%2 == 1 {
			f = &bytesFile{newMemFile(path, b), b}
		}
		r, err := open(ctx, f, schema)
		if err != nil {
			return err
		}
		if i%3 == 2 {
			r.mem = nil // nothing read ahead
		}
		rr := format.RowRange{To: r.Rows()}
		if i > 0 && r.Rows() > 0 {
			rr.From = rng.Int63n(r.Rows())
			rr.To = rr.From + rng.Int63n(r.Rows()-rr.From+1)
		}
		got, kept, err := randomRead(ctx, r, rng, rr)
		if err != nil {
			return err
		}
		var exp [][][]cell
		for _, k := range kept {
			exp = append(exp, want[k])
		}
		if d := diffRows(got, exp); d != "" {
			return fmt.Errorf("rows %d..%d: %s", rr.From, rr.To, d)
		}
		r.Close()
	}
	return nil
}

var errLibrary = errors.New("parquet-go cannot read the file")

func TestFixturesAgainstLibrary(t *testing.T) {
	seed := int64(random.Seed(t))
	rng := rand.New(rand.NewSource(seed))
	files, foreign := 0, 0
	for _, p := range parquetFiles(t) {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		err = checkFile(p, b, rng, testkit.Rounds(2))
		if errors.Is(err, errLibrary) {
			foreign++
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", p, err)
		}
		files++
	}
	t.Logf("%d files agree; parquet-go cannot read %d", files, foreign)
}
