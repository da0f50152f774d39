package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/planner"
)

// utility runs every statement that is neither a query nor a transaction
// command. What is not there yet answers 0A000 with the statement's name.
func (s *Session) utility(ctx, life context.Context, p *prepared, args []types.Datum, out ResultSink) (*running, error) {
	done := func(tag string) (*running, error) { return &running{tag: fixedTag(tag)}, nil }
	switch st := p.stmt.(type) {
	case *ast.Set:
		if err := s.runSet(st, out); err != nil {
			return nil, err
		}
		return done("SET")
	case *ast.Reset:
		if st.All {
			s.set.resetAll()
			return done("RESET")
		}
		if err := s.resetSetting(st.Name, false); err != nil {
			return nil, err
		}
		return done("RESET")
	case *ast.SetTransaction:
		if err := s.runSetTransaction(st, out); err != nil {
			return nil, err
		}
		return done("SET")
	case *ast.SetConstraints:
		return done("SET CONSTRAINTS")
	case *ast.Show:
		return s.runShow(st)
	case *ast.ShowObjects:
		return s.runShowObjects(ctx, st)
	case *ast.Describe:
		return s.runDescribe(ctx, st)
	case *ast.Explain:
		return s.runExplain(ctx, life, p, st, args)
	case *ast.Prepare:
		if err := s.runPrepare(ctx, p, st); err != nil {
			return nil, err
		}
		return done("PREPARE")
	case *ast.Execute:
		return s.runExecute(ctx, life, p, st, out)
	case *ast.Deallocate:
		if st.Name.Empty() {
			clear(s.stmts)
			return done("DEALLOCATE ALL")
		}
		if _, err := s.Statement(st.Name.Name); err != nil {
			return nil, err
		}
		s.CloseStatement(st.Name.Name)
		return done("DEALLOCATE")
	case *ast.DeclareCursor:
		if err := s.runDeclare(ctx, p, st, args, out); err != nil {
			return nil, err
		}
		return done("DECLARE CURSOR")
	case *ast.Fetch:
		return s.runFetch(ctx, st)
	case *ast.CloseCursor:
		if st.Name.Empty() {
			for name, c := range s.portals {
				if c != s.executing {
					s.ClosePortal(name)
				}
			}
			return done("CLOSE CURSOR ALL")
		}
		if _, err := s.cursor(st.Name.Name); err != nil {
			return nil, err
		}
		s.ClosePortal(st.Name.Name)
		return done("CLOSE CURSOR")
	case *ast.Discard:
		return s.runDiscard(ctx, st)
	case *ast.Listen:
		s.listen(st.Channel.Name, true)
		return done("LISTEN")
	case *ast.Unlisten:
		s.listen(st.Channel.Name, false)
		return done("UNLISTEN")
	case *ast.Notify:
		if err := s.notify(st.Channel.Name, st.Payload); err != nil {
			return nil, err
		}
		return done("NOTIFY")
	case *ast.Checkpoint:
		return done("CHECKPOINT")
	case *ast.Call:
		return s.runCall(ctx, p, st, args)
	case *ast.Copy:
		return s.runCopy(ctx, life, p, st, out)
	case *ast.LockTable:
		return s.runLock(ctx, st)
	case *ast.Truncate:
		return s.runTruncate(ctx, st)
	case *ast.Vacuum:
		if st.AnalyzeOnly {
			return s.runAnalyze(ctx, st, out)
		}
		return s.runVacuum(ctx, st, out)
	case *ast.CreateRole:
		if err := s.runCreateRole(ctx, p.text, st, out); err != nil {
			return nil, err
		}
		return done("CREATE ROLE")
	case *ast.AlterRole:
		if err := s.runAlterRole(ctx, p.text, st, out); err != nil {
			return nil, err
		}
		return done("ALTER ROLE")
	case *ast.AlterSettings:
		if err := s.runAlterSettings(ctx, st); err != nil {
			return nil, err
		}
		return done(commandName(st))
	case *ast.AlterDefaultPrivileges:
		if err := s.runAlterDefaultPrivileges(ctx, st, out); err != nil {
			return nil, err
		}
		return done(commandName(st))
	case *ast.ReassignOwned:
		if err := s.runReassignOwned(ctx, st); err != nil {
			return nil, err
		}
		return done(commandName(st))
	case *ast.DropOwned:
		if err := s.runDropOwned(ctx, p.text, st, out); err != nil {
			return nil, err
		}
		return done(commandName(st))
	case *ast.Grant:
		if err := s.runGrant(ctx, p.text, st, out); err != nil {
			return nil, err
		}
		return done(commandName(st))
	case *ast.Use:
		return s.runUse(ctx, st)
	case *ast.Reindex:
		return s.runReindex(ctx, st)
	}
	if isDefinition(p.stmt) {
		tag, err := s.runDefinition(ctx, p, out)
		if err != nil {
			return nil, err
		}
		return done(tag)
	}
	return nil, unsupported(p.stmt)
}

