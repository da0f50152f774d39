package interop

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
)

// warehouse is a warehouse that both sides write to.
type warehouse struct {
	t    *testing.T
	dir  string
	s    *engine.Session
	java *oracle.Client
}

// shared opens an empty warehouse.
func shared(t *testing.T) *warehouse {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "warehouse")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	j := oracle.Java(t, dir)
	e, err := engine.Open(t.Context(), engine.Config{Warehouse: dir, AnyDatabase: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.OpenSession(t.Context(), engine.Startup{User: "tester", Database: "paimon"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		e.Close() //nolint:errcheck // the test is over
	})
	w := &warehouse{t, dir, s, j}
	w.sql("SET TimeZone = 'UTC'", "create schema d", "set search_path = d")
	return w
}

// sql runs statements that must succeed.
func (w *warehouse) sql(list ...string) {
	w.t.Helper()
	for _, q := range list {
		if err := w.s.Query(w.t.Context(), q, &collector{}); err != nil {
			w.t.Fatalf("%s: %v", q, err)
		}
	}
}

// agree has both read a table: the rows are the same, and Java's examination
// finds nothing.
func (w *warehouse) agree(table string) {
	w.t.Helper()
	rows := w.java.Rows(w.t, "d."+table, nil)
	k := kase{query: `select * from "` + table + `"`, expected: rows}
	if kind, why := ask(w.s, k, w.dir); kind != "passed" {
		w.t.Errorf("%s: %s: %s", table, kind, why)
	}
	w.java.Check(w.t, "d."+table)
}

// count is how many rows a query has.
func (w *warehouse) count(q string, want int) {
	w.t.Helper()
	c := &collector{}
	if err := w.s.Query(w.t.Context(), q, c); err != nil {
		w.t.Fatalf("%s: %v", q, err)
	}
	if len(c.res.rows) != want {
		w.t.Errorf("%s: %d rows, want %d", q, len(c.res.rows), want)
	}
}

// everyType are columns of every type, and values: the usual, the extreme, NULL.
var everyType = []struct{ name, typ, values string }{
	{"c_bool", "boolean", "true|false|true"},
	{"c_tiny", "tinyint", "-128|127|0"},
	{"c_small", "smallint", "-32768|32767|7"},
	{"c_int", "int", "-2147483648|2147483647|1"},
	{"c_big", "bigint", "-9223372036854775808|9223372036854775807|0"},
	{"c_real", "real", "'NaN'::real|'-Infinity'::real|1.5"},
	{"c_double", "double precision", "1e308|'NaN'::float8|-0.1"},
	{"c_dec9", "numeric(9,2)", "1234567.89|-0.01|0"},
	{"c_dec18", "numeric(18,5)", "-1234567890123.12345|0.00001|12"},
	{"c_dec38", "numeric(38,10)", "9999999999999999999999999999.9999999999|-0.0000000001|1.5"},
	{"c_char", "char(5)", "'ab'|'abcde'|''"},
	{"c_varchar", "varchar(20)", "'żółw'|'a'|''"},
	{"c_text", "text", "repeat('long ', 40)|'quote''s \\ \t tab'|'日本'"},
	{"c_bytes", "bytea", "'\\x00ff10'::bytea|''::bytea|'\\x41'::bytea"},
	{"c_varbin", "varbinary(10)", "'\\x0102'::bytea|''::bytea|'\\xff'::bytea"},
	{"c_date", "date", "'0001-01-01'|'9999-12-31'|'1970-01-01'"},
	{"c_time", "time(3)", "'00:00:00'|'23:59:59.999'|'12:34:56.7'"},
	{"c_ts0", "timestamp(0)", "'2024-02-29 23:59:59'|'1969-12-31 23:59:59'|'2000-01-01'"},
	{"c_ts3", "timestamp(3)", "'2024-02-29 23:59:59.123'|'1969-12-31 23:59:59.999'|'2000-01-01'"},
	{"c_ts6", "timestamp(6)", "'2024-02-29 23:59:59.123456'|'1900-01-01 00:00:00.000001'|'2000-01-01'"},
	{"c_tz", "timestamptz(6)", "'2024-02-29 23:59:59.123456+02'|'1900-01-01 00:00:00+00'|'2000-01-01Z'"},
	{"c_ints", "int[]", "'{1,NULL,3}'::int[]|'{}'::int[]|'{7}'::int[]"},
	{"c_texts", "text[]", "array['a','b,c','']|'{}'::text[]|array['x']"},
	{"c_map", "map<text,int>", "map['a',1,'b',null]|map['k',7]|map['z',0]"},
	{"c_row", "row<x double, y text>", "row(1.5,'a')|row(null,'b')|row(0,null)"},
}

// every returns column definitions and the rows' VALUES of everyType, keyed 1..n.
func every(key string) (cols, values string) {
	cols = "k int " + key
	for _, c := range everyType {
		cols += ", " + c.name + " " + c.typ
	}
	rows := make([]string, 4)
	for i := range rows {
		rows[i] = fmt.Sprintf("(%d", i+1)
	}
	for _, c := range everyType {
		for i, v := range append(strings.Split(c.values, "|"), "null") {
			rows[i] += ", " + v
		}
	}
	return cols, strings.Join(rows, "), ") + ")"
}

// TestJavaReadsEveryType writes every type into tables of every kind.
func TestJavaReadsEveryType(t *testing.T) {
	w := shared(t)
	for name, clause := range map[string]string{
		"append":      "",
		"append_n":    " with ('bucket' = '3', 'bucket-key' = 'k')",
		"pk":          "",
		"pk_4":        " with ('bucket' = '4')",
		"stats_none":  " with ('metadata.stats-mode' = 'none')",
		"stats_count": " with ('metadata.stats-mode' = 'counts')",
		"stats_3":     " with ('metadata.stats-mode' = 'truncate(3)')",
		"stats_full":  " with ('metadata.stats-mode' = 'full')",
		"stats_wide":  " with ('metadata.stats-dense-store' = 'false')",
		"stats_first": " with ('metadata.stats-keep-first-n-columns' = '3')",
		"stats_col":   " with ('metadata.stats-mode' = 'none', 'fields.c_int.stats-mode' = 'full')",
		"uncompr":     " with ('file.compression' = 'none')",
		"snappy":      " with ('file.compression' = 'snappy')",
		"gzip":        " with ('file.compression' = 'gzip')",
		"lz4":         " with ('file.compression' = 'lz4')",
		"zstd9":       " with ('file.compression' = 'zstd', 'file.compression.zstd-level' = '9')",
		"manifests":   " with ('manifest.compression' = 'snappy')",
	} {
		t.Run(name, func(t *testing.T) {
			w := *w
			w.t = t
			key := ""
			if strings.HasPrefix(name, "pk") || strings.HasPrefix(name, "stats") {
				key = "primary key"
			}
			cols, values := every(key)
			w.sql("create table "+name+" ("+cols+")"+clause, "insert into "+name+" values "+values)
			w.agree(name)
			w.sql("insert into "+name+" select k + 4, "+columnsFrom("c_bool")+" from "+name+" where k < 4", "insert into "+name+" (k) values (9)")
			w.agree(name)
			w.sql("delete from " + name + " where k in (2, 6)")
			w.agree(name)
			w.sql("update " + name + " set c_text = 'changed', c_int = null where k % 2 = 1")
			w.agree(name)
			w.count("select * from "+name, 6)
			w.sql("call sys.compact('d." + name + "', compact_strategy => 'full')")
			w.agree(name)
			w.count("select * from "+name, 6)
		})
	}
}

// columnsFrom lists the columns from one on.
func columnsFrom(first string) string {
	var out []string
	for _, c := range everyType {
		if c.name == first || len(out) > 0 {
			out = append(out, c.name)
		}
	}
	return strings.Join(out, ", ")
}

// TestJavaReadsPartitions writes odd partition values of every type that may be
// a partition column.
func TestJavaReadsPartitions(t *testing.T) {
	w := shared(t)
	for _, c := range []struct{ typ, values string }{
		{"text", `'a/b'|'a=b'|'100%'|'sp ace'|'ünï'|'quo''te'|'a:b'|'x#y?z'|''|'{}[]^~'|null|'__DEFAULT_PARTITION__'|E'tab\there'`},
		{"int", "-1|0|2147483647|null"},
		{"bigint", "-9223372036854775808|5|null"},
		{"smallint", "-3|3|null"},
		{"boolean", "true|false|null"},
		{"date", "'0001-01-01'|'2024-02-29'|'9999-12-31'|null"},
		{"numeric(10,3)", "-1.5|0|1234567.891|null"},
		{"char(3)", "'a'|'abc'|null"},
		{"timestamp(0)", "'2024-02-29 10:00:00'|null"},
		{"timestamp(6)", "'2024-02-29 10:00:00.000001'|'1969-12-31 23:59:59.5'|null"},
		{"double precision", "1.5|-0.25|1e20|null"},
		{"real", "1.5|null"},
	} {
		name := "p_" + strings.NewReplacer(" ", "_", "(", "_", ")", "", ",", "_").Replace(c.typ)
		t.Run(name, func(t *testing.T) {
			w := *w
			w.t = t
			vals := strings.Split(c.values, "|")
			for kind, ddl := range map[string]string{
				"append": "create table %s (id int, p %s, v text) partitioned by (p)",
				"pk":     "create table %s (id int, p %s, v text, primary key (id, p)) partitioned by (p) with ('bucket' = '2')",
			} {
				tab := name + "_" + kind
				w.sql(fmt.Sprintf(ddl, tab, c.typ))
				n := 0
				for i, v := range vals {
					if kind == "pk" && v == "null" {
						continue // a key is not null
					}
					n += 2
					w.sql(fmt.Sprintf("insert into %s values (%d, %s, 'v'), (%d, %s, null)", tab, i, v, i+100, v))
				}
				w.agree(tab)
				w.count("select * from "+tab, n)
				w.sql("update "+tab+" set v = 'w' where p is not null and id < 100", "delete from "+tab+" where id = 101")
				w.agree(tab)
				if n > 2 {
					n-- // the row 101
				}
				w.count("select * from "+tab, n)
			}
		})
	}
}

// TestTakingTurns has both sides change one table, at random: rows stay those of
// a model, and nothing is lost.
func TestTakingTurns(t *testing.T) {
	w := shared(t)
	seed := random.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	for name, ddl := range map[string]string{
		"pk":      "create table pk (k int primary key, v bigint, s text)",
		"pk_b":    "create table pk_b (k int primary key, v bigint, s text) with ('bucket' = '3', 'num-sorted-run.compaction-trigger' = '3')",
		"pk_seq":  "create table pk_seq (k int primary key, v bigint, s text) with ('sequence.field' = 'v')",
		"append":  "create table append (k int, v bigint, s text)",
		"dv":      "create table dv (k int, v bigint, s text) with ('deletion-vectors.enabled' = 'true')",
		"buckets": "create table buckets (k int, v bigint, s text) with ('bucket' = '2', 'bucket-key' = 'k')",
	} {
		t.Run(name, func(t *testing.T) {
			w := *w
			w.t = t
			w.sql(ddl)
			keyed := strings.HasPrefix(name, "pk")
			model := map[int]bool{} // keys that are there
			next := 0
			for step := range 12 {
				var rows []map[string]any
				var values []string
				for range 1 + rng.IntN(6) {
					k := rng.IntN(30)
					if !keyed {
						next++
						k = next
					}
					v := int64(step)*1000 + int64(len(rows))
					rows = append(rows, map[string]any{"k": k, "v": v, "s": fmt.Sprint("s", v)})
					values = append(values, fmt.Sprintf("(%d, %d, 's%d')", k, v, v))
					model[k] = true
				}
				switch op := rng.IntN(8); {
				case op < 2:
					w.sql("insert into " + name + " values " + strings.Join(values, ", "))
				case op < 4:
					w.java.Do(t, map[string]any{"cmd": "write", "table": "d." + name, "rows": rows})
				case op == 4:
					w.sql("insert into "+name+" values "+strings.Join(values, ", "), "delete from "+name+" where k % 5 = 0")
					drop(model, 5)
				case op == 5:
					w.sql("insert into " + name + " values " + strings.Join(values, ", "))
					w.java.Do(t, map[string]any{"cmd": "compact", "table": "d." + name, "mode": []string{"full", "minor"}[rng.IntN(2)]})
				case op == 6:
					w.sql("insert into "+name+" values "+strings.Join(values, ", "), "call sys.compact('d."+name+"')")
				default:
					w.java.Do(t, map[string]any{"cmd": "write", "table": "d." + name, "rows": rows})
					w.sql("update " + name + " set s = s || '!', v = v + 1 where k % 3 = 0")
				}
				w.agree(name)
				w.count("select * from "+name, len(model))
				if t.Failed() {
					return
				}
			}
			// Java evolves the table; both go on.
			w.java.Do(t, map[string]any{"cmd": "alter", "table": "d." + name, "changes": []any{
				map[string]any{"op": "add-column", "name": "extra", "type": "DOUBLE"},
				map[string]any{"op": "rename-column", "name": "s", "to": "note"},
			}})
			w.sql("insert into " + name + " (k, v, note, extra) values (1000, 99999999, 'new', 1.5)")
			w.agree(name)
			w.sql("alter table "+name+" alter column v type numeric(20)", "alter table "+name+" add column later text", "insert into "+name+" (k, v, later) values (1001, 99999999, 'x')")
			w.java.Do(t, map[string]any{"cmd": "write", "table": "d." + name, "rows": []map[string]any{{"k": 1002, "v": 99999999, "later": "y"}}})
			w.sql("delete from " + name + " where k = 1000")
			w.agree(name)
			w.count("select * from "+name, len(model)+2)
		})
	}
}

func drop(m map[int]bool, div int) {
	for k := range m {
		if k%div == 0 {
			delete(m, k)
		}
	}
}

// TestJavaReadsHistory reads every snapshot of a table that changed many times.
func TestJavaReadsHistory(t *testing.T) {
	w := shared(t)
	w.sql("create table h (k int primary key, v int) with ('bucket' = '2', 'snapshot.num-retained.min' = '100')")
	for i := range 20 {
		w.sql(fmt.Sprintf("insert into h select g, %d from generate_series(%d, %d) g", i, i, i+10), fmt.Sprintf("delete from h where k = %d", i))
	}
	w.sql("call sys.create_tag('d.h', 'half', 20)")
	var snaps []struct {
		ID json.Number `json:"id"`
	}
	if err := json.Unmarshal(w.java.Do(t, map[string]any{"cmd": "snapshots", "table": "d.h"})["snapshots"], &snaps); err != nil {
		t.Fatal(err)
	}
	if len(snaps) < 40 {
		t.Errorf("%d snapshots", len(snaps))
	}
	for _, s := range snaps {
		k := kase{query: "select * from h for version as of " + string(s.ID), expected: w.java.Rows(t, "d.h", map[string]string{"scan.snapshot-id": string(s.ID)})}
		if kind, why := ask(w.s, k, w.dir); kind != "passed" {
			t.Errorf("snapshot %s: %s: %s", s.ID, kind, why)
		}
	}
	k := kase{query: "select * from h for version as of 'half'", expected: w.java.Rows(t, "d.h", map[string]string{"scan.tag-name": "half"})}
	if kind, why := ask(w.s, k, w.dir); kind != "passed" {
		t.Errorf("tag: %s: %s", kind, why)
	}
	w.java.Check(t, "d.h")
}
