package pgwire

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// fail answers an error in the extended protocol: at once, and everything up to
// the next Sync is thrown away.
func (c *conn) fail(err error) error {
	c.sess.Fail()
	if e := c.report(err); isFatal(e) {
		return c.ended()
	}
	c.skip = true
	return c.out.flush()
}

func malformed() error {
	return pgerr.New(pgerr.ProtocolViolation, "insufficient data left in message")
}

// parse answers Parse.
func (c *conn) parse(body []byte) error {
	var m parseMessage
	if err := m.decode(body); err != nil {
		return c.fail(err)
	}
	name, err := c.text(m.name)
	if err != nil {
		return c.fail(err)
	}
	query, err := c.text(m.query)
	if err != nil {
		return c.fail(err)
	}
	params := make([]types.Type, len(m.oids))
	for i, oid := range m.oids {
		if oid == 0 || oid == 705 {
			continue // to be inferred
		}
		t, ok := types.ByOID(oid)
		if !ok {
			return c.fail(pgerr.New(pgerr.UndefinedObject, "type with OID %d does not exist", oid))
		}
		params[i] = t
	}
	if _, err := c.sess.Prepare(c.ctx, name, query, params); err != nil {
		return c.fail(err)
	}
	c.out.simple('1')
	return nil
}

// bind answers Bind.
func (c *conn) bind(body []byte) error {
	m := &c.msg
	broken := m.decode(body)
	if broken != nil && m.statement == nil {
		return c.fail(broken)
	}
	statement, portal := string(m.statement), string(m.portal)
	if c.set != nil {
		var err error
		if statement, err = c.text(m.statement); err != nil {
			return c.fail(err)
		}
		if portal, err = c.text(m.portal); err != nil {
			return c.fail(err)
		}
	}
	p, err := c.sess.Statement(statement)
	if err == nil {
		err = broken
	}
	if err != nil {
		return c.fail(err)
	}
	if n, k := len(m.formats), len(m.params); n > 1 && n != k {
		return c.fail(pgerr.New(pgerr.ProtocolViolation, "bind message has %d parameter formats but %d parameters", n, k))
	}
	if n, k := len(m.params), len(p.Params); n != k {
		return c.fail(pgerr.New(pgerr.ProtocolViolation, "bind message supplies %d parameters, but prepared statement \"%s\" requires %d",
			n, p.Name, k))
	}
	args := make([]types.Datum, len(m.params))
	d := decoder{style: c.styles.get(c.sess), sess: c.sess, set: c.set}
	for i, b := range m.params {
		if b == nil {
			continue
		}
		f := int16(0)
		switch n := len(m.formats); {
		case n == 1:
			f = m.formats[0]
		case n > 1:
			f = m.formats[i]
		}
		if args[i], err = d.param(p.Params[i], b, f, i+1); err != nil {
			return c.fail(err)
		}
	}
	formats, err := resultFormats(m.results, len(p.Columns))
	if err != nil {
		return c.fail(err)
	}
	if _, err := c.sess.Bind(c.ctx, portal, p, args, formats); err != nil {
		return c.fail(err)
	}
	c.out.simple('2')
	return nil
}

// resultFormats spreads the format codes of Bind over n columns: none is text
// for all, one is for all, else there is one each. codes is not kept.
func resultFormats(codes []int16, n int) ([]int16, error) {
	for _, f := range codes {
		if f != 0 && f != 1 {
			return nil, badFormat(f)
		}
	}
	if n == 0 || len(codes) == 0 || len(codes) == 1 && codes[0] == 0 {
		if n <= len(allText) {
			return allText[:n:n], nil
		}
		return make([]int16, n), nil
	}
	if len(codes) == n {
		return slices.Clone(codes), nil
	}
	if len(codes) != 1 {
		return nil, pgerr.New(pgerr.ProtocolViolation, "bind message has %d result formats but query has %d columns", len(codes), n)
	}
	out := make([]int16, n)
	for i := range out {
		out[i] = codes[0]
	}
	return out, nil
}

// allText are the formats of most results. Read only.
var allText [64]int16

func badFormat(f int16) error {
	return pgerr.New(pgerr.InvalidParameterValue, "unsupported format code: %d", f)
}

