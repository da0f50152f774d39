package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
)

// TestRowTracking writes tables with row tracking in turns with Java, where it is there,
// and knows of every row which id and which sequence number it has: PAIMON_SQL_SEED
// repeats a run, PAIMON_SQL_SEQUENCES says how many tables.
func TestRowTracking(t *testing.T) {
	seed, tables := random.Seed(t), 4
	if n, err := strconv.Atoi(os.Getenv("PAIMON_SQL_SEQUENCES")); err == nil {
		tables = n
	}
	for i := range tables {
		t.Run(fmt.Sprint(i), func(t *testing.T) { newTracked(t, rand.New(rand.NewPCG(seed, uint64(i)))).run(12) })
	}
}

// trackedRow is a row of the model.
type trackedRow struct {
	v        string
	id, made int64 // made: the snapshot that changed it last
}

type tracked struct {
	*testing.T
	r     *rand.Rand
	s     *Session
	java  *oracle.Client
	parts bool
	dvs   bool
	wide  bool // column w has come
	next  int64
	snap  int64
	key   int
	rows  map[string]trackedRow // by k
}

func newTracked(t *testing.T, r *rand.Rand) *tracked {
	dir := t.TempDir()
	x := &tracked{T: t, r: r, s: Open(t, nil, dir), java: oracle.Maybe(t, dir), rows: map[string]trackedRow{}, parts: r.IntN(2) == 0}
	opts := []string{"'row-tracking.enabled' = 'true'", "'write-only' = 'true'", "'bucket' = '-1'"}
	pick := func(s string) {
		if r.IntN(2) == 0 {
			opts = append(opts, s)
		}
	}
	pick("'deletion-vectors.enabled' = 'true'")
	pick("'target-file-size' = '8 kb'")
	pick("'metadata.stats-dense-store' = 'false'")
	pick("'file-index.bloom-filter.columns' = 'k'")
	pick("'manifest.merge-min-count' = '2'")
	by := ""
	if x.parts {
		by = "partition by (p)"
	}
	x.must(fmt.Sprintf("create table t (k int, v text, p int) %s with (%s)", by, strings.Join(opts, ", ")))
	x.dvs = strings.Contains(fmt.Sprint(opts), "vectors")
	t.Log(by, opts)
	return x
}

func (x *tracked) must(q string) [][]string {
	x.Helper()
	rows, err := x.s.Try(x.Context(), q)
	if err != nil {
		x.Fatalf("%s: %v", q, err)
	}
	return rows
}

// run does steps and looks at all rows after each.
func (x *tracked) run(steps int) {
	x.insert(false)
	x.agree("first")
	for i := range steps {
		what := ""
		switch n := x.r.IntN(10); {
		case n < 2:
			what = x.insert(x.java != nil && x.r.IntN(2) == 0)
		case n < 4:
			what = x.statement(x.update, fmt.Sprint("u", i))
		case n < 5:
			what = x.statement(x.remove, "")
		case n < 6:
			what = x.merge(fmt.Sprint("m", i))
		case n < 7:
			what = x.transaction(i)
		case n < 8:
			what = x.compact()
		case n < 9 && x.dvs && x.java != nil:
			what = x.javaDelete()
		case !x.wide:
			x.must("alter table t add column w bigint")
			x.wide, what = true, "add column"
		}
		x.agree(what)
	}
	if x.java != nil {
		x.java.Check(x, "d.t")
	}
}

func (x *tracked) fresh(n int, v string) (keys []string) {
	for range n {
		x.key++
		k := fmt.Sprint(x.key)
		keys = append(keys, k)
		x.rows[k] = trackedRow{v: v, id: -1, made: -1}
	}
	return keys
}

func (x *tracked) insert(java bool) string {
	if java {
		var rows []map[string]any
		for _, k := range x.fresh(1+x.r.IntN(20), "java") {
			n, _ := strconv.Atoi(k)
			rows = append(rows, map[string]any{"k": n, "v": "java", "p": n % 3})
		}
		x.java.Do(x, map[string]any{"cmd": "write", "table": "d.t", "rows": rows})
		return "java insert"
	}
	n := 1 + x.r.IntN(30)
	if x.r.IntN(4) == 0 {
		n = 3000
	}
	from := x.key + 1
	x.fresh(n, "sql")
	x.must(fmt.Sprintf("insert into t (k, v, p) select i, 'sql', i %% 3 from generate_series(%d, %d) i", from, x.key))
	return "insert"
}

// condition is one on k, in SQL and in Go.
func (x *tracked) condition() (string, func(string) bool) {
	m := 2 + x.r.IntN(9)
	c := x.r.IntN(m)
	return fmt.Sprintf("k %% %d = %d", m, c), func(k string) bool { n, _ := strconv.Atoi(k); return n%m == c }
}

