package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/google/uuid"

	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// Postponed buckets: a key table with bucket = -2. Each partition has a number of
// buckets of its own, which its files say.
//
// With postpone.batch-write-fixed-bucket (the default of Java 2) rows go to the
// partition's buckets at once, as in a table with fixed buckets; a new partition
// gets postpone.default-bucket-num, else one. Java 1.4.2 and 2.1 read both.
// Without it they go, unmerged with anything, to files in bucket-postpone, which
// nobody reads until sys.compact puts their rows into buckets. Java writes Avro
// there; we write Parquet, sorted, one version per key: readers go by the name's
// ending. Source: PostponeBucketFileStoreWrite.java, PostponeUtils.java.

// postponeWriter names the files of this process: those of one name are put into
// buckets in the order in which they were made.
var postponeWriter = struct {
	user   string
	number int32
	files  atomic.Uint64
}{user: uuid.NewString(), number: rand.Int32()}

// postponePrefix begins the name of a new file in bucket-postpone.
func (st *state) postponePrefix() string {
	return fmt.Sprintf("%s-u-%s-s-%d-w-%016x-", st.options.String("data-file.prefix", "data-"), postponeWriter.user, postponeWriter.number, postponeWriter.files.Add(1))
}

// postponeRule reads what is particular to bucket = -2.
func (r *bucketRule) postponeRule(st *state) (err error) {
	r.postpone = true
	if r.direct, err = st.options.Bool("postpone.batch-write-fixed-bucket", true); err != nil {
		return err
	}
	n, err := st.options.Int("postpone.default-bucket-num", 1)
	if err != nil {
		return err
	}
	if n < 1 || n > 1<<30 {
		return fmt.Errorf("option \"postpone.default-bucket-num\" is %d", n)
	}
	r.fresh = int32(n)
	return nil
}

// routePostpone is route for partitions with a number of buckets each.
func (r *router) routePostpone(dir string, cols []arrow.Array, n int) (dest []uint32, one uint32, err error) {
	arrs := make([]arrow.Array, len(r.partCols))
	for i, c := range r.partCols {
		arrs[i] = cols[c]
	}
	enc := binrow.NewArrowEncoder(r.partTypes, arrs)
	dest = make([]uint32, n)
	by := map[int32][]int32{} // buckets of all rows, by the number of buckets
	var p *target
	for i := range dest {
		if p == nil || len(r.partCols) > 0 {
			if p, err = r.partitionAt(enc, i, p); err != nil {
				return nil, 0, err
			}
		}
		if !r.rule.direct {
			dest[i] = r.target(dir, p, postponeBucket)
			continue
		}
		if p.count == 0 {
			p.count = r.rule.fresh
			if have := r.counts[string(p.image)]; have > 0 {
				p.count = have
			}
		}
		buckets, ok := by[p.count]
		if !ok {
			rule := *r.rule
			rule.n = p.count
			if buckets, err = rule.buckets(cols, n); err != nil {
				return nil, 0, err
			}
			by[p.count] = buckets
		}
		b := int32(0)
		if buckets != nil {
			b = buckets[i]
		}
		dest[i] = r.target(dir, p, b)
	}
	return oneTarget(dest)
}

// totalBuckets is what entries of a bucket say.
func (r *router) totalBuckets(b *bucketTarget) int32 {
	if r.rule.postpone && b.bucket != postponeBucket {
		return b.part.count
	}
	return r.rule.n
}

// settleTries is how often rows are put into buckets again because others wrote
// meanwhile.
const settleTries = 5

// settle moves the rows of bucket-postpone into buckets, as one COMPACT snapshot:
// the files go, and level-0 files of the real buckets come. The report counts them
// as files rewritten.
func (t *FileStore) settle(ctx context.Context, o CompactOptions) (*CompactReport, error) {
	report := &CompactReport{}
	for try := 1; ; try++ {
		st, err := t.state(ctx, snapshot.Ref{Branch: o.Branch}, o.Options)
		if err != nil {
			return report, err
		}
		if n, err := st.bucketCount(); err != nil || n != postponeBucket || st.snap == nil || !st.primaryKey() {
			return report, err
		}
		err = t.settleOnce(ctx, st, o, report)
		var conflict *commit.ConflictError
		if errors.As(err, &conflict) && try < settleTries {
			report.LostRaces++
			continue
		}
		return report, err
	}
}

