package aggregate

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// FuzzListagg compares with joining texts one by one.
func FuzzListagg(f *testing.F) {
	f.Add("a", "b,c", "c,d", ",", true, uint8(0))
	f.Add("", "x--x", "\u2003", "--", true, uint8(5))
	f.Add("xxx", "axxb", "axxb", "xx", true, uint8(0))
	f.Add("a", "b", "b", "", true, uint8(0))
	f.Add(" ", "a\xff", "\xf0", "", false, uint8(2))
	f.Fuzz(func(t *testing.T, a, b, c, delimiter string, distinct bool, how uint8) {
		texts := []string{a, b, c}
		var ops []Op
		var ds []types.Datum
		for i, s := range texts {
			ops = append(ops, []Op{Add, AddReversed, Set, Skip}[how>>(2*i)&3])
			ds = append(ds, s)
		}
		o := map[string]string{"fields.v.list-agg-delimiter": delimiter}
		if distinct {
			o["fields.v.distinct"] = "true"
		}
		text := types.Of(types.Text)
		agg, err := New("listagg", Spec{Column: types.Field{Name: "v", Type: text}, Options: o})
		if err != nil {
			t.Fatal(err)
		}
		got, err := agg.Fold(&Input{Col: vec.FromDatums(text, ds), Ends: []uint32{3}, Ops: ops})
		if err != nil {
			t.Fatal(err)
		}
		var want *string
		for i, op := range ops {
			switch s := texts[i]; op {
			case Add:
				want = joined(want, &s, delimiter, distinct)
			case AddReversed:
				want = joined(&s, want, delimiter, distinct)
			case Set:
				want = &s
			}
		}
		if d := vec.DatumAt(got, text, 0); (d == nil) != (want == nil) || want != nil && d.(string) != *want {
			t.Errorf("got %q, want %v", d, want)
		}
	})
}

func blankText(s *string) bool {
	return s == nil || strings.TrimFunc(*s, func(r rune) bool {
		return r != 0x85 && r != 0xa0 && r != 0x2007 && r != 0x202f && unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f
	}) == ""
}

func joined(acc, x *string, delimiter string, distinct bool) *string {
	switch {
	case blankText(x):
		return acc
	case blankText(acc):
		return x
	}
	out := *acc
	if !distinct {
		out += delimiter + *x
		return &out
	}
	split := delimiter
	if split == "" {
		split = " "
	}
	have := strings.Split(*acc, split)
	for _, item := range strings.Split(*x, split) {
		if !blankText(&item) && !slices.Contains(have, item) {
			have = append(have, item)
			out += delimiter + item
		}
	}
	return &out
}
