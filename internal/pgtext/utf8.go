package pgtext

import (
	"bytes"
	"unicode/utf8"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// CheckUTF8 is 22021 for bytes that are not UTF-8, and for NUL, which PostgreSQL
// does not let into a text. The message shows the first bad sequence.
func CheckUTF8(b []byte) error {
	if i := BadUTF8(b); i >= 0 {
		return BadSequence("UTF8", b[i:])
	}
	return nil
}

// BadUTF8 returns where the first sequence begins that is not UTF-8, or is NUL;
// -1 when there is none.
func BadUTF8(b []byte) int {
	if utf8.Valid(b) {
		return bytes.IndexByte(b, 0)
	}
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if b[i] == 0 || r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// BadSequence is the error for the sequence that b begins with, which is not of
// the encoding named. PostgreSQL shows as many bytes as the first one announces.
func BadSequence(encoding string, b []byte) error {
	want := 1
	if encoding == "UTF8" {
		want = Announced(b[0])
	}
	const hex = "0123456789abcdef"
	var s []byte
	for k, x := range b[:min(len(b), want)] {
		if k > 0 {
			s = append(s, ' ')
		}
		s = append(s, '0', 'x', hex[x>>4], hex[x&15])
	}
	return pgerr.New(pgerr.CharacterNotInRepertoire, "invalid byte sequence for encoding \"%s\": %s", encoding, s)
}

// Announced is how many bytes a UTF-8 sequence has by its first byte; 1 for what
// begins none.
func Announced(c byte) int {
	switch {
	case c >= 0xf8:
	case c >= 0xf0:
		return 4
	case c >= 0xe0:
		return 3
	case c >= 0xc0:
		return 2
	}
	return 1
}