// statement runs an UPDATE or a DELETE by a condition, sometimes by row id.
func (x *tracked) statement(f func(where string, is func(string) bool, v string) string, v string) string {
	where, is := x.condition()
	if x.r.IntN(3) == 0 {
		for k, r := range x.rows { // any
			where, is = fmt.Sprintf("_ROW_ID = %d", r.id), func(o string) bool { return o == k }
			if r.id < 0 {
				where = "k = " + k
			}
			break
		}
	}
	return f(where, is, v)
}

func (x *tracked) update(where string, is func(string) bool, v string) string {
	set := ""
	if x.parts && x.r.IntN(3) == 0 {
		set = ", p = 1 - p"
	}
	q := fmt.Sprintf("update t set v = '%s'%s where %s", v, set, where)
	x.must(q)
	for k, r := range x.rows {
		if is(k) {
			x.rows[k] = trackedRow{v: v, id: r.id, made: -1}
		}
	}
	return q
}

func (x *tracked) remove(where string, is func(string) bool, _ string) string {
	q := "delete from t where " + where
	x.must(q)
	for k := range x.rows {
		if is(k) {
			delete(x.rows, k)
		}
	}
	return q
}

// javaDelete puts a row into a deletion vector.
func (x *tracked) javaDelete() string {
	k := 1 + x.r.IntN(x.key)
	x.java.Do(x, map[string]any{"cmd": "delete", "table": "d.t", "filter": map[string]any{"op": "=", "f": "k", "v": k}})
	delete(x.rows, fmt.Sprint(k))
	return "java delete"
}

// merge changes, removes and adds rows in one statement.
func (x *tracked) merge(v string) string {
	top := x.key
	q := fmt.Sprintf(`merge into t using (select i from generate_series(%d, %d) i) s on t.k = s.i
		when matched and s.i %% 5 = 0 then delete when matched then update set v = '%s'
		when not matched and s.i > %d then insert (k, v, p) values (s.i, '%s', s.i %% 3)`, top-20, top+10, v, top, v)
	x.must(q)
	for i := top - 20; i <= top; i++ {
		k := fmt.Sprint(i)
		r, ok := x.rows[k]
		switch {
		case !ok:
		case i%5 == 0:
			delete(x.rows, k)
		default:
			x.rows[k] = trackedRow{v: v, id: r.id, made: -1}
		}
	}
	x.fresh(10, v)
	return q
}

// transaction does several things in one snapshot, to its own rows, too.
func (x *tracked) transaction(step int) string {
	x.must("begin")
	what := "begin"
	for i := range 2 + x.r.IntN(12) {
		v := fmt.Sprintf("t%d.%d", step, i)
		switch x.r.IntN(4) {
		case 0:
			where, is := x.condition()
			what += "; " + x.update(where, is, v)
		case 1:
			where, is := x.condition()
			what += "; " + x.remove(where, is, v)
		default:
			x.insert(false)
			what += "; insert"
		}
	}
	x.must("commit")
	return what
}

// compact is ours: the oracle's own command does not write the ids, which Java's
// procedures ask their writer to.
func (x *tracked) compact() string {
	x.must(`call sys.compact("table" => 'd.t', compact_strategy => 'full')`)
	return "compact"
}

