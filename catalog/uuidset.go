package catalog

import (
	"bytes"
	"slices"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// A uuid is stored as text in any of the spellings that PostgreSQL reads: digits of either
// case, hyphens behind every fourth of them, braces around. Bounds of the text therefore
// say less of the values than they say of the text, but they say something: spelled is
// the set of the texts of uuids.
//
// The spellings of u without braces lie between the one with upper-case letters and all
// the hyphens ('-' is below every digit) and the one with lower-case letters and none.

// spelled is a set of uuids (in Datum form) that is asked about their texts.
type spelled struct{ of predicate.Set }

// Intersects implements predicate.Set.
func (s spelled) Intersects(lo, hi types.Datum) bool {
	a, ok1 := lo.(string)
	b, ok2 := hi.(string)
	if !ok1 || !ok2 || b >= "{" {
		return true
	}
	from, to := leastUUID(a), greatestUUID(b)
	return bytes.Compare(from, to) <= 0 && s.of.Intersects(from, to)
}

// leastUUID returns a uuid that is not above any of which a spelling without braces is at
// or above text: digit by digit, as long as the greatest spelling equals the text.
func leastUUID(text string) []byte {
	out := make([]byte, 16)
	for i := 0; i < 32 && i < len(text); i++ {
		c := text[i]
		switch {
		case c >= '0' && c <= '9':
			setDigit(out, i, c-'0')
		case c > 'f':
			return out // only if a digit before is greater: not worth to be exact
		case c >= 'a':
			setDigit(out, i, c-'a'+10)
		case c > '9':
			setDigit(out, i, 10) // a letter in lower case is above
			return out
		default:
			return out // any digit is above
		}
	}
	return out
}

// greatestUUID returns a uuid that is not below any of which a spelling is at or below
// text. Behind four digits there may be a hyphen, which is below all that follows.
func greatestUUID(text string) []byte {
	out := bytes.Repeat([]byte{0xff}, 16)
	for i := 0; i < 4 && i < len(text); i++ {
		c := text[i]
		switch {
		case c >= '0' && c <= '9':
			setDigit(out, i, c-'0')
		case c >= 'A' && c <= 'F':
			setDigit(out, i, c-'A'+10)
		case c > '9' && c < 'A':
			setDigit(out, i, 9) // letters are above
			return out
		default:
			return out // digits in upper case are below, or nothing is
		}
	}
	return out
}

func setDigit(b []byte, i int, d byte) {
	if i%2 == 0 {
		b[i/2] = b[i/2]&0x0f | d<<4
	} else {
		b[i/2] = b[i/2]&0xf0 | d
	}
}

// uuidList is a set of a few uuids, ascending.
type uuidList [][]byte

// Intersects implements predicate.Set.
func (l uuidList) Intersects(lo, hi types.Datum) bool {
	a, ok1 := lo.([]byte)
	b, ok2 := hi.([]byte)
	if !ok1 || !ok2 {
		return true
	}
	i, found := slices.BinarySearchFunc(l, a, bytes.Compare)
	return found || i < len(l) && bytes.Compare(l[i], b) <= 0
}

// uuidLeaf says of the text of a uuid column what l says of its values; nil = nothing.
func uuidLeaf(l *predicate.Leaf, stored types.Type) predicate.Node {
	c := *l
	c.Type, c.Op, c.Args = stored, predicate.IsNotNull, nil
	if l.Set != nil {
		c.Set = spelled{l.Set}
		return &c
	}
	if l.Op != predicate.Eq && l.Op != predicate.In {
		return nil
	}
	var list uuidList
	for _, a := range l.Args {
		b, ok := a.([]byte)
		if !ok || len(b) != 16 {
			return nil
		}
		list = append(list, b)
	}
	slices.SortFunc(list, bytes.Compare)
	c.Set = spelled{list}
	return &c
}
