package table

import (
	"fmt"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// refuseWrite names what a table asks of its writers that is not supported:
// a writer that leaves something out would make the table wrong for others.
func (st *state) refuseWrite() error {
	un := func(f string) error { return &fileio.UnsupportedError{Feature: "writing to a table with " + f} }
	if err := st.refuse(); err != nil {
		return err
	}
	o := st.options
	for _, f := range []string{"chain-table.enabled"} {
		on, err := o.Bool(f, false)
		if err != nil {
			return err
		}
		if on {
			return un(f)
		}
	}
	if key := schema.LeavesTable(o); key != "" {
		return un(key + " = " + o[key])
	}
	for k, none := range map[string]string{"data-file.external-paths.strategy": "none", "metadata.iceberg.storage": "disabled"} {
		if v := o.Enum(k, none); v != none {
			return un(k + " = " + v)
		}
	}
	if f := o.Enum("file.format", "parquet"); f != "parquet" {
		return un("file.format = " + f)
	}
	for _, item := range o.List("file.format.per.level") {
		if _, f, _ := strings.Cut(strings.ToLower(item), ":"); strings.TrimSpace(f) != "parquet" {
			return un("file.format.per.level = " + item)
		}
	}
	for _, f := range st.schema.Fields {
		if name := unwritable(f.Type); name != "" {
			return un("a " + name + " column (" + f.Name + ")")
		}
	}
	if !st.primaryKey() {
		return nil
	}
	if _, err := st.newEngine(nil); err != nil {
		return err
	}
	switch p := o.Enum("changelog-producer", "none"); p {
	case "none", "input", "lookup", "full-compaction":
	default:
		return un("changelog-producer = " + p)
	}
	if _, err := o.Bool("deletion-vectors.enabled", false); err != nil {
		return err
	}
	n, err := st.bucketCount()
	if err != nil {
		return err
	}
	switch {
	case n != -1 && st.crossPartition():
		return un("a primary key that does not hold every partition column and fixed buckets")
	case n == postponeBucket:
		direct, err := o.Bool("postpone.batch-write-fixed-bucket", true)
		if err != nil {
			return err
		}
		if p := o.Enum("changelog-producer", "none"); !direct && p == "input" {
			return un("postponed buckets, postpone.batch-write-fixed-bucket = false and changelog-producer = " + p)
		}
	case n == -1 || n > 0:
	default:
		return un(fmt.Sprintf("a primary key and bucket = %d", n))
	}
	return nil
}

func inList(l []string, s string) bool {
	for _, x := range l {
		if x == s {
			return true
		}
	}
	return false
}

// unwritable names the Paimon type in t that cannot be written, "" for none.
func unwritable(t types.Type) string {
	switch {
	case t.Fixed > 0:
		return "VECTOR"
	case t.Lake == types.LakeBlob:
		return "BLOB"
	}
	for _, e := range []*types.Type{t.Key, t.Elem} {
		if e != nil {
			if s := unwritable(*e); s != "" {
				return s
			}
		}
	}
	if t.Kind == types.Row {
		for _, f := range t.Fields {
			if s := unwritable(f.Type); s != "" {
				return s
			}
		}
	}
	return ""
}

// bucketCount is the option bucket.
func (st *state) bucketCount() (int32, error) {
	n, err := st.options.Int("bucket", -1)
	if err != nil {
		return 0, err
	}
	if n < -2 || n == 0 || n > 1<<30 {
		return 0, fmt.Errorf("option \"bucket\" is %d", n)
	}
	return int32(n), nil
}

// bucketRule says which bucket a row goes to.
type bucketRule struct {
	n int32 // -1 = no buckets or dynamic ones, which is also what entries say
	// dynamic: an index says it (dynamicBuckets).
	dynamic bool
	cross   bool // an index of all keys says it (crossBuckets)
	// postpone: each partition has a number of its own, a new one fresh; unless
	// direct, rows go to bucket-postpone.
	postpone, direct bool
	fresh            int32
	fn               binrow.BucketFunction
	cols             []int // of the table's schema
	types            []types.Type
}

// bucketRule reads bucket, bucket-key and bucket-function.type.
func (st *state) bucketRule() (*bucketRule, error) {
	r := &bucketRule{}
	var err error
	if r.n, err = st.bucketCount(); err != nil {
		return nil, err
	}
	if r.n == -1 {
		r.cross = st.crossPartition()
		r.dynamic = st.primaryKey() && !r.cross
		return r, nil
	}
	if r.n == postponeBucket && st.primaryKey() {
		if err := r.postponeRule(st); err != nil {
			return nil, err
		}
	} else if r.n <= 0 {
		return nil, &fileio.UnsupportedError{Feature: fmt.Sprintf("writing to a table with bucket = %d", r.n)}
	}
	names := st.options.List("bucket-key")
	if len(names) == 0 {
		names = st.schema.TrimmedKey()
	}
	if len(names) == 0 {
		return nil, &fileio.UnsupportedError{Feature: fmt.Sprintf("writing to an append table with bucket = %d and without bucket-key", r.n)}
	}
	if r.cols, err = columnsOf(st.schema, names); err != nil {
		return nil, err
	}
	for _, c := range r.cols {
		r.types = append(r.types, st.schema.Fields[c].Type)
	}
	switch f := st.options.Enum("bucket-function.type", "default"); f {
	case "default":
	case "mod":
		r.fn = binrow.ModBucket
		if len(r.types) != 1 || r.types[0].Kind != types.Int4 && r.types[0].Kind != types.Int8 {
			return nil, &fileio.UnsupportedError{Feature: "writing to a table with bucket-function.type = mod and a bucket key other than one INT or BIGINT column"}
		}
	case "hive":
		r.fn = binrow.HiveBucket
	default:
		return nil, &fileio.UnsupportedError{Feature: "writing to a table with bucket-function.type = " + f}
	}
	return r, nil
}

// writeFormat is the format that data files are written in.
func (e *Env) writeFormat() (format.Format, error) { return e.formatOf("x.parquet") }
