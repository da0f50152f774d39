package table

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync/atomic"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/dv"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/lookup"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// A file whose keys are looked up is read in one of two ways. Where it has a table
// in the lookup store, that answers in about a microsecond; making one reads the
// file whole. Else the pages that the keys may be in are read. How much time the
// second way takes is added up per file, and when it comes to a good part of what
// a table would take one is made in the background. Files of few rows are made one
// at once.

// tinyRows is the most rows of a file that is given a table at its first lookup:
// about a millisecond's work, no more than reading a page.
const tinyRows = 4096

// lookupFile is a data file as lookups see it. Immutable, save for its deletion
// vector, which is read when it is first needed.
type lookupFile struct {
	file     File
	dir      string // relative to the warehouse
	min, max []byte // keys in byte form
	entry    *lookup.Entry
	vector   atomic.Pointer[dv.Vector]
}

// lookupFile makes what lookups know of a file of the bucket in dir.
func (r *readPlan) lookupFile(dir string, f File) (*lookupFile, error) {
	out := &lookupFile{file: f, dir: dir}
	for _, k := range []struct {
		image []byte
		to    *[]byte
	}{{f.Meta.MinKey, &out.min}, {f.Meta.MaxKey, &out.max}} {
		vals, err := binrow.Decode(k.image, r.codec.Types())
		if err != nil {
			return nil, &fileio.CorruptionError{Path: dir + "/" + f.Meta.Name, Offset: -1, Reason: "key range in its manifest entry", Err: err}
		}
		*k.to = r.codec.Append(nil, vals)
	}
	bare := File{Meta: f.Meta} // tables hold every row: deletion vectors change
	out.entry = r.t.env.lookups.Open(lookup.File{
		ID: dataPath(dir, f.Meta) + "\x00" + r.lookupForm(f.Meta.SchemaID), Rows: f.Meta.Rows,
		Build: func(ctx context.Context, b *lookup.Builder) error { return r.buildLookup(ctx, dir, &bare, b) },
	})
	return out, nil
}

// dataPath returns where a data file is, relative to the warehouse or outside of it.
func dataPath(dir string, f *manifest.DataFile) string {
	if f.ExternalPath != "" {
		return f.ExternalPath
	}
	return dir + "/" + f.Name
}

// with returns the file with another deletion vector.
func (f *lookupFile) with(ref *manifest.DeletionVectorRef) *lookupFile {
	return &lookupFile{file: File{Meta: f.file.Meta, DV: ref}, dir: f.dir, min: f.min, max: f.max, entry: f.entry}
}

// lookupForm names the form of rows in the table's schema, as read from a file of
// another: schemas that differ in options only have the same.
func (r *readPlan) lookupForm(schemaID int64) string {
	h := fnv.New64a()
	for _, f := range r.st.schema.Fields {
		fmt.Fprintf(h, "%d %s,", f.ID, types.PaimonString(f.Type)) //nolint:errcheck // a hash
	}
	return fmt.Sprintf("%d %x", schemaID, h.Sum64())
}

// deleted reports whether the file's deletion vector has taken row pos away.
func (f *lookupFile) deleted(ctx context.Context, e *Env, pos int64) (bool, error) {
	if f.file.DV == nil {
		return false, nil
	}
	v := f.vector.Load()
	if v == nil {
		var err error
		if v, err = e.vector(ctx, f.file.DV); err != nil {
			return false, err
		}
		f.vector.Store(v)
	}
	return v.Contains(pos), nil
}

// covers reports whether key lies in the file's key range.
func (f *lookupFile) covers(key []byte) bool {
	return bytes.Compare(f.min, key) <= 0 && bytes.Compare(key, f.max) <= 0
}

