package parquet

import (
	"bytes"
	"math"
	"math/big"
	"strings"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// summary is what statistics say of the values of one chunk or page. min and max
// bound the values: they may be truncated and need not occur.
type summary struct {
	rows, nulls int64 // nulls -1 = unknown
	bounded     bool
	min, max    types.Datum
	nan         bool // there may be NaN, which is above max
}

// statReader turns statistics of one column into summaries.
type statReader struct {
	r       *Reader
	l       *leaf
	trusted bool // min_value and max_value follow the order of the type
	legacy  bool // so do the old min and max
	float   bool
	noNaN   bool // NaN among the values leaves no statistics behind
}

func (r *Reader) newStatReader(l *leaf) *statReader {
	s := &statReader{r: r, l: l}
	el := l.node.el
	s.float = el.typ == pFloat || el.typ == pDouble
	unsigned := el.logical == logInt && !el.signed || el.converted >= convUint8 && el.converted <= convUint64
	known := !unsigned && el.typ != pInt96 && el.converted != convInterval && el.logical != logFloat16
	if i := l.col; known && i < len(r.meta.orders) {
		// 1 is the order of the logical type; 2, the total order of IEEE 754,
		// differs in NaN and the sign of zero only, which test makes up for.
		s.trusted = r.meta.orders[i] == 1 || r.meta.orders[i] == 2 && s.float
	}
	// The old fields were compared as signed bytes, so they mean something for
	// plain numbers only.
	s.legacy = known && (el.typ == pInt32 || el.typ == pInt64 || s.float || el.typ == pBool)
	s.noNaN = strings.HasPrefix(r.meta.createdBy, "parquet-mr ") || strings.HasPrefix(r.meta.createdBy, createdByApp+" ")
	return s
}

// chunk summarises row group g.
func (s *statReader) chunk(g int) summary {
	m := &s.r.meta.groups[g].cols[s.l.col]
	rows := s.r.meta.groups[g].rows
	st := &m.stats
	switch {
	case s.trusted && st.minValue != nil && st.maxValue != nil:
		return s.summary(rows, st.nulls, st.minValue, st.maxValue)
	case s.legacy && st.min != nil && st.max != nil:
		return s.summary(rows, st.nulls, st.min, st.max)
	}
	return summary{rows: rows, nulls: st.nulls}
}

// page summarises page i of the column index.
func (s *statReader) page(ci *columnIndex, i int, rows int64) summary {
	if ci.nullPages[i] {
		return summary{rows: rows, nulls: rows}
	}
	nulls := int64(-1)
	if ci.nulls != nil {
		nulls = ci.nulls[i]
	}
	if !s.trusted {
		return summary{rows: rows, nulls: nulls}
	}
	return s.summary(rows, nulls, ci.mins[i], ci.maxs[i])
}

func (s *statReader) summary(rows, nulls int64, lo, hi []byte) summary {
	out := summary{rows: rows, nulls: nulls}
	if nulls > rows {
		out.nulls = -1
	}
	var ok1, ok2 bool
	out.min, ok1 = s.decode(lo)
	out.max, ok2 = s.decode(hi)
	if !ok1 || !ok2 {
		return out
	}
	if s.float {
		if math.IsNaN(out.min.(float64)) || math.IsNaN(out.max.(float64)) {
			return out
		}
		out.nan = !s.noNaN
	}
	if c, ok := compare(out.min, out.max); !ok || c > 0 {
		return out
	}
	out.bounded = true
	return out
}

// decode reads a statistic, which is a PLAIN value without a length, as a Datum.
func (s *statReader) decode(b []byte) (types.Datum, bool) {
	t := s.l.t
	switch s.l.node.el.typ {
	case pBool:
		if len(b) != 1 {
			return nil, false
		}
		return b[0] != 0, true
	case pInt32, pFloat:
		if len(b) != 4 {
			return nil, false
		}
	case pInt64, pDouble:
		if len(b) != 8 {
			return nil, false
		}
	case pInt96:
		return nil, false
	}
	switch s.l.conv {
	case cvNarrow, cvWiden:
		return int64(int32(le32(b))), true
	case cvTimeMs:
		return int64(int32(le32(b))) * 1000, true
	case cvCopy4, cvF32F64:
		if s.float {
			return float32bits(int32(le32(b))), true
		}
		return int64(int32(le32(b))), true
	case cvCopy8:
		if s.float {
			return float64bits(int64(le64(b))), true
		}
		return int64(le64(b)), true
	case cvMul1000:
		return mulSat(int64(le64(b)), 1000), true
	case cvMul1M:
		return mulSat(int64(le64(b)), 1000000), true
	case cvDiv1000:
		return floorDiv(int64(le64(b)), 1000), true
	case cvDec32:
		return decDatum(big.NewInt(int64(int32(le32(b)))), t), true
	case cvDec64:
		return decDatum(big.NewInt(int64(le64(b))), t), true
	case cvDecBE:
		if len(b) == 0 || len(b) > 64 {
			return nil, false
		}
		return decDatum(bigFromBE(b), t), true
	case cvBytes:
		if t.IsTextLike() {
			return string(b), true
		}
		return b, true
	}
	return nil, false
}

func float32bits(x int32) float64 { return float64(math.Float32frombits(uint32(x))) }
func float64bits(x int64) float64 { return math.Float64frombits(uint64(x)) }

func mulSat(v, k int64) int64 {
	if v > math.MaxInt64/k {
		return math.MaxInt64
	}
	if v < math.MinInt64/k {
		return math.MinInt64
	}
	return v * k
}

func floorDiv(v, k int64) int64 {
	q := v / k
	if v%k < 0 {
		q--
	}
	return q
}

func decDatum(v *big.Int, t types.Type) *numeric.Dec {
	d := &numeric.Dec{Scale: int32(t.Scale)}
	d.Coef.Set(v)
	return d
}

func bigFromBE(b []byte) *big.Int {
	v := new(big.Int).SetBytes(b)
	if b[0]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return v
}

// decOf returns a as an unscaled value of t. exact is false when no value of t
// equals a.
func decOf(a types.Datum, t types.Type) (v dec, exact, ok bool) {
	n, ok := a.(*numeric.Dec)
	if !ok || n == nil {
		return dec{}, false, false
	}
	if n.Form != numeric.Finite {
		return dec{}, false, true
	}
	c := new(big.Int).Set(&n.Coef)
	if d := int32(t.Scale) - n.Scale; d >= 0 {
		if d > 400 {
			return dec{}, false, false
		}
		c.Mul(c, numeric.Pow10(d))
	} else {
		var rem big.Int
		c.QuoRem(c, numeric.Pow10(-d), &rem)
		if rem.Sign() != 0 {
			return dec{}, false, true
		}
	}
	if c.BitLen() > 127 {
		return dec{}, false, true
	}
	lo := new(big.Int).And(c, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	hi := new(big.Int).Rsh(c, 64).Int64()
	return dec{lo, hi}, true, true
}

// bytesOf returns the bytes of a text or bytea Datum.
func bytesOf(a types.Datum) (string, bool) {
	switch a := a.(type) {
	case string:
		return a, true
	case []byte:
		return string(a), true
	}
	return "", false
}

// cmpFloat compares in PostgreSQL's order: NaN equals itself and is greatest,
// and the zeros are equal.
func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	}
	an, bn := math.IsNaN(a), math.IsNaN(b)
	switch {
	case an && bn:
		return 0
	case an:
		return 1
	}
	return -1
}

