package ast

// TxOp is a transaction command.
type TxOp uint8

// Transaction commands. START TRANSACTION is TxBegin, END TxCommit, ABORT
// TxRollback.
const (
	TxBegin TxOp = iota
	TxCommit
	TxRollback
	TxSavepoint
	TxRelease
	TxRollbackTo
	TxPrepare
	TxCommitPrepared
	TxRollbackPrepared
)

// Transaction is BEGIN, COMMIT, ROLLBACK, SAVEPOINT and relatives. Start is
// START TRANSACTION, whose command tag differs from BEGIN's.
type Transaction struct {
	Span
	Op    TxOp
	Start bool
	Modes []*TxMode
	Name  Ident // savepoint
	GID   string
	Chain bool // AND CHAIN
}

// TxMode is a transaction mode. Text is in lower case: one of "read only",
// "read write", "deferrable", "not deferrable", "isolation level serializable",
// "isolation level repeatable read", "isolation level read committed",
// "isolation level read uncommitted".
type TxMode struct {
	Loc
	Text string
}

// Set is SET, under the setting's own name: SET TIME ZONE is timezone, SET
// NAMES client_encoding, SET SCHEMA search_path, SET ROLE role, SET SESSION
// AUTHORIZATION session_authorization, SET XML OPTION xmloption. Words are
// *String, so SET x = on has the value 'on'.
type Set struct {
	Span
	Local       bool
	Session     bool // SESSION was written; it is the default
	Name        string
	Values      []Expr
	Default     bool // TO DEFAULT; also SET TIME ZONE LOCAL
	FromCurrent bool // FROM CURRENT, in CREATE FUNCTION
}

// SetTransaction is SET TRANSACTION and SET SESSION CHARACTERISTICS AS
// TRANSACTION.
type SetTransaction struct {
	Span
	Local    bool
	Session  bool
	Modes    []*TxMode
	Snapshot string // SET TRANSACTION SNAPSHOT
}

// SetConstraints is SET CONSTRAINTS; no names is ALL.
type SetConstraints struct {
	Span
	Names    []Name
	Deferred bool
}

// Show is SHOW of a setting, named as in Set; All is SHOW ALL.
type Show struct {
	Span
	Name string
	All  bool
}

// Reset is RESET of a setting.
type Reset struct {
	Span
	Name string
	All  bool
}

// ShowObjects is SHOW TABLES, DATABASES, SCHEMAS, COLUMNS, PARTITIONS, VIEWS,
// FUNCTIONS, CREATE TABLE and so on. Kind is in upper case.
type ShowObjects struct {
	Span
	Kind string
	Name Name   // of what, or in which schema
	Like string // pattern, empty when not given
	// NotLike is SHOW TABLES NOT LIKE.
	NotLike   bool
	Partition []*PartitionValue
}

// Describe is DESCRIBE or DESC of a table. Kind is what else may be described:
// empty for a table, or DATABASE, SCHEMA, FUNCTION.
type Describe struct {
	Span
	Kind     string
	Name     Name
	Extended bool
	Column   Name
}

// Use is USE [CATALOG|DATABASE] name of the lake engines.
type Use struct {
	Span
	Catalog bool
	Name    Name
}

// Prepare is PREPARE. Stmt is a *Query, *Insert, *Update, *Delete or *Merge.
type Prepare struct {
	Span
	Name  Ident
	Types []*TypeName
	Stmt  Stmt
}

// Execute is EXECUTE.
type Execute struct {
	Span
	Name Ident
	Args []Expr
}

// Deallocate is DEALLOCATE; an empty Name is ALL.
type Deallocate struct {
	Span
	Name Ident
}

// DeclareCursor is DECLARE ... CURSOR.
type DeclareCursor struct {
	Span
	Name        Ident
	Binary      bool
	Scroll      bool
	NoScroll    bool
	Insensitive bool
	Asensitive  bool
	Hold        bool
	Query       *Query
}

// FetchDirection is how a cursor moves.
type FetchDirection uint8

// Directions. NEXT, FIRST and so on are FetchForward or FetchAbsolute with the
// count they stand for, as in PostgreSQL.
const (
	FetchForward FetchDirection = iota
	FetchBackward
	FetchAbsolute
	FetchRelative
)

