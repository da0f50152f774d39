package pgwire

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"net"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// testSink is a sink whose connection collects what is sent.
func testSink(cols []engine.Column, formats []int16) *sink {
	c := &conn{sess: &fakeSession{}, log: nil}
	c.out = writer{nc: discard{}, plain: false}
	c.sink = sink{c: c, cols: cols, formats: formats, style: &pgtext.Style{}}
	return &c.sink
}

type discard struct{ net.Conn }

func (discard) Write(b []byte) (int, error)      { return len(b), nil }
func (discard) SetWriteDeadline(time.Time) error { return nil }

// encodeValues returns the values of one column, nil for NULL.
func encodeValues(t testing.TB, typ types.Type, a arrow.Array, format int16, sel []uint16) [][]byte {
	t.Helper()
	s := testSink([]engine.Column{{Name: "c", Type: typ}}, []int16{format})
	var got [][]byte
	s.c.out.nc = capture{f: func(b []byte) {
		for len(b) > 0 {
			n := int(binary.BigEndian.Uint32(b[1:]))
			row := b[5 : n+1]
			b = b[n+1:]
			if k := binary.BigEndian.Uint16(row); k != 1 {
				t.Fatalf("%d columns", k)
			}
			size := int32(binary.BigEndian.Uint32(row[2:]))
			if size < 0 {
				got = append(got, nil)
				continue
			}
			if int(size) != len(row)-6 {
				t.Fatalf("length %d in a row of %d", size, len(row))
			}
			got = append(got, append([]byte{}, row[6:]...))
		}
	}}
	b := &vec.Batch{Schema: types.Schema{{Name: "c", Type: typ}}, Cols: []arrow.Array{a}, N: a.Len(), Sel: sel}
	if err := s.Batch(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	if err := s.c.out.flush(); err != nil {
		t.Fatal(err)
	}
	return got
}

type capture struct {
	discard
	f func([]byte)
}

func (c capture) Write(b []byte) (int, error) { c.f(b); return len(b), nil }

func dec(s string) *numeric.Dec {
	d := new(numeric.Dec)
	switch s {
	case "NaN":
		d.Form = numeric.NaN
		return d
	case "Infinity":
		d.Form = numeric.PosInf
		return d
	case "-Infinity":
		d.Form = numeric.NegInf
		return d
	}
	whole, frac, _ := strings.Cut(s, ".")
	d.Coef.SetString(whole+frac, 10)
	d.Scale = int32(len(frac))
	return d
}

func interval(us int64, days, months int32) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(us))
	b = binary.LittleEndian.AppendUint32(b, uint32(days))
	return binary.LittleEndian.AppendUint32(b, uint32(months))
}

