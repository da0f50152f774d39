package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// tlsFiles are a certificate, its key and the authorities of clients, as files
// that may be replaced while the server runs: by a signal, or when a new
// connection finds that one of them has changed.
type tlsFiles struct {
	cert, key, clientCA string
	min                 uint16
	log                 *slog.Logger

	now     atomic.Pointer[tls.Config]
	checked atomic.Int64 // when the files were last looked at, Unix nanoseconds

	mu    sync.Mutex // guards stamp, held while files are read
	stamp string
}

// tlsCheckEvery is how often the files are looked at, at most.
const tlsCheckEvery = time.Second

func newTLSFiles(fs *flags, log *slog.Logger) (*tlsFiles, error) {
	t := &tlsFiles{cert: fs.value("tls-cert"), key: fs.value("tls-key"), clientCA: fs.value("tls-client-ca"), log: log}
	switch v := fs.value("tls-min-version"); v {
	case "", "1.2", "TLSv1.2":
		t.min = tls.VersionTLS12
	case "1.3", "TLSv1.3":
		t.min = tls.VersionTLS13
	default:
		return nil, usagef("--tls-min-version: %q is neither 1.2 nor 1.3", v)
	}
	switch {
	case t.cert == "" && t.key == "" && t.clientCA == "":
		return nil, nil
	case t.cert == "" && t.key == "":
		return nil, usagef("--tls-client-ca needs --tls-cert and --tls-key")
	case t.cert == "" || t.key == "":
		return nil, usagef("--tls-cert and --tls-key go together")
	}
	if err := t.reload(); err != nil {
		return nil, usagef("TLS certificate: %v", err)
	}
	return t, nil
}

// reload reads the files. With a mistake in them the old ones stay in use.
func (t *tlsFiles) reload() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.read(t.look())
}

// read makes the configuration of what the files hold now; t.mu is held.
func (t *tlsFiles) read(stamp string) error {
	t.stamp = stamp // a wrong file is complained about once
	c, err := tls.LoadX509KeyPair(t.cert, t.key)
	if err != nil {
		return err
	}
	cfg := &tls.Config{Certificates: []tls.Certificate{c}, MinVersion: t.min}
	if t.clientCA != "" {
		b, err := os.ReadFile(t.clientCA)
		if err != nil {
			return err
		}
		cfg.ClientCAs = x509.NewCertPool()
		if !cfg.ClientCAs.AppendCertsFromPEM(b) {
			return fmt.Errorf("%s holds no certificate", t.clientCA)
		}
		cfg.ClientAuth = tls.VerifyClientCertIfGiven
	}
	t.now.Store(cfg)
	return nil
}

// look says what tells one version of the files from another.
func (t *tlsFiles) look() string {
	s := ""
	for _, name := range []string{t.cert, t.key, t.clientCA} {
		if name == "" {
			continue
		}
		if st, err := os.Stat(name); err == nil {
			s += fmt.Sprintf("%d %d;", st.ModTime().UnixNano(), st.Size())
		} else {
			s += "?;"
		}
	}
	return s
}

// config is what a connection that begins now encrypts with.
func (t *tlsFiles) config() *tls.Config {
	now := time.Now().UnixNano()
	if last := t.checked.Load(); now-last > int64(tlsCheckEvery) && t.checked.CompareAndSwap(last, now) && t.mu.TryLock() {
		defer t.mu.Unlock()
		if s := t.look(); s != t.stamp {
			if err := t.read(s); err != nil {
				t.log.Error("TLS files were changed and cannot be used; the old ones stay", "err", err)
			} else {
				t.log.Info("TLS files were reloaded")
			}
		}
	}
	return t.now.Load()
}
