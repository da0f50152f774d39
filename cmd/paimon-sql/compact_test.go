package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"
)

// lockedBuffer is written by a command and read by a test at the same time.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// runApp runs a subcommand and returns its exit code and both outputs.
func runApp(ctx context.Context, args ...string) (int, string, string) {
	var out, err lockedBuffer
	a := &app{in: strings.NewReader(""), out: &out, err: &err, env: func(string) string { return "" }}
	return a.main(ctx, args), out.String(), err.String()
}

func TestCompactCommand(t *testing.T) {
	wh := t.TempDir()
	sql := func(q string) string {
		t.Helper()
		code, out, msg := runApp(t.Context(), "sql", "--warehouse", wh, "--format", "csv", "-c", q)
		if code != 0 {
			t.Fatalf("%s: %d %s", q, code, msg)
		}
		return out
	}
	sql("CREATE TABLE k (d int, id int, n int, PRIMARY KEY (d, id)) PARTITIONED BY (d) WITH ('bucket'='2','write-only'='true','merge-engine'='aggregation','fields.n.aggregate-function'='sum','snapshot.num-retained.min'='1','snapshot.num-retained.max'='2')")
	for range 3 {
		sql("INSERT INTO k SELECT d, id, 1 FROM generate_series(1, 2) d, generate_series(1, 20) id")
	}
	files := func() string { return sql("SELECT partition, count(*) FROM k$files GROUP BY partition ORDER BY 1") }
	before := files()
	for _, tt := range []struct {
		args []string
		code int
		want string // on standard output, or standard error
	}{
		{[]string{"--partition", "d=1", "--bucket", "0", "--full"}, 0, "1 row"},
		{[]string{"--where", "d = 2", "--full"}, 0, "1 row"},
		{[]string{"--partition", "d=1", "--where", "d = 1"}, 1, "partitions and where"},
		{[]string{"--partition-idle-time", "1 d", "--full"}, 0, "1 row"},
		{[]string{"--options", "num-sorted-run.compaction-trigger=1"}, 0, "1 row"},
		{[]string{"--order", "zorder", "--by", "n"}, 1, "0A000"},
		{[]string{"--bucket", "x"}, 1, "invalid bucket"},
		{[]string{"--interval", "0s"}, 2, "--interval"},
		{[]string{"--nonsense"}, 2, "nonsense"},
		{[]string{"--help"}, 0, "--watch"},
	} {
		code, out, msg := runApp(t.Context(), append([]string{"compact", "--warehouse", wh, "--table", "public.k"}, tt.args...)...)
		if code != tt.code || !strings.Contains(out+msg, tt.want) {
			t.Errorf("%v: %d\n%s%s", tt.args, code, out, msg)
		}
	}
	if got := files(); got == before {
		t.Errorf("files are as they were: %s", got)
	}
	if got := sql("SELECT count(*), sum(n) FROM k"); !strings.Contains(got, "40,120") {
		t.Errorf("rows: %s", got)
	}
	if got := sql("SELECT count(*) FROM k$files WHERE level = 0"); !strings.Contains(got, "0") {
		t.Errorf("level 0: %s", got)
	}
}

// --watch compacts what others write until it is told to stop.
func TestCompactWatch(t *testing.T) {
	wh := t.TempDir()
	sql := func(q string) string {
		t.Helper()
		code, out, msg := runApp(t.Context(), "sql", "--warehouse", wh, "--format", "csv", "-c", q)
		if code != 0 {
			t.Fatalf("%s: %d %s", q, code, msg)
		}
		return out
	}
	sql("CREATE TABLE k (id int PRIMARY KEY, n int) WITH ('write-only'='true','num-sorted-run.compaction-trigger'='2')")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out, msg lockedBuffer
	a := &app{in: strings.NewReader(""), out: &out, err: &msg, env: func(string) string { return "" }}
	code := make(chan int)
	go func() {
		code <- a.main(ctx, []string{"compact", "--warehouse", wh, "--table", "k", "--watch", "--interval", "10ms"})
	}()
	for i, end := 0, time.Now().Add(time.Minute); strings.Count(out.String(), "snapshot") < 2; i++ {
		if time.Now().After(end) {
			t.Fatalf("never compacted twice: %s%s", out.String(), msg.String())
		}
		sql("INSERT INTO k VALUES (1, 1), (2, 2)")
	}
	stop()
	if c := <-code; c != 0 {
		t.Errorf("exit code %d: %s", c, msg.String())
	}
	if got := sql("SELECT count(*) FROM k"); !strings.Contains(got, "2") {
		t.Error(got)
	}
}
