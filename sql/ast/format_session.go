package ast

import (
	"strconv"
	"strings"
)

func (f *formatter) session(s Stmt) {
	switch s := s.(type) {
	case *Transaction:
		f.transaction(s)
	case *Set:
		f.set(s)
	case *SetTransaction:
		f.s("SET ")
		f.opt(s.Local, "LOCAL ")
		if s.Snapshot != "" {
			f.s("TRANSACTION SNAPSHOT ")
			f.str(s.Snapshot)
			return
		}
		f.opt(s.Session, "SESSION CHARACTERISTICS AS ")
		f.s("TRANSACTION ")
		f.txModes(s.Modes)
	case *SetConstraints:
		f.s("SET CONSTRAINTS ")
		f.opt(len(s.Names) == 0, "ALL")
		each(f, s.Names, f.name)
		f.s(map[bool]string{true: " DEFERRED", false: " IMMEDIATE"}[s.Deferred])
	case *Show:
		f.s("SHOW ")
		f.setting(s.Name, s.All)
	case *Reset:
		f.s("RESET ")
		f.setting(s.Name, s.All)
	case *ShowObjects:
		f.showObjects(s)
	case *Describe:
		f.s("DESCRIBE ")
		f.opt(s.Kind != "", s.Kind+" ")
		f.opt(s.Extended, "EXTENDED ")
		f.name(s.Name)
		f.opt(s.Column != nil, " ")
		f.name(s.Column)
	case *Use:
		f.s("USE ")
		f.opt(s.Catalog, "CATALOG ")
		f.name(s.Name)
	case *Prepare:
		f.s("PREPARE ")
		f.ident(s.Name)
		if len(s.Types) > 0 {
			f.s(" (")
			each(f, s.Types, f.typeName)
			f.s(")")
		}
		f.s(" AS ")
		f.stmt(s.Stmt)
	case *Execute:
		f.s("EXECUTE ")
		f.ident(s.Name)
		if len(s.Args) > 0 {
			f.parenExprs(s.Args)
		}
	case *Deallocate:
		f.s("DEALLOCATE ")
		f.identOr(s.Name, "ALL")
	case *DeclareCursor:
		f.declareCursor(s)
	case *Fetch:
		f.fetch(s)
	case *CloseCursor:
		f.s("CLOSE ")
		f.identOr(s.Name, "ALL")
	case *Explain:
		f.s("EXPLAIN")
		f.utilityOptions(s.Options)
		f.s(" ")
		f.stmt(s.Stmt)
	case *Call:
		f.s("CALL ")
		f.expr(s.Func)
	default:
		f.utility(s)
	}
}

func (f *formatter) identOr(id Ident, word string) {
	if id.Empty() {
		f.s(word)
		return
	}
	f.ident(id)
}

func (f *formatter) txModes(ms []*TxMode) {
	each(f, ms, func(m *TxMode) { f.s(strings.ToUpper(m.Text)) })
}

func (f *formatter) transaction(s *Transaction) {
	words := [...]string{
		"BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT ", "RELEASE SAVEPOINT ", "ROLLBACK TO SAVEPOINT ",
		"PREPARE TRANSACTION ", "COMMIT PREPARED ", "ROLLBACK PREPARED ",
	}
	if s.Start {
		f.s("START TRANSACTION")
	} else {
		f.s(words[s.Op])
	}
	switch s.Op {
	case TxSavepoint, TxRelease, TxRollbackTo:
		f.ident(s.Name)
	case TxPrepare, TxCommitPrepared, TxRollbackPrepared:
		f.str(s.GID)
	}
	f.opt(len(s.Modes) > 0, " ")
	f.txModes(s.Modes)
	f.opt(s.Chain, " AND CHAIN")
}

// set writes a setting under its own name. Only an interval needs the SET TIME
// ZONE it was read from.
func (f *formatter) set(s *Set) {
	f.s("SET ")
	f.opt(s.Local, "LOCAL ")
	f.opt(s.Session, "SESSION ")
	if len(s.Values) == 1 {
		if _, ok := s.Values[0].(*TypedLiteral); ok {
			f.s("TIME ZONE ")
			f.expr(s.Values[0])
			return
		}
	}
	if s.FromCurrent {
		f.settingName(s.Name)
		f.s(" FROM CURRENT")
		return
	}
	if plainSetting(s.Name) {
		f.settingName(s.Name)
		f.s(" TO ")
	} else {
		f.str(s.Name)
		f.s(" = ")
	}
	if s.Default {
		f.s("DEFAULT")
		return
	}
	f.exprs(s.Values)
}

func plainSetting(name string) bool {
	for p := range strings.SplitSeq(name, ".") {
		if p == "" {
			return false
		}
	}
	return true
}

func (f *formatter) settingName(name string) {
	for i, p := range strings.Split(name, ".") {
		f.opt(i > 0, ".")
		f.s(QuoteIdent(p))
	}
}

