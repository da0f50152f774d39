package parquet

import "fmt"

// Physical types.
const (
	pBool   = 0
	pInt32  = 1
	pInt64  = 2
	pInt96  = 3
	pFloat  = 4
	pDouble = 5
	pBytes  = 6
	pFixed  = 7
)

func physName(p int32) string {
	n := [...]string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}
	if p >= 0 && int(p) < len(n) {
		return n[p]
	}
	return fmt.Sprintf("type %d", p)
}

// Repetition of a schema element.
const (
	repRequired = 0
	repOptional = 1
	repRepeated = 2
)

// Encodings.
const (
	encPlain       = 0
	encPlainDict   = 2
	encRLE         = 3
	encBitPacked   = 4
	encDelta       = 5
	encDeltaLength = 6
	encDeltaBytes  = 7
	encRLEDict     = 8
	encByteStream  = 9
)

// Codecs.
const (
	codecNone   = 0
	codecSnappy = 1
	codecGzip   = 2
	codecLZO    = 3
	codecBrotli = 4
	codecLZ4    = 5 // Hadoop's framing around LZ4 blocks
	codecZstd   = 6
	codecLZ4Raw = 7
)

// Page types.
const (
	pageData   = 0
	pageIndex  = 1
	pageDict   = 2
	pageDataV2 = 3
)

// Logical types, by their number in the union.
const (
	logNone      = 0
	logString    = 1
	logMap       = 2
	logList      = 3
	logDecimal   = 5
	logDate      = 6
	logTime      = 7
	logTimestamp = 8
	logInt       = 10
	logFloat16   = 15
)

// Time units, by their number in the union.
const (
	unitNone   = 0
	unitMillis = 1
	unitMicros = 2
	unitNanos  = 3
)

// Converted types that matter where the logical type is absent.
const (
	convUTF8            = 0
	convMap             = 1
	convMapKeyValue     = 2
	convList            = 3
	convDecimal         = 5
	convDate            = 6
	convTimeMillis      = 7
	convTimeMicros      = 8
	convTimestampMillis = 9
	convTimestampMicros = 10
	convUint8           = 11
	convUint64          = 14
	convInt8            = 15
	convInt16           = 16
	convInterval        = 21
)

// element is one SchemaElement. Absent integers are -1.
type element struct {
	typ, typeLength, repetition, numChildren, converted int32
	name                                                string
	scale, precision, fieldID                           int32
	hasFieldID                                          bool
	logical                                             int16 // member of the union, 0 = none
	unit                                                int16
	adjusted, signed                                    bool
	bits                                                int8
}

// statistics are min and max in the encoding of PLAIN without a length; nil is
// absent, which differs from empty.
type statistics struct {
	min, max, minValue, maxValue []byte
	nulls                        int64 // -1 = unknown
}

type encodingStat struct{ page, enc, count int32 }

type chunkMeta struct {
	typ, codec                       int32
	encodings                        []int64
	encStats                         []encodingStat
	path                             []string
	values, uncompressed, compressed int64
	dataOff, dictOff                 int64
	stats                            statistics
	bloomOff                         int64
	bloomLen                         int32
	offsetIndexOff, columnIndexOff   int64
	offsetIndexLen, columnIndexLen   int32
	filePath                         []byte
	hasMeta, encrypted               bool
}

type rowGroup struct {
	cols  []chunkMeta
	rows  int64
	bytes int64
	first int64 // row number of its first row in the file
}

type fileMeta struct {
	version   int32
	schema    []element
	rows      int64
	groups    []rowGroup
	createdBy string
	orders    []int16 // member of the ColumnOrder union per leaf
	encrypted bool
}

func (d *tread) statistics(typ byte) statistics {
	s := statistics{nulls: -1}
	if typ != ttStruct {
		d.fail(errThriftType)
		return s
	}
	d.fields(func(id int16, t byte) {
		switch id {
		case 1:
			s.max = d.bin(t)
		case 2:
			s.min = d.bin(t)
		case 3:
			s.nulls = d.i64(t)
		case 5:
			s.maxValue = d.bin(t)
		case 6:
			s.minValue = d.bin(t)
		default:
			d.skip(t)
		}
	})
	return s
}

