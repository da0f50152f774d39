package main

import (
	"context"
	"sync/atomic"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/scram"
	"github.com/paimon-sql/paimon-sql/pgwire"
)

// superuser is the role whose password the server is started with.
const superuser = "paimon"

// roleSource is what the engine knows of roles. Its methods are asked before
// anybody is let in: they must be fast and safe for concurrent use.
type roleSource interface {
	// Verifier is what a role's password is checked with; false when there is no such
	// role, or it has no password, or the password has expired.
	Verifier(ctx context.Context, user string) (scram.Verifier, bool)
	// IsMember reports whether a role is a member of another, also by way of others.
	IsMember(ctx context.Context, user, role string) bool
	// LoginSecret is the same for every server of the warehouse; nil = none was made.
	LoginSecret(ctx context.Context) []byte
}

// auth decides who may connect: everybody (neither password nor rules), whoever
// has a password, or as the rules of an access file say.
type auth struct {
	tlsOnly  bool
	password *scram.Verifier // of the superuser, from outside; nil = none
	file     string          // of rules; "" = none
	rules    atomic.Pointer[[]pgwire.HBARule]
	seen     atomic.Pointer[[]pgwire.HBARule] // of the file as it was read last, with its mistakes
	roles    atomic.Pointer[roleSource]
	scram    *pgwire.SCRAM
	access   *pgwire.Access
}

// newAuth reads what --password-file and --hba-file name.
func newAuth(password, hbaFile string, tlsOnly bool) (*auth, error) {
	a := &auth{tlsOnly: tlsOnly, file: hbaFile}
	if password != "" {
		v, err := scram.New(password)
		if err != nil {
			return nil, err
		}
		a.password = &v
	}
	a.scram = pgwire.NewSCRAM(a.verifier)
	a.scram.Secret = func() []byte {
		if r := a.roles.Load(); r != nil {
			return (*r).LoginSecret(context.Background())
		}
		return nil
	}
	a.access = &pgwire.Access{
		Rules: func() []pgwire.HBARule { return *a.rules.Load() }, SCRAM: a.scram,
		Member: func(user, role string) bool {
			r := a.roles.Load()
			return r != nil && (*r).IsMember(context.Background(), user, role)
		},
	}
	return a, a.reload()
}

// rolesOf lets the roles of a warehouse in, once it is open.
func (a *auth) rolesOf(r roleSource) { a.roles.Store(&r) }

// open reports whether every user name is let in.
func (a *auth) open() bool { return a.password == nil && a.file == "" }

// reload reads the access file anew. With a mistake in it the rules stay.
func (a *auth) reload() error {
	if a.file == "" {
		return nil
	}
	rules, err := pgwire.ReadHBA(a.file)
	a.seen.Store(&rules)
	if err != nil {
		return err
	}
	a.rules.Store(&rules)
	return nil
}

func (a *auth) verifier(user string) (scram.Verifier, bool) {
	if user == superuser && a.password != nil {
		return *a.password, true
	}
	if r := a.roles.Load(); r != nil {
		return (*r).Verifier(context.Background(), user)
	}
	return scram.Verifier{}, false
}

// Authenticate refuses clear text where it must, then asks for what is asked for.
func (a *auth) Authenticate(ctx context.Context, x *pgwire.Exchange) error {
	switch {
	case a.tlsOnly && x.TLS() == nil:
		return pgerr.New(pgerr.InvalidAuthorizationSpecification, "no pg_hba.conf entry for host \"%s\", user \"%s\", database \"%s\", no encryption", x.Host(), x.User, x.Database)
	case a.file != "":
		return a.access.Authenticate(ctx, x)
	case a.password != nil:
		return a.scram.Authenticate(ctx, x)
	}
	return nil
}
