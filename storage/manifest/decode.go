package manifest

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// The newest versions of the records that are read.
const (
	entryVersion = 2
	listVersion  = 2
	indexVersion = 1
)

// FileMeta describes one manifest in a manifest list. Numbers that old versions
// lack are -1.
type FileMeta struct {
	Name                 string
	Size                 int64
	Added, Deleted       int64
	PartitionStats       Stats
	SchemaID             int64
	MinBucket, MaxBucket int32
	MinLevel, MaxLevel   int32
	MinRowID, MaxRowID   int64
}

// op is one step of a decoding program: which of our fields the next value of
// the record belongs to (0 = none: skip) and its type.
type op struct {
	code uint8
	node *node
	sub  []op // of a record that is decoded itself
}

// want describes a field of ours: its code, the types it may have and, for
// records, the fields inside.
type want struct {
	code uint8
	kind nodeKind
	sub  map[string]want
}

// compile matches the writer's record with our fields by name. A field whose
// type cannot hold our value is an error.
func compile(n *node, w map[string]want) ([]op, error) {
	r := plainOf(n)
	if r == nil || r.kind != nRecord {
		return nil, fmt.Errorf("schema is not a record")
	}
	ops := make([]op, len(r.fields))
	for i, f := range r.fields {
		ops[i].node = f.node
		x, ok := w[f.name]
		if !ok {
			continue
		}
		for _, a := range alternatives(f.node) {
			if a.kind != x.kind && a.kind != nNull {
				return nil, fmt.Errorf("field %s has an unexpected type", f.name)
			}
		}
		ops[i].code = x.code
		if x.sub != nil {
			inner := plainOf(f.node)
			if x.kind == nArray && inner != nil {
				inner = plainOf(inner.items)
			}
			var err error
			if inner == nil {
				return nil, fmt.Errorf("field %s has an unexpected type", f.name)
			}
			if ops[i].sub, err = compile(inner, x.sub); err != nil {
				return nil, fmt.Errorf("%s: %w", f.name, err)
			}
		}
	}
	return ops, nil
}

func alternatives(n *node) []*node {
	if n.kind == nUnion {
		return n.alts
	}
	return []*node{n}
}

// plainOf returns the only type besides null, or nil.
func plainOf(n *node) *node {
	var out *node
	for _, a := range alternatives(n) {
		if a.kind == nNull {
			continue
		}
		if out != nil || a.kind == nUnion {
			return nil
		}
		out = a
	}
	return out
}

// Codes of fields. They are only unique within one record.
const (
	fVersion uint8 = iota + 1
	fKind
	fPartition
	fBucket
	fTotalBuckets
	fFile
	fName
	fSize
	fRows
	fMinKey
	fMaxKey
	fKeyStats
	fValueStats
	fMinSequence
	fMaxSequence
	fSchemaID
	fLevel
	fExtraFiles
	fCreation
	fDeleteRows
	fEmbeddedIndex
	fSource
	fValueStatsCols
	fExternalPath
	fFirstRowID
	fWriteCols
	fWriteColsSeq
	fAdded
	fDeleted
	fMinBucket
	fMaxBucket
	fMinLevel
	fMaxLevel
	fMinRowID
	fMaxRowID
	fType
	fDVs
	fGlobal
	fMin
	fMax
	fNulls
	f0
	f1
	f2
	fCardinality
	fRangeStart
	fRangeEnd
	fFieldID
	fExtraIDs
	fMeta
	fSourceMeta
)

