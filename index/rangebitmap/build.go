package rangebitmap

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/bitslice"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// null is the number of a row without a value.
const null = math.MaxUint32

// Builder makes an index. It numbers the distinct values as they come and keeps
// the number of every row: four bytes a row, and the values once.
type Builder struct {
	value
	chunkSize int
	rows      []uint32
	ints      intSet
	strs      stringSet
	nan       uint64 // the bits of the first NaN, which Java keeps; 0: none yet
	buf       [1024]int64
	entries   []uint32 // of a dictionary: number+1, 0 = not seen
}

// Create starts an index. The option chunk-size (default 16 kb; 0 for BOOLEAN,
// TINYINT and SMALLINT) bounds the keys of a chunk of the dictionary.
func (Kind) Create(t types.Type, o index.Options) (index.Builder, error) {
	v, ok := valueOf(t)
	if !ok {
		return nil, fmt.Errorf("range-bitmap index does not support the type %v", t)
	}
	b := &Builder{value: v, chunkSize: 16 << 10}
	if v.width == 1 || v.width == 2 {
		b.chunkSize = 0
	}
	for name, text := range o {
		if name != "chunk-size" {
			return nil, fmt.Errorf("range-bitmap index has no option %q", name)
		}
		n, err := parseSize(text)
		if err != nil {
			return nil, fmt.Errorf("range-bitmap index: chunk-size: %w", err)
		}
		b.chunkSize = n
	}
	b.ints.init()
	b.strs.init()
	return b, nil
}

// parseSize reads Paimon's memory sizes up to 2 GB; a number alone is bytes.
// storage/schema has the same, which lies above this package.
func parseSize(s string) (int, error) {
	text := strings.ToLower(strings.TrimSpace(s))
	i := 0
	for i < len(text) && text[i] >= '0' && text[i] <= '9' {
		i++
	}
	n, err := strconv.ParseInt(text[:i], 10, 64)
	shift := -1
	switch strings.TrimSpace(text[i:]) {
	case "", "b", "bytes", "byte":
		shift = 0
	case "k", "kb", "kibibytes":
		shift = 10
	case "m", "mb", "mebibytes":
		shift = 20
	case "g", "gb", "gibibytes":
		shift = 30
	}
	if err != nil || shift < 0 || n > math.MaxInt32>>shift {
		return 0, fmt.Errorf("size %q", s)
	}
	return int(n) << shift, nil
}

// Append adds rows.
func (b *Builder) Append(a arrow.Array) error {
	if int64(len(b.rows))+int64(a.Len()) > math.MaxInt32 {
		return fmt.Errorf("%w: range-bitmap of more than %d rows", index.ErrCannotHold, math.MaxInt32)
	}
	b.rows = slices.Grow(b.rows, a.Len())
	if d, ok := a.(*array.Dictionary); ok {
		return b.appendDictionary(d)
	}
	if b.codec != nil {
		return b.appendNumbers(a)
	}
	s, ok := a.(*array.String)
	if !ok {
		return fmt.Errorf("range-bitmap index of strings cannot take an array of %s", a.DataType())
	}
	for i := range s.Len() {
		if s.IsNull(i) {
			b.rows = append(b.rows, null)
		} else {
			b.rows = append(b.rows, b.strs.number(s.Value(i)))
		}
	}
	return nil
}

func (b *Builder) appendNumbers(a arrow.Array) error {
	b.keepNaN(a)
	for from := 0; from < a.Len(); from += len(b.buf) {
		v := b.buf[:min(len(b.buf), a.Len()-from)]
		if err := b.codec.Encode(v, a, from); err != nil {
			return err
		}
		at := len(b.rows)
		b.rows = b.rows[:at+len(v)]
		if a.NullN() == 0 {
			b.ints.numbers(b.rows[at:], v)
			continue
		}
		for i, x := range v {
			b.rows[at+i] = null
			if a.IsValid(from + i) {
				b.rows[at+i] = b.ints.number(x)
			}
		}
	}
	return nil
}

