package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/demo"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// demo makes the demo tables in a warehouse, if they are not there, and on
// request runs five queries on them.
func (a *app) demo(ctx context.Context, args []string) error {
	fs := newFlags(a, "demo")
	fs.String("warehouse", "", "path or URI of the warehouse")
	fs.Bool("queries", false, "run five queries on the tables")
	fs.String("memory", "", "memory that the queries may use, such as 4GB; empty = half of the machine's")
	fs.String("temp-dir", "", "where temporary files are put; empty = the system's")
	if err := fs.parse(args); err != nil {
		return err
	}
	if fs.value("warehouse") == "" {
		return usagef("--warehouse is missing")
	}
	w, err := fileio.Open(fs.value("warehouse"))
	if err != nil {
		return err
	}
	made, err := demo.Lay(ctx, w)
	if err != nil {
		return err
	}
	if len(made) > 0 {
		fmt.Fprintf(a.out, "made %d demo tables in %s: %s\n", len(made), fs.value("warehouse"), strings.Join(demo.Tables, ", "))
	} else {
		fmt.Fprintf(a.out, "the demo tables are in %s\n", fs.value("warehouse"))
	}
	if !fs.on("queries") {
		return nil
	}
	log, err := logger(a.err, "warn", "text")
	if err != nil {
		return err
	}
	ec, err := engineConfig(fs, nil, log)
	if err != nil {
		return err
	}
	c, err := openLocal(ctx, ec, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	out := bufio.NewWriter(a.out)
	p, err := newPrinter("table", out)
	if err != nil {
		return err
	}
	r := &results{p: p, out: out, err: a.err}
	for _, q := range demo.Queries {
		fmt.Fprintf(out, "paimon=# %s;\n", q)
		if err := a.runText(ctx, c, q, r); err != nil {
			return err
		}
	}
	return out.Flush()
}
