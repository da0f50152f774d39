package formattest

import (
	"fmt"
	"strings"

	"github.com/paimon-sql/paimon-sql/index/predicate"
)

var opNames = [...]string{"=", "<>", "<", "<=", ">", ">=", "in", "not in", "is null", "is not null", "starts with", "between"}

// Show is a predicate as text, for messages of tests.
func Show(n predicate.Node) string {
	join := func(args []predicate.Node, by string) string {
		var out []string
		for _, a := range args {
			out = append(out, Show(a))
		}
		return "(" + strings.Join(out, by) + ")"
	}
	switch n := n.(type) {
	case *predicate.And:
		return join(n.Args, " and ")
	case *predicate.Or:
		return join(n.Args, " or ")
	case *predicate.Not:
		return "not " + Show(n.Arg)
	case *predicate.Leaf:
		return fmt.Sprintf("%s %s %v", n.Name, opNames[n.Op], n.Args)
	}
	return "true"
}
