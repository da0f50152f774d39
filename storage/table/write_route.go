package table

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
)

// router finds the bucket of each row of a batch. Buckets are numbered in the
// order in which they are met.
type router struct {
	st        *state
	rule      *bucketRule
	partCols  []int
	partTypes []types.Type

	dyn    *dynamicBuckets  // of a table with dynamic buckets
	counts map[string]int32 // numbers of buckets by partition, of a table with postponed ones

	parts   map[string]*target
	targets []*bucketTarget
}

// target is one partition.
type target struct {
	image   []byte
	path    string // "k=v/"
	buckets map[int32]uint32
	checked bool  // for its files' number of buckets
	count   int32 // number of buckets, of a table with postponed buckets; 0 = not known yet
}

// bucketTarget is one bucket that rows go to.
type bucketTarget struct {
	part   *target
	bucket int32
	dir    string // relative to the warehouse, with a slash at the end
}

func newRouter(st *state) (*router, error) {
	r := &router{st: st, parts: map[string]*target{}}
	var err error
	if r.rule, err = st.bucketRule(); err != nil {
		return nil, err
	}
	if r.partCols, err = columnsOf(st.schema, st.schema.PartitionKeys); err != nil {
		return nil, err
	}
	for _, c := range r.partCols {
		r.partTypes = append(r.partTypes, st.schema.Fields[c].Type)
	}
	return r, nil
}

// partition returns the partition of an image, which is copied.
func (r *router) partition(image []byte) (*target, error) {
	p, ok := r.parts[string(image)]
	if ok {
		return p, nil
	}
	vals, err := binrow.Decode(image, r.partTypes)
	if err != nil {
		return nil, fmt.Errorf("partition of a row: %w", err)
	}
	p = &target{image: append([]byte(nil), image...), buckets: map[int32]uint32{}}
	if p.path, err = PartitionPath(r.st.schema.PartitionKeys, r.partTypes, vals, r.st.options); err != nil {
		return nil, err
	}
	r.parts[string(p.image)] = p
	return p, nil
}

// target returns the number of a bucket.
func (r *router) target(dir string, p *target, bucket int32) uint32 {
	if n, ok := p.buckets[bucket]; ok {
		return n
	}
	n := uint32(len(r.targets))
	p.buckets[bucket] = n
	r.targets = append(r.targets, &bucketTarget{part: p, bucket: bucket, dir: dir + "/" + r.st.bucketPath(p.path, bucket) + "/"})
	return n
}

// route returns the target of every row; cols is indexed by table column. one is
// the target of all rows when dest is nil.
func (r *router) route(ctx context.Context, dir string, cols []arrow.Array, n int) (dest []uint32, one uint32, err error) {
	if r.dyn != nil {
		return r.routeDynamic(ctx, dir, cols, n)
	}
	if r.rule.postpone {
		return r.routePostpone(dir, cols, n)
	}
	buckets, err := r.rule.buckets(cols, n)
	if err != nil {
		return nil, 0, err
	}
	if len(r.partCols) == 0 {
		p, err := r.partition(noPartition)
		if err != nil {
			return nil, 0, err
		}
		if buckets == nil {
			return nil, r.target(dir, p, 0), nil
		}
		dest = make([]uint32, n)
		ids := make([]uint32, max(r.rule.n, 1)) // + 1; 0 = not met
		for i, b := range buckets {
			if ids[b] == 0 {
				ids[b] = r.target(dir, p, b) + 1
			}
			dest[i] = ids[b] - 1
		}
		return oneTarget(dest)
	}
	arrs := make([]arrow.Array, len(r.partCols))
	for i, c := range r.partCols {
		arrs[i] = cols[c]
	}
	enc := binrow.NewArrowEncoder(r.partTypes, arrs)
	dest = make([]uint32, n)
	var p *target
	for i := range dest {
		if p, err = r.partitionAt(enc, i, p); err != nil {
			return nil, 0, err
		}
		b := int32(0)
		if buckets != nil {
			b = buckets[i]
		}
		dest[i] = r.target(dir, p, b)
	}
	return oneTarget(dest)
}

// partitionAt returns the partition of row i; last is that of the row before.
func (r *router) partitionAt(enc *binrow.ArrowEncoder, i int, last *target) (*target, error) {
	if len(r.partCols) == 0 {
		return r.partition(noPartition)
	}
	img, err := enc.Row(i)
	if err != nil {
		return nil, fmt.Errorf("partition of a row: %w", err)
	}
	if last != nil && string(last.image) == string(img) {
		return last, nil
	}
	return r.partition(img)
}

