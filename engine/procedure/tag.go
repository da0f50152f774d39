package procedure

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

var (
	tagName   = Arg{Name: "tag", Kind: types.Text, Required: true, Aliases: []string{"tag_name", "tagName"}}
	tagKept   = Arg{Name: "time_retained", Kind: types.Text, Aliases: []string{"timeRetained"}}
	tagSource = Arg{Name: "snapshot_id", Kind: types.Int8, Aliases: []string{"snapshot", "snapshotId"}}
)

// createTag names a snapshot, by default the newest.
var createTag = &Procedure{
	Name: "create_tag", Args: []Arg{tableArg, tagName, tagSource, tagKept}, Columns: done,
	Run: func(ctx context.Context, h Host, v *Values) ([][]types.Datum, error) {
		t, kept, err := tagTarget(ctx, h, v)
		if err != nil {
			return nil, err
		}
		return made(ctx, h, t, v.Text("tag"), v.Int("snapshot_id"), kept)
	},
}

// createTagFromTimestamp names the first snapshot that is not older than a time.
var createTagFromTimestamp = &Procedure{
	Name: "create_tag_from_timestamp",
	Args: []Arg{tableArg, tagName, {Name: "timestamp", Kind: types.TimestampTZ, Required: true}, tagKept}, Columns: done,
	Run: func(ctx context.Context, h Host, v *Values) ([][]types.Datum, error) {
		t, kept, err := tagTarget(ctx, h, v)
		if err != nil {
			return nil, err
		}
		at, err := v.Time("timestamp")
		if err != nil {
			return nil, err
		}
		snaps := t.Store.Snapshots(t.Branch)
		ids, err := snaps.IDs(ctx)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			s, err := snaps.Get(ctx, id)
			if errors.Is(err, snapshot.ErrNotFound) {
				continue // expired meanwhile
			}
			if err != nil {
				return nil, err
			}
			if s.TimeMillis >= at.UnixMilli() {
				return made(ctx, h, t, v.Text("tag"), id, kept)
			}
		}
		return nil, pgerr.New(pgerr.UndefinedObject, "table \"%s\" has no snapshot at or after that time", t.Name)
	},
}

// deleteTag removes tags; several names are divided by commas.
var deleteTag = &Procedure{
	Name: "delete_tag", Args: []Arg{tableArg, tagName}, Columns: done,
	Run: func(ctx context.Context, h Host, v *Values) ([][]types.Datum, error) {
		t, err := h.Table(ctx, v.Text("table"))
		if err != nil {
			return nil, err
		}
		names := strings.Split(v.Text("tag"), ",")
		for i, n := range names {
			names[i] = strings.TrimSpace(n)
			if _, err := t.Store.Snapshots(t.Branch).Tag(ctx, names[i]); err != nil {
				return nil, noTag(err, names[i])
			}
		}
		for _, n := range names {
			if err := t.Store.DeleteTag(ctx, t.Branch, n); err != nil {
				return nil, noTag(err, n)
			}
		}
		h.Changed(t)
		return ok(), nil
	},
}

// renameTag gives a tag another name.
var renameTag = &Procedure{
	Name: "rename_tag",
	Args: []Arg{tableArg, tagName, {Name: "target_tag", Kind: types.Text, Required: true, Aliases: []string{"target_tag_name", "targetTagName"}}}, Columns: done,
	Run: func(ctx context.Context, h Host, v *Values) ([][]types.Datum, error) {
		t, err := h.Table(ctx, v.Text("table"))
		if err != nil {
			return nil, err
		}
		from, to := v.Text("tag"), v.Text("target_tag")
		if err := checkTag(to); err != nil {
			return nil, err
		}
		snaps := t.Store.Snapshots(t.Branch)
		s, err := snaps.Tag(ctx, from)
		if err != nil {
			return nil, noTag(err, from)
		}
		raw, err := snapshot.Encode(s)
		if err != nil {
			return nil, err
		}
		// The new name first: the files must never be without one.
		if err := snaps.IO().PutIfAbsent(ctx, snaps.TagPath(to), raw); err != nil {
			return nil, tagExists(err, to)
		}
		if err := snaps.IO().Delete(ctx, snaps.TagPath(from)); err != nil {
			return nil, err
		}
		h.Changed(t)
		return ok(), nil
	},
}

