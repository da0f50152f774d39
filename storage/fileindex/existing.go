package fileindex

import (
	"bytes"

	"github.com/paimon-sql/paimon-sql/index"
)

// Existing is an index that a data file has.
type Existing struct {
	index.Index // Data only when it was asked for
}

// List returns the indexes in a container, with their bytes if data is set. Those kinds
// are among them, too, that are not known here.
func List(c *index.Container, data bool) ([]Existing, error) {
	sections := c.Sections()
	out := make([]Existing, 0, len(sections))
	for i := range sections {
		s := &sections[i]
		x := Existing{index.Index{Column: s.Column, Kind: s.Kind}}
		if data && !s.Empty {
			src := c.Source(s)
			b, err := index.ReadBytes(src, 0, src.Size())
			if err != nil {
				return nil, err
			}
			x.Data = bytes.Clone(b) // a source may share what is in memory
			if x.Data == nil {
				x.Data = []byte{}
			}
		}
		out = append(out, x)
	}
	return out, nil
}
