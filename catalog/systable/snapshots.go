package systable

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

var snapshotFields = types.Schema{
	field("snapshot_id", bigint), field("schema_id", bigint), field("commit_user", text), field("commit_identifier", bigint),
	field("commit_kind", text), field("commit_time", ts3), field("base_manifest_list", text), field("delta_manifest_list", text),
	field("changelog_manifest_list", text), field("total_record_count", bigint), field("delta_record_count", bigint),
	field("changelog_record_count", bigint), field("watermark", bigint), field("next_row_id", bigint), field("operation", text),
	field("writer_version", text),
}

func fillSnapshots(ctx context.Context, src *Source, add func(...types.Datum)) error {
	ids, err := src.Snapshots.IDs(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if src.Until != 0 && id > src.Until {
			break
		}
		s, err := src.Snapshots.Get(ctx, id)
		if errors.Is(err, snapshot.ErrNotFound) {
			continue // expired since the listing
		}
		if err != nil {
			return err
		}
		add(s.ID, s.SchemaID, s.CommitUser, s.CommitIdentifier, s.CommitKind, millis(s.TimeMillis), s.BaseManifestList,
			s.DeltaManifestList, orNull(s.ChangelogManifestList), ptr(s.TotalRecordCount), ptr(s.DeltaRecordCount),
			ptr(s.ChangelogRecordCount), ptr(s.Watermark), ptr(s.NextRowID), orNull(s.Operation), orNull(s.WriterVersion))
	}
	return nil
}

var schemaFields = types.Schema{
	field("schema_id", bigint), field("fields", text), field("partition_keys", text), field("primary_keys", text),
	field("options", text), field("comment", text), field("update_time", ts3),
}

func fillSchemas(ctx context.Context, src *Source, add func(...types.Datum)) error {
	ids, err := src.Schemas.IDs(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		t, err := src.Schemas.Get(ctx, id)
		if err != nil {
			return err
		}
		// The members are cut out of the schema file's own text, so that types and
		// descriptions are spelled as Java spells them.
		raw, err := schema.Encode(t)
		if err != nil {
			return err
		}
		var m struct {
			Fields        json.RawMessage `json:"fields"`
			PartitionKeys json.RawMessage `json:"partitionKeys"`
			PrimaryKeys   json.RawMessage `json:"primaryKeys"`
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			return err
		}
		add(t.ID, compact(m.Fields), compact(m.PartitionKeys), compact(m.PrimaryKeys), jsonOptions(t.Options), orNull(t.Comment),
			millis(t.TimeMillis))
	}
	return nil
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// jsonOptions prints options as one JSON object, keys sorted: Java's map has no
// order to keep.
func jsonOptions(m map[string]string) string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var b strings.Builder
	b.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(jsonString(k))
		b.WriteByte(':')
		b.WriteString(jsonString(m[k]))
	}
	b.WriteByte('}')
	return b.String()
}

func jsonString(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return strings.TrimSuffix(b.String(), "\n")
}

var optionFields = types.Schema{field("key", text), field("value", text)}

func fillOptions(_ context.Context, src *Source, add func(...types.Datum)) error {
	keys := make([]string, 0, len(src.Schema.Options))
	for k := range src.Schema.Options {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		add(k, src.Schema.Options[k])
	}
	return nil
}

var tagFields = types.Schema{
	field("tag_name", text), field("snapshot_id", bigint), field("schema_id", bigint), field("commit_time", ts3),
	field("record_count", bigint), field("create_time", ts3), field("time_retained", text),
}

func fillTags(ctx context.Context, src *Source, add func(...types.Datum)) error {
	names, err := src.Snapshots.Tags(ctx)
	if err != nil {
		return err
	}
	for _, n := range names {
		s, err := src.Snapshots.Tag(ctx, n)
		if errors.Is(err, snapshot.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		var created, retained types.Datum
		if t, ok := s.CreateTime(); ok {
			created = t.UnixMicro() / 1000 * 1000
		}
		if d, ok := s.Retained(); ok {
			retained = isoDuration(d)
		}
		add(n, s.ID, s.SchemaID, millis(s.TimeMillis), ptr(s.TotalRecordCount), created, retained)
	}
	return nil
}

// isoDuration prints a duration as java.time.Duration does: PT36H, PT1M30S.
func isoDuration(d time.Duration) string {
	if d == 0 {
		return "PT0S"
	}
	var b strings.Builder
	b.WriteString("PT")
	if h := d / time.Hour; h != 0 {
		fmt.Fprintf(&b, "%dH", h)
		d -= h * time.Hour
	}
	if m := d / time.Minute; m != 0 {
		fmt.Fprintf(&b, "%dM", m)
		d -= m * time.Minute
	}
	if d != 0 {
		s := strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.9f", d.Seconds()), "0"), ".")
		b.WriteString(s + "S")
	}
	return b.String()
}
