package systable

import (
	"context"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
)

var fileKeyRangeFields = types.Schema{
	field("partition", text), field("bucket", int4), field("file_path", text), field("file_format", text), field("schema_id", bigint),
	field("level", int4), field("record_count", bigint), field("file_size_in_bytes", bigint), field("min_key", text), field("max_key", text),
	field("first_row_id", bigint),
}

func fillFileKeyRanges(ctx context.Context, src *Source, add func(...types.Datum)) error {
	es, err := src.live(ctx)
	if err != nil {
		return err
	}
	for i := range es {
		if err := src.keyRangeRow(&es[i], add); err != nil {
			return src.misfit(es[i].File, err)
		}
	}
	return nil
}

func (s *Source) keyRangeRow(e *manifest.Entry, add func(...types.Datum)) error {
	f := e.File
	ts, ds, err := s.partition(e.Partition)
	if err != nil {
		return err
	}
	path, err := s.filePath(e)
	if err != nil {
		return err
	}
	kt := keyTypes(s.Schema)
	lo, err := keyText(f.MinKey, kt)
	if err != nil {
		return err
	}
	hi, err := keyText(f.MaxKey, kt)
	if err != nil {
		return err
	}
	var rowID types.Datum
	if f.FirstRowID >= 0 {
		rowID = f.FirstRowID
	}
	add(rowText(ts, ds, "{", "}"), int64(e.Bucket), path, formatOf(f.Name), f.SchemaID, int64(f.Level), f.Rows, f.Size, lo, hi, rowID)
	return nil
}
