package aggregate

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// hll_sketch unites HyperLogLog sketches of Apache DataSketches. A sketch of few
// values is a list or a hash set of coupons, each a slot in the lower 26 bits and a
// value in the upper 6; one of many has 2^k registers with the greatest value of
// each slot, in 4, 6 or 8 bits. Words are little-endian:
//
//	preamble ints uint8 (2 list, 3 set, 10 registers) | version 1 | family 7 | k uint8
//	lg of table uint8 | flags uint8 | count of a list, or least value uint8 | mode
//	  uint8: 0 list, 1 set, 2 registers, plus 0, 4 or 8 for 4, 6 or 8 bits
//	list: coupons uint32
//	set: count uint32, coupons
//	registers: hip float64 | kxq0 float64 | kxq1 float64 | registers at the least
//	  value uint32 | count of exceptions uint32 | registers | exceptions, coupons
//
// Four-bit registers hold the value above the least one, 15 for those that are
// among the exceptions. Results have them; they say again what is in the order of
// tables, so those are Java's.
//
// Source: Union.java, CouponList.java, CouponHashSet.java, HllArray.java,
// Conversions.java, HeapAuxHashMap.java of DataSketches 4.2; HllSketchUtil.java.
var hllSketch = Function{Name: "hll_sketch", Takes: varbinary, New: newUnion("hll_sketch", unionHLL)}

const (
	hllList = iota
	hllSet
	hllRegisters
)

const (
	hllEmptyFlag   = 4
	hllCompactFlag = 8
	hllLateFlag    = 16 // "out of order": hip does not hold
	hllRebuildFlag = 32
	hllSlotMask    = 1<<26 - 1
	hllHeader      = 40
)

// hll is a sketch in memory, its registers in 8 bits.
type hll struct {
	k    int
	mode int
	bits int // 4, 6 or 8 as stored
	// List and set: a table, 0 = free, and its coupons.
	table []uint32
	count int
	// Registers.
	regs       []uint8
	late       bool
	rebuild    bool
	least      int
	atLeast    int
	hip        float64
	kxq0, kxq1 float64
}

// unionHLL is Java's: the newer sketch makes the union, into which what was
// accumulated comes; so the newer one limits the number of slots.
func unionHLL(acc, x []byte) ([]byte, error) {
	a, ok := readHLL(acc)
	if !ok {
		return nil, damaged("HLL sketch")
	}
	b, ok := readHLL(x)
	if !ok {
		return nil, damaged("HLL sketch")
	}
	if a.mode == hllRegisters && a.bits == 8 {
		a.rebuildCounts()
	}
	u := newHLL(b.k)
	u = u.union(b, b.k)
	u = u.union(a, b.k)
	u.rebuildCounts()
	return u.append(nil), nil
}

func newHLL(k int) *hll { return &hll{k: k, bits: 8, table: make([]uint32, 8)} }

func (h *hll) lgTable() int { return bits.TrailingZeros(uint(len(h.table))) }

// union puts s into h, which is given up; s is left alone or becomes the result.
func (h *hll) union(s *hll, maxK int) *hll {
	empty := h.mode != hllRegisters && h.count == 0
	switch s.mode {
	case hllList, hllSet:
		if s.count == 0 {
			return h
		}
		if s.mode == hllSet && empty && s.k == h.k {
			s.bits = 8
			return s
		}
		return s.couponsInto(h)
	}
	switch {
	case empty && s.k <= maxK:
		return s.as8()
	case empty:
		return s.fold(maxK)
	case h.mode != hllRegisters && s.k <= maxK:
		return h.couponsInto(s.as8())
	case h.mode != hllRegisters:
		return h.couponsInto(s.fold(maxK))
	}
	if s.k < h.k {
		h = h.fold(s.k)
	}
	mask := len(h.regs) - 1
	for i, v := range s.regs {
		h.regs[i&mask] = max(h.regs[i&mask], v)
	}
	h.rebuild, h.late, h.hip = true, true, 0
	return h
}

// couponsInto puts the coupons of h into t.
func (h *hll) couponsInto(t *hll) *hll {
	for _, c := range h.table {
		if c>>26 != 0 {
			t = t.update(c)
		}
	}
	return t
}

