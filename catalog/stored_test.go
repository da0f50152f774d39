package catalog

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// one makes the relation of a table with one column of a Paimon type.
func one(t testing.TB, typ, pg string) *TableRelation {
	t.Helper()
	ty, err := types.ParsePaimonText(typ)
	if err != nil {
		t.Fatal(err)
	}
	return oneOf(ty, pg)
}

func oneOf(ty types.Type, pg string) *TableRelation {
	sch := &schema.Table{Fields: types.Schema{{Name: "c", Type: ty}}, Options: map[string]string{}}
	if pg != "" {
		sch.Options["pg-type.c"] = pg
	}
	return newTableRelation("public", "t", nil, sch, snapshot.Ref{}, ResolveOptions{})
}

func batch(t types.Type, a arrow.Array) *vec.Batch {
	return &vec.Batch{Schema: types.Schema{{Name: "c", Type: t}}, Cols: []arrow.Array{a}, N: a.Len()}
}

func dec(s string) *numeric.Dec {
	whole, frac, _ := strings.Cut(s, ".")
	d := &numeric.Dec{Scale: int32(len(frac))}
	d.Coef.SetString(whole+frac, 10)
	return d
}

func TestToStored(t *testing.T) {
	num := types.Type{Kind: types.Numeric}
	ts, ts9 := types.Of(types.Timestamp), types.TimestampOf(types.Timestamp, 9)
	day := int64(86_400_000_000)
	uuid := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	cases := []struct {
		typ, pg string
		from    types.Type
		in      types.Datum
		out     string // ToText of the stored value, or the error's kind
	}{
		{"TINYINT", "", types.Of(types.Int2), int64(-128), "-128"},
		{"TINYINT", "", types.Of(types.Int2), int64(128), "!0"},
		{"DECIMAL(4, 2)", "", num, dec("99.994"), "99.99"},
		{"DECIMAL(4, 2)", "", num, dec("99.995"), "!0"},
		{"DECIMAL(4, 2)", "", num, dec("-99.995"), "!0"},
		{"DECIMAL(4, 2)", "", num, dec("-12.345"), "-12.35"},
		{"DECIMAL(4, 2)", "", num, dec("1"), "1.00"},
		{"DECIMAL(4, 2)", "", num, &numeric.Dec{Form: numeric.NaN}, "!0"},
		{"DECIMAL(4, 2)", "", types.DecimalOf(38, 2), dec("99.99"), "99.99"},
		{"DECIMAL(4, 2)", "", types.DecimalOf(38, 2), dec("100.00"), "!0"},
		{"DECIMAL(4, 2)", "", types.DecimalOf(38, 2), dec("-100.00"), "!0"},
		{"DECIMAL(4, 2)", "", types.DecimalOf(10, 4), dec("1.2350"), "1.24"},
		{"DECIMAL(4, 2)", "", types.DecimalOf(10, 0), dec("-7"), "-7.00"},
		{"DECIMAL(38, 18)", "numeric", num, dec("1.5"), "1.500000000000000000"},
		{"DECIMAL(38, 18)", "numeric", num, dec("99999999999999999999"), "99999999999999999999.000000000000000000"},
		{"DECIMAL(38, 18)", "numeric", num, dec("100000000000000000000"), "!0"},
		{"VARCHAR(3)", "", types.Of(types.Varchar), "äöü", "äöü"},
		{"VARCHAR(3)", "", types.Of(types.Varchar), "abcd", "!1"},
		{"VARCHAR(3)", "", types.Of(types.Varchar), "abc   ", "abc"},
		{"CHAR(3)", "", types.Of(types.BpChar), "ä", "ä  "},
		{"CHAR(3)", "", types.Of(types.BpChar), "abc", "abc"},
		{"CHAR(3)", "", types.Of(types.BpChar), "", "   "},
		{"CHAR(3)", "", types.Of(types.BpChar), "abcd", "!1"},
		{"BINARY(2)", "", types.Of(types.Bytea), []byte("abc"), "!1"},
		{"TIME(3)", "", types.Of(types.Time), int64(1_234_500), "00:00:01.235"},
		{"TIME(0)", "", types.Of(types.Time), int64(1_500_000), "00:00:02"},
		{"TIME(3)", "", types.Of(types.Time), day, "!2"},
		{"TIME(3)", "", types.Of(types.Time), day - 1, "!2"},
		{"TIMESTAMP(3)", "", ts, int64(-1500), "1969-12-31 23:59:59.998"},
		{"TIMESTAMP(3)", "", ts, int64(1500), "1970-01-01 00:00:00.002"},
		{"TIMESTAMP(6)", "", ts9, int64(1500), "1970-01-01 00:00:00.000002"},
		{"TIMESTAMP(9)", "", ts, int64(1), "1970-01-01 00:00:00.000001000"},
		{"TIMESTAMP(7)", "", ts9, int64(1250), "1970-01-01 00:00:00.0000013"},
		{"TIMESTAMP(9)", "", ts, int64(math.MaxInt64 / 100), "!2"},
		{"TIMESTAMP(9)", "", ts, int64(math.MaxInt64), "!2"},
		{"TIMESTAMP(3)", "", ts, int64(math.MinInt64), "!2"},
		{"TIMESTAMP(6)", "", ts, int64(math.MaxInt64), "294247-01-10 04:00:54.775807"},
		{"STRING", "uuid", types.Of(types.UUID), uuid, "00010203-0405-0607-0809-0a0b0c0d0e0f"},
		{"STRING", "json", types.Of(types.JSON), `{"a": 1}`, `{"a": 1}`},
		{"ARRAY<DECIMAL(4, 2)>", "", types.ArrayOf(num), []types.Datum{dec("1.5"), nil}, "[1.50, null]"},
		{"ARRAY<DECIMAL(4, 2)>", "", types.ArrayOf(num), []types.Datum{dec("100")}, "!0"},
		{"ARRAY<INT NOT NULL>", "", types.ArrayOf(types.Of(types.Int4)), []types.Datum{int64(1), nil}, "!3"},
		{"VECTOR<FLOAT, 2>", "", types.ArrayOf(types.Of(types.Float4)), []types.Datum{1.5}, "!4"},
		{"MAP<CHAR(2), TINYINT>", "", types.MapOf(types.Of(types.BpChar), types.Of(types.Int2)), []types.KV{{K: "a", V: int64(1)}}, "{a  -> 1}"},
		{"MAP<CHAR(2), TINYINT>", "", types.MapOf(types.Of(types.BpChar), types.Of(types.Int2)), []types.KV{{K: "a", V: int64(1000)}}, "!0"},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s %v", c.typ, c.in), func(t *testing.T) {
			r := one(t, c.typ, c.pg)
			// Alone, behind a NULL, and as the only live row beside one that does not fit.
			for _, rows := range [][]types.Datum{{c.in}, {nil, c.in}, {c.in, nil, c.in}} {
				b := batch(c.from, vec.FromDatums(c.from, rows))
				got, err := r.ToStored(b)
				if strings.HasPrefix(c.out, "!") {
					var v *ValueError
					if !errors.As(err, &v) || fmt.Sprint("!", v.Kind) != c.out || v.Column != "c" {
						t.Fatalf("error %v, want kind %s", err, c.out)
					}
					if len(rows) == 3 {
						b.Sel = []uint16{1} // the NULL
						if _, err := r.ToStored(b); err != nil {
							t.Fatalf("a dead row: %v", err)
						}
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				st := r.sch.Fields[0].Type
				for i, in := range rows {
					d := vec.DatumAt(got.Cols[0], st, i)
					if in == nil {
						if d != nil {
							t.Fatalf("row %d is %v", i, d)
						}
						continue
					}
					if s, err := schema.ToText(st, d); err != nil || s != c.out {
						t.Fatalf("row %d is %q, %v, want %q", i, s, err, c.out)
					}
				}
			}
		})
	}
}

