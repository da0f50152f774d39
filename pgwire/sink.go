package pgwire

import (
	"context"
	"encoding/binary"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// sink turns what a statement yields into messages. It is engine.ResultSink for
// every statement of a connection, one after the other.
type sink struct {
	c       *conn
	cols    []engine.Column
	formats []int16 // one per column; nil = text
	style   *pgtext.Style
	enc     encoder
	empty   bool // Empty was called
}

var _ engine.ResultSink = (*sink)(nil)

// simple prepares for a simple query: columns come with each statement, in text.
func (s *sink) simple() { s.cols, s.formats, s.empty = nil, nil, false }

// portal prepares for a portal, whose columns the client knows already.
func (s *sink) portal(cols []engine.Column, formats []int16) {
	s.cols, s.formats, s.empty = cols, formats, false
	s.style = s.c.styles.get(s.c.sess)
}

// Columns implements engine.ResultSink.
func (s *sink) Columns(cols []engine.Column) error { return s.ColumnsIn(cols, nil) }

// ColumnsIn implements engine.FormatSink.
func (s *sink) ColumnsIn(cols []engine.Column, formats []int16) error {
	s.cols, s.formats = cols, formats
	s.style = s.c.styles.get(s.c.sess)
	s.c.out.rowDescription(cols, formats)
	return s.c.out.err
}

// Batch implements engine.ResultSink.
func (s *sink) Batch(ctx context.Context, b *vec.Batch) error {
	return s.enc.encode(ctx, &s.c.out, b, s)
}

// Complete implements engine.ResultSink.
func (s *sink) Complete(tag string) error {
	s.c.out.commandComplete(tag)
	return s.c.out.err
}

// Empty implements engine.ResultSink.
func (s *sink) Empty() error {
	s.empty = true
	s.c.out.simple('I')
	return s.c.out.err
}

// Notice implements engine.ResultSink.
func (s *sink) Notice(e *pgerr.Error) {
	s.c.out.appendError('N', e)
	s.c.out.flush() //nolint:errcheck // kept in the writer
}

// ParameterStatus implements engine.ResultSink. PostgreSQL reports a changed
// setting once, just before ReadyForQuery, with the value it then has.
func (s *sink) ParameterStatus(name, value string) {
	if name == "client_encoding" {
		s.c.encodeAs(value)
	}
	for i := range s.c.pending {
		if s.c.pending[i].name == name {
			s.c.pending[i].value = value
			return
		}
	}
	s.c.pending = append(s.c.pending, status{name, value})
}

func (w *writer) commandComplete(tag string) {
	pos := w.begin('C')
	w.buf = append(append(w.buf, tag...), 0)
	w.finish(pos)
}

// rowDescription describes columns; formats nil is text for all.
func (w *writer) rowDescription(cols []engine.Column, formats []int16) {
	pos := w.begin('T')
	w.buf = binary.BigEndian.AppendUint16(w.buf, uint16(len(cols)))
	for i := range cols {
		c := &cols[i]
		t := wireType(c.Type)
		info := t.Info()
		w.text(c.Name)
		w.buf = binary.BigEndian.AppendUint32(w.buf, c.TableOID)
		w.buf = binary.BigEndian.AppendUint16(w.buf, uint16(c.AttNum))
		w.buf = binary.BigEndian.AppendUint32(w.buf, info.OID)
		w.buf = binary.BigEndian.AppendUint16(w.buf, uint16(info.Len))
		w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(t.PGTypmod()))
		w.buf = binary.BigEndian.AppendUint16(w.buf, uint16(formatOf(formats, i)))
	}
	w.finish(pos)
}

// wireType is the type that a client is told: an undetermined one is text.
func wireType(t types.Type) types.Type {
	if t.Kind == types.Unknown {
		return types.Of(types.Text)
	}
	return t
}

func formatOf(formats []int16, i int) int16 {
	if i < len(formats) {
		return formats[i]
	}
	return 0
}
