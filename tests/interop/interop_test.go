package interop

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/tests/testserver"
)

var (
	only   = flag.String("only", "", "run only the cases whose list/group/name matches this pattern")
	report = flag.String("report", "", "write every case that did not pass to this file")
)

// collector keeps the rows of the last statement.
type collector struct {
	res result
}

func (c *collector) Columns(cols []engine.Column) error {
	c.res.cols, c.res.rows = cols, nil
	return nil
}
func (c *collector) Batch(_ context.Context, b *vec.Batch) error {
	one := func(i int) {
		r := make([]types.Datum, len(c.res.cols))
		for k := range r {
			if !b.Cols[k].IsNull(i) {
				r[k] = vec.DatumAt(b.Cols[k], c.res.cols[k].Type, i)
			}
		}
		c.res.rows = append(c.res.rows, r)
	}
	if b.Sel != nil {
		for _, i := range b.Sel {
			one(int(i))
		}
		return nil
	}
	for i := range b.N {
		one(i)
	}
	return nil
}
func (c *collector) Complete(string) error       { return nil }
func (c *collector) Empty() error                { return nil }
func (c *collector) Notice(*pgerr.Error)         {}
func (c *collector) ParameterStatus(_, _ string) {}

// verdict is how a case ended.
type verdict struct {
	kase
	list string
	kind string // passed, refused, wrong
	why  string
}

// TestCases runs every case in process. `make interop` runs it; -args -only
// PATTERN narrows it down, -report FILE writes what did not pass.
func TestCases(t *testing.T) {
	if os.Getenv("PAIMON_SQL_INTEROP") == "" && *only == "" {
		t.Skip("needs PAIMON_SQL_INTEROP=1, as make interop sets it")
	}
	root := testserver.Shared(t, "fixtures")
	lists := []struct {
		name  string
		cases []kase
	}{
		{"java", javaCases(t, filepath.Join(root, "java"), "java/warehouse")},
		{"legacy-0.9", javaCases(t, filepath.Join(root, "java/legacy-0.9"), "java/legacy-0.9/warehouse")},
		{"cpp", cppCases(t, filepath.Join(root, "cpp"))},
	}
	must := 0
	for _, c := range lists[2].cases {
		if c.must {
			must++
		}
	}
	if must != 66 {
		t.Errorf("%d cases of cpp must pass by their files, 66 by the list of what is promised", must)
	}
	var pattern *regexp.Regexp
	if *only != "" {
		pattern = regexp.MustCompile(*only)
	}
	sessions := map[string]*engine.Session{}
	paths := map[string]string{}
	var all []verdict
	for _, l := range lists {
		for _, k := range l.cases {
			if pattern != nil && !pattern.MatchString(l.name+"/"+k.group+"/"+k.name) {
				continue
			}
			if sessions[k.warehouse] == nil {
				paths[k.warehouse], sessions[k.warehouse] = open(t, filepath.Join(root, k.warehouse))
			}
			v := verdict{kase: k, list: l.name}
			v.kind, v.why = ask(sessions[k.warehouse], k, paths[k.warehouse])
			all = append(all, v)
		}
	}
	summarise(t, all)
}

// open opens a copy of a warehouse: the fixtures are nobody's to write to.
func open(t *testing.T, dir string) (string, *engine.Session) {
	t.Helper()
	tmp := filepath.Join(t.TempDir(), "warehouse")
	if err := os.CopyFS(tmp, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(t.Context(), engine.Config{Warehouse: tmp, AnyDatabase: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal("open ", dir, ": ", err)
	}
	s, err := e.OpenSession(t.Context(), engine.Startup{User: "tester", Database: "paimon"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		e.Close() //nolint:errcheck // the test is over
	})
	if err := s.Query(t.Context(), "SET paimon.fresh_reads = off; SET TimeZone = 'UTC'", &collector{}); err != nil {
		t.Fatal("set paimon.fresh_reads: ", err)
	}
	return tmp, s
}

func ask(s *engine.Session, k kase, warehouse string) (kind, why string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := &collector{}
	if err := s.Query(ctx, k.query, c); err != nil {
		var e *pgerr.Error
		if !errors.As(err, &e) {
			return "wrong", err.Error()
		}
		if e.Code == pgerr.FeatureNotSupported {
			return "refused", e.Message
		}
		msg := fmt.Sprintf("error %s: %s", e.Code, e.Message)
		if e.Detail != "" {
			msg += " (" + e.Detail + ")"
		}
		return "wrong", msg
	}
	c.res.warehouse = warehouse
	if why := differ(k, c.res); why != "" {
		return "wrong", why
	}
	return "passed", ""
}

func summarise(t *testing.T, all []verdict) {
	type count struct{ passed, refused, wrong, must, mustNot int }
	groups := map[string]*count{}
	reasons := map[string]int{}
	var lines []string
	for _, v := range all {
		g := v.list + " " + v.group
		n := groups[g]
		if n == nil {
			n = &count{}
			groups[g] = n
		}
		if v.must {
			n.must++
			if v.kind != "passed" {
				n.mustNot++
			}
		}
		switch v.kind {
		case "passed":
			n.passed++
			continue
		case "refused":
			n.refused++
			reasons[v.why]++
		case "wrong":
			n.wrong++
		}
		star := ""
		if v.must {
			star = " MUST"
		}
		lines = append(lines, fmt.Sprintf("%s%s %s/%s/%s: %s\n\t%s", v.kind, star, v.list, v.group, v.name, v.why, v.query))
	}
	var total count
	for _, g := range sortedKeys(groups) {
		n := groups[g]
		t.Logf("%-32s %5d passed %5d refused %5d wrong   (must pass: %d of %d)", g, n.passed, n.refused, n.wrong, n.must-n.mustNot, n.must)
		total.passed += n.passed
		total.refused += n.refused
		total.wrong += n.wrong
		total.must += n.must
		total.mustNot += n.mustNot
	}
	t.Logf("%-32s %5d passed %5d refused %5d wrong   (must pass: %d of %d)", "all", total.passed, total.refused, total.wrong, total.must-total.mustNot, total.must)
	for _, why := range sortedKeys(reasons) {
		t.Logf("refused %d times: %s", reasons[why], why)
	}
	if *report != "" {
		if err := os.WriteFile(*report, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Error(err)
		}
	}
	shown := 0
	for _, v := range all {
		if v.kind == "wrong" || v.kind == "refused" && v.must {
			if shown++; shown <= 40 {
				t.Errorf("%s: %s/%s/%s: %s\n\t%s", v.kind, v.list, v.group, v.name, v.why, v.query)
			}
		}
	}
	if shown > 40 {
		t.Errorf("and %d more", shown-40)
	}
}
