// Package procedure holds the procedures of CALL sys.name(...): one file per
// procedure or family, listed in builtin.go. Names and arguments are those of
// Paimon's Flink and Spark procedures.
//
// A procedure sees the engine as a Host. It runs outside of transactions: what it
// does is published at once.
package procedure

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// Table is a table that a procedure works on.
type Table struct {
	Name   string // as messages show it: schema.name
	Branch string // "" = main
	Store  *table.FileStore
}

// At is the newest state of the table.
func (t *Table) At() snapshot.Ref { return snapshot.Ref{Branch: t.Branch} }

// Host is what procedures need of the engine that runs them.
type Host interface {
	// Table finds a table by a name as SQL writes it, which may carry a branch.
	Table(ctx context.Context, name string) (*Table, error)
	// Exclusive keeps writers of this server away from t until the call ends.
	Exclusive(ctx context.Context, t *Table) error
	// Partitions returns the BinaryRow images of the partitions of t that c chooses.
	Partitions(ctx context.Context, t *Table, c Choice) ([][]byte, error)
	// Tables are the names, as Table takes them, of the tables of the warehouse whose
	// schema and name pass keep. Views and system tables are not among them.
	Tables(ctx context.Context, keep func(schema, name string) bool) ([]string, error)
	// Style reads times.
	Style() *pgtext.Style
	// Account is the session's for work that needs memory.
	Account() *mem.Account
	// Track shows a compaction in pg_stat_progress_compact until end is called.
	Track(t *Table) (progress func(done, total int64), end func())
	// Publish is table.CompactOptions.Publish for a table.
	Publish(ctx context.Context, t *Table) (done func(), err error)
	// Changed says that the snapshots or tags of t are not what they were.
	Changed(t *Table)
}

// Choice chooses partitions. The zero value chooses all; what is set must all hold.
type Choice struct {
	Where string // a SQL condition over the partition columns
	// Specs are values by partition column, columns left out match every value: one
	// of them must hold.
	Specs []map[string]string
	// Idle, when not 0: no file has been added for so long.
	Idle time.Duration
}

// Arg is a formal argument.
type Arg struct {
	Name     string
	Kind     types.Kind // Text, Int8, Bool, or TimestampTZ: text or milliseconds since 1970
	Required bool
	// Aliases are further names that Paimon's engines know it by.
	Aliases []string
}

// Procedure is one procedure. Run returns the rows of Columns; nil is one row of
// true for procedures that have nothing to say.
type Procedure struct {
	Name    string
	Args    []Arg
	Columns types.Schema
	Run     func(ctx context.Context, h Host, a *Values) ([][]types.Datum, error)
}

// Signature shows how a procedure is called.
func (p *Procedure) Signature() string {
	var b strings.Builder
	b.WriteString("sys." + p.Name + "(")
	for i, a := range p.Args {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(a.Name)
		if !a.Required {
			b.WriteString(" => ...")
		}
	}
	return b.String() + ")"
}

// Actual is an argument of a call: its text, or NULL, which counts as not given.
type Actual struct {
	Name string // "" = by position
	Text string
	Null bool
}

// Bind matches the arguments of a call to the formal ones.
func (p *Procedure) Bind(actual []Actual, st *pgtext.Style) (*Values, error) {
	v := &Values{text: map[string]string{}, style: st}
	seen := map[string]bool{}
	wrong := func(format string, args ...any) error {
		return pgerr.New(pgerr.UndefinedFunction, format, args...).WithHint("The procedure is called as %s.", p.Signature())
	}
	named := false
	for i, a := range actual {
		var f *Arg
		switch {
		case a.Name == "" && named:
			return nil, pgerr.New(pgerr.SyntaxError, "positional argument cannot follow named argument")
		case a.Name == "" && i >= len(p.Args):
			return nil, wrong("procedure sys.%s has no %d arguments", p.Name, len(actual))
		case a.Name == "":
			f = &p.Args[i]
		default:
			named = true
			if f = p.arg(a.Name); f == nil {
				return nil, wrong("procedure sys.%s has no argument \"%s\"", p.Name, a.Name)
			}
		}
		if seen[f.Name] {
			return nil, pgerr.New(pgerr.SyntaxError, "argument name \"%s\" used more than once", f.Name)
		}
		seen[f.Name] = true
		if a.Null {
			continue
		}
		if f.Kind == types.Int8 || f.Kind == types.Bool {
			if _, err := pgtext.Parse(types.Of(f.Kind), a.Text, st); err != nil {
				return nil, err
			}
		}
		v.text[f.Name] = a.Text
	}
	for _, f := range p.Args {
		if _, ok := v.text[f.Name]; !ok && f.Required {
			return nil, wrong("argument \"%s\" of procedure sys.%s is missing", f.Name, p.Name)
		}
	}
	return v, nil
}

