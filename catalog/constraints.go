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

// Reference is what a FOREIGN KEY refers to: REFERENCES t(a, b) ON DELETE CASCADE.
type Reference struct {
	Schema, Table string
	Columns       []string
	// Rest is what stands behind the columns, as PostgreSQL prints it: MATCH, the
	// actions and DEFERRABLE, each with a space in front.
	Rest string
}

// ParseReference takes apart what Constraint.References keeps.
func ParseReference(s string) (r Reference) {
	ident := func() string {
		s = strings.TrimLeft(s, " ")
		if strings.HasPrefix(s, `"`) {
			var b strings.Builder
			for i := 1; i < len(s); i++ {
				if s[i] == '"' {
					if i+1 >= len(s) || s[i+1] != '"' {
						s = s[i+1:]
						return b.String()
					}
					i++
				}
				b.WriteByte(s[i])
			}
			s = ""
			return b.String()
		}
		i := strings.IndexAny(s, " .,()")
		if i < 0 {
			i = len(s)
		}
		w := s[:i]
		s = s[i:]
		return w
	}
	r.Schema = PublicSchema
	r.Table = ident()
	if strings.HasPrefix(s, ".") {
		s = s[1:]
		r.Schema, r.Table = r.Table, ident()
	}
	if rest, ok := strings.CutPrefix(s, "("); ok {
		for s = rest; s != "" && !strings.HasPrefix(s, ")"); s = strings.TrimLeft(s, ", ") {
			r.Columns = append(r.Columns, ident())
		}
		s = strings.TrimPrefix(s, ")")
	}
	r.Rest = s
	return r
}

// SQL is the form that Constraint.References keeps; the schema public is left out.
// quote makes SQL of a name.
func (r Reference) SQL(quote func(name string) string) string {
	name := quote(r.Table)
	if r.Schema != PublicSchema {
		name = quote(r.Schema) + "." + name
	}
	return name + r.Tail(quote)
}

// Tail is what stands behind the table's name.
func (r Reference) Tail(quote func(name string) string) string {
	cols := make([]string, len(r.Columns))
	for i, c := range r.Columns {
		cols[i] = quote(c)
	}
	return "(" + strings.Join(cols, ", ") + ")" + r.Rest
}

// Has reports whether a clause is there, such as " DEFERRABLE".
func (r Reference) Has(clause string) bool { return strings.Contains(r.Rest, clause) }

// Match is pg_constraint.confmatchtype.
func (r Reference) Match() string {
	if r.Has(" MATCH FULL") {
		return "f"
	}
	return "s"
}

// OnUpdate is pg_constraint.confupdtype.
func (r Reference) OnUpdate() string { return r.action(" ON UPDATE ") }

// OnDelete is pg_constraint.confdeltype.
func (r Reference) OnDelete() string { return r.action(" ON DELETE ") }

func (r Reference) action(on string) string {
	_, act, ok := strings.Cut(r.Rest, on)
	if !ok {
		return "a"
	}
	for _, x := range []struct{ word, letter string }{{"RESTRICT", "r"}, {"CASCADE", "c"}, {"SET NULL", "n"}, {"SET DEFAULT", "d"}} {
		if strings.HasPrefix(act, x.word) {
			return x.letter
		}
	}
	return "a"
}
