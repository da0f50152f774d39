package predicate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

func TestEvalTraps(t *testing.T) {
	text, i4, f8, char := types.Of(types.Text), types.Of(types.Int4), types.Of(types.Float8), types.Type{Kind: types.BpChar, Len: 4}
	st := func(lo, hi types.Datum, nulls int64) ColumnStats {
		return ColumnStats{Min: lo, Max: hi, NullCount: nulls, Rows: 10}
	}
	for _, c := range []struct {
		what string
		t    types.Type
		op   Op
		args []types.Datum
		s    ColumnStats
		want Verdict
	}{
		{"inside", i4, Eq, []types.Datum{int64(5)}, st(int64(1), int64(9), 0), Some},
		{"outside", i4, Eq, []types.Datum{int64(10)}, st(int64(1), int64(9), 0), None},
		{"all", i4, Gt, []types.Datum{int64(0)}, st(int64(1), int64(9), 0), All},
		{"all but a NULL", i4, Gt, []types.Datum{int64(0)}, st(int64(1), int64(9), 1), Some},
		{"unknown nulls", i4, Gt, []types.Datum{int64(0)}, st(int64(1), int64(9), -1), Some},
		{"all NULL", i4, Gt, []types.Datum{int64(0)}, st(nil, nil, 10), None},
		{"all NULL is null", i4, IsNull, nil, st(nil, nil, 10), All},
		{"no NULL", i4, IsNull, nil, st(nil, nil, 0), None},
		{"unknown bounds", i4, Eq, []types.Datum{int64(5)}, st(nil, nil, 3), Some},
		{"only one value", i4, NotEq, []types.Datum{int64(5)}, st(int64(5), int64(5), 3), None},
		{"cut strings", text, Gt, []types.Datum{"Whether I shall turn"}, st("A", "Whether I shall!", 0), Some},
		{"prefix above", text, StartsWith, []types.Datum{"a"}, st("b", "c", 0), None},
		{"prefix of min", text, StartsWith, []types.Datum{"ab"}, st("abc", "abd", 0), Some},
		{"prefix below", text, StartsWith, []types.Datum{"z"}, st("abc", "abd", 0), None},
		{"between", i4, Between, []types.Datum{int64(10), int64(20)}, st(int64(1), int64(9), 0), None},
		{"in", i4, In, []types.Datum{int64(0), int64(10)}, st(int64(1), int64(9), 0), None},
		{"in gap", i4, In, []types.Datum{int64(0), int64(5)}, st(int64(1), int64(9), 0), Some},
		{"not in", i4, NotIn, []types.Datum{int64(5)}, st(int64(5), int64(5), 0), None},
		// NaN hides above the maximum.
		{"float above max", f8, Gt, []types.Datum{100.0}, st(1.0, 9.0, 0), Some},
		{"float below min", f8, Lt, []types.Datum{0.5}, st(1.0, 9.0, 0), None},
		{"float eq", f8, Eq, []types.Datum{10.0}, st(1.0, 9.0, 0), None},
		{"float eq NaN", f8, Eq, []types.Datum{math.NaN()}, st(1.0, 9.0, 0), Some},
		{"minus zero", f8, Eq, []types.Datum{0.0}, st(math.Copysign(0, -1), math.Copysign(0, -1), 0), Some},
		// CHAR: blanks do not count, stored padded or not.
		{"char padded", char, Eq, []types.Datum{"ab"}, st("ab  ", "ab  ", 0), Some},
		{"char bare", char, Eq, []types.Datum{"ab  "}, st("ab", "ab", 0), Some},
		{"char other", char, Eq, []types.Datum{"ac"}, st("ab  ", "ab  ", 0), None},
		{"char range", char, Gt, []types.Datum{"zz"}, st("ab  ", "ab  ", 0), Some},
		// Another Datum than the column's: nothing is known.
		{"wrong constant", i4, Eq, []types.Datum{"5"}, st(int64(1), int64(9), 0), Some},
		{"single", char, Eq, []types.Datum{"ab"}, ColumnStats{Min: "ab  ", Max: "ab  ", Rows: 1, Single: true}, All},
		{"single NULL", i4, Eq, []types.Datum{int64(1)}, One(nil), None},
	} {
		got := Eval(&Leaf{Op: c.op, Type: c.t, Args: c.args}, SourceFunc(func(*Leaf) (ColumnStats, bool) { return c.s, true }))
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// TestSimplify: random trees mean the same after, and verdicts are never wrong.
func TestSimplify(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 9))
	var node func(d int) Node
	node = func(d int) Node {
		if d > 0 {
			switch r.IntN(4) {
			case 0:
				return &And{[]Node{node(d - 1), node(d - 1)}}
			case 1:
				return &Or{[]Node{node(d - 1), node(d - 1)}}
			case 2:
				return &Not{node(d - 1)}
			}
		}
		l := &Leaf{Op: Op(r.IntN(12)), Col: r.IntN(2), Type: types.Of(types.Int4)}
		for range []int{1, 1, 1, 1, 1, 1, 3, 3, 0, 0, 0, 2}[l.Op] {
			l.Args = append(l.Args, r.Int64N(6))
		}
		if l.Op == StartsWith {
			l.Op, l.Args = Eq, []types.Datum{int64(1)}
		}
		return l
	}
	var eval func(n Node, row [2]types.Datum) int
	eval = func(n Node, row [2]types.Datum) int {
		switch n := n.(type) {
		case *Leaf:
			d := row[n.Col]
			switch {
			case n.Op == IsNull:
				return b2i(d == nil)
			case n.Op == IsNotNull:
				return b2i(d != nil)
			case d == nil:
				return -1
			}
			m, _ := Matches(n, d)
			return b2i(m)
		case *And:
			out := 1
			for _, a := range n.Args {
				if v := eval(a, row); v == 0 || v < 0 && out == 1 {
					out = v
				}
				if out == 0 {
					return 0
				}
			}
			return out
		case *Or:
			out := 0
			for _, a := range n.Args {
				if v := eval(a, row); v == 1 {
					return 1
				} else if v < 0 {
					out = -1
				}
			}
			return out
		case *Not:
			if v := eval(n.Arg, row); v >= 0 {
				return 1 - v
			}
			return -1
		}
		return 1
	}
	for range 20000 {
		n := node(3)
		s := Simplify(n)
		var rows [][2]types.Datum
		var st [2]ColumnStats
		for c := range st {
			st[c].Rows = int64(1 + r.IntN(4))
			st[c].Rows = 3
		}
		for range 3 {
			var row [2]types.Datum
			for c := range row {
				if r.IntN(4) == 0 {
					st[c].NullCount++
					continue
				}
				v := r.Int64N(6)
				row[c] = v
				if st[c].Min == nil || v < st[c].Min.(int64) {
					st[c].Min = v
				}
				if st[c].Max == nil || v > st[c].Max.(int64) {
					st[c].Max = v
				}
			}
			rows = append(rows, row)
		}
		verdict := Eval(s, SourceFunc(func(l *Leaf) (ColumnStats, bool) { return st[l.Col], true }))
		for _, row := range rows {
			want := eval(n, row) == 1
			if got := eval(s, row) == 1; got != want {
				t.Fatalf("%#v simplified differs on %v", n, row)
			}
			if verdict == None && want || verdict == All && !want {
				t.Fatalf("verdict %s, but row %v gives %v", verdict, row, want)
			}
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