func (p *Procedure) arg(name string) *Arg {
	for i := range p.Args {
		a := &p.Args[i]
		if strings.EqualFold(a.Name, name) {
			return a
		}
		for _, x := range a.Aliases {
			if strings.EqualFold(x, name) {
				return a
			}
		}
	}
	return nil
}

// Values are the arguments of a call by their first names.
type Values struct {
	text  map[string]string
	style *pgtext.Style
}

// Has reports whether an argument was given and is not NULL.
func (v *Values) Has(name string) bool { _, ok := v.text[name]; return ok }

// Text returns an argument as text, "" when not given.
func (v *Values) Text(name string) string { return v.text[name] }

// Int returns an integer argument; 0 when not given.
func (v *Values) Int(name string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(v.text[name]), 10, 64) // Bind has checked it
	return n
}

// Bool returns a boolean argument; false when not given.
func (v *Values) Bool(name string) bool {
	b, err := pgtext.ParseBool(v.text[name])
	return err == nil && b
}

// Time returns a point in time: milliseconds since 1970, or a timestamp in the
// session's zone. Zero when not given.
func (v *Values) Time(name string) (time.Time, error) {
	s, ok := v.text[name]
	if !ok {
		return time.Time{}, nil
	}
	if ms, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64); err == nil && len(s) > 8 {
		return time.UnixMilli(ms), nil
	}
	us, err := pgtext.ParseTimestamp(s, true, false, v.style)
	if err != nil {
		return time.Time{}, err
	}
	if us == pgtext.TimestampInfinity || us == pgtext.TimestampNegInfinity {
		return time.Time{}, pgerr.New(pgerr.InvalidParameterValue, "argument \"%s\" must be a finite time", name)
	}
	return time.UnixMicro(us), nil
}

// bounded is an integer argument that fits an int and is not below low.
func bounded(v *Values, name string, low int64) (int, error) {
	n := v.Int(name)
	if v.Has(name) && n < low {
		return 0, pgerr.New(pgerr.InvalidParameterValue, "argument \"%s\" must be at least %d", name, low)
	}
	if n > math.MaxInt32 {
		return 0, pgerr.New(pgerr.InvalidParameterValue, "argument \"%s\" must be at most %d", name, math.MaxInt32)
	}
	return int(n), nil
}

// refuse is 0A000 for an argument that is not supported.
func refuse(v *Values, proc string, names ...string) error {
	for _, n := range names {
		if v.Has(n) {
			return pgerr.New(pgerr.FeatureNotSupported, "argument \"%s\" of sys.%s is not supported", n, proc)
		}
	}
	return nil
}

// tableArg is the first argument of nearly every procedure.
var tableArg = Arg{Name: "table", Kind: types.Text, Required: true, Aliases: []string{"identifier"}}

func field(name string, k types.Kind) types.Field {
	return types.Field{ID: -1, Name: name, Type: types.Of(k)}
}

// done is the result of procedures that only do something.
var done = types.Schema{field("result", types.Bool)}

func ok() [][]types.Datum { return [][]types.Datum{{true}} }

// choiceOf reads the arguments where and partitions, which is the name of the list of
// partitions; they exclude each other.
func choiceOf(v *Values, partitions string) (Choice, error) {
	c := Choice{Where: strings.TrimSpace(v.Text("where"))}
	if c.Where != "" && v.Has(partitions) {
		return c, pgerr.New(pgerr.InvalidParameterValue, "%s and where cannot be used together", partitions)
	}
	var err error
	c.Specs, err = partitionSpecs(v.Text(partitions))
	return c, err
}

// partitions returns the images of the partitions chosen: nil = nothing was said, all of
// them; empty = there is none.
func (c Choice) partitions(ctx context.Context, h Host, t *Table) ([][]byte, error) {
	if c.Where == "" && c.Specs == nil && c.Idle == 0 {
		return nil, nil
	}
	out, err := h.Partitions(ctx, t, c)
	if out == nil {
		out = [][]byte{}
	}
	return out, err
}
