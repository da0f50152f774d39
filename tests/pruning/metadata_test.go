package pruning

import (
	"fmt"
	"strings"
)

// metadata draws a query that metadata may answer in whole or in part: extremes and counts
// of several columns, groups of partitions, limits, and the first rows of an order.
func (t *tab) metadata(p string) question {
	where := t.pick("", " where "+p)
	if len(t.part) > 0 && t.r.IntN(2) == 0 {
		where = " where " + t.partition(1)
		if t.r.IntN(3) == 0 {
			where += t.pick(" and ", " or ") + p
		}
	}
	switch n := t.r.IntN(6); {
	case n < 2:
		return question{fmt.Sprintf("select %s from %s%s", strings.Join(t.aggregates(), ", "), t.name, where), true}
	case n < 4 && len(t.part) > 0:
		g := t.group()
		l := append([]string{g}, t.aggregates()...)
		return question{fmt.Sprintf("select %s from %s%s group by %s", strings.Join(l, ", "), t.name, where, g), true}
	case n < 5:
		return question{fmt.Sprintf("select * from %s%s limit %d", t.name, where, 1+t.r.IntN(30)), false}
	}
	c := t.ordered()
	if c == nil {
		return question{fmt.Sprintf("select count(*) from %s%s", t.name, where), true}
	}
	// All columns, with the first key of the order only: which of equal rows come is open,
	// so only the keys are told, and with a second key which of them come is not.
	dir := t.pick("", "desc", "nulls first", "desc nulls last")
	if d := t.ordered(); d != nil && t.r.IntN(2) == 0 {
		return question{fmt.Sprintf("select %[1]s, %[2]s from %[3]s%[4]s order by %[1]s %[5]s, %[2]s %[6]s limit %[7]d offset %[8]d", c.name, d.name, t.name, where,
			dir, t.pick("", "desc", "nulls first", "desc nulls last"), 1+t.r.IntN(12), t.r.IntN(4)), true}
	}
	return question{fmt.Sprintf("select %[1]s from %[2]s%[3]s order by %[1]s %[4]s limit %[5]d", c.name, t.name, where, dir, 1+t.r.IntN(12)), true}
}

// ordered draws a column that ORDER BY, min and max take, nil when there is none.
func (t *tab) ordered() *column {
	for range 10 {
		if c := &t.cols[t.r.IntN(len(t.cols))]; c.typ != "boolean" && c.typ != "bytea" && c.typ != "uuid" && !strings.HasPrefix(c.typ, "map") {
			return c
		}
	}
	return nil
}

// aggregates draws calls.
func (t *tab) aggregates() []string {
	var out []string
	for range 1 + t.r.IntN(4) {
		c := &t.cols[t.r.IntN(len(t.cols))]
		switch n := t.r.IntN(8); {
		case n < 2 || c.typ == "bytea" || c.typ == "uuid" || strings.HasPrefix(c.typ, "map"):
			out = append(out, "count(*)")
		case n < 3:
			out = append(out, "count("+c.name+")")
		case c.typ == "boolean":
			out = append(out, t.pick("bool_and", "bool_or")+"("+c.name+")")
		case n < 7:
			out = append(out, t.pick("min", "max")+"("+c.name+")")
		default:
			f := "max(" + c.name + ")"
			if len(t.part) > 0 {
				f = t.pick("count(*)", f) + " filter (where " + t.partition(1) + ")"
			}
			out = append(out, f)
		}
	}
	return out
}

// partColumn is the partition column.
func (t *tab) partColumn() *column {
	for i := range t.cols {
		if t.cols[i].name == t.part[0] {
			return &t.cols[i]
		}
	}
	return nil
}

// group draws what to group by: a partition column, or something computed of it.
func (t *tab) group() string {
	c := t.partColumn()
	if t.r.IntN(2) == 0 {
		return c.name
	}
	return t.expression(c)
}

// expression draws a value computed of a column.
func (t *tab) expression(c *column) string {
	switch {
	case c.typ == "date" || strings.HasPrefix(c.typ, "timestamp"):
		return t.pick("date_trunc('month', "+c.name+")", "extract(year from "+c.name+")", c.name+"::text", "coalesce("+c.name+"::text, 'none')")
	case c.typ == "text" || strings.HasPrefix(c.typ, "varchar"):
		return t.pick("upper("+c.name+")", c.name+" || 'x'", "length("+c.name+")", "left("+c.name+", 1)")
	}
	return t.pick(c.name+"::text", "coalesce("+c.name+"::text, '')", "length("+c.name+"::text)")
}

// partition draws a condition on the partition column that statistics have no words for.
func (t *tab) partition(depth int) string {
	if depth > 0 && t.r.IntN(3) == 0 {
		return "(" + t.partition(depth-1) + t.pick(" and ", " or ") + t.partition(depth-1) + ")"
	}
	c := t.partColumn()
	v := "(" + c.values[t.r.IntN(len(c.values))] + ")::" + plain(c.typ)
	w := "(" + c.values[t.r.IntN(len(c.values))] + ")::" + plain(c.typ)
	switch t.r.IntN(5) {
	case 0:
		return fmt.Sprintf("%s %s %s", c.name, t.pick("=", "<", ">=", "<>"), v)
	case 1:
		return fmt.Sprintf("%s in (%s, %s)", c.name, v, w)
	case 2:
		return fmt.Sprintf("not (%s is not distinct from %s)", c.name, v)
	}
	e := t.expression(c)
	at := func(v string) string { // the same of a constant
		at := *c
		at.name = v
		if strings.Contains(e, "date_trunc") || strings.Contains(e, "extract") || strings.HasPrefix(e, "left") || strings.HasPrefix(e, "upper") || strings.Contains(e, "length") || strings.Contains(e, "||") || strings.Contains(e, "::text") {
			return strings.ReplaceAll(e, c.name, v)
		}
		return v
	}
	return fmt.Sprintf("%s %s (%s, %s)", e, t.pick("in", "in", "not in"), at(v), at(w))
}
