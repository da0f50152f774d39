package pgwire

import (
	"context"
	"net"
	"net/netip"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// Access authenticates by rules: the first that fits a connection's encryption,
// address, database and user says how the client proves itself.
type Access struct {
	// Rules are the rules now, in order. It must be fast: it is asked for each
	// connection.
	Rules func() []HBARule
	SCRAM *SCRAM
	// Member reports whether a user is a member of a role, for +role and samerole;
	// nil = nobody is.
	Member func(user, role string) bool
}

var _ Authenticator = (*Access)(nil)

// Authenticate implements Authenticator.
func (a *Access) Authenticate(ctx context.Context, x *Exchange) error {
	addr, err := netip.ParseAddr(x.Host())
	if err != nil {
		addr = netip.Addr{}
	}
	addr = addr.Unmap().WithZone("")
	for _, r := range a.Rules() {
		if r.Err == "" && a.fits(&r, x, addr) {
			return a.by(ctx, &r, x)
		}
	}
	return x.noEntry()
}

// by authenticates as a rule says.
func (a *Access) by(ctx context.Context, r *HBARule, x *Exchange) error {
	if r.Method == "reject" {
		return pgerr.New(pgerr.InvalidAuthorizationSpecification, "pg_hba.conf rejects connection for host \"%s\", user \"%s\", database \"%s\", %s",
			x.Host(), x.User, x.Database, x.encryption())
	}
	if r.clientCert != "" {
		s := x.TLS()
		if s == nil || len(s.VerifiedChains) == 0 {
			return pgerr.New(pgerr.InvalidAuthorizationSpecification, "connection requires a valid client certificate")
		}
		if r.clientCert == "verify-full" && (x.User == "" || s.PeerCertificates[0].Subject.CommonName != x.User) {
			if r.Method == "cert" {
				return pgerr.New(pgerr.InvalidAuthorizationSpecification, "certificate authentication failed for user \"%s\"", x.User)
			}
			return pgerr.New(pgerr.InvalidPassword, "password authentication failed for user \"%s\"", x.User)
		}
	}
	if r.Method == "trust" || r.Method == "cert" {
		return nil
	}
	return a.SCRAM.Authenticate(ctx, x)
}

func (a *Access) fits(r *HBARule, x *Exchange, addr netip.Addr) bool {
	secure := x.TLS() != nil
	switch r.Type {
	case "host", "hostnogssenc":
	case "hostssl":
		if !secure {
			return false
		}
	case "hostnossl":
		if secure {
			return false
		}
	default:
		return false
	}
	return r.fitsAddress(addr) && a.fitsDatabase(r, x) && a.fitsUser(r, x)
}

func (r *HBARule) fitsAddress(addr netip.Addr) bool {
	switch r.Address {
	case "all":
		return true
	case "samehost", "samenet":
		if !addr.IsValid() {
			return false
		}
		list, err := net.InterfaceAddrs()
		if err != nil {
			return false
		}
		for _, i := range list {
			p, err := netip.ParsePrefix(i.String())
			if err != nil {
				continue
			}
			if p.Addr().Unmap() == addr || r.Address == "samenet" && p.Masked().Contains(addr) {
				return true
			}
		}
		return false
	}
	p := r.prefix
	if ip := p.Addr(); ip.Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(ip.Unmap(), p.Bits()-96)
	}
	return addr.IsValid() && p.Contains(addr)
}

func (a *Access) fitsDatabase(r *HBARule, x *Exchange) bool {
	for _, n := range r.Databases {
		if !n.Quoted {
			switch n.Name {
			case "all":
				return true
			case "sameuser":
				if x.Database == x.User {
					return true
				}
				continue
			case "samerole", "samegroup":
				if a.member(x.User, x.Database) {
					return true
				}
				continue
			case "replication":
				continue // there are no such connections
			}
		}
		if n.Name == x.Database {
			return true
		}
	}
	return false
}

func (a *Access) fitsUser(r *HBARule, x *Exchange) bool {
	for _, n := range r.Users {
		if !n.Quoted {
			if n.Name == "all" {
				return true
			}
			if len(n.Name) > 1 && n.Name[0] == '+' {
				if a.member(x.User, n.Name[1:]) {
					return true
				}
				continue
			}
		}
		if n.Name == x.User {
			return true
		}
	}
	return false
}

func (a *Access) member(user, role string) bool {
	return user == role || a.Member != nil && a.Member(user, role)
}
