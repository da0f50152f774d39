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
	"github.com/paimon-sql/paimon-sql/pgwire/wiretest"
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

func query(s string) []byte { return wiretest.Frame('Q', append([]byte(s), 0)...) }

func cancelPacket(pid, secret uint32) []byte {
	return packet(codeCancel, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, pid), secret)...)
}

func TestCancel(t *testing.T) {
	b := &fakeBackend{}
	_, addr := startServer(t, Config{Backend: b})
	c := wiretest.Dial(t, addr)
	c.Login()
	f := b.sessions[1]

	c.Write(query("sleep"))
	<-f.running
	wrong := wiretest.Dial(t, addr)
	wrong.Write(cancelPacket(1, 1))
	wrong.Until("closed")
	select {
	case err := <-f.ended:
		t.Fatal("a wrong key has cancelled: ", err)
	default:
	}
	right := wiretest.Dial(t, addr)
	right.Write(cancelPacket(1, 7777))
	if got := right.Next(); got != "closed" {
		t.Errorf("the request was answered with %s", got)
	}
	got := c.Until("ReadyForQuery")
	want := []string{"ErrorResponse ERROR 57014 canceling statement due to user request", "ReadyForQuery I"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q", got)
	}
	// A late request hits nothing.
	late := wiretest.Dial(t, addr)
	late.Write(cancelPacket(1, 7777))
	late.Until("closed")
	c.Write(query("rows 1"))
	if got := c.Until("ReadyForQuery"); len(got) != 4 {
		t.Errorf("got %q", got)
	}
}

// A client that does not read must not keep a cancelled statement alive, and
// what it then reads is whole.
func TestCancelSlowClient(t *testing.T) {
	b := &fakeBackend{}
	_, addr := startServer(t, Config{Backend: b})
	c := wiretest.Dial(t, addr)
	c.Login()
	c.Write(query("big 100000"))
	f := b.sessions[1]
	// The statement is done for when its cancel function is gone.
	waitFor(t, "the statement to run", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.cancel != nil })
	k := wiretest.Dial(t, addr)
	k.Write(cancelPacket(1, 7777))
	k.Until("closed")
	waitFor(t, "the statement to end", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.cancel == nil })
	got := c.Until("ReadyForQuery")
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
		c := wiretest.Dial(t, addr)
		c.Login()
		f := b.sessions[1]
		c.Write(query("sleep"))
		<-f.running
		if more != "" {
			c.Write(query("rows 1"))
		}
		c.NC.Close()
		if err := <-f.ended; !errors.Is(err, errClientGone) {
			t.Errorf("ended with %v", err)
		}
	}
}

// Messages that arrive while a statement is watched are not lost.
func TestPipelineWhileWatched(t *testing.T) {
	b := &fakeBackend{}
	_, addr := startServer(t, Config{Backend: b, WatchDelay: time.Nanosecond})
	c := wiretest.Dial(t, addr)
	c.Login()
	f := b.sessions[1]
	c.Write(query("sleep"))
	<-f.running
	var more []byte
	for i := range 500 {
		more = append(more, query(fmt.Sprintf("insert %d", i))...)
	}
	c.Write(more)
	k := wiretest.Dial(t, addr)
	k.Write(cancelPacket(1, 7777))
	c.Until("ReadyForQuery")
	for i := range 500 {
		if got := c.Until("ReadyForQuery"); got[0] != fmt.Sprintf("CommandComplete INSERT 0 %d", i) {
			t.Fatalf("got %q", got)
		}
	}
}

func TestShutdown(t *testing.T) {
	b := &fakeBackend{}
	s, addr := startServer(t, Config{Backend: b})
	idle, busy, inTxn := wiretest.Dial(t, addr), wiretest.Dial(t, addr), wiretest.Dial(t, addr)
	idle.Login()
	busy.Login()
	inTxn.Login()
	inTxn.Write(query("begin"))
	inTxn.Until("ReadyForQuery")
	busy.Write(query("sleep"))
	<-b.sessions[2].running

	ctx, grace := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Shutdown(ctx) }()
	const bye = "ErrorResponse FATAL 57P01 terminating connection due to administrator command"
	if got := idle.Until("closed"); got[0] != bye {
		t.Errorf("idle: %q", got)
	}
	// A transaction may go on within the grace period, and ends with it.
	inTxn.Write(query("commit"))
	if got := inTxn.Until("closed"); got[0] != "CommandComplete COMMIT" || got[2] != bye {
		t.Errorf("in a transaction: %q", got)
	}
	// Who comes late is told why, also when he asks for encryption first.
	for _, ssl := range []bool{false, true} {
		late := wiretest.Dial(t, addr)
		if ssl {
			late.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47})
			if b, err := late.ReadByte(); err != nil || b != 'N' {
				t.Errorf("SSLRequest: %q %v", b, err)
			}
		}
		late.Write(wiretest.StartupPacket(wiretest.Protocol30, "user", "u"))
		if got := late.Until("closed"); got[0] != "ErrorResponse FATAL 57P03 the database system is shutting down" {
			t.Errorf("a new connection: %q", got)
		}
	}
	grace()
	if got := busy.Until("closed"); got[0] != bye {
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
	c := wiretest.Dial(t, addr)
	c.Write([]byte{0, 0})
	if got := c.Next(); got != "closed" {
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
	msg := append(wiretest.Frame('d', body...), wiretest.Frame('S')...)
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
		c := wiretest.Dial(t, addr)
		c.Write(wiretest.StartupPacket(protocol30, "user", "u"))
		c.Until("Authentication")
		c.Write(wiretest.Frame('p', append([]byte("SCRAM-SHA-256\x00\x00\x00\x00\x05"), "first"...)...))
		c.Until("Authentication")
		c.Write(wiretest.Frame('p', []byte(answer)...))
		if got := c.Next(); got != want {
			t.Errorf("got %s", got)
		}
	}
}