var (
	wantStats = map[string]want{
		"_MIN_VALUES": {code: fMin, kind: nBytes}, "_MAX_VALUES": {code: fMax, kind: nBytes},
		"_NULL_COUNTS": {code: fNulls, kind: nArray},
	}
	wantFile = map[string]want{
		"_FILE_NAME": {code: fName, kind: nBytes}, "_FILE_SIZE": {code: fSize, kind: nInt}, "_ROW_COUNT": {code: fRows, kind: nInt},
		"_MIN_KEY": {code: fMinKey, kind: nBytes}, "_MAX_KEY": {code: fMaxKey, kind: nBytes},
		"_KEY_STATS": {code: fKeyStats, kind: nRecord, sub: wantStats}, "_VALUE_STATS": {code: fValueStats, kind: nRecord, sub: wantStats},
		"_MIN_SEQUENCE_NUMBER": {code: fMinSequence, kind: nInt}, "_MAX_SEQUENCE_NUMBER": {code: fMaxSequence, kind: nInt},
		"_SCHEMA_ID": {code: fSchemaID, kind: nInt}, "_LEVEL": {code: fLevel, kind: nInt},
		"_EXTRA_FILES": {code: fExtraFiles, kind: nArray}, "_CREATION_TIME": {code: fCreation, kind: nInt},
		"_DELETE_ROW_COUNT": {code: fDeleteRows, kind: nInt}, "_EMBEDDED_FILE_INDEX": {code: fEmbeddedIndex, kind: nBytes},
		"_FILE_SOURCE": {code: fSource, kind: nInt}, "_VALUE_STATS_COLS": {code: fValueStatsCols, kind: nArray},
		"_EXTERNAL_PATH": {code: fExternalPath, kind: nBytes}, "_FIRST_ROW_ID": {code: fFirstRowID, kind: nInt},
		"_WRITE_COLS": {code: fWriteCols, kind: nArray}, "_WRITE_COLS_SEQUENCES": {code: fWriteColsSeq, kind: nArray},
	}
	wantEntry = map[string]want{
		"_VERSION": {code: fVersion, kind: nInt}, "_KIND": {code: fKind, kind: nInt}, "_PARTITION": {code: fPartition, kind: nBytes},
		"_BUCKET": {code: fBucket, kind: nInt}, "_TOTAL_BUCKETS": {code: fTotalBuckets, kind: nInt},
		"_FILE": {code: fFile, kind: nRecord, sub: wantFile},
	}
	wantList = map[string]want{
		"_VERSION": {code: fVersion, kind: nInt}, "_FILE_NAME": {code: fName, kind: nBytes}, "_FILE_SIZE": {code: fSize, kind: nInt},
		"_NUM_ADDED_FILES": {code: fAdded, kind: nInt}, "_NUM_DELETED_FILES": {code: fDeleted, kind: nInt},
		"_PARTITION_STATS": {code: fValueStats, kind: nRecord, sub: wantStats}, "_SCHEMA_ID": {code: fSchemaID, kind: nInt},
		"_MIN_BUCKET": {code: fMinBucket, kind: nInt}, "_MAX_BUCKET": {code: fMaxBucket, kind: nInt},
		"_MIN_LEVEL": {code: fMinLevel, kind: nInt}, "_MAX_LEVEL": {code: fMaxLevel, kind: nInt},
		"_MIN_ROW_ID": {code: fMinRowID, kind: nInt}, "_MAX_ROW_ID": {code: fMaxRowID, kind: nInt},
	}
	wantDV = map[string]want{
		"f0": {code: f0, kind: nBytes}, "f1": {code: f1, kind: nInt}, "f2": {code: f2, kind: nInt}, "_CARDINALITY": {code: fCardinality, kind: nInt},
	}
	wantGlobal = map[string]want{
		"_ROW_RANGE_START": {code: fRangeStart, kind: nInt}, "_ROW_RANGE_END": {code: fRangeEnd, kind: nInt},
		"_INDEX_FIELD_ID": {code: fFieldID, kind: nInt}, "_EXTRA_FIELD_IDS": {code: fExtraIDs, kind: nArray}, "_INDEX_META": {code: fMeta, kind: nBytes},
		"_SOURCE_META": {code: fSourceMeta, kind: nBytes},
	}
	wantIndex = map[string]want{
		"_VERSION": {code: fVersion, kind: nInt}, "_KIND": {code: fKind, kind: nInt}, "_PARTITION": {code: fPartition, kind: nBytes},
		"_BUCKET": {code: fBucket, kind: nInt}, "_INDEX_TYPE": {code: fType, kind: nBytes}, "_FILE_NAME": {code: fName, kind: nBytes},
		"_FILE_SIZE": {code: fSize, kind: nInt}, "_ROW_COUNT": {code: fRows, kind: nInt},
		"_DELETIONS_VECTORS_RANGES": {code: fDVs, kind: nArray, sub: wantDV}, "_EXTERNAL_PATH": {code: fExternalPath, kind: nBytes},
		"_GLOBAL_INDEX": {code: fGlobal, kind: nRecord, sub: wantGlobal},
	}
)

