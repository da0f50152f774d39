package index

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/paimon-sql/paimon-sql/index/predicate"
)

// Finder gives the indexes of one data file.
type Finder interface {
	// Indexes returns the indexes over a leaf's column, cheapest first. empty says
	// that an index shows the column to hold no value that is not NULL.
	Indexes(l *predicate.Leaf) (ix []FileIndex, empty bool, err error)
}

// RowCounter is a FileIndex that knows of how many rows it speaks.
type RowCounter interface {
	RowCount() int64
}

// Eval says what the indexes of a file of rows rows (-1 = unknown) know about n.
// Whatever is missing (an index, an answer) makes the result weaker, never wrong:
// with verdict None no row matches, with All every row, and otherwise the rows
// that match are among Rows, if that is known. Rows is nil with None and All.
//
// AND intersects; it asks the cheapest index of each conjunct first and stops at
// the first that leaves nothing. OR unites, if every side is known. NOT moves
// inwards, where it becomes the opposite operation; where there is none it takes
// the complement of an exact result, which holds the NULL rows, too, and so is no
// longer exact.
//
// An error is damage of an index, or one of reading it: the caller may as well
// read the file without it.
func Eval(n predicate.Node, rows int64, f Finder) (Result, error) {
	e := evaluation{rows: rows, find: f}
	r, err := e.node(n)
	if err != nil {
		return Result{}, err
	}
	return e.settle(r), nil
}

type evaluation struct {
	rows int64
	find Finder
}

// settle makes the verdict follow from the rows.
func (e *evaluation) settle(r Result) Result {
	switch {
	case r.Verdict == None:
		return Result{Verdict: None}
	case r.Verdict == All:
		return Result{Verdict: All}
	case r.Rows == nil:
		return Result{}
	case r.Rows.IsEmpty():
		return Result{Verdict: None}
	case r.Exact && e.rows > 0 && int64(r.Rows.GetCardinality()) == e.rows:
		return Result{Verdict: All}
	}
	return r
}

func (e *evaluation) node(n predicate.Node) (Result, error) {
	switch n := n.(type) {
	case nil:
		return Result{Verdict: All}, nil
	case *predicate.Leaf:
		return e.conj([]predicate.Node{n})
	case *predicate.And:
		return e.conj(n.Args)
	case *predicate.Or:
		return e.disj(n.Args)
	case *predicate.Not:
		return e.not(n.Arg)
	}
	return Result{}, nil
}

// rank orders the conjuncts by what they are likely to cost and to leave.
func rank(n predicate.Node) int {
	l, ok := n.(*predicate.Leaf)
	if !ok {
		return 9
	}
	switch l.Op {
	case predicate.Eq:
		return 0
	case predicate.In:
		return 1
	case predicate.IsNull:
		return 2
	case predicate.StartsWith, predicate.Between:
		return 3
	case predicate.Lt, predicate.LtEq, predicate.Gt, predicate.GtEq:
		return 4
	}
	return 5 // complements
}

func (e *evaluation) conj(args []predicate.Node) (Result, error) {
	args = slices.Clone(args)
	slices.SortStableFunc(args, func(a, b predicate.Node) int { return rank(a) - rank(b) })
	both := meet{exact: true, all: true}

	// The leaves: the cheapest index of each, then the next one of each.
	type open struct {
		l    *predicate.Leaf
		ix   []FileIndex
		done bool // exact: no further index says more
		all  bool // true for every row
	}
	var leaves []*open
	for _, a := range args {
		l, ok := a.(*predicate.Leaf)
		if !ok {
			continue
		}
		ix, empty, err := e.find.Indexes(l)
		if err != nil {
			return Result{}, err
		}
		if empty && l.Op != predicate.IsNull {
			return Result{Verdict: None}, nil
		}
		o := &open{l: l, ix: ix}
		leaves = append(leaves, o)
		if len(ix) > 0 {
			if none, err := e.ask(o.l, ix[0], &both, &o.done, &o.all); none || err != nil {
				return Result{Verdict: None}, err
			}
		}
	}
	for round := 1; ; round++ {
		more := false
		for _, o := range leaves {
			if o.done || round >= len(o.ix) {
				continue
			}
			more = true
			if none, err := e.ask(o.l, o.ix[round], &both, &o.done, &o.all); none || err != nil {
				return Result{Verdict: None}, err
			}
		}
		if !more {
			break
		}
	}
	for _, o := range leaves {
		both.exact = both.exact && o.done
		both.all = both.all && o.all
	}
	for _, a := range args {
		if _, ok := a.(*predicate.Leaf); ok {
			continue
		}
		r, err := e.node(a)
		if err != nil {
			return Result{}, err
		}
		if r = e.settle(r); r.Verdict == None {
			return r, nil
		}
		if r.Verdict == All {
			continue
		}
		both.all = false
		both.exact = both.exact && r.Rows != nil && r.Exact
		if both.take(r.Rows) {
			return Result{Verdict: None}, nil
		}
	}
	switch {
	case both.all:
		return Result{Verdict: All}, nil
	case both.rows == nil:
		return Result{}, nil
	}
	return Result{Rows: both.rows, Exact: both.exact}, nil
}

