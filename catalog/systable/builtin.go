package systable

// builtin lists every system table. Adding one is a file and a line here.
var builtin = []Def{
	{"snapshots", snapshotFields, fillSnapshots},
	{"schemas", schemaFields, fillSchemas},
	{"options", optionFields, fillOptions},
	{"tags", tagFields, fillTags},
	{"branches", branchFields, fillBranches},
	{"consumers", consumerFields, fillConsumers},
	{"files", fileFields, fillFiles},
	{"file_key_ranges", fileKeyRangeFields, fillFileKeyRanges},
	{"manifests", manifestFields, fillManifests},
	{"partitions", partitionFields, fillPartitions},
	{"buckets", bucketFields, fillBuckets},
	{"statistics", statisticsFields, fillStatistics},
	{"aggregation_fields", aggregationFields, fillAggregation},
	{"table_indexes", tableIndexFields, fillTableIndexes},
	{"file_indexes", fileIndexFields, fillFileIndexes},
}