// update puts a coupon in; the sketch may get another form by it.
func (h *hll) update(c uint32) *hll {
	switch h.mode {
	case hllList:
		for i, x := range h.table {
			if x == c {
				return h
			}
			if x == 0 {
				h.table[i] = c
				h.count++
				break
			}
		}
		switch {
		case h.count < len(h.table):
			return h
		case h.k < 8:
			return h.toRegisters()
		}
		set := &hll{k: h.k, bits: h.bits, mode: hllSet, table: make([]uint32, 32)}
		for _, x := range h.table {
			set = set.update(x)
		}
		return set
	case hllSet:
		i, found := probe(h.table, c)
		if found {
			return h
		}
		h.table[i] = c
		h.count++
		if 4*h.count > 3*len(h.table) {
			if h.lgTable() == h.k-3 {
				return h.toRegisters()
			}
			old := h.table
			h.table = make([]uint32, 2*len(old))
			for _, x := range old {
				if x != 0 {
					i, _ := probe(h.table, x)
					h.table[i] = x
				}
			}
		}
		return h
	}
	h.set(int(c)&(len(h.regs)-1), uint8(c>>26))
	return h
}

// probe finds a coupon in the open hash table of a set, or the free place for it.
func probe(table []uint32, c uint32) (at int, found bool) {
	last := uint32(len(table) - 1)
	step := (c&hllSlotMask)>>bits.TrailingZeros(uint(len(table))) | 1
	p := c & last
	for range table {
		x := table[p]
		if x == 0 {
			return int(p), false
		}
		if x == c {
			return int(p), true
		}
		p = (p + step) & last
	}
	return 0, true // full: the readers and growing see to it that none is
}

func newRegisters(k int) *hll {
	n := 1 << k
	return &hll{k: k, mode: hllRegisters, bits: 8, regs: make([]uint8, n), atLeast: n, kxq0: float64(n)}
}

// toRegisters makes registers of coupons.
func (h *hll) toRegisters() *hll {
	out := newRegisters(h.k)
	h.couponsInto(out)
	out.hip = couponEstimate(h.count)
	return out
}

// set raises a register to v.
func (h *hll) set(slot int, v uint8) {
	old := h.regs[slot]
	if v <= old {
		return
	}
	h.regs[slot] = v
	h.hip += float64(len(h.regs)) / (h.kxq0 + h.kxq1)
	h.weigh(old, v)
	if old == 0 {
		h.atLeast--
	}
}

// weigh exchanges a register's share of the sums of 2^-value.
func (h *hll) weigh(old, v uint8) {
	if old < 32 {
		h.kxq0 -= math.Ldexp(1, -int(old))
	} else {
		h.kxq1 -= math.Ldexp(1, -int(old))
	}
	if v < 32 {
		h.kxq0 += math.Ldexp(1, -int(v))
	} else {
		h.kxq1 += math.Ldexp(1, -int(v))
	}
}

// as8 returns the sketch as its copy with 8 bits would be.
func (h *hll) as8() *hll {
	if h.bits == 8 {
		return h
	}
	out := h.fold(h.k)
	out.hip = h.hip
	return out
}

// fold makes registers of 2^k slots.
func (h *hll) fold(k int) *hll {
	out := newRegisters(k)
	for i, v := range h.regs {
		if v != 0 {
			out.set(i&(len(out.regs)-1), v)
		}
	}
	out.hip, out.late = h.hip, h.late
	if h.late {
		out.hip = 0
	}
	return out
}

// rebuildCounts computes what a union left undone.
func (h *hll) rebuildCounts() {
	if h.mode != hllRegisters || !h.rebuild {
		return
	}
	h.least, h.atLeast = 64, 0
	h.kxq0, h.kxq1 = float64(len(h.regs)), 0
	for _, v := range h.regs {
		switch {
		case v == 0:
		case v < 32:
			h.kxq0 += math.Ldexp(1, -int(v)) - 1
		default:
			h.kxq1 += math.Ldexp(1, -int(v)) - 1
		}
		switch {
		case int(v) < h.least:
			h.least, h.atLeast = int(v), 1
		case int(v) == h.least:
			h.atLeast++
		}
	}
	h.rebuild = false
}

