package pgwire

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

// decode reads the message. After an error statement is nil unless both names could
// be read: PostgreSQL looks the statement up before it reads on.
func (m *bindMessage) decode(b []byte) (err error) {
	m.formats, m.params, m.results = m.formats[:0], m.params[:0], m.results[:0]
	m.statement = nil
	r := cursor{b}
	if m.portal, err = r.string(); err != nil {
		return err
	}
	if m.statement, err = r.string(); err != nil {
		return err
	}
	if m.formats, err = codes(m.formats, &r); err != nil {
		return err
	}
	n, err := r.uint16()
	for ; err == nil && n > 0; n-- {
		var v []byte
		if v, err = value(&r); err == nil {
			m.params = append(m.params, v)
		}
	}
	if err != nil {
		return err
	}
	if m.results, err = codes(m.results, &r); err != nil {
		return err
	}
	return r.end()
}

// value reads one parameter; nil = NULL.
func value(r *cursor) ([]byte, error) {
	n, err := r.uint32()
	if err != nil {
		return nil, err
	}
	size := int(int32(n))
	if size == -1 {
		return nil, nil
	}
	if size < 0 || size > len(r.b) {
		return nil, malformed()
	}
	v := r.b[:size:size]
	r.b = r.b[size:]
	return v, nil
}

// codes reads a list of format codes.
func codes(dst []int16, r *cursor) ([]int16, error) {
	n, err := r.uint16()
	for ; err == nil && n > 0; n-- {
		var f int
		if f, err = r.uint16(); err == nil {
			dst = append(dst, int16(f))
		}
	}
	return dst, err
}
