package function

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"golang.org/x/text/unicode/norm"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// String functions beyond the basic ones. Upper and lower case, and character
// classes, are those of the C locale: ASCII only.

func isAlnumASCII(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func initcap(dst, s []byte) ([]byte, error) {
	in := false
	for _, c := range s {
		switch {
		case !in && c >= 'a' && c <= 'z':
			c -= 32
		case in && c >= 'A' && c <= 'Z':
			c += 32
		}
		in = isAlnumASCII(c)
		dst = append(dst, c)
	}
	return dst, nil
}

func left(dst, s []byte, n int64) ([]byte, error) {
	if n < 0 {
		n = max(int64(utf8.RuneCount(s))+n, 0)
	}
	return append(dst, s[:chars(s, int(min(n, int64(len(s)))))]...), nil
}

func right(dst, s []byte, n int64) ([]byte, error) {
	total := int64(utf8.RuneCount(s))
	if n < 0 {
		n = -n
		return append(dst, s[chars(s, int(min(n, total))):]...), nil
	}
	return append(dst, s[chars(s, int(max(total-n, 0))):]...), nil
}

func pad(leftSide bool) func(dst, s []byte, n int64, fill []byte) ([]byte, error) {
	return func(dst, s []byte, n int64, fill []byte) ([]byte, error) {
		n = max(n, 0)
		have := int64(utf8.RuneCount(s))
		if have >= n || len(fill) == 0 {
			return append(dst, s[:chars(s, int(min(n, have)))]...), nil
		}
		if (n-have)*int64(utf8.UTFMax) > 1<<30-1 {
			return nil, errTooLong()
		}
		padding := func() {
			rest := int(n - have)
			per := utf8.RuneCount(fill)
			for ; rest >= per; rest -= per {
				dst = append(dst, fill...)
			}
			dst = append(dst, fill[:chars(fill, rest)]...)
		}
		if leftSide {
			padding()
			return append(dst, s...), nil
		}
		dst = append(dst, s...)
		padding()
		return dst, nil
	}
}

// trimSet cuts characters of set from the ends of s.
func trimSet(s, set []byte, l, r bool) []byte {
	if l {
		for len(s) > 0 {
			n := charLen(s)
			if !containsChar(set, s[:n]) {
				break
			}
			s = s[n:]
		}
	}
	if r {
		for len(s) > 0 {
			_, n := utf8.DecodeLastRune(s)
			if !containsChar(set, s[len(s)-n:]) {
				break
			}
			s = s[:len(s)-n]
		}
	}
	return s
}

func containsChar(set, c []byte) bool {
	for len(set) > 0 {
		n := charLen(set)
		if bytes.Equal(set[:n], c) {
			return true
		}
		set = set[n:]
	}
	return false
}

func trims(l, r bool) (one, two Kernel) {
	blank := []byte(" ")
	return onDict(sfn1(func(dst, s []byte) ([]byte, error) { return append(dst, trimSet(s, blank, l, r)...), nil })),
		onDict(sfn2(func(dst, s, set []byte) ([]byte, error) { return append(dst, trimSet(s, set, l, r)...), nil }))
}

func trimBytes(l, r bool) Kernel {
	return sfn2(func(dst, s, set []byte) ([]byte, error) {
		for l && len(s) > 0 && bytes.IndexByte(set, s[0]) >= 0 {
			s = s[1:]
		}
		for r && len(s) > 0 && bytes.IndexByte(set, s[len(s)-1]) >= 0 {
			s = s[:len(s)-1]
		}
		return append(dst, s...), nil
	})
}

// repeat checks the length first: a result may be far longer than what it is made
// of.
func repeat(c *Call, args []vec.Vec) func(dst []byte, i int) ([]byte, error) {
	text, times := reader[[]byte](args[0], argType(c, 0)), reader[int64](args[1], argType(c, 1))
	return func(dst []byte, i int) ([]byte, error) {
		s, n := text(i), times(i)
		if n <= 0 || len(s) == 0 {
			return dst, nil
		}
		if n > maxValueBytes/int64(len(s)) {
			return nil, errTooLong()
		}
		at, size := len(dst), int(n)*len(s)
		if err := c.fits(at, at+size); err != nil {
			return nil, err
		}
		dst = append(slices.Grow(dst, size), s...)
		for have := len(s); have < size; have = len(dst) - at {
			dst = append(dst, dst[at:at+min(have, size-have)]...)
		}
		return dst, nil
	}
}

func replaceAll(c *Call, args []vec.Vec) func(dst []byte, i int) ([]byte, error) {
	text, froms, tos := reader[[]byte](args[0], argType(c, 0)), reader[[]byte](args[1], argType(c, 1)), reader[[]byte](args[2], argType(c, 2))
	return func(dst []byte, i int) ([]byte, error) {
		s, from, to := text(i), froms(i), tos(i)
		if len(from) == 0 {
			return append(dst, s...), nil
		}
		if len(to) > len(from) && len(s) > 1<<20 {
			size := len(s) + bytes.Count(s, from)*(len(to)-len(from))
			if err := c.fits(len(dst), len(dst)+size); err != nil {
				return nil, err
			}
			dst = slices.Grow(dst, size)
		}
		for calls := 1; ; calls++ {
			if calls&0xffff == 0 {
				if err := c.cancelled(); err != nil {
					return nil, err
				}
			}
			i := bytes.Index(s, from)
			if i < 0 {
				return append(dst, s...), nil
			}
			dst = append(append(dst, s[:i]...), to...)
			s = s[i+len(from):]
		}
	}
}

func reverse(dst, s []byte) ([]byte, error) {
	for len(s) > 0 {
		_, n := utf8.DecodeLastRune(s)
		dst = append(dst, s[len(s)-n:]...)
		s = s[:len(s)-n]
	}
	return dst, nil
}

func splitPart(dst, s, sep []byte, n int64) ([]byte, error) {
	if n == 0 {
		return nil, pgerr.New(pgerr.InvalidParameterValue, "field position must not be zero")
	}
	if len(s) == 0 {
		return dst, nil
	}
	if len(sep) == 0 {
		if n == 1 || n == -1 {
			return append(dst, s...), nil
		}
		return dst, nil
	}
	if n < 0 {
		n += int64(bytes.Count(s, sep)) + 2
		if n < 1 {
			return dst, nil
		}
	}
	for {
		i := bytes.Index(s, sep)
		n--
		if n == 0 {
			if i < 0 {
				i = len(s)
			}
			return append(dst, s[:i]...), nil
		}
		if i < 0 {
			return dst, nil
		}
		s = s[i+len(sep):]
	}
}

func translate(dst, s, from, to []byte) ([]byte, error) {
	f, t := []rune(string(from)), []rune(string(to))
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		at := -1
		for i, x := range f {
			if x == r {
				at = i
				break
			}
		}
		switch {
		case at < 0:
			dst = append(dst, s[:n]...)
		case at < len(t):
			dst = utf8.AppendRune(dst, t[at])
		}
		s = s[n:]
	}
	return dst, nil
}

