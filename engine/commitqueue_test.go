package engine

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// gate holds the commit queue of a table after its next group.
type gate struct {
	e       *Engine
	entered chan struct{}
	open    chan struct{}
}

// hold makes the queue stop behind the next commit, which s makes.
func hold(t testing.TB, e *Engine, s *Session, sql string) *gate {
	t.Helper()
	g := &gate{e: e, entered: make(chan struct{}), open: make(chan struct{})}
	quiet(t, e)
	once := false
	e.afterCommit = func(tableKey, table.Table) {
		if !once {
			once = true
			close(g.entered)
			<-g.open
		}
	}
	if got := query(s, sql); !strings.HasSuffix(got, "I") || strings.HasPrefix(got, "ERROR") {
		t.Fatal(got)
	}
	<-g.entered
	return g
}

// quiet returns when no queue is served.
func quiet(t testing.TB, e *Engine) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		busy := false
		e.queueMu.Lock()
		for _, q := range e.queues {
			q.mu.Lock()
			busy = busy || q.running
			q.mu.Unlock()
		}
		e.queueMu.Unlock()
		if !busy {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a queue is still served")
		}
		time.Sleep(time.Millisecond)
	}
}

// waits returns when n members wait for their group.
func (g *gate) waits(t testing.TB, n int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		got := 0
		g.e.queueMu.Lock()
		for _, q := range g.e.queues {
			q.mu.Lock()
			got += len(q.waiting)
			q.mu.Unlock()
		}
		g.e.queueMu.Unlock()
		if got >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d members wait, not %d", got, n)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestGroupCommit(t *testing.T) {
	e := writeEngine(t, nil)
	s := testSession(t, e)
	for i, mk := range []func(testing.TB, *Session, string){keyTable, appendTable} {
		n := fmt.Sprintf("t%d", i)
		mk(t, s, n)
		g := hold(t, e, s, "INSERT INTO "+n+" VALUES (0, 0, 'first')")
		var answers []<-chan string
		for k := range 5 {
			answers = append(answers, async(testSession(t, e), fmt.Sprintf("INSERT INTO %s VALUES (%d, %d, 'x'), (99, %d, 'y')", n, k+1, k, k)))
			g.waits(t, k+1)
		}
		close(g.open)
		for _, a := range answers {
			if got := <-a; got != "INSERT 0 2\nI" {
				t.Error(got)
			}
		}
		expect(t, s, "SELECT count(*) FROM "+n+"$snapshots", "(2) SELECT 1 I")
		if i == 0 { // the last to arrive is the newest
			expect(t, s, "SELECT v FROM "+n+" WHERE id = 99", "(4) SELECT 1 I")
			expect(t, s, "SELECT count(*) FROM "+n, "(7) SELECT 1 I")
		} else {
			expect(t, s, "SELECT count(*) FROM "+n, "(11) SELECT 1 I")
		}
	}
}

