// Package oracle talks to Java Paimon: the program of shared/interop/java-oracle,
// kept running for a whole test binary, answers one JSON command per line.
package oracle

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
)

// Jar is the environment variable that names the built program.
const Jar = "PAIMON_ORACLE_JAR"

// Client is a running oracle over one warehouse. Safe for concurrent use:
// commands run one at a time.
type Client struct {
	Warehouse string
	p         *process
}

type process struct {
	mu  sync.Mutex // one command at a time
	in  io.WriteCloser
	out *bufio.Reader
	err *tail
}

// tail keeps the last bytes of what the program wrote to stderr.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.b = append(t.b, p...); len(t.b) > 4096 {
		t.b = t.b[len(t.b)-4096:]
	}
	return len(p), nil
}

var start = sync.OnceValues(launch)

// launch starts the program; it ends when the test binary, and so its stdin, does.
func launch() (*process, error) {
	cmd := exec.Command("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx1g", "-jar", os.Getenv(Jar), "serve")
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p := &process{in: in, out: bufio.NewReaderSize(out, 1<<20), err: &tail{}}
	cmd.Stderr = p.err
	return p, cmd.Start()
}

// Alone is Java with a process of its own, which ends with the test: Java's incremental
// clustering closes the temporary directory that every other command shares.
func Alone(t testing.TB, warehouse string) *Client {
	t.Helper()
	if os.Getenv(Jar) == "" {
		t.Skip("needs " + Jar + ", the jar of shared/interop/java-oracle, and java")
	}
	p, err := launch()
	if err != nil {
		t.Skip("needs java: " + err.Error())
	}
	t.Cleanup(func() { p.in.Close() })
	return &Client{Warehouse: warehouse, p: p}
}

// Java returns the oracle over a warehouse (a directory), or skips the test by
// name when the program is not there.
func Java(t testing.TB, warehouse string) *Client {
	t.Helper()
	c := Maybe(t, warehouse)
	if c == nil {
		t.Skip("needs " + Jar + ", the jar of shared/interop/java-oracle, and java")
	}
	return c
}

// Maybe is Java for tests that show something without it, too: nil when the
// program is not there.
func Maybe(t testing.TB, warehouse string) *Client {
	t.Helper()
	if os.Getenv(Jar) == "" {
		return nil
	}
	p, err := start()
	if err != nil {
		t.Logf("no java: %v", err)
		return nil
	}
	return &Client{Warehouse: warehouse, p: p}
}

// Reply is an answer, by member.
type Reply map[string]json.RawMessage

// Try runs a command; cmd's "warehouse" is filled in. The error is Java's.
func (c *Client) Try(cmd map[string]any) (Reply, error) {
	if _, ok := cmd["warehouse"]; !ok {
		cmd["warehouse"] = c.Warehouse
	}
	line, err := json.Marshal(cmd)
	if err != nil {
		return nil, err
	}
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if _, err := c.p.in.Write(append(line, '\n')); err != nil {
		return nil, fmt.Errorf("oracle is gone: %w: %s", err, c.p.err.b)
	}
	raw, err := c.p.out.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("oracle is gone: %w: %s", err, c.p.err.b)
	}
	var r Reply
	if err := json.Unmarshal([]byte(raw), &r); err != nil {
		return nil, fmt.Errorf("%w: %.200s", err, raw)
	}
	if string(r["ok"]) != "true" {
		return r, fmt.Errorf("java: %s %s %.1500s", r["error"], r["causes"], r["trace"])
	}
	return r, nil
}

// Do runs a command that must succeed.
func (c *Client) Do(t testing.TB, cmd map[string]any) Reply {
	t.Helper()
	r, err := c.Try(cmd)
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	return r
}

// Rows reads a table whole, or a state of it by options, as JSON objects with the
// columns in the order of the schema.
func (c *Client) Rows(t testing.TB, table string, options map[string]string) []json.RawMessage {
	t.Helper()
	cmd := map[string]any{"cmd": "read", "table": table}
	if options != nil {
		cmd["options"] = options
	}
	var rows []json.RawMessage
	if err := json.Unmarshal(c.Do(t, cmd)["rows"], &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// Check runs the oracle's examination of a table: every snapshot, manifest, file
// and statistic. Problems fail the test. A nil client has no opinion.
func (c *Client) Check(t testing.TB, table string) { t.Helper(); c.check(t, table) }

// CheckKilled is Check for a table whose writer was killed: what it had not
// published yet may lie in the snapshot directory, and the hint of the newest
// snapshot may name the one before, which readers put up with.
func (c *Client) CheckKilled(t testing.TB, table string) {
	t.Helper()
	c.check(t, table, "snapshot-dir-file", "hint-stale")
}

func (c *Client) check(t testing.TB, table string, allowed ...string) {
	t.Helper()
	if c == nil {
		return
	}
	r := c.Do(t, map[string]any{"cmd": "check", "table": table, "deep": true, "read": true})
	var problems []struct {
		Severity, Kind, Where, Object, Detail string
	}
	if err := json.Unmarshal(r["problems"], &problems); err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if p.Severity == "info" || p.Severity == "warning" && slices.Contains(allowed, p.Kind) {
			continue
		}
		t.Errorf("java check of %s: %+v", table, p)
	}
}
