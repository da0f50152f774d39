package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog/objects"
)

var _ ObjectEditor = (*Staged)(nil)

// State returns the stored objects as the transaction sees them.
func (s *Staged) State(ctx context.Context) (*objects.State, error) {
	st, err := s.base.objects.State(ctx, true)
	if err != nil {
		return nil, err
	}
	return st.With(s.now().objects), nil
}

// PutObject implements ObjectEditor.
func (s *Staged) PutObject(ctx context.Context, o objects.Object) (*objects.Object, error) {
	st, err := s.State(ctx)
	if err != nil {
		return nil, err
	}
	old := st.Get(o.Kind, o.Schema, o.Name)
	if o.OID == 0 {
		if o.OID = objects.NewOID(); old != nil {
			o.OID = old.OID
		}
	}
	s.change(objects.Change{Kind: o.Kind, Schema: o.Schema, Name: o.Name, Before: old, After: &o})
	return &o, nil
}

// DeleteObject implements ObjectEditor.
func (s *Staged) DeleteObject(ctx context.Context, kind objects.Kind, schema, name string) error {
	st, err := s.State(ctx)
	if err != nil {
		return err
	}
	var cs []objects.Change
	kinds := []objects.Kind{kind}
	if kind == objects.View || kind == objects.Sequence {
		kinds = append(kinds, objects.Grant)
	}
	for _, k := range kinds {
		if old := st.Get(k, schema, name); old != nil {
			cs = append(cs, objects.Change{Kind: k, Schema: schema, Name: name, Before: old})
		}
	}
	s.change(cs...)
	return nil
}

// change stages changes as one edit.
func (s *Staged) change(cs ...objects.Change) {
	if len(cs) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	after := s.view.clone()
	after.objects = append(slices.Clip(after.objects), cs...)
	s.push(stagedOp{kind: opObjects, objects: cs}, after)
}

// freeName checks that no view or sequence has a name.
func (s *Staged) freeName(ctx context.Context, sqlSchema, name string) error {
	st, err := s.State(ctx)
	if err != nil {
		return err
	}
	if findObject(st, sqlSchema, name) != nil {
		return fmt.Errorf("relation %q: %w", name, ErrRelationExists)
	}
	return nil
}

// follow stages what happens to the privileges on a table and to the sequences that
// its columns own: they are dropped with it, and keep to it when it is renamed.
// newName is "" for a drop.
func (s *Staged) follow(ctx context.Context, sqlSchema, name, newSchema, newName string) error {
	st, err := s.State(ctx)
	if err != nil {
		return err
	}
	var cs []objects.Change
	// move stages that what is stored under a name is under another.
	move := func(o *objects.Object, schema, name string) {
		cs = append(cs, objects.Change{Kind: o.Kind, Schema: o.Schema, Name: o.Name, Before: o})
		if newName != "" {
			to := *o
			to.Schema, to.Name = schema, name
			cs = append(cs, objects.Change{Kind: o.Kind, Schema: schema, Name: name, Before: st.Get(o.Kind, schema, name), After: &to})
		}
	}
	if o := st.Get(objects.Grant, sqlSchema, name); o != nil {
		move(o, newSchema, newName)
	}
	for _, o := range st.List(objects.Sequence) {
		var def objects.SequenceDef
		if o.Schema != sqlSchema || o.Decode(&def) != nil || def.Table != name {
			continue
		}
		c := objects.Change{Kind: o.Kind, Schema: o.Schema, Name: o.Name, Before: o}
		if g := st.Get(objects.Grant, o.Schema, o.Name); g != nil && (newName == "" || newSchema != sqlSchema) {
			move(g, newSchema, o.Name)
		}
		if newName == "" {
			cs = append(cs, c)
			continue
		}
		def.Table = newName
		moved, err := o.WithBody(def)
		if err != nil {
			return err
		}
		moved.Schema = newSchema
		if newSchema != sqlSchema {
			if findObject(st, newSchema, o.Name) != nil {
				return fmt.Errorf("relation %q: %w", o.Name, ErrRelationExists)
			}
			cs = append(cs, c)
			c = objects.Change{Kind: o.Kind, Schema: newSchema, Name: o.Name}
		}
		c.After = moved
		cs = append(cs, c)
	}
	s.change(cs...)
	return nil
}