// keepNaN remembers the first NaN of the rows to come.
func (b *Builder) keepNaN(a arrow.Array) {
	if b.nan != 0 {
		return
	}
	switch a := a.(type) {
	case *array.Float32:
		for i, f := range a.Float32Values() {
			if f != f && a.IsValid(i) {
				b.nan = uint64(math.Float32bits(f))
				return
			}
		}
	case *array.Float64:
		for i, f := range a.Float64Values() {
			if f != f && a.IsValid(i) {
				b.nan = math.Float64bits(f)
				return
			}
		}
	}
}

// appendDictionary looks every entry up once, when a row refers to it: entries
// that none does are no values of the file.
func (b *Builder) appendDictionary(d *array.Dictionary) error {
	values := d.Dictionary()
	b.entries = slices.Grow(b.entries[:0], values.Len())[:values.Len()]
	clear(b.entries)
	var one [1]int64
	for i := range d.Len() {
		if d.IsNull(i) {
			b.rows = append(b.rows, null)
			continue
		}
		e := d.GetValueIndex(i)
		if b.entries[e] == 0 {
			n := uint32(null)
			s, text := values.(*array.String)
			switch {
			case values.IsNull(e):
			case b.codec != nil:
				if err := b.codec.Encode(one[:], values, e); err != nil {
					return err
				}
				if one[0] == bitslice.NaN64 || one[0] == bitslice.NaN32 {
					entry := array.NewSlice(values, int64(e), int64(e)+1)
					b.keepNaN(entry)
					entry.Release()
				}
				n = b.ints.number(one[0])
			case !text:
				return fmt.Errorf("range-bitmap index of strings cannot take a dictionary of %s", values.DataType())
			default:
				n = b.strs.number(s.Value(e))
			}
			b.entries[e] = n + 1
			if n == null {
				b.entries[e] = null
			}
		}
		if n := b.entries[e]; n == null {
			b.rows = append(b.rows, null)
		} else {
			b.rows = append(b.rows, n-1)
		}
	}
	return nil
}

// Bytes is the memory held.
func (b *Builder) Bytes() int64 {
	return int64(cap(b.rows)+cap(b.entries)+cap(b.ints.slots))*4 + int64(cap(b.ints.keys))*8 +
		int64(cap(b.strs.slots)+cap(b.strs.ends))*8 + int64(cap(b.strs.text)) + 8<<10
}

// Finish returns the index, nil without rows. As in Java, rows that are all NULL
// make an index, too.
func (b *Builder) Finish() ([]byte, error) {
	if len(b.rows) == 0 {
		return nil, nil
	}
	dict := dictWriter{limit: b.chunkSize, width: b.width}
	var order []uint32 // numbers in the order of their values
	if b.codec != nil {
		order = b.ints.sorted()
		dict.fixed(order, b.encoded(order))
	} else {
		order = b.strs.sorted()
		dict.strings(order, &b.strs)
	}
	body := dict.finish()

	head := []byte{version}
	head = binary.BigEndian.AppendUint32(head, uint32(len(b.rows)))
	head = binary.BigEndian.AppendUint32(head, uint32(len(order)))
	head = append(head, dict.min...)
	head = append(head, dict.max...)
	head = binary.BigEndian.AppendUint32(head, uint32(len(body)))

	out := binary.BigEndian.AppendUint32(nil, uint32(len(head)))
	out = append(append(out, head...), body...)
	out, err := b.slices(out, order)
	if err == nil && len(out) > math.MaxInt32 {
		err = fmt.Errorf("%w: range-bitmap of %d bytes", index.ErrCannotHold, len(out))
	}
	return out, err
}