// union reads a struct of which one field is set, and returns its id; inner is
// called to read the member when it is not nil.
func (d *tread) union(typ byte, inner func(id int16, t byte)) int16 {
	which := int16(0)
	if typ != ttStruct {
		d.fail(errThriftType)
		return 0
	}
	d.fields(func(id int16, t byte) {
		which = id
		if inner != nil {
			inner(id, t)
		} else {
			d.skip(t)
		}
	})
	return which
}

func (d *tread) element() element {
	e := element{typ: -1, typeLength: -1, repetition: -1, converted: -1, precision: -1}
	d.fields(func(id int16, t byte) {
		switch id {
		case 1:
			e.typ = d.i32(t)
		case 2:
			e.typeLength = d.i32(t)
		case 3:
			e.repetition = d.i32(t)
		case 4:
			e.name = string(d.bin(t))
		case 5:
			e.numChildren = d.i32(t)
		case 6:
			e.converted = d.i32(t)
		case 7:
			e.scale = d.i32(t)
		case 8:
			e.precision = d.i32(t)
		case 9:
			e.fieldID, e.hasFieldID = d.i32(t), true
		case 10:
			e.logical = d.union(t, func(id int16, t byte) { d.logical(&e, id, t) })
		default:
			d.skip(t)
		}
	})
	return e
}

func (d *tread) logical(e *element, id int16, t byte) {
	if t != ttStruct {
		d.fail(errThriftType)
		return
	}
	switch id {
	case logDecimal:
		d.fields(func(id int16, t byte) {
			switch id {
			case 1:
				e.scale = d.i32(t)
			case 2:
				e.precision = d.i32(t)
			default:
				d.skip(t)
			}
		})
	case logTime, logTimestamp:
		d.fields(func(id int16, t byte) {
			switch id {
			case 1:
				e.adjusted = d.bool(t)
			case 2:
				e.unit = d.union(t, nil)
			default:
				d.skip(t)
			}
		})
	case logInt:
		d.fields(func(id int16, t byte) {
			switch id {
			case 1:
				e.bits = int8(d.i64(t))
			case 2:
				e.signed = d.bool(t)
			default:
				d.skip(t)
			}
		})
	default:
		d.skip(t)
	}
}

func (d *tread) chunkMeta(c *chunkMeta) {
	c.hasMeta = true
	seen := 0
	d.fields(func(id int16, t byte) {
		switch id {
		case 1:
			c.typ = d.i32(t)
			seen |= 1
		case 2:
			c.encodings = d.ints(t)
		case 3:
			n, et := d.list(t)
			for i := 0; i < n && d.err == nil; i++ {
				c.path = append(c.path, string(d.bin(et)))
			}
		case 4:
			c.codec = d.i32(t)
			seen |= 2
		case 5:
			c.values = d.i64(t)
			seen |= 4
		case 6:
			c.uncompressed = d.i64(t)
		case 7:
			c.compressed = d.i64(t)
			seen |= 8
		case 9:
			c.dataOff = d.i64(t)
			seen |= 16
		case 11:
			c.dictOff = d.i64(t)
		case 12:
			c.stats = d.statistics(t)
		case 13:
			d.structs(t, func() {
				var s encodingStat
				d.fields(func(id int16, t byte) {
					switch id {
					case 1:
						s.page = d.i32(t)
					case 2:
						s.enc = d.i32(t)
					case 3:
						s.count = d.i32(t)
					default:
						d.skip(t)
					}
				})
				c.encStats = append(c.encStats, s)
			})
		case 14:
			c.bloomOff = d.i64(t)
		case 15:
			c.bloomLen = d.i32(t)
		default:
			d.skip(t)
		}
	})
	if seen != 31 {
		d.fail(fmt.Errorf("column metadata lacks a required field"))
	}
}

