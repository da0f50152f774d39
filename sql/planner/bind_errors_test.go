package planner

import (
	"errors"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// TestBinderErrors checks codes, messages and places against PostgreSQL 15.
func TestBinderErrors(t *testing.T) {
	c := tpchCat(t)
	c.ddl(t, `CREATE TABLE t (a int, b text, c int[], d jsonb, r row<x int, y text>, m map<text, int>);
		CREATE TABLE u (a int, z int)`)
	cases := []struct {
		sql, code, msg string
		pos            int
		hint           string
	}{
		{"SELECT nope FROM t", "42703", `column "nope" does not exist`, 8, ""},
		{"SELECT t.nope FROM t", "42703", `column t.nope does not exist`, 8, ""},
		{"SELECT r_regiabcdonkey FROM region", "42703", `column "r_regiabcdonkey" does not exist`, 8, ""},
		{"SELECT regionkey FROM region", "42703", `column "regionkey" does not exist`, 8, `Perhaps you meant to reference the column "region.r_regionkey".`},
		{"SELECT é, nope FROM (SELECT 1 AS é) x", "42703", `column "nope" does not exist`, 11, ""},
		{"SELECT x.a FROM t", "42P01", `missing FROM-clause entry for table "x"`, 8, ""},
		{"SELECT t.a FROM t x", "42P01", `invalid reference to FROM-clause entry for table "t"`, 8, `Perhaps you meant to reference the table alias "x".`},
		{"SELECT * FROM t, (SELECT t.a) y", "42P01", `invalid reference to FROM-clause entry for table "t"`, 26, `There is an entry for table "t", but it cannot be referenced from this part of the query.`},
		{"SELECT * FROM nope", "42P01", `relation "nope" does not exist`, 15, ""},
		{"SELECT a FROM t, u", "42702", `column reference "a" is ambiguous`, 8, ""},
		{"SELECT 1 FROM t, t", "42712", `table name "t" specified more than once`, 0, ""},
		{"SELECT a, count(*) FROM t", "42803", `column "t.a" must appear in the GROUP BY clause or be used in an aggregate function`, 8, ""},
		{"SELECT b FROM t GROUP BY a", "42803", `column "t.b" must appear in the GROUP BY clause or be used in an aggregate function`, 8, ""},
		{"SELECT (SELECT t.b) FROM t GROUP BY a", "42803", `subquery uses ungrouped column "t.b" from outer query`, 16, ""},
		{"SELECT a FROM t WHERE count(*) > 1", "42803", `aggregate functions are not allowed in WHERE`, 23, ""},
		{"SELECT sum(max(a)) FROM t", "42803", `aggregate function calls cannot be nested`, 12, ""},
		{"SELECT 1 FROM t GROUP BY count(*)", "42803", `aggregate functions are not allowed in GROUP BY`, 26, ""},
		{"SELECT 1 FROM t JOIN u ON max(z) = 1", "42803", `aggregate functions are not allowed in JOIN conditions`, 27, ""},
		{"SELECT a FROM t ORDER BY 2", "42P10", `ORDER BY position 2 is not in select list`, 26, ""},
		{"SELECT a FROM t GROUP BY 3", "42P10", `GROUP BY position 3 is not in select list`, 26, ""},
		{"SELECT a AS x, b AS x FROM t ORDER BY x", "42702", `ORDER BY "x" is ambiguous`, 39, ""},
		{"SELECT DISTINCT a FROM t ORDER BY b", "42P10", `for SELECT DISTINCT, ORDER BY expressions must appear in select list`, 35, ""},
		{"SELECT DISTINCT ON (a) a FROM t ORDER BY b, a", "42P10", `SELECT DISTINCT ON expressions must match initial ORDER BY expressions`, 21, ""},
		{"SELECT 1 UNION SELECT 'a'", "22P02", `invalid input syntax for type integer: "a"`, 23, ""},
		{"SELECT 1 UNION SELECT true", "42804", `UNION types integer and boolean cannot be matched`, 23, ""},
		{"SELECT a FROM t UNION SELECT a, z FROM u", "42601", `each UNION query must have the same number of columns`, 30, ""},
		{"SELECT a FROM t UNION SELECT z FROM u ORDER BY a + 1", "0A000", `invalid UNION/INTERSECT/EXCEPT ORDER BY clause`, 48, ""},
		{"VALUES (1), (1, 2)", "42601", `VALUES lists must all be the same length`, 14, ""},
		{"SELECT a + true FROM t", "42883", `operator does not exist: integer + boolean`, 10, `No operator matches the given name and argument types. You might need to add explicit type casts.`},
		{"SELECT - b FROM t", "42883", `operator does not exist: - text`, 8, `No operator matches the given name and argument type. You might need to add an explicit type cast.`},
		{"SELECT foo(a, b, 1.5, NULL) FROM t", "42883", `function foo(integer, text, numeric, unknown) does not exist`, 8, `No function matches the given name and argument types. You might need to add explicit type casts.`},
		{"SELECT CASE WHEN true THEN 1 ELSE true END", "42804", `CASE types boolean and integer cannot be matched`, 28, ""},
		{"SELECT CASE WHEN 1 THEN 2 END", "42804", `argument of CASE/WHEN must be type boolean, not type integer`, 18, ""},
		{"SELECT 1 WHERE 5", "42804", `argument of WHERE must be type boolean, not type integer`, 16, ""},
		{"SELECT a AND true FROM t", "42804", `argument of AND must be type boolean, not type integer`, 8, ""},
		{"SELECT true::date", "42846", `cannot cast type boolean to date`, 12, ""},
		{"SELECT CAST(1 AS nope)", "42704", `type "nope" does not exist`, 18, ""},
		{"SELECT 'x'::int", "22P02", `invalid input syntax for type integer: "x"`, 8, ""},
		{"SELECT a = 'x' FROM t", "22P02", `invalid input syntax for type integer: "x"`, 12, ""},
		{"SELECT (SELECT a, b FROM t)", "42601", `subquery must return only one column`, 8, ""},
		{"SELECT a IN (SELECT a, z FROM u) FROM t", "42601", `subquery has too many columns`, 10, ""},
		{"SELECT (a, b) IN (SELECT a FROM u) FROM t", "42601", `subquery has too few columns`, 15, ""},
		{"SELECT (1, 2) = (1, 2, 3)", "42601", `unequal number of entries in row expressions`, 15, ""},
		{"SELECT a[1] FROM t", "42804", `cannot subscript type integer because it does not support subscripting`, 8, ""},
		{"SELECT (r).nope FROM t", "42703", `column "nope" not found in data type row<x integer, y text>`, 9, ""},
		{"SELECT (a).x FROM t", "42809", `column notation .x applied to type integer, which is not a composite type`, 9, ""},
		{"SELECT row_number() FROM t", "42809", `window function row_number requires an OVER clause`, 8, ""},
		{"SELECT length(b) OVER () FROM t", "42809", `OVER specified, but length is not a window function nor an aggregate function`, 8, ""},
		{"SELECT 1 FROM t WHERE row_number() OVER () > 1", "42P20", `window functions are not allowed in WHERE`, 23, ""},
		{"SELECT rank() OVER w FROM t", "42704", `window "w" does not exist`, 20, ""},
		{"SELECT sum(rank() OVER ()) OVER () FROM t", "42P20", `window function calls cannot be nested`, 12, ""},
		{"SELECT sum(rank() OVER ()) FROM t", "42803", `aggregate function calls cannot contain window function calls`, 12, ""},
		{"SELECT sum(a) OVER (w ORDER BY a) FROM t WINDOW w AS (ORDER BY b)", "42P20", `cannot override ORDER BY clause of window "w"`, 20, ""},
		{"SELECT sum(a) OVER (RANGE 1 PRECEDING) FROM t", "42P20", `RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column`, 20, ""},
		{"SELECT count(DISTINCT a) OVER () FROM t", "0A000", `DISTINCT is not implemented for window functions`, 8, ""},
		{"SELECT length(DISTINCT b) FROM t", "42809", `DISTINCT specified, but length is not an aggregate function`, 8, ""},
		{"SELECT count() FROM t", "42809", `count(*) must be used to call a parameterless aggregate function`, 8, ""},
		{"SELECT 1 LIMIT a FROM t", "42601", "", 0, ""},
		{"SELECT a FROM t LIMIT a", "42P10", `argument of LIMIT must not contain variables`, 23, ""},
		{"SELECT a FROM t LIMIT true", "42804", `argument of LIMIT must be type bigint, not type boolean`, 23, ""},
		{"SELECT generate_series(1, 2) FROM t WHERE generate_series(1, 2) > 1", "0A000", `set-returning functions are not allowed in WHERE`, 43, ""},
		{"SELECT * FROM t JOIN u USING (z)", "42703", `column "z" specified in USING clause does not exist in left table`, 0, ""},
		{"SELECT *", "42601", `SELECT * with no tables specified is not valid`, 8, ""},
		{"SELECT nope.* FROM t", "42P01", `missing FROM-clause entry for table "nope"`, 8, ""},
		{"SELECT * FROM (SELECT 1)", "42601", `subquery in FROM must have an alias`, 15, `For example, FROM (SELECT ...) [AS] foo.`},
		{"SELECT * FROM (VALUES (1)) v(a, b)", "42P10", `table "v" has 1 columns available but 2 columns specified`, 0, ""},
		{"WITH x AS (SELECT 1), x AS (SELECT 2) SELECT 1", "42712", `WITH query name "x" specified more than once`, 23, ""},
		{"WITH RECURSIVE x AS (SELECT 1 FROM x) SELECT 1", "42P19", `recursive query "x" does not have the form non-recursive-term UNION [ALL] recursive-term`, 16, ""},
		{"WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT count(*)::int FROM x) SELECT 1", "42P19", `aggregate functions are not allowed in a recursive query's recursive term`, 51, ""},
		{"WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1.5 FROM x) SELECT 1", "42804", `recursive query "x" column 1 has type integer in non-recursive term but type numeric overall`, 32, ""},
		{"WITH x AS (DELETE FROM t RETURNING a) SELECT 1", "0A000", `data-modifying statements in WITH are not supported`, 6, ""},
		{"SELECT $1 IS NULL", "42P18", `could not determine data type of parameter $1`, 0, ""},
		{"SELECT $2::int", "42P18", `could not determine data type of parameter $1`, 0, ""},
		{"SELECT ARRAY[]", "42P18", `cannot determine type of empty array`, 8, `Explicitly cast to the desired type, for example ARRAY[]::integer[].`},
		{"SELECT 1 = ANY (2)", "42809", `op ANY/ALL (array) requires array on right side`, 10, ""},
		{"SELECT GROUPING(b) FROM t GROUP BY a", "42803", `arguments to GROUPING must be grouping expressions of the associated query level`, 17, ""},
		{"SELECT DEFAULT", "42601", `DEFAULT is not allowed in this context`, 8, ""},
		{"SELECT b COLLATE nope FROM t", "42704", `collation "nope" for encoding "UTF8" does not exist`, 10, ""},
		{"SELECT a COLLATE \"C\" FROM t", "42804", `collations are not supported by type integer`, 10, ""},
		{"SELECT a FROM t FOR UPDATE OF nope", "42P01", `relation "nope" in FOR UPDATE clause not found in FROM clause`, 31, ""},
		{"SELECT count(*) FROM t FOR UPDATE", "0A000", `FOR UPDATE is not allowed with aggregate functions`, 0, ""},
		{"SELECT numeric(2000) '1'", "22023", `NUMERIC precision 2000 must be between 1 and 1000`, 8, ""},
	}
	for _, x := range cases {
		_, err := planText(c, x.sql, Options{})
		var e *pgerr.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: no error, want %s %s", x.sql, x.code, x.msg)
			continue
		}
		if x.msg == "" { // the parser's
			continue
		}
		if e.Code.String() != x.code || e.Message != x.msg || x.pos > 0 && e.Position != x.pos || x.hint != "" && e.Hint != x.hint {
			t.Errorf("%s\n  got  %s %s at %d (%s)\n  want %s %s at %d (%s)", x.sql, e.Code, e.Message, e.Position, e.Hint, x.code, x.msg, x.pos, x.hint)
		}
	}
}

