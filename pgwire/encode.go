package pgwire

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"strconv"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/charset"
	"github.com/paimon-sql/paimon-sql/internal/pgbin"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// maxRow bounds one DataRow, whose length is an int32 for every client.
const maxRow = 1<<30 - 1

// colOp says how a column's values are written; the commonest are written in the
// row loop itself, the others by a function.
type colOp uint8

const (
	opFunc  colOp = iota // call app
	opBytes              // bytes of a String or Binary array, as they are
	opDict               // the same, through a dictionary
	opInt32              // binary int4
	opInt64              // binary int8
	opNull               // NULL for every row
	opEmpty              // void: a value of no bytes
)

// column is one column of one batch, ready to be written. The types are looked
// at once, when it is made; a row then costs a bitmap test and one branch.
type column struct {
	op    colOp
	valid []byte // nil = no NULLs
	off   int    // bit of row 0
	str   vec.StrView
	idx   []int32
	i32   []int32
	i64   []int64
	app   func(dst []byte, row int) []byte
}

// encoder writes batches as DataRow messages:
//
//	'D' | int32 length | int16 columns | per column: int32 length (-1 = NULL), bytes
//
// Rows go to one buffer, which is sent whenever it exceeds flushAt: that call
// blocks while the client does not read.
type encoder struct {
	cols []column
	bin  pgbin.Encoder // of binary columns
	err  error         // of a row that cannot be sent

	// set is the client's encoding, nil = UTF-8; text says for each column what of its
	// values is text, row is scratch.
	set  *charset.Set
	text []textPart
	tmp  []byte
	// start is where the last row began in the buffer.
	start int
}

