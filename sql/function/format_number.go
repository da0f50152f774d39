package function

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Number templates (9,999.99) for to_char and to_number. The state machine
// follows PostgreSQL's: each digit place of the template is filled from the
// rounded number, and the sign goes where the first digit does.

type numNode struct {
	key  string // "" for a literal
	text string
}

var numKeys = []string{"EEEE", "FM", "MI", "PL", "PR", "RN", "SG", "SP", "TH", "B", "C", "D", "G", "L", "S", "V", "0", "9", ".", ","}

type numDesc struct {
	nodes                                                 []numNode
	pre, post, multi                                      int
	zeroStart, zeroEnd                                    int
	lsign                                                 int // 0, -1 before, 1 behind
	preLsign                                              int
	decimal, zero, fill, bracket, minus, plus, roman, eee bool
	isMulti, blank, lowRoman                              bool
}

func errTemplate(format string, args ...any) error {
	return pgerr.New(pgerr.SyntaxError, format, args...)
}

func parseNumFormat(f string) (*numDesc, error) {
	d := &numDesc{}
	for i := 0; i < len(f); {
		if f[i] == '"' {
			i++
			for i < len(f) && f[i] != '"' {
				if f[i] == '\\' && i+1 < len(f) {
					i++
				}
				_, w := utf8.DecodeRuneInString(f[i:])
				d.nodes = append(d.nodes, numNode{text: f[i : i+w]})
				i += w
			}
			i++
			continue
		}
		if f[i] == '\\' && i+1 < len(f) && f[i+1] == '"' {
			i++
			d.nodes = append(d.nodes, numNode{text: f[i : i+1]})
			i++
			continue
		}
		key := ""
		for _, k := range numKeys {
			if len(f)-i >= len(k) && (f[i:i+len(k)] == k || f[i:i+len(k)] == strings.ToLower(k)) {
				key = k
				break
			}
		}
		if key == "" {
			_, w := utf8.DecodeRuneInString(f[i:])
			d.nodes = append(d.nodes, numNode{text: f[i : i+w]})
			i += w
			continue
		}
		n := numNode{key: key, text: f[i : i+len(key)]}
		i += len(key)
		d.nodes = append(d.nodes, n)
		if err := d.prepare(n); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *numDesc) prepare(n numNode) error {
	if d.eee && n.key != "EEEE" {
		return errTemplate("\"EEEE\" must be the last pattern used")
	}
	switch n.key {
	case "9":
		if d.bracket {
			return errTemplate("\"9\" must be ahead of \"PR\"")
		}
		switch {
		case d.isMulti:
			d.multi++
		case d.decimal:
			d.post++
		default:
			d.pre++
		}
	case "0":
		if d.bracket {
			return errTemplate("\"0\" must be ahead of \"PR\"")
		}
		if !d.zero && !d.decimal {
			d.zero = true
			d.zeroStart = d.pre + 1
		}
		if d.decimal {
			d.post++
		} else {
			d.pre++
		}
		d.zeroEnd = d.pre + d.post
	case "B":
		if d.pre == 0 && d.post == 0 && !d.zero {
			d.blank = true
		}
	case "D", ".":
		if d.decimal {
			return errTemplate("multiple decimal points")
		}
		if d.isMulti {
			return errTemplate("cannot use \"V\" and decimal point together")
		}
		d.decimal = true
	case "FM":
		d.fill = true
	case "S":
		if d.lsign != 0 {
			return errTemplate("cannot use \"S\" twice")
		}
		if d.plus || d.minus || d.bracket {
			return errTemplate("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together")
		}
		if !d.decimal {
			d.lsign, d.preLsign = -1, d.pre
		} else {
			d.lsign = 1
		}
	case "MI":
		if d.lsign != 0 {
			return errTemplate("cannot use \"S\" and \"MI\" together")
		}
		d.minus = true
	case "PL":
		if d.lsign != 0 {
			return errTemplate("cannot use \"S\" and \"PL\" together")
		}
		d.plus = true
	case "SG":
		if d.lsign != 0 {
			return errTemplate("cannot use \"S\" and \"SG\" together")
		}
		d.minus, d.plus = true, true
	case "PR":
		if d.lsign != 0 || d.plus || d.minus {
			return errTemplate("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together")
		}
		d.bracket = true
	case "RN":
		d.roman = true
		d.lowRoman = n.text == "rn"
	case "V":
		if d.decimal {
			return errTemplate("cannot use \"V\" and decimal point together")
		}
		d.isMulti = true
	case "EEEE":
		if d.eee {
			return errTemplate("cannot use \"EEEE\" twice")
		}
		if d.fill || d.lsign != 0 || d.bracket || d.minus || d.plus || d.roman || d.isMulti {
			return pgerr.New(pgerr.SyntaxError, "\"EEEE\" is incompatible with other formats").
				WithDetail("\"EEEE\" may only be used together with digit and decimal point patterns.")
		}
		d.eee = true
	}
	return nil
}

// format prints a number whose rounded text (without sign) is num.
func (d numDesc) format(dst []byte, num string, neg bool) []byte {
	intLen := strings.IndexByte(num, '.')
	if intLen < 0 {
		intLen = len(num)
	}
	spaces := 0
	if intLen < d.pre {
		spaces = d.pre - intLen
	} else if intLen > d.pre {
		b := []byte(strings.Repeat("#", d.pre+d.post+1))
		b[d.pre] = '.'
		num = string(b)
	}
	p := &numWriter{d: d, num: num, spaces: spaces, sign: '+', out: dst, lastRel: -1}
	if neg {
		p.sign = '-'
	}
	return p.run()
}

type numWriter struct {
	d       numDesc
	num     string
	p       int // next of num
	spaces  int // places before the number's first digit
	sign    byte
	wrote   bool // the sign
	in      bool // within the number
	curr    int
	count   int
	lastRel int // last digit of the fraction that FM keeps; -1 = all
	out     []byte
}

func (w *numWriter) run() []byte {
	d := &w.d
	if d.zeroStart > 0 {
		d.zeroStart--
	}
	if d.plus || d.minus {
		w.wrote = !(d.plus && !d.minus)
	} else {
		if w.sign != '-' && d.fill {
			d.bracket = false
		}
		w.wrote = w.sign == '+' && d.fill && d.lsign == 0
		if d.lsign < 0 && d.pre == d.preLsign {
			d.lsign = 1
		}
	}
	w.count = d.post + d.pre - 1
	if d.fill && d.decimal {
		if dot := strings.IndexByte(w.num, '.'); dot >= 0 {
			w.lastRel = dot
			for i := dot + 1; i < len(w.num); i++ {
				if w.num[i] != '0' {
					w.lastRel = i
				}
			}
			if d.zeroEnd > w.spaces {
				w.lastRel = max(w.lastRel, min(len(w.num)-1, d.zeroEnd-w.spaces))
			}
		}
	}
	if !w.wrote && w.spaces == 0 {
		w.count++
	}
	for _, n := range d.nodes {
		switch n.key {
		case "":
			w.out = append(w.out, n.text...)
		case "9", "0", ".", "D":
			w.digit(n.key)
		case ",", "G":
			if w.in {
				w.out = append(w.out, ',')
			} else if !d.fill {
				w.out = append(w.out, ' ')
			}
		case "L":
			w.out = append(w.out, ' ')
		case "TH":
			if d.roman || w.num[0] == '#' || w.sign == '-' || d.decimal {
				continue
			}
			w.out = append(w.out, ordinal(w.num, n.text == "TH")...)
		case "MI":
			if w.sign == '-' {
				w.out = append(w.out, '-')
			} else if !d.fill {
				w.out = append(w.out, ' ')
			}
		case "PL":
			if w.sign == '+' {
				w.out = append(w.out, '+')
			} else if !d.fill {
				w.out = append(w.out, ' ')
			}
		case "SG":
			w.out = append(w.out, w.sign)
		}
	}
	return w.out
}

func (w *numWriter) cur() byte {
	if w.p < len(w.num) {
		return w.num[w.p]
	}
	return 0
}

func (w *numWriter) predecSpace() bool {
	return !w.d.zero && w.p == 0 && w.num[0] == '0' && w.d.post != 0
}

func (w *numWriter) digit(key string) {
	d := &w.d
	dotLast := w.lastRel >= 0 && w.num[w.lastRel] == '.'
	w.in = false
	if !w.wrote && (w.curr >= w.spaces || d.zero && d.zeroStart == w.curr) && (!w.predecSpace() || dotLast) {
		switch {
		case d.lsign != 0:
			if d.lsign < 0 {
				w.out = append(w.out, w.sign)
				w.wrote = true
			}
		case d.bracket:
			if w.sign == '+' {
				w.out = append(w.out, ' ')
			} else {
				w.out = append(w.out, '<')
			}
			w.wrote = true
		case w.sign == '+':
			if !d.fill {
				w.out = append(w.out, ' ')
			}
			w.wrote = true
		default:
			w.out = append(w.out, '-')
			w.wrote = true
		}
	}
	switch {
	case w.curr < w.spaces && (d.zeroStart > w.curr || !d.zero):
		if !d.fill {
			w.out = append(w.out, ' ')
		}
	case d.zero && w.curr < w.spaces && d.zeroStart <= w.curr:
		w.out = append(w.out, '0')
		w.in = true
	default:
		if w.cur() == '.' {
			if !dotLast || d.fill {
				w.out = append(w.out, '.')
			}
		} else {
			switch {
			case w.lastRel >= 0 && w.p > w.lastRel && key != "0":
			case w.predecSpace():
				if !d.fill {
					w.out = append(w.out, ' ')
				} else if dotLast {
					w.out = append(w.out, '0')
				}
			case w.cur() != 0:
				w.out = append(w.out, w.cur())
				w.in = true
			}
		}
		if w.p < len(w.num) {
			w.p++
		}
	}
	end := w.count
	if w.spaces != 0 {
		end++
	}
	if d.decimal {
		end++
	}
	if w.lastRel >= 0 && w.lastRel == w.p {
		end = w.curr
	}
	if w.curr+1 == end {
		if w.wrote && d.bracket {
			if w.sign == '+' {
				w.out = append(w.out, ' ')
			} else {
				w.out = append(w.out, '>')
			}
		} else if d.lsign > 0 {
			w.out = append(w.out, w.sign)
		}
	}
	w.curr++
}

func roman(v int64, low, fill bool) string {
	s := strings.Repeat("#", 15)
	if v >= 1 && v <= 3999 {
		s = ""
		for _, r := range []struct {
			n int64
			t string
		}{{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"}, {40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"}} {
			for v >= r.n {
				s += r.t
				v -= r.n
			}
		}
	}
	if low {
		s = strings.ToLower(s)
	}
	if !fill {
		s = strings.Repeat(" ", max(0, 15-len(s))) + s
	}
	return s
}

func hashes(d *numDesc) string {
	b := []byte(strings.Repeat("#", d.pre+d.post+6))
	b[0] = ' '
	if d.pre+1 < len(b) {
		b[d.pre+1] = '.'
	}
	return string(b)
}

// sci is d.ddde+xx with prec digits, from exact decimal digits.
func sci(v *numeric.Dec, prec int) string {
	if v.Coef.Sign() == 0 {
		s := " 0"
		if prec > 0 {
			s += "." + strings.Repeat("0", prec)
		}
		return s + "e+00"
	}
	exp := v.Digits() - int(v.Scale) - 1
	// Round to prec+1 significant digits.
	r := v.Round(int32(prec - exp))
	if r.Digits()-int(r.Scale)-1 > exp {
		exp++
	}
	digits := r.Abs().Coef.String()
	for len(digits) < prec+1 {
		digits += "0"
	}
	digits = digits[:prec+1]
	sign := " "
	if v.Coef.Sign() < 0 {
		sign = "-"
	}
	s := sign + digits[:1]
	if prec > 0 {
		s += "." + digits[1:]
	}
	es := "+"
	if exp < 0 {
		es, exp = "-", -exp
	}
	e := strconv.Itoa(exp)
	if len(e) < 2 {
		e = "0" + e
	}
	return s + "e" + es + e
}

func numericToChar(dst []byte, v *dec, d numDesc) ([]byte, error) {
	if d.roman {
		n, ok := v.Int64()
		if !ok {
			n = -1
		}
		return append(dst, roman(n, d.lowRoman, d.fill)...), nil
	}
	if d.eee {
		if v.Form != numeric.Finite {
			return append(dst, hashes(&d)...), nil
		}
		return append(dst, sci(v, d.post)...), nil
	}
	if d.isMulti {
		m := &dec{}
		m.Coef.Set(numeric.Pow10(int32(d.multi)))
		v = numeric.Mul(v, m)
		d.pre += d.multi
	}
	s := v.Round(int32(d.post)).String()
	neg := strings.HasPrefix(s, "-")
	return d.format(dst, strings.TrimPrefix(s, "-"), neg), nil
}

func int8ToChar(dst []byte, v int64, d numDesc) ([]byte, error) {
	if d.roman && v != int64(int32(v)) {
		return nil, errIntRange(types.Int4)
	}
	if d.isMulti {
		p := int64(1)
		for i := 0; i < d.multi; i++ {
			r, ok := mul64(p, 10)
			if p = r; !ok {
				return nil, errIntRange(types.Int8)
			}
		}
		if _, ok := mul64(v, p); !ok {
			return nil, errIntRange(types.Int8)
		}
	}
	return intToChar(dst, v, d)
}

func intToChar(dst []byte, v int64, d numDesc) ([]byte, error) {
	return numericToChar(dst, numeric.FromInt64(v), d)
}

func floatToChar(dst []byte, f float64, d numDesc, digits int) ([]byte, error) {
	if d.roman {
		n := int64(-1)
		if r := math.RoundToEven(f); math.Abs(r) < 1e9 {
			n = int64(r)
		}
		return append(dst, roman(n, d.lowRoman, d.fill)...), nil
	}
	if d.eee {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return append(dst, hashes(&d)...), nil
		}
		s := strconv.FormatFloat(f, 'e', d.post, 64)
		if s[0] != '-' {
			s = " " + s
		}
		return append(dst, s...), nil
	}
	if d.isMulti {
		f *= math.Pow(10, float64(d.multi))
		d.pre += d.multi
	}
	text := func(post int) string {
		switch {
		case math.IsNaN(f):
			return "NaN"
		case math.IsInf(f, 0):
			s := "Infinity"
			if f < 0 {
				s = "-" + s
			}
			return s
		}
		return strconv.FormatFloat(f, 'f', post, 64)
	}
	n := len(strings.TrimPrefix(text(0), "-"))
	post := d.post
	if n >= digits {
		post = 0
	} else if n+post > digits {
		post = digits - n
	}
	s := text(post)
	neg := strings.HasPrefix(s, "-")
	d.post = post
	return d.format(dst, strings.TrimPrefix(s, "-"), neg), nil
}

