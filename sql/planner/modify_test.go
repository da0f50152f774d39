package planner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

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
CREATE VIEW v AS SELECT * FROM t;
`

func dmlCat(t testing.TB) *memCat {
	c := &memCat{rels: map[string]*memRel{}}
	c.ddl(t, dmlDDL)
	n := &c.rels["public.t"].cols[3]
	n.Default, n.HasDefault = "1.5", true
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
