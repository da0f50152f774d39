// Package snapshot reads the snapshots, tags, branches and changelogs of a table.
package snapshot

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// CurrentVersion is the snapshot version written here and the newest one read.
const CurrentVersion = 3

// NoWatermark is how writers say that a snapshot has no watermark.
const NoWatermark = math.MinInt64

// Snapshot is one state of a table: the JSON of snapshot-N, of a tag and of a
// long-lived changelog. Pointers are nil where the member is absent or null.
type Snapshot struct {
	Version                   int               `json:"version"`
	UUID                      string            `json:"uuid,omitempty"`
	ID                        int64             `json:"id"`
	SchemaID                  int64             `json:"schemaId"`
	BaseManifestList          string            `json:"baseManifestList"`
	BaseManifestListSize      *int64            `json:"baseManifestListSize,omitempty"`
	DeltaManifestList         string            `json:"deltaManifestList"`
	DeltaManifestListSize     *int64            `json:"deltaManifestListSize,omitempty"`
	ChangelogManifestList     string            `json:"changelogManifestList,omitempty"`
	ChangelogManifestListSize *int64            `json:"changelogManifestListSize,omitempty"`
	IndexManifest             string            `json:"indexManifest,omitempty"`
	CommitUser                string            `json:"commitUser"`
	WriterVersion             string            `json:"writerVersion,omitempty"`
	CommitIdentifier          int64             `json:"commitIdentifier"`
	CommitKind                string            `json:"commitKind"`
	TimeMillis                int64             `json:"timeMillis"`
	TotalRecordCount          *int64            `json:"totalRecordCount,omitempty"` // physical rows
	DeltaRecordCount          *int64            `json:"deltaRecordCount,omitempty"`
	ChangelogRecordCount      *int64            `json:"changelogRecordCount,omitempty"`
	Watermark                 *int64            `json:"watermark,omitempty"`
	Statistics                string            `json:"statistics,omitempty"`
	Properties                map[string]string `json:"properties,omitempty"`
	NextRowID                 *int64            `json:"nextRowId,omitempty"`
	Operation                 string            `json:"operation,omitempty"`

	// TagCreateTime and TagTimeRetained are only in tag files that were given a
	// retention. Use CreateTime and Retained.
	TagCreateTime   json.RawMessage `json:"tagCreateTime,omitempty"`
	TagTimeRetained json.RawMessage `json:"tagTimeRetained,omitempty"`
}

// Parse reads a snapshot, tag or changelog file. Unknown members are ignored.
func Parse(data []byte) (*Snapshot, error) {
	var s Snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, err
	}
	switch {
	case s.Version > CurrentVersion:
		return nil, &VersionError{s.Version}
	case s.ID < 1 || s.BaseManifestList == "" || s.DeltaManifestList == "":
		return nil, fmt.Errorf("snapshot without id or manifest lists")
	}
	for _, name := range []string{s.BaseManifestList, s.DeltaManifestList, s.ChangelogManifestList, s.IndexManifest, s.Statistics} {
		if strings.ContainsAny(name, "/\\") {
			return nil, fmt.Errorf("snapshot names the file %q", name)
		}
	}
	return &s, nil
}

// VersionError says that a snapshot was written by a future version.
type VersionError struct{ Version int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("snapshot version %d is newer than %d", e.Version, CurrentVersion)
}

// Encode writes s as Java does, indented by two spaces.
func Encode(s *Snapshot) ([]byte, error) { return json.MarshalIndent(s, "", "  ") }

// CreateTime returns when a tag was made, by the writer's clock as if UTC; false
// when the tag does not say. Java writes it as an array of year, month, day,
// hour, minute and, unless zero, second and nanosecond.
func (s *Snapshot) CreateTime() (time.Time, bool) {
	var p []int
	if json.Unmarshal(s.TagCreateTime, &p) == nil && len(p) >= 3 {
		p = append(p, make([]int, 7)...)
		return time.Date(p[0], time.Month(p[1]), p[2], p[3], p[4], p[5], p[6], time.UTC), true
	}
	var text string
	if json.Unmarshal(s.TagCreateTime, &text) == nil {
		for _, layout := range []string{"2006-01-02T15:04:05.999999999", "2006-01-02T15:04"} {
			if t, err := time.Parse(layout, text); err == nil {
				return t, true
			}
		}
	}
	return time.Time{}, false
}

// Retained returns how long a tag is kept; false when it does not say. Java
// writes decimal seconds.
func (s *Snapshot) Retained() (time.Duration, bool) {
	text := strings.Trim(string(s.TagTimeRetained), `" `)
	if text == "" || text == "null" {
		return 0, false
	}
	whole, frac, _ := strings.Cut(text, ".")
	sec, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return 0, false
	}
	nanos, _ := strconv.ParseInt((frac + "000000000")[:9], 10, 64) // absent fraction is 0
	return time.Duration(sec)*time.Second + time.Duration(nanos), true
}
