// Package keytable plays random histories of a primary-key table: writes of every
// row kind, late rows, compactions, overwrites, rescales and schema changes, under
// options drawn at random, against an obvious model in memory, and with Java
// Paimon taking turns on the same table.
//
// PAIMON_SQL_SEED repeats a run, PAIMON_SQL_SEQUENCES says how many histories.
package keytable

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/tests/session"
)

// story is one history of one table.
type story struct {
	c     *config
	m     *model
	d     *drawer
	name  string
	s     *session.Session
	java  *oracle.Client // nil = we alone
	log   []string       // what was done
	added int            // columns that ALTER TABLE added
	wide  bool           // z is bigint by now

	changes  []string         // rows written since the changelog was last looked at
	shadow   map[string]entry // state by the changelog, by key
	shadowAt int64
	// javaFull are the snapshots of full compactions by Java.
	javaFull map[string]bool
}

// failure ends a story.
type failure struct{ error }

func (s *story) fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

func (s *story) note(format string, args ...any) { s.log = append(s.log, fmt.Sprintf(format, args...)) }

func (s *story) sql(q string) [][]string {
	out, err := s.try(q)
	if err != nil {
		s.fail("%s: %v", q, err)
	}
	return out
}

func (s *story) try(q string) ([][]string, error) {
	return s.s.Try(context.Background(), q)
}

// play runs a story; the error says what went wrong and how it came to that.
func (s *story) play(steps int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(failure)
			if !ok {
				panic(p)
			}
			err = fmt.Errorf("%w\n%s\n%s", f.error, s.c.create(s.name), strings.Join(s.log, "\n"))
		}
	}()
	s.sql(s.c.create(s.name))
	if s.c.base {
		s.base()
	}
	for i := range steps {
		s.step()
		if i%2 == 1 || i == steps-1 {
			s.check()
		}
	}
	s.compact(s.d.r.IntN(2) == 0)
	s.check()
	s.checkJava()
	s.sql("drop table " + s.name)
	return nil
}

func sequences(def int) int {
	if n, err := strconv.Atoi(os.Getenv("PAIMON_SQL_SEQUENCES")); err == nil {
		return n
	}
	return def
}

// one plays story number i of a seed. PAIMON_SQL_STORY plays one only.
func one(seed uint64, i int, cov coverage, s *session.Session, java *oracle.Client) error {
	r := rand.New(rand.NewPCG(seed, uint64(i)))
	c := draw(r, cov, java != nil)
	st := &story{c: c, m: newModel(c), d: &drawer{r, cov}, name: fmt.Sprintf("t%d", i), s: s, java: java, javaFull: map[string]bool{}}
	if err := st.play(6 + r.IntN(9)); err != nil {
		return fmt.Errorf("story %d of seed %d: %w", i, seed, err)
	}
	return nil
}

const maxFailures = 5

// TestAgainstModel plays stories on both cores.
func TestAgainstModel(t *testing.T) {
	seed, n := random.Seed(t), sequences(150)
	from := 0
	if v, err := strconv.Atoi(os.Getenv("PAIMON_SQL_STORY")); err == nil {
		from, n = v, v+1
	}
	workers := runtime.GOMAXPROCS(0)
	covs := make([]coverage, workers)
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	for w := range workers {
		covs[w] = coverage{}
		s := session.Open(t, fileio.NewMem(), "mem")
		wg.Go(func() {
			for i := from + w; i < n; i += workers {
				err := one(seed, i, covs[w], s, nil)
				mu.Lock()
				if err != nil {
					errs = append(errs, err)
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
	all := coverage{}
	for _, c := range covs {
		for name, vs := range c {
			for v, k := range vs {
				for range k {
					all.note(name, v)
				}
			}
		}
	}
	t.Logf("%d stories; values drawn:\n%s", n-from, all)
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// TestTurnsWithJava plays stories in which Java Paimon writes and compacts the same
// tables.
func TestTurnsWithJava(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "warehouse")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	java := oracle.Java(t, dir)
	seed, n := random.Seed(t), sequences(12)
	from := 0
	if v, err := strconv.Atoi(os.Getenv("PAIMON_SQL_STORY")); err == nil {
		from, n = v, v+1
	}
	s := session.Open(t, nil, dir)
	cov := coverage{}
	failures := 0
	for i := from; i < n && failures < maxFailures; i++ {
		if err := one(seed, i, cov, s, java); err != nil {
			failures++
			t.Error(err)
		}
	}
	t.Logf("%d stories; values drawn:\n%s", n-from, cov)
}
