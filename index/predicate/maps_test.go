package predicate

import (
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// TestMapLeaf: what is said of the values under a map's key survives simplification, and
// nobody but who knows of it takes it for more than "unknown".
func TestMapLeaf(t *testing.T) {
	leaf := Leaf{Op: Between, Col: 1, Type: types.Of(types.Int4), Args: []types.Datum{int64(1), int64(2)}}
	n := Simplify(&Not{&MapLeaf{leaf, "k"}})
	or, ok := n.(*Or)
	if !ok || len(or.Args) != 2 {
		t.Fatalf("%#v", n)
	}
	for i, op := range []Op{Lt, Gt} {
		if m, ok := or.Args[i].(*MapLeaf); !ok || m.Op != op || m.Key != "k" {
			t.Errorf("%#v", or.Args[i])
		}
	}
	prefix := &MapLeaf{Leaf{Op: StartsWith, Col: 1, Type: types.Of(types.Text), Args: []types.Datum{"a"}}, "k"}
	if m, ok := Simplify(&Not{prefix}).(*Not); !ok || m.Arg.(*MapLeaf).Op != StartsWith {
		t.Errorf("%#v", m)
	}
	all := SourceFunc(func(*Leaf) (ColumnStats, bool) { return ColumnStats{Rows: 1, NullCount: 1}, true })
	for _, n := range []Node{n, prefix, &Not{prefix}, &And{[]Node{prefix}}} {
		if v := Eval(n, all); v != Some {
			t.Errorf("%#v: %s", n, v)
		}
		if r := Rewrite(n, func(l *Leaf) Node { return l }); r != nil {
			t.Errorf("%#v is rewritten to %#v", n, r)
		}
	}
	if n := Only(Conj(prefix, &leaf), func(c int) bool { return c == 0 }); n != nil {
		t.Errorf("%#v", n)
	}
	kept := RewriteMaps(&Not{prefix}, nil, func(m *MapLeaf) Node { return m })
	if m, ok := kept.(*Not); !ok || m.Arg != prefix {
		t.Errorf("%#v", kept)
	}
}
