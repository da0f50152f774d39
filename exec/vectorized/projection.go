package vectorized

import (
	"context"
	"errors"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// Projection computes expressions over batches outside of a plan: RETURNING, the
// sets of ON CONFLICT, what COPY fills in. It is compiled once and used for any
// number of batches. Not safe for concurrent use.
type Projection struct {
	exprs []plan.Expr
	evals []*evaluator // nil: the expression is a column, see slots
	slots []int
	x     *evalContext
}

// NewProjection compiles exprs, whose Slots are columns of the batches to come.
// params are the client's parameters; of env only Fn and Account are used.
func NewProjection(exprs []plan.Expr, params []types.Datum, env *Env) (*Projection, error) {
	p := &Projection{exprs: exprs, evals: make([]*evaluator, len(exprs)), slots: make([]int, len(exprs)), x: outside(params, env)}
	for i, e := range exprs {
		if s, ok := e.(*plan.Slot); ok {
			p.slots[i] = s.Index
			continue
		}
		var err error
		if p.evals[i], err = compileExpr(e); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// outside is what expressions see that belong to no running query.
func outside(params []types.Datum, env *Env) *evalContext {
	x := &evalContext{ctx: context.Background(), params: newParams(params, 0)}
	if env != nil {
		x.fn = env.Fn
		x.setting, x.maxBytes = env.Account.Limit()
	}
	return x
}

// Eval returns an array of b.N values per expression. Only the live rows of b are
// evaluated; values of others are arbitrary. A column that is passed on is the
// batch's own array.
func (p *Projection) Eval(ctx context.Context, b *vec.Batch) ([]arrow.Array, error) {
	out := make([]arrow.Array, len(p.exprs))
	p.x.ctx = ctx
	for i, e := range p.evals {
		if e == nil {
			out[i] = b.Cols[p.slots[i]]
			continue
		}
		var err error
		if out[i], err = e.column(p.x, b); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Batch is Eval as a batch of the given columns with b's selection.
func (p *Projection) Batch(ctx context.Context, b *vec.Batch, schema types.Schema) (*vec.Batch, error) {
	cols, err := p.Eval(ctx, b)
	if err != nil {
		return nil, err
	}
	return &vec.Batch{Schema: schema, Cols: cols, N: b.N, Sel: b.Sel}, nil
}

// Condition selects rows of batches outside of a plan: CHECK, the WHERE of ON
// CONFLICT and of COPY. Not safe for concurrent use.
type Condition struct {
	eval *evaluator
	x    *evalContext
	out  []uint16
}

// NewCondition compiles a condition over the columns of batches to come; see
// NewProjection.
func NewCondition(e plan.Expr, params []types.Datum, env *Env) (*Condition, error) {
	ev, err := compileExpr(e)
	if err != nil {
		return nil, err
	}
	return &Condition{eval: ev, x: outside(params, env)}, nil
}

// True returns the live rows of b for which the condition is true, ascending:
// those that a WHERE keeps. The result is the caller's.
func (c *Condition) True(ctx context.Context, b *vec.Batch) ([]uint16, error) {
	c.x.ctx = ctx
	sel, err := c.eval.selectRows(c.x, b)
	c.eval.out = nil // given away
	return sel, err
}

// False returns the live rows of b for which the condition is false, ascending:
// those that a CHECK refuses. NULL passes. The result is valid until the next
// call.
func (c *Condition) False(ctx context.Context, b *vec.Batch) ([]uint16, error) {
	c.x.ctx = ctx
	c.out = grow(c.out, b.Size())
	n, err := selectNode(c.eval.root, c.x, b, b.Sel, false, c.out)
	if errors.Is(err, function.ErrBatchBytes) {
		// Too long together: a row at a time.
		n = 0
		for _, i := range liveSel(b) {
			k, err := selectNode(c.eval.root, c.x, b, []uint16{i}, false, c.out[n:])
			if err != nil {
				return nil, err
			}
			n += k
		}
		return c.out[:n], nil
	}
	return c.out[:n], err
}
