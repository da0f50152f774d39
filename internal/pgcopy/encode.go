package pgcopy

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/pgbin"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Encoder writes rows in the format of COPY TO. Not safe for concurrent use.
type Encoder struct {
	o     *Options
	cols  types.Schema
	force []bool
	style *pgtext.Style
	// OIDName gives the text of values of the reg* kinds; nil = their numbers.
	OIDName func(k types.Kind, oid int64) (string, bool)

	special [256]bool // text: bytes that are escaped; CSV: that call for quotes
	line    []byte
	buf     []byte
	out     []byte // the line in another encoding
	bin     pgbin.Encoder
}

// NewEncoder makes an Encoder with options from ParseOptions for COPY TO.
func NewEncoder(o *Options, cols types.Schema, style *pgtext.Style) *Encoder {
	e := &Encoder{o: o, cols: cols, style: style, bin: pgbin.Encoder{Style: style}}
	for _, c := range cols {
		e.force = append(e.force, o.ForceQuoteAll || slices.Contains(o.ForceQuote, c.Name))
	}
	set := "\\\b\f\n\r\t\v"
	if o.Format == CSV {
		set = "\r\n" + string([]byte{o.Quote})
	}
	for _, c := range []byte(set) {
		e.special[c] = true
	}
	e.special[o.Delimiter] = true
	return e
}

// Head is what comes before the rows; nil for nothing. It is valid until the next
// call.
func (e *Encoder) Head() ([]byte, error) {
	if e.o.Format == Binary {
		return append([]byte(signature), 0, 0, 0, 0, 0, 0, 0, 0), nil
	}
	if e.o.Header == NoHeader {
		return nil, nil
	}
	e.line = e.line[:0]
	for i, c := range e.cols {
		if i > 0 {
			e.line = append(e.line, e.o.Delimiter)
		}
		if e.o.Format == CSV {
			e.csv([]byte(c.Name), false)
		} else {
			e.text([]byte(c.Name))
		}
	}
	e.line = append(e.line, '\n')
	return e.encoded()
}

// Tail is what comes after the rows.
func (e *Encoder) Tail() []byte {
	if e.o.Format == Binary {
		return []byte{0xff, 0xff}
	}
	return nil
}

// Rows calls write with each live row of b; what it is given is valid during the
// call.
func (e *Encoder) Rows(b *vec.Batch, write func([]byte) error) error {
	if e.o.Format == Binary {
		return e.binaryRows(b, write)
	}
	fs := make([]func([]byte, int) []byte, len(b.Cols))
	for i, a := range b.Cols {
		fs[i] = e.appender(e.cols[i].Type, a)
	}
	for k := range b.Size() {
		row := k
		if b.Sel != nil {
			row = int(b.Sel[k])
		}
		e.line = e.line[:0]
		for i, a := range b.Cols {
			if i > 0 {
				e.line = append(e.line, e.o.Delimiter)
			}
			if a.IsNull(row) {
				e.line = append(e.line, e.o.Null...)
				continue
			}
			e.buf = fs[i](e.buf[:0], row)
			if e.o.Format == CSV {
				e.csv(e.buf, e.force[i])
			} else {
				e.text(e.buf)
			}
		}
		e.line = append(e.line, '\n')
		line, err := e.encoded()
		if err != nil {
			return err
		}
		if err := write(line); err != nil {
			return err
		}
	}
	return nil
}

func (e *Encoder) appender(t types.Type, a arrow.Array) func([]byte, int) []byte {
	plain := pgtext.Appender(t, a, e.style)
	switch t.Kind {
	case types.RegClass, types.RegProc, types.RegType, types.RegNamespace, types.RegRole, types.RegOper:
		if e.OIDName == nil {
			return plain
		}
		v := vec.ViewOf[int64](a).V
		return func(dst []byte, row int) []byte {
			if n, ok := e.OIDName(t.Kind, v[row]); ok {
				return append(dst, n...)
			}
			return plain(dst, row)
		}
	}
	return plain
}

