package table

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/paimon-sql/paimon-sql/internal/cores"
	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// AnalyzeOptions say what Analyze looks at.
type AnalyzeOptions struct {
	Branch string
	// Columns by name; nil = all but blobs, and an empty list = rows only. What is
	// known of other columns is kept.
	Columns []string
	Account *mem.Account // nil = memory is not accounted for
	Slots   *mem.Slots   // CPU slots of the process; nil = none
	Workers int          // 0 = GOMAXPROCS
	// Publish, when not nil, is called before the commit: it may wait; done is called
	// when the commit is through.
	Publish func(ctx context.Context) (done func(), err error)
}

// AnalyzeReport says what Analyze found.
type AnalyzeReport struct {
	SnapshotID int64 // that was published; 0 = the table has none, and nothing was done
	Scanned    int64 // the snapshot that was looked at
	Splits     int
	Columns    int   // that were looked at
	Rows       int64 // that a query sees
	Total      int64 // in the data files
	Bytes      int64 // of the data files
}

// Analyze reads the newest state of a branch once and publishes what it finds as a
// statistics file, with a snapshot of kind ANALYZE. Nothing that others commit
// meanwhile is a conflict: the file says which snapshot it is of.
func (t *FileStore) Analyze(ctx context.Context, o AnalyzeOptions) (*AnalyzeReport, error) {
	at, err := t.Resolve(ctx, snapshot.Ref{Branch: o.Branch})
	if err != nil {
		return nil, err
	}
	if at.Empty {
		return &AnalyzeReport{}, nil
	}
	sch, err := t.Schema(ctx, at)
	if err != nil {
		return nil, err
	}
	cols, err := analyzed(sch.Fields, o.Columns)
	if err != nil {
		return nil, err
	}
	a := &analysis{t: t, o: o, scan: Scan{At: at, Columns: cols, Limit: -1}}
	p, err := t.Plan(ctx, a.scan)
	if err != nil {
		return nil, err
	}
	for _, c := range cols {
		a.fields = append(a.fields, sch.Fields[c])
	}
	found, rows, err := a.run(ctx, p.Splits)
	if err != nil {
		return nil, err
	}
	all, err := t.Stats(ctx, at)
	if err != nil {
		return nil, err
	}
	total := rows
	if n := at.Snap.TotalRecordCount; n != nil {
		total = *n
	}
	size := inProportion(all.Bytes, float64(min(rows, total)), float64(total))
	s := &Statistics{SnapshotID: at.Snap.ID, SchemaID: sch.ID, Rows: &rows, Bytes: &size, Total: &total, Columns: map[string]*ColumnStatistics{}}
	t.keepColumns(ctx, at.Snap, s, sch.Fields)
	for _, c := range found {
		unique := len(sch.PrimaryKeys) == 1 && sch.PrimaryKeys[0] == c.f.Name
		s.Columns[c.f.Name] = c.result(unique)
	}
	r := &AnalyzeReport{Scanned: at.Snap.ID, Splits: len(p.Splits), Columns: len(cols), Rows: rows, Total: total, Bytes: all.Bytes}
	r.SnapshotID, err = t.publishStatistics(ctx, s, o)
	return r, err
}

// analyzed returns the positions of the columns to look at.
func analyzed(fields types.Schema, names []string) ([]int, error) {
	cols := []int{}
	if names == nil {
		for i, f := range fields {
			if analyzable(f.Type) {
				cols = append(cols, i)
			}
		}
		return cols, nil
	}
	for _, n := range names {
		i := fields.Index(n)
		if i < 0 {
			return nil, fmt.Errorf("column %q does not exist", n)
		}
		if !slices.Contains(cols, i) {
			cols = append(cols, i)
		}
	}
	return cols, nil
}

// keepColumns lays what was known of the columns under s, as far as it is of the same
// schema. Counts are of so many rows, and change with them.
func (t *FileStore) keepColumns(ctx context.Context, snap *snapshot.Snapshot, s *Statistics, fields types.Schema) {
	if snap.Statistics == "" {
		return
	}
	old, err := t.Statistics(ctx, snap.Statistics)
	if err != nil || old.SchemaID != s.SchemaID || old.Rows == nil {
		return // made anew
	}
	for name, c := range old.Columns {
		if i := fields.Index(name); i < 0 || fields[i].ID != c.ID {
			continue
		}
		if c.Nulls != nil {
			n := min(*s.Rows, inProportion(*c.Nulls, float64(*s.Rows), float64(*old.Rows)))
			c.Nulls = &n
		}
		if c.Distinct != nil {
			n := min(*c.Distinct, *s.Rows)
			c.Distinct = &n
		}
		s.Columns[name] = c
	}
}