// replaceTag gives a tag another snapshot.
var replaceTag = &Procedure{
	Name: "replace_tag", Args: []Arg{tableArg, tagName, tagSource, tagKept}, Columns: done,
	Run: func(ctx context.Context, h Host, v *Values) ([][]types.Datum, error) {
		t, kept, err := tagTarget(ctx, h, v)
		if err != nil {
			return nil, err
		}
		name := v.Text("tag")
		snaps := t.Store.Snapshots(t.Branch)
		if _, err := snaps.Tag(ctx, name); err != nil {
			return nil, noTag(err, name)
		}
		id := v.Int("snapshot_id")
		if id == 0 {
			s, err := snaps.Latest(ctx)
			if err != nil {
				return nil, err
			}
			if s != nil {
				id = s.ID
			}
		}
		// What cannot be tagged must not cost the tag that there is.
		if _, err := snaps.Get(ctx, id); err != nil {
			return nil, err
		}
		release := snaps.Pin(id)
		defer release()
		if err := t.Store.DeleteTag(ctx, t.Branch, name); err != nil {
			return nil, err
		}
		return made(ctx, h, t, name, id, kept)
	},
}

// expireTags removes the tags whose retention is over.
var expireTags = &Procedure{
	Name: "expire_tags", Args: []Arg{tableArg, {Name: "older_than", Kind: types.TimestampTZ}},
	Columns: types.Schema{field("expired_tags", types.Text)},
	Run: func(ctx context.Context, h Host, v *Values) ([][]types.Datum, error) {
		t, err := h.Table(ctx, v.Text("table"))
		if err != nil {
			return nil, err
		}
		now := time.Now()
		if v.Has("older_than") {
			if now, err = v.Time("older_than"); err != nil {
				return nil, err
			}
		}
		names, err := t.Store.ExpireTags(ctx, t.Branch, now)
		if err != nil {
			return nil, err
		}
		rows := [][]types.Datum{}
		for _, n := range names {
			rows = append(rows, []types.Datum{n})
		}
		if len(rows) > 0 {
			h.Changed(t)
		}
		return rows, nil
	},
}

func tagTarget(ctx context.Context, h Host, v *Values) (*Table, time.Duration, error) {
	if err := checkTag(v.Text("tag")); err != nil {
		return nil, 0, err
	}
	var kept time.Duration
	if v.Has("time_retained") {
		var err error
		if kept, err = schema.ParseDuration(v.Text("time_retained")); err != nil || kept <= 0 {
			return nil, 0, pgerr.New(pgerr.InvalidParameterValue, "invalid duration \"%s\"", v.Text("time_retained")).
				WithHint("A duration is a number and a unit, such as 12 h or 7 d.")
		}
	}
	if v.Has("snapshot_id") && v.Int("snapshot_id") < 1 {
		return nil, 0, pgerr.New(pgerr.UndefinedObject, "snapshot %d does not exist", v.Int("snapshot_id"))
	}
	t, err := h.Table(ctx, v.Text("table"))
	return t, kept, err
}

func checkTag(name string) error {
	if !snapshot.ValidTag(name) {
		return pgerr.New(pgerr.InvalidName, "tag name \"%s\" is not valid", name)
	}
	return nil
}

func made(ctx context.Context, h Host, t *Table, name string, id int64, kept time.Duration) ([][]types.Datum, error) {
	if err := t.Store.CreateTag(ctx, t.Branch, name, id, kept); err != nil {
		return nil, tagExists(err, name)
	}
	h.Changed(t)
	return ok(), nil
}

func tagExists(err error, name string) error {
	if errors.Is(err, fileio.ErrExist) {
		return pgerr.Wrap(err, pgerr.DuplicateObject, "tag \"%s\" already exists", name)
	}
	return err
}

func noTag(err error, name string) error {
	if errors.Is(err, snapshot.ErrNotFound) || errors.Is(err, fileio.ErrNotExist) {
		return pgerr.Wrap(err, pgerr.UndefinedObject, "tag \"%s\" does not exist", name)
	}
	return err
}
