package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// warehouses runs a test on a directory and in memory, where directories are only
// prefixes of names.
func warehouses(t *testing.T, f func(t *testing.T, c *Filesystem)) {
	t.Run("local", func(t *testing.T) { f(t, newWarehouse(t, fileio.NewLocal(t.TempDir()))) })
	t.Run("mem", func(t *testing.T) { f(t, newWarehouse(t, fileio.NewMem())) })
}

func newWarehouse(t *testing.T, io fileio.FileIO) *Filesystem {
	env := table.NewEnv(io, table.EnvOptions{})
	t.Cleanup(env.Close)
	return NewFilesystem(env, "/w")
}

func definition(keys ...string) *schema.Table {
	return &schema.Table{
		Fields: types.Schema{
			{Name: "id", Type: types.Of(types.Int8)},
			{Name: "name", Type: types.Of(types.Text)},
		},
		PrimaryKeys: keys, Options: map[string]string{},
	}
}

// want fails unless err is target; nil wants no error.
func want(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error %v, want %v", err, target)
	}
}

func tables(t *testing.T, c Catalog, sqlSchema string, names ...string) {
	t.Helper()
	got, err := c.Tables(context.Background(), sqlSchema)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, names) {
		t.Fatalf("tables of %s are %q, want %q", sqlSchema, got, names)
	}
}

