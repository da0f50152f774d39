package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// writeEngine opens an engine over a warehouse in memory.
func writeEngine(t testing.TB, io fileio.FileIO) *Engine {
	t.Helper()
	if io == nil {
		io = fileio.NewMem()
	}
	e, err := Open(context.Background(), Config{
		Warehouse: "mem://", FileIO: io, AnyDatabase: true, MaxMemory: 1 << 30, TempDir: t.TempDir(), Version: "1.2", MaxConnections: 200,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.Close()
		if used := e.root.Used(); used != 0 {
			t.Errorf("%d bytes are still charged", used)
		}
		if n := e.locks.held(); n != 0 {
			t.Errorf("%d locks are still held", n)
		}
	})
	return e
}

// makeTable makes a table: fields are "name type", key columns come first.
func makeTable(t testing.TB, s *Session, name string, keys []string, partitions []string, options map[string]string, fields ...types.Field) {
	t.Helper()
	def := &schema.Table{PrimaryKeys: keys, PartitionKeys: partitions, Options: map[string]string{}}
	for i, f := range fields {
		f.ID = int32(i)
		def.Fields = append(def.Fields, f)
	}
	for k, v := range options {
		def.Options[k] = v
	}
	if len(keys) > 0 && def.Options["bucket"] == "" {
		def.Options["bucket"] = "1"
	}
	s.enter()
	ed, err := s.editor(context.Background())
	if err == nil {
		if err = ed.CreateTable(context.Background(), "public", name, def); err == nil {
			err = s.commit(context.Background())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func intField(name string) types.Field  { return types.Field{Name: name, Type: types.Of(types.Int8)} }
func textField(name string) types.Field { return types.Field{Name: name, Type: types.Of(types.Text)} }

// keyTable makes t (id bigint primary key, v bigint, s text).
func keyTable(t testing.TB, s *Session, name string) {
	t.Helper()
	id := intField("id")
	id.Type.NotNull = true
	makeTable(t, s, name, []string{"id"}, nil, nil, id, intField("v"), textField("s"))
}

func appendTable(t testing.TB, s *Session, name string) {
	t.Helper()
	makeTable(t, s, name, nil, nil, nil, intField("id"), intField("v"), textField("s"))
}

// expect runs a statement and compares what a client sees, without the columns.
func expect(t testing.TB, s *Session, sql, want string) {
	t.Helper()
	got := query(s, sql)
	var lines []string
	for _, l := range strings.Split(got, "\n") {
		if !strings.HasPrefix(l, "[") {
			lines = append(lines, l)
		}
	}
	got = strings.Join(lines, " ")
	if got != want {
		t.Fatalf("%s\ngot  %s\nwant %s", sql, got, want)
	}
}

func TestInsertSelect(t *testing.T) {
	e := writeEngine(t, nil)
	s := testSession(t, e)
	for i, mk := range []func(testing.TB, *Session, string){keyTable, appendTable} {
		n := fmt.Sprintf("t%d", i)
		mk(t, s, n)
		expect(t, s, "INSERT INTO "+n+" VALUES (1, 10, 'a'), (2, 20, 'b')", "INSERT 0 2 I")
		expect(t, s, "SELECT * FROM "+n+" ORDER BY id", "(1, 10, a) (2, 20, b) SELECT 2 I")
		expect(t, s, "UPDATE "+n+" SET v = v + 1 WHERE id = 2 RETURNING id, v", "(2, 21) UPDATE 1 I")
		expect(t, s, "SELECT * FROM "+n+" ORDER BY id", "(1, 10, a) (2, 21, b) SELECT 2 I")
		expect(t, s, "DELETE FROM "+n+" WHERE id = 1 RETURNING *", "(1, 10, a) DELETE 1 I")
		expect(t, s, "SELECT * FROM "+n+" ORDER BY id", "(2, 21, b) SELECT 1 I")
		expect(t, s, "INSERT INTO "+n+" (id, s) SELECT id + 5, s FROM "+n+" RETURNING *", "(7, NULL, b) INSERT 0 1 I")
		expect(t, s, "TRUNCATE "+n, "TRUNCATE TABLE I")
		expect(t, s, "SELECT count(*) FROM "+n, "(0) SELECT 1 I")
	}
}
