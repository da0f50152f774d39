package parser

import (
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// TestFormat checks trees by how they print: operands that are operators are
// in parentheses, so precedence and association show.
func TestFormat(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		// Operators.
		{"select 1+2*3-4", "SELECT (1 + (2 * 3)) - 4"},
		{"select -2^2", "SELECT (- 2) ^ 2"},
		{"select 2^3^2", "SELECT (2 ^ 3) ^ 2"},
		{"select a || b -> c", "SELECT (a || b) -> c"},
		{"select 1 + @ 2 * 3", "SELECT 1 + (@ (2 * 3))"},
		{"select not a = b and c", "SELECT (NOT (a = b)) AND c"},
		{"select a or b or c and d and e", "SELECT a OR b OR (c AND d AND e)"},
		{"select (a or b) or c, a or (b or c)", "SELECT a OR b OR c, a OR (b OR c)"},
		{"select 1 + not a = b", "SELECT 1 + (NOT (a = b))"},
		{"select a = b is null = c", "SELECT ((a = b) IS NULL) = c"},
		{"select a is distinct from b + c", "SELECT a IS DISTINCT FROM (b + c)"},
		{"select a between b and c and d", "SELECT (a BETWEEN b AND c) AND d"},
		{"select a between b = c and d", "SELECT a BETWEEN (b = c) AND d"},
		{"select a not like b escape 'x' || c", "SELECT a NOT LIKE b ESCAPE ('x' || c)"},
		{"select a in (1) in (true)", "SELECT (a IN (1)) IN (TRUE)"},
		{"select a != b, a notnull", "SELECT a <> b, a IS NOT NULL"},
		{"select a::int::text, -a::int", "SELECT (a::integer)::text, - (a::integer)"},
		{"select a collate \"C\" || b at time zone 'x'", `SELECT (a COLLATE "C") || (b AT TIME ZONE 'x')`},
		{"select a operator(pg_catalog.+) b", "SELECT a OPERATOR(pg_catalog.+) b"},
		{"select a = any (b), a like all (select 1)", "SELECT a = ANY (b), a ~~ ALL (SELECT 1)"},
		// Parentheses.
		{"select ((select 1) + 2)", "SELECT (SELECT 1) + 2"},
		{"select ((select 1) union select 2)", "SELECT (SELECT 1 UNION SELECT 2)"},
		{"select 1 in ((select 2)), 1 in ((select 2), 3)", "SELECT 1 IN (SELECT 2), 1 IN ((SELECT 2), 3)"},
		{"select (1, 2), row(), (1)", "SELECT (1, 2), ROW(), 1"},
		{"select (r).f, (r).*, r.a[1].b, $1[2]", "SELECT (r).f, (r).*, r.a[1].b, $1[2]"},
		{"(select 1 order by a) limit 2", "SELECT 1 ORDER BY a LIMIT 2"},
		{"(select 1 limit 1) union (select 2)", "(SELECT 1 LIMIT 1) UNION SELECT 2"},
		{"select 1 union select 2 intersect select 3", "SELECT 1 UNION (SELECT 2 INTERSECT SELECT 3)"},
		// Labels.
		{"select a b, a as select, 1 and from t", `SELECT a AS b, a AS "select", 1 AS "and" FROM t`},
		{"select date '2024-01-01', interval '1' day to hour, numeric(3,1) '1'", "SELECT date '2024-01-01', INTERVAL '1' DAY TO HOUR, numeric(3, 1) '1'"},
		// Functions.
		{"select position(a in b), trim(both ' ' from a), extract(year from d)", "SELECT POSITION(a IN b), TRIM(BOTH FROM a, ' '), EXTRACT('year' FROM d)"},
		{"select substring(a for 3)", "SELECT SUBSTRING(a FROM 1 FOR CAST(3 AS integer))"},
		{"select f(a, variadic b order by c) filter (where d) over (partition by e rows 1 preceding)", "SELECT f(a, VARIADIC b ORDER BY c) FILTER (WHERE d) OVER ( PARTITION BY e ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"},
		{"select f(x := 1, y => 2)", "SELECT f(x => 1, y => 2)"},
		{"select (1,2) overlaps (3,4)", "SELECT (1, 2) OVERLAPS (3, 4)"},
		// FROM.
		{"table t", "SELECT * FROM t"},
		{"select from a join b join c on x on y", "SELECT FROM a JOIN (b JOIN c ON x) ON y"},
		{"select from ((a join b using (c) as d)) as e", "SELECT FROM (a JOIN b USING (c) AS d) AS e"},
		{"select from f() with ordinality as t(a), g() as (b int)", "SELECT FROM f() WITH ORDINALITY AS t (a), g() AS  (b integer)"},
		{"select 1 fetch first row only", "SELECT 1 LIMIT 1"},
		// The lake dialects.
		{"select * from t$snapshots, `t$branch_b1$files`", "SELECT * FROM t$snapshots, t$branch_b1$files"},
		{"select * from default.t", `SELECT * FROM "default".t`},
		{"select * from t for version as of 3 x", "SELECT * FROM t FOR VERSION AS OF 3 AS x"},
		{"select * from t timestamp as of '2024-01-01'", "SELECT * FROM t FOR TIMESTAMP AS OF '2024-01-01'"},
		{"select * from t /*+ OPTIONS('scan.snapshot-id'='3') */ x", "SELECT * FROM t /*+ OPTIONS('scan.snapshot-id' = '3') */ AS x"},
		{"select * from t /*+ not a hint */", "SELECT * FROM t"},
		{"select map['a', 1], map[], map[1]", "SELECT map['a', 1], map[], \"map\"[1]"},
		{"insert overwrite table t partition (dt = 'a') select 1", "INSERT OVERWRITE t PARTITION (dt = 'a') SELECT 1"},
		{"upsert into t values (1)", "UPSERT INTO t VALUES (1)"},
		{"merge into t using s on a when matched then update set * when not matched then insert * when not matched by source then delete", "MERGE INTO t USING s ON a WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN DELETE"},
		{"create table t (a map<int, array<row<x int not null, y string>>>, primary key (a) not enforced) partitioned by (a) comment 'c' with (merge-engine = 'x', 'k' = 'v', sequence.field = b)", "CREATE TABLE t (a map<integer, array<row<x integer NOT NULL, y string>>>, PRIMARY KEY (a) NOT ENFORCED) PARTITIONED BY (a) COMMENT 'c' WITH ('merge-engine' = 'x', k = 'v', 'sequence.field' = b)"},
		{"alter table t add column r.x int first, drop partition (dt = 'a')", "ALTER TABLE t ADD COLUMN r.x integer FIRST, DROP PARTITION (dt = 'a')"},
		{"call sys.compact(table => 't')", `CALL sys.compact("table" => 't')`},
		{"show create table t", "SHOW CREATE TABLE t"},
		{"describe t", "DESCRIBE t"},
		// Settings go by their own names.
		{"set time zone 'UTC'", "SET timezone TO 'UTC'"},
		{"set search_path = a, \"B\"", "SET search_path TO 'a', 'B'"},
		{"copy t from stdin csv header", "COPY t FROM STDIN WITH (format 'csv', header 'true')"},
	} {
		stmts, err := Parse(c.sql)
		if err != nil {
			t.Errorf("%s: %v", c.sql, err)
			continue
		}
		if got := ast.Format(stmts[0]); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.sql, got, c.want)
		}
		if bad := roundTrip(c.sql); bad != "" {
			t.Errorf("%s: %s", c.sql, bad)
		}
	}
}

