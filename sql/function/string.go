package function

import (
	"bytes"
	"math"
	"unicode/utf8"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

var (
	tText  = types.Of(types.Text)
	tInt4  = types.Of(types.Int4)
	tInt8  = types.Of(types.Int8)
	tBytea = types.Of(types.Bytea)
	tF8    = types.Of(types.Float8)
	tNum   = types.Of(types.Numeric)
	tName  = types.Of(types.Name)
	tOID   = types.Of(types.OID)
)

// chars returns the byte offset of character n, or len(s).
func chars(s []byte, n int) int {
	i := 0
	for ; n > 0 && i < len(s); n-- {
		i += charLen(s[i:])
	}
	return i
}

func isASCII(s []byte) bool {
	for _, c := range s {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func errNegativeLength() error {
	return pgerr.New(pgerr.SubstringError, "negative substring length not allowed")
}

// substring appends characters [start, start+length) of s, counted from 1;
// length < 0 with has means an error, without it to the end.
func substring(dst, s []byte, start, length int64, has, isBytes bool) ([]byte, error) {
	end := int64(math.MaxInt64)
	if has {
		if length < 0 {
			return nil, errNegativeLength()
		}
		if e, ok := add64(start, length); ok {
			end = e
		}
	}
	from := max(start, 1)
	if end <= from {
		return dst, nil
	}
	if isBytes || isASCII(s) {
		if from > int64(len(s)) {
			return dst, nil
		}
		to := min(end-1, int64(len(s)))
		return append(dst, s[from-1:to]...), nil
	}
	if from > int64(len(s)) {
		return dst, nil
	}
	a := chars(s, int(from-1))
	b := len(s)
	if n := end - from; n < int64(len(s)) {
		b = a + chars(s[a:], int(n))
	}
	return append(dst, s[a:b]...), nil
}

// strpos returns the position of sub in s in characters from 1, 0 when absent.
func strpos(s, sub []byte) int64 {
	i := bytes.Index(s, sub)
	if i < 0 {
		return 0
	}
	return int64(utf8.RuneCount(s[:i])) + 1
}

func lowerASCII(dst, s []byte) ([]byte, error) {
	at := len(dst)
	dst = append(dst, s...)
	for i := at; i < len(dst); i++ {
		if c := dst[i]; c >= 'A' && c <= 'Z' {
			dst[i] = c + 32
		}
	}
	return dst, nil
}

func upperASCII(dst, s []byte) ([]byte, error) {
	at := len(dst)
	dst = append(dst, s...)
	for i := at; i < len(dst); i++ {
		if c := dst[i]; c >= 'a' && c <= 'z' {
			dst[i] = c - 32
		}
	}
	return dst, nil
}

func def(name string, ret types.Type, k Kernel, doc string, args ...types.Type) *Overload {
	return &Overload{Name: name, Args: args, Ret: ret, Strict: true, Kernel: k, Doc: doc}
}

func stringBasics() []*Overload {
	length := onDict(fn1(func(s []byte) (int64, error) { return int64(utf8.RuneCount(s)), nil }))
	sub2 := onDict(sfn2(func(dst, s []byte, from int64) ([]byte, error) { return substring(dst, s, from, 0, false, false) }))
	sub3 := onDict(sfn3(func(dst, s []byte, from, n int64) ([]byte, error) { return substring(dst, s, from, n, true, false) }))
	bsub2 := sfn2(func(dst, s []byte, from int64) ([]byte, error) { return substring(dst, s, from, 0, false, true) })
	bsub3 := sfn3(func(dst, s []byte, from, n int64) ([]byte, error) { return substring(dst, s, from, n, true, true) })
	const dl = "Number of characters."
	return []*Overload{
		def("length", tInt4, length, dl, tText),
		def("length", tInt4, length, "Number of characters, blanks at the end not counted.", types.Of(types.BpChar)),
		def("length", tInt4, fn1(func(s []byte) (int64, error) { return int64(len(s)), nil }), "Number of bytes.", tBytea),
		def("char_length", tInt4, length, dl, tText),
		def("char_length", tInt4, length, "Number of characters, blanks at the end not counted.", types.Of(types.BpChar)),
		def("character_length", tInt4, length, dl, tText),
		def("character_length", tInt4, length, "Number of characters, blanks at the end not counted.", types.Of(types.BpChar)),
		def("lower", tText, onDict(sfn1(lowerASCII)), "The string in lower case.", tText),
		def("upper", tText, onDict(sfn1(upperASCII)), "The string in upper case.", tText),
		def("substring", tText, sub2, "Part of a string from a character to the end.", tText, tInt4),
		def("substring", tText, sub3, "Part of a string from a character, of a length.", tText, tInt4, tInt4),
		def("substr", tText, sub2, "Part of a string from a character to the end.", tText, tInt4),
		def("substr", tText, sub3, "Part of a string from a character, of a length.", tText, tInt4, tInt4),
		def("substring", tBytea, bsub2, "Part of a byte string from a byte to the end.", tBytea, tInt4),
		def("substring", tBytea, bsub3, "Part of a byte string from a byte, of a length.", tBytea, tInt4, tInt4),
		def("substr", tBytea, bsub2, "Part of a byte string from a byte to the end.", tBytea, tInt4),
		def("substr", tBytea, bsub3, "Part of a byte string from a byte, of a length.", tBytea, tInt4, tInt4),
	}
}
