package planner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/parser"
)

// clientSchema makes the tables of clients/tools/schema.sql.
func clientSchema(t testing.TB) *memCat {
	c := &memCat{rels: map[string]*memRel{}}
	b, err := os.ReadFile(filepath.Join(shared(t, "clients/tools"), "schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(b), ";\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "CREATE TABLE") || strings.HasPrefix(line, "CREATE VIEW") {
			c.ddl(t, strings.TrimSuffix(line, ";"))
		}
	}
	return c
}

var (
	reErr = regexp.MustCompile(`(?m)^-- error: (\S{5}) (.*)$`)
	rePos = regexp.MustCompile(`(?m)^-- position: (\d+)$`)
)

// TestErrorCorpus plans wrong statements and compares code, message and place
// with PostgreSQL's. Statements that are no queries, and errors that only a row
// raises, are not counted.
func TestErrorCorpus(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(shared(t, "clients/corpus"), "errors.sql"))
	if err != nil {
		t.Fatal(err)
	}
	c := clientSchema(t)
	total, good := 0, 0
	for _, rec := range strings.Split(string(b), "\n\n") {
		m := reErr.FindStringSubmatch(rec)
		if m == nil {
			continue
		}
		var sql []string
		for _, l := range strings.Split(rec, "\n") {
			if !strings.HasPrefix(l, "--") {
				sql = append(sql, l)
			}
		}
		q := strings.TrimSpace(strings.Join(sql, "\n"))
		stmts, perr := parser.Parse(q)
		if perr != nil || len(stmts) != 1 {
			continue
		}
		if _, ok := stmts[0].(*ast.Query); !ok {
			continue
		}
		pos := 0
		if pm := rePos.FindStringSubmatch(rec); pm != nil {
			pos, _ = strconv.Atoi(pm[1])
		}
		_, err := planText(c, q, Options{FixedParams: true})
		var pe *pgerr.Error
		if !errors.As(err, &pe) {
			if pos > 0 {
				t.Errorf("%s\n  no error, want %s %s at %d", q, m[1], m[2], pos)
				total++
			}
			continue // a run-time error
		}
		total++
		if pe.Code.String() == m[1] && pe.Message == m[2] && pe.Position == pos {
			good++
			continue
		}
		t.Errorf("%s\n  got  %s %s at %d\n  want %s %s at %d", q, pe.Code, pe.Message, pe.Position, m[1], m[2], pos)
	}
	t.Logf("%d of %d", good, total)
	if total < 25 {
		t.Error("too few statements were compared")
	}
}

// sltRecord is one record of a .slt file.
type sltRecord struct {
	head, sql string
	note      string // the # ERROR comment
}

func sltRecords(text string) []sltRecord {
	var out []sltRecord
	lines := strings.Split(text, "\n")
	note := ""
	for i := 0; i < len(lines); i++ {
		l := lines[i]
		if strings.HasPrefix(l, "# ERROR: ") {
			note = strings.TrimPrefix(l, "# ERROR: ")
			continue
		}
		if !strings.HasPrefix(l, "statement ") && !strings.HasPrefix(l, "query ") {
			if l != "" && !strings.HasPrefix(l, "#") {
				note = ""
			}
			continue
		}
		r := sltRecord{head: l, note: note}
		note = ""
		var sql []string
		for i++; i < len(lines) && lines[i] != "" && lines[i] != "----"; i++ {
			if strings.HasPrefix(lines[i], "# ERROR: ") {
				r.note = strings.TrimPrefix(lines[i], "# ERROR: ")
				continue
			}
			sql = append(sql, lines[i])
		}
		for ; i < len(lines) && lines[i] != ""; i++ {
			if strings.HasPrefix(lines[i], "# ERROR: ") {
				r.note = strings.TrimPrefix(lines[i], "# ERROR: ")
			}
		}
		r.sql = strings.Join(sql, "\n")
		out = append(out, r)
	}
	return out
}

