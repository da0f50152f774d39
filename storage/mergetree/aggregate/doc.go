// Package aggregate has the aggregate functions of the merge engines aggregation
// and partial-update: what the values of one column become when the versions of a
// key are merged. It has nothing to do with the aggregates of SQL queries.
//
// A function sees a whole column of many keys at once. Key i has rows Ends[i-1] to
// Ends[i]; Ops says what each row does to the value of its key so far, the
// accumulated value, which is NULL before the first row:
//
//	rows  1  2  5 | 7  3        Ends 3, 5
//	ops   +  +  - | +  +        sum  -2 (1+2-5), 10
//
// Most functions never build a value: they choose the row that the result comes
// from and take it (pick.go), or the elements of lists and maps (list.go). Numbers
// are folded by typed loops (sum.go, product.go, minmax.go).
//
// # A function of your own
//
// Write one file with a Function and add one line to builtins in builtin.go:
//
//	var concat = Function{
//		Name:  "concat",
//		Takes: func(t types.Type) bool { return t.Kind == types.Text },
//		New:   func(s Spec) (Aggregate, error) { return &concatFold{sep: s.Option("sep", "")}, nil },
//	}
//
// Options of the column are fields.<column>.<name>; Check, where given, is asked
// when a table is created or altered. The tables are read by other Paimon engines
// as well: they must know the function, too.
package aggregate
