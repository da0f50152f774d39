package table

import (
	"fmt"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// DefaultPartitionName stands in a path for NULL and for blank text.
const DefaultPartitionName = "__DEFAULT_PARTITION__"

// PartitionPath returns "k=v/k=v/" for one partition, "" for a table without
// partition keys. The true values are in the manifest; a path only finds files:
// NULL and blank text share one. o may set partition.legacy-name and
// partition.default-name.
func PartitionPath(keys []string, ts []types.Type, vals []types.Datum, o schema.Options) (string, error) {
	var b strings.Builder
	legacy := o.Flag("partition.legacy-name", true)
	def := o.String("partition.default-name", DefaultPartitionName)
	for i, k := range keys {
		s, err := partitionText(ts[i], vals[i], legacy)
		if err != nil {
			return "", fmt.Errorf("partition column %q: %w", k, err)
		}
		if vals[i] == nil || strings.TrimSpace(s) == "" {
			s = def
		}
		b.WriteString(escapePath(k))
		b.WriteByte('=')
		b.WriteString(escapePath(s))
		b.WriteByte('/')
	}
	return b.String(), nil
}

// partitionText writes a value as in a path: by default as Java's toString of
// the internal value, else as the cast to STRING.
func partitionText(t types.Type, d types.Datum, legacy bool) (string, error) {
	if d == nil {
		return "", nil
	}
	if !legacy {
		if t.Kind == types.Date || t.Kind == types.Time || t.Kind == types.Timestamp || t.Kind == types.TimestampTZ {
			return schema.ToText(t, d)
		}
	} else if v, ok := d.(int64); ok {
		switch t.Kind {
		case types.Time:
			return fmt.Sprint(v / 1000), nil
		case types.Timestamp, types.TimestampTZ:
			return localDateTime(t, v), nil
		}
		return fmt.Sprint(v), nil
	}
	if x, ok := d.(*numeric.Dec); ok {
		return schema.DecimalText(x), nil
	}
	return schema.ToText(t, d)
}

// localDateTime is java.time.LocalDateTime.toString: seconds only when they or
// the fraction are not zero, the fraction in groups of three digits.
func localDateTime(t types.Type, v int64) string {
	var at time.Time
	if t.IsNanos() {
		at = time.Unix(0, v).UTC()
	} else {
		at = time.UnixMicro(v).UTC()
	}
	s := at.Format("2006-01-02T15:04")
	ns := at.Nanosecond()
	if at.Second() == 0 && ns == 0 {
		return s
	}
	s += at.Format(":05")
	switch {
	case ns == 0:
	case ns%1_000_000 == 0:
		s += fmt.Sprintf(".%03d", ns/1_000_000)
	case ns%1000 == 0:
		s += fmt.Sprintf(".%06d", ns/1000)
	default:
		s += fmt.Sprintf(".%09d", ns)
	}
	return s
}

const escaped = "\"#%'*/:=?\\{}[]^\x7f"

// escapePath writes control characters and the ones that paths and the k=v form
// need as %XX.
func escapePath(s string) string {
	need := 0
	for i := range len(s) {
		if s[i] < 0x20 || strings.IndexByte(escaped, s[i]) >= 0 {
			need++
		}
	}
	if need == 0 {
		return s
	}
	b := make([]byte, 0, len(s)+2*need)
	for i := range len(s) {
		if c := s[i]; c < 0x20 || strings.IndexByte(escaped, c) >= 0 {
			b = fmt.Appendf(b, "%%%02X", c)
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}

// BucketDir names a bucket's directory below its partition.
func BucketDir(bucket int32) string {
	if bucket == postponeBucket {
		return "bucket-postpone"
	}
	return fmt.Sprintf("bucket-%d", bucket)
}

// postponeBucket holds rows that no compaction has put into real buckets yet;
// batch reads do not see them.
const postponeBucket = -2
