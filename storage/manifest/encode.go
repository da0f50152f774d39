package manifest

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/paimon-sql/paimon-sql/storage/binrow"
)

// The schemas are spelled as Java 2.x writes them: its reader checks the names,
// the order and the types of the outermost fields.
const (
	statsFields = `"fields":[{"name":"_MIN_VALUES","type":"bytes"},{"name":"_MAX_VALUES","type":"bytes"},{"name":"_NULL_COUNTS","type":["null",{"type":"array","items":["null","long"]}],"default":null}]}`

	entrySchema = `{"type":"record","name":"record","namespace":"org.apache.paimon.avro.generated","fields":[{"name":"_VERSION","type":"int"},{"name":"_KIND","type":"int"},{"name":"_PARTITION","type":"bytes"},{"name":"_BUCKET","type":"int"},{"name":"_TOTAL_BUCKETS","type":"int"},{"name":"_FILE","type":{"type":"record","name":"record__FILE","fields":[{"name":"_FILE_NAME","type":"string"},{"name":"_FILE_SIZE","type":"long"},{"name":"_ROW_COUNT","type":"long"},{"name":"_MIN_KEY","type":"bytes"},{"name":"_MAX_KEY","type":"bytes"},{"name":"_KEY_STATS","type":{"type":"record","name":"record__FILE__KEY_STATS",` + statsFields +
		`},{"name":"_VALUE_STATS","type":{"type":"record","name":"record__FILE__VALUE_STATS",` + statsFields +
		`},{"name":"_MIN_SEQUENCE_NUMBER","type":"long"},{"name":"_MAX_SEQUENCE_NUMBER","type":"long"},{"name":"_SCHEMA_ID","type":"long"},{"name":"_LEVEL","type":"int"},{"name":"_EXTRA_FILES","type":{"type":"array","items":"string"}},{"name":"_CREATION_TIME","type":["null",{"type":"long","logicalType":"timestamp-millis"}],"default":null},{"name":"_DELETE_ROW_COUNT","type":["null","long"],"default":null},{"name":"_EMBEDDED_FILE_INDEX","type":["null","bytes"],"default":null},{"name":"_FILE_SOURCE","type":["null","int"],"default":null},{"name":"_VALUE_STATS_COLS","type":["null",{"type":"array","items":"string"}],"default":null},{"name":"_EXTERNAL_PATH","type":["null","string"],"default":null},{"name":"_FIRST_ROW_ID","type":["null","long"],"default":null},{"name":"_WRITE_COLS","type":["null",{"type":"array","items":"string"}],"default":null},{"name":"_WRITE_COLS_SEQUENCES","type":["null",{"type":"array","items":"long"}],"default":null}]}}]}`

	listSchema = `{"type":"record","name":"record","namespace":"org.apache.paimon.avro.generated","fields":[{"name":"_VERSION","type":"int"},{"name":"_FILE_NAME","type":"string"},{"name":"_FILE_SIZE","type":"long"},{"name":"_NUM_ADDED_FILES","type":"long"},{"name":"_NUM_DELETED_FILES","type":"long"},{"name":"_PARTITION_STATS","type":{"type":"record","name":"record__PARTITION_STATS",` + statsFields +
		`},{"name":"_SCHEMA_ID","type":"long"},{"name":"_MIN_BUCKET","type":["null","int"],"default":null},{"name":"_MAX_BUCKET","type":["null","int"],"default":null},{"name":"_MIN_LEVEL","type":["null","int"],"default":null},{"name":"_MAX_LEVEL","type":["null","int"],"default":null},{"name":"_MIN_ROW_ID","type":["null","long"],"default":null},{"name":"_MAX_ROW_ID","type":["null","long"],"default":null}]}`

	indexSchema = `{"type":"record","name":"record","namespace":"org.apache.paimon.avro.generated","fields":[{"name":"_VERSION","type":"int"},{"name":"_KIND","type":"int"},{"name":"_PARTITION","type":"bytes"},{"name":"_BUCKET","type":"int"},{"name":"_INDEX_TYPE","type":"string"},{"name":"_FILE_NAME","type":"string"},{"name":"_FILE_SIZE","type":"long"},{"name":"_ROW_COUNT","type":"long"},{"name":"_DELETIONS_VECTORS_RANGES","type":["null",{"type":"array","items":["null",{"type":"record","name":"record__DELETIONS_VECTORS_RANGES","fields":[{"name":"f0","type":"string"},{"name":"f1","type":"int"},{"name":"f2","type":"int"},{"name":"_CARDINALITY","type":["null","long"],"default":null}]}]}],"default":null},{"name":"_EXTERNAL_PATH","type":["null","string"],"default":null},{"name":"_GLOBAL_INDEX","type":["null",{"type":"record","name":"record__GLOBAL_INDEX","fields":[{"name":"_ROW_RANGE_START","type":"long"},{"name":"_ROW_RANGE_END","type":"long"},{"name":"_INDEX_FIELD_ID","type":"int"},{"name":"_EXTRA_FIELD_IDS","type":["null",{"type":"array","items":"int"}],"default":null},{"name":"_INDEX_META","type":["null","bytes"],"default":null},{"name":"_SOURCE_META","type":["null","bytes"],"default":null}]}],"default":null}]}`
)

