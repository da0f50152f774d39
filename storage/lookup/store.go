package lookup

import (
	"bufio"
	"context"
	"errors"
	"hash/crc32"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Store makes and keeps the tables of data files. Safe for concurrent use.
type Store struct {
	o         Options
	ctx       context.Context // of builds; ends with the store
	cancel    context.CancelFunc
	workers   sync.WaitGroup
	slots     chan struct{} // of background builds
	small     chan struct{} // of those of small files, which do not wait for big ones
	epoch     atomic.Int64  // ticks when something is built or dropped
	lookups   atomic.Int64  // of tables that are gone
	diskReads atomic.Int64
	spilled   atomic.Int64
	dropped   atomic.Int64
	damage    atomic.Int64
	builds    atomic.Int64
	failures  atomic.Int64
	buildRows atomic.Int64
	buildNS   atomic.Int64

	mu      sync.Mutex // guards the map
	entries map[string][]*Entry
	closed  bool

	// room guards the budgets: the ring of what is in memory, which a hand goes round
	// to find what has not been used, and the tables with files. A lookup that finds
	// its block in memory never takes it.
	room   sync.Mutex
	memory int64
	disk   int64
	ring   []slot
	hand   int
	tables map[*table]*Entry
}

// slot is something in memory that may leave it: block i of a table that is on
// disk, or with i < 0 all blocks of one that is not.
type slot struct {
	t *table
	i int32
}

// New makes a store.
func New(o Options) *Store {
	def := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	def(&o.MemoryBytes, 256<<20)
	def(&o.DiskBytes, 8<<30)
	if o.FalsePositive <= 0 || o.FalsePositive >= 1 {
		o.FalsePositive = 0.05
	}
	if o.BlockBytes <= 0 {
		o.BlockBytes = 8 << 10
	}
	s := &Store{o: o, slots: make(chan struct{}, max(o.Builders, 1)), small: make(chan struct{}, 1), entries: map[string][]*Entry{}, tables: map[*table]*Entry{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close ends builds and drops every table with its file.
func (s *Store) Close() {
	s.mu.Lock()
	s.closed = true
	all := s.entries
	s.entries = map[string][]*Entry{}
	s.mu.Unlock()
	s.cancel()
	s.workers.Wait()
	for _, es := range all {
		for _, e := range es {
			e.drop()
		}
	}
	s.room.Lock()
	defer s.room.Unlock()
	for t := range s.tables { // of entries that were forgotten
		s.dropLocked(t)
	}
}

// Open returns the entry of a file, which may be kept as long as the file is in use:
// it finds its tables without a search.
func (s *Store) Open(f File) *Entry {
	base, _, _ := strings.Cut(f.ID, "\x00")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries[base] {
		if e.f.ID == f.ID {
			return e
		}
	}
	e := &Entry{s: s, f: f}
	if !s.closed {
		s.entries[base] = append(s.entries[base], e)
	}
	return e
}

// Find looks keys (byte forms, ascending, no duplicates) up in a file, in the order
// of keys, and appends what it finds to out. A file that has no table is made one
// first.
func (s *Store) Find(ctx context.Context, f File, keys [][]byte, rows bool, out []Found) ([]Found, error) {
	return s.Open(f).Find(ctx, keys, rows, out)
}

// Ready reports whether a file has a table.
func (s *Store) Ready(id string, rows bool) bool {
	base, _, _ := strings.Cut(id, "\x00")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries[base] {
		if e.f.ID == id {
			return e.Ready(rows)
		}
	}
	return false
}

// Forget drops the tables of data files, by path: files that have left the
// warehouse. Whoever reads an older snapshot has them made again.
func (s *Store) Forget(paths ...string) {
	var gone []*Entry
	s.mu.Lock()
	for _, p := range paths {
		gone = append(gone, s.entries[p]...)
		delete(s.entries, p)
	}
	s.mu.Unlock()
	for _, e := range gone {
		e.drop()
	}
}

// Stats returns what the store holds and has done.
func (s *Store) Stats() Stats {
	s.room.Lock()
	defer s.room.Unlock()
	n := s.lookups.Load()
	for t := range s.tables {
		n += t.lookups.Load()
	}
	return Stats{
		Tables: len(s.tables), MemoryBytes: s.memory, DiskBytes: s.disk, Lookups: n, DiskReads: s.diskReads.Load(),
		Builds: s.builds.Load(), BuildRows: s.buildRows.Load(), BuildNanos: s.buildNS.Load(), BuildFailures: s.failures.Load(),
		Spilled: s.spilled.Load(), Dropped: s.dropped.Load(), Damaged: s.damage.Load(),
	}
}

// buildMax is how much memory one table may have while it is made.
func (s *Store) buildMax() int64 { return s.o.MemoryBytes / 4 * 3 }

// grow takes n bytes from the budget, making room if need be; false when there is
// none.
func (s *Store) grow(n int64) bool {
	s.room.Lock()
	defer s.room.Unlock()
	if !s.makeRoom(n) {
		return false
	}
	s.memory += n
	return true
}

func (s *Store) shrink(n int64) {
	s.room.Lock()
	s.memory -= n
	s.room.Unlock()
}

// makeRoom frees memory until n bytes fit. The hand goes round what is in memory:
// what was used since it last came by is passed once more. When that is not
// enough, the tables that were not used for longest go, index and all.
func (s *Store) makeRoom(n int64) bool {
	if n > s.o.MemoryBytes {
		return false
	}
	for left := 2*len(s.ring) + 1; s.memory+n > s.o.MemoryBytes && left > 0 && len(s.ring) > 0; left-- {
		if s.hand >= len(s.ring) {
			s.hand = 0
		}
		x := s.ring[s.hand]
		if x.i < 0 {
			if x.t.used.Swap(0) == 0 {
				s.demote(x.t)
				left = 2*len(s.ring) + 1
				continue
			}
		} else if b := x.t.blocks[x.i].Load(); b != nil && b.used.Swap(0) == 0 {
			x.t.blocks[x.i].Store(nil)
			s.memory -= int64(len(b.b))
			s.take(s.hand)
			continue
		}
		s.hand++
	}
	for s.memory+n > s.o.MemoryBytes {
		var oldest *table
		for t := range s.tables {
			if oldest == nil || t.epoch.Load() < oldest.epoch.Load() {
				oldest = t
			}
		}
		if oldest == nil {
			return false
		}
		s.lose(oldest)
	}
	return true
}

// lose drops a table for want of room.
func (s *Store) lose(t *table) {
	s.tables[t].lost.Add(1)
	s.dropLocked(t)
	s.dropped.Add(1)
}

// take removes slot i of the ring.
func (s *Store) take(i int) {
	n := len(s.ring) - 1
	s.ring[i] = s.ring[n]
	s.ring[n] = slot{}
	s.ring = s.ring[:n]
}

// demote writes a table that is wholly in memory to disk, so that its blocks may
// leave one by one; it is dropped when the disk has no room. The slot under the
// hand is the table's.
func (s *Store) demote(t *table) {
	if err := s.save(t); err != nil {
		s.lose(t)
		return
	}
	s.spilled.Add(1)
	s.take(s.hand)
	for i := range t.blocks {
		s.ring = append(s.ring, slot{t, int32(i)})
	}
}

// save writes the blocks of a table that has no file.
func (s *Store) save(t *table) error {
	f, err := s.create()
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 256<<10)
	offs, raw, sums := make([]int64, 1, len(t.blocks)+1), make([]uint32, 0, len(t.blocks)), make([]uint32, 0, len(t.blocks))
	var buf []byte
	charged := int64(0)
	for i := range t.blocks {
		b := t.blocks[i].Load().b
		out := b
		if s.o.Compress {
			out = deflate(&buf, b)
		}
		if !s.growDiskLocked(int64(len(out)), t) {
			err = ErrNoRoom
		} else {
			charged += int64(len(out))
			_, err = w.Write(out)
		}
		if err != nil {
			break
		}
		offs, raw, sums = append(offs, offs[i]+int64(len(out))), append(raw, uint32(len(b))), append(sums, crc32.Checksum(out, castagnoli))
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		s.disk -= charged
		s.remove(f)
		return err
	}
	t.offs, t.raw, t.sums, t.fileSize = offs, raw, sums, charged
	t.file.Store(f) // publishes the above
	return nil
}

// keep puts a block that was read from disk into memory, if that is to be had at
// once.
func (s *Store) keep(t *table, i int, b []byte) {
	if !s.room.TryLock() {
		return
	}
	defer s.room.Unlock()
	n := int64(len(b))
	if n > s.o.MemoryBytes/8 || t.dead.Load() || t.blocks[i].Load() != nil || !s.makeRoom(n) || t.dead.Load() {
		return
	}
	s.memory += n
	t.blocks[i].Store(&buffer{b: b})
	s.ring = append(s.ring, slot{t, int32(i)})
}

// add registers a table that was made.
func (s *Store) add(t *table, e *Entry) {
	s.room.Lock()
	defer s.room.Unlock()
	t.epoch.Store(s.epoch.Add(1))
	s.tables[t] = e
	if t.file.Load() == nil {
		t.used.Store(1)
		s.ring = append(s.ring, slot{t, -1})
	}
}

// drop takes a table out of the store.
func (s *Store) drop(t *table) {
	s.room.Lock()
	defer s.room.Unlock()
	s.dropLocked(t)
}

func (s *Store) dropLocked(t *table) {
	e, ok := s.tables[t]
	if !ok {
		return
	}
	t.dead.Store(true)
	delete(s.tables, t)
	e.gone(t)
	s.epoch.Add(1)
	s.lookups.Add(t.lookups.Load())
	kept, hand := s.ring[:0], s.hand
	for at, x := range s.ring {
		if x.t != t {
			kept = append(kept, x)
			continue
		}
		if at < hand {
			s.hand--
		}
		if x.i >= 0 {
			s.memory -= int64(len(t.blocks[x.i].Load().b))
		}
	}
	clear(s.ring[len(kept):])
	s.ring = kept
	s.memory -= t.fixed
	if f := t.file.Load(); f != nil {
		s.disk -= t.fileSize
		s.remove(f)
	} else {
		s.memory -= t.bytes
	}
}

// damaged drops a table whose blocks are not what was written.
func (s *Store) damaged(t *table) {
	if !t.dead.Swap(true) {
		s.damage.Add(1)
	}
	s.drop(t)
}

// create makes a file for blocks.
func (s *Store) create() (*os.File, error) {
	if s.o.Dir == nil || s.o.DiskBytes < 0 {
		return nil, ErrNoRoom
	}
	dir, err := s.o.Dir()
	if err != nil {
		return nil, err
	}
	return os.CreateTemp(dir, "lookup-*.tbl")
}

// remove deletes a file of the store. What cannot be deleted is left to whoever
// removes the directory.
func (s *Store) remove(f *os.File) {
	_ = f.Close()
	_ = os.Remove(f.Name())
}

func (s *Store) growDisk(n int64) bool {
	s.room.Lock()
	defer s.room.Unlock()
	return s.growDiskLocked(n, nil)
}

// growDiskLocked takes n bytes of the disk's budget, dropping tables that were not
// used for longest if need be, but not the table named.
func (s *Store) growDiskLocked(n int64, not *table) bool {
	for s.disk+n > s.o.DiskBytes {
		var oldest *table
		for t := range s.tables {
			if t != not && t.file.Load() != nil && (oldest == nil || t.epoch.Load() < oldest.epoch.Load()) {
				oldest = t
			}
		}
		if oldest == nil {
			return false
		}
		s.lose(oldest)
	}
	s.disk += n
	return true
}

func (s *Store) shrinkDisk(n int64) {
	s.room.Lock()
	s.disk -= n
	s.room.Unlock()
}

// Entry is what the store knows of one file. Safe for concurrent use.
type Entry struct {
	s *Store
	f File
	// t are the tables: keys only, and with rows.
	t [2]atomic.Pointer[table]

	mu       sync.Mutex // guards all below
	building [2]*build
	queued   [2]bool
	useless  bool         // no table can be made of the file
	lost     atomic.Int32 // how often a table was dropped for want of room
	spent    atomic.Int64 // nanoseconds that lookups without a table took
}

// build is a table being made.
type build struct {
	done chan struct{}
	t    *table
	err  error
}

func form(rows bool) int {
	if rows {
		return 1
	}
	return 0
}

// table returns a table that answers for the form asked for, or nil.
func (e *Entry) table(rows bool) *table {
	if t := e.t[1].Load(); t != nil || rows {
		return t
	}
	return e.t[0].Load()
}

// Ready reports whether the file has a table: whether a lookup is cheap.
func (e *Entry) Ready(rows bool) bool { return e.table(rows) != nil }

// Rows returns the number of rows of the file.
func (e *Entry) Rows() int64 { return e.f.Rows }

// Get looks one key up in a table that is there. ready is false when there is none;
// the caller finds another way then.
func (e *Entry) Get(key []byte, rows bool, f *Found) (found, ready bool) {
	t := e.table(rows)
	if t == nil {
		return false, false
	}
	found, err := t.get(key, rows, f)
	return found, err == nil
}

// Try looks keys up in a table that is there, as Find does; ready is false when
// there is none, and out as it was.
func (e *Entry) Try(keys [][]byte, rows bool, out []Found) (found []Found, ready bool) {
	t := e.table(rows)
	if t == nil {
		return out, false
	}
	n := len(out)
	found, err := t.find(keys, rows, out)
	if err != nil {
		return found[:n], false
	}
	return found, true
}

// Find is Store.Find.
func (e *Entry) Find(ctx context.Context, keys [][]byte, rows bool, out []Found) ([]Found, error) {
	for range 3 { // a table that is made may be dropped again at once
		found, ready := e.Try(keys, rows, out)
		if ready {
			return found, nil
		}
		t, err := e.Build(ctx, rows)
		if err != nil {
			return out, err
		}
		if found, err = t.find(keys, rows, out); err == nil {
			return found, nil
		}
	}
	return out, ErrNoRoom
}

// Spent notes that lookups without a table took d, and has one made in the
// background when that adds up to a good part of what making it is expected to
// take.
func (e *Entry) Spent(d time.Duration, rows bool) {
	need := e.s.expected(e.f.Rows) / spentShare
	if n := e.lost.Load(); n > 0 { // or files that do not all fit would be made over and over
		need <<= min(n, 10)
	}
	if e.spent.Add(int64(d)) < need {
		return
	}
	e.later(rows)
}

// Lost notes that lookups without a table took d more than they would have taken with
// one, and has one made in the background when that adds up to what making it is
// expected to take.
func (e *Entry) Lost(d time.Duration, rows bool) { e.Spent(d/spentShare, rows) }

// spentShare is how much of its making a table must have been wanted: a fifth. At
// one, no more than twice the least possible would ever be spent, but a table that
// is wanted for a while is mostly wanted for much longer.
const spentShare = 5

// smallRows is the most rows of a file that is made a table of in some tens of
// milliseconds.
const smallRows = 100_000

// expected is how long making a table of rows will take, by what the others took.
func (s *Store) expected(rows int64) int64 {
	per := int64(300)
	if n := s.buildRows.Load(); n > 10_000 {
		per = max(s.buildNS.Load()/n, 20)
	}
	return rows * per
}

// later queues a build in the background.
func (e *Entry) later(rows bool) {
	k := form(rows)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.useless || e.queued[k] || e.building[k] != nil || e.table(rows) != nil {
		return
	}
	e.s.mu.Lock()
	closed := e.s.closed
	if !closed {
		e.s.workers.Add(1)
	}
	e.s.mu.Unlock()
	if closed {
		return
	}
	e.queued[k] = true
	slots := e.s.slots
	if e.f.Rows <= smallRows {
		slots = e.s.small
	}
	go func() {
		defer e.s.workers.Done()
		select {
		case slots <- struct{}{}:
			_, _ = e.Build(e.s.ctx, rows) // whoever looks up next reads the file
			<-slots
		case <-e.s.ctx.Done():
		}
		e.mu.Lock()
		e.queued[k] = false
		e.mu.Unlock()
		e.spent.Store(0) // after a failure it has to be wanted anew
	}()
}

// Build makes the table, or waits for the one that is being made.
func (e *Entry) Build(ctx context.Context, rows bool) (*table, error) {
	k := form(rows)
	e.mu.Lock()
	if t := e.table(rows); t != nil {
		e.mu.Unlock()
		return t, nil
	}
	if e.useless {
		e.mu.Unlock()
		return nil, ErrNoRoom
	}
	b := e.building[k]
	if b == nil {
		e.s.mu.Lock()
		closed := e.s.closed
		if !closed {
			e.s.workers.Add(1)
		}
		e.s.mu.Unlock()
		if closed {
			e.mu.Unlock()
			return nil, ErrClosed
		}
		b = &build{done: make(chan struct{})}
		e.building[k] = b
		go e.run(b, rows)
	}
	e.mu.Unlock()
	select {
	case <-b.done:
		return b.t, b.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (e *Entry) run(b *build, rows bool) {
	defer e.s.workers.Done()
	start := time.Now()
	b.t, b.err = e.make(rows)
	if b.err == nil {
		e.s.builds.Add(1)
		e.s.buildRows.Add(b.t.n)
		e.s.buildNS.Add(int64(time.Since(start)))
	} else {
		e.s.failures.Add(1)
	}
	k := form(rows)
	e.mu.Lock()
	if e.building[k] = nil; errors.Is(b.err, ErrUseless) {
		e.useless = true
	}
	if b.err == nil {
		e.t[k].Store(b.t)
		e.s.add(b.t, e)
	}
	e.mu.Unlock()
	close(b.done)
}

func (e *Entry) make(rows bool) (*table, error) {
	b, err := e.s.newBuilder(rows, e.f.Rows)
	if err != nil {
		return nil, err
	}
	defer b.abort()
	if err := e.f.Build(e.s.ctx, b); err != nil {
		return nil, err
	}
	return b.finish()
}

// drop drops the entry's tables.
func (e *Entry) drop() {
	for k := range e.t {
		if t := e.t[k].Load(); t != nil {
			e.s.drop(t)
		}
	}
}

// gone forgets a table that the store has dropped.
func (e *Entry) gone(t *table) {
	for k := range e.t {
		e.t[k].CompareAndSwap(t, nil)
	}
}
