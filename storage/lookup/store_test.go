package lookup

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// source is a data file whose rows a test makes up: key i is 3*i, big-endian.
type source struct {
	id     string
	n      int
	text   bool // keys of several lengths
	builds atomic.Int64
	delay  chan struct{} // closed = go on
	err    error
}

func (s *source) key(i int) []byte {
	if s.text {
		return fmt.Appendf(nil, "%08d%.*s", 3*i, i%5, "abcde")
	}
	return binary.BigEndian.AppendUint64(nil, uint64(3*i))
}

func (s *source) row(i int) []byte { return fmt.Appendf(nil, "row %d of %s", i, s.id) }

func (s *source) kind(i int) uint8 { return uint8(i % 7 / 6 * 3) }

func (s *source) file() File {
	return File{ID: s.id, Rows: int64(s.n), Build: func(ctx context.Context, b *Builder) error {
		s.builds.Add(1)
		if s.delay != nil {
			select {
			case <-s.delay:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if s.err != nil {
			return s.err
		}
		for i := range s.n {
			var row []byte
			if b.Rows() {
				row = s.row(i)
			}
			if err := b.Add(s.key(i), int64(1000+i), s.kind(i), int64(i), row); err != nil {
				return err
			}
		}
		return nil
	}}
}

// check compares a lookup of some keys, there and not there, with the source.
func (s *source) check(t testing.TB, st *Store, r *rand.Rand, rows bool) error {
	t.Helper()
	type ask struct {
		key []byte
		i   int // -1 = not there
	}
	asks := map[string]ask{}
	for range 1 + r.IntN(200) {
		i := r.IntN(s.n)
		k := s.key(i)
		if r.IntN(4) == 0 {
			k, i = append(bytes.Clone(k), 'x'), -1
		}
		asks[string(k)] = ask{k, i}
	}
	var list []ask
	for _, a := range asks {
		list = append(list, a)
	}
	sort.Slice(list, func(i, j int) bool { return bytes.Compare(list[i].key, list[j].key) < 0 })
	keys := make([][]byte, len(list))
	want := 0
	for i, a := range list {
		keys[i] = a.key
		if a.i >= 0 {
			want++
		}
	}
	found, err := st.Find(context.Background(), s.file(), keys, rows, nil)
	if err != nil {
		return err
	}
	if len(found) != want {
		t.Fatalf("%s: %d found of %d", s.id, len(found), want)
	}
	e := st.Open(s.file())
	for _, f := range found {
		i := list[f.Key].i
		if i < 0 || f.Pos != int64(i) || f.Seq != int64(1000+i) || f.Kind != s.kind(i) || rows && !bytes.Equal(f.Row, s.row(i)) || !rows && f.Row != nil {
			t.Fatalf("%s: key %q is %+v", s.id, list[f.Key].key, f)
		}
		var one Found
		if hit, ready := e.Get(list[f.Key].key, rows, &one); ready && (!hit || one.Pos != f.Pos || !bytes.Equal(one.Row, f.Row)) {
			t.Fatalf("%s: key %q alone is %+v, %v", s.id, list[f.Key].key, one, hit)
		}
	}
	return nil
}

func in(dir string) func() (string, error) {
	return func() (string, error) { return dir, nil }
}

func files(t testing.TB, dir string) []string {
	t.Helper()
	out, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// balanced makes sure that the budgets hold what is charged to them.
func balanced(t testing.TB, s *Store) {
	t.Helper()
	s.room.Lock()
	defer s.room.Unlock()
	var mem, disk int64
	for tb := range s.tables {
		mem += tb.fixed
		resident := int64(0)
		for i := range tb.blocks {
			if b := tb.blocks[i].Load(); b != nil {
				resident += int64(len(b.b))
			}
		}
		if tb.file.Load() == nil && resident != tb.bytes {
			t.Errorf("a table in memory holds %d bytes of %d", resident, tb.bytes)
		}
		mem += resident
		disk += tb.fileSize
	}
	if mem != s.memory || disk != s.disk {
		t.Errorf("%d bytes in memory, %d charged; %d on disk, %d charged", mem, s.memory, disk, s.disk)
	}
	if s.memory > max(s.o.MemoryBytes, 0) || s.disk > s.o.DiskBytes {
		t.Errorf("%d of %d bytes in memory, %d of %d on disk", s.memory, s.o.MemoryBytes, s.disk, s.o.DiskBytes)
	}
}

// TestBudgets looks many files up under budgets from plenty to nothing: what is
// found is right, and the budgets are kept.
func TestBudgets(t *testing.T) {
	for name, o := range map[string]Options{
		"plenty":    {},
		"no disk":   {MemoryBytes: 200 << 10},
		"small":     {MemoryBytes: 100 << 10, Dir: in(t.TempDir())},
		"packed":    {MemoryBytes: 100 << 10, Dir: in(t.TempDir()), Compress: true},
		"both":      {MemoryBytes: 60 << 10, Dir: in(t.TempDir()), DiskBytes: 150 << 10},
		"next to 0": {MemoryBytes: 4 << 10, Dir: in(t.TempDir())},
		"nothing":   {MemoryBytes: -1, Dir: in(t.TempDir())},
		"bad dir":   {MemoryBytes: 60 << 10, Dir: in(t.TempDir() + "/none")},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(4, 3))
			o.BlockBytes = 1 << 10
			s := New(o)
			var all []*source
			for i := range 6 {
				all = append(all, &source{id: fmt.Sprintf("f%d\x00form", i), n: []int{1, 50, 1000, 3000}[r.IntN(4)], text: i%2 == 0})
			}
			none := 0
			for range 200 {
				src := all[r.IntN(len(all))]
				if err := src.check(t, s, r, r.IntN(2) == 0); errors.Is(err, ErrNoRoom) {
					none++
				} else if err != nil {
					t.Fatal(err)
				}
				balanced(t, s)
				if r.IntN(20) == 0 {
					s.Forget(fmt.Sprintf("f%d", r.IntN(6)))
				}
			}
			if (name == "plenty" && none > 0) || (name == "nothing" && none < 200) {
				t.Errorf("no room %d times", none)
			}
			st := s.Stats()
			t.Logf("%+v, no room %d times", st, none)
			s.Close()
			balanced(t, s)
			if st := s.Stats(); st.Tables != 0 || st.MemoryBytes != 0 || st.DiskBytes != 0 {
				t.Errorf("after Close %+v", st)
			}
			if o.Dir != nil {
				dir, _ := o.Dir()
				if left := files(t, dir); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			}
		})
	}
}