// slices appends the bit slices.
func (b *Builder) slices(out []byte, order []uint32) ([]byte, error) {
	rank := make([]uint32, len(order))
	for r, n := range order {
		rank[n] = uint32(r)
	}
	var sl bitslice.Builder
	var codes [64]uint64
	for rows := b.rows; len(rows) > 0; {
		block := rows[:min(64, len(rows))]
		rows = rows[len(block):]
		present := uint64(0)
		clear(codes[:])
		for i, n := range block {
			if n != null {
				codes[i] = uint64(rank[n])
				present |= 1 << i
			}
		}
		sl.Block(&codes, present)
	}
	n := 64 // as Java counts the bits of -1
	if len(order) > 0 {
		n = max(bits.Len(uint(len(order)-1)), 1)
	}
	maps, err := bitslice.AppendBitmap(nil, sl.Present())
	if err != nil {
		return nil, err
	}
	present := len(maps)
	out = binary.BigEndian.AppendUint32(out, uint32(10+8*n))
	out = append(out, version, byte(n))
	out = binary.BigEndian.AppendUint32(out, uint32(present))
	out = binary.BigEndian.AppendUint32(out, uint32(8*n))
	for i := range n {
		off := len(maps) - present
		if maps, err = bitslice.AppendBitmap(maps, sl.Slice(i)); err != nil {
			return nil, err
		}
		out = binary.BigEndian.AppendUint32(out, uint32(off))
		out = binary.BigEndian.AppendUint32(out, uint32(len(maps)-present-off))
	}
	return append(out, maps...), nil
}

// encoded returns the bytes of the values in order, back to back.
func (b *Builder) encoded(order []uint32) []byte {
	out := make([]byte, 0, len(order)*b.width)
	for _, n := range order {
		v := b.ints.keys[n]
		switch b.t.Kind {
		case types.Float8:
			if v == bitslice.NaN64 {
				v = int64(b.nan)
			} else {
				v ^= v >> 63 & math.MaxInt64
			}
		case types.Float4:
			if v == bitslice.NaN32 {
				v = int64(b.nan)
			} else {
				v ^= v >> 63 & math.MaxInt32
			}
		}
		switch b.width {
		case 1:
			out = append(out, byte(v))
		case 2:
			out = binary.BigEndian.AppendUint16(out, uint16(v))
		case 4:
			out = binary.BigEndian.AppendUint32(out, uint32(v))
		default:
			out = binary.BigEndian.AppendUint64(out, uint64(v))
		}
	}
	return out
}

// dictWriter cuts ordered values into chunks.
type dictWriter struct {
	limit, width int
	min, max     []byte
	chunks       uint32
	offsets      []byte
	heads        []byte
	keys         []byte
}

func (w *dictWriter) begin(first []byte, rank int) {
	w.chunks++
	w.offsets = binary.BigEndian.AppendUint32(w.offsets, uint32(len(w.heads)))
	w.heads = append(w.heads, version)
	w.heads = append(w.heads, first...)
	w.heads = binary.BigEndian.AppendUint32(w.heads, uint32(rank))
	w.heads = binary.BigEndian.AppendUint32(w.heads, uint32(len(w.keys)))
}

func (w *dictWriter) fixed(order []uint32, values []byte) {
	if len(order) == 0 {
		return
	}
	w.min, w.max = values[:w.width], values[len(values)-w.width:]
	room := w.limit / w.width
	for r := 0; r < len(order); {
		n := min(room, len(order)-r-1)
		at := r * w.width
		w.begin(values[at:at+w.width], r)
		keys := values[at+w.width : at+(n+1)*w.width]
		w.heads = binary.BigEndian.AppendUint32(w.heads, uint32(n))
		w.heads = binary.BigEndian.AppendUint32(w.heads, uint32(len(keys)))
		w.heads = binary.BigEndian.AppendUint32(w.heads, uint32(w.width))
		w.keys = append(w.keys, keys...)
		r += 1 + n
	}
}