// publishStatistics writes s and commits it. A file that no snapshot names is
// deleted again.
func (t *FileStore) publishStatistics(ctx context.Context, s *Statistics, o AnalyzeOptions) (int64, error) {
	name, err := t.writeStatistics(ctx, s)
	if err != nil {
		return 0, err
	}
	drop := func(err error) (int64, error) {
		return 0, errors.Join(err, t.env.IO.Delete(context.WithoutCancel(ctx), t.statisticsPath(name)))
	}
	if o.Publish != nil {
		done, err := o.Publish(ctx)
		if err != nil {
			return drop(err)
		}
		defer done()
	}
	id, err := t.Commit(ctx, commit.Changes{Kind: commit.Analyze, Branch: o.Branch, Base: s.SnapshotID, Statistics: name})
	var unknown *commit.UnknownOutcomeError
	if err != nil && !errors.As(err, &unknown) {
		return drop(err)
	}
	return id, err
}

// analysis is the scan of one Analyze.
type analysis struct {
	t      *FileStore
	o      AnalyzeOptions
	scan   Scan
	fields []types.Field
	next   atomic.Int64 // split
}

// analyzeRows is how many rows a batch has.
const analyzeRows = 8192

// run reads the splits side by side.
func (a *analysis) run(ctx context.Context, splits []Split) ([]*columnSketch, int64, error) {
	workers := a.o.Workers
	if workers <= 0 {
		workers = cores.Count()
	}
	workers = max(1, min(workers, len(splits)))
	parts := make([][]*columnSketch, workers)
	rows := make([]int64, workers)
	held := make([]int64, workers)
	defer func() {
		for _, n := range held {
			a.shrink(n)
		}
	}()
	g, gctx := errgroup.WithContext(ctx)
	for w := range workers {
		for _, f := range a.fields {
			parts[w] = append(parts[w], newColumnSketch(f))
		}
		g.Go(func() error {
			for {
				i := a.next.Add(1) - 1
				if i >= int64(len(splits)) {
					break
				}
				n, err := a.split(gctx, splits[i], parts[w], &held[w])
				rows[w] += n
				if err != nil {
					return err
				}
			}
			for _, c := range parts[w] {
				c.flush()
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, 0, err
	}
	all, total := parts[0], rows[0]
	for w := 1; w < workers; w++ {
		total += rows[w]
		for i, c := range all {
			c.merge(parts[w][i])
		}
	}
	return all, total, nil
}

// split reads one split.
func (a *analysis) split(ctx context.Context, sp Split, cols []*columnSketch, held *int64) (rows int64, err error) {
	if s := a.o.Slots; s != nil {
		if err := s.Acquire(ctx); err != nil {
			return 0, err
		}
		defer s.Release()
	}
	acc := a.o.Account
	if acc == nil {
		acc = mem.NewRoot("max_memory", 0)
	}
	rd, err := a.t.Read(ctx, a.scan, sp, ReadOptions{Account: acc, BatchRows: analyzeRows})
	if err != nil {
		return 0, err
	}
	defer rd.Close() //nolint:errcheck // read only
	for {
		if err := context.Cause(ctx); err != nil {
			return rows, err
		}
		b, err := rd.Next(ctx)
		if err != nil || b == nil {
			return rows, err
		}
		b = vec.Compact(b)
		rows += int64(b.N)
		size := int64(0)
		for i, c := range cols {
			c.add(b.Cols[i], b.N)
			size += c.memory()
		}
		if size > *held {
			if err := a.grow(size - *held); err != nil {
				return rows, err
			}
			*held = size
		}
	}
}

func (a *analysis) grow(n int64) error {
	if a.o.Account == nil {
		return nil
	}
	return a.o.Account.Grow(n)
}

func (a *analysis) shrink(n int64) {
	if a.o.Account != nil {
		a.o.Account.Shrink(n)
	}
}
