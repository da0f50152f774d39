package catalog

import (
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Index is a file index of a table as SQL sees it: one name for one kind over some
// columns. What data files have is said by Paimon's file-index options; the name is
// kept beside them in the option pg-index.<name>, which other engines store and ignore.
type Index struct {
	Name string `json:"-"`
	// Kind is Paimon's: bloom-filter, bitmap, bsi, range-bitmap.
	Kind string `json:"kind"`
	// Columns are as in file-index.<kind>.columns: a, or m[key] for the values that the
	// maps of column m have under a key.
	Columns []string `json:"columns"`
	Unique  bool     `json:"unique,omitempty"`
	// Using is PostgreSQL's access method that CREATE INDEX named or meant, btree or
	// hash, "" for one of Paimon's kinds. Clients look for what they asked for.
	Using string `json:"using,omitempty"`
	// Options are those below file-index.<kind>.<column>, of the first column.
	Options map[string]string `json:"-"`
}

// IndexPrefix begins the options that keep the names of indexes.
const IndexPrefix = "pg-index."

const fileIndexPrefix = "file-index."

// indexMethods are what the kinds are called in USING.
var indexMethods = map[string]string{"bloom-filter": "bloom", "bitmap": "bitmap", "bsi": "bsi", "range-bitmap": "range_bitmap"}

// IndexKind returns the kind that USING method means, "" when there is none.
func IndexKind(method string) string {
	switch method {
	case "", "btree":
		return "range-bitmap"
	case "hash":
		return "bloom-filter"
	}
	for kind, m := range indexMethods {
		if m == method || kind == method {
			return kind
		}
	}
	return ""
}

// IndexUsing returns Index.Using of an index made with USING method.
func IndexUsing(method string) string {
	switch method {
	case "", "btree":
		return "btree"
	case "hash":
		return "hash"
	}
	return ""
}

// Method returns what stands behind USING.
func (x *Index) Method() string {
	if x.Using != "" {
		return x.Using
	}
	if m, ok := indexMethods[x.Kind]; ok {
		return m
	}
	return x.Kind
}

// Option returns the table option that keeps x's name.
func (x *Index) Option() (key, value string) {
	b, _ := json.Marshal(x) // strings always marshal
	return IndexPrefix + x.Name, string(b)
}

// Column splits an entry of Columns; keyed says that it is the values under a key.
func (x *Index) Column(i int) (column, key string, keyed bool) {
	c := x.Columns[i]
	if strings.HasSuffix(c, "]") {
		if column, key, keyed = strings.Cut(c[:len(c)-1], "["); keyed {
			return column, key, true
		}
	}
	return c, "", false
}

// Indexes returns the indexes that a table's options ask for, in name order. Those that
// no pg-index option names, because ALTER TABLE or another engine has asked for them,
// have the names that CREATE INDEX would have given them, one for each column.
func Indexes(table string, options map[string]string) []Index {
	asked := map[string][]string{} // columns by kind
	for k, v := range options {
		kind, ok := strings.CutPrefix(k, fileIndexPrefix)
		if !ok {
			continue
		}
		if kind, ok = strings.CutSuffix(kind, ".columns"); !ok || strings.Contains(kind, ".") {
			continue
		}
		for _, c := range strings.Split(v, ",") {
			if c = strings.TrimSpace(c); c != "" && !slices.Contains(asked[kind], c) {
				asked[kind] = append(asked[kind], c)
			}
		}
	}
	if len(asked) == 0 {
		return nil
	}
	var out []Index
	named := map[string]bool{}
	taken := map[string]bool{}
	for k, v := range options {
		name, ok := strings.CutPrefix(k, IndexPrefix)
		if !ok {
			continue
		}
		x := Index{}
		if json.Unmarshal([]byte(v), &x) != nil {
			continue
		}
		x.Name = name
		x.Columns = slices.DeleteFunc(x.Columns, func(c string) bool { return !slices.Contains(asked[x.Kind], c) })
		if len(x.Columns) == 0 {
			continue // its options have been reset
		}
		for _, c := range x.Columns {
			named[x.Kind+"\x00"+c] = true
		}
		taken[name] = true
		out = append(out, x)
	}
	kinds := make([]string, 0, len(asked))
	for k := range asked {
		kinds = append(kinds, k)
	}
	sort.Strings(kinds)
	for _, kind := range kinds {
		for _, c := range asked[kind] {
			if named[kind+"\x00"+c] {
				continue
			}
			x := Index{Kind: kind, Columns: []string{c}}
			x.Name = FreeName(table, x.NameColumns(), "idx", func(n string) bool { return taken[n] })
			taken[x.Name] = true
			out = append(out, x)
		}
	}
	for i := range out {
		out[i].Options = indexOptions(options, &out[i])
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// indexOptions returns what is said of the first column of an index.
func indexOptions(options map[string]string, x *Index) map[string]string {
	var out map[string]string
	column, _, _ := x.Column(0)
	for _, c := range []string{column, x.Columns[0]} { // of one key counts more
		prefix := fileIndexPrefix + x.Kind + "." + c + "."
		for k, v := range options {
			if o, ok := strings.CutPrefix(k, prefix); ok {
				if out == nil {
					out = map[string]string{}
				}
				out[o] = v
			}
		}
	}
	return out
}

// NameColumns is the part that an index's columns have in its default name: as in
// PostgreSQL, an expression is "expr".
func (x *Index) NameColumns() string {
	var out []string
	for i := range x.Columns {
		c, _, keyed := x.Column(i)
		if keyed {
			c = "expr"
		}
		out = append(out, c)
	}
	return strings.Join(out, "_")
}

// FreeName returns table_columns_label, with a number behind it when taken says so.
// Names have PostgreSQL's length.
func FreeName(table, columns, label string, taken func(string) bool) string {
	for i := 0; ; i++ {
		l := label
		if i > 0 {
			l += strconv.Itoa(i)
		}
		if n := ObjectName(table, columns, l); !taken(n) {
			return n
		}
	}
}

// maxName is the length of PostgreSQL's names, in bytes.
const maxName = 63

// ObjectName makes name1_name2_label fit into a name: the longer of the two is cut, as
// makeObjectName of PostgreSQL does.
func ObjectName(name1, name2, label string) string {
	overhead := len(label) + 1
	if name2 != "" {
		overhead++
	}
	n1, n2 := len(name1), len(name2)
	for n1+n2 > maxName-overhead {
		if n1 > n2 {
			n1--
		} else {
			n2--
		}
	}
	out := clip(name1, n1)
	if name2 != "" {
		out += "_" + clip(name2, n2)
	}
	return out + "_" + label
}

// clip cuts s to at most n bytes of whole characters.
func clip(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
