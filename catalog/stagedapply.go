package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// step is one edit to perform on the base.
type step struct {
	op *stagedOp
	// A table that the transaction made is published once, whole, where it gets its
	// last name.
	schemas         []stagedSchema
	sqlSchema, name string
}

// steps returns what is to be done, without what cancels out: tables that were made
// and dropped again, and the former names and shapes of made ones.
func (s *Staged) steps() []step {
	last := map[*stagedID]int{} // position of the edit that names a made table last
	final := map[*stagedID]*stagedTable{}
	gone := map[*stagedID]bool{}
	for i := range s.log {
		op := &s.log[i]
		for _, id := range op.gone {
			gone[id] = true
		}
		if op.table == nil || !op.table.id.made {
			continue
		}
		final[op.table.id] = op.table
		if op.kind == opCreateTable || op.kind == opRenameTable {
			last[op.table.id] = i
		}
	}
	var out []step
	for i := range s.log {
		op := &s.log[i]
		if op.kind == opObjects {
			continue // published as one
		}
		if op.table == nil || !op.table.id.made {
			out = append(out, step{op: op})
			continue
		}
		id := op.table.id
		if gone[id] || last[id] != i {
			continue
		}
		st := step{op: op, schemas: final[id].schemas, sqlSchema: op.sqlSchema, name: op.name}
		if op.kind == opRenameTable {
			st.sqlSchema, st.name = op.newSchema, op.newName
		}
		out = append(out, st)
	}
	return out
}

func (st *step) String() string {
	if st.schemas != nil {
		return "CREATE TABLE " + st.sqlSchema + "." + st.name
	}
	return st.op.String()
}

// Check reports as ErrChanged when another session or process changed what the
// edits build on: a table that is altered has another schema now. Nothing is
// changed; Apply does the same first.
func (s *Staged) Check(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.check(ctx)
}