// couponEstimate estimates how many values made n coupons: a cubic through the
// four points around n of a table that the library computed.
func couponEstimate(n int) float64 {
	x := float64(n)
	i := 0
	for couponX[i+1] <= x {
		i++
	}
	i = max(i-1, 0)
	px, py := couponX[i:i+4], couponY[i:i+4]
	sum := 0.0
	for j := range 4 {
		num, den := 1.0, 1.0
		for m := range 4 {
			if m != j {
				num *= x - px[m]
				den *= px[j] - px[m]
			}
		}
		sum += py[j] * num / den
	}
	return max(sum, x)
}

// Source: CouponMapping.java; a set has at most 3/4 of 2^18 coupons.
var (
	couponX = []float64{0, 1, 20, 400, 8000, 160000, 300000, 600000, 900000}
	couponY = []float64{
		0, 1, 20.0000009437402611, 400.0003963713384110, 8000.1589294602090376,
		160063.6067763759638183, 300223.7071597663452849, 600895.5933856170158833, 902016.8065120954997838,
	}
)

func readHLL(b []byte) (*hll, bool) {
	if len(b) < 8 {
		return nil, false
	}
	ints, k, lg, flags, mode := b[0], int(b[3]), int(b[4]), b[5], int(b[7]&3)
	h := &hll{k: k, mode: mode, bits: []int{4, 6, 8, 0}[b[7]>>2&3]}
	if b[1] != 1 || b[2] != 7 || k < 4 || k > 21 || h.bits == 0 || mode > hllRegisters || ints != []byte{2, 3, 10}[mode] || len(b) < 4*int(ints) {
		return nil, false
	}
	compact := flags&hllCompactFlag != 0
	switch mode {
	case hllList:
		n := int(b[6])
		if n > 8 || len(b) < 8+4*n {
			return nil, false
		}
		h.table = make([]uint32, 8)
		for i := range n {
			h.table[i] = binary.LittleEndian.Uint32(b[8+4*i:])
			if h.table[i] == 0 {
				return nil, false
			}
		}
		h.count = n
		return h, n < 8
	case hllSet:
		n := int(binary.LittleEndian.Uint32(b[8:]))
		b = b[12:]
		if k < 8 || n > 3<<(k-3)/4 {
			return nil, false
		}
		if !compact {
			if lg < 5 || lg > k-3 || len(b) < 4<<lg || 4*n > 3<<lg {
				return nil, false
			}
			h.table = make([]uint32, 1<<lg)
			for i := range h.table {
				if h.table[i] = binary.LittleEndian.Uint32(b[4*i:]); h.table[i] != 0 {
					h.count++
				}
			}
			return h, h.count == n
		}
		if n > len(b)/4 {
			return nil, false
		}
		h.table = make([]uint32, 32)
		for i := range n {
			c := binary.LittleEndian.Uint32(b[4*i:])
			if c == 0 || h.update(c) != h {
				return nil, false
			}
		}
		return h, h.count == n
	}
	return h, h.readRegisters(b, lg, flags)
}

func (h *hll) readRegisters(b []byte, lg int, flags byte) bool {
	n := 1 << h.k
	size := map[int]int{4: n / 2, 6: n*3/4 + 1, 8: n}[h.bits]
	if len(b) < hllHeader+size {
		return false
	}
	float := func(at int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b[at:])) }
	h.late, h.rebuild = flags&hllLateFlag != 0, flags&hllRebuildFlag != 0
	h.least, h.hip, h.kxq0, h.kxq1 = int(b[6]), float(8), float(16), float(24)
	h.atLeast = int(binary.LittleEndian.Uint32(b[32:]))
	h.regs = make([]uint8, n)
	data := b[hllHeader : hllHeader+size]
	switch h.bits {
	case 8:
		for i, v := range data {
			h.regs[i] = v & 63
		}
		return true
	case 6:
		for i := range h.regs {
			at := 6 * i
			h.regs[i] = uint8(binary.LittleEndian.Uint16(data[at>>3:])>>(at&7)) & 63
		}
		return true
	}
	exceptions := 0
	for i := range h.regs {
		v := data[i>>1] >> (4 * (i & 1)) & 15
		if v == 15 {
			exceptions++
			continue
		}
		if h.least+int(v) > 63 {
			return false
		}
		h.regs[i] = uint8(h.least) + v
	}
	// The exceptions: a list, or a table with free places.
	places := int(binary.LittleEndian.Uint32(b[36:]))
	if places != exceptions {
		return false
	}
	rest := b[hllHeader+size:]
	if flags&hllCompactFlag == 0 && places > 0 {
		if lg > h.k {
			return false
		}
		places = 1 << lg
	}
	if places > len(rest)/4 {
		return false
	}
	for i := range places {
		c := binary.LittleEndian.Uint32(rest[4*i:])
		if c == 0 {
			continue
		}
		slot := int(c) & (n - 1)
		if data[slot>>1]>>(4*(slot&1))&15 != 15 || h.regs[slot] != 0 || c>>26 == 0 {
			return false
		}
		h.regs[slot] = uint8(c >> 26)
		exceptions--
	}
	return exceptions == 0
}

