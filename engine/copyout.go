package engine

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// copyFormat are the options of COPY with PostgreSQL's defaults filled in.
type copyFormat struct {
	csv, binary   bool
	delim         byte
	null          string
	header        bool
	quote, escape byte
	forceAll      bool
	force         map[string]bool
}

func readCopyOptions(opts []*ast.Option) (*copyFormat, error) {
	f := &copyFormat{}
	seen := map[string]bool{}
	var delim, null, quote, escape *string
	one := func(name string, v string) (string, error) {
		if len(v) != 1 {
			return "", pgerr.New(pgerr.FeatureNotSupported, "COPY %s must be a single one-byte character", name)
		}
		return v, nil
	}
	for _, o := range opts {
		if seen[o.Name] {
			return nil, pgerr.New(pgerr.SyntaxError, "conflicting or redundant options")
		}
		seen[o.Name] = true
		v := optionText(o)
		switch o.Name {
		case "format":
			switch v {
			case "text":
			case "csv":
				f.csv = true
			case "binary":
				f.binary = true
			default:
				return nil, pgerr.New(pgerr.InvalidParameterValue, "COPY format %q not recognized", v)
			}
		case "delimiter":
			delim = &v
		case "null":
			null = &v
		case "header":
			if v == "match" {
				return nil, pgerr.New(pgerr.FeatureNotSupported, "cannot use \"match\" with HEADER in COPY TO")
			}
			f.header = optionOn(o)
		case "quote":
			quote = &v
		case "escape":
			escape = &v
		case "force_quote":
			if l, ok := o.Value.(*ast.OptionList); ok {
				f.force = map[string]bool{}
				for _, it := range l.Items {
					f.force[optionText(&ast.Option{Value: it})] = true
				}
			} else {
				f.forceAll = true
			}
		case "encoding":
			if _, err := checkEncoding(v); err != nil {
				return nil, pgerr.New(pgerr.InvalidParameterValue, "argument to option %q must be a valid encoding name", "encoding")
			}
		case "freeze", "force_not_null", "force_null":
			if o.Name != "freeze" {
				return nil, pgerr.New(pgerr.FeatureNotSupported, "COPY %s only available using COPY FROM", strings.ReplaceAll(o.Name, "_", " "))
			}
		default:
			return nil, pgerr.New(pgerr.SyntaxError, "option %q not recognized", o.Name)
		}
	}
	if f.binary && (delim != nil || null != nil) {
		return nil, pgerr.New(pgerr.SyntaxError, "cannot specify DELIMITER or NULL in BINARY mode")
	}
	if !f.csv && (quote != nil || escape != nil || f.force != nil || f.forceAll) {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "COPY quote, escape and force quote are available only in CSV mode")
	}
	f.delim, f.null, f.quote = '\t', `\N`, '"'
	if f.csv {
		f.delim, f.null = ',', ""
	}
	for _, x := range []struct {
		name string
		v    *string
		to   *byte
	}{{"delimiter", delim, &f.delim}, {"quote", quote, &f.quote}, {"escape", escape, &f.escape}} {
		if x.v != nil {
			s, err := one(x.name, *x.v)
			if err != nil {
				return nil, err
			}
			*x.to = s[0]
		}
	}
	if f.escape == 0 {
		f.escape = f.quote
	}
	if null != nil {
		f.null = *null
	}
	switch {
	case f.delim == '\n' || f.delim == '\r':
		return nil, pgerr.New(pgerr.InvalidParameterValue, "COPY delimiter cannot be newline or carriage return")
	case strings.ContainsAny(f.null, "\r\n"):
		return nil, pgerr.New(pgerr.InvalidParameterValue, "COPY null representation cannot use newline or carriage return")
	case !f.csv && strings.IndexByte(`\.abcdefghijklmnopqrstuvwxyz0123456789`, f.delim) >= 0:
		return nil, pgerr.New(pgerr.InvalidParameterValue, "COPY delimiter cannot be %q", string(f.delim))
	case f.csv && f.delim == f.quote:
		return nil, pgerr.New(pgerr.InvalidParameterValue, "COPY delimiter and quote must be different")
	case strings.IndexByte(f.null, f.delim) >= 0:
		return nil, pgerr.New(pgerr.InvalidParameterValue, "COPY delimiter must not appear in the NULL specification")
	}
	return f, nil
}

// runCopy is COPY ... TO STDOUT.
func (s *Session) runCopy(ctx, life context.Context, p *prepared, st *ast.Copy, out ResultSink) (*running, error) {
	switch {
	case st.From:
		return nil, unsupported(st)
	case st.Program:
		return nil, pgerr.New(pgerr.FeatureNotSupported, "COPY TO PROGRAM is not supported")
	case !st.Std:
		return nil, pgerr.New(pgerr.FeatureNotSupported, "COPY to a file of the server is not supported").
			WithHint("COPY TO STDOUT and psql's \\copy write files of the client.")
	}
	f, err := readCopyOptions(st.Options)
	if err != nil {
		return nil, err
	}
	if f.binary {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "COPY TO with format binary is not supported yet")
	}
	stream, ok := out.(CopySink)
	if !ok {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "COPY TO STDOUT needs a client that takes a stream")
	}
	q, err := s.copyQuery(ctx, st)
	if err != nil {
		return nil, err
	}
	pl, err := s.plan(ctx, &prepared{stmt: q, text: p.text, fixed: true}, nil)
	if err != nil {
		return nil, err
	}
	r, err := s.execute(life, pl, nil, selectTag)
	if err != nil {
		return nil, err
	}
	defer r.close()
	w, err := stream.CopyOut(ctx, false, len(pl.cols))
	if err != nil {
		return nil, err
	}
	enc := &copyEncoder{f: f, cols: pl.cols, s: s}
	if f.header {
		if _, err := w.Write(enc.head()); err != nil {
			return nil, err
		}
	}
	var rows int64
	for {
		b, err := r.src.Next(ctx)
		if err != nil {
			return nil, err
		}
		if b == nil {
			break
		}
		if err := enc.batch(b, func(row []byte) error {
			rows++
			_, err := w.Write(row)
			return err
		}); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return &running{tag: fixedTag(fmt.Sprintf("COPY %d", rows))}, nil
}

