package vec

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
)

// Span is rows [From, From+N) of source Src; -1 stands for N rows that are patched
// all.
type Span struct{ Src, From, N int32 }

// Splice builds a column of n rows from spans of sources, one behind the other,
// and then puts row row[i] of srcs[src[i]] over row pos[i], ascending. It is Gather
// for results that are long stretches of few sources: stretches are copied whole.
// Types of sources may mix as with Gather; dictionaries that differ become one when
// they are small.
func Splice(dt arrow.DataType, srcs []arrow.Array, spans []Span, n int, pos []uint32, src []uint16, row []uint32) arrow.Array {
	dt, srcs = unify(dt, srcs)
	s := splicer{srcs: srcs, spans: spans, n: n, pos: pos, src: src, row: row}
	if n == 0 {
		return MakeNull(Plain(dt), 0)
	}
	if dt.ID() == arrow.DICTIONARY {
		if out := s.dict(); out != nil {
			return out
		}
		dt = Plain(dt)
	}
	switch dt.ID() {
	case arrow.STRING, arrow.BINARY:
		return s.bytes(dt)
	case arrow.STRUCT:
		t := dt.(*arrow.StructType)
		ch := make([]arrow.Array, t.NumFields())
		sub := make([]arrow.Array, len(srcs))
		for c := range ch {
			for i, a := range srcs {
				sub[i] = nil
				if a != nil {
					sub[i] = a.(*array.Struct).Field(c)
				}
			}
			ch[c] = Splice(t.Field(c).Type, sub, spans, n, pos, src, row)
		}
		return MakeStruct(structType(t, ch), n, ch, s.valid())
	}
	switch fixedWidth(dt) {
	case 1:
		return spliceFixed[uint8](&s, dt)
	case 2:
		return spliceFixed[uint16](&s, dt)
	case 4:
		return spliceFixed[uint32](&s, dt)
	case 8:
		return spliceFixed[uint64](&s, dt)
	case 12:
		return spliceFixed[b12](&s, dt)
	case 16:
		return spliceFixed[b16](&s, dt)
	}
	from, rows := s.flat()
	return Gather(dt, srcs, from, rows)
}

// splicer is the work of one Splice.
type splicer struct {
	srcs  []arrow.Array
	spans []Span
	n     int
	pos   []uint32
	src   []uint16
	row   []uint32
}

// flat says for each row where it comes from.
func (s *splicer) flat() (src []uint16, row []uint32) {
	src, row = make([]uint16, s.n), make([]uint32, s.n)
	at := 0
	for _, x := range s.spans {
		for i := range int(x.N) {
			src[at+i], row[at+i] = uint16(max(x.Src, 0)), uint32(int(x.From)+i)
		}
		at += int(x.N)
	}
	for i, p := range s.pos {
		src[p], row[p] = s.src[i], s.row[i]
	}
	return src, row
}

// valid is the validity of the result, nil = no NULLs.
func (s *splicer) valid() []byte {
	any := false
	v := make([][]byte, len(s.srcs))
	off := make([]int, len(s.srcs))
	for i, a := range s.srcs {
		if a != nil {
			v[i], off[i] = Validity(a)
			any = any || v[i] != nil
		}
	}
	if !any {
		return nil
	}
	out := NewBitmap(s.n)
	at := 0
	for _, x := range s.spans {
		switch {
		case x.Src < 0:
		case v[x.Src] == nil:
			bitutil.SetBitsTo(out, int64(at), int64(x.N), true)
		default:
			bitutil.CopyBitmap(v[x.Src], off[x.Src]+int(x.From), int(x.N), out, at)
		}
		at += int(x.N)
	}
	for i, p := range s.pos {
		b := v[s.src[i]]
		if b == nil || b[(off[s.src[i]]+int(s.row[i]))>>3]>>((off[s.src[i]]+int(s.row[i]))&7)&1 != 0 {
			out[p>>3] |= 1 << (p & 7)
		} else {
			out[p>>3] &^= 1 << (p & 7)
		}
	}
	return out
}

func spliceFixed[T any](s *splicer, dt arrow.DataType) arrow.Array {
	raw := make([][]T, len(s.srcs))
	for i, a := range s.srcs {
		if a != nil {
			raw[i] = rawFixed[T](a)
		}
	}
	return makeRaw(dt, s.n, s.valid(), Buf(anyBytes(spliceRaw(s, raw))))
}

func spliceRaw[T any](s *splicer, raw [][]T) []T {
	out := make([]T, s.n)
	at := 0
	for _, x := range s.spans {
		if x.Src >= 0 {
			copy(out[at:at+int(x.N)], raw[x.Src][x.From:])
		}
		at += int(x.N)
	}
	src, row := s.src[:len(s.pos)], s.row[:len(s.pos)]
	for i, p := range s.pos {
		out[p] = raw[src[i]][row[i]]
	}
	return out
}

