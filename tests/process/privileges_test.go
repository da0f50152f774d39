package process

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// as connects as a role.
func (s *server) as(t testing.TB, role string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(context.Background(), strings.Replace(s.dsn, "tester@", role+"@", 1))
	if err != nil {
		t.Fatalf("%v: %s", err, s.log)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// within asks until the answer is yes: another server sees a change within a second.
func within(t testing.TB, what string, ask func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !ask(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come about", what)
		}
	}
}

// try runs a statement with parameters, so that it is prepared, and returns its
// SQLSTATE, "ok" for none.
func try(c *pgx.Conn, sql string, args ...any) string {
	if _, err := c.Exec(context.Background(), sql, args...); err != nil {
		return code(err)
	}
	return "ok"
}

// TestPrivilegesEverywhere grants and revokes on one server what two roles do on
// another over the same warehouse: rights, owners and settings are the same
// everywhere, statements that are prepared already included.
func TestPrivilegesEverywhere(t *testing.T) {
	wh := filepath.Join(t.TempDir(), "wh")
	a, b := serve(t, wh), serve(t, wh)
	root := a.as(t, "paimon")
	run(t, root, "create role ann login", "create role ben login", "create schema s",
		"create table s.t (id int primary key, v int, secret text)", "insert into s.t values (1, 1, 'x'), (2, 2, 'y')",
		"create view s.w as select id, v from s.t", "alter role ben set default_transaction_read_only = on")
	var ann *pgx.Conn
	within(t, "the role", func() bool {
		c, err := pgx.Connect(context.Background(), strings.Replace(b.dsn, "tester@", "ann@", 1))
		if err == nil {
			ann = c
			t.Cleanup(func() { _ = c.Close(context.Background()) })
		}
		return err == nil
	})
	ben := b.as(t, "ben")
	if got := one(t, ben, "show default_transaction_read_only"); got != "on" {
		t.Errorf("ben's sessions begin with %s", got)
	}
	const point, scan, insert = "select v from s.t where id = $1", "select count(*) from s.t where v > $1", "insert into s.t (id, v) values ($1, 3)"
	if got := try(ann, point, 1); got != "42501" {
		t.Errorf("before the grant: %s", got)
	}
	run(t, root, "grant usage on schema s to ann, ben", "grant select (id, v) on s.t to ann", "grant select on s.w to ben")
	within(t, "the grant", func() bool { return try(ann, point, 1) == "ok" })
	for sql, want := range map[string]string{
		scan: "ok", "select secret from s.t where id = $1": "42501", "select * from s.t where id = $1": "42501", "select v from s.t for update": "42501",
		insert: "42501", "select * from s.t$snapshots": "42501", "select * from s.w": "42501", "call sys.compact('s.t')": "42501",
		"drop table s.t": "42501", "alter table s.t add x int": "42501",
	} {
		var args []any
		if strings.Contains(sql, "$1") {
			args = append(args, 1)
		}
		if got := try(ann, sql, args...); got != want {
			t.Errorf("ann: %s: %s, want %s", sql, got, want)
		}
	}
	if got := try(ben, "select * from s.w"); got != "ok" {
		t.Errorf("ben reads the view: %s", got)
	}
	if got := try(ben, "select id from s.t"); got != "42501" {
		t.Errorf("ben reads the table: %s", got)
	}
	// What was prepared before the grant goes, and what worked stops.
	run(t, root, "grant insert, select on s.t to ann")
	within(t, "the second grant", func() bool { return try(ann, insert, 3) == "ok" })
	run(t, root, "revoke all on s.t from ann")
	within(t, "the revocation", func() bool { return try(ann, point, 1) == "42501" })
	for _, sql := range []string{scan, insert} {
		if got := try(ann, sql, 4); got != "42501" {
			t.Errorf("after the revocation: %s: %s", sql, got)
		}
	}
	// Names change, privileges stay; owners are owners on both servers.
	run(t, root, "grant select on s.t to ann", "alter table s.t rename to u", "grant create on schema s to ann")
	within(t, "the rename", func() bool { return try(ann, "select count(*) from s.u") == "ok" })
	run(t, ann, "create table s.own (id int primary key)", "grant select on s.own to ben")
	benA := a.as(t, "ben")
	within(t, "the table", func() bool { return try(benA, "select * from s.own") == "ok" })
	if got := try(benA, "drop table s.own"); got != "25006" {
		t.Errorf("ben drops a table: %s", got)
	}
	run(t, benA, "set default_transaction_read_only = off")
	if got := try(benA, "drop table s.own"); got != "42501" {
		t.Errorf("ben drops ann's table: %s", got)
	}
	if got := try(root, "drop role ann"); got != "2BP01" {
		t.Errorf("an owner is dropped: %s", got)
	}
	// A server that is killed has lost nothing.
	a.kill()
	a = serve(t, wh)
	if got := one(t, a.as(t, "ann"), "select has_table_privilege('s.own', 'insert'), has_table_privilege('ben', 's.own', 'select'), has_table_privilege('s.u', 'insert')"); got != "t|t|f" {
		t.Errorf("after the crash: %s", got)
	}
	run(t, a.as(t, "paimon"), "drop owned by ann, ben", "drop role ann, ben")
	for _, s := range []*server{a, b} {
		s.stop(t)
	}
}
