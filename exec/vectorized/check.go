package vectorized

import (
	"context"
	"fmt"

	"github.com/paimon-sql/paimon-sql/internal/invariants"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// check wraps an operator by a checker of its contract in builds with the tag
// invariants.
func check(o operator) operator {
	if invariants.Enabled {
		return &checker{op: o}
	}
	return o
}

type checker struct {
	op    operator
	ended bool
	shut  bool
}

func (c *checker) next(ctx context.Context) (*vec.Batch, error) {
	if c.ended || c.shut {
		panic(fmt.Sprintf("next of %T after its end (closed: %v)", c.op, c.shut))
	}
	b, err := c.op.next(ctx)
	if err != nil || b == nil {
		c.ended = true
		return b, err
	}
	checkBatch(b)
	return b, nil
}

func (c *checker) close() {
	c.shut = true
	c.op.close()
}

func checkBatch(b *vec.Batch) {
	if b.N > vec.MaxRows {
		panic(fmt.Sprintf("batch of %d rows", b.N))
	}
	if len(b.Cols) != len(b.Schema) {
		panic(fmt.Sprintf("batch has %d columns, its schema %d", len(b.Cols), len(b.Schema)))
	}
	for i, a := range b.Cols {
		if a != nil && a.Len() != b.N {
			panic(fmt.Sprintf("column %d (%s) has %d rows of %d", i, b.Schema[i].Name, a.Len(), b.N))
		}
	}
	for i, r := range b.Sel {
		if int(r) >= b.N || i > 0 && b.Sel[i-1] >= r {
			panic(fmt.Sprintf("selection is not ascending within %d rows at %d", b.N, i))
		}
	}
}