func toNumber(s string, d numDesc) (*dec, error) {
	if d.roman {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "\"RN\" not supported for input")
	}
	if d.eee {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "\"EEEE\" not supported for input")
	}
	r := &numReader{d: d, s: s, sign: ' '}
	r.run()
	text := string(r.sign) + strings.TrimSuffix(string(r.out), ".")
	v, err := numeric.Parse(text)
	if err != nil {
		return nil, pgerr.New(pgerr.InvalidTextRepresentation, "invalid input syntax for type numeric: \"%s\"", text)
	}
	prec := d.pre + d.multi + r.post
	if v.Coef.Sign() != 0 && v.Digits()-int(v.Scale) > prec-r.post {
		return nil, pgtext.NumericOverflow(prec, r.post)
	}
	if d.isMulti && d.multi > 0 {
		m := &dec{Scale: int32(d.multi)}
		m.Coef.SetInt64(1)
		v = numeric.Mul(v, m.Round(max(int32(d.multi), 16)))
	}
	return v, nil
}

// numReader reads a number by a template, as PostgreSQL does: a digit place
// takes a digit or skips what stands there.
type numReader struct {
	d         numDesc
	s         string
	i         int
	sign      byte
	out       []byte
	pre, post int
	dec       bool
}

func (r *numReader) at(k int) byte {
	if k < len(r.s) {
		return r.s[k]
	}
	return 0
}

