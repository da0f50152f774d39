package table

import (
	"testing"

	"github.com/paimon-sql/paimon-sql/storage/compact"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
)

// TestVersionsMemory estimates what compactions that see every version hold: no
// more than the rows that there are.
func TestVersionsMemory(t *testing.T) {
	for _, c := range []struct {
		files, rows, size, most int64
	}{
		{2, 1, 1913, 64 << 10},
		{6, 12, 2500, 256 << 10},
		{4, 1_000_000, 40 << 20, 64 << 20},
	} {
		var in []compact.Input
		for range c.files {
			in = append(in, compact.Input{File: &manifest.DataFile{Size: c.size, Rows: c.rows}})
		}
		if got := versionsMemory(in); got < 1 || got > c.most {
			t.Errorf("%d files of %d rows and %d bytes: %d", c.files, c.rows, c.size, got)
		}
	}
}