// dropObjects stages the end of everything that is stored for a schema.
func (s *Staged) dropObjects(ctx context.Context, sqlSchema string) error {
	st, err := s.State(ctx)
	if err != nil {
		return err
	}
	var cs []objects.Change
	for _, kind := range []objects.Kind{objects.View, objects.Sequence, objects.Default, objects.Constraint, objects.Grant} {
		for _, o := range st.List(kind) {
			if o.Schema == sqlSchema {
				cs = append(cs, objects.Change{Kind: o.Kind, Schema: o.Schema, Name: o.Name, Before: o})
			}
		}
	}
	if o := st.Get(objects.SchemaGrant, "", sqlSchema); o != nil {
		cs = append(cs, objects.Change{Kind: o.Kind, Name: o.Name, Before: o})
	}
	for _, o := range st.List(objects.DefaultGrant) {
		if strings.HasSuffix(o.Name, "/"+sqlSchema) {
			cs = append(cs, objects.Change{Kind: o.Kind, Name: o.Name, Before: o})
		}
	}
	s.change(cs...)
	return nil
}

// objectChanges are all the changes of the log, in order.
func (s *Staged) objectChanges() []objects.Change {
	var out []objects.Change
	for i := range s.log {
		out = append(out, s.log[i].objects...)
	}
	return out
}

// checkObjects reports as ErrChanged what another session or process changed since.
func (s *Staged) checkObjects(ctx context.Context) error {
	cs := s.objectChanges()
	if len(cs) == 0 {
		return nil
	}
	st, err := s.base.objects.State(ctx, true)
	if err != nil {
		return err
	}
	return changed(st.Check(cs))
}

func changed(err error) error {
	if errors.Is(err, objects.ErrConflict) {
		return fmt.Errorf("%w: %w", err, ErrChanged)
	}
	return err
}

// publishObjects makes changes in the store, as one.
func (c *Filesystem) publishObjects(ctx context.Context, cs []objects.Change) error {
	return changed(c.objects.Update(ctx, func(e *objects.Edit) error { return e.Apply(cs) }))
}

// reversed takes changes back.
func reversed(cs []objects.Change) []objects.Change {
	var out []objects.Change
	for _, c := range slices.Backward(cs) {
		out = append(out, objects.Change{Kind: c.Kind, Schema: c.Schema, Name: c.Name, Before: c.After, After: c.Before})
	}
	return out
}

// adds reports whether changes bring something: such are published before tables,
// so that no table is without its sequence, and others after, so that no sequence is
// missing while its table is there.
func adds(cs []objects.Change) bool {
	return slices.ContainsFunc(cs, func(c objects.Change) bool { return c.After != nil })
}

// forgetCounters removes the positions of sequences that are gone: those dropped,
// or with made those that never came to be.
func (s *Staged) forgetCounters(ctx context.Context, cs []objects.Change, made bool) {
	last := map[uint32]bool{} // whether the sequence is there
	for _, c := range cs {
		if c.Kind != objects.Sequence {
			continue
		}
		if c.Before != nil {
			if _, ok := last[c.Before.OID]; !ok && made {
				last[c.Before.OID] = true // it was there before
				continue
			}
			if !made {
				last[c.Before.OID] = false
			}
		}
		if c.After != nil {
			if _, ok := last[c.After.OID]; !ok || !made {
				last[c.After.OID] = !made
			}
		}
	}
	for oid, there := range last {
		if !there {
			_ = s.base.objects.DropCounter(ctx, oid)
		}
	}
}
