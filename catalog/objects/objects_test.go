package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

func put(t *testing.T, s *Store, kind Kind, schema, name, body string) uint32 {
	t.Helper()
	var oid uint32
	err := s.Update(t.Context(), func(e *Edit) error {
		oid = e.Put(Object{Kind: kind, Schema: schema, Name: name, Body: json.RawMessage(body)}).OID
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return oid
}

func state(t *testing.T, s *Store) *State {
	t.Helper()
	st, err := s.State(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestUpdate(t *testing.T) {
	io := fileio.NewMem()
	a, b := NewStore(io), NewStore(io)
	if n := len(state(t, a).List(View)); n != 0 {
		t.Fatalf("an empty store has %d views", n)
	}
	oid := put(t, a, View, "public", "v", `{"q":1}`)
	put(t, b, View, "public", "w", `{"q":2}`)
	if o := state(t, b).Get(View, "public", "v"); o == nil || o.OID != oid || string(o.Body) != `{"q":1}` {
		t.Fatalf("the other store sees %+v", o)
	}
	if again := put(t, b, View, "public", "v", `{"q":3}`); again != oid {
		t.Errorf("OID %d became %d", oid, again)
	}
	err := a.Update(t.Context(), func(e *Edit) error {
		e.Rename(View, "public", "v", "sales", "x")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	st := state(t, b)
	if st.Get(View, "public", "v") != nil || st.Get(View, "sales", "x") == nil || st.ByOID(oid).Name != "x" || len(st.List(View)) != 2 {
		t.Errorf("after a rename: %+v", st.List(View))
	}
	v := st.Version()
	refused := errors.New("refused")
	if err := a.Update(t.Context(), func(e *Edit) error { e.Delete(View, "sales", "x"); return refused }); !errors.Is(err, refused) {
		t.Errorf("err = %v", err)
	}
	if err := a.Update(t.Context(), func(e *Edit) error { e.Delete(View, "sales", "none"); return nil }); err != nil {
		t.Errorf("err = %v", err)
	}
	if st := state(t, b); st.Version() != v || st.Get(View, "sales", "x") == nil {
		t.Errorf("version %d became %d", v, st.Version())
	}
}

// TestRace: what many writers in several processes put is all there.
func TestRace(t *testing.T) {
	for name, io := range map[string]fileio.FileIO{"mem": fileio.NewMem(), "local": fileio.NewLocal(t.TempDir())} {
		t.Run(name, func(t *testing.T) {
			var wg sync.WaitGroup
			for w := range 4 {
				s := NewStore(io)
				for g := range 2 {
					wg.Go(func() {
						for i := range 10 {
							err := s.Update(t.Context(), func(e *Edit) error {
								e.Put(Object{Kind: Role, Name: fmt.Sprintf("r%d_%d_%d", w, g, i)})
								return nil
							})
							if err != nil {
								t.Error(err)
							}
						}
					})
				}
			}
			wg.Wait()
			st := state(t, NewStore(io))
			if n := len(st.List(Role)); n != 80 || len(st.byOID) != 80 || st.Version() != 80 {
				t.Errorf("%d roles, %d OIDs, version %d", n, len(st.byOID), st.Version())
			}
		})
	}
}

// TestLooks: an unchanged state costs one look at the next name and one at its own,
// and none when it was looked at lately.
func TestLooks(t *testing.T) {
	f := fileio.NewFault(fileio.NewMem())
	s := NewStore(f)
	put(t, s, View, "public", "v", `{}`)
	n := f.Calls()
	state(t, s)
	if d := f.Calls() - n; d > 2 {
		t.Errorf("a fresh look made %d calls", d)
	}
	n = f.Calls()
	if _, err := s.State(t.Context(), false); err != nil || f.Calls() != n {
		t.Errorf("err %v, %d calls", err, f.Calls()-n)
	}
}

func TestBadFiles(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(string) string
		want string
	}{
		{"newer", func(s string) string { return strings.Replace(s, `"format":1`, `"format":2`, 1) }, "format 2"},
		{"cut", func(s string) string { return s[:len(s)-3] }, "its body has"},
		{"bit", func(s string) string { return strings.Replace(s, `"name":"v"`, `"name":"w"`, 1) }, "checksum"},
		{"empty", func(string) string { return "" }, "does not parse"},
		{"other", func(s string) string { return strings.Replace(s, `"kind":"objects"`, `"kind":"sequence"`, 1) }, `holds "sequence"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			io := fileio.NewMem()
			put(t, NewStore(io), View, "public", "v", `{}`)
			raw, err := io.ReadFile(t.Context(), ".paimon-sql/objects/state-1")
			if err != nil {
				t.Fatal(err)
			}
			if err := io.Put(t.Context(), ".paimon-sql/objects/state-1", []byte(c.edit(string(raw)))); err != nil {
				t.Fatal(err)
			}
			s := NewStore(io)
			_, err = s.State(t.Context(), true)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("err = %v, want %q", err, c.want)
			}
			if err := s.Update(t.Context(), func(e *Edit) error { e.Put(Object{Kind: View, Name: "x"}); return nil }); err == nil {
				t.Error("a store that cannot be read was changed")
			}
		})
	}
}

// TestCrash: after a crash at any call the store holds all changes that were
// confirmed, and the one under way whole or not at all.
func TestCrash(t *testing.T) {
	for n := range 200 {
		c := fileio.NewCrash()
		c.At(n, n%2 == 0)
		s := NewStore(c)
		done := 0
		for i := range 6 {
			err := s.Update(context.Background(), func(e *Edit) error {
				e.Put(Object{Kind: View, Name: fmt.Sprintf("a%d", i)})
				e.Put(Object{Kind: Role, Name: fmt.Sprintf("b%d", i)})
				return nil
			})
			if err != nil {
				break
			}
			done++
		}
		crashed := c.Crashed()
		io := c.Reopen(rand.New(rand.NewPCG(uint64(n), 1)))
		st := state(t, NewStore(io))
		if len(st.List(View)) < done || len(st.List(View)) > done+1 || len(st.List(View)) != len(st.List(Role)) {
			t.Fatalf("crash at %d: %d confirmed, %d views, %d roles", n, done, len(st.List(View)), len(st.List(Role)))
		}
		if !crashed {
			return
		}
	}
	t.Error("no run came to its end")
}
