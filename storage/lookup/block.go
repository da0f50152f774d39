package lookup

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
)

// A block holds up to some kilobytes of entries in key order. All integers are
// little-endian:
//
//	entries uint32 | flags uint8 | width of seq uint8 | width of pos uint8 | 0 uint8
//	prefix length uint16 | suffix length uint16 (fixed ones) | row length uint32 (fixed ones)
//	least seq int64 | first pos int64
//	prefix: bytes that all keys begin with
//	suffix ends, uint32 per entry, unless suffixes are of one length
//	suffixes
//	seq - least seq, width 0, 1, 2, 4 or 8 per entry
//	pos - first pos, likewise; width 0: the positions follow each other
//	kinds, uint8 per entry, where there are any but +I
//	row ends, uint32 per entry, unless rows are of one length; rows, if there are any
//
// Ends count from the start of the suffixes and of the rows. A lookup is a binary
// search in memory: nothing is decoded but what was found.
const blockHead = 32

const (
	flagRows    = 1 << iota // there are rows
	flagKinds               // there are kinds
	flagFixKey              // suffixes are of one length
	flagFixRow              // rows are of one length
	knownFlags  = flagRows | flagKinds | flagFixKey | flagFixRow
	maxPrefix   = math.MaxUint16
	maxFixedKey = math.MaxUint16
)

var errBlock = errors.New("block does not hold together")

// block is a parsed block: where its parts are. It aliases the bytes it was made
// of.
type block struct {
	n          int
	flags      uint8
	seqW, posW uint8
	fixKey     int
	fixRow     int
	seq0, pos0 int64
	prefix     []byte
	keyEnds    []byte
	keys       []byte
	seqs       []byte
	poss       []byte
	kinds      []byte
	rowEnds    []byte
	rows       []byte
}

// parseBlock finds the parts of a block. It checks what it would read beyond;
// ends are checked where they are used.
func parseBlock(b []byte) (x block, err error) {
	if len(b) < blockHead {
		return x, errBlock
	}
	n := binary.LittleEndian.Uint32(b)
	x.flags, x.seqW, x.posW = b[4], b[5], b[6]
	prefix := int(binary.LittleEndian.Uint16(b[8:]))
	x.fixKey = int(binary.LittleEndian.Uint16(b[10:]))
	fixRow := binary.LittleEndian.Uint32(b[12:])
	x.seq0, x.pos0 = int64(binary.LittleEndian.Uint64(b[16:])), int64(binary.LittleEndian.Uint64(b[24:]))
	if int64(n) > int64(len(b)) && (x.seqW|x.posW != 0 || x.flags&(flagFixKey|flagFixRow) != flagFixKey|flagFixRow) || x.flags&^uint8(knownFlags) != 0 || n > math.MaxInt32 || fixRow > math.MaxInt32 || !isWidth(x.seqW) || !isWidth(x.posW) {
		return x, errBlock
	}
	x.n, x.fixRow = int(n), int(fixRow)
	rest := b[blockHead:]
	ok := true
	cut := func(size int) []byte {
		if size < 0 || size > len(rest) {
			ok = false
			return nil
		}
		out := rest[:size:size]
		rest = rest[size:]
		return out
	}
	x.prefix = cut(prefix)
	if x.flags&flagFixKey != 0 {
		x.keys = cut(x.n * x.fixKey)
	} else {
		x.keyEnds = cut(4 * x.n)
		if ok && x.n > 0 {
			x.keys = cut(int(binary.LittleEndian.Uint32(x.keyEnds[4*x.n-4:])))
		}
	}
	x.seqs = cut(x.n * int(x.seqW))
	x.poss = cut(x.n * int(x.posW))
	if x.flags&flagKinds != 0 {
		x.kinds = cut(x.n)
	}
	if x.flags&flagRows != 0 {
		if x.flags&flagFixRow != 0 {
			x.rows = cut(x.n * x.fixRow)
		} else {
			x.rowEnds = cut(4 * x.n)
			if ok && x.n > 0 {
				x.rows = cut(int(binary.LittleEndian.Uint32(x.rowEnds[4*x.n-4:])))
			}
		}
	}
	if !ok || len(rest) > 0 {
		return x, errBlock
	}
	return x, nil
}

func isWidth(w uint8) bool { return w == 0 || w == 1 || w == 2 || w == 4 || w == 8 }

// piece returns entry i of parts that end at ends, or are fix bytes each; nil when
// the ends are damaged.
func piece(b, ends []byte, fix, i int) []byte {
	if ends == nil {
		return b[i*fix : i*fix+fix : i*fix+fix]
	}
	from, to := uint32(0), binary.LittleEndian.Uint32(ends[4*i:])
	if i > 0 {
		from = binary.LittleEndian.Uint32(ends[4*i-4:])
	}
	if from > to || int64(to) > int64(len(b)) {
		return nil
	}
	return b[from:to:to]
}

// suffix returns the key of entry i behind the prefix.
func (x *block) suffix(i int) []byte { return piece(x.keys, x.keyEnds, x.fixKey, i) }

func number(b []byte, w uint8, i int) uint64 {
	switch w {
	case 1:
		return uint64(b[i])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b[2*i:]))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b[4*i:]))
	case 8:
		return binary.LittleEndian.Uint64(b[8*i:])
	}
	return 0
}

