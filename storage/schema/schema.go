// Package schema reads Paimon's schema-N files, table options and schema
// evolution by field id.
package schema

import "github.com/paimon-sql/paimon-sql/internal/types"

// Table is one version of a table's schema. Immutable once read.
type Table struct {
	ID             int64
	Version        int
	Fields         types.Schema
	HighestFieldID int32
	PartitionKeys  []string
	PrimaryKeys    []string
	Options        map[string]string
	Comment        string
	TimeMillis     int64
}

// Option returns the value of a table option and whether it is set.
func (t *Table) Option(key string) (string, bool) {
	v, ok := t.Options[key]
	return v, ok
}

// TrimmedKey returns the primary key without the partition columns, in declared
// order: what files are sorted and merged by.
func (t *Table) TrimmedKey() []string {
	var out []string
next:
	for _, k := range t.PrimaryKeys {
		for _, p := range t.PartitionKeys {
			if p == k {
				continue next
			}
		}
		out = append(out, k)
	}
	return out
}
