// Package charset converts between UTF-8 and the encodings that PostgreSQL's clients
// may ask for by client_encoding.
package charset

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// Set is an encoding of clients. A nil *Set converts nothing. Safe for concurrent
// use.
type Set struct {
	// Name is PostgreSQL's, as SHOW client_encoding prints it.
	Name string

	toByte map[rune]byte // of one byte a character
	toRune [256]rune     // utf8.RuneError = no such character
	multi  encoding.Encoding
	// size is how many bytes the character takes that begins with b[0] >= 0x80.
	size func(b []byte) int
}

// UTF8 and SQLASCII convert nothing. The bytes of the second are checked as UTF-8,
// the encoding of the server.
const (
	UTF8     = "UTF8"
	SQLASCII = "SQL_ASCII"
)

// aliases are PostgreSQL's names without - and _, in lower case. Source: encnames.c.
var aliases = map[string]string{
	"utf8": UTF8, "unicode": UTF8, "sqlascii": SQLASCII, "muleinternal": "MULE_INTERNAL",
	"latin1": "LATIN1", "iso88591": "LATIN1", "latin2": "LATIN2", "iso88592": "LATIN2", "latin3": "LATIN3", "iso88593": "LATIN3",
	"latin4": "LATIN4", "iso88594": "LATIN4", "latin5": "LATIN5", "iso88599": "LATIN5", "latin6": "LATIN6", "iso885910": "LATIN6",
	"latin7": "LATIN7", "iso885913": "LATIN7", "latin8": "LATIN8", "iso885914": "LATIN8", "latin9": "LATIN9", "iso885915": "LATIN9",
	"latin10": "LATIN10", "iso885916": "LATIN10", "iso88595": "ISO_8859_5", "iso88596": "ISO_8859_6", "iso88597": "ISO_8859_7",
	"iso88598": "ISO_8859_8", "win1250": "WIN1250", "windows1250": "WIN1250", "win1251": "WIN1251", "windows1251": "WIN1251", "win": "WIN1251",
	"win1252": "WIN1252", "windows1252": "WIN1252", "win1253": "WIN1253", "windows1253": "WIN1253", "win1254": "WIN1254",
	"windows1254": "WIN1254", "win1255": "WIN1255", "windows1255": "WIN1255", "win1256": "WIN1256", "windows1256": "WIN1256",
	"win1257": "WIN1257", "windows1257": "WIN1257", "win1258": "WIN1258", "windows1258": "WIN1258", "abc": "WIN1258", "tcvn": "WIN1258",
	"tcvn5712": "WIN1258", "vscii": "WIN1258", "win866": "WIN866", "windows866": "WIN866", "alt": "WIN866", "win874": "WIN874", "windows874": "WIN874",
	"koi8": "KOI8R", "koi8r": "KOI8R", "koi8u": "KOI8U", "eucjp": "EUC_JP", "sjis": "SJIS", "shiftjis": "SJIS", "mskanji": "SJIS",
	"win932": "SJIS", "windows932": "SJIS", "gbk": "GBK", "win936": "GBK", "windows936": "GBK", "uhc": "UHC", "win949": "UHC",
	"windows949": "UHC", "big5": "BIG5", "win950": "BIG5", "windows950": "BIG5", "gb18030": "GB18030", "euckr": "EUC_KR", "euccn": "EUC_CN",
	"euctw": "EUC_TW", "johab": "JOHAB", "eucjis2004": "EUC_JIS_2004", "shiftjis2004": "SHIFT_JIS_2004",
}

// Canonical returns PostgreSQL's name of an encoding that clients may ask for; letters
// and digits decide.
func Canonical(name string) (string, bool) {
	var b strings.Builder
	for _, c := range strings.ToLower(name) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			b.WriteRune(c)
		}
	}
	n, ok := aliases[b.String()]
	return n, ok
}

