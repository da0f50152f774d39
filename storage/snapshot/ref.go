package snapshot

import "fmt"

// RefKind says how a Ref names a state of a table.
type RefKind uint8

// The kinds of Ref.
const (
	Latest      RefKind = iota
	ID                  // snapshot id
	Tag                 // tag name
	Version             // scan.version: a tag by that name first, then a snapshot id
	AtTimestamp         // newest snapshot with timeMillis <= Millis
)

// Ref names a state of a table, optionally on a branch. The zero value is the
// latest snapshot of main.
type Ref struct {
	Kind   RefKind
	ID     int64
	Name   string // tag or version
	Millis int64  // epoch milliseconds
	Branch string // "" = main
	// Schema pins the schema that the state is read with: its id + 1; 0 = not
	// pinned: the latest schema for Latest, the snapshot's own otherwise. Set by
	// Table.Resolve, so that a statement binds and reads by one schema.
	Schema int64
	// Snap is what the reference was resolved to, or nil; Empty says that there
	// was no snapshot. They are set by Table.Resolve too: an id can be given anew
	// after a rollback, and a statement must not see both states. Equal snapshots
	// of one Manager are the same pointer as long as it remembers them.
	Snap  *Snapshot
	Empty bool
}

func (r Ref) String() string {
	switch r.Kind {
	case ID:
		return fmt.Sprintf("snapshot %d", r.ID)
	case Tag:
		return fmt.Sprintf("tag %q", r.Name)
	case Version:
		return fmt.Sprintf("version %q", r.Name)
	case AtTimestamp:
		return fmt.Sprintf("timestamp %d ms", r.Millis)
	}
	return "latest"
}