// find looks ascending keys up in the file and appends what it finds to out,
// deleted rows and retractions included. Found.Key counts keys. rows asks for
// images of rows, of which the columns need are filled in, the others may be NULL;
// nil = all.
func (r *readPlan) find(ctx context.Context, f *lookupFile, keys [][]byte, rows bool, need []int, c *format.Counters, out []lookup.Found) ([]lookup.Found, error) {
	found, ready := f.entry.Try(keys, rows, out)
	if ready {
		return found, nil
	}
	if f.file.Meta.Rows <= tinyRows {
		found, err := f.entry.Find(ctx, keys, rows, out)
		if err == nil {
			return found, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		// Whatever it is, reading the file will say it, or do without.
	}
	start := time.Now()
	found, err := r.findCold(ctx, f, keys, rows, need, c, out)
	f.entry.Spent(time.Since(start), rows)
	return found, err
}

// buildLookup reads a whole file into a table.
func (r *readPlan) buildLookup(ctx context.Context, dir string, f *File, b *lookup.Builder) error {
	of, err := r.open(ctx, dir, f)
	if err != nil {
		return err
	}
	defer r.close(of)
	nk := len(r.keyCols)
	cols := append(append([]int(nil), r.keyCols...), PseudoSequence, PseudoKind)
	var ts []types.Type
	if b.Rows() {
		for i, fd := range r.st.schema.Fields {
			cols, ts = append(cols, i), append(ts, fd.Type)
		}
	}
	fc, err := of.columns(ctx, format.RowRange{From: 0, To: of.Rows()}, cols)
	var un *fileio.UnsupportedError
	if errors.As(err, &un) {
		return errors.Join(lookup.ErrUseless, err)
	}
	if err != nil {
		return err
	}
	defer fc.Close() //nolint:errcheck // a reader
	var keys mergetree.Keys
	var key, img []byte
	for pos := int64(0); pos < of.Rows(); {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n := int(min(int64(r.t.env.sizes.window), of.Rows()-pos))
		arrs, err := fc.Read(ctx, n, nil)
		if err != nil {
			return err
		}
		r.codec.Fill(&keys, arrs[:nk], n)
		seq, kind := vec.ViewOf[int64](arrs[nk]).V, vec.ViewOf[int16](arrs[nk+1]).V
		var enc *binrow.ArrowEncoder
		if b.Rows() {
			enc = binrow.NewArrowEncoder(ts, arrs[nk+2:])
		}
		for i := range n {
			key = r.codec.AppendKey(key[:0], &keys, i)
			if enc != nil {
				if img, err = enc.Row(i); err != nil {
					return fmt.Errorf("row %d of %s: %w", pos+int64(i), of.path, err)
				}
			}
			if err := b.Add(key, seq[i], uint8(kind[i]), pos+int64(i), img); err != nil {
				return err
			}
		}
		pos += int64(n)
	}
	return nil
}

// fewKeys is how many keys are worth a list in the filter that chooses pages; of
// more the least and the greatest are.
const fewKeys = 32

// keyFilter is a predicate that is true of rows with one of the ascending keys; nil
// = it could not say anything.
func (r *readPlan) keyFilter(keys [][]byte) predicate.Node {
	leaf := func(i int, op predicate.Op, args ...types.Datum) *predicate.Leaf {
		f := r.st.schema.Fields[r.keyCols[i]]
		return &predicate.Leaf{Op: op, Col: r.keyCols[i], FieldID: f.ID, Name: f.Name, Type: f.Type, Args: args}
	}
	if len(keys) > fewKeys {
		if !keyOrdered(r.st.schema.Fields[r.keyCols[0]].Type) {
			return nil
		}
		lo, hi := r.codec.Values(keys[0])[0], r.codec.Values(keys[len(keys)-1])[0]
		if lo == nil || hi == nil {
			return nil
		}
		return leaf(0, predicate.Between, lo, hi)
	}
	var nodes []predicate.Node
	vals := make([][]types.Datum, len(keys))
	for k := range keys {
		vals[k] = r.codec.Values(keys[k])
	}
	for i := range r.keyCols {
		var args []types.Datum
		for k := range vals {
			d := vals[k][i]
			if d == nil {
				args = nil
				break
			}
			seen := false
			for _, a := range args {
				seen = seen || a == d
			}
			if !seen {
				args = append(args, d)
			}
		}
		if args != nil && !r.st.schema.Fields[r.keyCols[i]].Type.IsNanos() {
			nodes = append(nodes, leaf(i, predicate.In, args...))
		}
	}
	return predicate.Conj(nodes...)
}

// place is where a key was found in a file.
type place struct {
	key int32
	pos int64
}

// findCold looks keys up by reading the pages of the file that they may be in: the
// key columns first, then of the rows found the others.
func (r *readPlan) findCold(ctx context.Context, f *lookupFile, keys [][]byte, rows bool, need []int, c *format.Counters, out []lookup.Found) ([]lookup.Found, error) {
	of, err := r.open(ctx, f.dir, &File{Meta: f.file.Meta})
	if err != nil {
		return nil, err
	}
	defer r.close(of)
	before := of.Bytes()
	ranges, err := of.ranges(ctx, format.RowRange{From: 0, To: of.Rows()}, r.keyFilter(keys), c)
	if err != nil {
		return nil, err
	}
	var places []place
	for _, rg := range ranges {
		if c != nil {
			c.Rows += rg.To - rg.From
		}
		if places, err = r.locate(ctx, of, rg, keys, places); err != nil {
			return nil, err
		}
	}
	for len(places) > 0 {
		n := 1
		for n < len(places) && places[n].pos-places[0].pos < 1<<15 {
			n++
		}
		if out, err = r.fetch(ctx, of, f.file.Meta.DeleteRows != 0, places[:n], rows, need, out); err != nil {
			return nil, err
		}
		places = places[n:]
	}
	if c != nil {
		c.BytesRead += max(0, of.Bytes()-before)
	}
	return out, nil
}

// locate finds keys in the rows rg of a file.
func (r *readPlan) locate(ctx context.Context, of *openFile, rg format.RowRange, keys [][]byte, out []place) ([]place, error) {
	fc, err := of.columns(ctx, rg, r.keyCols)
	if err != nil {
		return nil, err
	}
	defer fc.Close() //nolint:errcheck // a reader
	var ks mergetree.Keys
	k := 0
	var last []byte
	for pos := rg.From; pos < rg.To && k < len(keys); {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		n := int(min(int64(r.t.env.sizes.window), rg.To-pos))
		arrs, err := fc.Read(ctx, n, nil)
		if err != nil {
			return nil, err
		}
		r.codec.Fill(&ks, arrs, n)
		last = r.codec.AppendKey(last[:0], &ks, n-1)
		for i := 0; k < len(keys); k++ {
			at, ok := r.codec.Search(&ks, i, n, mergetree.NewBound(keys[k]))
			// A file that holds a key twice is odd, and all the same read right.
			for b := mergetree.NewBound(keys[k]); ok; at, ok = r.codec.Search(&ks, at+1, min(at+2, n), b) {
				out = append(out, place{int32(k), pos + int64(at)})
			}
			if i = at; bytes.Compare(keys[k], last) >= 0 {
				break // the next window may go on with it
			}
		}
		pos += int64(n)
	}
	return out, nil
}

// fetch reads the rows found at places, which lie within 32,768 rows.
func (r *readPlan) fetch(ctx context.Context, of *openFile, deletes bool, places []place, rows bool, need []int, out []lookup.Found) ([]lookup.Found, error) {
	first, last := places[0].pos, places[len(places)-1].pos
	keep := make([]uint16, len(places))
	for i, p := range places {
		keep[i] = uint16(p.pos - first)
	}
	cols := []int{PseudoSequence}
	if deletes {
		cols = append(cols, PseudoKind)
	}
	system := len(cols)
	if rows {
		if need == nil {
			for i := range r.st.schema.Fields {
				cols = append(cols, i)
			}
		} else {
			cols = append(cols, need...)
		}
	}
	fc, err := of.columns(ctx, format.RowRange{From: first, To: last + 1}, cols)
	if err != nil {
		return nil, err
	}
	defer fc.Close() //nolint:errcheck // a reader
	arrs, err := fc.Read(ctx, int(last-first+1), keep)
	if err != nil {
		return nil, err
	}
	seq := vec.ViewOf[int64](arrs[0]).V
	var kinds []int16
	if deletes {
		kinds = vec.ViewOf[int16](arrs[1]).V
	}
	var enc *binrow.ArrowEncoder
	if rows {
		all := make([]arrow.Array, len(r.st.schema.Fields))
		for i, c := range cols[system:] {
			all[c] = arrs[system+i]
		}
		for i, a := range all {
			if a == nil {
				all[i] = vec.MakeNull(r.st.schema.Fields[i].Type.Arrow(), len(places))
			}
		}
		enc = binrow.NewArrowEncoder(r.st.schema.Fields.Types(), all)
	}
	for i, p := range places {
		f := lookup.Found{Key: p.key, Pos: p.pos, Seq: seq[i]}
		if kinds != nil {
			f.Kind = uint8(kinds[i])
		}
		if enc != nil {
			img, err := enc.Row(i)
			if err != nil {
				return nil, fmt.Errorf("row %d of %s: %w", p.pos, of.path, err)
			}
			f.Row = bytes.Clone(img)
		}
		out = append(out, f)
	}
	return out, nil
}

// imageColumn makes column col of the table of rows' images.
func imageColumn(s *schema.Table, col int, images [][]byte) (arrow.Array, error) {
	return binrow.Column(s.Fields[col].Type, col, len(s.Fields), images)
}

// nullRow is the image of a row of NULLs.
func nullRow(arity int) []byte {
	var b binrow.Builder
	b.Reset(arity)
	for i := range arity {
		b.SetNull(i, types.Type{})
	}
	return b.Image()
}
