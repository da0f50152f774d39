// Package pgcatalog holds pg_catalog and information_schema as relations that
// the engine plans like any other: one file per relation or small family, one
// line each in builtin.go.
package pgcatalog

import (
	"context"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/index/predicate"
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
	// Listing is what Catalog holds, looked at once in a statement. For namesOnly see
	// catalog.Lister.
	Listing(ctx context.Context, namesOnly bool) (*catalog.Listing, error)
	// Listed is a listing of some time ago, nil for none: for estimates.
	Listed() *catalog.Listing
	// Settings feeds pg_settings.
	Settings() []Setting
	// Sessions feeds pg_stat_activity.
	Sessions() []Session
	// Roles feeds pg_roles and pg_authid.
	Roles() []Role
	// Model is what is known of owners and privileges, as the transaction sees it.
	Model() *roles.Model
	// May reports whether the current user has any of some privileges on an object.
	May(k roles.Key, c roles.Class, any roles.Mode) bool
	// MayColumn is May of what was granted on a single column.
	MayColumn(k roles.Key, column string, any roles.Mode) bool
	// EnabledRole reports whether the current user has a role's privileges.
	EnabledRole(oid uint32) bool
	// Locks feeds pg_locks.
	Locks() []Lock
	// Prepared feeds pg_prepared_statements.
	Prepared() []PreparedStatement
	// Cursors feeds pg_cursors.
	Cursors() []Cursor
	// StartTime is pg_postmaster_start_time().
	StartTime() time.Time
}

// Setting is one row of pg_settings.
type Setting struct {
	Name, Value, Unit, Category, Description, Context, VarType string
	Boot, Reset, Source                                        string
	Min, Max                                                   string
	Enum                                                       []string
	// PendingRestart: the configuration file has another value, which waits for a
	// restart.
	PendingRestart bool
}

// Session is one row of pg_stat_activity.
type Session struct {
	PID                             int32
	User, Application, Remote       string
	Database                        string
	BackendStart                    time.Time
	XactStart, QueryStart, StateChg time.Time // zero = NULL
	State, Query                    string
	// WaitType and WaitEvent say what the session waits for, in PostgreSQL's words;
	// "" when it does not.
	WaitType, WaitEvent string
	// QueryID is the number of Query, as in pg_stat_statements; nil = it has none.
	QueryID *int64
	TLS     *SessionTLS // nil: not encrypted
	// Hidden: the current user may not see what the session does.
	Hidden bool
}

// SessionTLS is one row of pg_stat_ssl.
type SessionTLS struct {
	Version, Cipher            string
	Bits                       int
	ClientDN, Serial, IssuerDN string
}

// Lock is one row of pg_locks.
type Lock struct {
	Type       string // relation, tuple or advisory
	Table      string // schema.table, with $branch_name; "" for advisory locks
	Class, Obj uint32 // of advisory locks, with Sub
	Sub        int16
	PID        int32 // 0 = the server's own work
	Mode       string
	Granted    bool
	Since      time.Time // of a wait; zero = granted
}

// Role is one row of pg_roles.
type Role struct {
	OID                                      uint32
	Name                                     string
	Super, CreateDB, CreateRole, Login, Repl bool
	Inherit, BypassRLS                       bool
	ConnLimit                                int
	Password                                 string // verifier; "" = none
	ValidUntil                               *int64 // microseconds since 1970; nil = for ever
	MemberOf                                 []Membership
}

// Membership is one row of pg_auth_members.
type Membership struct {
	Role, By uint32
	Admin    bool
}

// Function is one row of pg_proc. A Sources that also has Functions() []Function
// feeds them.
type Function struct {
	OID      uint32
	Name     string
	Kind     byte // f function, a aggregate, w window function
	Args     []types.Type
	Defaults int
	Ret      types.Type
	Set      bool
	Strict   bool
	Volatile byte // i, s, v
	Doc      string
}

// Operator is one row of pg_operator. A Sources that also has Operators()
// []Operator feeds them.
type Operator struct {
	OID         uint32
	Name        string
	Left, Right types.Type // a prefix operator has Prefix set and no Left
	Prefix      bool
	Ret         types.Type
}

// PreparedStatement is one row of pg_prepared_statements.
type PreparedStatement struct {
	Name, Statement string
	ParamTypes      []uint32 // OIDs
	FromSQL         bool
	PreparedAt      time.Time
}

