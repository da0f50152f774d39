package function

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Functions over arguments of any type: concat, format, quoting.

// outAppender is the output function of a type: pgtext's form, but names for
// oid aliases.
func outAppender(c *Call, t types.Type, a arrow.Array) func(dst []byte, row int) []byte {
	if isReg(t.Kind) {
		return TextAppender(c, t, a)
	}
	return pgtext.Appender(t, a, StyleOf(c.Env))
}

// anyColumn reads a variadic "any" argument as text.
type anyColumn struct {
	arr    arrow.Array
	const_ bool
	text   func(dst []byte, row int) []byte
}

func (a *anyColumn) at(i int) (row int, null bool) {
	if a.const_ {
		i = 0
	}
	return i, a.arr.IsNull(i)
}

func anyColumns(c *Call, args []vec.Vec, from int) []anyColumn {
	var out []anyColumn
	for k := from; k < len(args); k++ {
		out = append(out, anyColumn{args[k].Arr, args[k].Const, outAppender(c, argType(c, k), args[k].Arr)})
	}
	return out
}

func concat(c *Call, args []vec.Vec) (arrow.Array, error) {
	n := rowsOf(c, args)
	cols := anyColumns(c, args, 0)
	return appendRows(c, n, selOf(c, args), nil, func(dst []byte, i int) ([]byte, error) {
		for k := range cols {
			if r, null := cols[k].at(i); !null {
				dst = cols[k].text(dst, r)
			}
		}
		return dst, nil
	})
}

func concatWS(c *Call, args []vec.Vec) (arrow.Array, error) {
	n := rowsOf(c, args)
	cols := anyColumns(c, args, 0)
	return appendRows(c, n, selOf(c, args), nil, func(dst []byte, i int) ([]byte, error) {
		r, null := cols[0].at(i)
		if null {
			return dst, errNull
		}
		first := true
		for k := 1; k < len(cols); k++ {
			x, null := cols[k].at(i)
			if null {
				continue
			}
			if !first {
				dst = cols[0].text(dst, r)
			}
			first = false
			dst = cols[k].text(dst, x)
		}
		return dst, nil
	})
}

// anyConcat is text || anynonarray and back: the other side cast to text.
func anyConcat(c *Call, args []vec.Vec) (arrow.Array, error) {
	n := rowsOf(c, args)
	valid, none := strictValid(n, args)
	if none {
		return nullResult(c, n)
	}
	var f [2]func(dst []byte, row int) []byte
	for k := range f {
		t := argType(c, k)
		if t.Kind == types.BpChar {
			t = types.Of(types.Text)
			s := vec.ViewStr(vec.Decode(args[k].Arr))
			f[k] = func(dst []byte, row int) []byte { return append(dst, vec.TrimBlanks(s.At(row))...) }
			continue
		}
		f[k] = TextAppender(c, t, vec.Decode(args[k].Arr))
	}
	return appendRows(c, n, selOf(c, args), valid, func(dst []byte, i int) ([]byte, error) {
		for k := range f {
			r := i
			if args[k].Const {
				r = 0
			}
			dst = f[k](dst, r)
		}
		return dst, nil
	})
}

// textConcat is text || text.
func textConcat(c *Call, args []vec.Vec) (arrow.Array, error) {
	n := rowsOf(c, args)
	valid, none := strictValid(n, args)
	if none {
		return nullResult(c, n)
	}
	a, b := vec.ViewStr(args[0].Arr), vec.ViewStr(args[1].Arr)
	w := &bytesWriter{c: c, dt: c.Ret.Arrow(), off: make([]int32, 1, n+1), n: n}
	if !args[0].Const && !args[1].Const && len(a.Offs) > n && len(b.Offs) > n {
		w.data = make([]byte, 0, int(a.Offs[n]-a.Offs[0])+int(b.Offs[n]-b.Offs[0]))
	}
	var over error
	rowsLoop(n, selOf(c, args), valid, func(i int) {
		x, y := i, i
		if args[0].Const {
			x = 0
		}
		if args[1].Const {
			y = 0
		}
		w.pad(i)
		l, r := a.At(x), b.At(y)
		if over == nil {
			over = c.fits(len(w.data), len(w.data)+len(l)+len(r))
		}
		if over == nil {
			w.data = append(append(w.data, l...), r...)
		}
		w.end()
	})
	if over != nil {
		return nil, over
	}
	return w.done(valid), nil
}

func formatFn(c *Call, args []vec.Vec) (arrow.Array, error) {
	n := rowsOf(c, args)
	cols := anyColumns(c, args, 1)
	f := vec.ViewStr(vec.Decode(args[0].Arr))
	return appendRows(c, n, selOf(c, args), nil, func(dst []byte, i int) ([]byte, error) {
		r := i
		if args[0].Const {
			r = 0
		}
		if f.IsNull(r) {
			return dst, errNull
		}
		return formatRow(dst, string(f.At(r)), cols, i)
	})
}

