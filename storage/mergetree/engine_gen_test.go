package mergetree

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// randomDatum makes a value of a type, from few enough values that ties are
// common; empty texts and doubles inside one list are left out, about which
// versions of Java disagree.
func randomDatum(r *rand.Rand, t types.Type) types.Datum {
	switch t.Kind {
	case types.Bool:
		return r.IntN(2) == 0
	case types.TinyInt:
		return int64(r.IntN(5) - 2) // six of them multiplied are a TINYINT
	case types.Int2, types.Int4:
		return int64(r.IntN(11) - 5)
	case types.Int8:
		return int64(r.IntN(41) - 20)
	case types.Date:
		return int64(r.IntN(20000))
	case types.Timestamp:
		return int64(r.IntN(1000))*86_400_000_123 + 1
	case types.Float4:
		return float64(float32(r.IntN(33)-16) / 4)
	case types.Float8:
		return float64(r.IntN(65)-32) / 8
	case types.Numeric:
		n := new(numeric.Dec)
		n.Coef.SetInt64(int64(r.IntN(401) - 200))
		n.Scale = int32(t.Scale)
		return n
	case types.Text, types.Varchar:
		return string(rune('a' + r.IntN(5)))
	case types.Bytea:
		return []byte{byte(r.IntN(5)), 0xff}
	case types.Array:
		var out []types.Datum
		seen := map[string]bool{}
		for range r.IntN(4) {
			e := randomDatum(r, *t.Elem)
			k := datumText(e)
			if t.Elem.Kind == types.Row {
				k = datumText(e.([]types.Datum)[0]) // the key of nested tables
			}
			if !seen[k] {
				seen[k] = true
				out = append(out, e)
			}
		}
		if out == nil {
			out = []types.Datum{}
		}
		return out
	case types.Map:
		out := []types.KV{}
		for _, k := range r.Perm(4)[:r.IntN(3)] {
			out = append(out, types.KV{K: string(rune('p' + k)), V: maybeNull(r, *t.Elem, 5)})
		}
		return out
	case types.Row:
		out := make([]types.Datum, len(t.Fields))
		for i, f := range t.Fields {
			out[i] = maybeNull(r, f.Type, 5)
		}
		if f := t.Fields[0]; out[0] == nil {
			out[0] = randomDatum(r, f.Type)
		}
		return out
	}
	panic("no random " + types.PaimonString(t))
}

func maybeNull(r *rand.Rand, t types.Type, one int) types.Datum {
	if !t.NotNull && r.IntN(one) == 0 {
		return nil
	}
	return randomDatum(r, t)
}

// jsonDatum is a value as java-oracle writes it.
func jsonDatum(t types.Type, d types.Datum) any {
	switch x := d.(type) {
	case nil:
		return nil
	case int64:
		switch t.Kind {
		case types.Date:
			return time.Unix(x*86400, 0).UTC().Format(time.DateOnly)
		case types.Timestamp:
			s := time.UnixMicro(x).UTC().Format("2006-01-02T15:04:05.000000")
			return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
		}
		return json.Number(strconv.FormatInt(x, 10))
	case float64:
		return x
	case *numeric.Dec:
		return decText(x, int(t.Scale))
	case []byte:
		return fmt.Sprintf("%x", x)
	case []types.Datum:
		if t.Kind == types.Row {
			out := map[string]any{}
			for i, f := range t.Fields {
				out[f.Name] = jsonDatum(f.Type, x[i])
			}
			return out
		}
		out := []any{}
		for _, e := range x {
			out = append(out, jsonDatum(*t.Elem, e))
		}
		return out
	case []types.KV:
		out := []any{}
		for _, kv := range x {
			out = append(out, []any{jsonDatum(*t.Key, kv.K), jsonDatum(*t.Elem, kv.V)})
		}
		return out
	}
	return d
}

// decText writes a decimal with all digits of its scale.
func decText(d *numeric.Dec, scale int) string {
	c := new(big.Int).Set(&d.Coef)
	for s := int(d.Scale); s < scale; s++ {
		c.Mul(c, big.NewInt(10))
	}
	sign := ""
	if c.Sign() < 0 {
		sign = "-"
		c.Abs(c)
	}
	s := c.String()
	if len(s) <= scale {
		s = strings.Repeat("0", scale+1-len(s)) + s
	}
	if scale == 0 {
		return sign + s
	}
	return sign + s[:len(s)-scale] + "." + s[len(s)-scale:]
}

// canonical brings JSON of one column to a form that can be compared: numbers by
// value, lists without an order where loose.
func canonical(v any, t types.Type, loose bool) string {
	switch x := v.(type) {
	case []any:
		out := make([]string, len(x))
		for i, e := range x {
			et := types.Type{}
			switch {
			case t.Kind == types.Array:
				et = *t.Elem
			case t.Kind == types.Map: // an entry
				if p, ok := e.([]any); ok && len(p) == 2 {
					out[i] = canonical(p[0], *t.Key, loose) + ":" + canonical(p[1], *t.Elem, loose)
					continue
				}
			}
			out[i] = canonical(e, et, loose)
		}
		if loose || t.Kind == types.Map {
			slices.Sort(out)
		}
		return "[" + strings.Join(out, ",") + "]"
	case map[string]any:
		var out []string
		for _, f := range t.Fields {
			out = append(out, f.Name+"="+canonical(x[f.Name], f.Type, loose))
		}
		return "{" + strings.Join(out, ",") + "}"
	case json.Number:
		f, err := x.Float64()
		if i, e := x.Int64(); e == nil {
			return strconv.FormatInt(i, 10)
		} else if err == nil && f == 0 {
			return "0"
		} else if err == nil && t.Kind == types.Float4 {
			return strconv.FormatFloat(float64(float32(f)), 'g', -1, 32)
		}
		return strconv.FormatFloat(f, 'g', -1, 64)
	case float64:
		if x == float64(int64(x)) {
			return strconv.FormatInt(int64(x), 10) // Java writes -0 as -0, and 0 is equal to it
		}
		if t.Kind == types.Float4 {
			return strconv.FormatFloat(x, 'g', -1, 32)
		}
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

// canonicalRow is a row of JSON members as one text.
func canonicalRow(tab *schema.Table, m map[string]any, loose bool) string {
	var out []string
	for _, f := range tab.Fields {
		out = append(out, f.Name+"="+canonical(m[f.Name], f.Type, loose))
	}
	return strings.Join(out, " ")
}
