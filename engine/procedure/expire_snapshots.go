package procedure

import (
	"context"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// expireSnapshots removes snapshots that the table's retention options do not
// keep; the arguments replace them.
var expireSnapshots = &Procedure{
	Name: "expire_snapshots",
	Args: []Arg{
		tableArg,
		{Name: "retain_max", Kind: types.Int8},
		{Name: "retain_min", Kind: types.Int8},
		{Name: "older_than", Kind: types.TimestampTZ},
		{Name: "max_deletes", Kind: types.Int8},
		{Name: "options", Kind: types.Text},
		{Name: "dry_run", Kind: types.Bool},
	},
	Columns: types.Schema{
		field("deleted_snapshots_count", types.Int4), field("deleted_data_files", types.Int4),
		field("deleted_manifest_files", types.Int4), field("deleted_index_files", types.Int4),
	},
	Run: func(ctx context.Context, h Host, v *Values) ([][]types.Datum, error) {
		if err := refuse(v, "expire_snapshots", "options"); err != nil {
			return nil, err
		}
		o := table.ExpireOptions{Dry: v.Bool("dry_run")}
		var err error
		if o.RetainMax, err = bounded(v, "retain_max", 1); err != nil {
			return nil, err
		}
		if o.RetainMin, err = bounded(v, "retain_min", 1); err != nil {
			return nil, err
		}
		if o.MaxDeletes, err = bounded(v, "max_deletes", 1); err != nil {
			return nil, err
		}
		if o.RetainMax > 0 && o.RetainMin > o.RetainMax {
			return nil, pgerr.New(pgerr.InvalidParameterValue, "retain_min must not be greater than retain_max")
		}
		if o.OlderThan, err = v.Time("older_than"); err != nil {
			return nil, err
		}
		t, err := h.Table(ctx, v.Text("table"))
		if err != nil {
			return nil, err
		}
		o.Branch = t.Branch
		r, err := t.Store.Expire(ctx, o)
		if err != nil {
			return nil, err
		}
		if !o.Dry && r.Snapshots > 0 {
			h.Changed(t)
		}
		return [][]types.Datum{{int64(r.Snapshots), int64(r.DataFiles), int64(r.ManifestFiles), int64(r.IndexFiles)}}, nil
	},
}
