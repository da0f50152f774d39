package pgtext

import (
	"encoding/binary"
	"math"
	"sort"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// FromJSON turns a JSON text into a value of type t, which may be nested: rows
// and maps from objects, arrays from arrays, scalars from their text. Members a
// row does not have are an error; those missing are NULL.
func FromJSON(t types.Type, s string, st *Style) (types.Datum, error) {
	norm := s
	p := jsonParser{s: s}
	if _, err := p.document(nil); err != nil {
		return nil, err
	}
	return fromJSON(t, JSONRaw(strings.TrimSpace(norm)), orDefault(st), 0)
}

// JSONRaw is a valid JSON text without blanks around it.
type JSONRaw string

// Kind returns 'o' object, 'a' array, 's' string, 'n' number, 'b' boolean, 'z'
// null.
func (r JSONRaw) Kind() byte {
	if r == "" {
		return 'z'
	}
	switch r[0] {
	case '{':
		return 'o'
	case '[':
		return 'a'
	case '"':
		return 's'
	case 't', 'f':
		return 'b'
	case 'n':
		return 'z'
	}
	return 'n'
}

// Str decodes a string; other values return their text.
func (r JSONRaw) Str() string {
	if r.Kind() != 's' {
		return string(r)
	}
	if strings.IndexByte(string(r), '\\') < 0 {
		return string(r[1 : len(r)-1])
	}
	p := jsonParser{s: string(r)}
	b, err := p.str(nil, true)
	if err != nil {
		return string(r[1 : len(r)-1])
	}
	return string(b)
}

// CheckStr is Str with the error for strings that text cannot hold.
func (r JSONRaw) CheckStr() (string, error) {
	if r.Kind() != 's' || strings.IndexByte(string(r), '\\') < 0 {
		return r.Str(), nil
	}
	p := jsonParser{s: string(r)}
	b, err := p.str(nil, true)
	return string(b), err
}

// skipJSON returns the index behind the value that starts at s[i]; s is valid.
func skipJSON(s string, i int) int {
	depth := 0
	for i < len(s) {
		switch s[i] {
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
			if depth <= 0 {
				return i
			}
		case '"':
			i++
			for i < len(s) && s[i] != '"' {
				if s[i] == '\\' {
					i++
				}
				i++
			}
			i++
			if depth == 0 {
				return i
			}
		case ' ', '\t', '\n', '\r', ',', ':':
			if depth == 0 {
				return i
			}
			i++
		default:
			for i < len(s) && !strings.ContainsRune(" \t\n\r,:{}[]\"", rune(s[i])) {
				i++
			}
			if depth == 0 {
				return i
			}
		}
	}
	return len(s)
}

func skipBlank(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r') {
		i++
	}
	return i
}

// Elems calls f for each element of an array until f returns false.
func (r JSONRaw) Elems(f func(i int, v JSONRaw) bool) {
	s := string(r)
	i := skipBlank(s, 1)
	for n := 0; i < len(s) && s[i] != ']'; n++ {
		end := skipJSON(s, i)
		if end <= i || !f(n, JSONRaw(s[i:end])) {
			return
		}
		i = skipBlank(s, end)
		if i < len(s) && s[i] == ',' {
			i = skipBlank(s, i+1)
		}
	}
}

// Members calls f for each member of an object until f returns false. key is
// raw: use Str.
func (r JSONRaw) Members(f func(key, v JSONRaw) bool) {
	s := string(r)
	i := skipBlank(s, 1)
	for i < len(s) && s[i] != '}' {
		end := skipJSON(s, i)
		key := JSONRaw(s[i:end])
		i = skipBlank(s, end)
		if i < len(s) && s[i] == ':' {
			i = skipBlank(s, i+1)
		}
		end = skipJSON(s, i)
		if end <= i || !f(key, JSONRaw(s[i:end])) {
			return
		}
		i = skipBlank(s, end)
		if i < len(s) && s[i] == ',' {
			i = skipBlank(s, i+1)
		}
	}
}

// Len returns the number of elements or members.
func (r JSONRaw) Len() int {
	n := 0
	switch r.Kind() {
	case 'a':
		r.Elems(func(int, JSONRaw) bool { n++; return true })
	case 'o':
		r.Members(func(JSONRaw, JSONRaw) bool { n++; return true })
	}
	return n
}

// Get returns the (last) member named key; ok is false when there is none.
func (r JSONRaw) Get(key string) (v JSONRaw, ok bool) {
	if r.Kind() != 'o' {
		return "", false
	}
	r.Members(func(k, x JSONRaw) bool {
		if len(k) >= len(key)+2 && k.Str() == key {
			v, ok = x, true
		}
		return true
	})
	return v, ok
}

