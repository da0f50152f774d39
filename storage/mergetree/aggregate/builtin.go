package aggregate

// builtins are the functions: one file and one line each.
var builtins = []Function{
	lastValue,
	lastNonNullValue,
	firstValue,
	firstNonNullValue,
	primaryKey,
	sum,
	product,
	maximum,
	minimum,
	boolAnd,
	boolOr,
	listagg,
	collect,
	mergeMap,
	mergeMapWithKeyTime,
	nestedUpdate,
	nestedPartialUpdate,
	rbm32,
	rbm64,
	thetaSketch,
	hllSketch,
}
