package function

import (
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Integer and float arithmetic. A loop computes every row without looking at
// NULLs and gathers one flag "something overflowed"; only when it is set are
// the rows that count looked at one by one.

type signed interface{ ~int16 | ~int32 | ~int64 }

func intName(k types.Kind) string { return types.InfoOf(k).SQLName }

func errIntRange(k types.Kind) error {
	return pgerr.New(pgerr.NumericValueOutOfRange, "%s out of range", intName(k))
}

func errDivZero() error { return pgerr.New(pgerr.DivisionByZero, "division by zero") }

func errTooLong() error {
	return pgerr.New(pgerr.ProgramLimitExceeded, "requested length too large")
}

// addInts writes a+b and returns a word whose sign bit is set if any row
// overflowed.
func addInts[T signed](out, a, b []T) (over T) {
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		x, y := a[i], b[i]
		r := x + y
		out[i] = r
		over |= (x ^ r) & (y ^ r)
	}
	return over
}

func addConst[T signed](out, a []T, y T) (over T) {
	a = a[:len(out)]
	for i := range out {
		x := a[i]
		r := x + y
		out[i] = r
		over |= (x ^ r) & (y ^ r)
	}
	return over
}

func subInts[T signed](out, a, b []T) (over T) {
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		x, y := a[i], b[i]
		r := x - y
		out[i] = r
		over |= (x ^ y) & (x ^ r)
	}
	return over
}

func subConst[T signed](out, a []T, y T) (over T) {
	a = a[:len(out)]
	for i := range out {
		x := a[i]
		r := x - y
		out[i] = r
		over |= (x ^ y) & (x ^ r)
	}
	return over
}

func subFromConst[T signed](out []T, x T, b []T) (over T) {
	b = b[:len(out)]
	for i := range out {
		y := b[i]
		r := x - y
		out[i] = r
		over |= (x ^ y) & (x ^ r)
	}
	return over
}

// mulSmall multiplies ints of up to 32 bits in 64.
func mulSmall[T int16 | int32](out, a, b []T, aConst, bConst bool) (over T) {
	if aConst && !bConst {
		a, b, bConst = b, a, true
	}
	if bConst {
		y := int64(b[0])
		for i := range out {
			p := int64(a[i]) * y
			r := T(p)
			out[i] = r
			if int64(r) != p {
				over = -1
			}
		}
		return over
	}
	for i := range out {
		p := int64(a[i]) * int64(b[i])
		r := T(p)
		out[i] = r
		if int64(r) != p {
			over = -1
		}
	}
	return over
}

func mul64(x, y int64) (int64, bool) {
	if int64(int32(x)) == x && int64(int32(y)) == y {
		return x * y, true
	}
	r := x * y
	if x != 0 && (r/x != y || x == -1 && y == math.MinInt64) {
		return r, false
	}
	return r, true
}

func mulBig(out, a, b []int64, aConst, bConst bool) (over int64) {
	if aConst && !bConst {
		a, b, bConst = b, a, true
	}
	y := b[0]
	for i := range out {
		if !bConst {
			y = b[i]
		}
		r, ok := mul64(a[i], y)
		out[i] = r
		if !ok {
			over = -1
		}
	}
	return over
}

// intSlice returns an integer argument as []T; narrower ones are widened.
func intSlice[T signed](v vec.Vec) []T {
	var z T
	switch any(z).(type) {
	case int16:
		return any(vec.ViewOf[int16](v.Arr).V).([]T)
	case int32:
		switch a := v.Arr.(type) {
		case *array.Int16:
			return widen[T](a.Int16Values())
		}
		return any(vec.ViewOf[int32](v.Arr).V).([]T)
	}
	switch a := v.Arr.(type) {
	case *array.Int16:
		return widen[T](a.Int16Values())
	case *array.Int32:
		return widen[T](a.Int32Values())
	}
	return any(vec.ViewOf[int64](v.Arr).V).([]T)
}

func widen[T signed, F int16 | int32](v []F) []T {
	out := make([]T, len(v))
	for i, x := range v {
		out[i] = T(x)
	}
	return out
}