func chr(dst []byte, n int64) ([]byte, error) {
	switch {
	case n < 0:
		return nil, pgerr.New(pgerr.InvalidParameterValue, "character number must be positive")
	case n == 0:
		return nil, pgerr.New(pgerr.ProgramLimitExceeded, "null character not permitted")
	case n > utf8.MaxRune:
		return nil, pgerr.New(pgerr.ProgramLimitExceeded, "requested character too large for encoding: %d", n)
	case n >= 0xd800 && n < 0xe000:
		return nil, pgerr.New(pgerr.ProgramLimitExceeded, "requested character not valid for encoding: %d", n)
	}
	return utf8.AppendRune(dst, rune(n)), nil
}

func ascii(s []byte) (int64, error) {
	if len(s) == 0 {
		return 0, nil
	}
	r, n := utf8.DecodeRune(s)
	if r == utf8.RuneError && n == 1 {
		return int64(s[0]), nil
	}
	return int64(r), nil
}

// overlay replaces n characters from start.
func overlay(isBytes bool) func(dst, s, with []byte, start, n int64) ([]byte, error) {
	return func(dst, s, with []byte, start, n int64) ([]byte, error) {
		if start <= 0 {
			return nil, errNegativeLength()
		}
		end, ok := add64(start, n)
		if !ok || end > 1<<31-1 {
			return nil, errIntRange(types.Int4)
		}
		dst, err := substring(dst, s, 1, start-1, true, isBytes)
		if err != nil {
			return nil, err
		}
		dst = append(dst, with...)
		return substring(dst, s, end, 0, false, isBytes)
	}
}

