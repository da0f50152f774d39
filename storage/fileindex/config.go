// Package fileindex is the file indexes of data files: which of them a table's options
// ask for, how they are made while a file is written, and how they are found when
// it is read.
package fileindex

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// The options are
//
//	file-index.<kind>.columns            = a,b,m[key]
//	file-index.<kind>.<column>.<option>  = of one column, of one key of a map (m[key]), or
//	                                       of all keys of a map
//	file-index.in-manifest-threshold     = up to which size a container lies in the manifest
//	file-index.read.enabled              = whether readers look at indexes
//
// Source: FileIndexOptions.java.
const (
	// Suffix is what the names of files that hold a container end with.
	Suffix = ".index"

	prefix           = "file-index."
	columnsSuffix    = ".columns"
	defaultThreshold = 500
)

// Column is one index that a table's files shall have.
type Column struct {
	Name    string // the column
	Key     string // of a map column, when Keyed: its values under this key
	Keyed   bool
	Field   int        // of the schema
	Type    types.Type // of what is indexed
	Kind    index.Kind
	Options index.Options
}

// Container returns the name under which a container holds the index.
func (c *Column) Container() string {
	if c.Keyed {
		return index.MapColumn(c.Name, c.Key)
	}
	return c.Name
}

// create starts the index of a file.
func (c *Column) create() (index.Builder, error) {
	b, err := c.Kind.Create(c.Type, c.Options)
	if err != nil {
		return nil, &OptionError{Option: prefix + c.Kind.Name() + "." + c.Container(), Reason: err.Error()}
	}
	return b, nil
}

// Config is what a table's options ask for.
type Config struct {
	Columns   []Column // by column, then by kind
	Threshold int64    // containers of more bytes are files of their own
}

// OptionError says what is wrong with an option.
type OptionError struct {
	Option string
	Reason string
	Type   bool // a column's type cannot have the index
}

func (e *OptionError) Error() string { return fmt.Sprintf("option %q: %s", e.Option, e.Reason) }

// Parse reads the options of a table of the given fields; nil when they ask for no
// index. What is wrong is an *OptionError.
func Parse(o schema.Options, fields types.Schema) (*Config, error) {
	c := &Config{}
	var err error
	if c.Threshold, err = o.Size(prefix+"in-manifest-threshold", defaultThreshold); err != nil {
		return nil, err
	}
	var names []string
	for k := range o {
		if strings.HasPrefix(k, prefix) {
			names = append(names, k)
		}
	}
	sort.Strings(names)
	for _, k := range names {
		kind, ok := strings.CutSuffix(k[len(prefix):], columnsSuffix)
		if !ok {
			continue
		}
		if err := c.declare(k, kind, o.List(k), fields); err != nil {
			return nil, err
		}
	}
	for _, k := range names {
		if err := c.option(k, o[k]); err != nil {
			return nil, err
		}
	}
	if len(c.Columns) == 0 {
		return nil, nil
	}
	for i := range c.Columns {
		if _, err := c.Columns[i].create(); err != nil {
			return nil, err // its options
		}
	}
	slices.SortStableFunc(c.Columns, func(a, b Column) int {
		if a.Field != b.Field {
			return a.Field - b.Field
		}
		if n := strings.Compare(a.Key, b.Key); n != 0 {
			return n
		}
		return strings.Compare(a.Kind.Name(), b.Kind.Name())
	})
	return c, nil
}

// For returns what c, parsed with the fields of a table, asks of a file that was written
// with others: columns have the names and types that they have there. A column that the
// file has not, or whose type there cannot have the index, is left out; nil when nothing
// remains.
func (c *Config) For(table, file types.Schema) *Config {
	if c == nil {
		return nil
	}
	out := &Config{Threshold: c.Threshold}
	for _, x := range c.Columns {
		id := table[x.Field].ID
		if x.Field = slices.IndexFunc(file, func(f types.Field) bool { return f.ID == id }); x.Field < 0 {
			continue
		}
		f := file[x.Field]
		x.Name, x.Type = f.Name, f.Type
		if x.Keyed {
			if f.Type.Kind != types.Map || !isText(f.Type.Key.Kind) {
				continue
			}
			x.Type = *f.Type.Elem
		}
		if x.Kind.Supports(x.Type) {
			out.Columns = append(out.Columns, x)
		}
	}
	if len(out.Columns) == 0 {
		return nil
	}
	return out
}

// Only returns c with those of its columns for which keep is true; nil when there are
// none.
func (c *Config) Only(keep func(x *Column) bool) *Config {
	out := &Config{Threshold: c.Threshold}
	for i := range c.Columns {
		if keep(&c.Columns[i]) {
			out.Columns = append(out.Columns, c.Columns[i])
		}
	}
	if len(out.Columns) == 0 {
		return nil
	}
	return out
}

// declare adds the columns of file-index.<kind>.columns.
func (c *Config) declare(option, name string, list []string, fields types.Schema) error {
	kind := KindOf(name)
	if kind == nil {
		return &OptionError{Option: option, Reason: fmt.Sprintf("there is no file index of kind %q, only %s", name, kindNames())}
	}
	for _, item := range list {
		x := Column{Name: item, Kind: kind, Options: index.Options{}}
		x.Name, x.Key, x.Keyed = index.SplitMapColumn(item)
		if x.Field = fields.Index(x.Name); x.Field < 0 {
			return &OptionError{Option: option, Reason: fmt.Sprintf("column %q does not exist", x.Name)}
		}
		x.Type = fields[x.Field].Type
		if x.Keyed {
			if x.Type.Kind != types.Map || !isText(x.Type.Key.Kind) {
				return &OptionError{Option: option, Reason: fmt.Sprintf("column %q is no map from text", x.Name), Type: true}
			}
			x.Type = *x.Type.Elem
		}
		if !kind.Supports(x.Type) {
			return &OptionError{Option: option, Reason: fmt.Sprintf("%q of type %s cannot have a %s index", item, types.PaimonString(x.Type), name), Type: true}
		}
		if !slices.ContainsFunc(c.Columns, func(y Column) bool {
			return y.Kind.Name() == name && y.Name == x.Name && y.Key == x.Key && y.Keyed == x.Keyed
		}) {
			c.Columns = append(c.Columns, x)
		}
	}
	return nil
}

// option gives file-index.<kind>.<column>.<option> to its columns.
func (c *Config) option(key, value string) error {
	parts := strings.Split(key[len(prefix):], ".")
	if len(parts) != 3 {
		return nil // of another form: not one of ours
	}
	name, key3, found := parts[1], parts[2], false
	for i := range c.Columns {
		x := &c.Columns[i]
		if x.Kind.Name() != parts[0] || name != x.Container() && name != x.Name {
			continue
		}
		found = true
		if _, own := x.Options[key3]; own && name != x.Container() {
			continue // what is said of one key of a map counts more than what is said of all
		}
		x.Options[key3] = value
	}
	if !found {
		return &OptionError{Option: key, Reason: fmt.Sprintf("column %q is not named by %q", name, prefix+parts[0]+columnsSuffix)}
	}
	return nil
}

func isText(k types.Kind) bool {
	return k == types.Text || k == types.Varchar || k == types.BpChar
}
