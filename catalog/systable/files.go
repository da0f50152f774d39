package systable

import (
	"context"
	"errors"
	"path"
	"sort"
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// manifests returns the manifests of the state: base, then delta.
func (s *Source) manifests(ctx context.Context) ([]manifest.FileMeta, error) {
	if s.At == nil {
		return nil, nil
	}
	var out []manifest.FileMeta
	for _, list := range []string{s.At.BaseManifestList, s.At.DeltaManifestList} {
		if list == "" {
			continue
		}
		m, err := s.Manifests.List(ctx, s.IO, s.Root+"/manifest/"+list)
		if err != nil {
			return nil, err
		}
		out = append(out, m...)
	}
	return out, nil
}

// live returns the live data files of the state, in manifest order.
func (s *Source) live(ctx context.Context) ([]manifest.Entry, error) {
	ms, err := s.manifests(ctx)
	if err != nil {
		return nil, err
	}
	type id struct {
		partition, name, external string
		bucket, level             int32
	}
	at := map[id]int{}
	var all []manifest.Entry
	dead := map[int]bool{}
	for _, m := range ms {
		es, err := s.Manifests.Entries(ctx, s.IO, s.Root+"/manifest/"+m.Name)
		if err != nil {
			return nil, err
		}
		for _, e := range es {
			k := id{string(e.Partition), e.File.Name, e.File.ExternalPath, e.Bucket, e.File.Level}
			if e.Kind == manifest.Delete {
				if i, ok := at[k]; ok {
					dead[i] = true
					delete(at, k)
				}
				continue
			}
			at[k] = len(all)
			all = append(all, e)
		}
	}
	out := all[:0:0]
	for i, e := range all {
		if !dead[i] {
			out = append(out, e)
		}
	}
	return out, nil
}

func (s *Source) partitionTypes() (names []string, ts []types.Type) {
	for _, k := range s.Schema.PartitionKeys {
		if i := s.Schema.Fields.Index(k); i >= 0 {
			names = append(names, k)
			ts = append(ts, s.Schema.Fields[i].Type)
		}
	}
	return names, ts
}

func (s *Source) partition(image []byte) ([]types.Type, []types.Datum, error) {
	_, ts := s.partitionTypes()
	ds, err := binrow.Decode(image, ts)
	return ts, ds, err
}

// filePath is the path users see; names in it are escaped as Paimon does.
func (s *Source) filePath(e *manifest.Entry) (string, error) {
	if e.File.ExternalPath != "" {
		return e.File.ExternalPath, nil
	}
	names, ts := s.partitionTypes()
	ds, err := binrow.Decode(e.Partition, ts)
	if err != nil {
		return "", err
	}
	dir := s.Location
	if d := s.Schema.Options["data-file.path-directory"]; d != "" {
		dir += "/" + strings.Trim(d, "/")
	}
	legacy := s.Schema.Options["partition.legacy-name"] != "false"
	blank := s.Schema.Options["partition.default-name"]
	if blank == "" {
		blank = "__DEFAULT_PARTITION__"
	}
	for i, n := range names {
		v := blank
		if ds[i] != nil {
			t := castText(ts[i], ds[i])
			if legacy {
				t = internalText(ts[i], ds[i])
			}
			if strings.TrimSpace(t) != "" {
				v = t
			}
		}
		dir += "/" + escape(n) + "=" + escape(v)
	}
	bucket := "/bucket-" + strconv.Itoa(int(e.Bucket))
	if e.Bucket == -2 {
		bucket = "/bucket-postpone"
	}
	return dir + bucket + "/" + e.File.Name, nil
}

// escape follows PartitionPathUtils.escapePathName.
func escape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < 0x20 || c == 0x7f || strings.IndexByte("\"#%'*/:=?\\{}[]^", c) >= 0 {
			b.WriteByte('%')
			b.WriteString(strings.ToUpper(strconv.FormatUint(uint64(c)|0x100, 16)[1:]))
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

func formatOf(name string) string {
	ext := strings.TrimPrefix(path.Ext(name), ".")
	switch ext {
	case "gz", "bz2", "deflate", "snappy", "lz4", "zst":
		return strings.TrimPrefix(path.Ext(strings.TrimSuffix(name, "."+ext)), ".")
	}
	return ext
}

// stats maps a file's statistics to the columns of the current schema by field
// id. A column that the file's schema lacks is all NULL there.
func (s *Source) stats(ctx context.Context, f *manifest.DataFile) (nulls, minV, maxV map[string]string, err error) {
	old, err := s.Schemas.Get(ctx, f.SchemaID)
	if err != nil {
		return nil, nil, nil, err
	}
	fields := old.Fields
	if f.HasWriteCols {
		fields = pick(append(fields[:len(fields):len(fields)], rowIDFields...), f.WriteCols)
	}
	if f.HasValueStatsCols {
		fields = pick(old.Fields, f.ValueStatsCols)
	}
	ts := fields.Types()
	lo, err := binrow.Decode(f.ValueStats.Min, ts)
	if err != nil {
		return nil, nil, nil, err
	}
	hi, err := binrow.Decode(f.ValueStats.Max, ts)
	if err != nil {
		return nil, nil, nil, err
	}
	at := map[int32]int{}
	for i, c := range fields {
		at[c.ID] = i
	}
	known := map[int32]bool{}
	for _, c := range old.Fields {
		known[c.ID] = true
	}
	nulls, minV, maxV = map[string]string{}, map[string]string{}, map[string]string{}
	for _, c := range s.Schema.Fields {
		nulls[c.Name], minV[c.Name], maxV[c.Name] = "null", "null", "null"
		i, ok := at[c.ID]
		if !ok {
			if !known[c.ID] {
				nulls[c.Name] = strconv.FormatInt(f.Rows, 10)
			}
			continue
		}
		if i < len(f.ValueStats.NullCounts) && f.ValueStats.NullCounts[i] >= 0 {
			nulls[c.Name] = strconv.FormatInt(f.ValueStats.NullCounts[i], 10)
		}
		minV[c.Name], maxV[c.Name] = evolved(fields[i].Type, c.Type, lo[i]), evolved(fields[i].Type, c.Type, hi[i])
	}
	return nulls, minV, maxV, nil
}

// evolved prints a statistic of a file in the column's current type.
func evolved(from, to types.Type, d types.Datum) string {
	if d != nil && to.IsTextLike() && !from.IsTextLike() {
		return castText(from, d)
	}
	return internalText(from, d)
}

// rowIDFields are columns that files of tables with row tracking may hold beside the
// table's.
var rowIDFields = types.Schema{{ID: 2147483642, Name: "_ROW_ID", Type: bigint}, {ID: 2147483646, Name: "_SEQUENCE_NUMBER", Type: bigint}}

func pick(fields types.Schema, names []string) types.Schema {
	var out types.Schema
	for _, n := range names {
		if i := fields.Index(n); i >= 0 {
			out = append(out, fields[i])
		}
	}
	return out
}

var fileFields = types.Schema{
	field("partition", text), field("bucket", int4), field("file_path", text), field("file_format", text), field("schema_id", bigint),
	field("level", int4), field("record_count", bigint), field("file_size_in_bytes", bigint), field("min_key", text), field("max_key", text),
	field("null_value_counts", text), field("min_value_stats", text), field("max_value_stats", text), field("min_sequence_number", bigint),
	field("max_sequence_number", bigint), field("creation_time", ts3), field("deleteRowCount", bigint), field("file_source", text),
	field("first_row_id", bigint), field("write_cols", types.ArrayOf(text)),
}

func keyText(image []byte, ts []types.Type) (types.Datum, error) {
	if len(ts) == 0 {
		return nil, nil
	}
	ds, err := binrow.Decode(image, ts)
	if err != nil {
		return nil, err
	}
	return rowText(ts, ds, "[", "]"), nil
}

func keyTypes(s *schema.Table) []types.Type {
	var ts []types.Type
	for _, k := range s.TrimmedKey() {
		if i := s.Fields.Index(k); i >= 0 {
			ts = append(ts, s.Fields[i].Type)
		}
	}
	return ts
}

// misfit says which file's entry does not fit the schema.
func (s *Source) misfit(f *manifest.DataFile, err error) error {
	var c *fileio.CorruptionError
	if err == nil || errors.As(err, &c) || !errors.Is(err, binrow.ErrCorrupt) {
		return err
	}
	return &fileio.CorruptionError{Path: s.Root + "/" + f.Name, Offset: -1, Reason: "its entry in the manifest does not fit the table's schema", Err: err}
}

func fillFiles(ctx context.Context, src *Source, add func(...types.Datum)) error {
	es, err := src.live(ctx)
	if err != nil {
		return err
	}
	for i := range es {
		if err := src.fileRow(ctx, &es[i], add); err != nil {
			return src.misfit(es[i].File, err)
		}
	}
	return nil
}

// fileRow adds the row of one file.
func (s *Source) fileRow(ctx context.Context, e *manifest.Entry, add func(...types.Datum)) error {
	f := e.File
	kt := keyTypes(s.Schema)
	pts, pds, err := s.partition(e.Partition)
	if err != nil {
		return err
	}
	p, err := s.filePath(e)
	if err != nil {
		return err
	}
	lo, err := keyText(f.MinKey, kt)
	if err != nil {
		return err
	}
	hi, err := keyText(f.MaxKey, kt)
	if err != nil {
		return err
	}
	nulls, minV, maxV, err := s.stats(ctx, f)
	if err != nil {
		return err
	}
	var created, deleted, source, rowID, cols types.Datum
	if f.CreationMillis != 0 {
		created = millis(f.CreationMillis)
	}
	if f.DeleteRows >= 0 {
		deleted = f.DeleteRows
	}
	if f.Source >= 0 && f.Source < 2 {
		source = [...]string{"APPEND", "COMPACT"}[f.Source]
	}
	if f.FirstRowID >= 0 {
		rowID = f.FirstRowID
	}
	if f.HasWriteCols {
		var list []types.Datum
		for _, c := range f.WriteCols {
			list = append(list, c)
		}
		cols = list
	}
	add(rowText(pts, pds, "{", "}"), int64(e.Bucket), p, formatOf(f.Name), f.SchemaID, int64(f.Level), f.Rows, f.Size, lo, hi,
		mapText(nulls), mapText(minV), mapText(maxV), f.MinSequence, f.MaxSequence, created, deleted, source, rowID, cols)
	return nil
}

var manifestFields = types.Schema{
	field("file_name", text), field("file_size", bigint), field("num_added_files", bigint), field("num_deleted_files", bigint),
	field("schema_id", bigint), field("min_partition_stats", text), field("max_partition_stats", text), field("min_row_id", bigint),
	field("max_row_id", bigint),
}

func fillManifests(ctx context.Context, src *Source, add func(...types.Datum)) error {
	ms, err := src.manifests(ctx)
	if err != nil {
		return err
	}
	for _, m := range ms {
		ts, lo, err := src.partition(m.PartitionStats.Min)
		if err != nil {
			return err
		}
		_, hi, err := src.partition(m.PartitionStats.Max)
		if err != nil {
			return err
		}
		var minRow, maxRow types.Datum
		if m.MinRowID >= 0 {
			minRow = m.MinRowID
		}
		if m.MaxRowID >= 0 {
			maxRow = m.MaxRowID
		}
		add(m.Name, m.Size, m.Added, m.Deleted, m.SchemaID, rowText(ts, lo, "{", "}"), rowText(ts, hi, "{", "}"), minRow, maxRow)
	}
	return nil
}

// group sums live files by partition, or by partition and bucket.
type group struct {
	partition    []types.Datum
	bucket       int32
	total        int32
	rows, size   int64
	files        int64
	last         int64 // creation time, epoch ms
	deletes      int64
	deletesKnown bool
}

func (s *Source) groups(ctx context.Context, byBucket bool) ([]*group, []types.Type, error) {
	es, err := s.live(ctx)
	if err != nil {
		return nil, nil, err
	}
	_, ts := s.partitionTypes()
	m := map[string]*group{}
	var out []*group
	for i := range es {
		e := &es[i]
		k := string(e.Partition)
		if byBucket {
			k += "/" + strconv.Itoa(int(e.Bucket))
		}
		g := m[k]
		if g == nil {
			ds, err := binrow.Decode(e.Partition, ts)
			if err != nil {
				return nil, nil, err
			}
			g = &group{partition: ds, bucket: e.Bucket, total: e.TotalBuckets, deletesKnown: true}
			m[k] = g
			out = append(out, g)
		}
		g.rows += e.File.Rows
		g.size += e.File.Size
		g.files++
		g.last = max(g.last, e.File.CreationMillis)
		if e.File.DeleteRows < 0 {
			g.deletesKnown = false
		} else {
			g.deletes += e.File.DeleteRows
		}
	}
	sort.SliceStable(out, func(i, j int) bool {
		a, b := rowText(ts, out[i].partition, "", ""), rowText(ts, out[j].partition, "", "")
		if a != b {
			return a < b
		}
		return out[i].bucket < out[j].bucket
	})
	return out, ts, nil
}

func (g *group) lastTime() types.Datum {
	if g.last == 0 {
		return nil
	}
	return millis(g.last)
}

var partitionFields = types.Schema{
	field("partition", text), field("record_count", bigint), field("file_size_in_bytes", bigint), field("file_count", bigint),
	field("last_update_time", ts3), field("created_at", ts3), field("created_by", text), field("updated_by", text), field("options", text),
	field("total_buckets", int4), field("done", bool1), field("deleted_record_count", bigint),
}

func fillPartitions(ctx context.Context, src *Source, add func(...types.Datum)) error {
	gs, ts, err := src.groups(ctx, false)
	if err != nil {
		return err
	}
	names, _ := src.partitionTypes()
	for _, g := range gs {
		var parts []string
		for i, n := range names {
			v := castText(ts[i], g.partition[i])
			if g.partition[i] == nil {
				v = "null"
			}
			parts = append(parts, n+"="+v)
		}
		var deleted types.Datum
		if g.deletesKnown {
			deleted = g.deletes
		}
		add(strings.Join(parts, "/"), g.rows, g.size, g.files, g.lastTime(), nil, nil, nil, nil, int64(g.total), false, deleted)
	}
	return nil
}

var bucketFields = types.Schema{
	field("partition", text), field("bucket", int4), field("record_count", bigint), field("file_size_in_bytes", bigint),
	field("file_count", bigint), field("last_update_time", ts3),
}

func fillBuckets(ctx context.Context, src *Source, add func(...types.Datum)) error {
	gs, ts, err := src.groups(ctx, true)
	if err != nil {
		return err
	}
	for _, g := range gs {
		add(rowText(ts, g.partition, "{", "}"), int64(g.bucket), g.rows, g.size, g.files, g.lastTime())
	}
	return nil
}
