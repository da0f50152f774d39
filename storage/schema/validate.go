package schema

import (
	"math"
	"slices"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// systemFields are names that Paimon's own columns have.
var systemFields = map[string]bool{"_SEQUENCE_NUMBER": true, "_VALUE_KIND": true, "_LEVEL": true, "rowkind": true, "_ROW_ID": true}

const keyPrefix = "_KEY_"

// validation is a schema under examination; the first complaint is kept.
type validation struct {
	t   *Table
	o   Options
	err error
}

// Validate checks a schema by the rules of Java's SchemaValidation, those of 1.4 and
// 2.1 together, so that every Java reads and writes what we made. It is stricter in
// that the value of every option which Paimon knows must be one of the option's
// type, whether or not creating the table needs it. Errors are *ChangeError.
func Validate(t *Table) error {
	v := &validation{t: t, o: t.Options}
	for _, k := range sortedKeys(t.Options) {
		if err := checkOption(k, t.Options[k]); err != nil {
			return err
		}
	}
	for _, check := range []func(){
		v.names, v.keys, v.bucket, v.startup, v.fieldOptions, v.sequence, v.mergeEngine, v.changelog,
		v.retention, v.formats, v.fieldsOfOptions, v.deletionVectors, v.rowTracking, v.clustering, v.chain, v.rest,
	} {
		if check(); v.err != nil {
			return v.err
		}
	}
	return nil
}

// bad records a complaint about an option.
func (v *validation) bad(key, format string, args ...any) {
	if v.err == nil {
		v.err = refuse(BadOption, format, args...).option(key)
	}
}

// invalid records a complaint about the table's shape.
func (v *validation) invalid(column, format string, args ...any) {
	if v.err == nil {
		v.err = refuse(InvalidDefinition, format, args...).on(column)
	}
}

// Options are checked before they are read: these never fail.

func (v *validation) on(key string, fallback ...string) bool { return v.flag(key, false, fallback...) }

func (v *validation) flag(key string, def bool, fallback ...string) bool {
	for _, k := range append([]string{key}, fallback...) {
		if _, ok := v.o[k]; ok {
			return v.o.Flag(k, def)
		}
	}
	return def
}

func (v *validation) int(key string, def int64) int64 {
	n, err := v.o.Int(key, def)
	if err != nil {
		return def
	}
	return n
}

func (v *validation) has(key string) bool { _, ok := v.o[key]; return ok }

func (v *validation) field(name string) (types.Field, bool) {
	if i := v.t.Fields.Index(name); i >= 0 {
		return v.t.Fields[i], true
	}
	return types.Field{}, false
}

func (v *validation) keyed() bool        { return len(v.t.PrimaryKeys) > 0 }
func (v *validation) engine() string     { return v.o.Enum(optMergeEngine, "deduplicate") }
func (v *validation) producer() string   { return v.o.Enum("changelog-producer", "none") }
func (v *validation) ignoreDelete() bool { return v.on("ignore-delete", ignoreDeleteKeys...) }

var ignoreDeleteKeys = []string{"first-row.ignore-delete", "deduplicate.ignore-delete", "partial-update.ignore-delete"}

func (v *validation) names() {
	if len(v.t.Fields) == 0 {
		v.invalid("", "a table needs at least one column")
	}
	for _, f := range v.t.Fields {
		switch {
		case systemFields[f.Name]:
			v.invalid(f.Name, "column name %q is used by Paimon itself", f.Name)
		case strings.HasPrefix(f.Name, keyPrefix):
			v.invalid(f.Name, "column name %q must not begin with %q", f.Name, keyPrefix)
		case strings.TrimSpace(f.Name) == "":
			v.invalid(f.Name, "a column needs a name")
		}
	}
}

// nested reports whether a type cannot be part of a key.
func nested(t types.Type) bool {
	switch t.Kind {
	case types.Map, types.Array, types.Row, types.Variant:
		return true
	}
	return t.Kind == types.Bytea && (t.Lake == types.LakeGeometry || t.Lake == types.LakeGeography || t.Lake == types.LakeBlob)
}

func (v *validation) keys() {
	upsert := v.o.List("upsert-key")
	for _, k := range []struct {
		what string
		cols []string
	}{{"primary key", v.t.PrimaryKeys}, {"partition", v.t.PartitionKeys}, {"upsert key", upsert}} {
		for _, c := range k.cols {
			f, ok := v.field(c)
			switch {
			case !ok:
				v.err = missing([]string{c}, 1)
				return
			case nested(f.Type):
				v.invalid(c, "column %q of type %s cannot be part of the %s", c, types.PaimonString(f.Type), k.what)
			}
		}
	}
	if len(upsert) > 0 && v.keyed() {
		v.bad("upsert-key", "option %q cannot be set on a table with a primary key", "upsert-key")
	}
	if v.keyed() && len(v.t.TrimmedKey()) == 0 {
		v.invalid("", "the primary key must have a column that is not a partition column: a partition would hold one row only")
	}
	if v.on("primary-key.nullable") && !v.keyed() {
		v.bad("primary-key.nullable", "option %q needs a primary key", "primary-key.nullable")
	}
}

// bucketKeys returns what bucket-key names, as Java reads it: blanks count.
func (v *validation) bucketKeys() []string {
	s := v.o[optBucketKey]
	if strings.TrimSpace(s) == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func (v *validation) bucket() {
	keys := v.bucketKeys()
	for _, k := range keys {
		f, ok := v.field(k)
		switch {
		case !ok:
			v.bad(optBucketKey, "option %q names column %q, which does not exist", optBucketKey, k)
		case slices.Contains(v.t.PartitionKeys, k):
			v.bad(optBucketKey, "option %q names partition column %q", optBucketKey, k)
		case v.keyed() && !slices.Contains(v.t.PrimaryKeys, k):
			v.bad(optBucketKey, "option %q names column %q, which is not in the primary key", optBucketKey, k)
		case nested(f.Type):
			v.bad(optBucketKey, "column %q of type %s cannot be a bucket key", k, types.PaimonString(f.Type))
		}
	}
	switch n := v.int(optBucket, -1); {
	case n == -1:
		if v.has(optBucketKey) {
			v.bad(optBucketKey, "option %q needs a number of buckets: set %q", optBucketKey, optBucket)
		}
		if !v.keyed() && v.has("full-compaction.delta-commits") {
			v.bad("full-compaction.delta-commits", "option %q is not for append tables without buckets", "full-compaction.delta-commits")
		}
	case n < 1 && !(n == -2 && v.keyed()):
		v.bad(optBucket, "invalid value for option %q: %d is neither above 0 nor -1, nor -2 on a table with a primary key", optBucket, n)
	case !v.keyed() && len(keys) == 0:
		v.bad(optBucketKey, "an append table with buckets needs option %q", optBucketKey)
	}
}

// startup checks that scan.mode and the options that name a state go together.
func (v *validation) startup() {
	const (
		millis, stamp, id, tag, mark, ver = "scan.timestamp-millis", "scan.timestamp", "scan.snapshot-id", "scan.tag-name", "scan.watermark", "scan.version"
		fileTime, created                 = "scan.file-creation-time-millis", "scan.creation-time-millis"
		incr, incrTime, incrTag           = "incremental-between", "incremental-between-timestamp", "incremental-to-auto-tag"
	)
	key := "scan.mode"
	if !v.has(key) && v.has("log.scan") {
		key = "log.scan"
	}
	mode := v.o.Enum(key, "default")
	has := func(keys ...string) (n int) {
		for _, k := range keys {
			if v.has(k) || k == millis && v.has("log.scan.timestamp-millis") {
				n++
			}
		}
		return n
	}
	if mode == "default" {
		switch {
		case has(millis, stamp) > 0:
			mode = "from-timestamp"
		case has(id, tag, mark, ver) > 0:
			mode = "from-snapshot"
		case has(fileTime) > 0:
			mode = "from-file-creation-time"
		case has(created) > 0:
			mode = "from-creation-timestamp"
		case has(incr, incrTime) > 0:
			mode = "incremental"
		}
	}
	one := func(keys ...string) {
		if has(keys...) != 1 {
			v.bad("scan.mode", "exactly one of %s must be set when the scan starts %s", strings.Join(keys, ", "), mode)
		}
	}
	none := func(keys ...string) {
		for _, k := range keys {
			if has(k) > 0 {
				v.bad(k, "option %q must not be set when the scan starts %s", k, mode)
			}
		}
	}
	switch mode {
	case "from-timestamp":
		one(millis, stamp)
		none(id, fileTime, tag, incrTime, incr, incrTag)
	case "from-snapshot":
		one(id, tag, mark) // scan.version is for hints: as an option of a table Java refuses it
		none(millis, stamp, fileTime, incrTime, incr, incrTag)
	case "incremental":
		one(incr, incrTime, incrTag)
		none(id, millis, fileTime, stamp, tag)
	case "from-snapshot-full":
		one(id)
		none(millis, stamp, fileTime, tag, incrTime, incr, incrTag)
	case "from-file-creation-time":
		one(fileTime)
		none(id, millis, tag, incrTime, incr, incrTag)
	case "latest-delta":
		none(millis, fileTime, created, stamp, id, tag, mark, ver, incrTime, incr, "incremental-between-scan-mode", "incremental-between-tag-to-snapshot")
	default:
		none(millis, fileTime, stamp, id, tag, incrTime, incr, incrTag)
	}
}

// fieldOptions checks that fields.<column>.* name columns.
func (v *validation) fieldOptions() {
	for _, k := range sortedKeys(v.t.Options) {
		rest, ok := strings.CutPrefix(k, fieldsPrefix)
		if !ok {
			continue
		}
		names, option, _ := strings.Cut(rest, ".")
		for _, n := range strings.Split(names, ",") {
			f, ok := v.field(n)
			if !ok && n != "default-aggregate-function" {
				v.bad(k, "option %q names column %q, which does not exist", k, n)
			}
			if strings.Contains(option, ".") && n == names && f.Type.Kind == types.Row {
				v.bad(k, "option %q is about a field of column %q: options are for whole columns", k, n)
			}
		}
	}
}

func (v *validation) aggregate(column string) string {
	return v.o[fieldsPrefix+column+".aggregate-function"]
}

func (v *validation) sequence() {
	s, ok := v.o[optSequenceField]
	if !ok {
		return
	}
	seen := map[string]bool{}
	for _, c := range strings.Split(s, ",") {
		c = strings.TrimSpace(c)
		_, ok := v.field(c)
		switch {
		case !ok:
			v.bad(optSequenceField, "option %q names column %q, which does not exist", optSequenceField, c)
		case v.aggregate(c) != "":
			v.bad(optSequenceField, "sequence field %q cannot have an aggregate function", c)
		case seen[c]:
			v.bad(optSequenceField, "option %q names column %q twice", optSequenceField, c)
		}
		seen[c] = true
	}
	if v.engine() == "first-row" {
		v.bad(optSequenceField, "option %q cannot be set with merge engine first-row", optSequenceField)
	}
	if v.keyed() {
		for _, p := range v.t.PartitionKeys {
			if !slices.Contains(v.t.PrimaryKeys, p) {
				v.bad(optSequenceField, "option %q needs a primary key that has every partition column", optSequenceField)
			}
		}
	}
}

// changelog checks the changelog producer against the rest.
func (v *validation) changelog() {
	p := v.producer()
	const key = "changelog-producer"
	switch {
	case !v.keyed() && p != "none":
		v.bad(key, "option %q needs a primary key", key)
	case v.engine() == "first-row" && p != "none" && p != "lookup":
		v.bad(key, "merge engine first-row takes only %q none or lookup", key)
	case v.on("streaming-read-overwrite") && (p == "full-compaction" || p == "lookup"):
		v.bad("streaming-read-overwrite", "option %q would read changes twice with changelog producer %s", "streaming-read-overwrite", p)
	case v.on("streaming-read-overwrite") && !v.keyed():
		v.bad("streaming-read-overwrite", "option %q needs a primary key", "streaming-read-overwrite")
	case p == "lookup" && v.has("full-compaction.delta-commits"):
		v.bad("full-compaction.delta-commits", "option %q does not go with changelog producer lookup", "full-compaction.delta-commits")
	}
}

func (v *validation) retention() {
	smin, smax := v.int("snapshot.num-retained.min", 10), v.int("snapshot.num-retained.max", math.MaxInt32)
	cmin, cmax := v.int("changelog.num-retained.min", smin), v.int("changelog.num-retained.max", smax)
	for _, c := range []struct {
		what   string
		lo, hi int64
	}{{"snapshot", smin, smax}, {"changelog", cmin, cmax}} {
		key := c.what + ".num-retained.min"
		if c.lo < 1 {
			v.bad(key, "option %q must be at least 1", key)
		}
		if c.lo > c.hi {
			v.bad(key, "option %q must not be above %q", key, c.what+".num-retained.max")
		}
	}
	if v.has("target-file-row-num") && v.int("target-file-row-num", 1) < 1 {
		v.bad("target-file-row-num", "option %q must be at least 1", "target-file-row-num")
	}
	if v.keyed() {
		v.keyedNumbers()
	}
}

// keyedNumbers checks numbers of primary-key tables that Java looks at when it
// first writes or compacts.
func (v *validation) keyedNumbers() {
	for _, c := range []struct {
		key string
		low int64
	}{
		{"num-levels", 2}, {"num-sorted-run.compaction-trigger", 1}, {"dynamic-bucket.target-row-num", 1},
		{"postpone.target-row-num-per-bucket", 1}, {"postpone.default-bucket-num", 1},
	} {
		if v.has(c.key) && v.int(c.key, c.low) < c.low {
			v.bad(c.key, "option %q must be at least %d", c.key, c.low)
		}
	}
}

// fileFormats are the formats that Paimon has.
var fileFormats = map[string]bool{"parquet": true, "orc": true, "avro": true, "csv": true, "json": true, "text": true, "blob": true, "row": true, "mosaic": true, "lance": true, "vortex": true}

func (v *validation) formats() {
	format := v.o.Enum("file.format", "parquet")
	if !fileFormats[format] {
		v.bad("file.format", "invalid value for option %q: there is no file format %q", "file.format", format)
	}
	if format == "avro" {
		for _, f := range v.t.Fields {
			v.avro("file.format", f.Name, f.Type)
		}
	}
	if format == "csv" || format == "text" {
		for _, f := range v.t.Fields {
			if nested(f.Type) {
				v.bad("file.format", "file format %s cannot hold column %q of type %s", format, f.Name, types.PaimonString(f.Type))
			}
		}
	}
	for _, f := range v.o.levels("file.format.per.level") {
		f = strings.ToLower(f)
		if !fileFormats[f] {
			v.bad("file.format.per.level", "invalid value for option %q: there is no file format %q", "file.format.per.level", f)
		}
		if f == "avro" {
			for _, c := range v.t.Fields {
				v.avro("file.format.per.level", c.Name, c.Type)
			}
		}
	}
}

// avro checks that Avro can hold a column.
func (v *validation) avro(key, name string, t types.Type) {
	no := func(why string) {
		v.bad(key, "file format avro cannot hold column %q of type %s: %s", name, types.PaimonString(t), why)
	}
	for i, c := range name {
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			no("a name has letters, digits and underscores only")
			break
		}
	}
	switch t.Kind {
	case types.Timestamp, types.TimestampTZ:
		if t.Prec > 6 {
			no("timestamps have at most 6 digits")
		}
	case types.Time:
		if t.Prec > 3 {
			no("times have at most 3 digits")
		}
	case types.Array:
		v.avro(key, name, *t.Elem)
	case types.Map:
		v.avro(key, name, *t.Key)
		v.avro(key, name, *t.Elem)
	case types.Row:
		for _, f := range t.Fields {
			v.avro(key, f.Name, f.Type)
		}
	case types.Variant:
		no("it has no variants")
	}
}

// fieldsOfOptions checks options that name one column.
func (v *validation) fieldsOfOptions() {
	if v.keyed() && v.has("record-level.expire-time") && !v.has("record-level.time-field") {
		v.bad("record-level.expire-time", "option %q needs option %q", "record-level.expire-time", "record-level.time-field")
	}
	if c, ok := v.o["record-level.time-field"]; ok {
		f, ok := v.field(c)
		switch {
		case !ok:
			v.bad("record-level.time-field", "option %q names column %q, which does not exist", "record-level.time-field", c)
		case f.Type.Kind != types.Int4 && f.Type.Kind != types.Int8 && !isTimestamp(f.Type):
			v.bad("record-level.time-field", "column %q of option %q must be INT, BIGINT or TIMESTAMP, not %s", c, "record-level.time-field", types.PaimonString(f.Type))
		}
	}
	if c, ok := v.o["rowkind.field"]; ok {
		f, ok := v.field(c)
		switch {
		case !ok:
			v.bad("rowkind.field", "option %q names column %q, which does not exist", "rowkind.field", c)
		case v.keyed() && !f.Type.IsTextLike():
			v.bad("rowkind.field", "option %q does not take column %q of type %s", "rowkind.field", c, types.PaimonString(f.Type))
		}
	}
	if s := strings.TrimSpace(v.o["vector-field"]); s != "" {
		for _, c := range strings.Split(s, ",") {
			if f, ok := v.field(c); !ok || f.Type.Kind != types.Array || f.Type.Fixed == 0 {
				v.bad("vector-field", "option %q names %q, which is no column of a VECTOR type", "vector-field", c)
			}
		}
	}
	for _, key := range []string{"blob-descriptor-field", "blob.stored-descriptor-fields", "blob-view-field", "blob-external-storage-field"} {
		for _, c := range v.o.List(key) {
			if f, ok := v.field(c); !ok || !isBlob(f.Type) {
				v.bad(key, "option %q names %q, which is no column of type BLOB", key, c)
			}
			if key == "blob-external-storage-field" && !slices.Contains(v.o.List("blob-descriptor-field"), c) {
				v.bad(key, "column %q of option %q must be one of %q, too", c, key, "blob-descriptor-field")
			}
		}
	}
	if len(v.o.List("blob-external-storage-field")) > 0 && v.o["blob-external-storage-path"] == "" {
		v.bad("blob-external-storage-path", "option %q needs %q", "blob-external-storage-field", "blob-external-storage-path")
	}
}

func (v *validation) deletionVectors() {
	if !v.on("deletion-vectors.enabled") {
		return
	}
	const key = "deletion-vectors.enabled"
	if p := v.producer(); p == "full-compaction" {
		v.bad(key, "option %q does not go with changelog producer %s", key, p)
	}
	if v.engine() == "first-row" && !v.on("pk-clustering-override") {
		v.bad(key, "merge engine first-row has no use for option %q", key)
	}
}

func (v *validation) rowTracking() {
	tracking, evolution := v.on("row-tracking.enabled"), v.on("data-evolution.enabled")
	if tracking {
		// The key first: a key table has a number of buckets that nobody need have named.
		if v.keyed() {
			v.bad("row-tracking.enabled", "option %q is not for tables with a primary key", "row-tracking.enabled")
		}
		if v.int(optBucket, -1) != -1 {
			v.bad("row-tracking.enabled", "option %q needs %q -1", "row-tracking.enabled", optBucket)
		}
	}
	if evolution {
		switch {
		case !tracking:
			v.bad("data-evolution.enabled", "option %q needs %q", "data-evolution.enabled", "row-tracking.enabled")
		case v.on("deletion-vectors.enabled"):
			v.bad("data-evolution.enabled", "option %q does not go with %q", "data-evolution.enabled", "deletion-vectors.enabled")
		case v.on("clustering.incremental"):
			v.bad("data-evolution.enabled", "option %q does not go with %q", "data-evolution.enabled", "clustering.incremental")
		}
	}
	blobs := 0
	for _, f := range v.t.Fields {
		if !isBlob(f.Type) {
			continue
		}
		blobs++
		if !evolution {
			v.invalid(f.Name, "BLOB column %q needs the table options %q and %q", f.Name, "row-tracking.enabled", "data-evolution.enabled")
		}
	}
	if blobs > 0 && blobs == len(v.t.Fields) {
		v.invalid("", "a table with BLOB columns needs other columns, too")
	}
	if v.has("vector.file.format") && !evolution {
		v.bad("vector.file.format", "option %q needs %q", "vector.file.format", "data-evolution.enabled")
	}
}

func (v *validation) clustering() {
	if v.on("clustering.incremental") {
		const key = "clustering.incremental"
		if v.keyed() {
			v.bad(key, "option %q is not for tables with a primary key", key)
		}
		if v.int(optBucket, -1) != -1 {
			if v.flag("bucket-append-ordered", true) {
				v.bad(key, "option %q on a table with buckets needs %q false", key, "bucket-append-ordered")
			}
			if v.on("deletion-vectors.enabled") {
				v.bad(key, "option %q on a table with buckets does not go with %q", key, "deletion-vectors.enabled")
			}
		}
	}
	if !v.on("pk-clustering-override") {
		return
	}
	const key = "pk-clustering-override"
	columns := v.o["clustering.columns"]
	if columns == "" {
		columns = v.o["sink.clustering.by-columns"]
	}
	switch e, p := v.engine(), v.producer(); {
	case strings.TrimSpace(columns) == "":
		v.bad(key, "option %q needs %q", key, "clustering.columns")
	case !v.on("deletion-vectors.enabled"):
		v.bad(key, "option %q needs %q", key, "deletion-vectors.enabled")
	case v.has("record-level.expire-time"):
		v.bad(key, "option %q does not go with %q", key, "record-level.expire-time")
	case e != "deduplicate" && e != "first-row":
		v.bad(key, "option %q does not go with merge engine %s", key, e)
	case len(v.o.List(optSequenceField)) > 0:
		v.bad(key, "option %q does not go with %q", key, optSequenceField)
	case p != "none" && p != "input":
		v.bad(key, "option %q does not go with changelog producer %s", key, p)
	}
}

func (v *validation) chain() {
	if !v.on("chain-table.enabled") {
		return
	}
	const key = "chain-table.enabled"
	p := v.producer()
	switch {
	case v.o.Enum(optType, "table") != "table":
		v.bad(key, "option %q is for tables of type table", key)
	case !v.keyed() || len(v.t.PartitionKeys) == 0:
		v.bad(key, "option %q needs a primary key and partitions", key)
	case v.int(optBucket, -1) < 1:
		v.bad(key, "option %q needs %q above 0", key, optBucket)
	case len(v.o.List(optSequenceField)) == 0:
		v.bad(key, "option %q needs %q", key, optSequenceField)
	case p != "none" && p != "input":
		v.bad(key, "option %q does not go with changelog producer %s", key, p)
	case v.on("deletion-vectors.enabled"):
		v.bad(key, "option %q does not go with %q", key, "deletion-vectors.enabled")
	case !v.has("partition.timestamp-pattern"):
		v.bad(key, "option %q needs %q", key, "partition.timestamp-pattern")
	case !v.has("partition.timestamp-formatter"):
		v.bad(key, "option %q needs %q", key, "partition.timestamp-formatter")
	}
	const suffix = "chain-table.chain-partition-keys"
	if cols := v.o.List(suffix); len(cols) > 0 {
		n := len(v.t.PartitionKeys) - len(cols)
		if n < 0 || !slices.Equal(v.t.PartitionKeys[n:], cols) {
			v.bad(suffix, "option %q must name the last partition columns", suffix)
		}
	}
}

func (v *validation) rest() {
	if v.has("partition.expiration-time") && len(v.t.PartitionKeys) == 0 {
		v.bad("partition.expiration-time", "option %q needs partitions", "partition.expiration-time")
	}
	if v.on("table-read.sequence-number.enabled") && !v.keyed() {
		v.bad("table-read.sequence-number.enabled", "option %q needs a primary key", "table-read.sequence-number.enabled")
	}
	if v.on("sequence.snapshot-ordering") {
		const key = "sequence.snapshot-ordering"
		switch {
		case !v.keyed():
			v.bad(key, "option %q needs a primary key", key)
		case len(v.o.List(optSequenceField)) > 0:
			v.bad(key, "option %q does not go with %q", key, optSequenceField)
		case !v.on("write-only", "write.compaction-skip"):
			v.bad(key, "option %q needs %q", key, "write-only")
		}
	}
	if v.on("manifest-sort.enabled") {
		const key = "manifest-sort.enabled"
		if !v.on("data-evolution.enabled") && len(v.t.PartitionKeys) == 0 {
			v.bad(key, "option %q needs partitions", key)
		}
		if f := v.o["manifest-sort.partition-field"]; f != "" && !slices.Contains(v.t.PartitionKeys, f) {
			v.bad(key, "option %q names %q, which is no partition column", "manifest-sort.partition-field", f)
		}
	}
	if v.o.String("scan.fallback-branch", "") != "" && v.o.String("scan.primary-branch", "") != "" {
		v.bad("scan.primary-branch", "options %q and %q exclude each other", "scan.fallback-branch", "scan.primary-branch")
	}
	if b, ok := v.o["branch"]; ok && b != "main" {
		v.bad("branch", "option %q names the branch that is read: it cannot be set on a table", "branch")
	}
	v.fileIndexes()
}

// fileIndexes checks that file-index.<type>.columns name columns that such an index
// takes.
func (v *validation) fileIndexes() {
	for _, k := range sortedKeys(v.t.Options) {
		typ, ok := strings.CutPrefix(k, fileIndexPrefix)
		if !ok {
			continue
		}
		if typ, ok = strings.CutSuffix(typ, ".columns"); !ok {
			continue
		}
		for _, c := range v.o.List(k) {
			name, _, inside := strings.Cut(c, "[")
			f, ok := v.field(name)
			switch {
			case !ok:
				v.bad(k, "option %q names column %q, which does not exist", k, name)
			case inside && (f.Type.Kind != types.Map || !isText(*f.Type.Key)):
				v.bad(k, "option %q names %q, but column %q is no map from text", k, c, name)
			case !inside && nested(f.Type):
				v.bad(k, "column %q of type %s cannot have a %s index", name, types.PaimonString(f.Type), typ)
			}
		}
	}
}
