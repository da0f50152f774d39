package aggregate

import (
	"fmt"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Op is what a row does to the accumulated value of its key.
type Op uint8

// The operations. Names in brackets are the methods of Java's FieldAggregator.
const (
	// Skip leaves the value.
	Skip Op = iota
	// Add is agg(accumulated, row).
	Add
	// AddReversed is aggReversed(accumulated, row): the row belongs before what has
	// been accumulated, it came late.
	AddReversed
	// Retract takes the row back.
	Retract
	// Set replaces the value by the row's, NULL included.
	Set
	// Clear makes the value NULL.
	Clear
	// SetRetract is Set, then Retract of the same row: a key that begins with a
	// retraction.
	SetRetract
)

// Input is a column of the versions of some keys. Read only.
type Input struct {
	// Col is in stored form (types.Type.Arrow of the column), no dictionary.
	Col  arrow.Array
	Ends []uint32
	// Ops of the rows; nil = all Add.
	Ops []Op
}

// Aggregate folds columns of one type. It keeps scratch memory between calls and
// is not safe for concurrent use.
type Aggregate interface {
	// Fold returns one row per key. The error is an *Error, for what the values or
	// operations do not allow, or says that a value read is damaged.
	Fold(in *Input) (arrow.Array, error)
}

// Spec is what an aggregate is made from.
type Spec struct {
	Column types.Field
	// Options of the table.
	Options map[string]string
}

// Option returns the column's option fields.<column>.<name>.
func (s Spec) Option(name, def string) string {
	if v, ok := s.Options["fields."+s.Column.Name+"."+name]; ok {
		return v
	}
	return def
}

// Flag is Option for true and false; what is neither counts as def.
func (s Spec) Flag(name string, def bool) bool {
	switch strings.ToLower(strings.TrimSpace(s.Option(name, ""))) {
	case "true":
		return true
	case "false":
		return false
	}
	return def
}

// list is Option for comma-separated names, as Java splits them: trimmed, empty
// ones left out.
func (s Spec) list(name string) []string {
	var out []string
	for _, x := range strings.Split(s.Option(name, ""), ",") {
		if x = strings.TrimSpace(x); x != "" {
			out = append(out, x)
		}
	}
	return out
}

// Function is an aggregate function.
type Function struct {
	Name string
	// Alias is a second name, "" = none.
	Alias string
	// Takes reports whether a column of type t can be aggregated; nil = any.
	Takes func(t types.Type) bool
	// Check examines the column's options; it is asked for types that Takes accepts.
	// nil = no options. The error is an *OptionError.
	Check func(s Spec) error
	// New makes the aggregate. What Check lets pass and is not supported here is an
	// *fileio.UnsupportedError.
	New func(s Spec) (Aggregate, error)
}

// OptionError says that an option of a column does not suit its function.
type OptionError struct {
	Key    string // of the option
	Reason string // a sentence that names the key
}

func (e *OptionError) Error() string { return e.Reason }

// badOption makes an OptionError; its format's first verb is the option's key.
func badOption(s Spec, name, format string, args ...any) error {
	key := "fields." + s.Column.Name + "." + name
	return &OptionError{Key: key, Reason: fmt.Sprintf(format, append([]any{key}, args...)...)}
}

// Error says that values cannot be aggregated.
type Error struct {
	Reason string
	// Overflow: the result does not fit the column's type.
	Overflow bool
}

func (e *Error) Error() string { return e.Reason }

func noRetract(name string) error {
	return &Error{Reason: "aggregate function " + name + " does not support retraction; " +
		"set option fields.<column>.ignore-retract to leave deletions out of it"}
}

// Find returns the function of a name, nil if there is none.
func Find(name string) *Function {
	for i := range builtins {
		if f := &builtins[i]; f.Name == name || f.Alias == name && name != "" {
			return f
		}
	}
	return nil
}

// New makes the aggregate that function name is for a column, with its option
// ignore-retract.
func New(name string, s Spec) (Aggregate, error) {
	f := Find(name)
	if f == nil {
		return nil, fmt.Errorf("there is no aggregate function %q", name)
	}
	if f.Takes != nil && !f.Takes(s.Column.Type) {
		return nil, fmt.Errorf("aggregate function %s does not take column %q of type %s", name, s.Column.Name, types.PaimonString(s.Column.Type))
	}
	a, err := f.New(s)
	if err != nil {
		return nil, err
	}
	if s.Flag("ignore-retract", false) {
		a = &ignoreRetract{Aggregate: a}
	}
	return a, nil
}

// ignoreRetract leaves retractions out.
type ignoreRetract struct {
	Aggregate
	ops []Op
}

func (g *ignoreRetract) Fold(in *Input) (arrow.Array, error) {
	if in.Ops == nil {
		return g.Aggregate.Fold(in)
	}
	g.ops = append(g.ops[:0], in.Ops...)
	for i, op := range g.ops {
		switch op {
		case Retract:
			g.ops[i] = Skip
		case SetRetract:
			g.ops[i] = Set
		}
	}
	return g.Aggregate.Fold(&Input{Col: in.Col, Ends: in.Ends, Ops: g.ops})
}
