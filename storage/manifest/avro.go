package manifest

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
	"unsafe"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// An Avro object container is
//
//	"Obj" 0x01 | metadata map<string, bytes> | sync marker, 16 bytes
//	blocks: rows (long) | bytes (long) | data, compressed | sync marker
//
// Longs are zigzag varints. The writer's schema is in the metadata; records are
// decoded by it, matching our fields by name, so every version that Paimon ever
// wrote reads the same way and members that are not known are skipped.

// maxBlock bounds what one compressed block may grow to.
const maxBlock = 256 << 20

// errAvro is the cause of all decoding errors of this package.
var errAvro = errors.New("avro data does not fit its schema")

// nodeKind is an Avro type.
type nodeKind uint8

const (
	nNull nodeKind = iota
	nBool
	nInt // int, long, enum
	nFloat
	nDouble
	nBytes // bytes, string
	nFixed
	nRecord
	nArray
	nMap
	nUnion
)

// node is one type of a writer's schema.
type node struct {
	kind   nodeKind
	size   int      // of a fixed
	fields []member // of a record
	items  *node    // of an array or map
	alts   []*node  // of a union
}

type member struct {
	name string
	node *node
}

// schemas holds compiled schemas by their text: a writer's manifests all have the
// same, and compiling it takes longer than reading a small one. Nodes are not
// changed once compiled.
var schemas = fileio.NewLRU[string, *node](256<<10, nil)

// parseSchema compiles the schema in a container's header.
func parseSchema(raw []byte) (*node, error) {
	if n, ok := schemas.Get(string(raw)); ok {
		return n, nil
	}
	p := schemaParser{named: map[string]*node{}}
	n, err := p.parse(raw, 0)
	if err == nil {
		schemas.Put(string(raw), n, int64(len(raw)))
	}
	return n, err
}

type schemaParser struct {
	named map[string]*node
	nodes int
}

