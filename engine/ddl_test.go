package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// defined returns the Paimon schema of a table.
func defined(t testing.TB, e *Engine, sqlSchema, name string) *schema.Table {
	t.Helper()
	rel, err := e.cat.Resolve(context.Background(), sqlSchema, name, catalog.ResolveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return rel.(schemaTable).TableSchema()
}

// must runs statements that have to succeed.
func must(t testing.TB, s *Session, sql string) string {
	t.Helper()
	got := query(s, sql)
	if strings.Contains(got, "ERROR") {
		t.Fatalf("%s\n%s", sql, got)
	}
	return got
}

// allTypes is every type of a column definition, and what Paimon is to store.
var allTypes = []struct{ sql, paimon, pg string }{
	{"boolean", "BOOLEAN", ""}, {"bool", "BOOLEAN", ""}, {"tinyint", "TINYINT", ""}, {"smallint", "SMALLINT", ""}, {"int2", "SMALLINT", ""},
	{"integer", "INT", ""}, {"int4", "INT", ""}, {"bigint", "BIGINT", ""}, {"int8", "BIGINT", ""}, {"real", "FLOAT", ""}, {"float(24)", "FLOAT", ""},
	{"double precision", "DOUBLE", ""}, {"float", "DOUBLE", ""}, {"double", "DOUBLE", ""},
	{"numeric(10,2)", "DECIMAL(10, 2)", ""}, {"numeric(38)", "DECIMAL(38, 0)", ""}, {"decimal(5,5)", "DECIMAL(5, 5)", ""},
	{"numeric", "DECIMAL(38, 18)", "numeric"}, {"char", "CHAR(1)", ""}, {"char(7)", "CHAR(7)", ""}, {"varchar(7)", "VARCHAR(7)", ""},
	{"varchar", "STRING", "varchar"}, {"text", "STRING", ""}, {"string", "STRING", ""}, {"bytea", "BYTES", ""}, {"bytes", "BYTES", ""},
	{"binary(3)", "BINARY(3)", ""}, {"varbinary(3)", "VARBINARY(3)", ""}, {"binary", "BYTES", ""}, {"date", "DATE", ""}, {"time", "TIME(3)", "time"},
	{"time(0)", "TIME(0)", ""}, {"time(6)", "TIME(3)", ""}, {"timestamp", "TIMESTAMP(6)", ""}, {"timestamp(0)", "TIMESTAMP(0)", ""},
	{"timestamp(9)", "TIMESTAMP(9)", ""}, {"timestamptz", "TIMESTAMP(6) WITH LOCAL TIME ZONE", ""},
	{"timestamp(3) with time zone", "TIMESTAMP(3) WITH LOCAL TIME ZONE", ""}, {"timestamp_ltz(3)", "TIMESTAMP(3) WITH LOCAL TIME ZONE", ""},
	{"int[]", "ARRAY<INT>", ""}, {"array<tinyint>", "ARRAY<TINYINT>", ""}, {"text[]", "ARRAY<STRING>", ""}, {"array<int not null>", "ARRAY<INT NOT NULL>", ""},
	{"map<text, int>", "MAP<STRING, INT>", ""}, {"map<string, array<row<a int, b varchar(3)>>>", "MAP<STRING, ARRAY<ROW<`a` INT, `b` VARCHAR(3)>>>", ""},
	{"multiset<text>", "MULTISET<STRING>", ""}, {"row<x double, y numeric(5,1) not null>", "ROW<`x` DOUBLE, `y` DECIMAL(5, 1) NOT NULL>", ""},
	{"struct<x int>", "ROW<`x` INT>", ""}, {"variant", "VARIANT", ""}, {"uuid", "STRING", "uuid"}, {"json", "STRING", "json"}, {"jsonb", "STRING", "jsonb"},
	{"interval", "STRING", "interval"}, {"timetz", "STRING", "timetz"}, {"name", "STRING", "name"},
}

// createAllTypes makes a table with a column of every type.
func createAllTypes(t *testing.T, s *Session) {
	t.Helper()
	var cols []string
	for i, x := range allTypes {
		cols = append(cols, fmt.Sprintf("c%d %s", i, x.sql))
	}
	must(t, s, "CREATE TABLE every_type (id int PRIMARY KEY, "+strings.Join(cols, ", ")+")")
}

func TestTypesOfDefinitions(t *testing.T) {
	e := writeEngine(t, nil)
	createAllTypes(t, testSession(t, e))
	sch := defined(t, e, "public", "every_type")
	for i, x := range allTypes {
		f := sch.Fields[i+1]
		if got := types.PaimonString(f.Type); got != x.paimon || sch.Options["pg-type."+f.Name] != x.pg {
			t.Errorf("%s: stored as %s (%q), not %s (%q)", x.sql, got, sch.Options["pg-type."+f.Name], x.paimon, x.pg)
		}
	}
}

// TestJavaReadsDefinitions has Java tell what it takes our definitions for.
func TestJavaReadsDefinitions(t *testing.T) {
	dir := t.TempDir()
	java := oracle.Java(t, dir)
	e := writeEngine(t, fileio.NewLocal(dir))
	s := testSession(t, e)
	createAllTypes(t, s)
	must(t, s, `CREATE TABLE d (k int, p date, n int DEFAULT 7, s text DEFAULT 'it''s' COMMENT 'a comment', b boolean DEFAULT true,
		f date DEFAULT '2020-01-01', g timestamp DEFAULT '2020-01-01 10:00:00.5', h numeric(8,2) DEFAULT 1.5, i double DEFAULT -2, j time DEFAULT '10:00',
		x int DEFAULT 1 + 1, CHECK (n > 0), PRIMARY KEY (k, p)) PARTITIONED BY (p) COMMENT 'a table' WITH ('bucket' = '2', 'merge-engine' = 'deduplicate')`)
	for _, name := range []string{"every_type", "d"} {
		ours := defined(t, e, "public", name)
		reply := java.Do(t, map[string]any{"cmd": "describe", "table": "default." + name})
		var theirs struct {
			Fields        []json.RawMessage `json:"fields"`
			PartitionKeys []string          `json:"partitionKeys"`
			PrimaryKeys   []string          `json:"primaryKeys"`
			Options       map[string]string `json:"options"`
			Comment       string            `json:"comment"`
		}
		if err := json.Unmarshal(reply["schema"], &theirs); err != nil {
			t.Fatalf("%v in %s", err, reply["schema"])
		}
		if len(theirs.Fields) != len(ours.Fields) {
			t.Fatalf("%s: Java sees %d columns of %d", name, len(theirs.Fields), len(ours.Fields))
		}
		for i, raw := range theirs.Fields {
			f, err := types.ParsePaimonField(raw)
			if err != nil {
				t.Fatal(err)
			}
			a, _ := types.AppendPaimonField(nil, f)
			b, _ := types.AppendPaimonField(nil, ours.Fields[i])
			if string(a) != string(b) {
				t.Errorf("%s: Java takes %s for %s", name, b, a)
			}
		}
		if fmt.Sprint(theirs.PrimaryKeys, theirs.PartitionKeys, theirs.Comment) != fmt.Sprint(ours.PrimaryKeys, ours.PartitionKeys, ours.Comment) {
			t.Errorf("%s: keys and comment: %v", name, theirs)
		}
		for k, v := range ours.Options {
			if theirs.Options[k] != v {
				t.Errorf("%s: option %s is %q for Java", name, k, theirs.Options[k])
			}
		}
	}
	// Java's writer fills the constants in.
	java.Do(t, map[string]any{"cmd": "write", "table": "default.d", "rows": []map[string]any{{"k": 1, "p": "2024-01-01"}}})
	got := must(t, s, "SELECT n, s, b, f, g, h, i, j FROM d")
	if !strings.Contains(got, "(7, it's, t") && !strings.Contains(got, "(7, it's, true") {
		t.Errorf("defaults that Java wrote: %s", got)
	}
}

// TestShowCreateTable: the statement that SHOW CREATE TABLE prints makes the same
// table again.
func TestShowCreateTable(t *testing.T) {
	seed := random.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	e := writeEngine(t, nil)
	s := testSession(t, e)
	s.set.set("client_min_messages", "error", false) //nolint:errcheck // a known setting
	for i := range 60 {
		sql := randomTable(rng)
		must(t, s, sql)
		first := withoutTime(defined(t, e, "public", "r T"))
		show := showCreate(t, e, "r T")
		must(t, s, `DROP TABLE "r T"`)
		must(t, s, show)
		if second := withoutTime(defined(t, e, "public", "r T")); second != first {
			t.Fatalf("%d: %s\nprints\n%s\nwhich makes\n%s\nnot\n%s", i, sql, show, second, first)
		}
		if again := showCreate(t, e, "r T"); again != show {
			t.Fatalf("printed again:\n%s\nnot\n%s", again, show)
		}
		must(t, s, `DROP TABLE "r T"`)
	}
}

func showCreate(t *testing.T, e *Engine, name string) string {
	t.Helper()
	rel, err := e.cat.Resolve(context.Background(), "public", name, catalog.ResolveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sql, err := new(Session).createStatement(t.Context(), rel)
	if err != nil {
		t.Fatal(err)
	}
	return sql
}

func withoutTime(t *schema.Table) string {
	c := *t
	c.TimeMillis = 0
	b, err := schema.Encode(&c)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func randomTable(rng *rand.Rand) string {
	pick := func(n int) bool { return rng.IntN(n) == 0 }
	defaults := map[string][]string{
		"integer": {"1", "-7", "1 + 1", "length('abc')"}, "text": {"'x'", "'it''s'", "''", "upper('a') || 'b'", "'''quoted'''"},
		"numeric(10,2)": {"1.5", "-0.25"}, "date": {"'2020-01-01'", "current_date"}, "timestamptz": {"now()", "'2020-01-01 00:00:00+00'"},
		"jsonb": {`'{"a": 1}'`}, "bytea": {`'\x01'`}, "boolean": {"true", "false"}, "text[]": {"'{a,b}'"}, "interval": {"'1 day'"}, "varchar": {"'v'"},
	}
	var parts, names []string
	n := 2 + rng.IntN(6)
	for i := range n {
		ty := allTypes[rng.IntN(len(allTypes))].sql
		for d := range defaults {
			if pick(4) {
				ty = d
			}
		}
		name := fmt.Sprintf("c%d", i)
		if pick(3) {
			name = fmt.Sprintf(`"C %d"`, i)
		}
		names = append(names, name)
		if i == 0 {
			ty = "integer"
		}
		col := name + " " + ty
		if d := defaults[ty]; d != nil && pick(2) {
			col += " DEFAULT " + d[rng.IntN(len(d))]
		}
		if pick(4) {
			col += " NOT NULL"
		}
		if pick(4) {
			col += " COMMENT 'it''s a column'"
		}
		parts = append(parts, col)
	}
	if pick(2) {
		parts = append(parts, "PRIMARY KEY ("+names[0]+")")
	}
	if pick(2) {
		parts = append(parts, "CONSTRAINT \"a check\" CHECK ("+names[0]+" > 0 OR "+names[1]+" IS NULL)")
	}
	if pick(3) {
		parts = append(parts, "UNIQUE ("+names[1]+")")
	}
	sql := `CREATE TABLE "r T" (` + strings.Join(parts, ", ") + ")"
	if pick(3) {
		sql += " COMMENT 'a ''table'''"
	}
	if pick(2) {
		sql += " WITH ('snapshot.num-retained.max' = '20', 'my.option' = 'it''s')"
	}
	return sql
}

func TestDefinitionNotices(t *testing.T) {
	e := writeEngine(t, nil)
	s := testSession(t, e)
	for _, tc := range []struct{ sql, want string }{
		{"CREATE TABLE a (x int)", ""},
		{"CREATE TABLE IF NOT EXISTS a (x int)", `relation "a" already exists, skipping`},
		{"CREATE TABLE b (x time) WITH ('no.such.option' = 1)", "type time keeps milliseconds"},
		{"CREATE TABLE c (x time(3)) WITH (fillfactor = 70)", ""},
		{"CREATE TABLE d (x int UNIQUE)", `UNIQUE constraint "d_x_key" is kept but not enforced`},
		{"ALTER TABLE a ADD COLUMN IF NOT EXISTS x int", `column "x" of relation "a" already exists, skipping`},
		{"ALTER TABLE IF EXISTS nosuch ADD COLUMN x int", `relation "nosuch" does not exist, skipping`},
		{"ALTER TABLE a SET ('no.such.option' = 1)", `table option "no.such.option" is not known`},
		{"DROP TABLE IF EXISTS nosuch", `table "nosuch" does not exist, skipping`},
		{"DROP FUNCTION IF EXISTS nosuch", `function "nosuch" does not exist, skipping`},
		{"CREATE SCHEMA sc", ""},
		{"CREATE TABLE sc.t (x int)", ""},
		{"DROP SCHEMA sc CASCADE", "drop cascades to table sc.t"},
	} {
		got := must(t, s, tc.sql)
		if tc.want == "" && (strings.Contains(got, "NOTICE") || strings.Contains(got, "WARNING")) || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %s", tc.sql, got)
		}
	}
}

// TestConcurrentDefinition: of changes that many sessions make at once none is
// lost.
func TestConcurrentDefinition(t *testing.T) {
	e := writeEngine(t, nil)
	s := testSession(t, e)
	must(t, s, "CREATE TABLE c (id int)")
	must(t, s, "INSERT INTO c VALUES (1)")
	var wg sync.WaitGroup
	errs := make(chan string, 64)
	for i := range 8 {
		wg.Go(func() {
			s := testSession(t, e)
			for j := range 4 {
				sql := fmt.Sprintf("ALTER TABLE c ADD COLUMN c%d_%d int DEFAULT %d", i, j, i)
				if got := query(s, sql); strings.Contains(got, "ERROR") {
					errs <- sql + ": " + got
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for e := range errs {
		t.Error(e)
	}
	if n := len(defined(t, e, "public", "c").Fields); n != 33 {
		t.Errorf("%d columns, not 33", n)
	}
	expect(t, s, "SELECT c0_0, c7_3 FROM c", "(0, 7) SELECT 1 I")

	// One name, many makers: one wins.
	won := make(chan bool, 8)
	for range 8 {
		wg.Go(func() { won <- !strings.Contains(query(testSession(t, e), "CREATE TABLE one (a int)"), "ERROR") })
	}
	wg.Wait()
	close(won)
	n := 0
	for w := range won {
		if w {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d sessions made the table", n)
	}
}

// TestRollbackOfDefinition: a transaction that is rolled back leaves no file.
func TestRollbackOfDefinition(t *testing.T) {
	io := fileio.NewMem()
	e := writeEngine(t, io)
	s := testSession(t, e)
	must(t, s, "CREATE TABLE a (x int, y text)")
	must(t, s, "INSERT INTO a VALUES (1, 'one')")
	before := filesBelow(t, io, "")
	must(t, s, "BEGIN")
	must(t, s, "CREATE TABLE b AS SELECT * FROM a")
	must(t, s, "ALTER TABLE a ALTER COLUMN x TYPE text USING 'n' || x")
	must(t, s, "CREATE SCHEMA sc")
	must(t, s, "CREATE TABLE sc.t (LIKE a)")
	must(t, s, "DROP TABLE b")
	expect(t, s, "SELECT * FROM a", "(n1, one) SELECT 1 T")
	must(t, s, "ROLLBACK")
	if after := filesBelow(t, io, ""); after != before {
		t.Errorf("after ROLLBACK there is\n%s\nnot\n%s", after, before)
	}
	expect(t, s, "SELECT * FROM a", "(1, one) SELECT 1 I")
}

// filesBelow lists the files of a warehouse.
func filesBelow(t *testing.T, io fileio.FileIO, dir string) string {
	t.Helper()
	es, err := io.List(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range es {
		p := strings.TrimPrefix(dir+"/"+e.Name, "/")
		if e.Dir {
			b.WriteString(filesBelow(t, io, p))
			continue
		}
		b.WriteString(p + "\n")
	}
	return b.String()
}

// TestRewriteConflict: rows that another process adds while a type is changed are
// not lost, and do not lack a value.
func TestRewriteConflict(t *testing.T) {
	io := fileio.NewMem()
	a, b := writeEngine(t, io), writeEngine(t, io)
	s, other := testSession(t, a), testSession(t, b)
	for _, table := range []string{"CREATE TABLE r (id int, v text)", "CREATE TABLE r (id int PRIMARY KEY, v text)"} {
		must(t, s, table)
		must(t, s, "INSERT INTO r VALUES (1, '10')")
		must(t, s, "BEGIN")
		must(t, s, "ALTER TABLE r ALTER COLUMN v TYPE int USING v::int")
		must(t, other, "INSERT INTO r VALUES (2, '20')")
		if got := query(s, "COMMIT"); !strings.Contains(got, "40001") {
			t.Errorf("%s: COMMIT says %s", table, got)
		}
		expect(t, s, "SELECT * FROM r ORDER BY id", "(1, 10) (2, 20) SELECT 2 I")
		expect(t, s, "SELECT pg_typeof(v)::text FROM r LIMIT 1", "(text) SELECT 1 I")
		must(t, s, "DROP TABLE r")
	}
}

// TestTemporaryTables: they are the session's own, and leave nothing.
func TestTemporaryTables(t *testing.T) {
	e := writeEngine(t, nil)
	s, other := testSession(t, e), testSession(t, e)
	must(t, s, "CREATE TEMP TABLE t (a int)")
	must(t, other, "CREATE TEMP TABLE t (a text)")
	must(t, s, "INSERT INTO t VALUES (1)")
	must(t, other, "INSERT INTO t VALUES ('x'), ('y')")
	expect(t, s, "SELECT * FROM t", "(1) SELECT 1 I")
	expect(t, other, "SELECT * FROM t ORDER BY a", "(x) (y) SELECT 2 I")
	if got := query(other, "SELECT * FROM "+s.tempSchema()+".t"); !strings.Contains(got, "42P01") {
		t.Errorf("another session's table: %s", got)
	}
	dir := s.temp.dir.path
	s.Close()
	if _, err := fileio.NewLocal(dir).Stat(context.Background(), "."); err == nil {
		if es, _ := fileio.NewLocal(dir).List(context.Background(), ""); len(es) > 0 {
			t.Errorf("%s is still there", dir)
		}
	}
}

func TestObjectNames(t *testing.T) {
	long := strings.Repeat("x", 60)
	for _, tc := range []struct{ a, b, label, want string }{
		{"t", "c", "check", "t_c_check"},
		{"t", "", "check", "t_check"},
		{long, "c", "check", long[:55] + "_c_check"},
		{long, long, "key", long[:29] + "_" + long[:29] + "_key"},
		{strings.Repeat("ä", 40), "", "check", strings.Repeat("ä", 28) + "_check"},
	} {
		if got := catalog.ObjectName(tc.a, tc.b, tc.label); got != tc.want || len(got) > 63 {
			t.Errorf("%s + %s: %s (%d bytes), not %s", tc.a, tc.b, got, len(got), tc.want)
		}
	}
}