// at returns entry i.
func (x *block) at(i int, f *Found) error {
	f.Seq = x.seq0 + int64(number(x.seqs, x.seqW, i))
	f.Pos = x.pos0 + int64(number(x.poss, x.posW, i))
	if x.posW == 0 {
		f.Pos = x.pos0 + int64(i)
	}
	f.Kind = 0
	if x.kinds != nil {
		f.Kind = x.kinds[i]
	}
	f.Row = nil
	if x.flags&flagRows != 0 {
		if f.Row = piece(x.rows, x.rowEnds, x.fixRow, i); f.Row == nil {
			return errBlock
		}
	}
	return nil
}

// search returns the first entry at or after from whose key is not below key, and
// whether it is key.
func (x *block) search(key []byte, from int) (int, bool) {
	if p := x.prefix; len(p) > 0 {
		if len(key) < len(p) || !bytes.Equal(key[:len(p)], p) {
			if bytes.Compare(key, p) < 0 {
				return from, false
			}
			return x.n, false
		}
		key = key[len(p):]
	}
	lo, hi := from, x.n
	if x.fixKey == 8 && x.keyEnds == nil && len(key) == 8 {
		k := binary.BigEndian.Uint64(key)
		for lo < hi {
			mid := int(uint(lo+hi) >> 1)
			if binary.BigEndian.Uint64(x.keys[8*mid:]) < k {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		return lo, lo < x.n && binary.BigEndian.Uint64(x.keys[8*lo:]) == k
	}
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if bytes.Compare(x.suffix(mid), key) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < x.n && bytes.Equal(x.suffix(lo), key)
}

// entries are what a block is made of.
type entries struct {
	keys    []byte
	keyEnds []uint32
	seqs    []int64
	poss    []int64
	kinds   []uint8
	rows    []byte
	rowEnds []uint32
}

func (e *entries) reset() {
	e.keys, e.keyEnds, e.seqs, e.poss, e.kinds = e.keys[:0], e.keyEnds[:0], e.seqs[:0], e.poss[:0], e.kinds[:0]
	e.rows, e.rowEnds = e.rows[:0], e.rowEnds[:0]
}

func (e *entries) key(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = e.keyEnds[i-1]
	}
	return e.keys[from:e.keyEnds[i]]
}

// size is about what the block will have.
func (e *entries) size() int { return blockHead + len(e.keys) + len(e.rows) + 6*len(e.seqs) }

// commonPrefix returns how many bytes a and b begin with alike.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// encode appends the block of e to dst.
func (e *entries) encode(dst []byte, rows bool) []byte {
	n := len(e.seqs)
	prefix := min(commonPrefix(e.key(0), e.key(n-1)), maxPrefix)
	flags := uint8(flagFixKey)
	fixKey := len(e.key(0)) - prefix
	for i := range n {
		if len(e.key(i))-prefix != fixKey || fixKey > maxFixedKey {
			flags &^= flagFixKey
			fixKey = 0
			break
		}
	}
	least, most := e.seqs[0], e.seqs[0]
	inRow, posMost := true, int64(0)
	for i := range n {
		least, most = min(least, e.seqs[i]), max(most, e.seqs[i])
		d := e.poss[i] - e.poss[0]
		inRow = inRow && d == int64(i)
		if d < 0 {
			posMost = math.MaxInt64
		}
		posMost = max(posMost, d)
	}
	seqW, posW := widthOf(uint64(most)-uint64(least)), widthOf(uint64(posMost))
	if inRow {
		posW = 0
	} else if posW == 0 {
		posW = 1
	}
	for _, k := range e.kinds {
		if k != 0 {
			flags |= flagKinds
			break
		}
	}
	fixRow := 0
	if rows {
		flags |= flagRows | flagFixRow
		fixRow = int(e.rowEnds[0])
		for i := range n {
			if e.rowEnds[i] != uint32((i+1)*fixRow) {
				flags &^= flagFixRow
				fixRow = 0
				break
			}
		}
	}
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, uint32(n))
	dst = append(dst, flags, seqW, posW, 0)
	dst = le.AppendUint16(dst, uint16(prefix))
	dst = le.AppendUint16(dst, uint16(fixKey))
	dst = le.AppendUint32(dst, uint32(fixRow))
	dst = le.AppendUint64(dst, uint64(least))
	dst = le.AppendUint64(dst, uint64(e.poss[0]))
	dst = append(dst, e.key(0)[:prefix]...)
	if flags&flagFixKey == 0 {
		for i := range n {
			dst = le.AppendUint32(dst, e.keyEnds[i]-uint32((i+1)*prefix))
		}
	}
	for i := range n {
		dst = append(dst, e.key(i)[prefix:]...)
	}
	for _, s := range e.seqs {
		dst = appendNumber(dst, seqW, uint64(s)-uint64(least))
	}
	for _, p := range e.poss {
		dst = appendNumber(dst, posW, uint64(p)-uint64(e.poss[0]))
	}
	if flags&flagKinds != 0 {
		dst = append(dst, e.kinds...)
	}
	if rows {
		if flags&flagFixRow == 0 {
			for _, x := range e.rowEnds {
				dst = le.AppendUint32(dst, x)
			}
		}
		dst = append(dst, e.rows...)
	}
	return dst
}

func widthOf(v uint64) uint8 {
	switch {
	case v == 0:
		return 0
	case v < 1<<8:
		return 1
	case v < 1<<16:
		return 2
	case v < 1<<32:
		return 4
	}
	return 8
}

func appendNumber(dst []byte, w uint8, v uint64) []byte {
	switch w {
	case 0:
		return dst
	case 1:
		return append(dst, byte(v))
	case 2:
		return binary.LittleEndian.AppendUint16(dst, uint16(v))
	case 4:
		return binary.LittleEndian.AppendUint32(dst, uint32(v))
	}
	return binary.LittleEndian.AppendUint64(dst, v)
}
