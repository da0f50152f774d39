package pgcatalog

import (
	"net"
	"strconv"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// DatabaseOID is the oid of the one database.
const DatabaseOID = databaseOID

// Statistician is a Sources that knows of cumulative statistics.
type Statistician interface {
	// Statements feeds pg_stat_statements, StatementsInfo pg_stat_statements_info.
	Statements() []Statement
	StatementsInfo() (dealloc int64, since time.Time)
	// TableStats are the counters of a table; zero when nobody used it.
	TableStats(oid uint32) TableStats
	DatabaseStats() DatabaseStats
	// Copies feeds pg_stat_progress_copy.
	Copies() []CopyProgress
}

// Statement is one row of pg_stat_statements. Times are in milliseconds.
type Statement struct {
	User, Text                    string
	ID, Calls, Rows               int64
	Total, Min, Max, Mean, Stddev float64
	Hidden                        bool // the current user may not see its text
}

// TableStats is one row of pg_stat_all_tables. A zero time is never.
type TableStats struct {
	SeqScans, SeqRows, KeyScans, KeyRows    int64
	Inserted, Updated, Deleted, Changed     int64
	Vacuums, Compactions, Analyzes          int64
	LastVacuum, LastCompaction, LastAnalyze time.Time
}

// DatabaseStats is the row of pg_stat_database. Times are in milliseconds.
type DatabaseStats struct {
	Backends                                            int
	Commits, Rollbacks, Misses, Hits, Returned, Fetched int64
	Inserted, Updated, Deleted, TempFiles, TempBytes    int64
	Deadlocks, Sessions, Abandoned, Fatal, Killed       int64
	SessionTime, ActiveTime, IdleInTxTime               float64
	Reset                                               time.Time
}

// CopyProgress is one row of pg_stat_progress_copy. Total is 0 when it is not known.
type CopyProgress struct {
	PID                          int32
	Hidden                       bool   // the current user may not see what it does
	OID                          uint32 // 0: COPY (query)
	From                         bool
	Type                         string // FILE or PIPE
	Bytes, Total, Rows, Excluded int64
}

func fillActivity(f *Filler) error {
	for _, s := range f.Src.Sessions() {
		var backend, query any
		addr, port := clientAddr(s.Remote)
		if s.Hidden {
			addr, port = nil, nil
		} else {
			backend = "client backend"
		}
		if s.QueryID != nil {
			query = *s.QueryID
		}
		f.Row("wait_event_type", orNull(s.WaitType), "wait_event", orNull(s.WaitEvent), "datid", databaseOID, "datname", s.Database, "pid", s.PID,
			"usesysid", roleOID(f.Src, s.User), "usename", s.User, "application_name", s.Application, "client_addr", addr, "client_port", port,
			"backend_start", s.BackendStart, "xact_start", s.XactStart, "query_start", s.QueryStart, "state_change", s.StateChg,
			"state", orNull(s.State), "query_id", query, "query", s.Query, "backend_type", backend)
	}
	return nil
}

// clientAddr takes an address apart; a socket without one has port -1.
func clientAddr(remote string) (host, port any) {
	h, p, err := net.SplitHostPort(remote)
	if err != nil {
		return nil, -1
	}
	n, err := strconv.Atoi(p)
	if err != nil || net.ParseIP(h) == nil {
		return nil, -1
	}
	return h, n
}

func fillSSL(f *Filler) error {
	for _, s := range f.Src.Sessions() {
		switch t := s.TLS; {
		case s.Hidden:
		case t == nil:
			f.Row("pid", s.PID, "ssl", false)
		default:
			f.Row("pid", s.PID, "ssl", true, "version", t.Version, "cipher", t.Cipher, "bits", t.Bits, "client_dn", orNull(t.ClientDN),
				"client_serial", orNull(t.Serial), "issuer_dn", orNull(t.IssuerDN))
		}
	}
	return nil
}

func fillGSSAPI(f *Filler) error {
	for _, s := range f.Src.Sessions() {
		if !s.Hidden {
			f.Row("pid", s.PID, "gss_authenticated", false, "encrypted", false)
		}
	}
	return nil
}

func fillStatements(f *Filler) error {
	st, ok := f.Src.(Statistician)
	if !ok {
		return nil
	}
	for _, x := range st.Statements() {
		var id, text any = x.ID, x.Text
		if x.Hidden {
			id, text = nil, "<insufficient privilege>"
		}
		f.Row("userid", roleOID(f.Src, x.User), "dbid", databaseOID, "toplevel", true, "queryid", id, "query", text, "calls", x.Calls, "rows", x.Rows,
			"total_exec_time", x.Total, "min_exec_time", x.Min, "max_exec_time", x.Max, "mean_exec_time", x.Mean, "stddev_exec_time", x.Stddev)
	}
	return nil
}

func fillStatementsInfo(f *Filler) error {
	if st, ok := f.Src.(Statistician); ok {
		n, since := st.StatementsInfo()
		f.Row("dealloc", n, "stats_reset", since)
	}
	return nil
}

func fillStatDatabase(f *Filler) error {
	st, ok := f.Src.(Statistician)
	if !ok {
		return nil
	}
	d := st.DatabaseStats()
	f.Row("datid", databaseOID, "datname", f.Src.Database(), "numbackends", d.Backends, "xact_commit", d.Commits, "xact_rollback", d.Rollbacks,
		"blks_read", d.Misses, "blks_hit", d.Hits, "tup_returned", d.Returned, "tup_fetched", d.Fetched, "tup_inserted", d.Inserted,
		"tup_updated", d.Updated, "tup_deleted", d.Deleted, "conflicts", 0, "temp_files", d.TempFiles, "temp_bytes", d.TempBytes, "deadlocks", d.Deadlocks,
		"blk_read_time", 0.0, "blk_write_time", 0.0, "session_time", d.SessionTime, "active_time", d.ActiveTime, "idle_in_transaction_time", d.IdleInTxTime,
		"sessions", d.Sessions, "sessions_abandoned", d.Abandoned, "sessions_fatal", d.Fatal, "sessions_killed", d.Killed, "stats_reset", d.Reset)
	return nil
}

// fillStatTables is pg_stat_user_tables; pg_stat_all_tables has no more rows, because
// nothing is counted of the catalog's own relations.
func fillStatTables(f *Filler) error {
	st, ok := f.Src.(Statistician)
	if !ok {
		return nil
	}
	return eachTable(f.Ctx, f.Src, func(rel catalog.Relation) error {
		if rel.Kind() != 'r' {
			return nil
		}
		x := st.TableStats(rel.OID())
		var live int64
		if f.Wants("n_live_tup") {
			if s, err := rel.Stats(f.Ctx, table.Scan{Limit: -1}); err == nil && s != nil {
				live = s.Rows
			}
		}
		var keyScans, keyRows any
		if len(key(rel)) > 0 {
			keyScans, keyRows = x.KeyScans, x.KeyRows
		}
		f.Row("relid", rel.OID(), "schemaname", rel.Schema(), "relname", rel.Name(), "seq_scan", x.SeqScans, "seq_tup_read", x.SeqRows,
			"idx_scan", keyScans, "idx_tup_fetch", keyRows, "n_tup_ins", x.Inserted, "n_tup_upd", x.Updated, "n_tup_del", x.Deleted, "n_tup_hot_upd", 0,
			"n_live_tup", live, "n_dead_tup", 0, "n_mod_since_analyze", x.Changed, "n_ins_since_vacuum", 0, "last_vacuum", x.LastVacuum,
			"last_autovacuum", x.LastCompaction, "last_analyze", x.LastAnalyze, "vacuum_count", x.Vacuums, "autovacuum_count", x.Compactions,
			"analyze_count", x.Analyzes, "autoanalyze_count", 0)
		return nil
	})
}

func fillProgressCopy(f *Filler) error {
	st, ok := f.Src.(Statistician)
	if !ok {
		return nil
	}
	for _, c := range st.Copies() {
		if c.Hidden {
			f.Row("pid", c.PID, "datid", databaseOID, "datname", f.Src.Database())
			continue
		}
		command := "COPY TO"
		if c.From {
			command = "COPY FROM"
		}
		f.Row("pid", c.PID, "datid", databaseOID, "datname", f.Src.Database(), "relid", c.OID, "command", command, "type", c.Type,
			"bytes_processed", c.Bytes, "bytes_total", c.Total, "tuples_processed", c.Rows, "tuples_excluded", c.Excluded)
	}
	return nil
}

// fillPaimonTables is paimon_stat_tables, a view of this product's own: how tables lie
// on disk.
func fillPaimonTables(f *Filler) error {
	return f.eachOf("relid", func(rel catalog.Relation) error {
		t, err := catalog.Pinned(f.Ctx, rel)
		if t == nil || err != nil {
			return nil //nolint:nilerr // as below
		}
		l, err := t.Layout(f.Ctx)
		if err != nil {
			return nil //nolint:nilerr // a broken table is left out, as everywhere here
		}
		row := []any{"relid", rel.OID(), "schemaname", rel.Schema(), "relname", rel.Name(), "schema_id", t.SchemaID(), "files", l.Files, "bytes", l.Bytes,
			"rows", l.Rows, "delete_rows", l.DeleteRows, "partitions", l.Partitions, "buckets", l.Buckets, "sorted_runs", l.SortedRuns, "level0_files", l.Level0Files}
		if l.Snapshot != nil {
			row = append(row, "snapshot_id", l.Snapshot.ID, "snapshot_time", l.Time(l.Snapshot))
		}
		if l.Compact != nil {
			row = append(row, "compact_snapshot_id", l.Compact.ID, "compact_time", l.Time(l.Compact))
		}
		f.Row(row...)
		return nil
	})
}