func (r *numReader) skipOther(n int) {
	for ; n > 0 && r.i < len(r.s) && strings.IndexByte("0123456789.,+-", r.s[r.i]) < 0; n-- {
		r.i += charLen([]byte(r.s[r.i:]))
	}
}

func (r *numReader) run() {
	for _, n := range r.d.nodes {
		if r.i >= len(r.s) {
			return
		}
		switch n.key {
		case "9", "0", ".", "D":
			r.place(n.key)
		case ",", "G":
			if r.d.fill || r.s[r.i] != ',' {
				continue
			}
		case "L":
			r.skipOther(1)
			continue
		case "TH":
			if !r.d.decimal && r.sign != '-' {
				r.skipOther(2)
			}
			continue
		case "MI":
			if r.s[r.i] != '-' {
				r.skipOther(1)
				continue
			}
			r.sign = '-'
		case "PL":
			if r.s[r.i] != '+' {
				r.skipOther(1)
				continue
			}
			r.sign = '+'
		case "SG":
			if r.s[r.i] != '+' && r.s[r.i] != '-' {
				r.skipOther(1)
				continue
			}
			r.sign = r.s[r.i]
		case "":
			r.i += charLen([]byte(r.s[r.i:]))
			continue
		default:
			continue
		}
		r.i++
	}
}

