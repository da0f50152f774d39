// Package scram makes and checks what is kept of passwords: the verifiers of
// SCRAM-SHA-256 (RFC 5802, 7677). The exchange with a client is in pgwire.
package scram

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Iterations is PostgreSQL's default number of rounds.
const Iterations = 4096

// maxIterations bounds the rounds of a verifier that a client hands in: Check
// must not become a way to keep a CPU busy.
const maxIterations = 1 << 20

// Verifier is what is kept of a password: enough to check it, not to be it.
// Its text form is that of pg_authid.rolpassword:
//
//	SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey
type Verifier struct {
	Iterations                 int
	Salt, StoredKey, ServerKey []byte
}

// New makes the verifier of a password, with a fresh salt.
func New(password string) (Verifier, error) {
	salt := make([]byte, 16)
	rand.Read(salt) //nolint:errcheck // never fails
	return Make(password, salt, Iterations)
}

// Make makes the verifier of a password with a given salt.
func Make(password string, salt []byte, iterations int) (Verifier, error) {
	salted, err := pbkdf2.Key(sha256.New, prepare(password), salt, iterations, sha256.Size)
	if err != nil {
		return Verifier{}, err
	}
	stored := sha256.Sum256(Sign(salted, []byte("Client Key")))
	return Verifier{Iterations: iterations, Salt: salt, StoredKey: stored[:], ServerKey: Sign(salted, []byte("Server Key"))}, nil
}

// Parse reads the text form; ok is false for anything else, such as a password.
func Parse(s string) (v Verifier, ok bool) {
	rest, ok := strings.CutPrefix(s, "SCRAM-SHA-256$")
	if !ok {
		return v, false
	}
	head, keys, ok1 := strings.Cut(rest, "$")
	count, salt, ok2 := strings.Cut(head, ":")
	stored, server, ok3 := strings.Cut(keys, ":")
	if !ok1 || !ok2 || !ok3 {
		return v, false
	}
	var err error
	if v.Iterations, err = strconv.Atoi(count); err != nil || v.Iterations < 1 || v.Iterations > maxIterations {
		return Verifier{}, false
	}
	for _, f := range []struct {
		to   *[]byte
		from string
		size int // 0 = any
	}{{&v.Salt, salt, 0}, {&v.StoredKey, stored, sha256.Size}, {&v.ServerKey, server, sha256.Size}} {
		b, err := base64.StdEncoding.DecodeString(f.from)
		if err != nil || len(b) == 0 || f.size > 0 && len(b) != f.size {
			return Verifier{}, false
		}
		*f.to = b
	}
	return v, true
}

// Mock is the verifier of a user who does not exist: no proof fits it, and its
// salt is always the same for one name and secret, so that asking twice tells
// nothing.
func Mock(secret []byte, user string) Verifier {
	return Verifier{
		Iterations: Iterations, Salt: Sign(secret, []byte(user))[:16],
		StoredKey: make([]byte, sha256.Size), ServerKey: make([]byte, sha256.Size),
	}
}

// String returns the text form.
func (v Verifier) String() string {
	e := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", v.Iterations, e(v.Salt), e(v.StoredKey), e(v.ServerKey))
}

// Check reports whether a password is the verifier's.
func (v Verifier) Check(password string) bool {
	w, err := Make(password, v.Salt, v.Iterations)
	return err == nil && subtle.ConstantTimeCompare(v.StoredKey, w.StoredKey) == 1
}

// Sign is HMAC-SHA-256.
func Sign(key, msg []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(msg)
	return h.Sum(nil)
}

// prepare is SASLprep as PostgreSQL does it, save for the characters that
// SASLprep forbids, which PostgreSQL then takes as they are.
func prepare(s string) string {
	ascii := true
	for i := range len(s) {
		ascii = ascii && s[i] < 0x80
	}
	if ascii {
		return s
	}
	return norm.NFKC.String(strings.Map(func(r rune) rune {
		switch {
		case r > 0x7f && unicode.Is(unicode.Zs, r):
			return ' '
		case r == 0xad || r == 0x34f || r >= 0x180b && r <= 0x180d || r >= 0x200b && r <= 0x200d || r == 0x2060 || r >= 0xfe00 && r <= 0xfe0f || r == 0xfeff:
			return -1 // commonly mapped to nothing (RFC 3454, B.1)
		}
		return r
	}, s))
}