// TestDamagedDisk changes what is on disk under the store: it makes the tables anew
// and never gives a wrong row.
func TestDamagedDisk(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 3))
	for _, compress := range []bool{false, true} {
		dir := t.TempDir()
		s := New(Options{MemoryBytes: 60 << 10, Dir: in(dir), BlockBytes: 1 << 10, Compress: compress})
		src := &source{id: "f\x00", n: 3000, text: true}
		for i := range 60 {
			if err := src.check(t, s, r, true); err != nil {
				t.Fatal(err)
			}
			for _, name := range files(t, dir) {
				raw, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case i%3 == 0 && len(raw) > 0:
					for range 20 {
						raw[r.IntN(len(raw))] ^= byte(1 + r.IntN(255))
					}
				case i%3 == 1:
					raw = raw[:len(raw)/2]
				default:
					continue
				}
				// The same inode: the store has it open.
				f, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
				if err == nil {
					_, err = f.Write(raw)
				}
				if err == nil {
					err = f.Close()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			balanced(t, s)
		}
		if st := s.Stats(); st.Damaged == 0 || st.Builds <= st.Damaged/2 {
			t.Errorf("%+v", st)
		}
		s.Close()
	}
}

// TestOneBuild lets many ask for one table: it is made once, who does not want to
// wait goes, and the others get it.
func TestOneBuild(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	src := &source{id: "f", n: 100, delay: make(chan struct{})}
	gone, cancel := context.WithCancel(context.Background())
	cancelled := make(chan error)
	go func() {
		_, err := s.Find(gone, src.file(), [][]byte{src.key(3)}, true, nil)
		cancelled <- err
	}()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			found, err := s.Find(context.Background(), src.file(), [][]byte{src.key(3)}, true, nil)
			if err != nil || len(found) != 1 {
				t.Errorf("%d found: %v", len(found), err)
			}
		})
	}
	cancel()
	if err := <-cancelled; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled lookup: %v", err)
	}
	close(src.delay)
	wg.Wait()
	if n := src.builds.Load(); n != 1 {
		t.Errorf("%d builds", n)
	}
	if !s.Ready("f", true) || !s.Ready("f", false) || s.Ready("g", true) {
		t.Error("not ready, or ready what was never asked for")
	}
}

