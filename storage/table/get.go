package table

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// Get looks keys up. See Table. Per bucket:
//
//	keys --key ranges--> files --lookup store, or pages--> versions --> rows
//
// from the newest sorted run to the oldest. Where the version with the highest
// sequence number wins, a run is only looked into for keys that it may have a
// newer version of than was found; with sequence fields, or an engine that merges,
// all versions are collected.
func (t *FileStore) Get(ctx context.Context, l Lookup) (*vec.Batch, []int32, error) {
	p, err := t.lookupPlan(ctx, &l)
	if err != nil {
		return nil, nil, err
	}
	if len(l.Keys) != len(p.pk) {
		return nil, nil, fmt.Errorf("lookup by %d columns in a table with a key of %d", len(l.Keys), len(p.pk))
	}
	if p.read.st.options.String("scan.fallback-branch", "") != "" || p.read.st.options.String("scan.primary-branch", "") != "" {
		return t.getByScan(ctx, l)
	}
	n := l.Keys[0].Len()
	if n != 1 || p.chars {
		g, err := p.begin(&l)
		if err != nil {
			return nil, nil, err
		}
		defer g.end()
		if err := g.many(ctx, l.Keys, n); err != nil {
			return nil, nil, t.explain(ctx, p.read.st, l.At, err)
		}
		return g.result()
	}
	key := make([]types.Datum, len(l.Keys))
	for i, a := range l.Keys {
		key[i] = vec.DatumAt(a, p.pkTypes[i], 0)
	}
	return t.getOne(ctx, p, &l, key)
}

func (t *FileStore) getOne(ctx context.Context, p *lookupPlan, l *Lookup, key []types.Datum) (*vec.Batch, []int32, error) {
	g, err := p.begin(l)
	if err != nil {
		return nil, nil, err
	}
	defer g.end()
	if !slices.Contains(key, nil) {
		if err := g.key(ctx, key); err != nil {
			return nil, nil, t.explain(ctx, p.read.st, l.At, err)
		}
	}
	return g.result()
}

// getter is the work of one Get, with scratch memory that the next one uses again.
type getter struct {
	p    *lookupPlan
	cols []int
	d    finder

	b     binrow.Builder
	byKey []byte
	vals  []types.Datum

	images [][]byte // rows found that stand as they are
	which  []int32  // the key that each is of
	folded []folded
}

// folded are keys whose versions the engine has merged: arrays of the columns.
type folded struct {
	cols  []arrow.Array
	which []int32
}

var getters = sync.Pool{New: func() any { return new(getter) }}

func (p *lookupPlan) begin(l *Lookup) (*getter, error) {
	for _, c := range l.Columns {
		if c < 0 || c >= len(p.read.st.schema.Fields) {
			return nil, fmt.Errorf("lookup asks for column %d of %d", c, len(p.read.st.schema.Fields))
		}
	}
	g := getters.Get().(*getter)
	g.p, g.cols = p, l.Columns
	d := &g.d
	d.p, d.c, d.skip0, d.rows, d.need = p, l.Counters, l.SkipLevel0 && p.skipLevel0, true, l.Columns
	switch p.mode {
	case lookupNewest, lookupFirst:
		d.rows = len(l.Columns) > 0
	case lookupOrdered:
		d.need = slices.Concat(l.Columns, p.read.seqCols)
	case lookupFolded:
		d.need = nil
	}
	return g, nil
}

// end gives the scratch memory back.
func (g *getter) end() {
	clear(g.images)
	clear(g.d.scratch[:cap(g.d.scratch)])
	clear(g.d.sub[:cap(g.d.sub)])
	g.images, g.which, g.folded = g.images[:0], nil, nil
	g.p, g.cols = nil, nil
	g.d.p, g.d.runs, g.d.c, g.d.need = nil, nil, nil, nil
	if cap(g.images) <= 1024 && cap(g.d.scratch) <= 1024 && cap(g.byKey) <= 64<<10 {
		getters.Put(g)
	}
}

