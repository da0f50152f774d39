package roles

import (
	"context"
	"testing"

	"github.com/paimon-sql/paimon-sql/catalog/objects"
	"github.com/paimon-sql/paimon-sql/internal/scram"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// store makes a model of roles that went through the store.
func store(t *testing.T, list ...Role) *Model {
	t.Helper()
	st := objects.NewStore(fileio.NewMem())
	err := st.Update(context.Background(), func(e *objects.Edit) error {
		for _, r := range list {
			o, err := r.Object()
			if err != nil {
				return err
			}
			e.Put(o)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := st.State(context.Background(), true)
	if err != nil {
		t.Fatal(err)
	}
	return New(s)
}

func TestMemberships(t *testing.T) {
	in := func(admin bool, oids ...uint32) (out []Membership) {
		for _, o := range oids {
			out = append(out, Membership{Role: o, Admin: admin, By: Superuser})
		}
		return out
	}
	m := store(t,
		Role{OID: 101, Name: "top", Attrs: Attrs{Inherit: true}},
		Role{OID: 102, Name: "mid", Attrs: Attrs{Inherit: false, MemberOf: in(true, 101)}},
		Role{OID: 103, Name: "low", Attrs: Attrs{Inherit: true, MemberOf: in(false, 102)}},
		// An edge that the engine does not let come about must not hang anybody.
		Role{OID: 104, Name: "loop1", Attrs: Attrs{Inherit: true, MemberOf: in(false, 105)}},
		Role{OID: 105, Name: "loop2", Attrs: Attrs{Inherit: true, MemberOf: in(false, 104)}},
	)
	for _, tt := range []struct {
		who, of            uint32
		member, has, admin bool
	}{
		{101, 101, true, true, false},
		{102, 101, true, false, true}, // it does not inherit
		{103, 102, true, true, false},
		{103, 101, true, false, true}, // by way of 102
		{101, 103, false, false, false},
		{104, 101, false, false, false},
		{Superuser, 101, false, true, true},
		{999, 101, false, false, false},
	} {
		if a, b, c := m.IsMember(tt.who, tt.of), m.Has(tt.who, tt.of), m.IsAdmin(tt.who, tt.of); a != tt.member || b != tt.has || c != tt.admin {
			t.Errorf("%d in %d: member %v, has %v, admin %v", tt.who, tt.of, a, b, c)
		}
	}
}

func TestVerifier(t *testing.T) {
	v, err := scram.New("x")
	if err != nil {
		t.Fatal(err)
	}
	at := int64(1000)
	m := store(t,
		Role{Name: "ever", Attrs: Attrs{Password: v.String()}},
		Role{Name: "until", Attrs: Attrs{Password: v.String(), ValidUntil: &at}},
		Role{Name: "none"},
		Role{OID: Superuser, Name: "other"}, // the superuser stays what it is
	)
	for _, tt := range []struct {
		name string
		now  int64
		ok   bool
	}{{"ever", 5000, true}, {"until", 999, true}, {"until", 1000, false}, {"none", 0, false}, {"nobody", 0, false}} {
		if got, ok := m.Verifier(tt.name, tt.now); ok != tt.ok || ok && !got.Check("x") {
			t.Errorf("%s at %d: %v", tt.name, tt.now, ok)
		}
	}
	if r := m.Role(SuperuserName); r == nil || !r.Super || !r.Login || m.Role("other") != nil {
		t.Errorf("superuser: %+v", r)
	}
	if _, ok := scram.Parse(noPassword); !ok {
		t.Error("noPassword does not parse")
	}
}