func overlay3(isBytes bool) func(dst, s, with []byte, start int64) ([]byte, error) {
	f := overlay(isBytes)
	return func(dst, s, with []byte, start int64) ([]byte, error) {
		n := int64(len(with))
		if !isBytes {
			n = int64(utf8.RuneCount(with))
		}
		return f(dst, s, with, start, n)
	}
}

func stringToArray(s string, sep *string, null *string) []types.Datum {
	out := []types.Datum{}
	add := func(v string) {
		if null != nil && v == *null {
			out = append(out, nil)
		} else {
			out = append(out, v)
		}
	}
	switch {
	case s == "":
	case sep == nil:
		for _, r := range s {
			add(string(r))
		}
	case *sep == "":
		add(s)
	default:
		for _, p := range strings.Split(s, *sep) {
			add(p)
		}
	}
	return out
}

func optText(d types.Datum) *string {
	if s, ok := d.(string); ok {
		return &s
	}
	return nil
}

// arrayToString joins the elements' texts.
func arrayToString(c *Call, args []vec.Vec) (arrow.Array, error) {
	n := rowsOf(c, args)
	t := argType(c, 0)
	et := types.Of(types.Text)
	if t.Elem != nil {
		et = *t.Elem
	} else if t.Kind == types.Int2Vector {
		et = types.Of(types.Int2)
	} else if t.Kind == types.OIDVector {
		et = types.Of(types.OID)
	}
	offs, child := vec.ListParts(args[0].Arr)
	text := outAppender(c, et, child)
	arr, sep := args[0], vec.ViewStr(vec.Decode(args[1].Arr))
	var nulls *vec.StrView
	if len(args) > 2 {
		v := vec.ViewStr(vec.Decode(args[2].Arr))
		nulls = &v
	}
	idx := func(v vec.Vec, i int) int {
		if v.Const {
			return 0
		}
		return i
	}
	return appendRows(c, n, selOf(c, args), nil, func(dst []byte, i int) ([]byte, error) {
		a, s := idx(arr, i), idx(args[1], i)
		if arr.Arr.IsNull(a) || sep.IsNull(s) {
			return dst, errNull
		}
		first := true
		for e := offs[a]; e < offs[a+1]; e++ {
			if child.IsNull(int(e)) {
				if nulls == nil || nulls.IsNull(idx(args[2], i)) {
					continue
				}
				if !first {
					dst = append(dst, sep.At(s)...)
				}
				dst = append(dst, nulls.At(idx(args[2], i))...)
			} else {
				if !first {
					dst = append(dst, sep.At(s)...)
				}
				dst = text(dst, int(e))
			}
			first = false
		}
		return dst, nil
	})
}