// settingName spells the settings that SET and SHOW know under other names.
func settingName(name string) string {
	switch strings.ToLower(name) {
	case "time zone":
		return "timezone"
	case "names":
		return "client_encoding"
	case "schema":
		return "search_path"
	case "session authorization":
		return "session_authorization"
	case "transaction isolation level":
		return "transaction_isolation"
	}
	return name
}

// runSet is SET.
func (s *Session) runSet(st *ast.Set, out ResultSink) error {
	name := settingName(st.Name)
	if st.FromCurrent {
		return nil
	}
	if st.Local && s.tx.status != txBlock {
		s.warn(out, pgerr.NoActiveSQLTransaction, "SET LOCAL can only be used in transaction blocks")
	}
	if st.Default {
		return s.resetSetting(name, st.Local)
	}
	value, err := s.setValue(name, st)
	if err != nil {
		return err
	}
	return s.setSetting(name, value, st.Local)
}

// setValue is the text of the values of SET.
func (s *Session) setValue(name string, st *ast.Set) (string, error) {
	values := make([]string, len(st.Values))
	for i, e := range st.Values {
		v, err := settingValue(e)
		if err != nil {
			return "", err
		}
		values[i] = v
	}
	d := s.set.reg.find(name)
	if len(values) != 1 && (d == nil || !d.list) {
		if d == nil {
			if err := customName(name); err != nil {
				return "", err
			}
			return "", pgerr.New(pgerr.InvalidParameterValue, "SET %s takes only one argument", name)
		}
		return "", pgerr.New(pgerr.InvalidParameterValue, "SET %s takes only one argument", d.Name)
	}
	if strings.EqualFold(name, "search_path") && len(values) == 1 && values[0] == "" {
		return `""`, nil
	}
	if d != nil && d.list {
		return d.joinList(values), nil
	}
	return strings.Join(values, ", "), nil
}

// setSetting changes a setting for SET and set_config.
func (s *Session) setSetting(name, value string, local bool) error {
	switch key := strings.ToLower(name); key {
	case "transaction_isolation", "transaction_read_only", "transaction_deferrable":
		if d := s.set.reg.find(key); d != nil {
			v, err := d.normalise(value)
			if err != nil {
				return err
			}
			value = v
		}
		return s.setTxMode(key, value)
	case "role":
		if err := s.mayBecome(key, value); err != nil {
			return err
		}
	case "session_authorization":
		if err := s.mayBecome(key, value); err != nil {
			return err
		}
		if err := s.set.set("role", "none", local); err != nil {
			return err
		}
	}
	return s.set.set(name, value, local)
}

func (s *Session) resetSetting(name string, local bool) error {
	switch strings.ToLower(name) {
	case "transaction_isolation", "transaction_read_only", "transaction_deferrable":
		if s.tx.queried {
			return pgerr.New(pgerr.ActiveSQLTransaction, "parameter %q cannot be reset", name)
		}
	case "session_authorization":
		if err := s.set.reset("role", local); err != nil {
			return err
		}
	}
	return s.set.reset(name, local)
}

