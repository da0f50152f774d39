package pgcatalog

// fills lists what has rows. Every other relation of relations.txt exists with
// PostgreSQL's columns and no rows. Adding one is a file and a line here.
func fills() map[string]func(*Filler) error {
	return map[string]func(*Filler) error{
		"pg_catalog.pg_am":          fillAm,
		"pg_catalog.pg_attrdef":     fillAttrdef,
		"pg_catalog.pg_attribute":   fillAttribute,
		"pg_catalog.pg_authid":      fillAuthid,
		"pg_catalog.pg_cast":        fillCast,
		"pg_catalog.pg_class":       fillClass,
		"pg_catalog.pg_collation":   fillCollation,
		"pg_catalog.pg_constraint":  fillConstraint,
		"pg_catalog.pg_database":    fillDatabase,
		"pg_catalog.pg_description": fillDescription,
		"pg_catalog.pg_index":       fillIndex,
		"pg_catalog.pg_indexes":     fillIndexes,
		"pg_catalog.pg_language":    fillLanguage,
		"pg_catalog.pg_namespace":   fillNamespace,
		"pg_catalog.pg_opclass":     fillOpclass,
		"pg_catalog.pg_opfamily":    fillOpfamily,
		"pg_catalog.pg_operator":    fillOperator,
		"pg_catalog.pg_proc":        fillProc,
		"pg_catalog.pg_roles":       fillRoles,
		"pg_catalog.pg_settings":    fillSettings,
		"pg_catalog.pg_statistic":   fillStatistic,
		"pg_catalog.pg_stats":       fillStats,
		"pg_catalog.pg_tables":      fillTables,
		"pg_catalog.pg_tablespace":  fillTablespace,
		"pg_catalog.pg_type":        fillType,
		"pg_catalog.pg_user":        fillUser,
		"pg_catalog.pg_views":       fillViews,

		"pg_catalog.pg_prepared_statements":   fillPrepared,
		"pg_catalog.pg_stat_activity":         fillActivity,
		"pg_catalog.pg_stat_progress_compact": fillProgressCompact,
		"pg_catalog.pg_timezone_names":        fillTimezones,

		"information_schema.character_sets":                  fillISCharacterSets,
		"information_schema.check_constraints":               fillISCheckConstraints,
		"information_schema.columns":                         fillISColumns,
		"information_schema.constraint_column_usage":         fillISConstraintColumn,
		"information_schema.information_schema_catalog_name": fillISCatalogName,
		"information_schema.key_column_usage":                fillISKeyColumn,
		"information_schema.referential_constraints":         fillISReferential,
		"information_schema.schemata":                        fillISSchemata,
		"information_schema.table_constraints":               fillISTableConstraints,
		"information_schema.tables":                          fillISTables,
		"information_schema.views":                           fillISViews,
		"information_schema.enabled_roles":                   fillISEnabledRoles,
	}
}
