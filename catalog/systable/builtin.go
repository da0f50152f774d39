package systable

// builtin lists every system table. Adding one is a file and a line here.
var builtin = []Def{
	{"snapshots", snapshotFields, fillSnapshots},
	{"schemas", schemaFields, fillSchemas},
	{"options", optionFields, fillOptions},
	{"tags", tagFields, fillTags},
	{"files", fileFields, fillFiles},
	{"manifests", manifestFields, fillManifests},
	{"partitions", partitionFields, fillPartitions},
	{"buckets", bucketFields, fillBuckets},
}
