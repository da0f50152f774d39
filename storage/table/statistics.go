package table

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// Statistics is a statistics file: what an ANALYZE found in one state of a table.
// The file is JSON; the snapshot that ANALYZE publishes names it, and so do the
// snapshots after it for as long as the schema is the same.
//
//	snapshotId, schemaId    the state that was looked at, and the schema of colStats
//	mergedRecordCount       rows that a query sees
//	mergedRecordSize        their share of the bytes of the data files
//	totalRecordCount        rows in the data files then; ours alone: Java passes over
//	                        members that it does not know
//	colStats                by column name
//
// Source: Statistics.java, ColStats.java, StatsFileHandler.java.
type Statistics struct {
	SnapshotID int64                        `json:"snapshotId"`
	SchemaID   int64                        `json:"schemaId"`
	Rows       *int64                       `json:"mergedRecordCount,omitempty"`
	Bytes      *int64                       `json:"mergedRecordSize,omitempty"`
	Total      *int64                       `json:"totalRecordCount,omitempty"`
	Columns    map[string]*ColumnStatistics `json:"colStats"`
}

// ColumnStatistics are one column's. Absent members are unknown. Lengths are bytes,
// those of fixed width included; avgLen is rounded up and leaves NULLs out. Min and
// Max are text in the form that Java's serializers read: see statText.
type ColumnStatistics struct {
	ID       int32   `json:"colId"`
	Distinct *int64  `json:"distinctCount,omitempty"`
	Min      *string `json:"min,omitempty"`
	Max      *string `json:"max,omitempty"`
	Nulls    *int64  `json:"nullCount,omitempty"`
	AvgLen   *int64  `json:"avgLen,omitempty"`
	MaxLen   *int64  `json:"maxLen,omitempty"`
}

// maxStatText bounds min and max of text: longer ones are left out. They would be
// all that is big in the file, and what is cut is no value of the column.
const maxStatText = 256

// Bounds returns the column's least and greatest value, nil where they are not
// known or the text is no value of t, which is the column's type in the schema that
// the statistics are of.
func (c *ColumnStatistics) Bounds(t types.Type) (lo, hi types.Datum) {
	if c.Min != nil {
		lo, _ = statValue(t, *c.Min)
	}
	if c.Max != nil {
		hi, _ = statValue(t, *c.Max)
	}
	return lo, hi
}

// statText writes a value as Java's serializer of its type does: numbers plain or as
// Double.toString, dates as days, times as milliseconds, timestamps with as many
// digits as there are and at least the precision's. Binary values have no text that
// Java reads, and neither have years that Java's pattern does not.
// Source: InternalSerializers.java, DateTimeUtils.formatTimestamp.
func statText(t types.Type, d types.Datum) (string, bool) {
	switch v := d.(type) {
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		bits := 64
		if t.Kind == types.Float4 {
			bits = 32
		}
		return schema.JavaFloat(v, bits), true
	case *numeric.Dec:
		return schema.DecimalText(v), v.Form == numeric.Finite
	case string:
		return v, len(v) <= maxStatText && utf8.ValidString(v)
	case int64:
		switch t.Kind {
		case types.Time:
			return strconv.FormatInt(v/1000, 10), true
		case types.Timestamp, types.TimestampTZ:
			return timestampStat(t, v)
		}
		return strconv.FormatInt(v, 10), true
	}
	return "", false
}

func timestampStat(t types.Type, v int64) (string, bool) {
	var at time.Time
	if t.IsNanos() {
		at = time.Unix(0, v).UTC()
	} else {
		at = time.UnixMicro(v).UTC()
	}
	if y := at.Year(); y < 1 || y > 9999 {
		return "", false
	}
	frac := []byte(at.Format(".000000000"))
	for len(frac)-1 > int(t.Prec) && frac[len(frac)-1] == '0' {
		frac = frac[:len(frac)-1]
	}
	if len(frac) == 1 {
		frac = nil
	}
	return at.Format("2006-01-02 15:04:05") + string(frac), true
}

