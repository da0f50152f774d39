package table

import (
	"strings"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// maxBucketKeys bounds how many bucket keys a filter may stand for.
const maxBucketKeys = 1024

// bucketFilter knows which buckets can hold rows that pass the filter: those of
// the keys that it fixes, by equality or a list, in every bucket-key column.
type bucketFilter struct {
	fn     binrow.BucketFunction
	cols   []int // of the table's schema
	types  []types.Type
	keys   [][]types.Datum
	wanted map[int32]map[int32]bool // by bucket count
	files  map[int64]bool           // schema id -> its bucket key is hashed the same
	blame  int                      // the runtime filter without which there were none
}

// newBucketFilter returns nil when the filter does not fix a bucket key.
func (p *planner) newBucketFilter() *bucketFilter {
	if p.filter == nil || !p.scan.prunes(PruneBuckets) {
		return nil
	}
	names := p.options.List("bucket-key")
	if len(names) == 0 {
		names = p.schema.TrimmedKey()
	}
	if len(names) == 0 {
		return nil
	}
	cols, err := columnsOf(p.schema, names)
	if err != nil {
		return nil
	}
	b := &bucketFilter{cols: cols, wanted: map[int32]map[int32]bool{}, files: map[int64]bool{}}
	switch p.options.Enum("bucket-function.type", "default") {
	case "default":
	case "mod":
		b.fn = binrow.ModBucket
	case "hive":
		b.fn = binrow.HiveBucket
	default:
		return nil
	}
	b.keys = [][]types.Datum{nil}
	for _, c := range cols {
		t := p.schema.Fields[c].Type
		b.types = append(b.types, t)
		vals, ok := fixedValues(p.filter, c, t)
		if !ok || len(vals)*len(b.keys) > maxBucketKeys {
			return nil
		}
		var next [][]types.Datum
		for _, k := range b.keys {
			for _, v := range vals {
				next = append(next, append(k[:len(k):len(k)], v))
			}
		}
		b.keys = next
	}
	return b
}

// fixedValues returns every stored value of a column with which a row can pass.
func fixedValues(n predicate.Node, col int, t types.Type) ([]types.Datum, bool) {
	switch n := n.(type) {
	case *predicate.Leaf:
		if n.Col != col || n.Op != predicate.Eq && n.Op != predicate.In {
			return nil, false
		}
		var out []types.Datum
		for _, a := range n.Args {
			vs, ok := storedForms(a, t)
			if !ok {
				return nil, false
			}
			out = append(out, vs...)
		}
		return out, true
	case *predicate.And:
		for _, a := range n.Args {
			if vs, ok := fixedValues(a, col, t); ok {
				return vs, true
			}
		}
	}
	return nil, false
}

// charForms bounds how many stored values of a CHAR column are tried for one.
const charForms = 256

// storedForms returns the values that SQL takes for equal to d but that are
// stored, and hashed, differently.
func storedForms(d types.Datum, t types.Type) ([]types.Datum, bool) {
	switch t.Kind {
	case types.Float4, types.Float8: // 0 and -0, many NaNs
		return nil, false
	case types.BpChar: // padded by SQL writers, bare from others
		s, ok := d.(string)
		if !ok {
			return nil, false
		}
		bare := trimBlanks(s)
		n := max(int(t.Len)-runes(bare), 0)
		if n >= charForms {
			return nil, false
		}
		out := make([]types.Datum, 0, n+1)
		for i := range n + 1 {
			out = append(out, bare+strings.Repeat(" ", i))
		}
		return out, true
	}
	return []types.Datum{d}, d != nil
}

func trimBlanks(s string) string {
	for len(s) > 0 && s[len(s)-1] == ' ' {
		s = s[:len(s)-1]
	}
	return s
}

func runes(s string) int {
	n := 0
	for range s {
		n++
	}
	return n
}

// bucketWanted reports whether the bucket of an entry may hold a match.
func (p *planner) bucketWanted(e *manifest.Entry) (bool, error) {
	b := p.buckets
	if b == nil || e.TotalBuckets <= 0 {
		return true, nil
	}
	same, ok := b.files[e.File.SchemaID]
	if !ok {
		fs, err := p.fileSchema(e.File.SchemaID)
		if err != nil {
			return false, err
		}
		same = true
		for _, c := range b.cols {
			src, err := fs.evo.Source(c)
			same = same && err == nil && src >= 0 && fs.evo.Identity(c) &&
				types.PaimonString(fs.schema.Fields[src].Type.WithNotNull(false)) == types.PaimonString(p.schema.Fields[c].Type.WithNotNull(false))
		}
		b.files[e.File.SchemaID] = same
	}
	if !same {
		return true, nil
	}
	w, ok := b.wanted[e.TotalBuckets]
	if !ok {
		w = map[int32]bool{}
		for _, k := range b.keys {
			n, ok := binrow.Bucket(b.fn, b.types, k, e.TotalBuckets)
			if !ok {
				w = nil
				break
			}
			w[n] = true
		}
		b.wanted[e.TotalBuckets] = w
	}
	return w == nil || w[e.Bucket], nil
}

// fileSchema is what a plan needs of the schema of data files.
type fileSchema struct {
	schema  *schema.Table
	evo     *schema.Evolution
	checked bool // every wanted column can be read
	// filter is the scan's as file indexes understand it, once translated.
	filter     predicate.Node
	translated bool
}

func (p *planner) fileSchema(id int64) (*fileSchema, error) {
	if fs, ok := p.fileSchemas[id]; ok {
		return fs, nil
	}
	s := p.schema
	if id != s.ID {
		var err error
		if s, err = p.t.schemaOf(p.ctx, p.branch, id); err != nil {
			return nil, err
		}
	}
	fs := &fileSchema{schema: s, evo: p.t.evolutions.Get(s, p.schema)}
	p.fileSchemas[id] = fs
	return fs, nil
}

// fileStats answers leaves from what the manifest says of one file. Value
// statistics count only when values is set.
type fileStats struct {
	p      *planner
	l      live
	fs     *fileSchema
	values bool
}

// Stats is predicate.Source.
func (f *fileStats) Stats(leaf *predicate.Leaf) (predicate.ColumnStats, bool) {
	p, file := f.p, f.l.File
	if i := p.partIndex(leaf.Col); i >= 0 {
		return predicate.One(f.l.part.vals[i]), true
	}
	for i, c := range p.keyCols {
		if c == leaf.Col {
			return statsOf(&file.KeyStats, len(p.keyCols), i, p.schema.Fields[c].Type, file.Rows)
		}
	}
	if !f.values || leaf.Col < 0 || leaf.Col >= len(p.schema.Fields) {
		return predicate.ColumnStats{}, false
	}
	return f.p.valueStats(file, f.fs, leaf.Col)
}

func statsOf(s *manifest.Stats, arity, i int, t types.Type, rows int64) (predicate.ColumnStats, bool) {
	if arity == 0 {
		return predicate.ColumnStats{}, false
	}
	lo, err1 := binrow.NewRow(s.Min, arity)
	hi, err2 := binrow.NewRow(s.Max, arity)
	if err1 != nil || err2 != nil {
		return predicate.ColumnStats{}, false
	}
	return rowStats(lo, hi, s.NullCounts, i, t, rows)
}

// valueStats returns the statistics of column col of the table's schema in one
// file. Dense statistics hold only the columns they name; columns of another
// type than the file's are passed on only where that is exact.
func (p *planner) valueStats(file *manifest.DataFile, fs *fileSchema, col int) (predicate.ColumnStats, bool) {
	src, err := fs.evo.Source(col)
	if err != nil {
		return predicate.ColumnStats{}, false
	}
	if src < 0 { // not there when the file was written: every row is NULL
		return predicate.ColumnStats{NullCount: file.Rows, Rows: file.Rows}, true
	}
	if !fs.evo.Exact(col) {
		return predicate.ColumnStats{}, false
	}
	at, arity := src, len(fs.schema.Fields)
	named := file.ValueStatsCols
	if !file.HasValueStatsCols {
		named = file.WriteCols // the file's own columns, row ids among them
	}
	if file.HasValueStatsCols || file.HasWriteCols {
		arity, at = len(named), -1
		name := fs.schema.Fields[src].Name
		for i, c := range named {
			if c == name {
				at = i
			}
		}
		if at < 0 {
			return predicate.ColumnStats{}, false
		}
	}
	return statsOf(&file.ValueStats, arity, at, fs.schema.Fields[src].Type, file.Rows)
}

// mayMatch reports whether a file may hold a row that passes the filter.
func (p *planner) mayMatch(l live, values bool) (bool, error) {
	if p.filter == nil || !p.scan.prunes(PruneStats) {
		return true, nil
	}
	if values && l.known != unasked {
		return l.known == matches, nil
	}
	fs, err := p.fileSchema(l.File.SchemaID)
	if err != nil {
		return false, err
	}
	return predicate.Eval(p.filter, &fileStats{p, l, fs, values}) != predicate.None, nil
}
