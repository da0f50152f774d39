package index_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/bitmap"
	"github.com/paimon-sql/paimon-sql/index/bloom"
	"github.com/paimon-sql/paimon-sql/index/indextest"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// column is one column of a random file.
type column struct {
	data  []types.Datum
	ix    []index.FileIndex
	empty bool
}

type finder []column

func (f finder) Indexes(l *predicate.Leaf) ([]index.FileIndex, bool, error) {
	return f[l.Col].ix, f[l.Col].empty, nil
}

// guess is an index that knows the truth and tells as much of it as it likes.
type guess struct {
	t    *testing.T
	r    *rand.Rand
	data []types.Datum
}

func (g guess) Test(l *predicate.Leaf) (index.Result, error) {
	exact := roaring.New()
	for i, d := range g.data {
		if indextest.Matches(g.t, l, d) {
			exact.Add(uint32(i))
		}
	}
	switch n := int(exact.GetCardinality()); g.r.IntN(4) {
	case 0:
		return index.Result{}, nil
	case 1:
		if n == 0 {
			return index.Result{Verdict: index.None}, nil
		}
		if n == len(g.data) {
			return index.Result{Verdict: index.All}, nil
		}
	case 2:
		for range 3 {
			exact.Add(uint32(g.r.IntN(len(g.data))))
		}
		return index.Result{Rows: exact}, nil
	}
	return index.Result{Rows: exact, Exact: true}, nil
}

// truth evaluates by SQL's three values: 1, 0, -1 for NULL.
func truth(t *testing.T, n predicate.Node, f finder, row int) int {
	b := func(x bool) int {
		if x {
			return 1
		}
		return 0
	}
	switch n := n.(type) {
	case *predicate.Leaf:
		d := f[n.Col].data[row]
		if d == nil && n.Op != predicate.IsNull && n.Op != predicate.IsNotNull {
			return -1
		}
		return b(indextest.Matches(t, n, d))
	case *predicate.Not:
		if v := truth(t, n.Arg, f, row); v >= 0 {
			return 1 - v
		}
		return -1
	case *predicate.And:
		out := 1
		for _, a := range n.Args {
			if v := truth(t, a, f, row); v == 0 || v < 0 && out != 0 {
				out = v
			}
		}
		return out
	case *predicate.Or:
		out := 0
		for _, a := range n.Args {
			if v := truth(t, a, f, row); v == 1 || v < 0 && out != 1 {
				out = v
			}
		}
		return out
	}
	return 1
}

// TestEval: random trees over columns with real indexes, with some that know more
// or less of the truth, and with none.
func TestEval(t *testing.T) {
	r := indextest.Rand(t)
	verdicts, exact, rowsKnown := [3]int{}, 0, 0
	for range 1500 {
		rows := 1 + r.IntN(40)
		var f finder
		var typs []types.Type
		for range 3 {
			typ := indextest.Types[r.IntN(len(indextest.Types))]
			arr, data := indextest.Column(r, typ, rows)
			c := column{data: data}
			for _, k := range []index.Kind{bloom.Kind, bitmap.Kind} {
				if !k.Supports(typ) || r.IntN(3) == 0 {
					continue
				}
				o := index.Options{}
				if k == bloom.Kind {
					o["items"] = "30"
				}
				b, err := k.Create(typ, o)
				if err != nil {
					t.Fatal(err)
				}
				if err := b.Append(arr); err != nil {
					t.Fatal(err)
				}
				raw, err := b.Finish()
				if err != nil {
					t.Fatal(err)
				}
				x, err := k.Open(index.BytesSource(raw), typ)
				if err != nil {
					t.Fatal(err)
				}
				c.ix = append(c.ix, x)
			}
			if r.IntN(2) == 0 {
				c.ix = append(c.ix, guess{t, r, data})
			}
			if !slices.ContainsFunc(data, func(d types.Datum) bool { return d != nil }) && r.IntN(2) == 0 {
				c.ix, c.empty = nil, true
			}
			f, typs = append(f, c), append(typs, typ)
		}
		var node func(d int) predicate.Node
		node = func(d int) predicate.Node {
			if d > 0 {
				var args []predicate.Node
				for range r.IntN(4) {
					args = append(args, node(d-1))
				}
				switch r.IntN(5) {
				case 0:
					return &predicate.And{Args: args}
				case 1:
					return &predicate.Or{Args: args}
				case 2:
					return &predicate.Not{Arg: node(d - 1)}
				}
			}
			if r.IntN(40) == 0 {
				return nil // true
			}
			c := r.IntN(3)
			l := indextest.Leaf(r, typs[c], f[c].data)
			l.Col = c
			return l
		}
		for range 8 {
			n := node(3)
			res, err := index.Eval(n, int64(rows), f)
			if err != nil {
				t.Fatal(err)
			}
			verdicts[res.Verdict]++
			if res.Exact {
				exact++
			}
			if res.Rows != nil {
				rowsKnown++
				if res.Verdict != index.Some || res.Rows.IsEmpty() {
					t.Fatalf("verdict %s beside rows %v", res.Verdict, res.Rows)
				}
			}
			for row := range rows {
				m := truth(t, n, f, row) == 1
				in := res.Rows != nil && res.Rows.Contains(uint32(row))
				if m && res.Verdict == index.None || !m && res.Verdict == index.All ||
					res.Rows != nil && m && !in || res.Exact && !m && in {
					t.Fatalf("%s: row %d matches: %t; verdict %s, rows %v, exact %t", show(n), row, m, res.Verdict, res.Rows, res.Exact)
				}
			}
		}
	}
	t.Logf("some %d (rows of %d, exact %d), none %d, all %d", verdicts[0], rowsKnown, exact, verdicts[1], verdicts[2])
	if exact == 0 || rowsKnown == exact || verdicts[1] == 0 || verdicts[2] == 0 {
		t.Error("the test is blind to some answer")
	}
}

