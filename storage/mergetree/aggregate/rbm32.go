package aggregate

import "encoding/binary"

// rbm32 unites bitmaps of 32-bit numbers in RoaringBitmap's portable form:
//
//	without runs: 12346 uint32 | containers uint32
//	with runs:    12347 uint16 | containers-1 uint16 | a bit per container: runs
//	per container: key uint16 | cardinality-1 uint16
//	per container, where there are four or none has runs: offset uint32
//	the containers
//
// Source: RoaringFormatSpec; FieldRoaringBitmap32Agg.java.
var rbm32 = Function{Name: "rbm32", Takes: varbinary, New: newUnion("rbm32", unionBitmap32)}

const (
	cookiePlain  = 12346
	cookieRuns   = 12347
	fewNoOffsets = 4
)

type bitmap32 struct {
	keys       []uint16
	containers []container
}

func unionBitmap32(acc, x []byte) ([]byte, error) {
	a, ok := readBitmap32(acc)
	if !ok {
		return nil, damaged("roaring bitmap of 32-bit numbers")
	}
	b, ok := readBitmap32(x)
	if !ok {
		return nil, damaged("roaring bitmap of 32-bit numbers")
	}
	var u bitmap32
	i, j := 0, 0
	for i < len(a.keys) || j < len(b.keys) {
		switch {
		case j == len(b.keys) || i < len(a.keys) && a.keys[i] < b.keys[j]:
			u.put(a.keys[i], a.containers[i])
			i++
		case i == len(a.keys) || b.keys[j] < a.keys[i]:
			u.put(b.keys[j], b.containers[j])
			j++
		default:
			a.containers[i].or(&b.containers[j])
			u.put(a.keys[i], a.containers[i])
			i, j = i+1, j+1
		}
	}
	return u.append(nil), nil
}

func (m *bitmap32) put(key uint16, c container) {
	m.keys, m.containers = append(m.keys, key), append(m.containers, c)
}

func readBitmap32(b []byte) (m bitmap32, ok bool) {
	r := &bytesReader{b: b}
	cookie := r.u32()
	n := 0
	var runs []byte
	switch {
	case cookie == cookiePlain:
		n = int(r.u32())
	case cookie&0xffff == cookieRuns:
		n = int(cookie>>16) + 1
		runs = r.next((n + 7) / 8)
	default:
		return m, false
	}
	if r.short || n < 0 || n > 1<<16 {
		return m, false
	}
	head := r.next(4 * n)
	if runs == nil || n >= fewNoOffsets {
		r.next(4 * n) // offsets: the containers lie one behind the other
	}
	if r.short {
		return m, false
	}
	last := -1
	for i := range n {
		key := binary.LittleEndian.Uint16(head[4*i:])
		card := int(binary.LittleEndian.Uint16(head[4*i+2:])) + 1
		if int(key) <= last {
			return m, false
		}
		last = int(key)
		form := formArray
		switch {
		case runs != nil && runs[i>>3]>>(i&7)&1 != 0:
			form = formRuns
		case card > maxArray:
			form = formBitmap
		}
		c, ok := readContainer(r, form, card)
		if !ok {
			return m, false
		}
		if n, _ := c.size(); n > 0 { // what is empty is not written
			m.put(key, c)
		}
	}
	return m, true
}

func (m *bitmap32) append(dst []byte) []byte {
	n := len(m.keys)
	forms, cards, runs := make([]int, n), make([]int, n), make([]int, n)
	some := false
	for i := range m.containers {
		forms[i], cards[i], runs[i] = m.containers[i].form()
		some = some || forms[i] == formRuns
	}
	if some {
		dst = binary.LittleEndian.AppendUint32(dst, cookieRuns|uint32(n-1)<<16)
		at := len(dst)
		dst = append(dst, make([]byte, (n+7)/8)...)
		for i, f := range forms {
			if f == formRuns {
				dst[at+i>>3] |= 1 << (i & 7)
			}
		}
	} else {
		dst = binary.LittleEndian.AppendUint32(dst, cookiePlain)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	}
	for i, k := range m.keys {
		dst = binary.LittleEndian.AppendUint16(dst, k)
		dst = binary.LittleEndian.AppendUint16(dst, uint16(cards[i]-1))
	}
	offsets := -1
	if !some || n >= fewNoOffsets {
		offsets = len(dst)
		dst = append(dst, make([]byte, 4*n)...)
	}
	for i := range m.containers {
		if offsets >= 0 {
			binary.LittleEndian.PutUint32(dst[offsets+4*i:], uint32(len(dst)))
		}
		dst = m.containers[i].append(dst, forms[i], runs[i])
	}
	return dst
}