func parseIdent(s string, strict bool) ([]types.Datum, error) {
	bad := func(detail string) error {
		e := pgerr.New(pgerr.InvalidParameterValue, "string is not a valid identifier: \"%s\"", s)
		if detail != "" {
			_ = e.WithDetail("%s", detail)
		}
		return e
	}
	var out []types.Datum
	p := strings.TrimLeft(s, " \t\n\r\f")
	afterDot := false
	for {
		switch {
		case strings.HasPrefix(p, `"`):
			var b strings.Builder
			i, closed := 1, false
			for i < len(p) {
				if p[i] == '"' {
					if i+1 < len(p) && p[i+1] == '"' {
						b.WriteByte('"')
						i += 2
						continue
					}
					closed = true
					i++
					break
				}
				b.WriteByte(p[i])
				i++
			}
			if !closed {
				return nil, bad("String has unclosed double quotes.")
			}
			if b.Len() == 0 {
				return nil, bad("Quoted identifier must not be empty.")
			}
			out = append(out, b.String())
			p = p[i:]
		case p != "" && (p[0] == '_' || p[0] >= 0x80 || p[0]|0x20 >= 'a' && p[0]|0x20 <= 'z'):
			i := 1
			for i < len(p) && (isAlnumASCII(p[i]) || p[i] == '_' || p[i] == '$' || p[i] >= 0x80) {
				i++
			}
			low, _ := lowerASCII(nil, []byte(p[:i]))
			out = append(out, string(low))
			p = p[i:]
		default:
			switch {
			case strings.HasPrefix(p, "."):
				return nil, bad("No valid identifier before \".\".")
			case afterDot:
				return nil, bad("No valid identifier after \".\".")
			}
			return nil, bad("")
		}
		p = strings.TrimLeft(p, " \t\n\r\f")
		if strings.HasPrefix(p, ".") {
			afterDot = true
			p = strings.TrimLeft(p[1:], " \t\n\r\f")
			continue
		}
		if p != "" && strict {
			return nil, bad("")
		}
		return out, nil
	}
}

func bytesFn(sum func(b []byte) []byte) Kernel {
	return sfn1(func(dst, b []byte) ([]byte, error) { return append(dst, sum(b)...), nil })
}

