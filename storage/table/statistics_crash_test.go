package table

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// TestAnalyzeCrash stops the machine at every call of an ANALYZE, before and after
// the call's work: the old state is there or the new one, with every file that is
// named, and the next ANALYZE works.
func TestAnalyzeCrash(t *testing.T) {
	ctx := context.Background()
	rnd := rand.New(rand.NewPCG(11, 0))
	for _, after := range []bool{false, true} {
		for chance := range 2 { // 0: nothing unsynced survives
			crashes := 0
			for n := 1; ; n++ {
				disk := fileio.NewCrash()
				c := analyzedTable(t, disk, []string{"k"}, map[string]string{"bucket": "1"}, 30)
				c.analyze(AnalyzeOptions{Columns: []string{"k"}})
				c.mustWrite(someRows(30, 60), nil)
				c.s = Open(c.s.Env(), workDir)
				name := fmt.Sprintf("after %v, call %d, chance %d", after, n, chance)
				disk.At(n, after)
				r, err := c.s.Analyze(ctx, AnalyzeOptions{Workers: 1})
				if !disk.Crashed() {
					if err != nil || r.SnapshotID != 4 {
						t.Fatalf("%s: no crash, and %+v, %v", name, r, err)
					}
					break
				}
				crashes++
				var with *rand.Rand
				if chance > 0 {
					with = rnd
				}
				last := disk.Last()
				io := disk.Reopen(with)
				env := NewEnv(io, EnvOptions{})
				c.io, c.s = io, Open(env, workDir)
				snap := c.newest()
				var unknown *commit.UnknownOutcomeError
				switch {
				case err == nil && snap.ID != 4:
					t.Fatalf("%s: %s: it was acknowledged and is not there", name, last)
				case err != nil && snap.ID == 4 && !errors.As(err, &unknown):
					t.Fatalf("%s: %s: it failed with %v and is there", name, last, err)
				case snap.ID != 3 && snap.ID != 4:
					t.Fatalf("%s: %s: snapshot %d", name, last, snap.ID)
				}
				filesExist(t, io, name)
				if x := c.stats(); x.Problem != nil || x.Rows != 60 || x.Columns[0].Distinct != 60 || x.Columns[2].Analyzed != (snap.ID == 4) {
					t.Fatalf("%s: %s: %+v", name, last, x)
				}
				c.check(name)
				if r := c.analyze(AnalyzeOptions{}); r.SnapshotID != snap.ID+1 {
					t.Fatalf("%s: the next is %+v", name, r)
				}
				filesExist(t, io, name)
				env.Close()
			}
			if crashes < 12 {
				t.Errorf("an ANALYZE makes only %d calls", crashes)
			}
		}
	}
}

// TestAnalyzeFaults lets every call of an ANALYZE fail once, and every one that needs
// room: nothing is left behind, and the table can be analyzed afterwards.
func TestAnalyzeFaults(t *testing.T) {
	ctx := context.Background()
	for _, op := range []string{"", "store"} {
		fails := 0
		for n := 1; ; n++ {
			f := fileio.NewFault(fileio.NewMem())
			c := analyzedTable(t, f, []string{"k"}, map[string]string{"bucket": "1"}, 30)
			c.analyze(AnalyzeOptions{Columns: []string{"k"}})
			c.s = Open(c.s.Env(), workDir)
			f.Add(fileio.Rule{Op: op, Nth: n, Err: syscall.ENOSPC})
			hits := f.Hits()
			r, err := c.s.Analyze(ctx, AnalyzeOptions{Workers: 1})
			hits = f.Hits() - hits
			f.Clear()
			name := fmt.Sprintf("op %q, call %d", op, n)
			switch {
			case hits == 0 && (err != nil || r.SnapshotID != 3):
				t.Fatalf("%s: %+v, %v", name, r, err)
			case err != nil && !errors.Is(err, syscall.ENOSPC):
				t.Fatalf("%s: %v", name, err)
			case err != nil && c.newest().ID != 2:
				t.Fatalf("%s: failed, and is there", name)
			}
			c.noStray()
			if hits == 0 {
				break
			}
			if err != nil {
				fails++
			}
			c.check(name)
			if x := c.stats(); x.Problem != nil || x.Columns[0].Distinct != 30 {
				t.Fatalf("%s: %+v", name, x)
			}
			c.analyze(AnalyzeOptions{})
		}
		if fails < 3 {
			t.Errorf("op %q: only %d calls matter", op, fails)
		}
	}
}

// TestAnalyzeRace: what others commit between the scan and the commit, and at the same
// moment, is no conflict, and the file says what it is of.
func TestAnalyzeRace(t *testing.T) {
	ctx := t.Context()
	io := fileio.NewMem()
	c := analyzedTable(t, io, []string{"k"}, nil, 200)
	other := &compactTable{t: t, io: io, s: Open(NewEnv(io, EnvOptions{}), workDir), sch: c.sch, rows: c.rows, seqs: c.seqs, key: c.key}
	r, err := c.s.Analyze(ctx, AnalyzeOptions{Publish: func(context.Context) (func(), error) {
		other.mustWrite(someRows(100, 300), nil)
		other.compact(CompactOptions{Full: true})
		return func() {}, nil
	}})
	if err != nil || r.Rows != 200 || r.Scanned != 1 || r.SnapshotID < 4 {
		t.Fatalf("%+v, %v", r, err)
	}
	st, err := c.s.Statistics(ctx, c.newest().Statistics)
	if err != nil || st.SnapshotID != 1 || *st.Rows != 200 {
		t.Errorf("%+v, %v", st, err)
	}
	c.check("after the race")

	var wg sync.WaitGroup
	for i := range 3 {
		wg.Add(2)
		go func() {
			defer wg.Done()
			for range 5 {
				if _, err := c.s.Analyze(ctx, AnalyzeOptions{}); err != nil {
					t.Error(err)
				}
			}
		}()
		go func() {
			defer wg.Done()
			for n := range 5 {
				if rows := someRows(1000*i+n*10, 1000*i+n*10+10); other.write(rows, nil) == nil {
					other.apply(rows, nil)
				} else {
					t.Error("a write was refused")
				}
			}
		}()
	}
	wg.Wait()
	c.noStray()
	same(t, io, c.s)
	if r := c.analyze(AnalyzeOptions{}); r.Rows != int64(len(c.rows)) {
		t.Errorf("%d rows, want %d", r.Rows, len(c.rows))
	}
	refused := errors.New("refused")
	if _, err := c.s.Analyze(ctx, AnalyzeOptions{Publish: func(context.Context) (func(), error) { return nil, refused }}); !errors.Is(err, refused) {
		t.Error(err)
	}
	c.noStray()
}

// TestAnalyzeMemory: what sketches take is charged and given back, and a limit that is
// too low is an error.
func TestAnalyzeMemory(t *testing.T) {
	c := analyzedTable(t, fileio.NewMem(), nil, nil, 50_000)
	acc := mem.NewRoot("work_mem", 64<<20)
	c.analyze(AnalyzeOptions{Account: acc, Slots: mem.NewSlots(1)})
	if acc.Peak() == 0 || acc.Used() != 0 {
		t.Errorf("peak %d, used %d", acc.Peak(), acc.Used())
	}
	if _, err := c.s.Analyze(t.Context(), AnalyzeOptions{Account: mem.NewRoot("work_mem", 10_000)}); !errors.Is(err, mem.ErrLimit) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, err := c.s.Analyze(ctx, AnalyzeOptions{}); err == nil {
		t.Error("a cancelled ANALYZE went through")
	}
	c.noStray()
}
