package table

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/cluster"
	"github.com/paimon-sql/paimon-sql/storage/compact"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// Append tables are clustered in two ways, both of them compactions (compact.go):
//
//	sort compaction   CompactOptions.Sort: every file of the partitions named is read,
//	                  the rows of each partition are sorted, and the files replaced
//	incremental       clustering.incremental: files are sorted runs of levels, as in a
//	                  primary-key table; what compact.Pick picks is sorted and goes to
//	                  a higher level (storage/table/cluster_pick.go)
//
// Either way the snapshot deletes the files that were read and no others: rows
// appended meanwhile stay, and where one of the files was rewritten the work is
// thrown away as that of any compaction. (Java's sort compaction overwrites the
// partition, and loses what is appended meanwhile.)

// SortOptions say how a sort compaction orders rows.
type SortOptions struct {
	Strategy cluster.Strategy // not None
	Columns  []string
}

// ClusterError says why a table cannot be clustered as it was asked for.
type ClusterError struct {
	Reason string
	// Column is the column that does not exist; "" = another reason.
	Column string
	// Unsupported says that the table is of a kind, or a column of a type, that is
	// not clustered; else the arguments are at fault.
	Unsupported bool
}

func (e *ClusterError) Error() string { return e.Reason }

func badCluster(f string, args ...any) error { return &ClusterError{Reason: fmt.Sprintf(f, args...)} }

func noCluster(f string, args ...any) error {
	return &ClusterError{Reason: fmt.Sprintf(f, args...), Unsupported: true}
}

// clustering is what a compaction sorts by.
type clustering struct {
	strategy    cluster.Strategy
	columns     []int // of the schema
	types       []types.Type
	varBytes    int
	memory      int64
	fan         int
	incremental bool
	local       bool     // sort what fits into memory, not all
	names       []string // as the option says
}

// Clusters reports whether a compaction with o would sort rows, and says as
// Compact does why it cannot.
func (t *FileStore) Clusters(ctx context.Context, o CompactOptions) (bool, error) {
	st, err := t.state(ctx, snapshot.Ref{Branch: o.Branch}, o.Options)
	if err != nil {
		return false, err
	}
	c, err := newClustering(st, &o)
	return c != nil, err
}

// sortMemory is the least that rows are sorted in.
const sortMemory = 1 << 20

// clustersItself reports whether an append table is clustered incrementally.
func (st *state) clustersItself() (bool, error) {
	if st.primaryKey() {
		return false, nil
	}
	return st.options.Bool("clustering.incremental", false)
}

// newClustering checks what o and the table's options ask for; nil = rows stay in
// their order.
func newClustering(st *state, o *CompactOptions) (*clustering, error) {
	itself, err := st.clustersItself()
	if err != nil || !itself && o.Sort == nil {
		return nil, err
	}
	c := &clustering{incremental: itself}
	switch {
	case o.Sort != nil:
		if err := sortable(st, o, itself); err != nil {
			return nil, err
		}
		c.strategy, c.names = o.Sort.Strategy, o.Sort.Columns
		if len(c.names) == 0 {
			return nil, badCluster("order_by names no columns")
		}
	default:
		names := st.options.List("clustering.columns")
		if len(names) == 0 {
			names = st.options.List("sink.clustering.by-columns")
		}
		if len(names) == 0 {
			return nil, badCluster("option \"clustering.columns\" is not set, which incremental clustering needs")
		}
		c.names = names
		name := st.options.String("clustering.strategy", st.options.String("sink.clustering.strategy", "auto"))
		c.strategy = cluster.Auto(len(names))
		if !strings.EqualFold(name, "auto") {
			s, ok := cluster.ParseStrategy(name)
			if !ok || s == cluster.None {
				return nil, badCluster("option \"clustering.strategy\" is \"%s\", which is none of auto, order, zorder, hilbert", name)
			}
			c.strategy = s
		}
		c.local = st.options.Enum("clustering.incremental.mode", "global-sort") == "local-sort"
	}
	if err := c.resolve(st.schema); err != nil {
		return nil, err
	}
	return c, c.limits(st.options, o)
}

