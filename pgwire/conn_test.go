package pgwire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// waitFor polls until f is true.
func waitFor(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if f() {
			return
		}
	}
	t.Fatal("waited in vain for ", what)
}

func query(s string) []byte { return frame('Q', append([]byte(s), 0)...) }

func cancelPacket(pid, secret uint32) []byte {
	return packet(codeCancel, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, pid), secret)...)
}

func TestCancel(t *testing.T) {
	b := &fakeBackend{}
	_, addr := startServer(t, Config{Backend: b})
	c := dial(t, addr)
	c.login()
	f := b.sessions[1]

	c.write(query("sleep"))
	<-f.running
	wrong := dial(t, addr)
	wrong.write(cancelPacket(1, 1))
	wrong.until("closed")
	select {
	case err := <-f.ended:
		t.Fatal("a wrong key has cancelled: ", err)
	default:
	}
	right := dial(t, addr)
	right.write(cancelPacket(1, 7777))
	if got := right.next(); got != "closed" {
		t.Errorf("the request was answered with %s", got)
	}
	got := c.until("ReadyForQuery")
	want := []string{"ErrorResponse ERROR 57014 canceling statement due to user request", "ReadyForQuery I"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q", got)
	}
	// A late request hits nothing.
	late := dial(t, addr)
	late.write(cancelPacket(1, 7777))
	late.until("closed")
	c.write(query("rows 1"))
	if got := c.until("ReadyForQuery"); len(got) != 4 {
		t.Errorf("got %q", got)
	}
}

// A client that does not read must not keep a cancelled statement alive, and
// what it then reads is whole.
func TestCancelSlowClient(t *testing.T) {
	b := &fakeBackend{}
	_, addr := startServer(t, Config{Backend: b})
	c := dial(t, addr)
	c.login()
	c.write(query("big 100000"))
	f := b.sessions[1]
	// The statement is done for when its cancel function is gone.
	waitFor(t, "the statement to run", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.cancel != nil })
	k := dial(t, addr)
	k.write(cancelPacket(1, 7777))
	k.until("closed")
	waitFor(t, "the statement to end", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.cancel == nil })
	got := c.until("ReadyForQuery")
	if n := len(got); n > 100000 || got[n-2] != "ErrorResponse ERROR 57014 canceling statement due to user request" {
		t.Errorf("%d messages, then %q", n-2, got[n-2:])
	}
	for i, m := range got[1 : len(got)-2] {
		if m != "DataRow (1000 bytes)" {
			t.Fatalf("message %d is %s", i, m)
		}
	}
}

// A client that vanishes stops its statement, also when it has sent more
// meanwhile.
func TestClientVanishes(t *testing.T) {
	for _, more := range []string{"", "Q"} {
		b := &fakeBackend{}
		_, addr := startServer(t, Config{Backend: b, WatchDelay: time.Nanosecond})
		c := dial(t, addr)
		c.login()
		f := b.sessions[1]
		c.write(query("sleep"))
		<-f.running
		if more != "" {
			c.write(query("rows 1"))
		}
		c.nc.Close()
		if err := <-f.ended; !errors.Is(err, errClientGone) {
			t.Errorf("ended with %v", err)
		}
	}
}

// Messages that arrive while a statement is watched are not lost.
func TestPipelineWhileWatched(t *testing.T) {
	b := &fakeBackend{}
	_, addr := startServer(t, Config{Backend: b, WatchDelay: time.Nanosecond})
	c := dial(t, addr)
	c.login()
	f := b.sessions[1]
	c.write(query("sleep"))
	<-f.running
	var more []byte
	for i := range 500 {
		more = append(more, query(fmt.Sprintf("insert %d", i))...)
	}
	c.write(more)
	k := dial(t, addr)
	k.write(cancelPacket(1, 7777))
	c.until("ReadyForQuery")
	for i := range 500 {
		if got := c.until("ReadyForQuery"); got[0] != fmt.Sprintf("CommandComplete INSERT 0 %d", i) {
			t.Fatalf("got %q", got)
		}
	}
}

