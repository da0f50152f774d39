package catalog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/pgtext"
)

// TestSpelledUUIDs: a set of uuids meets every pair of bounds that one of their texts, in
// whichever spelling, lies within.
func TestSpelledUUIDs(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	spell := func(u []byte) string {
		var b strings.Builder
		brace := r.IntN(8) == 0
		if brace {
			b.WriteByte('{')
		}
		for i, c := range fmt.Sprintf("%x", u) {
			if i > 0 && i%4 == 0 && r.IntN(2) == 0 {
				b.WriteByte('-')
			}
			s := string(c)
			if r.IntN(2) == 0 {
				s = strings.ToUpper(s)
			}
			b.WriteString(s)
		}
		if brace {
			b.WriteByte('}')
		}
		return b.String()
	}
	draw := func() []byte {
		u := bytes.Repeat([]byte{0x0a}, 16)
		for i := range 16 {
			if r.IntN(3) == 0 {
				u[i] = byte(r.IntN(256))
			}
		}
		return u
	}
	near := func(s string) string { // a bound that shares a prefix, or anything
		b := []byte(s[:r.IntN(len(s)+1)])
		for range r.IntN(4) {
			b = append(b, "09afAF-{ zG:"[r.IntN(12)])
		}
		return string(b)
	}
	ruledOut := 0
	for range 200_000 {
		var list uuidList
		for range 1 + r.IntN(3) {
			list = append(list, draw())
		}
		text := spell(list[r.IntN(len(list))])
		if _, err := pgtext.ParseUUID(text); err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(list, bytes.Compare)
		lo, hi := near(text), near(text)
		if r.IntN(4) == 0 {
			lo = spell(draw())
		}
		if r.IntN(4) == 0 {
			hi = spell(draw())
		}
		meets := spelled{list}.Intersects(lo, hi)
		if !meets {
			ruledOut++
		}
		if lo <= text && text <= hi && !meets {
			t.Fatalf("%q lies within [%q, %q] and is ruled out", text, lo, hi)
		}
	}
	if ruledOut == 0 {
		t.Error("nothing is ruled out")
	}
}