// A statement that read what a member before it in the group writes fails alone,
// and is run again.
func TestGroupConflict(t *testing.T) {
	e := writeEngine(t, nil)
	s := testSession(t, e)
	keyTable(t, s, "t")
	expect(t, s, "INSERT INTO t VALUES (1, 1, 'a')", "INSERT 0 1 I")
	g := hold(t, e, s, "INSERT INTO t VALUES (2, 2, 'b')")
	blind := async(testSession(t, e), "INSERT INTO t VALUES (1, 100, 'blind')")
	g.waits(t, 1)
	update := async(testSession(t, e), "UPDATE t SET v = v + 1 WHERE id = 1 RETURNING v")
	g.waits(t, 2)
	other := async(testSession(t, e), "UPDATE t SET v = v + 1 WHERE id = 2 RETURNING v")
	g.waits(t, 3)
	close(g.open)
	for c, want := range map[<-chan string]string{blind: "INSERT 0 1\nI", update: "[v bigint]\n(101)\nUPDATE 1\nI", other: "[v bigint]\n(3)\nUPDATE 1\nI"} {
		if got := <-c; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	expect(t, s, "SELECT * FROM t ORDER BY id", "(1, 101, blind) (2, 3, b) SELECT 2 I")
	expect(t, s, "SELECT count(*) FROM t$snapshots", "(4) SELECT 1 I")
}

func TestGroupCancel(t *testing.T) {
	e := writeEngine(t, nil)
	s, a := testSession(t, e), testSession(t, e)
	keyTable(t, s, "t")
	g := hold(t, e, s, "INSERT INTO t VALUES (1, 1, 'a')")
	c := async(a, "INSERT INTO t VALUES (2, 2, 'b')")
	g.waits(t, 1)
	a.interrupt(errCanceled())
	if got := <-c; got != "ERROR 57014 canceling statement due to user request\nI" {
		t.Error(got)
	}
	close(g.open)
	expect(t, s, "SELECT id FROM t", "(1) SELECT 1 I")
}

// Whatever call fails while a group commits: what is acknowledged is there, what
// is not is not, and the table goes on.
func TestGroupFaults(t *testing.T) {
	for _, lost := range []bool{false, true} {
		for n := 1; ; n++ {
			io := fileio.NewFault(fileio.NewMem())
			e := writeEngine(t, io)
			s := testSession(t, e)
			keyTable(t, s, "t")
			g := hold(t, e, s, "INSERT INTO t VALUES (0, 0, 'first')")
			var answers []<-chan string
			for k := range 3 {
				answers = append(answers, async(testSession(t, e), fmt.Sprintf("INSERT INTO t VALUES (%d, %d, 'x')", k+1, k)))
				g.waits(t, k+1)
			}
			hits := io.Hits()
			io.Add(fileio.Rule{Op: "store", Nth: n, Err: syscall.ENOSPC, After: lost})
			close(g.open)
			done := map[int]bool{}
			for k, a := range answers {
				switch got := <-a; {
				case got == "INSERT 0 1\nI":
					done[k+1] = true
				case strings.HasPrefix(got, "ERROR 53100"), strings.HasPrefix(got, "ERROR 40003"), strings.HasPrefix(got, "ERROR 58030"):
				default:
					t.Errorf("call %d: %s", n, got)
				}
			}
			hit := io.Hits() > hits
			io.Clear()
			got := query(s, "SELECT id FROM t ORDER BY id")
			for k := range 3 {
				if there := strings.Contains(got, fmt.Sprintf("(%d)", k+1)); done[k+1] && !there {
					t.Errorf("call %d, reply lost %v: row %d was acknowledged and is not there", n, lost, k+1)
				} else if !done[k+1] && there && !lost {
					t.Errorf("call %d: row %d was refused and is there", n, k+1)
				}
			}
			expect(t, s, "INSERT INTO t VALUES (9, 9, 'after')", "INSERT 0 1 I")
			s.Close()
			if !hit {
				break
			}
		}
	}
}

// A fault between the commits of two tables says what was published.
func TestPartlyApplied(t *testing.T) {
	io := fileio.NewFault(fileio.NewMem())
	e := writeEngine(t, io)
	s := testSession(t, e)
	keyTable(t, s, "t")
	keyTable(t, s, "u")
	expect(t, s, "BEGIN; INSERT INTO t VALUES (1, 1, 'a'); INSERT INTO u VALUES (1, 1, 'a')", "BEGIN INSERT 0 1 INSERT 0 1 T")
	io.Add(fileio.Rule{Op: "create", Path: "default.db/u/", Err: syscall.EIO})
	r := &recorder{s: s}
	err := s.Query(t.Context(), "COMMIT", r)
	if got := errLine(err); !strings.HasPrefix(got, "ERROR 40003 transaction is partly applied") {
		t.Fatal(got)
	}
	if d := e.toPG(t.Context(), err, "").Detail; d != "Published: public.t." {
		t.Error(d)
	}
	io.Clear()
	expect(t, s, "SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM u)", "(1, 0) SELECT 1 I")
}
