package catalog

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// foreign is a warehouse that another engine changes.
type foreign struct {
	t     *testing.T
	dir   string
	r     *rand.Rand
	clock time.Time // of the directories: long ago, so that listings are settled
	n     int
}

// age gives what was just changed the next moment of the clock.
func (f *foreign) age() {
	f.clock = f.clock.Add(time.Second)
	recent := time.Now().Add(-time.Hour)
	err := filepath.WalkDir(f.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := d.Info()
		if err == nil && i.ModTime().After(recent) {
			err = os.Chtimes(p, f.clock, f.clock)
		}
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *foreign) schema(id int) string {
	f.n++
	var more strings.Builder
	for i := range f.r.IntN(4) {
		fmt.Fprintf(&more, `,{"id":%d,"name":"c%d","type":"STRING"}`, i+1, i)
	}
	pk := ""
	if f.r.IntN(2) == 0 {
		pk = `"id"`
	}
	return fmt.Sprintf(`{"version":3,"id":%d,"fields":[{"id":0,"name":"id","type":"INT NOT NULL"}%s],"highestFieldId":9,"partitionKeys":[],"primaryKeys":[%s],"options":{"bucket":"%d"},"comment":"n%d","timeMillis":1}`,
		id, more.String(), pk, 1+f.r.IntN(3), f.n)
}

func (f *foreign) table() string {
	return filepath.Join(f.dir, []string{"default", "a", "b"}[f.r.IntN(3)]+".db", fmt.Sprintf("t%d", f.r.IntN(6)))
}

func (f *foreign) step() {
	a, b := f.table(), f.table()
	ids, _ := filepath.Glob(filepath.Join(a, "schema", "schema-*"))
	write := func(dir string, id int, text string) {
		put(f.t, dir, fmt.Sprintf("schema/schema-%d", id), text)
	}
	switch f.r.IntN(9) {
	case 0, 1:
		if len(ids) == 0 {
			write(a, 0, f.schema(0))
		}
	case 2, 3:
		if raw, _ := os.ReadFile(filepath.Join(a, "schema", "schema-0")); len(raw) > 1 { // not damaged
			write(a, len(ids), f.schema(len(ids)))
		}
	case 4:
		_ = os.RemoveAll(a)
	case 5:
		if _, err := os.Stat(b); err != nil && len(ids) > 0 {
			_ = os.MkdirAll(filepath.Dir(b), 0o755)
			_ = os.Rename(a, b)
		}
	case 6: // each takes the other's name
		if a != b {
			_ = os.Rename(a, a+"x")
			if os.Rename(b, a) == nil {
				_ = os.Rename(a+"x", b)
			} else {
				_ = os.Rename(a+"x", a)
			}
		}
	case 7: // made anew, at the moment at which it was dropped
		_ = os.RemoveAll(a)
		write(a, 0, f.schema(0))
	case 8:
		if f.r.IntN(3) == 0 {
			_ = os.RemoveAll(filepath.Dir(a))
		} else if len(ids) == 0 {
			write(a, 0, "{") // damaged
		}
	}
}

func describe(rel Relation, namesOnly bool) string {
	if namesOnly {
		return fmt.Sprintf("%s.%s %d", rel.Schema(), rel.Name(), rel.OID())
	}
	i := rel.(TableInfo)
	var cols []string
	for _, c := range rel.Columns() {
		cols = append(cols, c.Name+" "+types.PaimonString(c.Type))
	}
	return fmt.Sprintf("%s.%s %d %v %v %v %q %v", rel.Schema(), rel.Name(), rel.OID(), i.SchemaID(), i.PrimaryKey(), i.Options(), i.Comment(), cols)
}

func describeAll(l *Listing, namesOnly bool) string {
	var out []string
	for _, s := range l.Schemas() {
		for _, rel := range l.Relations(s) {
			if l.Find(s, rel.Name()) != rel || l.ByOID(rel.OID()) != rel {
				out = append(out, "not found: "+rel.Name())
			}
			out = append(out, describe(rel, namesOnly))
		}
	}
	return strings.Join(out, "\n")
}

// TestListing compares what a catalog lists, whole or names only, with what one lists
// that has seen nothing before, while another engine changes the warehouse.
func TestListing(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(random.Seed(t), 1))
	f := &foreign{t: t, dir: t.TempDir(), r: r, clock: time.Now().Add(-48 * time.Hour)}
	put(t, f.dir, "default.db/t0/schema/schema-0", f.schema(0))
	f.age()
	env := table.NewEnv(fileio.NewLocal(f.dir), table.EnvOptions{})
	defer env.Close()
	c := NewFilesystem(env, f.dir)
	for i := range 40 * testkit.Factor() {
		for range r.IntN(3) {
			f.step()
		}
		if r.IntN(8) != 0 {
			f.age()
		}
		namesOnly := r.IntN(2) == 0
		got, err := c.List(ctx, namesOnly)
		if err != nil {
			t.Fatal(err)
		}
		fresh := table.NewEnv(fileio.NewLocal(f.dir), table.EnvOptions{})
		want, err := List(ctx, struct{ Catalog }{NewFilesystem(fresh, f.dir)}, false)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := describeAll(got, namesOnly), describeAll(want, namesOnly); a != b {
			t.Fatalf("step %d, names only: %v\ngot\n%s\nwant\n%s", i, namesOnly, a, b)
		}
		fresh.Close()
		f.age()
		if _, err = c.List(ctx, false); err != nil {
			t.Fatal(err)
		}
		a, err := c.List(ctx, false)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := c.List(ctx, true); err != nil || a != b {
			t.Fatalf("step %d: another listing although nothing changed, %v", i, err)
		}
	}
}

// BenchmarkListing lists a warehouse that does not change.
func BenchmarkListing(b *testing.B) {
	dir := b.TempDir()
	f := &foreign{dir: dir, r: rand.New(rand.NewPCG(1, 1))}
	const tables = 10_000
	for i := range tables {
		p := filepath.Join(dir, fmt.Sprintf("d%d.db/t%d/schema", i%10, i))
		if err := os.MkdirAll(p, 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(p+"/schema-0", []byte(f.schema(0)), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	old := time.Now().Add(-time.Hour)
	_ = filepath.WalkDir(dir, func(p string, _ fs.DirEntry, _ error) error { return os.Chtimes(p, old, old) })
	env := table.NewEnv(fileio.NewLocal(dir), table.EnvOptions{})
	defer env.Close()
	c := NewFilesystem(env, dir)
	if l, err := c.List(context.Background(), false); err != nil || l.Size().Relations != tables {
		b.Fatal(l.Size(), err)
	}
	for _, namesOnly := range []bool{true, false} {
		b.Run(fmt.Sprintf("names-only=%v", namesOnly), func(b *testing.B) {
			for b.Loop() {
				if _, err := c.List(context.Background(), namesOnly); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