// TestRoundTrip sends values of every type in both formats and lets pgx's codecs
// read them: what they understand must be the value, and what they send back
// must be read here as the same datum.
func TestRoundTrip(t *testing.T) {
	day := func(s string) int64 {
		x, err := time.Parse(time.DateOnly, s)
		if err != nil {
			t.Fatal(err)
		}
		return x.Unix() / 86400
	}
	micros := func(s string) int64 {
		x, err := time.Parse("2006-01-02T15:04:05.999999", s)
		if err != nil {
			t.Fatal(err)
		}
		return x.UnixMicro()
	}
	utc := func(us int64) time.Time { return time.UnixMicro(us).UTC() }
	num := func(s string) pgtype.Numeric {
		var n pgtype.Numeric
		if err := n.Scan(s); err != nil {
			t.Fatal(err)
		}
		return n
	}
	ts := func(k types.Kind, prec uint8) types.Type { return types.Type{Kind: k, Prec: prec} }
	for _, tc := range []struct {
		typ  types.Type
		d    types.Datum
		want any // as pgx reads it; compared by its printed form
	}{
		{types.Of(types.Bool), true, true},
		{types.Of(types.Bool), false, false},
		{types.Of(types.Int2), int64(-32768), int16(-32768)},
		{types.Of(types.TinyInt), int64(-128), int16(-128)},
		{types.Of(types.Int4), int64(2147483647), int32(2147483647)},
		{types.Of(types.Int8), int64(math.MinInt64), int64(math.MinInt64)},
		{types.Of(types.Float4), float64(float32(0.1)), float32(0.1)},
		{types.Of(types.Float8), 0.1, 0.1},
		{types.Of(types.Float8), math.Inf(-1), math.Inf(-1)},
		{types.Of(types.Numeric), dec("123456789012345678901234567890.000100"), num("123456789012345678901234567890.000100")},
		{types.Of(types.Numeric), dec("-0.00010000"), num("-0.00010000")},
		{types.Of(types.Numeric), dec("0.00"), num("0.00")},
		{types.Of(types.Numeric), dec("10000"), num("10000")},
		{types.Of(types.Numeric), dec("NaN"), num("NaN")},
		{types.Of(types.Numeric), dec("-Infinity"), num("-Infinity")},
		{types.NumericOf(10, 2), dec("1.50"), num("1.50")},
		{types.NumericOf(38, 10), dec("-1234567890123456789012345678.0123456789"), num("-1234567890123456789012345678.0123456789")},
		{types.NumericOf(38, 37), dec("9.9999999999999999999999999999999999999"), num("9.9999999999999999999999999999999999999")},
		{types.Of(types.Text), "héllo\n", "héllo\n"},
		{types.Of(types.Text), "", ""},
		{types.Type{Kind: types.Varchar, Mod: 9}, "abc", "abc"},
		{types.Type{Kind: types.BpChar, Mod: 9, Len: 5}, "é", "é    "},
		{types.Of(types.Name), "pg_class", "pg_class"},
		{types.Of(types.Bytea), []byte{0, 255, '\\'}, []byte{0, 255, '\\'}},
		{types.Of(types.Date), day("2024-02-29"), utc(micros("2024-02-29T00:00:00"))},
		{types.Of(types.Date), day("0001-01-01"), utc(micros("0001-01-01T00:00:00"))},
		{types.Of(types.Date), int64(math.MaxInt32), pgtype.Infinity},
		{types.Of(types.Time), int64(86399999999), pgtype.Time{Microseconds: 86399999999, Valid: true}},
		{ts(types.Timestamp, 6), micros("1969-12-31T23:59:59.999999"), utc(-1)},
		{ts(types.Timestamp, 6), int64(math.MinInt64), pgtype.NegativeInfinity},
		{ts(types.TimestampTZ, 6), micros("2024-07-01T12:00:00.5"), utc(micros("2024-07-01T12:00:00.5"))},
		{ts(types.TimestampTZ, 6), int64(math.MaxInt64), pgtype.Infinity},
		{types.Of(types.Interval), interval(-1, 40, -14), pgtype.Interval{Microseconds: -1, Days: 40, Months: -14, Valid: true}},
		{types.Of(types.UUID), []byte("0123456789abcdef"), [16]byte([]byte("0123456789abcdef"))},
		{types.Of(types.JSON), `{"a": [1, null]}`, map[string]any{"a": []any{1.0, nil}}},
		{types.Of(types.JSONB), `{"a": [1, null]}`, map[string]any{"a": []any{1.0, nil}}},
		{types.Of(types.OID), int64(4294967295), uint32(4294967295)},
		{types.Of(types.XID), int64(3), uint32(3)},
		{types.ArrayOf(types.Of(types.Int4)), []types.Datum{int64(1), nil, int64(-3)}, []any{int32(1), nil, int32(-3)}},
		{types.ArrayOf(types.Of(types.Text)), []types.Datum{"a,b", "", `q"\`, "NULL"}, []any{"a,b", "", `q"\`, "NULL"}},
		{types.ArrayOf(types.Of(types.Int8)), []types.Datum{}, []any{}},
		{types.ArrayOf(types.NumericOf(5, 2)), []types.Datum{dec("1.20")}, []any{num("1.20")}},
		{types.ArrayOf(types.Of(types.Bool)), []types.Datum{true, false}, []any{true, false}},
		{types.ArrayOf(ts(types.Timestamp, 6)), []types.Datum{int64(0)}, []any{utc(0)}},
	} {
		m := pgtype.NewMap()
		a := vec.FromDatums(tc.typ, []types.Datum{nil, tc.d, nil})
		oid := tc.typ.OID()
		for _, format := range []int16{0, 1} {
			name := fmt.Sprintf("%s %v format %d", tc.typ, tc.d, format)
			got := encodeValues(t, tc.typ, a, format, nil)
			if len(got) != 3 || got[0] != nil || got[1] == nil || got[2] != nil {
				t.Errorf("%s: %q", name, got)
				continue
			}
			pt, ok := m.TypeForOID(oid)
			if !ok {
				t.Errorf("%s: pgx does not know oid %d", name, oid)
				continue
			}
			v, err := pt.Codec.DecodeValue(m, oid, format, got[1])
			if err != nil {
				t.Errorf("%s: %q: %v", name, got[1], err)
				continue
			}
			if g, w := fmt.Sprintf("%T %+v", v, v), fmt.Sprintf("%T %+v", tc.want, tc.want); g != w && !sameNumeric(v, tc.want) {
				t.Errorf("%s: pgx reads %s, want %s (sent %q)", name, g, w, got[1])
			}
			// And back: our own bytes are what pgx would send.
			d := decoder{style: &pgtext.Style{}}
			back, err := d.param(tc.typ, got[1], format, 1)
			if err != nil {
				t.Errorf("%s: back: %v", name, err)
				continue
			}
			if !sameDatum(back, tc.d) && tc.typ.Kind != types.BpChar {
				t.Errorf("%s: back comes %v", name, back)
			}
			// pgx encodes the value that it has read.
			if v != nil && tc.typ.Kind != types.BpChar && tc.typ.Kind != types.JSON && tc.typ.Kind != types.JSONB {
				b, err := m.Encode(oid, format, v, nil)
				if err != nil {
					continue // no encoder for what it decodes into
				}
				if back, err := d.param(tc.typ, b, format, 1); err != nil || !sameDatum(back, tc.d) {
					t.Errorf("%s: pgx sends %q, read as %v, %v", name, b, back, err)
				}
			}
		}
	}
}

func sameNumeric(a, b any) bool {
	x, ok := a.(pgtype.Numeric)
	y, ok2 := b.(pgtype.Numeric)
	if !ok || !ok2 {
		if l, ok := a.([]any); ok {
			r, ok := b.([]any)
			if !ok || len(l) != len(r) {
				return false
			}
			for i := range l {
				if !sameNumeric(l[i], r[i]) {
					return false
				}
			}
			return true
		}
		return false
	}
	if x.NaN || y.NaN || x.InfinityModifier != 0 || y.InfinityModifier != 0 {
		return x.NaN == y.NaN && x.InfinityModifier == y.InfinityModifier
	}
	rat := func(n pgtype.Numeric) *big.Rat {
		r := new(big.Rat).SetInt(n.Int)
		p := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(n.Exp, -n.Exp))), nil))
		if n.Exp < 0 {
			return r.Quo(r, p)
		}
		return r.Mul(r, p)
	}
	return rat(x).Cmp(rat(y)) == 0
}

