package procedure

import "strings"

// builtin are the procedures there are.
var builtin = []*Procedure{
	compactProcedure,
	compactDatabase,
	compactManifest,
	expireChangelogs,
	expireSnapshots,
	createTag,
	createTagFromTimestamp,
	deleteTag,
	renameTag,
	replaceTag,
	expireTags,
	rescaleProcedure,
	rewriteFileIndex,
	rollback,
	rollbackTo,
	rollbackToTimestamp,
}

// later are procedures of Paimon that are known by name and answer 0A000.
var later = strings.Fields(`
	alter_column_default_value alter_function alter_view_dialect clear_consumers clone compact_chain_table
	copy copy_files create_branch create_function create_global_index create_tag_from_watermark data_evolution_merge_into delete_branch
	drop_function drop_global_index drop_partition expire_partitions fast_forward full_text_search mark_partition_done
	materialize_deletion_vectors merge_branch merge_into migrate_database migrate_file migrate_table purge_files query_service
	reassign_row_id remove_orphan_files remove_unexisting_files remove_unexisting_manifests rename_branch repair repair_earliest_snapshot
	reset_consumer rollback_to_as_latest rollback_to_watermark trigger_tag_automatic_creation vector_search`)

// Find returns the procedure sys.name; known is true also for those that are not
// offered yet.
func Find(name string) (p *Procedure, known bool) {
	for _, p := range builtin {
		if strings.EqualFold(p.Name, name) {
			return p, true
		}
	}
	for _, n := range later {
		if strings.EqualFold(n, name) {
			return nil, true
		}
	}
	return nil, false
}

// All lists the procedures.
func All() []*Procedure { return builtin }
