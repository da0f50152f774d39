package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// waiting returns when some session waits for a lock.
func waiting(t testing.TB, e *Engine, n int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		e.locks.mu.Lock()
		k := 0
		for _, l := range e.locks.locks {
			k += len(l.queue)
		}
		e.locks.mu.Unlock()
		if k >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d sessions wait for locks, not %d", k, n)
		}
		time.Sleep(time.Millisecond)
	}
}

// async runs a statement in the background and returns what it will say.
func async(s *Session, sql string) <-chan string {
	c := make(chan string, 1)
	go func() { c <- query(s, sql) }()
	return c
}

func TestOwnWrites(t *testing.T) {
	e := writeEngine(t, nil)
	a, b := testSession(t, e), testSession(t, e)
	for i, mk := range []func(testing.TB, *Session, string){keyTable, appendTable} {
		n := fmt.Sprintf("t%d", i)
		mk(t, a, n)
		expect(t, a, "INSERT INTO "+n+" VALUES (1, 10, 'a'), (2, 20, 'b')", "INSERT 0 2 I")
		expect(t, a, "BEGIN", "BEGIN T")
		expect(t, a, "INSERT INTO "+n+" VALUES (3, 30, 'c')", "INSERT 0 1 T")
		expect(t, a, "UPDATE "+n+" SET v = v + 1 WHERE id <> 2", "UPDATE 2 T")
		expect(t, a, "DELETE FROM "+n+" WHERE id = 2", "DELETE 1 T")
		expect(t, a, "UPDATE "+n+" SET v = v + 1 WHERE id = 3", "UPDATE 1 T")
		expect(t, a, "SELECT * FROM "+n+" ORDER BY id", "(1, 11, a) (3, 32, c) SELECT 2 T")
		// Nobody else sees it: no dirty read.
		expect(t, b, "SELECT * FROM "+n+" ORDER BY id", "(1, 10, a) (2, 20, b) SELECT 2 I")
		expect(t, a, "COMMIT", "COMMIT I")
		expect(t, b, "SELECT * FROM "+n+" ORDER BY id", "(1, 11, a) (3, 32, c) SELECT 2 I")
		// One data snapshot for the whole block.
		expect(t, b, "SELECT count(*) FROM "+n+"$snapshots", "(2) SELECT 1 I")
		expect(t, a, "BEGIN; DELETE FROM "+n+"; SELECT count(*) FROM "+n+"; ROLLBACK", "BEGIN DELETE 2 (0) SELECT 1 ROLLBACK I")
		expect(t, b, "SELECT count(*) FROM "+n, "(2) SELECT 1 I")
	}
}

// Others' commits come in between the statements of a READ COMMITTED block, whose
// own rows stay on top of them.
func TestReadCommitted(t *testing.T) {
	e := writeEngine(t, nil)
	a, b := testSession(t, e), testSession(t, e)
	keyTable(t, a, "t")
	expect(t, a, "INSERT INTO t VALUES (1, 10, 'a')", "INSERT 0 1 I")
	expect(t, a, "BEGIN", "BEGIN T")
	expect(t, a, "INSERT INTO t VALUES (2, 20, 'own')", "INSERT 0 1 T")
	expect(t, a, "SELECT * FROM t ORDER BY id", "(1, 10, a) (2, 20, own) SELECT 2 T")
	for i := range 3 {
		expect(t, b, fmt.Sprintf("INSERT INTO t VALUES (1, %d, 'b'), (2, 99, 'b')", i), "INSERT 0 2 I")
	}
	// A non-repeatable read, and the phantom that READ COMMITTED allows; key 2 is
	// the block's own.
	expect(t, b, "INSERT INTO t VALUES (3, 3, 'b')", "INSERT 0 1 I")
	expect(t, a, "SELECT * FROM t ORDER BY id", "(1, 2, b) (2, 20, own) (3, 3, b) SELECT 3 T")
	expect(t, a, "COMMIT", "COMMIT I")
	expect(t, b, "SELECT * FROM t ORDER BY id", "(1, 2, b) (2, 20, own) (3, 3, b) SELECT 3 I")
}