// slab hands out values from chunks, so that a hundred thousand files do not
// cost as many allocations.
type slab[T any] struct {
	free []T
	size int // of the last chunk
}

func (s *slab[T]) take(n int) []T {
	if len(s.free) < n {
		s.size = min(max(2*s.size, 8), 1024)
		s.free = make([]T, max(n, s.size))
	}
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}

// reader decodes records of one container with slabs shared between blocks.
type reader struct {
	dec
	files   slab[DataFile]
	ints    slab[int64]
	strs    slab[string]
	scratch []int64
	names   []string
	part    []byte // the last partition, which most neighbours share
	version int64
}

// image strips the arity prefix of a BinaryRow.
func (r *reader) image() []byte {
	b := r.bytes()
	if len(b) == 0 {
		return nil
	}
	if len(b) < 12 || binary.BigEndian.Uint32(b) > 1<<16 {
		r.fail("row image")
		return nil
	}
	return b[4:]
}

func (r *reader) int(n *node, def int64) int64 {
	if n = r.value(n); n == nil {
		return def
	}
	return r.long()
}

func (r *reader) text(n *node) string {
	if n = r.value(n); n == nil {
		return ""
	}
	return r.str()
}

func (r *reader) blob(n *node) []byte {
	if n = r.value(n); n == nil {
		return nil
	}
	return r.bytes()
}

// strings decodes an array of strings; ok is false when it is null.
func (r *reader) strings(n *node) (out []string, ok bool) {
	if n = r.value(n); n == nil {
		return nil, false
	}
	items := plainOf(n.items)
	if items == nil || items.kind != nBytes {
		r.fail("array of strings")
		return nil, false
	}
	r.names = r.names[:0]
	for k := r.block(); k > 0; k = r.block() {
		for ; k > 0 && r.err == nil; k-- {
			r.names = append(r.names, r.text(n.items))
		}
	}
	if len(r.names) == 0 {
		return nil, true
	}
	out = r.strs.take(len(r.names))
	copy(out, r.names)
	return out, true
}

func (r *reader) stats(o *op, s *Stats) {
	if r.value(o.node) == nil {
		return
	}
	for i := range o.sub {
		f := &o.sub[i]
		switch f.code {
		case fMin:
			if r.value(f.node) != nil {
				s.Min = r.image()
			}
		case fMax:
			if r.value(f.node) != nil {
				s.Max = r.image()
			}
		case fNulls:
			s.NullCounts = r.longs(f.node, -1)
		default:
			r.skip(f.node)
		}
	}
}

// longs decodes an array of numbers, null items as def.
func (r *reader) longs(n *node, def int64) []int64 {
	if n = r.value(n); n == nil {
		return nil
	}
	items := plainOf(n.items)
	if items == nil || items.kind != nInt {
		r.fail("array of numbers")
		return nil
	}
	r.scratch = r.scratch[:0]
	for k := r.block(); k > 0; k = r.block() {
		for ; k > 0 && r.err == nil; k-- {
			r.scratch = append(r.scratch, r.int(n.items, def))
		}
	}
	if len(r.scratch) == 0 {
		return nil
	}
	out := r.ints.take(len(r.scratch))
	copy(out, r.scratch)
	return out
}

func (r *reader) partition(n *node) []byte {
	if r.value(n) == nil {
		return nil
	}
	p := r.image()
	if string(p) == string(r.part) && r.part != nil {
		return r.part
	}
	r.part = p
	return p
}

func (r *reader) entry(ops []op, e *Entry) {
	for i := range ops {
		o := &ops[i]
		switch o.code {
		case fVersion:
			r.version = max(r.version, r.int(o.node, 0))
		case fKind:
			e.Kind = int8(r.int(o.node, 0))
		case fPartition:
			e.Partition = r.partition(o.node)
		case fBucket:
			e.Bucket = int32(r.int(o.node, 0))
		case fTotalBuckets:
			e.TotalBuckets = int32(r.int(o.node, -1))
		case fFile:
			if r.value(o.node) != nil {
				e.File = &r.files.take(1)[0]
				r.file(o.sub, e.File)
			}
		default:
			r.skip(o.node)
		}
	}
	if r.err == nil && (e.File == nil || e.Kind < Add || e.Kind > Delete) {
		r.fail("entry without file or with an unknown kind")
	}
}