// intArith makes the kernel of + - * for results of kind k held as T.
func intArith[T signed](op byte, k types.Kind) Kernel {
	dt := types.Of(k).Arrow()
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		n := rowsOf(c, args)
		valid, none := strictValid(n, args)
		if none {
			return vec.MakeNull(dt, n), nil
		}
		a, b := intSlice[T](args[0]), intSlice[T](args[1])
		ac, bc := args[0].Const && n != 1, args[1].Const && n != 1
		if n == 1 {
			a, b = a[:1], b[:1]
		}
		out := make([]T, n)
		var over T
		switch {
		case op == '+' && bc:
			over = addConst(out, a, b[0])
		case op == '+' && ac:
			over = addConst(out, b, a[0])
		case op == '+':
			over = addInts(out, a, b)
		case op == '-' && bc:
			over = subConst(out, a, b[0])
		case op == '-' && ac:
			over = subFromConst(out, a[0], b)
		case op == '-':
			over = subInts(out, a, b)
		default:
			switch o := any(out).(type) {
			case []int16:
				over = T(mulSmall(o, any(a).([]int16), any(b).([]int16), ac, bc))
			case []int32:
				over = T(mulSmall(o, any(a).([]int32), any(b).([]int32), ac, bc))
			case []int64:
				over = T(mulBig(o, any(a).([]int64), any(b).([]int64), ac, bc))
			}
		}
		if over < 0 {
			if err := findOverflow(op, k, a, b, ac, bc, n, selOf(c, args), valid); err != nil {
				return nil, err
			}
		}
		return vec.Make(dt, out, valid), nil
	}
}

// findOverflow tells whether a row that counts overflowed.
func findOverflow[T signed](op byte, k types.Kind, a, b []T, ac, bc bool, n int, sel []uint16, valid []byte) error {
	bad := false
	rowsLoop(n, sel, valid, func(i int) {
		x, y := a[0], b[0]
		if !ac {
			x = a[i]
		}
		if !bc {
			y = b[i]
		}
		switch op {
		case '+':
			r := x + y
			bad = bad || (x^r)&(y^r) < 0
		case '-':
			r := x - y
			bad = bad || (x^y)&(x^r) < 0
		default:
			r, ok := mul64(int64(x), int64(y))
			bad = bad || !ok || int64(T(r)) != r
		}
	})
	if bad {
		return errIntRange(k)
	}
	return nil
}

// intDiv makes / and %.
func intDiv[T signed](mod bool, k types.Kind) Kernel {
	dt := types.Of(k).Arrow()
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		n := rowsOf(c, args)
		valid, none := strictValid(n, args)
		if none {
			return vec.MakeNull(dt, n), nil
		}
		a, b := intSlice[T](args[0]), intSlice[T](args[1])
		ac, bc := args[0].Const, args[1].Const
		out := make([]T, n)
		if bc && b[0] != 0 && b[0] != -1 && !ac {
			// Nothing can go wrong.
			y := b[0]
			if mod {
				for i := range out {
					out[i] = a[i] % y
				}
			} else {
				for i := range out {
					out[i] = a[i] / y
				}
			}
			return vec.Make(dt, out, valid), nil
		}
		var err error
		rowsLoop(n, selOf(c, args), valid, func(i int) {
			x, y := a[0], b[0]
			if !ac {
				x = a[i]
			}
			if !bc {
				y = b[i]
			}
			switch {
			case y == 0:
				err = errDivZero()
			case y == -1:
				// The only quotient that overflows, and a trap in some CPUs.
				if mod {
					out[i] = 0
				} else if out[i] = -x; x == out[i] && x != 0 {
					err = errIntRange(k)
				}
			case mod:
				out[i] = x % y
			default:
				out[i] = x / y
			}
		})
		if err != nil {
			return nil, err
		}
		return vec.Make(dt, out, valid), nil
	}
}

func errFloatOverflow() error {
	return pgerr.New(pgerr.NumericValueOutOfRange, "value out of range: overflow")
}

func errFloatUnderflow() error {
	return pgerr.New(pgerr.NumericValueOutOfRange, "value out of range: underflow")
}

// floatOp computes one float result and PostgreSQL's errors.
func floatOp(op byte, x, y float64) (r float64, err error) {
	switch op {
	case '+':
		r = x + y
	case '-':
		r = x - y
	case '*':
		r = x * y
		if r == 0 && x != 0 && y != 0 {
			return r, errFloatUnderflow()
		}
	case '/':
		if y == 0 && x == x {
			return 0, errDivZero()
		}
		r = x / y
		if r == 0 && x != 0 && !math.IsInf(y, 0) {
			return r, errFloatUnderflow()
		}
	}
	if math.IsInf(r, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		return r, errFloatOverflow()
	}
	return r, nil
}

