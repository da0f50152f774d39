package keytable

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// row is one row by column name; a missing column is NULL. Values are int64,
// string and bool.
type row map[string]any

// entry is what the model knows of a key.
type entry struct {
	live bool
	row  row
	// floor is the highest sequence ever seen, which rows after a delete must not
	// go below: a delete that compaction has dropped is forgotten.
	floor []any
	// high is the same for each sequence group.
	high [][]any
	// strict: no late rows for this key any more.
	strict bool
	// removed: a delete took the row away. What is written to the key afterwards
	// depends on when compaction forgets the delete, unless it is a whole row.
	removed bool
	part    any // where it was last
	count   int // of a row of a changelog
}

// model is a table as anybody would write it: a map of rows, changed row by row.
type model struct {
	c    *config
	rows map[string]*entry
}

func newModel(c *config) *model { return &model{c, map[string]*entry{}} }

func (m *model) id(r row) string {
	if m.c.part == "key" {
		return fmt.Sprintf("%v|%v", r["p"], r["k"])
	}
	return fmt.Sprint(r["k"])
}

// compare orders values; NULL is the smallest.
func compare(a, b any) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	switch x := a.(type) {
	case int64:
		return cmp.Compare(x, b.(int64))
	case string:
		return cmp.Compare(x, b.(string))
	case bool:
		y := b.(bool)
		switch {
		case x == y:
			return 0
		case !x:
			return -1
		}
		return 1
	}
	panic(fmt.Sprintf("%T", a))
}

func values(r row, cols []string) []any {
	out := make([]any, len(cols))
	for i, c := range cols {
		out[i] = r[c]
	}
	return out
}

// older reports whether sequence a comes before b; NULL loses in either order.
func (c *config) older(a, b []any) bool {
	for i := range a {
		v := compare(a[i], b[i])
		if v != 0 && c.desc && a[i] != nil && b[i] != nil {
			v = -v
		}
		if v != 0 {
			return v < 0
		}
	}
	return false
}

func rising(a, b []any) int {
	for i := range a {
		if v := compare(a[i], b[i]); v != 0 {
			return v
		}
	}
	return 0
}

func clone(r row) row {
	out := row{}
	for k, v := range r {
		if v != nil {
			out[k] = v
		}
	}
	return out
}

// apply merges one row into the table. kind is +I, -U, +U or -D.
func (m *model) apply(kind string, r row) {
	c := m.c
	add := kind[0] == '+'
	if !add && (c.delete == "ignore" || kind == "-U" && c.opts["ignore-update-before"] == "true") {
		return
	}
	id := m.id(r)
	e := m.rows[id]
	if e == nil {
		if !add {
			return // the generator takes care that this changes nothing
		}
		e = &entry{row: row{}}
		m.rows[id] = e
	}
	if e.part == nil || add && (c.engine == "deduplicate" || !e.live) {
		e.part = r["p"]
	}
	if len(c.seq) > 0 {
		if s := values(r, c.seq); e.floor == nil || !c.older(s, e.floor) {
			e.floor = s
		}
	}
	switch c.engine {
	case "deduplicate":
		if len(c.seq) > 0 && len(e.row) > 0 && c.older(values(r, c.seq), values(e.row, c.seq)) {
			return
		}
		e.live, e.row = add, clone(r)
		if !add {
			e.strict = true
		}
	case "first-row":
		if !e.live {
			e.live, e.row = true, clone(r)
		}
	case "partial-update":
		m.partial(e, kind, r)
	case "aggregation":
		m.aggregate(e, kind, r)
	}
}

