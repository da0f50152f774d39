package pgwire

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// Verifier is what is kept of a password: enough to check it, not to be it.
// Its text form is that of pg_authid.rolpassword:
//
//	SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey
type Verifier struct {
	Iterations                 int
	Salt, StoredKey, ServerKey []byte
}

const scramIterations = 4096 // PostgreSQL's default

// NewVerifier makes the verifier of a password, with a fresh salt.
func NewVerifier(password string) (Verifier, error) {
	salt := make([]byte, 16)
	rand.Read(salt) //nolint:errcheck // never fails
	return makeVerifier(password, salt, scramIterations)
}

func makeVerifier(password string, salt []byte, iterations int) (Verifier, error) {
	salted, err := pbkdf2.Key(sha256.New, saslPrep(password), salt, iterations, sha256.Size)
	if err != nil {
		return Verifier{}, err
	}
	stored := sha256.Sum256(sign(salted, []byte("Client Key")))
	return Verifier{Iterations: iterations, Salt: salt, StoredKey: stored[:], ServerKey: sign(salted, []byte("Server Key"))}, nil
}

// String returns the text form.
func (v Verifier) String() string {
	e := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", v.Iterations, e(v.Salt), e(v.StoredKey), e(v.ServerKey))
}

// Check reports whether a password is the verifier's.
func (v Verifier) Check(password string) bool {
	w, err := makeVerifier(password, v.Salt, v.Iterations)
	return err == nil && subtle.ConstantTimeCompare(v.StoredKey, w.StoredKey) == 1
}