func (p *schemaParser) parse(raw json.RawMessage, depth int) (*node, error) {
	if p.nodes++; p.nodes > 4096 || depth > 32 {
		return nil, fmt.Errorf("avro schema is too large")
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil, fmt.Errorf("avro schema lacks a type")
	}
	switch raw[0] {
	case '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, err
		}
		return p.primitive(s)
	case '[':
		var alts []json.RawMessage
		if err := json.Unmarshal(raw, &alts); err != nil {
			return nil, err
		}
		n := &node{kind: nUnion}
		for _, a := range alts {
			c, err := p.parse(a, depth+1)
			if err != nil {
				return nil, err
			}
			n.alts = append(n.alts, c)
		}
		if len(n.alts) == 0 {
			return nil, fmt.Errorf("avro union is empty")
		}
		return n, nil
	}
	var o struct {
		Type      json.RawMessage `json:"type"`
		Name      string          `json:"name"`
		Namespace string          `json:"namespace"`
		Size      int             `json:"size"`
		Items     json.RawMessage `json:"items"`
		Values    json.RawMessage `json:"values"`
		Fields    []struct {
			Name string          `json:"name"`
			Type json.RawMessage `json:"type"`
		} `json:"fields"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	var name string
	if json.Unmarshal(o.Type, &name) != nil {
		return p.parse(o.Type, depth+1) // {"type": {...}}
	}
	n := &node{}
	var err error
	switch name {
	case "record", "error":
		n.kind = nRecord
		p.define(o.Namespace, o.Name, n)
		for _, f := range o.Fields {
			c, err := p.parse(f.Type, depth+1)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
			n.fields = append(n.fields, member{f.Name, c})
		}
	case "array":
		n.kind = nArray
		n.items, err = p.parse(o.Items, depth+1)
	case "map":
		n.kind = nMap
		n.items, err = p.parse(o.Values, depth+1)
	case "fixed":
		n.kind, n.size = nFixed, o.Size
		if o.Size < 0 {
			return nil, fmt.Errorf("avro fixed of size %d", o.Size)
		}
		p.define(o.Namespace, o.Name, n)
	case "enum":
		n.kind = nInt
		p.define(o.Namespace, o.Name, n)
	default:
		return p.primitive(name)
	}
	return n, err
}

func (p *schemaParser) define(ns, name string, n *node) {
	p.named[name] = n
	if ns != "" {
		p.named[ns+"."+name] = n
	}
}

func (p *schemaParser) primitive(s string) (*node, error) {
	switch s {
	case "null":
		return &node{kind: nNull}, nil
	case "boolean":
		return &node{kind: nBool}, nil
	case "int", "long":
		return &node{kind: nInt}, nil
	case "float":
		return &node{kind: nFloat}, nil
	case "double":
		return &node{kind: nDouble}, nil
	case "bytes", "string":
		return &node{kind: nBytes}, nil
	}
	if n, ok := p.named[s]; ok {
		return n, nil
	}
	return nil, fmt.Errorf("avro type %q is unknown", s)
}

// dec reads one decompressed block. The first error sticks; reads after it
// return zero values, so callers check once per record.
type dec struct {
	b   []byte
	pos int
	err error
}

func (d *dec) fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s at byte %d of the block", errAvro, what, d.pos)
	}
	d.pos = len(d.b)
}

func (d *dec) long() int64 {
	if d.pos < len(d.b) {
		if c := d.b[d.pos]; c < 0x80 { // most numbers are small
			d.pos++
			return int64(c>>1) ^ -int64(c&1)
		}
	}
	v, n := binary.Uvarint(d.b[d.pos:])
	if n <= 0 {
		d.fail("number")
		return 0
	}
	d.pos += n
	return int64(v>>1) ^ -int64(v&1)
}

// bytes returns a part of the block: not to be changed, valid as long as anyone
// holds it.
func (d *dec) bytes() []byte {
	n := d.long()
	if n < 0 || n > int64(len(d.b)-d.pos) {
		d.fail("length")
		return nil
	}
	out := d.b[d.pos : d.pos+int(n) : d.pos+int(n)]
	d.pos += int(n)
	return out
}

// str is bytes as a string without a copy. Sound because blocks are never
// written after they are decompressed.
func (d *dec) str() string {
	b := d.bytes()
	if len(b) == 0 {
		return ""
	}
	return unsafe.String(&b[0], len(b))
}

// value resolves unions: it returns the type of the value that follows, nil when
// that is null.
func (d *dec) value(n *node) *node {
	for n.kind == nUnion {
		i := d.long()
		if i < 0 || i >= int64(len(n.alts)) {
			d.fail("union branch")
			return nil
		}
		n = n.alts[i]
	}
	if n.kind == nNull {
		return nil
	}
	return n
}

// block returns how many items the next block of an array or map holds, 0 at the
// end.
func (d *dec) block() int64 {
	if d.err != nil {
		return 0
	}
	n := d.long()
	if n < 0 {
		n = -n
		d.long() // bytes of the block
	}
	// Every item but null takes a byte, and our items are never bare nulls.
	if n < 0 || n > int64(len(d.b)-d.pos)+1 {
		d.fail("array length")
		return 0
	}
	return n
}

// blocks calls each for every item of an array or map.
func (d *dec) blocks(each func()) {
	for n := d.block(); n > 0; n = d.block() {
		for ; n > 0 && d.err == nil; n-- {
			each()
		}
	}
}

func (d *dec) skip(n *node) {
	n = d.value(n)
	if n == nil || d.err != nil {
		return
	}
	switch n.kind {
	case nBool:
		d.advance(1)
	case nInt:
		d.long()
	case nFloat:
		d.advance(4)
	case nDouble:
		d.advance(8)
	case nBytes:
		d.bytes()
	case nFixed:
		d.advance(n.size)
	case nRecord:
		for i := range n.fields {
			d.skip(n.fields[i].node)
		}
	case nArray:
		d.blocks(func() { d.skip(n.items) })
	case nMap:
		d.blocks(func() { d.bytes(); d.skip(n.items) })
	}
}

func (d *dec) advance(n int) {
	if n > len(d.b)-d.pos {
		d.fail("value")
		return
	}
	d.pos += n
}

// container walks the blocks of one file.
type container struct {
	d      dec
	path   string
	schema *node
	codec  string
	sync   [16]byte
}

func (c *container) corrupt(offset int, reason string, err error) error {
	return &fileio.CorruptionError{Path: c.path, Offset: int64(offset), Reason: reason, Err: err}
}

// open reads the header of a container. ORC files, which old versions could use
// for manifests, are refused by name.
func open(path string, data []byte) (*container, error) {
	c := &container{path: path, d: dec{b: data}}
	if bytes.HasPrefix(data, []byte("ORC")) {
		return nil, &fileio.UnsupportedError{Feature: "ORC manifests"}
	}
	if !bytes.HasPrefix(data, []byte("Obj\x01")) {
		if bytes.HasPrefix(data, []byte("PAR1")) {
			return nil, &fileio.UnsupportedError{Feature: "Parquet manifests"}
		}
		return nil, c.corrupt(0, "not an Avro object container", nil)
	}
	c.d.pos = 4
	var schema []byte
	c.d.blocks(func() {
		k, v := c.d.str(), c.d.bytes()
		switch k {
		case "avro.schema":
			schema = v
		case "avro.codec":
			c.codec = string(v)
		}
	})
	if c.d.err != nil || len(data)-c.d.pos < 16 {
		return nil, c.corrupt(c.d.pos, "header", c.d.err)
	}
	c.d.pos += copy(c.sync[:], data[c.d.pos:])
	var err error
	if c.schema, err = parseSchema(schema); err != nil {
		return nil, c.corrupt(4, "schema", err)
	}
	switch c.codec {
	case "", "null", "deflate", "zstandard", "snappy":
	default:
		return nil, &fileio.UnsupportedError{Feature: "Avro codec " + c.codec + " in manifests"}
	}
	return c, nil
}

// next returns the next block and how many records it holds; ok is false at the
// end of the file.
func (c *container) next() (rows int64, block []byte, ok bool, err error) {
	if c.d.pos == len(c.d.b) {
		return 0, nil, false, nil
	}
	start := c.d.pos
	rows = c.d.long()
	raw := c.d.bytes()
	if c.d.err != nil || rows < 0 || len(c.d.b)-c.d.pos < 16 {
		return 0, nil, false, c.corrupt(start, "block is cut short", c.d.err)
	}
	if !bytes.Equal(c.d.b[c.d.pos:c.d.pos+16], c.sync[:]) {
		return 0, nil, false, c.corrupt(c.d.pos, "sync marker", nil)
	}
	c.d.pos += 16
	block, err = inflate(c.codec, raw)
	if err != nil {
		return 0, nil, false, c.corrupt(start, "block does not decompress", err)
	}
	if rows > int64(len(block)) { // no record of ours is empty
		return 0, nil, false, c.corrupt(start, fmt.Sprintf("%d records in %d bytes", rows, len(block)), nil)
	}
	return rows, block, true, nil
}

var zstdDecoders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlock))
	if err != nil {
		return err
	}
	return d
}}

func inflate(codec string, raw []byte) ([]byte, error) {
	switch codec {
	case "zstandard":
		d, ok := zstdDecoders.Get().(*zstd.Decoder)
		if !ok {
			return nil, errors.New("zstd decoder cannot be made")
		}
		defer zstdDecoders.Put(d)
		return d.DecodeAll(raw, nil)
	case "deflate":
		out, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(raw)), maxBlock+1))
		if len(out) > maxBlock {
			err = errors.New("block is too large")
		}
		return out, err
	case "snappy":
		if len(raw) < 4 {
			return nil, io.ErrUnexpectedEOF
		}
		body, sum := raw[:len(raw)-4], binary.BigEndian.Uint32(raw[len(raw)-4:])
		n, err := snappy.DecodedLen(body)
		if err != nil || n > maxBlock || n > 64*len(body)+64 {
			return nil, errors.New("snappy length")
		}
		out, err := snappy.Decode(nil, body)
		if err == nil && crc32.ChecksumIEEE(out) != sum {
			err = errors.New("checksum")
		}
		return out, err
	}
	return raw, nil
}