func (r *reader) file(ops []op, f *DataFile) {
	f.DeleteRows, f.FirstRowID, f.Source = -1, -1, -1
	for i := range ops {
		o := &ops[i]
		switch o.code {
		case fName:
			f.Name = r.text(o.node)
		case fSize:
			f.Size = r.int(o.node, 0)
		case fRows:
			f.Rows = r.int(o.node, 0)
		case fMinKey:
			if r.value(o.node) != nil {
				f.MinKey = r.image()
			}
		case fMaxKey:
			if r.value(o.node) != nil {
				f.MaxKey = r.image()
			}
		case fKeyStats:
			r.stats(o, &f.KeyStats)
		case fValueStats:
			r.stats(o, &f.ValueStats)
		case fMinSequence:
			f.MinSequence = r.int(o.node, 0)
		case fMaxSequence:
			f.MaxSequence = r.int(o.node, 0)
		case fSchemaID:
			f.SchemaID = r.int(o.node, 0)
		case fLevel:
			f.Level = int32(r.int(o.node, 0))
		case fExtraFiles:
			f.ExtraFiles, _ = r.strings(o.node)
		case fCreation:
			f.CreationMillis = r.int(o.node, 0)
		case fDeleteRows:
			f.DeleteRows = r.int(o.node, -1)
		case fEmbeddedIndex:
			f.EmbeddedIndex = r.blob(o.node)
		case fSource:
			f.Source = int8(r.int(o.node, -1))
		case fValueStatsCols:
			f.ValueStatsCols, f.HasValueStatsCols = r.strings(o.node)
		case fExternalPath:
			f.ExternalPath = r.text(o.node)
		case fFirstRowID:
			f.FirstRowID = r.int(o.node, -1)
		case fWriteCols:
			f.WriteCols, f.HasWriteCols = r.strings(o.node)
		case fWriteColsSeq:
			f.WriteColsSequences = r.longs(o.node, 0)
		default:
			r.skip(o.node)
		}
	}
	if r.err == nil && (badName(f.Name) || f.Rows < 0) {
		r.fail("file name or row count")
	}
}

// badName refuses names that would lead out of their directory.
func badName(s string) bool {
	return s == "" || s == "." || s == ".." || strings.ContainsAny(s, "/\\\x00")
}

func (r *reader) meta(ops []op, m *FileMeta) {
	m.MinBucket, m.MaxBucket, m.MinLevel, m.MaxLevel, m.MinRowID, m.MaxRowID = -1, -1, -1, -1, -1, -1
	for i := range ops {
		o := &ops[i]
		switch o.code {
		case fVersion:
			r.version = max(r.version, r.int(o.node, 0))
		case fName:
			m.Name = strings.Clone(r.text(o.node))
		case fSize:
			m.Size = r.int(o.node, 0)
		case fAdded:
			m.Added = r.int(o.node, 0)
		case fDeleted:
			m.Deleted = r.int(o.node, 0)
		case fValueStats:
			r.stats(o, &m.PartitionStats)
		case fSchemaID:
			m.SchemaID = r.int(o.node, 0)
		case fMinBucket:
			m.MinBucket = int32(r.int(o.node, -1))
		case fMaxBucket:
			m.MaxBucket = int32(r.int(o.node, -1))
		case fMinLevel:
			m.MinLevel = int32(r.int(o.node, -1))
		case fMaxLevel:
			m.MaxLevel = int32(r.int(o.node, -1))
		case fMinRowID:
			m.MinRowID = r.int(o.node, -1)
		case fMaxRowID:
			m.MaxRowID = r.int(o.node, -1)
		default:
			r.skip(o.node)
		}
	}
	if r.err == nil && badName(m.Name) {
		r.fail("manifest name")
	}
}

