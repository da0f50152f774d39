package function

import (
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

var tBool = types.Of(types.Bool)

// operators lists the operator families: what exists is read here.
func operators() [][]*Overload {
	return [][]*Overload{
		comparisons(),
		arithmetic(),
		datetimeOps(),
		likes(),
		regexOps(),
		concatOps(),
		arrayOps(),
		jsonOps(),
		jsonPathOps(),
	}
}

// functions lists the function families.
func functions() [][]*Overload {
	return [][]*Overload{
		extracts(),
		stringBasics(),
		stringFunctions(),
		regexFunctions(),
		mathFunctions(),
		dateFunctions(),
		formatFunctions(),
		miscFunctions(),
		arrayFunctions(),
		jsonFunctions(),
		jsonPathFunctions(),
		setFunctions(), // srf.go: generate_series, unnest, json_each, ...
		systemInfo(),   // sysinfo.go: system information, pg_sleep, privileges, advisory locks
	}
}

func init() {
	buildCasts()
	for _, fam := range operators() {
		for _, o := range fam {
			if o.OID == 0 {
				o.OID = oidFor("op:", o)
			}
			if len(o.Args) == 1 {
				prefixOps[o.Name] = append(prefixOps[o.Name], o)
			} else {
				infixOps[o.Name] = append(infixOps[o.Name], o)
			}
			allOps = append(allOps, o)
		}
	}
	for _, fam := range functions() {
		for _, o := range fam {
			if o.OID == 0 {
				o.OID = oidFor("", o)
			}
			byName[o.Name] = append(byName[o.Name], o)
			all = append(all, o)
		}
	}
	findCast = lookupCast
}

var allOps []*Overload

// Operators returns every operator in a fixed order, for pg_operator.
func Operators() []*Overload { return allOps }

// Signature is name(type, type) with PostgreSQL's names of the types.
func (o *Overload) Signature() string {
	s := o.Name + "("
	for i, a := range o.Args {
		if i > 0 {
			s += ", "
		}
		s += a.PlainName()
	}
	return s + ")"
}

// oidFor is PostgreSQL's OID of the signature when it has one, else a hash of
// the signature at or above 20000, which stays the same from release to release.
func oidFor(prefix string, o *Overload) uint32 {
	key := prefix + o.Name
	for _, a := range o.Args {
		key += " " + strconv.FormatUint(uint64(a.OID()), 10)
	}
	if oid, ok := knownOIDs[key]; ok {
		return oid
	}
	if n := len(o.Args); o.Variadic && n > 0 {
		// PostgreSQL's signature has the array.
		last := " " + strconv.FormatUint(uint64(o.Args[n-1].OID()), 10)
		arr := " " + strconv.FormatUint(uint64(o.Args[n-1].Info().ArrayOID), 10)
		if oid, ok := knownOIDs[strings.TrimSuffix(key, last)+arr]; ok {
			return oid
		}
	}
	h := fnv.New32a()
	h.Write([]byte(key))
	return 20000 + h.Sum32()%1_000_000_000
}
