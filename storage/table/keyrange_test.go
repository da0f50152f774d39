package table

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// TestKeyRange draws filters over composite keys: every key that passes is within
// the range, and one that equals all columns is alone in it.
func TestKeyRange(t *testing.T) {
	seed := random.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	kinds := []types.Type{types.Of(types.Int4), types.Of(types.Int8), types.Of(types.Text), types.Of(types.Int2), types.Of(types.Float8)}
	value := func(k types.Type) types.Datum {
		switch k.Kind {
		case types.Text:
			return []string{"", "a", "a\x00", "ab", "b", "\xff", "\x00", "a\x00b", "\xff\xff"}[rng.IntN(9)]
		case types.Float8:
			return float64(rng.IntN(5) - 2)
		case types.Int2:
			return []int64{-32768, -1, 0, 1, 32767}[rng.IntN(5)]
		case types.Int4:
			return []int64{math.MinInt32, -1, 0, 1, math.MaxInt32}[rng.IntN(5)]
		}
		return []int64{math.MinInt64, -256, -1, 0, 1, 255, math.MaxInt64}[rng.IntN(7)]
	}
	alone := 0
	for range 3_000 {
		var fields types.Schema
		var cols []int
		var ts []types.Type
		for i := range 1 + rng.IntN(3) {
			k := kinds[rng.IntN(len(kinds))]
			fields = append(fields, types.Field{ID: int32(i), Name: fmt.Sprint("c", i), Type: k})
			cols, ts = append(cols, i), append(ts, k)
		}
		var nodes []predicate.Node
		equal := map[int]bool{}
		for range 1 + rng.IntN(4) {
			c := rng.IntN(len(fields))
			l := &predicate.Leaf{Col: c, Type: ts[c], Op: []predicate.Op{predicate.Eq, predicate.Lt, predicate.LtEq, predicate.Gt, predicate.GtEq, predicate.In, predicate.Between}[rng.IntN(7)]}
			l.Args = append(l.Args, value(ts[c]))
			if l.Op == predicate.In || l.Op == predicate.Between {
				l.Args = append(l.Args, value(ts[c]))
			}
			equal[c] = equal[c] || l.Op == predicate.Eq
			nodes = append(nodes, l)
		}
		from, to := keyRange(predicate.Conj(nodes...), cols, fields)
		codec := mergetree.NewKeyCodec(ts)
		in := map[string]bool{}
		for range 200 {
			key := make([]types.Datum, len(ts))
			for i := range key {
				key[i] = value(ts[i])
			}
			pass := true
			for _, n := range nodes {
				pass = pass && holds(n.(*predicate.Leaf), key)
			}
			b := codec.Append(nil, key)
			within := (from == nil || bytes.Compare(b, from) >= 0) && (to == nil || bytes.Compare(b, to) < 0)
			if pass && !within {
				t.Fatalf("key %v passes %v and is outside [%x, %x)", key, nodes, from, to)
			}
			if within {
				in[string(b)] = true
			}
		}
		every := true
		for i := range ts {
			every = every && equal[i] && ts[i].Kind != types.Float8
		}
		if every {
			alone++
			if len(in) > 1 {
				t.Fatalf("%d keys between %x and %x", len(in), from, to)
			}
		}
	}
	if alone < 20 {
		t.Errorf("only %d lookups of whole keys", alone)
	}
}

func holds(l *predicate.Leaf, key []types.Datum) bool {
	c := func(i int) int { v, _ := predicate.Compare(l.Type, key[l.Col], l.Args[i]); return v }
	switch l.Op {
	case predicate.Eq:
		return c(0) == 0
	case predicate.Lt:
		return c(0) < 0
	case predicate.LtEq:
		return c(0) <= 0
	case predicate.Gt:
		return c(0) > 0
	case predicate.GtEq:
		return c(0) >= 0
	case predicate.Between:
		return c(0) >= 0 && c(1) <= 0
	case predicate.In:
		return c(0) == 0 || c(1) == 0
	}
	panic("op")
}
