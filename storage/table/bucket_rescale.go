package table

import (
	"context"
	"errors"
	"fmt"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// RescaleOptions say what to rescale.
type RescaleOptions struct {
	Branch string
	// Buckets is the new number of buckets; 0 = the table's option bucket.
	Buckets int32
	// Partitions are BinaryRow images; nil = all that hold files.
	Partitions [][]byte
	Account    *mem.Account
	Progress   func(done, total int64)                            // see CompactOptions
	Publish    func(ctx context.Context) (done func(), err error) // see CompactOptions
}

// RescaleReport says what a rescaling did.
type RescaleReport struct {
	SnapshotID int64 // 0 = there was nothing to rewrite
	Buckets    int32 // per partition
	Partitions int
	Rows       int64
	LostRaces  int // how often it began again because others wrote
}

// rescaleTries is how often a rescaling begins again.
const rescaleTries = 5

// Rescale rewrites partitions into another number of buckets, in one OVERWRITE
// snapshot (Java: RescaleAction.java). Rows that others wrote to one of them
// meanwhile are a conflict, and it begins again: nothing is lost. Rows that wait in
// bucket-postpone stay there.
func (t *FileStore) Rescale(ctx context.Context, o RescaleOptions) (*RescaleReport, error) {
	r := &RescaleReport{}
	for try := 1; ; try++ {
		err := t.rescale(ctx, o, r)
		var conflict *commit.ConflictError
		if errors.As(err, &conflict) && try < rescaleTries {
			r.LostRaces++
			continue
		}
		if err == nil && r.SnapshotID > 0 {
			err = t.settleRescaled(ctx, o)
		}
		return r, err
	}
}

func (t *FileStore) rescale(ctx context.Context, o RescaleOptions, report *RescaleReport) error {
	st, err := t.state(ctx, snapshot.Ref{Branch: o.Branch}, nil)
	if err != nil {
		return err
	}
	n, err := st.bucketCount()
	if err != nil {
		return err
	}
	if n == -1 || n < 0 && !st.primaryKey() {
		// Java's action would write fixed buckets below a schema that says dynamic ones,
		// which no ALTER can mend: it refuses to change bucket from -1.
		if st.primaryKey() {
			return &fileio.UnsupportedError{Feature: "rescaling dynamic buckets (bucket = -1), which grow in number by themselves and cannot be given one,"}
		}
		return &fileio.UnsupportedError{Feature: "rescaling a table without buckets (bucket = -1)"}
	}
	if o.Buckets != 0 {
		n = o.Buckets
	}
	if n <= 0 {
		return fmt.Errorf("%w: a table with postponed buckets has none", ErrNoBucketCount)
	}
	report.Buckets, report.Partitions, report.Rows = n, 0, 0
	if st.snap == nil {
		return nil
	}
	ref := snapshot.Ref{Kind: snapshot.ID, ID: st.snap.ID, Branch: st.branch.name, Schema: st.schema.ID + 1, Snap: st.snap}
	scan := Scan{At: ref, Limit: -1}
	plan, err := t.Plan(ctx, scan)
	if err != nil {
		return err
	}
	var wanted map[string]bool
	if o.Partitions != nil {
		wanted = map[string]bool{}
		for _, p := range o.Partitions {
			wanted[partitionName(p)] = true
		}
	}
	cols, err := columnsOf(st.schema, st.schema.PartitionKeys)
	if err != nil {
		return err
	}
	var ts []types.Type
	for _, c := range cols {
		ts = append(ts, st.schema.Fields[c].Type)
	}
	old, err := t.restore(ctx, st)
	if err != nil {
		return err
	}
	over := &commit.Replacement{KeepPostponed: true, Partitions: [][]byte{}}
	reads := &commit.ReadSet{Partitions: map[string]bool{}}
	for p, have := range old.total {
		// One whose rows have all been deleted has a number, too.
		if have != n && (wanted == nil || wanted[p]) {
			over.Partitions = append(over.Partitions, []byte(p))
			reads.Partitions[p] = true
		}
	}
	if len(over.Partitions) == 0 {
		return nil
	}
	var splits []Split
	total, read := int64(0), int64(0)
	for _, sp := range plan.Splits {
		image, err := binrow.Encode(ts, sp.Partition)
		if err != nil {
			return err
		}
		if reads.Partitions[partitionName(image)] {
			splits = append(splits, sp)
			total += sp.Rows
		}
	}
	w, err := t.Write(ctx, WriteOptions{At: ref, Account: o.Account, Overwrite: true, Options: map[string]string{"bucket": fmt.Sprint(n)}})
	if err != nil {
		return err
	}
	abort := func(err error) error { return errors.Join(err, w.Abort(context.WithoutCancel(ctx))) }
	for _, sp := range splits {
		rd, err := t.Read(ctx, scan, sp, ReadOptions{Account: o.Account, BatchRows: chunkRows})
		if err != nil {
			return abort(err)
		}
		for {
			b, err := rd.Next(ctx)
			if err == nil && b != nil {
				report.Rows += int64(b.Size())
				err = w.Write(ctx, b, nil)
			}
			if err != nil {
				return abort(errors.Join(err, rd.Close()))
			}
			if b == nil {
				break
			}
		}
		if err := rd.Close(); err != nil {
			return abort(err)
		}
		if read += sp.Rows; o.Progress != nil {
			o.Progress(read, total)
		}
	}
	c, err := w.Prepare(ctx)
	if err != nil {
		return abort(err)
	}
	c.Kind, c.Overwrite, c.Reads, c.Base = commit.Overwrite, over, reads, st.snap.ID
	// One sorted run per bucket goes to the highest level at once; see Commit.
	folded, dropped, err := t.Fold(ctx, c, ref, o.Account)
	if err != nil {
		return errors.Join(err, t.Discard(context.WithoutCancel(ctx), c))
	}
	c = folded
	if err := t.Discard(context.WithoutCancel(ctx), commit.Changes{Branch: c.Branch, Files: dropped}); err != nil {
		return errors.Join(err, t.Discard(context.WithoutCancel(ctx), c))
	}
	id, err := t.publish(ctx, c, o.Publish)
	if err != nil {
		return err
	}
	report.SnapshotID, report.Partitions = id, len(over.Partitions)
	return nil
}

// ErrNoBucketCount: a number of buckets must be given.
var ErrNoBucketCount = errors.New("the number of buckets must be given")

// settleRescaled takes level 0 up where Java's batch reads do not see it. As a rule
// there is none: what an overwrite writes goes to the highest level at once.
func (t *FileStore) settleRescaled(ctx context.Context, o RescaleOptions) error {
	st, err := t.state(ctx, snapshot.Ref{Branch: o.Branch}, nil)
	if err != nil || !st.primaryKey() || !st.looksUp() {
		return err
	}
	_, err = t.Compact(ctx, CompactOptions{Branch: o.Branch, Level0: true, Partitions: o.Partitions, Account: o.Account, Publish: o.Publish})
	return err
}
