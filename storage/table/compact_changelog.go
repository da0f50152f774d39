package table

import (
	"context"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/dv"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/compact"
	"github.com/paimon-sql/paimon-sql/storage/datafile"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// Compactions that tell of changes, or that look older versions up, see every
// version of a key:
//
//	Reader.NextVersions -> per key: the versions that take part, with what is looked
//	up in higher levels at its place among them -> deduplicate and first-row pick,
//	others fold -> before and after -> rows of the data file, rows of the changelog
//
// Rows are not copied before it is known which are written: a row is named by
// where it lies (versions, looked-up rows, folded rows) until then.
//
// Source: LookupChangelogMergeFunctionWrapper.java, LookupMergeFunction.java,
// FirstRowMergeFunctionWrapper.java, FullChangelogMergeFunctionWrapper.java.

// mergeMode says what a keyMerge does.
type mergeMode uint8

const (
	// modeLookup looks for the version in levels above the output.
	modeLookup mergeMode = iota
	// modeFirst is modeLookup for first-row: the higher level's version stands.
	modeFirst
	// modeFull compares with the version of the highest level, which takes part.
	modeFull
)

// keyMerge merges versions of keys and finds out what changed.
type keyMerge struct {
	mode   mergeMode
	engine mergetree.Engine // nil = the last (first) version wins
	made   []int            // columns that the engine makes
	types  []arrow.DataType // of all columns of the table
	look   *levelLookup     // nil = there is nothing above the output
	images bool             // looked-up rows take part, or are told
	mark   func(f *File, pos int64)
	level  int32 // modeFull: the highest
	drop   bool  // retractions are not written
	tell   bool  // make a changelog
	write  bool  // make data
	ignore bool  // ignore-delete
	// again: a version of a higher level is folded though it is the only one that
	// counts. Sequence groups make something else of a row that began with a removal,
	// whose columns may have values where the group's fields have none.
	again, zeros bool // zeros: the step has files of level 0
	same         *rowEquality
	expire       *mergetree.Expire
	seqCol       []int // sequence.field
	seqTyp       []types.Type
	desc         bool

	// Scratch of one batch.
	high  []int32 // per key: its version from the lowest level above 0, -1 = none
	zero  []bool  // per key: has a version of level 0
	hit   []int32 // per key: its looked-up row, -1 = none
	ask   [][]byte
	asked []int32
	cand  refs // candidates of the keys that are folded
	ends  []uint32
	after refs    // per key: the result, src = nothing when there is none
	kind  []uint8 // of after
	seqOf []int64
	data  refs
	log   refs
}

// Where a row lies.
const (
	inVersions = iota
	inLooked
	inFolded
	nothing
)

// refs name rows.
type refs struct {
	src []uint16
	row []uint32
}

func (r *refs) reset()        { r.src, r.row = r.src[:0], r.row[:0] }
func (r *refs) len() int      { return len(r.src) }
func (r *refs) add(s, at int) { r.src, r.row = append(r.src, uint16(s)), append(r.row, uint32(at)) }

// rowBatch are rows to be written.
type rowBatch struct {
	cols  []arrow.Array
	n     int
	seq   []int64
	kinds []int8
}

// looked are the rows found in higher levels.
type looked struct {
	hits []levelHit
	cols []arrow.Array // nil = their images were not asked for
	seq  *mergetree.SequenceKeys
}

// merge merges a batch. data and log are what is to be written, with arrays and
// slices of their own.
func (m *keyMerge) merge(ctx context.Context, b *mergetree.VersionBatch) (data, log rowBatch, err error) {
	m.survey(b)
	found, err := m.lookup(ctx, b)
	if err != nil {
		return data, log, err
	}
	folded, err := m.results(b, found)
	if err != nil {
		return data, log, err
	}
	srcs := func(c int) []arrow.Array {
		out := []arrow.Array{b.Cols[c], nil, nil}
		if found.cols != nil {
			out[inLooked] = found.cols[c]
		}
		if folded != nil {
			out[inFolded] = folded[c]
		}
		return out
	}
	m.data.reset()
	for k := range m.kind {
		if !m.write {
			break
		}
		if m.after.src[k] == nothing || m.drop && m.kind[k]&1 != 0 {
			continue
		}
		m.data.add(int(m.after.src[k]), int(m.after.row[k]))
		data.seq = append(data.seq, m.seqOf[k])
		data.kinds = append(data.kinds, int8(m.kind[k]))
	}
	data.n = m.data.len()
	data.cols = m.gather(&m.data, srcs)
	if m.tell {
		log, err = m.changes(b, found, srcs)
	}
	return data, log, err
}

// gather makes the columns of rows.
func (m *keyMerge) gather(r *refs, srcs func(int) []arrow.Array) []arrow.Array {
	if r.len() == 0 {
		return nil
	}
	out := make([]arrow.Array, len(m.types))
	whole := true // the versions as they are
	for i := range r.src {
		if r.src[i] != inVersions || r.row[i] != uint32(i) {
			whole = false
			break
		}
	}
	for c := range out {
		if all := srcs(c)[inVersions]; whole && all.Len() == r.len() {
			out[c] = all
		} else {
			out[c] = m.column(c, r, srcs)
		}
	}
	return out
}

// column makes one column of rows.
func (m *keyMerge) column(c int, r *refs, srcs func(int) []arrow.Array) arrow.Array {
	ss := srcs(c)
	n := len(ss)
	for ss[n-1] == nil {
		n--
	}
	for i := range n {
		if ss[i] == nil {
			ss[i] = vec.MakeNull(m.types[c], 0)
		}
	}
	return vec.Gather(m.types[c], ss[:n], r.src, r.row)
}

// survey finds each key's version from the lowest level above 0, or in modeFull
// the one of the highest level, and whether it has one of level 0.
func (m *keyMerge) survey(b *mergetree.VersionBatch) {
	m.high, m.zero = m.high[:0], m.zero[:0]
	at := 0
	for _, end := range b.Ends {
		high, zero := int32(-1), false
		for ; at < int(end); at++ {
			level := b.Tag[at]
			switch {
			case level <= 0:
				zero = true
			case m.mode == modeFull:
				if level == m.level {
					high = int32(at)
				}
			case high < 0 || level < b.Tag[high]:
				high = int32(at)
			}
		}
		m.high, m.zero = append(m.high, high), append(m.zero, zero)
	}
}

// lookup looks up the keys that have no version above level 0, and marks what was
// found as deleted where the table has deletion vectors.
func (m *keyMerge) lookup(ctx context.Context, b *mergetree.VersionBatch) (*looked, error) {
	out := &looked{}
	m.hit = m.hit[:0]
	for range b.Ends {
		m.hit = append(m.hit, -1)
	}
	if m.mode == modeFull || m.look == nil {
		return out, nil
	}
	m.ask, m.asked = m.ask[:0], m.asked[:0]
	for k, h := range m.high {
		if h < 0 {
			m.ask, m.asked = append(m.ask, b.Keys[k]), append(m.asked, int32(k))
		}
	}
	if len(m.ask) == 0 {
		return out, nil
	}
	hits, err := m.look.find(ctx, m.ask, m.images)
	if err != nil {
		return nil, err
	}
	out.hits = hits[:0] // in place
	for i := range hits {
		h := hits[i]
		if h.File == nil {
			continue
		}
		m.hit[m.asked[i]] = int32(len(out.hits))
		out.hits = append(out.hits, h)
		if m.mark != nil {
			m.mark(h.File, h.Pos)
		}
	}
	if !m.images || len(out.hits) == 0 {
		return out, nil
	}
	cols := make([]int, len(m.types))
	for i := range cols {
		cols[i] = i
	}
	if out.cols, err = m.look.columns(out.hits, cols); err != nil {
		return nil, err
	}
	if m.expire != nil {
		live := map[uint16]bool{}
		for _, i := range m.expire.Keeps(vec.Decode(out.cols[m.expire.Column]), nil) {
			live[i] = true
		}
		for k, h := range m.hit {
			if h >= 0 && !live[uint16(h)] {
				m.hit[k] = -1 // as if it were gone already
			}
		}
	}
	if len(m.seqCol) > 0 {
		// One ordering over both kinds of rows: versions, then what was looked up.
		both := make([]arrow.Array, len(m.seqCol))
		for i, c := range m.seqCol {
			both[i] = vec.Concat(m.types[c], []arrow.Array{b.Cols[c], out.cols[c]})
		}
		out.seq = mergetree.NewSequenceKeys(m.seqTyp, both, b.N+len(out.hits), m.desc)
	}
	return out, nil
}

// before reports whether looked-up row h comes before version v in merge order.
func (l *looked) before(b *mergetree.VersionBatch, h, v int) bool {
	if l.seq != nil {
		if c := l.seq.Compare(b.N+h, v); c != 0 {
			return c < 0
		}
	}
	return l.hits[h].Seq < b.Seq[v]
}

// results settles every key: m.after, m.kind and m.seqOf. It returns the columns
// of folded rows, nil when there are none.
func (m *keyMerge) results(b *mergetree.VersionBatch, found *looked) ([]arrow.Array, error) {
	m.after.reset()
	m.cand.reset()
	m.kind, m.seqOf, m.ends = m.kind[:0], m.seqOf[:0], m.ends[:0]
	var folds []int // keys that are folded
	from := 0
	var list refs
	for k, e := range b.Ends {
		end := int(e)
		list.reset()
		m.candidates(b, found, k, from, end, &list)
		many := end-from > 1
		from = end
		n := list.len()
		switch {
		case n == 0:
			m.settle(b, found, nothing, 0)
		case m.mode == modeFirst:
			if m.high[k] < 0 && m.hit[k] >= 0 {
				m.settle(b, found, nothing, 0) // there is one already
			} else {
				m.settle(b, found, int(list.src[0]), int(list.row[0]))
			}
		case m.engine == nil || n == 1 && (m.mode == modeFull || !m.zero[k] && !(m.again && (m.zeros || many))):
			m.settle(b, found, int(list.src[n-1]), int(list.row[n-1]))
		default:
			folds = append(folds, k)
			m.cand.src, m.cand.row = append(m.cand.src, list.src...), append(m.cand.row, list.row...)
			m.ends = append(m.ends, uint32(m.cand.len()))
			m.settle(b, found, nothing, 0)
		}
	}
	if len(folds) == 0 {
		return nil, nil
	}
	return m.fold(b, found, folds)
}

// settle notes what became of the next key.
func (m *keyMerge) settle(b *mergetree.VersionBatch, found *looked, src, row int) {
	m.after.add(src, row)
	kind, seq := uint8(mergetree.NoRow), int64(0)
	if src != nothing {
		kind, seq = kindAndSeq(b, found, src, row)
	}
	m.kind, m.seqOf = append(m.kind, kind), append(m.seqOf, seq)
}

func kindAndSeq(b *mergetree.VersionBatch, found *looked, src, row int) (uint8, int64) {
	if src == inLooked {
		return found.hits[row].Kind, found.hits[row].Seq
	}
	if b.Kinds == nil {
		return mergetree.KindInsert, b.Seq[row]
	}
	return b.Kinds[row], b.Seq[row]
}

// candidates lists the versions of key k, rows from to end, that take part, in
// merge order.
func (m *keyMerge) candidates(b *mergetree.VersionBatch, found *looked, k, from, end int, list *refs) {
	h := -1
	if m.mode == modeLookup && found.cols != nil {
		h = int(m.hit[k])
	}
	if h >= 0 && m.ignore && found.hits[h].Kind&1 != 0 {
		h = -1
	}
	for v := from; v < end; v++ {
		if m.mode == modeLookup && b.Tag[v] > 0 && int32(v) != m.high[k] {
			continue // what it held went into the lower level's version
		}
		if m.ignore && b.Kinds != nil && b.Kinds[v]&1 != 0 {
			continue
		}
		if h >= 0 && found.before(b, h, v) {
			list.add(inLooked, h)
			h = -1
		}
		list.add(inVersions, v)
	}
	if h >= 0 {
		list.add(inLooked, h)
	}
}

// fold merges the candidates of keys.
func (m *keyMerge) fold(b *mergetree.VersionBatch, found *looked, keys []int) ([]arrow.Array, error) {
	n := m.cand.len()
	in := mergetree.Versions{N: n, Ends: m.ends}
	seq := make([]int64, n)
	kinds, odd := make([]uint8, n), false
	for i := range n {
		kinds[i], seq[i] = kindAndSeq(b, found, int(m.cand.src[i]), int(m.cand.row[i]))
		odd = odd || kinds[i] != mergetree.KindInsert
	}
	if odd {
		in.Kinds = kinds
	}
	column := func(c int, r *refs) arrow.Array {
		ss := []arrow.Array{b.Cols[c]}
		if found.cols != nil {
			ss = append(ss, found.cols[c])
		}
		return vec.Gather(m.types[c], ss, r.src, r.row)
	}
	for _, c := range m.engine.Reads() {
		in.Cols = append(in.Cols, vec.Decode(column(c, &m.cand)))
	}
	var out mergetree.Folded
	if err := m.engine.Fold(&in, &out); err != nil {
		return nil, err
	}
	// What the engine does not make, the key, is that of the last version.
	own := refs{src: make([]uint16, len(keys)), row: make([]uint32, len(keys))}
	for i, k := range keys {
		last := m.ends[i] - 1
		if out.Last != nil {
			last = out.Last[i]
		}
		own.src[i], own.row[i] = m.cand.src[last], m.cand.row[last]
		kind := mergetree.KindInsert
		if out.Kinds != nil {
			kind = out.Kinds[i]
		}
		if m.kind[k] = kind; kind != mergetree.NoRow {
			m.after.src[k], m.after.row[k] = inFolded, uint32(i)
			m.seqOf[k] = seq[last]
		}
	}
	cols := make([]arrow.Array, len(m.types))
	for i, c := range m.made {
		cols[c] = out.Cols[i]
	}
	for c := range cols {
		if cols[c] == nil {
			cols[c] = column(c, &own)
		}
	}
	return cols, nil
}

// changes makes the changelog of a batch.
func (m *keyMerge) changes(b *mergetree.VersionBatch, found *looked, srcs func(int) []arrow.Array) (log rowBatch, err error) {
	m.log.reset()
	add := func(src, row int, kind uint8, seq int64) {
		m.log.add(src, row)
		log.seq, log.kinds = append(log.seq, seq), append(log.kinds, int8(kind))
	}
	var pairs []int // where in log a pair -U, +U begins
	from := uint32(0)
	for k := range m.kind {
		n := b.Ends[k] - from
		from = b.Ends[k]
		src, row := nothing, 0
		switch {
		case m.mode == modeFull:
			if n == 1 && m.high[k] >= 0 {
				continue // as it was
			}
		case m.mode == modeFirst:
			if m.high[k] >= 0 || m.after.src[k] == nothing {
				continue
			}
		case !m.zero[k]:
			continue
		}
		if m.high[k] >= 0 {
			src, row = inVersions, int(m.high[k])
		} else if m.hit[k] >= 0 && m.mode == modeLookup {
			src, row = inLooked, int(m.hit[k])
		}
		var seq int64
		if src != nothing {
			var kind uint8
			if kind, seq = kindAndSeq(b, found, src, row); kind&1 != 0 {
				src = nothing
			}
		}
		adds := m.after.src[k] != nothing && m.kind[k]&1 == 0
		switch {
		case src == nothing && adds:
			add(int(m.after.src[k]), int(m.after.row[k]), mergetree.KindInsert, m.seqOf[k])
		case src != nothing && !adds:
			add(src, row, mergetree.KindDelete, seq)
		case src != nothing && adds:
			pairs = append(pairs, m.log.len())
			add(src, row, mergetree.KindUpdateBefore, seq)
			add(int(m.after.src[k]), int(m.after.row[k]), mergetree.KindUpdateAfter, m.seqOf[k])
		}
	}
	if m.same != nil && len(pairs) > 0 {
		if err := m.withoutEqual(&log, pairs, srcs); err != nil {
			return log, err
		}
	}
	if log.n = m.log.len(); log.n > 0 {
		log.cols = m.gather(&m.log, srcs)
	}
	return log, nil
}

// withoutEqual takes pairs out of the changelog whose rows are equal.
func (m *keyMerge) withoutEqual(log *rowBatch, pairs []int, srcs func(int) []arrow.Array) error {
	equal, err := m.same.pairs(&m.log, pairs, m, srcs)
	if err != nil {
		return err
	}
	gone := make([]bool, m.log.len())
	any := false
	for i, p := range pairs {
		if equal[i] {
			gone[p], gone[p+1] = true, true
			any = true
		}
	}
	if !any {
		return nil
	}
	n := 0
	for i := range gone {
		if !gone[i] {
			m.log.src[n], m.log.row[n], log.seq[n], log.kinds[n] = m.log.src[i], m.log.row[i], log.seq[i], log.kinds[i]
			n++
		}
	}
	m.log.src, m.log.row, log.seq, log.kinds = m.log.src[:n], m.log.row[:n], log.seq[:n], log.kinds[:n]
	return nil
}

// newKeyMerge prepares the merging of a job's step: write says whether data files
// are wanted, marks takes the rows that are found in higher levels.
func (c *compaction) newKeyMerge(j *job, write bool, marks map[string]*dv.Vector) (*keyMerge, error) {
	st, o := c.p.state, c.opts
	m := &keyMerge{write: write, expire: c.expire, drop: j.unit.DropDelete, ignore: st.ignoreDelete(), seqCol: c.all.seqCols, desc: c.all.seqDesc}
	for _, f := range st.schema.Fields {
		m.types = append(m.types, f.Type.Arrow())
	}
	for _, s := range m.seqCol {
		m.seqTyp = append(m.seqTyp, st.schema.Fields[s].Type)
	}
	switch {
	case o.Changelog == "full-compaction":
		m.mode, m.level, m.tell, m.drop = modeFull, j.unit.Max, true, true
	case o.Engine == "first-row":
		m.mode, m.tell = modeFirst, o.Changelog == "lookup"
	default:
		m.tell = o.Changelog == "lookup"
		m.images = m.tell || o.Engine != "deduplicate" || o.Sequence || !o.DeletionFiles
	}
	if m.mode != modeFull && len(j.rest) > 0 {
		m.look = c.all.newLevelLookup(j.dir, j.rest)
	}
	if o.DeletionFiles && m.mode == modeLookup {
		m.mark = func(f *File, pos int64) {
			v := marks[f.Meta.Name]
			if v == nil {
				v = &dv.Vector{}
				marks[f.Meta.Name] = v
			}
			v.Add(pos)
		}
	}
	m.again = m.mode == modeLookup && mergetree.Grouped(st.options)
	if m.mode != modeFirst {
		if e := st.engine(); e != nil {
			for i := range st.schema.Fields {
				if !slices.Contains(c.all.keyCols, i) {
					m.made = append(m.made, i)
				}
			}
			var err error
			if m.engine, err = e(m.made); err != nil {
				return nil, err
			}
		}
	}
	var err error
	if m.tell && m.mode != modeFirst {
		m.same, err = newRowEquality(st.schema, st.options)
	}
	return m, err
}

// looksUp reports whether a step that is rewritten needs to see all versions of
// its keys.
func (c *compaction) looksUp(j *job, s *compact.Step) bool {
	o := c.opts
	if o.Changelog == "full-compaction" {
		return j.unit.Level == j.unit.Max
	}
	if !o.Lookup || j.unit.Level == 0 {
		return false
	}
	for _, i := range inputsOf(*s) {
		if j.inputs[i].File.Level <= 0 {
			return true
		}
	}
	// Versions of higher levels than the lowest went into that one's already.
	return c.p.state.engine() != nil
}

// rewriteVersions merges what split names, writing data files if write is set and
// a changelog if the table has one. zeros: the step has files of level 0.
func (c *compaction) rewriteVersions(ctx context.Context, j *job, im *piece, split Split, write, zeros bool, out *outcome, rows func(int64)) (after []*manifest.DataFile, err error) {
	m, err := c.newKeyMerge(j, write, out.marks)
	if err != nil {
		return nil, err
	}
	m.zeros = zeros
	if m.look != nil {
		defer m.look.close()
	}
	r := newMergeReader(im, split, ReadOptions{Counters: &format.Counters{}})
	defer r.Close() //nolint:errcheck // a reader
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var data, log *rowPipe
	defer func() {
		for _, p := range []*rowPipe{data, log} {
			if p != nil && err != nil {
				p.abort(ctx)
			}
		}
	}()
	if write {
		if data, err = c.newPipe(ctx, cancel, j, j.unit.Level, false); err != nil {
			return nil, err
		}
	}
	if m.tell {
		if log, err = c.newPipe(ctx, cancel, j, j.unit.Level, true); err != nil {
			return nil, err
		}
	}
	for {
		b, err := r.m.NextVersions(ctx)
		if err != nil {
			return nil, c.explain(ctx, err)
		}
		if b == nil {
			break
		}
		d, l, err := m.merge(ctx, b)
		if err != nil {
			return nil, c.explain(ctx, err)
		}
		for i, p := range []*rowPipe{data, log} {
			if p == nil {
				continue
			}
			if err := p.put(ctx, []rowBatch{d, l}[i]); err != nil {
				return nil, err
			}
		}
		rows(int64(b.N))
	}
	// Most of a small file's work is done when it is closed: side by side, too.
	closed := make(chan error, 1)
	var told []*manifest.DataFile
	go func() {
		var err error
		if log != nil {
			told, err = log.close(ctx)
		}
		closed <- err
	}()
	if data != nil {
		after, err = data.close(ctx)
	}
	if err2 := <-closed; err == nil {
		err = err2
	}
	if err != nil {
		return nil, err
	}
	for _, p := range []*rowPipe{data, log} {
		if p == nil {
			continue
		}
		files := after
		if p == log {
			files = told
		}
		for _, f := range files {
			out.made = append(out.made, dataPaths(j.dir, f)...)
			out.written += f.Size
			if p == log {
				e := j.like
				e.Kind, e.File = manifest.Add, f
				out.changes = append(out.changes, e)
			}
		}
	}
	return after, nil
}

// explain says what an error of reading means for the state read.
func (c *compaction) explain(ctx context.Context, err error) error {
	return c.t.explain(ctx, c.p.state, c.scan.At, err)
}

// rowPipe writes rows on a goroutine of its own.
type rowPipe struct {
	c    *compaction
	w    datafile.Writer
	rows chan rowBatch
	done chan struct{}
	err  error // set before done is closed
}

func (c *compaction) newPipe(ctx context.Context, fail context.CancelCauseFunc, j *job, level int32, changelog bool) (*rowPipe, error) {
	o := datafile.Options{
		IO: c.t.env.IO, Dir: j.dir + "/", Format: c.t.env.formats["parquet"], Schema: c.p.schema, Table: c.p.options,
		Level: level, Source: 1, Account: c.o.Account,
	}
	if changelog {
		// Java gives the source as that of an append (KeyValueFileWriterFactory).
		var err error
		if o.Table, o.Prefix, err = changelogOptions(c.p.options); err != nil {
			return nil, err
		}
		o.Source, o.NoIndexes = 0, true
	}
	w, err := datafile.New(o)
	if err != nil {
		return nil, err
	}
	rows := make(chan rowBatch, 2)
	p := &rowPipe{c: c, w: w, rows: rows, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		for b := range rows {
			if p.err != nil || b.n == 0 {
				continue
			}
			if p.err = p.write(ctx, b); p.err != nil {
				fail(p.err)
			}
		}
	}()
	return p, nil
}

func (p *rowPipe) write(ctx context.Context, b rowBatch) error {
	was := p.w.Written()
	if err := p.w.Write(ctx, b.cols, b.n, b.seq, b.kinds); err != nil {
		return err
	}
	if now := p.w.Written(); p.c.o.Throttle != nil && now > was {
		return p.c.o.Throttle(ctx, now-was)
	}
	return nil
}

func (p *rowPipe) put(ctx context.Context, b rowBatch) error {
	select {
	case p.rows <- b:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// close ends the files. After an error abort is due.
func (p *rowPipe) close(ctx context.Context) ([]*manifest.DataFile, error) {
	close(p.rows)
	p.rows = nil
	<-p.done
	if p.err != nil {
		return nil, p.err
	}
	return p.w.Close(ctx)
}

func (p *rowPipe) abort(ctx context.Context) {
	if p.rows != nil {
		close(p.rows)
		<-p.done
	}
	_ = p.w.Abort(context.WithoutCancel(ctx)) // orphans at worst
}