// TestToStoredBack: what is stored reads back as what was given.
func TestToStoredBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	blob := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	cases := []struct {
		typ, pg string
		gen     func() types.Datum
	}{
		{"BIGINT", "", func() types.Datum { return rng.Int64() }},
		{"TINYINT", "", func() types.Datum { return int64(int8(rng.Uint32())) }},
		{"STRING", "", func() types.Datum { return fmt.Sprint(rng.Uint32()) }},
		{"VARCHAR(10)", "", func() types.Datum { return fmt.Sprint(rng.Uint32()) }},
		{"DECIMAL(38, 18)", "numeric", func() types.Datum {
			d := &numeric.Dec{Scale: rng.Int32N(19)}
			d.Coef.Mul(big.NewInt(rng.Int64N(1<<62)-1<<61), big.NewInt(rng.Int64N(1000)))
			if d.Digits()-int(d.Scale) > 20 {
				d.Scale = 18
			}
			return d.TrimScale()
		}},
		{"STRING", "uuid", func() types.Datum { return blob(16) }},
		{"STRING", "interval", func() types.Datum {
			b := make([]byte, 16)
			copy(b, blob(6)) // microseconds below 9 years
			b[8], b[12] = byte(rng.Uint32()), byte(rng.Uint32())
			return b
		}},
		{"TIMESTAMP(6)", "", func() types.Datum { return rng.Int64N(1 << 52) }},
		{"BYTES", "", func() types.Datum { return blob(5) }},
	}
	for _, c := range cases {
		t.Run(c.typ+" "+c.pg, func(t *testing.T) {
			r := one(t, c.typ, c.pg)
			typ := r.cols[0].Type
			in := make([]types.Datum, 200)
			for i := range in {
				if rng.IntN(5) > 0 {
					in[i] = c.gen()
				}
			}
			b := batch(typ, vec.FromDatums(typ, in))
			live := in
			if rng.IntN(2) == 0 {
				live = nil
				for i := range in {
					if rng.IntN(2) == 0 {
						b.Sel = append(b.Sel, uint16(i))
						live = append(live, in[i])
					}
				}
			}
			st, err := r.ToStored(b)
			if err != nil {
				t.Fatal(err)
			}
			sel := st.Sel
			back, err := r.apply(st, []int{0})
			if err != nil {
				t.Fatal(err)
			}
			for k, want := range live {
				i := k
				if sel != nil {
					i = int(sel[k])
				}
				got := vec.DatumAt(back.Cols[0], typ, i)
				if d, ok := want.(*numeric.Dec); ok {
					if numeric.Cmp(d, got.(*numeric.Dec)) != 0 {
						t.Fatalf("row %d: %v, want %v", k, got, want)
					}
				} else if !reflect.DeepEqual(got, want) {
					t.Fatalf("row %d: %v, want %v", k, got, want)
				}
			}
		})
	}
}

