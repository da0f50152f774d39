// Package pruning asks random questions of random tables with every way of pruning, with
// none and with each left out: the answers are the same.
//
// PAIMON_SQL_SEED repeats a run, PAIMON_SQL_SEQUENCES says how many tables.
package pruning

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/sql/planner"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/tests/session"
)

func sorted(m map[string]string) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// rules are the optimizer's rules by which something is left out.
func rules() []string {
	var out []string
	for _, r := range planner.Rules() {
		if strings.HasPrefix(r, "prune_") || r == "runtime_filter" || r == "storage_filter" || r == "lookup" || strings.HasPrefix(r, "metadata_") {
			out = append(out, r)
		}
	}
	return out
}

// player tells one table's story.
type player struct {
	*tab
	s   *session.Session
	cov coverage
}

func (p *player) do(q string) error {
	p.log = append(p.log, q+";")
	_, err := p.s.Try(context.Background(), q)
	return err
}

func (p *player) fail(format string, args ...any) error {
	return fmt.Errorf("%w\n%s", fmt.Errorf(format, args...), strings.Join(p.log, "\n"))
}

func lines(rows [][]string) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		for k := range r {
			if r[k] == "-0" { // equal to 0: which of them stands for both is open
				r[k] = "0"
			}
		}
		out[i] = strings.Join(r, "|")
	}
	slices.Sort(out)
	return out
}

// compare asks once with every rule, once with none, and with each left out in turn.
func (p *player) compare(q question, turn int) error {
	ctx := context.Background()
	set := func(rule, v string) error {
		_, err := p.s.Try(ctx, "set paimon.rule_"+rule+" = "+v)
		return err
	}
	ask := func(off ...string) ([]string, error) {
		for _, r := range off {
			if err := set(r, "off"); err != nil {
				return nil, err
			}
		}
		rows, err := p.s.Try(ctx, q.sql)
		for _, r := range off {
			if err := set(r, "on"); err != nil {
				return nil, err
			}
		}
		return lines(rows), err
	}
	all := rules()
	want, err := ask(all...)
	if err != nil {
		return p.fail("%s: without pruning: %v", q.sql, err)
	}
	var full []string
	if !q.whole {
		rows, err := p.s.Try(ctx, q.sql[:strings.LastIndex(q.sql, " limit ")])
		if err != nil {
			return p.fail("%s: %v", q.sql, err)
		}
		full = lines(rows)
	}
	for _, off := range [][]string{nil, {all[turn%len(all)]}} {
		got, err := ask(off...)
		if err != nil {
			return p.fail("%s: without %v: %v", q.sql, off, err)
		}
		ok := slices.Equal(got, want)
		if !q.whole {
			ok = len(got) == len(want)
			for _, g := range got {
				_, found := slices.BinarySearch(full, g)
				ok = ok && found
			}
		}
		if !ok {
			return p.fail("%s\nwithout %v: %d rows\n  %s\nwithout pruning: %d rows\n  %s", q.sql, off, len(got), strings.Join(got, "\n  "), len(want), strings.Join(want, "\n  "))
		}
	}
	return nil
}

var (
	skippedFiles = regexp.MustCompile(`([a-z-]+[a-z]): (\d+)`)
	byRuntime    = regexp.MustCompile(`Runtime Filter: .*: (\d+) files and (\d+) rows removed`)
	skippedRows  = regexp.MustCompile(`File Indexes: .*, (\d+) rows skipped`)
)

