package table

import (
	"context"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// TestNestedMembers reads one member of a ROW column that Java wrote: the other
// must not be read (it is NULL), NULL rows stay NULL, and a scan of the whole
// column beside it is not touched.
func TestNestedMembers(t *testing.T) {
	env := NewEnv(fileio.NewLocal("../../tests/reports/testdata/warehouse"), EnvOptions{})
	defer env.Close()
	tab := Open(env, "reports.db/a17")
	ctx := context.Background()
	s, err := tab.Schema(ctx, snapshot.Ref{})
	if err != nil {
		t.Fatal(err)
	}
	col := s.Fields.Index("r")
	read := func(sc Scan) *array.Struct {
		t.Helper()
		p, err := tab.Plan(ctx, sc)
		if err != nil {
			t.Fatal(err)
		}
		r, err := tab.Read(ctx, sc, p.Splits[0], ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		b, err := r.Next(ctx)
		if err != nil || b == nil || b.N != 3 {
			t.Fatalf("batch %v, %v", b, err)
		}
		return b.Cols[len(b.Cols)-1].(*array.Struct)
	}
	whole := read(Scan{Columns: []int{col}, Limit: -1})
	some := read(Scan{Columns: []int{col}, Nested: [][]NestedPath{{{"a"}}}, Limit: -1})
	both := read(Scan{Columns: []int{col, col}, Nested: [][]NestedPath{{{"a"}}, nil}, Limit: -1})
	for i := range 3 {
		if whole.IsNull(i) != some.IsNull(i) {
			t.Errorf("row %d: NULL differs", i)
		}
		if whole.Field(0).ValueStr(i) != some.Field(0).ValueStr(i) {
			t.Errorf("row %d: a is %s, want %s", i, some.Field(0).ValueStr(i), whole.Field(0).ValueStr(i))
		}
		if !some.Field(1).IsNull(i) {
			t.Errorf("row %d: b was read although nobody asked", i)
		}
		if whole.ValueStr(i) != both.ValueStr(i) {
			t.Errorf("row %d: the whole column is %s, want %s", i, both.ValueStr(i), whole.ValueStr(i))
		}
	}
	if whole.Field(1).IsNull(0) {
		t.Error("b of the first row is NULL, so the test shows nothing")
	}
}

func TestPruneType(t *testing.T) {
	leaf := func(n string) types.Field { return types.Field{Name: n, Type: types.Of(types.Int4)} }
	inner := types.Type{Kind: types.Row, Fields: []types.Field{leaf("x"), leaf("y")}}
	row := types.Type{Kind: types.Row, Fields: []types.Field{leaf("a"), {Name: "n", Type: inner}}}
	for _, c := range []struct {
		paths []NestedPath
		want  string
	}{
		{[]NestedPath{{"a"}}, "struct<a: int32>"},
		{[]NestedPath{{"n", "y"}}, "struct<n: struct<y: int32>>"},
		{[]NestedPath{{"n"}, {"n", "y"}}, "struct<n: struct<x: int32, y: int32>>"},
		{[]NestedPath{{"a"}, {"n"}}, "struct<a: int32, n: struct<x: int32, y: int32>>"},
		{[]NestedPath{{}}, "struct<a: int32, n: struct<x: int32, y: int32>>"},
		{[]NestedPath{{"gone"}}, "struct<a: int32, n: struct<x: int32, y: int32>>"},
	} {
		got := pruneType(row, c.paths).Arrow().String()
		if plain := stripNullable(got); plain != c.want {
			t.Errorf("%v: %s, want %s", c.paths, plain, c.want)
		}
	}
}

func stripNullable(s string) string {
	const n = ", nullable"
	for i := 0; i+len(n) <= len(s); {
		if s[i:i+len(n)] == n {
			s = s[:i] + s[i+len(n):]
		} else {
			i++
		}
	}
	return s
}