func (f *formatter) setting(name string, all bool) {
	switch {
	case all:
		f.s("ALL")
	case plainSetting(name):
		f.settingName(name)
	default:
		f.str(name)
	}
}

func (f *formatter) showObjects(s *ShowObjects) {
	f.s("SHOW ", s.Kind)
	if s.Name != nil {
		switch {
		case strings.HasPrefix(s.Kind, "CREATE "), s.Kind == "PARTITIONS", s.Kind == "TAGS", s.Kind == "BRANCHES":
			f.s(" ")
		case s.Kind == "TABLE EXTENDED":
			f.s(" IN ")
		default:
			f.s(" FROM ")
		}
		f.name(s.Name)
	}
	f.opt(s.NotLike, " NOT")
	if s.Like != "" {
		f.s(" LIKE ")
		f.str(s.Like)
	}
	if s.Partition != nil {
		f.s(" PARTITION ")
		f.partition(s.Partition)
	}
}

func (f *formatter) declareCursor(s *DeclareCursor) {
	f.s("DECLARE ")
	f.ident(s.Name)
	f.opt(s.Binary, " BINARY")
	f.opt(s.Asensitive, " ASENSITIVE")
	f.opt(s.Insensitive, " INSENSITIVE")
	f.opt(s.NoScroll, " NO SCROLL")
	f.opt(s.Scroll, " SCROLL")
	f.s(" CURSOR")
	f.opt(s.Hold, " WITH HOLD")
	f.s(" FOR ")
	f.query(s.Query)
}

func (f *formatter) fetch(s *Fetch) {
	f.s(map[bool]string{true: "MOVE ", false: "FETCH "}[s.Move])
	f.s([...]string{"FORWARD ", "BACKWARD ", "ABSOLUTE ", "RELATIVE "}[s.Direction])
	if s.All {
		f.s("ALL")
	} else {
		f.s(strconv.FormatInt(s.Count, 10))
	}
	f.s(" FROM ")
	f.ident(s.Cursor)
}

func (f *formatter) utility(s Stmt) {
	switch s := s.(type) {
	case *Vacuum:
		f.vacuum(s)
	case *LockTable:
		f.s("LOCK TABLE ")
		f.tables(s.Tables)
		f.s(" IN ", s.Mode, " MODE")
		f.opt(s.NoWait, " NOWAIT")
	case *Discard:
		f.s("DISCARD ", s.What)
	case *Listen:
		f.s("LISTEN ")
		f.ident(s.Channel)
	case *Unlisten:
		f.s("UNLISTEN ")
		f.identOr(s.Channel, "*")
	case *Notify:
		f.s("NOTIFY ")
		f.ident(s.Channel)
		if s.Payload != "" {
			f.s(", ")
			f.str(s.Payload)
		}
	case *Do:
		f.s("DO ")
		if s.Language != "" {
			f.s("LANGUAGE ")
			f.str(s.Language)
			f.s(" ")
		}
		f.str(s.Body)
	case *Checkpoint:
		f.s("CHECKPOINT")
	case *Reindex:
		f.s("REINDEX")
		f.utilityOptions(s.Options)
		f.s(" ", s.Kind, " ")
		f.opt(s.Concurrently, "CONCURRENTLY ")
		f.name(s.Name)
	case *Cluster:
		f.cluster(s)
	case *RefreshMatView:
		f.s("REFRESH MATERIALIZED VIEW ")
		f.opt(s.Concurrently, "CONCURRENTLY ")
		f.name(s.Name)
		f.opt(s.NoData, " WITH NO DATA")
	case *Unsupported:
		f.s(s.SQL)
	default:
		f.roles(s)
	}
}

func (f *formatter) vacuum(s *Vacuum) {
	f.s(map[bool]string{true: "ANALYZE", false: "VACUUM"}[s.AnalyzeOnly])
	f.utilityOptions(s.Options)
	f.opt(s.Compute != "", " TABLE")
	table := func(t *VacuumTable) {
		f.name(t.Name)
		if s.Compute == "" {
			f.columns(t.Columns)
		}
	}
	if len(s.Tables) > 0 {
		f.s(" ")
		each(f, s.Tables, table)
	}
	if s.Compute == "" {
		return
	}
	if s.Partition != nil {
		f.s(" PARTITION ")
		f.partition(s.Partition)
	}
	f.s(" COMPUTE ", s.Compute)
	if cols := s.Tables[0].Columns; len(cols) > 0 {
		f.s(" FOR COLUMNS ")
		f.idents(cols)
	}
}

func (f *formatter) cluster(s *Cluster) {
	f.s("CLUSTER")
	if s.Table == nil {
		f.opt(len(s.Options) > 0, " VERBOSE")
		return
	}
	f.utilityOptions(s.Options)
	f.s(" ")
	f.name(s.Table)
	if !s.Index.Empty() {
		f.s(" USING ")
		f.ident(s.Index)
	}
}