// blockTarget is the size at which a block is closed: Avro's own default.
const blockTarget = 64 << 10

// Codec says how blocks are compressed.
type Codec struct {
	Name  string // "zstandard" or "null"
	Level int    // zstd; 0 = 1
}

// CodecOf maps the option manifest.compression to a Codec. What Avro has no name
// for here is written as zstandard, which every reader of Paimon knows.
func CodecOf(option string, level int) Codec {
	if option == "none" || option == "null" || option == "uncompressed" {
		return Codec{Name: "null"}
	}
	return Codec{Name: "zstandard", Level: level}
}

// encoder builds one object container.
type encoder struct {
	out   []byte
	block []byte
	rows  int64
	sync  [16]byte
	codec Codec
}

func newEncoder(schema string, c Codec) *encoder {
	if c.Name == "" {
		c.Name = "zstandard"
	}
	e := &encoder{codec: c}
	_, _ = rand.Read(e.sync[:]) // never fails
	e.out = append(e.out, "Obj\x01"...)
	e.out = appendLong(e.out, 2)
	e.out = appendString(e.out, "avro.schema")
	e.out = appendString(e.out, schema)
	e.out = appendString(e.out, "avro.codec")
	e.out = appendString(e.out, c.Name)
	e.out = append(e.out, 0)
	e.out = append(e.out, e.sync[:]...)
	return e
}

func (e *encoder) done() {
	e.rows++
	if len(e.block) >= blockTarget {
		e.flush()
	}
}

var zstdEncoders sync.Map // level -> *zstd.Encoder; EncodeAll is safe for concurrent use

func zstdEncoder(level int) *zstd.Encoder {
	if level < 1 {
		level = 1
	}
	if z, ok := zstdEncoders.Load(level); ok {
		return z.(*zstd.Encoder)
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)))
	if err != nil {
		panic(err) // the options are constants
	}
	got, _ := zstdEncoders.LoadOrStore(level, z)
	return got.(*zstd.Encoder)
}

func (e *encoder) flush() {
	if e.rows == 0 {
		return
	}
	b := e.block
	if e.codec.Name == "zstandard" {
		b = zstdEncoder(e.codec.Level).EncodeAll(b, nil)
	}
	e.out = appendLong(e.out, e.rows)
	e.out = appendLong(e.out, int64(len(b)))
	e.out = append(e.out, b...)
	e.out = append(e.out, e.sync[:]...)
	e.rows, e.block = 0, e.block[:0]
}

func (e *encoder) finish() []byte { e.flush(); return e.out }

func appendLong(b []byte, v int64) []byte {
	return binary.AppendUvarint(b, uint64(v)<<1^uint64(v>>63))
}

func appendBytes(b, v []byte) []byte { return append(appendLong(b, int64(len(v))), v...) }

func appendString(b []byte, v string) []byte { return append(appendLong(b, int64(len(v))), v...) }

// appendOptional writes ["null", long] or ["null", int]; none is null.
func appendOptional(b []byte, v, none int64) []byte {
	if v == none {
		return append(b, 0)
	}
	return appendLong(append(b, 2), v)
}

