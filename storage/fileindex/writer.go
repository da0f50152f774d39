package fileindex

import (
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index"
)

// Writer makes the indexes of one data file. An index that cannot hold a value of the
// file (a bsi has no place for -2^63), or would be too large, is left out of that file:
// readers take an index that is not there as one that says nothing. Java refuses the
// row instead. Not safe for concurrent use.
type Writer struct {
	c     *Config
	build []index.Builder // nil = left out
}

// NewWriter starts the indexes of a file.
func (c *Config) NewWriter() (*Writer, error) {
	w := &Writer{c: c, build: make([]index.Builder, len(c.Columns))}
	for i := range c.Columns {
		b, err := c.Columns[i].create()
		if err != nil {
			return nil, err
		}
		w.build[i] = b
	}
	return w, nil
}

// Append adds n rows; cols follow the fields that the Config was parsed with, in stored
// form.
func (w *Writer) Append(cols []arrow.Array, n int) error {
	var last arrow.Array
	for i := range w.c.Columns {
		x := &w.c.Columns[i]
		a := cols[x.Field]
		if a.Len() != n {
			return fmt.Errorf("column %q has %d values for %d rows", x.Name, a.Len(), n)
		}
		if x.Keyed {
			if i > 0 && w.c.Columns[i-1].Container() == x.Container() {
				a = last // another kind over the same values
			} else {
				a = valuesUnder(a, x.Key)
			}
		}
		last = a
		if w.build[i] == nil {
			continue
		}
		if err := w.build[i].Append(a); errors.Is(err, index.ErrCannotHold) {
			w.build[i] = nil
		} else if err != nil {
			return fmt.Errorf("%s index of %s: %w", x.Kind.Name(), x.Container(), err)
		}
	}
	return nil
}

// Bytes is the memory held.
func (w *Writer) Bytes() int64 {
	n := int64(0)
	for _, b := range w.build {
		if b != nil {
			n += b.Bytes()
		}
	}
	return n
}

// Finish returns the container; nil when it would hold no index.
func (w *Writer) Finish() ([]byte, error) {
	out, err := w.Indexes()
	if err != nil || len(out) == 0 {
		return nil, err
	}
	return index.WriteContainer(out)
}

// Indexes is Finish, but returns the indexes one by one, in the order of the Config's
// columns. Those that were left out are not among them.
func (w *Writer) Indexes() ([]index.Index, error) {
	out := make([]index.Index, 0, len(w.build))
	for i, b := range w.build {
		if b == nil {
			continue
		}
		data, err := b.Finish()
		if errors.Is(err, index.ErrCannotHold) {
			continue
		}
		if err != nil {
			return nil, err
		}
		x := &w.c.Columns[i]
		out = append(out, index.Index{Column: x.Container(), Kind: x.Kind.Name(), Data: data})
		w.build[i] = nil // what it holds is no longer needed
	}
	return out, nil
}
