package interop

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"sort"
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// row is one expected row: its columns in order.
type row struct {
	names  []string
	values []any // as encoding/json has them, numbers as json.Number
}

// parseRow reads a JSON object and keeps the order of its keys.
func parseRow(raw json.RawMessage) (row, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if tok, err := d.Token(); err != nil || tok != json.Delim('{') {
		return row{}, fmt.Errorf("no object: %s", raw)
	}
	var r row
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return r, err
		}
		var v any
		if err := d.Decode(&v); err != nil {
			return r, err
		}
		r.names = append(r.names, k.(string))
		r.values = append(r.values, v)
	}
	return r, nil
}

// result is what our SQL answered.
type result struct {
	cols []engine.Column
	rows [][]types.Datum
	// elem holds the type that each column's values really have.
	warehouse string
}

// differ returns "" when the rows are the expected ones.
func differ(k kase, res result) string {
	want := make([]row, len(k.expected))
	for i, raw := range k.expected {
		r, err := parseRow(raw)
		if err != nil {
			return err.Error()
		}
		want[i] = r
	}
	if len(want) > 0 {
		var got []string
		for _, c := range res.cols {
			got = append(got, c.Name)
		}
		if len(got) != len(want[0].names) {
			return fmt.Sprintf("columns are %s, expected %s", strings.Join(got, ", "), strings.Join(want[0].names, ", "))
		}
		for i := range got {
			if !strings.EqualFold(got[i], want[0].names[i]) {
				return fmt.Sprintf("column %d is %s, expected %s", i+1, got[i], want[0].names[i])
			}
		}
	}
	if len(res.rows) != len(want) {
		return fmt.Sprintf("%d rows, expected %d", len(res.rows), len(want))
	}
	c := comparer{loose: k.loose == "array order", system: strings.Contains(k.query, "$"), warehouse: res.warehouse, java: k.javaTypes}
	if k.ordered {
		for i := range want {
			if why := c.row(res.cols, res.rows[i], want[i].values); why != "" {
				return fmt.Sprintf("row %d, %s", i+1, why)
			}
		}
		return ""
	}
	// Multisets: sort both by the printed form, which pairs nearly all; what is
	// left is matched one by one, since floats may print differently.
	used := make([]bool, len(res.rows))
	byText := map[string][]int{}
	for i, r := range res.rows {
		s := c.print(res.cols, r)
		byText[s] = append(byText[s], i)
	}
	var left []int
	for i := range want {
		s := printExpected(want[i].values)
		if l := byText[s]; len(l) > 0 {
			used[l[0]] = true
			byText[s] = l[1:]
			continue
		}
		left = append(left, i)
	}
	for _, i := range left {
		found := false
		best := ""
		for j := range res.rows {
			if used[j] {
				continue
			}
			why := c.row(res.cols, res.rows[j], want[i].values)
			if why == "" {
				used[j], found = true, true
				break
			}
			if best == "" {
				best = why
			}
		}
		if !found {
			return fmt.Sprintf("no row like %s (nearest try: %s)", cut(string(k.expected[i])), best)
		}
	}
	return ""
}

func cut(s string) string {
	if len(s) > 300 {
		return s[:300] + "..."
	}
	return s
}

type comparer struct {
	loose     bool
	system    bool // a system table: texts may be JSON objects of any key order
	warehouse string
	java      []string
}

func (c *comparer) row(cols []engine.Column, got []types.Datum, want []any) string {
	for i := range want {
		micros, wraps := false, false
		if i < len(c.java) {
			micros = strings.HasPrefix(c.java[i], "timestamp") && !strings.Contains(c.java[i], "(9)")
			wraps = c.java[i] == "bigint"
		}
		if wraps && sameWrapped(got[i], want[i]) {
			continue // Spark's sum of bigint is a bigint, and overflows without a word
		}
		if !c.same(cols[i].Type, got[i], want[i], cols[i].TableOID == 0, micros) {
			w, _ := json.Marshal(want[i])
			return fmt.Sprintf("column %s: got %s, expected %s", cols[i].Name, cut(c.show(cols[i].Type, got[i])), cut(string(w)))
		}
	}
	return ""
}