func (t *FileStore) settleOnce(ctx context.Context, st *state, o CompactOptions, report *CompactReport) error {
	ref := snapshot.Ref{Kind: snapshot.ID, ID: st.snap.ID, Branch: st.branch.name, Schema: st.schema.ID + 1, Snap: st.snap}
	cols := make([]int, 0, len(st.schema.Fields)+1)
	for i := range st.schema.Fields {
		cols = append(cols, i)
	}
	p, err := t.newPlanner(ctx, Scan{At: ref, Columns: append(cols, PseudoKind), Limit: -1})
	if err != nil {
		return err
	}
	files, err := t.postponed(ctx, st, o.Partitions)
	if err != nil || len(files) == 0 {
		return err
	}
	old, err := t.restore(ctx, st)
	if err != nil {
		return err
	}
	w, err := t.newWriter(st, WriteOptions{At: ref, Account: o.Account, Options: o.Options})
	if err != nil {
		return err
	}
	abort := func(err error) error { return errors.Join(err, w.Abort(context.WithoutCancel(ctx))) }
	w.r.rule.direct = true
	if w.r.counts, err = st.settledCounts(files, old.total); err != nil {
		return abort(err)
	}
	for _, e := range files {
		if err := p.check(&File{Meta: e.File}); err != nil {
			return abort(err)
		}
		if o.Throttle != nil {
			if err := o.Throttle(ctx, e.File.Size); err != nil {
				return abort(err)
			}
		}
		part, err := p.partitionOf(e.Partition)
		if err != nil {
			return abort(err)
		}
		err = copyRows(ctx, p, p.bucketDir(part, e.Bucket), e.File, func(int64, int) ([]uint16, int) { return nil, -1 }, func(cols []arrow.Array, n int) error {
			last := len(cols) - 1
			kinds := make([]uint8, n)
			for i, k := range vec.ViewOf[int16](cols[last]).V {
				kinds[i] = uint8(k)
			}
			return w.Write(ctx, &vec.Batch{Schema: st.schema.Fields, Cols: cols[:last], N: n}, kinds)
		})
		if err != nil {
			return abort(err)
		}
	}
	c, err := w.Prepare(ctx)
	if err != nil {
		return abort(err)
	}
	after := len(c.Files)
	rows := int64(0)
	for i := range c.Files {
		rows += c.Files[i].File.Rows
		report.BytesWritten += c.Files[i].File.Size
	}
	for _, e := range files {
		e.Kind = manifest.Delete
		c.Files = append(c.Files, e)
	}
	// Rows that others put into the buckets meanwhile would have the same sequence
	// numbers.
	c.Kind, c.Base, c.Reads = commit.Compact, st.snap.ID, &commit.ReadSet{All: true}
	id, err := t.publish(ctx, c, o.Publish)
	if err != nil {
		return err
	}
	report.SnapshotID = id
	report.FilesBefore, report.FilesAfter, report.RowsAfter = report.FilesBefore+len(files), report.FilesAfter+after, report.RowsAfter+rows
	for _, e := range files {
		report.RowsBefore += e.File.Rows
		report.BytesRead += e.File.Size
	}
	return nil
}

// postponed returns the files of bucket-postpone of some partitions, nil = all, in
// the order in which their rows are to be put into buckets.
func (t *FileStore) postponed(ctx context.Context, st *state, parts [][]byte) ([]manifest.Entry, error) {
	live, err := st.publisher.Live(ctx, st.snap)
	if err != nil {
		return nil, err
	}
	var out []manifest.Entry
	for _, e := range live {
		if e.Bucket == postponeBucket && (parts == nil || slices.ContainsFunc(parts, func(p []byte) bool { return string(p) == string(e.Partition) })) {
			out = append(out, *e)
		}
	}
	slices.SortStableFunc(out, func(a, b manifest.Entry) int {
		return cmp.Or(cmp.Compare(string(a.Partition), string(b.Partition)), cmp.Compare(a.File.CreationMillis, b.File.CreationMillis), cmp.Compare(a.File.Name, b.File.Name))
	})
	return out, nil
}

// settledCounts are the numbers of buckets of the partitions of files: those that
// they have, else postpone.default-bucket-num, else by their rows or bytes
// (Java: PostponeUtils.createPostponeBucketNumResolver).
func (st *state) settledCounts(files []manifest.Entry, have map[string]int32) (map[string]int32, error) {
	out := maps.Clone(have)
	if _, ok := st.options["postpone.default-bucket-num"]; ok {
		return out, nil
	}
	byRows, err := st.options.Int("postpone.target-row-num-per-bucket", 0)
	if err != nil {
		return nil, err
	}
	bySize, err := st.options.Size("postpone.target-size-per-bucket", 1<<30)
	if err != nil {
		return nil, err
	}
	if byRows < 0 || bySize < 1 {
		return nil, fmt.Errorf("options \"postpone.target-row-num-per-bucket\" and \"postpone.target-size-per-bucket\" must be above 0")
	}
	size := map[string]int64{}
	for i := range files {
		if byRows > 0 {
			size[string(files[i].Partition)] += files[i].File.Rows
		} else {
			size[string(files[i].Partition)] += files[i].File.Size
		}
	}
	target := bySize
	if byRows > 0 {
		target = byRows
	}
	for p, n := range size {
		if out[p] <= 0 {
			out[p] = int32(min(max((n-1)/target+1, 1), 1<<20))
		}
	}
	return out, nil
}
