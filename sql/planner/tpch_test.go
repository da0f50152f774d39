package planner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// TestTPCHPlans plans the 22 queries: none may need an Apply, and none a nested
// loop but for joins with a single computed row.
func TestTPCHPlans(t *testing.T) {
	dir := shared(t, "bench/queries/tpch")
	files, err := filepath.Glob(filepath.Join(dir, "*.sql"))
	if err != nil || len(files) != 22 {
		t.Fatalf("%d queries, %v", len(files), err)
	}
	c := tpchCat(t)
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			p, err := planText(c, string(b), Options{})
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Join(Explain(p, ExplainOptions{}, nil), "\n")
			t.Log("\n" + text)
			var walk func(n plan.Node)
			walk = func(n plan.Node) {
				switch n.(type) {
				case *plan.Apply, *plan.NestedLoop:
					t.Errorf("%T in the plan", n)
				}
				for _, k := range n.Inputs() {
					walk(k)
				}
			}
			walk(p.Fragment.Root)
			for _, i := range p.Fragment.InitPlans {
				walk(i.Plan)
			}
			for _, cte := range p.Fragment.CTEs {
				walk(cte.Plan)
			}
		})
	}
}
