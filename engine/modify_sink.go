package engine

import (
	"context"
	"slices"

	"github.com/paimon-sql/paimon-sql/index/dv"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// rowSink takes a statement's rows in stored form. A few stay in memory, for the
// commit queue; when they become many, or rows of files must go, it opens a
// Writer.
type rowSink struct {
	m     *modifier
	parts []rowsPart
	size  int64
	rows  int64
	w     table.Writer
}

// Rows that a statement may keep in memory: more than that is worth files of its
// own.
const (
	maxSinkBytes = 1 << 20
	maxSinkRows  = 10_000
)

// add takes rows; kinds per row, nil = all inserts.
func (k *rowSink) add(ctx context.Context, b *vec.Batch, kinds []uint8) error {
	if b.Size() == 0 {
		return nil
	}
	p := rowsPart{b, kinds}
	if k.w == nil {
		n := p.bytes()
		if k.size+n <= maxSinkBytes && k.rows+int64(b.Size()) <= maxSinkRows {
			k.parts = append(k.parts, p)
			k.size += n
			k.rows += int64(b.Size())
			return nil
		}
		if err := k.open(ctx); err != nil {
			return err
		}
	}
	return k.w.Write(ctx, p.b, p.kinds)
}

// open opens the writer and gives it what is there.
func (k *rowSink) open(ctx context.Context) error {
	if k.w != nil {
		return nil
	}
	m := k.m
	at := m.rel.At()
	if m.m.Source == nil || !readsExisting(m.s, m.m) { // it may be known from a while ago
		var err error
		if at, err = m.rel.Table().Resolve(ctx, snapshot.Ref{Branch: m.key.branch}); err != nil {
			return err
		}
	}
	o := table.WriteOptions{At: writeAt(at, m.rel.SchemaID()), Account: m.wacc, Overwrite: m.m.Overwrite != nil}
	if ow := m.m.Overwrite; ow != nil {
		o.OverwriteAll = !ow.Dynamic && len(ow.Static) == 0
	}
	if t := m.s.touched(m.key); t != nil {
		// What the transaction wrote before is older.
		if err := m.s.flush(ctx, t); err != nil {
			return err
		}
		o.Overlay = t.overlay()
	}
	if f := m.s.eng.beforeWrite; f != nil {
		if err := f(ctx, m.key, m.rel.Table()); err != nil {
			return err
		}
	}
	w, err := m.rel.Table().Write(ctx, o)
	if err != nil {
		return err
	}
	k.w = w
	for _, p := range k.parts {
		if err := w.Write(ctx, p.b, p.kinds); err != nil {
			return err
		}
	}
	k.parts, k.size, k.rows = nil, 0, 0
	return nil
}

// finish makes what was written part of the transaction.
func (k *rowSink) finish(ctx context.Context) error {
	m := k.m
	if len(m.files) > 0 || m.m.Overwrite != nil {
		if err := k.open(ctx); err != nil {
			return err
		}
	}
	names := make([]string, 0, len(m.files))
	for f := range m.files {
		names = append(names, f)
	}
	slices.Sort(names)
	for _, f := range names {
		if err := k.takeOut(ctx, f, m.files[f]); err != nil {
			return err
		}
	}
	reads := m.readSet()
	if k.w == nil && len(k.parts) == 0 && reads == nil {
		return nil
	}
	var c commit.Changes
	if k.w != nil {
		var err error
		if c, err = k.w.Prepare(ctx); err != nil {
			return err
		}
		if o := m.m.Overwrite; o != nil {
			own := c.Overwrite
			if c.Overwrite, err = m.replacement(ctx, o); err != nil {
				k.w = nil
				return discardAnd(ctx, m.rel.Table(), c, err)
			}
			if c.Overwrite.Dynamic && own != nil {
				c.Overwrite = own
			}
			c.Kind = commit.Overwrite
		}
	}
	if reads != nil {
		if err := m.unchanged(ctx); err != nil {
			if k.w != nil {
				k.w = nil
				return discardAnd(ctx, m.rel.Table(), c, err)
			}
			return err
		}
	}
	t := m.s.touch(m.rel)
	if t.schemaID != m.rel.SchemaID() {
		if err := m.s.flush(ctx, t); err != nil {
			return err
		}
		t.schemaID, t.store = m.rel.SchemaID(), m.rel.Table()
	}
	if reads != nil {
		t.reads = unionReads(t.reads, reads)
	}
	t.pk = m.pk
	if k.w != nil {
		k.w = nil
		c.Reads = nil // kept in t.reads
		t.made(c)
		t.lay(c)
		return nil
	}
	t.pending = append(t.pending, k.parts...)
	t.size += k.size
	t.rows += k.rows
	if t.size > maxPendingBytes || t.rows > maxPendingRows {
		return m.s.flush(ctx, t)
	}
	return nil
}

// takeOut tells the writer which rows of a file go, some at a time.
func (k *rowSink) takeOut(ctx context.Context, file string, rows *dv.Vector) (err error) {
	part := make([]int64, 0, min(rows.Cardinality(), vec.MaxRows))
	rows.Each(func(pos int64) bool {
		if part = append(part, pos); len(part) == cap(part) {
			err = k.w.Delete(ctx, file, part)
			part = part[:0]
		}
		return err == nil
	})
	if err == nil && len(part) > 0 {
		err = k.w.Delete(ctx, file, part)
	}
	return err
}

// discardAnd deletes files that will not be committed and returns err.
func discardAnd(ctx context.Context, store table.Table, c commit.Changes, err error) error {
	_ = store.Discard(context.WithoutCancel(ctx), c) // what stays is an orphan
	return err
}

// abort deletes what was written.
func (k *rowSink) abort() {
	if k.w != nil {
		_ = k.w.Abort(context.WithoutCancel(k.m.s.ctx)) // what stays is an orphan
		k.w = nil
	}
}