func stringFunctions() []*Overload {
	var out []*Overload
	add := func(name string, ret types.Type, k Kernel, doc string, args ...types.Type) *Overload {
		o := def(name, ret, k, doc, args...)
		out = append(out, o)
		return o
	}
	octets := fn1(func(s []byte) (int64, error) { return int64(len(s)), nil })
	add("octet_length", tInt4, octets, "Number of bytes.", tText)
	add("octet_length", tInt4, octets, "Number of bytes.", tBytea)
	add("octet_length", tInt4, func(c *Call, args []vec.Vec) (arrow.Array, error) {
		// The blanks of char(n) count here.
		sub := *c
		sub.ArgTypes = []types.Type{tText}
		return octets(&sub, args)
	}, "Number of bytes.", types.Of(types.BpChar))
	bits := fn1(func(s []byte) (int64, error) { return int64(len(s)) * 8, nil })
	add("bit_length", tInt4, bits, "Number of bits.", tText)
	add("bit_length", tInt4, bits, "Number of bits.", tBytea)
	add("initcap", tText, onDict(sfn1(initcap)), "The string with each word's first letter in upper case.", tText)
	pos := fn2(func(s, sub []byte) (int64, error) { return strpos(s, sub), nil })
	add("position", tInt4, onDict(pos), "Position of a substring in characters, 0 when absent.", tText, tText)
	add("strpos", tInt4, onDict(pos), "Position of a substring in characters, 0 when absent.", tText, tText)
	add("position", tInt4, fn2(func(s, sub []byte) (int64, error) { return int64(bytes.Index(s, sub)) + 1, nil }), "Position of a byte string within another, 0 when absent.", tBytea, tBytea)
	add("left", tText, onDict(sfn2(left)), "First n characters; all but the last n when negative.", tText, tInt4)
	add("right", tText, onDict(sfn2(right)), "Last n characters; all but the first n when negative.", tText, tInt4)
	for _, p := range []struct {
		name string
		left bool
	}{{"lpad", true}, {"rpad", false}} {
		f := pad(p.left)
		add(p.name, tText, onDict(sfn3(f)), "The string filled up or cut to a length.", tText, tInt4, tText)
		blank := []byte(" ")
		add(p.name, tText, onDict(sfn2(func(dst, s []byte, n int64) ([]byte, error) { return f(dst, s, n, blank) })), "The string filled up with blanks or cut to a length.", tText, tInt4)
	}
	for _, t := range []struct {
		name string
		l, r bool
		doc  string
	}{{"btrim", true, true, "both ends"}, {"ltrim", true, false, "the start"}, {"rtrim", false, true, "the end"}} {
		one, two := trims(t.l, t.r)
		add(t.name, tText, one, "The string without blanks at "+t.doc+".", tText)
		add(t.name, tText, two, "The string without characters of a set at "+t.doc+".", tText, tText)
		add(t.name, tBytea, trimBytes(t.l, t.r), "The byte string without bytes of a set at "+t.doc+".", tBytea, tBytea)
	}
	add("repeat", tText, onDict(sfnN(repeat)), "The string n times.", tText, tInt4)
	add("replace", tText, onDict(sfnN(replaceAll)), "The string with every occurrence of a substring replaced.", tText, tText, tText)
	add("reverse", tText, onDict(sfn1(reverse)), "The characters in reverse order.", tText)
	add("split_part", tText, onDict(sfn3(splitPart)), "Field n of a string cut at a delimiter; from the end when negative.", tText, tText, tInt4)
	starts := fn2(func(s, p []byte) (bool, error) { return bytes.HasPrefix(s, p), nil })
	add("starts_with", tBool, onDict(starts), "Whether a string begins with another.", tText, tText)
	add("translate", tText, onDict(sfn3(translate)), "The string with single characters replaced.", tText, tText, tText)
	add("chr", tText, sfn1(chr), "The character with a code point.", tInt4)
	add("ascii", tInt4, onDict(fn1(ascii)), "Code point of the first character.", tText)
	add("overlay", tText, sfn4(overlay(false)), "The string with a part replaced.", tText, tText, tInt4, tInt4)
	add("overlay", tText, sfn3(overlay3(false)), "The string with a part replaced.", tText, tText, tInt4)
	add("overlay", tBytea, sfn4(overlay(true)), "The byte string with a part replaced.", tBytea, tBytea, tInt4, tInt4)
	add("overlay", tBytea, sfn3(overlay3(true)), "The byte string with a part replaced.", tBytea, tBytea, tInt4)
	any := types.Of(types.Any)
	out = append(out,
		&Overload{Name: "concat", Args: []types.Type{any}, Variadic: true, Ret: tText, Volatility: Stable, Kernel: concat, Doc: "The arguments' texts joined, NULLs left out."},
		&Overload{Name: "concat_ws", Args: []types.Type{tText, any}, Variadic: true, Ret: tText, Volatility: Stable, Kernel: concatWS, Doc: "The arguments' texts joined by a separator, NULLs left out."},
		&Overload{Name: "format", Args: []types.Type{tText, any}, Variadic: true, Ret: tText, Volatility: Stable, Kernel: formatFn, Doc: "Text made from a format and arguments."},
		&Overload{Name: "format", Args: []types.Type{tText}, Ret: tText, Volatility: Stable, Kernel: formatFn, Doc: "Text made from a format without arguments."},
	)
	add("quote_ident", tText, onDict(fn1(func(s string) (string, error) { return QuoteIdent(s), nil })), "The string as an SQL identifier.", tText)
	add("quote_literal", tText, onDict(fn1(func(s string) (string, error) { return QuoteLiteral(s), nil })), "The string as an SQL literal.", tText)
	any1 := []types.Type{types.Of(types.AnyElement)}
	out = append(out,
		&Overload{Name: "quote_literal", Args: any1, Ret: tText, Strict: true, Volatility: Stable, Kernel: quoteAny(false), Doc: "The value's text as an SQL literal."},
		&Overload{Name: "quote_nullable", Args: []types.Type{tText}, Ret: tText, Kernel: quoteAny(true), Doc: "The string as an SQL literal, or NULL."},
		&Overload{Name: "quote_nullable", Args: any1, Ret: tText, Volatility: Stable, Kernel: quoteAny(true), Doc: "The value's text as an SQL literal, or NULL."})
	md := sfn1(func(dst, b []byte) ([]byte, error) { h := md5.Sum(b); return hex.AppendEncode(dst, h[:]), nil })
	add("md5", tText, onDict(md), "MD5 digest in hexadecimal.", tText)
	add("md5", tText, md, "MD5 digest in hexadecimal.", tBytea)
	add("sha224", tBytea, bytesFn(func(b []byte) []byte { h := sha256.Sum224(b); return h[:] }), "SHA-224 digest.", tBytea)
	add("sha256", tBytea, bytesFn(func(b []byte) []byte { h := sha256.Sum256(b); return h[:] }), "SHA-256 digest.", tBytea)
	add("sha384", tBytea, bytesFn(func(b []byte) []byte { h := sha512.Sum384(b); return h[:] }), "SHA-384 digest.", tBytea)
	add("sha512", tBytea, bytesFn(func(b []byte) []byte { h := sha512.Sum512(b); return h[:] }), "SHA-512 digest.", tBytea)
	add("encode", tText, sfn2(encodeBytes), "A byte string as text: hex, base64 or escape.", tBytea, tText)
	add("decode", tBytea, sfn2(decodeBytes), "A byte string from text: hex, base64 or escape.", tText, tText)
	add("convert_from", tText, sfn2(convertFrom), "Text from bytes in an encoding.", tBytea, tName)
	add("convert_to", tBytea, sfn2(convertTo), "Bytes of a text in an encoding.", tText, tName)
	add("to_hex", tText, fn1(func(v int64) (string, error) { return strconv.FormatUint(uint64(uint32(v)), 16), nil }), "The number in hexadecimal.", tInt4)
	add("to_hex", tText, fn1(func(v int64) (string, error) { return strconv.FormatUint(uint64(v), 16), nil }), "The number in hexadecimal.", tInt8)
	add("get_byte", tInt4, fn2(func(b []byte, i int64) (int64, error) {
		if i < 0 || i >= int64(len(b)) {
			return 0, errIndex(i, len(b))
		}
		return int64(b[i]), nil
	}), "Byte n of a byte string.", tBytea, tInt4)
	add("get_bit", tInt4, fn2(func(b []byte, i int64) (int64, error) {
		if i < 0 || i >= int64(len(b))*8 {
			return 0, errIndex(i, len(b)*8)
		}
		return int64(b[i/8] >> (i % 8) & 1), nil
	}), "Bit n of a byte string.", tBytea, tInt8)
	add("set_byte", tBytea, sfn3(func(dst, b []byte, i, v int64) ([]byte, error) {
		if i < 0 || i >= int64(len(b)) {
			return nil, errIndex(i, len(b))
		}
		at := len(dst)
		dst = append(dst, b...)
		dst[at+int(i)] = byte(v)
		return dst, nil
	}), "The byte string with byte n set.", tBytea, tInt4, tInt4)
	add("set_bit", tBytea, sfn3(func(dst, b []byte, i, v int64) ([]byte, error) {
		if i < 0 || i >= int64(len(b))*8 {
			return nil, errIndex(i, len(b)*8)
		}
		if v != 0 && v != 1 {
			return nil, pgerr.New(pgerr.InvalidParameterValue, "new bit must be 0 or 1")
		}
		at := len(dst)
		dst = append(dst, b...)
		dst[at+int(i/8)] = dst[at+int(i/8)]&^(1<<(i%8)) | byte(v)<<(i%8)
		return dst, nil
	}), "The byte string with bit n set.", tBytea, tInt8, tInt4)
	add("bit_count", tInt8, fn1(func(b []byte) (int64, error) {
		n := 0
		for _, c := range b {
			for ; c != 0; c &= c - 1 {
				n++
			}
		}
		return int64(n), nil
	}), "Number of bits that are set.", tBytea)
	tArr := types.ArrayOf(tText)
	split := rowFn(func(c *Call, a []types.Datum) (types.Datum, error) {
		if a[0] == nil {
			return nil, nil
		}
		if sep := optText(a[1]); sep != nil && *sep != "" {
			if err := c.boxes(int64(strings.Count(a[0].(string), *sep)) + 1); err != nil {
				return nil, err
			}
		}
		var null *string
		if len(a) > 2 {
			null = optText(a[2])
		}
		return stringToArray(a[0].(string), optText(a[1]), null), nil
	})
	out = append(out,
		&Overload{Name: "string_to_array", Args: []types.Type{tText, tText}, Ret: tArr, Kernel: split, Doc: "Array of the parts of a string cut at a delimiter."},
		&Overload{Name: "string_to_array", Args: []types.Type{tText, tText, tText}, Ret: tArr, Kernel: split, Doc: "Array of the parts of a string cut at a delimiter, a text standing for NULL."},
		&Overload{Name: "array_to_string", Args: []types.Type{types.Of(types.AnyArray), tText}, Ret: tText, Strict: true, Volatility: Stable, Kernel: arrayToString, Doc: "Texts of an array's elements joined by a delimiter."},
		&Overload{Name: "array_to_string", Args: []types.Type{types.Of(types.AnyArray), tText, tText}, Ret: tText, Volatility: Stable, Kernel: arrayToString, Doc: "Texts of an array's elements joined by a delimiter, a text standing for NULL."})
	add("normalize", tText, sfn1(func(dst, s []byte) ([]byte, error) { return norm.NFC.Append(dst, s...), nil }), "The string in Unicode normal form C.", tText)
	add("normalize", tText, sfn2(func(dst, s []byte, form string) ([]byte, error) {
		f, err := normalForm(form)
		if err != nil {
			return nil, err
		}
		return f.Append(dst, s...), nil
	}), "The string in a Unicode normal form.", tText, tText)
	add("is_normalized", tBool, fn1(func(s []byte) (bool, error) { return norm.NFC.IsNormal(s), nil }), "Whether the string is in Unicode normal form C.", tText)
	add("is_normalized", tBool, fn2(func(s []byte, form string) (bool, error) {
		f, err := normalForm(form)
		return err == nil && f.IsNormal(s), err
	}), "Whether the string is in a Unicode normal form.", tText, tText)
	add("unistr", tText, sfn1(unistr), "The string with Unicode escapes evaluated.", tText)
	add("like_escape", tText, sfn2(likeEscape), "A LIKE pattern with another escape character, rewritten to the backslash.", tText, tText)
	add("parse_ident", tArr, strictRowFn(func(_ *Call, a []types.Datum) (types.Datum, error) {
		return parseIdentDatum(a[0].(string), len(a) < 2 || a[1].(bool))
	}), "Parts of a qualified identifier.", tText, tBool).Defaults = 1
	lk := func(name string, neg, fold bool, doc string) {
		add(name, tBool, likeKernel(fold, neg), doc, tText, tText)
	}
	lk("like", false, false, "Whether a string matches a LIKE pattern.")
	lk("notlike", true, false, "Whether a string does not match a LIKE pattern.")
	lk("texticlike", false, true, "Whether a string matches a LIKE pattern without regard to case.")
	return out
}

