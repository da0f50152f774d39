package planner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/parser"
)

const dmlDDL = `
CREATE TABLE t (id bigint PRIMARY KEY, a int, b text, n numeric(10,2), d date NOT NULL);
CREATE TABLE s (id bigint, a int, x int);
CREATE TABLE k2 (a int, b int, c int, PRIMARY KEY (a, b));
CREATE TABLE arr (id int PRIMARY KEY, tags text[], n numeric, v varchar(3), ts timestamp(3));
CREATE TABLE ap (a int, b text);
CREATE TABLE pt (dt text, hh int, id int, v text, PRIMARY KEY (dt, hh, id));
CREATE TABLE chk (id int PRIMARY KEY, v int, u uuid, at timestamptz, r float8, m map<text, int>, j row<x int, y text>);
CREATE VIEW v AS SELECT * FROM t;
`

func dmlCat(t testing.TB) *memCat {
	c := &memCat{rels: map[string]*memRel{}}
	c.ddl(t, dmlDDL)
	n := &c.rels["public.t"].cols[3]
	n.Default, n.HasDefault = "1.5", true
	k := c.rels["public.chk"]
	k.opts = map[string]string{
		catalog.DefaultOption("u"): "gen_random_uuid()", catalog.DefaultOption("at"): "now()", catalog.DefaultOption("r"): "random() * 10",
	}
	for _, ch := range []catalog.Constraint{
		{Name: "chk_v_check", Kind: catalog.CheckConstraint, Expr: "v > 0 AND (id % 2) = 0"},
		{Name: "chk_u_key", Kind: catalog.UniqueConstraint, Columns: []string{"u"}},
		{Name: "chk_r_check", Kind: catalog.CheckConstraint, Expr: "r < 10.5"},
	} {
		key, v := ch.Option()
		k.opts[key] = v
	}
	c.rels["public.pt"].parts = []string{"dt", "hh"}
	return c
}

func planModify(c *memCat, sql string, o Options) (*PlannedModify, error) {
	stmts, err := parser.Parse(sql)
	if err != nil {
		return nil, err
	}
	if len(stmts) != 1 {
		return nil, fmt.Errorf("%d statements", len(stmts))
	}
	o.Resolver, o.Env = c, testEnv{}
	st := stmts[0]
	if cp, ok := st.(*ast.Copy); ok {
		return PlanCopyFrom(context.Background(), cp.Table, cp.Columns, cp.Where, sql, o)
	}
	return PlanModify(context.Background(), st, sql, o)
}

// errorText prints an error as testdata/dml_errors.txt has it.
func errorText(err error) string {
	if err == nil {
		return "ok"
	}
	var e *pgerr.Error
	if !errors.As(err, &e) {
		return "error: " + err.Error()
	}
	s := e.Code.String() + " " + e.Message
	if e.Position > 0 {
		s += fmt.Sprintf("\nat %d", e.Position)
	}
	if e.Detail != "" {
		s += "\ndetail " + e.Detail
	}
	if e.Hint != "" {
		s += "\nhint " + e.Hint
	}
	return s
}

// TestModifyErrors compares what wrong statements are answered with what
// PostgreSQL says.
func TestModifyErrors(t *testing.T) {
	b, err := os.ReadFile("testdata/dml_errors.txt")
	if err != nil {
		t.Fatal(err)
	}
	c := dmlCat(t)
	n := 0
	for _, rec := range strings.Split(strings.TrimSpace(string(b)), "\n\n") {
		if strings.HasPrefix(rec, "#") {
			continue
		}
		sql, want, ok := strings.Cut(rec, "\n----\n")
		if !ok {
			t.Fatalf("bad record %q", rec)
		}
		if _, ours, ok := strings.Cut(want, "\nours\n"); ok {
			want = ours
		}
		_, err := planModify(c, sql, Options{})
		if got := errorText(err); got != want {
			t.Errorf("%s\n--- got\n%s\n--- want\n%s", sql, got, want)
		}
		n++
	}
	if n < 80 {
		t.Errorf("only %d statements", n)
	}
}

// describeModify prints what Modify says besides the plan.
func describeModify(p *PlannedModify) string {
	m := p.Modify
	d := &deparser{env: testEnv{}}
	var sb strings.Builder
	f := func(format string, args ...any) { fmt.Fprintf(&sb, format+"\n", args...) }
	if m.Source != nil {
		f("action %d new %v old %v file %d pos %d", m.Action, m.New, m.Old, m.File, m.Pos)
	}
	if m.KeyChanged {
		f("key changed")
	}
	if p.Volatile {
		f("volatile")
	}
	if m.Upsert {
		f("upsert")
	}
	if len(p.ParamTypes) > 0 {
		f("params %v", p.ParamTypes)
	}
	if m.In != nil {
		f("in %v", m.In.Types())
		f("fill %s", d.list(m.Fill))
	}
	if m.Where != nil {
		f("where %s", d.expr(m.Where))
	}
	if c := m.Conflict; c != nil {
		f("conflict nothing %v any %v blind %v sets %s where %s", c.DoNothing, c.Any, c.Blind, d.list(c.Sets), d.expr(c.Where))
	}
	for _, c := range m.Checks {
		f("check %s: %s", c.Name, d.expr(c.Cond))
	}
	if m.Returning != nil {
		f("extra %v returning %s", m.Extra, d.list(m.Returning))
		for i, c := range p.Columns {
			f("  %s %s %d.%d", c.Name, c.Type, c.TableOID, c.AttNum)
			if m.ReturnSchema[i].Name != c.Name {
				f("  but %s", m.ReturnSchema[i].Name)
			}
		}
	}
	if m.Source != nil {
		sb.WriteString(strings.Join(ExplainModify(p, ExplainOptions{NoCosts: true, Verbose: true, Env: testEnv{}}, nil), "\n"))
	}
	return strings.TrimRight(sb.String(), "\n")
}