// copyQuery is the query of COPY (query) TO, or one that reads the columns of
// the table.
func (s *Session) copyQuery(ctx context.Context, st *ast.Copy) (*ast.Query, error) {
	if st.Query != nil {
		q, ok := st.Query.(*ast.Query)
		if !ok {
			return nil, pgerr.New(pgerr.FeatureNotSupported, "COPY of %s is not supported yet", commandName(st.Query))
		}
		return q, nil
	}
	rel, err := s.newResolver().Relation(ctx, st.Table, resolveDefaults(s))
	if err != nil {
		return nil, err
	}
	if rel.Kind() == 'v' && rel.Schema() != "pg_catalog" && rel.Schema() != "information_schema" {
		return nil, pgerr.New(pgerr.WrongObjectType, "cannot copy from view %q", rel.Name()).WithHint("Try the COPY (SELECT ...) TO variant.")
	}
	sel := &ast.Select{From: []ast.TableRef{&ast.TableName{Name: st.Table}}}
	if len(st.Columns) == 0 {
		sel.Targets = []*ast.Target{{Expr: &ast.ColumnRef{Star: true}}}
	}
	have := map[string]bool{}
	for _, c := range rel.Columns() {
		have[c.Name] = true
	}
	for _, c := range st.Columns {
		if !have[c.Name] {
			return nil, pgerr.New(pgerr.UndefinedColumn, "column %q of relation %q does not exist", c.Name, rel.Name())
		}
		sel.Targets = append(sel.Targets, &ast.Target{Expr: &ast.ColumnRef{Parts: ast.Name{c}}})
	}
	return &ast.Query{Body: sel}, nil
}

// copyEncoder writes rows in text or CSV.
type copyEncoder struct {
	f    *copyFormat
	cols []Column
	s    *Session
	line []byte
	buf  []byte
}

func (e *copyEncoder) head() []byte {
	e.line = e.line[:0]
	for i, c := range e.cols {
		if i > 0 {
			e.line = append(e.line, e.f.delim)
		}
		if e.f.csv {
			e.csv([]byte(c.Name), false)
		} else {
			e.text([]byte(c.Name))
		}
	}
	return append(e.line, '\n')
}

func (e *copyEncoder) batch(b *vec.Batch, write func([]byte) error) error {
	fs := make([]func([]byte, int) []byte, len(b.Cols))
	for i, a := range b.Cols {
		t := e.cols[i].Type
		fs[i] = pgtext.Appender(t, a, e.s.TextStyle())
		switch t.Kind {
		case types.RegClass, types.RegProc, types.RegType, types.RegNamespace, types.RegRole, types.RegOper:
			plain, v := fs[i], vec.ViewOf[int64](a).V
			fs[i] = func(dst []byte, row int) []byte {
				if n, ok := e.s.OIDName(t.Kind, v[row]); ok {
					return append(dst, n...)
				}
				return plain(dst, row)
			}
		}
	}
	for k := range b.Size() {
		row := k
		if b.Sel != nil {
			row = int(b.Sel[k])
		}
		e.line = e.line[:0]
		for i, a := range b.Cols {
			if i > 0 {
				e.line = append(e.line, e.f.delim)
			}
			if a.IsNull(row) {
				e.line = append(e.line, e.f.null...)
				continue
			}
			e.buf = fs[i](e.buf[:0], row)
			if e.f.csv {
				e.csv(e.buf, e.f.forceAll || e.f.force[e.cols[i].Name])
			} else {
				e.text(e.buf)
			}
		}
		e.line = append(e.line, '\n')
		if err := write(e.line); err != nil {
			return err
		}
	}
	return nil
}

func (e *copyEncoder) text(v []byte) {
	for _, c := range v {
		switch c {
		case '\\':
			e.line = append(e.line, '\\', '\\')
		case '\b':
			e.line = append(e.line, '\\', 'b')
		case '\f':
			e.line = append(e.line, '\\', 'f')
		case '\n':
			e.line = append(e.line, '\\', 'n')
		case '\r':
			e.line = append(e.line, '\\', 'r')
		case '\t':
			e.line = append(e.line, '\\', 't')
		case '\v':
			e.line = append(e.line, '\\', 'v')
		default:
			if c == e.f.delim {
				e.line = append(e.line, '\\')
			}
			e.line = append(e.line, c)
		}
	}
}

func (e *copyEncoder) csv(v []byte, force bool) {
	special := string([]byte{e.f.delim, e.f.quote, '\n', '\r'})
	if !force && string(v) != e.f.null && !bytes.ContainsAny(v, special) && !(len(e.cols) == 1 && string(v) == `\.`) {
		e.line = append(e.line, v...)
		return
	}
	e.line = append(e.line, e.f.quote)
	for _, c := range v {
		if c == e.f.quote || c == e.f.escape {
			e.line = append(e.line, e.f.escape)
		}
		e.line = append(e.line, c)
	}
	e.line = append(e.line, e.f.quote)
}
