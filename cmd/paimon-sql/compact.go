package main

import (
	"bufio"
	"context"
	"strings"
)

// compact is a compaction job of its own: sys.compact in this process, beside
// whatever server or engine writes the table.
func (a *app) compact(ctx context.Context, args []string) error {
	fs := newFlags(a, "compact")
	fs.String("warehouse", "", "path or URI of the warehouse")
	fs.String("table", "", "the table, as schema.table")
	fs.Bool("full", false, "rewrite everything into the highest level, not only what is worth it")
	fs.String("order", "", "not supported yet: sort append files by zorder, hilbert or order")
	fs.String("by", "", "not supported yet: columns of --order, by comma")
	fs.String("where", "", "condition over partition columns: which partitions to compact")
	fs.String("memory", "", "memory that the job may use, such as 4GB; empty = half of the machine's")
	fs.String("temp-dir", "", "where temporary files are put; empty = the system's")
	fs.String("log-level", "warn", "debug, info, warn or error")
	if err := fs.parse(args); err != nil {
		return err
	}
	if fs.value("warehouse") == "" {
		return usagef("--warehouse is missing")
	}
	if fs.value("table") == "" {
		return usagef("--table is missing")
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
	c, err := openLocal(ctx, ec, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, stop := untilSignal(ctx)
	defer stop()
	strategy := "minor"
	if fs.on("full") {
		strategy = "full"
	}
	call := []string{"\"table\" => " + sqlString(fs.value("table")), "compact_strategy => " + sqlString(strategy)}
	for _, f := range [][2]string{{"order", "order_strategy"}, {"by", "order_by"}, {"where", "where"}} {
		if v := fs.value(f[0]); v != "" {
			call = append(call, `"`+f[1]+`" => `+sqlString(v))
		}
	}
	out := bufio.NewWriter(a.out)
	p, err := newPrinter("table", out)
	if err != nil {
		return err
	}
	r := &results{p: p, out: out, err: a.err}
	if err := a.runText(ctx, c, "CALL sys.compact("+strings.Join(call, ", ")+")", r); err != nil {
		return err
	}
	return out.Flush()
}

func sqlString(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