func (r *reader) index(ops []op, e *IndexEntry) {
	for i := range ops {
		o := &ops[i]
		switch o.code {
		case fVersion:
			r.version = max(r.version, r.int(o.node, 0))
		case fKind:
			e.Kind = int8(r.int(o.node, 0))
		case fPartition:
			e.Partition = r.partition(o.node)
		case fBucket:
			e.Bucket = int32(r.int(o.node, 0))
		case fType:
			e.Type = r.text(o.node)
		case fName:
			e.Name = r.text(o.node)
		case fSize:
			e.Size = r.int(o.node, 0)
		case fRows:
			e.Rows = r.int(o.node, 0)
		case fExternalPath:
			e.ExternalPath = r.text(o.node)
		case fDVs:
			if n := r.value(o.node); n != nil {
				r.blocks(func() {
					if r.value(n.items) != nil {
						e.DVs = append(e.DVs, r.vector(o.sub))
					}
				})
			}
		case fGlobal:
			if r.value(o.node) != nil {
				e.Global = r.global(o.sub)
			}
		default:
			r.skip(o.node)
		}
	}
	if r.err == nil && badName(e.Name) {
		r.fail("index file name")
	}
}

func (r *reader) vector(ops []op) DeletionVectorMeta {
	m := DeletionVectorMeta{Cardinality: -1}
	for i := range ops {
		o := &ops[i]
		switch o.code {
		case f0:
			m.DataFile = r.text(o.node)
		case f1:
			m.Offset = int32(r.int(o.node, 0))
		case f2:
			m.Length = int32(r.int(o.node, 0))
		case fCardinality:
			m.Cardinality = r.int(o.node, -1)
		default:
			r.skip(o.node)
		}
	}
	return m
}

func (r *reader) global(ops []op) *GlobalIndex {
	g := &GlobalIndex{}
	for i := range ops {
		o := &ops[i]
		switch o.code {
		case fRangeStart:
			g.RowRangeStart = r.int(o.node, 0)
		case fRangeEnd:
			g.RowRangeEnd = r.int(o.node, 0)
		case fFieldID:
			g.FieldID = int32(r.int(o.node, 0))
		case fExtraIDs:
			for _, id := range r.longs(o.node, 0) {
				g.ExtraFieldIDs = append(g.ExtraFieldIDs, int32(id))
			}
		case fMeta:
			g.Meta = r.blob(o.node)
		case fSourceMeta:
			g.SourceMeta = r.blob(o.node)
		default:
			r.skip(o.node)
		}
	}
	return g
}

// decodeAll reads every record of a container into a new slice.
func decodeAll[T any](path string, data []byte, w map[string]want, newest int64, minBytes int, one func(*reader, []op, *T)) ([]T, error) {
	c, err := open(path, data)
	if err != nil {
		return nil, err
	}
	ops, err := compile(c.schema, w)
	if err != nil {
		return nil, c.corrupt(4, "schema", err)
	}
	root := c.schema.kind == nUnion // versions up to 0.9
	r := &reader{}
	var out []T
	for {
		rows, block, ok, err := c.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return out, nil
		}
		r.dec = dec{b: block}
		if n := min(rows, int64(len(block)/minBytes)+1); cap(out)-len(out) < int(n) {
			grown := make([]T, len(out), max(2*cap(out), len(out)+int(n)))
			copy(grown, out)
			out = grown
		}
		for ; rows > 0; rows-- {
			if root && r.value(c.schema) == nil {
				r.fail("null record")
			}
			var zero T
			out = append(out, zero)
			one(r, ops, &out[len(out)-1])
			if r.version > newest {
				return nil, &fileio.UnsupportedError{Feature: fmt.Sprintf("metadata of a future version (version %d in %s)", r.version, path)}
			}
			if r.err != nil {
				return nil, c.corrupt(c.d.pos, "record does not fit", r.err)
			}
		}
		if r.pos != len(block) {
			return nil, c.corrupt(c.d.pos, "block holds more than its records", nil)
		}
	}
}

// DecodeEntries reads a manifest. The entries share memory with each other and
// must not be changed; path is for errors.
func DecodeEntries(path string, data []byte) ([]Entry, error) {
	return decodeAll(path, data, wantEntry, entryVersion, 64, (*reader).entry)
}

// DecodeList reads a manifest list.
func DecodeList(path string, data []byte) ([]FileMeta, error) {
	return decodeAll(path, data, wantList, listVersion, 32, (*reader).meta)
}

// DecodeIndex reads an index manifest.
func DecodeIndex(path string, data []byte) ([]IndexEntry, error) {
	return decodeAll(path, data, wantIndex, indexVersion, 32, (*reader).index)
}
