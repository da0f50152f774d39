package pgcopy

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

var fuzzColumns = []string{
	"a int4, b text", "a text", "a int8, b numeric(5,2), c varchar(3), d timestamp", "a bool, b float8, c bytea, d date",
	"a timestamptz, b int4[], c jsonb, d char(3), e numeric(38,18), f int2, g float4",
}

// fuzzText checks that the quick way, cuts and batch sizes change nothing.
func fuzzText(f *testing.F, opts ...[]Option) {
	for _, s := range []string{"1\ta\n2\tb\n", "1,a\n\"2\",\"b\"\"\n\"\n", "1\t\\N\n\\.\n", "1\ta\r\n2\tb\r\n", "a\\tb\n\\x41\\101\\\n\n", "1\t1.50\tab\t2024-02-29 12:34:56.5\n", "\"\n\",\"\r\"\n"} {
		f.Add([]byte(s), byte(0), byte(1))
		f.Add([]byte(s+s+s), byte(2), byte(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, which, cut byte) {
		k := kase{cols: fuzzColumns[int(which)%len(fuzzColumns)], opts: opts[int(which/8)%len(opts)], data: data}
		want := k.decode(0, 0, true)
		for _, got := range []string{k.decode(0, 0, false), k.decode(int(cut), 1+int(cut)%5, false)} {
			if got != want {
				t.Fatalf("COPY t (%s) WITH (%s): %q\n  quick %s\n  exact %s", k.cols, k.optText(), data, got, want)
			}
		}
	})
}

func FuzzText(f *testing.F) {
	fuzzText(f, nil, []Option{{Name: "null", Given: true, Value: ""}}, []Option{{Name: "header", Given: true, Value: "match"}}, []Option{{Name: "encoding", Given: true, Value: "latin1"}})
}

func FuzzCSV(f *testing.F) {
	csv := Option{Name: "format", Given: true, Value: "csv"}
	fuzzText(f, []Option{csv}, []Option{csv, {Name: "escape", Given: true, Value: `\`}}, []Option{csv, {Name: "header"}},
		[]Option{csv, {Name: "force_null", Given: true, IsList: true, List: []string{"a"}}, {Name: "force_not_null", Given: true, IsList: true, List: []string{"b"}}})
}

func FuzzBinary(f *testing.F) {
	head := append([]byte(signature), 0, 0, 0, 0, 0, 0, 0, 0)
	f.Add(append(head, 0, 2, 0, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0, 1, 'x', 255, 255), byte(0), byte(1))
	f.Add(append(head, 0, 1, 255, 255, 255, 255), byte(1), byte(2))
	f.Fuzz(func(t *testing.T, data []byte, which, cut byte) {
		k := kase{cols: fuzzColumns[int(which)%len(fuzzColumns)], opts: []Option{{Name: "format", Given: true, Value: "binary"}}, data: data}
		want := k.decode(0, 0, false)
		if got := k.decode(int(cut), 1+int(cut)%5, false); got != want {
			t.Fatalf("COPY t (%s): %q\n  cut %s\nwhole %s", k.cols, data, got, want)
		}
	})
}

// Values of quick readers are those of the slow ones, for numbers of all shapes.
func FuzzQuickDecimal(f *testing.F) {
	f.Add("12.50", byte(2), byte(5))
	f.Add("-0.000000000000000001", byte(18), byte(38))
	f.Fuzz(func(t *testing.T, s string, scale, prec byte) {
		prec = prec%38 + 1
		scale %= prec + 1
		typ := types.NumericOf(int(prec), int(scale))
		v, ok := quickDecimal([]byte(s), int(scale), int(prec-scale))
		if !ok {
			return
		}
		c := column{typ: typ, kind: colDecimal}
		c.start(1)
		d := Decoder{}
		if err := d.input(&c, 0, []byte(s)); err != nil {
			t.Fatalf("%q as %s: quick reads %v, the exact way says %v", s, typ, v, err)
		}
		if c.dec[0] != v {
			t.Fatalf("%q as %s: quick reads %v, the exact way %v", s, typ, v, c.dec[0])
		}
	})
}

func tuples(rows int, row func(b []byte, i int) []byte) []byte {
	b := append([]byte(signature), 0, 0, 0, 0, 0, 0, 0, 0)
	for i := range rows {
		b = row(b, i)
	}
	return append(b, 255, 255)
}

var six = "a int8, b int4, c numeric(15,2), d text, e text, f timestamp"

func init() { typesByName["numeric(15,2)"] = types.NumericOf(15, 2) }

// BenchmarkDecode reads six columns: two integers, a decimal, a short and a longer
// text, a timestamp.
func BenchmarkDecode(b *testing.B) {
	const rows = 200_000
	status := []string{"OPEN", "PAID", "SHIPPED", "RETURNED"}
	note := "carefully nag among deposits sleep quick"
	make1 := func(format string) []byte {
		var out []byte
		for i := range rows {
			x := uint64(i)*2654435761 + 12345
			out = fmt.Appendf(out, format, i+1, x%150000, x%100000, x%100, status[x>>7&3], note[x>>9&15:], x>>3%28+1, x>>5%24, x>>6%60, x>>8%60, x%1000000)
		}
		return out
	}
	for _, c := range []struct {
		name string
		opts []Option
		data []byte
	}{
		{"text", nil, make1("%d\t%d\t%d.%02d\t%s\t%s\t2026-01-%02d %02d:%02d:%02d.%06d\n")},
		{"text-nulls", nil, make1("%d\t%d\t%d.%02d\t\\N%.0s\t%s\t2026-01-%02d %02d:%02d:%02d.%06d\n")},
		{"csv", []Option{{Name: "format", Given: true, Value: "csv"}}, make1("%d,%d,%d.%02d,%s,%s,2026-01-%02d %02d:%02d:%02d.%06d\n")},
		{"csv-quoted", []Option{{Name: "format", Given: true, Value: "csv"}}, make1("\"%d\",\"%d\",\"%d.%02d\",\"%s\",\"%s\",\"2026-01-%02d %02d:%02d:%02d.%06d\"\n")},
		{"binary", []Option{{Name: "format", Given: true, Value: "binary"}}, tuples(rows, func(out []byte, i int) []byte {
			be := binary.BigEndian
			x := uint64(i)*2654435761 + 12345
			out = be.AppendUint16(out, 6)
			out = be.AppendUint64(be.AppendUint32(out, 8), uint64(i+1))
			out = be.AppendUint32(be.AppendUint32(out, 4), uint32(x%150000))
			out = be.AppendUint32(out, 14)
			for _, w := range []uint16{3, 1, 0, 2, uint16(x % 10), uint16(x>>4) % 10000, uint16(x>>3%100) * 100} {
				out = be.AppendUint16(out, w)
			}
			s := status[x>>7&3]
			out = append(be.AppendUint32(out, uint32(len(s))), s...)
			s = note[x>>9&15:]
			out = append(be.AppendUint32(out, uint32(len(s))), s...)
			return be.AppendUint64(be.AppendUint32(out, 8), 820454400000000+x%2592000000000%math.MaxInt32)
		})},
	} {
		k := kase{cols: six, opts: c.opts}
		schema := k.schema()
		o, err := ParseOptions(true, c.opts)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				d := NewDecoder(&cutReader{c.data, 32 << 10}, Config{Options: o, Relation: "t", Columns: schema})
				n := 0
				for {
					r, err := d.Next()
					if err != nil {
						b.Fatal(err)
					}
					if r == nil {
						break
					}
					n += r.N
				}
				if n != rows {
					b.Fatal(n, "rows")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
			b.ReportMetric(float64(len(c.data))/rows, "B/row")
		})
	}
}