func parseIdentDatum(s string, strict bool) (types.Datum, error) {
	p, err := parseIdent(s, strict)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func concatOps() []*Overload {
	elem := types.Of(types.AnyNonArray)
	return []*Overload{
		{Name: "||", Args: []types.Type{tText, tText}, Ret: tText, Strict: true, Kernel: func(c *Call, a []vec.Vec) (arrow.Array, error) {
			return textConcat(c, decodeAll(a))
		}, Doc: "Two strings joined."},
		{Name: "||", Args: []types.Type{tText, elem}, Ret: tText, Strict: true, Volatility: Stable, Kernel: anyConcat, Doc: "A string and a value's text joined."},
		{Name: "||", Args: []types.Type{elem, tText}, Ret: tText, Strict: true, Volatility: Stable, Kernel: anyConcat, Doc: "A value's text and a string joined."},
		{Name: "||", Args: []types.Type{tBytea, tBytea}, Ret: tBytea, Strict: true, Kernel: textConcat, Doc: "Two byte strings joined."},
		{Name: "^@", Args: []types.Type{tText, tText}, Ret: tBool, Strict: true, Kernel: onDict(fn2(func(s, p []byte) (bool, error) { return bytes.HasPrefix(s, p), nil })), Doc: "Whether a string begins with another."},
	}
}
