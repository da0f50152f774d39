package mergetree

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/mergetree/aggregate"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// columnSet tells where the columns of a table are in what an engine reads.
type columnSet struct {
	table *schema.Table
	reads []int // ascending
}

func newColumnSet(t *schema.Table, cols []int) *columnSet {
	s := &columnSet{table: t}
	for _, c := range cols {
		s.add(c)
	}
	return s
}

func (s *columnSet) add(c int) {
	if i, ok := slices.BinarySearch(s.reads, c); !ok {
		s.reads = slices.Insert(s.reads, i, c)
	}
}

// at returns the position of table column c in Versions.Cols; it must have been
// added.
func (s *columnSet) at(c int) int {
	i, _ := slices.BinarySearch(s.reads, c)
	return i
}

// positions returns at for several columns.
func (s *columnSet) positions(cols []int) []int {
	out := make([]int, len(cols))
	for i, c := range cols {
		out[i] = s.at(c)
	}
	return out
}

// isKey says which columns of a table are in its primary key, or are the same for
// all versions since they name the partition.
func isKey(t *schema.Table) []bool {
	out := make([]bool, len(t.Fields))
	for i, f := range t.Fields {
		out[i] = slices.Contains(t.PrimaryKeys, f.Name) || slices.Contains(t.PartitionKeys, f.Name)
	}
	return out
}

// ignoresDelete reads ignore-delete with its older spellings.
func ignoresDelete(o schema.Options) bool {
	for _, k := range []string{"ignore-delete", "first-row.ignore-delete", "deduplicate.ignore-delete", "partial-update.ignore-delete"} {
		if _, ok := o[k]; ok {
			return o.Flag(k, false)
		}
	}
	return false
}

// isRetract reports whether a row kind takes a row back: -U and -D.
func isRetract(kind uint8) bool { return kind == KindUpdateBefore || kind == KindDelete }

// anyRetract reports whether there is a retraction among kinds.
func anyRetract(kinds []uint8) bool {
	bits := uint8(0)
	for _, k := range kinds {
		bits |= k
	}
	return bits&1 != 0
}

// nullIn returns the first row in [from, to) at which col is NULL, -1 if none.
func nullIn(col arrow.Array, from, to int) int {
	valid, off := vec.Validity(col)
	if valid == nil {
		return -1
	}
	for i := from; i < to; i++ {
		if !vec.BitAt(valid, off+i) {
			return i
		}
	}
	return -1
}

// columnError names the column that could not be merged.
func columnError(column string, err error) error {
	var e *aggregate.Error
	if errors.As(err, &e) {
		return &MergeError{Column: column, Overflow: e.Overflow, Reason: strings.ReplaceAll(e.Reason, "<column>", column)}
	}
	return fmt.Errorf("column %s: %w", column, err)
}

// take makes the result columns of rows picked whole.
func take(v *Versions, at []int, rows []int32) []arrow.Array {
	out := make([]arrow.Array, len(at))
	for i, p := range at {
		out[i] = vec.Take(v.Cols[p], rows)
	}
	return out
}
