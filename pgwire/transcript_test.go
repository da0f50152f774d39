package pgwire

import (
	"flag"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/pgwire/wiretest"
)

var rewrite = flag.Bool("rewrite", false, "write the answers of the transcripts anew")

func arrays(a ...arrow.Array) []arrow.Array { return a }

// startServer runs a server over loopback until the test ends.
func startServer(t testing.TB, cfg Config) (*Server, string) {
	t.Helper()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := NewServer(cfg)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Serve(l) //nolint:errcheck // ends with the test
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return s, l.Addr().String()
}

// TestTranscripts plays testdata/*.txt: blocks of frontend messages, "----" and
// the answers. The answers are read up to ReadyForQuery, or to what a line
// "until ..." names. Each file is one connection.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts: ", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			src, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			_, addr := startServer(t, Config{Backend: &fakeBackend{}})
			c := wiretest.Dial(t, addr)
			c.Login()
			got := wiretest.Play(t, c, string(src))
			if *rewrite {
				if err := os.WriteFile(f, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(src) {
				t.Errorf("answers differ:\n%s", wiretest.Diff(string(src), got))
			}
		})
	}
}