// key looks one key up.
func (g *getter) key(ctx context.Context, key []types.Datum) error {
	if !g.p.forms {
		return g.stored(ctx, key)
	}
	forms, err := g.p.keyForms(key)
	if err != nil {
		return err
	}
	for _, k := range forms {
		if err := g.stored(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// mostForms bounds how many stored keys are looked up for one.
const mostForms = 512

// keyForms returns the stored keys that SQL takes for equal to key; an
// UnsupportedError when there are too many.
func (p *lookupPlan) keyForms(key []types.Datum) ([][]types.Datum, error) {
	out := [][]types.Datum{nil}
	for i, d := range key {
		var next [][]types.Datum
		forms, ok := valueForms(d, p.pkTypes[i])
		if !ok || len(out)*len(forms) > mostForms {
			return nil, &fileio.UnsupportedError{Feature: "a lookup of a key that may be stored in too many ways"}
		}
		for _, v := range forms {
			for _, k := range out {
				next = append(next, append(k[:len(k):len(k)], v))
			}
		}
		out = next
	}
	return out, nil
}

func valueForms(d types.Datum, t types.Type) ([]types.Datum, bool) {
	switch v := d.(type) {
	case float64:
		if v == 0 {
			return []types.Datum{v, math.Copysign(0, -math.Copysign(1, v))}, true
		}
	case string:
		if t.Kind == types.BpChar {
			return storedForms(d, t)
		}
	}
	return []types.Datum{d}, true
}

// hasNaN reports whether a key holds a NaN: all of them are one key, but their bits,
// and with them hashes and images, may differ.
func hasNaN(key []types.Datum) bool {
	return slices.ContainsFunc(key, func(d types.Datum) bool { v, ok := d.(float64); return ok && v != v })
}

// stored looks one key up as it is stored.
func (g *getter) stored(ctx context.Context, key []types.Datum) error {
	p := g.p
	g.vals = g.vals[:0]
	for _, i := range p.trimmed {
		g.vals = append(g.vals, key[i])
	}
	g.byKey = p.read.codec.Append(g.byKey[:0], g.vals)
	if !p.whole || p.forms && hasNaN(key) {
		for _, part := range p.parts {
			if err := g.part(ctx, part, key); err != nil {
				return err
			}
		}
		return nil
	}
	name, err := g.partitionOf(key)
	if err != nil {
		return err
	}
	if part := p.parts[string(name)]; part != nil {
		return g.part(ctx, part, key)
	}
	return nil
}

// part looks the key in g.byKey up in a partition: in the bucket that it is hashed
// into, or in all.
func (g *getter) part(ctx context.Context, part *lookupPart, key []types.Datum) error {
	if len(part.list) == 1 {
		return g.bucket(ctx, part.list[0])
	}
	if n, ok := g.bucketOf(part, key); ok {
		if b := part.buckets[n]; b != nil {
			return g.bucket(ctx, b)
		}
		return nil
	}
	for _, b := range part.list {
		if err := g.bucket(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// bucketOf returns the bucket of a key, where that can be computed.
func (g *getter) bucketOf(part *lookupPart, key []types.Datum) (int32, bool) {
	h := g.p.hash
	if h == nil || part.total <= 0 || g.p.forms && hasNaN(key) {
		return 0, false
	}
	if h.fn != binrow.DefaultBucket {
		vals := make([]types.Datum, len(h.types))
		for i, at := range g.p.hashPos {
			vals[i] = key[at]
		}
		return binrow.Bucket(h.fn, h.types, vals, part.total)
	}
	g.b.Reset(len(h.types))
	for i, at := range g.p.hashPos {
		if g.b.Set(i, h.types[i], key[at]) != nil {
			return 0, false
		}
	}
	return binrow.BucketOf(g.b.Image(), part.total), true
}

// bucket looks the key in g.byKey up in a bucket.
func (g *getter) bucket(ctx context.Context, b *lookupBucket) error {
	g.d.runs = b.runs
	if g.p.mode == lookupNewest || g.p.mode == lookupFirst {
		v, err := g.d.one(ctx, g.byKey)
		if err == nil && v.file != nil && v.Kind&1 == 0 {
			g.images, g.which = append(g.images, v.Row), append(g.which, 0)
		}
		return err
	}
	return g.merge(ctx, [][]byte{g.byKey}, func(int32) []int32 { return oneKey })
}

var oneKey = []int32{0}

// oneHigh leaves, of each key's versions above level 0, only the one of the lowest
// level: compactions that look up have merged the others into it. Source:
// LookupMergeFunction.java.
func oneHigh(vs []keyVersion) []keyVersion {
	out := vs[:0]
	for i := 0; i < len(vs); {
		low := int32(math.MaxInt32)
		j := i
		for ; j < len(vs) && vs[j].Key == vs[i].Key; j++ {
			if l := vs[j].file.file.Meta.Level; l > 0 {
				low = min(low, l)
			}
		}
		for ; i < j; i++ {
			if l := vs[i].file.file.Meta.Level; l <= 0 || l == low {
				out = append(out, vs[i])
			}
		}
	}
	return out
}

// merge collects the versions of ascending keys of the finder's bucket and makes
// rows of them; asked names the keys asked for that key k stands for.
func (g *getter) merge(ctx context.Context, keys [][]byte, asked func(k int32) []int32) error {
	vs, err := g.d.versions(ctx, keys)
	if err != nil {
		return err
	}
	p := g.p
	if p.mode == lookupFolded && p.read.st.looksUp() {
		vs = oneHigh(vs)
	}
	var in mergetree.Versions
	var images [][]byte
	var which []int32 // of keys that are folded
	for i := 0; i < len(vs); {
		j := i + 1
		for j < len(vs) && vs[j].Key == vs[i].Key {
			j++
		}
		if p.mode == lookupFolded && j-i > 1 {
			for _, v := range vs[i:j] {
				images = append(images, v.Row)
				in.Kinds = append(in.Kinds, v.Kind)
			}
			in.N = len(images)
			in.Ends = append(in.Ends, uint32(in.N))
			which = append(which, vs[i].Key)
			i = j
			continue
		}
		last := j - 1
		for p.ignoreDelete && last >= i && vs[last].Kind&1 != 0 {
			last--
		}
		if last >= i && vs[last].Kind&1 == 0 {
			for _, q := range asked(vs[i].Key) {
				g.images, g.which = append(g.images, vs[last].Row), append(g.which, q)
			}
		}
		i = j
	}
	if len(which) == 0 {
		return nil
	}
	engine, err := p.read.st.newEngine(g.cols)
	if err != nil {
		return err
	}
	s := p.read.st.schema
	for _, c := range engine.Reads() {
		a, err := imageColumn(s, c, images)
		if err != nil {
			return err
		}
		in.Cols = append(in.Cols, a)
	}
	if !slices.ContainsFunc(in.Kinds, func(k uint8) bool { return k != 0 }) {
		in.Kinds = nil
	}
	var out mergetree.Folded
	if err := engine.Fold(&in, &out); err != nil {
		return err
	}
	f := folded{}
	var rows []int32
	for k := range which {
		if out.Kinds != nil && (out.Kinds[k] == mergetree.NoRow || out.Kinds[k]&1 != 0) {
			continue
		}
		for _, q := range asked(which[k]) {
			rows, f.which = append(rows, int32(k)), append(f.which, q)
		}
	}
	for _, a := range out.Cols {
		f.cols = append(f.cols, vec.Take(a, rows))
	}
	if len(rows) > 0 {
		g.folded = append(g.folded, f)
	}
	return nil
}

// result makes the batch.
func (g *getter) result() (*vec.Batch, []int32, error) {
	s := g.p.read.st.schema
	out := &vec.Batch{Schema: g.p.fieldsOf(g.cols), Cols: make([]arrow.Array, len(g.cols))}
	which := g.which
	for _, f := range g.folded {
		which = append(which, f.which...)
	}
	out.N = len(which)
	for i, c := range g.cols {
		var parts []arrow.Array
		if len(g.images) > 0 || len(g.folded) == 0 {
			a, err := imageColumn(s, c, g.images)
			if err != nil {
				return nil, nil, err
			}
			if len(g.folded) == 0 {
				out.Cols[i] = a
				continue
			}
			parts = append(parts, a)
		}
		for _, f := range g.folded {
			parts = append(parts, f.cols[i])
		}
		out.Cols[i] = parts[0]
		if len(parts) > 1 {
			out.Cols[i] = vec.Concat(vec.Plain(parts[0].DataType()), parts)
		}
	}
	return out, which, nil
}

// wantedKeys are the keys that are looked for in one bucket.
type wantedKeys struct {
	keys [][]byte
	nums []int32 // which of the keys asked for each is
}

// many looks n keys up.
func (g *getter) many(ctx context.Context, keys []arrow.Array, n int) error {
	p := g.p
	if n > 1<<31-1 {
		return fmt.Errorf("lookup of %d keys", n)
	}
	byBucket := map[*lookupBucket]*wantedKeys{}
	g.byKey = make([]byte, 0, min(n, 1<<20)*16)
	put := func(b *lookupBucket, key []byte, q int32) {
		w := byBucket[b]
		if w == nil {
			w = &wantedKeys{}
			byBucket[b] = w
		}
		w.keys, w.nums = append(w.keys, key), append(w.nums, q)
	}
	vals := make([]types.Datum, len(keys))
	for r := range n {
		null := false
		for i, a := range keys {
			vals[i] = vec.DatumAt(a, p.pkTypes[i], r)
			null = null || vals[i] == nil
		}
		if null {
			continue
		}
		forms := [][]types.Datum{vals}
		if p.forms {
			var err error
			if forms, err = p.keyForms(vals); err != nil {
				return err
			}
		}
		for _, k := range forms {
			if err := g.route(k, func(b *lookupBucket, key []byte) { put(b, key, int32(r)) }); err != nil {
				return err
			}
		}
	}
	for b, w := range byBucket {
		if err := g.bucketMany(ctx, b, w); err != nil {
			return err
		}
	}
	return nil
}

// route names the buckets that a stored key may be in.
func (g *getter) route(key []types.Datum, put func(b *lookupBucket, key []byte)) error {
	p := g.p
	g.vals = g.vals[:0]
	for _, i := range p.trimmed {
		g.vals = append(g.vals, key[i])
	}
	at := len(g.byKey)
	g.byKey = p.read.codec.Append(g.byKey, g.vals)
	form := g.byKey[at:len(g.byKey):len(g.byKey)] // it stays where it is when byKey moves
	part := func(part *lookupPart) {
		if n, ok := g.bucketOf(part, key); ok && len(part.list) > 1 {
			if b := part.buckets[n]; b != nil {
				put(b, form)
			}
			return
		}
		for _, b := range part.list {
			put(b, form)
		}
	}
	if !p.whole || p.forms && hasNaN(key) {
		for _, x := range p.parts {
			part(x)
		}
		return nil
	}
	name, err := g.partitionOf(key)
	if err != nil {
		return err
	}
	if x := p.parts[string(name)]; x != nil {
		part(x)
	}
	return nil
}

// bucketMany looks many keys up in one bucket.
func (g *getter) bucketMany(ctx context.Context, b *lookupBucket, w *wantedKeys) error {
	order := make([]int32, len(w.keys))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, j int32) int { return bytes.Compare(w.keys[i], w.keys[j]) })
	keys := make([][]byte, 0, len(order))
	ends := make([]int32, 0, len(order)) // of the numbers of each key
	nums := make([]int32, len(order))
	for i, o := range order {
		nums[i] = w.nums[o]
		if k := w.keys[o]; len(keys) == 0 || !bytes.Equal(keys[len(keys)-1], k) {
			keys, ends = append(keys, k), append(ends, int32(i))
		}
		ends[len(ends)-1] = int32(i + 1)
	}
	asked := func(k int32) []int32 {
		from := int32(0)
		if k > 0 {
			from = ends[k-1]
		}
		return nums[from:ends[k]]
	}
	g.d.runs = b.runs
	if g.p.mode == lookupOrdered || g.p.mode == lookupFolded {
		return g.merge(ctx, keys, asked)
	}
	vs, err := g.d.winners(ctx, keys)
	if err != nil {
		return err
	}
	for i := range vs {
		v := &vs[i]
		if v.file == nil || v.Kind&1 != 0 {
			continue
		}
		for _, q := range asked(int32(i)) {
			g.images, g.which = append(g.images, v.Row), append(g.which, q)
		}
	}
	return nil
}

// fieldsOf is the schema of a batch: most lookups of a table ask for the same columns.
func (p *lookupPlan) fieldsOf(cols []int) types.Schema {
	if x := p.asked.Load(); x != nil && slices.Equal(x.cols, cols) {
		return x.fields
	}
	x := &askedFields{slices.Clone(cols), fieldsOf(p.read.st.schema.Fields, cols)}
	p.asked.Store(x)
	return x.fields
}

// askedFields are the fields of some columns.
type askedFields struct {
	cols   []int
	fields types.Schema
}

func fieldsOf(s types.Schema, cols []int) types.Schema {
	out := make(types.Schema, len(cols))
	for i, c := range cols {
		out[i] = s[c]
	}
	return out
}

func emptyColumns(s types.Schema, cols []int) []arrow.Array {
	out := make([]arrow.Array, len(cols))
	for i, c := range cols {
		out[i] = vec.MakeNull(s[c].Type.Arrow(), 0)
	}
	return out
}

// partitionOf returns the image of the partition that a key names, valid until the
// next call.
func (g *getter) partitionOf(key []types.Datum) ([]byte, error) {
	p := g.p
	if len(p.partPos) == 0 {
		return noPartition, nil
	}
	g.b.Reset(len(p.partPos))
	for i, at := range p.partPos {
		if err := g.b.Set(i, p.partTs[i], key[at]); err != nil {
			return nil, fmt.Errorf("partition of a key: %w", err)
		}
	}
	return g.b.Image(), nil
}
