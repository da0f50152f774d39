package sqllogic

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Rewrite fills a rowwise file in from what a server answers: types and rows of
// queries, the SQLSTATE of errors. Point it at PostgreSQL, and read the diff.
func Rewrite(ctx context.Context, path string, opt Options) error {
	recs, err := ParseFile(path)
	if err != nil {
		return err
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := strings.Split(string(src), "\n")
	r, err := newRunner(ctx, opt)
	if err != nil {
		return err
	}
	defer r.close()
	var out []string // pieces of the file
	later := map[string]int{}
	settle := func(p *pending) error {
		a := <-p.answer
		if a.lost != nil {
			return fmt.Errorf("%s:%d: %w", path, p.rec.Line, a.lost)
		}
		out[later[p.rec.Conn]] = render(path, p.rec, a)
		delete(r.waiting, p.rec.Conn)
		return nil
	}
	at := 1 // next line to copy
	for i := range recs {
		rec := &recs[i]
		if rec.Skip || rec.Kind != Statement && rec.Kind != Query {
			continue
		}
		head := lines[at-1 : rec.Line-1]
		if n := len(head); n > 0 && strings.HasPrefix(head[n-1], "# ERROR: ") {
			head = head[:n-1]
		}
		out = append(out, head...)
		at = rec.end
		if p := r.waiting[rec.Conn]; p != nil {
			if err := settle(p); err != nil {
				return err
			}
		}
		if rec.Blocks {
			if why := r.block(ctx, rec); why != "" {
				return fmt.Errorf("%s:%d: %s", path, rec.Line, why)
			}
			later[rec.Conn] = len(out)
			out = append(out, "")
			continue
		}
		a := r.answer(ctx, rec)
		if a.lost != nil {
			return fmt.Errorf("%s:%d: %w", path, rec.Line, a.lost)
		}
		out = append(out, render(path, rec, a))
	}
	for _, p := range r.waiting {
		if err := settle(p); err != nil {
			return err
		}
	}
	out = append(out, lines[min(at-1, len(lines)):]...)
	return os.WriteFile(path, []byte(strings.TrimRight(strings.Join(out, "\n"), "\n")+"\n"), 0o644)
}

// render is a record with an answer.
func render(path string, rec *Record, a answer) string {
	switch {
	case a.err != nil:
		if !rec.Error {
			fmt.Fprintf(os.Stderr, "%s:%d: error %s: %s\n", path, rec.Line, a.err.Code, a.err.Message)
		}
		return "# ERROR: " + strings.ReplaceAll(a.err.Message, "\n", " ") + "\nstatement error (" + a.err.Code + ")\n" + rec.SQL
	case rec.Kind == Query && !rec.Error:
		sort := rec.Sort
		if sort == "" {
			sort = "nosort"
		}
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
		return strings.Join(append([]string{"query " + typesOf(a.cols) + " " + sort, rec.SQL, "----"}, rows...), "\n")
	case rec.Count >= 0:
		return "statement count " + affected.FindString(a.tag) + "\n" + rec.SQL
	}
	if rec.Error {
		fmt.Fprintf(os.Stderr, "%s:%d: no error\n", path, rec.Line)
	}
	return "statement ok\n" + rec.SQL
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