func appendOptionalString(b []byte, v string) []byte {
	if v == "" {
		return append(b, 0)
	}
	return appendString(append(b, 2), v)
}

func appendStrings(b []byte, v []string) []byte {
	if len(v) > 0 {
		b = appendLong(b, int64(len(v)))
		for _, s := range v {
			b = appendString(b, s)
		}
	}
	return append(b, 0)
}

func appendOptionalStrings(b []byte, v []string, ok bool) []byte {
	if !ok {
		return append(b, 0)
	}
	return appendStrings(append(b, 2), v)
}

// emptyRow is the image of a row without fields.
var emptyRow = make([]byte, 8)

// appendImage writes a BinaryRow with its arity prefix.
func appendImage(b, image []byte, arity int) []byte {
	if len(image) == 0 {
		image, arity = emptyRow, 0
	}
	b = appendLong(b, int64(len(image)+4))
	b = binary.BigEndian.AppendUint32(b, uint32(arity))
	return append(b, image...)
}

func appendStats(b []byte, s *Stats) []byte {
	n := len(s.NullCounts)
	b = appendImage(b, s.Min, n)
	b = appendImage(b, s.Max, n)
	b = append(b, 2)
	if n > 0 {
		b = appendLong(b, int64(n))
		for _, c := range s.NullCounts {
			b = appendOptional(b, c, -1)
		}
	}
	return append(b, 0)
}

// Arity are the field counts that stand before row images.
type Arity struct{ Partition, Key int }

func (a Arity) check(image []byte, n int) error {
	if len(image) == 0 {
		return nil
	}
	_, err := binrow.NewRow(image, n)
	return err
}

// EncodeEntries writes a manifest.
func EncodeEntries(entries []Entry, a Arity, c Codec) ([]byte, error) {
	e := newEncoder(entrySchema, c)
	for i := range entries {
		if err := e.entry(&entries[i], a); err != nil {
			return nil, err
		}
	}
	return e.finish(), nil
}

// Part is one manifest of several: its bytes and the entries in it.
type Part struct {
	Data    []byte
	Entries []Entry
}

// EncodeRolling writes entries as manifests of about target bytes each; none for
// no entries. The parts share memory with entries.
func EncodeRolling(entries []Entry, a Arity, c Codec, target int64) ([]Part, error) {
	var parts []Part
	for from := 0; from < len(entries); {
		e := newEncoder(entrySchema, c)
		to := from
		for ; to < len(entries) && (to == from || int64(len(e.out)) < target); to++ {
			if err := e.entry(&entries[to], a); err != nil {
				return nil, err
			}
		}
		parts = append(parts, Part{e.finish(), entries[from:to:to]})
		from = to
	}
	return parts, nil
}

// entry appends one record of a manifest.
func (e *encoder) entry(x *Entry, a Arity) error {
	f := x.File
	if err := a.check(x.Partition, a.Partition); err != nil {
		return fmt.Errorf("partition of %s: %w", f.Name, err)
	}
	if err := a.check(f.MinKey, a.Key); err != nil {
		return fmt.Errorf("key of %s: %w", f.Name, err)
	}
	if err := a.check(f.MaxKey, a.Key); err != nil {
		return fmt.Errorf("key of %s: %w", f.Name, err)
	}
	b := e.block
	b = appendLong(b, entryVersion)
	b = appendLong(b, int64(x.Kind))
	b = appendImage(b, x.Partition, a.Partition)
	b = appendLong(b, int64(x.Bucket))
	b = appendLong(b, int64(x.TotalBuckets))
	b = appendString(b, f.Name)
	b = appendLong(b, f.Size)
	b = appendLong(b, f.Rows)
	b = appendImage(b, f.MinKey, a.Key)
	b = appendImage(b, f.MaxKey, a.Key)
	b = appendStats(b, &f.KeyStats)
	b = appendStats(b, &f.ValueStats)
	b = appendLong(b, f.MinSequence)
	b = appendLong(b, f.MaxSequence)
	b = appendLong(b, f.SchemaID)
	b = appendLong(b, int64(f.Level))
	b = appendStrings(b, f.ExtraFiles)
	b = appendOptional(b, f.CreationMillis, 0)
	b = appendOptional(b, f.DeleteRows, -1)
	if f.EmbeddedIndex == nil {
		b = append(b, 0)
	} else {
		b = appendBytes(append(b, 2), f.EmbeddedIndex)
	}
	b = appendOptional(b, int64(f.Source), -1)
	b = appendOptionalStrings(b, f.ValueStatsCols, f.HasValueStatsCols)
	b = appendOptionalString(b, f.ExternalPath)
	b = appendOptional(b, f.FirstRowID, -1)
	b = appendOptionalStrings(b, f.WriteCols, f.HasWriteCols)
	if f.WriteColsSequences == nil {
		b = append(b, 0)
	} else {
		b = append(b, 2)
		if n := len(f.WriteColsSequences); n > 0 {
			b = appendLong(b, int64(n))
			for _, v := range f.WriteColsSequences {
				b = appendLong(b, v)
			}
		}
		b = append(b, 0)
	}
	e.block = b
	e.done()
	return nil
}

