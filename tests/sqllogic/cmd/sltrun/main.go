// Command sltrun runs .slt files against any server that speaks the protocol.
//
//	go run ./tests/sqllogic/cmd/sltrun -dsn postgres://u@host/db [-extended] [-rewrite] [-fails N] files or folders...
//
// Its last line is "N passed, N failed"; the exit status is 1 when some failed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/tests/sqllogic"
)

func main() {
	var (
		dsn      = flag.String("dsn", os.Getenv("SLT_DSN"), "server to ask")
		extended = flag.Bool("extended", false, "send statements by the extended protocol")
		fails    = flag.Int("fails", 5, "failures printed per file, -1 = all")
		types    = flag.Bool("types", false, "check column types, too")
		refusals = flag.Bool("refusals", false, "count 0A000 as refused, not failed")
		rewrite  = flag.Bool("rewrite", false, "write the server's answers into the files")
		plain    = flag.Bool("plain", false, "send CREATE TABLE without table options and partitions, for PostgreSQL")
		timeout  = flag.Duration("timeout", 30*time.Second, "per statement")
	)
	flag.Parse()
	opt := sqllogic.Options{DSN: *dsn, Types: *types, Refusals: *refusals, Timeout: *timeout, Plain: *plain}
	if *extended {
		opt.Mode = sqllogic.Extended
	}
	var total sqllogic.Result
	for _, p := range flag.Args() {
		files, err := find(p)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		for _, f := range files {
			if *rewrite {
				if err := sqllogic.Rewrite(context.Background(), f, opt); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(2)
				}
				continue
			}
			t0 := time.Now()
			r, err := sqllogic.RunFile(context.Background(), f, opt)
			if err != nil {
				fmt.Fprintln(os.Stderr, f, err)
				os.Exit(2)
			}
			total.Add(r)
			fmt.Printf("%-60s %s  %.2fs\n", f, r, time.Since(t0).Seconds())
			for i, x := range r.Failures {
				if *fails >= 0 && i >= *fails {
					break
				}
				fmt.Printf("    line %d: %s\n        %.160s\n", x.Line, x.Why, strings.Join(strings.Fields(x.SQL), " "))
			}
		}
	}
	fmt.Println(total)
	fmt.Printf("%d passed, %d failed\n", total.Passed, total.Failed)
	if total.Failed > 0 {
		os.Exit(1)
	}
}

func find(p string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(p, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (strings.HasSuffix(path, ".slt") || strings.HasSuffix(path, ".slt.gz")) {
			out = append(out, path)
		}
		return err
	})
	return out, err
}