func TestRepeatableRead(t *testing.T) {
	e := writeEngine(t, nil)
	a, b := testSession(t, e), testSession(t, e)
	keyTable(t, a, "t")
	expect(t, a, "INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'a')", "INSERT 0 2 I")
	expect(t, a, "BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN T")
	expect(t, a, "SELECT * FROM t ORDER BY id", "(1, 10, a) (2, 20, a) SELECT 2 T")
	expect(t, b, "UPDATE t SET v = 11 WHERE id = 1", "UPDATE 1 I")
	expect(t, b, "INSERT INTO t VALUES (3, 30, 'b')", "INSERT 0 1 I")
	expect(t, a, "SELECT * FROM t ORDER BY id", "(1, 10, a) (2, 20, a) SELECT 2 T")
	expect(t, a, "UPDATE t SET v = 21 WHERE id = 2", "UPDATE 1 T")
	expect(t, a, "SELECT * FROM t ORDER BY id", "(1, 10, a) (2, 21, a) SELECT 2 T")
	expect(t, a, "UPDATE t SET v = 12 WHERE id = 1", "ERROR 40001 could not serialize access due to concurrent update E")
	expect(t, a, "COMMIT", "ROLLBACK I")
	// Write skew is not prevented: each writes what the other only read.
	expect(t, a, "BEGIN ISOLATION LEVEL SERIALIZABLE", "BEGIN T")
	expect(t, b, "BEGIN ISOLATION LEVEL SERIALIZABLE", "BEGIN T")
	expect(t, a, "SELECT sum(v) FROM t WHERE id < 3", "(31) SELECT 1 T")
	expect(t, b, "SELECT sum(v) FROM t WHERE id < 3", "(31) SELECT 1 T")
	expect(t, a, "UPDATE t SET v = 0 WHERE id = 1", "UPDATE 1 T")
	expect(t, b, "UPDATE t SET v = 0 WHERE id = 2", "UPDATE 1 T")
	expect(t, a, "COMMIT", "COMMIT I")
	expect(t, b, "COMMIT", "COMMIT I")
}

func TestLostUpdate(t *testing.T) {
	e := writeEngine(t, nil)
	a, b := testSession(t, e), testSession(t, e)
	keyTable(t, a, "t")
	expect(t, a, "INSERT INTO t VALUES (1, 10, 'a')", "INSERT 0 1 I")
	expect(t, a, "BEGIN", "BEGIN T")
	expect(t, a, "UPDATE t SET v = v + 1 WHERE id = 1", "UPDATE 1 T")
	done := async(b, "UPDATE t SET v = v * 2 WHERE id = 1")
	waiting(t, e, 1)
	expect(t, a, "COMMIT", "COMMIT I")
	if got := <-done; got != "UPDATE 1\nI" {
		t.Fatalf("got %s", got)
	}
	expect(t, a, "SELECT v FROM t", "(22) SELECT 1 I")
	// A row that no longer qualifies is passed over.
	expect(t, a, "BEGIN", "BEGIN T")
	expect(t, a, "UPDATE t SET v = 5 WHERE id = 1", "UPDATE 1 T")
	done = async(b, "DELETE FROM t WHERE v = 22")
	waiting(t, e, 1)
	expect(t, a, "COMMIT", "COMMIT I")
	if got := <-done; got != "DELETE 0\nI" {
		t.Fatalf("got %s", got)
	}
	// A blind upsert does not wait: the block that has read the row cannot commit.
	expect(t, a, "BEGIN", "BEGIN T")
	expect(t, a, "UPDATE t SET v = v + 1 WHERE id = 1", "UPDATE 1 T")
	expect(t, b, "INSERT INTO t VALUES (1, 100, 'b')", "INSERT 0 1 I")
	expect(t, a, "COMMIT", "ERROR 40001 could not serialize access due to concurrent update I")
	expect(t, a, "SELECT v FROM t", "(100) SELECT 1 I")
}

// Many sessions count up one row; every increment is there in the end.
func TestCounter(t *testing.T) {
	e := writeEngine(t, nil)
	s := testSession(t, e)
	for i, mk := range []func(testing.TB, *Session, string){keyTable, appendTable} {
		n := fmt.Sprintf("t%d", i)
		mk(t, s, n)
		expect(t, s, "INSERT INTO "+n+" VALUES (1, 0, 'a')", "INSERT 0 1 I")
		const sessions, each = 6, 5
		var wg sync.WaitGroup
		for range sessions {
			c := testSession(t, e)
			wg.Go(func() {
				for range each {
					if got := query(c, "UPDATE "+n+" SET v = v + 1 WHERE id = 1"); got != "UPDATE 1\nI" {
						t.Error(got)
					}
				}
			})
		}
		wg.Wait()
		expect(t, s, "SELECT v FROM "+n, fmt.Sprintf("(%d) SELECT 1 I", sessions*each))
	}
}

