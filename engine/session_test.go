package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// memCatalog is a catalog of tables in memory, each a list of int8 values per
// snapshot.
type memCatalog struct {
	mu     sync.Mutex
	tables map[string]*memTable // schema.name
	// resolves counts calls, to see what a statement asks for.
	resolves int
}

type memTable struct {
	cols      []string
	snapshots [][]int64 // rows of snapshot i+1; every column holds the value
	schemaID  int64
	block     chan struct{} // readers wait until it is closed
	fail      error
	panics    bool
}

func (c *memCatalog) Resolve(_ context.Context, sch, name string, o catalog.ResolveOptions) (catalog.Relation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resolves++
	t := c.tables[sch+"."+name]
	if t == nil {
		return nil, fmt.Errorf("%s.%s: %w", sch, name, catalog.ErrNoRelation)
	}
	n := len(t.snapshots)
	switch o.At.Kind {
	case snapshot.ID:
		n = int(o.At.ID)
	case snapshot.Version:
		if _, err := fmt.Sscan(o.At.Name, &n); err != nil || n > len(t.snapshots) {
			return nil, &snapshot.NotFoundError{Ref: o.At}
		}
	}
	r := &memRelation{t: t, schema: sch, name: name, at: snapshot.Ref{Kind: snapshot.ID, ID: int64(n)}, schemaID: t.schemaID}
	for i, col := range t.cols {
		r.cols = append(r.cols, catalog.Column{Field: types.Field{ID: int32(i), Name: col, Type: types.Of(types.Int8)}, AttNum: int16(i + 1)})
	}
	return r, nil
}

func (c *memCatalog) Schemas(context.Context) ([]string, error) {
	return []string{"public", "sales"}, nil
}

func (c *memCatalog) Tables(_ context.Context, sch string) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for n := range c.tables {
		if s, t, _ := strings.Cut(n, "."); s == sch {
			out = append(out, t)
		}
	}
	sortStrings(out)
	return out, nil
}

func (c *memCatalog) Version() uint64 { return 1 }

func (c *memCatalog) add(name string, rows ...int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tables == nil {
		c.tables = map[string]*memTable{}
	}
	t := c.tables[name]
	if t == nil {
		t = &memTable{cols: []string{"id"}}
		c.tables[name] = t
	}
	t.snapshots = append(t.snapshots, rows)
}

type memRelation struct {
	t            *memTable
	schema, name string
	at           snapshot.Ref
	schemaID     int64
	cols         []catalog.Column
}

func (r *memRelation) Schema() string             { return r.schema }
func (r *memRelation) Name() string               { return r.name }
func (r *memRelation) OID() uint32                { return catalog.OIDOf('r', r.schema, r.name) }
func (r *memRelation) Kind() byte                 { return 'r' }
func (r *memRelation) Columns() []catalog.Column  { return r.cols }
func (r *memRelation) PrimaryKey() []string       { return []string{"id"} }
func (r *memRelation) PartitionKeys() []string    { return nil }
func (r *memRelation) Options() map[string]string { return map[string]string{"bucket": "1"} }
func (r *memRelation) Comment() string            { return "" }
func (r *memRelation) SchemaID() int64            { return r.schemaID }
func (r *memRelation) At() snapshot.Ref           { return r.at }
func (r *memRelation) Table() table.Table         { return nil }

func (r *memRelation) Plan(context.Context, table.Scan) (*table.Plan, error) {
	fields := types.Schema{}
	for _, c := range r.cols {
		fields = append(fields, c.Field)
	}
	return &table.Plan{
		Splits: []table.Split{{Raw: true, Rows: 1}}, Report: &table.PlanReport{SnapshotID: r.at.ID},
		Schema: &schema.Table{Fields: fields},
	}, nil
}

func (r *memRelation) Stats(context.Context, table.Scan) (*table.Stats, error) { return nil, nil }