func (r *numReader) place(key string) {
	d := &r.d
	if r.at(r.i) == ' ' {
		r.i++
	}
	if r.i >= len(r.s) {
		return
	}
	if r.sign == ' ' && (key == "0" || key == "9") && r.pre+r.post == 0 {
		switch c := r.s[r.i]; {
		case c == '-' || d.bracket && c == '<' && d.lsign >= 0:
			r.sign = '-'
			r.i++
		case c == '+':
			r.sign = '+'
			r.i++
		}
	}
	if r.i >= len(r.s) {
		return
	}
	read := false
	switch c := r.s[r.i]; {
	case c >= '0' && c <= '9':
		if r.dec && r.post == d.post {
			return
		}
		r.out = append(r.out, c)
		if r.dec {
			r.post++
		} else {
			r.pre++
		}
		read = true
	case d.decimal && !r.dec && c == '.':
		r.out = append(r.out, '.')
		r.dec, read = true, true
	}
	if r.sign != ' ' || r.pre+r.post == 0 {
		return
	}
	if d.lsign != 0 {
		if next := r.at(r.i + 1); read && (next == '-' || next == '+') {
			r.sign = next
			r.i++
		}
	} else if c := r.at(r.i); !read && (d.plus || d.minus) && (c == '-' || c == '+') {
		r.sign = c
	}
}

