package table

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileindex"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// setOptions gives the table a newer schema with other options.
func (c *compactTable) setOptions(o map[string]string) {
	c.t.Helper()
	next := *c.sch
	next.ID++
	next.Options = maps.Clone(c.sch.Options)
	for k := range next.Options {
		if strings.HasPrefix(k, "file-index.") {
			delete(next.Options, k)
		}
	}
	maps.Copy(next.Options, o)
	if err := schema.NewManager(c.io, workDir).Commit(context.Background(), &next); err != nil {
		c.t.Fatal(err)
	}
	c.sch = &next
}

func (c *compactTable) reindex(o IndexOptions) *IndexReport {
	c.t.Helper()
	r, err := c.s.RewriteIndexes(context.Background(), o)
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// indexed makes sure that every live file has exactly the indexes that the options ask
// for, and that none of them says of a row that is there that it is not.
func (c *compactTable) indexed(when string) {
	c.t.Helper()
	cfg, err := fileindex.Parse(c.sch.Options, c.sch.Fields)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range c.live() {
		fs, err := schema.NewManager(c.io, workDir).Get(context.Background(), e.File.SchemaID)
		if err != nil {
			c.t.Fatal(err)
		}
		var want, have []string
		if of := cfg.For(c.sch.Fields, fs.Fields); of != nil {
			for _, x := range of.Columns {
				want = append(want, x.Container()+" "+x.Kind.Name())
			}
		}
		dir := workDir + "/" + fmt.Sprintf("bucket-%d", e.Bucket)
		src := index.BytesSource(e.File.EmbeddedIndex)
		for _, p := range dataPaths(dir, e.File)[1:] {
			raw, err := c.io.ReadFile(context.Background(), p)
			if err != nil {
				c.t.Fatalf("%s: %v", when, err)
			}
			src = raw
		}
		if len(src) > 0 {
			f, err := fileindex.Open(src, fs.Fields)
			if err != nil {
				c.t.Fatalf("%s: %v", when, err)
			}
			for _, s := range f.Container().Sections() {
				have = append(have, s.Column+" "+s.Kind)
			}
			c.sound(when, f, fs, dir, &File{Meta: e.File})
		}
		slices.Sort(want)
		slices.Sort(have)
		if !slices.Equal(want, have) {
			c.t.Fatalf("%s: %s has the indexes %q, want %q", when, e.File.Name, have, want)
		}
	}
}

// sound asks the indexes of a file for every row of it.
func (c *compactTable) sound(when string, x *fileindex.File, fs *schema.Table, dir string, f *File) {
	c.t.Helper()
	ctx := context.Background()
	p, err := c.s.newPlanner(ctx, Scan{At: snapshot.Ref{Schema: fs.ID + 1, Empty: true}, Limit: -1, Columns: []int{0, 1, 2}})
	if err != nil {
		c.t.Fatal(err)
	}
	err = copyRows(ctx, p, dir, f.Meta, func(int64, int) ([]uint16, int) { return nil, -1 }, func(cols []arrow.Array, n int) error {
		for i, a := range cols {
			for r := range n {
				l := &predicate.Leaf{Op: predicate.IsNull, Col: i, Type: fs.Fields[i].Type}
				if d := vec.DatumAt(a, l.Type, r); d != nil {
					l.Op, l.Args = predicate.Eq, []types.Datum{d}
				}
				v, err := x.Eval(l, f.Meta.Rows)
				if err != nil {
					return err
				}
				if v.Verdict == index.None || v.Rows != nil && !v.Rows.ContainsInt(r) {
					c.t.Fatalf("%s: row %d of %s matches %v, and the index says %v", when, r, f.Meta.Name, l, v)
				}
			}
		}
		return nil
	})
	if err != nil {
		c.t.Fatalf("%s: %v", when, err)
	}
}

// indexSteps are options one after the other.
var indexSteps = []map[string]string{
	{"file-index.bloom-filter.columns": "v", "file-index.bloom-filter.v.items": "50", "file-index.bitmap.columns": "w"},
	{"file-index.bloom-filter.columns": "v", "file-index.range-bitmap.columns": "w,k", "file-index.in-manifest-threshold": "10 b"},
	{"file-index.bsi.columns": "w,k", "file-index.in-manifest-threshold": "1 mb"},
	{},
	{"file-index.bitmap.columns": "w, v", "file-index.in-manifest-threshold": "1 b"},
}

var indexTables = []struct {
	name string
	opts map[string]string
	pk   []string
}{
	{"append", map[string]string{"deletion-vectors.enabled": "true", "compaction.min.file-num": "100"}, nil},
	{"key", map[string]string{"bucket": "1", "num-sorted-run.compaction-trigger": "100"}, []string{"k"}},
	{"thin key with vectors", map[string]string{"bucket": "2", "data-file.thin-mode": "true", "deletion-vectors.enabled": "true", "num-sorted-run.compaction-trigger": "100"}, []string{"k"}},
}

func newIndexTable(t *testing.T, io fileio.FileIO, opts map[string]string, pk []string) *compactTable {
	return newCompactTable(t, io, tableSchema(t, opts, pk, "k BIGINT", "v STRING", "w INT"), EnvOptions{})
}

// TestRewriteIndexes changes the options of tables, gives their files other indexes, and
// writes, deletes, compacts and expires in between.
func TestRewriteIndexes(t *testing.T) {
	for _, k := range indexTables {
		t.Run(k.name, func(t *testing.T) {
			io := fileio.NewMem()
			c := newIndexTable(t, io, maps.Clone(k.opts), k.pk)
			r := rand.New(rand.NewPCG(3, 4))
			next := int64(0)
			write := func() {
				if k.pk == nil {
					c.append(appendRows(r, c, &next, 60))
					if err := c.deleteWhere(func(k int64) bool { return k%11 == 3 }); err != nil {
						t.Fatal(err)
					}
					return
				}
				rows, kinds := randomChange(r, c.sch, 60, 200)
				c.mustWrite(rows, kinds)
			}
			write()
			write()
			for i, o := range indexSteps {
				when := fmt.Sprintf("step %d", i)
				c.setOptions(o)
				rep := c.reindex(IndexOptions{})
				if rep.SnapshotID == 0 || rep.Files == 0 || rep.LostRaces+rep.Skipped > 0 {
					t.Fatalf("%s: %+v", when, rep)
				}
				c.check(when)
				c.indexed(when)
				if rep := c.reindex(IndexOptions{}); rep.SnapshotID != 0 || rep.Rows > 0 {
					t.Fatalf("%s: again %+v", when, rep)
				}
				if rep := c.reindex(IndexOptions{Anew: true}); len(o) > 0 && rep.Rows == 0 {
					t.Fatalf("%s: anew %+v", when, rep)
				}
				write()
				c.indexed(when + ", written")
				if i%2 == 1 {
					c.compact(CompactOptions{Full: true})
					c.indexed(when + ", compacted")
				}
				c.check(when)
				c.noStray()
				if _, err := c.s.Expire(context.Background(), ExpireOptions{RetainMax: 1, RetainMin: 1, OlderThan: time.Now().Add(time.Hour)}); err != nil {
					t.Fatal(err)
				}
				c.check(when + ", expired")
				c.indexed(when + ", expired")
				c.noStray()
				if t.Failed() {
					t.FailNow()
				}
			}
		})
	}
}

// TestIndexLeftOut writes a value that a bsi cannot hold: the file is without it.
func TestIndexLeftOut(t *testing.T) {
	c := newIndexTable(t, fileio.NewMem(), map[string]string{"file-index.bsi.columns": "k,w"}, nil)
	c.append([][]types.Datum{{int64(-1 << 63), "a", int64(1)}})
	f := c.live()[0].File
	x, err := index.OpenContainer(index.BytesSource(f.EmbeddedIndex))
	if err != nil || len(x.Sections()) != 1 || x.Sections()[0].Column != "w" {
		t.Fatalf("%v %v", x, err)
	}
	c.check("left out")
	if rep := c.reindex(IndexOptions{}); rep.SnapshotID != 0 || rep.Rows != 1 {
		t.Fatalf("%+v", rep)
	}
}

// TestIndexLeftOutDecimal is the same for a DECIMAL of more than 64 bits.
func TestIndexLeftOutDecimal(t *testing.T) {
	s := tableSchema(t, map[string]string{"file-index.bsi.columns": "d"}, nil, "d DECIMAL(30, 0)")
	for _, text := range []string{"12345", "123456789012345678901234567890"} {
		c := newCompactTable(t, fileio.NewMem(), s, EnvOptions{})
		d, err := numeric.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c.append([][]types.Datum{{d}})
		if got := len(c.live()[0].File.EmbeddedIndex) > 0; got != (len(text) < 18) {
			t.Errorf("%s: indexed %v", text, got)
		}
		c.check(text)
	}
}

// TestRewriteIndexesBeside lets a compaction come between reading and publishing.
func TestRewriteIndexesBeside(t *testing.T) {
	c := newIndexTable(t, fileio.NewMem(), map[string]string{"bucket": "1", "num-sorted-run.compaction-trigger": "100"}, []string{"k"})
	r := rand.New(rand.NewPCG(3, 5))
	for range 3 {
		rows, kinds := randomChange(r, c.sch, 60, 200)
		c.mustWrite(rows, kinds)
	}
	c.setOptions(map[string]string{"file-index.bitmap.columns": "w", "file-index.in-manifest-threshold": "1 b"})
	old := Open(NewEnv(c.io, EnvOptions{}), workDir)
	first := true
	rep := c.reindex(IndexOptions{Publish: func(context.Context) (func(), error) {
		if first {
			first = false
			if _, err := old.Compact(context.Background(), CompactOptions{Full: true}); err != nil {
				t.Fatal(err)
			}
		}
		return func() {}, nil
	}})
	if rep.LostRaces != 3 || rep.Files != 0 { // the compaction's file has them

		t.Fatalf("%+v", rep)
	}
	c.check("beside a compaction")
	c.indexed("beside a compaction")
	c.noStray()
}

// TestIndexCrash stops the machine at every call of a commit with index files, and of
// giving files other indexes: the old state is there or the new, with every file.
func TestIndexCrash(t *testing.T) {
	ctx := context.Background()
	rnd := rand.New(rand.NewPCG(8, 0))
	small := map[string]string{"file-index.bitmap.columns": "w,v", "file-index.in-manifest-threshold": "1 b"}
	for _, k := range indexTables {
		for _, rewrite := range []bool{false, true} {
			base := newIndexTable(t, fileio.NewMem(), maps.Clone(k.opts), k.pk)
			r := rand.New(rand.NewPCG(3, 6))
			next := int64(0)
			rows := func(c *compactTable) ([][]types.Datum, []uint8) {
				if k.pk == nil {
					return appendRows(r, c, &next, 20), nil
				}
				return randomChange(r, c.sch, 20, 100)
			}
			base.setOptions(map[string]string{"file-index.bitmap.columns": "w", "file-index.in-manifest-threshold": "1 b"})
			for range 2 {
				a, b := rows(base)
				if k.pk == nil {
					base.append(a)
				} else {
					base.mustWrite(a, b)
				}
			}
			base.setOptions(small)
			more, kinds := rows(base)
			latest, err := base.s.Snapshots("").LatestID(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, after := range []bool{false, true} {
				for chance := range 2 {
					crashes := 0
					for n := 1; ; n++ {
						disk := fileio.NewCrash()
						c := base.copyTo(disk)
						env := NewEnv(disk, EnvOptions{})
						c.s = Open(env, workDir)
						disk.At(n, after)
						var err error
						if rewrite {
							_, err = c.s.RewriteIndexes(ctx, IndexOptions{})
						} else {
							err = c.write(more, kinds)
						}
						env.Close()
						when := fmt.Sprintf("%s, rewrite %v, after %v, call %d, chance %d: %v", k.name, rewrite, after, n, chance, err)
						if !disk.Crashed() {
							if err != nil {
								t.Fatal(when)
							}
							break
						}
						crashes++
						var how *rand.Rand
						if chance > 0 {
							how = rnd
						}
						c.io = disk.Reopen(how)
						env = NewEnv(c.io, EnvOptions{})
						c.s = Open(env, workDir)
						now, lerr := c.s.Snapshots("").LatestID(ctx)
						if lerr != nil {
							t.Fatalf("%s: %v", when, lerr)
						}
						var unknown *commit.UnknownOutcomeError
						switch {
						case err == nil && now == latest:
							t.Fatalf("%s: it was acknowledged and is not there", when)
						case err != nil && now > latest && !errors.As(err, &unknown):
							t.Fatalf("%s: it failed and is there", when)
						case now > latest && !rewrite && k.pk == nil:
							c.model(more)
						case now > latest && !rewrite:
							c.apply(more, kinds)
						}
						filesExist(t, c.io, when)
						c.check(when)
						c.reindex(IndexOptions{})
						c.check(when + ", and again")
						c.indexed(when + ", and again")
						filesExist(t, c.io, when+", and again")
						env.Close()
					}
					if crashes < 6 {
						t.Errorf("only %d calls", crashes)
					}
				}
			}
		}
	}
}

// copyTo copies the table to another store.
func (c *compactTable) copyTo(io fileio.FileIO) *compactTable {
	c.t.Helper()
	for _, p := range filesBelow(c.t, c.io, workDir) {
		raw, err := c.io.ReadFile(context.Background(), p)
		if err == nil {
			err = io.PutIfAbsent(context.Background(), p, raw) // durable, too
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
	return &compactTable{t: c.t, io: io, sch: c.sch, key: c.key, rows: maps.Clone(c.rows), seqs: maps.Clone(c.seqs)}
}