func columns(t *testing.T, c Catalog, sqlSchema, name string, names ...string) TableInfo {
	t.Helper()
	r, err := c.Resolve(context.Background(), sqlSchema, name, ResolveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range r.Columns() {
		got = append(got, c.Name)
	}
	if !slices.Equal(got, names) {
		t.Fatalf("columns of %s.%s are %q, want %q", sqlSchema, name, got, names)
	}
	return r.(TableInfo)
}

func TestEdits(t *testing.T) {
	ctx := context.Background()
	warehouses(t, func(t *testing.T, c *Filesystem) {
		want(t, c.CreateSchema(ctx, "sales", nil), nil)
		want(t, c.CreateSchema(ctx, "sales", nil), ErrSchemaExists)
		want(t, c.CreateSchema(ctx, "public", nil), ErrSchemaExists)
		want(t, c.CreateSchema(ctx, "sys", nil), ErrReserved)
		want(t, c.CreateSchema(ctx, "pg_x", nil), ErrReserved)
		want(t, c.CreateSchema(ctx, "a/b", nil), ErrInvalidName)
		if got, err := c.Schemas(ctx); err != nil || !slices.Equal(got, []string{"public", "sales"}) {
			t.Fatalf("schemas %q, %v", got, err)
		}
		v := c.Version()
		want(t, c.CreateTable(ctx, "sales", "t", definition("id")), nil)
		if c.Version() == v {
			t.Error("the version stayed")
		}
		want(t, c.CreateTable(ctx, "sales", "t", definition()), ErrRelationExists)
		want(t, c.CreateTable(ctx, "nowhere", "t", definition()), ErrNoSchema)
		want(t, c.CreateTable(ctx, "sales", "t$x", definition()), ErrInvalidName)
		want(t, c.CreateTable(ctx, "sales", ".t", definition()), ErrInvalidName)
		r := columns(t, c, "sales", "t", "id", "name")
		if !r.Columns()[0].NotNull || r.Options()["bucket"] != "1" || r.SchemaID() != 0 {
			t.Errorf("table is %v with %v", r.Columns(), r.Options())
		}
		want(t, c.AlterTable(ctx, "sales", "T", []schema.Change{schema.RenameColumn{Path: []string{"name"}, To: "n"}}), nil)
		want(t, c.AlterTable(ctx, "sales", "t$snapshots", nil), ErrReserved)
		want(t, c.AlterTable(ctx, "sales", "u", nil), ErrNoRelation)
		var ce *schema.ChangeError
		if err := c.AlterTable(ctx, "sales", "t", []schema.Change{schema.DropColumn{Path: []string{"name"}}}); !errors.As(err, &ce) || ce.Kind != schema.ColumnMissing {
			t.Errorf("error %v", err)
		}
		columns(t, c, "sales", "t", "id", "n")
		want(t, c.RenameTable(ctx, "sales", "t", "public", "u"), nil)
		tables(t, c, "sales")
		tables(t, c, "public", "u")
		want(t, c.CreateTable(ctx, "sales", "t", definition()), nil)
		want(t, c.RenameTable(ctx, "sales", "t", "public", "u"), ErrRelationExists)
		want(t, c.DropSchema(ctx, "sales", false), ErrNotEmpty)
		want(t, c.DropTable(ctx, "public", "u"), nil)
		want(t, c.DropTable(ctx, "public", "u"), ErrNoRelation)
		want(t, c.CreateTable(ctx, "public", "u", definition()), nil)
		columns(t, c, "public", "u", "id", "name")
		want(t, c.DropSchema(ctx, "sales", true), nil)
		want(t, c.DropSchema(ctx, "sales", true), ErrNoSchema)
		want(t, c.DropSchema(ctx, "public", true), ErrReserved)
		if es, _ := c.env.IO.List(ctx, trashDir); len(dirs(es)) > 0 {
			t.Errorf("trash holds %v", es)
		}
	})
}

func dirs(es []fileio.Entry) (out []string) {
	for _, e := range es {
		if e.Dir {
			out = append(out, e.Name)
		}
	}
	return out
}

// TestDroppedFilesStayApart: a table that is made while an older one of its name is
// being dropped starts empty.
func TestLeftSnapshots(t *testing.T) {
	ctx := context.Background()
	warehouses(t, func(t *testing.T, c *Filesystem) {
		want(t, c.env.IO.PutIfAbsent(ctx, "default.db/t/snapshot/snapshot-1", []byte("{}")), nil)
		var pe *fileio.PathError
		if err := c.CreateTable(ctx, "public", "t", definition()); !errors.As(err, &pe) {
			t.Fatalf("error %v", err)
		}
	})
}

// TestLeftHints: hints that somebody wrote behind the drop of a table are in nobody's
// way.
func TestLeftHints(t *testing.T) {
	ctx := context.Background()
	warehouses(t, func(t *testing.T, c *Filesystem) {
		for _, n := range []string{"LATEST", "EARLIEST"} {
			want(t, c.env.IO.PutIfAbsent(ctx, "default.db/t/snapshot/"+n, []byte("6")), nil)
		}
		want(t, c.CreateTable(ctx, "public", "t", definition()), nil)
		rel, err := c.Resolve(ctx, "public", "t", ResolveOptions{})
		if err != nil || !rel.(*TableRelation).At().Empty {
			t.Error(rel, err)
		}
	})
}

// TestRaces: of many that make one table, one wins; of many that add a column, all
// do.
func TestRaces(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	const n = 8
	cs := make([]*Filesystem, n)
	for i := range cs {
		cs[i] = newWarehouse(t, fileio.NewLocal(dir)) // as if in processes of their own
	}
	all := func(f func(i int) error) (fine int, errs []error) {
		errs = make([]error, n)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() { errs[i] = f(i) })
		}
		wg.Wait()
		for _, err := range errs {
			if err == nil {
				fine++
			}
		}
		return fine, errs
	}
	for round := range 5 {
		name := fmt.Sprint("t", round)
		fine, errs := all(func(i int) error {
			def := definition()
			def.Comment = fmt.Sprint(i)
			return cs[i].CreateTable(ctx, "public", name, def)
		})
		if fine != 1 {
			t.Fatalf("%d made the table: %v", fine, errs)
		}
		for _, err := range errs {
			if err != nil {
				want(t, err, ErrRelationExists)
			}
		}
		fine, errs = all(func(i int) error {
			return cs[i].AlterTable(ctx, "public", name, []schema.Change{schema.AddColumn{Path: []string{fmt.Sprint("c", i)}, Type: types.Of(types.Int4)}})
		})
		if fine != n {
			t.Fatalf("%d added a column: %v", fine, errs)
		}
		r, err := cs[0].Resolve(ctx, "public", name, ResolveOptions{})
		want(t, err, nil)
		ids := map[int32]bool{}
		for _, c := range r.Columns() {
			ids[c.ID] = true
		}
		if len(ids) != n+2 || r.(TableInfo).SchemaID() != n {
			t.Fatalf("columns %v of schema %d", r.Columns(), r.(TableInfo).SchemaID())
		}
		// The same column twice: the loser sees what the winner made.
		fine, errs = all(func(i int) error {
			return cs[i].AlterTable(ctx, "public", name, []schema.Change{schema.AddColumn{Path: []string{"same"}, Type: types.Of(types.Int4)}})
		})
		if fine != 1 {
			t.Fatalf("%d added one column: %v", fine, errs)
		}
		fine, errs = all(func(i int) error { return cs[i].RenameTable(ctx, "public", name, "public", name+"x") })
		if fine != 1 {
			t.Fatalf("%d renamed the table: %v", fine, errs)
		}
		fine, errs = all(func(i int) error { return cs[i].DropTable(ctx, "public", name+"x") })
		if fine != 1 {
			t.Fatalf("%d dropped the table: %v", fine, errs)
		}
	}
}
