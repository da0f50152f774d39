package function

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// TestLikeScan compares the search over a whole column, the compiled pattern and
// the matcher that goes character by character.
func TestLikeScan(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	word := func(alphabet []string, n int) string {
		var b strings.Builder
		for range r.IntN(n) {
			b.WriteString(alphabet[r.IntN(len(alphabet))])
		}
		return b.String()
	}
	scanned := 0
	for range 3000 {
		pat := word([]string{"a", "b", "ab", "é", "%", "%", "_", "\\%", "ba"}, 7)
		lp := compileLike([]byte(pat), false)
		ds := make([]types.Datum, 40)
		for i := range ds {
			ds[i] = word([]string{"a", "b", "é", "%", "ab"}, 9)
		}
		a := vec.FromDatums(tText, ds)
		out := make([]uint8, len(ds))
		ok := lp.scan(a, out, false)
		if ok {
			scanned++
		}
		for i, d := range ds {
			want, err := slowLike([]byte(d.(string)), []byte(pat))
			if err != nil {
				t.Fatal(err)
			}
			if got := lp.match([]byte(d.(string))); got != want {
				t.Fatalf("%q LIKE %q: compiled %v, slow %v", d, pat, got, want)
			}
			if ok && (out[i] == 1) != want {
				t.Fatalf("%q LIKE %q: scanned %d, slow %v", d, pat, out[i], want)
			}
		}
	}
	if scanned < 300 {
		t.Errorf("only %d patterns were scanned", scanned)
	}
}

// TestDictionaries runs kernels over a dictionary column and over its plain form.
func TestDictionaries(t *testing.T) {
	dict := vec.FromDatums(tText, []types.Datum{"apple", "Banana", "cherry pie", ""})
	idx := []int32{0, 1, 2, 3, 0, 1, 99, 2}
	valid := vec.FullBitmap(len(idx))
	vec.ClearBit(valid, 6) // its index is garbage
	d := vec.MakeDict(idx, valid, dict)
	p := vec.Decode(d)
	k := func(s string) vec.Vec { return vec.Vec{Arr: vec.FromDatums(tText, []types.Datum{s}), Const: true} }
	for _, c := range []struct {
		o    *Overload
		rest []vec.Vec
	}{
		{find(LookupOperator("=", false), []types.Type{tText, tText}), []vec.Vec{k("Banana")}},
		{find(LookupOperator("~~", false), []types.Type{tText, tText}), []vec.Vec{k("%an%")}},
		{find(LookupOperator("~*", false), []types.Type{tText, tText}), []vec.Vec{k("^b")}},
		{find(Lookup("upper"), []types.Type{tText}), nil},
		{find(Lookup("length"), []types.Type{tText}), nil},
		{find(Lookup("replace"), []types.Type{tText, tText, tText}), []vec.Vec{k("a"), k("oo")}},
	} {
		var ts []types.Type
		for range len(c.rest) + 1 {
			ts = append(ts, tText)
		}
		run := func(first vec.Vec) []types.Datum {
			call := &Call{N: len(idx), ArgTypes: ts, Ret: c.o.Ret, State: new(any)}
			a, err := c.o.Kernel(call, append([]vec.Vec{first}, c.rest...))
			if err != nil {
				t.Fatal(err)
			}
			out := make([]types.Datum, a.Len())
			for i := range out {
				out[i] = vec.DatumAt(a, c.o.Ret, i)
			}
			return out
		}
		got, want := run(vec.Vec{Arr: d}), run(vec.Vec{Arr: p})
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s row %d: %v with a dictionary, %v without", c.o.Signature(), i, got[i], want[i])
			}
		}
	}
}

// TestSelections: a kernel that can fail looks only at selected, valid rows.
func TestSelections(t *testing.T) {
	i4 := types.Of(types.Int4)
	a := vec.FromDatums(i4, []types.Datum{int64(10), int64(20), nil, int64(2147483647)})
	b := vec.FromDatums(i4, []types.Datum{int64(2), int64(0), int64(0), int64(1)})
	for _, c := range []struct {
		op  string
		sel []uint16
		bad bool
	}{{"/", nil, true}, {"/", []uint16{0, 2, 3}, false}, {"+", nil, true}, {"+", []uint16{0, 1, 2}, false}, {"%", []uint16{1}, true}} {
		o := find(LookupOperator(c.op, false), []types.Type{i4, i4})
		call := &Call{N: 4, Sel: c.sel, ArgTypes: []types.Type{i4, i4}, Ret: o.Ret, State: new(any)}
		_, err := o.Kernel(call, []vec.Vec{{Arr: a}, {Arr: b}})
		if (err != nil) != c.bad {
			t.Errorf("%s with %v: %v", c.op, c.sel, err)
		}
	}
}
