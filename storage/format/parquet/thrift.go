package parquet

import (
	"encoding/binary"
	"errors"
	"math"
)

// Thrift's compact protocol, as far as Parquet's metadata needs it. The reader
// of parquet-go believes list sizes and allocates for them before it has seen
// one element; a damaged footer could ask for gigabytes, so we walk ourselves
// and let lists grow by what is really there.
//
// A struct is a run of fields ended by a zero byte:
//
//	delta<<4 | type             delta 1..15 from the previous field id, or
//	type, zigzag varint id      when delta is 0
//
// Integers are zigzag varints, binaries a varint length and bytes, a list
// size<<4 | element type with size 15 meaning that a varint follows. A boolean
// field has its value in the type; a boolean element is one byte.

// Wire types of the compact protocol.
const (
	ttStop   = 0
	ttTrue   = 1
	ttFalse  = 2
	ttByte   = 3
	ttI16    = 4
	ttI32    = 5
	ttI64    = 6
	ttDouble = 7
	ttBinary = 8
	ttList   = 9
	ttSet    = 10
	ttMap    = 11
	ttStruct = 12
	ttUUID   = 13
)

// maxThriftDepth bounds the nesting of values that are skipped.
const maxThriftDepth = 24

var (
	// errShort says that the input ended inside a value; more bytes may help.
	errShort      = errors.New("metadata ends early")
	errThriftType = errors.New("metadata has a value of an unknown or wrong type")
	errThriftDeep = errors.New("metadata is nested too deeply")
)

// tread reads compact thrift from b. The first error sticks; after it every
// method returns zero values.
type tread struct {
	b   []byte
	p   int
	err error
}

func (d *tread) fail(err error) {
	if d.err == nil {
		d.err = err
		d.p = len(d.b)
	}
}

func (d *tread) byte() byte {
	if d.p >= len(d.b) {
		d.fail(errShort)
		return 0
	}
	c := d.b[d.p]
	d.p++
	return c
}

func (d *tread) uvarint() uint64 {
	v, n := binary.Uvarint(d.b[d.p:])
	if n == 0 {
		d.fail(errShort)
		return 0
	}
	if n < 0 {
		d.fail(errThriftType)
		return 0
	}
	d.p += n
	return v
}

func (d *tread) i64(typ byte) int64 {
	switch typ {
	case ttByte:
		return int64(int8(d.byte()))
	case ttI16, ttI32, ttI64:
		u := d.uvarint()
		return int64(u>>1) ^ -int64(u&1)
	}
	d.fail(errThriftType)
	return 0
}

func (d *tread) i32(typ byte) int32 {
	v := d.i64(typ)
	if v < math.MinInt32 || v > math.MaxInt32 {
		d.fail(errThriftType)
		return 0
	}
	return int32(v)
}

// bool is the value of a boolean field, which lies in its type.
func (d *tread) bool(typ byte) bool {
	if typ != ttTrue && typ != ttFalse {
		d.fail(errThriftType)
	}
	return typ == ttTrue
}

// bin returns the bytes of a binary or string, aliasing the input.
func (d *tread) bin(typ byte) []byte {
	if typ != ttBinary {
		d.fail(errThriftType)
		return nil
	}
	n := d.uvarint()
	if n > uint64(len(d.b)-d.p) {
		d.fail(errShort)
		return nil
	}
	v := d.b[d.p : d.p+int(n) : d.p+int(n)]
	d.p += int(n)
	return v
}

// list reads the head of a list. Every element takes a byte or more, so a size
// beyond the bytes left is an error here already.
func (d *tread) list(typ byte) (n int, elem byte) {
	if typ != ttList && typ != ttSet {
		d.fail(errThriftType)
		return 0, 0
	}
	h := d.byte()
	u := uint64(h >> 4)
	if u == 15 {
		u = d.uvarint()
	}
	if u > uint64(len(d.b)-d.p) {
		d.fail(errShort)
		return 0, 0
	}
	return int(u), h & 15
}

// fields calls fn for each field of a struct; fn must consume the value (skip).
func (d *tread) fields(fn func(id int16, typ byte)) {
	last := int16(0)
	for d.err == nil {
		h := d.byte()
		typ := h & 15
		if typ == ttStop || d.err != nil {
			return
		}
		if delta := int16(h >> 4); delta != 0 {
			last += delta
		} else {
			last = int16(d.i64(ttI16))
		}
		fn(last, typ)
	}
}

