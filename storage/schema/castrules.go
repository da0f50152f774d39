package schema

import "github.com/paimon-sql/paimon-sql/internal/types"

// root is a type without its parameters, as Paimon's cast rules know types.
type root uint8

const (
	rChar root = iota
	rVarchar
	rBoolean
	rBinary
	rVarbinary
	rDecimal
	rTinyint
	rSmallint
	rInteger
	rBigint
	rFloat
	rDouble
	rDate
	rTime
	rTimestamp
	rTimestampLTZ
	rVariant
	rBlob
	rArray
	rVector
	rMultiset
	rMap
	rRow
	rGeo
	roots
)

func rootOf(t types.Type) root {
	switch t.Kind {
	case types.BpChar:
		return rChar
	case types.Bool:
		return rBoolean
	case types.Bytea:
		switch t.Lake {
		case types.LakeBinary:
			return rBinary
		case types.LakeBlob:
			return rBlob
		case types.LakeGeometry, types.LakeGeography:
			return rGeo
		}
		return rVarbinary
	case types.Numeric:
		return rDecimal
	case types.TinyInt:
		return rTinyint
	case types.Int2:
		return rSmallint
	case types.Int4:
		return rInteger
	case types.Int8:
		return rBigint
	case types.Float4:
		return rFloat
	case types.Float8:
		return rDouble
	case types.Date:
		return rDate
	case types.Time:
		return rTime
	case types.Timestamp:
		return rTimestamp
	case types.TimestampTZ:
		return rTimestampLTZ
	case types.Variant:
		return rVariant
	case types.Array:
		if t.Fixed > 0 {
			return rVector
		}
		return rArray
	case types.Map:
		if t.Multiset {
			return rMultiset
		}
		return rMap
	case types.Row:
		return rRow
	}
	return rVarchar
}

func isBlob(t types.Type) bool { return t.Kind == types.Bytea && t.Lake == types.LakeBlob }

// rootSet is a set of roots.
type rootSet uint32

func set(rs ...root) (out rootSet) {
	for _, r := range rs {
		out |= 1 << r
	}
	return out
}

func (s rootSet) has(r root) bool { return s>>r&1 != 0 }

var (
	charSet    = set(rChar, rVarchar)
	binarySet  = set(rBinary, rVarbinary)
	intSet     = set(rTinyint, rSmallint, rInteger, rBigint)
	floatSet   = set(rFloat, rDouble)
	numericSet = intSet | floatSet | set(rDecimal)
	stampSet   = set(rTimestamp, rTimestampLTZ)
)

// castRule says from which roots a type can be reached: without loss (implicit),
// or at the user's word (explicit). runs are the roots that Java has code for; a
// cast needs both a rule and code.
type castRule struct{ implicit, explicit, runs rootSet }

// castRules by target (Java: types.DataTypeCasts; casting.CastExecutors).
var castRules = [roots]castRule{
	rChar:         {set(rChar), ^rootSet(0), textRuns},
	rVarchar:      {charSet, ^rootSet(0), textRuns},
	rBoolean:      {set(rBoolean), charSet | intSet, charSet | intSet},
	rBinary:       {set(rBinary), charSet | set(rVarbinary), charSet | binarySet},
	rVarbinary:    {binarySet, charSet, charSet | binarySet},
	rDecimal:      {numericSet, charSet | stampSet | set(rBoolean), numericSet | charSet | set(rBoolean)},
	rTinyint:      {set(rTinyint), numericSet | charSet | stampSet | set(rBoolean), numericSet | charSet | set(rBoolean)},
	rSmallint:     {set(rTinyint, rSmallint), numericSet | charSet | stampSet | set(rBoolean), numericSet | charSet | set(rBoolean)},
	rInteger:      {set(rTinyint, rSmallint, rInteger), numericSet | charSet | stampSet | set(rBoolean), numericSet | charSet | stampSet | set(rBoolean)},
	rBigint:       {intSet, numericSet | charSet | stampSet | set(rBoolean), numericSet | charSet | stampSet | set(rBoolean)},
	rFloat:        {intSet | set(rFloat, rDecimal), numericSet | charSet | stampSet | set(rBoolean), numericSet | charSet | set(rBoolean)},
	rDouble:       {numericSet, charSet | stampSet | set(rBoolean), numericSet | charSet | set(rBoolean)},
	rDate:         {set(rDate, rTimestamp), stampSet | charSet, stampSet | charSet},
	rTime:         {set(rTime, rTimestamp), set(rTime) | stampSet | charSet, stampSet | charSet},
	rTimestamp:    {stampSet, set(rDate, rTime) | stampSet | charSet | numericSet, set(rDate, rTime, rInteger, rBigint) | stampSet | charSet},
	rTimestampLTZ: {stampSet, set(rDate, rTime) | stampSet | charSet | numericSet, set(rDate, rTime, rInteger, rBigint) | stampSet | charSet},
	rVariant:      {implicit: set(rVariant)},
	rBlob:         {implicit: set(rBlob)},
	rArray:        {implicit: set(rArray), runs: charSet},
	rVector:       {implicit: set(rVector)},
	rMultiset:     {implicit: set(rMultiset)},
	rMap:          {implicit: set(rMap), runs: charSet},
	rRow:          {implicit: set(rRow), runs: charSet},
	rGeo:          {implicit: set(rGeo)},
}

const textRuns = rootSet(1<<rChar | 1<<rVarchar | 1<<rBoolean | 1<<rBinary | 1<<rVarbinary |
	1<<rDecimal | 1<<rTinyint | 1<<rSmallint | 1<<rInteger | 1<<rBigint | 1<<rFloat | 1<<rDouble |
	1<<rArray | 1<<rMap | 1<<rRow)

// canCast reports whether a column's type may become another.
func canCast(from, to types.Type, explicit bool) bool {
	if !from.NotNull && to.NotNull && !explicit {
		return false
	}
	f, r := rootOf(from), castRules[rootOf(to)]
	if !r.implicit.has(f) && !(explicit && r.explicit.has(f)) {
		return false
	}
	// Dates, times and timestamps become text only as STRING: Java has no code for
	// shorter types.
	if to.Kind == types.Text && set(rDate, rTime, rTimestamp, rTimestampLTZ).has(f) {
		return true
	}
	return r.runs.has(f)
}
