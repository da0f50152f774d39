package mergetree

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// TestKeyBytes takes keys to their byte form and back, and finds them in windows.
func TestKeyBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 8))
	of := types.Of
	for _, ts := range [][]types.Type{
		{of(types.Int8)}, {of(types.Int4), of(types.Int2)}, {of(types.Text)}, {of(types.Text), of(types.Int8)}, {of(types.TinyInt), of(types.Text), of(types.Text)},
		{of(types.Timestamp), of(types.Date), of(types.Int8)},
	} {
		c := NewKeyCodec(ts)
		for range 20 {
			n := 1 + r.IntN(60)
			set := map[string][]types.Datum{}
			for range n {
				var k []types.Datum
				for _, ty := range ts {
					switch ty.Kind {
					case types.Text:
						k = append(k, strings.Repeat("a\x00", r.IntN(3))+string(rune('a'+r.IntN(3))))
					default:
						k = append(k, r.Int64N(200)-100)
					}
				}
				set[string(c.Append(nil, k))] = k
			}
			var forms []string
			for f := range set {
				forms = append(forms, f)
			}
			slices.Sort(forms)
			cols := make([]arrow.Array, len(ts))
			for i := range ts {
				var vals []types.Datum
				for _, f := range forms {
					vals = append(vals, set[f][i])
				}
				cols[i] = vec.FromDatums(ts[i], vals)
			}
			var k Keys
			c.Fill(&k, cols, len(forms))
			for i, f := range forms {
				if got := string(c.AppendKey(nil, &k, i)); got != f {
					t.Fatalf("%v: key %d is %x, not %x", ts, i, got, f)
				}
				if got := c.Values([]byte(f)); !reflect.DeepEqual(got, set[f]) {
					t.Fatalf("%v: values %v, not %v", ts, got, set[f])
				}
				if at, ok := c.Search(&k, r.IntN(i+1), len(forms), NewBound([]byte(f))); !ok || at != i {
					t.Fatalf("%v: key %d found at %d, %v", ts, i, at, ok)
				}
				next := append([]byte(f), 0)
				if c.Form() == WordAndBytes {
					if at, ok := c.Search(&k, 0, len(forms), NewBound(next)); ok || at != i+1 {
						t.Fatalf("%v: after key %d comes %d, %v", ts, i, at, ok)
					}
				}
			}
			if at, ok := c.Search(&k, len(forms), len(forms), NewBound([]byte(forms[0]))); ok || at != len(forms) {
				t.Fatalf("search at the end: %d, %v", at, ok)
			}
			for _, f := range forms { // damaged forms are nil, not a panic
				c.Values([]byte(f)[:r.IntN(len(f)+1)])
			}
		}
	}
}
