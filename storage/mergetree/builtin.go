package mergetree

// engines are the merge engines: one file and one line each.
var engines = []EngineFactory{
	{"deduplicate", newDeduplicate},
	{"partial-update", newPartialUpdate},
	{"aggregation", newAggregation},
	{"first-row", newFirstRow},
}
