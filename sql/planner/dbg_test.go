package planner

import (
	"fmt"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/sql/plan"
)

func dumpL(n plan.LNode, ind int) {
	d := &deparser{}
	var es []string
	n.EachExpr(func(e *plan.Expr) { es = append(es, d.expr(*e)) })
	var cs []string
	for _, c := range n.Cols() {
		cs = append(cs, fmt.Sprintf("%s#%d", c.Name, c.ID))
	}
	fmt.Printf("%s%T [%s] {%s}\n", strings.Repeat("  ", ind), n, strings.Join(es, "; "), strings.Join(cs, " "))
	for _, k := range n.Kids() {
		dumpL(*k, ind+1)
	}
}

func TestDbg(t *testing.T) {
	debugRule = func(name string, n plan.LNode) { fmt.Println("--", name); dumpL(n, 0) }
	c := tpchCat(t)
	_, err := planText(c, "select sum(case when l_tax=1 then l_discount else 0 end)/sum(l_discount) from lineitem", Options{})
	fmt.Println(err)
}
