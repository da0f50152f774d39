// Package objects keeps what Paimon has no place for: views, sequences, roles,
// grants, unenforced constraints. It lives in the warehouse, in a folder that
// other engines take neither for a database nor for a table:
//
//	<warehouse>/.paimon-sql/objects/state-<n>     everything, as of version n
//	<warehouse>/.paimon-sql/sequences/<oid>/at-<n> where a sequence stands
//
// A change reads the newest state, makes another and publishes it under the next
// number with fileio's PutIfAbsent, on local disks and object stores alike: of two
// writers one is told that the number is taken, reads again and tries again. So a
// change is whole or not there, whenever a process is killed, and every server on
// the warehouse sees it. Bodies are JSON of the package that owns the kind; fields
// it does not know must stay (the owners' concern), a file of a newer format is
// refused by name.
package objects

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// Dir is the private folder at the top of a warehouse.
const Dir = ".paimon-sql"

// Kind says what an object is. The values are part of the file format.
type Kind string

// The kinds of objects. Schema is "" for those that are in no schema.
const (
	View       Kind = "view"
	Sequence   Kind = "sequence"
	Default    Kind = "default"    // of a column; Name is table/column
	Constraint Kind = "constraint" // unenforced; Name is table/constraint
	Role       Kind = "role"
	Grant      Kind = "grant"
	Comment    Kind = "comment"
	Setting    Kind = "setting"
	// Grant is the owner and privileges of a relation, under its name; the others are
	// those of schemas, of the database and of objects that are made (see
	// catalog/roles).
	SchemaGrant   Kind = "schema_grant"
	DatabaseGrant Kind = "database_grant"
	DefaultGrant  Kind = "default_grant"
	RoleSetting   Kind = "role_setting" // ALTER ROLE ... SET
)

// Object is one stored object. It must not be changed: states share it.
type Object struct {
	Kind   Kind   `json:"kind"`
	Schema string `json:"schema,omitempty"` // SQL name
	Name   string `json:"name"`
	// OID is given when the object is first put and stays, through renames too.
	OID  uint32          `json:"oid"`
	Body json.RawMessage `json:"body,omitempty"`
}

// Decode parses the body into v.
func (o *Object) Decode(v any) error {
	if err := json.Unmarshal(o.Body, v); err != nil {
		return fmt.Errorf("%s %q: its stored definition does not parse: %w", o.Kind, o.Name, err)
	}
	return nil
}

// WithBody returns the object with another body, under the same OID.
func (o *Object) WithBody(v any) (*Object, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	c := *o
	c.Body = b
	return &c, nil
}

type key struct {
	kind         Kind
	schema, name string
}

// State is everything that is stored, as of one version. Immutable and safe for
// concurrent use.
type State struct {
	version int64
	objects map[key]*Object
	lists   map[Kind][]*Object
	byOID   map[uint32]*Object
	nextOID uint32
}

// Version is the number of the state, 0 before anything was stored. It grows with
// every change, whichever process makes it.
func (s *State) Version() int64 { return s.version }

// Get returns an object, nil when there is none.
func (s *State) Get(kind Kind, schema, name string) *Object {
	return s.objects[key{kind, schema, name}]
}

// ByOID returns the object with an OID, nil when there is none.
func (s *State) ByOID(oid uint32) *Object { return s.byOID[oid] }

// List returns the objects of a kind by schema and name. The caller must not
// change the slice.
func (s *State) List(kind Kind) []*Object { return s.lists[kind] }

// file is the body of a state's file.
type file struct {
	NextOID uint32    `json:"nextOid"`
	Objects []*Object `json:"objects"`
}

// firstOID is where OIDs of stored objects begin: above those of PostgreSQL's own
// and below most of those that names hash to.
const firstOID = 16384

func newState(version int64, nextOID uint32, objects map[key]*Object) *State {
	s := &State{version: version, objects: objects, nextOID: max(nextOID, firstOID), lists: map[Kind][]*Object{}, byOID: make(map[uint32]*Object, len(objects))}
	for _, o := range objects {
		s.lists[o.Kind] = append(s.lists[o.Kind], o)
		s.byOID[o.OID] = o
	}
	for _, l := range s.lists {
		slices.SortFunc(l, func(a, b *Object) int {
			return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name))
		})
	}
	return s
}

func parseState(version int64, body []byte) (*State, error) {
	var f file
	if err := json.Unmarshal(body, &f); err != nil {
		return nil, err
	}
	m := make(map[key]*Object, len(f.Objects))
	for _, o := range f.Objects {
		if o == nil || o.Kind == "" || o.Name == "" {
			return nil, fmt.Errorf("an object has no kind or no name")
		}
		k := key{o.Kind, o.Schema, o.Name}
		if m[k] != nil {
			return nil, fmt.Errorf("%s %q is there twice", o.Kind, o.Name)
		}
		m[k] = o
	}
	return newState(version, f.NextOID, m), nil
}