// meet is the intersection of what is known so far.
type meet struct {
	rows  *roaring.Bitmap
	own   bool // rows may be changed
	exact bool
	all   bool
}

// take intersects; true = nothing is left.
func (m *meet) take(rows *roaring.Bitmap) bool {
	switch {
	case rows == nil:
	case m.rows == nil:
		m.rows = rows
	case m.own:
		m.rows.And(rows)
	default:
		m.rows, m.own = roaring.And(m.rows, rows), true
	}
	return m.rows != nil && m.rows.IsEmpty()
}

// ask tests one index and takes its answer in; none = no row is left.
func (e *evaluation) ask(l *predicate.Leaf, x FileIndex, both *meet, done, all *bool) (none bool, err error) {
	if c, ok := x.(RowCounter); ok && e.rows >= 0 && c.RowCount() != e.rows {
		return false, Corrupt("index over column %q is of %d rows, its file has %d", l.Name, c.RowCount(), e.rows)
	}
	r, err := x.Test(l)
	if err != nil {
		return false, err
	}
	if r.Rows != nil && e.rows >= 0 && !r.Rows.IsEmpty() && int64(r.Rows.Maximum()) >= e.rows {
		return false, Corrupt("index over column %q knows row %d, its file has %d", l.Name, r.Rows.Maximum(), e.rows)
	}
	switch r = e.settle(r); r.Verdict {
	case None:
		return true, nil
	case All:
		*done, *all = true, true
		return false, nil
	}
	*done = *done || r.Rows != nil && r.Exact
	return both.take(r.Rows), nil
}

func (e *evaluation) disj(args []predicate.Node) (Result, error) {
	out, own := Result{Verdict: None, Exact: true}, false
	unknown := false
	for _, a := range args {
		r, err := e.node(a)
		if err != nil {
			return Result{}, err
		}
		switch r = e.settle(r); {
		case r.Verdict == All:
			return r, nil
		case r.Verdict == None:
		case r.Rows == nil:
			// A later side may still be true for every row.
			unknown = true
		case unknown:
		case out.Rows == nil:
			out = Result{Rows: r.Rows, Exact: r.Exact}
		default:
			if own {
				out.Rows.Or(r.Rows)
			} else {
				out.Rows, own = roaring.Or(out.Rows, r.Rows), true
			}
			out.Exact = out.Exact && r.Exact
		}
	}
	if unknown {
		return Result{}, nil
	}
	return out, nil
}

// opposite holds the operations that are true for a value exactly when the key is
// false; NULL makes both fail.
var opposite = map[predicate.Op]predicate.Op{
	predicate.Eq: predicate.NotEq, predicate.NotEq: predicate.Eq,
	predicate.Lt: predicate.GtEq, predicate.GtEq: predicate.Lt,
	predicate.Gt: predicate.LtEq, predicate.LtEq: predicate.Gt,
	predicate.In: predicate.NotIn, predicate.NotIn: predicate.In,
	predicate.IsNull: predicate.IsNotNull, predicate.IsNotNull: predicate.IsNull,
}

func (e *evaluation) not(n predicate.Node) (Result, error) {
	switch n := n.(type) {
	case *predicate.Not:
		return e.node(n.Arg)
	case *predicate.And:
		return e.disj(negated(n.Args))
	case *predicate.Or:
		return e.conj(negated(n.Args))
	case *predicate.Leaf:
		if op, ok := opposite[n.Op]; ok {
			c := *n
			c.Op = op
			return e.node(&c)
		}
		if n.Op == predicate.Between && len(n.Args) == 2 {
			lo, hi := *n, *n
			lo.Op, lo.Args = predicate.Lt, n.Args[:1]
			hi.Op, hi.Args = predicate.Gt, n.Args[1:]
			return e.disj([]predicate.Node{&lo, &hi})
		}
		r, err := e.node(n)
		if err != nil {
			return Result{}, err
		}
		switch r = e.settle(r); {
		case r.Verdict == All:
			return Result{Verdict: None}, nil
		case r.Verdict == Some && r.Rows != nil && r.Exact && e.rows >= 0:
			return Result{Rows: Complement(r.Rows, e.rows)}, nil
		}
	}
	return Result{}, nil
}

// Complement returns the rows of a file of n rows that are not in b. Taking them
// out of one run keeps runs; flipping makes bitmaps of all containers.
func Complement(b *roaring.Bitmap, n int64) *roaring.Bitmap {
	all := roaring.New()
	all.AddRange(0, uint64(max(n, 0)))
	all.AndNot(b)
	return all
}

func negated(args []predicate.Node) []predicate.Node {
	out := make([]predicate.Node, len(args))
	for i, a := range args {
		out[i] = &predicate.Not{Arg: a}
	}
	return out
}
