// Package pgcatalog holds pg_catalog and information_schema as relations that
// the engine plans like any other: one file per relation or small family, one
// line each in builtin.go.
package pgcatalog

import (
	"context"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// Sources are the things that live above the catalog and that its relations
// show. engine implements it, one per session.
type Sources interface {
	// Database is current_database().
	Database() string
	// User is current_user.
	User() string
	// Catalog lists the warehouse.
	Catalog() catalog.Catalog
	// Settings feeds pg_settings.
	Settings() []Setting
	// Sessions feeds pg_stat_activity.
	Sessions() []Session
	// Roles feeds pg_roles and pg_authid.
	Roles() []Role
	// Prepared feeds pg_prepared_statements.
	Prepared() []PreparedStatement
	// StartTime is pg_postmaster_start_time().
	StartTime() time.Time
}

// Setting is one row of pg_settings.
type Setting struct {
	Name, Value, Unit, Category, Description, Context, VarType string
	Boot, Reset, Source                                        string
	Min, Max                                                   string
	Enum                                                       []string
}

// Session is one row of pg_stat_activity.
type Session struct {
	PID                             int32
	User, Application, Remote       string
	Database                        string
	BackendStart                    time.Time
	XactStart, QueryStart, StateChg time.Time // zero = NULL
	State, Query                    string
}

// Role is one row of pg_roles.
type Role struct {
	OID                                      uint32
	Name                                     string
	Super, CreateDB, CreateRole, Login, Repl bool
}

// PreparedStatement is one row of pg_prepared_statements.
type PreparedStatement struct {
	Name, Statement string
	ParamTypes      []string
	FromSQL         bool
	PreparedAt      time.Time
}

// Def is one relation.
type Def struct {
	Schema string // pg_catalog or information_schema
	Name   string
	OID    uint32 // PostgreSQL's own where it has one; 0 = derived from the name
	Kind   byte   // r or v
	Fields types.Schema
	// Rows is an estimate for the planner.
	Rows int64
	// Fill calls add once per row, in the order of Fields. want reports whether a
	// column (by position in Fields) is asked for: what is costly to compute may
	// be left nil when it is not.
	Fill func(ctx context.Context, src Sources, s table.Scan, want func(col int) bool, add func(row ...types.Datum)) error
}

// Resolve finds a relation of pg_catalog or information_schema by name.
func Resolve(schema, name string, src Sources) (catalog.Relation, bool) {
	for i := range builtin {
		d := &builtin[i]
		if d.Schema != schema || d.Name != name {
			continue
		}
		return d.relation(src), true
	}
	return nil, false
}

// All returns every relation, for pg_class and pg_attribute.
func All() []Def { return builtin }

// RelOID returns the OID of d.
func (d *Def) RelOID() uint32 {
	if d.OID != 0 {
		return d.OID
	}
	// Below FirstUserOID, like PostgreSQL's own.
	return 10000 + catalog.OIDOf('r', d.Schema, d.Name)%6000
}

const fillRows = 2048

func (d *Def) relation(src Sources) catalog.Relation {
	return catalog.NewVirtual(d.Schema, d.Name, d.RelOID(), d.Kind, d.Fields, d.Rows,
		func(ctx context.Context, s table.Scan, yield func(*vec.Batch) error) error {
			return FillRows(ctx, d.Fields, s, yield, func(want func(int) bool, add func(...types.Datum)) error {
				return d.Fill(ctx, src, s, want, add)
			})
		})
}

// FillRows turns rows of datums into batches, column by column. It serves small
// relations; catalog/systable uses it too.
func FillRows(ctx context.Context, fields types.Schema, s table.Scan, yield func(*vec.Batch) error,
	fill func(want func(int) bool, add func(...types.Datum)) error,
) error {
	wanted := make([]bool, len(fields))
	for i := range wanted {
		wanted[i] = s.Columns == nil
	}
	for _, c := range s.Columns {
		if c >= 0 {
			wanted[c] = true
		}
	}
	cols := make([][]types.Datum, len(fields))
	n := 0
	var failed error
	flush := func() {
		if n == 0 || failed != nil {
			return
		}
		if failed = context.Cause(ctx); failed != nil {
			return
		}
		b := &vec.Batch{Schema: fields, N: n}
		for i := range fields {
			if wanted[i] {
				b.Cols = append(b.Cols, vec.FromDatums(fields[i].Type, cols[i]))
			} else {
				b.Cols = append(b.Cols, nil)
			}
			cols[i] = nil
		}
		n = 0
		failed = yield(b)
	}
	err := fill(func(c int) bool { return wanted[c] }, func(row ...types.Datum) {
		if failed != nil {
			return
		}
		for i := range fields {
			if wanted[i] {
				var v types.Datum
				if i < len(row) {
					v = row[i]
				}
				cols[i] = append(cols[i], v)
			}
		}
		if n++; n == fillRows {
			flush()
		}
	})
	if err != nil {
		return err
	}
	flush()
	return failed
}
