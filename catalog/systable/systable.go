// Package systable holds the system tables of a Paimon table (t$snapshots,
// t$files, ...): one file each or a small family, one line each in builtin.go.
// Columns, texts and order of columns are those of Java's tables of these names.
package systable

import (
	"context"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// Source is the table that a system table describes.
type Source struct {
	IO fileio.FileIO
	// Root is the table's directory relative to the warehouse; Location is the
	// same as users see it (warehouse URI and Root).
	Root, Location string
	Branch         string // "" = main
	Schemas        *schema.Manager
	Snapshots      *snapshot.Manager
	Manifests      *manifest.Cache
	// At is the state asked for: the latest, or what a time-travel clause names.
	// nil = the table has no snapshot yet.
	At *snapshot.Snapshot
	// Until, when not 0, is the last snapshot that is listed; -1 = none is.
	Until int64
	// Schema is the schema of the state, or the latest.
	Schema *schema.Table
}

// Def is one system table.
type Def struct {
	Name   string
	Fields types.Schema
	// Fill calls add once per row with one value per field.
	Fill func(ctx context.Context, src *Source, add func(row ...types.Datum)) error
}

// Lookup finds a system table by name, without regard to case.
func Lookup(name string) (*Def, bool) {
	name = strings.ToLower(name)
	for i := range builtin {
		if builtin[i].Name == name {
			return &builtin[i], true
		}
	}
	return nil, false
}

// Names lists the system tables that are here.
func Names() []string {
	names := make([]string, len(builtin))
	for i := range builtin {
		names[i] = builtin[i].Name
	}
	return names
}

func field(name string, t types.Type) types.Field { return types.Field{ID: -1, Name: name, Type: t} }

var (
	text   = types.Of(types.Text)
	bigint = types.Of(types.Int8)
	int4   = types.Of(types.Int4)
	bool1  = types.Of(types.Bool)
	ts3    = types.Type{Kind: types.Timestamp, Prec: 3, Mod: 4}
)

// millis turns epoch milliseconds into a timestamp datum.
func millis(ms int64) types.Datum { return ms * 1000 }

func orNull(s string) types.Datum {
	if s == "" {
		return nil
	}
	return s
}

func ptr(p *int64) types.Datum {
	if p == nil {
		return nil
	}
	return *p
}