func (e *Encoder) text(v []byte) {
	from := 0
	for i, c := range v {
		if !e.special[c] {
			continue
		}
		e.line = append(append(e.line, v[from:i]...), '\\')
		from = i + 1
		if c == e.o.Delimiter && c != '\t' {
			e.line = append(e.line, c)
			continue
		}
		switch c {
		case '\b':
			c = 'b'
		case '\f':
			c = 'f'
		case '\n':
			c = 'n'
		case '\r':
			c = 'r'
		case '\t':
			c = 't'
		case '\v':
			c = 'v'
		}
		e.line = append(e.line, c)
	}
	e.line = append(e.line, v[from:]...)
}

func (e *Encoder) csv(v []byte, force bool) {
	// \. alone on a line would end the data.
	quoted := force || string(v) == e.o.Null || len(e.cols) == 1 && string(v) == `\.`
	for i := 0; i < len(v) && !quoted; i++ {
		quoted = e.special[v[i]]
	}
	if !quoted {
		e.line = append(e.line, v...)
		return
	}
	e.line = append(e.line, e.o.Quote)
	for _, c := range v {
		if c == e.o.Quote || c == e.o.Escape {
			e.line = append(e.line, e.o.Escape)
		}
		e.line = append(e.line, c)
	}
	e.line = append(e.line, e.o.Quote)
}

// encoded is the line in the encoding asked for.
func (e *Encoder) encoded() ([]byte, error) {
	if e.o.Encoding == UTF8 || plainASCII(e.line) == len(e.line) {
		return e.line, nil
	}
	e.out = e.out[:0]
	for b := e.line; len(b) > 0; {
		r, n := utf8.DecodeRune(b)
		if r > 0xff {
			var s []byte
			for k, c := range b[:n] {
				if k > 0 {
					s = append(s, ' ')
				}
				s = append(append(s, "0x"...), "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
			}
			return nil, pgerr.New(pgerr.UntranslatableCharacter,
				"character with byte sequence %s in encoding \"UTF8\" has no equivalent in encoding \"LATIN1\"", s)
		}
		e.out = append(e.out, byte(r))
		b = b[n:]
	}
	return e.out, nil
}

func (e *Encoder) binaryRows(b *vec.Batch, write func([]byte) error) error {
	be := binary.BigEndian
	fs := make([]func([]byte, int) []byte, len(b.Cols))
	for i, a := range b.Cols {
		if a.NullN() == a.Len() {
			continue // also arrays of Arrow's null type
		}
		var err error
		if fs[i], err = e.bin.Appender(e.cols[i].Type, a); err != nil {
			return err
		}
	}
	for k := range b.Size() {
		row := k
		if b.Sel != nil {
			row = int(b.Sel[k])
		}
		e.line = be.AppendUint16(e.line[:0], uint16(len(b.Cols)))
		for i, a := range b.Cols {
			if fs[i] == nil || a.IsNull(row) {
				e.line = be.AppendUint32(e.line, math.MaxUint32)
				continue
			}
			p := len(e.line)
			e.line = fs[i](be.AppendUint32(e.line, 0), row)
			be.PutUint32(e.line[p:], uint32(len(e.line)-p-4))
		}
		if e.bin.Err != nil {
			return e.bin.Err
		}
		if err := write(e.line); err != nil {
			return err
		}
	}
	return nil
}

// Line is row i of b as a line of the text format, for the context of an error in
// a row that was read.
func Line(b *vec.Batch, i int, style *pgtext.Style) string {
	o, err := ParseOptions(false, nil)
	if err != nil {
		return ""
	}
	var out []byte
	c := *b
	c.Sel = []uint16{uint16(i)}
	e := NewEncoder(o, b.Schema, style)
	if err := e.Rows(&c, func(l []byte) error { out = bytes.Clone(l); return nil }); err != nil || len(out) == 0 {
		return ""
	}
	return string(clip(out[:len(out)-1]))
}
