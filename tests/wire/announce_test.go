package wire

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/pgwire/wiretest"
	"github.com/paimon-sql/paimon-sql/tests/testserver"
)

// TestSnapshotNotifications: who listens to paimon_snapshot hears of every commit of
// this server, and of another server's on the same warehouse.
func TestSnapshotNotifications(t *testing.T) {
	dir := t.TempDir()
	one := testserver.Serve(t, dir, map[string]string{"paimon.snapshot_poll_interval": "20ms"})
	two := testserver.Serve(t, dir, nil)
	q := func(c *wiretest.Client, sql string) []string {
		t.Helper()
		c.Write(wiretest.Frame('Q', append([]byte(sql), 0)...))
		got := c.Until("ReadyForQuery")
		for _, m := range got {
			if strings.HasPrefix(m, "Error") {
				t.Fatalf("%s: %s", sql, m)
			}
		}
		return got
	}
	listen, here, there := wiretest.Dial(t, one.Addr), wiretest.Dial(t, one.Addr), wiretest.Dial(t, two.Addr)
	for _, c := range []*wiretest.Client{listen, here, there} {
		c.Login("user", "u")
	}
	q(here, "CREATE TABLE a (k int PRIMARY KEY, v text); CREATE TABLE b (k int)")
	q(here, "INSERT INTO a VALUES (1, 'before')")
	q(listen, "LISTEN paimon_snapshot")
	q(listen, `LISTEN "paimon_snapshot:public.b"`)
	next := func(channel, table string, id int64) {
		t.Helper()
		m := listen.Next()
		payload, ok := strings.CutPrefix(m, "NotificationResponse 0 "+channel+" ")
		text, err := strconv.Unquote(payload)
		var got struct {
			Schema, Table, Kind string
			Snapshot            int64
		}
		if err == nil {
			err = json.Unmarshal([]byte(text), &got)
		}
		if !ok || err != nil || got.Schema != "public" || got.Table != table || got.Snapshot != id || got.Kind != "APPEND" {
			t.Fatalf("%s %s %d: got %s (%v)", channel, table, id, m, err)
		}
	}
	q(here, "INSERT INTO a VALUES (2, 'x')")
	next("paimon_snapshot", "a", 2)
	q(here, "BEGIN; INSERT INTO b VALUES (1); INSERT INTO b VALUES (2); COMMIT")
	next("paimon_snapshot", "b", 1)
	next("paimon_snapshot:public.b", "b", 1)
	q(there, "INSERT INTO a VALUES (3, 'y')")
	next("paimon_snapshot", "a", 3)
	q(listen, "UNLISTEN paimon_snapshot")
	q(there, "INSERT INTO a VALUES (4, 'z')")
	q(there, "INSERT INTO b VALUES (3)")
	next("paimon_snapshot:public.b", "b", 2)
}