func TestDeadlock(t *testing.T) {
	e := writeEngine(t, nil)
	a, b := testSession(t, e), testSession(t, e)
	keyTable(t, a, "t")
	expect(t, a, "INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b')", "INSERT 0 2 I")
	expect(t, a, "BEGIN", "BEGIN T")
	expect(t, b, "BEGIN", "BEGIN T")
	expect(t, a, "UPDATE t SET v = 1 WHERE id = 1", "UPDATE 1 T")
	expect(t, b, "UPDATE t SET v = 2 WHERE id = 2", "UPDATE 1 T")
	done := async(a, "UPDATE t SET v = 1 WHERE id = 2")
	waiting(t, e, 1)
	var dead *pgerr.Error
	if err := b.Query(context.Background(), "UPDATE t SET v = 2 WHERE id = 1", &recorder{s: b}); !errors.As(err, &dead) || dead.Code != pgerr.DeadlockDetected {
		t.Fatalf("got %v, want a deadlock", err)
	}
	if want := `on a row of relation "t"`; strings.Count(dead.Detail, want) != 2 {
		t.Errorf("the detail should say %s of both: %s", want, dead.Detail)
	}
	expect(t, b, "ROLLBACK", "ROLLBACK I")
	if got := <-done; got != "UPDATE 1\nT" {
		t.Fatalf("got %s", got)
	}
	expect(t, a, "COMMIT", "COMMIT I")
	expect(t, a, "SELECT id, v FROM t ORDER BY id", "(1, 1) (2, 1) SELECT 2 I")
}

func TestLockTimeout(t *testing.T) {
	e := writeEngine(t, nil)
	a, b := testSession(t, e), testSession(t, e)
	keyTable(t, a, "t")
	expect(t, a, "INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b')", "INSERT 0 2 I")
	expect(t, a, "BEGIN", "BEGIN T")
	expect(t, a, "SELECT * FROM t WHERE id = 1 FOR UPDATE", "(1, 10, a) SELECT 1 T")
	expect(t, b, "SET lock_timeout = '20ms'", "SET I")
	expect(t, b, "UPDATE t SET v = 0 WHERE id = 1", "ERROR 55P03 canceling statement due to lock timeout I")
	expect(t, b, "SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT", `ERROR 55P03 could not obtain lock on row in relation "t" I`)
	expect(t, b, "SELECT id FROM t ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED", "(2) SELECT 1 I")
	expect(t, b, "UPDATE t SET v = 21 WHERE id = 2", "UPDATE 1 I")
	expect(t, b, "TRUNCATE t", "ERROR 55P03 canceling statement due to lock timeout I")
	expect(t, b, "BEGIN; LOCK TABLE t NOWAIT", `BEGIN ERROR 55P03 could not obtain lock on relation "t" E`)
	expect(t, b, "ROLLBACK", "ROLLBACK I")
	expect(t, b, "RESET lock_timeout", "RESET I")
	done := async(b, "UPDATE t SET v = 1 WHERE id = 1")
	waiting(t, e, 1)
	b.interrupt(errCanceled())
	if got := <-done; !strings.HasPrefix(got, "ERROR 57014") {
		t.Fatalf("got %s", got)
	}
	expect(t, a, "UPDATE t SET v = v + 1 WHERE id = 1", "UPDATE 1 T")
	expect(t, a, "COMMIT", "COMMIT I")
	expect(t, b, "SELECT * FROM t ORDER BY id", "(1, 11, a) (2, 21, b) SELECT 2 I")
}

func TestSavepoints(t *testing.T) {
	io := fileio.NewMem()
	e := writeEngine(t, io)
	s := testSession(t, e)
	for i, mk := range []func(testing.TB, *Session, string){keyTable, appendTable} {
		n := fmt.Sprintf("t%d", i)
		mk(t, s, n)
		for _, step := range [][2]string{
			{"BEGIN", "BEGIN T"},
			{"INSERT INTO " + n + " VALUES (1, 1, 'a')", "INSERT 0 1 T"},
			{"SAVEPOINT a", "SAVEPOINT T"},
			{"INSERT INTO " + n + " VALUES (2, 2, 'b')", "INSERT 0 1 T"},
			{"UPDATE " + n + " SET v = v * 10", "UPDATE 2 T"},
			{"SELECT id, v FROM " + n + " ORDER BY id", "(1, 10) (2, 20) SELECT 2 T"},
			{"SELECT 1/0", "ERROR 22012 division by zero E"},
			{"INSERT INTO " + n + " VALUES (3, 3, 'b')", "ERROR 25P02 current transaction is aborted, commands ignored until end of transaction block E"},
			{"ROLLBACK TO a", "ROLLBACK T"},
			{"SELECT id, v FROM " + n + " ORDER BY id", "(1, 1) SELECT 1 T"},
			{"INSERT INTO " + n + " VALUES (4, 4, 'd')", "INSERT 0 1 T"},
			{"ROLLBACK TO a", "ROLLBACK T"},
			{"INSERT INTO " + n + " VALUES (5, 5, 'e')", "INSERT 0 1 T"},
			{"RELEASE a", "RELEASE T"},
			{"COMMIT", "COMMIT I"},
			{"SELECT id, v FROM " + n + " ORDER BY id", "(1, 1) (5, 5) SELECT 2 I"},
		} {
			expect(t, s, step[0], step[1])
		}
		if n := orphans(t, s, io, n); n != 0 {
			t.Errorf("%d data files belong to no snapshot", n)
		}
	}
}