// statValue reads what statText, Java and Spark write; bytes are base64. Text that is
// no value of t is no value.
func statValue(t types.Type, s string) (types.Datum, bool) {
	integer := func(bits int) (types.Datum, bool) {
		v, err := strconv.ParseInt(s, 10, bits)
		return v, err == nil
	}
	switch t.Kind {
	case types.Bool:
		v, err := strconv.ParseBool(s)
		return v, err == nil
	case types.TinyInt:
		return integer(8)
	case types.Int2:
		return integer(16)
	case types.Int4, types.Date:
		return integer(32)
	case types.Int8:
		return integer(64)
	case types.Time:
		v, err := strconv.ParseInt(s, 10, 32)
		return v * 1000, err == nil && v >= 0 && v < 86_400_000
	case types.Float4, types.Float8:
		bits := 64
		if t.Kind == types.Float4 {
			bits = 32
		}
		v, err := strconv.ParseFloat(s, bits)
		return v, err == nil
	case types.Numeric:
		if len(s) > 64 {
			return nil, false
		}
		v, err := numeric.Parse(s)
		if err != nil || v.Form != numeric.Finite {
			return nil, false
		}
		return v, true
	case types.Timestamp, types.TimestampTZ:
		at, err := time.Parse("2006-01-02 15:04:05.999999999", s)
		if err != nil {
			return nil, false
		}
		if t.IsNanos() {
			v := at.UnixNano()
			return v, time.Unix(0, v).Equal(at)
		}
		return at.UnixMicro(), true
	case types.Text, types.Varchar, types.BpChar:
		return s, utf8.ValidString(s)
	case types.Bytea:
		v, err := base64.StdEncoding.DecodeString(s)
		return v, err == nil
	}
	return nil, false
}

// statisticsPath is where a statistics file of t lies, of whatever branch.
func (t *FileStore) statisticsPath(name string) string { return t.dir + "/statistics/" + name }

// Statistics reads a statistics file that a snapshot names. One that is not there is
// a *fileio.MissingError, one that does not parse a *fileio.CorruptionError.
func (t *FileStore) Statistics(ctx context.Context, name string) (*Statistics, error) {
	path := t.statisticsPath(name)
	raw, err := t.env.IO.ReadFile(ctx, path)
	if errors.Is(err, fileio.ErrNotExist) {
		return nil, &fileio.MissingError{Path: path, Err: err}
	}
	if err != nil {
		return nil, err
	}
	s := &Statistics{SnapshotID: -1, SchemaID: -1}
	if err := json.Unmarshal(raw, s); err != nil || s.SnapshotID < 0 || s.SchemaID < 0 {
		return nil, &fileio.CorruptionError{Path: path, Offset: -1, Reason: "statistics do not parse", Err: err}
	}
	for name, c := range s.Columns {
		if c == nil {
			delete(s.Columns, name)
		}
	}
	return s, nil
}

// namedStatistics is a statistics file that has been read. Names hold a UUID, so a file
// is never another one.
type namedStatistics struct {
	name string
	s    *Statistics // not to be changed
}

// knownStatistics is Statistics, remembering the last file: many snapshots name it.
func (t *FileStore) knownStatistics(ctx context.Context, name string) (*Statistics, error) {
	t.mu.Lock()
	known := t.analyzed
	t.mu.Unlock()
	if known.name == name {
		return known.s, nil
	}
	s, err := t.Statistics(ctx, name)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.analyzed = namedStatistics{name, s}
	t.mu.Unlock()
	return s, nil
}

// writeStatistics writes a statistics file, which nobody knows before a commit names
// it, and returns its name.
func (t *FileStore) writeStatistics(ctx context.Context, s *Statistics) (string, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		return "", err
	}
	name := "stat-" + uuid.NewString() + "-0"
	w, err := t.env.IO.Create(ctx, t.statisticsPath(name))
	if err != nil {
		return "", err
	}
	if _, err := w.Write(buf.Bytes()); err != nil {
		return "", errors.Join(err, w.Abort())
	}
	return name, w.Close()
}

// inProportion is n times part by whole; 0 of nothing.
func inProportion(n int64, part, whole float64) int64 {
	if whole <= 0 {
		return 0
	}
	return int64(math.Round(float64(n) * (part / whole)))
}
