package pgcatalog

import "time"

// Compaction is one row of pg_stat_progress_compact, a view of this product's own:
// done and total count the rows that are read, written the bytes that went out.
type Compaction struct {
	PID         int32 // of the session that asked for it; 0 = in the background
	OID         uint32
	Table       string
	Started     time.Time
	Phase       string // planning, rewriting, publishing
	Done, Total int64
	Written     int64
}

// Compactor is a Sources that knows of compactions.
type Compactor interface {
	Compactions() []Compaction
}

func fillProgressCompact(f *Filler) error {
	c, ok := f.Src.(Compactor)
	if !ok {
		return nil
	}
	for _, x := range c.Compactions() {
		var pid any
		if x.PID != 0 {
			pid = x.PID
		}
		f.Row("pid", pid, "datid", databaseOID, "datname", f.Src.Database(), "relid", x.OID, "relname", x.Table, "started", x.Started, "phase", x.Phase,
			"rows_done", x.Done, "rows_total", x.Total, "bytes_written", x.Written)
	}
	return nil
}
