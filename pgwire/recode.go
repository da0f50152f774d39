package pgwire

import (
	"encoding/binary"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// textPart says what of a binary value is text, in the client's encoding.
type textPart uint8

const (
	textNone      textPart = iota
	textAll                // text, varchar, name, json
	textAfterByte          // jsonb: a version, then text
	textInside             // arrays and rows of such: not converted
)

func textIn(t types.Type) textPart {
	switch t.Kind {
	case types.Unknown, types.Text, types.Varchar, types.BpChar, types.Name, types.JSON:
		return textAll
	case types.JSONB:
		return textAfterByte
	case types.Array:
		if t.Elem != nil && textIn(*t.Elem) != textNone {
			return textInside
		}
	case types.Row, types.Record, types.Map:
		return textInside
	}
	return textNone
}

func errInside(t types.Type, set string) error {
	return pgerr.New(pgerr.FeatureNotSupported, "the binary form of type %s with client_encoding %q is not supported", t.SQL(), set)
}

// recode puts the last row of buf, which begins at e.start, into the client's
// encoding. It returns true, and takes the row away, when that has not got a
// character: e.err says which.
func (e *encoder) recode(buf *[]byte) (failed bool) {
	b := *buf
	if e.err != nil || e.start == len(b) {
		return true
	}
	row := append(e.tmp[:0], b[e.start:]...)
	e.tmp = row
	b = append(b[:e.start], row[:7]...)
	rest := row[7:]
	for i := range e.cols {
		n := int32(binary.BigEndian.Uint32(rest))
		if n < 0 || e.text[i] == textNone {
			n = max(n, 0)
			b = append(b, rest[:4+n]...)
			rest = rest[4+n:]
			continue
		}
		v := rest[4 : 4+n]
		rest = rest[4+n:]
		pos := len(b)
		b = append(b, 0, 0, 0, 0)
		if e.text[i] == textAfterByte && n > 0 {
			b, v = append(b, v[0]), v[1:]
		}
		if b, e.err = e.set.ToClient(b, v); e.err != nil {
			*buf = b[:e.start]
			return true
		}
		binary.BigEndian.PutUint32(b[pos:], uint32(len(b)-pos-4))
	}
	binary.BigEndian.PutUint32(b[e.start+1:], uint32(len(b)-e.start-1))
	*buf = b
	return false
}
