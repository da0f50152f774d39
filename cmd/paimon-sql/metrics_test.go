package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/metrics"
	"github.com/paimon-sql/paimon-sql/pgwire"
)

// allMetrics are those of a server, by name.
func allMetrics(t *testing.T) map[string]metrics.Description {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Config{Warehouse: "mem://", Maintain: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	serveMetrics(&readiness{}, pgwire.NewServer(pgwire.Config{Backend: backend{e}}))
	out := map[string]metrics.Description{}
	for _, d := range metrics.Describe() {
		out[d.Name] = d
	}
	return out
}

// docs/metrics.md has a row for every metric and no other.
func TestMetricsDoc(t *testing.T) {
	b, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]string{}
	for _, l := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(l, "| `") {
			name, _, _ := strings.Cut(l[3:], "`")
			have[name] = l
		}
	}
	for name, d := range allMetrics(t) {
		label := ""
		if d.Label != "" {
			label = "`" + d.Label + "`"
		}
		want := fmt.Sprintf("| `%s` | %s | %s | %s | %s |", name, d.Kind, unitOf(name), label, d.Help)
		if have[name] != want {
			t.Errorf("docs/metrics.md lacks the row\n%s", want)
		}
		delete(have, name)
	}
	for name := range have {
		t.Errorf("docs/metrics.md has %s, which does not exist", name)
	}
}

// unitOf is a metric's unit, which its name ends with.
func unitOf(name string) string {
	name = strings.TrimSuffix(name, "_total")
	for _, u := range []string{"seconds", "bytes"} {
		if strings.HasSuffix(name, u) {
			return u
		}
	}
	return ""
}

// The dashboard asks for metrics that there are only, by labels that they have.
func TestDashboard(t *testing.T) {
	b, err := os.ReadFile("../../contrib/grafana/paimon-sql.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	all := allMetrics(t)
	used := map[string]bool{}
	names, by := regexp.MustCompile(`\b(?:paimon_sql|process|go)_[a-z_]+`), regexp.MustCompile(`by \(([a-z]+)\)`)
	for _, p := range d.Panels {
		for _, x := range p.Targets {
			for _, n := range names.FindAllString(x.Expr, -1) {
				base := n
				for _, suffix := range []string{"_bucket", "_sum", "_count"} {
					if m, ok := all[strings.TrimSuffix(n, suffix)]; ok && m.Kind == "histogram" {
						base = m.Name
					}
				}
				m, ok := all[base]
				if !ok {
					t.Errorf("%s: there is no metric %s", p.Title, n)
					continue
				}
				used[base] = true
				if (m.Kind == "counter" || m.Kind == "histogram") && !strings.Contains(x.Expr, "rate("+n) {
					t.Errorf("%s: %s is a %s without rate()", p.Title, n, m.Kind)
				}
				for _, l := range by.FindAllStringSubmatch(x.Expr, -1) {
					if l[1] != m.Label && !(l[1] == "le" && m.Kind == "histogram") {
						t.Errorf("%s: %s has no label %s", p.Title, n, l[1])
					}
				}
			}
		}
	}
	if len(used) < 25 {
		t.Errorf("the dashboard shows %d metrics only", len(used))
	}
}