// At returns element i of an array; negative i counts from the end.
func (r JSONRaw) At(i int) (v JSONRaw, ok bool) {
	if r.Kind() != 'a' {
		return "", false
	}
	if i < 0 {
		i += r.Len()
		if i < 0 {
			return "", false
		}
	}
	r.Elems(func(n int, x JSONRaw) bool {
		if n == i {
			v, ok = x, true
			return false
		}
		return true
	})
	return v, ok
}

func fromJSON(t types.Type, r JSONRaw, st *Style, depth int) (types.Datum, error) {
	k := r.Kind()
	mismatch := func(what string) (types.Datum, error) {
		return nil, pgerr.New(pgerr.InvalidTextRepresentation, "invalid input syntax for type %s", what).
			WithDetail("The JSON value is %s.", map[byte]string{'o': "an object", 'a': "an array", 's': "a string", 'n': "a number", 'b': "a boolean"}[k])
	}
	if t.Kind == types.Variant {
		val, meta := EncodeVariant(r)
		return []types.Datum{val, meta}, nil
	}
	if k == 'z' {
		if t.Kind == types.JSON || t.Kind == types.JSONB {
			return "null", nil
		}
		return nil, nil
	}
	switch t.Kind {
	case types.JSON, types.JSONB:
		return Parse(t, string(r), st)
	case types.Array:
		if k != 'a' {
			if k == 's' {
				return Parse(t, r.Str(), st)
			}
			return mismatch("array")
		}
		out := []types.Datum{}
		var err error
		r.Elems(func(_ int, v JSONRaw) bool {
			var d types.Datum
			d, err = fromJSON(*t.Elem, v, st, depth+1)
			out = append(out, d)
			return err == nil
		})
		return out, err
	case types.Map:
		if k != 'o' {
			return mismatch("map")
		}
		out := []types.KV{}
		at := map[string]int{}
		var err error
		r.Members(func(key, v JSONRaw) bool {
			var kv types.KV
			name := key.Str()
			if kv.K, err = Parse(*t.Key, name, st); err == nil {
				kv.V, err = fromJSON(*t.Elem, v, st, depth+1)
			}
			if i, dup := at[name]; dup {
				out[i] = kv
			} else {
				at[name] = len(out)
				out = append(out, kv)
			}
			return err == nil
		})
		return out, err
	case types.Row, types.Record:
		if k != 'o' {
			return mismatch("row")
		}
		out := make([]types.Datum, len(t.Fields))
		var err error
		r.Members(func(key, v JSONRaw) bool {
			name := key.Str()
			i := types.Schema(t.Fields).Index(name)
			if i < 0 {
				err = pgerr.New(pgerr.InvalidTextRepresentation, "the row type has no member \"%s\"", name)
				return false
			}
			out[i], err = fromJSON(t.Fields[i].Type, v, st, depth+1)
			return err == nil
		})
		return out, err
	}
	if t.IsTextLike() && (k == 'o' || k == 'a') {
		return Parse(t, string(r), st)
	}
	s := r.Str()
	if (t.Kind == types.Timestamp || t.Kind == types.TimestampTZ) && k == 's' {
		s = strings.Replace(s, "T", " ", 1)
	}
	return Parse(t, s, st)
}

// EncodeVariant makes the variant bytes of a valid JSON text.
func EncodeVariant(r JSONRaw) (value, meta []byte) {
	names := map[string]int{}
	var collect func(r JSONRaw)
	collect = func(r JSONRaw) {
		switch r.Kind() {
		case 'o':
			r.Members(func(k, v JSONRaw) bool { names[k.Str()] = 0; collect(v); return true })
		case 'a':
			r.Elems(func(_ int, v JSONRaw) bool { collect(v); return true })
		}
	}
	collect(r)
	keys := make([]string, 0, len(names))
	total := 0
	for k := range names {
		keys = append(keys, k)
		total += len(k)
	}
	sort.Strings(keys)
	sz := uintSize(max(total, len(keys)))
	meta = append(meta, byte(1|1<<4|(sz-1)<<6))
	meta = appendUint(meta, len(keys), sz)
	off := 0
	for i, k := range keys {
		names[k] = i
		meta = appendUint(meta, off, sz)
		off += len(k)
	}
	meta = appendUint(meta, off, sz)
	for _, k := range keys {
		meta = append(meta, k...)
	}
	return encodeVariantValue(nil, r, names), meta
}

