package pgwire

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paimon-sql/paimon-sql/pgwire/wiretest"
)

func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func lookup(t *testing.T) func(string) (Verifier, bool) {
	users := map[string]Verifier{}
	for u, p := range map[string]string{"bob": "secret", "zoë": "pässwörd\u00a0x"} {
		v, err := NewVerifier(p)
		if err != nil {
			t.Fatal(err)
		}
		users[u] = v
	}
	return func(u string) (Verifier, bool) { v, ok := users[u]; return v, ok }
}

// pgx's client of SCRAM talks to ours, in clear text, over TLS and with channel
// binding; wrong passwords and unknown users fail alike.
func TestSCRAM(t *testing.T) {
	cert := certificate(t)
	auth := NewSCRAM(lookup(t))
	_, plain := startServer(t, Config{Backend: &fakeBackend{}, Auth: auth})
	_, secure := startServer(t, Config{Backend: &fakeBackend{}, Auth: auth, TLS: &tls.Config{Certificates: []tls.Certificate{cert}}})
	for _, tc := range []struct {
		name, addr, user, password, params string
		ok                                 bool
	}{
		{"clear text", plain, "bob", "secret", "sslmode=disable", true},
		{"prefers TLS", plain, "bob", "secret", "sslmode=prefer", true},
		{"TLS", secure, "bob", "secret", "sslmode=require channel_binding=disable", true},
		{"channel binding", secure, "bob", "secret", "sslmode=require channel_binding=require", true},
		{"not ASCII", plain, "zoë", "'pässwörd x'", "sslmode=disable", true},
		{"wrong password", plain, "bob", "Secret", "sslmode=disable", false},
		{"wrong password, bound", secure, "bob", "Secret", "sslmode=require channel_binding=require", false},
		{"unknown user", plain, "eve", "secret", "sslmode=disable", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			host, port, _ := strings.Cut(tc.addr, ":")
			cfg, err := pgconn.ParseConfig("host=" + host + " port=" + port + " user=" + tc.user + " password=" + tc.password + " " + tc.params)
			if err != nil {
				t.Fatal(err)
			}
			c, err := pgconn.ConnectConfig(t.Context(), cfg)
			if tc.ok {
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close(context.Background())
				if _, err := c.Exec(t.Context(), "rows 3").ReadAll(); err != nil {
					t.Error(err)
				}
				return
			}
			var pe *pgconn.PgError
			if !errors.As(err, &pe) || pe.Code != "28P01" || pe.Message != "password authentication failed for user \""+tc.user+"\"" {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Bytes sent in clear before the handshake are refused.
func TestTLSInjection(t *testing.T) {
	_, addr := startServer(t, Config{Backend: &fakeBackend{}, TLS: &tls.Config{Certificates: []tls.Certificate{certificate(t)}}})
	c := wiretest.Dial(t, addr)
	c.Write(append(packet(codeSSL), wiretest.StartupPacket(protocol30, "user", "u")...))
	if got := c.Next(); got != "ErrorResponse FATAL 08P01 received unencrypted data after SSL request" {
		t.Errorf("got %s", got)
	}
}

func TestRequireTLS(t *testing.T) {
	auth := NewSCRAM(lookup(t))
	auth.RequireTLS = true
	_, addr := startServer(t, Config{Backend: &fakeBackend{}, Auth: auth})
	if got := wiretest.Dial(t, addr).Login("user", "bob"); !strings.HasPrefix(got[0], "ErrorResponse FATAL 28000 no pg_hba.conf entry for host") {
		t.Errorf("got %q", got)
	}
}

func FuzzSCRAM(f *testing.F) {
	f.Add([]byte("SCRAM-SHA-256\x00\x00\x00\x00\x0bn,,n=,r=abc"), []byte("c=biws,r=abc,p=YQ=="))
	auth := NewSCRAM(func(string) (Verifier, bool) { return Verifier{}, false })
	f.Fuzz(func(t *testing.T, first, second []byte) {
		msg := append(wiretest.StartupPacket(protocol30, "user", "u"), wiretest.Frame('p', first...)...)
		msg = append(msg, wiretest.Frame('p', second...)...)
		serveWith(t, Config{Backend: &fakeBackend{}, Auth: auth}, msg)
	})
}
