package aggregate

import "github.com/paimon-sql/paimon-sql/internal/types"

func statDefs() []Def {
	var out []Def
	for _, v := range []struct {
		name, doc    string
		sample, root bool
		fin          func(n, sx, sxx float64) (float64, bool)
	}{
		{"var_pop", "population variance", false, false, finVarPop}, {"var_samp", "sample variance", true, false, finVarSamp},
		{"variance", "sample variance", true, false, finVarSamp}, {"stddev_pop", "population standard deviation", false, true, finStdPop},
		{"stddev_samp", "sample standard deviation", true, true, finStdSamp}, {"stddev", "sample standard deviation", true, true, finStdSamp},
	} {
		for _, t := range []types.Type{tInt2, tInt4, tInt8, tNumeric} {
			out = append(out, Def{Name: v.name, Args: one(t), Ret: tNumeric, IgnoresNulls: true, Doc: v.doc,
				New: func(*Call) State { return &numMoments{sample: v.sample, sqrt: v.root} }})
		}
		for _, t := range []types.Type{tFloat4, tFloat8} {
			out = append(out, Def{Name: v.name, Args: one(t), Ret: tFloat8, IgnoresNulls: true, Doc: v.doc,
				New: func(*Call) State { return &moments{fin: v.fin} }})
		}
	}
	two := []types.Type{tFloat8, tFloat8}
	for _, r := range regressions {
		out = append(out, Def{Name: r.name, Args: two, Ret: tFloat8, IgnoresNulls: true, Doc: r.doc, New: func(*Call) State { return &regression{fin: r.fin} }})
	}
	return append(out, Def{Name: "regr_count", Args: two, Ret: tInt8, IgnoresNulls: true, Doc: "number of pairs without nulls", New: func(*Call) State { return &regression{count: true} }})
}