// count notes what a question made the ways of pruning skip.
func (p *player) count(q question) error {
	rows, err := p.s.Try(context.Background(), "explain (analyze, costs off, timing off) "+q.sql)
	if err != nil {
		return p.fail("explain analyze %s: %v", q.sql, err)
	}
	for _, r := range rows {
		if _, by, ok := strings.Cut(r[0], "(skipped by "); ok && strings.Contains(r[0], "Files: ") {
			for _, m := range skippedFiles.FindAllStringSubmatch(by, -1) {
				n, _ := strconv.Atoi(m[2])
				p.cov["skipped: files by "+m[1]] += n
			}
		}
		if m := skippedRows.FindStringSubmatch(r[0]); m != nil {
			n, _ := strconv.Atoi(m[1])
			p.cov["skipped: rows by file indexes"] += n
		}
		if m := byRuntime.FindStringSubmatch(r[0]); m != nil {
			for i, what := range []string{"files", "rows"} {
				n, _ := strconv.Atoi(m[i+1])
				p.cov["skipped: "+what+" by runtime filters"] += n
			}
		}
		if strings.Contains(r[0], "not usable") {
			return p.fail("%s: %s", q.sql, r[0])
		}
	}
	return nil
}

// play makes a table, writes to it and asks.
func (p *player) play() error {
	if err := p.do(p.create()); err != nil {
		return p.fail("create: %v", err)
	}
	turn := p.r.IntN(100)
	for i := range 3 + p.r.IntN(6) {
		if err := p.do(p.insert()); err != nil {
			return p.fail("insert: %v", err)
		}
		switch p.r.IntN(8) {
		case 0:
			if q := p.alter(); q != "" {
				if err := p.do(q); err != nil {
					return p.fail("alter: %v", err)
				}
			}
		case 1:
			if p.opts["merge-engine"] == "" {
				if err := p.do(fmt.Sprintf("delete from %s where %s", p.name, p.predicate(1))); err != nil {
					return p.fail("delete: %v", err)
				}
			}
		case 2:
			if err := p.do(fmt.Sprintf("call sys.compact('d.%s', compact_strategy => '%s')", p.name, p.pick("full", "minor"))); err != nil {
				return p.fail("compact: %v", err)
			}
		}
		if i < 2 {
			continue
		}
		for range 12 {
			turn++
			q := p.ask()
			if err := p.compare(q, turn); err != nil {
				return err
			}
			if err := p.count(q); err != nil {
				return err
			}
		}
	}
	return p.do("drop table " + p.name)
}

const maxFailures = 4

// enough is of how many tables each way of pruning has something to skip.
const enough = 60

// TestPruning plays tables on all cores.
func TestPruning(t *testing.T) {
	seed := random.Seed(t)
	n, from := 60, 0
	if v, err := strconv.Atoi(os.Getenv("PAIMON_SQL_SEQUENCES")); err == nil {
		n = v
	}
	if v, err := strconv.Atoi(os.Getenv("PAIMON_SQL_STORY")); err == nil {
		from, n = v, v+1
	}
	workers := runtime.GOMAXPROCS(0)
	var mu sync.Mutex
	var errs []error
	all := coverage{}
	var wg sync.WaitGroup
	for w := range workers {
		s := session.Open(t, fileio.NewMem(), "mem")
		wg.Go(func() {
			for i := from + w; i < n; i += workers {
				cov := coverage{}
				p := &player{draw(rand.New(rand.NewPCG(seed, uint64(i))), fmt.Sprintf("t%d", i), cov), s, cov}
				err := p.play()
				mu.Lock()
				if err != nil {
					errs = append(errs, fmt.Errorf("table %d of seed %d: %w", i, seed, err))
				}
				for k, v := range cov {
					all[k] += v
				}
				stop := len(errs) >= maxFailures
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	wg.Wait()
	var drawn []string
	for k, v := range all {
		drawn = append(drawn, fmt.Sprintf("%s: %d", k, v))
	}
	sort.Strings(drawn)
	t.Logf("%d tables; drawn:\n%s", n-from, strings.Join(drawn, "\n"))
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if n-from < enough || len(errs) > 0 {
		return
	}
	for _, what := range []string{"files by bloom", "files by bitmap", "files by bsi", "files by range-bitmap", "files by stats", "rows by file indexes", "files by top-n", "files by runtime filters", "rows by runtime filters"} {
		if all["skipped: "+what] == 0 {
			t.Errorf("nothing was skipped: %s", what)
		}
	}
}