// routeDynamic is route by the index of hashes.
func (r *router) routeDynamic(ctx context.Context, dir string, cols []arrow.Array, n int) (dest []uint32, one uint32, err error) {
	hashes, err := r.dyn.hashRows(cols, n)
	if err != nil {
		return nil, 0, err
	}
	arrs := make([]arrow.Array, len(r.partCols))
	for i, c := range r.partCols {
		arrs[i] = cols[c]
	}
	enc := binrow.NewArrowEncoder(r.partTypes, arrs)
	dest = make([]uint32, n)
	var p *target
	var part *dynamicPart
	for i, h := range hashes {
		was := p
		if p == nil || len(r.partCols) > 0 {
			if p, err = r.partitionAt(enc, i, p); err != nil {
				return nil, 0, err
			}
		}
		if p != was {
			if part, err = r.dyn.part(ctx, p.image); err != nil {
				return nil, 0, err
			}
		}
		b, err := part.assign(h)
		if err != nil {
			return nil, 0, err
		}
		dest[i] = r.target(dir, p, b)
	}
	return oneTarget(dest)
}

// noPartition is the image of the partition of an unpartitioned table.
var noPartition = make([]byte, 8)

func oneTarget(dest []uint32) ([]uint32, uint32, error) {
	for _, d := range dest {
		if d != dest[0] {
			return dest, 0, nil
		}
	}
	if len(dest) == 0 {
		return nil, 0, nil
	}
	return nil, dest[0], nil
}

// buckets returns the bucket of every row, nil = all in bucket 0.
func (r *bucketRule) buckets(cols []arrow.Array, n int) ([]int32, error) {
	if r.n <= 1 {
		return nil, nil
	}
	out := make([]int32, n)
	arrs := make([]arrow.Array, len(r.cols))
	for i, c := range r.cols {
		arrs[i] = cols[c]
	}
	if len(arrs) == 1 && arrs[0].NullN() == 0 {
		switch a := arrs[0]; {
		case r.fn == binrow.HiveBucket:
		case r.types[0].Kind == types.Int8:
			r.ints64(out, vec.ViewOf[int64](a).V)
			return out, nil
		case r.types[0].Kind == types.Int4 || r.types[0].Kind == types.Date && r.fn == binrow.DefaultBucket:
			r.ints32(out, vec.ViewOf[int32](a).V)
			return out, nil
		}
	}
	if r.fn == binrow.DefaultBucket {
		enc := binrow.NewArrowEncoder(r.types, arrs)
		for i := range out {
			img, err := enc.Row(i)
			if err != nil {
				return nil, fmt.Errorf("bucket of a row: %w", err)
			}
			out[i] = binrow.BucketOf(img, r.n)
		}
		return out, nil
	}
	key := make([]types.Datum, len(arrs))
	for i := range out {
		for k, a := range arrs {
			key[k] = vec.DatumAt(a, r.types[k], i)
		}
		b, ok := binrow.Bucket(r.fn, r.types, key, r.n)
		if !ok {
			return nil, fmt.Errorf("bucket of a row: the bucket function takes no such key")
		}
		out[i] = b
	}
	return out, nil
}

// ints64 and ints32 are the common key of one integer: a row image of 16 bytes.
func (r *bucketRule) ints64(out []int32, v []int64) {
	if r.fn == binrow.ModBucket {
		for i, x := range v {
			out[i] = floorMod(x, r.n)
		}
		return
	}
	var img [16]byte
	for i, x := range v {
		binary.LittleEndian.PutUint64(img[8:], uint64(x))
		out[i] = binrow.BucketOf(img[:], r.n)
	}
}

func (r *bucketRule) ints32(out []int32, v []int32) {
	if r.fn == binrow.ModBucket {
		for i, x := range v {
			out[i] = floorMod(int64(x), r.n)
		}
		return
	}
	var img [16]byte
	for i, x := range v {
		binary.LittleEndian.PutUint32(img[8:], uint32(x))
		out[i] = binrow.BucketOf(img[:], r.n)
	}
}

func floorMod(x int64, n int32) int32 {
	m := x % int64(n)
	if m < 0 {
		m += int64(n)
	}
	return int32(m)
}
