package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"

	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// spillFile is a temporary file. Its name is gone as soon as it is open, where the
// system allows that, so that nothing is left of it whatever happens; elsewhere it
// goes with its directory.
type spillFile struct {
	f    *os.File
	size int64
}

func newSpillFile(dir func() (string, error)) (*spillFile, error) {
	at := ""
	if dir != nil {
		var err error
		if at, err = dir(); err != nil {
			return nil, err
		}
	}
	f, err := os.CreateTemp(at, "sort-")
	if err != nil {
		return nil, fmt.Errorf("temporary file: %w", err)
	}
	_ = os.Remove(f.Name()) // close tries again
	return &spillFile{f: f}, nil
}

func (s *spillFile) Write(b []byte) (int, error) {
	n, err := s.f.Write(b)
	s.size += int64(n)
	return n, err
}

func (s *spillFile) close() {
	_ = s.f.Close()
	_ = os.Remove(s.f.Name()) // gone already, as a rule
}

// runWriter writes a sorted run: an Arrow stream of the columns and of the keys.
type runWriter struct {
	file   *spillFile
	buf    *bufio.Writer
	schema *arrow.Schema
	w      *ipc.Writer
}

// write appends a chunk. Columns are made plain: a dictionary would be written
// whole with every chunk.
func (r *runWriter) write(cols []arrow.Array, keys *Keys) error {
	out := make([]arrow.Array, 0, len(cols)+1)
	for _, a := range cols {
		out = append(out, plain(a))
	}
	out = append(out, vec.MakeBytes(arrow.BinaryTypes.Binary, keys.Off, keys.Data, nil))
	if r.w == nil {
		fs := make([]arrow.Field, len(out))
		for i, a := range out {
			fs[i] = arrow.Field{Name: strconv.Itoa(i), Type: a.DataType(), Nullable: true}
		}
		r.schema = arrow.NewSchema(fs, nil)
		r.buf = bufio.NewWriterSize(r.file, 256<<10)
		r.w = ipc.NewWriter(r.buf, ipc.WithSchema(r.schema), ipc.WithLZ4())
	}
	rec := array.NewRecord(r.schema, out, int64(keys.Len()))
	if err := r.w.Write(rec); err != nil {
		return fmt.Errorf("temporary file: %w", err)
	}
	return nil
}

func (r *runWriter) close() error {
	if r.w == nil {
		return nil
	}
	if err := errors.Join(r.w.Close(), r.buf.Flush()); err != nil {
		return fmt.Errorf("temporary file: %w", err)
	}
	return nil
}

// plain returns a column without dictionaries at any depth.
func plain(a arrow.Array) arrow.Array {
	a = vec.Decode(a)
	switch t := a.DataType().(type) {
	case *arrow.StructType:
		s := a.(*array.Struct)
		ch := make([]arrow.Array, s.NumField())
		fs := t.Fields()
		same := true
		for i := range ch {
			ch[i] = plain(s.Field(i))
			same = same && ch[i] == s.Field(i)
			fs[i].Type = ch[i].DataType()
		}
		if same {
			return a
		}
		return vec.MakeStruct(arrow.StructOf(fs...), a.Len(), ch, vec.ValidCopy(a))
	case *arrow.ListType:
		offs, child := vec.ListParts(a)
		c := plain(child)
		if c == child {
			return a
		}
		return vec.MakeList(arrow.ListOf(c.DataType()), offs, c, vec.ValidCopy(a))
	case *arrow.MapType:
		offs, child := vec.ListParts(a)
		c := plain(child)
		if c == child {
			return a
		}
		st := c.DataType().(*arrow.StructType)
		return vec.MakeList(arrow.MapOf(st.Field(0).Type, st.Field(1).Type), offs, c, vec.ValidCopy(a))
	}
	return a
}

// chunk is a stretch of a sorted run in memory.
type chunk struct {
	cols []arrow.Array
	keys Keys
}

// runReader reads a run chunk by chunk.
type runReader struct {
	file *spillFile
	r    *ipc.Reader
}

// next returns the next chunk, nil at the end.
func (r *runReader) next() (*chunk, error) {
	if r.r == nil {
		if r.file.size == 0 {
			return nil, nil
		}
		var err error
		in := bufio.NewReaderSize(io.NewSectionReader(r.file.f, 0, r.file.size), 128<<10)
		if r.r, err = ipc.NewReader(in); err != nil {
			return nil, fmt.Errorf("temporary file: %w", err)
		}
	}
	if !r.r.Next() {
		if err := r.r.Err(); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("temporary file: %w", err)
		}
		return nil, nil
	}
	rec := r.r.Record()
	rec.Retain() // the arrays outlive the reader's next step
	n := int(rec.NumCols()) - 1
	c := &chunk{cols: make([]arrow.Array, n)}
	for i := range n {
		c.cols[i] = rec.Column(i)
	}
	s := vec.ViewStr(rec.Column(n))
	c.keys = Keys{Off: s.Offs, Data: s.Data}
	return c, nil
}