// same compares one value. expr is set for computed columns, where Java's and
// PostgreSQL's result types differ; micros when the reader has no nanoseconds.
func (c *comparer) same(t types.Type, got types.Datum, want any, expr, micros bool) bool {
	if got == nil || want == nil {
		return got == nil && want == nil
	}
	switch t.Kind {
	case types.Bool:
		return got == want
	case types.Float4, types.Float8:
		f := got.(float64)
		switch w := want.(type) {
		case json.Number:
			size := 64
			if t.Kind == types.Float4 {
				size = 32
			}
			x, err := strconv.ParseFloat(string(w), size)
			if err != nil {
				return false
			}
			return x == f || expr && math.Abs(x-f) <= 1e-9*math.Max(math.Abs(x), math.Abs(f))
		case string:
			switch w {
			case "NaN":
				return math.IsNaN(f)
			case "Infinity":
				return math.IsInf(f, 1)
			case "-Infinity":
				return math.IsInf(f, -1)
			}
		}
		return false
	case types.TinyInt, types.Int2, types.Int4, types.Int8, types.OID, types.Numeric:
		return sameNumber(t, got, want, expr)
	case types.Timestamp, types.TimestampTZ, types.Date, types.Time:
		w, ok := want.(string)
		if !ok {
			return false
		}
		g := c.show(t, got)
		return g == trimFraction(w) || micros && t.IsNanos() && cutMicros(g) == trimFraction(w)
	case types.Array:
		w, ok := want.([]any)
		g := got.([]types.Datum)
		if !ok || len(w) != len(g) {
			return false
		}
		if !c.loose {
			for i := range w {
				if !c.same(*t.Elem, g[i], w[i], expr, micros) {
					return false
				}
			}
			return true
		}
		return match(len(g), func(i, j int) bool { return c.same(*t.Elem, g[i], w[j], expr, micros) })
	case types.Map:
		w, ok := want.([]any)
		g := got.([]types.KV)
		if !ok || len(w) != len(g) {
			return false
		}
		return match(len(g), func(i, j int) bool {
			kv, ok := w[j].([]any)
			return ok && len(kv) == 2 && c.same(*t.Key, g[i].K, kv[0], expr, micros) && c.same(*t.Elem, g[i].V, kv[1], expr, micros)
		})
	case types.Row, types.Record:
		w, ok := want.(map[string]any)
		g := got.([]types.Datum)
		if !ok || len(w) != len(g) {
			return false
		}
		for i, f := range t.Fields {
			v, ok := w[f.Name]
			if !ok || !c.same(f.Type, g[i], v, expr, micros) {
				return false
			}
		}
		return true
	case types.Bytea:
		w, ok := want.(string)
		return ok && hex.EncodeToString(got.([]byte)) == w
	case types.BpChar:
		// Java returns what is stored; a char compares without trailing blanks.
		w, ok := want.(string)
		return ok && strings.TrimRight(got.(string), " ") == strings.TrimRight(w, " ")
	case types.Variant, types.JSON, types.JSONB:
		var a, b any
		if json.Unmarshal([]byte(c.show(t, got)), &a) != nil {
			return false
		}
		switch w := want.(type) {
		case string:
			if json.Unmarshal([]byte(w), &b) != nil {
				return false
			}
		default:
			raw, err := json.Marshal(want)
			if err != nil || json.Unmarshal(raw, &b) != nil {
				return false
			}
		}
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		return string(x) == string(y)
	}
	w, ok := want.(string)
	g, isText := got.(string)
	if !ok || !isText {
		return false
	}
	g = strings.ReplaceAll(g, c.warehouse, "<warehouse>")
	return g == w || c.system && sameJSON(g, w)
}

// sameJSON reports whether two texts are the same JSON object or array.
func sameJSON(a, b string) bool {
	if len(a) == 0 || len(b) == 0 || a[0] != '{' && a[0] != '[' {
		return false
	}
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}

// match finds a pairing of n things with n others.
func match(n int, same func(i, j int) bool) bool {
	used := make([]bool, n)
next:
	for i := range n {
		for j := range n {
			if !used[j] && same(i, j) {
				used[j] = true
				continue next
			}
		}
		return false
	}
	return true
}

