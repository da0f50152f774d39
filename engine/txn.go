package engine

import (
	"context"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// txStatus is where a session stands.
type txStatus uint8

// An implicit transaction is that of one statement, of one multi-statement
// query, or of a pipeline up to Sync. BEGIN turns it into a block.
const (
	txIdle txStatus = iota
	txImplicit
	txBlock
	txFailed // a block after an error: only its end is accepted
)

// transaction is the state between a begin and an end.
type transaction struct {
	status  txStatus
	started time.Time
	// implicitFailed: a message of a pipeline failed; Sync will roll back.
	implicitFailed bool
	// multi: the implicit transaction is that of several statements.
	multi bool
	// queried: a snapshot has been read, so the isolation level is fixed.
	queried bool
	// pins are the relations that REPEATABLE READ keeps, by what they were asked
	// for: see resolver.
	pins map[pinKey]catalog.Relation
	// unpinned are pins from before the transaction's last data definition: they say
	// which snapshot is read, and no longer by which schema. edits counts them.
	unpinned map[pinKey]catalog.Relation
	edits    uint64
	saves    []savepoint // oldest first
	// tables are those that the transaction has written or read for writing, in the
	// order of the first time.
	tables []*txTable
	owner  *lockOwner // nil: no lock was ever taken
	// writes counts data-changing statements of an implicit transaction. redo runs
	// the only one again; told is what its client has been told.
	writes int
	redo   func(ctx context.Context) (*outcome, error)
	told   *outcome
	// staged is the data definition of the transaction, nil = none.
	staged *catalog.Staged
	// temp is that of the session's temporary tables.
	temp *catalog.Staged
	// indexed are the tables whose existing files get indexes after the commit.
	indexed []indexedTable
	// waits are the commits whose compactions are waited for.
	waits []published
}

// savepoint is what ROLLBACK TO goes back to.
type savepoint struct {
	name   string
	tables []txTableState // of transaction.tables; later ones were untouched
	staged int            // see catalog.Staged.Mark
	temp   int            // the same of transaction.temp
	notes  noteMark
}

// enter begins an implicit transaction unless one is open.
func (s *Session) enter() {
	if s.tx.status != txIdle {
		return
	}
	s.tx = transaction{status: txImplicit, started: time.Now()}
	s.set.begin()
	s.mu.Lock()
	s.act.xactStart = s.tx.started
	s.mu.Unlock()
}

// failed notes an error: a block becomes failed, and its portals are freed.
func (s *Session) failed(err error) {
	switch s.tx.status {
	case txBlock:
		s.tx.status = txFailed
		s.set.failed()
		if s.tx.owner != nil && len(s.tx.saves) == 0 { // nothing of it can be committed any more
			s.eng.locks.release(s.tx.owner)
		}
		s.endAdvisory(len(s.tx.saves))
	case txImplicit:
		s.tx.implicitFailed = true
	}
	if s.tx.status != txIdle {
		for _, p := range s.portals {
			q := p.impl.(*portal)
			// What is older than the last savepoint can be fetched from after ROLLBACK TO.
			if !q.kept && (q.depth >= len(s.tx.saves) || s.tx.status == txImplicit) {
				q.abandon()
			}
		}
	}
}

// exits reports whether a statement may run in a failed block.
func exits(st ast.Stmt) bool {
	t, ok := st.(*ast.Transaction)
	return ok && (t.Op == ast.TxCommit || t.Op == ast.TxRollback || t.Op == ast.TxRollbackTo || t.Op == ast.TxPrepare)
}

// admit refuses statements that the transaction's state does not allow.
func (s *Session) admit(st ast.Stmt) error {
	if s.tx.status == txFailed && !exits(st) || s.tx.status == txImplicit && s.tx.implicitFailed {
		return pgerr.New(pgerr.InFailedSQLTransaction, "current transaction is aborted, commands ignored until end of transaction block")
	}
	if s.readOnly() && !changesData(st) { // those are looked at when they are planned: runModify
		if name, ok := writes(st); ok {
			return errReadOnly(name)
		}
	}
	return nil
}

// readOnly reports whether the transaction may not write.
func (s *Session) readOnly() bool {
	return s.tx.status != txIdle && s.set.modes().readOnly || s.tx.status == txIdle && s.defaultReadOnly()
}

func errReadOnly(command string) error {
	return pgerr.New(pgerr.ReadOnlySQLTransaction, "cannot execute %s in a read-only transaction", command)
}

func (s *Session) defaultReadOnly() bool {
	v, _ := s.set.get("default_transaction_read_only")
	return v == "on"
}

// commit publishes and ends the transaction.
func (s *Session) commit(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		s.endTx(false)
		return err
	}
	if err := s.keepCursors(ctx); err != nil {
		s.endTx(false)
		return err
	}
	if err := s.mayNotify(); err != nil {
		s.endTx(false)
		return err
	}
	if err := s.publish(ctx); err != nil {
		s.endTx(false)
		return err
	}
	waits := s.tx.waits
	s.endTx(true)
	for _, w := range waits { // without the locks
		s.awaitCompaction(ctx, w.t, w.id)
	}
	return nil
}