// orphans counts data files of a table that its newest snapshot does not name.
func orphans(t testing.TB, s *Session, io fileio.FileIO, name string) int {
	t.Helper()
	es, err := io.List(context.Background(), "default.db/"+name+"/bucket-0")
	if err != nil {
		t.Fatal(err)
	}
	live := query(s, "SELECT file_path FROM "+name+"$files")
	n := 0
	for _, e := range es {
		if !strings.Contains(live, e.Name) {
			n++
		}
	}
	return n
}

func TestSeveralTables(t *testing.T) {
	e := writeEngine(t, nil)
	a, b := testSession(t, e), testSession(t, e)
	keyTable(t, a, "t")
	appendTable(t, a, "u")
	expect(t, a, "INSERT INTO t VALUES (1, 1, 'a')", "INSERT 0 1 I")
	expect(t, a, "BEGIN; INSERT INTO u VALUES (1, 1, 'u'); UPDATE t SET v = 2; COMMIT", "BEGIN INSERT 0 1 UPDATE 1 COMMIT I")
	expect(t, b, "SELECT t.v, u.v FROM t, u", "(2, 1) SELECT 1 I")
	expect(t, a, "BEGIN; INSERT INTO u VALUES (2, 2, 'u'); UPDATE t SET v = 3", "BEGIN INSERT 0 1 UPDATE 1 T")
	expect(t, b, "INSERT INTO t VALUES (1, 9, 'b')", "INSERT 0 1 I")
	// The conflict is in the second table; nothing of the first is published.
	expect(t, a, "COMMIT", "ERROR 40001 could not serialize access due to concurrent update I")
	expect(t, b, "SELECT t.v, u.v FROM t, u", "(9, 1) SELECT 1 I")
	expect(t, a, "SET paimon.multi_table_commit = 'error'", "SET I")
	expect(t, a, "BEGIN; INSERT INTO u VALUES (2, 2, 'u'); INSERT INTO t VALUES (5, 5, 'x'); COMMIT",
		"BEGIN INSERT 0 1 INSERT 0 1 ERROR 0A000 a transaction that writes several tables is refused I")
	expect(t, b, "SELECT count(*) FROM u", "(1) SELECT 1 I")
}

func TestStatementAtomicity(t *testing.T) {
	io := fileio.NewMem()
	e := writeEngine(t, io)
	s := testSession(t, e)
	keyTable(t, s, "t")
	expect(t, s, "INSERT INTO t SELECT g, 1 / (30000 - g), 'x' FROM generate_series(1, 40000) AS g", "ERROR 22012 division by zero I")
	expect(t, s, "SELECT count(*) FROM t", "(0) SELECT 1 I")
	if n := orphans(t, s, io, "t"); n != 0 {
		t.Errorf("%d data files belong to no snapshot", n)
	}
	expect(t, s, "INSERT INTO t SELECT g, g, 'x' FROM generate_series(1, 40000) AS g", "INSERT 0 40000 I")
	expect(t, s, "SELECT count(*), sum(v) FROM t", "(40000, 800020000) SELECT 1 I")
	expect(t, s, "UPDATE t SET v = v + 1 WHERE id % 2 = 0", "UPDATE 20000 I")
	expect(t, s, "DELETE FROM t WHERE id % 4 = 0", "DELETE 10000 I")
	expect(t, s, "SELECT count(*), sum(v) FROM t", "(30000, 600010000) SELECT 1 I")
	if n := orphans(t, s, io, "t"); n != 0 {
		t.Errorf("%d data files belong to no snapshot", n)
	}
}

