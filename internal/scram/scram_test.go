package scram

import (
	"strings"
	"testing"
)

func TestVerifier(t *testing.T) {
	v, err := New("secret")
	if err != nil {
		t.Fatal(err)
	}
	w, ok := Parse(v.String())
	if !ok || w.String() != v.String() || !w.Check("secret") || w.Check("Secret") {
		t.Errorf("%s comes back as %s, %v", v, w, ok)
	}
	for _, bad := range []string{
		"", "secret", "md5d41d8cd98f00b204e9800998ecf8427e", "SCRAM-SHA-256$", "SCRAM-SHA-256$4096:YQ==$x:y",
		strings.Replace(v.String(), "4096", "0", 1), strings.Replace(v.String(), "4096", "99999999", 1),
		strings.Replace(v.String(), "4096:", "4096", 1), v.String() + "x",
	} {
		if _, ok := Parse(bad); ok {
			t.Errorf("%q is taken for a verifier", bad)
		}
	}
	a, b := Mock([]byte("k"), "eve"), Mock([]byte("k"), "eve")
	if a.String() != b.String() || a.Check("") || Mock([]byte("k"), "bob").String() == a.String() {
		t.Error("the verifier of nobody is not one thing per name")
	}
}

func FuzzParse(f *testing.F) {
	v, _ := New("x")
	f.Add(v.String())
	f.Add("SCRAM-SHA-256$1:YQ==$YQ==:YQ==")
	f.Fuzz(func(t *testing.T, s string) {
		if v, ok := Parse(s); ok {
			if w, ok := Parse(v.String()); !ok || w.String() != v.String() {
				t.Errorf("%q comes back as %q", s, w)
			}
		}
	})
}
