package pgwire

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/pgwire/wiretest"
)

// TestHostileClients: whatever clients begin and do not end, the server is back where
// it was when they are gone, and others are served meanwhile.
func TestHostileClients(t *testing.T) {
	auth := NewSCRAM(lookup(t))
	s, addr := startServer(t, Config{
		Backend: &fakeBackend{}, Auth: auth, FailDelay: -1, MaxPending: 300, TLS: &tls.Config{Certificates: []tls.Certificate{certificate(t)}},
	})
	garbage := bytes.Repeat([]byte{0x16, 3, 1, 0xff}, 4096)
	startup := wiretest.StartupPacket(protocol30, "user", "bob")
	cases := map[string][]byte{
		"nothing":            nil,
		"half a length":      {0, 0},
		"half a packet":      startup[:len(startup)-3],
		"a huge packet":      {0x7f, 0xff, 0xff, 0xff, 0, 3, 0, 0},
		"a negative length":  {0xff, 0xff, 0xff, 0xf0, 0, 3, 0, 0},
		"HTTP":               []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"cancel":             packet(codeCancel, 0, 0, 0, 1, 1, 2, 3, 4),
		"half a cancel":      packet(codeCancel, 0, 0, 0, 1)[:10],
		"TLS garbage":        append(packet(codeSSL), garbage...),
		"TLS and silence":    packet(codeSSL),
		"a login and nobody": startup,
		"a huge password":    append(bytes.Clone(startup), 'p', 0x3f, 0xff, 0xff, 0xff, 1, 2, 3),
		"a guess":            append(bytes.Clone(startup), wiretest.Frame('p', []byte("SCRAM-SHA-256\x00\x00\x00\x00\x0bn,,n=,r=abc")...)...),
		"a query too early":  append(bytes.Clone(startup), wiretest.Frame('Q', []byte("rows 1\x00")...)...),
		"many encryptions":   bytes.Repeat(packet(codeGSS), 50),
	}
	base := runtime.NumGoroutine()
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var wg sync.WaitGroup
	for _, data := range cases {
		for range 12 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				nc, err := net.Dial("tcp", addr)
				if err != nil {
					t.Error(err)
					return
				}
				defer nc.Close()                                     //nolint:errcheck // it is given up
				_ = nc.SetDeadline(time.Now().Add(20 * time.Second)) // a guard, not a measure
				nc.Write(data)                                       //nolint:errcheck // the server may have closed
				// Whoever is not thrown out leaves without a word.
				_ = nc.(*net.TCPConn).CloseWrite()
				io.Copy(io.Discard, nc) //nolint:errcheck // as above
			}()
		}
	}
	wg.Wait()
	for end := time.Now().Add(20 * time.Second); s.Pending() > 0 || s.Sessions() > 0 || runtime.NumGoroutine() > base+2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d logging in, %d sessions, %d goroutines of %d:\n%s", s.Pending(), s.Sessions(), runtime.NumGoroutine(), base, buf[:runtime.Stack(buf, true)])
		}
	}
	var after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&after)
	if after.HeapAlloc > before.HeapAlloc+8<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before.HeapAlloc, after.HeapAlloc)
	}
}

// TestUnknownUserLooksAlike: who guesses sees the same steps and the same messages
// whether a user exists or not, and the same salt each time.
func TestUnknownUserLooksAlike(t *testing.T) {
	_, addr := startServer(t, Config{Backend: &fakeBackend{}, Auth: NewSCRAM(lookup(t)), FailDelay: -1})
	steps := func(user string) (kinds []string) {
		c := wiretest.Dial(t, addr)
		c.Write(wiretest.StartupPacket(protocol30, "user", user))
		read := func() {
			m := c.Next()
			if len(m) > 16 {
				m = m[:16]
			}
			kinds = append(kinds, m)
		}
		read()
		c.Write(wiretest.Frame('p', []byte("SCRAM-SHA-256\x00\x00\x00\x00\x0bn,,n=,r=abc")...))
		read()
		c.Write(wiretest.Frame('p', []byte("c=biws,r=abc,p="+"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")...))
		read()
		read()
		return kinds
	}
	known := steps("bob")
	unknown := steps("eve")
	for i := range known {
		if known[i] != unknown[i] {
			t.Errorf("step %d: %q for one who exists, %q for one who does not", i, known[i], unknown[i])
		}
	}
}