// sortable refuses tables whose rows are not sorted. Source: CompactProcedure.java
// of Spark, SortCompactAction.java.
func sortable(st *state, o *CompactOptions, itself bool) error {
	s := o.Sort.Strategy
	evolves, err := st.options.Bool("data-evolution.enabled", false)
	if err != nil {
		return err
	}
	switch {
	case st.primaryKey():
		return noCluster("a sort compaction with strategy %s is for append tables only, this table has a primary key", s)
	case st.orderedBuckets():
		return noCluster("a sort compaction with strategy %s is for append tables with bucket = -1 only", s)
	case evolves:
		return noCluster("tables with data evolution cannot be sorted")
	case itself:
		return badCluster("the table has incremental clustering enabled, which allows no sort compaction")
	case o.Buckets != nil:
		return badCluster("buckets cannot be chosen for a sort compaction")
	}
	return nil
}

// resolve finds the columns.
func (c *clustering) resolve(s *schema.Table) error {
	for _, n := range c.names {
		i := s.Fields.Index(n)
		switch {
		case i < 0:
			return &ClusterError{Column: n, Reason: fmt.Sprintf("column \"%s\" to cluster by does not exist", n)}
		case !c.incremental && slices.Contains(s.PartitionKeys, n):
			return badCluster("column \"%s\" is a partition column: all rows that are sorted together have one value of it", n)
		case slices.Contains(c.columns, i):
			continue
		}
		c.columns = append(c.columns, i)
		c.types = append(c.types, s.Fields[i].Type)
	}
	if c.strategy == cluster.Hilbert && len(c.columns) < 2 {
		return badCluster("the strategy hilbert needs at least two columns")
	}
	_, err := c.codec()
	return err
}

// codec makes a codec, with scratch memory of its own.
func (c *clustering) codec() (*cluster.Codec, error) {
	k, err := cluster.NewCodec(c.strategy, c.types, c.varBytes)
	var bad *cluster.TypeError
	if errors.As(err, &bad) {
		return nil, noCluster("column \"%s\": %s", c.names[bad.Column], bad)
	}
	return k, err
}

// limits reads what memory and files sorting may use.
func (c *clustering) limits(opts schema.Options, o *CompactOptions) error {
	n, err := opts.Int("zorder.var-length-contribution", cluster.DefaultVarBytes)
	if err != nil {
		return err
	}
	if n < 1 {
		return badCluster("option \"zorder.var-length-contribution\" is %d, it must be above 0", n)
	}
	c.varBytes = int(min(n, 1<<20))
	if n, err = opts.Int("local-sort.max-num-file-handles", 128); err != nil {
		return err
	}
	c.fan = int(max(2, min(n, 1024)))
	if c.memory, err = opts.Size("write-buffer-size", 256<<20); err != nil {
		return err
	}
	if _, limit := o.Account.Limit(); limit > 0 {
		c.memory = min(c.memory, limit/(2*compactParallel))
	}
	c.memory = max(c.memory, sortMemory)
	return nil
}

// clusterJobs plans what is sorted in a bucket: files of one partition together.
func (c *compaction) clusterJobs(ctx context.Context, files []*manifest.DataFile, newJob func() *job) ([]*job, error) {
	level := int32(0)
	if c.cluster.incremental {
		unit, err := c.pickCluster(ctx, files)
		if err != nil || unit == nil {
			return nil, err
		}
		files, level = unit.Files(), unit.Level
	}
	j := newJob()
	j.level = level
	j.pack = appendFiles(files, c.dvs)
	compact.Order(j.pack)
	for _, f := range j.pack {
		if err := c.p.check(&File{Meta: f.File}); err != nil {
			return nil, err
		}
		j.rows += f.File.Rows
		j.bytes += f.File.Size
	}
	return []*job{j}, nil
}