// settingValue is the text of a value of SET.
func settingValue(e ast.Expr) (string, error) {
	switch v := e.(type) {
	case *ast.String:
		return v.Value, nil
	case *ast.Number:
		return v.Text, nil
	case *ast.Bool:
		return strconv.FormatBool(v.Value), nil
	case *ast.Unary:
		if n, ok := v.Expr.(*ast.Number); ok {
			if v.Op.Name == "-" {
				return "-" + n.Text, nil
			}
			return n.Text, nil
		}
	case *ast.TypedLiteral:
		// SET TIME ZONE INTERVAL '+02:00' HOUR TO MINUTE
		if v.Type.Name.Last() == "interval" {
			return intervalHours(v.Value)
		}
		return v.Value, nil
	case *ast.Default:
		return "", pgerr.New(pgerr.SyntaxError, "DEFAULT is not allowed in this context")
	}
	return "", pgerr.New(pgerr.SyntaxError, "a setting takes a literal value")
}

// intervalHours reads the HH:MM of SET TIME ZONE INTERVAL.
func intervalHours(v string) (string, error) {
	t := strings.TrimSpace(v)
	sign := 1.0
	if strings.HasPrefix(t, "-") {
		sign = -1
	}
	t = strings.TrimLeft(t, "+-")
	h, m, _ := strings.Cut(t, ":")
	hours, err := strconv.ParseFloat(h, 64)
	if err != nil {
		return "", invalidSetting("TimeZone", v)
	}
	if m != "" {
		minutes, err := strconv.ParseFloat(m, 64)
		if err != nil || minutes >= 60 {
			return "", invalidSetting("TimeZone", v)
		}
		hours += minutes / 60
	}
	return strconv.FormatFloat(sign*hours, 'f', -1, 64), nil
}

// runSetTransaction is SET TRANSACTION and SET SESSION CHARACTERISTICS.
func (s *Session) runSetTransaction(st *ast.SetTransaction, out ResultSink) error {
	if st.Snapshot != "" {
		return pgerr.New(pgerr.FeatureNotSupported, "SET TRANSACTION SNAPSHOT is not supported yet")
	}
	if st.Session {
		for _, m := range st.Modes {
			name, value := modeSetting(m.Text)
			if err := s.set.set("default_"+name, value, false); err != nil {
				return err
			}
		}
		return nil
	}
	if s.tx.status != txBlock {
		s.warn(out, pgerr.NoActiveSQLTransaction, "SET TRANSACTION can only be used in transaction blocks")
	}
	return s.setModes(st.Modes)
}

// showName is the column that SHOW returns a setting in.
func (s *Session) showName(name string) (string, error) {
	name = settingName(name)
	if d := s.set.reg.find(name); d != nil {
		return d.Name, nil
	}
	if _, ok := s.set.get(name); ok {
		s.set.mu.RLock()
		defer s.set.mu.RUnlock()
		if n, ok := s.set.known[strings.ToLower(name)]; ok {
			return n, nil
		}
		return name, nil
	}
	return "", unknownSetting(name)
}

// runShow is SHOW.
func (s *Session) runShow(st *ast.Show) (*running, error) {
	if st.All {
		var rows [][]types.Datum
		for i := range s.set.reg.list {
			d := &s.set.reg.list[i]
			if d.Unlisted {
				continue
			}
			v, _ := s.set.get(d.Name)
			rows = append(rows, []types.Datum{d.Name, v, d.Doc})
		}
		return rowsOf(textCols("name", "setting", "description"), fixedTag("SHOW"), rows), nil
	}
	name, err := s.showName(st.Name)
	if err != nil {
		return nil, err
	}
	v, _ := s.set.get(name)
	return rowsOf(textCols(name), fixedTag("SHOW"), [][]types.Datum{{v}}), nil
}