// TestFailures: an error of the file is the lookup's, a file out of order is not tried
// again, and a closed store says so.
func TestFailures(t *testing.T) {
	ctx := context.Background()
	s := New(Options{})
	src := &source{id: "f", n: 10, err: os.ErrNotExist}
	if _, err := s.Find(ctx, src.file(), [][]byte{{1}}, true, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	src.err = nil
	if _, err := s.Find(ctx, src.file(), [][]byte{src.key(1)}, true, nil); err != nil {
		t.Errorf("after the error is gone: %v", err)
	}
	odd := File{ID: "odd", Rows: 2, Build: func(_ context.Context, b *Builder) error {
		return errors.Join(b.Add([]byte("b"), 1, 0, 0, nil), b.Add([]byte("a"), 2, 0, 1, nil))
	}}
	if _, err := s.Find(ctx, odd, [][]byte{{1}}, false, nil); !errors.Is(err, ErrUseless) {
		t.Errorf("out of order: %v", err)
	}
	if _, err := s.Find(ctx, odd, [][]byte{{1}}, false, nil); !errors.Is(err, ErrNoRoom) {
		t.Errorf("again: %v", err)
	}
	more := &source{id: "more", n: 10}
	f := more.file()
	f.Rows = 5
	if _, err := s.Find(ctx, f, [][]byte{{1}}, false, nil); err == nil {
		t.Error("a file with more rows than it says")
	}
	slow := &source{id: "slow", n: 10, delay: make(chan struct{})}
	got := make(chan error)
	go func() {
		_, err := s.Find(ctx, slow.file(), [][]byte{{1}}, false, nil)
		got <- err
	}()
	for slow.builds.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	s.Close()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("a build when the store closes: %v", err)
	}
	if _, err := s.Find(ctx, src.file(), [][]byte{{1}}, false, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// TestSpent has a table made in the background once lookups without one have taken
// long enough.
func TestSpent(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	src := &source{id: "f", n: 100_000}
	e := s.Open(src.file())
	e.Spent(time.Microsecond, true)
	if n := src.builds.Load(); n != 0 {
		t.Fatalf("%d builds after a microsecond", n)
	}
	e.Spent(time.Hour, true)
	e.Spent(time.Hour, true)
	for !e.Ready(true) {
		time.Sleep(time.Millisecond)
	}
	if n := src.builds.Load(); n != 1 {
		t.Errorf("%d builds", n)
	}
}

// TestManyAtOnce has goroutines look up, forget and spill at the same time.
func TestManyAtOnce(t *testing.T) {
	s := New(Options{MemoryBytes: 120 << 10, Dir: in(t.TempDir()), DiskBytes: 300 << 10, BlockBytes: 1 << 10})
	var all []*source
	for i := range 5 {
		all = append(all, &source{id: fmt.Sprintf("f%d\x00form", i), n: 1500, text: i%2 == 0})
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 3))
			for range 150 {
				if err := all[r.IntN(len(all))].check(t, s, r, r.IntN(2) == 0); err != nil && !errors.Is(err, ErrNoRoom) {
					t.Error(err)
				}
				if r.IntN(10) == 0 {
					s.Forget(fmt.Sprintf("f%d", r.IntN(5)))
				}
			}
		})
	}
	wg.Wait()
	balanced(t, s)
	s.Close()
	balanced(t, s)
}