var bytewise = map[string]*charmap.Charmap{
	"LATIN1": charmap.ISO8859_1, "LATIN2": charmap.ISO8859_2, "LATIN3": charmap.ISO8859_3, "LATIN4": charmap.ISO8859_4,
	"LATIN5": charmap.ISO8859_9, "LATIN6": charmap.ISO8859_10, "LATIN7": charmap.ISO8859_13, "LATIN8": charmap.ISO8859_14,
	"LATIN9": charmap.ISO8859_15, "LATIN10": charmap.ISO8859_16, "ISO_8859_5": charmap.ISO8859_5, "ISO_8859_6": charmap.ISO8859_6,
	"ISO_8859_7": charmap.ISO8859_7, "ISO_8859_8": charmap.ISO8859_8, "WIN1250": charmap.Windows1250, "WIN1251": charmap.Windows1251,
	"WIN1252": charmap.Windows1252, "WIN1253": charmap.Windows1253, "WIN1254": charmap.Windows1254, "WIN1255": charmap.Windows1255,
	"WIN1256": charmap.Windows1256, "WIN1257": charmap.Windows1257, "WIN1258": charmap.Windows1258, "WIN866": charmap.CodePage866,
	"WIN874": charmap.Windows874, "KOI8R": charmap.KOI8R, "KOI8U": charmap.KOI8U,
}

// differs are the characters that PostgreSQL's tables have otherwise than Go's.
var differs = map[string]map[byte]rune{
	"WIN1255": {0xca: utf8.RuneError},
	"KOI8U":   {0xae: 0x255d, 0xbe: 0x256c},
}

var multibyte = map[string]encoding.Encoding{
	"EUC_JP": japanese.EUCJP, "SJIS": japanese.ShiftJIS, "GBK": simplifiedchinese.GBK, "GB18030": simplifiedchinese.GB18030,
	"BIG5": traditionalchinese.Big5, "EUC_KR": korean.EUCKR, "UHC": korean.EUCKR, "EUC_CN": simplifiedchinese.GBK,
}

// Known reports whether For has a converter for a canonical name.
func Known(name string) bool {
	return name == UTF8 || name == SQLASCII || bytewise[name] != nil || multibyte[name] != nil
}

// For returns the converter of a canonical name; nil for those that convert nothing.
func For(name string) *Set {
	if m := multibyte[name]; m != nil {
		return &Set{Name: name, multi: m, size: sizes(name)}
	}
	m := bytewise[name]
	if m == nil {
		return nil
	}
	s := &Set{Name: name, toByte: map[rune]byte{}}
	for i := range 256 {
		r := m.DecodeByte(byte(i))
		// The C1 controls, which Go's tables follow the web in, are characters of the
		// ISO sets and none of PostgreSQL's Windows sets.
		if i >= 0x80 && i < 0xa0 {
			iso := strings.HasPrefix(name, "LATIN") || strings.HasPrefix(name, "ISO")
			if iso {
				r = rune(i)
			} else if r == rune(i) {
				r = utf8.RuneError
			}
		}
		if o, ok := differs[name][byte(i)]; ok {
			r = o
		}
		if s.toRune[i] = r; r != utf8.RuneError {
			s.toByte[r] = byte(i)
		}
	}
	return s
}

// sizes returns the length of the character that begins with a byte above ASCII.
// Source: wchar.c.
func sizes(name string) func([]byte) int {
	switch name {
	case "EUC_JP":
		return func(b []byte) int {
			if b[0] == 0x8f {
				return 3
			}
			return 2
		}
	case "SJIS":
		return func(b []byte) int {
			if b[0] >= 0xa1 && b[0] <= 0xdf {
				return 1
			}
			return 2
		}
	case "GB18030":
		return func(b []byte) int {
			if len(b) > 1 && b[1] >= 0x30 && b[1] <= 0x39 {
				return 4
			}
			return 2
		}
	}
	return func([]byte) int { return 2 }
}

