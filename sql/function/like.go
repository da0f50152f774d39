package function

import (
	"bytes"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// LIKE and ILIKE. A pattern is compiled once: into pieces between its % signs.
// Pieces without _ are found by bytes.Index; the usual forms (abc, abc%, %abc,
// %abc%) end up as one comparison or search.

type likePiece struct {
	lit  []byte // literal bytes; with wild, see toks
	wild bool   // contains _
	toks []likeTok
}

// likeTok is a literal run or, when lit is nil, n characters.
type likeTok struct {
	lit []byte
	n   int
}

type likePattern struct {
	pieces           []likePiece
	anchorL, anchorR bool // no % at the start, at the end
	fold             bool // ILIKE: ASCII case does not count
	bad              bool // the pattern ends with the escape character
	text             []byte
}

// LikeError is the error of a pattern that ends with its escape character.
func errLikeEscape() error {
	return pgerr.New(pgerr.InvalidEscapeSequence, "LIKE pattern must not end with escape character")
}

func asciiLower(b []byte) []byte {
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			out := append([]byte(nil), b...)
			for ; i < len(out); i++ {
				if c := out[i]; c >= 'A' && c <= 'Z' {
					out[i] = c + 32
				}
			}
			return out
		}
	}
	return b
}

// compileLike compiles a pattern whose escape character is a backslash.
func compileLike(p []byte, fold bool) *likePattern {
	lp := &likePattern{fold: fold, anchorL: true, anchorR: true}
	if fold {
		p = asciiLower(p)
	}
	lp.text = append([]byte(nil), p...)
	var cur likePiece
	var lit []byte
	flushLit := func() {
		if lit != nil {
			cur.toks = append(cur.toks, likeTok{lit: lit})
			lit = nil
		}
	}
	flush := func() {
		flushLit()
		if len(cur.toks) > 0 {
			if len(cur.toks) == 1 && cur.toks[0].lit != nil {
				cur.lit = cur.toks[0].lit
			} else {
				cur.wild = true
			}
			lp.pieces = append(lp.pieces, cur)
		}
		cur = likePiece{}
	}
	lastPercent := false
	for i := 0; i < len(p); i++ {
		c := p[i]
		lastPercent = false
		switch c {
		case '%':
			if len(lp.pieces) == 0 && len(cur.toks) == 0 && lit == nil {
				lp.anchorL = false
			}
			flush()
			lastPercent = true
		case '_':
			flushLit()
			if n := len(cur.toks); n > 0 && cur.toks[n-1].lit == nil {
				cur.toks[n-1].n++
			} else {
				cur.toks = append(cur.toks, likeTok{n: 1})
			}
		case '\\':
			if i+1 == len(p) {
				lp.bad = true
				break
			}
			i++
			lit = append(lit, p[i])
		default:
			lit = append(lit, c)
		}
	}
	flush()
	lp.anchorR = !lastPercent
	return lp
}

// matchAt matches the piece at the start of s and returns its length, or -1.
func (p *likePiece) matchAt(s []byte) int {
	if !p.wild {
		if bytes.HasPrefix(s, p.lit) {
			return len(p.lit)
		}
		return -1
	}
	at := 0
	for _, t := range p.toks {
		if t.lit != nil {
			if !bytes.HasPrefix(s[at:], t.lit) {
				return -1
			}
			at += len(t.lit)
			continue
		}
		for k := 0; k < t.n; k++ {
			if at >= len(s) {
				return -1
			}
			at += charLen(s[at:])
		}
	}
	return at
}

func charLen(s []byte) int {
	if s[0] < utf8.RuneSelf {
		return 1
	}
	_, n := utf8.DecodeRune(s)
	return n
}

// find returns where the piece first matches in s, and where the match ends.
func (p *likePiece) find(s []byte) (from, to int) {
	if !p.wild {
		i := bytes.Index(s, p.lit)
		return i, i + len(p.lit)
	}
	for i := 0; ; {
		if n := p.matchAt(s[i:]); n >= 0 {
			return i, i + n
		}
		if i >= len(s) {
			return -1, -1
		}
		i += charLen(s[i:])
	}
}

// matchEnd reports whether the piece matches exactly at the end of s.
func (p *likePiece) matchEnd(s []byte) bool {
	if !p.wild {
		return bytes.HasSuffix(s, p.lit)
	}
	// Go back by as many characters as the piece has.
	chars := 0
	for _, t := range p.toks {
		if t.lit != nil {
			chars += utf8.RuneCount(t.lit)
		} else {
			chars += t.n
		}
	}
	i := len(s)
	for ; chars > 0; chars-- {
		if i == 0 {
			return false
		}
		_, n := utf8.DecodeLastRune(s[:i])
		i -= n
	}
	n := p.matchAt(s[i:])
	return n == len(s)-i
}

