package pgwire

import (
	"bytes"
	"encoding/binary"
)

// bindMessage is a Bind, cut into pieces of the message's own bytes. Its slices are
// used again for the next one.
//
//	portal NUL | statement NUL | int16 n, n formats | int16 n, n values | int16 n, n formats
//	value: int32 length (-1 = NULL), bytes
type bindMessage struct {
	portal, statement []byte
	formats           []int16 // of parameters
	params            [][]byte
	results           []int16 // formats of the result
}

// decode returns false when the message is cut short.
func (m *bindMessage) decode(b []byte) bool {
	m.formats, m.params, m.results = m.formats[:0], m.params[:0], m.results[:0]
	var ok bool
	if m.portal, b, ok = bytes.Cut(b, []byte{0}); !ok {
		return false
	}
	if m.statement, b, ok = bytes.Cut(b, []byte{0}); !ok {
		return false
	}
	if m.formats, b, ok = codes(m.formats, b); !ok || len(b) < 2 {
		return false
	}
	n := int(binary.BigEndian.Uint16(b))
	for b = b[2:]; n > 0; n-- {
		if len(b) < 4 {
			return false
		}
		size := int(int32(binary.BigEndian.Uint32(b)))
		b = b[4:]
		if size == -1 {
			m.params = append(m.params, nil)
			continue
		}
		if size < 0 || size > len(b) {
			return false
		}
		m.params = append(m.params, b[:size:size])
		b = b[size:]
	}
	m.results, _, ok = codes(m.results, b)
	return ok
}

// codes reads a list of format codes.
func codes(dst []int16, b []byte) ([]int16, []byte, bool) {
	if len(b) < 2 {
		return dst, b, false
	}
	n := int(binary.BigEndian.Uint16(b))
	if b = b[2:]; len(b) < 2*n {
		return dst, b, false
	}
	for i := range n {
		dst = append(dst, int16(binary.BigEndian.Uint16(b[2*i:])))
	}
	return dst, b[2*n:], true
}
