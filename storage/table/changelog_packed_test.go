package table

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

func TestPackedNames(t *testing.T) {
	for _, x := range []struct {
		in, file  string
		off, size int64
		ok, bad   bool
	}{
		{in: "t/p=1/bucket-0/changelog-x-0.parquet"},
		{in: "t/bucket-0/data-cc-x.parquet"},
		{in: "t/bucket-0/compacted-changelog-x$0-12.parquet"}, // an odd prefix of one's own
		{in: "t/p=1/bucket-3/compacted-changelog-x-y$3-12.cc-parquet", file: "t/p=1/bucket-3/compacted-changelog-x-y$3-12.cc-parquet", size: 12, ok: true},
		{in: "t/p=1/bucket-5/compacted-changelog-x-y$3-12-12-7.cc-parquet", file: "t/p=1/bucket-3/compacted-changelog-x-y$3-12.cc-parquet", off: 12, size: 7, ok: true},
		{in: "t/bucket-5/compacted-changelog-x$3-12-12-7.cc-zstd.parquet", file: "t/bucket-3/compacted-changelog-x$3-12.cc-zstd.parquet", off: 12, size: 7, ok: true},
		{in: "t/bucket-5/compacted-changelog-x.cc-parquet", ok: true, bad: true},
		{in: "t/bucket-5/compacted-changelog-x$3.cc-parquet", ok: true, bad: true},
		{in: "t/bucket-5/compacted-changelog-x$3-1-2.cc-parquet", ok: true, bad: true},
		{in: "t/bucket-5/compacted-changelog-x$3--1.cc-parquet", ok: true, bad: true},
		{in: "t/bucket-5/compacted-changelog-x$3-1-9999999999999999999-1.cc-parquet", ok: true, bad: true},
	} {
		file, off, size, ok, err := packedFile(x.in)
		if file != x.file || off != x.off || size != x.size || ok != x.ok || (err != nil) != x.bad {
			t.Errorf("%s: %s %d %d %v, %v", x.in, file, off, size, ok, err)
		}
	}
}

// pack puts the changelog files of a commit into one file, as Flink does it. short cuts
// bytes off its end.
func (f *fleet) pack(c *commit.Changes, dirs func(e *manifest.Entry) string, short int) {
	f.t.Helper()
	ctx := context.Background()
	var all bytes.Buffer
	var real, ext string
	var first int64
	home := int32(0)
	for i := range c.Changelog {
		e := &c.Changelog[i]
		raw, err := f.io.ReadFile(ctx, dirs(e)+"/"+e.File.Name)
		if err != nil {
			f.t.Fatal(err)
		}
		off, size := int64(all.Len()), int64(len(raw))
		all.Write(raw)
		file := *e.File
		if i == 0 {
			ext, first, home = path.Ext(file.Name)[1:], size, e.Bucket
			file.Name = fmt.Sprintf("compacted-changelog-6f1a$%d-%d.cc-%s", home, first, ext)
			real = dirs(e) + "/" + file.Name
		} else {
			file.Name = fmt.Sprintf("compacted-changelog-6f1a$%d-%d-%d-%d.cc-%s", home, first, off, size, ext)
		}
		if err := f.io.Delete(ctx, dirs(e)+"/"+e.File.Name); err != nil {
			f.t.Fatal(err)
		}
		e.File = &file
	}
	w, err := f.io.Create(ctx, real)
	if err == nil {
		_, err = w.Write(all.Bytes()[:all.Len()-short])
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// TestPackedChangelog reads changes of a table whose changelog files were put into
// one, and those of one that nobody has touched: they must be the same.
func TestPackedChangelog(t *testing.T) {
	ctx := context.Background()
	rows := func(from, to int64, v string) (out [][]types.Datum) {
		for k := from; k < to; k++ {
			out = append(out, []types.Datum{k % 2, k, fmt.Sprint(v, k)})
		}
		return out
	}
	build := func(pack bool, short int) *fleet {
		f := newFleet(t, fileio.NewMem(), fixedTable(t, 4, "changelog-producer", "input"), 1)
		s := f.stores[0]
		for round, batch := range [][][]types.Datum{rows(0, 40, "a"), rows(20, 60, "b")} {
			c, err := f.prepare(s, WriteOptions{}, batch, nil)
			if err != nil {
				t.Fatal(err)
			}
			if pack && round == 1 {
				// One file per partition: Flink packs within one.
				by := map[string]*commit.Changes{}
				var order []string
				for _, e := range c.Changelog {
					p := string(e.Partition)
					if by[p] == nil {
						by[p] = &commit.Changes{}
						order = append(order, p)
					}
					by[p].Changelog = append(by[p].Changelog, e)
				}
				c.Changelog = nil
				for _, p := range order {
					f.pack(by[p], func(e *manifest.Entry) string {
						dir, err := s.bucketPath(f.sch, e.Partition, e.Bucket)
						if err != nil {
							t.Fatal(err)
						}
						return dir
					}, short)
					c.Changelog = append(c.Changelog, by[p].Changelog...)
				}
			}
			at, err := s.Resolve(ctx, snapshot.Ref{})
			if err != nil {
				t.Fatal(err)
			}
			if at.Snap != nil {
				c.Base = at.Snap.ID
			}
			if _, err := s.Commit(ctx, c); err != nil {
				t.Fatal(err)
			}
		}
		return f
	}
	plain, packed := build(false, 0), build(true, 0)
	for _, b := range [][2]int64{{1, 2}, {0, 2}} {
		want, err := changes(t, plain.stores[0], between(b[0], b[1], "changelog"), true)
		if err != nil || len(want) < 40 {
			t.Fatal(len(want), err)
		}
		got, err := changes(t, packed.stores[0], between(b[0], b[1], "changelog"), true)
		if err != nil {
			t.Fatal(err)
		}
		wantRows(t, got, want)
	}
	// A file that ends too early is corrupt, never short of rows.
	_, err := changes(t, build(true, 100).stores[0], between(1, 2, "changelog"), true)
	var bad *fileio.CorruptionError
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), "compacted changelog file") {
		t.Error(err)
	}
}
