package function

import (
	"context"
	"errors"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// How kernels are made. Arithmetic, comparison and other hot kernels are loops
// of their own (arith.go, compare.go, decimal.go). Everything else is a Go
// function of one row, wrapped by fn1..fn6: a typed reader per argument and a
// typed writer for the result, chosen once per batch.
//
// A kernel returns c.N rows, or one row when it has arguments, all are constant
// and the function is not volatile.

// errNull, returned by a row function, makes the row NULL.
var errNull = errors.New("null")

// rowsOf is the length of the result.
func rowsOf(c *Call, args []vec.Vec) int {
	if len(args) == 0 {
		return c.N
	}
	for _, a := range args {
		if !a.Const {
			return c.N
		}
	}
	return 1
}

// selOf is the selection that applies to a result of n rows.
func selOf(c *Call, args []vec.Vec) []uint16 {
	for _, a := range args {
		if !a.Const {
			return c.Sel
		}
	}
	if len(args) == 0 {
		return c.Sel
	}
	return nil
}

// strictValid intersects the validity of the arguments. none is true when a
// constant argument is NULL, and so every row of the result.
func strictValid(n int, args []vec.Vec) (valid []byte, none bool) {
	for _, a := range args {
		if a.Const {
			if a.Arr.IsNull(0) {
				return nil, true
			}
			continue
		}
		v, off := vec.Validity(a.Arr)
		if v == nil {
			continue
		}
		if valid == nil {
			valid = vec.CopyBits(v, off, n)
		} else {
			valid = vec.AndBits(valid, 0, v, off, n)
		}
	}
	return valid, false
}

// each calls f for the selected rows that are valid, until the statement is
// cancelled. errNull clears the row's bit in *valid, which is made when needed.
func each(c *Call, n int, sel []uint16, valid *[]byte, f func(i int) error) error {
	calls := 0
	one := func(i int) error {
		if calls++; calls&3 == 0 {
			if err := c.cancelled(); err != nil {
				return err
			}
		}
		err := f(i)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errNull) {
			return err
		}
		if *valid == nil {
			*valid = vec.FullBitmap(n)
		}
		vec.ClearBit(*valid, i)
		return nil
	}
	v := *valid
	if sel != nil {
		for _, s := range sel {
			i := int(s)
			if v != nil && !vec.BitAt(v, i) {
				continue
			}
			if err := one(i); err != nil {
				return err
			}
		}
		return nil
	}
	for i := 0; i < n; i++ {
		if v != nil && !vec.BitAt(v, i) {
			continue
		}
		if err := one(i); err != nil {
			return err
		}
	}
	return nil
}

func argType(c *Call, i int) types.Type {
	if i < len(c.ArgTypes) {
		return c.ArgTypes[i]
	}
	return types.Type{}
}

func nullResult(c *Call, n int) (arrow.Array, error) { return vec.MakeNull(c.Ret.Arrow(), n), nil }

