package table

import (
	"context"
	"maps"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/hashindex"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// Cross-partition keys: bucket = -1 and a key that does not hold all partition
// columns. A key is in one partition at a time. What becomes of a row whose key
// is in another one is the merge engine's to say (Java: ExistingProcessor.java):
//
//	deduplicate                  the old row is deleted there, the new one written
//	partial-update, aggregation  the row goes where the key is; where a -D ends a row
//	                             (remove-record-on-delete), the key is nowhere after it
//	first-row                    the row is ignored

// crossBuckets finds the places of the rows of one writer.
type crossBuckets struct {
	w       *tableWriter
	x       *keyIndex
	at      int64 // snapshot that the index was of when the writer began
	pk      []int
	codec   *mergetree.KeyCodec
	overlay *commit.Changes // nil when everything is replaced
	empty   bool            // what the index says does not count
	dedup   bool
	first   bool
	ends    bool  // a -D leaves nothing of a row, in engines that merge rows
	ttl     int64 // minutes
	target  int64

	own   map[string]ownPlace // keys of the writer and its transaction, newest last
	bytes int64               // of own
	// charged is what the account was asked for own: all but the first ownStep.
	charged int64
	spill   *keySpace // those that own had no room for
	parts   map[*target]*crossPart
	byImg   map[uint32]*target // partitions of the index
	// Of an overwrite that does not replace everything: the partitions that rows come
	// to, and those that keys would have to leave and cannot.
	come, left map[*target]bool

	key, val, pkey, pval []byte // scratch
}

// ownPlace is where a key is; nil = nowhere.
type ownPlace struct {
	part   *target
	bucket int32
	old    bool // of the state that is being overwritten, in part or whole
}

// crossPart is how far a partition's buckets are filled.
type crossPart struct {
	bucket int32
	room   int64 // rows that bucket takes; 0 = look for another
	rows   map[int32]int64
	base   map[int32]int64
}

// maxOwnPlaces is how many keys a writer keeps in memory, if its account lets it;
// ownBytes is about what one takes beside its bytes, and ownStep how much is charged
// at a time.
const (
	maxOwnPlaces = 1 << 20
	ownBytes     = 112
	ownStep      = 256 << 10
)

func (st *state) crossPartition() bool {
	if !st.primaryKey() {
		return false
	}
	for _, p := range st.schema.PartitionKeys {
		if !inList(st.schema.PrimaryKeys, p) {
			return true
		}
	}
	return false
}

// endsKeys reports whether a -D leaves nothing of a row although the merge engine makes
// rows of several: the key is nowhere then, and the next row may be in any partition.
func (st *state) endsKeys() bool {
	switch st.mergeEngine() {
	case "partial-update":
		return st.options.Flag("partial-update.remove-record-on-delete", false)
	case "aggregation":
		return st.options.Flag("aggregation.remove-record-on-delete", false)
	}
	return false
}

// newCross prepares a writer's places: the index of the table, and what the
// transaction wrote before.
func (w *tableWriter) newCross(ctx context.Context) (*crossBuckets, error) {
	st, o := w.st, &w.o
	c := &crossBuckets{w: w, own: map[string]ownPlace{}, parts: map[*target]*crossPart{}, byImg: map[uint32]*target{}, come: map[*target]bool{}, left: map[*target]bool{}}
	switch st.mergeEngine() {
	case "deduplicate":
		c.dedup = true
	case "first-row":
		c.first = true
	}
	c.ends = st.endsKeys()
	r, err := w.t.newKeyReader(st)
	if err != nil {
		return nil, err
	}
	c.pk, c.codec = r.pk, r.codec
	rules, err := st.hashRules(nil)
	if err != nil {
		return nil, err
	}
	c.target = rules.Target
	ttl, _, err := st.keyOptions()
	if err != nil {
		return nil, err
	}
	if c.ttl = int64(ttl.Minutes()); ttl > 0 {
		c.ttl = max(c.ttl, 1)
	}
	if !o.Overwrite {
		c.overlay = o.Overlay
	}
	if c.x, err = w.t.keyIndexAt(ctx, st); err != nil {
		return nil, err
	}
	c.x.mu.RLock()
	if c.x.snap != nil {
		c.at = c.x.snap.ID
	}
	c.x.mu.RUnlock()
	c.empty = o.OverwriteAll
	if c.overlay == nil {
		return c, nil
	}
	// As in follow: first what was taken out, then what was put in.
	byBucket := map[commit.BucketID][]*manifest.DataFile{}
	for i := range c.overlay.Files {
		if e := &c.overlay.Files[i]; e.Kind == manifest.Add {
			id := commit.BucketID{Partition: partitionName(e.Partition), Bucket: e.Bucket}
			byBucket[id] = append(byBucket[id], e.File)
		}
	}
	for _, put := range []bool{false, true} {
		for id, files := range byBucket {
			p, err := w.r.partition([]byte(id.Partition))
			if err != nil {
				c.close()
				return nil, err
			}
			err = r.files(ctx, []byte(id.Partition), id.Bucket, files, func(keys [][]byte, kinds []int16) error {
				for i, k := range keys {
					if retracts := kinds[i]&1 != 0; retracts == put {
						continue
					}
					at := ownPlace{}
					if put {
						at = ownPlace{part: p, bucket: id.Bucket}
					}
					if err := c.note(k, at); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				c.close()
				return nil, err
			}
		}
	}
	return c, nil
}

// note remembers where a key is now.
func (c *crossBuckets) note(key []byte, at ownPlace) error {
	if _, ok := c.own[string(key)]; !ok {
		cost := ownBytes + int64(len(key))
		full := len(c.own) >= maxOwnPlaces
		if !full && c.bytes+cost > c.charged+ownStep {
			if full = c.w.o.Account.Grow(ownStep) != nil; !full {
				c.charged += ownStep
			}
		}
		if full {
			if err := c.spillOwn(); err != nil {
				return err
			}
		}
		c.bytes += cost
	}
	c.own[string(key)] = at
	return nil
}

// spillOwn moves the keys in memory to the disk. A partition goes by its image.
func (c *crossBuckets) spillOwn() error {
	if c.spill == nil {
		s, err := c.x.store.space()
		if err != nil {
			return err
		}
		c.spill = &s
	}
	b := c.spill.db.NewBatch()
	defer b.Close() //nolint:errcheck // it was applied
	var key, val []byte
	for k, at := range c.own {
		key = c.spill.key(key, []byte(k))
		val = val[:0]
		if at.part != nil {
			val = append(append(val, byte(at.bucket>>8), byte(at.bucket)), at.part.image...)
		}
		if err := b.Set(key, val, nil); err != nil {
			return err
		}
	}
	if err := c.spill.commit(b); err != nil {
		return err
	}
	c.forget()
	return nil
}

// forget gives the memory of own back.
func (c *crossBuckets) forget() {
	c.w.o.Account.Shrink(c.charged)
	c.own, c.bytes, c.charged = map[string]ownPlace{}, 0, 0
}

// close gives memory and disk back.
func (c *crossBuckets) close() {
	c.forget()
	if c.spill != nil {
		c.spill.drop()
		c.spill = nil
		c.x.store.relieve()
	}
}

// find returns where a key is; the index is locked.
func (c *crossBuckets) find(key []byte) (ownPlace, error) {
	if at, ok := c.own[string(key)]; ok {
		return at, nil
	}
	if c.spill != nil {
		v, buf, err := c.spill.get(c.pkey, c.pval, key)
		if c.pkey = buf; err != nil {
			return ownPlace{}, err
		}
		if v != nil {
			c.pval = v
			if len(v) < 2 {
				return ownPlace{}, nil
			}
			p, err := c.w.r.partition(v[2:])
			return ownPlace{part: p, bucket: int32(v[0])<<8 | int32(v[1])}, err
		}
	}
	if c.empty {
		return ownPlace{}, nil
	}
	at, ok, buf, val, err := c.x.place(c.key, c.val, key, c.ttl)
	c.key, c.val = buf, val
	if err != nil || !ok {
		return ownPlace{}, err
	}
	p := c.byImg[at.part]
	if p == nil {
		if p, err = c.w.r.partition(c.x.parts[at.part].image); err != nil {
			return ownPlace{}, err
		}
		c.byImg[at.part] = p
	}
	if c.overlay != nil && replaced(c.overlay, p.image) {
		return ownPlace{}, nil
	}
	return ownPlace{p, at.bucket, c.w.o.Overwrite}, nil
}

// assign chooses the bucket of a new key: the lowest with room, else a new one
// (Java: crosspartition.BucketAssigner).
func (c *crossBuckets) assign(p *target) (int32, error) {
	s := c.parts[p]
	if s == nil {
		s = &crossPart{rows: map[int32]int64{}}
		if !c.empty && !c.w.o.Overwrite && (c.overlay == nil || !replaced(c.overlay, p.image)) {
			if id, ok := c.x.ids[string(p.image)]; ok {
				s.base = maps.Clone(c.x.parts[id].rows)
			}
		}
		c.parts[p] = s
	}
	if s.room == 0 {
		for b := int32(0); ; b++ {
			if b > hashindex.MaxBucket {
				return 0, &hashindex.FullError{Target: c.target}
			}
			if n := max(s.base[b], 0) + s.rows[b]; n < c.target {
				s.bucket, s.room = b, c.target-n
				break
			}
		}
	}
	s.room--
	s.rows[s.bucket]++
	return s.bucket, nil
}

// placed are rows as they are written: row src[i] of the batch, as kinds[i], to
// place at[i]; one whose partition is not the row's own has moved set.
type placed struct {
	src   []uint32
	kinds []uint8
	at    []ownPlace
	moved []bool
	same  bool // every row once, as it is
}

func (o *placed) add(i int, kind uint8, at ownPlace, moved bool) {
	o.same = o.same && len(o.src) == i && !moved
	o.src, o.kinds, o.at, o.moved = append(o.src, uint32(i)), append(o.kinds, kind), append(o.at, at), append(o.moved, moved)
}

// place decides about the rows of a batch.
func (c *crossBuckets) place(cols []arrow.Array, n int, kinds []uint8) (*placed, error) {
	r := c.w.r
	arrs := make([]arrow.Array, len(c.pk))
	for i, k := range c.pk {
		arrs[i] = cols[k]
	}
	keys := c.codec.Bytes(arrs, n)
	parts := make([]arrow.Array, len(r.partCols))
	for i, k := range r.partCols {
		parts[i] = cols[k]
	}
	enc := binrow.NewArrowEncoder(r.partTypes, parts)
	out := &placed{same: true}
	c.x.mu.RLock()
	defer c.x.mu.RUnlock()
	if !c.x.ready {
		// Too many tables' indexes were wanted at once, or the disk is full.
		return nil, &commit.ConflictError{SnapshotID: c.at, Reason: "the index of keys was dropped while it was in use"}
	}
	var p *target
	var err error
	for i, key := range keys {
		if p, err = r.partitionAt(enc, i, p); err != nil {
			return nil, err
		}
		kind := uint8(0)
		if kinds != nil {
			kind = kinds[i]
		}
		at, err := c.find(key)
		if err != nil {
			return nil, err
		}
		retracts := kind&1 != 0
		if at.old {
			// What is in the row's own partition goes, and perhaps all of the other; a
			// retraction there is right in both cases.
			if at.part != p && !c.dedup {
				c.left[at.part] = true
			}
			if at.part == p || !c.dedup {
				at = ownPlace{}
			}
		}
		switch {
		case kind&LogOnly != 0:
			if at.part == p {
				out.add(i, kind, at, false)
			}
		case at.part != nil && c.ends && kind == mergetree.KindDelete:
			out.add(i, kind, at, at.part != p)
			err = c.note(key, ownPlace{})
		case at.part == p:
			out.add(i, kind, at, false)
		case at.part != nil && c.first:
		case at.part != nil && !c.dedup:
			out.add(i, kind, at, true)
		case at.part != nil && retracts:
			out.add(i, kind, at, true)
			err = c.note(key, ownPlace{})
		default:
			if at.part != nil {
				out.add(i, mergetree.KindDelete, at, true)
				if s := c.parts[at.part]; s != nil {
					s.rows[at.bucket]--
				}
			}
			var b int32
			if b, err = c.assign(p); err == nil {
				c.come[p] = true
				to := ownPlace{part: p, bucket: b}
				if out.add(i, kind, to, false); c.ends && kind == mergetree.KindDelete {
					to = ownPlace{}
				}
				err = c.note(key, to)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// route turns a batch into what is written, and finds its targets.
func (c *crossBuckets) route(cols []arrow.Array, n int, kinds []uint8) ([]arrow.Array, int, []uint8, []uint32, uint32, error) {
	out, err := c.place(cols, n, kinds)
	if err != nil {
		return nil, 0, nil, nil, 0, err
	}
	dest := make([]uint32, len(out.src))
	for i, at := range out.at {
		dest[i] = c.w.r.target(c.w.t.dir, at.part, at.bucket)
	}
	if !out.same || len(out.src) != n {
		if cols, err = c.moved(cols, out); err != nil {
			return nil, 0, nil, nil, 0, err
		}
		n, kinds = len(out.src), out.kinds
	}
	dest, one, err := oneTarget(dest)
	return cols, n, kinds, dest, one, err
}

// moved gathers the rows that are written, with the partition columns of the
// places of those that moved.
func (c *crossBuckets) moved(cols []arrow.Array, o *placed) ([]arrow.Array, error) {
	r := c.w.r
	out := make([]arrow.Array, len(cols))
	for i, a := range cols {
		out[i] = vec.Take(a, o.src)
	}
	number := map[*target]int{}
	var order []*target
	for i, m := range o.moved {
		if m && number[o.at[i].part] == 0 {
			order = append(order, o.at[i].part)
			number[o.at[i].part] = len(order)
		}
	}
	if len(order) == 0 {
		return out, nil
	}
	vals := make([][]types.Datum, len(r.partCols))
	for _, p := range order {
		ds, err := binrow.Decode(p.image, r.partTypes)
		if err != nil {
			return nil, err
		}
		for k := range vals {
			vals[k] = append(vals[k], ds[k])
		}
	}
	src, row := make([]uint16, len(o.src)), make([]uint32, len(o.src))
	for i := range o.src {
		if row[i] = o.src[i]; o.moved[i] {
			src[i], row[i] = 1, uint32(number[o.at[i].part]-1)
		}
	}
	for k, col := range r.partCols {
		t := r.partTypes[k]
		out[col] = vec.Gather(t.Arrow(), []arrow.Array{vec.Decode(cols[col]), vec.FromDatums(t, vals[k])}, src, row)
	}
	return out, nil
}

// prepared is what the commit must know. An overwrite replaces the partitions that
// rows came to, not those that keys were only taken out of. Where the merge engine
// wants a row in a partition that is not replaced, it cannot be done.
func (c *crossBuckets) prepared(out *commit.Changes) error {
	for p := range c.left {
		if !c.come[p] {
			return &fileio.UnsupportedError{Feature: "INSERT OVERWRITE of some partitions under merge-engine = " + c.w.st.mergeEngine() + " with a key that is in another one (" + trimSlash(p.path) + ")"}
		}
	}
	out.Placed = &commit.Placed{At: c.at}
	if c.w.o.Overwrite && !c.empty {
		out.Overwrite = &commit.Replacement{Partitions: [][]byte{}}
		for p := range c.come {
			out.Overwrite.Partitions = append(out.Overwrite.Partitions, p.image)
		}
	}
	return nil
}