// runPrepare is PREPARE.
func (s *Session) runPrepare(ctx context.Context, p *prepared, st *ast.Prepare) error {
	if s.stmts[st.Name.Name] != nil {
		return pgerr.New(pgerr.DuplicatePreparedStatement, "prepared statement %q already exists", st.Name.Name)
	}
	impl := &prepared{stmt: st.Stmt, text: p.text, fromSQL: true, at: time.Now()}
	for _, tn := range st.Types {
		t, err := planner.ResolveType(tn, p.text)
		if err != nil {
			return err
		}
		impl.declared = append(impl.declared, t.SQL())
	}
	_, err := s.define(ctx, st.Name.Name, impl)
	return err
}

// runExecute is EXECUTE: the tag and rows are those of the statement.
func (s *Session) runExecute(ctx, life context.Context, p *prepared, st *ast.Execute, out ResultSink) (*running, error) {
	impl, args, ps, err := s.executed(ctx, p, st)
	if err != nil {
		return nil, err
	}
	if impl.stmt != nil {
		if err := s.admit(impl.stmt); err != nil {
			return nil, err
		}
	}
	fresh, err := s.refresh(ctx, impl, ps)
	if err != nil {
		return nil, err
	}
	return s.start(ctx, life, fresh, args, out)
}

// executed returns the statement that EXECUTE names, with the values of its parameters.
func (s *Session) executed(ctx context.Context, p *prepared, st *ast.Execute) (*prepared, []types.Datum, *Prepared, error) {
	ps, err := s.Statement(st.Name.Name)
	if err != nil {
		return nil, nil, nil, err
	}
	if len(st.Args) != len(ps.Params) {
		return nil, nil, nil, pgerr.New(pgerr.SyntaxError, "wrong number of parameters for prepared statement %q", ps.Name).
			WithDetail("Expected %d parameters but got %d.", len(ps.Params), len(st.Args))
	}
	args, err := s.evaluate(ctx, st.Args, ps.Params, p.text)
	if err != nil {
		return nil, nil, nil, err
	}
	return ps.impl.(*prepared), args, ps, nil
}

// evaluate computes expressions without columns, assigned to types.
func (s *Session) evaluate(ctx context.Context, exprs []ast.Expr, ts []types.Type, text string) ([]types.Datum, error) {
	if len(exprs) == 0 {
		return nil, nil
	}
	q := &ast.Query{Body: &ast.Values{Rows: [][]ast.Expr{exprs}}}
	targets := make([]planner.Target, len(ts))
	for i, t := range ts {
		targets[i] = planner.Target{Name: fmt.Sprintf("$%d", i+1), Type: t}
	}
	return s.oneRow(ctx, q, text, targets)
}

// runDiscard is DISCARD.
func (s *Session) runDiscard(ctx context.Context, st *ast.Discard) (*running, error) {
	if st.What == "ALL" {
		if err := s.outsideBlock("DISCARD ALL"); err != nil {
			return nil, err
		}
		for name, c := range s.portals {
			if c != s.executing {
				s.ClosePortal(name)
			}
		}
		clear(s.stmts)
		s.unlistenAll()
		s.unlockAll()
		_ = s.set.reset("session_authorization", false)
		_ = s.set.reset("role", false)
		s.set.resetAll()
	}
	if st.What == "ALL" || st.What == "SEQUENCES" {
		s.sequences.forget()
	}
	if st.What == "ALL" || st.What == "TEMP" {
		if err := s.dropTemp(ctx); err != nil {
			return nil, err
		}
	}
	return &running{tag: fixedTag("DISCARD " + st.What)}, nil
}

// runUse is USE of the lake engines: the schema goes first in the search path.
func (s *Session) runUse(ctx context.Context, st *ast.Use) (*running, error) {
	if !st.Catalog {
		name := st.Name.Last()
		if name == "default" {
			name = "public"
		}
		if _, ok := s.schemaExists(ctx, name); !ok {
			return nil, pgerr.New(pgerr.InvalidSchemaName, "schema %q does not exist", name)
		}
		if err := s.set.set("search_path", ast.QuoteIdent(name), false); err != nil {
			return nil, err
		}
	}
	return &running{tag: fixedTag("USE")}, nil
}
