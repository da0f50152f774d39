package sqllogic

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Rewrite fills a rowwise file in from what a server answers: types and rows of
// queries, the SQLSTATE of errors. Point it at PostgreSQL, and read the diff.
func Rewrite(ctx context.Context, path string, opt Options) error {
	recs, err := ParseFile(path)
	if err != nil {
		return err
	}
	if opt.Timeout == 0 {
		opt.Timeout = 30 * time.Second
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := strings.Split(string(src), "\n")
	r := &runner{opt: opt}
	defer r.close()
	if err := r.open(ctx); err != nil {
		return err
	}
	var out []string
	at := 1 // next line to copy
	for i := range recs {
		rec := &recs[i]
		if rec.Skip || rec.Kind != Statement && rec.Kind != Query {
			continue
		}
		out = append(out, lines[at-1:rec.Line-1]...)
		at = rec.end
		a := r.ask(ctx, rec.SQL)
		if a.lost != nil {
			return fmt.Errorf("%s:%d: %w", path, rec.Line, a.lost)
		}
		switch {
		case a.err != nil:
			if !rec.Error {
				fmt.Fprintf(os.Stderr, "%s:%d: error %s: %s\n", path, rec.Line, a.err.Code, a.err.Message)
			}
			out = append(out, "# ERROR: "+strings.ReplaceAll(a.err.Message, "\n", " "))
			if n := len(out); n > 1 && strings.HasPrefix(out[n-2], "# ERROR: ") {
				out = slices.Delete(out, n-2, n-1)
			}
			out = append(out, "statement error ("+a.err.Code+")", rec.SQL)
		case rec.Kind == Query && !rec.Error:
			sort := rec.Sort
			if sort == "" {
				sort = "nosort"
			}
			out = append(out, "query "+typesOf(a.cols)+" "+sort, rec.SQL, "----")
			rows := make([]string, 0, len(a.rows))
			for _, row := range a.rows {
				f := make([]string, len(row))
				for k, v := range row {
					f[k] = rowwise(v)
				}
				rows = append(rows, strings.Join(f, "\t"))
			}
			if sort == "rowsort" {
				slices.Sort(rows)
			}
			out = append(out, rows...)
		case rec.Count >= 0:
			out = append(out, "statement count "+affected.FindString(a.tag), rec.SQL)
		default:
			if rec.Error {
				fmt.Fprintf(os.Stderr, "%s:%d: no error\n", path, rec.Line)
			}
			out = append(out, "statement ok", rec.SQL)
		}
	}
	out = append(out, lines[min(at-1, len(lines)):]...)
	return os.WriteFile(path, []byte(strings.TrimRight(strings.Join(out, "\n"), "\n")+"\n"), 0o644)
}

func typesOf(cols []pgconn.FieldDescription) string {
	var b strings.Builder
	for _, c := range cols {
		switch c.DataTypeOID {
		case 20, 21, 23, 26:
			b.WriteByte('I')
		case 700, 701:
			b.WriteByte('R')
		default:
			b.WriteByte('T')
		}
	}
	if b.Len() == 0 {
		return "T"
	}
	return b.String()
}
