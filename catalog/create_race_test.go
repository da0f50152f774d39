package catalog

import (
	"context"
	"testing"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// stealingIO takes the directory of a table away before its schema is put there,
// and lets somebody else make a table of the name.
type stealingIO struct {
	fileio.FileIO
	steal func()
}

func (s *stealingIO) PutIfAbsent(ctx context.Context, p string, data []byte) error {
	if f := s.steal; f != nil && p == "default.db/t/schema/schema-0" {
		s.steal = nil
		f()
		return &fileio.PathError{Op: "put", Path: p, Err: fileio.ErrNotExist}
	}
	return s.FileIO.PutIfAbsent(ctx, p, data)
}

// A table that another process makes while ours is taken away stays.
func TestCreateLosesDirectory(t *testing.T) {
	ctx := context.Background()
	io := &stealingIO{FileIO: fileio.NewMem()}
	c, other := newWarehouse(t, io), newWarehouse(t, io.FileIO)
	io.steal = func() {
		if err := other.CreateTable(ctx, "public", "t", definition("id")); err != nil {
			t.Error(err)
		}
	}
	want(t, c.CreateTable(ctx, "public", "t", definition()), ErrChanged)
	tables(t, other, "public", "t")
}
