package catalog

import (
	"encoding/json"
	"sort"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// ConstraintKind is the kind of a constraint that Paimon has no place for.
type ConstraintKind string

// The kinds; only CHECK is enforced.
const (
	CheckConstraint  ConstraintKind = "check"
	UniqueConstraint ConstraintKind = "unique"
	ForeignKey       ConstraintKind = "foreign"
)

// Constraint is a constraint kept in the table option pg-constraint.<name>, which
// other engines store and ignore.
type Constraint struct {
	Name string         `json:"-"`
	Kind ConstraintKind `json:"kind"`
	// Expr is the condition of a CHECK, as SQL.
	Expr    string   `json:"expr,omitempty"`
	Columns []string `json:"columns,omitempty"`
	// References is the table and columns of a FOREIGN KEY, as SQL.
	References string `json:"references,omitempty"`
}

const (
	constraintPrefix = "pg-constraint."
	defaultPrefix    = "pg-default."
	identityPrefix   = "pg-identity."
)

// Option returns the table option that keeps c.
func (c Constraint) Option() (key, value string) {
	b, _ := json.Marshal(c) // strings always marshal
	return constraintPrefix + c.Name, string(b)
}

// Constraints returns what a table's options keep, in name order.
func Constraints(options map[string]string) []Constraint {
	var out []Constraint
	for k, v := range options {
		if name, ok := strings.CutPrefix(k, constraintPrefix); ok {
			c := Constraint{Name: name}
			if json.Unmarshal([]byte(v), &c) == nil {
				out = append(out, c)
			}
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// DefaultOption is the option that keeps a column's DEFAULT when it is not a
// constant; Paimon's own defaultValue holds constants only.
func DefaultOption(column string) string { return defaultPrefix + column }

// IdentityOption is the option that says that a column is GENERATED AS IDENTITY.
// Its sequence is a stored object that names the column, its default calls it.
func IdentityOption(column string) string { return identityPrefix + column }

// IdentityOf returns a for GENERATED ALWAYS, d for BY DEFAULT, "" when a column is no
// identity column.
func IdentityOf(column string, options map[string]string) string {
	switch v := options[IdentityOption(column)]; v {
	case "a", "d":
		return v
	}
	return ""
}

// DefaultOf returns a column's default: an SQL expression, or the text of a
// constant as Paimon keeps it (constant is true; it is cast to the column's type).
func DefaultOf(f types.Field, options map[string]string) (text string, constant, ok bool) {
	if e, ok := options[DefaultOption(f.Name)]; ok {
		return e, false, true
	}
	if f.HasDefault {
		return f.Default, true, true
	}
	return "", false, false
}