// Fetch is FETCH or MOVE. All is FORWARD ALL or BACKWARD ALL.
type Fetch struct {
	Span
	Move      bool
	Direction FetchDirection
	Count     int64
	All       bool
	Cursor    Ident
}

// CloseCursor is CLOSE; an empty Name is ALL.
type CloseCursor struct {
	Span
	Name Ident
}

// Explain is EXPLAIN. ANALYZE and VERBOSE written as words are Options.
type Explain struct {
	Span
	Options []*Option
	Stmt    Stmt
}

// Call is CALL procedure(args).
type Call struct {
	Span
	Func *FuncCall
}

// Vacuum is VACUUM and, with Analyze only, ANALYZE.
type Vacuum struct {
	Span
	AnalyzeOnly bool // the statement is ANALYZE
	Options     []*Option
	Tables      []*VacuumTable
	Partition   []*PartitionValue // of Spark's ANALYZE TABLE
	// Compute is what follows Spark's ANALYZE TABLE t COMPUTE STATISTICS,
	// in upper case; empty for PostgreSQL's statement.
	Compute string
}

// VacuumTable is a table of VACUUM or ANALYZE.
type VacuumTable struct {
	Loc
	Name    Name
	Columns []Ident
}

// LockTable is LOCK TABLE. Mode is in upper case, ACCESS EXCLUSIVE by default.
type LockTable struct {
	Span
	Tables []*TableName
	Mode   string
	NoWait bool
}

// Discard is DISCARD; What is ALL, PLANS, SEQUENCES or TEMP.
type Discard struct {
	Span
	What string
}

// Listen is LISTEN.
type Listen struct {
	Span
	Channel Ident
}

// Unlisten is UNLISTEN; an empty Channel is *.
type Unlisten struct {
	Span
	Channel Ident
}

// Notify is NOTIFY.
type Notify struct {
	Span
	Channel Ident
	Payload string
}

// Do is DO. Language is empty when not given.
type Do struct {
	Span
	Language string
	Body     string
}

// Checkpoint is CHECKPOINT.
type Checkpoint struct{ Span }

// Reindex is REINDEX. Kind is INDEX, TABLE, SCHEMA, SYSTEM or DATABASE.
type Reindex struct {
	Span
	Kind         string
	Concurrently bool
	Options      []*Option
	Name         Name
}

// Cluster is CLUSTER; an empty Table is all clustered tables.
type Cluster struct {
	Span
	Options []*Option
	Table   Name
	Index   Ident
}

// RefreshMatView is REFRESH MATERIALIZED VIEW.
type RefreshMatView struct {
	Span
	Concurrently bool
	Name         Name
	NoData       bool
}

// RoleKind is what a RoleSpec names.
type RoleKind uint8

// Kinds of role names.
const (
	RoleName RoleKind = iota
	RolePublic
	RoleCurrentRole
	RoleCurrentUser
	RoleSessionUser
)

// RoleSpec is a role, or a word that stands for one.
type RoleSpec struct {
	Loc
	Kind RoleKind
	Name Ident
}

// RoleOption is an option of CREATE ROLE. Name is in lower case: superuser,
// login, nologin, password, connection limit, valid until, in role, admin, ...
type RoleOption struct {
	Loc
	Name   string
	String *string // password (nil: NULL), valid until
	Number int     // connection limit, sysid
	Roles  []*RoleSpec
}

// CreateRole is CREATE ROLE, USER or GROUP.
type CreateRole struct {
	Span
	Kind    string // ROLE, USER, GROUP
	Name    *RoleSpec
	Options []*RoleOption
}

// AlterRole is ALTER ROLE with options. For ALTER GROUP Kind is GROUP and the
// option is add or drop with Roles.
type AlterRole struct {
	Span
	Kind    string
	Role    *RoleSpec
	Options []*RoleOption
}

// AlterSettings is ALTER ROLE ... SET, ALTER DATABASE ... SET and ALTER SYSTEM
// SET. A nil Role is ALL, or none when System or only a Database is given.
type AlterSettings struct {
	Span
	Kind     string // ROLE, USER, DATABASE, SYSTEM
	Role     *RoleSpec
	Database Ident
	Set      Stmt // *Set, *SetTransaction or *Reset
}