// target reads the letter and the name of Describe and Close.
func (c *conn) target(body []byte) (kind byte, name string, err error) {
	if len(body) < 2 {
		return 0, "", malformed()
	}
	i := bytes.IndexByte(body[1:], 0)
	if i < 0 {
		return 0, "", pgerr.New(pgerr.ProtocolViolation, "invalid string in message")
	}
	if i != len(body)-2 {
		return 0, "", pgerr.New(pgerr.ProtocolViolation, "invalid message format")
	}
	name, err = c.text(body[1 : 1+i])
	return body[0], name, err
}

// describe answers Describe of a statement (parameters, then columns with the
// formats still open) or of a portal.
func (c *conn) describe(body []byte) error {
	kind, name, err := c.target(body)
	if err != nil {
		return c.fail(err)
	}
	var cols []engine.Column
	var formats []int16
	// Describing columns may need the catalog, which a failed transaction cannot
	// read; what returns no rows, such as ROLLBACK, can be described.
	aborted := c.sess.TxStatus() == 'E'
	switch kind {
	case 'S':
		p, err := c.sess.Statement(name)
		if err != nil {
			return c.fail(err)
		}
		if aborted && p.Columns != nil {
			return c.fail(errAborted())
		}
		pos := c.out.begin('t')
		c.out.buf = binary.BigEndian.AppendUint16(c.out.buf, uint16(len(p.Params)))
		for _, t := range p.Params {
			c.out.buf = binary.BigEndian.AppendUint32(c.out.buf, wireType(t).OID())
		}
		c.out.finish(pos)
		cols = p.Columns
	case 'P':
		p, err := c.sess.Portal(name)
		if err != nil {
			return c.fail(err)
		}
		if aborted && p.Columns != nil {
			return c.fail(errAborted())
		}
		cols, formats = p.Columns, p.Formats
	default:
		return c.fail(pgerr.New(pgerr.ProtocolViolation, "invalid DESCRIBE message subtype %d", kind))
	}
	if cols == nil {
		c.out.simple('n')
		return nil
	}
	c.out.rowDescription(cols, formats)
	return nil
}

// execute answers Execute: rows, then CommandComplete, or PortalSuspended when
// the limit came first.
func (c *conn) execute(body []byte) error {
	r := cursor{body}
	b, err := r.string()
	if err != nil {
		return c.fail(err)
	}
	rows, err := r.uint32()
	if err != nil {
		return c.fail(err)
	}
	if err := r.end(); err != nil {
		return c.fail(err)
	}
	name, err := c.text(b)
	if err != nil {
		return c.fail(err)
	}
	limit := int(int32(rows))
	if limit < 0 {
		limit = 0 // all, as PostgreSQL reads it
	}
	p, err := c.sess.Portal(name)
	if err != nil {
		return c.fail(err)
	}
	c.sink.portal(p.Columns, p.Formats)
	tag, err := c.runPortal(p, limit)
	switch {
	case err != nil:
		return c.fail(err)
	case c.sink.empty:
	case tag == "":
		c.out.simple('s')
	default:
		c.out.commandComplete(tag)
	}
	if len(c.out.buf) >= flushAt {
		return c.out.flush()
	}
	return nil
}

// runPortal is Session.Run as running has it.
func (c *conn) runPortal(p *engine.Portal, limit int) (string, error) {
	c.watch.begin()
	defer c.ran()
	return c.sess.Run(c.ctx, p, limit, &c.sink)
}

func errAborted() error {
	return pgerr.New(pgerr.InFailedSQLTransaction, "current transaction is aborted, commands ignored until end of transaction block")
}

// close answers Close; what does not exist is closed as well.
func (c *conn) close(body []byte) error {
	kind, name, err := c.target(body)
	if err != nil {
		return c.fail(err)
	}
	switch kind {
	case 'S':
		c.sess.CloseStatement(name)
	case 'P':
		c.sess.ClosePortal(name)
	default:
		return c.fail(pgerr.New(pgerr.ProtocolViolation, "invalid CLOSE message subtype %d", kind))
	}
	c.out.simple('3')
	return nil
}

// sync answers Sync: the end of a pipeline and of its implicit transaction.
func (c *conn) sync() error {
	failed := c.skip
	c.skip, c.pipeline = false, false
	err := c.running(func() error { return c.sess.Sync(c.ctx, failed, &c.sink) })
	if err != nil {
		if e := c.report(err); isFatal(e) {
			return c.ended()
		}
	}
	return c.ready()
}