// structs reads a list of structs with one call of fn each.
func (d *tread) structs(typ byte, fn func()) {
	n, et := d.list(typ)
	if n > 0 && et != ttStruct {
		d.fail(errThriftType)
	}
	for i := 0; i < n && d.err == nil; i++ {
		fn()
	}
}

// ints reads a list of integers.
func (d *tread) ints(typ byte) []int64 {
	n, et := d.list(typ)
	var out []int64
	for i := 0; i < n && d.err == nil; i++ {
		out = append(out, d.i64(et))
	}
	return out
}

// skip passes over a value.
func (d *tread) skip(typ byte) { d.skipDeep(typ, 0, false) }

func (d *tread) skipDeep(typ byte, depth int, elem bool) {
	if depth > maxThriftDepth {
		d.fail(errThriftDeep)
		return
	}
	switch typ {
	case ttTrue, ttFalse:
		if elem {
			d.byte()
		}
	case ttByte:
		d.byte()
	case ttI16, ttI32, ttI64:
		d.uvarint()
	case ttDouble:
		d.advance(8)
	case ttUUID:
		d.advance(16)
	case ttBinary:
		d.bin(typ)
	case ttList, ttSet:
		n, et := d.list(typ)
		for i := 0; i < n && d.err == nil; i++ {
			d.skipDeep(et, depth+1, true)
		}
	case ttMap:
		n := d.uvarint()
		if n == 0 || d.err != nil {
			return
		}
		if n > uint64(len(d.b)-d.p) {
			d.fail(errShort)
			return
		}
		kv := d.byte()
		for i := uint64(0); i < n && d.err == nil; i++ {
			d.skipDeep(kv>>4, depth+1, true)
			d.skipDeep(kv&15, depth+1, true)
		}
	case ttStruct:
		d.fields(func(_ int16, t byte) { d.skipDeep(t, depth+1, false) })
	default:
		d.fail(errThriftType)
	}
}

func (d *tread) advance(n int) {
	if n > len(d.b)-d.p {
		d.fail(errShort)
		return
	}
	d.p += n
}

// twrite writes compact thrift.
type twrite struct {
	b     []byte
	last  int16
	stack []int16
}

func (w *twrite) field(id int16, typ byte) {
	if d := id - w.last; d > 0 && d < 16 {
		w.b = append(w.b, byte(d)<<4|typ)
	} else {
		w.b = append(w.b, typ)
		w.zigzag(int64(id))
	}
	w.last = id
}

func (w *twrite) zigzag(v int64) {
	w.b = binary.AppendUvarint(w.b, uint64(v<<1)^uint64(v>>63))
}

func (w *twrite) i32(id int16, v int32) { w.field(id, ttI32); w.zigzag(int64(v)) }
func (w *twrite) i64(id int16, v int64) { w.field(id, ttI64); w.zigzag(v) }

func (w *twrite) i8(id int16, v int8) {
	w.field(id, ttByte)
	w.b = append(w.b, byte(v))
}

func (w *twrite) bool(id int16, v bool) {
	if v {
		w.field(id, ttTrue)
	} else {
		w.field(id, ttFalse)
	}
}

func (w *twrite) bin(id int16, v []byte) {
	w.field(id, ttBinary)
	w.elemBin(v)
}

func (w *twrite) elemBin(v []byte) {
	w.b = binary.AppendUvarint(w.b, uint64(len(v)))
	w.b = append(w.b, v...)
}

func (w *twrite) str(id int16, v string) { w.bin(id, []byte(v)) }

func (w *twrite) list(id int16, elem byte, n int) {
	w.field(id, ttList)
	if n < 15 {
		w.b = append(w.b, byte(n)<<4|elem)
	} else {
		w.b = append(w.b, 0xf0|elem)
		w.b = binary.AppendUvarint(w.b, uint64(n))
	}
}

// open starts a struct: a field of one, or with id 0 an element or the root.
func (w *twrite) open(id int16) {
	if id != 0 {
		w.field(id, ttStruct)
	}
	w.stack = append(w.stack, w.last)
	w.last = 0
}

func (w *twrite) close() {
	w.b = append(w.b, ttStop)
	w.last = w.stack[len(w.stack)-1]
	w.stack = w.stack[:len(w.stack)-1]
}

// empty writes an empty struct field, as unions without content are.
func (w *twrite) empty(id int16) { w.open(id); w.close() }