func ascii(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// ToServer converts what a client sent to UTF-8. It returns b itself where there is
// nothing to convert. Bytes that are not of the encoding are 22021, characters that
// UTF-8 has no equivalent of 22P05.
func (s *Set) ToServer(b []byte) ([]byte, error) {
	if s == nil || ascii(b) {
		return b, nil
	}
	out := make([]byte, 0, len(b)+len(b)/2)
	if s.multi == nil {
		for _, c := range b {
			r := s.toRune[c]
			if r == utf8.RuneError {
				return nil, s.untranslatable([]byte{c}, s.Name, UTF8)
			}
			out = utf8.AppendRune(out, r)
		}
		return out, nil
	}
	dec := s.multi.NewDecoder()
	for i := 0; i < len(b); {
		if b[i] < 0x80 {
			out = append(out, b[i])
			i++
			continue
		}
		n := s.size(b[i:])
		if i+n > len(b) {
			return nil, s.invalid(b[i:])
		}
		if strings.HasPrefix(s.Name, "EUC_") && s.multi != japanese.EUCJP && !euc(b[i:i+n]) {
			return nil, s.invalid(b[i : i+n])
		}
		v, err := dec.Bytes(b[i : i+n])
		if err != nil || len(v) == 0 || strings.ContainsRune(string(v), utf8.RuneError) {
			for _, c := range b[i+1 : i+n] {
				if c < 0x40 && n < 4 || c == 0x7f || c == 0xff {
					return nil, s.invalid(b[i : i+n])
				}
			}
			if b[i] == 0xff || b[i] == 0x80 || s.Name == "SJIS" && b[i] > 0xfc {
				return nil, s.invalid(b[i : i+n])
			}
			return nil, s.untranslatable(b[i:i+n], s.Name, UTF8)
		}
		out = append(out, v...)
		i += n
	}
	return out, nil
}

// ToClient appends the client's form of b, which is UTF-8, to dst. A character that
// the encoding does not have is 22P05.
func (s *Set) ToClient(dst, b []byte) ([]byte, error) {
	if s == nil || ascii(b) {
		return append(dst, b...), nil
	}
	if s.multi == nil {
		for i := 0; i < len(b); {
			r, n := utf8.DecodeRune(b[i:])
			c, ok := s.toByte[r]
			if !ok || r == utf8.RuneError {
				return dst, s.untranslatable(b[i:i+n], UTF8, s.Name)
			}
			dst = append(dst, c)
			i += n
		}
		return dst, nil
	}
	enc := s.multi.NewEncoder()
	for i := 0; i < len(b); {
		if b[i] < 0x80 {
			dst = append(dst, b[i])
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		v, err := enc.Bytes(b[i : i+n])
		if r == '€' && s.multi == simplifiedchinese.GBK { // Go has it at 0x80, as the web does
			v = []byte{0xa2, 0xe3}
		}
		if err != nil || s.Name == "EUC_KR" && !euc(v) || s.Name == "EUC_CN" && !euc(v) {
			return dst, s.untranslatable(b[i:i+n], UTF8, s.Name)
		}
		dst = append(dst, v...)
		i += n
	}
	return dst, nil
}

// euc reports whether a character of a Windows code page is of the EUC set in it.
func euc(v []byte) bool {
	for _, c := range v {
		if c < 0xa1 {
			return false
		}
	}
	return true
}

// Lossy is ToClient with ? in the place of what the encoding does not have: for what
// must be said.
func (s *Set) Lossy(dst []byte, text string) []byte {
	if s == nil {
		return append(dst, text...)
	}
	for i := 0; i < len(text); {
		_, n := utf8.DecodeRuneInString(text[i:])
		out, err := s.ToClient(dst, []byte(text[i:i+n]))
		if err != nil {
			out = append(dst, '?')
		}
		dst = out
		i += n
	}
	return dst
}

func hexes(b []byte) string {
	const hex = "0123456789abcdef"
	var s []byte
	for k, x := range b {
		if k > 0 {
			s = append(s, ' ')
		}
		s = append(s, '0', 'x', hex[x>>4], hex[x&15])
	}
	return string(s)
}

func (s *Set) untranslatable(b []byte, from, to string) error {
	return pgerr.New(pgerr.UntranslatableCharacter, "character with byte sequence %s in encoding \"%s\" has no equivalent in encoding \"%s\"", hexes(b), from, to)
}

func (s *Set) invalid(b []byte) error {
	return pgerr.New(pgerr.CharacterNotInRepertoire, "invalid byte sequence for encoding \"%s\": %s", s.Name, hexes(b))
}