// doCluster rewrites a job's files with their rows sorted.
func (c *compaction) doCluster(ctx context.Context, j *job, out *outcome, rows func(int64)) error {
	split := Split{Bucket: j.id.Bucket, Raw: true}
	var before []*manifest.DataFile
	first := j.pack[0].File.MinSequence
	for _, f := range j.pack {
		split.Files = append(split.Files, File{Meta: f.File, DV: c.refs[f.File.Name]})
		before = append(before, f.File)
		first = min(first, f.File.MinSequence)
	}
	free, err := c.charge(readMemory(before...))
	if err != nil {
		return err
	}
	defer free()
	codec, err := c.cluster.codec()
	if err != nil {
		return err
	}
	if codec.Samples() {
		if err := c.sample(ctx, j, split, codec); err != nil {
			return err
		}
	}
	// Rows are read before the first is written: each way is half of the progress.
	half := func() func(int64) {
		odd := int64(0)
		return func(n int64) {
			n += odd
			odd = n & 1
			rows(n / 2)
		}
	}
	src := newRawReader(&piece{read: c.keep, dir: j.dir}, c.scan, split, ReadOptions{BatchRows: 1 << 14, Counters: &format.Counters{}})
	defer src.Close() //nolint:errcheck // a reader
	r := cluster.NewReader(src, cluster.Options{
		Codec: codec, Columns: c.cluster.columns, Memory: c.cluster.memory, Account: c.o.Account, Dir: c.t.env.tempDir(),
		FanIn: c.cluster.fan, Local: c.cluster.local, Rows: half(),
	})
	after, err := c.write(ctx, j, r, j.level, first, out, half())
	if err != nil {
		return err
	}
	out.replace(before, after)
	out.indexes, err = c.dropVectors(ctx, j, &out.made)
	return err
}

// tempDir returns what makes the directory for temporary files.
func (e *Env) tempDir() func() (string, error) {
	if e.keys == nil {
		return nil
	}
	return e.keys.dir
}

// sampleRanges is from how many places of a job's files rows are sampled.
const sampleRanges = 64

// sample teaches the codec what values there are: rows from places that are spread
// evenly over all files, or all of them where they are few.
func (c *compaction) sample(ctx context.Context, j *job, split Split, codec *cluster.Codec) error {
	plan := *c.keep
	plan.columns, plan.fields = nil, nil
	for _, i := range c.cluster.columns {
		plan.columns = append(plan.columns, c.keep.columns[i])
		plan.fields = append(plan.fields, c.keep.fields[i])
	}
	total := int64(0)
	for i := range split.Files {
		total += split.Files[i].Meta.Rows
	}
	length, step := int64(cluster.SampleRows/sampleRanges), total/sampleRanges
	if total <= 2*cluster.SampleRows {
		length, step = total, total
	}
	var cols [][]arrow.Array
	var ns []int
	read := func(f File, from, to int64) error {
		one := Split{Bucket: split.Bucket, Raw: true, Files: []File{f}, Range: &format.RowRange{From: from, To: to}}
		r := newRawReader(&piece{read: &plan, dir: j.dir}, c.scan, one, ReadOptions{BatchRows: int(to - from), Counters: &format.Counters{}})
		defer r.Close() //nolint:errcheck // a reader
		for {
			b, err := r.Next(ctx)
			if err != nil || b == nil {
				return err
			}
			cols, ns = append(cols, b.Cols), append(ns, b.N)
		}
	}
	at, next := int64(0), int64(0) // the first row of a file, and of the next range, in all rows
	for _, f := range split.Files {
		end := at + f.Meta.Rows
		for next < end {
			from := max(next, at) - at
			to := min(next+length-at, f.Meta.Rows)
			if to > from {
				if err := read(f, from, to); err != nil {
					return err
				}
			}
			if next+length > end {
				break // the rest of the range lies in the next file
			}
			next += max(step, 1)
		}
		at = end
	}
	codec.Learn(cols, ns)
	return nil
}