// Privilege is an entry of GRANT: the word in lower case, "all" for ALL
// PRIVILEGES, or a role's name in GRANT role TO.
type Privilege struct {
	Loc
	Name    string
	Columns []Ident
}

// Grant is GRANT and, with Revoke, REVOKE. When Kind is empty roles are
// granted. Otherwise Kind is TABLE, SEQUENCE, SCHEMA, ..., or ALL TABLES IN
// SCHEMA and so on; Objects of functions are in Functions as SQL text.
type Grant struct {
	Span
	Revoke     bool
	OptionOnly bool // REVOKE GRANT|ADMIN OPTION FOR
	Privileges []*Privilege
	Kind       string
	Objects    []Name
	Functions  []string
	Grantees   []*RoleSpec
	WithOption bool // WITH GRANT OPTION, WITH ADMIN OPTION
	GrantedBy  *RoleSpec
	Cascade    bool
}

// AlterDefaultPrivileges is ALTER DEFAULT PRIVILEGES. Kind of Grant is TABLES,
// SEQUENCES, FUNCTIONS, ROUTINES, TYPES or SCHEMAS; it has no objects.
type AlterDefaultPrivileges struct {
	Span
	Roles   []*RoleSpec // nil: the current one
	Schemas []Ident     // nil: all
	Grant   *Grant
}

// ReassignOwned is REASSIGN OWNED.
type ReassignOwned struct {
	Span
	Roles []*RoleSpec
	To    *RoleSpec
}

// DropOwned is DROP OWNED.
type DropOwned struct {
	Span
	Roles   []*RoleSpec
	Cascade bool
}

// CreateDatabase is CREATE DATABASE.
type CreateDatabase struct {
	Span
	IfNotExists bool // an extension
	Name        Ident
	Options     []*Option
}

// AlterDatabase is ALTER DATABASE with options.
type AlterDatabase struct {
	Span
	Name    Ident
	Options []*Option
}

// Unsupported is a statement whose grammar was checked but of which no tree is
// made. Kind is PostgreSQL's command name, e.g. CREATE TRIGGER; SQL is the
// statement's text.
type Unsupported struct {
	Span
	Kind string
	SQL  string
}

// Empty is a statement of nothing but blanks and comments. The parser drops
// them; MySQL's and embedders may see one.
type Empty struct{ Span }

func (*Transaction) stmt()    {}
func (*Set) stmt()            {}
func (*SetTransaction) stmt() {}
func (*SetConstraints) stmt() {}
func (*Show) stmt()           {}
func (*Reset) stmt()          {}
func (*ShowObjects) stmt()    {}
func (*Describe) stmt()       {}
func (*Use) stmt()            {}
func (*Prepare) stmt()        {}
func (*Execute) stmt()        {}
func (*Deallocate) stmt()     {}
func (*DeclareCursor) stmt()  {}
func (*Fetch) stmt()          {}
func (*CloseCursor) stmt()    {}
func (*Explain) stmt()        {}
func (*Call) stmt()           {}
func (*Vacuum) stmt()         {}
func (*LockTable) stmt()      {}
func (*Discard) stmt()        {}
func (*Listen) stmt()         {}
func (*Unlisten) stmt()       {}
func (*Notify) stmt()         {}
func (*Do) stmt()             {}
func (*Checkpoint) stmt()     {}
func (*Reindex) stmt()        {}
func (*Cluster) stmt()        {}
func (*RefreshMatView) stmt() {}
func (*CreateRole) stmt()     {}
func (*AlterRole) stmt()      {}
func (*AlterSettings) stmt()  {}
func (*Grant) stmt()          {}

func (*AlterDefaultPrivileges) stmt() {}
func (*ReassignOwned) stmt()          {}
func (*DropOwned) stmt()              {}

func (*CreateDatabase) stmt() {}
func (*AlterDatabase) stmt()  {}
func (*Unsupported) stmt()    {}
func (*Empty) stmt()          {}
