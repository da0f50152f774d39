package table

import (
	"math"
	"math/bits"

	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// distinctCount counts distinct values by their 64-bit hashes: exactly while there
// are at most distinctExact of them, in an open table, and from there on by
// HyperLogLog with 2^14 registers of one byte, whose standard error is 0.8 %. The
// estimate is the improved raw one, which needs no corrections by measurement and
// is continuous where linear counting would be left.
//
// Source: O. Ertl, New cardinality estimation algorithms for HyperLogLog sketches,
// 2017, algorithm 6.
//
// The zero value is ready. Not safe for concurrent use.
type distinctCount struct {
	table []uint64 // 0 = free; nil with regs
	n     int      // values in table
	zero  bool     // the hash 0 was seen, which table cannot hold
	regs  []uint8  // by the first distinctBits of a hash: 1 + zeros that follow
}

const (
	distinctExact = 4096
	distinctBits  = 14
	distinctRest  = 64 - distinctBits
)

// addAll adds the hashes of rows that are not NULL; valid and off as vec.Validity
// returns them.
func (d *distinctCount) addAll(hashes []uint64, valid []byte, off int) {
	for i, h := range hashes {
		if !vec.BitAt(valid, off+i) {
			continue
		}
		if d.regs == nil {
			d.add(h)
			continue
		}
		h = vec.HashU64(h, 0)
		k := h >> distinctRest
		if v := uint8(bits.LeadingZeros64(h<<distinctBits|1<<(distinctBits-1))) + 1; v > d.regs[k] {
			d.regs[k] = v
		}
	}
}

// add adds one hash.
func (d *distinctCount) add(h uint64) {
	if d.regs == nil {
		d.insert(h)
		return
	}
	d.register(h)
}

func (d *distinctCount) register(h uint64) {
	h = vec.HashU64(h, 0)
	k := h >> distinctRest
	d.regs[k] = max(d.regs[k], uint8(bits.LeadingZeros64(h<<distinctBits|1<<(distinctBits-1)))+1)
}

// insert puts a hash into the table, which grows to twice distinctExact and is then
// given up for registers.
func (d *distinctCount) insert(h uint64) {
	if h == 0 {
		d.zero = true
		return
	}
	if 2*d.n >= len(d.table) {
		if d.n >= distinctExact {
			d.spread()
			d.register(h)
			return
		}
		old := d.table
		d.table, d.n = make([]uint64, max(64, 2*len(old))), 0
		for _, x := range old {
			if x != 0 {
				d.insert(x)
			}
		}
	}
	mask := uint64(len(d.table) - 1)
	for i := vec.HashU64(h, 0) & mask; ; i = (i + 1) & mask {
		switch d.table[i] {
		case h:
			return
		case 0:
			d.table[i] = h
			d.n++
			return
		}
	}
}

// spread goes over to registers.
func (d *distinctCount) spread() {
	if d.regs != nil {
		return
	}
	d.regs = make([]uint8, 1<<distinctBits)
	for _, x := range d.table {
		if x != 0 {
			d.register(x)
		}
	}
	if d.zero {
		d.register(0)
	}
	d.table = nil
}

// merge adds what o has seen.
func (d *distinctCount) merge(o *distinctCount) {
	if o.regs == nil {
		if o.zero {
			d.add(0)
		}
		for _, x := range o.table {
			if x != 0 {
				d.add(x)
			}
		}
		return
	}
	d.spread()
	for i, v := range o.regs {
		d.regs[i] = max(d.regs[i], v)
	}
}

// bytes is the memory that d takes.
func (d *distinctCount) bytes() int64 { return int64(8*len(d.table) + len(d.regs)) }

// count is the number of distinct values, estimated unless there are few.
func (d *distinctCount) count() int64 {
	if d.regs == nil {
		n := int64(d.n)
		if d.zero {
			n++
		}
		return n
	}
	const m = 1 << distinctBits
	var of [distinctRest + 2]int // registers by value
	for _, v := range d.regs {
		of[min(int(v), distinctRest+1)]++
	}
	z := m * hllTau(1-float64(of[distinctRest+1])/m)
	for k := distinctRest; k >= 1; k-- {
		z = 0.5 * (z + float64(of[k]))
	}
	z += m * hllSigma(float64(of[0])/m)
	return int64(math.Round(m / (2 * math.Ln2) * m / z))
}

func hllSigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	y, z := 1.0, x
	for {
		x *= x
		before := z
		z += x * y
		y += y
		if z == before {
			return z
		}
	}
}

func hllTau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	y, z := 1.0, 1-x
	for {
		x = math.Sqrt(x)
		before := z
		y *= 0.5
		z -= (1 - x) * (1 - x) * y
		if z == before {
			return z / 3
		}
	}
}
