package function

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
)

// Binary text, character sets and Unicode.

func errEncoding(name string) error {
	return pgerr.New(pgerr.InvalidParameterValue, "unrecognized encoding: \"%s\"", name)
}

func encodeBytes(dst, b []byte, enc string) ([]byte, error) {
	switch strings.ToLower(enc) {
	case "hex":
		return hex.AppendEncode(dst, b), nil
	case "base64":
		// A line break after every 76 characters, as in MIME.
		for len(b) > 57 {
			dst = append(base64.StdEncoding.AppendEncode(dst, b[:57]), '\n')
			b = b[57:]
		}
		return base64.StdEncoding.AppendEncode(dst, b), nil
	case "escape":
		for _, c := range b {
			switch {
			case c == '\\':
				dst = append(dst, '\\', '\\')
			case c == 0 || c >= 0x80:
				dst = append(dst, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
			default:
				dst = append(dst, c)
			}
		}
		return dst, nil
	}
	return nil, errEncoding(enc)
}

func decodeBytes(dst []byte, s []byte, enc string) ([]byte, error) {
	switch strings.ToLower(enc) {
	case "hex":
		b, err := pgtext.ParseHex(string(s))
		return append(dst, b...), err
	case "base64":
		return decodeBase64(dst, s)
	case "escape":
		b, err := pgtext.ParseBytea(string(s))
		return append(dst, b...), err
	}
	return nil, errEncoding(enc)
}

func decodeBase64(dst, s []byte) ([]byte, error) {
	var buf uint32
	pos, end := 0, 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		var v uint32
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			continue
		case c == '=':
			if end == 0 {
				if pos == 2 {
					end = 1
				} else if pos == 3 {
					end = 2
				} else {
					return nil, pgerr.New(pgerr.InvalidParameterValue, "unexpected \"=\" while decoding base64 sequence")
				}
			}
		case c >= 'A' && c <= 'Z':
			v = uint32(c - 'A')
		case c >= 'a' && c <= 'z':
			v = uint32(c-'a') + 26
		case c >= '0' && c <= '9':
			v = uint32(c-'0') + 52
		case c == '+':
			v = 62
		case c == '/':
			v = 63
		default:
			_, n := utf8.DecodeRune(s[i:])
			return nil, pgerr.New(pgerr.InvalidParameterValue, "invalid symbol \"%s\" found while decoding base64 sequence", s[i:i+n])
		}
		buf = buf<<6 + v
		if pos++; pos == 4 {
			dst = append(dst, byte(buf>>16))
			if end == 0 || end > 1 {
				dst = append(dst, byte(buf>>8))
			}
			if end == 0 || end > 2 {
				dst = append(dst, byte(buf))
			}
			buf, pos = 0, 0
		}
	}
	if pos != 0 {
		return nil, pgerr.New(pgerr.InvalidParameterValue, "invalid base64 end sequence").
			WithHint("Input data is missing padding, is truncated, or is otherwise corrupted.")
	}
	return dst, nil
}

func checkUTF8(b []byte) error {
	if utf8.Valid(b) {
		if i := bytes.IndexByte(b, 0); i < 0 {
			return nil
		}
	}
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 || b[i] == 0 {
			seq := make([]string, 0, 4)
			want := 1
			switch {
			case b[i]&0xe0 == 0xc0:
				want = 2
			case b[i]&0xf0 == 0xe0:
				want = 3
			case b[i]&0xf8 == 0xf0:
				want = 4
			}
			for k := i; k < len(b) && k < i+want; k++ {
				seq = append(seq, "0x"+hex.EncodeToString(b[k:k+1]))
			}
			return pgerr.New(pgerr.CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\": %s", strings.Join(seq, " "))
		}
		i += n
	}
	return nil
}

func encodingName(s string) (string, bool) {
	switch strings.ToUpper(strings.NewReplacer("-", "", "_", "", " ", "").Replace(s)) {
	case "UTF8", "UNICODE":
		return "UTF8", true
	case "SQLASCII":
		return "SQL_ASCII", true
	case "LATIN1", "ISO88591":
		return "LATIN1", true
	}
	return "", false
}