// saslPrep prepares a password as PostgreSQL does, save for the characters that
// SASLprep forbids, which PostgreSQL then takes as they are.
func saslPrep(s string) string {
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

func sign(key, msg []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(msg)
	return h.Sum(nil)
}

// SCRAM authenticates by SCRAM-SHA-256 (RFC 5802, 7677), over TLS also with
// channel binding to the server's certificate (RFC 5929, tls-server-end-point).
type SCRAM struct {
	// Lookup finds a user's verifier.
	Lookup func(user string) (Verifier, bool)
	// RequireTLS refuses clear text with 28000.
	RequireTLS bool
	// mock makes the salts of users that do not exist: the same one each time, so
	// that nothing tells them from those who do.
	mock [32]byte
}

// NewSCRAM makes a SCRAM authenticator.
func NewSCRAM(lookup func(user string) (Verifier, bool)) *SCRAM {
	s := &SCRAM{Lookup: lookup}
	rand.Read(s.mock[:]) //nolint:errcheck // never fails
	return s
}

const (
	scramPlain = "SCRAM-SHA-256"
	scramPlus  = "SCRAM-SHA-256-PLUS"
)

// Authenticate implements Authenticator.
func (s *SCRAM) Authenticate(_ context.Context, x *Exchange) error {
	refused := pgerr.New(pgerr.InvalidPassword, "password authentication failed for user \"%s\"", x.User)
	malformed := func(what string) error {
		return pgerr.New(pgerr.ProtocolViolation, "malformed SCRAM message").WithDetail("%s", what)
	}
	if s.RequireTLS && x.TLS() == nil {
		host, _, _ := strings.Cut(x.Remote, ":")
		return pgerr.New(pgerr.InvalidAuthorizationSpecification,
			"no pg_hba.conf entry for host \"%s\", user \"%s\", database \"%s\", no encryption", host, x.User, x.Database)
	}
	offers := []string{scramPlain}
	var binding []byte
	if cert := x.Certificate(); x.TLS() != nil && cert != nil {
		if binding = endPoint(cert); binding != nil {
			offers = []string{scramPlus, scramPlain}
		}
	}
	v, known := s.Lookup(x.User)
	if !known {
		v = Verifier{Iterations: scramIterations, Salt: sign(s.mock[:], []byte(x.User))[:16], StoredKey: make([]byte, sha256.Size), ServerKey: make([]byte, sha256.Size)}
	}

	mech, first, err := x.SASL(offers...)
	if err != nil {
		return err
	}
	if mech != scramPlain && (mech != scramPlus || binding == nil) {
		return pgerr.New(pgerr.ProtocolViolation, "client selected an invalid SASL authentication mechanism")
	}
	// client-first: gs2 flag, "," authzid ",", then the bare message.
	parts := bytes.SplitN(first, []byte{','}, 3)
	if len(parts) < 3 {
		return malformed("Comma expected, but found end of message.")
	}
	header := first[:len(parts[0])+len(parts[1])+2]
	bare := parts[2]
	flag := string(parts[0])
	switch {
	case flag == "n", flag == "y":
		if mech == scramPlus {
			return malformed("The client selected SCRAM-SHA-256-PLUS, but the SCRAM message does not include channel binding data.")
		}
		// y: the client could bind, but believes that the server cannot. If we
		// offered it, somebody took the offer out.
		if flag == "y" && binding != nil {
			return pgerr.New(pgerr.InvalidAuthorizationSpecification, "SCRAM channel binding negotiation error").
				WithDetail("The client supports SCRAM channel binding but thinks the server does not.  However, this server does support channel binding.")
		}
	case strings.HasPrefix(flag, "p="):
		if mech != scramPlus {
			return malformed("The client selected SCRAM-SHA-256 without channel binding, but the SCRAM message includes channel binding data.")
		}
		if flag != "p=tls-server-end-point" {
			return pgerr.New(pgerr.ProtocolViolation, "unsupported SCRAM channel-binding type \"%s\"", flag[2:])
		}
	default:
		return malformed("Unexpected channel-binding flag.")
	}
	if len(parts[1]) > 0 {
		return pgerr.New(pgerr.FeatureNotSupported, "client uses authorization identity, but it is not supported")
	}
	attrs := scramAttrs(bare)
	nonce, ok := attrs['r']
	if !ok || nonce == "" || attrs['m'] != "" {
		return malformed("Nonce expected.")
	}
	var raw [18]byte
	rand.Read(raw[:]) //nolint:errcheck // never fails
	nonce += base64.StdEncoding.EncodeToString(raw[:])
	serverFirst := fmt.Sprintf("r=%s,s=%s,i=%d", nonce, base64.StdEncoding.EncodeToString(v.Salt), v.Iterations)
	final, err := x.Continue([]byte(serverFirst))
	if err != nil {
		return err
	}
	// client-final: c=binding,r=nonce[,extensions],p=proof
	i := bytes.LastIndex(final, []byte(",p="))
	if i < 0 {
		return malformed("Proof expected.")
	}
	attrs = scramAttrs(final[:i])
	want := append([]byte(nil), header...)
	if mech == scramPlus {
		want = append(want, binding...)
	}
	if attrs['c'] != base64.StdEncoding.EncodeToString(want) {
		if mech == scramPlus {
			return pgerr.New(pgerr.InvalidAuthorizationSpecification, "SCRAM channel binding check failed")
		}
		return malformed("Unexpected SCRAM channel-binding attribute in client-final-message.")
	}
	if attrs['r'] != nonce {
		return malformed("Nonce does not match.")
	}
	proof, err := base64.StdEncoding.DecodeString(string(final[i+3:]))
	if err != nil || len(proof) != sha256.Size {
		return malformed("Malformed proof in client-final-message.")
	}
	auth := append(append(append(append(append([]byte(nil), bare...), ','), serverFirst...), ','), final[:i]...)
	sig := sign(v.StoredKey, auth)
	for k := range proof {
		proof[k] ^= sig[k]
	}
	stored := sha256.Sum256(proof)
	if subtle.ConstantTimeCompare(stored[:], v.StoredKey) != 1 || !known {
		return refused
	}
	x.Final([]byte("v=" + base64.StdEncoding.EncodeToString(sign(v.ServerKey, auth))))
	return nil
}

// scramAttrs reads k=v pairs divided by commas.
func scramAttrs(b []byte) map[byte]string {
	out := map[byte]string{}
	for _, p := range bytes.Split(b, []byte{','}) {
		if len(p) >= 2 && p[1] == '=' {
			out[p[0]] = string(p[2:])
		}
	}
	return out
}

// endPoint is the channel binding of a certificate: its hash with the hash of
// its signature, SHA-256 for the old ones; nil when there is none.
func endPoint(der []byte) []byte {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil
	}
	switch cert.SignatureAlgorithm {
	case x509.SHA384WithRSA, x509.ECDSAWithSHA384, x509.SHA384WithRSAPSS:
		h := sha512.Sum384(der)
		return h[:]
	case x509.SHA512WithRSA, x509.ECDSAWithSHA512, x509.SHA512WithRSAPSS:
		h := sha512.Sum512(der)
		return h[:]
	case x509.UnknownSignatureAlgorithm, x509.PureEd25519:
		return nil
	}
	h := sha256.Sum256(der)
	return h[:]
}
