package vectorized

import (
	"context"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// Exprs evaluates expressions over batches outside of a query: what a
// data-changing statement computes of rows that it has read. Not safe for
// concurrent use.
type Exprs struct {
	evs []*evaluator
	x   evalContext
}

// NewExprs compiles expressions. params are the client's values in order; acc
// bounds what one value may be (nil = nothing does).
func NewExprs(es []plan.Expr, params []types.Datum, env function.Env, acc *mem.Account) (*Exprs, error) {
	evs, err := compileAll(es)
	if err != nil {
		return nil, err
	}
	out := &Exprs{evs: evs, x: evalContext{fn: env, params: newParams(params, len(params))}}
	if acc != nil {
		out.x.setting, out.x.maxBytes = acc.Limit()
	}
	return out, nil
}

// Len returns the number of expressions.
func (e *Exprs) Len() int { return len(e.evs) }

// Columns computes every expression for the live rows of b: arrays of length
// b.N, arbitrary where b.Sel leaves a row out.
func (e *Exprs) Columns(ctx context.Context, b *vec.Batch) (out []arrow.Array, err error) {
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, panicError(r)
		}
	}()
	x := e.x
	x.ctx = ctx
	out = make([]arrow.Array, len(e.evs))
	for i, ev := range e.evs {
		if out[i], err = ev.column(&x, b); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Select returns the live rows of b for which expression i is true, ascending, as
// a fresh slice.
func (e *Exprs) Select(ctx context.Context, i int, b *vec.Batch) (sel []uint16, err error) {
	defer func() {
		if r := recover(); r != nil {
			sel, err = nil, panicError(r)
		}
	}()
	x := e.x
	x.ctx = ctx
	sel, err = e.evs[i].selectRows(&x, b)
	return append(make([]uint16, 0, len(sel)), sel...), err
}
