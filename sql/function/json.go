package function

import (
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
)

func jsonRank(r pgtext.JSONRaw) int {
	switch r.Kind() {
	case 'o':
		return 5
	case 'a':
		return 4
	case 'b':
		return 3
	case 'n':
		return 2
	case 's':
		return 1
	}
	return 0
}

// compareTopJSONB is compareJSONB for whole values. There a scalar is an array
// of one within, and arrays compare by length first: that is why [] is less than
// any scalar although arrays are greater.
func compareTopJSONB(a, b pgtext.JSONRaw) int {
	ka, kb := a.Kind(), b.Kind()
	scalar := func(k byte) bool { return k != 'a' && k != 'o' }
	switch {
	case ka == 'a' && scalar(kb):
		if a.Len() == 0 {
			return -1
		}
		return 1
	case kb == 'a' && scalar(ka):
		if b.Len() == 0 {
			return 1
		}
		return -1
	}
	return compareJSONB(a, b)
}

// compareJSONB orders jsonb values as PostgreSQL's btree does: object > array >
// boolean > number > string > null; an empty top-level array is least.
func compareJSONB(a, b pgtext.JSONRaw) int {
	ra, rb := jsonRank(a), jsonRank(b)
	if ra != rb {
		return ra - rb
	}
	switch a.Kind() {
	case 'n':
		x, _ := numeric.Parse(string(a))
		y, _ := numeric.Parse(string(b))
		return numeric.Cmp(x, y)
	case 's':
		return strings.Compare(a.Str(), b.Str())
	case 'b':
		return int(u8(a == "true")) - int(u8(b == "true"))
	case 'a':
		la, lb := a.Len(), b.Len()
		if la != lb {
			return la - lb
		}
		var xs []pgtext.JSONRaw
		b.Elems(func(_ int, v pgtext.JSONRaw) bool { xs = append(xs, v); return true })
		r := 0
		a.Elems(func(i int, v pgtext.JSONRaw) bool {
			if i >= len(xs) {
				return false
			}
			r = compareJSONB(v, xs[i])
			return r == 0
		})
		return r
	case 'o':
		la, lb := a.Len(), b.Len()
		if la != lb {
			return la - lb
		}
		type kv struct{ k, v pgtext.JSONRaw }
		var xs []kv
		b.Members(func(k, v pgtext.JSONRaw) bool { xs = append(xs, kv{k, v}); return true })
		i, r := 0, 0
		a.Members(func(k, v pgtext.JSONRaw) bool {
			if i >= len(xs) {
				return false
			}
			ks, ko := k.Str(), xs[i].k.Str()
			if ks != ko {
				r = 1
				if pgtext.JSONKeyLess(ks, ko) {
					r = -1
				}
				return false
			}
			r = compareJSONB(v, xs[i].v)
			i++
			return r == 0
		})
		return r
	}
	return 0
}
