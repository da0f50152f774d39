package aggregate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// sample draws a value of t; floats are small integers, so that sums do not
// depend on the order of addition.
func sample(r *rand.Rand, t types.Type) types.Datum {
	if r.IntN(6) == 0 {
		return nil
	}
	switch t.Kind {
	case types.Bool:
		return r.IntN(2) == 0
	case types.Float4, types.Float8:
		return float64(r.IntN(100) - 50)
	case types.Numeric:
		d := numeric.FromInt64(int64(r.IntN(100000) - 50000))
		d.Scale = int32(t.Scale)
		if t.Prec == 0 {
			d.Scale = int32(r.IntN(5))
		}
		return d
	case types.Text, types.BpChar:
		return fmt.Sprint("s", r.IntN(50))
	case types.Bytea:
		return []byte{byte(r.IntN(256))}
	case types.Interval:
		b := make([]byte, 16)
		b[0], b[8] = byte(r.IntN(200)), byte(r.IntN(20))
		return b
	case types.TimeTZ:
		return make([]byte, 12)
	case types.Array:
		return []types.Datum{int64(r.IntN(5)), int64(r.IntN(5))}
	}
	return int64(r.IntN(1000))
}

func concrete(t types.Type) types.Type {
	switch t.Kind {
	case types.Any, types.AnyElement, types.AnyNonArray:
		return tInt4
	case types.AnyArray:
		return types.ArrayOf(tInt4)
	case types.Numeric:
		return types.DecimalOf(15, 2)
	}
	return t
}

// TestMergeAgreesWithOnePass splits random input at random and merges the parts,
// whole or group by group: the results must be those of one pass.
func TestMergeAgreesWithOnePass(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 7))
	for _, d := range All() {
		if d.Hypothetical {
			continue // tested over SQL: direct arguments come from the planner
		}
		t.Run(d.Name+fmt.Sprint(d.Args), func(t *testing.T) {
			var ts []types.Type
			c := &Call{Ctx: context.Background()}
			for i, a := range d.Args {
				ct := concrete(a)
				if i < d.DirectArgs {
					if ct.Kind == types.Array {
						c.Direct = append(c.Direct, []types.Datum{0.25, 0.75})
					} else {
						c.Direct = append(c.Direct, 0.5)
					}
					continue
				}
				ts = append(ts, ct)
			}
			c.ArgTypes = ts
			c.Ret = d.Ret
			if d.RetFn != nil {
				var all []types.Type
				for _, a := range d.Args {
					all = append(all, concrete(a))
				}
				c.Ret = d.RetFn(all)
			}
			const n, groups = 400, 7
			num := make([]uint32, n)
			cols := make([][]types.Datum, len(ts))
			for i := range num {
				num[i] = uint32(r.IntN(groups - 1)) // the last group stays empty
				for j, ct := range ts {
					v := sample(r, ct)
					for v == nil && j == 0 && strings.HasSuffix(d.Name, "object_agg") {
						v = sample(r, ct) // keys are never NULL
					}
					cols[j] = append(cols[j], v)
				}
			}
			feed := func(s State, from, to int) {
				t.Helper()
				if err := s.Grow(groups); err != nil {
					t.Fatal(err)
				}
				vs := make([]vec.Vec, len(ts))
				for j, ct := range ts {
					vs[j] = vec.Vec{Arr: vec.FromDatums(ct, cols[j][from:to])}
				}
				if to > from {
					// Once through a selection, once without: in two halves.
					mid := (to - from) / 2
					var sel []uint16
					for k := 0; k < mid; k++ {
						sel = append(sel, uint16(k))
					}
					if mid > 0 {
						if err := s.Update(num[from:from+mid], vs, sel); err != nil {
							t.Fatal(err)
						}
					}
					for j, ct := range ts {
						vs[j] = vec.Vec{Arr: vec.FromDatums(ct, cols[j][from+mid:to])}
					}
					if err := s.Update(num[from+mid:to], vs, nil); err != nil {
						t.Fatal(err)
					}
				}
			}
			text := func(s State) string {
				t.Helper()
				a, err := s.Result(0, groups)
				if err != nil {
					t.Fatal(err)
				}
				if a.Len() != groups {
					t.Fatalf("%d results", a.Len())
				}
				return fmt.Sprint(array.NewSlice(a, 0, int64(groups)))
			}
			whole := d.New(c)
			feed(whole, 0, n)
			want := text(whole)
			merged := d.New(c)
			feed(merged, 0, 0)
			cut := 0
			for cut < n {
				next := min(n, cut+1+r.IntN(200))
				p := d.New(c)
				feed(p, cut, next)
				to := make([]uint32, groups)
				for i := range to {
					to[i] = uint32(i)
				}
				var err error
				if pm, ok := merged.(PartMerger); ok && r.IntN(2) == 0 {
					err = pm.MergePart(p, to[:3], to[:3])
					if err == nil {
						err = pm.MergePart(p, to[3:], to[3:])
					}
				} else {
					err = merged.Merge(p, to)
				}
				if err != nil {
					t.Fatal(err)
				}
				cut = next
			}
			if got := text(merged); got != want && !floatAgg(d) {
				t.Errorf("merged %s\none pass %s", got, want)
			}
			if whole.Size() <= 0 {
				t.Error("a state with groups says it holds nothing")
			}
		})
	}
}

// floatAgg: results whose last digits depend on the order of additions.
func floatAgg(d *Def) bool {
	return d.Ret.Kind == types.Float8 && d.Name != "sum" && d.Name != "min" && d.Name != "max"
}

func TestSumOverflowsIntoBinaryForm(t *testing.T) {
	d := Lookup("sum")
	var def *Def
	for _, x := range d {
		if x.Args[0].Kind == types.Numeric {
			def = x
		}
	}
	at := types.DecimalOf(38, 0)
	c := &Call{Ctx: context.Background(), ArgTypes: []types.Type{at}, Ret: def.RetFn([]types.Type{at})}
	s := def.New(c)
	if err := s.Grow(1); err != nil {
		t.Fatal(err)
	}
	big, err := numeric.Parse("99999999999999999999999999999999999999")
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := s.Update([]uint32{0, 0}, []vec.Vec{{Arr: vec.FromDatums(at, []types.Datum{big, big})}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	a, err := s.Result(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := vec.DatumAt(a, tNumeric, 0).(*numeric.Dec).String(); got != "999999999999999999999999999999999999990" {
		t.Errorf("sum of ten is %s", got)
	}
}

func TestSignaturesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	oids := map[uint32]string{}
	for _, d := range All() {
		sig := fmt.Sprint(d.Name, d.Args)
		if seen[sig] {
			t.Errorf("%s twice", sig)
		}
		seen[sig] = true
		if o, ok := oids[d.OID]; ok {
			t.Errorf("%s and %s have OID %d", sig, o, d.OID)
		}
		oids[d.OID] = sig
		if d.Doc == "" {
			t.Errorf("%s has no sentence", sig)
		}
	}
}