// fn1 wraps a strict function of one argument.
func fn1[A, R any](f func(a A) (R, error)) Kernel {
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		n := rowsOf(c, args)
		valid, none := strictValid(n, args)
		if none {
			return nullResult(c, n)
		}
		ra := reader[A](args[0], argType(c, 0))
		w := newWriter[R](c, n)
		err := each(c, n, selOf(c, args), &valid, func(i int) error {
			r, err := f(ra(i))
			if err == nil {
				err = w.set(i, r)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		return w.done(valid), nil
	}
}

// fn2 wraps a strict function of two arguments.
func fn2[A, B, R any](f func(a A, b B) (R, error)) Kernel {
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		n := rowsOf(c, args)
		valid, none := strictValid(n, args)
		if none {
			return nullResult(c, n)
		}
		ra, rb := reader[A](args[0], argType(c, 0)), reader[B](args[1], argType(c, 1))
		w := newWriter[R](c, n)
		err := each(c, n, selOf(c, args), &valid, func(i int) error {
			r, err := f(ra(i), rb(i))
			if err == nil {
				err = w.set(i, r)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		return w.done(valid), nil
	}
}

// fn3 wraps a strict function of three arguments.
func fn3[A, B, C, R any](f func(a A, b B, c C) (R, error)) Kernel {
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		n := rowsOf(c, args)
		valid, none := strictValid(n, args)
		if none {
			return nullResult(c, n)
		}
		ra, rb, rc := reader[A](args[0], argType(c, 0)), reader[B](args[1], argType(c, 1)), reader[C](args[2], argType(c, 2))
		w := newWriter[R](c, n)
		err := each(c, n, selOf(c, args), &valid, func(i int) error {
			r, err := f(ra(i), rb(i), rc(i))
			if err == nil {
				err = w.set(i, r)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		return w.done(valid), nil
	}
}

// fn4 wraps a strict function of four arguments.
func fn4[A, B, C, D, R any](f func(a A, b B, c C, d D) (R, error)) Kernel {
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		n := rowsOf(c, args)
		valid, none := strictValid(n, args)
		if none {
			return nullResult(c, n)
		}
		ra, rb := reader[A](args[0], argType(c, 0)), reader[B](args[1], argType(c, 1))
		rc, rd := reader[C](args[2], argType(c, 2)), reader[D](args[3], argType(c, 3))
		w := newWriter[R](c, n)
		err := each(c, n, selOf(c, args), &valid, func(i int) error {
			r, err := f(ra(i), rb(i), rc(i), rd(i))
			if err == nil {
				err = w.set(i, r)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		return w.done(valid), nil
	}
}

// sfn1 wraps a strict function whose text or bytea result is appended to dst.
func sfn1[A any](f func(dst []byte, a A) ([]byte, error)) Kernel {
	return sfnN(func(c *Call, args []vec.Vec) func(dst []byte, i int) ([]byte, error) {
		ra := reader[A](args[0], argType(c, 0))
		return func(dst []byte, i int) ([]byte, error) { return f(dst, ra(i)) }
	})
}

func sfn2[A, B any](f func(dst []byte, a A, b B) ([]byte, error)) Kernel {
	return sfnN(func(c *Call, args []vec.Vec) func(dst []byte, i int) ([]byte, error) {
		ra, rb := reader[A](args[0], argType(c, 0)), reader[B](args[1], argType(c, 1))
		return func(dst []byte, i int) ([]byte, error) { return f(dst, ra(i), rb(i)) }
	})
}

func sfn3[A, B, C any](f func(dst []byte, a A, b B, c C) ([]byte, error)) Kernel {
	return sfnN(func(c *Call, args []vec.Vec) func(dst []byte, i int) ([]byte, error) {
		ra, rb, rc := reader[A](args[0], argType(c, 0)), reader[B](args[1], argType(c, 1)), reader[C](args[2], argType(c, 2))
		return func(dst []byte, i int) ([]byte, error) { return f(dst, ra(i), rb(i), rc(i)) }
	})
}

func sfn4[A, B, C, D any](f func(dst []byte, a A, b B, c C, d D) ([]byte, error)) Kernel {
	return sfnN(func(c *Call, args []vec.Vec) func(dst []byte, i int) ([]byte, error) {
		ra, rb := reader[A](args[0], argType(c, 0)), reader[B](args[1], argType(c, 1))
		rc, rd := reader[C](args[2], argType(c, 2)), reader[D](args[3], argType(c, 3))
		return func(dst []byte, i int) ([]byte, error) { return f(dst, ra(i), rb(i), rc(i), rd(i)) }
	})
}

// maxValueBytes is how long a value may be, as in PostgreSQL.
const maxValueBytes = 1<<30 - 1

// maxBatchBytes is how long the values of a computed column may be together,
// unless there is only one: offsets are int32, and nobody accounts for results.
const maxBatchBytes = 64 << 20

// boxBytes is what one boxed element of an array takes until the array is made.
const boxBytes = 40

// boxes refuses an array of n elements that would not fit the memory that one
// value may take.
func (c *Call) boxes(n int64) error {
	if c.MaxBytes > 0 && n > c.MaxBytes/boxBytes {
		return &mem.LimitError{Setting: c.MaxSetting, Limit: c.MaxBytes, Asked: n * boxBytes}
	}
	return nil
}

// ErrBatchBytes is a kernel's error for a batch whose results are too long
// together; fewer rows at a time have shorter ones.
var ErrBatchBytes = errors.New("requested length too large for a batch")

// fits checks the length of a column that grows from so many bytes by one value.
func (c *Call) fits(from, to int) error {
	switch {
	case to-from > maxValueBytes:
		return errTooLong()
	case from > 0 && to > maxBatchBytes:
		return ErrBatchBytes
	case c.MaxBytes > 0 && int64(to-from) > c.MaxBytes:
		return &mem.LimitError{Setting: c.MaxSetting, Limit: c.MaxBytes, Asked: int64(to - from)}
	}
	return nil
}

// cancelled returns the reason when the statement is to end.
func (c *Call) cancelled() error {
	if c.Ctx != nil && c.Ctx.Err() != nil {
		return context.Cause(c.Ctx)
	}
	return nil
}

// sfnN wraps a row function that appends, made once per batch.
func sfnN(bind func(c *Call, args []vec.Vec) func(dst []byte, i int) ([]byte, error)) Kernel {
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		n := rowsOf(c, args)
		valid, none := strictValid(n, args)
		if none {
			return nullResult(c, n)
		}
		return appendRowsHint(c, n, selOf(c, args), valid, bytesHint(n, args), bind(c, args))
	}
}

// bytesHint guesses how long a text result is: as long as the longest column.
func bytesHint(n int, args []vec.Vec) int {
	hint := 0
	for _, a := range args {
		if a.Const || a.Arr.Len() < n {
			continue
		}
		if id := a.Arr.DataType().ID(); id == arrow.STRING || id == arrow.BINARY {
			if o := vec.ViewStr(a.Arr).Offs; len(o) > n {
				hint = max(hint, int(o[n]-o[0]))
			}
		}
	}
	return min(hint, 1<<22)
}

func appendRows(c *Call, n int, sel []uint16, valid []byte, f func(dst []byte, i int) ([]byte, error)) (arrow.Array, error) {
	return appendRowsHint(c, n, sel, valid, 0, f)
}

func appendRowsHint(c *Call, n int, sel []uint16, valid []byte, hint int, f func(dst []byte, i int) ([]byte, error)) (arrow.Array, error) {
	w := &bytesWriter{c: c, dt: c.Ret.Arrow(), off: make([]int32, 1, n+1), n: n}
	if hint > 0 && (sel == nil || len(sel) > n/2) {
		w.data = make([]byte, 0, hint+16)
	}
	err := each(c, n, sel, &valid, func(i int) error {
		w.pad(i)
		at := len(w.data)
		d, err := f(w.data, i)
		if err != nil {
			w.data = w.data[:at]
			return err
		}
		if err := c.fits(at, len(d)); err != nil {
			return err
		}
		w.data = d
		w.end()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return w.done(valid), nil
}

// rowFn wraps a function of boxed values: for rare functions, and those that are
// not strict. nil is NULL.
func rowFn(f func(c *Call, args []types.Datum) (types.Datum, error)) Kernel {
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		n := rowsOf(c, args)
		return boxedRows(c, n, args, f, false)
	}
}

// strictRowFn is rowFn for strict functions.
func strictRowFn(f func(c *Call, args []types.Datum) (types.Datum, error)) Kernel {
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		n := rowsOf(c, args)
		return boxedRows(c, n, args, f, true)
	}
}

// volatileFn is rowFn evaluated for every row even when all arguments are
// constant.
func volatileFn(f func(c *Call, args []types.Datum) (types.Datum, error)) Kernel {
	return func(c *Call, args []vec.Vec) (arrow.Array, error) { return boxedRows(c, c.N, args, f, false) }
}

func boxedRows(c *Call, n int, args []vec.Vec, f func(c *Call, args []types.Datum) (types.Datum, error), strict bool) (arrow.Array, error) {
	out := make([]types.Datum, n)
	row := make([]types.Datum, len(args))
	arrs := make([]arrow.Array, len(args))
	for k, a := range args {
		arrs[k] = vec.Decode(a.Arr)
		if a.Const {
			row[k] = vec.DatumAt(arrs[k], argType(c, k), 0)
		}
	}
	sel := c.Sel
	if n != c.N {
		sel = nil
	}
	size := 0
	one := func(i int) error {
		if err := c.cancelled(); err != nil {
			return err
		}
		for k, a := range args {
			if !a.Const {
				row[k] = vec.DatumAt(arrs[k], argType(c, k), i)
			}
			if strict && row[k] == nil {
				return nil
			}
		}
		d, err := f(c, row)
		if errors.Is(err, errNull) {
			return nil
		}
		out[i] = d
		if s, ok := d.(string); ok && err == nil {
			err = c.fits(size, size+len(s))
			size += len(s)
		}
		return err
	}
	if sel != nil {
		for _, s := range sel {
			if err := one(int(s)); err != nil {
				return nil, err
			}
		}
	} else {
		for i := 0; i < n; i++ {
			if err := one(i); err != nil {
				return nil, err
			}
		}
	}
	return vec.FromDatums(c.Ret, out), nil
}

// constFn wraps a function without arguments that has one value per statement.
func constFn(f func(c *Call) (types.Datum, error)) Kernel {
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		d, err := f(c)
		if err != nil {
			return nil, err
		}
		return vec.FromDatums(c.Ret, []types.Datum{d}), nil
	}
}

// onDict makes a kernel of immutable functions evaluate each value of a
// dictionary once: when one argument is a dictionary and the others are
// constants, it runs on the dictionary's values and spreads the results. A value
// that no row has may fail; then the rows decide.
func onDict(k Kernel) Kernel {
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		at := -1
		for i, a := range args {
			if a.Const {
				if a.Arr.IsNull(0) {
					return k(c, args)
				}
				continue
			}
			if at >= 0 || !vec.IsDict(a.Arr) {
				return k(c, decodeAll(args))
			}
			at = i
		}
		if at < 0 {
			return k(c, decodeAll(args))
		}
		idx, dict, ok := vec.DictView(args[at].Arr)
		if !ok || dict.Len() == 0 || dict.Len() > c.N || dict.Len() > vec.MaxRows {
			return k(c, decodeAll(args))
		}
		sub := *c
		sub.N, sub.Sel = dict.Len(), nil
		in := append([]vec.Vec(nil), args...)
		in[at] = vec.Vec{Arr: dict}
		res, err := k(&sub, in)
		if err != nil {
			return k(c, decodeAll(args))
		}
		valid, off := vec.Validity(args[at].Arr)
		if res.DataType().ID() == arrow.STRING && res.NullN() == 0 {
			return vec.MakeDict(append([]int32(nil), idx...), vec.CopyBits(valid, off, len(idx)), res), nil
		}
		if valid == nil {
			return vec.TakeNull(res, idx), nil
		}
		safe := make([]int32, len(idx))
		for i, x := range idx {
			if vec.BitAt(valid, off+i) {
				safe[i] = x
			} else {
				safe[i] = -1
			}
		}
		return vec.TakeNull(res, safe), nil
	}
}

func decodeAll(args []vec.Vec) []vec.Vec {
	for i, a := range args {
		if vec.IsDict(a.Arr) {
			out := append([]vec.Vec(nil), args...)
			for k := i; k < len(out); k++ {
				out[k].Arr = vec.Decode(out[k].Arr)
			}
			return out
		}
	}
	return args
}
