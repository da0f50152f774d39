package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

const compactDoc = `Compacts a table in a process of its own, beside whatever servers and engines
write it: a table with 'write-only' = 'true' is compacted by nothing else. What
another writer has changed meanwhile is left to the next run (lost_races).

Once:     what was done is printed on standard output.
--watch:  again and again until SIGINT or SIGTERM, a line for each compaction that
          published a snapshot; errors are printed, and the next round tries again.
Progress is printed on standard error. Exit code: 0 = done, or stopped by a signal
with --watch; 1 = failed; 2 = wrong usage.

`

// compactJob is a compaction job of its own: sys.compact in this process.
type compactJob struct {
	a        *app
	c        *local
	table    string
	call     string
	expire   bool
	interval time.Duration
}

// compact is the subcommand.
func (a *app) compact(ctx context.Context, args []string) error {
	fs := newFlags(a, "compact")
	fs.String("warehouse", "", "path or URI of the warehouse")
	fs.String("table", "", "the table, as schema.table")
	fs.Bool("full", false, "rewrite everything into the highest level, not only what is worth it")
	fs.String("partition", "", "partitions to compact, such as 'day=2026-01-01,hour=3;day=2026-01-02'")
	fs.String("where", "", "condition over partition columns: which partitions to compact")
	fs.String("partition-idle-time", "", "only partitions that got no file for so long, such as '1 d'")
	fs.String("bucket", "", "buckets to compact, such as '0-3,8'")
	fs.String("options", "", "table options of this job, as key=value, by comma")
	fs.String("order", "", "sort the rows of an append table: zorder, hilbert or order")
	fs.String("by", "", "columns of --order, by comma")
	fs.Bool("expire", true, "expire snapshots as the table's options say after a compaction")
	fs.Bool("watch", false, "go on until stopped")
	fs.Duration("interval", 10*time.Second, "pause between two rounds of --watch")
	fs.Bool("quiet", false, "no progress on standard error")
	fs.String("memory", "", "memory that the job may use, such as 4GB; empty = half of the machine's")
	fs.String("temp-dir", "", "where temporary files are put; empty = the system's")
	fs.String("log-level", "warn", "debug, info, warn or error")
	fs.doc = compactDoc
	if err := fs.parse(args); err != nil {
		return err
	}
	if fs.value("warehouse") == "" {
		return usagef("--warehouse is missing")
	}
	if fs.value("table") == "" {
		return usagef("--table is missing")
	}
	interval, _ := time.ParseDuration(fs.value("interval")) // the flag has checked it
	if interval <= 0 {
		return usagef("--interval must be more than 0")
	}
	if fs.on("watch") && fs.value("order") != "" {
		return usagef("--order sorts everything each time, so it cannot be used with --watch: see the table option clustering.incremental")
	}
	log, err := logger(a.err, fs.value("log-level"), "text")
	if err != nil {
		return err
	}
	ec, err := engineConfig(fs, nil, log)
	if err != nil {
		return err
	}
	if err := checkWarehouse(ctx, ec.Warehouse, log); err != nil {
		return err
	}
	ec.Settings["paimon.maintenance"] = "off" // it would do the same
	c, err := openLocal(ctx, ec, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, stop := untilSignal(ctx)
	defer stop()
	j := &compactJob{a: a, c: c, table: fs.value("table"), expire: fs.on("expire"), interval: interval}
	strategy := "minor"
	if fs.on("full") {
		strategy = "full"
	}
	call := []string{"\"table\" => " + sqlString(j.table), "compact_strategy => " + sqlString(strategy)}
	for _, f := range [][2]string{
		{"partition", "partitions"}, {"where", "where"}, {"partition-idle-time", "partition_idle_time"}, {"bucket", "buckets"}, {"options", "options"},
		{"order", "order_strategy"}, {"by", "order_by"},
	} {
		if v := fs.value(f[0]); v != "" {
			call = append(call, `"`+f[1]+`" => `+sqlString(v))
		}
	}
	j.call = "CALL sys.compact(" + strings.Join(call, ", ") + ")"
	if !fs.on("quiet") {
		defer j.progress(ctx)()
	}
	if fs.on("watch") {
		return j.watch(ctx)
	}
	return j.once(ctx)
}

// once compacts and prints what sys.compact says.
func (j *compactJob) once(ctx context.Context) error {
	out := bufio.NewWriter(j.a.out)
	p, err := newPrinter("table", out)
	if err != nil {
		return err
	}
	if err := j.a.runText(ctx, j.c, j.call, &results{p: p, out: out, err: j.a.err}); err != nil {
		return err
	}
	if err := j.expireSnapshots(ctx); err != nil {
		return err
	}
	return out.Flush()
}

// watch compacts in rounds until ctx ends.
func (j *compactJob) watch(ctx context.Context) error {
	t := time.NewTicker(j.interval)
	defer t.Stop()
	for {
		row, err := j.query(ctx, j.call)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			j.a.printError(err, j.call)
		case row["snapshot_id"] != nil:
			fmt.Fprintf(j.a.out, "%s snapshot %v: %v files became %v, %v rows became %v, %v bytes written, %v races lost\n",
				time.Now().UTC().Format(time.RFC3339), row["snapshot_id"], row["files_before"], row["files_after"], row["rows_before"], row["rows_after"],
				row["bytes_written"], row["lost_races"])
			if err := j.expireSnapshots(ctx); err != nil && !errors.Is(err, errReported) {
				return err
			}
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// expireSnapshots does what the table's options say: a writer of a write-only table
// does not.
func (j *compactJob) expireSnapshots(ctx context.Context) error {
	if !j.expire {
		return nil
	}
	q := "CALL sys.expire_snapshots(" + sqlString(j.table) + ")"
	if _, err := j.query(ctx, q); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		j.a.printError(err, q)
		return errReported
	}
	return nil
}

// query runs a statement that yields one row.
func (j *compactJob) query(ctx context.Context, sql string) (map[string]types.Datum, error) {
	pid, secret := j.c.s.Key()
	stop := context.AfterFunc(ctx, func() { j.c.e.Cancel(pid, secret) })
	defer stop()
	k := &oneRow{row: map[string]types.Datum{}}
	err := j.c.s.Query(context.WithoutCancel(ctx), sql, k)
	return k.row, err
}

// oneRow keeps the last row of a result.
type oneRow struct {
	cols []engine.Column
	row  map[string]types.Datum
}

func (k *oneRow) Columns(cols []engine.Column) error {
	k.cols = cols
	return nil
}

func (k *oneRow) Batch(_ context.Context, b *vec.Batch) error {
	b = vec.Compact(b)
	for i, c := range k.cols {
		if b.N > 0 {
			k.row[c.Name] = vec.DatumAt(b.Cols[i], c.Type, b.N-1)
		}
	}
	return nil
}

func (k *oneRow) Complete(string) error { return nil }

func (k *oneRow) Empty() error { return nil }

func (k *oneRow) Notice(*pgerr.Error) {}

func (k *oneRow) ParameterStatus(string, string) {}

// progress prints how far the compaction is, every second in which it got on, until
// the function returned is called.
func (j *compactJob) progress(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		t := time.NewTicker(time.Second)
		defer t.Stop()
		last := ""
		for {
			select {
			case <-t.C:
			case <-ctx.Done():
				return
			}
			for _, c := range j.c.e.Compactions() {
				line := fmt.Sprintf("%s: %s, %d of %d rows, %d bytes written", c.Table, c.Phase, c.Done, c.Total, c.Written)
				if line != last {
					fmt.Fprintln(j.a.err, line)
				}
				last = line
			}
		}
	}()
	return func() {
		cancel()
		wg.Wait()
	}
}

func sqlString(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