func (w *dictWriter) strings(order []uint32, s *stringSet) {
	if len(order) == 0 {
		return
	}
	field := func(dst []byte, r int) []byte {
		v := s.at(order[r])
		return append(binary.BigEndian.AppendUint32(dst, uint32(len(v))), v...)
	}
	w.min, w.max = field(nil, 0), field(nil, len(order)-1)
	var first, offsets, keys []byte
	for r := 0; r < len(order); {
		first = field(first[:0], r)
		w.begin(first, r)
		offsets, keys = offsets[:0], keys[:0]
		n := 0
		for ; r+n+1 < len(order); n++ {
			if v := s.at(order[r+n+1]); 4+len(v) > w.limit-len(keys) || 4 > w.limit-len(offsets) {
				break
			}
			offsets = binary.BigEndian.AppendUint32(offsets, uint32(len(keys)))
			keys = field(keys, r+n+1)
		}
		w.heads = binary.BigEndian.AppendUint32(w.heads, uint32(n))
		w.heads = binary.BigEndian.AppendUint32(w.heads, uint32(len(offsets)))
		w.heads = binary.BigEndian.AppendUint32(w.heads, uint32(len(keys)))
		w.keys = append(append(w.keys, offsets...), keys...)
		r += 1 + n
	}
}

func (w *dictWriter) finish() []byte {
	out := binary.BigEndian.AppendUint32(nil, 13)
	out = append(out, version)
	out = binary.BigEndian.AppendUint32(out, w.chunks)
	out = binary.BigEndian.AppendUint32(out, uint32(len(w.offsets)))
	out = binary.BigEndian.AppendUint32(out, uint32(len(w.heads)))
	out = append(out, w.offsets...)
	out = append(out, w.heads...)
	return append(out, w.keys...)
}

// intSet numbers integers in the order of their first appearance: an open hash
// table of numbers+1, 0 being free, never more than half full.
type intSet struct {
	keys  []int64
	slots []uint32
	shift uint
}

func (s *intSet) init() { s.slots, s.shift = make([]uint32, 64), 64-6 }

func (s *intSet) number(x int64) uint32 {
	mask := uint64(len(s.slots) - 1)
	h := uint64(x) * 0x9e3779b97f4a7c15 >> s.shift
	for {
		switch n := s.slots[h]; {
		case n == 0:
			return s.insert(x, h)
		case s.keys[n-1] == x:
			return n - 1
		}
		h = (h + 1) & mask
	}
}

// numbers is number for many; equal neighbours are looked up once.
func (s *intSet) numbers(dst []uint32, v []int64) {
	dst = dst[:len(v)]
	for i, x := range v {
		if i > 0 && x == v[i-1] {
			dst[i] = dst[i-1]
			continue
		}
		dst[i] = s.number(x)
	}
}

func (s *intSet) insert(x int64, h uint64) uint32 {
	s.keys = append(s.keys, x)
	n := uint32(len(s.keys))
	s.slots[h] = n
	if 2*len(s.keys) > len(s.slots) {
		s.shift--
		s.slots = make([]uint32, 2*len(s.slots))
		mask := uint64(len(s.slots) - 1)
		for i, k := range s.keys {
			h := uint64(k) * 0x9e3779b97f4a7c15 >> s.shift
			for s.slots[h] != 0 {
				h = (h + 1) & mask
			}
			s.slots[h] = uint32(i + 1)
		}
	}
	return n - 1
}

// sorted returns the numbers in the order of their integers.
func (s *intSet) sorted() []uint32 {
	ps := make([]keyed, len(s.keys))
	for i, k := range s.keys {
		ps[i] = keyed{uint64(k) ^ 1<<63, uint32(i)}
	}
	return numbersOf(sortKeyed(ps))
}

// keyed is a number with what it is sorted by.
type keyed struct {
	key uint64
	n   uint32
}

func numbersOf(ps []keyed) []uint32 {
	out := make([]uint32, len(ps))
	for i, p := range ps {
		out[i] = p.n
	}
	return out
}