func (d *tread) chunk() chunkMeta {
	c := chunkMeta{stats: statistics{nulls: -1}}
	d.fields(func(id int16, t byte) {
		switch id {
		case 1:
			c.filePath = d.bin(t)
		case 3:
			if t != ttStruct {
				d.fail(errThriftType)
				return
			}
			d.chunkMeta(&c)
		case 4:
			c.offsetIndexOff = d.i64(t)
		case 5:
			c.offsetIndexLen = d.i32(t)
		case 6:
			c.columnIndexOff = d.i64(t)
		case 7:
			c.columnIndexLen = d.i32(t)
		case 8:
			c.encrypted = true
			d.skip(t)
		default:
			d.skip(t)
		}
	})
	if !c.hasMeta && !c.encrypted {
		d.fail(fmt.Errorf("column chunk has no metadata"))
	}
	return c
}

// parseFooter reads a FileMetaData. Byte fields alias b.
func parseFooter(b []byte) (*fileMeta, error) {
	d := &tread{b: b}
	m := &fileMeta{}
	seen := 0
	d.fields(func(id int16, t byte) {
		switch id {
		case 1:
			m.version = d.i32(t)
		case 2:
			d.structs(t, func() { m.schema = append(m.schema, d.element()) })
			seen |= 1
		case 3:
			m.rows = d.i64(t)
			seen |= 2
		case 4:
			d.structs(t, func() {
				g := rowGroup{rows: -1}
				d.fields(func(id int16, t byte) {
					switch id {
					case 1:
						d.structs(t, func() { g.cols = append(g.cols, d.chunk()) })
					case 2:
						g.bytes = d.i64(t)
					case 3:
						g.rows = d.i64(t)
					default:
						d.skip(t)
					}
				})
				if g.rows < 0 {
					d.fail(fmt.Errorf("row group has no row count"))
				}
				m.groups = append(m.groups, g)
			})
			seen |= 4
		case 6:
			m.createdBy = string(d.bin(t))
		case 7:
			n, et := d.list(t)
			for i := 0; i < n && d.err == nil; i++ {
				m.orders = append(m.orders, d.union(et, nil))
			}
		case 8:
			m.encrypted = true
			d.skip(t)
		default:
			d.skip(t)
		}
	})
	if d.err == nil && seen != 7 {
		d.fail(fmt.Errorf("footer lacks a required field"))
	}
	if d.err != nil {
		return nil, d.err
	}
	return m, nil
}

// pageHeader is a PageHeader of any page type.
type pageHeader struct {
	typ                      int32
	uncompressed, compressed int32
	crc                      uint32
	hasCRC                   bool
	values, enc              int32
	defEnc, repEnc           int32
	rows, nulls              int32 // v2 only
	defLen, repLen           int32 // v2 only
	compressedV2             bool
	size                     int // bytes of the header itself
}

// parsePageHeader reads a page header from the start of b. It runs once per
// page, so it does without the closures of the footer.
func parsePageHeader(b []byte) (h pageHeader, err error) {
	d := tread{b: b}
	h = pageHeader{typ: -1, uncompressed: -1, compressed: -1, values: -1, enc: -1, defEnc: encRLE, repEnc: encRLE, compressedV2: true}
	last := int16(0)
	for d.err == nil {
		id, t := d.next(&last)
		if t == ttStop {
			break
		}
		switch {
		case id == 1:
			h.typ = d.i32(t)
		case id == 2:
			h.uncompressed = d.i32(t)
		case id == 3:
			h.compressed = d.i32(t)
		case id == 4:
			h.crc, h.hasCRC = uint32(d.i64(t)), true
		case (id == 5 || id == 7 || id == 8) && t == ttStruct:
			h.body(&d, id)
		default:
			d.skip(t)
		}
	}
	if d.err != nil {
		return h, d.err
	}
	h.size = d.p
	if h.typ < 0 || h.uncompressed < 0 || h.compressed < 0 {
		return h, fmt.Errorf("page header lacks its type or size")
	}
	if h.typ != pageIndex && (h.values < 0 || h.enc < 0) {
		return h, fmt.Errorf("page header lacks its number of values or encoding")
	}
	if h.typ == pageDataV2 && (h.defLen < 0 || h.repLen < 0 || h.rows < 0) {
		return h, fmt.Errorf("page header has a negative length")
	}
	return h, nil
}