func (r *memRelation) Read(_ context.Context, s table.Scan, _ table.Split, o table.ReadOptions) (table.SplitReader, error) {
	if r.t.fail != nil {
		return nil, r.t.fail
	}
	return &memReader{r: r, s: s, o: o, rows: r.t.snapshots[r.at.ID-1]}, nil
}

type memReader struct {
	r    *memRelation
	s    table.Scan
	o    table.ReadOptions
	rows []int64
}

func (m *memReader) Next(ctx context.Context) (*vec.Batch, error) {
	if m.r.t.panics {
		panic("reader exploded")
	}
	if m.r.t.block != nil {
		select {
		case <-m.r.t.block:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	for len(m.rows) > 0 {
		n := min(len(m.rows), 1000)
		rows := append([]int64(nil), m.rows[:n]...)
		m.rows = m.rows[n:]
		cols := m.s.Columns
		if cols == nil {
			for i := range m.r.cols {
				cols = append(cols, i)
			}
		}
		b := &vec.Batch{N: n}
		for _, c := range cols {
			b.Schema = append(b.Schema, m.r.cols[c].Field)
			b.Cols = append(b.Cols, vec.Make(m.r.cols[c].Type.Arrow(), append([]int64(nil), rows...), nil))
		}
		if m.o.Filter != nil {
			f := &vec.Batch{N: n}
			for _, c := range m.o.Filter.Columns() {
				f.Schema, f.Cols = append(f.Schema, b.Schema[c]), append(f.Cols, b.Cols[c])
			}
			sel, err := m.o.Filter.Select(ctx, f)
			if err != nil {
				return nil, err
			}
			if len(sel) == 0 {
				continue
			}
			b.Sel = append([]uint16(nil), sel...)
		}
		return b, nil
	}
	return nil, nil
}

func (m *memReader) Close() error { return nil }

// testEngine opens an engine over a catalog in memory.
func testEngine(t testing.TB, cat *memCatalog) *Engine {
	t.Helper()
	if cat == nil {
		cat = &memCatalog{}
	}
	var log bytes.Buffer
	e, err := Open(context.Background(), Config{
		Catalog: cat, FileIO: fileio.NewMem(), AnyDatabase: true, MaxMemory: 1 << 30, TempDir: t.TempDir(), Version: "1.2",
		Log: slog.New(slog.NewTextHandler(&log, nil)), MaxConnections: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.Close()
		if used := e.root.Used(); used != 0 {
			t.Errorf("%d bytes are still charged", used)
		}
	})
	return e
}

func testSession(t testing.TB, e *Engine) *Session {
	t.Helper()
	s, err := e.OpenSession(context.Background(), Startup{User: "tester", Database: "paimon"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.ParameterStatuses()
	return s
}

// recorder writes what a client would see, one event a line.
type recorder struct {
	strings.Builder
	cols []Column
	s    *Session
}

func (r *recorder) Columns(cols []Column) error {
	r.cols = cols
	names := make([]string, len(cols))
	for i, c := range cols {
		names[i] = c.Name + " " + c.Type.String()
	}
	fmt.Fprintf(r, "[%s]\n", strings.Join(names, ", "))
	return nil
}

func (r *recorder) Batch(_ context.Context, b *vec.Batch) error {
	for i := range b.Size() {
		row := i
		if b.Sel != nil {
			row = int(b.Sel[i])
		}
		var vals []string
		for c := range b.Cols {
			if b.Cols[c].IsNull(row) {
				vals = append(vals, "NULL")
				continue
			}
			vals = append(vals, string(pgtext.Appender(b.Schema[c].Type, b.Cols[c], nil)(nil, row)))
		}
		fmt.Fprintf(r, "(%s)\n", strings.Join(vals, ", "))
	}
	return nil
}

func (r *recorder) Complete(tag string) error { fmt.Fprintln(r, tag); return nil }
func (r *recorder) Empty() error              { fmt.Fprintln(r, "EMPTY"); return nil }
func (r *recorder) Notice(e *pgerr.Error) {
	fmt.Fprintf(r, "%s %s %s\n", e.Severity, e.Code, e.Message)
}
func (r *recorder) ParameterStatus(n, v string) { fmt.Fprintf(r, "{%s=%s}\n", n, v) }

func errLine(err error) string {
	var pe *pgerr.Error
	if errors.As(err, &pe) {
		return fmt.Sprintf("ERROR %s %s\n", pe.Code, pe.Message)
	}
	return fmt.Sprintf("ERROR? %v\n", err)
}

// query runs a simple query and returns everything seen, with the status byte.
func query(s *Session, sql string) string {
	r := &recorder{s: s}
	if err := s.Query(context.Background(), sql, r); err != nil {
		r.WriteString(errLine(err))
	}
	return r.String() + string(s.TxStatus())
}

// script runs a transcript of testdata: lines of "> sql", and after each what a
// client sees, then the transaction's status.
func script(t *testing.T, s *Session, name string) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	text := "\n" + string(b)
	for _, step := range strings.Split(text, "\n> ")[1:] {
		sql, want, _ := strings.Cut(strings.TrimSpace(step), "\n")
		var lines []string
		for _, l := range strings.Split(want, "\n") {
			if l = strings.TrimSpace(l); l != "" {
				lines = append(lines, l)
			}
		}
		if got := query(s, sql); got != strings.Join(lines, "\n") {
			t.Errorf("%s\n--- got\n%s\n--- want\n%s", sql, got, strings.Join(lines, "\n"))
		}
	}
}

func TestTransactions(t *testing.T) {
	cat := &memCatalog{}
	cat.add("public.t", 1, 2)
	script(t, testSession(t, testEngine(t, cat)), "transactions")
}

func TestSettingsStatements(t *testing.T) {
	script(t, testSession(t, testEngine(t, nil)), "settings")
}

// extended drives the extended protocol as pgwire does.
type extended struct {
	t *testing.T
	s *Session
}

func (x extended) prepare(name, sql string, params ...types.Type) string {
	p, err := x.s.Prepare(context.Background(), name, sql, params)
	if err != nil {
		return errLine(err)
	}
	var b strings.Builder
	for _, t := range p.Params {
		b.WriteString("$" + t.String() + " ")
	}
	if p.Columns == nil {
		return b.String() + "NoData"
	}
	for _, c := range p.Columns {
		b.WriteString(c.Name + ":" + c.Type.String() + " ")
	}
	return strings.TrimSpace(b.String())
}

func (x extended) bind(portal, name string, args ...types.Datum) string {
	p, err := x.s.Statement(name)
	if err == nil {
		_, err = x.s.Bind(context.Background(), portal, p, args, nil)
	} else {
		x.s.Fail()
	}
	if err != nil {
		return errLine(err)
	}
	return "ok"
}

func (x extended) run(portal string, max int) string {
	p, err := x.s.Portal(portal)
	if err != nil {
		x.s.Fail()
		return errLine(err)
	}
	r := &recorder{}
	tag, err := x.s.Run(context.Background(), p, max, r)
	if err != nil {
		return r.String() + errLine(err)
	}
	if tag == "" {
		tag = "suspended"
	}
	return r.String() + tag
}

func (x extended) sync(failed bool) string {
	r := &recorder{}
	if err := x.s.Sync(context.Background(), failed, r); err != nil {
		r.WriteString(errLine(err))
	}
	return r.String() + string(x.s.TxStatus())
}

func want(t *testing.T, got, want string) {
	t.Helper()
	if strings.TrimSpace(got) != want {
		t.Errorf("got %q, want %q", strings.TrimSpace(got), want)
	}
}

func TestPortals(t *testing.T) {
	cat := &memCatalog{}
	cat.add("public.t", 1, 2, 3, 4, 5)
	cat.add("public.u", 10, 20)
	x := extended{t, testSession(t, testEngine(t, cat))}
	want(t, x.prepare("s1", "SELECT id FROM t ORDER BY id"), "id:bigint")
	want(t, x.prepare("s1", "SELECT 1"), `ERROR 42P05 prepared statement "s1" already exists`)
	want(t, x.sync(true), "I")
	want(t, x.prepare("s2", "SELECT id FROM u WHERE id > $1 ORDER BY 1"), "$bigint id:bigint")
	want(t, x.prepare("", "SELECT 1; SELECT 2"), "ERROR 42601 cannot insert multiple commands into a prepared statement")
	want(t, x.sync(true), "I")

	// Two portals at once, suspended in turn.
	want(t, x.bind("p1", "s1"), "ok")
	want(t, x.bind("p2", "s2", int64(5)), "ok")
	want(t, x.run("p1", 2), "(1)\n(2)\nsuspended")
	want(t, x.run("p2", 2), "(10)\n(20)\nsuspended") // exactly two: PostgreSQL suspends
	want(t, x.run("p2", 2), "SELECT 0")
	want(t, x.run("p1", 0), "(3)\n(4)\n(5)\nSELECT 3")
	want(t, x.run("p1", 0), "SELECT 0")
	want(t, x.bind("p1", "s1"), `ERROR 42P03 cursor "p1" already exists`)
	want(t, x.sync(true), "I")
	want(t, x.run("p1", 1), `ERROR 34000 portal "p1" does not exist`) // gone with the implicit transaction
	want(t, x.sync(true), "I")

	// In a block a named portal survives Sync.
	want(t, query(x.s, "BEGIN"), "BEGIN\nT")
	want(t, x.bind("p", "s1"), "ok")
	want(t, x.run("p", 1), "(1)\nsuspended")
	want(t, x.sync(false), "T")
	want(t, x.run("p", 1), "(2)\nsuspended")
	want(t, x.bind("", "s2", int64(15)), "ok")
	want(t, x.run("", 0), "(20)\nSELECT 1")
	want(t, query(x.s, "SELECT nope"), "ERROR 42703 column \"nope\" does not exist\nE")
	want(t, x.run("p", 1), "ERROR 25P02 current transaction is aborted, commands ignored until end of transaction block")
	want(t, x.bind("", "s1"), "ERROR 25P02 current transaction is aborted, commands ignored until end of transaction block")
	want(t, x.prepare("", "ROLLBACK"), "NoData")
	want(t, x.bind("", ""), "ok")
	want(t, x.run("", 0), "ROLLBACK")
	want(t, x.sync(false), "I")

	want(t, x.bind("", "nope"), `ERROR 26000 prepared statement "nope" does not exist`)
	want(t, x.sync(true), "I")
	want(t, x.bind("", "s2"), `ERROR 08P01 bind message supplies 0 parameters, but prepared statement "s2" requires 1`)
	want(t, x.sync(true), "I")

	// Utility statements run once.
	want(t, x.prepare("", "SET application_name = 'z'"), "NoData")
	want(t, x.bind("", ""), "ok")
	want(t, x.run("", 1), "SET")
	want(t, x.run("", 1), `ERROR 55000 portal "" cannot be run`)
	want(t, x.sync(true), "I") // rolled back: nothing to report
	want(t, x.prepare("", ""), "NoData")
	want(t, x.bind("", ""), "ok")
	want(t, x.run("", 0), "EMPTY\nsuspended") // an empty tag: Empty has been called
	want(t, x.prepare("sh", "SHOW search_path"), "search_path:text")
	want(t, x.prepare("ex", "EXPLAIN SELECT 1"), "QUERY PLAN:text")
	want(t, x.sync(false), "I")
}

// A pipeline is one transaction, and BEGIN takes it over.
func TestPipeline(t *testing.T) {
	x := extended{t, testSession(t, testEngine(t, nil))}
	step := func(sql, tag string) {
		t.Helper()
		x.prepare("", sql)
		x.bind("", "")
		want(t, x.run("", 0), tag)
	}
	step("SET application_name = 'one'", "SET")
	want(t, x.prepare("", "SELECT nope"), `ERROR 42703 column "nope" does not exist`)
	want(t, x.sync(true), "I")
	want(t, query(x.s, "SHOW application_name"), "[application_name text]\n()\nSHOW\nI")
	step("SET application_name = 'two'", "SET")
	step("BEGIN", "BEGIN")
	want(t, x.sync(false), "{application_name=two}\nT")
	want(t, query(x.s, "ROLLBACK"), "ROLLBACK\n{application_name=}\nI")
}

func TestPrepareExecute(t *testing.T) {
	cat := &memCatalog{}
	cat.add("public.t", 1, 2, 3)
	s := testSession(t, testEngine(t, cat))
	script(t, s, "prepare")
	// SQL and protocol share names.
	x := extended{t, s}
	want(t, x.prepare("_pg3_0", "SELECT 7"), "?column?:integer")
	want(t, x.sync(false), "I")
	want(t, query(s, "EXECUTE _pg3_0"), "[?column? integer]\n(7)\nSELECT 1\nI")
	want(t, query(s, "DEALLOCATE _pg3_0"), "DEALLOCATE\nI")
}

func TestCursors(t *testing.T) {
	cat := &memCatalog{}
	cat.add("public.t", 1, 2, 3, 4)
	script(t, testSession(t, testEngine(t, cat)), "cursors")
}

// TestSnapshots: a statement reads one snapshot, REPEATABLE READ keeps it, and
// plans notice new ones.
func TestSnapshots(t *testing.T) {
	cat := &memCatalog{}
	cat.add("public.t", 1)
	s := testSession(t, testEngine(t, cat))
	x := extended{t, s}
	want(t, x.prepare("s", "SELECT count(*) FROM t"), "count:bigint")
	want(t, x.sync(false), "I")
	count := func(n int) {
		t.Helper()
		want(t, x.bind("", "s"), "ok")
		want(t, x.run("", 0), fmt.Sprintf("(%d)\nSELECT 1", n))
	}
	count(1)
	x.sync(false)
	cat.add("public.t", 1, 2)
	count(2)
	x.sync(false)
	query(s, "BEGIN ISOLATION LEVEL REPEATABLE READ")
	count(2)
	cat.add("public.t", 1, 2, 3)
	count(2)
	want(t, query(s, "SELECT count(*) FROM t FOR VERSION AS OF 1"), "[count bigint]\n(1)\nSELECT 1\nT")
	query(s, "COMMIT")
	query(s, "BEGIN")
	count(3)
	cat.add("public.t")
	count(0)
	query(s, "COMMIT")
	want(t, query(s, "SET paimon.scan_version = '2'; SELECT count(*) FROM t; RESET paimon.scan_version"),
		"SET\n[count bigint]\n(2)\nSELECT 1\nRESET\nI")

	// A changed schema that changes the result's columns is told at Bind.
	want(t, x.prepare("star", "SELECT * FROM t"), "id:bigint")
	x.sync(false)
	cat.mu.Lock()
	cat.tables["public.t"].cols = []string{"id", "more"}
	cat.tables["public.t"].schemaID = 1
	cat.mu.Unlock()
	want(t, x.bind("", "star"), "ERROR 0A000 cached plan must not change result type")
	want(t, x.sync(true), "I")
}

func TestNames(t *testing.T) {
	cat := &memCatalog{}
	cat.add("public.t", 1)
	cat.add("sales.t", 2)
	cat.add("sales.Mixed", 3)
	script(t, testSession(t, testEngine(t, cat)), "names")
}

func TestCancelAndTimeout(t *testing.T) {
	cat := &memCatalog{}
	cat.add("public.t", 1)
	cat.tables["public.t"].block = make(chan struct{})
	e := testEngine(t, cat)
	s := testSession(t, e)
	want(t, query(s, "SET statement_timeout = '20ms'"), "SET\nI")
	want(t, query(s, "SELECT id FROM t"), "[id bigint]\nERROR 57014 canceling statement due to statement timeout\nI")
	want(t, query(s, "RESET statement_timeout"), "RESET\nI")
	done := make(chan string)
	go func() { done <- query(s, "SELECT id FROM t") }()
	pid, secret := s.Key()
	e.Cancel(pid, secret+1) // a wrong key is ignored
	deadline := time.Now().Add(10 * time.Second)
	for got := ""; got == ""; {
		e.Cancel(pid, secret)
		select {
		case got = <-done:
			want(t, got, "[id bigint]\nERROR 57014 canceling statement due to user request\nI")
		default:
			if time.Now().After(deadline) {
				t.Fatal("the statement was not cancelled")
			}
		}
	}
	// A late cancel does not hit the next statement.
	e.Cancel(pid, secret)
	want(t, query(s, "SELECT 1"), "[?column? integer]\n(1)\nSELECT 1\nI")
}

func TestPanicAndStorageErrors(t *testing.T) {
	cat := &memCatalog{}
	cat.add("public.p", 1)
	cat.add("public.f", 1)
	cat.tables["public.p"].panics = true
	cat.tables["public.f"].fail = &fileio.MissingError{Path: "default.db/f/bucket-0/data-1.parquet"}
	s := testSession(t, testEngine(t, cat))
	if got := query(s, "SELECT id FROM p"); !strings.Contains(got, "ERROR XX000 internal error") || !strings.HasSuffix(got, "I") {
		t.Errorf("panic: %s", got)
	}
	want(t, query(s, "SELECT id FROM f"), "[id bigint]\nERROR XX001 file \"default.db/f/bucket-0/data-1.parquet\" is missing\nI")
	want(t, query(s, "SELECT 1"), "[?column? integer]\n(1)\nSELECT 1\nI")
}

func TestConnections(t *testing.T) {
	e := testEngine(t, nil)
	ctx := context.Background()
	var open []*Session
	for range 4 {
		open = append(open, testSession(t, e))
	}
	_, err := e.OpenSession(ctx, Startup{User: "x", Database: "paimon"})
	var pe *pgerr.Error
	if !errors.As(err, &pe) || pe.Code != pgerr.TooManyConnections || pe.Severity != "FATAL" {
		t.Fatalf("fifth connection: %v", err)
	}
	open[0].Close()
	s, err := e.OpenSession(ctx, Startup{User: "x", Database: "any", Params: map[string]string{
		"TIMEZONE": "Asia/Tokyo", "client_encoding": "'utf-8'", "replication": "false", "_pq_.x": "1", "search_path": "sales",
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.ParameterStatuses()
	want(t, query(s, "SET timezone = 'UTC'; RESET timezone; SHOW timezone; SHOW search_path"),
		"SET\nRESET\n[TimeZone text]\n(Asia/Tokyo)\nSHOW\n[search_path text]\n(sales)\nSHOW\nI")
	s.Close()
	for _, tt := range []struct {
		st   Startup
		code pgerr.Code
	}{
		{Startup{User: "x", Database: "paimon", Params: map[string]string{"foo": "1"}}, pgerr.UndefinedObject},
		{Startup{User: "x", Database: "paimon", Params: map[string]string{"replication": "database"}}, pgerr.FeatureNotSupported},
		{Startup{Database: "paimon"}, pgerr.InvalidAuthorizationSpecification},
	} {
		if _, err := e.OpenSession(ctx, tt.st); !pgerr.Is(err, tt.code) {
			t.Errorf("%v: %v", tt.st, err)
		}
	}
	e.cfg.AnyDatabase = false
	if _, err := e.OpenSession(ctx, Startup{User: "x", Database: "nodb"}); !pgerr.Is(err, pgerr.InvalidCatalogName) {
		t.Errorf("database: %v", err)
	}
	e.Close()
	if _, err := e.OpenSession(ctx, Startup{User: "x", Database: "paimon"}); !pgerr.Is(err, pgerr.CannotConnectNow) {
		t.Errorf("closing: %v", err)
	}
}
