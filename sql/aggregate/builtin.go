package aggregate

import "github.com/paimon-sql/paimon-sql/internal/types"

// builtin lists every aggregate family, in order; window functions are in
// window.go. Adding one is a file and a line.
func builtin() [][]Def {
	return [][]Def{countDefs(), sumDefs(), minMaxDefs(), bitDefs(), collectDefs, statDefs(), orderedSetDefs(), jsonDefs(), extraDefs()}
}

func countDefs() []Def {
	return []Def{
		{Name: "count", Ret: tInt8, New: func(*Call) State { return &countState{star: true} }, Doc: "number of rows"},
		{Name: "count", Args: one(tAny), Ret: tInt8, IgnoresNulls: true, New: func(*Call) State { return &countState{} }, Doc: "number of rows whose argument is not null"},
	}
}

// sumNumeric is the type of a sum: as wide as 38 digits allow, the scale kept.
func sumNumeric(ts []types.Type) types.Type {
	if ts[0].Prec > 0 {
		return types.DecimalOf(38, int(ts[0].Scale))
	}
	return tNumeric
}

func sumDefs() []Def {
	return []Def{
		{Name: "sum", Args: one(tInt2), Ret: tInt8, IgnoresNulls: true, New: func(*Call) State { return &smallSum{} }, Doc: "sum"},
		{Name: "sum", Args: one(tInt4), Ret: tInt8, IgnoresNulls: true, New: func(*Call) State { return &smallSum{} }, Doc: "sum"},
		{Name: "sum", Args: one(tInt8), Ret: tNumeric, IgnoresNulls: true, New: func(c *Call) State { return newNumSum(c, false) }, Doc: "sum"},
		{Name: "sum", Args: one(tFloat4), Ret: tFloat4, IgnoresNulls: true, New: func(*Call) State { return &floatSum{real: true} }, Doc: "sum"},
		{Name: "sum", Args: one(tFloat8), Ret: tFloat8, IgnoresNulls: true, New: func(*Call) State { return &floatSum{} }, Doc: "sum"},
		{Name: "sum", Args: one(tNumeric), Ret: tNumeric, RetFn: sumNumeric, IgnoresNulls: true, New: func(c *Call) State { return newNumSum(c, false) }, Doc: "sum"},
		{Name: "avg", Args: one(tInt2), Ret: tNumeric, IgnoresNulls: true, New: func(*Call) State { return &smallSum{avg: true} }, Doc: "average"},
		{Name: "avg", Args: one(tInt4), Ret: tNumeric, IgnoresNulls: true, New: func(*Call) State { return &smallSum{avg: true} }, Doc: "average"},
		{Name: "avg", Args: one(tInt8), Ret: tNumeric, IgnoresNulls: true, New: func(c *Call) State { return newNumSum(c, true) }, Doc: "average"},
		{Name: "avg", Args: one(tNumeric), Ret: tNumeric, IgnoresNulls: true, New: func(c *Call) State { return newNumSum(c, true) }, Doc: "average"},
		{Name: "avg", Args: one(tFloat4), Ret: tFloat8, IgnoresNulls: true, New: func(*Call) State { return &moments{fin: finAvg} }, Doc: "average"},
		{Name: "avg", Args: one(tFloat8), Ret: tFloat8, IgnoresNulls: true, New: func(*Call) State { return &moments{fin: finAvg} }, Doc: "average"},
	}
}
