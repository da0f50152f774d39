package ast

import "testing"

func sample() *Query {
	return &Query{
		Body: &Select{
			Targets: []*Target{{Expr: &Binary{
				Op:   Operator{Name: "+"},
				Left: &ColumnRef{Parts: Name{{Name: "a"}}}, Right: &Number{Text: "1", Integer: true},
			}}},
			From:  []TableRef{&TableName{Name: Name{{Name: "t"}}}},
			Where: &In{Expr: &Param{N: 1}, Query: &Query{Body: &Values{Rows: [][]Expr{{&Null{}}}}}},
		},
		Limit: &Number{Text: "2", Integer: true},
	}
}

func TestWalk(t *testing.T) {
	var numbers, nodes int
	Walk(sample(), func(n Node) bool {
		nodes++
		if _, ok := n.(*Number); ok {
			numbers++
		}
		return true
	})
	// Query, Select, Target, Binary, ColumnRef, Number, TableName, In, Param,
	// Query, Values, Null, Number.
	if nodes != 13 || numbers != 2 {
		t.Errorf("visited %d nodes, %d numbers", nodes, numbers)
	}
	nodes = 0
	Walk(sample(), func(n Node) bool {
		nodes++
		_, sel := n.(*Select)
		return !sel
	})
	if nodes != 3 {
		t.Errorf("visited %d nodes when Select is skipped", nodes)
	}
	Walk(nil, func(Node) bool { return true })
}

func TestDeeper(t *testing.T) {
	if Deeper(sample(), 7) || !Deeper(sample(), 4) {
		t.Error("the sample is between 5 and 7 nodes high")
	}
	var e Expr = &Null{}
	for range 100_000 {
		e = &Not{Expr: e}
	}
	if !Deeper(e, 1000) {
		t.Error("a chain of 100,000 is not deeper than 1000")
	}
}

func TestEqual(t *testing.T) {
	a, b := sample(), sample()
	b.Pos = 7
	b.Body.(*Select).From[0].(*TableName).Name[0] = Ident{Name: "t", Quoted: true, Pos: 3}
	if !Equal(a, b) {
		t.Error("positions and quotes count")
	}
	b.Limit = &Number{Text: "3", Integer: true}
	if Equal(a, b) {
		t.Error("another limit is equal")
	}
	if Equal(a, &Checkpoint{}) || Equal(a, nil) {
		t.Error("another statement is equal")
	}
}

func TestQuoteIdent(t *testing.T) {
	for name, want := range map[string]string{
		"a": "a", "a1_$": "a1_$", "": `""`, "A": `"A"`, "1a": `"1a"`, "a b": `"a b"`, `a"b`: `"a""b"`,
		"select": `"select"`, "left": `"left"`, "int": `"int"`, "name": "name", "é": `"é"`,
	} {
		if got := QuoteIdent(name); got != want {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
	}
	if got := QuoteString(`it's\`); got != `'it''s\'` {
		t.Errorf("got %s", got)
	}
}

func TestFormat(t *testing.T) {
	if got, want := Format(sample()), "SELECT a + 1 FROM t WHERE $1 IN (VALUES (NULL)) LIMIT 2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