// Cursor is one row of pg_cursors.
type Cursor struct {
	Name, Statement            string
	Holdable, Binary, Scrolled bool
	CreatedAt                  time.Time
}

// Def is one relation.
type Def struct {
	Schema string // pg_catalog or information_schema
	Name   string
	OID    uint32 // PostgreSQL's own where it has one; 0 = derived from the name
	Kind   byte   // r or v
	Fields types.Schema
	// Rows is an estimate for the planner of what there is without the warehouse, and
	// Grows, nil = nothing, of what the warehouse adds.
	Rows  int64
	Grows func(s catalog.ListingSize) int64
	// Fill adds the rows; nil = a relation without rows.
	Fill func(f *Filler) error
}

// Filler is what a Fill has at hand: where the rows come from, which columns are
// asked for, and where rows go.
type Filler struct {
	Ctx    context.Context
	Src    Sources
	fields types.Schema
	index  map[string]int
	blank  []types.Datum
	filter predicate.Node // of the query: rows that do not match may be left out
	want   func(col int) bool
	add    func(row ...types.Datum)
}

// Wants reports whether the query uses a column, so that what is costly to
// compute may be left out when it does not.
func (f *Filler) Wants(column string) bool { return f.want(f.index[column]) }

// Row adds a row given as column name and value by turns. Columns left out are
// NULL, or zero where PostgreSQL's catalog says NOT NULL. An unknown column name
// is a bug and panics.
func (f *Filler) Row(nameValue ...any) {
	row := append([]types.Datum(nil), f.blank...)
	for i := 0; i+1 < len(nameValue); i += 2 {
		c, ok := f.index[nameValue[i].(string)]
		if !ok {
			panic("pgcatalog: no column " + nameValue[i].(string))
		}
		if !f.want(c) {
			continue
		}
		row[c] = datum(nameValue[i+1])
	}
	f.add(row...)
}

// datum widens Go's own integer types to the form of types.Datum.
func datum(v any) types.Datum {
	switch v := v.(type) {
	case int:
		return int64(v)
	case int16:
		return int64(v)
	case int32:
		return int64(v)
	case uint32:
		return int64(v)
	case byte:
		return string(rune(v))
	case time.Time:
		if v.IsZero() {
			return nil
		}
		return v.UnixMicro()
	case []string:
		out := make([]types.Datum, len(v))
		for i, s := range v {
			out[i] = s
		}
		return out
	}
	return v
}

// zero is the value of a NOT NULL column that a Fill leaves out.
func zero(t types.Type) types.Datum {
	switch t.Kind {
	case types.Bool:
		return false
	case types.Float4, types.Float8:
		return 0.0
	case types.Array, types.Int2Vector, types.OIDVector:
		return []types.Datum{}
	case types.Bytea:
		return []byte{}
	}
	if t.IsTextLike() {
		return ""
	}
	return int64(0)
}

// Resolve finds a relation of pg_catalog or information_schema by name.
func Resolve(schema, name string, src Sources) (catalog.Relation, bool) {
	d, ok := lookup(schema, name)
	if !ok {
		return nil, false
	}
	return d.relation(src), true
}

// RelOID returns the OID of d.
func (d *Def) RelOID() uint32 {
	if d.OID != 0 {
		return d.OID
	}
	// Below FirstUserOID, like PostgreSQL's own.
	return 10000 + catalog.OIDOf('r', d.Schema, d.Name)%6000
}

func (d *Def) relation(src Sources) catalog.Relation {
	rows := d.Rows
	if d.Grows != nil {
		if l := src.Listed(); l != nil {
			rows += d.Grows(l.Size())
		}
	}
	return catalog.NewVirtual(d.Schema, d.Name, d.RelOID(), d.Kind, d.Fields, rows,
		func(ctx context.Context, s table.Scan, yield func(*vec.Batch) error) error {
			return catalog.FillRows(ctx, d.Fields, s, yield, func(want func(int) bool, add func(...types.Datum)) error {
				if d.Fill == nil {
					return nil
				}
				f := &Filler{Ctx: ctx, Src: src, filter: s.Filter, fields: d.Fields, want: want, add: add, index: make(map[string]int, len(d.Fields))}
				for i, c := range d.Fields {
					f.index[c.Name] = i
					var z types.Datum
					if c.Type.NotNull {
						z = zero(c.Type)
					}
					f.blank = append(f.blank, z)
				}
				return d.Fill(f)
			})
		})
}