// TestDepth nests what can be nested: beyond MaxDepth it is 54001, not a
// crashed process.
func TestDepth(t *testing.T) {
	c := tpchCat(t)
	n := 200
	deep := map[string]string{
		"not":        "SELECT " + strings.Repeat("NOT ", n) + "true",
		"call":       "SELECT " + strings.Repeat("abs(", n) + "1" + strings.Repeat(")", n),
		"subquery":   strings.Repeat("SELECT (", n) + "SELECT 1" + strings.Repeat(")", n),
		"from":       strings.Repeat("SELECT * FROM (", n) + "SELECT 1" + strings.Repeat(") x", n),
		"case":       "SELECT " + strings.Repeat("CASE WHEN true THEN ", n) + "1" + strings.Repeat(" END", n),
		"array":      "SELECT " + strings.Repeat("ARRAY[", n) + "1" + strings.Repeat("]", n),
		"exists":     strings.Repeat("SELECT 1 WHERE EXISTS (", n) + "SELECT 1" + strings.Repeat(")", n),
		"union":      "SELECT 1" + strings.Repeat(" UNION ALL SELECT 1", n),
		"with":       strings.Repeat("WITH x AS (", n) + "SELECT 1" + strings.Repeat(") SELECT * FROM x", n),
		"join":       "SELECT 1 FROM region a0" + strings.Repeat(" CROSS JOIN (SELECT 1) x", 1) + strings.Repeat("", n),
		"type":       "SELECT NULL::" + strings.Repeat("array<", n) + "int" + strings.Repeat("> ", n),
		"parens_set": strings.Repeat("(", n) + "SELECT 1" + strings.Repeat(" UNION SELECT 2)", n),
	}
	for name, sql := range deep {
		_, err := planText(c, sql, Options{MaxDepth: 60})
		if name == "join" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !pgerr.Is(err, pgerr.StatementTooComplex) {
			t.Errorf("%s: %v, want 54001", name, err)
		}
	}
	// Long is not deep.
	long := "SELECT 1 FROM region WHERE r_regionkey IN (0" + strings.Repeat(", 1", 5000) + ") AND (r_name = 'x'" + strings.Repeat(" OR r_name = 'y'", 2000) + ")"
	if _, err := planText(c, long, Options{MaxDepth: 60}); err != nil {
		t.Error(err)
	}
}
