package table

import (
	"context"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// Locate computes bucket and key of rows. See Table.
func (t *FileStore) Locate(ctx context.Context, at snapshot.Ref, keys []arrow.Array, n int) (*Located, error) {
	st, err := t.state(ctx, at, nil)
	if err != nil {
		return nil, err
	}
	if err := st.refuseWrite(); err != nil {
		return nil, err
	}
	pk, err := columnsOf(st.schema, st.schema.PrimaryKeys)
	if err != nil {
		return nil, err
	}
	if len(pk) == 0 || len(keys) != len(pk) {
		return nil, fmt.Errorf("keys of %d columns are located in a table with a key of %d", len(keys), len(pk))
	}
	r, err := newRouter(st)
	if err != nil {
		return nil, err
	}
	// Partition and bucket key are columns of the key.
	cols := make([]arrow.Array, len(st.schema.Fields))
	for i, c := range pk {
		if keys[i].Len() != n {
			return nil, fmt.Errorf("%d keys have %d values of column %s", n, keys[i].Len(), st.schema.PrimaryKeys[i])
		}
		if keys[i].NullN() > 0 {
			return nil, &NullError{Column: st.schema.PrimaryKeys[i]}
		}
		cols[c] = keys[i]
	}
	if r.rule.cross {
		return st.locateAnywhere(cols, n)
	}
	for _, c := range r.rule.cols {
		if cols[c] == nil {
			return nil, fmt.Errorf("bucket-key column %s is not part of the primary key", st.schema.Fields[c].Name)
		}
	}
	// In a table with dynamic buckets all of a partition is one for this purpose: a
	// lock must not depend on what has been assigned meanwhile.
	dest, one, err := r.route(ctx, t.dir, cols, n)
	if err != nil {
		return nil, err
	}
	out := &Located{Bucket: make([]int32, n)}
	for i := range out.Bucket {
		if out.Bucket[i] = int32(one); dest != nil {
			out.Bucket[i] = int32(dest[i])
		}
	}
	for _, b := range r.targets {
		id := commit.BucketID{Partition: string(b.part.image), Bucket: b.bucket}
		if r.rule.dynamic || r.rule.postpone {
			id.Bucket = commit.AnyBucket
		}
		out.Buckets = append(out.Buckets, id)
	}
	var ts []types.Type
	var trimmed []arrow.Array
	names, err := columnsOf(st.schema, st.schema.TrimmedKey())
	if err != nil {
		return nil, err
	}
	for _, c := range names {
		ts, trimmed = append(ts, st.schema.Fields[c].Type), append(trimmed, cols[c])
	}
	out.Keys = mergetree.NewKeyCodec(ts).Bytes(trimmed, n)
	return out, nil
}

// locateAnywhere is Locate for keys that may be in any partition. Partition columns
// that are part of the key tell rows of equal file keys apart.
func (st *state) locateAnywhere(cols []arrow.Array, n int) (*Located, error) {
	out := &Located{Bucket: make([]int32, n)}
	var ts []types.Type
	var parts []arrow.Array
	for _, k := range st.schema.PartitionKeys {
		if c := st.schema.Fields.Index(k); cols[c] != nil {
			ts, parts = append(ts, st.schema.Fields[c].Type), append(parts, cols[c])
		}
	}
	ids := map[string]int32{}
	enc := binrow.NewArrowEncoder(ts, parts)
	for i := range n {
		name := commit.AnyPartition
		if len(ts) > 0 {
			img, err := enc.Row(i)
			if err != nil {
				return nil, err
			}
			name += string(img)
		}
		id, ok := ids[name]
		if !ok {
			id = int32(len(out.Buckets))
			ids[name] = id
			out.Buckets = append(out.Buckets, commit.BucketID{Partition: name, Bucket: commit.AnyBucket})
		}
		out.Bucket[i] = id
	}
	names, kts, err := keyTypes(st.schema)
	if err != nil {
		return nil, err
	}
	trimmed := make([]arrow.Array, len(names))
	for i, c := range names {
		trimmed[i] = cols[c]
	}
	out.Keys = mergetree.NewKeyCodec(kts).Bytes(trimmed, n)
	return out, nil
}