// endTx ends the transaction and frees its portals.
func (s *Session) endTx(commit bool) {
	for name, p := range s.portals {
		if q := p.impl.(*portal); !q.kept {
			if q.hold && commit && q.tape != nil { // see keepCursors
				q.kept, q.depth = true, 0
				continue
			}
			s.ClosePortal(name)
		}
	}
	s.set.end(commit)
	s.discard()
	if s.tx.owner != nil {
		s.eng.locks.release(s.tx.owner)
	}
	s.endAdvisory(0)
	s.endNotes(commit)
	s.tx = transaction{}
	outcome := "rollback"
	if commit {
		outcome = "commit"
	}
	s.eng.stats.transactions.With(outcome).Add(1)
	if commit {
		s.eng.counts.db.commits.Add(1)
	} else {
		s.eng.counts.db.rollbacks.Add(1)
	}
	s.mu.Lock()
	s.act.xactStart = time.Time{}
	s.mu.Unlock()
}

// inBlock refuses what only works in a transaction block.
func (s *Session) inBlock(what string) error {
	if s.tx.status == txBlock || s.tx.status == txFailed {
		return nil
	}
	return pgerr.New(pgerr.NoActiveSQLTransaction, "%s can only be used in transaction blocks", what)
}

// outsideBlock refuses what may not be in one.
func (s *Session) outsideBlock(what string) error {
	if s.tx.status == txBlock || s.tx.status == txFailed || s.tx.multi {
		return pgerr.New(pgerr.ActiveSQLTransaction, "%s cannot run inside a transaction block", what)
	}
	return nil
}

// transact runs a transaction command and returns its tag.
func (s *Session) transact(ctx context.Context, t *ast.Transaction, out ResultSink) (string, error) {
	switch t.Op {
	case ast.TxBegin:
		tag := "BEGIN"
		if t.Start {
			tag = "START TRANSACTION"
		}
		if s.tx.status == txBlock {
			s.warn(out, pgerr.ActiveSQLTransaction, "there is already a transaction in progress")
		} else {
			s.tx.status = txBlock
			s.tx.multi = false
		}
		return tag, s.setModes(t.Modes)
	case ast.TxCommit:
		switch s.tx.status {
		case txFailed:
			modes := s.set.modes()
			s.endTx(false)
			s.chain(t.Chain, modes)
			return "ROLLBACK", nil
		case txBlock:
			modes := s.set.modes()
			if err := s.commit(ctx); err != nil {
				return "", err
			}
			s.chain(t.Chain, modes)
			return "COMMIT", nil
		}
		if t.Chain {
			return "", s.inBlock("COMMIT AND CHAIN")
		}
		s.warn(out, pgerr.NoActiveSQLTransaction, "there is no transaction in progress")
		return "COMMIT", s.commit(ctx)
	case ast.TxRollback:
		block := s.tx.status == txBlock || s.tx.status == txFailed
		if !block {
			if t.Chain {
				return "", s.inBlock("ROLLBACK AND CHAIN")
			}
			s.warn(out, pgerr.NoActiveSQLTransaction, "there is no transaction in progress")
		}
		modes := s.set.modes()
		s.endTx(false)
		s.chain(t.Chain && block, modes)
		return "ROLLBACK", nil
	case ast.TxSavepoint:
		if err := s.inBlock("SAVEPOINT"); err != nil {
			return "", err
		}
		s.tx.saves = append(s.tx.saves, s.mark(t.Name.Name))
		s.set.savepoint()
		return "SAVEPOINT", nil
	case ast.TxRelease:
		if err := s.inBlock("RELEASE SAVEPOINT"); err != nil {
			return "", err
		}
		n, err := s.savepoint(t.Name.Name)
		if err != nil {
			return "", err
		}
		s.tx.saves = s.tx.saves[:n]
		s.set.release(n)
		s.keepAdvisory(n)
		for _, p := range s.portals {
			q := p.impl.(*portal)
			q.depth = min(q.depth, n)
		}
		return "RELEASE", nil
	case ast.TxRollbackTo:
		if err := s.inBlock("ROLLBACK TO SAVEPOINT"); err != nil {
			return "", err
		}
		n, err := s.savepoint(t.Name.Name)
		if err != nil {
			return "", err
		}
		for name, p := range s.portals {
			if q := p.impl.(*portal); q.depth > n && !q.kept {
				s.ClosePortal(name)
			}
		}
		s.back(s.tx.saves[n])
		s.endAdvisory(n + 1)
		s.tx.saves = s.tx.saves[:n+1]
		s.set.rollbackTo(n)
		s.tx.status = txBlock
		return "ROLLBACK", nil
	case ast.TxPrepare:
		if err := s.inBlock("PREPARE TRANSACTION"); err != nil {
			return "", err
		}
		return "", pgerr.New(pgerr.ObjectNotInPrerequisiteState, "prepared transactions are disabled").
			WithHint("Two-phase commit is not offered.")
	}
	what := "COMMIT PREPARED"
	if t.Op == ast.TxRollbackPrepared {
		what = "ROLLBACK PREPARED"
	}
	if err := s.outsideBlock(what); err != nil {
		return "", err
	}
	return "", pgerr.New(pgerr.UndefinedObject, "prepared transaction with identifier %q does not exist", t.GID)
}

