package engine

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// hostileNames are names that would lead out of the warehouse, or into trouble, if
// they were put into paths as they are.
var hostileNames = []string{
	"../x", "..", ".", "a/b", "/tmp/x", `a\b`, "%2e%2e", "%2e%2e%2fx", "a%2Fb", "%", "%%", "a:b", "file:x", "a b", " ", "  x ", "a?b", "a#b", "a*b", "a[b]", "{a}", "a;b",
	"a'b", `a"b`, "~", "~root", "a=b", "a&b", "a+b", "a,b", "a|b", "<a>", "^", "`", "ä", "日本", "new\nline", "tab\tx", "\x01", "\x7f", "-rf", "CON", strings.Repeat("n", 250), strings.Repeat("n", 300),
	"..%2f..", "....//", "a/../../b", "x/.", "$", "a$b", ".hidden", "_x", "default.db",
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// hostileEngine is over a warehouse whose parent directory nobody else uses.
func hostileEngine(t *testing.T) (s *Session, parent string) {
	t.Helper()
	parent = t.TempDir()
	e, err := Open(t.Context(), Config{Warehouse: filepath.Join(parent, "w"), FileIO: fileio.NewLocal(filepath.Join(parent, "w")), MaxMemory: 1 << 30, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return testSession(t, e), parent
}

// attempt runs a statement, which may fail, but not by a bug or by what the system says.
func attempt(t *testing.T, s *Session, sql string) bool {
	t.Helper()
	err := s.Query(context.Background(), sql, &recorder{s: s})
	if err == nil {
		return true
	}
	var pe *pgerr.Error
	if !asPG(err, &pe) || pe.Code.String()[:2] == "XX" || pe.Code.String()[:2] == "58" {
		t.Errorf("%.200s\n%v", sql, err)
	}
	return false
}

// contained checks that there is nothing beside the warehouse, and nothing in it but
// databases.
func contained(t *testing.T, parent string) {
	t.Helper()
	if got := dirNames(t, parent); !slices.Equal(got, []string{"w"}) {
		t.Errorf("beside the warehouse: %q", got)
	}
	for _, n := range dirNames(t, filepath.Join(parent, "w")) {
		if n != ".paimon-sql" && !strings.HasSuffix(n, ".db") {
			t.Errorf("in the warehouse: %q", n)
		}
	}
}

func dirNames(t *testing.T, dir string) []string {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range es {
		out = append(out, e.Name())
	}
	return out
}

// What a name, an option or a tag says never leads out of the warehouse, nor a table's
// files out of its directory; what is accepted is found again under its name.
func TestHostileNames(t *testing.T) {
	s, parent := hostileEngine(t)
	runSQL(t, s, "CREATE TABLE t (a int)")
	runSQL(t, s, "INSERT INTO t VALUES (1)")
	var made []string
	for _, n := range hostileNames {
		q := quoted(n)
		if attempt(t, s, "CREATE TABLE "+q+" (a int)") {
			made = append(made, n)
			attempt(t, s, "INSERT INTO "+q+" VALUES (7)")
			if got := runSQL(t, s, "SELECT a FROM "+q); len(got) != 1 || got[0] != "7" {
				t.Errorf("%q: %v", n, got)
			}
		}
		if attempt(t, s, "CREATE SCHEMA "+q) {
			attempt(t, s, "CREATE TABLE "+q+".t (a int)")
			attempt(t, s, "DROP SCHEMA "+q+" CASCADE")
		}
		attempt(t, s, "SELECT * FROM "+q+".t")
		attempt(t, s, "SELECT * FROM "+quoted("t$branch_"+n))
		if attempt(t, s, "ALTER TABLE t RENAME TO "+q) {
			attempt(t, s, "ALTER TABLE "+q+" RENAME TO t")
		}
		lit := "'" + strings.ReplaceAll(n, "'", "''") + "'"
		if attempt(t, s, "CALL sys.create_tag('t', "+lit+")") {
			attempt(t, s, "CALL sys.delete_tag('t', "+lit+")")
		}
		attempt(t, s, "SELECT * FROM t FOR VERSION AS OF "+lit)
	}
	contained(t, parent)
	var have []string
	for _, n := range dirNames(t, filepath.Join(parent, "w", "default.db")) {
		if n != "t" {
			have = append(have, n)
		}
	}
	sort.Strings(made)
	sort.Strings(have)
	if !slices.Equal(made, have) {
		t.Errorf("tables are %q, directories %q", made, have)
	}
	for _, bad := range []string{"../x", "..", ".", "a/b", "/tmp/x", `a\b`, strings.Repeat("n", 300)} {
		if slices.Contains(made, bad) {
			t.Errorf("a table %.20q was made", bad)
		}
	}
}

func TestHostileOptions(t *testing.T) {
	s, parent := hostileEngine(t)
	for _, o := range []string{
		"'data-file.path-directory' = '../../../out'", "'data-file.path-directory' = 'a/../../b'", "'data-file.prefix' = '../../../../x-'", "'data-file.prefix' = 'a/b'",
		"'changelog-file.prefix' = '../x-', 'changelog-producer' = 'input'", "'path' = '/tmp/elsewhere'",
	} {
		if attempt(t, s, "CREATE TABLE o (k int PRIMARY KEY) WITH ("+o+")") {
			t.Errorf("%s is accepted", o)
		}
	}
	runSQL(t, s, "CREATE TABLE o (k int PRIMARY KEY) WITH ('data-file.path-directory' = 'data/here', 'data-file.prefix' = 'f-')")
	runSQL(t, s, "INSERT INTO o VALUES (1)")
	if attempt(t, s, "ALTER TABLE o SET ('data-file.prefix' = '../x')") {
		t.Error("ALTER TABLE takes a prefix that leaves the table")
	}
	// A table that somebody else made so can be read, and is not written.
	name := filepath.Join(parent, "w", "default.db", "o", "schema", "schema-0")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(b), `"f-"`, `"../../x-"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := Open(t.Context(), Config{Warehouse: filepath.Join(parent, "w")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	s = testSession(t, e)
	if got := runSQL(t, s, "SELECT * FROM o"); len(got) != 1 {
		t.Errorf("rows: %v", got)
	}
	if attempt(t, s, "INSERT INTO o VALUES (2)") {
		t.Error("a file is written beside the table")
	}
	contained(t, parent)
}

// hostileValues writes one row per value into a table partitioned by it, and returns
// the values that were accepted.
func hostileValues(t *testing.T, s *Session) []string {
	t.Helper()
	runSQL(t, s, "CREATE TABLE p (k text, n int) PARTITIONED BY (k)")
	var out []string
	for i, v := range append(slices.Clone(hostileNames), "", "__DEFAULT_PARTITION__", "null") {
		lit := "E'" + strings.NewReplacer("'", "''", `\`, `\\`).Replace(v) + "'"
		if attempt(t, s, "INSERT INTO p VALUES ("+lit+", "+strconv.Itoa(i)+")") {
			out = append(out, v)
			if got := runSQL(t, s, "SELECT k, n FROM p WHERE k = "+lit); len(got) != 1 || got[0] != v+"|"+strconv.Itoa(i) {
				t.Errorf("%q: %q", v, got)
			}
		}
	}
	return out
}

func TestHostilePartitions(t *testing.T) {
	s, parent := hostileEngine(t)
	values := hostileValues(t, s)
	if len(values) < 40 {
		t.Errorf("only %q are accepted", values)
	}
	if got := runSQL(t, s, "SELECT count(*), count(DISTINCT k) FROM p"); got[0] != strconv.Itoa(len(values))+"|"+strconv.Itoa(len(values)) {
		t.Errorf("%v of %d", got, len(values))
	}
	contained(t, parent)
	for _, n := range dirNames(t, filepath.Join(parent, "w", "default.db", "p")) {
		if !slices.Contains([]string{"schema", "snapshot", "manifest", "index"}, n) && !strings.HasPrefix(n, "k=") {
			t.Errorf("in the table: %q", n)
		}
	}
}

// TestJavaHostile: Java finds tables and partitions under every name that we accept.
func TestJavaHostile(t *testing.T) {
	s, parent := hostileEngine(t)
	java := oracle.Java(t, filepath.Join(parent, "w"))
	values := hostileValues(t, s)
	got := map[string]bool{}
	for _, r := range java.Rows(t, "default.p", nil) {
		var row struct {
			K string
			N int
		}
		if err := json.Unmarshal(r, &row); err != nil {
			t.Fatal(err)
		}
		got[row.K] = true
	}
	for _, v := range values {
		if !got[v] {
			t.Errorf("Java does not see the partition %.50q", v)
		}
	}
	java.Check(t, "default.p")
}