func sameDatum(a, b types.Datum) bool {
	if l, ok := a.([]types.Datum); ok {
		r, ok := b.([]types.Datum)
		if !ok || len(l) != len(r) {
			return false
		}
		for i := range l {
			if !sameDatum(l[i], r[i]) {
				return false
			}
		}
		return true
	}
	x, ok := a.(*numeric.Dec)
	y, ok2 := b.(*numeric.Dec)
	if ok && ok2 {
		return numeric.Cmp(x, y) == 0
	}
	return reflect.DeepEqual(a, b)
}

// The binary forms that pgx has no codec for, written out.
func TestBinaryLayouts(t *testing.T) {
	row := types.Type{Kind: types.Record, Fields: []types.Field{{Name: "f1", Type: types.Of(types.Int4)}, {Name: "f2", Type: types.Of(types.Unknown)}, {Name: "f3", Type: types.Of(types.Text)}}}
	nested := types.Type{Kind: types.Row, Fields: []types.Field{{Name: "a", Type: types.Of(types.Int4)}}}
	tz := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, 1), 0xffffe3e0) // 2 hours east: -7200
	for _, tc := range []struct {
		typ  types.Type
		d    types.Datum
		want string
	}{
		{types.Of(types.Char), "x", "78"},
		{types.Of(types.Char), "", "00"},
		{types.Of(types.Void), nil, ""},
		{types.Of(types.TimeTZ), tz, "0000000000000001ffffe3e0"},
		{types.Of(types.RegClass), int64(1259), "000004eb"},
		{types.Of(types.Int2Vector), []types.Datum{int64(1)}, "00000001 00000000 00000015 00000001 00000000 00000002 0001"},
		{types.Of(types.OIDVector), []types.Datum{}, "00000001 00000000 0000001a 00000000 00000000"},
		{row, []types.Datum{int64(1), nil, "x"}, "00000003 00000017 00000004 00000001 000002c1 ffffffff 00000019 00000001 78"},
		{nested, []types.Datum{int64(1)}, fmt.Sprintf("01%x", `{"a": 1}`)},
		{types.MapOf(types.Of(types.Text), types.Of(types.Int4)), []types.KV{{K: "k", V: int64(7)}}, fmt.Sprintf("01%x", `{"k": 7}`)},
		{types.ArrayOf(types.ArrayOf(types.Of(types.Int4))), []types.Datum{[]types.Datum{int64(1)}, nil}, fmt.Sprintf("01%x", `[[1], null]`)},
		{types.Type{Kind: types.Timestamp, Prec: 9}, int64(946684800000000999), "0000000000000000"},
		{types.Type{Kind: types.Timestamp, Prec: 9}, int64(946684799999999999), "ffffffffffffffff"},
	} {
		a := vec.FromDatums(tc.typ, []types.Datum{tc.d})
		got := encodeValues(t, tc.typ, a, 1, nil)
		if w := strings.ReplaceAll(tc.want, " ", ""); got[0] == nil || fmt.Sprintf("%x", got[0]) != w {
			t.Errorf("%s %v: %x, want %s", tc.typ, tc.d, got[0], w)
		}
	}
}

