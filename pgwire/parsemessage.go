package pgwire

import (
	"bytes"
	"encoding/binary"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// cursor reads the parts of a message and gives PostgreSQL's errors for what is not
// there. Source: pqformat.c.
type cursor struct{ b []byte }

// string reads up to a NUL.
func (r *cursor) string() ([]byte, error) {
	s, rest, ok := bytes.Cut(r.b, []byte{0})
	if !ok {
		return nil, pgerr.New(pgerr.ProtocolViolation, "invalid string in message")
	}
	r.b = rest
	return s, nil
}

func (r *cursor) uint16() (int, error) {
	if len(r.b) < 2 {
		return 0, malformed()
	}
	n := binary.BigEndian.Uint16(r.b)
	r.b = r.b[2:]
	return int(n), nil
}

func (r *cursor) uint32() (uint32, error) {
	if len(r.b) < 4 {
		return 0, malformed()
	}
	n := binary.BigEndian.Uint32(r.b)
	r.b = r.b[4:]
	return n, nil
}

// end is the error of a message that goes on.
func (r *cursor) end() error {
	if len(r.b) > 0 {
		return pgerr.New(pgerr.ProtocolViolation, "invalid message format")
	}
	return nil
}

// parseMessage is a Parse: name NUL | text NUL | int16 n, n type OIDs.
type parseMessage struct {
	name, query []byte
	oids        []uint32
}

func (m *parseMessage) decode(b []byte) (err error) {
	r := cursor{b}
	if m.name, err = r.string(); err != nil {
		return err
	}
	if m.query, err = r.string(); err != nil {
		return err
	}
	n, err := r.uint16()
	if err != nil {
		return err
	}
	m.oids = nil
	for range n {
		oid, err := r.uint32()
		if err != nil {
			return err
		}
		m.oids = append(m.oids, oid)
	}
	return r.end()
}
