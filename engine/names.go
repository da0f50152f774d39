package engine

import (
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

// bare is a value as pg_settings shows it: a number without its unit.
func (s *Setting) bare(v string) string {
	if s.Kind == KindInt {
		return formatInt(s.number(v))
	}
	if s.Kind == KindReal {
		if f, err := s.parseNumber(s.Name, v); err == nil {
			return shortFloat(f)
		}
	}
	return v
}

// unsupported is the error of a statement that is understood but not done yet.
func unsupported(st ast.Stmt) *pgerr.Error {
	err := pgerr.New(pgerr.FeatureNotSupported, "%s is not supported yet", commandName(st))
	switch commandName(st) {
	case "CREATE DATABASE":
		err.WithHint("There is one database, the warehouse; CREATE SCHEMA makes a Paimon database.")
	case "CLUSTER":
		err.WithHint("CALL sys.compact('t', order_strategy => 'order', order_by => 'a,b') sorts an append table.")
	}
	return err
}

// writes returns the name of a statement that changes data or definitions.
func writes(st ast.Stmt) (string, bool) {
	switch x := st.(type) {
	case *ast.Insert, *ast.Update, *ast.Delete, *ast.Merge, *ast.Truncate, *ast.CreateTable, *ast.CreateTableAs, *ast.CreateView,
		*ast.CreateSchema, *ast.CreateIndex, *ast.CreateSequence, *ast.AlterSequence, *ast.Drop, *ast.Comment, *ast.AlterTable,
		*ast.Rename, *ast.AlterOwner, *ast.AlterObjectSchema, *ast.AlterSchemaOptions, *ast.CreateRole, *ast.AlterRole,
		*ast.AlterSettings, *ast.Grant, *ast.AlterDefaultPrivileges, *ast.ReassignOwned, *ast.DropOwned, *ast.CreateDatabase, *ast.AlterDatabase, *ast.RefreshMatView, *ast.CreateFunction, *ast.Call:
		return commandName(st), true
	case *ast.Copy:
		return "COPY FROM", x.From
	case *ast.Vacuum:
		return commandName(st), true
	case *ast.Query:
		if sel, ok := x.Body.(*ast.Select); ok && sel.Into != nil {
			return "SELECT INTO", true
		}
		if len(x.Locks) > 0 {
			return "SELECT FOR UPDATE", true
		}
		if x.With != nil {
			for _, c := range x.With.CTEs {
				if name, ok := writes(c.Stmt); ok {
					return name, true
				}
			}
		}
	case *ast.Explain:
		for _, o := range x.Options {
			if o.Name == "analyze" && optionOn(o) {
				return writes(x.Stmt)
			}
		}
	}
	return "", false
}

// commandName is PostgreSQL's name of a statement: its command tag without
// counts.
func commandName(st ast.Stmt) string {
	switch x := st.(type) {
	case *ast.Query:
		return "SELECT"
	case *ast.Insert:
		if x.Overwrite {
			return "INSERT OVERWRITE"
		}
		if x.Upsert {
			return "UPSERT"
		}
		return "INSERT"
	case *ast.Update:
		return "UPDATE"
	case *ast.Delete:
		return "DELETE"
	case *ast.Merge:
		return "MERGE"
	case *ast.Truncate:
		return "TRUNCATE TABLE"
	case *ast.Copy:
		if x.From {
			return "COPY FROM"
		}
		return "COPY"
	case *ast.CreateTable:
		return "CREATE TABLE"
	case *ast.CreateTableAs:
		if x.Materialized {
			return "CREATE MATERIALIZED VIEW"
		}
		return "CREATE TABLE AS"
	case *ast.CreateView:
		return "CREATE VIEW"
	case *ast.CreateSchema:
		return "CREATE SCHEMA"
	case *ast.CreateIndex:
		return "CREATE INDEX"
	case *ast.CreateSequence:
		return "CREATE SEQUENCE"
	case *ast.AlterSequence:
		return "ALTER SEQUENCE"
	case *ast.Drop:
		return "DROP " + x.Kind
	case *ast.Comment:
		return "COMMENT"
	case *ast.AlterTable:
		if x.Kind != "" {
			return "ALTER " + x.Kind
		}
		return "ALTER TABLE"
	case *ast.Rename:
		return "ALTER ... RENAME"
	case *ast.AlterOwner:
		return "ALTER ... OWNER"
	case *ast.AlterObjectSchema:
		return "ALTER ... SET SCHEMA"
	case *ast.AlterSchemaOptions:
		return "ALTER SCHEMA"
	case *ast.CreateFunction:
		return "CREATE FUNCTION"
	case *ast.CreateRole:
		return "CREATE ROLE"
	case *ast.AlterRole:
		return "ALTER ROLE"
	case *ast.AlterSettings:
		return "ALTER " + x.Kind
	case *ast.AlterDefaultPrivileges:
		return "ALTER DEFAULT PRIVILEGES"
	case *ast.ReassignOwned:
		return "REASSIGN OWNED"
	case *ast.DropOwned:
		return "DROP OWNED"
	case *ast.Grant:
		name := "GRANT"
		if x.Revoke {
			name = "REVOKE"
		}
		if x.Kind == "" {
			name += " ROLE"
		}
		return name
	case *ast.CreateDatabase:
		return "CREATE DATABASE"
	case *ast.AlterDatabase:
		return "ALTER DATABASE"
	case *ast.RefreshMatView:
		return "REFRESH MATERIALIZED VIEW"
	case *ast.Call:
		if x.Func != nil {
			return "CALL " + x.Func.Name.String()
		}
		return "CALL"
	case *ast.Vacuum:
		if x.AnalyzeOnly {
			return "ANALYZE"
		}
		return "VACUUM"
	case *ast.Do:
		return "DO"
	case *ast.Reindex:
		return "REINDEX"
	case *ast.Cluster:
		return "CLUSTER"
	case *ast.Unsupported:
		return x.Kind
	case *ast.Explain:
		return "EXPLAIN"
	case *ast.ShowObjects:
		return "SHOW " + x.Kind
	case *ast.Describe:
		return strings.TrimSpace("DESCRIBE " + x.Kind)
	}
	return "this statement"
}

// optionOn reads a boolean option: no value means on.
func optionOn(o *ast.Option) bool {
	if o.Value == nil {
		return true
	}
	b, ok := parseBool(optionText(o))
	return ok && b
}

// optionBool is the value of an option that is on or off, on when it has none. As in
// PostgreSQL words are not abbreviated, and of numbers only 0 and 1 will do.
func optionBool(o *ast.Option) (bool, error) {
	if o.Value == nil {
		return true, nil
	}
	switch strings.ToLower(optionText(o)) {
	case "true", "on", "1":
		return true, nil
	case "false", "off", "0":
		return false, nil
	}
	return false, pgerr.New(pgerr.SyntaxError, "%s requires a Boolean value", o.Name)
}

// optionText is the value of an option as text.
func optionText(o *ast.Option) string {
	switch v := o.Value.(type) {
	case *ast.String:
		return v.Value
	case *ast.Number:
		return v.Text
	case *ast.Bool:
		return strconv.FormatBool(v.Value)
	case *ast.OptionWord:
		return v.Text
	}
	return ""
}
