package systable

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

var branchFields = types.Schema{field("branch_name", text), field("create_time", ts3)}

func fillBranches(ctx context.Context, src *Source, add func(...types.Datum)) error {
	es, err := src.IO.List(ctx, src.Root+"/branch")
	if err != nil {
		return err
	}
	for _, e := range es {
		if name, ok := strings.CutPrefix(e.Name, "branch-"); ok && e.Dir {
			var made types.Datum
			if !e.ModTime.IsZero() {
				made = millis(e.ModTime.UnixMilli())
			}
			add(name, made)
		}
	}
	return nil
}

var consumerFields = types.Schema{field("consumer_id", text), field("next_snapshot_id", bigint)}

func fillConsumers(ctx context.Context, src *Source, add func(...types.Datum)) error {
	dir := src.Snapshots.Root() + "/consumer"
	es, err := src.IO.List(ctx, dir)
	if err != nil {
		return err
	}
	for _, e := range es {
		id, ok := strings.CutPrefix(e.Name, "consumer-")
		if !ok || e.Dir {
			continue
		}
		raw, err := src.IO.ReadFile(ctx, dir+"/"+e.Name)
		if errors.Is(err, fileio.ErrNotExist) {
			continue // gone since the listing
		}
		if err != nil {
			return err
		}
		var c struct {
			NextSnapshot *int64 `json:"nextSnapshot"`
		}
		if err := json.Unmarshal(raw, &c); err != nil || c.NextSnapshot == nil {
			return &fileio.CorruptionError{Path: dir + "/" + e.Name, Offset: -1, Reason: "consumer does not parse", Err: err}
		}
		add(id, *c.NextSnapshot)
	}
	return nil
}
