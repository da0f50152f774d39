package parquet

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/format"
)

// readFile counts what is read of a file that is not in memory.
type readFile struct {
	*bytes.Reader
	n int64
}

func (f *readFile) Path() string { return "t.parquet" }
func (f *readFile) Close() error { return nil }
func (f *readFile) Size() int64  { return f.Reader.Size() }
func (f *readFile) ReadAt(b []byte, off int64) (int, error) {
	f.n += int64(len(b))
	return f.Reader.ReadAt(b, off)
}

// TestExpect: of a file of many pages only those are read that hold a row that was
// announced, and the rows are the right ones; a row that was not is found as well.
func TestExpect(t *testing.T) {
	ctx := context.Background()
	schema := types.Schema{{ID: 0, Name: "a", Type: types.Of(types.Int8)}, {ID: 1, Name: "s", Type: types.Of(types.Text)}}
	const rows = 400_000
	var out bytes.Buffer
	w, err := Format{}.Create(ctx, &out, schema, format.WriteOptions{Compression: "none", Options: map[string]string{"parquet.page.size": "16 kb", "parquet.enable.dictionary": "false"}})
	if err != nil {
		t.Fatal(err)
	}
	value := func(i int64) string { return fmt.Sprintf("%032x", uint64(i)*0x9e3779b97f4a7c15) }
	for at := int64(0); at < rows; at += 10_000 {
		var a, s []types.Datum
		for i := at; i < at+10_000; i++ {
			a, s = append(a, i), append(s, value(i))
		}
		if err := w.Write([]arrow.Array{vec.FromDatums(schema[0].Type, a), vec.FromDatums(schema[1].Type, s)}, 10_000); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, wanted := range [][]int64{{5}, {0, 100_000, 100_001, 399_999}, {250_000}} {
		f := &readFile{Reader: bytes.NewReader(out.Bytes())}
		rd, err := Format{}.Open(ctx, f, schema)
		if err != nil {
			t.Fatal(err)
		}
		_ = rd.Cuts([]int{0, 1}) // the page index
		head := f.n
		c, err := rd.Columns(ctx, format.RowRange{From: 0, To: rows}, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		pages := int64(0)
		c.(format.Expecter).Expect(func(from, to int64) bool {
			for _, x := range wanted {
				if x >= from && x < to {
					return true
				}
			}
			return false
		}, func(n int64) { pages += n })
		read := func(also int64) {
			for at := int64(0); at < rows; at += 8000 {
				var keep []uint16
				for _, x := range append(wanted, also) {
					if x >= at && x < at+8000 {
						keep = append(keep, uint16(x-at))
					}
				}
				slices.Sort(keep)
				if keep == nil {
					keep = []uint16{}
				}
				cols, err := c.Read(ctx, 8000, keep)
				if err != nil {
					t.Fatal(err)
				}
				for i, k := range keep {
					if got := vec.DatumAt(cols[0], schema[0].Type, i); got != at+int64(k) {
						t.Fatalf("row %d holds %v", at+int64(k), got)
					}
					if got := vec.DatumAt(cols[1], schema[1].Type, i); got != value(at+int64(k)) {
						t.Fatalf("row %d holds %v", at+int64(k), got)
					}
				}
			}
		}
		read(-1)
		if n := f.n - head; n > int64(len(wanted))*3*(16<<10) {
			t.Errorf("%v: %d bytes are read", wanted, n)
		}
		if pages == 0 {
			t.Errorf("%v: no page is counted", wanted)
		}
		_ = c.Close()
		if c, err = rd.Columns(ctx, format.RowRange{From: 0, To: rows}, []int{0, 1}); err != nil {
			t.Fatal(err)
		}
		c.(format.Expecter).Expect(func(int64, int64) bool { return false }, nil)
		read(399_998)
		_ = c.Close()
		_ = rd.Close()
	}
}