// check is match with the error of a pattern that ends with the escape
// character: only when matching gets there with text left, as in PostgreSQL.
func (lp *likePattern) check(s []byte) (bool, error) {
	if !lp.bad {
		return lp.match(s), nil
	}
	if lp.fold {
		s = asciiLower(s)
	}
	return slowLike(s, lp.text)
}

// slowLike matches character by character.
func slowLike(s, p []byte) (bool, error) {
	for len(p) > 0 {
		switch p[0] {
		case '%':
			for len(p) > 0 && p[0] == '%' {
				p = p[1:]
			}
			if len(p) == 0 {
				return true, nil
			}
			for len(s) > 0 {
				ok, err := slowLike(s, p)
				if ok || err != nil {
					return ok, err
				}
				s = s[charLen(s):]
			}
			return false, nil
		case '_':
			if len(s) == 0 {
				return false, nil
			}
			s, p = s[charLen(s):], p[1:]
			continue
		case '\\':
			if len(s) == 0 {
				return false, nil
			}
			if p = p[1:]; len(p) == 0 {
				return false, errLikeEscape()
			}
		}
		if len(s) == 0 || s[0] != p[0] {
			return false, nil
		}
		s, p = s[1:], p[1:]
	}
	return len(s) == 0, nil
}

func (lp *likePattern) match(s []byte) bool {
	if lp.fold {
		s = asciiLower(s)
	}
	ps := lp.pieces
	if len(ps) == 0 {
		return !lp.anchorL || !lp.anchorR || len(s) == 0
	}
	if lp.anchorL && lp.anchorR && len(ps) == 1 {
		return ps[0].matchAt(s) == len(s)
	}
	if lp.anchorL {
		n := ps[0].matchAt(s)
		if n < 0 {
			return false
		}
		s, ps = s[n:], ps[1:]
	}
	last := len(ps)
	if lp.anchorR {
		last--
	}
	for k := 0; k < last; k++ {
		_, to := ps[k].find(s)
		if to < 0 || to == ps[k].missEnd() {
			return false
		}
		s = s[to:]
	}
	if lp.anchorR && last >= 0 && last < len(ps) {
		return ps[last].matchEnd(s)
	}
	return true
}

// missEnd is what find returns as end when a literal is not found.
func (p *likePiece) missEnd() int {
	if p.wild {
		return -1
	}
	return -1 + len(p.lit)
}

// likeKernel is x [NOT] [I]LIKE pattern.
func likeKernel(fold, negate bool) Kernel {
	match := func(c *Call, args []vec.Vec) (arrow.Array, error) {
		n := rowsOf(c, args)
		valid, none := strictValid(n, args)
		if none {
			return vec.MakeNull(arrow.FixedWidthTypes.Boolean, n), nil
		}
		text := reader[[]byte](args[0], types.Of(types.Text))
		if argType(c, 0).Kind == types.BpChar {
			// bpchar ~~ text looks at the blanks too.
			text = reader[[]byte](args[0], types.Of(types.Text))
		}
		pats := reader[[]byte](args[1], types.Of(types.Text))
		out := make([]uint8, n)
		var err error
		if args[1].Const {
			lp := cachedLike(c, pats(0), fold)
			if valid == nil && selOf(c, args) == nil && !args[0].Const && lp.scan(args[0].Arr, out, negate) {
				return boolResult(n, out, nil), nil
			}
			rowsLoop(n, selOf(c, args), valid, func(i int) {
				ok, e := lp.check(text(i))
				if e != nil {
					err = e
				}
				out[i] = u8(ok != negate)
			})
			if err != nil {
				return nil, err
			}
			return boolResult(n, out, valid), nil
		}
		rowsLoop(n, selOf(c, args), valid, func(i int) {
			ok, e := compileLike(pats(i), fold).check(text(i))
			if e != nil {
				err = e
			}
			out[i] = u8(ok != negate)
		})
		if err != nil {
			return nil, err
		}
		return boolResult(n, out, valid), nil
	}
	return onDict(match)
}