// A dictionary is sent like its values, with a selection and in both formats.
func TestDictionary(t *testing.T) {
	dict := vec.FromDatums(types.Of(types.Text), []types.Datum{"a", "bb", ""})
	a := vec.MakeDict([]int32{1, 0, 2, 1}, []byte{0b1101}, dict)
	for _, typ := range []types.Type{types.Of(types.Text), {Kind: types.BpChar, Mod: 7}, types.Of(types.JSONB)} {
		pad, prefix := "", ""
		if typ.Kind == types.BpChar {
			pad = " "
		}
		for format := range int16(2) {
			if typ.Kind == types.JSONB && format == 1 {
				prefix = "\x01"
			}
			got := encodeValues(t, typ, a, format, []uint16{0, 1, 3})
			want := [][]byte{[]byte(prefix + "bb" + pad), nil, []byte(prefix + "bb" + pad)}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s format %d: %q", typ, format, got)
			}
		}
	}
}

func TestInvalidText(t *testing.T) {
	for _, bad := range []string{"a\x00b", "\xff", "\xe2\x82"} {
		a := vec.FromDatums(types.Of(types.Text), []types.Datum{"ok", bad, "ok"})
		for format := range int16(2) {
			s := testSink([]engine.Column{{Type: types.Of(types.Text)}}, []int16{format})
			if err := s.Batch(context.Background(), &vec.Batch{Cols: arrays(a), N: 3}); err == nil || !strings.Contains(err.Error(), "invalid byte sequence") {
				t.Errorf("%q: %v", bad, err)
			}
			// A row that is not sent does not matter.
			if err := s.Batch(context.Background(), &vec.Batch{Cols: arrays(a), N: 3, Sel: []uint16{0, 2}}); err != nil {
				t.Errorf("%q: %v", bad, err)
			}
		}
	}
}

// BenchmarkEncode measures rows of one column; more columns cost the sum.
func BenchmarkEncode(b *testing.B) {
	const n = 2048
	rnd := rand.New(rand.NewPCG(1, 2))
	ints := make([]types.Datum, n)
	strs := make([]types.Datum, n)
	nums := make([]types.Datum, n)
	times := make([]types.Datum, n)
	floats := make([]types.Datum, n)
	for i := range n {
		ints[i] = rnd.Int64N(1 << rnd.IntN(40))
		strs[i] = strconv.Itoa(rnd.IntN(1 << 30))
		nums[i] = dec(fmt.Sprintf("%d.%02d", rnd.IntN(1<<20), rnd.IntN(100)))
		times[i] = rnd.Int64N(1 << 50)
		floats[i] = rnd.Float64() * 1000
	}
	for _, c := range []struct {
		name string
		typ  types.Type
		d    []types.Datum
	}{
		{"int8", types.Of(types.Int8), ints},
		{"text", types.Of(types.Text), strs},
		{"numeric", types.NumericOf(12, 2), nums},
		{"numeric-any", types.Of(types.Numeric), nums},
		{"float8", types.Of(types.Float8), floats},
		{"timestamp", types.Of(types.Timestamp), times},
		{"timestamptz", types.Of(types.TimestampTZ), times},
	} {
		a := vec.FromDatums(c.typ, c.d)
		for format, f := range []string{"text", "binary"} {
			b.Run(c.name+"/"+f, func(b *testing.B) {
				s := testSink([]engine.Column{{Type: c.typ}}, []int16{int16(format)})
				batch := &vec.Batch{Cols: arrays(a), N: n}
				ctx := context.Background()
				b.ReportAllocs()
				b.ResetTimer()
				for b.Loop() {
					if err := s.Batch(ctx, batch); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
			})
		}
	}
}
