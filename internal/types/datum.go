package types

// Datum is one boxed value, for constants, parameters and statistics; never in
// a loop over rows. nil is NULL. By kind of its type it holds
//
//	bool       Bool
//	int64      TinyInt..Int8, OID and the reg* kinds, Date (days since 1970),
//	           Time (us of day), Timestamp and TimestampTZ (us since 1970, or
//	           ns when the type's Prec is above 6)
//	float64    Float4, Float8
//	string     the text-like kinds, JSON and JSONB
//	[]byte     Bytea, UUID (16), Interval (16), TimeTZ (12)
//	*numeric.Dec  Numeric (package internal/numeric)
//	[]Datum    Array, Row, Record, Int2Vector, OIDVector
//	[]KV       Map
type Datum any

// KV is one entry of a map value.
type KV struct{ K, V Datum }