func (e *encoder) encode(ctx context.Context, w *writer, b *vec.Batch, s *sink) error {
	if len(b.Cols) < len(s.cols) {
		return pgerr.New(pgerr.InternalError, "batch has %d columns where %d were announced", len(b.Cols), len(s.cols))
	}
	n := len(s.cols)
	e.err, e.bin.Err = nil, nil
	e.cols = e.cols[:0]
	e.set, e.text = w.set, e.text[:0]
	for i := range n {
		c, err := e.column(s.cols[i].Type, b.Cols[i], formatOf(s.formats, i), s, b.Sel)
		if err != nil {
			return err
		}
		e.cols = append(e.cols, c)
		if e.set != nil {
			part := textAll
			if formatOf(s.formats, i) == 1 {
				if part = textIn(s.cols[i].Type); part == textInside {
					return errInside(s.cols[i].Type, e.set.Name)
				}
			}
			e.text = append(e.text, part)
		}
	}
	if w.err != nil {
		return w.err
	}
	size := b.Size()
	for k := 0; k < size; {
		// One stretch up to the next flush, without looking at anything else.
		var end int
		if b.Sel != nil {
			end = e.rowsSel(w, b.Sel, k)
		} else {
			end = e.rows(w, k, size)
		}
		if err := cmp.Or(e.err, e.bin.Err); err != nil {
			return err
		}
		k = end
		if len(w.buf) >= flushAt {
			if err := w.flushContext(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// rows writes rows from k on and returns the first that it did not write.
func (e *encoder) rows(w *writer, k, n int) int {
	buf := w.buf
	for ; k < n && len(buf) < flushAt; k++ {
		buf = e.row(buf, k)
		if e.set != nil && e.recode(&buf) {
			break
		}
	}
	w.buf = buf
	return k
}

func (e *encoder) rowsSel(w *writer, sel []uint16, k int) int {
	buf := w.buf
	for ; k < len(sel) && len(buf) < flushAt; k++ {
		buf = e.row(buf, int(sel[k]))
		if e.set != nil && e.recode(&buf) {
			break
		}
	}
	w.buf = buf
	return k
}

func (e *encoder) row(buf []byte, i int) []byte {
	start := len(buf)
	e.start = start
	buf = append(buf, 'D', 0, 0, 0, 0, byte(len(e.cols)>>8), byte(len(e.cols)))
	for k := range e.cols {
		c := &e.cols[k]
		if c.valid != nil {
			if p := i + c.off; c.valid[p>>3]&(1<<(p&7)) == 0 {
				buf = append(buf, 0xff, 0xff, 0xff, 0xff)
				continue
			}
		}
		switch c.op {
		case opBytes:
			v := c.str.Data[c.str.Offs[i]:c.str.Offs[i+1]]
			buf = binary.BigEndian.AppendUint32(buf, uint32(len(v)))
			buf = append(buf, v...)
		case opDict:
			j := c.idx[i]
			v := c.str.Data[c.str.Offs[j]:c.str.Offs[j+1]]
			buf = binary.BigEndian.AppendUint32(buf, uint32(len(v)))
			buf = append(buf, v...)
		case opInt32:
			x := uint32(c.i32[i])
			buf = append(buf, 0, 0, 0, 4, byte(x>>24), byte(x>>16), byte(x>>8), byte(x))
		case opInt64:
			x := uint64(c.i64[i])
			buf = append(buf, 0, 0, 0, 8, byte(x>>56), byte(x>>48), byte(x>>40), byte(x>>32), byte(x>>24), byte(x>>16), byte(x>>8), byte(x))
		case opNull:
			buf = append(buf, 0xff, 0xff, 0xff, 0xff)
		case opEmpty:
			buf = append(buf, 0, 0, 0, 0)
		default:
			p := len(buf)
			buf = append(buf, 0, 0, 0, 0)
			buf = c.app(buf, i)
			binary.BigEndian.PutUint32(buf[p:], uint32(len(buf)-p-4))
		}
	}
	if len(buf)-start > maxRow {
		buf = buf[:start]
		e.err = pgerr.New(pgerr.ProgramLimitExceeded, "row is larger than %d bytes", maxRow)
		return buf
	}
	binary.BigEndian.PutUint32(buf[start+1:], uint32(len(buf)-start-1))
	return buf
}

// column makes the writer of one column of a batch.
func (e *encoder) column(t types.Type, a arrow.Array, format int16, s *sink, sel []uint16) (column, error) {
	t = wireType(t)
	if t.Kind == types.Void {
		return column{op: opEmpty}, nil
	}
	var c column
	c.valid, c.off = pgbin.Validity(a)
	if a.NullN() == a.Len() { // also arrays of Arrow's null type
		return column{op: opNull}, nil
	}
	plain := isText(t.Kind) || (format == 1 && t.Kind == types.Bytea)
	if plain {
		inner := a
		if d, ok := a.(*array.Dictionary); ok {
			inner = d.Dictionary()
			c.idx = vec.ViewOf[int32](d.Indices()).V
			c.op = opDict
		} else {
			c.op = opBytes
		}
		switch inner.(type) {
		case *array.String, *array.Binary:
		default:
			return c, pgbin.Mismatch(t, a)
		}
		c.str = vec.ViewStr(inner)
		if t.Kind != types.Bytea {
			if err := checkColumn(&c, sel); err != nil {
				return c, err
			}
		}
		if t.Kind == types.Char && format == 1 {
			c.app, c.op = pgbin.CharAppender(c.str, c.idx), opFunc
		}
		return c, nil
	}
	if format == 1 {
		return c, e.binary(&c, t, a, s)
	}
	var err error
	c.app, err = textAppender(t, a, s)
	return c, err
}

// textAppender is pgtext's, with names for the oids that have one.
func textAppender(t types.Type, a arrow.Array, s *sink) (func([]byte, int) []byte, error) {
	if !pgbin.Holds(t, a) {
		return nil, pgbin.Mismatch(t, a)
	}
	app := pgtext.Appender(t, a, s.style)
	switch t.Kind {
	case types.RegClass, types.RegProc, types.RegType, types.RegNamespace, types.RegRole, types.RegOper:
		n, ok := s.c.sess.(OIDNamer)
		if !ok {
			return app, nil
		}
		v, oidName := vec.ViewOf[int64](a).V, n.OIDNames()
		return func(dst []byte, row int) []byte {
			if name, ok := oidName(t.Kind, v[row]); ok {
				return append(dst, name...)
			}
			return app(dst, row)
		}, nil
	case types.Array:
		n, ok := s.c.sess.(OIDNamer)
		if !ok || t.Elem == nil || !t.Elem.IsOIDLike() || t.Elem.Kind == types.OID || t.Elem.Kind == types.XID {
			return app, nil
		}
		oidName := n.OIDNames()
		return func(dst []byte, row int) []byte {
			list, _ := vec.DatumAt(a, t, row).([]types.Datum)
			names := make([]types.Datum, len(list))
			for i, v := range list {
				oid, ok := v.(int64)
				if !ok {
					continue // NULL
				}
				name, ok := oidName(t.Elem.Kind, oid)
				if !ok {
					name = strconv.FormatInt(oid, 10)
				}
				names[i] = name
			}
			return pgtext.AppendDatum(dst, textArray, names, s.style)
		}, nil
	}
	return app, nil
}

var textArray = types.ArrayOf(types.Of(types.Text))

// isText reports whether the text form of a kind is the array's bytes.
func isText(k types.Kind) bool {
	switch k {
	case types.Text, types.Varchar, types.Name, types.Char, types.JSON:
		return true
	}
	return false
}

// checkColumn is 22021 when a live row of a text column holds what no PostgreSQL
// text can: a NUL, or bytes that are not UTF-8. Paimon's strings may hold both.
// The whole column is looked at in one go; only when something is found are the
// live rows looked at one by one.
func checkColumn(c *column, sel []uint16) error {
	offs := c.str.Offs
	if len(offs) < 2 {
		return nil
	}
	all := c.str.Data[offs[0]:offs[len(offs)-1]]
	if utf8.Valid(all) && bytes.IndexByte(all, 0) < 0 {
		return nil
	}
	check := func(i int) error {
		if c.valid != nil {
			if p := i + c.off; c.valid[p>>3]&(1<<(p&7)) == 0 {
				return nil
			}
		}
		if c.op == opDict {
			i = int(c.idx[i])
		}
		return pgtext.CheckUTF8(c.str.At(i))
	}
	n := len(offs) - 1
	if c.op == opDict {
		n = len(c.idx)
	}
	if sel == nil {
		for i := range n {
			if err := check(i); err != nil {
				return err
			}
		}
		return nil
	}
	for _, i := range sel {
		if err := check(int(i)); err != nil {
			return err
		}
	}
	return nil
}