func formatRow(dst []byte, f string, cols []anyColumn, i int) ([]byte, error) {
	next := 0
	unterminated := func() error {
		return pgerr.New(pgerr.InvalidParameterValue, "unterminated format() type specifier").
			WithHint("For a single \"%%\" use \"%%%%\".")
	}
	value := func(pos int) (string, bool, error) {
		if pos >= len(cols) {
			return "", false, pgerr.New(pgerr.InvalidParameterValue, "too few arguments for format()")
		}
		r, null := cols[pos].at(i)
		if null {
			return "", true, nil
		}
		return string(cols[pos].text(nil, r)), false, nil
	}
	for p := 0; p < len(f); p++ {
		if f[p] != '%' {
			dst = append(dst, f[p])
			continue
		}
		if p++; p >= len(f) {
			return nil, unterminated()
		}
		if f[p] == '%' {
			dst = append(dst, '%')
			continue
		}
		digits := func() (int, bool) {
			from := p
			v := 0
			for p < len(f) && f[p] >= '0' && f[p] <= '9' {
				v = v*10 + int(f[p]-'0')
				if v > 1<<30 {
					return 0, false
				}
				p++
			}
			return v, p > from
		}
		pos := -1
		width, hasWidth := digits()
		if hasWidth && p < len(f) && f[p] == '$' {
			if width == 0 {
				return nil, pgerr.New(pgerr.InvalidParameterValue, "format specifies argument 0, but arguments are numbered from 1")
			}
			pos, hasWidth = width-1, false
			p++
		}
		minus := false
		if !hasWidth {
			for p < len(f) && f[p] == '-' {
				minus = true
				p++
			}
			if p < len(f) && f[p] == '*' {
				p++
				wpos := next
				if v, ok := digits(); ok {
					if p >= len(f) || f[p] != '$' {
						return nil, pgerr.New(pgerr.InvalidParameterValue, "width argument position must be ended by \"$\"")
					}
					if v == 0 {
						return nil, pgerr.New(pgerr.InvalidParameterValue, "format specifies argument 0, but arguments are numbered from 1")
					}
					p++
					wpos = v - 1
				}
				next = wpos + 1
				s, null, err := value(wpos)
				if err != nil {
					return nil, err
				}
				if !null {
					w, err := strconv.Atoi(strings.TrimSpace(s))
					if err != nil {
						return nil, pgerr.New(pgerr.InvalidTextRepresentation, "invalid input syntax for type integer: \"%s\"", s)
					}
					width = w
					if width < 0 {
						minus, width = true, -width
					}
				} else {
					width = 0
				}
			} else {
				width, _ = digits()
			}
		}
		if p >= len(f) {
			return nil, unterminated()
		}
		kind := f[p]
		if kind != 's' && kind != 'I' && kind != 'L' {
			_, n := utf8.DecodeRuneInString(f[p:])
			return nil, pgerr.New(pgerr.InvalidParameterValue, "unrecognized format() type specifier \"%s\"", f[p:p+n]).
				WithHint("For a single \"%%\" use \"%%%%\".")
		}
		if pos < 0 {
			pos = next
		}
		next = pos + 1
		s, null, err := value(pos)
		if err != nil {
			return nil, err
		}
		switch {
		case kind == 'I' && null:
			return nil, pgerr.New(pgerr.NullValueNotAllowed, "null values cannot be formatted as an SQL identifier")
		case kind == 'I':
			s = QuoteIdent(s)
		case kind == 'L' && null:
			s = "NULL"
		case kind == 'L':
			s = QuoteLiteral(s)
		}
		fill := width - utf8.RuneCountInString(s)
		if fill > 1<<28 {
			return nil, errTooLong()
		}
		for ; fill > 0 && !minus; fill-- {
			dst = append(dst, ' ')
		}
		dst = append(dst, s...)
		for ; fill > 0; fill-- {
			dst = append(dst, ' ')
		}
	}
	return dst, nil
}

func quoteAny(nullable bool) Kernel {
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		n := rowsOf(c, args)
		cols := anyColumns(c, args, 0)
		return appendRows(c, n, selOf(c, args), nil, func(dst []byte, i int) ([]byte, error) {
			r, null := cols[0].at(i)
			if null {
				if nullable {
					return append(dst, "NULL"...), nil
				}
				return dst, errNull
			}
			return append(dst, QuoteLiteral(string(cols[0].text(nil, r)))...), nil
		})
	}
}