// EncodeList writes a manifest list.
func EncodeList(metas []FileMeta, c Codec) []byte {
	e := newEncoder(listSchema, c)
	for i := range metas {
		m := &metas[i]
		b := e.block
		b = appendLong(b, listVersion)
		b = appendString(b, m.Name)
		b = appendLong(b, m.Size)
		b = appendLong(b, m.Added)
		b = appendLong(b, m.Deleted)
		b = appendStats(b, &m.PartitionStats)
		b = appendLong(b, m.SchemaID)
		for _, v := range [...]int32{m.MinBucket, m.MaxBucket, m.MinLevel, m.MaxLevel} {
			b = appendOptional(b, int64(v), -1)
		}
		b = appendOptional(b, m.MinRowID, -1)
		b = appendOptional(b, m.MaxRowID, -1)
		e.block = b
		e.done()
	}
	return e.finish()
}

// EncodeIndex writes an index manifest.
func EncodeIndex(entries []IndexEntry, partitionArity int, c Codec) []byte {
	e := newEncoder(indexSchema, c)
	for i := range entries {
		x := &entries[i]
		b := e.block
		b = appendLong(b, indexVersion)
		b = appendLong(b, int64(x.Kind))
		b = appendImage(b, x.Partition, partitionArity)
		b = appendLong(b, int64(x.Bucket))
		b = appendString(b, x.Type)
		b = appendString(b, x.Name)
		b = appendLong(b, x.Size)
		b = appendLong(b, x.Rows)
		// Java keeps an empty file for a bucket whose vectors are all gone, and wants its
		// list to be there.
		if x.DVs == nil && x.Type != "DELETION_VECTORS" {
			b = append(b, 0)
		} else {
			b = append(b, 2)
			if len(x.DVs) > 0 {
				b = appendLong(b, int64(len(x.DVs)))
			}
			for _, v := range x.DVs {
				b = append(b, 2)
				b = appendString(b, v.DataFile)
				b = appendLong(b, int64(v.Offset))
				b = appendLong(b, int64(v.Length))
				b = appendOptional(b, v.Cardinality, -1)
			}
			b = append(b, 0)
		}
		b = appendOptionalString(b, x.ExternalPath)
		if g := x.Global; g == nil {
			b = append(b, 0)
		} else {
			b = append(b, 2)
			b = appendLong(b, g.RowRangeStart)
			b = appendLong(b, g.RowRangeEnd)
			b = appendLong(b, int64(g.FieldID))
			if len(g.ExtraFieldIDs) == 0 {
				b = append(b, 0)
			} else {
				b = appendLong(append(b, 2), int64(len(g.ExtraFieldIDs)))
				for _, id := range g.ExtraFieldIDs {
					b = appendLong(b, int64(id))
				}
				b = append(b, 0)
			}
			if g.Meta == nil {
				b = append(b, 0)
			} else {
				b = appendBytes(append(b, 2), g.Meta)
			}
			if g.SourceMeta == nil {
				b = append(b, 0)
			} else {
				b = appendBytes(append(b, 2), g.SourceMeta)
			}
		}
		e.block = b
		e.done()
	}
	return e.finish()
}
