// Package wire plays transcripts against the whole server. Their answers were
// recorded from PostgreSQL 15, so a difference is a difference from it.
package wire

import (
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/pgwire/wiretest"
	"github.com/paimon-sql/paimon-sql/tests/testserver"
)

var rewrite = flag.Bool("rewrite", false, "write the transcripts anew, from the server in PAIMON_SQL_PG")

// TestTranscripts plays testdata/*.txt against our server and, when
// PAIMON_SQL_PG names one (a URL; trust), against a PostgreSQL, where they must
// hold as well.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts: ", err)
	}
	if dsn := os.Getenv("PAIMON_SQL_PG"); dsn != "" {
		u, err := url.Parse(dsnURL(dsn))
		if err != nil {
			t.Fatal(err)
		}
		t.Run("postgresql", func(t *testing.T) {
			play(t, files, u.Host, u.User.Username(), strings.TrimPrefix(u.Path, "/"), *rewrite)
		})
	}
	if *rewrite {
		return
	}
	t.Run("ours", func(t *testing.T) {
		s := testserver.Start(t, t.TempDir(), nil)
		play(t, files, s.Addr, "postgres", "postgres", false)
	})
}

func play(t *testing.T, files []string, addr, user, database string, write bool) {
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			src, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			open := func(params ...string) *wiretest.Client {
				c := wiretest.Dial(t, addr)
				greeting := c.Login(append([]string{"user", user, "database", database, "client_encoding", "UTF8", "TimeZone", "UTC"}, params...)...)
				if last := greeting[len(greeting)-1]; last != "ReadyForQuery I" {
					t.Fatal("login: ", last)
				}
				return c
			}
			got := wiretest.PlayAll(t, open, string(src))
			if write {
				if err := os.WriteFile(f, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(src) {
				t.Errorf("answers differ from PostgreSQL's:\n%s", wiretest.Diff(string(src), got))
			}
		})
	}
}

// TestGreeting compares the names and the order of the settings that are
// reported at start with PostgreSQL 15's.
func TestGreeting(t *testing.T) {
	want := []string{
		"application_name=", "client_encoding=UTF8", "DateStyle=ISO, MDY", "default_transaction_read_only=off", "in_hot_standby=off",
		"integer_datetimes=on", "IntervalStyle=postgres", "is_superuser=on", "server_encoding=UTF8", "server_version=15.",
		"session_authorization=postgres", "standard_conforming_strings=on", "TimeZone=UTC",
	}
	s := testserver.Start(t, t.TempDir(), nil)
	i := 0
	for _, m := range wiretest.Dial(t, s.Addr).Login("user", "postgres", "TimeZone", "UTC") {
		v, ok := strings.CutPrefix(m, "ParameterStatus ")
		if !ok {
			continue
		}
		if i >= len(want) || !strings.HasPrefix(v, want[i]) {
			t.Errorf("setting %d is %s", i, v)
		}
		i++
	}
	if i != len(want) {
		t.Errorf("%d settings, %d expected", i, len(want))
	}
}

// dsnURL makes a URL of a connection string of words, name=value.
func dsnURL(dsn string) string {
	if strings.Contains(dsn, "://") {
		return dsn
	}
	v := map[string]string{"host": "127.0.0.1", "port": "5432", "user": "postgres", "dbname": "postgres"}
	for _, w := range strings.Fields(dsn) {
		k, x, _ := strings.Cut(w, "=")
		v[k] = x
	}
	return "postgres://" + v["user"] + "@" + v["host"] + ":" + v["port"] + "/" + v["dbname"]
}