// chain begins a block with the modes of the one before.
func (s *Session) chain(on bool, modes txModes) {
	if !on {
		return
	}
	s.enter()
	s.tx.status = txBlock
	s.set.mu.Lock()
	s.set.tx = modes
	s.set.mu.Unlock()
}

func (s *Session) savepoint(name string) (int, error) {
	for i := len(s.tx.saves) - 1; i >= 0; i-- {
		if s.tx.saves[i].name == name {
			return i, nil
		}
	}
	return 0, pgerr.New(pgerr.InvalidSavepointSpecification, "savepoint %q does not exist", name)
}

// setModes applies the modes of BEGIN and SET TRANSACTION.
func (s *Session) setModes(modes []*ast.TxMode) error {
	for _, m := range modes {
		name, value := modeSetting(m.Text)
		if err := s.setTxMode(name, value); err != nil {
			return err
		}
	}
	return nil
}

// setTxMode changes a mode of the running transaction.
func (s *Session) setTxMode(name, value string) error {
	cur := s.set.modes()
	switch name {
	case "transaction_isolation":
		if s.tx.queried && cur.isolation != value {
			return pgerr.New(pgerr.ActiveSQLTransaction, "SET TRANSACTION ISOLATION LEVEL must be called before any query")
		}
	case "transaction_read_only":
		if on, _ := parseBool(value); s.tx.queried && cur.readOnly && !on {
			return pgerr.New(pgerr.ActiveSQLTransaction, "transaction read-write mode must be set before any query")
		}
	case "transaction_deferrable":
		if on, _ := parseBool(value); s.tx.queried && cur.deferrable != on {
			return pgerr.New(pgerr.ActiveSQLTransaction, "SET TRANSACTION [NOT] DEFERRABLE must be called before any query")
		}
	}
	return s.set.set(name, value, true)
}

// modeSetting returns the setting that a transaction mode stands for.
func modeSetting(text string) (name, value string) {
	switch {
	case text == "read only":
		return "transaction_read_only", "on"
	case text == "read write":
		return "transaction_read_only", "off"
	case text == "deferrable":
		return "transaction_deferrable", "on"
	case text == "not deferrable":
		return "transaction_deferrable", "off"
	}
	return "transaction_isolation", strings.TrimPrefix(text, "isolation level ")
}

// pinned reports whether the transaction keeps the snapshots that it reads.
func (s *Session) pinned() bool {
	m := s.set.modes()
	return m.active && (m.isolation == "repeatable read" || m.isolation == "serializable")
}