// compare orders two Datums of one type; false when they are not.
func compare(a, b types.Datum) (int, bool) {
	switch a := a.(type) {
	case int64:
		if b, ok := b.(int64); ok {
			switch {
			case a < b:
				return -1, true
			case a > b:
				return 1, true
			}
			return 0, true
		}
	case float64:
		if b, ok := b.(float64); ok {
			return cmpFloat(a, b), true
		}
	case string:
		if b, ok := b.(string); ok {
			return strings.Compare(a, b), true
		}
	case []byte:
		if b, ok := b.([]byte); ok {
			return bytes.Compare(a, b), true
		}
	case bool:
		if b, ok := b.(bool); ok {
			switch {
			case a == b:
				return 0, true
			case b:
				return -1, true
			}
			return 1, true
		}
	case *numeric.Dec:
		if b, ok := b.(*numeric.Dec); ok && a != nil && b != nil {
			return numeric.Cmp(a, b), true
		}
	}
	return 0, false
}

// test is a leaf of a predicate, possibly negated, of which summaries are asked.
type test struct {
	op   predicate.Op
	not  bool
	args []types.Datum
	t    types.Type
}

// may reports whether some row of s can make the test true.
func (t *test) may(s summary) bool {
	if s.rows <= 0 {
		return false
	}
	op := t.op
	if t.not {
		switch op {
		case predicate.IsNull:
			op = predicate.IsNotNull
		case predicate.IsNotNull:
			op = predicate.IsNull
		}
	}
	switch op {
	case predicate.IsNull:
		return s.nulls != 0
	case predicate.IsNotNull:
		return s.nulls != s.rows
	}
	if s.nulls == s.rows { // a comparison with NULL is neither true nor false
		return false
	}
	if !s.bounded {
		return true
	}
	if t.t.Kind == types.BpChar {
		return t.mayBpChar(s)
	}
	if t.not {
		return t.mayNot(s)
	}
	switch op {
	case predicate.In:
		for _, a := range t.args {
			if within(s, a, a) {
				return true
			}
		}
		return false
	case predicate.NotIn:
		for _, a := range t.args {
			if only(s, a) {
				return false
			}
		}
		return true
	case predicate.Between:
		return len(t.args) != 2 || within(s, t.args[0], t.args[1])
	}
	if len(t.args) != 1 {
		return true
	}
	a := t.args[0]
	switch op {
	case predicate.Eq:
		return within(s, a, a)
	case predicate.NotEq:
		return !only(s, a)
	case predicate.Lt:
		return below(s, a, false)
	case predicate.LtEq:
		return below(s, a, true)
	case predicate.Gt:
		return above(s, a, false)
	case predicate.GtEq:
		return above(s, a, true)
	case predicate.StartsWith:
		p, ok1 := bytesOf(a)
		lo, ok2 := bytesOf(s.min)
		hi, ok3 := bytesOf(s.max)
		if !ok1 || !ok2 || !ok3 {
			return true
		}
		return hi >= p && (lo <= p || strings.HasPrefix(lo, p))
	}
	return true
}

