package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

func addColumn(name string) []schema.Change {
	return []schema.Change{schema.AddColumn{Path: []string{name}, Type: types.Of(types.Int4)}}
}

// garbage fails when private directories are left.
func garbage(t *testing.T, c *Filesystem) {
	t.Helper()
	for _, d := range []string{trashDir, stagingDir} {
		if es, err := c.env.IO.List(context.Background(), d); err != nil || len(dirs(es)) > 0 {
			t.Errorf("%s holds %v, %v", d, es, err)
		}
	}
}

func TestStagedSeesItself(t *testing.T) {
	ctx := context.Background()
	warehouses(t, func(t *testing.T, c *Filesystem) {
		want(t, c.CreateTable(ctx, "public", "a", definition("id")), nil)
		want(t, c.CreateTable(ctx, "public", "b", definition()), nil)
		s := NewStaged(c)
		if s.HasChanges() || s.Version() != c.Version() {
			t.Fatal("a new transaction has changes")
		}
		want(t, s.CreateSchema(ctx, "sales", nil), nil)
		want(t, s.CreateSchema(ctx, "sales", nil), ErrSchemaExists)
		want(t, s.CreateTable(ctx, "sales", "t", definition()), nil)
		want(t, s.CreateTable(ctx, "sales", "t", definition()), ErrRelationExists)
		want(t, s.CreateTable(ctx, "public", "a", definition()), ErrRelationExists)
		want(t, s.AlterTable(ctx, "sales", "t", addColumn("x")), nil)
		want(t, s.AlterTable(ctx, "public", "a", addColumn("x")), nil)
		want(t, s.AlterTable(ctx, "public", "A", addColumn("y")), nil)
		want(t, s.RenameTable(ctx, "public", "b", "sales", "b2"), nil)
		want(t, s.RenameTable(ctx, "public", "a", "sales", "t"), ErrRelationExists)
		if s.Version() == c.Version() || !s.HasChanges() || !s.Changed("sales", "t") || s.Changed("public", "b") {
			t.Error("changes are not seen")
		}
		tables(t, s, "public", "a")
		tables(t, s, "sales", "b2", "t")
		columns(t, s, "sales", "t", "id", "name", "x")
		columns(t, s, "public", "a", "id", "name", "x", "y")
		columns(t, s, "sales", "B2", "id", "name")
		_, err := s.Resolve(ctx, "public", "b", ResolveOptions{})
		want(t, err, ErrNoRelation)
		// Nobody else sees any of it.
		tables(t, c, "public", "a", "b")
		columns(t, c, "public", "a", "id", "name")
		_, err = c.Tables(ctx, "sales")
		want(t, err, ErrNoSchema)
		want(t, s.Discard(ctx), nil)

		done, err := s.Apply(ctx)
		want(t, err, nil)
		if len(done) != 5 { // the made table's column came with it
			t.Errorf("done: %q", done)
		}
		for _, x := range []Catalog{c, s} {
			tables(t, x, "public", "a")
			tables(t, x, "sales", "b2", "t")
			columns(t, x, "sales", "t", "id", "name", "x")
			columns(t, x, "public", "a", "id", "name", "x", "y")
		}
		garbage(t, c)
	})
}

func TestStagedSavepoints(t *testing.T) {
	ctx := context.Background()
	warehouses(t, func(t *testing.T, c *Filesystem) {
		want(t, c.CreateTable(ctx, "public", "a", definition()), nil)
		s := NewStaged(c)
		want(t, s.AlterTable(ctx, "public", "a", addColumn("x")), nil)
		m := s.Mark()
		v := s.Version()
		want(t, s.AlterTable(ctx, "public", "a", addColumn("y")), nil)
		want(t, s.CreateTable(ctx, "public", "b", definition()), nil)
		want(t, s.DropTable(ctx, "public", "a"), nil)
		tables(t, s, "public", "b")
		s.RollbackTo(m)
		if s.Version() == v {
			t.Error("the version came back")
		}
		tables(t, s, "public", "a")
		columns(t, s, "public", "a", "id", "name", "x")
		done, err := s.Apply(ctx)
		want(t, err, nil)
		if !slices.Equal(done, []string{"ALTER TABLE public.a"}) {
			t.Errorf("done: %q", done)
		}
		columns(t, c, "public", "a", "id", "name", "x")
		garbage(t, c)
	})
}