// TestErrors holds PostgreSQL 15's own answers.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		sql, want string
		pos       int
	}{
		{"select", "", 0},
		{"select 1 +", "syntax error at end of input", 11},
		{"selec 1", `syntax error at or near "selec"`, 1},
		{"select a from where", `syntax error at or near "where"`, 15},
		{"select 'é', from", `syntax error at or near "from"`, 13},
		{"select 1; select )", `syntax error at or near ")"`, 18},
		{"select a = b = c", `syntax error at or near "="`, 14},
		{"select a not b", `syntax error at or near "b"`, 14},
		{"select 'abc", `unterminated quoted string at or near "'abc"`, 8},
		{`select "abc`, `unterminated quoted identifier at or near ""abc"`, 8},
		{`select ""`, `zero-length delimited identifier at or near """"`, 8},
		{"select 1 /* a", `unterminated /* comment at or near "/* a"`, 10},
		{"select $$a", `unterminated dollar-quoted string at or near "$$a"`, 8},
		{"select 123abc", `trailing junk after numeric literal at or near "123abc"`, 8},
		{"select 1e5$x", `trailing junk after numeric literal at or near "1e5$x"`, 8},
		{"select $1a", `trailing junk after parameter at or near "$1a"`, 8},
		{`select E'\u00'`, "invalid Unicode escape", 10},
		{`select E'\uD800x'`, `invalid Unicode surrogate pair at or near "x"`, 16},
		{`select U&'\00'`, "invalid Unicode escape", 11},
		{"select U&'a' uescape '+'", `invalid Unicode escape character at or near "'+'"`, 22},
		{"select * from a.b.c.d", "improper qualified name (too many dotted names): a.b.c.d", 15},
		{"select a.*.b", `improper use of "*" at end of input`, 13},
		{"select * from (select 1)", "subquery in FROM must have an alias", 15},
		{"(select 1 limit 1) limit 2", "multiple LIMIT clauses not allowed", 26},
		{"select 1 limit 1, 2", "LIMIT #,# syntax is not supported", 10},
		{"select (1,2,3) overlaps (4,5)", "wrong number of parameters on left side of OVERLAPS expression", 8},
		{"create table t (a int collate \"C\" collate \"D\")", "multiple COLLATE clauses not allowed", 35},
		{"create role public", `role name "public" is reserved`, 13},
		{"create trigger t before insert or on u", `syntax error at or near "on"`, 35},
		{"alter table t foo", `syntax error at or near "foo"`, 15},
		{"create foo", `syntax error at or near "foo"`, 8},
		{"explain create table t (a int)", `syntax error at or near "int"`, 27},
	} {
		_, err := Parse(c.sql)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.sql, err)
			}
			continue
		}
		pos, msg := errorOf(err)
		if msg != c.want || pos != c.pos {
			t.Errorf("%s:\n got %d %s\nwant %d %s", c.sql, pos, msg, c.pos, c.want)
		}
	}
}