func sameNumber(t types.Type, got types.Datum, want any, expr bool) bool {
	var text string
	switch w := want.(type) {
	case json.Number:
		text = string(w)
	case string:
		text = w
	default:
		return false
	}
	w, ok := new(big.Rat).SetString(text)
	if !ok {
		return false
	}
	g := new(big.Rat)
	switch v := got.(type) {
	case int64:
		g.SetInt64(v)
	case *numeric.Dec:
		if v.Form != numeric.Finite {
			return false
		}
		g.SetFrac(&v.Coef, numeric.Pow10(v.Scale))
	}
	if g.Cmp(w) == 0 {
		return true
	}
	if !expr || t.Kind != types.Numeric {
		return false
	}
	// A quotient: Java's type has fewer digits than PostgreSQL's.
	if _, frac, ok := strings.Cut(text, "."); ok && !strings.ContainsAny(text, "eE") {
		return g.FloatString(len(frac)) == strings.TrimPrefix(w.FloatString(len(frac)), "+")
	}
	return false
}

// sameWrapped reports whether a numeric is the expected int64 in 64 bits.
func sameWrapped(got types.Datum, want any) bool {
	d, ok := got.(*numeric.Dec)
	w, isNumber := want.(json.Number)
	if !ok || !isNumber || d.Form != numeric.Finite || d.Scale != 0 {
		return false
	}
	x, ok := new(big.Int).SetString(string(w), 10)
	if !ok {
		return false
	}
	x.Sub(x, &d.Coef)
	return x.TrailingZeroBits() >= 64 || x.Sign() == 0
}

// trimFraction cuts trailing zeros of a time's fraction, and Z stays.
func trimFraction(s string) string {
	i := strings.IndexByte(s, '.')
	if i < 0 {
		return s
	}
	z := ""
	if strings.HasSuffix(s, "Z") {
		s, z = s[:len(s)-1], "Z"
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".") + z
}

func cutMicros(s string) string {
	i := strings.IndexByte(s, '.')
	if i < 0 || len(strings.TrimSuffix(s[i:], "Z")) <= 7 {
		return s
	}
	z := ""
	if strings.HasSuffix(s, "Z") {
		z = "Z"
	}
	return trimFraction(s[:i+7] + z)
}

// show is a value in the fixtures' form: what print uses, and messages.
func (c *comparer) show(t types.Type, d types.Datum) string {
	if d == nil {
		return "null"
	}
	switch t.Kind {
	case types.Date:
		return string(pgtext.AppendDatum(nil, t, d, nil))
	case types.Time:
		return trimFraction(string(pgtext.AppendDatum(nil, t, d, nil)))
	case types.Timestamp, types.TimestampTZ:
		v := d.(int64)
		us, ns := v, int64(0)
		if t.IsNanos() {
			us = pgtext.FloorMicros(v)
			ns = v - us*1000
		}
		s := string(pgtext.AppendDatum(nil, types.Of(types.Timestamp), us, nil))
		s = strings.Replace(s, " ", "T", 1)
		if ns != 0 {
			_, frac, _ := strings.Cut(s, ".")
			s = s[:len(s)-len(frac)]
			if frac == "" {
				s += "."
			}
			s += frac + strings.Repeat("0", 6-len(frac)) + fmt.Sprintf("%03d", ns)
		}
		s = trimFraction(s)
		if t.Kind == types.TimestampTZ {
			s += "Z"
		}
		return s
	case types.Bytea:
		return hex.EncodeToString(d.([]byte))
	case types.Variant:
		return string(pgtext.Appender(t, vec.FromDatums(t, []types.Datum{d}), nil)(nil, 0))
	case types.Array, types.Map, types.Row, types.Record:
		return string(pgtext.AppendDatum(nil, t, d, nil))
	case types.Bool:
		return strconv.FormatBool(d.(bool))
	}
	if s, ok := d.(string); ok {
		return s
	}
	return string(pgtext.AppendDatum(nil, t, d, nil))
}

// print is a row as one text that is equal to printExpected's where no rule of
// tolerance is needed.
func (c *comparer) print(cols []engine.Column, r []types.Datum) string {
	var b strings.Builder
	for i, d := range r {
		if d == nil {
			b.WriteString("\x00null\x01")
			continue
		}
		b.WriteString(c.show(cols[i].Type, d))
		b.WriteByte(1)
	}
	return b.String()
}

func printExpected(r []any) string {
	var b strings.Builder
	for _, v := range r {
		switch v := v.(type) {
		case nil:
			b.WriteString("\x00null")
		case string:
			b.WriteString(v)
		case json.Number:
			b.WriteString(string(v))
		case bool:
			b.WriteString(strconv.FormatBool(v))
		default:
			s, _ := json.Marshal(v)
			b.Write(s)
		}
		b.WriteByte(1)
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
