package systable

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileindex"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
)

// fileIndexFields are those of FileIndexesTable.java.
var fileIndexFields = types.Schema{
	field("partition", text), field("bucket", int4.WithNotNull(true)), field("file_path", text.WithNotNull(true)),
	field("file_size_in_bytes", bigint.WithNotNull(true)), field("record_count", bigint.WithNotNull(true)), field("schema_id", bigint.WithNotNull(true)),
	field("column_name", text.WithNotNull(true)), field("index_type", text.WithNotNull(true)), field("storage_type", text.WithNotNull(true)),
	field("index_file_path", text), field("index_size_in_bytes", bigint.WithNotNull(true)),
	field("index_container_size_in_bytes", bigint.WithNotNull(true)), field("is_empty", types.Of(types.Bool).WithNotNull(true)),
}

// fillFileIndexes lists the indexes of the live data files, in the order of their
// containers. Only the heads of containers are read.
func fillFileIndexes(ctx context.Context, src *Source, add func(...types.Datum)) error {
	es, err := src.live(ctx)
	if err != nil {
		return err
	}
	for i := range es {
		if err := src.indexRows(ctx, &es[i], add); err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) indexRows(ctx context.Context, e *manifest.Entry, add func(...types.Datum)) error {
	f := e.File
	if len(f.EmbeddedIndex) == 0 && len(f.ExtraFiles) == 0 {
		return nil
	}
	ts, ds, err := s.partition(e.Partition)
	if err != nil {
		return s.misfit(f, err)
	}
	file, err := s.filePath(e)
	if err != nil {
		return s.misfit(f, err)
	}
	rows := func(src index.Source, storage string, at types.Datum) error {
		c, err := index.OpenContainer(src)
		if err != nil {
			return err
		}
		for _, x := range c.Sections() {
			add(rowText(ts, ds, "{", "}"), int64(e.Bucket), file, f.Size, f.Rows, f.SchemaID,
				printable(x.Column), printable(x.Kind), storage, at, x.Size(), src.Size(), x.Empty)
		}
		return nil
	}
	if len(f.EmbeddedIndex) > 0 {
		if err := rows(index.BytesSource(f.EmbeddedIndex), "EMBEDDED", nil); err != nil {
			return &fileio.CorruptionError{Path: file, Offset: -1, Reason: "file index in its manifest entry", Err: err}
		}
		return nil
	}
	var names []string
	for _, x := range f.ExtraFiles {
		if strings.HasSuffix(x, fileindex.Suffix) {
			names = append(names, x)
		}
	}
	switch len(names) {
	case 0:
		return nil
	case 1:
	default:
		return &fileio.CorruptionError{Path: file, Offset: -1, Reason: "it has more than one file of indexes: " + strings.Join(names, ", ")}
	}
	shown := path.Dir(file) + "/" + names[0]
	if i := strings.LastIndexByte(file, '/'); i >= 0 { // of a URI, too
		shown = file[:i+1] + names[0]
	}
	real := shown
	if rest, ok := strings.CutPrefix(shown, s.Location+"/"); ok {
		real = s.Root + "/" + rest
	}
	in, err := s.IO.Open(ctx, real)
	if errors.Is(err, fileio.ErrNotExist) {
		return &fileio.MissingError{Path: real, Err: err}
	}
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it is only read
	if err := rows(in, "FILE", shown); err != nil {
		if errors.Is(err, index.ErrCorrupt) || errors.Is(err, index.ErrVersion) {
			return &fileio.CorruptionError{Path: real, Offset: -1, Reason: "file index", Err: err}
		}
		return err
	}
	return nil
}
