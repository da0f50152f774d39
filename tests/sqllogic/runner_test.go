package sqllogic_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/tests/sqllogic"
	"github.com/paimon-sql/paimon-sql/tests/testserver"
)

var (
	dir     = flag.String("dir", "", "run only this folder (select, paimon, ... or of ../shared/slt)")
	rewrite = flag.Bool("rewrite", false, "write the list of shared records that do not hold yet anew")
)

// timeout is for one statement: far more than any needs, far less than a test
// run has.
const timeout = 30 * time.Second

// server is one server for the whole package: files only read, so they may share
// it.
var server = sync.OnceValues(func() (*testserver.Server, error) {
	root, err := testserver.Root()
	if err != nil {
		return nil, err
	}
	// A copy: a server makes what it needs in a warehouse.
	tmp, err := os.MkdirTemp("", "sqllogic")
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(tmp, os.DirFS(filepath.Join(root, "tests/sqllogic/testdata/warehouse"))); err != nil {
		return nil, err
	}
	s, err := testserver.Open(context.Background(), engine.Config{Warehouse: tmp, Database: "paimon"})
	if err != nil {
		os.RemoveAll(tmp)
		return nil, err
	}
	cleanup = func() {
		s.Close()
		os.RemoveAll(tmp)
	}
	return s, nil
})

var cleanup = func() {}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	cleanup()
	os.Exit(code)
}

func start(t *testing.T) *testserver.Server {
	t.Helper()
	s, err := server()
	if err != nil {
		t.Fatal("start the server: ", err)
	}
	return s
}

func files(t *testing.T, root string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".slt") {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// TestSQLLogic runs our own files, by both protocols. Everything in them must
// hold.
func TestSQLLogic(t *testing.T) {
	for _, topic := range []string{"select", "errors", "paimon", "pgcatalog"} {
		if *dir != "" && *dir != topic {
			continue
		}
		t.Run(topic, func(t *testing.T) {
			s := start(t)
			all := files(t, topic)
			if len(all) == 0 {
				t.Fatal("no files")
			}
			for _, mode := range []sqllogic.Mode{sqllogic.Simple, sqllogic.Extended} {
				var total sqllogic.Result
				for _, f := range all {
					t.Run(strings.TrimSuffix(filepath.Base(f), ".slt")+"/"+mode.String(), func(t *testing.T) {
						r, err := sqllogic.RunFile(t.Context(), f, sqllogic.Options{DSN: s.DSN, Mode: mode, Types: true, Timeout: timeout})
						if err != nil {
							t.Fatal(err)
						}
						total.Add(r)
						for _, x := range r.Failures {
							t.Errorf("%s:%d: %s\n\t%s", x.File, x.Line, x.Why, oneLine(x.SQL))
						}
					})
				}
				t.Logf("%s, %s protocol: %s", topic, mode, total)
			}
		})
	}
}

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 200 {
		s = s[:200] + "..."
	}
	return s
}

// shared are the folders of ../shared/slt that need no tables, or make them
// themselves, which a server that cannot make tables refuses: then the records
// that name such a table are left out.
var shared = []string{
	"pg/expr", "pg/agg", "pg/join", "pg/cte", "pg/setop", "pg/string", "pg/datetime", "pg/types", "pg/window",
	"pg/subquery", "pg/order", "pg/array", "pg/json", "pg/errors", "pg/ddl",
}

// knownFailures lists records of ../shared/slt that do not hold yet, one
// FOLDER/FILE:LINE a line. The list may only shrink: a record that is not in it
// and fails, fails the test. `-args -rewrite` writes it anew.
const knownFailures = "testdata/known_failures.txt"

func TestShared(t *testing.T) {
	root := testserver.Shared(t, "slt")
	known := readKnown(t)
	still := map[string]bool{}
	ran := map[string]bool{}
	for _, folder := range shared {
		if *dir != "" && *dir != folder {
			continue
		}
		t.Run(folder, func(t *testing.T) {
			s := start(t)
			var total sqllogic.Result
			unexpected := 0
			for _, f := range files(t, filepath.Join(root, folder)) {
				r, err := sqllogic.RunFile(t.Context(), f, sqllogic.Options{
					DSN: s.DSN, Refusals: true, Timeout: timeout, Setup: []string{"SET paimon.insert_mode = 'strict'"},
				})
				if err != nil {
					t.Fatal(err)
				}
				total.Add(r)
				rel, err := filepath.Rel(root, f)
				if err != nil {
					t.Fatal(err)
				}
				rel = filepath.ToSlash(rel)
				ran[rel] = true
				for _, x := range r.Failures {
					id := fmt.Sprintf("%s:%d", rel, x.Line)
					still[id] = true
					if known[id] || *rewrite {
						continue
					}
					if unexpected++; unexpected <= 20 {
						t.Errorf("%s: %s\n\t%s", id, x.Why, oneLine(x.SQL))
					}
				}
			}
			if unexpected > 20 {
				t.Errorf("and %d more", unexpected-20)
			}
			t.Logf("%s: %s", folder, total)
		})
	}
	if *rewrite {
		for id := range known {
			if f, _, _ := strings.Cut(id, ":"); !ran[f] {
				still[id] = true
			}
		}
		writeKnown(t, still)
		return
	}
	better := 0
	for id := range known {
		if f, _, _ := strings.Cut(id, ":"); ran[f] && !still[id] {
			better++
		}
	}
	if better > 0 {
		t.Logf("%d records of %s hold now: take them out with -args -rewrite", better, knownFailures)
	}
}

func readKnown(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	f, err := os.Open(knownFailures)
	if os.IsNotExist(err) {
		return out
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		if l := strings.TrimSpace(sc.Text()); l != "" && l[0] != '#' {
			out[l] = true
		}
	}
	return out
}

var lineNumber = regexp.MustCompile(`:(\d+)$`)

func writeKnown(t *testing.T, ids map[string]bool) {
	t.Helper()
	var list []string
	for id := range ids {
		list = append(list, id)
	}
	key := func(id string) string { // line numbers in order
		return lineNumber.ReplaceAllStringFunc(id, func(s string) string { return fmt.Sprintf("%s%08s", ":", s[1:]) })
	}
	slices.SortFunc(list, func(a, b string) int { return strings.Compare(key(a), key(b)) })
	out := "# Records of ../shared/slt that do not hold yet. The list may only shrink.\n" + strings.Join(list, "\n") + "\n"
	if err := os.WriteFile(knownFailures, []byte(out), 0o644); err != nil {
		t.Fatal(err)
	}
}
