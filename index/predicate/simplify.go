package predicate

// opposite holds the operations that are true for a value that is not NULL
// exactly when the key is false. NULL makes both fail, so NOT may move inwards.
var opposite = map[Op]Op{
	Eq: NotEq, NotEq: Eq, Lt: GtEq, GtEq: Lt, Gt: LtEq, LtEq: Gt,
	In: NotIn, NotIn: In, IsNull: IsNotNull, IsNotNull: IsNull,
}

// Simplify moves NOT down to the leaves, flattens AND and OR and drops what is
// always true. The result matches at least the rows that n matches; nil = all.
func Simplify(n Node) Node { return simplify(n, false) }

func simplify(n Node, not bool) Node {
	switch n := n.(type) {
	case *Leaf:
		return simplifyLeaf(n, not)
	case *MapLeaf:
		return remap(simplifyLeaf(&n.Leaf, not), n.Key)
	case *Not:
		return simplify(n.Arg, !not)
	case *And:
		if not {
			return disj(n.Args, true)
		}
		return conj(n.Args, false)
	case *Or:
		if not {
			return conj(n.Args, true)
		}
		return disj(n.Args, false)
	}
	// nil, true: under NOT it would be false, which cannot be said; "true" is the
	// safe answer.
	return nil
}

func simplifyLeaf(l *Leaf, not bool) Node {
	if (l.Op == In || l.Op == NotIn) && len(l.Args) == 1 {
		c := *l
		if c.Op = Eq; l.Op == NotIn {
			c.Op = NotEq
		}
		l = &c
	}
	if !not {
		return l
	}
	if l.Set != nil {
		return nil // NOT of less than all that the leaf says
	}
	if op, ok := opposite[l.Op]; ok {
		c := *l
		c.Op = op
		return &c
	}
	if l.Op == Between && len(l.Args) == 2 {
		lo, hi := *l, *l
		lo.Op, lo.Args = Lt, l.Args[:1]
		hi.Op, hi.Args = Gt, l.Args[1:]
		return &Or{[]Node{&lo, &hi}}
	}
	return &Not{l}
}

// remap makes leaves of the values under a map's key of plain ones.
func remap(n Node, key string) Node {
	switch n := n.(type) {
	case *Leaf:
		return &MapLeaf{*n, key}
	case *Or:
		for i, a := range n.Args {
			n.Args[i] = remap(a, key)
		}
	case *Not:
		n.Arg = remap(n.Arg, key)
	}
	return n
}

func conj(args []Node, not bool) Node {
	out := make([]Node, 0, len(args))
	for _, a := range args {
		out = append(out, simplify(a, not))
	}
	return Conj(out...)
}

func disj(args []Node, not bool) Node {
	out := make([]Node, 0, len(args))
	for _, a := range args {
		out = append(out, simplify(a, not))
	}
	return Disj(out...)
}

// Disj joins nodes by OR; nil (true) when one of them is nil.
func Disj(nodes ...Node) Node {
	var out []Node
	for _, n := range nodes {
		switch n := n.(type) {
		case nil:
			return nil
		case *Or:
			out = append(out, n.Args...)
		default:
			out = append(out, n)
		}
	}
	if len(out) == 1 {
		return out[0]
	}
	if len(out) == 0 {
		return nil
	}
	return &Or{out}
}

// Rewrite replaces every leaf of a simplified n by what f returns, nil meaning
// "true", and every MapLeaf by "true". The result matches at least the rows that n
// matches if each replacement does.
func Rewrite(n Node, f func(*Leaf) Node) Node { return RewriteMaps(n, f, nil) }

// RewriteMaps is Rewrite that replaces a MapLeaf by what m returns.
func RewriteMaps(n Node, f func(*Leaf) Node, m func(*MapLeaf) Node) Node {
	switch n := n.(type) {
	case *Leaf:
		return f(n)
	case *MapLeaf:
		if m != nil {
			return m(n)
		}
	case *And:
		out := make([]Node, 0, len(n.Args))
		for _, a := range n.Args {
			out = append(out, RewriteMaps(a, f, m))
		}
		return Conj(out...)
	case *Or:
		out := make([]Node, 0, len(n.Args))
		for _, a := range n.Args {
			out = append(out, RewriteMaps(a, f, m))
		}
		return Disj(out...)
	case *Not:
		// A looser argument would make a stricter NOT: only an exact replacement,
		// a leaf for a leaf, may stand here.
		switch l := n.Arg.(type) {
		case *Leaf:
			if r, ok := f(l).(*Leaf); ok && r.Op == l.Op {
				return &Not{r}
			}
		case *MapLeaf:
			if m == nil {
				return nil
			}
			switch r := m(l).(type) {
			case *MapLeaf:
				if r.Op == l.Op {
					return &Not{r}
				}
			case *Leaf: // of a column that stands for the values under the key
				if r.Op == l.Op {
					return &Not{r}
				}
			}
		}
	}
	return nil
}

// Walk calls f for every leaf of n, also for those within a MapLeaf.
func Walk(n Node, f func(*Leaf)) {
	switch n := n.(type) {
	case *Leaf:
		f(n)
	case *MapLeaf:
		f(&n.Leaf)
	case *And:
		for _, a := range n.Args {
			Walk(a, f)
		}
	case *Or:
		for _, a := range n.Args {
			Walk(a, f)
		}
	case *Not:
		Walk(n.Arg, f)
	}
}

// Only returns the part of a simplified n that speaks of columns for which ok is
// true: conjuncts that hold another column are dropped. nil = nothing.
func Only(n Node, ok func(col int) bool) Node {
	conjuncts := []Node{n}
	if a, isAnd := n.(*And); isAnd {
		conjuncts = a.Args
	}
	var out []Node
	for _, c := range conjuncts {
		all := c != nil
		Walk(c, func(l *Leaf) { all = all && ok(l.Col) })
		if all {
			out = append(out, c)
		}
	}
	return Conj(out...)
}