// A long block of small statements does not leave a file each to look through.
func TestLongBlock(t *testing.T) {
	e := writeEngine(t, nil)
	s := testSession(t, e)
	for i, mk := range []func(testing.TB, *Session, string){keyTable, appendTable} {
		n := fmt.Sprintf("t%d", i)
		mk(t, s, n)
		expect(t, s, "INSERT INTO "+n+" SELECT g, 0, 'x' FROM generate_series(1, 50) AS g", "INSERT 0 50 I")
		expect(t, s, "BEGIN", "BEGIN T")
		for k := range 100 {
			expect(t, s, fmt.Sprintf("UPDATE %s SET v = v + 1 WHERE id = %d", n, 1+k%50), "UPDATE 1 T")
			if files := len(s.tx.tables[0].over.Files); i == 0 && files > 3*foldFiles {
				t.Fatalf("%d files after %d statements", files, k+1)
			}
		}
		expect(t, s, "SELECT min(v), max(v), count(*) FROM "+n, "(2, 2, 50) SELECT 1 T")
		expect(t, s, "COMMIT", "COMMIT I")
		expect(t, s, "SELECT min(v), max(v), count(*) FROM "+n, "(2, 2, 50) SELECT 1 I")
	}
}

// A key that is being inserted is waited for, whatever becomes of it.
func TestConcurrentInserts(t *testing.T) {
	e := writeEngine(t, nil)
	a, b := testSession(t, e), testSession(t, e)
	keyTable(t, a, "t")
	for _, s := range []*Session{a, b} {
		expect(t, s, "SET paimon.insert_mode = 'strict'", "SET I")
	}
	for i, step := range []struct{ end, sql, want string }{
		{"COMMIT", "INSERT INTO t VALUES (%d, 2, 'b')", "ERROR 23505 duplicate key value violates unique constraint \"t_pkey\"\nI"},
		{"ROLLBACK", "INSERT INTO t VALUES (%d, 2, 'b')", "INSERT 0 1\nI"},
		{"COMMIT", "INSERT INTO t VALUES (%d, 2, 'b') ON CONFLICT DO NOTHING", "INSERT 0 0\nI"},
		{"ROLLBACK", "INSERT INTO t VALUES (%d, 2, 'b') ON CONFLICT DO NOTHING", "INSERT 0 1\nI"},
		{"COMMIT", "INSERT INTO t VALUES (%d, 2, 'b') ON CONFLICT (id) DO UPDATE SET v = t.v + excluded.v RETURNING v", "[v bigint]\n(3)\nINSERT 0 1\nI"},
		{"COMMIT", "MERGE INTO t USING (VALUES (%d)) AS x (k) ON t.id = x.k WHEN MATCHED THEN UPDATE SET v = t.v + 5 WHEN NOT MATCHED THEN INSERT VALUES (x.k, 0, 'm')", "MERGE 1\nI"},
	} {
		expect(t, a, fmt.Sprintf("BEGIN; INSERT INTO t VALUES (%d, 1, 'a')", i), "BEGIN INSERT 0 1 T")
		done := async(b, fmt.Sprintf(step.sql, i))
		waiting(t, e, 1)
		expect(t, a, step.end, step.end+" I")
		if got := <-done; got != step.want {
			t.Errorf("%s after %s: got %s", step.sql, step.end, got)
		}
	}
	expect(t, a, "SELECT id, v FROM t ORDER BY id", "(0, 1) (1, 2) (2, 1) (3, 2) (4, 3) (5, 6) SELECT 6 I")
}

// A statement of very many keys locks the table instead.
func TestManyKeys(t *testing.T) {
	e := writeEngine(t, nil)
	e.locks.maxKeys = 1000
	a, b := testSession(t, e), testSession(t, e)
	keyTable(t, a, "t")
	expect(t, a, "INSERT INTO t SELECT g, g, 'x' FROM generate_series(1, 5000) AS g", "INSERT 0 5000 I")
	expect(t, a, "BEGIN; UPDATE t SET v = v + 1", "BEGIN UPDATE 5000 T")
	if n := e.locks.held(); n > 3500 {
		t.Errorf("%d locks", n)
	}
	done := async(b, "INSERT INTO t VALUES (1, 0, 'b')")
	waiting(t, e, 1)
	expect(t, a, "COMMIT", "COMMIT I")
	if got := <-done; got != "INSERT 0 1\nI" {
		t.Error(got)
	}
	expect(t, b, "BEGIN; UPDATE t SET v = v + 1 WHERE id = 7", "BEGIN UPDATE 1 T")
	done = async(a, "UPDATE t SET v = v + 1")
	waiting(t, e, 1)
	expect(t, b, "COMMIT", "COMMIT I")
	if got := <-done; got != "UPDATE 5000\nI" {
		t.Error(got)
	}
	expect(t, a, "SELECT v FROM t WHERE id = 7", "(10) SELECT 1 I")
}