// scan matches a whole column, when the pattern allows it: one literal at the
// start, the end or all of the text, or literals that may stand anywhere. Those
// are looked for in the column's bytes at once, so that rows without the
// longest literal cost nothing.
func (lp *likePattern) scan(a arrow.Array, out []uint8, negate bool) bool {
	if lp.fold || lp.bad || len(lp.pieces) == 0 || a.DataType().ID() != arrow.STRING && a.DataType().ID() != arrow.BINARY {
		return false
	}
	s := vec.ViewStr(a)
	n := len(out)
	no := u8(negate)
	if p := &lp.pieces[0]; len(lp.pieces) == 1 && !p.wild && (lp.anchorL || lp.anchorR) {
		lit := string(p.lit)
		k := len(lit)
		for i := range out {
			v := s.Data[s.Offs[i]:s.Offs[i+1]]
			hit := false
			switch {
			case lp.anchorL && lp.anchorR:
				hit = string(v) == lit
			case len(v) < k:
			case lp.anchorL:
				hit = string(v[:k]) == lit
			default:
				hit = string(v[len(v)-k:]) == lit
			}
			out[i] = u8(hit) ^ no
		}
		return true
	}
	// The longest literal decides where to look.
	var lit []byte
	for _, p := range lp.pieces {
		for _, t := range p.toks {
			if len(t.lit) > len(lit) {
				lit = t.lit
			}
		}
	}
	if len(lit) < 2 || n == 0 {
		return false
	}
	for i := range out {
		out[i] = no
	}
	row := 0
	end := int(s.Offs[n])
	for at := int(s.Offs[0]); at < end; {
		i := bytes.Index(s.Data[at:end], lit)
		if i < 0 {
			break
		}
		at += i
		for int(s.Offs[row+1]) <= at {
			row++
		}
		next := int(s.Offs[row+1])
		if at+len(lit) > next {
			at++ // across the border of two rows
			continue
		}
		out[row] = u8(lp.match(s.At(row))) ^ no
		at = next
	}
	return true
}

type likeState struct {
	text string
	fold bool
	lp   *likePattern
}

func cachedLike(c *Call, p []byte, fold bool) *likePattern {
	if c.State != nil {
		if s, ok := (*c.State).(*likeState); ok && s.text == string(p) && s.fold == fold {
			return s.lp
		}
	}
	s := &likeState{string(p), fold, compileLike(p, fold)}
	if c.State != nil {
		*c.State = s
	}
	return s.lp
}

// likeEscape rewrites a pattern with another escape character to one with a
// backslash; "" means that there is none.
func likeEscape(dst, pat, esc []byte) ([]byte, error) {
	if len(esc) == 0 {
		for _, c := range pat {
			if c == '\\' {
				dst = append(dst, '\\')
			}
			dst = append(dst, c)
		}
		return dst, nil
	}
	if charLen(esc) != len(esc) {
		return nil, pgerr.New(pgerr.InvalidEscapeSequence, "invalid escape string").WithHint("Escape string must be empty or one character.")
	}
	if len(esc) == 1 && esc[0] == '\\' {
		return append(dst, pat...), nil
	}
	afterEsc := false
	for len(pat) > 0 {
		n := charLen(pat)
		if bytes.Equal(pat[:n], esc) && !afterEsc {
			dst = append(dst, '\\')
			afterEsc = true
		} else if pat[0] == '\\' {
			dst = append(dst, '\\')
			if !afterEsc {
				dst = append(dst, '\\')
			}
			afterEsc = false
		} else {
			dst = append(dst, pat[:n]...)
			afterEsc = false
		}
		pat = pat[n:]
	}
	return dst, nil
}

func likes() []*Overload {
	var out []*Overload
	text := types.Of(types.Text)
	for _, o := range []struct {
		op, fn    string
		fold, neg bool
		doc       string
	}{
		{"~~", "like", false, false, "Whether a string matches a LIKE pattern."},
		{"!~~", "notlike", false, true, "Whether a string does not match a LIKE pattern."},
		{"~~*", "texticlike", true, false, "Whether a string matches a LIKE pattern without regard to case."},
		{"!~~*", "texticnlike", true, true, "Whether a string does not match a LIKE pattern without regard to case."},
	} {
		for _, l := range []types.Kind{types.Text, types.BpChar, types.Name} {
			out = append(out, &Overload{Name: o.op, Args: []types.Type{types.Of(l), text}, Ret: tBool, Strict: true, Kernel: likeKernel(o.fold, o.neg), Doc: o.doc})
		}
		if !o.fold {
			b := types.Of(types.Bytea)
			out = append(out, &Overload{Name: o.op, Args: []types.Type{b, b}, Ret: tBool, Strict: true, Kernel: likeKernel(false, o.neg), Doc: o.doc})
		}
	}
	return out
}
