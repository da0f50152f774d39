package pgwire

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/pgbin"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// binary fills in how the values of a column are written in PostgreSQL's binary
// form.
func (e *encoder) binary(c *column, t types.Type, a arrow.Array, s *sink) error {
	if pgbin.Holds(t, a) {
		switch t.Kind {
		case types.Int4:
			c.op, c.i32 = opInt32, vec.ViewOf[int32](a).V
			return nil
		case types.Int8:
			c.op, c.i64 = opInt64, vec.ViewOf[int64](a).V
			return nil
		}
	}
	e.bin.Style = s.style
	var err error
	c.op = opFunc
	c.app, err = e.bin.Appender(t, a)
	return err
}