// suspicious reports whether a result needs the slow look: infinities, zeros of
// * and /, NaN.
func suspiciousCount(op byte, out []float64) (bad uint8) {
	if op == '*' || op == '/' {
		for _, r := range out {
			bad |= u8(r-r != 0) | u8(r == 0)
		}
		return bad
	}
	for _, r := range out {
		bad |= u8(r-r != 0)
	}
	return bad
}

func float8Arith(op byte) Kernel {
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		n := rowsOf(c, args)
		valid, none := strictValid(n, args)
		if none {
			return vec.MakeNull(arrow.PrimitiveTypes.Float64, n), nil
		}
		s := scratchOf(c)
		a, b := wideFloats(args[0], n, &s.f[0]), wideFloats(args[1], n, &s.f[1])
		a, b = a[:n], b[:n]
		out := make([]float64, n)
		switch op {
		case '+':
			for i := range out {
				out[i] = a[i] + b[i]
			}
		case '-':
			for i := range out {
				out[i] = a[i] - b[i]
			}
		case '*':
			for i := range out {
				out[i] = a[i] * b[i]
			}
		default:
			for i := range out {
				out[i] = a[i] / b[i]
			}
		}
		if suspiciousCount(op, out) != 0 {
			var err error
			rowsLoop(n, selOf(c, args), valid, func(i int) {
				if _, e := floatOp(op, a[i], b[i]); e != nil && err == nil {
					err = e
				}
			})
			if err != nil {
				return nil, err
			}
		}
		return vec.Make(arrow.PrimitiveTypes.Float64, out, valid), nil
	}
}

// float4Arith computes in float32 as PostgreSQL does.
func float4Arith(op byte) Kernel {
	return fn2(func(x, y float64) (float64, error) {
		r, err := floatOp(op, x, y)
		if err != nil {
			return 0, err
		}
		// One rounding: float64 has enough digits for + - * / of float32.
		f := float64(float32(r))
		if math.IsInf(f, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
			return 0, errFloatOverflow()
		}
		if f == 0 && r != 0 {
			return 0, errFloatUnderflow()
		}
		return f, nil
	})
}

func sameOps(out []*Overload, name string, a, b, ret types.Kind, k Kernel, doc string) []*Overload {
	return append(out, &Overload{Name: name, Args: []types.Type{types.Of(a), types.Of(b)}, Ret: types.Of(ret), Strict: true, Kernel: k, Doc: doc})
}

func intKernels(k types.Kind) (arith func(op byte) Kernel, div func(mod bool) Kernel) {
	switch k {
	case types.Int2:
		return func(op byte) Kernel { return intArith[int16](op, k) }, func(m bool) Kernel { return intDiv[int16](m, k) }
	case types.Int4:
		return func(op byte) Kernel { return intArith[int32](op, k) }, func(m bool) Kernel { return intDiv[int32](m, k) }
	}
	return func(op byte) Kernel { return intArith[int64](op, k) }, func(m bool) Kernel { return intDiv[int64](m, k) }
}

