package systable

import (
	"context"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
)

// dvRange says where in an index file the deletion vector of a data file is.
// Source: DeletionVectorMeta.SCHEMA.
var dvRange = types.Type{Kind: types.Row, Fields: []types.Field{
	field("f0", text), field("f1", int4), field("f2", int4), field("_CARDINALITY", bigint),
}}

var tableIndexFields = types.Schema{
	field("partition", text), field("bucket", int4), field("index_type", text), field("file_name", text), field("file_size", bigint),
	field("row_count", bigint), field("dv_ranges", types.ArrayOf(dvRange)), field("row_range_start", bigint),
	field("row_range_end", bigint), field("index_field_id", int4), field("index_field_name", text),
}

func fillTableIndexes(ctx context.Context, src *Source, add func(...types.Datum)) error {
	if src.At == nil || src.At.IndexManifest == "" {
		return nil
	}
	es, err := src.Manifests.Index(ctx, src.IO, src.Root+"/manifest/"+src.At.IndexManifest)
	if err != nil {
		return err
	}
	for i := range es {
		e := &es[i]
		if e.Kind != manifest.Add {
			continue
		}
		ts, ds, err := src.partition(e.Partition)
		if err != nil {
			return err
		}
		var ranges, start, end, id, name types.Datum
		if e.DVs != nil {
			list := []types.Datum{}
			for _, v := range e.DVs {
				var rows types.Datum
				if v.Cardinality >= 0 {
					rows = v.Cardinality
				}
				list = append(list, []types.Datum{v.DataFile, int64(v.Offset), int64(v.Length), rows})
			}
			ranges = list
		}
		if g := e.Global; g != nil {
			start, end, id = g.RowRangeStart, g.RowRangeEnd, int64(g.FieldID)
			name = orNull(src.fieldNames(append([]int32{g.FieldID}, g.ExtraFieldIDs...)))
		}
		add(rowText(ts, ds, "{", "}"), int64(e.Bucket), e.Type, e.Name, e.Size, e.Rows, ranges, start, end, id, name)
	}
	return nil
}

// fieldNames joins the names of columns; "" when one is not there any more.
func (s *Source) fieldNames(ids []int32) string {
	var out []string
	for _, id := range ids {
		name := ""
		for _, f := range s.Schema.Fields {
			if f.ID == id {
				name = f.Name
			}
		}
		if name == "" {
			return ""
		}
		out = append(out, name)
	}
	return strings.Join(out, ",")
}
