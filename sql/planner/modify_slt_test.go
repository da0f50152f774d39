package planner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/parser"
)

// TestModifySlt plans what sqllogic scripts write: statements that PostgreSQL
// runs are planned without an error.
func TestModifySlt(t *testing.T) {
	files := []string{}
	for _, dir := range []string{"slt/pg", "slt/adopted"} {
		err := filepath.Walk(shared(t, dir), func(p string, _ os.FileInfo, err error) error {
			if strings.HasSuffix(p, ".slt") {
				files = append(files, p)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	planned, missing := 0, 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		c := &memCat{rels: map[string]*memRel{}}
		if strings.Contains(string(b), "ALTER TABLE") || strings.Contains(string(b), "alter table") {
			continue // tables here do not change
		}
		for _, rec := range strings.Split(string(b), "\n\n") {
			head, sql, ok := strings.Cut(strings.TrimSpace(rec), "\n")
			for ok && (strings.HasPrefix(head, "#") || strings.HasPrefix(head, "skipif") || strings.HasPrefix(head, "onlyif")) {
				head, sql, ok = strings.Cut(sql, "\n")
			}
			if !ok || !strings.HasPrefix(head, "statement") && !strings.HasPrefix(head, "query") {
				continue
			}
			sql, _, _ = strings.Cut(sql, "\n----")
			stmts, err := parser.Parse(sql)
			if err != nil || len(stmts) != 1 {
				continue
			}
			bad := strings.HasPrefix(head, "statement error")
			switch s := stmts[0].(type) {
			case *ast.CreateTable:
				if !bad {
					c.learn(sql, s)
				}
			case *ast.Insert, *ast.Update, *ast.Delete, *ast.Merge:
				if bad {
					continue
				}
				_, err := planModify(c, sql, Options{})
				text := errorText(err)
				switch {
				case err == nil:
					planned++
				case strings.HasPrefix(text, "42P01"), strings.HasPrefix(text, "0A000 data-modifying statements in WITH"), strings.HasPrefix(text, "0A000 cannot"),
					strings.HasPrefix(text, "42P10 there is no unique"):
					missing++ // a table of a form that this test does not make, a view, a UNIQUE column
				default:
					t.Errorf("%s\n%s\n%s", f, sql, text)
				}
			}
		}
	}
	t.Logf("%d statements planned, %d left out", planned, missing)
	if planned < 100 {
		t.Errorf("only %d statements planned", planned)
	}
}

// learn makes the table of a CREATE TABLE when it has plain columns; types that
// are not known leave it out.
func (c *memCat) learn(sql string, s *ast.CreateTable) {
	if len(s.Columns) == 0 {
		return
	}
	for _, cd := range s.Columns {
		if _, err := ResolveType(cd.Type, sql); err != nil {
			return
		}
	}
	c.ddl(nopTB{}, sql)
}

// nopTB is a testing.TB whose failures are of no interest.
type nopTB struct{ testing.TB }

func (nopTB) Helper()               {}
func (nopTB) Fatal(...any)          {}
func (nopTB) Fatalf(string, ...any) {}