func TestToStoredNoCopy(t *testing.T) {
	d2 := dec("1.25")
	for typ, d := range map[string]types.Datum{
		"BIGINT": int64(1), "STRING": "a", "DATE": int64(1), "DOUBLE": 1.5, "BYTES": []byte("a"), "TIMESTAMP(6)": int64(1), "TIMESTAMP(3)": int64(1000),
		"DECIMAL(10, 2)": d2, "ARRAY<INT>": []types.Datum{int64(1), nil}, "MAP<STRING, INT>": []types.KV{{K: "a", V: int64(1)}}, "VARCHAR(5)": "abc", "TIME(3)": int64(1000),
	} {
		r := one(t, typ, "")
		a := vec.FromDatums(r.cols[0].Type, []types.Datum{d, nil})
		b := batch(r.cols[0].Type, a)
		got, err := r.ToStored(b)
		if err != nil || got.Cols[0] != a {
			t.Errorf("%s is copied, %v", typ, err)
		}
	}
}

func BenchmarkToStored(b *testing.B) {
	const rows = 8192
	for _, c := range []struct {
		name, typ, pg string
		from          types.Type
		gen           func(i int) types.Datum
	}{
		{"bigint", "BIGINT", "", types.Of(types.Int8), func(i int) types.Datum { return int64(i) }},
		{"tinyint", "TINYINT", "", types.Of(types.Int2), func(i int) types.Datum { return int64(i % 100) }},
		{"decimal", "DECIMAL(10, 2)", "", types.DecimalOf(10, 2), func(i int) types.Datum { d := numeric.FromInt64(int64(i)); d.Scale = 2; return d }},
		{"decimal-scale", "DECIMAL(12, 4)", "", types.DecimalOf(10, 2), func(i int) types.Datum { d := numeric.FromInt64(int64(i)); d.Scale = 2; return d }},
		{"decimal-binary", "DECIMAL(10, 2)", "", types.Type{Kind: types.Numeric}, func(i int) types.Datum { d := numeric.FromInt64(int64(i)); d.Scale = 2; return d }},
		{"varchar", "VARCHAR(20)", "", types.Of(types.Text), func(i int) types.Datum { return fmt.Sprint("text ", i) }},
		{"char", "CHAR(20)", "", types.Of(types.Text), func(i int) types.Datum { return fmt.Sprint("text ", i) }},
		{"timestamp3", "TIMESTAMP(3)", "", types.Of(types.Timestamp), func(i int) types.Datum { return int64(i) * 1000 }},
		{"uuid", "STRING", "uuid", types.Of(types.UUID), func(i int) types.Datum { return make([]byte, 16) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := one(b, c.typ, c.pg)
			ds := make([]types.Datum, rows)
			for i := range ds {
				ds[i] = c.gen(i)
			}
			in := batch(c.from, vec.FromDatums(c.from, ds))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.ToStored(in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}