func convertFrom(dst, b []byte, enc string) ([]byte, error) {
	name, ok := encodingName(enc)
	if !ok {
		return nil, pgerr.New(pgerr.InvalidParameterValue, "invalid source encoding name \"%s\"", enc)
	}
	if name == "LATIN1" {
		for _, c := range b {
			dst = utf8.AppendRune(dst, rune(c))
		}
		return dst, nil
	}
	if err := checkUTF8(b); err != nil {
		return nil, err
	}
	return append(dst, b...), nil
}

func convertTo(dst, s []byte, enc string) ([]byte, error) {
	name, ok := encodingName(enc)
	if !ok {
		return nil, pgerr.New(pgerr.InvalidParameterValue, "invalid destination encoding name \"%s\"", enc)
	}
	if name == "LATIN1" {
		for _, r := range string(s) {
			if r > 255 {
				return nil, pgerr.New(pgerr.UntranslatableCharacter, "character with byte sequence %s in encoding \"UTF8\" has no equivalent in encoding \"LATIN1\"", hexSeq(string(r)))
			}
			dst = append(dst, byte(r))
		}
		return dst, nil
	}
	return append(dst, s...), nil
}

func hexSeq(s string) string {
	var p []string
	for i := 0; i < len(s); i++ {
		p = append(p, "0x"+hex.EncodeToString([]byte{s[i]}))
	}
	return strings.Join(p, " ")
}

func errIndex(i int64, n int) error {
	return pgerr.New(pgerr.ArraySubscriptError, "index %d out of valid range, 0..%d", i, n-1)
}

func normalForm(s string) (norm.Form, error) {
	switch strings.ToUpper(s) {
	case "NFC":
		return norm.NFC, nil
	case "NFD":
		return norm.NFD, nil
	case "NFKC":
		return norm.NFKC, nil
	case "NFKD":
		return norm.NFKD, nil
	}
	return norm.NFC, pgerr.New(pgerr.InvalidParameterValue, "invalid normalization form: %s", s)
}

func unistr(dst, s []byte) ([]byte, error) {
	bad := func() error {
		return pgerr.New(pgerr.SyntaxError, "invalid Unicode escape").
			WithHint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.")
	}
	var high rune
	for len(s) > 0 {
		if s[0] != '\\' {
			if high != 0 {
				return nil, pgerr.New(pgerr.SyntaxError, "invalid Unicode surrogate pair")
			}
			dst = append(dst, s[0])
			s = s[1:]
			continue
		}
		if len(s) > 1 && s[1] == '\\' {
			dst = append(dst, '\\')
			s = s[2:]
			continue
		}
		skip, n := 1, 4
		if len(s) > 1 {
			switch s[1] {
			case '+':
				skip, n = 2, 6
			case 'u':
				skip = 2
			case 'U':
				skip, n = 2, 8
			}
		}
		if len(s) < skip+n {
			return nil, bad()
		}
		v, err := strconv.ParseUint(string(s[skip:skip+n]), 16, 32)
		if err != nil {
			return nil, bad()
		}
		r := rune(v)
		s = s[skip+n:]
		switch {
		case v == 0 || v > utf8.MaxRune:
			return nil, pgerr.New(pgerr.InvalidParameterValue, "invalid Unicode code point: %04X", v)
		case r >= 0xd800 && r < 0xdc00 && high == 0:
			high = r
			continue
		case r >= 0xdc00 && r < 0xe000 && high != 0:
			r = 0x10000 + (high-0xd800)<<10 + (r - 0xdc00)
			high = 0
		case high != 0 || r >= 0xd800 && r < 0xe000:
			return nil, pgerr.New(pgerr.SyntaxError, "invalid Unicode surrogate pair")
		}
		dst = utf8.AppendRune(dst, r)
	}
	if high != 0 {
		return nil, pgerr.New(pgerr.SyntaxError, "invalid Unicode surrogate pair")
	}
	return dst, nil
}
