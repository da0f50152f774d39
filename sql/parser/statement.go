package parser

import "github.com/paimon-sql/paimon-sql/sql/ast"

// statement parses one statement.
func (p *parser) statement() ast.Stmt {
	if !p.enter() {
		return nil
	}
	defer p.leave()
	t := p.tok()
	if p.is('(') {
		return queryStmt(p.selectStmt())
	}
	if t.kind == tIdent && !t.quoted {
		return p.lakeStatement()
	}
	if t.kind != tKeyword {
		p.syntaxError()
		return nil
	}
	switch t.text {
	case "select", "values", "table", "with", "insert", "update", "delete", "merge":
		return p.preparable()
	case "create":
		return p.create()
	case "alter":
		return p.alter()
	case "drop":
		return p.drop()
	case "set":
		return p.set()
	case "show":
		return p.show()
	case "reset":
		return p.reset()
	case "begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release":
		return p.transaction()
	case "prepare":
		return p.prepare()
	case "execute":
		return p.execute()
	case "deallocate":
		return p.deallocate()
	case "declare":
		return p.declareCursor()
	case "fetch", "move":
		return p.fetch()
	case "close":
		return p.closeCursor()
	case "desc":
		return p.describe()
	}
	return p.utility(t.text)
}

// utility parses the statements that neither read nor define tables.
func (p *parser) utility(word string) ast.Stmt {
	switch word {
	case "explain":
		return p.explain()
	case "copy":
		return p.copyStmt()
	case "truncate":
		return p.truncate()
	case "grant", "revoke":
		return p.grant()
	case "comment":
		return p.comment()
	case "call":
		return p.call()
	case "vacuum", "analyze", "analyse":
		return p.vacuum()
	case "lock":
		return p.lock()
	case "discard":
		return p.discard()
	case "listen", "unlisten", "notify":
		return p.listen()
	case "do":
		return p.do()
	case "checkpoint":
		p.next()
		return &ast.Checkpoint{}
	case "reindex":
		return p.reindex()
	case "cluster":
		return p.cluster()
	case "refresh":
		if p.kwAt(1, "table") {
			return p.unsupported()
		}
		return p.refresh()
	case "reassign":
		return p.reassignOwned()
	case "security", "import", "load":
		return p.unsupported()
	}
	p.syntaxError()
	return nil
}

// lakeStatement parses the statements whose first word is no keyword.
func (p *parser) lakeStatement() ast.Stmt {
	switch {
	case p.atUpsert():
		return p.preparable()
	case p.word("describe"):
		return p.describe()
	case p.word("use"):
		return p.use()
	case p.word("msck"):
		return p.unsupported()
	}
	p.syntaxError()
	return nil
}

// queryStmt keeps a nil query from becoming a statement that is not nil.
func queryStmt(q *ast.Query) ast.Stmt {
	if q == nil {
		return nil
	}
	return q
}
