package parquet

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/format"
)

// TestPruneEquality: dictionaries and bloom filters rule out values that are not there,
// for each type where that is exact, and never one that is.
func TestPruneEquality(t *testing.T) {
	dec := func(s string) *numeric.Dec {
		d, err := numeric.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	ints := func(vs ...int64) (out []types.Datum) {
		for _, v := range vs {
			out = append(out, v)
		}
		return out
	}
	decs := func(vs ...string) (out []types.Datum) {
		for _, v := range vs {
			out = append(out, dec(v))
		}
		return out
	}
	strs := func(vs ...string) (out []types.Datum) {
		for _, v := range vs {
			out = append(out, v)
		}
		return out
	}
	of := types.Of
	ts := func(k types.Kind, prec uint8) types.Type { return types.Type{Kind: k, Prec: prec} }
	zero, nan := math.Copysign(0, -1), math.NaN()
	long := strings.Repeat("common beginning ", 8) // longer than bounds are
	for _, c := range []struct {
		name           string
		written, read  types.Type
		stored, absent []types.Datum // absent: between the stored ones
		equal          []types.Datum // not among stored as they are, but equal to one
		dict, bloom    bool          // rule out absent
	}{
		{"tinyint", of(types.TinyInt), of(types.TinyInt), ints(-128, 0, 127), ints(-1, 1), nil, true, true},
		{"smallint", of(types.Int2), of(types.Int2), ints(-32768, 0, 32767), ints(-1, 1), nil, true, true},
		{"integer", of(types.Int4), of(types.Int4), ints(math.MinInt32, 0, math.MaxInt32), ints(-1, 1), nil, true, true},
		{"integer as bigint", of(types.Int4), of(types.Int8), ints(math.MinInt32, 0, math.MaxInt32), ints(-1, 1, 1<<32), nil, true, true},
		{"bigint", of(types.Int8), of(types.Int8), ints(math.MinInt64, 0, math.MaxInt64), ints(-1, 1, 1<<32), nil, true, true},
		{"real", of(types.Float4), of(types.Float4), []types.Datum{-1.5, zero, 2.25, math.Inf(1)}, []types.Datum{1.5, 0.1}, []types.Datum{0.0}, true, true},
		{"real as double", of(types.Float4), of(types.Float8), []types.Datum{-1.5, 0.0, float64(float32(0.1)), 2.25}, []types.Datum{1.5, 0.1, 2.2500000001}, []types.Datum{zero}, true, true},
		{"double", of(types.Float8), of(types.Float8), []types.Datum{math.Inf(-1), 0.0, 2.25}, []types.Datum{1.5, 5e-324}, []types.Datum{zero}, true, true},
		{"double with NaN", of(types.Float8), of(types.Float8), []types.Datum{-1.0, nan, 2.0}, []types.Datum{1.5}, []types.Datum{math.Float64frombits(0x7ff8000000000123), math.Float64frombits(0xfff8000000000000)}, true, true},
		{"real with NaN", of(types.Float4), of(types.Float4), []types.Datum{-1.0, nan, 2.0}, []types.Datum{1.5}, []types.Datum{math.Float64frombits(0x7ff8000000000123)}, true, true},
		{"numeric of 32 bits", types.NumericOf(9, 2), types.NumericOf(9, 2), decs("-9999999.99", "1.10", "9999999.99"), decs("1.11", "1.105", "0"), decs("1.1", "1.1000"), true, true},
		{"numeric of 64 bits", types.NumericOf(18, 4), types.NumericOf(18, 4), decs("-99999999999999.9999", "1.1", "99999999999999.9999"), decs("1.11", "1.10001", "0"), decs("1.10", "1.1000000"), true, true},
		// Java's writers have no dictionaries of fixed-length bytes, so ours have none; and no
		// bloom filters, in which Java would not find some values.
		{"numeric of many bytes", types.NumericOf(38, 10), types.NumericOf(38, 10), decs("-9999999999999999999999999999.9999999999", "1.5", "18446744073709551616"), decs("1.4", "0", "-1"), decs("1.50"), false, false},
		{"date", of(types.Date), of(types.Date), ints(-719162, 0, 20000), ints(-1, 1), nil, true, true},
		{"time", ts(types.Time, 3), ts(types.Time, 3), ints(0, 1_000, 86_399_999_000), ints(1, 1_001, 2_000), nil, true, true},
		{"timestamp of milliseconds", ts(types.Timestamp, 3), ts(types.Timestamp, 3), ints(-1_000, 0, 5_000), ints(1_000, -1, 1), nil, true, true},
		{"timestamp", ts(types.Timestamp, 6), ts(types.Timestamp, 6), ints(-1, 1, 5_000_001), ints(0, 1_000), nil, true, true},
		{"timestamptz", ts(types.TimestampTZ, 6), ts(types.TimestampTZ, 6), ints(-1, 1, 5_000_001), ints(0, 1_000), nil, true, true},
		{"timestamptz of milliseconds", ts(types.TimestampTZ, 3), ts(types.TimestampTZ, 3), ints(-1_000, 0, 5_000), ints(1_000, -1, 1), nil, true, true},
		// INT96 has no order, and its bloom filter would be of the days and nanoseconds.
		{"timestamp of nanoseconds", ts(types.Timestamp, 9), ts(types.Timestamp, 9), ints(-1_000, 1_000, 5_000_000), ints(0, 2_000), nil, true, false},
		{"text", of(types.Text), of(types.Text), strs("", "a", long+"1", long+"2", "zz"), strs("b", "A", "a ", long, long+"3"), nil, true, true},
		{"text that is not UTF-8", of(types.Text), of(types.Text), strs("a\xff", "a\xff\xffb", "\xff"), strs("b", "a\xff\xffa"), nil, true, true},
		{"varchar", types.Type{Kind: types.Varchar, Len: 200}, types.Type{Kind: types.Varchar, Len: 200}, strs("", "a", "a ", long+"1", "zz"), strs("b", "a  ", long), nil, true, true},
		// What is stored may have blanks behind it or not, so no hash is known.
		{"char", types.Type{Kind: types.BpChar, Len: 4}, types.Type{Kind: types.BpChar, Len: 4}, strs("a   ", "b", "cd  "), strs("aa", "c"), strs("a", "a ", "b   ", "cd"), true, false},
		{"bytea", of(types.Bytea), of(types.Bytea), []types.Datum{[]byte{}, []byte{0}, bytes.Repeat([]byte{0xff}, 70), []byte{0xff}}, []types.Datum{[]byte{1}, []byte{0, 0}, bytes.Repeat([]byte{0xff}, 69)}, nil, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, how := range []struct {
				name    string
				options map[string]string
				rules   bool
			}{
				{"dictionary", map[string]string{"parquet.enable.dictionary": "true"}, c.dict},
				{"bloom filter", map[string]string{"parquet.enable.dictionary": "false", "parquet.bloom.filter.enabled#x": "true", "parquet.bloom.filter.expected.ndv#x": "1000"}, c.bloom},
				{"both", map[string]string{"parquet.enable.dictionary": "true", "parquet.bloom.filter.enabled#x": "true"}, c.dict || c.bloom},
				{"neither", map[string]string{"parquet.enable.dictionary": "false"}, false},
			} {
				// Every value in several places, NULLs between them, in several pages.
				how.options["parquet.page.row.count.limit"] = "50"
				var in []types.Datum
				for range 40 {
					in = append(append(in, c.stored...), nil)
				}
				ws, rs := types.Schema{{ID: 0, Name: "x", Type: c.written}}, types.Schema{{ID: 0, Name: "x", Type: c.read}}
				var b bytes.Buffer
				w, err := Format{}.Create(context.Background(), &b, ws, format.WriteOptions{Options: how.options})
				if err != nil {
					t.Fatal(err)
				}
				if err := w.Write([]arrow.Array{vec.FromDatums(c.written, in)}, len(in)); err != nil {
					t.Fatal(err)
				}
				if _, err := w.Close(); err != nil {
					t.Fatal(err)
				}
				r, err := open(context.Background(), newMemFile("f", b.Bytes()), rs)
				if err != nil {
					t.Fatal(err)
				}
				rows := func(n predicate.Node) int64 {
					rr, err := r.Prune(context.Background(), n, nil)
					if err != nil {
						t.Fatal(err)
					}
					k := int64(0)
					for _, x := range rr {
						k += x.To - x.From
					}
					return k
				}
				leaf := func(op predicate.Op, args ...types.Datum) predicate.Node {
					return &predicate.Leaf{Op: op, Type: c.read, Args: args}
				}
				all := int64(len(in))
				for _, x := range append(c.stored[:len(c.stored):len(c.stored)], c.equal...) {
					for _, n := range []predicate.Node{leaf(predicate.Eq, x), leaf(predicate.In, append([]types.Datum{x}, c.absent...)...), leaf(predicate.In, append(c.absent[:len(c.absent):len(c.absent)], x)...)} {
						if got := rows(n); got != all {
							t.Errorf("%s: of %v, which is there, %d of %d rows are read", how.name, x, got, all)
						}
					}
					// None of the others may be missed.
					if got := rows(leaf(predicate.NotEq, x)); got != all && len(c.stored) > 1 {
						t.Errorf("%s: <> %v reads %d of %d rows", how.name, x, got, all)
					}
					if got := rows(&predicate.Not{Arg: leaf(predicate.Eq, x)}); got != all {
						t.Errorf("%s: NOT = %v reads %d of %d rows", how.name, x, got, all)
					}
				}
				for _, x := range c.absent {
					if got := rows(leaf(predicate.Eq, x)); how.rules && got != 0 || got != 0 && got != all {
						t.Errorf("%s: of %v, which is not there, %d rows are read", how.name, x, got)
					}
					for _, n := range []predicate.Node{&predicate.Not{Arg: leaf(predicate.Eq, x)}, leaf(predicate.NotEq, x), leaf(predicate.NotIn, x, c.stored[0])} {
						if got := rows(n); got != all {
							t.Errorf("%s: NOT = %v reads %d of %d rows", how.name, x, got, all)
						}
					}
				}
				if got := rows(leaf(predicate.In, c.absent...)); how.rules && got != 0 {
					t.Errorf("%s: of values that are not there %d rows are read", how.name, got)
				}
				// A constant of another kind is not judged.
				if got := rows(leaf(predicate.Eq, fmt.Errorf("odd"))); got != all {
					t.Errorf("%s: an odd constant rules rows out", how.name)
				}
			}
		})
	}
}