// sortKeyed sorts by key, byte by byte from the last on, leaving out bytes that
// all keys share. It may return another slice than ps.
func sortKeyed(ps []keyed) []keyed {
	if len(ps) < 256 {
		slices.SortFunc(ps, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
		return ps
	}
	var differ uint64
	for _, p := range ps {
		differ |= p.key ^ ps[0].key
	}
	to := make([]keyed, len(ps))
	for shift := 0; shift < 64; shift += 8 {
		if differ>>shift&0xff == 0 {
			continue
		}
		var at [256]int
		for _, p := range ps {
			at[p.key>>shift&0xff]++
		}
		sum := 0
		for i, n := range at {
			at[i], sum = sum, sum+n
		}
		for _, p := range ps {
			i := &at[p.key>>shift&0xff]
			to[*i] = p
			*i++
		}
		ps, to = to, ps
	}
	return ps
}

// stringSet is intSet for strings, whose bytes lie one behind the other in text.
type stringSet struct {
	text  []byte
	ends  []int
	slots []stringSlot
	seed  maphash.Seed
}

// stringSlot holds a part of the hash, so that other strings are rarely compared.
type stringSlot struct{ hash, n uint32 }

func (s *stringSet) init() { s.slots, s.seed = make([]stringSlot, 64), maphash.MakeSeed() }

func (s *stringSet) at(n uint32) []byte {
	from := 0
	if n > 0 {
		from = s.ends[n-1]
	}
	return s.text[from:s.ends[n]]
}

func (s *stringSet) number(x string) uint32 {
	h := maphash.String(s.seed, x)
	mask, tag := uint64(len(s.slots)-1), uint32(h>>32)
	for at := h & mask; ; at = (at + 1) & mask {
		switch sl := s.slots[at]; {
		case sl.n == 0:
			s.text = append(s.text, x...)
			s.ends = append(s.ends, len(s.text))
			n := uint32(len(s.ends))
			s.slots[at] = stringSlot{tag, n}
			if 2*len(s.ends) > len(s.slots) {
				s.grow()
			}
			return n - 1
		case sl.hash == tag && string(s.at(sl.n-1)) == x:
			return sl.n - 1
		}
	}
}

func (s *stringSet) grow() {
	s.slots = make([]stringSlot, 2*len(s.slots))
	mask := uint64(len(s.slots) - 1)
	for i := range s.ends {
		h := maphash.Bytes(s.seed, s.at(uint32(i)))
		at := h & mask
		for s.slots[at].n != 0 {
			at = (at + 1) & mask
		}
		s.slots[at] = stringSlot{uint32(h >> 32), uint32(i + 1)}
	}
}

// sorted returns the numbers in the order of the bytes of their strings: by the
// eight bytes after the prefix that all share, and where these are the same, by
// comparison.
func (s *stringSet) sorted() []uint32 {
	if len(s.ends) == 0 {
		return nil
	}
	prefix := s.at(0)
	for i := range s.ends {
		v := s.at(uint32(i))
		n := 0
		for n < len(prefix) && n < len(v) && prefix[n] == v[n] {
			n++
		}
		prefix = prefix[:n]
	}
	ps := make([]keyed, len(s.ends))
	for i := range ps {
		var b [8]byte
		copy(b[:], s.at(uint32(i))[len(prefix):])
		ps[i] = keyed{binary.BigEndian.Uint64(b[:]), uint32(i)}
	}
	ps = sortKeyed(ps)
	for from := 0; from < len(ps); {
		to := from + 1
		for to < len(ps) && ps[to].key == ps[from].key {
			to++
		}
		if to-from > 1 {
			slices.SortFunc(ps[from:to], func(a, b keyed) int { return bytes.Compare(s.at(a.n), s.at(b.n)) })
		}
		from = to
	}
	return numbersOf(ps)
}