// TestCorpusPlans plans the SELECTs of the SQL corpora: those that PostgreSQL
// answers must plan, those that it refuses while analyzing must be refused with
// its code.
func TestCorpusPlans(t *testing.T) {
	root := shared(t, "slt")
	only := os.Getenv("CORPUS") // a part of a path
	show, _ := strconv.Atoi(os.Getenv("CORPUS_SHOW"))
	planned, okPlans, refused, okCodes, okMsgs := 0, 0, 0, 0, 0
	reasons := map[string]int{}
	sample := map[string]string{}
	for _, dir := range []string{"pg", "adopted", "tpcds"} {
		err := filepath.Walk(filepath.Join(root, dir), func(path string, info os.FileInfo, err error) error {
			if err != nil || info.IsDir() || !strings.HasSuffix(path, ".slt") || !strings.Contains(path, only) {
				return err
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			c := &memCat{rels: map[string]*memRel{}}
			if dir == "tpcds" {
				s, err := os.ReadFile(filepath.Join(root, dir, "schema.sql"))
				if err != nil {
					return err
				}
				c.ddl(t, string(s))
			}
			made := true
			for _, r := range sltRecords(string(b)) {
				stmts, perr := parser.Parse(r.sql)
				if perr != nil || len(stmts) != 1 {
					continue
				}
				if _, ok := stmts[0].(*ast.Query); !ok {
					switch s := stmts[0].(type) {
					case *ast.CreateTable, *ast.CreateView:
						if ok := tryDDL(t, c, r.sql); !ok {
							made = false
						}
					case *ast.CreateTableAs:
						if !tryCTAS(c, s, r.sql) {
							made = false
						}
					}
					continue
				}
				if !made || strings.Contains(r.sql, "pg_") && strings.Contains(r.sql, "FROM pg_") || strings.Contains(r.sql, "information_schema") {
					continue
				}
				_, err := planText(c, r.sql, Options{FixedParams: true})
				var pe *pgerr.Error
				errors.As(err, &pe)
				if err != nil && pe == nil {
					t.Errorf("%s: %s: %v", path, r.sql, err)
					continue
				}
				if strings.HasPrefix(r.head, "statement error") {
					want := strings.Trim(strings.TrimSpace(strings.TrimPrefix(r.head, "statement error")), "()")
					if pe == nil {
						if strings.HasPrefix(want, "42") {
							refused++
							reasons["not refused: "+want]++
							sample["not refused: "+want] = r.sql + " -- " + r.note
							if show > 1 {
								t.Logf("not refused (%s %s): %s", want, r.note, r.sql)
							}
						}
						continue
					}
					refused++
					if want == "" || pe.Code.String() == want {
						okCodes++
						if r.note == "" || strings.Contains(r.note, pe.Message) || r.note == pe.Message {
							okMsgs++
						} else if show > 0 {
							t.Logf("message: %s\n  got  %s\n  want %s", r.sql, pe.Message, r.note)
						}
					} else {
						k := fmt.Sprintf("code %s for %s", pe.Code, want)
						reasons[k]++
						sample[k] = r.sql + " -- " + pe.Message
						if show > 0 {
							t.Logf("code: %s\n  got  %s %s\n  want %s %s", r.sql, pe.Code, pe.Message, want, r.note)
						}
					}
					continue
				}
				planned++
				if err == nil {
					okPlans++
					continue
				}
				k := pe.Code.String() + " " + pe.Message
				reasons[k]++
				sample[k] = filepath.Base(path) + ": " + r.sql
				if pe.Code == pgerr.InternalError {
					t.Errorf("%s\n  %s", r.sql, pe.Message)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var keys []string
	for k := range reasons {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return reasons[keys[i]] > reasons[keys[j]] })
	for i, k := range keys {
		if i < 200 && show > 0 {
			s := sample[k]
			if len(s) > 300 {
				s = s[:300]
			}
			t.Logf("%5d %s\n      e.g. %s", reasons[k], k, strings.ReplaceAll(s, "\n", " "))
		}
	}
	// What is missing needs a catalog or statements that this test has not.
	if only == "" && (okPlans*100 < planned*98 || okCodes*100 < refused*95) {
		t.Error("too few")
	}
	t.Logf("planned %d of %d; refused with the right code %d of %d, with the right message %d", okPlans, planned, okCodes, refused, okMsgs)
}

func tryDDL(t testing.TB, c *memCat, sql string) (ok bool) {
	f := &failing{TB: t}
	defer func() {
		if r := recover(); r != nil {
			if e, ok := r.(error); !ok || !errors.Is(e, errStop) {
				panic(r)
			}
			ok = false
		}
	}()
	c.ddl(f, sql)
	return true
}

var errStop = errors.New("stop")

// failing turns a fatal test failure into a panic that tryDDL catches.
type failing struct{ testing.TB }

func (f *failing) Helper()               {}
func (f *failing) Fatal(...any)          { panic(errStop) }
func (f *failing) Fatalf(string, ...any) { panic(errStop) }

func tryCTAS(c *memCat, s *ast.CreateTableAs, sql string) bool {
	q, ok := s.As.(*ast.Query)
	if !ok {
		return false
	}
	p, err := Plan(nil, q, sql, Options{Resolver: c, Env: testEnv{}}) //nolint:staticcheck // nothing waits
	if err != nil {
		return false
	}
	c.addResult(s.Name.Last(), p)
	return true
}
