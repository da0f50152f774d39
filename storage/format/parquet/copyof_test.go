package parquet

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/format"
)

// A column that is said to be another's copy reads as it would without, over
// several row groups and with statistics of its own.
func TestCopyOf(t *testing.T) {
	const rows = 60_000
	for _, kind := range []string{"long", "text", "short text", "pairs", "decimal"} {
		var ty types.Type
		var col arrow.Array
		ints := make([]int64, rows)
		offs, data := make([]int32, 1), []byte{}
		for i := range rows {
			switch kind {
			case "pairs":
				ints[i] = int64(i / 2 * 7)
			case "text":
				data = fmt.Appendf(data, "row %d", i)
			case "short text": // empty ones and long ones among them
				data = fmt.Appendf(data, "%.*s", i%9, "\x00\x00ab\x00cdefg")
			default:
				ints[i] = int64(i) * 7
			}
			offs = append(offs, int32(len(data)))
		}
		switch kind {
		case "text", "short text":
			ty, col = types.Of(types.Text), vec.MakeBytes(arrow.BinaryTypes.String, offs, data, nil)
		case "decimal":
			ty = types.NumericOf(20, 2)
			d := make([]decimal128.Num, rows)
			for i := range d {
				d[i] = decimal128.FromI64(ints[i])
			}
			col = vec.MakeDec128(ty.Arrow(), d, nil)
		default:
			ty, col = types.Of(types.Int8), vec.Make(arrow.PrimitiveTypes.Int64, ints, nil)
		}
		ty = ty.WithNotNull(true)
		s := types.Schema{{ID: 9, Name: "_KEY_k", Type: ty}, {ID: 1, Name: "o", Type: types.Of(types.Text)}, {ID: 0, Name: "k", Type: ty}}
		other := vec.MakeNull(arrow.BinaryTypes.String, rows)
		made := func(copyOf []int) []format.ColumnStats {
			var out bytes.Buffer
			w, err := create(&out, s, format.WriteOptions{Compression: "zstd", CopyOf: copyOf, Options: map[string]string{"parquet.block.size": "100kb"}})
			if err != nil {
				t.Fatal(err)
			}
			if copyOf != nil {
				if err := w.Write([]arrow.Array{vec.Slice(col, 0, 9), vec.Slice(other, 0, 9), vec.Slice(col, 1, 10)}, 9); err == nil {
					t.Fatalf("%s: another array is taken for the same", kind)
				}
			}
			for at := 0; at < rows; at += 10_000 {
				k := vec.Slice(col, at, at+10_000)
				if err := w.Write([]arrow.Array{k, vec.Slice(other, at, at+10_000), k}, 10_000); err != nil {
					t.Fatal(err)
				}
			}
			st, err := w.Close()
			if err != nil {
				t.Fatal(err)
			}
			f, err := open(context.Background(), newMemFile("f", out.Bytes()), s)
			if err != nil {
				t.Fatal(err)
			}
			r, err := f.Columns(context.Background(), format.RowRange{From: 0, To: rows}, []int{0, 2})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close() //nolint:errcheck // a reader
			for at := 0; at < rows; at += 7_500 {
				got, err := r.Read(context.Background(), 7_500, nil)
				if err != nil {
					t.Fatal(err)
				}
				want := vec.Slice(col, at, at+7_500)
				for c, a := range got {
					if !array.Equal(vec.Decode(a), want) {
						t.Fatalf("%s, copies %v: column %d differs in rows %d to %d", kind, copyOf, c, at, at+7_500)
					}
				}
			}
			return st
		}
		if one, two := made(nil), made([]int{-1, -1, 0}); fmt.Sprint(one) != fmt.Sprint(two) {
			t.Errorf("%s: statistics %v, want %v", kind, two, one)
		}
	}
}