func (s *Staged) check(ctx context.Context) error {
	if err := s.checkObjects(ctx); err != nil {
		return err
	}
	for _, st := range s.steps() {
		if st.op.kind != opAlterTable {
			continue
		}
		x := st.op.table.schemas[len(st.op.table.schemas)-1]
		if x.base == nil {
			continue
		}
		now, err := s.base.store(st.op.table.id.dir).Schemas(x.branch).Latest(ctx)
		if errors.Is(err, schema.ErrNotFound) || err == nil && !sameSchema(now, x.base) {
			return fmt.Errorf("relation %q: %w", st.op.name, ErrChanged)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func sameSchema(a, b *schema.Table) bool {
	if a == b {
		return true
	}
	x, err := schema.Encode(a)
	if err != nil {
		return false
	}
	y, err := schema.Encode(b)
	return err == nil && bytes.Equal(x, y)
}

// Apply performs the edits on the base, in order. When one fails, those before it
// are undone as far as that is possible; done names what could not be undone, which
// is nothing as a rule, or, without an error, everything. Afterwards the Staged
// shows the base.
func (s *Staged) Apply(ctx context.Context) (done []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	a := applying{c: s.base}
	steps := s.steps()
	changes := s.objectChanges()
	first := adds(changes)
	if first {
		if err := s.base.publishObjects(ctx, changes); err != nil {
			return nil, err
		}
		a.done = append(a.done, "changes of views and sequences")
		a.undos = append(a.undos, func(ctx context.Context) error { return s.base.publishObjects(ctx, reversed(changes)) })
	}
	for i := range steps {
		undo, err := a.apply(ctx, &steps[i])
		if err != nil {
			left := a.undo(context.WithoutCancel(ctx))
			return left, fmt.Errorf("%s: %w", steps[i].String(), err)
		}
		a.done = append(a.done, steps[i].String())
		a.undos = append(a.undos, undo)
	}
	if len(changes) > 0 && !first {
		if err := s.base.publishObjects(ctx, changes); err != nil {
			left := a.undo(context.WithoutCancel(ctx))
			return left, err
		}
		a.done = append(a.done, "changes of views and sequences")
	}
	s.forgetCounters(context.WithoutCancel(ctx), changes, false)
	for k, t := range s.view.tables {
		if t != nil {
			s.final[t.id.dir] = k
		}
	}
	for _, dir := range a.trash {
		_ = s.base.destroy(ctx, dir) // garbage that Sweep finds again
	}
	_ = s.discard(ctx)
	s.view, s.log, s.edits = &stagedView{}, nil, 0
	return a.done, nil
}

// Final returns the store with which the rows written through st are committed
// after Apply: the table's place may be another by then.
func (s *Staged) Final(st *table.FileStore) *table.FileStore {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := st.Dir()
	if to, ok := s.final[dir]; ok {
		dir = to
	}
	return s.base.store(dir)
}

// Discard deletes what was written for tables that never came to be.
func (s *Staged) Discard(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetCounters(context.WithoutCancel(ctx), s.objectChanges(), true)
	return s.discard(ctx)
}

// discard deletes the private directories of made tables: after Apply those that
// were published are not there any more.
func (s *Staged) discard(ctx context.Context) error {
	var err error
	for _, id := range s.made {
		err = errors.Join(err, s.base.env.IO.DeleteDir(context.WithoutCancel(ctx), id.dir))
	}
	return err
}

// applying is the progress of an Apply.
type applying struct {
	c     *Filesystem
	done  []string
	undos []func(context.Context) error // nil: cannot be undone
	trash []string
}

// undo takes back the steps done, newest first, as far as it goes, and names the
// rest.
func (a *applying) undo(ctx context.Context) []string {
	for i, u := range slices.Backward(a.undos) {
		if u == nil || u(ctx) != nil {
			return a.done[:i+1]
		}
	}
	return nil
}

func (a *applying) apply(ctx context.Context, st *step) (undo func(context.Context) error, err error) {
	c, op := a.c, st.op
	if st.schemas != nil {
		return a.create(ctx, st)
	}
	switch op.kind {
	case opCreateSchema:
		if err := c.CreateSchema(ctx, op.name, op.props); err != nil {
			return nil, err
		}
		return func(ctx context.Context) error { return c.DropSchema(ctx, op.name, false) }, nil
	case opDropSchema:
		dir := DatabaseDir(DatabaseOf(op.name))
		trash, err := c.detachSchema(ctx, op.name, op.cascade)
		return a.dropped(trash, dir), err
	case opDropTable:
		dir := DatabaseDir(DatabaseOf(op.sqlSchema)) + "/" + op.name
		trash, err := c.detachTable(ctx, op.sqlSchema, op.name)
		return a.dropped(trash, dir), err
	case opRenameTable:
		if err := c.RenameTable(ctx, op.sqlSchema, op.name, op.newSchema, op.newName); err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			return c.RenameTable(ctx, op.newSchema, op.newName, op.sqlSchema, op.name)
		}, nil
	case opAlterTable:
		x := op.table.schemas[len(op.table.schemas)-1]
		store := c.store(DatabaseDir(DatabaseOf(op.sqlSchema)) + "/" + op.name)
		err := store.Schemas(x.branch).Commit(ctx, x.table)
		if errors.Is(err, fileio.ErrExist) {
			err = fmt.Errorf("relation %q: %w", op.name, ErrChanged)
		}
		c.version.Add(1)
		return nil, err
	}
	return nil, fmt.Errorf("edit %s cannot be applied", op)
}

// dropped remembers a detached directory and returns how it comes back.
func (a *applying) dropped(trash, dir string) func(context.Context) error {
	if trash == "" {
		return nil
	}
	a.trash = append(a.trash, trash)
	return func(ctx context.Context) error {
		a.c.ddl.Lock()
		defer a.c.ddl.Unlock()
		err := a.c.renameDir(ctx, trash, dir)
		a.c.forget(dir)
		return err
	}
}

func (a *applying) create(ctx context.Context, st *step) (undo func(context.Context) error, err error) {
	c := a.c
	schemas := make([]*schema.Table, len(st.schemas))
	for i, x := range st.schemas {
		schemas[i] = x.table
	}
	c.ddl.Lock()
	defer c.ddl.Unlock()
	if err := c.publish(ctx, st.sqlSchema, st.name, st.op.table.id.dir, schemas...); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return c.DropTable(ctx, st.sqlSchema, st.name) }, nil
}
