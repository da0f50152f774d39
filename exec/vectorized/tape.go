package vectorized

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// tapeMemory is how much of a tape stays in memory, at most half of work_mem; what
// follows goes to a file.
const tapeMemory = 8 << 20

// Tape keeps the rows of a cursor that moves backward or outlives its transaction.
// Memory is charged to an account of the process; rows beyond a part of work_mem go
// to a temporary file without a name. It belongs to its session's goroutine.
type Tape struct {
	acc    *mem.Account
	memory int64 // bytes that may stay in memory
	dir    func() (string, error)

	base   int64 // number of the row before the first that is kept
	rows   int64 // number of the last row
	parts  []tapePart
	held   int64 // bytes charged
	schema types.Schema
	file   *os.File // nil: nothing was written
	size   int64    // of file
	// last is the part that was read last: a cursor stays near.
	last   *vec.Batch
	lastAt int
}

// tapePart is a stretch of rows, in memory or in the file.
type tapePart struct {
	first int64      // number of its first row, from 1
	batch *vec.Batch // nil: in the file
	n     int
	off   int64 // in the file
	len   int64 // bytes, there or in memory
}

// NewTape returns an empty tape whose first row has the number base+1. It owns acc and
// keeps at most half of its limit work in memory; dir says where its file goes.
func NewTape(acc *mem.Account, work int64, dir func() (string, error), base int64) *Tape {
	return &Tape{acc: acc, memory: min(work/2, tapeMemory), dir: dir, base: base, rows: base, lastAt: -1}
}

// Rows returns the number of the last row.
func (t *Tape) Rows() int64 { return t.rows }

// Held returns how many bytes of rows are in memory.
func (t *Tape) Held() int64 { return t.held }

// Add appends the live rows of a batch.
func (t *Tape) Add(b *vec.Batch) error {
	if b.Size() == 0 {
		return nil
	}
	b = plainBatch(vec.Compact(b))
	if t.schema == nil {
		t.schema = b.Schema
	}
	var bytes int64
	for _, c := range b.Cols {
		bytes += vec.Size(c)
	}
	p := tapePart{first: t.rows + 1, n: b.Size()}
	if t.held+bytes <= t.memory && t.acc.Grow(bytes) == nil {
		t.held += bytes
		p.batch, p.len = b, bytes
	} else if err := t.write(b, &p); err != nil {
		return err
	}
	t.parts = append(t.parts, p)
	t.rows += int64(p.n)
	return nil
}

// plainBatch has no dictionaries at its top: one may be larger than the rows.
func plainBatch(b *vec.Batch) *vec.Batch {
	out := &vec.Batch{Schema: b.Schema, N: b.N, Cols: make([]arrow.Array, len(b.Cols))}
	for i, c := range b.Cols {
		out.Cols[i] = vec.Decode(c)
	}
	return out
}

// Trim forgets rows up to a number, as far as whole parts are made of them.
func (t *Tape) Trim(upTo int64) {
	n := 0
	for n < len(t.parts) && t.parts[n].first+int64(t.parts[n].n)-1 <= upTo {
		if p := &t.parts[n]; p.batch != nil {
			t.held -= p.len
			t.acc.Shrink(p.len)
		}
		n++
	}
	if n > 0 {
		t.base = t.parts[n-1].first + int64(t.parts[n-1].n) - 1
		t.parts = append([]tapePart(nil), t.parts[n:]...)
		t.last, t.lastAt = nil, -1
	}
}

// write puts a batch into the file as a stream of its own, so that it can be read
// alone.
func (t *Tape) write(b *vec.Batch, p *tapePart) error {
	if t.file == nil {
		dir, err := t.dir()
		if err != nil {
			return err
		}
		if t.file, err = os.CreateTemp(dir, "cursor-"); err != nil {
			return fmt.Errorf("temporary file: %w", err)
		}
		_ = os.Remove(t.file.Name()) // where that fails it goes with its directory
	}
	fields := make([]arrow.Field, len(b.Cols))
	cols := make([]arrow.Array, len(b.Cols))
	for i, c := range b.Cols {
		cols[i] = c
		fields[i] = arrow.Field{Name: strconv.Itoa(i), Type: cols[i].DataType(), Nullable: true}
	}
	var buf bytes.Buffer
	schema := arrow.NewSchema(fields, nil)
	w := ipc.NewWriter(&buf, ipc.WithSchema(schema), ipc.WithLZ4())
	if err := errors.Join(w.Write(array.NewRecord(schema, cols, int64(b.N))), w.Close()); err != nil {
		return fmt.Errorf("temporary file: %w", err)
	}
	if _, err := t.file.WriteAt(buf.Bytes(), t.size); err != nil {
		return fmt.Errorf("temporary file: %w", err)
	}
	p.off, p.len = t.size, int64(buf.Len())
	t.size += p.len
	return nil
}

// part returns the i-th part's rows.
func (t *Tape) part(i int) (*vec.Batch, error) {
	p := &t.parts[i]
	if p.batch != nil {
		return p.batch, nil
	}
	if t.lastAt == i {
		return t.last, nil
	}
	r, err := ipc.NewReader(io.NewSectionReader(t.file, p.off, p.len))
	if err != nil {
		return nil, fmt.Errorf("temporary file: %w", err)
	}
	defer r.Release()
	if !r.Next() {
		return nil, fmt.Errorf("temporary file: rows are missing: %w", errors.Join(r.Err(), io.ErrUnexpectedEOF))
	}
	rec := r.Record()
	rec.Retain() // the arrays outlive the reader
	b := &vec.Batch{Schema: t.schema, N: p.n, Cols: rec.Columns()}
	t.last, t.lastAt = b, i
	return b, nil
}

// Read returns rows from the number from on, as many as one part has of them, at
// most n.
func (t *Tape) Read(from int64, n int) (*vec.Batch, error) {
	i := sort.Search(len(t.parts), func(i int) bool { return t.parts[i].first > from }) - 1
	if i < 0 || from > t.rows {
		return nil, nil
	}
	b, err := t.part(i)
	if err != nil {
		return nil, err
	}
	off := int(from - t.parts[i].first)
	return vec.Part(b, off, min(n, t.parts[i].n-off)), nil
}

// Back returns the row of number n and those before it in reverse order, as many as
// one part has of them, at most count.
func (t *Tape) Back(n int64, count int) (*vec.Batch, error) {
	i := sort.Search(len(t.parts), func(i int) bool { return t.parts[i].first > n }) - 1
	if i < 0 || n > t.rows {
		return nil, nil
	}
	b, err := t.part(i)
	if err != nil {
		return nil, err
	}
	off := int(n - t.parts[i].first)
	idx := make([]uint32, min(count, off+1))
	for k := range idx {
		idx[k] = uint32(off - k)
	}
	out := &vec.Batch{Schema: b.Schema, N: len(idx), Cols: make([]arrow.Array, len(b.Cols))}
	for k, c := range b.Cols {
		out.Cols[k] = vec.Take(c, idx)
	}
	return out, nil
}

// Close frees what the tape keeps.
func (t *Tape) Close() {
	if t == nil {
		return
	}
	if t.file != nil {
		_ = t.file.Close()
		t.file = nil
	}
	t.parts, t.last = nil, nil
	t.acc.Close()
}
