package fileindex

import (
	"strings"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/bitmap"
	"github.com/paimon-sql/paimon-sql/index/bloom"
	"github.com/paimon-sql/paimon-sql/index/bsi"
	"github.com/paimon-sql/paimon-sql/index/rangebitmap"
)

// kinds are the file indexes that are read and written, cheapest to ask first.
var kinds = []index.Kind{
	bloom.Kind,
	rangebitmap.Kind{},
	bitmap.Kind,
	bsi.Kind{},
}

// kindNames lists the kinds as they are written in options.
func kindNames() string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name())
	}
	return strings.Join(names, ", ")
}

// KindOf returns the kind of that name, nil when there is none.
func KindOf(name string) index.Kind {
	for _, k := range kinds {
		if k.Name() == name {
			return k
		}
	}
	return nil
}
