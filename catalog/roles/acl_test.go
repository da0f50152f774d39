package roles

import (
	"errors"
	"slices"
	"testing"
)

// TestItems writes ACLs as PostgreSQL 15 does and reads them back.
func TestItems(t *testing.T) {
	names := map[uint32]string{10: "paimon", 101: "ann", 102: "We ird", 103: `q"uote`}
	oid := func(s string) (uint32, bool) {
		for o, n := range names {
			if n == s {
				return o, true
			}
		}
		return 0, false
	}
	a := ACL{
		{Grantee: 10, Grantor: 10, Privs: Relation.All()}, {Grantee: Public, Grantor: 10, Privs: Select}, {Grantee: 101, Grantor: 10, Privs: Insert | Select, Options: Insert},
		{Grantee: 102, Grantor: 103, Privs: Create | Temporary | Connect, Options: Create | Connect},
	}
	want := []string{"paimon=arwdDxt/paimon", "=r/paimon", "ann=a*r/paimon", `"We ird"=C*Tc*/"q""uote"`}
	got := a.Text(func(o uint32) string { return names[o] })
	if !slices.Equal(got, want) {
		t.Fatalf("%q", got)
	}
	for i, s := range got {
		if x, err := ParseItem(s, oid); err != nil || x != a[i] {
			t.Errorf("%s: %v, %v", s, x, err)
		}
	}
	for _, s := range []string{"", "ann", "ann=q/paimon", "nobody=r/paimon", "ann=r/nobody", `"ann=r/paimon`} {
		if _, err := ParseItem(s, oid); !errors.Is(err, ErrItem) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// TestRevoke follows what was granted on: the chain owner, 101, 102, 103.
func TestRevoke(t *testing.T) {
	m := store(t, Role{OID: 20001, Name: "a", Attrs: Attrs{Inherit: true}}, Role{OID: 20002, Name: "b", Attrs: Attrs{Inherit: true}}, Role{OID: 20003, Name: "c"})
	grant := func(a ACL, to, by uint32) ACL {
		t.Helper()
		out, err := a.Grant(m, Superuser, to, by, Select, true)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	base := DefaultACL(Relation, Superuser)
	a := grant(grant(grant(base, 20001, Superuser), 20002, 20001), 20003, 20002)
	if _, err := a.Grant(m, Superuser, 20001, 20002, Select, true); !errors.Is(err, ErrCircular) {
		t.Errorf("options go round: %v", err)
	}
	if _, err := a.Revoke(m, Superuser, 20001, Superuser, Select, false, false); !errors.Is(err, ErrDependent) {
		t.Errorf("without cascade: %v", err)
	}
	out, err := a.Revoke(m, Superuser, 20001, Superuser, Select, true, true)
	if err != nil || len(out) != 2 || out[1].Options != 0 || out[1].Privs != Select {
		t.Errorf("the option alone: %v, %v", out, err)
	}
	if out = a.Without(m, Superuser, 20002); len(out) != 2 || out.Names(20002, Superuser) {
		t.Errorf("without one: %v", out)
	}
	// A second way to the option keeps what was granted by it.
	b := grant(a, 20002, Superuser)
	if out, err = b.Revoke(m, Superuser, 20002, 20001, Select, false, false); err != nil || len(out) != 4 {
		t.Errorf("a second way: %v, %v", out, err)
	}
}
