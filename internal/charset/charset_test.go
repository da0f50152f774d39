package charset

import (
	"bytes"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// TestRoundTrip: what an encoding's bytes become goes back to a character that is
// the same one, whatever bytes stand for it.
func TestRoundTrip(t *testing.T) {
	for _, name := range aliases {
		s := For(name)
		if s == nil {
			continue
		}
		n := 0
		for a := 0x80; a < 0x100; a++ {
			for b := 0x40; b < 0x100; b++ {
				in := []byte{byte(a), byte(b)}
				out, err := s.ToServer(in)
				if err != nil {
					continue
				}
				n++
				if !utf8.Valid(out) {
					t.Fatalf("%s %x: not UTF-8: %x", name, in, out)
				}
				back, err := s.ToClient(nil, out)
				if err != nil {
					continue // Go's tables decode some that they do not encode
				}
				again, err := s.ToServer(back)
				if err != nil || !bytes.Equal(again, out) {
					t.Fatalf("%s %x: %q goes back to %x, %v", name, in, out, back, err)
				}
			}
		}
		if n < 1000 {
			t.Errorf("%s has %d characters", name, n)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name, in string
		code     pgerr.Code
		message  string
	}{
		{"WIN1252", "a\x81", pgerr.UntranslatableCharacter, `character with byte sequence 0x81 in encoding "WIN1252" has no equivalent in encoding "UTF8"`},
		{"EUC_JP", "\xff\xfe", pgerr.CharacterNotInRepertoire, `invalid byte sequence for encoding "EUC_JP": 0xff 0xfe`},
		{"SJIS", "a\x81", pgerr.CharacterNotInRepertoire, `invalid byte sequence for encoding "SJIS": 0x81`},
	} {
		_, err := For(c.name).ToServer([]byte(c.in))
		var e *pgerr.Error
		if !errors.As(err, &e) || e.Code != c.code || e.Message != c.message {
			t.Errorf("%s %x: %v", c.name, c.in, err)
		}
	}
	if b := For("LATIN1").Lossy(nil, "é€x"); string(b) != "\xe9?x" {
		t.Errorf("lossy: %x", b)
	}
}
