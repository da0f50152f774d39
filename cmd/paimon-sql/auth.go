package main

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"net"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/pgwire"
)

// superuser is the role whose password the server is started with.
const superuser = "paimon"

// authenticator lets everybody in without a password (trust), else asks for it
// with SCRAM-SHA-256. tlsOnly refuses clear text.
func authenticator(password string, tlsOnly bool) pgwire.Authenticator {
	a := &auth{tlsOnly: tlsOnly}
	if password != "" {
		a.verifiers = map[string]*verifier{superuser: newVerifier(password)}
		if _, err := rand.Read(a.mock[:]); err != nil {
			panic(err) // the system has no randomness
		}
	}
	return a
}

type auth struct {
	tlsOnly   bool
	verifiers map[string]*verifier // nil = trust
	mock      [32]byte             // salts for users that do not exist
}

// verifier is what is kept of a password (RFC 5802).
type verifier struct {
	salt                 []byte
	iterations           int
	storedKey, serverKey []byte
	fake                 bool
}

const scramIterations = 4096

func newVerifier(password string) *verifier {
	salt := make([]byte, 16)
	if _, err := rand.Read(salt); err != nil {
		panic(err) // the system has no randomness
	}
	return deriveVerifier(password, salt)
}

func deriveVerifier(password string, salt []byte) *verifier {
	salted, err := pbkdf2.Key(sha256.New, password, salt, scramIterations, sha256.Size)
	if err != nil {
		panic(err) // only for impossible lengths
	}
	stored := sha256.Sum256(mac(salted, "Client Key"))
	return &verifier{salt: salt, iterations: scramIterations, storedKey: stored[:], serverKey: mac(salted, "Server Key")}
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// lookup returns the verifier of a user. For one who does not exist it makes a
// verifier that no password fits, with a salt that is the same every time, so
// that the two cannot be told apart.
func (a *auth) lookup(user string) *verifier {
	if v := a.verifiers[user]; v != nil {
		return v
	}
	return &verifier{
		salt: mac(a.mock[:], user)[:16], iterations: scramIterations, fake: true,
		storedKey: mac(a.mock[:], "stored"), serverKey: mac(a.mock[:], "server"),
	}
}

const (
	scram     = "SCRAM-SHA-256"
	scramPlus = "SCRAM-SHA-256-PLUS"
)

func violation(format string, args ...any) error {
	return pgerr.New(pgerr.ProtocolViolation, format, args...)
}

// Authenticate runs the server's side of SCRAM.
func (a *auth) Authenticate(_ context.Context, x *pgwire.Exchange) error {
	if a.tlsOnly && x.TLS() == nil {
		host, _, err := net.SplitHostPort(x.Remote)
		if err != nil {
			host = x.Remote
		}
		return pgerr.New(pgerr.InvalidAuthorizationSpecification, "no pg_hba.conf entry for host %q, user %q, database %q, no encryption", host, x.User, x.Database)
	}
	if a.verifiers == nil {
		return nil
	}
	var binding []byte
	mechanisms := []string{scram}
	if x.TLS() != nil {
		if binding = certificateHash(x.Certificate()); binding != nil {
			mechanisms = []string{scramPlus, scram}
		}
	}
	mech, first, err := x.SASL(mechanisms...)
	if err != nil {
		return err
	}
	plus := mech == scramPlus && binding != nil
	if mech != scram && !plus {
		return violation("client selected an invalid SASL authentication mechanism")
	}
	if first == nil {
		if first, err = x.Continue(nil); err != nil {
			return err
		}
	}
	cf, err := parseClientFirst(string(first))
	if err != nil {
		return err
	}
	switch {
	case plus != strings.HasPrefix(cf.flag, "p="):
		return violation("malformed SCRAM message")
	case plus && cf.flag != "p=tls-server-end-point":
		return violation("unsupported SCRAM channel-binding type %q", cf.flag[2:])
	case cf.flag == "y" && binding != nil:
		return pgerr.New(pgerr.InvalidAuthorizationSpecification, "SCRAM channel binding negotiation error").
			WithDetail("The client supports SCRAM channel binding but thinks the server does not.  However, this server does support channel binding.")
	}
	v := a.lookup(x.User)
	nonce := make([]byte, 18)
	if _, err := rand.Read(nonce); err != nil {
		return err
	}
	full := cf.nonce + base64.StdEncoding.EncodeToString(nonce)
	serverFirst := "r=" + full + ",s=" + base64.StdEncoding.EncodeToString(v.salt) + ",i=4096"
	last, err := x.Continue([]byte(serverFirst))
	if err != nil {
		return err
	}
	// channel binding, nonce, proof
	body, proof64, ok := strings.Cut(string(last), ",p=")
	attrs := strings.Split(body, ",")
	if !ok || len(attrs) < 2 || !strings.HasPrefix(attrs[0], "c=") || !strings.HasPrefix(attrs[1], "r=") {
		return violation("malformed SCRAM message")
	}
	want := base64.StdEncoding.EncodeToString(append([]byte(cf.header), bindingOf(plus, binding)...))
	if attrs[0][2:] != want {
		return pgerr.New(pgerr.InvalidAuthorizationSpecification, "SCRAM channel binding check failed")
	}
	if attrs[1][2:] != full {
		return violation("invalid SCRAM response")
	}
	proof, err := base64.StdEncoding.DecodeString(proof64)
	if err != nil || len(proof) != sha256.Size {
		return violation("malformed SCRAM message")
	}
	message := cf.bare + "," + serverFirst + "," + body
	clientKey := make([]byte, sha256.Size)
	subtle.XORBytes(clientKey, proof, mac(v.storedKey, message))
	stored := sha256.Sum256(clientKey)
	if subtle.ConstantTimeCompare(stored[:], v.storedKey) != 1 || v.fake {
		return pgerr.New(pgerr.InvalidPassword, "password authentication failed for user %q", x.User)
	}
	x.Final([]byte("v=" + base64.StdEncoding.EncodeToString(mac(v.serverKey, message))))
	return nil
}

func bindingOf(plus bool, binding []byte) []byte {
	if plus {
		return binding
	}
	return nil
}

// clientFirst is a client-first-message: header, then user and nonce. The user
// of the start-up message counts, so the one here is not read.
type clientFirst struct{ flag, header, bare, nonce string }

func parseClientFirst(s string) (clientFirst, error) {
	flag, rest, ok := strings.Cut(s, ",")
	authz, bare, ok2 := strings.Cut(rest, ",")
	if !ok || !ok2 || authz != "" || flag != "n" && flag != "y" && !strings.HasPrefix(flag, "p=") {
		return clientFirst{}, violation("malformed SCRAM message")
	}
	c := clientFirst{flag: flag, header: flag + ",,", bare: bare}
	for i, a := range strings.Split(bare, ",") {
		switch {
		case strings.HasPrefix(a, "m="):
			return c, violation("client requires an unsupported SCRAM extension")
		case i == 0 && !strings.HasPrefix(a, "n="):
			return c, violation("malformed SCRAM message")
		case strings.HasPrefix(a, "r="):
			c.nonce = a[2:]
		}
	}
	if c.nonce == "" {
		return c, violation("malformed SCRAM message")
	}
	return c, nil
}

// certificateHash is tls-server-end-point (RFC 5929): the certificate's hash
// with its own signature's function, SHA-256 for MD5 and SHA-1.
func certificateHash(der []byte) []byte {
	if len(der) == 0 {
		return nil
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil
	}
	switch c.SignatureAlgorithm {
	case x509.SHA384WithRSA, x509.ECDSAWithSHA384, x509.SHA384WithRSAPSS:
		h := sha512.Sum384(der)
		return h[:]
	case x509.SHA512WithRSA, x509.ECDSAWithSHA512, x509.SHA512WithRSAPSS:
		h := sha512.Sum512(der)
		return h[:]
	case x509.PureEd25519, x509.UnknownSignatureAlgorithm:
		return nil // no hash is defined: channel binding is not offered
	}
	h := sha256.Sum256(der)
	return h[:]
}
