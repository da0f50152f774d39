package pgwire

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"fmt"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/scram"
)

// Verifier is what is kept of a password.
type Verifier = scram.Verifier

// NewVerifier makes the verifier of a password, with a fresh salt.
func NewVerifier(password string) (Verifier, error) { return scram.New(password) }

// SCRAM authenticates by SCRAM-SHA-256 (RFC 5802, 7677), over TLS also with
// channel binding to the server's certificate (RFC 5929, tls-server-end-point).
type SCRAM struct {
	// Lookup finds a user's verifier.
	Lookup func(user string) (Verifier, bool)
	// RequireTLS refuses clear text with 28000.
	RequireTLS bool
	// Secret, when it returns one, makes the salts of users that do not exist: the
	// same one each time, also after a restart, so that nothing tells them from
	// those who do.
	Secret func() []byte
	mock   [32]byte // else
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
		return x.noEntry()
	}
	offers := []string{scramPlain}
	var binding []byte
	if cert := x.Certificate(); x.TLS() != nil && cert != nil {
		if binding = endPoint(cert); binding != nil {
			offers = []string{scramPlus, scramPlain}
		}
	}
	// The mock is made for everybody: known names must not be faster.
	secret := s.mock[:]
	if s.Secret != nil {
		if k := s.Secret(); len(k) > 0 {
			secret = k
		}
	}
	v := scram.Mock(secret, x.User)
	have, known := s.Lookup(x.User)
	if known {
		v = have
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
	case len(flag) > 1 && flag[:2] == "p=":
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
	sig := scram.Sign(v.StoredKey, auth)
	for k := range proof {
		proof[k] ^= sig[k]
	}
	stored := sha256.Sum256(proof)
	if subtle.ConstantTimeCompare(stored[:], v.StoredKey) != 1 || !known {
		return refused
	}
	x.Final([]byte("v=" + base64.StdEncoding.EncodeToString(scram.Sign(v.ServerKey, auth))))
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