// append writes the sketch, compact and with 4 bits.
func (h *hll) append(dst []byte) []byte {
	switch h.mode {
	case hllList, hllSet:
		flags := byte(hllCompactFlag)
		if h.count == 0 {
			flags |= hllEmptyFlag
		}
		dst = append(dst, 2+byte(h.mode), 1, 7, byte(h.k), byte(h.lgTable()), flags, 0, byte(h.mode))
		if h.mode == hllList {
			dst[len(dst)-2] = byte(h.count)
		} else {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(h.count))
		}
		for _, c := range h.table {
			if c != 0 {
				dst = binary.LittleEndian.AppendUint32(dst, c)
			}
		}
		return dst
	}
	least, atLeast := 64, 0
	for _, v := range h.regs {
		switch {
		case int(v) < least:
			least, atLeast = int(v), 1
		case int(v) == least:
			atLeast++
		}
	}
	sums := newRegisters(h.k)
	nibbles := make([]byte, len(h.regs)/2)
	var aux exceptionTable
	for i, v := range h.regs {
		if v == 0 {
			continue
		}
		sums.weigh(0, v)
		x := min(int(v)-least, 15)
		if x == 15 {
			aux.add(uint32(i), v, h.k)
		}
		nibbles[i>>1] |= byte(x) << (4 * (i & 1))
	}
	flags := byte(hllCompactFlag)
	if h.late {
		flags |= hllLateFlag
	}
	dst = append(dst, 10, 1, 7, byte(h.k), byte(aux.lg()), flags, byte(least), hllRegisters)
	for _, f := range [3]float64{h.hip, sums.kxq0, sums.kxq1} {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(f))
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(atLeast))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(aux.count))
	dst = append(dst, nibbles...)
	for _, c := range aux.table {
		if c != 0 {
			dst = binary.LittleEndian.AppendUint32(dst, c)
		}
	}
	return dst
}

// exceptionTable is the open hash table of slots whose values do not fit 4 bits:
// its order is that in which they are written.
type exceptionTable struct {
	table []uint32
	count int
}

func (t *exceptionTable) lg() int {
	if t.table == nil {
		return 0
	}
	return bits.TrailingZeros(uint(len(t.table)))
}

func (t *exceptionTable) add(slot uint32, v uint8, k int) {
	if t.table == nil {
		t.table = make([]uint32, 1<<lgExceptions[k])
	}
	t.put(uint32(v)<<26|slot, k)
	t.count++
	if 4*t.count > 3*len(t.table) {
		old := t.table
		t.table = make([]uint32, 2*len(old))
		for _, c := range old {
			if c != 0 {
				t.put(c, k)
			}
		}
	}
}

// put stores an entry in the first free place; its slot is in none.
func (t *exceptionTable) put(c uint32, k int) {
	slot := c & (1<<k - 1)
	last := uint32(len(t.table) - 1)
	step := slot>>t.lg() | 1
	p := slot & last
	for t.table[p] != 0 {
		p = (p + step) & last
	}
	t.table[p] = c
}

// lgExceptions is the lg of the table that Java begins with, by k.
var lgExceptions = [22]int{0, 2, 2, 2, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 11, 12, 13}
