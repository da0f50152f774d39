package engine

import (
	"context"
	"errors"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// publish makes the transaction's changes durable: its data definition first, then
// each table that it wrote, in the order of the first write. What can fail because
// of others is looked at before the first is published.
func (s *Session) publish(ctx context.Context) error {
	if err := s.endTemp(ctx); err != nil {
		return err
	}
	var written []*txTable
	for _, t := range s.tx.tables {
		if t.writes() {
			written = append(written, t)
		}
	}
	var staged []*catalog.Staged
	for _, st := range []*catalog.Staged{s.tx.staged, s.tx.temp} {
		if st != nil && st.HasChanges() {
			staged = append(staged, st)
		}
	}
	ddl := len(staged) > 0
	if len(written) == 0 && !ddl {
		return nil
	}
	if len(written) > 1 && s.set.use().oneTableCommit {
		return pgerr.New(pgerr.FeatureNotSupported, "a transaction that writes several tables is refused").
			WithDetail("A crash between the commits of %s would leave the first.", tableNames(written)).
			WithHint("SET paimon.multi_table_commit = 'allow'.")
	}
	if len(written) > 1 || ddl {
		for _, t := range s.tx.tables {
			if t.reads == nil {
				continue
			}
			if _, err := t.store.CheckReads(ctx, t.key.branch, snapshotID(t.base), t.reads); err != nil {
				return err
			}
		}
	}
	var done []string
	for _, t := range written {
		if ddl { // under the names that things have now, and so that a refusal comes first
			if err := s.flush(ctx, t); err != nil {
				return err
			}
		}
	}
	for _, sc := range staged {
		applied, err := sc.Apply(ctx)
		done = append(done, applied...)
		if err != nil {
			return partly(err, done)
		}
		for _, t := range s.tx.tables {
			if (t.schema == s.tempSchema()) != (sc == s.tx.temp) {
				continue // in the other catalog, which has a storage of its own
			}
			if st, ok := t.store.(*table.FileStore); ok {
				final := sc.Final(st)
				t.store, t.key.dir = final, final.Dir()
			}
		}
	}
	if len(written) > 1 {
		s.eng.log.Info("transaction commits several tables", "session", s.pid, "tables", tableNames(written))
	}
	for i, t := range written {
		tctx := ctx
		if i > 0 || len(done) > 0 { // begun, it is ended
			tctx = context.WithoutCancel(ctx)
		}
		id, err := s.publishTable(tctx, t)
		if err != nil {
			if len(done) > 0 {
				s.eng.log.Error("transaction is partly applied", "session", s.pid, "applied", strings.Join(done, ", "), "err", err)
			}
			return partly(err, done)
		}
		s.tx.waits = append(s.tx.waits, published{t, id})
		done = append(done, t.schema+"."+t.name)
	}
	for _, x := range s.tx.indexed {
		if s.tx.staged != nil {
			x.store = s.tx.staged.Final(x.store)
			x.key.dir = x.store.Dir()
		}
		s.eng.maint.index(x.key, x.store)
	}
	return nil
}

// published is what a commit has made of a table.
type published struct {
	t  *txTable
	id int64 // the snapshot
}

// publishTable publishes what the transaction did to one table and returns the
// snapshot.
func (s *Session) publishTable(ctx context.Context, t *txTable) (int64, error) {
	m := &commitMember{store: t.store, schemaID: t.schemaID, pk: t.pk, base: snapshotID(t.base), reads: t.reads}
	if t.over.Empty() {
		m.parts, m.bytes = t.pending, t.size
	} else {
		if err := s.flush(ctx, t); err != nil {
			return 0, err
		}
		c := t.over
		m.changes = &c
	}
	id, err := s.eng.queue(t.key).publish(ctx, m)
	if err != nil {
		if unknown(err) {
			t.files = commit.Changes{} // they may be part of a snapshot
		}
		return 0, err
	}
	if m.changes != nil {
		t.files = added(t.files, *m.changes)
	}
	return id, nil
}

// partly says what was published before err; nothing: err stays what it is.
func partly(err error, done []string) error {
	if len(done) == 0 {
		return err
	}
	var pe *pgerr.Error
	cause := err.Error()
	if errors.As(err, &pe) {
		cause = pe.Message
	}
	return pgerr.Wrap(err, pgerr.StatementCompletionUnknown, "transaction is partly applied: %s", cause).
		WithDetail("Published: %s.", strings.Join(done, ", "))
}

func tableNames(ts []*txTable) string {
	names := make([]string, len(ts))
	for i, t := range ts {
		names[i] = t.schema + "." + t.name
	}
	return strings.Join(names, ", ")
}

// discard deletes the files that the transaction wrote and did not publish.
func (s *Session) discard() {
	ctx := context.WithoutCancel(s.ctx)
	for _, t := range s.tx.tables {
		if nothing(t.files) {
			continue
		}
		if err := t.store.Discard(ctx, t.files); err != nil {
			s.eng.log.Warn("files of a transaction that ended stay behind", "table", t.key.String(), "err", err)
		}
	}
	for _, st := range []*catalog.Staged{s.tx.staged, s.tx.temp} {
		if st == nil {
			continue
		}
		if err := st.Discard(ctx); err != nil {
			s.eng.log.Warn("files of tables that were not made stay behind", "err", err)
		}
	}
}

// mark makes a savepoint of the transaction as it is.
func (s *Session) mark(name string) savepoint {
	p := savepoint{name: name, notes: s.notes.mark()}
	for _, t := range s.tx.tables {
		p.tables = append(p.tables, t.txTableState)
	}
	if s.tx.staged != nil {
		p.staged = s.tx.staged.Mark()
	}
	if s.tx.temp != nil {
		p.temp = s.tx.temp.Mark()
	}
	return p
}

// back undoes what was done since a savepoint. Files written since go when the
// transaction ends. Locks stay, which is more than PostgreSQL keeps.
func (s *Session) back(p savepoint) {
	for i, t := range s.tx.tables {
		if i < len(p.tables) {
			t.txTableState = p.tables[i]
			t.pending = t.pending[:len(t.pending):len(t.pending)]
			continue
		}
		t.txTableState = txTableState{base: t.base, store: t.store, schemaID: t.schemaID}
	}
	s.notes.back(p.notes)
	s.told = nil
	if s.tx.staged != nil {
		s.tx.staged.RollbackTo(p.staged)
	}
	if s.tx.temp != nil {
		s.tx.temp.RollbackTo(p.temp)
	}
}

// commitRetrying commits the implicit transaction of one statement, running the
// statement again when others changed what it read. change is told what the new
// run did, and says whether it may stand.
func (s *Session) commitRetrying(ctx context.Context, change func(*outcome) error) error {
	for try := 0; ; try++ {
		redo, told := s.tx.redo, s.tx.told
		err := s.commit(ctx)
		if err == nil || !conflicted(err) || redo == nil || try >= maxReruns {
			return err
		}
		s.eng.stats.reruns.Add(1)
		s.enter()
		out, err := redo(ctx)
		if err == nil {
			err = change(out)
		}
		if err != nil {
			s.endTx(false)
			return err
		}
		s.tx.writes, s.tx.redo, s.tx.told = 1, redo, told
	}
}
