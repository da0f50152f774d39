package pgcatalog

import (
	"context"
	"errors"
	"sort"

	"github.com/paimon-sql/paimon-sql/catalog"
)

// Fixed OIDs of PostgreSQL.
const (
	nsPgCatalog  = 11
	nsPublic     = 2200
	nsInfoSchema = 13207
	superuserOID = 10
	classClass   = 1259 // pg_class
	classType    = 1247
	classNS      = 2615
	classDB      = 1262
	classCons    = 2606
	heapAM       = 2
	btreeAM      = 403
	databaseOID  = 5
)

// NamespaceOID returns the OID of a schema.
func NamespaceOID(schema string) uint32 {
	switch schema {
	case "pg_catalog":
		return nsPgCatalog
	case "public":
		return nsPublic
	case "information_schema":
		return nsInfoSchema
	case "pg_toast":
		return 99
	}
	return catalog.OIDOf('n', "", schema)
}

// schemas lists every schema with the built-in ones.
func schemas(ctx context.Context, src Sources) ([]string, error) {
	user, err := src.Catalog().Schemas(ctx)
	if err != nil {
		return nil, err
	}
	out := []string{"information_schema", "pg_catalog"}
	seen := map[string]bool{"information_schema": true, "pg_catalog": true}
	for _, s := range user {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	if !seen["public"] {
		out = append(out, "public")
	}
	sort.Strings(out)
	return out, nil
}

// eachTable calls fn for every relation of the warehouse, schema by schema. One
// that cannot be read (its schema file is damaged, or it was dropped meanwhile)
// is left out: a broken table must not take the catalog away from the others.
func eachTable(ctx context.Context, src Sources, fn func(rel catalog.Relation) error) error {
	names, err := src.Catalog().Schemas(ctx)
	if err != nil {
		return err
	}
	for _, s := range names {
		tables, err := src.Catalog().Tables(ctx, s)
		if errors.Is(err, catalog.ErrNoSchema) {
			continue
		}
		if err != nil {
			return err
		}
		for _, t := range tables {
			rel, err := src.Catalog().Resolve(ctx, s, t, catalog.ResolveOptions{})
			if err != nil {
				if cause := context.Cause(ctx); cause != nil {
					return cause
				}
				continue
			}
			if err := fn(rel); err != nil {
				return err
			}
		}
	}
	return nil
}

// key returns the primary key of a relation, nil when it has none.
func key(rel catalog.Relation) []string {
	if t, ok := rel.(catalog.TableInfo); ok {
		return t.PrimaryKey()
	}
	return nil
}

// KeyName is the name of a primary key's constraint and index.
func KeyName(table string) string { return table + "_pkey" }

// IndexOID and ConstraintOID are the OIDs behind a table's primary key.
func IndexOID(rel catalog.Relation) uint32 {
	return catalog.OIDOf('i', rel.Schema(), KeyName(rel.Name()))
}

// ConstraintOID returns the OID of the primary key's constraint.
func ConstraintOID(rel catalog.Relation) uint32 {
	return catalog.OIDOf('c', rel.Schema(), KeyName(rel.Name()))
}

func rowTypeOID(rel catalog.Relation) uint32 { return catalog.OIDOf('t', rel.Schema(), rel.Name()) }

func attNum(rel catalog.Relation, column string) int64 {
	for _, c := range rel.Columns() {
		if c.Name == column {
			return int64(c.AttNum)
		}
	}
	return 0
}