func arithmetic() []*Overload {
	var out []*Overload
	ints := []types.Kind{types.Int2, types.Int4, types.Int8}
	for _, a := range ints {
		for _, b := range ints {
			k := max(a, b)
			ar, dv := intKernels(k)
			out = sameOps(out, "+", a, b, k, ar('+'), "Sum of two integers.")
			out = sameOps(out, "-", a, b, k, ar('-'), "Difference of two integers.")
			out = sameOps(out, "*", a, b, k, ar('*'), "Product of two integers.")
			out = sameOps(out, "/", a, b, k, dv(false), "Quotient of two integers, cut toward zero.")
			if a == b {
				out = sameOps(out, "%", a, b, k, dv(true), "Remainder of an integer division, with the sign of the dividend.")
			}
		}
	}
	f8 := []types.Kind{types.Float4, types.Float8}
	for _, a := range f8 {
		for _, b := range f8 {
			for _, op := range "+-*/" {
				doc := map[rune]string{'+': "Sum of two floats.", '-': "Difference of two floats.", '*': "Product of two floats.", '/': "Quotient of two floats."}[op]
				if a == types.Float4 && b == types.Float4 {
					out = sameOps(out, string(op), a, b, types.Float4, float4Arith(byte(op)), doc)
				} else {
					out = sameOps(out, string(op), a, b, types.Float8, float8Arith(byte(op)), doc)
				}
			}
		}
	}
	out = sameOps(out, "^", types.Float8, types.Float8, types.Float8, fn2(powFloat), "Power of floats.")
	out = append(out, bitOps()...)
	for _, k := range ints {
		t := []types.Type{types.Of(k)}
		neg := func(a int64) (int64, error) { return checkInt(k, -a, a == math.MinInt64) }
		out = append(out,
			&Overload{Name: "-", Args: t, Ret: t[0], Strict: true, Kernel: fn1(neg), Doc: "Negation of an integer."},
			&Overload{Name: "+", Args: t, Ret: t[0], Strict: true, Kernel: identity, Doc: "An integer as it is."},
			&Overload{Name: "@", Args: t, Ret: t[0], Strict: true, Kernel: fn1(absInt(k)), Doc: "Absolute value of an integer."})
	}
	for _, k := range f8 {
		t := []types.Type{types.Of(k)}
		out = append(out,
			&Overload{Name: "-", Args: t, Ret: t[0], Strict: true, Kernel: fn1(func(a float64) (float64, error) { return -a, nil }), Doc: "Negation of a float."},
			&Overload{Name: "+", Args: t, Ret: t[0], Strict: true, Kernel: identity, Doc: "A float as it is."},
			&Overload{Name: "@", Args: t, Ret: t[0], Strict: true, Kernel: fn1(func(a float64) (float64, error) { return math.Abs(a), nil }), Doc: "Absolute value of a float."})
	}
	t := []types.Type{types.Of(types.Float8)}
	out = append(out,
		&Overload{Name: "|/", Args: t, Ret: t[0], Strict: true, Kernel: fn1(sqrtFloat), Doc: "Square root."},
		&Overload{Name: "||/", Args: t, Ret: t[0], Strict: true, Kernel: fn1(func(a float64) (float64, error) { return math.Cbrt(a), nil }), Doc: "Cube root."})
	return append(out, numericOps()...)
}

// checkInt returns v when it fits kind k and did not overflow int64 before.
func checkInt(k types.Kind, v int64, overflowed bool) (int64, error) {
	switch {
	case overflowed, k == types.Int2 && v != int64(int16(v)), k == types.Int4 && v != int64(int32(v)):
		return 0, errIntRange(k)
	}
	return v, nil
}

func absInt(k types.Kind) func(a int64) (int64, error) {
	return func(a int64) (int64, error) {
		if a >= 0 {
			return a, nil
		}
		return checkInt(k, -a, a == math.MinInt64)
	}
}

func bitOps() []*Overload {
	var out []*Overload
	for _, k := range []types.Kind{types.Int2, types.Int4, types.Int8} {
		t, bits := types.Of(k), int64(map[types.Kind]int{types.Int2: 32, types.Int4: 32, types.Int8: 64}[k])
		trunc := func(v int64) (int64, error) {
			switch k {
			case types.Int2:
				return int64(int16(v)), nil
			case types.Int4:
				return int64(int32(v)), nil
			}
			return v, nil
		}
		add := func(name string, f func(a, b int64) (int64, error), doc string) {
			out = append(out, &Overload{Name: name, Args: []types.Type{t, t}, Ret: t, Strict: true, Kernel: fn2(f), Doc: doc})
		}
		add("&", func(a, b int64) (int64, error) { return a & b, nil }, "Bitwise AND.")
		add("|", func(a, b int64) (int64, error) { return a | b, nil }, "Bitwise OR.")
		add("#", func(a, b int64) (int64, error) { return a ^ b, nil }, "Bitwise exclusive OR.")
		i4 := types.Of(types.Int4)
		// Shift counts wrap as on the processors that PostgreSQL runs on.
		out = append(out,
			&Overload{Name: "<<", Args: []types.Type{t, i4}, Ret: t, Strict: true, Kernel: fn2(func(a, b int64) (int64, error) { return trunc(a << uint(b&(bits-1))) }), Doc: "Shift to the left."},
			&Overload{Name: ">>", Args: []types.Type{t, i4}, Ret: t, Strict: true, Kernel: fn2(func(a, b int64) (int64, error) { return a >> uint(b&(bits-1)), nil }), Doc: "Shift to the right, keeping the sign."},
			&Overload{Name: "~", Args: []types.Type{t}, Ret: t, Strict: true, Kernel: fn1(func(a int64) (int64, error) { return ^a, nil }), Doc: "Bitwise NOT."})
	}
	return out
}
