package fileindex

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index"
)

// Writer makes the indexes of one data file. Not safe for concurrent use.
type Writer struct {
	c     *Config
	build []index.Builder
}

// NewWriter starts the indexes of a file.
func (c *Config) NewWriter() (*Writer, error) {
	w := &Writer{c: c, build: make([]index.Builder, len(c.Columns))}
	for i := range c.Columns {
		x := &c.Columns[i]
		b, err := x.Kind.Create(x.Type, x.Options)
		if err != nil {
			return nil, &OptionError{prefix + x.Kind.Name() + "." + x.Container(), err.Error()}
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
				a = valuesUnder(a, x.Key, x.Type)
			}
		}
		last = a
		if err := w.build[i].Append(a); err != nil {
			return fmt.Errorf("%s index of %s: %w", x.Kind.Name(), x.Container(), err)
		}
	}
	return nil
}

// Bytes is the memory held.
func (w *Writer) Bytes() int64 {
	n := int64(0)
	for _, b := range w.build {
		n += b.Bytes()
	}
	return n
}

// Finish returns the container.
func (w *Writer) Finish() ([]byte, error) {
	out := make([]index.Index, len(w.build))
	for i, b := range w.build {
		data, err := b.Finish()
		if err != nil {
			return nil, err
		}
		x := &w.c.Columns[i]
		out[i] = index.Index{Column: x.Container(), Kind: x.Kind.Name(), Data: data}
	}
	return index.WriteContainer(out)
}