// TestModifyPlans compares what is planned with testdata/modify.txt: statement,
// "----", description. Run with -rewrite to accept what changed, and read the
// diff.
func TestModifyPlans(t *testing.T) {
	const file = "testdata/modify.txt"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := dmlCat(t)
	var out strings.Builder
	for _, rec := range strings.Split(strings.TrimSpace(string(b)), "\n\n") {
		if strings.HasPrefix(rec, "#") {
			out.WriteString(rec + "\n\n")
			continue
		}
		sql, want, _ := strings.Cut(rec, "\n----\n")
		sql = strings.TrimSuffix(sql, "\n----")
		p, err := planModify(c, sql, Options{})
		got := ""
		if err != nil {
			got = errorText(err)
		} else {
			got = describeModify(p)
		}
		if !*rewrite && strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%s\n--- got\n%s\n--- want\n%s", sql, got, want)
		}
		out.WriteString(sql + "\n----\n" + got + "\n\n")
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRowLocks(t *testing.T) {
	c := dmlCat(t)
	for _, tc := range []struct{ sql, want string }{
		{"SELECT id FROM t FOR UPDATE", "t [1] 2 columns"},
		{"SELECT b FROM t WHERE id = 1 ORDER BY a LIMIT 1 FOR UPDATE SKIP LOCKED", "t [1] skip 2 columns"},
		{"SELECT t.b, k2.c FROM t, k2 WHERE t.id = k2.a FOR SHARE NOWAIT", "t [2] shared nowait k2 [3 4] shared nowait 5 columns"},
		{"SELECT t.b FROM t, k2 WHERE t.id = k2.a FOR UPDATE OF k2 FOR SHARE", "k2 [1 2] t [3] shared 4 columns"},
		{"SELECT b FROM t q FOR NO KEY UPDATE OF q", "t [1] 2 columns"},
		{"SELECT a FROM ap FOR UPDATE", "1 columns"},
		{"SELECT a FROM (SELECT a FROM t FOR UPDATE) x", "1 columns"},
		{"SELECT count(*) FROM t FOR UPDATE", "0A000 FOR UPDATE is not allowed with aggregate functions"},
		{"SELECT 1 FROM s LEFT JOIN t ON t.id = s.id FOR UPDATE", "0A000 FOR UPDATE cannot be applied to the nullable side of an outer join"},
		{"SELECT 1 FROM t FOR UPDATE OF zz", "42P01 relation \"zz\" in FOR UPDATE clause not found in FROM clause\nat 31"},
	} {
		p, err := planText(c, tc.sql, Options{RowLocks: true})
		got := ""
		if err != nil {
			got = errorText(err)
		} else {
			for _, l := range p.RowLocks {
				got += fmt.Sprintf("%s %v ", l.Rel.Name(), l.Key)
				for _, k := range l.Key {
					if n := p.Fragment.Root.Schema()[k].Name; !contains(l.Rel.PrimaryKey(), n) {
						t.Errorf("%s: key column is %s", tc.sql, n)
					}
				}
				for _, s := range []struct {
					on   bool
					word string
				}{{l.Shared, "shared "}, {l.NoWait, "nowait "}, {l.SkipLocked, "skip "}} {
					if s.on {
						got += s.word
					}
				}
			}
			got += fmt.Sprintf("%d columns", len(p.Fragment.Root.Schema()))
			if p2, err := planText(c, tc.sql, Options{}); err != nil || len(p2.Fragment.Root.Schema()) != len(p.Columns) {
				t.Errorf("%s: without RowLocks: %v", tc.sql, err)
			}
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", tc.sql, got, tc.want)
		}
	}
}

// TestModifyDescribe compares parameters and results with PostgreSQL's Describe.
func TestModifyDescribe(t *testing.T) {
	b, err := os.ReadFile("testdata/dml_describe.txt")
	if err != nil {
		t.Fatal(err)
	}
	c := dmlCat(t)
	for _, rec := range strings.Split(strings.TrimSpace(string(b)), "\n\n") {
		if strings.HasPrefix(rec, "#") {
			continue
		}
		sql, want, _ := strings.Cut(rec, "\n----\n")
		p, err := planModify(c, sql, Options{})
		var got string
		var e *pgerr.Error
		if errors.As(err, &e) {
			got = "error " + e.Message
		} else {
			var params []string
			for _, x := range p.ParamTypes {
				params = append(params, x.PlainName())
			}
			lines := []string{strings.TrimSpace("params " + strings.Join(params, ", "))}
			for _, col := range p.Columns {
				s := col.Name + " " + col.Type.PlainName()
				if col.TableOID != 0 {
					s += fmt.Sprintf(" .%d", col.AttNum)
				}
				lines = append(lines, s)
			}
			got = strings.Join(lines, "\n")
		}
		if got != want {
			t.Errorf("%s\n--- got\n%s\n--- want\n%s", sql, got, want)
		}
	}
}