func (f *formatter) role(r *RoleSpec) {
	switch r.Kind {
	case RoleCurrentRole:
		f.s("CURRENT_ROLE")
	case RoleCurrentUser:
		f.s("CURRENT_USER")
	case RoleSessionUser:
		f.s("SESSION_USER")
	default:
		f.ident(r.Name)
	}
}

func (f *formatter) roles(s Stmt) {
	switch s := s.(type) {
	case *CreateRole:
		f.s("CREATE ", s.Kind, " ")
		f.role(s.Name)
		f.roleOptions(s.Options)
	case *AlterRole:
		f.s("ALTER ", s.Kind, " ")
		f.role(s.Role)
		if s.Kind == "GROUP" {
			f.s(" ", s.Options[0].Name, " USER ")
			each(f, s.Options[0].Roles, f.role)
			return
		}
		f.roleOptions(s.Options)
	case *AlterSettings:
		f.s("ALTER ", s.Kind, " ")
		switch s.Kind {
		case "SYSTEM":
		case "DATABASE":
			f.ident(s.Database)
			f.s(" ")
		default:
			if s.Role == nil {
				f.s("ALL ")
			} else {
				f.role(s.Role)
				f.s(" ")
			}
			if !s.Database.Empty() {
				f.s("IN DATABASE ")
				f.ident(s.Database)
				f.s(" ")
			}
		}
		f.stmt(s.Set)
	case *Grant:
		f.grant(s)
	case *AlterDefaultPrivileges:
		f.s("ALTER DEFAULT PRIVILEGES ")
		if s.Roles != nil {
			f.s("FOR ROLE ")
			each(f, s.Roles, f.role)
			f.s(" ")
		}
		if s.Schemas != nil {
			f.s("IN SCHEMA ")
			each(f, s.Schemas, f.ident)
			f.s(" ")
		}
		f.grant(s.Grant)
	case *ReassignOwned:
		f.s("REASSIGN OWNED BY ")
		each(f, s.Roles, f.role)
		f.s(" TO ")
		f.role(s.To)
	case *DropOwned:
		f.s("DROP OWNED BY ")
		each(f, s.Roles, f.role)
		f.opt(s.Cascade, " CASCADE")
	case *CreateDatabase:
		f.s("CREATE DATABASE ", ifNotExists(s.IfNotExists))
		f.ident(s.Name)
		f.databaseOptions(s.Options)
	case *AlterDatabase:
		f.s("ALTER DATABASE ")
		f.ident(s.Name)
		if len(s.Options) == 1 && s.Options[0].Name == "refresh collation version" {
			f.s(" REFRESH COLLATION VERSION")
			return
		}
		if len(s.Options) == 1 {
			if w, ok := s.Options[0].Value.(*OptionWord); ok {
				f.s(" SET TABLESPACE ", QuoteIdent(w.Text))
				return
			}
		}
		f.databaseOptions(s.Options)
	}
}

func (f *formatter) roleOptions(os []*RoleOption) {
	for _, o := range os {
		f.s(" ", strings.ToUpper(o.Name))
		switch {
		case o.String != nil:
			f.s(" ")
			f.str(*o.String)
		case o.Name == "password":
			f.s(" NULL")
		case o.Name == "connection limit", o.Name == "sysid":
			f.s(" ", strconv.Itoa(o.Number))
		}
		if len(o.Roles) > 0 {
			f.s(" ")
			each(f, o.Roles, f.role)
		}
	}
}

func (f *formatter) databaseOptions(os []*Option) {
	for _, o := range os {
		if o.Name == "connection_limit" {
			f.s(" CONNECTION LIMIT = ")
		} else {
			f.s(" ", o.Name, " = ")
		}
		if o.Value == nil {
			f.s("DEFAULT")
		} else {
			f.optionValue(o.Value)
		}
	}
}

func (f *formatter) grant(s *Grant) {
	f.s(map[bool]string{true: "REVOKE ", false: "GRANT "}[s.Revoke])
	option := "GRANT OPTION"
	if s.Kind == "" {
		option = "ADMIN OPTION"
	}
	f.opt(s.OptionOnly, option+" FOR ")
	each(f, s.Privileges, func(p *Privilege) {
		switch p.Name {
		case "select", "references", "create", "all", "alter system":
			f.s(strings.ToUpper(p.Name))
		default:
			f.s(QuoteIdent(p.Name))
		}
		f.columns(p.Columns)
	})
	if s.Kind != "" {
		f.s(" ON ", s.Kind, " ")
		each(f, s.Objects, f.name)
		each(f, s.Functions, func(t string) { f.s(t) })
	}
	f.s(map[bool]string{true: " FROM ", false: " TO "}[s.Revoke])
	each(f, s.Grantees, f.role)
	f.opt(s.WithOption, " WITH "+option)
	if s.GrantedBy != nil {
		f.s(" GRANTED BY ")
		f.role(s.GrantedBy)
	}
	f.opt(s.Cascade, " CASCADE")
}