// agree compares the table with the model, as we and as Java read it, and gives the
// model the ids and numbers that new and changed rows must have.
func (x *tracked) agree(what string) {
	x.Helper()
	last := x.must(`select snapshot_id, next_row_id, commit_kind from "t$snapshots" order by 1 desc limit 1`)[0]
	snap, _ := strconv.ParseInt(last[0], 10, 64)
	next, _ := strconv.ParseInt(last[1], 10, 64)
	got := x.must(`select k, v, _ROW_ID, _SEQUENCE_NUMBER from t order by _ROW_ID`)
	if len(got) != len(x.rows) {
		x.Fatalf("%s: %d rows, want %d", what, len(got), len(x.rows))
	}
	fresh := int64(0)
	for i, g := range got {
		r, ok := x.rows[g[0]]
		id, err1 := strconv.ParseInt(g[2], 10, 64)
		made, err2 := strconv.ParseInt(g[3], 10, 64)
		if i > 0 && g[2] == got[i-1][2] {
			x.Errorf("%s: two rows have id %d", what, id)
		}
		if !ok || err1 != nil || err2 != nil || g[1] != r.v {
			x.Fatalf("%s: row %v, want %+v", what, g, r)
		}
		if r.id < 0 {
			if fresh++; id < x.next || id >= next {
				x.Errorf("%s: new row %v has an id outside of %d to %d", what, g, x.next, next)
			}
		} else if r.id != id {
			x.Fatalf("%s: row %v had id %d", what, g, r.id)
		}
		if r.made < 0 && (made <= x.snap || made > snap) || r.made >= 0 && r.made != made {
			x.Errorf("%s: row %v was made by %d, now by a snapshot of %d to %d", what, g, r.made, x.snap+1, snap)
		}
		x.rows[g[0]] = trackedRow{r.v, id, made}
	}
	if next != x.next+fresh {
		x.Errorf("%s: next row id %d, want %d", what, next, x.next+fresh)
	}
	x.next, x.snap = next, snap
	if n := x.must(`select count(*) from "t$row_tracking" where _ROW_ID < ` + last[1])[0][0]; n != fmt.Sprint(len(x.rows)) {
		x.Errorf("%s: $row_tracking has %s rows", what, n)
	}
	if x.java == nil || x.Failed() {
		return
	}
	theirs := x.java.Rows(x, "d.t$row_tracking", nil)
	if len(theirs) != len(x.rows) {
		x.Fatalf("%s: Java reads %d rows of %d", what, len(theirs), len(x.rows))
	}
	for _, raw := range theirs {
		var r struct {
			K    int
			V    string
			ID   *int64 `json:"_ROW_ID"`
			Made *int64 `json:"_SEQUENCE_NUMBER"`
		}
		if err := json.Unmarshal(raw, &r); err != nil {
			x.Fatal(err)
		}
		if m := x.rows[fmt.Sprint(r.K)]; r.ID == nil || r.Made == nil || *r.ID != m.id || *r.Made != m.made || r.V != m.v {
			x.Fatalf("%s: Java reads %s, want %+v", what, raw, m)
		}
	}
}

// TestRowTrackingRefused: what is not done with row ids says so, and tables without them
// have none.
func TestRowTrackingRefused(t *testing.T) {
	s := Open(t, nil, t.TempDir())
	run := func(q string) error {
		_, err := s.Try(t.Context(), q)
		return err
	}
	for _, q := range []string{
		"create table t (k int, v text) with ('row-tracking.enabled' = 'true', 'bucket' = '-1')",
		"create table plain (k int)", "insert into t values (1, 'a'), (2, 'b')", "insert into plain values (1)",
		"create table e (k int) with ('row-tracking.enabled' = 'true', 'data-evolution.enabled' = 'true', 'bucket' = '-1')",
	} {
		if err := run(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	for q, code := range map[string]string{
		"select _ROW_ID from plain":                "0A000",
		`select * from "plain$row_tracking"`:       "0A000",
		"update t set _ROW_ID = 4":                 "42703",
		"insert into t (k, _ROW_ID) values (1, 2)": "42703",
		"insert into e values (1)":                 "0A000",
		"create table b (k int) with ('row-tracking.enabled' = 'true', 'bucket' = '2', 'bucket-key' = 'k')": "",
		`call sys.compact("table" => 'd.t', order_strategy => 'order', order_by => 'k')`:                    "0A000",
	} {
		err := run(q)
		var pe *pgerr.Error
		if err == nil || code != "" && (!errors.As(err, &pe) || pe.Code.String() != code) {
			t.Errorf("%s: %v, want %s", q, err, code)
		}
	}
}

// TestRowTrackingFiles: an update puts the ids into a file, an insert does not.
func TestRowTrackingFiles(t *testing.T) {
	dir := t.TempDir()
	s := Open(t, nil, dir)
	for _, q := range []string{
		"create table t (k int, v text) with ('row-tracking.enabled' = 'true', 'bucket' = '-1', 'write-only' = 'true')",
		"insert into t values (1, 'a'), (2, 'b')", "update t set v = 'c' where k = 2",
	} {
		if _, err := s.Try(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	got, err := s.Try(t.Context(), `select record_count, first_row_id, write_cols, min_sequence_number, max_sequence_number, null_value_counts, min_value_stats from "t$files" order by 1, 4`)
	if err != nil {
		t.Fatal(err)
	}
	const cols = "[k v _ROW_ID _SEQUENCE_NUMBER]"
	want := fmt.Sprint([][]string{
		{"1", Null, cols, "1", "1", "{k=0, v=0}", "{k=1, v=a}"},
		{"1", Null, cols, "2", "2", "{k=0, v=0}", "{k=2, v=c}"},
	})
	if fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "d.db", "t", "bucket-0", "*")); len(files) != 3 {
		t.Errorf("files %v", files)
	}
}
