package table

import (
	"context"
	"sync/atomic"

	"github.com/paimon-sql/paimon-sql/storage/compact"
	"github.com/paimon-sql/paimon-sql/storage/datafile"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
)

// do does a job. Nothing is left behind when it fails.
func (c *compaction) do(ctx context.Context, j *job) (*outcome, error) {
	out := &outcome{job: j}
	var told atomic.Int64
	rows := func(n int64) {
		told.Add(n)
		if c.o.Progress != nil {
			c.o.Progress(c.done.Add(n), c.total)
		}
	}
	var err error
	switch {
	case c.keyed:
		err = c.doKeyed(ctx, j, out, rows)
	case c.cluster != nil:
		err = c.doCluster(ctx, j, out, rows)
	default:
		err = c.doAppend(ctx, j, out, rows)
	}
	if err != nil {
		c.remove(ctx, out)
		return nil, err
	}
	rows(j.rows - told.Load()) // those that were merged away
	return out, nil
}

// replace notes that files become others.
func (o *outcome) replace(before, after []*manifest.DataFile) {
	add := func(kind int8, f *manifest.DataFile, like manifest.Entry) {
		like.Kind, like.File = kind, f
		o.files = append(o.files, like)
	}
	var like manifest.Entry
	for _, f := range before {
		like = o.job.entries[f]
		add(manifest.Delete, f, like)
		o.before++
		o.rowsIn += f.Rows
		o.live = append(o.live, f.Name)
	}
	for _, f := range after {
		add(manifest.Add, f, like)
		o.after++
		o.rowsOut += f.Rows
	}
}

func (c *compaction) doAppend(ctx context.Context, j *job, out *outcome, rows func(int64)) error {
	split := Split{Bucket: j.id.Bucket, Raw: true}
	var before []*manifest.DataFile
	for _, f := range j.pack {
		split.Files = append(split.Files, File{Meta: f.File, DV: c.refs[f.File.Name]})
		before = append(before, f.File)
	}
	free, err := c.charge(readMemory(before...))
	if err != nil {
		return err
	}
	r := newRawReader(&piece{read: c.keep, dir: j.dir}, c.scan, split, ReadOptions{BatchRows: 1 << 16, Counters: &format.Counters{}})
	after, err := c.write(ctx, j, r, 0, j.pack[0].File.MinSequence, out, rows)
	free()
	if err != nil {
		return err
	}
	out.replace(before, after)
	out.indexes, err = c.dropVectors(ctx, j, &out.made)
	return err
}

// write copies what r reads into new files of the job's bucket.
func (c *compaction) write(ctx context.Context, j *job, r SplitReader, level int32, first int64, out *outcome, rows func(int64)) ([]*manifest.DataFile, error) {
	defer r.Close() //nolint:errcheck // a reader
	w, err := datafile.New(datafile.Options{
		IO: c.t.env.IO, Dir: j.dir + "/", Format: c.t.env.formats["parquet"], Schema: c.p.schema, Table: c.p.options,
		Level: level, Source: 1, Account: c.o.Account, FirstSequence: first, RowIDs: c.p.tracksRows(),
	})
	if err != nil {
		return nil, err
	}
	_, err = compact.Copy(ctx, r, w, compact.CopyOptions{Keyed: c.keyed, Throttle: c.o.Throttle, Rows: rows})
	var files []*manifest.DataFile
	if err == nil {
		files, err = w.Close(ctx)
	}
	if err != nil {
		_ = w.Abort(context.WithoutCancel(ctx)) // orphans at worst
		return nil, err
	}
	for _, f := range files {
		out.made = append(out.made, dataPaths(j.dir, f)...)
		out.written += f.Size
	}
	return files, nil
}

// charge accounts for what reading holds.
func (c *compaction) charge(n int64) (free func(), err error) {
	if err := c.o.Account.Grow(n); err != nil {
		return nil, err
	}
	return func() { c.o.Account.Shrink(n) }, nil
}

// openFileMemory bounds what an open file's decoded window and pages take.
const openFileMemory = 2 << 20

// readMemory estimates what reading files one after the other holds.
func readMemory(files ...*manifest.DataFile) int64 {
	most := int64(0)
	for _, f := range files {
		most = max(most, min(4*f.Size, openFileMemory))
	}
	return most
}

// mergeMemory estimates what merging sections one after the other holds: one
// file of each run at a time.
func mergeMemory(sections [][][]File) int64 {
	most := int64(0)
	for _, s := range sections {
		n := int64(0)
		for _, run := range s {
			k := int64(0)
			for i := range run {
				k = max(k, readMemory(run[i].Meta))
			}
			n += k
		}
		most = max(most, n)
	}
	return most
}