// dict splices dictionaries into one, nil when that is no good: one source has
// none, or they are large.
func (s *splicer) dict() arrow.Array {
	idx, to, dict := oneDict(s.srcs, s.n/4)
	if dict == nil {
		return nil
	}
	out := make([]int32, s.n)
	at := 0
	for _, x := range s.spans {
		if x.Src >= 0 {
			part, from := out[at:at+int(x.N)], idx[x.Src][x.From:x.From+x.N]
			if m := to[x.Src]; m == nil {
				copy(part, from)
			} else {
				for i, v := range from {
					if uint(v) < uint(len(m)) { // else garbage under NULL
						part[i] = m[v]
					}
				}
			}
		}
		at += int(x.N)
	}
	for i, p := range s.pos {
		v := idx[s.src[i]][s.row[i]]
		if m := to[s.src[i]]; m != nil {
			if uint(v) >= uint(len(m)) {
				v = 0
			} else {
				v = m[v]
			}
		}
		out[p] = v
	}
	return MakeDict(out, s.valid(), dict)
}

// oneDict finds one dictionary for all sources, of at most limit values unless they
// share theirs. to says what each source's indices become, nil = they stay. dict is
// nil when it cannot.
func oneDict(srcs []arrow.Array, limit int) (idx, to [][]int32, dict arrow.Array) {
	idx, to = make([][]int32, len(srcs)), make([][]int32, len(srcs))
	var first arrow.Array
	same, total := true, 0
	for i, a := range srcs {
		if a == nil {
			continue
		}
		d, ok := a.(*array.Dictionary)
		if !ok {
			return nil, nil, nil
		}
		if idx[i], ok = dictIndex(d); !ok {
			return nil, nil, nil
		}
		if first == nil {
			first = a
		} else if !SameDict(first, a) {
			same = false
		}
		total += d.Dictionary().Len()
		if d.Dictionary().NullN() > 0 {
			return nil, nil, nil
		}
	}
	if first == nil {
		return nil, nil, nil
	}
	dict = first.(*array.Dictionary).Dictionary()
	if same {
		return idx, to, dict
	}
	if id := dict.DataType().ID(); total > limit || id != arrow.STRING && id != arrow.BINARY {
		return nil, nil, nil
	}
	known := make(map[string]int32, total)
	var data []byte
	offs := []int32{0}
	for i, a := range srcs {
		if a == nil {
			continue
		}
		d := a.(*array.Dictionary).Dictionary()
		v := ViewStr(d)
		t := make([]int32, d.Len())
		moved := false
		for k := range t {
			x, ok := known[string(v.At(k))]
			if !ok {
				x = int32(len(offs) - 1)
				data = append(data, v.At(k)...)
				offs = append(offs, int32(len(data)))
				known[string(v.At(k))] = x
			}
			t[k] = x
			moved = moved || x != int32(k)
		}
		if moved {
			to[i] = t
		}
	}
	return idx, to, MakeBytes(dict.DataType(), offs, data, nil)
}

func (s *splicer) bytes(dt arrow.DataType) arrow.Array {
	n := s.n
	ss := make([]strSource, len(s.srcs))
	for i, a := range s.srcs {
		if a == nil || a.Len() == 0 {
			continue
		}
		if idx, dict, ok := DictView(a); ok && dict.Len() > 0 {
			ss[i] = strSource{ViewStr(dict), idx}
		} else {
			ss[i] = strSource{ViewStr(Decode(a)), nil}
		}
	}
	valid := s.valid()
	offs := make([]int32, n+1)
	size := offs[1:] // of each row, then its end
	at := 0
	for _, x := range s.spans {
		if x.Src >= 0 {
			part := size[at : at+int(x.N)]
			if v := &ss[x.Src]; v.idx == nil {
				o := v.Offs[x.From : x.From+x.N+1]
				for i := range part {
					part[i] = o[i+1] - o[i]
				}
			} else {
				for i := range part {
					// A row under NULL may be garbage, also where a patch makes it valid.
					if j := v.idx[int(x.From)+i]; uint(j) < uint(len(v.Offs)-1) && BitAt(valid, at+i) {
						part[i] = v.Offs[j+1] - v.Offs[j]
					}
				}
			}
		}
		at += int(x.N)
	}
	for i, p := range s.pos {
		size[p] = 0
		if BitAt(valid, int(p)) {
			size[p] = int32(len(ss[s.src[i]].at(s.row[i])))
		}
	}
	end := int32(0)
	for i, x := range size {
		end += x
		size[i] = end
	}
	data := make([]byte, end)
	at = 0
	k := 0 // next patch
	for _, x := range s.spans {
		stop := at + int(x.N)
		from := at
		for k < len(s.pos) && int(s.pos[k]) < stop {
			p := int(s.pos[k])
			s.copyRows(ss, x, at, from, p, offs, data)
			if offs[p+1] > offs[p] {
				copy(data[offs[p]:offs[p+1]], ss[s.src[k]].at(s.row[k]))
			}
			from = p + 1
			k++
		}
		s.copyRows(ss, x, at, from, stop, offs, data)
		at = stop
	}
	return MakeBytes(dt, offs, data, valid)
}

// copyRows copies the bytes of result rows [from, to) of a span that begins at row
// at.
func (s *splicer) copyRows(ss []strSource, x Span, at, from, to int, offs []int32, data []byte) {
	if from >= to || x.Src < 0 {
		return
	}
	v := &ss[x.Src]
	r := int(x.From) + from - at
	if v.idx == nil {
		copy(data[offs[from]:offs[to]], v.Data[v.Offs[r]:v.Offs[r+to-from]])
		return
	}
	for i := from; i < to; i++ {
		if offs[i+1] > offs[i] {
			copy(data[offs[i]:offs[i+1]], v.at(uint32(r+i-from)))
		}
	}
}
