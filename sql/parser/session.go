package parser

import (
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

func itoa(n int) string { return strconv.Itoa(n) }

// transaction parses BEGIN, START TRANSACTION, COMMIT, END, ROLLBACK, ABORT,
// SAVEPOINT and RELEASE.
func (p *parser) transaction() ast.Stmt {
	t := &ast.Transaction{}
	word := p.tok().text
	p.next()
	optTransaction := func() {
		if !p.acceptKw("work") {
			p.acceptKw("transaction")
		}
	}
	switch word {
	case "begin":
		optTransaction()
		t.Modes = p.optTxModes()
	case "start":
		p.expectKw("transaction")
		t.Start = true
		t.Modes = p.optTxModes()
	case "savepoint":
		t.Op, t.Name = ast.TxSavepoint, p.colID()
	case "release":
		t.Op = ast.TxRelease
		p.savepointName(t)
	case "commit", "end":
		t.Op = ast.TxCommit
		if word == "commit" && p.kw("prepared") {
			p.next()
			t.Op, t.GID = ast.TxCommitPrepared, p.stringConst()
			return t
		}
		optTransaction()
		t.Chain = p.chain()
	default:
		t.Op = ast.TxRollback
		if word == "rollback" && p.kw("prepared") {
			p.next()
			t.Op, t.GID = ast.TxRollbackPrepared, p.stringConst()
			return t
		}
		optTransaction()
		if word == "rollback" && p.acceptKw("to") {
			t.Op = ast.TxRollbackTo
			p.savepointName(t)
			return t
		}
		t.Chain = p.chain()
	}
	return t
}

// savepointName parses [SAVEPOINT] name; SAVEPOINT alone is the name.
func (p *parser) savepointName(t *ast.Transaction) {
	if p.kw("savepoint") && p.peek(1).isColID() {
		p.next()
	}
	t.Name = p.colID()
}

func (p *parser) chain() bool {
	if !p.acceptKw("and") {
		return false
	}
	no := p.acceptKw("no")
	p.expectKw("chain")
	return !no
}

func (p *parser) atTxMode() bool {
	return p.kw("isolation") || p.kw("read") || p.kw("deferrable") || p.kw("not")
}

func (p *parser) optTxModes() []*ast.TxMode {
	if !p.atTxMode() {
		return nil
	}
	return p.txModes()
}

// txModes parses transaction modes; commas between them are optional.
func (p *parser) txModes() []*ast.TxMode {
	var out []*ast.TxMode
	for {
		m := &ast.TxMode{Loc: p.loc()}
		switch {
		case p.acceptKw("isolation"):
			p.expectKw("level")
			m.Text = "isolation level " + p.isolation()
		case p.acceptKw("read"):
			if p.acceptKw("only") {
				m.Text = "read only"
			} else {
				p.expectKw("write")
				m.Text = "read write"
			}
		case p.acceptKw("deferrable"):
			m.Text = "deferrable"
		default:
			p.expectKw("not")
			p.expectKw("deferrable")
			m.Text = "not deferrable"
		}
		out = append(out, m)
		if p.err != nil || !p.accept(',') && !p.atTxMode() {
			return out
		}
	}
}

func (p *parser) isolation() string {
	switch {
	case p.acceptKw("serializable"):
		return "serializable"
	case p.acceptKw("repeatable"):
		p.expectKw("read")
		return "repeatable read"
	}
	p.expectKw("read")
	if p.acceptKw("uncommitted") {
		return "read uncommitted"
	}
	p.expectKw("committed")
	return "read committed"
}

// set parses SET.
func (p *parser) set() ast.Stmt {
	p.next()
	if p.kw("constraints") && !p.atAssign(1) {
		return p.setConstraints()
	}
	s := &ast.Set{}
	switch {
	case p.kw("local") && !p.atAssign(1):
		p.next()
		s.Local = true
	case p.kw("session") && !p.atAssign(1) && !p.kwAt(1, "characteristics") && !p.kwAt(1, "authorization"):
		p.next()
		s.Session = true
	}
	return p.setRest(s)
}

// atAssign reports whether the token n ahead goes on with a setting whose name
// the current keyword is.
func (p *parser) atAssign(n int) bool {
	t := p.peek(n)
	return t.kind == '=' || t.kind == '.' || t.isKw("to") || t.isKw("from")
}

// setRest parses what follows SET [LOCAL|SESSION].
func (p *parser) setRest(s *ast.Set) ast.Stmt {
	switch {
	case p.kw("transaction") && !p.atAssign(1) && !p.kwAt(1, "snapshot"):
		p.next()
		return &ast.SetTransaction{Local: s.Local, Modes: p.txModes()}
	case p.kw2("session", "characteristics"):
		p.next()
		p.next()
		p.expectKws("as transaction")
		return &ast.SetTransaction{Local: s.Local, Session: true, Modes: p.txModes()}
	}
	return p.setRestMore(s)
}

// setRestMore parses the settings proper (set_rest_more).
func (p *parser) setRestMore(s *ast.Set) ast.Stmt {
	str := func(loc ast.Loc, v string) { s.Values = []ast.Expr{&ast.String{Loc: loc, Value: v}} }
	switch {
	case p.is(tString) && p.peek(1).kind == '=':
		// Flink: SET 'key' = 'value'.
		s.Name = p.stringConst()
		p.next()
		s.Values = list(p, p.setValue)
		return s
	case p.atAssign(1):
	case p.kw("time"):
		p.next()
		p.expectKw("zone")
		s.Name = "timezone"
		p.zoneValue(s)
		return s
	case p.kw("catalog"):
		p.next()
		p.stringConst()
		if p.err == nil {
			p.failAt(p.toks[p.i-1].pos, pgerr.FeatureNotSupported, "current database cannot be changed")
		}
		return s
	case p.kw("schema"):
		p.next()
		s.Name = "search_path"
		loc := p.loc()
		str(loc, p.stringConst())
		return s
	case p.kw("names"):
		p.next()
		s.Name = "client_encoding"
		switch loc := p.loc(); {
		case p.is(tString):
			str(loc, p.stringConst())
		default:
			p.acceptKw("default")
			s.Default = true
		}
		return s
	case p.kw("role"):
		p.next()
		s.Name = "role"
		loc := p.loc()
		str(loc, p.wordOrString())
		return s
	case p.kw2("session", "authorization"):
		p.next()
		p.next()
		s.Name = "session_authorization"
		if p.acceptKw("default") {
			s.Default = true
			return s
		}
		loc := p.loc()
		str(loc, p.wordOrString())
		return s
	case p.kw("xml"):
		p.next()
		p.expectKw("option")
		s.Name = "xmloption"
		loc, word := p.loc(), p.tok().text
		if !p.acceptKw("document") {
			p.expectKw("content")
		}
		str(loc, word)
		return s
	case p.kw2("transaction", "snapshot"):
		p.next()
		p.next()
		return &ast.SetTransaction{Local: s.Local, Snapshot: p.stringConst()}
	}
	s.Name = p.varName()
	if p.acceptKw("from") {
		p.expectKw("current")
		s.FromCurrent = true
		return s
	}
	p.assignment(s)
	return s
}

// assignment parses TO|= DEFAULT or a list of values.
func (p *parser) assignment(s *ast.Set) {
	if !p.accept('=') {
		p.expectKw("to")
	}
	if p.acceptKw("default") {
		s.Default = true
		return
	}
	if v := p.looseValue(s.Name); v != nil {
		s.Values = []ast.Expr{v}
		return
	}
	s.Values = list(p, p.setValue)
}

// looseValue takes Hive's unquoted values (oss-cn.example.com) of settings
// with a dot in their name, which PostgreSQL would refuse at the dash.
func (p *parser) looseValue(name string) ast.Expr {
	n := p.peek(1).kind
	if !strings.Contains(name, ".") || p.tok().kind != tIdent && p.tok().kind != tKeyword || n != '-' && n != '.' && n != '/' {
		return nil
	}
	loc, start := p.loc(), p.pos()
	for p.err == nil && !p.is(';') && !p.is(tEOF) {
		if p.is(tError) || p.is(',') {
			p.syntaxError()
			return nil
		}
		p.next()
	}
	return &ast.String{Loc: loc, Value: p.src[start:p.toks[p.i-1].end]}
}

func (p *parser) varName() string {
	name := p.colID().Name
	dotted := false
	for p.err == nil {
		switch {
		case p.accept('.'):
			name += "." + p.colID().Name
			dotted = true
			continue
		case dotted && p.is('-') && p.peek(1).isLabel():
			// Keys of the lake engines have dashes.
			p.next()
			name += "-" + p.colLabel().Name
			continue
		}
		break
	}
	return name
}

func (p *parser) setValue() ast.Expr {
	if p.is(tInt) || p.is(tFloat) || p.is('-') || p.is('+') {
		return p.numericOnly()
	}
	return p.boolOrString()
}

// zoneValue parses the value of SET TIME ZONE.
func (p *parser) zoneValue(s *ast.Set) {
	loc, fields := p.loc(), p.peek(2).pos
	t := p.tok()
	switch {
	case p.acceptKw("default"), p.acceptKw("local"):
		s.Default = true
	case t.kind == tString || t.kind == tIdent:
		p.next()
		s.Values = []ast.Expr{&ast.String{Loc: loc, Value: t.text}}
	case p.kw("interval") && (p.peek(1).kind == tString || p.peek(1).kind == '('):
		lit, _ := p.typeConst().(*ast.TypedLiteral)
		if lit == nil || p.err != nil {
			return
		}
		if f := lit.Type.Interval; f != "" && f != "HOUR" && f != "HOUR TO MINUTE" && p.err == nil {
			p.failAt(fields, pgerr.SyntaxError, "time zone interval must be HOUR or HOUR TO MINUTE")
		}
		s.Values = []ast.Expr{lit}
	case p.kw("interval"):
		p.next()
		p.syntaxError()
	default:
		s.Values = []ast.Expr{p.numericOnly()}
	}
}

func (p *parser) setConstraints() ast.Stmt {
	s := &ast.SetConstraints{}
	p.next()
	if !p.acceptKw("all") {
		s.Names = list(p, p.qualifiedName)
	}
	if p.acceptKw("deferred") {
		s.Deferred = true
	} else {
		p.expectKw("immediate")
	}
	return s
}

// setReset parses SetResetClause: SET or RESET of ALTER ROLE and ALTER
// DATABASE.
func (p *parser) setReset() ast.Stmt {
	if p.kw("reset") {
		return p.reset()
	}
	p.expectKw("set")
	return p.setRest(&ast.Set{})
}

// systemSet parses SET name = value or RESET name of ALTER SYSTEM.
func (p *parser) systemSet() ast.Stmt {
	if p.acceptKw("reset") {
		if p.acceptKw("all") {
			return &ast.Reset{All: true}
		}
		return &ast.Reset{Name: p.varName()}
	}
	p.next()
	s := &ast.Set{}
	s.Name = p.varName()
	p.assignment(s)
	return s
}

func (p *parser) reset() ast.Stmt {
	p.next()
	if p.is(tString) {
		return &ast.Reset{Name: p.stringConst()} // Flink
	}
	if p.acceptKw("all") {
		return &ast.Reset{All: true}
	}
	return &ast.Reset{Name: p.settingName()}
}

// settingName parses the name of a setting in SHOW and RESET.
func (p *parser) settingName() string {
	switch {
	case p.kw2("time", "zone"):
		p.next()
		p.next()
		return "timezone"
	case p.kw2("transaction", "isolation"):
		p.next()
		p.next()
		p.expectKw("level")
		return "transaction_isolation"
	case p.kw2("session", "authorization"):
		p.next()
		p.next()
		return "session_authorization"
	}
	return p.varName()
}

// show parses SHOW of a setting, or of objects.
func (p *parser) show() ast.Stmt {
	p.next()
	if s := p.showObjects(); s != nil {
		return s
	}
	if p.acceptKw("all") {
		return &ast.Show{All: true}
	}
	return &ast.Show{Name: p.settingName()}
}

// showObjects parses SHOW TABLES and relatives, and returns nil when a setting
// is meant.
func (p *parser) showObjects() ast.Stmt {
	s := &ast.ShowObjects{}
	next := p.peek(1)
	switch {
	case p.kw("create"):
		p.next()
		if !p.kw("table") && !p.kw("view") && !p.kw("database") && !p.kw("schema") && !p.word("catalog") && !p.kw("function") {
			p.syntaxError()
			return s
		}
		s.Kind = "CREATE " + upper(p.tok().text)
		p.next()
		s.Name = p.qualifiedName()
		return s
	case p.kw("table") && next.isWord("extended"):
		s.Kind = "TABLE EXTENDED"
		p.next()
	case p.kw("current") && (next.isKw("catalog") || next.isKw("database") || next.isKw("schema")):
		p.next()
		s.Kind = "CURRENT " + upper(next.text)
		p.next()
		return s
	case p.kw("columns"), p.word("partitions"), p.word("tags"), p.word("branches"):
		s.Kind = upper(p.tok().text)
	case p.kw("tables"), p.kw("schemas"), p.kw("views"), p.kw("functions"), p.word("databases"),
		p.word("catalogs"), p.word("procedures"), p.kw("procedures"):
		s.Kind = upper(p.tok().text)
	default:
		return nil
	}
	if p.atAssign(1) && !next.isKw("from") {
		return nil
	}
	p.next()
	if p.acceptKw("from") || p.acceptKw("in") || (s.Kind == "PARTITIONS" || s.Kind == "TAGS" || s.Kind == "BRANCHES") && p.tok().isColID() {
		s.Name = p.qualifiedName()
	}
	s.NotLike = p.tok().la && p.kwAt(1, "like")
	if s.NotLike {
		p.next()
	}
	if p.acceptKw("like") || p.is(tString) {
		s.Like = p.stringConst()
	}
	if p.kw("partition") && p.peek(1).kind == '(' {
		p.next()
		s.Partition = parens(p, p.partitionValue)
	}
	return s
}

// describe parses DESCRIBE and DESC.
func (p *parser) describe() ast.Stmt {
	d := &ast.Describe{}
	p.next()
	switch {
	case p.acceptKw("table"):
	case (p.kw("database") || p.kw("schema") || p.kw("function") || p.word("catalog")) && p.peek(1).isColID():
		d.Kind = upper(p.tok().text)
		p.next()
	}
	if p.word("extended") && p.peek(1).isColID() {
		d.Extended = true
		p.next()
	}
	d.Name = p.qualifiedName()
	if p.tok().isColID() {
		d.Column = p.anyName()
	}
	return d
}

// use parses USE [CATALOG|DATABASE|SCHEMA] name.
func (p *parser) use() ast.Stmt {
	u := &ast.Use{}
	p.next()
	if p.peek(1).isColID() {
		u.Catalog = p.acceptKw("catalog")
		if !u.Catalog && !p.acceptKw("database") {
			p.acceptKw("schema")
		}
	}
	if p.kw("default") {
		u.Name = ast.Name{p.colLabel()}
		return u
	}
	u.Name = p.qualifiedName()
	return u
}

// prepare parses PREPARE name AS statement, and PREPARE TRANSACTION.
func (p *parser) prepare() ast.Stmt {
	p.next()
	if p.kw("transaction") && p.peek(1).kind == tString {
		p.next()
		return &ast.Transaction{Op: ast.TxPrepare, GID: p.stringConst()}
	}
	s := &ast.Prepare{Name: p.colID()}
	if p.is('(') {
		s.Types = parens(p, p.typeName)
	}
	p.expectKw("as")
	s.Stmt = p.preparable()
	return s
}

func (p *parser) execute() *ast.Execute {
	s := &ast.Execute{}
	s.Loc = p.loc()
	p.next()
	s.Name = p.colID()
	if p.is('(') {
		s.Args = parens(p, p.expr)
	}
	return s
}

func (p *parser) deallocate() ast.Stmt {
	s := &ast.Deallocate{}
	p.next()
	if p.kw("prepare") && (p.peek(1).isColID() || p.kwAt(1, "all")) {
		p.next()
	}
	if !p.acceptKw("all") {
		s.Name = p.colID()
	}
	return s
}

func (p *parser) declareCursor() ast.Stmt {
	s := &ast.DeclareCursor{}
	s.Loc = p.loc()
	p.next()
	s.Name = p.colID()
	for p.err == nil && !p.kw("cursor") {
		switch {
		case p.acceptKw("no"):
			p.expectKw("scroll")
			s.NoScroll = true
		case p.acceptKw("scroll"):
			s.Scroll = true
		case p.acceptKw("binary"):
			s.Binary = true
		case p.acceptKw("asensitive"):
			s.Asensitive = true
		case p.acceptKw("insensitive"):
			s.Insensitive = true
		default:
			p.syntaxError()
		}
	}
	p.expectKw("cursor")
	switch {
	case p.acceptKw("with"):
		p.expectKw("hold")
		s.Hold = true
	case p.acceptKw("without"):
		p.expectKw("hold")
	}
	p.expectKw("for")
	s.Query = p.selectStmt()
	return s
}

// fetch parses FETCH and MOVE. Its words are unreserved and may be a cursor's
// name: then nothing follows them.
func (p *parser) fetch() ast.Stmt {
	f := &ast.Fetch{Move: p.kw("move"), Count: 1}
	p.next()
	ends := func(t *token) bool { return t.kind == tEOF || t.kind == ';' || t.kind == ')' }
	word := ""
	if p.tok().kind == tKeyword && !ends(p.peek(1)) || p.kw("all") {
		word = p.tok().text
	}
	switch word {
	case "next":
		p.next()
	case "prior":
		p.next()
		f.Direction = ast.FetchBackward
	case "first":
		p.next()
		f.Direction = ast.FetchAbsolute
	case "last":
		p.next()
		f.Direction, f.Count = ast.FetchAbsolute, -1
	case "absolute", "relative":
		p.next()
		f.Direction = ast.FetchAbsolute
		if word == "relative" {
			f.Direction = ast.FetchRelative
		}
		f.Count = int64(p.signedInt())
	case "all":
		p.next()
		f.All = true
	case "forward", "backward":
		p.next()
		if word == "backward" {
			f.Direction = ast.FetchBackward
		}
		if p.acceptKw("all") {
			f.All = true
		} else if p.is(tInt) || p.is('-') || p.is('+') {
			f.Count = int64(p.signedInt())
		}
	default:
		if p.is(tInt) || p.is('-') || p.is('+') {
			f.Count = int64(p.signedInt())
		}
	}
	if !p.acceptKw("from") {
		p.acceptKw("in")
	}
	f.Cursor = p.colID()
	return f
}

func (p *parser) closeCursor() ast.Stmt {
	p.next()
	if p.acceptKw("all") {
		return &ast.CloseCursor{}
	}
	return &ast.CloseCursor{Name: p.colID()}
}