func show(n predicate.Node) string {
	list := func(name string, args []predicate.Node) string {
		out := name + "("
		for _, a := range args {
			out += show(a) + " "
		}
		return out + ")"
	}
	switch n := n.(type) {
	case *predicate.And:
		return list("and", n.Args)
	case *predicate.Or:
		return list("or", n.Args)
	case *predicate.Not:
		return "not " + show(n.Arg)
	case *predicate.Leaf:
		return string(rune('a'+n.Col)) + n.Type.PlainName() + [...]string{"=", "<>", "<", "<=", ">", ">=", "in", "notin", "null", "notnull", "starts", "between"}[n.Op]
	}
	return "true"
}

// fixed is an index that answers the same always, and counts.
type fixed struct {
	index.Result
	rows  int64
	asked int
	err   error
}

func (f *fixed) Test(*predicate.Leaf) (index.Result, error) { f.asked++; return f.Result, f.err }
func (f *fixed) RowCount() int64                            { return f.rows }

type byColumn [][]index.FileIndex

func (f byColumn) Indexes(l *predicate.Leaf) ([]index.FileIndex, bool, error) {
	return f[l.Col], false, nil
}

func TestEvalOrder(t *testing.T) {
	bits := func(rows ...uint32) index.Result { return index.Result{Rows: roaring.BitmapOf(rows...)} }
	leaf := func(col int) predicate.Node { return &predicate.Leaf{Op: predicate.Eq, Col: col} }
	none := &fixed{Result: index.Result{Verdict: index.None}, rows: 9}
	dear := &fixed{Result: bits(1, 2), rows: 9}
	some := &fixed{rows: 9}
	// The dear index of the first conjunct waits for the cheap one of the second.
	r, err := index.Eval(&predicate.And{Args: []predicate.Node{leaf(0), leaf(1)}}, 9, byColumn{{some, dear}, {none}})
	if r.Verdict != index.None || err != nil || dear.asked != 0 {
		t.Errorf("%v, %v, the dear index was asked %d times", r, err, dear.asked)
	}
	// Nothing in common.
	r, err = index.Eval(&predicate.And{Args: []predicate.Node{leaf(0), leaf(1)}}, 9, byColumn{{dear}, {&fixed{Result: bits(3), rows: 9}}})
	if r.Verdict != index.None || err != nil {
		t.Errorf("%v, %v", r, err)
	}
	if dear.Rows.GetCardinality() != 2 {
		t.Error("the rows of an index were changed")
	}
	// A side that nothing is known of.
	r, err = index.Eval(&predicate.Or{Args: []predicate.Node{leaf(0), leaf(1)}}, 9, byColumn{{dear}, {some}})
	if r.Verdict != index.Some || r.Rows != nil || err != nil {
		t.Errorf("%v, %v", r, err)
	}
	// An exact answer ends the questions.
	last := &fixed{rows: 9}
	exact := index.Result{Rows: roaring.BitmapOf(4), Exact: true}
	r, err = index.Eval(leaf(0), 9, byColumn{{&fixed{Result: exact, rows: 9}, last}})
	if !r.Exact || last.asked != 0 || err != nil {
		t.Errorf("%v, %v, asked %d", r, err, last.asked)
	}
	// Damage.
	for _, bad := range []*fixed{{rows: 8}, {Result: bits(9), rows: 9}, {rows: 9, err: index.Corrupt("x")}} {
		if _, err = index.Eval(leaf(0), 9, byColumn{{bad}}); !errors.Is(err, index.ErrCorrupt) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
