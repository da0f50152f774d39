// Package demo lays out the tables that `paimon-sql demo` shows: files written
// by other engines, embedded as they are.
//
//	public.orders   TPC-H orders with a primary key, partitioned by
//	                o_orderpriority, in three snapshots (load, update, delete);
//	                the tag release-1 is the first
//	public.part_date, public.all_types
//	                an append table partitioned by a date, and one with a
//	                column of nearly every type
//	tpch_append.*   the eight TPC-H tables at scale factor 0.01, append-only
package demo

import (
	"archive/tar"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

//go:embed warehouse.tar.zst
var archive []byte

// Tables are what Lay makes, as SQL names them.
var Tables = []string{"public.orders", "public.part_date", "public.all_types", "tpch_append.*"}

// Queries are five to try on the demo tables.
var Queries = []string{
	"SELECT o_orderpriority, count(*), sum(o_totalprice) FROM orders GROUP BY 1 ORDER BY 1",
	"SELECT snapshot_id, commit_kind, total_record_count FROM orders$snapshots ORDER BY 1",
	"SELECT count(*) AS today, (SELECT count(*) FROM orders FOR VERSION AS OF 'release-1') AS release_1 FROM orders",
	"SELECT n_name, count(*) AS orders FROM tpch_append.orders JOIN tpch_append.customer ON c_custkey = o_custkey JOIN tpch_append.nation ON n_nationkey = c_nationkey GROUP BY n_name ORDER BY 2 DESC, 1 LIMIT 5",
	"SELECT date_trunc('year', l_shipdate)::date AS year, sum(l_extendedprice * (1 - l_discount)) AS revenue FROM tpch_append.lineitem GROUP BY 1 ORDER BY 1",
}

// Lay writes the demo tables that are not there yet and returns their names. A
// table is there when its schema is; its snapshots are written last, so a table
// that was laid out in part is finished by the next call.
func Lay(ctx context.Context, w fileio.FileIO) ([]string, error) {
	files, err := unpack()
	if err != nil {
		return nil, err
	}
	var made []string
	for _, table := range tables(files) {
		if _, err := w.Stat(ctx, path.Join(table, "snapshot", "LATEST")); err == nil {
			continue
		} else if !errors.Is(err, fileio.ErrNotExist) {
			return made, err
		}
		if list, err := w.List(ctx, path.Join(table, "snapshot")); err != nil {
			return made, err
		} else if len(list) > 0 {
			continue // a table of the user's own that has no hints
		}
		for pass := range 3 {
			for _, f := range files {
				if !strings.HasPrefix(f.name, table+"/") || pass != rank(f.name) {
					continue
				}
				if err := w.PutIfAbsent(ctx, f.name, f.data); err != nil && !errors.Is(err, fileio.ErrExist) {
					return made, fmt.Errorf("write %s: %w", f.name, err)
				}
			}
		}
		made = append(made, table)
	}
	return made, nil
}

type file struct {
	name string
	data []byte
}

func unpack() ([]file, error) {
	z, err := zstd.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	var out []file
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("demo archive: %w", err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("demo archive: %w", err)
		}
		out = append(out, file{path.Clean(h.Name), data})
	}
}

// rank orders what is written: files that snapshots name, snapshots, hints.
func rank(name string) int {
	switch {
	case strings.Contains(name, "/snapshot/snapshot-"):
		return 1
	case strings.Contains(name, "/snapshot/"):
		return 2
	}
	return 0
}

// tables returns the directories that hold a table, in the order of the archive.
func tables(files []file) []string {
	var out []string
	seen := map[string]bool{}
	for _, f := range files {
		if p := strings.Split(f.name, "/"); len(p) > 2 {
			if t := p[0] + "/" + p[1]; !seen[t] {
				seen[t] = true
				out = append(out, t)
			}
		}
	}
	return out
}
