package pruning

import (
	"fmt"
	"strings"
)

// predicate draws a condition over the table's columns.
func (t *tab) predicate(depth int) string {
	if depth > 0 && t.r.IntN(3) > 0 {
		switch t.r.IntN(5) {
		case 0, 1:
			return "(" + t.predicate(depth-1) + " and " + t.predicate(depth-1) + ")"
		case 2, 3:
			return "(" + t.predicate(depth-1) + " or " + t.predicate(depth-1) + ")"
		default:
			return "not (" + t.predicate(depth-1) + ")"
		}
	}
	c := &t.cols[t.r.IntN(len(t.cols))]
	if len(c.under) > 0 {
		if t.r.IntN(8) == 0 {
			return c.name + t.pick(" is null", " is not null")
		}
		v := kinds[c.elem]
		c = &column{fmt.Sprintf("%s['%s']", c.name, t.pick(c.under...)), v}
	}
	v := func() string { return c.values[t.r.IntN(len(c.values))] }
	cast := func(s string) string { return "(" + s + ")::" + plain(c.typ) }
	switch n := t.r.IntN(12); {
	case n < 4:
		return fmt.Sprintf("%s %s %s", c.name, t.pick("=", "=", "<", "<=", ">", ">=", "<>"), cast(v()))
	case n < 6:
		var l []string
		for range 1 + t.r.IntN(4) {
			l = append(l, cast(v()))
		}
		return fmt.Sprintf("%s %s (%s)", c.name, t.pick("in", "in", "not in"), strings.Join(l, ", "))
	case n < 7:
		return c.name + t.pick(" is null", " is not null")
	case n < 9:
		return fmt.Sprintf("%s between %s and %s", c.name, cast(v()), cast(v()))
	case n < 10 && len(c.like) > 0:
		return c.name + " like " + c.like[t.r.IntN(len(c.like))]
	case c.typ == "boolean":
		return t.pick("", "not ") + c.name
	}
	return fmt.Sprintf("%s = %s", c.name, cast(v()))
}

// plain is a type without a length that a cast would cut values to.
func plain(typ string) string {
	if typ == "tinyint" {
		return "smallint"
	}
	return typ
}

// question is a query; whole says that its rows are determined, but for their order.
type question struct {
	sql   string
	whole bool
}

// ask draws a query with a predicate.
func (t *tab) ask() question {
	p := t.predicate(2)
	if t.r.IntN(3) == 0 {
		return t.metadata(p)
	}
	c := &t.cols[t.r.IntN(len(t.cols))]
	ordered := c.typ != "boolean" && c.typ != "bytea" && len(c.under) == 0
	switch n := t.r.IntN(10); {
	case n < 5:
		return question{fmt.Sprintf("select * from %s where %s", t.name, p), true}
	case n < 6:
		return question{fmt.Sprintf("select count(*) from %s where %s", t.name, p), true}
	case n < 7 && ordered:
		return question{fmt.Sprintf("select min(%[1]s), max(%[1]s), count(*), count(%[1]s) from %[2]s where %[3]s", c.name, t.name, p), true}
	case n < 8 && ordered:
		where := t.pick("", " where "+p)
		return question{fmt.Sprintf("select min(%[1]s), max(%[1]s) from %[2]s%[3]s", c.name, t.name, where), true}
	case n < 9 && len(c.under) == 0:
		// Which of equal rows come is open: what they are ordered by is not.
		where := t.pick("", " where "+p)
		list, then := c.name, ""
		if d := &t.cols[t.r.IntN(len(t.cols))]; len(d.under) == 0 && t.r.IntN(2) == 0 {
			list, then = list+", "+d.name, ", "+d.name
		}
		return question{fmt.Sprintf("select %s from %s%s order by %s %s%s limit %d", list, t.name, where, c.name,
			t.pick("", "desc", "nulls first", "desc nulls last"), then, 1+t.r.IntN(5)), true}
	}
	return question{fmt.Sprintf("select * from %s where %s limit %d", t.name, p, 1+t.r.IntN(8)), false}
}