// TestStagedReplace: a table that replaces another has none of its files, and the
// old one stays until Apply.
func TestStagedReplace(t *testing.T) {
	ctx := context.Background()
	warehouses(t, func(t *testing.T, c *Filesystem) {
		want(t, c.CreateTable(ctx, "public", "t", definition()), nil)
		want(t, c.env.IO.PutIfAbsent(ctx, "default.db/t/bucket-0/old", nil), nil)
		for _, commit := range []bool{false, true} {
			s := NewStaged(c)
			want(t, s.DropTable(ctx, "public", "t"), nil)
			def := definition()
			def.Fields = def.Fields[:1]
			want(t, s.CreateTable(ctx, "public", "t", def), nil)
			r := columns(t, s, "public", "t", "id").(*TableRelation)
			private := r.Store()
			want(t, c.env.IO.PutIfAbsent(ctx, private.Dir()+"/bucket-0/new", nil), nil)
			columns(t, c, "public", "t", "id", "name")
			tables(t, c, "public", "t")
			if !commit {
				want(t, s.Discard(ctx), nil)
				columns(t, c, "public", "t", "id", "name")
				garbage(t, c)
				continue
			}
			_, err := s.Apply(ctx)
			want(t, err, nil)
			if d := s.Final(private).Dir(); d != "default.db/t" {
				t.Errorf("the rows are in %s", d)
			}
			columns(t, c, "public", "t", "id")
			es, err := c.env.IO.List(ctx, "default.db/t/bucket-0")
			want(t, err, nil)
			if len(es) != 1 || es[0].Name != "new" {
				t.Errorf("files %v", es)
			}
		}
		garbage(t, c)
	})
}

func TestStagedCancelsOut(t *testing.T) {
	ctx := context.Background()
	warehouses(t, func(t *testing.T, c *Filesystem) {
		want(t, c.CreateTable(ctx, "public", "b", definition()), nil)
		s := NewStaged(c)
		want(t, s.CreateTable(ctx, "public", "x", definition()), nil)
		want(t, s.RenameTable(ctx, "public", "b", "public", "old"), nil)
		want(t, s.RenameTable(ctx, "public", "x", "public", "b"), nil)
		want(t, s.CreateTable(ctx, "public", "gone", definition()), nil)
		want(t, s.DropTable(ctx, "public", "gone"), nil)
		done, err := s.Apply(ctx)
		want(t, err, nil)
		if !slices.Equal(done, []string{"ALTER TABLE public.b RENAME TO public.old", "CREATE TABLE public.b"}) {
			t.Errorf("done: %q", done)
		}
		tables(t, c, "public", "b", "old")
		garbage(t, c)
	})
}

// TestStagedLosesRaces: what another made meanwhile is not overwritten, and what was
// done before that was noticed is undone.
func TestStagedLosesRaces(t *testing.T) {
	ctx := context.Background()
	warehouses(t, func(t *testing.T, c *Filesystem) {
		want(t, c.CreateTable(ctx, "public", "a", definition()), nil)
		want(t, c.CreateTable(ctx, "public", "b", definition()), nil)
		want(t, c.env.IO.PutIfAbsent(ctx, "default.db/b/bucket-0/f", nil), nil)

		s := NewStaged(c)
		want(t, s.AlterTable(ctx, "public", "a", addColumn("x")), nil)
		want(t, c.AlterTable(ctx, "public", "a", addColumn("y")), nil)
		done, err := s.Apply(ctx)
		want(t, err, ErrChanged)
		if len(done) > 0 {
			t.Errorf("done: %q", done)
		}
		columns(t, c, "public", "a", "id", "name", "y")

		s = NewStaged(c)
		want(t, s.CreateSchema(ctx, "sales", nil), nil)
		want(t, s.RenameTable(ctx, "public", "a", "sales", "a"), nil)
		want(t, s.DropTable(ctx, "public", "b"), nil)
		want(t, s.CreateTable(ctx, "public", "c", definition()), nil)
		want(t, c.CreateTable(ctx, "public", "c", definition()), nil)
		done, err = s.Apply(ctx)
		want(t, err, ErrRelationExists)
		if len(done) > 0 {
			t.Errorf("done: %q", done)
		}
		want(t, s.Discard(ctx), nil)
		tables(t, c, "public", "a", "b", "c")
		if _, err := c.env.IO.Stat(ctx, "default.db/b/bucket-0/f"); err != nil {
			t.Error(err)
		}
		_, err = c.Tables(ctx, "sales")
		want(t, err, ErrNoSchema)
		garbage(t, c)
	})
}

