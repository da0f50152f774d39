package datafile

import (
	"context"

	"github.com/paimon-sql/paimon-sql/storage/fileindex"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
)

// earlyRows is how many rows a file has at least before it may end early because
// there is no memory for its indexes.
const earlyRows = 4 * stepRows

// chargeIndex accounts for the indexes of the open file. Unlike a row group they
// cannot be written before the file ends; so where the account refuses, the file
// ends, and the indexes of the next begin anew.
func (w *writer) chargeIndex(ctx context.Context) error {
	n := w.cur.index.Bytes()
	if n <= w.indexed || w.o.Account == nil {
		return nil
	}
	if err := w.o.Account.Grow(n - w.indexed); err != nil {
		if w.cur.rows < earlyRows {
			return err
		}
		return w.finish(ctx)
	}
	w.indexed = n
	return nil
}

// finishIndex puts the indexes of a finished file where they belong: into its
// manifest entry, or into a file beside it.
func (w *writer) finishIndex(ctx context.Context, m *manifest.DataFile, f *open) error {
	data, err := f.index.Finish()
	f.index = nil
	if err != nil || data == nil {
		return err
	}
	if int64(len(data)) <= w.index.Threshold {
		m.EmbeddedIndex = data
		return nil
	}
	name := m.Name + fileindex.Suffix
	if err := CreateFile(ctx, w.o.IO, w.o.Dir+name, data); err != nil {
		return err
	}
	m.ExtraFiles = append(m.ExtraFiles, name)
	w.written += int64(len(data))
	return nil
}

// CreateFile writes a new file whole; after an error there is none.
func CreateFile(ctx context.Context, io fileio.FileIO, path string, data []byte) error {
	out, err := io.Create(ctx, path)
	if err != nil {
		return err
	}
	if _, err := out.Write(data); err != nil {
		_ = out.Abort() // the error says why
		return err
	}
	return out.Close()
}
