package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

func put(t *testing.T, root, path, text string) {
	t.Helper()
	p := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func schemaJSON(id, millis string, extra string) string {
	return `{"version":3,"id":` + id + `,"fields":[{"id":0,"name":"id","type":"INT NOT NULL"}` + extra + `],"highestFieldId":9,"partitionKeys":[],"primaryKeys":["id"],"options":{"pg-type.u":"uuid"},"timeMillis":` + millis + `}`
}

func warehouse(t *testing.T) (string, *Filesystem) {
	dir := t.TempDir()
	put(t, dir, "default.db/t/schema/schema-0", schemaJSON("0", "1", ""))
	put(t, dir, "default.db/Mixed/schema/schema-0", schemaJSON("0", "1", ""))
	put(t, dir, "sales.db/orders/schema/schema-0", schemaJSON("0", "1", ""))
	put(t, dir, "sales.db/Orders/schema/schema-0", schemaJSON("0", "1", ""))
	put(t, dir, "sales.db/nothing/readme", "")
	put(t, dir, "default.db/t/branch/branch-b1/schema/schema-0", schemaJSON("0", "1", `,{"id":1,"name":"x","type":"STRING"}`))
	env := table.NewEnv(fileio.NewLocal(dir), table.EnvOptions{})
	t.Cleanup(env.Close)
	return dir, NewFilesystem(env, dir)
}

func TestNames(t *testing.T) {
	ctx := context.Background()
	_, c := warehouse(t)
	if s, err := c.Schemas(ctx); err != nil || !slices.Equal(s, []string{"public", "sales"}) {
		t.Errorf("schemas %v, %v", s, err)
	}
	if ts, err := c.Tables(ctx, "sales"); err != nil || !slices.Equal(ts, []string{"Orders", "orders"}) {
		t.Errorf("tables %v, %v", ts, err)
	}
	for _, x := range []struct {
		schema, name, want string
		err                error
	}{
		{"public", "t", "t", nil},
		{"default", "T", "t", nil},
		{"public", "mixed", "Mixed", nil},
		{"SALES", "orders", "orders", nil},
		{"sales", "Orders", "Orders", nil},
		{"sales", "ORDERS", "", ErrNoRelation}, // two differ in case only
		{"sales", "nothing", "", ErrNoRelation},
		{"sales", "../default.db/t", "", ErrNoRelation},
		{"nowhere", "t", "", ErrNoSchema},
		{"../x", "t", "", ErrNoSchema},
		{"public", "t$branch_b1", "t$branch_b1", nil},
		{"public", "t$branch_b2", "", ErrNoRelation},
		{"public", "t$snapshots", "t$snapshots", nil},
		{"public", "t$branch_b1$schemas", "t$branch_b1$schemas", nil},
		{"public", "t$no_such", "", ErrNoRelation},
		{"public", "t$", "", ErrNoRelation},
	} {
		r, err := c.Resolve(ctx, x.schema, x.name, ResolveOptions{FreshReads: true})
		if !errors.Is(err, x.err) || (err == nil) != (x.err == nil) {
			t.Errorf("%s.%s: %v, want %v", x.schema, x.name, err, x.err)
			continue
		}
		if err == nil && r.Name() != x.want {
			t.Errorf("%s.%s: %s, want %s", x.schema, x.name, r.Name(), x.want)
		}
	}
	r, err := c.Resolve(ctx, "public", "t$branch_b1", ResolveOptions{})
	if err != nil || len(r.Columns()) != 2 || r.(TableInfo).At().Branch != "b1" {
		t.Errorf("branch: %v, %v", r, err)
	}
	var un *fileio.UnsupportedError
	if _, err := c.Resolve(ctx, "public", "t$row_tracking", ResolveOptions{}); !errors.As(err, &un) {
		t.Errorf("a system table that is not there: %v", err)
	}
}

// TestNamed: what cannot be read is told with its table, everything else as it is.
func TestNamed(t *testing.T) {
	r := &TableRelation{sqlSchema: "sales", name: "orders"}
	var un *fileio.UnsupportedError
	if err := r.named(fmt.Errorf("plan: %w", &fileio.UnsupportedError{Feature: "data file format ORC"})); !errors.As(err, &un) ||
		un.Table != "sales.orders" || un.Feature != "data file format ORC" {
		t.Errorf("%v", err)
	}
	if other := errors.New("other"); !errors.Is(r.named(other), other) || r.named(nil) != nil {
		t.Error("another error changed")
	}
}

// TestForeignChanges: another engine adds a column, drops and makes tables.
func TestForeignChanges(t *testing.T) {
	ctx := context.Background()
	dir, c := warehouse(t)
	resolve := func() (Relation, error) { return c.Resolve(ctx, "public", "t", ResolveOptions{}) }
	r, err := resolve()
	if err != nil || len(r.Columns()) != 1 {
		t.Fatal(r, err)
	}
	v := c.Version()
	if _, err := resolve(); err != nil || c.Version() != v {
		t.Errorf("version moved without a change: %v", err)
	}
	put(t, dir, "default.db/t/schema/schema-1", schemaJSON("1", "2", `,{"id":1,"name":"u","type":"STRING"}`))
	if r, err = resolve(); err != nil || len(r.Columns()) != 2 || c.Version() == v {
		t.Errorf("after a new column: %v, %v", r, err)
	}
	if got := r.Columns()[1].Type.String(); got != "uuid" {
		t.Errorf("pg-type column is %s", got)
	}
	v = c.Version()
	if err := os.RemoveAll(filepath.Join(dir, "default.db/t")); err != nil {
		t.Fatal(err)
	}
	if _, err := resolve(); !errors.Is(err, ErrNoRelation) {
		t.Errorf("dropped: %v", err)
	}
	put(t, dir, "default.db/t/schema/schema-0", schemaJSON("0", "3", `,{"id":1,"name":"y","type":"DATE"}`))
	if r, err = resolve(); err != nil || len(r.Columns()) != 2 || r.Columns()[1].Name != "y" || c.Version() == v {
		t.Errorf("made again: %v, %v", r, err)
	}
	_, err = c.Resolve(ctx, "public", "t", ResolveOptions{At: snapshot.Ref{Kind: snapshot.ID, ID: 7}})
	if !errors.Is(err, snapshot.ErrNotFound) {
		t.Errorf("a snapshot that is not there: %v", err)
	}
}

// TestDerived resolves the relations that are made of a table's files and are not the
// table: they have no key, and their columns.
func TestDerived(t *testing.T) {
	ctx := context.Background()
	_, c := warehouse(t)
	base, err := c.Resolve(ctx, "public", "t", ResolveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changes := map[string]string{"incremental-between": "0,0"}
	for _, x := range []struct {
		name    string
		dynamic map[string]string
		first   string
		more    int
	}{
		{"t$audit_log", nil, "rowkind", 1}, {"t$BINLOG", nil, "rowkind", 1}, {"t$ro", nil, base.Columns()[0].Name, 0},
		{"t$branch_b1$audit_log", nil, "rowkind", 1}, {"t", changes, base.Columns()[0].Name, 0}, {"t$audit_log", changes, "rowkind", 1},
	} {
		r, err := c.Resolve(ctx, "public", x.name, ResolveOptions{Dynamic: x.dynamic})
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		if _, ok := r.(TableInfo); ok {
			t.Errorf("%s is a table", x.name)
		}
		if _, ok := r.(Derived); !ok || r.Columns()[0].Name != x.first {
			t.Errorf("%s: columns %v", x.name, r.Columns())
		}
		if n := len(base.Columns()) + x.more; x.name != "t$branch_b1$audit_log" && len(r.Columns()) != n {
			t.Errorf("%s has %d columns, want %d", x.name, len(r.Columns()), n)
		}
		if _, err := r.Plan(ctx, table.Scan{Limit: -1}); err != nil {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	if _, err := c.Resolve(ctx, "public", "t", ResolveOptions{Dynamic: map[string]string{"incremental-between": "1,2", "scan.snapshot-id": "1"}}); err == nil {
		t.Error("a state and a range at once")
	}
}
