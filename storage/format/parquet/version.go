package parquet

// createdByApp is the application name in created_by of the files written here.
const createdByApp = "paimon-sql"

// createdBy has the shape that Java's version parser asks for: without it Java
// ignores the statistics of byte arrays.
const createdBy = createdByApp + " version 1.0.0 (build paimon-sql)"
