package plan

import "slices"

// EachArg calls f with the address of every direct argument of e, in evaluation
// order. Writing through the address changes e: only do that on a copy (Clone).
// The plan inside a Subquery is not an argument; its Left expressions are.
func EachArg(e Expr, f func(*Expr)) {
	list := func(s []Expr) {
		for i := range s {
			f(&s[i])
		}
	}
	one := func(p *Expr) {
		if *p != nil {
			f(p)
		}
	}
	switch e := e.(type) {
	case *Call:
		list(e.Args)
	case *Cast:
		one(&e.Arg)
	case *And:
		list(e.Args)
	case *Or:
		list(e.Args)
	case *Not:
		one(&e.Arg)
	case *IsNull:
		one(&e.Arg)
	case *IsBool:
		one(&e.Arg)
	case *Distinct:
		one(&e.Left)
		one(&e.Right)
	case *InList:
		one(&e.Arg)
		list(e.Items)
	case *AnyAll:
		one(&e.Left)
		one(&e.Array)
	case *Case:
		for i := range e.Whens {
			one(&e.Whens[i].Cond)
			one(&e.Whens[i].Result)
		}
		one(&e.Else)
	case *Coalesce:
		list(e.Args)
	case *MinMax:
		list(e.Args)
	case *NullIf:
		// The value and what is compared are often one expression: it stays one.
		same := e.A == e.CmpA
		one(&e.A)
		switch {
		case !same:
			one(&e.CmpA)
		case e.CmpA != e.A:
			e.CmpA = e.A
		}
		one(&e.B)
	case *MakeArray:
		list(e.Elems)
	case *MakeRow:
		list(e.Elems)
	case *Field:
		one(&e.Arg)
	case *Subscript:
		one(&e.Arg)
		one(&e.Index)
		one(&e.Low)
		one(&e.High)
	case *RowCompare:
		list(e.Left)
		list(e.Right)
	case *Subquery:
		list(e.Left)
	case *SetRef:
		list(e.Args)
	}
}

// Clone returns a copy of e whose argument slices are its own, so that EachArg
// may write to it. Leaves are returned as they are.
func Clone(e Expr) Expr {
	switch e := e.(type) {
	case *Call:
		c := *e
		c.Args = slices.Clone(e.Args)
		return &c
	case *Cast:
		c := *e
		return &c
	case *And:
		return &And{Args: slices.Clone(e.Args)}
	case *Or:
		return &Or{Args: slices.Clone(e.Args)}
	case *Not:
		c := *e
		return &c
	case *IsNull:
		c := *e
		return &c
	case *IsBool:
		c := *e
		return &c
	case *Distinct:
		c := *e
		return &c
	case *InList:
		c := *e
		c.Items = slices.Clone(e.Items)
		return &c
	case *AnyAll:
		c := *e
		return &c
	case *Case:
		c := *e
		c.Whens = slices.Clone(e.Whens)
		return &c
	case *Coalesce:
		c := *e
		c.Args = slices.Clone(e.Args)
		return &c
	case *MinMax:
		c := *e
		c.Args = slices.Clone(e.Args)
		return &c
	case *NullIf:
		c := *e
		return &c
	case *MakeArray:
		c := *e
		c.Elems = slices.Clone(e.Elems)
		return &c
	case *MakeRow:
		c := *e
		c.Elems = slices.Clone(e.Elems)
		return &c
	case *Field:
		c := *e
		return &c
	case *Subscript:
		c := *e
		return &c
	case *RowCompare:
		c := *e
		c.Left, c.Right = slices.Clone(e.Left), slices.Clone(e.Right)
		return &c
	case *Subquery:
		c := *e
		c.Left = slices.Clone(e.Left)
		return &c
	case *SetRef:
		c := *e
		c.Args = slices.Clone(e.Args)
		return &c
	}
	return e
}

// Walk visits e and its arguments, parents first; f returning false skips the
// arguments of the node it was given.
func Walk(e Expr, f func(Expr) bool) {
	if e == nil || !f(e) {
		return
	}
	EachArg(e, func(p *Expr) { Walk(*p, f) })
}

// Replace rebuilds e: where f returns true, its result stands for the node and
// is not looked into; elsewhere the arguments are replaced in turn. Nodes
// without a change are shared with e.
func Replace(e Expr, f func(Expr) (Expr, bool)) Expr {
	if e == nil {
		return nil
	}
	if r, ok := f(e); ok {
		return r
	}
	changed := false
	c := Clone(e)
	EachArg(c, func(p *Expr) {
		n := Replace(*p, f)
		if n != *p {
			*p = n
			changed = true
		}
	})
	if !changed {
		return e
	}
	return c
}

// Transform rebuilds e from the leaves up: f sees each node after its arguments
// were transformed.
func Transform(e Expr, f func(Expr) Expr) Expr {
	if e == nil {
		return nil
	}
	changed := false
	c := Clone(e)
	EachArg(c, func(p *Expr) {
		n := Transform(*p, f)
		if n != *p {
			*p = n
			changed = true
		}
	})
	if !changed {
		c = e
	}
	return f(c)
}
