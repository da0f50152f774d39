package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// CurrentVersion is the version that Encode writes.
const CurrentVersion = 3

// Parse reads a schema-N file of version 1 to 3. What old versions leave out is
// filled in: version 1 means one bucket, versions 1 and 2 mean ORC files.
// Unknown members are ignored.
func Parse(data []byte) (*Table, error) {
	var o struct {
		Version        *int              `json:"version"`
		ID             *int64            `json:"id"`
		Fields         []json.RawMessage `json:"fields"`
		HighestFieldID int32             `json:"highestFieldId"`
		PartitionKeys  []string          `json:"partitionKeys"`
		PrimaryKeys    []string          `json:"primaryKeys"`
		Options        map[string]string `json:"options"`
		Comment        string            `json:"comment"`
		TimeMillis     int64             `json:"timeMillis"`
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, err
	}
	if o.ID == nil || o.Fields == nil {
		return nil, fmt.Errorf("schema has no id or no fields")
	}
	t := &Table{
		ID: *o.ID, Version: 1, HighestFieldID: o.HighestFieldID, PartitionKeys: o.PartitionKeys,
		PrimaryKeys: o.PrimaryKeys, Options: o.Options, Comment: o.Comment, TimeMillis: o.TimeMillis,
	}
	if o.Version != nil {
		t.Version = *o.Version
	}
	if t.Version > CurrentVersion {
		return nil, fmt.Errorf("schema version %d is newer than %d", t.Version, CurrentVersion)
	}
	if t.Options == nil {
		t.Options = map[string]string{}
	}
	if _, ok := t.Options["bucket"]; !ok && t.Version < 2 {
		t.Options["bucket"] = "1"
	}
	if _, ok := t.Options["file.format"]; !ok && t.Version < 3 {
		t.Options["file.format"] = "orc"
	}
	seen := make(map[string]bool, len(o.Fields))
	for _, raw := range o.Fields {
		f, err := types.ParsePaimonField(raw)
		if err != nil {
			return nil, err
		}
		if seen[f.Name] {
			return nil, fmt.Errorf("column %q appears twice", f.Name)
		}
		seen[f.Name] = true
		t.Fields = append(t.Fields, f)
	}
	for _, k := range slices.Concat(t.PartitionKeys, t.PrimaryKeys) {
		if !seen[k] {
			return nil, fmt.Errorf("key column %q is not a column", k)
		}
	}
	return t, nil
}

// Encode writes t as a schema-N file of the current version, in the order of
// members and the indentation that Java uses.
func Encode(t *Table) ([]byte, error) {
	str := func(s string) []byte { b, _ := json.Marshal(s); return b } // strings always marshal
	list := func(dst []byte, ss []string) []byte {
		dst = append(dst, '[')
		for i, s := range ss {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, str(s)...)
		}
		return append(dst, ']')
	}
	b := fmt.Appendf(nil, `{"version":%d,"id":%d,"fields":[`, CurrentVersion, t.ID)
	var err error
	for i, f := range t.Fields {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = types.AppendPaimonField(b, f); err != nil {
			return nil, err
		}
	}
	b = append(b, `],"highestFieldId":`...)
	b = strconv.AppendInt(b, int64(t.HighestFieldID), 10)
	b = list(append(b, `,"partitionKeys":`...), t.PartitionKeys)
	b = list(append(b, `,"primaryKeys":`...), t.PrimaryKeys)
	b = append(b, `,"options":{`...)
	for i, k := range slices.Sorted(maps.Keys(t.Options)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, str(k)...), ':'), str(t.Options[k])...)
	}
	b = append(b, '}')
	if t.Comment != "" {
		b = append(append(b, `,"comment":`...), str(t.Comment)...)
	}
	b = append(b, `,"timeMillis":`...)
	b = strconv.AppendInt(b, t.TimeMillis, 10)
	b = append(b, '}')
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
