package procedure

import (
	"context"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// compactManifest rewrites the manifests of a table into as few as can be.
var compactManifest = &Procedure{
	Name: "compact_manifest",
	Args: []Arg{
		tableArg,
		{Name: "options", Kind: types.Text},
		{Name: "dry_run", Kind: types.Bool},
		{Name: "manifest_sort_enabled", Kind: types.Bool},
		{Name: "manifest_sort_partition_field", Kind: types.Text},
		{Name: "manifest_sort_max_rewrite_size", Kind: types.Text},
	},
	Columns: types.Schema{
		field("result", types.Bool), field("snapshot_id", types.Int8),
		field("manifests_before", types.Int4), field("manifests_after", types.Int4),
	},
	Run: func(ctx context.Context, h Host, v *Values) ([][]types.Datum, error) {
		if err := refuse(v, "compact_manifest", "options", "manifest_sort_partition_field", "manifest_sort_max_rewrite_size"); err != nil {
			return nil, err
		}
		if v.Bool("manifest_sort_enabled") {
			if err := refuse(v, "compact_manifest", "manifest_sort_enabled"); err != nil {
				return nil, err
			}
		}
		t, err := h.Table(ctx, v.Text("table"))
		if err != nil {
			return nil, err
		}
		r, err := t.Store.CompactManifests(ctx, table.ManifestOptions{
			Branch: t.Branch, Dry: v.Bool("dry_run"),
			Publish: func(ctx context.Context) (func(), error) { return h.Publish(ctx, t) },
		})
		if err != nil {
			return nil, err
		}
		var id types.Datum
		if r.SnapshotID > 0 {
			id = r.SnapshotID
			h.Changed(t)
		}
		return [][]types.Datum{{true, id, int64(r.Before), int64(r.After)}}, nil
	},
}
