package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/pgcopy"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/sql/planner"
)

// copyAhead is how many batches COPY FROM decodes before they are written.
const copyAhead = 2

// runCopyIn is COPY FROM. A goroutine decodes the client's data while this one
// writes; what was written is part of the transaction only when the data has
// ended well.
func (s *Session) runCopyIn(ctx context.Context, p *prepared, st *ast.Copy, o *pgcopy.Options, out ResultSink) (*running, error) {
	if st.Program {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "COPY FROM PROGRAM is not supported")
	}
	if r := s.rights(ctx); !st.Std && !r.super && !r.has[roles.ReadFiles] {
		return nil, pgerr.New(pgerr.InsufficientPrivilege, "must be superuser or have privileges of the pg_read_server_files role to COPY from a file").
			WithHint("Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone.")
	}
	if v, _ := s.eng.Setting("paimon.server_files"); !st.Std && v != "on" {
		return nil, pgerr.New(pgerr.InsufficientPrivilege, "COPY from files of the server is turned off").
			WithHint("COPY FROM STDIN and psql's \\copy read files of the client. The setting \"paimon.server_files\" turns it on.")
	}
	stream, ok := out.(CopySink)
	if st.Std && !ok {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "COPY FROM STDIN needs a client that sends a stream")
	}
	pm, err := planner.PlanCopyFrom(ctx, st.Table, st.Columns, st.Where, p.text, s.planOptions())
	if err != nil {
		var pe *pgerr.Error
		if errors.As(err, &pe) && pe.Code == pgerr.UndefinedTable {
			return nil, pe.WithPosition(0) // PostgreSQL does not point at it here
		}
		return nil, err
	}
	if err := s.rights(ctx).grants(pm.Needs); err != nil {
		return nil, err
	}
	in := pm.Modify.In
	var all, chosen []string
	for _, c := range pm.Modify.Target.Columns() {
		all = append(all, c.Name)
	}
	for _, f := range in {
		chosen = append(chosen, f.Name)
	}
	if err := copyForced(o, pm.Modify.Target.Name(), all, chosen); err != nil {
		return nil, err
	}
	var data io.Reader
	if !st.Std {
		f, err := openCopyFile(st.File)
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // it was only read
		data = f
	}
	s.tx.queried = true
	m, err := s.newModifier(ctx, pm, nil)
	if err != nil {
		return nil, err
	}
	defer m.close()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if st.Std {
		if data, err = stream.CopyIn(ctx, o.Format == pgcopy.Binary, len(in)); err != nil {
			return nil, err
		}
	}
	acc := s.eng.root.Child("max_memory", 0)
	defer acc.Close()
	progress := &copyProgress{oid: pm.Modify.Target.OID(), from: true, typ: "PIPE"}
	if f, ok := data.(*os.File); ok {
		progress.typ = "FILE"
		if st, err := f.Stat(); err == nil {
			progress.total = st.Size()
		}
	}
	data = countingReader{data, &progress.bytes}
	s.copying.Store(progress)
	defer s.copying.Store(nil)
	r := &copyReader{s: s, progress: progress, m: m, acc: acc, style: s.TextStyle(), relation: pm.Modify.Target.Name(), batches: make(chan copyBatch, copyAhead)}
	dec := pgcopy.NewDecoder(data, pgcopy.Config{
		Options: o, Relation: r.relation, Columns: in, Style: r.style, MaxLine: s.set.use().copyMaxLine, Account: acc,
	})
	defer dec.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.decode(ctx, dec)
	}()
	n, err := r.write(ctx)
	if err != nil {
		// The reader waits for the client or for us: neither is coming.
		cancel(err)
	}
	<-done
	if err != nil {
		return nil, err
	}
	s.eng.counts.changed(pm.Modify.Target.OID(), plan.InsertOp, n)
	s.tx.writes++
	s.tx.redo = nil // the client's data cannot be had again
	return &running{tag: fixedTag(fmt.Sprintf("COPY %d", n))}, nil
}

// copyBatch is what the decoder hands over; the last one has an error or nothing.
type copyBatch struct {
	rows *pgcopy.Rows
	size int64
	err  error
}

// copyReader joins the two halves of a COPY FROM.
type copyReader struct {
	s        *Session
	m        *modifier
	acc      *mem.Account
	style    *pgtext.Style
	relation string
	progress *copyProgress
	batches  chan copyBatch
}

// decode runs beside write until the data ends, is bad, or ctx ends.
func (r *copyReader) decode(ctx context.Context, dec *pgcopy.Decoder) {
	send := func(b copyBatch) bool {
		select {
		case r.batches <- b:
			return b.rows != nil
		case <-ctx.Done():
			return false
		}
	}
	defer func() {
		if p := recover(); p != nil {
			send(copyBatch{err: r.s.eng.panicked(p, stack())})
		}
	}()
	for {
		rows, err := dec.Next()
		b := copyBatch{rows: rows, err: err}
		if rows != nil {
			b.size = rowsPart{b: rows.Batch}.bytes()
			if err := r.acc.Grow(b.size); err != nil {
				b = copyBatch{err: err}
			}
		}
		if !send(b) {
			return
		}
	}
}

// write gives the batches to the modifier.
func (r *copyReader) write(ctx context.Context) (int64, error) {
	for {
		var b copyBatch
		select {
		case b = <-r.batches:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
		if b.err != nil {
			return 0, b.err
		}
		if b.rows == nil {
			n, err := r.m.finish(ctx)
			if errors.Is(err, errReadAgain) {
				err = errSerialize("")
			}
			return n, err
		}
		r.m.badRow = -1
		_, err := r.m.rows(ctx, b.rows.Batch)
		if errors.Is(err, errReadAgain) {
			err = errSerialize("")
		}
		if err != nil {
			return 0, r.where(err, b.rows)
		}
		r.acc.Shrink(b.size)
		r.progress.rows.Add(int64(b.rows.Batch.Size()))
	}
}

// where adds the line that a constraint refused.
func (r *copyReader) where(err error, rows *pgcopy.Rows) error {
	var pe *pgerr.Error
	i := r.m.badRow
	if i >= 0 && i < len(r.m.passed) {
		i = int(r.m.passed[i])
	}
	if i < 0 || i >= rows.N || !errors.As(err, &pe) || pe.Context != "" {
		return err
	}
	c := *pe
	c.Context = fmt.Sprintf("COPY %s, line %d: \"%s\"", r.relation, rows.Line(i), pgcopy.Line(rows.Batch, i, r.style))
	return &c
}

// openCopyFile opens a file of the server for COPY FROM 'file'.
func openCopyFile(name string) (*os.File, error) {
	f, err := os.Open(name)
	if err != nil {
		code := pgerr.IOError
		var errno syscall.Errno
		text := err.Error()
		if errors.As(err, &errno) {
			text = upperFirst(errno.Error())
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			code = pgerr.UndefinedFile
		case errors.Is(err, fs.ErrPermission):
			code = pgerr.InsufficientPrivilege
		}
		return nil, pgerr.New(code, "could not open file \"%s\" for reading: %s", name, text).
			WithHint("COPY FROM instructs the PostgreSQL server process to read a file. You may want a client-side facility such as psql's \\copy.")
	}
	if st, err := f.Stat(); err == nil && st.IsDir() {
		f.Close() //nolint:errcheck // it was only looked at
		return nil, pgerr.New(pgerr.WrongObjectType, "\"%s\" is a directory", name)
	}
	return f, nil
}