func (s *State) encode() ([]byte, error) {
	f := file{NextOID: s.nextOID, Objects: slices.Collect(maps.Values(s.objects))}
	slices.SortFunc(f.Objects, func(a, b *Object) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name))
	})
	return json.Marshal(f)
}

// Edit is a change in the making: the state as it was read and what was done to it
// since. It is used by one goroutine.
type Edit struct {
	base    *State
	objects map[key]*Object
	nextOID uint32
	changed bool
}

func newEdit(s *State) *Edit {
	return &Edit{base: s, objects: maps.Clone(s.objects), nextOID: s.nextOID}
}

// Base returns the state that the edit started from.
func (e *Edit) Base() *State { return e.base }

// State returns what the edit has come to, with the version of its base.
func (e *Edit) State() *State { return newState(e.base.version, e.nextOID, maps.Clone(e.objects)) }

// Get returns an object as edited, nil when there is none.
func (e *Edit) Get(kind Kind, schema, name string) *Object {
	return e.objects[key{kind, schema, name}]
}

// List returns the objects of a kind as edited, by schema and name.
func (e *Edit) List(kind Kind) []*Object {
	var out []*Object
	for k, o := range e.objects {
		if k.kind == kind {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *Object) int {
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// Put stores an object in place of the one of its kind and name. With OID 0 it
// keeps that one's OID or is given a new one. It returns what is stored now.
func (e *Edit) Put(o Object) *Object {
	k := key{o.Kind, o.Schema, o.Name}
	if o.OID == 0 {
		if old := e.objects[k]; old != nil {
			o.OID = old.OID
		} else {
			o.OID = e.nextOID
		}
	}
	if o.OID == e.nextOID {
		for e.nextOID++; e.taken(e.nextOID); e.nextOID++ {
		}
	}
	e.objects[k] = &o
	e.changed = true
	return &o
}

func (e *Edit) taken(oid uint32) bool {
	for _, o := range e.objects {
		if o.OID == oid {
			return true
		}
	}
	return false
}

// PutBody is Put of a body that is encoded as JSON.
func (e *Edit) PutBody(kind Kind, schema, name string, body any) (*Object, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return e.Put(Object{Kind: kind, Schema: schema, Name: name, Body: b}), nil
}

// Delete takes an object away and reports whether it was there.
func (e *Edit) Delete(kind Kind, schema, name string) bool {
	k := key{kind, schema, name}
	_, ok := e.objects[k]
	delete(e.objects, k)
	e.changed = e.changed || ok
	return ok
}

// Rename gives an object another name; its OID stays. It reports whether it was
// there; an object that has the new name is replaced.
func (e *Edit) Rename(kind Kind, schema, name, newSchema, newName string) bool {
	k := key{kind, schema, name}
	o, ok := e.objects[k]
	if !ok {
		return false
	}
	delete(e.objects, k)
	c := *o
	c.Schema, c.Name = newSchema, newName
	e.objects[key{kind, newSchema, newName}] = &c
	e.changed = true
	return true
}

// Change is one difference between two states: the object of a name before and
// after, nil = there is none. A rename is two of them.
type Change struct {
	Kind          Kind
	Schema, Name  string
	Before, After *Object
}

// ErrConflict: what a change builds on is not what is stored any more.
var ErrConflict = errors.New("stored object was changed concurrently")

// With returns the state with changes made to it, under the same version.
func (s *State) With(changes []Change) *State {
	if len(changes) == 0 {
		return s
	}
	m := maps.Clone(s.objects)
	for _, c := range changes {
		k := key{c.Kind, c.Schema, c.Name}
		if c.After == nil {
			delete(m, k)
		} else {
			m[k] = c.After
		}
	}
	return newState(s.version, s.nextOID, m)
}

// Apply makes changes that were worked out on an earlier state, all or, when one of
// them meets another object than it builds on, none and ErrConflict.
func (e *Edit) Apply(changes []Change) error {
	seen := map[key]bool{}
	for _, c := range changes {
		k := key{c.Kind, c.Schema, c.Name}
		if !seen[k] && !same(e.objects[k], c.Before) {
			return fmt.Errorf("%s %q: %w", c.Kind, c.Name, ErrConflict)
		}
		seen[k] = true
	}
	for _, c := range changes {
		if c.After == nil {
			e.Delete(c.Kind, c.Schema, c.Name)
		} else {
			e.Put(*c.After)
		}
	}
	return nil
}

// Check reports as ErrConflict what Apply would.
func (s *State) Check(changes []Change) error { return newEdit(s).Apply(changes) }

func same(a, b *Object) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.OID == b.OID && bytes.Equal(a.Body, b.Body)
}

// NewOID draws an OID that is most likely nobody else's, for an object that is made
// before it is known what else is.
func NewOID() uint32 { return firstOID + 1<<20 + rand.Uint32N(1<<32-1-firstOID-1<<20) }