// next reads the head of a field; t is ttStop at the end of the struct or after
// an error.
func (d *tread) next(last *int16) (id int16, t byte) {
	c := d.byte()
	t = c & 15
	if t == ttStop || d.err != nil {
		return 0, ttStop
	}
	if delta := int16(c >> 4); delta != 0 {
		*last += delta
	} else {
		*last = int16(d.i64(ttI16))
	}
	return *last, t
}

func (h *pageHeader) body(d *tread, kind int16) {
	last := int16(0)
	for d.err == nil {
		id, t := d.next(&last)
		if t == ttStop {
			return
		}
		switch {
		case id == 1:
			h.values = d.i32(t)
		case id == 2 && kind == 8:
			h.nulls = d.i32(t)
		case id == 2:
			h.enc = d.i32(t)
		case id == 3 && kind == 8:
			h.rows = d.i32(t)
		case id == 3 && kind == 5:
			h.defEnc = d.i32(t)
		case id == 4 && kind == 8:
			h.enc = d.i32(t)
		case id == 4 && kind == 5:
			h.repEnc = d.i32(t)
		case id == 5 && kind == 8:
			h.defLen = d.i32(t)
		case id == 6 && kind == 8:
			h.repLen = d.i32(t)
		case id == 7 && kind == 8:
			h.compressedV2 = d.bool(t)
		default:
			d.skip(t)
		}
	}
}

// pageLoc is one PageLocation: where a page is and which row it starts with,
// counted from the start of the row group.
type pageLoc struct {
	off   int64
	size  int32
	first int64
}

func parseOffsetIndex(b []byte) ([]pageLoc, error) {
	d := &tread{b: b}
	var out []pageLoc
	d.fields(func(id int16, t byte) {
		if id != 1 {
			d.skip(t)
			return
		}
		d.structs(t, func() {
			l := pageLoc{off: -1, size: -1, first: -1}
			d.fields(func(id int16, t byte) {
				switch id {
				case 1:
					l.off = d.i64(t)
				case 2:
					l.size = d.i32(t)
				case 3:
					l.first = d.i64(t)
				default:
					d.skip(t)
				}
			})
			if l.off < 0 || l.size < 0 || l.first < 0 {
				d.fail(fmt.Errorf("page location lacks a field"))
			}
			out = append(out, l)
		})
	})
	return out, d.err
}

// columnIndex holds the statistics of each page of a chunk.
type columnIndex struct {
	nullPages  []bool
	mins, maxs [][]byte
	nulls      []int64 // nil = unknown
}

func parseColumnIndex(b []byte) (*columnIndex, error) {
	d := &tread{b: b}
	x := &columnIndex{}
	d.fields(func(id int16, t byte) {
		switch id {
		case 1:
			n, _ := d.list(t)
			for i := 0; i < n && d.err == nil; i++ {
				x.nullPages = append(x.nullPages, d.byte() == ttTrue)
			}
		case 2, 3:
			n, et := d.list(t)
			var vs [][]byte
			for i := 0; i < n && d.err == nil; i++ {
				vs = append(vs, d.bin(et))
			}
			if id == 2 {
				x.mins = vs
			} else {
				x.maxs = vs
			}
		case 5:
			x.nulls = d.ints(t)
		default:
			d.skip(t)
		}
	})
	if d.err != nil {
		return nil, d.err
	}
	n := len(x.nullPages)
	if len(x.mins) != n || len(x.maxs) != n || (x.nulls != nil && len(x.nulls) != n) {
		return nil, fmt.Errorf("column index lists differ in length")
	}
	return x, nil
}
