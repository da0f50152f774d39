// Package demo makes the tables that `paimon-sql demo` shows, with the product's
// own SQL: CREATE TABLE, COPY, UPDATE, DELETE and a tag.
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

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// data holds the rows in COPY's text format, a file per table.
//
//go:embed data.tar.zst
var data []byte

//go:embed tables.sql
var definitions string

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

// Lay makes the demo tables that are not there yet and returns their names. A
// table and its rows come into being in one transaction, so none is half made; a
// table of the user's own by one of the names stays as it is.
func Lay(ctx context.Context, w fileio.FileIO) ([]string, error) {
	files, err := unpack()
	if err != nil {
		return nil, err
	}
	e, err := engine.Open(ctx, engine.Config{FileIO: w, Warehouse: "demo"})
	if err != nil {
		return nil, err
	}
	defer e.Close() //nolint:errcheck // what is committed is durable
	s, err := e.OpenSession(ctx, engine.Startup{User: "paimon", Database: "paimon"})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var made []string
	for _, t := range tables(definitions) {
		out := &sink{}
		if err := s.Query(ctx, fmt.Sprintf("SELECT to_regclass('%s') IS NOT NULL", t.name), out); err != nil {
			return made, err
		}
		if out.found {
			continue
		}
		rows, ok := files[t.name]
		if !ok && t.copied {
			return made, fmt.Errorf("demo archive: no rows of %s", t.name)
		}
		for _, sql := range t.sql {
			if err := s.Query(ctx, sql, &sink{rows: rows}); err != nil {
				s.Query(ctx, "ROLLBACK", &sink{}) //nolint:errcheck // the first error counts
				return made, fmt.Errorf("%s: %w", t.name, err)
			}
		}
		made = append(made, t.name)
	}
	return made, nil
}

// definition is one table of tables.sql: statements up to the next line that
// begins with "-- table".
type definition struct {
	name   string
	sql    []string
	copied bool // a COPY takes the table's rows from the archive
}

func tables(text string) []definition {
	var out []definition
	for _, part := range strings.Split("\n"+text, "\n-- table ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		d := definition{name: strings.TrimSpace(name), copied: strings.Contains(body, "FROM STDIN")}
		for _, st := range strings.Split(body, ";\n") {
			if st = strings.TrimSpace(st); st != "" {
				d.sql = append(d.sql, st)
			}
		}
		out = append(out, d)
	}
	return out
}

func unpack() (map[string][]byte, error) {
	z, err := zstd.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	out := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("demo archive: %w", err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("demo archive: %w", err)
		}
		out[path.Base(h.Name)] = b
	}
}

// sink gives rows to COPY and keeps the boolean that a query returns.
type sink struct {
	rows  []byte
	found bool
}

var (
	_ engine.ResultSink = (*sink)(nil)
	_ engine.CopySink   = (*sink)(nil)
)

func (s *sink) Columns([]engine.Column) error { return nil }

func (s *sink) Batch(_ context.Context, b *vec.Batch) error {
	b = vec.Compact(b)
	if b.N > 0 && len(b.Cols) > 0 {
		s.found, _ = vec.DatumAt(b.Cols[0], types.Of(types.Bool), 0).(bool)
	}
	return nil
}

func (s *sink) Complete(string) error          { return nil }
func (s *sink) Empty() error                   { return nil }
func (s *sink) Notice(*pgerr.Error)            {}
func (s *sink) ParameterStatus(string, string) {}

func (s *sink) CopyIn(context.Context, bool, int) (io.Reader, error) {
	return bytes.NewReader(s.rows), nil
}

func (s *sink) CopyOut(context.Context, bool, int) (io.WriteCloser, error) {
	return nil, errors.New("nothing to copy to")
}
