package procedure

import (
	"context"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// expireChangelogs removes changelogs that outlive their snapshots. This server makes
// none; those that Flink has made are not removed yet.
var expireChangelogs = &Procedure{
	Name: "expire_changelogs",
	Args: []Arg{
		tableArg,
		{Name: "retain_max", Kind: types.Int8},
		{Name: "retain_min", Kind: types.Int8},
		{Name: "older_than", Kind: types.TimestampTZ},
		{Name: "max_deletes", Kind: types.Int8},
		{Name: "delete_all", Kind: types.Bool},
	},
	Columns: types.Schema{field("deleted_changelogs_count", types.Int4)},
	Run: func(ctx context.Context, h Host, v *Values) ([][]types.Datum, error) {
		most, err := bounded(v, "retain_max", 1)
		if err != nil {
			return nil, err
		}
		least, err := bounded(v, "retain_min", 1)
		if err != nil {
			return nil, err
		}
		if most > 0 && least > most {
			return nil, pgerr.New(pgerr.InvalidParameterValue, "retain_min must not be greater than retain_max")
		}
		if _, err := bounded(v, "max_deletes", 1); err != nil {
			return nil, err
		}
		if _, err := v.Time("older_than"); err != nil {
			return nil, err
		}
		t, err := h.Table(ctx, v.Text("table"))
		if err != nil {
			return nil, err
		}
		n, err := t.Store.LongLivedChangelogs(ctx, t.Branch)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			return nil, pgerr.New(pgerr.FeatureNotSupported, "expiring changelogs that outlive their snapshots is not supported").
				WithDetail("Table %s has %d of them, which another engine has made.", t.Name, n)
		}
		return [][]types.Datum{{int64(0)}}, nil
	},
}