func TestStrings(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{`'it''s'`, "it's"},
		{"'a'\n  -- c\n 'b'", "ab"},
		{`E'\n\t\x41\101\u0041\U00000041\'\\'`, "\n\tAAAA'\\"},
		{`E'\uD83D\uDE00'`, "\U0001F600"},
		{`U&'d\0061t\+000061\\'`, `data\`},
		{`U&'d!0061' uescape '!'`, "da"},
		{`'a\b'`, `a\b`},
		{"$$a'b$$", "a'b"},
		{"$x$a$$b$x$", "a$$b"},
	} {
		e, err := ParseExpr(c.sql)
		if err != nil {
			t.Errorf("%s: %v", c.sql, err)
			continue
		}
		if s, ok := e.(*ast.String); !ok || s.Value != c.want {
			t.Errorf("%s: got %q, want %q", c.sql, ast.Format(e), c.want)
		}
	}
}

func TestTypes(t *testing.T) {
	for _, c := range []struct{ sql, name, format string }{
		{"INT", "int4", "integer"},
		{"double precision", "float8", "double precision"},
		{"float(24)", "float4", "real"},
		{"char", "bpchar", "char(1)"},
		{`"char"`, "char", `"char"`},
		{"character varying(3)[][4]", "varchar", "varchar(3)[][4]"},
		{"timestamp(3) with local time zone", "timestamptz", "timestamp(3) WITH TIME ZONE"},
		{"interval day to second(3)", "interval", "interval DAY TO SECOND(3)"},
		{"map<text, array<array<int>>>", "map", "map<text, array<array<integer>>>"},
		{"struct<a: int, b: string>", "struct", "struct<a integer, b string>"},
		{"s.t[]", "s.t", "s.t[]"},
	} {
		ty, err := ParseType(c.sql)
		if err != nil {
			t.Errorf("%s: %v", c.sql, err)
			continue
		}
		if ty.Name.String() != c.name || ast.Format(ty) != c.format {
			t.Errorf("%s: got %s %s, want %s %s", c.sql, ty.Name, ast.Format(ty), c.name, c.format)
		}
	}
}

func TestStatements(t *testing.T) {
	sql := " ; select 1 ;\n-- c\n select 'é' ; ;"
	stmts, err := Parse(sql)
	if err != nil || len(stmts) != 2 {
		t.Fatalf("got %d statements, %v", len(stmts), err)
	}
	r := stmts[1].Range()
	if r.Text != "select 'é'" || sql[r.Pos:r.End] != r.Text {
		t.Errorf("got %q, %d to %d", r.Text, r.Pos, r.End)
	}
	if n := CharPosition("é x", 3); n != 3 {
		t.Errorf("CharPosition is %d", n)
	}
	for _, s := range []string{"", " ", ";;", "-- c", "/* c */"} {
		if stmts, err := Parse(s); err != nil || len(stmts) != 0 {
			t.Errorf("%q: %d statements, %v", s, len(stmts), err)
		}
	}
}

// TestDepth checks that what nests ends in 54001 and what is long does not.
func TestDepth(t *testing.T) {
	const n = 50_000
	rep := strings.Repeat
	for name, sql := range map[string]string{
		"parentheses": "select " + rep("(", n) + "1" + rep(")", n),
		"open":        "select " + rep("(", n),
		"minus":       "select " + rep("- ", n) + "1",
		"not":         "select " + rep("not ", n) + "a",
		"plus":        "select 1" + rep("+1", n),
		"cast":        "select 1" + rep("::int", n),
		"call":        "select " + rep("f(", n) + rep(")", n),
		"case":        "select " + rep("case when ", n),
		"array":       "select array" + rep("[", n),
		"map":         "select " + rep("map[", n),
		"subscript":   "select a" + rep("[1]", n),
		"field":       "select (a)" + rep(".b", n),
		"try_cast":    "select " + rep("try_cast(", n),
		"subquery":    rep("select (", n),
		"from":        "select * from " + rep("(", n),
		"join":        "select * from a" + rep(" join b", n),
		"joins":       "select * from a" + rep(" cross join b", n),
		"union":       "select 1" + rep(" union select 1", n),
		"with":        rep("with a as (", n),
		"type":        "select null::" + rep("array<", n),
		"grouping":    "select group by " + rep("grouping sets (", n),
		"atomic":      rep("create function f() begin atomic ", n),
	} {
		_, err := Parse(sql)
		if !pgerr.Is(err, pgerr.StatementTooComplex) {
			if len(err.Error()) > 100 {
				t.Errorf("%s: %.100s", name, err.Error())
			} else {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for name, sql := range map[string]string{
		"or":       "select a" + rep(" or a", n),
		"in":       "select a in (1" + rep(",1", n) + ")",
		"rows":     "values (1)" + rep(",(1)", n),
		"comments": "select " + rep("/* ", n) + rep("*/ ", n) + "1",
	} {
		if _, err := Parse(sql); err != nil {
			t.Errorf("%s: %.100s", name, err.Error())
		}
	}
}
