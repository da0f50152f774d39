package numeric

import (
	"bytes"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
)

func dec(t testing.TB, s string) *Dec {
	t.Helper()
	d, err := Parse(s)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return d
}

func TestParseText(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"1.50", "1.50"}, {" -0.00 ", "0.00"}, {"1e5", "100000"}, {"1.50e-3", "0.00150"}, {".5", "0.5"}, {"5.", "5"},
		{"-123456789012345678901234567890.5", "-123456789012345678901234567890.5"}, {"nan", "NaN"}, {"-INF", "-Infinity"}, {"+infinity", "Infinity"},
	} {
		if got := dec(t, c.in).String(); got != c.want {
			t.Errorf("%q prints %q, want %q", c.in, got, c.want)
		}
	}
	for _, s := range []string{"", "-", ".", "1e", "1.2.3", "0x10", "1_0", "-nan", "e5", "1 2"} {
		if d, err := Parse(s); err == nil {
			t.Errorf("%q reads as %s", s, d)
		}
	}
}

func TestDivision(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"1", "3", "0.33333333333333333333"}, {"10", "4", "2.5000000000000000"}, {"-7.5", "2", "-3.7500000000000000"},
		{"1", "10000", "0.000100000000000000000000"}, {"123456789", "0.0001", "1234567890000.00000000"}, {"0", "5", "0.00000000000000000000"},
	} {
		q, err := Div(dec(t, c.a), dec(t, c.b))
		if err != nil || q.String() != c.want {
			t.Errorf("%s / %s = %s, %v; want %s", c.a, c.b, q, err, c.want)
		}
	}
}

// TestAppendQuotient compares the 128-bit way with the general one.
func TestAppendQuotient(t *testing.T) {
	r := rand.New(rand.NewPCG(random.Seed(t), 1))
	fast := 0
	for range 200000 {
		a, b := r.Int64()>>r.IntN(63), r.Int64()>>r.IntN(63)
		if r.IntN(2) == 0 {
			a = -a
		}
		if r.IntN(2) == 0 {
			b = -b
		}
		sa, sb := int32(r.IntN(12)), int32(r.IntN(12))
		got, ok := AppendQuotient(nil, a, sa, b, sb)
		if !ok {
			continue
		}
		fast++
		x, y := FromInt64(a), FromInt64(b)
		x.Scale, y.Scale = sa, sb
		q, err := Div(x, y)
		if err != nil {
			t.Fatal(err)
		}
		if want := AppendEncoded(nil, q); !bytes.Equal(got, want) {
			t.Fatalf("%s / %s = %s, want %s", x, y, Decode(got), q)
		}
	}
	if fast < 100000 {
		t.Errorf("only %d of 200000 went the fast way", fast)
	}
}

func TestEncoding(t *testing.T) {
	for _, v := range []int64{-128, -129, -1 << 15, -1 << 31, -1 << 63, 127, 128} {
		if x, b := AppendInt64(nil, v, 3), AppendEncoded(nil, &Dec{Scale: 3, Coef: *big.NewInt(v)}); !bytes.Equal(x, b) {
			t.Errorf("AppendInt64(%d) = %x, want %x", v, x, b)
		}
	}
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 2))
	for range 20000 {
		d := &Dec{Scale: int32(r.IntN(50))}
		d.Coef.SetUint64(r.Uint64() >> r.IntN(64))
		for range r.IntN(4) {
			d.Coef.Mul(&d.Coef, new(big.Int).SetUint64(r.Uint64()))
		}
		if r.IntN(2) == 0 {
			d.Coef.Neg(&d.Coef)
		}
		b := AppendEncoded(nil, d)
		if e := Decode(b); e.Scale != d.Scale || e.Coef.Cmp(&d.Coef) != 0 {
			t.Fatalf("%s reads back as %s", d, e)
		}
		if d.Coef.IsInt64() {
			if x := AppendInt64(nil, d.Coef.Int64(), d.Scale); !bytes.Equal(x, b) {
				t.Fatalf("AppendInt64(%s) = %x, want %x", d, x, b)
			}
		}
		if n, ok := d.To128(d.Scale); ok {
			if got := string(Append128(nil, n, int(d.Scale))); got != d.String() {
				t.Fatalf("Append128 prints %s, want %s", got, d)
			}
		}
	}
}

func TestAppend128Limits(t *testing.T) {
	for _, s := range []string{"9223372036854775807", "9223372036854775808", "9999999999999999999", "10000000000000000000", "99999999999999999999999999999999999999", "-9223372036854775809"} {
		n, ok := dec(t, s).To128(0)
		if !ok {
			t.Fatal(s)
		}
		if got := string(Append128(nil, n, 0)); got != s {
			t.Errorf("%s prints as %s", s, got)
		}
	}
	if _, ok := dec(t, "100000000000000000000000000000000000000").To128(0); ok {
		t.Error("39 digits fit 38")
	}
	_ = decimal128.Num{}
}

func TestFunctions(t *testing.T) {
	one := func(f func(*Dec) (*Dec, error), in, want string) {
		t.Helper()
		d, err := f(dec(t, in))
		if err != nil || d.String() != want {
			t.Errorf("of %s: %v, %v; want %s", in, d, err, want)
		}
	}
	one(Sqrt, "2", "1.414213562373095")
	one(Sqrt, "0.0001", "0.01000000000000000")
	one(Exp, "1", "2.7182818284590452")
	one(Exp, "-10", "0.00004539992976248485")
	one(Ln, "2", "0.6931471805599453")
	one(Ln, "0.999", "-0.0010005003335835335")
	for _, c := range []struct{ b, e, want string }{
		{"2", "10", "1024.0000000000000000"}, {"2", "0.5", "1.4142135623730950"}, {"10", "-3", "0.0010000000000000"}, {"-2", "3", "-8.0000000000000000"},
		{"1e10", "1.1", "100000000000.000000"},
	} {
		p, err := Power(dec(t, c.b), dec(t, c.e))
		if err != nil || p.String() != c.want {
			t.Errorf("%s ^ %s = %v, %v; want %s", c.b, c.e, p, err, c.want)
		}
	}
	if f := dec(t, "0.1").Float64(); f != 0.1 {
		t.Errorf("0.1 is %g", f)
	}
	if f := dec(t, "1e400").Float64(); !math.IsInf(f, 1) {
		t.Errorf("1e400 is %g", f)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"1.5", "-1e-5", "NaN", "1e1000", "  12  "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := Parse(s)
		if err != nil {
			return
		}
		e, err := Parse(d.String())
		if err != nil || e.Form != d.Form || e.Scale != d.Scale || e.Coef.Cmp(&d.Coef) != 0 {
			t.Fatalf("%q prints %q, which reads as %v, %v", s, d, e, err)
		}
	})
}
