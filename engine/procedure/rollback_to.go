package procedure

import (
	"context"
	"strconv"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

var rolledBack = types.Schema{field("previous_snapshot_id", types.Int8), field("current_snapshot_id", types.Int8)}

// rollback is Spark's: the version is a tag, or else a snapshot id.
var rollback = &Procedure{
	Name: "rollback",
	Args: []Arg{
		tableArg,
		{Name: "version", Kind: types.Text},
		{Name: "snapshot", Kind: types.Int8, Aliases: []string{"snapshot_id"}},
		{Name: "tag", Kind: types.Text},
	},
	Columns: rolledBack,
	Run:     runRollback,
}

// rollbackTo is Flink's: a tag or a snapshot id.
var rollbackTo = &Procedure{
	Name: "rollback_to",
	Args: []Arg{
		tableArg,
		{Name: "tag", Kind: types.Text},
		{Name: "snapshot_id", Kind: types.Int8, Aliases: []string{"snapshot", "snapshotId"}},
		{Name: "version", Kind: types.Text},
	},
	Columns: rolledBack,
	Run:     runRollback,
}

func runRollback(ctx context.Context, h Host, v *Values) ([][]types.Datum, error) {
	n := 0
	var to snapshot.Ref
	for _, name := range []string{"version", "tag", "snapshot", "snapshot_id"} {
		if !v.Has(name) {
			continue
		}
		n++
		switch s := v.Text(name); name {
		case "version":
			to = snapshot.Ref{Kind: snapshot.Version, Name: s}
		case "tag":
			// rollback_to('t', 3): the second argument by position is a tag, or else a
			// snapshot.
			to = snapshot.Ref{Kind: snapshot.Tag, Name: s}
			if _, err := strconv.ParseInt(s, 10, 64); err == nil {
				to = snapshot.Ref{Kind: snapshot.Version, Name: s}
			}
		default:
			to = snapshot.Ref{Kind: snapshot.ID, ID: v.Int(name)}
		}
	}
	if n != 1 {
		return nil, pgerr.New(pgerr.InvalidParameterValue, "exactly one of tag, snapshot and version must be given")
	}
	t, err := h.Table(ctx, v.Text("table"))
	if err != nil {
		return nil, err
	}
	return back(ctx, h, t, func(context.Context) error { return t.Store.RollbackTo(ctx, t.Branch, to) })
}

// rollbackToTimestamp makes the newest snapshot that is not younger than a time
// the newest state again.
var rollbackToTimestamp = &Procedure{
	Name:    "rollback_to_timestamp",
	Args:    []Arg{tableArg, {Name: "timestamp", Kind: types.TimestampTZ, Required: true}},
	Columns: rolledBack,
	Run: func(ctx context.Context, h Host, v *Values) ([][]types.Datum, error) {
		at, err := v.Time("timestamp")
		if err != nil {
			return nil, err
		}
		t, err := h.Table(ctx, v.Text("table"))
		if err != nil {
			return nil, err
		}
		return back(ctx, h, t, func(ctx context.Context) error {
			_, err := t.Store.RollbackToTime(ctx, t.Branch, at)
			return err
		})
	},
}

// back keeps writers away while f rolls back.
func back(ctx context.Context, h Host, t *Table, f func(context.Context) error) ([][]types.Datum, error) {
	if err := h.Exclusive(ctx, t); err != nil {
		return nil, err
	}
	snaps := t.Store.Snapshots(t.Branch)
	id := func() (types.Datum, error) {
		s, err := snaps.Latest(ctx)
		if err != nil || s == nil {
			return nil, err
		}
		return s.ID, nil
	}
	before, err := id()
	if err != nil {
		return nil, err
	}
	if err := f(ctx); err != nil {
		return nil, err
	}
	h.Changed(t)
	now, err := id()
	if err != nil {
		return nil, err
	}
	return [][]types.Datum{{before, now}}, nil
}