func TestShutdown(t *testing.T) {
	b := &fakeBackend{}
	s, addr := startServer(t, Config{Backend: b})
	idle, busy, inTxn := dial(t, addr), dial(t, addr), dial(t, addr)
	idle.login()
	busy.login()
	inTxn.login()
	inTxn.write(query("begin"))
	inTxn.until("ReadyForQuery")
	busy.write(query("sleep"))
	<-b.sessions[2].running

	ctx, grace := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Shutdown(ctx) }()
	const bye = "ErrorResponse FATAL 57P01 terminating connection due to administrator command"
	if got := idle.until("closed"); got[0] != bye {
		t.Errorf("idle: %q", got)
	}
	// A transaction may go on within the grace period, and ends with it.
	inTxn.write(query("commit"))
	if got := inTxn.until("closed"); got[0] != "CommandComplete COMMIT" || got[2] != bye {
		t.Errorf("in a transaction: %q", got)
	}
	if nc, err := net.Dial("tcp", addr); err == nil {
		nc.Close()
		t.Error("a new connection was accepted")
	}
	grace()
	if got := busy.until("closed"); got[0] != bye {
		t.Errorf("busy: %q", got)
	}
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	for _, f := range b.sessions {
		if !f.closed {
			t.Error("a session was not closed")
		}
	}
}

func TestStartupTimeout(t *testing.T) {
	_, addr := startServer(t, Config{Backend: &fakeBackend{}, StartupTimeout: time.Millisecond})
	c := dial(t, addr)
	c.write([]byte{0, 0})
	if got := c.next(); got != "closed" {
		t.Errorf("got %s", got)
	}
}

// A length field that promises much costs nothing until the bytes come.
func TestLengthIsNotTrusted(t *testing.T) {
	srv, cli := net.Pipe()
	defer srv.Close()
	go func() {
		cli.Write(append([]byte{'Q'}, 0x3f, 0xff, 0xff, 0xff, 'x')) //nolint:errcheck // a test
		cli.Close()
	}()
	r := reader{nc: srv, max: defaultMaxMessage}
	_, _, err := r.message()
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
	if len(r.buf) > 1<<20 {
		t.Errorf("the buffer has grown to %d bytes", len(r.buf))
	}
}

// A large message arrives whole, whatever pieces it comes in.
func TestLargeMessage(t *testing.T) {
	srv, cli := net.Pipe()
	defer srv.Close()
	body := make([]byte, 3<<20)
	for i := range body {
		body[i] = byte(i * 7)
	}
	msg := append(frame('d', body...), frame('S')...)
	go func() {
		for n := 1; len(msg) > 0; n = n*3 + 1 {
			k := min(n, len(msg))
			cli.Write(msg[:k]) //nolint:errcheck // a test
			msg = msg[k:]
		}
	}()
	r := reader{nc: srv, max: defaultMaxMessage}
	typ, got, err := r.message()
	if err != nil || typ != 'd' || string(got) != string(body) {
		t.Fatalf("%c, %d bytes, %v", typ, len(got), err)
	}
	typ, _, err = r.message()
	if err != nil || typ != 'S' {
		t.Fatalf("%c, %v", typ, err)
	}
	if len(r.buf) > 4*readChunk {
		t.Errorf("%d bytes are kept", len(r.buf))
	}
}

type refuse struct{}

func (refuse) Authenticate(_ context.Context, x *Exchange) error {
	m, data, err := x.SASL("SCRAM-SHA-256")
	if err != nil {
		return err
	}
	answer, err := x.Continue([]byte("more"))
	if err != nil {
		return err
	}
	if m == "SCRAM-SHA-256" && string(data) == "first" && string(answer) == "second" {
		x.Final([]byte("end"))
		return nil
	}
	return pgerr.New(pgerr.InvalidPassword, "password authentication failed for user \"%s\"", x.User)
}

func TestAuthenticator(t *testing.T) {
	_, addr := startServer(t, Config{Backend: &fakeBackend{}, Auth: refuse{}})
	for answer, want := range map[string]string{
		"second": "Authentication 12",
		"wrong":  "ErrorResponse FATAL 28P01 password authentication failed for user \"u\"",
	} {
		c := dial(t, addr)
		c.write(startupPacket(protocol30, "user", "u"))
		c.until("Authentication")
		c.write(frame('p', append([]byte("SCRAM-SHA-256\x00\x00\x00\x00\x05"), "first"...)...))
		c.until("Authentication")
		c.write(frame('p', []byte(answer)...))
		if got := c.next(); got != want {
			t.Errorf("got %s", got)
		}
	}
}
