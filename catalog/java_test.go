package catalog

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// TestJavaSeesEdits: Java finds the databases and tables that are made here, and
// nothing of what is staged or dropped; we find what Java makes of them.
func TestJavaSeesEdits(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	java := oracle.Java(t, dir)
	c := newWarehouse(t, fileio.NewLocal(dir))
	list := func(database string, want ...string) {
		t.Helper()
		var dbs map[string][]string
		if err := json.Unmarshal(java.Do(t, map[string]any{"cmd": "list"})["databases"], &dbs); err != nil {
			t.Fatal(err)
		}
		got, ok := dbs[database]
		slices.Sort(got)
		if want == nil && ok || want != nil && !ok || !slices.Equal(got, want) {
			t.Fatalf("Java's tables of %s: %q, want %q", database, got, want)
		}
	}
	want(t, c.CreateSchema(ctx, "empty", nil), nil)
	list("empty", []string{}...)
	want(t, c.CreateTable(ctx, "public", "t", definition("id")), nil)
	want(t, c.AlterTable(ctx, "public", "t", []schema.Change{
		schema.AddColumn{Path: []string{"r"}, Type: types.Type{Kind: types.Row, Fields: []types.Field{{Name: "a", Type: types.Of(types.Int4)}}}},
		schema.SetComment{Comment: "said here"},
	}), nil)
	list("default", "t")
	java.Do(t, map[string]any{"cmd": "write", "table": "default.t", "rows": []map[string]any{{"id": 1, "name": "a", "r": map[string]any{"a": 5}}}})
	java.Do(t, map[string]any{"cmd": "alter", "table": "default.t", "changes": []map[string]any{{"op": "rename-column", "name": "name", "to": "n"}}})
	columns(t, c, "public", "t", "id", "n", "r")

	s := NewStaged(c)
	want(t, s.CreateSchema(ctx, "later", nil), nil)
	want(t, s.CreateTable(ctx, "later", "x", definition()), nil)
	r, err := s.Resolve(ctx, "later", "x", ResolveOptions{})
	want(t, err, nil)
	want(t, c.env.IO.PutIfAbsent(ctx, r.(*TableRelation).Store().Dir()+"/bucket-0/f", nil), nil)
	want(t, s.RenameTable(ctx, "public", "t", "later", "u"), nil)
	list("later")
	list("default", "t")
	_, err = s.Apply(ctx)
	want(t, err, nil)
	list("later", "u", "x")
	if rows := java.Rows(t, "later.u", nil); len(rows) != 1 || string(rows[0]) != `{"id":1,"n":"a","r":{"a":5}}` {
		t.Errorf("rows %s", rows)
	}
	java.Check(t, "later.u")
	want(t, c.DropSchema(ctx, "later", true), nil)
	list("later")
	garbage(t, c)
}