// TestStagedFaults: whichever operation fails, the warehouse is as before or the
// error says what was done.
func TestStagedFaults(t *testing.T) {
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprint(after), func(t *testing.T) { stagedFaults(t, after) })
	}
}

func stagedFaults(t *testing.T, after bool) {
	ctx := context.Background()
	boom := errors.New("boom")
	for n := 0; ; n++ {
		f := fileio.NewFault(fileio.NewLocal(t.TempDir()))
		c := newWarehouse(t, f)
		want(t, c.CreateTable(ctx, "public", "a", definition()), nil)
		want(t, c.CreateTable(ctx, "public", "b", definition()), nil)
		s := NewStaged(c)
		want(t, s.DropTable(ctx, "public", "a"), nil)
		want(t, s.CreateTable(ctx, "public", "a", definition("id")), nil)
		r, err := s.Resolve(ctx, "public", "a", ResolveOptions{})
		want(t, err, nil)
		want(t, f.PutIfAbsent(ctx, r.(*TableRelation).Store().Dir()+"/bucket-0/f", nil), nil)
		want(t, s.RenameTable(ctx, "public", "b", "public", "c"), nil)
		f.Add(fileio.Rule{Nth: n + 1, Err: boom, After: after})
		calls := f.Calls()
		done, err := s.Apply(ctx)
		calls = f.Calls() - calls
		f.Clear()
		if err == nil {
			tables(t, c, "public", "a", "c")
			if calls <= n {
				if n < 10 {
					t.Fatalf("only %d operations", n)
				}
				return
			}
			continue
		}
		want(t, err, boom)
		if len(done) > 0 {
			// Only a lost reply leaves what nobody can know to be there.
			if !after {
				t.Fatalf("operation %d: done %q", n, done)
			}
			continue
		}
		tables(t, c, "public", "a", "b")
		columns(t, c, "public", "a", "id", "name")
		want(t, s.Discard(ctx), nil)
	}
}

func TestStagedFixedOptions(t *testing.T) {
	ctx := context.Background()
	c := newWarehouse(t, fileio.NewMem())
	s := NewStaged(c)
	want(t, s.CreateTable(ctx, "public", "t", definition("id")), nil)
	set := []schema.Change{schema.SetOption{Key: "merge-engine", Value: "first-row"}}
	want(t, s.AlterTable(ctx, "public", "t", set), nil)
	s.Written = func(string) bool { return true }
	var ce *schema.ChangeError
	set[0] = schema.SetOption{Key: "merge-engine", Value: "deduplicate"}
	if err := s.AlterTable(ctx, "public", "t", set); !errors.As(err, &ce) || ce.Kind != schema.NotAllowed {
		t.Errorf("error %v", err)
	}
}

func TestOverlay(t *testing.T) {
	ctx := context.Background()
	c := newWarehouse(t, fileio.NewMem())
	want(t, c.CreateTable(ctx, "public", "t", definition()), nil)
	mine := &commit.Changes{Files: []manifest.Entry{{File: &manifest.DataFile{Rows: 7, Size: 100}}}}
	o := ResolveOptions{Overlay: func(dir, branch string) *commit.Changes {
		if dir == "default.db/t" && branch == "" {
			return mine
		}
		return nil
	}}
	r, err := c.Resolve(ctx, "public", "t", o)
	want(t, err, nil)
	if r.(*TableRelation).Overlay() != mine {
		t.Error("no overlay")
	}
	st, err := r.Stats(ctx, table.Scan{})
	want(t, err, nil)
	if st != nil && st.Rows != 7 {
		t.Errorf("%d rows", st.Rows)
	}
}
