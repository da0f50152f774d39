package aggregate

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// bool_and and bool_or combine what is not NULL. Source: FieldBoolAndAgg.java.
var (
	boolAnd = Function{Name: "bool_and", Takes: isBool, New: newBool("bool_and", false)}
	boolOr  = Function{Name: "bool_or", Takes: isBool, New: newBool("bool_or", true)}
)

func isBool(t types.Type) bool { return t.Kind == types.Bool }

// boolFold has the value that decides: true for or, false for and.
type boolFold struct {
	name    string
	decides bool
}

func newBool(name string, decides bool) func(Spec) (Aggregate, error) {
	return func(Spec) (Aggregate, error) { return boolFold{name, decides}, nil }
}

func boolBits(a arrow.Array) (bits []byte, off int) {
	d := a.Data()
	if b := d.Buffers()[1]; b != nil {
		bits = b.Bytes()
	}
	return bits, d.Offset()
}

func (f boolFold) Fold(in *Input) (arrow.Array, error) {
	bits, at := boolBits(in.Col)
	valid, off := vec.Validity(in.Col)
	n := len(in.Ends)
	out, null := vec.NewBitmap(n), nulls{n: n}
	i := 0
	for k, e := range in.Ends {
		if in.Ops == nil {
			one, zero, any := byte(0), byte(0), byte(0)
			for ; i < int(e); i++ {
				ok := byte(1)
				if valid != nil {
					ok = valid[(off+i)>>3] >> ((off + i) & 7) & 1
				}
				x := bits[(at+i)>>3] >> ((at + i) & 7) & 1
				one |= x & ok
				zero |= ok &^ x
				any |= ok
			}
			switch {
			case any == 0:
				null.set(k)
			case f.decides && one != 0 || !f.decides && zero == 0:
				vec.SetBit(out, k)
			}
			continue
		}
		acc, some := false, false
		for ; i < int(e); i++ {
			op := in.Ops[i]
			ok := vec.BitAt(valid, off+i)
			switch op {
			case Add, AddReversed:
				if ok {
					x := vec.BitAt(bits, at+i)
					if !some || x == f.decides {
						acc = x
					}
					some = true
				}
			case Retract, SetRetract:
				return nil, noRetract(f.name)
			case Set:
				acc, some = vec.BitAt(bits, at+i), ok
			case Clear:
				some = false
			}
		}
		switch {
		case !some:
			null.set(k)
		case acc:
			vec.SetBit(out, k)
		}
	}
	return vec.MakeBool(n, out, null.bits), nil
}