func (m *model) partial(e *entry, kind string, r row) {
	c := m.c
	if kind[0] == '-' && c.delete == "row" {
		if kind == "-D" {
			e.live, e.row, e.removed = false, row{}, true
		}
		return
	}
	if c.part == "cross" && e.live {
		r = clone(r)
		delete(r, "p") // the row goes to where the key is
	}
	grouped := map[string]bool{}
	if e.high == nil {
		e.high = make([][]any, len(c.groups))
	}
	for i, g := range c.groups {
		for _, x := range slices.Concat(g.order, g.cols) {
			grouped[x] = true
		}
		in := values(r, g.order)
		if !slices.ContainsFunc(in, func(v any) bool { return v != nil }) {
			continue
		}
		if e.high[i] == nil || rising(in, e.high[i]) > 0 {
			e.high[i] = in
		}
		newer := rising(in, values(e.row, g.order)) >= 0
		if kind[0] == '-' {
			if !newer {
				continue
			}
			if g.removes && kind == "-D" {
				e.live, e.row, e.removed = false, row{}, true
				for k, x := range g.order {
					e.row[x] = in[k]
				}
				return
			}
			for k, x := range g.order {
				e.row[x] = in[k]
			}
			for _, x := range g.cols {
				if c.agg[x] == "" {
					e.row[x] = nil
				}
			}
			continue
		}
		if newer {
			for k, x := range g.order {
				e.row[x] = in[k]
			}
		}
		for _, x := range g.cols {
			switch f := c.agg[x]; {
			case f != "":
				e.row[x] = fold(f, e.row[x], r[x])
			case newer:
				e.row[x] = r[x]
			}
		}
	}
	if kind[0] == '-' {
		return
	}
	for x, v := range r {
		if v != nil && !grouped[x] {
			e.row[x] = v
		}
	}
	for _, s := range c.seq {
		if r[s] != nil {
			e.row[s] = r[s]
		}
	}
	e.live = true
}

func (m *model) aggregate(e *entry, kind string, r row) {
	c := m.c
	if kind[0] == '-' {
		if c.delete == "row" {
			e.live, e.row, e.removed = false, row{}, true
			return
		}
		for _, f := range c.fields {
			if slices.Contains(c.seq, f.name) {
				continue
			}
			old, v := e.row[f.name], r[f.name]
			switch c.agg[f.name] {
			case "sum":
				if v != nil && old != nil {
					e.row[f.name] = old.(int64) - v.(int64)
				} else if v != nil {
					e.row[f.name] = -v.(int64)
				}
			case "last_value":
				e.row[f.name] = nil
			case "last_non_null_value", "":
				if v != nil {
					e.row[f.name] = nil
				}
			}
		}
		return
	}
	first := len(e.row) == 0
	if len(c.seq) > 0 {
		if s := values(r, c.seq); first || !c.older(s, values(e.row, c.seq)) {
			for i, x := range c.seq {
				e.row[x] = s[i]
			}
		}
	}
	e.row["k"] = r["k"]
	if e.row["p"] == nil {
		e.row["p"] = r["p"]
	}
	for _, f := range c.fields {
		if slices.Contains(c.seq, f.name) {
			continue
		}
		old, seen := e.row[f.name]
		v := r[f.name]
		fn := c.agg[f.name]
		if fn == "first_value" {
			if !seen {
				e.row[f.name] = v
			}
			continue
		}
		e.row[f.name] = fold(fn, old, v)
	}
	e.live = true
}

// fold is one step of an aggregate function.
func fold(f string, acc, in any) any {
	switch f {
	case "last_value":
		return in
	case "first_non_null_value":
		if acc != nil {
			return acc
		}
		return in
	}
	switch {
	case in == nil:
		return acc
	case acc == nil:
		return in
	}
	switch f {
	case "sum":
		return acc.(int64) + in.(int64)
	case "product":
		return acc.(int64) * in.(int64)
	case "max":
		if compare(in, acc) > 0 {
			return in
		}
		return acc
	case "min":
		if compare(in, acc) < 0 {
			return in
		}
		return acc
	case "bool_and":
		return acc.(bool) && in.(bool)
	case "bool_or":
		return acc.(bool) || in.(bool)
	case "listagg":
		if in == "" {
			return acc
		}
		return acc.(string) + "," + in.(string)
	case "last_non_null_value", "":
		return in
	}
	panic(f)
}

// live returns the rows that there are, as text, in order.
func (m *model) live() []string {
	var out []string
	for _, e := range m.rows {
		if e.live {
			out = append(out, m.c.text(e.row))
		}
	}
	sort.Strings(out)
	return out
}

// columns are all the columns, in the order of the table.
func (c *config) columns() []string {
	out := []string{"k"}
	if c.part != "none" {
		out = append(out, "p")
	}
	for _, f := range c.fields {
		out = append(out, f.name)
	}
	return out
}

// text shows a row.
func (c *config) text(r row) string {
	var b strings.Builder
	for i, x := range c.columns() {
		if i > 0 {
			b.WriteByte('|')
		}
		if r[x] == nil {
			b.WriteString("-")
		} else {
			fmt.Fprint(&b, r[x])
		}
	}
	return b.String()
}