type numTemplates struct {
	text string
	d    *numDesc
}

func (t *numTemplates) of(f string) (numDesc, error) {
	if t.d == nil || t.text != f {
		d, err := parseNumFormat(f)
		if err != nil {
			return numDesc{}, err
		}
		t.text, t.d = f, d
	}
	return *t.d, nil
}

// numChar makes to_char of one type of number.
func numChar[T any](f func(dst []byte, v T, d numDesc) ([]byte, error)) Kernel {
	return withCall(func(*Call) Kernel {
		var t numTemplates
		return sfn2(func(dst []byte, v T, fm string) ([]byte, error) {
			if fm == "" {
				return dst, nil
			}
			d, err := t.of(fm)
			if err != nil {
				return nil, err
			}
			return f(dst, v, d)
		})
	})
}

func numberFormats() []*Overload {
	const doc = "A number as text, by a template."
	f4 := types.Of(types.Float4)
	out := []*Overload{
		def("to_char", tText, numChar(intToChar), doc, tInt4, tText),
		def("to_char", tText, numChar(int8ToChar), doc, tInt8, tText),
		def("to_char", tText, numChar(numericToChar), doc, tNum, tText),
		def("to_char", tText, numChar(func(dst []byte, f float64, d numDesc) ([]byte, error) { return floatToChar(dst, f, d, 6) }), doc, f4, tText),
		def("to_char", tText, numChar(func(dst []byte, f float64, d numDesc) ([]byte, error) { return floatToChar(dst, f, d, 15) }), doc, tF8, tText),
		def("to_number", tNum, withCall(func(*Call) Kernel {
			var t numTemplates
			return fn2(func(s, fm string) (*dec, error) {
				if fm == "" {
					return nil, errNull
				}
				d, err := t.of(fm)
				if err != nil {
					return nil, err
				}
				return toNumber(s, d)
			})
		}), "A number read by a template.", tText, tText),
	}
	for _, o := range out {
		o.Volatility = Stable
	}
	return out
}
