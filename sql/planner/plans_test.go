package planner

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the plans that come out into testdata")

// TestPlanTranscripts compares plans with testdata/*.plan. A record is a line
// "plan" or "plan off=rule,rule", the query, "----", and the EXPLAIN text. Run
// with -rewrite to accept what changed, and read the diff.
func TestPlanTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.plan")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			c := tpchCat(t)
			var out strings.Builder
			for _, rec := range strings.Split(strings.TrimSpace(string(b)), "\n\n") {
				if strings.HasPrefix(rec, "#") {
					out.WriteString(rec + "\n\n")
					continue
				}
				head, rest, ok := strings.Cut(rec, "\n")
				if !ok || !strings.HasPrefix(head, "plan") {
					t.Fatalf("bad record %q", rec)
				}
				sql, want, _ := strings.Cut(rest, "\n----\n")
				sql = strings.TrimSuffix(sql, "\n----")
				o := Options{Disabled: map[string]bool{}}
				x := ExplainOptions{NoCosts: true, Env: testEnv{}}
				for _, w := range strings.Fields(head)[1:] {
					if off, ok := strings.CutPrefix(w, "off="); ok {
						for _, r := range strings.Split(off, ",") {
							o.Disabled[r] = true
						}
					}
					x.Verbose = x.Verbose || w == "verbose"
				}
				var got string
				if p, err := planText(c, sql, o); err != nil {
					got = "error: " + err.Error()
				} else {
					got = strings.Join(Explain(p, x, nil), "\n")
				}
				if !*rewrite && got != want {
					t.Errorf("%s\n%s\n--- got\n%s\n--- want\n%s", head, sql, got, want)
				}
				out.WriteString(head + "\n" + sql + "\n----\n" + got + "\n\n")
			}
			if *rewrite {
				if err := os.WriteFile(f, []byte(out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Numbers of two widths are compared by a hash, too: the narrower is widened.
func TestWidthsJoinByHash(t *testing.T) {
	c := dmlCat(t)
	p, err := planModify(c, "delete from t using s where s.id = t.a and s.id = t.id", Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := describeModify(p)
	if strings.Contains(got, "Nested Loop") || !strings.Contains(got, "(s.id = (t.a)::bigint)") && !strings.Contains(got, "((t.a)::bigint = s.id)") {
		t.Error(got)
	}
}