func uintSize(v int) int {
	switch {
	case v < 1<<8:
		return 1
	case v < 1<<16:
		return 2
	case v < 1<<24:
		return 3
	}
	return 4
}

func appendUint(dst []byte, v, size int) []byte {
	for i := 0; i < size; i++ {
		dst = append(dst, byte(v>>(8*i)))
	}
	return dst
}

func encodeVariantValue(dst []byte, r JSONRaw, names map[string]int) []byte {
	switch r.Kind() {
	case 'z':
		return append(dst, 0)
	case 'b':
		if r[0] == 't' {
			return append(dst, 1<<2)
		}
		return append(dst, 2<<2)
	case 's':
		s := r.Str()
		if len(s) < 64 {
			dst = append(dst, byte(len(s))<<2|1)
		} else {
			dst = append(dst, 16<<2)
			dst = binary.LittleEndian.AppendUint32(dst, uint32(len(s)))
		}
		return append(dst, s...)
	case 'n':
		return encodeVariantNumber(dst, string(r))
	case 'o':
		type member struct {
			id  int
			key string
			val []byte
		}
		at := map[string]int{}
		var ms []member
		r.Members(func(k, v JSONRaw) bool {
			key := k.Str()
			m := member{names[key], key, encodeVariantValue(nil, v, names)}
			if i, dup := at[key]; dup {
				ms[i] = m
			} else {
				at[key] = len(ms)
				ms = append(ms, m)
			}
			return true
		})
		sort.Slice(ms, func(a, b int) bool { return ms[a].key < ms[b].key })
		total, maxID := 0, 0
		for _, m := range ms {
			total += len(m.val)
			maxID = max(maxID, m.id)
		}
		os, is := uintSize(total), uintSize(maxID)
		large, cnt := 0, 1
		if len(ms) > 255 {
			large, cnt = 1, 4
		}
		dst = append(dst, byte((large<<4|(is-1)<<2|(os-1))<<2|2))
		dst = appendUint(dst, len(ms), cnt)
		for _, m := range ms {
			dst = appendUint(dst, m.id, is)
		}
		off := 0
		for _, m := range ms {
			dst = appendUint(dst, off, os)
			off += len(m.val)
		}
		dst = appendUint(dst, off, os)
		for _, m := range ms {
			dst = append(dst, m.val...)
		}
		return dst
	}
	var vals [][]byte
	total := 0
	r.Elems(func(_ int, v JSONRaw) bool {
		b := encodeVariantValue(nil, v, names)
		vals = append(vals, b)
		total += len(b)
		return true
	})
	os := uintSize(total)
	large, cnt := 0, 1
	if len(vals) > 255 {
		large, cnt = 1, 4
	}
	dst = append(dst, byte((large<<2|(os-1))<<2|3))
	dst = appendUint(dst, len(vals), cnt)
	off := 0
	for _, v := range vals {
		dst = appendUint(dst, off, os)
		off += len(v)
	}
	dst = appendUint(dst, off, os)
	for _, v := range vals {
		dst = append(dst, v...)
	}
	return dst
}

func encodeVariantNumber(dst []byte, s string) []byte {
	d, err := numeric.Parse(s)
	if err == nil && !strings.ContainsAny(s, ".eE") && d.Coef.IsInt64() {
		switch v := d.Coef.Int64(); {
		case v == int64(int8(v)):
			return append(dst, 3<<2, byte(v))
		case v == int64(int16(v)):
			return binary.LittleEndian.AppendUint16(append(dst, 4<<2), uint16(v))
		case v == int64(int32(v)):
			return binary.LittleEndian.AppendUint32(append(dst, 5<<2), uint32(v))
		default:
			return binary.LittleEndian.AppendUint64(append(dst, 6<<2), uint64(v))
		}
	}
	if err == nil && !strings.ContainsAny(s, "eE") && d.Scale <= 38 {
		if n, ok := d.To128(d.Scale); ok {
			lo := n.LowBits()
			switch {
			case d.Digits() <= 9:
				return binary.LittleEndian.AppendUint32(append(dst, 8<<2, byte(d.Scale)), uint32(lo))
			case d.Digits() <= 18:
				return binary.LittleEndian.AppendUint64(append(dst, 9<<2, byte(d.Scale)), lo)
			}
			dst = binary.LittleEndian.AppendUint64(append(dst, 10<<2, byte(d.Scale)), lo)
			return binary.LittleEndian.AppendUint64(dst, uint64(n.HighBits()))
		}
	}
	f := 0.0
	if err == nil {
		f = d.Float64()
	}
	return binary.LittleEndian.AppendUint64(append(dst, 7<<2), math.Float64bits(f))
}