// mayNot reports whether some row can make the operation false.
func (t *test) mayNot(s summary) bool {
	switch t.op {
	case predicate.In:
		return (&test{op: predicate.NotIn, args: t.args, t: t.t}).may(s)
	case predicate.NotIn:
		return (&test{op: predicate.In, args: t.args, t: t.t}).may(s)
	case predicate.Between:
		return len(t.args) != 2 || below(s, t.args[0], false) || above(s, t.args[1], false)
	case predicate.StartsWith:
		if len(t.args) != 1 {
			return true
		}
		p, ok1 := bytesOf(t.args[0])
		lo, ok2 := bytesOf(s.min)
		hi, ok3 := bytesOf(s.max)
		return !ok1 || !ok2 || !ok3 || !strings.HasPrefix(lo, p) || !strings.HasPrefix(hi, p)
	}
	op, ok := map[predicate.Op]predicate.Op{
		predicate.Eq: predicate.NotEq, predicate.NotEq: predicate.Eq,
		predicate.Lt: predicate.GtEq, predicate.GtEq: predicate.Lt,
		predicate.Gt: predicate.LtEq, predicate.LtEq: predicate.Gt,
	}[t.op]
	return !ok || (&test{op: op, args: t.args, t: t.t}).may(s)
}

// mayBpChar tests char(n), which SQL compares without regard to trailing blanks
// although values may be stored with them or not. That order is not the bytes'
// order, so only equality is answered.
func (t *test) mayBpChar(s summary) bool {
	if t.not || t.op != predicate.Eq && t.op != predicate.In {
		return true
	}
	lo, ok1 := bytesOf(s.min)
	hi, ok2 := bytesOf(s.max)
	for _, a := range t.args {
		v, ok := bytesOf(a)
		if !ok || !ok1 || !ok2 {
			return true
		}
		v = strings.TrimRight(v, " ")
		if hi >= v && (lo <= v || strings.HasPrefix(lo, v)) {
			return true
		}
	}
	return false
}

// within reports whether a value in from..to may be in s.
func within(s summary, from, to types.Datum) bool {
	return above(s, from, true) && below(s, to, true)
}

// above reports whether s may hold a value greater than (or equal to) a.
func above(s summary, a types.Datum, orEqual bool) bool {
	c, ok := compare(s.max, a)
	return !ok || s.nan || c > 0 || c == 0 && orEqual
}

func below(s summary, a types.Datum, orEqual bool) bool {
	c, ok := compare(s.min, a)
	return !ok || c < 0 || c == 0 && orEqual
}

// only reports whether every value of s is known to equal a.
func only(s summary, a types.Datum) bool {
	c, ok1 := compare(s.min, a)
	d, ok2 := compare(s.max, a)
	return ok1 && ok2 && !s.nan && c == 0 && d == 0
}
