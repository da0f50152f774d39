package main

import (
	"context"
	"net"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/pgwire"
)

// superuser is the role whose password the server is started with.
const superuser = "paimon"

// authenticator lets everybody in without a password (trust), else asks for it
// with SCRAM-SHA-256. tlsOnly refuses clear text.
func authenticator(password string, tlsOnly bool) (pgwire.Authenticator, error) {
	a := &auth{tlsOnly: tlsOnly}
	if password == "" {
		return a, nil
	}
	v, err := pgwire.NewVerifier(password)
	if err != nil {
		return nil, err
	}
	a.scram = pgwire.NewSCRAM(func(user string) (pgwire.Verifier, bool) { return v, user == superuser })
	return a, nil
}

type auth struct {
	tlsOnly bool
	scram   *pgwire.SCRAM // nil = trust
}

// Authenticate refuses clear text where it must, then asks for the password.
func (a *auth) Authenticate(ctx context.Context, x *pgwire.Exchange) error {
	if a.tlsOnly && x.TLS() == nil {
		host, _, err := net.SplitHostPort(x.Remote)
		if err != nil {
			host = x.Remote
		}
		return pgerr.New(pgerr.InvalidAuthorizationSpecification, "no pg_hba.conf entry for host %q, user %q, database %q, no encryption", host, x.User, x.Database)
	}
	if a.scram == nil {
		return nil
	}
	return a.scram.Authenticate(ctx, x)
}
