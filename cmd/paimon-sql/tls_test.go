package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/pgwire"
)

// writeCert puts a new certificate with a serial number and its key into files.
func writeCert(t *testing.T, dir string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "localhost"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	kb, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: kb}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A certificate that is replaced serves the next connections, with its channel
// binding; one that is spoilt does not.
func TestTLSReload(t *testing.T) {
	dir := t.TempDir()
	writeCert(t, dir, 1)
	fs := newFlags(&app{env: func(string) string { return "" }}, "serve")
	for name, v := range map[string]string{"tls-cert": "cert.pem", "tls-key": "key.pem"} {
		fs.String(name, filepath.Join(dir, v), "")
	}
	fs.String("tls-client-ca", "", "")
	fs.String("tls-min-version", "1.3", "")
	var log bytes.Buffer
	files, err := newTLSFiles(fs, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(context.Background(), engine.Config{Warehouse: "mem://"})
	if err != nil {
		t.Fatal(err)
	}
	a, err := newAuth("secret", "", true)
	if err != nil {
		t.Fatal(err)
	}
	s := pgwire.NewServer(pgwire.Config{Backend: backend{e}, Auth: a, TLSNow: files.config})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l) //nolint:errcheck // ends with the test
	t.Cleanup(func() {
		l.Close()
		e.Close()
	})
	serial := func() int64 {
		t.Helper()
		c, err := pgconn.Connect(t.Context(), "postgres://paimon:secret@"+l.Addr().String()+"/paimon?sslmode=require&channel_binding=require")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(t.Context())
		st := c.Conn().(*tls.Conn).ConnectionState()
		if st.Version != tls.VersionTLS13 {
			t.Errorf("TLS version %x", st.Version)
		}
		return st.PeerCertificates[0].SerialNumber.Int64()
	}
	if n := serial(); n != 1 {
		t.Errorf("certificate %d", n)
	}
	writeCert(t, dir, 2)
	files.checked.Store(0)
	if n := serial(); n != 2 {
		t.Errorf("after a change of the files: certificate %d", n)
	}
	writeCert(t, dir, 3)
	if err := files.reload(); err != nil {
		t.Fatal(err)
	}
	if n := serial(); n != 3 {
		t.Errorf("after a signal: certificate %d", n)
	}
	if err := os.WriteFile(filepath.Join(dir, "cert.pem"), []byte("spoilt"), 0o600); err != nil {
		t.Fatal(err)
	}
	files.checked.Store(0)
	if n := serial(); n != 3 || !strings.Contains(log.String(), "the old ones stay") {
		t.Errorf("after a mistake: certificate %d, log %q", n, log.String())
	}
	old, err := pgconn.ParseConfig("postgres://paimon:secret@" + l.Addr().String() + "/paimon?sslmode=require")
	if err != nil {
		t.Fatal(err)
	}
	old.TLSConfig.MaxVersion = tls.VersionTLS12
	if c, err := pgconn.ConnectConfig(t.Context(), old); err == nil {
		c.Close(t.Context())
		t.Error("TLS 1.2 is taken")
	}
}

func TestHBAReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hba.conf")
	put := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("host all all all password\n")
	if _, err := newAuth("", file, false); err == nil || !strings.Contains(err.Error(), `line 1: invalid authentication method "password"`) {
		t.Errorf("password: %v", err)
	}
	put("host all all 10.0.0.0/8 trust\n")
	a, err := newAuth("", file, false)
	if err != nil {
		t.Fatal(err)
	}
	put("host all all 10.0.0.0/8 trust\nhost all all all nope\n")
	if err := a.reload(); err == nil || len(*a.rules.Load()) != 1 || len(*a.seen.Load()) != 2 {
		t.Errorf("a mistake: %v, %d rules", err, len(*a.rules.Load()))
	}
	put("host all all 10.0.0.0/8 trust\nhost all all all reject\n")
	if err := a.reload(); err != nil || len(*a.rules.Load()) != 2 {
		t.Errorf("mended: %v, %d rules", err, len(*a.rules.Load()))
	}
	code, _, errs := call(t, "", nil, "serve", "--warehouse", "mem://", "--hba-file", "/no/such/file")
	if code != exitUsage || !strings.Contains(errs, "--hba-file: ") {
		t.Errorf("no file: %d %q", code, errs)
	}
}
